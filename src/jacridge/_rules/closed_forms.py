"""Bandwidths in closed form: training data in, sigma out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar

from .. import theory
from .._compute.warnings import warn

if TYPE_CHECKING:
    from .training import TrainingData

# Smaller gaps are between equal rows.
SMALLEST_GAP = 1e-300


def jacobian(data: TrainingData) -> float:
    """The paper's rule for the Gaussian kernel; for others the rule of a one-dimensional grid."""
    return _jacobian_at(data, data.even_spacing)


def jacobian_median(data: TrainingData) -> float:
    """The Jacobian rule at the median nearest-neighbour distance; zero if that is zero."""
    if data.share_equal > 0.5:
        warn(
            f"{data.share_equal:.0%} of the rows repeat an earlier row; the median neighbour "
            "distance is computed from distinct rows."
        )
    spacing = data.neighbour_spacing
    return _jacobian_at(data, spacing) if spacing else 0.0


def _jacobian_at(data: TrainingData, spacing: float) -> float:
    kernel = data.space.kernel
    if kernel.has_closed_form:
        return theory.sigma_0(data.n, spacing, data.lam_of_rows)
    return theory.lattice_sigma_0(kernel.name, spacing, 1, data.lam_of_rows)


def jacobian_lattice(data: TrainingData) -> float:
    """The Jacobian rule of a grid in p dimensions."""
    name, lam = data.space.kernel.name, data.lam_of_rows
    return theory.lattice_sigma_0(name, data.even_spacing, data.p, lam)


def silverman(data: TrainingData) -> float:
    r"""Silverman's rule of thumb, :math:`(4 / (n (p + 2)))^{1/(p+4)}` standard deviations."""
    n, p = data.n, data.p
    return float((4 / (n * (p + 2))) ** (1 / (p + 4)) * np.sqrt(data.variance))


def scale(data: TrainingData) -> float:
    r"""scikit-learn's ``gamma="scale"``: :math:`\sigma = \sqrt{p \, \mathrm{Var}(X) / 2}`."""
    return float(np.sqrt(data.p * data.variance / 2))


def median(data: TrainingData) -> float:
    """Median distance between two rows."""
    distances, weights = data.space.distance.lengths(data.pair_gaps), data.pair_weights
    if weights is None:
        return float(np.median(distances))
    order = np.argsort(distances)
    total = np.cumsum(weights[order])
    middle = [np.searchsorted(total, total[-1] / 2, side) for side in ("left", "right")]
    return float(distances[order][middle].mean())


def maxvar(data: TrainingData) -> float:
    """Bandwidth at which the kernel's entries off the diagonal vary most, as in R's KRLS 1.7.

    Zero if all rows are equal.
    """
    gaps, space, weights = data.pair_gaps, data.space, data.pair_weights
    positive = space.distance.lengths(gaps[gaps > SMALLEST_GAP])
    if not positive.size:
        return 0.0
    low, high = np.log(positive.min()) - 1, np.log(positive.max()) + 1

    def variance(log_sigma: float) -> float:
        k = space.kernel.of(gaps.copy(), float(np.exp(log_sigma)))
        return float(k.var() if weights is None else np.cov(k, aweights=weights, ddof=0))

    grid = np.linspace(low, high, 25)
    best = int(np.argmax([variance(s) for s in grid]))
    around = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(lambda s: -variance(s), bounds=around, method="bounded")
    return float(np.exp(found.x))
