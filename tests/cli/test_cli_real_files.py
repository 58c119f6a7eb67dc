"""The command on files as people have them: gaps, dates, weights, workbooks, several targets."""

import io
import json

import numpy as np
import polars as pl
import pytest
from sklearn.preprocessing import StandardScaler

from jacridge import JacobianKernelRidge


@pytest.fixture
def houses(rng):
    """Sixty houses and flats; flats have no lot, and two rows have no type."""
    size, lot = rng.uniform(20, 200, size=60).round(1), rng.uniform(100, 900, size=60).round()
    kind = ["flat" if i % 3 == 0 else "house" for i in range(60)]
    frame = pl.DataFrame({"key": [f"k{i}" for i in range(60)], "kind": kind, "size": size})
    frame = frame.with_columns(
        lot=pl.when(pl.col("kind") == "house").then(pl.Series(lot)),
        price=pl.Series(size * 2 + lot * 0.1),
        rent=pl.Series(size * 0.1),
    )
    return frame.with_columns(kind=pl.when(~pl.col("key").is_in(["k1", "k2"])).then("kind"))


@pytest.fixture
def table(houses, tmp_path):
    houses.drop("rent").write_csv(tmp_path / "houses.csv")
    return tmp_path / "houses.csv"


def test_rows_lost_to_a_column_are_a_warning_that_names_level_and_column(run, table, tmp_path):
    args = ("-t", "price", "--drop", "key", "-o", tmp_path / "m.skops")
    code, _, err = run("fit", table, *args)
    assert code == 0
    assert "Warning: 22 of 60 rows have missing values and are left out: 20 lack `lot`, 2 " in err
    assert "Warning: No row with `kind` = 'flat' is left: all 20 lack `lot`.\n" in err


def test_gaps_are_filled_with_the_median_and_marked_or_are_a_category(run, table, houses, tmp_path):
    model = tmp_path / "m.skops"
    args = ("-t", "price", "--drop", "key", "--missing", "impute", "--rule", "2")
    code, _, err = run("fit", table, *args, "-o", model)
    assert code == 0
    assert (
        "20 of 60 values of `lot` are missing and filled with the median; an additional column"
        in err
    )
    assert (
        "2 of 60 values of `kind` are missing and filled with a separate category, '(missing)'."
        in err
    )
    code, out, _ = run("predict", model, table)

    lot, size = houses["lot"].to_numpy(), houses["size"].to_numpy()
    gap = np.isnan(lot)
    numbers = np.c_[size, np.where(gap, np.nanmedian(lot), lot)]
    kind = houses["kind"].fill_null("").to_numpy()[:, None] == ["", "flat", "house"]
    X = np.c_[StandardScaler().fit_transform(numbers), kind, gap].astype(float)
    expected = JacobianKernelRidge(2.0).fit(X, houses["price"].to_numpy()).predict(X)
    found = pl.read_csv(io.StringIO(out))["prediction"]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_model_that_fills_gaps_may_be_told_not_to(run, table, tmp_path):
    model = tmp_path / "m.skops"
    run("fit", table, "-t", "price", "--drop", "key", "--missing", "impute", "-o", model)
    found = json.loads(run("predict", model, table, "--missing", "drop", "--json")[1])
    assert found["predicted"] == 38
    assert run("predict", model, table, "--missing", "error")[0] == 1


def test_gaps_are_not_filled_by_a_model_of_complete_rows(run, table, tmp_path):
    model = tmp_path / "m.skops"
    run("fit", table, "-t", "price", "--drop", "key", "-o", model)
    code, _, err = run("predict", model, table, "--missing", "impute")
    assert code == 2
    assert "because the model was fitted to complete rows" in err
    assert (
        "22 of 60 rows have missing values and no prediction: 20 lack `lot`, 2 lack `kind`."
        in (run("predict", model, table)[2])
    )


@pytest.mark.parametrize("command", ["select", "compare"])
def test_gaps_are_filled_by_other_commands_too(run, table, command):
    args = ("-t", "price", "--drop", "key", "--missing", "impute", "--json")
    rest = ("--rules", "jacobian,scale", "--splits", "2") if command == "compare" else ()
    code, out, _ = run(command, table, *args, *rest)
    assert code == 0
    assert json.loads(out)["n_samples"] == 60


