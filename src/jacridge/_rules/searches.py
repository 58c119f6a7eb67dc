"""Minima over the bandwidth and the penalty: grids, walks downhill, surfaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError

from .._compute.arrays import Array

# How often the steps of a search are halved before its last parabola.
HALVINGS = 3
# How often a surface may be extended if its minimum is at an end.
AROUND = 6

Objective = Callable[[float], float]


def minimise(objective: Objective, low: float, high: float, points: int) -> float:
    """Minimum over log sigma: the best of a grid, then downhill from it in finer steps.

    A walk alone would stop in the nearest valley, and criteria have several valleys over sigma.
    """
    grid = np.geomspace(low, high, points)
    i, value = _lowest(objective, grid)

    def within(sigma: float) -> float:
        return objective(sigma) if low <= sigma <= high else np.inf

    return downhill(within, float(grid[i]), np.log(grid[1] / grid[0]), value, 0, halvings=HALVINGS)


def best_of(objective: Objective, grid: Array) -> float:
    """The bandwidth of a grid with the lowest value, the first of them if there are several."""
    return float(grid[_lowest(objective, grid)[0]])


def _lowest(objective: Objective, grid: Array) -> tuple[int, float]:
    values = [objective(sigma) for sigma in grid]
    i = int(np.argmin(values))
    if not np.isfinite(values[i]):
        raise unsolved(grid)
    return i, values[i]


def minimise_near(objective: Objective, start: float) -> float:
    """Minimum over log sigma in the valley of `start`, or of the next point that can be solved.

    The larger sigma is, the closer the kernel matrix is to singular.
    """
    grid = np.asarray(start / 1.5 ** np.arange(20), dtype=np.float64)
    found = ((float(sigma), objective(float(sigma))) for sigma in grid)
    sigma, value = next((pair for pair in found if np.isfinite(pair[1])), (start, np.inf))
    if not np.isfinite(value):
        raise unsolved(grid)
    return downhill(objective, sigma, np.log(1.5), value, moves=10, halvings=HALVINGS)


def downhill(
    f: Objective, x: float, step: float, value: float, moves: int = 3, halvings: int = 0
) -> float:
    """Minimum of f along log x: downhill by steps, halved ones at the end, then a parabola.

    `value` is f(x). The parabola goes through the last three points, which are a step apart:
    rounding in f hardly moves its vertex, whereas the last steps of Brent's method would follow it.
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


@dataclass(frozen=True)
class Surface:
    """A criterion over sigma and lambda: values of shape (sigmas, lambdas, targets)."""

    sigmas: Array
    lams: Array
    values: Array

    def curve(self) -> Array:
        """The mean over targets at the best lambda of each, for every sigma."""
        return self.values.min(axis=1).mean(axis=1)

    def best(self) -> tuple[float, Array]:
        """One sigma for all targets, one lambda for each, between the grid's points."""
        curve = self.curve()
        i = int(np.argmin(curve))
        check_solved(self.sigmas, curve)
        return vertex(self.sigmas, curve, i), best_lambdas(self.lams, self.values[i])


def check_solved(sigmas: Array, curve: Array) -> None:
    """Raise an error if no system of a search could be solved."""
    if not np.isfinite(curve).any():
        raise unsolved(sigmas)


def unsolved(sigmas: Array) -> LinAlgError:
    """The error for bandwidths none of which gives a system that can be solved."""
    return LinAlgError(
        f"K + lambda I is singular to rounding for every bandwidth from {sigmas.min():.3g} to "
        f"{sigmas.max():.3g}. Give a larger `alpha`."
    )


def best_lambdas(lams: Array, values: Array) -> Array:
    """Lambda at the minimum of each column of values, between the grid's points."""
    lowest = values.argmin(axis=0)
    return np.array([vertex(lams, v, i) for v, i in zip(values.T, lowest, strict=True)])


def vertex(grid: Array, values: Array, i: int) -> float:
    """Minimum of the parabola in log(grid) through point i and its neighbours.

    At an end of the grid, or if a neighbour is not finite, point i itself.
    """
    if not 0 < i < len(grid) - 1 or not np.isfinite(values[i - 1 : i + 2]).all():
        return float(grid[i])
    left, here, right = np.log(grid[i - 1 : i + 2])
    rise_left = (values[i - 1] - values[i]) / (here - left)
    rise_right = (values[i + 1] - values[i]) / (right - here)
    if rise_left + rise_right <= 0:
        return float(grid[i])
    # Slopes at the two midpoints are -rise_left and rise_right; the slope is linear in between.
    share = rise_left / (rise_left + rise_right)
    offset = (left - here) / 2 + share * (right - left) / 2
    return float(np.exp(here + offset))


def surface_around(
    sigma: float,
    step: float,
    surface_at: Callable[[Array], Surface],
) -> Surface:
    """A criterion around the minimum nearest to sigma, at bandwidths that differ by a factor."""
    return followed(surface_at(sigma * step ** np.arange(-1.0, 2.0)), surface_at)


def followed(found: Surface, surface_at: Callable[[Array], Surface]) -> Surface:
    """The surface with bandwidths beyond an end at which its minimum lies."""
    step = found.sigmas[1] / found.sigmas[0]
    for _ in range(AROUND):
        i, last = int(np.argmin(found.curve())), len(found.sigmas) - 1
        if 0 < i < last:
            break
        further = found.sigmas[i] * (step if i else 1 / step)
        more = surface_at(np.array([further]))
        both = (found, more) if i else (more, found)
        sigmas = np.concatenate([part.sigmas for part in both])
        found = Surface(sigmas, found.lams, np.concatenate([part.values for part in both]))
    return found
