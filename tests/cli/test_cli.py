"""The command: what it prints where, its exit codes, and its messages."""

import gzip
import importlib
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from html import unescape

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import jacridge
from jacridge.cli import main
from known import KERNELS, SOLVERS

HEADER = "height,width,colour,weight"


@pytest.fixture(scope="module")
def forty_boxes():
    """The text of a CSV file of 40 boxes, two numbers, a category and a smooth target."""
    rng = np.random.default_rng(20220511)
    X = rng.uniform(1, 5, size=(40, 2))
    colours = rng.choice(["red", "blue"], size=40)
    weight = X[:, 0] * X[:, 1] + (colours == "red")
    cells = zip(X.tolist(), colours, weight.tolist(), strict=True)
    rows = [f"{a!r},{b!r},{c},{w!r}" for (a, b), c, w in cells]
    return "\n".join([HEADER, *rows]) + "\n"


@pytest.fixture
def boxes(tmp_path, forty_boxes):
    path = tmp_path / "boxes.csv"
    path.write_text(forty_boxes)
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory, forty_boxes):
    """The file of a model of the boxes."""
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "boxes.csv").write_text(forty_boxes)
    with pytest.raises(SystemExit) as end:
        main(["fit", str(folder / "boxes.csv"), "-t", "weight", "-o", str(folder / "model.skops")])
    assert not end.value.code
    return folder / "model.skops"


@pytest.fixture
def model(tmp_path, fitted):
    return shutil.copy(fitted, tmp_path / "model.skops")


def as_json(outcome):
    """The one JSON object that a run with --json printed."""
    code, out, _ = outcome
    assert code == 0, outcome
    assert out.endswith("}\n")
    assert out.count("\n") == 1
    return json.loads(out)


@pytest.mark.parametrize(
    ("command", "read"),
    [
        ("fit BOXES -t weight", "BOXES"),
        ("report BOXES -t weight", "BOXES"),
        ("predict MODEL BOXES", "BOXES"),
        ("predict MODEL BOXES", "MODEL"),
    ],
)
def test_a_file_that_is_read_is_not_written_over(run, boxes, model, command, read):
    paths = {"BOXES": boxes, "MODEL": model}
    before = paths[read].read_bytes()
    code, out, err = run(*(paths.get(word, word) for word in command.split()), "-o", paths[read])
    assert (code, out) == (1, "")
    assert "This is an input file" in err
    assert paths[read].read_bytes() == before


# select


