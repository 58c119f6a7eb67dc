"""The report as text: what stands in it, what is escaped, what its code does."""

import json
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

from inside import (
    OURS,
    TREES,
    Case,
    Folds,
    ModelSpec,
    _later,
    diagnosis,
    doubts,
    folds_of,
    follows_time,
    number,
    report_numbers,
    share,
    table_of,
    unrounded,
)
from jacridge import AutoKernelRidge, JacobianKernelRidge, select_bandwidth
from jacridge.diagnostics import Diagnosis, Finding
from jacridge.report import report_page, write_report


class Page(HTMLParser):
    """Elements by name, with their attributes and the text that they hold."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "attributes": dict(attributes), "text": ""}
        self.elements.append(element)
        self.open.append(element)

    def handle_endtag(self, tag):
        while self.open and self.open.pop()["tag"] != tag:
            pass

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag, **attributes):
        return [
            e
            for e in self.elements
            if e["tag"] == tag and attributes.items() <= e["attributes"].items()
        ]


def numbers_of(page):
    (script,) = Page(page).all("script", id="data")
    return json.loads(script["text"])


@pytest.fixture(scope="module")
def wave():
    rng = np.random.default_rng(5)
    X = np.sort(rng.uniform(0, 6, (60, 1)), axis=0)
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(60)


@pytest.fixture(scope="module")
def page(wave):
    options = {"features": ["hours"], "target": "height", "source": "tide.csv"}
    return report_page(*wave, bandwidth="jacobian", **options)


@pytest.fixture(scope="module")
def mixed():
    """Numbers, a text column, a constant, an id, a column that knows the target, duplicates."""
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(1)
    size, kind = rng.uniform(20, 200, 90), rng.choice(["flat", "house"], 90)
    y = 3000 * size * np.where(kind == "flat", 1, 1.5) + 1000 * rng.standard_normal(90)
    size[0] = 4000
    columns = {
        "size": size,
        "kind": kind,
        "always": np.ones(90),
        "row": np.arange(90.0),
        "tax": y * 0.01,
    }
    return pl.DataFrame(columns), y


@pytest.fixture(scope="module")
def chosen(mixed):
    """A report of a model that chose everything."""
    losses = ["10 of 100 rows have missing values and are left out: 10 lack `lot`."]
    return report_page(*mixed, target="price", left_out=10, losses=losses)


def charts_of(page):
    return {chart["id"]: chart for chart in numbers_of(page)["charts"]}


def test_every_element_that_is_opened_is_closed(page):
    void = {"meta", "link", "input", "!doctype"}
    depth = []
    for closing, tag in re.findall(r"<(/?)([a-z][a-z0-9]*)[^>]*>", page.split("<script")[0]):
        if tag in void:
            continue
        if closing:
            assert depth.pop() == tag
        else:
            depth.append(tag)
    assert depth == ["html", "body"]


def test_the_page_names_no_other_host(page):
    found = set(re.findall(r"https?://[^\s\"'<)]+", page))
    assert found == {"http://www.w3.org/2000/svg"}  # a name of the SVG language, not an address
    assert not re.findall(r"<(?:img|iframe|object|embed)\b|@import|url\((?!#)", page)
    assert "default-src 'none'" in page


def test_the_bandwidth_on_the_page_is_that_of_the_estimator(page, wave):
    X, y = wave
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    est = JacobianKernelRidge().fit(Z, y)
    assert f'bandwidth σ</td><td class="number">{est.bandwidth_:.3g}</td>' in page
    assert f"(R² = {1 - (est.loo_residuals_**2).mean() / y.var():.2f})" in page


def test_the_verdict_is_what_cross_validation_finds(mixed, chosen):
    """The same folds by hand: five of 90 rows, each model with all its choices."""
    frame, y = mixed
    hot = frame["kind"].to_numpy()[:, None] == ["flat", "house"]
    X = np.column_stack([frame.drop("kind").to_numpy(), hot])
    models = [AutoKernelRidge(random_state=0), HistGradientBoostingRegressor(random_state=0)]
    verdict = Page(chosen).all("p", id="verdict")[0]["text"]
    for model in models:
        predicted = np.empty(len(y))
        for train, test in KFold(5, shuffle=True, random_state=0).split(X):
            predicted[test] = model.fit(X[train], y[train]).predict(X[test])
        assert f"R² = {r2_score(y, predicted):.2f}" in verdict
    assert re.search(r"a linear model [01]\.\d\d", verdict)


def drift(n=100):
    """Rows in the order of time: a trend and a wave, hard to go on with, easy to fill in."""
    day = np.arange(1.0, n + 1)
    return np.column_stack([day, np.cos(day)]), day + 5 * np.sin(day / 5)


def test_rows_in_the_order_of_time_are_judged_by_later_ones():
    """The newest row comes first, as in many exports."""
    X, y = drift()
    given = {"features": ["day", "x"], "target": "level", "bandwidth": "jacobian"}
    page = report_page(X[::-1], y[::-1], **given)
    verdict, predicted = Page(page).all("p", id="verdict")[0]["text"], []
    for train, test in TimeSeriesSplit(3, test_size=20).split(X):
        Z = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
        predicted.append(JacobianKernelRidge().fit(Z[train], y[train]).predict(Z[test]))
    score = f"{r2_score(y[40:], np.concatenate(predicted)):.2f}".replace("-", "−")
    assert f"On rows later than those it was fitted to, the model reaches R² = {score}" in verdict
    assert "A linear model predicts better: prefer it." in verdict
    assert "but from its neighbours in time" in page
    assert "the rows are in order of <b>day</b>" in page


def test_rows_in_the_order_of_time_are_judged_by_any_if_told_so():
    X, y = drift()
    given = {"features": ["day", "x"], "target": "level", "bandwidth": "jacobian"}
    page = Page(report_page(X, y, held_out="random", **given))
    assert "On rows that it has not seen, the" in page.all("p", id="verdict")[0]["text"]
    with pytest.raises(ValueError, match="`held_out` must be one of"):
        report_page(X, y, held_out="sometimes", **given)


def test_a_model_of_rows_with_the_newest_first_is_that_of_rows_in_order():
    """Row by row, too: which of them it predicts far off is told by their numbers."""
    X, y = drift(60)
    found = [
        Case(table_of(X[::step], ["day", "x"], {}), y[::step], "level", ModelSpec())
        for step in (1, -1)
    ]
    assert {case.estimator.held_out for case in found} == {"later"}
    one, other = (case.loo_outputs[:: case.order.step] for case in found)
    np.testing.assert_allclose(one, other, rtol=1e-9)
    assert np.corrcoef(found[1].loo_outputs, y[::-1])[0, 1] > 0.9


def test_rows_of_one_time_are_not_divided_between_training_and_test():
    X, y = drift()
    X[:, 0] = np.repeat(2000 + np.arange(10.0), 10)  # ten rows a year, twenty a part
    X[59, 0] = X[60, 0]
    table = table_of(X, ["day (year)", "x"], {"day (year)": "day"})
    case = Case(table, y, "level", ModelSpec("jacobian"))
    assert folds_of(case).n_train == 80
    pairs = [(len(a), X[a, 0].max() < X[b, 0].min()) for a, b in _later(case)]
    assert pairs == [(40, True), (59, True), (80, True)]


@pytest.mark.parametrize(
    ("name", "order", "later"),
    [("x", 1, False), ("years", 1, True), ("Time", -1, True), ("day", 0, False)],
)
def test_only_sorted_columns_of_times_make_a_series(rng, name, order, later):
    x = np.arange(50.0) * order if order else rng.permutation(np.arange(50.0))
    assert follows_time(name, x) == later


def test_dates_in_no_order_are_told(rng):
    X = np.column_stack([rng.uniform(2000, 2010, 40), rng.normal(size=40)])
    given = {"features": ["day (year)", "x"], "parts": {"day (year)": "day"}}
    page = report_page(X, X[:, 1], **given, bandwidth="jacobian")
    assert "The rows are not in the order of <code>day</code>" in page
    assert "On rows that it has not seen" in page


def test_many_rows_are_judged_by_one_fit_to_some(rng):
    X = rng.normal(size=(2100, 2))
    case = Case(table_of(X, None, {}), X[:, 0], "y", ModelSpec(1.0))
    folds = folds_of(case)
    assert (folds.n_train, folds.count, len(folds.observed)) == (1500, 1, 600)


def test_copies_of_a_row_are_kept_aside_together(rng):
    """Boosted trees remembered the copies among their training rows, and "predicted" noise."""
    X, y = np.tile(rng.normal(size=(120, 2)), (2, 1)), np.tile(rng.normal(size=120), 2)
    folds = folds_of(Case(table_of(X, None, {}), y, "y", ModelSpec(1.0)))
    assert r2_score(folds.observed, folds.predicted[TREES]) < 0.1
    assert "Copies of a row were kept aside together." in folds.how


@pytest.mark.parametrize("levels", [6, 30])
def test_levels_are_judged_by_their_observations(rng, levels):
    """No level is predicted that the training rows do not have."""
    level = np.arange(120) % levels
    X, y = np.eye(levels)[level], level + rng.normal(size=120)
    folds = folds_of(Case(table_of(X, None, {}), y, "y", ModelSpec(1.0)))
    assert len(folds.observed) == 120
    assert r2_score(folds.observed, folds.predicted["this model"]) > 0.5


def test_levels_with_one_target_each_leave_nothing_to_keep_aside():
    level = np.arange(120) % 6
    case = Case(table_of(np.eye(6)[level], None, {}), level.astype(float), "y", ModelSpec(1.0))
    assert folds_of(case) is None


def test_models_of_folds_are_scaled_by_their_training_rows(rng):
    """One row far out would otherwise shrink its column in folds that keep it aside."""
    X, y = rng.standard_normal((40, 2)), rng.standard_normal(40)
    X[0, 0] = 1e3
    case = Case(table_of(X, None, {}), y, "y", ModelSpec(1.0))
    predicted, intervals = [], []
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        scaler = StandardScaler().fit(X[train])
        est = JacobianKernelRidge(1.0, 1e-3).fit(scaler.transform(X[train]), y[train])
        predicted.extend(est.predict(scaler.transform(X[test])))
        intervals.extend(np.column_stack(est.predict_interval(scaler.transform(X[test]), 0.9)))
    folds = folds_of(case)
    np.testing.assert_allclose(folds.predicted[OURS], predicted)
    np.testing.assert_allclose(folds.intervals, intervals)


def test_the_intervals_are_counted_on_rows_kept_aside(chosen):
    share = int(re.search(r"<b>(\d+)\xa0%</b> lie in their 90\xa0% interval", chosen)[1])
    assert 75 <= share <= 100
    # 95 % of a binomial of 90 rows, by SciPy.
    low, high = (f"{100 * k / 90:.0f}\xa0%" for k in binom.ppf([0.025, 0.975], 90, 0.9))
    assert f"by chance alone this share varies between {low} and {high}." in chosen
    bars, inside, missed = charts_of(chosen)["intervals"]["layers"]
    assert len(bars["x"]) == len(inside["x"]) + len(missed["x"]) == 90


def test_importances_are_of_columns_as_they_were_read(chosen):
    section = chosen[chosen.index('id="matters"') : chosen.index('id="effects"')]
    names = re.findall(r'<td class="name">(.*?)</td>', section)
    assert sorted(names) == ["always", "kind", "row", "size", "tax"]
    assert re.search(r'>always</td>.*?<td class="number">0</td>', section)


def test_effect_curves_show_numbers_as_lines_and_texts_as_levels(rng):
    pl = pytest.importorskip("polars")
    a, kind = rng.uniform(-1, 1, 80), rng.choice(["x", "y"], 80)
    page = report_page(pl.DataFrame({"a": a, "kind": kind}), 2 * a + (kind == "y"))
    charts = charts_of(page)
    spread, sure, line, rug = charts["effect-0"]["layers"]
    assert rug["kind"] == "rug"
    assert np.all(np.array(spread["low"]) <= sure["high"])
    assert "as a changes" in charts["effect-0"]["alt"]
    # A linear effect of slope 2, up to the shrinkage of the fit at the ends.
    slope = (line["y"][-1] - line["y"][0]) / (line["x"][-1] - line["x"][0])
    assert slope == pytest.approx(2, abs=0.1)
    levels = charts["effect-1"]
    assert levels["x"]["levels"] == ["x", "y"]
    assert np.diff(levels["layers"][1]["y"])[0] == pytest.approx(1, abs=0.1)


@pytest.fixture(scope="module")
def unlike():
    """Columns that need different axes: a long tail, a mark of gaps, a date out of order."""
    rng = np.random.default_rng(1)
    names = ["size", "income", "income (missing)", "day (year)"]
    columns = [rng.normal(size=80), rng.lognormal(9, 1.5, 80), np.arange(80) % 2, np.arange(80) % 7]
    X = np.column_stack(columns) + [0, 0, 0, 2000]
    y = X[:, 0] + np.log(X[:, 1]) + X[:, 2] + 0.3 * X[:, 3]
    given = {"features": names, "parts": {"day (year)": "day"}, "bandwidth": 4.0}
    remarks = [("gaps filled", "40 of 80 values of `income` are missing.")]
    return X, report_page(X, y, **given, remarks=remarks)


@pytest.mark.parametrize("kernel", ["matern32", "laplacian"])
def test_a_report_has_the_kernel_that_was_asked_for(wave, kernel):
    page = report_page(*wave, kernel=kernel)
    assert f"<td>kernel</td><td>{kernel}</td>" in re.sub(r'<td class="\w+">', "<td>", page)
    assert "The metric was chosen by the error on held-out rows" in page
    assert f"AutoKernelRidge(kernel=&#x27;{kernel}&#x27;" in page
    assert f"--kernel {kernel}" in page
    assert "--kernel" not in report_page(*wave, bandwidth="scale")


def test_an_unknown_kernel_of_a_report_is_refused(wave):
    with pytest.raises(ValueError, match="`kernel` must be one of 'gaussian'"):
        report_page(*wave, kernel="cubic")


def test_models_fitted_side_by_side_have_one_thread_each(wave, monkeypatch):
    """OpenMP keeps its number of threads for each thread that asks."""
    found = []

    def folds(case, each):
        found.extend(i["num_threads"] for i in threadpool_info() if i["user_api"] == "openmp")

    monkeypatch.setattr("jacridge.report.folds_of", folds)
    report_page(*wave, bandwidth="scale")
    assert set(found) == {1}


def test_what_speaks_against_the_model_in_the_verdict_does_so_below(rng):
    """A trend goes on after the last row, where a kernel model returns to the mean."""
    day = np.arange(80.0)
    y = day + 3 * np.sin(day / 3) + rng.standard_normal(80)
    page = report_page(day[:, None], y, features=["day"], bandwidth="loo", target="height")
    verdict = page[page.index("<h1") : page.index('id="performance"')]
    trust = page[page.index('id="trust"') : page.index('id="curious"')]
    assert "A linear model predicts better: prefer it." in re.sub("</?a[^>]*>", "", verdict)
    assert "No problems" not in trust
    assert "A linear model predicts these rows better." in trust
    assert "earlier values of <b>height</b> may help" in trust
    assert ("intervals hold only" in trust) == ("intervals that hold" in verdict)


def test_every_column_has_the_axis_that_it_needs(unlike):
    X, page = unlike
    captions = [e["text"] for e in Page(page).all("figcaption")]
    of = {captions[3 + i]: charts_of(page)[f"effect-{i}"] for i in range(4)}
    assert set(of) == {"size", "income", "income (missing)", "day"}
    assert (of["size"]["x"]["log"], of["income"]["x"]["log"]) == (False, True)
    ratios = np.array(of["income"]["layers"][0]["x"])
    assert np.ptp(ratios[1:] / ratios[:-1]) == pytest.approx(0, abs=1e-4)  # six digits are written
    ends = np.quantile(X[:, 1], [0.01, 0.99])
    assert ratios[[0, -1]] == pytest.approx(ends, rel=1e-5)
    rug = np.array(of["income"]["layers"][-1]["x"])
    assert ends[0] <= rug.min() <= rug.max() <= ends[1]
    assert of["income (missing)"]["x"]["levels"] == ["no", "yes"]
    assert of["day"]["x"]["years"]


def test_a_logarithmic_axis_is_said_to_be_one_and_straight_effects_have_none(unlike):
    chart = next(c for c in charts_of(unlike[1]).values() if c["x"].get("log"))
    assert chart["x"]["label"] == "logarithmic scale"
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(5, 1.5, 90), rng.normal(size=90)])
    page = report_page(X, 3 * X[:, 0] + X[:, 1], features=["height", "x"], bandwidth=50.0)
    assert charts_of(page)["effect-0"]["x"]["log"] is False
    assert "logarithmic" not in page


def test_only_months_that_occur_are_drawn_and_have_a_title_of_their_own(rng):
    angle = 2 * np.pi * (np.arange(60) % 4 + 2) / 12  # March to June
    X = np.column_stack([2000 + np.arange(60) / 12, np.sin(angle), np.cos(angle)])
    names = [f"month ({part})" for part in ("year", "month sine", "month cosine")]
    given = {"features": names, "parts": dict.fromkeys(names, "month"), "bandwidth": 2.0}
    page = report_page(X, np.sin(angle) + 0.1 * rng.normal(size=60), **given)
    of = {e["text"]: i for i, e in enumerate(Page(page).all("figcaption"))}
    assert "month of the year" in of
    levels = [c["x"]["levels"] for c in charts_of(page).values() if "levels" in c["x"]]
    assert levels == [["3", "4", "5", "6"]]


def test_dots_on_a_map_leave_out_the_effects_of_other_columns(rng):
    X = np.column_stack([rng.uniform(40, 50, (500, 2)), rng.normal(size=500)])
    y = X[:, 0] + 20 * X[:, 2]
    names = ["latitude", "longitude", "height"]
    page = report_page(X, y, features=names, bandwidth=10.0, alpha=1e-3)
    assert (
        "averaged over the other columns; dots are 400 of the 500 rows, coloured by the observed "
        "value, adjusted for the other columns"
    ) in page
    cells, dots = charts_of(page)["surface"]["layers"]
    seen = np.polyfit(dots["y"], dots["values"], 1)
    # Linear but for the shrinkage of the fit; without the adjustment the line explains little.
    assert seen[0] == pytest.approx(1, abs=0.1)
    assert np.std(np.polyval(seen, dots["y"]) - dots["values"]) < 0.5
    assert np.min(cells["values"]) - 1 < np.min(dots["values"])


def test_where_many_rows_are_left_out_a_command_shows_how_to_keep_them(wave):
    page = report_page(*wave, bandwidth="jacobian", source="a.csv", left_out=40)
    lines = blocks(page)["On the command line"].splitlines()
    assert lines[2] == "# This page leaves out 40 of 100 rows. To use them all:"
    assert lines[3] == "jacridge report a.csv --target y --rule jacobian --missing impute"
    few = report_page(*wave, bandwidth="jacobian", left_out=3)
    assert len(blocks(few)["On the command line"].splitlines()) == 2


def test_rows_of_one_day_are_drawn_at_their_hours():
    hour = np.arange(96.0)
    angle = 2 * np.pi * hour / 24
    day = 2020 + hour // 8 / 366  # twelve days, as ten make a series
    names = [f"t ({part})" for part in ("year", "hour sine", "hour cosine")]
    X = np.column_stack([day, np.sin(angle), np.cos(angle)])
    given = {"features": names, "parts": dict.fromkeys(names, "t"), "bandwidth": 2.0}
    x = charts_of(report_page(X, np.sin(angle), **given))["series"]["layers"][0]["x"]
    expected = np.sort(day + hour % 24 / 24 / 366)
    np.testing.assert_allclose(x, expected, atol=1e-5)


def test_a_series_of_days_is_a_line_and_noise_is_dots(rng):
    hour = 2 * np.arange(240.0)
    wave, noise = np.sin(hour / 24 * 2 * np.pi), rng.normal(size=240)
    X = np.column_stack([2020 + hour / 24 / 366, wave, noise])
    names = {"features": ["t (year)", "u", "v"], "parts": {"t (year)": "t"}, "bandwidth": 2.0}
    kinds = [
        charts_of(report_page(X, y, alpha=0.1, **names))["series"]["layers"][1]["kind"]
        for y in (wave, noise)
    ]
    assert kinds == ["line", "dots"]


def test_marks_of_gaps_and_remarks_of_the_caller_can_be_read(unlike):
    page = unlike[1]
    assert ">income (missing): yes - no</td>" in page
    assert "40 of 80 values of <code>income</code> are missing." in page


def test_names_may_be_broken_after_underscores_only(wave):
    page = report_page(wave[0], wave[1], features=["time_of_day"], bandwidth="jacobian")
    assert '<td class="name">time_<wbr>of_<wbr>day</td>' in page


@pytest.mark.parametrize(
    ("ours", "words"),
    [
        (
            0.0,
            "A linear model predicts as well, and it is simpler: prefer it. "
            "No other problems were found.",
        ),
        (
            0.5,
            '<a href="#trust">⚠ A linear model predicts better</a>: prefer it.',
        ),
    ],
)
def test_a_simple_model_that_would_do_is_told(rng, ours, words):
    """The errors of our model are those of the linear one, and more."""
    X = rng.normal(size=(40, 2))
    y, error = X[:, 0], 0.1 * rng.normal(size=40)
    case = Case(table_of(X, None, {}), y, "y", ModelSpec(2.0))
    outputs = {OURS: y + error + ours, TREES: 0 * y, "linear model": y + error}
    case.__dict__.update(diagnosis=None, loo_outputs=outputs[OURS])
    ends = np.column_stack([y - 1, y + 1])
    assert doubts(case, Folds(y, outputs, {}, ends, 30, 1), []) == words


def test_a_simple_model_that_is_better_by_every_score_is_said_to_be_so(rng):
    X = rng.normal(size=(40, 2))
    y, error = X[:, 0], 0.1 * rng.normal(size=40)
    case = Case(table_of(X, None, {}), y, "y", ModelSpec(2.0))
    case.__dict__["diagnosis"] = None
    outputs = {OURS: y + 1.1 * error, TREES: 0 * y, "linear model": y + error}
    words = doubts(case, Folds(y, outputs, {}, np.column_stack([y - 1, y + 1]), 30, 1), [])
    assert words.startswith(
        "A linear model predicts a little better, and it is simpler: prefer it. No other"
    )


def judged(y, ours, trees=None, linear=None, half_width=1.0):
    """The verdict's doubts on a model with these predictions of all rows."""
    case = Case(table_of(np.arange(len(y))[:, None] % 7, None, {}), y, "y", ModelSpec(2.0))
    case.__dict__["diagnosis"] = None
    case.__dict__["loo_outputs"] = ours
    nothing = np.full(len(y), y.mean() + 10 * y.std())
    others = [nothing if found is None else found for found in (trees, linear)]
    outputs = dict(zip((OURS, TREES, "linear model"), (ours, *others), strict=True))
    ends = np.column_stack([ours - half_width, ours + half_width])
    return case, Folds(y, outputs, {}, ends, 30, 1)


