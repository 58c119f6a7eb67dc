"""`JacobianKernelClassifier`: kernel ridge regression on coded classes, with probabilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from ._checks import check_weights
from ._compute.arrays import Array
from ._estimator import JacobianKernelRidge
from ._rows.dask import is_dask
from ._rows.labels import (
    ArrayLabels,
    ClassTotals,
    CodedColumn,
    Coding,
    DaskLabels,
    check_present,
    dask_labels,
)
from ._rules.calibration import LogOdds, calibrated, log_losses, shares_of, uncalibrated
from ._rules.training import TrainingData
from .diagnostics import Diagnosis, Finding
from .parquet import ParquetFiles


def _of_regressor(name: str) -> property:
    """An attribute of the fitted regressor, as one of the classifier."""

    def shown(self: JacobianKernelClassifier) -> Any:
        if "regressor_" not in vars(self):
            raise AttributeError(f"`{name}` is known after `fit`.")
        return getattr(self.regressor_, name)

    return property(shown)


def _has_probabilities(est: JacobianKernelClassifier) -> bool:
    """True, or an error that says why there are no probabilities."""
    if est.solver == "pcg":
        raise AttributeError(
            "Probabilities are calibrated by leave-one-out, which solver='pcg' does not have. Use "
            "solver='exact' or 'nystrom', or CalibratedClassifierCV."
        )
    return True


class JacobianKernelClassifier(ClassifierMixin, BaseEstimator):
    r"""Kernel ridge classification that chooses its own bandwidth, with calibrated probabilities.

    Each class is a target of :class:`JacobianKernelRidge`: one for its rows and zero for others,
    less the share of the class. Bandwidth, kernel, metric and penalty are common to all classes.
    Leave-one-out scores, which one factorisation gives for all rows, calibrate the probabilities:
    no row is held out, and nothing is fitted again.

    Parameters
    ----------
    bandwidth, alpha, kernel, metric, solver, n_landmarks, landmarks, fit_intercept, random_state, \
