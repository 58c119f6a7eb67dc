"""Accuracy, log loss and calibration of AutoKernelClassifier beside boosted trees and a tuned SVC.

Five folds, three seeds, defaults of all methods; the SVC has standardised features and the best of
5 x 5 values of C and gamma, and CalibratedClassifierCV makes its probabilities. A line for each
set, method and seed, with the mean seconds of a fit; then the means over the sets; then the seconds
of a fit to all 1797 rows of digits, the best of three with the methods in turn, and their ratio to
those of `auto`.
"""

import argparse
import warnings
from time import perf_counter

import numpy as np
from _ratio import Rows
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_classification,
    make_moons,
)
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from jacridge import AutoKernelClassifier

SETS = {
    "breast_cancer": load_breast_cancer(return_X_y=True),
    "digits": load_digits(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "iris": load_iris(return_X_y=True),
    "moons": make_moons(1000, noise=0.3, random_state=0),
    "circles": make_circles(1000, noise=0.2, factor=0.5, random_state=0),
    "classification": make_classification(1000, random_state=0),
}
GRID = {"svc__C": np.logspace(-1, 3, 5), "svc__gamma": np.logspace(-4, 0, 5)}
MODELS = {
    "auto": lambda: AutoKernelClassifier(random_state=0),
    "hist gradient boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "svc": lambda: GridSearchCV(make_pipeline(StandardScaler(), SVC()), GRID),
}


def fitted(method, X, y):
    """A fitted model and the seconds that took."""
    start = perf_counter()
    model = MODELS[method]().fit(X, y)
    return model, perf_counter() - start


def with_probabilities(model, X, y):
    """The model, or for the SVC one of five more fits, which are not timed."""
    if hasattr(model, "predict_proba"):
        return model
    return CalibratedClassifierCV(model.best_estimator_).fit(X, y)


def calibration_error(y, P, bins=10):
    """Mean distance of the largest probability to the share of right answers, by equal bins."""
    top, right = P.max(axis=1), P.argmax(axis=1) == y
    place = np.minimum((bins * top).astype(int), bins - 1)
    gaps = np.bincount(place, right - top, bins)
    return float(np.abs(gaps).sum() / len(y))


def figures(name, method, seed):
    """Accuracy, log loss, calibration error and mean seconds; each row is predicted once."""
    X, y = SETS[name]
    predicted, P, seconds = np.empty_like(y), np.empty((len(y), y.max() + 1)), []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
        model, spent = fitted(method, X[train], y[train])
        predicted[test] = model.predict(X[test])
        P[test] = with_probabilities(model, X[train], y[train]).predict_proba(X[test])
        seconds.append(spent)
    return {
        "accuracy": accuracy_score(y, predicted),
        "log_loss": log_loss(y, P),
        "calibration_error": calibration_error(y, P),
        "seconds": float(np.mean(seconds)),
    }


def means(found):
    """Means over the sets of the means over seeds."""
    per_set = [
        {key: np.mean([one[key] for one in seeds]) for key in seeds[0]} for seeds in found.values()
    ]
    return {key: float(np.mean([one[key] for one in per_set])) for key in per_set[0]}


def seconds_on_digits(methods, repeats=3):
    """Least seconds of a fit to all rows, the methods in turn."""
    found = {method: [] for method in methods}
    for _ in range(repeats):
        for method in methods:
            found[method].append(fitted(method, *SETS["digits"])[1])
    return {method: min(seconds) for method, seconds in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default=",".join(MODELS), help="names, with commas between")
    parser.add_argument("--sets", default=",".join(SETS), help="names, with commas between")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    methods, sets = options.methods.split(","), options.sets.split(",")
    rows, found = Rows(), {method: {name: [] for name in sets} for method in methods}
    for name in sets:
        for seed in range(options.seeds):
            for method in methods:
                found[method][name].append(figures(name, method, seed))
                rows.add(set=name, method=method, seed=seed, **found[method][name][-1], ratio="")
    for method in methods:
        rows.add(set="mean", method=method, seed="", **means(found[method]), ratio="")
    if "digits" in sets:
        blank = dict.fromkeys(("accuracy", "log_loss", "calibration_error"), "")
        spent = seconds_on_digits(methods)
        for method, seconds in spent.items():
            ratio = seconds / spent["auto"] if "auto" in spent else ""
            line = {"set": "all digits", "method": method, "seed": "", **blank}
            rows.add(**line, seconds=seconds, ratio=ratio)


if __name__ == "__main__":
    main()
