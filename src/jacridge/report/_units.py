"""Effects in the units of a table, with its values and categories as labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from ._columns import MARK, YEAR, Table

if TYPE_CHECKING:
    from .._compute.arrays import Array
    from ..effects import Effect, Effects

# A slope goes both ways if both quartiles are this many standard errors of the mean from zero.
BOTH_WAYS = 5.0
# Share of the variance of a curve that one which only rises, or only falls, explains up to jitter;
# and the number of curves, and of points of each, by which this is judged.
STEADY, CURVES, CURVE_POINTS = 0.9, 30, 100
# Fields that are per unit of a column, and change with its scale.
PER_UNIT = ("estimate", "std_error", "conf_low", "conf_high", "q25", "q50", "q75")


def effects_in_units(
    estimator: Any,
    table: Table,
    scale: Array,
    shown: Sequence[str] | None = None,
    *,
    centre: Array | float = 0.0,
    **options: Any,
) -> Effects:
    """Effects per unit of the table's columns, with its values and categories as labels.

    The model was fitted to the columns of the table minus `centre`, over `scale`; constant
    columns have no effect. Where a column raises the prediction in some rows and lowers it in
    others, the p-value of the average slope is NaN, as it says nothing about whether the column
    matters; a date has no average slope then. `options` are those of `JacobianKernelRidge.effects`.
    """
    moving = np.ptp(table.X, axis=0) > 0
    variables: dict[str, Any] = {
        name: place for place, name in enumerate(table.numbers) if moving[place]
    }
    variables |= {
        column.name: tuple(column.places[i] for i in column.order)
        for column in table.columns
        if column.levels and moving[column.places].any()
    }
    wanted = variables if shown is None else shown
    asked = {name: variables[name] for name in wanted if name in variables}
    some = asked or dict([*variables.items()][:1])  # the library needs one
    found = estimator.effects(variables=some, **options)
    labels = {f"x{j}": name.partition(" = ")[2] for j, name in enumerate(table.names)}
    Z = (table.X - centre) / scale
    both = [
        _has_both_signs(row) and _turns(_curves(estimator, Z, variables[row.term], row.target))
        for row in found
    ]
    rows = [
        replace(row, p_value=np.nan) if turns else row
        for row, turns in zip(found, both, strict=True)
        if row.term in asked and not (row.term.endswith(YEAR) and turns)
    ]
    rows = [_in_units(row, variables[row.term], table, scale, labels) for row in rows]
    return replace(found, rows=tuple(rows))


def _in_units(
    row: Effect, place: Any, table: Table, scale: Array, labels: dict[str, str]
) -> Effect:
    """One effect per unit of its column, or between values and categories of the table."""
    if row.kind == "slope":
        unit, contrast = scale[place], row.contrast
        if row.term.endswith(YEAR):  # days, of which a year has 366, where there is no whole year
            is_short = np.ptp(table.X[:, place]) < 1
            unit, contrast = (366 * unit, "per day") if is_short else (unit, "per year")
        numbers = {name: getattr(row, name) / unit for name in PER_UNIT}
        return replace(row, contrast=contrast, **numbers)
    if isinstance(place, tuple):
        one, _, zero = row.contrast.partition(" - ")
        return replace(row, contrast=f"{labels[one]} - {labels[zero]}")
    low, high = labels_of_two(row.term, np.unique(table.X[:, place]))
    return replace(row, contrast=f"{high} - {low}")


def rises_and_falls(effect: Effect) -> bool:
    """Whether an effect of :func:`effects_in_units` is positive and negative in many rows each."""
    return bool(np.isnan(effect.p_value)) and _has_both_signs(effect)


def _has_both_signs(effect: Effect) -> bool:
    """Whether slopes are clearly positive in many rows and clearly negative in many others."""
    clear = BOTH_WAYS * effect.std_error
    return effect.kind == "slope" and effect.q25 < -clear and effect.q75 > clear


def _curves(estimator: Any, Z: Array, place: int, target: Any) -> Array:
    """Predictions for some rows, each along the inner 98 % of a column, (curves, points)."""
    rng = np.random.default_rng(0)
    some = Z[rng.choice(len(Z), min(CURVES, len(Z)), replace=False)]
    low, high = np.quantile(Z[:, place], [0.01, 0.99])
    points = np.linspace(low, high, CURVE_POINTS)
    rows = np.repeat(some, CURVE_POINTS, axis=0)
    rows[:, place] = np.tile(points, len(some))
    if not hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict(rows)).reshape(len(some), -1)
    names = [str(label) for label in estimator.classes_]
    k = names.index(str(target)) if str(target) in names else -1
    return np.asarray(estimator.predict_proba(rows)[:, k]).reshape(len(some), -1)


def _turns(curves: Array) -> bool:
    """Whether neither three quarters of the curves rise steadily, nor three quarters fall."""
    return not any(
        np.mean([_is_steady(curve, rising) for curve in curves]) >= 0.75 for rising in (True, False)
    )


def _is_steady(curve: Array, rising: bool) -> bool:
    """Whether a curve only rises, or only falls, up to jitter."""
    off = curve - isotonic_regression(curve, increasing=rising)
    return bool(off.var() <= (1 - STEADY) * curve.var())


def labels_of_two(name: str, values: Array) -> tuple[str, ...]:
    """Labels of the two values of a column; "no" and "yes" if it marks gaps."""
    return ("no", "yes") if name.endswith(MARK) else tuple(f"{value:g}" for value in values)
