"""Series in the order of time: whether the target repeats, and after how many rows."""

from __future__ import annotations

import numpy as np

from .._compute.arrays import Array
from ._case import Case

SERIES_ROWS = 40  # rows of a series in which a cycle is looked for
REPEATS = 0.4  # autocorrelation from which a series is said to repeat


def cycle(case: Case) -> int | None:
    """Number of rows after which the target repeats, in a table of evenly spaced times.

    None if it does not, and if another column repeats as clearly, which then tells the cycle.
    """
    time, n = case.table.time, len(case.y)
    if time is None or case.classes or n < SERIES_ROWS:
        return None
    order = np.argsort(case.X[:, time], kind="stable")
    steps = np.diff(case.X[order, time])
    if steps.std() > 0.01 * steps.mean():
        return None
    found = autocorrelation(case.y[order])
    below = np.flatnonzero(found < 0)  # a wave is below zero at half of its length
    if not len(below):
        return None
    # Of several rounds the first one is meant, which is as good as later ones but for the noise.
    start = below[0] + np.flatnonzero(found[below[0] :] >= 0.9 * found[below[0] :].max())[0]
    lag = int(start + found[start : start + max(start // 10, 1) + 1].argmax())
    others = (case.X[order, i] for i in range(case.X.shape[1]) if i != time)
    known = max((autocorrelation(x)[lag] for x in others if np.ptp(x) > 0), default=0.0)
    return lag if found[lag] > max(REPEATS, known) else None


def autocorrelation(x: Array) -> Array:
    """Correlations of a series with itself after 0, 1, ... rows, up to a third, trend removed."""
    t = np.arange(len(x))
    x = x - np.polyval(np.polyfit(t, x, 1), t)
    products = np.correlate(x, x, "full")[len(x) - 1 :]
    lags = len(x) // 3 + 1
    # Means of the products: a sum over fewer rows would fall with the lag.
    return np.asarray((products / (len(x) - t))[:lags] / max(products[0] / len(x), 1e-300))