def test_a_report_and_effects_of_filled_gaps_have_a_column_that_marks_them(run, table, tmp_path):
    args = ("-t", "price", "--drop", "key", "--missing", "impute", "--rule", "scale", "--json")
    code, out, err = run("report", table, *args, "-o", tmp_path / "r.html")
    assert code == 0, err
    assert json.loads(out)["n_samples"] == 60
    page = (tmp_path / "r.html").read_text()
    assert ">lot (missing)</td>" in page
    assert "There is no Python code to copy, because it would have to repeat how gaps were" in page
    assert "--missing impute" in page
    code, out, _ = run("effects", table, *args)
    assert "lot (missing)" in json.loads(out)["effects"]["term"]


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("select", ()),
        ("fit", ("--rule", "scale", "-o", "m.skops")),
        ("compare", ("--rules", "scale", "--splits", "1")),
        ("effects", ("--rule", "scale")),
        ("report", ("--rule", "scale", "-o", "r.html")),
    ],
)
def test_a_column_that_looks_like_an_id_is_left_out(
    run, table, tmp_path, monkeypatch, command, options
):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(command, table, "-t", "price", *options, "--json")
    assert code == 0, err
    assert (
        "Note: `key` looks like an id and is left out: nearly every row has its own value." in err
    )
    assert "If it matters, name all features with --features." in err
    if command == "fit":
        assert json.loads(out)["n_features"] == 3  # size, lot, houses
    if command == "report":
        page = (tmp_path / "r.html").read_text()
        assert "<code>key</code> looks like an id and is left out:" in page


@pytest.mark.parametrize(("n", "splits"), [(999, 5), (1000, 3)])
def test_a_comparison_of_many_rows_has_fewer_splits_and_tells_of_time(run, tmp_path, n, splits):
    day = np.arange(n)
    pl.DataFrame({"day": day, "x": day % 7, "y": day % 5}).write_csv(tmp_path / "t.csv")
    args = (tmp_path / "t.csv", "-t", "y", "--rules", "linear", "--json")
    code, out, err = run("compare", *args)
    assert (code, json.loads(out)["splits"]) == (0, splits)
    assert json.loads(out)["judged_on"] == "later rows"
    assert "Note: The rows are in order of `day`, so models are scored on later rows. Use" in err
    code, out, err = run("compare", *args, "--held-out", "random")
    assert json.loads(out)["judged_on"] == "random rows"
    assert "Note: The rows are in order of `day`. Random splits flatter models that have" in err


def test_an_id_that_is_asked_for_is_kept(run, table):
    err = run("select", table, "-t", "price", "--features", "key,size")[2]
    assert "`key` holds 60 categories and is one-hot encoded." in err


def test_many_rows_left_out_are_in_the_diagnosis_of_a_fit(run, table, tmp_path):
    """It said that no rows were dropped."""
    args = ("-t", "price", "--drop", "key", "-o", tmp_path / "m.skops", "--rule", "1.5", "--json")
    found = json.loads(run("fit", table, *args)[1])["diagnosis"]["rows left out"]
    assert found["value"] == pytest.approx(22 / 60)
    assert found["warning"]
    assert found["sentence"] == "22 of 60 rows have missing values and are left out."
    found = json.loads(run("fit", table, *args, "--missing", "impute")[1])["diagnosis"]
    assert "rows left out" not in found


