"""Progress reports from long computations to a listener."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

# A function of what is done, the total, and what it is that is done.
Listener = Callable[[int, int, str], object]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def tell(done: int, total: int, what: str) -> None:
    """Tell whoever listens how far the work is."""
    listener = _listener.get()
    if listener is not None:
        listener(done, total, what)


def is_heard() -> bool:
    """Whether anyone listens."""
    return _listener.get() is not None


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Context in which a function hears of progress; None leaves it to who listens already."""
    token = _listener.set(listener or _listener.get())
    try:
        yield
    finally:
        _listener.reset(token)


def printer(every: float = 1.0) -> Listener:
    """Listener that prints to stderr the end of each piece of work, and a line in each second."""
    last = monotonic()

    def show(done: int, total: int, what: str) -> None:
        nonlocal last
        if done < total and monotonic() < last + every:
            return
        last = monotonic()
        print(f"[jacridge] {what}: {done} of {total}", file=sys.stderr)

    return show
