"""Nystrom: ridge in the span of landmarks, from sums over blocks of rows.

With landmarks Z and K_zz = L L', the features of a row x are phi = L^-1 k(Z, x), and the kernel
phi(x)'phi(x') agrees with k where one of its arguments is a landmark. A pass over the rows keeps
G = Phi'W Phi, of m x m, and Phi'W [y, 1]; the rest is ridge regression on phi.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dtrsm

from ._checks import Array
from ._cholesky import EPS, factor
from ._distances import row_blocks
from ._landmarks import (
    CANDIDATES,
    DEFAULT,
    Features,
    blas_threads,
    distinct_rows,
    evenly_among,
    features,
    whitened_late,
)
from ._nystrom_model import NystromModel, StackedNystrom
from ._problem import carried, mean_of
from ._sampled import SampledProblem, centred
from ._solvers import Eigen, System, system
from ._streams import ArrayRows, Block, Rows
from ._sums import Sums, block_rows, spread, summed
from ._survey import SAMPLE, drawn, first_look, sampled

# Rows for each landmark from which on it pays to find out whether whitening may come late.
LATE_ROWS = 8

# Landmarks of the smaller model on which bandwidths are tried.
TRIAL = 1000

# A function that returns the landmarks for a bandwidth.
Choose = Callable[[float], Array]


@dataclass(frozen=True)
class NystromSpectrum:
    """Criteria for every lambda and target; `loo` takes another pass over the rows."""

    rows: Rows | None
    phi: Features
    sums: Sums

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
        # Below this an eigenvalue is rounding, and so is what y has along its vector.
        some = s > len(s) * EPS * s.max(initial=0.0)
        c2 = np.square(V.T @ self.sums.B[:, :-1]) / np.where(some, s, np.inf)[:, None]
        return c2, np.maximum(self.sums.yy - c2.sum(axis=0), 0.0)

    def gcv(self, lams: Array) -> Array:
        """Generalised cross-validation, n |b - H b|^2 / (n - tr H)^2, (lambdas, targets)."""
        if len(lams) == 1 and lams[0] > 0:
            with suppress(LinAlgError):
                return self._gcv_at(float(lams[0]))[None]
        n, lam, (s, _), (c2, rest) = self.sums.n, lams[:, None], self.eigen, self._energies
        R = 1.0 / (s + lam)
        left = (R * lam).sum(axis=1) + n - len(s)
        return np.asarray(n * ((R * lam) ** 2 @ c2 + rest) / left[:, None] ** 2)

    def _gcv_at(self, lam: float) -> Array:
        """The same for one lambda by a Cholesky factor, which is cheaper than eigenvectors."""
        n, b = self.sums.n, self.sums.B[:, :-1]
        A = factor(self.sums.G.copy(), lam)
        beta = A.solve(b)
        left = self.sums.yy - np.einsum("ij,ij->j", beta, b + lam * beta)
        trace = lam * A.inverse_diagonal().sum() + n - len(b)
        return np.asarray(n * np.maximum(left, 0.0) / trace**2)

    def mml(self, lams: Array) -> Array:
        """The sum n log(y'A^-1 y / n) + log |A|, A = Phi Phi' + lambda W^-1, (lambdas, targets)."""
        n, lam, (s, _), (c2, rest) = self.sums.n, lams[:, None], self.eigen, self._energies
        fit = (1.0 / (s + lam)) @ c2 + rest / lam
        log_det = np.log(s + lam).sum(axis=1) + (n - len(s)) * np.log(lams) - self.sums.log_weight
        fit = np.maximum(fit, np.finfo(float).tiny)  # of a constant target
        return np.asarray(n * np.log(fit / n) + log_det[:, None])

    def loo(self, lams: Array) -> Array:
        """Weighted mean of the squared leave-one-out residuals, of shape (lambdas, targets)."""
        V, R = self._resolvents(lams)
        a = V.T @ self.sums.B[:, :-1]
        T = np.asarray(dtrsm(1.0, self.phi.L, V, lower=1, trans_a=1))
        assert self.rows is not None
        total = self.rows.total(_LooErrors(self.phi, self.sums.mean, T, a, R))
        return np.asarray(total / self.sums.weight)

    def _resolvents(self, lams: Array) -> tuple[Array, Array]:
        """V and, for each lambda, the diagonal R in (G + lambda I)^-1 = V R V'."""
        if len(lams) == 1 and lams[0] > 0:
            with suppress(LinAlgError), blas_threads(len(self.sums.G)):
                A = factor(self.sums.G.copy(), float(lams[0]))
                return A.half_solve(np.eye(A.rank)).T, np.ones((1, A.rank))
        s, V = self.eigen
        return V, 1.0 / (s + lams[:, None])


@dataclass(frozen=True)
class _LooErrors:
    """Weighted sum of squared leave-one-out residuals on one block of rows, for each lambda."""

    what: ClassVar[str] = "their leave-one-out errors"
    phi: Features
    mean: Array
    T: Array  # L^-T V, takes rows k to rows of V'phi
    a: Array
    R: Array  # (G + lambda I)^-1 = V R V', one row for each lambda

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


@dataclass
class Nystrom:
    """Passes over the rows at one bandwidth or several; the last sums are remembered."""

    rows: Rows | None
    intercept: str
    sample: Block
    metric: str = "euclidean"
    choose: Choose | None = None
    _last: NystromSpectrum | None = None

    def spectrum(self, sigma: float) -> NystromSpectrum:
        """Sums and criteria at one bandwidth."""
        if self._last is None or self._last.phi.sigma != sigma:
            assert self.rows is not None
            assert self.choose is not None
            phi = features(self.choose(sigma), sigma, self.metric)
            if self.rows.n >= LATE_ROWS * len(phi.Z):
                phi = whitened_late(phi, spread(self.sample, len(phi.Z))[0])
            sums = summed(self.rows, phi, self.shift, centred=self.intercept != "none")
            self._last = NystromSpectrum(self.rows, phi, sums)
        return self._last

    @property
    def shift(self) -> Array:
        """What y is shifted by while it is summed up: about its mean, whatever the blocks are."""
        _, y, w = self.sample
        v = np.ones(len(y)) if w is None else w
        return mean_of(y, v) if self.intercept != "none" else np.zeros(y.shape[1])

    def of_rows(self, block: Block, choose: Choose) -> Nystrom:
        """The same for some of the rows, centred by themselves if all are."""
        return replace(self, rows=ArrayRows(*block), sample=block, choose=choose, _last=None)

    def solve(self, sigma: float, lams: Array) -> NystromModel | StackedNystrom:
        """The model at one bandwidth, with one penalty or one for each target."""
        at = self.spectrum(sigma)
        if len(lams) == 1:
            A = system(lambda: np.array(at.sums.G, order="C"), lams[0])
            return self._model(at.phi, at.sums, A, lams[0])
        s, V = at.eigen
        models = [self._model(at.phi, at.sums, Eigen(V, s + lam), lam) for lam in lams]
        return StackedNystrom([model.of_target(t) for t, model in enumerate(models)], self.rows)

    def _model(self, phi: Features, sums: Sums, A: System, lam: float) -> NystromModel:
        return NystromModel(phi, sums, A, lam, self.intercept, self.sample, self.rows)

    def state(self) -> dict[str, Array | None]:
        """What the last model is made of, but for its landmarks and the rows, as plain arrays."""
        assert self._last is not None
        X, y, w = self.sample
        sums = {
            field.name: np.asarray(getattr(self._last.sums, field.name)) for field in fields(Sums)
        }
        return {"L": self._last.phi.L, "X": X, "y": y, "w": w, **sums}

    @classmethod
    def restored(
        cls, state: dict[str, Any], Z: Array, sigma: float, metric: str, *, intercept: str
    ) -> Nystrom:
        """The same without the rows, from what `state` gave."""
        phi = Features(Z, np.asfortranarray(state["L"]), sigma, metric)
        kept = ((field.name, state[field.name]) for field in fields(Sums))
        values: dict[str, Any] = {name: Z if np.ndim(Z) else float(Z) for name, Z in kept}
        sample = state["X"], state["y"], state["w"]
        return cls(
            None, intercept, sample, metric, _last=NystromSpectrum(None, phi, Sums(**values))
        )


def trial_spectra(
    full: Nystrom,
    rows: Block,
    among: Callable[[Array, int], Choose],
    m: int,
    rng: np.random.Generator,
) -> Callable[[float], NystromSpectrum]:
    """Spectra of a smaller model, at the bandwidth that stands for sigma with m landmarks.

    `among` chooses landmarks among rows; the smaller model has ten rows for each of them.
    """
    few = min(m, TRIAL)
    block = sampled(ArrayRows(*rows), CANDIDATES * few, rng)
    small = full.of_rows(block, among(block[0], few))
    # The bandwidth of landmarks goes with their spacing, of all rows with its square root.
    shrink = carried(few, m, block[0].shape[1]) ** 2
    return lambda sigma: small.spectrum(sigma / shrink)


def stream_problem(
    rows: Rows, solved: bool, metric: str, rng: np.random.Generator, **options: Any
) -> SampledProblem:
    """The problem of all rows: its X and y are a sample of them, all of them if they are few.

    It has targets if it is to be solved, and rules that solve then do so by landmarks.
    """
    seen, [sample] = first_look(rows, [drawn(rows.n, SAMPLE, rng)], metric, rng)
    spectra = trials = None
    if rows.n > SAMPLE and solved:
        Z = distinct_rows(sample[0], DEFAULT, rng)
        nystrom = Nystrom(rows, "mean", sample, metric, lambda sigma: Z)
        spectra = nystrom.spectrum
        trials = trial_spectra(nystrom, sample, evenly_among(Z), len(Z), rng)
    X, y, w = centred(sample, seen.whole.mean, by_itself=True)
    return SampledProblem(
        X=X,
        y=y if solved else None,
        w=w,
        metric=metric,
        rng=rng,
        spectra=spectra,
        trials=trials,
        rows=rows,
        n_rows=rows.n,
        weight=float(rows.n),
        seen=seen,
        **options,
    )
