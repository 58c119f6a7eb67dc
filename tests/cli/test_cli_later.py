"""Tables in the order of time: models are chosen, compared and scored on later rows."""

import json

import numpy as np
import polars as pl
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import TimeSeriesSplit

from inside import CRITERIA
from jacridge import AutoKernelRidge
from jacridge.report import report_page

PLAIN = ("--no-standardize",)
CHOSEN = (
    "Note: The rows are in order of `year`, so the model is chosen by later rows. Use --held-out "
    "random for rows at random.\n"
)


@pytest.fixture
def months(rng):
    """A trend, a season and noise, of 15 years; the year, its fraction and a wave."""
    t = np.arange(180)
    y = 0.03 * t + np.sin(2 * np.pi * t / 12) + 0.2 * rng.standard_normal(180)
    return np.column_stack([2000 + t / 12, np.sin(2 * np.pi * t / 12)]), y


@pytest.fixture
def table(months, tmp_path):
    X, y = months
    pl.DataFrame({"year": X[:, 0], "wave": X[:, 1], "y": y}).write_csv(tmp_path / "t.csv")
    return tmp_path / "t.csv"


@pytest.fixture
def newest_first(table, tmp_path):
    pl.read_csv(table).reverse().write_csv(tmp_path / "new.csv")
    return tmp_path / "new.csv"


def fitted(run, table, tmp_path, *options):
    code, out, err = run("fit", table, "-t", "y", "-o", tmp_path / "m.skops", "--json", *options)
    assert code == 0, err
    return json.loads(out), err


def test_a_fit_is_chosen_by_later_rows_and_scored_on_the_last_fifth(run, table, months, tmp_path):
    found, err = fitted(run, table, tmp_path)
    assert CHOSEN in err
    X, y = months
    est = AutoKernelRidge(held_out="later", random_state=0)
    assert found["sigma"] == pytest.approx(est.fit(X, y).bandwidth_)
    score = est.fit(X[:144], y[:144]).score(X[144:], y[144:])
    assert found["later_r2"] == pytest.approx(score)
    assert score > 0.8


def test_effects_and_report_say_that_later_rows_choose_the_model(run, table, tmp_path):
    few = tmp_path / "few.csv"
    pl.read_csv(table).head(60).write_csv(few)
    for args in (["effects", few], ["report", few, "-o", tmp_path / "r.html"]):
        code, _, err = run(*args, "-t", "y", "--kernel", "gaussian", "--metric", "diagonal")
        assert code == 0
        assert CHOSEN in err
    assert CHOSEN not in run("effects", few, "-t", "y", "--held-out", "random")[2]


def test_rows_with_the_newest_first_are_fitted_in_the_order_of_time(
    run, table, newest_first, tmp_path
):
    one, other = (fitted(run, file, tmp_path)[0] for file in (table, newest_first))
    assert one["sigma"] == other["sigma"]
    assert one["later_r2"] == other["later_r2"]


def test_a_fit_holds_out_random_rows_if_told_so(run, table, months, tmp_path):
    found, err = fitted(run, table, tmp_path, "--held-out", "random")
    assert "later_r2" not in found
    assert "which flatters models that have to predict the future.\n" in err
    assert found["sigma"] == pytest.approx(AutoKernelRidge(random_state=0).fit(*months).bandwidth_)


def test_rows_without_a_time_are_in_order_if_told_so(run, months, tmp_path):
    X, y = months
    pl.DataFrame({"a": X[:, 0] * np.cos(X[:, 0]), "y": y}).write_csv(tmp_path / "t.csv")
    assert "later_r2" not in fitted(run, tmp_path / "t.csv", tmp_path)[0]
    assert "later_r2" in fitted(run, tmp_path / "t.csv", tmp_path, "--held-out", "later")[0]


def test_a_comparison_predicts_each_part_from_those_before(run, table, newest_first, months):
    X, y = months
    trees, scores = HistGradientBoostingRegressor(random_state=0), []
    ours = AutoKernelRidge(held_out="later", random_state=0)
    for train, test in TimeSeriesSplit(2).split(X):
        scores.append([m.fit(X[train], y[train]).score(X[test], y[test]) for m in (ours, trees)])
    for file in (table, newest_first):
        args = ("-t", "y", "--rules", "auto,trees", "--splits", "2", "--json", "--no-standardize")
        code, out, _ = run("compare", file, *args)
        assert code == 0
        found = json.loads(out)
        assert found["judged_on"] == "later rows"
        means = [row["r2_mean"] for row in found["rules"]]
        np.testing.assert_allclose(means, np.mean(scores, axis=0), rtol=1e-7)


def test_one_split_has_the_last_third_as_later_rows(run, table, months):
    X, y = months
    args = ("-t", "y", "--rules", "trees", "--splits", "1", "--no-standardize", "--json")
    (row,) = json.loads(run("compare", table, *args)[1])["rules"]
    trees = HistGradientBoostingRegressor(random_state=0).fit(X[:120], y[:120])
    assert row["r2_mean"] == pytest.approx(trees.score(X[120:], y[120:]))


