"""Nystrom: ridge in the span of landmarks, from sums over blocks of rows.

With landmarks Z and K_zz = L L', the features of a row x are phi = L^-1 k(Z, x), and the kernel
phi(x)'phi(x') agrees with k where one of its arguments is a landmark. A pass over the rows keeps
G = Phi'W Phi, of m x m, and Phi'W [y, 1]; the rest is ridge regression on phi.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm

from ._checks import Array
from ._distances import row_blocks, rows_per_block
from ._landmarks import EPS, Features, blas_threads, features, whitened_late
from ._solvers import Eigen, StackedModel, System, system
from ._streams import Block, OneTarget, Rows

# Rows for each landmark from which on it pays to find out whether whitening may come late.
LATE_ROWS = 20

# Rows whose leave-one-out models make an interval, if there are more.
JACKKNIFE_ROWS = 5000


@dataclass(frozen=True)
class Sums:
    """What a pass over the rows keeps: G = Phi'W Phi, B = Phi'W [y, 1], and numbers.

    G is in the lower triangle; y has its mean taken away.
    """

    G: Array
    B: Array
    yy: Array
    n: float
    weight: float
    log_weight: float

    def __add__(self, other: Sums) -> Sums:
        names = [field.name for field in fields(self)]
        return Sums(*(getattr(self, name) + getattr(other, name) for name in names))


@dataclass(frozen=True)
class Summing:
    """The work of that pass on one block of rows."""

    phi: Features
    mean: Array

    def __call__(self, X: Array, y: Array, w: Array | None) -> Sums:
        m, k = len(self.phi.Z), y.shape[1]
        G, B, yy = np.zeros((m, m), order="F"), np.zeros((m, k + 1)), np.zeros(k)
        for rows in row_blocks(len(X), block_rows(m)):
            K = self.phi.kernel(X[rows])
            K = K if self.phi.late else self.phi.whiten(K)
            T = np.column_stack([y[rows] - self.mean, np.ones(len(K))])
            if w is not None:
                K *= np.sqrt(w[rows])[:, None]
                T *= np.sqrt(w[rows])[:, None]
            G = dsyrk(1.0, K.T, beta=1.0, c=G, lower=1, overwrite_c=1)
            B += K.T @ T
            yy += np.einsum("ij,ij->j", T[:, :-1], T[:, :-1])
        if w is None:
            return Sums(G, B, yy, float(len(X)), float(len(X)), 0.0)
        some = w[w > 0]
        n = float(np.maximum(some, 1.0).sum())  # a row of weight two is two rows
        return Sums(G, B, yy, n, float(some.sum()), float(np.log(some).sum()))


def block_rows(m: int) -> int:
    """Rows of a block with m features: enough of them for a fast product, few for the memory."""
    return max(rows_per_block(m), 512)


def summed(rows: Rows, phi: Features, mean: Array) -> Sums:
    """One pass over the rows; G and B are whitened when it returns."""
    sums: Sums = rows.total(Summing(phi, mean))
    if not phi.late:
        return sums
    G = np.tril(sums.G) + np.tril(sums.G, -1).T
    half = dtrsm(1.0, phi.L, G, lower=1)
    G = dtrsm(1.0, phi.L, half.T, lower=1)
    return replace(sums, G=G, B=dtrsm(1.0, phi.L, sums.B, lower=1))


@dataclass(frozen=True)
class NystromSpectrum:
    """Criteria for every lambda and target; `loo` takes another pass over the rows."""

    rows: Rows | None
    phi: Features
    sums: Sums
    mean: Array

    @cached_property
    def eigen(self) -> tuple[Array, Array]:
        """Eigenvalues s and eigenvectors V of G."""
        with blas_threads(len(self.sums.G)):
            s, V = np.linalg.eigh(self.sums.G, UPLO="L")
        return np.maximum(s, 0.0), V

    @cached_property
    def _energies(self) -> tuple[Array, Array]:
        """Squared coordinates of W^(1/2) y along the left vectors of Phi, and the rest of y'Wy."""
        s, V = self.eigen
        c2 = np.square(V.T @ self.sums.B[:, :-1]) / np.maximum(s, np.finfo(float).tiny)[:, None]
        return c2, np.maximum(self.sums.yy - c2.sum(axis=0), 0.0)

    def gcv(self, lams: Array) -> Array:
        """Generalised cross-validation, n |b - H b|^2 / (n - tr H)^2, (lambdas, targets)."""
        n, lam, (s, _), (c2, rest) = self.sums.n, lams[:, None], self.eigen, self._energies
        R = 1.0 / (s + lam)
        left = (R * lam).sum(axis=1) + n - len(s)
        return np.asarray(n * ((R * lam) ** 2 @ c2 + rest) / left[:, None] ** 2)

    def mml(self, lams: Array) -> Array:
        """N log(y'A^-1 y / n) + log |A| for A = Phi Phi' + lambda W^-1, (lambdas, targets)."""
        n, lam, (s, _), (c2, rest) = self.sums.n, lams[:, None], self.eigen, self._energies
        fit = (1.0 / (s + lam)) @ c2 + rest / lam
        log_det = np.log(s + lam).sum(axis=1) + (n - len(s)) * np.log(lams) - self.sums.log_weight
        fit = np.maximum(fit, np.finfo(float).tiny)  # of a constant target
        return np.asarray(n * np.log(fit / n) + log_det[:, None])

    def loo(self, lams: Array) -> Array:
        """Weighted mean of the squared leave-one-out residuals, of shape (lambdas, targets)."""
        s, V = self.eigen
        a = V.T @ self.sums.B[:, :-1]
        T = np.asarray(dtrsm(1.0, self.phi.L, V, lower=1, trans_a=1))
        assert self.rows is not None
        total = self.rows.total(_LooErrors(self.phi, self.mean, T, a, 1.0 / (s + lams[:, None])))
        return np.asarray(total / self.sums.weight)


