"""Rows and features that make leave-one-out errors too small: near duplicates, leaks."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree
from scipy.spatial.distance import pdist

from .._compute.arrays import Array, Indices, fixed_sample, weighted_std

# Rows are near duplicates if they differ by less than this share of a small distance.
NEARLY_EQUAL = 1e-3
# The small distance is this quantile of the distances between this many rows.
QUANTILE, PAIR_ROWS = 0.2, 300


def near_duplicates(X: Array, w: Array) -> Indices:
    """Label of each row, the same for rows that are nearly equal in all features."""
    std = weighted_std(X, w)
    Z = (X - X.mean(axis=0)) / np.where(std > 0, std, 1.0)
    near = NEARLY_EQUAL * float(np.quantile(pdist(Z[fixed_sample(len(Z), PAIR_ROWS)]), QUANTILE))
    pairs = KDTree(Z).query_pairs(near, output_type="ndarray")
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(X), len(X)))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.intp)


def r2_alone(x: Array, y: Array, w: Array) -> float:
    """R2 from one feature alone, by its neighbours in order; averaged over the targets that vary.

    A row is predicted by the mean of the other rows with its value or, if there are none, on the
    line between the means at the next values on both sides. This follows y if there is no noise;
    with noise, it is better to treat the values of about sqrt(n) neighbours as equal. The larger R2
    is returned. x of shape (n,), y of shape (n, k), weights w of shape (n,).
    """
    # Rounded, because features mapped back from a metric differ in their last digits.
    digits = np.round((x - x.min()) * (1e9 / (np.ptp(x) or 1.0)))
    ranks = np.searchsorted(np.sort(digits), digits)  # of equal values, the same
    together = np.floor(ranks / np.sqrt(len(x)))
    return max(_r2_between(values, y, w) for values in (digits, together))


def _r2_between(x: Array, y: Array, w: Array) -> float:
    """R2 of predictions from the other rows with the same value, or from the next values."""
    values, group = np.unique(x, return_inverse=True)
    if len(values) < 2:
        return 0.0
    sums = np.column_stack([np.bincount(group, weights=w * column) for column in y.T])
    weights = np.bincount(group, weights=w)
    means = sums / weights[:, None]
    left = np.maximum(np.arange(len(values)) - 1, 0)
    right = np.minimum(np.arange(len(values)) + 1, len(values) - 1)
    left[0], right[-1] = right[0], left[-1]
    gap = values[right] - values[left]
    zero = np.zeros(len(values))
    share = np.divide(values - values[left], gap, out=zero, where=gap > 0)  # 0 at both ends
    between = means[left] + share[:, None] * (means[right] - means[left])
    rest = (weights[group] - w)[:, None]
    some = rest > 1e-9 * weights[group, None]  # and not rounding alone
    others = np.divide(sums[group] - w[:, None] * y, rest, out=between[group], where=some)
    variance = np.square(weighted_std(y, w))
    vary = variance > 0
    errors = np.average(np.square(y - others), axis=0, weights=w)
    return float((1 - errors[vary] / variance[vary]).mean()) if vary.any() else 0.0
