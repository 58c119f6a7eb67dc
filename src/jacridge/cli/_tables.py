"""Tables in files and on standard input: CSV, TSV, gzip, Parquet, Feather, Excel."""

import glob
import gzip
import io
import logging
import sys
import textwrap
import zipfile
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from .._checks import require
from .._compute.files import replaced
from .._compute.memory import available_memory
from .._compute.warnings import warn
from ._terminal import WrongUse, check_suffix, compiled_code_silenced, note
from ._text import (
    FIRST_ROWS,
    Table,
    TableError,
    named,
    note_on_titles,
    rows_above_header,
    text_rows,
)

BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
# A table takes up to 20 times the memory of its text: a gzip file may unpack to this share of the
# available memory.
SHARE = 1 / 20
LISTED = 20  # names in a message
AGAIN = "It is damaged or incomplete: copy or save it again."
logging.getLogger("fastexcel").addHandler(logging.NullHandler())  # our messages name columns


def read_frame(source: str, *, header: bool = True, sheet: str | None = None) -> pl.DataFrame:
    """A table as written; a note says what was skipped in its files."""
    table = read_table(source, header=header, sheet=sheet)
    for sentence in table.notes:
        note(sentence)
    return table.frame


def read_table(source: str, *, header: bool = True, sheet: str | None = None) -> Table:
    """A table from one file, standard input (`-`), or all files that match a pattern."""
    paths = table_parts(source)
    found = [_parsed(_content(path), path, header=header, sheet=sheet) for path in paths]
    frames = [table.frame for table in found]
    for path, frame in zip(paths, frames, strict=True):
        if frame.columns != frames[0].columns:
            raise TableError(
                f"`{path}` must have the columns of `{paths[0]}`, {listed(frames[0].columns)}, "
                f"got {listed(frame.columns)}."
            )
    try:
        whole = pl.concat(frames, how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        raise TableError(f"The parts of `{source}` differ in type: {_first(error)}") from error
    separators = frozenset().union(*(table.separators for table in found))
    return Table(whole, [sentence for table in found for sentence in table.notes], separators)


def table_parts(source: str) -> list[str]:
    """The files that match a name or a pattern such as `part-*.parquet`, sorted."""
    if source == "-" or Path(source).exists() or not glob.has_magic(source):
        return [source]
    paths = sorted(glob.glob(source))
    if not paths:
        raise FileNotFoundError(2, "No file matches this pattern", source)
    return paths


def listed(names: Sequence[str]) -> str:
    """Names in backquotes; only the first ones of a long list."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(f"`{name}`" for name in names[:LISTED]) + more


def _first(error: BaseException) -> str:
    """The beginning of the first line of an error's message, as a sentence."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return textwrap.shorten(line, 120, placeholder=" ...").rstrip(".") + "."


def _content(path: str) -> bytes:
    """The bytes of a file or of standard input, unpacked."""
    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    if data[:2] != b"\x1f\x8b":
        return data
    parts, size = [], 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while part := file.read(1 << 20):
                size += len(part)
                _check_unpacked(size, path)
                parts.append(part)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(
            f"`{path}` must be a whole gzip file, got: {_first(error)} {AGAIN}"
        ) from error
    return b"".join(parts)


def _check_unpacked(size: int, path: str) -> None:
    """Refuse a file that unpacks to more than a share of the memory."""
    memory = available_memory()
    if memory is not None and size > SHARE * memory:
        raise TableError(
            f"`{path}` must unpack to at most {SHARE * memory / 1e6:,.0f} MB, as "
            f"{memory / 1e6:,.0f} MB of memory is available and a table takes up to "
            f"{1 / SHARE:.0f} times its text, got more. Unpack it first to read it anyway."
        )


def _read_excel(data: bytes, path: str, *, header: bool, sheet: str | None) -> Table:
    """The first sheet of a workbook, or the one asked for, with the types of its cells."""
    fastexcel = require("fastexcel", extra="xlsx")
    try:
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as parts:
                _check_workbook(parts.namelist(), path)
                _check_unpacked(sum(part.file_size for part in parts.infolist()), path)
        book = fastexcel.read_excel(data)
        name = _sheet_named(book.sheet_names, sheet, path)
        first = book.load_sheet(
            name, header_row=None, skip_rows=0, n_rows=FIRST_ROWS, dtypes="string"
        )
        rows = first.to_polars().rows()
        n = rows_above_header(rows) if header else 0
        frame = pl.read_excel(
            io.BytesIO(data),
            sheet_name=name,
            engine="calamine",
            has_header=header,
            read_options={"header_row": n} if n and any(map(any, rows[:n])) else None,
            infer_schema_length=None,
            raise_if_empty=False,
        )
    except (TableError, WrongUse):
        raise
    except (*BROKEN, fastexcel.FastExcelError, zipfile.BadZipFile, ValueError) as error:
        raise TableError(f"`{path}` cannot be read as Excel: {_first(error)} {AGAIN}") from error
    others = [other for other in book.sheet_names if other != name]
    if sheet is None and others:
        warn(
            f"The sheet `{name}` of `{path}` is read, not {listed(others)}. --sheet reads another."
        )
    names = [
        f"column_{i}" if name.startswith("__UNNAMED__") or not header else name.strip()
        for i, name in enumerate(frame.columns, 1)
    ]
    if len(set(names)) < len(names):
        raise TableError(f"`{path}` must name each column once, got {listed(names)}.")
    if frame.is_empty():
        raise TableError(f"`{path}` must hold rows below its header, got none.")
    notes = [note_on_titles(rows[:n], path)] if any(map(any, rows[:n])) else []
    return Table(frame.rename(dict(zip(frame.columns, names, strict=True))), notes)


def _check_workbook(names: Sequence[str], path: str) -> None:
    """Refuse a zip archive that is not a workbook of Excel or LibreOffice."""
    if not any(name.startswith("xl/") or name == "content.xml" for name in names):
        raise TableError(
            f"`{path}` must be a table, got a zip archive of {listed(names)}. Unpack it first."
        )


def _sheet_named(names: Sequence[str], wanted: str | None, path: str) -> str:
    """The sheet of that name, or at that position: 1 is the first."""
    if wanted is None:
        return names[0]
    if wanted in names:
        return wanted
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return names[int(wanted) - 1]
    raise WrongUse(f"There is no sheet `{wanted}` in `{path}`. There are {listed(names)}.")


def _read_binary(
    read: Any, kind: str, data: bytes, path: str, *, header: bool, sheet: str | None
) -> Table:
    """A table in a format that always names its columns."""
    _check_no_sheet(path, sheet)
    try:
        with compiled_code_silenced():
            frame: pl.DataFrame = read(io.BytesIO(data))
    except BROKEN as error:
        raise TableError(f"`{path}` cannot be read as {kind}: {_first(error)} {AGAIN}") from error
    return Table(frame, [])


def _read_text(data: bytes, path: str, *, header: bool, sheet: str | None) -> Table:
    _check_no_sheet(path, sheet)
    table = text_rows(data, path, header=header)
    return table._replace(frame=named(table.frame, path, header=header))


def _check_no_sheet(path: str, sheet: str | None) -> None:
    """Refuse a sheet of a file that has none."""
    if sheet is not None:
        raise WrongUse(f"--sheet is for Excel files, got `{path}`.")


# First bytes of a file, and the function that reads it; all other files are text.
READERS: dict[bytes, Callable[..., Table]] = {
    b"PAR1": partial(_read_binary, pl.read_parquet, "Parquet"),
    b"ARROW1": partial(_read_binary, pl.read_ipc, "Feather"),
    b"PK\x03\x04": _read_excel,
    b"\xd0\xcf\x11\xe0": _read_excel,
}


def _parsed(data: bytes, path: str, **how: Any) -> Table:
    """A table from bytes, whose first bytes determine the format."""
    found = (read for magic, read in READERS.items() if data.startswith(magic))
    return next(found, _read_text)(data, path, **how)


def _write_text(frame: pl.DataFrame, path: Path, separator: str = ",") -> None:
    path.write_text(frame.write_csv(separator=separator), encoding="utf-8", newline="")


# File suffixes of tables to write; a file without a suffix is CSV.
WRITERS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "": _write_text,
    ".csv": _write_text,
    ".tsv": partial(_write_text, separator="\t"),
    ".txt": _write_text,
    ".parquet": pl.DataFrame.write_parquet,
    ".feather": pl.DataFrame.write_ipc,
    ".arrow": pl.DataFrame.write_ipc,
    ".ipc": pl.DataFrame.write_ipc,
}


def check_table_name(path: str) -> None:
    """Refuse a file name whose suffix is not a table format that can be written."""
    check_suffix("A table", path, _table_suffix(path), WRITERS)


def _table_suffix(path: str) -> str:
    return Path(path.lower().removesuffix(".gz")).suffix


def is_text(path: str) -> bool:
    """Whether tables of this name are written as text."""
    return _table_suffix(path) in ("", ".csv", ".tsv", ".txt")


def write_table(frame: pl.DataFrame, path: str) -> None:
    """Write a frame in the format given by the file name."""
    check_table_name(path)
    with replaced(path) as beside:
        WRITERS[_table_suffix(path)](frame, beside)
        if path.lower().endswith(".gz"):
            beside.write_bytes(gzip.compress(beside.read_bytes()))
