"""The commands on models: fit, predict."""

from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.pipeline import Pipeline

from jacridge import RULES, JacobianKernelRidge

from .._files import check_place
from .._progress import listening
from ._columns import Rows, complete_rows, in_place, read_columns
from ._model_file import SavedModel, columns_prepared, load_model, save_model
from ._options import (
    Alpha,
    AsJson,
    BandwidthOrRule,
    Data,
    Drop,
    Engine,
    Features,
    Landmarks,
    NoHeader,
    Scheduler,
    Solver,
    Standardize,
    Strict,
    Target,
    engine_of,
    number_or,
    penalty_of,
    rows_of,
    solver_of,
)
from ._parts import Counts, fit_parts, scheduler_at
from ._tables import TableError, write_table
from ._terminal import as_options, note, progress, show


def fit(
    file: Data,
    target: Target,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Model file to write.")
    ],
    rule: BandwidthOrRule = "jacobian",
    alpha: Alpha = None,
    solver: Solver = "auto",
    n_landmarks: Landmarks = None,
    engine: Engine = "memory",
    scheduler: Scheduler = None,
    features: Features = None,
    drop: Drop = None,
    standardize: Standardize = True,
    strict: Strict = False,
    no_header: NoHeader = False,
    as_json: AsJson = False,
) -> None:
    """Fit a model to a table and keep it in a file.

    With --engine dask the parts of a table (a quoted pattern) are read where Dask's workers are,
    and never all at once; their columns must hold numbers.
    """
    check_place(output, file)
    estimator = JacobianKernelRidge(
        number_or(rule, RULES, "--rule"),
        penalty_of(alpha, rule),
        solver=solver_of(solver),
        n_landmarks=n_landmarks,
        random_state=0,
    )
    start = perf_counter()
    if engine_of(engine, scheduler) == "dask":
        if solver not in ("auto", "nystrom"):
            raise typer.BadParameter(
                f"must be auto or nystrom with --engine dask, got {solver}.", param_hint="--solver"
            )
        columns = {"features": features or (), "drop": drop or ()}
        with scheduler_at(scheduler), progress("fitting") as move, listening(move):
            model, counts = fit_parts(
                file, target, estimator, **columns, strict=strict, standardize=standardize
            )
            diagnosis = _diagnosis(estimator)
    else:
        rows = rows_of(file, target, features, drop, strict, no_header)
        with progress("fitting") as move, listening(move):
            model, counts = _fitted(rows, estimator, standardize=standardize)
            diagnosis = _diagnosis(estimator)
    seconds = perf_counter() - start
    save_model(output, model)
    result = {
        "model": output,
        "rule": rule,
        "sigma": estimator.bandwidth_,
        "alpha": estimator.alpha_,
        "solver": estimator.solver_,
        "n_samples": counts.n,
        "n_features": estimator.n_features_in_,
        "loo_r2": diagnosis.get("leave-one-out R2", {}).get("value", np.nan),
        "seconds": seconds,
        "target": model.target,
        "rows_left_out": counts.n_all - counts.n,
    }
    show({**result, "diagnosis": diagnosis} if as_json else result, as_json=as_json)
    for finding in diagnosis.values():
        if finding["warning"]:
            note(as_options(finding["sentence"]))


def _fitted(
    rows: Rows, estimator: JacobianKernelRidge, *, standardize: bool
) -> tuple[SavedModel, Counts]:
    """The model of a table in memory."""
    prepare = columns_prepared(rows.numbers, rows.texts, standardize=standardize)
    pipeline = Pipeline([("columns", prepare), ("model", estimator)])
    pipeline.fit(rows.X.select(rows.numbers + rows.texts), rows.y)
    counts = Counts(len(rows.y), len(rows.y) + rows.n_dropped)
    return SavedModel(pipeline, str(rows.target), rows.numbers, rows.texts), counts


def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File written by `jacridge fit`.")],
    file: Data,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="File to write; else CSV on stdout."),
    ] = None,
    std: Annotated[
        bool,
        typer.Option("--std", help="Add the standard deviation by the kernel, noise left out."),
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(metavar="COVERAGE", help="Add an interval with this coverage, such as 0.9."),
    ] = None,
    strict: Strict = False,
    no_header: NoHeader = False,
    as_json: AsJson = False,
) -> None:
    """Predict the rows of a table with a model from a file.

    Columns are matched by name, in any order. A row with a missing value has no prediction.
    """
    if interval is not None and not 0 < interval < 1:
        raise typer.BadParameter(
            f"must lie between 0 and 1, got {interval:g}.", param_hint="--interval"
        )
    if output:
        check_place(output, model, file)
    saved = load_model(model)
    frame = read_columns(file, numbers=saved.numbers, texts=saved.texts, header=not no_header)
    X = complete_rows(frame, strict=strict)
    if X.is_empty():
        raise TableError(f"`{file}` must hold a row without missing values, got none.")
    if len(X) < len(frame):
        note(f"{len(frame) - len(X)} of {len(frame)} rows have missing values and no prediction.")
    for name, count in saved.unknown(X).items():
        note(f"{count} rows have a category in `{name}` that training did not have.")
    out = in_place(saved.predictions(X, std=std, interval=interval), frame)
    if output:
        write_table(out, output)
    summary: dict[str, Any] = {"target": saved.target, "rows": len(frame), "predicted": len(X)}
    where = {"output": output} if output else {"predictions": out.to_dict(as_series=False)}
    text = f"{len(X)} predictions in {output}" if output else out.write_csv().rstrip()
    show({**summary, **where}, as_json=as_json, text=text)


def _diagnosis(estimator: JacobianKernelRidge) -> dict[str, Any]:
    """What speaks for and against the fit; nothing where there is no telling.

    That is so where too few rows differ, and for `pcg`, which has no leave-one-out residuals.
    """
    try:
        few = len(estimator.X_fit_) < 5
        return {} if few or estimator.solver_ == "pcg" else estimator.diagnose().dict()
    except ValueError:
        return {}
