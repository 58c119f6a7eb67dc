"""The comparison of rules, against scikit-learn on the same splits."""

import json

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import jacridge
from inside import compare

compare_rules, save_picture, NAMES = compare.compare_rules, compare.save_picture, compare.NAMES


def test_the_mean_is_that_of_scikit_learn_s_ridge_on_the_same_splits(table):
    X, y = table
    (row,) = compare_rules(X, y, ["scale"], splits=4, prepare=StandardScaler())

    scores = []
    for train, test in ShuffleSplit(4, test_size=0.35, random_state=0).split(X):
        scaler = StandardScaler().fit(X[train])
        A, B = scaler.transform(X[train]), scaler.transform(X[test])
        ridge = KernelRidge(kernel="rbf", gamma=1 / A.shape[1], alpha=1e-3)
        mean = y[train].mean()
        scores.append(r2_score(y[test], mean + ridge.fit(A, y[train] - mean).predict(B)))
    assert row["r2_mean"] == pytest.approx(np.mean(scores), abs=1e-9)
    assert row["r2_std"] == pytest.approx(np.std(scores), abs=1e-9)
    assert row["sigma"] == pytest.approx(np.sqrt(3 / 2), rel=1e-9)  # Var = 1, p = 3


def test_every_rule_has_its_row(table):
    X, y = table
    rows = compare_rules(X, y, NAMES, splits=2)
    assert [row["rule"] for row in rows] == list(NAMES)
    assert set(NAMES) == {*jacridge.RULES, "trees", "linear"}
    assert all(np.isfinite(row["r2_mean"]) and row["seconds"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("auto", jacridge.AutoKernelRidge(random_state=0)),
        ("trees", HistGradientBoostingRegressor(random_state=0)),
    ],
)
def test_models_beside_the_rules_are_fitted_to_the_same_splits(table, name, model):
    X, y = table
    (row,) = compare_rules(X, y, [name], splits=2)
    folds = ShuffleSplit(2, test_size=0.35, random_state=0).split(X)
    scores = [model.fit(X[i], y[i]).score(X[j], y[j]) for i, j in folds]
    assert row["r2_mean"] == pytest.approx(np.mean(scores), abs=1e-9)


def test_progress_is_told_before_each_fit(table):
    told = []
    compare_rules(*table, ["jacobian", "scale"], splits=2, progress=lambda *at: told.append(at))
    assert told == [(0, 4, "jacobian"), (1, 4, "scale"), (2, 4, "jacobian"), (3, 4, "scale")]


def test_a_rule_that_fails_is_told_beside_those_that_do_not(table, monkeypatch):
    def broken(X, y, rule, **options):
        if rule == "median":
            raise ValueError("no median today")
        return jacridge.select_bandwidth(X, y, rule, **options)

    monkeypatch.setattr(compare, "select_bandwidth", broken)
    good, bad = compare_rules(*table, ["jacobian", "median"], splits=2)
    assert good["r2_mean"] < 1
    assert bad == {"rule": "median", "error": "no median today"}


def test_a_failed_split_and_the_first_warning_are_noted(rng):
    X = np.repeat([[0.0], [1.0], [2.0], [5.0], [7.0], [8.0]], 20, axis=0)
    (row,) = compare_rules(X, X[:, 0] ** 2, ["jacobian_median"], splits=2)
    assert len(row["notes"]) == 1
    assert "rows repeat an earlier row" in row["notes"][0]


def test_copies_of_a_row_are_on_one_side_of_each_split(run, tmp_path, rng):
    """Boosted trees remembered the copies among their training rows, and were recommended."""
    numbers = rng.normal(size=(150, 2))
    lines = [f"{x},{y},{c}\n" for (x, y), c in zip(numbers, "abc" * 50, strict=True)]
    (tmp_path / "twice.csv").write_text("x,y,c\n" + 2 * "".join(lines))
    args = ("--target", "y", "--rules", "trees,linear", "--json")
    _, out, _ = run("compare", tmp_path / "twice.csv", *args)
    assert all(row["r2_mean"] < 0.1 for row in json.loads(out)["rules"])
    with pytest.raises(ValueError, match="needs at least 6 rows that differ, got 3"):
        compare_rules(np.tile(np.eye(3), (4, 1)), np.tile(np.arange(3.0), 4), ["linear"])


def test_few_rows_are_refused(table):
    X, y = table
    with pytest.raises(ValueError, match="needs at least 6 rows, got 5"):
        compare_rules(X[:5], y[:5], ["jacobian"])


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture_is_written_in_the_form_asked_for(tmp_path, suffix):
    row = {"rule": "a", "seconds": 0.1, "r2_mean": 0.5, "r2_std": 0.1}
    save_picture([row, {"rule": "b", "error": "no"}], str(tmp_path / f"p.{suffix}"))
    start = (tmp_path / f"p.{suffix}").read_bytes()[:8]
    assert start.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix])


