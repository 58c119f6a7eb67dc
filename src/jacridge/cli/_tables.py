"""Tables in files and on standard input: CSV, TSV, gzip, Parquet, Feather."""

import csv
import glob
import gzip
import io
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from .._files import replaced, separator_of

BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException)


class TableError(ValueError):
    """A table that cannot be used as it is."""


def read_frame(source: str, *, header: bool = True) -> pl.DataFrame:
    """A table as it stands: one file, standard input (`-`), or all files a pattern matches."""
    paths = table_parts(source)
    frames = [_parsed(_content(path), path, header=header) for path in paths]
    for path, frame in zip(paths, frames, strict=True):
        if frame.columns != frames[0].columns:
            raise TableError(
                f"`{path}` must have the columns of `{paths[0]}`, {listed(frames[0].columns)}, "
                f"got {listed(frame.columns)}."
            )
    try:
        return pl.concat(frames, how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        raise TableError(f"The parts of `{source}` hold unlike types: {_first(error)}") from error


# Endings of files that tables are written to; without one it is CSV.
WRITTEN = ("", ".csv", ".tsv", ".txt", ".parquet", ".feather", ".arrow", ".ipc")


def write_table(frame: pl.DataFrame, path: str) -> None:
    """Write a frame in the form that the name of the file asks for."""
    suffix = Path(path.lower().removesuffix(".gz")).suffix
    if suffix not in WRITTEN:
        raise TableError(
            f"A table is written to a file that ends in {', '.join(filter(None, WRITTEN))}, got "
            f"`{path}`."
        )
    with replaced(path) as beside:
        if suffix == ".parquet":
            frame.write_parquet(beside)
        elif suffix in (".feather", ".arrow", ".ipc"):
            frame.write_ipc(beside)
        else:
            text = frame.write_csv(separator="\t" if suffix == ".tsv" else ",").encode()
            beside.write_bytes(gzip.compress(text) if path.lower().endswith(".gz") else text)


def table_parts(source: str) -> list[str]:
    """The files that a name or a pattern such as `part-*.parquet` stands for, sorted."""
    if source == "-" or Path(source).exists() or not glob.has_magic(source):
        return [source]
    paths = sorted(glob.glob(source))
    if not paths:
        raise FileNotFoundError(2, "No file matches this pattern", source)
    return paths


def listed(names: Sequence[str], most: int = 20) -> str:
    """Names in backquotes; of a long list, the beginning."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"`{name}`" for name in names[:most]) + more


def _first(error: BaseException) -> str:
    """The first line of an error's message, as a sentence."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".") + "."


def _content(path: str) -> bytes:
    """The bytes of a file or of standard input, unpacked."""
    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"`{path}` must be a whole gzip file, got: {_first(error)}") from error


def _parsed(data: bytes, path: str, *, header: bool) -> pl.DataFrame:
    """A frame from bytes whose first few say what they are."""
    if data[:4] == b"PAR1" or data[:6] == b"ARROW1":
        read = pl.read_parquet if data[:4] == b"PAR1" else pl.read_ipc
        try:
            return read(io.BytesIO(data))
        except (*BROKEN, OSError) as error:
            raise TableError(
                f"`{path}` must be a whole Parquet or Feather file, got: {_first(error)}"
            ) from error
    return _named(_text_rows(_utf8(data, path), path), path, header=header)


def _utf8(data: bytes, path: str) -> str:
    """The text of a file, without a byte order mark."""
    is_wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        text = data.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise TableError(
            f"`{path}` must be UTF-8 text, Parquet or Feather, got byte "
            f"0x{data[min(error.start, len(data) - 1)]:02x} at position {error.start}. "
            "Save it as UTF-8."
        ) from error
    if "\0" in text:
        raise TableError(f"`{path}` must be text, Parquet or Feather, got other binary data.")
    if not text.strip():
        raise TableError(f"`{path}` must hold a table, got nothing.")
    return text.lstrip("\r\n")


def _text_rows(text: str, path: str) -> pl.DataFrame:
    """The cells of a text file as they are written, blank lines left out."""
    separator = separator_of(text.split("\n", 1)[0])
    try:
        rows = pl.read_csv(
            io.BytesIO(text.encode()), has_header=False, infer_schema=False, separator=separator
        )
    except BROKEN as error:
        raise TableError(f"`{path}` must be a table, got {_fault(text, separator)}.") from error
    return rows.filter(~pl.all_horizontal(pl.all().is_null()))


def _fault(text: str, separator: str) -> str:
    """What is wrong with a text that is no table, in words."""
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


def _named(rows: pl.DataFrame, path: str, *, header: bool) -> pl.DataFrame:
    """The rows below the header under its names, or all rows under numbers."""
    if not header:
        return rows.rename({name: f"column_{i}" for i, name in enumerate(rows.columns, 1)})
    names = [(name or "").strip() for name in rows.row(0)]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise TableError(f"`{path}` must name each column once, got {listed(twice)} twice.")
    body = rows.slice(1)
    if body.is_empty():
        raise TableError(f"`{path}` must hold rows below its header, got none.")
    # A comma at the end of every line makes a column with neither name nor values.
    keep = [i for i, name in enumerate(names) if name or body.to_series(i).null_count() < len(body)]
    return body.select(body.to_series(i).alias(names[i] or f"column_{i + 1}") for i in keep)
