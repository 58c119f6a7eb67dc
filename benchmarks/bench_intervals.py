"""Prediction intervals: coverage and width on real tables, and their time against `predict`.

Needs the folder JACRIDGE_DATA; .npz files with X and y in its subfolder `tables` are used, too.
"""

import os
import sys
from pathlib import Path

import numpy as np
from _ratio import Rows, seconds_of, tables, whole_table

from jacridge import JacobianKernelRidge

N_TRAIN, N_SPLITS, COVERAGE = 650, 4, 0.9
OPTIONS = {"bandwidth": "auto", "alpha": "auto", "random_state": 0}


def main():
    """One line a table; then one with the time of 6000 training and 6000 new rows."""
    rows = Rows()
    for name, X, y in data():
        found = np.mean([measured(X, y, seed) for seed in range(N_SPLITS)], axis=0)
        plain, adaptive, width = map(float, found)
        rows.add(table=name, plain=plain, adaptive=adaptive, width_ratio=width, times_predict="")
    if "--no-time" not in sys.argv:
        rows.add(
            table="6000 x 5", plain="", adaptive="", width_ratio="", times_predict=time_ratio()
        )


def data():
    """Names, features and targets of all tables."""
    for name in tables():
        yield name, *whole_table(name)
    for path in sorted(Path(os.environ["JACRIDGE_DATA"], "tables").glob("*.npz")):
        table = np.load(path)
        yield path.stem, table["X"], table["y"]


def measured(X, y, seed):
    """Coverage of plain and of adaptive intervals, and the ratio of their mean widths."""
    order = np.random.default_rng(seed).permutation(len(y))
    n = min(N_TRAIN, len(y) * 2 // 3)
    train, test = order[:n], order[n : n + 1000]
    mean, std = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(std > 0, std, 1.0)
    est = JacobianKernelRidge(**OPTIONS).fit(X[train], y[train])
    ends = [est.predict_interval(X[test], COVERAGE, adaptive=kind) for kind in (False, True)]
    y = y[test]
    plain, adaptive = (float(np.mean((lower <= y) & (y <= upper))) for lower, upper in ends)
    widths = [float(np.mean(upper - lower)) for lower, upper in ends]
    return plain, adaptive, widths[1] / widths[0]


def time_ratio(n=6000):
    """Time of the first `predict_interval` after a fit, in units of `predict`."""
    rng = np.random.default_rng(0)
    X, X_new = rng.uniform(size=(2, n, 5))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)
    est = JacobianKernelRidge(0.5, 0.1).fit(X, y)

    def first_interval():
        est._model.__dict__.pop("jackknife", None)
        est.predict_interval(X_new)

    predict, interval = seconds_of(lambda: est.predict(X_new), first_interval, rounds=3)
    return interval / predict


if __name__ == "__main__":
    main()