def test_select_gives_the_bandwidth_of_the_standardised_features(run, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    pl.DataFrame(np.c_[X, y]).write_parquet(tmp_path / "diabetes.parquet")
    result = as_json(run("select", tmp_path / "diabetes.parquet", "--target", "-1", "--json"))

    expected = jacridge.select_bandwidth(StandardScaler().fit_transform(X))
    assert result["sigma"] == pytest.approx(expected.sigma, rel=1e-12)
    assert (result["n_samples"], result["n_features"]) == X.shape


def test_select_without_standardising_uses_the_features_as_they_are(run, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    pl.DataFrame(np.c_[X, y]).write_csv(tmp_path / "d.csv")
    args = ("--target", "11", "--no-standardize", "--json")
    result = as_json(run("select", tmp_path / "d.csv", *args))
    assert result["sigma"] == pytest.approx(jacridge.select_bandwidth(X).sigma, rel=1e-12)


@pytest.mark.parametrize("rule", jacridge.RULES)
def test_select_knows_every_rule(run, boxes, rule):
    result = as_json(run("select", boxes, "-t", "weight", "--rule", rule, "--json"))
    assert result["rule"] == rule
    assert result["sigma"] > 0


def test_select_prints_names_and_values(run, boxes):
    code, out, err = run("select", boxes, "-t", "weight")
    assert code == 0
    words = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert words["rule"] == "jacobian"
    assert float(words["sigma"]) > 0
    assert err == (
        "Note: `colour` holds 2 categories and is one-hot encoded.\n"
        "Note: The rule jacobian does not use `weight`. --rule auto uses the target and "
        "often does better; fit and report use auto.\n"
    )
    assert "does not use" not in run("select", boxes, "-t", "weight", "--rule", "loo")[2]


def test_select_needs_no_target_for_a_closed_form(run, boxes, tmp_path):
    pl.read_csv(boxes).drop("weight").write_csv(tmp_path / "bare.csv")
    outcome = run("select", tmp_path / "bare.csv", "--json")
    assert "Note: All columns count as features." in outcome[2]
    with_target = as_json(run("select", boxes, "-t", "weight", "--json"))
    assert as_json(outcome)["sigma"] == with_target["sigma"]
    assert as_json(outcome)["target"] is None


def test_select_of_one_or_two_features_is_told_to_be_narrow(run, boxes):
    args = ("select", boxes, "-t", "weight", "--features", "height,width")
    doubt = "Note: With one or two features this bandwidth is often too narrow. --rule auto "
    assert doubt in run(*args)[2]
    assert doubt not in run(*args, "--rule", "loo")[2]


def test_select_of_many_features_is_told_to_be_wide(run, tmp_path, rng):
    pl.DataFrame(rng.normal(size=(50, 31))).write_csv(tmp_path / "t.csv")
    args = ("select", tmp_path / "t.csv", "-t", "1")
    doubt = "Note: The bandwidth exceeds the largest distance between two rows. --rule auto "
    assert doubt in run(*args)[2]
    assert doubt not in run(*args, "--rule", "median")[2]


def test_a_smaller_alpha_is_passed_on(run, boxes):
    result = as_json(run("select", boxes, "-t", "weight", "--alpha", "0", "--json"))
    assert result["alpha"] == 0


def test_the_rule_auto_chooses_the_penalty_too(run, boxes):
    both = as_json(run("select", boxes, "-t", "weight", "--rule", "auto", "--json"))
    given = as_json(run("select", boxes, "-t", "weight", "-r", "auto", "--alpha", "1", "--json"))
    assert both["alpha"] not in (1, 1e-3)
    assert given["alpha"] == 1


@pytest.mark.parametrize("criterion", ["loo", "gcv", "mml"])
def test_a_criterion_can_choose_the_penalty(run, boxes, criterion, tmp_path):
    args = ("-t", "weight", "--alpha", criterion, "-o", tmp_path / "m", "--json")
    assert 0 < as_json(run("fit", boxes, *args))["alpha"] < 1


def test_standard_input_is_a_table_too(run, boxes, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(boxes.read_bytes())))
    assert as_json(run("select", "-", "-t", "weight", "--json"))["n_samples"] == 40


def test_rows_with_missing_values_are_counted_on_stderr(run, boxes):
    boxes.write_text(boxes.read_text() + "1,2,red,\n1,NA,red,3\n")
    code, _, err = run("select", boxes, "-t", "weight")
    assert code == 0
    assert (
        "Note: 2 of 42 rows have missing values and are left out: 1 lacks `width`, 1 lacks" in err
    )


def test_select_by_a_rule_that_looks_at_x_alone_chooses_the_penalty_without_a_target(run, boxes):
    result = as_json(run("select", boxes, "--rule", "ssmm", "--alpha", "auto", "--json"))
    assert result["alpha"] != 1e-3


# kernels


@pytest.mark.parametrize("kernel", KERNELS)
def test_select_and_fit_take_every_kernel(run, boxes, tmp_path, kernel):
    data = (boxes, "-t", "weight", "--drop", "colour", "--kernel", kernel, "--rule", "median")
    result = as_json(run("select", *data, "--json"))
    table = pl.read_csv(boxes)
    X = StandardScaler().fit_transform(table.select("height", "width"))
    choice = jacridge.select_bandwidth(X, rule="median", kernel=kernel)
    assert result["kernel"] == kernel
    assert result["sigma"] == pytest.approx(choice.sigma, rel=1e-12)
    assert ("gamma" in result) == (kernel in ("gaussian", "laplacian"))
    fitted = as_json(run("fit", *data, "-o", tmp_path / "m.skops", "--json"))
    assert fitted["sigma"] == pytest.approx(choice.sigma, rel=1e-12)
    out = run("predict", tmp_path / "m.skops", boxes)[1]
    known = jacridge.JacobianKernelRidge(choice.sigma, kernel=kernel).fit(X, table["weight"])
    shown = [float(line.split(",")[0]) for line in out.splitlines()[1:]]
    np.testing.assert_allclose(shown, known.predict(X), rtol=1e-8)


@pytest.mark.parametrize("kernel", ["exponential", "laplacian"])
@pytest.mark.parametrize("command", ["select", "fit"])
def test_the_jacobian_rule_of_a_kernel_with_a_kink_is_refused(run, boxes, command, kernel):
    output = () if command == "select" else ("-o", boxes.parent / "out.skops")
    args = ("-t", "weight", "--kernel", kernel, "--rule", "jacobian")
    code, _, err = run(command, boxes, *args, *output)
    assert code == 2
    text = " ".join(err.replace("│", " ").split())
    assert f"cannot be jacobian with --kernel {kernel}" in text
    assert "Use --rule median or --rule auto" in text


def test_an_unknown_kernel_is_told_the_known_ones(run, boxes):
    code, _, err = run("select", boxes, "-t", "weight", "--kernel", "cosine")
    assert code == 2
    assert "matern32" in err


# compare


def test_compare_takes_all_rules_that_a_kernel_has(run, boxes):
    args = ("-t", "weight", "--kernel", "laplacian", "--splits", "1", "--json")
    names = [row["rule"] for row in as_json(run("compare", boxes, *args))["rules"]]
    assert "median" in names
    assert not any(name.startswith("jacobian") for name in names)
    assert run("compare", boxes, *args, "--rules", "jacobian")[0] == 2


def test_compare_without_a_file_runs_on_the_diabetes_data(run):
    args = ("--rules", "jacobian,scale", "--splits", "2", "--json")
    result = as_json(run("compare", *args))
    assert result["data"] == "diabetes"
    assert result["n_samples"] == 442
    assert [row["rule"] for row in result["rules"]] == ["jacobian", "scale"]


def test_compare_prints_one_line_for_each_rule(run, boxes):
    args = ("--rules", "jacobian, silverman", "--splits", "2")
    code, out, _ = run("compare", boxes, "-t", "weight", *args)
    header, *lines = out.splitlines()
    assert code == 0
    assert header.split() == ["rule", "sigma", "alpha", "seconds", "test", "R2", "spread"]
    assert [line.split()[0] for line in lines] == ["jacobian", "silverman"]
    assert all(len(line.split()) == 6 for line in lines)


def test_compare_prints_the_models_and_the_verdict_before_the_rules(run, boxes):
    args = ("--rules", "scale,trees,linear,auto", "--splits", "1")
    code, out, _ = run("compare", boxes, "-t", "weight", *args)
    assert code == 0
    starts = [line.split()[0] if line else "" for line in out.splitlines()]
    assert starts[0] == "model"
    assert {*starts[1:4]} == {"auto", "linear", "trees"}
    assert starts[4] in ("A", "Best:", "None")
    assert starts[5:] == ["", "Rules", "rule", "scale"]


def test_compare_leaves_a_picture(run, boxes, tmp_path):
    picture = tmp_path / "rules.png"
    args = ("--rules", "jacobian", "--splits", "2", "--plot", picture)
    assert run("compare", boxes, "-t", "weight", *args)[0] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_compare_of_many_rows_takes_some_and_says_so(run, boxes):
    args = ("--rules", "jacobian", "--splits", "2", "--max-rows", "30", "--json")
    outcome = run("compare", boxes, "-t", "weight", *args)
    assert as_json(outcome)["n_samples"] == 30
    assert "30 of 40 rows are used, drawn at random. Use --max-rows for more." in outcome[2]


@pytest.mark.filterwarnings("default")
def test_compare_tells_what_each_rule_has_to_say(run, tmp_path):
    table = tmp_path / "equal.csv"
    table.write_text("x,y\n" + "1,2\n2,3\n4,5\n7,6\n8,9\n9,7\n" * 9)
    args = ("--rules", "jacobian,jacobian_median", "--splits", "2")
    code, _, err = run("compare", table, "-t", "y", *args)
    assert code == 0
    assert err.startswith("Note: jacobian_median: ")
    assert "rows repeat an earlier row" in err


def test_no_progress_bar_is_drawn_where_there_is_no_terminal(run):
    _, _, err = run("compare", "--rules", "jacobian", "--splits", "2")
    assert err == ""


# fit and predict


@pytest.mark.parametrize("rule", ["auto", "jacobian"])
def test_predictions_from_a_file_are_those_of_the_model_in_memory(run, tmp_path, rng, rule):
    """Without --rule everything is chosen, and the features are scaled by the model itself."""
    X = rng.uniform(size=(50, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(50)
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).write_csv(tmp_path / "train.csv")
    pl.DataFrame({"b": X[:5, 1], "a": X[:5, 0]}).write_csv(tmp_path / "new.csv")
    asked = [] if rule == "auto" else ["--rule", rule]
    run("fit", tmp_path / "train.csv", "-t", "y", "-o", tmp_path / "m.skops", *asked)
    args = ("-o", tmp_path / "out.parquet", "--std")
    assert run("predict", tmp_path / "m.skops", tmp_path / "new.csv", *args)[0] == 0

    models = {
        "auto": jacridge.AutoKernelRidge(random_state=0),
        "jacobian": make_pipeline(StandardScaler(), jacridge.JacobianKernelRidge()),
    }
    mean, std = models[rule].fit(X, y).predict(X[:5], return_std=True)
    out = pl.read_parquet(tmp_path / "out.parquet")
    np.testing.assert_allclose(out["prediction"], mean, rtol=1e-9)
    np.testing.assert_allclose(out["std"], std, rtol=1e-9)


def test_fit_tells_what_it_did(run, boxes, tmp_path):
    path = tmp_path / "m.skops"
    result = as_json(run("fit", boxes, "-t", "weight", "-o", path, "--rule", "2.5", "--json"))
    assert result["sigma"] == 2.5
    assert result["model"] == str(path)
    assert (result["n_samples"], result["n_features"]) == (40, 4)
    assert 0 < result["loo_r2"] <= 1
    assert result["diagnosis"]["condition"]["value"] > 1
    sentence = result["diagnosis"]["best single feature"]["sentence"]
    assert sentence == "R2 of the best single feature, width."


def test_fit_notes_what_speaks_against_it(run, boxes, tmp_path):
    """A bandwidth far below the distance of neighbours predicts the mean everywhere."""
    args = ("-t", "weight", "-o", tmp_path / "m.skops", "--drop", "colour", "--rule", "0.01")
    code, out, err = run("fit", boxes, *args)
    assert code == 0
    assert "diagnosis" not in out
    assert "rows, leave-one-out R2 would rise by" in err
    assert ": use --rule auto.\n" in err


def test_a_column_named_like_a_parameter_keeps_its_name(run, boxes):
    boxes.write_text(boxes.read_text().replace("colour", "alpha"))
    err = run("select", boxes, "-t", "alpha", "--rule", "loo")[2]
    assert "Error: The target `alpha` must hold numbers" in err


def test_two_rows_and_a_bandwidth_are_enough_for_a_model(run, tmp_path):
    (tmp_path / "two.csv").write_text("x,y\n1,2\n3,4\n")
    args = ("-t", "y", "-o", tmp_path / "m.skops", "--rule", "1.5", "--json")
    result = as_json(run("fit", tmp_path / "two.csv", *args))
    assert (result["loo_r2"], result["diagnosis"]) == (None, {})


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_model_of_every_solver_can_be_kept_and_used(run, boxes, tmp_path, solver):
    path = tmp_path / "m.skops"
    args = ("-t", "weight", "-o", path, "--solver", solver, "--n-landmarks", "20", "--json")
    fitted = as_json(run("fit", boxes, *args))
    assert fitted["solver"] == ("exact" if solver == "auto" else solver)
    assert len(as_json(run("predict", path, boxes, "--json"))["predictions"]["prediction"]) == 40


@pytest.mark.parametrize("option", [("--std",), ("--interval", "0.9")])
def test_a_model_of_pcg_has_no_deviations_and_says_so(run, boxes, tmp_path, option):
    path = tmp_path / "m.skops"
    run("fit", boxes, "-t", "weight", "-o", path, "--solver", "pcg")
    code, out, err = run("predict", path, boxes, *option)
    assert (code, out) == (1, "")
    assert "need a model fitted by the solver exact or nystrom, got" in err


@pytest.mark.parametrize("solver", ["exact", "nystrom"])
def test_a_model_from_a_file_has_deviations_and_intervals(run, boxes, tmp_path, solver):
    path = tmp_path / "m.skops"
    run("fit", boxes, "-t", "weight", "-o", path, "--solver", solver, "--n-landmarks", "20")
    out = as_json(run("predict", path, boxes, "--std", "--interval", "0.5", "--json"))
    columns = out["predictions"]
    assert set(columns) == {"prediction", "std", "lower", "upper"}
    assert all(np.isfinite(column).all() for column in columns.values())


def test_predictions_are_not_written_as_csv_under_another_name(run, model, boxes, tmp_path):
    out = tmp_path / "p.xlsx"
    code, _, err = run("predict", model, boxes, "-o", out)
    assert code == 2
    assert "a file that ends in .csv, .tsv, .txt, .parquet" in err
    assert not out.exists()


def test_predict_prints_csv_without_an_output_file(run, model, boxes):
    code, out, _ = run("predict", model, boxes)
    table = pl.read_csv(io.StringIO(out))
    assert code == 0
    assert table.columns == ["prediction"]
    assert len(table) == 40


def test_a_row_with_a_missing_value_has_no_prediction_and_keeps_its_place(run, model, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("colour,height,width\nred,,2\nred,2,3\nblue,?,1\nblue,4,3\n")
    code, out, err = run("predict", model, new)
    cells = pl.read_csv(io.StringIO(out), skip_rows=0)["prediction"].to_list()
    assert code == 0
    assert [cell is None for cell in cells] == [True, False, True, False]
    assert cells[1] == pytest.approx(2 * 3 + 1, abs=0.5)  # the model is smooth, not exact
    assert "2 of 4 rows have missing values and no prediction" in err


def test_an_interval_is_the_estimator_s_own(run, tmp_path, table):
    X, y = table
    pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(y=y).write_csv(tmp_path / "t.csv")
    args = ("-t", "y", "-o", tmp_path / "m.skops", "--no-standardize", "--rule", "loo")
    run("fit", tmp_path / "t.csv", *args)
    args = ("--interval", "0.8", "--json")
    out = as_json(run("predict", tmp_path / "m.skops", tmp_path / "t.csv", *args))["predictions"]

    est = jacridge.JacobianKernelRidge("loo").fit(X, y)
    lower, upper = est.predict_interval(X, coverage=0.8)
    np.testing.assert_allclose(out["lower"], lower, rtol=1e-7)
    np.testing.assert_allclose(out["upper"], upper, rtol=1e-7)


def test_predict_can_refuse_missing_values(run, model, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("colour,height,width\nred,,2\nred,2,3\n")
    code, out, err = run("predict", model, new, "--missing", "error")
    assert (code, out) == (1, "")
    assert "With --missing error no value may be missing, got 1 of 2 rows" in err


def test_a_category_that_training_did_not_have_is_noted(run, model, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("colour,height,width\ngreen,1,2\nred,2,3\n")
    code, _, err = run("predict", model, new)
    assert code == 0
    assert "`colour` has 1 value that training did not have: 'green' in 1 row. Such rows" in err
    assert (
        "predicted without a category; their intervals are widened by the predictions for all "
        "known categories, and the column `outside` is 1 for them.\n"
    ) in err
    code, out, _ = run("predict", model, new, "--outside", "--json")
    found = json.loads(out)
    assert found["predictions"]["outside"][0] == 1 > found["predictions"]["outside"][1]
    assert found["outside"] == 1


def test_the_interval_of_a_new_category_covers_the_predictions_for_all_known_ones(
    run, tmp_path, rng
):
    """In each of two columns, as far below and above as the known categories go."""
    effects, x = {"a": -3.0, "b": 0.0, "c": 4.0}, rng.uniform(size=90)
    kinds, sides = rng.choice(list(effects), 90), rng.choice(["left", "right"], 90)
    y = x + [effects[kind] for kind in kinds] + (sides == "left")
    table = pl.DataFrame({"kind": kinds, "side": sides, "x": x, "y": y})
    table.write_csv(tmp_path / "t.csv")
    run("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.skops")

    def predicted(kinds, sides):
        frame = pl.DataFrame({"kind": kinds, "side": sides, "x": [0.5] * len(kinds)})
        frame.write_csv(tmp_path / "new.csv")
        args = (tmp_path / "m.skops", tmp_path / "new.csv", "--interval", "0.9", "--json")
        return json.loads(run("predict", *args)[1])["predictions"]

    known = predicted(["a", "b", "c"], ["left"] * 3)
    new = predicted(["new", "new", "a"], ["left", "new", "left"])
    assert new["lower"][0] < min(known["prediction"]) < max(known["prediction"]) < new["upper"][0]
    assert new["upper"][1] - new["lower"][1] > new["upper"][0] - new["lower"][0]
    for end in ("lower", "upper"):
        assert new[end][2] == pytest.approx(known[end][0])


def test_predictions_have_ten_digits_as_text_and_all_as_json(run, model, tmp_path):
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    new.write_text("id,code,colour,height,width\n7,007,red,1.25,2.5\n-8.25,8.50,blue,3.25,4.5\n")
    given = ("predict", model, new, "--keep", "id,code")
    assert run(*given, "-o", out)[0] == 0
    found = as_json(run(*given, "--json"))["predictions"]
    written = [line.split(",") for line in out.read_text().splitlines()[1:]]
    assert [[a, b] for a, b, _ in written] == [["7", "007"], ["-8.25", "8.50"]]
    assert [float(c) for *_, c in written] == [float(f"{p:.10g}") for p in found["prediction"]]
    assert max(len(c) for *_, c in written) <= 12
    assert max(len(repr(p)) for p in found["prediction"]) > 12
    assert found["id"] == [7, -8.25]
    assert found["code"] == ["007", "8.50"]


def test_predict_counts_the_rows_that_are_outside_of_the_training_rows(run, tmp_path):
    table, new, model = tmp_path / "t.csv", tmp_path / "new.csv", tmp_path / "m.skops"
    table.write_text("x,y\n" + "".join(f"{i},{i % 7}\n" for i in range(30)))
    new.write_text("x\n3\n4\n500\n")
    assert run("fit", table, "--target", "y", "-o", model)[0] == 0
    code, out, err = run("predict", model, new, "--outside")
    assert code == 0
    assert pl.read_csv(io.StringIO(out))["outside"].to_list() == [0.0, 0.0, 1.0]
    assert "Warning: 1 of 3 rows is unlike every training row: its prediction is" in err
    assert "unlike" not in run("predict", model, table)[2]


def test_predict_says_how_far_beyond_the_training_rows_new_rows_are(run, tmp_path):
    """The next month and the year 2031 had the same message."""
    days = pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 12, 31), "1d", eager=True)
    frame = pl.DataFrame({"day": days, "x": range(0, 732, 2), "y": range(366)})
    frame.write_csv(tmp_path / "t.csv")
    model = tmp_path / "m.skops"
    plain = ("--rule", "2", "--alpha", "0.1", "-o", model)
    assert run("fit", tmp_path / "t.csv", "-t", "y", "--features", "day,x", *plain)[0] == 0
    for new, words in {
        "2021-01-30,700": " `day` is up to 2021-01-30, in training up to 2020-12-31.\n",
        "2031-01-30,700": " `day` is up to 2031-01-30, in training up to 2020-12-31.\n",
        "2020-01-09,-9e4": " `x` is down to -90000, in training down to 0.\n",
        "2020-01-09,600": " its prediction is an extrapolation.\n",
    }.items():
        (tmp_path / "new.csv").write_text(f"day,x\n{new}\n")
        code, _, err = run("predict", model, tmp_path / "new.csv")
        assert (code, err.count("Warning: 1 of 1 rows is unlike")) == (0, 1)
        assert err.endswith(words)


def test_predict_as_json_has_the_predictions(run, model, boxes):
    result = as_json(run("predict", model, boxes, "--json"))
    assert result["target"] == "weight"
    assert len(result["predictions"]["prediction"]) == 40


# report


def test_report_shows_the_model_that_fit_keeps(run, boxes, tmp_path):
    path = tmp_path / "report.html"
    summary = as_json(run("report", boxes, "-t", "weight", "-o", path, "--json"))
    assert (summary["report"], summary["n_samples"]) == (str(path), 40)
    fitted = as_json(run("fit", boxes, "-t", "weight", "-o", tmp_path / "m.skops", "--json"))
    page = path.read_text(encoding="utf-8")
    assert f'kernel</td><td class="number">{fitted["kernel"]}</td>' in page
    shown = re.search(r'bandwidth σ</td><td class="number">([^<]*)</td>', page)[1]
    # Three digits are shown.
    assert float(shown.replace(",", "")) == pytest.approx(fitted["sigma"], rel=5e-3)
    assert "colour = red" in page


def page_code(path):
    """The code blocks of a report, by title."""
    found = re.findall(
        r"<h3>([^<]*)</h3><pre[^>]*><code>(.*?)</code>", path.read_text("utf-8"), re.S
    )
    return {title: unescape(code) for title, code in found}


def holes(boxes):
    """The boxes with an identity column, as text, and two rows that lack a value."""
    rows = boxes.read_text().splitlines()
    body = [f"n{i},{row}" for i, row in enumerate(rows[1:])]
    return ["id," + rows[0], "n40,1,NA,red,3", *body, "n41,1,2,blue,"]


def write_semicolons(boxes, path):
    path.write_text("\n".join(holes(boxes)).replace(",", ";"))
    return "weight", ["--drop", "id"]


def write_tabs(boxes, path):
    path.write_bytes(gzip.compress("\n".join(holes(boxes)).replace(",", "\t").encode()))
    options = ["--features", "width,height", "--features", "colour", "--rule", "jacobian"]
    return "weight", options


def write_headless(boxes, path):
    path.write_text("\n".join(holes(boxes)[1:]))
    return "column_5", ["--drop", "1", "--no-header"]


def write_old_mac(boxes, path):
    """UTF-16, line ends of old Macs, blank lines, and a header with spaces and quotes."""
    head, *body = boxes.read_text().splitlines()
    head = head.replace("height", '" the ""height"""').replace("weight", "net weight")
    path.write_bytes("\r".join([head, "", *body, "", ""]).encode("utf-16"))
    return "net weight", ["--rule", "jacobian"]


def write_old_windows(boxes, path):
    """Windows-1252 with letters beyond ASCII, in a gzip file."""
    text = boxes.read_text().replace("red", "rød").replace("height", "höhe in €")
    path.write_bytes(gzip.compress(text.encode("cp1252")))
    return "weight", ["--rule", "jacobian"]


def write_workbook(boxes, path):
    pytest.importorskip("fastexcel")
    book = pytest.importorskip("openpyxl").Workbook()
    frame = pl.read_csv(boxes)
    for row in [frame.columns, *frame.rows()]:
        book.active.append(row)
    book.save(path)
    return "weight", ["--rule", "scale"]


def write_parquet(boxes, path):
    pl.read_csv(boxes).with_columns(id=pl.col("colour") + "?").write_parquet(path)
    return "weight", ["--drop", "id", "--rule", "loo", "--alpha", "0.01"]


def write_feather(boxes, path):
    pl.read_csv(boxes).write_ipc(path)
    return "weight", ["--rule", "scale", "--no-standardize"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "name"),
    [
        (write_semicolons, "my boxes.csv"),
        (write_tabs, "boxes.tsv.gz"),
        (write_headless, "boxes.csv"),
        (write_old_mac, "old boxes.csv"),
        (write_old_windows, "boxes.csv.gz"),
        (write_workbook, "boxes.xlsx"),
        (write_parquet, "boxes.parquet"),
        (write_feather, "boxes.feather"),
    ],
)
def test_the_code_of_a_report_gives_the_model_of_the_report(
    run, boxes, tmp_path, monkeypatch, write, name
):
    """Both blocks of Python and the commands of the page, run as they stand there."""
    monkeypatch.chdir(tmp_path)
    target, options = write(boxes, tmp_path / ("t-" + name))
    args = ["t-" + name, "--target", target, *options]
    assert run("report", *args, "-o", "page.html")[0] == 0
    code = page_code(tmp_path / "page.html")

    fit = shlex.split(code["On the command line"].splitlines()[0])
    assert run(*fit[1:])[0] == 0
    header = ["--no-header"] if "--no-header" in options else []
    kept = as_json(run("predict", "model.skops", "t-" + name, *header, "--json"))
    expected = [v for v in kept["predictions"]["prediction"] if v is not None]
    for title in ("Python", "scikit-learn only"):
        names = {}
        exec(code[title], names)
        predicted = names["model"].predict(names["X"])
        # The row that lacks only its target is predicted, but not fitted.
        np.testing.assert_allclose(predicted, expected[: len(predicted)], rtol=1e-6)


@pytest.mark.slow
def test_a_report_has_python_code_unless_gaps_were_filled(run, boxes, tmp_path):
    path, args = tmp_path / "page.html", ("-t", "weight", "--rule", "2", "--missing", "impute")
    assert run("report", boxes, *args, "-o", path)[0] == 0
    assert set(page_code(path)) == {"Python", "scikit-learn only", "On the command line"}
    boxes.write_text(boxes.read_text() + "1,NA,red,3\n")
    assert run("report", boxes, *args, "-o", path)[0] == 0
    assert set(page_code(path)) == {"On the command line"}


def test_a_report_tells_how_many_rows_it_left_out(run, boxes, tmp_path):
    boxes.write_text(boxes.read_text() + "1,2,red,\n1,NA,red,3\n")
    path = tmp_path / "report.html"
    summary = as_json(run("report", boxes, "-t", "weight", "-o", path, "--json"))
    assert (summary["n_samples"], summary["rows_left_out"]) == (40, 2)
    assert "2 of 42 rows in the file are left out" in path.read_text("utf-8")


def test_a_report_is_a_page_and_no_other_file(run, boxes, tmp_path):
    code, _, err = run("report", boxes, "-t", "price", "-o", tmp_path / "report.pdf")
    assert code == 2
    assert "A report is written to a file that ends in .html, .htm, got" in err
    assert not (tmp_path / "report.pdf").exists()


def test_a_report_that_fails_leaves_no_page(run, boxes, tmp_path):
    path = tmp_path / "report.html"
    assert run("report", boxes, "-t", "wait", "-o", path)[0] == 2
    assert run("report", boxes, "-t", "weight", "--rule", "best", "-o", path)[0] == 2
    assert not path.exists()


# the paper's data


def test_data_list_shows_licences_and_citations(run):
    code, out, _ = run("data", "list")
    assert code == 0
    assert "wood_fibres: 25165 rows, 5 features, target Length\n  licence: " in out
    assert out.count("  cite: ") == len(as_json(run("data", "list", "--json"))["data_sets"]) == 7


def test_data_fetch_prints_where_a_file_is(run, tmp_path, monkeypatch):
    monkeypatch.setenv("JACRIDGE_DATA", str(tmp_path))
    (tmp_path / "protein.csv").write_text("RMSD,F1\n")
    assert run("data", "fetch", "protein") == (0, f"{tmp_path / 'protein.csv'}\n", "")
    assert as_json(run("data", "path", "--json")) == {"folder": str(tmp_path)}


# the paper's experiments


def test_paper_writes_rows_and_figures_and_can_draw_them_again(run, tmp_path):
    code, out, err = run("paper", "fig1", "--quick", "-o", tmp_path / "paper")
    assert code == 0, err
    names = {path.name for path in (tmp_path / "paper").iterdir()}
    assert {"fig1.csv", "fig1.png"} <= names
    assert str(tmp_path / "paper" / "fig1.png") in out.splitlines()

    (tmp_path / "paper" / "fig1.png").unlink()
    again = as_json(run("paper", "fig1", "--redraw", "-o", tmp_path / "paper", "--json"))
    assert str(tmp_path / "paper" / "fig1.csv") in again["files"]
    assert (tmp_path / "paper" / "fig1.png").exists()


def test_drawing_again_what_was_never_run_is_refused(run, tmp_path):
    code, _, err = run("paper", "fig2", "--redraw", "-o", tmp_path)
    assert code == 2
    assert "Run the experiment first" in err


# what goes wrong


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nonsense",), "No such command"),
        (("select",), "Missing argument"),
        (("select", "{boxes}", "--rule", "loo"), "because the rule loo uses it"),
        (("select", "{boxes}", "--alpha", "gcv"), "because --alpha gcv uses it"),
        (("report", "{boxes}"), "Missing option '--target'"),
        (("fit", "{boxes}", "-o", "m"), "Missing option '--target'"),
        (("select", "{boxes}", "-t", "wieght"), "Did you mean `weight`?"),
        (
            ("select", "{boxes}", "-t", "weight", "--rule", "magic"),
            "must be one of jacobian, ",
        ),
        (("select", "{boxes}", "-t", "weight", "--alpha", "-1"), "must be at least 0, got -1"),
        (("select", "{boxes}", "-t", "weight", "--alpha", "nan"), "must be at least 0, got nan"),
        (("select", "{boxes}", "-t", "weight", "--alpha", "much"), "a number or one of loo, gcv"),
        (("select", "{boxes}", "-t", "weight", "--drop", "x"), "There is no column `x`. There are"),
        (("select", "{boxes}", "-t", "weight", "--features", "weight"), "it is the target"),
        (("select", "no-such.csv", "-t", "y"), "`no-such.csv`: No such file or directory."),
        (("select", "no-*.csv", "-t", "y"), "`no-*.csv`: No file matches this pattern."),
        (("compare", "{boxes}"), "must name the column to predict"),
        (("compare", "--target", "y"), "needs a FILE"),
        (("compare", "--rules", "jacobian,magic"), "must be one of auto, linear, "),
        (("compare", "--rules", ","), "must name at least one rule"),
        (("compare", "--splits", "0"), "Invalid value for '--splits'"),
        (
            ("fit", "{boxes}", "-t", "weight", "-o", "m", "--solver", "gpu"),
            "auto, exact, nystrom, pcg",
        ),
        (("fit", "{boxes}", "-t", "weight", "-o", "m", "--n-landmarks", "0"), "'--n-landmarks'"),
        (("paper", "fig99"), "must be one of fig1, "),
        (("data", "fetch", "nonsense"), "must be one of wood_fibres, "),
        (("fit", "{boxes}", "-t", "weight"), "Missing option '--output'"),
        (
            ("fit", "{boxes}", "-t", "weight", "-o", "m", "-r", "wide"),
            "number or one of jacobian",
        ),
        (("fit", "{boxes}", "-t", "weight", "-o", "no-dir/m.skops"), "`no-dir`: There is no such"),
        (("fit", "{boxes}", "-t", "weight", "-o", ""), "A file to write must have a name, got ''."),
        (("predict", "{model}", "{boxes}", "-o", ""), "A file to write must have a name, got ''."),
        (("compare", "--plot", ""), "A file to write must have a name, got ''."),
        (("compare", "--plot", "p.xyz"), "A picture is written to a file that ends in ."),
        (("compare", "--plot", "no-dir/p.png"), "`no-dir`: There is no such folder"),
        (("report", "{boxes}", "-t", "weight", "-o", "no-dir/r.html"), "There is no such folder"),
        (("predict", "no-such.skops", "{boxes}"), "`no-such.skops`: No such file or directory."),
        (("predict", "{model}", "{boxes}", "--interval", "1"), "must lie between 0 and 1, got 1"),
        (
            ("predict", "{model}", "{other}"),
            "no columns `height`, `width`, `colour`, which the model needs",
        ),
    ],
)
def test_wrong_use_ends_with_code_2(run, boxes, model, tmp_path, args, message):
    other = tmp_path / "other.csv"
    other.write_text("a\n1\n")
    code, out, err = run(*(arg.format(boxes=boxes, model=model, other=other) for arg in args))
    assert code == 2
    assert message in " ".join((err + out).split())
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ("select", "{boxes}", "-t", "colour", "-r", "loo"),
            "The target `colour` must hold numbers",
        ),
        (("select", "{folder}", "-t", "y"), "Is a directory"),
        (("select", "{two}", "-t", "y"), "n_samples >= 3, got n_samples=2"),
        (("select", "{equal}", "-t", "y"), "rows that differ"),
        (("compare", "{two}", "-t", "y"), "A comparison needs at least 6 rows, got 2."),
        (("compare", "{equal}", "-t", "y", "--rules", "jacobian"), "must vary, got 2.0 in all"),
        (
            (
                "fit",
                "{boxes}",
                "-t",
                "weight",
                "-o",
                "m",
                "--solver",
                "nystrom",
                "--n-landmarks",
                "99",
            ),
            "`--n-landmarks` must be",
        ),
        (("fit", "{boxes}", "-t", "weight", "-o", "{folder}"), "Is a directory"),
        (("fit", "{boxes}", "-t", "weight", "-o", "m", "-r", "-1"), "`--rule` must be"),
        (("predict", "{model}", "{holes}"), "must hold a row without missing values, got none"),
        (("predict", "{boxes}", "{boxes}"), "must be a model file written by `jacridge fit`"),
        (("predict", "{model}", "{words}"), "`height` must hold numbers, got 'tall' in row 1"),
    ],
)
def test_a_failure_ends_with_code_1(run, boxes, model, tmp_path, args, message):
    (tmp_path / "two.csv").write_text("x,y\n1,2\n3,4\n")
    (tmp_path / "equal.csv").write_text("x,y\n" + "1,2\n" * 9)
    (tmp_path / "words.csv").write_text("height,width,colour\ntall,1,red\n")
    (tmp_path / "holes.csv").write_text("height,width,colour\n,1,red\n2,,red\n")
    names = {name: tmp_path / f"{name}.csv" for name in ("two", "equal", "words", "holes")}
    names |= {"boxes": boxes, "model": model, "folder": tmp_path}
    code, out, err = run(*(arg.format(**names) for arg in args))
    assert (code, out) == (1, "")
    assert message in err
    assert err.startswith(("Error: ", "Note: "))
    assert "Traceback" not in err


