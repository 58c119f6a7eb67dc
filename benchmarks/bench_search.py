"""bandwidth="auto" against the full joint search and GridSearchCV: test R2, seconds, coverage.

`--speed` prints the seconds alone, of one split of each set; `--joint` those of the joint search;
`--commands` those of `jacridge compare` with all rules and `jacridge report`, on made tables.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from _ratio import Rows, seconds_of, table, tables
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.preprocessing import StandardScaler

from jacridge import JacobianKernelRidge
from jacridge._geometry.space import Pairs, space_of
from jacridge._rules.criteria import LOO
from jacridge._rules.training import LAMBDAS
from jacridge._solvers.spectrum import spectrum

SPACE = space_of("gaussian", "euclidean")

GAMMAS, ALPHAS = np.logspace(-4, 1, 10), np.logspace(-4, 1, 6)


def split(name, seed):
    """Standardised training rows, at most 2000, test rows, and the targets of both."""
    X, y = load_diabetes(return_X_y=True) if name == "diabetes" else table(name, 4000)
    rows = min(2000, int(0.65 * len(X)))
    parts = train_test_split(X, y, train_size=rows, random_state=seed)
    scaler = StandardScaler().fit(parts[0])
    return *map(scaler.transform, parts[:2]), *parts[2:]


def auto(X, y, seed=0):
    """The search under test."""
    return JacobianKernelRidge("auto", "auto", random_state=seed).fit(X, y)


def joint_loo(X, y):
    """The full joint search: 12 bandwidths x 17 penalties on all rows."""
    return JacobianKernelRidge("loo", "loo").fit(X, y)


def grid_search(X, y):
    """10 gammas x 6 alphas, 5 folds, on centred y."""
    grid = {"gamma": GAMMAS, "alpha": ALPHAS}
    return GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5).fit(X, y - y.mean())


def grid_search_choice(X, y):
    """The model that GridSearchCV ends with, for a third of its time: one kernel a gamma."""
    y, scores = y - y.mean(), np.empty((6, 10, 5))
    for j, gamma in enumerate(GAMMAS):
        K = rbf_kernel(X, gamma=gamma)
        for fold, (a, b) in enumerate(KFold(5).split(X)):
            for i, alpha in enumerate(ALPHAS):
                A = K[np.ix_(a, a)] + alpha * np.eye(len(a))
                scores[i, j, fold] = r2_score(
                    y[b], K[np.ix_(b, a)] @ cho_solve(cho_factor(A), y[a])
                )
    i, j = np.unravel_index(scores.mean(axis=2).argmax(), (6, 10))
    return KernelRidge(kernel="rbf", gamma=GAMMAS[j], alpha=ALPHAS[i]).fit(X, y)


def split_scores(name, seed):
    """Test R2 of the three on one split, and the coverage of the 90 % interval."""
    X, X_new, y, y_new = split(name, seed)
    est = auto(X, y, seed)
    lower, upper = est.predict_interval(X_new)
    full, grid = joint_loo(X, y), grid_search_choice(X, y)
    return (
        r2_score(y_new, est.predict(X_new)),
        r2_score(y_new, full.predict(X_new)),
        r2_score(y_new, grid.predict(X_new) + y.mean()),
        np.mean((lower <= y_new) & (y_new <= upper)),
    )


def seconds(name):
    """Fit and predictions of `auto` and GridSearchCV on the first split, in turn."""
    X, X_new, y, _ = split(name, 0)
    found = {}

    def baseline():
        found["grid"] = grid_search(X, y)
        found["grid"].predict(X_new)

    auto(X[:500], y[:500])  # what is loaded at the first call is no part of the time
    times = seconds_of(lambda: auto(X, y).predict(X_new), baseline, rounds=1)
    same = grid_search_choice(X, y)
    assert found["grid"].best_params_ == {"alpha": same.alpha, "gamma": same.gamma}
    return times


def sets(rows, n_splits):
    """One row for each set, the means last."""
    means = []
    for name in ["diabetes", *tables()]:
        values = [*np.mean([split_scores(name, seed) for seed in range(n_splits)], axis=0)]
        values += seconds(name)
        means.append(values)
        _add(rows, name, values)
    _add(rows, "mean", np.mean(means, axis=0))


def _add(rows, name, values):
    r2_auto, r2_joint, r2_grid, coverage, ours, theirs = values
    rows.add(
        data=name, r2_auto=r2_auto, r2_joint_loo=r2_joint, r2_grid_search=r2_grid,
        coverage=coverage, seconds_auto=ours, seconds_grid_search=theirs, times=theirs / ours,
    )  # fmt: skip


def joint_search_speed(rows):
    """12 x 17 values of leave-one-out at n = 2000 against as many Cholesky factorisations."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 8))
    y = np.sin(X[:, :1]) + 0.1 * rng.standard_normal((2000, 1))
    sigmas = np.geomspace(0.5, 10, 12)
    pairs, gaps = Pairs(X, SPACE), SPACE.distance.gaps(X, X)

    def ours():
        return LOO.surface(
            lambda sigma: spectrum(pairs.kernel(sigma), y, np.ones(2000)),
            np.ones(1),
            sigmas,
            LAMBDAS,
        )

    def by_cholesky():
        for sigma in sigmas:
            K = SPACE.kernel.of(gaps.copy(), sigma)
            for lam in LAMBDAS:
                L = cholesky(K + lam * np.eye(2000), lower=True)
                T = solve_triangular(L, np.eye(2000), lower=True)
                ((T.T @ (T @ y))[:, 0] / (T**2).sum(axis=0)).var()

    a, b = seconds_of(ours, by_cholesky, rounds=1)
    rows.add(what="leave-one-out, 12 x 17 values, 2000 rows", ours=a, baseline=b, times=b / a)

    def fit():
        JacobianKernelRidge("loo", "loo").fit(X, y[:, 0])

    c, a = seconds_of(fit, ours, rounds=1)
    what = "bandwidth=loo, alpha=loo, 2000 rows, against 12 x 17 values"
    rows.add(what=what, ours=c, baseline=a, times=a / c)


