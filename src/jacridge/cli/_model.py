"""The commands on models: fit, predict."""

from time import perf_counter
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from sklearn.pipeline import Pipeline

from .._compute.files import check_place
from .._compute.progress import listening
from .._pipeline import metric_word
from ..report._tasks import TASKS
from ._columns import Reading, Rows, columns_named, in_place
from ._missing import POLICIES, complete_rows, costs, gaps
from ._model_file import SavedModel, check_model_name, load_model, save_model
from ._options import (
    Alpha,
    AsJson,
    BandwidthOrRule,
    Data,
    Decimal,
    Drop,
    Engine,
    Features,
    KernelOrAuto,
    Landmarks,
    MetricName,
    Missing,
    NoHeader,
    Scheduler,
    Solver,
    Standardize,
    Targets,
    TaskName,
    Weights,
    check_rule,
    engine_of,
    estimator_of,
    kernel_of,
    note_classes,
    reading_of,
    rows_of,
    scales,
    solver_of,
)
from ._parts import Counts, fit_parts, read_parts, scheduler_at
from ._tables import check_table_name, listed, read_frame, write_table
from ._terminal import WrongUse, as_options, note, progress, show
from ._text import TableError


def fit(
    file: Data,
    target: Targets,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Model file to write.")
    ],
    rule: BandwidthOrRule = "auto",
    alpha: Alpha = None,
    kernel: KernelOrAuto = "auto",
    metric: MetricName = "auto",
    task: TaskName = "auto",
    solver: Solver = "auto",
    n_landmarks: Landmarks = None,
    engine: Engine = "memory",
    scheduler: Scheduler = None,
    features: Features = None,
    drop: Drop = None,
    standardize: Standardize = True,
    missing: Missing = "drop",
    decimal: Decimal = ".",
    weights: Weights = None,
    no_header: NoHeader = False,
    as_json: AsJson = False,
) -> None:
    """Fit a model to a table and save it in a file.

    Kernel, metric, bandwidth and penalty are chosen on the rows of the table, unless --rule says
    otherwise. A target of texts or of two values is one of classes, unless --task says otherwise.

    With --engine dask the parts of a table (a quoted pattern) are read where Dask's workers are,
    and never all at once; features must hold numbers.
    """
    check_place(output, file)
    reading = reading_of(features, drop, missing, decimal, no_header, weights, task, metric=metric)
    check_model_name(output, on_globe=reading.on_globe)
    options = {"solver": solver_of(solver), "n_landmarks": n_landmarks}
    check_rule(rule, kernel_of(kernel, automatic=True))
    make = estimator_of(rule, alpha, kernel, metric, standardize=standardize, **options)
    scaled = scales(rule, metric, standardize)
    start = perf_counter()
    if engine_of(engine, scheduler) == "dask":
        _check_dask(solver, reading)
        with scheduler_at(scheduler):
            parts = read_parts(file, target, reading)
            if task == "auto" and parts.task == "classification":
                note_classes(parts.target, np.array(parts.classes.to_list()))
            estimator, counts = make(TASKS[parts.task]), parts.counts
            with progress("fitting") as move, listening(move):
                model = fit_parts(parts, estimator, standardize=scaled)
                diagnosis = _diagnosis(estimator)
    else:
        rows = rows_of(file, [target], reading)
        estimator = make(TASKS[rows.task])
        with progress("fitting") as move, listening(move):
            model, counts = _fitted(rows, reading, estimator, standardize=scaled)
            diagnosis = _diagnosis(estimator)
    seconds = perf_counter() - start
    save_model(output, model)
    result = {
        "model": output,
        "task": model.task,
        "rule": rule,
        "kernel": estimator.kernel_,
        "metric": metric_word(estimator),
        "sigma": estimator.bandwidth_,
        "alpha": estimator.alpha_,
        "solver": estimator.solver_,
        "n_samples": counts.n,
        "n_features": estimator.n_features_in_,
        **{
            key: diagnosis.get(name, {}).get("value", np.nan)
            for key, name in TASKS[model.task].in_diagnosis.items()
        },
        "seconds": seconds,
        "target": model.target,
        **({"classes": model.classes} if model.classes else {}),
        "rows_left_out": counts.n_all - counts.n,
    }
    show({**result, "diagnosis": diagnosis} if as_json else result, as_json=as_json)
    for finding in diagnosis.values():
        if finding["warning"]:
            note(as_options(finding["sentence"]))


def _check_dask(solver: str, reading: Reading) -> None:
    """Refuse what parts that are never all in memory do not allow."""
    limits = [
        ("--solver", solver in ("auto", "nystrom"), "auto or nystrom", solver),
        ("--missing", not POLICIES[reading.missing].fills, "drop or error", reading.missing),
        ("--decimal", reading.decimal == ".", ".", reading.decimal),
        ("--weights", reading.weights is None, "left out", reading.weights),
        ("--metric", not reading.on_globe, "another one", "geodesic"),
        ("--no-header", reading.header, "left out", "it"),
    ]
    for option, fits, wanted, got in limits:
        if not fits:
            raise typer.BadParameter(
                f"must be {wanted} with --engine dask, got {got}.", param_hint=option
            )


