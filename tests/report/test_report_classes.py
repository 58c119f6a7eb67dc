"""The report of a classifier."""

import json
import re
from html import unescape

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import (
    confusion_matrix,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)
from sklearn.model_selection import StratifiedKFold

from jacridge import JacobianKernelClassifier
from jacridge.report import report_page


def numbers_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page)[1])


def charts_of(page):
    return {chart["id"]: chart for chart in numbers_of(page)["charts"]}


@pytest.fixture(scope="module")
def moons():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    return X, np.where(X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=90) > 0, "yes", "no")


@pytest.fixture(scope="module")
def page(moons):
    return report_page(*moons, features=["a", "b"], target="ok", bandwidth="scale")


@pytest.fixture(scope="module")
def held_out(moons):
    """The same folds by hand: probabilities of each row by models that have not seen it."""
    X, y = moons
    models = {
        "ours": JacobianKernelClassifier("scale", 1e-3, random_state=0),
        "trees": HistGradientBoostingClassifier(random_state=0),
    }
    found = {name: [] for name in models}
    order = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        order.append(test)
        Z = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
        for name, model in models.items():
            rows = Z if name == "ours" else X
            found[name].append(model.fit(rows[train], y[train]).predict_proba(rows[test]))
    parts = {name: np.concatenate(p) for name, p in found.items()}
    return y[np.concatenate(order)], parts


def test_the_verdict_has_the_accuracy_of_rows_not_seen_and_the_table_the_log_loss(page, held_out):
    y, P = held_out
    right = {name: np.mean((p[:, 1] > 0.5) == (y == "yes")) for name, p in P.items()}
    loss = {name: log_loss(y, p) for name, p in P.items()}
    assert f"<b>{100 * right['ours']:.0f}\xa0%</b> of the cases; on the same" in page
    assert f"boosted trees reach {100 * right['trees']:.0f}\xa0%, logistic regression" in page
    for name in P:
        cells = f'{right[name]:.2f}</td><td class="number">{loss[name]:.3g}</td>'
        assert cells in page


def test_of_two_classes_the_rare_one_is_shown_and_how_many_of_its_rows_are_found(rng):
    X = rng.normal(size=(200, 2))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=200) > 1.5, "fraud", "ok")
    page = report_page(X, y, target="label", bandwidth="scale")
    found = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        Z = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
        model = JacobianKernelClassifier("scale", 1e-3, random_state=0).fit(Z[train], y[train])
        found += model.predict(Z[test])[y[test] == "fraud"].tolist()
    share = 100 * np.mean(np.array(found) == "fraud")
    assert f"Of the rows with label = fraud, it finds {share:.0f}\xa0%." in page
    assert "mean probability of label = fraud" in page
    assert "Are probabilities of label = fraud true?" in page


def test_where_no_model_beats_the_shares_of_the_classes_the_verdict_says_so(rng):
    page = report_page(rng.normal(size=(200, 2)), np.arange(200) % 3 == 0, target="z", alpha=100.0)
    assert "None of them predicts <b>z</b> better than the shares of its classes do." in page


def test_the_confusion_matrix_is_scikit_learn_s(page, held_out):
    y, P = held_out
    cells = re.findall(r'<td class="number" style="--share:\d+%">(\d+)</td>', page)
    wanted = confusion_matrix(y, np.where(P["ours"][:, 1] > 0.5, "yes", "no"))
    assert [int(cell) for cell in cells] == wanted.ravel().tolist()


def test_the_area_under_the_roc_is_scikit_learn_s(page, held_out):
    y, P = held_out
    curve = charts_of(page)["roc"]["layers"][-1]
    area = np.trapezoid(curve["y"], curve["x"])
    assert area == pytest.approx(roc_auc_score(y == "yes", P["ours"][:, 1]), abs=1e-5)  # six digits


