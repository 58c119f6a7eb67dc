"""A solved Nystrom system: its coefficients, deviations and leave-one-out models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg.blas import dtrsm

from ._checks import Array
from ._distances import row_blocks
from ._landmarks import EPS, Features
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
    fit_intercept: bool
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

    @cached_property
    def _spare(self) -> float:
        """1'W (1 - Phi beta), beta for a target of ones; infinite if rounding is all there is."""
        spare = self.sums.weight - self.sums.B[:, -1] @ self._beta[:, -1]
        enough = spare > len(self._beta) * EPS * self.sums.weight
        return float(spare) if self.fit_intercept and enough else np.inf

    @cached_property
    def intercept(self) -> Array:
        """The intercept of each target, beside its mean: least squares, not penalised.

        Where features make a constant, that which leaves the smallest coefficients.
        """
        beta, ones = self._beta[:, :-1], self._beta[:, -1]
        if np.isfinite(self._spare):
            return np.asarray(-self.sums.B[:, -1] @ beta / self._spare)
        return ones @ beta / (ones @ ones) if self.fit_intercept else np.zeros(beta.shape[1])

    @property
    def _intercept_variance(self) -> float:
        """1 / (1'A^-1 1), in units of the signal's variance; zero without an intercept."""
        ones = self._beta[:, -1]
        if not self.fit_intercept:
            return 0.0
        return self.lam / self._spare if np.isfinite(self._spare) else float(1.0 / (ones @ ones))

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

        It is less by what is not known of the intercept.
        """
        P = np.asarray(dtrsm(1.0, self.phi.L, K_new.T, lower=1))
        half = self.A.half_solve(P)
        left = np.einsum("ij,ij->j", P, P) - self.lam * np.einsum("ij,ij->j", half, half)
        left -= np.square(1.0 - self._beta[:, -1] @ P) * self._intercept_variance
        return np.repeat(left[:, None], len(self.sums.yy), axis=1)

    @cached_property
    def degrees_of_freedom(self) -> Array:
        """Trace of the matrix that takes y to the fitted values, for each target."""
        trace, ones = self.A.rank - self.lam * self.A.inverse_diagonal().sum(), self._beta[:, -1]
        if np.isfinite(self._spare):
            trace += 1.0 - self.lam * (ones @ ones) / self._spare
        return np.full(len(self.sums.yy), trace)

    @cached_property
    def loo_residuals(self) -> Array:
        """Residual of each row for the model fitted to the others."""
        return _left_out(self.rows, [self])

    def left_out(self, phi: Array, y: Array, w: Array | None) -> Array:
        """The same of rows with features phi: residual / (1 - leverage)."""
        half, rest = self.A.half_solve(phi.T), 1.0 - phi @ self._beta[:, -1]
        leverage = np.einsum("ij,ij->j", half, half) + rest**2 / self._spare
        residuals = y - self.sums.mean - self.intercept - phi @ self._coef
        held = np.maximum(1.0 - leverage * (1.0 if w is None else w), EPS)
        return np.asarray(residuals / held[:, None])

    @cached_property
    def jackknife(self) -> NystromJackknife:
        """Leave-one-out models of a sample of the rows."""
        X, y, w = spread(self.sample, JACKKNIFE_ROWS)
        phi, ones = self.phi(X), self._beta[:, -1]
        influence = self.A.solve(phi.T) * (1.0 if w is None else w)
        if np.isfinite(self._spare):
            pull = (1.0 - phi @ ones) * (1.0 if w is None else w) / self._spare
        else:
            pull = ones @ influence / (ones @ ones) * self.fit_intercept
        return NystromJackknife(self.phi, influence, pull, ones, _LeavingOut([self])(X, y, w))


@dataclass(frozen=True)
class NystromJackknife:
    """Models that leave one of s sampled rows out: their residuals, and how they predict."""

    phi: Features
    influence: Array  # (G + lambda I)^-1 Phi'W, of shape (m, s)
    pull: Array  # how much the intercept moves with y of each row
    ones: Array  # coefficients of the features for a target of ones
    loo_residuals: Array

    def loo_shifts(self, K_new: Array) -> Array:
        """Change of the predictions at K_new when a row is left out, of shape (n_new, s, k)."""
        phi = np.asarray(dtrsm(1.0, self.phi.L, K_new.T, lower=1)).T
        influence = phi @ self.influence + np.outer(1.0 - phi @ self.ones, self.pull)
        return np.asarray(-influence[:, :, None] * self.loo_residuals)


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
