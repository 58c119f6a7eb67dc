"""The sums that a Nystrom model is made of, from one pass over rows in blocks."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import add, iadd
from threading import local
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import lapack
from scipy.linalg.blas import dtrsm

from ._checks import Array
from ._distances import row_blocks, rows_per_block
from ._landmarks import Features, blas_threads, evenly
from ._streams import Block, Rows


@dataclass(frozen=True)
class Sums:
    """What a pass over the rows keeps: G = Phi'W Phi, B = Phi'W [y, 1], and numbers.

    The mean of y is taken away from it. Of G only the lower triangle is looked at.
    """

    G: Array
    B: Array
    yy: Array
    n: float
    weight: float
    log_weight: float

    def __add__(self, other: Sums) -> Sums:
        return Sums(*map(add, self._parts(), other._parts()))

    def __iadd__(self, other: Sums) -> Sums:
        """The same, in the memory of the first."""
        return Sums(*map(iadd, self._parts(), other._parts()))

    def _parts(self) -> list[Any]:
        return [getattr(self, field.name) for field in fields(self)]


@dataclass(frozen=True)
class Summing:
    """The work of that pass on one block of rows."""

    what: ClassVar[str] = "their sums"
    phi: Features
    mean: Array

    def __call__(self, X: Array, y: Array, w: Array | None) -> Sums:
        m, k = len(self.phi.Z), y.shape[1]
        nothing = Sums(np.zeros((m, m)), np.zeros((m, k + 1)), np.zeros(k), 0.0, 0.0, 0.0)
        return self.onto(nothing, X, y, w)

    def onto(self, sums: Sums, X: Array, y: Array, w: Array | None) -> Sums:
        """The sums with those of one more block, in the same memory."""
        m, (G, B, yy) = len(self.phi.Z), (sums.G, sums.B, sums.yy)
        room, KK = self._rooms(min(len(X), block_rows(m)))
        for rows in row_blocks(len(X), block_rows(m)):
            K = self.phi.kernel(X[rows], room)
            K = K if self.phi.late else self.phi.whiten(K)
            T = np.column_stack([y[rows] - self.mean, np.ones(len(K))])
            if w is not None:
                K *= np.sqrt(w[rows])[:, None]
                T *= np.sqrt(w[rows])[:, None]
            # NumPy makes half of it, and other threads go on; SciPy's dsyrk holds Python's lock.
            G += np.matmul(K.T, K, out=KK)
            B += K.T @ T
            yy += np.einsum("ij,ij->j", T[:, :-1], T[:, :-1])
        some = np.ones(len(X)) if w is None else w[w > 0]
        return Sums(
            G,
            B,
            yy,
            sums.n + float(np.maximum(some, 1.0).sum()),  # a row of weight two is two rows
            sums.weight + float(some.sum()),
            sums.log_weight + float(np.log(some).sum()),
        )

    def _rooms(self, rows: int) -> tuple[Array, Array]:
        """Memory for a block of so many rows and for its product, the same in all of a thread.

        Arrays of this size are fetched from the system and cleared, which takes time.
        """
        mine, m = self._of_threads.__dict__, len(self.phi.Z)
        if len(mine.get("room", ())) < rows:
            mine["room"] = np.empty((rows, m))
        if "KK" not in mine:
            mine["KK"] = np.empty((m, m))
        return mine["room"], mine["KK"]

    @cached_property
    def _of_threads(self) -> local:
        return local()

    def __getstate__(self) -> dict[str, Any]:
        """What workers get of each other: not the memory that belongs to threads."""
        return {"phi": self.phi, "mean": self.mean}


def block_rows(m: int) -> int:
    """Rows of a block with m features: enough of them for a fast product, few for the memory."""
    return max(rows_per_block(m), 1024)


def summed(rows: Rows, phi: Features, mean: Array) -> Sums:
    """One pass over the rows; G and B are whitened when it returns."""
    sums: Sums = rows.total(Summing(phi, mean))
    if not phi.late:
        return sums
    with blas_threads(len(phi.L)):
        G, _ = lapack.dsygst(sums.G.T, phi.L, lower=1, overwrite_a=1)
    return replace(sums, G=G, B=dtrsm(1.0, phi.L, sums.B, lower=1))


def spread(block: Block, most: int) -> Block:
    """At most so many rows of a block, evenly chosen."""
    X, y, w = block
    some = evenly(len(X), most)
    return X[some], y[some], None if w is None else w[some]
