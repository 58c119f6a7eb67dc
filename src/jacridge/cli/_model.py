"""The commands `fit` and `predict`."""

import shlex
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from sklearn.base import clone
from sklearn.model_selection import TimeSeriesSplit
from sklearn.pipeline import Pipeline

from .. import last_step
from .._compute.files import check_place
from .._compute.progress import listening
from .._pipeline import metric_word
from ..report._tasks import FEWEST_ROWS, TASKS, ModelSpec, later_rows
from ._cells import as_written, short
from ._columns import Reading, Rows, columns_named, in_place, nearest
from ._compare import score_key
from ._missing import DROP, IMPUTE, MANY, POLICIES, complete_rows, costs
from ._model_file import SavedModel, check_columns, check_model_name, load_model, save_model
from ._notes import CHOSEN_BY, NO_LATER_ROWS, note_classes, note_times, rows_of
from ._options import (
    COLUMN,
    AsJson,
    Data,
    NoHeader,
    Sheet,
    SolverOptions,
    TableOptions,
    between_0_and_1,
    one_word,
    option,
)
from ._parts import fit_parts, read_parts, scheduler_at
from ._tables import check_table_name, is_text, listed, read_frame, write_table
from ._terminal import WrongUse, as_options, note, note_replaced, progress, show, warn
from ._text import TableError

FITTED = "as the model was fitted"
REFIT = "To predict rows with gaps, fit the model again with --missing impute."
CATEGORIES_SHOWN = 5
BEYOND_SHOWN = 3
AS_TEXT = pl.selectors.float().round_sig_figs(10)  # predictions, in text
SLIP = 0.8  # similarity from which an unknown category may be a misspelling


def fit(
    file: Data,
    target: Annotated[
        str, option("--target -t", "COLUMNS", f"{COLUMN} Several are joined by commas.")
    ],
    output: Annotated[str, option("--output -o", "FILE", "Model file to write.")],
    *,
    model: SolverOptions,
    engine: Annotated[str, one_word("--engine", ("memory", "dask"))] = "memory",
    scheduler: Annotated[
        str | None,
        option(
            "--scheduler",
            "ADDRESS",
            "Scheduler of a Dask cluster, such as tcp://host:8786.",
            show_default="none: this process",
        ),
    ] = None,
    table: TableOptions,
    as_json: AsJson = False,
) -> None:
    """Fit a model to a table and save it in a file.

    Kernel, metric, bandwidth and penalty are chosen on the rows of the table, unless --rule says
    otherwise. A target with text or with two values is predicted as classes, unless --task says
    otherwise.

    With --engine dask the parts of a table (a quoted pattern) are read by Dask's workers,
    and never all at once; features must hold numbers.
    """
    check_place(output, file)
    reading = table.reading(model.metric, task=model.task, weights=model.weights)
    check_model_name(output, on_globe=reading.on_globe)
    spec = model.spec(standardize=table.standardize)
    _check_engine(engine, scheduler, model, reading)
    start = perf_counter()
    with scheduler_at(scheduler):
        if engine == "dask":
            saved, n, n_left_out = _fitted_by_dask(file, target, reading, spec)
            later: dict[str, float] = {}
        else:
            saved, n, n_left_out, later = _fitted(file, target, reading, spec, output)
        diagnosis = _diagnosis(saved.pipeline)
    seconds = perf_counter() - start
    note_replaced(output)
    save_model(output, saved)
    scores = TASKS[saved.task].in_diagnosis.items()
    result = {
        "model": output,
        "task": saved.task,
        "rule": model.rule,
        **_chosen(saved.pipeline[-1]),
        "n_samples": n,
        "n_features": saved.pipeline[-1].n_features_in_,
        **{key: diagnosis.get(name, {}).get("value", np.nan) for key, name in scores},
        **later,
        "seconds": seconds,
        "target": saved.target,
        **({"classes": saved.classes} if saved.classes else {}),
        "rows_left_out": n_left_out,
    }
    lost = {"rows left out": _finding_on(n, n_left_out)} if n_left_out else {}
    k, columns = result["n_features"], saved.n_columns
    words = {} if k == columns else {"n_features": f"{k}, from {columns} columns"}
    found = {**result, "diagnosis": diagnosis | lost} if as_json else result | words
    show(found, as_json=as_json, digits=3)
    for sentence in (finding["sentence"] for finding in diagnosis.values() if finding["warning"]):
        note(as_options(sentence))
    if not as_json and not output.lower().endswith(".onnx"):
        path = shlex.quote(output)
        typer.echo(f"Next: jacridge predict {path} new.csv -o predictions.csv", err=True)


