"""Landmarks: how they are chosen, and the features that they define."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING
from warnings import catch_warnings, simplefilter

import numpy as np
from scipy.linalg import LinAlgError, lapack
from scipy.linalg.blas import dtrsm

from .._compute.arrays import EPS, FIXED_SEED, Array, Indices, bulk_centre, fixed_sample, row_blocks
from .._compute.threads import lapack_for
from .._geometry.distances import FAR
from .cholesky import factor

if TYPE_CHECKING:
    from .._geometry.space import Space

# Landmarks are chosen from this many rows per landmark.
CANDIDATES = 10

# Default number of landmarks.
DEFAULT = 3000

# A residual diagonal entry below this is rounding error (the diagonal of K is 1).
SMALLEST_PIVOT = 1e-13

# Landmarks within this of the span of the others are dropped: rounding alone would change a pivot
# of 1e-14, and predictions with it, by one percent.
PIVOT = 1e-10

# Number of columns that are whitened at a time.
CORNER = 128

# Expanded squares below this share of the norms they come from are computed again for kernels with
# a kink, which turn a rounding error at zero into its square root.
NEAR = 1e-8

# Whitening after the sum instead of before it halves the work, but loses digits: measured errors in
# predictions are a tenth to a hundredth of this bound, and so at most about 1e-7.
LATE = 1e-6

# Shares of features to try whitening before the sum, and the number of rows per landmark from which
# the search for such a share pays off. The cheap bound is usually 5 to 60 times too large: if it
# exceeds LATE by more than the factor SLACK, the exact loss is not computed.
SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 2 / 5)
SHARE_ROWS = 32
SLACK = 30


def uniform(X: Array, m: int, sigma: float, space: Space, rng: np.random.Generator) -> Array:
    """At most m of the rows, drawn at random; they are distinct."""
    return X if len(X) <= m else X[np.sort(rng.choice(len(X), m, replace=False))]


def k_means(X: Array, m: int, sigma: float, space: Space, rng: np.random.Generator) -> Array:
    """At most m centres of clusters."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import (
        ConvergenceWarning,  # slow to import, and seldom needed
    )

    start = uniform(X, m, sigma, space, rng)
    if space.distance.is_curved or len(start) < m or m == len(X):
        return start
    with catch_warnings():  # about duplicate centres, which are dropped later
        simplefilter("ignore", ConvergenceWarning)
        return KMeans(m, init=start, n_init=1, max_iter=10).fit(X).cluster_centers_


def pivots(X: Array, m: int, sigma: float, space: Space, rng: np.random.Generator) -> Array:
    """At most m of the rows, the pivots of a randomly pivoted Cholesky factorisation."""
    return X[np.sort(low_rank(X, m, sigma, space, rng)[1])]


LANDMARKS: dict[str, Callable[[Array, int, float, Space, np.random.Generator], Array]] = {
    "uniform": uniform,
    "kmeans": k_means,
    "rpcholesky": pivots,
}


def chooser(kind: str, X: Array, m: int, space: Space, seed: int) -> Callable[[float], Array]:
    """Function from a bandwidth to landmarks, cached if they do not depend on the bandwidth."""
    X = np.unique(X, axis=0)  # duplicates and the order of the rows make no difference

    def choose(sigma: float) -> Array:
        return LANDMARKS[kind](X, m, sigma, space, np.random.default_rng(seed))

    if kind == "rpcholesky":
        return choose
    once = cache(lambda: choose(1.0))
    return lambda sigma: once()


def some_among(Z: Array) -> Callable[[Array, int], Callable[[float], Array]]:
    """Choice of at most m of the landmarks Z, independent of rows and bandwidth."""
    return lambda X, m: lambda sigma: Z[fixed_sample(len(Z), m)]


