"""Leave-one-out, generalised cross-validation and marginal likelihood of a factored system.

Equal rows are merged. A merged row is left out as a whole and counts once, unless `replicates` are
given: then single observations are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import LinAlgError

from .._compute.arrays import Array
from .._compute.threads import blas_for
from .._solvers.spectrum import mean_shift
from .._solvers.systems import Solvable, clustered_system
from .searches import Surface

if TYPE_CHECKING:
    from .._geometry.space import Pairs
    from .._rows.merging import Replicates
    from .._solvers.spectrum import Spectral

# Leave-one-out errors of at most this many rows are compared.
LEFT_OUT = 1000


def loo(
    A: Solvable,
    y: Array,
    w: Array,
    *,
    centred: bool = True,
    counts: Array | None = None,
    last: int | None = None,
    replicates: Replicates | None = None,
    lam: float = np.nan,
) -> Array:
    """Weighted mean of the squared leave-one-out residuals, for each column of y.

    If `centred`, y is centred at its mean, which changes as rows are left out; `counts`
    are the weights in the mean of squared errors, if they differ from the weights of the fit. With
    `last`, only that many rows at the end are averaged, if there are so many, and the diagonal of
    the inverse is computed in single precision: this takes less time than the factorisation and
    changes the mean by less than 1e-6 of its value. With `replicates`, single observations are left
    out instead of whole rows; this needs the penalty `lam`.
    """
    rough = last is not None and len(y) >= last
    m = last if last is not None and rough else len(y)
    last_rows = np.arange(len(y) - m, len(y))
    both = A.solve(np.column_stack([y, np.ones(len(y))]))[-m:]
    diagonal = A.inverse_diagonal(last_rows, rough=rough)
    E, ones = both[:, :-1] / diagonal[:, None], both[:, -1:] / diagonal[:, None] * centred
    v = (w if counts is None else counts)[-m:]
    if replicates is None:
        errors = np.square(E + mean_shift(y, w)[-m:] * ones)
    else:
        left = ((lam / w)[-m:] * diagonal)[:, None]
        observed = replicates.some(last_rows)
        errors = observed.squared_errors(E, ones, left, y[-m:], w[-m:], total=w.sum())
    return v @ errors / v.sum()


def gcv(A: Solvable, y: Array, w: Array, **_: Any) -> Array:
    """Generalised cross-validation, n y'A^-2 y / (tr A^-1)^2, for each column of y."""
    c = A.solve(y)
    c /= (A.inverse_diagonal() / w).sum()  # before squares are taken, which could overflow
    return len(w) * (c**2 / w[:, None]).sum(axis=0)


def mml(A: Solvable, y: Array, w: Array, **_: Any) -> Array:
    """Minus twice the profiled log marginal likelihood: n log s2 + log |A|, s2 = y'A^-1 y / n."""
    n = len(w)
    with np.errstate(divide="ignore"):  # a target of zeros: minus infinity
        fit = n * np.log(np.einsum("ij,ij->j", y, A.solve(y)) / n)
    return fit + A.log_determinant()


@dataclass(frozen=True)
class Criterion:
    """A criterion for bandwidth and penalty, to be minimised.

    Attributes
    ----------
    name : its name in `CRITERIA`
    of_system : values for each column of y, from one factored system
    of_spectrum : values of shape (lambdas, targets), from one eigendecomposition
    has_unit : whether it is a mean square, which depends on the scale of the target
    """

    name: str
    of_system: Callable[..., Array]
    of_spectrum: Callable[[Spectral, Array], Array]
    has_unit: bool = True

    def in_units_of(self, scale: Array, values: Array) -> Array:
        """Values in units of each target's mean square; zero for a target of zeros.

        Targets of different scale then count equally. If the scale has one entry, the values of
        all targets are added up: values (..., targets) become (..., 1).
        """
        if len(scale) == 1:
            values = values.sum(axis=-1, keepdims=True)
        some = scale > 0
        return np.where(some, values / np.where(some, scale, 1.0) if self.has_unit else values, 0.0)

    def at(
        self,
        pairs: Pairs,
        sigma: float,
        lam: float,
        y: Array,
        w: Array,
        *,
        scale: Array | None = None,
        **options: Any,
    ) -> float:
        """The value at one point, averaged over targets; infinite where A cannot be factored.

        Several targets are measured in units of their `scale`, by default the mean squares of y.
        """
        try:
            with blas_for(len(y)):
                A = clustered_system(pairs, sigma, lam / w)
                values = self.of_system(A, y, w, lam=lam, **options)
        except LinAlgError:
            return np.inf
        if y.shape[1] > 1:
            values = self.in_units_of((y**2).mean(axis=0) if scale is None else scale, values)
        return float(values.mean())

    def surface(
        self,
        spectra: Callable[[float], Spectral],
        scale: Array,
        sigmas: Array,
        lams: Array,
        *,
        each: Callable[..., Iterable[Array]] = map,
    ) -> Surface:
        """The values on a grid, from one eigendecomposition for each sigma.

        `each` is the `map` that goes over the bandwidths.
        """

        def line(sigma: float) -> Array:
            with np.errstate(divide="ignore", invalid="ignore"):  # by a penalty of zero
                return self.in_units_of(scale, self.of_spectrum(spectra(sigma), lams))

        values = np.array(list(each(line, sigmas.tolist())))
        return Surface(sigmas, lams, np.where(np.isfinite(values), values, np.inf))


LOO = Criterion("loo", loo, lambda S, lams: S.loo(lams))
GCV = Criterion("gcv", gcv, lambda S, lams: S.gcv(lams))
MML = Criterion("mml", mml, lambda S, lams: S.mml(lams), has_unit=False)
CRITERIA = {criterion.name: criterion for criterion in (LOO, GCV, MML)}
