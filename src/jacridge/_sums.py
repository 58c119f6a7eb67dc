"""The sums that a Nystrom model is made of, from one pass over rows in blocks."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
from scipy.linalg.blas import dtrsm

from ._checks import Array
from ._distances import row_blocks, rows_per_block
from ._landmarks import Features, evenly
from ._streams import Block, Rows


@dataclass(frozen=True)
class Sums:
    """What a pass over the rows keeps: G = Phi'W Phi, B = Phi'W [y, 1], and numbers.

    The mean of y is taken away from it.
    """

    G: Array
    B: Array
    yy: Array
    n: float
    weight: float
    log_weight: float

    def __add__(self, other: Sums) -> Sums:
        names = [field.name for field in fields(self)]
        return Sums(*(getattr(self, name) + getattr(other, name) for name in names))


@dataclass(frozen=True)
class Summing:
    """The work of that pass on one block of rows."""

    what: ClassVar[str] = "their sums"
    phi: Features
    mean: Array

    def __call__(self, X: Array, y: Array, w: Array | None) -> Sums:
        m, k = len(self.phi.Z), y.shape[1]
        G, B, yy = np.zeros((m, m)), np.zeros((m, k + 1)), np.zeros(k)
        # Blocks share their memory: an array of this size is fetched from the system and cleared.
        KK, out = np.empty((m, m)), np.empty((min(len(X), block_rows(m)), m))
        for rows in row_blocks(len(X), block_rows(m)):
            K = self.phi.kernel(X[rows], out)
            K = K if self.phi.late else self.phi.whiten(K)
            T = np.column_stack([y[rows] - self.mean, np.ones(len(K))])
            if w is not None:
                K *= np.sqrt(w[rows])[:, None]
                T *= np.sqrt(w[rows])[:, None]
            # NumPy makes half of it, and other threads go on; SciPy's dsyrk holds Python's lock.
            G += np.matmul(K.T, K, out=KK)
            B += K.T @ T
            yy += np.einsum("ij,ij->j", T[:, :-1], T[:, :-1])
        if w is None:
            return Sums(G, B, yy, float(len(X)), float(len(X)), 0.0)
        some = w[w > 0]
        n = float(np.maximum(some, 1.0).sum())  # a row of weight two is two rows
        return Sums(G, B, yy, n, float(some.sum()), float(np.log(some).sum()))


def block_rows(m: int) -> int:
    """Rows of a block with m features: enough of them for a fast product, few for the memory."""
    return max(rows_per_block(m), 1024)


def summed(rows: Rows, phi: Features, mean: Array) -> Sums:
    """One pass over the rows; G and B are whitened when it returns."""
    sums: Sums = rows.total(Summing(phi, mean))
    if not phi.late:
        return sums
    half = dtrsm(1.0, phi.L, sums.G, lower=1)
    G = dtrsm(1.0, phi.L, half.T, lower=1)
    return replace(sums, G=G, B=dtrsm(1.0, phi.L, sums.B, lower=1))


def spread(block: Block, most: int) -> Block:
    """At most so many rows of a block, evenly chosen."""
    X, y, w = block
    some = evenly(len(X), most)
    return X[some], y[some], None if w is None else w[some]
