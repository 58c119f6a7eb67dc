"""Landmarks: the few rows that stand for all, and the features that they make of any row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, lapack
from scipy.linalg.blas import dtrsm

from ._checks import Array, Indices, check_whole
from ._cholesky import EPS, LAPACK_ORDER, LastFactor, factor
from ._distances import blas_for, bulk_centre, one_blas_thread, row_blocks, squared_distances
from ._kernels import kernel_block

# Landmarks are looked for among this many rows for each landmark.
CANDIDATES = 10

# Landmarks if their number is not given.
DEFAULT = 3000

# What is left of a diagonal entry of 1 is rounding below this.
SMALLEST = 1e-13

# A landmark of which the others leave less than this is dropped: a pivot of 1e-14 would be off by a
# hundredth of itself, and predictions with it, by rounding alone.
PIVOT = 1e-10

# Columns that are whitened at a time.
CORNER = 128

# Half the square, in bandwidths, of a distance from the centre at which the expanded square has
# lost so many digits that the kernel is wrong by 1e-9: there differences are taken.
FAR = 1e-9 / EPS / 4

# Whitening after the sum instead of before it halves the work. It loses digits: a tenth to a
# hundredth of this bound, measured in the predictions, so that 1e-8 is kept.
LATE = 1e-7


def landmark_number(asked: Any, n: int) -> int:
    """Number of landmarks for n rows, as asked for or by default."""
    if asked is None:
        return min(n, DEFAULT)
    if check_whole("n_landmarks", asked) > n:
        raise ValueError(
            f"`n_landmarks` must be from 1 to n_samples={n}, got {asked}. Leave it out for a "
            "number that fits."
        )
    return int(asked)


def uniform(X: Array, m: int, sigma: float, metric: str, rng: np.random.Generator) -> Array:
    """At most m of the distinct rows, drawn at random."""
    return distinct_rows(X, m, rng)


def k_means(X: Array, m: int, sigma: float, metric: str, rng: np.random.Generator) -> Array:
    """At most m centres of clusters."""
    from sklearn.cluster import KMeans  # takes long to import, and is seldom asked for

    start = distinct_rows(X, m, rng)
    if metric != "euclidean" or len(start) < m or m == len(X):
        return start
    return np.asarray(KMeans(m, init=start, n_init=1, max_iter=10).fit(X).cluster_centers_)


def pivots(X: Array, m: int, sigma: float, metric: str, rng: np.random.Generator) -> Array:
    """At most m of the rows, the pivots of a randomly pivoted Cholesky factorisation."""
    return X[np.sort(low_rank(X, m, sigma, metric, rng=rng).pivots)]


LANDMARKS: dict[str, Callable[[Array, int, float, str, np.random.Generator], Array]] = {
    "uniform": uniform,
    "kmeans": k_means,
    "rpcholesky": pivots,
}


def chooser(kind: str, X: Array, m: int, metric: str, seed: int) -> Callable[[float], Array]:
    """Function of the bandwidth that returns landmarks, made once where they do not follow it."""

    def choose(sigma: float) -> Array:
        return LANDMARKS[kind](X, m, sigma, metric, np.random.default_rng(seed))

    if kind == "rpcholesky":
        return choose
    once = cache(lambda: choose(1.0))
    return lambda sigma: once()


def evenly_among(Z: Array) -> Callable[[Array, int], Callable[[float], Array]]:
    """Choice of at most m of the landmarks Z, whatever the rows and the bandwidth are."""
    return lambda X, m: lambda sigma: Z[evenly(len(Z), m)]


def evenly(n: int, most: int) -> Indices:
    """At most so many of n indices, as evenly as can be."""
    return np.arange(n) if n <= most else np.arange(most) * n // most


def distinct_rows(X: Array, m: int, rng: np.random.Generator) -> Array:
    """At most m of the distinct rows, drawn at random."""
    distinct = np.unique(X, axis=0)
    if len(distinct) <= m:
        return distinct
    return np.asarray(distinct[np.sort(rng.choice(len(distinct), m, replace=False))])


@dataclass(frozen=True)
class LowRank:
    """K is F F' on the rows and columns of the pivots, and above it by `left` in trace."""

    F: Array
    pivots: Indices
    left: float


