"""Which columns, which rows, which type; each refusal says what to do."""

import re

import polars as pl
import pytest

from inside import (
    Reading,
    TableError,
    UnknownColumn,
    column_named,
    in_place,
    read_frame,
    read_rows,
    typed_columns,
)

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
    rows = read_rows(people, ["weight"])
    assert rows.X.columns == ["age", "colour", "height"]
    assert rows.numbers == ["age", "height"]
    assert rows.texts == ["colour"]
    assert rows.y.tolist() == [100, 200, 300]
    assert rows.losses.n == 0


def test_without_a_target_all_columns_are_features(people):
    rows = read_rows(people, [], Reading(drop=["colour"]))
    assert rows.X.columns == ["age", "height", "weight"]
    assert (rows.y, rows.target) == (None, None)


@pytest.mark.parametrize(("wanted", "name"), [("1", "age"), ("4", "weight"), ("-1", "weight")])
def test_a_column_may_be_given_by_its_position(wanted, name):
    assert column_named(["age", "colour", "height", "weight"], wanted) == name


def test_a_name_goes_before_a_position():
    assert column_named(["2", "1"], "1") == "1"


@pytest.mark.parametrize("wanted", ["0", "5", "-5", "1.0", ""])
def test_a_position_out_of_range_is_unknown(wanted):
    with pytest.raises(UnknownColumn, match=f"There is no column `{wanted}`"):
        column_named(["a", "b", "c", "d"], wanted)


def test_a_misspelt_column_brings_the_nearest_name():
    with pytest.raises(UnknownColumn, match="Did you mean `weight`"):
        column_named(["age", "weight"], "wieght")


def test_a_long_list_of_columns_is_cut():
    with pytest.raises(UnknownColumn, match="and 80 more"):
        column_named([f"x{i}" for i in range(100)], "target")


@pytest.mark.parametrize("features", [["age,height"], ["age", "height"], ["age", "height,age"]])
def test_features_are_joined_by_commas_or_repeated(people, features):
    assert read_rows(people, ["weight"], Reading(features=features)).X.columns == ["age", "height"]


def test_dropped_columns_are_not_even_parsed(tmp_path):
    path = write(tmp_path, CSV.replace("red", "1e999"))
    assert read_rows(path, ["weight"], Reading(drop=["colour"])).X.columns == ["age", "height"]


def test_a_column_whose_name_has_a_comma_can_be_dropped(tmp_path):
    path = write(tmp_path, '"a,b",c,y\n1,2,3\n')
    assert read_rows(path, ["y"], Reading(drop=["a,b"])).X.columns == ["c"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop": ["weight"]}, "`weight` cannot be dropped: it is the target"),
        ({"features": ["age,weight"]}, "`weight` cannot be a feature"),
        ({"drop": ["age,colour,height"]}, "At least one feature must be left"),
        ({"drop": ["agee"]}, "Did you mean `age`"),
        ({"features": ["nothing"]}, "There are `age`, `colour`, `height`, `weight`"),
    ],
)
def test_columns_that_cannot_be_chosen_are_named(people, options, message):
    with pytest.raises(UnknownColumn, match=message):
        read_rows(people, ["weight"], Reading(**options))


@pytest.mark.parametrize("missing", ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "?", "  "])
def test_rows_with_a_missing_value_are_left_out_and_counted(tmp_path, missing):
    rows = read_rows(write(tmp_path, CSV.replace("2,blue", f"{missing},blue")), ["weight"])
    assert rows.losses.n == 1
    assert rows.y.tolist() == [100, 300]


def test_a_row_that_is_too_short_counts_as_missing(tmp_path):
    assert read_rows(write(tmp_path, CSV + "4,red\n"), ["weight"]).losses.n == 1


def test_an_error_is_given_for_missing_values_and_names_the_columns(tmp_path):
    path = write(tmp_path, CSV.replace("2,blue", ",blue"))
    with pytest.raises(TableError, match="got 1 of 3 rows with missing values: 1 lacks `age`"):
        read_rows(path, ["weight"], Reading(missing="error"))


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
        read_rows(write(tmp_path, CSV.replace(old, new)), ["weight"])


def test_a_target_of_words_is_refused(people):
    with pytest.raises(TableError, match="target `colour` must hold numbers, got text such as"):
        read_rows(people, ["colour"])


def test_an_empty_column_is_named(tmp_path):
    with pytest.raises(TableError, match=r"`b` must hold values, got none\. .* --drop 'b'"):
        read_rows(write(tmp_path, "a,b,y\n1,,2\n2,,3\n"), ["y"])


