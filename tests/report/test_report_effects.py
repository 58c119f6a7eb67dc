"""Effects on the page: those of the command, of dates, and of classes."""

import json

import numpy as np
import pytest
from test_report import effects_of

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
    assert found["term"] == ["hump", "line"]
    assert [p is None for p in found["p_value"]] == [True, False]
    assert "The prediction rises and falls over `day`, so there is no average slope" in err
    for i, name in enumerate(["hump (rises and falls)", "line"]):
        effect, error, interval, p = page[name]
        numbers = [float(text.replace("−", "-")) for text in (effect, error, *interval.split("to"))]
        ends = ("estimate", "std_error", "conf_low", "conf_high")
        # Three digits are shown.
        np.testing.assert_allclose(numbers, [found[k][i] for k in ends], rtol=6e-3)
        assert p == ("–", "&lt; 0.001")[i]
    assert not [name for name in page if name.startswith("day, per")]


def test_dates_within_a_year_have_effects_per_day(rng):
    names = ["when (year)", "x"]
    X = np.column_stack([2024 + np.arange(60) / 366, rng.normal(size=60)])
    y = 2.0 * np.arange(60) + X[:, 1]
    given = {"features": names, "parts": {"when (year)": "when"}, "bandwidth": 5.0}
    slope, *_ = effects_of(report_page(X, y, **given, alpha=1e-4))["when, per day"]
    assert float(slope) == pytest.approx(2, rel=0.02)  # shrunk by the ridge
