"""Merging of duplicate rows into one row with their total weight and mean target.

K + lambda I with a row repeated w times has the same solution as one row of weight w with the mean
of its targets. So duplicates are merged before the fit, and criteria leave out a merged row as a
whole: a weight of two is exactly the same as two equal rows. Single observations are left out only
where candidates are compared and equal rows differ in y.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import fdtrc

from .._compute.arrays import TINY, Array, Indices, are_whole

# p-value below which the means of rows are taken to differ.
CHANCE = 1e-3

# Observations are replicates if rows with several of them differ in y at least this often, relative
# to what is expected by chance.
MOST = 0.5


@dataclass(frozen=True)
class Merged:
    """Distinct rows of positive weight, and how they are related to the rows as given.

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
        """Whether no row was merged or dropped."""
        return len(self.first) == len(self.group)

    def given(self, y: Array, w: Array | None) -> GivenRows:
        """The rows as given, with their targets y (n, k) and weights w, or None for ones."""
        within = y - np.where(self.group[:, None] >= 0, self.y[self.group], 0.0)
        return GivenRows(self.group, within, np.ones(len(y)) if w is None else w)


@dataclass(frozen=True)
class GivenRows:
    """The rows as they were given, in terms of the distinct rows of the model.

    Attributes
    ----------
    group : for each row, the number of its distinct row; -1 for a weight of zero
    within : y minus the mean of its group, of shape (n, k); y itself for a weight of zero
    weights : weight of each row
    """

    group: Indices
    within: Array
    weights: Array

    def residuals(self, of_groups: Array) -> Array:
        """Residuals of all rows, from those of the distinct rows."""
        some = self.group >= 0
        found = self.within.copy()
        found[some] += of_groups[self.group[some]]
        return found

    def of(self, targets: slice) -> GivenRows:
        """The rows with only some of the targets."""
        return replace(self, within=self.within[:, targets])

    def weighed(self) -> GivenRows:
        """Only the rows of positive weight."""
        some = self.group >= 0
        if some.all():
            return self
        return GivenRows(self.group[some], self.within[some], self.weights[some])


