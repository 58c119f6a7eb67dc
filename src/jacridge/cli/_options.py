"""Options that several commands share, and what their values stand for."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import wraps
from typing import Annotated, Any

import numpy as np
import typer

from jacridge import RULES

from .._geometry.kernels import KERNELS
from .._rules.parameters import SOLVERS
from .._rules.registry import ALPHAS, SELECTORS
from ..report._columns import GAP, TASK_NAMES, YEAR, follows_time, on_places, place_columns
from ..report._tasks import COLUMN_METRICS, ModelSpec
from ._cells import drop_option
from ._columns import Reading, Rows, read_rows
from ._dates import MONTHS
from ._missing import POLICIES, fillings
from ._tables import listed
from ._terminal import note, warn

ENGINES = ("memory", "dask")
RULE_METRICS = ("auto", "euclidean", "geodesic")
BANDWIDTH_RULES = [rule for rule in RULES if not SELECTORS[rule].is_automatic]
PLAIN = "euclidean after --standardize; geodesic: metres between latitude and longitude"


def option(
    names: str,
    metavar: str,
    text: str,
    words: Sequence[str] = (),
    *,
    numbers: bool = False,
    **more: Any,
) -> Any:
    """An option; one that takes words refuses others, and numbers unless it takes these, too."""
    flags = names.split()

    def checked(value: Any) -> Any:
        if value is not None:
            number_or(value, words, flags[0]) if numbers else one_of(value, words, flags[0])
        return value

    if words:
        more |= {"autocompletion": lambda: list(words), "callback": checked}
    return typer.Option(*flags, metavar=metavar, help=text, **more)


def one_word(names: str, words: Sequence[str], more: str = "") -> Any:
    """An option that takes one of a few words, which its help lists."""
    metavar = names.split()[0].removeprefix("--").upper()
    return option(names, metavar, f"{', '.join(words)}{more}.", words)


def between_0_and_1(flag: str, text: str) -> Any:
    """An option that takes a share."""

    def checked(value: float | None) -> float | None:
        if value is not None and not 0 < value < 1:
            percent = f" For {value:g} % write {value / 100:g}." if 1 < value < 100 else ""
            raise typer.BadParameter(
                f"must lie between 0 and 1, got {value:g}.{percent}", param_hint=flag
            )
        return value

    return option(flag, "COVERAGE", text, callback=checked)


FILE = (
    "CSV, TSV, Parquet, Feather or Excel file, gzip too; a quoted pattern for several; - for stdin"
)
COLUMN = "Column to predict: its name, or its position (1 is the first, -1 the last)."
Data = Annotated[str, typer.Argument(metavar="FILE", help=FILE, show_default=False)]
Target = Annotated[str, option("--target -t", "COLUMN", COLUMN)]
BandwidthOrRule = Annotated[
    str,
    option(
        "--rule -r",
        "RULE",
        "auto chooses everything: kernel, metric, bandwidth and penalty. Else the bandwidth: a "
        f"number, or {', '.join(BANDWIDTH_RULES)}.",
        RULES,
        numbers=True,
    ),
]
Alpha = Annotated[
    str | None,
    option(
        "--alpha",
        "PENALTY",
        f"Ridge penalty: a number, or {', '.join(ALPHAS)}.",
        ALPHAS,
        numbers=True,
        show_default="chosen with the rule auto; else 1e-3",
    ),
]
KernelName = Annotated[str, one_word("--kernel -k", tuple(KERNELS))]
KernelOrAuto = Annotated[
    str,
    one_word("--kernel -k", ("auto", *KERNELS), "; auto: chosen with the rule auto, else gaussian"),
]
MetricName = Annotated[
    str,
    one_word("--metric -m", COLUMN_METRICS, f"; auto: learned with the rule auto, else {PLAIN}"),
]
RuleMetric = Annotated[str, one_word("--metric -m", RULE_METRICS, f"; auto: {PLAIN}")]
TaskName = Annotated[
    str,
    one_word("--task", ("auto", *TASK_NAMES), "; auto takes texts and two values as classes"),
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The first row is data.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@dataclass(frozen=True)
class TableOptions:
    """Options of all commands that read a table of features."""

    features: Annotated[
        list[str] | None,
        option("--features", "COLUMNS", "Columns to use, joined by commas; if none, all others."),
    ] = None
    drop: Annotated[
        list[str] | None, option("--drop", "COLUMNS", "Columns to leave out, joined by commas.")
    ] = None
    standardize: Annotated[
        bool,
        typer.Option(
            "--standardize/--no-standardize",
            help="Scale features to variance 1, if --metric is auto.",
        ),
    ] = True
    missing: Annotated[
        str,
        option(
            "--missing",
            "WHAT",
            "Missing values: drop (leave rows out), impute (the median, marked; of texts a "
            "category of their own) or error.",
            POLICIES,
        ),
    ] = "drop"
    decimal: Annotated[
        str, option("--decimal", "SIGN", "Sign before decimals in texts: . or a comma.", (".", ","))
    ] = "."
    no_header: NoHeader = False

    def reading(self, metric: str = "auto", **more: Any) -> Reading:
        """How the table is read."""
        return Reading(
            self.features or (),
            self.drop or (),
            self.missing,
            self.decimal,
            not self.no_header,
            on_globe=metric == "geodesic",
            **more,
        )


@dataclass(frozen=True)
class ModelOptions:
    """Options of the commands that fit a model of any kind."""

    rule: BandwidthOrRule = "auto"
    alpha: Alpha = None
    kernel: KernelOrAuto = "auto"
    metric: MetricName = "auto"
    task: TaskName = "auto"
    solver: Annotated[str, one_word("--solver", SOLVERS)] = "auto"
    n_landmarks: Annotated[
        int | None,
        option(
            "--n-landmarks",
            "NUMBER",
            "Landmarks of the solvers nystrom and pcg.",
            min=1,
            show_default="up to 3000; pcg 1000",
        ),
    ] = None
    weights: Annotated[
        str | None,
        option("--weights", "COLUMN", "Column of weights: a row of weight 2 counts twice."),
    ] = None

    def spec(self, *, standardize: bool) -> ModelSpec:
        """The model before its fit, if the kernel has the rule."""
        check_rule(self.rule, self.kernel)
        spec = spec_of(self.rule, self.alpha, self.metric, standardize=standardize)
        return replace(spec, kernel=self.kernel, solver=self.solver, n_landmarks=self.n_landmarks)


def add_command(
    app: typer.Typer, command: Callable[..., None], example: str, name: str | None = None
) -> None:
    """Add a command with an example; its summary is given, as click cuts the one it finds."""
    summary = (inspect.getdoc(command) or "").split("\n\n")[0].replace("\n", " ")
    app.command(name, epilog=f"Example: {example}", short_help=summary)(_flat(command))


def _flat(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each field of its parameters that are dataclasses."""
    parameters = inspect.signature(command).parameters.values()
    groups: dict[str, Any] = {
        p.name: p.annotation for p in parameters if is_dataclass(p.annotation)
    }
    inner = {name: inspect.signature(group).parameters.values() for name, group in groups.items()}

    @wraps(command)
    def flat(**options: Any) -> None:
        for name, group in groups.items():
            options[name] = group(**{p.name: options.pop(p.name) for p in inner[name]})
        command(**options)

    each = [
        inspect.Parameter(p.name, p.KEYWORD_ONLY, default=p.default, annotation=p.annotation)
        for outer in parameters
        for p in inner.get(outer.name, [outer])
    ]
    flat.__signature__ = inspect.Signature(each)  # type: ignore[attr-defined]
    return flat


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


