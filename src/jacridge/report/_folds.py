"""The model beside a linear one and boosted trees: the same rows kept aside, predicted by each."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._compute.arrays import Array
from ._case import Case

MOST_ROWS = 1200
FEWEST_ROWS = 20
COVERAGE = 0.9
OURS, TREES, LINEAR = "this model", "boosted trees", "linear model"


@dataclass(frozen=True)
class Folds:
    """Rows kept aside: what was observed, and what each model predicts; one entry a row."""

    observed: Array
    predicted: dict[str, Array]
    seconds: dict[str, float]  # of all fits
    lower: Array
    upper: Array
    n_train: int
    count: int

    def r2(self, name: str) -> float:
        """Share of the variance that a model explains; NaN for a constant target."""
        return r2(self.observed - self.predicted[name], self.observed)

    def typical_error(self, name: str) -> float:
        """Median size of the errors of a model."""
        return float(np.median(np.abs(self.observed - self.predicted[name])))

    @property
    def coverage(self) -> float:
        """Share of the rows inside their interval."""
        return float(np.mean((self.lower <= self.observed) & (self.observed <= self.upper)))


def r2(residuals: Array, y: Array) -> float:
    """Explained share of the variance; NaN for a constant y."""
    variance = y.var()
    return float(1 - (residuals**2).mean() / variance) if variance > 0 else np.nan


def folds_of(case: Case) -> Folds | None:
    """Cross-validation on a sample of the rows, every fit with all its choices; None for few."""
    some = case.some_rows(MOST_ROWS)
    if len(some) < FEWEST_ROWS or case.y[some].var() == 0:
        return None
    count = 5 if len(some) <= 500 else 3 if len(some) <= 1000 else 2
    splits = list(KFold(5, shuffle=True, random_state=case.random_state).split(some))[:count]
    models = {
        OURS: (case.unfitted(), case.Z),
        TREES: (HistGradientBoostingRegressor(random_state=0), case.X),
        LINEAR: (make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 17))), case.X),
    }
    seconds = dict.fromkeys(models, 0.0)
    predicted: dict[str, list[Array]] = {name: [] for name in models}
    ends: list[Any] = []
    for train, test in splits:
        for name, (model, X) in models.items():
            start = perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X[some[train]], case.y[some[train]])
                predicted[name].append(model.predict(X[some[test]]))
            seconds[name] += perf_counter() - start
        ends.append(models[OURS][0].predict_interval(case.Z[some[test]], COVERAGE))
    together = np.concatenate([test for _, test in splits])
    lower, upper = (np.concatenate(parts) for parts in zip(*ends, strict=True))
    return Folds(
        case.y[some[together]],
        {name: np.concatenate(parts) for name, parts in predicted.items()},
        seconds,
        lower,
        upper,
        len(splits[0][0]),
        count,
    )
