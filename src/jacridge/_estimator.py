"""JacobianKernelRidge: its parameters, and what a fitted model says of new rows."""

from __future__ import annotations

from copy import copy
from functools import partial

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ._checks import check_columns, check_new_rows, check_number
from ._dask import dask_array, is_dask, lazy_rows
from ._distances import row_blocks, rows_per_block
from ._fitting import Fitting
from ._kernels import kernel_block, kernel_product, kernel_slopes
from ._progress import listening, printer
from .diagnostics import diagnose
from .parquet import ParquetFiles


class JacobianKernelRidge(Fitting):
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
        `n_landmarks` points: rows stream in blocks, and only m x m sums are kept. "pcg" solves the
        exact system by conjugate gradients, preconditioned by `n_landmarks` landmarks, without
        the n x n matrix in memory. "auto" is exact up to 10,000 rows, then "nystrom"; `solver_`
        says what was taken.
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
    alpha_ : float, or ndarray of shape (n_targets,) if it was chosen for several targets
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        One for each row of `X_fit_`.
    intercept_ : float or ndarray of shape (n_targets,)
    X_fit_ : ndarray of shape (n_samples, n_features)
        The training rows; for solver "nystrom" the landmarks, if these are not all rows.
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

    def __init__(
        self,
        bandwidth="jacobian",
        alpha=1e-3,
        *,
        metric="euclidean",
        solver="auto",
        n_landmarks=None,
        landmarks="kmeans",
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

    def predict(self, X, return_std=False):
        """Predictions for the rows of X, by blocks of rows.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        return_std : bool
            Also return the standard deviation of the function (without the noise of y) if y is
            seen as a Gaussian process with this kernel, its variance fitted to y. It is as good
            as bandwidth and penalty are; `predict_interval` does not lean on them so.

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
            return self._of_files(X, lambda rows: self._predicted(rows, return_std))
        return self._predicted(self._validate_new(X), return_std)

    def score(self, X, y, sample_weight=None):
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
        return super().score(X, y, sample_weight)

    def _of_files(self, files, work):
        """What `work` makes of the rows of Parquet files, of which only that is held."""
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
            parts = list(rows.each(lambda X, y, w: work(X)))
        if isinstance(parts[0], tuple):
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
        bandwidth and penalty are held fixed, also where the same rows chose them. A row is left
        out, and its residual counted, once, whatever its weight.

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
        if isinstance(X, ParquetFiles):
            return self._of_files(X, lambda rows: self._interval(rows, coverage))
        return self._interval(self._validate_new(X), coverage)

    def _interval(self, X, coverage):
        model, kept = self._fitted_model().jackknife, self._kept
        mean = self._predicted(X, return_std=False).reshape(len(X), -1)
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
        if isinstance(X, ParquetFiles):
            return self._of_files(X, self._slopes)
        return self._slopes(self._validate_new(X))

    def _slopes(self, X):
        return kernel_slopes(X, self.X_fit_, self.dual_coef_, self.bandwidth_, self.metric)

    @property
    def loo_residuals_(self):
        """Residual of each training row for the model fitted to all other rows.

        In closed form, bandwidth and penalty held fixed; computed when first asked for, by the
        Nystrom solver from the training rows, read again as they are then. Rows of weight zero
        have their plain residuals.
        """
        model, kept = self._fitted_model(), self._kept
        if self._w is None:
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
