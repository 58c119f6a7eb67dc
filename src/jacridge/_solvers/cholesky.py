"""Cholesky factors of K + lambda I, computed in place, with solutions and inverses.

Large matrices are factored in our own threads, each with one BLAS thread. They synchronise once per
panel; BLAS threads synchronise in every call, which is several times slower when other processes
use the processors. A threaded dpotrf also crashes on large matrices.

Factors have the precision of their matrix: searches that only rank candidates use single precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from .._compute.arrays import EPS, Array, Indices, row_blocks
from .._compute.blas import (
    factor_in_place,
    solve_lower,
    solve_right,
    subtract_product,
    subtract_square,
)
from .._compute.threads import (
    SMALL_ORDER,
    in_threads,
    one_blas_thread,
    our_threads,
    processors,
)

# Columns of a panel: a sixteenth of all, within these limits. Products with fewer columns are slow;
# with more, the triangle on the diagonal keeps one thread busy too long.
PANEL = (96, 256)

# Smallest and largest number of columns that one thread solves for at a time. Products with fewer
# columns take nearly as long, and more columns are no faster.
COLUMNS = (32, 384)

# Number of parts if the columns cost less and less, as in an inverse: threads then end together.
UNEVEN_PARTS = 8

# Number of entries in the columns from which threads pay off.
MANY_ENTRIES = 1 << 19

# Number of rows of a factor that are converted to single precision at a time.
ROWS = 512

# Row penalty above which single precision suffices: no pivot is much smaller.
# With 3000 rows and a wide kernel, rounding then changes a leave-one-out error by 0.04 %; with a
# tenth of the penalty, by 5 %. Factors with smaller pivots are refused.
ROUGH_PENALTY = 1e-2
ROUGH_PIVOT = 0.9 * ROUGH_PENALTY

# Triangles up to this order are solved by BLAS; larger ones are split into such triangles and
# products, because some BLAS libraries solve triangles at half the speed of products.
TRIANGLE = 192


@dataclass(frozen=True)
class Factor:
    """Lower Cholesky factor of A in the lower triangle of L; the rest of L is not used."""

    L: Array

    @property
    def rank(self) -> int:
        """Order of A."""
        return len(self.L)

    def solve(self, B: Array) -> Array:
        """A^-1 B.

        In single precision, columns are scaled to about one, to avoid overflow and underflow.
        """
        if self.L.dtype == np.float64:
            return self._solve(B)
        largest = np.abs(B).max(axis=0)
        unit = 2.0 ** np.round(np.log2(np.where(largest > 0, largest, 1.0)))
        return self._solve(B / unit) * unit

    def _solve(self, B: Array) -> Array:
        return self._solved(B, _solve_lower, _solve_transposed)

    def half_solve(self, B: Array) -> Array:
        """L^-1 B, whose columns have the squared norms b' A^-1 b."""
        return self._solved(B, _solve_lower)

    def _solved(self, B: Array, *steps: Callable[[Array, Array], None]) -> Array:
        """B after the given steps with L, computed for some columns at a time."""
        X = np.array(B, dtype=self.L.dtype, order="C").reshape(len(B), -1)

        def work(columns: slice) -> None:
            for step in steps:
                step(self.L, X[:, columns])

        self._by_columns(work, X.shape[1], processors())
        return X.reshape(B.shape)

    def log_determinant(self) -> float:
        """Log |A|."""
        return float(2.0 * np.log(np.diagonal(self.L)).sum())

    def inverse_diagonal(self, places: Indices | None = None, *, rough: bool = False) -> Array:
        """Diagonal of A^-1: column sums of squares of L^-1.

        With `places`, in increasing order, only these entries; `rough` uses single precision.
        """
        places = np.arange(len(self.L)) if places is None else places
        diagonal = np.empty(len(places))

        def work(columns: slice) -> None:
            T = self._half_inverse(places[columns], self._precision(rough))
            np.einsum("ij,ij->j", T, T, out=diagonal[columns])

        self._by_columns(work, len(places))
        return diagonal

    def inverse_columns(self, places: Indices, *, rough: bool = False) -> Array:
        """Columns of A^-1 with these increasing indices, of shape (n, d)."""
        found = np.zeros((len(self.L), len(places)), dtype=self._precision(rough))

        def work(columns: slice) -> None:
            T = self._half_inverse(places[columns], found.dtype)
            found[-len(T) :, columns] = T
            _solve_transposed(self.L, found[:, columns])

        self._by_columns(work, len(places))
        return found

    def _by_columns(
        self, work: Callable[[slice], None], n_columns: int, parts: int = UNEVEN_PARTS
    ) -> None:
        """Call `work` on some columns at a time, in our threads if there are many columns."""
        are_many = len(self.L) * n_columns > MANY_ENTRIES
        width = int(np.clip(-(-n_columns // parts), *COLUMNS)) if are_many else COLUMNS[1]
        in_threads(work, row_blocks(n_columns, width), alone=not are_many)

    def _precision(self, rough: bool) -> np.dtype[Any]:
        """Single precision if that is accurate enough, else the precision of L."""
        return np.dtype(np.float32) if rough else self.L.dtype

    def _half_inverse(self, places: Indices, dtype: np.dtype[Any]) -> Array:
        """Columns of L^-1 with these increasing indices, without the rows above the first index.

        The omitted rows are zero.
        """
        first = int(places[0])
        T = np.zeros((len(self.L) - first, len(places)), dtype=dtype)
        T[places - first, np.arange(len(places))] = 1.0
        _solve_lower(self.L[first:, first:], T)
        return T


@dataclass(frozen=True)
class BlockFactor:
    """Factor of a block-diagonal matrix: the rows of each block, in increasing order, and a factor.

    Each row outside all blocks has one entry of `diagonal`.
    """

    diagonal: Array
    blocks: list[tuple[Indices, Factor]]

    def solve(self, B: Array) -> Array:
        """A^-1 B."""
        X = (B.T / self.diagonal).T
        for rows, block in self.blocks:
            X[rows] = block.solve(B[rows])
        return X

    def log_determinant(self) -> float:
        """Logarithm of |A|."""
        alone = np.ones(len(self.diagonal), dtype=bool)
        for rows, _ in self.blocks:
            alone[rows] = False
        blocks = sum(block.log_determinant() for _, block in self.blocks)
        return float(np.log(self.diagonal[alone]).sum() + blocks)

    def inverse_diagonal(self, places: Indices | None = None, *, rough: bool = False) -> Array:
        """Diagonal of A^-1, or its entries at some places."""
        inverse = 1.0 / self.diagonal
        for rows, block in self.blocks:
            inverse[rows] = block.inverse_diagonal(rough=rough)
        return inverse if places is None else inverse[places]


def _solve_lower(L: Array, B: Array) -> None:
    """Replace B by L^-1 B, splitting L in halves, in the precision of B."""
    half = _half(len(L))
    if not half:
        solve_lower(_triangle(L, B.dtype), B)
        return
    _solve_lower(L[:half, :half], B[:half])
    for rows, part in _in_precision_of(B, L[half:, :half]):
        subtract_product(B[half:][rows], part, B[:half])
    _solve_lower(L[half:, half:], B[half:])


def _solve_transposed(L: Array, B: Array) -> None:
    """Replace B by L^-T B, starting from the last rows."""
    half = _half(len(L))
    if not half:
        solve_lower(_triangle(L, B.dtype), B, transposed=True)
        return
    _solve_transposed(L[half:, half:], B[half:])
    for rows, part in _in_precision_of(B, L[half:, :half]):
        subtract_product(B[:half], part.T, B[half:][rows])
    _solve_transposed(L[:half, :half], B[:half])


def _triangle(L: Array, dtype: np.dtype[Any]) -> Array:
    """L in this precision; entries above the diagonal are undefined, and may overflow."""
    with np.errstate(over="ignore"):
        return L.astype(dtype, copy=False)


def _in_precision_of(B: Array, L: Array) -> Iterator[tuple[slice, Array]]:
    """L as a whole, or in blocks of rows if these must be converted to the precision of B."""
    for rows in row_blocks(len(L), len(L) if L.dtype == B.dtype else ROWS):
        yield rows, L[rows].astype(B.dtype, copy=False)


def _half(n: int) -> int:
    """Rows of the upper half of a triangle, a multiple of TRIANGLE; zero if it is small."""
    return -(-n // (2 * TRIANGLE)) * TRIANGLE if n > TRIANGLE else 0


def factor(K: Array, lam: Array | float, least: float | None = None) -> Factor:
    """Factor A = K + diag(lam) in place, in the lower triangle of K.

    Pivots must exceed `least` times the diagonal of A. The default excludes rounding errors in
    double precision, and inaccurate solutions in single precision.

    Raises
    ------
    LinAlgError
        If A is not positive definite to working precision. The lower triangle of K is then
        undefined.
    """
    K.flat[:: len(K) + 1] += lam
    diagonal = np.diagonal(K).copy()
    if len(K) <= SMALL_ORDER or processors() == 1:
        with one_blas_thread():
            _factor_corner(K, slice(0, len(K)))
    else:
        _factor_by_panels(K)
    pivots = np.diagonal(K) ** 2 / diagonal
    if least is None:
        least = len(K) * EPS if K.dtype == np.float64 else ROUGH_PIVOT
    if pivots.min() <= least:
        raise LinAlgError(f"K + lambda I is singular to rounding (pivot {pivots.min():.3g}).")
    return Factor(K)


def _factor_by_panels(A: Array) -> None:
    """Left-looking Cholesky: each part of a panel is one product with all columns before it."""
    n, threads = len(A), processors()
    size = int(np.clip(n // 16, *PANEL))
    _factor_corner(A, slice(0, size))
    with our_threads(threads) as each:
        for panel in row_blocks(n, size):
            following = slice(panel.stop, min(panel.stop + size, n))
            first = following.stop + _head_start(panel, following, n, threads)
            edges = [panel.stop, *np.linspace(first, n, threads).astype(int)]
            parts = [slice(*ends) for ends in pairwise(edges) if ends[0] < ends[1]]
            for _ in each(partial(_finish, A, panel, following), parts):
                pass


def _head_start(panel: slice, following: slice, n: int, threads: int) -> int:
    """Rows for the thread of the next corner, so that all threads finish at about the same time."""
    width, size = panel.stop - panel.start, following.stop - following.start
    row = width * (2 * panel.start + width)
    corner = size**2 * (following.start + size / 3)
    rows = ((n - following.start) * row - (threads - 1) * corner) / (threads * row)
    return int(np.clip(rows - size, 0, n - following.stop))


def _finish(A: Array, panel: slice, following: slice, rows: slice) -> None:
    """Compute some rows of a panel; the thread with the first rows also factors the next corner."""
    P = A[rows, panel]
    subtract_product(P, A[rows, : panel.start], A[panel, : panel.start].T)
    solve_right(A[panel, panel], P)
    if rows.start == following.start:
        _factor_corner(A, following)


def _factor_corner(A: Array, rows: slice) -> None:
    """Factor the block on the diagonal, with all columns before it."""
    corner = A[rows, rows]
    subtract_square(corner, A[rows, : rows.start])
    info = factor_in_place(corner)
    if info:
        minor = rows.start + info
        raise LinAlgError(f"K + lambda I is not positive definite (leading minor {minor}).")
