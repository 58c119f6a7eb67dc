"""The path of a fit: from rows to metric, solver, bandwidth and penalty, and to a solved model."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import check_choice, check_columns, check_rows, check_whole, generator
from .._compute.arrays import Array
from .._compute.memory import available_memory
from .._geometry.space import LEARNED, LINEAR, Space, kernels_with
from .._rows.rows import ArrayRows
from .._rows.source import Source, in_memory, mapped
from .._solvers.exact import centred_rows, solve_exact
from .._solvers.landmarks import LANDMARKS
from .._solvers.model import Model
from .._solvers.pcg import solve_pcg
from .metric import Metric, metric_of
from .parameters import Request
from .registry import Found, as_rule, find, loo_error
from .streams import LandmarkChoice, data_of_stream, training_data

if TYPE_CHECKING:
    from .._geometry.maps import FeatureMap
    from .training import TrainingData

# Up to here solver="auto" is exact: the n x n matrix takes 0.8 GB and its factor seconds.
EXACT_ROWS = 10_000
# In a learned metric landmarks cost more accuracy, and the choice takes time anyway: 3.2 GB.
EXACT_ROWS_LEARNED = 20_000

# Penalty where the choice of the metric finds that y cannot be predicted.
NO_SIGNAL = 1e3

logger = logging.getLogger("jacridge")


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
    std : standard deviations of the features; None for given distances
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
    std: Array | None
    source: Source
    notes: dict[str, Any]


def fitted(source: Source, asked: Request) -> Solution:
    """Choose metric and kernel, then bandwidth and penalty, then solve."""
    streams = not isinstance(source.rows, ArrayRows)
    if streams and (asked.solver not in ("auto", "nystrom") or asked.metric == "precomputed"):
        raise ValueError(
            '`solver` must be "auto" or "nystrom", and `metric` must be computed from features, '
            f'for Dask arrays and Parquet files, got solver="{asked.solver}", '
            f'metric="{asked.metric}". Load the rows into memory to use the other solvers.'
        )
    rng, metric = generator(asked.random_state), Metric(asked.space)
    asked.check_held_out(streams=streams)
    if asked.metric in LINEAR:
        metric = metric_of(source, asked, rng)
    solver, landmarks = solver_for(source, asked, metric.mapping)
    source = source if solver == "nystrom" else in_memory(source, asked.space.distance)
    given, source = source.rows, mapped(source, metric.mapping)
    options: dict[str, Any] = {"penalty": asked.penalty, "random_state": rng, "start": metric.start}
    options["kind"] = asked.intercept

    def tried(space: Space) -> tuple[TrainingData, Found]:
        if solver == "exact":
            data = training_data(source, space, **options)
        else:
            data = data_of_stream(source, space, choice=landmarks, **options)
        if solver == "pcg":
            check_pcg(data, asked)
            data.trials = None
        return data, metric.found or find(asked.bandwidth, data)

    data, found = best_kernel(tried, asked, metric)
    Z, model = solved(solver, source, data, found, asked)
    kept = metric.mapping is not None and solver == "exact"
    std = metric.std
    if std is None and asked.metric != "precomputed":
        std = data.extent.std
    notes = notes_on(data, source, asked)
    if metric.found is not None:
        notes |= {"lams": None, "held_out": asked.held_out}
    return Solution(
        model=model,
        Z=Z,
        Z_given=given.X if kept and isinstance(given, ArrayRows) else None,
        space=data.space,
        sigma=found.sigma,
        lam=found.lam,
        solver=solver,
        metric=metric,
        std=std,
        source=source,
        notes=notes | {"learning": metric.learning},
    )


def best_kernel(
    tried: Callable[[Space], tuple[TrainingData, Found]], asked: Request, metric: Metric
) -> tuple[TrainingData, Found]:
    """Training data with the best kernel, and what was found for them.

    The metric has chosen the kernel if it is linear; else the leave-one-out error does.
    """
    if asked.kernel != "auto" or asked.metric in LINEAR:
        data, found = tried(metric.space)
    else:  # one n x n array at a time, beside that of the best kernel
        spaces = (each for each in kernels_with(asked.metric) if asked.suits(each.kernel))
        data, found = min(map(tried, spaces), key=lambda each: loo_error(*each))
    if asked.penalty.criterion and not (metric.has_signal or data.are_explained):
        # Nothing to follow but noise.
        least = min(NO_SIGNAL * data.penalty.unit, data.penalty.ends[1])
        found = replace(found, lam=np.maximum(found.lam, least))
    return data, found


def solver_for(
    source: Source, asked: Request, mapping: FeatureMap | None
) -> tuple[str, LandmarkChoice]:
    """The solver for these rows, and its landmarks; rows that stream stay where they are."""
    # Checked here, whether or not there are enough rows to need them.
    landmarks = landmarks_for(source, asked, mapping)
    solver, rows = asked.solver, source.rows
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


def landmarks_for(source: Source, asked: Request, mapping: FeatureMap | None) -> str | Array:
    """How landmarks are chosen, or the given ones after the map."""
    if np.ndim(asked.landmarks) == 0:
        return check_choice("landmarks", asked.landmarks, LANDMARKS)
    Z = check_rows(asked.landmarks, "landmarks")
    if asked.metric != "precomputed":  # which has no features, and needs no landmarks
        check_columns("landmarks", Z.shape[1], source.p)
    return Z if mapping is None else mapping(Z)


def landmark_number(source: Source, asked: Request) -> int | None:
    """Number of landmarks as asked for, checked against the rows as given."""
    if asked.n_landmarks is None:
        return None
    n = source.rows.n if source.given is None else len(source.given.group)
    if check_whole("n_landmarks", asked.n_landmarks) > n and asked.solver != "exact":
        raise ValueError(
            f"`n_landmarks` must be from 1 to n_samples={n}, got {asked.n_landmarks}. Omit it to "
            "use the default."
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
    solver: str, source: Source, data: TrainingData, found: Found, asked: Request
) -> tuple[Array, Model]:
    """The rows of the model, and the model at the chosen bandwidth and penalties."""
    sigma, lams = found.sigma, np.unique(found.lam)
    lams = lams if len(lams) == 1 else np.asarray(found.lam)
    if data.solver is not None and solver == "nystrom":
        return data.solver.solve(sigma, lams)
    X, rows = centred_rows(source, asked.intercept)
    if solver == "exact":
        return X, solve_exact(data.pairs, sigma, rows, lams, asked.intercept)
    few = min(1000, -(-len(rows.w) // 20))  # features take at most a twentieth of K
    m = min(asked.n_landmarks or few, len(rows.w))
    options: dict[str, Any] = {"space": data.space, "n_landmarks": m, "rng": data.rng}
    return X, solve_pcg(X, rows, sigma, float(lams[0]), asked.intercept, **options)


def notes_on(data: TrainingData, source: Source, asked: Request) -> dict[str, Any]:
    """How a fit came about, in plain values: a fitted estimator keeps them for a diagnosis."""
    penalty, dropped = data.penalty, 0.0
    if source.weightless is not None and source.given is not None:
        dropped = len(source.weightless[0]) / len(source.given.group)
    ends = [float(penalty.lams[0]), float(penalty.lams[-1])]
    if as_rule(asked.bandwidth).is_automatic and data.solver is None:
        # A walk may leave the grid; for several targets there is none.
        ends = list(penalty.ends if len(data.scale) == 1 else penalty.beyond[[0, -1]])
    return {
        "metric": asked.metric,
        "intercept": asked.intercept,
        "n": data.n,
        "copies": data.copies,
        "rule": asked.bandwidth if isinstance(asked.bandwidth, str) else None,
        "lams": ends if penalty.criterion else None,
        "shared": penalty.shared,
        "dropped": dropped,
    }
