"""`JacobianKernelRidge`: its parameters, its fit, and its predictions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ._checks import (
    check_choice,
    check_columns,
    check_number,
    check_range,
    check_rows,
    check_weights,
    check_whole,
    generator,
)
from ._compute.arrays import Array, evenly_spaced, row_blocks, rows_per_block
from ._compute.memory import available_memory
from ._compute.progress import listening, printer
from ._compute.threads import blas_for, for_blocks, one_blas_thread
from ._geometry.kernels import KERNELS
from ._geometry.maps import FeatureMap, Warp
from ._geometry.nearest import Neighbours
from ._geometry.space import LEARNED, LINEAR, METRICS, Space, kernels_with, space_of
from ._rows.dask import dask_array, dask_rows, is_dask, lazy_rows
from ._rows.merging import distinct_rows
from ._rows.rows import ArrayRows
from ._rows.source import Source, array_source, in_memory, mapped
from ._rules.choice import Loss, squared_errors
from ._rules.metric import Metric, metric_of
from ._rules.registry import Found, check_alpha, find, least_loo
from ._rules.training import (
    LandmarkChoice,
    Penalty,
    TrainingData,
    data_in_memory,
    training_data,
)
from ._solvers.exact import centred_rows, solve_exact
from ._solvers.intervals import Scale, upper_quantile
from ._solvers.landmarks import LANDMARKS
from ._solvers.model import INTERCEPTS, Model
from ._solvers.pcg import solve_pcg
from ._solvers.saved import check_saved, from_version_0_1, restored_model
from .diagnostics import Diagnosis, Fitted, diagnose, loo_r2
from .effects import (
    Contrast,
    Effects,
    FittedFunction,
    Observations,
    Summary,
    average_effects,
    contrast_of,
    error_kind,
)
from .parquet import ParquetFiles

SOLVERS = ("auto", "exact", "nystrom", "pcg")

# Up to here solver="auto" is exact: the n x n matrix takes 0.8 GB and its factor seconds.
EXACT_ROWS = 10_000
# In a learned metric landmarks cost more accuracy, and the choice takes time anyway: 3.2 GB.
EXACT_ROWS_LEARNED = 20_000

# Penalty where the choice of the metric finds that y cannot be predicted.
NO_SIGNAL = 1e3

logger = logging.getLogger("jacridge")


class JacobianKernelRidge(MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Kernel ridge regression that chooses its own bandwidth.

    With the kernel :math:`k`, such as the Gaussian :math:`\exp(-\|x - x'\|^2 / (2 \sigma^2))`,
    the prediction is :math:`b + k(x, X) (K + \lambda I)^{-1} (y - b)`, where b is the mean of y.

    Parameters
    ----------
    bandwidth : float, str or function
        :math:`\sigma`: a number, the name of a rule (``jacridge.RULES``), or a function of
        :class:`TrainingData` that returns a number. The rule ``jacobian`` is the paper's closed
        form, which never looks at y; ``auto`` searches for the best leave-one-out error, cheaply.
    alpha : float, {"loo", "gcv", "mml", "auto"} or list of float
        The ridge penalty :math:`\lambda \ge 0`, where 0 interpolates; or the criterion that
        chooses it, together with the bandwidth, for each target; or the penalties among and
        between which it is chosen, as by "auto": with the criterion of the bandwidth's rule, else
        by leave-one-out.
    kernel : {"gaussian", "matern52", "matern32", "exponential", "laplacian", "auto"}
        "laplacian" is scikit-learn's, of the city-block distance, with gamma = 1 / sigma. The
        rule ``jacobian`` has no minimum for "exponential" and "laplacian"; take another one.
        "auto" chooses by the error on held-out rows.
    metric : {"euclidean", "scaled", "diagonal", "full", "auto", "geodesic", "precomputed"}
        The first five are the distance after a linear map of the features: the identity;
        division by standard deviations; a diagonal or full map learned from the Jacobian of the
        fitted function, in a number of rounds that is chosen on held-out rows; and the best of
        these. Learned metrics compress features with heavy tails first, where held-out rows gain
        by it (`warp_`). "geodesic": rows are latitude and longitude in degrees, distances are in
        metres. "precomputed": X holds distances (not a kernel), to the training rows.
    solver : {"auto", "exact", "nystrom", "pcg"}
        "exact" factors the n x n kernel matrix. "nystrom" keeps to the span of the kernels at
        `n_landmarks` points: rows stream in blocks, and only m x m sums are kept. "pcg" solves the
        exact system by conjugate gradients, preconditioned by `n_landmarks` landmarks, without
        the n x n matrix in memory. "auto" is exact up to 10,000 rows, with a learned metric
        20,000, then "nystrom"; `solver_` says what was taken.
    n_landmarks : int, optional
        Landmarks m of the Nystrom solver, at most n_samples; 3000, or all rows, if not given. With
        all rows as landmarks the model is the exact one, and solved as such.
    landmarks : {"kmeans", "uniform", "rpcholesky"} or array of shape (m, n_features)
        How landmarks are chosen: as centres of clusters, at random, or as pivots of a randomly
        pivoted Cholesky factorisation of the kernel, among 10 m rows; or the landmarks.
    fit_intercept : bool or "free"
        True: b is the mean of y. False: it is zero. "free": it is fitted with the rest and not
        penalised, as by ``Ridge`` or in ordinary kriging; with wide kernels it may lie far from
        all y, and so do predictions far from all rows. Bandwidth and penalty are looked for with
        b at the mean.
    random_state : int, optional
        Seed of the samples and landmarks that are drawn; fits without one differ a little.
    verbose : int
        Whether passes over rows and iterations of a fit print their progress to stderr.

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
        Linear map T of the metric: distances are those of the rows of X T, of X after `warp_` if
        there is one. Absent for the metrics "geodesic" and "precomputed".
    warp_ : ndarray of shape (2, n_features) or None
        Centres c and widths s of the features with heavy tails that a learned metric compresses
        before the linear map, to c + s asinh((x - c) / s); an infinite width leaves a feature as
        it is. None if all are.
    choices_ : list of dict
        Every kernel and metric that was tried, best first, if one of them was chosen: kernel, kind
        of metric, rounds, error on held-out rows (in units of the variance of y), the standard
        error of its difference to the best one, seconds, how many predictions of held-out rows it
        was judged by (finalists by more), and whether it was chosen.
        ``pandas.DataFrame(est.choices_)`` is a table.
    dual_coef_ : ndarray of shape (n_rows,) or (n_rows, n_targets)
        Coefficients of the kernels at the rows of `X_fit_`.
    intercept_ : float or ndarray of shape (n_targets,)
        The constant b, which predictions far from all rows go to.
    X_fit_ : ndarray of shape (n_rows, n_directions)
        The training rows after the map of the metric, each once, without those of weight zero; for
        solver "nystrom" the landmarks.
    feature_importances_ : ndarray of shape (n_features,)
        How much the prediction moves with each feature, as shares that sum to one.
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

    _model: Model | None = None
    _saved: dict[str, Any] | None = None
    _scale: Scale | None = None
    _fitted: dict[str, Any]
    # What is taken from the features after the warp and before the linear map.
    _centre: Array | None = None
    _feature_std: Array | None = None
    # The rows of `X_fit_` before the map of the metric, if these are the training rows.
    _X_given: Array | None = None
    _names: list[str] | None = None

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
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> JacobianKernelRidge:
        """Choose the bandwidth, then solve for the dual coefficients.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Also a memory map, read in blocks if it is float64, or
            ``jacridge.parquet.ParquetFiles``; then y and sample_weight are names of columns.
            A Dask array or data frame is fitted by solver "nystrom", block by block where its
            blocks are; persist it first if it fits into the memory of the workers.
        y : array of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array of shape (n_samples,), optional
            A weight of zero removes a row; a weight of two is the same as two equal rows.

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
        with listening(printer() if self.verbose else None):
            check_choice("metric", self.metric, METRICS)
            check_choice("kernel", self.kernel, (*KERNELS, "auto"))
            space = space_of("gaussian" if self.kernel == "auto" else self.kernel, self.metric)
            if isinstance(X, ParquetFiles):
                source = self._parquet_source(X, y, sample_weight, space)
                one_target = isinstance(y, str)
            elif is_dask(X):
                source = self._dask_source(X, y, sample_weight, space)
                one_target = np.ndim(y) == 1
            else:
                source, one_target = self._array_source(X, y, sample_weight, space)
            asked = replace(check_alpha(self.alpha), shared=shared)
            self._fit_source(source, space, one_target, asked, loss)
        return self

    def _array_source(self, X: Any, y: Any, w: Any, space: Space) -> tuple[Source, bool]:
        is_memory_map = isinstance(X, np.memmap)
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        y = y.astype(np.float64)  # the caller may change his y
        space.distance.check(X)
        check_range("y", y)
        w = None if w is None else check_weights(w, X)
        targets = y[:, None] if y.ndim == 1 else y
        if is_memory_map:
            return Source(ArrayRows(X, targets, w), X.shape[1]), y.ndim == 1
        return array_source(X, targets, w, space.distance), y.ndim == 1

    def _dask_source(self, X: Any, y: Any, w: Any, space: Space) -> Source:
        """Rows of Dask arrays, which stay where they are."""
        if y is None:
            raise ValueError("`y` must be given: a fit requires y to be passed, got None.")
        if check_choice("solver", self.solver, SOLVERS) not in ("auto", "nystrom"):
            raise ValueError(
                f'`solver` must be "auto" or "nystrom" for Dask arrays, got "{self.solver}". '
                "Bring the rows into memory with X.compute() for others."
            )
        if self.metric == "precomputed":
            raise ValueError(
                '`metric` must be one of features for Dask arrays, got "precomputed". Fit on the '
                "features themselves."
            )
        rows = dask_rows(X, y, w, space.distance)
        self._check_features(X, reset=True)
        return Source(rows, X.shape[1])

    def _parquet_source(self, files: ParquetFiles, y: Any, w: Any, space: Space) -> Source:
        """Columns of Parquet files, which need not fit in memory."""
        if self.solver not in ("auto", "nystrom") or self.metric == "precomputed":
            raise ValueError(
                "Parquet files are fitted by the Nystrom solver on features, got "
                f'solver="{self.solver}", metric="{self.metric}".'
            )
        if y is None:
            raise ValueError("`y` must name the column of the target in Parquet files, got None.")
        rows = files.rows(y, w, space.distance)
        self.n_features_in_ = len(rows.features)
        self.feature_names_in_ = np.array(rows.features, dtype=object)
        return Source(rows, len(rows.features))

    def _fit_source(
        self, source: Source, space: Space, one_target: bool, penalty: Penalty, loss: Loss
    ) -> None:
        """Choose metric and kernel, then bandwidth and penalty, then solve."""
        kind, rng = self._intercept_kind(), generator(self.random_state)
        metric = Metric(space)
        if self.metric in LINEAR:
            asked = self.kernel, self.metric, self.bandwidth
            metric = metric_of(source.rows, *asked, penalty, rng, loss, centred=kind != "none")
        solver, choice = self._solver_for(source, metric.mapping)
        options: dict[str, Any] = {"kind": kind, "rng": rng, "penalty": penalty}
        options["start"] = metric.start
        if solver == "exact":
            source = in_memory(source, space.distance)
        else:
            options["choice"] = choice
        given, source = source.rows, mapped(source, metric.mapping)
        by_loo = self.kernel == "auto" and self.metric not in LINEAR
        spaces = kernels_with(self.metric) if by_loo else [metric.space]
        data, found = least_loo(self._tried(solver, source, space, options) for space in spaces)
        lam = found.lam
        if penalty.criterion and not metric.has_signal:  # nothing to follow but noise
            lam = np.maximum(lam, min(NO_SIGNAL * data.penalty.unit, data.penalty.ends[1]))
        model = self._solve(solver, source, data, found.sigma, np.atleast_1d(lam))
        self._keep(model, one_target)
        self.bandwidth_ = found.sigma
        self.alpha_ = lam if np.size(lam) > 1 else float(np.ravel(lam)[0])
        self.solver_, self.kernel_ = solver, data.space.kernel.name
        self._fitted = {"metric": self.metric, "intercept": kind, "n": data.n}
        self._fitted |= self._asked(data.penalty, source)
        self._columns = source.first if self.metric == "precomputed" else None
        self._weightless = source.weightless
        self._keep_metric(metric)
        self._X_given = None
        if metric.mapping is not None and solver == "exact" and isinstance(given, ArrayRows):
            self._X_given = given.X

    def _asked(self, penalty: Penalty, source: Source) -> dict[str, Any]:
        """How the fit came about, for a diagnosis."""
        dropped = 0.0
        if source.weightless is not None and source.merged is not None:
            dropped = len(source.weightless[0]) / len(source.merged.group)
        return {
            "rule": self.bandwidth if isinstance(self.bandwidth, str) else None,
            "lams": [float(penalty.lams[0]), float(penalty.lams[-1])]
            if penalty.criterion
            else None,
            "shared": penalty.shared,
            "dropped": dropped,
        }

    def _keep_metric(self, metric: Metric) -> None:
        """Keep the map of the metric, and the table of the choice if there was one."""
        self._feature_std, self._centre, self._names = metric.std, None, None
        for name in ("metric_", "warp_", "choices_"):
            self.__dict__.pop(name, None)
        if self.metric in LINEAR:
            found = metric.mapping or FeatureMap(np.eye(self.n_features_in_))
            self.metric_, self.warp_ = found.T, None
            if found.warp is not None:
                self.warp_ = np.stack([found.warp.centre, found.warp.width])
        if metric.chosen is not None:
            best = metric.chosen.best
            self.choices_ = [
                {**candidate.row(), "chosen": candidate is best}
                for candidate in metric.chosen.table
            ]

    def _tried(
        self, solver: str, source: Source, space: Space, options: dict[str, Any]
    ) -> tuple[TrainingData, Found]:
        """Training data in one space, and the bandwidth and penalty found there."""
        data = training_data(source, space, exact=solver == "exact", **options)
        if solver == "pcg":
            self._check_pcg(data)
            data.trials = None
        return data, find(self.bandwidth, data)

    def _solve(
        self, solver: str, source: Source, data: TrainingData, sigma: float, lams: Array
    ) -> Model:
        """The model at the chosen bandwidth and penalties; its rows become `X_fit_`."""
        lams = lams[:1] if (lams == lams[0]).all() else lams
        kind = self._intercept_kind()
        if data.solver is not None and solver == "nystrom":
            self.X_fit_ = data.solver.spectrum(sigma).phi.Z
            return data.solver.solve(sigma, lams)
        self.X_fit_, rows = centred_rows(source, kind)
        if solver == "pcg":
            few = min(1000, -(-len(rows.w) // 20))  # features take at most a twentieth of K
            m = min(self.n_landmarks or few, len(rows.w))
            options: dict[str, Any] = {"space": data.space, "n_landmarks": m, "rng": data.rng}
            return solve_pcg(self.X_fit_, rows, sigma, float(lams[0]), kind, **options)
        with blas_for(len(rows.w)):
            remedy = data.space.remedy
            return solve_exact(lambda: data.pairs.kernel(sigma), rows, lams, kind, remedy)

    def _landmark_number(self, source: Source) -> int | None:
        """Number of landmarks as asked for, checked against the rows as given."""
        if self.n_landmarks is None:
            return None
        n = source.rows.n if source.merged is None else len(source.merged.group)
        if check_whole("n_landmarks", self.n_landmarks) > n and self.solver != "exact":
            raise ValueError(
                f"`n_landmarks` must be from 1 to n_samples={n}, got {self.n_landmarks}. Leave it "
                "out for a number that fits."
            )
        return self.n_landmarks

    def _keep(self, model: Model, one_target: bool) -> None:
        self._model, self._saved = model, None
        self.dual_coef_ = model.dual_coef[:, 0] if one_target else model.dual_coef
        self.intercept_ = model.intercept[0] if one_target else model.intercept

    def _intercept_kind(self) -> str:
        """The kind of intercept, one of INTERCEPTS."""
        given = [False, True, "free"]
        if self.fit_intercept not in given:
            raise ValueError(
                f'`fit_intercept` must be True, False or "free", got {self.fit_intercept!r}.'
            )
        return INTERCEPTS[given.index(self.fit_intercept)]

    def _check_pcg(self, data: TrainingData) -> None:
        """Refuse what conjugate gradients cannot do, before any search."""
        k = data.targets.shape[1]
        if data.lam == 0 if not data.penalty.criterion else len(data.scale) > 1:
            raise ValueError(
                '`alpha` must be > 0 for solver="pcg", and one number for all targets, got '
                f"{self.alpha!r} for {k} target(s)."
            )
        if not isinstance(self.landmarks, str):
            raise ValueError(
                '`landmarks` must be a word for solver="pcg", which chooses its own, got an array.'
            )

    def _solver_for(self, source: Source, mapping: FeatureMap | None) -> tuple[str, LandmarkChoice]:
        """The solver for these rows, and its landmarks; rows that stream stay where they are."""
        solver, rows = check_choice("solver", self.solver, SOLVERS), source.rows
        landmarks = self.landmarks
        # Checked here, whether or not there are enough rows to need them.
        if isinstance(landmarks, str):
            check_choice("landmarks", landmarks, LANDMARKS)
        elif mapping is not None:
            landmarks = check_rows(landmarks, "landmarks")
            check_columns("landmarks", landmarks, len(mapping.T))
            landmarks = mapping(landmarks)
        if solver == "auto":
            most = EXACT_ROWS_LEARNED if self.metric in LEARNED else EXACT_ROWS
            free = available_memory()
            fits = free is None or 8 * rows.n**2 < free / 2
            few = isinstance(rows, ArrayRows) and rows.n <= most and fits
            solver = "exact" if few or self.metric == "precomputed" else "nystrom"
            logger.info("solver=%r was taken for n_samples=%d.", solver, rows.n)
        elif solver != "exact" and self.metric == "precomputed":
            raise ValueError(
                f'`solver` must be "auto" or "exact" for metric="precomputed", got "{solver}". '
                "Fit on the features themselves for others."
            )
        number = self._landmark_number(source)
        choice = LandmarkChoice(landmarks, None if solver == "pcg" else number)
        if solver == "nystrom" and choice.are_all(rows, mapping):
            solver = "exact"  # with all rows as landmarks the model is the exact one
        return solver, choice

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictions for the rows of X, by blocks of rows.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        return_std : bool
            Also return the standard deviation of the function (without the noise of y) if y is
            seen as a Gaussian process with this kernel, its variance fitted to y. It is only as
            good as bandwidth and penalty are; `predict_interval` depends on them less.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets); or two of them
            Lazy Dask arrays, if X is one.
        """
        if not return_std:
            return self._each_block(X, lambda est, rows: (est._mean(rows),))[0]
        return self._each_block(X, lambda est, rows: (est._mean(rows), est._std(rows)), errors=True)

    def _mean(self, X: Array) -> Array:
        space = self._space
        K_coef = space.product(self._seen(X), self.X_fit_, self.dual_coef_, self.bandwidth_)
        return np.asarray(self.intercept_ + K_coef)

    def _std(self, X: Array) -> Array:
        model, std = self._fitted_model(), np.empty((len(X), np.size(self.intercept_)))
        for rows, K in self._kernel_blocks(X):
            std[rows] = model.deviations(K)
        return std.reshape(self._shape_of(X))

    def predict_interval(
        self, X: Any, coverage: float = 0.9, *, adaptive: bool = True
    ) -> tuple[Any, Any]:
        r"""Prediction intervals for new observations, by the jackknife+.

        The interval at x goes from a low quantile of :math:`\mu_{-i}(x) - s(x) |r_i| / s_i` to a
        high quantile of :math:`\mu_{-i}(x) + s(x) |r_i| / s_i`. Here :math:`\mu_{-i}` is the model
        without row i, :math:`r_i` its residual there, and s a scale:

        .. math:: s(x)^2 = g(x)^2 + V e(x)

        g(x) is the level of the noise: the exponential of a second kernel ridge on
        :math:`\log |r_i|`. e(x), from 0 to 1, says how far x lies outside the data: how much of the
        variance the rows leave open at x, or how far the nearest row is, beyond what is usual among
        the rows. V makes the interval at least as wide as the range of y where e(x) = 1, which is
        so at the latest at the data's own diameter from the nearest row.

        All leave-one-out models come from one factorisation; bandwidth and penalty are held fixed,
        also where the same rows chose them. A row is left out together with the rows equal to it,
        and its residual counts once, whatever its weight. Above 1000 rows the leave-one-out models
        of 1000 of them, evenly spaced, are used.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        coverage : float between 0 and 1
        adaptive : bool
            False: s is one, so that intervals are about equally wide everywhere. For a bandwidth
            and penalty fixed beforehand the coverage is then proven to be at least
            2 coverage - 1 whatever the noise.

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
        work = partial(_interval, coverage=coverage, adaptive=bool(adaptive))
        lower, upper = self._each_block(X, work, errors=True)
        return lower, upper

    def is_outside(self, X: Any) -> Any:
        """How far rows lie from the training rows, as a quantile of their own distances.

        The value for x is the share of the training rows that have another training row nearer to
        them than x has one: 0 for a row like one of the training rows, 1 for a row that is farther
        from all of them than each of them is from its neighbour. About one of a hundred new rows
        from where the training rows come from is above 0.99; predictions for many more than that
        are extrapolations.

        Distances are those of the metric, among distinct rows. Above 1000 training rows the own
        distances are those of 1000 of them, evenly spaced; the Nystrom solver looks for neighbours
        in the at most 5000 training rows that it keeps.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Values from 0 to 1. A lazy Dask array, if X is one.
        """
        check_is_fitted(self)
        rows = self.X_fit_
        if self.solver_ == "nystrom":
            rows = distinct_rows(self._fitted_model().state()["sample_X"])
        neighbours = Neighbours(rows, self._space.distance)
        if is_dask(X):
            self._check_features(X, reset=False)
            shares = partial(_shares, self._map, neighbours)
            return lazy_rows(dask_array(X), shares)
        return self._each_block(X, lambda est, rows: (neighbours.shares(est._seen(rows)),))[0]

    def jacobian(self, X: Any, return_std: bool = False) -> Any:
        """Derivatives of the predictions with respect to the features, at the rows of X.

        The kernels "exponential" and "laplacian" have a kink at their own row ("laplacian" where
        one feature is equal). There such a kernel counts as flat, with a slope of zero.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        return_std : bool
            Also return the standard errors of the derivatives, from the noise of y: with
            A = K + lambda W^-1 the dual coefficients A^-1 y have the covariance
            s2 A^-1 W^-1 A^-1, where s2 is the residual sum of squares over n - tr H. Kernel,
            metric, bandwidth and penalty are held fixed, and the bias of the ridge is left out.

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_samples, n_targets, n_features); or two
            Per degree for the geodesic metric. Lazy Dask arrays, if X is one.
        """
        self._check_has_features("The Jacobian")
        p = self.n_features_in_
        if not return_std:
            return self._each_block(X, lambda est, rows: (est._slopes(rows),), p)[0]
        return self._each_block(
            X, lambda est, rows: (est._slopes(rows), est._slope_errors(rows)), p, errors=True
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
        two values. It is linear in y, so that its variance follows from that of the noise, with
        kernel, metric, bandwidth and penalty held fixed and the bias of the ridge left out.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), optional
            Rows to average over; if not given the training rows, each as often as its weight says
            (a sample of them if they were streamed or the Nystrom model was pickled). Rows of
            Parquet files and Dask arrays are read into memory; the kernel is made in blocks.
        variables : feature, list of features or dict, optional
            Names or indices. A tuple of one-hot columns is one variable, whose levels are compared
            with the first, or with none where no column may be set. A dict gives names to
            features and tuples. If not given, all features, neighbouring one-hot columns together.
        at : {"observed", "means"} or dict
            Values of the features: of each row, of one row at their means (the more frequent of
            two values), or of each row but for those in the dict.
        kind : {"auto", "slope", "contrast"}
            Slopes, first differences for features of two values ("auto"); slopes only; or
            differences only, of one unit for other features.
        by : feature or array of shape (n_samples,), optional
            Averages within the groups of these labels.
        cluster : array of shape (n_samples,), optional
            Label of each training row; noise may be correlated within a cluster.
        robust : bool
            Noise may have another variance in each row: HC3, from leave-one-out residuals.
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
        self._check_has_features("An effect")
        function, rows = self._function(), self._observations(X)
        errors = error_kind(robust, cluster, rows.w_train)
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
        self._check_has_features("A contrast")
        function, (_, w) = self._function(), self._training_rows()
        found = contrast_of(
            function, self._read(X1), self._read(X0), error_kind(robust, cluster, w)
        )
        one = self.dual_coef_.ndim == 1
        return Contrast(found.estimate[:, 0], found.covariance[0]) if one else found

    def summary(self) -> Summary:
        """Table of the fit and of the average effects of the features.

        Returns
        -------
        Summary
            Prints like the summaries of statsmodels and renders as HTML.
        """
        effects = self.effects()
        model = self._fitted_model()
        influences, residuals = model.influences, model.jackknife.residuals
        left = [part.residual_degrees for part in influences for _ in part.s2]
        fit = {
            "rows": round(self._fitted["n"] or len(residuals)),
            "features": self.n_features_in_,
            "kernel": self.kernel_,
            "metric": self._metric_kind,
            "solver": self.solver_,
            "bandwidth": self.bandwidth_,
            "penalty": np.atleast_1d(self.alpha_).tolist(),
            "residual degrees of freedom": left,
            "leave-one-out R2": loo_r2(
                self._training_sample(model), residuals, self._within(model)
            ),
            "residual deviation": [float(s) for part in influences for s in np.sqrt(part.s2)],
        }
        return Summary(fit, effects)

    def _observations(self, X: Any) -> Observations:
        """Rows to average over, and the training rows."""
        X_train, w_train = self._training_rows()
        if X is None:
            return Observations(X_train, w_train, X_train[w_train > 0], w_train)
        X = self._read(X)
        return Observations(X, np.ones(len(X)), X_train[w_train > 0], w_train)

    def _training_rows(self) -> tuple[Array, Array]:
        """Features and weights of the training rows as given; a sample of rows that streamed."""
        Z = self.X_fit_ if self._X_given is None else self._X_given
        X, w = self._fitted_model().influences[0].training_rows(Z)
        return (X, w) if self._X_given is not None else (self._unmapped(X), w)

    def _unmapped(self, Z: Array) -> Array:
        """Rows before the map of the metric; those that the model is made of, as they were."""
        if Z is self.X_fit_ and self._X_given is not None:
            return self._X_given
        return Z if self._map is None else self._map.inverse(Z)

    def _read(self, X: Any) -> Array:
        """Rows in memory, wherever they are, checked as for a prediction."""
        if is_dask(X):
            self._check_features(X, reset=False)
            X = check_rows(np.asarray(dask_array(X)))
            self._space.distance.check(X, new=True)
            return X
        return np.asarray(self._each_block(X, lambda est, rows: (rows,))[0])

    def _slope_errors(self, X: Array) -> Array:
        errors = self._function().slope_deviations(X)
        return errors[:, 0] if self.dual_coef_.ndim == 1 else errors

    def _function(self) -> FittedFunction:
        """The fitted function of rows as given, with what its standard errors come from."""
        coef = self.dual_coef_.reshape(len(self.X_fit_), -1)
        return FittedFunction(
            self._space,
            self.bandwidth_,
            self.X_fit_,
            coef,
            np.atleast_1d(self.intercept_),
            self._map,
            self._fitted_model().influences,
            self._feature_names,
        )

    @property
    def _feature_names(self) -> list[str]:
        """Names of the features, x0 and so on where they have none."""
        names = getattr(self, "feature_names_in_", self._names)
        return [f"x{j}" for j in range(self.n_features_in_)] if names is None else list(names)

    def _check_has_features(self, what: str) -> None:
        check_is_fitted(self)
        if self._fitted["metric"] == "precomputed":
            raise ValueError(
                f'{what} needs features, got metric="precomputed". Fit on the features themselves.'
            )

    def _slopes(self, X: Array) -> Array:
        """Derivatives with respect to the features, at rows X."""
        coef = self.dual_coef_.reshape(len(self.X_fit_), -1)
        J = self._space.slopes(self._seen(X), self.X_fit_, coef, self.bandwidth_)
        J = J if self._map is None else self._map.pulled_back(J, X)
        return J[:, 0] if self.dual_coef_.ndim == 1 else J

    @property
    def feature_importances_(self) -> Array:
        """How much the prediction moves with each feature, as shares that sum to one.

        The root mean square of the slope at (at most 1000 of) the rows of `X_fit_`, times the
        standard deviation of the feature.
        """
        check_is_fitted(self)
        if self._fitted["metric"] == "precomputed":
            raise AttributeError('`feature_importances_` need features, got metric="precomputed".')
        some = evenly_spaced(len(self.X_fit_), 1000)
        J = self._slopes(self._unmapped(self.X_fit_)[some]).reshape(-1, self.n_features_in_)
        std = self.X_fit_.std(axis=0) if self._feature_std is None else self._feature_std
        J /= np.abs(J).max() or 1.0  # squares could overflow
        moved = np.sqrt(np.square(J).mean(axis=0)) * (std / (std.max() or 1.0))
        return np.asarray(moved / moved.sum() if moved.any() else moved)

    @property
    def loo_residuals_(self) -> Array:
        """Residual of each training row for the model fitted to the rows that differ from it.

        In closed form, with bandwidth and penalty held fixed; computed when first asked for, by
        the Nystrom solver from the training rows, read again as they are then. Rows of weight zero
        have their plain residuals.
        """
        residuals = self._fitted_model().loo_residuals.copy()
        if self._weightless is not None:
            places, X, y = self._weightless
            residuals[places] = y - self._mean(X).reshape(y.shape)
        return residuals[:, 0] if self.dual_coef_.ndim == 1 else residuals

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2 of the predictions for the rows of X.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            For ``jacridge.parquet.ParquetFiles`` y is the name of a column, or several.
        y : array of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        float
        """
        y = X.column_values(y) if isinstance(X, ParquetFiles) else y
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
        model = self._fitted_model()
        residuals, degrees = model.sample_residuals, model.degrees_of_freedom
        data, asked = self._training_sample(model), self._fitted
        lams, exact = asked.get("lams"), self.solver_ == "exact"
        fit = Fitted(
            self.bandwidth_,
            np.broadcast_to(self.alpha_, data.targets.shape[1]),
            residuals,
            degrees,
            rows=len(data.w) if exact else data.n,
            rule=asked.get("rule"),
            lams=(lams[0], lams[1]) if lams else None,
            dropped=asked.get("dropped", 0.0),
            within=self._within(model),
            choices=getattr(self, "choices_", ()),
            features=self._features_of(data.X),
            scales_matter=asked["metric"] == "euclidean",
        )
        return diagnose(data, fit)

    def _features_of(self, X: Array) -> dict[str, Array]:
        """Columns of training rows as given, by name; X holds the rows after the metric."""
        if self._fitted["metric"] not in LINEAR:
            return {}
        return dict(zip(self._feature_names, self._unmapped(X).T, strict=True))

    @property
    def _metric_kind(self) -> str:
        """The metric in a word; of a metric that was chosen, its kind."""
        kinds = [row["kind"] for row in getattr(self, "choices_", ()) if row["chosen"]]
        metric = self._fitted["metric"]
        kind = kinds[0] if kinds else metric
        plain = "euclidean" if metric == "euclidean" else "scaled"
        return plain if kind in ("plain", "auto") else kind

    def _within(self, model: Model) -> Array | float:
        """Mean square of y about the means of equal rows, for each target."""
        state = model.state()
        within = state.get("within", state.get("sample_within"))
        if within is None:
            return 0.0
        kept = within[state["group"] >= 0] if "group" in state else within
        return np.asarray(np.square(kept).mean(axis=0))

    def _training_sample(self, model: Model) -> TrainingData:
        """The training rows, or the sample of them that a Nystrom model keeps."""
        state, kind = model.state(), self._fitted["intercept"]
        if self.solver_ == "exact":
            X, y, w = self.X_fit_, state["y"], state["w"]
        else:
            X, y, w = state["sample_X"], state["sample_y"] - state["mean"], state["sample_w"]
        given = self._fitted.get("lams") is None and np.size(self.alpha_) == 1
        penalty = Penalty(shared=self._fitted.get("shared", False))
        penalty = replace(penalty, lam=float(self.alpha_)) if given else penalty
        options: dict[str, Any] = {"penalty": penalty, "has_intercept": kind != "none"}
        return data_in_memory(X, y, w, self._space, n=self._fitted["n"], **options)

    @property
    def _map(self) -> FeatureMap | None:
        """The map that the fitted metric is the distance after; None for the identity."""
        metric = self._fitted["metric"]
        if metric not in LINEAR or (metric == "euclidean" and self._centre is None):
            return None
        warp = None if self.warp_ is None else Warp(*self.warp_)
        return FeatureMap(self.metric_, warp, self._centre)

    @property
    def _space(self) -> Space:
        """Kernel and distance of the fitted model."""
        return space_of(self.kernel_, self._fitted["metric"])

    def _fitted_model(self) -> Model:
        """The model; solved again after unpickling, as its n x n factor is not saved."""
        check_is_fitted(self)
        if self._model is None:
            k = np.size(self.intercept_)
            coef = self.dual_coef_.reshape(len(self.X_fit_), k)
            function = self.X_fit_, coef, np.atleast_1d(self.intercept_)
            lams, kind = np.atleast_1d(self.alpha_), self._fitted["intercept"]
            self._model = restored_model(
                self.solver_, self._saved or {}, function, self.bandwidth_, lams, self._space, kind
            )
        return self._model

    def _interval_scale(self) -> Scale:
        """The scale of intervals, kept as long as the model is."""
        jackknife = self._fitted_model().jackknife
        if self._scale is None or self._scale.jackknife is not jackknife:
            rows = jackknife.distinct(self.X_fit_, self._space.distance)
            self._scale = Scale(jackknife, rows, self._space, self.bandwidth_)
        return self._scale

    def _kernel_blocks(self, X: Array) -> Any:
        """Slices of the rows of X, and the kernel between each of these blocks and `X_fit_`."""
        X = self._seen(X)
        for rows in row_blocks(len(X), rows_per_block(len(self.X_fit_))):
            yield rows, self._space.block(X[rows], self.X_fit_, self.bandwidth_)

    def _shape_of(self, X: Array) -> tuple[int, ...]:
        return len(X), *self.dual_coef_.shape[1:]

    def _each_block(
        self,
        X: Any,
        work: Callable[[Any, Array], tuple[Array, ...]],
        *shape: int,
        errors: bool = False,
    ) -> tuple[Any, ...]:
        """Results of `work` for this estimator and blocks of the rows of X, put together.

        Those of arrays are made at once, those of Parquet files file by file, those of Dask
        arrays later, where the blocks are; `shape` is what follows the shape of a prediction.
        """
        check_is_fitted(self)
        if is_dask(X):
            return self._lazy(X, work, shape, errors)
        if isinstance(X, ParquetFiles):
            return self._of_files(X, work)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        self._space.distance.check(X, new=True)
        return work(self, X)

    def _seen(self, X: Array) -> Array:
        """New rows as the model sees them: after the metric, without columns of merged rows."""
        if self._map is not None:
            return self._map(X)
        return X if self._columns is None else X[:, self._columns]

    def _lazy(self, X: Any, work: Any, shape: tuple[int, ...], errors: bool) -> tuple[Any, ...]:
        """Lazy Dask arrays of the results; each block is worked on once for all of them."""
        array = dask_array(X)
        self._check_features(X, reset=False)
        light = copy(self)  # for rows without names; only errors need the model's state
        light.__dict__.pop("feature_names_in_", None)
        light._saved = self._fitted_model().state() if errors else None
        light._model = light._scale = None
        count = 2 if errors else 1
        stacked = lazy_rows(
            array, partial(_stacked, light, work), count, *self.dual_coef_.shape[1:], *shape
        )
        return tuple(stacked[:, i] for i in range(count))

    def _of_files(self, files: ParquetFiles, work: Any) -> tuple[Any, ...]:
        """Results for the rows of Parquet files, of which only these are held."""
        names = getattr(self, "feature_names_in_", files.features)
        if names is None:
            raise ValueError(
                "`ParquetFiles` must name its features for a model that was fitted to rows without "
                "names. Give them in the order of the fit: ParquetFiles(source, [...])."
            )
        rows = files.features_rows(names, self._space.distance)
        check_columns("X", np.empty((0, len(names))), self.n_features_in_)
        with listening(printer() if self.verbose else None):
            parts = list(rows.each(lambda X, y, w: work(self, X)))
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def _check_features(self, X: Any, *, reset: bool) -> None:
        """Number and names of the features of Dask rows, of which no value is looked at."""
        shown = X._meta if hasattr(X, "to_dask_array") else X
        validate_data(self, shown, reset=reset, skip_check_array=True)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_scale", None)
        if state.get("_model") is None:
            return state
        return {**state, "_model": None, "_saved": state["_model"].state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "bandwidth_" in state and "_saved" not in state:
            state = from_version_0_1(dict(state))
        if state.get("_saved"):
            check_saved(state["_saved"], state["X_fit_"].shape[-1], np.size(state["intercept_"]))
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.positive_only = self.metric == "precomputed"
        return tags


class AutoKernelRidge(JacobianKernelRidge):
    """Kernel ridge regression that chooses kernel, metric, bandwidth and penalty by itself.

    It is :class:`JacobianKernelRidge` with other defaults. The Jacobian of the fitted function says
    which directions matter; its average outer product is a metric, in which the kernel is fitted
    again. Kernel, kind of metric and number of rounds are chosen by the error on rows that did not
    take part in learning, bandwidth and penalty by leave-one-out on all rows.

    Parameters are those of :class:`JacobianKernelRidge`.

    Attributes
    ----------
    choices_ : list of dict
        Every candidate that was tried, best first: kernel, kind of metric, rounds, whether
        heavy tails were compressed, error on held-out rows (in units of the variance of y), the
        standard error of its difference to the best one, seconds, how many predictions of
        held-out rows it was judged by (finalists by more), and whether it was chosen.
        ``pandas.DataFrame(est.choices_)`` is a table.
    metric_ : ndarray of shape (n_features, n_directions)
        The linear map of the learned metric.
    feature_importances_ : ndarray of shape (n_features,)
        How much the prediction moves with each feature, as shares that sum to one.
    warp_, bandwidth_, alpha_, kernel_, solver_, dual_coef_, intercept_, X_fit_, loo_residuals_, \
n_features_in_, feature_names_in_
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
            random_state=random_state,
            verbose=verbose,
        )


