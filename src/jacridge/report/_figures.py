"""Charts of effects, places and times, and their HTML."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from ._case import Case
from ._charts import (
    Chart,
    effect_chart,
    effects_axis,
    line_chart,
    series_chart,
    spread,
    surface_chart,
)
from ._columns import Column
from ._effects import are_flat, curves_of, surface_of

MOST_CURVES = 6


class Figure(NamedTuple):
    """A chart for the script, and its caption as HTML."""

    chart: Chart
    caption: str

    @property
    def html(self) -> str:
        """Placeholder of the chart, below its caption."""
        return (
            f"<figure><figcaption>{self.caption}</figcaption>"
            f'<div class="chart" id="{self.chart["id"]}"></div></figure>'
        )


def effect_figures(case: Case, found: list[tuple[Column, float]]) -> Iterator[Figure]:
    """Curves of the most important columns."""
    if _is_one_number(case):
        return
    if are_flat(case, found):
        return
    largest = found[0][1]
    wanted = [c for c, size in found if size > 0.02 * largest]
    curves = [curve for column in wanted[:MOST_CURVES] for curve in curves_of(case, column)]
    axis = effects_axis(case, curves)
    for i, curve in enumerate(curves):
        drawn, levels = len(curve.steps.levels), len(curve.column.levels)
        some = f": the {drawn} most frequent of {levels:,}" if drawn < levels else ""
        yield Figure(effect_chart(case, curve, i, axis), escape(curve.column.name) + some)


def _is_one_number(case: Case) -> bool:
    """Whether a single column varies, and holds numbers."""
    return len(case.varied) == 1 and case.varied[0].is_number


def place_figures(case: Case) -> Iterator[Figure]:
    """A curve for one column, a map or a surface for two."""
    shown = escape(case.shown)
    if _is_one_number(case):
        bands = "" if case.classes else " and its 90 % intervals"
        words = f"{shown}: the fitted curve{bands}{sampled(case)}"
        yield Figure(line_chart(case), words)
        return
    surface = surface_of(case)
    if surface is not None:
        more = len(case.varied) > 2
        others = ", averaged over the other columns" if more else ""
        dots = f"{_dots(len(surface.points), len(case.X))}, coloured by the observed value"
        adjusted = ", adjusted for the other columns" if more and not case.classes else ""
        words = f"{shown}: predicted{others}; dots are {dots}{adjusted}"
        yield Figure(surface_chart(case, surface), words)


def sampled(case: Case) -> str:
    """How many rows are drawn as dots, after a comma; empty if all of them."""
    m, n = len(spread(len(case.y))), len(case.y)
    return "" if m == n else f", {_dots(m, n)}"


def _dots(m: int, n: int) -> str:
    return "rows" if m == n else f"{m:,} of the {n:,} rows"


def series_figures(case: Case) -> Iterator[Figure]:
    """Observed and predicted values over the time that the rows follow."""
    if case.table.time is not None and len(case.table.names) > 1:
        words = f"over time{sampled(case)}: grey is observed, blue is predicted without the row"
        yield Figure(series_chart(case, case.table.time), f"{escape(case.shown)} {words}")
