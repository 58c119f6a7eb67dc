"""A solved Nystrom system: its coefficients, deviations and leave-one-out models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg.blas import dtrsm

from ._checks import Array
from ._cholesky import EPS
from ._distances import row_blocks
from ._landmarks import Features
from ._solvers import StackedModel, System
from ._streams import Block, Blocks
from ._sums import Sums, block_rows, spread

# Rows whose leave-one-out models make an interval, if there are more.
JACKKNIFE_ROWS = 5000


@dataclass(frozen=True)
class NystromModel:
    """A solved system: what the estimator predicts with, and what it knows of its errors."""

    phi: Features
    sums: Sums
    A: System  # G + lambda I
    lam: float
    intercept_kind: str
    sample: Block
    rows: Blocks | None = None

    def of_target(self, t: int) -> NystromModel:
        """The model of one target alone."""
        X, y, w = self.sample
        B, yy, mean = self.sums.B[:, [t, -1]], self.sums.yy[[t]], self.sums.mean[[t]]
        sums = replace(self.sums, B=B, yy=yy, mean=mean)
        return replace(self, sums=sums, sample=(X, y[:, [t]], w), rows=None)

    @cached_property
    def _beta(self) -> Array:
        """Coefficients of the features for each target, and for a target of ones."""
        return self.A.solve(self.sums.B)

    @property
    def _is_free(self) -> bool:
        return self.intercept_kind == "free"

    @cached_property
    def _spare(self) -> float:
        """1'W (1 - Phi beta), beta for a target of ones; infinite without a free intercept."""
        ones = self._beta[:, -1]
        spare = float(self.sums.weight - self.sums.B[:, -1] @ ones)
        # It is at least lambda beta'beta, and what is less is rounding.
        least = max(self.lam * float(ones @ ones), len(ones) * EPS * self.sums.weight)
        return max(spare, least) if self._is_free else np.inf

    @cached_property
    def intercept(self) -> Array:
        """The intercept of each target beside its mean: if free, by least squares."""
        return np.asarray(-self.sums.B[:, -1] @ self._beta[:, :-1] / self._spare)

    @cached_property
    def _coef(self) -> Array:
        """Coefficients of the features for y - b."""
        return np.asarray(self._beta[:, :-1] - np.outer(self._beta[:, -1], self.intercept))

    @cached_property
    def dual_coef(self) -> Array:
        """Coefficients of the kernels at the landmarks, of shape (m, k)."""
        return np.asarray(dtrsm(1.0, self.phi.L, self._coef, lower=1, trans_a=1))

    @cached_property
    def signal_variance(self) -> Array:
        """(y - b)'A^-1 (y - b) / n, A = Phi Phi' + lambda W^-1: the likely scale of the kernel."""
        if self.lam == 0:  # then it is the squared norm of the fit
            return np.asarray(np.einsum("ij,ij->j", self._coef, self._coef) / self.sums.n)
        left = self.sums.yy - np.einsum("ij,ij->j", self._coef, self.sums.B[:, :-1])
        return np.asarray(np.maximum(left, EPS * self.sums.yy) / (self.lam * self.sums.n))

    def explained(self, K_new: Array) -> Array:
        """Prior variance that the data explain, for each row k(x, Z) of K_new and target.

        It is less by what is not known of a free intercept.
        """
        P = np.asarray(dtrsm(1.0, self.phi.L, K_new.T, lower=1))
        half = self.A.half_solve(P)
        left = np.einsum("ij,ij->j", P, P) - self.lam * np.einsum("ij,ij->j", half, half)
        left -= self.lam * np.square(1.0 - self._beta[:, -1] @ P) / self._spare
        return np.repeat(left[:, None], len(self.sums.yy), axis=1)

    @cached_property
    def degrees_of_freedom(self) -> Array:
        """Trace of the matrix that takes y to the fitted values, a mean aside, for each target."""
        trace, ones = self.A.rank - self.lam * self.A.inverse_diagonal().sum(), self._beta[:, -1]
        if self._is_free:
            trace += 1.0 - self.lam * (ones @ ones) / self._spare
        return np.full(len(self.sums.yy), trace)

    @cached_property
    def loo_residuals(self) -> Array:
        """Residual of each row for the model fitted to the others, its intercept included."""
        return _left_out(self.rows, [self])

    def left_out(self, phi: Array, y: Array, w: Array | None) -> Array:
        """The same of rows with features phi: residual / (1 - leverage)."""
        half, rest = self.A.half_solve(phi.T), 1.0 - phi @ self._beta[:, -1]
        leverage = np.einsum("ij,ij->j", half, half) + rest**2 / self._spare
        residuals = y - self.sums.mean - self.intercept - phi @ self._coef
        if self.intercept_kind == "mean":
            residuals += self._mean_shift(y, w) * rest[:, None]
        held = np.maximum(1.0 - leverage * (1.0 if w is None else w), EPS)
        return np.asarray(residuals / held[:, None])

    def _mean_shift(self, y: Array, w: Array | None) -> Array:
        """How much the mean of y falls when a row is left out."""
        v = np.ones(len(y)) if w is None else w
        rest = np.maximum(self.sums.weight - v, np.finfo(float).tiny)
        return np.asarray((v / rest)[:, None] * (y - self.sums.mean))

    @cached_property
    def jackknife(self) -> NystromJackknife:
        """Leave-one-out models of a sample of the rows."""
        X, y, w = spread(self.sample, JACKKNIFE_ROWS)
        phi, ones, v = self.phi(X), self._beta[:, -1], 1.0 if w is None else w
        influence, residuals = self.A.solve(phi.T) * v, _LeavingOut([self])(X, y, w)
        pull = v * (1.0 - phi @ ones) / self._spare  # of y on a free intercept
        shift = (
            self._mean_shift(y, w) if self.intercept_kind == "mean" else pull[:, None] * residuals
        )
        return NystromJackknife(self.phi, influence, ones, residuals, shift)


