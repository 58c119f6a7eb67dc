"""Figures 1 to 3: the effect of the bandwidth, and the approximate and the true Jacobian norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from jacridge import JacobianKernelRidge, datasets, select_bandwidth, theory
from jacridge._compute.arrays import Array
from jacridge._geometry.geodesics import metres_per_degree

from ._draw import column, legend_below, log_scale, panels, values, where
from ._rules import plain_fit
from ._table import Harness, Job, Row, job, table_rows

FACTORS = {"sigma_0": 1.0, "sigma_0 / 5": 0.2, "5 sigma_0": 5.0}
# Figure 2: n = 10, l_max = 1, p = 1; penalty -> range of sigma.
REGIMES = {0.0: (0.01, 0.4), 1.0: (0.01, 1.0), 5.0: (0.02, 1.0)}
# Figure 3: data set -> penalty -> range of sigma, in metres, hours and units of x.
COMPARED = {
    "french_2d": {0.0: (1e4, 2.3e5), 5.0: (5e3, 7e5), 20.0: (5e3, 7e5)},
    "french_1d": {0.0: (0.2, 7.0), 50.0: (0.1, 7.0), 150.0: (0.1, 7.0)},
    "cauchy": {0.0: (0.004, 0.4), 10.0: (0.01, 1.0), 30.0: (0.01, 1.0)},
}
TITLES = {
    "french_2d": ("2-D temperature", "bandwidth (km)"),
    "french_1d": ("1-D temperature", "bandwidth (h)"),
    "cauchy": ("Cauchy, median rule", "bandwidth"),
}


def fig1_jobs(harness: Harness) -> list[Job]:
    """Curves for three bandwidths and two penalties."""
    n_rows = 10 + 401 * (1 + len(FACTORS))
    return [Job({"alpha": lam, "seed": 1}, _fits, (lam,), n_rows) for lam in (0.0, 0.5)]


def _fits(lam: float) -> list[Row]:
    """Observations, the true function and three fits, in the authors' order of draws."""
    rng = np.random.RandomState(1)
    x = rng.uniform(-2.5, 2.5, 10)
    y = np.sin(np.pi * x) + rng.normal(0, 0.1, 10)
    grid = np.linspace(-2.5, 2.5, 401)
    sigma_0 = theory.sigma_0(10, theory.even_spacing(10, 1, 5.0), lam)
    rows = table_rows(what="observation", sigma=0.0, x=x, y=y)
    rows += table_rows(what="true function", sigma=0.0, x=grid, y=np.sin(np.pi * grid))
    for name, factor in FACTORS.items():
        sigma = factor * sigma_0
        fitted = plain_fit(x[:, None], y, sigma, lam, fit_intercept=False)
        rows += table_rows(what=name, sigma=sigma, x=grid, y=fitted.predict(grid[:, None]))
    return rows


def draw_fig1(rows: list[Row]) -> Any:
    """Two panels, one for each penalty."""
    fig, axes = panels(9, 3.4, 1, 2, sharey=True)
    styles = {
        "sigma_0": ("#0072B2", "-", r"$\sigma = \sigma_0$"),
        "sigma_0 / 5": ("#E69F00", "--", r"$\sigma = \sigma_0 / 5$"),
        "5 sigma_0": ("#D55E00", "-.", r"$\sigma = 5 \sigma_0$"),
        "true function": ("0.6", ":", "true function"),
    }
    for ax, lam in zip(axes, values(rows, "alpha"), strict=True):
        for what, (color, dash, label) in styles.items():
            part = where(rows, alpha=lam, what=what)
            ax.plot(column(part, "x"), column(part, "y"), dash, color=color, label=label)
        seen = where(rows, alpha=lam, what="observation")
        ax.plot(column(seen, "x"), column(seen, "y"), "ok", label="observations")
        ax.set(title=rf"$\lambda = {lam:g}$", xlabel="x", ylim=(-1.6, 1.6))
    axes[0].set_ylabel("prediction")
    legend_below(fig, *axes[0].get_legend_handles_labels())
    return fig


def fig2_jobs(harness: Harness) -> list[Job]:
    """The approximate norm and its factors in the three regimes of the penalty."""
    return [job(_factors, 400, alpha=lam) for lam in REGIMES]


def _factors(lam: float) -> list[Row]:
    spacing = theory.even_spacing(10, 1, 1.0)
    sigma = np.linspace(*REGIMES[lam], 400)
    norm = theory.approximate_jacobian_norm(sigma, 10, spacing, lam)
    j_b = theory.j_b(sigma, 10, spacing, lam)
    chosen = theory.sigma_0(10, spacing, lam)
    return table_rows(sigma=sigma, norm=norm, j_a=theory.j_a(sigma), j_b=j_b, sigma_0=chosen)


