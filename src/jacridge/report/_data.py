"""What the sliders of the report show, as JSON: all fits over a grid of (sigma, lambda)."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from .. import theory
from .._checks import Array
from .._curves import FitGrid, fit_grid, sigma_grid
from ._case import Case

# Rows whose predictions are drawn, and points of the fitted curve or along a side of the surface.
SHOWN = 150
CURVE_POINTS = 160
SURFACE_POINTS = 28


def page_data(case: Case) -> str:
    """The numbers behind the charts, safe inside a script element."""
    X, y = case.Z[case.rows], case.y[case.rows]
    mean = y.mean()
    est = case.on_sample
    # A penalty of zero has no place on a log scale.
    lam = max(float(np.ravel(est.alpha_)[0]), 1e-10)
    spacing = theory.even_spacing(len(X), X.shape[1], case.choice.l_max)
    sigmas = sigma_grid(case.choice.l_max, spacing, 24, est.bandwidth_)
    lams = np.unique([*np.geomspace(1e-6, 100, 17), lam])
    shown = np.linspace(0, len(X) - 1, min(SHOWN, len(X))).astype(int)
    sides = _sides(case)
    grid = fit_grid(X, y - mean, sigmas, lams, shown, _new_rows(case, sides))
    norm = [theory.approximate_jacobian_norm(sigmas, len(X), spacing, lam) for lam in lams]
    data = {
        "sigmas": _numbers(sigmas),
        "lambdas": _numbers(lams),
        "start": [int(np.searchsorted(lams, lam)), int(np.searchsorted(sigmas, est.bandwidth_))],
        "variance": float(y.var()),
        "approximate": _numbers(np.array(norm)),
        "slopes": _numbers(grid.slopes),
        "loo": _numbers(grid.criteria.loo),
        "mml": _numbers(grid.criteria.mml),
        "dof": _numbers(grid.criteria.dof),
        "observed": _numbers(y[shown]),
        "predictions": _packed(grid.loo_predictions + mean, y, bits=16),
        "fit": _fit(case, sides, grid, mean),
    }
    # Nothing in a string can end the script element, or begin another one.
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _sides(case: Case) -> list[Array]:
    """Values of each feature, in its own units, at which the fit is drawn: for one or two."""
    points = {1: CURVE_POINTS, 2: SURFACE_POINTS}.get(case.X.shape[1], 0)
    return [np.linspace(x.min(), x.max(), points) for x in case.X.T] if points else []


def _new_rows(case: Case, sides: list[Array]) -> Array:
    """The places where the fit is drawn, as the model sees them; the last feature varies slowly."""
    if not sides:
        return np.empty((0, case.X.shape[1]))
    mesh = np.meshgrid(*sides)
    places = np.column_stack([part.ravel() for part in mesh])
    return np.asarray((places - case.centre) / case.scale)


def _fit(case: Case, sides: list[Array], grid: FitGrid, mean: float) -> dict[str, Any] | None:
    """The fitted curve or surface with the observations."""
    if not sides:
        return None
    X, y = case.X[case.rows], case.y[case.rows]
    some = slice(None, None, max(1, len(X) // (400 if len(sides) == 1 else 100)))
    fit = {
        "x": _numbers(sides[0]),
        "points": _numbers(np.column_stack([X, y])[some, :2]),
        "names": case.names,
        "values": _packed(grid.predictions + mean, y, bits=16 if len(sides) == 1 else 8),
    }
    return fit | ({"x_2": _numbers(sides[1])} if len(sides) == 2 else {})


def _numbers(values: Array) -> Any:
    """Nested lists of numbers with six digits; null where a number is not finite."""
    if values.ndim > 1:
        return [_numbers(row) for row in values]
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in values]


def _packed(values: Array, y: Array, *, bits: int) -> dict[str, Any]:
    """Values as whole numbers between the range of y and as much again on either side."""
    reach = (np.ptp(y) or 1.0) * (1.0 if bits == 16 else 0.1)
    low, high = float(y.min() - reach), float(y.max() + reach)
    share = (np.nan_to_num(values, nan=low) - low) / (high - low)
    whole = np.rint(np.clip(share, 0, 1) * (2**bits - 1)).astype(f"<u{bits // 8}")
    text = base64.b64encode(whole.tobytes()).decode("ascii")
    return {"low": low, "high": high, "bits": bits, "base64": text}
