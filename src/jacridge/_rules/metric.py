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
from .._rows.samples import sample_of
from .._rows.survey import Surveying, surveyed
from .choice import Chosen, Loss, choose, rows_in_half, squared_errors
from .rounds import LearningRows, Rounds, RuleInRounds, penalty_in_rounds, standardised

if TYPE_CHECKING:
    from .._rows.rows import Rows
    from .training import Penalty, Tuning

# Rows that learn the metric, once kernel, kind and number of rounds are chosen.
METRIC_ROWS = 1500

# Fewer distinct rows than this are too few to learn a metric from, or to choose a kernel by.
LEAST_ROWS = 20


@dataclass(frozen=True)
class Metric:
    """The space of a fit, the map of its features (None: identity), and how it was chosen.

    `std` are the standard deviations of the features, where they are known, `rounds` the tunings of
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


def metric_of(
    rows: Rows,
    kernels: Sequence[str],
    metric: str,
    rule: RuleInRounds | None,
    penalty: Penalty,
    rng: np.random.Generator,
    loss: Loss = squared_errors,
    *,
    centred: bool = True,
) -> Metric:
    """The metric of a fit to rows with features.

    `euclidean` and `scaled` are used as given: the first is the identity, the second divides by
    standard deviations. "diagonal" and "full" are learned in rounds, whose number is chosen by
    cross-fitting; "auto" chooses the kind, too. Of several kernels one is chosen. `rule` finds the
    bandwidth within rounds; None searches for the best leave-one-out error.
    """
    plain, std = (None, None) if metric == "euclidean" else plain_map(rows)
    kinds: Sequence[str] = LEARNED.get(metric, ())
    if not kinds and len(kernels) == 1:
        return Metric(space_of(kernels[0], metric), plain, std)
    size = rows_in_half(rows.n)
    sample, unit = learning_sample(rows, size, rng, alike=not penalty.shared, centred=centred)
    if len(sample) < LEAST_ROWS or not sample.y.any():
        return Metric(space_of(kernels[0], metric), plain, std)

    def rounds(name: str) -> Rounds:
        space = space_of(name, "euclidean")
        return Rounds(space, penalty_in_rounds(penalty, unit), rule, centred)

    maps = [plain or FeatureMap(np.eye(sample.X.shape[1]))]
    if kinds:
        maps += warped_maps(sample)
    options: dict[str, Any] = {"size": size, "kernels": kernels, "kinds": kinds, "loss": loss}
    chosen = choose(sample, maps, rounds, rng, **options)
    best = chosen.best
    found = maps[-1] if best.warped else plain
    tunings: list[Tuning] = []
    if best.rounds and found:
        part = sample.part(rng.permutation(len(sample))[:METRIC_ROWS])
        found, tunings = rounds(best.kernel).learned(part, found, best.kind, best.tunings[:-1])
    return Metric(space_of(best.kernel, metric), found, std, chosen, tunings)


def plain_map(rows: Rows) -> tuple[FeatureMap, Array]:
    """The map that divides by the standard deviations of all rows, and these."""
    whole = surveyed(rows.each(Surveying(EUCLIDEAN))).whole
    std = np.sqrt(whole.squares / whole.weight)
    return FeatureMap(scaling_from(whole.centre, std)), std


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
    second result is the mean weight, which those of the sample are in units of.
    """
    X, y, w = merged_block(*sample_of(rows, max(2 * size, METRIC_ROWS), rng))
    unit = float(w.mean())
    return LearningRows(X, standardised(y, w, centred=centred) if alike else y, w / unit), unit
