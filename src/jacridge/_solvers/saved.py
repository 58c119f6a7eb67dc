"""Saving estimators as arrays and restoring them, including files of older versions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._compute.arrays import weighted_mean
from .._geometry.maps import diagonal_of

# Shapes of saved arrays: k targets, q columns of the model's rows; all dimensions with the same
# letter have the same length.
SHAPES = {
    "y": "mk", "w": "m", "mean": "k", "group": "n", "within": "nk", "weights": "n",
    "L": "mm", "G": "mm", "B": "mb", "yy": "k", "given_within": "k",
    "sample_X": "sq", "sample_y": "sk", "sample_w": "s", "sample_within": "sk",
    "sample_weights": "s",
}  # fmt: skip


def check_saved(saved: dict[str, Any], q: int, k: int) -> None:
    """Refuse saved arrays whose numbers are not finite or whose shapes do not fit."""
    sizes = {"q": q, "k": k, "b": k + 1}
    for name, letters in SHAPES.items():
        values = saved.get(name)
        if values is None:
            continue
        values = np.asarray(values)
        shape = tuple(
            sizes.setdefault(letter, length)
            for letter, length in zip(letters, values.shape, strict=False)
        )
        if len(letters) != values.ndim or values.shape != shape:
            raise ValueError(
                "A saved model must hold arrays of matching shapes, got "
                f"`{name}` of shape {values.shape}."
            )
        if not np.isfinite(values).all():
            raise ValueError(f"A saved model must hold finite numbers, got NaN or inf in `{name}`.")


def state_to_save(state: dict[str, Any]) -> dict[str, Any]:
    """State of an estimator for a pickle: arrays instead of its model, no caches."""
    kept = {name: value for name, value in state.items() if name not in ("_made", "_solved")}
    if "_solved" in state:
        solved = state["_solved"]
        kept["_saved"] = solved if isinstance(solved, dict) else solved.state()
    return kept


def state_from_file(state: dict[str, Any]) -> dict[str, Any]:
    """State of an estimator from a pickle, including pickles of older versions."""
    if "bandwidth_" in state and "_saved" not in state:
        state = from_version_0_1(dict(state))
    if "_saved" in state:
        check_saved(state["_saved"], state["X_fit_"].shape[-1], np.size(state["intercept_"]))
    if "metric_" in state:  # in files of older versions
        state = {**state, "_T": diagonal_of(state["metric_"])}
        del state["metric_"]
    names = {"_saved": "_solved"}
    return {names.get(name, name): part for name, part in state.items() if name != "_model"}


def from_version_0_1(state: dict[str, Any]) -> dict[str, Any]:
    """Convert the state of an estimator pickled by version 0.1 to the current form."""
    old = {name: state.pop(name, None) for name in ("_y", "_w", "_nystrom", "_state", "_model")}
    kinds = {False: "none", True: "mean", "free": "free"}
    kind, metric = kinds[state["fit_intercept"]], state["metric"]
    state |= {
        "kernel": "gaussian",
        "kernel_": "gaussian",
        "_notes": {"metric": metric, "intercept": kind, "n": None},
    }
    state |= {"_columns": None, "_weightless": None, "_feature_std": state["X_fit_"].std(axis=0)}
    if metric == "euclidean":
        state |= {"_T": np.ones(state["n_features_in_"]), "warp_": None}

    if old["_state"] is not None:
        solved = dict(old["_state"])
        sample = [solved.pop(name) for name in "Xyw"]
        sample[2] = np.ones(len(sample[0])) if sample[2] is None else sample[2]
        names = (f"sample_{name}" for name in ("X", "y", "w", "within", "weights"))
        sample += [np.zeros_like(sample[1]), np.ones(len(sample[0]))]
        given = {"given_n": solved["n"], "given_within": np.zeros_like(solved["yy"])}
        return {**state, "_saved": {**solved, **given, **dict(zip(names, sample, strict=True))}}
    if old["_y"] is None:
        return {**state, "_saved": {"iterations": 0, "residual": np.nan}}
    y, w, X = old["_y"], old["_w"], state["X_fit_"]
    kept = np.flatnonzero(w > 0)
    mean = np.zeros(y.shape[1]) if kind == "none" else weighted_mean(y, w)
    if len(kept) < len(w):
        out = np.flatnonzero(w == 0)
        given = metric == "precomputed"
        state["_weightless"] = out, X[out], y[out]
        state["_columns"] = kept if given else None
        state["X_fit_"] = X[np.ix_(kept, kept)] if given else X[kept]
        state["_feature_std"] = state["X_fit_"].std(axis=0)
        state["dual_coef_"] = state["dual_coef_"][kept]
    group = np.full(len(w), -1)
    group[kept] = np.arange(len(kept))
    saved = {"y": y[kept] - mean, "w": w[kept], "mean": mean}
    given = {"group": group, "within": np.zeros_like(y), "weights": w}
    return {**state, "_saved": saved | given}
