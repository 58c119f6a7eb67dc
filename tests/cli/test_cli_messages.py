"""Messages of the command on tables that people have: each says what to do."""

import json
import re
import sys

import numpy as np
import pytest

PLAIN = ("--rule", "median", "--alpha", "0.1")


@pytest.fixture
def homes(tmp_path):
    """Function that writes a table of 150 homes, with columns put in place of its own."""

    def write(name="homes.csv", separator=",", **columns):
        rng = np.random.default_rng(20220511)
        size = rng.integers(30, 200, size=150)
        own = {
            "id": [f"H{i:04}" for i in range(150)],
            "size": [str(s) for s in size],
            "rooms": [str(s) for s in rng.integers(1, 6, size=150)],
            "kind": rng.choice(["flat", "house"], size=150).tolist(),
            "price": [str(2000 * s + 1000 * i) for i, s in enumerate(size)],
        }
        own |= columns
        rows = zip(*own.values(), strict=True)
        lines = [separator.join(own), *(separator.join(row) for row in rows)]
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write


def test_a_target_of_unlike_units_is_to_be_cleaned_not_dropped(run, homes, tmp_path):
    file = homes(price=[f'"{300 + i} {"km" if i % 2 else "m"}"' for i in range(150)])
    for task in ("auto", "regression"):
        code, _, err = run("fit", file, "-t", "price", "--task", task, "-o", tmp_path / "m.skops")
        assert code == 1
        assert "The target `price` must hold numbers" in err
        assert "remove currency signs" in err
        assert "--drop" not in err


