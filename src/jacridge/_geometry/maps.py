r"""Feature maps: a learned metric is the distance between mapped rows.

A map sends a row x to z T, with T of shape (p, q). Features with heavy tails are compressed first,

.. math:: z_j = c_j + s_j \operatorname{asinh}\frac{x_j - c_j}{s_j},

which is close to x near the centre c and grows like a logarithm beyond the width s. With an
infinite width, a feature is not compressed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import eigh

from .._compute.arrays import TINY, Array

if TYPE_CHECKING:
    from .kernels import OnnxGraph

# Share of the mean eigenvalue that is added to M, so that no direction is lost permanently.
FLOOR = 1e-2

# A feature has heavy tails if a value is farther than this many widths from the median.
HEAVY_TAIL = 5.0

# Digits, relative to the largest value of a feature, that survive a map and its inverse.
DIGITS = 11


@dataclass(frozen=True)
class Warp:
    """Compression of features with heavy tails: centres c and widths s, both of shape (p,)."""

    centre: Array
    width: Array

    def __call__(self, X: Array) -> Array:
        """Compress the features of finite width."""
        s, some = self._scale, np.isfinite(self.width)
        if not some.any():
            return X
        return np.where(some, self.centre + s * np.arcsinh((X - self.centre) / s), X)

    def slope(self, X: Array) -> Array:
        """Derivative of each compressed feature with respect to the feature itself."""
        return 1.0 / np.hypot(1.0, (X - self.centre) / self.width)

    def inverse(self, Z: Array) -> Array:
        """Undo the compression."""
        s, some = self._scale, np.isfinite(self.width)
        with np.errstate(over="ignore"):  # in features that are not compressed
            return np.where(some, self.centre + s * np.sinh((Z - self.centre) / s), Z)

    @property
    def _scale(self) -> Array:
        """The widths, with 1 in place of infinite ones."""
        return np.where(np.isfinite(self.width), self.width, 1.0)


def warp_of(X: Array) -> Warp | None:
    """Warp for the features of X that have heavy tails; None if there are none.

    The width is the standard deviation of a normal distribution with the same quartiles, or with
    the same mean deviation if the quartiles are equal.
    """
    centre = np.median(X, axis=0)
    away = np.abs(X - centre)
    low, high = np.quantile(X, [0.25, 0.75], axis=0)
    width = (high - low) / 1.349
    width = np.where(width > 0, width, away.mean(axis=0) * np.sqrt(np.pi / 2))
    two_values = ((X.min(axis=0) == X) | (X.max(axis=0) == X)).all(axis=0)
    heavy = (width > 0) & (away.max(axis=0) > HEAVY_TAIL * width) & ~two_values
    return Warp(centre, np.where(heavy, width, np.inf)) if heavy.any() else None


@dataclass(frozen=True)
class FeatureMap:
    """Map of rows x to (z - centre) T, where z is x after the warp and T has the shape (p, q)."""

    T: Array
    warp: Warp | None = None
    centre: Array | None = None

    def __call__(self, X: Array) -> Array:
        """Apply the map; the result has the shape (n, q)."""
        Z = X if self.warp is None else self.warp(X)
        return (Z if self.centre is None else Z - self.centre) @ self.T

    def pulled_back(self, J: Array, X: Array) -> Array:
        """Gradients (n, k, p) with respect to X, from gradients (n, k, q) after the map."""
        J = J @ self.T.T
        return J if self.warp is None else J * self.warp.slope(X)[:, None, :]

    def inverse(self, Z: Array) -> Array:
        """Undo the map, if T has full rank. Equal values stay equal."""
        # Features are brought to the same scale first, so that none is mistaken for rounding.
        scale = np.linalg.norm(self.T, axis=1)
        scale = np.where(scale > 0, scale, 1.0)
        X = (Z @ np.linalg.pinv(self.T / scale[:, None])) / scale
        X = X if self.centre is None else X + self.centre
        X = X if self.warp is None else self.warp.inverse(X)
        largest = np.abs(X).max(axis=0, initial=0.0)
        unit = np.where(largest > 0, largest, 1.0)
        return np.round(X / unit, DIGITS) * unit

    def straight(self, Z: Array) -> Array:
        """Rows mapped by the linear part alone, from rows after the whole map."""
        return replace(self, warp=None)(self.inverse(Z))

    def onnx(self, graph: OnnxGraph, rows: str) -> str:
        """Add the nodes of the map, and return the name of their output."""
        if self.warp is not None:
            c, s = self.warp.centre, self.warp._scale
            part = graph.node("Div", graph.node("Sub", rows, graph.array(c)), graph.array(s))
            # asinh(t) = sign(t) log(|t| + sqrt(t^2 + 1)): few runtimes have a double Asinh.
            size = graph.node("Abs", part)
            root = graph.node("Add", graph.node("Mul", size, size), graph.number(1.0))
            log = graph.node("Log", graph.node("Add", size, graph.node("Sqrt", root)))
            bent = graph.node("Mul", graph.node("Sign", part), log)
            bent = graph.node("Add", graph.node("Mul", bent, graph.array(s)), graph.array(c))
            some = np.isfinite(self.warp.width).astype(np.float64)
            kept = graph.node("Mul", rows, graph.array(1.0 - some))
            rows = graph.node("Add", graph.node("Mul", bent, graph.array(some)), kept)
        if self.centre is not None:
            rows = graph.node("Sub", rows, graph.array(self.centre))
        return graph.node("MatMul", rows, graph.array(self.T))


def scaling_from(mean: Array, std: Array) -> Array:
    """Map that divides each feature by its standard deviation and drops constant features."""
    kept = std > 1e-9 * np.maximum(np.abs(mean), TINY)
    if not kept.any():
        return np.eye(len(std))
    return np.diag(1.0 / np.where(kept, std, 1.0))[:, kept]


def sharpened(before: FeatureMap, M: Array, kind: str) -> FeatureMap:
    """Map with T M^(1/2) in place of T, where M is the average outer product of gradients.

    Only the diagonal of M is used if `kind` is "diagonal". A floor is added to the eigenvalues, and
    the root is scaled to the trace of the identity.
    """
    if kind == "diagonal":
        M = np.diag(np.diag(M))
    s, V = eigh(M)
    if not s.mean() > 0:  # a constant function has no directions
        return before
    root = np.sqrt(np.maximum(s, 0.0) + FLOOR * s.mean())
    return replace(before, T=before.T @ ((V * (root * len(s) / root.sum())) @ V.T))
