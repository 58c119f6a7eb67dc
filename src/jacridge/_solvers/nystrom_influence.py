"""Functionals of a Nystrom model, whose coordinates are the features and a one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.linalg.blas import dtrsm

from .._compute.arrays import EPS, Array, Indices, row_blocks, rows_per_block
from .._rows.merging import GivenRows
from .._rows.rows import ArrayRows, Rows
from .influence import (
    FactoredNoise,
    FullNoise,
    JointNoise,
    Noise,
    Scores,
    as_given,
    expanded,
    noise_variance,
)

if TYPE_CHECKING:
    from .landmarks import Features
    from .sums import Sums
    from .systems import System


@dataclass(frozen=True)
class Residuals:
    """Residuals and leverages of rows, and their coordinates [phi, 1].

    The intercept changes with y of a row by w (one - phi'ones) / spare. For a mean, `one` is 1,
    `ones` are zero, and `spare` is the total weight.
    """

    phi: Features
    A: System
    coef: Array  # of the features, (m, k)
    intercept: Array
    beta: Array  # of the features for a target of ones
    ones: Array  # beta for a free intercept, else zero
    spare: float  # infinite without an intercept

    def coordinates(self, X: Array) -> Array:
        """Rows [phi, 1]."""
        return np.column_stack([self.phi(X), np.ones(len(X))])

    def __call__(self, psi: Array, y: Array, w: Array) -> tuple[Array, Array]:
        """Residuals (n, k) and leverages (n,) of rows with these coordinates."""
        phi = psi[:, :-1]
        half = self.A.half_solve(phi.T)
        rest, pull = 1.0 - phi @ self.beta, (1.0 - phi @ self.ones) / self.spare
        h = w * (np.einsum("ij,ij->j", half, half) + rest * pull)
        return y - self.intercept - phi @ self.coef, h


@dataclass(frozen=True)
class NystromInfluence:
    """Functionals of a Nystrom model, from its sums; robust noise takes a pass over the rows."""

    residuals: Residuals
    sums: Sums
    trace: float  # of the hat matrix, intercept included
    targets: slice  # those of this influence among all targets
    rows: Rows | None
    given: GivenRows | None
    sample: tuple[Array, Array]  # features and weights of some rows

    @property
    def residual_degrees(self) -> float:
        """Residual degrees of freedom, n - tr H."""
        return self.sums.given_n - self.trace

    @cached_property
    def s2(self) -> Array:
        """Variance of the noise of a row of weight one, for each target."""
        at = self.residuals
        b = at.intercept - self.sums.mean  # relative to the mean, at which y is centred
        products = self.sums.B[:, :-1] - np.outer(self.sums.B[:, -1], b)
        total = self.sums.yy + self.sums.weight * b**2
        fit = np.einsum("ij,ij->j", at.coef, 2.0 * products - self._moments[:-1, :-1] @ at.coef)
        rss = np.maximum(total - fit, EPS * total) + self.sums.given_within
        return noise_variance(rss, self.residual_degrees, self.sums.given_n)

    @cached_property
    def _moments(self) -> Array:
        """Psi'W Psi; the sums only hold its lower triangle."""
        ones = self.sums.B[:, [-1]]
        G = np.tril(self.sums.G)
        G = G + np.tril(G, -1).T
        return np.block([[G, ones], [ones.T, np.array([[self.sums.weight]])]])

    @cached_property
    def even(self) -> Noise:
        """Noise of variance s2 / w_i."""
        return FullNoise(self._moments[None], self.s2)

    def robust(self) -> JointNoise:
        """Noise whose variance differs from row to row."""
        if self.given is None:
            return RobustNoise(self._rows(), self.residuals, self.targets)
        # The scores are passed in place of the targets, so that each comes with its row.
        scores, X = self._scores(), self._in_memory().X
        rows = ArrayRows(X[scores.given.weighed().group], scores.values)
        return RobustNoise(rows, self.residuals, None)

    def clustered(self, labels: Indices) -> JointNoise:
        """Noise that is correlated within clusters."""
        rows = self._in_memory()
        T = self._scores().by_cluster(labels, self._held_blocks)
        sums = [np.zeros((part.shape[0], len(self._moments))) for part in T]
        for some in row_blocks(rows.n, max(rows_per_block(len(self._moments)), 1024)):
            psi = self.residuals.coordinates(rows.X[some])
            for total, part in zip(sums, T, strict=True):
                total += part[:, some] @ psi
        return FactoredNoise(sums)

    def _held_blocks(self, parts: Sequence[Indices]) -> Iterator[Array]:
        """Blocks of I - H for some sets of rows."""
        at, rows = self.residuals, self._in_memory()
        for some in parts:
            phi = at.phi(rows.X[some])
            half, w = at.A.half_solve(phi.T), 1.0 if rows.w is None else rows.w[some]
            pull = (1.0 - phi @ at.ones) / at.spare
            H = half.T @ half + np.outer(1.0 - phi @ at.beta, pull)
            yield np.eye(len(some)) - H * w

    def _scores(self) -> Scores:
        rows = self._in_memory()
        found = np.vstack(list(rows.each(_ResidualsAndLeverages(self.residuals, self.targets))))
        w = np.ones(rows.n) if rows.w is None else rows.w
        k = len(self.sums.given_within)
        given = as_given(self.given, w, k)
        if self.given is not None:
            given = given.of(self.targets)
        return Scores(given, found[:, :-1], found[:, -1], w)

    def _rows(self) -> Rows:
        if self.rows is None:
            raise AttributeError(
                "Robust and clustered standard errors need the training rows, which a pickled "
                "Nystrom model does not hold. Compute them before pickling, or fit again."
            )
        return self.rows

    def _in_memory(self) -> ArrayRows:
        rows = self._rows()
        if not isinstance(rows, ArrayRows):
            raise ValueError(
                "`cluster` must be None for a model of Parquet files or Dask arrays, because their "
                "rows have no cluster labels. Fit to arrays, or use robust=True."
            )
        return rows

    def readout(self, B: Array, g: Array) -> Array:
        """C for functionals b'c + g b_0, of shape (r, m + 1)."""
        at = self.residuals
        F = dtrsm(1.0, at.phi.L, B.T, lower=1)  # b'c = F'beta
        lift = (g - at.beta @ F) / at.spare
        return np.column_stack([at.A.solve(F).T - np.outer(lift, at.ones), lift])

    def training_rows(self, Z: Array) -> tuple[Array, Array]:
        """Features and weights of the rows as given, or of a sample if they were streamed."""
        if not isinstance(self.rows, ArrayRows):
            return self.sample
        X = np.asarray(self.rows.X)
        return expanded(self.given, X, np.ones(len(X)) if self.rows.w is None else self.rows.w)


@dataclass(frozen=True)
class _Pass:
    """Coordinates, targets and weights of the blocks of a pass."""

    residuals: Residuals

    def blocks(self, X: Array, y: Array, w: Array | None) -> Iterator[tuple[Array, Array, Array]]:
        w = np.ones(len(X)) if w is None else w
        for rows in row_blocks(len(X), max(rows_per_block(len(self.residuals.beta)), 1024)):
            yield self.residuals.coordinates(X[rows]), y[rows], w[rows]


@dataclass(frozen=True)
class _ResidualsAndLeverages(_Pass):
    what: ClassVar[str] = "their residuals"
    targets: slice

    def __call__(self, X: Array, y: Array, w: Array | None) -> Array:
        found = [
            np.column_stack(self.residuals(psi, t[:, self.targets], v))
            for psi, t, v in self.blocks(X, y, w)
        ]
        return np.vstack(found)


@dataclass(frozen=True)
class _ScorePass(_Pass):
    what: ClassVar[str] = "their squared scores"
    targets: slice | None  # None if scores are passed in place of targets

    def scored(self, X: Array, y: Array, w: Array | None) -> Iterator[tuple[Array, Array]]:
        """Coordinates and scores of blocks of rows."""
        for psi, t, v in self.blocks(X, y, w):
            if self.targets is None:
                yield psi, t
                continue
            e, h = self.residuals(psi, t[:, self.targets], v)
            yield psi, (v / np.maximum(1.0 - h, EPS))[:, None] * e


@dataclass(frozen=True)
class _SquaredScores(_ScorePass):
    def __call__(self, X: Array, y: Array, w: Array | None) -> Array:
        q, k = len(self.residuals.beta) + 1, len(self.residuals.intercept)
        M = np.zeros((k, q, q))
        for psi, scores in self.scored(X, y, w):
            for total, column in zip(M, np.square(scores).T, strict=True):
                total += psi.T @ (psi * column[:, None])
        return M


@dataclass(frozen=True)
class _JointScores(_ScorePass):
    C: Array

    def __call__(self, X: Array, y: Array, w: Array | None) -> Array:
        total = np.zeros((self.C.shape[1],) * 2)
        for psi, scores in self.scored(X, y, w):
            moved = sum(
                psi @ part.T * column[:, None]
                for part, column in zip(self.C, scores.T, strict=True)
            )
            total += moved.T @ moved
        return total


@dataclass(frozen=True)
class RobustNoise:
    """Noise whose variance differs from row to row, from passes over the rows."""

    rows: Rows
    residuals: Residuals
    targets: slice | None  # None if scores are passed in place of targets

    @cached_property
    def apart(self) -> FullNoise:
        """The noise of each target by itself, without the rows."""
        M = self.rows.total(_SquaredScores(self.residuals, self.targets))
        return FullNoise(M, np.ones(len(M)))

    def variances(self, C: Array) -> Array:
        """Diagonals of C M C', of shape (r, k)."""
        return self.apart.variances(C)

    def covariances(self, C: Array) -> Array:
        """C M C', of shape (k, r, r)."""
        return self.apart.covariances(C)

    def joint(self, C: Array) -> Array:
        """Covariance of sums over the targets, of shape (r, r)."""
        return self.rows.total(_JointScores(self.residuals, self.targets, C))
