"""Rounds of the learned metric: fit, average the gradients, sharpen the metric, fit again.

With G(x) the gradient of the fitted function, M = mean of G G' over the training rows says in which
directions it varies. T M^(1/2) takes the place of the linear map T before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.linalg import LinAlgError

from .._compute.arrays import Array, Indices, weighted_mean
from .._compute.threads import in_threads, one_blas_thread, processors
from .._geometry.maps import FeatureMap, sharpened
from .._rows.merging import merged_block
from .._solvers.cholesky import factor
from .._solvers.spectrum import Spectrum, spectrum
from .training import (
    WIDE_LAMBDAS,
    Penalty,
    TrainingData,
    Tuning,
    capped_weights,
    data_in_memory,
    median_distance,
)

if TYPE_CHECKING:
    from .._geometry.space import Space

# Rows that set bandwidth and penalty within rounds, and rows whose gradients are averaged.
SEARCH_ROWS = 250
GRADIENT_ROWS = 500
# Gradients of several targets that are averaged: with many targets those of fewer rows.
GRADIENTS = 1000

# Bandwidths at which a search for later rows starts, in units of the kernel's own start.
WIDTHS = 2.0 ** np.arange(-2, 8)

# A bandwidth rule within rounds: None is the search for the best leave-one-out error.
RuleInRounds = Callable[[TrainingData], tuple[float, float]]


@dataclass(frozen=True)
class LearningRows:
    """Rows, distinct where a fit learns: features X (n, p), targets y (n, k), weights w.

    The weights of all rows have mean one. The `constant`, of shape (k,), was subtracted from y.
    """

    X: Array
    y: Array
    w: Array
    constant: Array | float = 0.0

    def __len__(self) -> int:
        return len(self.w)

    def part(self, rows: Indices) -> LearningRows:
        """Some of the rows."""
        return replace(self, X=self.X[rows], y=self.y[rows], w=self.w[rows])

    def merged(self) -> LearningRows:
        """The distinct rows, with mean targets and total weights."""
        X, y, w = merged_block(self.X, self.y, self.w)
        return replace(self, X=X, y=y, w=w)

    def less(self, constant: Array) -> LearningRows:
        """The rows with a constant subtracted from y."""
        return replace(self, y=self.y - constant, constant=self.constant + constant)

    @property
    def counts(self) -> Array:
        """Weights of the rows in a comparison."""
        return capped_weights(self.w)


# Training and held-out rows.
Fold: TypeAlias = "tuple[LearningRows, LearningRows]"


def centred_fold(train: LearningRows, test: LearningRows) -> Fold:
    """Training and held-out rows with y centred at the mean of the training rows."""
    mean = weighted_mean(train.y, train.w)
    return train.less(mean), test.less(mean)


def standardised(y: Array, w: Array, *, centred: bool = True) -> Array:
    """Targets of mean square one, and mean zero if `centred`."""
    y = y - weighted_mean(y, w) if centred else y
    deviation = np.sqrt(w @ np.square(y) / w.sum())
    return y / np.where(deviation > 0, deviation, 1.0)


@dataclass(frozen=True)
class Round:
    """A fit to rows after a map."""

    mapping: FeatureMap
    sigma: float
    coef: Array  # (n, k)


@dataclass(frozen=True)
class Rounds:
    """Fits in one space after another metric, with bandwidth and penalty by a rule or a search.

    If they are to predict `later` rows, the search is for the least error on these.
    """

    space: Space
    penalty: Penalty
    rule: RuleInRounds | None = None
    centred: bool = True  # whether targets are, as for a model with an intercept
    later: bool = False

    def fit(self, rows: LearningRows, mapping: FeatureMap, tuning: Tuning) -> Round:
        """Fit to rows after a map."""
        pairs = self.space.pairs(mapping(rows.X))
        sigma = tuning.ratio * median_distance(self.space, pairs.M)
        return Round(mapping, sigma, solution(lambda: pairs.kernel(sigma), rows, tuning.lam))

    def next_map(self, last: Round, rows: LearningRows, kind: str) -> FeatureMap:
        """The map after a fit to these rows, from the average outer product of its gradients."""
        X = last.mapping(rows.X)
        at = slice(0, min(GRADIENT_ROWS, max(100, GRADIENTS // rows.y.shape[1])))
        J = self.space.slopes(X[at], X, last.coef, last.sigma)
        J /= np.abs(J).max() or 1.0  # only their ratios matter, and squares could overflow
        w = rows.w[at] / rows.w[at].sum()
        B = (np.sqrt(w)[:, None, None] * J).reshape(-1, J.shape[2])
        return sharpened(last.mapping, B, kind)

    def tuned(self, rows: LearningRows, mapping: FeatureMap, near: Tuning | None = None) -> Tuning:
        """Bandwidth and penalty by the rule, or by a search on a few rows close to `near`."""
        if self.rule is not None:
            X = mapping(rows.X)
            options: dict[str, Any] = {"penalty": self.penalty, "has_intercept": self.centred}
            sigma, lam = self.rule(data_in_memory(X, rows.y, rows.w, self.space, **options))
            few = X[:SEARCH_ROWS]
            gaps = self.space.distance.gaps(few, few)
            return Tuning(sigma / median_distance(self.space, gaps), lam)
        part = rows.part(np.arange(min(SEARCH_ROWS, len(rows))))
        X = mapping(part.X)
        gaps = self.space.distance.gaps(X, X)
        unit = median_distance(self.space, gaps)

        def at(ratio: float) -> Tuning:
            K = self.space.kernel.of(gaps.copy(), ratio * unit)
            S = spectrum(K, part.y, part.w, centred=self.centred)
            return best_penalty(S, part.counts, self.penalty, ratio)

        start = near.ratio if near else self.space.kernel.start
        return downhill_in(at, start, steps=(3,) if near else (4, 2))

    def tuned_in(
        self, folds: Sequence[Fold], maps: Sequence[FeatureMap], near: Tuning | None = None
    ) -> Tuning:
        """Bandwidth and penalty for all folds: those of the first of the largest training parts.

        For later rows without a rule, those with the least error on the held-out rows of all folds,
        which are predicted with all penalties at each bandwidth that is looked at.
        """
        if self.rule is not None or not self.later:
            i = int(np.argmax([len(train) for train, _ in folds]))
            return self.tuned(folds[i][0], maps[i], near)
        lams, counts = self.penalty.tried(), sum(float(test.counts.sum()) for _, test in folds)

        def errors(mapping: FeatureMap, fold: Fold, ratio: float) -> Array:
            train, test = fold
            X = mapping(train.X)
            gaps = self.space.distance.gaps(X, X)
            sigma = ratio * median_distance(self.space, gaps)
            S = spectrum(self.space.kernel.of(gaps, sigma), train.y, train.w)
            with np.errstate(all="ignore"):  # a penalty of zero may divide by zero
                coef = S.dual_coef(lams).reshape(len(X), -1)
                found = self.space.product(mapping(test.X), X, coef, sigma)
                E = test.y[:, None, :] - found.reshape(len(test), len(lams), -1)
                return np.einsum("i,ilt,ilt->l", test.counts / counts, E, E)

        def at(ratio: float) -> Tuning:
            pairs = zip(maps, folds, strict=True)
            total = np.sum([errors(mapping, fold, ratio) for mapping, fold in pairs], axis=0)
            total = np.where(np.isfinite(total), total, np.inf)
            i = int(np.argmin(total))
            return Tuning(ratio, float(lams[i]), float(total[i]))

        if near is not None:
            return downhill_in(at, near.ratio, steps=(3,))
        # Errors on later rows have several valleys: that of a trend lies far from that of a season.
        starts = in_threads(at, self.space.kernel.start * WIDTHS)
        return downhill_in(at, min(starts, key=lambda each: each.error).ratio, steps=(2,))

    def predict(self, fit: Round, rows: LearningRows, X_new: Array) -> Array:
        """Predictions of a fit to these rows at new rows, of shape (n_new, k)."""
        Z, X = fit.mapping(X_new), fit.mapping(rows.X)
        return self.space.product(Z, X, fit.coef, fit.sigma)

    def learned(
        self, rows: LearningRows, mapping: FeatureMap, kind: str, found: Sequence[Tuning]
    ) -> tuple[FeatureMap, list[Tuning]]:
        """The map after a round with each of these tunings, and the tunings of the rounds.

        A rule for the bandwidth is followed again, as it depends on the number of rows.
        """
        tunings: list[Tuning] = []
        with one_blas_thread():
            for each in found:
                tunings.append(each if self.rule is None else self.tuned(rows, mapping))
                mapping = self.relearned(rows, mapping, kind, tunings[-1:])
        return mapping, tunings

    def relearned(
        self, rows: LearningRows, mapping: FeatureMap, kind: str, tunings: Sequence[Tuning]
    ) -> FeatureMap:
        """The map after a round with each tuning."""
        for tuning in tunings:
            mapping = self.next_map(self.fit(rows, mapping, tuning), rows, kind)
        return mapping


def solution(kernel: Callable[[], Array], rows: LearningRows, lam: float) -> Array:
    """(K + lam W^-1)^-1 y, where `kernel` makes K anew; a penalty that is too small is raised."""
    for _ in range(8):
        try:
            return factor(kernel(), lam / rows.w).solve(rows.y)
        except LinAlgError:
            lam = max(100 * lam, 1e-10)
    raise LinAlgError("K + lambda I cannot be factored. Give a larger `alpha`.")


def best_penalty(S: Spectrum, counts: Array, penalty: Penalty, ratio: float) -> Tuning:
    """Penalty with the least leave-one-out error, one for all targets."""
    lams = penalty.tried()
    with np.errstate(all="ignore"):  # a penalty of zero may divide by zero
        E = S.loo_residuals(lams)
        errors = np.einsum("i,ilt,ilt->l", counts / counts.sum(), E, E)
    errors = np.where(np.isfinite(errors), errors, np.inf)
    i = int(np.argmin(errors))
    return Tuning(ratio, float(lams[i]), float(errors[i]))


def downhill_in(at: Callable[[float], Tuning], start: float, steps: tuple[int, ...]) -> Tuning:
    """Tuning at the bottom of the valley of `start`; ratios are start 2^(k / 4)."""
    seen: dict[int, Tuning] = {}

    def look_at(*places: int) -> None:
        new = [k for k in places if k not in seen]
        seen.update(zip(new, in_threads(lambda k: at(start * 2 ** (k / 4)), new), strict=True))

    def value(k: int) -> Tuning:
        look_at(k)
        return seen[k]

    k = 0
    for step in steps:
        if processors() > 1:  # both sides at once, where one might do
            look_at(k, k - step, k + step)
        for direction in (-step, step):
            while abs(k) < 48 and value(k + direction).error < value(k).error:
                k += direction
    return value(k)


def penalty_in_rounds(penalty: Penalty, unit: float) -> Penalty:
    """The penalty for weights in units of `unit`, with a wider range unless one was given."""
    given = WIDE_LAMBDAS if penalty.given is None else penalty.given / unit
    return replace(penalty, lam=penalty.lam / unit, given=given)
