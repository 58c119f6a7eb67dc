"""How functionals of a fitted function depend on y, and the variance that noise in y causes.

A prediction, a slope, an average of slopes: each is b'c + g b_0 of the dual coefficients c and the
intercept b_0, and both are linear in y. So it is a sum of l_i y_i over the rows as given, with

    l_i = w_i C psi_i,

where psi_i are the coordinates of row i: its features and a one for the Nystrom solver, the unit
vector of its distinct row for the exact one. C is the *readout* of the functional, and with Y the
covariance of y its variance is C M C', M = Psi'W Y W Psi. A `Noise` is such an M:

    even       Y = s2 W^-1, s2 the weighted residual sum of squares over n - tr H
    robust     Y = diag(e_i^2 / (1 - h_i)^2), from the leave-one-out residuals (HC3)
    clustered  e_c e_c' for the rows of a cluster c, e_c = (I - H_cc)^-1 e their residuals for the
               model without the cluster (CR3, the jackknife over clusters)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.sparse import coo_array, diags_array

from .._compute.arrays import EPS, Array, Indices
from .._rows.merging import GivenRows

if TYPE_CHECKING:
    from .systems import System

# Residual degrees of freedom, as a share of the rows, below which there is no noise to measure.
NONE_LEFT = 1e-8


# Blocks of I - H, H the hat matrix, for some sets of distinct rows.
HeldBlocks = Callable[[Sequence[Indices]], Iterator[Array]]


class Noise(Protocol):
    """The covariance M of the coordinates, for each of k targets."""

    def variances(self, C: Array) -> Array:
        """Diagonals of C M C', of shape (r, k)."""

    def covariances(self, C: Array) -> Array:
        """C M C', of shape (k, r, r)."""


class JointNoise(Noise, Protocol):
    """Noise whose covariance between targets is known, too."""

    @property
    def apart(self) -> Noise:
        """The noise of each target by itself, in arrays alone."""

    def joint(self, C: Array) -> Array:
        """Covariance (r, r) of sums over the targets, whose readouts are C of shape (k, r, q)."""


@dataclass(frozen=True)
class FullNoise:
    """M = scale_t M_t; M of shape (k, q, q), or (1, q, q) for all targets."""

    M: Array
    scale: Array

    def variances(self, C: Array) -> Array:
        """Diagonals of C M C', of shape (r, k)."""
        found = np.stack([np.einsum("ij,ij->i", C @ M, C) for M in self.M], axis=1)
        return np.maximum(found, 0.0) * self.scale

    def covariances(self, C: Array) -> Array:
        """C M C', of shape (k, r, r)."""
        return np.stack([C @ M @ C.T for M in self.M]) * self.scale[:, None, None]


@dataclass(frozen=True)
class FactoredNoise:
    """M = S_t'S_t; each row of S is the sum of the scores of a cluster, or the score of a row."""

    S: list[Any]  # arrays or sparse arrays of shape (clusters, q)

    @property
    def apart(self) -> FactoredNoise:
        """The noise itself."""
        return self

    def variances(self, C: Array) -> Array:
        """Diagonals of C M C', of shape (r, k)."""
        return np.stack([np.square(S @ C.T).sum(axis=0) for S in self.S], axis=1)

    def covariances(self, C: Array) -> Array:
        """C M C', of shape (k, r, r)."""
        return np.stack([(S @ C.T).T @ (S @ C.T) for S in self.S])

    def joint(self, C: Array) -> Array:
        """Covariance of sums over the targets, of shape (r, r)."""
        total = sum(S @ part.T for S, part in zip(self.S, C, strict=True))
        return total.T @ total


class Influence(Protocol):
    """How functionals depend on y, for targets that share a penalty."""

    @property
    def residual_degrees(self) -> float:
        """Residual degrees of freedom, n - tr H, H the hat matrix, intercept included."""

    @property
    def s2(self) -> Array:
        """Variance of the noise of a row of weight one, for each target."""

    @property
    def even(self) -> Noise:
        """Noise of variance s2 / w_i."""

    def robust(self) -> JointNoise:
        """Noise whose variance differs from row to row."""

    def clustered(self, labels: Indices) -> JointNoise:
        """Noise that is correlated within clusters; labels from 0 on, one per row as given."""

    def readout(self, B: Array, g: Array) -> Array:
        """C for functionals b'c + g b_0; B of shape (r, m), g (r,), result (r, q)."""

    def training_rows(self, Z: Array) -> tuple[Array, Array]:
        """Features and weights of the rows as given; Z are the rows of the model."""


# Function from an influence to a noise.
NoiseOf = Callable[[Influence], Noise]
# Function from an influence to the degrees of freedom of Student's t.
DegreesOf = Callable[[Influence], float]


def even_noise(influence: Influence) -> Noise:
    """Noise of constant variance."""
    return influence.even


