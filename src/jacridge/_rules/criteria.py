"""Leave-one-out, generalised cross-validation and marginal likelihood of a factored system.

Rows are merged. A row is left out with all of its weight, and counts as one, unless `replicates`
are given: then single observations are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import LinAlgError

from .._compute.arrays import Array
from .._compute.threads import blas_for
from .._solvers.spectrum import mean_shift
from .._solvers.systems import Solvable, clustered_system
from .searches import in_units_of

if TYPE_CHECKING:
    from .._geometry.space import Pairs
    from .._rows.merging import Replicates

# Rows whose leave-one-out errors are compared, where there are more.
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
    are the weights in the mean of squared errors, if they are not those of the fit. With `last`,
    only that many rows at the end are averaged, which costs little more than the factorisation.
    With `replicates`, single observations are left out, not whole rows; that needs the penalty
    `lam`.
    """
    m = len(y) if last is None else min(last, len(y))
    both = A.solve(np.column_stack([y, np.ones(len(y))]))[-m:]
    diagonal = A.inverse_diagonal() if m == len(y) else A.last_inverse_diagonal(m)
    E, ones = both[:, :-1] / diagonal[:, None], both[:, -1] / diagonal * centred
    v = (w if counts is None else counts)[-m:]
    if replicates is None:
        errors = np.square(E + mean_shift(y, w)[-m:] * ones[:, None])
    else:
        last_rows = np.arange(len(y) - m, len(y))
        left = (lam / w)[-m:] * diagonal
        observed = replicates.some(last_rows)
        errors = observed.squared_errors(E, ones, left, y[-m:], w[-m:], total=w.sum())
    return np.asarray(v @ errors / v.sum())


def gcv(A: Solvable, y: Array, w: Array, **_: Any) -> Array:
    """Generalised cross-validation, n y'A^-2 y / (tr A^-1)^2, for each column of y."""
    c = A.solve(y)
    c /= (A.inverse_diagonal() / w).sum()  # before squares are taken, which could overflow
    return np.asarray(len(w) * (c**2 / w[:, None]).sum(axis=0))


def mml(A: Solvable, y: Array, w: Array, **_: Any) -> Array:
    """Minus twice the profiled log marginal likelihood: n log s2 + log |A|, s2 = y'A^-1 y / n."""
    n = len(w)
    with np.errstate(divide="ignore"):  # a target of zeros: minus infinity
        fit = n * np.log(np.einsum("ij,ij->j", y, A.solve(y)) / n)
    return np.asarray(fit + A.log_determinant())


CRITERIA: dict[str, Callable[..., Array]] = {"loo": loo, "gcv": gcv, "mml": mml}


def criterion_at(
    name: str,
    pairs: Pairs,
    sigma: float,
    lam: float,
    y: Array,
    w: Array,
    *,
    scale: Array | None = None,
    **options: Any,
) -> float:
    """A criterion at one point, the mean over targets; infinite where A cannot be factored.

    Several targets are taken in units of their `scale`, by default the mean squares of y.
    """
    try:
        with blas_for(len(y)):
            A = clustered_system(pairs, sigma, lam / w)
            values = CRITERIA[name](A, y, w, lam=lam, **options)
    except LinAlgError:
        return np.inf
    if y.shape[1] > 1:
        values = in_units_of((y**2).mean(axis=0) if scale is None else scale, values, name)
    return float(values.mean())
