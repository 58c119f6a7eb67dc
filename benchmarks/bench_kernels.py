"""Kernels and the rule for each of them: exactness, test R2 without y, seconds of a fit.

Each row has a value, what it is compared with, and how: `error` is the share of the error allowed,
`difference` and `ratio` are to the baseline of the same run. `--parts` chooses among

eigenvalue   smallest eigenvalue on a line of 40 to 400 points, against NumPy's
sigma_0      the rule's bandwidth, against the minimum of the norm by mpmath
predictions  predictions and standard deviations, against scikit-learn's
jacobian     gradients, against finite differences
scores       test R2 without y, against the Gaussian kernel with the paper's rule
fits         seconds of an exact fit, against the Gaussian kernel
nystrom      seconds of a Nystrom fit, against scikit-learn's features and ridge regression

The tables of `scores` are those of the folder JACRIDGE_DATA/tables; without it they are left out.
`--rows` sets the rows of the Nystrom fit, 500,000 if not given.
"""

import argparse
import os
import sys
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import mpmath
import numpy as np
from _ratio import Rows, seconds_of, standardised
from scipy.linalg import toeplitz
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, PairwiseKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from jacridge import JacobianKernelRidge, theory

TRAINED, ALPHA = 800, 1e-3
# Values at a distance of r bandwidths, with mpmath.
PROFILES = {
    "gaussian": lambda r: mpmath.exp(-(r**2) / 2),
    "matern52": lambda r: (1 + mpmath.sqrt(5) * r + 5 * r**2 / 3) * mpmath.exp(-mpmath.sqrt(5) * r),
    "matern32": lambda r: (1 + mpmath.sqrt(3) * r) * mpmath.exp(-mpmath.sqrt(3) * r),
    "exponential": lambda r: mpmath.exp(-r),
    "laplacian": lambda r: mpmath.exp(-r),
}
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = {
        "eigenvalue": smallest_eigenvalues,
        "sigma_0": minima,
        "predictions": predictions,
        "jacobian": jacobians,
        "scores": scores,
        "fits": fits,
        "nystrom": landmarks,
    }
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    given = parser.parse_args()
    parts["nystrom"] = partial(landmarks, n=given.rows)
    rows = Rows()
    for part in given.parts:
        parts[part](rows)


def smallest_eigenvalues(rows, sizes=(40, 100, 200, 400)):
    """Formula of an infinite line beside finite ones of spacing 1: it is below them, and close.

    The edges of a line are felt beyond the bandwidths of the rule, 0.45 to 0.53. Where the
    smallest eigenvalue is below 1e-11 times the largest one, doubles cannot tell.
    """
    interior, all_scales = np.linspace(0.2, 0.6, 9), np.geomspace(0.2, 5, 25)
    for kernel in PROFILES:
        gaps = []
        for n, scale in product(sizes, [*interior, *all_scales]):
            line = [float(PROFILES[kernel](j / mpmath.mpf(scale))) for j in range(n)]
            values = np.linalg.eigvalsh(toeplitz(line))
            formula = float(theory.lattice_eigenvalue(scale, kernel, 1.0, 1))
            if values[0] > 1e-11 * values[-1]:
                gaps.append((scale, 1 - formula / values[0]))
        what = f"eigenvalue, {sizes[0]} to {sizes[-1]} points: {kernel}"
        near = max(gap for scale, gap in gaps if scale <= interior[-1])
        add(rows, f"{what}, largest gap up to sigma = 0.6 spacings", near, 0.01, "error")
        widest = max(scale for scale, _ in gaps)
        least = min(gap for _, gap in gaps)
        above = f"{what}, least gap up to sigma = {widest:.2g} spacings"
        add(rows, above, least, 0.0, "difference")


def minima(rows):
    """Bandwidth of the rule beside the minimum of J with 30 digits, penalties up to the edge."""
    for kernel, p in product(("gaussian", "matern52", "matern32"), (1, 2, 3)):
        edge = theory.lattice_lambda_threshold(kernel, p)
        errors = []
        for lam in (0.0, 1e-3, 0.5 * edge, 0.99 * edge):
            ours = theory.lattice_sigma_0(kernel, 1.0, p, lam)
            errors.append(abs(ours / minimum_of_norm(kernel, p, lam, start=ours) - 1))
        add(rows, f"sigma_0, p = {p}: {kernel}, largest error", max(errors), 1e-8, "error")


