"""The commands `select`, `compare` and `report`."""

from dataclasses import replace
from pathlib import PurePath
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from sklearn.datasets import load_diabetes

from jacridge import RULES, Choice, select_bandwidth

from .._compute.files import check_place, replaced
from .._rules.registry import SELECTORS
from ..report._tasks import TASKS, ModelSpec, Task, TrainTest
from ._cells import TargetError, TextTargetError
from ._columns import IGNORED, Reading, Rows
from ._compare import (
    MODELS,
    NAMES,
    SCORES,
    check_picture_name,
    compare_rules,
    later_splits,
    save_picture,
    which_is_enough,
)
from ._dates import DAYS, DIGITS
from ._notes import CHOSEN_BY, NO_LATER_ROWS, note_times, remarks_on, rows_of
from ._options import (
    FILE,
    Alpha,
    AsJson,
    Data,
    HeldOut,
    KernelName,
    ModelOptions,
    RuleMetric,
    TableOptions,
    Target,
    TaskName,
    check_rule,
    one_of,
    one_word,
    option,
    rules_of,
    spec_of,
)
from ._terminal import (
    WrongUse,
    as_options,
    check_suffix,
    grid,
    note,
    note_replaced,
    progress,
    show,
    warn,
)

CLASSES_HINT = (
    "For classes use jacridge fit, or a rule that does not use the target, such as --rule jacobian."
)


def select(
    file: Data,
    target: Annotated[
        str | None, option("--target -t", "COLUMN", "Column to predict, for rules that use it.")
    ] = None,
    rule: Annotated[str, one_word("--rule -r", RULES)] = "jacobian",
    alpha: Alpha = None,
    kernel: KernelName = "gaussian",
    metric: RuleMetric = "auto",
    *,
    table: TableOptions,
    as_json: AsJson = False,
) -> None:
    """Print the bandwidth for a table.

    Without --target, all columns are features. Rules that use the target need one.
    """
    spec = spec_of(check_rule(rule, kernel), alpha, metric, standardize=table.standardize)
    uses_target, scaled = _uses_target(rule, spec, target), table.standardize and metric == "auto"
    if target is None:
        note("All columns count as features. If one is to be predicted, name it with --target.")
    reading = table.reading(metric, task="regression" if uses_target else IGNORED)
    try:
        rows = rows_of(file, [] if target is None else [target], reading)
    except TextTargetError as error:
        raise TargetError(error.what, CLASSES_HINT) from error
    X = rows.prepared(reading, standardize=scaled).fit_transform(rows.X)
    options: Any = {"alpha": spec.penalty, "kernel": kernel, "metric": spec.distance}
    with progress(f"choosing the bandwidth by {rule}"):
        choice = select_bandwidth(X, rows.y, rule, **options, random_state=0)
    result = {
        "rule": choice.rule,
        "kernel": choice.kernel,
        "metric": spec.distance,
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
        "rows_left_out": rows.losses.n,
    }
    show(result, as_json=as_json)
    blind = target is not None and not SELECTORS[rule].looks_at_y
    unused = [f"The rule {rule} does not use `{rows.target}`."] if blind else []
    for doubt in _doubts(choice) or unused:
        note(f"{doubt} --rule auto uses the target and often does better; fit and report use auto.")


