"""The rules that the experiments compare: the package's own, and those that the authors ran."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError
from scipy.optimize import minimize, minimize_scalar

from jacridge import Choice, JacobianKernelRidge, TrainingData, select_bandwidth, theory
from jacridge._compute.arrays import Array
from jacridge._geometry.space import space_of
from jacridge._rules.registry import SELECTORS, find
from jacridge._rules.searches import minimise
from jacridge._rules.training import Penalty, data_in_memory
from jacridge._solvers.systems import clustered_system
from jacridge.datasets import Split

from ._table import Row

Criterion = Callable[[float], float]

# The rules of the paper's sweeps and temperatures, and those that are drawn.
PAPER_RULES = (
    "jacobian",
    "jacobian_median",
    "silverman",
    "loo",
    "gcv",
    "mml_published",
    "mml_unit",
    "mml",
)
DRAWN = ("jacobian", "loo", "mml_published", "mml", "silverman")

# How each rule is called in tables and figures, in the order of tables.
LABELS = {
    "jacobian": "Jacobian",
    "loo": "LOO (paper: GCV)",
    "gcv": "GCV proper",
    "mml_published": "MML as published",
    "mml_unit": "MML, unit variance",
    "mml": "MML, profiled",
    "silverman": "Silverman",
    "jacobian_median": "Jacobian, median",
    "matern52": "matern52, Jacobian",
    "matern32": "matern32, Jacobian",
    "exponential": "exponential, median",
    "jacobian_trimmed": "Jacobian, trimmed",
    "jacobian_loo": "Seeded LOO",
    "jacobian_mml_published": "Seeded MML as published",
}


def as_published(X: Array, y: Array, lam: float, metric: str = "euclidean") -> TrainingData:
    """Training data as in the authors' code: equal rows are kept, and y is centred only once."""
    space, centred = space_of("gaussian", metric), (y - y.mean())[:, None]
    w, penalty = np.ones(len(X)), Penalty(lam)
    return data_in_memory(X, centred, w, space, penalty=penalty, has_intercept=False)


def authors_grid(l_max: float, points: int) -> Array:
    """The bandwidths among which the authors' "GCV" chooses."""
    return np.logspace(-3, np.log10(l_max), points)


def mml_published(data: TrainingData) -> float:
    """The authors' marginal likelihood: det(A) underflows, and the search runs to l_max.

    Minimises y'A^-1 y + log(det(A)) over sigma, not log sigma, from 0.001 to l_max.
    """
    with np.errstate(all="ignore"):
        found = minimize_scalar(
            _published_objective(data), bounds=(1e-3, data.l_max), method="bounded"
        )
    return float(found.x)


def jacobian_mml_published(data: TrainingData) -> float:
    """The published likelihood, minimised by Nelder and Mead from the Jacobian bandwidth."""
    start = theory.sigma_0(data.n, data.even_spacing, data.lam)
    objective = _published_objective(data)
    with np.errstate(all="ignore"):
        found = minimize(lambda s: objective(float(s[0])), [start], method="Nelder-Mead")
    return float(found.x[0])


def mml_unit(data: TrainingData) -> float:
    """The marginal likelihood with unit signal variance, with log|A| computed correctly."""
    return minimise(lambda s: sum(_parts(data, s)), 1e-3 * data.l_max, data.l_max, 12)


# Rules of the authors that the package does not offer.
AUTHORS: dict[str, Callable[[TrainingData], float]] = {
    "mml_published": mml_published,
    "jacobian_mml_published": jacobian_mml_published,
    "mml_unit": mml_unit,
}
# Closed forms as functions of a choice and the standard deviation of X.
FORMULAS: dict[str, Callable[[Choice, float], float]] = {
    "jacobian": lambda found, _: theory.sigma_0(
        found.n, theory.even_spacing(found.n, found.p, found.l_max), found.alpha
    ),
    "jacobian_median": lambda found, _: theory.sigma_0(found.n, found.spacing, found.alpha),
    "silverman": lambda found, std: (4 / (found.n * (found.p + 2))) ** (1 / (found.p + 4)) * std,
}
# Searches of the authors over a grid.
ON_GRID = ("loo", "gcv")


def choose(
    rule: str,
    X: Array,
    y: Array,
    lam: float,
    *,
    metric: str = "euclidean",
    grid: npt.ArrayLike | None = None,
    kernel: str = "gaussian",
) -> Choice:
    """Bandwidth by one of the package's rules or one of the authors'; `auto` ignores lam.

    For rules that use y, equal rows are kept and the mean of y is fixed, as in the authors' code.
    """
    with warnings.catch_warnings():
        # Equal rows are a known property of these data (wood fibres), explained in the docs.
        warnings.filterwarnings("ignore", message=".*rows repeat")
        known = SELECTORS.get(rule)
        if known is not None and (known.is_automatic or not known.looks_at_y):
            alpha = "auto" if known.is_automatic else lam
            return select_bandwidth(
                X, y, rule, alpha=alpha, metric=metric, kernel=kernel, random_state=0
            )
        start = perf_counter()
        data = as_published(X, y, lam, metric)
        data.grid = None if grid is None else np.asarray(grid, dtype=np.float64)
        sigma = AUTHORS[rule](data) if known is None else find(rule, data).sigma
        seconds = perf_counter() - start
        geometry = select_bandwidth(X, alpha=lam, metric=metric)
    return replace(geometry, sigma=float(sigma), rule=rule, seconds=seconds)


