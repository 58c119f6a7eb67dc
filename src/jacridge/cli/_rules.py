"""The commands on rules: select, compare, report."""

from dataclasses import replace
from pathlib import PurePath
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from sklearn.datasets import load_diabetes

from jacridge import RULES, Choice, select_bandwidth

from .._compute.files import check_place
from .._rules.registry import SELECTORS
from ..report._columns import GAPS_FILLED, follows_time
from ..report._tasks import TASKS, Task
from ._columns import Reading, Rows
from ._compare import NAMES, check_picture_name, compare_rules, save_picture, score_key
from ._dates import part_name
from ._missing import POLICIES, fillings
from ._options import (
    FILE,
    RULE_METRICS,
    Alpha,
    AsJson,
    BandwidthOrRule,
    Data,
    Decimal,
    Drop,
    Features,
    KernelName,
    MetricName,
    Missing,
    NoHeader,
    RuleMetric,
    RuleName,
    Standardize,
    Target,
    TargetIfAny,
    TaskName,
    check_rule,
    kernel_of,
    number_or,
    one_of,
    penalty_of,
    reading_of,
    rows_of,
    rule_of,
    rules_of,
    target_of,
)
from ._terminal import WrongUse, as_options, busy, grid, note, progress, show


def select(
    file: Data,
    target: TargetIfAny = None,
    rule: RuleName = "jacobian",
    alpha: Alpha = None,
    kernel: KernelName = "gaussian",
    metric: RuleMetric = "auto",
    features: Features = None,
    drop: Drop = None,
    standardize: Standardize = True,
    missing: Missing = "drop",
    decimal: Decimal = ".",
    no_header: NoHeader = False,
    as_json: AsJson = False,
) -> None:
    """Print the bandwidth for a table.

    Without --target all columns are features. Rules that look at the target need one.
    """
    name, penalty = rule_of(rule, kernel_of(kernel)), penalty_of(alpha, rule)
    wanted, scaled = target_of(target, name, penalty), standardize and metric == "auto"
    options: Any = {"alpha": penalty, "kernel": kernel, "metric": space_metric(metric)}
    reading = reading_of(features, drop, missing, decimal, no_header, metric=metric)
    rows = rows_of(file, wanted, reading)
    X = rows.prepared(reading, standardize=scaled).fit_transform(rows.X)
    with busy(f"looking for the bandwidth by {name}"):
        choice = select_bandwidth(X, rows.y, name, **options, random_state=0)
    result = {
        "rule": choice.rule,
        "kernel": choice.kernel,
        "metric": options["metric"],
        "sigma": choice.sigma,
        **_gamma(choice),
        "alpha": float(np.squeeze(choice.alpha)),
        "n_samples": len(X),
        "n_features": X.shape[1],
        "l_max": choice.l_max,
        "spacing": choice.spacing,
        "seconds": choice.seconds,
        "standardized": scaled,
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
        str,
        typer.Option(
            metavar="RULES", help=f"Joined by commas: {', '.join(NAMES)}.", show_default="all"
        ),
    ] = ",".join(NAMES),
    alpha: Alpha = None,
    kernel: KernelName = "gaussian",
    metric: RuleMetric = "auto",
    task: TaskName = "auto",
    splits: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="Number of random splits.",
            show_default="5; 3 from 1000 rows on",
        ),
    ] = None,
    max_rows: Annotated[
        int, typer.Option(metavar="NUMBER", min=6, help="At most so many rows, at random.")
    ] = 2000,
    features: Features = None,
    drop: Drop = None,
    standardize: Standardize = True,
    missing: Missing = "drop",
    decimal: Decimal = ".",
    no_header: NoHeader = False,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Picture to write: R2 against seconds.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare rules, boosted trees and a linear model on a table, or on the diabetes data.

    Over random splits, 35 % of the rows are predicted from the rest. `auto` chooses kernel, metric,
    bandwidth and penalty; the other rules choose a bandwidth for the Gaussian kernel. `trees` and
    `linear` are scikit-learn's HistGradientBoostingRegressor and RidgeCV, or for classes
    HistGradientBoostingClassifier and LogisticRegression. Sigma, alpha and seconds are medians over
    the splits; seconds go from the features to sigma, and are those of the whole fit for auto,
    trees, linear, and for classes.
    """
    given = [one_of(name.strip(), NAMES, "--rules") for name in rules.split(",") if name.strip()]
    known = rules_of(kernel_of(kernel))
    if rules == ",".join(NAMES):  # all of them, but for those that the kernel does not have
        names = [name for name in given if name in known or name not in RULES]
    else:
        names = [check_rule(name, kernel) for name in given]
    if not names:
        raise typer.BadParameter("must name at least one rule.", param_hint="--rules")
    penalty = penalty_of(alpha)
    if plot is not None:
        check_place(plot, file)
        check_picture_name(plot)
    space = {"kernel": kernel, "metric": space_metric(metric)}
    reading = reading_of(features, drop, missing, decimal, no_header, task=task, metric=metric)
    rows = _sampled(_rows_or_diabetes(file, target, reading), max_rows)
    prepare = rows.prepared(reading, standardize=standardize and metric == "auto")
    splits = splits or (5 if len(rows.y) < 1000 else 3)  # the more test rows, the less they differ
    times = [name for name in rows.numbers if follows_time(name, rows.X[name].to_numpy())]
    if times:
        note(
            f"The rows are in order of `{times[0]}`. Random splits flatter models that have to "
            "predict the future; jacridge report judges models on later rows."
        )
    with progress() as move:
        options: dict[str, Any] = {"alpha": penalty, "space": space, "splits": splits}
        options["task"] = task_of = TASKS[rows.task]
        table = compare_rules(rows.X, rows.y, names, prepare=prepare, progress=move, **options)
    if all("error" in row for row in table):
        raise ValueError(table[0]["error"])
    for row in table:
        for text in [row["error"]] if "error" in row else row["notes"]:
            note(as_options(f"{row['rule']}: {text}"))
    if plot:
        save_picture(table, plot, task_of)
        note(f"the picture is in {plot}.")
    summary = {"data": file or "diabetes", "task": rows.task, "n_samples": len(rows.y)}
    summary |= {"splits": splits, **space, "rules": table}
    show(summary, as_json=as_json, text=_rules_text(table, task_of))


def report(
    file: Data,
    target: Target,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="HTML page to write.")
    ] = "report.html",
    rule: BandwidthOrRule = "auto",
    alpha: Alpha = None,
    metric: MetricName = "auto",
    task: TaskName = "auto",
    features: Features = None,
    drop: Drop = None,
    standardize: Standardize = True,
    missing: Missing = "drop",
    decimal: Decimal = ".",
    no_header: NoHeader = False,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page: how well a model predicts a table, and what it depends on.

    Without --rule kernel, metric, bandwidth and penalty are chosen. A target of texts or of two
    values is one of classes, unless --task says otherwise.
    """
    check_place(output, file)
    if PurePath(output).suffix.lower() not in ("", ".html", ".htm"):
        raise WrongUse(
            f"A report is an HTML page, such as report.html, got `{output}`. For a PDF, print the "
            "page from a browser."
        )
    bandwidth, penalty = number_or(rule, RULES, "--rule"), penalty_of(alpha, rule)
    reading = reading_of(features, drop, missing, decimal, no_header, task=task, metric=metric)
    rows = rows_of(file, [target], reading)
    remarks = [("id", f"`{name}` looks like an id and was left out.") for name in rows.ids]
    if POLICIES[missing].fills:
        remarks += [(GAPS_FILLED, text) for text in fillings(rows.X.select(rows.gappy))]
    rows = rows.filled()
    start = perf_counter()
    from jacridge.report import write_report  # not needed by other commands

    with progress("fitting the model") as move:
        write_report(
            output,
            rows.X,
            rows.y,
            target=str(rows.target),
            task=rows.task,
            bandwidth=bandwidth,
            alpha=penalty,
            metric=metric,
            standardize=standardize,
            source=file,
            options=_reading_options(reading),
            left_out=rows.n_dropped,
            losses=rows.losses.sentences,
            remarks=remarks,
            parts=_made_of(rows),
            progress=move,
        )
    result = {
        "report": output,
        "target": rows.target,
        "task": rows.task,
        "n_samples": len(rows.y),
        "rows_left_out": rows.n_dropped,
        "seconds": perf_counter() - start,
    }
    show(result, as_json=as_json, text=f"The report is in {output}.")


