"""Rows and features that make leave-one-out errors too small: near duplicates, leaks."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree
from scipy.spatial.distance import pdist

from .._compute.arrays import Array, Indices, evenly_spaced
from .gains import GAIN_ROWS, fit_at, r2_of
from .training import TrainingData, data_in_memory

# Rows are near duplicates within this share of a small distance between two rows.
NEARLY_EQUAL = 1e-3
# That distance: this quantile of the pairs of so many rows.
QUANTILE, PAIR_ROWS = 0.2, 300


def near_duplicates(X: Array) -> Indices:
    """Label of each row, the same for rows that are nearly equal in all features."""
    std = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(std > 0, std, 1.0)
    near = NEARLY_EQUAL * float(np.quantile(pdist(Z[evenly_spaced(len(Z), PAIR_ROWS)]), QUANTILE))
    pairs = KDTree(Z).query_pairs(near, output_type="ndarray")
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(X), len(X)))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.intp)


def r2_of_groups(
    data: TrainingData, group: Indices, sigma: float, lam: Array
) -> tuple[float, float]:
    """Leave-one-out R2 if rows leave one by one, and if groups of rows leave together.

    Groups are drawn at random, up to the rows of a sample. A group that leaves as a whole is one
    row with its total weight and mean target.
    """
    order = np.random.default_rng(0).permutation(int(group.max()) + 1)
    kept = order[np.cumsum(np.bincount(group)[order]) <= GAIN_ROWS]
    rows = np.flatnonzero(np.isin(group, kept))
    part, group = data.part(rows, capped=True), np.unique(group[rows], return_inverse=True)[1]
    _, first = np.unique(group, return_index=True)
    w: Array = np.bincount(group, weights=part.w).astype(np.float64)
    sums = [np.bincount(group, weights=part.w * column) for column in part.targets.T]
    options: dict[str, Any] = {"penalty": part.penalty, "has_intercept": part.has_intercept}
    y = np.column_stack(sums) / w[:, None]
    merged = data_in_memory(part.X[first], y, w, part.space, capped=True, **options)
    sigma = sigma / data.carried_from(part)
    return r2_of(part, fit_at(part, sigma, lam)), r2_of(merged, fit_at(merged, sigma, lam))


def r2_alone(x: Array, y: Array) -> float:
    """R2 from one feature alone, by its neighbours in order: the mean over the targets that vary.

    A row is predicted by the mean of the other rows with its value, or else on the line between
    the means at the next values on both sides. This follows y where there is no noise; where
    there is, the same for the values of about sqrt(n) neighbours taken as one is better, and the
    larger R2 is returned. x of shape (n,), y of shape (n, k).
    """
    # Rounded, as features that come back from a metric differ in their last digits.
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
