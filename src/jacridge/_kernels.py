"""The Gaussian kernel and its gradient, from squared distances."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ._checks import Array, Indices, check_memory
from ._distances import (
    for_blocks,
    row_blocks,
    rows_per_block,
    squared_distances,
    weighted_slopes,
)


def gaussian_kernel(D2: Array, sigma: float) -> Array:
    """exp(-D2 / (2 sigma^2)), a new array."""
    return _exponential(D2.copy(), sigma)


def kernel_block(X: Array, Z: Array, sigma: float, metric: str = "euclidean") -> Array:
    """Kernel between the rows of X and the rows of Z, in one array."""
    return _exponential(squared_distances(X, Z, metric), sigma)


def _exponential(D2: Array, sigma: float) -> Array:
    """The kernel in the place of D2."""
    with np.errstate(over="ignore"):  # a distance of far too many bandwidths: the kernel is 0
        D2 *= -0.5 / sigma**2
    return np.exp(D2, out=D2)


def kernel_product(
    X: Array, Z: Array, coef: Array, sigma: float, metric: str = "euclidean"
) -> Array:
    """K(X, Z) @ coef, by blocks of rows of X."""
    product = np.empty((len(X), *coef.shape[1:]))

    def work(rows: slice) -> None:
        product[rows] = kernel_block(X[rows], Z, sigma, metric) @ coef

    for_blocks(work, len(X), rows_per_block(len(Z)))
    return product


def kernel_slopes(X: Array, Z: Array, coef: Array, sigma: float, metric: str) -> Array:
    """Gradient of K(x, Z) @ coef at each row x of X, of shape (n, p), or (n, k, p)."""
    columns = coef[:, None] if coef.ndim == 1 else coef
    J = np.empty((len(X), columns.shape[1], X.shape[1]))
    for rows in row_blocks(len(X), rows_per_block(len(Z))):
        K = kernel_block(X[rows], Z, sigma, metric)
        for t, c in enumerate(columns.T):
            J[rows, t] = weighted_slopes(K * (-0.5 / sigma**2 * c), X[rows], Z, metric)
    return J[:, 0] if coef.ndim == 1 else J


class Pairs:
    """One n x n array for all bandwidths: squared distances above its diagonal, kernel below.

    A search over sigma computes the distances once; each kernel, and the factor that is
    made of it in place, overwrites the one before.
    """

    def __init__(self, X: Array, metric: str = "euclidean") -> None:
        n = len(X)
        check_memory(
            8 * n * n,
            f"The exact solver with n_samples={n}",
            'Use `solver="nystrom"` with fewer landmarks than rows, which keeps no n x n matrix.',
        )
        self.M: Array = np.empty((n, n))

        def work(rows: slice) -> None:
            Z = X[rows.start :]
            part = X[rows, rows.start :] if metric == "precomputed" else X[rows]
            self.M[rows, rows.start :] = squared_distances(part, Z, metric)

        for_blocks(work, n, rows_per_block(n))

    def kernel(self, sigma: float) -> Array:
        """The Gaussian kernel in the lower triangle, diagonal included; D2 stays above it."""
        n = len(self.M)

        def work(rows: slice) -> None:
            i, j = rows.start, rows.stop
            self.M[rows, :i] = gaussian_kernel(self.M[:i, rows], sigma).T
            # What is below the diagonal is an old factor: its exponential could overflow.
            D2 = np.triu(self.M[rows, rows], 1)
            self.M[rows, i:j] = D2 + np.tril(gaussian_kernel(D2, sigma).T, -1)
            np.fill_diagonal(self.M[rows, rows], 1.0)

        for_blocks(work, n, 128)
        return self.M

    def clusters(self, sigma: float) -> list[Indices] | None:
        """Groups of rows between which the kernel is below 1e-18, if all are small; else None."""
        n, reach2 = len(self.M), -2.0 * np.log(1e-18) * sigma**2
        few = n // 16
        if np.count_nonzero(self.M[:few, few:] < reach2) > n:
            return None  # a few rows tell that rows have many neighbours
        pairs = [_near_pairs(self.M, rows, reach2) for rows in row_blocks(n, rows_per_block(n))]
        i, j = np.concatenate(pairs, axis=1)
        graph = coo_array((np.ones(len(i), dtype=bool), (i, j)), shape=(n, n))
        labels = connected_components(graph, directed=False)[1]
        order = np.argsort(labels, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
        return groups if max(map(len, groups)) <= n // 8 else None

    def block(self, rows: Indices, sigma: float) -> Array:
        """Kernel of some rows, in rising order, in the lower triangle of a new array."""
        D2 = np.triu(self.M[np.ix_(rows, rows)], 1)
        return np.tril(gaussian_kernel(D2, sigma).T)


def _near_pairs(M: Array, rows: slice, reach2: float) -> Indices:
    """Indices of the pairs above the diagonal, in a block of rows, that are near each other."""
    i, j = np.nonzero(M[rows, rows.start :] < reach2)
    above = j > i
    return np.array([i[above] + rows.start, j[above] + rows.start])
