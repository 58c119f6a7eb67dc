"""Effects of features on the prediction: slopes and contrasts with standard errors.

Users call ``effects``, ``contrast``, ``summary`` and ``jacobian(X, return_std=True)`` of an
estimator or a classifier; here are what these return, and average predictions along one feature.
"""

from .._solvers.function import FittedFunction
from ._average import Observations, average_effects
from ._classes import ClassFunction, class_error_kind
from ._contrast import AverageCurve, Contrast, average_predictions, contrast_of
from ._errors import ErrorKind, error_kind
from ._summary import Summary
from ._table import (
    HELD_FIXED_FOR_CLASSES,
    METRIC_LEARNED,
    METRIC_RELEARNED,
    Effect,
    Effects,
    held_fixed,
)

__all__ = [
    "HELD_FIXED_FOR_CLASSES",
    "METRIC_LEARNED",
    "METRIC_RELEARNED",
    "AverageCurve",
    "ClassFunction",
    "Contrast",
    "Effect",
    "Effects",
    "ErrorKind",
    "FittedFunction",
    "Observations",
    "Summary",
    "average_effects",
    "average_predictions",
    "class_error_kind",
    "contrast_of",
    "error_kind",
    "held_fixed",
]
