r"""Level of the noise at each row: a kernel ridge regression on log |leave-one-out residual|.

Its kernel is the sum of three,

.. math:: k_{2 \sigma}(x, x') + u^2 \sum_j (b_j - \bar b_j) (b'_j - \bar b_j)
          + \exp \frac{-(\mu - \mu')^2}{2 v^2}

- k, the kernel of the model, with twice its bandwidth;
- b, the features that have two values, as 0 and 1: marks of gaps and of categories. They may change
  the noise although they hardly change the mean, and the metric of the model then gives them little
  weight. With u, their part of the kernel is at most one in the mean over the rows;
- mu, the predictions, for a row of the sample by the model without it: noise often grows with the
  level of y. v is their standard deviation. Where the model is nearly constant, predictions differ
  because leaving a row out moves its prediction by more if its residual is larger. The kernel would
  then see the residuals; so v is at least INFLUENCES root mean squares of these moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError

from .._compute.arrays import Array, Indices
from .._compute.threads import in_threads
from .cholesky import ROUGH_PENALTY, factor
from .spectrum import mean_shift, spectrum

if TYPE_CHECKING:
    from collections.abc import Sequence

# Bandwidth for the level of the noise, as a multiple of the model's bandwidth, and its penalties.
NOISE_WIDTH = 2.0
NOISE_PENALTIES = np.logspace(0, 3, 7)

# Residuals below this share of their mean are raised to that value; otherwise their logarithms
# would dominate the fit.
SMALLEST_RESIDUAL = 1e-3

# Least width v, in root mean squares of the moves of predictions when their row is left out.
INFLUENCES = 20.0

# Largest distance of a mark from 0 or 1; the inverse of a map has rounding errors.
TWO_VALUES = 1e-6

# Above this number of rows, systems of intervals are in single precision.
ROUGH_SAMPLE = 500


@dataclass(frozen=True)
class Marks:
    """Features with two values: their indices, both values, their means as 0 and 1, and u."""

    places: Indices
    low: Array
    high: Array
    centre: Array
    unit: float

    def __call__(self, X: Array) -> Array:
        """Values at rows before any map, of shape (n, b); others are clipped to these two."""
        marks = (X[:, self.places] - self.low) / (self.high - self.low)
        return np.asarray(self.unit * (np.clip(marks, 0.0, 1.0) - self.centre))


def marks_of(X: Array) -> Marks:
    """The features of X, of shape (d, p), that have two values."""
    low, high = X.min(axis=0), X.max(axis=0)
    shares = (X - low) / np.where(high > low, high - low, 1.0)
    near = np.abs(shares - np.round(shares)) < TWO_VALUES
    places = np.flatnonzero((high > low) & near.all(axis=0))
    marks = np.round(shares[:, places])
    centre = marks.mean(axis=0)
    size = np.square(marks - centre).sum(axis=1).mean()
    # Marks of -1 and 1, if they are few.
    unit = 2.0 if size <= 0.25 else float(1.0 / np.sqrt(size))
    return Marks(places, low[places], high[places], centre, unit)


def closeness(mean: Array, predicted: Array, fitted: Array) -> Array:
    """Gaussian kernel of predictions `mean` (n,) with those of the sample, of shape (n, d).

    `predicted` (d,) are the predictions of the sample's rows without them, `fitted` (d,) with them.
    """
    least = INFLUENCES * np.sqrt(np.mean(np.square(fitted - predicted)))
    width = max(float(predicted.std()), float(least)) or 1.0
    return np.asarray(np.exp(-0.5 * np.square(np.subtract.outer(mean, predicted) / width)))


@dataclass(frozen=True)
class NoiseLevel:
    """Level of the noise: exp(mean + k(x, Z) coef), and at each row according to the other rows.

    Attributes
    ----------
    mean : mean of the logarithms
    coef : of shape (d,)
    rows : level at the rows as given, each without itself and its copies, of shape (s,)
    """

    mean: float
    coef: Array
    rows: Array

    def at(self, K: Array) -> Array:
        """Level at new rows with the kernel K (n_new, d), of shape (n_new,)."""
        return np.exp(self.mean + K @ self.coef)


def noise_level(K: Array, residuals: Array, group: Indices) -> NoiseLevel:
    """Kernel ridge regression on the logarithms of absolute residuals.

    K of shape (d, d) is the kernel of distinct rows, residuals (s,) belong to rows as given, and
    group (s,) has the index of the distinct row for each of them.
    """
    sizes = np.abs(residuals)
    floor = SMALLEST_RESIDUAL * sizes.mean() if sizes.any() else 1.0
    counts = np.bincount(group, minlength=len(K)).astype(np.float64)
    logs = np.log(np.maximum(sizes, floor))
    mean = float(logs.mean())
    means = np.bincount(group, logs - mean, len(K)) / counts
    # Relative counts: repeating all rows says nothing new about the noise.
    w = counts / counts.mean()
    diagonals, solved = _solved(K, np.column_stack([means, np.ones(len(K))]), w)
    grown = solved[:, :, 0] + solved[:, :, 1] * mean_shift(means[:, None], w)[:, 0]
    best = int(np.argmin(np.square(grown / diagonals) @ w))
    unfitted, (coef, of_ones) = NOISE_PENALTIES[best] / w, solved[best].T
    # Copies of a row are left out together with it, each with its share of the leverage. The mean
    # of all rows changes as well.
    copies = _copies(group, logs)
    left = logs - mean - (means - unfitted * coef)[group]
    fall = copies * (logs - mean) / np.maximum(len(logs) - copies, 1)
    leverages = 1.0 - unfitted * diagonals[best]
    share = 1.0 - copies * (leverages / counts)[group]
    rows = logs - (left + fall * (unfitted * of_ones)[group]) / share
    return NoiseLevel(mean, coef, np.exp(np.clip(rows, -700, 700)))


def _solved(K: Array, Y: Array, w: Array) -> tuple[Array, Array]:
    """Diagonal of A^-1, of shape (l, d), and A^-1 Y, of shape (l, d, r), for l penalties."""

    def work(lam: float) -> tuple[Array, Array]:
        A = factor(*rough(K, lam / w))
        return A.inverse_diagonal(), A.solve(Y)

    try:
        pairs: Sequence[tuple[Array, Array]] = in_threads(work, NOISE_PENALTIES)
        return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    except LinAlgError:  # the kernel of a geodesic distance may have negative eigenvalues
        found = spectrum(K, Y, w)
        held = 1.0 - found.leverages(NOISE_PENALTIES)
        of_lams = found.dual_coef(NOISE_PENALTIES)
        return (held * w[:, None] / NOISE_PENALTIES).T, of_lams.transpose(1, 0, 2)


def rough(K: Array, penalty: Array, most: float = np.inf) -> tuple[Array, Array]:
    """Copies of K and its penalty; for many rows in single precision, if the penalty allows it."""
    is_rough = len(K) > ROUGH_SAMPLE and penalty.min() >= ROUGH_PENALTY and penalty.max() <= most
    dtype = np.float32 if is_rough else np.float64
    return K.astype(dtype), penalty.astype(dtype)


def _copies(group: Indices, values: Array) -> Array:
    """For each row, the number of rows with the same place and value, including itself."""
    pairs = np.column_stack([group, values])
    _, which, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(counts[which.ravel()], dtype=np.float64)
