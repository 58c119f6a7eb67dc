"""Training rows from any source; rows in memory are merged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .._checks import check_not_tiny
from .._compute.arrays import Array, Indices
from .merging import GivenRows, Replicates, merged, replicates_of
from .rows import ArrayRows, Block, MappedRows, Rows
from .survey import counted, sample_indices

if TYPE_CHECKING:
    from .._geometry.distances import Distance
    from .._geometry.maps import FeatureMap


@dataclass(frozen=True)
class Source:
    """Rows to fit to.

    Attributes
    ----------
    rows : the rows; if they are in memory, distinct ones of positive weight
    p : number of columns
    n : number of rows as the closed-form rules count them; None for rows that stream, which are
        counted in a first pass and not merged
    given : the rows as given, if some were merged or dropped
    first : indices of the rows that were kept; None if all were
    weightless : indices, features and targets of the rows of weight zero, if there are any
    """

    rows: Rows
    p: int
    n: float | None = None
    given: GivenRows | None = None
    first: Indices | None = None
    weightless: tuple[Indices, Array, Array] | None = None

    def in_order(self, most: int, rng: np.random.Generator) -> Block:
        """At most `most` rows of positive weight at random, as given and in their order."""
        if self.given is None or not isinstance(self.rows, ArrayRows):
            return self.rows.take(np.sort(sample_indices(self.rows.n, most, rng)))
        given = self.given.weighed()
        some = np.sort(sample_indices(len(given.group), most, rng))
        X, y, _ = self.rows.take(given.group[some])
        return X, y + given.within[some], given.weights[some]

    @cached_property
    def replicates(self) -> Replicates | None:
        """Observations of the same row, if they differ in y; None for rows that stream."""
        if self.given is None or not isinstance(self.rows, ArrayRows):
            return None
        return replicates_of(self.given, self.rows.y)


def array_source(X: Array, y: Array, w: Array | None, distance: Distance) -> Source:
    """Rows of arrays with duplicates merged; y has the shape (n, k)."""
    check_not_tiny(np.abs(y).max(axis=0))
    found = merged(distance.canonical(X), y, w)
    n = float(len(X)) if w is None else counted(w[w > 0])
    if found.is_all:
        return Source(ArrayRows(X, y, w), X.shape[1], n)
    rows = ArrayRows(distance.some(X, found.first), found.y, found.w)
    out = np.flatnonzero(found.group < 0)
    weightless = (out, X[out], y[out]) if len(out) else None
    return Source(rows, X.shape[1], n, found.given(y, w), found.first, weightless)


def mapped(source: Source, mapping: FeatureMap | None) -> Source:
    """The source with a map applied to its features."""
    if mapping is None:
        return source
    rows: Rows = MappedRows(source.rows, mapping)
    if isinstance(source.rows, ArrayRows) and source.n is not None:
        rows = ArrayRows(mapping(source.rows.X), source.rows.y, source.rows.w)
    return replace(source, rows=rows, p=mapping.q)


def in_memory(source: Source, distance: Distance) -> Source:
    """The source with all rows read into memory and duplicates merged."""
    if source.n is not None:
        return source
    X, y, w = source.rows.take(np.arange(source.rows.n))
    return array_source(X, y, w, distance)
