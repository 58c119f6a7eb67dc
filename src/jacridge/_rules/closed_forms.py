"""Bandwidths in closed form: numbers in, sigma out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar

from .._compute.arrays import Array
from ..theory import sigma_0

if TYPE_CHECKING:
    from .._geometry.space import Space

# Gaps below are those of equal rows.
SMALLEST = 1e-300


def jacobian_bandwidth(n: float, spacing: float, lam: float) -> float:
    """sigma_0 of Proposition 1; for lam above the threshold the value at the threshold."""
    return sigma_0(n, spacing, lam)


def silverman_bandwidth(n: float, p: int, variance: float) -> float:
    r"""Silverman's rule of thumb, :math:`(4 / (n (p + 2)))^{1/(p+4)}` standard deviations."""
    return float((4 / (n * (p + 2))) ** (1 / (p + 4)) * np.sqrt(variance))


def scale_bandwidth(p: int, variance: float) -> float:
    r"""scikit-learn's ``gamma="scale"``: :math:`\sigma = \sqrt{p \, \mathrm{Var}(X) / 2}`."""
    return float(np.sqrt(p * variance / 2))


def median_bandwidth(distances: Array, weights: Array | None = None) -> float:
    """Median distance between two rows; weights say how often each pair occurs."""
    if weights is None:
        return float(np.median(distances))
    order = np.argsort(distances)
    total = np.cumsum(weights[order])
    middle = [np.searchsorted(total, total[-1] / 2, side) for side in ("left", "right")]
    return float(distances[order][middle].mean())


def maxvar_bandwidth(gaps: Array, space: Space, weights: Array | None = None) -> float:
    """Bandwidth at which the kernel's entries off the diagonal vary most, as in R's KRLS 1.7.

    It is zero where all rows are equal. Weights say how often each pair occurs.
    """
    positive = space.distance.lengths(gaps[gaps > SMALLEST])
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