def test_a_fit_that_fails_leaves_no_model(run, tmp_path):
    (tmp_path / "two.csv").write_text("x,y\n1,2\n3,4\n")
    assert run("fit", tmp_path / "two.csv", "-t", "y", "-o", tmp_path / "m.skops")[0] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["two.csv"]


@pytest.fixture
def lost(monkeypatch):
    """An error that nobody foresaw, deep in the work of a rule."""
    monkeypatch.setattr(jacridge.TrainingData, "l_max", property(lambda data: {}["lost"]))


@pytest.mark.usefixtures("lost")
def test_an_unforeseen_error_is_one_line_and_the_way_to_see_more(run, boxes):
    code, _, err = run("select", boxes, "-t", "weight", "--drop", "colour")
    assert code == 1
    assert err == "Error: KeyError: 'lost'. Set JACRIDGE_DEBUG=1 to see where.\n"


@pytest.mark.usefixtures("lost")
def test_debugging_shows_the_error_itself(boxes, monkeypatch):
    monkeypatch.setenv("JACRIDGE_DEBUG", "1")
    with pytest.raises(KeyError, match="lost"):
        main(["select", str(boxes), "-t", "weight", "--drop", "colour"])


@pytest.mark.filterwarnings("default")
def test_a_warning_becomes_a_note(run, tmp_path):
    table = tmp_path / "equal.csv"
    table.write_text("x,y\n" + "1,2\n2,3\n4,5\n" * 9)
    code, _, err = run("select", table, "-t", "y", "--rule", "jacobian_median")
    assert code == 0
    assert err.startswith("Note: 89% of the rows repeat an earlier row")


