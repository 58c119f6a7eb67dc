"""Pictures of a choice: the Jacobian norm, criteria and rules against the bandwidth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._look import BLUE, DASHES, GREEN, ORANGE, PURPLE, SIGMA, Axes, axes, legend, mark

Box = tuple[float, float, float, float]  # left, low, right, high

# Where a name may stand beside its point, to the right and up in points; the nearest first.
OFFSETS = sorted(
    (
        (side * out, lift)
        for out in (6, 20, 40, 60)
        for side in (1, -1)
        for lift in (
            range(-120, 121, 10) if out == 6 else [*range(-120, 0, 10), *range(10, 121, 10)]
        )
    ),
    key=lambda at: (np.hypot(*at), -at[0]),
)


def plot_norm(
    sigma: npt.ArrayLike,
    norm: npt.ArrayLike,
    *,
    j_a: npt.ArrayLike | None = None,
    j_b: npt.ArrayLike | None = None,
    chosen: float | None = None,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Approximate Jacobian norm against the bandwidth, with its factors and the chosen point.

    Parameters
    ----------
    sigma, norm : arrays of shape (k,)
        Bandwidths, and the norm from :func:`jacridge.theory.approximate_jacobian_norm`.
    j_a, j_b : arrays of shape (k,), optional
        Its two factors, from :func:`jacridge.theory.j_a` and :func:`jacridge.theory.j_b`.
    chosen : float, optional
        Bandwidth to mark.
    ax : matplotlib axes, optional
    **style
        Passed to ``ax.plot`` for the norm.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import numpy as np
    >>> from jacridge import plots, theory
    >>> sigma = np.geomspace(0.01, 10)
    >>> norm = theory.approximate_jacobian_norm(sigma, n=10, spacing=0.125, lam=1e-3)
    >>> ax = plots.plot_norm(sigma, norm, chosen=theory.sigma_0(10, 0.125, 1e-3))
    """
    ax = axes(ax)
    ax.plot(sigma, norm, **{"color": BLUE, "label": r"$J^a_2 = j_a \, j_b$"} | style)
    if j_a is not None:
        ax.plot(sigma, j_a, color=ORANGE, linestyle="--", linewidth=1, label=r"$j_a$, smoothness")
    if j_b is not None:
        ax.plot(sigma, j_b, color=GREEN, linestyle="-.", linewidth=1, label=r"$j_b$, conditioning")
    mark(ax, chosen, r"$\sigma_0$")
    ax.set(xlabel=SIGMA, ylabel="approximate Jacobian norm", xscale="log", yscale="log")
    legend(ax)
    return ax