def compare(
    file: Annotated[str | None, typer.Argument(metavar="FILE", help=FILE)] = None,
    target: Annotated[str | None, option("--target -t", "COLUMN", "Column to predict.")] = None,
    rules: Annotated[
        str | None,
        option("--rules", "RULES", f"Joined by commas: {', '.join(NAMES)}.", show_default="all"),
    ] = None,
    alpha: Alpha = None,
    kernel: KernelName = "gaussian",
    metric: RuleMetric = "auto",
    task: TaskName = "auto",
    held_out: HeldOut = "auto",
    splits: Annotated[
        int | None,
        option(
            "--splits",
            "NUMBER",
            "Number of splits.",
            min=1,
            show_default="5, or 3 for 1000 rows or more",
        ),
    ] = None,
    max_rows: Annotated[
        int, option("--max-rows", "NUMBER", "Use at most this many rows, drawn at random.", min=6)
    ] = 2000,
    plot: Annotated[
        str | None, option("--plot", "FILE", "Picture to write, R2 against seconds.")
    ] = None,
    *,
    table: TableOptions,
    as_json: AsJson = False,
) -> None:
    """Compare auto, a linear model, boosted trees and rules on a table, or on the diabetes data.

    In each random split, 35 % of the rows are predicted from the rest. If the rows are in time
    order, later rows are predicted from those before them. `auto` chooses kernel, metric,
    bandwidth and penalty; the rules choose a bandwidth for the Gaussian kernel.
    `linear` and `trees` are scikit-learn's RidgeCV and HistGradientBoostingRegressor, or for
    classes LogisticRegression and HistGradientBoostingClassifier. Sigma, alpha and seconds are
    medians over the splits. Seconds are the time to choose sigma; for auto, trees, linear and for
    classes, the time of the whole fit.
    """
    names = _rules_named(rules, kernel)
    spec = spec_of(RULES[0], alpha, metric, standardize=table.standardize)
    if plot is not None:
        check_place(plot, file)
        check_picture_name(plot)
    reading = table.reading(metric, task=task)
    rows = _sampled(_rows_or_diabetes(file, target, reading), max_rows)
    prepare = rows.prepared(reading, standardize=spec.scales)
    splits = splits or (5 if len(rows.y) < 1000 else 3)  # scores of many test rows vary less
    space, known = {"kernel": kernel, "metric": spec.distance}, TASKS[rows.task]
    later: list[TrainTest] = []
    if held_out == "later" or (held_out == "auto" and rows.time is not None):
        later = later_splits(known, rows.y, rows.times, splits)
    note_times(rows, "models are scored on", "Random splits flatter", later=bool(later))
    if held_out == "later" and not later:
        warn(f"{NO_LATER_ROWS} So the splits are random.")
    with progress() as move:
        options: Any = {"alpha": spec.penalty, "space": space, "splits": splits, "task": known}
        options["later"] = later
        found = compare_rules(rows.X, rows.y, names, prepare=prepare, progress=move, **options)
    if all("error" in row for row in found):
        raise ValueError(found[0]["error"])
    for row in found:
        for text in [row["error"]] if "error" in row else row["notes"]:
            note(as_options(f"{row['rule']}: {text}"))
    if plot:
        save_picture(found, plot, known)
        note(f"The picture is in {plot}.")
    summary = {"data": file or "diabetes", "task": rows.task, "n_samples": len(rows.y)}
    summary |= {"splits": splits, "judged_on": "later rows" if later else "random rows"}
    summary |= {**space, "rules": found}
    show(summary, as_json=as_json, text=_comparison(found, known, rows.y))


def _rules_named(text: str | None, kernel: str) -> list[str]:
    """Rules that the user named; by default all that work with the kernel."""
    if text is None:
        return [name for name in NAMES if name in rules_of(kernel) or name not in RULES]
    given = [one_of(name.strip(), NAMES, "--rules") for name in text.split(",") if name.strip()]
    if not given:
        raise typer.BadParameter("must name at least one rule.", param_hint="--rules")
    return [check_rule(name, kernel) for name in given]


def report(
    file: Data,
    target: Target,
    output: Annotated[str, option("--output -o", "FILE", "HTML page to write.")] = "report.html",
    *,
    model: ModelOptions,
    table: TableOptions,
    as_json: AsJson = False,
) -> None:
    """Write an HTML page: how well a model predicts a table, and what its predictions depend on.

    Without --rule, kernel, metric, bandwidth and penalty are chosen. If the target is text or has
    two values, the model predicts classes, unless --task says otherwise.
    """
    check_place(output, file)
    suffix, pages = PurePath(output).suffix.lower(), ("", ".html", ".htm")
    check_suffix("A report", output, suffix, pages, "For a PDF, print the page from a browser.")
    spec = model.spec(standardize=table.standardize)
    reading = table.reading(model.metric, task=model.task)
    rows = rows_of(file, [target], reading)
    if spec.holds_out(in_time=rows.time is not None) == "later":
        note_times(rows, CHOSEN_BY, later=True)
    start = perf_counter()
    # Slow to import, and used by this command only.
    from ..report import case_of, make_report
    from ..report._code import Origin

    origin = Origin(file, **_as_read(rows, reading))
    with progress("fitting the model") as move:
        known: Any = {"target": rows.target, "task": rows.task, "parts": rows.made_of}
        known["named_in_file"] = rows.name_in_file
        try:
            case = case_of(rows.filled().X, rows.y, spec, **known)
        except ValueError as error:  # a table of which there is nothing to report
            raise WrongUse(as_options(str(error))) from error
        made = make_report(case, origin, move)
    note_replaced(output)
    with replaced(output) as beside:
        beside.write_text(made.page, encoding="utf-8")
    result = {
        "report": output,
        "target": rows.target,
        "task": rows.task,
        "n_samples": len(rows.y),
        "rows_left_out": rows.losses.n,
        "seconds": perf_counter() - start,
        **made.summary,
    }
    show(result, as_json=as_json, text=f"The report is in {output}.")


