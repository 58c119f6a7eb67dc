r"""The kernels, one object each: values, slopes, spectral density.

A kernel is a function of the *gap* of two rows: their squared Euclidean distance, or their
city-block distance for ``laplacian``. With :math:`r` the distance over the bandwidth:

============  =======================================================
gaussian      :math:`e^{-r^2/2}`
matern52      :math:`(1 + a + a^2/3) \, e^{-a}`, :math:`a = \sqrt 5 r`
matern32      :math:`(1 + a) \, e^{-a}`, :math:`a = \sqrt 3 r`
exponential   :math:`e^{-r}`
laplacian     :math:`e^{-r}`, r from the city-block distance
============  =======================================================

Solvers and rules ask a kernel for its properties, not for its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import gammaln

from .._compute.arrays import Array
from .lattices import LatticeEigenvalue, gaussian_lattice, laplacian_lattice, matern_lattice

# Entries processed at a time: they and a scratch array stay in the cache over several passes. With
# a quarter as many, two threads take nearly as long as one, because they wait for each other.
CHUNK = 1 << 16
# exp(-VANISHED) is zero, and so is its product with a polynomial of VANISHED.
VANISHED = 800.0
# Distance, in bandwidths, below which two rows may differ by rounding alone.
AT_KINK = 1e-8
GOLDEN = (1 + np.sqrt(5)) / 2


class OnnxGraph(Protocol):
    """A graph of ONNX operations to which kernels and distances add nodes."""

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation and return the name of its output."""

    def array(self, values: Array) -> str:
        """Add a constant array and return its name."""

    def number(self, value: float) -> str:
        """Add a constant number and return its name."""

    def indices(self, values: list[int]) -> str:
        """Add constant integers and return their name."""


class Kernel(ABC):
    """A kernel that is 1 at gap zero and falls to 0.

    Attributes
    ----------
    name : str
    power : int
        2 if the gap is the squared Euclidean distance, 1 if it is the city-block distance.
    smoothness : float
        Matérn's nu: infinite for ``gaussian``, 1/2 for ``exponential`` and ``laplacian``.
    largest_slope : float
        Largest derivative with respect to the distance, in absolute value, times sigma.
    unit : float
        Factor by which gaps are multiplied for `of_expanded`.
    """

    name: str
    power: int
    smoothness: float
    largest_slope: float
    unit: float = 1.0

    @property
    def start(self) -> float:
        """Where a search for the bandwidth starts, in units of the median distance."""
        return 4.0 if self.power == 2 and not self.is_smooth else 1.0

    @property
    def has_closed_form(self) -> bool:
        """Whether the paper's closed form is the Jacobian rule of this kernel."""
        return self.smoothness == np.inf

    @property
    def is_smooth(self) -> bool:
        """Whether the kernel is differentiable everywhere, including at gap zero."""
        return self.smoothness > 0.5

    def of(self, gaps: Array, sigma: float) -> Array:
        """Replace `gaps` by kernel values."""
        # A gap of far too many bandwidths overflows: the kernel is 0.
        with np.errstate(over="ignore", under="ignore"):
            for part in _chunks(gaps):
                self._fill(part, float(sigma))
        return gaps

    def of_expanded(self, gaps: Array) -> Array:
        """Replace `unit` times squared distances in bandwidths by kernel values.

        Expanded squares may be negative by rounding.
        """
        for part in _chunks(gaps):
            np.abs(part, out=part)  # np.maximum takes six times as long
        return self.of(gaps, 1.0)

    @abstractmethod
    def _fill(self, gaps: Array, sigma: float) -> None:
        """Replace the gaps of one chunk by kernel values."""

    @abstractmethod
    def slope(self, gaps: Array, sigma: float) -> Array:
        """Derivative with respect to the gap, as a new array."""

    @abstractmethod
    def log_spectral_density(self, omega: npt.ArrayLike, p: int) -> Array:
        r"""Logarithm of the spectral density, which itself could overflow or underflow.

        With sigma = 1, at frequencies of norm omega:

        .. math:: S(\omega) = \int k(x) \, e^{-i \omega x} \, dx, \qquad
                  k(x) = \int S(\omega) \, e^{i \omega x} \frac{d\omega}{(2\pi)^p}
        """

    @abstractmethod
    def reach(self, sigma: float, tol: float) -> float:
        """Gap beyond which the kernel is below tol, 0 < tol < 1."""

    @abstractmethod
    def lattice(self, scale: Array, p: int) -> LatticeEigenvalue:
        """Smallest eigenvalue on an infinite grid; `scale` is sigma divided by its spacing."""

    @abstractmethod
    def onnx(self, graph: OnnxGraph, gaps: str, sigma: float) -> str:
        """Add the nodes that turn gaps into kernel values, and return the name of their output."""