# malformed files

GOOD = "x,y,c,when\n" + "".join(
    f"{i * i},{i}.5,{'ab'[i % 2]},2020-0{i % 3 + 1}-{i + 10}\n" for i in range(12)
)
NASTY = st.sampled_from(
    ["1e999", "-1e308", "9" * 400, "é", "\x00", "\r", "\r\n", "\t", ";", ",", ",,", '"', '""', "'"]
    + ["\n", "\n\n", "NA", "?", "nan", "inf", "x,y\n", "0x10", "1_000", "\ufeff", " ", "-", "1;5"]
    + [
        "2020-02-30",
        "31.12.1999",
        "0000-00-00",
        "9999-12-31T23:59:60Z",
        "1.234,5",
        "1,5",
        "\x1b[2J",
    ]
)
CODES = st.sampled_from(
    ["utf-8", "latin-1", "utf-16", "utf-16-be", "utf-16-le", "utf-32", "cp1252"]
)
EDITS = st.lists(
    st.tuples(st.integers(0, len(GOOD)), st.integers(0, 9), st.one_of(NASTY, st.text(max_size=6))),
    max_size=4,
)
LINE_ENDS = st.sampled_from(["\n", "\r\n", "\r"])


def damaged(edits, code, line_end="\n"):
    """The good table with a few cuts and insertions, in some encoding."""
    text = GOOD
    for at, cut, new in edits:
        text = text[:at] + new + text[at + cut :]
    return text.replace("\n", line_end).encode(code, "replace")


