"""Geodesics on the WGS84 ellipsoid between rows of latitude and longitude in degrees."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import require
from .._compute.arrays import Array, row_blocks, rows_per_block


def _wgs84() -> Any:
    return require("pyproj", extra="geo").Geod(ellps="WGS84")


def geodesic_distances(X: Array, Z: Array) -> Array:
    """Distances in metres between the rows of X and the rows of Z."""
    return _geodesics(X, Z)[1]


def paired_geodesics(X: Array, Z: Array) -> Array:
    """Distance in metres between each row of X and the row of Z with the same index."""
    return _wgs84().inv(X[:, 1], X[:, 0], Z[:, 1], Z[:, 0])[2]


def geodesic_diameter(X: Array) -> float:
    """Largest geodesic distance between two places, in metres."""
    blocks = row_blocks(len(X), rows_per_block(len(X)))
    return max(float(geodesic_distances(X[rows], X[rows.start :]).max()) for rows in blocks)


def geodesic_spacing(X: Array) -> float:
    """Median geodesic distance of nearest neighbours among distinct places."""
    if len(X) < 2:
        return 0.0
    nearest = np.empty(len(X))
    for rows in row_blocks(len(X), rows_per_block(len(X))):
        D = geodesic_distances(X[rows], X)
        D[np.arange(len(D)), np.arange(rows.start, rows.stop)] = np.inf
        nearest[rows] = D.min(axis=1)
    return float(np.median(nearest))


def _geodesics(X: Array, Z: Array) -> tuple[Array, Array]:
    """Azimuths at X (degrees) and lengths (metres) of all geodesics from X to Z."""
    shape = len(X), len(Z)
    lat, lon = (np.broadcast_to(X[:, j, None], shape).ravel() for j in (0, 1))
    lat_z, lon_z = (np.broadcast_to(Z[:, j], shape).ravel() for j in (0, 1))
    forward, _, metres = _wgs84().inv(lon, lat, lon_z, lat_z)
    return forward.reshape(shape), metres.reshape(shape)


def geodesic_slopes(W: Array, X: Array, Z: Array) -> Array:
    """Sum over i of W_ji times the gradient, per degree, of the squared length from X_j to Z_i.

    Moving its start north by one metre lengthens a geodesic of azimuth a by -cos a metres, and
    moving it east by -sin a.
    """
    azimuth, metres = _geodesics(X, Z)
    azimuth = np.radians(azimuth)
    S = 2.0 * W * metres
    to_north, to_east = (S * np.cos(azimuth)).sum(axis=1), (S * np.sin(azimuth)).sum(axis=1)
    return -metres_per_degree(X[:, 0]) * np.column_stack([to_north, to_east])


def geodesic_slopes_along(X: Array, Z: Array, f: int) -> Array:
    """Derivatives per degree of latitude (f = 0) or longitude (1) of squared lengths, X to Z."""
    azimuth, metres = _geodesics(X, Z)
    turn = (np.cos, np.sin)[f](np.radians(azimuth))
    return -2.0 * metres * turn * metres_per_degree(X[:, 0])[:, f, None]


def metres_per_degree(latitude: Array) -> Array:
    """Lengths of a degree of latitude and of longitude, of shape (n, 2)."""
    ellipsoid, latitude = _wgs84(), np.radians(latitude)
    bulge = 1.0 - ellipsoid.es * np.sin(latitude) ** 2
    north = ellipsoid.a * (1.0 - ellipsoid.es) / bulge**1.5
    east = ellipsoid.a / np.sqrt(bulge) * np.cos(latitude)
    return np.radians(np.column_stack([north, east]))