def test_the_calibration_curve_is_the_share_of_the_class_in_each_bin(page, held_out):
    y, P = held_out
    dots = charts_of(page)["calibration"]["layers"][-1]
    p = P["ours"][:, 1]
    count = min(10, len(p) // 25)
    first = np.argsort(p, kind="stable")[: -(-len(p) // count)]  # array_split: the first are larger
    assert len(dots["x"]) == count
    assert f"Each dot stands for about {round(len(p) / count)} rows" in page
    assert dots["x"][0] == pytest.approx(P["ours"][first, 1].mean(), rel=1e-5)
    assert dots["y"][0] == pytest.approx(np.mean(y[first] == "yes"), rel=1e-5)


def test_effects_are_probabilities_of_the_second_class(page):
    chart = charts_of(page)["effect-0"]
    assert chart["y"]["label"] == "probability"
    assert "Each line is the mean probability of ok = yes as one column changes" in page
    assert all(0 <= v <= 1 for v in chart["layers"][-2]["y"])  # the rug comes after the line


def test_three_classes_have_a_line_each(rng):
    X = rng.normal(size=(60, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    page = report_page(X, y, bandwidth="scale")
    *lines, _ = charts_of(page)["effect-0"]["layers"]  # the rug comes last
    assert [line["look"] for line in lines] == ["c1", "c2 dashed", "c3 dotted"]


@pytest.mark.parametrize("classes", [2, 3])
def test_both_blocks_of_code_give_the_classes_of_the_model_and_their_probabilities(
    tmp_path, monkeypatch, rng, classes
):
    pl = pytest.importorskip("polars")
    X = rng.normal(size=(40, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [0.0, 0.7][: classes - 1])]
    frame = pl.DataFrame({"u": X[:, 0], "v": X[:, 1], "kind": y})
    frame.write_csv(tmp_path / "data.csv")
    page = report_page(frame.drop("kind"), y, target="kind", bandwidth=1.0)
    monkeypatch.chdir(tmp_path)
    found = []
    for block in re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", page, re.DOTALL)[:2]:
        *lines, last = unescape(block).strip().splitlines()
        names = {}
        exec("\n".join([*lines, f"labels = {last}"]), names)
        found.append(names)
    ours, plain = found
    assert ours["labels"].tolist() == plain["labels"].tolist()
    P = ours["model"].predict_proba(ours["X"])
    np.testing.assert_allclose(P if classes == 3 else P[:, 1], plain["probability"], rtol=1e-5)


def test_rare_classes_and_columns_that_tell_the_class_are_named(rng):
    X = np.column_stack([rng.normal(size=150), np.repeat([0.0, 1.0, 2.0], [2, 70, 78])])
    y = np.array(["odd", "one", "two"])[X[:, 1].astype(int)]
    page = report_page(X, y, features=["noise", "code"], bandwidth="scale")
    assert "Only 2 rows of <code>y</code> = <code>odd</code>" in page
    assert "<code>code</code> alone tells the classes apart" in page


def test_a_class_of_few_rows_leaves_the_comparison_out(rng):
    X = rng.normal(size=(30, 1))
    y = np.r_[["rare"] * 2, ["often"] * 28]
    assert "Too few rows for a comparison" in report_page(X, y, bandwidth="scale")


def test_a_task_that_is_not_known_is_refused(moons):
    with pytest.raises(ValueError, match="`task` must be one of 'auto', 'regression'"):
        report_page(*moons, task="ranking")


def test_two_numbers_are_classes_unless_the_task_is_given():
    X = np.linspace(0, 1, 30)[:, None]
    y = (X[:, 0] > 0.5) * 1.0
    assert "finds the right class" in report_page(X, y, bandwidth=0.3)
    assert "R² =" in report_page(X, y, bandwidth=0.3, task="regression")


def test_the_area_and_other_thresholds_are_scikit_learn_s(page, held_out):
    y, P = held_out
    p, seen = P["ours"][:, 1], y == "yes"
    area = roc_auc_score(seen, p)
    assert f'1 at best: <span class="key c1">this model {area:.3g}</span>' in page
    for least in (0.2, 0.5, 0.7):
        found, right = recall_score(seen, p > least), precision_score(seen, p > least)
        cells = [f"{np.sum(p > least)}", f"{100 * found:.0f}\xa0%", f"{100 * right:.0f}\xa0%"]
        row = "".join(f'<td class="number">{cell}</td>' for cell in cells)
        assert f'<td class="name">{least}</td>{row}' in page


def rows_of_effects(page):
    table = page[page.index("<h3>Average effects") : page.index('id="quality"')]
    rows = re.findall(r'<tr><td class="name">(.*?)</td>(.*?)</tr>', table)
    return {name: re.findall(r">([^<]*)</td>", rest) for name, rest in rows}


@pytest.mark.parametrize("rare", ["fraud", "scam"])
def test_effects_of_two_classes_are_those_on_the_probability_that_is_drawn(rng, rare):
    """The rare class comes before the other one, or after it."""
    X = rng.normal(size=(150, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=150) > 1.2, rare, "ok")
    page = report_page(X, y, target="label", bandwidth="scale")
    assert f"How much the probability of <b>label = {rare}</b> changes" in page
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    est = JacobianKernelClassifier("scale", 1e-3, random_state=0).fit(Z, y)
    row, sign = next(iter(est.effects())), 1 if rare == "scam" else -1
    effect, error, interval, _ = rows_of_effects(page)["x0"]
    assert float(effect) == pytest.approx(sign * row.estimate / X[:, 0].std(), rel=6e-3)
    assert float(effect) > 0
    assert float(error) == pytest.approx(row.std_error / X[:, 0].std(), rel=6e-3)
    low, high = (float(end.replace("−", "-")) for end in interval.split(" to "))
    assert low < float(effect) < high


def test_effects_of_three_classes_name_the_class(rng):
    X = rng.normal(size=(90, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    page = report_page(X, y, target="kind", bandwidth="scale")
    table = page[page.index("<h3>Average effects") : page.index('id="quality"')]
    assert "the probability of a class of <b>kind</b>" in table
    often = sorted("abc", key=list(y).count, reverse=True)
    assert sorted(re.findall(r'data-label="class">(\w)<', table)[:3]) == sorted(often)


def test_of_many_classes_the_command_has_the_effects(rng):
    X = rng.normal(size=(100, 2))
    y = np.digitize(X[:, 0], [-0.8, -0.3, 0.3, 0.8]).astype(str)
    page = report_page(X, y, bandwidth="scale")
    assert "prints the average effects on the probabilities of all 5 classes." in page
    assert 'data-label="effect"' not in page