def speed(rows):
    """Seconds of `auto` and of GridSearchCV on one split of each set."""
    for name in ["diabetes", *tables()]:
        ours, theirs = seconds(name)
        rows.add(what=f"auto, auto: {name}", ours=ours, baseline=theirs, times=theirs / ours)


def commands(rows):
    """`compare` with all rules on 2000 x 10 beside GridSearchCV; `report` on 5000 x 8 in 12 s."""
    from jacridge import RULES

    X, y = made(2000, 10)
    every = ["--rules", ",".join(RULES)]
    (theirs,) = seconds_of(lambda: grid_search(X, y), rounds=1)
    (ours,) = seconds_of(lambda: command("compare", X, y, *every), rounds=1)
    rows.add(what="jacridge compare, 2000 x 10", ours=ours, baseline=theirs, times=theirs / ours)
    X, y = made(5000, 8)
    (ours,) = seconds_of(lambda: command("report", X, y, "-o", "report.html"), rounds=1)
    rows.add(what="jacridge report, 5000 x 8", ours=ours, baseline=12.0, times=12.0 / ours)


def made(n, p):
    """Normal features, a target with an interaction and noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)


def command(name, X, y, *options):
    """Run a command of jacridge on a table, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        names = ",".join(["y", *(f"x{j}" for j in range(X.shape[1]))])
        path = Path(folder, "table.csv")
        np.savetxt(path, np.column_stack([y, X]), delimiter=",", header=names, comments="")
        run = [Path(sys.executable).parent / "jacridge", name, path, "--target", "y", *options]
        subprocess.run(run, cwd=folder, check=True, capture_output=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    only = {"joint": joint_search_speed, "speed": speed, "commands": commands}
    for name in only:
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args()
    chosen = [part for name, part in only.items() if getattr(options, name)]
    rows = Rows()
    for part in chosen or [lambda rows: sets(rows, options.splits)]:
        part(rows)


if __name__ == "__main__":
    main()
