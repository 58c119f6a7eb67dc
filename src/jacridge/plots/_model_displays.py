"""Displays of a fitted model: `from_estimator` computes and `plot` draws, as in scikit-learn.

Each stores its results as attributes, so that it can be drawn again without computing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from .. import last_step
from .._checks import check_choice, check_number, check_rows
from .._compute.arrays import Array
from .._pipeline import regressor_of
from ..effects._average import check_regressor
from ._look import Axes, Display
from ._model import plot_curve, plot_importances, plot_slopes, plot_surface


@dataclass(kw_only=True, eq=False, repr=False)
class CurveDisplay(Display):
    """Prediction along one feature, the other features held at their medians.

    Attributes
    ----------
    x, prediction : ndarrays of shape (k,)
    interval : (lower, upper), or None
    data : (x, y) of the observations, or None
    name : str
    """

    x: Array
    prediction: Array
    name: str
    interval: tuple[Array, Array] | None = None
    data: tuple[Array, Array] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        feature: int | str = 0,
        coverage: float | None = None,
        points: int = 300,
        ax: Axes | None = None,
        **style: Any,
    ) -> CurveDisplay:
        """Predict along the feature.

        Parameters
        ----------
        estimator : fitted JacobianKernelRidge, or Pipeline that ends in one
        X : array of shape (n, p)
            Rows that give the range of the feature and the medians of the others.
        y : array of shape (n,), optional
            Observations to draw, if X has one feature.
        feature : index or name
        coverage : float between 0 and 1, optional
            Coverage of the interval (see ``predict_interval``); by default none is drawn.
        points : int
        ax : matplotlib axes, optional
        **style
            Passed to the plot.

        Returns
        -------
        CurveDisplay
        """
        estimator, X = last_step(estimator, X)
        check_one_target(estimator)
        X, names = table_of(estimator, X)
        j = position_of(names, feature)
        x = np.linspace(X[:, j].min(), X[:, j].max(), points)
        rows = np.tile(np.median(X, axis=0), (points, 1))
        rows[:, j] = x
        interval = None
        if coverage is not None:
            interval = _on_made_rows(estimator.predict_interval, rows, coverage)
        return cls(
            x=x,
            prediction=_on_made_rows(estimator.predict, rows),
            name=names[j],
            interval=interval,
            data=None if y is None or X.shape[1] > 1 else (X[:, 0], np.asarray(y)),
        ).plot(ax=ax, **style)

    def plot(self, *, ax: Axes | None = None, **style: Any) -> CurveDisplay:
        """Draw the curve, with the interval and the observations if there are any."""
        lower, upper = self.interval or (None, None)
        ends = {"lower": lower, "upper": upper}
        ax = plot_curve(self.x, self.prediction, **ends, data=self.data, ax=ax, **style)
        ax.set(xlabel=self.name)
        return self._drawn(ax)


@dataclass(kw_only=True, eq=False, repr=False)
class SurfaceDisplay(Display):
    """Prediction over two features, the other features held at their medians.

    Attributes
    ----------
    x_1, x_2 : ndarrays of shape (k,)
    prediction : ndarray of shape (k, k)
    data : ndarray of shape (n, 2)
    names : the two names
    """

    x_1: Array
    x_2: Array
    prediction: Array
    data: Array
    names: tuple[str, str]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: npt.ArrayLike,
        *,
        features: tuple[int | str, int | str] = (0, 1),
        points: int = 60,
        ax: Axes | None = None,
        **style: Any,
    ) -> SurfaceDisplay:
        """Predict on a square grid of the two features.

        Parameters
        ----------
        estimator : fitted JacobianKernelRidge, or Pipeline that ends in one
        X : array of shape (n, p), p >= 2
        features : two indices or names
        points : int
            Points along each side.
        ax : matplotlib axes, optional
        **style
            Passed to the plot.

        Returns
        -------
        SurfaceDisplay
        """
        estimator, X = last_step(estimator, X)
        check_one_target(estimator)
        X, names = table_of(estimator, X)
        i, j = (position_of(names, feature) for feature in features)
        x_1, x_2 = (np.linspace(X[:, f].min(), X[:, f].max(), points) for f in (i, j))
        rows = np.tile(np.median(X, axis=0), (points**2, 1))
        rows[:, i], rows[:, j] = np.tile(x_1, points), np.repeat(x_2, points)
        prediction = _on_made_rows(estimator.predict, rows)
        return cls(
            x_1=x_1,
            x_2=x_2,
            prediction=prediction.reshape(points, points),
            data=X[:, [i, j]],
            names=(names[i], names[j]),
        ).plot(ax=ax, **style)

    def plot(self, *, ax: Axes | None = None, **style: Any) -> SurfaceDisplay:
        """Draw filled contours and the places of the observations."""
        ax = plot_surface(self.x_1, self.x_2, self.prediction, data=self.data, ax=ax, **style)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        return self._drawn(ax)


@dataclass(kw_only=True, eq=False, repr=False)
class SlopeDisplay(Display):
    """Slopes of the prediction at the rows of X: importances of all features, or one feature.

    Attributes
    ----------
    slopes : ndarray of shape (n, p)
    X : ndarray of shape (n, p)
    importances : ndarray of shape (p,)
        Root mean square of each feature's slope, times its standard deviation.
    names : list of str
    feature : int or None
    """

    slopes: Array
    X: Array
    names: list[str]
    feature: int | None = None

    def __post_init__(self) -> None:
        squares = np.square(self.slopes).reshape(-1, self.X.shape[1])
        self.importances = np.sqrt(squares.mean(axis=0)) * self.X.std(axis=0)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: npt.ArrayLike,
        *,
        feature: int | str | None = None,
        ax: Axes | None = None,
        **style: Any,
    ) -> SlopeDisplay:
        """Compute the Jacobian at the rows of X.

        Parameters
        ----------
        estimator : fitted JacobianKernelRidge, or Pipeline that ends in one
        X : array of shape (n, p)
        feature : index or name, optional
            The feature whose slopes are drawn against its values; by default the importances.
        ax : matplotlib axes, optional
        **style
            Passed to the plot.

        Returns
        -------
        SlopeDisplay
        """
        estimator, X = last_step(estimator, X)
        if feature is not None:
            check_one_target(estimator)
        rows, names = table_of(estimator, X)
        position = None if feature is None else position_of(names, feature)
        slopes = np.asarray(estimator.jacobian(X))
        return cls(slopes=slopes, X=rows, names=names, feature=position).plot(ax=ax, **style)

    def plot(self, *, ax: Axes | None = None, **style: Any) -> SlopeDisplay:
        """Draw the slopes of the feature, or the importances of all."""
        if self.feature is None:
            return self._drawn(plot_importances(self.names, self.importances, ax=ax, **style))
        j, name = self.feature, self.names[self.feature]
        return self._drawn(plot_slopes(self.X[:, j], self.slopes[:, j], name=name, ax=ax, **style))


def check_one_target(estimator: Any) -> None:
    """Refuse models of classes or of several targets."""
    check_regressor(estimator)
    check_is_fitted(estimator)
    if np.ndim(estimator.dual_coef_) > 1:
        raise ValueError(
            "`estimator` must have one target to be drawn, got "
            f"{estimator.dual_coef_.shape[1]}. Fit it to one column of y."
        )


def table_of(estimator: Any, X: Any) -> tuple[Array, list[str]]:
    """Rows as an array, and the names of the columns."""
    check_is_fitted(estimator)
    return check_rows(X), regressor_of(estimator)._function().names


def position_of(names: list[str], feature: int | str) -> int:
    """Index of a feature given by index or name."""
    if isinstance(feature, str):
        return names.index(check_choice("feature", feature, names))
    return int(check_number("feature", feature, at_least=0, below=len(names)))


def _on_made_rows(method: Callable[..., Any], rows: Array, *options: Any) -> Any:
    """Call a method on artificial rows, which have no column names, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return method(rows, *options)
