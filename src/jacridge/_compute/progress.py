"""Progress reports from long computations to a listener."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

# Function of the work done, the total, and a description of the work.
Listener = Callable[[int, int, str], object]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def tell(done: int, total: int, what: str) -> None:
    """Report progress to the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(done, total, what)


def is_heard() -> bool:
    """Whether there is a listener."""
    return _listener.get() is not None


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Context in which progress is reported to `listener`; None keeps the current one."""
    token = _listener.set(listener or _listener.get())
    try:
        yield
    finally:
        _listener.reset(token)


def printer(every: float = 1.0) -> Listener:
    """Listener that prints to stderr once a second, and when a piece of work is complete."""
    last = monotonic()

    def show(done: int, total: int, what: str) -> None:
        nonlocal last
        if done < total and monotonic() < last + every:
            return
        last = monotonic()
        print(f"[jacridge] {what}: {done} of {total}", file=sys.stderr)

    return show
