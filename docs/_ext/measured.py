"""What pages show of the benchmarks in words of their own, made from their CSV files.

`accuracy` is the table of the README, `speed` the table of solvers beside other packages, and
`cost` a figure of time and memory: `{cost} rows`, `{cost} landmarks`, `{cost} features`.
"""

import csv
import sys
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from results import RESULTS, readable, table

BENCHMARKS = RESULTS.parent
sys.path.insert(0, str(BENCHMARKS))

SPEED = {
    "exact fit 6500: seconds": ("fit of 6500 rows", "scikit-learn's `KernelRidge`"),
    "exact fit 20000: seconds": ("fit of 20,000 rows", "physical limit"),
    "loo at 10 bandwidths 6500: seconds": (
        "leave-one-out at 10 bandwidths, 6500 rows",
        "`numpy.linalg.inv` at each bandwidth",
    ),
    "mml search 3000: seconds": (
        "maximum marginal likelihood, 3000 rows",
        "`GaussianProcessRegressor`, one start",
    ),
}

# Method: its name in figures, whether it is ours, and its marker.
METHODS = {
    "auto": ("AutoKernelRidge()", "#0072B2", "s-"),
    "exact": ("exact solver", "#0072B2", "o-"),
    "pcg": ('solver="pcg"', "#0072B2", "^-"),
    "nystrom": ("Nystrom solver", "#0072B2", "D-"),
    "closed_form": ("closed-form bandwidth", "#0072B2", "v-"),
    "kernel_ridge": ("KernelRidge", "#D55E00", "o--"),
    "gaussian_process": ("GaussianProcessRegressor", "#D55E00", "s--"),
    "nystroem_ridge": ("Nystroem + Ridge", "#D55E00", "D--"),
}


class Parsed(Directive):
    """A directive whose text is Markdown."""

    def parsed(self, text):
        box = nodes.container()
        self.state.nested_parse(StringList(text.splitlines(), source="benchmarks"), 0, box)
        return box.children


class Accuracy(Parsed):
    def run(self):
        import readme_accuracy

        self.state.document.settings.env.note_dependency(str(readme_accuracy.RESULTS))
        return self.parsed(readme_accuracy.accuracy_text(readme_accuracy.recorded()))


class Speed(Parsed):
    def run(self):
        rows = {row["what"]: row for row in csv_rows(self, "bench_solvers")}
        lines = [
            "| what | seconds | baseline | its seconds | times faster |",
            "|---|---:|---|---:|---:|",
        ]
        for what, (name, baseline) in SPEED.items():
            ours, theirs = float(rows[what]["ours"]), float(rows[what]["baseline"])
            cells = name, f"{ours:.3g}", baseline, f"{theirs:.3g}", f"{theirs / ours:.2g}"
            lines.append(f"| {' | '.join(cells)} |")
        return self.parsed("\n".join(lines))


class Cost(Directive):
    """A figure drawn from bench_growth.csv."""

    required_arguments = 1

    def run(self):
        rows = csv_rows(self, "bench_growth")
        if not rows:
            text = "Not recorded for this version; run benchmarks/bench_growth.py."
            return [nodes.note("", nodes.paragraph(text, text))]
        name = self.arguments[0]
        folder = Path(self.state.document.settings.env.app.srcdir) / "generated"
        folder.mkdir(exist_ok=True)
        figure, alt = FIGURES[name](rows)
        figure.savefig(folder / f"cost_{name}.png", dpi=150)
        return [nodes.image(uri=f"/generated/cost_{name}.png", alt=alt, width="100%")]


def csv_rows(directive, name):
    """Rows of a benchmark's file; none if it does not exist."""
    path = RESULTS / f"{name}.csv"
    directive.state.document.settings.env.note_dependency(str(path))
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def points(rows, method, **fixed):
    """Rows of one method with these sizes, as numbers, in order of n, p and m."""
    found = [
        {name: float(row[name]) for name in ("n", "p", "m", "seconds", "mb")}
        for row in rows
        if row["method"] == method and all(int(row[k]) == v for k, v in fixed.items())
    ]
    return sorted(found, key=lambda row: (row["n"], row["p"], row["m"]))


