"""Exact ridge by Cholesky: dual coefficients, leave-one-out, log-determinant."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, lapack
from scipy.linalg.blas import dtrsm

from ._checks import Array

# Above this order a threaded LAPACK may crash (its dsyrk does from about 16,000), so larger
# matrices are factored by panels of this many columns, where all large products are gemm.
LAPACK_ORDER = 8192
PANEL = 1024
INVERSE_PANEL = 384


@dataclass(frozen=True)
class Factor:
    """Lower Cholesky factor of A, in the lower triangle of L; what is above is not looked at."""

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
    """A factor whose inverse diagonal is the last thing asked of it: L becomes L^-1 in place."""

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
    """The same for a matrix that falls apart: rows of each block, in rising order, and its factor.

    Rows that are in no block stand alone, with one entry of `diagonal` each.
    """

    diagonal: Array
    blocks: list[tuple[npt.NDArray[np.intp], Factor]]

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


def _solve_corner(L: Array, B: Array) -> Array:
    """L^-1 B for a small lower triangle."""
    # B' L^-T in Fortran's order is L^-1 B in C order: no copy of B is made.
    return np.asarray(dtrsm(1.0, L.T, B.T, side=1, lower=0)).T


def factor(K: Array, lam: Array | float, step: Callable[[int], None] | None = None) -> Factor:
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
        _factor_by_panels(K, step)
    pivots = np.diagonal(K) ** 2 / diagonal
    if pivots.min() <= len(K) * np.finfo(float).eps:
        raise LinAlgError(f"K + lambda I is singular to rounding (pivot {pivots.min():.3g}).")
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
    """A^-1 = U diag(1 / d) U': for many penalties, or for the positive part of a singular A."""

    U: Array
    d: Array

    @property
    def rank(self) -> int:
        """Number of eigenvalues that are not left out."""
        return len(self.d)

    def solve(self, B: Array) -> Array:
        """Solution of smallest norm on the part of A that is positive."""
        return np.asarray(self.U @ ((self.U.T @ B).T / self.d).T)

    def half_solve(self, B: Array) -> Array:
        """Columns with the squared norms b' A^+ b."""
        return np.asarray(((self.U.T @ B).T / np.sqrt(self.d)).T)

    def log_determinant(self) -> float:
        """Log-determinant of the positive part."""
        return float(np.log(self.d).sum())

    def inverse_diagonal(self) -> Array:
        """Diagonal of A^+."""
        return np.asarray(self.U**2 @ (1.0 / self.d))


@dataclass(frozen=True)
class PositivePart(Eigen):
    """The same for a singular A, where U has the orthonormal eigenvectors that are kept."""


class Solvable(Protocol):
    """A = K + diag(lam) in a form that criteria can be taken of."""

    def solve(self, B: Array) -> Array: ...
    def inverse_diagonal(self) -> Array: ...
    def log_determinant(self) -> float: ...


class System(Solvable, Protocol):
    """The same, also for the variance of predictions."""

    @property
    def rank(self) -> int: ...
    def half_solve(self, B: Array) -> Array: ...


@dataclass(frozen=True)
class ExactModel:
    """A solved system: what the estimator predicts with, and what it knows of its errors."""

    A: System
    y: Array
    w: Array
    lam: float
    centred: bool

    @cached_property
    def dual_coef(self) -> Array:
        """A^-1 y, of shape (n, k)."""
        return self.A.solve(self.y)

    @cached_property
    def signal_variance(self) -> Array:
        """y'A^-1 y / n, the most likely scale of the kernel for each target."""
        n = np.maximum(self.w, 1.0).sum()  # a row of weight two is two rows
        return np.asarray(np.einsum("ij,ij->j", self.y, self.dual_coef) / n)

    def explained(self, K_new: Array) -> Array:
        """k'A^-1 k for each row k of K_new and target: prior variance that the data explain."""
        half = self.A.half_solve(K_new.T)
        return np.repeat(np.einsum("ij,ij->j", half, half)[:, None], self.y.shape[1], axis=1)

    @cached_property
    def inverse_diagonal(self) -> Array:
        """Diagonal of A^-1."""
        return self.A.inverse_diagonal()

    @cached_property
    def degrees_of_freedom(self) -> Array:
        """Trace of the matrix that takes y to the fitted values, for each target."""
        trace = (1.0 - self._missing - self.lam / self.w * self.inverse_diagonal).sum()
        return np.full(self.y.shape[1], trace)

    @cached_property
    def loo_residuals(self) -> Array:
        """Residual of each row for the model fitted to the others, its mean of y included."""
        # Without row i the mean of y falls by shift_i, so that y - mean grows in all rows.
        residuals = self._left_out(self.y, self.dual_coef)
        if self.centred:
            ones = np.ones((len(self.y), 1))
            residuals = residuals + self._mean_shift * self._left_out(ones, self.A.solve(ones))
        return residuals

    def _left_out(self, y: Array, dual_coef: Array) -> Array:
        """Residual / (1 - leverage) for targets y; c_i / (A^-1)_ii unless A is singular."""
        residuals = dual_coef / self.inverse_diagonal[:, None]
        if isinstance(self.A, PositivePart):
            lam, some = self.lam / self.w, self._missing > 1e-8  # else rounding is all there is
            rest = lam[:, None] * dual_coef + y - self.A.U @ (self.A.U.T @ y)
            held = lam * self.inverse_diagonal + self._missing
            residuals[some] = rest[some] / held[some, None]
        return np.asarray(residuals)

    @cached_property
    def _missing(self) -> Array:
        """How much of each row is outside of the span that is kept of a singular A."""
        if isinstance(self.A, PositivePart):
            return np.asarray(1.0 - (self.A.U**2).sum(axis=1))
        return np.zeros(len(self.y))

    @cached_property
    def _mean_shift(self) -> Array:
        """How much the mean of y falls when a row is left out; zero for a model without a mean."""
        rest = np.maximum(self.w.sum() - self.w, np.finfo(float).tiny)
        return np.asarray(self.centred * self.w[:, None] * self.y / rest[:, None])

    @property
    def jackknife(self) -> ExactModel:
        """The models that leave one row out: `loo_residuals` and `loo_shifts`."""
        return self

    def loo_shifts(self, K_new: Array) -> Array:
        """Change of the predictions at K_new when a row is left out, of shape (n_new, n, k)."""
        # Without row i, y - mean is moved by shift_i, and y_i to where its residual vanishes.
        P = self.A.solve(K_new.T).T
        rest = 1.0 - P.sum(axis=1)
        moved = P[:, :, None] * self.loo_residuals + rest[:, None, None] * self._mean_shift
        return np.asarray(-moved)


