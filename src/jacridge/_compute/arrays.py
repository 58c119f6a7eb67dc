"""Array types, machine constants, and blocks of rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# Double precision. A few kernels and factors that only rank candidates hold single precision.
Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)

# Entries in a block of distances: 8 MB of doubles, small enough for the processor's cache.
BLOCK_ENTRIES = 1 << 20

# Seed of samples that do not depend on `random_state`. Callers are unlikely to use the same one.
FIXED_SEED = 20_200_229


def row_blocks(n: int, size: int) -> list[slice]:
    """Slices of at most `size` rows that cover n rows in order."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def rows_per_block(n_columns: int) -> int:
    """Number of rows in a block with n_columns columns."""
    return max(1, BLOCK_ENTRIES // max(n_columns, 1))


def fixed_sample(n: int, most: int) -> Indices:
    """At most `most` of n indices, sorted: a random sample that is the same in every call."""
    if n <= most:
        return np.arange(n)
    # Evenly spaced indices would alias with weekdays, hours or the lines of a grid.
    return np.sort(np.random.default_rng(FIXED_SEED).choice(n, most, replace=False))


def are_whole(w: Array) -> bool:
    """Whether all weights are whole numbers."""
    return bool((w == np.rint(w)).all())


def weighted_mean(y: Array, w: Array) -> Array:
    """Weighted mean of each column of y, exact for a constant column."""
    mean = w @ y / w.sum()
    # Otherwise rounding would leave noise in a constant target, which a search would then fit.
    return mean + w @ (y - mean) / w.sum()


def weighted_std(X: Array, w: Array) -> Array:
    """Weighted standard deviation of each column of X."""
    share = w / w.sum()
    return np.sqrt(share @ np.square(X - share @ X))


def bulk_centre(Z: Array) -> Array:
    """Median of some rows. Squares expanded about it keep their digits, even with outliers."""
    return np.median(Z[:: max(1, len(Z) // 256)], axis=0)
