"""Rows and features that make leave-one-out errors too small: near duplicates, leaks."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree
from scipy.spatial.distance import pdist

from .._compute.arrays import Array, Indices, fixed_sample

# Rows are near duplicates if they differ by less than this share of a small distance.
NEARLY_EQUAL = 1e-3
# The small distance is this quantile of the distances between this many rows.
QUANTILE, PAIR_ROWS = 0.2, 300


def near_duplicates(X: Array) -> Indices:
    """Label of each row, the same for rows that are nearly equal in all features."""
    std = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(std > 0, std, 1.0)
    near = NEARLY_EQUAL * float(np.quantile(pdist(Z[fixed_sample(len(Z), PAIR_ROWS)]), QUANTILE))
    pairs = KDTree(Z).query_pairs(near, output_type="ndarray")
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(X), len(X)))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.intp)


def r2_alone(x: Array, y: Array) -> float:
    """R2 from one feature alone, by its neighbours in order; averaged over the targets that vary.

    A row is predicted by the mean of the other rows with its value or, if there are none, on the
    line between the means at the next values on both sides. This follows y if there is no noise;
    with noise, it is better to treat the values of about sqrt(n) neighbours as equal. The larger R2
    is returned. x of shape (n,), y of shape (n, k).
    """
    # Rounded, because features mapped back from a metric differ in their last digits.
    digits = np.round((x - x.min()) * (1e9 / (np.ptp(x) or 1.0)))
    ranks = np.searchsorted(np.sort(digits), digits)  # of equal values, the same
    together = np.floor(ranks / np.sqrt(len(x)))
    return max(_r2_between(values, y) for values in (digits, together))


def _r2_between(x: Array, y: Array) -> float:
    """R2 of predictions from the other rows with the same value, or from the next values."""
    values, group, counts = np.unique(x, return_inverse=True, return_counts=True)
    if len(values) < 2:
        return 0.0
    sums = np.column_stack([np.bincount(group, weights=column) for column in y.T])
    means = sums / counts[:, None]
    left = np.maximum(np.arange(len(values)) - 1, 0)
    right = np.minimum(np.arange(len(values)) + 1, len(values) - 1)
    left[0], right[-1] = right[0], left[-1]
    gap = values[right] - values[left]
    zero = np.zeros(len(values))
    share = np.divide(values - values[left], gap, out=zero, where=gap > 0)  # 0 at both ends
    between = means[left] + share[:, None] * (means[right] - means[left])
    others = (sums[group] - y) / np.maximum(counts - 1, 1)[group, None]
    predicted = np.where(counts[group, None] > 1, others, between[group])
    variance = np.square(y - y.mean(axis=0)).mean(axis=0)
    vary = variance > 0
    errors = np.square(y - predicted).mean(axis=0)
    return float((1 - errors[vary] / variance[vary]).mean()) if vary.any() else 0.0
