"""Preconditioned conjugate gradients on the full kernel, which is never held in memory."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError

from ._checks import Array
from ._distances import one_blas_thread, processors, row_blocks, rows_per_block
from ._kernels import kernel_block
from ._landmarks import low_rank
from ._solvers import factor
from ._streams import ArrayRows

logger = logging.getLogger("jacridge")

# The relative residual at which the iteration stops, and where it gives up.
TOLERANCE = 1e-7
ITERATIONS = 500


@dataclass(frozen=True)
class PcgModel:
    """A solved system of which no factor exists: only its solution is known."""

    dual_coef: Array
    iterations: int
    residual: float

    def __getattr__(self, name: str) -> Array:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"`{name}` needs a factor of the kernel matrix, which solver='pcg' does not make. "
            "Use solver='exact' or 'nystrom' for deviations, intervals and leave-one-out."
        )


def solve_pcg(
    rows: ArrayRows,
    mean: Array,
    sigma: float,
    lam: float,
    *,
    metric: str,
    n_landmarks: int,
    rng: np.random.Generator,
) -> PcgModel:
    """Solve (K + lam W^-1) c = y - mean to TOLERANCE, with memory O(n m) for m landmarks.

    With S = W^(1/2) K W^(1/2) and K close to F F', (S + lam I) z = W^(1/2) (y - mean) is
    preconditioned by W^(1/2) F F' W^(1/2) + lam I, whose inverse takes an m x m factor.
    """
    X, root = rows.X, np.sqrt(np.ones(rows.n) if rows.w is None else rows.w)[:, None]
    F = low_rank(X, n_landmarks, sigma, metric, rng=rng).F * root

    def product(V: Array) -> Array:
        return np.asarray(root * symmetric_product(X, root * V, sigma, metric) + lam * V)

    Z, iterations, residual = conjugate_gradients(
        product, preconditioner(F, lam), root * (rows.y - mean)
    )
    if not residual <= TOLERANCE:
        warnings.warn(
            f"Conjugate gradients stopped after {iterations} iterations at a relative residual of "
            f"{residual:.2g}, tolerance {TOLERANCE:g}. Give more `n_landmarks` than "
            f"{n_landmarks}, or a larger `alpha` than {lam:g}.",
            stacklevel=3,
        )
    return PcgModel(root * Z, iterations, residual)


def preconditioner(F: Array, lam: float) -> Callable[[Array], Array]:
    """Function that applies (F F' + lam I)^-1, by the identity of Woodbury."""
    inner = factor(np.ascontiguousarray(F.T @ F), lam)
    return lambda V: np.asarray((V - F @ inner.solve(F.T @ V)) / lam)


def conjugate_gradients(
    product: Callable[[Array], Array], precondition: Callable[[Array], Array], B: Array
) -> tuple[Array, int, float]:
    """Solution for all columns of B, number of iterations, largest relative residual."""
    size = np.maximum(np.linalg.norm(B, axis=0), np.finfo(float).tiny)
    Z, R = np.zeros_like(B), B.copy()
    Q = precondition(R)
    P, slope = Q, np.einsum("ij,ij->j", R, Q)
    done, residual = 0, 1.0 if B.any() else 0.0
    while residual > TOLERANCE and done < ITERATIONS:
        AP = product(P)
        curvature = np.einsum("ij,ij->j", P, AP)
        if (curvature < 0).any():
            raise LinAlgError(
                "K + lambda I must be positive definite for solver='pcg', and is not. "
                "Give a larger `alpha`, or solver='exact'."
            )
        step = slope / np.maximum(curvature, np.finfo(float).tiny)
        Z, R = Z + step * P, R - step * AP
        Q = precondition(R)
        last, slope = slope, np.einsum("ij,ij->j", R, Q)
        P = Q + slope / np.maximum(last, np.finfo(float).tiny) * P
        done, residual = done + 1, float((np.linalg.norm(R, axis=0) / size).max())
        logger.info("pcg: iteration %d, relative residual %.2g", done, residual)
    return Z, done, residual


def symmetric_product(X: Array, V: Array, sigma: float, metric: str) -> Array:
    """K(X, X) @ V without K: each block of rows from its diagonal on, used for both triangles."""
    n = len(X)
    blocks = list(row_blocks(n, rows_per_block(n)))

    def part(mine: list[slice]) -> Array:
        total = np.zeros_like(V)
        for rows in mine:
            K = kernel_block(X[rows], X[rows.start :], sigma, metric)
            total[rows] += K @ V[rows.start :]
            total[rows.stop :] += K[:, len(K) :].T @ V[rows]
        return total

    # Every processor takes each so many-th block, as the first ones are the longest.
    shares = [blocks[i :: processors()] for i in range(processors())]
    with one_blas_thread(), ThreadPoolExecutor(len(shares)) as pool:
        return np.asarray(sum(pool.map(part, shares)))
