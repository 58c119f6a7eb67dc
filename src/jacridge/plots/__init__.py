"""Functions that draw computed results, and Displays that compute them from a fitted model.

Each function takes arrays and an optional axes and returns the axes; it fits nothing, shows
nothing, saves nothing and sets no global style.
"""

from ._bandwidth import plot_criteria, plot_criterion_map, plot_norm, plot_norms, plot_rules
from ._bandwidth_displays import CriterionDisplay, JacobianNormDisplay
from ._effect_displays import (
    AverageCurveDisplay,
    EffectsDisplay,
    SlopeBandDisplay,
    plot_effects,
    plot_slope_band,
)
from ._metric_displays import ChoiceDisplay, MetricDisplay, plot_choices, plot_metric
from ._model import plot_curve, plot_importances, plot_predictions, plot_slopes, plot_surface
from ._model_displays import CurveDisplay, SlopeDisplay, SurfaceDisplay

__all__ = [
    "AverageCurveDisplay",
    "ChoiceDisplay",
    "CriterionDisplay",
    "CurveDisplay",
    "EffectsDisplay",
    "JacobianNormDisplay",
    "MetricDisplay",
    "SlopeBandDisplay",
    "SlopeDisplay",
    "SurfaceDisplay",
    "plot_choices",
    "plot_criteria",
    "plot_criterion_map",
    "plot_curve",
    "plot_effects",
    "plot_importances",
    "plot_metric",
    "plot_norm",
    "plot_norms",
    "plot_predictions",
    "plot_rules",
    "plot_slope_band",
    "plot_slopes",
    "plot_surface",
]
