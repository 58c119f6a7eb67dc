"""Differences of predictions at pairs of rows, with their joint covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._compute.arrays import Array
from .._compute.memory import check_memory
from ._errors import ErrorKind

if TYPE_CHECKING:
    from .._solvers.function import FittedFunction


@dataclass(frozen=True)
class Contrast:
    """Differences of predictions with their joint covariance.

    Attributes
    ----------
    estimate : ndarray of shape (n,) or (n, n_targets)
        Prediction at each row of X1 minus the prediction at the same row of X0.
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
    """Differences of predictions at rows X1 and X0; a single row is compared with all others."""
    n = check_pairs(X1, X0, len(function.Z), len(function.intercept))
    B = function.kernel(X1) - function.kernel(X0)
    g = np.zeros(n)
    return Contrast(function.estimates(B, g), function.covariances(B, g, errors.of))


def check_pairs(X1: Array, X0: Array, m: int, k: int) -> int:
    """The number of pairs of rows; their functionals of m numbers and k covariances must fit."""
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
