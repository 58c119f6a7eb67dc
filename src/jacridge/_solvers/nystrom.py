"""Nystrom: ridge in the span of landmarks, from sums over blocks of rows.

With landmarks Z and K_zz = L L', the features of a row x are phi = L^-1 k(Z, x), and the kernel
phi(x)'phi(x') agrees with k where one of its arguments is a landmark. A pass over the rows keeps
G = Phi'W Phi, of m x m, and Phi'W [y, 1]; the rest is ridge regression on phi.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dtrsm

from .._compute.arrays import (
    EPS,
    TINY,
    Array,
    Indices,
    fixed_sample,
    row_blocks,
    rows_per_block,
    weighted_mean,
)
from .._compute.threads import lapack_for
from .._rows.merging import GivenRows, merged_block, observations
from .._rows.rows import ArrayRows, Block, Rows
from .cholesky import factor
from .landmarks import Features, features, whitened_late
from .nystrom_model import NystromModel, jackknife_sample, solve_nystrom
from .spectrum import eigh, mean_shift
from .sums import Sums, summed

if TYPE_CHECKING:
    from .._geometry.space import Space

# Number of rows per landmark from which it pays off to find out whether whitening may come late.
LATE_ROWS = 8

# A function that returns the landmarks for a bandwidth.
Choose = Callable[[float], Array]


# Number of observations of equal rows that are processed at a time.
OBSERVATIONS = 8192


@dataclass(frozen=True)
class Observed:
    """Replicates as given, and how much of their weight is removed with one observation."""

    rows: Rows
    leaving: Callable[[Array], Array]


@dataclass(frozen=True)
class NystromSpectrum:
    """Criteria for every lambda and target; `loo` takes another pass over the rows.

    It leaves out whole rows, or single observations if there are replicates (`observed`).
    """

    rows: Rows
    phi: Features
    sums: Sums
    centred: bool
    observed: Observed | None = None

    @cached_property
    def eigen(self) -> tuple[Array, Array]:
        """Eigenvalues s and eigenvectors V of G."""
        s, V = eigh(self.sums.G)
        return np.maximum(s, 0.0), V

    @cached_property
    def _energies(self) -> tuple[Array, Array]:
        """Squared coordinates of W^(1/2) y along the left vectors of Phi, and the rest of y'Wy."""
        s, V = self.eigen
        # Smaller eigenvalues are rounding errors, and so is the part of y along their vectors.
        some = s > len(s) * EPS * s.max(initial=0.0)
        # Divided before squares are taken, which could overflow.
        c2 = np.square((V.T @ self.sums.B[:, :-1]) / np.sqrt(np.where(some, s, np.inf))[:, None])
        return c2, np.maximum(self.sums.yy - c2.sum(axis=0), 0.0)

    def gcv(self, lams: Array) -> Array:
        """Generalised cross-validation, n |b - H b|^2 / (n - tr H)^2, (lambdas, targets)."""
        if len(lams) == 1 and lams[0] > 0:
            with suppress(LinAlgError):
                return self._gcv_at(float(lams[0]))[None]
        n, lam, (s, _), (c2, rest) = self.sums.n, lams[:, None], self.eigen, self._energies
        R = 1.0 / (s + lam)
        left = ((R * lam).sum(axis=1) + (n - len(s)))[:, None]
        return n * ((R * lam / left) ** 2 @ c2 + rest / left / left)

    def _gcv_at(self, lam: float) -> Array:
        """GCV for one lambda by a Cholesky factor, which is cheaper than eigenvectors."""
        n, b = self.sums.n, self.sums.B[:, :-1]
        A = factor(self.sums.G.copy(), lam)
        beta = A.solve(b)
        left = self.sums.yy - np.einsum("ij,ij->j", beta, b + lam * beta)
        trace = lam * A.inverse_diagonal().sum() + (n - len(b))
        return n * np.maximum(left, 0.0) / trace**2

    def mml(self, lams: Array) -> Array:
        """The sum n log(y'A^-1 y / n) + log |A|, A = Phi Phi' + lambda W^-1, (lambdas, targets)."""
        n, lam, (s, _), (c2, rest) = self.sums.n, lams[:, None], self.eigen, self._energies
        fit = (1.0 / (s + lam)) @ c2 + rest / lam
        log_det = np.log(s + lam).sum(axis=1) + (n - len(s)) * np.log(lams) - self.sums.log_weight
        fit = np.maximum(fit, TINY)  # of a constant target
        return n * np.log(fit / n) + log_det[:, None]

    def loo(self, lams: Array) -> Array:
        """Weighted mean of the squared leave-one-out residuals, of shape (lambdas, targets)."""
        V, R = self._resolvents(lams)
        T = dtrsm(1.0, self.phi.L, V, lower=1, trans_a=1)
        weight = self.sums.weight if self.centred else np.inf
        errors = _LooErrors(self.phi, self.sums.mean, weight, T, V.T @ self.sums.B, R)
        rows = self.rows
        if self.observed is not None:
            errors, rows = replace(errors, leaving=self.observed.leaving), self.observed.rows
        return rows.total(errors) / self.sums.weight

    def _resolvents(self, lams: Array) -> tuple[Array, Array]:
        """V and, for each lambda, the diagonal R in (G + lambda I)^-1 = V R V'."""
        if len(lams) == 1 and lams[0] > 0:
            with suppress(LinAlgError), lapack_for(len(self.sums.G)):
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
    weight: float  # of all rows; infinite if the mean does not change
    T: Array  # L^-T V, maps rows k to rows of V'phi
    a: Array  # V'B; the last column belongs to a target of ones
    R: Array  # (G + lambda I)^-1 = V R V', one row for each lambda
    leaving: Callable[[Array], Array] | None = None  # weights removed; None for whole rows

    def __call__(self, X: Array, y: Array, w: Array | None) -> Array:
        total = np.zeros((len(self.R), y.shape[1]))
        if self.leaving is None:
            X, y, w = merged_block(X, y, w)
            for rows in row_blocks(len(X), max(rows_per_block(len(self.T)), 1024)):
                total += self._of_rows(X[rows], slice(None), y[rows], w[rows], w[rows])
            return total
        for some in row_blocks(len(X), OBSERVATIONS):
            Z, group, T, v = observations(X[some], y[some], None if w is None else w[some])
            u = self.leaving(v)
            for rows in row_blocks(len(Z), max(rows_per_block(len(self.T)), 1024)):
                of = slice(*np.searchsorted(group, (rows.start, rows.stop)))
                total += self._of_rows(Z[rows], group[of] - rows.start, T[of], v[of], u[of])
        return total

    def _of_rows(self, X: Array, of: Indices | slice, y: Array, w: Array, leaves: Array) -> Array:
        """Errors of observations `of` some distinct rows X, with targets y and weights w."""
        K, left = self.phi.kernel(X), y - self.mean
        shift = mean_shift(left, leaves, self.weight)
        fit = (K @ self._coef).reshape(len(K), len(self.R), -1)[of]
        E = left[:, None] - fit[..., :-1] + shift[:, None] * (1.0 - fit[..., -1:])
        E /= np.maximum(1.0 - self._leverages(K, of, leaves), EPS)[:, :, None]
        return np.einsum("i,ilt,ilt->lt", w, E, E)

    @cached_property
    def _coef(self) -> Array:
        """Coefficients of the kernels for each lambda and target, side by side."""
        return self.T @ (self.R.T[:, :, None] * self.a[:, None, :]).reshape(len(self.a), -1)

    def _leverages(self, K: Array, of: Indices | slice, w: Array) -> Array:
        """Leverages of observations for each lambda; the few near one in double precision."""
        if self.phi.early != 0:
            return w[:, None] * (np.square(K @ self.T) @ self.R.T)[of]
        T, R, unit = self._single
        P = K.astype(np.float32) @ T
        leverages = (w * unit)[:, None] * (np.square(P, out=P) @ R.T)[of]
        large = leverages.max(axis=1) > 0.3
        leverages[large] = w[large, None] * (np.square(K[of][large] @ self.T) @ self.R.T)
        return leverages

    @cached_property
    def _single(self) -> tuple[Any, Any, float]:
        """T and R in single precision; R is scaled so that it does not overflow."""
        unit = float(self.R.max())
        return self.T.astype(np.float32), (self.R / unit).astype(np.float32), unit


