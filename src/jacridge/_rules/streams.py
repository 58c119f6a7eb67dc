"""Training data from the rows of a fit: all of them, or a sample and landmarks of many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._compute.arrays import Array, Indices, are_whole, weighted_mean
from .._rows.extent import ArrayExtent, Extent, StreamExtent
from .._rows.merging import distinct_rows
from .._rows.rows import ArrayRows, Block, Rows
from .._rows.source import array_source
from .._rows.survey import SAMPLE, counted, first_look, sample_indices, sample_of
from .._solvers.exact import centred_rows
from .._solvers.landmarks import CANDIDATES, DEFAULT, chooser, some_among
from .._solvers.nystrom import Choose, Nystrom, NystromSpectrum, Observed
from .training import Penalty, TrainingData, carried, data_in_memory, in_units_of_weights

if TYPE_CHECKING:
    from .._geometry.distances import Distance
    from .._geometry.maps import FeatureMap
    from .._geometry.space import Space
    from .._rows.merging import Replicates
    from .._rows.source import Source

# Landmarks of the smaller model on which bandwidths are tried.
TRIAL = 1000


def training_data(
    source: Source, space: Space, *, kind: str = "mean", **options: Any
) -> TrainingData:
    """Training data of rows in memory, with which rules solve; `kind` is the kind of intercept."""
    X, rows = centred_rows(source, kind)
    options |= {"n": source.n, "has_intercept": kind != "none", "replicates": source.replicates}
    options["copies"] = copies_of(source, (X, rows.y, rows.w), len(X))
    return data_in_memory(X, rows.y, rows.w, space, **options)


@dataclass(frozen=True)
class LandmarkChoice:
    """How landmarks are chosen: a word or an array of landmarks, checked, and their number."""

    landmarks: str | Array = "kmeans"
    number: int | None = None

    def chooser(
        self, n: int, space: Space, seed: int
    ) -> tuple[Callable[[Array, int], Choose], int]:
        """Function of rows and a number that returns a chooser of landmarks, and their number."""
        kind = self.landmarks
        if not isinstance(kind, str):
            return some_among(kind), len(kind)

        def among(X: Array, m: int) -> Choose:
            return chooser(kind, X, m, space, seed)

        return among, min(self.number or DEFAULT, n)

    def are_all(self, rows: Rows, mapping: FeatureMap | None) -> bool:
        """Whether all rows, after a map, are landmarks, so that the model is the exact one."""
        if isinstance(self.landmarks, str):
            return (self.number or DEFAULT) >= rows.n
        if len(self.landmarks) < rows.n:
            return False
        X, Z = rows.take(np.arange(rows.n))[0], distinct_rows(self.landmarks)
        both = np.vstack([Z, X if mapping is None else mapping(X)])
        return len(distinct_rows(both)) == len(Z)


def data_of_stream(
    source: Source,
    space: Space,
    *,
    random_state: np.random.Generator | None = None,
    kind: str = "mean",
    choice: LandmarkChoice | None = None,
    solved: bool = True,
    **options: Any,
) -> TrainingData:
    """Training data of streamed rows: a sample, the geometry of all rows, and a Nystrom solver.

    `kind` is the kind of intercept. Without `solved`, y is not used.
    """
    rows, choice, rng = source.rows, choice or LandmarkChoice(), np.random.default_rng(random_state)
    seed = int(rng.integers(1 << 32))
    draws = [sample_indices(rows.n, SAMPLE, rng)]
    among, m = choice.chooser(rows.n, space, seed)
    if solved and isinstance(choice.landmarks, str):
        draws.append(sample_indices(rows.n, CANDIDATES * m, rng))
    seen, blocks = first_look(rows, draws, space.distance, rng)
    sample, candidates = blocks[0], blocks[-1]  # the same block if landmarks are given
    (X, y, weights), replicates = merged_sample(source, draws[0], sample, space.distance)
    solver = trials = None
    if solved:
        observed = observed_of(source, replicates, whole=seen.whole.whole)
        tried = observed.rows if observed and source.n else ArrayRows(*candidates)
        parts: Any = {"given": source.given, "observed": observed}
        solver = Nystrom(rows, kind, sample, space, among(candidates[0], m), **parts)
        trials = trial_spectra(solver, tried, among, m, rng)
    w = np.ones(len(X)) if weights is None else weights
    y = y if kind == "none" else y - weighted_mean(y, w)
    options["penalty"] = in_units_of_weights(options.get("penalty", Penalty()), w)
    extent: Extent = ArrayExtent(X, w, space.distance)
    if rows.n > len(sample[0]):
        extent = StreamExtent(rows, seen, X, space.distance)
    return TrainingData(
        X=X,
        y=y if solved else None,
        w=w,
        n=seen.whole.n_samples if source.n is None else source.n,
        space=space,
        extent=extent,
        random_state=rng,
        has_intercept=kind != "none",
        solver=solver,
        trials=trials,
        replicates=replicates,
        copies=copies_of(source, sample, len(w)),
        **options,
    )


def copies_of(source: Source, sample: Block, distinct: int) -> float:
    """Rows for each distinct one: of all rows in memory, or of a sample of rows that stream."""
    if source.n is not None:
        return source.n / source.rows.n
    X, _, w = sample
    return (len(X) if w is None else counted(w)) / distinct


def merged_sample(
    source: Source, drawn: Indices, sample: Block, distance: Distance
) -> tuple[Block, Replicates | None]:
    """The distinct rows of a sample, and its replicates."""
    if source.n is not None:  # in memory, where rows are merged and have a positive weight
        return sample, source.replicates and source.replicates.some(drawn)
    found = array_source(*sample, distance)
    return found.rows.take(np.arange(found.rows.n)), found.replicates


def observed_of(source: Source, replicates: Replicates | None, *, whole: bool) -> Observed | None:
    """Replicates among all rows, if a sample shows that there are any.

    For rows in memory, observations of equal rows follow one another. Streamed rows are as given;
    `whole` says whether all of their weights are whole numbers.
    """
    if replicates is None:
        return None
    rows, found = source.rows, source.replicates
    if found is not None:
        X, y, _ = rows.take(found.row)
        rows, whole = ArrayRows(X, y + found.d, found.weight), are_whole(found.weight)
    return Observed(rows, np.ones_like if whole else np.asarray)


def trial_spectra(
    full: Nystrom,
    rows: Rows,
    among: Callable[[Array, int], Choose],
    m: int,
    rng: np.random.Generator,
) -> Callable[[float], NystromSpectrum]:
    """Spectra of a smaller model, at the bandwidth that corresponds to sigma with m landmarks.

    `among` chooses landmarks among rows; the smaller model has ten rows for each of them.
    """
    few = min(m, TRIAL)
    block = sample_of(rows, CANDIDATES * few, rng)
    small = full.of_rows(block, among(block[0], few))
    # With landmarks the bandwidth scales with their spacing; with all rows, with its square root.
    shrink = carried(few, m, block[0].shape[1]) ** 2
    return lambda sigma: small.comparing(sigma / shrink)
