"""The automatic choice of kernel and metric, by cross-fitting.

A metric is learned on one half of the rows and judged on the other half: leave-one-out after
learning would be too kind to it, as the rows that are left out have made the metric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

from .._compute.arrays import Array
from .._compute.threads import in_threads, one_blas_thread
from .._geometry.kernels import KERNELS

if TYPE_CHECKING:
    from .._geometry.maps import FeatureMap
    from .rounds import Fold, LearningRows, Round, Rounds
    from .training import Tuning

# Share of the hardest rows that the comparison leaves out.
TRIM = 0.02

# A simpler candidate is taken if its error is within this many standard errors of the best.
STANDARD_ERRORS = 0.5
# The same for a smooth kernel in the place of one with kinks.
SMOOTH_STANDARD_ERRORS = 1.0

# Standard errors by which y must be predicted better than by its mean, or by which predictions
# must be in its order.
CLEAR = 1.5
CLEAR_ORDER = 2.5

# Kernels that are tried, the slowest first, and how many of them, each with one map, go on after
# the first round.
KERNELS_TRIED = ("exponential", "laplacian", "matern32", "gaussian")
STARTS_KEPT = 2

# Kernels that decide whether heavy tails are compressed, one smooth and one with kinks.
JUDGES = ("matern32", "laplacian")

# Most candidates that are compared again on other halves of the rows, and the number of standard
# errors by which a candidate that is left out is worse than the best.
FINALISTS = 3
CLEARLY_WORSE = 5.0

# Errors of held-out rows from their targets (n, k), predictions (n, k) and weights.
Loss = Callable[[Array, Array, Array], Array]


def squared_errors(y: Array, predictions: Array, w: Array) -> Array:
    """Squared errors, summed over targets."""
    return np.asarray(np.square(y - predictions).sum(axis=1))


def rank_products(y: Array, predictions: Array, w: Array) -> Array:
    """Products of the ranks of targets and predictions, less their means, summed over targets."""
    a, b = (rankdata(Z, axis=0) for Z in (y, predictions))
    return np.asarray(((a - w @ a) * (b - w @ b)).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel, a kind of metric and a number of rounds, with its errors on held-out rows.

    Attributes
    ----------
    kernel, kind, rounds : what is tried; no rounds are the plain metric
    fits : the last fit of each fold
    tunings : bandwidth and penalty of each round, the plain metric first
    predictions : of the held-out rows, (n, k)
    errors : losses of the held-out rows, such as squared errors summed over targets
    seconds : time of this candidate beyond those that it builds on
    error : mean of the errors, squared ones in units of the constant prediction's
    trimmed_error : the same without the hardest rows, by which candidates are ranked
    deviation : standard error of the difference of trimmed errors to the best candidate
    """

    kernel: str
    kind: str
    rounds: int
    fits: Sequence[Round]
    tunings: tuple[Tuning, ...]
    predictions: Array
    errors: Array
    seconds: float
    error: float = np.nan
    trimmed_error: float = np.nan
    deviation: float = np.nan

    @property
    def warped(self) -> bool:
        """Whether features with heavy tails are compressed first."""
        return self.fits[0].mapping.warp is not None

    @property
    def start(self) -> tuple[str, bool]:
        """The kernel and the map before any round."""
        return self.kernel, self.warped

    @property
    def complexity(self) -> float:
        """How much a candidate may follow the noise: rounds, more for a full or warped metric."""
        return self.rounds + 1.5 * (self.kind == "full") + 1.5 * self.warped

    def row(self) -> dict[str, object]:
        """The candidate as a row of a table."""
        what = ("kernel", "kind", "rounds", "warped")
        names = (*what, "error", "trimmed_error", "deviation", "seconds")
        return {name: getattr(self, name) for name in names} | {"held_out": len(self.errors)}


@dataclass(frozen=True)
class Chosen:
    """The chosen candidate, all candidates (best first), and whether y can be predicted at all."""

    best: Candidate
    table: Sequence[Candidate]
    has_signal: bool


