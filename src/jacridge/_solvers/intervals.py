r"""Jackknife+ intervals in units of a scale that depends on where a row lies.

With the residual r_i of row i for the model without it, and a scale s, the interval at x goes from
a low quantile of mu_-i(x) - s(x) |r_i| / s_i to a high one of mu_-i(x) + s(x) |r_i| / s_i, where
mu_-i is the model without row i and s_i the scale that the other rows give it. The scale is

    s(x)^2 = g(x)^2 + V e(x)

- g(x), the level of the noise, is the exponential of a kernel ridge on log |r_i|, with twice the
  bandwidth and a penalty chosen by leave-one-out;
- e(x), from 0 to 1, says how far x is outside of the data: the larger of the share of the prior
  variance that the rows leave open at x, beyond what they do at 99 % of their own, and the square
  of the distance to the nearest row, beyond 99 % of theirs, in units of the largest distance,
  before any feature is compressed;
- V makes the interval as wide as y is spread where e(x) = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError

from .._compute.arrays import EPS, Array, Indices
from .._compute.threads import blas_for
from .cholesky import factor
from .spectrum import eigh, spectrum
from .systems import Eigen, System

if TYPE_CHECKING:
    from .._geometry.space import Space
    from .model import Jackknife

# Bandwidth of the noise's level, in units of the model's, and its penalties.
NOISE_WIDTH = 2.0
NOISE_PENALTIES = np.logspace(0, 3, 7)

# Residuals below this share of their mean are raised to that value; otherwise their logarithms
# would dominate the fit.
SMALLEST_RESIDUAL = 1e-3

# The share of the training rows that are inside of the data by definition.
INSIDE = 0.99

# Least penalty of the system that says how much of the variance is left open.
LEAST_PENALTY = 1e-10


@dataclass(frozen=True)
class NoiseLevel:
    """Level of the noise: exp(mean + k(x, Z) coef), and that of each row by the other rows.

    Attributes
    ----------
    mean : of shape (k,)
    coef : of shape (d, k)
    rows : level at the rows as given, each without itself and its copies, of shape (s, k)
    """

    mean: Array
    coef: Array
    rows: Array

    def at(self, K: Array) -> Array:
        """Level at new rows, of shape (n_new, k); K is their kernel of twice the bandwidth."""
        return np.exp(self.mean + K @ self.coef)


def noise_level(K: Array, residuals: Array, group: Indices) -> NoiseLevel:
    """Kernel ridge on the logarithm of the residuals' size.

    K of shape (d, d) is the kernel of distinct rows, residuals (s, k) are those of rows as given,
    group (s,) says which distinct row each of them is.
    """
    sizes = np.abs(residuals)
    mean_size = sizes.mean(axis=0)
    floor = np.where(mean_size > 0, SMALLEST_RESIDUAL * mean_size, 1.0)
    counts = np.bincount(group, minlength=len(K)).astype(np.float64)
    logs = np.log(np.maximum(sizes, floor))
    sums = np.column_stack([np.bincount(group, column, len(K)) for column in logs.T])
    means = np.asarray(sums / counts[:, None])
    mean, k = logs.mean(axis=0), logs.shape[1]
    # Relative counts: repeating all rows says nothing new about the noise.
    w = counts / counts.mean()
    found = spectrum(K, np.column_stack([means - mean, np.ones(len(K))]), w)
    lams = NOISE_PENALTIES[found.loo(NOISE_PENALTIES)[:, :k].argmin(axis=0)]
    solved = found.dual_coef(lams)
    coef, of_ones = solved[:, range(k), range(k)], solved[:, :, k]
    # Copies of a row are left out with it, each with its share of the leverage. The mean of all
    # rows changes as well.
    copies = np.column_stack([_copies(group, column) for column in logs.T])
    unfitted = lams / w[:, None]
    residuals = logs - (means - unfitted * coef)[group]
    fall = copies * (logs - mean) / np.maximum(len(logs) - copies, 1)
    left = 1.0 - copies * (found.leverages(lams) / counts[:, None])[group]
    rows = logs - (residuals + fall * (unfitted * of_ones)[group]) / left
    return NoiseLevel(mean, coef, np.exp(np.clip(rows, -700, 700)))


def _copies(group: Indices, values: Array) -> Array:
    """How many rows have the place and the value of each row, itself included."""
    pairs = np.column_stack([group, values])
    _, which, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(counts[which.ravel()], dtype=np.float64)


@dataclass(frozen=True)
class Outside:
    """How far rows are outside of the data, from 0 to 1, by what the kernel leaves open there.

    Attributes
    ----------
    A : K + lambda W^-1 of the distinct rows
    inside : share of the variance that is left open at 99 % of the rows by the others
    rows : how far each row is outside of the others
    """

    A: System
    inside: float
    rows: Array

    def at(self, K: Array) -> Array:
        """How far new rows with the kernels K are outside, of shape (n_new,)."""
        half = self.A.half_solve(K.T)
        return _beyond(1.0 - np.einsum("ij,ij->j", half, half), self.inside)


def outside_of(K: Array, w: Array, lam: float) -> Outside:
    """Share of the variance that distinct rows with kernel K (d, d) and weights w leave open."""
    penalty = np.maximum(lam / w, LEAST_PENALTY)
    try:
        A: System = factor(K.copy(), penalty)
    except LinAlgError:  # the kernel of a geodesic distance may have negative eigenvalues
        s, V = eigh(K / np.sqrt(penalty * penalty[:, None]))
        A = Eigen(V / np.sqrt(penalty)[:, None], np.maximum(s, 0.0) + 1.0)
    left = np.clip(1.0 / A.inverse_diagonal() - penalty, 0.0, 1.0)
    inside = _quantile(left, INSIDE)
    return Outside(A, inside, _beyond(left, inside))


def _beyond(left: Array, inside: float) -> Array:
    """Share of what could be left open beyond `inside`."""
    if inside > 1.0 - 1e-9:
        return np.zeros(len(left))  # rows that say nothing of each other have no outside
    return np.clip((left - inside) / (1.0 - inside), 0.0, 1.0)


def _quantile(values: Array, share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    rank = int(np.ceil(share * len(values))) - 1
    return float(np.partition(values, rank)[rank])


@dataclass(frozen=True)
class Scale:
    """The scale s(x) of an interval, from a sample of the rows.

    Attributes
    ----------
    jackknife : models that leave one row out
    X : distinct rows of the sample, or distances between them
    straight : takes rows as the kernel sees them to rows without compressed features
    """

    jackknife: Jackknife
    X: Array
    space: Space
    sigma: float
    straight: Callable[[Array], Array] | None = None

    @cached_property
    def _gaps(self) -> Array:
        return self.space.distance.gaps(self.X, self.X)

    @cached_property
    def noise(self) -> NoiseLevel:
        """Level of the noise."""
        K = self.space.kernel.of(self._gaps.copy(), NOISE_WIDTH * self.sigma)
        with blas_for(len(K)):
            return noise_level(K, self.jackknife.residuals, self.jackknife.group)

    @cached_property
    def _outsides(self) -> list[Outside]:
        """Share of the variance left open, for each penalty."""
        K = self.space.kernel.of(self._gaps.copy(), self.sigma)
        with blas_for(len(K)):
            return [outside_of(K, self.jackknife.weights, lam) for lam in np.unique(self._lams)]

    @property
    def _lams(self) -> Array:
        return np.broadcast_to(self.jackknife.lams, self.noise.mean.shape)

    @cached_property
    def _straight_X(self) -> Array:
        return self.X if self.straight is None else self.straight(self.X)

    @cached_property
    def _nearest(self) -> tuple[Array, float, float]:
        """Distance of each row to the nearest other one, its 99 % quantile, the largest one."""
        gaps = self._gaps.copy()
        if self.straight is not None:
            gaps = self.space.distance.gaps(self._straight_X, self._straight_X)
        lengths = self.space.distance.lengths(gaps)
        largest = float(lengths.max())
        np.fill_diagonal(lengths, np.inf)
        nearest = lengths.min(axis=1)
        return nearest, _quantile(nearest, INSIDE), largest

    def _away(self, nearest: Array) -> Array:
        """Squared distance to the nearest row beyond the rows' own, in largest distances."""
        _, usual, largest = self._nearest
        if not (largest > 0 and np.isfinite(usual)):
            return np.zeros(len(nearest))
        return np.square(np.clip((nearest - usual) / largest, 0.0, 1.0))

    @cached_property
    def rows(self) -> tuple[Array, Array]:
        """Noise level g and distance outside e of the rows as given, from the others; (s, k)."""
        away = self._away(self._nearest[0])
        e = np.column_stack([np.maximum(outside.rows, away) for outside in self._outsides])
        return self.noise.rows, self._of_targets(e)[self.jackknife.group]

    def at(self, X_new: Array, V: Array) -> tuple[Array, Array]:
        """The scale s at new rows, and its part (V e)^(1/2) outside; of shape (n_new, k)."""
        gaps = self.space.distance.gaps(X_new, self.X)
        nearest = gaps.min(axis=1)
        if self.straight is not None:
            far = self.space.distance.gaps(self.straight(X_new), self._straight_X)
            nearest = far.min(axis=1)
        away = self._away(self.space.distance.lengths(nearest))
        K = self.space.kernel.of(gaps.copy(), self.sigma)
        e = np.column_stack([np.maximum(outside.at(K), away) for outside in self._outsides])
        g = self.noise.at(self.space.kernel.of(gaps, NOISE_WIDTH * self.sigma))
        outside = V * self._of_targets(e)
        return np.sqrt(np.square(g) + outside), np.sqrt(outside)

    def _of_targets(self, e: Array) -> Array:
        """Columns for the targets from those for the distinct penalties."""
        return e[:, np.searchsorted(np.unique(self._lams), self._lams)]

    def spread(self, coverage: float) -> Array:
        """V for each target: at e(x) = 1 the interval is as wide as the spread of y."""
        # The quantile of the scores is at least that with zeros for the rows that V changes.
        _, e = self.rows
        scores = np.where(e > 0, 0.0, self.scores(np.zeros(e.shape[1])))
        lowest = upper_quantile(scores.T[..., None], coverage)[:, 0]
        known = np.isfinite(lowest) & (lowest > 0)
        half = self.jackknife.spread / 2
        return np.square(np.where(known, half / np.where(known, lowest, 1.0), 0.0))

    def scores(self, V: Array) -> Array:
        """Sizes |r_i| / s_i of the residuals in units of the scale, of shape (s, k)."""
        g, e = self.rows
        return np.asarray(np.abs(self.jackknife.residuals) / np.sqrt(np.square(g) + V * e))


def widened(lower: Array, upper: Array, least: Array) -> tuple[Array, Array]:
    """Ends of intervals, moved apart by the same amount where they are nearer than 2 `least`."""
    short = np.maximum(least - (upper - lower) / 2, 0.0)
    return lower - short, upper + short


def upper_quantile(values: Array, coverage: float) -> Array:
    """The ceil(coverage (n + 1))-th smallest of n values along axis 1; infinite if n is too few."""
    n = values.shape[1]
    rank = int(np.ceil(coverage * (n + 1) * (1 - 4 * EPS)))
    if rank > n:
        return np.full(values[:, 0].shape, np.inf)
    return np.asarray(np.partition(values, rank - 1, axis=1)[:, rank - 1])
