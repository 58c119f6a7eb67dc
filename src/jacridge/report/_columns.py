"""The columns of a table: how they become numbers, and which encoded columns belong together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .._checks import check_choice, check_no_dates, check_rows
from .._compute.arrays import Array

TASK_NAMES = ("regression", "classification")
# A column whose name says that it holds ids does so if more than this share of its values differ.
NEARLY_DISTINCT = 0.95
# Words in the names of columns.
IDS = {"id", "key", "nr", "no", "index", "uuid"}
YEAR = " (year)"  # ends the name of the part of a date that grows with time
WAVES = (" sine)", " cosine)")  # end the names of cyclic parts
# Cyclic parts of a date: the values drawn for each, and their positions in the cycle.
CYCLE_VALUES: dict[str, dict[str, float]] = {
    "month": {str(i + 1): i / 12 for i in range(12)},
    "weekday": {
        day: i / 7 for i, day in enumerate(("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"))
    },
    "hour": {str(i): i / 24 for i in range(0, 24, 2)},
}
MARK = " (missing)"  # ends the name of a column that marks the gaps of another column
GAP = "(missing)"  # the category of missing text
# Names of remarks.
GAPS_FILLED, TEXTS_READ, TITLES = "gaps filled", "texts as numbers", "rows above the header"
UNUSED, UNREAD, COMMAS = "columns left out", "values left out", "commas as thousands"
DOUBTS = (UNUSED, UNREAD, COMMAS)  # reasons for doubt, which the verdict of a report names
FEWEST_TIMES = 10
# Rank correlation from which columns say nearly the same, and largest number of columns compared.
ALIKE_RANKS, MOST_COMPARED, NAMED_PAIRS = 0.98, 500, 3
MOST_NESTED = 50  # text columns that are compared
TIME_WORDS = {"year", "month", "week", "day", "hour", "minute", "second", "time", "t", "step"}


def task_name(asked: str, y: Any) -> str:
    """The task that is asked for; with "auto", text, booleans and two values are classes.

    Each of the two values must occur more than once.
    """
    if check_choice("task", asked, ("auto", *TASK_NAMES)) != "auto":
        return asked
    values = np.asarray(y)
    if values.ndim == 1 and values.dtype.kind in "USOb":
        return "classification"
    counts = np.unique(values, return_counts=True)[1]
    return "classification" if len(counts) == 2 and counts.min() > 1 else "regression"


def looks_like_id(name: str, x: Array) -> bool:
    """Whether whole numbers number the rows: if consecutive, or by their name if few repeat.

    Consecutive years, days and hours do not. Rows that were copied repeat their ids.
    """
    if len(x) < 10 or (x != np.floor(x)).any():
        return False
    words = _words_in(name)
    if words & IDS:
        return len(np.unique(x)) > NEARLY_DISTINCT * len(x)
    return bool((np.diff(x) == 1).all() and not words & TIME_WORDS)


def follows_time(name: str, x: Array) -> bool:
    """Whether rows are in time order: whether a column of years, days or hours is sorted.

    The years of a date may repeat, because several rows may have the same date.
    """
    values, steps = len(np.unique(x)), np.diff(x)
    if values < FEWEST_TIMES or not ((steps >= 0).all() or (steps <= 0).all()):
        return False
    return name.endswith(YEAR) or (2 * values > len(x) and bool(_words_in(name) & TIME_WORDS))


def _words_in(name: str) -> set[str]:
    """The words of a name such as `PassengerId` or `sold_years`, in the singular."""
    parts = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
    return {word.removesuffix("s") for word in parts}


def place_columns(numbers: Sequence[str]) -> tuple[str, str] | None:
    """The columns of longitude and latitude, by their names; None if one is missing."""
    found = [
        next((name for name in numbers if words & set(re.split(r"[^a-z]+", name.lower()))), None)
        for words in ({"lon", "lng", "long", "longitude"}, {"lat", "latitude"})
    ]
    return (found[0], found[1]) if found[0] and found[1] else None


def columns_prepared(
    numbers: Sequence[Any],
    texts: Sequence[Any],
    *,
    standardize: bool,
    marked: Sequence[Any] | None = None,
) -> ColumnTransformer:
    """Numbers standardised, categories one-hot.

    Two categories then have the squared distance 2, the mean for two standardised numbers. With
    `marked`, gaps are filled, and additional columns show the gaps of the marked columns; missing
    text is a category.
    """
    scale = StandardScaler() if standardize else "passthrough"
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    if marked is not None:
        scale = make_pipeline(SimpleImputer(strategy="median"), scale)
        fill = SimpleImputer(strategy="constant", fill_value=GAP, missing_values=None)
        encode = make_pipeline(fill, encode)
    mark = MissingIndicator(error_on_new=False)
    parts = [
        ("numbers", scale, list(numbers)),
        ("categories", encode, list(texts)),
        ("gaps", mark, list(marked or ())),
    ]
    return ColumnTransformer([part for part in parts if part[2]])


@dataclass(frozen=True)
class Column:
    """A column of the table as read, and the encoded columns that represent it."""

    name: str
    places: list[int]
    levels: tuple[str, ...] = ()  # of a text column

    @property
    def is_number(self) -> bool:
        """Whether one encoded column holds its values."""
        return not self.levels and len(self.places) == 1

    @property
    def order(self) -> list[int]:
        """Positions of the levels as shown: missing text last, never the reference."""
        return sorted(range(len(self.levels)), key=lambda i: self.levels[i] == GAP)


@dataclass(frozen=True)
class Table:
    """Features as numbers: X holds the numeric columns, then one column for each category."""

    X: Array
    names: list[str]
    numbers: list[str]
    texts: list[str]
    columns: list[Column]

    @cached_property
    def time(self) -> int | None:
        """The column of times in whose order the rows are; None if there is none."""
        found = (i for i, name in enumerate(self.numbers) if follows_time(name, self.X[:, i]))
        return next(found, None)

    @property
    def is_newest_first(self) -> bool:
        """Whether the rows follow time backwards, as in many exports."""
        return self.time is not None and bool(self.X[0, self.time] > self.X[-1, self.time])

    @property
    def time_name(self) -> str:
        """The name of that column in the table."""
        return "" if self.time is None else self.names[self.time].removesuffix(YEAR)


def deviations(table: Table) -> Array:
    """Standard deviations of the numeric columns; one for categories and for constants."""
    is_number = np.arange(len(table.names)) < len(table.numbers)
    deviation = table.X.std(axis=0)
    return np.where(is_number & (deviation > 0), deviation, 1.0)


def alike(table: Table) -> list[tuple[str, str, float]]:
    """Pairs of numeric columns that rank the rows alike, and their rank correlations.

    The highest correlation comes first. Only the year of a date counts. Very wide tables are not
    searched.
    """
    place_of = {c.name: c.places[0] for c in table.columns if not c.levels}
    place_of = {name: i for name, i in place_of.items() if not table.names[i].endswith(WAVES)}
    names = [name for name, i in place_of.items() if np.ptp(table.X[:, i]) > 0]
    if not 1 < len(names) <= MOST_COMPARED or len(table.X) < FEWEST_TIMES:
        return []
    R = np.corrcoef(rankdata(table.X[:, [place_of[name] for name in names]], axis=0).T)
    found = np.argwhere(np.triu(np.abs(R) > ALIKE_RANKS, 1))
    pairs = [(names[i], names[j], float(R[i, j])) for i, j in found]
    return sorted(pairs, key=lambda pair: -abs(pair[2]))


def on_alike(pairs: Sequence[tuple[str, str, float]]) -> str:
    """The sentence about pairs of columns that say nearly the same."""
    one, *others = (f"`{a}` and `{b}`" for a, b, _ in pairs[:NAMED_PAIRS])
    more = f", and {len(pairs) - NAMED_PAIRS:,} more pairs" if len(pairs) > NAMED_PAIRS else ""
    shown = "; ".join([one, *others]) + more
    verb = "share one effect" if len(pairs) == 1 else "share one effect each"
    return (
        f"Columns that say nearly the same {verb}: {shown}. Leave one out to see the whole effect."
    )


def nested(table: Table) -> list[tuple[str, str]]:
    """Pairs of text columns of which the first determines the second, among rows without gaps.

    Levels of fewer than three rows on average are left out: they would do so by chance. Very wide
    tables are not searched.
    """
    codes = {
        column.name: np.where(
            np.isin(column.levels, GAP)[found := table.X[:, column.places].argmax(axis=1)],
            -1,
            found,
        )
        for column in table.columns
        if 1 < len(column.levels) <= len(table.X) / 3
    }
    if len(codes) > MOST_NESTED:
        return []
    # Columns with more levels come first; of two that determine each other, the one in front.
    names = sorted(codes, key=lambda name: -len(np.unique(codes[name])))
    pairs = combinations(names, 2)
    return [(a, b) for a, b in pairs if _determines(codes[a], codes[b])]


def _determines(fine: Any, coarse: Any) -> bool:
    """Whether each level of a column occurs with one level of another one, which varies."""
    known = (fine >= 0) & (coarse >= 0)
    both = np.unique(np.column_stack([fine[known], coarse[known]]), axis=0)
    return len(np.unique(both[:, 1])) > 1 and len(both) == len(np.unique(both[:, 0]))


def on_nested(fine: str, coarse: str) -> str:
    """The sentence about a column that determines another one."""
    return (
        f"Each `{fine}` belongs to one `{coarse}`, so that their effects cannot be separated; drop "
        "one of them."
    )


def table_of(X: Any, features: Sequence[str] | None, parts: Mapping[str, str]) -> Table:
    """A table from an array, or from a data frame whose columns hold numbers or text.

    `parts` has, for columns made from another column, the name of that column.
    """
    if not hasattr(X, "columns"):
        X = check_rows(X)
        names = [f"x{j}" for j in range(X.shape[1])] if features is None else list(features)
        if len(names) != X.shape[1]:
            raise ValueError(
                f"`features` must name the {X.shape[1]} columns of `X`, got {len(names)} names."
            )
        return Table(X, names, names, [], _together(names, parts))
    wanted = list(features or X.columns)
    check_no_dates(X[wanted])
    is_number = {name: np.asarray(X[name]).dtype.kind in "fiub" for name in wanted}
    numbers = [name for name in wanted if is_number[name]]
    texts = [name for name in wanted if not is_number[name]]
    prepare = columns_prepared(numbers, texts, standardize=False)
    rows = check_rows(np.asarray(prepare.fit_transform(X[wanted]), dtype=np.float64))
    names, columns = [str(name) for name in numbers], _together(map(str, numbers), parts)
    if texts:
        levels_of = prepare.named_transformers_["categories"].categories_
        for name, levels in zip(texts, levels_of, strict=True):
            places = list(range(len(names), len(names) + len(levels)))
            columns.append(Column(str(name), places, tuple(str(level) for level in levels)))
            names += [f"{name} = {level}" for level in levels]
    return Table(rows, names, [str(n) for n in numbers], [str(t) for t in texts], columns)


def _together(names: Any, parts: Mapping[str, str]) -> list[Column]:
    """Numeric columns, with those made from the same column grouped."""
    places: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        places.setdefault(parts.get(name, name), []).append(i)
    return [Column(name, found) for name, found in places.items()]