@dataclass(frozen=True)
class _LooErrors:
    """Weighted sum of squared leave-one-out residuals on one block of rows, for each lambda."""

    phi: Features
    mean: Array
    T: Array  # L^-T V, takes rows k to rows of V'phi
    a: Array
    R: Array  # eigenvalues of (G + lambda I)^-1, one row for each lambda

    def __call__(self, X: Array, y: Array, w: Array | None) -> Array:
        total = np.zeros((len(self.R), y.shape[1]))
        C = self.T @ (self.R.T[:, :, None] * self.a[:, None, :]).reshape(len(self.a), -1)
        for rows in row_blocks(len(X), block_rows(len(self.T))):
            K = self.phi.kernel(X[rows])
            v = np.ones(len(K)) if w is None else w[rows]
            E = (y[rows] - self.mean)[:, None] - (K @ C).reshape(len(K), *total.shape)
            # Of a row of weight two, which is two rows, one is left out.
            leverages = self._leverages(K, np.minimum(v, 1.0))
            E /= np.maximum(1.0 - leverages, EPS)[:, :, None]
            total += np.einsum("i,ilt,ilt->lt", v, E, E)
        return total

    def _leverages(self, K: Array, w: Array) -> Array:
        """Leverages of rows k for each lambda; those near one, which are few, in double."""
        if not self.phi.late:
            return w[:, None] * (np.square(K @ self.T) @ self.R.T)
        T, R = self._single
        P = K.astype(np.float32) @ T
        leverages = w[:, None] * (np.square(P, out=P) @ R.T)
        large = leverages.max(axis=1) > 0.3
        leverages[large] = w[large, None] * (np.square(K[large] @ self.T) @ self.R.T)
        return leverages

    @cached_property
    def _single(self) -> tuple[Any, Any]:
        return self.T.astype(np.float32), self.R.astype(np.float32)


