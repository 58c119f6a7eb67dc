"""The code in the documentation's pages runs, and its examples keep to their form."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/index.md", "docs/start.md")
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("page", PAGES)
def test_the_python_on_a_page_runs_from_top_to_bottom(page):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), flags=re.S)
    assert blocks
    exec("\n".join(blocks), {})


def test_there_are_at_least_eight_examples():
    assert len(EXAMPLES) >= 8


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_begins_with_its_title(path):
    lines = path.read_text("utf-8").splitlines()
    assert len(lines) < 60
    assert lines[0] == '"""'
    assert lines[2] == "=" * len(lines[1])


def test_the_guide_s_shares_of_l_max_are_those_of_the_formula():
    """sigma_0 / l_max for 6500 rows; 1e-3 as penalty, which hardly matters."""
    text = (ROOT / "docs" / "guide.md").read_text("utf-8")
    for p, share in ((5, "0.09"), (10, "0.32"), (27, "1.2"), (100, "4.9")):
        d = 2 / np.pi / (6499 ** (1 / p) - 1)
        assert share in text
        assert f"{d * np.sqrt(0.5):.{len(share) - 2}f}" == share


def test_the_readme_s_table_is_that_of_the_benchmark():
    text = (ROOT / "README.md").read_text("utf-8")
    with (ROOT / "benchmarks" / "results" / "bench_rules.csv").open(encoding="utf-8") as file:
        for rule, *cells in list(csv.reader(file))[1:]:
            name = rule if " " in rule else f"`{rule}`"
            [line] = [line for line in text.splitlines() if name in line and line.count("|") == 8]
            shown = [float(cell) for cell in line.split("|")[2:-1]]
            np.testing.assert_allclose(shown, np.array(cells, dtype=float), atol=0.0051)  # 2 digits


@pytest.fixture
def results(monkeypatch):
    """The extension that shows the benchmarks' CSV files."""
    pytest.importorskip("docutils")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    import results

    return results


@pytest.mark.parametrize(
    ("cell", "shown"), [("6500", "6500"), ("0.123456", "0.123"), ("inf", "inf"), ("auto", "auto")]
)
def test_numbers_are_shown_with_three_digits(results, cell, shown):
    assert results.readable(cell) == shown
