"""What the predictions depend on: importance of each column, and partial dependence."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from .._compute.arrays import Array
from ._case import Case
from ._columns import Column

ROWS = 400  # whose predictions are watched
BACKGROUND = 60  # rows over which effect curves are averaged
POINTS = 30
MOST_LEVELS = 12


@dataclass(frozen=True)
class Curve:
    """Mean prediction as one column changes, and the middle 80 % of the rows' own curves."""

    column: Column
    x: Array  # positions of levels for a column of texts
    levels: tuple[str, ...]
    mean: Array
    low: Array
    high: Array


def importances(case: Case) -> list[tuple[Column, float]]:
    """How far predictions move when a column takes the values of other rows, largest first."""
    rng, some = np.random.default_rng(0), case.some_rows(ROWS)
    X = case.X[some]
    before = case.predict(X)
    found = []
    for column in case.columns:
        moved = X.copy()
        moved[:, column.places] = X[rng.permutation(len(X))][:, column.places]
        found.append((column, float(np.sqrt(np.mean((case.predict(moved) - before) ** 2)))))
    return sorted(found, key=lambda item: -item[1])


def curve_of(case: Case, column: Column) -> Curve:
    """The partial dependence of the prediction on a column of numbers or texts."""
    background = case.X[case.some_rows(BACKGROUND)]
    if column.levels:
        counts = case.X[:, column.places].sum(axis=0)
        often = np.sort(np.argsort(-counts, kind="stable")[:MOST_LEVELS])
        settings = np.eye(len(column.levels))[often]
        x, levels = np.arange(len(often), dtype=float), tuple(column.levels[i] for i in often)
    else:
        values = case.X[:, column.places[0]]
        low, high = np.quantile(values, [0.01, 0.99])
        x, levels = np.linspace(low, high, POINTS), ()
        settings = x[:, None]
    rows = np.repeat(background, len(settings), axis=0)
    rows[:, column.places[: settings.shape[1]]] = np.tile(settings, (len(background), 1))
    each = case.predict(rows).reshape(len(background), len(settings))
    mean = each.mean(axis=0)
    own = each - each.mean(axis=1, keepdims=True) + mean.mean()
    ends = np.quantile(own, [0.1, 0.9], axis=0)
    return Curve(column, x, levels, mean, np.minimum(ends[0], mean), np.maximum(ends[1], mean))


@dataclass(frozen=True)
class Surface:
    """Mean prediction over two columns; `values` of shape (len(y), len(x))."""

    across: str
    up: str
    x: Array
    y: Array
    values: Array
    points: Array  # places of rows, and their observed targets
    is_map: bool


def surface_of(case: Case, points: int = 32) -> Surface | None:
    """The prediction over longitude and latitude, or over the only two columns; None for others."""
    pair = _place_columns(case)
    is_map = pair is not None
    if pair is None and len(case.columns) == 2 and all(c.is_number for c in case.columns):
        pair = case.columns[0], case.columns[1]
    if pair is None:
        return None
    i, j = (column.places[0] for column in pair)
    x, y = (np.linspace(case.X[:, k].min(), case.X[:, k].max(), points) for k in (i, j))
    few = case.X[case.some_rows(1 if len(case.columns) == 2 else 12)]
    rows = np.repeat(few, points**2, axis=0)
    across, up = np.meshgrid(x, y)
    rows[:, i], rows[:, j] = np.tile(across.ravel(), len(few)), np.tile(up.ravel(), len(few))
    values = case.predict(rows).reshape(len(few), points, points).mean(axis=0)
    some = case.some_rows(400)
    places = np.column_stack([case.X[some][:, [i, j]], case.y[some]])
    return Surface(pair[0].name, pair[1].name, x, y, values, places, is_map)


def _place_columns(case: Case) -> tuple[Column, Column] | None:
    """The columns of longitude and latitude, by their names."""
    found: dict[str, Column] = {}
    for column in case.columns:
        words = set(re.split(r"[^a-z]+", column.name.lower()))
        for kind, names in (("x", {"lon", "lng", "long", "longitude"}), ("y", {"lat", "latitude"})):
            if column.is_number and words & names:
                found.setdefault(kind, column)
    return (found["x"], found["y"]) if len(found) == 2 else None
