"""The directive `results`: a table of a benchmark's CSV, so that no number is typed by hand.

    ```{results} bench_search
    :columns: data, r2_auto, times
    :where: data=protein
    ```

reads benchmarks/results/bench_search.csv. `:with: text` keeps the rows whose first cell has the
text. Without that file the page says how to make it.
"""

import csv
import re
from pathlib import Path
from types import MappingProxyType

from docutils import nodes
from docutils.parsers.rst import Directive, directives

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def readable(text):
    """Three digits for numbers, and commas in those from 10,000 on, also within texts."""
    try:
        value = float(text)
    except ValueError:
        return re.sub(r"\b\d{5,}\b", lambda number: f"{int(number[0]):,}", text)
    if not value.is_integer():
        value = float(f"{value:.3g}")
    if not value.is_integer() or abs(value) >= 1e15:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.0f}"


def tidied(row):
    """The row with its bytes as MB, if that is its unit, and names of data in words."""
    if "data" in row:
        row = {**row, "data": row["data"].replace("_", " ")}
    if row.get("unit") != "bytes":
        return row
    sizes = {name: str(float(row[name]) / 1e6) for name in ("ours", "theirs")}
    return {**row, **sizes, "unit": "MB"}


class Results(Directive):
    """A table from a CSV file."""

    required_arguments = 1
    option_spec = MappingProxyType(
        dict.fromkeys(("columns", "where", "with"), directives.unchanged)
    )

    def run(self):
        path = RESULTS / f"{self.arguments[0]}.csv"
        env = self.state.document.settings.env
        env.note_dependency(str(path))
        if not path.exists():
            text = f"Not measured yet. benchmarks/{path.stem}.py prints what goes here."
            return [nodes.note("", nodes.paragraph(text, text))]
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        for rule in filter(None, self.options.get("where", "").split(",")):
            name, value = rule.split("=")
            rows = [row for row in rows if row[name.strip()] == value.strip()]
        text = self.options.get("with", "")
        rows = [row for row in rows if text in next(iter(row.values()))]
        if not rows:
            raise self.error(f"{path.name} has no rows with {self.options.get('where')}")
        names = [n.strip() for n in self.options.get("columns", "").split(",") if n.strip()]
        return [table(names or list(rows[0]), map(tidied, rows))]


def table(names, rows, text=readable):
    """A docutils table with one line for each row."""
    group = nodes.tgroup(cols=len(names))
    group += [nodes.colspec(colwidth=1) for _ in names]
    head, body = nodes.thead(), nodes.tbody()
    head += line(name.replace("_", " ") for name in names)
    body += [line(text(row[name]) for name in names) for row in rows]
    group += [head, body]
    return nodes.table("", group)


def line(texts):
    entries = [nodes.entry("", nodes.paragraph(text, text)) for text in texts]
    return nodes.row("", *entries)


def setup(app):
    app.add_directive("results", Results)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
