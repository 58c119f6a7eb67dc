"""Files become frames, whatever their form; what is no table gives a clear error."""

import gzip
import io

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jacridge.cli._tables import TableError, read_frame, write_table

CSV = "a,b,c\n1,2.5,x\n3,4.5,y\n"
CELLS = [("1", "2.5", "x"), ("3", "4.5", "y")]


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", CSV),
        ("t.tsv", CSV.replace(",", "\t")),
        ("t.txt", CSV.replace(",", ";")),
        ("t.psv", CSV.replace(",", "|")),
        ("crlf.csv", CSV.replace("\n", "\r\n")),
        ("bom.csv", CSV.encode("utf-8-sig")),
        ("wide.csv", CSV.encode("utf-16")),
        ("t.csv.gz", gzip.compress(CSV.encode(), mtime=0)),
        ("gzip-without-its-suffix.csv", gzip.compress(CSV.encode(), mtime=0)),
        ("quoted.csv", '"a","b","c"\n"1","2.5","x"\n3,4.5,"y"\n'),
        ("blank-lines.csv", "\n\na,b,c\n\n1,2.5,x\n\n3,4.5,y\n\n"),
        ("comma-at-the-end.csv", "a,b,c,\n1,2.5,x,\n3,4.5,y,\n"),
        ("padded.csv", " a ,b, c\n1,2.5,x\n3,4.5,y"),
    ],
)
def test_every_form_of_a_text_table_gives_the_same_cells(tmp_path, name, content):
    frame = read_frame(write(tmp_path / name, content))
    assert frame.columns == ["a", "b", "c"]
    assert frame.rows() == CELLS


@pytest.mark.parametrize("form", ["parquet", "ipc"])
def test_parquet_and_feather_keep_their_types(tmp_path, form):
    frame = pl.DataFrame({"a": [1, 3], "b": [2.5, 4.5], "c": ["x", "y"]})
    path = tmp_path / "table"
    getattr(frame, f"write_{form}")(path)
    assert read_frame(str(path)).equals(frame)


def test_a_dash_is_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
    assert read_frame("-").rows() == CELLS


def test_a_pattern_stands_for_all_its_files_in_order(tmp_path):
    for i in (2, 1):
        write(tmp_path / f"part-{i}.csv", f"a\n{i}\n")
    assert read_frame(str(tmp_path / "part-*.csv"))["a"].to_list() == ["1", "2"]


def test_without_a_header_columns_are_numbered(tmp_path):
    frame = read_frame(write(tmp_path / "t.csv", "1,2\n3,4\n"), header=False)
    assert frame.columns == ["column_1", "column_2"]
    assert len(frame) == 2


def test_a_column_without_a_name_is_named_by_its_position(tmp_path):
    assert read_frame(write(tmp_path / "t.csv", ",b\n1,2\n")).columns == ["column_1", "b"]


def test_a_separator_inside_quotes_does_not_count(tmp_path):
    frame = read_frame(write(tmp_path / "t.csv", '"a,b,c";d\n1;2\n'))
    assert frame.columns == ["a,b,c", "d"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "must hold a table, got nothing"),
        ("\n \n", "must hold a table, got nothing"),
        ("a,b\n", "must hold rows below its header"),
        ("a,b,a\n1,2,3\n", "must name each column once, got `a` twice"),
        ("a,b\n1,2,3\n", "got 3 cells in line 2 and 2 in the first"),
        ('a,b\n1,"2\n3,4\n', "a quote that is not closed, or one inside a cell"),
        ("a,b\ncafé,1\n".encode("latin-1"), "must be UTF-8 text.* got byte 0xe9 at position 7"),
        (b"\xff\xfea", "must be UTF-8 text"),
        (b"a,b\n1,\0\n", "got other binary data"),
        (gzip.compress(CSV.encode(), mtime=0)[:-10], "must be a whole gzip file"),
        (b"\x1f\x8b\x08 and then nonsense", "must be a whole gzip file"),
        (b"PAR1 and then nonsense", "must be a whole Parquet or Feather file"),
        (b"ARROW1 and then nonsense", "must be a whole Parquet or Feather file"),
        (b"\x89PNG\r\n\x1a\n\0\0", "must be UTF-8 text"),
    ],
)
def test_what_is_no_table_gives_a_clear_error(tmp_path, content, message):
    with pytest.raises(TableError, match=message):
        read_frame(write(tmp_path / "t.csv", content))


def test_a_part_with_other_columns_is_named(tmp_path):
    write(tmp_path / "part-1.csv", "a,b\n1,2\n")
    write(tmp_path / "part-2.csv", "a,c\n1,2\n")
    with pytest.raises(TableError, match=r"part-2.csv` must have the columns of .*part-1.csv`"):
        read_frame(str(tmp_path / "part-*.csv"))


def test_parts_of_unlike_types_are_refused(tmp_path):
    pl.DataFrame({"a": [[1]]}).write_parquet(tmp_path / "part-1.parquet")
    pl.DataFrame({"a": [1.5]}).write_parquet(tmp_path / "part-2.parquet")
    with pytest.raises(TableError, match="hold unlike types"):
        read_frame(str(tmp_path / "part-*.parquet"))


@pytest.mark.parametrize("name", ["nothing-here.csv", "nothing-*.csv"])
def test_a_file_that_is_not_there_is_not_found(tmp_path, name):
    with pytest.raises(FileNotFoundError):
        read_frame(str(tmp_path / name))


@given(cells=st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5, unique=True))
def test_cells_written_by_the_csv_module_are_read_back(tmp_path_factory, cells):
    """Python's csv module is the judge of what a quoted cell means."""
    import csv

    path = tmp_path_factory.mktemp("cells") / "t.csv"
    safe = [cell.replace("\0", "").replace("\r", "") or "x" for cell in cells]
    with open(path, "w", newline="", encoding="utf-8", errors="replace") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([["h", "i"]])
        csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(
            [[cell, "1"] for cell in safe]
        )
    with open(path, newline="", encoding="utf-8") as file:
        expected = list(csv.reader(file))[1:]
    assert [list(row) for row in read_frame(str(path)).rows()] == expected


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.parquet", "out.feather", "out.csv.gz"])
def test_what_is_written_is_read_back(tmp_path, name):
    frame = pl.DataFrame({"prediction": [1.5, None, 2.25]})
    write_table(frame, str(tmp_path / name))
    back = read_frame(str(tmp_path / name))
    assert back["prediction"].cast(pl.Float64).drop_nulls().to_list() == [1.5, 2.25]
