"""Options that several commands share, and what their values stand for."""

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
import typer

from jacridge import RULES

from .._checks import require
from .._geometry.kernels import KERNELS
from .._geometry.space import METRICS
from .._rules.fitting import SOLVERS
from .._rules.registry import ALPHAS, SELECTORS
from ..report._columns import TASK_NAMES, on_places, place_columns
from ._cells import drop_option
from ._columns import Reading, Rows, read_rows
from ._dates import MONTHS
from ._missing import POLICIES, fillings
from ._tables import listed
from ._terminal import note, warn

ENGINES = ("memory", "dask")
MODEL_METRICS = tuple(name for name in METRICS if name != "precomputed")
RULE_METRICS = ("auto", "euclidean", "geodesic")

FILE = (
    "CSV, TSV, Parquet, Feather or Excel file, gzip too; a quoted pattern for several; - for stdin"
)
Data = Annotated[str, typer.Argument(metavar="FILE", help=FILE, show_default=False)]
Target = Annotated[
    str,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="Column to predict: its name, or its position (1 is the first, -1 the last).",
    ),
]
Targets = Annotated[
    str,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMNS",
        help="Column to predict: its name, or its position (1 is the first, -1 the last). "
        "Several are joined by commas.",
    ),
]
TargetIfAny = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="Column to predict, by name or position; only rules that look at it need it.",
    ),
]
RuleName = Annotated[
    str,
    typer.Option(
        "--rule",
        "-r",
        metavar="RULE",
        help=f"{', '.join(RULES)}.",
        autocompletion=lambda: list(RULES),
    ),
]
BandwidthOrRule = Annotated[
    str,
    typer.Option(
        "--rule",
        "-r",
        metavar="RULE",
        help="auto chooses everything: kernel, metric, bandwidth and penalty. Else the bandwidth: "
        f"a number, or {', '.join(rule for rule in RULES if not SELECTORS[rule].is_automatic)}.",
        autocompletion=lambda: list(RULES),
    ),
]
Alpha = Annotated[
    str | None,
    typer.Option(
        metavar="PENALTY",
        help=f"Ridge penalty: a number, or {', '.join(ALPHAS)}.",
        show_default="chosen with the rule auto; else 1e-3",
        autocompletion=lambda: list(ALPHAS),
    ),
]
KernelName = Annotated[
    str,
    typer.Option(
        "--kernel",
        "-k",
        metavar="KERNEL",
        help=f"{', '.join(KERNELS)}.",
        autocompletion=lambda: list(KERNELS),
    ),
]
KernelOrAuto = Annotated[
    str,
    typer.Option(
        "--kernel",
        "-k",
        metavar="KERNEL",
        help=f"{', '.join(KERNELS)}; auto: chosen with the rule auto, else gaussian.",
        autocompletion=lambda: [*KERNELS, "auto"],
    ),
]
MetricName = Annotated[
    str,
    typer.Option(
        "--metric",
        "-m",
        metavar="METRIC",
        help=f"{', '.join(MODEL_METRICS)}; auto: learned with the rule auto, else euclidean after "
        "--standardize; geodesic: metres between latitude and longitude.",
        autocompletion=lambda: list(MODEL_METRICS),
    ),
]
RuleMetric = Annotated[
    str,
    typer.Option(
        "--metric",
        "-m",
        metavar="METRIC",
        help=f"{', '.join(RULE_METRICS)}; auto: euclidean after --standardize; geodesic: metres "
        "between latitude and longitude.",
        autocompletion=lambda: list(RULE_METRICS),
    ),
]
Solver = Annotated[
    str,
    typer.Option(
        metavar="SOLVER", help=f"{', '.join(SOLVERS)}.", autocompletion=lambda: list(SOLVERS)
    ),
]
Landmarks = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        min=1,
        help="Landmarks of the solvers nystrom and pcg.",
        show_default="up to 3000; pcg 1000",
    ),
]
Engine = Annotated[str, typer.Option(metavar="ENGINE", help=f"{' or '.join(ENGINES)}.")]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Scheduler of a Dask cluster, such as tcp://host:8786.",
        show_default="none: this process",
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="Columns to use, joined by commas; if none, all others."),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="Columns to leave out, joined by commas."),
]
Weights = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of weights: a row of weight 2 counts twice."),
]
Standardize = Annotated[
    bool,
    typer.Option(
        "--standardize/--no-standardize", help="Scale features to variance 1, if --metric is auto."
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        metavar="WHAT",
        help="Missing values: drop (leave rows out), impute (the median, marked; of "
        "texts a category of their own) or error.",
        autocompletion=lambda: list(POLICIES),
    ),
]
Decimal = Annotated[
    str, typer.Option(metavar="SIGN", help="Sign before decimals in texts: . or a comma.")
]
TaskName = Annotated[
    str,
    typer.Option(
        "--task",
        metavar="TASK",
        help=f"auto, {' or '.join(TASK_NAMES)}; auto takes texts and two values as classes.",
        autocompletion=lambda: ["auto", *TASK_NAMES],
    ),
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The first row is data.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def add_command(
    app: typer.Typer, command: Callable[..., None], example: str, name: str | None = None
) -> None:
    """Add a command with an example; its summary is given, as click cuts the one it finds."""
    summary = (inspect.getdoc(command) or "").split("\n\n")[0].replace("\n", " ")
    app.command(name, epilog=f"Example: {example}", short_help=summary)(command)


def number_or(text: str, words: Sequence[str], option: str) -> float | str:
    """The value of an option that takes a number or one of a few words."""
    if text in words:
        return text
    try:
        return float(text)
    except ValueError:
        known = ", ".join(words)
        raise typer.BadParameter(
            f"must be a number or one of {known}, got '{text}'.", param_hint=option
        ) from None


def is_automatic(rule: str) -> bool:
    """Whether kernel, metric and penalty are to be chosen, too; a number is no rule."""
    return rule in SELECTORS and SELECTORS[rule].is_automatic


def penalty_of(text: str | None, rule: str = "") -> float | str:
    """The penalty that is asked for; by default the paper's, but `auto` chooses its own."""
    if text is None:
        return "auto" if is_automatic(rule) else 1e-3
    alpha = number_or(text, ALPHAS, "--alpha")
    if isinstance(alpha, float) and not 0 <= alpha < float("inf"):
        raise typer.BadParameter(f"must be at least 0, got {text}.", param_hint="--alpha")
    return alpha


def estimator_of(
    rule: str, alpha: str | None, kernel: str, metric: str, *, standardize: bool, **options: Any
) -> Callable[[Any], Any]:
    """Class and options of the model; the rule `auto` chooses everything for itself."""
    options |= {"alpha": penalty_of(alpha, rule), "random_state": 0}
    learns = is_automatic(rule) and standardize
    options |= {"metric": "euclidean" if metric == "auto" and not learns else metric}
    if not is_automatic(rule):
        options |= {"kernel": "gaussian" if kernel == "auto" else kernel}
        bandwidth = number_or(rule, RULES, "--rule")
        return lambda task: task.plain(bandwidth, **options)
    return lambda task: task.automatic(kernel=kernel, **options)


def scales(rule: str, metric: str, standardize: bool) -> bool:
    """Whether numbers are standardised before the model: metrics, and the rule `auto`, do it."""
    return standardize and metric == "auto" and not is_automatic(rule)


def rule_of(text: str, kernel: str) -> str:
    """The name of a rule, if there is such a rule, and the kernel has it."""
    return check_rule(one_of(text, RULES, "--rule"), kernel)


def check_rule(rule: str, kernel: str) -> str:
    """Return the rule, or refuse it if the kernel does not have it."""
    if rule in rules_of(kernel) or rule not in RULES:
        return rule
    raise typer.BadParameter(
        f"must not be {rule} with --kernel {kernel}, whose Jacobian norm has no minimum. Use "
        "--rule median or --rule auto.",
        param_hint="--rule",
    )


def rules_of(kernel: str) -> list[str]:
    """The rules that a kernel has."""
    return [
        name for name, rule in SELECTORS.items() if kernel == "auto" or rule.suits(KERNELS[kernel])
    ]


def kernel_of(text: str, *, automatic: bool = False) -> str:
    """The name of a kernel, if there is such a kernel; or "auto", where one may be chosen."""
    return one_of(text, (*KERNELS, "auto") if automatic else tuple(KERNELS), "--kernel")


def target_of(text: str | None, rule: str, alpha: float | str) -> list[str]:
    """The target; without one, a refusal of what looks at it and a note for the rest."""
    if text is not None:
        return [text]
    known = SELECTORS[rule]
    looks = f"the rule {rule}" if known.looks_at_y else f"--alpha {alpha}"
    if known.looks_at_y or (isinstance(alpha, str) and not known.chooses_without_y):
        raise typer.BadParameter(
            f"must name the column to predict, as {looks} looks at it.", param_hint="--target"
        )
    note("All columns count as features. If one is to be predicted, name it with --target.")
    return []


def solver_of(text: str) -> str:
    """The name of a solver, if there is such a solver."""
    return one_of(text, SOLVERS, "--solver")


def engine_of(text: str, scheduler: str | None) -> str:
    """The name of an engine, if there is such an engine; only Dask has a scheduler."""
    engine = one_of(text, ENGINES, "--engine")
    if scheduler is not None and engine != "dask":
        raise typer.BadParameter("needs --engine dask.", param_hint="--scheduler")
    return engine


def one_of(text: str, words: Sequence[str], option: str) -> str:
    """The text, if it is one of a few words."""
    if text not in words:
        known = ", ".join(words)
        raise typer.BadParameter(f"must be one of {known}, got '{text}'.", param_hint=option)
    return text


def reading_of(
    features: list[str] | None,
    drop: list[str] | None,
    missing: str,
    decimal: str,
    no_header: bool,
    weights: str | None = None,
    task: str = "regression",
    cluster: str | None = None,
    metric: str = "auto",
) -> Reading:
    """How a table is to be read, if there is such a way."""
    one_of(missing, tuple(POLICIES), "--missing")
    one_of(decimal, (".", ","), "--decimal")
    one_of(task, ("auto", *TASK_NAMES), "--task")
    one_of(metric, MODEL_METRICS, "--metric")
    chosen = features or (), drop or ()
    on_globe = metric == "geodesic"
    if on_globe:
        require("pyproj", extra="geo")
    return Reading(*chosen, missing, decimal, not no_header, weights, task, cluster, on_globe)


def rows_of(file: str, targets: Sequence[str], reading: Reading) -> Rows:
    """The rows of a table, with notes on what was done to it."""
    rows = read_rows(file, targets, reading)
    for sentence in rows.losses.sentences:
        (warn if rows.losses.are_many else note)(sentence)
    if POLICIES[reading.missing].fills:
        for sentence in fillings(rows.X.select(rows.gappy)):
            note(sentence)
    for name, date in rows.dates.items():
        parts = ", ".join(dict.fromkeys(part.split()[0] for part in date.parts)) or "nothing"
        kind = "years and months" if date.format in MONTHS else "dates"
        cycles = ", all but the year as sine and cosine" if len(date.parts) > 1 else ""
        note(
            f"`{name}` holds {kind} and becomes {parts}{cycles}. Leave it out with "
            f"{drop_option(name)}."
        )
    for name in rows.texts:
        count = rows.X[name].drop_nulls().n_unique()
        what = "category" if count == 1 else "categories"
        note(f"`{name}` holds {count} {what} and is one-hot encoded.")
    places = place_columns(rows.numbers)
    if reading.on_globe:
        lat, lon = rows.numbers
        note(f"`{lat}` is latitude and `{lon}` longitude, in degrees; no other column is used.")
    elif places:
        note(on_places(*places))
    if reading.task == "auto" and rows.task == "classification":
        note_classes(rows.target or "", np.unique(rows.y))
    if rows.ids:
        one = len(rows.ids) == 1
        look = "looks like an id and is left out" if one else "look like ids and are left out"
        warn(
            f"{listed(rows.ids)} {look}: each row has a value of its own. If "
            f"{'it matters' if one else 'one matters'}, name all features with --features."
        )
    return rows


def note_classes(target: str, classes: Any) -> None:
    """Say why the target is taken for one of classes."""
    named = ", ".join(map(str, classes[:5])) + (", ..." if len(classes) > 5 else "")
    if len(classes) == 2 and classes.dtype.kind != "U":
        note(
            f"`{target}` holds two values, {classes[0]} and {classes[1]}, which are taken as "
            "classes. Use --task regression to predict a number."
        )
        return
    note(f"`{target}` holds texts: its {len(classes)} classes are predicted, {named}.")