@dataclass(frozen=True)
class NystromJackknife:
    """Models that leave one of s sampled rows out: their residuals, and how they predict."""

    phi: Features
    influence: Array  # (G + lambda I)^-1 Phi'W, of shape (m, s)
    ones: Array  # coefficients of the features for a target of ones
    loo_residuals: Array
    intercept_shift: Array  # how much the intercept falls without a row

    def loo_shifts(self, K_new: Array) -> Array:
        """Change of the predictions at K_new when a row is left out, of shape (n_new, s, k)."""
        phi = np.asarray(dtrsm(1.0, self.phi.L, K_new.T, lower=1)).T
        P, rest = phi @ self.influence, 1.0 - phi @ self.ones
        moved = P[:, :, None] * self.loo_residuals + rest[:, None, None] * self.intercept_shift
        return np.asarray(-moved)


@dataclass(frozen=True)
class StackedNystrom(StackedModel):
    """Models of one target each, with the same features, and the rows that they were fitted to."""

    rows: Blocks | None = None

    @cached_property
    def loo_residuals(self) -> Array:
        """Leave-one-out residuals, of shape (n, k), by one pass."""
        return _left_out(self.rows, self.models)


@dataclass(frozen=True)
class _LeavingOut:
    """The work of a pass for leave-one-out residuals: each model takes the targets that it has."""

    what: ClassVar[str] = "their leave-one-out residuals"
    models: Sequence[NystromModel]

    def __call__(self, X: Array, y: Array, w: Array | None) -> Array:
        phi, found = self.models[0].phi, np.empty(y.shape)
        for rows in row_blocks(len(X), block_rows(len(phi.L))):
            P, v, stop = phi(X[rows]), None if w is None else w[rows], 0
            for model in self.models:
                start, stop = stop, stop + len(model.sums.mean)
                found[rows, start:stop] = model.left_out(P, y[rows, start:stop], v)
        return found


def _left_out(rows: Blocks | None, models: Sequence[NystromModel]) -> Array:
    if rows is None:
        raise AttributeError(
            "Leave-one-out residuals need the training rows, which a pickled Nystrom model "
            "does not hold. Ask for them before pickling, or fit again."
        )
    # What workers get has no need of the rows' source.
    work = _LeavingOut([replace(model, rows=None) for model in models])
    return np.vstack(list(rows.each(work)))
