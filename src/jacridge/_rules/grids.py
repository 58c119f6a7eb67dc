"""The criteria over a grid of (sigma, lambda), for curves, maps and the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import theory
from .._compute.arrays import Array, Indices
from .._solvers.spectrum import Spectrum, spectrum
from .criteria import CRITERIA

if TYPE_CHECKING:
    from .._geometry.distances import Distance
    from .._geometry.kernels import Kernel
    from .._geometry.space import Space


def _spectrum(gaps: Array, y: Array, sigma: float, space: Space) -> Spectrum:
    return spectrum(space.kernel.of(gaps.copy(), sigma), y[:, None], np.ones(len(y)))


def _criteria(S: Spectrum, lams: Array) -> dict[str, Array]:
    """Values at one bandwidth, of shape (lambdas,)."""
    with np.errstate(divide="ignore"):  # a constant y has no marginal likelihood
        values = {each.name: each.of_spectrum(S, lams)[:, 0] for each in CRITERIA.values()}
    return {**values, "dof": S.degrees_of_freedom(lams)}


def _side_by_side(columns: list[dict[str, Array]]) -> dict[str, Array]:
    """Stack the values of each bandwidth into arrays over all bandwidths."""
    return {name: np.stack([column[name] for column in columns], axis=1) for name in columns[0]}


def fit_grid(
    X: Array, y: Array, sigmas: Array, lams: Array, space: Space, *, shown: Indices
) -> dict[str, Array]:
    """Criteria of every pair, and its fit at the rows `shown`: arrays (lambdas, sigmas, ...).

    `slopes` are the largest norms of the gradient at and around the rows shown. `loo_predictions`,
    of shape (lambdas, sigmas, rows shown), are leave-one-out. y of shape (n,) is centred.
    """
    gaps = space.distance.gaps(X, X)
    columns = []
    for sigma in sigmas:
        S = _spectrum(gaps, y, sigma, space)
        dual_coef, residuals = S.dual_coef(lams)[..., 0], S.loo_residuals(lams)[..., 0]
        J = space.slopes(places_around(X[shown], sigma, space.distance), X, dual_coef, sigma)
        fit = {"slopes": np.linalg.norm(J, axis=2).max(axis=0)}
        fit["loo_predictions"] = (y[:, None] - residuals)[shown].T
        columns.append(_criteria(S, lams) | fit)
    return _side_by_side(columns)


def places_around(X: Array, sigma: float, distance: Distance) -> Array:
    """The rows, and places around them where a fit may be steep.

    The places are midpoints of consecutive rows, and points one sigma away on either side: an
    isolated kernel is flat at its own row and steepest at that distance.
    """
    steps = np.random.default_rng(0).standard_normal(X.shape)
    steps *= sigma / np.linalg.norm(steps, axis=1)[:, None] / distance.unit_steps(X)
    places = np.vstack([X, (X[1:] + X[:-1]) / 2, X + steps, X - steps])
    return np.clip(places, X.min(axis=0), X.max(axis=0))  # outside the fit is a guess


def approximate_norm(kernel: Kernel, sigmas: Array, n: float, spacing: float, lam: float) -> Array:
    """Jacobian norm for the rule `jacobian`: the paper's, or the norm of a one-dimensional grid."""
    if kernel.has_closed_form:
        return theory.approximate_jacobian_norm(sigmas, n, spacing, lam)
    return theory.lattice_jacobian_norm(sigmas, kernel.name, spacing, 1, lam)


def sigma_grid(l_max: float, spacing: float, points: int, *include: float) -> Array:
    """Bandwidths from half the spacing to l_max on a log scale, including the given ones."""
    low = min([spacing / 2, l_max / 50, *(sigma / 3 for sigma in include)])
    high = max([l_max, *(3 * sigma for sigma in include)])
    return np.unique(np.concatenate([np.geomspace(low, high, points), include]))
