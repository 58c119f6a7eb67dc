"""Output of the command: results on stdout, the rest on stderr."""

import io
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from .._compute.numbers import rounded

# Control characters, and characters that change the direction of text: a terminal obeys them.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Seconds before progress is printed if stderr is not a terminal: the first time, and later.
FIRST_LINE, NEXT_LINES = 3.0, 15.0


class WrongUse(ValueError):
    """Wrong use of the command line: exit code 2."""


def check_suffix(what: str, path: str, suffix: str, known: Iterable[str], advice: str = "") -> None:
    """Refuse a file name whose suffix is not a known format."""
    if suffix not in known:
        ends = ", ".join(filter(None, known))
        raise WrongUse(
            f"{what} is written to a file that ends in {ends}, got `{path}`. {advice}".rstrip()
        )


def note(text: str) -> None:
    """Print a note to stderr."""
    typer.echo(f"Note: {visible(text)}", err=True)


def warn(text: str) -> None:
    """Print a warning to stderr."""
    typer.echo(f"Warning: {visible(text)}", err=True)


def note_replaced(path: str) -> None:
    """Say which file a result replaces."""
    if Path(path).is_file():
        note(f"`{path}` already exists and is replaced.")


def fail(error: Exception, *, wrong_use: bool) -> None:
    """Print in one line what went wrong and exit with code 2 for wrong use, 1 otherwise."""
    ours = type(error).__module__.startswith(__package__)  # these may name a column like an option
    text = _sentence(error)
    typer.echo(f"Error: {visible(text if ours else as_options(text))}", err=True)
    sys.exit(2 if wrong_use else 1)


@contextmanager
def compiled_code_silenced() -> Iterator[None]:
    """Context in which compiled code prints nothing: polars prints stacks of damaged files."""
    try:
        kept = os.dup(2)
    except OSError:  # stderr is closed
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def visible(text: str, keep: str = "") -> str:
    """The text with control characters escaped, except those to keep."""
    return CONTROL.sub(lambda found: found[0] if found[0] in keep else repr(found[0])[1:-1], text)


def as_options(text: str) -> str:
    """A message of the library in terms of the command: `bandwidth` becomes `--rule`."""
    names = {"bandwidth": "rule", "n_landmarks": "n-landmarks", "sample_weight": "weights"}
    names |= {name: name for name in ("alpha", "solver", "kernel", "metric")}
    text = text.replace("bandwidth='auto', alpha='auto'", "bandwidth='auto'")  # implied there
    for name, option in names.items():
        text = re.sub(rf"\b{name}=['\"]?([\w.]+\b)['\"]?", rf"--{option} \1", text)
        text = text.replace(f"`{name}`", f"`--{option}`")
    return text.replace("`X` must", "The features must")


def _sentence(error: Exception) -> str:
    """Message of an error for someone who does not read Python."""
    if isinstance(error, OSError) and error.strerror:
        return f"`{error.filename}`: {error.strerror}." if error.filename else f"{error.strerror}."
    known = (TypeError, ValueError, ImportError, MemoryError, OSError, ArithmeticError)
    if isinstance(error, known) and str(error):
        return str(error)
    return f"{type(error).__name__}: {error}. Set JACRIDGE_DEBUG=1 to see where."


def show(
    result: dict[str, Any], *, as_json: bool, text: str | None = None, digits: int = 8
) -> None:
    """Print a result as one JSON object, as the given text, or as names and values.

    Only JSON shows all digits.
    """
    if as_json:
        typer.echo(json.dumps(_plain(result), default=str))  # dates as text
    elif text is not None:  # data goes to files and programs unchanged
        typer.echo(visible(text, keep="\n\t") if sys.stdout.isatty() else text)
    else:
        rows = [(key.replace("_", " "), cell(value, digits)) for key, value in result.items()]
        typer.echo(_text_of(Table.grid(padding=(0, 2)), rows))


def grid(header: Sequence[str], rows: Sequence[Sequence[Any]], words: int = 1) -> str:
    """A table as text: the first columns (words) left-aligned, the others right-aligned."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i < words else "right")
    return _text_of(table, [[cell(value) for value in row] for row in rows])


def _text_of(table: Table, rows: Sequence[Sequence[str]]) -> str:
    """The table with these rows as plain text, of any width."""
    for row in rows:
        table.add_row(*(Text(visible(value), no_wrap=True) for value in row))
    page = io.StringIO()
    Console(file=page, width=10_000, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines())


def cell(value: Any, digits: int = 4) -> str:
    """A value formatted for reading."""
    if isinstance(value, list | tuple | np.ndarray):
        return ", ".join(cell(item, digits) for item in value)
    if not isinstance(value, float):
        return str(value)
    text = rounded(value, digits)
    return text if digits < 8 else text.replace(",", "")  # to be copied


def _plain(value: Any) -> Any:
    """Values for JSON, with null where it has no number."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


@contextmanager
def progress(what: str = "") -> Iterator[Callable[[int, int, str], None]]:
    """Show progress on stderr; yields a function to call with (done, total, what)."""
    console = Console(stderr=True)
    if not console.is_terminal:
        with _lines_now_and_then(what) as move:
            yield move
        return
    text = TextColumn("{task.description}")
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(escape(what), total=None)
        yield lambda done, total, what: bar.update(
            task, completed=done, total=total, description=escape(what)
        )


@contextmanager
def _lines_now_and_then(what: str) -> Iterator[Callable[[int, int, str], None]]:
    """Print progress from a separate thread, because long work may not report progress."""
    state, start, over, begun = {"what": what}, monotonic(), threading.Event(), what

    def move(done: int, total: int, what: str) -> None:
        # A part that is finished may be followed by one that never reports progress.
        state["what"] = f"{what}: {done} of {total}" if done < total else begun

    def speak() -> None:
        wait = FIRST_LINE
        while not over.wait(wait):
            seconds = f"{monotonic() - start:.0f} s"
            typer.echo(f"[jacridge] {visible(state['what'] or 'working')}, {seconds}", err=True)
            wait = NEXT_LINES

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield move
    finally:
        over.set()
        speaker.join()