@dataclass(frozen=True)
class NystromModel:
    """A solved system: what the estimator predicts with, and what it knows of its errors."""

    phi: Features
    sums: Sums
    A: System  # G + lambda I
    lam: float
    mean: Array
    centred: bool
    sample: Block
    rows: Rows | None = None

    def of_target(self, t: int) -> NystromModel:
        """The model of one target alone."""
        X, y, w = self.sample
        sums = replace(self.sums, B=self.sums.B[:, [t, -1]], yy=self.sums.yy[[t]])
        rows = None if self.rows is None else OneTarget(self.rows, t)
        return replace(self, sums=sums, mean=self.mean[[t]], sample=(X, y[:, [t]], w), rows=rows)

    @cached_property
    def _beta(self) -> Array:
        """Coefficients of the features for each target, and for a target of ones."""
        return self.A.solve(self.sums.B)

    @cached_property
    def dual_coef(self) -> Array:
        """Coefficients of the kernels at the landmarks, of shape (m, k)."""
        return np.asarray(dtrsm(1.0, self.phi.L, self._beta[:, :-1], lower=1, trans_a=1))

    @cached_property
    def signal_variance(self) -> Array:
        """y'A^-1 y / n for A = Phi Phi' + lambda W^-1, the most likely scale of the kernel."""
        beta, b = self._beta[:, :-1], self.sums.B[:, :-1]
        if self.lam == 0:  # then it is the squared norm of the fit
            return np.asarray(np.einsum("ij,ij->j", beta, beta) / self.sums.n)
        left = np.maximum(self.sums.yy - np.einsum("ij,ij->j", beta, b), EPS * self.sums.yy)
        return np.asarray(left / (self.lam * self.sums.n))

    def explained(self, K_new: Array) -> Array:
        """Prior variance that the data explain, for each row k(x, Z) of K_new and target."""
        P = np.asarray(dtrsm(1.0, self.phi.L, K_new.T, lower=1))
        half = self.A.half_solve(P)
        left = np.einsum("ij,ij->j", P, P) - self.lam * np.einsum("ij,ij->j", half, half)
        return np.repeat(left[:, None], len(self.sums.yy), axis=1)

    @cached_property
    def degrees_of_freedom(self) -> Array:
        """Trace of the matrix that takes y to the fitted values, for each target."""
        trace = len(self.phi.L) - self.lam * self.A.inverse_diagonal().sum()
        return np.full(len(self.sums.yy), trace)

    @cached_property
    def loo_residuals(self) -> Array:
        """Residual of each row for the model fitted to the others, its mean of y included."""
        if self.rows is None:
            raise AttributeError(
                "Leave-one-out residuals need the training rows, which a pickled Nystrom model "
                "does not hold. Ask for them before pickling, or fit again."
            )
        alone = replace(self, rows=None)  # what workers get has no need of the rows' source
        return np.vstack(list(self.rows.each(alone._loo_block)))

    def _loo_block(self, X: Array, y: Array, w: Array | None) -> Array:
        parts = row_blocks(len(X), block_rows(len(self.phi.L)))
        return np.vstack([self._loo(X[r], y[r], None if w is None else w[r]) for r in parts])

    def _loo(self, X: Array, y: Array, w: Array | None) -> Array:
        """Residual / (1 - leverage), where y - mean is as it were without the row."""
        phi = self.phi(X)
        half = self.A.half_solve(phi.T)
        leverage = np.einsum("ij,ij->j", half, half) * (1.0 if w is None else w)
        fitted = phi @ self._beta
        residuals = y - self.mean - fitted[:, :-1] + self._mean_shift(y, w) * (1 - fitted[:, -1:])
        return np.asarray(residuals / np.maximum(1.0 - leverage, EPS)[:, None])

    def _mean_shift(self, y: Array, w: Array | None) -> Array:
        """How much the mean of y falls when a row is left out; zero for a model without a mean."""
        v = np.ones(len(y)) if w is None else w
        rest = np.maximum(self.sums.weight - v, np.finfo(float).tiny)
        return np.asarray(self.centred * (v / rest)[:, None] * (y - self.mean))

    @cached_property
    def jackknife(self) -> NystromJackknife:
        """Leave-one-out models of a sample of the rows."""
        X, y, w = spread(self.sample, JACKKNIFE_ROWS)
        influence = self.A.solve(self.phi(X).T) * (1.0 if w is None else w)
        residuals, shift = self._loo_block(X, y, w), self._mean_shift(y, w)
        return NystromJackknife(self.phi, influence, self._beta[:, -1], residuals, shift)


