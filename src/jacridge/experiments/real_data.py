"""Table 2: five large data sets, as the authors ran them and corrected."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from jacridge import datasets, select_bandwidth
from jacridge.datasets import Split

from ._draw import STYLES, column, figure, legend_below, where
from ._rules import LABELS, authors_grid, measured
from ._survey import survey
from ._table import Harness, Job, Row, Tables, as_text

ALPHA = 1e-3
TITLES = {
    "wood_fibres": "Wood fibres",
    "appliances_energy": "Appliances",
    "california_housing": "California",
    "protein": "Protein",
    "black_smoke": "Black smoke",
}
CLOSED = ("jacobian", "silverman")
ORDER = ("jacobian", "loo", "gcv", "mml_published", "mml_unit", "mml", "silverman")


def run_table2(harness: Harness) -> Tables:
    """All rules on all data sets; the authors' marginal likelihood comes last."""
    n_used = 2000 if harness.quick else 10_000
    seeds = range(harness.n_splits(full=10, quick=1))
    parts = {"package": (_by_package, 6), "authors": (_by_authors, 1)}
    jobs = [
        Job(
            {"dataset": name, "seed": seed, "rows_used": n_used, "by": by},
            work,
            (name, seed, n_used),
            n_rows,
        )
        for by, (work, n_rows) in parts.items()
        for seed in seeds
        for name in TITLES
    ]
    return {"table2": harness.rows("table2", jobs)}


def _by_package(name: str, seed: int, n_used: int) -> list[Row]:
    """Rows of the closed forms, of LOO and GCV on the authors' grid, and of MML done right."""
    split = standardised_split(name, seed, n_used)
    rows = measured(CLOSED, split, ALPHA, metric="euclidean", points=10)
    l_max = select_bandwidth(split.X, alpha=ALPHA).l_max
    rows += survey(split, ALPHA, authors_grid(l_max, 10))
    return _of_size(split, rows)


def _by_authors(name: str, seed: int, n_used: int) -> list[Row]:
    """The row of MML as published."""
    split = standardised_split(name, seed, n_used)
    rows = measured(["mml_published"], split, ALPHA, metric="euclidean", points=10)
    return _of_size(split, rows)


def _of_size(split: Split, rows: Sequence[Row]) -> list[Row]:
    """The rows with the size of the problem, and columns in one order."""
    sizes = {"n": len(split.y), "p": split.X.shape[1]}
    return [{**sizes, "seconds_formula": "", **row} for row in rows]


@lru_cache(maxsize=1)
def standardised_split(name: str, seed: int, n_used: int = 10_000) -> Split:
    """A split as the authors made it: shuffle, cut, standardise over all rows, 65 % to train.

    Training and test rows are standardised together, as in the authors' code; a user would not.
    """
    data = datasets.load(name)
    kept = np.random.RandomState(seed).permutation(len(data.y))[:n_used]
    X, y = data.X[kept], data.y[kept]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    n = int(0.65 * n_used)
    return Split(X[:n], y[:n], X[n:], y[n:])


def summarise(rows: Sequence[Row]) -> list[Row]:
    """Mean, deciles and Wilcoxon tests of R2 and time for each data set and rule.

    The tests ask, as the paper's do, whether the Jacobian rule is better and faster.
    """
    summary = []
    for name in TITLES:
        ours = where(rows, dataset=name, rule="jacobian")
        for rule in ORDER:
            theirs = where(rows, dataset=name, rule=rule)
            if theirs:
                summary.append(_summary(name, rule, ours, theirs))
    return summary


def _summary(name: str, rule: str, ours: list[Row], theirs: list[Row]) -> Row:
    row: Row = {"dataset": name, "rule": rule, "splits": len(theirs), "n": theirs[0]["n"]}
    for quantity, better in (("r2", "greater"), ("seconds", "less")):
        found = column(theirs, quantity)
        low, high = np.quantile(found, [0.1, 0.9])
        row |= {quantity: found.mean(), f"{quantity}_low": low, f"{quantity}_high": high}
        row[f"{quantity}_p"] = _p_value(ours, theirs, quantity, better)
    formula = [row["seconds_formula"] for row in theirs if row["seconds_formula"] != ""]
    row["seconds_formula"] = float(np.mean(formula)) if formula else ""
    row["sigma"] = float(np.median(column(theirs, "sigma")))
    return row


def _p_value(ours: list[Row], theirs: list[Row], quantity: str, better: str) -> float | str:
    """Wilcoxon's signed rank test on the splits that both have; empty where it says nothing."""
    other = {row["seed"]: row[quantity] for row in theirs}
    pairs = [(row[quantity], other[row["seed"]]) for row in ours if row["seed"] in other]
    differences = np.array([mine - their for mine, their in pairs])
    if len(differences) < 2 or not differences.any():
        return ""
    return float(wilcoxon(differences, alternative=better).pvalue)


def as_csv(tables: Tables) -> str:
    """The summary as CSV, with all digits."""
    return as_text(summarise(tables["table2"]))


def as_markdown(tables: Tables) -> str:
    """Table 2 as Markdown."""
    head = ["data", "rule", "R2 (deciles)", "p", "X to sigma, s (deciles)", "p", "formula alone, s"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cells) + " |" for cells in _cells(tables)]
    return "\n".join(lines) + "\n"


def as_latex(tables: Tables) -> str:
    """Table 2 as a LaTeX tabular, for booktabs."""
    head = r"data & rule & $R^2$ (deciles) & $p$ & $X$ to $\sigma$, s (deciles) & $p$ & formula, s"
    lines = [r"\begin{tabular}{lllllll}", r"\toprule", head + r" \\", r"\midrule"]
    lines += [" & ".join(cells) + r" \\" for cells in _cells(tables)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _cells(tables: Tables) -> list[list[str]]:
    return [
        [
            TITLES[row["dataset"]],
            LABELS[row["rule"]],
            _spread(row, "r2"),
            _short(row["r2_p"]),
            _spread(row, "seconds"),
            _short(row["seconds_p"]),
            _short(row["seconds_formula"]),
        ]
        for row in summarise(tables["table2"])
    ]


def _spread(row: Row, quantity: str) -> str:
    mean, low, high = (row[f"{quantity}{end}"] for end in ("", "_low", "_high"))
    return f"{mean:.2g} ({low:.2g}, {high:.2g})"


def _short(value: float | str) -> str:
    return "" if value == "" else f"{value:.2g}"


def draw_table2(tables: Tables) -> Any:
    """R2 against time from X to sigma, one panel for each data set."""
    summary = summarise(tables["table2"])
    fig = figure(13, 3.6)
    for ax, name in zip(fig.subplots(1, len(TITLES)), TITLES, strict=True):
        for row in where(summary, dataset=name):
            style = STYLES[row["rule"]]
            r2 = [[row["r2"] - row["r2_low"]], [row["r2_high"] - row["r2"]]]
            mark = {"color": style["color"], "marker": style["marker"], "linestyle": "none"}
            ax.errorbar(row["seconds"], row["r2"], r2, label=LABELS[row["rule"]], **mark)
        ax.set(title=TITLES[name], xscale="log", xlabel="seconds from X to sigma")
    fig.axes[0].set_ylabel(r"test $R^2$, mean and deciles")
    legend_below(fig, *fig.axes[0].get_legend_handles_labels())
    return fig
