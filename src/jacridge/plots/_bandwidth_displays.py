"""Displays of a choice: `from_estimator` computes and `plot` draws, as in scikit-learn.

Each stores its results as attributes, so that it can be drawn again without computing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import last_step
from .._checks import check_choice, check_number, check_rows, check_targets, check_weights
from .._compute.arrays import Array
from .._rows.source import array_source, mapped
from .._rules.criteria import CRITERIA
from .._rules.grids import approximate_norm, places_around, sigma_grid
from .._rules.registry import as_rule
from .._rules.streams import training_data
from .._rules.training import TrainingData
from .._solvers.exact import Centred, solve_exact
from .._solvers.function import FittedFunction
from ..effects._average import check_regressor
from ._bandwidth import plot_criteria, plot_criterion_map, plot_norms
from ._look import Axes, Display
from ._model_displays import check_one_target

# Labels of criteria: for their values, and for a map, which uses the units of y if possible.
CRITERION_LABELS = {
    "loo": ("mean squared leave-one-out error", "root mean squared leave-one-out error"),
    "gcv": ("generalised cross-validation", "root of generalised cross-validation"),
    "mml": ("negative log marginal likelihood", "negative log marginal likelihood"),
}


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
        sample_weight: npt.ArrayLike | None = None,
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
        X, y, sample_weight : training data
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
        check_regressor(estimator)
        function, lam = estimator._function(), float(estimator._function().lams[0])
        data = _training_data(function, X, y, sample_weight)
        data = _sample(data, max_samples, random_state)
        sigmas = _sigmas(function, data, bandwidths, 25)
        spacing = as_rule(estimator._notes.get("rule") or function.sigma).spacing(data)
        return cls(
            bandwidths=sigmas,
            approximate=approximate_norm(data.space.kernel, sigmas, data.n, spacing, lam),
            true=np.array([_largest_slope(function, data, sigma) for sigma in sigmas]),
            chosen=function.sigma,
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
        sample_weight: npt.ArrayLike | None = None,
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
        X, y, sample_weight : training data, one target
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
        check_one_target(estimator)
        check_choice("criterion", criterion, CRITERION_LABELS)
        function = estimator._function()
        data = _training_data(function, X, y, sample_weight)
        data = _sample(data, max_samples, random_state)
        sigmas = _sigmas(function, data, bandwidths, 40)
        lams = function.lams if alphas is None else np.sort(np.asarray(alphas, dtype=float))
        grid = sigmas, lams
        surface = CRITERIA[criterion].surface(data.spectrum, np.ones(1), *grid, each=data.each)
        return cls(
            bandwidths=sigmas,
            alphas=lams,
            values=surface.values[..., 0].T,
            criterion=criterion,
            chosen=(function.sigma, float(function.lams[0])),
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


def _training_data(function: FittedFunction, X: Any, y: Any, sample_weight: Any) -> TrainingData:
    """Training rows as a fit sees them: merged, centred, and mapped by the metric."""
    distance, X = function.space.distance, check_rows(X)
    distance.check(X)
    w = None if sample_weight is None else check_weights(sample_weight, X)
    source = mapped(array_source(X, check_targets(y, X), w, distance), function.mapping)
    return training_data(source, function.space, kind=function.kind)


def _sample(data: TrainingData, size: int, random_state: int | None) -> TrainingData:
    """At most `size` of the rows."""
    size = int(check_number("max_samples", size, at_least=3))
    return replace(data, random_state=random_state).sample(size)


def _sigmas(function: FittedFunction, data: TrainingData, given: Any, points: int) -> Array:
    """The bandwidths given, or a grid of them."""
    if given is not None:
        return np.sort(np.asarray(given, dtype=float))
    return sigma_grid(data.l_max, data.even_spacing, points, function.sigma)


def _largest_slope(function: FittedFunction, data: TrainingData, sigma: float) -> float:
    """Largest norm of the gradient of a fit with this bandwidth, at and around the rows."""
    # A sample is small enough for the exact solver, even if the model needed another one.
    rows = Centred(data.targets, data.w, np.zeros(data.targets.shape[1]))
    fit = solve_exact(data.pairs, sigma, rows, function.lams, function.kind)
    distance = data.space.distance
    places = places_around(data.X, sigma, distance)
    J = data.space.slopes(places, data.X, fit.dual_coef, sigma)
    J /= distance.unit_steps(places)[:, None]
    return float(np.linalg.norm(J.reshape(len(J), -1), axis=1).max())
