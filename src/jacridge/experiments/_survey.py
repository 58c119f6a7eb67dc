"""All criteria of one large split from one Cholesky factor at each bandwidth.

The rules `loo`, `gcv` and `mml` of the package factor K + lambda I for each rule and bandwidth.
On the tables of the paper that is most of the time, so here they share factors: a factor is made
once, and its seconds are counted for every rule that looks at it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dtrtri
from scipy.optimize import minimize_scalar

from jacridge import select_bandwidth

from ._table import Row

Array = npt.NDArray[np.float64]

RULES = ("loo", "gcv", "mml_unit", "mml")


@dataclass(frozen=True)
class Criteria:
    """Values at one bandwidth, and the seconds of factor and inverse."""

    mml_unit: float
    mml: float
    factor_seconds: float
    loo: float = np.nan
    gcv: float = np.nan
    inverse_seconds: float = 0.0


def survey(X: Array, y: Array, lam: float, grid: Array) -> list[Row]:
    """Rows of rule, bandwidth and seconds: LOO and GCV on the grid, MML refined from it."""
    rows: list[Row] = []
    start = perf_counter()

    def rule(problem: Any) -> float:
        problem.pairs  # noqa: B018 (makes the distances)
        setup = perf_counter() - start
        curve = [criteria(problem, sigma, inverse=True) for sigma in grid]
        for name in RULES:
            sigma, seconds = _best(name, problem, grid, curve)
            rows.append({"rule": name, "sigma": sigma, "seconds": setup + seconds})
        return float(rows[0]["sigma"])

    select_bandwidth(X, y, rule, alpha=lam)
    return rows


def criteria(problem: Any, sigma: float, *, inverse: bool) -> Criteria:
    """The criteria at one bandwidth; those that need the diagonal of A^-1 only if asked for."""
    start, inverse_seconds, log_det = perf_counter(), 0.0, 0.0
    y, n = problem.y[:, 0], len(problem.y)
    dual_coef, diagonal = np.empty(n), np.empty(n)
    for rows, A in _blocks(problem.pairs, sigma):
        A.flat[:: len(A) + 1] += problem.lam
        # The kernel is in the lower triangle, which is the upper one of A.T: factored in place.
        U, _ = cho_factor(A.T, lower=False, overwrite_a=True, check_finite=False)
        dual_coef[rows] = cho_solve((U, False), y[rows], check_finite=False)
        log_det += float(2 * np.log(np.diagonal(U)).sum())
        if inverse:
            factored = perf_counter()
            diagonal[rows] = _inverse_diagonal(U)
            inverse_seconds += perf_counter() - factored
    quadratic = float(y @ dual_coef)
    likelihoods = quadratic + log_det, n * np.log(quadratic / n) + log_det
    seconds = perf_counter() - start - inverse_seconds
    if not inverse:
        return Criteria(*likelihoods, seconds)
    loo = float(np.mean((dual_coef / diagonal) ** 2))
    gcv = float(n * (dual_coef @ dual_coef) / diagonal.sum() ** 2)
    return Criteria(*likelihoods, seconds, loo, gcv, inverse_seconds)


def _blocks(pairs: Any, sigma: float) -> Iterator[tuple[Any, Array]]:
    """Rows and their kernel in the lower triangle; narrow kernels fall apart into many of them."""
    groups = pairs.clusters(sigma)
    if groups is None:
        yield slice(None), pairs.kernel(sigma)
    else:
        yield from ((rows, pairs.block(rows, sigma)) for rows in groups)


def _inverse_diagonal(U: Array) -> Array:
    """Diagonal of (U'U)^-1: row sums of squares of U^-1, which overwrites U."""
    T, _ = dtrtri(U, lower=0, overwrite_c=1)
    n, size = len(T), 256
    diagonal = np.empty(n)
    for start in range(0, n, size):
        rows = T[start : start + size, start:]
        corner = np.triu(rows[:, : len(rows)])
        rest = rows[:, len(rows) :]
        diagonal[start : start + size] = (corner**2).sum(axis=1) + (rest**2).sum(axis=1)
    return diagonal


def _best(name: str, problem: Any, grid: Array, curve: list[Criteria]) -> tuple[float, float]:
    """The bandwidth of a rule, and the seconds of all that it looked at."""
    values = [getattr(at, name) for at in curve]
    best = int(np.argmin(values))
    seconds = sum(at.factor_seconds for at in curve)
    if name in ("loo", "gcv"):
        return float(grid[best]), seconds + sum(at.inverse_seconds for at in curve)

    def objective(log_sigma: float) -> float:
        return float(getattr(criteria(problem, float(np.exp(log_sigma)), inverse=False), name))

    start = perf_counter()
    around = np.log([grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]])
    found = minimize_scalar(objective, bounds=around, method="bounded", options={"xatol": 0.03})
    sigma = np.exp(found.x) if found.fun < values[best] else grid[best]
    return float(sigma), seconds + perf_counter() - start
