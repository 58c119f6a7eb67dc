"""The metric and the kernel of a fit: as asked for, or learned and chosen by cross-fitting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._compute.arrays import Array, weighted_mean
from .._geometry.distances import EUCLIDEAN
from .._geometry.maps import FeatureMap, Warp, scaling_from, warp_of
from .._geometry.space import LEARNED, Space, space_of
from .._rows.survey import Surveying, surveyed
from .choice import Chosen, choose
from .held_out import HELD_OUT, WeightedRows, rows_in_half
from .registry import Found, as_rule, find
from .rounds import (
    LearningRows,
    Rounds,
    RuleInRounds,
    centred_fold,
    penalty_in_rounds,
    standardised,
)
from .training import UNIT_ROWS, median_distance

if TYPE_CHECKING:
    from .._rows.rows import Rows
    from .._rows.source import Source
    from .parameters import Request
    from .rounds import Fold
    from .training import TrainingData, Tuning

# Rows that learn the metric, once kernel, kind and number of rounds are chosen.
METRIC_ROWS = 1500

# With more features than this, "auto" leaves full metrics out: each takes p^2 numbers.
FULL_FEATURES = 1000

# Fewer distinct rows than this are too few to learn a metric from, or to choose a kernel by.
LEAST_ROWS = 20


@dataclass(frozen=True)
class Metric:
    """The space of a fit, the map of its features (None: identity), and how it was chosen.

    `std` are the standard deviations of the features, if there is a map, `rounds` the tunings of
    the rounds in which the map was learned, `found` are bandwidth and penalty if they were chosen,
    too.
    """

    space: Space
    mapping: FeatureMap | None = None
    std: Array | None = None
    chosen: Chosen | None = None
    rounds: Sequence[Tuning] = ()
    found: Found | None = None

    @property
    def has_signal(self) -> bool:
        """Whether y can be predicted; True where nothing was chosen."""
        return self.chosen is None or self.chosen.has_signal

    @property
    def start(self) -> Tuning | None:
        """Where the search for bandwidth and penalty starts; None where nothing was chosen."""
        return None if self.chosen is None else self.chosen.best.tunings[-1]

    @property
    def choices(self) -> list[dict[str, Any]]:
        """Table of the candidates that were tried, best first; empty if there was no choice."""
        if self.chosen is None:
            return []
        best = self.chosen.best
        return [{**each.row(), "chosen": each is best} for each in self.chosen.table]

    @property
    def learning(self) -> dict[str, Any] | None:
        """How the map was learned, in plain values; None if it was not."""
        if self.chosen is None or not self.rounds:
            return None
        rounds = [[tuning.ratio, tuning.lam] for tuning in self.rounds]
        return {"kind": self.chosen.best.kind, "rounds": rounds}


def metric_of(source: Source, asked: Request, rng: np.random.Generator) -> Metric:
    """The metric of a fit to rows with features.

    `euclidean` and `scaled` are used as given: the first is the identity, the second divides by
    standard deviations. "diagonal" and "full" are learned in rounds, whose number is chosen by
    cross-fitting; "auto" chooses the kind, too. Of several kernels one is chosen.
    """
    rows = source.rows
    kernels, kinds = asked.kernels, LEARNED.get(asked.metric, ())
    plain, std = (None, None) if asked.metric == "euclidean" else plain_map(rows)
    as_asked = Metric(space_of(kernels[0], asked.metric), plain, std)
    if asked.metric not in LEARNED and len(kernels) == 1 and not asked.tunes_later:
        return as_asked
    size, centred, penalty = rows_in_half(rows.n), asked.intercept != "none", asked.penalty
    held_out = HELD_OUT[asked.held_out]
    block = held_out.sample(source, max(2 * size, METRIC_ROWS), rng)
    sample, unit = learning_rows(block, alike=not penalty.shared, centred=centred)
    if min(rows.n, len(sample)) < LEAST_ROWS or not sample.y.any():
        return as_asked
    rule = rule_in_rounds(asked.bandwidth)

    def rounds(name: str) -> Rounds:
        space = space_of(name, "euclidean")
        return Rounds(space, penalty_in_rounds(penalty, unit), rule, centred, held_out.is_later)

    maps = [plain or FeatureMap(np.ones(sample.X.shape[1]))]
    if asked.metric in LEARNED:
        maps += warped_maps(sample)
    if maps[0].q == 1:
        kinds = ()  # one feature has no directions
    elif asked.metric == "auto" and sample.X.shape[1] > FULL_FEATURES:
        kinds = tuple(kind for kind in kinds if kind != "full")
    options: Any = {"kernels": kernels, "kinds": kinds, "loss": asked.loss}

    def folds(rows: LearningRows) -> list[Fold]:
        found = held_out.folds(rows, size, rng)
        return [centred_fold(*each) for each in found] if held_out.is_later and centred else found

    chosen = choose(sample, maps, rounds, folds, **options)
    best = chosen.best
    mapping = maps[-1] if best.warped else plain
    tunings: list[Tuning] = []
    if best.rounds and mapping:
        part = sample.part(rng.permutation(len(sample))[:METRIC_ROWS]).merged()
        mapping, tunings = rounds(best.kernel).learned(part, mapping, best.kind, best.tunings[:-1])
    found = Metric(space_of(best.kernel, asked.metric), mapping, std, chosen, tunings)
    if not asked.tunes_later:
        return found
    lams = np.full(1 if penalty.shared else sample.y.shape[1], best.tunings[-1].lam * unit)
    lam = lams if penalty.criterion else penalty.lam
    sigma = best.tunings[-1].ratio * unit_of_bandwidths(found, rows, rng)
    return replace(found, found=Found(sigma, lam))


def unit_of_bandwidths(metric: Metric, rows: Rows, rng: np.random.Generator) -> float:
    """The median distance of some rows at random."""
    X, space = rows.take(rng.permutation(rows.n)[:UNIT_ROWS])[0], metric.space
    X = X if metric.mapping is None else metric.mapping(X)
    return median_distance(space, space.distance.gaps(X, X))


def rule_in_rounds(bandwidth: Any) -> RuleInRounds | None:
    """Rule for the rounds of a learned metric from a number, a rule's name or a function."""
    if as_rule(bandwidth).is_automatic:
        return None  # rounds search by themselves

    def rule(data: TrainingData) -> tuple[float, float]:
        found = find(bandwidth, data)
        return found.sigma, float(np.exp(np.log(np.maximum(found.lam, 1e-300)).mean()))

    return rule


