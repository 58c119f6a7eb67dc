"""The sums that a Nystrom model is made of, from one pass over rows in blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from threading import local
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import lapack
from scipy.linalg.blas import dtrsm

from ._checks import Array
from ._distances import row_blocks, rows_per_block
from ._landmarks import Features, blas_threads, evenly
from ._streams import Block, Rows, spans

# Rows of a matrix that are added at a time, while they are near the processor.
SLAB = 64


@dataclass(frozen=True)
class Moments:
    """M = [Phi, y, 1]'W [Phi, y, 1] of some rows: its upper triangle, slab of rows by slab.

    It is summed in twice the digits of a double, so that neither the number of blocks nor the order
    in which they are added leaves a trace.
    """

    slabs: list[Array]
    low: list[Array]  # what rounding has taken from them
    n: float
    log_weight: float

    def __add__(self, other: Moments) -> Moments:
        mine = replace(self, slabs=_copied(self.slabs), low=_copied(self.low))
        mine += other
        return mine

    def __iadd__(self, other: Moments) -> Moments:
        """The same, in the memory of the first."""
        for slab, low in zip(self.low, other.low, strict=True):
            slab += low
        self.add(other.slabs, _room(len(self.slabs[0][0])))
        n, log_weight = self.n + other.n, self.log_weight + other.log_weight
        return replace(self, n=n, log_weight=log_weight)

    def add(self, slabs: Iterable[Array], room: Array) -> None:
        """Add to each slab what belongs there, and to `low` what rounding takes from that."""
        for a, b, low in zip(self.slabs, slabs, self.low, strict=True):
            total, taken, lost = room[:, : len(a), : a.shape[1]]
            np.add(a, b, out=total)
            np.subtract(total, a, out=taken)
            low += np.subtract(b, taken, out=lost)  # of b, exactly
            np.subtract(total, taken, out=taken)
            low += np.subtract(a, taken, out=lost)  # of a
            a[...] = total

    def matrix(self) -> Array:
        """M, in its upper triangle."""
        order = len(self.slabs[0][0])
        M = np.zeros((order, order))
        for part, slab, low in zip(_slabs(M), self.slabs, self.low, strict=True):
            np.add(slab, low, out=part)
        return M


def _copied(slabs: list[Array]) -> list[Array]:
    return [slab.copy() for slab in slabs]


def _slabs(M: Array) -> list[Array]:
    """The upper triangle of a matrix, slab by slab, each from its first column on the diagonal."""
    return [M[rows, rows.start :] for rows in row_blocks(len(M), SLAB)]


def _room(order: int) -> Array:
    """Memory for what is between the steps of a sum of slabs."""
    return np.empty((3, SLAB, order))


@dataclass(frozen=True)
class Summing:
    """The work of that pass on one block of rows, span by span."""

    what: ClassVar[str] = "their sums"
    phi: Features
    shift: Array

    def __call__(self, X: Array, y: Array, w: Array | None) -> Moments:
        order = len(self.phi.Z) + y.shape[1] + 1
        heights = [rows.stop - rows.start for rows in row_blocks(order, SLAB)]
        slabs, low = (
            [np.zeros((height, order - i * SLAB)) for i, height in enumerate(heights)]
            for _ in range(2)
        )
        return self.onto(Moments(slabs, low, 0.0, 0.0), X, y, w)

    def onto(self, sums: Moments, X: Array, y: Array, w: Array | None) -> Moments:
        """The sums with those of one more block, in the same memory."""
        m, order = len(self.phi.Z), len(self.phi.Z) + y.shape[1] + 1
        for rows in spans(len(X)):
            R, product, room = self._rooms(rows.stop - rows.start, order)
            for part in row_blocks(len(R), rows_per_block(order)):
                self.phi.kernel(X[rows][part], R[part, :m])
            if not self.phi.late:
                self.phi.whiten(R[:, :m])
            R[:, m:-1] = y[rows] - self.shift
            R[:, -1] = 1.0
            if w is not None:
                R *= np.sqrt(w[rows])[:, None]
            # NumPy makes half of it, and other threads go on; SciPy's dsyrk holds Python's lock.
            sums.add(_slabs(np.matmul(R.T, R, out=product)), room)
        some = np.ones(len(X)) if w is None else w[w > 0]
        return replace(
            sums,
            n=sums.n + float(np.maximum(some, 1.0).sum()),  # a row of weight two is two rows
            log_weight=sums.log_weight + float(np.log(some).sum()),
        )

    def _rooms(self, rows: int, order: int) -> tuple[Array, Array, Array]:
        """Memory for so many rows, their product and its sum, the same in all of a thread.

        Arrays of this size are fetched from the system and cleared, which takes time.
        """
        mine = self._of_threads.__dict__
        if len(mine.get("rows", ())) < rows:
            mine["rows"] = np.empty((rows, order))
        if "product" not in mine:
            mine["product"], mine["room"] = np.empty((order, order)), _room(order)
        return mine["rows"][:rows], mine["product"], mine["room"]

    @cached_property
    def _of_threads(self) -> local:
        return local()

    def __getstate__(self) -> dict[str, Any]:
        """What workers get of each other: not the memory that belongs to threads."""
        return {"phi": self.phi, "shift": self.shift}


@dataclass(frozen=True)
class Sums:
    """What a Nystrom model is made of: G = Phi'W Phi, B = Phi'W [y - mean, 1], and numbers.

    Of G only the lower triangle is looked at. The mean is zero for a model without an intercept.
    """

    G: Array
    B: Array
    yy: Array
    mean: Array
    n: float
    weight: float
    log_weight: float


def block_rows(m: int) -> int:
    """Rows of a block with m features: enough of them for a fast product, few for the memory."""
    return max(rows_per_block(m), 1024)


def summed(rows: Rows, phi: Features, shift: Array, *, centred: bool) -> Sums:
    """One pass over the rows, whose y is shifted by about its mean; features are then white."""
    found: Moments = rows.total(Summing(phi, shift))
    m, M = len(phi.Z), found.matrix()
    weight, squares = float(M[-1, -1]), M.diagonal()[m:-1]
    rest = M[m:-1, -1] / weight if centred else np.zeros(len(shift))
    # The upper triangle of M is the lower one of G, which is in Fortran's order.
    G, B = M[:m, :m].copy().T, M[:m, m:].copy()
    B[:, :-1] -= B[:, -1:] * rest
    if phi.late:
        with blas_threads(m):
            G, _ = lapack.dsygst(G, phi.L, lower=1, overwrite_a=1)
        B = np.asarray(dtrsm(1.0, phi.L, B, lower=1))
    yy = np.maximum(squares - weight * rest**2, 0.0)
    return Sums(G, B, yy, shift + rest, found.n, weight, found.log_weight)


def spread(block: Block, most: int) -> Block:
    """At most so many rows of a block, evenly chosen."""
    X, y, w = block
    some = evenly(len(X), most)
    return X[some], y[some], None if w is None else w[some]
