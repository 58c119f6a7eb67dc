"""Threads of BLAS and our own: how many to use, and for how much work."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import RLock, local
from typing import Any, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

from .arrays import row_blocks

# Up to this order, matrices are built, solved and inverted in one thread.
SMALL_ORDER = 1000

# Up to this order, LAPACK uses one thread. If other work shares the processors, BLAS threads wait
# for each other thousands of times.
BLAS_ORDER = 2000

# Above this order, a threaded LAPACK may crash: its dsyrk does from about 15,000 on.
LAPACK_ORDER = 8192


Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def cpu_count() -> int:
    """Number of processors that this process may use; finding it takes 0.1 milliseconds."""
    return int(joblib.cpu_count())


def processors() -> int:
    """Number of processors for our own threads: all of this process, but no more than BLAS may use.

    It is 1 inside our own threads, so that pools do not nest.
    """
    if getattr(_mine, "is_ours", False):
        return 1
    limits = _before if _users else {lib: lib.get_num_threads() for lib in _shared()}
    return int(min([cpu_count(), *filter(None, list(limits.values()))]))


@contextmanager
def our_threads(most: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """Context with a `map` that uses our threads, each with one BLAS thread, or only this thread.

    If `most` is 1, no other thread is used. All work has ended when the context is left, also after
    an error. The number of threads depends on the machine; the result of each call does not. Sums
    that are split by `processors()` agree up to rounding.
    """
    count = processors() if most > 1 else 1
    with one_blas_thread():
        if count == 1:
            yield map
            return
        under_way: set[Future[Any]] = set()

        def each(work: Callable[..., Any], *items: Iterable[Any]) -> Iterator[Any]:
            waiting = deque[Future[Any]]()
            for some in zip(*items, strict=False):
                future = _pool(count).submit(work, *some)
                under_way.add(future)
                future.add_done_callback(under_way.discard)
                waiting.append(future)
            return (waiting.popleft().result() for _ in range(len(waiting)))

        try:
            yield each
        finally:
            rest = list(under_way)
            for future in rest:
                future.cancel()
            wait(rest)


_mine = local()


def _pool(count: int) -> ThreadPoolExecutor:
    """Our threads for the calling thread, kept: starting one takes as long as a small product.

    If several callers shared them, work that waits for a lock could fill all threads and block the
    caller that holds the lock. Before Python 3.12, `cached_property` takes such locks.
    """
    pools: dict[int, ThreadPoolExecutor] = _mine.__dict__.setdefault("pools", {})
    if count not in pools:
        pools[count] = ThreadPoolExecutor(count, "jacridge", initializer=_begin)
    return pools[count]


def _begin_child() -> None:
    """Forget threads, which a forked process does not have, and a lock that one may have held."""
    global _lock
    _lock = RLock()
    _mine.__dict__.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


def _begin() -> None:
    _mine.is_ours = True
    _set_threads(dict.fromkeys(_per_thread(), 1))


def for_blocks(work: Callable[[slice], None], n: int, size: int) -> None:
    """Call `work` on blocks of n rows, in our threads if there are many rows."""
    in_threads(work, row_blocks(n, size), alone=n <= SMALL_ORDER)


def in_threads(
    work: Callable[..., Result], *items: Iterable[Any], alone: bool = False
) -> list[Result]:
    """Results of `work`, as by `map`, computed in our threads or in this one `alone`."""
    arguments = list(zip(*items, strict=True))
    with our_threads(1 if alone else len(arguments)) as each:
        return list(each(lambda some: work(*some), arguments))


def in_order(
    work: Callable[[Item], Result], items: Sequence[Item], under_way: int
) -> Generator[Result, None, None]:
    """Results of `work` for each item, in order, computed in our threads; few are held at a time.

    No item is started before the result of the one `under_way` places earlier has been consumed.
    """
    waiting = deque[Iterable[Result]]()
    with our_threads(len(items)) as each:
        for item in items:
            waiting.append(each(work, [item]))
            if len(waiting) == under_way:
                yield from waiting.popleft()
        for last in waiting:
            yield from last


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Context in which BLAS uses one thread, the calling one.

    Some BLAS libraries have one pool for all Python threads: it is limited by the first thread to
    enter the context, and restored by the last to leave. Others have a pool for each Python thread:
    it is limited and restored for the thread that enters.
    """
    own = {lib: lib.get_num_threads() for lib in _per_thread()}
    _enter(_shared())
    _set_threads(dict.fromkeys(own, 1))
    try:
        yield
    finally:
        _set_threads(own)
        _leave()


_lock, _users = RLock(), 0
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
    """Set the number of threads of some libraries; any thread may call this."""
    with _lock:
        for lib, number in numbers.items():
            # From 3.8 on, threadpoolctl ignores all threads but the first one that sets a number.
            release = getattr(lib, "clear_controlling_thread", None)
            if release is not None:
                release(force=True)
            if number is not None:
                lib.set_num_threads(number)
            if release is not None:
                release(force=True)


def _shared() -> list[Any]:
    return [lib for lib in _blas() if not _is_per_thread(lib)]


def _per_thread() -> list[Any]:
    return [lib for lib in _blas() if _is_per_thread(lib)]


def _is_per_thread(lib: Any) -> bool:
    return getattr(lib, "threading_layer", None) == "openmp"


def blas_for(n: int) -> Any:
    """Context for BLAS on n x n matrices: one thread unless several are faster."""
    return one_blas_thread() if n <= BLAS_ORDER else nullcontext()


def lapack_for(n: int) -> Any:
    """Context for LAPACK on n x n matrices: one thread also where several may crash."""
    return one_blas_thread() if n > LAPACK_ORDER else blas_for(n)


@cache
def _blas() -> list[Any]:
    """Controllers of the BLAS libraries in this process; finding them takes milliseconds."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
