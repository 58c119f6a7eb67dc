"""The charts of the report as plain values, which the page's script draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_curve

from .._compute.arrays import Array
from ._case import Case
from ._columns import YEAR
from ._effects import CELLS, Curve, EffectSurface, times_of
from ._folds import OURS, Folds

Chart = dict[str, Any]
MOST_POINTS, ROC_POINTS = 1200, 150
DRAWN_CLASSES = 4
ALIKE = 0.8  # correlation of consecutive rows from which they are joined by a line
DRAWN_INTERVALS = 100
FEWEST = 25  # rows in a bin of the calibration curve
# Classes of lines in the page's style, for models and for classes.
LOOKS = ("c1", "c2 dashed", "c3 dotted", "c4")


def numbers(values: Array) -> Any:
    """Nested lists of numbers with six digits that differ; null for numbers that are not finite."""
    if np.ndim(values) > 1:
        return [numbers(row) for row in values]
    finite = np.asarray(values)[np.isfinite(values)]
    largest, reach = np.abs(finite).max(initial=0.0), np.ptp(finite) if len(finite) else 0.0
    same = int(np.log10(largest / reach)) if reach > largest * 1e-9 else 0  # leading digits
    return [float(f"{v:.{6 + same}g}") if np.isfinite(v) else None for v in np.asarray(values)]


def _axis(label: str, *values: Array, room: float = 0.04) -> Chart:
    """An axis that shows all values, with some room on either side."""
    each = np.concatenate([np.ravel(v)[np.isfinite(np.ravel(v))] for v in values])
    low, high = float(each.min()), float(each.max())
    space = (high - low) * room if high > low else abs(high) * 0.04 or 1.0
    return {"low": low - space, "high": high + space, "label": label}


def spread(n: int, most: int = MOST_POINTS) -> Array:
    """At most `most` of n places, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def _marks(kind: str, look: str, x: Array, y: Array) -> Chart:
    """Dots or a line."""
    return {"kind": kind, "look": look, "x": numbers(x), "y": numbers(y)}


def _range(kind: str, x: Array, low: Array, high: Array, **look: str) -> Chart:
    """Bars or a band from low to high."""
    return {"kind": kind, **look, "x": numbers(x), "low": numbers(low), "high": numbers(high)}


def _chart(name: str, x: Chart, y: Chart, layers: list[Chart], alt: str) -> Chart:
    """Layers over two axes, and a sentence for readers who cannot see them."""
    return {"id": name, "x": x, "y": y, "layers": layers, "alt": alt}


def _at_edge(axis: Chart, values: Array) -> Array:
    """Values within an axis; values beyond its ends are moved just inside."""
    inside = 0.01 * (axis["high"] - axis["low"])
    return np.clip(values, axis["low"] + inside, axis["high"] - inside)


def _far_dots(case: Case, x: Chart, y: Chart, values: Array) -> list[Chart]:
    """Rows that are predicted far off, possibly beyond the axes; empty if there are none."""
    far = case.far_off
    places = _at_edge(x, case.loo_predictions[far]), _at_edge(y, values[far])
    return [_marks("dots", "miss", *places)] if len(far) else []


def observed_chart(case: Case) -> Chart:
    """Observed against predicted, each row by the model without it."""
    some = np.setdiff1d(spread(len(case.y)), case.far_off)
    x, y = case.loo_predictions[some], case.y[some]
    axis = _axis("", x, y)
    line = np.array([axis["low"], axis["high"]])
    layers = [_marks("line", "rule", line, line), _marks("dots", "dot", x, y)]
    across, up = ({**axis, "label": f"{what} {case.target}"} for what in ("predicted", "observed"))
    words = f"Observed against predicted {case.target} of {len(x):,} rows, with the diagonal."
    return _chart("observed", across, up, layers + _far_dots(case, axis, axis, case.y), words)


def residual_chart(case: Case) -> Chart:
    """Errors against predictions, each row by the model without it."""
    some, errors = np.setdiff1d(spread(len(case.y)), case.far_off), case.y - case.loo_predictions
    x, error = case.loo_predictions[some], errors[some]
    axis, up = _axis(f"predicted {case.target}", x), _axis("error", error)
    ends = np.array([axis["low"], axis["high"]])
    layers = [_marks("line", "rule", ends, 0 * ends), _marks("dots", "dot", x, error)]
    words = f"Errors against predictions of {len(x):,} rows, with a line at zero."
    return _chart("residuals", axis, up, layers + _far_dots(case, axis, up, errors), words)


