"""The command on effects: which columns move the prediction, in their own units."""

from typing import Annotated

import numpy as np
import polars as pl
import typer

from .._compute.files import check_place
from ..report._columns import deviations, table_of
from ..report._tasks import TASKS
from ..report._units import effects_in_units
from ._columns import columns_named
from ._options import (
    Alpha,
    AsJson,
    BandwidthOrRule,
    Data,
    Decimal,
    Drop,
    Features,
    KernelOrAuto,
    Landmarks,
    MetricName,
    Missing,
    NoHeader,
    Solver,
    Standardize,
    Target,
    TaskName,
    Weights,
    estimator_of,
    kernel_of,
    reading_of,
    rows_of,
    scales,
    solver_of,
)
from ._tables import check_table_name, write_table
from ._terminal import note, progress, show


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
        bool,
        typer.Option(
            "--robust",
            help="Allow for noise that differs between rows (HC3), as for classes.",
        ),
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Allow for noise that rows of a group share (CR3)."),
    ] = None,
    level: Annotated[
        float, typer.Option(metavar="COVERAGE", help="Coverage of the intervals.")
    ] = 0.95,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Table to write.")
    ] = None,
    rule: BandwidthOrRule = "auto",
    alpha: Alpha = None,
    kernel: KernelOrAuto = "auto",
    metric: MetricName = "auto",
    task: TaskName = "auto",
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
    """Print the average effect of each column on the prediction, with standard errors.

    Slopes are per unit of a column; columns of two values and categories are compared with the
    smaller value and the first category. A target of texts or of two values is one of classes,
    unless --task says otherwise: effects are then those on the probability of each class, of two
    on that of the second. Effects are associations, not causes.
    """
    if not 0 < level < 1:
        raise typer.BadParameter(f"must lie between 0 and 1, got {level:g}.", param_hint="--level")
    if solver == "pcg":
        raise typer.BadParameter(
            'must be "exact" or "nystrom", got "pcg", which has no standard errors.',
            param_hint="--solver",
        )
    if output is not None:
        check_place(output, file)
        check_table_name(output)
    chosen = features, drop, missing, decimal, no_header
    reading = reading_of(*chosen, weights, task, cluster, metric)
    fitted = {"solver": solver_of(solver), "n_landmarks": n_landmarks}
    known = kernel_of(kernel, automatic=True)
    make = estimator_of(rule, alpha, known, metric, standardize=standardize, **fitted)
    rows = rows_of(file, [target], reading).filled()
    estimator = make(TASKS[rows.task])
    shown = columns_named(rows.X.columns, variables) if variables else rows.X.columns
    noise = {"cluster": rows.clusters}
    if rows.task == "regression":
        noise["robust"] = robust
    groups = None if by is None else rows.X[columns_named(rows.X.columns, [by])[0]].to_numpy()
    encoded = table_of(rows.X.select(rows.numbers + rows.texts), None, {})
    for column in encoded.columns:
        if column.name in shown and not np.ptp(encoded.X[:, column.places], axis=0).any():
            note(f"`{column.name}` is constant and has no effect.")
    scale = (
        deviations(encoded) if scales(rule, metric, standardize) else np.ones(len(encoded.names))
    )
    with progress("fitting"):
        estimator.fit(encoded.X / scale, rows.y, rows.weights)
        table = effects_in_units(estimator, encoded, scale, shown, by=groups, level=level, **noise)
    summary = {
        "target": rows.target,
        "task": rows.task,
        "n_samples": len(rows.y),
        "errors": table.noise,
    }
    if output is not None:
        write_table(pl.DataFrame(table.dict()), output)
        show({**summary, "output": output}, as_json=as_json, text=f"The effects are in {output}.")
        return
    show({**summary, "effects": table.dict()}, as_json=as_json, text=str(table))
