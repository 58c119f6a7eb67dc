"""Rows as callers give them to `fit` and `predict`: arrays, Parquet files and Dask arrays.

All kinds have the same methods. `source` returns the checked rows for a fit, and whether they have
a single target rather than a table of targets. `each` computes results for rows to predict, block
by block, and returns them concatenated; its `shape` is the number of results, followed by their
shape for one row. `read` returns such rows in memory.

The estimator `est` is passed on to scikit-learn's `validate_data`, which stores the number and
names of the features in a fit, and compares them with those of later rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import validate_data

from .._checks import (
    LARGEST_TARGET,
    check_columns,
    check_range,
    check_rows,
    check_weights,
    naming_classes,
    naming_texts,
)
from .._compute.arrays import Array
from .dask import dask_array, dask_rows, is_dask, lazy_rows
from .parquet_files import ParquetFiles
from .rows import ArrayRows
from .source import Source, array_source

if TYPE_CHECKING:
    from .._geometry.distances import Distance

# Function from a block of rows to results, each with one entry per row.
BlockWork = Callable[[Array], tuple[Array, ...]]


@dataclass(frozen=True)
class GivenArray:
    """Rows that can be converted to a NumPy array. Results are computed immediately."""

    X: Any

    def source(self, est: Any, y: Any, w: Any, distance: Distance) -> tuple[Source, bool]:
        """Rows of a fit. A memory map is read in blocks, and its rows are not merged."""
        # Copied, so that later changes to X and y have no effect.
        options = {"copy": not isinstance(self.X, np.memmap), "dtype": np.float64}
        with naming_classes(y), naming_texts(self.X):
            X, y = validate_data(est, self.X, y, multi_output=True, y_numeric=True, **options)
            y = np.array(y, dtype=np.float64)
        distance.check(X)
        check_range("y", y, LARGEST_TARGET)
        w = None if w is None else check_weights(w, X)
        targets = y[:, None] if y.ndim == 1 else y
        if isinstance(self.X, np.memmap):
            return Source(ArrayRows(X, targets, w), X.shape[1]), y.ndim == 1
        return array_source(X, targets, w, distance), y.ndim == 1

    def each(self, est: Any, work: BlockWork, distance: Distance, *shape: int) -> tuple[Any, ...]:
        """Results of `work` for all rows."""
        return work(self.read(est, distance))

    def read(self, est: Any, distance: Distance) -> Array:
        """The rows, checked."""
        with naming_texts(self.X):
            X = validate_data(est, self.X, dtype=np.float64, reset=False)
        distance.check(X, new=True)
        return np.asarray(X)


@dataclass(frozen=True)
class GivenFiles:
    """Rows of Parquet files, which need not fit in memory. Results are computed in blocks."""

    files: ParquetFiles

    def source(self, est: Any, y: Any, w: Any, distance: Distance) -> tuple[Source, bool]:
        """Rows of a fit, from columns of the files."""
        if y is None:
            raise ValueError("`y` must name the column of the target in Parquet files, got None.")
        rows = self.files.rows(y, w, distance)
        est.n_features_in_ = len(rows.features)
        est.feature_names_in_ = np.array(rows.features, dtype=object)
        return Source(rows, len(rows.features)), isinstance(y, str)

    def each(self, est: Any, work: BlockWork, distance: Distance, *shape: int) -> tuple[Any, ...]:
        """Results of `work` for all rows, which are not kept in memory."""
        names = getattr(est, "feature_names_in_", self.files.features)
        if names is None:
            raise ValueError(
                "`ParquetFiles` must name its features for a model that was fitted to rows without "
                "names. List them in the order of the fit: ParquetFiles(source, [...])."
            )
        rows = self.files.features_rows(names, distance)
        check_columns("X", len(rows.features), est.n_features_in_)
        parts = rows.each(lambda X, y, w: work(X))
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def read(self, est: Any, distance: Distance) -> Array:
        """The rows of all files."""
        return self.each(est, lambda X: (X,), distance)[0]


@dataclass(frozen=True)
class GivenDask:
    """Rows of a Dask array or data frame, which are not moved. Results are lazy."""

    X: Any

    def source(self, est: Any, y: Any, w: Any, distance: Distance) -> tuple[Source, bool]:
        """Rows of a fit, in blocks."""
        if y is None:
            raise ValueError("`y` must be given: fit requires y to be passed, got None.")
        rows = dask_rows(self.X, y, w, distance)
        self._check_features(est, reset=True)
        return Source(rows, self.X.shape[1]), np.ndim(y) == 1

    def each(self, est: Any, work: BlockWork, distance: Distance, *shape: int) -> tuple[Any, ...]:
        """Lazy arrays of the results of `work`, which is called once for each block."""
        array = dask_array(self.X)
        self._check_features(est, reset=False)
        stacked = lazy_rows(array, partial(_stacked, work, distance), *shape)
        return tuple(stacked[:, i] for i in range(shape[0]))

    def read(self, est: Any, distance: Distance) -> Array:
        """The rows, computed and checked."""
        self._check_features(est, reset=False)
        return _new_rows(np.asarray(dask_array(self.X)), distance)

    def _check_features(self, est: Any, *, reset: bool) -> None:
        """Store or compare number and names of the features, without reading any values."""
        shown = self.X._meta if hasattr(self.X, "to_dask_array") else self.X
        validate_data(est, shown, reset=reset, skip_check_array=True)


RowsGiven = GivenArray | GivenFiles | GivenDask


def rows_given(X: Any) -> RowsGiven:
    """Wrap X in the class of its kind."""
    if is_dask(X):
        return GivenDask(X)
    return GivenFiles(X) if isinstance(X, ParquetFiles) else GivenArray(X)


def _new_rows(X: Array, distance: Distance) -> Array:
    """Check rows to predict, or some of them."""
    X = check_rows(X)
    distance.check(X, new=True)
    return X


def _stacked(work: BlockWork, distance: Distance, X: Array) -> Array:
    """Results of `work`, stacked along axis 1."""
    return np.stack(work(_new_rows(X, distance)), axis=1)
