"""What the first pass over all rows learns of them: means, diameter, samples; rules on these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, reduce
from operator import add
from typing import ClassVar

import numpy as np

from ._checks import Array
from ._distances import (
    FEW_COLUMNS,
    bulk_centre,
    geodesic_distances,
    row_blocks,
    rows_per_block,
    squared_distances,
)
from ._geometry import NEIGHBOUR_SAMPLE, diameter
from ._problem import Problem, mean_of
from ._streams import Block, Indices, Rows, rows_of

# Of each block the outermost rows, one in so many, are compared with all rows at a time.
OUTERMOST = 32

# Rows on which rules look at pairs of rows, or solve.
SAMPLE = 10_000
# Rows are drawn again, up to so many times as many, if some have a weight of zero.
REDRAWN = 20


@dataclass(frozen=True)
class Survey:
    """Numbers of all rows: their count and weight, weighted means and squares."""

    n: int
    weight: float
    centre: Array
    squares: Array  # weighted sums of squared deviations from the centre, for each feature
    mean: Array  # of y

    def __add__(self, other: Survey) -> Survey:
        weight = self.weight + other.weight
        share = other.weight / weight if weight else 0.0
        step = other.centre - self.centre
        return Survey(
            self.n + other.n,
            weight,
            # In this form the mean of a constant is that constant, without rounding.
            self.centre + share * step,
            self.squares + other.squares + share * self.weight * step**2,
            self.mean + share * (other.mean - self.mean),
        )


@dataclass(frozen=True)
class Ends:
    """Rows of a block that may be ends of the longest distance, and how far out the rest is."""

    rows: Array
    centre: Array
    rest: float  # largest distance of the rest to the centre, minus infinity if there is none


@dataclass(frozen=True)
class Surveying:
    """The work of the first pass on one block of rows; rows of weight zero do not count."""

    what: ClassVar[str] = "a first look"
    metric: str

    def __call__(self, X: Array, y: Array, w: Array | None) -> tuple[Survey, Ends]:
        if w is not None:
            X, y, w = X[w > 0], y[w > 0], w[w > 0]
        if not len(X):
            zeros = np.zeros(X.shape[1])
            return Survey(0, 0.0, zeros, zeros, np.zeros(y.shape[1])), Ends(X, zeros, -np.inf)
        v = np.ones(len(X)) if w is None else w
        centre = mean_of(X, v)
        whole = Survey(len(X), float(v.sum()), centre, v @ np.square(X - centre), mean_of(y, v))
        return whole, _ends(X, centre, self.metric)


def _ends(X: Array, centre: Array, metric: str, turn: int = 0) -> Ends:
    """The outermost rows of a block, in a later turn those that come next."""
    r, size = _radii(X, centre, metric), -(-len(X) // OUTERMOST)
    order = np.argsort(-r, kind="stable")[turn * size :]
    return Ends(X[order[:size]], centre, float(r[order[size:]].max(initial=-np.inf)))


def _radii(X: Array, centre: Array, metric: str) -> Array:
    if metric == "geodesic":
        return geodesic_distances(X, centre[None])[:, 0]
    D = X - centre
    return np.sqrt(np.einsum("ij,ij->i", D, D))


@dataclass(frozen=True)
class Surveyed:
    """The survey of all rows, and what each block says of their diameter."""

    whole: Survey
    ends: Sequence[Ends]


def surveyed(found: Iterable[tuple[Survey, Ends]]) -> Surveyed:
    """What the first pass has found in the blocks, put together."""
    surveys, ends = zip(*found, strict=True)
    whole = reduce(add, surveys)
    if whole.weight == 0:
        raise ValueError("`sample_weight` must not be all zero, got zeros only.")
    return Surveyed(whole, ends)


def first_look(
    rows: Rows, draws: Sequence[Indices], metric: str, rng: np.random.Generator
) -> tuple[Surveyed, list[Block]]:
    """The survey of all rows and the rows of each draw, from one pass.

    A draw that meets rows of weight zero is drawn again, by another pass.
    """
    found, taken = rows.look(Surveying(metric), np.concatenate(draws))
    seen = surveyed(found)
    ends = np.cumsum([len(draw) for draw in draws])
    blocks = [
        rows_of(taken, np.arange(end - len(draw), end))
        for draw, end in zip(draws, ends, strict=True)
    ]
    return seen, [_of_positive_weight(rows, block, rng) for block in blocks]


def drawn(n: int, most: int, rng: np.random.Generator) -> Indices:
    """At most so many of n indices, at random; all of them, in order, if they are few."""
    return np.arange(n) if n <= most else rng.choice(n, most, replace=False)


def sampled(rows: Rows, most: int, rng: np.random.Generator) -> Block:
    """At most so many of the rows of positive weight, drawn at random."""
    return _of_positive_weight(rows, rows.take(drawn(rows.n, most, rng)), rng)


def _of_positive_weight(rows: Rows, block: Block, rng: np.random.Generator) -> Block:
    """A block drawn from the rows, drawn again if some of it has no weight."""
    if block[2] is None or block[2].all():
        return block
    # From more rows, as many as make up for those of weight zero.
    most, share = len(block[2]), max(np.count_nonzero(block[2]) / len(block[2]), 1 / REDRAWN)
    X, y, weights = rows.take(drawn(rows.n, int(most / share), rng))
    w = np.asarray(weights)
    kept = np.flatnonzero(w)[:most]
    if len(kept) < 3 and len(X) < rows.n:
        raise ValueError(
            f"`sample_weight` must be positive for more rows, got {len(kept)} of {len(X)} drawn "
            "at random. Leave rows of weight zero out before the fit."
        )
    return X[kept], y[kept], w[kept]


def stream_diameter(rows: Rows, seen: Surveyed, metric: str) -> float:
    """Largest distance between two rows, exactly; seldom by more than one pass.

    Two rows are at most as far apart as the sum of their distances to any centre. The outermost
    rows of each block give a lower bound; if the rest cannot beat it, it is the answer. If it can,
    a pass compares them with all rows, and brings the rows that come next.
    """
    centre, ends, best = seen.whole.centre, seen.ends, 0.0
    steps = _radii(np.array([end.centre for end in ends]), centre, metric)
    for turn in range(1, OUTERMOST + 1):
        Z = np.unique(np.vstack([end.rows for end in ends]), axis=0)
        best = max(best, diameter(Z, metric))
        rest, r = float(np.max(steps + [end.rest for end in ends])), _radii(Z, centre, metric)
        enough = best * (1 + 1e-13)  # not to go on where rounding alone would decide
        if max(rest, r.max()) + rest <= enough:
            break
        order = np.argsort(-r)
        comparing = _Comparing(Z[order], r[order], centre, best, metric, turn)
        lengths, ends = zip(*rows.each(comparing), strict=True)
        best = max(best, *lengths)
        if 2 * rest <= enough:
            break
    return best


@dataclass(frozen=True)
class _Comparing:
    """Largest distance of the rows of a block to rows Z, and the rows of the block that come next.

    Z is sorted by falling distance r to the centre. Pairs that cannot beat `best` are left out.
    """

    what: ClassVar[str] = "their largest distance"
    Z: Array
    r: Array
    centre: Array
    best: float
    metric: str
    turn: int

    def __call__(self, X: Array, y: Array, w: Array | None) -> tuple[float, Ends]:
        v = np.ones(len(X)) if w is None else w[w > 0]
        X = X if w is None else X[w > 0]
        if not len(X):
            return 0.0, Ends(X, self.centre, -np.inf)
        return self._largest(X), _ends(X, mean_of(X, v), self.metric, self.turn)

    def _largest(self, X: Array) -> float:
        """The largest distance, or `best` if it is that or less."""
        r, largest = _radii(X, self.centre, self.metric), self.best
        order = np.argsort(-r)
        for part in row_blocks(len(X), rows_per_block(len(self.Z))):
            X_part, reach = X[order[part]], (largest - r[order[part.start]]) * (1 - 1e-12)
            Z = self.Z[: np.searchsorted(-self.r, -reach, side="right")]
            if not len(Z):
                break
            D2 = squared_distances(X_part, Z, self.metric)
            largest = max(largest, float(np.sqrt(D2.max())))
        return largest


@dataclass(frozen=True)
class _Squares:
    """Weighted sum of the squared distances of a block of rows to a centre."""

    centre: Array
    metric: str

    def __call__(self, X: Array, y: Array, w: Array | None) -> float:
        v = np.ones(len(X)) if w is None else w
        return float(v @ np.square(_radii(X, self.centre, self.metric)))


def stream_variance(rows: Rows, whole: Survey, metric: str) -> float:
    """Variance of all features together, as Problem.variance has it."""
    if metric == "geodesic":
        return float(rows.total(_Squares(whole.centre, metric)) / whole.weight)
    return float(whole.squares.mean() / whole.weight + whole.centre.var())


@dataclass(frozen=True)
class _Nearest:
    """Squared distance of some rows to the nearest row of a block that is not equal to them."""

    what: ClassVar[str] = "their neighbours"
    asked: Array
    metric: str

    def __call__(self, X: Array, y: Array, w: Array | None) -> Array:
        X = X if w is None else X[w > 0]
        nearest = np.full(len(self.asked), np.inf)
        for part in row_blocks(len(X), rows_per_block(len(self.asked))):
            D2 = squared_distances(X[part], self.asked, self.metric)
            if self.metric == "euclidean" and X.shape[1] > FEW_COLUMNS:
                self._sharpen(D2, X[part])
            D2[D2 == 0] = np.inf
            np.minimum(nearest, D2.min(axis=0, initial=np.inf), out=nearest)
        return nearest

    def _sharpen(self, D2: Array, X: Array) -> None:
        """Replace the smallest entries of D2, where |x|^2 - 2 x'z + |z|^2 is rounding, by sums."""
        norms = np.square(self.asked - bulk_centre(self.asked)).sum(axis=1)
        i, j = np.nonzero(1e-10 * norms >= D2)
        D2[i, j] = np.square(X[i] - self.asked[j]).sum(axis=1)


