"""A solved Nystrom system: its coefficients, deviations and leave-one-out models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.linalg.blas import dtrsm

from .._compute.arrays import EPS, Array, Indices, fixed_sample, row_blocks, rows_per_block
from .._rows.merging import GivenRows, are_replicates, leaving, row_labels
from .._rows.rows import rows_of
from .landmarks import Features
from .model import JACKKNIFE_ROWS, HeldOut, Jackknife, Shifts, targets_of_each
from .nystrom_influence import NystromInfluence, Residuals
from .spectrum import eigh, mean_shift
from .sums import Sums
from .systems import Eigen, System, quadratic_forms, stable_system

if TYPE_CHECKING:
    from .._rows.rows import Block, Rows

# Largest number of rows that a model keeps for intervals and diagnoses.
SAMPLE_ROWS = 5000


@dataclass(frozen=True)
class Sample:
    """Rows as given, with the mean target y and total weight w of each row's duplicates.

    `within` is the row's own target minus that mean, `weights` has the row's own weight.
    """

    X: Array
    y: Array
    w: Array
    within: Array
    weights: Array

    def some(self, most: int) -> Sample:
        """At most `most` of the rows, drawn at random."""
        rows = fixed_sample(len(self.X), most)
        return Sample(*(part[rows] for part in vars(self).values()))

    def distinct(self) -> tuple[Indices, Indices]:
        """First index of each distinct row, and the distinct row of each row."""
        label = row_labels(self.X)
        label = np.arange(len(self.X)) if label is None else label
        _, first, group = np.unique(label, return_index=True, return_inverse=True)
        return first, group


def jackknife_sample(sample: Block, rows: Rows, given: GivenRows | None) -> Sample:
    """At most SAMPLE_ROWS of the rows; if rows were merged, of the rows as given."""
    if given is not None:
        given = given.weighed()
        some = fixed_sample(len(given.group), SAMPLE_ROWS)
        sample, within = rows.take(given.group[some]), given.within[some]
    else:
        some = fixed_sample(len(sample[0]), SAMPLE_ROWS)
        within = np.zeros((len(some), sample[1].shape[1]))
        sample = rows_of(sample, some)
    X, y, w = sample
    w = np.ones(len(X)) if w is None else w
    weights = w if given is None else given.weights[some]
    return Sample(X, y, w, within, weights)


@dataclass(frozen=True)
class NystromModel:
    """A solved Nystrom system, with one penalty for all k targets or one for each.

    Arrays of shape (m, l) have a column for each of the l = 1 or l = k penalties, and broadcast
    against arrays of shape (m, k).

    Attributes
    ----------
    phi, sums : the features, and the sums over the rows
    systems : G + lambda I for each penalty
    lams : penalties, of shape (l,)
    kind : kind of the intercept, one of INTERCEPTS
    sample : some of the rows as given
    rows, given : all rows, and the rows as given if some were merged; None in a saved model
    """

    phi: Features
    sums: Sums
    systems: Sequence[System]
    lams: Array
    kind: str
    sample: Sample
    rows: Rows | None = None
    given: GivenRows | None = None

    @property
    def _parts(self) -> list[tuple[System, slice]]:
        """The system of each penalty, and its targets."""
        return list(zip(self.systems, targets_of_each(self.lams), strict=True))

    @cached_property
    def _solutions(self) -> tuple[Array, Array]:
        """Coefficients of the features for the targets, (m, k), and for targets of ones, (m, l)."""
        solved = [A.solve(self.sums.of(targets).B) for A, targets in self._parts]
        beta, ones = ([part[:, some] for part in solved] for some in (slice(-1), slice(-1, None)))
        return np.hstack(beta), np.hstack(ones)

    @property
    def _beta(self) -> Array:
        return self._solutions[0]

    @property
    def _ones(self) -> Array:
        return self._solutions[1]

    @property
    def _is_free(self) -> bool:
        return self.kind == "free"

    @cached_property
    def _spare(self) -> Array:
        """1'W (1 - Phi beta), beta for a target of ones; infinite without a free intercept."""
        if not self._is_free:
            return np.full(len(self.lams), np.inf)
        spare = self.sums.weight - self.sums.B[:, -1] @ self._ones
        # It is at least lambda beta'beta; smaller values are rounding errors.
        least = self.lams * np.square(self._ones).sum(axis=0)
        return np.maximum(spare, np.maximum(least, len(self._ones) * EPS * self.sums.weight))

    @cached_property
    def intercept(self) -> Array:
        """The intercept of each target."""
        return self.sums.mean + self._free_intercept

    @cached_property
    def _free_intercept(self) -> Array:
        """The intercept in addition to the mean of y, by least squares."""
        return -self.sums.B[:, -1] @ self._beta / self._spare

    @cached_property
    def _coef(self) -> Array:
        """Coefficients of the features for y - b."""
        return self._beta - self._ones * self._free_intercept

    @cached_property
    def dual_coef(self) -> Array:
        """Coefficients of the kernels at the landmarks, of shape (m, k)."""
        return dtrsm(1.0, self.phi.L, self._coef, lower=1, trans_a=1)

    @cached_property
    def signal_variance(self) -> Array:
        """(y - b)'A^-1 (y - b) / n, A = Phi Phi' + lambda W^-1: the likely scale of the kernel."""
        if not self.lams.all():  # lambda = 0: it is the squared norm of the fit
            return np.einsum("ij,ij->j", self._coef, self._coef) / self.sums.n
        left = self.sums.yy - np.einsum("ij,ij->j", self._coef, self.sums.B[:, :-1])
        return np.maximum(left, EPS * self.sums.yy) / (self.lams * self.sums.n)

    def deviations(self, K_new: Array) -> Array:
        """Standard deviation of the function for rows k(x, Z) of K_new, of shape (n_new, k)."""
        P = dtrsm(1.0, self.phi.L, K_new.T, lower=1)
        left = (1.0 - np.einsum("ij,ij->j", P, P))[:, None]
        left = left + self.lams * quadratic_forms(self.systems, P)
        left += self.lams * np.square(1.0 - P.T @ self._ones) / self._spare
        return np.sqrt(np.maximum(left, 0.0) * self.signal_variance)

    @cached_property
    def degrees_of_freedom(self) -> Array:
        """Trace of the hat matrix for each target, not counting a mean as intercept."""
        return self._traces * np.ones(len(self.sums.yy))

    @cached_property
    def _traces(self) -> Array:
        """Trace of the hat matrix for each penalty, not counting a mean as intercept."""
        inverse = np.array([A.inverse_diagonal().sum() for A in self.systems])
        traces = [A.rank for A in self.systems] - self.lams * inverse
        if self._is_free:
            traces += 1.0 - self.lams * np.square(self._ones).sum(axis=0) / self._spare
        return traces

    @cached_property
    def influences(self) -> Sequence[NystromInfluence]:
        """How functionals of the function depend on y, for the targets of each penalty."""
        traces, spare, free = self._traces, self._spare, self._ones
        if not self._is_free:
            free = np.zeros_like(free)
        if self.kind == "mean":
            traces = traces + 1.0 - self.sums.B[:, -1] @ self._ones / self.sums.weight
            spare = np.full_like(spare, self.sums.weight)
        X, w = self.sample.X, self.sample.w
        if self.sums.given_n > self.sums.n:  # rows of the sample have the weight of all duplicates
            X, some = np.unique(X, axis=0, return_index=True)
            w = w[some]
        return [
            NystromInfluence(
                Residuals(
                    self.phi,
                    A,
                    coef=self._coef[:, targets],
                    intercept=self.intercept[targets],
                    beta=self._ones[:, i],
                    ones=free[:, i],
                    spare=float(spare[i]),
                ),
                self.sums.of(targets),
                float(traces[i]),
                targets=targets,
                rows=self.rows,
                given=self.given,
                sample=(X, w),
            )
            for i, (A, targets) in enumerate(self._parts)
        ]

    @cached_property
    def loo_residuals(self) -> Array:
        """Residual of each row as given for the model without it and the rows equal to it."""
        if self.rows is None:
            raise AttributeError(
                "Leave-one-out residuals need the training rows, which a pickled Nystrom model "
                "does not hold. Compute them before pickling, or fit again."
            )
        # Workers need neither the source of the rows nor the merged rows.
        work = _LeavingOut(replace(self, rows=None, given=None))
        found = np.vstack(list(self.rows.each(work)))
        return found if self.given is None else self.given.residuals(found)

    def left_out(self, phi: Array, y: Array, w: Array) -> Array:
        """Residual / (1 - leverage) of rows with features phi."""
        rest = 1.0 - phi @ self._ones
        leverage = quadratic_forms(self.systems, phi.T) + rest**2 / self._spare
        residuals = y - self.intercept - phi @ self._coef
        if self.kind == "mean":
            residuals += mean_shift(y - self.sums.mean, w, self.sums.weight) * rest
        return residuals / np.maximum(1.0 - leverage * w[:, None], EPS)

    @cached_property
    def jackknife(self) -> Jackknife:
        """Leave-one-out models of a sample of the rows."""
        sample = self.sample.some(JACKKNIFE_ROWS)
        y, w = sample.y, sample.w
        phi, ones = self.phi(sample.X), self._ones
        moved = self.left_out(phi, y, w)
        pull = w[:, None] * (1.0 - phi @ ones) / self._spare  # how a free intercept follows y
        fall = pull * moved
        if self.kind == "mean":
            fall = mean_shift(y - self.sums.mean, w, self.sums.weight)
        first, group = sample.distinct()
        influence = [A.solve(phi.T) * w for A in self.systems]
        return Jackknife(
            group=group,
            weights=w[first],
            lams=self.lams,
            spread=np.ptp(self.sample.y + self.sample.within, axis=0),
            far=np.sqrt((1.0 + self.lams / self._spare) * self.signal_variance),
            residuals=moved + sample.within,
            predicted=(y - moved)[first],
            fitted=(self.intercept + phi @ self._coef)[first],
            shifts=Shifts(influence, ones, moved, fall, L=self.phi.L).some,
            X=sample.X[first],
        )

    @property
    def held_out(self) -> HeldOut:
        """Leave-one-out residuals of at most SAMPLE_ROWS rows.

        Each merged row occurs once. A restored model uses the rows of its sample instead, which
        share the weight of the row that they were merged into.
        """
        X, y, w = self.sample.X, self.sample.y, self.sample.w
        counts = w
        if self.given is not None and self.rows is not None:
            X, y, weights = self.rows.take(fixed_sample(self.rows.n, SAMPLE_ROWS))
            counts = w = np.ones(len(X)) if weights is None else weights
        elif self.sums.given_n > self.sums.n:
            _, group = self.sample.distinct()
            counts = w / np.bincount(group)[group]
        within = self.sums.given_within / self.sums.weight
        return HeldOut(y, _LeavingOut(self)(X, y, w), counts, within)

    @cached_property
    def _observed(self) -> tuple[Array, Array] | None:
        """Weights of the sample's rows and the weights to remove; None without replicates."""
        if not self.sample.within.any():
            return None
        y, w = self.sample.y + self.sample.within, self.sample.weights
        group, leaves = self.sample.distinct()[1], leaving(w)
        return (w, leaves) if are_replicates(group, y, w / leaves) else None

    @property
    def held_out_singly(self) -> HeldOut:
        """Leave-one-out residuals of the sample's observations where equal rows differ in y."""
        if self._observed is None:
            return self.held_out
        (w, leaves), X, y = self._observed, self.sample.X, self.sample.y + self.sample.within
        return HeldOut(y, _LeavingOut(self)(X, y, leaves), w, np.zeros(y.shape[1]))

    def known_rows(self, Z: Array) -> tuple[Array, Array, Array]:
        """The distinct rows of the sample."""
        first = np.sort(self.sample.distinct()[0])
        y = self.sample.y[first] - self.sums.mean
        return self.sample.X[first], y, self.sample.w[first]

    def state(self) -> dict[str, Any]:
        """The sums and the sample as plain arrays; landmarks are the estimator's `X_fit_`."""
        sums = {name: np.asarray(part) for name, part in vars(self.sums).items()}
        sample = {f"sample_{name}": part for name, part in vars(self.sample).items()}
        return {"L": self.phi.L, **sample, **sums}

    @staticmethod
    def restored(at: Any, state: dict[str, Any]) -> NystromModel:
        """The model of a fitted function from its state, without the rows."""
        kept = ((field.name, state[field.name]) for field in fields(Sums))
        parts: Any = {name: part if np.ndim(part) else float(part) for name, part in kept}
        sample = Sample(*(state[f"sample_{field.name}"] for field in fields(Sample)))
        phi = Features(at.Z, np.asfortranarray(state["L"]), at.sigma, at.space)
        return solve_nystrom(phi, Sums(**parts), at.lams, at.kind, sample=sample)


