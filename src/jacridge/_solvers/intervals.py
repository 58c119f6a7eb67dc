r"""Jackknife+ intervals in units of a scale that depends on where a row lies.

With the residual r_i of row i for the model without it, and a scale s, the interval at x goes from
a low quantile of mu_-i(x) - s(x) |r_i| / s_i to a high one of mu_-i(x) + s(x) |r_i| / s_i, where
mu_-i is the model without row i and s_i the scale that the other rows give it. The scale is

    s(x)^2 = g(x)^2 + V h(x)^2

- g(x), the level of the noise, is the exponential of a kernel ridge on log |r_i| (see `noise`);
- h(x), the least half width, is zero inside the data. It is the largest of

      sqrt(b(x)) range / 2,    sqrt(b(x)) z S,    a(x) range / 2,

  where range is the range of y, S the standard deviation of the function far from all rows, and z
  the normal quantile. b(x), from 0 to 1, is the share of the prior variance that the rows leave
  unexplained at x, in excess of the share at 99 % of the rows themselves. a(x) is the distance to
  the nearest row, in excess of the 99 % quantile of nearest-neighbour distances, in units of the
  largest distance, before any feature is compressed, at most 1;
- V makes the half width at least h(x).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError
from scipy.special import ndtri

from .._compute.arrays import EPS, Array, Indices, row_blocks, rows_per_block
from .._compute.threads import blas_for, for_blocks, one_blas_thread
from .cholesky import Factor, factor
from .noise import NOISE_WIDTH, Marks, NoiseLevel, closeness, marks_of, noise_level, rough
from .spectrum import eigh
from .systems import Eigen, System

if TYPE_CHECKING:
    from .._geometry.space import Space
    from .model import Jackknife

# Share of the training rows that are inside the data by definition.
INSIDE = 0.99

# Smallest penalty of the system that determines how much of the variance is unexplained.
LEAST_PENALTY = 1e-10

# Largest penalty of that system in single precision: the share at a row of the sample is the
# difference of two numbers of this size.
MOST_PENALTY = 10.0

# A leave-one-out model is evaluated if a move of this many root mean squares could make its
# residual the quantile. By Chebyshev's inequality, at most a sixteenth of the moves are larger.
FOLLOWED = 4.0

# Number of values per octave to which the size of the moves at a new row is rounded up.
LEVELS = 4


@dataclass(frozen=True)
class Outside:
    """How far rows are outside the data, from 0 to 1, judged by the unexplained variance there.

    Attributes
    ----------
    A : K + lambda W^-1 of the distinct rows, in single precision if lambda allows it
    inside : share of the variance that is unexplained at 99 % of the rows, given the others
    rows : how far each row is outside the others
    """

    A: System
    inside: float
    rows: Array

    def left(self, K: Array) -> Array:
        """Share of the variance that is unexplained at new rows with the kernels K, (n_new,)."""
        half = self.A.half_solve(K.T)
        return np.asarray(1.0 - np.einsum("ij,ij->j", half, half), dtype=np.float64)

    def beyond(self, left: Array) -> Array:
        """How far rows are outside, from their shares of unexplained variance."""
        return _beyond(left, self.inside)


def outside_of(K: Array, w: Array, lam: float) -> Outside:
    """Unexplained share of the variance, given distinct rows with kernel K (d, d), weights w."""
    penalty = np.maximum(lam / w, LEAST_PENALTY)
    try:
        A: System = factor(*rough(K, penalty, MOST_PENALTY))
    except LinAlgError:  # the kernel of a geodesic distance may have negative eigenvalues
        s, V = eigh(K / np.sqrt(penalty * penalty[:, None]))
        A = Eigen(V / np.sqrt(penalty)[:, None], np.maximum(s, 0.0) + 1.0)
    left = np.clip(1.0 / A.inverse_diagonal() - penalty, 0.0, 1.0)
    inside = _quantile(left, INSIDE)
    return Outside(A, inside, _beyond(left, inside))


def _beyond(left: Array, inside: float) -> Array:
    """Excess of `left` over `inside`, as a share of the largest possible excess."""
    if inside > 1.0 - 1e-9:
        return np.zeros(len(left))  # rows without any correlation: every place is inside
    return np.clip((left - inside) / (1.0 - inside), 0.0, 1.0)


def _quantile(values: Array, share: float) -> float:
    """The smallest value such that at least this share of the values does not exceed it."""
    rank = int(np.ceil(share * len(values))) - 1
    return float(np.partition(values, rank)[rank])


@dataclass(frozen=True)
class Scale:
    """The scale s(x) of an interval, from a sample of the rows.

    Attributes
    ----------
    jackknife : models that leave out one row
    X : distinct rows of the sample, or distances between them
    mean : function from rows as the kernel sees them to predictions
    unmapped : function from rows as the kernel sees them to their features before the map
    straight : function from rows as the kernel sees them to rows without compressed features
    """

    jackknife: Jackknife
    X: Array
    space: Space
    sigma: float
    mean: Callable[[Array], Array]
    unmapped: Callable[[Array], Array]
    straight: Callable[[Array], Array] | None = None

    @cached_property
    def _gaps(self) -> Array:
        return self.space.distance.gaps(self.X, self.X)

    @cached_property
    def noise(self) -> list[NoiseLevel]:
        """Level of the noise of each target."""
        kernels = self._noise_kernels(self._gaps.copy(), self.X, self.jackknife.predicted)
        with blas_for(len(self.X)):
            return [
                noise_level(K, residuals, self.jackknife.group)
                for K, residuals in zip(kernels, self.jackknife.residuals.T, strict=True)
            ]

    @cached_property
    def _marks(self) -> tuple[Marks, Array] | None:
        """Features with two values, and their marks at the rows of the sample; None if given."""
        if self.space.distance.is_given:
            return None
        X = self.unmapped(self.X)
        marks = marks_of(X)
        return (marks, marks(X)) if marks.places.size else None

    def _noise_kernels(self, gaps: Array, X: Array, means: Array) -> Iterator[Array]:
        """Kernel of the noise for each target, from the gaps, which are overwritten.

        X are rows as the kernel sees them, means (n, k) their predictions.
        """
        K = self.space.kernel.of(gaps, NOISE_WIDTH * self.sigma)
        if self._marks is not None:
            marks, of_rows = self._marks
            K += marks(self.unmapped(X)) @ of_rows.T
        sample = zip(self.jackknife.predicted.T, self.jackknife.fitted.T, strict=True)
        for mean, rows in zip(means.T, sample, strict=True):
            yield K + closeness(mean, *rows)

    @cached_property
    def _outsides(self) -> list[Outside]:
        """Unexplained share of the variance, for each penalty."""
        K = self.space.kernel.of(self._gaps.copy(), self.sigma)
        with blas_for(len(K)):
            return [outside_of(K, self.jackknife.weights, lam) for lam in np.unique(self._lams)]

    @property
    def _lams(self) -> Array:
        return np.broadcast_to(self.jackknife.lams, self.jackknife.spread.shape)

    @cached_property
    def _straight_X(self) -> Array:
        return self.X if self.straight is None else self.straight(self.X)

    @cached_property
    def _nearest(self) -> tuple[Array, float, float]:
        """Distance of each row to the nearest other one, its 99 % quantile, the largest one."""
        gaps = self._gaps.copy()
        if self.straight is not None:
            gaps = self.space.distance.gaps(self._straight_X, self._straight_X)
        lengths = self.space.distance.lengths(gaps)
        largest = float(lengths.max())
        np.fill_diagonal(lengths, np.inf)
        nearest = lengths.min(axis=1)
        return nearest, _quantile(nearest, INSIDE), largest

    def _away(self, nearest: Array) -> Array:
        """Nearest distance in excess of the 99 % quantile, in units of the largest distance."""
        _, usual, largest = self._nearest
        if not (largest > 0 and np.isfinite(usual)):
            return np.zeros(len(nearest))
        return np.clip((nearest - usual) / largest, 0.0, 1.0)

    def least(self, beyond: Sequence[Array], nearest: Array, coverage: float) -> Array:
        """Least half widths h of intervals at rows, of shape (n, k).

        `beyond` says how far outside each row is, judged by the unexplained variance, for each
        penalty.
        """
        half, far = self.jackknife.spread / 2, ndtri((1 + coverage) / 2) * self.jackknife.far
        b = self._of_targets(np.column_stack(beyond))
        away = np.outer(self._away(nearest), half)
        return np.maximum(np.sqrt(b) * np.maximum(half, far), away)

    @property
    def reach(self) -> Array | None:
        """How far leave-one-out models move, as in `Jackknife`; None if K may be indefinite."""
        if self.jackknife.reach is None:
            return None
        is_positive = all(isinstance(outside.A, Factor) for outside in self._outsides)
        return self.jackknife.reach if is_positive else None

    def even(self, X_new: Array, coverage: float) -> Scaled:
        """New rows with a scale of one everywhere."""
        sizes = np.abs(self.jackknife.residuals)
        s, left = np.ones((2, len(X_new), sizes.shape[1]))

        def work(rows: slice) -> None:
            K = self.space.block(self._columns(X_new[rows]), self.X, self.sigma)
            left[rows] = self._of_targets(self._left(K))

        if self.reach is not None:
            with one_blas_thread():
                for_blocks(work, len(X_new), rows_per_block(4 * len(self.X)))
        return Scaled(sizes, s, np.zeros_like(s), self._apart(left), coverage, self.reach)

    def of(self, X_new: Array, coverage: float) -> Scaled:
        """New rows with their scale."""
        beyond = [outside.rows for outside in self._outsides]
        h = self.least(beyond, self._nearest[0], coverage)[self.jackknife.group]
        unit = self.unit(h, coverage)
        sizes = self.scores(h / unit)
        s, least, left = np.empty((3, len(X_new), sizes.shape[1]))
        means = self.mean(X_new)

        def work(rows: slice) -> None:
            found = self.at(self._columns(X_new[rows]), means[rows], coverage)
            g, least[rows], left[rows] = found
            s[rows] = np.hypot(g, least[rows] / unit)

        with one_blas_thread():
            for_blocks(work, len(X_new), rows_per_block(4 * len(self.X)))
        return Scaled(sizes, s, least, self._apart(left) / s, coverage, self.reach)

    def _columns(self, X_new: Array) -> Array:
        return self.jackknife.columns(X_new, self.space.distance)

    def _left(self, K: Array) -> Array:
        return np.column_stack([outside.left(K) for outside in self._outsides])

    def _apart(self, left: Array) -> Array:
        """Deviations from unexplained shares of the variance, which include rounding errors."""
        return np.sqrt(np.maximum(left, 0.0) + len(self.X) * EPS)

    def at(self, X_new: Array, means: Array, coverage: float) -> tuple[Array, Array, Array]:
        """Level g of the noise, least half widths h, unexplained shares; (n_new, k) each.

        `means` of shape (n_new, k) are the predictions there.
        """
        gaps = self.space.distance.gaps(X_new, self.X)
        nearest = gaps.min(axis=1)
        if self.straight is not None:
            far = self.space.distance.gaps(self.straight(X_new), self._straight_X)
            nearest = far.min(axis=1)
        left = self._left(self.space.kernel.of(gaps.copy(), self.sigma))
        beyond = [each.beyond(part) for each, part in zip(self._outsides, left.T, strict=True)]
        h = self.least(beyond, self.space.distance.lengths(nearest), coverage)
        kernels = self._noise_kernels(gaps, X_new, means)
        g = [level.at(K) for level, K in zip(self.noise, kernels, strict=True)]
        return np.column_stack(g), h, self._of_targets(left)

    def _of_targets(self, e: Array) -> Array:
        """Columns for the targets from those for the distinct penalties."""
        return e[:, np.searchsorted(np.unique(self._lams), self._lams)]

    def unit(self, h: Array, coverage: float) -> Array:
        """V^(-1/2) for each target: a lower bound for the half width where the scale is one."""
        # The quantile of the scores is not below the one with zeros for the rows that V changes.
        scores = np.where(h > 0, 0.0, self.scores(np.zeros_like(h)))
        lowest = upper_quantile(scores[None], coverage)[0]
        return np.where(lowest > 0, lowest, np.inf)

    def scores(self, outside: Array) -> Array:
        """Sizes |r_i| / s_i of the residuals in units of the scale, of shape (s, k).

        `outside` is V^(1/2) h, the part of s_i for rows outside the others.
        """
        levels = np.column_stack([level.rows for level in self.noise])
        return np.asarray(np.abs(self.jackknife.residuals) / np.hypot(levels, outside))


def widened(lower: Array, upper: Array, least: Array) -> tuple[Array, Array]:
    """Ends of intervals, moved apart by the same amount where they are closer than 2 `least`."""
    short = np.maximum(least - (upper - lower) / 2, 0.0)
    return lower - short, upper + short


def upper_quantile(values: Array, coverage: float) -> Array:
    """The ceil(coverage (n + 1))-th smallest of n values along axis 1, of shape (m, n, k)."""
    s, k = values.shape[1:]
    return smallest(values, np.full(k, upper_rank(s, coverage)))


def upper_rank(n: int, coverage: float) -> int:
    """Rank of the upper quantile of n values; more than n if there are too few values."""
    return int(np.ceil(coverage * (n + 1) * (1 - 4 * EPS)))


def smallest(values: Array, ranks: Indices) -> Array:
    """Values of these ranks along axis 1, one rank for each column of the last axis.

    Infinite where there are fewer values than the rank.
    """
    found = np.full((len(values), values.shape[2]), np.inf)
    for t, rank in enumerate(ranks):
        if rank <= values.shape[1]:
            found[:, t] = np.partition(values[:, :, t], rank - 1, axis=1)[:, rank - 1]
    return found


@dataclass(frozen=True)
class Scaled:
    """New rows and their scale.

    Attributes
    ----------
    sizes : sizes of the residuals in units of the scale, of shape (s, k)
    s : the scale at the new rows, of shape (n_new, k)
    least : least half width of their intervals, of shape (n_new, k)
    apart : how much leave-one-out models differ there for a `reach` of one, (n_new, k)
    coverage : of the intervals
    reach : how far leave-one-out models move, as in `Jackknife`
    """

    sizes: Array
    s: Array
    least: Array
    apart: Array
    coverage: float
    reach: Array | None

    @cached_property
    def levels(self) -> Array:
        """How much leave-one-out models differ at each new row, in units of `_unit`.

        Rounded up to one of a few values, so that an interval does not depend on the other new
        rows.
        """
        far = (self.apart / self._unit).max(axis=1)
        return np.asarray(2.0 ** (np.ceil(LEVELS * np.log2(far)) / LEVELS))

    @cached_property
    def _unit(self) -> Array:
        """The value of `apart` at which models move by about the size of the residuals, (k,)."""
        sizes = self.sizes.mean(axis=0)
        reach = np.zeros_like(sizes) if self.reach is None else self.reach.mean(axis=0)
        known = (sizes > 0) & (reach > 0)
        return np.divide(sizes, reach, out=np.ones_like(sizes), where=known)

    def blocks(self, size: int) -> list[Indices]:
        """New rows of the same level, at most `size` at a time."""
        if self.reach is None:
            groups = [np.arange(len(self.s))]
        else:
            groups = [np.flatnonzero(self.levels == level) for level in np.unique(self.levels)]
        return [rows[some] for rows in groups for some in row_blocks(len(rows), size)]

    def followed(self, level: float) -> tuple[Indices, Indices]:
        """The models that must be evaluated at new rows of a level, and ranks among them.

        The rank gives the end of an interval, for each target. All other residuals are so much
        smaller or larger that no usual move of a model takes them past that end.
        """
        s, k = self.sizes.shape
        rank = upper_rank(s, self.coverage)
        if self.reach is None:
            return np.arange(s), np.full(k, rank)
        moves = FOLLOWED * self.reach * self._unit * level
        ends = np.stack([self.sizes - moves, self.sizes + moves])
        low, high = smallest(ends, np.full(k, rank))
        is_below = ends[1] < low
        near = (~is_below & (ends[0] <= high)).any(axis=1)
        return np.flatnonzero(near), rank - np.count_nonzero(is_below & ~near[:, None], axis=0)