def test_several_targets_have_their_columns(run, houses, tmp_path):
    frame = houses.select("size", "price", "rent")
    frame.write_parquet(tmp_path / "t.parquet")
    model = tmp_path / "m.skops"
    args = ("-t", "price,rent", "-o", model, "--rule", "1.5", "--json")
    fitted = json.loads(run("fit", tmp_path / "t.parquet", *args)[1])
    assert fitted["target"] == "price, rent"
    args = ("--std", "--interval", "0.8", "--json")
    found = json.loads(run("predict", model, tmp_path / "t.parquet", *args)[1])["predictions"]
    kinds = ("prediction", "std", "lower", "upper")
    assert list(found) == [f"{kind} {target}" for target in ("price", "rent") for kind in kinds]
    for target in ("price", "rent"):
        one = tmp_path / f"{target}.skops"
        args = ("-t", target, "--features", "size", "-o", one, "--rule", "1.5")
        assert run("fit", tmp_path / "t.parquet", *args)[0] == 0
        alone = json.loads(run("predict", one, tmp_path / "t.parquet", "--json")[1])
        expected = alone["predictions"]["prediction"]
        np.testing.assert_allclose(found[f"prediction {target}"], expected, rtol=1e-7)


def test_a_weight_of_two_counts_as_two_rows(run, houses, tmp_path):
    frame = houses.select("size", "price").with_columns(n=pl.Series([1.0, 2.0] * 30))
    frame.write_csv(tmp_path / "weighted.csv")
    twice = pl.concat([frame, frame.filter(pl.col("n") == 2)]).drop("n")
    twice.write_csv(tmp_path / "twice.csv")
    args = ("-t", "price", "--rule", "30", "--no-standardize", "-o")
    run("fit", tmp_path / "weighted.csv", *args, tmp_path / "w.skops", "--weights", "n")
    run("fit", tmp_path / "twice.csv", *args, tmp_path / "t.skops")
    found = [
        json.loads(run("predict", tmp_path / m, tmp_path / "twice.csv", "--json")[1])
        for m in ("w.skops", "t.skops")
    ]
    values = [result["predictions"]["prediction"] for result in found]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)


def test_negative_weights_are_refused(run, houses, tmp_path):
    houses.select("size", "price").with_columns(n=-1.0).write_csv(tmp_path / "t.csv")
    args = ("-t", "price", "--weights", "n", "-o", tmp_path / "m.skops")
    code, _, err = run("fit", tmp_path / "t.csv", *args)
    assert code == 1
    assert "`--weights` must be >= 0" in err


def test_keys_are_kept_beside_predictions(run, table, tmp_path):
    model = tmp_path / "m.skops"
    run("fit", table, "-t", "price", "--drop", "key", "-o", model)
    code, out, _ = run("predict", model, table, "--keep", "key,size")
    found = pl.read_csv(io.StringIO(out))
    assert code == 0
    assert found.columns == ["key", "size", "prediction"]
    assert found["key"].to_list() == [f"k{i}" for i in range(60)]
    assert found["prediction"].null_count() == 22


def test_columns_that_cannot_be_kept_are_named(run, table, tmp_path):
    model = tmp_path / "m.skops"
    run("fit", table, "-t", "price", "--drop", "key", "-o", model)
    code, _, err = run("predict", model, table, "--keep", "kex")
    assert (code, "Did you mean `key`?" in err) == (2, True)
    pl.read_csv(table).with_columns(std=1).write_csv(tmp_path / "std.csv")
    code, _, err = run("predict", model, tmp_path / "std.csv", "--keep", "std", "--std")
    assert (code, "`std` cannot be kept: results have the same name." in err) == (2, True)


def test_dates_that_are_kept_can_be_printed_as_json(run, houses, tmp_path):
    day = pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 2, 29), eager=True)
    houses.select("size", "price").with_columns(day=day).write_parquet(tmp_path / "t.parquet")
    model = tmp_path / "m.skops"
    run("fit", tmp_path / "t.parquet", "-t", "price", "-o", model)
    code, out, _ = run("predict", model, tmp_path / "t.parquet", "--keep", "day", "--json")
    assert code == 0
    assert json.loads(out)["predictions"]["day"][:2] == ["2020-01-01", "2020-01-02"]


