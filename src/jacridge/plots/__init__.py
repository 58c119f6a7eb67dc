"""Draws what is already computed, and Displays that compute it from a fitted model.

Each function takes arrays and an optional axes and returns the axes; it fits nothing, shows
nothing, saves nothing and sets no global style.
"""

from ._bandwidth import plot_criteria, plot_criterion_map, plot_norm, plot_norms, plot_rules
from ._bandwidth_displays import CriterionDisplay, JacobianNormDisplay
from ._model import plot_curve, plot_importances, plot_predictions, plot_slopes, plot_surface
from ._model_displays import CurveDisplay, SlopeDisplay, SurfaceDisplay

__all__ = [
    "CriterionDisplay",
    "CurveDisplay",
    "JacobianNormDisplay",
    "SlopeDisplay",
    "SurfaceDisplay",
    "plot_criteria",
    "plot_criterion_map",
    "plot_curve",
    "plot_importances",
    "plot_norm",
    "plot_norms",
    "plot_predictions",
    "plot_rules",
    "plot_slopes",
    "plot_surface",
]
