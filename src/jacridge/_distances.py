"""Squared distances between rows, in blocks: Euclidean, geodesic, precomputed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from threadpoolctl import ThreadpoolController

from ._checks import Array, require

METRICS = ("euclidean", "geodesic", "precomputed")

# Entries of a block of distances: 8 MB of doubles, small enough to stay near the processor.
BLOCK_ENTRIES = 1 << 20

# Matrices up to this order are made, and handed to LAPACK, in one thread.
SMALL_ORDER = 1000

# Up to this many columns differences are as fast as a matrix product, and lose no digits.
FEW_COLUMNS = 10


def squared_distances(X: Array, Z: Array, metric: str = "euclidean") -> Array:
    """Squared distances between the rows of X and the rows of Z.

    For ``metric="precomputed"`` the rows of X already hold the distances to those of Z.
    """
    if metric == "precomputed":
        return np.square(X)
    if metric == "geodesic":
        return np.square(geodesic_distances(X, Z))
    if X.shape[1] <= FEW_COLUMNS:
        return np.asarray(cdist(X, Z, "sqeuclidean"))
    return _expanded_distances(X, Z)


def _expanded_distances(X: Array, Z: Array) -> Array:
    """|x|^2 - 2 x'z + |z|^2, one matrix product: exact to 1e-16 of the norms about the centre."""
    centre = bulk_centre(Z)
    U = X - centre
    V = U if Z is X else Z - centre
    D2: Array = U @ (-2.0 * V).T
    D2 += np.einsum("ij,ij->i", U, U)[:, None]
    D2 += np.einsum("ij,ij->i", V, V)
    np.maximum(D2, 0.0, out=D2)
    if Z is X:
        np.fill_diagonal(D2, 0.0)
    return D2


def bulk_centre(Z: Array) -> Array:
    """Where most rows are, about: expanded squares keep digits there, also beside outliers."""
    return np.asarray(np.median(Z[:: max(1, len(Z) // 256)], axis=0))


def geodesic_distances(X: Array, Z: Array) -> Array:
    """Distances in metres on the WGS84 ellipsoid; rows are latitude and longitude in degrees."""
    return _geodesics(X, Z)[2]


def paired_geodesics(X: Array, Z: Array) -> Array:
    """The same between each row of X and the row of Z in its place."""
    geod = require("pyproj", extra="geo").Geod(ellps="WGS84")
    return np.asarray(geod.inv(X[:, 1], X[:, 0], Z[:, 1], Z[:, 0])[2])


def _geodesics(X: Array, Z: Array) -> tuple[Array, Array, Array]:
    """Azimuths at X, azimuths at Z (degrees) and lengths (metres) of all geodesics."""
    geod = require("pyproj", extra="geo").Geod(ellps="WGS84")
    shape = len(X), len(Z)
    lat, lon = (np.broadcast_to(X[:, j, None], shape).ravel() for j in (0, 1))
    lat_z, lon_z = (np.broadcast_to(Z[:, j], shape).ravel() for j in (0, 1))
    forward, back, metres = geod.inv(lon, lat, lon_z, lat_z)
    return forward.reshape(shape), back.reshape(shape), metres.reshape(shape)


def weighted_slopes(W: Array, X: Array, Z: Array, metric: str = "euclidean") -> Array:
    """Sum over i of W_ji times the gradient of D2_ji with respect to row j of X."""
    if metric == "geodesic":
        return _geodesic_slopes(W, X, Z)
    centre = Z.mean(axis=0)
    slopes: Array = 2.0 * ((X - centre) * W.sum(axis=1)[:, None] - W @ (Z - centre))
    return slopes


def _geodesic_slopes(W: Array, X: Array, Z: Array) -> Array:
    """The same on WGS84: a geodesic of azimuth a grows by -cos a per metre to the north."""
    azimuth, _, metres = _geodesics(X, Z)
    azimuth = np.radians(azimuth)
    S = 2.0 * W * metres
    to_north, to_east = (S * np.cos(azimuth)).sum(axis=1), (S * np.sin(azimuth)).sum(axis=1)
    return -metres_per_degree(X[:, 0]) * np.column_stack([to_north, to_east])


def metres_per_degree(latitude: Array) -> Array:
    """Lengths of a degree of latitude and of longitude on WGS84, of shape (n, 2)."""
    ellipsoid, latitude = require("pyproj", extra="geo").Geod(ellps="WGS84"), np.radians(latitude)
    bulge = 1.0 - ellipsoid.es * np.sin(latitude) ** 2
    north = ellipsoid.a * (1.0 - ellipsoid.es) / bulge**1.5
    east = ellipsoid.a / np.sqrt(bulge) * np.cos(latitude)
    return np.asarray(np.radians(np.column_stack([north, east])))


def row_blocks(n: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` rows that cover n rows in order."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def rows_per_block(n_columns: int) -> int:
    """Rows of a block that has n_columns columns."""
    return max(1, BLOCK_ENTRIES // max(n_columns, 1))


def for_blocks(work: Callable[[slice], None], n: int, size: int) -> None:
    """Call `work` on the slices of n rows, in as many threads as there are processors.

    Of few rows in one thread: starting others would take longer than the work.
    """
    blocks = list(row_blocks(n, size))
    if len(blocks) == 1 or n <= SMALL_ORDER:
        for block in blocks:
            work(block)
        return
    with ThreadPoolExecutor(min(len(blocks), processors())) as pool:
        for _ in pool.map(work, blocks):
            pass


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Context in which each of our threads has one BLAS thread, its own.

    The first that enters sets the limit and the last that leaves lifts it, so that contexts of
    several threads may overlap.
    """
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = _blas().limit(limits=1, user_api="blas")
            _limit.__enter__()
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.__exit__(None, None, None)


_lock, _users = Lock(), 0
_limit: Any = None


def blas_for(n: int) -> Any:
    """Context for LAPACK on n x n matrices: one thread for small ones.

    Threads gain little there, and lose a lot where other work shares the processors: they wait
    for each other, thousands of times.
    """
    return one_blas_thread() if n <= SMALL_ORDER else nullcontext()


@cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries of this process; to look for them takes milliseconds."""
    return ThreadpoolController()


def processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
