r"""Two criteria that choose bandwidth and penalty from X alone (arXiv 2505.11006).

Both are functions of a kernel matrix K, of shape (n, n), and :math:`B = (K + \lambda I)^{-1}`. One
eigendecomposition of K, the costly part, serves all penalties; a single one costs a Cholesky
factorisation. Weights w of rows enter as :math:`W^{1/2} K W^{1/2}`, which makes a weight of two the
same as two equal rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from .._compute.arrays import EPS, Array
from .._compute.threads import blas_for
from .searches import Surface, check_solved, downhill

if TYPE_CHECKING:
    from .training import TrainingData

# The grid of bandwidths uses this many rows; the steps around its best point use more.
GRID_ROWS, STEP_ROWS = 300, 1000
GRID_POINTS = 15

# Values of a criterion for all penalties at one bandwidth.
Line = Callable[[float, Array], Array]


def ssmm(K: Array, K_val: Array, n: float, lams: Array) -> Array:
    r"""Distance of the smoother's second moment from a multiple of the identity, for each penalty.

    .. math:: \left\| \frac{S'S}{n_\mathrm{val}} - \frac{I}{n} \right\|_F, \qquad
              S = K_\mathrm{val} (K + \lambda I)^{-1}

    S maps targets to predictions at new rows. With :math:`K = U \Lambda U'` the norm is that of
    :math:`D G D / n_\mathrm{val} - I / n`, where :math:`D = (\Lambda + \lambda I)^{-1}` and
    :math:`G = (K_\mathrm{val} U)' K_\mathrm{val} U`.

    Parameters
    ----------
    K : kernel of the rows, of shape (m, m)
    K_val : kernel of new rows and the rows, of shape (n_val, m)
    n : number of rows before equal ones were merged
    lams : ridge penalties, of shape (k,)

    Returns
    -------
    ndarray of shape (k,), infinite where K + lam I is singular
    """
    if (A := _factor_of_one(K, lams)) is not None:
        S = cho_solve(A, K_val.T).T
        M = S.T @ S / len(K_val)
        M[np.diag_indices(len(M))] -= 1 / n
        return np.array([np.linalg.norm(M)])
    values, U = eigh(K)
    P = K_val @ U
    G = P.T @ P / len(K_val)
    norms = np.full(len(lams), np.inf)
    for i, lam in enumerate(lams):
        if _is_regular(values + lam):
            d = 1 / (values + lam)
            M = G * d[:, None] * d
            M[np.diag_indices(len(d))] -= 1 / n
            norms[i] = np.linalg.norm(M)
    return norms


def loo_without_y(K: Array, lams: Array) -> Array:
    r"""Size of the matrix of leave-one-out errors, for each penalty.

    .. math:: \left\| B \, \operatorname{diag}(B)^{-2} B \right\|_F, \qquad
              B = (K + \lambda I)^{-1}

    The leave-one-out residuals are :math:`\operatorname{diag}(B)^{-1} B y`, so the sum of their
    squares is :math:`y' B \operatorname{diag}(B)^{-2} B y`; the norm drops y from it. It is
    never below :math:`\sqrt n`, its value for a diagonal B: the trace of the matrix is
    :math:`\sum_{ij} (B_{ij} / B_{jj})^2 \ge n`. So it falls towards narrow kernels and towards
    large penalties, and has no useful minimum. For very wide kernels, too, it is close to that:
    about :math:`(1 + 1.5 / n) \sqrt n` for a constant K.

    Parameters
    ----------
    K : kernel of the rows, of shape (n, n)
    lams : ridge penalties, of shape (k,)

    Returns
    -------
    ndarray of shape (k,), infinite where K + lam I is singular
    """
    if (A := _factor_of_one(K, lams)) is not None:
        B = cho_solve(A, np.eye(len(K)))
        R = B / np.diag(B)[:, None]
        return np.array([np.linalg.norm(R @ R.T)])
    values, U = eigh(K)
    norms = np.full(len(lams), np.inf)
    for i, lam in enumerate(lams):
        if _is_regular(values + lam):
            # Both B and diag(B) scale alike, so that only ratios of eigenvalues count.
            d = (values[0] + lam) / (values + lam)
            b = np.square(U) @ d
            # With R = diag(b)^-1 B the matrix is R'R, which has the same norm as R R'.
            R = (U / b[:, None]) * d
            norms[i] = np.linalg.norm(R @ R.T)
    return norms


def _factor_of_one(K: Array, lams: Array) -> tuple[Array, bool] | None:
    """Cholesky factor of K + lam I for a single penalty; None if it is near singular.

    No eigenvalue of a positive definite K exceeds its trace. Kernels of given distances may be
    indefinite.
    """
    if len(lams) > 1 or lams[0] <= 2 * len(K) * EPS * np.trace(K):
        return None
    A = K.copy()
    A[np.diag_indices(len(A))] += lams[0]
    try:
        return cho_factor(A, lower=True, overwrite_a=True)
    except LinAlgError:
        return None


def _is_regular(values: Array) -> bool:
    """Whether the smallest of these eigenvalues, in increasing order, exceeds rounding error."""
    return bool(values[0] > len(values) * EPS * values[-1])


def validation_rows(X: Array, w: Array, n_rows: int, rng: np.random.Generator) -> Array:
    """Rows drawn from the normal distribution with the mean and covariance of X, (n_rows, p).

    X has the shape (n, p), the weights w the shape (n,). The order of the rows does not matter.
    """
    share = w / w.sum()
    mean = share @ X
    centred = X - mean
    values, V = eigh(centred.T @ (centred * share[:, None]))
    # Smaller eigenvalues are rounding error; their roots would add directions that X lacks.
    values = np.where(values > 10 * len(values) * EPS * values.max(), values, 0.0)
    root = V * np.sqrt(values) @ V.T
    return mean + rng.standard_normal((n_rows, X.shape[1])) @ root


def ssmm_line(data: TrainingData) -> Line:
    """SSMM at any bandwidth, with as many new rows as there are distinct rows."""
    if data.space.distance.is_curved or data.space.distance.is_given:
        raise ValueError(
            f'The rule `ssmm` needs features, got metric="{data.space.distance.name}": it draws '
            "new rows from a normal distribution with their covariance. Use another rule."
        )
    X_val = validation_rows(data.X, data.w, len(data.w), data.rng)

    def line(sigma: float, lams: Array) -> Array:
        K_val = data.space.block(X_val, data.X, sigma) * np.sqrt(data.w)
        return ssmm(_weighted_kernel(data, sigma), K_val, data.n, lams)

    return line


def loo_without_y_line(data: TrainingData) -> Line:
    """Leave-one-out without y at any bandwidth."""
    return lambda sigma, lams: loo_without_y(_weighted_kernel(data, sigma), lams)


def _weighted_kernel(data: TrainingData, sigma: float) -> Array:
    root = np.sqrt(data.w)
    return data.space.block(data.X, data.X, sigma) * root[:, None] * root


def minimise_without_y(
    criterion: Callable[[TrainingData], Line], data: TrainingData
) -> tuple[float, float]:
    """Bandwidth and penalty at the minimum of a criterion; the penalty is kept if it is given.

    A grid of bandwidths is tried on few rows, then steps from the best one on more rows, at most
    1000. The bandwidth found is rescaled to all rows; the penalty is not.
    """
    part = data.sample(GRID_ROWS)
    with blas_for(len(part.w)):
        sigma, lam = _on_a_grid(criterion(part), part)
    more = data.sample(STEP_ROWS)
    if more.n > part.n:
        with blas_for(len(more.w)):
            sigma, lam = _by_steps(criterion(more), sigma * more.carried_from(part), data)
    return sigma * data.carried_from(more), lam


def _on_a_grid(line: Line, data: TrainingData) -> tuple[float, float]:
    sigmas = np.geomspace(data.search_spacing / 4, data.l_max, GRID_POINTS)
    lams = data.penalty.tried()
    values = np.array([line(sigma, lams) for sigma in sigmas])
    sigma, lam = Surface(sigmas, lams, values[..., None]).best()
    return sigma, float(lam[0])


def _by_steps(line: Line, start: float, data: TrainingData) -> tuple[float, float]:
    """Walk downhill from a bandwidth; each bandwidth has its best penalty."""
    lams, seen = data.penalty.tried(), dict[float, Array]()

    def lowest(sigma: float) -> float:
        seen[sigma] = line(sigma, lams)
        return float(seen[sigma].min())

    first = lowest(start)
    check_solved(np.array([start]), np.array([first]))
    sigma = downhill(lowest, start, np.log(2) / 2, first)
    nearest = min(seen, key=lambda s: abs(np.log(s / sigma)))
    values = seen[nearest][None, :, None]
    return sigma, float(Surface(np.array([nearest]), lams, values).best()[1][0])
