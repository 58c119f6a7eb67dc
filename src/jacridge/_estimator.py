"""JacobianKernelRidge: scikit-learn glue."""

from __future__ import annotations

import logging
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ._checks import (
    check_choice,
    check_columns,
    check_metric_rows,
    check_new_rows,
    check_number,
    check_range,
    check_rows,
    check_weights,
)
from ._dask import dask_array, dask_rows, is_dask, lazy_rows
from ._distances import METRICS, blas_for, row_blocks, rows_per_block
from ._kernels import kernel_block, kernel_product, kernel_slopes
from ._landmarks import CANDIDATES, LANDMARKS, evenly_among, landmark_number
from ._nystrom import Nystrom, trial_spectra
from ._pcg import solve_pcg
from ._problem import Problem, mean_of
from ._progress import listening, printer
from ._selectors import check_alpha, find
from ._solvers import solve_each, solve_exact
from ._streams import ArrayRows
from ._survey import SAMPLE, SampledProblem, centred, sampled, survey
from .diagnostics import diagnose
from .parquet import ParquetFiles

SOLVERS = ("auto", "exact", "nystrom", "pcg")

# Up to here solver="auto" is exact: the n x n matrix takes 0.8 GB and its factor seconds.
EXACT_ROWS = 10_000

logger = logging.getLogger("jacridge")


