r"""Smallest eigenvalue of a kernel matrix on an infinite grid, for the Jacobian rule.

On a grid of spacing 1 in p dimensions the eigenvalues of K are the values of its Fourier symbol,
:math:`\sum_j k(j) e^{i \theta j}`. For the kernels of this package the smallest value is at the
corner :math:`\theta = (\pi, \dots, \pi)`, and every finite part of the grid lies above it. All
functions take ``scale``, the bandwidth over the spacing, of any shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

if TYPE_CHECKING:
    from .._compute.arrays import Array


class LatticeEigenvalue(NamedTuple):
    """Smallest eigenvalue on a grid, as a function of the bandwidth.

    Attributes
    ----------
    log : its logarithm
    fall : minus the derivative of ``log`` with respect to log(scale)
    bend : derivative of ``fall`` with respect to log(scale)
    """

    log: Array
    fall: Array
    bend: Array


def gaussian_lattice(scale: Array, p: int) -> LatticeEigenvalue:
    r"""Eigenvalue of the Gaussian kernel, :math:`\vartheta(s)^p` with s the scale.

    .. math:: \vartheta(s) = 1 + 2 \sum_{j \ge 1} (-1)^j e^{-j^2 / (2 s^2)}
              = 2 \sqrt{2\pi} \, s \sum_{k \ge 0} e^{-((2k+1) \pi s)^2 / 2}

    The first sum is taken for small scales, the second one for large scales.
    """
    k = np.arange(6.0)
    signs = np.array([1, -2, 2, -2, 2, -2])
    near = _powers(signs, k**2, 0.5 / np.clip(scale, 1e-150, 0.4) ** 2)
    # ((2k + 1)^2 - 1) / 2 = 2 k (k + 1): the first term is factored out, as it may underflow.
    u = (np.pi * np.maximum(scale, 0.4)) ** 2
    far = _powers(np.ones(6), 2 * k * (k + 1), u)
    first = np.log(2 * np.sqrt(2 / np.pi)) + 0.5 * np.log(u) - 0.5 * u
    parts = (
        (near.log, first + far.log),
        (-near.fall, u - 1 + far.fall),
        (near.bend, 2 * u + far.bend),
    )
    return LatticeEigenvalue(*(p * np.where(scale < 0.4, a, b) for a, b in parts))


def _powers(weights: Array, powers: Array, v: Array) -> LatticeEigenvalue:
    """Sum of weights * exp(-powers * v) with its derivatives, where v is proportional to s^2."""
    v = np.minimum(v, 1000.0)  # beyond, all terms but the first are zero, and v^2 could overflow
    terms = weights * np.exp(-powers * v[..., None])
    total = terms.sum(axis=-1)
    mean = (terms * powers).sum(axis=-1) / total
    variance = (terms * powers**2).sum(axis=-1) / total - mean**2
    return LatticeEigenvalue(np.log(total), 2 * v * mean, 4 * v * mean - 4 * v**2 * variance)


def matern_lattice(scale: Array, p: int, nu: float) -> LatticeEigenvalue:
    r"""Eigenvalue of the Matérn kernel, a mean over Gaussian kernels.

    A Matérn kernel of bandwidth s is the mean of Gaussian kernels of bandwidth
    :math:`s \sqrt w`, w being Gamma distributed with shape and rate :math:`\nu`. All of them have
    their smallest eigenvalue at the same corner, so that

    .. math:: \lambda(s) = \int_0^\infty \vartheta(s \sqrt w)^p
              \, \frac{\nu^\nu}{\Gamma(\nu)} \, w^{\nu - 1} e^{-\nu w} \, dw .

    With weights proportional to the integrand, its fall is :math:`2 \nu (1 - \bar w)`, which
    never exceeds :math:`2 \nu`. The integral is a sum over even steps of log(w), which converges
    exponentially fast and, unlike the closed forms for p = 1, does not cancel for large scales.
    """
    log_s = np.log(scale)[..., None]
    # Around this value the weights are largest if the scale is large.
    centre = np.log((nu + p / 2) / (nu + p / 2 * (np.pi * np.exp(log_s)) ** 2))
    step = 1 / (4 + np.sqrt(p))
    x = centre + np.arange(-50 / nu, 5, step)
    w = np.exp(x)
    log_density = nu * np.log(nu) - gammaln(nu) + nu * (x - w)
    terms = gaussian_lattice(np.exp(log_s + x / 2), p).log + log_density
    log = logsumexp(terms, axis=-1)
    weights = np.exp(terms - log[..., None])
    mean = (weights * w).sum(axis=-1)
    variance = (weights * (w - mean[..., None]) ** 2).sum(axis=-1)
    return LatticeEigenvalue(
        log + np.log(step), 2 * nu * (1 - mean), 4 * nu * mean - 4 * nu**2 * variance
    )


def laplacian_lattice(scale: Array, p: int) -> LatticeEigenvalue:
    r"""Eigenvalue of the Laplacian kernel, :math:`\tanh(1 / (2 s))^p`."""
    a = 1 / scale
    b = np.minimum(a, 700.0)  # beyond, sinh overflows, and the ratios below are zero
    fall = b / np.sinh(b)
    return LatticeEigenvalue(p * np.log(np.tanh(a / 2)), p * fall, p * fall * (b / np.tanh(b) - 1))
