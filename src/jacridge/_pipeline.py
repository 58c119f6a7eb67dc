"""`last_step`: the model at the end of a pipeline, in the units of its input columns."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from ._compute.arrays import Array
from ._geometry.space import LINEAR

SCALERS = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)


def last_step(model: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the model at the end of a pipeline, and the rows of X that this model takes.

    The rows have the columns that the steps before the model produce, but in their original units:
    scaling by ``StandardScaler``, ``MinMaxScaler``, ``MaxAbsScaler`` or ``RobustScaler``, also
    within a ``ColumnTransformer``, is undone in the rows and becomes part of the model's metric.
    Derivatives, effects and curves therefore refer to the original columns wherever these are only
    scaled, and predictions and intervals equal those of the pipeline.

    Parameters
    ----------
    model : Pipeline that ends in a fitted regressor or classifier of jacridge
        Anything else is returned unchanged.
    X : data frame or array of shape (n_samples, n_columns), optional
        Rows as the pipeline takes them.

    Returns
    -------
    model : regressor or classifier
        A copy that shares its arrays with the model in the pipeline. Its feature names come from
        ``get_feature_names_out``, without the name of the transformer where they are unique.
    X : ndarray of shape (n_samples, n_features), or None

    Raises
    ------
    TypeError
        If a pipeline does not end in one of our models.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from jacridge import JacobianKernelRidge, last_step
    >>> X = np.linspace(0, 600, 50)[:, None]
    >>> pipeline = make_pipeline(StandardScaler(), JacobianKernelRidge("auto", "auto"))
    >>> est, rows = last_step(pipeline.fit(X, 3 * X[:, 0]), X)
    >>> est.jacobian(rows)[25].round(2)
    array([3.])
    >>> lower, upper = est.predict_interval(rows)
    """
    if not isinstance(model, Pipeline):
        return model, X
    *steps, est = steps_of(model)
    if not steps:
        return est, X
    before = model[:-1]
    rows = None if X is None else np.asarray(before.transform(X), dtype=np.float64)
    regressor = regressor_of(est)
    found = _named(regressor, _names(before))
    if regressor._notes["metric"] in LINEAR:
        zero = np.zeros((1, est.n_features_in_))
        centre = _unscaled(before, zero)[0]
        scale = _unscaled(before, zero + 1.0)[0] - centre
        # A scale of one digit of the centre or less, of a column that is all but constant, is lost.
        found = _moved(found, centre, np.where(scale == 0, 1.0, scale))
        rows = None if rows is None else _unscaled(before, rows)
    return _with_regressor(est, found), rows


def named(model: Any, names: list[str]) -> Any:
    """A copy of a fitted model that knows the names of its features."""
    return _with_regressor(model, _named(regressor_of(model), names))


def metric_word(estimator: Any) -> str:
    """The metric of a fitted model; the kind of the metric if it was chosen."""
    return str(regressor_of(estimator)._metric_kind)


def regressor_of(estimator: Any) -> Any:
    """The regressor of a classifier, or the estimator itself."""
    return getattr(estimator, "regressor_", estimator)


def _with_regressor(model: Any, regressor: Any) -> Any:
    """The regressor itself, or a copy of a classifier that contains it."""
    if not hasattr(model, "regressor_"):
        return regressor
    classifier = _copy(model)
    classifier.regressor_ = regressor
    return classifier


def steps_of(model: Any) -> list[Any]:
    """The steps of a pipeline without pass-through steps, or the model alone; the last is ours."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    if not hasattr(steps[-1], "diagnose"):  # only our models have it
        raise TypeError(
            "`model` must be a regressor or classifier of jacridge, or a Pipeline that ends in "
            f"one, got {', '.join(type(step).__name__ for step in steps)}."
        )
    check_is_fitted(steps[-1])
    return [step for step in steps if step is not None and not isinstance(step, str)]


def _unscaled(step: Any, Z: Array) -> Array:
    """Undo the scaling at the end of a step."""
    if _is_scaler(step):
        return np.asarray(step.inverse_transform(Z))
    if isinstance(step, Pipeline):
        for _, part in reversed(step.steps):
            Z = _unscaled(part, Z)
            if part is not None and not isinstance(part, str) and not _is_scaler(part):
                break  # the steps before have other columns
    elif isinstance(step, ColumnTransformer):
        Z = Z.copy()
        for name, part, _ in step.transformers_:
            places = step.output_indices_[name]
            if places.stop > places.start:
                Z[:, places] = _unscaled(part, Z[:, places])
    return Z


def _is_scaler(step: Any) -> bool:
    return isinstance(step, SCALERS) and not getattr(step, "clip", False)


def _moved(est: Any, centre: Array, scale: Array) -> Any:
    """Copy of a model of (x - centre) / scale that takes the unscaled columns x."""
    est = _copy(est)
    est._feature_std = est._feature_std * scale
    est._T, est._centre = (est._T.T / scale).T, centre
    if est.warp_ is not None:
        est.warp_ = np.stack([centre + scale * est.warp_[0], scale * est.warp_[1]])
    if est._X_given is not None:
        est._X_given = est._X_given * scale + centre
    if est._weightless is not None:
        places, X, y = est._weightless
        est._weightless = places, X * scale + centre, y
    return est


def _copy(est: Any) -> Any:
    """A shallow copy that computes its own fitted function."""
    other = copy(est)
    other.__dict__.pop("_made", None)  # the function for the scaled rows
    return other


def _named(est: Any, names: list[str] | None) -> Any:
    """A copy of a model that knows the names of its features, but takes rows without names."""
    est = _copy(est)
    est.__dict__.pop("feature_names_in_", None)
    est._names = names
    return est


def _names(before: Pipeline) -> list[str] | None:
    """Names of the features that steps return, if known."""
    try:
        names = [str(name) for name in before.get_feature_names_out()]
    except (AttributeError, ValueError):  # a step without feature names
        return None
    short = [name.split("__", 1)[-1] for name in names]
    is_plain = len(set(short)) == len(names) and all("__" in name for name in names)
    return short if is_plain else names
