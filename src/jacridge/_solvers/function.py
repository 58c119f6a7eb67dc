"""A fitted function at rows as given: values, slopes, intervals, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .._compute.arrays import Array, Indices, fixed_sample, row_blocks, rows_per_block
from .._compute.threads import SMALL_ORDER, blas_for, for_blocks, in_threads, processors
from .exact import ExactModel
from .influence import DegreesOf, Influence, Noise, NoiseOf, even_noise
from .intervals import Scale, smallest, widened
from .nystrom_model import NystromModel
from .pcg import PcgModel

if TYPE_CHECKING:
    from .._geometry.maps import FeatureMap
    from .._geometry.space import Space
    from .model import Model

# Number of rows at which slopes are evaluated for feature importances.
IMPORTANCE_ROWS = 1000


@dataclass(frozen=True)
class FittedFunction:
    """b_0 + k(z, Z) c for k targets, where z is a row x after a map, with its standard errors.

    Attributes
    ----------
    space, sigma : the kernel
    Z : rows of the model, of shape (m, q)
    dual_coef : c, of shape (m, k)
    intercept : b_0, of shape (k,)
    solver : name of the solver
    lams : penalties, of shape (k,) or (1,)
    kind : kind of the intercept
    solved : the model from which standard errors are computed, or the arrays that restore it
    mapping : map of the features, from p to q, or None for none
    columns : columns of given distances that the kernel uses, or None for all
    Z_given : rows Z before the map, if they are training rows
    names : names of the p features
    """

    space: Space
    sigma: float
    Z: Array
    dual_coef: Array
    intercept: Array
    solver: str
    lams: Array
    kind: str
    solved: Model | dict[str, Any] = field(repr=False)
    mapping: FeatureMap | None = None
    columns: Indices | None = None
    Z_given: Array | None = None
    names: Sequence[str] = ()

    @cached_property
    def model(self) -> Model:
        """The solved model; if it was saved, an exact system is factored again."""
        if not isinstance(self.solved, dict):
            return self.solved
        return RESTORED[self.solver](self, self.solved)

    @property
    def keeps_rows(self) -> bool:
        """Whether the model is made of all training rows, and not of landmarks."""
        return "sample_X" not in self._state

    @property
    def _state(self) -> dict[str, Any]:
        """Arrays of the model; a saved model is not rebuilt for them."""
        return self.solved if isinstance(self.solved, dict) else self.solved.state()

    @property
    def influences(self) -> Sequence[Influence]:
        """How functionals depend on y, for the targets of each penalty."""
        return self.model.influences

    def portable(self, *, errors: bool) -> FittedFunction:
        """The function as arrays, for other processes; `errors` adds the arrays of the model."""
        return replace(self, solved=self.model.state() if errors else {}, Z_given=None)

    @property
    def targets(self) -> Sequence[str | None]:
        """Names of the targets; None for a single one."""
        k = len(self.intercept)
        return [None] if k == 1 else [f"y{t}" for t in range(k)]

    @property
    def is_smooth(self) -> bool:
        """Whether there is a slope everywhere, including at the rows of the model."""
        return self.space.kernel.is_smooth

    def refitted(self, fit: FittedFunction) -> FittedFunction:
        """Return `fit`; `ClassFunction` wraps it."""
        return fit

    def degrees(self, of: DegreesOf) -> list[float]:
        """Degrees of freedom of Student's t, for each target."""
        return [of(part) for part in self.influences for _ in part.s2]

    def check(self, X: Array) -> None:
        """Refuse rows whose distance to the rows of the model is not defined."""
        self.space.distance.check(X, new=True)

    def seen(self, X: Array) -> Array:
        """Rows as the kernel sees them."""
        if self.mapping is not None:
            return self.mapping(X)
        return X if self.columns is None else X[:, self.columns]

    def unmapped(self, Z: Array) -> Array:
        """Rows before the map; the model's own rows are returned as they were given."""
        if Z is self.Z and self.Z_given is not None:
            return self.Z_given
        return Z if self.mapping is None else self.mapping.inverse(Z)

    def training_rows(self) -> tuple[Array, Array]:
        """Features and weights of the training rows as given, or of a sample of streamed rows."""
        if self.Z_given is not None:
            return self.influences[0].training_rows(self.Z_given)
        X, w = self.influences[0].training_rows(self.Z)
        return self.unmapped(X), w

    def neighbours(self) -> Array:
        """Distinct training rows after the map; for a model with landmarks, those that it keeps."""
        return self._known_rows()[0]

    def _known_rows(self) -> tuple[Array, Array]:
        """The rows of `neighbours`, and their weights."""
        if self.keeps_rows:
            return self.Z, self._state.get("w", np.ones(len(self.Z)))
        X, _, w = self.model.known_rows(self.Z)
        return X, w

    def mean(self, X: Array) -> Array:
        """Predictions, of shape (n, k)."""
        return self._mean_seen(self.seen(X))

    def _mean_seen(self, seen: Array) -> Array:
        """Predictions for rows as the kernel sees them."""
        return self.intercept + self.space.product(seen, self.Z, self.dual_coef, self.sigma)

    def std(self, X: Array) -> Array:
        """Standard deviations of a Gaussian process with this kernel, of shape (n, k)."""
        found, seen = np.empty((len(X), len(self.intercept))), self.seen(X)
        for rows in row_blocks(len(X), rows_per_block(len(self.Z))):
            K = self.space.block(seen[rows], self.Z, self.sigma)
            found[rows] = self.model.deviations(K)
        return found

    def slopes(self, X: Array) -> Array:
        """Derivatives with respect to the features, of shape (n, k, p)."""
        J = self.space.slopes(self.seen(X), self.Z, self.dual_coef, self.sigma)
        return J if self.mapping is None else self.mapping.pulled_back(J, X)

    def importances(self, std: Array) -> Array:
        """Root mean squares of the slopes, times deviations `std` of the features, as shares."""
        X, w = self._known_rows()
        some = fixed_sample(len(X), IMPORTANCE_ROWS)
        J = self.slopes(self.unmapped(X)[some])
        J /= np.abs(J).max() or 1.0  # squares could overflow
        squares = np.average(np.square(J).mean(axis=1), axis=0, weights=w[some])
        moved = np.sqrt(squares) * (std / (std.max() or 1.0))
        return moved / moved.sum() if moved.any() else moved

    @cached_property
    def scale(self) -> Scale:
        """The scale of intervals."""
        jackknife = self.model.jackknife
        rows = jackknife.distinct(self.Z, self.space.distance)
        straight = None
        if self.mapping is not None and self.mapping.warp is not None:
            straight = self.mapping.straight
        return Scale(
            jackknife, rows, self.space, self.sigma, self._mean_seen, self.unmapped, straight
        )

    def interval(self, X: Array, coverage: float, *, adaptive: bool) -> tuple[Array, Array]:
        """Lower and upper ends of the jackknife+ interval, of shape (n, k) each."""
        X, size = self.seen(X), max(4 * self.model.jackknife.residuals.size, len(self.Z))
        lower, upper = np.empty((2, len(X), len(self.intercept)))
        scaled = self.scale.of(X, coverage) if adaptive else self.scale.even(X, coverage)
        most, _ = scaled.followed(scaled.levels.max(initial=0.0))
        shifts = self.model.jackknife.shifts(most)

        def work(rows: Indices) -> None:
            near, ranks = scaled.followed(scaled.levels[rows[0]])
            K = self.space.block(X[rows], self.Z, self.sigma)
            changes = shifts.some(np.searchsorted(most, near))(K)
            left_out = (self.intercept + K @ self.dual_coef)[:, None, :] + changes
            wide = scaled.s[rows][:, None, :] * scaled.sizes[near]
            ends = -smallest(wide - left_out, ranks), smallest(wide + left_out, ranks)
            # Differences between the models must not narrow an interval outside of the data.
            lower[rows], upper[rows] = widened(*ends, scaled.least[rows]) if adaptive else ends

        in_threads(work, scaled.blocks(rows_per_block(size)), alone=len(X) <= SMALL_ORDER)
        return lower, upper

    def kernel(self, X: Array) -> Array:
        """Kernel between rows and Z, of shape (n, m)."""
        return self.space.block(self.seen(X), self.Z, self.sigma)

    def slope_functionals(self, X: Array) -> Array:
        """Rows b with b'c the slope at each row along each feature, of shape (n, p, m)."""
        seen = self.seen(X)
        S = self.space.kernel.slope(self.space.distance.gaps(seen, self.Z), self.sigma)
        along = [self.space.distance.slopes_along(seen, self.Z, f) for f in range(seen.shape[1])]
        B = np.stack([S * slopes for slopes in along], axis=1)
        if self.mapping is None:
            return B
        return self.mapping.pulled_back(B.transpose(0, 2, 1), X).transpose(0, 2, 1)

    def slopes_and_average(self, X: Array, share: Array) -> tuple[Array, Array]:
        """Slopes at each row, (n, k, p), and the functionals of their average, (p, m).

        `share` of shape (n,) says how much each row counts.
        """
        J, totals = self.slopes_and_totals(X, share[:, None])
        return J, totals[0]

    def slopes_and_totals(self, X: Array, V: Array) -> tuple[Array, Array]:
        """Slopes at each row, (n, k, p), and the functionals of sums over the rows, (r, p, m).

        V of shape (n, r) says how much each row counts. One pass over blocks of the kernel.
        """
        seen, distance = self.seen(X), self.space.distance
        J = np.empty((len(X), self.dual_coef.shape[1], seen.shape[1]))
        bent, bends = self._bent(X)
        # Weights of the rows: one set for uncompressed features, one for each compressed feature.
        counts = np.hstack([V, *(V * bend[:, None] for bend in bends.T)])
        part = -(-len(X) // processors())  # rows of one thread, which adds up its blocks in order
        totals = np.zeros((-(-len(X) // part), counts.shape[1], len(self.Z), seen.shape[1]))

        def work(mine: slice) -> None:
            for block in row_blocks(mine.stop - mine.start, rows_per_block(len(self.Z))):
                rows = slice(mine.start + block.start, mine.start + block.stop)
                S = self.space.kernel.slope(distance.gaps(seen[rows], self.Z), self.sigma)
                J[rows] = distance.slopes(S, self.dual_coef, seen[rows], self.Z)
                for i, count in enumerate(counts[rows].T):
                    W = S * count[:, None]
                    totals[mine.start // part, i] += distance.total_slopes(W, seen[rows], self.Z)

        for_blocks(work, len(X), part)
        total = totals.sum(axis=0).reshape(-1, V.shape[1], *totals.shape[2:]).swapaxes(2, 3)
        if self.mapping is None:
            return J, total[0]
        T = self.mapping.matrix
        found = T @ total[0]
        for i, f in enumerate(bent, 1):
            found[:, f] = T[f] @ total[i]
        return self.mapping.pulled_back(J, X), found

    def _bent(self, X: Array) -> tuple[Indices, Array]:
        """Indices of the b features that the map compresses, and derivatives of these, (n, b)."""
        if self.mapping is None or self.mapping.warp is None:
            return np.empty(0, dtype=np.intp), np.empty((len(X), 0))
        bent = np.flatnonzero(np.isfinite(self.mapping.warp.width))
        return bent, self.mapping.warp.slope(X)[:, bent]

    def differences_and_average(self, X1: Array, X0: Array, share: Array) -> tuple[Array, Array]:
        """f(X1) - f(X0), of shape (n, k), and the functional of its average, (1, m)."""
        found, total = np.empty((len(X1), len(self.intercept))), np.zeros((1, len(self.Z)))
        for rows in row_blocks(len(X1), rows_per_block(len(self.Z))):
            K = self.kernel(X1[rows]) - self.kernel(X0[rows])
            found[rows] = K @ self.dual_coef
            total += share[rows] @ K
        return found, total

    def average_kernel(self, X: Array, share: Array) -> Array:
        """Functional of the average prediction, of shape (1, m)."""
        total = np.zeros((1, len(self.Z)))
        for rows in row_blocks(len(X), rows_per_block(len(self.Z))):
            total += share[rows] @ self.kernel(X[rows])
        return total

    def estimates(self, B: Array, g: Array) -> Array:
        """Values b'c + g b_0 of functionals, of shape (r, k)."""
        return B @ self.dual_coef + np.outer(g, self.intercept)

    def deviations(self, B: Array, g: Array, noise: NoiseOf = even_noise) -> Array:
        """Standard errors of functionals b'c + g b_0, of shape (r, k)."""
        with blas_for(len(self.Z)):
            return self._deviations(B, g, [noise(part) for part in self.influences])

    def _deviations(self, B: Array, g: Array, noises: Sequence[Noise]) -> Array:
        """Standard errors of functionals from the noise of each influence."""
        size = np.maximum(np.abs(B).max(axis=1), np.abs(g))  # squares of large ones could overflow
        unit = np.where(size > 0, size, 1.0)
        B, g = B / unit[:, None], g / unit
        parts = [
            noise.variances(part.readout(B, g))
            for noise, part in zip(noises, self.influences, strict=True)
        ]
        return unit[:, None] * np.sqrt(np.hstack(parts))

    def covariances(self, B: Array, g: Array, noise: NoiseOf = even_noise) -> Array:
        """Covariances of functionals b'c + g b_0, of shape (k, r, r)."""
        with blas_for(len(self.Z)):
            parts = [noise(part).covariances(part.readout(B, g)) for part in self.influences]
        return np.concatenate(parts)

    def average_errors(self, functionals: Array, noise: NoiseOf) -> Array:
        """Standard errors of averages with these functionals, (r, m), of shape (r, k)."""
        return self.deviations(functionals, np.zeros(len(functionals)), noise)

    def slope_deviations(self, X: Array, noise: NoiseOf = even_noise) -> Array:
        """Standard errors of the slopes at the rows of X, of shape (n, k, p)."""
        found = np.empty((len(X), len(self.intercept), X.shape[1]))
        # Number of kernels that slopes need per row: one for each feature before or after the map.
        columns = max(X.shape[1], self.Z.shape[1]) * len(self.Z)
        with blas_for(len(self.Z)):
            noises = [noise(part) for part in self.influences]  # once for all blocks
            for rows in row_blocks(len(X), rows_per_block(columns)):
                B = self.slope_functionals(X[rows])
                g = np.zeros(B.shape[0] * B.shape[1])
                errors = self._deviations(B.reshape(-1, len(self.Z)), g, noises)
                found[rows] = errors.reshape(B.shape[0], B.shape[1], -1).transpose(0, 2, 1)
        return found


# Function that restores a model from its state, by the name in `solver_`.
RESTORED: dict[str, Callable[[FittedFunction, dict[str, Any]], Model]] = {
    "exact": ExactModel.restored,
    "nystrom": NystromModel.restored,
    "pcg": PcgModel.restored,
}
