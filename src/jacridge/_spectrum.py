"""One eigendecomposition -> LOO, GCV, MML, degrees of freedom, variance for every lambda.

With S = W^(1/2) K W^(1/2) and b = W^(1/2) y, where W holds the weights, every quantity of
A = K + lambda W^-1 is one of (S + lambda I)^-1 and b. A row of weight two is two rows: one of the
two is left out, both are counted. Of a weight below one all is left out, and the row counts as one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._checks import Array

ROWS = 512


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues s and eigenvectors V of S, the targets in their coordinates, c = V'b."""

    s: Array
    V: Array
    c: Array
    w: Array

    def loo(self, lams: Array) -> Array:
        """Weighted mean of the squared leave-one-out residuals, of shape (lambdas, targets)."""
        R = self._resolvents(lams)
        left_out = np.minimum(1.0 / self.w, 1.0)[:, None]
        C = (R.T[:, :, None] * self.c[:, None, :]).reshape(len(self.s), -1)
        total = np.zeros((len(lams), self.c.shape[1]))
        for start in range(0, len(self.V), ROWS):
            V = self.V[start : start + ROWS]
            part = left_out[start : start + ROWS]
            rest = part * (V**2 @ R.T) + self._held(1.0 - part, lams)
            E = (V @ C).reshape(len(V), *total.shape) / rest[:, :, None]
            total += np.einsum("ilt,ilt->lt", E, E)
        return total / self.w.sum()

    def gcv(self, lams: Array) -> Array:
        """Generalised cross-validation, n |b - H b|^2 / (n - tr H)^2, (lambdas, targets)."""
        R = self._resolvents(lams)
        trace = R.sum(axis=1) + self._held(self._n - len(self.w), lams)
        return np.asarray(self._n * (R**2 @ self.c**2) / trace[:, None] ** 2)

    def mml(self, lams: Array, *, profiled: bool = True) -> Array:
        """Minus twice the log marginal likelihood up to a constant, (lambdas, targets).

        n log(y'A^-1 y / n) + log |A| with the signal variance profiled out, y'A^-1 y + log |A|
        with a signal variance of one.
        """
        R, n = self._resolvents(lams), self._n
        log_det = -np.log(R).sum(axis=1)[:, None] - np.log(self.w).sum()
        if n > len(self.w):
            log_det += (n - len(self.w)) * np.log(lams)[:, None]
        fit = R @ self.c**2
        with np.errstate(divide="ignore"):  # a target of zeros: minus infinity
            return np.asarray((n * np.log(fit / n) if profiled else fit) + log_det)

    def degrees_of_freedom(self, lams: Array) -> Array:
        """Trace of the matrix that takes y to the fitted values, for each lambda."""
        return np.asarray(self._resolvents(lams) @ self.s)

    def leverage(self, lam: float) -> Array:
        """Diagonal of the matrix that takes y to the fitted values."""
        return np.asarray(self.V**2 @ (self.s / (self.s + lam)))

    @property
    def _n(self) -> float:
        """Number of rows, those repeated by their weight counted."""
        return float(np.maximum(self.w, 1.0).sum())

    @staticmethod
    def _held(rows: Array | float, lams: Array) -> Array:
        """Rows / lambda: rows that are repeated hold the fit without any penalty."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.asarray(rows) > 0, rows / np.asarray(lams, dtype=np.float64), 0.0)

    def _resolvents(self, lams: Array) -> Array:
        """Eigenvalues of (S + lambda I)^-1, one row for each lambda."""
        return np.asarray(1.0 / (self.s + np.asarray(lams, dtype=np.float64)[:, None]))


def spectrum(K: Array, y: Array, w: Array | None = None) -> Spectrum:
    """Decompose the kernel in the lower triangle of K; y of shape (n, k)."""
    w = np.ones(len(y)) if w is None else w
    root = np.sqrt(w)
    S = K * root * root[:, None] if (w != 1).any() else K
    s, V = np.linalg.eigh(S, UPLO="L")
    # A kernel of a geodesic distance may have negative eigenvalues; rounding makes some, too.
    return Spectrum(np.maximum(s, 0.0), V, V.T @ (y * root[:, None]), w)