@dataclass(frozen=True)
class Scores:
    """Residuals and leverages of the rows as given, in the order of these rows.

    Attributes
    ----------
    given : the rows as given, with weights
    e : residuals of the distinct rows, of shape (n, k)
    h : leverages of the distinct rows, intercept included
    w : total weights of the distinct rows
    """

    given: GivenRows
    e: Array
    h: Array
    w: Array

    @cached_property
    def values(self) -> Array:
        """w_i e_i / (1 - h_i) of the rows of positive weight, of shape (n, k)."""
        given = self.given.weighed()
        w, group = given.weights, given.group
        share = self.h[group] * w / self.w[group]
        e = self.e[group] + given.within
        return (w / np.maximum(1.0 - share, EPS))[:, None] * e

    def by_row(self) -> list[Any]:
        """For each target, the scores of the rows as given, sparse of shape (rows, n)."""
        group = self.given.weighed().group
        place, shape = np.arange(len(group)), (len(group), len(self.w))
        return [coo_array((v, (place, group)), shape=shape).tocsr() for v in self.values.T]

    def by_cluster(self, labels: Indices, held_blocks: HeldBlocks) -> list[Any]:
        """For each target, scores by models without the row's cluster, sparse (clusters, n).

        They are scaled by (G - 1) / G, as in a jackknife over G clusters.
        """
        given, labels = self.given.weighed(), labels[self.given.group >= 0]
        w, group, G = given.weights, given.group, int(labels.max()) + 1
        clusters = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])
        values, e = np.empty(given.within.shape), self.e[group] + given.within
        distinct = [np.unique(group[rows], return_inverse=True) for rows in clusters]
        held = held_blocks([found for found, _ in distinct])
        for rows, (found, place), block in zip(clusters, distinct, held, strict=True):
            H = (np.eye(len(found)) - block)[np.ix_(place, place)] * (w[rows] / self.w[group[rows]])
            values[rows] = np.linalg.solve(np.eye(len(rows)) - H, e[rows]) * w[rows, None]
        values *= np.sqrt((G - 1) / G)
        shape = G, len(self.w)
        return [coo_array((v, (labels, group)), shape=shape).tocsr() for v in values.T]


def as_given(given: GivenRows | None, w: Array, k: int) -> GivenRows:
    """The rows as given; the distinct ones themselves if nothing was merged."""
    return given or GivenRows(np.arange(len(w)), np.zeros((len(w), k)), w)


def expanded(given: GivenRows | None, X: Array, w: Array) -> tuple[Array, Array]:
    """Features and weights of the rows as given; features of rows of weight zero are arbitrary."""
    if given is None:
        return X, w
    weights = np.zeros(len(given.group))
    weights[given.group >= 0] = given.weighed().weights
    return X[given.group], weights


def noise_variance(rss: Array, degrees: float, n: float) -> Array:
    """Return s2 = RSS / (n - tr H), or raise an error if the model interpolates the rows."""
    if degrees <= NONE_LEFT * n:
        raise ValueError(
            f"Standard errors need residuals, got {degrees:.3g} residual degrees of freedom for "
            f"{n:.6g} rows: the model follows every row. Give a larger `alpha`."
        )
    return rss / degrees


@dataclass(frozen=True)
class ExactInfluence:
    """Functionals of an exact system, whose coordinates are the distinct rows.

    Attributes
    ----------
    A : the factored system
    w : weights of the distinct rows
    pull : how much the intercept changes with y of each distinct row; zeros if there is none
    e : residuals of the distinct rows, of shape (n, k)
    h : leverages of the distinct rows, intercept included
    held_blocks : blocks of I - H, intercept included
    given : the rows as given, or None
    """

    A: System
    w: Array
    pull: Array
    e: Array
    h: Array
    held_blocks: HeldBlocks
    given: GivenRows | None

    @cached_property
    def _scores(self) -> Scores:
        return Scores(as_given(self.given, self.w, self.e.shape[1]), self.e, self.h, self.w)

    @property
    def residual_degrees(self) -> float:
        """Residual degrees of freedom, n - tr H."""
        return float(len(self._scores.given.weighed().group) - self.h.sum())

    @cached_property
    def s2(self) -> Array:
        """Variance of the noise of a row of weight one, for each target."""
        given = self._scores.given.weighed()
        rss = self.w @ self.e**2 + given.weights @ given.within**2
        return noise_variance(rss, self.residual_degrees, len(given.group))

    @cached_property
    def even(self) -> Noise:
        """Noise of variance s2 / w_i."""
        return FactoredNoise([diags_array(s * np.sqrt(self.w)).tocsr() for s in np.sqrt(self.s2)])

    def robust(self) -> JointNoise:
        """Noise whose variance differs from row to row."""
        return FactoredNoise(self._scores.by_row())

    def clustered(self, labels: Indices) -> JointNoise:
        """Noise that is correlated within clusters."""
        return FactoredNoise(self._scores.by_cluster(labels, self.held_blocks))

    def readout(self, B: Array, g: Array) -> Array:
        """(B A^-1 + (g - B A^-1 1) pull') W^-1, of shape (r, n)."""
        C = self.A.solve(B.T).T
        C = C + np.outer(g - C.sum(axis=1), self.pull)
        C /= self.w
        return C

    def training_rows(self, Z: Array) -> tuple[Array, Array]:
        """Features and weights of the rows as given."""
        return expanded(self.given, Z, self.w)
