"""(sigma, lambda) found by solving: grids, joint, seeded and subsampled searches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError

from ._checks import Array
from ._cholesky import BlockFactor, LastFactor, factor
from ._distances import blas_for
from ._kernels import Pairs
from ._solvers import Solvable

# A row of weight two is two rows in all criteria: one of the two is left out, both are counted.
# Of a weight below one all is left out, and the row counts as one.

# Up to this many rows a factor takes less time than to look whether the kernel falls apart.
FEW_ROWS = 250

# How often the steps of a search are halved before its last parabola.
HALVINGS = 3

# A minimum is rounded to such steps of the logarithm.
ROUNDED = 2e-3

Objective = Callable[[float], float]


def loo(A: Solvable, y: Array, w: Array, lam: float) -> Array:
    """Weighted mean of the squared leave-one-out residuals, for each column of y."""
    left_out = np.minimum(1.0 / w, 1.0)
    held = _held(w - w * left_out, lam)
    E = A.solve(y) / (left_out * A.inverse_diagonal() + held)[:, None]
    return np.asarray(w @ E**2 / w.sum())


def gcv(A: Solvable, y: Array, w: Array, lam: float) -> Array:
    """Generalised cross-validation, n y'A^-2 y / (tr A^-1)^2, for each column of y."""
    n = np.maximum(w, 1.0).sum()
    residuals = (A.solve(y) ** 2 / w[:, None]).sum(axis=0)
    trace = (A.inverse_diagonal() / w).sum() + _held(n - len(w), lam)
    return np.asarray(n * residuals / trace**2)


def mml(A: Solvable, y: Array, w: Array, lam: float) -> Array:
    """Minus twice the profiled log marginal likelihood: n log s2 + log |A|, s2 = y'A^-1 y / n."""
    n = np.maximum(w, 1.0).sum()
    repeated = (n - len(w)) * np.log(lam) if n > len(w) and lam else 0.0
    with np.errstate(divide="ignore"):  # a target of zeros: minus infinity
        fit = n * np.log(np.einsum("ij,ij->j", y, A.solve(y)) / n)
    return np.asarray(fit + A.log_determinant() + repeated)


def _held(rows: Array, lam: float) -> Array:
    """Rows / lam, where rows that are repeated hold the fit without any penalty."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rows > 0, np.asarray(rows) / lam, 0.0)


CRITERIA: dict[str, Callable[[Solvable, Array, Array, float], Array]] = {
    "loo": loo,
    "gcv": gcv,
    "mml": mml,
}


def criterion_curve(
    name: str, pairs: Pairs, y: Array, lam: float, sigmas: Array, w: Array | None = None
) -> Array:
    """Values of a criterion at the given bandwidths; infinite where A cannot be factored."""
    w = np.ones(len(y)) if w is None else w
    return np.array([_criterion(name, pairs, y, lam, sigma, w) for sigma in sigmas])


def _criterion(name: str, pairs: Pairs, y: Array, lam: float, sigma: float, w: Array) -> float:
    """One value; targets of different scale count alike."""
    try:
        with blas_for(len(y)):
            values = CRITERIA[name](system(pairs, sigma, lam / w), y, w, lam)
    except LinAlgError:
        return np.inf
    if y.shape[1] > 1:
        values = _alike(values, (y**2).mean(axis=0), name)
    return float(values.mean())


def _alike(values: Array, scale: Array, name: str) -> Array:
    """Criteria in units of each target's mean square; zero for a target of zeros."""
    some = scale > 0
    return np.where(some, values / np.where(some, scale, 1.0) if name != "mml" else values, 0.0)


def system(pairs: Pairs, sigma: float, lam_over_w: Array) -> Solvable:
    """K + diag(lam_over_w), factored: by clusters of rows where the kernel is that narrow."""
    clusters = pairs.clusters(sigma) if len(lam_over_w) > FEW_ROWS else None
    if clusters is None:
        return LastFactor(factor(pairs.kernel(sigma), lam_over_w).L)
    some = [rows for rows in clusters if len(rows) > 1]
    blocks = [(rows, factor(pairs.block(rows, sigma), lam_over_w[rows])) for rows in some]
    return BlockFactor(1.0 + lam_over_w, blocks)


def minimise(objective: Objective, low: float, high: float, points: int) -> float:
    """Minimum over log sigma: the best of a grid, then downhill from it in finer steps.

    A walk alone would stay in the first valley that it meets; criteria of sigma have several.
    """
    grid = np.geomspace(low, high, points)
    i, value = _lowest(objective, grid)
    within = _within(objective, low, high)
    return downhill(within, float(grid[i]), np.log(grid[1] / grid[0]), value, 0, halvings=HALVINGS)


def _within(objective: Objective, low: float, high: float) -> Objective:
    return lambda sigma: objective(sigma) if low <= sigma <= high else np.inf


def best_of(objective: Objective, grid: Array) -> float:
    """The bandwidth of a grid with the lowest value, the first of them if there are several."""
    return float(grid[_lowest(objective, grid)[0]])


