"""Files become frames, whatever their form; what is no table gives a clear error."""

import datetime
import gzip
import io
import json
import logging
import sys
import tracemalloc
import zipfile
from contextlib import suppress

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inside import WRITERS, TableError, read_frame, write_table

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
        ("old-mac.csv", CSV.replace("\n", "\r")),
        ("wide-big.csv", b"\xfe\xff" + CSV.encode("utf-16-be")),
        ("wide-without-mark.csv", CSV.encode("utf-16-le")),
        ("wide-big-without-mark.csv", CSV.encode("utf-16-be")),
        ("very-wide.csv", CSV.encode("utf-32")),
        ("wide-old-mac.csv", CSV.replace("\n", "\r").encode("utf-16")),
        ("quoted-and-padded.csv", ' "a", "b" ,c\n1,2.5,x\n3,4.5,y\n'),
        ("blank-in-all-ways.csv", " \n,,\na,b,c\n  \n1,2.5,x\n,,\n3,4.5,y\n\t\n"),
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
        (b"a,b\ncaf\x81,1\n", "must be UTF-8 text.* got byte 0x81 at position 7"),
        (b"\xff\xfea", "must be UTF-8 text"),
        (b"a,b\n1,\0\n", "got other binary data"),
        (gzip.compress(CSV.encode(), mtime=0)[:-10], "must be a whole gzip file"),
        (b"\x1f\x8b\x08 and then nonsense", "must be a whole gzip file"),
        (b"PAR1 and then nonsense", "cannot be read as Parquet: "),
        (b"ARROW1 and then nonsense", "cannot be read as Feather: "),
        (b"PK\x03\x04 and then nonsense", "cannot be read as Excel: "),
        (b"\xd0\xcf\x11\xe0 and then nonsense", "cannot be read as Excel: "),
        (",,\n;\n", "must hold a table, got nothing"),
        (b"\x89PNG\r\n\x1a\n\0\0", "got other binary data"),
    ],
)
def test_what_is_no_table_gives_a_clear_error(tmp_path, content, message):
    with pytest.raises(TableError, match=message):
        read_frame(write(tmp_path / "t.csv", content))


@pytest.mark.parametrize("code", ["latin-1", "cp1252"])
def test_texts_of_old_windows_are_read_with_a_message(tmp_path, capsys, code):
    text = "größe;naïve\n1;Café\n" + ("2;12 €\n" if code == "cp1252" else "")
    path = write(tmp_path / "t.csv", text.encode(code))
    frame = read_frame(path)
    assert "t.csv` is not UTF-8 and is read as Windows-1252" in capsys.readouterr().err
    assert frame.columns == ["größe", "naïve"]
    assert frame["naïve"].to_list() == ["Café", "12 €"][: len(frame)]


def test_a_header_with_quotes_and_line_ends_keeps_them(tmp_path):
    text = '"size\nin ""m""";"name, first";a "b" c\n1;2;3\n'
    frame = read_frame(write(tmp_path / "t.csv", text))
    assert frame.columns == ['size\nin "m"', "name, first", 'a "b" c']


