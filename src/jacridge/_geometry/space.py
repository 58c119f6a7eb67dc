"""`Space`: a kernel together with its distance."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .._checks import check_choice
from .._compute.arrays import Array, Indices, row_blocks, rows_per_block
from .._compute.memory import check_memory
from .._compute.threads import for_blocks
from .distances import EUCLIDEAN, CityBlock, Distance, Geodesic, Precomputed
from .kernels import KERNELS, Kernel

# Learned metrics, with the kinds of linear map to choose from.
LEARNED = {"diagonal": ("diagonal",), "full": ("full",), "auto": ("diagonal", "full")}
# Metrics that apply a linear map, and then the Euclidean (or city-block) distance.
LINEAR = ("euclidean", "scaled", *LEARNED)
METRICS = (*LINEAR, "geodesic", "precomputed")

# Order of the blocks in which gaps are transposed to make a kernel.
TILE = 256
BELOW = np.tri(TILE, k=-1, dtype=bool)  # its lower triangle without the diagonal


@dataclass(frozen=True)
class Space:
    """A kernel k(x, z) of the distance of rows x and z, with its products and slopes."""

    kernel: Kernel
    distance: Distance

    @property
    def remedy(self) -> str:
        """Advice if K + lambda I is not positive definite."""
        if self.distance.is_curved and self.kernel.is_smooth:
            return (
                "Give a larger `alpha` to avoid this, or use "
                'kernel="exponential", which is positive definite on the whole sphere.'
            )
        return "Give a larger `alpha` to avoid this."

    def block(self, X: Array, Z: Array, sigma: float) -> Array:
        """Kernel between the rows of X and the rows of Z."""
        return self.kernel.of(self.distance.gaps(X, Z), sigma)

    def product(self, X: Array, Z: Array, coef: Array, sigma: float) -> Array:
        """K(X, Z) @ coef, computed in blocks of rows of X."""
        product = np.empty((len(X), *coef.shape[1:]))

        def work(rows: slice) -> None:
            product[rows] = self.block(X[rows], Z, sigma) @ coef

        for_blocks(work, len(X), rows_per_block(len(Z)))
        return product

    def slopes(self, X: Array, Z: Array, coef: Array, sigma: float) -> Array:
        """Gradient of K(x, Z) @ coef at each row x of X; coef (m, k), result (n, k, p).

        Where a kernel has a kink, its slope is taken as zero.
        """
        J = np.empty((len(X), coef.shape[1], X.shape[1]))
        for rows in row_blocks(len(X), rows_per_block(len(Z))):
            S = self.kernel.slope(self.distance.gaps(X[rows], Z), sigma)
            J[rows] = self.distance.slopes(S, coef, X[rows], Z)
        return J

    def pairs(self, X: Array, *, single: bool = False) -> Pairs:
        """The n x n array for kernels of all pairs of rows, in double or `single` precision."""
        return Pairs(X, self, single=single)


def space_of(kernel: str, metric: str) -> Space:
    """Space of a kernel and a metric, given by name."""
    found = KERNELS[check_choice("kernel", kernel, KERNELS)]
    check_choice("metric", metric, METRICS)
    if metric == "precomputed":
        return Space(found, Precomputed(found.power))
    if metric in LINEAR:
        return Space(found, EUCLIDEAN if found.power == 2 else CityBlock())
    if found.power != 2:
        raise ValueError(
            f'`kernel` must be a function of the distance for metric="geodesic", got "{kernel}", '
            'which is a product over features. Use kernel="exponential".'
        )
    return Space(found, Geodesic())


def kernels_with(metric: str) -> list[Space]:
    """Spaces of all kernels that can be used with a metric."""
    kinds = (1, 2) if metric != "geodesic" else (2,)
    return [space_of(name, metric) for name, kernel in KERNELS.items() if kernel.power in kinds]


class Pairs:
    """One n x n array for all bandwidths, with gaps above the diagonal and a kernel below it.

    A search over sigma computes the distances once. Each kernel overwrites the previous one, or the
    factor that was computed in its place. In single precision, gaps are divided by a large gap,
    because they could overflow.
    """

    def __init__(self, X: Array, space: Space, *, single: bool = False) -> None:
        n = len(X)
        self.space, self._X = space, X
        # One more row, so that a triangle in single precision fits below the diagonal.
        self._rows = _square(n, np.float32 if single else np.float64, extra=1)
        self.M = self._rows[:n]
        self.K = self.M  # kernels are written here
        self.unit = (float(space.distance.gaps(X[:1], X).max()) or 1.0) if single else 1.0
        self._settled: float | None = None
        self._make_gaps()

    def _make_gaps(self) -> None:
        X, distance, self._settled = self._X, self.space.distance, None

        def work(rows: slice) -> None:
            part = X[rows, rows.start :] if distance.is_given else X[rows]
            gaps = distance.gaps(part, X[rows.start :])
            self.M[rows, rows.start :] = gaps / self.unit if self.unit != 1 else gaps

        for_blocks(work, len(X), rows_per_block(len(X)))

    def twin(self) -> Pairs:
        """Pairs that share these gaps but have their own array for kernels."""
        twin = copy(self)
        twin.K = _square(len(self.M), self.M.dtype)
        return twin

    def kernel(self, sigma: float) -> Array:
        """Kernel in the lower triangle and on the diagonal; other entries are undefined."""
        if self._settled not in (None, sigma):
            self._make_gaps()
        k, K, width = self.space.kernel, self.K, self._in_units(sigma)

        def of(gaps: Array) -> Array:
            return k.of(gaps, width) if self._settled is None else gaps

        def work(rows: slice) -> None:
            for columns in row_blocks(rows.start, TILE):  # small enough to transpose in the cache
                K[rows, columns] = of(self.M[columns, rows].T.copy())
            # Below the diagonal is an old factor, whose exponential could overflow.
            corner, below = K[rows, rows], _below(rows)
            np.copyto(corner, of(np.where(below, self.M[rows, rows].T, 0.0)), where=below)
            np.fill_diagonal(corner, 1.0)

        for_blocks(work, len(K), TILE)
        return K

    def settle(self, sigma: float) -> Array:
        """Replace the gaps above the diagonal by the kernel; entries below are left unchanged.

        Kernels at other bandwidths compute the gaps again.
        """
        k, M = self.space.kernel, self.M

        def work(rows: slice) -> None:
            corner, above = M[rows, rows], _below(rows).T
            np.copyto(corner, k.of(np.where(above, corner, 0.0), sigma), where=above)
            np.fill_diagonal(corner, 1.0)
            k.of(M[rows, rows.stop :], sigma)

        for_blocks(work, len(M), TILE)
        self._settled = sigma
        return M

    def rough(self) -> Array:
        """The settled kernel in single precision, in memory below the diagonal.

        A row of this triangle takes half the memory of the next row up to its diagonal.
        """
        M, n = self.M, len(self.M)
        rough: Any = self._rows[1:].view(np.float32)[:, :n]

        def work(rows: slice) -> None:
            for columns in row_blocks(rows.start, TILE):
                rough[rows, columns] = M[columns, rows].T
            np.copyto(rough[rows, rows], M[rows, rows].T.astype(np.float32), where=_below(rows))
            np.fill_diagonal(rough[rows, rows], 1.0)

        for_blocks(work, n, TILE)
        return rough

    def clusters(self, sigma: float) -> list[Indices] | None:
        """Groups of rows between which the kernel is below 1e-18; None unless all are small."""
        n, reach = len(self.M), self.space.kernel.reach(self._in_units(sigma), 1e-18)
        few = n // 16
        if np.count_nonzero(self.M[:few, few:] < reach) > n:
            return None  # these few rows already have many neighbours
        pairs = [_near_pairs(self.M, rows, reach) for rows in row_blocks(n, rows_per_block(n))]
        i, j = np.concatenate(pairs, axis=1)
        graph = coo_array((np.ones(len(i), dtype=bool), (i, j)), shape=(n, n))
        labels = connected_components(graph, directed=False)[1]
        order = np.argsort(labels, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
        return groups if max(map(len, groups)) <= n // 8 else None

    def block(self, rows: Indices, sigma: float) -> Array:
        """Kernel of some rows, in increasing order, in the lower triangle of a new array."""
        gaps = np.triu(self.M[np.ix_(rows, rows)], 1)
        return np.tril(self.space.kernel.of(gaps.T.copy(), self._in_units(sigma)))

    def _in_units(self, sigma: float) -> float:
        """The bandwidth for gaps that are divided by `unit`."""
        return float(sigma / self.unit ** (1 / self.space.kernel.power))


def _below(rows: slice) -> npt.NDArray[np.bool_]:
    """Mask of the entries below the diagonal, in a block on the diagonal."""
    size = rows.stop - rows.start
    return BELOW[:size, :size]


def _square(n: int, dtype: npt.DTypeLike, extra: int = 0) -> Array:
    """An uninitialised n x n array with `extra` rows, if there is enough memory."""
    check_memory(
        np.dtype(dtype).itemsize * n * n,
        f"The exact solver with n_samples={n}",
        'Use `solver="nystrom"` with fewer landmarks than rows, which keeps no n x n matrix.',
    )
    return np.empty((n + extra, n), dtype=dtype)


def _near_pairs(M: Array, rows: slice, reach: float) -> Indices:
    """Indices of near pairs in a block of rows, above the diagonal."""
    i, j = np.nonzero(M[rows, rows.start :] < reach)
    above = j > i
    return np.array([i[above] + rows.start, j[above] + rows.start])
