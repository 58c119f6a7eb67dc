"""Effects of features on the prediction: slopes and contrasts with standard errors.

Users call ``effects``, ``contrast``, ``summary`` and ``jacobian(X, return_std=True)`` of an
estimator or a classifier. This module has the classes that these return, and average predictions
along one feature.
"""

from ._average import AverageCurve, average_predictions
from ._contrast import Contrast
from ._summary import Summary
from ._table import Effect, Effects

__all__ = [
    "AverageCurve",
    "Contrast",
    "Effect",
    "Effects",
    "Summary",
    "average_predictions",
]
