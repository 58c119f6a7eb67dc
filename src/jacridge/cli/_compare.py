"""Rules side by side: bandwidth, seconds and test R2 over random splits."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import TransformerMixin, clone
from sklearn.metrics import r2_score
from sklearn.model_selection import ShuffleSplit
from threadpoolctl import threadpool_limits

from jacridge import JacobianKernelRidge, select_bandwidth

from .._checks import require
from .._files import replaced
from ..plots import plot_rules

TEST_SHARE = 0.35  # as in the paper
FEW_ROWS = 2000


def compare_rules(
    X: Any,
    y: npt.NDArray[np.float64],
    rules: Sequence[str],
    *,
    alpha: float | str = 1e-3,
    splits: int = 10,
    prepare: TransformerMixin | None = None,
    random_state: int = 0,
    progress: Callable[[int, int, str], object] = lambda done, total, what: None,
) -> list[dict[str, Any]]:
    """One summary for each rule; `progress` is told of each fit: done, total, rule."""
    if len(y) < 6:
        raise ValueError(f"A comparison needs at least 6 rows, got {len(y)}.")
    outcomes: dict[str, list[dict[str, Any]]] = {rule: [] for rule in rules}
    folds = ShuffleSplit(splits, test_size=TEST_SHARE, random_state=random_state)
    # Many small systems: BLAS threads gain little on free cores and lose much on busy ones.
    with threadpool_limits(1 if len(y) <= FEW_ROWS else None, user_api="blas"):
        for train, test in folds.split(y):
            X_train, X_test = X[train], X[test]
            if prepare is not None:
                scaler = clone(prepare).fit(X_train)  # never sees the test rows
                X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
            for rule in rules:
                progress(sum(map(len, outcomes.values())), splits * len(rules), rule)
                outcomes[rule].append(_outcome(rule, alpha, X_train, y[train], X_test, y[test]))
    return [_summary(rule, outcomes[rule]) for rule in rules]


def _outcome(
    rule: str, alpha: float | str, X: Any, y: Any, X_test: Any, y_test: Any
) -> dict[str, Any]:
    """What one rule gives on one split, or why it gives nothing."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            penalty = "auto" if rule == "auto" else alpha  # its point is to choose both
            choice = select_bandwidth(X, y, rule, alpha=penalty, random_state=0)
            chosen = float(np.squeeze(choice.alpha))
            model = JacobianKernelRidge(choice.sigma, chosen).fit(X, y)
            r2 = r2_score(y_test, model.predict(X_test))
        except (ValueError, ArithmeticError, MemoryError, np.linalg.LinAlgError) as error:
            return {"error": error}
    return {
        "sigma": choice.sigma,
        "alpha": chosen,
        "seconds": choice.seconds,
        "r2": r2,
        "notes": [str(note.message) for note in notes],
    }


def _summary(rule: str, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians of bandwidth, penalty and seconds, mean and spread of R2."""
    good = [outcome for outcome in outcomes if "error" not in outcome]
    errors = [outcome["error"] for outcome in outcomes if "error" in outcome]
    if not good:
        return {"rule": rule, "error": str(errors[0])}
    r2 = np.array([outcome["r2"] for outcome in good])
    middle = {
        key: float(np.median([o[key] for o in good])) for key in ("sigma", "alpha", "seconds")
    }
    notes = [f"{len(errors)} splits failed: {errors[0]}"] if errors else []
    notes += [note for outcome in good for note in outcome["notes"]][:1]
    return {
        "rule": rule,
        **middle,
        "r2_mean": float(r2.mean()),
        "r2_std": float(r2.std()),
        "notes": notes,
    }


def save_picture(table: list[dict[str, Any]], path: str) -> None:
    """Draw mean test R2 against seconds, with the spread over the splits, into a file."""
    figure = require("matplotlib.figure", extra="plots").Figure(figsize=(8, 5))
    figure.subplots_adjust(left=0.1, right=0.97, bottom=0.12, top=0.96)
    rows = [row for row in table if "error" not in row]
    columns = ([row[key] for row in rows] for key in ("rule", "seconds", "r2_mean"))
    plot_rules(*columns, spread=[row["r2_std"] for row in rows], ax=figure.add_subplot())
    with replaced(path) as beside:
        figure.savefig(beside, dpi=150)
