"""Test R2 and seconds of AutoKernelRidge beside boosted trees and xRFM, all with their defaults.

Needs the extra `bench` and JACRIDGE_DATA, a folder with the paper's tables and `tables/*.npz`. Rows
are RandomState(0).permutation(n)[:2000], the first 65 % train. One line for each table and method.
"""

import argparse
import os
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from time import perf_counter

import numpy as np
from _ratio import Rows
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score

from jacridge import AutoKernelRidge, JacobianKernelRidge

PAPER = ("wood_fibres", "protein", "black_smoke", "appliances_energy", "california_housing")


def development_tables():
    """Name, X and y of the fourteen tables."""
    for path in sorted((Path(os.environ["JACRIDGE_DATA"]) / "tables").glob("*.npz")):
        held = np.load(path)
        yield path.stem, held["X"].astype(float), held["y"].astype(float)


def paper_tables():
    """Name, X and y of the paper's five tables and diabetes."""
    for name in PAPER:
        (path,) = Path(os.environ["JACRIDGE_DATA"]).glob(f"{name}.csv*")
        rows = np.loadtxt(path, delimiter=",", skiprows=1)
        yield name, rows[:, 1:], rows[:, 0]
    yield "diabetes", *load_diabetes(return_X_y=True)


def auto(X, y, X_new, seed=0):
    return AutoKernelRidge(random_state=seed).fit(X, y).predict(X_new)


def one_gaussian(X, y, X_new):
    model = JacobianKernelRidge("auto", "auto", metric="scaled", random_state=0)
    return model.fit(X, y).predict(X_new)


def hist_gradient_boosting(X, y, X_new):
    return HistGradientBoostingRegressor(random_state=0).fit(X, y).predict(X_new)


def catboost(X, y, X_new):
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(verbose=0, random_seed=0, allow_writing_files=False)
    return model.fit(X, y).predict(X_new)


def xrfm(X, y, X_new):
    """With a fifth of the rows for its validation, features standardised on the training rows."""
    import torch
    from xrfm import xRFM

    mean, std = X.mean(axis=0), np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    X, X_new = (torch.tensor((Z - mean) / std, dtype=torch.float32) for Z in (X, X_new))
    centre, scale = y.mean(), y.std()
    y = torch.tensor((y - centre) / scale, dtype=torch.float32)[:, None]
    cut = len(X) * 4 // 5
    model = xRFM(device="cpu", tuning_metric="mse")
    with redirect_stdout(sys.stderr):  # standard output is for the CSV alone
        model.fit(X[:cut], y[:cut], X[cut:], y[cut:])
    return np.ravel(model.predict(X_new)) * scale + centre


METHODS = {
    "auto": auto,
    "one gaussian": one_gaussian,
    "hist gradient boosting": hist_gradient_boosting,
    "catboost": catboost,
    "xrfm": xrfm,
}


def split_of(X, y):
    some = np.random.RandomState(0).permutation(len(y))[:2000]
    n = int(0.65 * len(some))
    return X[some[:n]], y[some[:n]], X[some[n:]], y[some[n:]]


def compared(rows, tables, methods):
    """One line for each table and method, and the mean over tables at the end."""
    scores = {name: [] for name in methods}
    for table, X, y in tables:
        X, y, X_new, y_new = split_of(X, y)
        for name in methods:
            start = perf_counter()
            predicted = METHODS[name](X, y, X_new)
            seconds, r2 = perf_counter() - start, r2_score(y_new, predicted)
            scores[name].append(r2)
            rows.add(table=table, method=name, r2=round(r2, 4), seconds=round(seconds, 2))
    for name, found in scores.items():
        rows.add(table="mean", method=name, r2=round(float(np.mean(found)), 4), seconds="")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default=",".join(METHODS), help="names, with commas between")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = Rows()
    for tables in (development_tables(), paper_tables()):
        compared(rows, tables, options.methods.split(","))


if __name__ == "__main__":
    main()