def test_a_gzip_that_unpacks_to_too_much_is_refused_with_the_numbers(tmp_path, size):
    size("memory for tables", 40_000_000)
    path = write(tmp_path / "bomb.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 3_000_000))
    message = r"at most 2 MB, as 40 MB of memory is available .* got more. Unpack it first"
    with pytest.raises(TableError, match=message):
        read_frame(path)


def test_a_gzip_is_not_unpacked_to_the_end_to_be_refused(tmp_path, size):
    size("memory for tables", 40_000_000)
    path = write(tmp_path / "bomb.csv.gz", gzip.compress(bytes(200_000_000), 1))
    tracemalloc.start()
    with pytest.raises(TableError, match="must unpack to at most 2 MB"):
        read_frame(path)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_a_part_with_other_columns_is_named(tmp_path):
    write(tmp_path / "part-1.csv", "a,b\n1,2\n")
    write(tmp_path / "part-2.csv", "a,c\n1,2\n")
    with pytest.raises(TableError, match=r"part-2.csv` must have the columns of .*part-1.csv`"):
        read_frame(str(tmp_path / "part-*.csv"))


def test_parts_of_unlike_types_are_refused(tmp_path):
    pl.DataFrame({"a": [[1]]}).write_parquet(tmp_path / "part-1.parquet")
    pl.DataFrame({"a": [1.5]}).write_parquet(tmp_path / "part-2.parquet")
    with pytest.raises(TableError, match="differ in type"):
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


@pytest.mark.parametrize("name", [*(f"out{suffix}" for suffix in WRITERS), "out.csv.gz"])
def test_what_is_written_is_read_back(tmp_path, name):
    frame = pl.DataFrame({"prediction": [1.5, None, 2.25]})
    write_table(frame, str(tmp_path / name))
    back = read_frame(str(tmp_path / name))
    assert back["prediction"].cast(pl.Float64).drop_nulls().to_list() == [1.5, 2.25]


# Excel


@pytest.fixture
def workbook(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("fastexcel")
    book = openpyxl.Workbook()
    book.active.append([" a ", "when", None, "c"])
    book.active.append([1 / 3, datetime.datetime(2020, 1, 2, 3), 5, "x"])
    book.active.append([None, None, None, None])
    book.active.append([2, datetime.datetime(2020, 1, 3, 4), 6, "y"])
    book.save(tmp_path / "t.xlsx")
    return tmp_path / "t.xlsx"


def test_a_sheet_keeps_its_types_and_blank_rows_are_left_out(workbook):
    frame = read_frame(str(workbook))
    assert frame.columns == ["a", "when", "column_3", "c"]
    assert frame["a"].to_list() == [1 / 3, 2]
    assert frame["when"].to_list()[1] == datetime.datetime(2020, 1, 3, 4)


def test_a_workbook_is_told_by_its_bytes_and_other_sheets_are_named(workbook, tmp_path):
    import openpyxl

    book = openpyxl.load_workbook(workbook)
    book.create_sheet("more").append([1])
    book.save(tmp_path / "t.csv")
    with pytest.warns(UserWarning, match="The sheet `Sheet` of .* is read, not `more`") as found:
        assert len(read_frame(str(tmp_path / "t.csv"))) == 2
    assert found[0].filename == __file__


@pytest.mark.parametrize("sheet", ["more", "2"])
def test_a_sheet_is_read_by_its_name_or_position(workbook, run, tmp_path, sheet):
    import openpyxl

    book = openpyxl.load_workbook(workbook)
    more = book.create_sheet("more")
    for row in [("x", "y"), *((i, i % 5) for i in range(20))]:
        more.append(row)
    book.save(workbook)
    given = (workbook, "-t", "y", "--sheet", sheet)
    code, out, err = run("report", *given, "--rule", "2", "-o", tmp_path / "r.html", "--json")
    assert code == 0, err
    assert json.loads(out)["n_samples"] == 20
    page = (tmp_path / "r.html").read_text()
    assert f"--sheet {sheet}" in page
    assert ("sheet_id=2" if sheet == "2" else "sheet_name=&#x27;more&#x27;") in page
    assert run("fit", *given, "--rule", "2", "-o", tmp_path / "m.skops")[0] == 0
    code, out, _ = run("predict", tmp_path / "m.skops", workbook, "--sheet", sheet)
    assert (code, len(out.splitlines())) == (0, 21)


@pytest.mark.parametrize("sheet", ["0", "3", "mor"])
def test_a_sheet_that_is_not_there_is_named_with_those_that_are(workbook, run, sheet):
    code, _, err = run("select", workbook, "--sheet", sheet)
    assert code == 2
    assert f"There is no sheet `{sheet}` in `{workbook}`. There are `Sheet`." in err
    (workbook.parent / "t.csv").write_text("a,b\n1,2\n")
    code, _, err = run("select", workbook.parent / "t.csv", "--sheet", sheet)
    assert code == 2
    assert "--sheet is for Excel files, got" in err


BELOW = "size,price\n1,2\n2,3\n4,5\n7,6\n9,9\n"


@pytest.mark.parametrize(
    "above", ["Sales list 2023\nas of May\n\n", "Sales list 2023,\n,\n", "\nSales list 2023\n"]
)
def test_rows_above_the_header_are_skipped_with_a_note(run, tmp_path, above):
    below = BELOW + "3,3\n5,6\n6,5\n8,8\n0,1\n"  # ten rows, which a report needs
    (tmp_path / "t.csv").write_text(above + below)
    (tmp_path / "plain.csv").write_text(below)
    found, plain = (run("select", tmp_path / f"{name}.csv", "--json") for name in ("t", "plain"))
    assert found[0] == 0
    assert json.loads(found[1])["sigma"] == json.loads(plain[1])["sigma"]
    assert "begins with 'Sales list 2023'; its table is read from row" in found[2]
    assert "begins with" not in plain[2]
    page = tmp_path / "r.html"
    assert run("report", tmp_path / "t.csv", "-t", "price", "--rule", "2", "-o", page)[0] == 0
    assert "because it would have to repeat how the header was found" in page.read_text()


@pytest.mark.parametrize("blank", [0, 2])
def test_rows_above_the_header_of_a_sheet_are_skipped_and_its_types_kept(tmp_path, blank):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("fastexcel")
    book = openpyxl.Workbook()
    book.active.cell(1 + blank, 1, "Sales list 2023")
    for i, row in enumerate([("size", "sold"), (1.5, datetime.datetime(2020, 1, 2))]):
        for j, value in enumerate(row):
            book.active.cell(3 + blank + i, 1 + j, value)
    book.active.append([2, datetime.datetime(2020, 1, 3)])
    book.save(tmp_path / "t.xlsx")
    frame = read_frame(str(tmp_path / "t.xlsx"))
    assert frame["size"].to_list() == [1.5, 2]
    assert frame["sold"].to_list()[1] == datetime.date(2020, 1, 3)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("price,,\n1,2,3\n4,5,6\n", ["price", "column_2", "column_3"]),
        ("words\nyes\nno\n", ["words"]),
        ('"size\nof it",b\n1,2\n', ["size\nof it", "b"]),
    ],
)
def test_a_first_row_that_may_be_the_header_is_not_skipped(tmp_path, text, columns):
    (tmp_path / "t.csv").write_text(text)
    assert read_frame(str(tmp_path / "t.csv")).columns == columns


