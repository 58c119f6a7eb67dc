"""Exact diameters and neighbour distances of rows, without an n x n matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
from scipy.linalg import eigvalsh
from scipy.spatial.distance import cdist

from .._compute.arrays import Array, fixed_sample, rows_per_block
from .._compute.threads import one_blas_thread

# Function for the largest distance between rows A and rows B, given their distances to a centre.
Longest = Callable[[Array, Array, Array, Array], float]

# Number of rows whose mean is the centre. The origin is used instead if that mean is closer to it
# than this share of the distance of the farthest row.
CENTRE_ROWS = 256
NEAR_ORIGIN = 0.1

# Share of a lower bound that other distances must reach: the margin covers rounding in radii.
MARGIN = 1 - 1e-9

# Up to this many pairs, removing duplicates first costs more than it saves.
FEW_PAIRS = 1 << 18

# Number of outermost rows that are compared with the others at a time: at first, and at most.
SMALLEST_BLOCK, LARGEST_BLOCK = 8, 256
# With at most this many blocks, small ones are as fast.
FEW_BLOCKS = 4

# Up to this many multiplications, BLAS uses one thread anyway; setting the limit takes time.
ONE_THREAD = 1 << 18


def euclidean_diameter(X: Array) -> float:
    """Largest Euclidean distance between two rows, with memory O(n p)."""
    if X.shape[1] == 1:
        return float(X.max() - X.min())
    r2, some = np.einsum("ij,ij->i", X, X), X[:: 1 + len(X) // CENTRE_ROWS]
    centre = some.sum(axis=0) / len(some)
    # Any centre will do: rows that lie about the origin, such as standardised rows, stay in place.
    if centre @ centre > NEAR_ORIGIN**2 * r2.max():
        X = X - centre
        r2 = np.einsum("ij,ij->i", X, X)
    return _pruned_diameter(X, np.sqrt(r2), _longest_euclidean)


def _longest_euclidean(A: Array, r: Array, B: Array, s: Array) -> float:
    D2 = (-2.0 * A) @ B.T  # |x - z|^2 expanded: nothing cancels for large distances
    D2 += s * s
    D2 += (r * r)[:, None]
    i, j = divmod(int(D2.argmax()), len(B))
    step = A[i] - B[j]
    return math.sqrt(step @ step)


def cityblock_diameter(X: Array) -> float:
    """Largest city-block distance between two rows, with memory O(n p)."""
    if X.shape[1] == 1:
        return float(X.max() - X.min())
    return _pruned_diameter(X, np.abs(X - np.median(X, axis=0)).sum(axis=1), _longest_cityblock)


def _longest_cityblock(A: Array, r: Array, B: Array, s: Array) -> float:
    return float(cdist(A, B, "cityblock").max())


def _pruned_diameter(X: Array, r: Array, longest: Longest) -> float:
    """Diameter from the outside in; r, the distances of the rows to a centre, is overwritten.

    Rows i and j are at most r_i + r_j apart. The outermost row, compared with all, gives a lower
    bound. Rows that cannot beat it together with the next one are dropped.
    """
    a = int(r.argmax())
    # For small products BLAS threads would only wait for each other.
    with nullcontext() if X.size <= ONE_THREAD else one_blas_thread():
        best = longest(X[a : a + 1], r[a : a + 1], X, r)
    r[a] = 0.0
    least, most = best * MARGIN, float(r.max())
    if 2 * most < least:
        return best
    (kept,) = (r >= least - most).nonzero()
    kept = kept[(-r[kept]).argsort()]
    r = r[kept]
    outer = np.count_nonzero(2 * r >= least)
    if outer * len(r) > FEW_PAIRS and 2 * len(np.unique(r[:outer])) < outer:  # many are equal
        distinct = np.sort(np.unique(X[kept], axis=0, return_index=True)[1])
        kept, r = kept[distinct], r[distinct]
    most = max(SMALLEST_BLOCK, ONE_THREAD // (X.shape[1] * len(r)))
    # With few blocks, BLAS uses one thread anyway; setting the limit would take as long.
    if outer <= FEW_BLOCKS * most:
        return _outside_in(X.take(kept, axis=0), r, best, longest, most)
    with one_blas_thread():
        return _outside_in(X.take(kept, axis=0), r, best, longest, LARGEST_BLOCK)


def _outside_in(X: Array, r: Array, best: float, longest: Longest, most: int) -> float:
    """Largest distance between rows in order of falling r, or `best`; blocks of `most` rows."""
    start, size = 0, SMALLEST_BLOCK
    while start < len(r) and 2 * r[start] >= best * MARGIN:
        # Others cannot beat `best` even with the outermost row of the block.
        reach = int((-r).searchsorted(r[start] - best * MARGIN, side="right"))
        stop = start + min(size, rows_per_block(reach - start))
        some, others = slice(start, stop), slice(start, reach)
        best = max(best, longest(X[some], r[some], X[others], r[others]))
        # The first blocks are small, because any block may end the search.
        start, size = stop, min(2 * size, most)
    return best


def trimmed_diameter(X: Array, share: float) -> float:
    """Diameter without the given share of rows, those farthest from the centre.

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
    """Median of the smallest distance in each row of D, ignoring the diagonal."""
    if len(D) < 2:
        return 0.0
    return float(np.median([np.partition(row, 1)[1] for row in D]))


def embedding_dimension(D: Array, largest: int = 500) -> int:
    """Number of dimensions that a matrix of distances spans, in place of p.

    It is the number of principal coordinates whose variance exceeds a hundredth of the largest
    variance, on at most `largest` rows drawn at random. For Euclidean distances it equals the
    number of features, if these are neither degenerate nor badly scaled.
    """
    some = fixed_sample(len(D), largest)
    G = np.square(D[np.ix_(some, some)])
    G = G - G.mean(axis=0)
    G = -0.5 * (G - G.mean(axis=1)[:, None])
    values = eigvalsh(G)
    return max(int((values > 0.01 * values[-1]).sum()), 1)
