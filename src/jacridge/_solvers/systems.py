"""Factored systems A = K + diag(lam): by Cholesky, by eigenvectors, by clusters of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dsymv

from .._compute.arrays import EPS, Array, Indices
from .._compute.warnings import warn
from .cholesky import BlockFactor, Factor, factor
from .spectrum import eigh

if TYPE_CHECKING:
    from .._geometry.space import Pairs

# From this many rows on, systems are factored in single precision and solutions are refined: this
# takes half the time of a factor in double precision, and each step takes a fiftieth of that time.
# With fewer rows this saves less than a quarter of a second, which is lost again if standard errors
# are needed later.
REFINED_ROWS = 6144
# Condition number up to which this is tried, and the largest number of steps.
MOST_CONDITION = 1e7
REFINEMENTS = 12

# Up to this many rows, a factor takes less time than testing whether K is block diagonal.
CLUSTERED_ROWS = 250


class Solvable(Protocol):
    """A = K + diag(lam) in a form from which criteria can be computed."""

    def solve(self, B: Array) -> Array: ...
    def inverse_diagonal(self, places: Indices | None = None, *, rough: bool = False) -> Array: ...
    def log_determinant(self) -> float: ...


class System(Solvable, Protocol):
    """A factored A that also gives the variance of predictions."""

    @property
    def rank(self) -> int: ...
    def half_solve(self, B: Array) -> Array: ...
    def inverse_columns(self, places: Indices, *, rough: bool = False) -> Array: ...


@dataclass(frozen=True)
class Eigen:
    """A^-1 = U diag(1 / d) U': for many penalties, or for the positive part of a singular A."""

    U: Array
    d: Array

    @property
    def rank(self) -> int:
        """Number of eigenvalues that are kept."""
        return len(self.d)

    def solve(self, B: Array) -> Array:
        """Solution of smallest norm on the part of A that is positive."""
        return self.U @ ((self.U.T @ B).T / self.d).T

    def half_solve(self, B: Array) -> Array:
        """Columns with the squared norms b' A^+ b."""
        return ((self.U.T @ B).T / np.sqrt(self.d)).T

    def log_determinant(self) -> float:
        """Log-determinant of the positive part."""
        return float(np.log(self.d).sum())

    def inverse_diagonal(self, places: Indices | None = None, *, rough: bool = False) -> Array:
        """Diagonal of A^+, or its entries at some places, always in double precision."""
        return np.square(self.U if places is None else self.U[places]) @ (1.0 / self.d)

    def inverse_columns(self, places: Indices, *, rough: bool = False) -> Array:
        """Columns of A^+ at these places, of shape (n, d)."""
        columns = (self.U / self.d) @ self.U[places].T
        return np.asarray(columns, dtype=np.float32 if rough else np.float64)


class Refined(Factor):
    """A = K + diag(lam), factored in single precision; solutions are refined to double precision.

    The factor L in double precision is computed when it is first needed, in the same array.
    """

    def __init__(self, pairs: Pairs, sigma: float, lam: Array) -> None:
        """Raise LinAlgError if A may be too close to singular for single precision."""
        self._pairs, self._sigma, self._lam = pairs, sigma, lam
        self._K = pairs.settle(sigma)
        self._norm = float(self._product(np.ones((len(lam), 1))).max())
        if self._norm > MOST_CONDITION * lam.min():
            raise LinAlgError("K + lambda I is too ill-conditioned for single precision.")
        self._rough: Factor | None = factor(pairs.rough(), lam, least=0.0)

    @property
    def L(self) -> Array:
        """The factor in double precision, which overwrites the one in single precision."""
        with _one_at_a_time:
            if self._rough is not None:
                self._rough = None
                factor(self._pairs.kernel(self._sigma), self._lam)
            return self._K

    def solve(self, B: Array) -> Array:
        """A^-1 B."""
        with _one_at_a_time:
            found = None if self._rough is None else self._refined(self._rough, B)
        return super().solve(B) if found is None else found

    def _refined(self, rough: Factor, B: Array) -> Array | None:
        """A^-1 B as accurate as in double precision, or None if refinement does not converge."""
        X, before = rough.solve(B), np.inf
        for _ in range(REFINEMENTS):
            R = B - self._product(X)
            # Rounding in the product alone leaves about this residual.
            unit = EPS * self._norm * np.abs(X).max(axis=0)
            error = float((np.abs(R).max(axis=0) / np.where(unit > 0, unit, 1.0)).max())
            if error <= 1.0 or before < 2 * error < 2 * np.sqrt(len(B)):
                return X
            if before < 2 * error:
                return None
            X, before = X + rough.solve(R), error
        return None

    def _product(self, X: Array) -> Array:
        """A X, from the kernel above the diagonal."""
        columns = X.reshape(len(X), -1).T
        AX = np.column_stack([dsymv(1.0, self._K.T, x, lower=1) for x in columns])
        return (AX + self._lam[:, None] * columns.T).reshape(X.shape)


# A factor must not be overwritten while another thread uses it.
_one_at_a_time = RLock()


def quadratic_forms(systems: Sequence[System], B: Array) -> Array:
    """Values of b'A^-1 b for the columns b of B and some systems, of shape (columns, systems)."""
    halves = (A.half_solve(B) for A in systems)
    return np.column_stack([np.einsum("ij,ij->j", half, half) for half in halves])


def exact_system(pairs: Pairs, sigma: float, lam: Array) -> tuple[System, Array]:
    """K + diag(lam), factored in the array of the pairs, and the eigenvectors left out of it.

    Kernels of given distances, or of distances on a curved surface, need not be positive definite.
    """
    distance = pairs.space.distance
    if len(lam) >= REFINED_ROWS and not (distance.is_given or distance.is_curved):
        with suppress(LinAlgError):
            return Refined(pairs, sigma, lam), np.empty((len(lam), 0))
    return stable_system(lambda: pairs.kernel(sigma), lam, pairs.space.remedy)


def stable_system(
    kernel: Callable[[], Array],
    lam: Array | float,
    remedy: str = "Give a larger `alpha` to avoid this.",
) -> tuple[System, Array]:
    """A = K + diag(lam), factored in the array from `kernel`, and the eigenvectors left out of it.

    Where A has no stable Cholesky factor, solutions are those of smallest norm on its positive
    part, with a warning that ends in the `remedy`. The second result, of shape (n, l), has the l
    orthonormal eigenvectors that are left out; else l is zero.
    """
    try:
        regular = factor(kernel(), lam)
        return regular, np.empty((regular.rank, 0))
    except LinAlgError:
        A = kernel()
    A.flat[:: len(A) + 1] += lam
    d, U = eigh(A)
    keep = d > len(d) * EPS * d[-1]
    warn(
        f"K + lambda I is not positive definite (smallest eigenvalue {d[0]:.3g}); the "
        f"solution of smallest norm on its positive part is used. {remedy}"
    )
    return Eigen(U[:, keep], d[keep]), U[:, ~keep]


def clustered_system(pairs: Pairs, sigma: float, lam: Array) -> Solvable:
    """K + diag(lam), factored; by clusters of rows if the kernel is narrow enough."""
    clusters = pairs.clusters(sigma) if len(lam) > CLUSTERED_ROWS else None
    if clusters is None:
        return factor(pairs.kernel(sigma), lam)
    some = [rows for rows in clusters if len(rows) > 1]
    blocks = [(rows, factor(pairs.block(rows, sigma), lam[rows])) for rows in some]
    return BlockFactor(1.0 + lam, blocks)
