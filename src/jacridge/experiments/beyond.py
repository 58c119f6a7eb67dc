"""Beyond the paper, on its data: more rules, other models, outliers, the true norm, subsamples."""

from __future__ import annotations

import warnings
from time import perf_counter
from typing import Any

import numpy as np

from jacridge import RULES, JacobianKernelRidge, select_bandwidth, theory
from jacridge._compute.arrays import Array
from jacridge._geometry.diameter import trimmed_diameter
from jacridge._rules.registry import SELECTORS
from jacridge.datasets import Split

from ._draw import column, deciles, draw_band, legend_below, panels, values, where
from ._rules import LABELS, choose, plain_fit, r2_on_test
from ._table import Harness, Job, Row, grid_of_jobs, job
from .demo import largest_slope
from .real_data import ALPHA, TITLES, standardised_split

# Share of the rows farthest from the centre that a trimmed l_max leaves out.
TRIMS = {"jacobian, 1 % trimmed": 0.01, "jacobian, 5 % trimmed": 0.05}
OTHERS = ("GridSearchCV", "KernelRidge defaults", "SVR defaults", "HistGradientBoosting")
METHODS = (*RULES, "loo for both", *TRIMS, *OTHERS)
SUBSAMPLES = (250, 500, 1000, 2000, 4000)
SUBSAMPLED = ("jacobian", "jacobian_median", "silverman", "loo")
TRUE_PENALTIES = (0.0, 1e-3, 1.0)


def training_rows(name: str, seed: int, n: int, n_test: int = 3500) -> Split:
    """The first n training rows of a split of Table 2, and its test rows."""
    split = standardised_split(name, seed)
    return Split(split.X[:n], split.y[:n], split.X_test[:n_test], split.y_test[:n_test])


def rules_jobs(harness: Harness) -> list[Job]:
    """Every rule of the package and other models on the splits of Table 2, 2000 rows of each."""
    n = 300 if harness.quick else 2000
    seeds = range(harness.n_splits(full=5, quick=1))
    return grid_of_jobs(_fit, dataset=TITLES, seed=seeds, n=[n], method=METHODS)


def _fit(name: str, seed: int, n: int, method: str) -> list[Row]:
    """Test R2 and seconds of a fit, including the choice of its parameters."""
    split = training_rows(name, seed, n)
    model = _model(method)
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # equal rows, high p: the table shows the consequences
        model.fit(split.X, split.y)
    seconds = perf_counter() - start
    return [
        {
            "sigma": getattr(model, "bandwidth_", ""),
            "alpha": getattr(model, "alpha_", ""),
            "r2": float(model.score(split.X_test, split.y_test)),
            "seconds": seconds,
        }
    ]


def _model(method: str) -> Any:
    """The model with this name, not fitted."""
    if method in TRIMS:
        return JacobianKernelRidge(
            lambda problem: trimmed_jacobian(problem.X, TRIMS[method]), ALPHA
        )
    if method == "loo for both":
        return JacobianKernelRidge("loo", "loo")
    if method in SELECTORS:
        alpha = "auto" if SELECTORS[method].is_automatic else ALPHA
        return JacobianKernelRidge(method, alpha, random_state=0)
    return _other_model(method)


def _other_model(method: str) -> Any:
    """A model of scikit-learn; those without an intercept get a standardised target."""
    # Imported here, because importing these modules would slow down every start of the command.
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    if method == "HistGradientBoosting":
        return HistGradientBoostingRegressor(random_state=0)
    grid = {"gamma": np.logspace(-4, 1, 10), "alpha": np.logspace(-4, 1, 6)}
    models = {
        "GridSearchCV": GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5),
        "KernelRidge defaults": KernelRidge(kernel="rbf"),
        "SVR defaults": SVR(),
    }
    return TransformedTargetRegressor(models[method], transformer=StandardScaler())


def trimmed_jacobian(X: Array, share: float) -> float:
    """Jacobian bandwidth with l_max computed without the rows farthest from the centre."""
    n, p = X.shape
    return theory.sigma_0(n, theory.even_spacing(n, p, trimmed_diameter(X, share)), ALPHA)


def draw_rules(rows: list[Row]) -> Any:
    """Mean test R2 of each method, one panel for each data set."""
    fig, axes = panels(13, 5.4, 1, len(TITLES), sharey=True)
    methods = values(rows, "method")
    for ax, name in zip(axes, TITLES, strict=True):
        mean = [column(where(rows, dataset=name, method=m), "r2").mean() for m in methods]
        shown = np.clip(mean, -0.05, 1)
        colors = [
            "#0072B2" if m in (*RULES, *TRIMS, "loo for both") else "#E69F00" for m in methods
        ]
        ax.barh(range(len(methods)), shown, color=colors, height=0.6)
        for i, value in enumerate(mean):
            ax.text(max(shown[i], 0) + 0.01, i, f"{value:z.2f}", va="center", fontsize=8)
        ax.set(title=TITLES[name], xlabel=r"mean test $R^2$", xlim=(-0.05, 1))
    axes[0].set_yticks(range(len(methods)), methods)
    axes[0].invert_yaxis()
    return fig


def true_jobs(harness: Harness) -> list[Job]:
    """Minima of the true and of the approximate Jacobian norm."""
    n = 150 if harness.quick else 500
    seeds = range(harness.n_splits(full=5, quick=1))
    return grid_of_jobs(_minima, dataset=TITLES, seed=seeds, n=[n], alpha=TRUE_PENALTIES)


