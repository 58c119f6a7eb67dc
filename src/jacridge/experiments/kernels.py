"""Beyond the Gaussian: Figures 2 and 3 for the other kernels, and R2 of all of them without y."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from jacridge import select_bandwidth, theory
from jacridge._geometry.kernels import KERNELS
from jacridge._rules.registry import SELECTORS

from ._draw import column, legend_below, panels, values, where
from ._rules import plain_fit
from ._table import Harness, Job, Row, grid_of_jobs, job, table_rows
from .beyond import training_rows
from .demo import compared_data, largest_slope
from .real_data import ALPHA, TITLES

# Figure 2: n = 10, l_max = 1, p = 1, as in the paper. Thresholds of a grid are 0.30 to 0.89.
PENALTIES = (0.0, 0.1, 1.0)
# Figure 3: laplacian is a kernel of features, so it is not available for distances on the globe.
DATA_AND_KERNELS = [
    (name, kernel)
    for name in ("french_1d", "cauchy", "french_2d")
    for kernel in KERNELS
    if name != "french_2d" or KERNELS[kernel].power == 2
]
WITHOUT_Y = [name for name, rule in SELECTORS.items() if not rule.looks_at_y]
PAIRS = [
    (kernel, rule)
    for kernel, known in KERNELS.items()
    for rule in WITHOUT_Y
    if SELECTORS[rule].suits(known)
]
DATA = {"french_1d": "1-D temperature", "cauchy": "Cauchy", "french_2d": "2-D temperature"}
UNITS = {"french_1d": " (h)", "cauchy": "", "french_2d": " (m)"}
COLORS = dict(zip(PENALTIES, ("#0072B2", "#E69F00", "#009E73"), strict=True))


def factors_jobs(harness: Harness) -> list[Job]:
    """The norm of a grid and its two factors, for each kernel, in the three regimes."""
    points = 60 if harness.quick else 400
    return grid_of_jobs(_factors, points, kernel=KERNELS, alpha=PENALTIES, points=[points])


def _factors(kernel: str, lam: float, points: int) -> list[Row]:
    spacing = theory.even_spacing(10, 1, 1.0)
    sigmas = np.geomspace(spacing / 10, 10 * spacing, points)
    slope = theory.slope_bound(sigmas, kernel)
    norm = theory.lattice_jacobian_norm(sigmas, kernel, spacing, 1, lam)
    smallest = theory.lattice_eigenvalue(sigmas, kernel, spacing, 1)
    chosen = theory.lattice_sigma_0(kernel, spacing, 1, lam) if KERNELS[kernel].is_smooth else ""
    factors = {"slope": slope, "smallest_eigenvalue": smallest}
    return table_rows(sigma=sigmas, norm=norm, **factors, sigma_0=chosen)


def draw_factors(rows: list[Row]) -> Any:
    """One panel for each kernel and penalty: the norm and its two factors."""
    fig, axes = panels(13, 8, len(PENALTIES), len(KERNELS), sharex=True, sharey="row")
    for line, lam in zip(axes, PENALTIES, strict=True):
        for ax, kernel in zip(line, KERNELS, strict=True):
            part = where(rows, kernel=kernel, alpha=lam)
            sigma, slope = column(part, "sigma"), column(part, "slope")
            inverse = 1 / (column(part, "smallest_eigenvalue") + lam)
            lines = ax.plot(sigma, column(part, "norm"), "-", color="#0072B2", linewidth=2)
            lines += ax.plot(sigma, slope, "--", color="#D55E00")
            lines += ax.plot(sigma, inverse, "-.", color="#009E73")
            if part[0]["sigma_0"] != "":
                mark = ax.axvline(part[0]["sigma_0"], color="0.4", linestyle=":")
            ax.set(xscale="log", yscale="log", title=rf"{kernel}, $\lambda = {lam:g}$")
        line[0].set_ylim(1e-1, 1e4)
    for ax in axes[-1]:
        ax.set_xlabel(r"bandwidth $\sigma$")
    labels = ["norm $J$", "largest slope", r"$1 / (\lambda_{\min} + \lambda)$", r"$\sigma_0$"]
    legend_below(fig, [*lines, mark], labels)
    return fig


def norms_jobs(harness: Harness) -> list[Job]:
    """Norm of a grid and true norm over sigma, for each data set and kernel."""
    points = 6 if harness.quick else 40
    return [
        job(_norms, points, dataset=name, kernel=kernel, alpha=lam, points=points)
        for name, kernel in DATA_AND_KERNELS
        for lam in PENALTIES
        if not harness.quick or name != "french_2d"  # distances on the globe take a minute
    ]


def _norms(name: str, kernel: str, lam: float, n_sigmas: int) -> list[Row]:
    X, y, points, metric = compared_data(name)
    # Any rule returns the spacing; for the Cauchy data it is the median one, as in the paper.
    geometry = select_bandwidth(X, rule="scale", alpha=lam, kernel=kernel, metric=metric)
    spacing = geometry.spacing
    if name == "cauchy":
        spacing = select_bandwidth(X, rule="jacobian_median", alpha=lam).spacing
    chosen = theory.lattice_sigma_0(kernel, spacing, 1, lam) if KERNELS[kernel].is_smooth else ""
    sigmas = spacing * np.geomspace(0.1, 10, n_sigmas)
    norms = theory.lattice_jacobian_norm(sigmas, kernel, spacing, 1, lam)
    fits = (plain_fit(X, y, sigma, lam, kernel=kernel, metric=metric) for sigma in sigmas)
    true = [largest_slope(fitted, points) for fitted in fits]
    return table_rows(sigma=sigmas, approximate=norms, true=true, sigma_0=chosen)


def draw_norms(rows: list[Row]) -> Any:
    """One panel for each data set and kernel; the norm of a grid is scaled to meet the true one."""
    names = values(rows, "dataset")
    fig, axes = panels(14, 8, len(names), len(KERNELS), squeeze=False)
    for line, name in zip(axes, names, strict=True):
        for ax, kernel in zip(line, KERNELS, strict=True):
            part = where(rows, dataset=name, kernel=kernel)
            if not part:
                ax.axis("off")
                continue
            lines = [line for lam in PENALTIES for line in _pair(ax, where(part, alpha=lam), lam)]
            ax.set(xscale="log", yscale="log", title=kernel, xlabel=f"bandwidth{UNITS[name]}")
        line[0].set_ylabel(f"largest gradient,\n{DATA[name]}")
    labels = [f"{what}, λ = {lam:g}" for lam in PENALTIES for what in ("true", "grid")]
    legend_below(fig, lines, labels)
    return fig


def _pair(ax: Any, rows: list[Row], lam: float) -> list[Any]:
    """The true norm, and the norm of a grid, scaled to meet it at the chosen bandwidth."""
    sigma, true, grid = (column(rows, name) for name in ("sigma", "true", "approximate"))
    chosen = rows[0]["sigma_0"]
    at = len(sigma) // 2 if chosen == "" else int(np.argmin(np.abs(np.log(sigma / chosen))))
    shown = grid < 100 * grid[at]
    lines = ax.plot(sigma, true, "-", color=COLORS[lam])
    lines += ax.plot(sigma[shown], grid[shown] * true[at] / grid[at], "--", color=COLORS[lam])
    if chosen != "":
        ax.axvline(chosen, color=COLORS[lam], linestyle=":", linewidth=0.8)
    return list(lines)


def without_y_jobs(harness: Harness) -> list[Job]:
    """All kernels with all rules that do not use y, on the tables of the paper."""
    n = 200 if harness.quick else 2000
    tables = list(TITLES)[:2] if harness.quick else list(TITLES)
    return [
        job(_score, dataset=name, seed=seed, n=n, kernel=kernel, rule=rule)
        for seed in range(harness.n_splits(full=5, quick=1))
        for name in tables
        for kernel, rule in PAIRS
    ]


def _score(name: str, seed: int, n: int, kernel: str, rule: str) -> list[Row]:
    """Bandwidth, its seconds, and test R2 at the penalty of the paper."""
    split = training_rows(name, seed, n)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*rows repeat")
        options = {"alpha": ALPHA, "kernel": kernel, "random_state": 0}
        choice = select_bandwidth(split.X, None, rule, **options)  # type: ignore[arg-type]
    fitted = plain_fit(split.X, split.y, choice.sigma, ALPHA, kernel=kernel)
    r2 = float(fitted.score(split.X_test, split.y_test))
    return [{"sigma": choice.sigma, "r2": r2, "seconds": choice.seconds}]


def mean_r2(rows: list[Row]) -> dict[tuple[str, str], float]:
    """Mean test R2 over tables and splits, of each kernel and rule."""
    return {
        (kernel, rule): float(column(part, "r2").mean())
        for kernel, rule in PAIRS
        if (part := where(rows, kernel=kernel, rule=rule))
    }


def as_markdown(rows: list[Row]) -> str:
    """Mean test R2 of kernels and rules as Markdown; a dash where a kernel has no such rule."""
    means = mean_r2(rows)
    lines = ["| rule | " + " | ".join(KERNELS) + " |", "|---" * (len(KERNELS) + 1) + "|"]
    shown = {pair: f"{mean:.3f}" for pair, mean in means.items()}
    for rule in WITHOUT_Y:
        cells = [shown.get((kernel, rule), "-") for kernel in KERNELS]
        lines.append(f"| `{rule}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def draw_without_y(rows: list[Row]) -> Any:
    """Mean test R2 of each kernel, one panel for each rule."""
    means = mean_r2(rows)
    fig, axes = panels(13, 3.2, 1, len(WITHOUT_Y), sharey=True)
    for ax, rule in zip(axes, WITHOUT_Y, strict=True):
        for i, kernel in enumerate(KERNELS):
            if (kernel, rule) in means:
                ax.barh(i, max(means[kernel, rule], 0), color="#0072B2", height=0.6)
                ax.text(0.02, i, f"{means[kernel, rule]:.2f}", va="center", color="white")
        ax.set(title=rule, xlim=(0, 1))
    axes[0].set_yticks(range(len(KERNELS)), list(KERNELS))
    axes[0].invert_yaxis()
    fig.supxlabel(r"mean test $R^2$")
    return fig
