"""Linear metrics: distance after a linear map T of the features, of shape (p, q)."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from .._compute.arrays import TINY, Array

# Share of the mean eigenvalue that is added to M, so that no direction is lost for good.
FLOOR = 1e-2


def scaling_from(mean: Array, std: Array) -> Array:
    """Map that divides each feature by its standard deviation, and drops constant ones."""
    kept = std > 1e-9 * np.maximum(np.abs(mean), TINY)
    if not kept.any():
        return np.eye(len(std))
    return np.diag(1.0 / np.where(kept, std, 1.0))[:, kept]


def sharpened(T: Array, M: Array, kind: str) -> Array:
    """T M^(1/2), with M, or its diagonal, the average outer product of gradients after T.

    M gets a floor on its eigenvalues, and its root is scaled to the trace of the identity.
    """
    if kind == "diagonal":
        M = np.diag(np.diag(M))
    s, V = eigh(M)
    if not s.mean() > 0:  # a constant function has no directions
        return T
    root = np.sqrt(np.maximum(s, 0.0) + FLOOR * s.mean())
    return np.asarray(T @ ((V * (root * len(s) / root.sum())) @ V.T))