def test_decimal_commas_are_read_when_asked_for(run, houses, tmp_path):
    plain = houses.select("size", "price")
    plain.write_csv(tmp_path / "points.csv")
    text = plain.write_csv(separator=";").replace(".", ",")
    (tmp_path / "commas.csv").write_text(text)
    assert "Add --decimal , to read" in run("select", tmp_path / "commas.csv", "-t", "price")[2]
    args = ("-t", "price", "-o", tmp_path / "m.skops", "--json")
    fitted = json.loads(run("fit", tmp_path / "commas.csv", "--decimal", ",", *args)[1])
    expected = json.loads(run("fit", tmp_path / "points.csv", *args)[1])
    assert fitted["sigma"] == expected["sigma"]
    code, _, err = run("predict", tmp_path / "m.skops", tmp_path / "commas.csv")
    assert (code, "Add --decimal" in err) == (1, False)
    assert "The model was fitted to numbers with decimal points: write 1234.5." in err
    args = ("predict", tmp_path / "m.skops", tmp_path / "commas.csv", "--decimal", ",")
    assert run(*args)[0] == 0


def test_a_model_reads_decimals_as_its_table_had_them_unless_told_otherwise(run, tmp_path):
    rows = [(i + 0.5, 2 * i + 0.25) for i in range(12)]
    text = "a;y\n" + "".join(f"{a};{y}\n" for a, y in rows)
    (tmp_path / "points.csv").write_text(text)
    (tmp_path / "commas.csv").write_text(text.replace(".", ","))
    model = tmp_path / "m.skops"
    args = ("-t", "y", "--rule", "2", "--decimal", ",", "-o", model)
    assert run("fit", tmp_path / "commas.csv", *args)[0] == 0
    code, found, err = run("predict", model, tmp_path / "commas.csv")
    assert code == 0
    assert "read with a decimal comma, as in the fit" in err
    assert found == run("predict", model, tmp_path / "points.csv", "--decimal", ".")[1]
    assert "got '0.5' in row 1" in run("predict", model, tmp_path / "points.csv")[2]


def test_a_workbook_gives_the_model_of_the_same_table_as_csv(run, table, tmp_path):
    pytest.importorskip("fastexcel")
    openpyxl = pytest.importorskip("openpyxl")
    frame, book = pl.read_csv(table), openpyxl.Workbook()
    for row in (frame.columns, *frame.rows()):
        book.active.append(list(row))
    book.save(tmp_path / "houses.xlsx")
    args = ("-t", "price", "--drop", "key", "--json")
    found = [
        json.loads(run("select", path, *args)[1]) for path in (tmp_path / "houses.xlsx", table)
    ]
    assert found[0]["sigma"] == found[1]["sigma"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("fit", "{table}", "-t", "price", "-o", "m.pkl"), "Pickled files are not written"),
        (("fit", "{table}", "-t", "price", "-o", "m.txt"), "ends in .skops, .onnx, got `m.txt`"),
        (("select", "{table}", "--missing", "guess"), "must be one of drop, impute, error"),
        (("select", "{table}", "--decimal", ";"), "must be one of ., ,, got ';'"),
        (("fit", "{table}", "-t", "price", "-o", "m", "--weights", "x"), "There is no column `x`"),
        (
            ("fit", "{table}", "-t", "price", "-o", "m", "--weights", "size", "--drop", "size"),
            "it is the weights",
        ),
        (
            ("fit", "{table}", "-t", "price", "-o", "m", "--engine", "dask", "--weights", "size"),
            "must be left out with --engine dask, got size",
        ),
        (
            ("fit", "{table}", "-t", "price", "-o", "m", "--engine", "dask", "--missing", "impute"),
            "must be drop or error with --engine dask, got impute",
        ),
    ],
)
def test_wrong_use_is_told_before_the_work(run, table, tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*(arg.format(table=table) for arg in args))
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["houses.csv"]


def test_a_model_of_numbers_is_written_as_onnx_and_others_say_no(run, table, tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    path = tmp_path / "m.onnx"
    args = ("-t", "price", "-o", path)
    with monkeypatch.context() as before_the_fit:
        before_the_fit.delattr("sklearn.pipeline.Pipeline.fit")
        code, _, err = run("fit", table, *args, "--drop", "key")
    assert (code, "only supports models with numeric columns, got `kind`" in err) == (1, True)
    assert not path.exists()
    assert run("fit", table, *args, "--features", "size", "--rule", "jacobian")[0] == 0
    assert path.stat().st_size > 100