def written(form):
    """The good table as a binary file."""
    frame, file = pl.read_csv(io.StringIO(GOOD), try_parse_dates=True), io.BytesIO()
    if form == "xlsx":
        import openpyxl

        book = openpyxl.Workbook()
        for row in (frame.columns, *frame.rows()):
            book.active.append(list(row))
        book.save(file)
    else:
        getattr(frame, f"write_{form}")(file)
    return file.getvalue()


BINARY = [written(form) for form in ("parquet", "ipc", "xlsx")] + [gzip.compress(GOOD.encode())]


def cut(content, edits):
    """A binary file with bytes changed, or with its end cut off."""
    data = bytearray(content)
    for at, value in edits:
        data[int(at * (len(data) - 1))] = value
    return bytes(data[: int(edits[0][0] * len(data))] if len(edits) == 1 else data)


BYTES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=5)
FILES = st.one_of(
    st.builds(damaged, EDITS, CODES, LINE_ENDS),
    st.builds(damaged, EDITS, st.just("utf-8")),
    st.builds(cut, st.sampled_from(BINARY), BYTES),
    st.builds(
        bytes.__add__,
        st.sampled_from([b"", b"PAR1", b"ARROW1", b"\x1f\x8b", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"]),
        st.binary(),
    ),
)
OPTIONS = st.lists(
    st.sampled_from(
        [("--missing", "impute"), ("--decimal", ","), ("--no-header",), ("--drop", "when")]
    ),
    unique=True,
    max_size=2,
)


def check_answer(code, out, err):
    """An answer that can be used, or one line that says what is wrong."""
    assert "\x1b" not in err
    if code == 0:
        json.loads(out)
        return
    assert (code, out) in [(1, ""), (2, "")]
    assert err.splitlines()[-1].startswith("Error: ")
    assert "JACRIDGE_DEBUG" not in err, err


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=FILES, options=OPTIONS)
@pytest.mark.filterwarnings("default")
def test_a_malformed_file_gives_an_answer_or_one_clear_error(run, tmp_path, content, options):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    words = [word for option in options for word in option]
    code, out, err = run("select", path, "-t", "y", "--json", *words)
    check_answer(code, out, err)
    if code == 0:
        assert 0 < json.loads(out)["sigma"] < np.inf


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=FILES)
@pytest.mark.filterwarnings("default")
def test_malformed_new_rows_give_predictions_or_one_clear_error(run, tmp_path, content):
    model, path = tmp_path / "m.skops", tmp_path / "new.csv"
    if not model.exists():
        (tmp_path / "good.csv").write_text(GOOD)
        args = ("-t", "y", "--missing", "impute", "-o", model)
        assert run("fit", tmp_path / "good.csv", *args)[0] == 0
    path.write_bytes(content)
    check_answer(*run("predict", model, path, "--keep", "1", "--json"))


