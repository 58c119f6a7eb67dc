"""What is wrong, or may be wrong, with the rows and columns of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from .._compute.arrays import Array
from ._case import Case

# A value so many robust standard deviations from the median is named.
FAR = 8.0
# A column whose ranks agree with those of the target like this may know its answer.
LEAK = 0.99


@dataclass(frozen=True)
class Remark:
    """A short name, a sentence, and whether it is a reason for doubt."""

    name: str
    sentence: str
    warning: bool = False


def remarks(case: Case, losses: tuple[str, ...], lost_many: bool) -> list[Remark]:
    """Everything that was found, reasons for doubt first."""
    found = [
        *(Remark("rows left out", text, lost_many and not i) for i, text in enumerate(losses)),
        *_duplicates(case),
        *_constants(case),
        *_ids(case),
        *_leaks(case),
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
        x = case.X[:, column.places[0]]
        whole = column.is_number and n >= 10 and (np.diff(x) == 1).all()
        if whole or len(column.levels) == n > 10:
            sentence = f"`{column.name}` looks like an id: it numbers or names the rows."
            yield Remark("id", f"{sentence} Leave it out, unless it matters.", True)


def _leaks(case: Case) -> Iterator[Remark]:
    if case.y.var() == 0 or len(case.y) < 10:
        return
    y, varied = rankdata(case.y), case.X.std(axis=0) > 0
    for column in case.columns:
        if column.is_number and varied[column.places[0]]:
            r = float(np.corrcoef(rankdata(case.X[:, column.places[0]]), y)[0, 1])
            if abs(r) > LEAK and len(case.columns) > 1:
                sentence = (
                    f"`{column.name}` orders the rows almost as `{case.target}` does (rank "
                    f"correlation {r:.3f}). Is it known before `{case.target}` is?"
                )
                yield Remark("possible leak", sentence, True)


def _outliers(case: Case) -> Iterator[Remark]:
    numbers = {c.name: case.X[:, c.places[0]] for c in case.columns if c.is_number}
    for name, x in {**numbers, case.target: case.y}.items():
        far = _far(x)
        if far.any():
            extreme = x[far][np.argmax(np.abs(x[far] - np.median(x)))]
            values = "value lies" if far.sum() == 1 else "values lie"
            sentence = (
                f"{far.sum():,} {values} far from the rest of `{name}`; the farthest is "
                f"{extreme:,.6g}."
            )
            yield Remark("outliers", sentence)


def _far(x: Array) -> Array:
    """Which values are far from the median, in units of the spread of the middle half."""
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
    spread = (high - low) / 1.349
    return np.abs(x - middle) > FAR * spread if spread > 0 else np.zeros(len(x), dtype=bool)
