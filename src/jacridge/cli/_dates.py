"""Dates as features: the year with its fraction; month, day of the week and hour as cycles."""

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import polars as pl

from ._text import ColumnError, TableError

WITH_YEAR = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d-%m-%Y", "%d/%m/%Y", "%m/%d/%Y")
OF_TWO_DIGITS = ("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%B-%y")
WITH_WORDS = ("%d %B %Y", "%d-%B-%Y", "%B %d, %Y")  # Mar and March
DAYS = (*WITH_YEAR, *OF_TWO_DIGITS, *WITH_WORDS)
MONTHS = ("%Y-%m", "%Y/%m")  # their first days
TIMES = ("", " %H:%M", " %H:%M:%S")
DIGITS = ("%Y%m%d", "%Y%m%d%H%M", "%Y%m%d%H%M%S")  # dates written as one whole number
WITH_T = "%Y%m%d %H%M%S"  # such as 20240131T153000; this form also fits dates without the T
LOOKS_LIKE = (
    r"^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}"
    r"|\d\d\.\d\d\.\d\d|\d{1,2}/\d{1,2}/\d\d"
    r"|\d{1,2}[- ]\p{L}{3,9}[- ]\d{2,4}|\p{L}{3,9} \d{1,2}, \d{4})"
    r"([ T]\d{1,2}:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$"
    r"|^\d{4}[-/]\d{1,2}$|^(19|20)\d{6}([ T]\d{6}|\d{4}(\d\d)?)?$"
)


def _month(date: pl.Expr) -> pl.Expr:
    # With the share of the month that is over, or predictions would jump on each first.
    return date.dt.month() - 1.0 + (date.dt.day() - 1.0) / date.dt.month_end().dt.day()


# Cyclic functions of a date, and the length of each cycle.
CYCLES: dict[str, tuple[Callable[[pl.Expr], pl.Expr], int]] = {
    "month": (_month, 12),
    "weekday": (lambda date: date.dt.weekday() - 1.0, 7),
    "hour": (lambda date: date.dt.hour() + date.dt.minute() / 60, 24),
}


@dataclass(frozen=True)
class Dates:
    """How a column of dates is read, and which of its parts are features."""

    format: str | None  # None if the file stores dates with a type
    parts: list[str] = field(default_factory=list)
    whole_months: bool = False  # as in older model files: the month does not count its days

    def features(self, column: str) -> list[pl.Expr]:
        """The parts of a column, with their names."""
        date = pl.col(column)
        date_of = {"month": date.dt.truncate("1mo")} if self.whole_months else {}
        return [
            PARTS[part](date_of.get(part.split()[0], date))
            .cast(pl.Float64)
            .alias(part_name(column, part))
            for part in self.parts
        ]


def _year(date: pl.Expr) -> pl.Expr:
    # The hour is a separate feature, so the trend is in days.
    return date.dt.year() + (date.dt.ordinal_day() - 1) / 366


def _cycle(name: str, wave: Callable[[pl.Expr], pl.Expr]) -> Callable[[pl.Expr], pl.Expr]:
    count, period = CYCLES[name]
    return lambda date: wave(count(date) * (2 * math.pi / period))


# Every part of a date that can be a feature, and how it is computed.
PARTS: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "year": _year,
    **{f"{name} sine": _cycle(name, pl.Expr.sin) for name in CYCLES},
    **{f"{name} cosine": _cycle(name, pl.Expr.cos) for name in CYCLES},
}


def format_of(texts: pl.Series) -> str | None:
    """The format of a column of texts or whole numbers if all values are dates, else None."""
    some = texts.drop_nulls().unique(maintain_order=True)
    if some.is_empty() or not some.str.contains(LOOKS_LIKE).all():
        return None
    forms = [*(day + time for day in DAYS for time in TIMES), *MONTHS, *DIGITS]
    found = [form for form in forms if not parsed(some, form).null_count()]
    if not found and not parsed(some, WITH_T).null_count():
        return WITH_T
    if len(found) > 1:
        raise ColumnError(
            f"The column `{texts.name}` must hold unambiguous dates, got values such as "
            f"{str(some[0])!r}, where day and month may be swapped.",
            f"Write them as 2024-01-31, or leave the column out with --drop '{texts.name}'.",
        )
    return found[0] if found else None


def parsed(texts: pl.Series, form: str) -> pl.Series:
    """Text as dates without fractions of a second or time zone; null where parsing fails."""
    if form in MONTHS:
        texts, form = texts + "-01", f"{form}-%d"
    bare = texts.str.replace(r"(\d)T(\d)", "$1 $2")
    bare = bare.str.replace(r"(:\d\d)(\.\d+)?(Z|[+-]\d\d:?\d\d)?$", "$1")
    dates = bare.str.to_datetime(form, strict=False, time_unit="us")
    return dates.set(dates.dt.year() < 100, None)  # %Y also reads years of two digits


def is_date(kind: pl.DataType) -> bool:
    """Whether a column's type is a date, with or without a time."""
    return isinstance(kind, pl.Date | pl.Datetime)


def as_dates(column: pl.Series) -> pl.Series:
    """A column of dates in local time."""
    local = column.dt.replace_time_zone(None) if isinstance(column.dtype, pl.Datetime) else column
    return local.cast(pl.Datetime("us"))


def part_name(column: str, part: str) -> str:
    """The name of a feature made from a date."""
    return f"{column} ({part})"


def columns_of_parts(dates: dict[str, Dates]) -> dict[str, str]:
    """For each feature that is a part of a date, the column that it comes from."""
    return {part_name(name, part): name for name, date in dates.items() for part in date.parts}


def varying_parts(column: pl.Series, form: str | None) -> list[str]:
    """The parts of a column of dates that differ between rows; months have no day of the week.

    Dates that are all the first or the last day of a month count as months, too. Dates that cover
    less than a year get no month features: a trend and a season cannot be told apart.
    """
    column = column.drop_nulls()
    months, days = column.dt.truncate("1mo").n_unique(), column.dt.date()
    are_months = any((days == end).all() for end in (days.dt.month_start(), days.dt.month_end()))
    without = {"weekday": form in MONTHS or are_months, "month": months < 12}
    parts = [part for part in PARTS if not without.get(part.split()[0], False)]
    values = column.to_frame("date").select(
        PARTS[part](pl.col("date")).round(9).n_unique().alias(part) for part in parts
    )
    return [part for part in parts if values[part][0] > 1]


def day_of(year: float) -> datetime.date:
    """The day of a year with its fraction."""
    return datetime.date(int(year), 1, 1) + datetime.timedelta(days=round(year % 1 * 366))


def with_parts(frame: pl.DataFrame, dates: dict[str, Dates]) -> pl.DataFrame:
    """The frame with each column of dates replaced by its parts, which come last."""
    new = [feature for name, date in dates.items() for feature in date.features(name)]
    taken = [e.meta.output_name() for e in new if e.meta.output_name() in frame.columns]
    if taken:
        raise TableError(
            f"The column `{taken[0]}` must have another name: a part of a date has this one."
        )
    return frame.with_columns(new).drop(dates)
