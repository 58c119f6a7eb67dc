"""All criteria of one large split from one factor at each bandwidth.

The rules `loo`, `gcv` and `mml` of the package factor K + lambda I for each rule and bandwidth.
On the tables of the paper that is most of the time, so here they share factors: a factor is made
once, and its seconds are counted for every rule that looks at it. The test rows are predicted
with the dual coefficients that the search has found.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from sklearn.metrics import r2_score

from jacridge import TrainingData
from jacridge._solvers.systems import clustered_system
from jacridge.datasets import Split

from ._rules import as_published
from ._table import Row

Array = npt.NDArray[np.float64]

RULES = ("loo", "gcv", "mml_unit", "mml")


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


def survey(split: Split, lam: float, grid: Array) -> list[Row]:
    """Rows of rule, bandwidth, seconds, test R2: LOO and GCV on the grid, MML refined from it."""
    rows: list[Row] = []
    start = perf_counter()
    data = as_published(split.X, split.y, lam)
    data.pairs  # noqa: B018 (makes the distances)
    setup = perf_counter() - start
    curve = [criteria(data, sigma, inverse=True) for sigma in grid]
    for name in RULES:
        best, seconds = _best(name, data, curve)
        found = {"sigma": best.sigma, "seconds": setup + seconds}
        rows.append({"rule": name, **found, "r2": _r2(split, data, best)})
    return rows


def criteria(data: TrainingData, sigma: float, *, inverse: bool) -> Criteria:
    """The criteria at one bandwidth; those that need the diagonal of A^-1 only if asked for."""
    start = perf_counter()
    y, n = data.targets[:, 0], len(data.targets)
    A = clustered_system(data.pairs, sigma, data.lam / data.w)
    dual_coef = A.solve(y)
    quadratic, log_det = float(y @ dual_coef), A.log_determinant()
    factored = perf_counter()
    diagonal = A.inverse_diagonal() if inverse else np.full(n, np.nan)
    return Criteria(
        sigma=float(sigma),
        dual_coef=dual_coef,
        loo=float(np.mean((dual_coef / diagonal) ** 2)),
        gcv=float(n * (dual_coef @ dual_coef) / diagonal.sum() ** 2),
        mml_unit=quadratic + log_det,
        mml=float(n * np.log(quadratic / n) + log_det),
        factor_seconds=factored - start,
        inverse_seconds=perf_counter() - factored,
    )


def _best(name: str, data: TrainingData, curve: list[Criteria]) -> tuple[Criteria, float]:
    """The point that a rule chooses, and the seconds of all that it looked at."""
    values = [getattr(at, name) for at in curve]
    best = int(np.argmin(values))
    seconds = sum(at.factor_seconds for at in curve)
    if name in ("loo", "gcv"):
        return curve[best], seconds + sum(at.inverse_seconds for at in curve)
    seen = [curve[best]]

    def objective(log_sigma: float) -> float:
        seen.append(criteria(data, float(np.exp(log_sigma)), inverse=False))
        return float(getattr(seen[-1], name))

    start = perf_counter()
    ends = curve[max(best - 1, 0)].sigma, curve[min(best + 1, len(curve) - 1)].sigma
    minimize_scalar(objective, bounds=np.log(ends), method="bounded", options={"xatol": 0.03})
    return min(seen, key=lambda at: getattr(at, name)), seconds + perf_counter() - start


def _r2(split: Split, data: TrainingData, at: Criteria) -> float:
    """R2 on the test rows of the fit at one bandwidth."""
    predicted = data.space.product(split.X_test, split.X, at.dual_coef, at.sigma)
    return float(r2_score(split.y_test, predicted + split.y.mean()))