verbose
        As for :class:`JacobianKernelRidge`. A chosen `alpha` is one number for all classes, that
        with the least sum of their errors; kernel and learned metric are chosen by the log-loss
        of held-out rows. With ``solver="pcg"`` there are no leave-one-out scores, and so no
        probabilities.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply `sample_weight`: ``{label: weight}``, where labels
        that are left out have a weight of one, or "balanced" for the same total weight in each
        class. Probabilities are those of the weighted rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_prior_ : ndarray of shape (n_classes,)
        Weighted shares of the classes among the training rows.
    regressor_ : JacobianKernelRidge
        The fitted regression on coded classes.
    slope_, offset_ : float, float or ndarray of shape (n_classes,)
        The log-odds are `slope_` times the scores of `regressor_` plus `offset_`.
    bandwidth_, alpha_, kernel_, metric_, solver_, choices_, feature_importances_, X_fit_
        Those of `regressor_`.
    loo_decision_function_ : ndarray of shape (n_samples,) or (n_samples, n_classes)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from jacridge import JacobianKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> est = JacobianKernelClassifier("auto", "auto", random_state=0).fit(X, y)
    >>> est.score(X, y) > 0.95
    True
    >>> est.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])
    """

    __module__ = "jacridge"  # saved models name public paths

    alpha_ = _of_regressor("alpha_")
    bandwidth_ = _of_regressor("bandwidth_")
    choices_ = _of_regressor("choices_")
    feature_importances_ = _of_regressor("feature_importances_")
    feature_names_in_ = _of_regressor("feature_names_in_")
    kernel_ = _of_regressor("kernel_")
    metric_ = _of_regressor("metric_")
    n_features_in_ = _of_regressor("n_features_in_")
    solver_ = _of_regressor("solver_")
    X_fit_ = _of_regressor("X_fit_")

    def __init__(
        self,
        bandwidth: float | str | Callable[[TrainingData], float] = "jacobian",
        alpha: float | str | npt.ArrayLike = 1e-3,
        *,
        kernel: str = "gaussian",
        metric: str = "euclidean",
        solver: str = "auto",
        n_landmarks: int | None = None,
        landmarks: str | npt.ArrayLike = "kmeans",
        fit_intercept: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.kernel = kernel
        self.metric = metric
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> JacobianKernelClassifier:
        """Fit the scores of all classes, then calibrate them by leave-one-out.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Or other rows, as for :class:`JacobianKernelRidge`.
        y : array of shape (n_samples,)
            Labels: numbers, strings or booleans.
        sample_weight : array of shape (n_samples,), optional
            A weight of two is the same as two equal rows.

        Returns
        -------
        self
        """
        labels = self._labels(X, y, sample_weight)
        found = labels.totals()
        self.classes_ = check_classes(found)
        factors = class_factors(self.class_weight, self.classes_, found.weights)
        weights = found.weights if factors is None else found.weights * factors
        self.class_prior_ = weights / weights.sum()
        coding = Coding(self.classes_, self.class_prior_, factors)
        Y, w = labels.coded(coding)
        self._fit_coded(X, Y, w, float(found.counts.sum()))
        # Leave-one-out scores come from residuals, so that they need the classes.
        self._index = coding.index(labels.y) if isinstance(labels, ArrayLabels) else None
        return self

    def _labels(self, X: Any, y: Any, w: Any) -> ArrayLabels | DaskLabels | ParquetLabels:
        """Labels and weights, wherever they are."""
        if isinstance(X, ParquetFiles):
            return ParquetLabels(X, y, w)
        if is_dask(X) and is_dask(y):
            return dask_labels(y, w)
        labels = checked_labels(y.compute() if is_dask(y) else y)
        if not is_dask(X):
            check_consistent_length(X, labels)
        w = w.compute() if is_dask(w) else w
        return ArrayLabels(labels, None if w is None else check_weights(w, labels))

    def _fit_coded(self, X: Any, Y: Any, w: Any, n: float) -> None:
        """Fit the regressor to coded classes, and calibrate its scores; n rows were given."""
        names = JacobianKernelRidge().get_params()
        regressor = JacobianKernelRidge(**{name: getattr(self, name) for name in names})
        loss = partial(log_losses, prior=self.class_prior_)
        self.regressor_ = regressor._fit(X, Y, w, loss=loss, shared=True)
        found = self._calibrated(n)
        self.slope_ = found.slope
        self.offset_ = float(found.offset[0]) if self._is_binary else found.offset

    def _calibrated(self, n: float) -> LogOdds:
        """Log-odds that minimise the log-loss of the leave-one-out scores."""
        if self.regressor_.solver_ == "pcg":
            return uncalibrated(self.class_prior_)
        held = self.regressor_._fitted_model().held_out
        return calibrated(held.y, held.y - held.residuals, held.w, self.class_prior_, n)

    @property
    def _is_binary(self) -> bool:
        return len(self.classes_) == 2

    def decision_function(self, X: Any) -> Any:
        """Log-odds of the classes at the rows of X; for two classes, of the second one.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            A lazy Dask array, if X is one. With ``solver="pcg"`` the scores, not calibrated.
        """
        return self._each(X, lambda odds: odds)

    def predict(self, X: Any) -> Any:
        """The most likely class of each row of X.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            A lazy Dask array, if X is one.
        """
        return self._each(X, partial(labels_of, self._fitted_classes))

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Calibrated probabilities of the classes, in the order of `classes_`.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            A lazy Dask array, if X is one.
        """
        return self._each(X, probabilities)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities, exact where these round to zero.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._each(X, log_probabilities)

    @property
    def _fitted_classes(self) -> Any:
        check_is_fitted(self)
        return self.classes_

    def _each(self, X: Any, work: Callable[[Array], Any]) -> Any:
        """Results of `work` for the log-odds of all rows; lazy for Dask arrays."""
        check_is_fitted(self)
        scores = self.regressor_.predict(X)
        odds = partial(log_odds, self.slope_, self.offset_)
        if not is_dask(scores):
            return work(odds(scores))
        empty = work(odds(np.zeros((0, scores.shape[1]))))
        shape: dict[str, Any] = {"chunks": (scores.chunks[0], *((k,) for k in empty.shape[1:]))}
        shape["drop_axis"] = None if empty.ndim == 2 else 1
        return scores.map_blocks(partial(_worked, work, odds), meta=empty, **shape)

    def jacobian(self, X: Any) -> Any:
        """Derivatives of the decision function with respect to the features, at the rows of X.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_samples, n_classes, n_features)
        """
        check_is_fitted(self)
        J = self.slope_ * self.regressor_.jacobian(X)
        return J[:, 0] if self._is_binary else J

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows of X whose class is predicted right.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            For ``jacridge.parquet.ParquetFiles`` y is the name of a column.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        float
        """
        y = X.labels(y) if isinstance(X, ParquetFiles) else y
        return float(super().score(X, y, sample_weight))

    @property
    def loo_decision_function_(self) -> Array:
        """Log-odds of each training row by the model fitted to the rows that differ from it.

        In closed form, with bandwidth, penalty and calibration held fixed.
        """
        check_is_fitted(self)
        if self._index is None:
            raise AttributeError(
                "`loo_decision_function_` needs the labels in memory, got those of Dask arrays or "
                "Parquet files."
            )
        Y = Coding(self.classes_, self.class_prior_).coded(self._index)
        return log_odds(self.slope_, self.offset_, Y - self.regressor_.loo_residuals_)

    def diagnose(self) -> Diagnosis:
        """Reasons to trust the fit, or not, in numbers and words.

        Returns
        -------
        Diagnosis
            That of the regression on coded classes, with accuracy and log-loss before it.
        """
        check_is_fitted(self)
        held, prior = self.regressor_._fitted_model().held_out, self.class_prior_
        odds = log_odds(self.slope_, self.offset_, held.y - held.residuals)
        shares, w = shares_of(held.y, prior), held.w / held.w.sum()
        loss = float(-w @ (shares * log_probabilities(odds)).sum(axis=1))
        best = labels_of(np.arange(len(prior)), odds)
        right = float(w @ shares[np.arange(len(w)), best])
        return Diagnosis(
            (
                Finding("leave-one-out accuracy", right, False, "Share of rows predicted right."),
                Finding("leave-one-out log-loss", loss, False, "Of the calibrated probabilities."),
                *self.regressor_.diagnose().findings,
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.positive_only = self.metric == "precomputed"
        return tags


class AutoKernelClassifier(JacobianKernelClassifier):
    """Kernel classification that chooses kernel, metric, bandwidth and penalty by itself.

    It is :class:`JacobianKernelClassifier` with other defaults, as :class:`AutoKernelRidge` is to
    :class:`JacobianKernelRidge`. Kernel, kind of metric and number of rounds are chosen by the
    log-loss of rows that did not take part in learning, bandwidth and penalty by leave-one-out.

    Parameters are those of :class:`JacobianKernelClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from jacridge import AutoKernelClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> est = AutoKernelClassifier(random_state=0).fit(X, y)
    >>> est.score(*make_moons(200, noise=0.2, random_state=1)) > 0.9
    True
    """

    __module__ = "jacridge"

    def __init__(
        self,
        bandwidth: float | str | Callable[[TrainingData], float] = "auto",
        alpha: float | str | npt.ArrayLike = "auto",
        *,
        kernel: str = "auto",
        metric: str = "auto",
        solver: str = "auto",
        n_landmarks: int | None = None,
        landmarks: str | npt.ArrayLike = "kmeans",
        fit_intercept: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            bandwidth,
            alpha,
            kernel=kernel,
            metric=metric,
            solver=solver,
            n_landmarks=n_landmarks,
            landmarks=landmarks,
            fit_intercept=fit_intercept,
            class_weight=class_weight,
            random_state=random_state,
            verbose=verbose,
        )


@dataclass(frozen=True)
class ParquetLabels:
    """A column of labels in Parquet files, and a column of weights or None."""

    files: ParquetFiles
    y: Any
    w: str | None

    def totals(self) -> ClassTotals:
        """The classes."""
        if self.y is None:
            raise ValueError("`y` must name the column of labels in Parquet files, got None.")
        return self.files.class_totals(self.y, self.w)

    def coded(self, coding: Coding) -> tuple[CodedColumn, str | None]:
        """What the regressor takes as target and weights."""
        return CodedColumn(self.y, coding), self.w


def checked_labels(y: Any) -> Any:
    """Labels as an array of one dimension, without missing ones."""
    if y is None:
        raise ValueError(
            "`y` must hold labels: a fit requires y to be passed, but the target y is None."
        )
    labels = column_or_1d(y, warn=True)
    check_present(labels)
    check_classification_targets(labels)
    return labels


def check_classes(found: ClassTotals) -> Any:
    """The classes; refuse a single one, one with a single row, and numbers that are no labels."""
    classes, counts = found.classes, found.counts
    if classes.dtype.kind == "f" and (classes != np.rint(classes)).any():
        raise ValueError(
            f"`y` must hold labels of classes, got {len(classes)} numbers with fractions "
            "(continuous). Use AutoKernelRidge for these."
        )
    if len(classes) < 2:
        raise ValueError(
            "`y` must have at least two classes among the rows of positive weight, got one class, "
            f"{_listed(classes)}."
        )
    if counts.min() < 2:
        rare = classes[counts == 1]
        raise ValueError(
            f"`y` must have at least two rows of each class, got one row of {_listed(rare)}. "
            "Leave such classes out, or join them to others."
        )
    return classes


def _listed(labels: Any, most: int = 5) -> str:
    shown = ", ".join(repr(label) for label in labels[:most].tolist())
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most} more"


def class_factors(class_weight: Any, classes: Any, totals: Array) -> Array | None:
    """Factor of the weights of each class, or None; `totals` are the weights of the classes."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray(totals.sum() / (len(classes) * totals))
    if not isinstance(class_weight, Mapping):
        kind = ValueError if isinstance(class_weight, str) else TypeError
        raise kind(
            '`class_weight` must be None, "balanced" or a dict from labels to weights, got '
            f"{class_weight!r}."
        )
    unknown = [label for label in class_weight if label not in classes.tolist()]
    if unknown:
        raise ValueError(
            f"`class_weight` must name classes of `y`, which are {_listed(classes)}, got "
            f"{unknown[0]!r}."
        )
    factors = np.array([class_weight.get(label, 1.0) for label in classes.tolist()], dtype=float)
    if not (np.isfinite(factors) & (factors > 0)).all():
        raise ValueError(f"`class_weight` must have finite weights > 0, got {class_weight!r}.")
    return factors


def log_odds(slope: float, offset: Any, scores: Array) -> Array:
    """Log-odds of scores (n, 1) or (n, k): of shape (n,) for two classes, else (n, k)."""
    odds = slope * scores + offset
    return np.asarray(odds[:, 0] if odds.shape[1] == 1 else odds)


def _worked(work: Callable[[Array], Any], odds: Callable[[Array], Array], scores: Array) -> Any:
    return work(odds(scores))


def labels_of(classes: Any, odds: Array) -> Any:
    """The class with the largest log-odds in each row."""
    return classes[(odds > 0).astype(np.intp) if odds.ndim == 1 else odds.argmax(axis=1)]


def probabilities(odds: Array) -> Array:
    """Probabilities of all classes from log-odds."""
    if odds.ndim == 1:
        return np.column_stack([expit(-odds), expit(odds)])
    return np.asarray(softmax(odds, axis=1))


def log_probabilities(odds: Array) -> Array:
    """Logarithms of the probabilities of all classes from log-odds."""
    if odds.ndim == 1:
        return np.column_stack([log_expit(-odds), log_expit(odds)])
    return np.asarray(log_softmax(odds, axis=1))
