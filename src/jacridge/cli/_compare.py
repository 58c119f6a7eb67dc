"""Rules and other models side by side: bandwidth, seconds and test R2 over random splits."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import TransformerMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import ShuffleSplit
from threadpoolctl import threadpool_limits

from jacridge import RULES, AutoKernelRidge, JacobianKernelRidge, select_bandwidth

from .._checks import require
from .._compute.files import replaced
from ..plots import plot_rules
from ._terminal import WrongUse

TEST_SHARE = 0.35  # as in the paper
FEW_ROWS = 2000

# Models of scikit-learn that stand beside the rules: boosted trees, and ridge regression.
OTHERS: dict[str, Callable[[], Any]] = {
    "trees": lambda: HistGradientBoostingRegressor(random_state=0),
    "linear": lambda: RidgeCV(np.logspace(-3, 5, 17)),
}
# `auto` chooses kernel, metric, bandwidth and penalty; the other rules choose a bandwidth.
NAMES = (*(rule for rule in RULES if rule != "auto"), "auto", *OTHERS)


def compare_rules(
    X: Any,
    y: npt.NDArray[np.float64],
    rules: Sequence[str],
    *,
    alpha: float | str = 1e-3,
    kernel: str = "gaussian",
    splits: int = 5,
    prepare: TransformerMixin | None = None,
    random_state: int = 0,
    progress: Callable[[int, int, str], object] = lambda done, total, what: None,
) -> list[dict[str, Any]]:
    """One summary for each of NAMES asked for; `progress` is told: fits done, all fits, rule."""
    if len(y) < 6:
        raise ValueError(f"A comparison needs at least 6 rows, got {len(y)}.")
    outcomes: dict[str, list[dict[str, Any]]] = {rule: [] for rule in rules}
    folds = ShuffleSplit(splits, test_size=TEST_SHARE, random_state=random_state)
    # Many small systems: threads gain little on free cores and lose much on busy ones.
    with threadpool_limits(1 if len(y) <= FEW_ROWS else None):
        for train, test in folds.split(y):
            X_train, X_test = X[train], X[test]
            if prepare is not None:
                scaler = clone(prepare).fit(X_train)  # never sees the test rows
                X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
            for rule in rules:
                progress(sum(map(len, outcomes.values())), splits * len(rules), rule)
                data = X_train, y[train], X_test, y[test]
                outcomes[rule].append(_outcome(rule, alpha, kernel, *data))
    return [_summary(rule, outcomes[rule]) for rule in rules]


def _outcome(
    rule: str, alpha: float | str, kernel: str, X: Any, y: Any, X_test: Any, y_test: Any
) -> dict[str, Any]:
    """What one rule or model gives on one split, or why it gives nothing."""
    fitted = _fitted_model if rule in OTHERS or rule == "auto" else _fitted_rule
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            model, found = fitted(rule, alpha, kernel, X, y)
            r2 = r2_score(y_test, model.predict(X_test))
        except (ValueError, ArithmeticError, MemoryError, np.linalg.LinAlgError) as error:
            return {"error": error}
    return {**found, "r2": r2, "notes": [str(note.message) for note in notes]}


def _fitted_rule(
    rule: str, alpha: float | str, kernel: str, X: Any, y: Any
) -> tuple[Any, dict[str, float]]:
    """The model of a rule; its seconds are those from X to sigma."""
    choice = select_bandwidth(X, y, rule, alpha=alpha, kernel=kernel, random_state=0)
    chosen = float(np.squeeze(choice.alpha))
    model = JacobianKernelRidge(choice.sigma, chosen, kernel=kernel).fit(X, y)
    return model, {"sigma": choice.sigma, "alpha": chosen, "seconds": choice.seconds}


def _fitted_model(
    name: str, alpha: float | str, kernel: str, X: Any, y: Any
) -> tuple[Any, dict[str, float]]:
    """A model that chooses everything for itself; its seconds are those of the whole fit."""
    model = OTHERS[name]() if name in OTHERS else AutoKernelRidge(random_state=0)
    start = perf_counter()
    model.fit(X, y)
    seconds = perf_counter() - start
    sigma = getattr(model, "bandwidth_", np.nan)
    return model, {"sigma": sigma, "alpha": getattr(model, "alpha_", np.nan), "seconds": seconds}


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


def check_picture_name(path: str) -> None:
    """Refuse a file whose suffix names no form of picture that can be drawn."""
    known = require("matplotlib.backend_bases", extra="plots").FigureCanvasBase.filetypes
    if _picture_form(path) not in known:
        raise WrongUse(
            f"A picture is written to a file that ends in {', '.join('.' + k for k in known)}, "
            f"got `{path}`."
        )


def _picture_form(path: str) -> str:
    return Path(path).suffix.lower().removeprefix(".") or "png"


def save_picture(table: list[dict[str, Any]], path: str) -> None:
    """Draw mean test R2 against seconds, with the spread over the splits, into a file."""
    figure = require("matplotlib.figure", extra="plots").Figure(figsize=(8, 5))
    figure.subplots_adjust(left=0.1, right=0.97, bottom=0.12, top=0.96)
    rows = [row for row in table if "error" not in row]
    columns = ([row[key] for row in rows] for key in ("rule", "seconds", "r2_mean"))
    plot_rules(*columns, spread=[row["r2_std"] for row in rows], ax=figure.add_subplot())
    with replaced(path) as beside:
        figure.savefig(beside, dpi=150, format=_picture_form(path))
