"""`JacobianKernelClassifier`: kernel ridge regression on coded classes, with probabilities."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ._checks import check_weights
from ._compute.arrays import Array
from ._estimator import JacobianKernelRidge
from ._rows.dask import is_dask
from ._rows.labels import (
    ArrayLabels,
    Coding,
    DaskLabels,
    ParquetLabels,
    check_classes,
    checked_labels,
    class_factors,
    dask_labels,
)
from ._rules import calibration
from ._rules.calibration import LogOdds
from ._rules.parameters import AutoClassParameters, ClassParameters, parameters_of
from .diagnostics import Diagnosis, Finding, choice_findings, r2_of_classes
from .effects import Contrast, Effects, Summary
from .effects._average import average_effects
from .effects._classes import ClassFunction, class_error_kind
from .parquet import ParquetFiles


def _of_regressor(name: str) -> property:
    """Property that returns an attribute of the fitted regressor."""

    def shown(self: JacobianKernelClassifier) -> Any:
        if "regressor_" not in vars(self):
            raise AttributeError(f"`{name}` is only available after `fit`.")
        return getattr(self.regressor_, name)

    return property(shown)


def _has_probabilities(est: JacobianKernelClassifier) -> bool:
    """True, or an error that says why there are no probabilities."""
    fitted = vars(est).get("regressor_")
    if (est if fitted is None else fitted).solver == "pcg":
        raise AttributeError(
            "Probabilities are calibrated by leave-one-out, which solver='pcg' cannot compute. Use "
            "solver='exact' or 'nystrom', or CalibratedClassifierCV."
        )
    return True


class JacobianKernelClassifier(ClassifierMixin, BaseEstimator, ClassParameters):
    """Kernel ridge classification that chooses its own bandwidth, with calibrated probabilities.

    Each class is a target of :class:`JacobianKernelRidge`: one for its rows and zero for all
    others, minus the share of the class. Bandwidth, kernel, metric and penalty are common to all
    classes. Probabilities are calibrated on leave-one-out scores, which a single factorisation
    gives for all rows: no rows are set aside, and no model is refitted.

    Parameters
    ----------
    bandwidth, alpha, kernel, metric, solver, n_landmarks, landmarks, fit_intercept, held_out, \
