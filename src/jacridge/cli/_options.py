"""Options that several commands share, and the models that they describe."""

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from functools import wraps
from typing import Annotated, Any

import typer

from jacridge import RULES

from .._geometry.kernels import KERNELS
from .._rules.held_out import HELD_OUT
from .._rules.parameters import SOLVERS
from .._rules.registry import ALPHAS, SELECTORS
from ..report._columns import TASK_NAMES
from ..report._pieces import joined
from ..report._tasks import COLUMN_METRICS, ModelSpec
from ._columns import Reading
from ._missing import POLICIES

RULE_METRICS = ("auto", "euclidean", "geodesic")
BANDWIDTH_RULES = [rule for rule in RULES if not SELECTORS[rule].is_automatic]
PLAIN = "euclidean, on standardized columns; geodesic: metres between latitude and longitude"


def option(
    names: str,
    metavar: str,
    text: str,
    words: Sequence[str] = (),
    *,
    numbers: bool = False,
    **more: Any,
) -> Any:
    """An option that accepts any text, or only one of the given words (or a number)."""
    flags = names.split()

    def checked(value: Any) -> Any:
        if value is not None:
            one_of(value, words, flags[0], numbers=numbers)
        return value

    if words:
        more |= {"autocompletion": lambda: list(words), "callback": checked}
    return typer.Option(*flags, metavar=metavar, help=text, **more)


def one_word(names: str, words: Sequence[str], more: str = "") -> Any:
    """An option that takes one of a few words and lists them in its help."""
    metavar = names.split()[0].removeprefix("--").upper()
    return option(names, metavar, f"{', '.join(words)}{more}.", words)


def between_0_and_1(flag: str, text: str) -> Any:
    """An option that takes a number between 0 and 1."""

    def checked(value: float | None) -> float | None:
        if value is not None and not 0 < value < 1:
            percent = f" For {value:g} % write {value / 100:g}." if 1 < value < 100 else ""
            raise typer.BadParameter(
                f"must lie between 0 and 1, got {value:g}.{percent}", param_hint=flag
            )
        return value

    return option(flag, "COVERAGE", text, callback=checked)


