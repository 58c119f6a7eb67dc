"""Problems, or possible problems, in the rows and columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from .._compute.arrays import Array
from ._case import Case
from ._code import Origin
from ._columns import YEAR, looks_like_id, on_places, place_columns

# A value so many robust standard deviations from the median is named.
FAR_OUT = 8.0


@dataclass(frozen=True)
class Remark:
    """A short name, a sentence, and whether it is a reason for doubt."""

    name: str
    sentence: str
    warning: bool = False


def remarks(case: Case, on_target: Iterable[Remark], source: Origin) -> list[Remark]:
    """Everything that was found, reasons for doubt first."""
    many = source.lost_many(len(case.y))
    found = [
        *(Remark("rows left out", text, many and not i) for i, text in enumerate(source.losses)),
        *(Remark(*remark) for remark in source.remarks),
        *_duplicates(case),
        *_constants(case),
        *_ids(case),
        *_dates(case),
        *_places(case),
        *on_target,
        *_outliers(case),
    ]
    return sorted(found, key=lambda remark: not remark.warning)


def _duplicates(case: Case) -> Iterator[Remark]:
    n = len(case.X)
    equal = n - len(np.unique(case.X, axis=0))
    if equal:
        sentence = f"{equal:,} of {n:,} rows have the same features as an earlier row."
        yield Remark("duplicate rows", sentence, equal > n / 2)


def _constants(case: Case) -> Iterator[Remark]:
    for column in case.columns:
        if np.ptp(case.X[:, column.places], axis=0).max(initial=0.0) == 0:
            yield Remark("constant", f"`{column.name}` has the same value in all rows.")


def _ids(case: Case) -> Iterator[Remark]:
    n = len(case.X)
    for column in case.columns:
        whole = column.is_number and looks_like_id(column.name, case.X[:, column.places[0]])
        if whole or len(column.levels) == n > 10:
            sentence = f"`{column.name}` looks like an id: it numbers or names the rows."
            yield Remark("id", f"{sentence} Leave it out, unless it matters.", True)


def _dates(case: Case) -> Iterator[Remark]:
    """Dates that the rows do not follow, by which nothing was measured."""
    found = [name for name in case.names if name.endswith(YEAR)]
    if found and case.time is None:
        name = found[0].removesuffix(YEAR)
        sentence = (
            f"The rows are not in the order of `{name}`, so that rows kept aside are of all dates. "
            "Sort the table by it to see how well later rows are predicted."
        )
        yield Remark("dates", sentence)


def _places(case: Case) -> Iterator[Remark]:
    found = place_columns([column.name for column in case.columns if column.is_number])
    if found and case.spec.distance != "geodesic":
        yield Remark("places", on_places(*found))


def _outliers(case: Case) -> Iterator[Remark]:
    for column in case.columns:
        if column.is_number:
            yield from outliers(column.name, case.X[:, column.places[0]])


def outliers(name: str, x: Array) -> Iterator[Remark]:
    """How many values are far from the median, in units of the spread of the middle half."""
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
    spread = (high - low) / 1.349
    far = x[np.abs(x - middle) > FAR_OUT * spread] if spread > 0 else x[:0]
    if len(far):
        extreme = far[np.argmax(np.abs(far - middle))]
        values = "value lies" if len(far) == 1 else "values lie"
        sentence = f"{len(far):,} {values} far from the rest of `{name}`; the farthest is "
        yield Remark("outliers", f"{sentence}{extreme:,.6g}.")