def test_a_model_with_the_higher_r2_or_the_smaller_error_is_named(rng):
    """One large error costs R², many small ones the typical error."""
    y = rng.normal(size=100)
    ours, trees = y + 0.1, y + 0.11
    ours[0] += 1.1
    words = doubts(*judged(y, ours, trees, half_width=3), [])
    assert words.startswith(
        "Boosted trees reach the higher R², this model the smaller typical error. "
    )
    ours, trees = y + 0.1, y + 0.09
    trees[0] += 1.1
    words = doubts(*judged(y, ours, trees, half_width=3), [])
    assert words.startswith(
        "Boosted trees reach the smaller typical error, this model the higher R². "
    )


def test_a_much_smaller_typical_error_is_better_where_r2_is_the_same(rng):
    """R² hangs on one value that no model predicts."""
    y = np.r_[rng.normal(size=60), 1e4]
    ours, trees = np.r_[y[:60] + 0.5, 0], np.r_[y[:60] + 0.2, 0]
    assert "Boosted trees predict better</a>: prefer them." in doubts(*judged(y, ours, trees), [])


def test_a_row_predicted_far_off_is_named_as_the_table_has_it(rng):
    y = rng.normal(size=50)
    y[7] = 12.125
    ours = y + 0.1
    ours[7] = 0.0
    case, folds = judged(y, ours, half_width=1.0)
    assert 'To check: <a href="#performance">row 8 predicted far off</a>.' in doubts(
        case, folds, []
    )
    text = report_numbers.words(case, folds)
    assert "row 8 (observed 12.125, predicted 0)" in text
    assert re.search(r"Without it R² is 0.99 instead of 0\.\d\d", text)


