"""Array types, machine constants, and blocks of rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)

# Entries of a block of distances: 8 MB of doubles, small enough to stay near the processor.
BLOCK_ENTRIES = 1 << 20

# Seed of samples that do not depend on `random_state`: one that callers hardly draw rows by.
FIXED_SEED = 20_200_229


def row_blocks(n: int, size: int) -> list[slice]:
    """Slices of at most `size` rows that cover n rows in order."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def rows_per_block(n_columns: int) -> int:
    """Rows of a block that has n_columns columns."""
    return max(1, BLOCK_ENTRIES // max(n_columns, 1))


def fixed_sample(n: int, most: int) -> Indices:
    """At most `most` of n indices, in rising order: a random sample, the same in every call."""
    if n <= most:
        return np.arange(n)
    # Not every n / most-th index, which weekdays, hours or the lines of a grid would alias with.
    return np.sort(np.random.default_rng(FIXED_SEED).choice(n, most, replace=False))


def are_whole(w: Array) -> bool:
    """Whether all weights are whole numbers."""
    return bool((w == np.rint(w)).all())


def weighted_mean(y: Array, w: Array) -> Array:
    """Weighted mean of each column of y, exact for a constant column."""
    mean = w @ y / w.sum()
    # Rounding in the sum would leave a constant target with noise that a search would fit.
    return mean + w @ (y - mean) / w.sum()


def bulk_centre(Z: Array) -> Array:
    """About where most rows are: expanded squares keep their digits there, beside outliers too."""
    return np.median(Z[:: max(1, len(Z) // 256)], axis=0)
