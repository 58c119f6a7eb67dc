"""First pass over all rows: counts, weighted means, outermost rows and random samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .._checks import check_not_tiny
from .._compute.arrays import Array, Indices, are_whole, weighted_mean
from .rows import Block, Rows, rows_of

if TYPE_CHECKING:
    from .._geometry.distances import Distance

# Number of outermost rows of each block that the first pass returns.
OUTERMOST = 256
# If they do not determine the largest distance, up to this many passes return the next rows.
TURNS = 32

# Number of rows from which rules sample pairs, or with which they solve.
SAMPLE = 10_000
# If some rows drawn have a weight of zero, up to this many times as many rows are drawn again.
REDRAWN = 20


@dataclass(frozen=True)
class Survey:
    """Number and total weight of the rows of positive weight, with weighted means and squares."""

    n: int
    weight: float
    centre: Array
    squares: Array  # weighted sums of squared deviations from the centre, for each feature
    mean: Array  # of y
    largest: Array  # size of y
    whole: bool  # whether all weights are whole numbers

    def __add__(self, other: Survey) -> Survey:
        weight = self.weight + other.weight
        share = other.weight / weight if weight else 0.0
        step = other.centre - self.centre
        return Survey(
            self.n + other.n,
            weight,
            # In this form, the mean of a constant is that constant without rounding.
            self.centre + share * step,
            self.squares + other.squares + share * self.weight * step**2,
            self.mean + share * (other.mean - self.mean),
            np.maximum(self.largest, other.largest),
            self.whole and other.whole,
        )

    @property
    def n_samples(self) -> float:
        """Sample size n of the closed-form rules: the sum of whole weights, else the rows."""
        return self.weight if self.whole else float(self.n)

    @property
    def std(self) -> Array:
        """Standard deviation of each feature."""
        return np.sqrt(self.squares / self.weight)


@dataclass(frozen=True)
class Ends:
    """Rows of a block that may lie farthest apart, and how far the others are from the centre."""

    rows: Array
    centre: Array
    rest: float  # largest distance of the other rows to the centre; -inf if there are none


@dataclass(frozen=True)
class Surveying:
    """First pass over one block of rows, ignoring rows of weight zero."""

    what: ClassVar[str] = "a first look"
    distance: Distance

    def __call__(self, X: Array, y: Array, w: Array | None) -> tuple[Survey, Ends]:
        if w is not None:
            X, y, w = X[w > 0], y[w > 0], w[w > 0]
        if not len(X):
            zeros = np.zeros(X.shape[1])
            none = np.zeros(y.shape[1])
            empty = Survey(0, 0.0, zeros, zeros, none, none, True)
            return empty, Ends(X, zeros, -np.inf)
        v = np.ones(len(X)) if w is None else w
        centre = weighted_mean(X, v)
        squares = v @ np.square(X - centre)
        mean, whole = weighted_mean(y, v), are_whole(v)
        largest = np.abs(y).max(axis=0)
        survey = Survey(len(X), float(v.sum()), centre, squares, mean, largest, whole)
        return survey, ends_of(X, centre, self.distance)


def counted(w: Array) -> float:
    """Sample size n of the closed-form rules: the sum of whole weights, else the number of rows."""
    return float(w.sum()) if are_whole(w) else float(len(w))


def ends_of(X: Array, centre: Array, distance: Distance, turn: int = 0) -> Ends:
    """The outermost rows of a block, or in a later turn the next ones."""
    r, size = distance.radii(X, centre), -(-len(X) // TURNS)
    start, stop = (
        (OUTERMOST + (turn - 1) * size, OUTERMOST + turn * size) if turn else (0, OUTERMOST)
    )
    order = np.argsort(-r, kind="stable")
    return Ends(X[order[start:stop]], centre, float(r[order[stop:]].max(initial=-np.inf)))


@dataclass(frozen=True)
class Surveyed:
    """The survey of all rows, and the outermost rows of each block."""

    whole: Survey
    ends: Sequence[Ends]


def surveyed(found: Iterable[tuple[Survey, Ends]]) -> Surveyed:
    """Combine the results of the first pass."""
    surveys, ends = zip(*found, strict=True)
    whole = reduce(add, surveys)
    if whole.weight == 0:
        raise ValueError("`sample_weight` must not be all zero, got zeros only.")
    check_not_tiny(whole.largest)
    return Surveyed(whole, ends)


def first_look(
    rows: Rows, draws: Sequence[Indices], distance: Distance, rng: np.random.Generator
) -> tuple[Surveyed, list[Block]]:
    """The survey of all rows and the rows of each draw, from one pass.

    A draw that contains rows of weight zero is repeated in another pass.
    """
    found, taken = rows.look(Surveying(distance), np.concatenate(draws))
    seen = surveyed(found)
    ends = np.cumsum([len(draw) for draw in draws])
    blocks = [
        rows_of(taken, np.arange(end - len(draw), end))
        for draw, end in zip(draws, ends, strict=True)
    ]
    return seen, [_of_positive_weight(rows, block, rng) for block in blocks]


def sample_indices(n: int, most: int, rng: np.random.Generator) -> Indices:
    """At most `most` of n indices at random; if there are no more, all of them in order."""
    return np.arange(n) if n <= most else rng.choice(n, most, replace=False)


def sample_of(rows: Rows, most: int, rng: np.random.Generator) -> Block:
    """At most `most` of the rows of positive weight, drawn at random."""
    return _of_positive_weight(rows, rows.take(sample_indices(rows.n, most, rng)), rng)


def _of_positive_weight(rows: Rows, block: Block, rng: np.random.Generator) -> Block:
    """A block drawn from the rows; drawn again if some of its rows have no weight."""
    if block[2] is None or block[2].all():
        return block
    # Enough rows to make up for those of weight zero.
    most, share = len(block[2]), max(np.count_nonzero(block[2]) / len(block[2]), 1 / REDRAWN)
    X, y, weights = rows.take(sample_indices(rows.n, int(most / share), rng))
    w = np.asarray(weights)
    kept = np.flatnonzero(w)[:most]
    if len(kept) < 3 and len(X) < rows.n:
        raise ValueError(
            f"`sample_weight` is zero for almost all rows: only {len(kept)} of {len(X)} randomly "
            "drawn rows have a positive weight. Remove rows of weight zero before the fit."
        )
    return X[kept], y[kept], w[kept]