def test_rows_far_off_that_hardly_change_r2_do_so_without_a_word(rng):
    y = np.r_[10 * rng.normal(size=400), 10.0]
    ours = y + 0.01
    ours[-1] -= 3.0
    text = report_numbers.words(*judged(y, ours))
    assert "row 401 (observed 10, predicted 7" in text
    assert "Without it" not in text


def test_where_no_model_beats_the_mean_none_is_recommended(rng):
    y = rng.normal(size=100)
    mean, worse = np.full(100, y.mean()), y.mean() + 0.3 * rng.normal(size=100)
    words = doubts(*judged(y, mean, worse, mean + 0.01, half_width=3), [])
    nothing = "⚠ None of them predicts <b>y</b> better than its mean."
    assert words == f'<a href="#trust">{nothing}</a>'


def test_columns_that_move_no_prediction_have_no_effects(rng):
    """Bars and charts would enlarge what is nothing."""
    page = report_page(rng.normal(size=(150, 3)), rng.normal(size=150), alpha=1e6, bandwidth=2.0)
    text = Page(page).all("section", id="matters")[0]["text"]
    assert (
        "No column changes the predictions of y by more than 2\xa0% of its standard deviation."
        in text
    )
    assert "Importance" not in text
    assert "Average effects" not in text
    assert "effect-0" not in charts_of(page)


