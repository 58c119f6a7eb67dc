"""The report as text: what stands in it, what is escaped, what its code does."""

import json
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

from jacridge import JacobianKernelRidge
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
    return report_page(*wave, features=["hours"], target="height", source="tide.csv")


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
    assert f"σ = {est.bandwidth_:.4g}" in page
    r2 = 1 - (est.loo_residuals_**2).mean() / y.var()
    assert f"R² = {r2:.4g}" in page


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


def unpacked(packed, shape):
    import base64

    whole = np.frombuffer(base64.b64decode(packed["base64"]), f"<u{packed['bits'] // 8}")
    share = whole / (2 ** packed["bits"] - 1)
    return (packed["low"] + share * (packed["high"] - packed["low"])).reshape(shape)


def test_the_curve_is_the_prediction_to_a_thousandth_of_the_range(page, wave):
    X, y = wave
    data = numbers_of(page)
    i, j = data["start"]
    x = np.array(data["fit"]["x"])
    shape = len(data["lambdas"]), len(data["sigmas"]), len(x)
    drawn = unpacked(data["fit"]["values"], shape)[i, j]
    est = JacobianKernelRidge().fit((X - X.mean()) / X.std(), y)
    predicted = est.predict(((x - X.mean()) / X.std())[:, None])
    np.testing.assert_allclose(drawn, predicted, atol=1e-3 * np.ptp(y))


def test_the_surface_runs_along_the_first_feature_first(surface):
    X, y = surface
    data = numbers_of(report_page(X, y, standardize=False))
    i, j = data["start"]
    x, x_2 = (np.array(data["fit"][side]) for side in ("x", "x_2"))
    shape = len(data["lambdas"]), len(data["sigmas"]), len(x_2), len(x)
    drawn = unpacked(data["fit"]["values"], shape)[i, j]
    est = JacobianKernelRidge().fit(X, y)
    at = est.predict([[x[20], x_2[9]], [x[9], x_2[20]]])
    # 8 bits: one part in 255 of the range that is drawn.
    np.testing.assert_allclose([drawn[9, 20], drawn[20, 9]], at, atol=0.01 * np.ptp(y))


def test_the_page_gives_one_leave_one_out_r2(rng, monkeypatch):
    """The verdict and the diagnosis say the same, also where the latter looks at a sample."""
    monkeypatch.setattr("jacridge._fitting.EXACT_ROWS", 100)
    X = rng.standard_normal((300, 2))
    page = report_page(X, X[:, 0] + rng.standard_normal(300))
    verdict = re.search(r"<b>R² = ([-\d.]+)</b>", page)[1]
    diagnosis = re.search(r'leave-one-out R2</td><td class="number">([-\d.]+)<', page)[1]
    assert verdict == diagnosis


def test_the_verdict_points_to_what_speaks_against_the_choice(wave):
    """A bandwidth far below the distance of neighbours follows the noise."""
    lead = {"class": "lead"}
    narrow = Page(report_page(*wave, bandwidth=0.01)).all("p", **lead)[0]["text"]
    assert re.search(r"\d findings? speaks? against this choice", narrow)
    fine = Page(report_page(*wave, bandwidth="loo", alpha="loo")).all("p", **lead)[0]["text"]
    assert "against" not in fine


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>&amp;\"'"


def test_names_are_shown_as_text_and_never_run(wave):
    X, y = wave
    page = report_page(X, y, features=[HOSTILE], target=HOSTILE, source=HOSTILE + ".csv")
    parsed = Page(page)
    assert len(parsed.all("script")) == 2
    assert not parsed.all("img")
    assert HOSTILE in parsed.all("h1")[0]["text"]
    assert numbers_of(page)["fit"]["names"] == [HOSTILE]
    assert HOSTILE in [cell["text"] for cell in parsed.all("td")]


def test_the_columns_of_a_data_frame_give_the_names(wave):
    pd = pytest.importorskip("pandas")
    page = report_page(pd.DataFrame(wave[0], columns=["hours"]), wave[1])
    assert "hours" in [cell["text"] for cell in Page(page).all("td")]


def blocks(page):
    """The code on the page, by title."""
    found = re.findall(r"<h3>(.*?)</h3><pre[^>]*><code>(.*?)</code>", page, flags=re.S)
    return {title: unescape(code) for title, code in found}


