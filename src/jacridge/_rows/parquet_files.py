"""`ParquetFiles`: rows of a fit in files that may be larger than memory."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._compute.arrays import Array
from .._geometry.distances import EUCLIDEAN, Distance
from .labels import ClassTotals, CodedColumn, block_totals, joined_totals
from .parquet import ParquetRows, check_no_others, checked_size, column_names, values_in


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files with the same columns, as the X of a fit to rows that may exceed memory.

    ``est.fit(ParquetFiles("part-*.parquet"), "price")`` fits to the column `price` by the Nystrom
    solver; a third argument names a column of weights.

    Parameters
    ----------
    source : str, path or list of them
        A file, a pattern such as ``part-*.parquet``, or files.
    features : list of str, optional
        Columns to use; by default all except target and weights.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, polars as pl
    >>> from jacridge import JacobianKernelRidge
    >>> from jacridge.parquet import ParquetFiles
    >>> x = np.linspace(0, 6, 100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pl.DataFrame({"x": x, "y": np.sin(x)}).write_parquet(os.path.join(folder, "1.parquet"))
    ...     files = ParquetFiles(os.path.join(folder, "*.parquet"))
    ...     est = JacobianKernelRidge(bandwidth=1.0).fit(files, "y")
    ...     round(float(est.predict(files)[50] - np.sin(x[50])), 3)
    0.0
    """

    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
    features: Sequence[str] | None = None

    def parts(self) -> list[str]:
        """The files; those of a pattern are sorted."""
        if not isinstance(self.source, str | os.PathLike):
            paths = [os.fspath(path) for path in self.source]
        elif os.path.exists(self.source):  # whatever characters its name has
            paths = [os.fspath(self.source)]
        else:
            paths = sorted(glob.glob(os.fspath(self.source)))
        if not paths:
            raise FileNotFoundError(2, "No Parquet file matches this pattern", str(self.source))
        return paths

    def rows(
        self,
        y: str | Sequence[str] | CodedColumn | None,
        weight: str | None = None,
        distance: Distance = EUCLIDEAN,
    ) -> ParquetRows:
        """The rows of all files, with the columns y, if any, as targets."""
        coding = y.coding if isinstance(y, CodedColumn) else None
        y = y.name if isinstance(y, CodedColumn) else y
        targets = [] if y is None else _names("y", y)
        if weight is not None:
            _check_name("sample_weight", weight)
        used = [*targets, *([] if weight is None else [weight])]
        paths = self.parts()
        columns = [column_names(path) for path in paths]
        features = [name for name in columns[0] if name not in used]
        if self.features:
            features = _names("features", self.features)
        names = [*features, *used]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice or not features:
            got = f"`{twice[0]}` twice" if twice else "none"
            raise ValueError(
                "Features must be distinct columns other than the target and the weights, got "
                f"{got}. Name them: ParquetFiles(source, [...])."
            )
        each = list(zip(paths, columns, strict=True))
        sizes = [checked_size(*part, names, paths[0]) for part in each]
        if not self.features:
            for part in each:
                check_no_others(*part, columns[0], paths[0])
        if not any(sizes):
            raise ValueError(f"{paths[0]}: Parquet files must have rows, got none.")
        return ParquetRows(paths, sizes, features, targets, weight, distance, coding)

    def labels(self, name: str) -> Any:
        """Labels in a column, from all files."""
        paths = self.parts()
        return np.concatenate([values_in(path, name, paths[0]) for path in paths])

    def class_totals(self, name: str, weight: str | None = None) -> ClassTotals:
        """Classes in a column of labels, counted file by file."""
        _check_name("y", name)
        paths, names = self.parts(), [name] if weight is None else [name, weight]
        blocks = ([values_in(path, each, paths[0]) for each in names] for path in paths)
        return joined_totals([block_totals(*block) for block in blocks])

    def column_values(self, names: str | Sequence[str]) -> Array:
        """Values of one or several columns, from all files."""
        values = np.vstack(list(self.features_rows(_names("y", names)).each(lambda X, y, w: X)))
        return values[:, 0] if isinstance(names, str) else values

    def weights(self, given: Any) -> Any:
        """Weights from the column with the given name; anything else is returned unchanged."""
        return self.column_values(given) if isinstance(given, str) else given

    def features_rows(self, features: Sequence[str], distance: Distance = EUCLIDEAN) -> ParquetRows:
        """The rows of all files, without targets."""
        names = features if isinstance(features, str) else list(features)
        return replace(self, features=names).rows(None, None, distance)


def _check_name(argument: str, given: Any) -> None:
    """Refuse anything but the name of one column."""
    if not isinstance(given, str):
        raise TypeError(
            f"`{argument}` must be the name of a column of the Parquet files, got {_shown(given)}."
        )


def _names(argument: str, given: Any) -> list[str]:
    """One or several names as a list; anything else raises an error."""
    names = [given] if isinstance(given, str) else given
    if isinstance(names, list | tuple) and names and all(isinstance(n, str) for n in names):
        return list(names)
    raise TypeError(
        f"`{argument}` must be the name of a column of the Parquet files, or a list of names, got "
        f"{_shown(given)}."
    )


def _shown(given: Any) -> str:
    """Describe an argument in an error message: an array by its shape, others by their value."""
    return f"an array of shape {given.shape}" if hasattr(given, "shape") else repr(given)