def space_metric(text: str) -> str:
    """The metric in which a rule measures distances."""
    return "geodesic" if one_of(text, RULE_METRICS, "--metric") == "geodesic" else "euclidean"


def _gamma(choice: Choice) -> dict[str, float]:
    """scikit-learn's gamma, if it has one for this kernel."""
    try:
        return {"gamma": choice.gamma}
    except ValueError:
        return {}


def _made_of(rows: Rows) -> dict[str, str]:
    """The column of dates that each of its parts was made of."""
    return {
        part_name(name, part): name for name, dates in rows.dates.items() for part in dates.parts
    }


def _doubts(choice: Choice) -> list[str]:
    """Known problems of closed forms, as far as the features alone can tell."""
    if SELECTORS[choice.rule].looks_at_y:
        return []
    few = choice.p <= 2 and choice.sigma < choice.spacing
    wide = choice.sigma > choice.l_max
    return [
        *(["With one or two features this bandwidth is often too narrow."] if few else []),
        *(["The bandwidth exceeds the largest distance of two rows."] if wide else []),
    ]


def _reading_options(reading: Reading) -> list[str]:
    """The options that chose the columns, for the commands that the report shows."""
    chosen = [word for text in reading.features for word in ("--features", text)]
    dropped = [word for text in reading.drop for word in ("--drop", text)]
    decimal = [] if reading.decimal == "." else ["--decimal", reading.decimal]
    task = [] if reading.task == "auto" else ["--task", reading.task]
    missing = [] if reading.missing == "drop" else ["--missing", reading.missing]
    return [
        *chosen,
        *dropped,
        *decimal,
        *missing,
        *task,
        *([] if reading.header else ["--no-header"]),
    ]


