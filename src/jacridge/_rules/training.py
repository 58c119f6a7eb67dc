"""Training data as a rule sees them: every quantity is computed at most once, on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import theory
from .._compute.arrays import Array, Indices, are_whole
from .._compute.threads import blas_for, in_threads
from .._rows.extent import ArrayExtent, Extent
from .._rows.merging import distinct_rows
from .._rows.survey import counted
from .._solvers.spectrum import spectrum

if TYPE_CHECKING:
    from .._geometry.space import Pairs, Space
    from .._rows.merging import Replicates
    from .._solvers.nystrom import Nystrom
    from .._solvers.spectrum import Spectral

# The rules `median` and `maxvar` use all pairs of up to this many rows, else a sample of pairs.
MOST_PAIRS = 2_000_000

# Largest weight of a row in a comparison, in units of the mean. Half of a table may be copies of
# one row, and must not decide alone.
LARGEST_WEIGHT = 5.0

# Number of rows whose median distance is the unit in which bandwidths move between metrics.
UNIT_ROWS = 250

# Up to this many rows, spectra are computed in parallel, each in its own n x n array.
SIDE_BY_SIDE_ROWS = 2000

# Grid of penalties for the choice of lambda, in units of the mean weight of the rows, so that a
# common factor of all weights changes nothing.
LAMBDAS = np.logspace(-6, 2, 17)
# The same for a search that may go beyond this grid.
WIDE_LAMBDAS = np.logspace(-8, 3, 23)
# Smallest penalty that a search beyond this grid may reach.
SMALLEST_LAM = 1e-10


@dataclass(frozen=True)
class Penalty:
    """The ridge penalty: a number, or the criterion that chooses it from a range.

    Attributes
    ----------
    lam : the penalty, or where its choice starts
    criterion : "loo", "gcv", "mml", "auto" (the bandwidth rule's criterion), or None if given
    given : range to choose from; None: LAMBDAS, and searches may go beyond them
    shared : whether one penalty serves all targets, whose errors are then added up
    unit : mean weight of the rows, the unit of LAMBDAS
    """

    lam: float = 1e-3
    criterion: str | None = None
    given: Array | None = None
    shared: bool = False
    unit: float = 1.0

    @property
    def lams(self) -> Array:
        """Grid of penalties for the choice of lambda."""
        return LAMBDAS * self.unit if self.given is None else self.given

    @property
    def beyond(self) -> Array:
        """Grid of penalties that goes beyond `lams`, unless a range was given."""
        return WIDE_LAMBDAS * self.unit if self.given is None else self.given

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest penalty that a search may return."""
        if self.given is None:
            return SMALLEST_LAM * self.unit, np.inf
        return float(self.given[0]), float(self.given[-1])

    def tried(self) -> Array:
        """The penalties to try: the grid, or the given penalty."""
        return self.lams if self.criterion else np.array([self.lam])


@dataclass(frozen=True)
class Tuning:
    """Bandwidth, in units of the median distance, penalty, and leave-one-out error."""

    ratio: float
    lam: float
    error: float = np.inf


@dataclass
class TrainingData:
    """Training data as a rule sees them.

    A function given as `bandwidth` receives an instance, and returns the bandwidth. If a fit uses
    landmarks and has more than 10,000 rows, X and y are a sample of 10,000; n, p and the geometry
    refer to all rows. Exact fits pass all rows.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features), or distances for metric="precomputed"
    y : ndarray of shape (n_rows, n_targets), centred, or None
    w : ndarray of shape (n_rows,), weights, all positive
    n : number of training rows; the sum of the weights if these are whole numbers
    lam : ridge penalty, or where the choice of it starts
    """

    X: Array
    y: Array | None
    w: Array
    n: float
    space: Space
    extent: Extent
    penalty: Penalty = field(default_factory=Penalty)
    random_state: int | np.random.Generator | None = 0
    has_intercept: bool = True
    grid: Array | None = None
    for_comparison: bool = False
    solver: Nystrom | None = None
    trials: Callable[[float], Spectral] | None = None
    start: Tuning | None = None
    replicates: Replicates | None = None
    copies: float | None = None  # rows before they were merged, for each row of X

    @cached_property
    def rng(self) -> np.random.Generator:
        """Random number generator, made on first use and shared by parts of the data."""
        return np.random.default_rng(self.random_state)

    @property
    def lam(self) -> float:
        """Ridge penalty, or where the choice of it starts."""
        return self.penalty.lam

    @property
    def lam_of_rows(self) -> float:
        """Penalty for the closed forms; a chosen penalty is divided by the mean weight.

        Not so if weights are whole numbers: then both n and the penalty refer to rows of weight
        one.
        """
        in_units = self.penalty.criterion and not are_whole(self.w)
        return self.lam / self.penalty.unit if in_units else self.lam

    @property
    def targets(self) -> Array:
        """Return the targets y, or raise an error if none were given."""
        if self.y is None:
            raise ValueError("This rule or this choice of `alpha` needs `y`, got None.")
        return self.y

    @property
    def scale(self) -> Array:
        """Mean squares of the targets; their sum, as one entry, if the targets share a penalty."""
        scale = (self.targets**2).mean(axis=0)
        return scale.sum(keepdims=True) if self.penalty.shared else scale

    @cached_property
    def p(self) -> int:
        """Number of features; for given distances, the number of dimensions that they span."""
        return self.space.distance.dimension(self.X)

    @property
    def l_max(self) -> float:
        """Largest distance between two rows."""
        return self.extent.l_max

    @cached_property
    def even_spacing(self) -> float:
        """Distance of neighbours if the rows were spread evenly."""
        self.check_rows()
        return theory.even_spacing(self.n, self.p, self.l_max)

    @property
    def neighbour_spacing(self) -> float:
        """Median distance of nearest neighbours among distinct rows."""
        return self.extent.spacing

    @property
    def search_spacing(self) -> float:
        """Neighbour spacing from which searches start; l_max / 1000 if it is zero."""
        return self.neighbour_spacing or self.l_max / 1000

    @property
    def variance(self) -> float:
        """Variance of all entries of X together."""
        return self.extent.variance

    @cached_property
    def share_equal(self) -> float:
        """Share of the rows that repeat an earlier row."""
        rows = counted(self.w) if self.copies is None else self.copies * len(self.w)
        return 1.0 - len(distinct_rows(self.X)) / rows

    def check_rows(self) -> None:
        """Refuse rows for which no rule is defined: fewer than three, or all equal."""
        if self.n <= 2:
            raise ValueError(
                f"The spacing of points needs n_samples >= 3, got n_samples={self.n:g}. "
                "Pass a number as `bandwidth` instead."
            )
        first, last = self.X[0], self.X[-1]
        if first[0] == last[0] and (first == last).all() and (first == self.X).all():
            _ = self.l_max  # raises

    def with_lam(self, lam: float) -> TrainingData:
        """Copy with another penalty, which keeps everything already computed."""
        other = copy(self)
        other.penalty = replace(self.penalty, lam=lam)
        return other

    @property
    def counts(self) -> Array:
        """Weights of the rows in a mean of squared errors: w, or w with large values capped."""
        return capped_weights(self.w) if self.for_comparison else self.w

    @property
    def are_explained(self) -> bool:
        """Whether replicates show that y depends on the features."""
        return self.replicates is not None and self.replicates.explain(self.targets, self.w)

    @property
    def compared(self) -> Replicates | None:
        """Observations to leave out singly, not as whole rows, where only errors are compared."""
        return self.replicates if self.for_comparison else None

    def part(self, rows: Indices, *, for_comparison: bool = False) -> TrainingData:
        """The data of some of the rows.

        With `for_comparison`, weights are capped so that no row decides alone, and single
        observations are left out.
        """
        X, y = self.space.distance.some(self.X, rows), None if self.y is None else self.y[rows]
        part = self.with_rows(X, y, self.w[rows], for_comparison=for_comparison)
        part.replicates = self.replicates and self.replicates.some(rows)
        return part

    def with_rows(
        self, X: Array, y: Array | None, w: Array, *, for_comparison: bool = False
    ) -> TrainingData:
        """Training data of other rows in memory, with the same settings."""
        extent, n = ArrayExtent(X, w, self.space.distance), counted(w)
        rows: dict[str, Any] = {"X": X, "y": y, "w": w, "n": n, "extent": extent}
        rows |= {"for_comparison": for_comparison, "replicates": None, "random_state": self.rng}
        return replace(self, **rows, solver=None, trials=None)

    def sample(self, size: int) -> TrainingData:
        """The data of at most `size` of the rows, drawn at random."""
        if len(self.w) <= size:
            return self
        return self.part(np.sort(self.rng.choice(len(self.w), size, replace=False)))

    def carried_from(self, part: TrainingData) -> float:
        """Factor that carries a bandwidth found on fewer rows to all rows."""
        return carried(part.n, self.n, self.p)

    @cached_property
    def pairs(self) -> Pairs:
        """The n x n array of a search or an exact fit, made once."""
        return self.space.pairs(self.X)

    @cached_property
    def rough_pairs(self) -> Pairs:
        """An n x n array in single precision, for searches that only compare candidates."""
        return self.space.pairs(self.X, single=True)

    def spectrum(self, sigma: float) -> Any:
        """Criteria of all penalties at one bandwidth: `loo`, `gcv` and `mml`."""
        if self.solver is not None:
            return self.solver.spectrum(sigma)
        with blas_for(len(self.w)):
            many = len(self.w) > SIDE_BY_SIDE_ROWS
            K = (self.pairs if many else self.pairs.twin()).kernel(sigma)
            y, w, centred = self.targets, self.w, self.has_intercept
            options: dict[str, Any] = {"counts": self.counts, "replicates": self.compared}
            return spectrum(K, y, w, centred=centred, **options)

    @property
    def each(self) -> Callable[..., Iterable[Any]]:
        """The `map` over bandwidths: spectra of few rows are computed in parallel threads."""
        if self.solver is not None or len(self.w) > SIDE_BY_SIDE_ROWS:
            return map
        _ = self.pairs  # made once, before threads need it
        return in_threads

    @property
    def started_at(self) -> tuple[float, float] | None:
        """The bandwidth and penalty at which a search starts, if they were found before.

        They were found by leaving out whole rows, which says little about replicates.
        """
        if self.start is None or self.compared is not None:
            return None
        few = self.X[:UNIT_ROWS]
        unit = median_distance(self.space, self.space.distance.gaps(few, few))
        lam = self.start.lam * self.penalty.unit if self.penalty.criterion else self.lam
        return self.start.ratio * unit, lam

    @cached_property
    def pair_gaps(self) -> Array:
        """Gaps of all pairs of rows, or of a sample of two million."""
        m = len(self.X)
        if m * (m - 1) // 2 > MOST_PAIRS:
            return self.space.distance.paired_gaps(self.X, *self._random_pairs())
        gaps = self.space.distance.all_gaps(self.X)
        return gaps if self.pair_weights is None else np.append(gaps, np.zeros(m))

    @cached_property
    def pair_weights(self) -> Array | None:
        """How often each of these pairs occurs: a row of weight two is a pair of equal rows."""
        m, w = len(self.X), self.w
        if (w == 1).all() or m * (m - 1) // 2 > MOST_PAIRS:
            return None
        i, j = np.triu_indices(m, 1)
        within = w * (w - 1) / 2 if are_whole(w) else np.zeros(m)
        return np.append(w[i] * w[j], within)

    def _random_pairs(self) -> tuple[Indices, Indices]:
        """Two million pairs of rows, drawn with probabilities proportional to their weights."""
        m, rng = len(self.X), self.rng
        if (self.w == 1).all():
            i = rng.integers(m, size=MOST_PAIRS)
            return i, (i + rng.integers(1, m, size=MOST_PAIRS)) % m
        i, j = rng.choice(m, size=(2, MOST_PAIRS), p=self.w / self.w.sum())
        within = self.w[i] - 1 if are_whole(self.w) else 0.0
        apart = (i != j) | (rng.uniform(size=MOST_PAIRS) * self.w[i] < within)
        return i[apart], j[apart]


def median_distance(space: Space, gaps: Array) -> float:
    """Median of the distances between the first rows and the next, from gaps of shape (n, n)."""
    half = min(len(gaps), UNIT_ROWS) // 2
    some = gaps[:half, half : 2 * half].ravel()
    if half and some.min() <= 0:
        some = some[some > 0]
    return float(np.median(space.distance.lengths(some))) if some.size else 1.0


def capped_weights(w: Array) -> Array:
    """Weights of at most LARGEST_WEIGHT times their mean."""
    return np.minimum(w, LARGEST_WEIGHT * w.mean())


def carried(fewer: float, n: float, p: int) -> float:
    """Factor that carries a bandwidth found on fewer rows, or landmarks, to n of them.

    It is the square root of the Jacobian rule's own dependence on n, (n - 1)^(1/p) - 1. For a
    function of smoothness s, the best bandwidth falls like n^(-1 / (2 s + p)). At s = p / 2, the
    lowest smoothness at which function values are well defined, this is half the exponent of the
    spacing, n^(-1 / p).
    """
    growth = [np.expm1(np.log(max(count - 1, 2.0)) / p) for count in (fewer, n)]
    return float(np.sqrt(growth[0] / growth[1]))


def data_in_memory(
    X: Array, y: Array | None, w: Array, space: Space, *, n: float | None = None, **options: Any
) -> TrainingData:
    """Training data of rows that are all in memory; y of shape (n, k), centred.

    `n` is the number of rows before they were merged, if they were.
    """
    n = counted(w) if n is None else n
    extent = ArrayExtent(X, w, space.distance)
    options["penalty"] = in_units_of_weights(options.get("penalty", Penalty()), w)
    return TrainingData(X=X, y=y, w=w, n=n, space=space, extent=extent, **options)


def in_units_of_weights(penalty: Penalty, w: Array) -> Penalty:
    """The penalty; if it is to be chosen, with a range in units of the mean weight."""
    return replace(penalty, unit=float(w.mean())) if penalty.criterion else penalty