def minimum_of_norm(kernel, p, lam, start):
    """Where J is least, on a grid of spacing 1, with its smallest eigenvalue by an explicit sum."""
    terms = {}
    reach = 24  # at the bandwidths of the rule the kernel is below 1e-25 there
    for j in product(range(-reach, reach + 1), repeat=p):
        if (gap := sum(i * i for i in j)) <= reach**2:
            terms[gap] = terms.get(gap, 0) + (-1) ** sum(j)
    with mpmath.workdps(30):

        def log_norm(x):
            eigenvalue = sum(
                count * PROFILES[kernel](mpmath.sqrt(gap) / mpmath.exp(x))
                for gap, count in terms.items()
            )
            return -x - mpmath.log(eigenvalue + lam)

        near = mpmath.log(start)
        found = mpmath.findroot(lambda x: mpmath.diff(log_norm, x), (near - 0.01, near + 0.01))
        return float(mpmath.exp(found))


def predictions(rows, sigma=1.5, alpha=1e-2):
    """Predictions and standard deviations of 500 rows beside scikit-learn's."""
    X, y, X_new = some_rows()
    theirs = {
        "gaussian": RBF(sigma),
        "matern52": Matern(sigma, nu=2.5),
        "matern32": Matern(sigma, nu=1.5),
        "exponential": Matern(sigma, nu=0.5),
        "laplacian": PairwiseKernel(metric="laplacian", gamma=1 / sigma),
    }
    for kernel, function in theirs.items():
        process = GaussianProcessRegressor(function, alpha=alpha, optimizer=None)
        mean, std = process.fit(X, y - y.mean()).predict(X_new, return_std=True)
        if kernel == "laplacian":
            ridge = KernelRidge(kernel="laplacian", gamma=1 / sigma, alpha=alpha)
            mean = ridge.fit(X, y - y.mean()).predict(X_new)
        # Their kernel has unit variance, ours that of the largest likelihood.
        std *= np.sqrt((y - y.mean()) @ np.ravel(process.alpha_) / len(y))
        model = JacobianKernelRidge(sigma, alpha, kernel=kernel).fit(X, y)
        ours, deviation = model.predict(X_new, return_std=True)
        gap, std_gap = np.abs(ours - y.mean() - mean).max(), np.abs(deviation / std - 1).max()
        add(rows, f"predictions: {kernel}, largest gap", gap / y.std(), 1e-8, "error")
        add(rows, f"standard deviations: {kernel}, largest error", std_gap, 1e-8, "error")


def jacobians(rows, sigma=1.5, alpha=1e-2):
    """Gradients of 500 rows' fit beside central differences of fourth order."""
    X, y, X_new = some_rows()
    for kernel in PROFILES:
        model = JacobianKernelRidge(sigma, alpha, kernel=kernel).fit(X, y)
        # Kernels with kinks are smooth between the coordinates of training rows: stay there.
        room = np.abs(X_new[:, None] - X).min(axis=(1, 2)) / 3
        h = np.full(len(X_new), 1e-3) if kernel != "laplacian" else np.minimum(room, 1e-3)
        J = model.jacobian(X_new)
        error = max(np.abs(J[:, f] - slope(model, X_new, f, h)).max() for f in range(X.shape[1]))
        add(rows, f"jacobian: {kernel}, largest error", error / np.abs(J).max(), 1e-6, "error")


def slope(model, X, f, h):
    """Derivative of the predictions with respect to feature f, by steps h."""
    step = np.zeros_like(X)
    step[:, f] = h
    near = model.predict(X + step) - model.predict(X - step)
    far = model.predict(X + 2 * step) - model.predict(X - 2 * step)
    return (8 * near - far) / (12 * h)


def some_rows(n=500, p=4):
    """X (n, p), y (n,) and 50 new rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 3 + 0.1 * rng.standard_normal(n)
    return X, y, rng.standard_normal((50, p))


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
    at = dict(zip(WITHOUT_Y, found, strict=True))
    for kernel in ("gaussian", "matern32"):
        paper, grid = at[kernel, "jacobian"], at[kernel, "jacobian_lattice"]
        for word, i in (("lost", np.argmin(grid - paper)), ("won", np.argmax(grid - paper))):
            what = f"{files[i].stem}, {kernel}: jacobian_lattice beside jacobian, most {word}"
            add(rows, what, grid[i], paper[i], "difference")


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


def landmarks(rows, n=500_000, p=9, m=1000):
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
    """Print one comparison, by the difference or the ratio to the baseline or error allowed."""
    compared = value - baseline if by == "difference" else value / baseline
    rows.add(what=what, value=value, baseline=baseline, compared=compared, by=by)


if __name__ == "__main__":
    main()