def test_an_unknown_form_of_picture_leaves_nothing_behind(tmp_path):
    row = {"rule": "a", "seconds": 0.1, "r2_mean": 0.5, "r2_std": 0.1}
    with pytest.raises(ValueError, match="not supported"):
        save_picture([row], str(tmp_path / "p.nonsense"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("scores", "line"),
    [
        ((0.5, 0.595, 0.6), "A linear model is enough: trees 0.600, linear 0.595, auto 0.500."),
        ((0.7, 0.5, 0.6), "Best: auto 0.700, trees 0.600, linear 0.500."),
        ((0.0, 0.01, -0.1), "None of them predicts clearly better than the mean: linear 0.010,"),
    ],
)
def test_the_simplest_model_that_is_as_good_is_named(scores, line):
    names = ("auto", "linear", "trees")
    rows = [{"rule": name, "r2_mean": score} for name, score in zip(names, scores, strict=True)]
    y = np.arange(9.0)
    assert compare.which_is_enough(rows, compare.TASKS["regression"], y).startswith(line)
    assert compare.which_is_enough(rows[1:], compare.TASKS["regression"], y) == ""


@pytest.mark.parametrize(
    ("losses", "line"),
    [
        ((0.30, 0.31, 0.50), "Best, judged by log loss: auto 0.300, linear 0.310, trees 0.500."),
        ((0.42, 0.42, 0.50), "A linear model is enough, judged by log loss: auto"),
        ((0.437, 0.435, 0.5), "None of them predicts clearly better than the frequencies of the"),
    ],
)
def test_classes_are_judged_by_log_loss(losses, line):
    """A rare class has a high accuracy without any model: all three had that of the prior."""
    y = np.arange(100) < 16
    rows = [
        {"rule": name, "accuracy_mean": 0.84, "log_loss_mean": loss}
        for name, loss in zip(("auto", "linear", "trees"), losses, strict=True)
    ]
    found = compare.which_is_enough(rows, compare.TASKS["classification"], y)
    assert found.startswith(line)
    assert ("log loss 0.440" in found) == line.startswith("None")


def test_classes_have_accuracy_log_loss_and_auc_on_test_rows(table):
    X, y = table
    y = y > np.quantile(y, 0.8)
    (row,) = compare_rules(X, y, ["linear"], splits=2, task=compare.TASKS["classification"])
    draws = StratifiedShuffleSplit(2, test_size=0.35, random_state=0).split(X, y)
    found = []
    for train, test in draws:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        p = model.fit(X[train], y[train]).predict_proba(X[test])[:, 1]
        scores = accuracy_score(y[test], p > 0.5), log_loss(y[test], p), roc_auc_score(y[test], p)
        found.append(scores)
    for key, expected in zip(("accuracy", "log_loss", "auc"), np.mean(found, axis=0), strict=True):
        assert row[f"{key}_mean"] == pytest.approx(expected, abs=1e-9)
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    (row,) = compare_rules(X, three, ["linear"], splits=2, task=compare.TASKS["classification"])
    assert "auc_mean" not in row


def test_test_rows_of_one_class_are_scored_by_the_probability_of_that_class(rng):
    """Their log loss was zero, as if every prediction were certain and right."""
    X = rng.standard_normal((60, 2))
    y = np.where(np.arange(60) < 40, X[:, 0] > 0, False)
    later = [(np.arange(40), np.arange(40, 60))]
    task = compare.TASKS["classification"]
    (row,) = compare_rules(X, y, ["linear"], task=task, later=later)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X[:40], y[:40])
    p = model.predict_proba(X[40:])[:, 0]
    assert row["log_loss_mean"] == pytest.approx(-np.log(p).mean(), rel=1e-9)
    assert row["accuracy_mean"] == pytest.approx((p > 0.5).mean())
    assert "auc_mean" not in row
    assert row["notes"] == []


def test_a_target_without_variation_is_refused(table):
    """The message was: not enough values to unpack."""
    X, _ = table
    with pytest.raises(ValueError, match=f"The target must vary, got 2.5 in all {len(X)} rows"):
        compare_rules(X, np.full(len(X), 2.5), ["linear"])


def test_a_target_that_varies_in_few_rows_has_no_score(run, tmp_path):
    """It is constant among the test rows, and R2 is not defined."""
    lines = "".join(f"{i * 7 % 31}.5,{(i == 0) + 1.5 * (i == 1)}\n" for i in range(40))
    (tmp_path / "t.csv").write_text("x,y\n" + lines)
    args = ("-t", "y", "--rules", "linear", "--splits", "1", "--held-out", "random")
    code, out, _ = run("compare", tmp_path / "t.csv", *args)
    assert (code, out.split()[-2:]) == (0, ["-", "-"])
