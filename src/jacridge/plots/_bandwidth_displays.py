"""Displays of a choice: `from_estimator` computes and `plot` draws, as in scikit-learn.

Each stores its results as attributes, so that it can be drawn again without computing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from .. import Choice, last_step, select_bandwidth, theory
from .._checks import check_choice, check_number, check_rows, check_targets
from .._compute.arrays import Array
from .._geometry.space import LINEAR, Space
from .._rules.grids import approximate_norm, criterion_grid, places_around, sigma_grid
from ._bandwidth import plot_criteria, plot_criterion_map, plot_norms
from ._look import Axes, Display

# Labels of criteria: for their values, and for a map, which uses the units of y if possible.
CRITERION_LABELS = {
    "loo": ("mean squared leave-one-out error", "root mean squared leave-one-out error"),
    "gcv": ("generalised cross-validation", "root of generalised cross-validation"),
    "mml": ("negative log marginal likelihood", "negative log marginal likelihood"),
}

# A rule that works with every kernel and metric, used when only the geometry is needed.
GEOMETRY = "scale"


@dataclass(kw_only=True, eq=False, repr=False)
class JacobianNormDisplay(Display):
    """Approximate and true Jacobian norm over the bandwidth, with the model's bandwidth marked.

    Attributes
    ----------
    bandwidths, approximate, true : ndarrays of shape (k,)
    chosen : float
    """

    bandwidths: Array
    approximate: Array
    true: Array
    chosen: float

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        bandwidths: npt.ArrayLike | None = None,
        max_samples: int = 500,
        random_state: int | None = 0,
        ax: Axes | None = None,
        **style: Any,
    ) -> JacobianNormDisplay:
        """Refit the estimator for each bandwidth; compute the largest norm at and around the rows.

        Parameters
        ----------
        estimator : fitted JacobianKernelRidge, or Pipeline that ends in one
        X, y : training data
        bandwidths : array of shape (k,), optional
        max_samples : int
            With more rows than this, a random sample is used.
        random_state : int, optional
        ax : matplotlib axes, optional
        **style
            Passed to the plot.

        Returns
        -------
        JacobianNormDisplay
        """
        estimator, X = last_step(estimator, X)
        space = _space(estimator)
        X, y = _sample(estimator, X, y, max_samples, random_state)
        lam = _penalty(estimator)
        rule = "jacobian_median" if estimator.bandwidth == "jacobian_median" else GEOMETRY
        sigmas, choice = _grid(estimator, X, bandwidths, 25, rule)
        true = [
            theory.true_jacobian_norm(
                _refitted(estimator, X, y, sigma, lam), places_around(X, sigma)
            ).max()
            for sigma in sigmas
        ]
        return cls(
            bandwidths=sigmas,
            approximate=approximate_norm(space.kernel, sigmas, choice.n, choice.spacing, lam),
            true=np.array(true),
            chosen=estimator.bandwidth_,
        ).plot(ax=ax, **style)

    def plot(self, *, ax: Axes | None = None, **style: Any) -> JacobianNormDisplay:
        """Draw both norms."""
        curves = self.bandwidths, self.approximate, self.true
        return self._drawn(plot_norms(*curves, chosen=self.chosen, ax=ax, **style))


@dataclass(kw_only=True, eq=False, repr=False)
class CriterionDisplay(Display):
    """A criterion over the bandwidth, or over the bandwidth and the ridge penalty.

    Attributes
    ----------
    bandwidths : ndarray of shape (k,)
    alphas : ndarray of shape (l,)
    values : ndarray of shape (l, k)
    criterion : str
    chosen : (bandwidth, alpha)
    """

    bandwidths: Array
    alphas: Array
    values: Array
    criterion: str
    chosen: tuple[float, float]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        criterion: str = "loo",
        bandwidths: npt.ArrayLike | None = None,
        alphas: npt.ArrayLike | None = None,
        max_samples: int = 1000,
        random_state: int | None = 0,
        ax: Axes | None = None,
        **style: Any,
    ) -> CriterionDisplay:
        """Compute the criterion on a grid; one eigendecomposition for each bandwidth.

        Parameters
        ----------
        estimator : fitted JacobianKernelRidge, or Pipeline that ends in one
        X, y : training data, one target
        criterion : {"loo", "gcv", "mml"}
        bandwidths : array of shape (k,), optional
        alphas : array of shape (l,), optional
            Ridge penalties of the map; by default a curve for the estimator's own penalty.
        max_samples : int
            With more rows than this, a random sample is used.
        random_state : int, optional
        ax : matplotlib axes, optional
        **style
            Passed to the plot.

        Returns
        -------
        CriterionDisplay
        """
        estimator, X = last_step(estimator, X)
        space = _space(estimator)
        check_choice("criterion", criterion, CRITERION_LABELS)
        X, y = _sample(estimator, X, y, max_samples, random_state)
        lam = _penalty(estimator)
        sigmas, _ = _grid(estimator, X, bandwidths, 40)
        lams = np.array([lam]) if alphas is None else np.sort(np.asarray(alphas, dtype=float))
        grid = criterion_grid(X, y[:, 0] - y[:, 0].mean(), sigmas, lams, space)
        return cls(
            bandwidths=sigmas,
            alphas=lams,
            values=grid[criterion],
            criterion=criterion,
            chosen=(estimator.bandwidth_, lam),
        ).plot(ax=ax, **style)

    def plot(self, *, ax: Axes | None = None, **style: Any) -> CriterionDisplay:
        """Draw the map, or the curve if there is one penalty only."""
        plain, rooted = CRITERION_LABELS[self.criterion]
        if len(self.alphas) == 1:
            curves = {plain: self.values[0]}
            ax = plot_criteria(self.bandwidths, curves, chosen=self.chosen[0], ax=ax, **style)
            return self._drawn(ax)
        best = np.sqrt(self.values) if self.criterion != "mml" else self.values
        look = {"chosen": self.chosen, "label": rooted} | style
        return self._drawn(plot_criterion_map(self.bandwidths, self.alphas, best, ax=ax, **look))


def _space(estimator: Any) -> Space:
    """Kernel and distance of a fit, even if `set_params` was called since."""
    return estimator._function().space


def _kernel_and_metric(estimator: Any) -> dict[str, Any]:
    """Options for a fit to rows that have been mapped by the metric of the estimator."""
    metric = estimator._notes["metric"]
    return {"kernel": estimator.kernel_, "metric": "euclidean" if metric in LINEAR else metric}


def _sample(
    estimator: Any, X: npt.ArrayLike, y: npt.ArrayLike, size: int, random_state: int | None
) -> tuple[Array, Array]:
    """At most `size` rows, mapped by the metric; for given distances, also only their columns."""
    distance, X = _space(estimator).distance, check_rows(X)
    distance.check(X)
    y = check_targets(y, X)
    if len(X) > check_number("max_samples", size, at_least=3):
        drawn = np.random.default_rng(random_state).choice(len(X), int(size), replace=False)
        kept = np.sort(drawn)
        X, y = distance.some(X, kept), y[kept]
    mapping = estimator._function().mapping
    return X if mapping is None else mapping(X), y


def _penalty(estimator: Any) -> float:
    """The penalty; with several targets, the penalty of the first."""
    return float(np.ravel(estimator.alpha_)[0])


def _grid(
    estimator: Any, X: Array, given: Any, points: int, rule: str = GEOMETRY
) -> tuple[Array, Choice]:
    """Bandwidths to try, and number, spacing and largest distance of the mapped rows."""
    options = _kernel_and_metric(estimator)
    found = select_bandwidth(X, rule=rule, alpha=_penalty(estimator), **options)
    if given is not None:
        return np.sort(np.asarray(given, dtype=float)), found
    return sigma_grid(found.l_max, found.spacing, points, estimator.bandwidth_), found


def _refitted(estimator: Any, X: Array, y: Array, sigma: float, lam: float) -> Any:
    # A sample is small enough for the exact solver, even if the model needed another one.
    options: dict[str, Any] = {"solver": "exact", "n_landmarks": None, "landmarks": "kmeans"}
    options |= _kernel_and_metric(estimator)
    copy = clone(estimator).set_params(bandwidth=float(sigma), alpha=lam, **options)
    return copy.fit(X, y[:, 0] if y.shape[1] == 1 else y)
