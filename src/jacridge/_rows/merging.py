"""Duplicate rows merged into one, with their total weight and mean target.

K + lambda I with a row repeated w times has the same solution as one row of weight w with the mean
of its targets. So duplicates are merged when rows come in, and criteria leave out a merged row as a
whole: a weight of two is exactly two equal rows. Only where candidates are compared, and equal rows
differ in y, single observations are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import fdtrc

from .._compute.arrays import TINY, Array, Indices, are_whole

# Probability below which means of rows are said to differ.
CHANCE = 1e-3

# How often rows of several observations must differ in y, in units of what chance would do, if
# these are replicates.
MOST = 0.5


@dataclass(frozen=True)
class Merged:
    """Distinct rows of positive weight, and where the rows as given went.

    Attributes
    ----------
    first : indices of the distinct rows among the rows as given
    group : for each row as given, the number of its distinct row; -1 for a weight of zero
    y : weighted means of the targets, of shape (len(first), k)
    w : total weights
    """

    first: Indices
    group: Indices
    y: Array
    w: Array

    @property
    def is_all(self) -> bool:
        """Whether nothing was merged or left out."""
        return len(self.first) == len(self.group)


@dataclass(frozen=True)
class GivenRows:
    """The rows as they were given, beside the distinct rows that a model was fitted to.

    Attributes
    ----------
    group : for each row, the number of its distinct row; -1 for a weight of zero
    within : y less the mean of its group, of shape (n, k); the plain residual for a weight of zero
    weights : weight of each row; None in models that older versions saved
    """

    group: Indices
    within: Array
    weights: Array | None = None

    def residuals(self, of_groups: Array) -> Array:
        """Residuals of all rows from those of the distinct rows."""
        some = self.group >= 0
        found = self.within.copy()
        found[some] += of_groups[self.group[some]]
        return found

    def of(self, targets: slice) -> GivenRows:
        """The rows with some of the targets alone."""
        return replace(self, within=self.within[:, targets])

    def weighed(self) -> GivenRows:
        """The rows of positive weight alone."""
        some = self.group >= 0
        if some.all():
            return self
        weights = None if self.weights is None else self.weights[some]
        return GivenRows(self.group[some], self.within[some], weights)


@dataclass(frozen=True)
class Replicates:
    """Observations of rows that were merged, sorted by row.

    Attributes
    ----------
    row : for each observation, the number of its row
    d : y less the mean of the row, of shape (observations, k)
    weight : of the observation, in that mean
    leaves : weight that leaves with it: one of a whole number, else all of it
    """

    row: Indices
    d: Array
    weight: Array
    leaves: Array

    def some(self, rows: Indices) -> Replicates:
        """Those of some of the rows, in their order."""
        first = np.searchsorted(self.row, rows)
        sizes = np.searchsorted(self.row, rows, side="right") - first
        new = np.repeat(np.arange(len(rows)), sizes)
        at = first[new] + np.arange(len(new)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return Replicates(new, self.d[at], self.weight[at], self.leaves[at])

    def explain(self, y: Array, w: Array) -> bool:
        """Whether the means y (g, k) of rows differ by more than chance, by an F test of each."""
        n, g = float((self.weight / self.leaves).sum()), len(w)
        unit = w.sum() / n
        between = w @ np.square(y - w @ y / w.sum()) / max(g - 1, 1)
        within = self.weight @ np.square(self.d) / (n - g)
        F = between / np.maximum(within, TINY * unit)
        return bool((fdtrc(g - 1, n - g, F) < CHANCE / len(F)).any())

    def errors(
        self, E: Array, ones: Array, left: Array, y: Array, w: Array, *, total: float
    ) -> Array:
        """Residual of each observation for the model without it, of shape (observations, ..., k).

        E (g, ..., k) and `ones` are residuals of the targets y (g, k), and of a target of ones, for
        models without the whole row; `left` is 1 - h, with h the leverage of the row. The last two
        broadcast against E. Without an observation of weight u the mean of all y, at which they are
        centred, falls by u (y + d) / (total - u), with `total` the weight of all rows. Its residual
        is

            (e (1 - h) + d + u (y + d) / (total - u) e_1 (1 - h)) / (1 - h u / w),

        with e_1 the entry of `ones`, zero for a model without an intercept.
        """
        i, shape = self.row, (len(self.row), *[1] * (E.ndim - 2), -1)
        share, d = (self.leaves / w[i]).reshape(shape), self.d.reshape(shape)
        falls = (self.leaves / np.maximum(total - self.leaves, TINY))[:, None] * (y[i] + self.d)
        kept = np.maximum(1.0 - (1.0 - left[i]) * share, TINY)
        # One observation alone leaves with its row, whose residual is known, also if h = 1.
        scale, kept = np.where(share == 1, 1.0, left[i] / kept), np.where(share == 1, 1.0, kept)
        return scale * (E[i] + ones[i] * falls.reshape(shape)) + d / kept

    def squared_errors(
        self, E: Array, ones: Array, left: Array, y: Array, w: Array, *, total: float
    ) -> Array:
        """Mean squared `errors` of the observations of each row, of shape (g, ..., k)."""
        errors = np.square(self.errors(E, ones, left, y, w, total=total))
        errors *= (self.weight / w[self.row]).reshape(-1, *[1] * (E.ndim - 1))
        return np.add.reduceat(errors, np.searchsorted(self.row, np.arange(len(w))))


def replicates_of(given: GivenRows, means: Array) -> Replicates | None:
    """Observations of the same row, if these differ in y; `means` (g, k) are those of the rows."""
    given = given.weighed()
    if given.weights is None:
        return None
    order = np.argsort(given.group, kind="stable")
    row, d, weight = given.group[order], given.within[order], given.weights[order]
    leaves = leaving(weight)
    if not are_replicates(row, means[row] + d, weight / leaves):
        return None
    return Replicates(row, d, weight, leaves)


def leaving(w: Array) -> Array:
    """Weights that leave with observations: one of a whole number, else all of it."""
    return np.ones(len(w)) if are_whole(w) else w


def are_replicates(row: Indices, y: Array, times: Array) -> bool:
    """Whether observations y (n, k) of the same row are replicates, each there so many `times`.

    Rows of several must differ within themselves at least MOST as often as if y did not depend on
    the row. Else these are copies, as in a bootstrap sample, or weights.
    """
    sizes: Array = np.bincount(row, times).astype(np.float64)
    several = sizes > 1
    if not several.any() or not y.size:
        return False
    first = np.zeros(len(sizes), dtype=np.intp)
    first[row] = np.arange(len(row))
    differ = np.bincount(row, (y != y[first[row]]).any(axis=1))[several]
    count = int(np.count_nonzero(differ))
    return count > 0 and count >= MOST * _differ_by_chance(y, times, sizes[several])


def _differ_by_chance(y: Array, times: Array, sizes: Array) -> float:
    """How many sets of these sizes differ within themselves if they are drawn from all y (n, k).

    Those of continuous targets always do, those of labels often.
    """
    unit = np.abs(y).max(axis=0)
    label = row_labels((y / np.where(unit > 0, unit, 1.0)).astype(np.float32))  # but for rounding
    if label is None:
        return float(len(sizes))
    shares = np.bincount(np.unique(label, return_inverse=True)[1].ravel(), times) / times.sum()
    shares, number = np.unique(shares, return_counts=True)
    sizes, sets = np.unique(sizes, return_counts=True)
    return float(sets @ (1.0 - (shares ** sizes[:, None]) @ number))


def merged(X: Array, y: Array, w: Array | None) -> Merged:
    """Merge equal rows; X of shape (n, p), y of shape (n, k), w of shape (n,) or None for ones."""
    w = np.ones(len(X)) if w is None else w
    kept = np.flatnonzero(w > 0)
    if not len(kept):
        raise ValueError("`sample_weight` must not be all zero, got zeros only.")
    all_kept = len(kept) == len(w)
    label = row_labels(X if all_kept else X[kept])
    if label is None:
        group = np.full(len(w), -1)
        group[kept] = np.arange(len(kept))
        return Merged(kept, group, y if all_kept else y[kept], w if all_kept else w[kept])
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))  # in the order in which rows first come
    inner, first = rank[inverse.ravel()], kept[np.sort(first)]
    group = np.full(len(w), -1)
    group[kept] = inner
    total: Array = np.bincount(inner, weights=w[kept]).astype(np.float64)
    base = y[first]  # so that the mean of equal targets is exact
    sums = [np.bincount(inner, w[kept] * c) for c in (y[kept] - base[inner]).T]
    means = base + np.reshape(sums, (y.shape[1], len(total))).T / total[:, None]
    return Merged(first, group, means, total)


def row_labels(X: Array) -> Indices | None:
    """A label for each row, the same for equal rows; None if all rows differ.

    Rows with the same product with a fixed vector are compared; with continuous features there
    are hardly any others.
    """
    n, p = X.shape
    mixed = np.einsum("ij,j->i", X, np.cos(np.arange(1.0, p + 1.0)))
    order = np.argsort(mixed, kind="stable")
    same = mixed[order[1:]] == mixed[order[:-1]]
    if not same.any():
        return None
    tied = np.zeros(n, dtype=bool)
    tied[order[1:][same]] = tied[order[:-1][same]] = True
    # Adding zero makes -0.0 and 0.0 the same bits.
    _, found = np.unique(X[tied] + 0.0, axis=0, return_inverse=True)
    found = found.ravel()
    if found.max() + 1 == len(found):
        return None
    label = np.arange(n)
    label[tied] = n + found
    return label


def distinct_rows(X: Array) -> Array:
    """The distinct rows, in the order in which they first come."""
    label = row_labels(X)
    if label is None:
        return X
    return X[np.sort(np.unique(label, return_index=True)[1])]


def merged_block(X: Array, y: Array, w: Array | None) -> tuple[Array, Array, Array]:
    """Distinct rows of a block with their mean targets and total weights."""
    found = merged(X, y, w) if w is None or w.any() else None
    if found is None:
        return X[:0], y[:0], np.empty(0)
    return X if found.is_all else X[found.first], found.y, found.w


def observations(X: Array, y: Array, w: Array | None) -> tuple[Array, Indices, Array, Array]:
    """Distinct rows of a block; and of its observations, in their order, the row, y and weight."""
    w = np.ones(len(X)) if w is None else w
    if not w.any():
        return X[:0], np.empty(0, dtype=np.intp), y[:0], w[:0]
    found = merged(X, y, w)
    order = np.argsort(found.group, kind="stable")[np.count_nonzero(found.group < 0) :]
    return X[found.first], found.group[order], y[order], w[order]
