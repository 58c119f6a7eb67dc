"""Cholesky factors of K + lambda I, made in place, also where LAPACK's own would crash."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, lapack
from scipy.linalg.blas import dtrsm

from .._compute.arrays import EPS, Array, Indices
from .._compute.threads import LAPACK_ORDER

# Matrices above LAPACK_ORDER are factored by panels of this many columns, with products by gemm.
PANEL = 1024
INVERSE_PANEL = 384


@dataclass(frozen=True)
class Factor:
    """Lower Cholesky factor of A in the lower triangle of L; the rest of L is not used."""

    L: Array

    @property
    def rank(self) -> int:
        """Order of A."""
        return len(self.L)

    def solve(self, B: Array) -> Array:
        """A^-1 B."""
        # C order: the lower triangle of L is the upper one of the Fortran array L.T.
        X, _ = lapack.dpotrs(self.L.T, B, lower=0)
        return np.asarray(X).reshape(B.shape)

    def half_solve(self, B: Array) -> Array:
        """L^-1 B, whose columns have the squared norms b' A^-1 b."""
        X, _ = lapack.dtrtrs(self.L.T, B, lower=0, trans=1)
        return np.asarray(X).reshape(B.shape)

    def log_determinant(self) -> float:
        """Log |A|."""
        return float(2.0 * np.log(np.diagonal(self.L)).sum())

    def inverse_diagonal(self) -> Array:
        """Diagonal of A^-1: column sums of squares of L^-1, made panel by panel."""
        n = len(self.L)
        diagonal = np.empty(n)
        for start in range(0, n, INVERSE_PANEL):
            T = self._inverse_columns(start, min(start + INVERSE_PANEL, n))
            diagonal[start : start + T.shape[1]] = np.einsum("ij,ij->j", T, T)
        return diagonal

    def last_inverse_diagonal(self, m: int) -> Array:
        """Last m entries of the diagonal of A^-1, from the last m x m block of L alone."""
        corner, _ = lapack.dtrtri(np.asfortranarray(np.tril(self.L[-m:, -m:])), lower=1)
        return np.einsum("ij,ij->j", corner, corner)

    def _inverse_columns(self, start: int, stop: int) -> Array:
        """Columns start:stop of L^-1, rows from start on (those above are zero)."""
        n, size = len(self.L), stop - start
        T = np.zeros((n - start, size))
        T[:size] = np.eye(size)
        for i in range(start, n, INVERSE_PANEL):
            j = min(i + INVERSE_PANEL, n)
            rows = slice(i - start, j - start)
            T[rows] -= self.L[i:j, start:i] @ T[: i - start]
            T[rows] = _solve_corner(self.L[i:j, i:j], T[rows])
        return T


@dataclass(frozen=True)
class LastFactor(Factor):
    """A factor that is used up when its inverse diagonal is computed: L becomes L^-1 in place."""

    def inverse_diagonal(self) -> Array:
        """Diagonal of A^-1."""
        n = len(self.L)
        if n > LAPACK_ORDER:
            return super().inverse_diagonal()
        lapack.dtrtri(self.L.T, lower=0, overwrite_c=1)
        diagonal = np.zeros(n)
        for start in range(0, n, INVERSE_PANEL):
            stop = min(start + INVERSE_PANEL, n)
            corner = np.tril(self.L[start:stop, start:stop])
            diagonal[start:stop] += np.einsum("ij,ij->j", corner, corner)
            T = self.L[start:stop, :start]
            diagonal[:start] += np.einsum("ij,ij->j", T, T)
        return diagonal


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


def _solve_corner(L: Array, B: Array) -> Array:
    """L^-1 B for a small lower triangle."""
    # B' L^-T in Fortran's order is L^-1 B in C order: no copy of B is made.
    return np.asarray(dtrsm(1.0, L.T, B.T, side=1, lower=0)).T


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
    if len(K) <= LAPACK_ORDER:
        _, info = lapack.dpotrf(K.T, lower=0, overwrite_a=1, clean=0)
        if info:
            raise LinAlgError(f"K + lambda I is not positive definite (leading minor {info}).")
    else:
        _factor_by_panels(K)
    pivots = np.diagonal(K) ** 2 / diagonal
    if pivots.min() <= len(K) * EPS:
        raise LinAlgError(f"K + lambda I is singular to rounding (pivot {pivots.min():.3g}).")
    return Factor(K)


def _factor_by_panels(A: Array) -> None:
    """Left-looking Cholesky: each panel is one product with all columns before it."""
    n = len(A)
    for start in range(0, n, PANEL):
        stop = min(start + PANEL, n)
        P = _panel_product(A, start, stop)
        np.subtract(A[start:, start:stop], P, out=P)
        corner, info = lapack.dpotrf(P[: stop - start].T, lower=0, clean=1)
        if info:
            raise LinAlgError(f"K + lambda I is not positive definite (minor {start + info}).")
        lower = np.tril_indices(stop - start)
        A[start:stop, start:stop][lower] = corner.T[lower]
        below = P[stop - start :].T  # in Fortran's order: BLAS works on it in place
        A[stop:, start:stop] = dtrsm(1.0, corner, below, lower=0, trans_a=1, overwrite_b=1).T


def _panel_product(A: Array, start: int, stop: int) -> Array:
    """L[start:, :start] @ L[start:stop, :start].T, never as a symmetric product."""
    product = np.empty((len(A) - start, stop - start))
    right = A[start:stop, :start].T
    np.matmul(A[start:stop, :start], right.copy(), out=product[: stop - start])
    np.matmul(A[stop:, :start], right, out=product[stop - start :])
    return product
