"""The commands on rules: select, compare, report."""

from time import perf_counter
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from sklearn.datasets import load_diabetes

from jacridge import RULES, Choice, select_bandwidth
from jacridge.report import write_report

from .._files import check_place
from .._selectors import SEARCHES
from ._columns import Rows
from ._compare import compare_rules, save_picture
from ._model_file import columns_prepared
from ._options import (
    FILE,
    Alpha,
    AsJson,
    BandwidthOrRule,
    Data,
    Drop,
    Features,
    NoHeader,
    RuleName,
    Standardize,
    Strict,
    Target,
    TargetIfAny,
    number_or,
    penalty_of,
    rows_of,
    rule_of,
    target_of,
)
from ._terminal import as_options, busy, grid, note, progress, show


def select(
    file: Data,
    target: TargetIfAny = None,
    rule: RuleName = "jacobian",
    alpha: Alpha = None,
    features: Features = None,
    drop: Drop = None,
    standardize: Standardize = True,
    strict: Strict = False,
    no_header: NoHeader = False,
    as_json: AsJson = False,
) -> None:
    """Print the bandwidth for a table.

    Without --target all columns are features. Rules that look at the target need one.
    """
    name, penalty = rule_of(rule), penalty_of(alpha, rule)
    wanted = target_of(target, name, penalty)
    rows = rows_of(file, wanted, features, drop, strict, no_header)
    X = columns_prepared(rows.numbers, rows.texts, standardize=standardize).fit_transform(rows.X)
    with busy(f"looking for the bandwidth by {name}"):
        choice = select_bandwidth(X, rows.y, name, alpha=penalty, random_state=0)
    result = {
        "rule": choice.rule,
        "sigma": choice.sigma,
        "gamma": choice.gamma,
        "alpha": float(np.squeeze(choice.alpha)),
        "n_samples": len(X),
        "n_features": X.shape[1],
        "l_max": choice.l_max,
        "spacing": choice.spacing,
        "seconds": choice.seconds,
        "standardized": standardize,
        "target": rows.target,
        "rows_left_out": rows.n_dropped,
    }
    show(result, as_json=as_json)
    for doubt in _doubts(choice):
        note(f"{doubt} --rule auto looks at the target and often does better.")


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
        check_place(plot, file)
    rows = _sampled(_rows_or_diabetes(file, target, features, drop, strict, no_header), max_rows)
    prepare = columns_prepared(rows.numbers, rows.texts, standardize=standardize)
    with progress() as move:
        table = compare_rules(
            rows.X, rows.y, names, alpha=penalty, splits=splits, prepare=prepare, progress=move
        )
    if all("error" in row for row in table):
        raise ValueError(table[0]["error"])
    for row in table:
        for text in [row["error"]] if "error" in row else row["notes"]:
            note(as_options(f"{row['rule']}: {text}"))
    if plot:
        save_picture(table, plot)
        note(f"the picture is in {plot}.")
    summary = {"data": file or "diabetes", "n_samples": len(rows.y), "splits": splits}
    show({**summary, "rules": table}, as_json=as_json, text=_rules_text(table))


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
    check_place(output, file)
    bandwidth, penalty = number_or(rule, RULES, "--rule"), penalty_of(alpha, rule)
    rows = rows_of(file, target, features, drop, strict, no_header)
    start = perf_counter()
    with busy("fitting, and drawing the page"):
        write_report(
            output,
            rows.X,
            rows.y,
            target=str(rows.target),
            bandwidth=bandwidth,
            alpha=penalty,
            standardize=standardize,
            source=file,
            options=_reading_options(features, drop, no_header=no_header),
            left_out=rows.n_dropped,
        )
    result = {
        "report": output,
        "target": rows.target,
        "n_samples": len(rows.y),
        "rows_left_out": rows.n_dropped,
        "seconds": perf_counter() - start,
    }
    show(result, as_json=as_json, text=f"The report is in {output}.")


def _doubts(choice: Choice) -> list[str]:
    """What is known to go wrong with closed forms, as far as the features alone can tell."""
    if choice.rule in SEARCHES:
        return []
    few = choice.p <= 2 and choice.sigma < choice.spacing
    wide = choice.sigma > choice.l_max
    return [
        *(["With one or two features this bandwidth is often too narrow."] if few else []),
        *(["The bandwidth exceeds the largest distance of two rows."] if wide else []),
    ]


def _reading_options(
    features: list[str] | None, drop: list[str] | None, *, no_header: bool
) -> list[str]:
    """The options that chose the columns, for the commands that the report shows."""
    chosen = [word for text in features or () for word in ("--features", text)]
    dropped = [word for text in drop or () for word in ("--drop", text)]
    return [*chosen, *dropped, *(["--no-header"] if no_header else [])]


def _rows_or_diabetes(file: str | None, target: str | None, *options: Any) -> Rows:
    if file is not None:
        if target is None:
            raise typer.BadParameter("must name the column to predict.", param_hint="--target")
        return rows_of(file, target, *options)
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
