"""The path of a fit: from rows to metric, solver, bandwidth and penalty, and to a solved model."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import check_choice, check_columns, check_rows, check_whole, generator
from .._compute.arrays import Array
from .._compute.memory import available_memory
from .._compute.threads import blas_for
from .._geometry.kernels import KERNELS, Kernel
from .._geometry.space import LEARNED, LINEAR, METRICS, Space, kernels_with, space_of
from .._rows.rows import ArrayRows
from .._rows.source import Source, in_memory, mapped
from .._solvers.exact import centred_rows, solve_exact
from .._solvers.landmarks import LANDMARKS
from .._solvers.model import INTERCEPTS, Model
from .._solvers.pcg import solve_pcg
from .choice import KERNELS_TRIED, Loss, squared_errors
from .metric import Metric, metric_of
from .registry import Found, as_rule, check_alpha, find, loo_error
from .streams import LandmarkChoice, training_data

if TYPE_CHECKING:
    from .._geometry.maps import FeatureMap
    from .rounds import RuleInRounds
    from .training import Penalty, TrainingData

SOLVERS = ("auto", "exact", "nystrom", "pcg")

# Up to here solver="auto" is exact: the n x n matrix takes 0.8 GB and its factor seconds.
EXACT_ROWS = 10_000
# In a learned metric landmarks cost more accuracy, and the choice takes time anyway: 3.2 GB.
EXACT_ROWS_LEARNED = 20_000

# Penalty where the choice of the metric finds that y cannot be predicted.
NO_SIGNAL = 1e3

logger = logging.getLogger("jacridge")


@dataclass(frozen=True)
class Request:
    """Parameters of an estimator, as they were given.

    `loss` chooses kernel and metric; `shared` asks for one penalty for all targets.
    """

    bandwidth: Any
    alpha: Any
    kernel: str
    metric: str
    solver: str
    n_landmarks: int | None
    landmarks: Any
    fit_intercept: bool | str
    random_state: Any
    loss: Loss = squared_errors
    shared: bool = False

    @cached_property
    def space(self) -> Space:
        """Kernel and distance; a kernel that is to be chosen is Gaussian here."""
        check_choice("metric", self.metric, METRICS)
        check_choice("kernel", self.kernel, (*KERNELS, "auto"))
        check_choice("solver", self.solver, SOLVERS)
        return space_of("gaussian" if self.kernel == "auto" else self.kernel, self.metric)

    @property
    def kernels(self) -> Sequence[str]:
        """The kernels to choose among by cross-fitting; one if it was given."""
        if self.kernel != "auto":
            return (self.kernel,)
        return [name for name in KERNELS_TRIED if self.suits(KERNELS[name])]

    def suits(self, kernel: Kernel) -> bool:
        """Whether the bandwidth's rule can be used with a kernel."""
        return as_rule(self.bandwidth).suits(kernel)

    @cached_property
    def penalty(self) -> Penalty:
        """The penalty, or how to choose it."""
        return replace(check_alpha(self.alpha), shared=self.shared)

    @cached_property
    def intercept(self) -> str:
        """The kind of intercept, one of INTERCEPTS."""
        given = [False, True, "free"]
        if self.fit_intercept not in given:
            raise ValueError(
                f'`fit_intercept` must be True, False or "free", got {self.fit_intercept!r}.'
            )
        return INTERCEPTS[given.index(self.fit_intercept)]


# The parameters of an estimator that a fit depends on.
PARAMETERS = tuple(each.name for each in fields(Request) if each.name not in ("loss", "shared"))


@dataclass(frozen=True)
class Solution:
    """A solved model, and how it was found.

    Attributes
    ----------
    model : the model
    Z : rows of the model after the map of the metric, training rows or landmarks
    Z_given : these rows before the map, if they are training rows
    space, sigma, lam : kernel, bandwidth, and one penalty or one for each target
    solver : name of the solver that was used
    metric : the metric, and the table of its choice
    source : the training rows after the map
    notes : how the fit came about, in plain values
    """

    model: Model
    Z: Array
    Z_given: Array | None
    space: Space
    sigma: float
    lam: float | Array
    solver: str
    metric: Metric
    source: Source
    notes: dict[str, Any]


def fitted(source: Source, asked: Request) -> Solution:
    """Choose metric and kernel, then bandwidth and penalty, then solve."""
    penalty, kind, rng = asked.penalty, asked.intercept, generator(asked.random_state)
    metric = Metric(asked.space)
    if asked.metric in LINEAR:
        words = asked.kernels, asked.metric, rule_in_rounds(asked.bandwidth)
        metric = metric_of(source.rows, *words, penalty, rng, asked.loss, centred=kind != "none")
    solver, landmarks = solver_for(source, asked, metric.mapping)
    source = source if solver == "nystrom" else in_memory(source, asked.space.distance)
    given, source = source.rows, mapped(source, metric.mapping)
    spaces = [metric.space]
    if asked.kernel == "auto" and asked.metric not in LINEAR:
        spaces = [each for each in kernels_with(asked.metric) if asked.suits(each.kernel)]

    def tried(space: Space) -> tuple[TrainingData, Found]:
        options: dict[str, Any] = {"penalty": penalty, "rng": rng, "start": metric.start}
        options |= {} if solver == "exact" else {"choice": landmarks}
        data = training_data(source, space, exact=solver == "exact", kind=kind, **options)
        if solver == "pcg":
            check_pcg(data, asked)
            data.trials = None
        return data, find(asked.bandwidth, data)

    data, found = tried(spaces[0])
    for space in spaces[1:]:  # one n x n array at a time, beside that of the best kernel
        other = tried(space)
        if loo_error(*other) < loo_error(data, found):
            data, found = other
    lam = found.lam
    if penalty.criterion and not (metric.has_signal or data.are_explained):
        # Nothing to follow but noise.
        lam = np.maximum(lam, min(NO_SIGNAL * data.penalty.unit, data.penalty.ends[1]))
    Z, model = solved(solver, source, data, found.sigma, np.atleast_1d(lam), asked)
    kept = metric.mapping is not None and solver == "exact"
    return Solution(
        model=model,
        Z=Z,
        Z_given=given.X if kept and isinstance(given, ArrayRows) else None,
        space=data.space,
        sigma=found.sigma,
        lam=lam,
        solver=solver,
        metric=metric,
        source=source,
        notes=notes_on(data, source, asked),
    )


