"""Beyond the paper, on simulated data: functions of a known length scale, and many features."""

from __future__ import annotations

from typing import Any

import numpy as np

from jacridge.datasets import Split

from ._draw import STYLES, column, legend_below, panels, values, where
from ._rules import LABELS, choose, r2_on_test
from ._table import Harness, Job, Row, grid_of_jobs

RULES_RUN = ("jacobian", "jacobian_median", "silverman", "median", "scale", "loo", "mml", "auto")
DIMENSIONS = (1, 2, 5, 10)
# Length scales as multiples of the square root of p, the size of the cube.
SCALES = (0.03, 0.1, 0.3, 1.0, 3.0)
NOISE = 0.1
FEATURES = (2, 5, 10, 20, 50, 100, 200, 500)


def known_scale_jobs(harness: Harness) -> list[Job]:
    """Draws from a Gaussian process whose length scale is known."""
    n = 150 if harness.quick else 500
    seeds = range(harness.n_splits(full=10, quick=1))
    key = {"p": DIMENSIONS, "share": SCALES, "seed": seeds, "n": [n]}
    return grid_of_jobs(_known_scale, len(RULES_RUN), **key)


def gaussian_process(p: int, scale: float, seed: int, n: int) -> Split:
    """Training rows with noise and test rows without, of one draw of a Gaussian process."""
    rng = np.random.default_rng([seed, p])
    X = rng.uniform(size=(2 * n, p))
    D2 = np.square(X[:, None] - X[None]).sum(axis=2)
    eigenvalues, vectors = np.linalg.eigh(np.exp(-0.5 * D2 / scale**2))
    f = vectors @ (np.sqrt(np.maximum(eigenvalues, 0)) * rng.normal(size=2 * n))
    y = f[:n] + NOISE * rng.normal(size=n)
    return Split(X[:n], y, X[n:], f[n:])


def _known_scale(p: int, share: float, seed: int, n: int) -> list[Row]:
    """Every rule gets the true penalty, the variance of the noise."""
    scale, lam = share * np.sqrt(p), NOISE**2
    split = gaussian_process(p, scale, seed, n)
    best = r2_on_test(split, scale, lam)
    return [
        {"rule": rule, "scale": scale, "r2_scale": best, **_outcome(rule, split, lam)}
        for rule in RULES_RUN
    ]


def _outcome(rule: str, split: Split, lam: float) -> Row:
    """Bandwidth, its seconds and test R2 of a rule; `auto` chooses its own penalty."""
    choice = choose(rule, split.X, split.y, lam)
    r2 = r2_on_test(split, choice.sigma, float(np.mean(choice.alpha)))
    return {
        "sigma": choice.sigma,
        "l_max": choice.l_max,
        "r2": r2,
        "seconds": choice.seconds,
    }


def draw_known_scale(rows: list[Row]) -> Any:
    """Ratio of chosen to true length scale, and loss of R2, for each dimension."""
    fig, axes = panels(12, 6.4, 2, len(DIMENSIONS), sharex="col", sharey="row")
    for j, p in enumerate(DIMENSIONS):
        lines = []
        for rule in RULES_RUN:
            part = where(rows, p=p, rule=rule)
            shares = values(part, "share")
            middle = [_medians(where(part, share=share)) for share in shares]
            ratio, loss = np.array(middle).T
            style = rule_style(rule)
            lines += axes[0, j].plot(shares, ratio, **style)
            axes[1, j].plot(shares, np.maximum(loss, 1e-4), **style)
        axes[0, j].axhline(1, color="0.7", linewidth=0.8, zorder=0)
        axes[0, j].set(title=f"p = {p}", xscale="log", yscale="log")
        axes[1, j].set(yscale="log", xlabel=r"true scale / $\sqrt{p}$")
    axes[0, 0].set_ylabel("chosen / true scale")
    axes[1, 0].set_ylabel(r"loss of $R^2$ against the true scale")
    legend_below(fig, lines, [LABELS.get(rule, rule) for rule in RULES_RUN])
    return fig


def _medians(rows: list[Row]) -> tuple[float, float]:
    ratio = np.median(column(rows, "sigma") / column(rows, "scale"))
    loss = np.median(column(rows, "r2_scale") - column(rows, "r2"))
    return float(ratio), float(loss)


def rule_style(rule: str) -> dict[str, Any]:
    """Style of a rule with small markers."""
    return {**STYLES[rule], "markersize": 4, "linewidth": 1.2}


def high_p_jobs(harness: Harness) -> list[Job]:
    """A function of two features among an increasing number of irrelevant features."""
    n = 150 if harness.quick else 500
    seeds = range(harness.n_splits(full=10, quick=1))
    return grid_of_jobs(_high_p, len(RULES_RUN), p=FEATURES, seed=seeds, n=[n])


def _high_p(p: int, seed: int, n: int) -> list[Row]:
    rng = np.random.default_rng([seed, p])
    X = rng.normal(size=(2 * n, p))
    f = np.sin(X[:, 0]) + X[:, 1] * np.abs(X[:, 1]) / 2
    split = Split(X[:n], f[:n] + NOISE * rng.normal(size=n), X[n:], f[n:])
    return [{"rule": rule, **_outcome(rule, split, 1e-3)} for rule in RULES_RUN]


def draw_high_p(rows: list[Row]) -> Any:
    """Bandwidth over the largest distance, and R2, against the number of features."""
    fig, (left, right) = panels(10, 4, 1, 2)
    lines = []
    for rule in RULES_RUN:
        part = [where(rows, p=p, rule=rule) for p in FEATURES]
        ratio = [np.median(column(each, "sigma") / column(each, "l_max")) for each in part]
        r2 = [np.median(column(each, "r2")) for each in part]
        style = rule_style(rule)
        lines += left.plot(FEATURES, ratio, **style)
        right.plot(FEATURES, r2, **style)
    left.axhline(1, color="0.7", linewidth=0.8, zorder=0)
    left.set(xscale="log", yscale="log", xlabel="features p", ylabel=r"$\sigma / l_{\max}$")
    right.set(xscale="log", xlabel="features p", ylabel=r"test $R^2$", ylim=(-0.1, 1.02))
    legend_below(fig, lines, [LABELS.get(rule, rule) for rule in RULES_RUN])
    return fig
