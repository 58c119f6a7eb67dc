"""Preconditioned conjugate gradients on the full kernel, which is never held in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError

from .._compute.arrays import TINY, Array, row_blocks, rows_per_block
from .._compute.progress import tell
from .._compute.threads import in_threads, lapack_for, one_blas_thread, processors
from .._compute.warnings import warn
from .cholesky import factor
from .landmarks import augmented_left, augmented_right, low_rank

if TYPE_CHECKING:
    from .._geometry.space import Space
    from .exact import Centred

logger = logging.getLogger("jacridge")

# Relative residual at which the iteration stops, and number of iterations after which it gives up.
TOLERANCE = 1e-7
ITERATIONS = 500

# A round ends after the residual has been reduced by this factor, or after ROUND_ITERATIONS, if a
# more precise product follows. The residual is then computed again in double precision.
ROUND = 1e-4
ROUND_ITERATIONS = 50

# Single precision is tried from this many rows on, and up to this squared distance from their
# centre, in bandwidths.
SINGLE_ROWS = 2000
SINGLE = 1e5

# K(X[rows], X[rows.start:]) for some rows; and (K + lam W^-1) @ V.
KernelRows = Callable[[slice], npt.NDArray[Any]]
Product = Callable[[Array], Array]


def _needs_factor(name: str) -> Any:
    """Property that raises an error, because it needs a factor of the kernel matrix."""

    def refuse(self: PcgModel) -> Any:
        raise AttributeError(
            f"`{name}` needs a factor of the kernel matrix, which solver='pcg' does not make. "
            "Use solver='exact' or 'nystrom' for deviations, intervals and leave-one-out."
        )

    return property(refuse)


@dataclass(frozen=True)
class PcgModel:
    """A solved system without a factor: only its solution is known."""

    dual_coef: Array
    intercept: Array
    iterations: int
    residual: float
    w: Array | None = None  # weights of the rows; older versions did not save them

    deviations = _needs_factor("return_std")
    loo_residuals = _needs_factor("loo_residuals_")
    jackknife = _needs_factor("predict_interval")
    held_out = _needs_factor("predict_proba")
    held_out_singly = held_out
    known_rows = _needs_factor("diagnose")
    degrees_of_freedom = _needs_factor("diagnose")
    influences = _needs_factor("effects")

    def state(self) -> dict[str, Any]:
        """Iterations, residual and weights; the rest are public attributes of the estimator."""
        state = {"iterations": self.iterations, "residual": self.residual}
        return state if self.w is None else {**state, "w": self.w}

    @staticmethod
    def restored(at: Any, state: dict[str, Any]) -> PcgModel:
        """The model of a fitted function from its state."""
        return PcgModel(at.dual_coef, at.intercept, **state)


def solve_pcg(
    X: Array,
    rows: Centred,
    sigma: float,
    lam: float,
    kind: str,
    *,
    space: Space,
    n_landmarks: int,
    rng: np.random.Generator,
) -> PcgModel:
    """Solve (K + lam W^-1) c = y - b to TOLERANCE, with memory O(n m) for m landmarks.

    With S = W^(1/2) K W^(1/2) and K close to F F', (S + lam I) z = W^(1/2) (y - b) is
    preconditioned by W^(1/2) F F' W^(1/2) + lam I, whose inverse takes an m x m factor. For a free
    intercept, a target of ones is solved for first.
    """
    root = np.sqrt(rows.w)[:, None]
    F = low_rank(X, n_landmarks, sigma, space, rng)[0]
    F *= root

    def product(kernel: KernelRows) -> Product:
        return lambda V: np.asarray(root * symmetric_product(kernel, root * V) + lam * V)

    products = [product(kernel) for kernel in kernels(X, sigma, space)]
    b, used, precondition = np.zeros(len(rows.mean)), 0, preconditioner(F, lam)
    if kind == "free":
        U, used, _ = refined(products, precondition, root)
        weights = (root * U)[:, 0]
        total = weights.sum()
        b = weights @ rows.y / total if total > 0 else b
    Z, iterations, residual = refined(products, precondition, root * (rows.y - b))
    if not residual <= TOLERANCE:
        warn(
            f"Conjugate gradients stopped after {iterations} iterations at a relative residual of "
            f"{residual:.2g}, tolerance {TOLERANCE:g}. Give more `n_landmarks` than "
            f"{n_landmarks}, or a larger `alpha` than {lam:g}."
        )
    return PcgModel(root * Z, rows.mean + b, used + iterations, residual, rows.w)


def kernels(X: Array, sigma: float, space: Space) -> list[KernelRows]:
    """Functions that compute rows of the kernel, in increasing precision; the last one is exact."""

    def double(rows: slice) -> Array:
        return space.block(X[rows], X[rows.start :], sigma)

    if not space.distance.is_euclidean or len(X) < SINGLE_ROWS:
        return [double]
    centre = X.mean(axis=0)
    left, right = augmented_left(X, centre, sigma), augmented_right(X, centre, sigma)
    if not right[-1].max() < SINGLE:
        return [double]
    left_single = left.astype(np.float32)
    right_single = (space.kernel.unit * right).astype(np.float32)

    def single(rows: slice) -> npt.NDArray[np.float32]:
        gaps = left_single[rows] @ right_single[:, rows.start :]
        return space.kernel.of_expanded(gaps)  # type: ignore[arg-type, return-value]

    return [single, double]


def preconditioner(F: Array, lam: float) -> Product:
    """Function that applies (F F' + lam I)^-1, by Woodbury's identity."""
    with lapack_for(F.shape[1]):
        FF = F.T @ F
    try:
        inner = factor(np.ascontiguousarray(FF), lam)
    except LinAlgError as error:
        raise LinAlgError(
            f"`alpha` must be larger than {lam:g} for solver='pcg', because K + lambda I is "
            "singular to rounding. Give a larger `alpha`, or solver='exact'."
        ) from error

    def apply(V: Array) -> Array:
        # The caller checks for overflow. One BLAS thread, because idle BLAS threads wait for work
        # and take processors from our own threads, which multiply by the kernel in between.
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((V - F @ inner.solve(F.T @ V)) / lam)

    return apply


def refined(
    products: Sequence[Product], precondition: Product, B: Array
) -> tuple[Array, int, float]:
    """Solution for all columns of B, number of iterations, largest relative residual.

    Each round of iterations uses the first product to solve for the current residual, which is
    computed with the last product, the exact one. If a round reduces the residual by less than a
    factor of ten, the next product is used.
    """
    products, size = list(products), np.maximum(np.linalg.norm(B, axis=0), TINY)
    Z, left, total, residual = np.zeros_like(B), B, 0, 1.0 if B.any() else 0.0
    while residual > TOLERANCE and total < ITERATIONS:
        goal = max(TOLERANCE / 2, ROUND * residual if len(products) > 1 else 0.0)
        most = min(ITERATIONS - total, ROUND_ITERATIONS if len(products) > 1 else ITERATIONS)
        try:
            step, done = conjugate_gradients(
                products[0], precondition, left, size, goal=goal, most=most
            )
        except LinAlgError:
            if len(products) == 1:
                raise
            products.pop(0)
            continue
        total += done
        rest = left - products[-1](step)
        now = _relative(rest, size)
        if len(products) > 1 and now > residual / 10:
            products.pop(0)
        if now < residual:
            Z, left, residual = Z + step, rest, now
    return Z, total, residual


def conjugate_gradients(
    product: Product, precondition: Product, B: Array, size: Array, *, goal: float, most: int
) -> tuple[Array, int]:
    """Solution until all columns of the residual are below goal times size, and iterations."""
    Z, R = np.zeros_like(B), B.copy()
    Q = precondition(R)
    P, slope = Q, np.einsum("ij,ij->j", R, Q)
    done, residual = 0, np.inf
    while residual > goal and done < most:
        with np.errstate(over="ignore", invalid="ignore"):
            AP = product(P) if np.isfinite(P).all() else np.full_like(P, np.nan)
            curvature = np.einsum("ij,ij->j", P, AP)
        if not ((curvature >= 0) & np.isfinite(curvature)).all():
            raise LinAlgError(
                "K + lambda I must be positive definite for solver='pcg', but is not to working "
                "precision. Give a larger `alpha`, or solver='exact'."
            )
        step = np.divide(slope, curvature, out=np.zeros_like(slope), where=curvature > TINY)
        Z, R = Z + step * P, R - step * AP
        Q = precondition(R)
        last, slope = slope, np.einsum("ij,ij->j", R, Q)
        # A column that is already solved has no slope left.
        P = Q + np.divide(slope, last, out=np.zeros_like(slope), where=last > TINY) * P
        done, residual = done + 1, _relative(R, size)
        logger.info("pcg: iteration %d, relative residual %.2g", done, residual)
        _tell(residual)
    return Z, done


def _relative(R: Array, size: Array) -> float:
    """Largest norm of a column in units of its size; infinite if it overflows."""
    with np.errstate(over="ignore"):
        return float(np.linalg.norm(R / size, axis=0).max())


def _tell(residual: float) -> None:
    """Report how many of the required digits are reached, in tenths."""
    wanted, found = (round(-10 * np.log10(max(size, 1e-300))) for size in (TOLERANCE, residual))
    tell(min(max(found, 0), wanted), wanted, "tenths of digits, conjugate gradients")


def symmetric_product(kernel: KernelRows, V: Array) -> Array:
    """K @ V without K: each block of rows is computed from its diagonal on, for both triangles.

    Products have the precision of the kernel; sums are in double precision.
    """
    n = len(V)
    blocks = row_blocks(n, rows_per_block(n))
    with np.errstate(over="ignore"):  # the residual in double precision shows an overflow
        low = V.astype(np.float32)

    def part(mine: list[slice]) -> Array:
        total = np.zeros_like(V)
        for rows in mine:
            K = kernel(rows)
            U = low if K.dtype == np.float32 else V
            total[rows] += K @ U[rows.start :]
            total[rows.stop :] += K[:, len(K) :].T @ U[rows]
        return total

    if len(blocks) == 1:  # starting threads would take longer than the work
        return part(blocks)
    # Blocks are assigned in turn, because the first ones are the longest.
    count = processors()
    return np.asarray(sum(in_threads(part, [blocks[i::count] for i in range(count)])))
