"""Columns of cells as numbers, categories or dates; each error says what to do."""

from collections.abc import Callable, Iterable

import polars as pl

from .._checks import LARGEST
from ..report._columns import looks_like_id
from ._dates import as_dates, format_of, is_date, parsed
from ._text import ColumnError, TableError
from ._written import (
    NEARLY_ALL,
    decimal_signs,
    is_ambiguous,
    may_be_thousands,
    numbers_of,
    points_in_doubt,
)

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "?", "#N/A", "#DIV/0!", "#VALUE!")
MOST_CATEGORIES = 100
FAULTS_SHOWN = 5
DECIMAL_HINT = "Add --decimal , to read decimal commas."
REMOVE_HINT = "If commas separate thousands, remove them."
THOUSANDS_HINT = f"{DECIMAL_HINT} {REMOVE_HINT}"
# For new rows of a model that was fitted to numbers with decimal points.
MODEL_HINT = "The model was fitted to numbers with decimal points: write 1234.5."
POINT_HINT = (
    "With --decimal , points only separate thousands, as in 1.234,5. Use --decimal . to read "
    "decimal points."
)
PRICE_HINT = (
    "Add --decimal , if points separate thousands. If they are decimal points, remove the currency "
    "signs."
)
DROP_HINT = "In a fit, --drop can also leave a feature out."
TEXT_HINT = (
    "Correct the texts, or empty their cells: an empty cell, "
    f"{', '.join(dict.fromkeys(m for m in MISSING if m and m not in ('n/a', 'nan', 'NULL')))} "
    "count as missing."
)
# Digits of other scripts, which \d includes, are not read as numbers.
COMMA = r"^[-+]?([0-9]+(,[0-9]+)?([eE][-+]?[0-9]+)?|[0-9]{1,3}(\.[0-9]{3})+,[0-9]+)$"
POINT = r"^[-+]?[0-9]*\.[0-9]+([eE][-+]?[0-9]+)?$"
DATED = (19_000_101, 20_991_231_235_959)  # whole numbers that may be dates, such as 20240131
# A number without leading zeros, and with few enough digits to be kept.
PLAIN = r"^-?((0|[1-9]\d{0,8})(\.\d{1,6})?|[1-9]\d{9,14})$"
# Numbers with a currency or a unit before or after them, or with separated thousands.
WITH_UNIT = r"^(\p{Sc}|[A-Z]{3})?\s*[-+]?\s*\d[\d.,' ]*\s*(\p{Sc}|%|[A-Za-z]{1,3}[23²³]?)?$"
UNIT_HINT = (
    "To use them as numbers, remove currency signs, units and separators of thousands: write "
    "1234.5."
)


class TargetError(ColumnError):
    """Error in a column that cannot be left out."""


class TextTargetError(TargetError):
    """A text target where numbers are needed."""


def each_column(
    work: Callable[[pl.Series], pl.Series], columns: Iterable[pl.Series]
) -> list[pl.Series]:
    """Apply `work` to each column; report all columns that it refuses in one message."""
    given, done, faults = list(columns), [], {}
    for column in given:
        try:
            done.append(work(column))
        except ColumnError as error:
            faults[column.name] = error
    for fault in faults.values():
        if any(hint in fault.way_out for hint in (DECIMAL_HINT, POINT_HINT, PRICE_HINT)):
            _refuse_two_signs(given, fault)
    if len(faults) == 1:
        raise next(iter(faults.values()))
    if faults:
        raise TableError(_together(faults))
    return done


def _refuse_two_signs(columns: list[pl.Series], fault: ColumnError) -> None:
    """Refuse a table with decimal points and commas that may be decimal: no option reads it."""
    texts = [column for column in columns if column.dtype == pl.String]
    commas, points = decimal_signs(texts)
    what = "Decimal commas" if commas else "Commas"
    commas = commas or [column.name for column in texts if is_ambiguous(column)]
    if points and not commas and fault.way_out == PRICE_HINT:
        raise TableError(
            f"{fault.what} Decimal points occur in {_names(points)}, which --decimal , refuses. "
            "Remove the currency signs, and the points if they separate thousands."
        )
    if commas and points and len({*commas, *points}) > 1:
        raise TableError(
            f"{fault.what} {what} occur in {_names(commas)} and decimal points in "
            f"{_names(points)}. Write all numbers with a decimal point; if commas separate "
            "thousands, remove them."
        )


