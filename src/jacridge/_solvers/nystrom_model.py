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
from .model import JACKKNIFE_ROWS, HeldOut, Jackknife, Shifts, StackedModel
from .nystrom_influence import NystromInfluence, Residuals
from .spectrum import eigh, mean_shift
from .sums import Sums
from .systems import Eigen, System, stable_system

if TYPE_CHECKING:
    from .._rows.rows import Block, Rows

# Rows that a model keeps for intervals and diagnoses, if there are more.
SAMPLE_ROWS = 5000


@dataclass(frozen=True)
class Sample:
    """Rows as given, with the mean target y and the weight of the rows that equal each.

    `within` is the given target minus that mean, `weights` are those of the rows themselves.
    """

    X: Array
    y: Array
    w: Array
    within: Array
    weights: Array

    def target(self, t: int) -> Sample:
        """The sample with one target alone."""
        return replace(self, y=self.y[:, [t]], within=self.within[:, [t]])

    def some(self, most: int) -> Sample:
        """At most so many of the rows, drawn at random."""
        rows = fixed_sample(len(self.X), most)
        return Sample(*(part[rows] for part in vars(self).values()))

    def distinct(self) -> tuple[Indices, Indices]:
        """Where each distinct row comes first, and which of these each row is."""
        label = row_labels(self.X)
        label = np.arange(len(self.X)) if label is None else label
        _, first, group = np.unique(label, return_index=True, return_inverse=True)
        return first, group


def jackknife_sample(sample: Block, rows: Rows, given: GivenRows | None) -> Sample:
    """At most SAMPLE_ROWS of the rows: of those as given if they were merged."""
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
    weights = w if given is None or given.weights is None else given.weights[some]
    return Sample(X, y, w, within, weights)


