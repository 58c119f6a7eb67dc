"""Joint search over sigma and lambda: a grid on few rows, then descent on more rows.

The grid shows the local minima of the criterion. The descent starts from the best of them, or from
the minimum that the choice of a metric has found, and may leave the grid, so that it can follow a
minimum beyond the edge. Each point of the descent costs one Cholesky factorisation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .._compute.arrays import TINY, Array
from .._compute.threads import in_threads, one_blas_thread
from .._solvers.cholesky import ROUGH_PENALTY
from .criteria import GCV, LEFT_OUT, Criterion
from .searches import Surface, best_lambdas, check_solved, downhill, followed, unsolved, vertex

if TYPE_CHECKING:
    from .._geometry.space import Pairs
    from .._solvers.spectrum import Spectral
    from .training import TrainingData

FIRST_SIGMAS = 9
# Rows for the grid, where one eigendecomposition per bandwidth serves all penalties.
FIRST_ROWS = 400
# For each walk: rows, largest number of points, and its step as a multiple of SIGMA_STEP and
# LAM_STEP.
WALKS = ((1000, 14, 1.0), (3000, 3, 0.7))
# Grid points that the first walk compares.
STARTS = 4
# Factor between the bandwidths of the grid around a start, for several targets, and exponents.
START_STEP, START_PLACES = 2.5, np.array([-1.0, 0.0, 1.0])
# Number of smaller bandwidths to try if the system of a start is singular to rounding; the last is
# a millionth of the start.
SMALLER = 15
# Steps of a walk, on a log scale.
SIGMA_STEP, LAM_STEP = np.log(2) / 2, np.log(10) / 2
# Largest penalty of a row in single precision, where numbers overflow above 3e38.
SINGLE_MOST = 1e15
# Step of the search over bandwidths for landmarks.
LANDMARK_STEP = np.log(2.5)


def auto(data: TrainingData, criterion: Criterion) -> tuple[float, float | Array]:
    """Bandwidth and penalty (one for each target) at the minimum of a criterion."""
    order = data.rng.permutation(len(data.w))
    several = len(data.scale) > 1
    part = data.part(order[: WALKS[0][0] if several else FIRST_ROWS], for_comparison=True)
    if several:
        sigma, lams = _on_a_grid(part, criterion).best()
    else:
        starts = _starts(part, criterion)
        # Two points at a time, in threads of their own.
        lanes = [_Lane(part, criterion, i) for i in range(2)]
        for rows, most, step in WALKS:
            if len(part.w) < min(rows, len(order)):
                fewer, part = part, data.part(order[:rows], for_comparison=True)
                carried = part.carried_from(fewer)
                starts = [(sigma * carried, lam) for sigma, lam in starts]
                lanes = [replace(lane, part=part) for lane in lanes]
            starts = [_walk(lanes, starts, most, step)]
        sigma, lams = starts[0][0], np.array([starts[0][1]])
    sigma *= data.carried_from(part)
    if data.trials is not None:
        sigma = _for_landmarks(data, data.trials, sigma, criterion)
    if not data.penalty.criterion:
        return sigma, data.lam
    if data.solver is not None:
        values = criterion.of_spectrum(data.solver.comparing(sigma), data.penalty.lams)
        lams = best_lambdas(data.penalty.lams, criterion.in_units_of(data.scale, values))
    return sigma, lams


def _for_landmarks(
    data: TrainingData, trials: Callable[[float], Spectral], sigma: float, criterion: Criterion
) -> float:
    """The bandwidth for a solver with landmarks, from the bandwidth for all rows.

    Landmarks regularise, as a penalty does. If the penalty is so small that an exact fit needs a
    wide kernel to avoid following the noise, landmarks allow a narrower one; few landmarks far
    apart need a wider one. For a given penalty, generalised cross-validation is compared: with a
    small penalty, the leave-one-out errors of a few rows would dominate all others.
    """
    if not data.penalty.criterion:
        criterion = GCV

    def objective(sigma: float) -> float:
        found = criterion.surface(trials, data.scale, np.array([sigma]), data.penalty.tried())
        return float(found.curve()[0])

    return downhill(objective, sigma, LANDMARK_STEP, objective(sigma), moves=5)


def _on_a_grid(part: TrainingData, criterion: Criterion) -> Surface:
    """All penalties at bandwidths around a start, or from half the neighbour distance to l_max.

    For several targets no walk follows, so that the grid goes on where its minimum is at an end.
    """
    start = part.started_at
    if start is not None:
        sigmas = start[0] * START_STEP**START_PLACES
    else:
        high = max(part.even_spacing, part.l_max)
        sigmas = np.geomspace(part.search_spacing / 2, high, FIRST_SIGMAS)
    several = len(part.scale) > 1
    lams = part.penalty.beyond if several and part.penalty.criterion else part.penalty.tried()

    def surface(sigmas: Array) -> Surface:
        return criterion.surface(part.spectrum, part.scale, sigmas, lams, each=part.each)

    return followed(surface(sigmas), surface) if several else surface(sigmas)


def _starts(part: TrainingData, criterion: Criterion) -> list[tuple[float, float]]:
    """Points from which to walk: the one found before, or grid points that more rows may prefer.

    Each of these grid points has the best penalty of its bandwidth.
    """
    start = part.started_at
    if start is not None:
        return [start]
    found = _on_a_grid(part, criterion)
    curve = found.curve()
    check_solved(found.sigmas, curve)
    kept = np.flatnonzero(_not_clearly_worse(curve, criterion, part.n))
    best = sorted(kept, key=lambda i: curve[i])[:STARTS]
    return [
        (float(found.sigmas[i]), float(best_lambdas(found.lams, found.values[i])[0])) for i in best
    ]


def _not_clearly_worse(curve: Array, criterion: Criterion, n: float) -> Array:
    """Which bandwidths more rows may prefer: the best, its neighbours, and others about as good.

    A mean square over n rows has a relative error of about sqrt(2 / n); the difference of two has
    twice the variance.
    """
    best = int(np.argmin(curve))
    if not criterion.has_unit:  # n times the logarithm of a mean square
        above = (curve - curve[best]) / n
    else:
        above = np.log(np.maximum(curve, TINY) / max(curve[best], TINY))
    return (above <= np.sqrt(4 / n)) | (np.abs(np.arange(len(curve)) - best) <= 1)


def _walk(
    lanes: Sequence[_Lane], starts: list[tuple[float, float]], most: int, step: float
) -> tuple[float, float]:
    """Bandwidth and penalty downhill from the best start, by at most `most` more points.

    A step changes one of the two; a step that helped is tried again first. The result is the
    vertex of the parabolas through the best point and its neighbours, as far as these were tried.
    """
    part = lanes[0].part
    values = _values_at(lanes, starts) if len(starts) > 1 else []
    sigma, lam = starts[int(np.argmin(values)) if values else 0]
    seen = {(0, 0): min(values)} if values else {}

    def look_at(places: list[tuple[int, int]]) -> None:
        """Evaluate the first new places, as many as there are lanes."""
        new = [place for place in places if place not in seen][: len(lanes)]
        new = new[: most + 1 - len(seen)]
        points = [_point(part, sigma, lam, i * step, j * step) for i, j in new]
        seen.update(zip(new, _values_at(lanes, points), strict=True))

    # More rows favour a smaller bandwidth, so it is tried first.
    moves = [(-1, 0), (1, 0)]
    moves += [(0, -1), (0, 1)] if part.penalty.criterion else []
    place, failed = (0, 0), 0
    look_at([place, *moves])
    if not np.isfinite(seen[place]):
        return _walk(lanes, [_solvable(lanes[0], sigma, lam)], most, step)
    while failed < len(moves):
        next_places = [(place[0] + i, place[1] + j) for i, j in moves[failed:]]
        if next_places[0] not in seen:
            look_at(next_places)
        if seen.get(next_places[0], np.inf) < seen[place]:
            place = next_places[0]
            moves.insert(0, moves.pop(failed))
            failed = 0
        else:
            failed += 1
    along, across = (step * _vertex(seen, place, move) for move in ((1, 0), (0, 1)))
    return _point(part, sigma, lam, along, across)


def _solvable(lane: _Lane, sigma: float, lam: float) -> tuple[float, float]:
    """The first of ever smaller bandwidths at which the system can be solved.

    The larger sigma is, the closer the kernel matrix is to singular.
    """
    sigmas = np.asarray(sigma / START_STEP ** np.arange(1, SMALLER + 1), dtype=np.float64)
    for smaller in sigmas.tolist():
        if np.isfinite(_values_at([lane], [(smaller, lam)])[0]):
            return smaller, lam
    raise unsolved(sigmas)


def _values_at(lanes: Sequence[_Lane], points: Sequence[tuple[float, float]]) -> list[float]:
    """Values of a criterion at some points, computed in parallel by the lanes."""
    found: list[float] = []
    with one_blas_thread():
        for i in range(0, len(points), len(lanes)):
            taken = zip(lanes, points[i:], strict=False)
            ready = [(lane, lane.pairs_for(at[1]), at) for lane, at in taken]
            found += in_threads(lambda each: each[0].value(each[1], *each[2]), ready)
    return found


def _point(part: TrainingData, sigma: float, lam: float, i: float, j: float) -> tuple[float, float]:
    """The point i steps of the bandwidth and j steps of the penalty away."""
    moved = np.clip(lam * np.exp(j * LAM_STEP), *part.penalty.ends)
    return float(sigma * np.exp(i * SIGMA_STEP)), float(moved if j else lam)


@dataclass
class _Lane:
    """Computes values of a criterion one after the other, in parallel with other lanes.

    Uses single precision until a factorisation fails in it, as it would with more rows, too.
    """

    part: TrainingData
    criterion: Criterion
    number: int
    is_rough: bool = True

    @cached_property
    def _pairs(self) -> Pairs:
        return self.part.pairs.twin() if self.number else self.part.pairs

    @cached_property
    def _rough_pairs(self) -> Pairs:
        return self.part.rough_pairs.twin() if self.number else self.part.rough_pairs

    def pairs_for(self, lam: float) -> Pairs:
        """The array to use for a penalty, made before threads need it.

        Kernels with kinks mostly have large enough pivots at any penalty.
        """
        noise, is_smooth = lam / self.part.w, self.part.space.kernel.is_smooth
        fits = noise.max() <= SINGLE_MOST and (noise.min() >= ROUGH_PENALTY or not is_smooth)
        return self._rough_pairs if self.is_rough and fits else self._pairs

    def value(self, pairs: Pairs, sigma: float, lam: float) -> float:
        """The criterion at one point, in the precision of `pairs` or, if that fails, in double."""
        part = self.part
        options: Any = {"centred": part.has_intercept, "counts": part.counts, "scale": part.scale}
        options |= {"last": LEFT_OUT, "replicates": part.compared}
        place: Any = (sigma, lam, part.targets, part.w)
        found = self.criterion.at(pairs, *place, **options)
        if np.isfinite(found) or pairs.M.dtype == np.float64:
            return found
        self.is_rough = False
        return self.criterion.at(self._pairs, *place, **options)


def _vertex(
    seen: dict[tuple[int, int], float], place: tuple[int, int], move: tuple[int, int]
) -> float:
    """Minimum of the parabola through a place and its neighbours along one move."""
    points = [(place[0] + s * move[0], place[1] + s * move[1]) for s in (-1, 0, 1)]
    values = np.array([seen.get(point, np.inf) for point in points])
    offset = np.log(vertex(np.exp([-1.0, 0.0, 1.0]), values, 1))
    return float(place[0] * move[0] + place[1] * move[1] + offset)
