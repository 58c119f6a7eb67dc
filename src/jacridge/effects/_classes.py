r"""Probabilities of classes as functions of their scores, and the errors of their effects.

With scores :math:`s_h(x)` and log-odds :math:`z_h = a s_h + b_h` the probabilities
:math:`p = \mathrm{softmax}(z)` have the slopes

.. math:: \nabla p_j = a \, p_j u_j, \qquad u_j = \nabla s_j - \sum_l p_l \nabla s_l .

An average of these slopes changes with the slopes of the scores and with the scores, by the factors

.. math:: a \, p_j (\delta_{jh} - p_h) \quad \text{and} \quad
          a^2 (p_j \delta_{jh} u_j - p_j p_h (u_j + u_h)) ,

so that to first order it is a functional of the scores of all classes h (the delta method). For two
classes, the score of the first is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .._compute.arrays import Array, row_blocks, rows_per_block
from .._compute.memory import check_memory
from .._compute.threads import blas_for
from .._rules.calibration import LogOdds, probabilities
from .._solvers.influence import DegreesOf, Influence, JointNoise, NoiseOf
from ._contrast import Contrast, check_pairs
from ._errors import ErrorKind, error_kind

if TYPE_CHECKING:
    from .._solvers.function import FittedFunction

# Residual degrees of freedom below which leave-one-out residuals are dominated by rounding errors.
ROUNDING_LEFT = 1e-11


def class_error_kind(cluster: Any, w_train: Array) -> ErrorKind:
    """Clustered errors if clusters are given, with a label for each training row; else robust.

    Robust errors use the normal distribution, as in other models of classes: leave-one-out
    residuals need no residual degrees of freedom, which a model that follows its rows lacks.
    """
    errors = error_kind(True, cluster, w_train)
    return errors if cluster is not None else replace(errors, degrees=lambda _: np.inf)


@dataclass(frozen=True)
class ClassFunction:
    """Probabilities of the classes that have scores: all, or the second of two.

    Errors are robust or clustered: the noise of labels is uneven, and correlated between classes.
    Functionals have the shape (targets, scores, m + 1): the factors of the dual coefficients of
    each score, then that of its intercept.

    Attributes
    ----------
    scores : the scores of the classes
    odds : log-odds from scores
    targets : labels of the classes that have scores
    """

    scores: FittedFunction
    odds: LogOdds
    targets: Sequence[str]

    @property
    def names(self) -> Sequence[str]:
        """Names of the features."""
        return self.scores.names

    @property
    def is_smooth(self) -> bool:
        """Whether there is a slope everywhere, including at the rows of the model."""
        return self.scores.is_smooth

    @property
    def influence(self) -> Influence:
        """How the scores depend on y; one influence, because all classes share a penalty."""
        (influence,) = self.scores.influences
        left = influence.residual_degrees
        if left < ROUNDING_LEFT:
            raise ValueError(
                f"Standard errors need residuals, got {left:.3g} residual degrees of freedom: the "
                "model follows every row. Give a larger `alpha`."
            )
        return influence

    def refitted(self, fit: FittedFunction) -> ClassFunction:
        """The probabilities from the scores of another fit, with the same log-odds."""
        return replace(self, scores=fit)

    def degrees(self, of: DegreesOf) -> list[float]:
        """Degrees of freedom of Student's t, for each class."""
        return [of(self.influence)] * len(self.targets)

    def check(self, X: Array) -> None:
        """Refuse rows whose distance to the rows of the model is not defined."""
        self.scores.check(X)

    def probabilities(self, X: Array) -> Array:
        """Probabilities of the classes with scores, of shape (n, k)."""
        P = np.empty((len(X), len(self.targets)))
        for rows in row_blocks(len(X), rows_per_block(len(self.scores.Z))):
            S = self.scores.estimates(self.scores.kernel(X[rows]), np.ones(len(X[rows])))
            P[rows] = probabilities(self.odds(S))[:, -len(self.targets) :]
        return P

    def _slopes(self, P: Array, j: int) -> Array:
        """Derivatives of the probability of class j with respect to the scores, (n, k)."""
        return self.odds.slope * P[:, [j]] * (np.eye(P.shape[1])[j] - P)

    def slopes_and_average(self, X: Array, share: Array) -> tuple[Array, Array]:
        """Slopes at each row, (n, k, p), and their averages' functionals, (p, k, k, m + 1)."""
        P, (n, p), k, m = self.probabilities(X), X.shape, len(self.targets), len(self.scores.Z)
        check_memory(
            8 * p * k**2 * (m + 1),
            f"The effects of {p} features on {k} classes",
            "Name fewer features in `variables`, or use a Nystrom model with fewer landmarks.",
        )
        B, values = np.zeros((p, k, k, m + 1)), np.empty((n, k, p))
        for j in range(k):
            J, totals = self.scores.slopes_and_totals(X, share[:, None] * self._slopes(P, j))
            U = J - np.einsum("nk,nkp->np", P, J)[:, None]
            values[:, j] = self.odds.slope * P[:, [j]] * U[:, j]
            D = -P[:, :, None] * (U + U[:, [j]])
            D[:, j] += U[:, j]
            D *= (self.odds.slope**2 * share * P[:, j])[:, None, None]
            B[:, j] = self._kernel_totals(X, D).swapaxes(0, 1)
            B[:, j, :, :-1] += totals.swapaxes(0, 1)
        return values, B

    def differences_and_average(self, X1: Array, X0: Array, share: Array) -> tuple[Array, Array]:
        """Differences at each row, (n, k), and their average's functional, (1, k, k, m + 1)."""
        k = len(self.targets)
        values, B = np.zeros((len(X1), k)), np.zeros((k, k, len(self.scores.Z) + 1))
        for sign, X in ((1.0, X1), (-1.0, X0)):
            P = self.probabilities(X)
            values += sign * P
            G = np.stack([self._slopes(P, j) for j in range(k)], axis=1)
            B += self._kernel_totals(X, sign * share[:, None, None] * G)
        return values, B[None]

    def _kernel_totals(self, X: Array, V: Array) -> Array:
        """Sums over the rows of V (n, a, b) times the functionals of scores, (a, b, m + 1)."""
        m, flat = len(self.scores.Z), V.reshape(len(V), -1)
        total = np.zeros((flat.shape[1], m + 1))
        for rows in row_blocks(len(X), rows_per_block(m)):
            total[:, :-1] += flat[rows].T @ self.scores.kernel(X[rows])
        total[:, -1] = flat.sum(axis=0)
        return total.reshape(*V.shape[1:], m + 1)

    def average_errors(self, functionals: Array, noise: NoiseOf) -> Array:
        """Standard errors of averages with these functionals, (r, k, k, m + 1), of shape (r, k)."""
        r, k, _, width = functionals.shape
        F = functionals.reshape(r * k, k, width)
        unit = np.abs(F).max(axis=(1, 2))  # squares of large ones could overflow
        unit = np.where(unit > 0, unit, 1.0)
        V = self._covariance(F / unit[:, None, None], self._noise(noise))
        return (unit * np.sqrt(np.diagonal(V))).reshape(r, k)

    def _noise(self, of: NoiseOf) -> JointNoise:
        """The noise of the scores."""
        with blas_for(len(self.scores.Z)):
            return cast(JointNoise, of(self.influence))

    def _covariance(self, F: Array, noise: JointNoise) -> Array:
        """Covariance of functionals (r, k, m + 1) of all scores, of shape (r, r)."""
        influence = self.influence
        with blas_for(len(self.scores.Z)):
            parts = F.swapaxes(0, 1)
            C = np.stack([influence.readout(part[:, :-1], part[:, -1]) for part in parts])
            return noise.joint(C)

    def contrast(self, X1: Array, X0: Array, noise: NoiseOf) -> Contrast:
        """Differences of the probabilities at X1 and X0, with their joint covariance."""
        k = len(self.targets)
        check_pairs(X1, X0, (k + 1) * len(self.scores.Z), k)
        P1, P0 = self.probabilities(X1), self.probabilities(X0)
        K1, K0 = (
            np.column_stack([self.scores.kernel(X), np.ones(len(X))])[:, None] for X in (X1, X0)
        )
        made = self._noise(noise)  # once for all classes
        covariances = [
            self._covariance(
                self._slopes(P1, j)[:, :, None] * K1 - self._slopes(P0, j)[:, :, None] * K0, made
            )
            for j in range(k)
        ]
        if k == 1:
            return Contrast((P1 - P0)[:, 0], covariances[0])
        return Contrast(P1 - P0, np.stack(covariances))
