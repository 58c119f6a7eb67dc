"""Write the README's table of accuracy from benchmarks/results/bench_accuracy.csv.

That file has one row for each table and method: table, method, r2, seconds.
"""

import csv
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "bench_accuracy.csv"
START, END = "<!-- accuracy -->\n", "<!-- /accuracy -->"


def accuracy_table(rows):
    """Markdown: one line a table with the test R2 of each method, the means below."""
    tables = list(dict.fromkeys(row["table"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    r2 = {(row["table"], row["method"]): float(row["r2"]) for row in rows}
    seconds = {m: [float(r["seconds"]) for r in rows if r["method"] == m] for m in methods}
    lines = [f"| table | {' | '.join(methods)} |", "|---|" + "---:|" * len(methods)]
    for table in tables:
        scores = [r2.get((table, method)) for method in methods]
        lines.append(_line(table, ["-" if v is None else f"{v:.3f}" for v in scores]))
    means = [_mean([v for (_, m), v in r2.items() if m == method]) for method in methods]
    lines.append(_line("**mean**", [f"**{v:.3f}**" for v in means]))
    lines.append(_line("seconds a fit, mean", [f"{_mean(seconds[m]):.1f}" for m in methods]))
    return "Test R2 (`benchmarks/bench_accuracy.py`):\n\n" + "\n".join(lines) + "\n"


def _line(name, cells):
    return f"| {name} | {' | '.join(cells)} |"


def _mean(values):
    return sum(values) / len(values)


def with_table(text, rows):
    """The README with the table between its two marks."""
    before, rest = text.split(START)
    return before + START + accuracy_table(rows) + END + rest.split(END)[1]


if __name__ == "__main__":
    readme = ROOT / "README.md"
    with RESULTS.open(encoding="utf-8") as file:
        readme.write_text(
            with_table(readme.read_text("utf-8"), list(csv.DictReader(file))), "utf-8"
        )
