"""Rows in Dask arrays: passes over blocks that stay on the workers, and lazy predictions.

A pass sends its work (landmarks, a factor) to the workers once, and returns the result for each
block, or only the sum. Each pass computes the blocks again unless the caller has persisted them, so
data may be larger than the memory of all workers.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import reduce
from itertools import count
from numbers import Real
from operator import iadd
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import (
    LARGEST,
    LARGEST_TARGET,
    check_range,
    check_weight,
    check_weights,
    require,
)
from .._compute.arrays import Array, Indices
from .._compute.progress import is_heard, tell
from .._compute.threads import one_blas_thread
from .rows import Block, T, Work, places_in_blocks, progress_name, rejoined, rows_of

if TYPE_CHECKING:
    from .._geometry.distances import Distance

# Number of terms that one task adds up; number of blocks whose results are awaited at a time.
FAN_IN = 8
BATCH = 256


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array or data frame. Dask is not imported."""
    return type(X).__module__.split(".")[0] == "dask" and hasattr(X, "dask")


@dataclass(frozen=True)
class DaskRows:
    """Rows of Dask arrays: arguments of `_checked` for each block, and first rows of the blocks."""

    blocks: Sequence[tuple[Any, ...]]
    starts: Indices
    n: int

    def each(self, work: Work[T]) -> Iterator[T]:
        """Results for all blocks, in order; only a few of them are held at any time."""
        tasks = self._tasks(work)
        for first in range(0, len(tasks), BATCH):
            tell(int(self.starts[first]), self.n, progress_name(work))
            yield from computed(tasks[first : first + BATCH])
        tell(self.n, self.n, progress_name(work))

    def total(self, work: Work[Any]) -> Any:
        """Sum of the results for all blocks, added up by the workers."""
        task, parts = delayed(), self._tasks(work)
        tasks = len(parts)
        while len(parts) > 1:
            starts = range(0, len(parts), FAN_IN)
            parts = [task(_added)(parts[start : start + FAN_IN]) for start in starts]
        return self._passed(parts, work, tasks)[0]

    def take(self, indices: Indices) -> Block:
        """The rows with these indices."""
        places, order = places_in_blocks(indices, self.starts)
        asked = [(i, block) for i, block in zip(places, self.blocks, strict=True) if len(i)]
        task = delayed()
        return rejoined(computed([task(_taken)(i, *block) for i, block in asked]), order)

    def look(self, work: Work[T], indices: Indices) -> tuple[list[T], Block]:
        """Results for all blocks, and the rows with these indices, each block computed once."""
        places, order = places_in_blocks(indices, self.starts)
        task, shared = delayed(), _shared(work)
        tasks = [
            task(_applied_and_taken)(shared, i, *block)
            for i, block in zip(places, self.blocks, strict=True)
        ]
        found, taken = zip(*self._passed(tasks, work, len(tasks)), strict=True)
        return list(found), rejoined(taken, order)

    def _passed(self, tasks: Sequence[Any], work: Work[Any], blocks: int) -> Any:
        """Results of tasks that together process all rows once, with progress reported."""
        what = progress_name(work)
        tell(0, self.n, what)
        with _blocks_told(blocks, what):
            found = computed(tasks)
        tell(self.n, self.n, what)
        return found

    def _tasks(self, work: Work[T]) -> list[Any]:
        task, shared = delayed(), _shared(work)
        return [task(_applied)(shared, *block) for block in self.blocks]


def _blocks_told(total: int, what: str) -> Any:
    """Context that reports each finished block, unless a cluster does the work."""
    if not is_heard() or _client() is not None:
        return nullcontext()
    done = count(1)

    def told(key: Any, *_: Any) -> None:
        if str(key).startswith(_applied.__name__):
            tell(next(done), total, f"blocks of {what}")

    return require("dask.callbacks", extra="dask").Callback(posttask=told)


