"""Exact diameter and neighbour distances of rows, without an n x n matrix."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from ._checks import Array, Indices
from ._distances import geodesic_distances, row_blocks, rows_per_block


def diameter(X: Array, metric: str = "euclidean") -> float:
    """Largest distance between two rows, exactly, with memory O(n p)."""
    if metric == "precomputed":
        return float(X.max())
    if metric == "geodesic":
        return _largest_geodesic(X)
    if X.shape[1] == 1:
        return float(X.max() - X.min())
    return _pruned_diameter(X)


def trimmed_diameter(X: Array, share: float) -> float:
    """Diameter after the given share of rows, those farthest from the centre, is left out.

    The centre is the median of each feature, which outliers do not move.
    """
    r2 = np.square(X - np.median(X, axis=0)).sum(axis=1)
    keep = len(X) - int(share * len(X))
    return diameter(X[np.argsort(r2, kind="stable")[:keep]])


def _pruned_diameter(X: Array) -> float:
    """Diameter from the outside in.

    With r the distance to the mean, rows i and j are at most r_i + r_j apart. A few sweeps to
    the farthest row give a lower bound; rows that cannot beat it together with the outermost
    row are dropped, and the rest is compared in order of r until no pair left can beat it.
    """
    # Any centre will do; a product with ones is the fastest mean.
    rows, X = X, X - np.full(len(X), 1 / len(X)) @ X
    r2 = np.einsum("ij,ij->i", X, X)
    best = _sweep(X, r2, rows)
    r_max = np.sqrt(r2.max())
    # The margin covers rounding in r; a row kept for nothing costs little.
    reach = max(best * (1 - 1e-9) - r_max, 0.0)
    kept = np.flatnonzero(r2 >= reach**2)
    kept = kept[np.argsort(-r2[kept])]
    if 2 * np.count_nonzero(np.diff(r2[kept])) < len(kept):  # many rows are equal, it seems
        _, first = np.unique(X[kept], axis=0, return_index=True)
        kept = kept[np.sort(first)]
    return max(best, _outside_in(X[kept], np.sqrt(r2[kept]), best, rows, kept))


def _sweep(X: Array, r2: Array, rows: Array) -> float:
    """Lower bound on the diameter: walk from farthest row to farthest row.

    Lengths are those between the rows as they were given: to the last digit they then depend on
    the two rows alone, not on the others and their centre.
    """
    best, a = 0.0, int(r2.argmax())
    for _ in range(4):
        d2 = r2 - X @ (2.0 * X[a])
        b = int(d2.argmax())
        length = float(np.linalg.norm(rows[a] - rows[b]))
        if length <= best:
            break
        best, a = length, b
    return best


def _outside_in(X: Array, r: Array, best: float, rows: Array, kept: Indices) -> float:
    """Largest distance between rows sorted by falling r, if it beats `best`."""
    margin = 1 + 1e-12
    start, size = 0, 4
    while start + 1 < len(X) and (r[start] + r[start + 1]) * margin > best:
        # Rows after `stop` cannot beat `best` even with the outermost row of the block.
        stop = int(np.searchsorted(-r, -(best - r[start]) * (1 - 1e-12), side="right"))
        stop = max(stop, start + 2)  # on a sphere rounding alone decides
        block = slice(start, min(start + min(size, rows_per_block(stop - start)), stop))
        D2 = cdist(X[block], X[start:stop], "sqeuclidean")
        i, j = np.unravel_index(D2.argmax(), D2.shape)
        ends = rows[kept[start + i]], rows[kept[start + j]]
        best = max(best, float(np.linalg.norm(ends[0] - ends[1])))
        # Any block may end the search, so that the first ones are small.
        start, size = block.stop, min(2 * size, 32)
    return best


def _largest_geodesic(X: Array) -> float:
    blocks = row_blocks(len(X), rows_per_block(len(X)))
    return max(float(geodesic_distances(X[rows], X[rows.start :]).max()) for rows in blocks)


def neighbour_spacing(X: Array, metric: str = "euclidean") -> tuple[float, int]:
    """Median distance of nearest neighbours among distinct rows, and how many rows were equal."""
    if metric == "precomputed":
        return _given_spacing(X)
    distinct = np.unique(X, axis=0)
    if len(distinct) < 2:
        return 0.0, len(X) - len(distinct)
    if metric == "geodesic":
        distances = _geodesic_neighbours(distinct)
    else:
        distances = _euclidean_neighbours(distinct)
    return float(np.median(distances)), len(X) - len(distinct)


def _given_spacing(D: Array) -> tuple[float, int]:
    """The same from a matrix of distances, where a zero off the diagonal is an equal row."""
    n = len(D)
    first_equal = np.fromiter((np.argmax(row == 0) for row in D), dtype=np.intp, count=n)
    distinct = np.flatnonzero(first_equal == np.arange(n))
    if len(distinct) < 2:
        return 0.0, n - len(distinct)
    nearest = [np.partition(D[i, distinct], 1)[1] for i in distinct]
    return float(np.median(nearest)), n - len(distinct)


def _euclidean_neighbours(X: Array) -> Array:
    # With many columns scikit-learn expands |x - z|^2, which loses digits far from the origin.
    centred = X - np.median(X, axis=0)
    _, found = NearestNeighbors(n_neighbors=2).fit(centred).kneighbors(centred)
    # A row's own index need not come first where distances are rounded to zero.
    other = np.where(found[:, 0] == np.arange(len(X)), found[:, 1], found[:, 0])
    return np.asarray(np.linalg.norm(X - X[other], axis=1))


def _geodesic_neighbours(X: Array) -> Array:
    nearest = np.empty(len(X))
    for rows in row_blocks(len(X), rows_per_block(len(X))):
        D = geodesic_distances(X[rows], X)
        D[np.arange(len(D)), np.arange(rows.start, rows.stop)] = np.inf
        nearest[rows] = D.min(axis=1)
    return nearest


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
    values = np.linalg.eigvalsh(G)
    return max(int((values > 0.01 * values[-1]).sum()), 1)
