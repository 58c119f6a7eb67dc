"""The voice of the command: results on stdout, the rest on stderr."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

OPTIONS = {
    "bandwidth": "--rule",
    "alpha": "--alpha",
    "solver": "--solver",
    "n_landmarks": "--n-landmarks",
}


def note(text: str) -> None:
    """Print to stderr what is worth knowing and no result."""
    typer.echo(f"Note: {text}", err=True)


def fail(error: Exception, *, wrong_use: bool) -> None:
    """Say in one line what went wrong and end with exit code 2 for wrong use, 1 for the rest."""
    ours = type(error).__module__.startswith(__package__)  # these may name a column like an option
    text = _sentence(error)
    typer.echo(f"Error: {text if ours else as_options(text)}", err=True)
    sys.exit(2 if wrong_use else 1)


def as_options(text: str) -> str:
    """A message of the library in the words of the command: `bandwidth` is `--rule` here."""
    names = {
        "bandwidth": "rule",
        "n_landmarks": "n-landmarks",
        "alpha": "alpha",
        "solver": "solver",
    }
    text = text.replace("bandwidth='auto', alpha='auto'", "bandwidth='auto'")  # implied there
    for name, option in names.items():
        text = re.sub(rf"\b{name}=['\"]?([\w.]+\b)['\"]?", rf"--{option} \1", text)
        text = text.replace(f"`{name}`", f"`--{option}`")
    return text


def _sentence(error: Exception) -> str:
    """What an error says to someone who does not read Python."""
    if isinstance(error, OSError) and error.strerror:
        return f"`{error.filename}`: {error.strerror}." if error.filename else f"{error.strerror}."
    known = (TypeError, ValueError, ImportError, MemoryError, OSError, ArithmeticError)
    if isinstance(error, known) and str(error):
        return str(error)
    return f"{type(error).__name__}: {error}. Set JACRIDGE_DEBUG=1 to see where."


def show(result: dict[str, Any], *, as_json: bool, text: str | None = None) -> None:
    """Print a result as one JSON object, as the text given, or as names and values."""
    typer.echo(json.dumps(_plain(result)) if as_json else text or _lines(result))


def _lines(result: dict[str, Any]) -> str:
    width = max(map(len, result))
    words = {key.replace("_", " "): cell(value, digits=8) for key, value in result.items()}
    return "\n".join(f"{key:{width}}  {value}" for key, value in words.items())


def grid(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table as text: the first column to the left, the others to the right."""
    cells = [list(header), *([cell(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    form = "  ".join(["{:<%d}"] + ["{:>%d}"] * (len(header) - 1)) % tuple(widths)
    return "\n".join(form.format(*row).rstrip() for row in cells)


def cell(value: Any, digits: int = 4) -> str:
    """A value as people read it."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    """The same for JSON, with null where it has no number."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


@contextmanager
def busy(what: str) -> Iterator[None]:
    """A sign on stderr that work goes on, if that is a terminal."""
    console = Console(stderr=True)
    with console.status(escape(what)) if console.is_terminal else nullcontext():
        yield


@contextmanager
def progress(what: str = "") -> Iterator[Callable[[int, int, str], None]]:
    """A bar on stderr if that is a terminal; the function moves it to (done, total, what)."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total, what: None
        return
    text = TextColumn("{task.description}")
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(escape(what), total=None)
        yield lambda done, total, what: bar.update(
            task, completed=done, total=total, description=escape(what)
        )
