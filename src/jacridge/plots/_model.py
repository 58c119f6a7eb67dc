"""Pictures of a fitted model: its curve or surface, its errors, its slopes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._look import BLUE, GREY, ORANGE, Axes, axes, legend


def plot_curve(
    x: npt.ArrayLike,
    prediction: npt.ArrayLike,
    *,
    lower: npt.ArrayLike | None = None,
    upper: npt.ArrayLike | None = None,
    data: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Prediction against one feature, with its interval and the observations.

    Parameters
    ----------
    x, prediction : arrays of shape (k,)
    lower, upper : arrays of shape (k,), optional
        Ends of the interval.
    data : (x, y), optional
        Observations.
    ax : matplotlib axes, optional
    **style
        Passed to ``ax.plot`` for the prediction.

    Returns
    -------
    matplotlib axes
    """
    ax = axes(ax)
    x, prediction = np.ravel(x), np.ravel(prediction)
    order = np.argsort(x)
    if data is not None:
        ax.plot(np.ravel(data[0]), data[1], ".", color=GREY, markersize=5, label="observed")
    if lower is not None and upper is not None:
        ends = np.ravel(lower)[order], np.ravel(upper)[order]
        ax.fill_between(x[order], *ends, color=BLUE, alpha=0.2, linewidth=0, label="interval")
    ax.plot(x[order], prediction[order], **{"color": BLUE, "label": "prediction"} | style)
    ax.set(xlabel="feature", ylabel="prediction")
    legend(ax)
    return ax


def plot_surface(
    x_1: npt.ArrayLike,
    x_2: npt.ArrayLike,
    prediction: npt.ArrayLike,
    *,
    data: npt.ArrayLike | None = None,
    label: str = "prediction",
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Prediction over two features as filled contours, with the positions of the observations.

    Parameters
    ----------
    x_1, x_2 : arrays of shape (k,) and (l,)
        Values of the two features.
    prediction : array of shape (l, k)
    data : array of shape (n, 2), optional
        Observations.
    label : what is predicted
    ax : matplotlib axes, optional
    **style
        Passed to ``ax.contourf``.

    Returns
    -------
    matplotlib axes
    """
    ax = axes(ax)
    filled = ax.contourf(x_1, x_2, prediction, **{"levels": 15, "cmap": "cividis"} | style)
    ax.figure.colorbar(filled, ax=ax, label=label)
    if data is not None:
        data = np.asarray(data)
        ax.plot(data[:, 0], data[:, 1], "o", color="white", markeredgecolor="black", markersize=4)
    ax.set(xlabel="first feature", ylabel="second feature")
    return ax


def plot_predictions(
    observed: npt.ArrayLike, predicted: npt.ArrayLike, *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Predictions against observations, with the line where they are equal.

    Parameters
    ----------
    observed, predicted : arrays of shape (n,)
    ax : matplotlib axes, optional
    **style
        Passed to ``ax.plot``.

    Returns
    -------
    matplotlib axes
    """
    ax = axes(ax)
    observed, predicted = np.asarray(observed), np.asarray(predicted)
    look = {"marker": "o", "linestyle": "", "color": BLUE, "markersize": 4, "alpha": 0.6} | style
    ax.plot(observed, predicted, **look)
    middle = float(observed.mean())
    ax.axline((middle, middle), slope=1, color=GREY, linestyle="--", linewidth=1, zorder=0)
    ax.set(xlabel="observed", ylabel="predicted")
    return ax


def plot_importances(
    names: Sequence[str],
    importances: npt.ArrayLike,
    *,
    largest: int = 20,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Importances of the features as bars, the largest on top.

    Parameters
    ----------
    names : names of the features
    importances : array of shape (p,)
    largest : how many features to show
    ax : matplotlib axes, optional
    **style
        Passed to ``ax.barh``.

    Returns
    -------
    matplotlib axes
    """
    ax = axes(ax)
    importances = np.asarray(importances, dtype=float)
    order = np.argsort(importances)[-largest:]
    ax.barh([str(names[i]) for i in order], importances[order], **{"color": BLUE} | style)
    ax.set(xlabel="root mean square slope, per standard deviation")
    return ax


def plot_slopes(
    x: npt.ArrayLike,
    slopes: npt.ArrayLike,
    *,
    name: str = "feature",
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Slopes of the prediction along one feature, against that feature, with their mean.

    Parameters
    ----------
    x, slopes : arrays of shape (n,)
        Values of the feature, and the column of ``est.jacobian(X)`` that belongs to it.
    name : name of the feature
    ax : matplotlib axes, optional
    **style
        Passed to ``ax.plot``.

    Returns
    -------
    matplotlib axes
    """
    ax = axes(ax)
    slopes = np.asarray(slopes, dtype=float)
    look = {"marker": "o", "linestyle": "", "color": BLUE, "markersize": 4, "alpha": 0.6} | style
    ax.plot(x, slopes, **look)
    ax.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    mean = float(slopes.mean())
    ax.axhline(mean, color=ORANGE, linestyle="--", linewidth=1, label=f"mean {mean:.3g}")
    ax.set(xlabel=name, ylabel=f"slope along {name}")
    legend(ax)
    return ax
