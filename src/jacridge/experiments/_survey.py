"""Rules on one large split, with one array of distances for all of them.

Factoring K + lambda I takes most of the time on the tables of the paper. Therefore closed forms of
several kernels share the distances, and searches share factors: each factor is computed once, and
its seconds are counted for every rule that uses it. Test rows are predicted with the dual
coefficients that are already known. Seconds are processor time, which other work on the machine
does not increase; it equals wall-clock time if BLAS has one thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.metrics import r2_score

from jacridge import TrainingData
from jacridge._compute.arrays import Array
from jacridge._geometry.space import Space, space_of
from jacridge._solvers.systems import clustered_system
from jacridge.datasets import Split

from ._rules import as_published, choose, formula_seconds, mml_published, rule_row, warm_up
from ._table import Row

# Rules that need the diagonal of A^-1.
WITH_DIAGONAL = {"loo", "gcv"}


@dataclass(frozen=True)
class Criteria:
    """Values at one bandwidth, the solution there, and the seconds of factor and inverse."""

    sigma: float
    dual_coef: Array
    loo: float
    gcv: float
    mml_unit: float
    mml: float
    factor_seconds: float
    inverse_seconds: float


def closed_forms(forms: Mapping[str, tuple[str, str]], split: Split, lam: float) -> list[Row]:
    """Rows of rule, bandwidth, seconds, test R2 for kernels of the Euclidean distance.

    `forms` has the kernel and the package's rule for each name.
    """
    warm_up()
    data, rows = as_published(split.X, split.y, lam), []
    for name, (kernel, rule) in forms.items():
        start = process_time()
        choice = choose(rule, split.X, split.y, lam, kernel=kernel)
        seconds = process_time() - start
        space = space_of(kernel, "euclidean")
        data.pairs.space = space  # all these kernels share the distances
        dual_coef = clustered_system(data.pairs, choice.sigma, lam / data.w).solve(data.targets)
        r2 = _r2(split, space, choice.sigma, dual_coef[:, 0])
        formula = formula_seconds(name, choice, float(split.X.std()))
        rows.append(rule_row(name, choice.sigma, seconds, formula, r2=r2))
    return rows


def survey(rules: Sequence[str], split: Split, lam: float, grid: Array) -> list[Row]:
    """Rows of rule, bandwidth, seconds, test R2: LOO and GCV on the grid, MML refined."""
    rows: list[Row] = []
    start = process_time()
    data = as_published(split.X, split.y, lam)
    data.pairs  # noqa: B018 (makes the distances)
    setup = process_time() - start
    inverse = not WITH_DIAGONAL.isdisjoint(rules)
    curve = [criteria(data, sigma, inverse=inverse) for sigma in grid]
    for name in rules:
        best, seconds = _best(name, data, curve)
        r2 = _r2(split, data.space, best.sigma, best.dual_coef)
        rows.append(rule_row(name, best.sigma, setup + seconds, r2=r2))
    return rows


def criteria(data: TrainingData, sigma: float, *, inverse: bool) -> Criteria:
    """The criteria at one bandwidth; those that need the diagonal of A^-1 only with `inverse`."""
    start = process_time()
    y, n = data.targets[:, 0], len(data.targets)
    A = clustered_system(data.pairs, sigma, data.lam / data.w)
    dual_coef = A.solve(y)
    quadratic, log_det = float(y @ dual_coef), A.log_determinant()
    factored = process_time()
    diagonal = A.inverse_diagonal() if inverse else np.full(n, np.nan)
    return Criteria(
        sigma=float(sigma),
        dual_coef=dual_coef,
        loo=float(np.mean((dual_coef / diagonal) ** 2)),
        gcv=float(n * (dual_coef @ dual_coef) / diagonal.sum() ** 2),
        mml_unit=quadratic + log_det,
        mml=float(n * np.log(quadratic / n) + log_det),
        factor_seconds=factored - start,
        inverse_seconds=process_time() - factored,
    )


def _best(name: str, data: TrainingData, curve: list[Criteria]) -> tuple[Criteria, float]:
    """The point that a rule chooses, and the seconds of all points that it tried."""
    if name == "mml_published":  # a search of its own
        start = process_time()
        sigma = mml_published(data)
        seconds = process_time() - start
        return criteria(data, sigma, inverse=False), seconds
    values = [getattr(at, name) for at in curve]
    best = int(np.argmin(values))
    seconds = sum(at.factor_seconds for at in curve)
    if name in WITH_DIAGONAL:
        return curve[best], seconds + sum(at.inverse_seconds for at in curve)
    seen = [curve[best]]

    def objective(log_sigma: float) -> float:
        seen.append(criteria(data, float(np.exp(log_sigma)), inverse=False))
        return float(getattr(seen[-1], name))

    start = process_time()
    ends = curve[max(best - 1, 0)].sigma, curve[min(best + 1, len(curve) - 1)].sigma
    minimize_scalar(objective, bounds=np.log(ends), method="bounded", options={"xatol": 0.03})
    return min(seen, key=lambda at: getattr(at, name)), seconds + process_time() - start


def _r2(split: Split, space: Space, sigma: float, dual_coef: Array) -> float:
    """R2 on the test rows of a fit to y minus its mean."""
    predicted = space.product(split.X_test, split.X, dual_coef, sigma)
    return float(r2_score(split.y_test, predicted + split.y.mean()))
