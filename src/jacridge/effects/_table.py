"""The table of effects: tidy rows that print, render, and become data frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from html import escape
from typing import Any

from .._checks import require
from .._compute.numbers import rounded

# How errors treat the metric: it was given; it was learned, and learned again without groups of
# rows; or it was learned, and the errors ignore this.
METRIC_GIVEN, METRIC_RELEARNED, METRIC_LEARNED = "given", "relearned", "learned"


def held_fixed(metric: str, *, classes: bool = False, has_kinks: bool = False) -> str:
    """Sentences below a table of effects on the prediction, or on probabilities of classes."""
    fixed = "bandwidth, penalty and calibration" if classes else "bandwidth and penalty"
    bias = "the bias" if classes else "the bias of ridge regression"
    if metric == METRIC_RELEARNED:
        errors = (
            f"Errors include the error of the learned metric. They hold kernel, {fixed}\n"
            f"fixed and do not include {bias}."
        )
    else:
        errors = f"Errors hold kernel, metric, {fixed} fixed and do not include\n{bias}."
    if metric == METRIC_LEARNED:
        errors += (
            "\nThe metric was learned from these rows: errors that hold it fixed may be several\n"
            'times too small. Fit with metric="scaled" for errors without a learned metric.'
        )
    if has_kinks:
        errors += (
            "\nThe kernel has kinks at the training rows, which bias slopes: their intervals miss\n"
            'the true effect too often. Fit with kernel="matern32" or "gaussian" to avoid this.'
        )
    what = "predicted probabilities" if classes else "prediction"
    return f"{errors}\nEffects on the {what} are associations, not causes."


@dataclass(frozen=True)
class Effect:
    """One average effect, its standard error and interval, and quartiles of its pointwise values.

    `statistic` is the estimate over its standard error, `p_value` is by Student's t. The names are
    those of marginaleffects. `target` is None for a single target, `by` for all rows together.
    """

    target: str | None
    by: Any
    term: str
    contrast: str
    kind: str
    estimate: float
    std_error: float
    statistic: float
    p_value: float
    conf_low: float
    conf_high: float
    q25: float
    q50: float
    q75: float


@dataclass(frozen=True)
class Effects:
    """Average effects, one row each; prints as a table and renders as HTML.

    Attributes
    ----------
    rows : tuple of Effect
    level : float
        Coverage of the intervals.
    noise : {"even", "robust", "clustered"}
        Assumption about the noise of y behind the standard errors.
    held_fixed : str
        Sentences below the table.
    metric : {"given", "relearned", "learned"}
        How the standard errors treat the metric. "given": it was not learned. "relearned": it was
        learned, and they include its error. "learned": it was learned, but they ignore its error.
    has_kinks : bool
        Whether there are slopes of a kernel with kinks, which are biased.
    """

    rows: tuple[Effect, ...]
    level: float
    noise: str
    held_fixed: str = held_fixed(METRIC_GIVEN)
    metric: str = METRIC_GIVEN
    has_kinks: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Effect]:
        return iter(self.rows)

    def dict(self) -> dict[str, list[Any]]:
        """The columns as lists, by name; `target` and `by` only if they are used."""
        names = [column.name for column in fields(Effect)]
        columns = {name: [getattr(row, name) for row in self.rows] for name in names}
        hidden = [name for name in ("target", "by") if set(columns[name]) == {None}]
        return {name: values for name, values in columns.items() if name not in hidden}

    def to_pandas(self) -> Any:
        """The table as a pandas data frame."""
        return require("pandas", extra="frames").DataFrame(self.dict())

    def to_polars(self) -> Any:
        """The table as a polars data frame."""
        return require("polars", extra="frames").DataFrame(self.dict())

    @property
    def title(self) -> str:
        """Title of the table."""
        even = "standard errors for noise that is equally large in all rows"
        errors = even if self.noise == "even" else f"{self.noise} standard errors"
        return f"Average effects, {100 * self.level:g} % intervals, {errors}"

    def cells(self) -> list[list[str]]:
        """Header and rows as strings."""
        columns = self.dict()
        rows = zip(*columns.values(), strict=True)
        shown = [[cell(n, v) for n, v in zip(columns, row, strict=True)] for row in rows]
        return [[name.replace("_", " ") for name in columns], *shown]

    def __str__(self) -> str:
        return f"{self.title}\n{aligned(self.cells())}\n{self.held_fixed}"

    def _repr_html_(self) -> str:
        caption = f"<caption>{escape(self.title)}</caption>"
        return html_table(self.cells(), caption) + f"<small>{escape(self.held_fixed)}</small>"


def cell(name: str, value: Any) -> str:
    """A value formatted for reading."""
    if not isinstance(value, float):
        return str(value)
    value += 0.0  # no minus before a zero
    if name == "p_value":
        return "<0.001" if value < 1e-3 else f"{value:.3f}"
    return f"{value:.2f}" if name == "statistic" else rounded(value, 4)


def aligned(cells: list[list[str]]) -> str:
    """A table as text: words left-aligned, numbers right-aligned, a line below the header."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    words = cells[0].index("estimate")

    def line(row: list[str]) -> str:
        parts = [
            text.ljust(width) if i < words else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(parts).rstrip()

    rule = "-" * len(line(cells[0]))
    return "\n".join([line(cells[0]), rule, *map(line, cells[1:]), rule])


def html_table(cells: list[list[str]], caption: str = "") -> str:
    """A table as HTML."""
    head = "".join(f"<th>{escape(text)}</th>" for text in cells[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in cells[1:]
    )
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
