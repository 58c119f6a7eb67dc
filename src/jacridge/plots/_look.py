"""Okabe and Ito's colours, which colour-blind readers can tell apart, and shared parts of plots.

Curves also differ in their dashes, so that they can be told apart in black and white.
"""

from __future__ import annotations

from typing import Any, Self

from .._checks import require

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "0.45"
DASHES = ("-", "--", "-.", ":")
SIGMA = r"bandwidth $\sigma$"

# matplotlib is an extra, and its types differ between versions.
Axes = Any


def axes(ax: Axes | None) -> Axes:
    """The axes given, or the current ones."""
    return require("matplotlib.pyplot", extra="plots").gca() if ax is None else ax


def mark(ax: Axes, chosen: float | None, label: str = "chosen") -> None:
    """A dashed line at the chosen bandwidth."""
    if chosen is not None:
        ax.axvline(chosen, color=GREY, linestyle=(0, (4, 3)), linewidth=1, zorder=0, label=label)


def legend(ax: Axes) -> None:
    """A legend without a frame that is readable even where it covers a line."""
    ax.legend(framealpha=0.85, edgecolor="none")


class Display:
    """Base class of all displays: they store their axes, figure and artists.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    artists_ : list of the lines, areas, bars and maps on the axes
    """

    def _drawn(self, ax: Axes) -> Self:
        """The display itself, drawn on these axes."""
        self.ax_, self.figure_ = ax, ax.figure
        self.artists_ = [*ax.lines, *ax.collections, *ax.patches, *ax.images]
        return self
