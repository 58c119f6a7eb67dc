"""Kernels beside each other: test R2 without y, seconds of a fit, Nystrom against scikit-learn.

The tables are those of the folder JACRIDGE_DATA/tables, without which the scores are left out.
`--rows` sets the rows of the Nystrom fit, 500,000 if not given.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np
from _ratio import Rows, seconds_of, standardised
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from jacridge import JacobianKernelRidge

TRAINED, ALPHA = 800, 1e-3
# Kernel and rule, each without a look at y; the first is the paper's.
WITHOUT_Y = (
    ("gaussian", "jacobian"),
    ("gaussian", "jacobian_lattice"),
    ("gaussian", "median"),
    ("matern52", "jacobian"),
    ("matern52", "median"),
    ("matern32", "jacobian"),
    ("matern32", "jacobian_lattice"),
    ("matern32", "median"),
    ("exponential", "median"),
    ("laplacian", "median"),
    ("gaussian", "ssmm"),
    ("matern32", "ssmm"),
)


def main():
    """Print one row for each comparison: what, value, baseline, and how they compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--parts", nargs="*", default=["scores", "fits", "nystrom"])
    given = parser.parse_args()
    rows = Rows()
    if "scores" in given.parts:
        scores(rows)
    if "fits" in given.parts:
        fits(rows)
    if "nystrom" in given.parts:
        landmarks(rows, given.rows)


def scores(rows):
    """Mean test R2 over the tables, and its difference to the Gaussian with the paper's rule."""
    folder = Path(os.environ.get("JACRIDGE_DATA", "")) / "tables"
    files = sorted(folder.glob("*.npz"))
    if not files:
        print(f"{folder} has no tables: the scores are left out", file=sys.stderr)
        return
    found = np.array([[score(file, *pair) for file in files] for pair in WITHOUT_Y])
    for pair, r2 in zip(WITHOUT_Y, found, strict=True):
        add(
            rows,
            f"R2 on {len(files)} tables: {' '.join(pair)}",
            r2.mean(),
            found[0].mean(),
            "difference",
        )


def score(file, kernel, rule):
    """Test R2 of a fit to 800 rows, or 65 % of fewer, the features standardised on them."""
    with np.load(file) as table:
        X, y = table["X"].astype(float), table["y"].astype(float)
    order = np.random.RandomState(0).permutation(len(y))[:2000]
    n = min(TRAINED, int(0.65 * len(order)))
    train, test = order[:n], order[n:]
    scale = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = JacobianKernelRidge(rule, ALPHA, kernel=kernel, random_state=0)
        return model.fit(X[train], y[train]).score(X[test], y[test])


def fits(rows, n=6500, p=10):
    """Seconds of an exact fit at a bandwidth given, beside those of the Gaussian kernel."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    y = np.sin(X[:, 0]) + X[:, 1]
    names = ("gaussian", "matern32", "laplacian")
    models = [JacobianKernelRidge(3.0, ALPHA, kernel=name) for name in names]
    taken = seconds_of(*[lambda model=model: model.fit(X, y) for model in models], rounds=3)
    for name, seconds in zip(names[1:], taken[1:], strict=True):
        add(rows, f"fit, n = {n}, p = {p}: {name}, s", seconds, taken[0], "ratio")


def landmarks(rows, n, p=9, m=1000):
    """Seconds of a Nystrom fit, beside those of scikit-learn's features and ridge regression."""
    rng = np.random.default_rng(0)
    X = standardised(rng.standard_normal((n, p)))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)
    sigma, options = 3.0, {"solver": "nystrom", "n_landmarks": m, "landmarks": "uniform"}
    theirs = make_pipeline(
        Nystroem(gamma=0.5 / sigma**2, n_components=m, random_state=0), Ridge(ALPHA)
    )
    names = ("gaussian", "matern32", "laplacian")
    ours = [
        JacobianKernelRidge(sigma, ALPHA, kernel=name, random_state=0, **options) for name in names
    ]
    models = theirs, *ours
    taken = seconds_of(*[lambda model=model: model.fit(X, y) for model in models], rounds=1)
    for name, seconds in zip(names, taken[1:], strict=True):
        add(rows, f"Nystrom, {n} x {p}, m = {m}: {name}, s", seconds, taken[0], "ratio")


def add(rows, what, value, baseline, by):
    """Print one comparison, by the difference or the ratio to the baseline."""
    compared = value - baseline if by == "difference" else value / baseline
    rows.add(what=what, value=value, baseline=baseline, compared=compared, by=by)


if __name__ == "__main__":
    main()
