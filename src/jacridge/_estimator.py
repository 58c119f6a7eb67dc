"""`JacobianKernelRidge`: its parameters, its fit, and its predictions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ._checks import check_number
from ._compute.arrays import Array
from ._compute.progress import listening, printer
from ._geometry.maps import FeatureMap, Warp
from ._geometry.nearest import Neighbours
from ._geometry.space import LEARNED, LINEAR, space_of
from ._rows.dask import is_dask
from ._rows.given import rows_given
from ._rows.parquet_files import ParquetFiles
from ._rules.choice import Loss, squared_errors
from ._rules.fitting import Solution, fitted
from ._rules.metric import Metric
from ._rules.parameters import AutoParameters, Parameters, Request, parameters_of
from ._solvers.function import FittedFunction
from ._solvers.model import Model
from ._solvers.saved import state_from_file, state_to_save

if TYPE_CHECKING:  # imported at run time only where used, so that `import jacridge` stays quick
    from .diagnostics import Diagnosis
    from .effects import Contrast, Effects, Summary
    from .effects._average import Observations
    from .effects._errors import ErrorKind

# Function of the fitted function and rows that returns results of shape (n, k, ...).
FunctionWork = Callable[[FittedFunction, Array], tuple[Array, ...]]


class JacobianKernelRidge(MultiOutputMixin, RegressorMixin, BaseEstimator, Parameters):
    r"""Kernel ridge regression that chooses its own bandwidth.

    With the kernel :math:`k`, such as the Gaussian :math:`\exp(-\|x - x'\|^2 / (2 \sigma^2))`,
    the prediction is :math:`b + k(x, X) (K + \lambda I)^{-1} (y - b)`, where b is the mean of y.

    Parameters
    ----------
    bandwidth : float, str or function
        :math:`\sigma`: a number, the name of a rule (``jacridge.RULES``), or a function of
        :class:`TrainingData` that returns a number. The rule ``jacobian`` is the paper's closed
        form, which does not use y; ``auto`` is a cheap search for the best leave-one-out error.
    alpha : float, {"loo", "gcv", "mml", "auto"} or list of float
        The ridge penalty :math:`\lambda \ge 0`; 0 interpolates. A word is the criterion that
        chooses it together with the bandwidth, one penalty for each target; "auto" is the criterion
        of the bandwidth's rule, or leave-one-out if the rule has none. A list gives the range to
        choose from, by the criterion of "auto"; unlike in scikit-learn's ``KernelRidge``, its
        entries are not the penalties of the targets.
    kernel : {"gaussian", "matern52", "matern32", "exponential", "laplacian", "auto"}
        "laplacian" is scikit-learn's, of the city-block distance, with gamma = 1 / sigma. The
        rule ``jacobian`` has no minimum for "exponential" and "laplacian"; use another rule.
        "auto" chooses by the error on held-out rows; for the metrics "geodesic" and "precomputed",
        by leave-one-out, without `choices_`.
    metric : {"euclidean", "scaled", "diagonal", "full", "auto", "geodesic", "precomputed"}
        The first five are the distance after a linear map of the features: the identity; division
        by standard deviations; a diagonal or full map learned from the Jacobian of the fitted
        function, in a number of rounds that is chosen on held-out rows; or the best of these
        ("auto"). Learned metrics first compress features with heavy tails if that lowers the
        held-out error (`warp_`). "geodesic": rows are latitude and longitude in degrees, distances
        are in metres. "precomputed": X holds distances (not a kernel) to the training rows.
    solver : {"auto", "exact", "nystrom", "pcg"}
        "exact" factors the n x n kernel matrix. "nystrom" restricts the function to the span of the
        kernels at `n_landmarks` points: rows are read in blocks, and only m x m sums are kept.
        "pcg" solves the exact system by conjugate gradients, preconditioned by `n_landmarks`
        landmarks, without the n x n matrix in memory. "auto" is exact up to 10,000 distinct rows in
        memory (20,000 with a learned metric) if the matrix takes less than half of the free memory,
        else "nystrom"; `solver_` says which one was used.
    n_landmarks : int, optional
        Number m of landmarks, at most n_samples. The default is 3000 for "nystrom", and a twentieth
        of the rows but at most 1000 for "pcg". If all rows are landmarks, "nystrom" solves the
        exact system.
    landmarks : {"kmeans", "uniform", "rpcholesky"} or array of shape (m, n_features)
        How landmarks are chosen: as centres of clusters, at random, or as pivots of a randomly
        pivoted Cholesky factorisation of the kernel, among 10 m rows; or the landmarks themselves.
    fit_intercept : bool or "free"
        True: b is the mean of y. False: it is zero. "free": it is fitted with the rest and not
        penalised, as in ``Ridge`` or ordinary kriging; with wide kernels it may lie outside the
        range of y, and predictions far from the data tend to b. Bandwidth and penalty are chosen
        with b at the mean.
    held_out : {"random", "later"}
        The rows on which candidates are compared if kernel or metric is chosen. "later" is for
        rows in time order, the oldest first, and a model that has to predict later rows:
        candidates are fitted to earlier rows and judged by their error on the rows that follow.
        If `bandwidth` is "auto", and `alpha` is "auto", a number or a list, bandwidth and penalty
        are chosen by the same errors, not by leave-one-out, with one penalty for all targets. With
        fewer than 20 distinct rows, nothing is held out. Refused for Dask arrays and Parquet files,
        for the metrics "geodesic" and "precomputed", and if nothing is chosen on held-out rows.
    random_state : int, optional
        Seed for samples and landmarks; without one, repeated fits differ slightly.
    verbose : int
        If not zero, passes over rows and iterations of a fit print their progress to stderr.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth, given or chosen, in the units of distances.
    alpha_ : float, or ndarray of shape (n_targets,)
        The ridge penalty, given or chosen; one for each target if it was chosen for several.
    kernel_ : str
        Name of the kernel that was used.
    solver_ : {"exact", "nystrom", "pcg"}
        Name of the solver that was used.
    metric_ : ndarray of shape (n_features, n_directions)
        Linear map T of the metric: distances are measured between the rows of X T, after X has been
        compressed by `warp_` if there is one. Absent for the metrics "geodesic" and "precomputed".
    warp_ : ndarray of shape (2, n_features) or None
        Centres c and widths s of the features with heavy tails that a learned metric compresses
        before the linear map, to c + s asinh((x - c) / s); a feature of infinite width is not
        compressed. None if no feature is.
    choices_ : list of dict
        Every kernel and metric that was tried, best first, if kernel or metric was chosen: kernel,
        kind of metric, rounds, whether heavy tails were compressed, mean squared error on held-out
        rows (divided by the error of the mean of y, so that one minus it is R2), the same error
        without the hardest 2 % of the rows (`trimmed_error`), the standard error of its difference
        from the best `trimmed_error`, seconds, the number of held-out predictions, and whether the
        candidate was chosen. Finalists, which are judged on more rows, come first; finalists and
        others are each ranked by `trimmed_error`. ``pandas.DataFrame(est.choices_)`` shows them as
        a table.
    dual_coef_ : ndarray of shape (n_rows,) or (n_rows, n_targets)
        Coefficients of the kernels at the rows of `X_fit_`.
    intercept_ : float or ndarray of shape (n_targets,)
        The constant b; predictions far from the data tend to it.
    X_fit_ : ndarray of shape (n_rows, n_directions)
        The distinct training rows of positive weight after the map of the metric; for solver
        "nystrom" the landmarks.
    feature_importances_ : ndarray of shape (n_features,)
        How much the prediction changes with each feature, as shares that sum to one.
    loo_residuals_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Residual of each training row for the model fitted to the rows that differ from it.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had names.

    Examples
    --------
    >>> import numpy as np
    >>> from jacridge import JacobianKernelRidge
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> est = JacobianKernelRidge().fit(X, np.sin(X[:, 0]))
    >>> round(est.score(X, np.sin(X[:, 0])), 3)
    1.0
    """

    __module__ = "jacridge"  # saved models name public paths

    # The model; in an estimator loaded from a file, the arrays that restore it.
    _solved: Model | dict[str, Any]
    # The fitted function, made on first use; neither copied nor saved.
    _made: FittedFunction | None = None
    # How the fit came about, for a diagnosis.
    _notes: dict[str, Any]
    # Subtracted from the features after the warp and before the linear map.
    _centre: Array | None = None
    _feature_std: Array | None = None
    # The rows of `X_fit_` before the map of the metric, if they are training rows.
    _X_given: Array | None = None
    _names: list[str] | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> JacobianKernelRidge:
        """Choose the bandwidth, then solve for the dual coefficients.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            A memory map is also accepted, and read in blocks if it is float64. For
            ``jacridge.parquet.ParquetFiles``, y and sample_weight are names of columns.
            A Dask array or data frame is fitted by solver "nystrom", block by block on the workers
            that hold it; persist it first if it fits into their memory.
        y : array of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array of shape (n_samples,), optional
            A weight of zero removes a row; a weight of two is the same as two equal rows. One
            number is the weight of every row.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        loss: Loss = squared_errors,
        shared: bool = False,
    ) -> JacobianKernelRidge:
        """Fit with kernel and metric chosen by a loss; one penalty for all targets if `shared`."""
        asked = Request(**parameters_of(self), loss=loss, shared=shared)
        with self._listening():
            source, one_target = rows_given(X).source(self, y, sample_weight, asked.space.distance)
            fit = fitted(source, asked)
        self._keep(fit, one_target)
        self._keep_metric(fit.metric)
        self._columns = fit.source.first if self.metric == "precomputed" else None
        self._function()  # made here, so that predictions do not change the estimator
        return self

    def _keep(self, fit: Solution, one_target: bool) -> None:
        """Store the model, and its parts in public attributes."""
        self._solved, self._made = fit.model, None
        self.dual_coef_ = fit.model.dual_coef[:, 0] if one_target else fit.model.dual_coef
        self.intercept_ = fit.model.intercept[0] if one_target else fit.model.intercept
        self.X_fit_, self._X_given = fit.Z, fit.Z_given
        self.bandwidth_ = fit.sigma
        self.alpha_ = fit.lam if np.size(fit.lam) > 1 else float(np.ravel(fit.lam)[0])
        self.solver_, self.kernel_ = fit.solver, fit.space.kernel.name
        self._weightless, self._notes = fit.source.weightless, fit.notes
        self._feature_std = fit.std

    def _keep_metric(self, metric: Metric) -> None:
        """Store the map of the metric, and the table of candidates if there was a choice."""
        self._centre, self._names = None, None
        for name in ("_T", "warp_", "choices_"):
            self.__dict__.pop(name, None)
        if self.metric in LINEAR:
            found = metric.mapping or FeatureMap(np.ones(self.n_features_in_))
            self._T, self.warp_ = found.T, None
            if found.warp is not None:
                self.warp_ = np.stack([found.warp.centre, found.warp.width])
        if metric.chosen is not None:
            self.choices_ = metric.choices

    def _function(self) -> FittedFunction:
        """The fitted function of rows as given, with the sources of its errors."""
        check_is_fitted(self)
        if self._made is not None:
            return self._made
        metric, mapping = self._notes["metric"], None
        if metric in LINEAR and (metric != "euclidean" or self._centre is not None):
            warp = None if self.warp_ is None else Warp(*self.warp_)
            mapping = FeatureMap(self._T, warp, self._centre)
        names = getattr(self, "feature_names_in_", self._names)
        self._made = FittedFunction(
            space=space_of(self.kernel_, metric),
            sigma=self.bandwidth_,
            Z=self.X_fit_,
            dual_coef=self.dual_coef_.reshape(len(self.X_fit_), -1),
            intercept=np.atleast_1d(self.intercept_),
            solver=self.solver_,
            lams=np.atleast_1d(self.alpha_),
            kind=self._notes["intercept"],
            solved=self._solved,
            mapping=mapping,
            columns=self._columns,
            Z_given=self._X_given,
            names=[f"x{j}" for j in range(self.n_features_in_)] if names is None else list(names),
        )
        return self._made

    def _each_block(
        self, X: Any, work: FunctionWork, *shape: int, errors: bool = False
    ) -> tuple[Any, ...]:
        """Results of `work` for the fitted function and the rows of X, from any source.

        `shape` is the shape of a result for one row and one target. Two results need the `errors`
        of the function. Results for Dask arrays are lazy.
        """
        function = self._function()
        distance, k = function.space.distance, len(function.intercept)
        if is_dask(X):
            function = function.portable(errors=errors)  # workers make the model themselves
        elif errors:
            _ = function.model  # made here, because each thread would otherwise make its own
        count = 2 if errors else 1
        with self._listening():
            found = rows_given(X).each(self, partial(work, function), distance, count, k, *shape)
        return tuple(part[:, 0] for part in found) if self.dual_coef_.ndim == 1 else found

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictions for the rows of X, by blocks of rows.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        return_std : bool
            Also return the standard deviation of the function (without the noise of y) under a
            Gaussian process with this kernel, whose variance is fitted to y. It is only as good
            as bandwidth and penalty are; `predict_interval` depends on them less.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets); or two of them
            Lazy Dask arrays, if X is one.
        """
        if not return_std:
            return self._each_block(X, lambda f, rows: (f.mean(rows),))[0]
        return self._each_block(X, lambda f, rows: (f.mean(rows), f.std(rows)), errors=True)

    def predict_interval(
        self, X: Any, coverage: float = 0.9, *, adaptive: bool = True
    ) -> tuple[Any, Any]:
        r"""Prediction intervals for new observations, by the jackknife+.

        The interval at x goes from a low quantile of :math:`\mu_{-i}(x) - s(x) |r_i| / s_i` to a
        high quantile of :math:`\mu_{-i}(x) + s(x) |r_i| / s_i`. Here :math:`\mu_{-i}` is the model
        without row i, :math:`r_i` its residual there, and s a scale:

        .. math:: s(x)^2 = g(x)^2 + V h(x)^2

        g(x) is the level of the noise: the exponential of a second kernel ridge regression on
        :math:`\log |r_i|`. It also sees the prediction at x, because noise often grows with the
        level of y, and features with two values (marks of gaps, one-hot categories) before the
        metric, which may give them little weight. h(x) is zero inside the data and grows outside,
        with the share of the variance that the rows leave unexplained at x, and with the distance
        to the nearest row, beyond what is usual among the rows. V makes the interval at least as
        wide as 2 h(x). Where none of the variance is explained, that is the range of y, or the
        interval of a normal variable with the standard deviation of the function
        (``predict(X, return_std=True)``) if that is wider. The interval is at least as wide as the
        range of y for every row whose distance to its nearest training row is at least the largest
        distance between two rows plus the 99 % quantile of the nearest-neighbour distances.

        All leave-one-out models come from one factorisation; bandwidth and penalty are held fixed,
        even if they were chosen on the same rows. A row is left out together with the rows equal to
        it, and its residual counts once, whatever its weight. Above 1000 rows, the leave-one-out
        models of 1000 randomly drawn rows are used. The exact solver then evaluates only the models
        whose residual is near the quantile, within four times the typical change of a model when
        one row is left out. In tests, the ends differed by at most 4 % of the mean width from
        those with all 1000 models.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        coverage : float between 0 and 1
        adaptive : bool
            False: s is one, so that intervals are about equally wide everywhere. For a bandwidth
            and penalty fixed beforehand, the coverage is then proven to be at least
            2 coverage - 1, whatever the noise.

        Returns
        -------
        lower, upper : ndarrays of shape (n_samples,) or (n_samples, n_targets)
            Lazy Dask arrays, if X is one.

        References
        ----------
        Barber, Candes, Ramdas, Tibshirani (2021), Predictive inference with the jackknife+,
        Annals of Statistics 49(1).
        """
        coverage = check_number("coverage", coverage, above=0, below=1)
        work = partial(FittedFunction.interval, coverage=coverage, adaptive=bool(adaptive))
        lower, upper = self._each_block(X, work, errors=True)
        return lower, upper

    def outside_share(self, X: Any) -> Any:
        """How far rows lie from the training rows, as a quantile of nearest-neighbour distances.

        The value for x is the share of training rows that are closer to their nearest neighbour
        than x is to its nearest training row: 0 for a row equal to a training row, 1 for a row
        that is farther from the training rows than any of them is from its nearest neighbour. About
        1 % of new rows from the same distribution exceed 0.99; if many more do, the model
        extrapolates.

        Distances are those of the metric, among distinct rows. Above 1000 training rows,
        nearest-neighbour distances are computed for 1000 of them, drawn at random. The Nystrom
        solver looks for neighbours only in the training rows that it keeps, at most 5000.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Values from 0 to 1. A lazy Dask array, if X is one.
        """
        function = self._function()
        distance, seen = function.space.distance, function.portable(errors=False).seen
        neighbours = Neighbours(function.neighbours(), distance)
        with self._listening():
            return rows_given(X).each(self, lambda X: (neighbours.shares(seen(X)),), distance, 1)[0]

    is_outside = outside_share  # its former name, which suggests a boolean

    def jacobian(self, X: Any, return_std: bool = False) -> Any:
        """Derivatives of the predictions with respect to the features, at the rows of X.

        The kernels "exponential" and "laplacian" have a kink at their own row ("laplacian" where
        one feature is equal). There the slope of the kernel is taken as zero.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        return_std : bool
            Also return the standard errors of the derivatives, from the noise of y: with
            A = K + lambda W^-1 the dual coefficients A^-1 y have the covariance
            s2 A^-1 W^-1 A^-1, where s2 is the residual sum of squares over n - tr H. Kernel,
            metric, bandwidth and penalty are held fixed, and the bias of ridge regression is not
            included.

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_samples, n_targets, n_features); or two
            Per degree for the geodesic metric. Lazy Dask arrays, if X is one.
        """
        self._check_has_features("The Jacobian")
        p = self.n_features_in_
        if not return_std:
            return self._each_block(X, lambda f, rows: (f.slopes(rows),), p)[0]
        return self._each_block(
            X, lambda f, rows: (f.slopes(rows), f.slope_deviations(rows)), p, errors=True
        )

    def effects(
        self,
        X: Any = None,
        *,
        variables: Any = None,
        at: Any = "observed",
        kind: str = "auto",
        by: Any = None,
        cluster: npt.ArrayLike | None = None,
        robust: bool = False,
        level: float = 0.95,
    ) -> Effects:
        """Average effects of the features on the prediction, with standard errors.

        The effect of a feature is its average slope, or the average first difference if it has
        two values. It is linear in y, so its variance follows from the variance of the noise, with
        kernel, metric, bandwidth and penalty held fixed; the bias of ridge regression is not
        included.

        A learned metric depends on the noise, too. The variance is therefore at least that of a
        jackknife, which learns the metric again on at most 1000 rows, leaving out each of 20 groups
        of rows in turn. This takes about as long as the fit, and intervals then have at most 19
        degrees of freedom. Models with landmarks hold even a learned metric fixed; the table says
        so.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), optional
            Rows to average over; by default the training rows, counted by their weights (a sample
            of them if they were streamed or the Nystrom model was pickled). Rows of Parquet files
            and Dask arrays are read into memory; the kernel is computed in blocks.
        variables : feature, list of features or dict, optional
            Names or indices. A tuple of one-hot columns is one variable: its levels are compared
            with the first, or, if some rows have no column set, with none of them. A dict gives
            names to features and tuples. By default all features; adjacent one-hot columns form
            one variable, which can also be given by its name in the table of effects.
        at : {"observed", "means"} or dict
            Values of the features: the observed values of each row; the means (for a feature with
            two values, the more frequent one); or the observed values except for the features in
            the dict.
        kind : {"auto", "slope", "contrast"}
            "auto": slopes, and first differences for features with two values. "slope": slopes
            only. "contrast": differences only, of one unit for features with more than two values.
            The kernels "exponential" and "laplacian" have no slope at their own row: if more than
            half of the rows share their value of a feature with another row, its slope is the
            average slope between the 5 % and the 95 % quantile of the feature, a difference of
            predictions divided by the difference of the two quantiles.
        by : feature or array of shape (n_samples,), optional
            Average within the groups that these labels define.
        cluster : array of shape (n_samples,), optional
            Label of each training row; noise may be correlated within a cluster. If the metric is
            learned again, whole clusters are left out.
        robust : bool
            Allow the variance of the noise to differ between rows (HC3).
        level : float between 0 and 1
            Coverage of the intervals.

        Returns
        -------
        Effects
            Prints as a table and renders as HTML; ``to_pandas``, ``to_polars`` and ``dict``.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(50, 2))
        >>> est = JacobianKernelRidge(3.0, 0.1).fit(X, X @ [1.0, 2.0])
        >>> [round(row.estimate, 1) for row in est.effects()]
        [1.0, 2.0]
        """
        from .effects._average import average_effects
        from .effects._errors import error_kind

        self._check_has_features("An effect")
        function, rows = self._function(), self._observations(X)
        errors = self._with_metric(error_kind(robust, cluster, rows.w_train))
        asked = {"variables": variables, "at": at, "kind": kind, "by": by, "level": level}
        return average_effects(function, rows, errors, **asked)

    def contrast(
        self,
        X1: Any,
        X0: Any,
        *,
        cluster: npt.ArrayLike | None = None,
        robust: bool = False,
    ) -> Contrast:
        """Differences of the predictions at X1 and X0, with their joint covariance.

        The covariance holds even a learned metric fixed, whereas `effects` includes its error.

        Parameters
        ----------
        X1, X0 : arrays of shape (n_samples, n_features)
            One of them may be a single row, which is compared with each row of the other.
        cluster, robust
            As for `effects`.

        Returns
        -------
        Contrast
        """
        from .effects._contrast import Contrast, contrast_of
        from .effects._errors import error_kind

        self._check_has_features("A contrast")
        function = self._function()
        errors = error_kind(robust, cluster, function.training_rows()[1])
        found = contrast_of(function, self._read(X1), self._read(X0), errors)
        one = self.dual_coef_.ndim == 1
        return Contrast(found.estimate[:, 0], found.covariance[0]) if one else found

    def summary(self) -> Summary:
        """Table of the fit and of the average effects of the features.

        Returns
        -------
        Summary
            Prints like the summaries of statsmodels and renders as HTML.
        """
        from .diagnostics import loo_r2
        from .effects import Summary

        effects, function = self.effects(), self._function()
        influences = function.influences
        left = [part.residual_degrees for part in influences for _ in part.s2]
        fit = self._facts() | {
            "penalty": np.atleast_1d(self.alpha_).tolist(),
            "residual degrees of freedom": left,
            "leave-one-out R2": loo_r2(function.model.held_out_singly),
            "residual deviation": [float(s) for part in influences for s in np.sqrt(part.s2)],
        }
        return Summary(fit, effects)

    def _facts(self, **counts: int) -> dict[str, Any]:
        """Facts of the fit for a summary; `counts` follow the numbers of rows and features."""
        n = self._notes["n"] or len(self._function().model.jackknife.residuals)
        return {
            "rows": round(n),
            "features": self.n_features_in_,
            **counts,
            "kernel": self.kernel_,
            "metric": self._metric_kind,
            "solver": self.solver_,
            "bandwidth": self.bandwidth_,
        }

    def _with_metric(self, errors: ErrorKind) -> ErrorKind:
        """The kind of errors, including the error of the metric if it was learned."""
        from ._rules.refits import refits_of
        from .effects._table import METRIC_LEARNED, METRIC_RELEARNED

        function, learning = self._function(), self._notes.get("learning")
        if self._metric_kind not in LEARNED["auto"]:
            return errors
        if learning is None or not function.keeps_rows:  # a model of an older version, or landmarks
            return replace(errors, metric=METRIC_LEARNED)
        alike = not self._notes["shared"]
        refits = partial(refits_of, function, learning, errors.labels, alike=alike)
        return replace(errors, metric=METRIC_RELEARNED, refits=refits)

    def _observations(self, X: Any) -> Observations:
        """Rows to average over, and the training rows."""
        from .effects._average import Observations

        X_train, w_train = self._function().training_rows()
        if X is None:
            return Observations(X_train, w_train, X_train[w_train > 0], w_train)
        X = self._read(X)
        return Observations(X, np.ones(len(X)), X_train[w_train > 0], w_train)

    def _read(self, X: Any) -> Array:
        """Rows from any source, read into memory and checked as for a prediction."""
        with self._listening():
            return rows_given(X).read(self, self._function().space.distance)

    def _listening(self) -> AbstractContextManager[None]:
        """Context in which passes over rows print their progress, if asked for."""
        return listening(printer() if self.verbose else None)

    def _check_has_features(self, what: str) -> None:
        check_is_fitted(self)
        if self._notes["metric"] == "precomputed":
            raise ValueError(
                f'{what} needs features, got metric="precomputed". Fit on the features themselves.'
            )

    @property
    def metric_(self) -> Array:
        """Linear map of the metric, of shape (n_features, n_directions)."""
        check_is_fitted(self)
        if "_T" not in vars(self):
            raise AttributeError(f'metric="{self.metric}" has no linear map `metric_`.')
        return FeatureMap(self._T).matrix

    @property
    def feature_importances_(self) -> Array:
        """How much the prediction changes with each feature, as shares that sum to one.

        The root mean square of the slope at the training rows (at most 1000 of them), times the
        standard deviation of the feature. Rows count by their weights.
        """
        check_is_fitted(self)
        if self._notes["metric"] == "precomputed":
            raise AttributeError('`feature_importances_` need features, got metric="precomputed".')
        return self._function().importances(np.asarray(self._feature_std))

    @property
    def loo_residuals_(self) -> Array:
        """Residual of each training row for the model fitted to the rows that differ from it.

        Computed in closed form on first access, with bandwidth and penalty held fixed. The Nystrom
        solver reads the training rows again. Rows of weight zero are not part of the fit and have
        ordinary residuals.
        """
        residuals = self._function().model.loo_residuals.copy()
        if self._weightless is not None:
            places, X, y = self._weightless
            residuals[places] = y - self._function().mean(X)
        return residuals[:, 0] if self.dual_coef_.ndim == 1 else residuals

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2 of the predictions for the rows of X.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            For ``jacridge.parquet.ParquetFiles`` y is the name of a column or a list of names, and
            sample_weight may be a column name, too.
        y : array of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        float
        """
        if isinstance(X, ParquetFiles):
            y, sample_weight = X.column_values(y), X.weights(sample_weight)
        return float(super().score(X, y, sample_weight))

    def diagnose(self) -> Diagnosis:
        """Reasons to trust the chosen bandwidth and penalty, or not, in numbers and words.

        Returns
        -------
        Diagnosis
            Prints as a table and renders as HTML; ``.dict()`` gives plain values.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.linspace(0, 6, 60)[:, None]
        >>> est = JacobianKernelRidge("loo").fit(X, np.sin(X[:, 0]))
        >>> est.diagnose().warnings
        ()
        """
        from .diagnostics import diagnosis_of

        return diagnosis_of(self._function(), self._notes, getattr(self, "choices_", ()))

    @property
    def _metric_kind(self) -> str:
        """The metric in a word; the kind of the metric if it was chosen."""
        kinds = [row["kind"] for row in getattr(self, "choices_", ()) if row["chosen"]]
        metric = self._notes["metric"]
        kind = kinds[0] if kinds else metric
        plain = "euclidean" if metric == "euclidean" else "scaled"
        return plain if kind in ("plain", "auto") else kind

    def __copy__(self) -> Any:
        """Shallow copy that keeps the model; a pickle only saves its arrays."""
        other = object.__new__(type(self))
        other.__dict__.update(vars(self))
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Deep copy that shares the model, which never changes."""
        other = copy(self)
        own = {name: part for name, part in vars(self).items() if name not in ("_solved", "_made")}
        other.__dict__.update(deepcopy(own, memo))
        return other

    def __getstate__(self) -> dict[str, Any]:
        return state_to_save(super().__getstate__())

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state_from_file(state))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.positive_only = self.metric == "precomputed"
        return tags


class AutoKernelRidge(AutoParameters, JacobianKernelRidge):
    """Kernel ridge regression that chooses kernel, metric, bandwidth and penalty automatically.

    It is :class:`JacobianKernelRidge` with other defaults. The Jacobian of the fitted function says
    which directions matter; its average outer product defines a metric, in which the kernel is
    fitted again. Kernel, kind of metric and number of rounds are chosen by the error on rows that
    were not used for learning, bandwidth and penalty by leave-one-out on up to 3000 rows. For rows
    in time order, ``held_out="later"`` chooses all of them by the error on later rows.

    Parameters are those of :class:`JacobianKernelRidge`.

    Attributes
    ----------
    choices_, metric_, warp_, feature_importances_, bandwidth_, alpha_, kernel_, solver_, \
dual_coef_, intercept_, X_fit_, loo_residuals_, n_features_in_, feature_names_in_
        As for :class:`JacobianKernelRidge`.

    Examples
    --------
    >>> import numpy as np
    >>> from jacridge import AutoKernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 5))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(300)
    >>> est = AutoKernelRidge(random_state=0).fit(X, y)
    >>> int(est.feature_importances_.argmax())
    0
    """

    __module__ = "jacridge"
