"""Standard errors: assumptions about the noise, treatment of the metric, and intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t as student

from .._checks import check_present
from .._compute.arrays import Array, Indices
from .._compute.warnings import warn
from .._solvers.influence import DegreesOf, NoiseOf, even_noise
from ._table import METRIC_GIVEN

if TYPE_CHECKING:
    from .._rules.refits import Refits


@dataclass(frozen=True)
class ErrorKind:
    """Assumption about the noise of y, and how standard errors treat the metric.

    Attributes
    ----------
    name, of : name of the noise, and the noise of an influence
    degrees : degrees of freedom of t
    labels : number of the cluster of each training row, if there are clusters
    metric : how errors treat the metric, as in `Effects`
    refits : fits with the metric learned again, if the errors include the error of the metric
    """

    name: str
    of: NoiseOf
    degrees: DegreesOf
    labels: Indices | None = None
    metric: str = METRIC_GIVEN
    refits: Callable[[], Refits] | None = None


def error_kind(robust: bool, cluster: Any, w_train: Array) -> ErrorKind:
    """Clustered errors if clusters are given, one label per training row; else robust or even."""
    if not isinstance(robust, bool | np.bool_):
        raise TypeError(f"`robust` must be True or False, got {robust!r}.")
    if cluster is not None:
        labels, count = _cluster_labels(cluster, w_train)
        return ErrorKind(
            "clustered", lambda part: part.clustered(labels), lambda _: count - 1.0, labels
        )
    if robust:
        return ErrorKind("robust", lambda part: part.robust(), lambda part: part.residual_degrees)
    return ErrorKind("even", even_noise, lambda part: part.residual_degrees)


def known_degrees(degrees: list[float]) -> list[float]:
    """Degrees of freedom of Student's t, each NaN if it is less than one."""
    if min(degrees) < 1:
        warn(
            "Intervals and p-values are NaN: they need at least one residual degree of freedom, "
            f"got {min(degrees):.2g}, because the model follows its rows. Give a larger `alpha` "
            "or more rows."
        )
    return [each if each >= 1 else np.nan for each in degrees]


def inference(
    estimate: float, error: float, degrees: float, level: float
) -> tuple[float, float, float, float, float, float]:
    """Estimate, standard error, statistic, p-value and the ends of the interval."""
    statistic = estimate / error if error > 0 else np.nan
    p_value = float(2 * student.sf(abs(statistic), degrees))
    reach = float(student.ppf((1 + level) / 2, degrees)) * error
    return estimate, error, statistic, p_value, estimate - reach, estimate + reach


def _cluster_labels(cluster: Any, w_train: Array) -> tuple[Indices, int]:
    """Cluster numbers from 0 on, and the number of clusters among rows of positive weight."""
    cluster = np.asarray(cluster)
    if cluster.shape != w_train.shape:
        raise ValueError(
            f"`cluster` must have one label for each of the {len(w_train)} training rows, got "
            f"shape {cluster.shape}."
        )
    some = w_train > 0
    labels = np.zeros(len(cluster), dtype=np.intp)
    names, labels[some] = numbered("cluster", cluster[some])
    if len(names) < 2:
        raise ValueError(f"`cluster` must hold at least two clusters, got {len(names)}.")
    return labels, len(names)


def numbered(name: str, labels: Any) -> tuple[Any, Indices]:
    """Distinct labels in order, and the index of each row's label among them."""
    check_present(labels, name=name)
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise TypeError(
            f"`{name}` must hold labels of one kind, got a mixture: {error}."
        ) from error
