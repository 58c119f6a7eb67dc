"""One eigendecomposition gives every criterion for every lambda.

With S = W^(1/2) K W^(1/2) and b = W^(1/2) y, where W holds the weights, every function of
A = K + lambda W^-1 and y can be computed from (S + lambda I)^-1 and b. Equal rows are merged. A
merged row is left out as a whole and counts once, unless `replicates` are given: then single
observations are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg import eigh as scipy_eigh

from .._compute.arrays import Array, row_blocks
from .._compute.threads import lapack_for

if TYPE_CHECKING:
    from .._rows.merging import Replicates

BLOCK_ROWS = 512


class Spectral(Protocol):
    """Criteria for many lambdas at one bandwidth: arrays of shape (lambdas, targets)."""

    def loo(self, lams: Array) -> Array: ...
    def gcv(self, lams: Array) -> Array: ...
    def mml(self, lams: Array) -> Array: ...


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues s and eigenvectors V of S, with c = V'b and c_1 = V'W^(1/2) 1.

    `shift` is how much the mean of y falls without each row, of shape (n, k); zero for a model
    without an intercept. `counts` are the weights in a mean of squared errors. With `replicates`,
    single observations are left out instead of whole rows.
    """

    s: Array
    V: Array
    c: Array
    c_1: Array
    w: Array
    y: Array
    shift: Array
    counts: Array
    replicates: Replicates | None = None

    def loo(self, lams: Array) -> Array:
        """Weighted mean of the squared leave-one-out residuals, of shape (lambdas, targets)."""
        E2 = np.zeros((len(lams), self.c.shape[1]))
        for rows in row_blocks(len(self.V), BLOCK_ROWS):
            E2 += np.einsum("i,ilt->lt", self.counts[rows], self.squared_errors(rows, lams))
        return E2 / self.counts.sum()

    def loo_residuals(self, lams: Array) -> Array:
        """Leave-one-out residuals of all rows, of shape (n, lambdas, targets)."""
        E, ones, _ = self._without_rows(slice(None), lams)
        return E + ones * self.shift[:, None, :]

    def squared_errors(self, rows: slice, lams: Array) -> Array:
        """Squared leave-one-out errors of some rows, of shape (rows, lambdas, targets)."""
        E, ones, left = self._without_rows(rows, lams)
        if self.replicates is None:
            E += ones * self.shift[rows, None, :]
            return np.square(E, out=E)
        observed = self.replicates.some(np.arange(len(self.w))[rows])
        total, places = float(self.w.sum()), (self.y[rows], self.w[rows])
        return observed.squared_errors(E, ones, left, *places, total=total)

    def _without_rows(self, rows: slice, lams: Array) -> tuple[Array, Array, Array]:
        """Residuals for models without each of some rows, and shares of y that are not fitted.

        There are residuals of the targets (rows, lambdas, targets) and of a target of ones (rows,
        lambdas, 1), which adjust the former as the mean of y falls; zero without an intercept.
        """
        R, V, root = self._resolvents(lams), self.V[rows], np.sqrt(self.w[rows])[:, None]
        C = (R.T[:, :, None] * self.c[:, None, :]).reshape(len(self.s), -1)
        diagonal = V**2 @ R.T
        E = (V @ C).reshape(len(V), len(lams), -1) / (diagonal * root)[:, :, None]
        left = (diagonal * lams)[:, :, None]
        if not self.shift.any():
            return E, np.zeros_like(left), left
        return E, (V @ (R * self.c_1).T / (diagonal * root))[:, :, None], left

    def gcv(self, lams: Array) -> Array:
        """Generalised cross-validation, n |b - H b|^2 / (n - tr H)^2, (lambdas, targets)."""
        R = self._resolvents(lams)
        R /= R.sum(axis=1)[:, None]  # before squares are taken, which could overflow
        return len(self.w) * (R**2 @ self.c**2)

    def mml(self, lams: Array) -> Array:
        """Minus twice the log marginal likelihood up to a constant, (lambdas, targets).

        n log(y'A^-1 y / n) + log |A|, with the signal variance profiled out.
        """
        R, n = self._resolvents(lams), len(self.w)
        log_det = -np.log(R).sum(axis=1)[:, None] - np.log(self.w).sum()
        with np.errstate(divide="ignore"):  # a target of zeros: minus infinity
            return n * np.log(R @ self.c**2 / n) + log_det

    def degrees_of_freedom(self, lams: Array) -> Array:
        """Trace of the hat matrix, for each lambda."""
        return self._resolvents(lams) @ self.s

    def leverages(self, lams: Array) -> Array:
        """Diagonal of the hat matrix, of shape (n, lambdas)."""
        return self.V**2 @ (self.s * self._resolvents(lams)).T

    def dual_coef(self, lams: Array) -> Array:
        """Coefficients A^-1 y, of shape (n, lambdas, targets)."""
        R = self._resolvents(lams)
        C = (R.T[:, :, None] * self.c[:, None, :]).reshape(len(self.s), -1)
        coef = np.sqrt(self.w)[:, None] * (self.V @ C)
        return coef.reshape(len(self.V), len(lams), -1)

    def _resolvents(self, lams: Array) -> Array:
        """Eigenvalues of (S + lambda I)^-1, one row for each lambda."""
        return 1.0 / (self.s + np.asarray(lams, dtype=np.float64)[:, None])


def mean_shift(y: Array, w: Array, total: float | None = None) -> Array:
    """How much the mean falls when each row is left out; y of shape (n, k), centred at it.

    `total` is the weight of all rows, if w only holds the weights of some.
    """
    rest = (w.sum() if total is None else total) - w
    share = np.divide(w, rest, out=np.zeros_like(w), where=rest > 0)  # a single row has no rest
    return share[:, None] * y


def spectrum(
    K: Array,
    y: Array,
    w: Array,
    *,
    centred: bool = True,
    counts: Array | None = None,
    replicates: Replicates | None = None,
) -> Spectrum:
    """Decompose the kernel in the lower triangle of K; y of shape (n, k).

    If `centred`, y is centred at its mean, which changes as rows are left out; `counts`
    are the weights in a mean of squared errors, if they differ from the weights of the fit. With
    `replicates`, single observations are left out instead of whole rows.
    """
    root = np.sqrt(w)
    s, V = eigh(weighted(K, root) if (w != 1).any() else K)
    shift = mean_shift(y, w) if centred else np.zeros_like(y)
    # A kernel of a geodesic distance may have negative eigenvalues; so may any kernel by rounding.
    c, c_1 = V.T @ (y * root[:, None]), V.T @ root
    counts = w if counts is None else counts
    return Spectrum(np.maximum(s, 0.0), V, c, c_1, w, y, shift, counts, replicates)


def weighted(K: Array, root: Array) -> Array:
    """W^(1/2) K W^(1/2) with a zero upper triangle; the upper triangle of K is ignored."""
    return np.tril(K) * root * root[:, None]


def eigh(A: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of the symmetric matrix in the lower triangle of A."""
    with lapack_for(len(A)):
        try:
            s, V = np.linalg.eigh(A, UPLO="L")
        except LinAlgError:  # rare finite matrices, on which the other driver converges
            s, V = scipy_eigh(np.tril(A), lower=True, driver="evr")  # rejects NaN in any triangle
    return s, V
