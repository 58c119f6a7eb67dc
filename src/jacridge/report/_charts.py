"""The charts of the report as plain values, which the page's script draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._compute.arrays import Array
from ._case import Case
from ._effects import Curve, Surface
from ._folds import OURS, Folds

Chart = dict[str, Any]
MOST_POINTS = 1200


def numbers(values: Array) -> Any:
    """Nested lists of numbers with five digits; null where a number is not finite."""
    if np.ndim(values) > 1:
        return [numbers(row) for row in values]
    return [float(f"{v:.5g}") if np.isfinite(v) else None for v in np.asarray(values)]


def _axis(label: str, *values: Array, room: float = 0.04) -> Chart:
    """An axis that shows all values, with some room on either side."""
    each = np.concatenate([np.ravel(v)[np.isfinite(np.ravel(v))] for v in values])
    low, high = float(each.min()), float(each.max())
    space = (high - low) * room or abs(high) * room or 1.0
    return {"low": low - space, "high": high + space, "label": label}


def _spread(n: int) -> Array:
    return np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).astype(int))


def observed_chart(case: Case) -> Chart:
    """Observed against predicted, each row by the model without it."""
    some = _spread(len(case.y))
    x, y = case.loo_predictions[some], case.y[some]
    axis = _axis("", x, y)
    line = np.array([axis["low"], axis["high"]])
    return {
        "id": "observed",
        "x": {**axis, "label": f"predicted {case.target}"},
        "y": {**axis, "label": f"observed {case.target}"},
        "layers": [
            {"kind": "line", "look": "rule", "x": numbers(line), "y": numbers(line)},
            {"kind": "dots", "look": "dot", "x": numbers(x), "y": numbers(y)},
        ],
        "alt": f"Observed against predicted {case.target} of {len(x)} rows, with the diagonal.",
    }


def residual_chart(case: Case) -> Chart:
    """Errors against predictions, each row by the model without it."""
    some = _spread(len(case.y))
    x, error = case.loo_predictions[some], (case.y - case.loo_predictions)[some]
    horizontal = _axis(f"predicted {case.target}", x)
    ends = np.array([horizontal["low"], horizontal["high"]])
    return {
        "id": "residuals",
        "x": horizontal,
        "y": _axis("observed less predicted", error),
        "layers": [
            {"kind": "line", "look": "rule", "x": numbers(ends), "y": [0, 0]},
            {"kind": "dots", "look": "dot", "x": numbers(x), "y": numbers(error)},
        ],
        "alt": f"Errors against predictions of {len(x)} rows, with a line at zero.",
    }


def interval_chart(case: Case, folds: Folds) -> Chart:
    """Intervals of rows kept aside, in the order of their predictions, and what was observed."""
    order = np.argsort(folds.predicted[OURS])
    some = order[np.linspace(0, len(order) - 1, min(len(order), 100)).astype(int)]
    x = np.arange(1.0, len(some) + 1)
    low, high, seen = folds.lower[some], folds.upper[some], folds.observed[some]
    inside = (low <= seen) & (seen <= high)
    dots = [
        {"kind": "dots", "look": look, "x": numbers(x[part]), "y": numbers(seen[part])}
        for look, part in (("data", inside), ("miss", ~inside))
    ]
    return {
        "id": "intervals",
        "x": _axis("rows kept aside, in the order of their predictions", x),
        "y": _axis(case.target, low, high, seen),
        "layers": [
            {"kind": "bars", "x": numbers(x), "low": numbers(low), "high": numbers(high)},
            *dots,
        ],
        "alt": f"Intervals of {len(x)} rows kept aside; {int(inside.sum())} hold the observation.",
    }


def effect_chart(case: Case, curve: Curve, number: int, everything: Chart) -> Chart:
    """Partial dependence of the prediction on one column; all effects share their y axis."""
    if curve.levels:
        axis = {"low": -0.5, "high": len(curve.levels) - 0.5, "levels": list(curve.levels)}
        ends = {"low": numbers(curve.low), "high": numbers(curve.high)}
        layers = [
            {"kind": "bars", "x": numbers(curve.x), **ends},
            {"kind": "dots", "look": "big", "x": numbers(curve.x), "y": numbers(curve.mean)},
        ]
    else:
        axis = _axis(curve.column.name, curve.x, room=0)
        layers = [
            {
                "kind": "band",
                "x": numbers(curve.x),
                "low": numbers(curve.low),
                "high": numbers(curve.high),
            },
            {"kind": "line", "look": "c1", "x": numbers(curve.x), "y": numbers(curve.mean)},
        ]
    return {
        "id": f"effect-{number}",
        "x": {**axis, "label": curve.column.name},
        "y": everything,
        "layers": layers,
        "alt": (
            f"Mean prediction of {case.target} as {curve.column.name} changes: from "
            f"{curve.mean[0]:.4g} at the left to {curve.mean[-1]:.4g} at the right."
        ),
    }


def effects_axis(case: Case, curves: list[Curve]) -> Chart:
    """One vertical axis for all effects, so that their sizes can be compared."""
    return _axis(f"predicted {case.target}", *(c.low for c in curves), *(c.high for c in curves))


def surface_chart(case: Case, surface: Surface) -> Chart:
    """The prediction over two columns as colours, with the rows as dots of the observed colour."""
    low, high = np.quantile(np.r_[surface.values.ravel(), surface.points[:, 2]], [0.01, 0.99])
    x, y, seen = surface.points.T
    return {
        "id": "surface",
        "x": {"low": surface.x[0], "high": surface.x[-1], "label": surface.across},
        "y": {"low": surface.y[0], "high": surface.y[-1], "label": surface.up},
        "shape": float(np.cos(np.radians(surface.y.mean()))) if surface.is_map else None,
        "colours": {"low": float(low), "high": float(high), "label": case.target},
        "layers": [
            {"kind": "cells", "values": numbers(surface.values)},
            {"kind": "places", "x": numbers(x), "y": numbers(y), "values": numbers(seen)},
        ],
        "alt": f"Predicted {case.target} over {surface.across} and, upwards, {surface.up}.",
    }


def line_chart(case: Case) -> Chart:
    """The fitted curve of the only column, with intervals and the observations."""
    x = case.X[:, 0]
    at = np.linspace(x.min(), x.max(), 160)[:, None]
    low, high = case.estimator.predict_interval(case.seen(at), 0.9)
    some = _spread(len(x))
    finite = np.isfinite(low) & np.isfinite(high)
    return {
        "id": "surface",
        "x": _axis(case.names[0], x, room=0.01),
        "y": _axis(case.target, case.y, low[finite], high[finite]),
        "layers": [
            {"kind": "band", "x": numbers(at[:, 0]), "low": numbers(low), "high": numbers(high)},
            {"kind": "dots", "look": "data", "x": numbers(x[some]), "y": numbers(case.y[some])},
            {"kind": "line", "look": "c1", "x": numbers(at[:, 0]), "y": numbers(case.predict(at))},
        ],
        "alt": f"The fitted curve of {case.target} over {case.names[0]}, intervals of 90 % and the "
        f"{len(some)} observations.",
    }


def series_chart(case: Case, place: int, name: str) -> Chart:
    """Observed and predicted values over time."""
    order = np.argsort(case.X[:, place], kind="stable")
    order = order[_spread(len(order))]
    x, seen, predicted = case.X[order, place], case.y[order], case.loo_predictions[order]
    return {
        "id": "series",
        "x": _axis(f"{name}, year", x, room=0.01),
        "y": _axis(case.target, seen, predicted),
        "layers": [
            {"kind": "dots", "look": "data", "x": numbers(x), "y": numbers(seen)},
            {"kind": "line", "look": "c1 thin", "x": numbers(x), "y": numbers(predicted)},
        ],
        "alt": f"Observed and predicted {case.target} of {len(x)} rows over time.",
    }
