"""The tasks: differences between predicting numbers and predicting classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import (
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .. import AutoKernelClassifier, AutoKernelRidge, JacobianKernelClassifier, JacobianKernelRidge
from .._checks import check_targets
from .._compute.arrays import Array, Indices
from .._geometry.space import METRICS
from .._rows.merging import merged
from .._rules.calibration import probabilities
from .._rules.registry import as_rule, later_rows_choose

# Training rows and test rows.
TrainTest = tuple[Indices, Indices]
# Fewer rows are not held out.
FEWEST_ROWS = 20
# Share of the rows that repeat the features of another row which may have another target, if the
# rows are copies.
MOST_OTHERS = 0.01

# Metrics that are computed from columns, unlike "precomputed".
COLUMN_METRICS = tuple(name for name in METRICS if name != "precomputed")


@dataclass(frozen=True)
class Task:
    """Models, splits and scores.

    Scores compare outputs: numbers of shape (n,), or probabilities of classes of shape (n, k).
    """

    name: str
    plain: type  # the estimator with parameters for every choice
    automatic: type
    trees: Callable[[], Any]
    linear: Callable[[], Any]
    splits: type  # into parts of the rows
    draws: type  # of training and test rows
    checked: Callable[[Any, Any], Any]  # the target of some rows, in the form that models take
    observed: Callable[[Any], Array]  # outputs of a perfect model
    outputs: Callable[[Any, Any], Array]  # of a fitted model for some rows
    loo_outputs: Callable[[Any, Any], Array]  # for each training row, by our model without it
    scores: dict[str, Callable[[Array, Array], float]]  # the first one decides
    second_score: str  # a sentence about the second one
    in_diagnosis: dict[str, str]  # keys of results, and names of findings
    linear_name: str
    rivals: tuple[str, str]  # of scikit-learn: trees and linear model

    @property
    def score_name(self) -> str:
        """The name of the score that decides."""
        return next(iter(self.scores))

    def score(self, y: Any, model: Any, X: Any) -> float:
        """The score that decides, of a fitted model."""
        return self.scores[self.score_name](self.observed(y), self.outputs(model, X))


@dataclass(frozen=True)
class ModelSpec:
    """A model before its fit: what was asked for, and the resulting estimator."""

    bandwidth: Any = "auto"  # a rule, a number or a function
    alpha: Any = None
    metric: str = "auto"
    standardize: bool = True
    kernel: str = "auto"
    random_state: int | None = 0
    solver: str = "auto"
    n_landmarks: int | None = None
    held_out: str = "auto"  # later rows, if the rows are in the order of time

    @property
    def is_auto(self) -> bool:
        """Whether kernel, metric, bandwidth and penalty are chosen."""
        return as_rule(self.bandwidth).is_automatic

    @property
    def penalty(self) -> Any:
        """The penalty that is asked for; by default the paper's, but "auto" chooses its own."""
        default = "auto" if self.is_auto else 1e-3
        return default if self.alpha is None else self.alpha

    @property
    def scales(self) -> bool:
        """Whether columns are standardised first: for metric "auto", unless all is chosen."""
        return self.standardize and self.metric == "auto" and not self.is_auto

    @property
    def model_kernel(self) -> str:
        """The kernel of the model; by default chosen if the bandwidth is "auto"."""
        return "gaussian" if self.kernel == "auto" and not self.is_auto else self.kernel

    @property
    def model_metric(self) -> str:
        """The metric of the model; by default learned if the bandwidth is "auto"."""
        learns = self.is_auto and self.standardize
        return "euclidean" if self.metric == "auto" and not learns else self.metric

    @property
    def distance(self) -> str:
        """The distance between rows in the space of the metric."""
        return "geodesic" if self.metric == "geodesic" else "euclidean"

    @property
    def later_rows_choose(self) -> bool:
        """Whether the model chooses anything by the error on later rows, if these are held out."""
        return later_rows_choose(self.bandwidth, self.penalty, self.model_kernel, self.model_metric)

    def holds_out(self, *, in_time: bool) -> str:
        """The rows that candidates are compared on, for rows in the order of time or in any."""
        if self.held_out != "auto":
            return self.held_out
        return "later" if in_time and self.later_rows_choose else "random"

    def model(self, task: Task, *, in_time: bool = False) -> Any:
        """The estimator of a task, for rows in the order of time or in any."""
        options = {
            "alpha": self.penalty,
            "kernel": self.model_kernel,
            "metric": self.model_metric,
            "solver": self.solver,
            "n_landmarks": self.n_landmarks,
            "held_out": self.holds_out(in_time=in_time),
            "random_state": self.random_state,
        }
        return task.automatic(**options) if self.is_auto else task.plain(self.bandwidth, **options)