def _shares(mapping: FeatureMap | None, neighbours: Neighbours, X: Array) -> Array:
    """Shares of the training rows with a nearer neighbour, for rows before the metric."""
    return neighbours.shares(X if mapping is None else mapping(X))


def _stacked(est: Any, work: Any, X: Array) -> Array:
    """Results of `work` side by side, in axis 1."""
    return np.stack(work(est, X), axis=1)


def _interval(est: Any, X: Array, coverage: float, adaptive: bool) -> tuple[Array, Array]:
    """Lower and upper ends of the jackknife+ interval at the rows of X."""
    jackknife, space, X = est._fitted_model().jackknife, est._space, est._seen(X)
    coef = est.dual_coef_.reshape(len(est.X_fit_), -1)
    lower, upper = np.empty((2, len(X), coef.shape[1]))
    sizes, scale = np.abs(jackknife.residuals), None
    if adaptive:
        scale = est._interval_scale()
        V = scale.spread(coverage)
        sizes = scale.scores(V)

    def work(rows: slice) -> None:
        K = space.block(X[rows], est.X_fit_, est.bandwidth_)
        left_out = (est.intercept_ + K @ coef)[:, None, :] + jackknife.shifts(K)
        wide = np.broadcast_to(sizes, left_out.shape)
        if scale is not None:
            wide = scale.at(jackknife.columns(X[rows], space.distance), V)[:, None, :] * sizes
        lower[rows] = -upper_quantile(wide - left_out, coverage)
        upper[rows] = upper_quantile(left_out + wide, coverage)

    with one_blas_thread():
        for_blocks(work, len(X), rows_per_block(max(4 * sizes.size, len(coef))))
    return lower.reshape(est._shape_of(X)), upper.reshape(est._shape_of(X))
