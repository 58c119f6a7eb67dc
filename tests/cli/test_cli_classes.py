"""Classes in the command: fit, predict, compare and report."""

import json

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import accuracy_score

from jacridge import JacobianKernelClassifier


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 60)).round(3)
    frame = {
        "a": a,
        "b": b,
        "kind": np.where(a > 0.5, "tall", np.where(b > 0, "wide", "small")),
        "passed": (a + b > 0).astype(int),
        "half": np.where(a > 0, 0.5, 1.5),
        "level": rng.integers(1, 4, 60),
    }
    path = tmp_path / "table.csv"
    pl.DataFrame(frame).write_csv(path)
    return path


def fit(run, table, target, output, *options):
    features = ("--features", "a,b", "--rule", "scale")
    return run("fit", table, "-t", target, "-o", output, *features, *options, "--json")


@pytest.mark.parametrize(
    ("target", "classes", "said"),
    [
        (
            "kind",
            ["small", "tall", "wide"],
            "`kind` holds text, so the model predicts its 3 classes",
        ),
        ("passed", [0, 1], "`passed` holds two values, 0 and 1, which are taken as classes"),
        ("half", ["0.5", "1.5"], "`half` holds"),
    ],
)
def test_texts_and_two_values_are_classes_and_that_is_said(
    run, table, tmp_path, target, classes, said
):
    code, out, err = fit(run, table, target, tmp_path / "m.skops")
    result = json.loads(out)
    assert (code, result["task"], result["classes"]) == (0, "classification", classes)
    assert 0 < result["loo_accuracy"] <= 1
    assert said in err


def test_many_numbers_are_no_classes_unless_asked_for(run, table, tmp_path):
    assert json.loads(fit(run, table, "level", tmp_path / "m.skops")[1])["task"] == "regression"
    asked = fit(run, table, "level", tmp_path / "m.skops", "--task", "classification")
    assert json.loads(asked[1])["classes"] == [1, 2, 3]


def test_two_values_are_numbers_if_asked_for(run, table, tmp_path):
    _, out, err = fit(run, table, "passed", tmp_path / "m.skops", "--task", "regression")
    assert "loo_r2" in json.loads(out)
    assert "classes" not in err


def test_predictions_hold_the_class_and_the_probabilities_of_the_model_in_memory(
    run, table, tmp_path
):
    fit(run, table, "kind", tmp_path / "m.skops", "--no-standardize")
    run("predict", tmp_path / "m.skops", table, "-o", tmp_path / "p.csv", "--keep", "kind")
    frame, found = pl.read_csv(table), pl.read_csv(tmp_path / "p.csv")
    X, y = frame.select("a", "b").to_numpy(), frame["kind"].to_numpy().astype(str)
    est = JacobianKernelClassifier("scale", random_state=0).fit(X, y)
    assert found["kind"].to_list() == list(y)
    assert found["prediction"].to_list() == list(est.predict(X))
    P = found.select(f"probability {label}" for label in est.classes_).to_numpy()
    np.testing.assert_allclose(P, est.predict_proba(X), rtol=1e-7)


def test_rows_that_are_left_out_have_neither_class_nor_probability(run, table, tmp_path):
    fit(run, table, "kind", tmp_path / "m.skops")
    (tmp_path / "new.csv").write_text("a,b\n1,2\n,3\n")
    _, out, _ = run("predict", tmp_path / "m.skops", tmp_path / "new.csv")
    assert out.splitlines()[2] == ",,,"


@pytest.mark.parametrize("option", [("--std",), ("--interval", "0.9")])
def test_deviations_and_intervals_of_classes_are_left_out_with_a_note(run, table, tmp_path, option):
    fit(run, table, "passed", tmp_path / "m.skops")
    plain = run("predict", tmp_path / "m.skops", table)
    code, out, err = run("predict", tmp_path / "m.skops", table, *option)
    assert (code, out) == plain[:2]
    assert (
        f"Note: The model predicts classes: their probabilities are written, and {option[0]}" in err
    )


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("-t", "a", "--task", "classification"), 1, "must have at least two rows of each class"),
        (("-t", "kind", "--task", "regression"), 1, "`kind` must hold numbers, got text"),
        (("-t", "kind", "--task", "ranks"), 2, "--task: must be one of auto, regression"),
        (("-t", "kind,passed"), 1, "`kind` must hold numbers, got text"),
    ],
)
def test_what_is_no_target_of_classes_is_told(run, table, tmp_path, args, code, message):
    found = run("fit", table, *args, "-o", tmp_path / "m.skops")
    assert found[0] == code
    assert message in found[2]
    assert not (tmp_path / "m.skops").exists()


def test_more_than_a_hundred_classes_are_refused(run, tmp_path):
    path = tmp_path / "many.csv"
    pl.DataFrame({"a": range(240), "y": [i // 2 for i in range(240)]}).write_csv(path)
    _, _, err = run("fit", path, "-t", "y", "-o", tmp_path / "m", "--task", "classification")
    assert "The target `y` must hold at most 100 classes, got 120. Use --task regression" in err


def test_compare_has_the_accuracy_of_the_models_on_test_rows(run, table):
    args = ("--features", "a,b", "--rules", "scale,linear", "--splits", 2)
    _, out, _ = run("compare", table, "-t", "kind", *args, "--json")
    found = json.loads(out)
    assert found["task"] == "classification"
    assert all(0.5 < row["accuracy_mean"] <= 1 for row in found["rules"])
    _, out, _ = run("compare", table, "-t", "kind", *args)
    assert "test accuracy" in out.splitlines()[0]


def test_a_report_of_classes_is_written(run, table, tmp_path):
    page = tmp_path / "r.html"
    args = ("--features", "a,b", "--rule", "scale", "-o", page, "--json")
    _, out, _ = run("report", table, "-t", "passed", *args)
    assert json.loads(out)["task"] == "classification"
    assert "finds the right class of <b>passed</b>" in page.read_text()


def test_the_accuracy_of_a_fit_is_that_of_actual_refits(run, table, tmp_path):
    """By leave-one-out with bandwidth and penalty held fixed; calibration moves no class here."""
    result = json.loads(fit(run, table, "passed", tmp_path / "m.skops", "--no-standardize")[1])
    frame = pl.read_csv(table)
    X, y = frame.select("a", "b").to_numpy(), frame["passed"].to_numpy()
    found = []
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        est = JacobianKernelClassifier(result["sigma"], 1e-3).fit(X[rest], y[rest])
        found.append(est.predict(X[[i]])[0])
    # One row of 60: each refit calibrates its probabilities anew.
    assert result["loo_accuracy"] == pytest.approx(accuracy_score(y, found), abs=0.02)


def test_one_class_is_refused_before_anything_is_said_to_be_replaced(run, table, tmp_path):
    pl.read_csv(table).with_columns(pl.lit("no").alias("kind")).write_csv(table)
    page = tmp_path / "r.html"
    page.write_text("an older page")
    code, _, err = run("report", table, "-t", "kind", "--features", "a,b", "-o", page)
    assert code == 1
    assert "The target `kind` must hold at least two classes, got 'no' in all rows." in err
    assert "Note" not in err
    assert page.read_text() == "an older page"


def test_a_fit_without_use_is_compared_with_the_shares_of_the_classes(run, table, tmp_path):
    code, _, err = fit(run, table, "level", tmp_path / "m.skops", "--task", "classification")
    assert code == 0
    assert (
        "Note: Always predicting the shares of the classes does at least as well as the model on "
        "unseen rows.\n"
    ) in err
    assert "mean of y" not in err
