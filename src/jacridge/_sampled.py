"""A problem whose geometry is that of all rows, and which is solved on a sample of them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

import numpy as np

from ._checks import Array, Indices
from ._distances import FEW_COLUMNS, bulk_centre, row_blocks, rows_per_block, squared_distances
from ._geometry import diameter
from ._problem import Problem, mean_of
from ._streams import Block, Rows
from ._survey import TURNS, Ends, Survey, Surveyed, Surveying, ends_of, radii, surveyed

# Rows of the sample whose neighbours are looked for among all rows.
NEIGHBOUR_SAMPLE = 5_000


def stream_diameter(rows: Rows, seen: Surveyed, metric: str) -> float:
    """Largest distance between two rows, exactly; seldom by more than one pass.

    Two rows are at most as far apart as the sum of their distances to any centre. The outermost
    rows of each block give a lower bound; if the rest cannot beat it, it is the answer. If it can,
    a pass compares them with all rows, and brings the rows that come next.
    """
    centre, ends, best = seen.whole.centre, seen.ends, 0.0
    steps = radii(np.array([end.centre for end in ends]), centre, metric)
    for turn in range(1, TURNS + 2):
        Z = np.unique(np.vstack([end.rows for end in ends]), axis=0)
        best = max(best, diameter(Z, metric))
        rest, r = float(np.max(steps + [end.rest for end in ends])), radii(Z, centre, metric)
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
        return self._largest(X), ends_of(X, mean_of(X, v), self.metric, self.turn)

    def _largest(self, X: Array) -> float:
        """The largest distance, or `best` if it is that or less."""
        r, largest = radii(X, self.centre, self.metric), self.best
        order = np.argsort(-r)
        for part in row_blocks(len(X), rows_per_block(len(self.Z))):
            X_part, reach = X[order[part]], (largest - r[order[part.start]]) * (1 - 1e-12)
            Z = self.Z[: np.searchsorted(-self.r, -reach, side="right")]
            if not len(Z):
                break
            D2 = squared_distances(X_part, Z, self.metric)
            i, j = np.unravel_index(D2.argmax(), D2.shape)
            largest = max(largest, diameter(np.stack([X_part[i], Z[j]]), self.metric))
        return largest


@dataclass(frozen=True)
class _Squares:
    """Weighted sum of the squared distances of a block of rows to a centre."""

    centre: Array
    metric: str

    def __call__(self, X: Array, y: Array, w: Array | None) -> float:
        v = np.ones(len(X)) if w is None else w
        return float(v @ np.square(radii(X, self.centre, self.metric)))


def stream_variance(rows: Rows, whole: Survey, metric: str) -> float:
    """Variance of all features together, as Problem.variance has it, whatever the blocks are."""
    if metric == "geodesic":
        return rounded(rows.total(_Squares(whole.centre, metric)) / whole.weight, 10)
    return rounded(whole.squares.mean() / whole.weight + whole.centre.var(), 10)


@dataclass(frozen=True)
class _Nearest:
    """Squared distance of some rows to the nearest row of a block that is not equal to them."""

    what: ClassVar[str] = "their neighbours"
    asked: Array
    metric: str

    def __call__(self, X: Array, y: Array, w: Array | None) -> Array:
        X = X if w is None else X[w > 0]
        nearest, expanded = np.full(len(self.asked), np.inf), self._is_expanded
        for part in row_blocks(len(X), rows_per_block(len(self.asked))):
            D2 = squared_distances(X[part], self.asked, self.metric)
            if expanded:
                self._sharpen(D2, X[part])
            D2[D2 == 0] = np.inf
            i = D2.argmin(axis=0)
            found = D2[i, np.arange(len(i))]
            if expanded:  # from the two rows alone, to the last digit
                exact = np.square(X[part][i] - self.asked).sum(axis=1)
                found = np.where(np.isfinite(found), exact, np.inf)
            np.minimum(nearest, found, out=nearest)
        return nearest

    @property
    def _is_expanded(self) -> bool:
        """Whether squared distances come as |x|^2 - 2 x'z + |z|^2, with the rounding of that."""
        return self.metric == "euclidean" and self.asked.shape[1] > FEW_COLUMNS

    def _sharpen(self, D2: Array, X: Array) -> None:
        """Replace the smallest entries of D2, which may be rounding, by sums of squares."""
        norms = np.square(self.asked - bulk_centre(self.asked)).sum(axis=1)
        i, j = np.nonzero(1e-8 * norms >= D2)
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
        return rounded(self.weight, 12)

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

    @property
    def n_equal(self) -> int:
        """How many rows of the sample are equal to another one before them."""
        if self._stream is None:
            return self.sample.n_equal
        return len(self.X) - len(np.unique(self.X, axis=0))

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


def rounded(value: float, digits: int) -> float:
    """A sum over all rows without the last digits, which go with the blocks of rows."""
    return float(f"{value:.{digits}g}")