def draw_fig2(rows: list[Row]) -> Any:
    """Three panels: the norm on the left axis, its factors on the right one."""
    fig, axes = panels(11, 3.6, 1, 3)
    for ax, lam in zip(axes, REGIMES, strict=True):
        part = where(rows, alpha=lam)
        sigma, right = column(part, "sigma"), ax.twinx()
        lines = ax.plot(sigma, column(part, "norm"), "-", color="#0072B2", linewidth=2)
        lines += right.plot(sigma, column(part, "j_a") / 100, "--", color="#D55E00")
        lines += right.plot(sigma, column(part, "j_b"), "-.", color="#009E73")
        lines.append(ax.axvline(part[0]["sigma_0"], color="0.4", linestyle=":"))
        if lam == 0:
            ax.set_yscale("log")
            right.set_yscale("log")
        ax.set(title=rf"$\lambda = {lam:g}$", xlabel=r"bandwidth $\sigma$")
    labels = [r"$J_2^a(\sigma)$, left axis", r"$j_a(\sigma) / 100$, right axis"]
    labels += [r"$j_b(\sigma)$, right axis", r"$\sigma_0$"]
    legend_below(fig, lines, labels)
    return fig


def fig3_jobs(harness: Harness) -> list[Job]:
    """Approximate and true Jacobian norm over sigma, three data sets, three penalties."""
    points = 16 if harness.quick else 60
    return [
        job(_norms, points, dataset=name, alpha=lam, points=points)
        for name, ranges in COMPARED.items()
        for lam in ranges
    ]


def _norms(name: str, lam: float, n_sigmas: int) -> list[Row]:
    X, y, points, metric = compared_data(name)
    rule = "jacobian_median" if name == "cauchy" else "jacobian"
    choice = select_bandwidth(X, y, rule, alpha=lam, metric=metric)
    sigmas = np.linspace(*COMPARED[name][lam], n_sigmas)
    norms = theory.approximate_jacobian_norm(sigmas, len(X), choice.spacing, lam)
    fits = (plain_fit(X, y, sigma, lam, metric=metric) for sigma in sigmas)
    true = [largest_slope(fitted, points) for fitted in fits]
    threshold = theory.lambda_threshold(len(X))
    chosen = {"sigma_0": choice.sigma, "threshold": threshold}
    return table_rows(sigma=sigmas, approximate=norms, true=true, **chosen)


def compared_data(name: str) -> tuple[Array, Array, Array, str]:
    """Training rows, target, the points where slopes are evaluated, and the metric."""
    if name == "cauchy":
        drawn = datasets.cauchy(50, seed=0, n_test=0)
        near = (drawn.X + np.linspace(-2, 2, 81)).reshape(-1, 1)
        return drawn.X, drawn.y, near, "euclidean"
    data = datasets.load(name)
    if name == "french_1d":
        return data.X, data.y, np.linspace(data.X[0], data.X[-1], 1001), "euclidean"
    lat, lon = np.meshgrid(np.linspace(42.3, 51.1, 40), np.linspace(-5, 8.3, 40))
    return data.X, data.y, np.column_stack([lat.ravel(), lon.ravel()]), "geodesic"


def largest_slope(fitted: JacobianKernelRidge, points: Array) -> float:
    """Largest norm of the gradient over the points, per metre for latitude and longitude."""
    if fitted.metric == "geodesic":
        slopes = fitted.jacobian(points) / metres_per_degree(points[:, 0])
        return float(np.linalg.norm(slopes, axis=1).max())
    return float(theory.true_jacobian_norm(fitted, points).max())


def draw_fig3(rows: list[Row]) -> Any:
    """Nine panels: approximate norm on the left axis, true norm on the right one."""
    fig, axes = panels(11, 8.6, 3, 3)
    for line, (name, ranges) in zip(axes, COMPARED.items(), strict=True):
        unit = 1000 if name == "french_2d" else 1
        for ax, lam in zip(line, ranges, strict=True):
            part = where(rows, dataset=name, alpha=lam)
            sigma, right = column(part, "sigma") / unit, ax.twinx()
            lines = ax.plot(sigma, column(part, "approximate") * unit, "-", color="#0072B2")
            lines += right.plot(sigma, column(part, "true") * unit, "--", color="#D55E00")
            lines.append(ax.axvline(part[0]["sigma_0"] / unit, color="0.4", linestyle=":"))
            log_scale(ax)
            log_scale(right)
            no_minimum = lam > part[0]["threshold"]
            title = rf"$\lambda = {lam:g}$" + (", no minimum" if no_minimum else "")
            ax.set(title=title, xlabel=TITLES[name][1])
        line[0].set_ylabel(TITLES[name][0], fontsize=12)
    labels = ["approximate norm, left axis", "true norm, right axis", r"$\sigma_0$"]
    legend_below(fig, lines, labels)
    return fig