def low_rank(
    X: Array, m: int, sigma: float, space: Space, rng: np.random.Generator
) -> tuple[Array, Indices]:
    """F of rank at most m with K close to F F', and the pivots; K equals F F' on their rows.

    Each pivot is drawn with a probability proportional to the residual diagonal of K. Pivots are
    proposed in blocks and thinned out, which does not change their distribution (Epperly, Tropp and
    Webber, arXiv:2410.03969), so that all large products are gemm.
    """
    n = len(X)
    F, found = np.empty((n, m), order="F"), np.empty(m, dtype=np.intp)
    left, rank = np.ones(n), 0
    while rank < m and left.sum() > 0:
        some = rng.choice(n, min(max(16, m // 10), n), p=left / left.sum())
        F_some = F[some, :rank]
        H = space.block(X[some], X[some], sigma) - F_some @ F_some.T
        kept, L = _thinned(H, left[some], m - rank, rng)
        new, chosen = slice(rank, rank + len(kept)), some[kept]
        R = space.block(X, X[chosen], sigma)
        R -= F[:, :rank] @ F_some[kept].T
        F[:, new] = dtrsm(1.0, L, R.T, lower=1).T
        found[new] = chosen
        left -= np.einsum("ij,ij->i", F[:, new], F[:, new])
        left[some[0]] = 0.0  # the first is always kept, apart from rounding
        left[chosen] = 0.0
        left[left < SMALLEST_PIVOT] = 0.0
        rank = new.stop
    return F[:, :rank], found[:rank]


def _thinned(H: Array, left: Array, most: int, rng: np.random.Generator) -> tuple[list[int], Array]:
    """Proposed pivots that are kept, and the Cholesky factor of the residual kernel H on them."""
    H, dice, kept = H.copy(), rng.random(len(H)) * left, list[int]()
    for i in range(len(H)):
        if len(kept) < most and H[i, i] > max(dice[i], SMALLEST_PIVOT):
            H[i:, i] /= np.sqrt(H[i, i])
            H[i + 1 :, i + 1 :] -= np.outer(H[i + 1 :, i], H[i + 1 :, i])
            kept.append(i)
    return kept, np.tril(H[np.ix_(kept, kept)])


@dataclass(frozen=True)
class Features:
    """Landmarks and the map from rows to features: phi = L^-1 k(Z, x), K_zz = L L'.

    A sum over rows uses the first `early` features, and the residuals of the others given these:
    rows [phi_1, k_2 - L_21 phi_1], which `L_late` whitens afterwards.
    """

    Z: Array
    L: Array  # Fortran order, so that BLAS needs no copy
    sigma: float
    space: Space
    early: int | None = None  # all

    def kernel(self, X: Array, out: Array | None = None) -> Array:
        """K(X, Z), in `out` if it is given."""
        out = np.empty((len(X), len(self.Z))) if out is None else out
        if not self.space.distance.is_euclidean or self._right[-1] > FAR:
            out[...] = self.space.block(X, self.Z, self.sigma)
            return out
        centre, V, reach = self._right
        U, unit = augmented_left(X, centre, self.sigma), self.space.kernel.unit
        gaps: Array = np.matmul(U, V, out=out)
        far = U[:, -2] > FAR
        if far.any():
            gaps[far] = unit * self.space.distance.gaps(X[far], self.Z) / self.sigma**2
        if not self.space.kernel.is_smooth:
            i, j = np.nonzero(gaps < NEAR * unit * (U[:, -2].max(initial=0.0) + reach))
            gaps[i, j] = unit * np.square((X[i] - self.Z[j]) / self.sigma).sum(axis=1)
        return self.space.kernel.of_expanded(gaps)

    @cached_property
    def _right(self) -> tuple[Array, Array, float]:
        """Centre, right factor of the gaps in the unit of the kernel, largest square in it."""
        centre = bulk_centre(self.Z)
        V = augmented_right(self.Z, centre, self.sigma)
        return centre, self.space.kernel.unit * V, float(V[-1].max())

    def whiten(self, K: Array, early: int | None = None) -> Array:
        """Rows phi from rows k: K L^-T, in the memory of K; or only the first `early` features.

        Works by blocks of columns, because SciPy's dtrsm holds Python's lock and NumPy's products
        do not.
        """
        first = len(self.L) if early is None else early
        for j in row_blocks(first, CORNER):
            K[:, j] -= K[:, : j.start] @ self.L[j, : j.start].T
            K[:, j] = dtrsm(1.0, self.L[j, j], K[:, j].T, lower=1).T
        if 0 < first < len(self.L):
            K[:, first:] -= K[:, :first] @ self.L[first:, :first].T
        return K

    @cached_property
    def L_late(self) -> Array:
        """Triangle that whitens the other features after a sum: L with unit first columns."""
        L = self.L.copy(order="F")
        L[:, : self.early] = np.eye(len(L))[:, : self.early]
        return L

    def __call__(self, X: Array) -> Array:
        """Features of the rows of X."""
        return self.whiten(self.kernel(X))


def augmented_left(X: Array, centre: Array, sigma: float) -> Array:
    """Left factor of |x - z|^2 / sigma^2 = [u, |u|^2, 1] [-2 v, 1, |v|^2]', u = (x - c) / sigma."""
    U = np.empty((len(X), X.shape[1] + 2))
    np.subtract(X, centre, out=U[:, :-2])
    U[:, :-2] /= sigma
    np.einsum("ij,ij->i", U[:, :-2], U[:, :-2], out=U[:, -2])
    U[:, -1] = 1.0
    return U


def augmented_right(Z: Array, centre: Array, sigma: float) -> Array:
    """Right factor of the squared distances, of shape (p + 2, m)."""
    V = (Z - centre) / sigma
    return np.vstack([-2.0 * V.T, np.ones(len(V)), np.einsum("ij,ij->i", V, V)])


def features(Z: Array, sigma: float, space: Space) -> Features:
    """Features of landmarks, without landmarks that depend on the others."""
    K = space.block(Z, Z, sigma)
    with lapack_for(len(Z)):
        # K is symmetric: its transpose is in Fortran order, which LAPACK takes without a copy.
        L, pivot, rank, _ = lapack.dpstrf(K.T, lower=1, tol=PIVOT, overwrite_a=1)
    for j in range(1, rank):
        L[:j, j] = 0.0
    return Features(Z[pivot[:rank] - 1], np.asfortranarray(L[:rank, :rank]), sigma, space)


def whitened_late(phi: Features, X: Array, n: int) -> Features:
    """Whiten as few features before a sum over n rows as is numerically safe.

    This is decided on X, a sample of the rows. Before whitening, G has the entries of K'K, each
    with an error of eps sqrt(G_ii G_jj). In the metric of G itself that is eps tr(S^-1), where S is
    G scaled to a unit diagonal. Wide kernels are nearly functions of a few of them: without these
    few, S is far from singular. Random landmarks are a better choice for these than the first
    pivots of L, which lie far from the others and from most rows.
    """
    m = len(phi.Z)
    with lapack_for(m):
        K = np.vstack([phi.kernel(X), phi.kernel(phi.Z)])  # landmarks are like rows, too
        # G is at least K_zz^2, whose inverse is known: this bound often suffices without a product.
        norms = _squared_norms_of_inverse(phi.L)
        most = EPS * np.einsum("ij,ij->j", K, K) @ norms
        if most < LATE:
            return replace(phi, early=0)
        late, tried = phi, [0] if most < 1 else []
        if n >= SHARE_ROWS * m:
            order = np.random.default_rng(FIXED_SEED).permutation(m)
            late, K, norms = reordered(phi, order), K[:, order], norms[order]
            tried = [int(share * m) for share in SHARES]
        for early in tried:
            P = late.whiten(K.copy(), early)
            rest = EPS * np.einsum("ij,ij->j", P[:, early:], P[:, early:]) @ norms[early:]
            if (early == 0 or rest < SLACK * LATE) and _loss(P.T @ P) < LATE:
                return replace(late, early=early)
    return phi


def reordered(phi: Features, order: Indices) -> Features:
    """The features of the same landmarks in another order."""
    Z = phi.Z[order]
    L = np.linalg.cholesky(phi.space.block(Z, Z, phi.sigma))
    return replace(phi, Z=Z, L=np.asfortranarray(L))


def _squared_norms_of_inverse(L: Array) -> Array:
    """Squared norms of the rows of (L L')^-1."""
    lower, _ = lapack.dpotri(L, lower=1)
    squares = np.square(lower, out=lower)
    return squares.sum(axis=0) + squares.sum(axis=1) - np.diagonal(squares)


def _loss(G: Array) -> float:
    """Error from rounding in G: eps tr(S^-1), where S is G scaled to a unit diagonal."""
    d = np.sqrt(np.diagonal(G))
    G /= d
    G /= d[:, None]
    try:
        return float(EPS * factor(G, 0.0).inverse_diagonal().sum())
    except LinAlgError:
        return np.inf
