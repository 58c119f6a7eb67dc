"""Cholesky factors of K + lambda I, made in place, and what is computed from them.

On an idle machine the threads of LAPACK factor matrices of some thousand rows. Others are worked on
in our own threads, each with one BLAS thread. They meet once a panel, where the threads of a BLAS
wait for each other in each of its calls: where other processes keep processors busy, that takes
several times as long. Nor do they crash, as a threaded dpotrf does on large matrices. Large
products are NumPy's: SciPy's functions hold Python's lock.

Factors are in the precision of their matrix: searches that only rank candidates use single.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, lapack
from scipy.linalg.blas import dtrsm, strsm

from .._compute.arrays import EPS, Array, Indices, row_blocks
from .._compute.lapack import factor_in_place
from .._compute.threads import (
    BLAS_ORDER,
    LAPACK_ORDER,
    SMALL_ORDER,
    one_blas_thread,
    our_threads,
    processors,
    threads_pay,
)

# Columns of a panel, and the most rows of it that one thread takes at a time.
PANEL = 384
ROWS = 512

# Columns that one thread solves for at a time: an eighth of them, but a product of fewer than the
# least takes nearly as long, and one of more than a panel is no faster.
FEWEST_COLUMNS = 32

# Penalty of a row from which single precision will do, as no pivot of the factor is much smaller.
# With 3000 rows and a wide kernel, rounding then changes a leave-one-out error by 0.04 %; with a
# tenth of the penalty, by 5 %. Factors with smaller pivots are refused.
ROUGH_PENALTY = 1e-2
ROUGH_PIVOT = 0.9 * ROUGH_PENALTY

# Triangles up to this order are solved by BLAS, whose dtrsm has a fifth of the speed of a product
# and holds Python's lock; larger ones are cut into these and products.
TRIANGLE = 32


@dataclass(frozen=True)
class Factor:
    """Lower Cholesky factor of A in the lower triangle of L; the rest of L is not used."""

    L: Array

    @property
    def rank(self) -> int:
        """Order of A."""
        return len(self.L)

    def solve(self, B: Array) -> Array:
        """A^-1 B; where L is single, of columns near one, which neither overflow nor vanish."""
        if self.L.dtype == np.float64:
            return self._solve(B)
        largest = np.abs(B).max(axis=0)
        unit = 2.0 ** np.round(np.log2(np.where(largest > 0, largest, 1.0)))
        return np.asarray(self._solve(B / unit) * unit)

    def _solve(self, B: Array) -> Array:
        if len(self.L) > SMALL_ORDER:
            return self._solved(B, _solve_lower, _solve_transposed)
        with one_blas_thread():
            # C order: the lower triangle of L is the upper one of the Fortran array L.T.
            potrs = lapack.dpotrs if self.L.dtype == np.float64 else lapack.spotrs
            X, _ = potrs(self.L.T, B, lower=0)
        return np.asarray(X).reshape(B.shape)

    def half_solve(self, B: Array) -> Array:
        """L^-1 B, whose columns have the squared norms b' A^-1 b."""
        if len(self.L) > SMALL_ORDER or B.size > SMALL_ORDER * FEWEST_COLUMNS:
            return self._solved(B, _solve_lower)
        with one_blas_thread():
            trtrs = lapack.dtrtrs if self.L.dtype == np.float64 else lapack.strtrs
            X, _ = trtrs(self.L.T, B, lower=0, trans=1)
        return np.asarray(X).reshape(B.shape)

    def _solved(self, B: Array, *steps: Callable[[Array, Array], None]) -> Array:
        """B after these steps with L, some columns at a time."""
        X = np.array(B, dtype=self.L.dtype, order="C").reshape(len(B), -1)

        def work(columns: slice) -> None:
            for step in steps:
                step(self.L, X[:, columns])

        self._by_columns(work, X.shape[1])
        return X.reshape(B.shape)

    def log_determinant(self) -> float:
        """Log |A|."""
        return float(2.0 * np.log(np.diagonal(self.L)).sum())

    def inverse_diagonal(self) -> Array:
        """Diagonal of A^-1: column sums of squares of L^-1."""
        return self.inverse_diagonal_at(np.arange(len(self.L)))

    def inverse_diagonal_at(self, places: Indices, *, rough: bool = False) -> Array:
        """Diagonal of A^-1 at these places, which rise; `rough` is in single precision."""
        diagonal = np.empty(len(places))

        def work(columns: slice) -> None:
            T = self._half_inverse(places[columns], self._precision(rough))
            np.einsum("ij,ij->j", T, T, out=diagonal[columns])

        self._by_columns(work, len(places))
        return diagonal

    def last_inverse_diagonal(self, m: int) -> Array:
        """Last m entries of the diagonal of A^-1, from the last m x m block of L alone."""
        return Factor(self.L[-m:, -m:]).inverse_diagonal()

    def inverse_columns(self, places: Indices, *, rough: bool = False) -> Array:
        """Columns of A^-1 at these places, which rise, of shape (n, d)."""
        found = np.zeros((len(self.L), len(places)), dtype=self._precision(rough))

        def work(columns: slice) -> None:
            T = self._half_inverse(places[columns], found.dtype)
            found[-len(T) :, columns] = T
            _solve_transposed(self.L, found[:, columns])

        self._by_columns(work, len(places))
        return found

    def _by_columns(self, work: Callable[[slice], None], n_columns: int) -> None:
        """Call `work` on some columns at a time, in our threads if L is large."""
        is_large = len(self.L) > SMALL_ORDER
        width = min(PANEL, max(FEWEST_COLUMNS, -(-n_columns // 8))) if is_large else PANEL
        parts = row_blocks(n_columns, width)
        with our_threads(len(parts) if is_large else 1) as each:
            for _ in each(work, parts):
                pass

    def _precision(self, rough: bool) -> np.dtype[Any]:
        """Single precision if it will do, else that of L."""
        return np.dtype(np.float32) if rough else self.L.dtype

    def _half_inverse(self, places: Indices, dtype: np.dtype[Any]) -> Array:
        """Columns of L^-1 at these places, which rise; rows above the first place are left out.

        They are zero.
        """
        first = int(places[0])
        T = np.zeros((len(self.L) - first, len(places)), dtype=dtype)
        T[places - first, np.arange(len(places))] = 1.0
        _solve_lower(self.L[first:, first:], T)
        return T


@dataclass(frozen=True)
class BlockFactor:
    """Factor of a block-diagonal matrix: the rows of each block, in rising order, and its factor.

    Rows in no block stand alone, with one entry of `diagonal` each.
    """

    diagonal: Array
    blocks: list[tuple[Indices, Factor]]

    def solve(self, B: Array) -> Array:
        """A^-1 B."""
        X = (B.T / self.diagonal).T
        for rows, block in self.blocks:
            X[rows] = block.solve(B[rows])
        return np.asarray(X)

    def log_determinant(self) -> float:
        """Logarithm of |A|."""
        alone = np.ones(len(self.diagonal), dtype=bool)
        for rows, _ in self.blocks:
            alone[rows] = False
        blocks = sum(block.log_determinant() for _, block in self.blocks)
        return float(np.log(self.diagonal[alone]).sum() + blocks)

    def inverse_diagonal(self) -> Array:
        """Diagonal of A^-1."""
        inverse = 1.0 / self.diagonal
        for rows, block in self.blocks:
            inverse[rows] = block.inverse_diagonal()
        return inverse

    def last_inverse_diagonal(self, m: int) -> Array:
        """Last m entries of the diagonal of A^-1."""
        return self.inverse_diagonal()[-m:]


def _solve_lower(L: Array, B: Array) -> None:
    """B becomes L^-1 B, by halves of L: nearly all of the work is in products.

    It is done in the precision of B.
    """
    half = _half(len(L))
    if not half:
        # B' L^-T in Fortran's order is L^-1 B in C order: of full rows no copy is made.
        B[:] = _trsm(B)(1.0, L.T, B.T, side=1, lower=0).T
        return
    _solve_lower(L[:half, :half], B[:half])
    for rows, part in _in_precision_of(B, L[half:, :half]):
        B[half:][rows] -= part @ B[:half]
    _solve_lower(L[half:, half:], B[half:])


def _solve_transposed(L: Array, B: Array) -> None:
    """B becomes L^-T B, from its last rows on."""
    half = _half(len(L))
    if not half:
        B[:] = _trsm(B)(1.0, L.T, B.T, side=1, lower=0, trans_a=1).T
        return
    _solve_transposed(L[half:, half:], B[half:])
    for rows, part in _in_precision_of(B, L[half:, :half]):
        B[:half] -= part.T @ B[half:][rows]
    _solve_transposed(L[:half, :half], B[:half])


def _in_precision_of(B: Array, L: Array) -> Iterator[tuple[slice, Array]]:
    """L, or some rows of it after the others if each must be copied for the precision of B."""
    for rows in row_blocks(len(L), len(L) if L.dtype == B.dtype else ROWS):
        yield rows, L[rows].astype(B.dtype, copy=False)


def _trsm(B: Array) -> Callable[..., Array]:
    """BLAS's triangular solve in the precision of B."""
    return dtrsm if B.dtype == np.float64 else strsm


def _half(n: int) -> int:
    """Rows of the upper half of a triangle, a multiple of TRIANGLE; zero if it is small."""
    return -(-n // (2 * TRIANGLE)) * TRIANGLE if n > TRIANGLE else 0


def factor(K: Array, lam: Array | float) -> Factor:
    """Factor A = K + diag(lam) in place, in the lower triangle of K.

    Raises
    ------
    LinAlgError
        If A is not positive definite, or only by rounding; the lower triangle of K is then of no
        use.
    """
    K.flat[:: len(K) + 1] += lam
    diagonal = np.diagonal(K).copy()
    by_blas = len(K) <= LAPACK_ORDER and threads_pay(len(K))
    if by_blas or len(K) <= BLAS_ORDER or processors() == 1:
        with nullcontext() if by_blas else one_blas_thread():
            info = factor_in_place(K)
        if info:
            raise LinAlgError(f"K + lambda I is not positive definite (leading minor {info}).")
    else:
        _factor_by_panels(K)
    pivots = np.diagonal(K) ** 2 / diagonal
    if pivots.min() <= (len(K) * EPS if K.dtype == np.float64 else ROUGH_PIVOT):
        raise LinAlgError(f"K + lambda I is singular to rounding (pivot {pivots.min():.3g}).")
    return Factor(K)


def _factor_by_panels(A: Array) -> None:
    """Left-looking Cholesky: each part of a panel is one product with all columns before it."""
    n, threads = len(A), processors()
    corner = _factored_corner(A, slice(0, min(PANEL, n)))
    with our_threads(-(-n // PANEL)) as each:
        for panel in row_blocks(n, PANEL):
            following = min(panel.stop + PANEL, n)
            rounds = -(-(n - following) // (ROWS * threads))
            edges = np.linspace(following, n, rounds * threads + 1).astype(int)
            edges = np.unique([panel.stop, *edges])
            parts = [slice(*ends) for ends in pairwise(edges.tolist())]
            corner, *_ = *each(partial(_finish, A, panel, corner), parts), corner


def _finish(A: Array, panel: slice, corner: Array, rows: slice) -> Array | None:
    """Compute some rows below a corner; those of the next corner are then factored, too."""
    P = A[panel, : panel.start] @ A[rows, : panel.start].T
    np.subtract(A[rows, panel].T, P, out=P)
    _solve_lower(corner, P)
    A[rows, panel] = P.T
    return _factored_corner(A, rows) if rows.start == panel.stop else None


def _factored_corner(A: Array, rows: slice) -> Array:
    """Factor of the block on the diagonal, put there, and returned in a lower triangle."""
    P = A[rows, : rows.start]
    L = A[rows, rows] - P @ P.T
    info = factor_in_place(L)
    if info:
        raise LinAlgError(f"K + lambda I is not positive definite (minor {rows.start + info}).")
    np.copyto(A[rows, rows], L, where=np.tri(len(L), dtype=bool))
    return np.asarray(L)