@dataclass(frozen=True)
class NystromModel:
    """A solved Nystrom system."""

    phi: Features
    sums: Sums
    A: System  # G + lambda I
    lam: float
    kind: str  # of the intercept, one of INTERCEPTS
    sample: Sample
    rows: Rows | None = None
    given: GivenRows | None = None
    target: int | None = None  # the only one of the rows' targets that is meant

    @cached_property
    def _beta(self) -> Array:
        """Coefficients of the features for each target, and for a target of ones."""
        return self.A.solve(self.sums.B)

    @property
    def _is_free(self) -> bool:
        return self.kind == "free"

    @cached_property
    def _spare(self) -> float:
        """1'W (1 - Phi beta), beta for a target of ones; infinite without a free intercept."""
        ones = self._beta[:, -1]
        spare = float(self.sums.weight - self.sums.B[:, -1] @ ones)
        # It is at least lambda beta'beta, and less than that is rounding.
        least = max(self.lam * float(ones @ ones), len(ones) * EPS * self.sums.weight)
        return max(spare, least) if self._is_free else np.inf

    @cached_property
    def intercept(self) -> Array:
        """The intercept of each target."""
        return np.asarray(self.sums.mean + self._free_intercept)

    @cached_property
    def _free_intercept(self) -> Array:
        """The intercept beside the mean of y, by least squares."""
        return np.asarray(-self.sums.B[:, -1] @ self._beta[:, :-1] / self._spare)

    @cached_property
    def _coef(self) -> Array:
        """Coefficients of the features for y - b."""
        return np.asarray(self._beta[:, :-1] - np.outer(self._beta[:, -1], self._free_intercept))

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

    def deviations(self, K_new: Array) -> Array:
        """Standard deviation of the function for rows k(x, Z) of K_new, of shape (n_new, k)."""
        P = np.asarray(dtrsm(1.0, self.phi.L, K_new.T, lower=1))
        half = self.A.half_solve(P)
        left = 1.0 - np.einsum("ij,ij->j", P, P) + self.lam * np.einsum("ij,ij->j", half, half)
        left += self.lam * np.square(1.0 - self._beta[:, -1] @ P) / self._spare
        return np.sqrt(np.outer(np.maximum(left, 0.0), self.signal_variance))

    @cached_property
    def degrees_of_freedom(self) -> Array:
        """Trace of the hat matrix for each target, not counting a mean as intercept."""
        trace, ones = self.A.rank - self.lam * self.A.inverse_diagonal().sum(), self._beta[:, -1]
        if self._is_free:
            trace += 1.0 - self.lam * (ones @ ones) / self._spare
        return np.full(len(self.sums.yy), trace)

    @cached_property
    def influences(self) -> Sequence[NystromInfluence]:
        """How functionals of the function follow y."""
        ones, weight = self._beta[:, -1], self.sums.weight
        trace, spare = float(self.degrees_of_freedom[0]), self._spare
        if self.kind == "mean":
            trace, spare = trace + 1.0 - float(self.sums.B[:, -1] @ ones) / weight, weight
        free = ones if self._is_free else np.zeros_like(ones)
        residuals = Residuals(
            self.phi, self.A, self._coef, self.intercept, beta=ones, ones=free, spare=spare
        )
        X, w = self.sample.X, self.sample.w
        if self.sums.given_n > self.sums.n:  # rows of the sample have the weight of all equals
            X, some = np.unique(X, axis=0, return_index=True)
            w = w[some]
        return [
            NystromInfluence(
                residuals,
                self.sums,
                trace,
                targets=slice(None) if self.target is None else slice(self.target, self.target + 1),
                rows=self.rows,
                given=self.given,
                sample=(X, w),
            )
        ]

    @cached_property
    def loo_residuals(self) -> Array:
        """Residual of each row as given for the model without it and the rows equal to it."""
        return _loo_residuals(self.rows, self.given, [self])

    def left_out(self, phi: Array, y: Array, w: Array) -> Array:
        """Residual / (1 - leverage) of rows with features phi."""
        half, rest = self.A.half_solve(phi.T), 1.0 - phi @ self._beta[:, -1]
        leverage = np.einsum("ij,ij->j", half, half) + rest**2 / self._spare
        residuals = y - self.intercept - phi @ self._coef
        if self.kind == "mean":
            shift = mean_shift(y - self.sums.mean, w, self.sums.weight)
            residuals += shift * rest[:, None]
        return np.asarray(residuals / np.maximum(1.0 - leverage * w, EPS)[:, None])

    @cached_property
    def jackknife(self) -> Jackknife:
        """Leave-one-out models of a sample of the rows."""
        sample = self.sample.some(JACKKNIFE_ROWS)
        y, w = sample.y, sample.w
        phi, ones = self.phi(sample.X), self._beta[:, -1]
        moved = self.left_out(phi, y, w)
        pull = w * (1.0 - phi @ ones) / self._spare  # of y on a free intercept
        fall = pull[:, None] * moved
        if self.kind == "mean":
            fall = mean_shift(y - self.sums.mean, w, self.sums.weight)
        first, group = sample.distinct()
        return Jackknife(
            group=group,
            weights=w[first],
            lams=np.array([self.lam]),
            spread=np.ptp(self.sample.y + self.sample.within, axis=0),
            far=np.sqrt((1.0 + self.lam / self._spare) * self.signal_variance),
            residuals=moved + sample.within,
            shifts=Shifts(self.A.solve(phi.T) * w, ones, moved, fall, L=self.phi.L),
            X=sample.X[first],
        )

    @property
    def held_out(self) -> HeldOut:
        """Leave-one-out residuals of at most SAMPLE_ROWS rows.

        Rows that were merged come once. A restored model has the rows of its sample instead, which
        share the weight of the row that they were merged into.
        """
        X, y, w = self.sample.X, self.sample.y, self.sample.w
        counts = w
        if self.given is not None and self.rows is not None:
            X, y, weights = self.rows.take(fixed_sample(self.rows.n, SAMPLE_ROWS))
            y = y if self.target is None else y[:, [self.target]]
            counts = w = np.ones(len(X)) if weights is None else weights
        elif self.sample.within.any():
            _, group = self.sample.distinct()
            counts = w / np.bincount(group)[group]
        within = self.sums.given_within / self.sums.weight
        return HeldOut(y, _LeavingOut([self])(X, y, w), counts, within)

    @cached_property
    def _observed(self) -> tuple[Array, Array] | None:
        """Weights of the sample's rows, and those that leave, where equal ones differ in y."""
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
        return HeldOut(y, _LeavingOut([self])(X, y, leaves), w, np.zeros(y.shape[1]))

    def known_rows(self, Z: Array) -> tuple[Array, Array, Array]:
        """The distinct rows of the sample."""
        first = np.sort(self.sample.distinct()[0])
        y = self.sample.y[first] - self.sums.mean
        return self.sample.X[first], y, self.sample.w[first]

    def state(self) -> dict[str, Any]:
        """The sums and the sample as plain arrays; landmarks are the estimator's `X_fit_`."""
        return nystrom_state(self.phi, self.sums, self.sample)

    @staticmethod
    def restored(at: Any, state: dict[str, Any]) -> NystromModel | StackedModel:
        """The model of a fitted function from its state, without the rows."""
        # Older versions saved no counts of the rows as given.
        state = {"given_n": state["n"], "given_within": np.zeros_like(state["yy"]), **state}
        kept = ((field.name, state[field.name]) for field in fields(Sums))
        parts: Any = {name: part if np.ndim(part) else float(part) for name, part in kept}
        # Nor weights of single rows, which are taken for one.
        state = {"sample_weights": np.ones(len(state["sample_w"])), **state}
        sample = Sample(*(state[f"sample_{field.name}"] for field in fields(Sample)))
        phi = Features(at.Z, np.asfortranarray(state["L"]), at.sigma, at.space)
        return solve_nystrom(phi, Sums(**parts), at.lams, at.kind, sample=sample)


