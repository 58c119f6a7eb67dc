"""Pictures of effects: a forest plot, pointwise slopes with a band, and average predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from .. import last_step
from .._checks import check_number
from .._compute.arrays import Array
from ..effects import AverageCurve, Effects, average_predictions
from ..effects._errors import known_degrees
from ._look import BLUE, GREY, Axes, Display, axes
from ._model import plot_curve
from ._model_displays import check_one_target, position_of, table_of


def plot_effects(
    names: Sequence[str],
    estimate: npt.ArrayLike,
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    *,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Effects with their intervals, one below the other, and a line at zero (a forest plot).

    Parameters
    ----------
    names : names of the effects, the first on top
    estimate, low, high : arrays of shape (r,)
        Effects and the ends of their intervals.
    ax : matplotlib axes, optional
    **style
        Passed to ``ax.errorbar``.

    Returns
    -------
    matplotlib axes
    """
    ax = axes(ax)
    estimate, places = np.asarray(estimate, dtype=float), np.arange(len(names))[::-1]
    reach = np.abs(np.vstack([estimate - low, np.asarray(high) - estimate]))
    look = {"fmt": "o", "color": BLUE, "markersize": 5, "capsize": 3} | style
    ax.errorbar(estimate, places, xerr=reach, **look)
    ax.axvline(0, color=GREY, linewidth=0.8, zorder=0)
    ax.set_yticks(places, list(names))
    ax.set(xlabel="average effect")
    return ax


def plot_slope_band(
    x: npt.ArrayLike,
    slopes: npt.ArrayLike,
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    *,
    name: str = "feature",
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Slopes along one feature against that feature, with their pointwise intervals.

    Parameters
    ----------
    x, slopes, low, high : arrays of shape (n,)
        Values of the feature, slopes there, and the ends of their intervals.
    name : name of the feature
    ax : matplotlib axes, optional
    **style
        Passed to ``ax.errorbar``.

    Returns
    -------
    matplotlib axes
    """
    ax = axes(ax)
    slopes = np.asarray(slopes, dtype=float)
    reach = np.abs(np.vstack([slopes - low, np.asarray(high) - slopes]))
    look = {"fmt": "o", "color": BLUE, "ecolor": "0.8", "markersize": 3} | style
    ax.errorbar(x, slopes, yerr=reach, **look)
    ax.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    ax.set(xlabel=name, ylabel=f"slope along {name}")
    return ax


@dataclass(kw_only=True, eq=False, repr=False)
class EffectsDisplay(Display):
    """Average effects with their intervals, one below the other.

    Attributes
    ----------
    effects : Effects
    """

    effects: Effects

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, ax: Axes | None = None, **options: Any
    ) -> EffectsDisplay:
        """Compute the effects of a fitted model.

        Parameters
        ----------
        estimator : fitted JacobianKernelRidge, or Pipeline that ends in one
        X : array of shape (n, p), optional
            Rows to average over; the training rows if not given.
        ax : matplotlib axes, optional
        **options
            Passed to ``estimator.effects``.

        Returns
        -------
        EffectsDisplay
        """
        estimator, X = last_step(estimator, X)
        return cls(effects=estimator.effects(X, **options)).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None, **style: Any) -> EffectsDisplay:
        """Draw the effects; contrasts are labelled."""
        columns = self.effects.dict()
        names = [
            " ".join(
                [row.term]
                + ([f"({row.contrast})"] if row.kind == "contrast" else [])
                + [f"[{getattr(row, part)}]" for part in ("by", "target") if part in columns]
            )
            for row in self.effects
        ]
        ends = columns["conf_low"], columns["conf_high"]
        return self._drawn(plot_effects(names, columns["estimate"], *ends, ax=ax, **style))


@dataclass(kw_only=True, eq=False, repr=False)
class SlopeBandDisplay(Display):
    """Slopes along one feature at the rows of X, with pointwise intervals.

    Attributes
    ----------
    x, slopes, std_error, low, high : ndarrays of shape (n,)
    name : str
    """

    x: Array
    slopes: Array
    std_error: Array
    low: Array
    high: Array
    name: str

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: npt.ArrayLike,
        *,
        feature: int | str = 0,
        level: float = 0.95,
        ax: Axes | None = None,
        **style: Any,
    ) -> SlopeBandDisplay:
        """Compute the slopes and their standard errors at the rows of X.

        Parameters
        ----------
        estimator : fitted JacobianKernelRidge, or Pipeline that ends in one
        X : array of shape (n, p)
        feature : index or name
        level : float between 0 and 1
            Coverage of the pointwise interval at each row.
        ax : matplotlib axes, optional
        **style
            Passed to the plot.

        Returns
        -------
        SlopeBandDisplay
        """
        estimator, X = last_step(estimator, X)
        check_one_target(estimator)
        level = check_number("level", level, above=0, below=1)
        rows, names = table_of(estimator, X)
        j = position_of(names, feature)
        slopes, errors = (part[:, j] for part in estimator.jacobian(X, return_std=True))
        (degrees,) = known_degrees(estimator._function().degrees(attrgetter("residual_degrees")))
        reach = student.ppf((1 + level) / 2, degrees) * errors
        return cls(
            x=rows[:, j],
            slopes=slopes,
            std_error=errors,
            low=slopes - reach,
            high=slopes + reach,
            name=names[j],
        ).plot(ax=ax, **style)

    def plot(self, *, ax: Axes | None = None, **style: Any) -> SlopeBandDisplay:
        """Draw the slopes and their intervals."""
        parts = self.x, self.slopes, self.low, self.high
        return self._drawn(plot_slope_band(*parts, name=self.name, ax=ax, **style))


@dataclass(kw_only=True, eq=False, repr=False)
class AverageCurveDisplay(Display):
    """Average prediction along one feature (partial dependence), with its interval.

    Attributes
    ----------
    curve : AverageCurve
    """

    curve: AverageCurve

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        feature: int | str = 0,
        ax: Axes | None = None,
        **options: Any,
    ) -> AverageCurveDisplay:
        """Average the predictions of a fitted model.

        Parameters
        ----------
        estimator : fitted JacobianKernelRidge, or Pipeline that ends in one
        X : array of shape (n, p), optional
            Rows to average over; the training rows if not given.
        feature : index or name
        ax : matplotlib axes, optional
        **options
            Passed to ``jacridge.effects.average_predictions``.

        Returns
        -------
        AverageCurveDisplay
        """
        estimator, X = last_step(estimator, X)
        check_one_target(estimator)
        curve = average_predictions(estimator, feature, X=X, **options)
        return cls(curve=curve).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None, **style: Any) -> AverageCurveDisplay:
        """Draw the curve and its interval."""
        at = self.curve
        style = {"label": "average prediction"} | style
        ends: dict[str, Any] = {"lower": at.conf_low, "upper": at.conf_high}
        ax = plot_curve(at.values, at.estimate, **ends, ax=ax, **style)
        ax.set(xlabel=at.variable, ylabel="average prediction")
        return self._drawn(ax)