def interval_chart(case: Case, folds: Folds) -> Chart:
    """Intervals of rows kept aside, in order of prediction or time, and the observations."""
    predicted = folds.predicted[OURS]
    order = np.arange(len(predicted)) if folds.later else np.argsort(predicted)
    some = order[spread(len(order), DRAWN_INTERVALS)]
    x = np.arange(1.0, len(some) + 1)
    (low, high), seen = folds.intervals[some].T, folds.observed[some]
    inside = (low <= seen) & (seen <= high)
    usual = ~np.isin(some if folds.rows is None else folds.rows[some], case.far_off)
    axis = _axis(case.target, low, high, seen[usual])
    seen = _at_edge(axis, seen)
    layers = [
        _range("bars", x, low, high),
        _marks("dots", "data", x[inside], seen[inside]),
        _marks("dots", "miss", x[~inside], seen[~inside]),
    ]
    across = _axis("later rows" if folds.later else "rows, by prediction", x)
    words = f"Intervals of {len(x)} rows kept aside; {int(inside.sum())} hold the observation."
    return _chart("intervals", across, axis, layers, words)


def effect_chart(case: Case, curve: Curve, number: int, everything: Chart) -> Chart:
    """Partial dependence of the prediction on one column; all effects share their y axis."""
    drawn, steps = lines_of(case), curve.steps
    layers = [
        layer for k in drawn for layer in _effect_layers(curve, k, drawn.index(k), len(drawn))
    ]
    if steps.levels:
        axis = {"low": -0.5, "high": len(steps.levels) - 0.5, "levels": list(steps.levels)}
    else:
        is_date = case.table.names[steps.places[0]].endswith(YEAR)
        log = steps.log and not curve.is_straight
        words = "logarithmic scale" if log else ""
        axis = {**_axis(words, steps.x, room=0), "years": is_date, "log": log}
        layers.append({"kind": "rug", "x": numbers(steps.seen)})
    mean = curve.mean[drawn[0]]
    words = (
        f"Mean prediction of {case.shown} as {curve.column.name} changes: from {mean[0]:.4g} at "
        f"the left to {mean[-1]:.4g} at the right."
    )
    return _chart(f"effect-{number}", axis, everything, layers, words)


def lines_of(case: Case) -> list[int]:
    """Outputs that effects show: the main one, or the most frequent of many classes."""
    if len(case.classes) < 3:
        return [case.main or 0]
    counts = case.task.observed(case.y).sum(axis=0)
    return [int(k) for k in np.argsort(-counts, kind="stable")[:DRAWN_CLASSES]]


def _effect_layers(curve: Curve, k: int, i: int, count: int) -> list[Chart]:
    """Layers of one output; with the spread of the rows' own curves if it is the only one."""
    x, mean = curve.steps.x, curve.mean[k]
    if curve.steps.levels:
        kind, layers = "bars", [_marks("dots", f"big {LOOKS[i][:2]}", x, mean)]
    else:
        kind, layers = "band", [_marks("line", LOOKS[i], x, mean)]
    if count > 1:
        return layers
    if curve.error is not None:  # the interval of the mean
        sure = _range("band", x, mean - curve.error, mean + curve.error, look="sure")
        layers = [sure, *layers]
    return [_range(kind, x, curve.low[k], curve.high[k]), *layers]


def effects_axis(case: Case, curves: list[Curve]) -> Chart:
    """One vertical axis for all effects, so that their sizes can be compared."""
    drawn = lines_of(case)
    ends = [
        end[drawn] for c in curves for end in ((c.low, c.high) if len(drawn) == 1 else (c.mean,))
    ]
    label = "probability" if case.classes else case.target
    return _axis(label, *ends)


def surface_chart(case: Case, surface: EffectSurface) -> Chart:
    """The prediction over two columns as colours, with the rows as dots of the observed colour."""
    low, high = np.quantile(np.r_[surface.values.ravel(), surface.points[:, 2]], [0.01, 0.99])
    x, y, seen = surface.points.T
    across = {"low": surface.x[0], "high": surface.x[-1], "label": surface.across}
    up = {"low": surface.y[0], "high": surface.y[-1], "label": surface.up}
    edges = (np.linspace(axis["low"], axis["high"], CELLS + 1) for axis in (across, up))
    layers = [
        {**_marks("cells", "", *edges), "values": numbers(surface.values)},
        {**_marks("places", "", x, y), "values": numbers(seen)},
    ]
    words = f"Predicted {case.shown} over {surface.across} and, upwards, {surface.up}."
    return {
        **_chart("surface", across, up, layers, words),
        "shape": float(np.cos(np.radians(surface.y.mean()))) if surface.is_map else None,
        "colours": {"low": float(low), "high": float(high)},
    }


