"""Differences of predictions, and average predictions along one feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._checks import check_number
from .._compute.arrays import Array
from .._compute.memory import check_memory
from ._average import Observations, degrees_of, inference
from ._errors import ErrorKind, error_kind
from ._terms import Columns

if TYPE_CHECKING:
    from .._solvers.function import FittedFunction


@dataclass(frozen=True)
class Contrast:
    """Differences of predictions with their joint covariance.

    Attributes
    ----------
    estimate : ndarray of shape (n,) or (n, n_targets)
        Prediction at each row of X1 less that at the same row of X0.
    covariance : ndarray of shape (n, n) or (n_targets, n, n)
        Covariance of the differences.
    """

    estimate: Array
    covariance: Array

    @property
    def std_error(self) -> Array:
        """Standard errors of the differences, of the shape of `estimate`."""
        variances = np.diagonal(self.covariance, axis1=-2, axis2=-1)
        return np.sqrt(np.maximum(variances.T, 0.0))

    def average(self) -> tuple[Any, Any]:
        """Mean of the differences and its standard error, for each target."""
        n = len(self.estimate)
        variance = self.covariance.sum(axis=(-2, -1)) / n**2
        return self.estimate.mean(axis=0), np.sqrt(np.maximum(variance, 0.0))


def contrast_of(function: FittedFunction, X1: Array, X0: Array, errors: ErrorKind) -> Contrast:
    """Differences of predictions for rows X1 and X0; one row is compared with all of the others."""
    n = check_pairs(X1, X0, len(function.Z), len(function.intercept))
    B = function.kernel(X1) - function.kernel(X0)
    g = np.zeros(n)
    return Contrast(function.estimates(B, g), function.covariances(B, g, errors.of))


def check_pairs(X1: Array, X0: Array, m: int, k: int) -> int:
    """The number of pairs of rows, whose functionals of m numbers and k covariances must fit."""
    n = max(len(X1), len(X0))
    if not {len(X1), len(X0)} <= {1, n}:
        raise ValueError(
            "`X1` and `X0` must have the same number of rows, or one of them a single row, got "
            f"{len(X1)} and {len(X0)}."
        )
    check_memory(
        8 * n * (m + k * n),
        f"The joint covariance of {n} differences",
        "Give fewer rows, or use `effects` for averages.",
    )
    return n


@dataclass(frozen=True)
class AverageCurve:
    """Average prediction with one feature set to each of some values, in all rows.

    Attributes
    ----------
    variable : str
    values : ndarray of shape (points,)
    estimate, std_error, conf_low, conf_high : ndarrays of shape (points,) or (points, n_targets)
    """

    variable: str
    values: Array
    estimate: Array
    std_error: Array
    conf_low: Array
    conf_high: Array


def average_predictions(
    estimator: Any,
    variable: int | str,
    values: npt.ArrayLike | None = None,
    X: Any = None,
    *,
    robust: bool = False,
    cluster: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> AverageCurve:
    """Average prediction along one feature (partial dependence), with an interval.

    Errors hold the metric fixed, also a learned one.

    Parameters
    ----------
    estimator : fitted JacobianKernelRidge
    variable : index or name of a feature
    values : array of shape (points,), optional
        Values to set the feature to; 50 from its smallest to its largest if not given.
    X : array of shape (n_samples, n_features), optional
        Rows to average over; the training rows if not given.
    robust, cluster, level
        As for ``JacobianKernelRidge.effects``.

    Returns
    -------
    AverageCurve

    Examples
    --------
    >>> import numpy as np
    >>> from jacridge import JacobianKernelRidge
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> est = JacobianKernelRidge(2.0, 0.1).fit(X, X @ [1.0, 2.0])
    >>> average_predictions(est, 1, [-1.0, 1.0]).estimate.round(1)
    array([-2.1,  2.1])
    """
    level = check_number("level", level, above=0, below=1)
    if not hasattr(estimator, "_observations"):
        raise TypeError(
            "`estimator` must be a JacobianKernelRidge or AutoKernelRidge, got "
            f"{type(estimator).__name__}. For classes, use `effects` of the classifier."
        )
    estimator._check_has_features("An average prediction")
    function, rows = estimator._function(), estimator._observations(X)
    errors = error_kind(robust, cluster, rows.w_train)
    column = Columns(function.names, rows.X_train).position(variable, "variable")
    x = _values(values, rows, column)
    share, B = rows.w / rows.w.sum(), []
    for value in x:
        moved = rows.X.copy()
        moved[:, column] = value
        function.check(moved)
        B.append(function.average_kernel(moved, share))
    found, g = np.vstack(B), np.ones(len(x))
    estimate, error = function.estimates(found, g), function.deviations(found, g, errors.of)
    degrees = degrees_of(function, errors)
    reach = np.array([inference(0.0, 1.0, d, level)[-1] for d in degrees]) * error
    parts = estimate, error, estimate - reach, estimate + reach
    if np.ndim(estimator.dual_coef_) == 1:
        parts = tuple(part[:, 0] for part in parts)  # type: ignore[assignment]
    return AverageCurve(str(function.names[column]), x, *parts)


def _values(values: npt.ArrayLike | None, rows: Observations, column: int) -> Array:
    if values is None:
        x = rows.X_train[:, column]
        return np.linspace(x.min(), x.max(), 50)
    found = np.asarray(values)
    numbers = found.dtype.kind in "biuf" and found.ndim == 1 and len(found)
    if not numbers or not np.isfinite(found).all():
        raise ValueError(f"`values` must be a list of finite numbers, got {values!r}.")
    return found.astype(np.float64)