def low_rank(
    X: Array,
    m: int,
    sigma: float,
    metric: str = "euclidean",
    *,
    tol: float = 0.0,
    rng: np.random.Generator,
) -> LowRank:
    """Factor of rank m (less if the trace left falls to tol n), by random pivots.

    Each pivot is drawn with a probability in proportion to what is left of the diagonal of K.
    Pivots are proposed in blocks and thinned out, which changes nothing in their distribution
    (Epperly, Tropp and Webber, arXiv:2410.03969), so that all large products are gemm.
    """
    n = len(X)
    F, found = np.empty((n, m), order="F"), np.empty(m, dtype=np.intp)
    left, rank = np.ones(n), 0
    while rank < m and left.sum() > tol * n:
        some = rng.choice(n, min(max(16, m // 10), n), p=left / left.sum())
        F_some = F[some, :rank]
        H = kernel_block(X[some], X[some], sigma, metric) - F_some @ F_some.T
        kept, L = _thinned(H, left[some], m - rank, rng)
        new, chosen = slice(rank, rank + len(kept)), some[kept]
        R = kernel_block(X, X[chosen], sigma, metric)
        R -= F[:, :rank] @ F_some[kept].T
        F[:, new] = dtrsm(1.0, L, R.T, lower=1).T
        found[new] = chosen
        left -= np.einsum("ij,ij->i", F[:, new], F[:, new])
        left[some[0]] = 0.0  # the first is always kept, but for rounding
        left[chosen] = 0.0
        left[left < SMALLEST] = 0.0
        rank = new.stop
    return LowRank(F[:, :rank], found[:rank], float(left.sum()))


def _thinned(H: Array, left: Array, most: int, rng: np.random.Generator) -> tuple[list[int], Array]:
    """Proposed pivots that are kept, and the Cholesky factor of H, what is left of K, on them."""
    H, dice, kept = H.copy(), rng.random(len(H)) * left, list[int]()
    for i in range(len(H)):
        if len(kept) < most and H[i, i] > max(dice[i], SMALLEST):
            H[i:, i] /= np.sqrt(H[i, i])
            H[i + 1 :, i + 1 :] -= np.outer(H[i + 1 :, i], H[i + 1 :, i])
            kept.append(i)
    return kept, np.tril(H[np.ix_(kept, kept)])


@dataclass(frozen=True)
class Features:
    """Landmarks and what makes features of rows: phi = L^-1 k(Z, x), K_zz = L L'."""

    Z: Array
    L: Array  # Fortran order, so that BLAS takes it as it is
    sigma: float
    metric: str = "euclidean"
    late: bool = False

    def kernel(self, X: Array, out: Array | None = None) -> Array:
        """K(X, Z), in `out` if there is one."""
        centre, right = self._right
        out = np.empty((len(X), len(self.Z))) if out is None else out
        if self.metric != "euclidean" or right[-1].min() < -FAR:
            out[...] = kernel_block(X, self.Z, self.sigma, self.metric)
            return out
        U = np.empty((len(X), right.shape[0]))
        np.subtract(X, centre, out=U[:, :-2])
        U[:, :-2] /= self.sigma
        np.einsum("ij,ij->i", U[:, :-2], U[:, :-2], out=U[:, -2])
        U[:, -2] *= -0.5
        U[:, -1] = 1.0
        K: Array = np.matmul(U, right, out=out)
        far = U[:, -2] < -FAR
        if far.any():
            K[far] = 0.5 * squared_distances(X[far], self.Z) / -(self.sigma**2)
        return np.exp(K, out=K)

    @cached_property
    def _right(self) -> tuple[Array, Array]:
        """The right factor of -|x - z|^2 / (2 sigma^2) = [u, -|u|^2 / 2, 1] [v, 1, -|v|^2 / 2]'."""
        centre = bulk_centre(self.Z)
        V = (self.Z - centre) / self.sigma
        half = -0.5 * np.einsum("ij,ij->i", V, V)
        return centre, np.vstack([V.T, np.ones(len(V)), half])

    def whiten(self, K: Array) -> Array:
        """Rows phi from rows k: K L^-T, in the memory of K.

        Column by column block, as SciPy's dtrsm holds Python's lock, and NumPy's products do not.
        """
        for j in row_blocks(len(self.L), CORNER):
            K[:, j] -= K[:, : j.start] @ self.L[j, : j.start].T
            K[:, j] = dtrsm(1.0, self.L[j, j], K[:, j].T, lower=1).T
        return K

    def __call__(self, X: Array) -> Array:
        """Features of the rows of X."""
        return self.whiten(self.kernel(X))


def features(Z: Array, sigma: float, metric: str = "euclidean") -> Features:
    """Features of landmarks, without those that depend on the others."""
    K = kernel_block(Z, Z, sigma, metric)
    with blas_threads(len(Z)):
        # K is symmetric: its transpose is in the order that LAPACK takes without a copy.
        L, pivot, rank, _ = lapack.dpstrf(K.T, lower=1, tol=PIVOT, overwrite_a=1)
    for j in range(1, rank):
        L[:j, j] = 0.0
    return Features(Z[pivot[:rank] - 1], np.asfortranarray(L[:rank, :rank]), sigma, metric)


def whitened_late(phi: Features, X: Array) -> Features:
    """The same features, to be whitened after the sum if X, a sample of rows, shows it is safe.

    Before whitening, G has the entries of K'K, each with an error of eps sqrt(G_ii G_jj). Seen
    in the metric of G itself that is eps tr(S^-1), S being G scaled to a diagonal of ones.
    """
    with blas_threads(len(phi.Z)):
        K, K_zz = phi.kernel(X), phi.kernel(phi.Z)  # landmarks are like rows, too
        d2 = np.einsum("ij,ij->j", K, K) + np.einsum("ij,ij->j", K_zz, K_zz)
        # G is at least K_zz^2, whose inverse is at hand: often that will do, without a product.
        most = EPS * d2 @ _squared_norms_of_inverse(phi.L)
        late = most < LATE or (most < 1 and _loss(K.T @ K + K_zz.T @ K_zz) < LATE)
    return replace(phi, late=bool(late))


def _squared_norms_of_inverse(L: Array) -> Array:
    """Squared norms of the rows of (L L')^-1."""
    lower, _ = lapack.dpotri(L, lower=1)
    squares = np.square(lower, out=lower)
    return np.asarray(squares.sum(axis=0) + squares.sum(axis=1) - np.diagonal(squares))


def _loss(G: Array) -> float:
    """What rounding in G costs: eps tr(S^-1), S being G scaled to a diagonal of ones."""
    d = np.sqrt(np.diagonal(G))
    G /= d
    G /= d[:, None]
    try:
        return float(EPS * LastFactor(factor(G, 0.0).L).inverse_diagonal().sum())
    except LinAlgError:
        return np.inf


def blas_threads(m: int) -> Any:
    """Context for m x m matrices: one thread for small ones, and for the largest.

    From m = 16,000 on a threaded LAPACK may crash.
    """
    return one_blas_thread() if m > LAPACK_ORDER else blas_for(m)
