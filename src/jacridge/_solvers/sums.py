"""Sums from which a Nystrom model is computed, from one pass over rows in blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from threading import local
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.linalg import lapack
from scipy.linalg.blas import dtrsm

from .._compute.arrays import Array, row_blocks
from .._compute.blas import add_gram
from .._compute.threads import lapack_for

if TYPE_CHECKING:
    from .._rows.rows import Rows
    from .landmarks import Features

# Number of rows whose features are held at a time, and number that are computed at a time: a part
# that stays in the cache from one step to the next.
FEATURE_ROWS = 4096
PART_ROWS = 256


@dataclass(frozen=True)
class Sums:
    """Sums of a Nystrom model: G = Phi'W Phi, B = Phi'W [y - mean, 1], and numbers.

    Only the lower triangle of G is used. The mean is zero for a model without an intercept.
    `given_n` is the number of rows as given, `given_within` the part of y'Wy lost by merging them.
    """

    G: Array
    B: Array
    yy: Array
    mean: Array
    n: float
    weight: float
    log_weight: float
    given_n: float
    given_within: Array

    def of(self, targets: slice) -> Sums:
        """The sums for some of the targets."""
        own = {name: getattr(self, name)[targets] for name in ("yy", "mean", "given_within")}
        B = np.hstack([self.B[:, :-1][:, targets], self.B[:, -1:]])
        return replace(self, B=B, **own)


def summed(rows: Rows, phi: Features, shift: Array, *, centred: bool) -> Sums:
    """Sums from one pass over the rows, with whitened features; y is shifted by about its mean."""
    M, numbers = rows.total(Summing(phi, shift)).parts
    m, (n, log_weight) = len(phi.Z), numbers.tolist()
    yy, weight = np.diagonal(M)[m + 1 :], float(M[m, m])
    rest = M[m, m + 1 :] / weight if centred else np.zeros(len(shift))
    # The transpose of the upper triangle is the lower one, in Fortran's order.
    G, ones = M[:m, :m].copy().T, M[:m, m]
    B = np.column_stack([M[:m, m + 1 :] - np.outer(ones, rest), ones])
    if phi.early is not None:
        with lapack_for(m):
            G, _ = lapack.dsygst(G, phi.L_late, lower=1, overwrite_a=1)
        B = dtrsm(1.0, phi.L_late, B, lower=1)
    yy = np.maximum(yy - weight * rest**2, 0.0)
    return Sums(G, B, yy, shift + rest, n, weight, log_weight, n, np.zeros_like(yy))


@dataclass(frozen=True)
class Moments:
    """Upper triangle of P'W P, P = [Phi, 1, y]; the number of rows and the sum of log weights."""

    parts: tuple[Array, Array]

    def __add__(self, other: Moments) -> Moments:
        mine = Moments((self.parts[0].copy(), self.parts[1].copy()))
        mine += other
        return mine

    def __iadd__(self, other: Moments) -> Moments:
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine += theirs
        return self


@dataclass(frozen=True)
class Summing:
    """The pass that computes these sums, for one block of rows."""

    what: ClassVar[str] = "their sums"
    phi: Features
    shift: Array

    def __call__(self, X: Array, y: Array, w: Array | None) -> Moments:
        columns = len(self.phi.Z) + 1 + y.shape[1]
        empty = np.zeros((columns, columns)), np.zeros(2)
        return self.add_to(Moments(empty), X, y, w)

    def add_to(self, sums: Moments, X: Array, y: Array, w: Array | None) -> Moments:
        """The sums plus those of one more block, in the same memory."""
        m, (total, numbers) = len(self.phi.Z), sums.parts
        for rows in row_blocks(len(X), FEATURE_ROWS):
            P = self._scratch(rows.stop - rows.start, m + 1 + y.shape[1])
            for part in row_blocks(len(P), PART_ROWS):
                self.phi.kernel(X[rows][part], P[part, :m])
                self.phi.whiten(P[part, :m], self.phi.early)
            P[:, m] = 1.0
            np.subtract(y[rows], self.shift, out=P[:, m + 1 :])
            v = np.ones(len(P))
            if w is not None:
                v = w[rows][w[rows] > 0]
                P *= np.sqrt(w[rows])[:, None]
            add_gram(total, P)
            numbers += len(v), np.log(v).sum()
        return sums

    def _scratch(self, rows: int, columns: int) -> Array:
        """A scratch array of each thread: memory of this size is slow to get from the system."""
        mine = self._of_threads.__dict__
        if len(mine.get("rows", ())) < rows:
            mine["rows"] = np.empty((rows, columns))
        return mine["rows"][:rows]

    @cached_property
    def _of_threads(self) -> local:
        return local()

    def __getstate__(self) -> dict[str, Any]:
        """State for other workers, without the scratch array."""
        return {"phi": self.phi, "shift": self.shift}
