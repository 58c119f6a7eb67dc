"""For the page `reproduce`: tables and single numbers from the CSV files in reproduce_data.

    ```{reproduced} table2_compared
    :columns: data, rule, R2 here
    :where: data=Protein
    ```

is a table, its texts as they stand, and {reproduced}`table2 r2 dataset=protein rule=loo` is one
number, to three digits.
"""

import csv
from pathlib import Path
from types import MappingProxyType

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from results import readable, table

DATA = Path(__file__).parents[1] / "reproduce_data"


def rows_of(name, where):
    """Rows of a file with the given values, written as name=value."""
    with (DATA / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for condition in where:
        column, value = condition.split("=")
        rows = [row for row in rows if row[column.strip()] == value.strip()]
    if not rows:
        raise ValueError(f"{name}.csv has no rows with {where}")
    return rows


class Reproduced(Directive):
    required_arguments = 1
    option_spec = MappingProxyType({"columns": directives.unchanged, "where": directives.unchanged})

    def run(self):
        name = self.arguments[0]
        self.state.document.settings.env.note_dependency(str(DATA / f"{name}.csv"))
        where = [part for part in self.options.get("where", "").split(",") if part]
        rows = rows_of(name, where)
        columns = [part.strip() for part in self.options.get("columns", "").split(",")]
        return [table([c for c in columns if c] or list(rows[0]), rows, text=str)]


def number(role, rawtext, text, lineno, inliner, options=None, content=()):
    """The one number that a file, a column and conditions name."""
    name, column, *where = text.split()
    inliner.document.settings.env.note_dependency(str(DATA / f"{name}.csv"))
    rows = rows_of(name, where)
    if len(rows) != 1:
        raise ValueError(f"{text} names {len(rows)} rows, not one")
    return [nodes.Text(readable(rows[0][column]))], []


def setup(app):
    app.add_directive("reproduced", Reproduced)
    app.add_role("reproduced", number)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
