"""Prediction intervals: coverage and width on real tables and on made data, and their time.

Needs the folder JACRIDGE_DATA; .npz files with X and y in its subfolder `tables` are used, too.
`--auto` takes AutoKernelRidge, `--no-time` leaves out the time against `predict`.
"""

import os
import sys
from pathlib import Path

import numpy as np
from _ratio import Rows, seconds_of, standardised
from sklearn.datasets import load_diabetes

from jacridge import AutoKernelRidge, JacobianKernelRidge, datasets

N_TRAIN, N_TEST, N_SPLITS, COVERAGE = 650, 1000, 4, 0.9
NEW_ROWS = 1000  # at least so many, by more splits of a small table
MADE = "noise 0.05 to 0.55"


def main():
    """One line a table; the tenths of a feature with growing noise; the time at 6000 rows."""
    rows = Rows()

    def add(table, plain="", adaptive="", width_ratio="", width_far="", times_predict=""):
        rows.add(
            table=table,
            plain=plain,
            adaptive=adaptive,
            width_ratio=width_ratio,
            width_far=width_far,
            times_predict=times_predict,
        )

    for name, X, y in data():
        n = min(N_TRAIN, len(y) * 2 // 3)
        splits = max(N_SPLITS, -(-NEW_ROWS // min(N_TEST, len(y) - n)))
        found = np.mean([measured(X, y, n, seed) for seed in range(splits)], axis=0)
        add(name, *map(float, found))
    for i, (plain, adaptive) in enumerate(zip(*tenths(), strict=True), start=1):
        add(f"{MADE}: tenth {i}", float(plain), float(adaptive))
    if "--no-time" not in sys.argv:
        add("6000 x 5", times_predict=time_ratio())


def data():
    """Names, features and targets of all tables."""
    yield "diabetes", *load_diabetes(return_X_y=True)
    for name in sorted({row["name"] for row in datasets.list_datasets()}):
        found = datasets.load(name)
        yield name, found.X, found.y
    for path in sorted(Path(os.environ["JACRIDGE_DATA"], "tables").glob("*.npz")):
        table = np.load(path)
        yield path.stem, table["X"].astype(float), table["y"].astype(float)


def fitted(X, y):
    """The model whose intervals are measured."""
    if "--auto" in sys.argv:
        return AutoKernelRidge(random_state=0).fit(X, y)
    return JacobianKernelRidge("auto", "auto", random_state=0).fit(X, y)


def measured(X, y, n, seed):
    """Coverage of plain and adaptive intervals, ratio of their mean widths, and width far outside.

    The last one is in units of the range of y.
    """
    order = np.random.default_rng(seed).permutation(len(y))
    X = standardised(X[order[: n + N_TEST]])
    y = y[order[: n + N_TEST]]
    train, test = slice(0, n), slice(n, None)
    est = fitted(X[train], y[train])
    ends = [est.predict_interval(X[test], COVERAGE, adaptive=kind) for kind in (False, True)]
    plain, adaptive = (float(np.mean((low <= y[test]) & (y[test] <= up))) for low, up in ends)
    widths = [float(np.mean(upper - lower)) for lower, upper in ends]
    lower, upper = est.predict_interval(np.full((1, X.shape[1]), 100.0), COVERAGE)
    return plain, adaptive, widths[1] / widths[0], float(upper[0] - lower[0]) / np.ptp(y[train])


def tenths(draws=6):
    """Coverage of plain and adaptive intervals in each tenth of a feature with growing noise."""
    rng, shares = np.random.default_rng(0), np.empty((draws, 2, 10))

    def draw(n):
        x = rng.uniform(size=(n, 1))
        return x, np.sin(6 * x[:, 0]) + (0.05 + 0.5 * x[:, 0]) * rng.standard_normal(n)

    for found in shares:
        est = fitted(*draw(400))
        X, y = draw(4000)
        for adaptive in (False, True):
            lower, upper = est.predict_interval(X, COVERAGE, adaptive=adaptive)
            inside, tenth = (lower <= y) & (y <= upper), (10 * X[:, 0]).astype(int)
            found[int(adaptive)] = [inside[tenth == i].mean() for i in range(10)]
    return shares.mean(axis=0)


def time_ratio(n=6000):
    """Time of the first `predict_interval` after a fit, in units of `predict`."""
    rng = np.random.default_rng(0)
    X, X_new = rng.uniform(size=(2, n, 5))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)
    est = JacobianKernelRidge(0.5, 0.1).fit(X, y)

    def first_interval():
        est._function().model.__dict__.pop("jackknife", None)
        est._made = None
        est.predict_interval(X_new)

    predict, interval = seconds_of(lambda: est.predict(X_new), first_interval, rounds=3)
    return interval / predict


if __name__ == "__main__":
    main()
