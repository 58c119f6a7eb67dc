"""Rows that are processed in blocks: the interface, arrays, and rows after a map."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import iadd
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from .._compute.arrays import Array, Indices, row_blocks
from .._compute.progress import tell
from .._compute.threads import in_order, processors

if TYPE_CHECKING:
    from .._geometry.maps import FeatureMap

T = TypeVar("T")

# A block of rows: features, targets of shape (rows, k), weights or None for ones.
Block = tuple[Array, Array, Array | None]
Work = Callable[[Array, Array, Array | None], T]

# Most rows of an array in one task.
TASK_ROWS = 8192


class Rows(Protocol):
    """Training rows from any source. A pass calls `work` on blocks that cover them in order.

    `each` yields the results of a pass and `total` returns their sum. `take` returns the rows with
    given indices, and `look` returns both results and rows from one pass.
    """

    @property
    def n(self) -> int: ...
    def each(self, work: Work[T]) -> Iterator[T]: ...
    def total(self, work: Work[Any]) -> Any: ...
    def take(self, indices: Indices) -> Block: ...
    def look(self, work: Work[T], indices: Indices) -> tuple[list[T], Block]: ...


class BlockRows(ABC):
    """Rows that this process reads in blocks."""

    @property
    @abstractmethod
    def ends(self) -> Sequence[int]:
        """Number of rows up to the end of each block."""

    @abstractmethod
    def read(self, i: int) -> Block:
        """Block i."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.ends[-1]

    def each(self, work: Work[T]) -> Iterator[T]:
        """Results for all blocks, in order; only a few of them are held at any time."""
        return self._pass(lambda i: work(*self.read(i)), work, under_way())

    def total(self, work: Work[Any]) -> Any:
        """Sum of the results for all blocks, accumulated in one partial sum per block under way.

        Blocks are assigned to these sums in turn, so that neither the memory used nor the order of
        additions depends on which block is finished first.
        """
        sums: list[Any] = [None] * under_way()

        def add(i: int) -> None:
            sums[i % len(sums)] = added_to(sums[i % len(sums)], work, self.read(i))

        for _ in self._pass(add, work, len(sums)):
            pass
        return reduce(iadd, (total for total in sums if total is not None))

    def take(self, indices: Indices) -> Block:
        """The rows with these indices; blocks without any are not read."""
        places, order = self._places(indices)
        parts = (rows_of(self.read(i), at) for i, at in enumerate(places) if len(at))
        return rejoined(parts, order)

    def look(self, work: Work[T], indices: Indices) -> tuple[list[T], Block]:
        """Results for all blocks, and the rows with these indices, each block read once."""
        places, order = self._places(indices)

        def seen(i: int) -> tuple[T, Block]:
            block = self.read(i)
            return work(*block), rows_of(block, places[i])

        found, rows = zip(*self._pass(seen, work, under_way()), strict=True)
        return list(found), rejoined(rows, order)

    def _places(self, indices: Indices) -> tuple[list[Indices], Indices]:
        return places_in_blocks(indices, np.array([0, *self.ends[:-1]]))

    def _pass(self, part: Callable[[int], T], work: Work[Any], most: int) -> Iterator[T]:
        """Results of `part` for the number of each block, in order, with progress reported."""
        with closing(in_order(part, range(len(self.ends)), most)) as results:
            for end, result in zip(self.ends, results, strict=True):
                tell(end, self.n, progress_name(work))
                yield result


@dataclass(frozen=True)
class ArrayRows(BlockRows):
    """Rows of arrays or memory maps, processed by as many threads as there are processors."""

    X: Array
    y: Array
    w: Array | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.X)

    @cached_property
    def _parts(self) -> list[slice]:
        return row_blocks(self.n, _task_rows(self.n))

    @property
    def ends(self) -> Sequence[int]:
        """Number of rows up to the end of each block."""
        return [part.stop for part in self._parts]

    def read(self, i: int) -> Block:
        """Block i. Rows in memory are not copied; those of a memory map are read here."""
        return self.take(self._parts[i])

    def take(self, indices: Indices | slice) -> Block:
        """The rows with these indices."""
        return rows_of((self.X, self.y, self.w), indices)

    def look(self, work: Work[T], indices: Indices) -> tuple[list[T], Block]:
        """Results for all blocks, and the rows with these indices."""
        return list(self.each(work)), self.take(indices)


def under_way() -> int:
    """Number of blocks that are processed or held ready: one more than there are processors."""
    return processors() + 1


def _task_rows(n: int) -> int:
    """Rows per task, such that all processors get the same number of tasks."""
    tasks = -(-n // TASK_ROWS)
    tasks = -(-tasks // processors()) * processors() if tasks > 1 else 1
    return max(1, -(-n // tasks))


def added_to(total: Any, work: Work[Any], block: Block) -> Any:
    """The total (None if there is none yet) plus the result of `work` for one more block."""
    if total is None:
        return work(*block)
    if hasattr(work, "add_to"):
        return work.add_to(total, *block)
    total += work(*block)
    return total


def places_in_blocks(indices: Indices, starts: Indices) -> tuple[list[Indices], Indices]:
    """Places of rows within the blocks that start at `starts`, and how to restore the order.

    Rows that are taken block by block and then indexed by the second result are in the order of
    `indices`.
    """
    order = np.argsort(indices, kind="stable")
    found = np.split(indices[order], np.searchsorted(indices[order], starts[1:]))
    return [i - start for i, start in zip(found, starts, strict=True)], np.argsort(order)


def rows_of(block: Block, places: Indices | slice) -> Block:
    """Some rows of a block."""
    X, y, w = block
    return np.asarray(X[places]), np.asarray(y[places]), None if w is None else w[places]


def rejoined(parts: Iterable[Block], order: Indices) -> Block:
    """Rows of several blocks as one block, in the given order."""
    X, y, w = zip(*parts, strict=True)
    whole = np.vstack(X), np.vstack(y), None if w[0] is None else np.concatenate(w)
    return rows_of(whole, order)


def progress_name(work: Any) -> str:
    """Name of a pass in progress messages."""
    return f"rows, {getattr(work, 'what', 'one pass')}"


@dataclass(frozen=True)
class MappedRows:
    """Rows with a map applied to their features, block by block."""

    rows: Rows
    mapping: FeatureMap

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.rows.n

    def each(self, work: Work[T]) -> Iterator[T]:
        """Results for all blocks, in order."""
        return self.rows.each(MappedWork(work, self.mapping))

    def total(self, work: Work[Any]) -> Any:
        """Sum of the results for all blocks."""
        return self.rows.total(MappedWork(work, self.mapping))

    def take(self, indices: Indices) -> Block:
        """The rows with these indices."""
        X, y, w = self.rows.take(indices)
        return self.mapping(X), y, w

    def look(self, work: Work[T], indices: Indices) -> tuple[list[T], Block]:
        """Results for all blocks, and the rows with these indices."""
        found, (X, y, w) = self.rows.look(MappedWork(work, self.mapping), indices)
        return found, (self.mapping(X), y, w)


class MappedWork:
    """Work that is given mapped rows."""

    def __init__(self, work: Any, mapping: FeatureMap) -> None:
        self.work, self.mapping = work, mapping
        self.what = getattr(work, "what", "one pass")

    def __call__(self, X: Array, y: Array, w: Array | None) -> Any:
        return self.work(self.mapping(X), y, w)

    def add_to(self, total: Any, X: Array, y: Array, w: Array | None) -> Any:
        """The total plus the result for one more block."""
        return added_to(total, self.work, (self.mapping(X), y, w))
