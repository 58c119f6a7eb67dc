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

# Entries that stay in the cache over several passes, with one scratch array beside them. Threads
# wait for each other between the passes: with a quarter of it, two take nearly as long as one.
CHUNK = 1 << 16
# exp(-VANISHED) is zero, and so is its product with a polynomial of VANISHED.
VANISHED = 800.0
# Distance, in bandwidths, below which two rows may be equal but for rounding.
AT_KINK = 1e-8
GOLDEN = (1 + np.sqrt(5)) / 2


class OnnxGraph(Protocol):
    """A graph of ONNX operations that kernels and distances add their nodes to."""

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation; returns the name of its output."""

    def array(self, values: Array) -> str:
        """Add a constant; returns its name."""

    def number(self, value: float) -> str:
        """Add a constant number; returns its name."""

    def indices(self, values: list[int]) -> str:
        """Add constant whole numbers; returns their name."""


class Kernel(ABC):
    """A kernel with k = 1 at gap zero, falling to 0.

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
        Factor that `of_expanded` takes gaps with.
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
        """Whether the kernel has a gradient everywhere, also at gap zero."""
        return self.smoothness > 0.5

    def of(self, gaps: Array, sigma: float) -> Array:
        """Kernel values, in the place of `gaps`."""
        # A gap of far too many bandwidths overflows: the kernel is 0.
        with np.errstate(over="ignore", under="ignore"):
            for part in _chunks(gaps):
                self._fill(part, float(sigma))
        return gaps

    def of_expanded(self, gaps: Array) -> Array:
        """Kernel values of `unit` times squared distances in bandwidths, in their place.

        Expanded squares may be below zero by rounding.
        """
        for part in _chunks(gaps):
            np.abs(part, out=part)  # a maximum takes six times as long
        return self.of(gaps, 1.0)

    @abstractmethod
    def _fill(self, gaps: Array, sigma: float) -> None:
        """Replace the gaps of one chunk by kernel values."""

    @abstractmethod
    def slope(self, gaps: Array, sigma: float) -> Array:
        """Derivative with respect to the gap, a new array."""

    @abstractmethod
    def log_spectral_density(self, omega: npt.ArrayLike, p: int) -> Array:
        r"""Logarithm of the spectral density, which neither overflows nor underflows.

        With sigma = 1, at frequencies of norm omega:

        .. math:: S(\omega) = \int k(x) \, e^{-i \omega x} \, dx, \qquad
                  k(x) = \int S(\omega) \, e^{i \omega x} \frac{d\omega}{(2\pi)^p}
        """

    @abstractmethod
    def reach(self, sigma: float, tol: float) -> float:
        """Gap beyond which the kernel is below tol, 0 < tol < 1."""

    @abstractmethod
    def lattice(self, scale: Array, p: int) -> LatticeEigenvalue:
        """Smallest eigenvalue on an infinite grid; scale is sigma over the grid's spacing."""

    @abstractmethod
    def onnx(self, graph: OnnxGraph, gaps: str, sigma: float) -> str:
        """Add the nodes that make kernel values of gaps; returns the name of their output."""


