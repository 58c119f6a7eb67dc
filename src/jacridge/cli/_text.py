"""Tables in text files: encodings, line ends, separators, headers."""

import csv
import io
import re
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from ..report._encoding import OLD_WINDOWS, separator_of, text_encoding
from ._terminal import compiled_code_silenced, note

FIRST_ROWS = 20  # among which the header is looked for


class Table(NamedTuple):
    """Cells of a table, sentences on what was skipped, and the separators of its text files."""

    frame: pl.DataFrame
    notes: list[str]
    separators: frozenset[str] = frozenset()


class TableError(ValueError):
    """A table that cannot be used."""


class ColumnError(TableError):
    """A column that cannot be used, and what to do about it."""

    def __init__(self, what: str, way_out: str) -> None:
        super().__init__(f"{what} {way_out}")
        self.what, self.way_out = what, way_out


def rows_above_header(rows: Sequence[Sequence[str | None]]) -> int:
    """Number of rows before the header: they have at most one cell each.

    The header must be a full row of different names that are not numbers.
    """
    filled = [[cell.strip() for cell in row if cell and cell.strip()] for row in rows]
    first = next((i for i, cells in enumerate(filled) if len(cells) > 1), 0)
    names = filled[first] if filled else []
    are_names = len(set(names)) == len(rows[first]) if names else False
    sure = are_names and not any(re.fullmatch(r"[-+\d.,\s]+", name) for name in names)
    return first if sure and len([*filled, []][first + 1]) > 1 else 0


def note_on_titles(rows: Sequence[Sequence[str | None]], path: str) -> str:
    """The sentence on rows above the header."""
    title = next(cell for row in rows for cell in row if cell and cell.strip())
    return f"`{path}` begins with {title[:40]!r}; its table is read from row {len(rows) + 1} on."


def without_titles(text: str, path: str) -> tuple[str, list[str]]:
    """A text without the rows above the header, and a sentence on these."""
    lines = text.split("\n", FIRST_ROWS)
    try:
        cells = [
            next(csv.reader([line], delimiter=separator_of(line)), [])
            for line in lines[:FIRST_ROWS]
        ]
    except csv.Error:
        return text, []
    n = rows_above_header(cells)
    if any(line.count('"') % 2 for line in lines[:n]):  # a cell of several lines
        return text, []
    return "\n".join(lines[n:]), [note_on_titles(cells[:n], path)] if n else []


def text_rows(data: bytes, path: str, *, header: bool = True) -> Table:
    """The cells of a text file as written, without blank lines and rows above the header."""
    text = _decoded(data, path)
    notes: list[str] = []
    if "\n" not in text:
        text = text.replace("\r", "\n")  # as on old Macs
    text = re.sub(r"\A(?:[\s,;|]*\n)+", "", text)
    if not text.strip():
        raise TableError(f"`{path}` must hold a table, got nothing.")
    if header:
        text, notes = without_titles(text, path)
    separator = separator_of(_first_record(text))
    try:
        with compiled_code_silenced():
            rows = pl.read_csv(
                io.BytesIO(text.encode()), has_header=False, infer_schema=False, separator=separator
            )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise TableError(f"`{path}` must be a table, got {_fault(text, separator)}.") from error
    blank = pl.all().is_null() | (pl.all().str.strip_chars() == "")
    rows = rows.filter(~pl.all_horizontal(blank))
    if rows.is_empty():
        raise TableError(f"`{path}` must hold a table, got nothing.")
    return Table(rows, notes, frozenset(separator))


def _decoded(data: bytes, path: str) -> str:
    """The text of a file, without a byte order mark."""
    encoding = text_encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise TableError(
            f"`{path}` must be UTF-8 text, Parquet, Feather or Excel, got byte "
            f"0x{data[min(error.start, len(data) - 1)]:02x} at position {error.start}. "
            "Save it as UTF-8."
        ) from error
    if "\0" in text:
        raise TableError(
            f"`{path}` must be text, Parquet, Feather or Excel, got other binary data."
        )
    if encoding == OLD_WINDOWS:
        note(
            f"`{path}` is not UTF-8 and is read as Windows-1252 (Latin-1). If letters are "
            "wrong, save it as UTF-8."
        )
    return text


def _first_record(text: str) -> str:
    """The first record, which may contain line ends in quotes."""
    found = re.match(r'(?:"[^"]*"|[^"\n]+)*(?=\n|\Z)', text)
    return found[0] if found else text.split("\n", 1)[0]


def _fault(text: str, separator: str) -> str:
    """Describe why a text is not a table."""
    width = None
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        for row in reader:
            width = width or len(row)
            if len(row) > width:
                return f"{len(row)} cells in line {reader.line_num} and {width} in the first"
    except csv.Error:
        pass
    return "a quote that is not closed, or one inside a cell"


def named(rows: pl.DataFrame, path: str, *, header: bool) -> pl.DataFrame:
    """The rows below the header with its names, or all rows with numbered columns."""
    if not header:
        return rows.rename({name: f"column_{i}" for i, name in enumerate(rows.columns, 1)})
    names = [re.sub(r'^"(.*)"$', r"\1", (name or "").strip()) for name in rows.row(0)]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise TableError(
            f"`{path}` must name each column once, got `{'`, `'.join(twice[:20])}` twice."
        )
    body = rows.slice(1)
    if body.is_empty():
        raise TableError(f"`{path}` must hold rows below its header, got none.")
    # A comma at the end of every line creates a column with neither name nor values.
    keep = [i for i, name in enumerate(names) if name or body.to_series(i).null_count() < len(body)]
    return body.select(body.to_series(i).alias(names[i] or f"column_{i + 1}") for i in keep)
