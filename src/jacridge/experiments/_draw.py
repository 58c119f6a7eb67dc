"""Shared parts of the figures: empty panels, a colour and a dash style for each rule, deciles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jacridge._checks import require

from ._table import Row

# Okabe and Ito's colours, which everyone can tell apart; dashes and markers do the same in print.
STYLES: dict[str, dict[str, Any]] = {
    "jacobian": {"color": "#0072B2", "linestyle": "-", "marker": "o"},
    "jacobian_median": {"color": "#0072B2", "linestyle": "--", "marker": "+"},
    "jacobian_trimmed": {"color": "#0072B2", "linestyle": ":", "marker": "o"},
    "loo": {"color": "#E69F00", "linestyle": "--", "marker": "s"},
    "gcv": {"color": "#A07000", "linestyle": ":", "marker": "x"},
    "mml_published": {"color": "#D55E00", "linestyle": ":", "marker": "^"},
    "mml_unit": {"color": "#56B4E9", "linestyle": "-.", "marker": "<"},
    "mml": {"color": "#009E73", "linestyle": "-.", "marker": "v"},
    "silverman": {"color": "#CC79A7", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "D"},
    "matern52": {"color": "#56B4E9", "linestyle": "-", "marker": "P"},
    "matern32": {"color": "#009E73", "linestyle": "-", "marker": "*"},
    "exponential": {"color": "#000000", "linestyle": "-", "marker": "X"},
    "median": {"color": "#000000", "linestyle": "--", "marker": "x"},
    "scale": {"color": "#000000", "linestyle": ":", "marker": "+"},
    "auto": {"color": "#000000", "linestyle": "-", "marker": "*"},
}


def panels(width: float, height: float, rows: int, columns: int, **shared: Any) -> tuple[Any, Any]:
    """A figure of this size in inches and its axes, outside pyplot's global state."""
    module = require("matplotlib.figure", extra="plots")
    figure = module.Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **shared)


def column(rows: Sequence[Row], name: str) -> np.ndarray:
    """One column of rows as an array."""
    return np.array([row[name] for row in rows], dtype=float)


def where(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """The rows that have these values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def values(rows: Sequence[Row], name: str) -> list[Any]:
    """The distinct values of a column in the order of their first appearance."""
    return list(dict.fromkeys(row[name] for row in rows))


def deciles(rows: Sequence[Row], over: str, quantity: str) -> tuple[list[Any], np.ndarray]:
    """Values of one column, and first decile, median and last decile of another at each of them."""
    x = values(rows, over)
    each = [column(where(rows, **{over: value}), quantity) for value in x]
    return x, np.array([np.quantile(found, [0.1, 0.5, 0.9]) for found in each]).T


def draw_band(
    ax: Any, rule: str, x: Any, ends: np.ndarray, *, alpha: float = 0.13, **look: Any
) -> Any:
    """Draw the line of a rule within a band: `ends` are low, middle and high."""
    low, middle, high = ends
    color, dash = STYLES[rule]["color"], STYLES[rule]["linestyle"]
    ax.fill_between(x, low, high, color=color, alpha=alpha, linewidth=0)
    return ax.plot(x, middle, color=color, linestyle=dash, **look)[0]


def legend_below(fig: Any, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """One legend below all panels, in one or two lines."""
    columns = len(labels) if len(labels) <= 5 else (len(labels) + 1) // 2
    fig.legend(handles, labels, loc="outside lower center", ncol=columns, frameon=False)


def log_scale(ax: Any) -> None:
    """A logarithmic y axis with few labels, however short it is."""
    ticker = require("matplotlib.ticker", extra="plots")
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    subs = (1.0, 2.0, 5.0) if high / low < 1000 else (1.0,)
    ax.yaxis.set_major_locator(ticker.LogLocator(subs=subs, numticks=8))
    ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_locator(ticker.NullLocator())
