"""The interface of solved models, and models of several penalties side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.linalg.blas import dtrsm

from .._compute.arrays import Array, Indices

if TYPE_CHECKING:
    from .._geometry.distances import Distance
    from .influence import Influence

# None, the mean of y, or one that is fitted with the rest and not penalised.
INTERCEPTS = ("none", "mean", "free")

# Rows whose leave-one-out models make an interval, if there are more.
JACKKNIFE_ROWS = 1000


@dataclass(frozen=True)
class Jackknife:
    """Models that each leave one row out: their residuals there, and how they predict.

    They are those of all rows as given, or of a sample of JACKKNIFE_ROWS of them; of these s rows
    d are distinct.

    Where single models can be left out of the count, `reach` says how far one of them moves.

    Attributes
    ----------
    group : which of the distinct rows each row is, of shape (s,)
    weights : total weights of the distinct rows, of shape (d,)
    lams : penalties, of shape (k,) or (1,)
    spread : largest less smallest value of each target, of shape (k,)
    far : standard deviation of the function far from all rows, of shape (k,)
    residuals : residual of each row for the model without it, of shape (s, k)
    shifts : from rows k(x, Z) to the changes of the predictions there, of shape (n_new, s, k)
    places : places of the distinct rows among those of the model; None if they are in X
    X : the distinct rows
    reach : root mean square of the changes at an x where the rows leave all variance open, if each
        row is as likely as any other to be near x, of shape (s, k); None if that is not known
    """

    group: Indices
    weights: Array
    lams: Array
    spread: Array
    far: Array
    residuals: Array
    shifts: AnyShifts
    places: Indices | None = None
    X: Array | None = None
    reach: Array | None = None

    def distinct(self, Z: Array, distance: Distance) -> Array:
        """The distinct rows; Z are the rows of the model."""
        if self.places is not None:
            return distance.some(Z, self.places)
        return np.asarray(self.X)

    def columns(self, X_new: Array, distance: Distance) -> Array:
        """New rows, of given distances those to the distinct rows alone."""
        return X_new[:, self.places] if distance.is_given else X_new


class AnyShifts(Protocol):
    """Changes of the predictions when each of s rows is left out."""

    def __call__(self, K_new: Array) -> Array:
        """Changes at rows k(x, Z) of K_new, of shape (n_new, s, k)."""

    def some(self, rows: Indices) -> AnyShifts:
        """The changes without some of the rows."""


@dataclass(frozen=True)
class Shifts:
    """Changes of the predictions when each of s rows is left out.

    Attributes
    ----------
    influence : how the coefficients follow y of each row, (q, s), in double or single precision
    ones : coefficients for a target of ones, of shape (q,)
    moved : residuals of the rows for the models without them, of shape (s, k)
    intercept : how much the intercept falls without each row, of shape (s, k)
    L : factor of the kernel of the landmarks, if coefficients are those of features
    """

    influence: Array
    ones: Array
    moved: Array
    intercept: Array
    L: Array | None = None

    def __call__(self, K_new: Array) -> Array:
        """Changes at rows k(x, Z) of K_new, of shape (n_new, s, k)."""
        phi = K_new if self.L is None else np.asarray(dtrsm(1.0, self.L, K_new.T, lower=1)).T
        # Without a row y falls there to where its residual vanishes, and so does the intercept.
        P = phi.astype(self.influence.dtype, copy=False) @ self.influence
        rest = 1.0 - phi @ self.ones
        change = P[:, :, None] * -self.moved
        change -= rest[:, None, None] * self.intercept
        return np.asarray(change)

    def some(self, rows: Indices) -> Shifts:
        """The changes without some of the rows, which rise."""
        if len(rows) == len(self.moved):  # all of them, of which no copy is made
            return self
        influence = self.influence.T[rows].T
        moved, intercept = self.moved[rows], self.intercept[rows]
        return replace(self, influence=influence, moved=moved, intercept=intercept)


@dataclass(frozen=True)
class StackedShifts:
    """Changes of several models of one target each, side by side."""

    parts: Sequence[AnyShifts]

    def __call__(self, K_new: Array) -> Array:
        """Changes at rows k(x, Z) of K_new, of shape (n_new, s, k)."""
        return np.concatenate([part(K_new) for part in self.parts], axis=2)

    def some(self, rows: Indices) -> StackedShifts:
        """The changes without some of the rows."""
        return StackedShifts([part.some(rows) for part in self.parts])


@dataclass(frozen=True)
class HeldOut:
    """Rows or observations, all or some: targets and leave-one-out residuals (s, k), weights (s,).

    `within` is the mean square of the targets as given about the means of equal rows, (k,).
    """

    y: Array
    residuals: Array
    w: Array
    within: Array


class Model(Protocol):
    """A solved system: b + k(x, Z) c, and its errors.

    Attributes that a solver cannot provide raise AttributeError.
    """

    @property
    def dual_coef(self) -> Array:
        """Coefficients c, of shape (m, k)."""

    @property
    def intercept(self) -> Array:
        """Intercepts b, of shape (k,)."""

    def deviations(self, K_new: Array) -> Array:
        """Standard deviation of the function for rows k(x, Z) of K_new, of shape (n_new, k)."""

    @property
    def loo_residuals(self) -> Array:
        """Residual of each row for the model fitted to the others, of shape (n, k)."""

    @property
    def jackknife(self) -> Jackknife:
        """The models that leave one row out, of all rows or a sample."""

    @property
    def held_out(self) -> HeldOut:
        """Leave-one-out residuals of distinct rows, beside their targets and weights."""

    @property
    def held_out_singly(self) -> HeldOut:
        """Those of single observations where equal rows differ in y; else `held_out`."""

    def known_rows(self, Z: Array) -> tuple[Array, Array, Array]:
        """The rows of the model Z if they are all training rows, else a sample of these.

        X after the map, targets (s, k) centred, weights (s,).
        """

    @property
    def degrees_of_freedom(self) -> Array:
        """Trace of the hat matrix, for each target."""

    @property
    def influences(self) -> Sequence[Influence]:
        """How functionals of the function follow y; one for the targets of each penalty."""

    def state(self) -> dict[str, Any]:
        """Plain arrays that, with the estimator's public attributes, restore the model."""