class CrossFitting:
    """Candidates fitted on one half of the rows and judged on the other."""

    def __init__(
        self, rows: LearningRows, rounds: Callable[[str], Rounds], folds: Sequence[Fold], loss: Loss
    ) -> None:
        self.rounds, self.folds, self.loss, self.n = rounds, folds, loss, len(rows)
        self.counts = np.concatenate([test.counts for _, test in self.folds])
        self.y = np.concatenate([test.y + test.constant for _, test in self.folds])

    def plain(self, kernel: str, mapping: FeatureMap, **tuning: Tuning | None) -> Candidate:
        """The metric before any round, with a `tuning`, or with one that is looked for `near`."""
        return self._candidate(kernel, "plain", [mapping] * len(self.folds), **tuning)

    def next(self, last: Candidate, kind: str, tuning: Tuning | None = None) -> Candidate:
        """One more round, in each fold with the metric of that fold."""
        rounds = self.rounds(last.kernel)

        def next_map(fit: Round, fold: Fold) -> FeatureMap:
            return rounds.next_map(fit, fold[0], kind)

        maps = in_threads(next_map, last.fits, self.folds)
        near = last.tunings[-1]
        found = self._candidate(last.kernel, kind, maps, tuning=tuning, near=near)
        tunings = (*last.tunings, *found.tunings)
        return replace(found, rounds=last.rounds + 1, tunings=tunings)

    def more(self, last: Candidate, kind: str, rounds: int) -> list[Candidate]:
        """The candidates after some more rounds."""
        found = [last]
        for _ in range(rounds):
            found.append(self.next(found[-1], kind))
        return found[1:]

    def _candidate(
        self,
        kernel: str,
        kind: str,
        maps: list[FeatureMap],
        *,
        tuning: Tuning | None = None,
        near: Tuning | None = None,
    ) -> Candidate:
        start, rounds = perf_counter(), self.rounds(kernel)
        if tuning is None:
            tuning = rounds.tuned_in(self.folds, maps, near)

        def judged(mapping: FeatureMap, fold: Fold) -> tuple[Round, Array]:
            fit = rounds.fit(fold[0], mapping, tuning)
            return fit, rounds.predict(fit, fold[0], fold[1].X) + fold[1].constant

        fits, predictions = zip(*in_threads(judged, maps, self.folds), strict=True)
        found = np.concatenate(predictions)
        errors, seconds = self.loss(self.y, found, self.counts), perf_counter() - start
        return Candidate(kernel, kind, 0, fits, (tuning,), found, errors, seconds)

    def ranked(self, table: Sequence[Candidate]) -> list[Candidate]:
        """Candidates with their errors, best first; the ranking leaves out rows hard for all."""
        total = np.mean([candidate.errors for candidate in table], axis=0)
        kept = total <= np.quantile(total, 1 - TRIM)
        w, all_w, unit = self.counts[kept] / self.counts[kept].sum(), self._shares, self._unit
        means = [float(w @ candidate.errors[kept]) for candidate in table]
        best, done = table[int(np.argmin(means))], []
        for candidate, mean in zip(table, means, strict=True):
            deviation = self._standard_error(w, (candidate.errors - best.errors)[kept])
            numbers = float(all_w @ candidate.errors), mean, deviation
            error, trimmed, deviation = (number / unit for number in numbers)
            done.append(replace(candidate, error=error, trimmed_error=trimmed, deviation=deviation))
        return sorted(done, key=lambda candidate: candidate.trimmed_error)

    @property
    def _shares(self) -> Array:
        """Weights of the held-out rows that sum to one."""
        return np.asarray(self.counts / self.counts.sum())

    @property
    def _unit(self) -> float:
        """Mean square of y on the held-out rows; other losses have units of their own."""
        if self.loss is not squared_errors:
            return 1.0
        return float(self._shares @ self._constant_errors) or 1.0

    @property
    def _constant_errors(self) -> Array:
        """Errors of the held-out rows if all are predicted by the mean of y.

        It is that of all rows, so models of earlier rows have to be better than a mean that
        knows the later ones.
        """
        return self.loss(self.y, np.zeros_like(self.y), self.counts)

    def ranked_again(
        self, table: Sequence[Candidate], other: CrossFitting, maps: Sequence[FeatureMap]
    ) -> list[Candidate]:
        """The table with the finalists judged on other halves, too, and ranked by both."""
        finalists, known = finalists_of(table), dict[Any, Candidate]()
        again = [other.replayed(maps, candidate, known) for candidate in finalists]
        both = [
            replace(
                candidate,
                predictions=np.concatenate([candidate.predictions, more.predictions]),
                errors=np.concatenate([candidate.errors, more.errors]),
                seconds=candidate.seconds + more.seconds,
            )
            for candidate, more in zip(finalists, again, strict=True)
        ]
        self.counts = np.concatenate([self.counts, other.counts])
        self.folds, self.y = [*self.folds, *other.folds], np.concatenate([self.y, other.y])
        # The others were worse on the first halves, and keep their errors there.
        return [*self.ranked(both), *(c for c in table if c not in finalists)]

    def replayed(
        self, maps: Sequence[FeatureMap], last: Candidate, known: dict[Any, Candidate]
    ) -> Candidate:
        """The candidate on these halves, with the bandwidths and penalties that it has.

        Rounds that are `known`, as another candidate begins with them, are not repeated.
        """
        start, mapping = perf_counter(), maps[-1] if last.warped else maps[0]
        found = None
        for k, tuning in enumerate(last.tunings):
            rounds = last.start, last.kind if k else "plain", last.tunings[: k + 1]
            if rounds not in known and found is None:
                known[rounds] = self.plain(last.kernel, mapping, tuning=tuning)
            elif rounds not in known and found is not None:
                known[rounds] = self.next(found, last.kind, tuning)
            found = known[rounds]
        return replace(known[rounds], seconds=perf_counter() - start)

    def has_signal(self, best: Candidate) -> bool:
        """Whether a candidate predicts held-out rows clearly better than the mean of y does.

        Ranks show signals that squared errors do not: those beside outliers, and weak ones.
        """
        w, gains = self._shares, self._constant_errors - best.errors
        in_order = rank_products(self.y, best.predictions, w)
        tests = (CLEAR, gains), (CLEAR_ORDER, in_order)
        return any(bool(w @ d > clear * self._standard_error(w, d)) for clear, d in tests)

    def _standard_error(self, w: Array, d: Array) -> float:
        """Standard error of the mean w'd; rows that are predicted several times count once."""
        repeats = max(1.0, len(self.counts) / self.n)
        return float(np.sqrt(repeats * (w**2 @ np.square(d - w @ d))))


