"""The metric and the kernel of a fit: as asked for, or learned and chosen by cross-fitting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._compute.arrays import Array, weighted_mean
from .._geometry.distances import EUCLIDEAN
from .._geometry.maps import FeatureMap, Warp, scaling_from, warp_of
from .._geometry.space import LEARNED, Space, space_of
from .._rows.merging import merged_block
from .._rows.survey import Surveying, sample_of, surveyed
from .choice import Chosen, choose, rows_in_half
from .registry import as_rule, find
from .rounds import LearningRows, Rounds, RuleInRounds, penalty_in_rounds, standardised

if TYPE_CHECKING:
    from .._rows.rows import Rows
    from .parameters import Request
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
    the rounds in which the map was learned.
    """

    space: Space
    mapping: FeatureMap | None = None
    std: Array | None = None
    chosen: Chosen | None = None
    rounds: Sequence[Tuning] = ()

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


def metric_of(rows: Rows, asked: Request, rng: np.random.Generator) -> Metric:
    """The metric of a fit to rows with features.

    `euclidean` and `scaled` are used as given: the first is the identity, the second divides by
    standard deviations. "diagonal" and "full" are learned in rounds, whose number is chosen by
    cross-fitting; "auto" chooses the kind, too. Of several kernels one is chosen.
    """
    kernels, kinds = asked.kernels, LEARNED.get(asked.metric, ())
    plain, std = (None, None) if asked.metric == "euclidean" else plain_map(rows)
    as_asked = Metric(space_of(kernels[0], asked.metric), plain, std)
    if not kinds and len(kernels) == 1:
        return as_asked
    size, centred, penalty = rows_in_half(rows.n), asked.intercept != "none", asked.penalty
    sample, unit = learning_sample(rows, size, rng, alike=not penalty.shared, centred=centred)
    if len(sample) < LEAST_ROWS or not sample.y.any():
        return as_asked
    rule = rule_in_rounds(asked.bandwidth)

    def rounds(name: str) -> Rounds:
        space = space_of(name, "euclidean")
        return Rounds(space, penalty_in_rounds(penalty, unit), rule, centred)

    if asked.metric == "auto" and sample.X.shape[1] > FULL_FEATURES:
        kinds = tuple(kind for kind in kinds if kind != "full")
    maps = [plain or FeatureMap(np.ones(sample.X.shape[1]))]
    if kinds:
        maps += warped_maps(sample)
    options: Any = {"size": size, "kernels": kernels, "kinds": kinds, "loss": asked.loss}
    chosen = choose(sample, maps, rounds, rng, **options)
    best = chosen.best
    found = maps[-1] if best.warped else plain
    tunings: list[Tuning] = []
    if best.rounds and found:
        part = sample.part(rng.permutation(len(sample))[:METRIC_ROWS])
        found, tunings = rounds(best.kernel).learned(part, found, best.kind, best.tunings[:-1])
    return Metric(space_of(best.kernel, asked.metric), found, std, chosen, tunings)


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


def learning_sample(
    rows: Rows, size: int, rng: np.random.Generator, *, alike: bool, centred: bool
) -> tuple[LearningRows, float]:
    """Distinct rows to choose and learn by, at random: at least two halves of this size.

    If `alike`, all targets count alike. Targets of models with an intercept are `centred`. The
    second result is the mean weight, by which the weights of the sample are divided.
    """
    X, y, w = merged_block(*sample_of(rows, max(2 * size, METRIC_ROWS), rng))
    unit = float(w.mean())
    return LearningRows(X, standardised(y, w, centred=centred) if alike else y, w / unit), unit
