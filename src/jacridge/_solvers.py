"""Exact ridge: dual coefficients, leave-one-out, variances, from a factored system."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.linalg import LinAlgError

from ._checks import Array
from ._cholesky import factor


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
