"""The data of a report and what is fitted to them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import Choice, JacobianKernelRidge, select_bandwidth
from .._checks import Array

# What is solved many times (curves, sliders, rules) is solved on at most this many rows.
SAMPLE = 600


@dataclass(frozen=True)
class Case:
    """The data of a report and what is fitted to them, each made once and when asked for."""

    X: Array
    y: Array
    names: list[str]
    target: str
    bandwidth: Any
    alpha: Any
    standardize: bool
    random_state: int | None

    @cached_property
    def centre(self) -> Array:
        """Means that the columns are centred at."""
        return self.X.mean(axis=0) if self.standardize else np.zeros(self.X.shape[1])

    @cached_property
    def scale(self) -> Array:
        """Standard deviations that the columns are divided by; one for a constant column."""
        deviation = self.X.std(axis=0)
        return (
            np.where(deviation > 0, deviation, 1.0) if self.standardize else np.ones_like(deviation)
        )

    @cached_property
    def Z(self) -> Array:
        """The rows as the model sees them."""
        return np.asarray((self.X - self.centre) / self.scale)

    @cached_property
    def rows(self) -> npt.NDArray[np.intp]:
        """Positions of the rows that are solved many times."""
        rng = np.random.default_rng(self.random_state)
        n = len(self.X)
        some = np.arange(n) if n <= SAMPLE else rng.choice(n, SAMPLE, replace=False)
        return np.sort(some)

    @cached_property
    def choice(self) -> Choice:
        """Geometry and the Jacobian bandwidth of all rows, for the fitted penalty."""
        return select_bandwidth(self.Z, alpha=self.lam)

    @cached_property
    def estimator(self) -> Any:
        """The model, fitted to all rows."""
        return self._fitted(self.Z, self.y, self.bandwidth, self.alpha)

    @cached_property
    def on_sample(self) -> Any:
        """The same model, fitted to the sample only."""
        if len(self.rows) == len(self.X):
            return self.estimator
        return self.fitted_to_sample(self.bandwidth, self.alpha)

    def fitted_to_sample(self, bandwidth: Any, alpha: Any) -> Any:
        """Another model, fitted to the sample."""
        return self._fitted(self.Z[self.rows], self.y[self.rows], bandwidth, alpha)

    def _fitted(self, Z: Array, y: Array, bandwidth: Any, alpha: Any) -> Any:
        est: Any = JacobianKernelRidge(  # type: ignore[no-untyped-call]
            bandwidth=bandwidth, alpha=alpha, random_state=self.random_state
        )
        return est.fit(Z, y)

    @cached_property
    def lam(self) -> float:
        """The penalty of the model."""
        return float(np.ravel(self.estimator.alpha_)[0])

    @property
    def rule(self) -> str:
        """What the bandwidth came from, in words."""
        if isinstance(self.bandwidth, str):
            return self.bandwidth
        return "a function" if callable(self.bandwidth) else "the number given"