# the real thing


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_is_told_that_work_goes_on(boxes, tmp_path):
    """Three commands in one process of their own, so that nothing here takes their stderr."""
    import os
    import select

    commands = [
        ["compare", "--rules", "jacobian,loo", "--splits", "3"],
        ["select", str(boxes), "-t", "weight", "--rule", "loo"],
        ["fit", str(boxes), "-t", "weight", "-o", str(tmp_path / "m.skops")],
    ]
    code = (
        "from jacridge.cli import main\n"
        f"for words in {commands!r}:\n"
        "    try:\n        main([*words, '--json'])\n"
        "    except SystemExit as end:\n        assert not end.code, end.code\n"
    )
    leader, follower = os.openpty()
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=follower,
        check=True,
        env={**os.environ, "TERM": "xterm"},
    )
    shown = b""
    while select.select([leader], [], [], 0)[0]:  # one read gives a part of what is there
        shown += os.read(leader, 100_000)
    os.close(follower)
    for sign in (b"/6", b"choosing the bandwidth", b"fitting"):
        assert sign in shown
    assert all(json.loads(line) for line in done.stdout.splitlines())
    assert done.stdout.count(b"\n") == 3


@pytest.mark.slow
def test_the_command_runs_in_its_own_process(boxes):
    command = [sys.executable, "-c", "from jacridge.cli import main; main()"]
    args = ["select", str(boxes), "-t", "weight", "--json"]
    done = subprocess.run([*command, *args], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["n_samples"] == 40


@pytest.mark.parametrize("missing", ["typer", "polars", "rich"])
def test_without_its_extra_the_command_says_how_to_get_it(missing, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("jacridge.cli")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.split(".")[0] == missing]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SystemExit) as end:
        importlib.import_module("jacridge.cli")
    assert end.value.code.startswith(f"The command needs `{missing}")
    assert end.value.code.endswith("Install it with: pip install 'jacridge[cli]'")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sel", {"select"}),
        ("select t.csv --rule jac", {r for r in jacridge.RULES if r.startswith("jac")}),
        ("fit t.csv --alpha ", {"loo", "gcv", "mml", "auto"}),
        ("fit t.csv --solver n", {"nystrom"}),
        ("paper fig1", {"fig1"}),
    ],
)
def test_the_shell_can_complete_commands_and_words(run, monkeypatch, typed, offered):
    monkeypatch.setenv("_JACRIDGE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"jacridge {typed}")
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" "))))
    code, out, _ = run()
    assert code == 0
    assert offered <= set(out.split())
    assert "compare" not in out


