"""JacobianNystroem: Nystrom features with a chosen bandwidth, for any linear model."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ._checks import check_choice, check_number, check_range, check_whole, generator
from ._choice import problem_of
from ._landmarks import CANDIDATES, LANDMARKS, features
from ._selectors import find


class JacobianNystroem(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Nystrom features of the Gaussian kernel, with a bandwidth that is chosen.

    With landmarks Z and :math:`K_{ZZ} = L L^\top` the features of x are
    :math:`L^{-1} k(Z, x)`: their inner products are the kernel, exactly so where one of the two
    rows is a landmark. A linear model on them, also a classifier, is a kernel model.

    Parameters
    ----------
    bandwidth : float, str or function
        As for :class:`JacobianKernelRidge`.
    n_components : int
        Largest number of landmarks, hence of features: equal rows, and rows that depend on
        others, are left out.
    alpha : float
        Ridge penalty that the rule of the bandwidth looks at.
    landmarks : {"kmeans", "uniform", "rpcholesky"}
        How landmarks are chosen, as for :class:`JacobianKernelRidge`.
    random_state : int, optional

    Attributes
    ----------
    bandwidth_ : float
    components_ : ndarray of shape (n_landmarks, n_features)
        The landmarks.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from jacridge import JacobianNystroem
    >>> X, y = load_iris(return_X_y=True)
    >>> features = JacobianNystroem(n_components=50, random_state=0)
    >>> model = make_pipeline(features, LogisticRegression(max_iter=1000)).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        bandwidth="jacobian",
        n_components=100,
        *,
        alpha=1e-3,
        landmarks="kmeans",
        random_state=None,
    ):
        self.bandwidth = bandwidth
        self.n_components = n_components
        self.alpha = alpha
        self.landmarks = landmarks
        self.random_state = random_state

    def fit(self, X, y=None):
        """Choose the bandwidth and the landmarks.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,), optional
            Only rules that solve look at it.

        Returns
        -------
        self
        """
        X = validate_data(self, X, dtype=np.float64)
        check_range("X", X)
        most = check_whole("n_components", self.n_components)
        choose = LANDMARKS[check_choice("landmarks", self.landmarks, LANDMARKS)]
        # Labels of classes are no targets; a rule that needs targets then says so.
        numeric = y is not None and np.asarray(y).dtype.kind in "fiu"
        rng, alpha = generator(self.random_state), check_number("alpha", self.alpha, at_least=0)
        targets = y if numeric else None
        problem = problem_of(X, targets, self.bandwidth, "euclidean", rng, alpha=alpha)
        sigma = find(self.bandwidth, problem).sigma
        if len(X) > CANDIDATES * most:
            X = X[np.sort(rng.choice(len(X), CANDIDATES * most, replace=False))]
        Z = choose(X, min(most, len(X)), sigma, "euclidean", rng)
        self._map = features(Z, sigma)
        self.bandwidth_, self.components_ = sigma, self._map.Z
        return self

    def transform(self, X):
        """Features of the rows of X.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_landmarks)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        check_range("X", X)
        return np.ascontiguousarray(self._map(X))

    @property
    def _n_features_out(self):
        return len(self.components_)
