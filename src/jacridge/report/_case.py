"""The data of a report and what is fitted to them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError

from .. import Choice, JacobianKernelRidge, select_bandwidth
from .._checks import Array, Indices, check_rows

# What is solved many times (curves, sliders, rules) is solved on at most this many rows.
SAMPLE = 600


@dataclass(frozen=True)
class Table:
    """Features as numbers: categories are one-hot, a column for each of their values."""

    X: Array
    names: list[str]
    numbers: list[str]
    texts: list[str]


def table_of(X: Any, features: Sequence[str] | None) -> Table:
    """A table from an array, or from a data frame whose columns hold numbers or texts."""
    if not hasattr(X, "columns"):
        X = check_rows(X, "euclidean")
        names = [f"x{j}" for j in range(X.shape[1])] if features is None else list(features)
        if len(names) != X.shape[1]:
            raise ValueError(
                f"`features` must name the {X.shape[1]} columns of `X`, got {len(names)} names."
            )
        return Table(X, names, names, [])
    columns = {name: np.asarray(X[name]) for name in (features or X.columns)}
    numbers = [name for name, column in columns.items() if column.dtype.kind in "fiub"]
    texts = [name for name in columns if name not in numbers]
    hot = {f"{name} = {v}": columns[name] == v for name in texts for v in _values(columns[name])}
    parts = {name: columns[name] for name in numbers} | hot
    rows = check_rows(
        np.column_stack([part.astype(np.float64) for part in parts.values()]), "euclidean"
    )
    return Table(rows, [str(name) for name in parts], numbers, texts)


def _values(column: Any) -> list[Any]:
    return sorted(set(column.tolist()), key=str)


@dataclass(frozen=True)
class Case:
    """The data of a report and what is fitted to them, each made once and when asked for."""

    table: Table
    y: Array
    target: str
    bandwidth: Any
    alpha: Any
    standardize: bool
    random_state: int | None

    @property
    def X(self) -> Array:
        """The rows in their own units."""
        return self.table.X

    @property
    def names(self) -> list[str]:
        """Names of the columns of X."""
        return self.table.names

    @cached_property
    def _scaled(self) -> npt.NDArray[np.bool_]:
        """Which columns are standardised: numbers, not categories."""
        is_number = np.arange(self.X.shape[1]) < len(self.table.numbers)
        return is_number & self.standardize

    @cached_property
    def centre(self) -> Array:
        """Means that the columns are centred at; zero for those that are left as they are."""
        return np.where(self._scaled, self.X.mean(axis=0), 0.0)

    @cached_property
    def scale(self) -> Array:
        """Standard deviations that the columns are divided by; one for those that are not."""
        deviation = self.X.std(axis=0)
        return np.where(self._scaled & (deviation > 0), deviation, 1.0)

    @cached_property
    def Z(self) -> Array:
        """The rows as the model sees them."""
        return np.asarray((self.X - self.centre) / self.scale)

    @cached_property
    def rows(self) -> Indices:
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

    @cached_property
    def diagnosis(self) -> Any:
        """What speaks for and against the model; None where too few rows differ to tell."""
        return quietly(self.estimator.diagnose)

    @property
    def rule(self) -> str:
        """What the bandwidth came from, in words."""
        if isinstance(self.bandwidth, str):
            return self.bandwidth
        return "a function" if callable(self.bandwidth) else "the number given"


def quietly(work: Any, *data: Any, **options: Any) -> Any:
    """What a call returns, without its warnings; None where it has no answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return work(*data, **options)
        except (ValueError, LinAlgError):
            return None
