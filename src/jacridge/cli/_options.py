"""Options that several commands share, and what their values stand for."""

from collections.abc import Sequence
from typing import Annotated

import typer

from jacridge import RULES

from .._fitting import SOLVERS
from .._selectors import ALPHAS, SEARCHES
from ._columns import Rows, read_rows
from ._terminal import note

ENGINES = ("memory", "dask")

FILE = "CSV, TSV, Parquet or Feather file, gzip too; a quoted pattern for several; - for stdin"
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
        help=f"Bandwidth: a number, or {', '.join(RULES)}.",
        autocompletion=lambda: list(RULES),
    ),
]
Alpha = Annotated[
    str | None,
    typer.Option(
        metavar="PENALTY",
        help=f"Ridge penalty: a number, or {', '.join(ALPHAS)}.",
        show_default="1e-3; auto with the rule auto",
        autocompletion=lambda: list(ALPHAS),
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
Standardize = Annotated[
    bool, typer.Option("--standardize/--no-standardize", help="Scale features to variance 1.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse rows with missing values.")]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The first row is data.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


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


def penalty_of(text: str | None, rule: str = "") -> float | str:
    """The penalty that is asked for; by default the paper's, but `auto` chooses its own."""
    if text is None:
        return "auto" if rule == "auto" else 1e-3
    alpha = number_or(text, ALPHAS, "--alpha")
    if isinstance(alpha, float) and not 0 <= alpha < float("inf"):
        raise typer.BadParameter(f"must be at least 0, got {text}.", param_hint="--alpha")
    return alpha


def rule_of(text: str) -> str:
    """The name of a rule, if there is such a rule."""
    return _one_of(text, RULES, "--rule")


def target_of(text: str | None, rule: str, alpha: float | str) -> str | None:
    """The target; without one, a refusal of what looks at it and a note for the rest."""
    if text is not None:
        return text
    looks = f"the rule {rule}" if rule in SEARCHES else f"--alpha {alpha}"
    if rule in SEARCHES or isinstance(alpha, str):
        raise typer.BadParameter(
            f"must name the column to predict, as {looks} looks at it.", param_hint="--target"
        )
    note("All columns count as features. If one is to be predicted, name it with --target.")
    return None


def solver_of(text: str) -> str:
    """The name of a solver, if there is such a solver."""
    return _one_of(text, SOLVERS, "--solver")


def engine_of(text: str, scheduler: str | None) -> str:
    """The name of an engine, if there is such an engine; only Dask has a scheduler."""
    engine = _one_of(text, ENGINES, "--engine")
    if scheduler is not None and engine != "dask":
        raise typer.BadParameter("needs --engine dask.", param_hint="--scheduler")
    return engine


def _one_of(text: str, words: Sequence[str], option: str) -> str:
    if text not in words:
        known = ", ".join(words)
        raise typer.BadParameter(f"must be one of {known}, got '{text}'.", param_hint=option)
    return text


def rows_of(
    file: str,
    target: str | None,
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
        total = rows.n_dropped + len(rows.X)
        note(f"{rows.n_dropped} of {total} rows have missing values and are left out.")
    for name in rows.texts:
        note(f"`{name}` holds {rows.X[name].n_unique()} categories and is one-hot encoded.")
    return rows
