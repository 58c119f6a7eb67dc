"""Factored systems A = K + diag(lam): by Cholesky, by eigenvectors, by clusters of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.linalg import LinAlgError

from .._compute.arrays import EPS, Array, Indices
from .._compute.warnings import warn
from .cholesky import BlockFactor, factor
from .spectrum import eigh

if TYPE_CHECKING:
    from .._geometry.space import Pairs

# Up to this many rows a factor takes less time than to test whether K is block diagonal.
CLUSTERED_ROWS = 250


class Solvable(Protocol):
    """A = K + diag(lam) in a form from which criteria can be computed."""

    def solve(self, B: Array) -> Array: ...
    def inverse_diagonal(self) -> Array: ...
    def last_inverse_diagonal(self, m: int) -> Array: ...
    def log_determinant(self) -> float: ...


class System(Solvable, Protocol):
    """A factored A that also gives the variance of predictions."""

    @property
    def rank(self) -> int: ...
    def half_solve(self, B: Array) -> Array: ...
    def inverse_diagonal_at(self, places: Indices, *, rough: bool = False) -> Array: ...
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
        return np.asarray(self.U @ ((self.U.T @ B).T / self.d).T)

    def half_solve(self, B: Array) -> Array:
        """Columns with the squared norms b' A^+ b."""
        return np.asarray(((self.U.T @ B).T / np.sqrt(self.d)).T)

    def log_determinant(self) -> float:
        """Log-determinant of the positive part."""
        return float(np.log(self.d).sum())

    def inverse_diagonal(self) -> Array:
        """Diagonal of A^+."""
        return self.inverse_diagonal_at(np.arange(len(self.U)))

    def inverse_diagonal_at(self, places: Indices, *, rough: bool = False) -> Array:
        """Diagonal of A^+ at these places, which takes little time in double precision, too."""
        return np.asarray(np.square(self.U[places]) @ (1.0 / self.d))

    def last_inverse_diagonal(self, m: int) -> Array:
        """Last m entries of the diagonal of A^+."""
        return np.asarray(self.U[-m:] ** 2 @ (1.0 / self.d))

    def inverse_columns(self, places: Indices, *, rough: bool = False) -> Array:
        """Columns of A^+ at these places, of shape (n, d)."""
        columns = (self.U / self.d) @ self.U[places].T
        return np.asarray(columns, dtype=np.float32 if rough else np.float64)


def stable_system(
    kernel: Callable[[], Array],
    lam: Array | float,
    remedy: str = "Give a larger `alpha` to avoid this.",
) -> tuple[System, Array]:
    """A = K + diag(lam), factored in the array that `kernel` makes, and what is left out of it.

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
        f"K + lambda I is not positive definite, its smallest eigenvalue is {d[0]:.3g}; the "
        f"solution of smallest norm on its positive part is used. {remedy}"
    )
    return Eigen(U[:, keep], d[keep]), U[:, ~keep]


def clustered_system(pairs: Pairs, sigma: float, lam: Array) -> Solvable:
    """K + diag(lam), factored: by clusters of rows where the kernel is that narrow."""
    clusters = pairs.clusters(sigma) if len(lam) > CLUSTERED_ROWS else None
    if clusters is None:
        return factor(pairs.kernel(sigma), lam)
    some = [rows for rows in clusters if len(rows) > 1]
    blocks = [(rows, factor(pairs.block(rows, sigma), lam[rows])) for rows in some]
    return BlockFactor(1.0 + lam, blocks)
