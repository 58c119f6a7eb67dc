"""What passes over all rows learn of them: means, diameter, spacing; and rules on a sample."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

import numpy as np

from ._checks import Array
from ._distances import geodesic_distances, row_blocks, rows_per_block, squared_distances
from ._geometry import NEIGHBOUR_SAMPLE, diameter
from ._problem import Problem, mean_of
from ._streams import Block, Indices, Rows

# Rows of each block that are kept as ends of the longest distance, if need be.
OUTERMOST = 256

# Rows on which rules look at pairs of rows, or solve.
SAMPLE = 10_000
# Rows are drawn again, up to so many times as many, if some have a weight of zero.
REDRAWN = 20


@dataclass(frozen=True)
class Survey:
    """Numbers of all rows, from one pass: their count and weight, weighted means, extremes."""

    n: int
    weight: float
    centre: Array
    mean: Array
    low: Array
    high: Array

    def __add__(self, other: Survey) -> Survey:
        weight = self.weight + other.weight
        share = other.weight / weight if weight else 0.0
        return Survey(
            self.n + other.n,
            weight,
            # In this form the mean of a constant is that constant, without rounding.
            self.centre + share * (other.centre - self.centre),
            self.mean + share * (other.mean - self.mean),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )


def survey(X: Array, y: Array, w: Array | None) -> Survey:
    """The survey of one block of rows; rows of weight zero do not count."""
    if w is not None:
        X, y, w = X[w > 0], y[w > 0], w[w > 0]
    low, high = X.min(axis=0, initial=np.inf), X.max(axis=0, initial=-np.inf)
    if not len(X):
        return Survey(0, 0.0, np.zeros(X.shape[1]), np.zeros(y.shape[1]), low, high)
    v = np.ones(len(X)) if w is None else w
    return Survey(len(X), float(v.sum()), mean_of(X, v), mean_of(y, v), low, high)


@dataclass(frozen=True)
class _Outermost:
    """Rows of a block that may be ends of the longest distance, by distance to a centre."""

    what: ClassVar[str] = "their largest distance"
    centre: Array
    metric: str
    reach: float | None = None

    def __call__(self, X: Array, y: Array, w: Array | None) -> tuple[Array, float, float]:
        """Those rows, the distance of the outermost one, and that of the next one not kept."""
        X = X if w is None else X[w > 0]
        r = _radii(X, self.centre, self.metric)
        if self.reach is not None:
            return X[r >= self.reach], float(r.max(initial=0.0)), 0.0
        order = np.argsort(-r)
        kept, rest = order[:OUTERMOST], order[OUTERMOST:]
        return X[kept], float(r.max(initial=0.0)), float(r[rest].max(initial=0.0))


def _radii(X: Array, centre: Array, metric: str) -> Array:
    if metric == "geodesic":
        return geodesic_distances(X, centre[None])[:, 0]
    return np.asarray(np.linalg.norm(X - centre, axis=1))


def stream_diameter(rows: Rows, centre: Array, metric: str) -> float:
    """Largest distance between two rows, exactly, in one pass or two.

    Two rows are at most as far apart as the sum of their distances to any centre. The outermost
    rows of each block give a lower bound; if the rows not kept cannot beat it, it is the answer.
    If they can, a second pass gathers all that could.
    """
    found = list(rows.each(_Outermost(centre, metric)))
    best = diameter(np.vstack([X for X, _, _ in found]), metric)
    r_max, r_rest = max(r for _, r, _ in found), max(r for _, _, r in found)
    if r_max + r_rest <= best * (1 - 1e-12):
        return best
    reach = (best - r_max) * (1 - 1e-9)
    found = list(rows.each(_Outermost(centre, metric, reach)))
    return diameter(np.vstack([X for X, _, _ in found]), metric)


@dataclass(frozen=True)
class _Squares:
    """Weighted sum of the squared deviations of a block of rows from a centre."""

    centre: Array
    metric: str

    def __call__(self, X: Array, y: Array, w: Array | None) -> float:
        v = np.ones(len(X)) if w is None else w
        return float(v @ np.square(_radii(X, self.centre, self.metric)))


def stream_variance(rows: Rows, metric: str) -> float:
    """Variance of all features together, as Problem.variance has it."""
    whole: Survey = rows.total(survey)
    if metric == "geodesic":
        return float(rows.total(_Squares(whole.centre, metric)) / whole.weight)
    p = len(whole.centre)
    mean = np.full(p, whole.centre.mean())
    return float(rows.total(_Squares(mean, metric)) / (whole.weight * p))


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
            if self.metric == "euclidean":
                self._sharpen(D2, X[part])
            D2[D2 == 0] = np.inf
            np.minimum(nearest, D2.min(axis=0, initial=np.inf), out=nearest)
        return nearest

    def _sharpen(self, D2: Array, X: Array) -> None:
        """Replace the smallest entries of D2, where |x|^2 - 2 x'z + |z|^2 is rounding, by sums."""
        scale = np.square(self.asked - self.asked.mean(axis=0)).sum(axis=1).max()
        i, j = np.nonzero(D2 / scale <= 1e-10)
        D2[i, j] = np.square(X[i] - self.asked[j]).sum(axis=1)