def copies(X: Array, y: Any) -> tuple[Indices, Indices]:
    """The first row of each group, and the group of each row.

    Rows with equal features and targets are a group. If the targets of rows with equal features
    often differ, as those of a few categories do, each row is an observation of its own.
    """
    found, each = merged(X, X[:, :0], None), np.arange(len(X))
    others = np.count_nonzero(y != y[found.first][found.group])
    are_copies = others <= MOST_OTHERS * (len(X) - len(found.first))
    return (found.first, found.group) if are_copies else (each, each)


def random_rows(splits: Any, y: Any, first: Indices, group: Indices) -> Iterator[TrainTest]:
    """Random training and test rows; all rows of a group, as `copies` finds it, are in one part."""

    def rows(part: Indices) -> Indices:
        place = np.full(len(first), -1)
        place[part] = np.arange(len(part))
        at = place[group]
        return np.argsort(at, kind="stable")[np.count_nonzero(at < 0) :]

    return ((rows(a), rows(b)) for a, b in splits.split(first, y[first]))


def later_rows(splits: TimeSeriesSplit, times: Array, observed: Array) -> list[TrainTest]:
    """Earlier rows and those after them, by the times of the rows.

    Rows at the time of the first test row are left out of the training, as what happened then
    would be known. Nothing where some class is yet to come.
    """
    order = np.argsort(times, kind="stable")
    pairs = [(order[a], order[b]) for a, b in splits.split(order)]
    pairs = [(a[times[a] < times[b].min()], b) for a, b in pairs]
    known = all(len(a) >= 5 and observed[a].any(axis=0).all() for a, _ in pairs)
    return pairs if known else []


def r2(observed: Array, predicted: Array) -> float:
    """Explained share of the variance; NaN for a constant target."""
    variance = observed.var()
    return float(1 - ((observed - predicted) ** 2).mean() / variance) if variance > 0 else np.nan


def typical_error(observed: Array, predicted: Array) -> float:
    """Median size of the errors."""
    return float(np.median(np.abs(observed - predicted)))


def accuracy(observed: Array, predicted: Array) -> float:
    """Share of the rows whose class is the most likely class."""
    return float(np.mean(observed.argmax(axis=1) == predicted.argmax(axis=1)))


def log_loss(observed: Array, predicted: Array) -> float:
    """Mean of minus the logarithm of the probability of the observed class."""
    of_observed = (observed * predicted).sum(axis=1)
    return float(-np.log(np.clip(of_observed, 1e-15, 1)).mean())


def _one_column(y: Any, X: Any) -> Array:
    targets = check_targets(y, X)
    if targets.shape[1] != 1:
        raise ValueError(f"A report has one target, got {targets.shape[1]} columns in `y`.")
    return np.asarray(targets[:, 0])


def _labels(y: Any, X: Any) -> Any:
    labels = column_or_1d(np.asarray(y))
    check_consistent_length(X, labels)
    return labels.astype(str) if labels.dtype.kind in "Ob" else labels


def indicators(labels: Any) -> Array:
    """One column for each class, in their order, with ones in its rows."""
    return np.asarray(labels[:, None] == np.unique(labels), dtype=np.float64)


REGRESSION = Task(
    "regression",
    JacobianKernelRidge,
    AutoKernelRidge,
    trees=lambda: HistGradientBoostingRegressor(random_state=0),
    linear=lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 17))),
    splits=KFold,
    draws=ShuffleSplit,
    checked=_one_column,
    observed=lambda y: np.asarray(y),
    outputs=lambda model, X: np.asarray(model.predict(X)),
    loo_outputs=lambda model, y: np.asarray(y - model.loo_residuals_),
    scores={"R²": r2, "typical error": typical_error},
    second_score="The typical error is the median absolute error, in the units of the target.",
    in_diagnosis={"loo_r2": "leave-one-out R2"},
    linear_name="linear model",
    rivals=("HistGradientBoostingRegressor", "RidgeCV"),
)
CLASSIFICATION = Task(
    "classification",
    JacobianKernelClassifier,
    AutoKernelClassifier,
    trees=lambda: HistGradientBoostingClassifier(random_state=0),
    linear=lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    splits=StratifiedKFold,
    draws=StratifiedShuffleSplit,
    checked=_labels,
    observed=indicators,
    outputs=lambda model, X: np.asarray(model.predict_proba(X)),
    loo_outputs=lambda model, y: probabilities(model.loo_decision_function_),
    scores={"accuracy": accuracy, "log loss": log_loss},
    second_score="The log loss is small if the true classes have high probabilities.",
    in_diagnosis={
        "loo_accuracy": "leave-one-out accuracy",
        "loo_log_loss": "leave-one-out log loss",
    },
    linear_name="logistic regression",
    rivals=("HistGradientBoostingClassifier", "LogisticRegression"),
)
TASKS = {task.name: task for task in (REGRESSION, CLASSIFICATION)}