def rate(rows):
    """Flops in a second of a large matrix product, from the seconds of 2e9 of them."""
    return 2e9 / points(rows, "gemm")[0]["seconds"]


def panels():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.set(xscale="log", yscale="log", ylabel="processor seconds")
    right.set(xscale="log", yscale="log", ylabel="peak memory, MB")
    return figure, left, right


def draw(axes, x, found, method):
    """One line in each panel; memory below 1 MB is that of small lists, and left out."""
    name, colour, style = METHODS[method]
    left, right = axes
    look = {"color": colour, "label": name, "markersize": 5}
    left.plot([row[x] for row in found], [row["seconds"] for row in found], style, **look)
    large = [row for row in found if row["mb"] >= 1]
    right.plot([row[x] for row in large], [row["mb"] for row in large], style, **look)


def limits(ax, x, y, label):
    ax.plot(x, y, ":", color="0.35", label=label, zorder=0)


def legend(figure, ax):
    """One legend for both panels, below them."""
    look = {"frameon": False, "fontsize": 8, "ncols": 5}
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", **look)


def rows_figure(rows):
    """Every method against n, with 10 features and 500 landmarks, and the limits."""
    import numpy as np

    figure, *axes = panels()
    for method in METHODS:
        fixed = {"p": 10, "m": 500} if method in ("nystrom", "nystroem_ridge") else {"p": 10}
        draw(axes, "n", points(rows, method, **fixed), method)
    n, many, F = np.array([500, 8000]), np.array([1e4, 1.6e5]), rate(rows)
    limits(axes[0], n, n**3 / 3 / F, "limit: $n^3 / 3$ flops")
    limits(axes[0], many, many * 500**2 / F, "limit: $n m^2$ flops")
    limits(axes[1], n, 8 * n**2 / 1e6, "limit: $8 n^2$ bytes")
    for ax in axes:
        ax.set_xlabel("rows n")
    legend(figure, axes[0])
    return figure, "Processor seconds and peak memory of each method against the number of rows"


def landmarks_figure(rows):
    """Nystrom against m at 40,000 rows."""
    import numpy as np

    figure, *axes = panels()
    for method in ("nystrom", "nystroem_ridge"):
        draw(axes, "m", points(rows, method, n=40_000, p=10), method)
    m = np.array([500, 2000])
    limits(axes[0], m, 40_000 * m**2 / rate(rows), "limit: $n m^2$ flops")
    limits(axes[1], m, 8 * m**2 / 1e6, "limit: $8 m^2$ bytes")
    for ax in axes:
        ax.set_xlabel("landmarks m")
        ax.set_xticks([500, 1000, 2000], ["500", "1000", "2000"], minor=False)
        ax.minorticks_off()
    legend(figure, axes[0])
    return (
        figure,
        "Processor seconds and peak memory of Nystrom fits against landmarks",
    )


FIGURES = {"rows": rows_figure, "landmarks": landmarks_figure}


class Features(Directive):
    """Seconds with 10 and with 100 features."""

    def run(self):
        rows = csv_rows(self, "bench_growth")
        lines = []
        for method, (name, *_) in METHODS.items():
            for small in points(rows, method, p=10):
                large = points(rows, method, p=100, n=int(small["n"]), m=int(small["m"]))
                if large:
                    seconds = small["seconds"], large[0]["seconds"]
                    cells = [f"{small['n']:,.0f}", *seconds, seconds[1] / seconds[0]]
                    lines.append(dict(zip(HEADS, [name, *map(str, cells)], strict=True)))
        return [table(HEADS, lines, text=readable)] if lines else []


HEADS = ("method", "rows", "seconds, 10 features", "seconds, 100 features", "ratio")


def setup(app):
    app.add_directive("accuracy", Accuracy)
    app.add_directive("speed", Speed)
    app.add_directive("cost", Cost)
    app.add_directive("cost-features", Features)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
