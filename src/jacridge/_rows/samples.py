"""Random samples of rows, and the first pass that draws them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._compute.arrays import Indices
from .rows import Block, Rows, rows_of
from .survey import Surveyed, Surveying, surveyed

if TYPE_CHECKING:
    from .._geometry.distances import Distance

# Rows on which rules look at pairs of rows, or solve.
SAMPLE = 10_000
# Rows are drawn again, up to so many times as many, if some have a weight of zero.
REDRAWN = 20


def first_look(
    rows: Rows, draws: Sequence[Indices], distance: Distance, rng: np.random.Generator
) -> tuple[Surveyed, list[Block]]:
    """The survey of all rows and the rows of each draw, from one pass.

    A draw that meets rows of weight zero is drawn again, by another pass.
    """
    found, taken = rows.look(Surveying(distance), np.concatenate(draws))
    seen = surveyed(found)
    ends = np.cumsum([len(draw) for draw in draws])
    blocks = [
        rows_of(taken, np.arange(end - len(draw), end))
        for draw, end in zip(draws, ends, strict=True)
    ]
    return seen, [_of_positive_weight(rows, block, rng) for block in blocks]


def sample_indices(n: int, most: int, rng: np.random.Generator) -> Indices:
    """At most `most` of n indices, at random; all of them, in order, if they are few."""
    return np.arange(n) if n <= most else rng.choice(n, most, replace=False)


def sample_of(rows: Rows, most: int, rng: np.random.Generator) -> Block:
    """At most `most` of the rows of positive weight, drawn at random."""
    return _of_positive_weight(rows, rows.take(sample_indices(rows.n, most, rng)), rng)


def _of_positive_weight(rows: Rows, block: Block, rng: np.random.Generator) -> Block:
    """A block drawn from the rows, drawn again if some of it has no weight."""
    if block[2] is None or block[2].all():
        return block
    # From more rows, as many as make up for those of weight zero.
    most, share = len(block[2]), max(np.count_nonzero(block[2]) / len(block[2]), 1 / REDRAWN)
    X, y, weights = rows.take(sample_indices(rows.n, int(most / share), rng))
    w = np.asarray(weights)
    kept = np.flatnonzero(w)[:most]
    if len(kept) < 3 and len(X) < rows.n:
        raise ValueError(
            f"`sample_weight` must be positive for more rows, got {len(kept)} of {len(X)} drawn "
            "at random. Leave rows of weight zero out before the fit."
        )
    return X[kept], y[kept], w[kept]