def simplest_good(table: Sequence[Candidate]) -> Candidate:
    """The simplest of the finalists whose error is about that of the best one.

    A smooth kernel wins over one with kinks if it is hardly worse, as slopes are more reliable.
    """
    most = len(table[0].errors)
    finalists = [c for c in table if len(c.errors) == most]

    def good(standard_errors: float) -> list[Candidate]:
        limit = table[0].trimmed_error
        return [c for c in finalists if c.trimmed_error <= limit + standard_errors * c.deviation]

    def simplest(some: list[Candidate]) -> Candidate:
        return min(some, key=lambda c: (c.complexity, c.trimmed_error))

    best = simplest(good(STANDARD_ERRORS))
    smooth = [c for c in good(SMOOTH_STANDARD_ERRORS) if KERNELS[c.kernel].is_smooth]
    return best if KERNELS[best.kernel].is_smooth or not smooth else simplest(smooth)


def finalists_of(table: Sequence[Candidate]) -> list[Candidate]:
    """The best candidates, without those that are worse than the best of all beyond doubt."""
    least = table[0].trimmed_error
    good = [c for c in table if c.trimmed_error <= least + CLEARLY_WORSE * c.deviation]
    return good[:FINALISTS]


def choose(
    rows: LearningRows,
    maps: Sequence[FeatureMap],
    rounds: Callable[[str], Rounds],
    folds: Callable[[LearningRows], list[Fold]],
    *,
    kernels: Sequence[str] = KERNELS_TRIED,
    kinds: Sequence[str] = ("diagonal", "full"),
    loss: Loss = squared_errors,
) -> Chosen:
    """Kernel, kind of metric and number of rounds with the least loss on held-out rows.

    Every kernel gets the plain metric and one round of the first kind. The best two go on with
    another round and with the other kind, and the best of all with a third round. Of several plain
    maps the better one is taken. `rounds` returns the rounds of a kernel, `folds` those of the
    rows. A kernel that is a product over features gets no second kind.
    """
    with one_blas_thread():
        cross = CrossFitting(rows, rounds, folds(rows), loss)
        started = _started(cross, kernels, maps, kinds[:1])
        table = list(chain(*started))
        if kinds:
            best = list(dict.fromkeys(c.start for c in cross.ranked(table)))[:STARTS_KEPT]
            kept = [candidates for candidates in started if candidates[0].start in best]
            further = [  # the longest first, as they go on side by side
                (plain, kind, 2)
                for plain, _ in kept
                for kind in kinds[1:]
                if rounds(plain.kernel).space.kernel.power == 2
            ]
            further += [(first, kinds[0], 1) for _, first in kept]
            table += chain(*in_threads(cross.more, *zip(*further, strict=True)))
            last = cross.ranked(table)[0]
            if last.rounds == 2:
                table += cross.more(last, last.kind, 1)
        table = cross.ranked(table)
        # More folds are not drawn again.
        if len(cross.folds) == 2 and len(finalists_of(table)) > 1:
            other = CrossFitting(rows, rounds, folds(rows), loss)
            table = cross.ranked_again(table, other, maps)
    return Chosen(simplest_good(table), table, cross.has_signal(table[0]))


def _started(
    cross: CrossFitting,
    kernels: Sequence[str],
    maps: Sequence[FeatureMap],
    kinds: Sequence[str],
) -> list[list[Candidate]]:
    """Each kernel with the plain metric and one round of each kind.

    If there are several maps, the judges start with all of them, and the others with the better.
    """
    judges = [kernel for kernel in kernels if len(maps) > 1 and kernel in JUDGES] or kernels

    def started(maps: Sequence[FeatureMap], kernel: str) -> list[list[Candidate]]:
        found: list[list[Candidate]] = []
        for mapping in maps:
            plain = cross.plain(kernel, mapping, near=found[0][0].tunings[0] if found else None)
            found.append([plain, *(cross.next(plain, kind) for kind in kinds)])
        return found

    found = list(chain(*in_threads(partial(started, maps), judges)))
    others = [kernel for kernel in kernels if kernel not in judges]
    if others:
        better = maps[-1] if cross.ranked(list(chain(*found)))[0].warped else maps[0]
        found += chain(*in_threads(partial(started, [better]), others))
    return found
