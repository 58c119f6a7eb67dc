"""The model beside a linear one and boosted trees: the same rows kept aside, predicted by each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import binom
from sklearn.model_selection import TimeSeriesSplit

from .._compute.arrays import Array, Indices
from ._case import Case, answer
from ._tasks import FEWEST_ROWS, TrainTest, copies, later_rows, random_rows

# From this many rows on, one fit to some of the rows is judged on some others.
MANY_ROWS, MOST_TRAINING, MOST_TEST = 2000, 1500, 1000
COVERAGE = 0.9
MANY_COPIES = 0.1  # share of the rows
OURS, TREES = "this model", "boosted trees"

FIFTHS = {2: "two", 3: "three"}  # of the rows


@dataclass(frozen=True)
class Folds:
    """Rows kept aside: what was observed, and the outputs of each model; one entry a row."""

    observed: Array
    predicted: dict[str, Array]
    seconds: dict[str, float]  # of a fit
    intervals: Array  # lower and upper ends, of shape (n, 2); of shape (n, 0) for classes
    n_train: int
    count: int
    later: bool = False  # whether the rows kept aside come after those of the training
    rows: Indices | None = None  # their positions in the table
    copies: bool = False  # whether many rows have the features of an earlier one

    @property
    def which(self) -> str:
        """The rows kept aside in words."""
        return (
            "rows later than those it was fitted to" if self.later else "rows that it has not seen"
        )

    @property
    def how(self) -> str:
        """How many rows were kept aside, and which models predicted them, in words."""
        n = f"{len(self.observed):,} rows"
        copies = " Copies of a row were kept aside together." * self.copies
        each = "each fifth was predicted by a model fitted to the other four (cross-validation)."
        each += copies
        if self.count == 5:
            return f"All {n} were kept aside in turn: {each}"
        if self.count not in FIFTHS:
            others = f"{self.n_train:,} others.{copies}"
            return f"{n} were kept aside and predicted by models fitted to {others}"
        return f"{n}, {FIFTHS[self.count]} fifths of the table, were kept aside: {each}"

    @property
    def is_narrow(self) -> bool:
        """Whether intervals hold fewer rows than chance allows, in one of 40 tables of this size.

        One row in a hundred is not worth a word, however many there are.
        """
        n = len(self.intervals)
        if not self.intervals.size or self.coverage > COVERAGE - 0.02:
            return False
        return bool(binom.cdf(round(self.coverage * n), n, COVERAGE) < 0.025)

    @property
    def usual_coverage(self) -> tuple[float, float]:
        """Shares between which the coverage of right intervals lies in 19 of 20 tables."""
        n = len(self.intervals)
        low, high = binom.interval(0.95, n, COVERAGE)
        return float(low / n), float(high / n)

    @property
    def coverage(self) -> float:
        """Share of the rows inside their interval."""
        low, high = self.intervals.T
        return float(np.mean((low <= self.observed) & (self.observed <= high)))


def folds_of(case: Case, each: Callable[..., Iterable[Any]] = map) -> Folds | None:
    """Rows predicted by models that have not seen them, every fit with all its choices.

    None for few rows. `each` is a map, of which one that runs in several threads is faster.
    """
    if len(case.y) < FEWEST_ROWS or len(np.unique(case.y)) == 1:
        return None
    first, group = copies(case.X, case.y)
    later = _later(case)
    pairs = later or answer(_at_random, case, first, group) or []
    parts = answer(lambda: list(each(lambda pair: _fold(case, *pair), pairs)))
    if not parts:  # too few rows that differ, or a class with too few rows
        return None
    together = np.concatenate([test for _, test in pairs])
    return Folds(
        case.task.observed(case.y)[together],
        {name: np.concatenate([part[0][name] for part in parts]) for name in parts[0][0]},
        {name: float(np.mean([part[1][name] for part in parts])) for name in parts[0][1]},
        np.concatenate([part[2] for part in parts]),
        len(pairs[-1][0]),
        len(pairs),
        bool(later),
        together,
        not later and len(first) < (1 - MANY_COPIES) * len(group),
    )


def _at_random(case: Case, first: Indices, group: Indices) -> list[TrainTest]:
    """Parts of the rows; of many rows one draw of training and test rows, which costs one fit.

    Copies of a row stay together. Nothing for few rows that differ.
    """
    n, seed = len(first), case.spec.random_state
    if n < FEWEST_ROWS:
        return []
    if n >= MANY_ROWS:
        sizes = {"train_size": MOST_TRAINING, "test_size": min(MOST_TEST, n - MOST_TRAINING)}
        draw = case.task.draws(1, **sizes, random_state=seed)
        return list(random_rows(draw, case.y, first, group))
    count = 5 if n <= 400 else 3 if n < 1000 else 2
    splits = case.task.splits(5, shuffle=True, random_state=seed)
    return list(islice(random_rows(splits, case.y, first, group), count))


def _later(case: Case) -> list[TrainTest]:
    """Earlier rows and those after them, of a table in the order of time; else none."""
    n, asked = len(case.y), case.spec.held_out
    if asked == "random" or (asked == "auto" and case.table.time is None):
        return []
    time: Any = np.arange(n) if case.table.time is None else case.X[:, case.table.time]
    options = {"test_size": min(n // 5, MOST_TEST // 2), "max_train_size": MOST_TRAINING}
    splits = TimeSeriesSplit(3 if n < 1000 else 2, **options)
    return later_rows(splits, time, case.task.observed(case.y))


def _fold(
    case: Case, train: Indices, test: Indices
) -> tuple[dict[str, Array], dict[str, float], Array]:
    """Outputs of all models for test rows, seconds of their fits, and our intervals."""
    ours, task = case.unfitted(), case.task
    Z = replace(case, table=replace(case.table, X=case.X[train])).seen(case.X)
    models = {
        OURS: (ours, Z),  # scaled by means and deviations of the training rows
        TREES: (task.trees(), case.X),
        task.linear_name: (task.linear(), case.X),
    }
    outputs, seconds = {}, {}
    for name, (model, X) in models.items():
        start = perf_counter()
        model.fit(X[train], case.y[train])
        seconds[name] = perf_counter() - start
        outputs[name] = task.outputs(model, X[test])
    if not hasattr(ours, "predict_interval"):
        return outputs, seconds, np.empty((len(test), 0))
    return outputs, seconds, np.column_stack(ours.predict_interval(Z[test], COVERAGE))