def rule_in_rounds(bandwidth: Any) -> RuleInRounds | None:
    """Rule for the rounds of a learned metric from a number, a rule's name or a function."""
    if as_rule(bandwidth).is_automatic:
        return None  # rounds search by themselves

    def rule(data: TrainingData) -> tuple[float, float]:
        found = find(bandwidth, data)
        return found.sigma, float(np.exp(np.log(np.maximum(found.lam, 1e-300)).mean()))

    return rule


def solver_for(
    source: Source, asked: Request, mapping: FeatureMap | None
) -> tuple[str, LandmarkChoice]:
    """The solver for these rows, and its landmarks; rows that stream stay where they are."""
    solver, rows, landmarks = asked.solver, source.rows, asked.landmarks
    # Checked here, whether or not there are enough rows to need them.
    if isinstance(landmarks, str):
        check_choice("landmarks", landmarks, LANDMARKS)
    elif mapping is not None:
        landmarks = check_rows(landmarks, "landmarks")
        check_columns("landmarks", landmarks, len(mapping.T))
        landmarks = mapping(landmarks)
    if solver == "auto":
        most = EXACT_ROWS_LEARNED if asked.metric in LEARNED else EXACT_ROWS
        free = available_memory()
        fits = free is None or 8 * rows.n**2 < free / 2
        few = isinstance(rows, ArrayRows) and rows.n <= most and fits
        solver = "exact" if few or asked.metric == "precomputed" else "nystrom"
        logger.info("solver=%r was taken for n_samples=%d.", solver, rows.n)
    elif solver != "exact" and asked.metric == "precomputed":
        raise ValueError(
            f'`solver` must be "auto" or "exact" for metric="precomputed", got "{solver}". '
            "Fit on the features themselves for others."
        )
    number = landmark_number(source, asked)
    choice = LandmarkChoice(landmarks, None if solver == "pcg" else number)
    if solver == "nystrom" and choice.are_all(rows, mapping):
        solver = "exact"  # with all rows as landmarks the model is the exact one
    return solver, choice


def landmark_number(source: Source, asked: Request) -> int | None:
    """Number of landmarks as asked for, checked against the rows as given."""
    if asked.n_landmarks is None:
        return None
    n = source.rows.n if source.merged is None else len(source.merged.group)
    if check_whole("n_landmarks", asked.n_landmarks) > n and asked.solver != "exact":
        raise ValueError(
            f"`n_landmarks` must be from 1 to n_samples={n}, got {asked.n_landmarks}. Leave it "
            "out for a number that fits."
        )
    return asked.n_landmarks


def check_pcg(data: TrainingData, asked: Request) -> None:
    """Refuse what conjugate gradients cannot do, before any search."""
    k = data.targets.shape[1]
    if data.lam == 0 if not data.penalty.criterion else len(data.scale) > 1:
        raise ValueError(
            '`alpha` must be > 0 for solver="pcg", and one number for all targets, got '
            f"{asked.alpha!r} for {k} target(s)."
        )
    if not isinstance(asked.landmarks, str):
        raise ValueError(
            '`landmarks` must be a word for solver="pcg", which chooses its own, got an array.'
        )


def solved(
    solver: str, source: Source, data: TrainingData, sigma: float, lams: Array, asked: Request
) -> tuple[Array, Model]:
    """The rows of the model, and the model at the chosen bandwidth and penalties."""
    lams = lams[:1] if (lams == lams[0]).all() else lams
    if data.solver is not None and solver == "nystrom":
        return data.solver.spectrum(sigma).phi.Z, data.solver.solve(sigma, lams)
    X, rows = centred_rows(source, asked.intercept)
    if solver == "pcg":
        few = min(1000, -(-len(rows.w) // 20))  # features take at most a twentieth of K
        m = min(asked.n_landmarks or few, len(rows.w))
        options: dict[str, Any] = {"space": data.space, "n_landmarks": m, "rng": data.rng}
        return X, solve_pcg(X, rows, sigma, float(lams[0]), asked.intercept, **options)
    with blas_for(len(rows.w)):
        K, remedy = lambda: data.pairs.kernel(sigma), data.space.remedy
        return X, solve_exact(K, rows, lams, asked.intercept, remedy)


def notes_on(data: TrainingData, source: Source, asked: Request) -> dict[str, Any]:
    """How a fit came about, in plain values: a fitted estimator keeps them for a diagnosis."""
    penalty, dropped = data.penalty, 0.0
    if source.weightless is not None and source.merged is not None:
        dropped = len(source.weightless[0]) / len(source.merged.group)
    ends = [float(penalty.lams[0]), float(penalty.lams[-1])]
    if as_rule(asked.bandwidth).is_automatic and data.solver is None and len(data.scale) == 1:
        ends = list(penalty.ends)  # of a walk, which may leave the grid
    return {
        "metric": asked.metric,
        "intercept": asked.intercept,
        "n": data.n,
        "rule": asked.bandwidth if isinstance(asked.bandwidth, str) else None,
        "lams": ends if penalty.criterion else None,
        "shared": penalty.shared,
        "dropped": dropped,
    }