def _chosen(estimator: Any) -> dict[str, Any]:
    """Parameters that a fit chose or was given."""
    return {
        "kernel": estimator.kernel_,
        "metric": metric_word(estimator),
        "sigma": estimator.bandwidth_,
        "alpha": estimator.alpha_,
        "solver": estimator.solver_,
    }


def _check_engine(
    engine: str, scheduler: str | None, model: SolverOptions, reading: Reading
) -> None:
    """Refuse options that Dask does not support, and a scheduler without Dask."""
    if engine != "dask":
        if scheduler is not None:
            raise typer.BadParameter("needs --engine dask.", param_hint="--scheduler")
        return
    limits = [
        ("--solver", model.solver in ("auto", "nystrom"), "auto or nystrom", model.solver),
        ("--held-out", model.held_out != "later", "auto or random", "later"),
        ("--missing", not reading.fills, "drop or error", reading.missing),
        ("--decimal", reading.decimal == ".", ".", reading.decimal),
        ("--weights", reading.weights is None, "left out", reading.weights),
        ("--metric", not reading.on_globe, "another one", "geodesic"),
        ("--no-header", reading.header, "left out", "it"),
        ("--sheet", reading.sheet is None, "left out", reading.sheet),
    ]
    for name, fits, wanted, got in limits:
        if not fits:
            raise typer.BadParameter(
                f"must be {wanted} with --engine dask, got {got}.", param_hint=name
            )


def _fitted(
    file: str, target: str, reading: Reading, spec: ModelSpec, output: str
) -> tuple[SavedModel, int, int, dict[str, float]]:
    """The model of a table in memory, the numbers of rows used and left out, a score if later."""
    rows = rows_of(file, [target], reading)
    in_time = rows.time is not None
    later = spec.holds_out(in_time=in_time) == "later" and len(rows.y) >= FEWEST_ROWS
    rows = rows.oldest_first() if later else rows
    flatters = "Leave-one-out predicts rows from those before and after them, which flatters"
    note_times(rows, CHOSEN_BY, flatters, later=later)
    prepare = rows.prepared(reading, standardize=spec.scales)
    model = spec.model(TASKS[rows.task], in_time=in_time)
    pipeline = Pipeline([("columns", prepare), ("model", model)])
    columns = rows.targets, rows.numbers, rows.texts, rows.dates
    how = reading.fills, reading.decimal, rows.thousands
    saved = SavedModel(pipeline, *columns, *how, rows.ranges)
    check_columns(output, saved)
    weights = {} if rows.weights is None else {"model__sample_weight": rows.weights}
    with progress("fitting") as move, listening(move):
        score = _score_on_later_rows(pipeline, rows) if later else {}
        pipeline.fit(rows.X.select(rows.numbers + rows.texts), rows.y, **weights)
    if not score and (later or spec.held_out == "later"):
        warn(f"{NO_LATER_ROWS} So there is no score on later rows.")
    return saved, len(rows.y), rows.losses.n, score


