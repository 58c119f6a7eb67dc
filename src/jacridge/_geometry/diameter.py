"""Exact diameters and neighbour distances of rows, without an n x n matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigvalsh
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from .._compute.arrays import Array, rows_per_block


def euclidean_diameter(X: Array) -> float:
    """Largest Euclidean distance between two rows, with memory O(n p)."""
    if X.shape[1] == 1:
        return float(X.max() - X.min())
    # Any centre will do; a product with ones is the fastest mean.
    X = X - np.full(len(X), 1 / len(X)) @ X
    r2 = np.einsum("ij,ij->i", X, X)

    def from_row(a: int) -> Array:
        return np.sqrt(np.maximum(r2 - X @ (2.0 * X[a]) + r2[a], 0.0))

    return _pruned_diameter(X, np.sqrt(r2), from_row, "euclidean")


def cityblock_diameter(X: Array) -> float:
    """Largest city-block distance between two rows, with memory O(n p)."""
    if X.shape[1] == 1:
        return float(X.max() - X.min())
    r = np.abs(X - np.median(X, axis=0)).sum(axis=1)
    return _pruned_diameter(X, r, lambda a: np.abs(X - X[a]).sum(axis=1), "cityblock")


def _pruned_diameter(X: Array, r: Array, from_row: Callable[[int], Array], metric: str) -> float:
    """Diameter from the outside in.

    With r the distance to a centre, rows i and j are at most r_i + r_j apart. A few sweeps to
    the farthest row give a lower bound; rows that cannot beat it together with the outermost
    row are dropped, and the rest is compared in order of r until no pair left can beat it.
    """
    best = _sweep(X, r, from_row)
    # The margin covers rounding in r; a row kept for nothing costs little.
    kept = np.flatnonzero(r >= best * (1 - 1e-9) - r.max())
    kept = kept[np.argsort(-r[kept])]
    if 2 * np.count_nonzero(np.diff(r[kept])) < len(kept):  # many rows are equal, it seems
        _, first = np.unique(X[kept], axis=0, return_index=True)
        kept = kept[np.sort(first)]
    return _outside_in(X[kept], r[kept], best, metric)


def _sweep(X: Array, r: Array, from_row: Callable[[int], Array]) -> float:
    """Lower bound on the diameter: walk from farthest row to farthest row."""
    best, a = 0.0, int(r.argmax())
    for _ in range(4):
        d = from_row(a)
        b = int(d.argmax())
        if d[b] <= best:
            break
        best, a = float(d[b]) * (1 - 1e-12), b  # not above the true one, whatever the rounding
    return best


def _outside_in(X: Array, r: Array, best: float, metric: str) -> float:
    """Largest distance between rows sorted by falling r, if it beats `best`."""
    margin = 1 + 1e-12
    start, size = 0, 4
    while start + 1 < len(X) and (r[start] + r[start + 1]) * margin > best:
        # Rows after `stop` cannot beat `best` even with the outermost row of the block.
        stop = int(np.searchsorted(-r, -(best - r[start]) * (1 - 1e-12), side="right"))
        stop = max(stop, start + 2)  # on a sphere rounding alone decides
        block = slice(start, min(start + min(size, rows_per_block(stop - start)), stop))
        best = max(best, float(cdist(X[block], X[start:stop], metric).max()))
        # Any block may end the search, so that the first ones are small.
        start, size = block.stop, min(2 * size, 32)
    return best


def trimmed_diameter(X: Array, share: float) -> float:
    """Diameter after the given share of rows, those farthest from the centre, is left out.

    The centre is the median of each feature, which outliers do not move.
    """
    r2 = np.square(X - np.median(X, axis=0)).sum(axis=1)
    keep = len(X) - int(share * len(X))
    return euclidean_diameter(X[np.argsort(r2, kind="stable")[:keep]])


def neighbour_spacing(X: Array, metric: str) -> float:
    """Median distance of nearest neighbours among distinct rows."""
    if len(X) < 2:
        return 0.0
    # With many columns scikit-learn expands |x - z|^2, which loses digits far from the origin.
    centred = X - np.median(X, axis=0)
    _, found = NearestNeighbors(n_neighbors=2, metric=metric).fit(centred).kneighbors(centred)
    # A row's own index need not come first where distances are rounded to zero.
    other = np.where(found[:, 0] == np.arange(len(X)), found[:, 1], found[:, 0])
    return float(
        np.median(np.linalg.norm(X - X[other], ord=2 if metric == "euclidean" else 1, axis=1))
    )


def given_spacing(D: Array) -> float:
    """Median of the smallest distance in each row of D, the diagonal aside."""
    if len(D) < 2:
        return 0.0
    return float(np.median([np.partition(row, 1)[1] for row in D]))


def embedding_dimension(D: Array, largest: int = 500) -> int:
    """Dimensions that a matrix of distances spans: p, where only distances are known.

    The number of principal coordinates whose variance exceeds a hundredth of the largest one,
    on at most `largest` evenly chosen rows. Euclidean distances of features that are neither
    degenerate nor badly scaled give back the number of features.
    """
    step = -(-len(D) // largest)
    G = np.square(D[::step, ::step])
    G = G - G.mean(axis=0)
    G = -0.5 * (G - G.mean(axis=1)[:, None])
    values = eigvalsh(G)
    return max(int((values > 0.01 * values[-1]).sum()), 1)
