"""Figures 6 and 7: test R2, bandwidth and time over the sample size and over the penalty."""

from __future__ import annotations

from typing import Any

import numpy as np

from jacridge import datasets
from jacridge.datasets import Split

from ._draw import deciles, draw_band, legend_below, panels, where
from ._rules import DRAWN, LABELS, PAPER_RULES, measured
from ._table import Harness, Job, Row

METRIC_OF = {"french_2d": "geodesic", "french_1d": "euclidean", "cauchy": "euclidean"}
# The sample sizes that the authors' code ran, and the one at which it varied the penalty.
SIZES = {
    "french_2d": range(10, 38),
    "french_1d": range(10, 221, 10),
    "cauchy": range(10, 111, 5),
}
SIZE_FOR_PENALTIES = {"french_2d": 25, "french_1d": 100, "cauchy": 50}
PENALTIES = tuple(float(lam) for lam in np.logspace(-5, 2, 15))
TITLES = {
    "french_2d": "2-D temperature",
    "french_1d": "1-D temperature",
    "cauchy": "Cauchy (median rule)",
}


def fig6_jobs(harness: Harness) -> list[Job]:
    """The sweep over the sample size at lambda = 0.001."""
    points = {name: [(n, 1e-3) for n in sizes] for name, sizes in SIZES.items()}
    return _jobs(harness, "n", points)


def fig7_jobs(harness: Harness) -> list[Job]:
    """The sweep over the penalty at one sample size for each data set."""
    points = {name: [(n, lam) for lam in PENALTIES] for name, n in SIZE_FOR_PENALTIES.items()}
    return _jobs(harness, "lambda", points)


def _jobs(harness: Harness, sweep: str, points: dict[str, list[tuple[int, float]]]) -> list[Job]:
    """One job for each data set and seed."""
    return [
        Job(
            {"dataset": name, "seed": seed},
            _sweep,
            (name, sweep, todo, seed),
            len(todo) * len(PAPER_RULES),
        )
        for seed in range(harness.n_splits(full=50, quick=2))
        for name, todo in points.items()
    ]


def _sweep(name: str, sweep: str, todo: list[tuple[int, float]], seed: int) -> list[Row]:
    return [row for n, lam in todo for row in point(name, sweep, n, lam, seed)]


def point(name: str, sweep: str, n: int, lam: float, seed: int) -> list[Row]:
    """Rows of all rules at one sample size, penalty and seed, split as the authors did.

    Parameters
    ----------
    name : {"french_2d", "french_1d", "cauchy"}
    sweep : {"n", "lambda"}
        Over n the last 15 % of the permuted rows are the test rows, over lambda all that are
        not training rows.
    n : int
        Training rows.
    lam : float
    seed : int
    """
    data, overlap = split(name, sweep, n, seed)
    rows = measured(PAPER_RULES, data, lam, metric=METRIC_OF[name], points=100)
    return [{"n": n, "alpha": lam, "overlap": overlap, **row} for row in rows]


def split(name: str, sweep: str, n: int, seed: int) -> tuple[Split, int]:
    """Training and test rows, and how many rows are both (the authors' n becomes too large)."""
    if name == "cauchy":
        return datasets.cauchy(n, seed), 0
    data = datasets.load(name)
    order = np.random.RandomState(seed).permutation(len(data.y))
    first = round(0.85 * len(order)) if sweep == "n" else n
    train, test = order[:n], order[first:]
    return Split(data.X[train], data.y[train], data.X[test], data.y[test]), max(0, n - first)


def draw_fig6(rows: list[Row]) -> Any:
    """Nine panels over n, without the sizes at which test rows were trained on."""
    rows = [row for row in rows if row["overlap"] == 0]
    return _draw(rows, "n", "training rows n", "linear")


def draw_fig7(rows: list[Row]) -> Any:
    """Nine panels over lambda."""
    return _draw(rows, "alpha", r"penalty $\lambda$", "log")


def _draw(rows: list[Row], over: str, label: str, scale: str) -> Any:
    """R2, sigma and milliseconds for each data set: median and deciles over the seeds."""
    fig, axes = panels(11, 8.6, 3, 3, sharex="col")
    quantities = {"r2": (r"test $R^2$", 1), "sigma": (r"bandwidth $\sigma$", 1)}
    quantities["seconds"] = ("time from X to sigma (ms)", 1000)
    for j, name in enumerate(TITLES):
        for i, (quantity, (text, unit)) in enumerate(quantities.items()):
            ax = axes[i, j]
            in_km = 1e-3 if (quantity, name) == ("sigma", "french_2d") else 1
            lines = [
                _draw_rule(ax, where(rows, dataset=name), rule, over, quantity, unit=unit * in_km)
                for rule in DRAWN
            ]
            ax.set_yscale("linear" if quantity == "r2" else "log")
            ax.set_ylabel(text if j == 0 else "km" if in_km != 1 else "")
        axes[0, j].set(title=TITLES[name], ylim=(-0.3, 1.05), xscale=scale)
        axes[0, j].axhline(0, color="0.7", linewidth=0.8, zorder=0)
        axes[2, j].set_xlabel(label)
    axes[1, 0].set_ylabel(r"bandwidth $\sigma$ (km)")
    legend_below(fig, lines, [LABELS[rule] for rule in DRAWN])
    return fig


def _draw_rule(
    ax: Any, rows: list[Row], rule: str, over: str, quantity: str, *, unit: float
) -> Any:
    """Median of one rule with a band from the first to the ninth decile."""
    at_hand = "jacobian_median" if (rule, rows[0]["dataset"]) == ("jacobian", "cauchy") else rule
    x, spread = deciles(where(rows, rule=at_hand), over, quantity)
    return draw_band(ax, rule, x, unit * spread)
