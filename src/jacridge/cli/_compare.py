"""Rules and other models side by side: bandwidth, seconds and test R2 over random splits."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from joblib import Parallel, cpu_count, delayed
from sklearn.base import TransformerMixin, clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import TimeSeriesSplit
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from jacridge import RULES, JacobianKernelRidge, select_bandwidth

from .._checks import require
from .._compute.arrays import Array
from .._compute.files import replaced
from ..report._tasks import (
    FEWEST_ROWS,
    REGRESSION,
    TASKS,
    Task,
    TrainTest,
    accuracy,
    copies,
    later_rows,
    log_loss,
    r2,
    random_rows,
)
from ._terminal import check_suffix

TEST_SHARE = 0.35  # as in the paper
LEAST_ROWS = 6
LEAST_PART = 5  # rows that are predicted together as later ones
CLEAR_GAIN = 0.02  # of a score; half of it is not worth a model that is less simple
PARALLEL_ROWS = 600  # from which a process for each core pays
GAUSSIAN = {"kernel": "gaussian", "metric": "euclidean"}

# What makes models that stand beside the rules, given task, metric and the rows that `auto`, which
# is ours, compares candidates on.
MODELS: dict[str, Callable[[Task, str, str], Any]] = {
    "auto": lambda task, metric, held_out: task.automatic(
        **({"metric": metric} if metric == "geodesic" else {"held_out": held_out}), random_state=0
    ),
    "linear": lambda task, *_: task.linear(),
    "trees": lambda task, *_: task.trees(),
}
# `auto` chooses kernel, metric, bandwidth and penalty; the other rules choose a bandwidth.
NAMES = (*MODELS, *(rule for rule in RULES if rule not in MODELS))


def compare_rules(
    X: Any,
    y: npt.NDArray[np.float64],
    rules: Sequence[str],
    *,
    alpha: float | str = 1e-3,
    space: Mapping[str, str] = GAUSSIAN,
    splits: int = 5,
    task: Task = REGRESSION,
    prepare: TransformerMixin | None = None,
    random_state: int = 0,
    later: Sequence[TrainTest] = (),
    progress: Callable[[int, int, str], object] = lambda done, total, what: None,
) -> list[dict[str, Any]]:
    """One summary for each of NAMES asked for; `progress` is told: fits done, all fits, rule.

    Splits are random, with copies of a row on one side, unless earlier and `later` rows are given.
    """
    if len(y) < LEAST_ROWS:
        raise ValueError(f"A comparison needs at least {LEAST_ROWS} rows, got {len(y)}.")
    if (y == y[0]).all():
        raise ValueError(
            f"The target must vary, got {y[0]} in all {len(y):,} rows. Name the column that is to "
            "be predicted."
        )
    codes = X.select(pl.all().rank("dense")) if isinstance(X, pl.DataFrame) else X
    first, group = copies(np.nan_to_num(np.asarray(codes, dtype=float)), y)
    if len(first) < LEAST_ROWS:
        raise ValueError(
            f"A comparison needs at least {LEAST_ROWS} rows that differ, got {len(first)}."
        )
    outcomes: dict[str, list[dict[str, Any]]] = {rule: [] for rule in rules}
    draws = task.draws(splits, test_size=TEST_SHARE, random_state=random_state)
    how = {"held_out": "later" if later else "random"}
    pairs = later or random_rows(draws, y, first, group)
    observed = task.observed(y)  # of all rows, as some class may not be among those of a test
    jobs = [
        delayed(_outcome)(rule, alpha, dict(space), task.name, data, **how)
        for data in (_split(X, y, observed, prepare, pair) for pair in pairs)
        for rule in rules
    ]
    # Many small systems: one on each core is faster than threads inside of each.
    workers = Parallel(cpu_count() if len(y) >= PARALLEL_ROWS else 1, return_as="generator")
    with threadpool_limits(1):
        found = workers(jobs)
        for i in range(len(jobs)):
            rule = rules[i % len(rules)]
            progress(i, len(jobs), rule)
            outcomes[rule].append(next(found))
    return [_summary(rule, outcomes[rule]) for rule in rules]


def auc(observed: Array, predicted: Array) -> float:
    """Area under the ROC curve of the second class; NaN unless there are rows of two classes."""
    of_two = observed.shape[1] == 2 and observed.any(axis=0).all()
    return float(roc_auc_score(observed[:, 1], predicted[:, 1])) if of_two else np.nan


# Scores of each task on test rows; the first one is drawn.
SCORES: dict[str, dict[str, Callable[[Array, Array], float]]] = {
    "regression": {"r2": r2},
    "classification": {"accuracy": accuracy, "log_loss": log_loss, "auc": auc},
}


def later_splits(task: Task, y: Any, times: Any, splits: int) -> list[TrainTest]:
    """Earlier rows and those after them; none of few rows, or where some class is yet to come."""
    if len(y) < max(FEWEST_ROWS, LEAST_PART * (splits + 1)):
        return []
    parts = TimeSeriesSplit(max(splits, 2))  # the fewest that it makes
    return later_rows(parts, times, task.observed(y))[-splits:]


def score_key(task: Task) -> str:
    """The score of a task that is drawn, as results name it."""
    return next(iter(SCORES[task.name]))


def _split(
    X: Any, y: Any, observed: Array, prepare: TransformerMixin | None, pair: TrainTest
) -> tuple[Any, Any, Any, Any]:
    """Training rows, and test rows with the outputs of a perfect model.

    Their preparation never sees the test rows.
    """
    train, test = pair
    X_train, X_test = X[train], X[test]
    if prepare is not None:
        scaler = clone(prepare).fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    return X_train, y[train], X_test, observed[test]


def _outcome(
    rule: str,
    alpha: float | str,
    space: dict[str, str],
    name: str,
    data: tuple[Any, ...],
    *,
    held_out: str,
) -> dict[str, Any]:
    """Result of one rule or model on one split, or the reason why there is none."""
    X, y, X_test, observed = data
    task = TASKS[name]
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            if task is REGRESSION and rule not in MODELS:
                model, found = _fitted_rule(rule, alpha, space, X, y)
            else:
                plain: Any = partial(task.plain, rule, alpha, **space)
                model_of = MODELS.get(rule)
                made = model_of(task, space["metric"], held_out) if model_of else plain()
                model, found = _fitted_model(made, X, y)
            outputs = task.outputs(model, X_test)
            scores = {key: f(observed, outputs) for key, f in SCORES[name].items()}
        except (ValueError, ArithmeticError, MemoryError, np.linalg.LinAlgError) as error:
            return {"error": error}
    return {**found, "scores": scores, "notes": [str(note.message) for note in notes]}


def _fitted_rule(
    rule: str, alpha: float | str, space: dict[str, Any], X: Any, y: Any
) -> tuple[Any, dict[str, float]]:
    """The model of a rule; its seconds are those from X to sigma."""
    choice = select_bandwidth(X, y, rule, alpha=alpha, **space, random_state=0)
    chosen = float(np.squeeze(choice.alpha))
    model = JacobianKernelRidge(choice.sigma, chosen, **space, random_state=0).fit(X, y)
    return model, {"sigma": choice.sigma, "alpha": chosen, "seconds": choice.seconds}


def _fitted_model(model: Any, X: Any, y: Any) -> tuple[Any, dict[str, float]]:
    """A model, and its seconds, those of the whole fit."""
    start = perf_counter()
    model.fit(X, y)
    seconds = perf_counter() - start
    last = model[-1] if isinstance(model, Pipeline) else model
    sigma = getattr(last, "bandwidth_", np.nan)
    return model, {"sigma": sigma, "alpha": getattr(last, "alpha_", np.nan), "seconds": seconds}


def _summary(rule: str, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians of bandwidth, penalty and seconds, mean and spread of the scores."""
    good = [outcome for outcome in outcomes if "error" not in outcome]
    errors = [outcome["error"] for outcome in outcomes if "error" in outcome]
    if not good:
        return {"rule": rule, "error": str(errors[0])}
    scores = {key: np.array([o["scores"][key] for o in good]) for key in good[0]["scores"]}
    spreads: dict[str, Any] = {"mean": np.mean, "std": np.std}
    middle = {
        name: float(np.median([o[name] for o in good])) for name in ("sigma", "alpha", "seconds")
    }
    notes = [f"{len(errors)} split{'s' * (len(errors) > 1)} failed: {errors[0]}"] if errors else []
    notes += [note for outcome in good for note in outcome["notes"]][:1]
    return {
        "rule": rule,
        **middle,
        **{
            f"{key}_{name}": float(of(values))
            for key, values in scores.items()
            if np.isfinite(values).all()
            for name, of in spreads.items()
        },
        "notes": notes,
    }