def _score_on_later_rows(pipeline: Pipeline, rows: Rows) -> dict[str, float]:
    """R2 or accuracy on the last fifth of the rows, by a model that is fitted to those before."""
    task, splits = TASKS[rows.task], TimeSeriesSplit(2, test_size=len(rows.y) // 5)
    pairs = later_rows(splits, rows.times, task.observed(rows.y))
    if not pairs:
        return {}
    (a, b), X = pairs[-1], rows.X.select(rows.numbers + rows.texts)
    weights = {} if rows.weights is None else {"model__sample_weight": rows.weights[a]}
    model = clone(pipeline).fit(X[a], rows.y[a], **weights)
    return {f"later_{score_key(task)}": float(model.score(X[b], rows.y[b]))}


def _fitted_by_dask(
    file: str, target: str, reading: Reading, spec: ModelSpec
) -> tuple[SavedModel, int, int]:
    """The model fitted to a table in parts, and the numbers of rows used and left out."""
    parts = read_parts(file, target, reading)
    if reading.task == "auto" and parts.task == "classification":
        note_classes(parts.target, np.array(parts.classes.to_list()))
    with progress("fitting") as move, listening(move):
        saved = fit_parts(parts, spec.model(TASKS[parts.task]), standardize=spec.scales)
    return saved, parts.moments.n, parts.moments.n_all - parts.moments.n


def _diagnosis(pipeline: Pipeline) -> dict[str, Any]:
    """Findings for and against the fit; empty if there can be no diagnosis.

    That is the case if too few rows differ, and for `pcg`, which has no leave-one-out residuals.
    """
    model = last_step(pipeline)[0]
    if len(model.X_fit_) < 5 or model.solver_ == "pcg":
        return {}
    try:
        with progress("checking the model"):
            return model.diagnose().dict()
    except ValueError:
        return {}


def _finding_on(n: int, left_out: int) -> dict[str, Any]:
    """The finding on rows with missing values; a warning was printed when they were left out."""
    share = left_out / (n + left_out)
    sentence = f"{left_out:,} of {n + left_out:,} rows have missing values and are left out."
    return {"value": share, "warning": share > MANY, "sentence": sentence}


def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File written by `jacridge fit`.")],
    file: Data,
    output: Annotated[
        str | None, option("--output -o", "FILE", "File to write; default: CSV on stdout.")
    ] = None,
    std: Annotated[
        bool,
        typer.Option("--std", help="Add the standard deviation of the prediction, without noise."),
    ] = False,
    interval: Annotated[
        float | None,
        between_0_and_1("--interval", "Add an interval with this coverage, such as 0.9."),
    ] = None,
    outside: Annotated[
        bool,
        typer.Option(
            "--outside",
            help="Add how far a row is from the training rows, 0 to 1 (an extrapolation).",
        ),
    ] = False,
    keep: Annotated[
        list[str] | None,
        option("--keep", "COLUMNS", "Columns to copy to the output, joined by commas."),
    ] = None,
    missing: Annotated[
        str | None,
        option("--missing", "WHAT", "drop, impute or error.", POLICIES, show_default=FITTED),
    ] = None,
    decimal: Annotated[
        str | None,
        option(
            "--decimal",
            "SIGN",
            "Decimal sign in text: . or a comma.",
            (".", ","),
            show_default=FITTED,
        ),
    ] = None,
    no_header: NoHeader = False,
    sheet: Sheet = None,
    as_json: AsJson = False,
) -> None:
    """Predict the rows of a table with a model from a file.

    Columns are matched by name, in any order. A row with a missing value has no prediction, unless
    the model was fitted with --missing impute. Classes come with their probabilities.
    """
    if output is not None:
        check_place(output, model, file)
        check_table_name(output)
    saved = load_model(model)
    if saved.classes:
        _note_classes({"--std": std, "--interval": interval is not None})
        std, interval = False, None
    policy = _policy(saved, missing)
    raw = read_frame(file, header=not no_header, sheet=sheet)
    frame = saved.columns_of(raw, file, _decimal(saved, decimal))
    kept = raw.select(columns_named(raw.columns, keep or ()))
    fills = policy == IMPUTE
    X = frame if fills else complete_rows(frame, policy)
    if X.is_empty():
        raise TableError(f"`{file}` must hold a row without missing values, got none.")
    _warn_of_gaps_and_categories(saved, frame, X)
    found = saved.predictions(X, std=std, interval=interval)
    shares, new = saved.outside(X), saved.has_unknown(X)
    _warn_of_far_rows(saved, X.filter(shares >= 1), len(X))
    shares = np.where(new, 1.0, shares)
    if outside:
        found = found.with_columns(pl.Series("outside", shares))
    complete = ~frame.select(pl.any_horizontal(pl.all().is_null())).to_series() | fills
    found = in_place(found, complete)
    summary: dict[str, Any] = {"target": saved.target, "task": saved.task}
    summary |= {"rows": len(frame), "predicted": len(X), "outside": int((shares >= 1).sum())}
    if output is None:
        typed = kept.select(as_written(column) for column in kept)
        summary["predictions"] = _side_by_side(typed, found).to_dict(as_series=False)
        text = _side_by_side(kept, found.with_columns(AS_TEXT)).write_csv().rstrip()
        show(summary, as_json=as_json, text=text)
    else:
        note_replaced(output)
        shown = found.with_columns(AS_TEXT) if is_text(output) else found
        write_table(_side_by_side(kept, shown), output)
        some = f"{len(X)} of {len(frame)} rows are predicted in {output}"
        text = some if len(X) < len(frame) else f"{len(X)} predictions in {output}"
        show({**summary, "output": output}, as_json=as_json, text=text)


