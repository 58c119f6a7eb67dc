"""Rows of Parquet files, which each pass reads in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import LARGEST, LARGEST_TARGET, check_range, require
from .._compute.arrays import Array
from .rows import Block, BlockRows

if TYPE_CHECKING:
    from .._geometry.distances import Distance
    from .labels import Coding

# Number of rows read at a time.
READ_ROWS = 65_536

# Files, each with the first row and the row after the last.
Piece = list[tuple[str, int, int]]


@dataclass(frozen=True)
class ParquetRows(BlockRows):
    """Rows of Parquet files of known sizes."""

    paths: list[str]
    sizes: list[int]
    features: list[str]
    targets: list[str]
    weight: str | None
    distance: Distance
    coding: Coding | None = None  # of labels, the only target

    @cached_property
    def ends(self) -> Sequence[int]:
        """Number of rows up to the end of each block."""
        lengths = (sum(stop - start for _, start, stop in piece) for piece in self._pieces)
        return list(accumulate(lengths))

    @cached_property
    def _pieces(self) -> list[Piece]:
        """The blocks; each may span several files."""
        pieces, room = list[Piece](), 0
        for path, size in zip(self.paths, self.sizes, strict=True):
            start = 0
            while start < size:
                if not room:
                    pieces.append([])
                    room = READ_ROWS
                stop = min(start + room, size)
                pieces[-1].append((path, start, stop))
                start, room = stop, room - (stop - start)
        return pieces

    def read(self, i: int) -> Block:
        """Block i: features, targets and weights."""
        table = np.vstack([self._read_file(*rows) for rows in self._pieces[i]])
        p, k = len(self.features), len(self.targets)
        k = k if self.coding is None else self.coding.columns
        weighted = table.shape[1] > p + k
        return table[:, :p], table[:, p : p + k], table[:, -1] if weighted else None

    def _read_file(self, path: str, start: int, stop: int) -> Array:
        """Some rows of a file; errors name the file."""
        pl = require("polars", extra="cli")
        names = [*self.features, *self.targets, *([self.weight] if self.weight else [])]
        length = stop - start
        try:
            frame = pl.scan_parquet(path, glob=False).select(names).slice(start, length).collect()
        except (OSError, pl.exceptions.PolarsError) as error:
            raise OSError(
                f"`{path}` could be read when the fit began, but not any more. No model was fitted."
            ) from error
        if len(frame) != length:
            raise OSError(f"`{path}` has changed since the fit began. No model was fitted.")
        coded = self.targets if self.coding is not None else []
        most = dict.fromkeys(names, LARGEST) | dict.fromkeys(self.targets, LARGEST_TARGET)
        table = np.column_stack(
            [_numbers(frame[name], path, most[name]) for name in names if name not in coded]
        )
        self.distance.check(table[:, : len(self.features)])
        if self.weight and table[:, -1].min(initial=0) < 0:
            raise ValueError(
                f"`{self.weight}` must hold weights >= 0, got {table[:, -1].min():g} in `{path}`."
            )
        return table if self.coding is None else self._coded(table, frame[coded[0]], self.coding)

    def _coded(self, table: Array, labels: Any, coding: Coding) -> Array:
        """Features, coded targets and weights, if there are any."""
        y, w = labels.to_numpy(), table[:, -1] if self.weight else None
        weights = coding.weights(y, w)
        parts = [table[:, : len(self.features)], coding.targets(y)]
        return np.column_stack(parts if weights is None else [*parts, weights])


def column_names(path: str) -> list[str]:
    """The names of the columns of a file."""
    pl = require("polars", extra="cli")
    try:
        return list(pl.scan_parquet(path, glob=False).collect_schema().names())
    except FileNotFoundError:
        raise
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ValueError(
            f"`{path}` cannot be read as Parquet: the file is truncated or of another kind."
        ) from error


def checked_size(path: str, columns: Sequence[str], names: Sequence[str], first: str) -> int:
    """Number of rows of a file with some columns, which must have those of all names."""
    pl = require("polars", extra="cli")
    missing = [name for name in names if name not in columns]
    if missing:
        like = f", as `{first}` has" if path != first else ""
        listed = ", ".join(f"`{name}`" for name in missing)
        raise ValueError(f"`{path}` must have the column {listed}{like}, got none of that name.")
    return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())


def check_no_others(path: str, columns: Sequence[str], known: Sequence[str], first: str) -> None:
    """Raise an error if a file has columns that the first file does not have."""
    others = [name for name in columns if name not in known]
    if others:
        listed = ", ".join(f"`{name}`" for name in others)
        raise ValueError(
            f"`{path}` must have the columns of `{first}`, got {listed} as well. "
            "Name the features to use: ParquetFiles(source, [...])."
        )


def values_in(path: str, name: str, first: str) -> Any:
    """Values of a column of a file; missing values raise an error."""
    checked_size(path, column_names(path), [name], first)
    frame = require("polars", extra="cli").scan_parquet(path, glob=False).select(name).collect()
    missing = int(frame[name].null_count())
    if missing:
        raise ValueError(
            f"`{name}` in `{path}` must have a value in every row, got {missing} missing. Remove "
            "these rows first."
        )
    return frame[name].to_numpy()


def _numbers(column: Any, path: str, most: float) -> Array:
    """A column as doubles of at most this size; errors name the column and the file."""
    name = column.name
    if not column.dtype.is_numeric() and column.dtype != require("polars", extra="cli").Boolean:
        raise ValueError(f"`{name}` in `{path}` must hold numbers, got {column.dtype}.")
    values: Array = column.cast(float).to_numpy()
    if not np.isfinite(values).all():
        count = int((~np.isfinite(values)).sum())
        raise ValueError(
            f"`{name}` in `{path}` must hold finite numbers, got {count} missing or infinite. "
            "Remove these rows first."
        )
    check_range(name, values, most)
    return values
