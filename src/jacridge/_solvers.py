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
from ._cholesky import EPS, factor

# None, the mean of y, or one that is fitted with the rest and not penalised.
INTERCEPTS = ("none", "mean", "free")


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

    y is centred at its mean. A free intercept b beside that is not penalised: with u = A^-1 1 it is
    u'y / u'1, and A^-1 (y - b) is P y for P = A^-1 - u u' / u'1.
    """

    A: System
    y: Array
    w: Array
    lam: float
    intercept_kind: str  # one of INTERCEPTS

    @cached_property
    def intercept(self) -> Array:
        """The intercept of each target beside its mean."""
        return np.asarray(self._pull @ self.y)

    @property
    def _is_free(self) -> bool:
        return self.intercept_kind == "free"

    @cached_property
    def _u(self) -> Array:
        return self.A.solve(np.ones((len(self.y), 1)))[:, 0]

    @cached_property
    def _pull(self) -> Array:
        """How much a free intercept moves with y of each row, u / u'1."""
        return self._u / self._u.sum() if self._is_free else np.zeros(len(self.y))

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

        It is k'A^-1 k, less what is not known of a free intercept.
        """
        half = self.A.half_solve(K_new.T)
        explained = np.einsum("ij,ij->j", half, half)
        if self._is_free:
            explained -= np.square(1.0 - K_new @ self._u) / self._u.sum()
        return np.repeat(explained[:, None], self.y.shape[1], axis=1)

    @cached_property
    def _inverse_diagonal(self) -> Array:
        return self.A.inverse_diagonal()

    @cached_property
    def degrees_of_freedom(self) -> Array:
        """Trace of the matrix that takes y to the fitted values, a mean aside, for each target."""
        trace = (1.0 - self._held).sum()
        if self._is_free:
            trace += self._left(np.ones(len(self.y)), self._u) @ self._pull
        return np.full(self.y.shape[1], trace)

    @cached_property
    def _held(self) -> Array:
        """One minus the leverage of each row, the intercept aside."""
        return np.asarray(self.lam / self.w * self._inverse_diagonal + self._missing)

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
        """Residual of each row for the model fitted to the others, its intercept included."""
        residuals = self._left_out(self.y - self.intercept, self.dual_coef)
        if self.intercept_kind == "mean":
            # Without row i the mean of y falls by shift_i, so that y - mean grows in all rows.
            ones = np.ones((len(self.y), 1))
            residuals = residuals + self._mean_shift * self._left_out(ones, self._u[:, None])
        return residuals

    def _left_out(self, y: Array, dual_coef: Array) -> Array:
        """Residual / (1 - leverage) for targets y; c_i / P_ii unless A is singular."""
        diagonal, some = self._inverse_diagonal, self._missing > 1e-8  # else it is rounding alone
        P = diagonal - self._u * self._pull if self._is_free else diagonal
        residuals = dual_coef / np.maximum(P, EPS * diagonal)[:, None]  # zero for a single row
        if some.any():
            held = self._held
            if self._is_free:
                held = held - self._left(np.ones(len(y)), self._u) * self._pull
            residuals[some] = self._left(y, dual_coef)[some] / held[some, None]
        return np.asarray(residuals)

    @cached_property
    def _mean_shift(self) -> Array:
        """How much the mean of y falls when a row is left out."""
        rest = np.maximum(self.w.sum() - self.w, np.finfo(float).tiny)
        return np.asarray(self.w[:, None] * self.y / rest[:, None])

    @property
    def jackknife(self) -> ExactModel:
        """The models that leave one row out: `loo_residuals` and `loo_shifts`."""
        return self

    def loo_shifts(self, K_new: Array) -> Array:
        """Change of the predictions at K_new when a row is left out, of shape (n_new, n, k)."""
        # Without row i the intercept falls by its shift, and y_i to where its residual vanishes.
        P = self.A.solve(K_new.T).T
        moved = P[:, :, None] * self.loo_residuals
        if self.intercept_kind != "none":
            free = self._pull[:, None] * self.loo_residuals
            shift = free if self._is_free else self._mean_shift
            moved += (1.0 - P.sum(axis=1))[:, None, None] * shift
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
    kernel: Callable[[], Array], y: Array, w: Array, lam: float, *, intercept: str
) -> ExactModel:
    """Solve (K + lam W^-1) c = y - b; `kernel` makes K anew in the lower triangle of one array."""
    return ExactModel(system(kernel, lam / w), y, w, lam, intercept)


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
    keep = d > len(d) * EPS * d[-1]
    warnings.warn(
        f"K + lambda I is not positive definite, its smallest eigenvalue is {d[0]:.3g}; the "
        "solution of smallest norm on its positive part is used. Give a larger `alpha` to avoid "
        "this.",
        stacklevel=4,
    )
    return PositivePart(U[:, keep], d[keep])


def solve_each(K: Array, y: Array, w: Array, lams: Array, *, intercept: str) -> StackedModel:
    """Solve for each target with its own penalty, by one eigendecomposition."""
    root = np.sqrt(w)
    s, V = np.linalg.eigh(K * root * root[:, None], UPLO="L")
    U, s = V * root[:, None], np.maximum(s, 0.0)
    columns = zip(y.T, lams, strict=True)
    return StackedModel(
        [ExactModel(Eigen(U, s + lam), c[:, None], w, lam, intercept) for c, lam in columns]
    )