def spec_of(rule: str, alpha: str | None, metric: str, *, standardize: bool) -> ModelSpec:
    """The model of a rule before its fit."""
    penalty = None if alpha is None else penalty_of(alpha)
    return ModelSpec(number_or(rule, RULES, "--rule"), penalty, metric, standardize)


def penalty_of(text: str) -> float | str:
    """The penalty that is asked for."""
    alpha = number_or(text, ALPHAS, "--alpha")
    if isinstance(alpha, float) and not 0 <= alpha < float("inf"):
        raise typer.BadParameter(f"must be at least 0, got {text}.", param_hint="--alpha")
    return alpha


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


def target_of(text: str | None, rule: str, alpha: float | str) -> list[str]:
    """The target; without one, a refusal of what looks at it and a note for the rest."""
    if text is not None:
        return [text]
    looks = f"the rule {rule}" if SELECTORS[rule].looks_at_y else f"--alpha {alpha}"
    if looks_at_target(rule, alpha):
        raise typer.BadParameter(
            f"must name the column to predict, as {looks} looks at it.", param_hint="--target"
        )
    note("All columns count as features. If one is to be predicted, name it with --target.")
    return []


def looks_at_target(rule: str, alpha: float | str) -> bool:
    """Whether a rule needs the values of the target, by itself or for the penalty."""
    known = SELECTORS[rule]
    return known.looks_at_y or (isinstance(alpha, str) and not known.chooses_without_y)


