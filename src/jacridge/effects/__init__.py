"""Effects of features on the prediction: slopes and contrasts with standard errors.

Users call ``effects``, ``contrast``, ``summary`` and ``jacobian(X, return_std=True)`` of an
estimator or a classifier; here are what these return, and average predictions along one feature.
"""

from .._solvers.function import FittedFunction
from ._average import Observations, average_effects, error_kind
from ._classes import ClassFunction, class_error_kind
from ._contrast import AverageCurve, Contrast, average_predictions, contrast_of
from ._summary import Summary
from ._table import HELD_FIXED_FOR_CLASSES, Effect, Effects

__all__ = [
    "HELD_FIXED_FOR_CLASSES",
    "AverageCurve",
    "ClassFunction",
    "Contrast",
    "Effect",
    "Effects",
    "FittedFunction",
    "Observations",
    "Summary",
    "average_effects",
    "average_predictions",
    "class_error_kind",
    "contrast_of",
    "error_kind",
]
