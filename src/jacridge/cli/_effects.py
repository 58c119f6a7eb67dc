"""The command `effects`: how much each column changes the prediction, in its own units."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl
import typer

from .._compute.files import check_place
from ..effects import Effect, Effects
from ..report._columns import (
    CYCLE_VALUES,
    WAVES,
    YEAR,
    Table,
    alike,
    nested,
    on_alike,
    on_nested,
    table_of,
)
from ..report._tasks import TASKS
from ..report._units import effects_in_units, rises_and_falls
from ._columns import Rows, column_named, columns_named
from ._notes import CHOSEN_BY, note_times, rows_of
from ._options import AsJson, Data, SolverOptions, TableOptions, Target, between_0_and_1, option
from ._tables import check_table_name, listed, write_table
from ._terminal import cell, grid, note, progress, show

if TYPE_CHECKING:
    from ..report._case import Case


def effects(
    file: Data,
    target: Target,
    variables: Annotated[
        list[str] | None,
        option("--variables", "COLUMNS", "Columns to show, joined by commas; default: all."),
    ] = None,
    by: Annotated[
        str | None, option("--by", "COLUMN", "Average within the groups of a feature.")
    ] = None,
    robust: Annotated[
        bool,
        typer.Option(
            "--robust", help="Allow noise to differ between rows (HC3); always on for classes."
        ),
    ] = False,
    cluster: Annotated[
        str | None,
        option("--cluster", "COLUMN", "Allow noise to be correlated within groups (CR3)."),
    ] = None,
    level: Annotated[float, between_0_and_1("--level", "Coverage of the intervals.")] = 0.95,
    output: Annotated[str | None, option("--output -o", "FILE", "Table to write.")] = None,
    *,
    model: SolverOptions,
    table: TableOptions,
    as_json: AsJson = False,
) -> None:
    """Print the average effect of each column on the prediction, with standard errors.

    Slopes are per unit of a column. Columns with two values are compared with the smaller value,
    categories with the first category. A target with text or with two values is predicted as
    classes, unless --task says otherwise: effects are then on the probability of each class, or,
    of two classes, on that of the second. Effects are associations, not causes.
    """
    if model.solver == "pcg":
        raise typer.BadParameter(
            'must be "exact" or "nystrom", got "pcg", which cannot compute standard errors.',
            param_hint="--solver",
        )
    if output is not None:
        check_place(output, file)
        check_table_name(output)
    spec, roles = model.spec(standardize=table.standardize), {"weights": model.weights}
    reading = table.reading(model.metric, task=model.task, cluster=cluster, **roles)
    rows = rows_of(file, [target], reading).filled()
    in_time = rows.time is not None
    if spec.holds_out(in_time=in_time) == "later":
        rows = rows.oldest_first()
        note_times(rows, CHOSEN_BY, later=True)
    terms = _terms(rows, variables)
    cycles = [name for name in terms if name in _cycles(rows)]
    shown = [name for name in terms if name not in cycles]
    noise: dict[str, Any] = {"cluster": rows.clusters, "level": level}
    if rows.task == "regression":
        noise["robust"] = robust
    if by is not None:
        noise["by"] = rows.X[column_named(rows.X.columns, by, "feature")].to_numpy()
    X = rows.X.select(rows.numbers + rows.texts)
    encoded, whole = table_of(X, None, {}), table_of(X, None, rows.made_of)
    from ..report._case import Case  # imported where used, as in the command report

    case = Case(whole, rows.y, rows.target or "", spec, TASKS[rows.task], weights=rows.weights)
    _note_constants(encoded, shown)
    noise["centre"] = case.centre
    with progress("fitting"):
        found = effects_in_units(case.estimator, encoded, case.scale, shown, **noise)
        ranges = [] if by else [row for row in _ranges(case, rows.dates) if row.term in cycles]
    _note_what_averages_hide(encoded, found, shown)
    _note_cycles(cycles, {row.term for row in ranges}, by)
    found = replace(found, rows=(*found.rows, *ranges))
    summary: dict[str, Any] = {"target": rows.target, "task": rows.task}
    summary |= {"n_samples": len(rows.y), "errors": found.noise}
    if output is None:
        show({**summary, "effects": found.dict()}, as_json=as_json, text=_text(found))
    else:
        write_table(pl.DataFrame(found.dict()), output)
        show({**summary, "output": output}, as_json=as_json, text=f"The effects are in {output}.")


def _terms(rows: Rows, wanted: Sequence[str] | None) -> list[str]:
    """The features that are asked for; of a date, or if none are, all but sines and cosines."""
    made: dict[str, list[str]] = {}
    for name in rows.X.columns:
        made.setdefault(rows.made_of.get(name, name), []).append(name)
    plain = {
        column: [part for part in parts if not part.endswith(WAVES)] or parts
        for column, parts in made.items()
    }
    cycles = _cycles(rows)
    for cycle, column in cycles.items():
        plain[column] = [*plain[column], cycle]
    names = list(dict.fromkeys([*made, *cycles, *rows.X.columns]))
    asked = columns_named(names, wanted, "feature") if wanted else [*made]
    return list(dict.fromkeys(term for name in asked for term in plain.get(name, [name])))


def _cycles(rows: Rows) -> dict[str, str]:
    """Names of the months, weekdays and hours of dates, and the columns of these."""
    from ..report._effects import name_of_cycle

    return {
        name_of_cycle(column, cycle): column
        for column in rows.dates
        for cycle in CYCLE_VALUES
        if {f"{column} ({cycle}{wave}" for wave in WAVES} <= {*rows.X.columns}
    }


def _ranges(case: "Case", dates: Collection[str]) -> Iterator[Effect]:
    """The highest minus the lowest prediction over each cycle of a date, as in a report."""
    from ..report._effects import cycle_effects

    classes, none = case.classes, np.nan
    outputs = range(len(classes))[len(classes) == 2 :] if classes else [0]
    for column in case.columns:
        found = cycle_effects(case, column, outputs) if column.name in dates else ()
        for k, name, contrast, size in found:
            target = classes[k] if classes else None
            yield Effect(target, None, name, contrast, "range", size, *[none] * 8)


def _text(found: Effects) -> str:
    """The effects as a table of rounded numbers, with notes on what they mean."""
    names = [name for name in found.dict() if name not in ("kind", "statistic")]
    rows = [[_cell(name, getattr(row, name)) for name in names] for row in found]
    shown = {"term": "column", "contrast": "effect"}
    header = [shown.get(name, name.replace("_", " ")) for name in names]
    table = grid(header, rows, words=names.index("estimate"))
    if not rows:
        return "There are no average effects to show."
    ranges = (
        "For months, weekdays and hours, the effect is the highest minus the lowest prediction.\n"
        if any(row.kind == "range" for row in found)
        else ""
    )
    return f"{found.title}\n{table}\n{ranges}{_as_option(found.held_fixed)}"


def _as_option(text: str) -> str:
    """The advice on an argument of Python as an option of the command."""
    return re.sub(r'(kernel|metric)="(\w+)"( or "\w+")?', r"--\1 \2", text)


def _cell(name: str, value: Any) -> str:
    """A value with three digits; slopes in words."""
    if name == "p_value":
        return "<0.001" if value < 1e-3 else f"{value:.3f}".replace("nan", "-")
    if isinstance(value, float) and np.isnan(value):
        return "-"
    if name == "contrast" and value == "dY/dX":
        return "per unit"
    return cell(value + 0.0 if isinstance(value, float) else value, 3)  # no minus before a zero


def _note_what_averages_hide(table: Table, found: Effects, shown: list[str]) -> None:
    """Name columns with effects in both directions, and columns that share an effect."""
    for term in dict.fromkeys(row.term for row in found if rises_and_falls(row)):
        note(
            f"`{term}` raises the prediction in some rows and lowers it in others (q25, q75), so "
            "its average says little, and has no p value."
        )
    terms = {row.term for row in found}
    for name in shown:
        if name.endswith(YEAR) and name not in terms:
            note(
                f"The prediction rises and falls over `{name.removesuffix(YEAR)}`, so there is no "
                "average slope; jacridge report draws the curve."
            )
    pairs = [pair for pair in alike(table) if {*pair[:2]} <= {*shown}]
    if pairs:
        note(on_alike(pairs))
    for pair in nested(table):
        if {*pair} <= {*shown}:
            note(on_nested(*pair))


def _note_cycles(asked: list[str], shown: set[str], by: str | None) -> None:
    """Name the cycles of dates that are not shown, and say why."""
    missing = [name for name in asked if name not in shown]
    if missing:
        why = (
            "their effects are over all rows, without --by"
            if by
            else "the dates must cover two rounds of a cycle"
        )
        note(f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} not shown: {why}.")


def _note_constants(table: Table, shown: list[str]) -> None:
    """Name the columns that have no effect because they are constant."""
    for column in table.columns:
        if column.name in shown and not np.ptp(table.X[:, column.places], axis=0).any():
            note(f"`{column.name}` is constant and has no effect.")
