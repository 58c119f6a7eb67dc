"""BLAS threads and our own: how many, and for how large a piece of work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

from .arrays import row_blocks

# Matrices up to this order are built, and handed to LAPACK, in one thread.
SMALL_ORDER = 1000

# Above this order a threaded LAPACK may crash: its dsyrk does from about 15,000 on.
LAPACK_ORDER = 8192


Item = TypeVar("Item")
Result = TypeVar("Result")


def processors() -> int:
    """Processors that this process may use."""
    return int(cpu_count())


def for_blocks(work: Callable[[slice], None], n: int, size: int) -> None:
    """Call `work` on blocks of n rows, in as many threads as there are processors.

    Few rows are handled in the calling thread: starting others would take longer than the work.
    """
    blocks = list(row_blocks(n, size))
    if len(blocks) == 1 or n <= SMALL_ORDER:
        for block in blocks:
            work(block)
        return
    with ThreadPoolExecutor(min(len(blocks), processors())) as pool:
        for _ in pool.map(work, blocks):
            pass


def in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Results of `work` for each item, in as many threads as there are processors."""
    with ThreadPoolExecutor(processors()) as pool:
        return list(pool.map(work, items))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Context in which each of our threads has one BLAS thread, its own.

    A BLAS whose threads all Python threads share is limited by the first to enter, and set free by
    the last to leave, whichever thread that is. One with threads for each Python thread is limited
    for the one that enters, and set free when that one leaves.
    """
    shared = [lib for lib in _blas() if not _is_per_thread(lib)]
    own = {lib: lib.get_num_threads() for lib in _blas() if _is_per_thread(lib)}
    _enter(shared)
    _set_threads(dict.fromkeys(own, 1))
    try:
        yield
    finally:
        _set_threads(own)
        _leave()


_lock, _users = Lock(), 0
_before: dict[Any, int | None] = {}


def _enter(libraries: list[Any]) -> None:
    global _users, _before
    with _lock:
        if _users == 0:
            _before = {lib: lib.get_num_threads() for lib in libraries}
            _set_threads(dict.fromkeys(libraries, 1))
        _users += 1


def _leave() -> None:
    global _users
    with _lock:
        _users -= 1
        if _users == 0:
            _set_threads(_before)


def _set_threads(numbers: dict[Any, int | None]) -> None:
    """Set the threads of some libraries, from whichever thread this is called."""
    for lib, number in numbers.items():
        # From 3.8 on threadpoolctl ignores all threads but the first that has set a number.
        release = getattr(lib, "clear_controlling_thread", None)
        if release is not None:
            release(force=True)
        if number is not None:
            lib.set_num_threads(number)
        if release is not None:
            release(force=True)


def _is_per_thread(lib: Any) -> bool:
    return getattr(lib, "threading_layer", None) == "openmp"


def blas_for(n: int) -> Any:
    """Context for work on n x n matrices: one BLAS thread for small ones.

    Threads gain little there, and lose a lot where other work shares the processors: they wait
    for each other thousands of times.
    """
    return one_blas_thread() if n <= SMALL_ORDER else nullcontext()


def lapack_for(n: int) -> Any:
    """Context for LAPACK on n x n matrices: one thread also for those on which it may crash."""
    return one_blas_thread() if n > LAPACK_ORDER else blas_for(n)


@cache
def _blas() -> list[Any]:
    """Controllers of the BLAS libraries of this process; finding them takes milliseconds."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