def one_of(text: str, words: Sequence[str], option: str) -> str:
    """The text, if it is one of a few words."""
    if text not in words:
        known = ", ".join(words)
        raise typer.BadParameter(f"must be one of {known}, got '{text}'.", param_hint=option)
    return text


def rows_of(file: str, targets: Sequence[str], reading: Reading) -> Rows:
    """The rows of a table, with notes on what was done to it."""
    rows = read_rows(file, targets, reading)
    for sentence in not_used(rows):
        warn(sentence)
    for sentence in rows.losses.sentences:
        (warn if rows.losses.are_many else note)(sentence)
    if rows.ids:
        one = len(rows.ids) == 1
        look = "looks like an id and is left out" if one else "look like ids and are left out"
        note(
            f"{listed(rows.ids)} {look}: each row has a value of its own. If "
            f"{'it matters' if one else 'one matters'}, name all features with --features."
        )
    on_columns = [*rows.written.values(), *on_gaps(rows, reading), *_on_columns(rows)]
    for sentence in [*on_columns, *_on_places(rows, reading)]:
        note(sentence)
    if reading.task == "auto" and rows.task == "classification":
        note_classes(rows.target or "", np.unique(rows.y))
    return rows


def on_gaps(rows: Rows, reading: Reading) -> list[str]:
    """How gaps are filled, if they are."""
    return fillings(rows.X.select(rows.gappy)) if reading.fills else []


def _on_columns(rows: Rows) -> Iterator[str]:
    """Notes on what dates and texts become."""
    for name, date in rows.dates.items():
        parts = ", ".join(dict.fromkeys(part.split()[0] for part in date.parts)) or "nothing"
        kind = "years and months" if date.format in MONTHS else "dates"
        cycles = ", all but the year as sine and cosine" if len(date.parts) > 1 else ""
        leave = f"Leave it out with {drop_option(name)}."
        yield f"`{name}` holds {kind} and becomes {parts}{cycles}. {leave}"
    for name in rows.texts:
        count, gaps = rows.X[name].n_unique(), rows.X[name].null_count()
        among = f", {GAP!r} among them," if gaps else ""
        yield (
            f"`{name}` holds one category in the rows that are used, and has no effect."
            if count == 1
            else f"`{name}` holds {count} categories{among} and is one-hot encoded."
        )


def _on_places(rows: Rows, reading: Reading) -> Iterator[str]:
    """How latitude and longitude are used."""
    places = place_columns(rows.numbers)
    if reading.on_globe:
        lat, lon = rows.numbers
        yield f"`{lat}` is latitude and `{lon}` longitude, in degrees; no other column is used."
    elif places and rows.X.width == 2:  # there is nothing else to lose
        yield on_places(*places)


def not_used(rows: Rows) -> list[str]:
    """Which columns distances on the globe leave out."""
    if not rows.unused:
        return []
    verb = "is" if len(rows.unused) == 1 else "are"
    return [
        f"{listed(rows.unused)} {verb} not used with --metric geodesic, which takes latitude and "
        "longitude only."
    ]


def note_times(rows: Rows, what_flatters: str) -> None:
    """Tell that a score is no test of the future, if the rows are in the order of time."""
    times = [name for name in rows.numbers if follows_time(name, rows.X[name].to_numpy())]
    if times:
        note(
            f"The rows are in order of `{times[0].removesuffix(YEAR)}`. {what_flatters} models "
            "that have to predict the future; jacridge report judges models on later rows."
        )


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
