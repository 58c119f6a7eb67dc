"""Refits without some rows: the part of the standard errors that comes from learning the metric.

Standard errors with a fixed metric ignore that a learned metric depends on the noise, too.
Therefore the metric is learned again without each of some groups of rows, keeping kernel, kind,
number of rounds, bandwidths and penalties, and the function is fitted to the remaining rows. A
delete-a-group jackknife of these fits includes both parts of the variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._compute.arrays import Array, Indices, weighted_mean
from .._compute.threads import in_threads, one_blas_thread
from .._rows.merging import merged
from .._solvers.exact import Centred, solve_exact
from .metric import scaled_map
from .rounds import LearningRows, Rounds, standardised
from .training import Penalty, Tuning

if TYPE_CHECKING:
    from .._geometry.maps import FeatureMap
    from .._solvers.function import FittedFunction

# Groups of rows that are left out, one at a time.
GROUPS = 20
# Refits use at most this many rows: twenty refits to 1500 rows would take longer than a fit.
REFIT_ROWS = 1000


@dataclass(frozen=True)
class Refits:
    """Fits to at most REFIT_ROWS of the rows.

    Attributes
    ----------
    whole : the function, fitted to these rows in its own metric
    parts : functions fitted without one group of rows each, with the metric learned again
    """

    whole: FittedFunction
    parts: Sequence[FittedFunction]


@dataclass(frozen=True)
class Refitting:
    """Fits of a function in a learned metric to rows with other weights.

    Attributes
    ----------
    function : the function
    kind, tunings : kind of the metric, bandwidth and penalty of each round
    alike : whether all targets count equally when the metric is learned
    X, y, w : training rows as given; rows of weight zero have arbitrary X and y
    order : the rows of positive weight in random order
    """

    function: FittedFunction
    kind: str
    tunings: Sequence[Tuning]
    alike: bool
    X: Array
    y: Array
    w: Array
    order: Indices

    def relearned(self, w: Array) -> FittedFunction:
        """The function fitted to rows with these weights, in a metric learned from them."""
        found, function = merged(self.X, self.y, w), self.function
        rank = np.empty(len(w), dtype=np.intp)
        rank[self.order] = np.arange(len(self.order))
        some = np.argsort(rank[found.first])  # the first rows must be a random sample
        y, centred = found.y[some], function.kind != "none"
        y = standardised(y, found.w[some], centred=centred) if self.alike else y
        rows = LearningRows(self.X[found.first[some]], y, found.w[some] / found.w.mean())
        rounds = Rounds(function.space, Penalty(), centred=centred)
        start = scaled_map(rows, function.mapping.warp if function.mapping else None)
        fit = self.fitted(w, rounds.relearned(rows, start, self.kind, self.tunings))
        return replace(fit, solved={})  # only coefficients: n x n arrays of all fits are too large

    def fitted(self, w: Array, mapping: FeatureMap | None) -> FittedFunction:
        """The function fitted to rows with these weights, in a given metric."""
        found, function = merged(self.X, self.y, w), self.function
        mean = weighted_mean(found.y, found.w)
        mean = np.zeros_like(mean) if function.kind == "none" else mean
        X = self.X[found.first]
        Z = X if mapping is None else mapping(X)
        rows = Centred(found.y - mean, found.w, mean, found.given(self.y, w))
        pairs = function.space.pairs(Z)
        model = solve_exact(pairs, function.sigma, rows, function.lams, function.kind)
        parts: dict[str, Any] = {"dual_coef": model.dual_coef, "intercept": model.intercept}
        return replace(function, Z=Z, solved=model, mapping=mapping, Z_given=X, **parts)


def refits_of(
    function: FittedFunction, learning: dict[str, Any], labels: Indices | None, *, alike: bool
) -> Refits:
    """Refits of an exact model, whose metric was learned as `learning` says.

    Groups are of random rows, or of whole clusters if `labels` number the cluster of each row.
    """
    rows = Centred.restored(function.model.state())
    y = rows.y + rows.mean
    if rows.given is not None:
        y = y[rows.given.group] + rows.given.within
    X, w = function.training_rows()
    rng = np.random.default_rng(0)  # so that errors of a model do not change between calls
    order = rng.permutation(len(w))
    order = order[w[order] > 0]
    tunings = [Tuning(ratio, lam) for ratio, lam in learning["rounds"]]
    refitting = Refitting(function, learning["kind"], tunings, alike, X, y, w, order)
    group = groups_of(len(w), order, labels, rng)
    sample = np.zeros(len(w))
    sample[order[:REFIT_ROWS]] = 1.0

    def without(g: int) -> FittedFunction:
        others = w * (group != g)
        some = others * sample
        return refitting.relearned(some if some.any() else others)

    with one_blas_thread():
        whole = function
        if len(order) > REFIT_ROWS:
            whole = refitting.fitted(w * sample, function.mapping)
        return Refits(whole, in_threads(without, range(int(group.max()) + 1)))


def groups_of(n: int, order: Indices, labels: Indices | None, rng: np.random.Generator) -> Indices:
    """Group number of each of n rows: random for rows in `order`, -1 for all others."""
    group = np.full(n, -1)
    if labels is None:
        group[order] = np.arange(len(order)) % GROUPS
        return group
    clusters = rng.permutation(int(labels[order].max()) + 1) % GROUPS
    group[order] = clusters[labels[order]]
    return group
