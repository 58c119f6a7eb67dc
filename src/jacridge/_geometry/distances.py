"""Distances between rows: Euclidean, city-block, geodesic, precomputed.

A kernel is a function of the *gap* of two rows. Radial kernels take the squared distance, which
needs no square root; the laplacian kernel takes the city-block distance itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from scipy.spatial.distance import cdist, pdist

from .._checks import check_coordinates, check_distances, check_no_negative, check_range
from .._compute.arrays import EPS, Array, Indices, bulk_centre, row_blocks, rows_per_block
from .diameter import (
    cityblock_diameter,
    embedding_dimension,
    euclidean_diameter,
    given_spacing,
    neighbour_spacing,
)
from .geodesics import (
    geodesic_diameter,
    geodesic_distances,
    geodesic_slopes,
    geodesic_slopes_along,
    geodesic_spacing,
    metres_per_degree,
    paired_geodesics,
)

if TYPE_CHECKING:
    from .kernels import OnnxGraph

# Up to this many columns differences are as fast as a matrix product, and lose no digits.
FEW_COLUMNS = 10

# Number of entries that are compared at a time for the slopes of city-block distances.
COMPARED_ENTRIES = 1 << 16

# Relative difference below which two values of a feature may differ only by rounding.
ROUNDED = 1e-9

# An expanded square below this share of the norms it comes from has lost too many digits.
CANCELLED = 1e-5

# Squared distance from the centre, in bandwidths, beyond which an expanded square has lost enough
# digits to change the kernel by 1e-9. There, differences are used instead.
FAR = 1e-9 / EPS / 2


class Distance(Protocol):
    """Distances between rows, and the quantities that rules compute from them.

    Attributes
    ----------
    is_euclidean : whether gaps are squared Euclidean distances, which a matrix product can compute
    is_curved : whether rows are points on a curved surface, which need not contain their mean
    is_given : whether X holds distances instead of features
    """

    name: ClassVar[str]
    is_euclidean: ClassVar[bool] = False
    is_curved: ClassVar[bool] = False
    is_given: ClassVar[bool] = False

    def check(self, X: Array, *, new: bool = False) -> None:
        """Refuse rows for which the distance is not defined; `new` rows are to be predicted."""

    def canonical(self, X: Array) -> Array:
        """Rows in a canonical form: rows at distance zero become equal."""
        return X

    def gaps(self, X: Array, Z: Array) -> Array:
        """Gaps between all rows of X and all rows of Z."""

    def all_gaps(self, X: Array) -> Array:
        """Gaps of all pairs of rows of X, each pair once."""

    def paired_gaps(self, X: Array, i: Indices, j: Indices) -> Array:
        """Gaps between rows i and rows j of X."""

    def slopes(self, W: Array, coef: Array, X: Array, Z: Array) -> Array:
        """Sum over i of W_ji coef_it times the gradient of gap_ji with respect to row j of X.

        W of shape (n, m), coef (m, k), X (n, p), Z (m, p), result (n, k, p).
        """

    def total_slopes(self, W: Array, X: Array, Z: Array) -> Array:
        """Sum over j of W_ji times the gradient of gap_ji with respect to row j of X, (m, p)."""

    def slopes_along(self, X: Array, Z: Array, f: int) -> Array:
        """Derivatives of all gaps with respect to feature f of the rows of X."""

    def unit_steps(self, X: Array) -> Array:
        """Distances from the rows to places where one feature is larger by one, (n, p)."""
        return np.ones_like(X)

    def lengths(self, gaps: Array) -> Array:
        """Distances from gaps."""
        return np.sqrt(gaps)

    def radii(self, X: Array, centre: Array) -> Array:
        """Distances of rows to a centre."""

    def diameter(self, X: Array) -> float:
        """Largest distance between two rows."""

    def spacing(self, X: Array) -> float:
        """Median distance of nearest neighbours; the rows are distinct."""

    def dimension(self, X: Array) -> int:
        """Number of features; for given distances the dimensions that they span."""
        return X.shape[1]

    def variance(self, X: Array, w: Array) -> float:
        """Variance of all entries of X together."""

    def some(self, X: Array, rows: Indices) -> Array:
        """Some of the rows; for given distances, also only their columns."""
        return X[rows]

    def onnx(self, graph: OnnxGraph, rows: str, Z: Array, sigma: float) -> str:
        """Add nodes that compute gaps between new rows and Z; return the name of their output."""


@dataclass(frozen=True)
class Euclidean(Distance):
    """Squared Euclidean distances."""

    name: ClassVar[str] = "euclidean"
    is_euclidean: ClassVar[bool] = True

    def check(self, X: Array, *, new: bool = False) -> None:
        check_range("X", X)

    def gaps(self, X: Array, Z: Array) -> Array:
        if X.shape[1] <= FEW_COLUMNS:
            return np.asarray(cdist(X, Z, "sqeuclidean"))
        return expanded_gaps(X, Z)

    def onnx(self, graph: OnnxGraph, rows: str, Z: Array, sigma: float) -> str:
        """Uses differences where `gaps` does or rows are far away, else the expanded square."""
        centre = bulk_centre(Z)
        V = Z - centre
        vv = np.einsum("ij,ij->i", V, V)
        if Z.shape[1] <= FEW_COLUMNS or vv.max() > FAR * sigma**2:
            return _onnx_sum(graph, rows, Z, lambda D: graph.node("Mul", D, D))
        U = graph.node("Sub", rows, graph.array(centre))
        uu = graph.node("ReduceSumSquare", U, axes=[1], keepdims=1)
        cross = graph.node("MatMul", U, graph.array(-2.0 * V.T))
        D2 = graph.node("Add", graph.node("Add", cross, uu), graph.array(vv))
        return graph.node("Relu", D2)

    def all_gaps(self, X: Array) -> Array:
        """Gaps of all pairs of rows, each pair once."""
        return np.asarray(pdist(X, "sqeuclidean"))

    def paired_gaps(self, X: Array, i: Indices, j: Indices) -> Array:
        gaps = np.empty(len(i))
        for pairs in row_blocks(len(i), rows_per_block(X.shape[1])):
            gaps[pairs] = self._sizes(X[i[pairs]] - X[j[pairs]])
        return gaps

    def _sizes(self, D: Array) -> Array:
        """Gaps from differences of rows."""
        return np.asarray(np.square(D).sum(axis=1))

    def slopes(self, W: Array, coef: Array, X: Array, Z: Array) -> Array:
        centre = bulk_centre(Z)
        J = (X - centre)[:, None] * (W @ coef)[:, :, None]
        for t, c in enumerate(coef.T):
            J[:, t] -= W @ (c[:, None] * (Z - centre))
        return np.asarray(2.0 * J)

    def total_slopes(self, W: Array, X: Array, Z: Array) -> Array:
        # The derivative with respect to z is minus the derivative with respect to x.
        return -self.slopes(W.T, np.ones((len(X), 1)), Z, X)[:, 0]

    def slopes_along(self, X: Array, Z: Array, f: int) -> Array:
        return np.asarray(2.0 * (X[:, f, None] - Z[:, f]))

    def radii(self, X: Array, centre: Array) -> Array:
        D = X - centre
        return np.sqrt(np.einsum("ij,ij->i", D, D))

    def diameter(self, X: Array) -> float:
        return euclidean_diameter(X)

    def spacing(self, X: Array) -> float:
        return neighbour_spacing(X, "euclidean")

    def variance(self, X: Array, w: Array) -> float:
        share = w / w.sum()
        mean = (share @ X).mean()
        return float(share @ np.square(X - mean).mean(axis=1))


EUCLIDEAN = Euclidean()


@dataclass(frozen=True)
class CityBlock(Euclidean):
    """City-block distances, for the laplacian kernel."""

    name: ClassVar[str] = "cityblock"
    is_euclidean: ClassVar[bool] = False

    def gaps(self, X: Array, Z: Array) -> Array:
        return np.asarray(cdist(X, Z, "cityblock"))

    def onnx(self, graph: OnnxGraph, rows: str, Z: Array, sigma: float) -> str:
        """Sum of absolute differences."""
        return _onnx_sum(graph, rows, Z, lambda D: graph.node("Abs", D))

    def all_gaps(self, X: Array) -> Array:
        return np.asarray(pdist(X, "cityblock"))

    def _sizes(self, D: Array) -> Array:
        return np.asarray(np.abs(D).sum(axis=1))

    def slopes(self, W: Array, coef: Array, X: Array, Z: Array) -> Array:
        # |x - z| has no slope at zero; it is taken as zero there. Comparisons, stored as bytes,
        # take half the time of np.sign, and few rows at a time stay in the cache.
        J, same = np.empty((len(X), coef.shape[1], X.shape[1])), _rounding(Z)
        columns = list(zip((Z - same).T.copy(), (Z + same).T.copy(), strict=True))
        for rows in row_blocks(len(X), max(COMPARED_ENTRIES // max(len(Z), 1), 1)):
            w = W[rows]
            for f, (low, high) in enumerate(columns):
                x = X[rows, f, None]
                signs = (x > high).view(np.int8) - (x < low).view(np.int8)
                J[rows, :, f] = (w * signs.astype(np.float64)) @ coef
        return J

    def slopes_along(self, X: Array, Z: Array, f: int) -> Array:
        D, same = X[:, f, None] - Z[:, f], _rounding(Z[:, [f]])[:, 0]
        return np.sign(D) * (np.abs(D) > same)

    def lengths(self, gaps: Array) -> Array:
        return gaps

    def radii(self, X: Array, centre: Array) -> Array:
        return np.asarray(np.abs(X - centre).sum(axis=1))

    def diameter(self, X: Array) -> float:
        return cityblock_diameter(X)

    def spacing(self, X: Array) -> float:
        return neighbour_spacing(X, "manhattan")


@dataclass(frozen=True)
class Geodesic(Distance):
    """Squared lengths of geodesics, in metres, between places (latitude, longitude)."""

    name: ClassVar[str] = "geodesic"
    is_curved: ClassVar[bool] = True

    def check(self, X: Array, *, new: bool = False) -> None:
        check_range("X", X)
        check_coordinates(X)

    def canonical(self, X: Array) -> Array:
        # Rounded to 0.1 mm, because 190.3 - 360 is not exactly the double -169.7.
        longitude = np.round(X[:, 1] % 360, 9) % 360
        return np.column_stack([X[:, 0], np.where(np.abs(X[:, 0]) == 90, 0.0, longitude)])

    def gaps(self, X: Array, Z: Array) -> Array:
        return np.square(geodesic_distances(X, Z))

    def all_gaps(self, X: Array) -> Array:
        """Gaps of all pairs of rows, each pair once."""
        return self.gaps(X, X)[np.triu_indices(len(X), 1)]

    def paired_gaps(self, X: Array, i: Indices, j: Indices) -> Array:
        return np.square(paired_geodesics(X[i], X[j]))

    def onnx(self, graph: OnnxGraph, rows: str, Z: Array, sigma: float) -> str:
        raise ValueError(
            "`model` must have a linear metric or 'precomputed', got 'geodesic', for which ONNX "
            "has no operators. Fit the model to distances with metric='precomputed'."
        )

    def slopes(self, W: Array, coef: Array, X: Array, Z: Array) -> Array:
        return np.stack([geodesic_slopes(W * c, X, Z) for c in coef.T], axis=1)

    def total_slopes(self, W: Array, X: Array, Z: Array) -> Array:
        columns = [np.einsum("ji,ji->i", W, self.slopes_along(X, Z, f)) for f in (0, 1)]
        return np.column_stack(columns)

    def slopes_along(self, X: Array, Z: Array, f: int) -> Array:
        return geodesic_slopes_along(X, Z, f)

    def unit_steps(self, X: Array) -> Array:
        return np.maximum(metres_per_degree(X[:, 0]), 1.0)  # at a pole, longitude has no length

    def radii(self, X: Array, centre: Array) -> Array:
        # Due to rounding, a mean of latitudes of 90 may exceed 90.
        return geodesic_distances(X, np.clip(centre, [-90, -360], [90, 360])[None])[:, 0]

    def diameter(self, X: Array) -> float:
        return geodesic_diameter(X)

    def spacing(self, X: Array) -> float:
        return geodesic_spacing(X)

    def variance(self, X: Array, w: Array) -> float:
        share = w / w.sum()
        return float(share @ np.square(self.radii(X, share @ X)))


@dataclass(frozen=True)
class Precomputed(Distance):
    """Distances given in X: between the training rows, or from new rows to training rows."""

    power: int = 2
    name: ClassVar[str] = "precomputed"
    is_given: ClassVar[bool] = True

    def check(self, X: Array, *, new: bool = False) -> None:
        check_range("X", X)
        if new:
            check_no_negative(X)
        else:
            check_distances(X)

    def canonical(self, X: Array) -> Array:
        return X

    def gaps(self, X: Array, Z: Array) -> Array:
        return np.asarray(X**self.power)

    def onnx(self, graph: OnnxGraph, rows: str, Z: Array, sigma: float) -> str:
        return graph.node("Mul", rows, rows) if self.power == 2 else rows

    def all_gaps(self, X: Array) -> Array:
        """Gaps of all pairs of rows, each pair once."""
        return np.asarray(X[np.triu_indices(len(X), 1)] ** self.power)

    def paired_gaps(self, X: Array, i: Indices, j: Indices) -> Array:
        return np.asarray(X[i, j] ** self.power)

    def slopes(self, W: Array, coef: Array, X: Array, Z: Array) -> Array:
        raise ValueError(
            'The Jacobian needs features, got metric="precomputed". Fit on the features themselves.'
        )

    def total_slopes(self, W: Array, X: Array, Z: Array) -> Array:
        return self.slopes(W, W, X, Z)

    def slopes_along(self, X: Array, Z: Array, f: int) -> Array:
        return self.slopes(X, X, X, Z)

    def lengths(self, gaps: Array) -> Array:
        return np.asarray(gaps ** (1 / self.power))

    def radii(self, X: Array, centre: Array) -> Array:
        raise ValueError('Given distances have no centre, got metric="precomputed".')

    def diameter(self, X: Array) -> float:
        return float(X.max())

    def spacing(self, X: Array) -> float:
        return given_spacing(X)

    def dimension(self, X: Array) -> int:
        return embedding_dimension(X)

    def variance(self, X: Array, w: Array) -> float:
        share = w / w.sum()
        return float(share @ np.square(X) @ share / (2 * self.dimension(X)))

    def some(self, X: Array, rows: Indices) -> Array:
        return X[np.ix_(rows, rows)]


def _rounding(Z: Array) -> Array:
    """Differences from Z that rounding in a map or a mean can cause."""
    size = np.abs(Z)
    return np.asarray(ROUNDED * (size + bulk_centre(size)))


def expanded_gaps(X: Array, Z: Array) -> Array:
    """Squared distances as |x|^2 - 2 x'z + |z|^2, one matrix product.

    Where this loses digits, because two rows lie far from the centre and close to each other,
    differences are used instead.
    """
    centre = bulk_centre(Z)
    U, V = X - centre, Z - centre
    uu, vv = np.einsum("ij,ij->i", U, U), np.einsum("ij,ij->i", V, V)
    D2: Array = U @ (-2.0 * V).T
    D2 += uu[:, None]
    D2 += vv
    # A coarse test with the largest norms first: it includes all pairs that the exact test finds.
    near = CANCELLED * (uu.max(initial=0.0) + vv.max(initial=0.0)) > D2
    if np.count_nonzero(near) * 20 > D2.size:
        near = CANCELLED * (uu[:, None] + vv) > D2
    i, j = np.divmod(np.flatnonzero(near), max(len(Z), 1))  # faster than the indices of a matrix
    lost = CANCELLED * (uu[i] + vv[j]) > D2[i, j]
    i, j = i[lost], j[lost]
    if len(i) * 20 > D2.size:
        return np.asarray(cdist(X, Z, "sqeuclidean"))
    for pairs in row_blocks(len(i), rows_per_block(X.shape[1])):
        D2[i[pairs], j[pairs]] = np.square(X[i[pairs]] - Z[j[pairs]]).sum(axis=1)
    return D2


def _onnx_sum(graph: OnnxGraph, rows: str, Z: Array, of: Callable[[str], str]) -> str:
    """Sum over the features of a function of the differences between new rows and Z."""
    total = ""
    for f in range(Z.shape[1]):
        x = graph.node("Gather", rows, graph.indices([f]), axis=1)
        part = of(graph.node("Sub", x, graph.array(Z[:, f])))
        total = graph.node("Add", total, part) if total else part
    return total
