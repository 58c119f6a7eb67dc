"""From a table to features and target: which columns and rows are used."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import polars as pl
from sklearn.compose import ColumnTransformer

from .._checks import require
from ..report._columns import YEAR, columns_prepared, follows_time, place_columns, task_name
from . import _cells
from ._cells import each_column, is_id
from ._dates import Dates, columns_of_parts, format_of, is_date, varying_parts, with_parts
from ._missing import DROP, ERROR, IMPUTE, Losses, complete_rows, costs, filled, gaps, losses
from ._tables import listed, read_table
from ._terminal import WrongUse
from ._text import TableError
from ._written import adorned, inferred_thousands, with_thousands, without_thousands

# The task of a rule that does not use the target: the rows only have to be complete.
IGNORED = "ignored"


class UnknownColumn(WrongUse):
    """A column that was asked for but does not exist."""


@dataclass(frozen=True)
class Reading:
    """How a table is read: its columns, the treatment of gaps, and the format of numbers."""

    features: Sequence[str] = ()
    drop: Sequence[str] = ()
    missing: str = DROP
    decimal: str = "."
    header: bool = True
    sheet: str | None = None
    weights: str | None = None
    task: str = "regression"  # or classification, auto, ignored
    cluster: str | None = None
    on_globe: bool = False  # latitude and longitude are the only features

    @property
    def fills(self) -> bool:
        """Whether gaps of features are filled."""
        return self.missing == IMPUTE


@dataclass(frozen=True)
class Rows:
    """Rows of a table that are used: features as numbers or text, and targets if asked for."""

    X: pl.DataFrame
    y: Any  # an array, of two dimensions for several targets; None without a target
    targets: list[str]
    losses: Losses = field(default_factory=lambda: Losses(0, 0, {}, []))
    dates: dict[str, Dates] = field(default_factory=dict)
    weights: Any = None
    ids: list[str] = field(default_factory=list)  # columns that look like ids and are left out
    clusters: Any = None
    task: str = "regression"
    unused: list[str] = field(default_factory=list)  # other than latitude and longitude
    skipped: list[str] = field(default_factory=list)  # sentences on rows above the header
    unread: list[str] = field(default_factory=list)  # sentences on words among target numbers
    written: dict[str, str] = field(default_factory=dict)  # notes on text read as numbers
    thousands: list[str] = field(default_factory=list)  # features with separated thousands
    inferred: list[str] = field(default_factory=list)  # sentences on commas that may be decimal
    places: Any = None  # positions of the rows in the file
    first_id: pl.Series | None = None  # the first column that looks like an id, all rows

    @property
    def target(self) -> str | None:
        """The name of the target, if there is one."""
        return ", ".join(self.targets) if self.targets else None

    def name_in_file(self, i: int) -> str:
        """The number of a row in the file, without the header, and its id if there is one."""
        place = int(self.places[i])
        if self.first_id is None or not self.first_id[place]:
            return f"row {place + 1:,}"
        return f"row {place + 1:,} with {self.first_id.name} {self.first_id[place]}"

    @cached_property
    def time(self) -> str | None:
        """The column whose times the rows follow; None if they follow none."""
        times = (name for name in self.numbers if follows_time(name, self.X[name].to_numpy()))
        return next(times, None)

    @property
    def times(self) -> Any:
        """The times of the rows, or their positions if no column has times."""
        return np.arange(len(self.X)) if self.time is None else self.X[self.time].to_numpy()

    def oldest_first(self) -> "Rows":
        """The rows in the order of time, if they follow it backwards."""
        if self.time is None or self.times[0] < self.times[-1]:
            return self
        given = {name: getattr(self, name) for name in ("y", "weights", "clusters", "places")}
        turned: Any = {name: None if part is None else part[::-1] for name, part in given.items()}
        return replace(self, X=self.X.reverse(), **turned)

    @property
    def numbers(self) -> list[str]:
        """Names of the columns that hold numbers."""
        return [name for name, kind in self.X.schema.items() if kind == pl.Float64]

    @property
    def ranges(self) -> dict[str, list[float]]:
        """The smallest and the largest value of each column of numbers, of dates in years."""
        waves = {name for name in self.made_of if not name.endswith(YEAR)}
        columns = (self.X[name].drop_nulls() for name in self.numbers if name not in waves)
        return {column.name: [*column.sort()[[0, -1]]] for column in columns}

    @property
    def marked(self) -> list[str]:
        """Columns of numbers whose gaps are marked; for the parts of a date, only the first."""
        known = {self.made_of.get(name, name): name for name in reversed(self.numbers)}
        return [name for name in self.numbers if name in known.values()]

    @property
    def made_of(self) -> dict[str, str]:
        """For each part of a date, the column that it comes from."""
        return columns_of_parts(self.dates)

    @property
    def gappy(self) -> pl.DataFrame:
        """Columns whose gaps are reported, a date once and under its own name."""
        names = {name: self.made_of.get(name, name) for name in self.marked + self.texts}
        return self.X.select(pl.col(name).alias(known) for name, known in names.items())

    def prepared(self, reading: Reading, *, standardize: bool) -> ColumnTransformer:
        """The transformer that prepares the columns, not fitted yet."""
        marked = self.marked if reading.fills else None
        return columns_prepared(self.numbers, self.texts, standardize=standardize, marked=marked)

    def filled(self) -> "Rows":
        """Rows with the gaps of features filled and marked."""
        known = {name: self.made_of.get(name, name) for name in self.marked}
        return replace(self, X=filled(self.X, known))

    @property
    def texts(self) -> list[str]:
        """Names of the columns that hold categories."""
        return [name for name, kind in self.X.schema.items() if kind == pl.String]


def read_rows(source: str, targets: Sequence[str] = (), reading: Reading | None = None) -> Rows:
    """Features and targets of the rows of a table that are complete, or whose gaps are filled."""
    how = reading or Reading()
    raw, skipped, separators = read_table(source, header=how.header, sheet=how.sheet)
    if raw.is_empty():
        raise TableError(f"`{source}` must hold rows, got none.")
    names = columns_named(raw.columns, targets)
    weights = [] if how.weights is None else [column_named(raw.columns, how.weights)]
    clusters = [] if how.cluster is None else [column_named(raw.columns, how.cluster)]
    roles = dict.fromkeys(clusters, "the cluster") | dict.fromkeys(weights, "the weights")
    roles |= dict.fromkeys(names, "the target")
    chosen = feature_columns(raw.columns, roles, how.features, how.drop)
    given = chosen
    if how.on_globe:
        chosen = latitude_and_longitude(chosen, named=bool(how.features))
        require("pyproj", extra="geo")
    inferred = inferred_thousands(raw, how.decimal, separators)
    bare = without_thousands(raw, inferred)
    keeps = how.missing == ERROR or (how.task == "classification" and len(names) == 1)
    unread = [] if keeps else [_cells.few_words(bare[n], how.decimal) for n in names]
    words = {found.name: found for found in unread if found is not None}
    bare = bare.with_columns(bare[name].set(found, None) for name, found in words.items())
    frame, ids = _typed(bare, chosen, roles, how)
    chosen = [name for name in chosen if name not in ids]
    needed = [*roles] if how.fills else frame.columns
    kept = frame.drop_nulls(needed) if how.fills else complete_rows(frame, how.missing)
    if kept.is_empty():
        lacking = gaps(frame)
        raise TableError(
            f"`{source}` must hold a row without missing values, got none: {costs(lacking)}. Fill "
            f"gaps with --missing impute, or leave out a column such as `{next(iter(lacking))}`."
        )
    _check_values(kept.select(chosen))
    dates = {
        name: _dates_of(raw[name], kept[name]) for name in chosen if is_date(frame[name].dtype)
    }
    y, task = _targets(kept.select(names), how.task)
    notes = dict(_notes_on_texts(raw, bare, frame, how.decimal, inferred))
    return Rows(
        with_parts(kept.select(chosen), dates),
        y,
        names,
        losses(frame.select(needed), kept),
        dates,
        kept[weights[0]].to_numpy() if weights else None,
        ids,
        kept[clusters[0]].to_numpy() if clusters else None,
        task,
        [name for name in given if how.on_globe and name not in chosen],
        skipped,
        [_unread(raw[name], found) for name, found in words.items()],
        {name: note for name, note in notes.items() if name not in inferred},
        with_thousands(raw.select(chosen), frame, how.decimal),
        [note for name, note in notes.items() if name in inferred],
        _complete(frame, needed),
        raw[ids[0]] if ids else None,
    )


def _check_values(kept: pl.DataFrame) -> None:
    """Refuse features that are missing in all rows that are used: there is nothing to fill in."""
    empty = [column.name for column in kept if column.null_count() == len(kept)]
    if empty:
        raise TableError(
            f"The column `{empty[0]}` must hold values in the {len(kept):,} rows that are used, "
            f"got none. Leave it out with {_cells.drop_option(*empty)}."
        )


def _unread(raw: pl.Series, words: pl.Series) -> str:
    """The sentence on words among the numbers of a target."""
    rows = words.arg_true().to_list()
    shown = [f"{_cells.short(raw[row])} in row {row + 1}" for row in rows[: _cells.FAULTS_SHOWN]]
    more = ", ..." if len(rows) > len(shown) else ""
    are = "is not a number and is" if len(rows) == 1 else "are not numbers and are"
    return (
        f"{len(rows)} of {len(raw):,} values of `{raw.name}` {are} left out: {', '.join(shown)}"
        f"{more} of the data."
    )


def _notes_on_texts(
    raw: pl.DataFrame,
    bare: pl.DataFrame,
    frame: pl.DataFrame,
    decimal: str,
    inferred: Sequence[str],
) -> Iterator[tuple[str, str]]:
    """Text columns that were read as numbers, each with a sentence."""
    for column in frame:
        name = column.name
        if raw[name].dtype == pl.String and column.dtype == pl.Float64:
            texts, without = _cells.categories(raw[name]), _cells.categories(bare[name])
            found = adorned(texts, without, decimal)
            if found is not None:
                text, number = found
                example = f"{_cells.short(text)} as {number:.15g}"
                yield (
                    name,
                    f"Commas in `{name}` are read as separators of thousands: {example}, because "
                    "other numbers have decimal points. If they are decimal commas, write points."
                    if name in inferred
                    else f"Texts in `{name}` are read as numbers: {example}.",
                )


def _typed(
    raw: pl.DataFrame, chosen: list[str], roles: dict[str, str], how: Reading
) -> tuple[pl.DataFrame, list[str]]:
    """Typed features and columns with a role, without ids, and the names of the ids."""
    asked_for = len(chosen) == 1 or bool(how.features) or how.on_globe
    one = how.task != "regression" and [*roles.values()].count("the target") == 1
    outcome = _cells.classes if how.task == "classification" else _cells.outcome
    kinds: dict[str, Any] = {
        "the cluster": lambda column, decimal: _cells.categories(column),
        "the weights": partial(_cells.target, role="weights"),
        "the target": outcome if one else _cells.target,
    }
    as_feature = _cells.numbers if how.on_globe else partial(_cells.feature, asked_for=asked_for)
    works = dict.fromkeys(chosen, as_feature) | {name: kinds[role] for name, role in roles.items()}
    columns = each_column(lambda c: works[c.name](c, how.decimal), (raw[name] for name in works))
    frame = pl.DataFrame(columns)
    ids = [] if asked_for else [name for name in chosen if is_id(frame[name])]
    if len(ids) == len(chosen):
        raise TableError(
            f"No feature is left: {listed(ids)} look like ids. Name the "
            "features to use with --features."
        )
    return frame.drop(ids), ids


def _complete(frame: pl.DataFrame, needed: Sequence[str]) -> Any:
    """Positions of the rows that have a value in all needed columns."""
    has_all = np.ones(len(frame), dtype=bool)
    for name in needed:
        has_all &= frame[name].is_not_null().to_numpy()
    return np.flatnonzero(has_all)


def _targets(columns: pl.DataFrame, asked: str) -> tuple[Any, str]:
    """Targets as an array, one-dimensional for a single target, and the task.

    None if there are no targets, or if they are ignored.
    """
    if asked == IGNORED:
        return None, "regression"
    if columns.width != 1:
        return columns.to_numpy() if columns.width else None, "regression"
    y = columns.to_series().to_numpy()
    task = task_name(asked, y)
    if task == "classification":
        y = np.array(_cells.labels(columns.to_series()).to_list())
    return y, task


def _dates_of(raw: pl.Series, dates: pl.Series) -> Dates:
    """How a column of dates is read, and its features."""
    form = None if is_date(raw.dtype) else format_of(_cells.categories(raw))
    return Dates(form, varying_parts(dates, form))


def typed_columns(
    frame: pl.DataFrame,
    source: str,
    *,
    numbers: Sequence[str],
    texts: Sequence[str] = (),
    outcomes: Sequence[str] = (),
    dates: dict[str, Dates] | None = None,
    decimal: str = ".",
    thousands: Sequence[str] = (),
    on_commas: str = "",
) -> pl.DataFrame:
    """Named columns of a frame as a model takes them, with nulls for missing values.

    Commas separate thousands in the columns `thousands`; `on_commas` is the advice on all others.
    """
    as_numbers: Any = partial(_cells.numbers, decimal=decimal, on_commas=on_commas)
    works = dict.fromkeys(numbers, as_numbers)
    works |= dict.fromkeys(texts, _cells.categories)
    works |= dict.fromkeys(outcomes, _cells.outcome_of_part)
    works |= {name: partial(_cells.dates, form=date.format) for name, date in (dates or {}).items()}
    absent = [name for name in works if name not in frame.columns]
    if absent:
        raise UnknownColumn(_lacking(source, absent, frame.columns, list(works)))
    bare = without_thousands(frame, [name for name in thousands if name in numbers])
    given = (bare[name] if name in numbers else frame[name] for name in works)
    columns = each_column(lambda c: works[c.name](c), given)
    return pl.DataFrame(columns)


def _lacking(source: str, absent: list[str], names: list[str], needed: list[str]) -> str:
    """The message on columns that a table lacks, with likely names of these."""
    others = [name for name in names if name not in needed]
    meant = {name: near for name in absent if (near := nearest(name, others))}
    slips = "; ".join(f"is `{near}` the column `{name}`" for name, near in meant.items())
    hint = f"{slips[0].upper()}{slips[1:]}? Then rename it" if meant else f"It has {listed(names)}"
    which = "columns" if len(absent) > 1 else "column"
    return f"`{source}` has no {which} {listed(absent)}, which the model needs. {hint}."


def in_place(results: pl.DataFrame, complete: pl.Series) -> pl.DataFrame:
    """Results for the complete rows of a frame, in their rows, with nulls in the others."""
    position = pl.when(complete).then(complete.cast(pl.Int64).cum_sum() - 1)
    return results.select(pl.all().gather(complete.to_frame().select(position).to_series()))


def column_named(names: Sequence[str], wanted: str, kind: str = "column") -> str:
    """The column with this name or at this position: 1 is the first, -1 the last."""
    if wanted in names:
        return wanted
    if re.fullmatch(r"[+-]?\d{1,9}", wanted) and 1 <= abs(int(wanted)) <= len(names):
        position = int(wanted)
        return names[position - 1 if position > 0 else position]
    if len(names) == 1 and kind == "column":
        raise UnknownColumn(
            f"There is no {kind} `{wanted}`: the table has one column, {listed(names)}. Its cells "
            "must be separated by commas, semicolons, tabs or |."
        )
    near = nearest(wanted, names)
    hint = f"Did you mean `{near}`?" if near else f"There are {listed(names)}."
    raise UnknownColumn(f"There is no {kind} `{wanted}`. {hint}")


def nearest(wanted: str, names: Sequence[str], cutoff: float = 0.6) -> str | None:
    """The name that was probably meant: it has more words, or differs in case or a few letters.

    `cutoff` is the lowest similarity, from 0 to 1.
    """
    folded = {name.casefold(): name for name in reversed(names)}
    word = wanted.casefold()
    longer = [name for name in folded if word in re.split(r"[\W_]+", name) and name != word]
    near = [
        *([word] if word in folded else longer),
        *difflib.get_close_matches(word, folded, 1, cutoff),
    ]
    return folded[near[0]] if near else None


def columns_named(names: Sequence[str], wanted: Sequence[str], kind: str = "column") -> list[str]:
    """The columns of a list whose entries may be several names joined by commas."""
    parts = [[text] if text in names else text.split(",") for text in wanted]
    found = [column_named(names, part.strip(), kind) for texts in parts for part in texts]
    return list(dict.fromkeys(found))


def feature_columns(
    names: Sequence[str], roles: dict[str, str], features: Sequence[str], drop: Sequence[str]
) -> list[str]:
    """The features: those asked for, or all columns without another role; minus dropped columns."""
    keep = columns_named(names, features) if features else [n for n in names if n not in roles]
    out = columns_named(names, drop)
    for name, role in roles.items():
        if name in out:
            raise UnknownColumn(f"`{name}` cannot be dropped: it is {role}.")
        if name in keep:
            raise UnknownColumn(f"`{name}` cannot be a feature: it is {role}.")
    chosen = [name for name in keep if name not in out]
    if not chosen:
        raise UnknownColumn("At least one feature must be left, got none.")
    return chosen


def latitude_and_longitude(names: list[str], *, named: bool) -> list[str]:
    """The columns of latitude and longitude: found by name, or the two that were asked for."""
    found = place_columns(names)
    if found and not (named and len(names) > 2):
        return [found[1], found[0]]
    if named and len(names) == 2:
        return names
    raise UnknownColumn(
        f"--metric geodesic needs a latitude and a longitude column, got {listed(names)}. "
        "Name them in this order: --features LATITUDE,LONGITUDE."
    )