def plot_norms(
    sigma: npt.ArrayLike,
    approximate: npt.ArrayLike,
    true: npt.ArrayLike,
    *,
    chosen: float | None = None,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Approximate and true Jacobian norm.

    The approximate norm is only known up to a constant, so only shapes can be compared: it is
    scaled to meet the true norm at the chosen bandwidth (or in the middle of the curves).

    Parameters
    ----------
    sigma, approximate, true : arrays of shape (k,)
    chosen : float, optional
        Bandwidth to mark.
    ax : matplotlib axes, optional
    **style
        Passed to ``ax.plot`` for both curves.

    Returns
    -------
    matplotlib axes
    """
    ax = axes(ax)
    sigma, approximate, true = (np.asarray(a, dtype=float) for a in (sigma, approximate, true))
    meet = np.sqrt(sigma[0] * sigma[-1]) if chosen is None else chosen
    at = [np.interp(np.log(meet), np.log(sigma), np.log(norm)) for norm in (approximate, true)]
    scale = np.exp(at[1] - at[0])
    ax.plot(sigma, true, **{"color": BLUE, "label": "true, at its largest"} | style)
    dashed = {"color": ORANGE, "linestyle": "--", "label": "approximate, scaled to meet"}
    ax.plot(sigma, scale * approximate, **dashed | style)
    mark(ax, chosen)
    ax.set(xlabel=SIGMA, ylabel="Jacobian norm", xscale="log", yscale="log")
    # The approximate norm is unbounded, so the limits are set by the true norm.
    finite = true[np.isfinite(true) & (true > 0)]
    if finite.size:
        ax.set_ylim(finite.min() / 3, finite.max() * 3)
    legend(ax)
    return ax


def plot_criteria(
    sigma: npt.ArrayLike,
    criteria: Mapping[str, npt.ArrayLike],
    *,
    chosen: float | None = None,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Criteria to be minimised against the bandwidth, each with a dot at its minimum.

    Criteria have different units: if there are several, each is scaled from 0 (its minimum) to 1
    (its maximum).

    Parameters
    ----------
    sigma : array of shape (k,)
    criteria : dict of name -> array of shape (k,)
    chosen : float, optional
        Bandwidth to mark.
    ax : matplotlib axes, optional
    **style
        Passed to ``ax.plot`` for each curve.

    Returns
    -------
    matplotlib axes
    """
    ax = axes(ax)
    sigma = np.asarray(sigma, dtype=float)
    colours = (BLUE, ORANGE, GREEN, PURPLE)
    for i, (name, values) in enumerate(criteria.items()):
        values = np.asarray(values, dtype=float)
        if len(criteria) > 1:
            reach = np.ptp(values[np.isfinite(values)]) or 1.0
            values = (values - np.nanmin(values)) / reach
        look = {"color": colours[i % 4], "linestyle": DASHES[i % 4], "label": name} | style
        (line,) = ax.plot(sigma, values, **look)
        best = int(np.nanargmin(values))
        ax.plot(sigma[best], values[best], "o", color=line.get_color(), markersize=6)
    mark(ax, chosen)
    label = "criterion, from its minimum to its maximum" if len(criteria) > 1 else "".join(criteria)
    ax.set(xlabel=SIGMA, ylabel=label, xscale="log")
    legend(ax)
    return ax


def plot_criterion_map(
    sigma: npt.ArrayLike,
    alpha: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    chosen: tuple[float, float] | None = None,
    label: str = "criterion",
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    r"""Criterion over the bandwidth and the ridge penalty, with its minimum and the chosen pair.

    Parameters
    ----------
    sigma : array of shape (k,)
    alpha : array of shape (l,)
        Ridge penalties > 0.
    values : array of shape (l, k)
    chosen : (sigma, alpha), optional
    label : name of the criterion
    ax : matplotlib axes, optional
    **style
        Passed to ``ax.pcolormesh``.

    Returns
    -------
    matplotlib axes
    """
    ax = axes(ax)
    sigma, alpha, values = (np.asarray(a, dtype=float) for a in (sigma, alpha, values))
    # The worst tenth is far from all other values and would use up most of the colours.
    top = np.nanpercentile(values, 90)
    look = {"cmap": "cividis_r", "shading": "nearest", "vmax": top} | style
    mesh = ax.pcolormesh(sigma, alpha, values, **look)
    ax.figure.colorbar(mesh, ax=ax, label=label, extend="max")
    i, j = np.unravel_index(np.nanargmin(values), values.shape)
    ring = {"linestyle": "", "markersize": 10, "markeredgecolor": "white", "zorder": 3}
    ax.plot(sigma[j], alpha[i], "o", color=ORANGE, label="minimum", **ring)
    if chosen is not None:
        ax.plot(*chosen, "D", color="black", label="chosen", **ring)
    ax.set(xlabel=SIGMA, ylabel=r"ridge penalty $\lambda$", xscale="log", yscale="log")
    ax.legend(loc="upper left")
    return ax


def plot_rules(
    rules: Sequence[str],
    seconds: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    spread: npt.ArrayLike | None = None,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Comparison of rules and models: score against time, with a name at each point.

    Parameters
    ----------
    rules : names, one for each point
    seconds, scores : arrays of shape (len(rules),)
    spread : array of shape (len(rules),), optional
        Half the height of the error bars.
    ax : matplotlib axes, optional
    **style
        Passed to ``ax.errorbar``.

    Returns
    -------
    matplotlib axes
    """
    ax = axes(ax)
    seconds, scores = np.asarray(seconds, dtype=float), np.asarray(scores, dtype=float)
    look = {"fmt": "o", "color": BLUE, "ecolor": "0.7", "elinewidth": 1, "capsize": 2} | style
    ax.errorbar(seconds, scores, yerr=spread, **look)
    ylabel = "test $R^2$" if spread is None else "test $R^2$, mean and deviation over splits"
    ax.set(xlabel="seconds to choose", ylabel=ylabel, xscale="log")
    ax.margins(x=0.08, y=0.12)
    _name_points(ax, rules, seconds, scores, spread)
    return ax


def _name_points(ax: Axes, names: Sequence[str], x: Any, y: Any, spread: Any) -> None:
    """Write a name beside each point, where it covers no point, error bar, line or other name."""
    ax.get_xlim(), ax.get_ylim()  # reading the limits updates them after the last drawing
    # All lengths in points, 1/72 inch: pixels would change with the resolution of the file.
    unit = 72 / ax.figure.dpi
    frame = ax.get_window_extent().extents * unit
    half = np.zeros(len(x)) if spread is None else np.asarray(spread, dtype=float)
    places, low, high = (
        ax.transData.transform(np.column_stack([x, y + sign * half])) * unit for sign in (0, -1, 1)
    )
    points = [(left - 4, y - 4, left + 4, y + 4) for left, y in places]
    bars = [(left - 3, a, left + 3, b) for (left, a), (_, b) in zip(low, high, strict=True)]
    written: list[Box] = []
    lines: list[Box] = []
    for i in np.argsort(x):
        width = _width(ax, names[i]) * unit
        boxes = {at: _box(places[i], *at, width) for at in OFFSETS}
        free = (
            at
            for at, box in boxes.items()
            if _is_free(box, [*points, *bars, *written, *lines], frame)
            and all(_is_free(dot, written, frame) for dot in _line(places[i], *at))
        )
        out, lift = next(free, OFFSETS[0])
        written.append(boxes[out, lift])
        lines += _line(places[i], out, lift)
        ax.annotate(
            names[i],
            (x[i], y[i]),
            xytext=(out, lift),
            textcoords="offset points",
            va="center",
            ha="left" if out > 0 else "right",
            fontsize="small",
            arrowprops={"arrowstyle": "-", "color": "0.7", "linewidth": 0.6} if lift else None,
        )


def _width(ax: Axes, name: str) -> float:
    """The width of a name in pixels."""
    text = ax.text(0, 0, name, fontsize="small")
    width = text.get_window_extent().width
    text.remove()
    return float(width)


def _box(place: Any, out: float, lift: float, width: float) -> Box:
    """Box that a name would occupy."""
    start = place[0] + out
    left, right = sorted((start, start + np.sign(out) * width))
    return left, place[1] + lift - 5, right, place[1] + lift + 5


def _line(place: Any, out: float, lift: float) -> list[Box]:
    """Dots on the line from a point to its name, if there is one."""
    steps: Any = np.linspace(0.2, 0.9, 8)[:, None] * (out, lift) if lift else []
    return [(a - 1, b - 1, a + 1, b + 1) for a, b in (np.add(place, step) for step in steps)]


def _is_free(box: Box, taken: Sequence[Box], frame: Any) -> bool:
    """Whether a box lies inside the frame and covers nothing else."""
    inside = frame[0] < box[0] and box[2] < frame[2] and frame[1] < box[1] and box[3] < frame[3]
    return bool(inside) and not any(
        box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken
    )