@dataclass(frozen=True)
class StackedModel:
    """Models of one target each, side by side: every target has a penalty of its own."""

    models: Sequence[Any]  # ExactModel, or a model with the same parts

    @property
    def dual_coef(self) -> Array:
        """Dual coefficients, of shape (n, k)."""
        return np.hstack([model.dual_coef for model in self.models])

    @property
    def signal_variance(self) -> Array:
        """Scale of the kernel for each target."""
        return np.concatenate([model.signal_variance for model in self.models])

    def explained(self, K_new: Array) -> Array:
        """Share of the prior variance that the data explain, of shape (n_new, k)."""
        return np.hstack([model.explained(K_new) for model in self.models])

    @property
    def degrees_of_freedom(self) -> Array:
        """Trace of the matrix that takes y to the fitted values, for each target."""
        return np.concatenate([model.degrees_of_freedom for model in self.models])

    @property
    def loo_residuals(self) -> Array:
        """Leave-one-out residuals, of shape (n, k)."""
        return np.hstack([model.loo_residuals for model in self.models])

    @property
    def jackknife(self) -> StackedModel:
        """The models that leave one row out: `loo_residuals` and `loo_shifts`."""
        return StackedModel([model.jackknife for model in self.models])

    def loo_shifts(self, K_new: Array) -> Array:
        """Change of the predictions when a row is left out, of shape (n_new, n, k)."""
        return np.concatenate([model.loo_shifts(K_new) for model in self.models], axis=2)


def solve_exact(
    kernel: Callable[[], Array], y: Array, w: Array, lam: float, *, centred: bool
) -> ExactModel:
    """Solve (K + lam W^-1) c = y; `kernel` makes K anew in the lower triangle of one array."""
    return ExactModel(system(kernel, lam / w), y, w, lam, centred)


def system(kernel: Callable[[], Array], lam: Array | float) -> System:
    """A = K + diag(lam), factored in the array that `kernel` makes.

    Where A has no stable Cholesky factor, solutions are those of smallest norm on its positive
    part, with a warning.
    """
    try:
        return factor(kernel(), lam)
    except LinAlgError:
        A = kernel()
    A.flat[:: len(A) + 1] += lam
    d, U = np.linalg.eigh(A, UPLO="L")
    keep = d > len(d) * np.finfo(float).eps * d[-1]
    warnings.warn(
        f"K + lambda I is not positive definite, its smallest eigenvalue is {d[0]:.3g}; the "
        "solution of smallest norm on its positive part is used. Give a larger `alpha` to avoid "
        "this.",
        stacklevel=4,
    )
    return PositivePart(U[:, keep], d[keep])


def solve_each(K: Array, y: Array, w: Array, lams: Array, *, centred: bool) -> StackedModel:
    """Solve for each target with its own penalty, by one eigendecomposition."""
    root = np.sqrt(w)
    s, V = np.linalg.eigh(K * root * root[:, None], UPLO="L")
    U, s = V * root[:, None], np.maximum(s, 0.0)
    columns = zip(y.T, lams, strict=True)
    return StackedModel(
        [ExactModel(Eigen(U, s + lam), c[:, None], w, lam, centred) for c, lam in columns]
    )
