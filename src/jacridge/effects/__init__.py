"""Effects of features on the prediction: slopes and contrasts with standard errors.

Users call ``JacobianKernelRidge.effects``, ``.contrast``, ``.summary`` and
``.jacobian(X, return_std=True)``; here are what these return, and average predictions along one
feature.
"""

from .._solvers.function import FittedFunction
from ._average import Observations, average_effects, error_kind
from ._contrast import AverageCurve, Contrast, average_predictions, contrast_of
from ._summary import Summary
from ._table import Effect, Effects

__all__ = [
    "AverageCurve",
    "Contrast",
    "Effect",
    "Effects",
    "FittedFunction",
    "Observations",
    "Summary",
    "average_effects",
    "average_predictions",
    "contrast_of",
    "error_kind",
]
