"""SELECTORS: rule name -> function; the only place that dispatches on a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _bandwidth
from ._checks import Array, check_choice, check_grid, check_number, check_rows, check_targets
from ._distances import METRICS
from ._problem import Problem
from ._search import criterion_curve, minimise


@dataclass(frozen=True)
class Choice:
    """A bandwidth and where it came from.

    Attributes
    ----------
    sigma : float
        The bandwidth, in the units of X (metres for the geodesic metric).
    rule : str
    alpha : float
        Ridge penalty.
    n, p : number of samples (their weights summed up) and of features
    l_max : float
        Largest distance between two rows.
    spacing : float
        Distance of neighbours that the rule used: the median one for ``jacobian_median``, that of
        evenly spread points otherwise.
    seconds : float
        Time from X to sigma, everything included.
    """

    sigma: float
    rule: str
    alpha: Any
    n: float
    p: int
    l_max: float
    spacing: float
    seconds: float

    @property
    def gamma(self) -> float:
        """1 / (2 sigma^2), as in scikit-learn's KernelRidge, SVR, Nystroem and RBFSampler."""
        return 0.5 / self.sigma**2

    def as_length_scale(self) -> float:
        """Length scale of scikit-learn's RBF, GPyTorch, GPflow: exp(-d^2 / (2 l^2)), l = sigma."""
        return self.sigma

    def as_kernlab(self) -> float:
        """What R's kernlab calls sigma, in exp(-sigma d^2): the same as gamma."""
        return self.gamma

    def as_krls(self) -> float:
        """What R's KRLS calls sigma, in exp(-d^2 / sigma): 2 sigma^2."""
        return 2.0 * self.sigma**2

    def __float__(self) -> float:
        return self.sigma


Rule = Callable[[Problem], float]


def _jacobian(problem: Problem) -> float:
    return _bandwidth.jacobian_bandwidth(problem.n, problem.even_spacing, problem.lam)


def _jacobian_median(problem: Problem) -> float:
    spacing = problem.neighbour_spacing
    return _bandwidth.jacobian_bandwidth(problem.n, spacing, problem.lam)


def _silverman(problem: Problem) -> float:
    return _bandwidth.silverman_bandwidth(problem.n, problem.p, problem.variance)


def _scale(problem: Problem) -> float:
    return _bandwidth.scale_bandwidth(problem.p, problem.variance)


def _median(problem: Problem) -> float:
    return _bandwidth.median_bandwidth(problem.pair_D2)


def _maxvar(problem: Problem) -> float:
    return _bandwidth.maxvar_bandwidth(problem.pair_D2)


def _search(criterion: str) -> Rule:
    """Rule that minimises a criterion from a quarter of the neighbour distance to l_max."""

    def rule(problem: Problem) -> float:
        objective = _objective(problem, criterion)
        if problem.grid is not None:
            return float(problem.grid[np.argmin([objective(s) for s in problem.grid])])
        return minimise(objective, problem.neighbour_spacing / 4, problem.l_max, points=15)

    return rule


def _seeded_search(criterion: str) -> Rule:
    """Rule that minimises a criterion from a third to three times the Jacobian bandwidth."""

    def rule(problem: Problem) -> float:
        start = _jacobian(problem)
        return minimise(_objective(problem, criterion), start / 3, 3 * start, points=7)

    return rule


def _objective(problem: Problem, criterion: str) -> Callable[[float], float]:
    if problem.y is None:
        raise ValueError(f"The rule '{criterion}' needs `y`, got None.")
    y, w, lam = problem.y, problem.w, problem.lam
    return lambda sigma: float(
        criterion_curve(criterion, problem.pairs, y, lam, np.array([sigma]), w)[0]
    )


SELECTORS: dict[str, Rule] = {
    "jacobian": _jacobian,
    "jacobian_median": _jacobian_median,
    "silverman": _silverman,
    "scale": _scale,
    "median": _median,
    "maxvar": _maxvar,
    "loo": _search("loo"),
    "gcv": _search("gcv"),
    "mml": _search("mml"),
    "jacobian_loo": _seeded_search("loo"),
    "jacobian_mml": _seeded_search("mml"),
}
RULES = tuple(SELECTORS)


def bandwidth_of(bandwidth: Any, problem: Problem) -> float:
    """The bandwidth that a number, a rule's name or a function of the problem stands for."""
    if isinstance(bandwidth, str):
        return SELECTORS[check_choice("bandwidth", bandwidth, RULES)](problem)
    sigma = bandwidth(problem) if callable(bandwidth) else bandwidth
    return check_number("bandwidth", sigma, above=0)


def select_bandwidth(
    X: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    rule: str | Rule = "jacobian",
    *,
    alpha: float = 1e-3,
    metric: str = "euclidean",
    grid: npt.ArrayLike | None = None,
    random_state: int | None = None,
) -> Choice:
    r"""Bandwidth of the Gaussian kernel for the rows of X.

    The rule ``jacobian`` (Proposition 1 of the paper) needs n, p, the largest distance between
    two rows and the ridge penalty; no n x n matrix is made.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        For ``metric="geodesic"`` latitude and longitude in degrees; for ``"precomputed"`` the
        n x n matrix of distances (not a kernel).
    y : array of shape (n_samples,) or (n_samples, n_targets), optional
        Only the rules that solve look at it: ``loo``, ``gcv``, ``mml`` and the seeded ones.
    rule : str or function of a Problem
        One of ``jacridge.RULES``.
    alpha : float
        Ridge penalty lambda >= 0, in K + lambda I.
    metric : {"euclidean", "geodesic", "precomputed"}
    grid : array of bandwidths, optional
        Where ``loo``, ``gcv`` and ``mml`` look; they search by themselves if it is not given.
    random_state : int, optional
        Only ``median``, ``maxvar`` (above 2000 rows) and ``jacobian_median`` (above 50,000)
        look at random samples.

    Returns
    -------
    Choice
        ``float(choice)`` is sigma; ``choice.gamma`` is what scikit-learn calls gamma.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 101)[:, None]
    >>> choice = select_bandwidth(X, alpha=0)
    >>> round(choice.sigma, 6), round(choice.l_max, 6)
    (0.004547, 1.0)
    """
    start = perf_counter()
    X = check_rows(X, check_choice("metric", metric, METRICS))
    problem = Problem(
        X=X,
        y=None if y is None else _centred(check_targets(y, X)),
        lam=check_number("alpha", alpha, at_least=0),
        w=np.ones(len(X)),
        metric=metric,
        grid=None if grid is None else check_grid(grid),
        rng=np.random.default_rng(random_state),
    )
    sigma = bandwidth_of(rule, problem)
    median = rule == "jacobian_median"
    return Choice(
        sigma=sigma,
        rule=rule if isinstance(rule, str) else getattr(rule, "__name__", "function"),
        alpha=problem.lam,
        n=problem.n,
        p=problem.p,
        l_max=problem.l_max,
        spacing=problem.neighbour_spacing if median else problem.even_spacing,
        seconds=perf_counter() - start,
    )


def _centred(y: Array) -> Array:
    return np.asarray(y - y.mean(axis=0))