def _names(columns: list[str]) -> str:
    """Names of columns in backquotes, the first few."""
    more = ", ..." if len(columns) > FAULTS_SHOWN else ""
    return ", ".join(f"`{name}`" for name in columns[:FAULTS_SHOWN]) + more


def _together(faults: dict[str, ColumnError]) -> str:
    """Several faults in one message, the first few in full."""
    shown = [error.what for error in faults.values()][:FAULTS_SHOWN]
    more = (
        [f"{len(faults) - len(shown)} more columns have the same problem."]
        if len(faults) > len(shown)
        else []
    )
    ways = [error.way_out for error in faults.values()]
    hints = (DECIMAL_HINT, REMOVE_HINT, POINT_HINT, PRICE_HINT, MODEL_HINT, TEXT_HINT)
    needed = [hint for hint in hints if any(hint in way for way in ways)]
    features = [name for name, error in faults.items() if not isinstance(error, TargetError)]
    leave = f"leave features out with {drop_option(*features)}."
    return " ".join(
        [
            f"{len(faults)} columns cannot be read.",
            *shown,
            *more,
            *needed,
            *([] if {*ways} <= {DECIMAL_HINT, PRICE_HINT} else [f"Correct them, or {leave}"]),
        ]
    )


def drop_option(*names: str) -> str:
    """The option that leaves out columns."""
    return f"--drop '{','.join(names)}'"


def feature(column: pl.Series, decimal: str = ".", *, asked_for: bool = True) -> pl.Series:
    """A column as numbers, as dates, or as categories if most of its cells are words.

    Text that looks like an id is returned unchanged, unless the column is asked for.
    """
    found = _typed(column, decimal)
    if found.null_count() == len(found):
        raise ColumnError(
            f"The column `{column.name}` must hold values, got none.",
            f"Leave it out with {drop_option(column.name)}.",
        )
    if found.dtype == pl.Float64 and found.drop_nulls().is_between(*DATED).all():
        form = format_of(categories(column))
        found = found if form is None else parsed(categories(column), form)
    if found.dtype == pl.String and (asked_for or not is_id(found)):
        _check_categories(found)
    return found


def target(column: pl.Series, decimal: str = ".", role: str = "target") -> pl.Series:
    """A column of numbers to predict, or with another role, such as weights."""
    found = _typed(column, decimal)
    some = found.drop_nulls()
    if some.is_empty():
        raise TargetError(
            f"The {role} `{column.name}` must hold values, got none.", "Name another column."
        )
    if found.dtype != pl.Float64:
        kind = "text" if found.dtype == pl.String else "dates"
        commas = found.dtype == pl.String and some.str.contains(COMMA).all()
        words = found.dtype == pl.String and not commas and not _have_units(some)
        raise (TextTargetError if words else TargetError)(
            f"The {role} `{column.name}` must hold numbers, got {kind} such as {short(some[0])}.",
            _comma_hint(some) if commas else _way_out_of_texts(some, role),
        )
    return found


def outcome(column: pl.Series, decimal: str = ".") -> pl.Series:
    """A column to predict: numbers, or text that names classes."""
    found = _typed(column, decimal)
    if found.dtype != pl.String or found.null_count() == len(found):
        return target(column, decimal)
    try:
        _check_categories(found)
    except ColumnError as error:  # its advice to leave the column out does not fit a target
        some = found.drop_nulls()
        if error.way_out in (DECIMAL_HINT, THOUSANDS_HINT):
            raise TargetError(error.what, error.way_out) from error
        raise TargetError(
            f"The target `{column.name}` must hold numbers or at most {MOST_CATEGORIES} classes, "
            f"got {some.n_unique()} different texts such as {short(some[0])}.",
            _way_out_of_texts(some),
        ) from error
    return found


def classes(column: pl.Series, decimal: str = ".") -> pl.Series:
    """A column of class labels, which are texts if any of them is a word."""
    if column.dtype != pl.String:
        return outcome(column, decimal)
    texts = categories(column)
    is_word = texts.is_not_null() & numbers_of(texts, decimal).is_null()
    words = is_word & ~texts.str.contains(_other_numbers(decimal)).fill_null(False)
    few = 0 < words.sum() < texts.count() / 2
    return texts if few and texts.n_unique() <= MOST_CATEGORIES else outcome(column, decimal)


def _way_out_of_texts(some: pl.Series, role: str = "target") -> str:
    """Advice on a text target: clean its numbers, or name another column."""
    return UNIT_HINT if _have_units(some) else f"Name another column with --{role}."