def test_a_feature_without_values_beside_the_target_is_refused(tmp_path):
    """There is no median to fill its gaps with."""
    path = write(tmp_path, "a,b,y\n1,,1\n2,,3\n3,5,\n4,,5\n")
    message = r"`b` must hold values in the 3 rows that are used, got none\. .* --drop 'b'"
    with pytest.raises(TableError, match=message):
        read_rows(path, ["y"], Reading(missing="impute"))


def test_a_table_without_a_complete_row_is_refused(tmp_path):
    with pytest.raises(TableError, match="must hold a row without missing values"):
        read_rows(write(tmp_path, "a,b,y\n1,,2\n,2,3\n"), ["y"])


def test_a_column_of_names_is_no_category(tmp_path):
    text = "name,y\n" + "".join(f"person {i},{i}\n" for i in range(101))
    with pytest.raises(TableError, match=r"at most 100 categories, got 101 .*--drop 'name'"):
        read_rows(write(tmp_path, text), ["y"])


def test_decimal_commas_are_no_categories(tmp_path):
    with pytest.raises(TableError, match=r"`a` must hold numbers with a decimal point, got '1,5'"):
        read_rows(write(tmp_path, "a;y\n1,5;1\n-2,25;2\n;3\n"), ["y"])


def test_booleans_are_numbers_and_lists_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"b": [True, False], "l": [[1], [2]], "y": [1, 2]}).write_parquet(path)
    assert read_rows(str(path), ["y"], Reading(drop=["l"])).X["b"].to_list() == [1.0, 0.0]
    with pytest.raises(TableError, match="`l` must hold numbers, texts or dates, got List"):
        read_rows(str(path), ["y"])


# several targets, weights


def test_several_targets_and_weights_are_no_features(people):
    rows = read_rows(people, ["weight,height"], Reading(weights="age"))
    assert rows.X.columns == ["colour"]
    assert rows.y.tolist() == [[100, 10], [200, 20], [300, 30]]
    assert rows.weights.tolist() == [1, 2, 3]
    with pytest.raises(UnknownColumn, match="`age` cannot be dropped: it is the weights"):
        read_rows(people, ["weight"], Reading(weights="age", drop=["age"]))


# decimal commas


@pytest.mark.parametrize(
    "cells", [("1,5", "-2,25", ""), ("1,5", "2", "3"), ("1,5", "2,5", "3"), ("1", "2", "3,5e2")]
)
def test_decimal_commas_bring_a_hint(tmp_path, cells):
    path = write(tmp_path, "a;y\n" + "".join(f"{cell};{i}\n" for i, cell in enumerate(cells)))
    with pytest.raises(TableError, match=r"`a` must hold numbers.* Add --decimal , to read"):
        read_rows(path, ["y"])
    assert read_rows(path, ["y"], Reading(decimal=",")).numbers == ["a"]


def test_a_target_of_decimal_commas_brings_a_hint(tmp_path):
    path = write(tmp_path, "a;y\n1;1,5\n2;2,5\n")
    with pytest.raises(TableError, match=r"The target `y` must hold numbers.* Add --decimal ,"):
        read_rows(path, ["y"])


def test_points_group_thousands_where_commas_are_decimal(tmp_path):
    path = write(tmp_path, "a;y\n1.234,5;1\n-12.345.678;2\n0,5;3\n7;4\n")
    rows = read_rows(path, ["y"], Reading(decimal=","))
    assert rows.X["a"].to_list() == [1234.5, -12345678, 0.5, 7]


def test_a_decimal_point_among_decimal_commas_is_refused(tmp_path):
    path = write(tmp_path, "a;y\n1,5;1\n2,5;2\n3.5;3\n")
    with pytest.raises(TableError, match=r"`a` must hold numbers, got '3\.5' in row 3"):
        read_rows(path, ["y"], Reading(decimal=","))


@pytest.mark.parametrize(
    "cells", [("0.123", "1.234"), ("0.5", "2.25"), ("1,5", "0.123"), ("1.5", "2", "x")]
)
def test_points_that_cannot_separate_thousands_are_refused(tmp_path, cells):
    """0.123 was read as 123, and a column of decimal points as categories."""
    path = write(tmp_path, "a;y\n" + "".join(f"{cell};1\n" for cell in cells * 3))
    wrong = next(cell for cell in cells if cell in ("0.123", "0.5", "1.5"))
    match = rf"`a` must hold numbers, got .*'{re.escape(wrong)}' in row .* Use --decimal \. to read"
    with pytest.raises(TableError, match=match):
        read_rows(path, ["y"], Reading(decimal=","))