def _as_read(rows: Rows, reading: Reading) -> dict[str, Any]:
    """Options of the report that describe how the table was read."""
    remarks = remarks_on(rows, reading).items()
    return {
        "options": tuple(_reading_options(reading)),
        "left_out": rows.losses.n,
        "losses": tuple(rows.losses.sentences),
        "remarks": tuple((name, text) for name, texts in remarks for text in texts),
        "formats": {
            name: d.format
            for name, d in rows.dates.items()
            if d.format in (None, *DAYS, *DIGITS) and "hour sine" not in d.parts
        },
    }


def _uses_target(rule: str, spec: ModelSpec, target: str | None) -> bool:
    """Whether the rule or the choice of the penalty needs a target; an error if there is none."""
    known = SELECTORS[rule]
    uses = known.looks_at_y or (isinstance(spec.penalty, str) and not known.chooses_without_y)
    if uses and target is None:
        who = f"the rule {rule}" if known.looks_at_y else f"--alpha {spec.penalty}"
        raise typer.BadParameter(
            f"must name the column to predict, because {who} uses it.", param_hint="--target"
        )
    return uses


def _gamma(choice: Choice) -> dict[str, float]:
    """Gamma of scikit-learn, if it has one for this kernel."""
    try:
        return {"gamma": choice.gamma}
    except ValueError:
        return {}


def _doubts(choice: Choice) -> list[str]:
    """Problems of closed forms that can be seen from the features alone."""
    if SELECTORS[choice.rule].looks_at_y:
        return []
    few = choice.p <= 2 and choice.sigma < choice.spacing
    wide = choice.sigma > choice.l_max
    return [
        *(["With one or two features this bandwidth is often too narrow."] if few else []),
        *(["The bandwidth exceeds the largest distance between two rows."] if wide else []),
    ]


def _reading_options(reading: Reading) -> list[str]:
    """Options for reading the table, for the commands that the report shows."""
    given = [
        *(("--features", text) for text in reading.features),
        *(("--drop", text) for text in reading.drop),
        *([("--decimal", reading.decimal)] if reading.decimal != "." else []),
        *([("--missing", reading.missing)] if reading.missing != "drop" else []),
        *([("--task", reading.task)] if reading.task != "auto" else []),
        *([] if reading.header else [("--no-header",)]),
        *([] if reading.sheet is None else [("--sheet", reading.sheet)]),
    ]
    return [word for words in given for word in words]


def _rows_or_diabetes(file: str | None, target: str | None, reading: Reading) -> Rows:
    if file is not None:
        if target is None:
            raise typer.BadParameter("must name the column to predict.", param_hint="--target")
        return rows_of(file, [target], reading)
    for name, given in (("--target", target is not None), ("--metric", reading.on_globe)):
        if given:
            raise typer.BadParameter("needs a FILE.", param_hint=name)
    data = load_diabetes(scaled=False)
    X = pl.DataFrame(data.data, schema=list(data.feature_names))
    return Rows(X, data.target, ["disease progression"])


def _sampled(rows: Rows, most: int) -> Rows:
    """At most `most` rows, drawn at random."""
    n = len(rows.y)
    if n <= most:
        return rows
    note(f"{most} of {n} rows are used, drawn at random. Use --max-rows for more.")
    some = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
    return replace(rows, X=rows.X[some], y=rows.y[some])


def _comparison(table: list[dict[str, Any]], task: Task, y: Any) -> str:
    """Models and what follows from their scores, then the rules."""
    models = [row for row in table if row["rule"] in MODELS]
    rules = [row for row in table if row["rule"] not in MODELS]
    parts = [
        *([_scores_text("model", models, task)] if models else []),
        which_is_enough(table, task, y),
        *(["\nRules that choose one bandwidth:"] if models and rules else []),
        *([_scores_text("rule", rules, task)] if rules else []),
    ]
    return "\n".join(filter(None, parts))


def _scores_text(kind: str, table: list[dict[str, Any]], task: Task) -> str:
    """Bandwidths, seconds and scores as a table."""
    known = [*SCORES[task.name]]
    scored = [key for key in known if any(f"{key}_mean" in row for row in table)]
    first, *others = scored or known[:1]  # a target that is constant among test rows has none
    words = {"r2": "R2", "log_loss": "log loss", "auc": "AUC"}
    header = [kind, "sigma", "alpha", "seconds", f"test {words.get(first, first)}", "spread"]
    scores = [f"{first}_mean", f"{first}_std", *(f"{key}_mean" for key in others)]
    rows = [
        [
            row["rule"],
            *(_written(row.get(key), ".3g") for key in ("sigma", "alpha", "seconds")),
            *(_written(row.get(key), ".3f") for key in scores),
        ]
        for row in table
    ]
    return grid([*header, *(words[key] for key in others)], rows)


def _written(value: float | None, digits: str) -> str:
    return "-" if value is None or np.isnan(value) else format(value, digits)