def _minima(name: str, seed: int, n: int, lam: float) -> list[Row]:
    split, start = training_rows(name, seed, n, n), perf_counter()
    approximate = select_bandwidth(split.X, alpha=lam).sigma
    sigmas = approximate * np.logspace(-2.5, 1, 43)
    fits = [plain_fit(split.X, split.y, sigma, lam) for sigma in sigmas]
    slopes = [largest_slope(fitted, _steep_points(split, fitted.bandwidth_)) for fitted in fits]
    scores = [float(fitted.score(split.X_test, split.y_test)) for fitted in fits]
    lowest = first_minimum(np.array(slopes))
    return [
        {
            "sigma_0": approximate,
            "sigma_true": sigmas[lowest] if lowest is not None else "",
            "r2_sigma_0": r2_on_test(split, approximate, lam),
            "r2_true": scores[lowest] if lowest is not None else "",
            "r2_best": max(scores),
            "sigma_best": sigmas[int(np.argmax(scores))],
            "seconds": perf_counter() - start,
        }
    ]


def _steep_points(split: Split, sigma: float) -> Array:
    """Training and test rows, and points one bandwidth from each training row.

    A narrow kernel is steepest there, and flat at the rows themselves.
    """
    step = np.random.default_rng(0).normal(size=split.X.shape)
    step *= sigma / np.linalg.norm(step, axis=1, keepdims=True)
    return np.vstack([split.X, split.X_test, split.X + step])


def first_minimum(curve: Array, rise: float = 1.05) -> int | None:
    """Index of the first minimum that follows a fall and precedes a rise of 5 %, if any."""
    lowest = np.minimum.accumulate(curve)
    risen = np.flatnonzero(curve > rise * lowest)
    return int(np.argmin(curve[: risen[0]])) or None if len(risen) else None


def draw_true(rows: list[Row]) -> Any:
    """The two minima against each other, and test R2 at each."""
    rows = [row for row in rows if row["sigma_true"] != ""]
    fig, (left, right) = panels(9, 4, 1, 2)
    for lam, marker, color in zip(
        TRUE_PENALTIES, "os^", ("#0072B2", "#E69F00", "#009E73"), strict=True
    ):
        part = where(rows, alpha=lam)
        style = {"marker": marker, "color": color, "linestyle": "none", "fillstyle": "none"}
        left.plot(
            column(part, "sigma_0"),
            column(part, "sigma_true"),
            label=rf"$\lambda = {lam:g}$",
            **style,
        )
        shown = [np.maximum(column(part, name), -0.5) for name in ("r2_sigma_0", "r2_true")]
        right.plot(*shown, clip_on=False, **style)
    left.set(xscale="log", yscale="log", xlabel=r"$\sigma_0$ of the approximate norm")
    left.set_ylabel("minimum of the true norm")
    right.set(xlabel=r"test $R^2$ at $\sigma_0$", ylabel=r"test $R^2$ at the true minimum")
    right.set_title(r"an $R^2$ below -0.5 is drawn there", fontsize=9)
    right.set(xlim=(-0.5, 1), ylim=(-0.5, 1))
    for ax in (left, right):
        ax.axline((0.1, 0.1), (1, 1), color="0.7", linewidth=0.8, zorder=0)
    left.legend(frameon=False)
    return fig


def subsamples_jobs(harness: Harness) -> list[Job]:
    """How much a rule depends on which rows it sees, and on how many."""
    sizes = SUBSAMPLES[:2] if harness.quick else SUBSAMPLES
    return [
        job(_subsample, dataset=name, seed=seed, m=m, rule=rule)
        for seed in range(harness.n_splits(full=10, quick=2))
        for name in TITLES
        for m in sizes
        for rule in SUBSAMPLED
        if m <= 1000 or not SELECTORS[rule].looks_at_y
    ]


def _subsample(name: str, seed: int, m: int, rule: str) -> list[Row]:
    """Bandwidth from m rows of the first split, drawn with this seed, and its dependence on n."""
    split = standardised_split(name, 0)
    n, p = split.X.shape
    drawn = np.random.default_rng(seed).permutation(n)[:m]
    part = Split(split.X[drawn], split.y[drawn], split.X_test, split.y_test)
    choice = choose(rule, part.X, part.y, ALPHA)
    sigma = choice.sigma
    law = theory.even_spacing(n, p, 1.0) / theory.even_spacing(m, p, 1.0)
    r2 = r2_on_test(part, sigma, ALPHA)
    return [
        {
            "n": n,
            "p": p,
            "sigma": sigma,
            "carried": sigma * law,
            "r2": r2,
            "seconds": choice.seconds,
        }
    ]


def draw_subsamples(rows: list[Row]) -> Any:
    """Median and deciles of sigma over the number of rows, one panel for each data set."""
    fig, axes = panels(13, 3.4, 1, len(TITLES))
    for ax, name in zip(axes, TITLES, strict=True):
        for rule in SUBSAMPLED:
            spread = deciles(where(rows, dataset=name, rule=rule), "m", "sigma")
            draw_band(ax, rule, *spread, alpha=0.2, label=LABELS[rule])
        ax.set(title=TITLES[name], xscale="log", yscale="log", xlabel="rows seen")
        ax.set_xticks(SUBSAMPLES[::2], [str(m) for m in SUBSAMPLES[::2]])
        ax.set_xticks([], minor=True)
    axes[0].set_ylabel(r"bandwidth $\sigma$")
    legend_below(fig, *axes[0].get_legend_handles_labels())
    return fig
