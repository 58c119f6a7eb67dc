"""Exact diameters and neighbour distances of rows, without an n x n matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigvalsh
from scipy.spatial.distance import cdist

from .._compute.arrays import Array, Indices, fixed_sample, rows_per_block
from .._compute.threads import one_blas_thread

# The largest distance between some rows and others, or all, and which of the others has it.
Pair = tuple[float, int]
Farthest = Callable[[Indices, Indices | slice], Pair]


def euclidean_diameter(X: Array) -> float:
    """Largest Euclidean distance between two rows, with memory O(n p)."""
    if X.shape[1] == 1:
        return float(X.max() - X.min())
    n, p = X.shape
    V = np.empty((n, p + 1))  # rows [x, |x|^2], so that squares of distances are one product
    # Any centre will do; a product with ones is the fastest mean.
    X = np.subtract(X, np.full(n, 1 / n) @ X, out=V[:, :p])
    r2 = np.einsum("ij,ij->i", X, X, out=V[:, p])

    def farthest(some: Indices, others: Indices | slice) -> Pair:
        U = -2.0 * V[some]
        U[:, p] = 1.0
        D2 = U @ V[others].T  # less |x|^2 of some; at the far end nothing cancels
        each = D2.argmax(axis=1)
        a = int((D2[np.arange(len(some)), each] + r2[some]).argmax())
        b = int(each[a]) if isinstance(others, slice) else int(others[each[a]])
        return float(np.linalg.norm(X[some[a]] - X[b])), b

    with one_blas_thread():  # many small products: threads would wait for each other
        return _pruned_diameter(X, np.sqrt(r2), farthest)


def cityblock_diameter(X: Array) -> float:
    """Largest city-block distance between two rows, with memory O(n p)."""
    if X.shape[1] == 1:
        return float(X.max() - X.min())

    def farthest(some: Indices, others: Indices | slice) -> Pair:
        D = cdist(X[some], X[others], "cityblock")
        b = int(D.argmax()) % D.shape[1]
        return float(D.max()), b if isinstance(others, slice) else int(others[b])

    return _pruned_diameter(X, np.abs(X - np.median(X, axis=0)).sum(axis=1), farthest)


def _pruned_diameter(X: Array, r: Array, farthest: Farthest) -> float:
    """Diameter from the outside in.

    With r the distance to a centre, rows i and j are at most r_i + r_j apart. A few sweeps to
    the farthest row give a lower bound. Rows that cannot beat it together with the outermost row
    are dropped; of the rest, those that are the outer ones of a pair that could are compared with
    all others.
    """
    best = _sweep(int(r.argmax()), farthest)
    # The margin covers rounding in r; a row kept for nothing costs little.
    least = best * (1 - 1e-9)
    kept = np.flatnonzero(r >= least - r.max())
    outer = kept[2 * r[kept] >= least]
    if 2 * len(np.unique(r[outer])) < len(outer):  # many rows are equal, it seems
        kept = kept[np.unique(X[kept], axis=0, return_index=True)[1]]
    return _outside_in(r, kept, best, farthest)


def _sweep(a: int, farthest: Farthest) -> float:
    """Lower bound on the diameter: walk from farthest row to farthest row."""
    best = 0.0
    for _ in range(4):
        distance, a = farthest(np.array([a]), slice(None))
        distance *= 1 - 1e-12  # not above the true one, whatever the rounding
        if distance <= best:
            break
        best = distance
    return best


def _outside_in(r: Array, kept: Indices, best: float, farthest: Farthest) -> float:
    """Largest distance between rows that are kept, if it beats `best`."""
    margin = 1 + 1e-12
    is_outer = 2 * r[kept] * margin >= best
    outer = kept[is_outer]
    outer, start, size = outer[np.argsort(-r[outer])], 0, 32
    order = np.concatenate([outer, kept[~is_outer]])
    while start < len(outer) and 2 * r[outer[start]] * margin > best:
        others = order[start:]
        # Others cannot beat `best` even with the outermost row of the block.
        others = others[(r[others] + r[outer[start]]) * margin >= best]
        stop = min(start + min(size, rows_per_block(len(others))), len(outer))
        best = max(best, farthest(outer[start:stop], others)[0])
        # Any block may end the search, so that the first ones are small.
        start, size = stop, min(2 * size, 256)
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
    from sklearn.neighbors import NearestNeighbors  # takes long to import, and few rules need it

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
    on at most `largest` rows, drawn at random. Euclidean distances of features that are neither
    degenerate nor badly scaled give back the number of features.
    """
    some = fixed_sample(len(D), largest)
    G = np.square(D[np.ix_(some, some)])
    G = G - G.mean(axis=0)
    G = -0.5 * (G - G.mean(axis=1)[:, None])
    values = eigvalsh(G)
    return max(int((values > 0.01 * values[-1]).sum()), 1)