@dataclass(frozen=True)
class StackedModel:
    """Models of one target each, side by side: every target has a penalty of its own.

    `saved` is their common state, `one_pass` gives all leave-one-out residuals at once where
    that is cheaper.
    """

    models: Sequence[Model]
    saved: dict[str, Any]
    one_pass: Callable[[], Array] | None = None

    @property
    def dual_coef(self) -> Array:
        """Dual coefficients, of shape (n, k)."""
        return np.hstack([model.dual_coef for model in self.models])

    @property
    def intercept(self) -> Array:
        """The intercept of each target."""
        return np.concatenate([model.intercept for model in self.models])

    def deviations(self, K_new: Array) -> Array:
        """Standard deviation of the function, of shape (n_new, k)."""
        return np.hstack([model.deviations(K_new) for model in self.models])

    @cached_property
    def loo_residuals(self) -> Array:
        """Leave-one-out residuals, of shape (n, k)."""
        if self.one_pass is not None:
            return self.one_pass()
        return np.hstack([model.loo_residuals for model in self.models])

    @cached_property
    def jackknife(self) -> Jackknife:
        """The models that leave one row out."""
        parts = [model.jackknife for model in self.models]
        lams, spread, far, residuals = (
            np.concatenate([getattr(part, name) for part in parts], axis=-1)
            for name in ("lams", "spread", "far", "residuals")
        )
        reaches = [part.reach for part in parts if part.reach is not None]
        return replace(
            parts[0],
            lams=lams,
            spread=spread,
            far=far,
            residuals=residuals,
            shifts=StackedShifts([part.shifts for part in parts]),
            reach=np.hstack(reaches) if len(reaches) == len(parts) else None,
        )

    @property
    def held_out(self) -> HeldOut:
        """Leave-one-out residuals of distinct rows."""
        return _side_by_side([model.held_out for model in self.models])

    @property
    def held_out_singly(self) -> HeldOut:
        """Those of single observations, if equal rows differ in y of all targets."""
        parts = [model.held_out_singly for model in self.models]
        return _side_by_side(parts) if len({len(part.w) for part in parts}) == 1 else self.held_out

    def known_rows(self, Z: Array) -> tuple[Array, Array, Array]:
        """The training rows that the models know, with the targets of all."""
        X, y, w = zip(*(model.known_rows(Z) for model in self.models), strict=True)
        return X[0], np.hstack(y), w[0]

    @property
    def degrees_of_freedom(self) -> Array:
        """Trace of the hat matrix, for each target."""
        return np.concatenate([model.degrees_of_freedom for model in self.models])

    @property
    def influences(self) -> Sequence[Influence]:
        """How functionals of the function follow y, for each target."""
        return [influence for model in self.models for influence in model.influences]

    def state(self) -> dict[str, Any]:
        """Plain arrays that restore the models."""
        return self.saved


def _side_by_side(parts: Sequence[HeldOut]) -> HeldOut:
    y, residuals, within = (
        np.hstack([getattr(part, name) for part in parts]) for name in ("y", "residuals", "within")
    )
    return HeldOut(y, residuals, parts[0].w, within)