def test_a_cut_workbook_is_refused(workbook):
    workbook.write_bytes(workbook.read_bytes()[:-300])
    with pytest.raises(TableError, match="cannot be read as Excel"):
        read_frame(str(workbook))


def test_a_workbook_with_a_damaged_directory_is_refused(workbook):
    """Found by 2500 random files: zipfile refuses what is_zipfile accepts."""
    data = bytearray(workbook.read_bytes())
    entry = data.index(b"PK\x01\x02")
    data[entry + 30] = 1  # length of a field that is not there
    workbook.write_bytes(bytes(data))
    with pytest.raises(TableError, match="cannot be read as Excel"):
        read_frame(str(workbook))


def test_a_workbook_that_unpacks_to_too_much_is_refused(workbook, size):
    size("memory for tables", 1000)
    with pytest.raises(TableError, match="must unpack to at most 0 MB"):
        read_frame(str(workbook))


def test_an_empty_sheet_is_refused(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("fastexcel")
    openpyxl.Workbook().save(tmp_path / "t.xlsx")
    with pytest.raises(TableError, match="must hold rows below its header, got none"):
        read_frame(str(tmp_path / "t.xlsx"))


def test_without_its_extra_excel_says_how_to_get_it(workbook, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(ImportError, match=r"pip install 'jacridge\[xlsx\]'"):
        read_frame(str(workbook))


def test_a_damaged_feather_file_prints_no_stack(capfd, tmp_path):
    """Threads of polars printed about fifty lines."""
    buffer = io.BytesIO()
    pl.DataFrame({"a": [1.5] * 40, "y": [2.5] * 40}).write_ipc(buffer)
    for at in range(1, 200, 2):  # the block of metadata at the end
        data = bytearray(buffer.getvalue())
        data[-at] ^= 0x40
        with suppress(TableError):
            read_frame(write(tmp_path / "t.feather", bytes(data)))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("content", [b"PAR1 and then nonsense", gzip.compress(b"a")[:-3]])
def test_a_damaged_file_is_to_be_copied_or_saved_again(tmp_path, content):
    with pytest.raises(TableError, match=r"incomplete: copy or save it again\.$"):
        read_frame(write(tmp_path / "t", content))


def test_a_zip_archive_is_to_be_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("inner.csv", CSV)
    with pytest.raises(TableError, match=r"got a zip archive of `inner.csv`\. Unpack it first\."):
        read_frame(str(tmp_path / "t.zip"))


@pytest.mark.parametrize("frame", [pl.DataFrame(), pl.DataFrame({"a": [], "y": []})])
def test_a_parquet_file_without_rows_is_refused(run, tmp_path, frame):
    frame.write_parquet(tmp_path / "t.parquet")
    code, _, err = run("select", tmp_path / "t.parquet", "-t", "y")
    assert (code, "t.parquet` must hold rows, got none." in err) == (1, True)


def test_cells_with_errors_of_a_workbook_are_not_reported_twice(tmp_path, capsys, monkeypatch):
    """fastexcel also said: Could not determine dtype for column 0, falling back to string."""
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("fastexcel")
    book = openpyxl.Workbook()
    for row in (["a", "y"], *(["#DIV/0!", i] for i in range(5))):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    monkeypatch.setattr(logging.root, "handlers", [])  # those of pytest
    read_frame(str(tmp_path / "t.xlsx"))
    assert capsys.readouterr().err == ""


def test_the_types_of_a_wide_table_are_not_listed_for_each_column(run, tmp_path, monkeypatch):
    """3000 columns took 20 s, nearly all of it for lists of 3000 types."""
    lines = [",".join(f"{i * j % 7}.5" for i in range(60)) for j in range(9)]
    path = write(tmp_path / "t.csv", "\n".join([",".join(f"x{i}" for i in range(60)), *lines]))
    calls, schema = [], pl.DataFrame.schema.fget
    monkeypatch.setattr(pl.DataFrame, "schema", property(lambda f: calls.append(1) or schema(f)))
    assert run("select", path)[0] == 0
    assert len(calls) < 30
