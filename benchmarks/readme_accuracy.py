"""Write the README's table of accuracy from benchmarks/results/bench_accuracy.csv.

That file has a row for each table and method: table, method, r2, seconds. Rows whose table is
"mean" end a group of tables. Rows of several seeds are averaged. The documentation's index page
shows the same table.
"""

import csv
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "bench_accuracy.csv"
START, END = "<!-- accuracy -->\n", "<!-- /accuracy -->"

NAMES = {
    "auto": "`AutoKernelRidge()`",
    "one gaussian": "one Gaussian kernel",
    "hist gradient boosting": "boosted trees (scikit-learn)",
    "catboost": "CatBoost",
    "xrfm": "xRFM",
}
ABSENT = (
    "`benchmarks/bench_accuracy.py` compares `AutoKernelRidge()` with CatBoost, xRFM and boosted "
    "trees. It has not been recorded for this version.\n"
)
PRESENT = (
    "Test R2 on {count} tables, all methods with their default settings "
    "(`benchmarks/bench_accuracy.py`). Each table has at most 1300 training and 700 test rows. The "
    "best score in each row is bold. Times are from one run on two cores.\n\n"
)


def recorded(path=RESULTS):
    """Rows of the benchmark's file; none if it does not exist."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def accuracy_text(rows):
    """Markdown: one line a table with the test R2 of each method, and means of each group."""
    if not rows:
        return ABSENT
    tables = [row for row in rows if row["table"] != "mean"]
    methods = list(dict.fromkeys(row["method"] for row in tables))
    heads = [NAMES.get(method, method) for method in methods]
    lines = [f"| table | {' | '.join(heads)} |", "|---|" + "---:|" * len(methods)]
    for group in groups(rows):
        names = list(dict.fromkeys(row["table"] for row in group))
        for name in names:
            lines.append(_line(name.replace("_", " "), _scores(group, methods, name)))
        lines.append(_line(f"*mean of {len(names)}*", _scores(group, methods)))
    seconds = [_mean(row["seconds"] for row in tables if row["method"] == m) for m in methods]
    lines.append(_line("*seconds, mean*", [f"{value:.1f}" for value in seconds]))
    count = len({row["table"] for row in tables})
    return PRESENT.format(count=count) + "\n".join(lines) + "\n"


def groups(rows):
    """Rows of tables, split where rows with means are."""
    found = [[]]
    for row in rows:
        if row["table"] != "mean":
            found[-1].append(row)
        elif found[-1]:
            found.append([])
    return [group for group in found if group]


def _scores(rows, methods, table=None):
    """Mean test R2 of each method, the best one bold; a dash where there is none."""
    some = [row for row in rows if table in (None, row["table"])]
    means = [_mean(row["r2"] for row in some if row["method"] == method) for method in methods]
    best = max(round(value, 3) for value in means if value is not None)
    texts = ["-" if value is None else f"{value:.3f}" for value in means]
    return [f"**{text}**" if text == f"{best:.3f}" else text for text in texts]


def _line(name, cells):
    return f"| {name} | {' | '.join(cells)} |"


def _mean(texts):
    values = [float(text) for text in texts]
    return sum(values) / len(values) if values else None


def with_table(text, rows):
    """The README with the table between its two marks."""
    before, rest = text.split(START)
    return before + START + accuracy_text(rows) + END + rest.split(END)[1]


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(with_table(readme.read_text("utf-8"), recorded()), "utf-8")
