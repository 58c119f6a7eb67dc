r"""Feature maps: a learned metric is the distance between mapped rows.

A map sends a row x to z T, with T of shape (p, q). Features with heavy tails are compressed first,

.. math:: z_j = c_j + s_j \operatorname{asinh}\frac{x_j - c_j}{s_j},

which is close to x near the centre c and grows like a logarithm beyond the width s. With an
infinite width, a feature is not compressed. A diagonal T is kept as a vector.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import eigh

from .._compute.arrays import EPS, TINY, Array, Indices

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
    """Map of rows x to (z - centre) T, where z is x after the warp.

    T has the shape (p, q), or (p,) for a diagonal map: the scales of the features. Features of
    scale zero are left out.
    """

    T: Array
    warp: Warp | None = None
    centre: Array | None = None

    @cached_property
    def kept(self) -> slice | Indices:
        """The features that a diagonal map does not leave out."""
        return slice(None) if self.T.all() else np.flatnonzero(self.T)

    @property
    def q(self) -> int:
        """Number of directions."""
        return self.T.shape[1] if self.T.ndim == 2 else int(np.count_nonzero(self.T))

    @property
    def matrix(self) -> Array:
        """T as a matrix of shape (p, q)."""
        return self.T if self.T.ndim == 2 else np.diag(self.T)[:, self.kept]

    def __call__(self, X: Array) -> Array:
        """Apply the map; the result has the shape (n, q)."""
        Z = X if self.warp is None else self.warp(X)
        Z = Z if self.centre is None else Z - self.centre
        return Z @ self.T if self.T.ndim == 2 else Z[:, self.kept] * self.T[self.kept]

    def pulled_back(self, J: Array, X: Array) -> Array:
        """Gradients (n, k, p) with respect to X, from gradients (n, k, q) after the map."""
        J = J @ self.T.T if self.T.ndim == 2 else self.spread(J * self.T[self.kept])
        return J if self.warp is None else J * self.warp.slope(X)[:, None, :]

    def spread(self, Z: Array) -> Array:
        """Values for the features that are kept, and zero for the others, along the last axis."""
        found = np.zeros((*Z.shape[:-1], len(self.T)))
        found[..., self.kept] = Z
        return found

    def then(self, R: Array) -> Array:
        """The matrix of this map followed by the matrix R, of shape (q, r)."""
        return self.T @ R if self.T.ndim == 2 else self.T[:, None] * self.spread(R.T).T

    def inverse(self, Z: Array) -> Array:
        """Undo the map, if T has full rank. Equal values stay equal."""
        X = self.spread(Z / self.T[self.kept]) if self.T.ndim == 1 else Z @ self._pinv
        X = X if self.centre is None else X + self.centre
        X = X if self.warp is None else self.warp.inverse(X)
        largest = np.abs(X).max(axis=0, initial=0.0)
        unit = np.where(largest > 0, largest, 1.0)
        return np.round(X / unit, DIGITS) * unit

    @cached_property
    def _pinv(self) -> Array:
        """Pseudoinverse of a matrix T."""
        # Features are brought to the same scale, so that none is mistaken for rounding.
        scale = np.linalg.norm(self.T, axis=1)
        scale = np.where(scale > 0, scale, 1.0)
        return np.asarray(np.linalg.pinv(self.T / scale[:, None]) / scale)

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
        return graph.node("MatMul", rows, graph.array(self.matrix))


def diagonal_of(T: Array) -> Array:
    """The scales of a diagonal map with the matrix T, or T if it is another map."""
    if np.count_nonzero(T) == T.shape[1]:
        scales = T.sum(axis=1)
        if np.array_equal(FeatureMap(scales).matrix, T):
            return scales
    return T


def scaling_from(mean: Array, std: Array) -> Array:
    """Diagonal map that divides features by their standard deviations and drops constant ones."""
    kept = std > 1e-9 * np.maximum(np.abs(mean), TINY)
    return np.where(kept, 1.0 / np.where(kept, std, 1.0), 0.0) if kept.any() else np.ones(len(std))


def sharpened(before: FeatureMap, B: Array, kind: str) -> FeatureMap:
    """Map with T M^(1/2) in place of T, where M = B'B is the average outer product of gradients.

    Only the diagonal of M is used if `kind` is "diagonal". A floor is added to the eigenvalues, and
    the root is scaled to the trace of the identity.
    """
    q, V = B.shape[1], None
    if kind == "diagonal":
        s = np.einsum("ij,ij->j", B, B)
    elif len(B) < q:  # B B' has the same eigenvalues, apart from zeros
        s, U = eigh(B @ B.T)
        some = s > len(B) * EPS * s[-1]
        s, V = s[some], B.T @ (U[:, some] / np.sqrt(s[some]))
    else:
        s, V = eigh(B.T @ B)
    floor = FLOOR * s.sum() / q
    if not floor > 0:  # a constant function has no directions
        return before
    least, root = np.sqrt(floor), np.sqrt(np.maximum(s, 0.0) + floor)
    unit = q / (root.sum() + (q - len(s)) * least)
    if V is None:
        T = before.T * (root * unit if before.T.ndim == 2 else before.spread(root * unit))
        return replace(before, T=T)
    M_root = (V * (unit * (root - least))) @ V.T
    M_root.flat[:: q + 1] += unit * least
    return replace(before, T=before.then(M_root))