def dask_rows(X: Any, y: Any, w: Any, distance: Distance) -> DaskRows:
    """Rows of X, targets y (or None) and weights w (or None), after checks."""
    X = known(dask_array(X))
    if not X.shape[0]:
        raise ValueError("`X` must have at least one row, got none.")
    y, w = beside("y", y, X), beside("sample_weight", w, X)
    for name, Z in (("X", X), ("y", y)):
        if Z is not None and Z.ndim == 2 and not Z.shape[1]:
            raise ValueError(f"`{name}` must have at least one column, got none.")
    given = [Z for Z in (X, y, w) if Z is not None]
    given = list(require("dask", extra="dask").optimize(*given))
    tasks = [iter(Z.to_delayed(optimize_graph=False).ravel()) for Z in given]
    columns = [iter(()) if Z is None else tasks.pop(0) for Z in (X, y, w)]
    blocks, starts, start = [], [], 0
    for rows in X.chunks[0]:
        X_block, y_block, w_block = (next(column, None) for column in columns)
        shape = rows, X.shape[1], 0 if y is None else 1 if y.ndim == 1 else y.shape[1]
        if rows:
            blocks.append((X_block, y_block, w_block, start, shape, distance))
            starts.append(start)
        start += rows
    return DaskRows(blocks, np.array(starts), start)


def lazy_rows(X: Any, work: Callable[[Array], Array], *shape: int) -> Any:
    """Lazy array of shape (n, *shape) with the results of `work` for each block of rows."""
    X = X.rechunk({1: -1})
    return X.map_blocks(
        _made,
        _shared(work),
        shape,
        dtype=np.float64,
        meta=np.empty((0,) * (1 + len(shape))),
        chunks=(X.chunks[0], *((size,) for size in shape)),
        drop_axis=None if shape else 1,
        new_axis=list(range(2, 1 + len(shape))) or None,
    )


def dask_array(X: Any) -> Any:
    """A Dask array or data frame of numbers as a Dask array with one chunk of columns."""
    X = _as_array(X)
    if X.ndim != 2:
        raise ValueError(
            f"`X` must have two dimensions, rows and columns, got {X.ndim}. "
            "Reshape it with X[:, None] if it has one column."
        )
    _check_numbers("X", X)
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X


def _check_numbers(name: str, Z: Any) -> None:
    if Z.dtype.kind not in "biuf":
        raise TypeError(f"`{name}` must hold real numbers, got dtype {Z.dtype}.")


def _as_array(Z: Any) -> Any:
    return Z.to_dask_array(lengths=True) if hasattr(Z, "to_dask_array") else Z


def known(Z: Any) -> Any:
    """Z as an array with known chunk sizes; the caller's array is not changed."""
    Z = _as_array(Z)
    if not np.isnan(Z.shape).any():
        return Z
    with _clear_errors():
        return Z.copy().compute_chunk_sizes()


def beside(name: str, Z: Any, X: Any) -> Any:
    """Targets or weights in the same chunks as the rows of X; None stays None."""
    if Z is None:
        return None
    if name == "sample_weight" and isinstance(Z, Real):
        Z = require("dask.array", extra="dask").full(len(X), check_weight(Z))
    elif is_dask(Z):
        Z = known(Z)
    else:
        Z = require("dask.array", extra="dask").from_array(np.asarray(Z), chunks=-1)
    _check_numbers(name, Z)
    if Z.ndim not in ((1, 2) if name == "y" else (1,)) or Z.shape[0] != X.shape[0]:
        raise ValueError(
            f"`{name}` must have one entry for each of the {X.shape[0]} rows of `X`, got shape "
            f"{Z.shape}."
        )
    return Z.rechunk((X.chunks[0], -1)[: Z.ndim])


def delayed() -> Any:
    """Return `dask.delayed`."""
    return require("dask", extra="dask").delayed


def _shared(work: Any) -> Any:
    """A task that unpacks the work on one worker, from which others get it."""
    pack = require("cloudpickle", extra="dask").dumps
    return delayed()(_unpacked)(pack(work))