class ExponentialOfGap(Kernel):
    r""":math:`e^{-c g}` with a rate c that depends on the bandwidth."""

    @abstractmethod
    def rate(self, sigma: float) -> float:
        """The rate c."""

    def _fill(self, gaps: Array, sigma: float) -> None:
        gaps *= -self.rate(sigma)
        np.exp(gaps, out=gaps)

    def slope(self, gaps: Array, sigma: float) -> Array:
        r"""Derivative :math:`-c \, k(g)`."""
        k = self.of(np.array(gaps, dtype=np.float64), sigma)
        k *= -self.rate(sigma)
        return k

    def reach(self, sigma: float, tol: float) -> float:
        r"""Gap :math:`-\log(\text{tol}) / c`."""
        return float(-np.log(tol) / self.rate(sigma))

    def onnx(self, graph: OnnxGraph, gaps: str, sigma: float) -> str:
        """Exponential of the scaled gaps."""
        return graph.node("Exp", graph.node("Mul", gaps, graph.number(-self.rate(sigma))))


class Gaussian(ExponentialOfGap):
    r""":math:`e^{-g / (2 \sigma^2)}`, g the squared distance."""

    name = "gaussian"
    power = 2
    smoothness = np.inf
    largest_slope = float(np.exp(-0.5))
    unit = -0.5

    def of_expanded(self, gaps: Array) -> Array:
        """Exponentials: one step instead of three."""
        with np.errstate(under="ignore"):
            for part in _chunks(gaps):
                np.exp(part, out=part)
        return gaps

    def rate(self, sigma: float) -> float:
        r""":math:`1 / (2 \sigma^2)`."""
        return 0.5 / sigma**2

    def log_spectral_density(self, omega: npt.ArrayLike, p: int) -> Array:
        r"""Logarithm of :math:`(2 \pi)^{p/2} e^{-\omega^2 / 2}`."""
        return np.asarray(p / 2 * np.log(2 * np.pi) - 0.5 * np.square(omega))

    def lattice(self, scale: Array, p: int) -> LatticeEigenvalue:
        """Theta function of the scale, to the power p."""
        return gaussian_lattice(scale, p)


class Matern(Kernel):
    r""":math:`P(a) \, e^{-a}` with :math:`a = \sqrt{2 \nu g} / \sigma`, g the squared distance.

    P is a polynomial for :math:`\nu` = 1/2, 3/2, 5/2, and :math:`P' - P = -a Q(a)`.
    """

    power = 2

    def __init__(
        self,
        name: str,
        nu: float,
        largest_slope: float,
        P: tuple[float, ...],
        Q: tuple[float, ...],
    ) -> None:
        self.name, self.smoothness, self.largest_slope = name, nu, float(largest_slope)
        self._P, self._Q = P, Q

    def _fill(self, gaps: Array, sigma: float) -> None:
        a = _scaled_roots(gaps, np.sqrt(2 * self.smoothness) / sigma, out=gaps)
        decay = np.exp(-a)
        _apply_polynomial(self._P, a)
        a *= decay

    def slope(self, gaps: Array, sigma: float) -> Array:
        r"""Derivative :math:`-\nu \, Q(a) \, e^{-a} / \sigma^2`, finite at zero."""
        nu = self.smoothness
        with np.errstate(over="ignore", under="ignore"):
            a = _scaled_roots(gaps, np.sqrt(2 * nu) / sigma)
            decay = np.exp(-a)
            decay *= -nu / sigma**2
            _apply_polynomial(self._Q, a)
            a *= decay
        return a

    def log_spectral_density(self, omega: npt.ArrayLike, p: int) -> Array:
        r"""Rasmussen and Williams (2006), equation 4.15, with :math:`\omega = 2 \pi s`.

        Logarithm of

        .. math:: \frac{2^p \pi^{p/2} \, \Gamma(\nu + p/2) \, (2\nu)^\nu}{\Gamma(\nu)}
                  \, (2 \nu + \omega^2)^{-(\nu + p/2)} .
        """
        nu, m = self.smoothness, self.smoothness + p / 2
        constant = p * np.log(2 * np.sqrt(np.pi)) + gammaln(m) - gammaln(nu) + nu * np.log(2 * nu)
        return np.asarray(constant - m * np.log(2 * nu + np.square(omega)))

    def reach(self, sigma: float, tol: float) -> float:
        r"""Squared distance :math:`a^2 \sigma^2 / (2 \nu)` with :math:`P(a) e^{-a}` = tol."""
        log_tol = np.log(tol)

        def excess(a: float) -> float:
            return float(np.log(np.polynomial.polynomial.polyval(a, self._P)) - a - log_tol)

        a = brentq(excess, 0.0, 10 - 2 * log_tol, xtol=1e-13)
        return float((a * sigma) ** 2 / (2 * self.smoothness))

    def lattice(self, scale: Array, p: int) -> LatticeEigenvalue:
        """Mean of the eigenvalues of Gaussian kernels over their bandwidths."""
        return matern_lattice(scale, p, self.smoothness)

    def onnx(self, graph: OnnxGraph, gaps: str, sigma: float) -> str:
        """Polynomial times exponential of the scaled distance, bounded as in `_fill`."""
        factor = graph.number(np.sqrt(2 * self.smoothness) / sigma)
        a = graph.node("Mul", graph.node("Sqrt", gaps), factor)
        a = graph.node("Min", a, graph.number(VANISHED))
        total = graph.number(self._P[-1])
        for c in self._P[-2::-1]:
            total = graph.node("Add", graph.node("Mul", total, a), graph.number(c))
        return graph.node("Mul", total, graph.node("Exp", graph.node("Neg", a)))


