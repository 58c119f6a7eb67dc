"""Importance of each column, and partial dependence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from .._compute.arrays import Array
from ..effects import average_predictions
from ._case import Case, answer
from ._columns import CYCLE_VALUES, YEAR, Column, place_columns
from ._units import labels_of_two

WATCHED_ROWS = 400  # rows whose predictions are used for importances
BACKGROUND = 40  # rows over which effect curves are averaged
POINTS = 20
MOMENTS = 200  # dates of rows that the curve of a date goes through
# Years from the first to the last date of two rounds: with fewer, a cycle may be a trend.
TWO_ROUNDS = {"month": 1.9, "weekday": 13 / 366, "hour": 1 / 366}
DOTS = 400  # rows on a map
CELLS = 32  # of a map, in each direction
MOST_LEVELS = 12
RUG = 150  # rows whose values are marked below a curve
STRAIGHT = 0.99  # share of the variance of a curve that a line explains
FLAT = 0.02  # importances of this share of the deviation of the target are not shown
HEAVY = 5.0  # ratio of the upper to the lower tail of a column from which its axis is logarithmic


@dataclass(frozen=True)
class Curve:
    """Mean outputs as one column changes, and the middle 80 % of the rows' own curves.

    `mean`, `low` and `high` have one row for each class, or one row for a numeric target.
    """

    column: Column
    steps: Steps
    mean: Array
    low: Array
    high: Array
    error: Array | None = None  # half the width of a 95 % interval of the mean, for numbers

    @property
    def is_straight(self) -> bool:
        """Whether the mean of the first output is a straight line, up to 1 % of its variance."""
        x, mean = self.steps.x, self.mean[0]
        return bool(np.ptp(mean) > 0 and np.corrcoef(x, mean)[0, 1] ** 2 > STRAIGHT)


def importances(case: Case) -> list[tuple[Column, float]]:
    """How far predictions change if a column takes values of other rows, largest first."""
    rng, some = np.random.default_rng(0), case.some_rows(WATCHED_ROWS)
    X = case.X[some]
    before = case.outputs(X)
    found = []
    for column in case.columns:
        moved = X.copy()
        moved[:, column.places] = X[rng.permutation(len(X))][:, column.places]
        found.append((column, float(np.sqrt(np.mean((case.outputs(moved) - before) ** 2)))))
    return sorted(found, key=lambda item: -item[1])


def are_flat(case: Case, sizes: list[tuple[Column, float]]) -> bool:
    """Whether no column changes the predictions by more than a small share of their deviation."""
    return bool(max((size for _, size in sizes), default=0.0) <= FLAT * case.outcomes.std())


class Steps(NamedTuple):
    """Values that a column takes along an effect curve."""

    places: list[int]  # columns of X that change
    settings: Array  # their values, a row for each point of the curve
    levels: tuple[str, ...] = ()
    seen: Array = np.empty(0)  # values of some rows within the range
    log: bool = False
    folded: Array | None = None  # (levels, settings): levels as sums of the outputs at settings

    @property
    def x(self) -> Array:
        """Positions of the points on an axis."""
        return np.arange(len(self.levels), dtype=float) if self.levels else self.settings[:, 0]


def steps_of(case: Case, column: Column) -> Steps:
    """The most frequent categories, the two values, or numbers from the 1 % to the 99 % quantile.

    Points are even on a log scale if the upper tail is long.
    """
    if column.levels:
        counts = case.X[:, column.places].sum(axis=0)
        frequent = set(np.argsort(-counts, kind="stable")[:MOST_LEVELS])
        often = [i for i in column.order if i in frequent]
        settings = np.eye(len(column.levels))[often]
        return Steps(column.places, settings, tuple(column.levels[i] for i in often))
    place, *months = along(case, column)
    values, seen = case.X[:, place], case.X[case.some_rows(RUG), place]
    different = np.unique(values)
    if len(different) == 2:
        return Steps([place], different[:, None], labels_of_two(column.name, different))
    low, middle, high = np.quantile(values, [0.01, 0.5, 0.99])
    if low == high:
        low, high = different[0], different[-1]
    if months:
        moments = _moments(case, [place, *months])
        return Steps(
            [place, *months], moments[(low <= moments[:, 0]) & (moments[:, 0] <= high)], seen=seen
        )
    log = bool(low > 0 and high - middle > HEAVY * (middle - low))
    x = (np.geomspace if log else np.linspace)(low, high, POINTS)
    return Steps([place], x[:, None], seen=seen[(low <= seen) & (seen <= high)], log=log)


def curves_of(case: Case, column: Column) -> list[Curve]:
    """Partial dependence of the prediction on a column; for a date, on each of its parts."""
    cycles = cycles_of(case, column)
    along = not cycles or any(case.table.names[place].endswith(YEAR) for place in column.places)
    return ([_curve(case, column, steps_of(case, column))] if along else []) + cycles


def cycles_of(case: Case, column: Column) -> list[Curve]:
    """The partial dependence of the prediction on the months, weekdays and hours of a date.

    Only those of which the dates have two rounds.
    """
    place, *months = along(case, column)
    is_date = case.table.names[place].endswith(YEAR)
    found = []
    for name in CYCLE_VALUES:
        places = _waves(case, column.name, name)
        if len(places) == 2 and not (is_date and np.ptp(case.X[:, place]) < TWO_ROUNDS[name]):
            steps = (
                season_of(case, [place, *months])
                if places == months
                else cycle_of(case, places, name)
            )
            found.append(_curve(case, Column(name_of_cycle(column.name, name), places), steps))
    return found


def cycle_effects(
    case: Case, column: Column, outputs: Iterable[int]
) -> Iterator[tuple[int, str, str, float]]:
    """For cycles of a date and outputs k: k, name, highest and lowest value, and the difference."""
    for curve in cycles_of(case, column):
        for k in outputs:
            mean, levels = curve.mean[k], curve.steps.levels
            contrast = f"{levels[mean.argmax()]} - {levels[mean.argmin()]}"
            yield k, curve.column.name, contrast, float(np.ptp(mean))


def along(case: Case, column: Column) -> list[int]:
    """Places of a column that change along its curve: of a date its year, and the month with it.

    The year has its fraction, so that a model may keep the season in either of them.
    """
    years = [place for place in column.places if case.table.names[place].endswith(YEAR)]
    months = _waves(case, column.name, "month") if years else []
    return [(years or column.places)[0], *(months if len(months) == 2 else [])]


def _moments(case: Case, places: list[int]) -> Array:
    """Year and month of some rows, in the order of time."""
    return np.unique(case.X[case.some_rows(MOMENTS)][:, places], axis=0)


def season_of(case: Case, places: list[int]) -> Steps:
    """Means over the days of each month in some rows, after a straight trend by least squares."""
    moments = _moments(case, places)
    year, *waves = moments.T
    # Rounded, as a first of March may be at 1.9999999.
    month = np.floor(np.round(np.arctan2(*waves) * (6 / np.pi), 6)).astype(int) % 12
    seen = np.unique(month)
    parts = np.column_stack([month[:, None] == seen, year - year.mean()])
    levels = tuple(str(i + 1) for i in seen)
    return Steps(places, moments, levels, folded=np.linalg.pinv(parts)[:-1])


def _waves(case: Case, date: str, cycle: str) -> list[int]:
    """Places of the sine and the cosine of a cycle, if they are features."""
    names = [f"{date} ({cycle} {wave})" for wave in ("sine", "cosine")]
    return [case.table.names.index(name) for name in names if name in case.table.names]


def times_of(case: Case, place: int) -> Array:
    """Values of a column of times; a date includes its hour, which is a separate feature."""
    name, x = case.table.names[place], case.X[:, place]
    hour = _waves(case, name.removesuffix(YEAR), "hour") if name.endswith(YEAR) else []
    if len(hour) < 2:
        return x
    share = np.round(np.arctan2(*case.X[:, hour].T) / (2 * np.pi), 6)  # midnight is no -1e-17
    return np.asarray(x + share % 1 / 366)


def name_of_cycle(column: str, cycle: str) -> str:
    """The name of a part of a date, which is the title of its effect."""
    return f"{cycle} of the year" if column.lower() == cycle else f"{column} ({cycle})"


def cycle_of(case: Case, places: list[int], cycle: str) -> Steps:
    """Sine and cosine over one cycle, at values that occur in some row."""
    seen = np.unique(np.arctan2(*case.X[:, places].T) / (2 * np.pi))
    values = CYCLE_VALUES[cycle]
    away = {k: np.abs((seen - share + 0.5) % 1 - 0.5).min() for k, share in values.items()}
    some = [k for k in values if away[k] < 0.5 / len(values) + 1e-9]
    angles = 2 * np.pi * np.array([values[k] for k in some])
    return Steps(places, np.column_stack([np.sin(angles), np.cos(angles)]), tuple(some))


def _curve(case: Case, column: Column, steps: Steps) -> Curve:
    """Mean outputs at each step, over some rows."""
    background = case.X[case.some_rows(BACKGROUND)]
    count = len(steps.settings)
    rows = np.repeat(background, count, axis=0)
    rows[:, steps.places] = np.tile(steps.settings, (len(background), 1))
    each = case.outputs(rows).reshape(len(background), count, -1).transpose(2, 0, 1)
    if steps.folded is not None:
        each = each @ steps.folded.T
    mean = each.mean(axis=1)
    level = mean.mean(axis=1)[:, None, None] - each.mean(axis=2, keepdims=True)
    own = np.clip(each + level, 0, 1) if case.classes else each + level
    low, high = np.quantile(own, [0.1, 0.9], axis=1)
    error = None if steps.levels else _error(case, steps, background)
    return Curve(column, steps, mean, np.minimum(low, mean), np.maximum(high, mean), error)


def _error(case: Case, steps: Steps, background: Array) -> Array | None:
    """Half the width of the 95 % interval of a mean curve; None for classes."""
    if case.classes:
        return None
    places = steps.places
    values = (steps.settings - case.centre[places]) / case.scale[places]
    found = answer(average_predictions, case.estimator, places, values, case.seen(background))
    if found is None or has_no_error(found.estimate, found.std_error, found.conf_high):
        return None
    return np.asarray(found.conf_high - found.estimate)


def has_no_error(estimate: Any, std_error: Any, conf_high: Any) -> bool:
    """Whether a 95 % interval is unknown, or wider than with one degree of freedom.

    A model that follows its few rows has fewer degrees of freedom: its intervals become infinite.
    """
    reach = np.asarray(conf_high) - estimate
    return not bool(np.all(reach <= student.ppf(0.975, 1) * np.asarray(std_error) * (1 + 1e-9)))


@dataclass(frozen=True)
class EffectSurface:
    """Mean prediction over two columns; `values` of shape (len(y), len(x))."""

    across: str
    up: str
    x: Array
    y: Array
    values: Array
    points: Array  # places of some rows, and their targets without the effects of other columns
    is_map: bool


def surface_of(case: Case) -> EffectSurface | None:
    """The prediction over longitude and latitude, or over the only two columns; else None."""
    pair = _place_columns(case)
    is_map = pair is not None
    if pair is None and len(case.varied) == 2 and all(c.is_number for c in case.varied):
        pair = case.varied[0], case.varied[1]
    if pair is None:
        return None
    i, j = (column.places[0] for column in pair)
    x, y = (np.linspace(case.X[:, k].min(), case.X[:, k].max(), CELLS) for k in (i, j))
    few = case.X[case.some_rows(1 if len(case.varied) == 2 else 12)]
    rows = np.repeat(few, CELLS**2, axis=0)
    across, up = np.meshgrid(x, y)
    rows[:, i], rows[:, j] = np.tile(across.ravel(), len(few)), np.tile(up.ravel(), len(few))
    values = case.predict(rows).reshape(len(few), CELLS, CELLS).mean(axis=0)
    X, seen = case.X[some := case.some_rows(DOTS)], case.outcomes[some]
    if not case.classes:
        at = np.repeat(few, len(X), axis=0)
        at[:, [i, j]] = np.tile(X[:, [i, j]], (len(few), 1))
        seen = seen - case.predict(X) + case.predict(at).reshape(len(few), -1).mean(axis=0)
    places = np.column_stack([X[:, [i, j]], seen])
    return EffectSurface(pair[0].name, pair[1].name, x, y, values, places, is_map)


def _place_columns(case: Case) -> tuple[Column, Column] | None:
    """The columns of longitude and latitude, by their names."""
    numbers = {column.name: column for column in case.varied if column.is_number}
    found = place_columns(list(numbers))
    return None if found is None else (numbers[found[0]], numbers[found[1]])
