"""`JacobianNystroem`: Nystrom features with an automatic bandwidth, for any linear model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ._checks import check_choice, check_range, check_whole, generator
from ._compute.arrays import Array
from ._geometry.space import space_of
from ._rows.labels import checked_labels, coded_classes
from ._rules.registry import check_penalty, find
from ._rules.training import Penalty, TrainingData
from ._select import selection_data
from ._solvers.landmarks import CANDIDATES, LANDMARKS, Features, chooser, features


@dataclass(eq=False, repr=False)
class FeatureParameters:
    """Parameters of `JacobianNystroem`."""

    bandwidth: float | str | Callable[[TrainingData], float] = "maxvar"
    n_components: int = 100
    _: KW_ONLY
    alpha: float = 1e-3
    kernel: str = "gaussian"
    landmarks: str = "kmeans"
    random_state: int | None = None


class JacobianNystroem(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, FeatureParameters
):
    r"""Nystrom features of a kernel, with an automatic bandwidth.

    With landmarks Z and :math:`K_{ZZ} = L L^\top` the features of x are
    :math:`L^{-1} k(Z, x)`: their inner products approximate the kernel, and are exact if one of the
    two rows is a landmark. A linear model on these features, such as a linear classifier, is a
    kernel model.

    Parameters
    ----------
    bandwidth : float, str or function
        As for :class:`JacobianKernelRidge`. The default, "maxvar", maximises the variance of the
        kernel's entries: a linear model with its own penalty needs features that vary. With many
        input features, the bandwidth of the Jacobian rule is far larger, and the Nystrom features
        are then nearly constant.
    n_components : int
        Largest number of landmarks, and so of features: equal rows and linearly dependent landmarks
        are dropped.
    alpha : float
        Ridge penalty for the bandwidth's rule.
    kernel : {"gaussian", "matern52", "matern32", "exponential", "laplacian"}
    landmarks : {"kmeans", "uniform", "rpcholesky"}
        How landmarks are chosen, as for :class:`JacobianKernelRidge`.
    random_state : int, optional

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth, given or chosen.
    kernel_ : str
        Name of the kernel that was used.
    components_ : ndarray of shape (n_landmarks, n_features)
        The landmarks.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had names.

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

    __module__ = "jacridge"  # saved models name public paths

    def fit(self, X: Any, y: Any = None) -> JacobianNystroem:
        """Choose the bandwidth and the landmarks.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,), optional
            Only used by rules that solve: numbers are targets, other labels are classes.

        Returns
        -------
        self
        """
        X = validate_data(self, X, dtype=np.float64)
        check_range("X", X)
        most = check_whole("n_components", self.n_components)
        kind = check_choice("landmarks", self.landmarks, LANDMARKS)
        rng, alpha = generator(self.random_state), check_penalty(self.alpha)
        space, is_numeric = space_of(self.kernel, "euclidean"), np.asarray(y).dtype.kind in "fiu"
        y = y if y is None or is_numeric else coded_classes(checked_labels(y))
        penalty = Penalty(alpha, shared=not is_numeric)  # errors of classes add up
        data = selection_data(X, y, self.bandwidth, space, random_state=rng, penalty=penalty)
        sigma = find(self.bandwidth, data).sigma
        if len(X) > CANDIDATES * most:
            X = X[np.sort(rng.choice(len(X), CANDIDATES * most, replace=False))]
        Z = chooser(kind, X, min(most, len(X)), space, int(rng.integers(1 << 32)))(sigma)
        found = features(Z, sigma, space)
        self.bandwidth_, self.components_, self._L = sigma, found.Z, found.L
        self.kernel_ = self.kernel
        return self

    def transform(self, X: Any) -> Array:
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
        space = space_of(self.kernel_, "euclidean")
        found = Features(self.components_, np.asfortranarray(self._L), self.bandwidth_, space)
        return np.ascontiguousarray(found(X))

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)
