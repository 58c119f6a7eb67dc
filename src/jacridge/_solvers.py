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

EPS = float(np.finfo(float).eps)


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
    """A solved system: what the estimator predicts with, and what it knows of its errors.

    The intercept b is not penalised: with u = A^-1 1 it is u'y / u'1, and A^-1 (y - b) is P y for
    P = A^-1 - u u' / u'1. Without one u is zero.
    """

    A: System
    y: Array
    w: Array
    lam: float
    fit_intercept: bool

    @cached_property
    def intercept(self) -> Array:
        """The intercept of each target."""
        return np.asarray(self._u @ self.y / self._u_sum)

    @cached_property
    def _u(self) -> Array:
        n = len(self.y)
        return self.A.solve(np.ones((n, 1)))[:, 0] if self.fit_intercept else np.zeros(n)

    @property
    def _u_sum(self) -> float:
        return float(self._u.sum()) if self.fit_intercept else 1.0

    @cached_property
    def dual_coef(self) -> Array:
        """A^-1 (y - b), of shape (n, k)."""
        return self.A.solve(self.y - self.intercept)

    @cached_property
    def signal_variance(self) -> Array:
        """(y - b)'A^-1 (y - b) / n, the most likely scale of the kernel for each target."""
        n = np.maximum(self.w, 1.0).sum()  # a row of weight two is two rows
        y = self.y - self.intercept
        return np.asarray(np.einsum("ij,ij->j", y, self.dual_coef) / n)

    def explained(self, K_new: Array) -> Array:
        """Prior variance that the data explain, for each row k of K_new and target.

        It is k'A^-1 k, less what is not known of the intercept.
        """
        half = self.A.half_solve(K_new.T)
        explained = np.einsum("ij,ij->j", half, half)
        if self.fit_intercept:
            explained -= np.square(1.0 - K_new @ self._u) / self._u_sum
        return np.repeat(explained[:, None], self.y.shape[1], axis=1)

    @cached_property
    def _inverse_diagonal(self) -> Array:
        return self.A.inverse_diagonal()

    @cached_property
    def degrees_of_freedom(self) -> Array:
        """Trace of the matrix that takes y to the fitted values, for each target."""
        return np.full(self.y.shape[1], (1.0 - self._held).sum())

    @cached_property
    def _held(self) -> Array:
        """One minus the leverage of each row."""
        held = self.lam / self.w * self._inverse_diagonal + self._missing
        return np.asarray(held - self._left(np.ones(len(held)), self._u) * self._u / self._u_sum)

    def _left(self, y: Array, dual_coef: Array) -> Array:
        """What a fit without an intercept leaves of y."""
        left = (dual_coef.T * (self.lam / self.w)).T
        if isinstance(self.A, PositivePart):
            left = left + y - self.A.U @ (self.A.U.T @ y)
        return np.asarray(left)

    @cached_property
    def _missing(self) -> Array:
        """How much of each row is outside of the span that is kept of a singular A."""
        if isinstance(self.A, PositivePart):
            return np.asarray(1.0 - (self.A.U**2).sum(axis=1))
        return np.zeros(len(self.y))

    @cached_property
    def loo_residuals(self) -> Array:
        """Residual of each row for the model fitted to the others.

        That is residual / (1 - leverage), and c_i / P_ii unless A is singular.
        """
        diagonal = self._inverse_diagonal
        P = np.maximum(diagonal - self._u**2 / self._u_sum, EPS * diagonal)  # zero for a single row
        residuals = self.dual_coef / P[:, None]
        some = self._missing > 1e-8  # else rounding is all there is
        if some.any():
            left = self._left(self.y - self.intercept, self.dual_coef)
            residuals[some] = left[some] / self._held[some, None]
        return residuals

    @property
    def jackknife(self) -> ExactModel:
        """The models that leave one row out: `loo_residuals` and `loo_shifts`."""
        return self

    def loo_shifts(self, K_new: Array) -> Array:
        """Change of the predictions at K_new when a row is left out, of shape (n_new, n, k)."""
        # Without row i predictions are those of y_i moved to where its residual vanishes.
        influence = self.A.solve(K_new.T).T
        influence = influence + np.outer(1.0 - influence.sum(axis=1), self._u / self._u_sum)
        return np.asarray(-influence[:, :, None] * self.loo_residuals)


@dataclass(frozen=True)
class StackedModel:
    """Models of one target each, side by side: every target has a penalty of its own."""

    models: Sequence[Any]  # ExactModel, or a model with the same parts

    @property
    def dual_coef(self) -> Array:
        """Dual coefficients, of shape (n, k)."""
        return np.hstack([model.dual_coef for model in self.models])

    @property
    def intercept(self) -> Array:
        """The intercept of each target."""
        return np.concatenate([model.intercept for model in self.models])

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
    kernel: Callable[[], Array], y: Array, w: Array, lam: float, *, fit_intercept: bool
) -> ExactModel:
    """Solve (K + lam W^-1) c = y - b; `kernel` makes K anew in the lower triangle of one array."""
    return ExactModel(system(kernel, lam / w), y, w, lam, fit_intercept)


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


def solve_each(K: Array, y: Array, w: Array, lams: Array, *, fit_intercept: bool) -> StackedModel:
    """Solve for each target with its own penalty, by one eigendecomposition."""
    root = np.sqrt(w)
    s, V = np.linalg.eigh(K * root * root[:, None], UPLO="L")
    U, s = V * root[:, None], np.maximum(s, 0.0)
    columns = zip(y.T, lams, strict=True)
    return StackedModel(
        [ExactModel(Eigen(U, s + lam), c[:, None], w, lam, fit_intercept) for c, lam in columns]
    )