def _fitted(
    rows: Rows, reading: Reading, estimator: Any, *, standardize: bool
) -> tuple[SavedModel, Counts]:
    """The model of a table in memory."""
    prepare = rows.prepared(reading, standardize=standardize)
    pipeline = Pipeline([("columns", prepare), ("model", estimator)])
    weights = {} if rows.weights is None else {"model__sample_weight": rows.weights}
    pipeline.fit(rows.X.select(rows.numbers + rows.texts), rows.y, **weights)
    counts = Counts(len(rows.y), len(rows.y) + rows.n_dropped)
    fills = POLICIES[reading.missing].fills
    columns = rows.targets, rows.numbers, rows.texts, rows.dates
    return SavedModel(pipeline, *columns, fills, reading.decimal), counts


def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File written by `jacridge fit`.")],
    file: Data,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="File to write; else CSV on stdout."),
    ] = None,
    std: Annotated[
        bool,
        typer.Option("--std", help="Add the standard deviation of the prediction, without noise."),
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(metavar="COVERAGE", help="Add an interval with this coverage, such as 0.9."),
    ] = None,
    outside: Annotated[
        bool,
        typer.Option("--outside", help="Add how far a row is from the training rows, 0 to 1."),
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="Columns to copy to the output, joined by commas."),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT", help="drop, impute or error.", show_default="as the model was fitted"
        ),
    ] = None,
    decimal: Annotated[
        str | None,
        typer.Option(
            metavar="SIGN",
            help="Sign before decimals in texts: . or a comma.",
            show_default="as the model was fitted",
        ),
    ] = None,
    no_header: NoHeader = False,
    as_json: AsJson = False,
) -> None:
    """Predict the rows of a table with a model from a file.

    Columns are matched by name, in any order. A row with a missing value has no prediction, unless
    the model was fitted with --missing impute. Classes come with their probabilities.
    """
    if interval is not None and not 0 < interval < 1:
        raise typer.BadParameter(
            f"must lie between 0 and 1, got {interval:g}.", param_hint="--interval"
        )
    if output is not None:
        check_place(output, model, file)
        check_table_name(output)
    saved = load_model(model)
    if saved.classes and (std or interval is not None):
        raise typer.BadParameter(
            "must be left out, as the model predicts classes; their probabilities are written.",
            param_hint="--std" if std else "--interval",
        )
    asked = missing or ("impute" if saved.fills else "drop")
    reading = reading_of(None, None, asked, decimal or saved.decimal, no_header)
    if decimal is None and saved.decimal == ",":
        note("Numbers are read with a decimal comma, as at the fit. Else add --decimal .")
    policy = POLICIES[asked]
    if policy.fills and not saved.fills:
        raise typer.BadParameter(
            "must be drop or error, as the model was fitted to complete rows.",
            param_hint="--missing",
        )
    raw = read_frame(file, header=reading.header)
    frame = saved.columns_of(raw, file, reading.decimal)
    kept = raw.select(columns_named(raw.columns, keep or ()))
    X = frame if policy.fills else complete_rows(frame, policy)
    if X.is_empty():
        raise TableError(f"`{file}` must hold a row without missing values, got none.")
    if len(X) < len(frame):
        note(
            f"{len(frame) - len(X)} of {len(frame)} rows have missing values and no prediction: "
            f"{costs(gaps(frame))}."
        )
    for name, count in saved.unknown(X).items():
        rows = "1 row has" if count == 1 else f"{count} rows have"
        note(f"{rows} a category in `{name}` that training did not have.")
    complete = ~frame.select(pl.any_horizontal(pl.all().is_null())).to_series() | policy.fills
    found, shares = saved.predictions(X, std=std, interval=interval), saved.outside(X)
    far = int((shares >= 1).sum())
    if far:
        note(
            f"{far} of {len(X)} rows are farther from the training rows than any of these from its "
            "nearest neighbour: their predictions are extrapolations."
        )
    if outside:
        found = found.with_columns(pl.Series("outside", shares))
    results = in_place(found, complete)
    twice = [name for name in kept.columns if name in results.columns]
    if twice:
        raise WrongUse(f"{listed(twice)} must not be kept, results have that name.")
    out = pl.DataFrame([*kept.get_columns(), *results.get_columns()])
    summary: dict[str, Any] = {"target": saved.target, "task": saved.task}
    summary |= {"rows": len(frame), "predicted": len(X), "outside": far}
    if output is None:
        columns = {"predictions": out.to_dict(as_series=False)}
        show({**summary, **columns}, as_json=as_json, text=out.write_csv().rstrip())
        return
    write_table(out, output)
    text = f"{len(X)} predictions in {output}"
    show({**summary, "output": output}, as_json=as_json, text=text)


def _diagnosis(estimator: Any) -> dict[str, Any]:
    """Findings for and against the fit; none if they cannot be had.

    That is so where too few rows differ, and for `pcg`, which has no leave-one-out residuals.
    """
    try:
        few = len(estimator.X_fit_) < 5
        return {} if few or estimator.solver_ == "pcg" else estimator.diagnose().dict()
    except ValueError:
        return {}