def test_a_target_whose_points_cannot_separate_thousands_is_refused(tmp_path):
    path = write(tmp_path, "a;y\n1;0.123\n2;0.456\n")
    with pytest.raises(TableError, match=r"`y` must hold numbers, got '0\.123' in row 1"):
        read_rows(path, ["y"], Reading(decimal=","))


def test_numbers_with_a_type_are_read_whatever_the_decimal_sign(tmp_path):
    pl.DataFrame({"a": [1.5, 2.5], "y": [1, 2]}).write_parquet(tmp_path / "t.parquet")
    rows = read_rows(str(tmp_path / "t.parquet"), ["y"], Reading(decimal=","))
    assert rows.X["a"].to_list() == [1.5, 2.5]


# texts that are numbers


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (("€405.75", "-€1,405.75", "€5"), [405.75, -1405.75, 5]),
        (("59%", "7 %", "0.5%"), [59, 7, 0.5]),
        (("729,200", "3,017,000", "12"), [729_200, 3_017_000, 12]),
        (("1,058.74", "729,200", "1e3"), [1058.74, 729_200, 1000]),
        (("$ 1,000", "$ 12,000", "$ 5"), [1000, 12_000, 5]),
        (("1'234.5", "12’000", "3"), [1234.5, 12_000, 3]),
    ],
)
def test_texts_with_one_sign_and_thousands_are_numbers(tmp_path, cells, numbers):
    path = write(tmp_path, "a;y\n" + "".join(f"{cell};{i}\n" for i, cell in enumerate(cells)))
    rows = read_rows(path, ["y"])
    assert rows.X["a"].to_list() == numbers
    assert list(rows.written) == ["a"]


def test_thousands_and_signs_are_read_beside_decimal_commas(tmp_path):
    path = write(tmp_path, "a;y\n1.405,75 €;1\n5,5 €;2\n1 000 €;3\n")
    rows = read_rows(path, ["y"], Reading(decimal=","))
    assert rows.X["a"].to_list() == [1405.75, 5.5, 1000]


@pytest.mark.parametrize(
    "cells", [("59%", "0.6", "€5"), ("10 kg", "box", "5 kg"), ("1st", "2nd", "3rd")]
)
def test_texts_with_unlike_signs_are_no_numbers(tmp_path, cells):
    path = write(tmp_path, "a,y\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells)))
    assert read_rows(path, ["y"]).texts == ["a"]


def test_commas_that_may_be_decimal_or_separate_thousands_are_refused(tmp_path):
    path = write(tmp_path, "a;y\n729,200;1\n85,300;2\n")
    with pytest.raises(
        TableError, match=r"Add --decimal , .* If commas separate thousands, remove"
    ):
        read_rows(path, ["y"])


@pytest.mark.parametrize("cells", [("576.407 €", "85.300 €", "95 €"), ("€1.234.567", "-€ 85.300")])
@pytest.mark.parametrize("column", ["a", "y"])
def test_points_of_prices_that_may_separate_thousands_are_refused(tmp_path, cells, column):
    """576.407 € was read as 576.407."""
    one = next(cell for cell in cells if cell.count(".") == 1)
    large = "576407 or 576.407" if one in cells[0] else "-85300 or -85.3"
    lines = [
        ";".join((cell, str(i))[:: 1 if column == "a" else -1]) for i, cell in enumerate(cells)
    ]
    path = write(tmp_path, "a;y\n" + "\n".join(lines) + "\n")
    match = rf"`{column}` must hold numbers .*, got '{one}', which is {large}\. Add --decimal , if"
    with pytest.raises(TableError, match=match):
        read_rows(path, ["y"])
    rows = read_rows(path, ["y"], Reading(decimal=","))
    found = rows.X["a"].to_list() if column == "a" else rows.y.ravel().tolist()
    assert found == [float(re.sub("[€. ]", "", cell)) for cell in cells]


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        (("1.234", "5.678"), 1.234),
        (("€1.234", "€1.23"), 1.234),
        (("0.576 €", "1.234 €"), 0.576),
        (("1.234 %", "5.678 %"), 1.234),
    ],
)
def test_points_that_are_decimal_are_no_thousands(tmp_path, cells, first):
    path = write(tmp_path, "a;y\n" + "".join(f"{cell};{i}\n" for i, cell in enumerate(cells)))
    assert read_rows(path, ["y"]).X["a"][0] == first


