"""How the estimator is fitted: to arrays, to Parquet files, to Dask arrays."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ._checks import (
    check_choice,
    check_columns,
    check_metric_rows,
    check_range,
    check_rows,
    check_weights,
    check_whole,
    generator,
)
from ._dask import dask_rows
from ._distances import METRICS, blas_for
from ._landmarks import CANDIDATES, LANDMARKS, chooser, evenly_among, landmark_number
from ._nystrom import Nystrom, trial_spectra
from ._pcg import solve_pcg
from ._problem import Problem, mean_of
from ._sampled import SampledProblem, centred
from ._selectors import check_alpha, find
from ._solvers import INTERCEPTS, solve_each, solve_exact
from ._streams import ArrayRows
from ._survey import SAMPLE, drawn, first_look

SOLVERS = ("auto", "exact", "nystrom", "pcg")

# Up to here solver="auto" is exact: the n x n matrix takes 0.8 GB and its factor seconds.
EXACT_ROWS = 10_000

logger = logging.getLogger("jacridge")


class Fitting(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """The doors that rows come in by, and the solved system that is kept behind a model."""

    _nystrom: Any = None
    _state: Any = None
    _w: Any = None  # of models that know all rows

    def _fit_arrays(self, X, y, sample_weight):
        """Fit to rows in memory, or in a memory map."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        y = y.astype(np.float64, copy=False)
        check_choice("metric", self.metric, METRICS)
        check_metric_rows(X, self.metric)
        check_range("y", y)
        w = None if sample_weight is None else check_weights(sample_weight, X)
        targets = y[:, None] if y.ndim == 1 else y
        self.solver_ = self._solver(len(X))
        if self.solver_ != "exact":
            return self._fit_rows(ArrayRows(X, targets, w), one_target=y.ndim == 1)
        return self._fit_exact(X, targets, w, y.ndim == 1)

    def _fit_exact(self, X, targets, w, one_target):
        """Fit by the n x n kernel matrix."""
        self._nystrom = self._state = None  # of an earlier fit
        w = np.ones(len(X)) if w is None else w
        kept = w > 0
        if not kept.any():
            raise ValueError("`sample_weight` must not be all zero, got zeros only.")
        mean = self._mean(targets, w)
        problem = Problem(
            X=_rows(X, kept, self.metric),
            y=targets[kept] - mean,
            alpha=check_alpha(self.alpha),
            w=w[kept],
            metric=self.metric,
            rng=generator(self.random_state),
        )
        found = find(self.bandwidth, problem)
        self.bandwidth_ = found.sigma
        lam = np.asarray(found.lam)
        self.alpha_ = float(lam) if lam.ndim == 0 else float(lam[0]) if one_target else lam
        self._model = self._solve(problem)

        dual_coef = np.zeros(targets.shape)
        dual_coef[kept] = self._model.dual_coef
        self.dual_coef_ = dual_coef[:, 0] if one_target else dual_coef
        intercept = mean + self._model.intercept
        self.intercept_ = intercept[0] if one_target else intercept
        self.X_fit_ = X
        self._y, self._w = targets.copy(), w  # the caller may change his y
        return self

    def _intercept(self):
        """The kind of intercept, one of INTERCEPTS."""
        given = [False, True, "free"]
        if self.fit_intercept not in given:
            raise ValueError(
                f'`fit_intercept` must be True, False or "free", got {self.fit_intercept!r}.'
            )
        return INTERCEPTS[given.index(self.fit_intercept)]

    def _mean(self, y, w):
        """What y is centred at first: all of its intercept, if that is not free."""
        return np.zeros(y.shape[1]) if self._intercept() == "none" else mean_of(y, w)

    def _solve(self, problem):
        """The solved system at the chosen bandwidth and penalty."""
        lams = np.unique(self.alpha_)
        intercept, y, w = self._intercept(), problem.y, problem.w
        with blas_for(len(w)):
            if len(lams) > 1:
                K = problem.pairs.kernel(self.bandwidth_)
                return solve_each(K, y, w, np.asarray(self.alpha_), intercept=intercept)
            return solve_exact(
                lambda: problem.pairs.kernel(self.bandwidth_), y, w, lams[0], intercept=intercept
            )

    def _check_pcg(self, n_targets):
        """Refuse what conjugate gradients cannot do, before anything is searched for."""
        alpha = check_alpha(self.alpha)
        if alpha == 0 if isinstance(alpha, float) else n_targets > 1:
            raise ValueError(
                '`alpha` must be > 0 for solver="pcg", and one number for all targets, got '
                f"{self.alpha!r} for {n_targets} target(s)."
            )
        if not isinstance(self.landmarks, str):
            raise ValueError(
                '`landmarks` must be a word for solver="pcg", which chooses its own, got an array.'
            )

    def _solve_pcg(self, rows, mean, rng):
        # The landmarks' features take n m numbers: at most a twentieth of the full matrix.
        few = min(1000, -(-rows.n // 20))
        m = landmark_number(few if self.n_landmarks is None else self.n_landmarks, rows.n)
        return solve_pcg(
            rows,
            mean,
            self.bandwidth_,
            float(np.squeeze(self.alpha_)),
            intercept=self._intercept(),
            metric=self.metric,
            n_landmarks=m,
            rng=rng,
        )

    def _solver(self, n):
        """The solver for n rows."""
        solver = check_choice("solver", self.solver, SOLVERS)
        # Now, not when there are rows enough to need them.
        if isinstance(self.landmarks, str):
            check_choice("landmarks", self.landmarks, LANDMARKS)
        if self.n_landmarks is not None:
            check_whole("n_landmarks", self.n_landmarks)
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
        """Fit by passes over rows that come in blocks; with all of them as landmarks, exactly."""
        block = self._all_landmarks(rows) if self.solver_ == "nystrom" else None
        if block is not None:
            X, y, w = block
            return self._fit_exact(X, y, w, one_target)
        self._state = self._w = None  # of an earlier fit
        rng = generator(self.random_state)
        seen, nystrom, trials = self._landmarks(rows, rng)
        mean = seen.whole.mean if self.fit_intercept else np.zeros(len(seen.whole.mean))
        if self.solver_ == "pcg":
            self._check_pcg(len(mean))
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
            n_rows=seen.whole.n,
            weight=seen.whole.weight,
            seen=seen,
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
            mean = nystrom.spectrum(found.sigma).sums.mean
        dual_coef = self._model.dual_coef
        self.dual_coef_ = dual_coef[:, 0] if one_target else dual_coef
        intercept = mean + self._model.intercept
        self.intercept_ = intercept[0] if one_target else intercept
        return self

    def _all_landmarks(self, rows):
        """All rows if all are landmarks, else None.

        The model is then the exact one. Landmarks of which the others leave little would cost it
        digits, which it keeps if it is solved as such.
        """
        if isinstance(self.landmarks, str):
            m = landmark_number(self.n_landmarks, rows.n)
            return rows.take(np.arange(rows.n)) if m == rows.n else None
        Z = self._given_landmarks()
        if len(Z) != rows.n:
            return None
        block = rows.take(np.arange(rows.n))
        same = np.array_equal(np.unique(Z, axis=0), np.unique(block[0], axis=0))
        return block if same else None

    def _given_landmarks(self):
        Z = check_rows(self.landmarks, self.metric, "landmarks")
        check_columns("landmarks", Z, self.n_features_in_)
        return Z

    def _landmarks(self, rows, rng):
        """The survey of all rows, their Nystrom system, and spectra of a smaller one for trials."""
        draws = [drawn(rows.n, SAMPLE, rng)]
        among, m = self._chooser(rows.n, rng.integers(1 << 32))
        if isinstance(self.landmarks, str):
            draws.append(drawn(rows.n, CANDIDATES * m, rng))
        seen, blocks = first_look(rows, draws, self.metric, rng)
        sample, candidates = blocks[0], blocks[-1]  # the same where landmarks are given
        choose = among(candidates[0], m)
        nystrom = Nystrom(rows, self._intercept(), sample, self.metric, choose)
        return seen, nystrom, trial_spectra(nystrom, candidates, among, m, rng)

    def _fit_files(self, files, y, weight):
        """Fit to columns of Parquet files, which need not fit in memory."""
        if self.solver not in ("auto", "nystrom") or self.metric == "precomputed":
            raise ValueError(
                "Parquet files are fitted by the Nystrom solver on features, got "
                f'solver="{self.solver}", metric="{self.metric}".'
            )
        if y is None:
            raise ValueError("`y` must name the column of the target in Parquet files, got None.")
        rows = files.rows(y, weight, check_choice("metric", self.metric, METRICS))
        self.solver_, self.n_features_in_ = "nystrom", len(rows.features)
        self.feature_names_in_ = np.array(rows.features, dtype=object)
        return self._fit_rows(rows, one_target=isinstance(y, str))

    def _chooser(self, n, seed):
        """Function of rows and a number that returns a chooser of landmarks, and their number."""
        if not isinstance(self.landmarks, str):
            Z = self._given_landmarks()
            return evenly_among(Z), len(Z)
        kind = check_choice("landmarks", self.landmarks, LANDMARKS)

        def among(X, m):
            return chooser(kind, X, m, self.metric, seed)

        # What pcg is given is for its preconditioner, not for the model that it solves.
        return among, landmark_number(None if self.solver_ == "pcg" else self.n_landmarks, n)

    def _fitted_model(self):
        """The solved system, solved again after unpickling (it is n x n, and not pickled)."""
        check_is_fitted(self)
        if self._model is None and self._state is not None:
            self._nystrom = Nystrom.restored(
                self._state,
                self.X_fit_,
                self.bandwidth_,
                self.metric,
                intercept=self._intercept(),
            )
            self._model = self._nystrom.solve(self.bandwidth_, np.atleast_1d(self.alpha_))
        elif self._model is None:
            self._model = self._solve(self._training_problem())
        return self._model

    @property
    def _kept(self):
        """The rows of X_fit_ that the model knows: all landmarks, or rows of positive weight."""
        return slice(None) if self._w is None else self._w > 0

    def _training_problem(self):
        """The problem that was fitted, without the choices made for it."""
        if self._nystrom is not None:
            fitted, sums = self._nystrom, self._nystrom.spectrum(self.bandwidth_).sums
            X, y, w = centred(fitted.sample, sums.mean, by_itself=self.fit_intercept)
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
            y=self._y[kept] - self._mean(self._y, self._w),
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


def _rows(X, kept, metric):
    """The kept rows; of given distances also the kept columns."""
    if kept.all():
        return X
    return X[np.ix_(kept, kept)] if metric == "precomputed" else X[kept]