class Exponential(Matern):
    r""":math:`e^{-a}` with :math:`a = \sqrt g / \sigma`, g the squared distance: a kink at zero."""

    def __init__(self) -> None:
        super().__init__("exponential", nu=0.5, largest_slope=1.0, P=(1.0,), Q=())

    def slope(self, gaps: Array, sigma: float) -> Array:
        r"""Derivative :math:`-e^{-a} / (2 a \sigma^2)`.

        It is infinite at gap zero, where the kernel has a kink. Zero is returned there, and for
        gaps so small that they may be rounding.
        """
        with np.errstate(over="ignore", under="ignore"):
            a = _scaled_roots(gaps, 1 / sigma)
            slope = np.exp(-a)
            slope *= -0.5 / sigma**2
            np.divide(slope, a, out=slope, where=a > AT_KINK)
        slope[a <= AT_KINK] = 0.0
        return slope


class Laplacian(ExponentialOfGap):
    r""":math:`e^{-g / \sigma}`, g the city-block distance: a product over features.

    The largest slope is the one along a single feature. The spectral density does not depend on the
    norm of the frequency alone; it is given on the diagonal, where all components are equal.
    """

    name = "laplacian"
    power = 1
    smoothness = 0.5
    largest_slope = 1.0

    def rate(self, sigma: float) -> float:
        r""":math:`1 / \sigma`."""
        return 1 / sigma

    def log_spectral_density(self, omega: npt.ArrayLike, p: int) -> Array:
        r"""Logarithm of :math:`(2 / (1 + \omega^2/p))^p`, a product over equal components."""
        return np.asarray(p * (np.log(2) - np.log1p(np.square(omega) / p)))

    def lattice(self, scale: Array, p: int) -> LatticeEigenvalue:
        """Hyperbolic tangent, to the power p."""
        return laplacian_lattice(scale, p)


def _chunks(a: Array) -> Iterator[Array]:
    """Views that cover an array, each small enough to stay in the cache."""
    if a.flags.forc:
        flat = a.ravel(order="K")
        yield from (flat[i : i + CHUNK] for i in range(0, flat.size, CHUNK))
    else:
        rows = max(CHUNK * len(a) // max(a.size, 1), 1)
        yield from (a[i : i + rows] for i in range(0, len(a), rows))


def _scaled_roots(gaps: Array, factor: float, out: Array | None = None) -> Array:
    """Square roots times a factor, at most VANISHED so that no product with exp(-a) is NaN."""
    a: Array = np.sqrt(gaps, out=out)
    a *= float(factor)
    # Finding the maximum takes a third of the time of clipping, which is rarely needed.
    return a if a.max(initial=0.0) <= VANISHED else np.minimum(a, VANISHED, out=a)


def _apply_polynomial(coef: tuple[float, ...], a: Array) -> None:
    """Replace a by coef[0] + coef[1] a + ..., by Horner's rule."""
    if len(coef) == 1:
        a[...] = coef[0]
    elif len(coef) == 2:  # two passes, no scratch array
        a *= coef[1]
        a += coef[0]
    else:
        total = a * coef[-1]
        for c in coef[-2:0:-1]:
            total += c
            total *= a
        np.add(total, coef[0], out=a)


# The derivative of matern52, a (1 + a) e^-a / 3, is largest at the golden ratio.
STEEPEST_52 = np.sqrt(5) / 3 * GOLDEN**3 * np.exp(-GOLDEN)

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        Gaussian(),
        Matern("matern52", 2.5, STEEPEST_52, P=(1, 1, 1 / 3), Q=(1 / 3, 1 / 3)),
        Matern("matern32", 1.5, np.sqrt(3) / np.e, P=(1, 1), Q=(1,)),
        Exponential(),
        Laplacian(),
    )
}