@pytest.mark.parametrize("standardize", [True, False])
def test_both_blocks_of_code_run_and_predict_the_same(tmp_path, monkeypatch, table, standardize):
    pl = pytest.importorskip("polars")
    X, y = table
    frame = pl.DataFrame(np.column_stack([X, y]), schema=["a", "b (in cm)", "c's", "y"])
    frame.write_csv(tmp_path / "my data.csv")
    monkeypatch.chdir(tmp_path)
    names = frame.columns[:3]
    options = {"features": names, "source": "my data.csv", "standardize": standardize}
    code = blocks(report_page(X, y, alpha=0.01, **options))

    predictions = []
    for title in ("Python", "scikit-learn only"):
        names = {}
        exec(code[title], names)
        predictions.append(names["model"].predict(names["X"]))
    np.testing.assert_allclose(*predictions, atol=1e-8)


def test_many_rows_are_landmarks_in_scikit_learn_s_code_too(tmp_path, monkeypatch, rng):
    pl = pytest.importorskip("polars")
    monkeypatch.setattr("jacridge._fitting.EXACT_ROWS", 100)
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
    page = report_page(frames.DataFrame(columns), y, **options)

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
        ("jacobian", 1e-3, ""),
        ("jacobian", np.float64(0.5), "--alpha 0.5"),
        ("loo", 1e-3, "--rule loo"),
        ("auto", "auto", "--rule auto"),
        ("auto", 1e-3, "--rule auto --alpha 0.001"),
        (np.float64(0.25), "loo", "--rule 0.25 --alpha loo"),
        (lambda problem: 0.25, 1e-3, "--rule 0.25"),
        (0.25, [0.1], "--rule 0.25 --alpha 0.1"),
    ],
)
def test_the_command_asks_for_what_was_asked_for(wave, bandwidth, alpha, words):
    page = report_page(*wave, bandwidth=bandwidth, alpha=alpha, source="a.csv")
    command = blocks(page)["On the command line"].splitlines()[0]
    assert command == f"jacridge fit a.csv --target y {words} -o model.skops".replace("  ", " ")


def test_the_command_reads_the_file_as_the_report_did(wave):
    options = ("--drop", "my id", "--no-header")
    code = blocks(report_page(*wave, source="a.csv", options=options))
    fit, predict = code["On the command line"].splitlines()
    assert "a.csv --target y --drop 'my id' --no-header -o" in fit
    assert "new.csv --no-header -o" in predict
    assert "has_header=False" in code["Python"]


def test_a_function_as_bandwidth_is_a_number_in_the_code(wave):
    page = report_page(*wave, bandwidth=lambda problem: 0.5)
    assert "A function gives the bandwidth <b>σ = 0.5</b>" in page
    assert "JacobianKernelRidge(bandwidth=0.5, alpha=0.001" in blocks(page)["Python"]


def test_rows_that_were_left_out_are_counted(wave):
    page = report_page(*wave, left_out=3)
    assert "3 of 63 rows in the file lack a value and are left out." in page
    assert "left out" not in Page(report_page(*wave)).all("p", **{"class": "lead"})[0]["text"]


def test_a_report_of_standard_input_reads_some_file_in_its_code(wave):
    page = report_page(*wave, source="-")
    assert "in standard input" in Page(page).all("h1")[0]["text"]
    assert "pl.read_csv('data.csv'" in blocks(page)["Python"]


def test_many_rows_are_sampled_and_the_page_says_so(rng, monkeypatch):
    monkeypatch.setattr("jacridge.report._case.SAMPLE", 50)
    X = rng.standard_normal((70, 3))
    page = report_page(X, X[:, 0])
    assert "a random sample of 50 of the 70 rows" in page
    assert numbers_of(page)["fit"] is None


def test_the_same_data_give_the_same_page(wave):
    first, second = (
        re.sub(r"in [\d.]+ s\.|<td class=\"number\">[\d.e-]+</td></tr>", "", report_page(*wave))
        for _ in range(2)
    )
    assert first == second


def test_a_constant_target_has_no_r2(wave):
    page = report_page(wave[0], np.full(60, 3.0))
    assert "The target is constant, so R² is not defined." in page


def test_a_penalty_of_zero_is_drawn_at_the_low_end(wave):
    data = numbers_of(report_page(wave[0], wave[1], alpha=0))
    assert data["start"][0] == 0


def test_a_constant_column_is_no_trouble(wave):
    X = np.column_stack([wave[0], np.ones(60)])
    assert "R² =" in report_page(X, wave[1])


def test_two_rows_are_too_few_for_a_report():
    with pytest.raises(ValueError, match="A report needs at least 3 rows, got 2"):
        report_page([[1.0], [2.0]], [2.0, 3.0], bandwidth=1.0)


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
    assert write_report(path, *wave) == path
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.slow
def test_five_thousand_rows_make_a_page_under_six_megabytes(rng):
    X = rng.uniform(-1, 1, (5000, 2))
    page = report_page(X, np.sin(3 * X[:, 0]) * X[:, 1])
    assert len(page.encode()) < 6e6
