r"""The Jacobian norm of any kernel from its smallest eigenvalue on a grid; part of `theory`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from .._checks import check_choice, check_number, check_whole
from .._compute.arrays import Array
from .kernels import KERNELS

if TYPE_CHECKING:
    from .lattices import LatticeEigenvalue


def lattice_eigenvalue(sigma: npt.ArrayLike, kernel: str, spacing: float, p: int) -> Array:
    r"""Smallest eigenvalue of K on an infinite grid in p dimensions.

    With h the spacing, :math:`\lambda_{\min} = \sum_j (-1)^{j_1 + \dots + j_p} k(j h)`, the sum
    over all points of the grid. Finite parts of the grid have a larger one. In one dimension

    ============  ===================================================================
    gaussian      :math:`\vartheta = 2 \sqrt{2\pi} \, (\sigma/h) \sum_{k \ge 0}
                  e^{-((2k+1) \pi \sigma / h)^2 / 2}`
    matern52      :math:`T - a S / 2 - a^2 S T / 6`, :math:`a = \sqrt 5 h / \sigma`
    matern32      :math:`T - a S / 2`, :math:`a = \sqrt 3 h / \sigma`
    exponential   :math:`T`, :math:`a = h / \sigma`
    laplacian     :math:`T`, :math:`a = h / \sigma`
    ============  ===================================================================

    with :math:`T = \tanh(a/2)` and :math:`S = 1 - T^2`. In p dimensions ``gaussian`` and
    ``laplacian`` are products over features and have the p-th power of this. The other kernels
    are means of Gaussian kernels over their bandwidth, and so are their eigenvalues:

    .. math:: \lambda_{\min}(\sigma) = \int_0^\infty \vartheta(\sigma \sqrt w)^p
              \, \frac{\nu^\nu}{\Gamma(\nu)} \, w^{\nu-1} e^{-\nu w} \, dw .

    This integral is computed; it is accurate to about 13 digits for all bandwidths.

    Parameters
    ----------
    sigma : bandwidths, of any shape
    kernel : {"gaussian", "matern52", "matern32", "exponential", "laplacian"}
    spacing, p : spacing of the grid and its dimensions

    Returns
    -------
    ndarray of the shape of sigma

    Examples
    --------
    >>> round(float(lattice_eigenvalue(0.5, "exponential", spacing=1.0, p=1)), 6)
    0.761594
    >>> round(float(np.tanh(1.0)), 6)
    0.761594
    """
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(_on_lattice(sigma, kernel, spacing, p).log))


def _on_lattice(sigma: npt.ArrayLike, kernel: str, spacing: float, p: int) -> LatticeEigenvalue:
    """Logarithm of the smallest eigenvalue, and its derivatives."""
    check_choice("kernel", kernel, KERNELS)
    spacing = check_number("spacing", spacing, above=0)
    scale = np.asarray(sigma, dtype=np.float64) / spacing
    # Beyond these limits the eigenvalue is 1 or smaller than any penalty, and squares overflow.
    return KERNELS[kernel].lattice(np.clip(scale, 1e-150, 1e150), check_whole("p", p))


def lattice_eigenvalue_bound(sigma: npt.ArrayLike, kernel: str, spacing: float, p: int) -> Array:
    r"""Leading term of the smallest eigenvalue on a grid, by the spectral density.

    The eigenvalue is a sum of the spectral density S over all frequencies that are aliases of the
    highest one on the grid. The :math:`2^p` smallest of these are equally far from zero:

    .. math:: \lambda_{\min} \ge 2^p \left(\frac{\sigma}{h}\right)^p
              S\!\left(\frac{\pi \sqrt p \, \sigma}{h}\right).

    In one dimension it is close: at :func:`lattice_sigma_0` it is too small by 0.03 % for
    ``gaussian``, 2 % for ``matern52`` and 5 % for ``matern32``. In more dimensions other terms
    matter as well: at p = 10 it is too small by 22 %, 50 % and 56 %.

    Parameters
    ----------
    sigma : bandwidths, of any shape
    kernel : {"gaussian", "matern52", "matern32", "exponential", "laplacian"}
    spacing, p : spacing of the grid and its dimensions

    Returns
    -------
    ndarray of the shape of sigma

    Examples
    --------
    >>> round(float(lattice_eigenvalue_bound(0.45, "gaussian", spacing=1.0, p=1)), 4)
    0.8305
    >>> round(float(lattice_eigenvalue(0.45, "gaussian", spacing=1.0, p=1)), 4)
    0.8308
    """
    check_choice("kernel", kernel, KERNELS)
    scale = np.asarray(sigma, dtype=np.float64) / check_number("spacing", spacing, above=0)
    p = check_whole("p", p)
    with np.errstate(divide="ignore", under="ignore"):  # log(0): the bound is zero
        log_S = KERNELS[kernel].log_spectral_density(np.pi * np.sqrt(p) * scale, p)
        return np.asarray(np.exp(p * np.log(2 * scale) + log_S))


def lattice_jacobian_norm(
    sigma: npt.ArrayLike, kernel: str, spacing: float, p: int, lam: float
) -> Array:
    r"""Approximate Jacobian norm of any kernel, on a grid of the given spacing.

    .. math:: J(\sigma) = \frac{c}{\sigma} \cdot \frac{1}{\lambda_{\min}(\sigma) + \lambda}

    with :math:`c / \sigma` the largest slope (:func:`jacridge.theory.slope_bound`) and
    :math:`\lambda_{\min}` the smallest eigenvalue on the grid (:func:`lattice_eigenvalue`).

    Parameters
    ----------
    sigma : bandwidths, of any shape
    kernel : {"gaussian", "matern52", "matern32", "exponential", "laplacian"}
    spacing, p : distance of neighbours and number of features
    lam : ridge penalty

    Returns
    -------
    ndarray of the shape of sigma

    Examples
    --------
    >>> J = lattice_jacobian_norm([0.3, 0.53, 0.9], "matern32", spacing=1.0, p=1, lam=0)
    >>> [round(float(v), 3) for v in J]
    [2.217, 1.728, 2.23]
    """
    with np.errstate(divide="ignore", over="ignore"):  # lam = 0, a large sigma: it is infinite
        inverse = 1 / (lattice_eigenvalue(sigma, kernel, spacing, p) + lam)
        return np.asarray(KERNELS[kernel].largest_slope / np.asarray(sigma) * inverse)


def lattice_sigma_0(kernel: str, spacing: float, p: int, lam: float) -> float:
    r"""Bandwidth at the local minimum of the Jacobian norm for any kernel.

    With :math:`E(\sigma) = -d \log \lambda_{\min} / d \log \sigma`, which rises from zero, the
    norm of :func:`lattice_jacobian_norm` is stationary where

    .. math:: \lambda_{\min}(\sigma) \, (E(\sigma) - 1) = \lambda .

    The left side rises from the bandwidth with E = 1, the minimum for :math:`\lambda = 0`, to its
    largest value, :func:`lattice_lambda_threshold`, and falls again. The solution on the rising
    side is the minimum. For larger lam the norm only decreases, and the bandwidth at the threshold,
    where minimum and maximum merge, is returned, as in the paper's rule.

    For :math:`\lambda = 0` and p = 1 it is 0.4495 times the spacing for ``gaussian`` (the paper's
    :math:`\sqrt 2 / \pi` = 0.4502 is the leading term alone, :func:`leading_sigma_0`), 0.4903 for
    ``matern52`` and 0.5284 for ``matern32``.

    Parameters
    ----------
    kernel : {"gaussian", "matern52", "matern32"}
    spacing, p : distance of neighbours and number of features
    lam : ridge penalty >= 0

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For ``exponential`` and ``laplacian``. Their smallest eigenvalue decreases no faster than
        :math:`1 / \sigma`, so the norm has no minimum.

    Examples
    --------
    >>> round(lattice_sigma_0("matern32", spacing=1.0, p=1, lam=0), 4)
    0.5284
    """
    return _lattice_stationary_point(kernel, spacing, p, lam, rising=True)


def lattice_sigma_minus_1(kernel: str, spacing: float, p: int, lam: float) -> float:
    r"""Bandwidth at the local maximum of the Jacobian norm for any kernel.

    The other solution of the equation in :func:`lattice_sigma_0`; infinite for lam = 0.

    Parameters
    ----------
    kernel : {"gaussian", "matern52", "matern32"}
    spacing, p : distance of neighbours and number of features
    lam : ridge penalty >= 0

    Returns
    -------
    float

    Examples
    --------
    >>> round(lattice_sigma_minus_1("matern32", spacing=1.0, p=1, lam=1e-3), 2)
    9.49
    """
    return _lattice_stationary_point(kernel, spacing, p, lam, rising=False)


def lattice_lambda_threshold(kernel: str, p: int) -> float:
    r"""Largest ridge penalty for which :func:`lattice_jacobian_norm` has a local minimum.

    It is the largest value of :math:`\lambda_{\min} (E - 1)` over all bandwidths, reached where
    :math:`E' = E (E - 1)`. It depends neither on the spacing nor on the number of points.

    Parameters
    ----------
    kernel : {"gaussian", "matern52", "matern32"}
    p : number of features

    Returns
    -------
    float

    Examples
    --------
    >>> round(lattice_lambda_threshold("matern32", p=1), 3)
    0.298
    """
    _check_has_minimum(kernel)
    return _merging_point(kernel, check_whole("p", p))[1]


def lattice_regime(kernel: str, p: int, lam: float) -> str:
    """Case of the Jacobian norm that holds for a kernel and the ridge penalty lam.

    Returns
    -------
    str
        ``"global minimum"`` for lam = 0, ``"local minimum"`` up to
        :func:`lattice_lambda_threshold`, ``"no minimum"`` above; always ``"no minimum"`` for
        ``exponential`` and ``laplacian``.

    Examples
    --------
    >>> [lattice_regime("matern32", p=1, lam=lam) for lam in (0, 1e-3, 1)]
    ['global minimum', 'local minimum', 'no minimum']
    """
    check_number("lam", lam, at_least=0)
    if not KERNELS[check_choice("kernel", kernel, KERNELS)].is_smooth:
        return "no minimum"
    if lam == 0:
        return "global minimum"
    return "local minimum" if lam <= lattice_lambda_threshold(kernel, p) else "no minimum"


def leading_sigma_0(kernel: str, spacing: float, p: int) -> float:
    r"""Closed form of :func:`lattice_sigma_0` without a penalty, from the leading term alone.

    .. math:: \sigma_0 = \frac{h}{\pi} \sqrt{\frac{p + 1}{p}} \sqrt{\frac{2\nu}{2\nu - 1}}

    minimises :math:`1 / (\sigma \lambda_{\min})` with :func:`lattice_eigenvalue_bound` for the
    eigenvalue. For the Gaussian kernel, where :math:`\nu` is infinite, and p = 1 this is the
    paper's :math:`\sqrt 2 \, h / \pi`; for :math:`\nu` = 1/2 there is no minimum. The exact sum
    gives less: by 0.1 % for ``gaussian``, 3 % for ``matern52`` and 4 % for ``matern32`` at p = 1;
    by 9 %, 19 % and 22 % at p = 10.

    Parameters
    ----------
    kernel : {"gaussian", "matern52", "matern32"}
    spacing, p : distance of neighbours and number of features

    Returns
    -------
    float

    Examples
    --------
    >>> round(leading_sigma_0("gaussian", spacing=1.0, p=1), 4)
    0.4502
    """
    _check_has_minimum(kernel)
    nu, p = KERNELS[kernel].smoothness, check_whole("p", p)
    spacing = check_number("spacing", spacing, above=0)
    return float(spacing / np.pi * np.sqrt((p + 1) / p) / np.sqrt(1 - 1 / (2 * nu)))


def _check_has_minimum(kernel: str) -> None:
    if not KERNELS[check_choice("kernel", kernel, KERNELS)].is_smooth:
        raise ValueError(
            f"The Jacobian norm of the kernel {kernel!r} has no minimum: it falls with the "
            "bandwidth. Use the rule `median` (median distance) or `auto` instead."
        )


def _lattice_stationary_point(
    kernel: str, spacing: float, p: int, lam: float, rising: bool
) -> float:
    """Solution of eigenvalue * (E - 1) = lam before or after the merging point."""
    _check_has_minimum(kernel)
    spacing, p = check_number("spacing", spacing, above=0), check_whole("p", p)
    lam = check_number("lam", lam, at_least=0)
    if lam == 0 and not rising:
        return float(np.inf)
    log_lam = np.log(lam) if lam else -np.inf

    def excess(x: float) -> float:
        log, fall, _ = _on_lattice(np.exp(x), kernel, 1.0, p)
        return float(fall - 1 - np.exp(min(log_lam - log, 700)))

    x = _merging_point(kernel, p)[0]
    if excess(x) > 0:  # else lam is at the threshold or above
        x = _crossing(excess, x, step=-0.5 if rising else 0.5)
    return float(spacing * np.exp(x))


@cache
def _merging_point(kernel: str, p: int) -> tuple[float, float]:
    """Log of the scale at which minimum and maximum merge, and the ridge penalty there."""

    def fall(x: float) -> float:
        return float(_on_lattice(np.exp(x), kernel, 1.0, p).fall - 1)

    def rise(x: float) -> float:
        _, fall, bend = _on_lattice(np.exp(x), kernel, 1.0, p)
        return float(bend - fall * (fall - 1))

    x = _crossing(rise, _crossing(fall, start=0.0, step=-0.5), step=0.5)
    log, E, _ = _on_lattice(np.exp(x), kernel, 1.0, p)
    return x, float(np.exp(log) * (E - 1))


def _crossing(f: Callable[[float], float], start: float, step: float) -> float:
    """Zero of f beyond `start`, where f is positive, bracketed by growing steps."""
    end = start + step
    while f(end) > 0:
        start, end, step = end, end + 2 * step, 2 * step
    return float(brentq(f, start, end, xtol=1e-15, rtol=4 * np.finfo(float).eps))