def test_prices_in_doubt_beside_decimal_points_are_not_sent_from_one_option_to_the_other(tmp_path):
    path = write(tmp_path, "a;b;y\n576.407 €;0.5;1\n85.300 €;1.25;2\n")
    with pytest.raises(TableError, match=r"`b`, which --decimal , refuses\. Remove the currency"):
        read_rows(path, ["y"])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_commas_of_texts_beside_decimal_points_are_read_as_thousands_with_a_doubt(tmp_path, suffix):
    frame = pl.DataFrame({"a": ["729,200", "12"], "b": ["0.5", "1.25"], "y": ["1", "2"]})
    path = str(tmp_path / f"t.{suffix}")
    frame.write_csv(path) if suffix == "csv" else frame.write_parquet(path)
    rows = read_rows(path, ["y"])
    assert rows.X["a"].to_list() == [729_200, 12]
    assert rows.thousands == ["a"]
    assert not rows.written
    [doubt] = rows.inferred
    assert doubt.startswith("Commas in `a` are read as separators of thousands: '729,200' as")


def test_a_word_among_numbers_with_a_sign_is_shown_with_its_row(tmp_path):
    path = write(tmp_path, "a,y\n" + "".join(f"€{i}.5,{i}\n" for i in range(50)) + "soon,1\n")
    with pytest.raises(TableError, match=r"`a` must hold numbers, got 'soon' in row 51"):
        read_rows(path, ["y"])


# all bad columns


def test_all_bad_columns_are_in_one_message(tmp_path):
    text = "a,b,c,y\n" + "".join(f"{i},{i},n{i % 120},{i}\n" for i in range(300))
    path = write(tmp_path, text.replace("7,7,n7", "7x,1e999,n7"))
    with pytest.raises(TableError) as error:
        read_rows(path, ["y"])
    message = str(error.value)
    assert message.startswith("3 columns cannot be read. The column `a` must hold ")
    assert "got inf in row 8" in message
    assert "got 120 different texts such as 'n0'" in message
    assert message.endswith("or leave features out with --drop 'a,b,c'.")


def test_texts_among_numbers_are_counted_whatever_the_decimal_sign(tmp_path):
    """Also in a column of decimal commas, where they would only show after --decimal."""
    cells = ["1,5", "2.500,5", "k.A.", "3", "4,5", "k.A."]
    text = "a;b;y\n" + "".join(f"{c};{'n/k' if i == 5 else i};{i}\n" for i, c in enumerate(cells))
    with pytest.raises(TableError) as error:
        read_rows(write(tmp_path, text), ["y"])
    message = str(error.value)
    assert (
        "`a` must hold numbers, got 'k.A.' in row 3 and '1,5' in row 1 of the data (texts in 2 "
        "of 6 rows)." in message
    )
    assert (
        "`b` must hold numbers, got 'n/k' in row 6 of the data (texts in 1 of 6 rows)." in message
    )
    assert (
        "Add --decimal , to read decimal commas. Correct the texts, or empty their cells: "
        in message
    )
    assert (
        "an empty cell, NA, N/A, NaN, null, ?, #N/A, #DIV/0!, #VALUE! count as missing." in message
    )
    with pytest.raises(
        TableError, match=r"`a` must hold numbers, got 'k\.A\.' in row 3 of the data \(texts in 2"
    ):
        read_rows(write(tmp_path, text), ["y"], Reading(decimal=",", drop=["b"]))


def test_a_long_list_of_bad_columns_is_cut(tmp_path):
    path = write(tmp_path, ",".join(f"x{i}" for i in range(30)) + ",y\n" + "," * 30 + "1\n")
    with pytest.raises(TableError, match=r"30 columns .* 25 more columns have the same problem\."):
        read_rows(path, ["y"])


# missing values

FLATS = "type,size,lot,price\n" + "".join(
    f"house,{i},{i % 7},{i}\n" + (f"flat,{i},,{i}\n" if i % 2 else "") for i in range(20)
)


def test_losses_name_the_columns_and_the_levels_that_vanish(tmp_path):
    rows = read_rows(write(tmp_path, FLATS), ["price"])
    assert (rows.losses.n, rows.losses.are_many) == (10, True)
    assert rows.losses.sentences == [
        "10 of 30 rows have missing values and are left out: 10 lack `lot`. Fill gaps with "
        "--missing impute, or leave a column out with --drop 'lot'.",
        "No row with `type` = 'flat' is left: all 10 lack `lot`.",
    ]