def few_words(column: pl.Series, decimal: str) -> pl.Series | None:
    """Where words without a digit are among nearly nothing but numbers; None if nowhere.

    A text with digits may be a number that is written in another way, and is an error.
    """
    if column.dtype != pl.String:
        return None
    texts = categories(column)
    words = texts.is_not_null() & numbers_of(texts, decimal).is_null()
    few = 0 < words.sum() <= (1 - NEARLY_ALL) * texts.count()
    return words if few and not texts.filter(words).str.contains(r"\d").any() else None


def outcome_of_part(column: pl.Series) -> pl.Series:
    """A column to predict in one part of a table; the part may hold no value."""
    found = _typed(column, ".")
    return found if found.null_count() == len(found) else outcome(column)


def labels(column: pl.Series) -> pl.Series:
    """Labels of classes: text unchanged, numbers as whole numbers or as text."""
    if column.n_unique() > MOST_CATEGORIES:
        raise TargetError(
            f"The target `{column.name}` must hold at most {MOST_CATEGORIES} classes, got "
            f"{column.n_unique()}.",
            "Use --task regression for numbers.",
        )
    if column.n_unique() == 1:
        raise TargetError(
            f"The target `{column.name}` must hold at least two classes, got {short(column[0])} in "
            "all rows.",
            "Name another column with --target.",
        )
    counts = column.value_counts(sort=True)
    rare = counts.filter(pl.col("count") == 1)[column.name].to_list()
    if rare:
        shown = ", ".join(map(short, rare[:FAULTS_SHOWN]))
        raise TargetError(
            f"The target `{column.name}` must have at least two rows of each class, got one of "
            f"{shown}{', ...' if len(rare) > FAULTS_SHOWN else ''}.",
            "Remove these rows, or use --task regression for numbers.",
        )
    texts = column.dtype == pl.String or (column != column.floor()).any()
    return column.cast(pl.String if texts else pl.Int64)


def numbers(column: pl.Series, decimal: str = ".", *, on_commas: str = "") -> pl.Series:
    """A column that must hold numbers; `on_commas` is the advice on commas that are refused."""
    if _has_numbers(column):
        return _checked(column.cast(pl.Float64).fill_nan(None))
    texts = categories(column)
    found = numbers_of(texts, decimal)
    is_word = texts.is_not_null() & found.is_null()
    if is_word.any():
        raise _wrong_number(texts, is_word, decimal, on_commas)
    return _checked(found)


def categories(column: pl.Series) -> pl.Series:
    """A column as trimmed text, with null for anything that means a missing value."""
    if _has_numbers(column):
        return column.cast(pl.String)
    if is_date(column.dtype):
        return column.dt.to_string("iso")
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        raise ColumnError(
            f"The column `{column.name}` must hold numbers, texts or dates, got {column.dtype}.",
            f"Leave it out with {drop_option(column.name)}.",
        )
    texts = column.cast(pl.String).str.strip_chars()
    return texts.set(texts.is_in(MISSING), None)


def dates(column: pl.Series, form: str | None) -> pl.Series:
    """A column that must hold dates, in the given format or, if there is none, in any."""
    if is_date(column.dtype):
        return as_dates(column)
    texts = categories(column)
    form = form or format_of(texts) or "%Y-%m-%d"
    found = parsed(texts, form)
    wrong = texts.is_not_null() & found.is_null()
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise ColumnError(
            f"The column `{column.name}` must hold dates of the form {form}, got "
            f"{short(texts[row])} in row {row + 1} of the data.",
            "Write all dates in the format of the training data.",
        )
    return found


def is_id(column: pl.Series) -> bool:
    """Whether a column numbers or names the rows: whole numbers or text that is never repeated.

    If there are too many different texts to be categories, it is enough that most are unique.
    """
    if column.dtype == pl.Float64:
        return not column.null_count() and looks_like_id(column.name, column.to_numpy())
    some = column.drop_nulls()
    if column.dtype != pl.String or len(some) < 10 or some.str.contains(COMMA).all():
        return False
    n, different = len(some), some.n_unique()
    return different == n or (different > MOST_CATEGORIES and 2 * different > n)


def as_written(column: pl.Series) -> pl.Series:
    """A column of texts as numbers if all are plain numbers, of which nothing is lost."""
    if column.dtype != pl.String:
        return column
    some = column.drop_nulls()
    if some.is_empty() or not some.str.contains(PLAIN).all():
        return column
    return column.cast(pl.Float64 if some.str.contains(".", literal=True).any() else pl.Int64)


