"""The data of a report, and the models fitted to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from .. import Choice, select_bandwidth
from .._compute.arrays import Array, Indices
from .._pipeline import metric_word, named, regressor_of
from ._columns import Column, Table, deviations
from ._tasks import REGRESSION, ModelSpec, Task

# Curves, sliders and rules, which are solved many times, use at most this many rows.
SOLVED_ROWS = 250
# A row is predicted far off if its error is more than this many times the 90 % quantile, and more
# than this share of the target's standard deviation: without noise, the quantile is tiny.
FAR_OFF, SHARE_OFF = 4.0, 0.2
RARE_SHARE = 1 / 3  # of the rows are of a rare class


@dataclass(frozen=True)
class Case:
    """The data of a report and the models fitted to them, each computed once, on first use."""

    table: Table
    y: Any
    target: str
    spec: ModelSpec
    task: Task = REGRESSION
    named_in_file: Callable[[int], str] | None = None  # the name of a row in the file, if known
    weights: Any = None

    def row_name(self, i: int) -> str:
        """The name of a row: its number in the file, or among the rows that are left."""
        return f"row {i + 1:,}" if self.named_in_file is None else self.named_in_file(i)

    @property
    def X(self) -> Array:
        """The rows in their own units, categories one-hot."""
        return self.table.X

    @property
    def columns(self) -> list[Column]:
        """The columns of the table as it was read."""
        return self.table.columns

    @cached_property
    def varied(self) -> list[Column]:
        """The columns that do not have the same value in all rows."""
        return [c for c in self.columns if np.ptp(self.X[:, c.places], axis=0).any()]

    @cached_property
    def deviation(self) -> Array:
        """Standard deviations of numeric columns; one for the rest and for constants."""
        return deviations(self.table)

    @cached_property
    def centre(self) -> Array:
        """Means at which the columns are centred; zero for columns that are not centred."""
        return self._mean if self.spec.scales else np.zeros(self.X.shape[1])

    @property
    def _mean(self) -> Array:
        """Means of the numeric columns; zero for the rest."""
        is_number = np.arange(self.X.shape[1]) < len(self.table.numbers)
        return np.where(is_number, self.X.mean(axis=0), 0.0)

    @property
    def standardized(self) -> Array:
        """The rows with numeric columns centred and of variance 1, for other rules."""
        return np.asarray((self.X - self._mean) / self.deviation)

    @cached_property
    def scale(self) -> Array:
        """Divisors that are applied to the columns before the model."""
        return self.deviation if self.spec.scales else np.ones(self.X.shape[1])

    def seen(self, X: Array) -> Array:
        """Rows in their own units as the model takes them."""
        return np.asarray((X - self.centre) / self.scale)

    @cached_property
    def Z(self) -> Array:
        """The rows as the model takes them."""
        return self.seen(self.X)

    def mapped(self, Z: Array) -> Array:
        """Rows that the model takes, in the space in which it measures distances."""
        return np.asarray(regressor_of(self.estimator)._function().seen(Z))

    @cached_property
    def rows(self) -> Indices:
        """Positions of the rows that are solved many times."""
        return self.some_rows(SOLVED_ROWS)

    def some_rows(self, most: int) -> Indices:
        """Positions of at most `most` random rows, in order."""
        rng, n = np.random.default_rng(self.spec.random_state), len(self.X)
        return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))

    def unfitted(self) -> Any:
        """The model that was asked for, before its fit."""
        return self.spec.model(self.task, in_time=self.table.time is not None)

    @cached_property
    def estimator(self) -> Any:
        """The model, fitted to all rows."""
        weights = None if self.weights is None else self.weights[self.order]
        return self.unfitted().fit(self.Z[self.order], self.y[self.order], weights)

    @cached_property
    def classes(self) -> list[str]:
        """Names of the classes; none for a target of numbers."""
        labels = np.unique(self.y) if self.task.name == "classification" else ()
        return [str(label) for label in labels]

    @cached_property
    def main(self) -> int | None:
        """The class whose probability is drawn: the most frequent of many.

        Of two classes, a rare one, which is usually of interest, else the second.
        """
        if not self.classes:
            return None
        shares = self.task.observed(self.y).mean(axis=0)
        if len(shares) > 2:
            return int(shares.argmax())
        return 0 if shares[0] < RARE_SHARE else 1

    @property
    def shown(self) -> str:
        """The name of what is predicted: the target, or the probability of the main class."""
        return self.target if self.main is None else f"{self.target} = {self.classes[self.main]}"

    def outputs(self, X: Array) -> Array:
        """Predictions for rows in their own units, of shape (n,), or (n, k) for classes."""
        return self.task.outputs(self.estimator, self.seen(X))

    def predict(self, X: Array) -> Array:
        """Predictions for rows in their own units: numbers, or the main class's probability."""
        return self._main(self.outputs(X))

    @cached_property
    def loo_outputs(self) -> Array:
        """Outputs for each row by the model without it, with bandwidth and metric held fixed."""
        return self.task.loo_outputs(self.estimator, self.y[self.order])[self.order]

    @property
    def loo_predictions(self) -> Array:
        """Predictions for each row by the model without it."""
        return self._main(self.loo_outputs)

    @cached_property
    def far_off(self) -> Indices:
        """Positions of rows whose leave-one-out prediction is far off, the worst first."""
        if self.classes:
            return np.empty(0, dtype=np.intp)
        size = np.abs(self.y - self.loo_predictions)
        usual = max(FAR_OFF * np.quantile(size, 0.9), SHARE_OFF * self.y.std())
        return np.argsort(-size, kind="stable")[: np.count_nonzero(size > usual)]

    @property
    def outcomes(self) -> Array:
        """Observed values as numbers: the target, or 1 in rows of the main class and else 0."""
        return self._main(self.task.observed(self.y))

    def _main(self, outputs: Array) -> Array:
        return outputs if self.main is None else outputs[:, self.main]

    @cached_property
    def choice(self) -> Choice:
        """Geometry and the Jacobian bandwidth of all rows in the model's metric."""
        return select_bandwidth(self.mapped(self.Z), alpha=self.lam, metric=self.spec.distance)

    @cached_property
    def lam(self) -> float:
        """The penalty of the model."""
        return float(np.ravel(self.estimator.alpha_)[0])

    @cached_property
    def diagnosis(self) -> Any:
        """Diagnosis of the model; None if too few rows differ."""
        return answer(named(self.estimator, self.table.names).diagnose)

    @property
    def is_later(self) -> bool:
        """Whether the model is chosen by how well it predicts later rows."""
        return self.spec.holds_out(in_time=self.table.time is not None) == "later"

    @property
    def order(self) -> slice:
        """The order in which the rows are fitted: the oldest come first where later ones judge."""
        return slice(None, None, -1 if self.is_later and self.table.is_newest_first else 1)

    @cached_property
    def metric(self) -> str:
        """The metric of the model in a word."""
        return "scaled" if self.spec.scales else metric_word(self.estimator)


def answer(work: Any, *data: Any, **options: Any) -> Any:
    """Result of a call; None if it raises ValueError or LinAlgError."""
    try:
        return work(*data, **options)
    except (ValueError, LinAlgError):
        return None
