"""Parquet files larger than memory: their rows in blocks, read anew in each pass."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._checks import Array, Indices, check_metric_rows, check_range, require
from ._distances import one_blas_thread, processors
from ._progress import tell
from ._streams import (
    SPAN,
    Block,
    T,
    Work,
    in_order,
    parted,
    rejoined,
    rows_for,
    rows_of,
    total_of,
)

__all__ = ["ParquetFiles"]

# Rows that are read at a time.
READ_ROWS = 16 * SPAN

# Files, each with its rows from one to before another.
Piece = list[tuple[str, int, int]]


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files with the same columns, as the X of a fit whose rows need not fit in memory.

    ``est.fit(ParquetFiles("part-*.parquet"), "price")`` fits to the column `price` by the Nystrom
    solver; a third argument names a column of weights.

    Parameters
    ----------
    source : str, path or list of them
        A file, a pattern such as ``part-*.parquet``, or files.
    features : list of str, optional
        Columns to use; all but target and weights if none are given.

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
        """The files, sorted."""
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
        self, y: str | Sequence[str] | None, weight: str | None = None, metric: str = "euclidean"
    ) -> ParquetRows:
        """The rows of all files, with the columns y, if any, as targets."""
        targets = [] if y is None else _names("y", y)
        used = {*targets, *([] if weight is None else _names("sample_weight", weight))}
        paths = self.parts()
        known = _columns(paths[0])
        features = list(self.features or [name for name in known if name not in used])
        names = [*features, *targets, *([weight] if weight else [])]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice or not features:
            got = f"`{twice[0]}` twice" if twice else "none"
            raise ValueError(
                "Features must be columns beside target and weights, each of them once, got "
                f"{got}. Name them: ParquetFiles(source, [...])."
            )
        sizes = [_checked_size(path, names, paths[0]) for path in paths]
        if not self.features:
            for path in paths:
                _check_no_others(path, known, paths[0])
        if not any(sizes):
            raise ValueError(f"{paths[0]}: Parquet files must have rows to fit to, got none.")
        return ParquetRows(paths, sizes, features, targets, weight, metric)

    def column_values(self, names: str | Sequence[str]) -> Array:
        """Values of a column, or of several, of all files."""
        values = np.vstack(list(self.features_rows(_names("y", names)).each(lambda X, y, w: X)))
        return values[:, 0] if isinstance(names, str) else values

    def features_rows(self, features: Sequence[str], metric: str = "euclidean") -> ParquetRows:
        """The rows of all files, without targets."""
        paths = self.parts()
        sizes = [_checked_size(path, features, paths[0]) for path in paths]
        if not any(sizes):
            raise ValueError(f"{paths[0]}: Parquet files must have rows, got none.")
        return ParquetRows(paths, sizes, list(features), [], None, metric)


@dataclass(frozen=True)
class ParquetRows:
    """Rows of Parquet files with known sizes."""

    paths: list[str]
    sizes: list[int]
    features: list[str]
    targets: list[str]
    weight: str | None
    metric: str = "euclidean"

    @property
    def n(self) -> int:
        """Number of rows."""
        return sum(self.sizes)

    def each(self, work: Work[T]) -> Iterator[T]:
        """Results for all blocks, in order; few of them wait at any time."""
        return self._pass(lambda _, block: work(*block), self._pieces(), rows_for(work))

    def total(self, work: Work[Any]) -> Any:
        """Sum of the results for all spans."""
        return total_of(work, lambda add: self._pass(add, self._pieces(), rows_for(work)))

    def take(self, indices: Indices) -> Block:
        """The rows with these indices; blocks without any are not read."""
        pieces = self._pieces()
        places, order = parted(indices, _starts(pieces))
        asked = [(piece, i) for piece, i in zip(pieces, places, strict=True) if len(i)]
        return rejoined((rows_of(self._read(piece), i) for piece, i in asked), order)

    def look(self, work: Work[T], indices: Indices) -> tuple[list[T], Block]:
        """Results for all blocks, and the rows with these indices, each block read once."""
        pieces = self._pieces()
        places, order = parted(indices, _starts(pieces))

        def seen(i: int, block: Block) -> tuple[T, Block]:
            return work(*block), rows_of(block, places[i])

        found, rows = zip(*self._pass(seen, pieces, rows_for(work)), strict=True)
        return list(found), rejoined(rows, order)

    def _pieces(self) -> list[Piece]:
        """What is read at a time, through the ends of files."""
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

    def _pass(self, part: Callable[[int, Block], T], pieces: list[Piece], what: str) -> Iterator[T]:
        """What `part` makes of the number of a piece and its rows, in order."""
        done = np.cumsum([_length(piece) for piece in pieces])
        with one_blas_thread(), ThreadPoolExecutor(processors()) as pool:
            results = in_order(pool, lambda i: part(i, self._read(pieces[i])), range(len(pieces)))
            for count, found in zip(done, results, strict=True):
                tell(int(count), self.n, what)
                yield found

    def _read(self, piece: Piece) -> Block:
        """The rows of a piece as features, targets and weights."""
        table = np.vstack([self._read_file(*rows) for rows in piece])
        p, k = len(self.features), len(self.targets)
        return table[:, :p], table[:, p : p + k], table[:, -1] if self.weight else None

    def _read_file(self, path: str, start: int, stop: int) -> Array:
        """Some rows of a file, or an error that names the file."""
        pl = require("polars", extra="cli")
        names = [*self.features, *self.targets, *([self.weight] if self.weight else [])]
        length = stop - start
        try:
            frame = pl.scan_parquet(path, glob=False).select(names).slice(start, length).collect()
        except (OSError, pl.exceptions.PolarsError) as error:
            raise OSError(
                f"`{path}` was there when the fit began and cannot be read any more. "
                "Nothing was fitted."
            ) from error
        if len(frame) != length:
            raise OSError(f"`{path}` has changed since the fit began. Nothing was fitted.")
        table = np.column_stack([_numbers(frame[name], name, path) for name in names])
        check_metric_rows(table[:, : len(self.features)], self.metric)
        if self.weight and table[:, -1].min(initial=0) < 0:
            raise ValueError(
                f"`{self.weight}` must hold weights >= 0, got {table[:, -1].min():g} in `{path}`."
            )
        return table


def _names(argument: str, given: Any) -> list[str]:
    """One name or several, or an error that says what was given instead."""
    names = [given] if isinstance(given, str) else given
    if isinstance(names, list | tuple) and names and all(isinstance(n, str) for n in names):
        return list(names)
    got = f"an array of shape {np.shape(given)}" if np.ndim(given) else repr(given)
    raise TypeError(
        f"`{argument}` must be the name of a column of the Parquet files, or a list of names, got "
        f"{got}."
    )


def _starts(pieces: list[Piece]) -> Indices:
    """The first row of each piece, counted through all files."""
    return np.cumsum([0, *map(_length, pieces[:-1])])


def _length(piece: Piece) -> int:
    return sum(stop - start for _, start, stop in piece)


def _columns(path: str) -> list[str]:
    """The names of the columns of a file."""
    pl = require("polars", extra="cli")
    try:
        return list(pl.scan_parquet(path, glob=False).collect_schema().names())
    except FileNotFoundError:
        raise
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ValueError(f"`{path}` must be a whole Parquet file, got one that is not.") from error


def _checked_size(path: str, names: Sequence[str], first: str) -> int:
    """Rows of a file that has all the columns."""
    pl = require("polars", extra="cli")
    missing = [name for name in names if name not in _columns(path)]
    if missing:
        like = f", as `{first}` has" if path != first else ""
        listed = ", ".join(f"`{name}`" for name in missing)
        raise ValueError(f"`{path}` must have the column {listed}{like}, got none of that name.")
    return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())


def _check_no_others(path: str, known: Sequence[str], first: str) -> None:
    """Refuse a file with columns that the first one does not have."""
    others = [name for name in _columns(path) if name not in known]
    if others:
        listed = ", ".join(f"`{name}`" for name in others)
        raise ValueError(
            f"`{path}` must have the columns of `{first}`, got {listed} besides. "
            "Name the features to take: ParquetFiles(source, [...])."
        )


def _numbers(column: Any, name: str, path: str) -> Array:
    """A column as doubles, or an error that names it and its file."""
    if not column.dtype.is_numeric() and column.dtype != require("polars", extra="cli").Boolean:
        raise ValueError(f"`{name}` in `{path}` must hold numbers, got {column.dtype}.")
    values: Array = column.cast(float).to_numpy()
    if not np.isfinite(values).all():
        count = int((~np.isfinite(values)).sum())
        raise ValueError(
            f"`{name}` in `{path}` must hold finite numbers, got {count} missing or infinite. "
            "Leave out these rows first."
        )
    check_range(name, values)
    return values
