"""The rows on which candidates are compared: random halves, or later rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .._rows.merging import merged_block
from .._rows.survey import sample_indices, sample_of

if TYPE_CHECKING:
    from .._compute.arrays import Array
    from .._rows.source import Source
    from .rounds import Fold, LearningRows

# Rows in each half: a quarter of all, within these ends. A metric learned on few rows says little
# about one that is learned on many.
HALF = (500, 800)
# Held-out predictions that are wanted: few rows are halved several times.
PREDICTIONS = 1000

# Shares of the rows at which one part ends and the next one begins, where later rows are held out.
# The first part is only learned from.
LATER_PARTS = (0.25, 0.5, 0.75, 1.0)
# Most training rows among them: each candidate is fitted at many bandwidths.
LATER_ROWS = 500

# Features X (n, p), targets y (n, k) and weights w (n,).
WeightedRows: TypeAlias = "tuple[Array, Array, Array]"


def rows_in_half(n: int) -> int:
    """Rows in each half, of n rows in all."""
    return int(np.clip(n // 4, *HALF))


def halves(rows: LearningRows, size: int, rng: np.random.Generator) -> list[Fold]:
    """Pairs of training and held-out rows from random halves; few rows are halved several times."""
    size = min(size, len(rows) // 2)
    folds: list[Fold] = []
    while len(folds) < 2 or (len(folds) < 8 and len(folds) * size < 0.75 * PREDICTIONS):
        order = rng.permutation(len(rows))
        a, b = rows.part(order[:size]), rows.part(order[size : 2 * size])
        folds += [(a, b), (b, a)]
    return folds


def later_parts(rows: LearningRows, size: int, rng: np.random.Generator) -> list[Fold]:
    """Pairs of earlier and later rows, of rows in the order of time.

    The first part of the rows predicts the next one, then both predict the one after them, and so
    on, up to LATER_ROWS training rows whatever the `size` of halves. Training rows are shuffled:
    some steps use only the first of them.
    """
    few = rows.part(np.sort(sample_indices(len(rows), int(LATER_ROWS / LATER_PARTS[-2]), rng)))
    ends = (len(few) * np.asarray(LATER_PARTS)).astype(int)
    return [
        (few.part(rng.permutation(start)).merged(), few.part(np.arange(start, end)))
        for start, end in pairwise(ends)
    ]


def distinct_sample(source: Source, most: int, rng: np.random.Generator) -> WeightedRows:
    """Distinct rows at random."""
    return merged_block(*sample_of(source.rows, most, rng))


def sample_in_order(source: Source, most: int, rng: np.random.Generator) -> WeightedRows:
    """Rows at random, in the order in which they were given, and with those that are equal."""
    X, y, w = source.in_order(most, rng)
    return X, y, np.ones(len(X)) if w is None else w


@dataclass(frozen=True)
class HoldOut:
    """A way to hold out rows.

    Attributes
    ----------
    sample : the rows to choose and learn by, at most so many
    folds : pairs of training and held-out rows, given the number of rows in a half
    is_later : whether held-out rows come after the training rows; targets are then centred at the
        mean of the training rows
    """

    sample: Callable[[Source, int, np.random.Generator], WeightedRows]
    folds: Callable[[LearningRows, int, np.random.Generator], list[Fold]]
    is_later: bool = False


HELD_OUT = {
    "random": HoldOut(distinct_sample, halves),
    "later": HoldOut(sample_in_order, later_parts, is_later=True),
}