@dataclass(frozen=True)
class _LeavingOut:
    """The pass for leave-one-out residuals."""

    what: ClassVar[str] = "their leave-one-out residuals"
    model: NystromModel

    def __call__(self, X: Array, y: Array, w: Array | None) -> Array:
        w = np.ones(len(X)) if w is None else w
        phi, found = self.model.phi, np.empty(y.shape)
        for rows in row_blocks(len(X), max(rows_per_block(len(phi.L)), 1024)):
            found[rows] = self.model.left_out(phi(X[rows]), y[rows], w[rows])
        return found


def solve_nystrom(
    phi: Features,
    sums: Sums,
    lams: Array,
    kind: str,
    *,
    sample: Sample,
    rows: Rows | None = None,
    given: GivenRows | None = None,
) -> NystromModel:
    """The model of these sums, with one penalty or one for each target."""
    if given is not None:
        some = given.weighed()
        within = some.weights @ some.within**2
        sums = replace(sums, given_n=float(len(some.group)), given_within=within)
    systems: list[System]
    if len(lams) == 1:
        systems = [stable_system(lambda: np.array(sums.G, order="C"), lams[0])[0]]
    else:
        s, V = eigh(sums.G)
        systems = [Eigen(V, np.maximum(s, 0.0) + lam) for lam in lams]
    return NystromModel(phi, sums, systems, lams, kind, sample, rows, given)
