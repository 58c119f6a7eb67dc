"""Terms of a table of effects: which features change, by a slope or between two values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._checks import check_choice
from .._compute.arrays import Array

# Separators between the name of a column and its level in the name of a one-hot column.
NAME_SEPARATORS = "_=: .-"

# Quantiles of a feature between which its slope is averaged if kinks leave no slope at the rows.
INNER = (0.05, 0.95)

KINDS = ("auto", "slope", "contrast")


@dataclass(frozen=True)
class Slope:
    """The derivative along one feature."""

    name: str
    column: int
    kind: str = "slope"
    label: str = "dY/dX"


@dataclass(frozen=True)
class Difference:
    """f with some features at the values `one` minus f with them at the values `zero`.

    A value of None adds one unit to the observed value. The difference is divided by `per`.
    """

    name: str
    label: str
    one: dict[int, float | None]
    zero: dict[int, float]
    kind: str = "contrast"
    per: float = 1.0

    def pair(self, X: Array) -> tuple[Array, Array]:
        """The rows of X with the features at both values."""
        X1, X0 = X.copy(), X.copy()
        for column, value in self.one.items():
            X1[:, column] = X[:, column] + 1.0 if value is None else value
        for column, value in self.zero.items():
            X0[:, column] = value
        return X1, X0


Term = Slope | Difference


@dataclass(frozen=True)
class Columns:
    """Names of the features, and what the training rows show of their values."""

    names: Sequence[str]
    X: Array  # training rows of positive weight
    smooth: bool = True  # whether the model has a slope at its own rows

    @cached_property
    def low(self) -> Array:
        """Smallest value of each feature."""
        return self.X.min(axis=0)

    @cached_property
    def high(self) -> Array:
        """Largest value of each feature."""
        return self.X.max(axis=0)

    @cached_property
    def has_two_values(self) -> Any:
        """Which features have two values, of shape (p,)."""
        either = (self.low == self.X) | (self.high == self.X)
        return either.all(axis=0) & (self.low < self.high)

    def has_kinks(self, column: int) -> bool:
        """Whether more than half of the rows lie at a kink of another row along a feature."""
        if self.smooth:
            return False
        # Rounded, because features mapped back from a metric differ in their last digits.
        unit = 1e-9 * (self.high[column] - self.low[column])
        steps = np.round((self.X[:, column] - self.low[column]) / unit)
        counts = np.unique(steps, return_counts=True)[1]
        return bool(counts[counts > 1].sum() > 0.5 * len(self.X))

    def position(self, wanted: Any, what: str = "variables") -> int:
        """The column of a feature, by its name or index."""
        if isinstance(wanted, str) and wanted in self.names:
            return list(self.names).index(wanted)
        is_index = isinstance(wanted, int | np.integer) and not isinstance(wanted, bool)
        if is_index and 0 <= wanted < len(self.names):
            return int(wanted)
        known = [*(self.groups if what == "variables" else ()), *self.names]
        shown = ", ".join(map(repr, known[:10])) + (", ..." if len(known) > 10 else "")
        raise ValueError(
            f"`{what}` must name features of the model ({shown}) or give their indices, got "
            f"{wanted!r}."
        )

    def check_varies(self, column: int) -> None:
        """Refuse a feature that is constant."""
        if self.low[column] == self.high[column]:
            raise ValueError(
                f"{self.names[column]!r} must vary to have an effect, got {self.low[column]:g} in "
                "all training rows. Leave it out of `variables`."
            )

    def is_upper(self, columns: Sequence[int], X: Array | None = None) -> Any:
        """Whether features of two values are at the larger one, of shape (n, columns)."""
        return (self.X if X is None else X)[:, columns] == self.high[list(columns)]

    @cached_property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """The groups of one-hot columns by the names that tables of effects give them."""
        return {self.group_name(columns): columns for columns in self.one_hot_groups()}

    def group_name(self, columns: Sequence[int]) -> str:
        """The beginning that the names of one-hot columns share, or all these names."""
        labels = [str(self.names[column]) for column in columns]
        return _common_start(labels).rstrip(NAME_SEPARATORS) or ", ".join(labels)

    def one_hot_groups(self) -> list[tuple[int, ...]]:
        """Adjacent features with two values, of which one has its larger value in each row."""
        groups, start = [], 0
        while start < len(self.names):
            stop, count = start, np.zeros(len(self.X), dtype=int)
            while stop < len(self.names) and self.has_two_values[stop] and count.max() <= 1:
                count += self.is_upper([stop])[:, 0]
                stop += 1
                if (count == 1).all():
                    break
            found = stop > start + 1 and (count == 1).all()
            if found:
                groups.append(tuple(range(start, stop)))
            start = stop if found else start + 1
        return groups


def terms_of(features: Columns, variables: Any, kind: str) -> list[Term]:
    """The terms that are asked for; all features if `variables` is None."""
    check_choice("kind", kind, KINDS)
    wanted: list[tuple[str | None, Any]]
    if variables is None:
        groups = features.one_hot_groups() if kind != "slope" else []
        inside = {column: group for group in groups for column in group}
        varying = np.flatnonzero(features.low < features.high).tolist()
        if not varying:
            raise ValueError("Effects need a feature that varies, got none in the training rows.")
        columns = (inside.get(j, j) for j in varying)
        wanted = [(None, item) for item in dict.fromkeys(columns)]
    elif isinstance(variables, Mapping):
        wanted = list(variables.items())
    else:
        if hasattr(variables, "__array__"):  # such as the index of a data frame
            variables = np.atleast_1d(variables).tolist()
        several = isinstance(variables, list)  # a tuple is one group of columns
        wanted = [(None, item) for item in (variables if several else [variables])]
    if not wanted:
        raise ValueError("`variables` must name at least one feature, got none.")
    return [term for name, item in wanted for term in _terms(features, name, item, kind)]


def _terms(features: Columns, name: str | None, item: Any, kind: str) -> list[Term]:
    if isinstance(item, str) and item not in features.names:
        item = features.groups.get(item, item)
    if isinstance(item, tuple | list):
        return _levels(features, name, [features.position(part) for part in item])
    column = features.position(item)
    features.check_varies(column)
    name = str(features.names[column]) if name is None else name
    if kind == "slope" or (kind == "auto" and not features.has_two_values[column]):
        return [_slope(features, name, column)]
    if not features.has_two_values[column]:
        return [Difference(name, "+1", {column: None}, {})]
    low, high = float(features.low[column]), float(features.high[column])
    return [Difference(name, f"{high:g} - {low:g}", {column: high}, {column: low})]


def _slope(features: Columns, name: str, column: int) -> Term:
    """The derivative along a feature, or its average over a range if the kernel has kinks."""
    slope = Slope(name, column)
    if not features.has_kinks(column):
        return slope
    # At rare values farther out, a ridge model is far too flat.
    low, high = np.quantile(features.X[:, column], INNER, method="nearest").tolist()
    if low == high:
        low, high = float(features.low[column]), float(features.high[column])
    return Difference(name, slope.label, {column: high}, {column: low}, slope.kind, high - low)


def _common_start(labels: list[str]) -> str:
    """The common start of all labels, up to a separator."""
    first, last = min(labels), max(labels)
    same = [a == b for a, b in zip(first, last, strict=False)]
    common = first[: [*same, False].index(False)]
    return common[: max(map(common.rfind, NAME_SEPARATORS)) + 1]


def _levels(features: Columns, name: str | None, columns: list[int]) -> list[Term]:
    """Contrasts of the levels of one-hot columns with the first, or with all columns unset."""
    for column in columns:
        features.check_varies(column)
    counts = features.is_upper(columns).sum(axis=1)
    if len(columns) < 2 or counts.max() > 1 or not features.has_two_values[columns].all():
        shown = ", ".join(repr(features.names[column]) for column in columns)
        raise ValueError(
            "A group in `variables` must have at least two one-hot columns, at most one of them "
            f"set in each row, got {shown}."
        )
    labels = [str(features.names[column]) for column in columns]
    common = _common_start(labels)
    if name is None:
        name = features.group_name(columns)
    if all(len(label) > len(common) for label in labels):
        labels = [label.removeprefix(common) for label in labels]
    off = {column: float(features.low[column]) for column in columns}
    at = [off | {column: float(features.high[column])} for column in columns]
    if counts.min() == 0:
        return [
            Difference(name, f"{label} - none", dict(one), off)
            for label, one in zip(labels, at, strict=True)
        ]
    return [
        Difference(name, f"{label} - {labels[0]}", dict(one), at[0])
        for label, one in zip(labels[1:], at[1:], strict=True)
    ]