def effects_of(page):
    """Rows of the table of average effects: name, effect and the rest."""
    table = page[page.index("Average effects") : page.index('id="quality"')]
    rows = re.findall(r"<tr><td class=\"name\">(.*?)</td>(.*?)</tr>", table)
    return {name: re.findall(r">([^<]*)</td>", rest) for name, rest in rows}


def test_the_average_effect_of_a_hump_is_not_tested(rng):
    """It is near zero, and the column matters."""
    X = rng.uniform(-1, 1, (120, 2))
    y = X[:, 0] ** 2 + X[:, 1] + 0.05 * rng.normal(size=120)
    page = report_page(X, y, features=["hump", "line"], bandwidth=1.0)
    found = effects_of(page)
    assert found["hump (rises and falls)"][-1] == "–"
    assert found["line"][-1] == "&lt; 0.001"
    assert "the average says little: see its chart" in page


def test_a_constant_column_takes_nothing_from_the_chart_of_the_others(rng):
    """One other column has its curve, and two have a surface."""
    X = np.column_stack([np.full(60, 7.0), rng.uniform(0, 6, (60, 2))])
    y = np.sin(X[:, 1]) + 0.1 * rng.standard_normal(60)
    options = {"bandwidth": 2.0, "kernel": "matern52"}
    found = [charts_of(report_page(X[:, :p], y, **options))["surface"] for p in (2, 3)]
    assert [chart["x"]["label"] for chart in found] == ["x1", "x1"]
    assert [chart["y"]["label"] for chart in found] == ["y", "x2"]
    assert "fitted curve" in found[0]["alt"]


def test_charts_of_a_sample_say_how_many_rows_it_has(rng):
    X = np.sort(rng.uniform(0, 6, (1500, 1)), axis=0)
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(1500)
    page = report_page(X, y, bandwidth=0.5, features=["hour"])
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    assert sum(", 1,200 of the 1,500 rows" in caption for caption in captions) == 3
    assert "1,200 observations" in charts_of(page)["surface"]["alt"]


def test_a_unit_in_the_name_of_the_target_stands_after_its_errors(rng):
    X = rng.uniform(size=(60, 2))
    y = 300 * X[:, 0] + rng.standard_normal(60)
    page = report_page(X, y, bandwidth=2.0, target="price [1000 €]")
    assert re.search(r"is typically off by <b>[\d.]+\N{NO-BREAK SPACE}1000 €</b>", page)
    assert re.search(r"median width of the intervals is [\d.]+\N{NO-BREAK SPACE}1000 €\.", page)


def test_columns_that_say_the_same_are_named_as_pairs(rng):
    X = rng.normal(size=(60, 2))
    X = np.column_stack([X, np.exp(X[:, 0]), -X[:, 1], rng.normal(size=60)])
    page = report_page(X, X[:, 0], features=["a", "b", "exp_a", "minus_b", "c"], bandwidth=2.0)
    text = Page(page).all("section", id="quality")[0]["text"]
    assert (
        "Columns that say nearly the same share one effect each: a and exp_a; b and minus_b. "
        "Leave one out"
    ) in text


def test_a_season_is_an_effect_as_large_as_its_chart_is_high(rng):
    month = np.arange(96) % 12
    angle = month / 6 * np.pi
    X = np.column_stack([2010 + np.arange(96) / 12, np.sin(angle), np.cos(angle)])
    names = ["day (year)", "day (month sine)", "day (month cosine)"]
    given = {"features": names, "parts": dict.fromkeys(names, "day"), "bandwidth": 3.0}
    page = report_page(X, 5 * np.sin(angle), **given)
    (dots,) = [
        layer["y"] for layer in charts_of(page)["effect-1"]["layers"] if layer["kind"] == "dots"
    ]
    effect, *rest = effects_of(page)["day (month): 4 - 10"]
    assert float(effect) == pytest.approx(np.ptp(dots), abs=0.01)  # three digits are shown
    assert rest == ["–", "–", "–"]


def test_a_column_that_gives_the_target_away_is_named_in_the_verdict(rng):
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 1e-4 * rng.normal(size=60)
    page = report_page(X, y, features=["pounds", "age"], target="kilos", bandwidth=2.0)
    verdict = Page(page).all("p", id="verdict")[0]["text"]
    assert "To check: ⚠ pounds may give kilos away" in verdict
    assert "prefer" not in verdict


def test_small_errors_of_a_function_without_noise_are_not_far_off(rng):
    y = rng.normal(size=100)
    ours = y + 1e-6
    ours[3] += 1e-3
    assert "far off" not in doubts(*judged(y, ours), [])


