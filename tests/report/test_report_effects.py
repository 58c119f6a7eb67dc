"""Effects on the page: those of the command, of dates, and of classes."""

import json

import numpy as np
import pytest
from test_report import charts_of, effects_of

from jacridge.report import report_page


def test_the_page_and_the_command_have_one_table_of_effects(run, tmp_path, rng):
    """More rows than a sample would have; a hump, and a date whose season has no slope."""
    pl = pytest.importorskip("polars")
    n = 1100
    day = np.datetime64("2020-01-01") + np.arange(n)
    hump, line = rng.uniform(-1, 1, (2, n))
    y = 5 * hump**2 + line + 3 * np.sin(np.arange(n) / 365.25 * 2 * np.pi) + rng.normal(size=n)
    columns = {"day": day.astype(str), "hump": hump, "line": line, "y": y}
    pl.DataFrame(columns).write_csv(tmp_path / "t.csv")
    given = (tmp_path / "t.csv", "-t", "y", "--rule", "1.5", "--alpha", "1")
    assert run("report", *given, "-o", tmp_path / "t.html")[0] == 0
    page = effects_of((tmp_path / "t.html").read_text())
    _, out, err = run("effects", *given, "--json")
    found = json.loads(out)["effects"]
    assert found["term"] == ["hump", "line", "day (month)", "day (weekday)"]
    assert [p is None for p in found["p_value"]] == [True, False, True, True]
    for i in (2, 3):
        effect, *errors = page[f"{found['term'][i]}: {found['contrast'][i]}"]
        assert float(effect) == pytest.approx(found["estimate"][i], rel=6e-3)
        assert (errors, found["std_error"][i]) == (["–"] * 3, None)
    assert "The prediction rises and falls over `day`, so there is no average slope" in err
    for i, name in enumerate(["hump (rises and falls)", "line"]):
        effect, error, interval, p = page[name]
        numbers = [float(text.replace("−", "-")) for text in (effect, error, *interval.split("to"))]
        ends = ("estimate", "std_error", "conf_low", "conf_high")
        # Three digits are shown.
        np.testing.assert_allclose(numbers, [found[k][i] for k in ends], rtol=6e-3)
        assert p == ("–", "&lt; 0.001")[i]
    assert not [name for name in page if name.startswith("day, per")]


@pytest.mark.parametrize("kernel", ["laplacian", "gaussian"])
def test_slopes_of_a_kernel_with_kinks_are_called_biased(run, tmp_path, rng, kernel):
    """On the page, and by the command, with the option that avoids it."""
    pl = pytest.importorskip("polars")
    a, b = rng.uniform(size=(2, 60))
    pl.DataFrame({"a": a, "b": b, "y": a + b**2}).write_csv(tmp_path / "t.csv")
    given = (tmp_path / "t.csv", "-t", "y", "--rule", "1", "--alpha", "1", "--kernel", kernel)
    assert run("report", *given, "-o", tmp_path / "t.html")[0] == 0
    _, out, _ = run("effects", *given)
    for text in (out, (tmp_path / "t.html").read_text()):
        assert ("kinks at the training rows, which bias slopes" in text) == (kernel == "laplacian")
        assert ("--kernel matern32" in text) == (kernel == "laplacian")
        assert 'kernel="matern32"' not in text