def which_is_enough(table: Sequence[dict[str, Any]], task: Task, y: Any) -> str:
    """A line on `auto`, `linear` and `trees`: the simplest that is as good; empty without them.

    Numbers are judged by R2, classes by the share of the log loss of their frequencies that a
    model saves: a rare class has a high accuracy without any model.
    """
    key = "r2_mean" if task is REGRESSION else "log_loss_mean"
    scores = {row["rule"]: row[key] for row in table if row["rule"] in MODELS and key in row}
    if len(scores) < len(MODELS):
        return ""
    gains, what, by = scores, "the mean", ""
    if task is not REGRESSION:
        seen = task.observed(y)
        prior = log_loss(seen, np.broadcast_to(seen.mean(axis=0), seen.shape))
        gains = {name: 1 - loss / prior for name, loss in scores.items()}
        what, by = f"the frequencies of the classes (log loss {prior:.3f})", ", judged by log loss"
    order = sorted(gains, key=lambda name: -gains[name])
    words = ", ".join(f"{name} {scores[name]:.3f}" for name in order)
    if gains[order[0]] < CLEAR_GAIN:
        return f"None of them predicts clearly better than {what}: {words}."
    if gains["linear"] > gains[order[0]] - CLEAR_GAIN / 2:
        return f"A linear model is enough{by}: {words}."
    return f"Best{by}: {words}."


def check_picture_name(path: str) -> None:
    """Refuse a file whose suffix names no form of picture that can be drawn."""
    known = require("matplotlib.backend_bases", extra="plots").FigureCanvasBase.filetypes
    check_suffix("A picture", path, f".{_picture_form(path)}", [f".{form}" for form in known])


def _picture_form(path: str) -> str:
    return Path(path).suffix.lower().removeprefix(".") or "png"


def save_picture(table: list[dict[str, Any]], path: str, task: Task = REGRESSION) -> None:
    """Draw the mean score against seconds, with the spread over the splits, into a file."""
    figure = require("matplotlib.figure", extra="plots").Figure(figsize=(8, 5))
    plot_rules = require("jacridge.plots", extra="plots").plot_rules
    figure.subplots_adjust(left=0.1, right=0.97, bottom=0.12, top=0.96)
    rows = [row for row in table if "error" not in row]
    key = score_key(task)
    columns = ([row[name] for row in rows] for name in ("rule", "seconds", f"{key}_mean"))
    ax = plot_rules(*columns, spread=[row[f"{key}_std"] for row in rows], ax=figure.add_subplot())
    if task is not REGRESSION:
        ax.set(ylabel=f"{key} on test rows")
    with replaced(path) as beside:
        figure.savefig(beside, dpi=150, format=_picture_form(path))
