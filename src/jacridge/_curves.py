"""The criteria over a grid of (sigma, lambda): the numbers behind curves, maps and the report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._checks import Array
from ._distances import squared_distances
from ._kernels import gaussian_kernel
from ._spectrum import spectrum


@dataclass(frozen=True)
class CriterionGrid:
    """Criteria of one target at every pair: arrays of shape (lambdas, sigmas)."""

    sigmas: Array
    lams: Array
    loo: Array
    gcv: Array
    mml: Array
    dof: Array


def criterion_grid(
    X: Array, y: Array, sigmas: Array, lams: Array, metric: str = "euclidean"
) -> CriterionGrid:
    """Leave-one-out, GCV, MML and degrees of freedom; y of shape (n,), centred.

    One eigendecomposition a bandwidth serves every penalty.
    """
    D2 = squared_distances(X, X, metric)
    columns = []
    for sigma in sigmas:
        S = spectrum(gaussian_kernel(D2, sigma), y[:, None])
        values = [criterion(lams)[:, 0] for criterion in (S.loo, S.gcv, S.mml)]
        columns.append([*values, S.degrees_of_freedom(lams)])
    loo, gcv, mml, dof = np.transpose(columns, (1, 2, 0))
    return CriterionGrid(sigmas, lams, loo, gcv, mml, dof)


def sigma_grid(l_max: float, spacing: float, points: int, *include: float) -> Array:
    """Bandwidths from half the spacing to twice l_max on a log scale, with the given ones in it."""
    inside = [sigma for sigma in include if np.isfinite(sigma)]
    low = min([spacing / 2, l_max / 50, *(sigma / 3 for sigma in inside)])
    high = max([l_max, *(3 * sigma for sigma in inside)])
    return np.unique(np.concatenate([np.geomspace(low, high, points), inside]))


def slope_importances(J: Array, X: Array) -> Array:
    """Root mean square of each feature's slope, times its standard deviation.

    How far, typically, the prediction moves when the feature moves by one standard deviation;
    J of shape (n, p), or (n, k, p) for k targets.
    """
    squares = np.square(J).reshape(-1, X.shape[1])
    return np.asarray(np.sqrt(squares.mean(axis=0)) * X.std(axis=0))