def _rows_or_diabetes(file: str | None, target: str | None, reading: Reading) -> Rows:
    if file is not None:
        if target is None:
            raise typer.BadParameter("must name the column to predict.", param_hint="--target")
        return rows_of(file, [target], reading)
    for option, given in (("--target", target is not None), ("--metric", reading.on_globe)):
        if given:
            raise typer.BadParameter("needs a FILE.", param_hint=option)
    data = load_diabetes(scaled=False)
    X = pl.DataFrame(data.data, schema=list(data.feature_names))
    return Rows(X, data.target, ["disease progression"])


def _sampled(rows: Rows, most: int) -> Rows:
    """At most so many rows, drawn at random."""
    n = len(rows.y)
    if n <= most:
        return rows
    note(f"{most} of {n} rows are used, drawn at random. Use --max-rows for more.")
    some = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
    return replace(rows, X=rows.X[some], y=rows.y[some])


def _rules_text(table: list[dict[str, Any]], task: Task) -> str:
    """The comparison as a table."""
    keys, score = ("sigma", "alpha", "seconds"), score_key(task)
    rows = [
        [row["rule"], *(["-"] * 5)]
        if "error" in row
        else [
            row["rule"],
            *("-" if np.isnan(row[k]) else f"{row[k]:.3g}" for k in keys),
            f"{row[f'{score}_mean']:.3f}",
            f"{row[f'{score}_std']:.3f}",
        ]
        for row in table
    ]
    return grid(["rule", *keys, f"test {score.replace('r2', 'R2')}", "spread"], rows)
