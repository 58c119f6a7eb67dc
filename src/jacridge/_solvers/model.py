"""The interface of solved models, and what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.linalg.blas import dtrsm

from .._compute.arrays import Array, Indices

if TYPE_CHECKING:
    from .._geometry.distances import Distance
    from .influence import Influence

# Kinds of intercept: none, the mean of y, or fitted with the rest and not penalised.
INTERCEPTS = ("none", "mean", "free")

# Largest number of rows whose leave-one-out models make an interval.
JACKKNIFE_ROWS = 1000


@dataclass(frozen=True)
class Jackknife:
    """Models that each leave out one row: their residuals at that row, and their predictions.

    There is one model for each row as given, or for each of a sample of JACKKNIFE_ROWS rows; d of
    these s rows are distinct.

    If not all models need to be evaluated, `reach` says how far one of them moves.

    Attributes
    ----------
    group : which of the distinct rows each row is, of shape (s,)
    weights : total weights of the distinct rows, of shape (d,)
    lams : penalties, of shape (k,) or (1,)
    spread : range of each target, of shape (k,)
    far : standard deviation of the function far from all rows, of shape (k,)
    residuals : residual of each row for the model without it, of shape (s, k)
    predicted : predictions of the distinct rows by the models without them, of shape (d, k)
    fitted : predictions of the distinct rows by the whole model, of shape (d, k)
    shifts : function from some of the s rows, in increasing order, to the changes without each
    places : places of the distinct rows among those of the model; None if they are in X
    X : the distinct rows
    reach : root mean square of the changes at an x where no variance is explained, if each row is
        equally likely to be near x, of shape (s, k); None if unknown
    """

    group: Indices
    weights: Array
    lams: Array
    spread: Array
    far: Array
    residuals: Array
    predicted: Array
    fitted: Array
    shifts: Callable[[Indices], Shifts]
    places: Indices | None = None
    X: Array | None = None
    reach: Array | None = None

    def distinct(self, Z: Array, distance: Distance) -> Array:
        """The distinct rows; Z are the rows of the model."""
        if self.places is not None:
            return distance.some(Z, self.places)
        return np.asarray(self.X)

    def columns(self, X_new: Array, distance: Distance) -> Array:
        """New rows; for given distances, only the columns of the distinct rows."""
        return X_new[:, self.places] if distance.is_given else X_new


@dataclass(frozen=True)
class Shifts:
    """Changes of the predictions when each of s rows is left out, with l = 1 or l = k penalties.

    Attributes
    ----------
    influence : for each penalty, how the q coefficients depend on y of each row, of shape (q, s),
        in double or single precision
    ones : coefficients for a target of ones, of shape (q, l)
    moved : residuals of the rows for the models without them, of shape (s, k)
    intercept : how much the intercept falls without each row, of shape (s, k)
    L : factor of the kernel of the landmarks, if coefficients are those of features
    """

    influence: Sequence[Array]
    ones: Array
    moved: Array
    intercept: Array
    L: Array | None = None

    def __call__(self, K_new: Array) -> Array:
        """Changes at rows k(x, Z) of K_new, of shape (n_new, s, k)."""
        phi = K_new if self.L is None else dtrsm(1.0, self.L, K_new.T, lower=1).T
        # Leaving out a row is the same as changing its y to its own leave-one-out prediction.
        P = [phi.astype(part.dtype, copy=False) @ part for part in self.influence]
        change = np.stack(P, axis=2) * -self.moved
        change -= (1.0 - phi @ self.ones)[:, None, :] * self.intercept
        return change

    def some(self, rows: Indices) -> Shifts:
        """The changes without some of the rows, in increasing order."""
        if len(rows) == len(self.moved):  # all of them: no copy needed
            return self
        influence = [part.T[rows].T for part in self.influence]
        moved, intercept = self.moved[rows], self.intercept[rows]
        return replace(self, influence=influence, moved=moved, intercept=intercept)


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
        """The models that leave out one row, for all rows or a sample."""

    @property
    def held_out(self) -> HeldOut:
        """Leave-one-out residuals of distinct rows, with their targets and weights."""

    @property
    def held_out_singly(self) -> HeldOut:
        """Residuals without single observations if equal rows differ in y, else `held_out`."""

    def known_rows(self, Z: Array) -> tuple[Array, Array, Array]:
        """The rows Z of the model if they are all training rows, else a sample of training rows.

        X after the map, targets (s, k) centred, weights (s,).
        """

    @property
    def degrees_of_freedom(self) -> Array:
        """Trace of the hat matrix, for each target."""

    @property
    def influences(self) -> Sequence[Influence]:
        """How functionals of the function depend on y; one for the targets of each penalty."""

    def state(self) -> dict[str, Any]:
        """Plain arrays that, with the estimator's public attributes, restore the model."""


def targets_of_each(lams: Array) -> list[slice]:
    """The targets of each penalty: all of them, or one."""
    k = len(lams)
    return [slice(None)] if k == 1 else [slice(t, t + 1) for t in range(k)]
