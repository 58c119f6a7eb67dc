"""Parameters of a fit: those of the estimators, and what a fit makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .._checks import check_choice
from .._geometry.kernels import KERNELS, Kernel
from .._geometry.space import LINEAR, METRICS, Space, space_of
from .._solvers.model import INTERCEPTS
from .choice import KERNELS_TRIED, Loss, squared_errors
from .held_out import HELD_OUT
from .registry import as_rule, check_alpha, later_rows_choose, later_rows_tune
from .training import Penalty, TrainingData

SOLVERS = ("auto", "exact", "nystrom", "pcg")


@dataclass(eq=False, repr=False)
class Parameters:
    """Parameters of all estimators, with the defaults of `JacobianKernelRidge`.

    Estimators inherit the constructor but are no dataclasses themselves: scikit-learn has no types,
    and type checkers accept any argument of a dataclass with a base class that they cannot see.
    """

    bandwidth: float | str | Callable[[TrainingData], float] = "jacobian"
    alpha: float | str | npt.ArrayLike = 1e-3
    _: KW_ONLY
    kernel: str = "gaussian"
    metric: str = "euclidean"
    solver: str = "auto"
    n_landmarks: int | None = None
    landmarks: str | npt.ArrayLike = "kmeans"
    fit_intercept: bool | str = True
    held_out: str = "random"
    random_state: int | None = None
    verbose: int = 0


@dataclass(eq=False, repr=False)
class AutoParameters(Parameters):
    """Parameters of estimators that choose everything."""

    bandwidth: float | str | Callable[[TrainingData], float] = "auto"
    alpha: float | str | npt.ArrayLike = "auto"
    _: KW_ONLY
    kernel: str = "auto"
    metric: str = "auto"


@dataclass(eq=False, repr=False)
class ClassParameters(Parameters):
    """Parameters of classifiers."""

    _: KW_ONLY
    class_weight: Mapping[Any, float] | str | None = None


@dataclass(eq=False, repr=False)
class AutoClassParameters(AutoParameters, ClassParameters):
    """Parameters of classifiers that choose everything."""


def parameters_of(estimator: Parameters) -> dict[str, Any]:
    """The parameters of an estimator that all estimators share, by name."""
    return {each.name: getattr(estimator, each.name) for each in fields(Parameters)}


@dataclass(eq=False)
class Request(Parameters):
    """Parameters of an estimator that is fitted, and their meaning.

    `loss` chooses kernel and metric; `shared` asks for one penalty for all targets.
    """

    _: KW_ONLY
    loss: Loss = squared_errors
    shared: bool = False

    @cached_property
    def space(self) -> Space:
        """Kernel and distance; a kernel that is to be chosen is Gaussian here."""
        check_choice("metric", self.metric, METRICS)
        check_choice("kernel", self.kernel, (*KERNELS, "auto"))
        check_choice("solver", self.solver, SOLVERS)
        check_choice("held_out", self.held_out, HELD_OUT)
        return space_of("gaussian" if self.kernel == "auto" else self.kernel, self.metric)

    @property
    def kernels(self) -> Sequence[str]:
        """The kernels to choose among by cross-fitting; one if it was given."""
        if self.kernel != "auto":
            return (self.kernel,)
        return [name for name in KERNELS_TRIED if self.suits(KERNELS[name])]

    def suits(self, kernel: Kernel) -> bool:
        """Whether the bandwidth's rule can be used with a kernel."""
        return as_rule(self.bandwidth).suits(kernel)

    @property
    def tunes_later(self) -> bool:
        """Whether bandwidth and penalty, too, are chosen by how well later rows are predicted."""
        return self.held_out == "later" and later_rows_tune(self.bandwidth, self.alpha)

    def check_held_out(self, *, streams: bool) -> None:
        """Refuse to hold out later rows where there are none, or where nothing is chosen by them.

        Rows that stream may come in any order.
        """
        chooses = later_rows_choose(self.bandwidth, self.alpha, self.kernel, self.metric)
        refused = {
            "for Dask arrays and Parquet files, whose rows may come in any order": streams,
            f'for metric="{self.metric}"': self.metric not in LINEAR,
            "if nothing is chosen on held-out rows": not chooses,
        }
        for where, is_so in refused.items():
            if is_so and self.held_out != "random":
                raise ValueError(f'`held_out` must be "random" {where}, got "{self.held_out}".')

    @cached_property
    def penalty(self) -> Penalty:
        """The penalty, or how to choose it."""
        return replace(check_alpha(self.alpha), shared=self.shared)

    @cached_property
    def intercept(self) -> str:
        """The kind of intercept, one of INTERCEPTS."""
        given = [False, True, "free"]
        if np.ndim(self.fit_intercept) or self.fit_intercept not in given:
            raise ValueError(
                f'`fit_intercept` must be True, False or "free", got {self.fit_intercept!r}.'
            )
        return INTERCEPTS[given.index(self.fit_intercept)]
