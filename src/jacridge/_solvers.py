"""Exact ridge by Cholesky: dual coefficients, leave-one-out, log-determinant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, lapack
from scipy.linalg.blas import dtrsm

from ._checks import Array

# Above this order a threaded LAPACK may crash (its dsyrk does from about 16,000), so larger
# matrices are factored by panels of this many columns, where all large products are gemm.
LAPACK_ORDER = 8192
PANEL = 1024


@dataclass(frozen=True)
class Factor:
    """Lower Cholesky factor of A, in the lower triangle of L; what is above is not looked at."""

    L: Array

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
        for start in range(0, n, PANEL):
            T = self._inverse_columns(start, min(start + PANEL, n))
            diagonal[start : start + T.shape[1]] = np.einsum("ij,ij->j", T, T)
        return diagonal

    def _inverse_columns(self, start: int, stop: int) -> Array:
        """Columns start:stop of L^-1, rows from start on (those above are zero)."""
        n, size = len(self.L), stop - start
        T = np.zeros((n - start, size))
        T[:size] = np.eye(size)
        for i in range(start, n, PANEL):
            j = min(i + PANEL, n)
            rows = slice(i - start, j - start)
            T[rows] -= self.L[i:j, start:i] @ T[: i - start]
            T[rows] = _solve_corner(self.L[i:j, i:j], T[rows])
        return T


def _solve_corner(L: Array, B: Array) -> Array:
    """L^-1 B for a small lower triangle."""
    # B' L^-T in Fortran's order is L^-1 B in C order: no copy of B is made.
    return np.asarray(dtrsm(1.0, L.T, B.T, side=1, lower=0)).T


def factor(K: Array, lam: Array | float, step: Callable[[int], None] | None = None) -> Factor:
    """Factor A = K + diag(lam) in place, in the lower triangle of K.

    Raises
    ------
    LinAlgError
        If A is not positive definite; the lower triangle of K is then of no use.
    """
    K.flat[:: len(K) + 1] += lam
    if len(K) <= LAPACK_ORDER:
        _, info = lapack.dpotrf(K.T, lower=0, overwrite_a=1, clean=0)
        if info:
            raise LinAlgError(f"K + lambda I is not positive definite (leading minor {info}).")
    else:
        _factor_by_panels(K, step)
    return Factor(K)


def _factor_by_panels(A: Array, step: Callable[[int], None] | None) -> None:
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
        if step is not None:
            step(stop)


def _panel_product(A: Array, start: int, stop: int) -> Array:
    """L[start:, :start] @ L[start:stop, :start].T, never as a symmetric product."""
    product = np.empty((len(A) - start, stop - start))
    right = A[start:stop, :start].T
    np.matmul(A[start:stop, :start], right.copy(), out=product[: stop - start])
    np.matmul(A[stop:, :start], right, out=product[stop - start :])
    return product


@dataclass(frozen=True)
class Eigen:
    """Stand-in for Factor where A is not positive definite: its well-conditioned part."""

    vectors: Array
    values: Array
    smallest: float

    def solve(self, B: Array) -> Array:
        """Solution of smallest norm on the part of A that is positive."""
        return np.asarray(self.vectors @ ((self.vectors.T @ B).T / self.values).T)

    def half_solve(self, B: Array) -> Array:
        """Columns with the squared norms b' A^+ b."""
        return np.asarray(((self.vectors.T @ B).T / np.sqrt(self.values)).T)

    def log_determinant(self) -> float:
        """Log-determinant of the positive part."""
        return float(np.log(self.values).sum())

    def inverse_diagonal(self) -> Array:
        """Diagonal of A^+."""
        return np.asarray(self.vectors**2 @ (1.0 / self.values))


def positive_part(K: Array, lam: Array | float) -> Eigen:
    """Eigenvalues of A = K + diag(lam) above n eps times the largest, K in its lower triangle."""
    K.flat[:: len(K) + 1] += lam
    values, vectors = np.linalg.eigh(K, UPLO="L")
    keep = values > len(K) * np.finfo(float).eps * values[-1]
    return Eigen(vectors[:, keep], values[keep], float(values[0]))


class System(Protocol):
    """A = K + diag(lam) in a form that can be solved with."""

    def solve(self, B: Array) -> Array: ...
    def half_solve(self, B: Array) -> Array: ...
    def inverse_diagonal(self) -> Array: ...
    def log_determinant(self) -> float: ...


@dataclass(frozen=True)
class ExactModel:
    """A solved system: what the estimator predicts with, and what it knows of its errors."""

    A: System
    y: Array
    w: Array
    centred: bool

    @cached_property
    def dual_coef(self) -> Array:
        """A^-1 y, of shape (n, k)."""
        return self.A.solve(self.y)

    @cached_property
    def signal_variance(self) -> Array:
        """y'A^-1 y / n, the most likely scale of the kernel for each target."""
        return np.asarray(np.einsum("ij,ij->j", self.y, self.dual_coef) / len(self.y))

    def explained(self, K_new: Array) -> Array:
        """k'A^-1 k for each row k of K_new: the prior variance that the data take away."""
        half = self.A.half_solve(K_new.T)
        return np.asarray(np.einsum("ij,ij->j", half, half))

    def influence(self, K_new: Array) -> Array:
        """Rows k'A^-1: how much each target moves the predictions."""
        return self.A.solve(K_new.T).T

    @cached_property
    def inverse_diagonal(self) -> Array:
        """Diagonal of A^-1."""
        return self.A.inverse_diagonal()

    @cached_property
    def loo_residuals(self) -> Array:
        """Residual of each row for the model fitted to the others, its mean of y included."""
        # Without row i the mean moves by -shift_i, and y - mean by +shift_i in all rows.
        residuals = self.dual_coef / self.inverse_diagonal[:, None]
        if self.centred and len(self.y) > 1:
            ones = self.A.solve(np.ones(len(self.y)))
            residuals = residuals + self.mean_shift * (ones / self.inverse_diagonal)[:, None]
        return np.asarray(residuals)

    @cached_property
    def mean_shift(self) -> Array:
        """How much the weighted mean of y falls when a row is left out."""
        return np.asarray(self.w[:, None] * self.y / (self.w.sum() - self.w)[:, None])
