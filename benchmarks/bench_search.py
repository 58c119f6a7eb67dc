"""bandwidth="auto" against the full joint search and GridSearchCV: test R2, seconds, coverage."""

import argparse
import sys
from time import perf_counter

import numpy as np
from _ratio import Rows, seconds_of, table, tables
from scipy.linalg import cholesky, solve_triangular
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler

from jacridge import JacobianKernelRidge
from jacridge._distances import squared_distances
from jacridge._kernels import Pairs, gaussian_kernel
from jacridge._problem import LAMBDAS
from jacridge._search import surface
from jacridge._spectrum import spectrum


def splits(n_splits):
    """Standardised training and test rows of each set: at most 2000 of each."""
    for name in ["diabetes", *tables()]:
        X, y = load_diabetes(return_X_y=True) if name == "diabetes" else table(name, 4000)
        for seed in range(n_splits):
            half = min(2000, int(0.65 * len(X)))
            parts = train_test_split(X, y, train_size=half, random_state=seed)
            scaler = StandardScaler().fit(parts[0])
            yield name, seed, (*map(scaler.transform, parts[:2]), *parts[2:])


def grid_search(X, y):
    """10 gammas x 6 alphas, 5 folds, on centred y."""
    grid = {"gamma": np.logspace(-4, 1, 10), "alpha": np.logspace(-4, 1, 6)}
    search = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5).fit(X, y - y.mean())
    return lambda X_new: search.predict(X_new) + y.mean()


def joint_loo(X, y):
    """The full joint search: 12 bandwidths x 17 penalties on all rows."""
    return JacobianKernelRidge("loo", "loo").fit(X, y).predict


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--full", type=int, default=10, help="splits with the slow baselines")
    options = parser.parse_args()
    rows, means = Rows(), {}
    for name, seed, (X, X_new, y, y_new) in splits(options.splits):
        start = perf_counter()
        est = JacobianKernelRidge("auto", "auto", random_state=seed).fit(X, y)
        row = {"auto": (r2_score(y_new, est.predict(X_new)), perf_counter() - start)}
        lower, upper = est.predict_interval(X_new)
        coverage = np.mean((lower <= y_new) & (y_new <= upper))
        if seed < options.full:
            for rival, fit in {"joint_loo": joint_loo, "grid_search": grid_search}.items():
                start = perf_counter()
                predict = fit(X, y)
                seconds = perf_counter() - start
                row[rival] = r2_score(y_new, predict(X_new)), seconds
        for rule, (r2, seconds) in row.items():
            means.setdefault((name, rule), []).append((r2, seconds, coverage))
            rows.add(data=name, seed=seed, rule=rule, r2=r2, seconds=seconds, coverage=coverage)
    for (name, rule), values in means.items():
        r2, seconds, coverage = np.mean(values, axis=0)
        print(f"# {name} {rule}: R2 {r2:.4f}, {seconds:.3f} s, {coverage:.3f}", file=sys.stderr)
    joint_search_speed(rows)


def joint_search_speed(rows):
    """12 x 17 values of leave-one-out at n = 2000 against as many Cholesky factorisations."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 8))
    y = (np.sin(X[:, :1]) + 0.1 * rng.standard_normal((2000, 1))) * 1.0
    sigmas = np.geomspace(0.5, 10, 12)
    pairs, D2 = Pairs(X), squared_distances(X, X)

    def ours():
        return surface(
            lambda sigma: spectrum(pairs.kernel(sigma), y), np.ones(1), sigmas, LAMBDAS, "loo"
        )

    def by_cholesky():
        for sigma in sigmas:
            K = gaussian_kernel(D2, sigma)
            for lam in LAMBDAS:
                L = cholesky(K + lam * np.eye(2000), lower=True)
                T = solve_triangular(L, np.eye(2000), lower=True)
                ((T.T @ (T @ y))[:, 0] / (T**2).sum(axis=0)).var()

    ours_s, theirs = seconds_of(ours, by_cholesky, rounds=1)
    rows.add(
        data="joint search 12 x 17", seed="", rule="times faster than Cholesky",
        r2=theirs / ours_s, seconds=ours_s, coverage=theirs,
    )  # fmt: skip


if __name__ == "__main__":
    main()
