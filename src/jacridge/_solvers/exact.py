"""Exact solver: dual coefficients, deviations and leave-one-out from a factored kernel matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._compute.arrays import EPS, TINY, Array, Indices, fixed_sample, weighted_mean
from .._compute.threads import blas_for
from .._rows.merging import GivenRows, Replicates, replicates_of
from .._rows.rows import ArrayRows
from .cholesky import ROUGH_PENALTY
from .influence import ExactInfluence, as_given, expanded
from .model import JACKKNIFE_ROWS, HeldOut, Jackknife, Shifts, targets_of_each
from .spectrum import eigh, mean_shift, weighted
from .systems import Eigen, System, exact_system, quadratic_forms

if TYPE_CHECKING:
    from .._geometry.space import Pairs
    from .._rows.source import Source

# From this many rows on, leave-one-out models predict in single precision if the penalty allows
# it. Entries of A^-1 are then at most 100: rounding moves an interval by less than 1e-4 of its
# width.
ROUGH_ROWS = 2000

# Number of columns of the identity that are solved for at a time.
UNIT_COLUMNS = 256


@dataclass(frozen=True)
class Centred:
    """Distinct rows' targets, centred at their mean, with weights and the rows as given.

    Attributes
    ----------
    y : targets less `mean`, of shape (n, k)
    w : weights, of shape (n,)
    mean : mean of the targets, of shape (k,); zero for a model without an intercept
    given : the rows as given, or None if they are the distinct rows
    """

    y: Array
    w: Array
    mean: Array
    given: GivenRows | None = None

    @property
    def replicates(self) -> Replicates | None:
        """Observations of the same row, if these differ in y."""
        return None if self.given is None else replicates_of(self.given, self.y)

    def state(self) -> dict[str, Any]:
        """The rows as plain arrays."""
        given = {} if self.given is None else vars(self.given)
        return {"y": self.y, "w": self.w, "mean": self.mean, **given}

    @staticmethod
    def restored(state: dict[str, Any]) -> Centred:
        """The rows from their plain arrays."""
        given = None
        if "group" in state:
            given = GivenRows(state["group"], state["within"], state["weights"])
        return Centred(state["y"], state["w"], state["mean"], given)


def centred_rows(source: Source, kind: str) -> tuple[Array, Centred]:
    """X and the centred targets of rows in memory; `kind` is the kind of intercept."""
    rows = source.rows
    if not isinstance(rows, ArrayRows):
        raise TypeError("Rows must be in memory.")
    w = np.ones(rows.n) if rows.w is None else rows.w
    mean = np.zeros(rows.y.shape[1]) if kind == "none" else weighted_mean(rows.y, w)
    return rows.X, Centred(rows.y - mean, w, mean, source.given)


class InverseColumns:
    """Columns of A^-1 at some places, each solved for on first use."""

    def __init__(self, A: System, places: Indices, *, rough: bool) -> None:
        """`rough` columns are in single precision."""
        self._A, self._places, self._rough = A, places, rough
        self._known: tuple[Indices, Array | None] = np.empty(0, dtype=np.intp), None

    def at(self, which: Indices) -> Array:
        """The columns at some of the places, of shape (n, len(which))."""
        known, columns = self._known
        missing = np.setdiff1d(which, known)
        if columns is None or len(missing):
            found = self._A.inverse_columns(self._places[missing], rough=self._rough).T
            columns = found if columns is None else np.concatenate([columns, found])
            known = np.concatenate([known, missing])
            order = np.argsort(known)
            known, columns = known[order], columns[order]
            self._known = known, columns  # assigned together, because other threads read them
        if np.array_equal(known, which):  # avoids a copy
            return columns.T
        return columns[np.searchsorted(known, which)].T

    def diagonal(self) -> Array:
        """The entries of A^-1 on its diagonal at all places."""
        return self._A.inverse_diagonal(self._places, rough=self._rough)


@dataclass(frozen=True)
class ExactModel:
    """A solved exact system, with one penalty for all k targets or one for each.

    Arrays of shape (n, l) have a column for each of the l = 1 or l = k penalties, and broadcast
    against arrays of shape (n, k). A free intercept b is fitted in addition to the mean of y and
    not penalised: with u = A^-1 1 it is u'y / u'1, and A^-1 (y - b) is P y for
    P = A^-1 - u u' / u'1.

    Attributes
    ----------
    systems : A = K + lambda W^-1 for each penalty
    rows : the training rows
    lams : penalties, of shape (l,)
    kind : kind of the intercept, one of INTERCEPTS
    lost : orthonormal eigenvectors of a singular A that the solution omits, of shape (n, r)
    """

    systems: Sequence[System]
    rows: Centred
    lams: Array
    kind: str
    lost: Array

    @property
    def y(self) -> Array:
        """Centred targets, of shape (n, k)."""
        return self.rows.y

    @property
    def w(self) -> Array:
        """Weights."""
        return self.rows.w

    @property
    def _parts(self) -> list[tuple[System, slice]]:
        """The system of each penalty, and its targets."""
        return list(zip(self.systems, targets_of_each(self.lams), strict=True))

    @cached_property
    def intercept(self) -> Array:
        """The intercept of each target."""
        return self.rows.mean + self._free_intercept

    @cached_property
    def _free_intercept(self) -> Array:
        return (self._pull * self.y).sum(axis=0)

    @property
    def _is_free(self) -> bool:
        return self.kind == "free"

    @cached_property
    def _ones(self) -> Array:
        """A target of ones, of shape (n, 1)."""
        return np.ones((len(self.y), 1))

    @cached_property
    def _u(self) -> Array:
        """A^-1 1, of shape (n, l)."""
        return np.hstack([A.solve(self._ones) for A in self.systems])

    @cached_property
    def _pull(self) -> Array:
        """Derivative of a free intercept with respect to y of each row, u / u'1, (n, l)."""
        return self._u / self._u.sum(axis=0) if self._is_free else np.zeros_like(self._ones)

    @cached_property
    def dual_coef(self) -> Array:
        """A^-1 (y - b), of shape (n, k)."""
        y = self.y - self._free_intercept
        return np.hstack([A.solve(y[:, targets]) for A, targets in self._parts])

    @cached_property
    def signal_variance(self) -> Array:
        """(y - b)'A^-1 (y - b) / n, the most likely scale of the kernel for each target."""
        y = self.y - self._free_intercept
        return np.einsum("ij,ij->j", y, self.dual_coef) / len(y)

    def deviations(self, K_new: Array) -> Array:
        """Standard deviation of the function for rows k of K_new, of shape (n_new, k).

        Its variance is 1 - k'A^-1 k, plus the uncertainty of a free intercept, times the scale of
        the kernel.
        """
        left = 1.0 - quadratic_forms(self.systems, K_new.T)
        if self._is_free:
            left += np.square(1.0 - K_new @ self._u) / self._u.sum(axis=0)
        return np.sqrt(np.maximum(left, 0.0) * np.maximum(self.signal_variance, 0.0))

    @property
    def _far(self) -> Array:
        """Standard deviation of the function where k is zero, of shape (k,)."""
        left = 1.0 + 1.0 / self._u.sum(axis=0) if self._is_free else 1.0
        return np.sqrt(left * np.maximum(self.signal_variance, 0.0))

    @cached_property
    def _inverse_diagonal(self) -> Array:
        """Diagonal of A^-1, of shape (n, l)."""
        return np.column_stack([A.inverse_diagonal() for A in self.systems])

    @cached_property
    def degrees_of_freedom(self) -> Array:
        """Trace of the hat matrix for each target, not counting a mean as intercept."""
        trace = (1.0 - self._held).sum(axis=0)
        if self._is_free:
            trace += (self._left_of_ones * self._pull).sum(axis=0)
        return trace * np.ones(self.y.shape[1])

    @cached_property
    def _held(self) -> Array:
        """One minus the leverage of each row without the intercept, of shape (n, l)."""
        return self._held_at(np.arange(len(self.w)), self._inverse_diagonal)

    def _held_at(self, some: Indices, diagonal: Array) -> Array:
        """One minus the leverage of some rows, from the diagonal of A^-1 there."""
        return self.lams / self.w[some, None] * diagonal + self._missing[some]

    def _left(self, y: Array, dual_coef: Array) -> Array:
        """Residuals of a fit to y without an intercept."""
        return dual_coef * (self.lams / self.w[:, None]) + self.lost @ (self.lost.T @ y)

    @cached_property
    def _left_of_ones(self) -> Array:
        """Residuals of a fit to ones without an intercept, of shape (n, l)."""
        return self._left(self._ones, self._u)

    @cached_property
    def _missing(self) -> Array:
        """Share of each row outside the span that a singular A retains, of shape (n, 1)."""
        return np.square(self.lost).sum(axis=1, keepdims=True)

    @cached_property
    def group_residuals(self) -> Array:
        """Residual of each distinct row for the model fitted to the others."""
        return self.residuals_at(np.arange(len(self.y)), self._inverse_diagonal)

    def residuals_at(self, some: Indices, diagonal: Array) -> Array:
        """Leave-one-out residuals of some distinct rows, from the diagonal of A^-1 there."""
        y = self.y - self._free_intercept
        residuals = self._left_out(y, self.dual_coef, some, diagonal)
        if self.kind == "mean":
            # Without a row the mean of y changes, and with it y - mean in all rows.
            shift = mean_shift(self.y, self.w)[some]
            residuals = residuals + shift * self._left_out(self._ones, self._u, some, diagonal)
        return residuals

    def _left_out(self, y: Array, dual_coef: Array, some: Indices, diagonal: Array) -> Array:
        """Residual / (1 - leverage) for targets y; c_i / P_ii unless A is singular."""
        P = diagonal - (self._u * self._pull)[some] if self._is_free else diagonal
        # P is zero for a single row; its diagonal is zero where a singular A drops a row entirely.
        residuals = dual_coef[some] / np.maximum(P, EPS * diagonal + TINY)
        missing = self._missing[some, 0] > 1e-8  # smaller values are rounding errors
        if missing.any():
            held = self._held_at(some, diagonal)
            if self._is_free:
                held = held - (self._left_of_ones * self._pull)[some]
            left = self._left(y, dual_coef)[some]
            residuals[missing] = left[missing] / held[missing]
        return residuals

    @cached_property
    def loo_residuals(self) -> Array:
        """Residual of each row as given for the model without it and the rows equal to it."""
        given = self.rows.given
        return self.group_residuals if given is None else given.residuals(self.group_residuals)

    @property
    def held_out(self) -> HeldOut:
        """Leave-one-out residuals of the distinct rows."""
        given, within = self.rows.given, np.zeros(self.y.shape[1])
        if given is not None:
            w = expanded(given, self.y, self.w)[1]
            within = w @ np.square(given.within) / w.sum()
        return HeldOut(self.y + self.rows.mean, self.group_residuals, self.w, within)

    @property
    def held_out_singly(self) -> HeldOut:
        """Leave-one-out residuals of single observations where equal rows differ in y."""
        replicates = self.rows.replicates
        if replicates is None:
            return self.held_out
        every, diagonal = np.arange(len(self.y)), self._inverse_diagonal
        E = self._left_out(self.y - self._free_intercept, self.dual_coef, every, diagonal)
        ones, left = np.zeros_like(diagonal), self._held
        if self.kind == "mean":
            ones = self._left_out(self._ones, self._u, every, diagonal)
        if self._is_free:
            left = left - self._left_of_ones * self._pull
        errors = replicates.errors(E, ones, left, self.y, self.w, total=float(self.w.sum()))
        y = self.y[replicates.row] + replicates.d + self.rows.mean
        return HeldOut(y, errors, replicates.weight, np.zeros(y.shape[1]))

    def known_rows(self, Z: Array) -> tuple[Array, Array, Array]:
        """All distinct rows."""
        return Z, self.y, self.w

    @cached_property
    def jackknife(self) -> Jackknife:
        """The models that leave out one distinct row, for rows of positive weight."""
        given = as_given(self.rows.given, self.w, self.y.shape[1]).weighed()
        some = fixed_sample(len(given.group), JACKKNIFE_ROWS)
        places, group = np.unique(given.group[some], return_inverse=True)
        least, many = self.lams / self.w.max(), len(self.y) > ROUGH_ROWS
        columns = [
            InverseColumns(A, places, rough=many and lam >= ROUGH_PENALTY)
            for A, lam in zip(self.systems, least, strict=True)
        ]
        moved = self.residuals_at(places, np.column_stack([each.diagonal() for each in columns]))
        intercept = self._pull[places] * moved
        if self.kind == "mean":
            intercept = mean_shift(self.y, self.w)[places]
        reach = None
        if len(some) < len(given.group) and self.lams.all() and not self.lost.size:
            # For a = A^-1 k(x), the unexplained variance is at least lam a'W^-1 a.
            unit = np.sqrt(self.w[places, None] / (self.lams * len(self.y)))
            reach = (np.abs(moved) * unit)[group]
        y = (self.y + self.rows.mean)[places]
        left = self._left(self.y - self._free_intercept, self.dual_coef)[places]
        return Jackknife(
            group=group,
            weights=self.w[places],
            lams=self.lams,
            spread=np.ptp(given.residuals(self.y), axis=0),
            far=self._far,
            residuals=moved[group] + given.within[some],
            predicted=y - moved,
            fitted=y - left,
            shifts=partial(self._shifts, columns, group, moved, intercept),
            places=places,
            reach=reach,
        )

    def _shifts(
        self,
        columns: Sequence[InverseColumns],
        group: Indices,
        moved: Array,
        intercept: Array,
        some: Indices,
    ) -> Shifts:
        """Changes of the predictions without some of the rows; `group` maps these to columns."""
        which = group[some]
        influence = [each.at(which) for each in columns]
        return Shifts(influence, self._u, moved[which], intercept[which])

    @cached_property
    def influences(self) -> Sequence[ExactInfluence]:
        """How functionals of the function depend on y, for the targets of each penalty."""
        pull = self.w[:, None] / self.w.sum() if self.kind == "mean" else self._pull
        h = 1.0 - self._held
        if self.kind != "none":
            h = h + self._left_of_ones * pull
        pull = np.broadcast_to(pull, h.shape)
        e, given = self._left(self.y - self._free_intercept, self.dual_coef), self.rows.given
        return [
            ExactInfluence(
                A=A,
                w=self.w,
                pull=pull[:, i],
                e=e[:, targets],
                h=h[:, i],
                held_blocks=partial(self._held_blocks, i, pull[:, i]),
                given=given and given.of(targets),
            )
            for i, (A, targets) in enumerate(self._parts)
        ]

    def _held_blocks(self, i: int, pull: Array, parts: Sequence[Indices]) -> Iterator[Array]:
        """Blocks of I - H for penalty i and some sets of rows, from a batch of columns of I."""
        A, lam, left = self.systems[i], self.lams[i], self._left_of_ones[:, i] * pull.any()
        stops = np.cumsum([len(rows) for rows in parts])
        ends = np.flatnonzero(np.diff(stops // UNIT_COLUMNS)) + 1
        for batch in np.split(np.arange(len(parts)), ends):
            columns = np.concatenate([parts[j] for j in batch])
            E = np.zeros((len(self.y), len(columns)))
            E[columns, np.arange(len(columns))] = 1.0
            half, start = A.half_solve(E), 0
            for j in batch:
                rows, mine = parts[j], half[:, start : start + len(parts[j])]
                held = (lam / self.w[rows])[:, None] * (mine.T @ mine)
                held += self.lost[rows] @ self.lost[rows].T
                yield held - np.outer(left[rows], pull[rows])
                start += len(rows)

    def state(self) -> dict[str, Any]:
        """The rows, from which the systems are solved again."""
        return self.rows.state()

    @staticmethod
    def restored(at: Any, state: dict[str, Any]) -> ExactModel:
        """The model of a fitted function from its state, factored again."""
        rows = Centred.restored(state)
        return solve_exact(at.space.pairs(at.Z), at.sigma, rows, at.lams, at.kind)


def solve_exact(pairs: Pairs, sigma: float, rows: Centred, lams: Array, kind: str) -> ExactModel:
    """Solve (K + lam W^-1) c = y - b, with one penalty or one for each target.

    K is made in the array of the pairs. Several penalties share one eigendecomposition.
    """
    with blas_for(len(rows.w)):
        if len(lams) == 1:
            A, lost = exact_system(pairs, sigma, lams[0] / rows.w)
            return ExactModel([A], rows, lams, kind, lost)
        root = np.sqrt(rows.w)
        s, V = eigh(weighted(pairs.kernel(sigma), root))
    U, s = V * root[:, None], np.maximum(s, 0.0)
    return ExactModel([Eigen(U, s + lam) for lam in lams], rows, lams, kind, lost=U[:, :0])
