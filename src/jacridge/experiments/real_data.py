"""Table 2: five large data sets, as the authors ran them, and with corrections."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from jacridge import datasets, select_bandwidth
from jacridge.datasets import Split

from ._draw import STYLES, column, legend_below, panels, where
from ._rules import LABELS, authors_grid
from ._survey import closed_forms, survey
from ._table import Harness, Job, Row, as_text, job

ALPHA = 1e-3
TITLES = {
    "wood_fibres": "Wood fibres",
    "appliances_energy": "Appliances",
    "california_housing": "California",
    "protein": "Protein",
    "black_smoke": "Black smoke",
}
# Rules that do not use y and take seconds per split: the kernel and the rule of each.
CLOSED = {
    "jacobian": ("gaussian", "jacobian"),
    "jacobian_median": ("gaussian", "jacobian_median"),
    "silverman": ("gaussian", "silverman"),
    "matern52": ("matern52", "jacobian"),
    "matern32": ("matern32", "jacobian"),
    "exponential": ("exponential", "median"),
}


def table2_jobs(harness: Harness) -> list[Job]:
    """All rules on all data sets, cheap ones first; an interrupted run has complete splits."""
    n_used = 2000 if harness.quick else 10_000
    return [
        job(_part, len(rules), dataset=name, seed=seed, rows_used=n_used, part=part)
        for part, (rules, splits) in PARTS.items()
        for seed in range(harness.n_splits(full=splits, quick=1))
        for name in TITLES
    ]


# The rules of one job, and the number of splits; the paper has 100 for all rules.
PARTS = {
    "closed": (tuple(CLOSED), 100),
    "loo": (("loo", "gcv"), 30),
    "mml": (("mml",), 30),
    "authors": (("mml_unit", "mml_published"), 10),
}
# The rules of all parts, in the order of the table.
ORDER = [rule for rule in LABELS if any(rule in rules for rules, _ in PARTS.values())]


def _part(name: str, seed: int, n_used: int, part: str) -> list[Row]:
    """Rows of the rules of one part on one split, rounded."""
    split = standardised_split(name, seed, n_used)
    if part == "closed":
        rows = closed_forms(CLOSED, split, ALPHA)
    else:
        grid = authors_grid(select_bandwidth(split.X, alpha=ALPHA).l_max, 10)
        rows = survey(PARTS[part][0], split, ALPHA, grid)
    return [{name: _rounded(value) for name, value in row.items()} for row in rows]


def _rounded(value: float | str) -> float | str:
    return value if isinstance(value, str) else float(f"{value:.6g}")


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

    The tests ask, as the paper's do, whether the Jacobian rule is better and faster. Splits that
    a run has not made for all data sets are left out.
    """
    names, summary = [name for name in TITLES if where(rows, dataset=name)], []
    whole = {}
    for rule in ORDER:
        made = where(rows, rule=rule)
        seeds = [{row["seed"] for row in where(made, dataset=name)} for name in names]
        common = set.intersection(*seeds)
        whole[rule] = [row for row in made if row["seed"] in common]
    for name in names:
        ours = where(whole["jacobian"], dataset=name)
        for rule in ORDER:
            theirs = where(whole[rule], dataset=name)
            if theirs:
                summary.append(_summary(name, rule, ours, theirs))
    return summary


def _summary(name: str, rule: str, ours: list[Row], theirs: list[Row]) -> Row:
    row: Row = {"dataset": name, "rule": rule, "splits": len(theirs)}
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
    """Wilcoxon's signed rank test on the splits that both have; empty if it is not defined."""
    other = {row["seed"]: row[quantity] for row in theirs}
    pairs = [(row[quantity], other[row["seed"]]) for row in ours if row["seed"] in other]
    differences = np.array([mine - their for mine, their in pairs])
    if len(differences) < 2 or not differences.any():
        return ""
    return float(wilcoxon(differences, alternative=better).pvalue)


def as_csv(rows: list[Row]) -> str:
    """The summary as CSV, with all digits."""
    return as_text(summarise(rows))


def as_markdown(rows: list[Row]) -> str:
    """Table 2 as Markdown."""
    head = "| data | rule | splits | R2 (deciles) | p | X to sigma, s (deciles) | p | formula, s |"
    lines = [head, "|" + "---|" * (head.count("|") - 1)]
    lines += ["| " + " | ".join(cells) + " |" for cells in _cells(rows)]
    return "\n".join(lines) + "\n"


def as_latex(rows: list[Row]) -> str:
    """Table 2 as a LaTeX tabular, for booktabs."""
    head = r"data & rule & splits & $R^2$ (deciles) & $p$ & $X$ to $\sigma$, s (deciles) & $p$ & "
    head += "formula, s"
    lines = [r"\begin{tabular}{llllllll}", r"\toprule", head + r" \\", r"\midrule"]
    lines += [" & ".join(cells) + r" \\" for cells in _cells(rows)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _cells(rows: list[Row]) -> list[list[str]]:
    return [
        [
            TITLES[row["dataset"]],
            LABELS[row["rule"]],
            str(row["splits"]),
            _spread(row, "r2"),
            _short(row["r2_p"]),
            _spread(row, "seconds"),
            _short(row["seconds_p"]),
            _short(row["seconds_formula"]),
        ]
        for row in summarise(rows)
    ]


def _spread(row: Row, quantity: str) -> str:
    mean, low, high = (row[f"{quantity}{end}"] for end in ("", "_low", "_high"))
    return f"{mean:.2g} ({low:.2g}, {high:.2g})"


def _short(value: float | str) -> str:
    return "" if value == "" else f"{value:.2g}"


def draw_table2(rows: list[Row]) -> Any:
    """R2 against time from X to sigma, one panel per data set."""
    return draw_summary(summarise(rows))


def draw_summary(summary: Sequence[Row]) -> Any:
    """The picture of a summary."""
    fig, axes = panels(13, 3.9, 1, len(TITLES))
    for ax, name in zip(axes, TITLES, strict=True):
        for row in where(summary, dataset=name):
            style = STYLES[row["rule"]]
            r2 = [[row["r2"] - row["r2_low"]], [row["r2_high"] - row["r2"]]]
            mark = {"color": style["color"], "marker": style["marker"], "linestyle": "none"}
            ax.errorbar(row["seconds"], row["r2"], r2, label=LABELS[row["rule"]], **mark)
        ax.set(title=TITLES[name], xscale="log", xlabel="seconds from X to sigma")
    axes[0].set_ylabel(r"test $R^2$, mean and deciles")
    legend_below(fig, *axes[0].get_legend_handles_labels())
    return fig