FILE = (
    "CSV, TSV, Parquet, Feather or Excel file, gzipped or not; a quoted pattern reads several "
    "files, - reads stdin."
)
COLUMN = "Column to predict: its name, or its position (1 is the first, -1 the last)."
Data = Annotated[str, typer.Argument(metavar="FILE", help=FILE, show_default=False)]
Target = Annotated[str, option("--target -t", "COLUMN", COLUMN)]
BandwidthOrRule = Annotated[
    str,
    option(
        "--rule -r",
        "RULE",
        "auto chooses kernel, metric, bandwidth and penalty. Otherwise the bandwidth: a number, or "
        f"{', '.join(BANDWIDTH_RULES)}.",
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
        show_default="chosen if --rule is auto, else 1e-3",
    ),
]
KernelName = Annotated[str, one_word("--kernel -k", tuple(KERNELS))]
KernelOrAuto = Annotated[
    str,
    one_word("--kernel -k", ("auto", *KERNELS), "; auto: chosen if --rule is auto, else gaussian"),
]
MetricName = Annotated[
    str,
    one_word("--metric -m", COLUMN_METRICS, f"; auto: learned if --rule is auto, else {PLAIN}"),
]
RuleMetric = Annotated[str, one_word("--metric -m", RULE_METRICS, f"; auto: {PLAIN}")]
TaskName = Annotated[
    str,
    one_word("--task", ("auto", *TASK_NAMES), "; auto: text or two values are classes"),
]
HeldOut = Annotated[
    str,
    one_word(
        "--held-out",
        ("auto", *HELD_OUT),
        ": rows that models are compared on; auto: later ones if the rows are in time order",
    ),
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The first row is data.")]
Sheet = Annotated[
    str | None,
    option(
        "--sheet", "SHEET", "Sheet of an Excel file: its name, or its position.", show_default="1"
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object to stdout. Notes stay on stderr.")
]


@dataclass(frozen=True)
class TableOptions:
    """Options of all commands that read a table of features."""

    features: Annotated[
        list[str] | None,
        option("--features", "COLUMNS", "Columns to use, separated by commas; default: all."),
    ] = None
    drop: Annotated[
        list[str] | None, option("--drop", "COLUMNS", "Columns to leave out, separated by commas.")
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
            "Missing values: drop leaves out their rows, impute fills in the median and marks it "
            "(in text: a separate category), error stops.",
            POLICIES,
        ),
    ] = "drop"
    decimal: Annotated[
        str, option("--decimal", "SIGN", "Decimal sign in text: . or a comma.", (".", ","))
    ] = "."
    no_header: NoHeader = False
    sheet: Sheet = None

    def reading(self, metric: str = "auto", **more: Any) -> Reading:
        """How the table is read."""
        return Reading(
            self.features or (),
            self.drop or (),
            self.missing,
            self.decimal,
            not self.no_header,
            self.sheet,
            on_globe=metric == "geodesic",
            **more,
        )


@dataclass(frozen=True)
class ModelOptions:
    """Options of all commands that fit one model."""

    rule: BandwidthOrRule = "auto"
    alpha: Alpha = None
    kernel: KernelOrAuto = "auto"
    metric: MetricName = "auto"
    task: TaskName = "auto"
    held_out: HeldOut = "auto"

    def spec(self, *, standardize: bool) -> ModelSpec:
        """The model, not fitted yet; an error if the rule does not work with the kernel."""
        check_rule(self.rule, self.kernel)
        spec = spec_of(self.rule, self.alpha, self.metric, standardize=standardize)
        spec = replace(spec, kernel=self.kernel, held_out=self.held_out)
        if self.held_out == "later" and not spec.later_rows_choose:
            names = ("rule", "alpha", "kernel", "metric")
            asked = {f"--{name} {getattr(self, name)}": getattr(self, name) for name in names}
            given = [text for text, value in asked.items() if value not in (None, "auto")]
            given += [] if standardize else ["--no-standardize"]
            raise typer.BadParameter(
                f"must not be later with {joined(given)}: nothing is chosen on held-out rows.",
                param_hint="--held-out",
            )
        return spec


@dataclass(frozen=True)
class SolverOptions(ModelOptions):
    """Options of all commands that fit one model with a choice of solver."""

    solver: Annotated[str, one_word("--solver", SOLVERS)] = "auto"
    n_landmarks: Annotated[
        int | None,
        option(
            "--n-landmarks",
            "NUMBER",
            "Number of landmarks for the solvers nystrom and pcg.",
            min=1,
            show_default="up to 3000; pcg 1000",
        ),
    ] = None
    weights: Annotated[
        str | None,
        option("--weights", "COLUMN", "Column of sample weights."),
    ] = None

    def spec(self, *, standardize: bool) -> ModelSpec:
        """The model, not fitted yet; an error if the rule does not work with the kernel."""
        spec = super().spec(standardize=standardize)
        return replace(spec, solver=self.solver, n_landmarks=self.n_landmarks)


def add_command(
    app: typer.Typer, command: Callable[..., None], example: str, name: str | None = None
) -> None:
    """Add a command with an example and its full first sentence, which click would truncate."""
    summary = (inspect.getdoc(command) or "").split("\n\n")[0].replace("\n", " ")
    app.command(name, epilog=f"Example: {example}", short_help=summary)(_flat(command))


def _flat(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter that is a dataclass by one option for each of its fields."""
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


def one_of(text: str, words: Sequence[str], option: str, *, numbers: bool = False) -> Any:
    """Return one of a few words, or a number if `numbers` allows it; refuse anything else."""
    if text in words:
        return text
    if numbers:
        with suppress(ValueError):
            return float(text)
    kinds = f"{'a number or ' * numbers}one of {', '.join(words)}"
    raise typer.BadParameter(f"must be {kinds}, got '{text}'.", param_hint=option)


def spec_of(rule: str, alpha: str | None, metric: str, *, standardize: bool) -> ModelSpec:
    """The model that options describe, not fitted yet."""
    bandwidth = one_of(rule, RULES, "--rule", numbers=True)
    penalty = None if alpha is None else one_of(alpha, ALPHAS, "--alpha", numbers=True)
    if isinstance(penalty, float) and not 0 <= penalty < float("inf"):
        raise typer.BadParameter(f"must be at least 0, got {alpha}.", param_hint="--alpha")
    return ModelSpec(bandwidth, penalty, metric, standardize)


def check_rule(rule: str, kernel: str) -> str:
    """Return the rule, or raise an error if it cannot be used with the kernel."""
    if rule in rules_of(kernel) or rule not in RULES:
        return rule
    raise typer.BadParameter(
        f"cannot be {rule} with --kernel {kernel}, whose Jacobian norm has no minimum. Use "
        "--rule median or --rule auto.",
        param_hint="--rule",
    )


def rules_of(kernel: str) -> list[str]:
    """Rules that can be used with a kernel."""
    return [
        name for name, rule in SELECTORS.items() if kernel == "auto" or rule.suits(KERNELS[kernel])
    ]