class JacobianKernelRidge(MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Kernel ridge regression that chooses its own bandwidth.

    With the Gaussian kernel :math:`k(x, x') = \exp(-\|x - x'\|^2 / (2 \sigma^2))` the prediction is
    :math:`b + k(x, X) (K + \lambda I)^{-1} (y - b)`, where b is the mean of y.

    Parameters
    ----------
    bandwidth : float, str or function
        :math:`\sigma`: a number, the name of a rule (``jacridge.RULES``), or a function of a
        ``Problem`` that returns a number. The rule ``jacobian`` is the paper's closed form, which
        never looks at y; ``auto`` looks for the best leave-one-out error, cheaply.
    alpha : float, {"loo", "gcv", "mml", "auto"} or list of float
        The ridge penalty :math:`\lambda \ge 0`, where 0 interpolates; or the criterion that
        chooses it, together with the bandwidth, for each target; or the penalties among and
        between which it is chosen, as by "auto": with the criterion of the bandwidth's rule, else
        by leave-one-out.
    metric : {"euclidean", "geodesic", "precomputed"}
        "geodesic": rows are latitude and longitude in degrees, distances are in metres.
        "precomputed": X holds distances (not a kernel), to the training rows.
    solver : {"auto", "exact", "nystrom", "pcg"}
        "exact" factors the n x n kernel matrix. "nystrom" keeps to the span of the kernels at
        `n_landmarks` rows: rows stream in blocks, and only m x m sums are kept. "pcg" solves the
        exact system by conjugate gradients, preconditioned by `n_landmarks` landmarks, without
        the n x n matrix in memory. "auto" is exact up to 10,000 rows, then "nystrom"; `solver_`
        says what was taken.
    n_landmarks : int, optional
        Landmarks m of the Nystrom solver, at most n_samples.
    landmarks : {"uniform", "kmeans", "rpcholesky"} or array of shape (m, n_features)
        How landmarks are chosen: at random, as centres of clusters, or as pivots of a randomly
        pivoted Cholesky factorisation of the kernel, among 10 m rows; or the landmarks.
    fit_intercept : bool
        Whether y is centred at its mean.
    random_state : int, optional
    verbose : int
        Whether passes over rows and iterations of a fit print their progress to stderr.

    Attributes
    ----------
    bandwidth_ : float
    alpha_ : float, or ndarray of shape (n_targets,) if it was chosen for several targets
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        One for each row of `X_fit_`.
    intercept_ : float or ndarray of shape (n_targets,)
    X_fit_ : ndarray of shape (n_samples, n_features)
        The training rows; the landmarks for solver "nystrom".
    solver_ : str

    Examples
    --------
    >>> import numpy as np
    >>> from jacridge import JacobianKernelRidge
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> est = JacobianKernelRidge().fit(X, np.sin(X[:, 0]))
    >>> round(est.score(X, np.sin(X[:, 0])), 3)
    1.0
    """

    _nystrom: Any = None
    _state: Any = None

    def __init__(
        self,
        bandwidth="jacobian",
        alpha=1e-3,
        *,
        metric="euclidean",
        solver="auto",
        n_landmarks=None,
        landmarks="uniform",
        fit_intercept=True,
        random_state=None,
        verbose=0,
    ):
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.metric = metric
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y, sample_weight=None):
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
            A weight of zero removes a row, a weight of two counts it twice.

        Returns
        -------
        self
        """
        fit = (
            self._fit_files
            if isinstance(X, ParquetFiles)
            else self._fit_dask
            if is_dask(X)
            else self._fit_arrays
        )
        with listening(printer() if self.verbose else None):
            return fit(X, y, sample_weight)

    def _fit_arrays(self, X, y, sample_weight):
        """Fit to rows in memory, or in a memory map."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        y = y.astype(np.float64, copy=False)
        check_choice("metric", self.metric, METRICS)
        check_metric_rows(X, self.metric)
        check_range("y", y)
        w = None if sample_weight is None else check_weights(sample_weight, X)
        targets = y[:, None] if y.ndim == 1 else y
        self._nystrom = self._state = None  # of an earlier fit
        self.solver_ = self._solver(len(X))
        if self.solver_ != "exact":
            return self._fit_rows(ArrayRows(X, targets, w), one_target=y.ndim == 1)

        w = np.ones(len(X)) if w is None else w
        mean = mean_of(targets, w) if self.fit_intercept else np.zeros(targets.shape[1])
        kept = w > 0
        problem = Problem(
            X=_rows(X, kept, self.metric),
            y=targets[kept] - mean,
            alpha=check_alpha(self.alpha),
            w=w[kept],
            metric=self.metric,
            rng=np.random.default_rng(self.random_state),
        )
        found = find(self.bandwidth, problem)
        self.bandwidth_ = found.sigma
        lam = np.asarray(found.lam)
        self.alpha_ = float(lam) if lam.ndim == 0 else lam if y.ndim > 1 else float(lam[0])
        self._model = self._solve(problem)

        dual_coef = np.zeros(targets.shape)
        dual_coef[kept] = self._model.dual_coef
        self.dual_coef_ = dual_coef[:, 0] if y.ndim == 1 else dual_coef
        self.intercept_ = mean[0] if y.ndim == 1 else mean
        self.X_fit_ = X
        self._y, self._w = targets, w
        return self

    def _solve(self, problem):
        """The solved system at the chosen bandwidth and penalty."""
        lams = np.unique(self.alpha_)
        centred, y, w = bool(self.fit_intercept), problem.y, problem.w
        with blas_for(len(w)):
            if len(lams) > 1:
                K = problem.pairs.kernel(self.bandwidth_)
                return solve_each(K, y, w, np.asarray(self.alpha_), centred=centred)
            return solve_exact(
                lambda: problem.pairs.kernel(self.bandwidth_), y, w, lams[0], centred=centred
            )

    def _solve_pcg(self, rows, mean, rng):
        if np.size(self.alpha_) > 1 or not np.all(self.alpha_):
            raise ValueError(
                "`alpha` must be > 0 for solver='pcg', and one number for all targets, got "
                f"{self.alpha_}."
            )
        # The landmarks' features take n m numbers: at most a twentieth of the full matrix.
        few = min(1000, -(-rows.n // 20))
        m = landmark_number(few if self.n_landmarks is None else self.n_landmarks, rows.n)
        return solve_pcg(
            rows,
            mean,
            self.bandwidth_,
            float(np.squeeze(self.alpha_)),
            metric=self.metric,
            n_landmarks=m,
            rng=rng,
        )

    def _solver(self, n):
        """The solver for n rows."""
        solver = check_choice("solver", self.solver, SOLVERS)
        if solver == "auto":
            few = n <= EXACT_ROWS or self.metric == "precomputed"
            solver = "exact" if few else "nystrom"
            logger.info("solver=%r was taken for n_samples=%d.", solver, n)
        elif solver != "exact" and self.metric == "precomputed":
            raise ValueError(
                f'solver="{solver}" needs features, got metric="precomputed". '
                'Fit on the features themselves, or with solver="exact".'
            )
        return solver

    def _fit_dask(self, X, y, sample_weight):
        """Fit to the rows of Dask arrays, which stay where they are."""
        if y is None:
            raise ValueError("`y` must be given: a fit requires y to be passed, got None.")
        if check_choice("solver", self.solver, SOLVERS) not in ("auto", "nystrom"):
            raise ValueError(
                f'`solver` must be "auto" or "nystrom" for Dask arrays, got "{self.solver}". '
                "Bring the rows into memory with X.compute() for others."
            )
        if check_choice("metric", self.metric, METRICS) == "precomputed":
            raise ValueError(
                '`metric` must be "euclidean" or "geodesic" for Dask arrays, got "precomputed".'
            )
        rows = dask_rows(X, y, sample_weight, self.metric)
        self._check_features(X, reset=True)
        self.solver_ = "nystrom"
        return self._fit_rows(rows, one_target=np.ndim(y) == 1)

    def _check_features(self, X, *, reset):
        """Number and names of the features of Dask rows, of which no value is looked at."""
        shown = X._meta if hasattr(X, "to_dask_array") else X
        validate_data(self, shown, reset=reset, skip_check_array=True)

    def _fit_rows(self, rows, one_target):
        """Fit by passes over rows that come in blocks."""
        whole, rng = rows.total(survey), np.random.default_rng(self.random_state)
        if whole.weight == 0:
            raise ValueError("`sample_weight` must not be all zero, got zeros only.")
        mean = whole.mean if self.fit_intercept else np.zeros(len(whole.mean))
        nystrom, trials = self._landmarks(rows, mean, rng)
        X, y, w = centred(nystrom.sample, mean, by_itself=self.fit_intercept)
        problem = SampledProblem(
            X=X,
            y=y,
            w=w,
            alpha=check_alpha(self.alpha),
            metric=self.metric,
            rng=rng,
            spectra=nystrom.spectrum,
            trials=None if self.solver_ == "pcg" else trials,
            rows=rows,
            n_rows=whole.n,
            weight=whole.weight,
        )
        found = find(self.bandwidth, problem)
        lams = np.atleast_1d(found.lam)
        self.bandwidth_ = found.sigma
        self.alpha_ = float(lams[0]) if one_target or np.ndim(found.lam) == 0 else lams
        if self.solver_ == "pcg":
            self._nystrom, self._model = None, self._solve_pcg(rows, mean, rng)
            self.X_fit_ = rows.X
        else:
            self._nystrom, self._model = nystrom, nystrom.solve(found.sigma, lams)
            self.X_fit_ = nystrom.spectrum(found.sigma).phi.Z
        dual_coef = self._model.dual_coef
        self.dual_coef_ = dual_coef[:, 0] if one_target else dual_coef
        self.intercept_ = mean[0] if one_target else mean
        return self

    def _landmarks(self, rows, mean, rng):
        """The Nystrom system of all rows, and spectra of a smaller one to try bandwidths on."""
        sample = sampled(rows, SAMPLE, rng)
        among, m = self._chooser(rows.n, rng.integers(1 << 32))
        given = not isinstance(self.landmarks, str)
        candidates = sample if given else sampled(rows, CANDIDATES * m, rng)
        choose = among(candidates[0], m)
        nystrom = Nystrom(rows, mean, bool(self.fit_intercept), sample, self.metric, choose)
        return nystrom, trial_spectra(nystrom, candidates, among, m, rng)

    def _fit_files(self, files, y, weight):
        """Fit to columns of Parquet files, which need not fit in memory."""
        if self.solver not in ("auto", "nystrom") or self.metric == "precomputed":
            raise ValueError(
                "Parquet files are fitted by the Nystrom solver on features, got "
                f'solver="{self.solver}", metric="{self.metric}".'
            )
        rows = files.rows(y, weight, check_choice("metric", self.metric, METRICS))
        self.solver_, self.n_features_in_ = "nystrom", len(rows.features)
        self.feature_names_in_ = np.array(rows.features, dtype=object)
        return self._fit_rows(rows, one_target=isinstance(y, str))

    def _chooser(self, n, seed):
        """Function of rows and a number that returns a chooser of landmarks, and their number."""
        if not isinstance(self.landmarks, str):
            Z = check_rows(self.landmarks, self.metric)
            check_columns("landmarks", Z, self.n_features_in_)
            return evenly_among(Z), len(Z)
        kind = LANDMARKS[check_choice("landmarks", self.landmarks, LANDMARKS)]

        def among(X, m):
            return lambda sigma: kind(X, m, sigma, self.metric, np.random.default_rng(seed))

        return among, landmark_number(self.n_landmarks, n)

    def predict(self, X, return_std=False):
        """Predictions for the rows of X, by blocks of rows.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        return_std : bool
            Also return the standard deviation of the function (without the noise of y) if y is
            seen as a Gaussian process with this kernel, its variance fitted to y.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets); or two of them
            Dask arrays that are not computed yet, if X is one.
        """
        if is_dask(X):
            works = [self._light().predict]
            works += [partial(_std_of, self._light(std=True))] if return_std else []
            found = tuple(self._lazy(X, work) for work in works)
            return found if return_std else found[0]
        if isinstance(X, ParquetFiles):
            return self._predict_files(X, return_std)
        return self._predicted(self._validate_new(X), return_std)

    def _predict_files(self, files, return_std):
        """Predictions for the rows of Parquet files, of which only these are held."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", files.features)
        if names is None:
            raise ValueError(
                "`ParquetFiles` must name its features for a model that was fitted to rows without "
                "names. Give them in the order of the fit: ParquetFiles(source, [...])."
            )
        rows = files.features_rows(names, self.metric)
        check_columns("X", np.empty((0, len(names))), self.n_features_in_)
        with listening(printer() if self.verbose else None):
            parts = list(rows.each(lambda X, y, w: self._predicted(X, return_std)))
        if return_std:
            return tuple(np.concatenate(part) for part in zip(*parts, strict=True))
        return np.concatenate(parts)

    def _predicted(self, X, return_std):
        mean = self.intercept_ + kernel_product(
            X, self.X_fit_, self.dual_coef_, self.bandwidth_, self.metric
        )
        return (mean, self._std(X)) if return_std else mean

    def _std(self, X):
        model, kept = self._fitted_model(), self._kept
        std = np.empty((len(X), len(model.signal_variance)))
        for rows in row_blocks(len(X), rows_per_block(len(self.X_fit_))):
            K = kernel_block(X[rows], self.X_fit_, self.bandwidth_, self.metric)[:, kept]
            left = np.maximum(1.0 - model.explained(K), 0.0)
            std[rows] = np.sqrt(left * model.signal_variance)
        return std[:, 0] if self.dual_coef_.ndim == 1 else std

    def predict_interval(self, X, coverage=0.9):
        """Prediction intervals for new observations, by the jackknife+.

        The interval at x goes from a low quantile of the predictions at x less the size of the
        residual, over all models that leave one row out, to a high quantile of their sum. For a
        bandwidth and penalty fixed beforehand its coverage is proven to be at least
        2 coverage - 1 whatever the noise. All leave-one-out models come from one factorisation;
        bandwidth and penalty are held fixed, also where the same rows chose them.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        coverage : float between 0 and 1

        Returns
        -------
        lower, upper : ndarrays of shape (n_samples,) or (n_samples, n_targets)
            Dask arrays that are not computed yet, if X is one.

        References
        ----------
        Barber, Candes, Ramdas, Tibshirani (2021), Predictive inference with the jackknife+,
        Annals of Statistics 49(1).
        """
        coverage = check_number("coverage", coverage, above=0, below=1)
        if is_dask(X):
            light = self._light(std=True)
            lower, upper = (partial(_bound_of, light, coverage, side) for side in (0, 1))
            return self._lazy(X, lower), self._lazy(X, upper)
        X = self._validate_new(X)
        model, kept = self._fitted_model().jackknife, self._kept
        mean = self.predict(X).reshape(len(X), -1)
        lower, upper = np.empty_like(mean), np.empty_like(mean)
        sizes = np.abs(model.loo_residuals)
        for rows in row_blocks(len(X), rows_per_block(4 * sizes.size)):
            K = kernel_block(X[rows], self.X_fit_, self.bandwidth_, self.metric)[:, kept]
            left_out = mean[rows, None, :] + model.loo_shifts(K)
            lower[rows] = -_upper_quantile(sizes - left_out, coverage)
            upper[rows] = _upper_quantile(left_out + sizes, coverage)
        shape = mean.shape[:1] if self.dual_coef_.ndim == 1 else mean.shape
        return lower.reshape(shape), upper.reshape(shape)

    def jacobian(self, X):
        """Derivatives of the predictions with respect to the features, at the rows of X.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_samples, n_targets, n_features)
            Per degree for the geodesic metric. A Dask array, not computed yet, if X is one.
        """
        if self.metric == "precomputed":
            raise ValueError(
                'The Jacobian needs features, got metric="precomputed". '
                "Fit on the features themselves."
            )
        if is_dask(X):
            return self._lazy(X, self._light().jacobian, self.n_features_in_)
        X = self._validate_new(X)
        return kernel_slopes(X, self.X_fit_, self.dual_coef_, self.bandwidth_, self.metric)

    @property
    def loo_residuals_(self):
        """Residual of each training row for the model fitted to all other rows.

        In closed form, bandwidth and penalty held fixed; computed when first asked for. Rows of
        weight zero have their plain residuals.
        """
        model, kept = self._fitted_model(), self._kept
        if self.solver_ != "exact":
            residuals = model.loo_residuals
            return residuals[:, 0] if self.dual_coef_.ndim == 1 else residuals
        residuals = np.empty(self._y.shape)
        residuals[kept] = model.loo_residuals
        if not kept.all():
            rest = self._y - self.predict(self.X_fit_).reshape(self._y.shape)
            residuals[~kept] = rest[~kept]
        return residuals[:, 0] if self.dual_coef_.ndim == 1 else residuals

    def diagnose(self):
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
        residuals, problem = model.jackknife.loo_residuals, self._training_problem()
        lam = np.broadcast_to(self.alpha_, problem.y.shape[1])
        return diagnose(problem, self.bandwidth_, lam, residuals, model.degrees_of_freedom)

    def _validate_new(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        check_new_rows(X, self.metric)
        return X

    def _lazy(self, X, work, *shape):
        """What `work` makes of the blocks of Dask rows, not computed yet."""
        array = dask_array(X)
        self._check_features(X, reset=False)
        return lazy_rows(array, work, *self.dual_coef_.shape[1:], *shape)

    def _light(self, *, std=False):
        """A copy for blocks of rows, which have no names; what only errors need is left out."""
        check_is_fitted(self)
        light = copy(self)
        light.__dict__.pop("feature_names_in_", None)
        if not std:
            light.__dict__.pop("_state", None)
            light._model = light._nystrom = None
        return light

    def _fitted_model(self):
        """The solved system, solved again after unpickling (it is n x n, and not pickled)."""
        check_is_fitted(self)
        if self._model is None and self.solver_ == "nystrom":
            self._nystrom = Nystrom.restored(
                self._state,
                self.X_fit_,
                self.bandwidth_,
                self.metric,
                centred=bool(self.fit_intercept),
            )
            self._model = self._nystrom.solve(self.bandwidth_, np.atleast_1d(self.alpha_))
        elif self._model is None:
            self._model = self._solve(self._training_problem())
        return self._model

    @property
    def _kept(self):
        """The rows of X_fit_ that the model knows: all landmarks, or rows of positive weight."""
        return self._w > 0 if self.solver_ == "exact" else slice(None)

    def _training_problem(self):
        """The problem that was fitted, without the choices made for it."""
        if self.solver_ == "nystrom":
            fitted, sums = self._nystrom, self._nystrom.spectrum(self.bandwidth_).sums
            X, y, w = centred(fitted.sample, fitted.mean, by_itself=self.fit_intercept)
            return SampledProblem(
                X=X,
                y=y,
                w=w,
                alpha=0.0,
                metric=self.metric,
                rows=fitted.rows,
                n_rows=sums.n,
                weight=sums.weight,
            )
        kept = self._w > 0
        return Problem(
            X=_rows(self.X_fit_, kept, self.metric),
            y=self._y[kept] - self.intercept_,
            alpha=0.0,
            w=self._w[kept],
            metric=self.metric,
        )

    def __getstate__(self):
        state = super().__getstate__()
        if "_model" not in state or self.solver_ == "pcg":
            return state
        if state.get("_nystrom") is not None:
            state = {**state, "_nystrom": None, "_state": self._nystrom.state()}
        return {**state, "_model": None}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.positive_only = self.metric == "precomputed"
        return tags


def _std_of(est, X):
    return est.predict(X, return_std=True)[1]


def _bound_of(est, coverage, side, X):
    return est.predict_interval(X, coverage)[side]


def _upper_quantile(values, coverage):
    """The ceil(coverage (n + 1))-th smallest of n values along axis 1; infinite if n is too few."""
    n = values.shape[1]
    rank = int(np.ceil(coverage * (n + 1)))
    if rank > n:
        return np.full(values[:, 0].shape, np.inf)
    return np.partition(values, rank - 1, axis=1)[:, rank - 1]


def _rows(X, kept, metric):
    """The kept rows; of given distances also the kept columns."""
    if kept.all():
        return X
    return X[np.ix_(kept, kept)] if metric == "precomputed" else X[kept]
