"""The sums that a Nystrom model is made of, from one pass over rows in blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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
    """[Phi, 1]'W [Phi, 1, y] of some rows, from its diagonal on in slabs of rows, and numbers.

    It is summed in twice the digits of a double, so that neither the number of blocks nor the order
    in which they are added leaves a trace.
    """

    slabs: list[Array]  # the last one: y'Wy of each target, number of rows, sum of log weights
    low: list[Array]  # what rounding has taken from them

    def __add__(self, other: Moments) -> Moments:
        mine = Moments(_copied(self.slabs), _copied(self.low))
        mine += other
        return mine

    def __iadd__(self, other: Moments) -> Moments:
        """The same, in the memory of the first."""
        for slab, low in zip(self.low, other.low, strict=True):
            slab += low
        self.add(other.slabs, _room(self.slabs[0].shape[1] + 1))
        return self

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

    def arrays(self) -> tuple[Array, Array]:
        """The matrix, from its diagonal on, and the numbers."""
        M = np.zeros((sum(map(len, self.slabs[:-1])), self.slabs[0].shape[1]))
        numbers = np.zeros(self.slabs[-1].shape[1])
        for part, slab, low in zip(_slabs(M, numbers), self.slabs, self.low, strict=True):
            np.add(slab, low, out=part)
        return M, numbers


def _copied(slabs: list[Array]) -> list[Array]:
    return [slab.copy() for slab in slabs]


def _slabs(M: Array, numbers: Array) -> list[Array]:
    """The matrix, slab by slab, each from its first column on the diagonal on; then the numbers."""
    return [*(M[rows, rows.start :] for rows in row_blocks(len(M), SLAB)), numbers[None]]


def _room(width: int) -> Array:
    """Memory for what is between the steps of a sum of slabs."""
    return np.empty((3, SLAB, width))


@dataclass(frozen=True)
class Summing:
    """The work of that pass on one block of rows, span by span."""

    what: ClassVar[str] = "their sums"
    phi: Features
    shift: Array

    def __call__(self, X: Array, y: Array, w: Array | None) -> Moments:
        m, k = len(self.phi.Z), y.shape[1]
        shapes = [
            (rows.stop - rows.start, m + 1 + k - rows.start) for rows in row_blocks(m + 1, SLAB)
        ]
        slabs, low = ([np.zeros(shape) for shape in [*shapes, (1, k + 2)]] for _ in range(2))
        return self.onto(Moments(slabs, low), X, y, w)

    def onto(self, sums: Moments, X: Array, y: Array, w: Array | None) -> Moments:
        """The sums with those of one more block, in the same memory."""
        m = len(self.phi.Z)
        for rows in spans(len(X)):
            P, M, room = self._rooms(rows.stop - rows.start, m, y.shape[1])
            for part in row_blocks(len(P), rows_per_block(m)):
                self.phi.kernel(X[rows][part], P[part, :-1])
            if not self.phi.late:
                self.phi.whiten(P[:, :-1])
            P[:, -1] = 1.0
            T, v = np.subtract(y[rows], self.shift, order="C"), np.ones(len(P))
            if w is not None:
                v, root = w[rows][w[rows] > 0], np.sqrt(w[rows])[:, None]
                P *= root
                T *= root
            # NumPy makes half of it, and other threads go on; SciPy's dsyrk holds Python's lock.
            np.matmul(P.T, P, out=M[:, : m + 1])
            np.matmul(P.T, T, out=M[:, m + 1 :])
            count = np.maximum(v, 1.0).sum()  # a row of weight two is two rows
            numbers = np.array([*np.einsum("ij,ij->j", T, T), count, np.log(v).sum()])
            sums.add(_slabs(M, numbers), room)
        return sums

    def _rooms(self, rows: int, m: int, k: int) -> tuple[Array, Array, Array]:
        """Memory for so many rows, their products and its sum, the same in all of a thread.

        Arrays of this size are fetched from the system and cleared, which takes time.
        """
        mine = self._of_threads.__dict__
        if len(mine.get("rows", ())) < rows:
            mine["rows"] = np.empty((rows, m + 1))
        if "products" not in mine:
            mine["products"], mine["room"] = np.empty((m + 1, m + 1 + k)), _room(m + 2 + k)
        return mine["rows"][:rows], mine["products"], mine["room"]

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
    m, (M, numbers) = len(phi.Z), found.arrays()
    yy, (n, log_weight) = numbers[:-2], numbers[-2:].tolist()
    weight = float(M[m, m])
    rest = M[m, m + 1 :] / weight if centred else np.zeros(len(shift))
    # From its diagonal on M has the lower triangle of G, which is in Fortran's order.
    G, ones = M[:m, :m].copy().T, M[:m, m]
    B = np.column_stack([M[:m, m + 1 :] - np.outer(ones, rest), ones])
    if phi.late:
        with blas_threads(m):
            G, _ = lapack.dsygst(G, phi.L, lower=1, overwrite_a=1)
        B = np.asarray(dtrsm(1.0, phi.L, B, lower=1))
    yy = np.maximum(yy - weight * rest**2, 0.0)
    return Sums(G, B, yy, shift + rest, n, weight, log_weight)


def spread(block: Block, most: int) -> Block:
    """At most so many rows of a block, evenly chosen."""
    X, y, w = block
    some = evenly(len(X), most)
    return X[some], y[some], None if w is None else w[some]
