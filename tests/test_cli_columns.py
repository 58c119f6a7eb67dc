"""Which columns, which rows, which type; each refusal says what to do."""

import datetime

import polars as pl
import pytest

from jacridge.cli._columns import UnknownColumn, column_named, in_place, read_columns, read_rows
from jacridge.cli._tables import TableError

CSV = """age,colour,height,weight
1,red,10,100
2,blue,20,200
3,red,30,300
"""


@pytest.fixture
def people(tmp_path):
    return write(tmp_path, CSV)


def write(folder, text):
    path = folder / "people.csv"
    path.write_text(text)
    return str(path)


def test_all_columns_but_the_target_are_features(people):
    rows = read_rows(people, "weight")
    assert rows.X.columns == ["age", "colour", "height"]
    assert rows.numbers == ["age", "height"]
    assert rows.texts == ["colour"]
    assert rows.y.tolist() == [100, 200, 300]
    assert rows.n_dropped == 0


def test_without_a_target_all_columns_are_features(people):
    rows = read_rows(people, None, drop=["colour"])
    assert rows.X.columns == ["age", "height", "weight"]
    assert (rows.y, rows.target) == (None, None)


@pytest.mark.parametrize(("wanted", "name"), [("1", "age"), ("4", "weight"), ("-1", "weight")])
def test_a_column_may_be_given_by_its_position(wanted, name):
    assert column_named(["age", "colour", "height", "weight"], wanted) == name


def test_a_name_goes_before_a_position():
    assert column_named(["2", "1"], "1") == "1"


@pytest.mark.parametrize("wanted", ["0", "5", "-5", "1.0", ""])
def test_a_position_out_of_range_is_unknown(wanted):
    with pytest.raises(UnknownColumn, match="must be a column's name or position"):
        column_named(["a", "b", "c", "d"], wanted)


def test_a_misspelt_column_brings_the_nearest_name():
    with pytest.raises(UnknownColumn, match="Did you mean `weight`"):
        column_named(["age", "weight"], "wieght")


def test_a_long_list_of_columns_is_cut():
    with pytest.raises(UnknownColumn, match="and 80 more"):
        column_named([f"x{i}" for i in range(100)], "target")


@pytest.mark.parametrize("features", [["age,height"], ["age", "height"], ["age", "height,age"]])
def test_features_are_joined_by_commas_or_repeated(people, features):
    assert read_rows(people, "weight", features=features).X.columns == ["age", "height"]


def test_dropped_columns_are_not_even_parsed(tmp_path):
    path = write(tmp_path, CSV.replace("red", "1e999"))
    assert read_rows(path, "weight", drop=["colour"]).X.columns == ["age", "height"]


def test_a_column_whose_name_has_a_comma_can_be_dropped(tmp_path):
    path = write(tmp_path, '"a,b",c,y\n1,2,3\n')
    assert read_rows(path, "y", drop=["a,b"]).X.columns == ["c"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop": ["weight"]}, "`weight` must not be dropped, it is the target"),
        ({"features": ["age,weight"]}, "`weight` must not be a feature"),
        ({"drop": ["age,colour,height"]}, "At least one feature must be left"),
        ({"drop": ["agee"]}, "Did you mean `age`"),
        ({"features": ["nothing"]}, "There are `age`, `colour`, `height`, `weight`"),
    ],
)
def test_columns_that_cannot_be_chosen_are_named(people, options, message):
    with pytest.raises(UnknownColumn, match=message):
        read_rows(people, "weight", **options)


@pytest.mark.parametrize("missing", ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "?", "  "])
def test_rows_with_a_missing_value_are_left_out_and_counted(tmp_path, missing):
    rows = read_rows(write(tmp_path, CSV.replace("2,blue", f"{missing},blue")), "weight")
    assert rows.n_dropped == 1
    assert rows.y.tolist() == [100, 300]


def test_a_row_that_is_too_short_counts_as_missing(tmp_path):
    assert read_rows(write(tmp_path, CSV + "4,red\n"), "weight").n_dropped == 1