class Gaussian(Kernel):
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

    def _fill(self, gaps: Array, sigma: float) -> None:
        gaps *= -0.5 / sigma**2
        np.exp(gaps, out=gaps)

    def slope(self, gaps: Array, sigma: float) -> Array:
        r"""Derivative :math:`-k(g) / (2 \sigma^2)`."""
        k = self.of(np.array(gaps, dtype=np.float64), sigma)
        k *= -0.5 / sigma**2
        return k

    def log_spectral_density(self, omega: npt.ArrayLike, p: int) -> Array:
        r"""Logarithm of :math:`(2 \pi)^{p/2} e^{-\omega^2 / 2}`."""
        return np.asarray(p / 2 * np.log(2 * np.pi) - 0.5 * np.square(omega))

    def reach(self, sigma: float, tol: float) -> float:
        r"""Squared distance :math:`-2 \sigma^2 \log(\text{tol})`."""
        return float(-2 * np.log(tol) * sigma**2)

    def lattice(self, scale: Array, p: int) -> LatticeEigenvalue:
        """Theta function of the scale, to the power p."""
        return gaussian_lattice(scale, p)

    def onnx(self, graph: OnnxGraph, gaps: str, sigma: float) -> str:
        """Exponential of the scaled gaps."""
        return graph.node("Exp", graph.node("Mul", gaps, graph.number(-0.5 / sigma**2)))


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
        _polynomial(self._P, a, out=a)
        a *= decay

    def slope(self, gaps: Array, sigma: float) -> Array:
        r"""Derivative :math:`-\nu \, Q(a) \, e^{-a} / \sigma^2`, finite at zero."""
        nu = self.smoothness
        with np.errstate(over="ignore", under="ignore"):
            a = _scaled_roots(gaps, np.sqrt(2 * nu) / sigma)
            decay = np.exp(-a)
            decay *= -nu / sigma**2
            _polynomial(self._Q, a, out=a)
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
        """Mean of the Gaussian kernel's eigenvalues over its bandwidths."""
        return matern_lattice(scale, p, self.smoothness)

    def onnx(self, graph: OnnxGraph, gaps: str, sigma: float) -> str:
        """Polynomial times exponential of the scaled distance, which is bounded as in `_fill`."""
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

        It is infinite at gap zero, where the kernel has a kink; zero is returned there, and where
        a gap may be zero but for rounding.
        """
        with np.errstate(over="ignore", under="ignore"):
            a = _scaled_roots(gaps, 1 / sigma)
            slope = np.exp(-a)
            slope *= -0.5 / sigma**2
            np.divide(slope, a, out=slope, where=a > AT_KINK)
        slope[a <= AT_KINK] = 0.0
        return slope


class Laplacian(Kernel):
    r""":math:`e^{-g / \sigma}`, g the city-block distance: a product over features.

    The largest slope is that along one feature. The spectral density is no function of the norm
    of the frequency; it is taken on the diagonal, where all components are equal.
    """

    name = "laplacian"
    power = 1
    smoothness = 0.5
    largest_slope = 1.0

    def _fill(self, gaps: Array, sigma: float) -> None:
        gaps *= -1 / sigma
        np.exp(gaps, out=gaps)

    def slope(self, gaps: Array, sigma: float) -> Array:
        r"""Derivative :math:`-k(g) / \sigma`."""
        k = self.of(np.array(gaps, dtype=np.float64), sigma)
        k *= -1 / sigma
        return k

    def log_spectral_density(self, omega: npt.ArrayLike, p: int) -> Array:
        r"""Logarithm of :math:`(2 / (1 + \omega^2/p))^p`, a product over equal components."""
        return np.asarray(p * (np.log(2) - np.log1p(np.square(omega) / p)))

    def reach(self, sigma: float, tol: float) -> float:
        r"""City-block distance :math:`-\sigma \log(\text{tol})`."""
        return float(-np.log(tol) * sigma)

    def lattice(self, scale: Array, p: int) -> LatticeEigenvalue:
        """Hyperbolic tangent, to the power p."""
        return laplacian_lattice(scale, p)

    def onnx(self, graph: OnnxGraph, gaps: str, sigma: float) -> str:
        """Exponential of the scaled gaps."""
        return graph.node("Exp", graph.node("Mul", gaps, graph.number(-1 / sigma)))


def _chunks(a: Array) -> Iterator[Array]:
    """Views of an array, together all of it, small enough to stay in the cache."""
    if a.flags.forc:
        flat = a.ravel(order="K")
        yield from (flat[i : i + CHUNK] for i in range(0, flat.size, CHUNK))
    else:
        rows = max(CHUNK * len(a) // max(a.size, 1), 1)
        yield from (a[i : i + rows] for i in range(0, len(a), rows))


def _scaled_roots(gaps: Array, factor: float, out: Array | None = None) -> Array:
    """Square roots times a factor, at most VANISHED, so that no product with exp(-a) is NaN."""
    a: Array = np.sqrt(gaps, out=out)
    a *= float(factor)
    # Looking for the largest takes a third of the time of a minimum, which is rarely needed.
    return a if a.max(initial=0.0) <= VANISHED else np.minimum(a, VANISHED, out=a)


def _polynomial(coef: tuple[float, ...], a: Array, out: Array) -> None:
    """coef[0] + coef[1] a + ... by Horner's rule; `out` may be `a`."""
    if len(coef) == 1:
        out[...] = coef[0]
    elif len(coef) == 2:  # two passes, no scratch array
        np.multiply(a, coef[1], out=out)
        out += coef[0]
    else:
        total = a * coef[-1]
        for c in coef[-2:0:-1]:
            total += c
            total *= a
        np.add(total, coef[0], out=out)


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
