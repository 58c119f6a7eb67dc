"""Data of the charts as JSON, including all fits over (sigma, lambda)."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from .. import theory
from .._compute.arrays import Array
from .._geometry.space import space_of
from .._rules.grids import fit_grid, sigma_grid
from ._case import Case
from ._charts import Chart, numbers

# Number of rows whose predictions change with the sliders.
SHOWN_ROWS = 150
EARTH_RADIUS = 6_371_009.0  # metres, the mean radius of the ellipsoid WGS84


def page_data(sliders: dict[str, Any], charts: list[Chart]) -> str:
    """The numbers of the charts, safe inside a script element."""
    # Escaped, so that no string can end the script element or begin another one.
    data = {**sliders, "charts": charts}
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def slider_data(case: Case) -> dict[str, Any]:
    """Fits of the sample over a grid, in the model's metric and with its kernel."""
    X, y = case.mapped(case.Z[case.rows]), case.outcomes[case.rows]
    X = in_space(X) if case.spec.distance == "geodesic" else X
    mean, est = y.mean(), case.estimator
    # A penalty of zero cannot be shown on a log scale.
    lam = max(case.lam, 1e-10)
    spacing = theory.even_spacing(len(X), case.choice.p, case.choice.l_max)
    sigmas = sigma_grid(case.choice.l_max, spacing, 18, est.bandwidth_)
    lams = np.unique([*np.geomspace(1e-6, 100, 17), lam])
    shown = np.linspace(0, len(X) - 1, min(SHOWN_ROWS, len(X))).astype(int)
    space = space_of(est.kernel_, "euclidean")
    grid = fit_grid(X, y - mean, sigmas, lams, space, shown=shown)
    norm = [theory.approximate_jacobian_norm(sigmas, len(X), spacing, lam) for lam in lams]
    return {
        "sigmas": numbers(sigmas),
        "lambdas": numbers(lams),
        "start": [int(np.searchsorted(lams, lam)), int(np.searchsorted(sigmas, est.bandwidth_))],
        "variance": float(y.var()),
        "approximate": numbers(np.array(norm)) if space.kernel.has_closed_form else None,
        "slopes": numbers(grid["slopes"]),
        "loo": numbers(grid["loo"]),
        "mml": numbers(grid["mml"]),
        "dof": numbers(grid["dof"]),
        "observed": numbers(y[shown]),
        "predictions": _packed(grid["loo_predictions"] + mean, y),
    }


def in_space(places: Array) -> Array:
    """Latitudes and longitudes in degrees as points on a sphere, in metres.

    Up to 3000 km, straight lines between them differ from geodesics by at most 1 % in length.
    """
    lat, lon = np.radians(places).T
    directions = [np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]
    return EARTH_RADIUS * np.column_stack(directions)


def _packed(values: Array, y: Array) -> dict[str, Any]:
    """Values as 16-bit integers, for the range of y extended by its width on either side."""
    reach = np.ptp(y) or 1.0
    low, high = float(y.min() - reach), float(y.max() + reach)
    share = (np.nan_to_num(values, nan=low) - low) / (high - low)
    whole = np.rint(np.clip(share, 0, 1) * (2**16 - 1)).astype("<u2")
    text = base64.b64encode(whole.tobytes()).decode("ascii")
    return {"low": low, "high": high, "base64": text}
