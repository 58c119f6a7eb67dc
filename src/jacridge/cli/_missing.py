"""Missing values: which rows they cost, and how they are filled."""

from dataclasses import dataclass

import polars as pl

from ..report._columns import GAP, MARK
from ._cells import drop_option, short
from ._text import TableError

# Losing more than this share of the rows is a warning.
MANY = 0.2
SHOWN = 5
DROP, IMPUTE, ERROR = POLICIES = ("drop", "impute", "error")


@dataclass(frozen=True)
class Losses:
    """Rows that are left out, the columns responsible, and the categories that are lost."""

    n: int
    n_all: int
    columns: dict[str, int]
    levels: list[str]

    @property
    def are_many(self) -> bool:
        """Whether more than a fifth of the rows is lost."""
        return self.n > MANY * self.n_all

    @property
    def sentences(self) -> list[str]:
        """Sentences on what is lost and why; empty if nothing is lost."""
        if not self.n:
            return []
        do = "has missing values and is" if self.n == 1 else "have missing values and are"
        lost = f"{self.n:,} of {self.n_all:,} rows {do} left out"
        advice = (
            f" Fill gaps with --missing impute, or leave a column out with "
            f"{drop_option(next(iter(self.columns)))}."
            if self.are_many
            else ""
        )
        return [f"{lost}: {costs(self.columns)}.{advice}", *self.levels]


def costs(columns: dict[str, int]) -> str:
    """How many rows lack a value, for each column with gaps."""
    named = [lacking(name, count) for name, count in list(columns.items())[:SHOWN]]
    more = len(columns) - len(named)
    rest = "column has" if more == 1 else "columns have"
    return ", ".join(named) + (f", and {more} more {rest} gaps" if more else "")


def lacking(name: str, count: int) -> str:
    """How many rows lack a value in a column."""
    return f"{count:,} {'lacks' if count == 1 else 'lack'} `{name}`"


def gaps(frame: pl.DataFrame) -> dict[str, int]:
    """How many values each column lacks, in decreasing order, without complete columns."""
    counts = {column.name: column.null_count() for column in frame}
    return {name: n for name, n in sorted(counts.items(), key=lambda item: -item[1]) if n}


def complete_rows(frame: pl.DataFrame, policy: str) -> pl.DataFrame:
    """Rows without a missing value; an error if there are others and the policy forbids them."""
    complete = frame.drop_nulls()
    if policy == ERROR and len(complete) < len(frame):
        raise TableError(
            f"With --missing error no value may be missing, got {len(frame) - len(complete):,} of "
            f"{len(frame):,} rows with missing values: {costs(gaps(frame))}."
        )
    return complete


def losses(frame: pl.DataFrame, kept: pl.DataFrame) -> Losses:
    """Rows and categories that are lost if only some rows of a frame are kept."""
    levels = [
        _vanished(frame.filter(pl.col(column.name) == level), column.name, level)
        for column in frame
        if column.dtype == pl.String
        for level in sorted(set(column.drop_nulls().to_list()) - set(kept[column.name].to_list()))
    ]
    n_more = len(levels) - SHOWN
    more = [f"{n_more} more {'category is' if n_more == 1 else 'categories are'} lost."]
    return Losses(
        len(frame) - len(kept), len(frame), gaps(frame), levels[:SHOWN] + more * (n_more > 0)
    )


def _vanished(rows: pl.DataFrame, column: str, level: str) -> str:
    """Why no row of a category is left."""
    always = [name for name, count in gaps(rows).items() if count == len(rows)]
    why = f"all {len(rows):,} lack `{always[0]}`" if always else "all of them lack some value"
    return f"No row with `{column}` = {short(level)} is left: {why}."


def filled(X: pl.DataFrame, marked: dict[str, str]) -> pl.DataFrame:
    """The features with gaps filled, and a column that marks the gaps of each marked column.

    `marked` also has the names that are shown for these columns.
    """
    marks = [
        pl.col(name).is_null().cast(pl.Float64).alias(f"{known}{MARK}")
        for name, known in marked.items()
        if X[name].null_count()
    ]
    fill = [
        pl.col(name).fill_null(GAP)
        if kind == pl.String
        else pl.col(name).fill_null(pl.col(name).median())
        for name, kind in X.schema.items()
    ]
    return X.select(*fill, *marks)


def fillings(X: pl.DataFrame) -> list[str]:
    """How the gaps of features are filled, in words."""
    return [
        f"{count:,} of {len(X):,} values of `{name}` {'is' if count == 1 else 'are'} missing and "
        "filled with "
        + (
            f"a separate category, {short(GAP)}."
            if X.schema[name] == pl.String
            else "the median; an additional column marks the gaps."
        )
        for name, count in gaps(X).items()
    ]
