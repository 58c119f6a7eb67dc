"""Displays of a learned metric and of the choice that led to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from .. import last_step
from .._compute.arrays import Array
from .._pipeline import regressor_of
from ._look import BLUE, GREY, ORANGE, Axes, Display, axes, legend


def plot_metric(
    metric: npt.ArrayLike, names: Sequence[str], *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Draw a metric, a symmetric matrix, as a heat map with the features along both sides.

    Parameters
    ----------
    metric : array of shape (p, p)
    names : names of the features
    ax : matplotlib axes, optional
    **style
        Passed to ``ax.imshow``.

    Returns
    -------
    matplotlib axes
    """
    ax, M = axes(ax), np.asarray(metric, dtype=float)
    most = float(np.abs(M).max()) or 1.0
    image = ax.imshow(M, **{"cmap": "RdBu_r", "vmin": -most, "vmax": most} | style)
    places = range(len(names))
    ax.set_xticks(places, names, rotation=60, ha="right", rotation_mode="anchor")
    ax.set_yticks(places, names)
    ax.figure.colorbar(image, ax=ax, label="share of a squared distance")
    return ax


def plot_choices(
    labels: Sequence[str],
    errors: npt.ArrayLike,
    deviations: npt.ArrayLike,
    *,
    chosen: int | None = None,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Draw the errors of candidates, best on top, with the standard error of their differences.

    Parameters
    ----------
    labels : names of the candidates
    errors, deviations : arrays of shape (n_candidates,)
    chosen : index of the candidate that was chosen, optional
    ax : matplotlib axes, optional
    **style
        Passed to ``ax.errorbar``.

    Returns
    -------
    matplotlib axes
    """
    ax, errors = axes(ax), np.asarray(errors, dtype=float)
    places = np.arange(len(errors))[::-1]
    ax.errorbar(errors, places, xerr=deviations, **{"fmt": "o", "color": BLUE} | style)
    if chosen is not None:
        ax.plot(errors[chosen], places[chosen], "o", color=ORANGE, markersize=9, label="chosen")
        ax.axvline(errors[chosen], color=GREY, linestyle=(0, (4, 3)), linewidth=1, zorder=0)
        legend(ax)
    ax.set_yticks(places, labels)
    ax.set(xlabel="squared error on held-out rows, in variances of the target")
    return ax


@dataclass(kw_only=True, eq=False, repr=False)
class MetricDisplay(Display):
    """The learned metric: the weight of each pair of features in a squared distance.

    Attributes
    ----------
    metric : ndarray of shape (p, p)
        T T' for features in units of their standard deviations, with a trace of one.
    names : list of str
    """

    metric: Array
    names: list[str]

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | None = None, **style: Any
    ) -> MetricDisplay:
        """Read the metric of a fitted estimator.

        Parameters
        ----------
        estimator : fitted JacobianKernelRidge with a linear metric, or Pipeline that ends in one
        ax : matplotlib axes, optional
        **style
            Passed to the plot.

        Returns
        -------
        MetricDisplay
        """
        estimator, _ = last_step(estimator)
        check_is_fitted(estimator)
        if not hasattr(estimator, "metric_"):
            raise ValueError(
                "`estimator` must have a linear metric to be drawn, got "
                f"metric={estimator.metric!r}."
            )
        estimator = regressor_of(estimator)
        T = np.asarray(estimator.metric_) * estimator._feature_std[:, None]
        M = T @ T.T
        names = estimator._function().names
        return cls(metric=M / np.trace(M), names=names).plot(ax=ax, **style)

    def plot(self, *, ax: Axes | None = None, **style: Any) -> MetricDisplay:
        """Draw the metric as a heat map."""
        return self._drawn(plot_metric(self.metric, self.names, ax=ax, **style))


@dataclass(kw_only=True, eq=False, repr=False)
class ChoiceDisplay(Display):
    """The candidates of the automatic choice and their errors on held-out rows.

    Attributes
    ----------
    choices : list of dict
        As in `choices_` of the estimator.
    """

    choices: list[dict[str, Any]]

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | None = None, **style: Any
    ) -> ChoiceDisplay:
        """Read the candidates of a fitted estimator.

        Parameters
        ----------
        estimator : fitted AutoKernelRidge, or Pipeline that ends in one
            Or any other estimator that chose a kernel or a metric.
        ax : matplotlib axes, optional
        **style
            Passed to the plot.

        Returns
        -------
        ChoiceDisplay
        """
        estimator, _ = last_step(estimator)
        check_is_fitted(estimator)
        if not hasattr(estimator, "choices_"):
            raise ValueError(
                "`estimator` must have chosen a kernel or a metric, got "
                f"kernel={estimator.kernel!r}, metric={estimator.metric!r}. Fit AutoKernelRidge()."
            )
        return cls(choices=estimator.choices_).plot(ax=ax, **style)

    def plot(self, *, ax: Axes | None = None, **style: Any) -> ChoiceDisplay:
        """Draw the errors, best on top."""
        rounds = {0: "", 1: ", 1 round"}
        labels = [
            f"{row['kernel']}, {row['kind']}"
            + rounds.get(row["rounds"], f", {row['rounds']} rounds")
            for row in self.choices
        ]
        errors = [row["error"] for row in self.choices]
        deviations = [row["deviation"] for row in self.choices]
        chosen = next((i for i, row in enumerate(self.choices) if row["chosen"]), None)
        return self._drawn(plot_choices(labels, errors, deviations, chosen=chosen, ax=ax, **style))