def test_fewer_than_twenty_rows_are_not_held_out(run, table, tmp_path):
    pl.read_csv(table).head(19).write_csv(tmp_path / "few.csv")
    found, err = fitted(run, tmp_path / "few.csv", tmp_path)
    assert "later_r2" not in found
    assert "which flatters models" in err
    assert "So there is no score" not in err
    _, err = fitted(run, tmp_path / "few.csv", tmp_path, "--held-out", "later")
    assert "there are too few rows, or a class" in err
    assert "So there is no score on later rows.\n" in err


def test_few_rows_are_compared_at_random(run, table, tmp_path):
    pl.read_csv(table).head(29).write_csv(tmp_path / "few.csv")
    args = ("-t", "y", "--rules", "linear", "--splits", "5", "--json")
    for asked in ([], ["--held-out", "later"]):
        _, out, err = run("compare", tmp_path / "few.csv", *args, *asked)
        assert json.loads(out)["judged_on"] == "random rows"
        assert ("there are too few rows" in err and "So the splits are random.\n" in err) == bool(
            asked
        )


def test_a_class_that_is_yet_to_come_is_told(run, months, tmp_path):
    X, _ = months
    kind = np.where(np.arange(180) % 2, "odd", "even").astype(object)
    kind[-10:] = "new"
    file = tmp_path / "t.csv"
    pl.DataFrame({"a": X[:, 1], "b": np.cos(X[:, 0]), "y": kind.astype(str)}).write_csv(file)
    found, err = fitted(run, file, tmp_path, "--held-out", "later")
    assert "later_accuracy" not in found
    assert "a class occurs only in the last ones. So there is no score on later rows.\n" in err
    args = ("-t", "y", "--rules", "linear", "--held-out", "later", "--json")
    _, out, err = run("compare", file, *args)
    assert json.loads(out)["judged_on"] == "random rows"
    assert "a class occurs only in the last ones. So the splits are random.\n" in err


@pytest.mark.parametrize("alpha", CRITERIA)
@pytest.mark.parametrize("space", [("--metric", "euclidean"), ("-m", "scaled"), PLAIN])
def test_a_criterion_chooses_the_penalty_where_later_rows_choose_nothing(
    run, table, tmp_path, space, alpha
):
    asked = ("--alpha", alpha, "-k", "gaussian", *space)
    found, err = fitted(run, table, tmp_path, *asked)
    assert "later_r2" not in found
    assert "which flatters models that have to predict the future.\n" in err
    assert run("effects", table, "-t", "y", *asked)[0] == 0


def test_a_rule_leaves_the_metric_to_later_rows(run, table, tmp_path):
    found, err = fitted(run, table, tmp_path, "--rule", "jacobian", "--metric", "diagonal")
    assert "so the model is chosen by later rows." in err
    assert "later_r2" in found


@pytest.mark.slow
def test_a_report_by_leave_one_out_is_written_for_rows_in_the_order_of_time(months):
    options = {"alpha": "loo", "kernel": "gaussian", "metric": "scaled"}
    text = report_page(*months, features=["year", "x"], **options)
    assert "Kernel and metric were given. Bandwidth and penalty were chosen by leave-one" in text


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--rule", "jacobian"], "must not be later with --rule jacobian: nothing is chosen"),
        (["--metric", "geodesic"], "must not be later with --metric geodesic: nothing is chosen"),
        (
            ["--alpha", "loo", "-k", "gaussian", "--no-standardize"],
            "must not be later with --alpha loo, --kernel gaussian and --no-standardize: nothing",
        ),
        (["--engine", "dask"], "must be auto or random with --engine dask, got later"),
    ],
)
def test_later_rows_are_refused_where_nothing_is_chosen_by_them(run, table, tmp_path, options, why):
    args = ("-t", "y", "-o", tmp_path / "m.skops", "--held-out", "later", *options)
    code, _, err = run("fit", table, *args)
    assert code == 2
    assert f"Invalid value for --held-out: {why}" in " ".join(err.split())


def test_effects_are_those_of_the_fitted_model(run, table, newest_first, months):
    found = [
        json.loads(run("effects", file, "-t", "y", "--json")[1])["effects"]["estimate"]
        for file in (table, newest_first)
    ]
    est = AutoKernelRidge(held_out="later", random_state=0).fit(*months)
    np.testing.assert_allclose(found[0], est.effects(months[0]).dict()["estimate"], rtol=1e-7)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


@pytest.mark.slow
def test_a_report_has_the_model_that_later_rows_chose(run, table, newest_first, months, tmp_path):
    est = AutoKernelRidge(held_out="later", random_state=0).fit(*months)
    for file, is_turned in ((table, False), (newest_first, True)):
        page = tmp_path / "r.html"
        assert run("report", file, "-t", "y", "-o", page)[0] == 0
        text = page.read_text()
        assert "Kernel, metric, bandwidth and penalty were chosen by the error on later" in text
        assert "AutoKernelRidge(held_out=&#x27;later&#x27;, random_state=0)" in text
        assert ("&#x27;y&#x27;]).reverse()\n" in text) == is_turned
        assert est.kernel_ in text
