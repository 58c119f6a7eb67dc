"""The automatic choice: pure noise, seeds, known subspaces, time, and tables of many rows.

Needs the extra `bench` for CatBoost, and JACRIDGE_DATA for the tables. One line for each figure:
what was measured, on what, the value, and the value of the baseline in the same run.
"""

import argparse
import warnings
from time import perf_counter

import numpy as np
from _ratio import Rows, seconds_of, whole_table
from bench_accuracy import catboost, development_tables, hist_gradient_boosting, split_of
from scipy.linalg import subspace_angles
from sklearn.metrics import r2_score

from jacridge import AutoKernelRidge, JacobianKernelRidge


def auto(X, y, X_new, seed=0):
    return AutoKernelRidge(random_state=seed).fit(X, y).predict(X_new)


def noise(rows):
    """Test R2 where y has nothing to do with X: mean and worst over 20 seeds."""
    for n in (300, 1300):
        for p in (10, 30):
            found = []
            for seed in range(20):
                rng = np.random.default_rng(seed)
                X, y = rng.standard_normal((n + 1000, p)), rng.standard_normal(n + 1000)
                found.append(r2_score(y[n:], auto(X[:n], y[:n], X[n:], seed)))
            data = f"{n} x {p}"
            rows.add(what="R2 of noise, mean", data=data, value=np.mean(found), baseline=0.0)
            rows.add(what="R2 of noise, worst", data=data, value=min(found), baseline=0.0)


def seeds(rows):
    """Standard deviation of the test R2 over ten seeds, for each table and in the mean."""
    deviations = []
    for name, X, y in development_tables():
        X, y, X_new, y_new = split_of(X, y)
        found = [r2_score(y_new, auto(X, y, X_new, seed)) for seed in range(10)]
        deviations.append(np.std(found))
        rows.add(what="R2, deviation over seeds", data=name, value=np.std(found), baseline="")
    rows.add(
        what="R2, deviation over seeds", data="mean", value=float(np.mean(deviations)), baseline=""
    )


def angle(rows):
    """Largest angle, in degrees, between two learned and two true directions of ten features."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, (Q, _) = rng.standard_normal((1000, 10)), np.linalg.qr(rng.standard_normal((10, 2)))
        U = X @ Q
        y = np.sin(2 * U[:, 0]) + U[:, 1] ** 2 + 0.1 * rng.standard_normal(1000)
        T = JacobianKernelRidge("auto", "auto", metric="full", random_state=0).fit(X, y).metric_
        found = np.linalg.svd(T)[0][:, :2]
        degrees = float(np.degrees(subspace_angles(found, Q).max()))
        rows.add(what="angle to the truth", data=f"seed {seed}", value=degrees, baseline="")


def time(rows):
    """Seconds of a fit to 2000 rows, against CatBoost's, on the tables that have so many."""
    ratios = []
    for name, X, y in development_tables():
        if len(y) < 2000:
            continue
        X, y = X[:2000], y[:2000]
        ours, theirs = seconds_of(
            lambda X=X, y=y: AutoKernelRidge(random_state=0).fit(X, y),
            lambda X=X, y=y: catboost(X, y, X[:1]),
            rounds=3,
        )
        ratios.append(ours / theirs)
        rows.add(
            what="seconds of a fit", data=f"{name}, p = {X.shape[1]}", value=ours, baseline=theirs
        )
    rows.add(what="ratio of seconds", data="mean", value=float(np.mean(ratios)), baseline=1.0)


def growth(rows):
    """Seconds that the choice of kernel and metric takes, 50,000 rows against 2000."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50_000, 8))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(50_000)
    found = []
    for n in (2000, 50_000):
        # A given bandwidth and few landmarks leave the choice, and one pass over the rows.
        est = AutoKernelRidge(3.0, 1.0, solver="nystrom", n_landmarks=50, random_state=0)
        found.append(seconds_of(lambda est=est, n=n: est.fit(X[:n], y[:n]), rounds=3)[0])
    rows.add(what="seconds of the choice", data="50,000 x 8", value=found[1], baseline=found[0])


def large(rows):
    """All rows but a fifth of two tables, nothing given: test R2 and seconds."""
    for name in ("protein", "california"):
        X, y = whole_table(name)
        order = np.random.RandomState(0).permutation(len(y))
        train, test = order[: len(y) * 4 // 5], order[len(y) * 4 // 5 :]
        for method, fit in (
            ("auto", auto),
            ("hist gradient boosting", hist_gradient_boosting),
            ("catboost", catboost),
        ):
            start = perf_counter()
            r2 = r2_score(y[test], fit(X[train], y[train], X[test]))
            seconds = perf_counter() - start
            rows.add(what=f"R2, {method}", data=f"{name}, {len(train)} rows", value=r2, baseline="")
            rows.add(what=f"seconds, {method}", data=name, value=seconds, baseline="")


PARTS = {part.__name__: part for part in (noise, seeds, angle, time, growth, large)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="names, with commas between")
    warnings.simplefilter("ignore")
    rows = Rows()
    for name in parser.parse_args().parts.split(","):
        PARTS[name](rows)


if __name__ == "__main__":
    main()
