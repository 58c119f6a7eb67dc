"""The `jacridge` command: parses, calls, prints."""

import os
import sys
import warnings
from collections.abc import Sequence
from time import perf_counter
from typing import Annotated, Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.pipeline import Pipeline

from jacridge import RULES, JacobianKernelRidge, __version__, select_bandwidth
from jacridge.report import write_report

try:
    import polars as pl
    import typer

    from ._cli_paper import data_app, paper
    from ._columns import Rows, UnknownColumn, complete_rows, in_place, read_columns, read_rows
    from ._compare import compare_rules, save_picture
    from ._files import check_place
    from ._model_file import SavedModel, columns_prepared, load_model, save_model
    from ._options import (
        FILE,
        Alpha,
        AsJson,
        BandwidthOrRule,
        Data,
        Drop,
        Features,
        Landmarks,
        NoHeader,
        RuleName,
        Solver,
        Standardize,
        Strict,
        Target,
        number_or,
        penalty_of,
        rule_of,
        solver_of,
    )
    from ._tables import write_table
    from ._terminal import fail, grid, note, progress, show
except ImportError as error:
    sys.exit(f"The command needs `{error.name}`. Install it with: pip install 'jacridge[cli]'")

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Kernel ridge regression that chooses its own bandwidth.",
    epilog="First try: jacridge compare",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command; what goes wrong becomes one line on stderr and an exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: note(str(message))
        try:
            app(args, prog_name="jacridge")
        except Exception as error:
            if os.environ.get("JACRIDGE_DEBUG"):
                raise
            fail(error, wrong_use=isinstance(error, UnknownColumn | FileNotFoundError))


app.add_typer(data_app, name="data")
app.command(epilog="Example: jacridge paper fig1 table2 --quick -o out/paper")(paper)


@app.callback(invoke_without_command=True)
def version(
    asked: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Kernel ridge regression that chooses its own bandwidth."""
    if asked:
        typer.echo(f"jacridge {__version__}")
        raise typer.Exit


@app.command(epilog="Example: jacridge select houses.csv --target price --rule jacobian --json")
def select(
    file: Data,
    target: Target,
    rule: RuleName = "jacobian",
    alpha: Alpha = None,
    features: Features = None,
    drop: Drop = None,
    standardize: Standardize = True,
    strict: Strict = False,
    no_header: NoHeader = False,
    as_json: AsJson = False,
) -> None:
    """Print the bandwidth for a table."""
    name, penalty = rule_of(rule), penalty_of(alpha, rule)
    rows = _read(file, target, features, drop, strict, no_header)
    X = columns_prepared(rows.numbers, rows.texts, standardize=standardize).fit_transform(rows.X)
    choice = select_bandwidth(X, rows.y, name, alpha=penalty, random_state=0)
    result = {
        "rule": choice.rule,
        "sigma": choice.sigma,
        "gamma": choice.gamma,
        "alpha": float(np.squeeze(choice.alpha)),
        "n_samples": len(rows.y),
        "n_features": X.shape[1],
        "l_max": choice.l_max,
        "spacing": choice.spacing,
        "seconds": choice.seconds,
        "standardized": standardize,
        "target": rows.target,
        "rows_left_out": rows.n_dropped,
    }
    show(result, as_json=as_json)


@app.command(epilog="Example: jacridge compare houses.csv --target price --plot rules.png")
def compare(
    file: Annotated[str | None, typer.Argument(metavar="FILE", help=FILE)] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="COLUMN", help="Column to predict."),
    ] = None,
    rules: Annotated[
        str, typer.Option(metavar="RULES", help="Rules joined by commas.", show_default="all")
    ] = ",".join(RULES),
    alpha: Alpha = None,
    splits: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="Number of random splits.")
    ] = 10,
    max_rows: Annotated[
        int, typer.Option(metavar="NUMBER", min=6, help="At most so many rows, at random.")
    ] = 2000,
    features: Features = None,
    drop: Drop = None,
    standardize: Standardize = True,
    strict: Strict = False,
    no_header: NoHeader = False,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Picture to write: R2 against seconds.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the rules on a table, or on scikit-learn's diabetes data.

    Over random splits, 35 % of the rows are predicted from the rest. Sigma, alpha and seconds are
    medians over the splits; seconds go from the features to sigma.
    """
    names = [rule_of(name.strip()) for name in rules.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter("must name at least one rule.", param_hint="--rules")
    penalty = penalty_of(alpha)
    if plot:
        check_place(plot)
    rows = _sampled(_read_or_diabetes(file, target, features, drop, strict, no_header), max_rows)
    prepare = columns_prepared(rows.numbers, rows.texts, standardize=standardize)
    with progress() as move:
        table = compare_rules(
            rows.X, rows.y, names, alpha=penalty, splits=splits, prepare=prepare, progress=move
        )
    if all("error" in row for row in table):
        raise ValueError(table[0]["error"])
    for row in table:
        for text in [row["error"]] if "error" in row else row["notes"]:
            note(f"{row['rule']}: {text}")
    if plot:
        save_picture(table, plot)
        note(f"the picture is in {plot}.")
    summary = {"data": file or "diabetes", "n_samples": len(rows.y), "splits": splits}
    show({**summary, "rules": table}, as_json=as_json, text=_rules_text(table))


@app.command(epilog="Example: jacridge fit houses.csv --target price -o model.skops")
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
    features: Features = None,
    drop: Drop = None,
    standardize: Standardize = True,
    strict: Strict = False,
    no_header: NoHeader = False,
    as_json: AsJson = False,
) -> None:
    """Fit a model to a table and keep it in a file."""
    check_place(output)
    estimator = JacobianKernelRidge(
        number_or(rule, RULES, "--rule"),
        penalty_of(alpha, rule),
        solver=solver_of(solver),
        n_landmarks=n_landmarks,
        random_state=0,
    )
    rows = _read(file, target, features, drop, strict, no_header)
    prepare = columns_prepared(rows.numbers, rows.texts, standardize=standardize)
    pipeline = Pipeline([("columns", prepare), ("model", estimator)])
    start = perf_counter()
    pipeline.fit(rows.X.select(rows.numbers + rows.texts), rows.y)
    seconds = perf_counter() - start
    save_model(output, SavedModel(pipeline, rows.target, rows.numbers, rows.texts))
    diagnosis = _diagnosis(estimator)
    result = {
        "model": output,
        "rule": rule,
        "sigma": estimator.bandwidth_,
        "alpha": estimator.alpha_,
        "solver": estimator.solver_,
        "n_samples": len(rows.y),
        "n_features": estimator.n_features_in_,
        "loo_r2": diagnosis.get("leave-one-out R2", {}).get("value", np.nan),
        "seconds": seconds,
        "target": rows.target,
        "rows_left_out": rows.n_dropped,
    }
    show({**result, "diagnosis": diagnosis} if as_json else result, as_json=as_json)
    for finding in diagnosis.values():
        if finding["warning"]:
            note(finding["sentence"])


@app.command(epilog="Example: jacridge predict model.skops new.csv -o out.csv --interval 0.9")
def predict(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File written by `jacridge fit`.")],
    file: Data,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="File to write; else CSV on stdout."),
    ] = None,
    std: Annotated[bool, typer.Option("--std", help="Add the standard deviation.")] = False,
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
    saved = load_model(model)
    frame = read_columns(file, numbers=saved.numbers, texts=saved.texts, header=not no_header)
    X = complete_rows(frame, strict=strict)
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


