"""Problem: what a rule may look at, each quantity made once and only when asked for."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist

from . import _geometry, theory
from ._checks import LARGEST, Array, Indices
from ._distances import blas_for, geodesic_distances, paired_geodesics, squared_distances
from ._kernels import Pairs
from ._spectrum import spectrum

# The rules `median` and `maxvar` look at all pairs of rows up to this number, then at a sample.
PAIRS = 2_000_000


# Where lambda is looked for, if it is not given.
LAMBDAS = np.logspace(-6, 2, 17)


@dataclass(frozen=True)
class Problem:
    """What a rule may look at: the training data and what follows from them, made when asked for.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features), or distances if metric is "precomputed"
    y : ndarray of shape (n_samples, n_targets), centred, or None
    alpha : ridge penalty, or the criterion that chooses it among `lams`
    w : ndarray of shape (n_samples,), the weights, all positive
    lam : ridge penalty, or where the choice of it starts
    spectra : function of sigma that returns what another solver than the exact one knows of all
        penalties, if one is in use; `trials` is the same of a smaller model that stands for it
    """

    X: Array
    y: Array | None
    alpha: float | str | Array
    w: Array
    metric: str = "euclidean"
    grid: Array | None = None
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    spectra: Callable[[float], Any] | None = None
    trials: Callable[[float], Any] | None = None
    lam: float = 1e-3
    lams: Array = field(default_factory=LAMBDAS.copy)

    def __post_init__(self) -> None:
        if isinstance(self.alpha, np.ndarray):
            object.__setattr__(self, "lams", self.alpha)
            object.__setattr__(self, "alpha", "auto")
        elif not isinstance(self.alpha, str):
            object.__setattr__(self, "lam", self.alpha)

    def with_lam(self, lam: float) -> Problem:
        """The same problem, with what is already computed of it, for another penalty."""
        other = copy(self)
        object.__setattr__(other, "lam", lam)
        return other

    def part(self, rows: Indices) -> Problem:
        """The problem of some of the rows."""
        X = self.X[np.ix_(rows, rows)] if self.metric == "precomputed" else self.X[rows]
        y = None if self.y is None else self.y[rows]
        return replace(self, X=X, y=y, w=self.w[rows], spectra=None, trials=None, lam=self.lam)

    def thinned(self, size: int) -> Problem:
        """The problem of at most `size` of its rows, taken at random."""
        if len(self.w) <= size:
            return self
        return self.part(np.sort(self.rng.choice(len(self.w), size, replace=False)))

    def carried_from(self, part: Problem) -> float:
        """Factor that carries a bandwidth found on fewer rows to all rows."""
        return carried(part.n, self.n, self.p)

    @property
    def targets(self) -> Array:
        """The targets y, or an error where none were given."""
        if self.y is None:
            raise ValueError("A rule or an `alpha` that is found by solving needs `y`, got None.")
        return self.y

    def spectrum(self, sigma: float) -> Any:
        """What the solver knows of all penalties at one bandwidth: `loo`, `gcv` and `mml`."""
        if self.spectra is not None:
            return self.spectra(sigma)
        with blas_for(len(self.w)):
            return spectrum(self.pairs.kernel(sigma), self.targets, self.w)

    @cached_property
    def n(self) -> float:
        """Number of rows; a weight of two counts as two rows."""
        return float(self.w.sum())

    @cached_property
    def p(self) -> int:
        """Number of features; for given distances the dimensions that they span."""
        if self.metric == "precomputed":
            return _geometry.embedding_dimension(self.X)
        return self.X.shape[1]

    @cached_property
    def l_max(self) -> float:
        """Largest distance between two rows."""
        l_max = _geometry.diameter(self.X, self.metric)
        if l_max < 1 / LARGEST:
            raise ValueError(
                "`X` must have rows that differ, got rows that are all equal (or so close that "
                "squares of their distances underflow), for which no bandwidth can be chosen."
            )
        return l_max

    def check_rows(self) -> None:
        """Refuse rows that no rule can say anything of: fewer than three, or all equal."""
        if self.n <= 2:
            raise ValueError(
                f"The spacing of points needs n_samples >= 3, got n_samples={self.n:g}"
                f"{'' if len(self.w) == self.n else ' as the sum of the weights'}. "
                "Pass a number as `bandwidth` instead."
            )
        if (self.X[-1] == self.X[0]).all() and (self.X[0] == self.X).all():
            _ = self.l_max  # which says so

    @cached_property
    def even_spacing(self) -> float:
        """Distance of neighbours if the rows were spread evenly."""
        self.check_rows()
        return theory.even_spacing(self.n, self.p, self.l_max)

    @cached_property
    def _neighbours(self) -> tuple[float, int]:
        return _geometry.neighbour_spacing(self.X, self.metric)

    @property
    def neighbour_spacing(self) -> float:
        """Median distance of nearest neighbours among distinct rows."""
        return self._neighbours[0]

    @property
    def n_equal(self) -> int:
        """How many rows are equal to another one before them."""
        return self._neighbours[1]

    @cached_property
    def variance(self) -> float:
        """Variance of all entries of X together."""
        share = self.w / self.w.sum()
        if self.metric == "precomputed":
            return float(share @ np.square(self.X) @ share / (2 * self.p))
        centre = share @ self.X
        if self.metric == "geodesic":
            metres = geodesic_distances(self.X, centre[None])[:, 0]
            return float(share @ metres**2)
        mean = centre.mean()
        return float(share @ np.square(self.X - mean).mean(axis=1))

    @cached_property
    def pair_D2(self) -> Array:
        """Squared distances of all pairs of rows, or of a sample of two million."""
        m = len(self.X)
        if m * (m - 1) // 2 > PAIRS:
            return self._sampled_D2()
        if self.metric == "euclidean":
            D2 = pdist(self.X, "sqeuclidean")
        else:
            D2 = squared_distances(self.X, self.X, self.metric)[np.triu_indices(m, 1)]
        return np.asarray(D2 if self.pair_weights is None else np.append(D2, np.zeros(m)))

    @cached_property
    def pair_weights(self) -> Array | None:
        """How often each of these pairs occurs: a row of weight two is two rows, and a pair."""
        m = len(self.X)
        if (self.w == 1).all() or m * (m - 1) // 2 > PAIRS:
            return None
        i, j = np.triu_indices(m, 1)
        return np.append(self.w[i] * self.w[j], np.maximum(self.w * (self.w - 1) / 2, 0.0))

    def _sampled_D2(self) -> Array:
        i, j = self._sampled_pairs(self.rng)
        if self.metric == "precomputed":
            return np.square(self.X[i, j])
        if self.metric == "geodesic":
            return np.square(paired_geodesics(self.X[i], self.X[j]))
        return np.square(self.X[i] - self.X[j]).sum(axis=1)

    def _sampled_pairs(self, rng: np.random.Generator) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Two million pairs of rows, each as likely as its weights make it."""
        m = len(self.X)
        if (self.w == 1).all():
            i = rng.integers(m, size=PAIRS)
            return i, (i + rng.integers(1, m, size=PAIRS)) % m
        i, j = rng.choice(m, size=(2, PAIRS), p=self.w / self.w.sum())
        apart = (i != j) | (rng.uniform(size=PAIRS) * self.w[i] < self.w[i] - 1)
        return i[apart], j[apart]

    @cached_property
    def pairs(self) -> Pairs:
        """The n x n array of a search or an exact fit, made once."""
        return Pairs(self.X, self.metric)


def carried(fewer: float, n: float, p: int) -> float:
    """Factor that carries a bandwidth found on fewer rows, or landmarks, to n of them.

    It is the square root of the Jacobian's own law in n, (n - 1)^(1/p) - 1. For a function of
    smoothness s the best bandwidth falls like n^(-1 / (2 s + p)), which at s = p / 2, the least
    smoothness at which a kernel's functions have values at points, is half the exponent of the
    spacing, n^(-1 / p).
    """
    growth = [np.expm1(np.log(max(count - 1, 2.0)) / p) for count in (fewer, n)]
    return float(np.sqrt(growth[0] / growth[1]))


def mean_of(y: Array, w: Array) -> Array:
    """Weighted mean of each target, exact for a constant one."""
    mean = w @ y / w.sum()
    # Rounding in the sum would leave a constant target with noise that a search would look at.
    return np.asarray(mean + w @ (y - mean) / w.sum())
