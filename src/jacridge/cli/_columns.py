"""From a table as it stands to features and target: which columns, which rows, which type."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ._tables import TableError, listed, read_frame

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "?")
MOST_CATEGORIES = 100
LARGEST = 1e150  # its square is still a float


class UnknownColumn(ValueError):
    """A column that is asked for and not there."""


@dataclass(frozen=True)
class Rows:
    """The complete rows of a table: features as numbers or texts, and the target if asked for."""

    X: pl.DataFrame
    y: Any  # an array, or None if no target was asked for
    target: str | None
    n_dropped: int

    @property
    def numbers(self) -> list[str]:
        """Names of the columns that hold numbers."""
        return [name for name, kind in self.X.schema.items() if kind == pl.Float64]

    @property
    def texts(self) -> list[str]:
        """Names of the columns that hold categories."""
        return [name for name, kind in self.X.schema.items() if kind == pl.String]


def read_rows(
    source: str,
    target: str | None,
    *,
    features: Sequence[str] = (),
    drop: Sequence[str] = (),
    strict: bool = False,
    header: bool = True,
) -> Rows:
    """Features and target of the complete rows of a table."""
    frame = read_frame(source, header=header)
    name = None if target is None else column_named(frame.columns, target)
    chosen = feature_columns(frame.columns, name, features, drop)
    wanted = chosen if name is None else [*chosen, name]
    frame = frame.select(_typed(frame[column]) for column in wanted)
    if name is not None and frame.schema[name] != pl.Float64:
        text = _short(frame[name].drop_nulls()[0])
        raise TableError(f"The target `{name}` must hold numbers, got texts such as {text}.")
    empty = [column.name for column in frame if column.null_count() == len(column)]
    if empty:
        raise TableError(f"A column must hold values, got none in {listed(empty)}.")
    complete = complete_rows(frame, strict=strict)
    if complete.is_empty():
        raise TableError(f"`{source}` must hold a row without missing values, got none.")
    for column in chosen:
        _check_categories(complete[column])
    y = None if name is None else complete[name].to_numpy()
    return Rows(complete.select(chosen), y, name, len(frame) - len(complete))


def read_columns(
    source: str,
    *,
    numbers: Sequence[str],
    texts: Sequence[str],
    header: bool = True,
    known: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Named columns of a table as numbers or texts, missing values as nulls.

    Columns that are not `known`, if that is given, are refused.
    """
    frame = read_frame(source, header=header)
    absent = [name for name in [*numbers, *texts] if name not in frame.columns]
    if absent:
        raise UnknownColumn(
            f"`{source}` must have the columns that the model is made of, got no {listed(absent)}. "
            f"It has {listed(frame.columns)}."
        )
    others = [name for name in frame.columns if known is not None and name not in known]
    if others:
        raise TableError(
            f"`{source}` must have the columns of the first part, got {listed(others)} besides. "
            "Name those to take with --features."
        )
    return frame.select(
        *(_typed(frame[name], as_numbers=True) for name in numbers),
        *(_as_texts(frame[name]) for name in texts),
    )


def complete_rows(frame: pl.DataFrame, *, strict: bool) -> pl.DataFrame:
    """Rows without a missing value; a refusal where there are others and `strict` is set."""
    complete = frame.drop_nulls()
    n_missing = len(frame) - len(complete)
    if strict and n_missing:
        holes = [column.name for column in frame if column.null_count()]
        raise TableError(
            f"With --strict no value may be missing, got {n_missing} of {len(frame)} rows with "
            f"missing values, in {listed(holes)}."
        )
    return complete