def stream_spacing(rows: Rows, asked: Array, metric: str) -> float:
    """Median distance of the asked rows to their nearest neighbours among all distinct rows."""
    nearest = np.min(list(rows.each(_Nearest(asked, metric))), axis=0)
    found = nearest[np.isfinite(nearest)]
    return float(np.median(np.sqrt(found))) if len(found) else 0.0


@dataclass(frozen=True)
class SampledProblem(Problem):
    """A problem whose geometry is that of all rows, and whose X, y, w are a sample of them."""

    rows: Rows | None = None
    n_rows: float = 0
    weight: float = 0.0
    seen: Surveyed | None = None

    def part(self, rows: Indices) -> Problem:
        """The problem of some rows of the sample."""
        return self.sample.part(rows)

    @cached_property
    def sample(self) -> Problem:
        """The problem of the sample alone."""
        names = [field.name for field in fields(Problem)]
        given = {name: getattr(self, name) for name in names}
        return Problem(**{**given, "spectra": None, "trials": None})

    @cached_property
    def _stream(self) -> tuple[Rows, Surveyed] | None:
        """All rows and their survey; None if the sample has all of them, or all there are."""
        if self.rows is None or self.n_rows == len(self.X):
            return None
        return self.rows, self.seen or surveyed(self.rows.each(Surveying(self.metric)))

    @cached_property
    def n(self) -> float:
        """Sum of the weights of all rows."""
        return self.weight

    @cached_property
    def l_max(self) -> float:
        """Largest distance between two of all rows."""
        l_max = stream_diameter(*self._stream, self.metric) if self._stream else 0.0
        return l_max if l_max > 0 else self.sample.l_max  # which says what is wrong

    @cached_property
    def variance(self) -> float:
        """Variance of all entries of all rows together."""
        if self._stream is None:
            return self.sample.variance
        rows, seen = self._stream
        return stream_variance(rows, seen.whole, self.metric)

    @cached_property
    def neighbour_spacing(self) -> float:
        """Median distance of sampled rows to their nearest neighbours among all rows."""
        if self._stream is None:
            return self.sample.neighbour_spacing
        asked = np.unique(self.X[:: -(-len(self.X) // NEIGHBOUR_SAMPLE)], axis=0)
        return stream_spacing(self._stream[0], asked, self.metric)


def centred(sample: Block, mean: Array, *, by_itself: bool) -> tuple[Array, Array, Array]:
    """X, y and w of a sample of rows, y less the mean of all rows.

    A sample is centred by itself where it can be, so that rounding in the mean of all rows, which
    depends on their blocks, does not move what is searched for.
    """
    X, y, w = sample
    w = np.ones(len(X)) if w is None else w
    if by_itself and (y != y[:1]).any():
        mean = mean_of(y, w)
    return X, y - mean, w
