"""Exact diameters and neighbour distances of rows, without an n x n matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh
from scipy.spatial.distance import cdist

from .._compute.arrays import Array, Indices, fixed_sample, rows_per_block
from .._compute.threads import one_blas_thread

# The largest distance between some rows and others, or all, and which of the others has it.
Pair = tuple[float, int]
Farthest = Callable[[Indices, Indices | slice], Pair]

# Rows whose mean is a centre, and how far it may be from the origin to do without another one, as
# a share of the distance of the farthest row.
CENTRE_ROWS = 256
NEAR_ORIGIN = 0.1

# Pairs that are compared as they are: to look for equal rows first would take longer.
FEW_PAIRS = 1 << 18

# Multiplications up to which BLAS takes one thread without being told, which takes a while.
ONE_THREAD = 1 << 18


def euclidean_diameter(X: Array) -> float:
    """Largest Euclidean distance between two rows, with memory O(n p)."""
    if X.shape[1] == 1:
        return float(X.max() - X.min())
    r2, some = np.einsum("ij,ij->i", X, X), X[:: 1 + len(X) // CENTRE_ROWS]
    centre = some.sum(axis=0) / len(some)
    # Any centre will do: rows about the origin, as standardised ones are, stay where they are.
    if centre @ centre > NEAR_ORIGIN**2 * r2.max():
        X = X - centre
        r2 = np.einsum("ij,ij->i", X, X)

    def farthest(some: Indices, others: Indices | slice) -> Pair:
        D2 = (-2.0 * X[some]) @ X[others].T  # |x - z|^2 expanded: at the far end nothing cancels
        D2 += r2[others]
        D2 += r2[some][:, None]
        a, b = divmod(int(D2.argmax()), D2.shape[1])
        b = b if isinstance(others, slice) else int(others[b])
        step = X[some[a]] - X[b]
        return math.sqrt(step @ step), b

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
    with _one_thread_for(X.size):
        best = _sweep(int(r.argmax()), farthest)
    # The margin covers rounding in r; a row kept for nothing costs little.
    least = best * (1 - 1e-9)
    (kept,) = (r >= least - r.max()).nonzero()
    outer = kept[2 * r[kept] >= least]
    if len(outer) == 1:  # the sweep has compared it with all rows
        return best
    pairs = len(outer) * len(kept)
    if pairs > FEW_PAIRS and 2 * len(np.unique(r[outer])) < len(outer):  # many rows are equal
        kept = kept[np.unique(X[kept], axis=0, return_index=True)[1]]
    with _one_thread_for(pairs * X.shape[1]):
        return _outside_in(r, kept, best, farthest)


def _one_thread_for(multiplications: int) -> Any:
    """Context for small products, in which BLAS threads would only wait for each other."""
    return nullcontext() if multiplications <= ONE_THREAD else one_blas_thread()


def _sweep(a: int, farthest: Farthest) -> float:
    """Lower bound on the diameter: walk from farthest row to farthest row."""
    best = 0.0
    for _ in range(3):
        distance, a = farthest(np.array([a]), slice(None))
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