@dataclass(frozen=True)
class NystromJackknife:
    """Models that leave one of s sampled rows out: their residuals, and how they predict."""

    phi: Features
    influence: Array  # (G + lambda I)^-1 Phi'W, of shape (m, s)
    ones: Array  # coefficients of the features for a target of ones
    loo_residuals: Array
    mean_shift: Array

    def loo_shifts(self, K_new: Array) -> Array:
        """Change of the predictions at K_new when a row is left out, of shape (n_new, s, k)."""
        phi = np.asarray(dtrsm(1.0, self.phi.L, K_new.T, lower=1)).T
        P, rest = phi @ self.influence, 1.0 - phi @ self.ones
        moved = P[:, :, None] * self.loo_residuals + rest[:, None, None] * self.mean_shift
        return np.asarray(-moved)


@dataclass
class Nystrom:
    """Passes over the rows at one bandwidth or several; the last sums are remembered."""

    rows: Rows | None
    mean: Array
    centred: bool
    sample: Block
    metric: str = "euclidean"
    choose: Callable[[float], Array] | None = None  # landmarks for a bandwidth
    _last: NystromSpectrum | None = None

    def spectrum(self, sigma: float) -> NystromSpectrum:
        """Sums and criteria at one bandwidth."""
        if self._last is None or self._last.phi.sigma != sigma:
            assert self.rows is not None
            assert self.choose is not None
            phi = features(self.choose(sigma), sigma, self.metric)
            if self.rows.n >= LATE_ROWS * len(phi.Z):
                phi = whitened_late(phi, spread(self.sample, len(phi.Z))[0])
            sums = summed(self.rows, phi, self.mean)
            self._last = NystromSpectrum(self.rows, phi, sums, self.mean)
        return self._last

    def solve(self, sigma: float, lams: Array) -> NystromModel | StackedModel:
        """The model at one bandwidth, with one penalty or one for each target."""
        at = self.spectrum(sigma)
        if len(lams) == 1:
            A = system(lambda: np.array(at.sums.G, order="C"), lams[0])
            return self._model(at.phi, at.sums, A, lams[0])
        s, V = at.eigen
        models = [self._model(at.phi, at.sums, Eigen(V, s + lam), lam) for lam in lams]
        return StackedModel([model.of_target(t) for t, model in enumerate(models)])

    def _model(self, phi: Features, sums: Sums, A: System, lam: float) -> NystromModel:
        return NystromModel(phi, sums, A, lam, self.mean, self.centred, self.sample, self.rows)

    def state(self) -> dict[str, Array | None]:
        """What the last model is made of, but for its landmarks and the rows, as plain arrays."""
        assert self._last is not None
        X, y, w = self.sample
        sums = {
            field.name: np.asarray(getattr(self._last.sums, field.name)) for field in fields(Sums)
        }
        return {"L": self._last.phi.L, "mean": self.mean, "X": X, "y": y, "w": w, **sums}

    @classmethod
    def restored(
        cls, state: dict[str, Any], Z: Array, sigma: float, metric: str, *, centred: bool
    ) -> Nystrom:
        """The same without the rows, from what `state` gave."""
        phi = Features(Z, np.asfortranarray(state["L"]), sigma, metric)
        sums = Sums(*(state[field.name] for field in fields(Sums)))
        sample = state["X"], state["y"], state["w"]
        last = NystromSpectrum(None, phi, sums, state["mean"])
        return cls(None, state["mean"], centred, sample, metric, _last=last)


def spread(block: Block, most: int) -> Block:
    """At most so many rows of a block, evenly chosen."""
    X, y, w = block
    step = -(-len(X) // most)
    return X[::step], y[::step], None if w is None else w[::step]