def test_the_version_is_that_of_the_package(run):
    assert run("--version") == (0, f"jacridge {jacridge.__version__}\n", "")


@pytest.mark.slow
def test_the_package_runs_as_a_module():
    asked = [sys.executable, "-m", "jacridge", "--version"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == f"jacridge {jacridge.__version__}\n"


def test_completion_can_be_shown_for_the_shell(run):
    assert "--install-completion" in run("--help")[1]


@pytest.mark.parametrize(
    "command",
    [
        "",
        "select",
        "compare",
        "fit",
        "predict",
        "report",
        "paper",
        "data",
        "data list",
        "data fetch",
        "data path",
    ],
)
def test_help_has_an_example(run, command):
    code, out, _ = run(*command.split(), "--help")
    assert code == 0
    assert f"jacridge {command or 'report'}" in out.split("Example:")[-1]


def test_a_report_takes_a_kernel_and_refuses_rules_that_it_does_not_have(run, boxes, tmp_path):
    args = ("report", boxes, "-t", "weight", "--kernel", "exponential", "-o", tmp_path / "r.html")
    code, out, err = run(*args, "--rule", "median")
    assert (code, out) == (0, f"The report is in {tmp_path / 'r.html'}.\n"), err
    assert "--rule median --kernel exponential" in (tmp_path / "r.html").read_text()
    code, _, err = run(*args, "--rule", "jacobian")
    assert code == 2
    assert "cannot be jacobian with --kernel exponential" in " ".join(err.split())


def test_fit_prints_the_columns_of_which_features_are_made(run, tmp_path, rng):
    """The page of a report counts columns; a category is one, and a date."""
    rows = [
        f"{x},{'abc'[i % 3]},2024-0{i % 9 + 1}-1{i % 7},{x}\n"
        for i, x in enumerate(rng.normal(size=40))
    ]
    (tmp_path / "t.csv").write_text("x,kind,day,y\n" + "".join(rows))
    given = ("fit", tmp_path / "t.csv", "-t", "y", "--rule", "scale", "-o", tmp_path / "m.skops")
    _, out, _ = run(*given, "--json")
    n = json.loads(out)["n_features"]
    assert n > 3
    assert f"n features     {n}, from 3 columns" in run(*given)[1]
    assert "n features     1\n" in run(*given, "--features", "x")[1]