def in_place(results: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    """Results for the complete rows of a frame, each at its row, and nulls for the others."""
    complete = ~frame.select(pl.any_horizontal(pl.all().is_null())).to_series()
    position = pl.when(complete).then(complete.cast(pl.Int64).cum_sum() - 1)
    return results.select(pl.all().gather(frame.select(position).to_series()))


def column_named(names: Sequence[str], wanted: str) -> str:
    """The column of that name, or at that position: 1 is the first, -1 the last."""
    if wanted in names:
        return wanted
    if re.fullmatch(r"[+-]?\d{1,9}", wanted) and 1 <= abs(int(wanted)) <= len(names):
        position = int(wanted)
        return names[position - 1 if position > 0 else position]
    near = difflib.get_close_matches(wanted, names, n=1)
    hint = f"Did you mean `{near[0]}`?" if near else f"There are {listed(names)}."
    raise UnknownColumn(f"`{wanted}` must be a column's name or position, got neither. {hint}")


def feature_columns(
    names: Sequence[str], target: str | None, features: Sequence[str], drop: Sequence[str]
) -> list[str]:
    """The features: those asked for, or all but the target if any; without the dropped ones."""
    keep = _columns_named(names, features) if features else [n for n in names if n != target]
    out = _columns_named(names, drop)
    if target in out:
        raise UnknownColumn(f"`{target}` must not be dropped, it is the target.")
    if target in keep:
        raise UnknownColumn(f"`{target}` must not be a feature, it is the target.")
    chosen = [name for name in keep if name not in out]
    if not chosen:
        raise UnknownColumn("At least one feature must be left, got none.")
    return chosen


def _columns_named(names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The columns of a list in which a comma may join several names."""
    parts = [[text] if text in names else text.split(",") for text in wanted]
    found = [column_named(names, part.strip()) for texts in parts for part in texts]
    return list(dict.fromkeys(found))


def _as_texts(column: pl.Series) -> pl.Series:
    """A column as trimmed texts; what stands for a missing value as null."""
    if column.dtype.is_numeric() or column.dtype == pl.Boolean or column.dtype == pl.Null:
        return column.cast(pl.String)
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        raise TableError(
            f"The column `{column.name}` must hold numbers or texts, got {column.dtype}. "
            f"Leave it out with --drop '{column.name}'."
        )
    texts = column.cast(pl.String).str.strip_chars()
    return texts.set(texts.is_in(MISSING), None)


def _typed(column: pl.Series, *, as_numbers: bool = False) -> pl.Series:
    """A column as numbers, or as texts if most of it are words."""
    if column.dtype.is_numeric() or column.dtype == pl.Boolean or column.dtype == pl.Null:
        return _checked(column.cast(pl.Float64).fill_nan(None))
    texts = _as_texts(column)
    numbers = texts.cast(pl.Float64, strict=False).fill_nan(None)
    is_word = texts.is_not_null() & numbers.is_null()
    n_words = int(is_word.sum())
    if n_words == 0:
        return _checked(numbers)
    if as_numbers or n_words < texts.count() / 2:
        row = int(is_word.arg_max() or 0)
        raise TableError(
            f"The column `{column.name}` must hold numbers, got {_short(texts[row])} in row "
            f"{row + 1}. Correct the value; a fit may also leave a feature out, with --drop."
        )
    return texts


def _checked(column: pl.Series) -> pl.Series:
    """A column of numbers whose squares do not overflow."""
    too_large = column.abs() > LARGEST
    if too_large.any():
        row = int(too_large.arg_max() or 0)
        raise TableError(
            f"The column `{column.name}` must hold numbers below {LARGEST:g} in size, got "
            f"{column[row]:g} in row {row + 1}."
        )
    return column


def _check_categories(column: pl.Series) -> None:
    """Refuse a column of texts that is a number, a name or a comment, not a category."""
    if column.dtype != pl.String:
        return
    texts = column.drop_nulls()
    if len(texts) and texts.str.contains(r"^\s*[-+]?\d+,\d+\s*$").all():
        raise TableError(
            f"The column `{column.name}` must hold numbers with a decimal point, got "
            f"{_short(texts[0])}. Write its decimal commas as points first."
        )
    if column.n_unique() > MOST_CATEGORIES:
        raise TableError(
            f"The column `{column.name}` must hold numbers or at most {MOST_CATEGORIES} "
            f"categories, got {column.n_unique()} different texts such as {_short(column[0])}. "
            f"Leave it out with --drop '{column.name}'."
        )


def _short(text: str) -> str:
    """A value as it is quoted in a message."""
    return repr(text if len(text) <= 40 else text[:37] + "...")