def plain_map(rows: Rows) -> tuple[FeatureMap, Array]:
    """The map that divides by the standard deviations of all rows, and these."""
    whole = surveyed(rows.each(Surveying(EUCLIDEAN))).whole
    return FeatureMap(scaling_from(whole.centre, whole.std)), whole.std


def warped_maps(rows: LearningRows) -> list[FeatureMap]:
    """The map that compresses heavy tails first, if there are any, and then scales."""
    warp = warp_of(rows.X)
    return [] if warp is None else [scaled_map(rows, warp)]


def scaled_map(rows: LearningRows, warp: Warp | None) -> FeatureMap:
    """The map that divides features, after a warp if there is one, by deviations in these rows."""
    Z = rows.X if warp is None else warp(rows.X)
    centre = weighted_mean(Z, rows.w)
    std = np.sqrt(rows.w @ np.square(Z - centre) / rows.w.sum())
    return FeatureMap(scaling_from(centre, std), warp)


def learning_rows(block: WeightedRows, *, alike: bool, centred: bool) -> tuple[LearningRows, float]:
    """The rows of a block, to choose and learn by.

    If `alike`, all targets count alike. Targets of models with an intercept are `centred`. The
    second result is the mean weight, by which the weights of the rows are divided.
    """
    X, y, w = block
    unit = float(w.mean())
    return LearningRows(X, standardised(y, w, centred=centred) if alike else y, w / unit), unit
