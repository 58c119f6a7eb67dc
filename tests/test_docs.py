"""The code in the documentation's pages runs, and its examples keep to their form."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"```python\n(.*?)```", flags=re.S)
PAGES = [
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if BLOCK.search(path.read_text("utf-8"))
]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_python_on_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some pages write files
    exec("\n".join(BLOCK.findall((ROOT / page).read_text("utf-8"))), {})


def test_the_pages_that_teach_have_code():
    taught = {f"docs/{name}.md" for name in ("index", "start", "scale", "effects", "deploy")}
    assert taught <= set(PAGES)


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


def test_the_guide_s_table_of_rules_is_that_of_the_benchmark():
    text = (ROOT / "docs" / "guide.md").read_text("utf-8")
    with (ROOT / "benchmarks" / "results" / "bench_rules.csv").open(encoding="utf-8") as file:
        for rule, *cells in list(csv.reader(file))[1:]:
            name = rule if " " in rule else f"`{rule}`"
            [line] = [line for line in text.splitlines() if name in line and line.count("|") == 8]
            shown = [float(cell) for cell in line.split("|")[2:-1]]
            np.testing.assert_allclose(shown, np.array(cells, dtype=float), atol=0.0051)  # 2 digits


def test_the_table_of_classifiers_is_that_of_the_benchmark():
    text = (ROOT / "docs" / "classification.md").read_text("utf-8")
    with (ROOT / "benchmarks" / "results" / "bench_classifier.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for name in {row["set"] for row in rows if row["accuracy"]}:
        [line] = [
            row for row in text.splitlines() if row.startswith(f"| {name.replace('_', ' ')} | 0.")
        ]
        shown = np.array(line.split("|")[2:-1], dtype=float).reshape(3, 3)
        for column, method in zip(shown.T, ("auto", "hist gradient boosting", "svc"), strict=True):
            found = [row for row in rows if row["set"] == name and row["method"] == method]
            keys = ("accuracy", "log_loss", "calibration_error")
            expected = [np.mean([float(row[key]) for row in found]) for key in keys]
            np.testing.assert_allclose(column, expected, atol=0.00051)  # three digits


SENTENCES = (
    "Use `AutoKernelRidge()`: it chooses the kernel, the metric, the bandwidth and the penalty.",
    "`JacobianKernelRidge()` is the estimator of the paper: a Gaussian kernel with the closed-form "
    "bandwidth",
)


@pytest.mark.parametrize(
    "page", ["README.md", "docs/index.md", "docs/start.md", "docs/guide.md", "examples/README.txt"]
)
def test_all_pages_recommend_the_same_thing_in_the_same_words(page):
    text = " ".join((ROOT / page).read_text("utf-8").replace("``", "`").split())
    assert all(sentence in text for sentence in SENTENCES)


def test_the_page_on_the_command_shows_every_subcommand():
    pytest.importorskip("typer")
    from jacridge.cli import EXAMPLES

    text = (ROOT / "docs" / "command.md").read_text("utf-8")
    assert all(f"## {command.__name__}" in text for command in EXAMPLES)


@pytest.fixture
def readme_accuracy(monkeypatch):
    """The script that writes the README's table of accuracy."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import readme_accuracy

    return readme_accuracy


def test_the_table_of_accuracy_has_a_line_for_each_table_and_the_means_of_groups(readme_accuracy):
    """As bench_accuracy.py prints them: the rows `mean` end a group and have no seconds."""
    rows = [
        {"table": "a_1", "method": "auto", "r2": "0.5", "seconds": "1"},
        {"table": "a_1", "method": "trees", "r2": "0.4", "seconds": "2"},
        {"table": "b", "method": "auto", "r2": "0.7", "seconds": "3"},
        {"table": "mean", "method": "auto", "r2": "0.6", "seconds": ""},
        {"table": "mean", "method": "trees", "r2": "0.4", "seconds": ""},
        {"table": "c", "method": "auto", "r2": "0.1", "seconds": "5"},
        {"table": "c", "method": "trees", "r2": "0.3", "seconds": "2"},
    ]
    text = readme_accuracy.with_table((ROOT / "README.md").read_text("utf-8"), rows)
    assert (
        "| table | `AutoKernelRidge()` | trees |\n|---|---:|---:|\n| a 1 | **0.500** | 0.400 |\n"
        "| b | **0.700** | - |\n| *mean of 2* | **0.600** | 0.400 |\n| c | 0.100 | **0.300** |\n"
        "| *mean of 1* | 0.100 | **0.300** |\n| *seconds, mean* | 3.0 | 2.0 |\n"
    ) in text
    assert readme_accuracy.with_table(text, rows) == text


def test_the_readme_s_accuracy_is_that_of_the_benchmark(readme_accuracy):
    text = (ROOT / "README.md").read_text("utf-8")
    assert readme_accuracy.with_table(text, readme_accuracy.recorded()) == text


@pytest.fixture
def results(monkeypatch):
    """The extension that shows the benchmarks' CSV files."""
    pytest.importorskip("docutils")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    import results

    return results


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("6500", "6500"),
        ("0.123456", "0.123"),
        ("500000", "500,000"),
        ("4.519e+05", "451,900"),
        ("4519.4", "4520"),
        ("inf", "inf"),
        ("auto", "auto"),
        ("fit n=500000 m=1000", "fit n=500,000 m=1000"),
    ],
)
def test_numbers_are_shown_with_three_digits(results, cell, shown):
    assert results.readable(cell) == shown