def line_chart(case: Case) -> Chart:
    """The fitted curve of the only column that varies, with the observations.

    With intervals for numbers.
    """
    (place,) = case.varied[0].places
    x = case.X[:, place]
    at = np.linspace(x.min(), x.max(), 160)
    rows = np.repeat(case.X[:1], len(at), axis=0)
    rows[:, place] = at
    curve, some = case.predict(rows), spread(len(x))
    layers, ends = [], [case.outcomes, curve]
    if not case.classes:
        low, high = case.estimator.predict_interval(case.seen(rows), 0.9)
        finite = np.isfinite(low) & np.isfinite(high)
        layers, ends = [_range("band", at, low, high)], [*ends, low[finite], high[finite]]
    layers.append(_marks("dots", "data", x[some], case.outcomes[some]))
    layers.append(_marks("line", "c1", at, curve))
    name = case.table.names[place]
    words = f"The fitted curve of {case.shown} over {name}, and {len(some):,} observations."
    up = _axis(case.shown, *ends)
    return _chart("surface", _axis(name, x, room=0.01), up, layers, words)


def series_chart(case: Case, place: int) -> Chart:
    """Observed and predicted values over a column of times."""
    name = case.table.names[place].removesuffix(YEAR)
    times = times_of(case, place)
    order = np.argsort(times, kind="stable")
    order = order[spread(len(order))]
    x, seen, predicted = times[order], case.outcomes[order], case.loo_predictions[order]
    layers = [_marks("dots", "data", x, seen), _marks(*_over_time(predicted), x, predicted)]
    axis = {**_axis(name, x, room=0.01), "years": name != case.table.names[place]}
    words = f"Observed and predicted {case.shown} of {len(x):,} rows over time."
    return _chart("series", axis, _axis(case.shown, seen, predicted), layers, words)


def _over_time(predicted: Array) -> tuple[str, str]:
    """A line, or dots if consecutive rows have little in common."""
    varies = predicted.std() > 0
    alike = varies and np.corrcoef(predicted[1:], predicted[:-1])[0, 1] > ALIKE
    return ("line", "c1 thin") if alike or not varies else ("dots", "dot")


def calibration_chart(observed: Array, predicted: dict[str, Array]) -> Chart:
    """Observed shares against probabilities, in bins with equal numbers of rows."""
    curves = {name: calibration(observed, outputs) for name, outputs in predicted.items()}
    ours = ", ".join(f"{p:.2f} predicted and {s:.2f} observed" for p, s in curves[OURS].T)
    words = f"Observed shares against predicted probabilities: this model, {ours}."
    chart = _shares("calibration", "predicted probability", "observed share", curves, words)
    chart["layers"].append(_marks("dots", "big c1", *curves[OURS]))
    return chart


def calibration(observed: Array, outputs: Array, bins: int = 10) -> Array:
    """Mean probability and observed share in each bin, of shape (2, bins).

    Bins have equal numbers of rows, so that no share rests on a few rows; few rows get fewer bins.
    """
    p, seen = outputs.ravel(), observed.ravel()
    parts = np.array_split(np.argsort(p, kind="stable"), np.clip(len(p) // FEWEST, 1, bins))
    return np.array([[p[part].mean(), seen[part].mean()] for part in parts]).T


def roc_chart(observed: Array, predicted: dict[str, Array]) -> Chart:
    """Hits against false alarms, as the threshold of the probability falls."""
    curves = {name: roc(observed, outputs) for name, outputs in predicted.items()}
    words = f"Hits against false alarms of {', '.join(curves)}."
    return _shares("roc", "share of false alarms", "share of hits", curves, words)


def roc(observed: Array, outputs: Array) -> Array:
    """Shares of false alarms and of hits, of shape (2, points)."""
    false, hit, _ = roc_curve(observed.ravel(), outputs.ravel())
    return np.array([false, hit])[:, spread(len(hit), ROC_POINTS)]


def _shares(name: str, across: str, up: str, curves: dict[str, Array], alt: str) -> Chart:
    """A line for each model over shares from 0 to 1, ours last and therefore on top; a diagonal."""
    unit, ends = {"low": -0.03, "high": 1.03}, np.array([0, 1])
    lines = [
        _marks("line", look, *curve) for look, curve in zip(LOOKS, curves.values(), strict=False)
    ]
    axes = {**unit, "label": across}, {**unit, "label": up}
    return _chart(name, *axes, [_marks("line", "rule", ends, ends), *lines[::-1]], alt)