def formula_seconds(rule: str, choice: Choice, std: float) -> float | str:
    """Time of a closed form alone, given its inputs; empty for a search."""
    if rule not in FORMULAS:
        return ""
    start = perf_counter()
    FORMULAS[rule](choice, std)
    return perf_counter() - start


def measured(
    rules: Sequence[str], split: Split, lam: float, *, metric: str, points: int
) -> list[Row]:
    """Bandwidth, times and test R2 of each rule on one split."""
    rows = bandwidths(rules, split.X, split.y, lam, metric=metric, points=points)
    # Two rules that use the same grid often make the same choice.
    scores = {s: r2_on_test(split, s, lam, metric) for s in {row["sigma"] for row in rows}}
    return [{**row, "r2": scores[row["sigma"]]} for row in rows]


def bandwidths(
    rules: Sequence[str], X: Array, y: Array, lam: float, *, metric: str, points: int
) -> list[Row]:
    """Bandwidth and times of each rule; LOO and GCV try as many points as the authors did."""
    warm_up()
    l_max = choose("jacobian", X, y, lam, metric=metric).l_max
    grid, std, rows = authors_grid(l_max, points), float(X.std()), []
    for rule in rules:
        on_grid = grid if rule in ON_GRID else None
        choice = choose(rule, X, y, lam, metric=metric, grid=on_grid)
        formula = formula_seconds(rule, choice, std)
        rows.append(rule_row(rule, choice.sigma, choice.seconds, formula))
    return rows


def rule_row(
    rule: str, sigma: float, seconds: float, formula: float | str = "", **more: float
) -> Row:
    """Bandwidth of a rule, seconds from X to sigma, and seconds of a closed form alone."""
    return {"rule": rule, "sigma": sigma, "seconds": seconds, "seconds_formula": formula, **more}


def r2_on_test(split: Split, sigma: float, lam: float, metric: str = "euclidean") -> float:
    """R2 on the test rows of a fit with these numbers."""
    est = plain_fit(split.X, split.y, sigma, lam, metric=metric)
    return float(est.score(split.X_test, split.y_test))


def plain_fit(X: Array, y: Array, sigma: float, lam: float, **options: Any) -> JacobianKernelRidge:
    """A fit with these numbers, even if the kernel matrix is singular to rounding."""
    with warnings.catch_warnings():
        # Geodesic kernels with a tiny penalty; the fallback is documented, the table has the R2.
        warnings.filterwarnings("ignore", message=".*not positive definite")
        return JacobianKernelRidge(sigma, lam, **options).fit(X, y)


@cache
def warm_up() -> None:
    """Load everything that is loaded on first use, so that no rule is charged for it."""
    X = np.array([[45.0, 1.0], [46.0, 2.0], [47.0, 4.0], [48.0, 3.0]])
    for metric in ("euclidean", "geodesic"):
        for rule in ("jacobian", "jacobian_median", "silverman", "loo", "mml_unit"):
            choose(rule, X, X[:, 0], 1e-3, metric=metric, grid=[1.0] if rule in ON_GRID else None)


def _published_objective(data: TrainingData) -> Criterion:
    """y'A^-1 y + log(det(A)), which is -inf from the bandwidth on at which det(A) underflows.

    By Oppenheim's inequality det(A) falls with sigma, because the kernel of a smaller bandwidth is
    the entrywise product of the kernel of a larger one and a third kernel. So once it is 0.0 it
    stays 0.0, and the rest of the search needs no factor. (On a sphere, the third function need not
    be a kernel.)
    """
    zero_from = np.inf

    def objective(sigma: float) -> float:
        nonlocal zero_from
        if sigma >= zero_from:
            return -np.inf
        quadratic, log_det = _parts(data, sigma)
        # numpy.linalg.det is exp(log|A|), which is 0.0 below exp(-745): the log is then -inf.
        value = quadratic + float(np.log(np.exp(log_det)))
        if value == -np.inf and data.space.distance.is_euclidean:
            zero_from = sigma
        return value

    return objective


def _parts(data: TrainingData, sigma: float) -> tuple[float, float]:
    """y'A^-1 y and log|A| for A = K + lambda I; infinite where A is not positive definite."""
    try:
        A = clustered_system(data.pairs, sigma, data.lam / data.w)
    except LinAlgError:
        return np.inf, 0.0
    return float(np.vdot(data.targets, A.solve(data.targets))), A.log_determinant()
