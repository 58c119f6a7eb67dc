"""The rules that the experiments compare: the package's own, and what the authors ran."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError
from scipy.optimize import minimize, minimize_scalar

from jacridge import Choice, JacobianKernelRidge, select_bandwidth, theory
from jacridge._search import minimise, system
from jacridge.datasets import Split

from ._table import Row

Array = npt.NDArray[np.float64]
Criterion = Callable[[float], float]

# How each rule is called in tables and figures.
LABELS = {
    "jacobian": "Jacobian",
    "jacobian_median": "Jacobian, median",
    "jacobian_trimmed": "Jacobian, trimmed",
    "silverman": "Silverman",
    "loo": "LOO (paper: GCV)",
    "gcv": "GCV proper",
    "mml_published": "MML as published",
    "mml_unit": "MML, unit variance",
    "mml": "MML, profiled",
    "jacobian_loo": "Seeded LOO",
    "jacobian_mml_published": "Seeded MML as published",
}


def authors_grid(l_max: float, points: int) -> Array:
    """The bandwidths among which the authors' "GCV" chooses."""
    return np.logspace(-3, np.log10(l_max), points)


def mml_published(problem: Any) -> float:
    """The authors' marginal likelihood: det(A) underflows, and the search runs to l_max.

    Minimises y'A^-1 y + log(det(A)) over sigma, not log sigma, from 0.001 to l_max.
    """
    with np.errstate(all="ignore"):
        found = minimize_scalar(
            _published_objective(problem), bounds=(1e-3, problem.l_max), method="bounded"
        )
    return float(found.x)


def jacobian_mml_published(problem: Any) -> float:
    """The same, by Nelder and Mead's method from the Jacobian bandwidth."""
    start = theory.sigma_0(problem.n, problem.even_spacing, problem.lam)
    objective = _published_objective(problem)
    with np.errstate(all="ignore"):
        found = minimize(lambda s: objective(float(s[0])), [start], method="Nelder-Mead")
    return float(found.x[0])


def mml_unit(problem: Any) -> float:
    """The marginal likelihood with unit signal variance, with log|A| done right."""
    return minimise(lambda s: sum(_parts(problem, s)), 1e-3 * problem.l_max, problem.l_max, 12)


OURS: dict[str, Callable[[Any], float]] = {
    "mml_published": mml_published,
    "jacobian_mml_published": jacobian_mml_published,
    "mml_unit": mml_unit,
}


def choose(
    rule: str,
    X: Array,
    y: Array,
    lam: float,
    *,
    metric: str = "euclidean",
    grid: npt.ArrayLike | None = None,
) -> Choice:
    """Bandwidth by one of the package's rules or one of the authors'; `auto` ignores lam."""
    alpha = "auto" if rule == "auto" else lam
    options: dict[str, Any] = {"alpha": alpha, "metric": metric, "grid": grid, "random_state": 0}
    with warnings.catch_warnings():
        # Equal rows are a known trait of these data (wood fibres), told on the page.
        warnings.filterwarnings("ignore", message=".*rows are equal")
        return select_bandwidth(X, y, OURS.get(rule, rule), **options)


def formula_seconds(rule: str, choice: Choice, std: float) -> float | str:
    """Time of a closed form alone, from the numbers it takes; empty for a search."""
    n, p, lam = choice.n, choice.p, choice.alpha
    start = perf_counter()
    if rule == "jacobian":
        theory.sigma_0(n, theory.even_spacing(n, p, choice.l_max), lam)
    elif rule == "jacobian_median":
        theory.sigma_0(n, choice.spacing, lam)
    elif rule == "silverman":
        (4 / (n * (p + 2))) ** (1 / (p + 4)) * std
    else:
        return ""
    return perf_counter() - start


def measured(
    rules: Sequence[str], split: Split, lam: float, *, metric: str, points: int
) -> list[Row]:
    """Bandwidth, times and test R2 of each rule on one split."""
    rows = bandwidths(rules, split.X, split.y, lam, metric=metric, points=points)
    # Two rules that look at the same grid often choose alike.
    scores = {s: r2_on_test(split, s, lam, metric) for s in {row["sigma"] for row in rows}}
    return [{**row, "r2": scores[row["sigma"]]} for row in rows]


def bandwidths(
    rules: Sequence[str], X: Array, y: Array, lam: float, *, metric: str, points: int
) -> list[Row]:
    """Bandwidth and times of each rule; LOO and GCV look at as many points as the authors."""
    _warm_up()
    l_max = choose("jacobian", X, y, lam, metric=metric).l_max
    grid, std, rows = authors_grid(l_max, points), float(X.std()), []
    for rule in rules:
        on_grid = grid if rule in ("loo", "gcv") else None
        choice = choose(rule, X, y, lam, metric=metric, grid=on_grid)
        seconds = {
            "seconds": choice.seconds,
            "seconds_formula": formula_seconds(rule, choice, std),
        }
        rows.append({"rule": rule, "sigma": choice.sigma, **seconds})
    return rows


def r2_on_test(split: Split, sigma: float, lam: float, metric: str = "euclidean") -> float:
    """R2 on the test rows of a fit with these numbers."""
    with warnings.catch_warnings():
        # Geodesic kernels with a tiny penalty; the fallback is documented, the table has the R2.
        warnings.filterwarnings("ignore", message=".*not positive definite")
        est = JacobianKernelRidge(sigma, lam, metric=metric).fit(split.X, split.y)
    return float(est.score(split.X_test, split.y_test))


@cache
def _warm_up() -> None:
    """Load what is loaded at first use, so that no rule pays for it."""
    X = np.array([[45.0, 1.0], [46.0, 2.0], [47.0, 4.0], [48.0, 3.0]])
    for metric in ("euclidean", "geodesic"):
        for rule in ("jacobian", "jacobian_median", "silverman", "loo", "mml_unit"):
            choose(rule, X, X[:, 0], 1e-3, metric=metric, grid=[1.0] if rule == "loo" else None)


def _published_objective(problem: Any) -> Criterion:
    """y'A^-1 y + log(det(A)), which is -inf from the bandwidth on at which det(A) underflows.

    By Oppenheim's inequality det(A) falls with sigma, as the kernel of a smaller bandwidth is that
    of a larger one times, entry by entry, a third kernel. So once it is 0.0 it stays so, and the
    rest of the search needs no factor. (On a sphere a third kernel need not be a kernel.)
    """
    zero_from = np.inf

    def objective(sigma: float) -> float:
        nonlocal zero_from
        if sigma >= zero_from:
            return -np.inf
        quadratic, log_det = _parts(problem, sigma)
        # numpy.linalg.det is exp(log|A|), which is 0.0 below exp(-745): the log is then -inf.
        value = quadratic + float(np.log(np.exp(log_det)))
        if value == -np.inf and problem.metric == "euclidean":
            zero_from = sigma
        return value

    return objective


def _parts(problem: Any, sigma: float) -> tuple[float, float]:
    """y'A^-1 y and log|A| for A = K + lambda I; infinite where A is not positive definite."""
    try:
        A = system(problem.pairs, sigma, problem.lam / problem.w)
    except LinAlgError:
        return np.inf, 0.0
    return float(np.vdot(problem.y, A.solve(problem.y))), A.log_determinant()
