"""Extent of the rows: largest distance, spacing, variance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .._checks import LARGEST
from .._compute.arrays import (
    Array,
    fixed_sample,
    row_blocks,
    rows_per_block,
    weighted_mean,
    weighted_std,
)
from .merging import distinct_rows
from .survey import TURNS, Ends, Surveyed, ends_of

if TYPE_CHECKING:
    from .._geometry.distances import Distance
    from .rows import Rows

# Rows of the sample whose nearest neighbours among all rows are computed.
NEIGHBOUR_SAMPLE = 5_000


@dataclass(frozen=True)
class ArrayExtent:
    """Extent of rows in memory."""

    X: Array
    w: Array
    distance: Distance

    @cached_property
    def l_max(self) -> float:
        """Largest distance between two rows."""
        return checked_length(self.distance.diameter(self.X))

    @cached_property
    def spacing(self) -> float:
        """Median distance of nearest neighbours among distinct rows."""
        if self.distance.is_given:
            distinct = np.unique(self.X, axis=0, return_index=True)[1]
            return self.distance.spacing(self.distance.some(self.X, distinct))
        return self.distance.spacing(distinct_rows(self.distance.canonical(self.X)))

    @cached_property
    def variance(self) -> float:
        """Variance of all entries of the rows together."""
        return self.distance.variance(self.X, self.w)

    @cached_property
    def std(self) -> Array:
        """Standard deviation of each feature."""
        return weighted_std(self.X, self.w)


@dataclass(frozen=True)
class StreamExtent:
    """Extent of rows that stream, with a sample X of them in memory."""

    rows: Rows
    seen: Surveyed
    X: Array
    distance: Distance

    @cached_property
    def l_max(self) -> float:
        """Largest distance between any two rows."""
        return checked_length(stream_diameter(self.rows, self.seen, self.distance))

    @cached_property
    def spacing(self) -> float:
        """Median distance of sampled rows to their nearest neighbours among all rows."""
        asked = distinct_rows(self.X[fixed_sample(len(self.X), NEIGHBOUR_SAMPLE)])
        nearest = np.min(list(self.rows.each(_Nearest(asked, self.distance))), axis=0)
        found = nearest[np.isfinite(nearest)]
        return float(np.median(self.distance.lengths(found))) if len(found) else 0.0

    @cached_property
    def variance(self) -> float:
        """Variance of all entries of all rows together, as defined by `Distance.variance`."""
        whole = self.seen.whole
        if self.distance.is_curved:
            return float(self.rows.total(_Squares(whole.centre, self.distance)) / whole.weight)
        return float(whole.squares.mean() / whole.weight + whole.centre.var())

    @cached_property
    def std(self) -> Array:
        """Standard deviation of each feature of all rows."""
        return self.seen.whole.std


# Extent of the training rows. Each number is computed once, when it is first needed.
Extent = ArrayExtent | StreamExtent


def checked_length(l_max: float) -> float:
    """Return the largest distance, or raise an error if it is zero."""
    if l_max < 1 / LARGEST:
        raise ValueError(
            "`X` must have rows that differ, got rows that are all equal (or so close that "
            "squares of their distances underflow). No bandwidth can be chosen for them."
        )
    return l_max


def stream_diameter(rows: Rows, seen: Surveyed, distance: Distance) -> float:
    """Exact largest distance between two rows, usually without another pass.

    The distance of two rows is at most the sum of their distances to any centre. The outermost rows
    of each block give a lower bound. If other rows could exceed it, a pass compares the outermost
    rows with all rows, and returns the next rows.
    """
    centre, ends, best = seen.whole.centre, seen.ends, 0.0
    steps = distance.radii(np.array([end.centre for end in ends]), centre)
    for turn in range(1, TURNS + 2):
        Z = distinct_rows(np.vstack([end.rows for end in ends]))
        best = max(best, distance.diameter(Z))
        rest, r = float(np.max(steps + [end.rest for end in ends])), distance.radii(Z, centre)
        enough = best * (1 + 1e-13)  # differences due to rounding do not matter
        if max(rest, r.max()) + rest <= enough:
            break
        order = np.argsort(-r)
        comparing = _Comparing(Z[order], r[order], centre, best, distance, turn)
        lengths, ends = zip(*rows.each(comparing), strict=True)
        best = max(best, *lengths)
        if 2 * rest <= enough:
            break
    return best


@dataclass(frozen=True)
class _Comparing:
    """Largest distance of the rows of a block to rows Z, and the next outermost rows of the block.

    Z is sorted by decreasing distance r to the centre. Pairs that cannot exceed `best` are skipped.
    """

    what: ClassVar[str] = "their largest distance"
    Z: Array
    r: Array
    centre: Array
    best: float
    distance: Distance
    turn: int

    def __call__(self, X: Array, y: Array, w: Array | None) -> tuple[float, Ends]:
        v = np.ones(len(X)) if w is None else w[w > 0]
        X = X if w is None else X[w > 0]
        if not len(X):
            return 0.0, Ends(X, self.centre, -np.inf)
        # About the centre of the block, as in the first pass, so that no row is skipped.
        return self._largest(X), ends_of(X, weighted_mean(X, v), self.distance, self.turn)

    def _largest(self, X: Array) -> float:
        """The largest distance, or `best` if that is larger."""
        r, largest = self.distance.radii(X, self.centre), self.best
        order = np.argsort(-r)
        for part in row_blocks(len(X), rows_per_block(len(self.Z))):
            X_part, reach = X[order[part]], (largest - r[order[part.start]]) * (1 - 1e-12)
            Z = self.Z[: np.searchsorted(-self.r, -reach, side="right")]
            if not len(Z):
                break
            gaps = self.distance.gaps(X_part, Z)
            largest = max(largest, float(self.distance.lengths(gaps.max())))
        return largest


@dataclass(frozen=True)
class _Squares:
    """Weighted sum of the squared distances of a block of rows to a centre."""

    centre: Array
    distance: Distance

    def __call__(self, X: Array, y: Array, w: Array | None) -> float:
        v = np.ones(len(X)) if w is None else w
        return float(v @ np.square(self.distance.radii(X, self.centre)))


@dataclass(frozen=True)
class _Nearest:
    """Gap of each row of `asked` to the nearest row of a block that differs from it."""

    what: ClassVar[str] = "their neighbours"
    asked: Array
    distance: Distance

    def __call__(self, X: Array, y: Array, w: Array | None) -> Array:
        X = X if w is None else X[w > 0]
        nearest = np.full(len(self.asked), np.inf)
        for part in row_blocks(len(X), rows_per_block(len(self.asked))):
            gaps = self.distance.gaps(X[part], self.asked)
            gaps[gaps == 0] = np.inf
            np.minimum(nearest, gaps.min(axis=0), out=nearest)
        return nearest