@app.command(epilog="Example: jacridge report houses.csv --target price -o report.html")
def report(
    file: Data,
    target: Target,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="HTML page to write.")
    ] = "report.html",
    rule: BandwidthOrRule = "jacobian",
    alpha: Alpha = None,
    features: Features = None,
    drop: Drop = None,
    standardize: Standardize = True,
    strict: Strict = False,
    no_header: NoHeader = False,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page: which bandwidth for a table, why, and what follows from it."""
    check_place(output)
    bandwidth, penalty = number_or(rule, RULES, "--rule"), penalty_of(alpha, rule)
    rows = _read(file, target, features, drop, strict, no_header)
    start = perf_counter()
    write_report(
        output,
        rows.X,
        rows.y,
        target=rows.target,
        bandwidth=bandwidth,
        alpha=penalty,
        standardize=standardize,
        source=file,
    )
    result = {
        "report": output,
        "target": rows.target,
        "n_samples": len(rows.y),
        "seconds": perf_counter() - start,
    }
    show(result, as_json=as_json, text=f"The report is in {output}.")


def _read(
    file: str,
    target: str,
    features: list[str] | None,
    drop: list[str] | None,
    strict: bool,
    no_header: bool,
) -> Rows:
    """The complete rows of a table, with notes on what was done to it."""
    rows = read_rows(
        file, target, features=features or (), drop=drop or (), strict=strict, header=not no_header
    )
    if rows.n_dropped:
        total = rows.n_dropped + len(rows.y)
        note(f"{rows.n_dropped} of {total} rows have missing values and are left out.")
    for name in rows.texts:
        note(f"`{name}` holds {rows.X[name].n_unique()} categories and is one-hot encoded.")
    return rows


def _read_or_diabetes(file: str | None, target: str | None, *options: Any) -> Rows:
    if file is not None:
        if target is None:
            raise typer.BadParameter("must name the column to predict.", param_hint="--target")
        return _read(file, target, *options)
    if target is not None:
        raise typer.BadParameter("needs a FILE.", param_hint="--target")
    data = load_diabetes(scaled=False)
    X = pl.DataFrame(data.data, schema=list(data.feature_names))
    return Rows(X, data.target, "disease progression", 0)


def _sampled(rows: Rows, most: int) -> Rows:
    """At most so many rows, drawn at random."""
    n = len(rows.y)
    if n <= most:
        return rows
    note(f"{most} of {n} rows are used, drawn at random. Use --max-rows for more.")
    some = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
    return Rows(rows.X[some], rows.y[some], rows.target, rows.n_dropped)


def _diagnosis(estimator: JacobianKernelRidge) -> dict[str, Any]:
    """What speaks for and against the fit; nothing where there is no telling.

    That is so where too few rows differ, and for `pcg`, which has no leave-one-out residuals.
    """
    try:
        few = len(estimator.X_fit_) < 5
        return {} if few or estimator.solver_ == "pcg" else estimator.diagnose().dict()
    except ValueError:
        return {}


def _rules_text(table: list[dict[str, Any]]) -> str:
    """The comparison as a table."""
    keys = ("sigma", "alpha", "seconds")
    rows = [
        [row["rule"], *(["-"] * 5)]
        if "error" in row
        else [row["rule"], *(row[k] for k in keys), f"{row['r2_mean']:.3f}", f"{row['r2_std']:.3f}"]
        for row in table
    ]
    return grid(["rule", "sigma", "alpha", "seconds", "test R2", "spread"], rows)
