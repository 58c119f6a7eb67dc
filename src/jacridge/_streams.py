"""Rows that come in blocks, and passes over them: arrays and memory maps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from operator import iadd
from typing import Any, Protocol, TypeVar

import numpy as np

from ._checks import Array, Indices
from ._distances import one_blas_thread, processors, row_blocks
from ._progress import tell

T = TypeVar("T")

# A block of rows: features, targets of shape (rows, k), weights or None for ones.
Block = tuple[Array, Array, Array | None]
Work = Callable[[Array, Array, Array | None], T]

# Totals are made of the rows between multiples of this number, counted from the first row, however
# rows come: they are then the same, to the last bit, whatever the blocks are.
SPAN = 4096

# Rows of an array that one task takes where blocks need no sum.
TASK_ROWS = 8192


class Blocks(Protocol):
    """Rows that come in blocks. A pass calls `work` on blocks that cover them in order."""

    def each(self, work: Work[T]) -> Iterator[T]: ...


class Rows(Blocks, Protocol):
    """Training rows, wherever they are.

    `each` gives the results of a pass, `total` their sum, `take` the rows with some indices, and
    `look` both results and rows from one pass.
    """

    @property
    def n(self) -> int: ...
    def total(self, work: Work[Any]) -> Any: ...
    def take(self, indices: Indices) -> Block: ...
    def look(self, work: Work[T], indices: Indices) -> tuple[list[T], Block]: ...


@dataclass(frozen=True)
class ArrayRows:
    """Rows of arrays or memory maps, worked on in as many threads as there are processors."""

    X: Array
    y: Array
    w: Array | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.X)

    def each(self, work: Work[T]) -> Iterator[T]:
        """Results for all blocks, in order; few of them wait at any time."""
        blocks = row_blocks(self.n, _task_rows(self.n))
        return self._pass(lambda _, block: work(*block), list(blocks), rows_for(work))

    def total(self, work: Work[Any]) -> Any:
        """Sum of the results for all spans."""
        blocks = list(spans(self.n))
        return total_of(work, lambda add: self._pass(add, blocks, rows_for(work)))

    def _pass(self, part: Callable[[int, Block], T], blocks: list[slice], what: str) -> Iterator[T]:
        """What `part` makes of the number of a block and the block itself, in order."""

        def found(i: int) -> T:
            # A block of a memory map is read here; rows already in memory are not copied.
            X, y = np.asarray(self.X[blocks[i]]), np.asarray(self.y[blocks[i]])
            return part(i, (X, y, None if self.w is None else self.w[blocks[i]]))

        # One BLAS thread in each of ours: exp has but one thread, and would make BLAS's wait.
        with one_blas_thread(), ThreadPoolExecutor(processors()) as pool:
            for rows, result in zip(blocks, in_order(pool, found, range(len(blocks))), strict=True):
                tell(rows.stop, self.n, what)
                yield result

    def take(self, indices: Indices) -> Block:
        """The rows with these indices."""
        w = None if self.w is None else self.w[indices]
        return np.asarray(self.X[indices]), np.asarray(self.y[indices]), w

    def look(self, work: Work[T], indices: Indices) -> tuple[list[T], Block]:
        """Results for all blocks, and the rows with these indices."""
        return list(self.each(work)), self.take(indices)


def _under_way() -> int:
    """Blocks that are worked on or wait for it: one more than there are processors."""
    return processors() + 1


def _task_rows(n: int) -> int:
    """Rows of a task: as many tasks for each processor, so that all end together."""
    tasks = -(-n // TASK_ROWS)
    tasks = -(-tasks // processors()) * processors() if tasks > 1 else 1
    return max(1, -(-n // tasks))


def total_of(work: Work[Any], run: Callable[[Callable[[int, Block], None]], Iterator[Any]]) -> Any:
    """Sum of the results for all blocks of a pass, from as many sums as blocks may be under way.

    Blocks take turns in these sums, so that what is held does not depend on who is first, nor does
    the order in which results are added. `run` makes the pass, with a function that adds a block.
    """
    sums: list[Any] = [None] * _under_way()

    def add(i: int, block: Block) -> None:
        sums[i % len(sums)] = onto(sums[i % len(sums)], work, block)

    for _ in run(add):
        pass
    return reduce(iadd, (total for total in sums if total is not None))


def onto(total: Any, work: Work[Any], block: Block) -> Any:
    """The total, None if there is none yet, with what the work makes of one more block."""
    if total is None:
        return work(*block)
    if hasattr(work, "onto"):
        return work.onto(total, *block)
    total += work(*block)
    return total


def spans(n: int) -> Iterator[slice]:
    """Slices that cover n rows, of which the first is the first of a span, span by span."""
    return row_blocks(n, SPAN)


def in_spans(start: int, size: int, n: int) -> tuple[slice, list[tuple[int, Indices]]]:
    """Which rows of a block are whole spans; and those at its ends, each with its span's number.

    The block has `size` of n rows, from `start` on; its own rows are counted from zero.
    """
    first = min(-start % SPAN, size)
    last = size if start + size == n else max(size - (start + size) % SPAN, first)
    ends = [rows for rows in (np.arange(first), np.arange(last, size)) if len(rows)]
    return slice(first, last), [(int(start + rows[0]) // SPAN, rows) for rows in ends]


def parted(indices: Indices, starts: Indices) -> tuple[list[Indices], Indices]:
    """Places of rows in the blocks that start there, and the order that brings them back.

    Rows taken block by block, in those places, are the rows asked for once they are so ordered.
    """
    order = np.argsort(indices, kind="stable")
    found = np.split(indices[order], np.searchsorted(indices[order], starts[1:]))
    return [i - start for i, start in zip(found, starts, strict=True)], np.argsort(order)


def rows_of(block: Block, places: Indices | slice) -> Block:
    """Some rows of a block."""
    X, y, w = block
    return X[places], y[places], None if w is None else w[places]


def rejoined(parts: Iterable[Block], order: Indices) -> Block:
    """Rows of several blocks in one, in this order."""
    return rows_of(stacked(parts), order)


def stacked(parts: Iterable[Block]) -> Block:
    """Rows of several blocks in one."""
    X, y, w = zip(*parts, strict=True)
    return np.vstack(X), np.vstack(y), None if w[0] is None else np.concatenate(w)


def rows_for(work: Any) -> str:
    """What a pass over the rows is for, as its progress is called."""
    return f"rows, {getattr(work, 'what', 'one pass')}"


def in_order(
    pool: ThreadPoolExecutor, part: Callable[[Any], T], blocks: Iterable[Any]
) -> Iterator[T]:
    """Results in the order of the blocks, of which few are under way at a time."""
    waiting, most = deque[Any](), _under_way()
    for rows in blocks:
        waiting.append(pool.submit(part, rows))
        if len(waiting) == most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