def _has_numbers(column: pl.Series) -> bool:
    """Whether a column has a numeric type, or no values."""
    return column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)


def _typed(column: pl.Series, decimal: str) -> pl.Series:
    """A column as numbers, dates or text, depending on most of its cells."""
    if is_date(column.dtype):
        return as_dates(column)
    if _has_numbers(column):
        return numbers(column, decimal)
    texts = categories(column)
    if decimal == ".":
        _refuse_points_in_doubt(texts)
    found = numbers_of(texts, decimal)
    is_word = texts.is_not_null() & found.is_null()
    if not is_word.any():
        return _checked(found)
    words = is_word & ~texts.str.contains(_other_numbers(decimal)).fill_null(False)
    mostly = texts.count() / 2
    mixed = words.sum() < mostly and (words.any() or decimal == ",")
    if is_word.sum() < mostly or mixed:
        raise _wrong_number(texts, is_word, decimal)
    form = format_of(texts)
    return texts if form is None else parsed(texts, form)


def _refuse_points_in_doubt(texts: pl.Series) -> None:
    """Refuse prices whose points may separate thousands, where no cell settles it."""
    found = points_in_doubt(texts)
    if len(found):
        large, small = (numbers_of(found, decimal)[0] for decimal in (",", "."))
        raise ColumnError(
            f"The column `{texts.name}` must hold numbers of one meaning, got {short(found[0])}, "
            f"which is {large:.15g} or {small:.15g}.",
            PRICE_HINT,
        )


def _other_numbers(decimal: str) -> str:
    """The pattern of numbers with the other decimal sign."""
    return POINT if decimal == "," else COMMA


def _wrong_number(
    texts: pl.Series, is_word: pl.Series, decimal: str, on_commas: str = ""
) -> ColumnError:
    """The error for a column of numbers that contains words or another decimal sign."""
    other = is_word & texts.str.contains(_other_numbers(decimal)).fill_null(False)
    words = is_word & ~other
    rows = [int(some.arg_max() or 0) for some in (words, other) if some.any()]
    got = " and ".join(f"{short(texts[row])} in row {row + 1}" for row in rows) + " of the data"
    count = f" (texts in {words.sum()} of {len(texts)} rows)" if words.any() else ""
    hint = POINT_HINT if decimal == "," else on_commas or _comma_hint(texts.filter(other))
    hints = {hint: other, f"{TEXT_HINT} {DROP_HINT}": words}
    return ColumnError(
        f"The column `{texts.name}` must hold numbers, got {got}{count}.",
        " ".join(hint for hint, some in hints.items() if some.any()),
    )


def _checked(column: pl.Series) -> pl.Series:
    """A column of numbers whose squares do not overflow."""
    too_large = column.abs() > LARGEST
    if too_large.any():
        row = int(too_large.arg_max() or 0)
        raise ColumnError(
            f"The column `{column.name}` must hold numbers below {LARGEST:g} in absolute value, "
            f"got {column[row]:g} in row {row + 1} of the data.",
            f"Correct the value. {DROP_HINT}",
        )
    return column


def _comma_hint(some: pl.Series) -> str:
    """Advice on numbers with commas."""
    return THOUSANDS_HINT if may_be_thousands(some) else DECIMAL_HINT


def _check_categories(texts: pl.Series) -> None:
    """Refuse a text column that holds numbers, names or comments instead of categories."""
    some = texts.drop_nulls()
    if some.str.contains(COMMA).all():
        raise ColumnError(
            f"The column `{texts.name}` must hold numbers with a decimal point, got "
            f"{short(some.filter(some.str.contains(',', literal=True))[0])}.",
            _comma_hint(some),
        )
    if some.n_unique() > MOST_CATEGORIES:
        raise ColumnError(
            f"The column `{texts.name}` must hold numbers, dates or at most {MOST_CATEGORIES} "
            f"categories, got {some.n_unique()} different texts such as {short(some[0])}.",
            f"{UNIT_HINT} " * _have_units(some) + f"Leave it out with {drop_option(texts.name)}.",
        )


def _have_units(some: pl.Series) -> bool:
    """Whether most values are numbers with a unit, such as '€ 1,000' or '10 kg'."""
    return some.dtype == pl.String and 2 * some.str.contains(WITH_UNIT).sum() > len(some)


def short(value: object) -> str:
    """A value as quoted in a message."""
    text = str(value)
    return repr(text if len(text) <= 40 else text[:37] + "...")