@pytest.fixture(scope="module")
def tenfold():
    """600 rows of which one is ten times too high, and is not among those kept aside."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, (600, 2))
    y = 100 * X[:, 0] * X[:, 1] * np.exp(0.05 * rng.normal(size=600))
    case = Case(table_of(X, None, {}), y, "price", ModelSpec(2.0))
    out = int(np.setdiff1d(np.arange(600), folds_of(case).rows)[0])
    y[out] = 10 * round(y[out])
    return report_page(X, y, target="price", bandwidth=2.0, alpha=0.01), out, y


def test_an_error_of_the_target_is_found_in_rows_that_were_not_kept_aside(tenfold):
    page, out, y = tenfold
    verdict = Page(page).all("p", id="verdict")[0]["text"]
    assert f"row {out + 1} predicted far off" in verdict
    assert f"row {out + 1} (observed {y[out]:.0f}, predicted" in page


def test_a_leave_one_out_score_below_the_comparison_is_not_called_favourable(tenfold):
    page, out, _ = tenfold
    assert "more favourable" not in page
    assert f"row {out + 1}, which is predicted far off, is not among its rows" in page


def test_a_row_far_off_is_drawn_at_the_edge_and_leaves_the_axis_to_the_others(tenfold):
    page, out, y = tenfold
    for name in ("observed", "residuals"):
        chart = charts_of(page)[name]
        far = chart["layers"][2]
        assert (far["look"], len(far["x"])) == ("miss", 1)
        assert far["y"][0] < chart["y"]["high"] < 0.6 * y[out]
    assert "rows far off are orange" in page


def test_a_leave_one_out_score_that_flatters_is_a_doubt(rng):
    y = rng.normal(size=200)
    case, folds = judged(y, y + 0.5 * rng.normal(size=200), half_width=2.0)
    case.__dict__["loo_outputs"] = y + 0.1 * rng.normal(size=200)
    assert re.search(r"R² of 0\.\d\d against 0\.99 by leave-one-out", doubts(case, folds, []))


@pytest.mark.parametrize(("n", "doubt"), [(40, False), (400, True)])
def test_coverage_is_judged_by_the_number_of_rows(rng, n, doubt):
    """Of 40 rows 85 % say nothing against 90 %, of 400 they do."""
    y = rng.normal(size=n)
    ours = y + np.where(np.arange(n) < 0.15 * n, 1.1, 0)
    assert ("intervals that hold 85\xa0%" in doubts(*judged(y, ours, y + 3), [])) == doubt


def test_an_outlier_of_the_target_stands_in_the_verdict_with_its_row(rng):
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 400_000
    y[16] = 19_100_000
    page = report_page(X, y, target="price", bandwidth=2.0)
    verdict, trust = (Page(page).all(tag, id=name)[0]["text"] for tag, name in PLACES)
    quality = Page(page).all("section", id="quality")[0]["text"]
    assert "⚠ a value of price far from all others (19,100,000, in row 17)" in verdict
    assert "lies far from the rest: 19,100,000, in row 17. Is it correct?" in quality
    assert "Is it correct?" not in trust  # which has a link instead


def test_values_of_a_long_tail_are_no_doubt(rng):
    y = np.exp(rng.normal(size=400))
    page = report_page(rng.normal(size=(400, 1)), y, bandwidth=2.0)
    assert "far from the rest of <code>y</code>" in page
    assert "far from all others" not in page


PLACES = (("p", "verdict"), ("section", "trust"))


def test_rows_and_categories_that_were_lost_stand_in_the_verdict_and_in_trust(wave):
    losses = [
        "40 of 100 rows have missing values and are left out: 40 lack `lot`.",
        "No row with `kind` = 'flat' is left: all 30 lack `lot`.",
    ]
    page = report_page(*wave, left_out=40, losses=losses, bandwidth="loo", alpha="loo")
    verdict, trust = (Page(page).all(tag, id=name)[0]["text"] for tag, name in PLACES)
    lost = "To check: ⚠ 40 of 100 rows left out and ⚠ no row with kind = 'flat' is left."
    assert lost in verdict
    assert "To check: 2 remarks on the data." in trust
    assert "⚠ category lost" in Page(page).all("section", id="quality")[0]["text"]


def test_a_choice_that_lost_is_no_check_that_was_passed(wave):
    X, y = wave
    case = Case(table_of(X, None, {}), y, "y", ModelSpec())
    for loss, doubt in ((0.1, True), (0.001, False)):
        finding = Finding("gain of the choice", -loss, False, "An error of 0.3, 0.1 more.")
        case.__dict__["diagnosis"] = Diagnosis((finding,))
        text = diagnosis(case, None, [])
        assert "0 more numbers, none of them a reason for doubt" in text
        assert ("⚠ loss of the choice" in text) == doubt


def test_how_rows_were_kept_aside_is_said_in_plain_words(rng, chosen):
    assert (
        "All 90 rows were kept aside in turn: each fifth was predicted by a model fitted to the "
        "other four"
    ) in chosen
    assert "Intervals of rows kept aside; missed" in chosen
    X = rng.normal(size=(130, 1))
    page = report_page(X, X[:, 0], bandwidth=1.0)
    assert "Intervals of 100 rows, a sample of the 130 kept aside; missed" in page


def test_four_digits_have_a_comma_beside_larger_numbers():
    """Others may be years."""
    assert (unrounded(2006.0), unrounded(-4700.0, 447_400.0)) == ("2006", "−4,700")


def test_small_values_are_written_as_the_table_has_them():
    """Below 1e-5 numbers have powers of ten everywhere."""
    written = [unrounded(v) for v in (1.0169570364e-06, -2.5e-10, 1e-5, 0.0, 1e15)]
    assert written == ["1.01696 × 10⁻⁶", "−2.5 × 10⁻¹⁰", "0.00001", "0", "1 × 10¹⁵"]


def test_the_chart_of_errors_says_what_an_error_is(chosen):
    assert "Errors (observed minus predicted) against predictions" in chosen
    assert charts_of(chosen)["residuals"]["y"]["label"] == "error"


def test_one_style_of_numbers_and_of_r2(mixed, chosen):
    text = re.sub(r"<(script|style|pre).*?</\1>", "", chosen, flags=re.DOTALL)
    assert not re.findall(r"\bR2\b|\d[eE][+-]\d", text)


def test_too_few_rows_have_effects_without_standard_errors(rng):
    """Ten rows that the model follows leave no degree of freedom."""
    X = rng.normal(size=(10, 4))
    page = report_page(X, X[:, 0], bandwidth=1.0, alpha=1e-4)
    effects = page[page.index("<h3>Average effects") : page.index('id="quality"')]
    assert "too few rows for standard errors" in effects
    assert "95 % interval" not in effects
    assert len(re.findall('class="name"', effects)) == 4
    assert all("sure" not in str(chart) for chart in charts_of(page).values())
    assert "than the comparison" not in page
    enough = report_page(*np.split(rng.normal(size=(60, 5)), [4], axis=1), bandwidth=4.0, alpha=1.0)
    assert "95 % interval</th>" in enough


def test_effects_that_are_nothing_are_not_drawn(rng):
    """A large penalty leaves a constant, whose axis would have the same number four times."""
    X = rng.normal(size=(60, 2))
    drawn = [
        "effect-0" in charts_of(report_page(X, X[:, 0], bandwidth=2.0, alpha=alpha))
        for alpha in (0.1, 1e7)
    ]
    assert drawn == [True, False]


def test_candidates_are_shown_with_the_score_that_ranks_them(mixed, chosen):
    table = chosen[chosen.index("<h3>Kernels and metrics") : chosen.index("<h3>Bandwidth and")]
    assert "ranked by the R² of 98 % of these rows, without the hardest 2 %" in table
    scores = re.findall(
        r'<td class="number">([−\d.]+)</td><td class="number">[^<]*</td></tr>', table
    )
    frame, y = mixed
    hot = frame["kind"].to_numpy()[:, None] == ["flat", "house"]
    X = np.column_stack([frame.drop("kind").to_numpy(), hot])
    found = AutoKernelRidge(random_state=0).fit(X, y).choices_[: len(scores)]
    assert [f"{1 - row['trimmed_error']:.3f}".replace("-", "−") for row in found] == scores


def test_a_metric_that_was_given_is_said_to_be_so(rng):
    pytest.importorskip("pyproj")
    X = rng.uniform(40, 50, (30, 2))
    names = {"features": ["latitude", "longitude"], "target": "depth"}
    page = report_page(X, X[:, 0], **names, metric="geodesic", kernel="exponential")
    assert "Kernel and metric were given." in page
    assert "only uses <code>latitude</code> and <code>longitude</code>. Other columns" in page
    page = report_page(X, X[:, 0], metric="diagonal", features=["a", "b"])
    assert "leave-one-out. The metric was given." in page


def test_the_page_tells_how_to_read_effects(chosen):
    assert "How to read a chart: its title is a column" in chosen


def test_average_effects_are_in_the_order_of_importance(rng):
    X = rng.normal(size=(60, 3))
    page = report_page(X, X @ [0.1, 3.0, 1.0], bandwidth=3.0)
    table = re.search(r"<div class=blocks>.*?</table>", page, re.DOTALL)[0]
    assert re.findall(r'<td class="name">(\w+)</td>', table) == ["x1", "x2", "x0"]


def test_the_parts_of_a_date_have_a_chart_each(rng):
    """The season of a target that depends on the month alone is seen over the months."""
    month = rng.integers(0, 12, 120)
    angle = 2 * np.pi * month / 12
    X = np.column_stack([rng.uniform(2000, 2005, 120), np.sin(angle), np.cos(angle)])
    names = ["day (year)", "day (month sine)", "day (month cosine)"]
    parts = dict.fromkeys(names, "day")
    page = report_page(X, np.cos(angle), features=names, parts=parts, bandwidth=2.0)
    charts = charts_of(page)
    assert [charts[f"effect-{i}"]["x"].get("years", False) for i in range(2)] == [True, False]
    assert charts["effect-1"]["x"]["levels"] == [str(i) for i in range(1, 13)]
    (means,) = [layer["y"] for layer in charts["effect-1"]["layers"] if layer["kind"] == "dots"]
    # A ridge fit, which is close to the target and not equal.
    np.testing.assert_allclose(means, np.cos(2 * np.pi * np.arange(12) / 12), atol=0.05)
    assert "<figcaption>day (month)</figcaption>" in page


def test_intervals_that_hold_too_few_rows_speak_against_a_model(rng):
    y = rng.normal(size=40)
    case = Case(table_of(y[:, None], None, {}), y, "y", ModelSpec(2.0))
    case.__dict__["diagnosis"] = None
    ends = np.column_stack([y - 1, np.where(np.arange(40) < 20, y + 1, y - 0.5)])
    outputs = {OURS: y, TREES: 0 * y, "linear model": 0 * y}
    assert doubts(case, Folds(y, outputs, {}, ends, 30, 1), []) == (
        'To check: <a href="#performance">90\xa0% intervals that hold 50\xa0% of the rows</a>.'
    )


@pytest.mark.parametrize(
    "words",
    [
        "10 of 100 rows have missing values and are left out: 10 lack <code>lot</code>.",
        "<code>always</code> has the same value in all rows.",
        "<code>row</code> looks like an id",
        "<code>tax</code> orders the rows almost as <code>price</code> does",
        "One value of <code>size</code> lies far from the rest: 4000, in row 1 of the remaining "
        "rows.",
    ],
)
def test_what_is_wrong_with_the_data_is_said(chosen, words):
    assert words in chosen[chosen.index('id="quality"') : chosen.index('id="trust"')]


def test_dates_of_a_data_frame_are_refused_and_not_one_hot(rng):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"day": pandas.date_range("2020-01-01", periods=30), "x": 1.0})
    with pytest.raises(TypeError, match="got dates in column 'day'"):
        report_page(frame, rng.normal(size=30))


def test_duplicate_rows_are_counted(wave):
    X, y = np.repeat(wave[0][:20], 2, axis=0), np.repeat(wave[1][:20], 2)
    page = report_page(X, y, bandwidth="jacobian")
    assert "20 of 40 rows have the same features as an earlier row." in page


def test_longitude_goes_across_and_latitude_upwards(rng):
    X = rng.uniform([47, 6], [55, 15], (60, 2))
    page = report_page(X, X[:, 0], features=["lat", "lon"], bandwidth="jacobian")
    chart = charts_of(page)["surface"]
    assert (chart["x"]["label"], chart["y"]["label"]) == ("lon", "lat")
    values = np.array(chart["layers"][0]["values"])
    assert values[-1].mean() > values[0].mean()  # y grows with latitude, upwards
    assert len(chart["layers"][1]["x"]) == 60


def test_a_date_is_drawn_as_a_series(rng):
    names = ["day (year)", "day (month sine)", "x"]
    X = np.column_stack([np.linspace(2000, 2010, 60), rng.uniform(-1, 1, (60, 2))])
    parts = dict.fromkeys(names[:2], "day")
    page = report_page(X, X[:, 0], features=names, parts=parts, bandwidth="jacobian")
    axis = charts_of(page)["series"]["x"]
    assert (axis["label"], axis["years"]) == ("day", True)
    shown = [cell["text"] for cell in Page(page).all("td")]
    assert shown.count("day") == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (451_900.0, "452,000"),
        (0.8512, "0.851"),
        (1987.2, "1,990"),
        (12.0, "12"),
        (1.5e-7, "1.5&nbsp;×&nbsp;10⁻⁷"),
        (0.0000641, "0.0000641"),
        (0.29999, "0.300"),
        (0.3, "0.3"),
        (99.99, "100"),
        (np.nan, "–"),
        (-23_456, "−23,500"),
    ],
)
def test_numbers_are_written_as_people_write_them(value, text):
    assert number(value) == text


def test_a_score_just_below_zero_has_no_minus():
    assert (share(-0.004), share(-0.006), share(0.85)) == ("0.00", "−0.01", "0.85")


def column_rows(page):
    """Cells of the table of columns, by name."""
    part = page[page.index("Range, mean and standard deviation") : page.index('id="trust"')]
    rows = re.findall(r'<td class="name">(.*?)</td>(.*?)</tr>', part)
    return {name: re.findall(r">([^<>]*)</td>", cells) for name, cells in rows}


def test_lowest_and_highest_values_are_shown_as_they_are(rng):
    names = ["sold (year)", "sold (month sine)", "built", "size", "share"]
    X = np.column_stack([*rng.uniform(size=(5, 40))])
    X[:, 0] += 2018
    X[:2, 0] = 2018 + 31 / 366, 2023 + 180 / 366
    X[:, 2] = 1950 + np.arange(40)
    X[:2, 3], X[:2, 4] = (9999, 123_456), (0.1, -0.25)
    parts = dict.fromkeys(names[:2], "sold")
    y = rng.uniform(size=40)
    rows = column_rows(report_page(X, y, features=names, parts=parts, bandwidth=2.0))
    assert rows["built"][::2] == ["1950", "1989"]
    assert rows["size"][2] == "123,456"
    assert rows["built"][1] == "1970"  # 1969.5, with a deviation of 11.5: no comma, three digits
    assert rows["share"][0] == "−0.25"
    assert rows["sold (date)"][2] == "2023-06-30"
    assert rows["y"][0] == f"{y.min():.6g}"
    assert "sold (month sine)" not in rows


def test_progress_is_told_step_by_step(wave):
    told = []
    report_page(*wave, bandwidth="jacobian", progress=lambda *at: told.append(at))
    assert [done for done, _, _ in told] == [0, 1, 2, 3]


def test_the_sliders_start_at_the_chosen_point(page, wave):
    X, y = wave
    data = numbers_of(page)
    i, j = data["start"]
    est = JacobianKernelRidge().fit((X - X.mean()) / X.std(), y)
    assert data["sigmas"][j] == pytest.approx(est.bandwidth_, rel=1e-5)
    assert data["lambdas"][i] == pytest.approx(1e-3)
    assert data["loo"][i][j] == pytest.approx((est.loo_residuals_**2).mean(), rel=1e-5)
    slopes = np.abs(est.jacobian((X - X.mean()) / X.std()))
    assert data["slopes"][i][j] >= slopes.max() * (1 - 1e-5)


@pytest.mark.parametrize("i", [0, 8, 16])
@pytest.mark.parametrize("j", [5, 15])
def test_a_point_of_the_grid_is_a_fit_of_its_own(page, wave, i, j):
    X, y = wave
    Z = (X - X.mean()) / X.std()
    data = numbers_of(page)
    sigma, lam = data["sigmas"][j], data["lambdas"][i]
    est = JacobianKernelRidge(bandwidth=sigma, alpha=lam).fit(Z, y)
    # Small penalties lose digits in an eigendecomposition; the page shows six at most.
    assert data["loo"][i][j] == pytest.approx((est.loo_residuals_**2).mean(), rel=1e-3)
    everywhere = np.linspace(Z.min(), Z.max(), 5000)[:, None]
    steepest = np.abs(est.jacobian(everywhere)).max()
    # Found at a few hundred places, not everywhere.
    assert 0.6 * steepest < data["slopes"][i][j] <= 1.001 * steepest


def test_the_curve_is_the_prediction_with_its_interval(page, wave):
    X, y = wave
    band, dots, line = charts_of(page)["surface"]["layers"]
    x = np.array(line["x"])[:, None]
    est = JacobianKernelRidge().fit((X - X.mean()) / X.std(), y)
    new = (x - X.mean()) / X.std()
    # Charts have five digits.
    np.testing.assert_allclose(line["y"], est.predict(new), atol=1e-3)
    np.testing.assert_allclose(band["low"], est.predict_interval(new)[0], atol=1e-3)
    assert len(dots["x"]) == 60


def test_observed_values_are_drawn_against_leave_one_out_predictions(page, wave):
    X, y = wave
    est = JacobianKernelRidge().fit((X - X.mean()) / X.std(), y)
    dots = charts_of(page)["observed"]["layers"][1]
    np.testing.assert_allclose(dots["y"], y, rtol=1e-4)
    np.testing.assert_allclose(dots["x"], y - est.loo_residuals_, rtol=1e-3, atol=1e-4)


def test_the_verdict_points_to_what_speaks_against_the_model(wave):
    """A bandwidth far below the distance of neighbours follows the noise."""
    narrow = Page(report_page(*wave, bandwidth=0.01)).all("p", id="verdict")[0]["text"]
    assert re.search(r"To check: \d findings? on the model\.", narrow)
    fine = Page(report_page(*wave, bandwidth="loo", alpha="loo")).all("p", id="verdict")[0]["text"]
    assert "No problems were found." in fine


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>&amp;\"'"


def test_names_are_shown_as_text_and_never_run(wave):
    X, y = wave
    names = {"features": [HOSTILE, "b"], "target": HOSTILE, "source": HOSTILE + ".csv"}
    page = report_page(np.column_stack([X, X**2]), y, bandwidth="jacobian", **names)
    parsed = Page(page)
    assert len(parsed.all("script")) == 2
    assert not parsed.all("img")
    assert HOSTILE in parsed.all("h1")[0]["text"]
    assert charts_of(page)["surface"]["x"]["label"] == HOSTILE
    assert HOSTILE in [cell["text"] for cell in parsed.all("td")]


def test_the_columns_of_a_data_frame_give_the_names(wave):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(wave[0], columns=["hours"])
    page = report_page(frame, wave[1], bandwidth="jacobian")
    assert "hours" in [cell["text"] for cell in Page(page).all("td")]


def blocks(page):
    """The code on the page, by title."""
    found = re.findall(r"<h3>([^<]*)</h3><pre[^>]*><code>(.*?)</code>", page, flags=re.S)
    return {title: unescape(code) for title, code in found}


@pytest.mark.parametrize(
    ("bandwidth", "standardize", "heavy"),
    [
        ("auto", True, True),
        ("auto", True, False),
        ("auto", False, True),
        ("jacobian", True, False),
        ("jacobian", False, True),
    ],
)
def test_both_blocks_of_code_run_and_predict_the_same(
    tmp_path, monkeypatch, table, standardize, bandwidth, heavy
):
    """Also for a learned metric, whose map is written out with ten digits."""
    pl = pytest.importorskip("polars")
    X, y = table
    if heavy:  # a column that the learned metric compresses
        X = X.copy()
        X[:, 0] = np.sinh(3 * X[:, 0])
    frame = pl.DataFrame(np.column_stack([X, y]), schema=["a", "b (in cm)", "c's", "y"])
    frame.write_csv(tmp_path / "my data.csv")
    monkeypatch.chdir(tmp_path)
    names = frame.columns[:3]
    options = {"features": names, "source": "my data.csv", "standardize": standardize}
    code = blocks(report_page(X, y, bandwidth=bandwidth, alpha=0.01, **options))
    has_map = bandwidth == "auto" and standardize
    assert ("arcsinh" in code["scikit-learn only"]) == (heavy and has_map)

    predictions = []
    for title in ("Python", "scikit-learn only"):
        names = {}
        exec(code[title], names)
        predictions.append(names["model"].predict(names["X"]))
    np.testing.assert_allclose(*predictions, atol=1e-6)


def test_lines_of_code_are_short_enough_to_read(rng):
    pl = pytest.importorskip("polars")
    kinds = {f"kind of column {i}": rng.choice(["a", "b"], 40) for i in range(8)}
    sizes = {f"a column with a long name {i}": rng.standard_normal(40) for i in range(8)}
    page = report_page(pl.DataFrame(sizes | kinds), rng.standard_normal(40), bandwidth="scale")
    lines = blocks(page)["Python"].splitlines()
    assert max(map(len, lines)) <= 100
    compile("\n".join(lines), "code", "exec")


def test_python_code_is_left_out_where_it_could_not_read_the_file_as_we_did(rng):
    """Of a table with dates, whose parts are no columns of the file."""
    X = np.column_stack([np.linspace(2000, 2004, 40), rng.standard_normal(40)])
    names = ["when (year)", "size"]
    options = {"bandwidth": "scale", "features": names, "options": ["--decimal", ","]}
    page = report_page(X, X[:, 1], parts={"when (year)": "when"}, **options)
    assert list(blocks(page)) == ["On the command line"]
    assert (
        "because it would have to repeat how the dates in <code>when</code> became numbers and how "
        "decimal commas were read."
    ) in page


def test_many_rows_are_landmarks_in_scikit_learn_s_code_too(tmp_path, monkeypatch, size, rng):
    pl = pytest.importorskip("polars")
    size("exact rows", 100)
    size("landmarks", 200)
    monkeypatch.chdir(tmp_path)
    X = rng.uniform(-1, 1, (300, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1]
    pl.DataFrame(np.column_stack([X, y]), schema=["a", "b", "y"]).write_csv("data.csv")
    code = blocks(report_page(X, y, features=["a", "b"], bandwidth=1.0))["scikit-learn only"]
    assert "Nystroem(" in code
    names = {}
    exec(code, names)
    # Other landmarks, but enough of them for a function as smooth as this.
    assert names["model"].score(names["X"], y) > 0.99


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("standardize", [True, False])
def test_texts_in_a_data_frame_are_one_hot(tmp_path, monkeypatch, rng, kind, standardize):
    frames = pytest.importorskip(kind)
    pytest.importorskip("polars")
    columns = {"kind": ["a", "b'c", "<d>"] * 10, "size": rng.normal(size=30)}
    y = columns["size"] + np.tile([0.0, 1.0, 0.0], 10)
    text = "\n".join(f"{k},{s},{t}" for k, s, t in zip(*columns.values(), y, strict=True))
    (tmp_path / "t.csv").write_text("kind,size,y\n" + text)
    monkeypatch.chdir(tmp_path)
    options = {"source": "t.csv", "standardize": standardize}
    page = report_page(frames.DataFrame(columns), y, bandwidth="jacobian", **options)

    shown = [cell["text"] for cell in Page(page).all("td")]
    assert {"size", "kind = a", "kind = b'c", "kind = <d>"} <= set(shown)
    size = columns["size"] - columns["size"].mean() if standardize else columns["size"]
    size = size / size.std() if standardize else size
    hot = np.array(columns["kind"])[:, None] == ["<d>", "a", "b'c"]
    est = JacobianKernelRidge().fit(np.column_stack([size, hot]), y)
    for title in ("Python", "scikit-learn only"):
        names = {}
        exec(blocks(page)[title], names)
        predicted = names["model"].predict(names["X"])
        np.testing.assert_allclose(predicted, est.predict(est.X_fit_), atol=1e-8)


@pytest.mark.parametrize(
    ("bandwidth", "alpha", "words"),
    [
        ("jacobian", 1e-3, "--rule jacobian"),
        ("jacobian", np.float64(0.5), "--rule jacobian --alpha 0.5"),
        ("loo", 1e-3, "--rule loo"),
        ("auto", None, ""),
        ("auto", 1e-3, "--alpha 0.001"),
        (np.float64(0.25), "loo", "--rule 0.25 --alpha loo"),
        (lambda problem: 0.25, 1e-3, "--rule 0.25"),
        (0.25, [0.1], "--rule 0.25 --alpha 0.1"),
    ],
)
def test_the_command_asks_for_what_was_asked_for(wave, bandwidth, alpha, words):
    X, y = (part[:20] for part in wave)
    page = report_page(X, y, bandwidth=bandwidth, alpha=alpha, source="a.csv")
    command = blocks(page)["On the command line"].splitlines()[0]
    assert command == f"jacridge fit a.csv --target y {words} -o model.skops".replace("  ", " ")


def test_the_command_reads_the_file_as_the_report_did(wave):
    options = ("--drop", "my id", "--no-header")
    code = blocks(report_page(*wave, bandwidth="jacobian", source="a.csv", options=options))
    fit, predict = code["On the command line"].splitlines()
    assert "a.csv --target y --drop 'my id' --no-header --rule jacobian -o" in fit
    assert "new.csv --no-header -o" in predict
    assert "has_header=False" in code["Python"]


def test_a_function_as_bandwidth_is_a_number_in_the_code(wave):
    page = report_page(*wave, bandwidth=lambda problem: 0.5)
    assert "The bandwidth was given." in page
    assert "JacobianKernelRidge(bandwidth=0.5, alpha=0.001" in blocks(page)["Python"]


def test_rows_that_were_left_out_are_counted(wave):
    page = report_page(*wave, left_out=3, bandwidth="jacobian")
    assert "60 rows, 1 feature, 3 of 63 rows in the file are left out." in page


def test_a_report_of_standard_input_reads_some_file_in_its_code(wave):
    page = report_page(*wave, bandwidth="jacobian", source="-")
    assert "in standard input" in Page(page).all("h1")[0]["text"]
    assert "pl.read_csv('data.csv'" in blocks(page)["Python"]


def test_many_rows_are_sampled_and_the_page_says_so(rng, size):
    size("report sample", 50)
    X = rng.standard_normal((70, 3))
    page = report_page(X, X[:, 0], bandwidth="jacobian")
    assert "a random sample of 50 of the 70 rows" in page
    assert len(numbers_of(page)["observed"]) == 50


def test_the_same_data_give_the_same_page(wave):
    first, second = (
        re.sub(
            r"in [\d.]+ s\.|<td class=\"number\">(?:&lt; )?[\d.,]+</td></tr>",
            "",
            report_page(*wave),
        )
        for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize("y", [np.full(60, 3.0), np.repeat("3", 60)])
def test_a_constant_target_is_refused(wave, y):
    with pytest.raises(ValueError, match="The target `height` must vary, got 3 in all 60 rows"):
        report_page(wave[0], y, target="height")


def test_a_penalty_of_zero_is_drawn_at_the_low_end(wave):
    data = numbers_of(report_page(wave[0], wave[1], bandwidth="jacobian", alpha=0))
    assert data["start"][0] == 0


def test_a_constant_column_is_no_trouble(wave):
    X = np.column_stack([wave[0], np.ones(60)])
    assert "R² =" in report_page(X, wave[1])


def test_nine_rows_are_too_few_for_a_report():
    with pytest.raises(ValueError, match="at least 10 rows with a value of `y` and no gaps, got 9"):
        report_page(np.arange(9.0)[:, None], np.arange(9.0), bandwidth=1.0)


def test_names_must_match_the_columns(wave):
    with pytest.raises(ValueError, match="`features` must name the 1 columns of `X`, got 2 names"):
        report_page(*wave, features=["a", "b"])


def test_several_targets_are_refused(wave):
    with pytest.raises(ValueError, match="A report has one target, got 2 columns in `y`"):
        report_page(wave[0], np.column_stack([wave[1], wave[1]]))


def test_a_report_is_written_whole_or_not_at_all(tmp_path, wave):
    path = tmp_path / "report.html"
    path.write_text("before")
    with pytest.raises(ValueError, match="features"):
        write_report(path, *wave, features=["a", "b"])
    assert path.read_text() == "before"
    assert write_report(path, *wave, bandwidth="jacobian") == path
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.slow
def test_many_rows_make_a_page_under_two_megabytes(rng):
    """Of more than 250 rows a sample is drawn; eight hundred are enough to see it."""
    X = rng.uniform(-1, 1, (800, 8))
    page = report_page(X, np.sin(3 * X[:, 0]) * X[:, 1], bandwidth="jacobian")
    assert len(page.encode()) < 2e6


def test_the_diagnosis_names_the_columns(table):
    X, _ = table
    y = 2 * X[:, 0] + 0.1 * X[:, 1]
    page = report_page(X, y, features=["age", "dose", "ratio"])
    assert "R² of the best single feature, age" in page


@pytest.mark.parametrize("bandwidth", ["auto", "jacobian"])
def test_the_rules_side_by_side_take_standardised_columns(rng, bandwidth):
    """Rules that use the variance of all entries would see the means of latitude and longitude."""
    X = rng.normal((55.0, 13.0), (1.5, 2.0), (60, 2))
    page = report_page(X, X[:, 0] + rng.standard_normal(60), bandwidth=bandwidth, random_state=0)
    table = re.search(r'<div class="scroll rules".*?</table>', page, re.DOTALL)[0]
    found = re.findall(r"<code>(\w+)</code></td>(?:<td.*?>(.*?)</td>)<td.*?>(.*?)</td>", table)
    sigma = {rule: value for rule, _, value in found}
    Z = StandardScaler().fit_transform(X)
    for rule in ("silverman", "scale", "jacobian"):
        assert sigma[rule] == number(select_bandwidth(Z, rule=rule).sigma)
