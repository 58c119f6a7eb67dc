"""Training rows from wherever they come, merged where they are in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .._checks import check_not_tiny
from .._compute.arrays import Array, Indices
from .merging import GivenRows, Merged, Replicates, merged, replicates_of
from .rows import ArrayRows, MappedRows, Rows
from .survey import counted

if TYPE_CHECKING:
    from .._geometry.distances import Distance
    from .._geometry.maps import FeatureMap


@dataclass(frozen=True)
class Source:
    """Rows to fit to.

    Attributes
    ----------
    rows : the rows, distinct ones of positive weight if they are in memory
    p : number of columns
    n : number of rows as the closed-form rules count them; None for rows that stream, which are
        counted by a first pass and not merged
    merged : where the rows as given went, if some were merged or left out
    y : the targets as given, if some were merged or left out
    w : the weights as given, if some rows were merged or left out
    weightless : indices, features and targets of the rows of weight zero, if there are any
    """

    rows: Rows
    p: int
    n: float | None = None
    merged: Merged | None = None
    y: Array | None = None
    w: Array | None = None
    weightless: tuple[Indices, Array, Array] | None = None

    @property
    def first(self) -> Indices | None:
        """Indices of the rows that are kept, None if all are."""
        return None if self.merged is None else self.merged.first

    @property
    def given(self) -> GivenRows | None:
        """The rows as given, if some were merged or left out."""
        if self.merged is None or self.y is None:
            return None
        group, means = self.merged.group, self.merged.y
        within = self.y - np.where(group[:, None] >= 0, means[group], 0.0)
        return GivenRows(group, within, np.ones(len(group)) if self.w is None else self.w)

    @cached_property
    def replicates(self) -> Replicates | None:
        """Observations of the same row, if these differ in y; None for rows that stream."""
        given = self.given
        return replicates_of(given, self.merged.y) if given and self.merged else None


def array_source(X: Array, y: Array, w: Array | None, distance: Distance) -> Source:
    """Rows of arrays, with duplicates merged; y of shape (n, k)."""
    check_not_tiny(np.abs(y).max(axis=0))
    found = merged(distance.canonical(X), y, w)
    n = float(len(X)) if w is None else counted(w[w > 0])
    if found.is_all:
        return Source(ArrayRows(X, y, w), X.shape[1], n)
    rows = ArrayRows(distance.some(X, found.first), found.y, found.w)
    out = np.flatnonzero(found.group < 0)
    weightless = (out, X[out], y[out]) if len(out) else None
    return Source(rows, X.shape[1], n, found, y, w, weightless)


def mapped(source: Source, mapping: FeatureMap | None) -> Source:
    """The source with its features after a map."""
    if mapping is None:
        return source
    rows: Rows = MappedRows(source.rows, mapping)
    if isinstance(source.rows, ArrayRows) and source.n is not None:
        rows = ArrayRows(mapping(source.rows.X), source.rows.y, source.rows.w)
    return replace(source, rows=rows, p=mapping.T.shape[1])


def in_memory(source: Source, distance: Distance) -> Source:
    """The source with all of its rows brought into memory, and duplicates merged."""
    if source.n is not None:
        return source
    X, y, w = source.rows.take(np.arange(source.rows.n))
    return array_source(X, y, w, distance)