def _lowest(objective: Objective, grid: Array) -> tuple[int, float]:
    values = [objective(sigma) for sigma in grid]
    i = int(np.argmin(values))
    if not np.isfinite(values[i]):
        raise _unsolved(grid)
    return i, values[i]


def minimise_near(objective: Objective, start: float) -> float:
    """Minimum over log sigma in the valley of `start`, or of the next point that can be solved.

    The larger sigma is, the nearer is the kernel to a singular one.
    """
    grid = np.asarray(start / 1.5 ** np.arange(20), dtype=np.float64)
    found = ((float(sigma), objective(float(sigma))) for sigma in grid)
    sigma, value = next((pair for pair in found if np.isfinite(pair[1])), (start, np.inf))
    if not np.isfinite(value):
        raise _unsolved(grid)
    return downhill(objective, sigma, np.log(1.5), value, moves=10, halvings=HALVINGS)


def downhill(
    f: Objective, x: float, step: float, value: float, moves: int = 3, halvings: int = 0
) -> float:
    """Minimum of f along log x: downhill by steps, halved ones at the end, then a parabola.

    `value` is f(x). The parabola is that of the last three points, a step apart: rounding in f
    moves its vertex by little, where the last steps of Brent's method would follow it.
    """
    values = {0: value}
    finest = step / 2**halvings

    def at(i: int) -> float:
        if i not in values:
            values[i] = f(float(x * np.exp(i * finest)))
        return values[i]

    i, stride = 0, 2**halvings
    for _ in range(moves):
        lower = min((i, i - stride, i + stride), key=at)
        if lower == i:
            break
        i = lower
    while stride > 1:
        stride //= 2
        i = min((i, i - stride, i + stride), key=at)
    last = range(i - 1, i + 2)
    grid = x * np.exp(finest * np.array(last))
    return vertex(grid, np.array([at(j) for j in last]), 1)


class Spectral(Protocol):
    """What one eigendecomposition gives for many lambdas: arrays of shape (lambdas, targets)."""

    def loo(self, lams: Array) -> Array: ...
    def gcv(self, lams: Array) -> Array: ...
    def mml(self, lams: Array) -> Array: ...


@dataclass(frozen=True)
class Surface:
    """A criterion over sigma and lambda: values of shape (sigmas, lambdas, targets)."""

    sigmas: Array
    lams: Array
    values: Array

    def curve(self) -> Array:
        """The mean over targets at the best lambda of each, for every sigma."""
        return np.asarray(self.values.min(axis=1).mean(axis=1))

    def best(self) -> tuple[float, Array]:
        """One sigma for all targets, one lambda for each, between the grid's points."""
        curve = self.curve()
        i = int(np.argmin(curve))
        check_solved(self.sigmas, curve)
        return vertex(self.sigmas, curve, i), best_lambdas(self.lams, self.values[i])


def check_solved(sigmas: Array, curve: Array) -> None:
    """Refuse a search in which no system could be solved."""
    if not np.isfinite(curve).any():
        raise _unsolved(sigmas)


def _unsolved(sigmas: Array) -> LinAlgError:
    return LinAlgError(
        f"K + lambda I could not be solved with for any bandwidth from {sigmas.min():.3g} to "
        f"{sigmas.max():.3g}. Give a larger `alpha`."
    )


def best_lambdas(lams: Array, values: Array) -> Array:
    """Lambda at the minimum of each column of values, between the grid's points."""
    lowest = values.argmin(axis=0)
    return np.array([vertex(lams, v, i) for v, i in zip(values.T, lowest, strict=True)])


def vertex(grid: Array, values: Array, i: int) -> float:
    """Minimum of the parabola in log(grid) through point i and its neighbours.

    It comes in steps of 0.2 %, so that rounding in the values, which goes with blocks of rows,
    threads and machines, does not move it. At an end of the grid, or where a neighbour is not
    finite, it is point i itself.
    """
    if not 0 < i < len(grid) - 1 or not np.isfinite(values[i - 1 : i + 2]).all():
        return float(grid[i])
    left, here, right = np.log(grid[i - 1 : i + 2])
    rise_left = (values[i - 1] - values[i]) / (here - left)
    rise_right = (values[i + 1] - values[i]) / (right - here)
    if rise_left + rise_right <= 0:
        return float(grid[i])
    # Slopes at the two middles are -rise_left and rise_right; the slope is linear between them.
    share = rise_left / (rise_left + rise_right)
    offset = (left - here) / 2 + share * (right - left) / 2
    return float(np.exp(here + np.round(offset / ROUNDED) * ROUNDED))


def surface(
    spectra: Callable[[float], Spectral], scale: Array, sigmas: Array, lams: Array, name: str
) -> Surface:
    """A criterion on a grid, from one eigendecomposition for each sigma.

    Targets of different scale count alike: `loo` and `gcv` are divided by the mean square of
    each target.
    """
    with np.errstate(divide="ignore", invalid="ignore"):  # a penalty of zero may divide by zero
        values = [_alike(getattr(spectra(sigma), name)(lams), scale, name) for sigma in sigmas]
    return Surface(sigmas, lams, np.where(np.isfinite(values), values, np.inf))