random_state, verbose
        As for :class:`JacobianKernelRidge`. If `alpha` is chosen, it is one number for all classes,
        the one that minimises the sum of their errors; kernel and learned metric are chosen by the
        log loss on held-out rows. With ``solver="pcg"`` there are no leave-one-out scores, and so
        no probabilities.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply `sample_weight`: ``{label: weight}``, where omitted
        labels have a weight of one, or "balanced" for the same total weight in each class.
        Probabilities refer to the weighted rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes, in order.
    class_prior_ : ndarray of shape (n_classes,)
        Weighted shares of the classes among the training rows.
    regressor_ : JacobianKernelRidge
        The fitted regression on coded classes. Its predictions are the scores: for two classes,
        only the score of the second; otherwise one for each class.
    slope_ : float
        Slope of the log-odds, which are `slope_` times the scores plus `offset_`.
    offset_ : float, or ndarray of shape (n_classes,) for more than two classes
        Log-odds where the scores are zero.
    loo_decision_function_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Log-odds of each training row, from the model fitted without it.
    bandwidth_, alpha_ : float
        Bandwidth and penalty, common to all classes.
    kernel_, solver_ : str
        Kernel and solver that were used.
    metric_ : ndarray of shape (n_features, n_directions)
        Linear map of the metric, if it is scaled or learned.
    warp_ : ndarray of shape (2, n_features) or None
        Centres and widths of the features that are compressed before the map, as for
        :class:`JacobianKernelRidge`.
    choices_ : list of dict
        Candidates for kernel and metric, best first, with their log loss on held-out rows, if any
        were compared. They are ranked as in :class:`JacobianKernelRidge`.
    feature_importances_ : ndarray of shape (n_features,)
        How much the scores move with each feature, as shares that sum to one.
    X_fit_ : ndarray of shape (n_rows, n_directions)
        Training rows or landmarks, after the map of the metric.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had names that are strings.

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
    warp_ = _of_regressor("warp_")
    n_features_in_ = _of_regressor("n_features_in_")
    solver_ = _of_regressor("solver_")
    X_fit_ = _of_regressor("X_fit_")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> JacobianKernelClassifier:
        """Fit the scores of all classes, then calibrate them by leave-one-out.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Or other rows, as for :class:`JacobianKernelRidge`.
        y : array of shape (n_samples,)
            Labels: numbers, strings or booleans.
        sample_weight : float or array of shape (n_samples,), optional
            A weight of two is the same as two equal rows. One number is the weight of every row.

        Returns
        -------
        self
        """
        labels = labels_beside(X, y, sample_weight)
        found = labels.totals()
        classes = check_classes(found)
        factors = class_factors(self.class_weight, classes, found.weights)
        weights = found.weights if factors is None else found.weights * factors
        prior = weights / weights.sum()
        coding = Coding(classes, prior, factors)
        Y, w = labels.coded(coding)
        regressor = JacobianKernelRidge(**parameters_of(self))
        loss = partial(calibration.calibrated_log_losses, prior=prior)
        regressor._fit(X, Y, w, loss=loss, shared=True)
        odds = log_odds_of(regressor, prior, float(found.counts.sum()))
        # All attributes are set together, so that a fit that fails changes nothing.
        self.classes_, self.class_prior_, self.regressor_ = classes, prior, regressor
        self.slope_, self.offset_ = odds.slope, odds.offset
        # Leave-one-out scores are computed from residuals, so they need the classes.
        self._index = coding.index(labels.y) if isinstance(labels, ArrayLabels) else None
        return self

    @property
    def _log_odds(self) -> LogOdds:
        return LogOdds(self.slope_, self.offset_)

    def decision_function(self, X: Any) -> Any:
        """Log-odds of the classes at the rows of X; for two classes, those of the second.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            A lazy Dask array, if X is one. With ``solver="pcg"``, uncalibrated scores.
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
        check_is_fitted(self)
        return self._each(X, partial(calibration.most_likely, self.classes_))

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
        return self._each(X, calibration.probabilities)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities, accurate even where a probability rounds to zero.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._each(X, calibration.log_probabilities)

    def _each(self, X: Any, work: Callable[[Array], Any]) -> Any:
        """Apply `work` to the log-odds of all rows; lazily for Dask arrays."""
        check_is_fitted(self)
        scores, odds = self.regressor_.predict(X), self._log_odds

        def worked(scores: Array) -> Any:
            return work(odds(scores))

        if not is_dask(scores):
            return worked(scores)
        empty = worked(np.zeros((0, scores.shape[1])))
        chunks = (scores.chunks[0], *((k,) for k in empty.shape[1:]))
        gone = None if empty.ndim == 2 else 1
        return scores.map_blocks(worked, meta=empty, chunks=chunks, drop_axis=gone)

    def jacobian(self, X: Any, return_std: bool = False) -> Any:
        """Derivatives of the decision function with respect to the features, at the rows of X.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        return_std : bool
            Also return the standard errors of the derivatives. As in `effects`, they are robust
            (HC3) and hold kernel, metric, bandwidth, penalty and calibration fixed.

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_samples, n_classes, n_features); or two
            Lazy Dask arrays, if X is one.
        """
        check_is_fitted(self)
        if not return_std:
            return self._as_odds(self.regressor_.jacobian(X))
        noise = self._function().influence.robust().apart
        parts = self.regressor_._each_block(
            X,
            lambda f, rows: (f.slopes(rows), f.slope_deviations(rows, lambda _: noise)),
            self.n_features_in_,
            errors=True,
        )
        return tuple(map(self._as_odds, parts))

    def _as_odds(self, J: Any) -> Any:
        """Convert derivatives of the scores, or their errors, to derivatives of the log-odds."""
        return self.slope_ * (J[:, 0] if J.shape[1] == 1 else J)

    def effects(
        self,
        X: Any = None,
        *,
        variables: Any = None,
        at: Any = "observed",
        kind: str = "auto",
        by: Any = None,
        cluster: npt.ArrayLike | None = None,
        level: float = 0.95,
    ) -> Effects:
        """Average effects of the features on the probability of each class, with standard errors.

        The effect of a feature is the average slope of `predict_proba`, or the average first
        difference if it has two values. For the kernels "exponential" and "laplacian", slopes
        along a feature with few values are averages between two of its quantiles.

        Standard errors follow from the errors of the scores to first order (the delta method). They
        are robust (HC3), because the variance of the noise in the labels differs between rows, and
        hold kernel, metric, bandwidth, penalty and calibration fixed. Intervals use the normal
        distribution, or Student's t for clusters. The error of a learned metric is included as in
        :meth:`JacobianKernelRidge.effects`.

        Parameters
        ----------
        X, variables, at, kind, by, level
            As for :meth:`JacobianKernelRidge.effects`.
        cluster : array of shape (n_samples,), optional
            Label of each training row; noise may be correlated within a cluster.

        Returns
        -------
        Effects
            The column `target` has the label of the class. For two classes, only the effects on
            the second are shown; the effects on the first are their negatives.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from jacridge import JacobianKernelClassifier
        >>> est = JacobianKernelClassifier(2.0, 0.1).fit(*load_iris(return_X_y=True))
        >>> [(row.target, row.term) for row in est.effects(variables=[2, 3])]
        [('0', 'x2'), ('0', 'x3'), ('1', 'x2'), ('1', 'x3'), ('2', 'x2'), ('2', 'x3')]
        """
        check_is_fitted(self)
        self.regressor_._check_has_features("An effect")
        rows = self.regressor_._observations(X)
        errors = self.regressor_._with_metric(class_error_kind(cluster, rows.w_train))
        asked = {"variables": variables, "at": at, "kind": kind, "by": by, "level": level}
        return average_effects(self._function(), rows, errors, classes=True, **asked)

    def contrast(self, X1: Any, X0: Any, *, cluster: npt.ArrayLike | None = None) -> Contrast:
        """Differences of the probabilities at X1 and X0, with their joint covariance.

        Parameters
        ----------
        X1, X0 : arrays of shape (n_samples, n_features)
            One of them may be a single row, which is compared with each row of the other.
        cluster
            As for `effects`.

        Returns
        -------
        Contrast
            For all classes; if there are two, for the second.
        """
        check_is_fitted(self)
        regressor = self.regressor_
        regressor._check_has_features("A contrast")
        errors = class_error_kind(cluster, regressor._function().training_rows()[1])
        return self._function().contrast(regressor._read(X1), regressor._read(X0), errors.of)

    def summary(self) -> Summary:
        """Table of the fit and of the average effects of the features.

        Returns
        -------
        Summary
            Prints like the summaries of statsmodels and renders as HTML.
        """
        effects, found = self.effects(), self.diagnose().dict()
        scores = ("leave-one-out accuracy", "leave-one-out log loss")
        fit = self.regressor_._facts(classes=len(self.classes_)) | {
            "penalty": self.alpha_,
            "residual degrees of freedom": self._function().influence.residual_degrees,
            "slope of the log-odds": self.slope_,
            **{name: found[name]["value"] for name in scores},
        }
        return Summary(fit, effects, "Kernel ridge classification")

    def _function(self) -> ClassFunction:
        """Probabilities of rows as given, with everything that their standard errors need."""
        labels = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        return ClassFunction(self.regressor_._function(), self._log_odds, [*map(str, labels)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the share of the rows of X whose class is predicted correctly.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            For ``jacridge.parquet.ParquetFiles`` y is the name of a column; sample_weight may also
            be a column name.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        float
        """
        if isinstance(X, ParquetFiles):
            y, sample_weight = X.labels(y), X.weights(sample_weight)
        return float(super().score(X, y, sample_weight))

    @property
    def loo_decision_function_(self) -> Array:
        """Log-odds of each training row, from the model fitted to the rows that differ from it.

        Computed in closed form, with bandwidth, penalty and calibration held fixed.
        """
        check_is_fitted(self)
        if self._index is None:
            raise AttributeError(
                "`loo_decision_function_` needs labels in memory, got labels in Dask arrays or "
                "Parquet files."
            )
        Y = Coding(self.classes_, self.class_prior_).coded(self._index)
        return self._log_odds(Y - self.regressor_.loo_residuals_)

    def diagnose(self) -> Diagnosis:
        """Reasons to trust the fit, or not, in numbers and words.

        Returns
        -------
        Diagnosis
            The diagnosis of the regression on coded classes, preceded by accuracy and log loss.
        """
        check_is_fitted(self)
        choices = choice_findings(getattr(self.regressor_, "choices_", ()), classes=True)
        of_numbers = self.regressor_.diagnose().findings
        known = {finding.name: finding for finding in (*map(r2_of_classes, of_numbers), *choices)}
        findings = [known[f.name] for f in of_numbers]
        held, prior = self.regressor_._function().model.held_out_singly, self.class_prior_
        odds, w = self._log_odds(held.y - held.residuals), held.w / held.w.sum()
        loss = float(w @ calibration.log_losses(held.y, odds, prior))
        best = calibration.most_likely(np.arange(len(prior)), odds)
        right = float(w @ calibration.shares_of(held.y, prior)[np.arange(len(w)), best])
        return Diagnosis(
            (
                Finding("leave-one-out accuracy", right, False, "Share of correct predictions."),
                Finding("leave-one-out log loss", loss, False, "Of the calibrated probabilities."),
                *findings,
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.positive_only = self.metric == "precomputed"
        return tags


class AutoKernelClassifier(AutoClassParameters, JacobianKernelClassifier):
    """Kernel classification that chooses kernel, metric, bandwidth and penalty automatically.

    It is :class:`JacobianKernelClassifier` with other defaults, as :class:`AutoKernelRidge` is to
    :class:`JacobianKernelRidge`. Kernel, kind of metric and number of rounds are chosen by the
    log loss of rows that were not used for learning, bandwidth and penalty by leave-one-out.

    Parameters and attributes are those of :class:`JacobianKernelClassifier`.

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


def labels_beside(X: Any, y: Any, w: Any) -> ArrayLabels | DaskLabels | ParquetLabels:
    """Labels and weights of the rows X, from any source."""
    if isinstance(X, ParquetFiles):
        return ParquetLabels(X, y, w)
    if is_dask(X) and is_dask(y):
        return dask_labels(y, w)
    labels = checked_labels(y.compute() if is_dask(y) else y)
    if not is_dask(X):
        check_consistent_length(X, labels)
    w = w.compute() if is_dask(w) else w
    return ArrayLabels(labels, None if w is None else check_weights(w, labels))


def log_odds_of(regressor: JacobianKernelRidge, prior: Array, n: float) -> LogOdds:
    """Log-odds from a regressor's scores, calibrated on leave-one-out scores; n rows were given."""
    held = getattr(regressor._function().model, "held_out_singly", None)
    if held is None:
        return calibration.uncalibrated(prior)
    return calibration.calibrated(held.y, held.y - held.residuals, held.w, prior, n)