def stream_spacing(rows: Rows, asked: Array, metric: str) -> float:
    """Median distance of the asked rows to their nearest neighbours among all distinct rows."""
    nearest = np.min(list(rows.each(_Nearest(asked, metric))), axis=0)
    found = nearest[np.isfinite(nearest)]
    return float(np.sqrt(np.median(found))) if len(found) else 0.0


@dataclass(frozen=True)
class SampledProblem(Problem):
    """A problem whose geometry is that of all rows, and whose X, y, w are a sample of them."""

    rows: Rows | None = None
    n_rows: float = 0
    weight: float = 0.0

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
    def n(self) -> float:
        """Sum of the weights of all rows."""
        return self.weight

    @cached_property
    def l_max(self) -> float:
        """Largest distance between two of all rows."""
        if self.rows is None:
            return self.sample.l_max
        l_max = stream_diameter(self.rows, self.X.mean(axis=0), self.metric)
        return l_max if l_max > 0 else self.sample.l_max  # which says what is wrong

    @cached_property
    def variance(self) -> float:
        """Variance of all entries of all rows together."""
        if self.rows is None:
            return self.sample.variance
        return stream_variance(self.rows, self.metric)

    @cached_property
    def neighbour_spacing(self) -> float:
        """Median distance of sampled rows to their nearest neighbours among all rows."""
        if self.rows is None or self.n_rows == len(self.X):
            return self.sample.neighbour_spacing
        asked = np.unique(self.X[:: -(-len(self.X) // NEIGHBOUR_SAMPLE)], axis=0)
        return stream_spacing(self.rows, asked, self.metric)


def sampled(rows: Rows, most: int, rng: np.random.Generator) -> Block:
    """At most so many of the rows of positive weight, drawn at random."""
    block = _drawn(rows, most, rng)
    if block[2] is None or block[2].all():
        return block
    # Drawn again, from more rows, as many as make up for those of weight zero.
    share = max(np.count_nonzero(block[2]) / len(block[2]), 1 / REDRAWN)
    X, y, weights = _drawn(rows, int(most / share), rng)
    w = np.asarray(weights)
    kept = np.flatnonzero(w)[:most]
    if len(kept) < 3 and len(X) < rows.n:
        raise ValueError(
            f"`sample_weight` must be positive for more rows, got {len(kept)} of {len(X)} drawn "
            "at random. Leave rows of weight zero out before the fit."
        )
    return X[kept], y[kept], w[kept]


def _drawn(rows: Rows, most: int, rng: np.random.Generator) -> Block:
    few = rows.n <= most
    return rows.take(np.arange(rows.n) if few else rng.choice(rows.n, most, replace=False))


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