def test_texts_that_are_numbers_are_read_as_such_with_a_note(run, homes, tmp_path):
    """They were taken for ids, for categories, or refused."""
    fees = [f"€{100 + 1.5 * i:.2f}" if i % 20 else "" for i in range(150)]
    prices = [f'"{2000 * i + 1_000_000:,}"' for i in range(150)]
    file = homes(kind=[f"{i % 60}%" for i in range(150)], id=fees, price=prices)
    code, _, err = run("fit", file, "-t", "price", *PLAIN, "-o", tmp_path / "m.skops")
    assert code == 0
    assert "Note: Texts in `kind` are read as numbers: '0%' as 0." in err
    assert "Note: Texts in `id` are read as numbers: '€101.50' as 101.5." in err
    assert "Note: Texts in `price` are read as numbers: '1,000,000' as 1000000." in err
    assert "looks like an id" not in err
    found = []
    for row in ("€110.50,100,3,7%", "110.5,100,3,7"):
        (tmp_path / "new.csv").write_text(f"id,size,rooms,kind\n{row}\n")
        found.append(run("predict", tmp_path / "m.skops", tmp_path / "new.csv")[1])
    assert found[0] == found[1] != ""
    run("report", file, "-t", "price", *PLAIN, "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Texts in <code>kind</code> are read as numbers" in page
    assert "because it would have to repeat how text was read as numbers." in page


def test_a_feature_of_unlike_currencies_may_be_cleaned_or_dropped(run, homes, tmp_path):
    fees = [f'"{i},000 {"€" if i % 2 else "$"}"' for i in [*range(1, 121), *range(1, 31)]]
    file = homes(kind=fees)
    code, _, err = run("fit", file, "-t", "price", "--features", "kind", "-o", tmp_path / "m")
    assert code == 1
    assert "remove currency signs" in err
    assert "--drop 'kind'" in err


def test_ids_as_a_target_ask_for_another_target(run, homes, tmp_path):
    code, _, err = run("fit", homes(), "-t", "id", "-o", tmp_path / "m.skops")
    assert code == 1
    assert "The target `id` must hold numbers or at most 100 classes, got 150" in err
    assert "Name another column with --target." in err
    assert "--drop" not in err


def test_lower_case_n_a_is_a_missing_value(run, homes, tmp_path):
    price = [str(i) for i in range(150)]
    price[23] = "n/a"
    given = ("fit", homes(price=price), "-t", "price", *PLAIN, "-o", tmp_path / "m.skops", "--json")
    code, out, err = run(*given)
    assert code == 0, err
    assert json.loads(out)["rows_left_out"] == 1
    assert "Note: 1 of 150 rows has missing values and is left out: 1 lacks `price`." in err


def test_rows_are_counted_as_rows_of_the_data(run, homes, tmp_path):
    price = [str(i) for i in range(150)]
    price[23] = "12 or 13"
    code, _, err = run("fit", homes(price=price), "-t", "price", "-o", tmp_path / "m.skops")
    assert code == 1
    assert "got '12 or 13' in row 24 of the data" in err


@pytest.mark.parametrize("decimal", [".", ","])
def test_decimal_commas_beside_decimal_points_name_both_columns(run, homes, tmp_path, decimal):
    size, price = [f"{i},5" for i in range(150)], [f"{i}.5" for i in range(150)]
    file = homes(separator=";", size=size, price=price)
    given = ("fit", file, "-t", "price", "--decimal", decimal, "-o", tmp_path / "m.skops")
    code, _, err = run(*given)
    assert code == 1
    assert "Decimal commas occur in `size` and decimal points in `price`." in err
    assert "--decimal" not in err


@pytest.fixture
def model(run, homes, tmp_path):
    """The file of a model of the homes."""
    path = tmp_path / "homes.skops"
    code, _, err = run("fit", homes(), "-t", "price", *PLAIN, "-o", path)
    assert code == 0, err
    return path


def test_a_name_in_other_case_is_understood_as_a_slip(run, model, homes):
    code, _, err = run("predict", model, homes(), "--keep", "ID")
    assert code == 2
    assert "Did you mean `id`?" in err


def test_a_word_of_a_name_is_understood(run, homes):
    file = homes("b.csv", **{"listing_id": [str(i) for i in range(150)]})
    file.write_text(file.read_text().replace("id,size", "key,size", 1))
    _, _, err = run("select", file, "-t", "price", "--drop", "id")
    assert "Did you mean `listing_id`?" in err


def test_gaps_in_a_column_that_had_none_in_training_are_a_warning(run, homes, tmp_path):
    rooms = [str(i % 5 + 1) if i % 9 else "" for i in range(150)]
    file = homes(rooms=rooms)
    args = ("--missing", "impute", *PLAIN, "-o", tmp_path / "m.skops")
    assert run("fit", file, "-t", "price", *args)[0] == 0
    new = homes("new.csv", size=["100"] * 148 + ["", ""], rooms=[""] * 150)
    code, out, err = run("predict", tmp_path / "m.skops", new)
    assert (code, len(out.splitlines())) == (0, 151)
    assert "Warning: 2 rows lack `size`, which had no gaps in training, and get its median" in err
    assert "`rooms`, which" not in err


def test_one_category_and_missing_texts_are_told(run, homes, tmp_path):
    file = homes(kind=["flat"] * 150, rooms=["few", "many", ""] * 50)
    args = ("-t", "price", *PLAIN, "-o", tmp_path / "m.skops")
    err = run("fit", file, "--missing", "impute", *args)[2]
    assert "`kind` holds one category in the rows that are used, and has no effect." in err
    assert "`rooms` holds 3 categories, '(missing)' among them, and is one-hot encoded." in err


def test_unseen_categories_are_a_warning_with_their_names_and_numbers(run, model, homes):
    kind = ["flat"] * 145 + ["castle", "Flat", "Flat", "Flat", "house"]
    code, _, err = run("predict", model, homes("new.csv", kind=kind))
    assert code == 0
    assert err.startswith("Warning: `kind` has 2 values that training did not have: ")
    assert "'Flat' in 3 rows (did you mean 'flat'?), 'castle' in 1 row" in err


def test_another_category_is_not_taken_for_a_slip(run, model, homes):
    _, _, err = run("predict", model, homes("new.csv", kind=["flat"] * 149 + ["plate"]))
    assert "'plate' in 1 row. Such rows" in err


def test_rows_without_prediction_are_a_warning_with_the_way_out(run, model, homes, tmp_path):
    file = homes("new.csv", size=["", *["80"] * 149])
    code, out, err = run("predict", model, file, "-o", tmp_path / "out.csv")
    assert code == 0
    assert "Warning: 1 of 150 rows has missing values and no prediction: 1 lacks `size`." in err
    assert "fit the model again with --missing impute" in err
    assert out == f"149 of 150 rows are predicted in {tmp_path / 'out.csv'}\n"
    code, _, err = run("predict", model, file, "--missing", "impute")
    assert code == 2
    assert "fit the model again with --missing impute" in " ".join(err.split())


def test_a_coverage_in_percent_is_told_as_a_share(run, model, homes):
    code, _, err = run("predict", model, homes(), "--interval", "90")
    assert code == 2
    assert "must lie between 0 and 1, got 90. For 90 % write 0.9." in " ".join(err.split())


def test_a_table_in_place_of_a_model_is_told_from_a_damaged_model(run, model, homes):
    code, _, err = run("predict", homes(), model)
    assert code == 1
    assert "must be a model file written by `jacridge fit`, got a file of another kind." in err
    assert "The model comes first: jacridge predict MODEL FILE." in err


def test_warnings_come_before_notes_and_an_id_is_a_note(run, homes, tmp_path):
    file = homes(size=[""] * 50 + [str(30 + i) for i in range(100)])
    code, _, err = run("fit", file, "-t", "price", *PLAIN, "-o", tmp_path / "m.skops")
    assert code == 0
    assert err.startswith("Warning: 50 of 150 rows have missing values")
    assert "Note: `id` looks like an id and is left out" in err
    assert "Warning" not in err[err.index("Note") :]


def test_columns_are_looked_at_before_an_extra_is_asked_for(run, homes, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyproj", None)
    code, _, err = run("select", homes(), "-t", "price", "--metric", "geodesic")
    assert code == 2
    assert "needs a latitude and a longitude column" in err
    assert "pyproj" not in err


def test_a_missing_extra_is_told_for_a_clone_and_for_pipx(run, homes, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyproj", None)
    degrees = [str(i / 10) for i in range(150)]
    file = homes(size=degrees, rooms=degrees)
    args = ("--features", "size,rooms", "--metric", "geodesic")
    code, _, err = run("select", file, "-t", "price", *args)
    assert code == 1
    assert "pip install 'jacridge[geo]'" in err
    assert "'.[geo]' in a clone" in err
    assert "With pipx or uvx: '.[cli,geo]'" in err


def test_a_target_of_classes_needs_no_numbers_where_a_rule_does_not_look_at_it(run, homes):
    file = homes()
    code, out, err = run("select", file, "-t", "kind", "--json")
    assert code == 0, err
    without = run("select", file, "--drop", "kind", "--json")
    found, expected = json.loads(out), json.loads(without[1])
    assert found["sigma"] == expected["sigma"]
    assert found["target"] == "kind"


def test_a_rule_that_looks_at_the_target_says_what_to_do_about_classes(run, homes):
    code, _, err = run("select", homes(), "-t", "kind", "--rule", "loo")
    assert code == 1
    assert "The target `kind` must hold numbers, got text" in err
    assert "For classes use jacridge fit, or a rule that does not use the target" in err


def test_the_commands_are_listed_in_the_order_of_their_use(run):
    code, out, _ = run("--help")
    assert code == 0
    names = re.findall(r"^  (\w+)  ", out.split("Commands:")[1], re.MULTILINE)
    assert names[:6] == ["report", "fit", "predict", "effects", "compare", "select"]
    assert "First try: jacridge report" in out


def test_a_fit_prints_rounded_numbers_and_the_next_command(run, homes, tmp_path):
    path = tmp_path / "m.skops"
    given = ("fit", homes(), "-t", "price", *PLAIN, "-o", path)
    _, out, err = run(*given)
    rounded = dict(line.split(maxsplit=1) for line in out.splitlines())
    exact = json.loads(run(*given, "--json")[1])
    assert rounded["sigma"] == f"{exact['sigma']:.3g}"
    assert len(str(exact["sigma"])) > 8
    assert f"Next: jacridge predict {path} new.csv -o predictions.csv\n" in err
    assert "Next:" not in run(*given, "--json")[2]


def test_a_file_that_is_replaced_is_named(run, homes, tmp_path):
    path = tmp_path / "m.skops"
    given = ("fit", homes(), "-t", "price", *PLAIN, "-o", path)
    assert "is replaced" not in run(*given)[2]
    assert f"Note: `{path}` already exists and is replaced." in run(*given)[2]


def test_effects_are_printed_as_people_write_numbers(run, homes):
    prices = [str(400_000 + 90_000 * (i % 7) + 1000 * i) for i in range(150)]
    file = homes(price=prices, rooms=[str(i % 7) for i in range(150)])
    given = ("effects", file, "-t", "price", *PLAIN)
    code, out, err = run(*given)
    assert code == 0, err
    assert "e+0" not in out
    assert max(map(len, out.splitlines()[:5])) <= 100
    found = json.loads(run(*given, "--json")[1])["effects"]
    estimate = found["estimate"][found["term"].index("rooms")]
    assert estimate > 10_000
    [line] = [line for line in out.splitlines() if line.startswith("rooms")]
    assert line.split()[1:4] == ["per", "unit", f"{float(f'{estimate:.3g}'):,.0f}"]


@pytest.mark.parametrize("name", ["size", "price"])
def test_commas_separate_thousands_if_decimals_have_points(run, homes, tmp_path, name):
    """They were refused, as if nobody could tell."""
    numbers = [800 + 17 * i for i in range(150)]
    points = [f"{i / 7:.3f}" for i in range(150)]
    args = ("-t", "price", *PLAIN, "--json", "-o", tmp_path / "m.skops")
    found = []
    for form in (",", ""):
        texts = [f'"{n:{form}}"' for n in numbers]
        file = homes(rooms=points, **{name: texts})
        code, out, err = run("fit", file, *args)
        assert code == 0, err
        doubt = f"Warning: Commas in `{name}` are read as separators of thousands: '1,004' as 1004"
        assert (doubt in err) == (form == ",")
        assert "Texts in" not in err
        new = run("predict", tmp_path / "m.skops", file)
        found.append((json.loads(out)["sigma"], new[:2]))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "columns",
    [
        {"size": [f'"{800 + i:,}"' for i in range(150)]},
        {"rooms": [f'"{i},5"' for i in range(150)], "kind": [f"{i}.25" for i in range(150)]},
    ],
)
def test_commas_that_may_be_decimal_are_an_error_with_a_way_out(run, homes, tmp_path, columns):
    file = homes(**columns | {"price": [f'"{1 + i % 9},{i:03}"' for i in range(150)]})
    code, _, err = run("fit", file, "-t", "price", "-o", tmp_path / "m.skops")
    assert code == 1
    assert "remove them." in err


@pytest.mark.parametrize("target", ["price", "size"])
def test_commas_read_by_inference_are_a_doubt_of_the_report(run, homes, tmp_path, target):
    file = homes(
        rooms=[f"{i / 7:.3f}" for i in range(150)], size=[f'"{800 + 17 * i:,}"' for i in range(150)]
    )
    given = ("report", file, "-t", target, *PLAIN, "-o", tmp_path / "r.html")
    code, _, err = run(*given)
    assert code == 0, err
    page = (tmp_path / "r.html").read_text()
    doubt = "Commas in <code>size</code> are read as separators of thousands"
    assert f'<a href="#quality">⚠ {doubt}</a>' in page
    assert f"{doubt}: &#x27;1,004&#x27; as 1004, because" in page
    assert "because it would have to repeat how text was read as numbers." in page


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_decimals_of_three_digits_are_not_read_as_thousands(
    run, homes, tmp_path, separator, decimal
):
    """A dose of 6.096 was read as 6096."""
    hours, doses = [f"{i / 7:.2f}" for i in range(150)], [f"{1 + i % 9},{i:03}" for i in range(150)]
    file = homes(separator=separator, rooms=hours, size=doses)
    given = ("fit", file, "-t", "price", "--decimal", decimal, "-o", tmp_path / "m.skops")
    code, _, err = run(*given)
    assert code == 1
    assert "Commas occur in `size` and decimal points in `rooms`." in err
    assert "Write all numbers with a decimal point; if commas separate thousands, remove" in err
    assert "--decimal" not in err


@pytest.mark.parametrize("clear", ["1,004,000", "1,004.5"])
def test_one_clear_cell_settles_that_commas_separate_thousands(run, homes, tmp_path, clear):
    sizes = [f"{800 + 17 * i:,}" for i in range(149)] + [clear]
    file = homes(separator=";", size=sizes)
    code, _, err = run("fit", file, "-t", "price", *PLAIN, "-o", tmp_path / "m.skops")
    assert code == 0
    assert "Note: Texts in `size` are read as numbers: '1,004' as 1004.\n" in err


def test_two_columns_of_doubtful_commas_bring_both_ways_out(run, homes, tmp_path):
    commas = [f"{1 + i % 9},{i:03}" for i in range(150)]
    file = homes(separator=";", size=commas, rooms=commas)
    code, _, err = run("fit", file, "-t", "price", "-o", tmp_path / "m.skops")
    assert code == 1
    assert "Add --decimal , to read decimal commas. If commas separate thousands, remove" in err


@pytest.fixture
def rents(run, tmp_path):
    """A model of a table whose columns have decimal points, thousands, or both."""
    rows = [(f"0.{126 + i}", f"{8858 - 37 * i:,}", f"€{900 + 40 * i:,}", i) for i in range(60)]
    lines = [f'{x},"{z}","{fee}",{y}' for x, z, fee, y in rows]
    (tmp_path / "rents.csv").write_text("\n".join(["x,z,fee,y", *lines]) + "\n")
    path = tmp_path / "rents.skops"
    code, _, err = run("fit", tmp_path / "rents.csv", "-t", "y", *PLAIN, "-o", path)
    assert code == 0, err
    return path


def test_a_model_reads_thousands_as_in_its_table_whatever_else_new_rows_hold(run, rents, tmp_path):
    """Rows without a decimal point were refused, with advice to read 2,345 as 2.345."""
    found = []
    for z, fee in (("2,345", "1,300"), ("2345", "1300"), ("2,345 ", "€1,300")):
        (tmp_path / "new.csv").write_text(f'x,z,fee\n1,"{z}","{fee}"\n2,"3,456","{fee}"\n')
        code, out, err = run("predict", rents, tmp_path / "new.csv")
        assert code == 0, err
        found.append(out)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(("x", "z"), [("1,125", "2,345"), ("1", "0,345"), ("1", "2345,6")])
def test_a_model_of_decimal_points_does_not_suggest_decimal_commas(run, rents, tmp_path, x, z):
    (tmp_path / "new.csv").write_text(f'x,z,fee\n"{x}","{z}",7\n0.5,"3,456",7\n')
    code, _, err = run("predict", rents, tmp_path / "new.csv")
    assert code == 1
    assert f"got '{z if x == '1' else x}' in row 1" in err
    assert "The model was fitted to numbers with decimal points: write 1234.5." in err
    assert "--decimal" not in err


@pytest.mark.parametrize("n", [3, 20])
def test_a_word_among_the_numbers_of_classes_is_a_class(run, homes, tmp_path, n):
    """The rows of a rare class were left out."""
    labels = [str(1 + i % 3) for i in range(150 - n)] + ["X"] * n
    file, model = homes(price=labels), tmp_path / "m.skops"
    args = ("-t", "price", "--task", "classification", *PLAIN, "-o", model, "--json")
    code, out, err = run("fit", file, *args)
    assert code == 0, err
    found = json.loads(out)
    assert (found["classes"], found["rows_left_out"]) == (["1", "2", "3", "X"], 0)
    found = json.loads(run("predict", model, file, "--json")[1])["predictions"]
    assert set(found["prediction"]) <= {"1", "2", "3", "X"}


def test_few_words_among_the_numbers_of_a_target_are_left_out_aloud(run, homes, tmp_path):
    """Two cells "on request" stopped everything."""
    price = [str(1000 + i) for i in range(150)]
    price[5], price[17] = "on request", "sold"
    file = homes(price=price)
    given = ("report", file, "-t", "price", *PLAIN, "-o", tmp_path / "r.html", "--json")
    code, out, err = run(*given)
    assert code == 0, err
    assert json.loads(out)["rows_left_out"] == 2
    sentence = "2 of 150 values of `price` are not numbers and are left out: 'on request' in row 6"
    assert f"Warning: {sentence}, 'sold' in row 18 of the data.\n" in err
    page = (tmp_path / "r.html").read_text()
    assert "2 of 150 values of <code>price</code> are not numbers" in page
    assert "because it would have to repeat how text was read as numbers." in page
    code, _, err = run(*given, "--missing", "error")
    assert code == 1
    assert "The column `price` must hold numbers, got 'on request' in row 6" in err


@pytest.mark.parametrize("words", [["ask"] * 20, ["about 1200"], ["1200,5"]])
def test_many_words_or_misspelt_numbers_of_a_target_are_an_error(run, homes, tmp_path, words):
    price = [str(1000 + i) for i in range(150)]
    price[: len(words)] = words
    file = homes(separator=";", price=price)
    code, _, err = run("fit", file, "-t", "price", "-o", tmp_path / "m.skops")
    assert code == 1
    assert "The column `price` must hold numbers, got" in err


def test_digits_of_another_script_are_text(run, homes, tmp_path):
    """They were taken for numbers with decimal commas, and ended in an IndexError."""
    for column in (["\u0661\u0662"] * 150, ["\u0661\u0662", *["1"] * 149]):
        _, _, err = run("select", homes(size=column))
        assert "JACRIDGE_DEBUG" not in err
        assert "--decimal" not in err


def test_a_number_that_is_too_large_is_not_to_be_dropped_with_the_target(run, homes):
    code, _, err = run("select", homes(price=["1e200"] * 150), "-t", "price", "--rule", "median")
    assert code == 1
    assert "--drop 'price'" not in err
    assert "Correct the value." in err


def test_weights_that_are_text_are_named_as_weights(run, homes, tmp_path):
    """The message called them the target."""
    given = ("-t", "price", "--weights", "kind", "-o", tmp_path / "m.skops")
    code, _, err = run("fit", homes(), *given)
    assert code == 1
    assert "The weights `kind` must hold numbers" in err
    assert "Name another column with --weights." in err


def test_a_table_of_one_column_is_told_what_separates_cells(run, tmp_path):
    (tmp_path / "t.csv").write_text("a  y\n" + "1  2\n" * 9)
    code, _, err = run("select", tmp_path / "t.csv", "-t", "y")
    assert code == 2
    assert "the table has one column, `a  y`. Its cells must be separated by commas" in err


def test_gaps_in_all_rows_name_the_columns_and_the_way_out(run, homes):
    half = [str(i) if i % 2 else "" for i in range(150)]
    code, _, err = run("select", homes(size=half, rooms=half[1:] + [""]), "-t", "price")
    assert code == 1
    assert "got none: 75 lack `size`, 75 lack `rooms`. Fill gaps with --missing impute" in err


def test_a_workbook_or_a_graph_in_place_of_a_model_is_told(run, homes, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    openpyxl.Workbook().save(tmp_path / "t.xlsx")
    (tmp_path / "m.onnx").write_bytes(b"\x08\x07\x12\x08jacridge")
    for name, words in {"t.xlsx": "The model comes first", "m.onnx": "An ONNX graph"}.items():
        code, _, err = run("predict", tmp_path / name, homes())
        assert code == 1
        assert "got a file of another kind. " + words in err


def test_a_folder_that_does_not_exist_is_to_be_created(run, homes, tmp_path):
    code, _, err = run("report", homes(), "-t", "price", "-o", tmp_path / "none" / "r.html")
    assert code == 2
    assert "There is no such folder. Create it first, or choose another file to write." in err
