"""Nearest-neighbour distances of new rows, compared with those among the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .._compute.arrays import Array, fixed_sample, rows_per_block
from .._compute.threads import for_blocks

if TYPE_CHECKING:
    from .distances import Distance

# Number of training rows whose nearest neighbours are computed, if there are more.
OWN_ROWS = 1000


@dataclass(frozen=True)
class Neighbours:
    """Training rows Z of shape (m, p), or distances between them, as possible neighbours."""

    Z: Array
    distance: Distance

    @cached_property
    def own(self) -> Array:
        """Sorted gaps of the training rows, or of OWN_ROWS of them, to the nearest other one."""
        some = fixed_sample(len(self.Z), OWN_ROWS)
        found = np.empty(len(some))

        def work(rows: slice) -> None:
            gaps = self.distance.gaps(self.Z[some[rows]], self.Z)
            gaps[np.arange(len(gaps)), some[rows]] = np.inf
            found[rows] = gaps.min(axis=1)

        for_blocks(work, len(some), rows_per_block(len(self.Z)))
        return np.sort(found[np.isfinite(found)])

    def shares(self, X: Array) -> Array:
        """For each row of X, the share of the training rows whose nearest neighbour is closer."""
        nearest = np.empty(len(X))

        def work(rows: slice) -> None:
            nearest[rows] = self.distance.gaps(X[rows], self.Z).min(axis=1)

        for_blocks(work, len(X), rows_per_block(len(self.Z)))
        if not len(self.own):  # a single row
            return (nearest > 0).astype(np.float64)
        return np.searchsorted(self.own, nearest, side="left") / len(self.own)
