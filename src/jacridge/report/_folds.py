"""The model beside a linear one and boosted trees: the same rows kept aside, predicted by each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from .._compute.arrays import Array, Indices
from ._case import Case, answer

MOST_ROWS = 1000
FEWEST_ROWS = 20
COVERAGE = 0.9
OURS, TREES = "this model", "boosted trees"


@dataclass(frozen=True)
class Folds:
    """Rows kept aside: what was observed, and the outputs of each model; one entry a row."""

    observed: Array
    predicted: dict[str, Array]
    seconds: dict[str, float]  # of a fit
    intervals: Array  # lower and upper ends, of shape (n, 2); of shape (n, 0) for classes
    n_train: int
    count: int

    @property
    def coverage(self) -> float:
        """Share of the rows inside their interval."""
        low, high = self.intervals.T
        return float(np.mean((low <= self.observed) & (self.observed <= high)))


def folds_of(case: Case, each: Callable[..., Iterable[Any]] = map) -> Folds | None:
    """Cross-validation on a sample of the rows, every fit with all its choices; None for few.

    `each` is a map, of which one that runs in several threads is faster.
    """
    some = case.some_rows(MOST_ROWS)
    if len(some) < FEWEST_ROWS or len(np.unique(case.y[some])) == 1:
        return None
    count = 5 if len(some) <= 400 else 3 if len(some) < MOST_ROWS else 2
    splits = case.task.splits(5, shuffle=True, random_state=case.random_state)
    pairs = [(some[a], some[b]) for a, b in splits.split(some, case.y[some])][:count]
    parts = answer(lambda: list(each(lambda pair: _fold(case, *pair), pairs)))
    if parts is None:  # a class with too few rows
        return None
    together = np.concatenate([test for _, test in pairs])
    return Folds(
        case.task.observed(case.y)[together],
        {name: np.concatenate([part[0][name] for part in parts]) for name in parts[0][0]},
        {name: float(np.mean([part[1][name] for part in parts])) for name in parts[0][1]},
        np.concatenate([part[2] for part in parts]),
        len(pairs[0][0]),
        count,
    )


def _fold(
    case: Case, train: Indices, test: Indices
) -> tuple[dict[str, Array], dict[str, float], Array]:
    """Outputs of all models for test rows, seconds of their fits, and our intervals."""
    ours, task = case.unfitted(), case.task
    models = {
        OURS: (ours, case.Z),
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
    return outputs, seconds, np.column_stack(ours.predict_interval(case.Z[test], COVERAGE))