@dataclass(frozen=True)
class Replicates:
    """Observations of rows that were merged, sorted by row.

    Attributes
    ----------
    row : for each observation, the number of its row
    d : y minus the mean of the row, of shape (observations, k)
    weight : weight of the observation in that mean
    leaves : weight that is removed when one observation is left out: 1 if weights are whole
        numbers, which count observations, and otherwise all of it
    """

    row: Indices
    d: Array
    weight: Array
    leaves: Array

    def some(self, rows: Indices) -> Replicates:
        """The observations of some of the rows, in the order of these rows."""
        first = np.searchsorted(self.row, rows)
        sizes = np.searchsorted(self.row, rows, side="right") - first
        new = np.repeat(np.arange(len(rows)), sizes)
        at = first[new] + np.arange(len(new)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return Replicates(new, self.d[at], self.weight[at], self.leaves[at])

    def explain(self, y: Array, w: Array) -> bool:
        """Whether the means y (g, k) of rows differ significantly, by an F test for each target."""
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

        E (g, ..., k) and `ones` are residuals e of the targets y (g, k), and e_1 of a target of
        ones, for models without the whole row; `left` is 1 - h, with h the leverage of the row.
        `ones` and `left` broadcast against E. Without an observation of weight u, the mean of y
        decreases by u (y + d) / (total - u), where `total` is the weight of all rows. The residual
        of the observation is

            (e (1 - h) + d + u (y + d) / (total - u) e_1 (1 - h)) / (1 - h u / w),

        and e_1 is zero for a model without an intercept.
        """
        i, shape = self.row, (len(self.row), *[1] * (E.ndim - 2), -1)
        share, d = (self.leaves / w[i]).reshape(shape), self.d.reshape(shape)
        falls = (self.leaves / np.maximum(total - self.leaves, TINY))[:, None] * (y[i] + self.d)
        kept = np.maximum(1.0 - (1.0 - left[i]) * share, TINY)
        # The only observation of a row is left out with it: the residual is known even if h = 1.
        scale, kept = np.where(share == 1, 1.0, left[i] / kept), np.where(share == 1, 1.0, kept)
        return scale * (E[i] + ones[i] * falls.reshape(shape)) + d / kept

    def squared_errors(
        self, E: Array, ones: Array, left: Array, y: Array, w: Array, *, total: float
    ) -> Array:
        """Mean square of `errors` over the observations of each row, of shape (g, ..., k)."""
        errors = np.square(self.errors(E, ones, left, y, w, total=total))
        errors *= (self.weight / w[self.row]).reshape(-1, *[1] * (E.ndim - 1))
        return np.add.reduceat(errors, np.searchsorted(self.row, np.arange(len(w))))


def replicates_of(given: GivenRows, means: Array) -> Replicates | None:
    """Observations of the same row, if they differ in y; `means` (g, k) are the means of rows."""
    given = given.weighed()
    order = np.argsort(given.group, kind="stable")
    row, d, weight = given.group[order], given.within[order], given.weights[order]
    leaves = leaving(weight)
    if not are_replicates(row, means[row] + d, weight / leaves):
        return None
    return Replicates(row, d, weight, leaves)


def leaving(w: Array) -> Array:
    """Weights that are removed with single observations, as in `Replicates`."""
    return np.ones(len(w)) if are_whole(w) else w


def are_replicates(row: Indices, y: Array, times: Array) -> bool:
    """Whether observations y (n, k) of the same row, each repeated `times`, are replicates.

    Rows with several observations must contain different y at least MOST times as often as if y did
    not depend on the row. Otherwise they are copies, as in a bootstrap sample, or weights.
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
    """Expected number of sets of these sizes, drawn from all y (n, k), that contain different y.

    Sets of continuous targets always do, sets of labels often.
    """
    unit = np.abs(y).max(axis=0)
    label = row_labels((y / np.where(unit > 0, unit, 1.0)).astype(np.float32))  # up to rounding
    if label is None:
        return float(len(sizes))
    shares = np.bincount(np.unique(label, return_inverse=True)[1].ravel(), times) / times.sum()
    shares, number = np.unique(shares, return_counts=True)
    sizes, sets = np.unique(sizes, return_counts=True)
    return float(sets @ (1.0 - (shares ** sizes[:, None]) @ number))


def merged(X: Array, y: Array, w: Array | None) -> Merged:
    """Merge equal rows of X (n, p), with targets y (n, k) and weights w (n,) or None for ones."""
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
    rank[np.argsort(first)] = np.arange(len(first))  # in the order of first occurrence
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

    Only rows whose products with a fixed vector are equal are compared. With continuous features
    these are hardly ever different rows.
    """
    n, p = X.shape
    mixed = np.einsum("ij,j->i", X, np.cos(np.arange(1.0, p + 1.0)))
    order = np.argsort(mixed, kind="stable")
    same = mixed[order[1:]] == mixed[order[:-1]]
    if not same.any():
        return None
    tied = np.zeros(n, dtype=bool)
    tied[order[1:][same]] = tied[order[:-1][same]] = True
    # Adding zero turns -0.0 into 0.0.
    _, found = np.unique(X[tied] + 0.0, axis=0, return_inverse=True)
    found = found.ravel()
    if found.max() + 1 == len(found):
        return None
    label = np.arange(n)
    label[tied] = n + found
    return label


def distinct_rows(X: Array) -> Array:
    """The distinct rows, in the order of their first occurrence."""
    label = row_labels(X)
    if label is None:
        return X
    return X[np.sort(np.unique(label, return_index=True)[1])]


def merged_block(X: Array, y: Array, w: Array | None) -> tuple[Array, Array, Array]:
    """Distinct rows of a block, their mean targets and total weights."""
    found = merged(X, y, w) if w is None or w.any() else None
    if found is None:
        return X[:0], y[:0], np.empty(0)
    return X if found.is_all else X[found.first], found.y, found.w


def observations(X: Array, y: Array, w: Array | None) -> tuple[Array, Indices, Array, Array]:
    """Distinct rows of a block, and the row, y and weight of each observation, sorted by row."""
    w = np.ones(len(X)) if w is None else w
    if not w.any():
        return X[:0], np.empty(0, dtype=np.intp), y[:0], w[:0]
    found = merged(X, y, w)
    order = np.argsort(found.group, kind="stable")[np.count_nonzero(found.group < 0) :]
    return X[found.first], found.group[order], y[order], w[order]