def test_a_fifth_of_the_rows_is_not_many(tmp_path):
    text = "a,y\n" + "".join(f"{i},{i}\n" for i in range(8)) + ",8\n,9\n"
    assert not read_rows(write(tmp_path, text), ["y"]).losses.are_many
    assert read_rows(write(tmp_path, text + ",10\n"), ["y"]).losses.are_many


def test_rows_are_kept_where_gaps_are_filled_but_not_without_a_target(tmp_path):
    path = write(tmp_path, FLATS + "flat,1,2,\n")
    rows = read_rows(path, ["price"], Reading(missing="impute"))
    assert (len(rows.X), rows.losses.n) == (30, 1)
    assert rows.X["lot"].null_count() == 10


# ids


@pytest.mark.parametrize(
    ("name", "values", "is_id"),
    [
        ("n", range(1, 13), True),
        ("customer id", [7, 3, 9, 1, 2, 4, 11, 5, 6, 8, 30, 20], True),
        ("size", [7, 3, 9, 1, 2, 4, 11, 5, 6, 8, 30, 20], False),
        ("x", [i + 0.5 for i in range(12)], False),
        ("code", [f"k{i}" for i in range(12)], True),
        ("colour", ["a", "b"] * 6, False),
        ("n", [1] * 12, False),
        ("PassengerId", [7, 3, 9, 1, 2, 4, 11, 5, 6, 8, 30, 20], True),
        ("year", range(2001, 2013), False),
        ("day", [f"2020-01-{i}" for i in range(10, 22)], False),
        ("comment", [f"text {i % 110}" for i in range(200)], True),
        ("code", [f"k{i}" if i else "" for i in range(12)], True),
        ("key", [*range(100, 140, 2), 100], True),  # one row was copied
        ("station id", [7, 3, 9] * 4, False),
    ],
)
def test_columns_that_look_like_ids_are_left_out(tmp_path, name, values, is_id):
    rows = "".join(f"{value},{i % 5},{i % 7}\n" for i, value in enumerate(values))
    found = read_rows(write(tmp_path, f"{name},y,other\n{rows}"), ["y"])
    assert found.ids == ([name] if is_id else [])
    assert (len(found.y), "other" in found.X.columns) == (len(values), True)
    assert is_id == (len(found.X.columns) == 1)


def test_the_only_column_is_no_id(tmp_path):
    path = write(tmp_path, "n,y\n" + "".join(f"{i},{i % 5}\n" for i in range(12)))
    assert read_rows(path, ["y"]).X.columns == ["n"]


def test_columns_that_all_look_like_ids_are_refused(tmp_path):
    path = write(tmp_path, "n,k,y\n" + "".join(f"{i},k{i},{i % 5}\n" for i in range(12)))
    with pytest.raises(TableError, match=r"`n`, `k` look like ids. Name .* --features"):
        read_rows(path, ["y"])


# new rows


def test_new_rows_keep_their_holes_and_take_the_types_of_training(tmp_path):
    path = write(tmp_path, "zip,extra,age\n01,q,5\n02,q,\n")
    frame = typed_columns(read_frame(path), path, numbers=["age"], texts=["zip"])
    assert frame.rows() == [(5.0, "01"), (None, "02")]


def test_numbers_are_texts_where_training_had_texts():
    frame = pl.DataFrame({"zip": [1, None, 30]})
    frame = typed_columns(frame, "new.parquet", numbers=[], texts=["zip"])
    assert frame["zip"].to_list() == ["1", None, "30"]


def test_results_of_complete_rows_return_to_their_places():
    out = in_place(pl.DataFrame({"r": [10, 20]}), pl.Series([False, True, True, False]))
    assert out["r"].to_list() == [None, 10, 20, None]


def test_new_rows_without_a_column_name_it(people):
    with pytest.raises(UnknownColumn, match=r"no columns `size`, `shoe`, .* It has `age`"):
        typed_columns(read_frame(people), people, numbers=["age", "size"], texts=["shoe"])


def test_new_rows_with_words_for_numbers_are_refused(people):
    with pytest.raises(TableError, match="`colour` must hold numbers, got 'red' in row 1"):
        typed_columns(read_frame(people), people, numbers=["colour"], texts=[])


def test_a_column_of_new_rows_in_other_case_is_asked_about(people):
    frame = read_frame(people).rename({"age": "Age"})
    with pytest.raises(UnknownColumn, match=r"has no column `age`.* Is `Age` the column `age`?"):
        typed_columns(frame, people, numbers=["age"], texts=[])