def _note_classes(given: dict[str, bool]) -> None:
    """Name the options that a model of classes ignores."""
    names = [name for name, is_given in given.items() if is_given]
    if names:
        note(
            "The model predicts classes: their probabilities are written, and "
            f"{' and '.join(names)} adds nothing."
        )


def _policy(saved: SavedModel, asked: str | None) -> str:
    """Treatment of missing values: as in the fit, unless another one is asked for."""
    policy = asked or (IMPUTE if saved.fills else DROP)
    if policy == IMPUTE and not saved.fills:
        raise typer.BadParameter(
            f"must be drop or error, because the model was fitted to complete rows. {REFIT}",
            param_hint="--missing",
        )
    return policy


def _decimal(saved: SavedModel, asked: str | None) -> str:
    """The decimal sign: as in the fit, unless another one is asked for."""
    if asked is None and saved.decimal == ",":
        note("Numbers are read with a decimal comma, as in the fit. To change this: --decimal .")
    return asked or saved.decimal


def _warn_of_gaps_and_categories(saved: SavedModel, frame: pl.DataFrame, X: pl.DataFrame) -> None:
    """Warn of categories that the model does not know, and of rows without a prediction."""
    for name, counts in saved.unknown(X).items():
        shown = [
            _unseen(value, count, saved.known()[name])
            for value, count in [*counts.items()][:CATEGORIES_SHOWN]
        ]
        n_more = len(counts) - len(shown)
        more = [f"{n_more} more value{'s' * (n_more > 1)}"] if n_more else []
        new = f"{len(counts):,} value{'s' * (len(counts) > 1)}"
        what = (
            "probabilities do not include this uncertainty"
            if saved.classes
            else "intervals are widened by the predictions for all known categories"
        )
        warn(
            f"`{name}` has {new} that training did not have: {', '.join(shown + more)}. Such rows "
            f"are predicted without a category; their {what}, and the column `outside` is 1 for "
            "them."
        )
    for name, count in saved.new_gaps(X).items():
        rows = "row lacks" if count == 1 else "rows lack"
        warn(
            f"{count:,} {rows} `{name}`, which had no gaps in training, and get its median: their "
            "predictions and intervals say nothing about it."
        )
    lost = len(frame) - len(X)
    if lost:
        warn(
            f"{lost:,} of {len(frame):,} rows {'has' if lost == 1 else 'have'} missing values and "
            f"no prediction: {costs(saved.gaps(frame))}. {'' if saved.fills else REFIT}".rstrip()
        )


def _unseen(value: str, count: int, known: list[str]) -> str:
    """A category unknown in training, its number of rows, and the category probably meant."""
    near = nearest(value, known, cutoff=SLIP)
    meant = f" (did you mean {short(near)}?)" if near else ""
    return f"{short(value)} in {count} row{'s' * (count > 1)}{meant}"


def _warn_of_far_rows(saved: SavedModel, far: pl.DataFrame, n: int) -> None:
    """Warn of rows that are farther from the training rows than these are from each other."""
    if far.is_empty():
        return
    which = "is unlike every training row: its prediction is an extrapolation."
    several = "are unlike every training row: their predictions are extrapolations."
    beyond = saved.beyond(far)
    where = f" {'; '.join(beyond[:BEYOND_SHOWN])}." if beyond else ""
    warn(f"{len(far)} of {n} rows {which if len(far) == 1 else several}{where}")


def _side_by_side(kept: pl.DataFrame, results: pl.DataFrame) -> pl.DataFrame:
    """Columns of the table, followed by results; their names must differ."""
    twice = [name for name in kept.columns if name in results.columns]
    if twice:
        raise WrongUse(f"{listed(twice)} cannot be kept: results have the same name.")
    return pl.DataFrame([*kept.get_columns(), *results.get_columns()])