def test_strict_refuses_missing_values_and_names_the_columns(tmp_path):
    path = write(tmp_path, CSV.replace("2,blue", ",blue"))
    with pytest.raises(TableError, match="got 1 of 3 rows with missing values, in `age`"):
        read_rows(path, "weight", strict=True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1,red,10,100", "1,red,10,heavy", "`weight` must hold numbers, got 'heavy' in row 1"),
        ("3,red,30", "3,red,1o", "`height` must hold numbers, got '1o' in row 3"),
        ("3,red,30", "3,red,1e999", "`height` must hold numbers below .* got inf in row 3"),
        ("3,red,30", "3,red,-1e200", "`height` must hold numbers below .* got -1e.200 in row 3"),
        ("3,red,30", "3,red," + "x" * 99, r"'x{37}\.\.\.' in row 3"),
    ],
)
def test_a_wrong_value_is_shown_with_its_row(tmp_path, old, new, message):
    with pytest.raises(TableError, match=message):
        read_rows(write(tmp_path, CSV.replace(old, new)), "weight")


def test_a_target_of_words_is_refused(people):
    with pytest.raises(TableError, match="target `colour` must hold numbers, got texts such as"):
        read_rows(people, "colour")


def test_an_empty_column_is_named(tmp_path):
    with pytest.raises(TableError, match="must hold values, got none in `b`"):
        read_rows(write(tmp_path, "a,b,y\n1,,2\n2,,3\n"), "y")


def test_a_table_without_a_complete_row_is_refused(tmp_path):
    with pytest.raises(TableError, match="must hold a row without missing values"):
        read_rows(write(tmp_path, "a,b,y\n1,,2\n,2,3\n"), "y")


def test_a_column_of_names_is_no_category(tmp_path):
    text = "name,y\n" + "".join(f"person {i},{i}\n" for i in range(101))
    with pytest.raises(TableError, match=r"at most 100 categories, got 101 .*--drop 'name'"):
        read_rows(write(tmp_path, text), "y")


def test_decimal_commas_are_no_categories(tmp_path):
    with pytest.raises(TableError, match=r"`a` must hold numbers with a decimal point, got '1,5'"):
        read_rows(write(tmp_path, "a;y\n1,5;1\n-2,25;2\n;3\n"), "y")


def test_booleans_are_numbers_and_dates_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    day = datetime.date(2020, 1, 1)
    pl.DataFrame({"b": [True, False], "d": [day, day], "y": [1, 2]}).write_parquet(path)
    assert read_rows(str(path), "y", drop=["d"]).X["b"].to_list() == [1.0, 0.0]
    with pytest.raises(TableError, match="`d` must hold numbers or texts, got Date"):
        read_rows(str(path), "y")


def test_new_rows_keep_their_holes_and_take_the_types_of_training(tmp_path):
    path = write(tmp_path, "zip,extra,age\n01,q,5\n02,q,\n")
    frame = read_columns(path, numbers=["age"], texts=["zip"])
    assert frame.rows() == [(5.0, "01"), (None, "02")]


def test_numbers_are_texts_where_training_had_texts(tmp_path):
    pl.DataFrame({"zip": [1, None, 30]}).write_parquet(tmp_path / "new.parquet")
    frame = read_columns(str(tmp_path / "new.parquet"), numbers=[], texts=["zip"])
    assert frame["zip"].to_list() == ["1", None, "30"]


def test_results_of_complete_rows_return_to_their_places():
    frame = pl.DataFrame({"a": [None, 1, 2, None], "b": ["x", "y", "z", None]})
    out = in_place(pl.DataFrame({"r": [10, 20]}), frame)
    assert out["r"].to_list() == [None, 10, 20, None]


def test_new_rows_without_a_column_name_it(people):
    with pytest.raises(UnknownColumn, match=r"got no `size`, `shoe`. It has `age`"):
        read_columns(people, numbers=["age", "size"], texts=["shoe"])


def test_new_rows_with_words_for_numbers_are_refused(people):
    with pytest.raises(TableError, match="`colour` must hold numbers, got 'red' in row 1"):
        read_columns(people, numbers=["colour"], texts=[])
