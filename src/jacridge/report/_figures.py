"""Which charts the report has, and where they stand on the page."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from ._case import Case
from ._charts import (
    Chart,
    effect_chart,
    effects_axis,
    interval_chart,
    line_chart,
    observed_chart,
    residual_chart,
    series_chart,
    surface_chart,
)
from ._columns import Column
from ._effects import curve_of, importances, surface_of
from ._folds import Folds

MOST_CURVES = 6


@dataclass(frozen=True)
class Figures:
    """Charts for the script, HTML of the places where they go, and the importances behind them."""

    charts: list[Chart]
    intervals: str
    effects: str
    places: str
    series: str
    importances: list[tuple[Column, float]]


def figures_of(case: Case, folds: Folds | None) -> Figures:
    """All charts that this table calls for."""
    charts = [observed_chart(case), residual_chart(case)]
    intervals = ""
    if folds is not None:
        charts.append(interval_chart(case, folds))
        intervals = figure(
            "intervals", "Intervals of rows kept aside; missed observations are orange"
        )
    found = importances(case)
    effects = "" if len(case.columns) == 1 else _effects(case, found, charts)
    return Figures(charts, intervals, effects, _places(case, charts), _series(case, charts), found)


def figure(name: str, caption: str, look: str = "") -> str:
    """Where a chart goes, under its caption."""
    return (
        f'<figure class="{look}"><figcaption>{caption}</figcaption>'
        f'<div class="chart" id="{name}"></div></figure>'
    )


def _effects(case: Case, found: list[tuple[Column, float]], charts: list[Chart]) -> str:
    """Curves of the most important columns; their charts are added."""
    largest = found[0][1]
    wanted = [c for c, size in found if size > 0.02 * largest and (c.is_number or c.levels)]
    curves = [curve_of(case, column) for column in wanted[:MOST_CURVES]]
    if not curves:
        return ""
    axis = effects_axis(case, curves)
    for i, curve in enumerate(curves):
        charts.append(effect_chart(case, curve, i, axis))
    return "".join(
        figure(f"effect-{i}", escape(curve.column.name)) for i, curve in enumerate(curves)
    )


def _places(case: Case, charts: list[Chart]) -> str:
    """A curve for one column, a map or a surface for two; its chart is added."""
    target = escape(case.target)
    if len(case.columns) == 1 and case.columns[0].is_number:
        charts.append(line_chart(case))
        return figure("surface", f"{target}: the fitted curve and its 90 % intervals")
    surface = surface_of(case)
    if surface is None:
        return ""
    charts.append(surface_chart(case, surface))
    others = ", averaged over the other columns" if len(case.columns) > 2 else ""
    return figure("surface", f"{target}: predicted{others}; dots are rows, coloured as observed")


def _series(case: Case, charts: list[Chart]) -> str:
    """Observed and predicted values over the first column of dates; its chart is added."""
    for column in case.columns:
        for i in column.places:
            if case.names[i] == f"{column.name} (year)":
                charts.append(series_chart(case, i, column.name))
                words = "over time: dots are observed, the line is predicted without the row itself"
                return figure("series", f"{escape(case.target)} {words}")
    return ""
