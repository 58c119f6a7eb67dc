"""Problems, or possible problems, in the rows and columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from .._compute.arrays import Array
from ._case import Case
from ._code import Origin
from ._columns import DOUBTS, YEAR, alike, looks_like_id, nested, on_alike, on_nested
from ._pieces import unrounded

POSSIBLE_LEAK, NESTED = "possible leak", "nested columns"  # names of remarks
MOST_NESTED_NAMED = 5  # of nested columns
# A value more than this many robust standard deviations from the median is reported.
FAR_OUT = 8.0
# A value may be a code if it occurs so often, and so many others are there to compare it with.
OFTEN, OTHERS = 3, 10
# At most FEW values that are more than ALONE times as far out as the next one may be errors.
FEW, ALONE = 3, 3.0


@dataclass(frozen=True)
class Remark:
    """A short name, a sentence, and whether it is a reason for doubt.

    Sentences on the data have names in backquotes; those on the model are HTML.
    """

    name: str
    sentence: str
    warning: bool = False
    short: str = ""  # wording in the verdict; if empty, the remark is only counted


def leak(column: str, target: str, what: str) -> Remark:
    """The remark on a column that may reveal the target."""
    sentence = f"`{column}` {what}. Is it known before `{target}` is?"
    return Remark(POSSIBLE_LEAK, sentence, True, f"`{column}` may give `{target}` away")


def remarks(case: Case, on_target: Iterable[Remark], source: Origin) -> list[Remark]:
    """Everything that was found, reasons for doubt first."""
    found = [
        *_losses(source, len(case.y)),
        *(
            Remark(name, text, name in DOUBTS, text.partition(": ")[0])
            for name, text in source.remarks
        ),
        *_duplicates(case),
        *_constants(case),
        *_ids(case),
        *_alike(case),
        *(
            Remark(NESTED, on_nested(*pair), True)
            for pair in nested(case.table)[:MOST_NESTED_NAMED]
        ),
        *_dates(case),
        *_places(case),
        *on_target,
        *_outliers(case, source.left_out > 0),
    ]
    return sorted(found, key=lambda remark: not remark.warning)


def _losses(source: Origin, n: int) -> Iterator[Remark]:
    """Rows that are left out: a doubt if they are many, or all rows of a category."""
    if source.losses:
        short = f"{source.left_out:,} of {n + source.left_out:,} rows left out"
        yield Remark("rows left out", source.losses[0], source.lost_many(n), short)
    for text in source.losses[1:]:
        short = text.rpartition(": ")[0] or text.removesuffix(".")
        yield Remark("category lost", text, True, short[0].lower() + short[1:])


def _duplicates(case: Case) -> Iterator[Remark]:
    n = len(case.X)
    equal = n - len(np.unique(case.X, axis=0))
    if equal:
        verb = "has" if equal == 1 else "have"
        sentence = f"{equal:,} of {n:,} rows {verb} the same features as an earlier row."
        yield Remark("duplicate rows", sentence, equal > n / 2)


def _constants(case: Case) -> Iterator[Remark]:
    varied = {column.name for column in case.varied}
    for column in case.columns:
        if column.name not in varied:
            yield Remark("constant", f"`{column.name}` has the same value in all rows.")


def _ids(case: Case) -> Iterator[Remark]:
    n = len(case.X)
    for column in case.columns:
        whole = column.is_number and looks_like_id(column.name, case.X[:, column.places[0]])
        if whole or len(column.levels) == n > 10:
            sentence = f"`{column.name}` looks like an id: it numbers or names the rows."
            yield Remark("id", f"{sentence} Leave it out unless it matters.", True)


def _alike(case: Case) -> Iterator[Remark]:
    pairs = alike(case.table)
    if pairs:
        yield Remark("alike", on_alike(pairs))


def _dates(case: Case) -> Iterator[Remark]:
    """Dates if the rows are not in their order, so that nothing was measured over time."""
    found = [name for name in case.table.names if name.endswith(YEAR)]
    if found and case.table.time is None:
        name = found[0].removesuffix(YEAR)
        sentence = (
            f"The rows are not in the order of `{name}`, so the rows kept aside have all dates. "
            f"To see how well later rows are predicted, sort the table by `{name}`."
        )
        yield Remark("dates", sentence)


def _places(case: Case) -> Iterator[Remark]:
    if case.spec.distance == "geodesic":
        lat, lon = case.table.names
        sentence = (
            f"The metric geodesic only uses `{lat}` and `{lon}`. Other columns "
            "of the file are left out; compare with a report without this metric."
        )
        yield Remark("places", sentence)


def _outliers(case: Case, some_left: bool) -> Iterator[Remark]:
    """Codes for missing values, and other values that are far from the rest."""
    numbers = {c.name: case.X[:, c.places[0]] for c in case.columns if c.is_number}
    if not case.classes:
        numbers = {case.target: case.y} | numbers
    for name, x in numbers.items():
        found = codes(x)
        for code in found:
            count, value = int(np.sum(x == code)), unrounded(float(code))
            sentence = f"{count:,} values of `{name}` are {value}"
            advice = "which looks like a code for a missing value. Replace them by empty cells."
            yield Remark("codes", f"{sentence}, {advice}", True, sentence)
        if not found:
            yield from outliers(case, name, x, some_left and case.named_in_file is None)


def codes(x: Array) -> list[float]:
    """Values that look like codes for missing ones, such as -999: repeated, at one end, far away.

    Far is farther from all others than these are from each other, or negative where all others are
    positive. Zero is no code.
    """
    values, counts = np.unique(x, return_counts=True)
    found = []
    for end, others in ((0, values[1:]), (-1, values[:-1])):
        value = values[end]
        if value == 0 or counts[end] < OFTEN or len(others) < OTHERS:
            continue
        is_far = np.abs(others - value).min() > np.ptp(others)
        if is_far or value < 0 < others[0]:
            found.append(float(value))
    return found


def outliers(case: Case, name: str, x: Array, some_left: bool) -> Iterator[Remark]:
    """How many values are far from the median, in units of the spread of the middle half.

    A few values far from all others are a reason for doubt; values in a long tail are not.
    `some_left` says whether rows of the file were left out, so that row numbers differ.
    """
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
    distance, spread = np.abs(x - middle), (high - low) / 1.349
    count = int(np.count_nonzero(distance > FAR_OUT * spread)) if spread > 0 else 0
    if not count:
        return
    order = np.argsort(-distance, kind="stable")
    ratios = distance[order[:FEW]] / np.maximum(distance[order[1 : FEW + 1]], FAR_OUT * spread / 2)
    alone = int(np.argmax(ratios)) + 1 if ratios.max() > ALONE else 0
    where = f"{unrounded(float(x[order[0]]))}, in {case.row_name(order[0])}"
    where += " of the remaining rows" if some_left else ""
    sentence = (
        f"One value of `{name}` lies far from the rest: {where}."
        if count == 1
        else f"{count:,} values lie far from the rest of `{name}`; the farthest is {where}."
    )
    short = f"a value of `{name}` far from all others ({where})"
    yield Remark("outliers", sentence + (" Is it correct?" if alone else ""), alone > 0, short)