@dataclass(frozen=True)
class _LeavingOut:
    """The pass for leave-one-out residuals; each model takes the targets that it has."""

    what: ClassVar[str] = "their leave-one-out residuals"
    models: Sequence[NystromModel]

    def __call__(self, X: Array, y: Array, w: Array | None) -> Array:
        w = np.ones(len(X)) if w is None else w
        phi, found = self.models[0].phi, np.empty(y.shape)
        for rows in row_blocks(len(X), max(rows_per_block(len(phi.L)), 1024)):
            P, stop = phi(X[rows]), 0
            for model in self.models:
                start, stop = stop, stop + len(model.sums.mean)
                found[rows, start:stop] = model.left_out(P, y[rows, start:stop], w[rows])
        return found


def _loo_residuals(
    rows: Rows | None, given: GivenRows | None, models: Sequence[NystromModel]
) -> Array:
    if rows is None:
        raise AttributeError(
            "Leave-one-out residuals need the training rows, which a pickled Nystrom model "
            "does not hold. Ask for them before pickling, or fit again."
        )
    # Workers need neither the source of the rows nor what was merged.
    work = _LeavingOut([replace(model, rows=None, given=None) for model in models])
    found = np.vstack(list(rows.each(work)))
    return found if given is None else given.residuals(found)


def solve_nystrom(
    phi: Features,
    sums: Sums,
    lams: Array,
    kind: str,
    *,
    sample: Sample,
    rows: Rows | None = None,
    given: GivenRows | None = None,
) -> NystromModel | StackedModel:
    """The model of these sums, with one penalty or one for each target."""
    if given is not None and given.weights is not None:
        some = given.weighed()
        weights: Any = some.weights
        sums = replace(sums, given_n=float(len(some.group)), given_within=weights @ some.within**2)
    if len(lams) == 1:
        A, _ = stable_system(lambda: np.array(sums.G, order="C"), lams[0])
        return NystromModel(phi, sums, A, lams[0], kind, sample, rows, given)
    s, V = eigh(sums.G)
    s = np.maximum(s, 0.0)
    models = []
    for t, lam in enumerate(lams):
        part: Any = sample.target(t), rows, given, t
        models.append(NystromModel(phi, sums.target(t), Eigen(V, s + lam), lam, kind, *part))
    saved = nystrom_state(phi, sums, sample)
    return StackedModel(models, saved, lambda: _loo_residuals(rows, given, models))


def nystrom_state(phi: Features, sums: Sums, sample: Sample) -> dict[str, Any]:
    """Plain arrays of a model, but for its landmarks."""
    parts = {name: np.asarray(part) for name, part in vars(sums).items()}
    return {"L": phi.L, **{f"sample_{name}": Z for name, Z in vars(sample).items()}, **parts}
