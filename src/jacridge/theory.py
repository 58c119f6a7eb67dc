r"""The paper's Definition 1 and Propositions 1 to 4, and the rule for other kernels.

``spacing`` stands for :math:`l_{\max} / ((n-1)^{1/p} - 1)`, the distance of neighbours among n
points spread evenly in a cube of side :math:`l_{\max}` (:func:`even_spacing`), or, in the median
rule, for the median distance of nearest neighbours.

Functions named ``lattice_...`` apply the paper's approach to any kernel, with the smallest
eigenvalue of K on a grid of that spacing in place of the paper's estimate. The number of points
does not enter: the paper's :math:`j_b` has a factor n, the eigenvalue on a grid does not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigvalsh
from scipy.special import lambertw

from ._checks import check_choice, check_number
from ._compute.arrays import Array
from ._geometry.kernels import KERNELS
from ._geometry.lattice_norms import (
    lattice_eigenvalue,
    lattice_eigenvalue_bound,
    lattice_jacobian_norm,
    lattice_lambda_threshold,
    lattice_regime,
    lattice_sigma_0,
    lattice_sigma_minus_1,
    leading_sigma_0,
)

__all__ = [
    "approximate_jacobian_norm",
    "even_spacing",
    "gradient_bound",
    "inverse_norm",
    "j_a",
    "j_b",
    "lambda_threshold",
    "lattice_eigenvalue",
    "lattice_eigenvalue_bound",
    "lattice_jacobian_norm",
    "lattice_lambda_threshold",
    "lattice_regime",
    "lattice_sigma_0",
    "lattice_sigma_minus_1",
    "leading_sigma_0",
    "regime",
    "sigma_0",
    "sigma_minus_1",
    "slope_bound",
    "true_jacobian_norm",
]


def even_spacing(n: float, p: int, l_max: float) -> float:
    r"""Distance of neighbours among n points spread evenly in a cube of side l_max.

    .. math:: \frac{l_{\max}}{(n-1)^{1/p} - 1}

    Parameters
    ----------
    n, p : number of points and of dimensions; n > 2
    l_max : largest distance between two points

    Returns
    -------
    float

    Examples
    --------
    >>> round(even_spacing(n=10, p=2, l_max=1.0), 6)
    0.5
    """
    check_number("n", n, above=2)
    # expm1: at large p the power is close to 1, and subtracting 1 would cancel.
    return float(l_max / math.expm1(math.log(n - 1) / p))


def lambda_threshold(n: float) -> float:
    r"""Largest ridge penalty for which the approximate norm has a local minimum.

    .. math:: 2 n e^{-3/2}

    Examples
    --------
    >>> round(lambda_threshold(100), 3)
    44.626
    """
    return float(2 * n * np.exp(-1.5))


def regime(n: float, lam: float) -> str:
    """Which case of Proposition 1 holds for the ridge penalty lam.

    Returns
    -------
    str
        ``"global minimum"`` for lam = 0, ``"local minimum"`` up to :func:`lambda_threshold`,
        ``"no minimum"`` above.

    Examples
    --------
    >>> regime(n=100, lam=0), regime(n=100, lam=1e-3), regime(n=100, lam=50)
    ('global minimum', 'local minimum', 'no minimum')
    """
    check_number("lam", lam, at_least=0)
    if lam == 0:
        return "global minimum"
    return "local minimum" if lam <= lambda_threshold(n) else "no minimum"


def j_a(sigma: npt.ArrayLike) -> Array:
    r"""Factor of the approximate norm that falls with the bandwidth: :math:`1 / \sigma`.

    Examples
    --------
    >>> float(j_a(0.5))
    2.0
    """
    return np.asarray(1.0 / np.asarray(sigma, dtype=np.float64))


def j_b(sigma: npt.ArrayLike, n: float, spacing: float, lam: float) -> Array:
    r"""Factor that grows with the bandwidth, a lower bound on the norm of the inverse.

    Proposition 4: :math:`\|(K + \lambda I)^{-1}\|_2 \ge j_b(\sigma)` with

    .. math:: j_b(\sigma) = \frac{1}{n e^{-(\sigma/d)^2} + \lambda},
              \qquad d = \tfrac{2}{\pi} \, \text{spacing}.

    The paper states it for all bandwidths. It holds up to about three times :func:`sigma_0`. Far
    beyond, it fails, because the smallest eigenvalue of K falls like a power of the bandwidth and
    the bound assumes a faster fall: three points 0, 1/2 and 1 with a bandwidth of 3 are enough.

    Parameters
    ----------
    sigma : bandwidths, of any shape
    n, spacing, lam : number of points, their spacing, ridge penalty

    Returns
    -------
    ndarray of the shape of sigma

    Examples
    --------
    >>> float(j_b(0.0, n=4, spacing=1.0, lam=1.0))
    0.2
    """
    d = 2 / np.pi * spacing
    with np.errstate(divide="ignore", over="ignore"):  # lam = 0, a large sigma: it is infinite
        return np.asarray(1.0 / (n * np.exp(-((np.asarray(sigma) / d) ** 2)) + lam))


def approximate_jacobian_norm(sigma: npt.ArrayLike, n: float, spacing: float, lam: float) -> Array:
    r"""Approximate Jacobian norm of Definition 1, up to its constant.

    .. math:: J^a_2(\sigma) = j_a(\sigma) \, j_b(\sigma)

    It is not a bound: :math:`j_a` bounds one factor of the true norm from above, :math:`j_b` the
    other from below.

    Parameters
    ----------
    sigma : bandwidths, of any shape
    n, spacing, lam : number of points, their spacing, ridge penalty

    Returns
    -------
    ndarray of the shape of sigma

    Examples
    --------
    >>> float(approximate_jacobian_norm(1.0, n=1, spacing=1e9, lam=1.0))
    0.5
    """
    return np.asarray(j_a(sigma) * j_b(sigma, n, spacing, lam))


def sigma_0(n: float, spacing: float, lam: float) -> float:
    r"""Bandwidth at the local minimum of the approximate Jacobian norm.

    .. math:: \sigma_0 = d \sqrt{\tfrac12 - W_0(z)}, \qquad z = -\frac{\lambda \sqrt e}{2n},
              \qquad d = \tfrac{2}{\pi} \, \text{spacing}.

    For lam above :func:`lambda_threshold` the norm only decreases; the value at the threshold,
    where minimum and maximum merge, is returned.

    Parameters
    ----------
    n, spacing, lam : number of points, their spacing, ridge penalty

    Returns
    -------
    float

    Examples
    --------
    >>> round(sigma_0(n=100, spacing=0.1, lam=0), 6)
    0.045016
    """
    return _stationary_point(n, spacing, lam, branch=0)


def sigma_minus_1(n: float, spacing: float, lam: float) -> float:
    r"""Bandwidth at the local maximum of the approximate Jacobian norm.

    The formula of :func:`sigma_0` with the branch :math:`W_{-1}`; infinite for lam = 0.

    Parameters
    ----------
    n, spacing, lam : number of points, their spacing, ridge penalty

    Returns
    -------
    float

    Examples
    --------
    >>> sigma_minus_1(n=100, spacing=0.1, lam=0)
    inf
    """
    return _stationary_point(n, spacing, lam, branch=-1)


def _stationary_point(n: float, spacing: float, lam: float, branch: int) -> float:
    """Equation (6) of the paper, with one spacing for both rules."""
    d = 2 / np.pi * spacing
    w = _lambert_w(-lam * np.sqrt(np.e) / (2 * n), branch)
    return float(d * np.sqrt(0.5 - w))


def _lambert_w(z: float, branch: int) -> float:
    """W at z < 0; for z <= -1/e, its value -1 at the branch point."""
    rest = max(1 + np.e * z, 0.0)
    if rest > 1e-6:
        return float(lambertw(z, branch).real)
    # scipy's lambertw is NaN at the branch point, and its W_-1 has 5 digits next to it.
    q = np.sqrt(2 * rest) * (1 if branch == 0 else -1)
    return float(-1 + q - q**2 / 3 + 11 / 72 * q**3 - 43 / 540 * q**4)


def slope_bound(sigma: npt.ArrayLike, kernel: str = "gaussian") -> Array:
    r"""Largest slope of one kernel.

    Proposition 3: no Gaussian kernel is steeper than :math:`1 / (\sigma \sqrt e)`. For the others
    the constant is :math:`\sqrt 3 / e` (``matern32``), :math:`\tfrac{\sqrt 5}{3} \varphi^3
    e^{-\varphi}` = 0.626 with :math:`\varphi` the golden ratio (``matern52``), and 1
    (``exponential`` and, along one feature, ``laplacian``).

    The norm of the gradient is the Euclidean one. (The paper writes a 1-norm, but takes it in
    spherical coordinates, where only the radial part is not zero.)

    Parameters
    ----------
    sigma : bandwidths, of any shape
    kernel : {"gaussian", "matern52", "matern32", "exponential", "laplacian"}

    Returns
    -------
    ndarray of the shape of sigma

    Examples
    --------
    >>> round(float(slope_bound(1.0)), 6)
    0.606531
    """
    check_choice("kernel", kernel, KERNELS)
    return np.asarray(j_a(sigma) * KERNELS[kernel].largest_slope)


def inverse_norm(K: Array, lam: float) -> float:
    r"""Spectral norm :math:`\|(K + \lambda I)^{-1}\|_2`, by the smallest eigenvalue of K.

    Examples
    --------
    >>> inverse_norm(np.eye(3), lam=1.0)
    0.5
    """
    smallest = eigvalsh(K, subset_by_index=[0, 0])[0]
    return float(1.0 / (max(smallest, 0.0) + lam)) if max(smallest, 0.0) + lam else np.inf


def gradient_bound(slope: float, inverse_norm: float, y: npt.ArrayLike) -> float:
    r"""Proposition 2: bound on the norm of the gradient of the prediction.

    .. math:: \|\partial \hat f(x) / \partial x\|_2 \le \max_i \|\partial k(x, x_i) / \partial x\|
              \; \|(K + \lambda I)^{-1}\|_2 \; \sqrt n \, \|y\|_2

    Parameters
    ----------
    slope : largest norm of the gradient of a kernel, for example :func:`slope_bound`
    inverse_norm : from :func:`inverse_norm`
    y : targets, of shape (n,), centred if the model has an intercept

    Returns
    -------
    float

    Examples
    --------
    >>> gradient_bound(slope=0.5, inverse_norm=2.0, y=[3.0, 4.0, 0.0, 0.0])
    10.0
    """
    y = np.asarray(y, dtype=np.float64)
    return float(slope * inverse_norm * np.sqrt(len(y)) * np.linalg.norm(y))


def true_jacobian_norm(estimator: Any, X: npt.ArrayLike) -> Array:
    r"""Norm of the gradient of a fitted model at each row of X, by its analytic gradient.

    :func:`approximate_jacobian_norm` approximates its maximum over points that cover the data.
    With several targets it is the Frobenius norm of the Jacobian.

    Parameters
    ----------
    estimator : fitted, with a method ``jacobian``
    X : points, of shape (n, p)

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from jacridge import JacobianKernelRidge
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> est = JacobianKernelRidge(bandwidth=0.3).fit(X, X[:, 0] ** 2)
    >>> round(float(true_jacobian_norm(est, [[0.5]])[0]), 1)
    1.0
    """
    J = np.asarray(estimator.jacobian(X))
    return np.asarray(np.sqrt((J.reshape(len(J), -1) ** 2).sum(axis=1)))