@dataclass
class Nystrom:
    """Passes over the rows at one or more bandwidths; the last sums are cached.

    `choose` returns the landmarks for a bandwidth, `sample` is a part of the rows in memory,
    `given` the rows as they were given, if these were merged, and `observed` replicates.
    """

    rows: Rows
    kind: str  # of the intercept, one of INTERCEPTS
    sample: Block
    space: Space
    choose: Choose
    given: GivenRows | None = None
    observed: Observed | None = None
    _last: NystromSpectrum | None = None

    def spectrum(self, sigma: float) -> NystromSpectrum:
        """Sums and criteria at one bandwidth."""
        if self._last is None or self._last.phi.sigma != sigma:
            phi = features(self.choose(sigma), sigma, self.space)
            if self.rows.n >= LATE_ROWS * len(phi.Z):
                X = self.sample[0]
                phi = whitened_late(phi, X[fixed_sample(len(X), len(phi.Z))], self.rows.n)
            centred = self.kind != "none"
            sums = summed(self.rows, phi, self._shift, centred=centred)
            self._last = NystromSpectrum(self.rows, phi, sums, centred)
        return self._last

    def comparing(self, sigma: float) -> NystromSpectrum:
        """Criteria at one bandwidth, with single observations left out if there are replicates."""
        return replace(self.spectrum(sigma), observed=self.observed)

    @property
    def _shift(self) -> Array:
        """Shift of y for summation: about its mean, so that no digits are lost."""
        _, y, w = self.sample
        v = np.ones(len(y)) if w is None else w
        return weighted_mean(y, v) if self.kind != "none" else np.zeros(y.shape[1])

    def of_rows(self, block: Block, choose: Choose) -> Nystrom:
        """Solver for some of the rows, centred at their own mean if this solver is centred."""
        rows = ArrayRows(*block)
        observed = self.observed and replace(self.observed, rows=rows)
        parts: Any = {"rows": rows, "sample": block, "choose": choose, "observed": observed}
        return replace(self, **parts, given=None, _last=None)

    def solve(self, sigma: float, lams: Array) -> tuple[Array, NystromModel]:
        """Landmarks and model at one bandwidth, with one penalty or one for each target."""
        at = self.spectrum(sigma)
        sample = jackknife_sample(self.sample, self.rows, self.given)
        options: Any = {"sample": sample, "rows": self.rows, "given": self.given}
        return at.phi.Z, solve_nystrom(at.phi, at.sums, lams, self.kind, **options)
