"""The command on effects: which columns move the prediction, in their own units."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from jacridge import RULES, JacobianKernelRidge
from jacridge.effects import Effect, Effects

from .._compute.files import check_place
from ._columns import Rows, columns_named
from ._missing import POLICIES
from ._model import prepared
from ._options import (
    Alpha,
    AsJson,
    BandwidthOrRule,
    Data,
    Decimal,
    Drop,
    Features,
    Landmarks,
    Missing,
    NoHeader,
    Solver,
    Standardize,
    Target,
    Weights,
    number_or,
    penalty_of,
    reading_of,
    rows_of,
    solver_of,
)
from ._tables import check_table_name, write_table
from ._terminal import note, progress, show

# Numbers that are per unit of a column, and change with its scale.
PER_UNIT = ("estimate", "std_error", "conf_low", "conf_high", "q25", "q50", "q75")


def effects(
    file: Data,
    target: Target,
    variables: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="Columns to show, joined by commas; if none, all."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Average within the groups of a feature.")
    ] = None,
    robust: Annotated[
        bool, typer.Option("--robust", help="Allow for noise of unlike size in each row (HC3).")
    ] = False,
    level: Annotated[
        float, typer.Option(metavar="COVERAGE", help="Coverage of the intervals.")
    ] = 0.95,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Table to write.")
    ] = None,
    rule: BandwidthOrRule = "auto",
    alpha: Alpha = None,
    solver: Solver = "auto",
    n_landmarks: Landmarks = None,
    features: Features = None,
    drop: Drop = None,
    standardize: Standardize = True,
    missing: Missing = "drop",
    decimal: Decimal = ".",
    weights: Weights = None,
    no_header: NoHeader = False,
    as_json: AsJson = False,
) -> None:
    """Print what moves the prediction of a column, and how sure that is.

    Slopes are per unit of a column; columns of two values and categories are compared with the
    smaller value and the first category. Effects are associations, not causes.
    """
    if not 0 < level < 1:
        raise typer.BadParameter(f"must lie between 0 and 1, got {level:g}.", param_hint="--level")
    if output is not None:
        check_place(output, file)
        check_table_name(output)
    reading = reading_of(features, drop, missing, decimal, no_header, weights)
    if POLICIES[missing].fills:
        raise typer.BadParameter("must be drop or error for effects.", param_hint="--missing")
    rows = rows_of(file, [target], reading)
    estimator = JacobianKernelRidge(
        number_or(rule, RULES, "--rule"),
        penalty_of(alpha, rule),
        solver=solver_of(solver),
        n_landmarks=n_landmarks,
        random_state=0,
    )
    shown = columns_named(rows.X.columns, variables) if variables else rows.X.columns
    groups = None if by is None else rows.X[columns_named(rows.X.columns, [by])[0]].to_numpy()
    prepare = prepared(rows, reading, standardize=standardize)
    with progress("fitting"):
        X = prepare.fit_transform(rows.X.select(rows.numbers + rows.texts))
        estimator.fit(X, rows.y, rows.weights)
        asked = _variables(rows, shown, prepare, X)
        found = estimator.effects(variables=asked, by=groups, robust=robust, level=level)
    table = Effects(tuple(_in_units(found, rows, prepare)), found.level, found.noise)
    summary = {"target": rows.target, "n_samples": len(rows.y), "errors": table.noise}
    if output is not None:
        write_table(pl.DataFrame(table.dict()), output)
        show({**summary, "output": output}, as_json=as_json, text=f"The effects are in {output}.")
        return
    show({**summary, "effects": table.dict()}, as_json=as_json, text=str(table))


def _variables(rows: Rows, shown: list[str], prepare: Any, X: Any) -> dict[str, Any]:
    """Columns of the prepared features by the names of the table's; constant ones are left out."""
    places: dict[str, Any] = {name: j for j, name in enumerate(rows.numbers)}
    start = len(rows.numbers)
    for name, levels in _levels(rows, prepare).items():
        places[name] = tuple(range(start, start + len(levels)))
        start += len(levels)
    found = {}
    for name in shown:
        columns = np.atleast_1d(places[name])
        if (X[:, columns] == X[0, columns]).all():
            note(f"`{name}` is constant and has no effect.")
        else:
            found[name] = places[name]
    return found


def _levels(rows: Rows, prepare: Any) -> dict[str, list[str]]:
    """The categories of each column of texts."""
    if not rows.texts:
        return {}
    steps = prepare.named_transformers_["categories"]
    encoder: OneHotEncoder = steps[-1] if isinstance(steps, Pipeline) else steps
    return {n: list(map(str, c)) for n, c in zip(rows.texts, encoder.categories_, strict=True)}


def _in_units(found: Effects, rows: Rows, prepare: Any) -> Iterator[Effect]:
    """The effects per unit of the table's columns, with its values and categories as labels."""
    scales = dict.fromkeys(rows.numbers, 1.0)
    scaler = prepare.named_transformers_.get("numbers")
    if isinstance(scaler, StandardScaler):
        scales = dict(zip(rows.numbers, scaler.scale_, strict=True))
    levels = _levels(rows, prepare)
    every = [label for labels in levels.values() for label in labels]
    named = {f"x{j}": label for j, label in enumerate(every, len(rows.numbers))}
    for row in found:
        if row.kind == "slope":
            yield replace(row, **{name: getattr(row, name) / scales[row.term] for name in PER_UNIT})
        elif row.term in levels:
            one, _, zero = row.contrast.partition(" - ")
            yield replace(row, contrast=f"{named[one]} - {named[zero]}")
        else:
            low, high = np.unique(rows.X[row.term].to_numpy())
            yield replace(row, contrast=f"{high:g} - {low:g}")