@pytest.mark.parametrize("mixed", [False, True])
def test_a_text_column_that_determines_another_one_is_named(run, tmp_path, rng, mixed):
    """In two parts of the page and by the command; not if one row contradicts it."""
    pl = pytest.importorskip("polars")
    code = rng.integers(0, 6, 90)
    brand = np.array(["VW", "BMW", "Fiat"])[code // 2]
    code[0] = (code[0] + 3 * mixed) % 6
    model, colour = np.char.add("m", code.astype(str)), rng.choice(["red", "blue"], 90)
    columns = {"brand": brand, "model": model, "colour": colour, "y": code + rng.normal(size=90)}
    pl.DataFrame({k: v.tolist() for k, v in columns.items()}).write_csv(tmp_path / "t.csv")
    given = (tmp_path / "t.csv", "-t", "y", "--rule", "2", "--alpha", "1")
    assert run("report", *given, "-o", tmp_path / "t.html")[0] == 0
    page = (tmp_path / "t.html").read_text()
    quality, trust = (page.index(f'id="{name}"') for name in ("quality", "trust"))
    for part in (page[quality:trust], page[trust:]):
        named = "Each <code>model</code> belongs to one <code>brand</code>, so that" in part
        assert named != mixed
    assert page.count("belongs to one") == (0 if mixed else 2)
    assert ("Each `model` belongs to one `brand`" in run("effects", *given)[2]) != mixed


@pytest.mark.parametrize("hump", [False, True])
def test_jitter_around_a_trend_is_no_rise_and_fall(run, tmp_path, rng, hump):
    """A kernel with kinks has slopes of both signs at its rows."""
    pl = pytest.importorskip("polars")
    t = np.linspace(0, 1, 700)
    day = (np.datetime64("2020-01-01") + np.arange(0, 1400, 2)).astype(str)
    y = 10 * (np.sin(np.pi * t) if hump else t) + rng.normal(0, 0.5, 700)
    x = rng.integers(0, 2, 700)
    pl.DataFrame({"day": day, "x": x, "y": y}).write_csv(tmp_path / "t.csv")
    given = (tmp_path / "t.csv", "-t", "y", "--rule", "10", "--alpha", "1e-3")
    given = (*given, "--kernel", "laplacian")
    _, out, err = run("effects", *given, "--json")
    assert ("rises and falls over `day`" in err) == hump
    assert ("day (year)" in json.loads(out)["effects"]["term"]) == (not hump)
    assert run("report", *given, "-o", tmp_path / "t.html")[0] == 0
    assert ("day, per year" in effects_of((tmp_path / "t.html").read_text())) == (not hump)


@pytest.mark.parametrize(("levels", "words"), [(15, ": the 12 most frequent of 15"), (12, "")])
def test_a_chart_says_how_many_categories_it_leaves_out(rng, levels, words):
    pl = pytest.importorskip("polars")
    codes = np.arange(90) % levels
    names = [f"car {code:02}" for code in codes]
    X = pl.DataFrame({"model": names, "x": rng.normal(size=90)})
    page = report_page(X, codes + 0.1 * rng.normal(size=90), bandwidth=2.0, alpha=0.1)
    assert f"<figcaption>model{words}</figcaption>" in page


def test_dates_within_a_year_have_effects_per_day(rng):
    names = ["when (year)", "x"]
    X = np.column_stack([2024 + np.arange(60) / 366, rng.normal(size=60)])
    y = 2.0 * np.arange(60) + X[:, 1]
    given = {"features": names, "parts": {"when (year)": "when"}, "bandwidth": 5.0}
    slope, *_ = effects_of(report_page(X, y, **given, alpha=1e-4))["when, per day"]
    assert float(slope) == pytest.approx(2, rel=0.02)  # shrunk by the ridge


def days(start, count, step=1):
    """Parts of dates as the command makes them, all but the hour."""
    day = np.datetime64(start) + step * np.arange(count)
    year = day.astype("datetime64[Y]")
    first = day.astype("datetime64[M]")
    share = (day - first) / ((first + 1).astype("datetime64[D]") - first)
    month = (first.astype(int) % 12 + share) / 12 * 2 * np.pi
    weekday = (day.astype(int) + 3) % 7 / 7 * 2 * np.pi
    t = year.astype(int) + 1970 + (day - year).astype(int) / 366
    waves = [wave(x) for x in (month, weekday) for wave in (np.sin, np.cos)]
    names = [f"d ({c} {w})" for c in ("month", "weekday") for w in ("sine", "cosine")]
    return t, np.column_stack([t, *waves]), ["d (year)", *names]


def test_a_season_that_the_model_keeps_in_the_year_is_seen(rng):
    """A narrow kernel tells dates apart by the year, so that the month alone moves nothing."""
    t, X, names = days("2022-01-01", 220, step=5)
    y = 30 * np.cos(2 * np.pi * (t - 0.55)) + 20 * (t - 2022)
    given = {"features": names, "parts": dict.fromkeys(names, "d"), "standardize": False}
    page = report_page(X, y + 0.1 * rng.normal(size=220), **given, bandwidth=0.3, alpha=1e-3)
    *_, line, _ = charts_of(page)["effect-0"]["layers"]
    expected = np.interp(line["x"], t, y)
    # The weekday, which is moved alone, leads between the rows.
    assert np.corrcoef(line["y"], expected)[0, 1] > 0.99
    effect, *rest = effects_of(page)["d (month): 7 - 1"]
    months = [np.cos(2 * np.pi * (t - 0.55))[np.floor(t % 1 * 12) == m].mean() for m in range(12)]
    assert float(effect) == pytest.approx(30 * np.ptp(months), rel=0.1)
    assert rest == ["–", "–", "–"]
    assert "a chart of months leaves the trend out" in page


@pytest.mark.parametrize(("count", "drawn"), [(10, False), (30, True)])
def test_weekdays_of_less_than_two_weeks_are_not_shown(count, drawn):
    _, X, names = days("2024-05-01", count)
    given = {"features": names, "parts": dict.fromkeys(names, "d"), "bandwidth": 2.0}
    assert ("d (weekday)" in report_page(X, np.sin(np.arange(count)), **given)) == drawn


@pytest.mark.parametrize(
    ("classes", "bias"), [(False, "the bias of ridge regression"), (True, "the bias")]
)
def test_the_page_says_that_the_errors_do_not_include_the_bias(rng, classes, bias):
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.5 * rng.normal(size=60)
    page = report_page(X, np.where(y > 0, "up", "down") if classes else y, bandwidth=2.0)
    assert f"The errors do not include {bias}." in page