def _unpacked(packed: bytes) -> Any:
    """Unpickle the work on a worker, which imports this module and all that the work needs first.

    With `pickle.loads` itself, a worker's first task would import these modules while its event
    loop imports this one for the next tasks. They would wait for each other until the worker is
    lost.
    """
    return pickle.loads(packed)


def computed(tasks: Sequence[Any]) -> Any:
    """Compute tasks."""
    dask = require("dask", extra="dask")
    # Dask warns about large graphs. Ours contain the work, which must be sent once. If the setting
    # were made before `distributed` is imported, leaving the context would remove its defaults.
    settings = {"distributed.admin.large-graph-warning-threshold": 1e12}
    quiet = dask.config.set(settings if "distributed" in sys.modules else {})
    # One BLAS thread in each of Dask's threads.
    with one_blas_thread(), quiet, _clear_errors():
        return dask.compute(*tasks)


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Context that turns failures of the cluster into errors that suggest a remedy."""
    client = _client()
    address = client.scheduler.address if client is not None and client.scheduler else client
    try:
        yield
    except BaseException as error:  # cancelled tasks do not raise an Exception
        if type(error).__name__ == "KilledWorker":
            raise MemoryError(
                f"Dask gave up a task because every worker that ran it died: {error} Most likely "
                "the workers have too little memory. Use smaller chunks (X.rechunk), fewer "
                "landmarks, or workers with more memory."
            ) from error
        if client is not None and client.status != "running":
            raise ConnectionError(
                f"The Dask scheduler at {address} does not answer. "
                "Start it again, connect a new Client to it, and repeat the call."
            ) from error
        raise


def _client() -> Any:
    """The current client of a cluster; None if there is none or it is disconnected."""
    distributed = sys.modules.get("distributed")
    try:
        return distributed.default_client() if distributed else None
    except ValueError:
        return None


def _checked(
    X: Any, y: Any, w: Any, start: int, shape: tuple[int, int, int], distance: Distance
) -> Block:
    """A block as doubles; errors name the rows."""
    rows, p, k = shape
    y = np.empty((rows, 0)) if y is None else y
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    y = y[:, None] if y.ndim == 1 else y
    where = f"rows {start} to {start + rows - 1}"
    parts = ("X", X, (rows, p), LARGEST), ("y", y, (rows, k), LARGEST_TARGET)
    for name, Z, wanted, most in parts:
        if Z.shape != wanted:
            raise ValueError(
                f"`{name}` must have blocks that match its chunks, expected {wanted} for {where}, "
                f"got {Z.shape}."
            )
        if not np.isfinite(Z).all():
            bad = int(np.argmin(np.isfinite(Z).all(axis=1)))
            what = "NaN" if np.isnan(Z[bad]).any() else "infinity"
            raise ValueError(
                f"`{name}` must hold finite numbers, got {what} in row {start + bad}. "
                "Fill in these values or remove the rows first."
            )
        check_range(name, Z, most)
    distance.check(X)
    return X, y, None if w is None else _weights(w, X)


def _weights(w: Any, X: Array) -> Array:
    """Weights of a block, which may all be zero."""
    return np.zeros(len(X)) if not np.any(w) and len(w) == len(X) else check_weights(w, X)


def _applied(work: Work[T], *block: Any) -> T:
    """Result of the work for a block."""
    with one_blas_thread():  # in each thread of the worker
        return work(*_checked(*block))


def _added(parts: Sequence[Any]) -> Any:
    """Sum of the parts, which belong to Dask and are not changed."""
    first, *rest = parts
    return reduce(iadd, rest[1:], first + rest[0]) if rest else first


def _applied_and_taken(work: Work[T], places: Indices, *block: Any) -> tuple[T, Block]:
    checked = _checked(*block)
    with one_blas_thread():
        return work(*checked), rows_of(checked, places)


def _taken(places: Indices, *block: Any) -> Block:
    return rows_of(_checked(*block), places)


def _made(X: Array, work: Callable[[Array], Array], shape: tuple[int, ...]) -> Array:
    return work(X) if len(X) else np.empty((0, *shape))
