"""SELECTORS: rule name -> function; the only place that dispatches on a name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _bandwidth
from ._auto import auto
from ._checks import (
    LARGEST,
    Array,
    check_bandwidth,
    check_choice,
    check_number,
    check_positive,
    check_rows,
    check_targets,
)
from ._dask import dask_problem, is_dask
from ._distances import METRICS
from ._problem import Problem, mean_of
from ._search import (
    CRITERIA,
    best_lambdas,
    best_of,
    criterion_curve,
    minimise,
    minimise_near,
    surface,
)


@dataclass(frozen=True)
class Choice:
    """A bandwidth and where it came from.

    Attributes
    ----------
    sigma : float
        The bandwidth, in the units of X (metres for the geodesic metric).
    rule : str
    alpha : float, or ndarray of shape (n_targets,) if it was chosen for several targets
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


@dataclass(frozen=True)
class Found:
    """What a rule returns: one bandwidth, and one penalty or one for each target."""

    sigma: float
    lam: float | Array


Rule = Callable[[Problem], Found]


# A search looks for the valley on at most this many rows, for its bottom on all of them.
COARSE_ROWS = 1000


def _closed_form(bandwidth: Callable[[Problem], float]) -> Rule:
    """Rule that takes lambda as given, or chooses it at the bandwidth until both agree."""

    def rule(problem: Problem) -> Found:
        sigma = _of_distinct_rows(bandwidth(problem), problem)
        if not isinstance(problem.alpha, str):
            return Found(sigma, problem.lam)
        for _ in range(5):  # sigma depends on lambda weakly, if at all: two rounds are usual
            values = getattr(problem.spectrum(sigma), _criterion_of(problem))(problem.lams)
            lams = best_lambdas(problem.lams, values)
            problem = problem.with_lam(float(np.exp(np.log(lams).mean())))
            last, sigma = sigma, bandwidth(problem)
            if abs(sigma / last - 1) < 1e-3:
                break
        return Found(last, lams)

    return rule


def _of_distinct_rows(sigma: float, problem: Problem) -> float:
    """The bandwidth, or an error that tells why it is zero."""
    if sigma < 1 / LARGEST and problem.l_max:  # which itself refuses rows that are all equal
        raise ValueError(
            "`X` must have rows most of which differ for this rule, got so many equal ones that "
            f"the bandwidth would be {sigma:g}. Use another rule."
        )
    return sigma


def _criterion_of(problem: Problem, default: str = "loo") -> str:
    """The criterion that chooses lambda; "auto" leaves it to the rule."""
    return default if problem.alpha == "auto" else str(problem.alpha)


def _jacobian(problem: Problem) -> float:
    return _bandwidth.jacobian_bandwidth(problem.n, problem.even_spacing, problem.lam)


def _jacobian_median(problem: Problem) -> float:
    if problem.n_equal > len(problem.X) // 2:
        warnings.warn(
            f"{problem.n_equal} of {len(problem.X)} rows are equal to another one; the median "
            "neighbour distance is that of the distinct rows.",
            stacklevel=2,
        )
    return _bandwidth.jacobian_bandwidth(problem.n, problem.neighbour_spacing, problem.lam)


def _silverman(problem: Problem) -> float:
    return _bandwidth.silverman_bandwidth(problem.n, problem.p, problem.variance)


def _scale(problem: Problem) -> float:
    return _bandwidth.scale_bandwidth(problem.p, problem.variance)


def _median(problem: Problem) -> float:
    return _bandwidth.median_bandwidth(problem.pair_D2, problem.pair_weights)


def _maxvar(problem: Problem) -> float:
    return _bandwidth.maxvar_bandwidth(problem.pair_D2, problem.pair_weights)


def _search(criterion: str, ends: Callable[[Problem], tuple[float, float]], points: int) -> Rule:
    """Rule that minimises a criterion over log sigma, and over lambda if that is not given."""

    def rule(problem: Problem) -> Found:
        if isinstance(problem.alpha, str):
            return _joint(problem, criterion, *ends(problem), points)
        objective = _objective(problem, criterion)
        if problem.grid is not None:
            return Found(best_of(objective, problem.grid), problem.lam)
        part = problem.thinned(COARSE_ROWS)
        sigma = minimise(_objective(part, criterion), *ends(part), points)
        if part is not problem:
            sigma = minimise_near(objective, sigma * problem.carried_from(part))
        return Found(sigma, problem.lam)

    return rule


def _objective(problem: Problem, criterion: str) -> Callable[[float], float]:
    y, w, lam = problem.targets, problem.w, problem.lam
    if problem.spectra is not None:
        spectra, scale, lams = problem.spectrum, (y**2).mean(axis=0), np.array([lam])
        return lambda sigma: float(
            surface(spectra, scale, np.array([sigma]), lams, criterion).values.mean()
        )
    return lambda sigma: float(
        criterion_curve(criterion, problem.pairs, y, lam, np.array([sigma]), w)[0]
    )


def _joint(problem: Problem, criterion: str, low: float, high: float, points: int) -> Found:
    """Sigma and lambda together on a grid, one eigendecomposition for each sigma."""
    sigmas = np.geomspace(low, high, points) if problem.grid is None else np.unique(problem.grid)
    scale = (problem.targets**2).mean(axis=0)
    name = _criterion_of(problem, default=criterion)
    found = surface(problem.spectrum, scale, sigmas, problem.lams, name)
    return Found(*found.best())


def _auto(problem: Problem) -> Found:
    criterion = _criterion_of(problem) if isinstance(problem.alpha, str) else "loo"
    return Found(*auto(problem, criterion))


def _all_scales(problem: Problem) -> tuple[float, float]:
    """From a quarter of the neighbour distance, where the kernel is diagonal, to l_max."""
    return problem.neighbour_spacing / 4, problem.l_max


def _around_jacobian(problem: Problem) -> tuple[float, float]:
    """From a third to three times the Jacobian bandwidth."""
    return _jacobian(problem) / 3, 3 * _jacobian(problem)


SELECTORS: dict[str, Rule] = {
    "jacobian": _closed_form(_jacobian),
    "jacobian_median": _closed_form(_jacobian_median),
    "silverman": _closed_form(_silverman),
    "scale": _closed_form(_scale),
    "median": _closed_form(_median),
    "maxvar": _closed_form(_maxvar),
    "loo": _search("loo", _all_scales, points=15),
    "gcv": _search("gcv", _all_scales, points=15),
    "mml": _search("mml", _all_scales, points=15),
    "jacobian_loo": _search("loo", _around_jacobian, points=7),
    "jacobian_mml": _search("mml", _around_jacobian, points=7),
    "auto": _auto,
}
RULES = tuple(SELECTORS)
# The rules that solve, and so look at y.
SEARCHES = ("loo", "gcv", "mml", "jacobian_loo", "jacobian_mml", "auto")


def find(bandwidth: Any, problem: Problem, name: str = "bandwidth") -> Found:
    """What a number, a rule's name or a function of the problem stands for."""
    if isinstance(bandwidth, str):
        check_choice(name, bandwidth, RULES)
        problem.check_rows()
    if problem.y is not None and len(problem.y) > 1 and not problem.y.any():
        return _find_without_y(bandwidth, problem)
    if isinstance(bandwidth, str):
        return SELECTORS[bandwidth](problem)
    if callable(bandwidth):
        return _closed_form(lambda problem: check_bandwidth(bandwidth(problem)))(problem)
    return _closed_form(lambda _: check_bandwidth(bandwidth))(problem)


def _find_without_y(bandwidth: Any, problem: Problem) -> Found:
    """The same for a constant y, which says nothing on bandwidth and penalty."""
    solves = isinstance(bandwidth, str) and bandwidth in SEARCHES
    if solves or isinstance(problem.alpha, str):
        warnings.warn(
            "`y` is constant, so that no bandwidth or penalty can be chosen by it: the Jacobian "
            f"bandwidth and alpha={problem.lam:g} are taken where a choice was asked for, and the "
            "constant is predicted.",
            stacklevel=3,
        )
    return find("jacobian" if solves else bandwidth, replace(problem, y=None, alpha=problem.lam))


def check_alpha(alpha: Any) -> float | str | Array:
    """The penalty as a number, the word that says how to choose it, or those to choose from."""
    if isinstance(alpha, str):
        return check_choice("alpha", alpha, (*CRITERIA, "auto"))
    if np.ndim(alpha) == 0:
        return check_number("alpha", alpha, at_least=0, at_most=LARGEST)
    return np.unique(check_positive("alpha", alpha))


def select_bandwidth(
    X: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    rule: str | Callable[[Problem], float] = "jacobian",
    *,
    alpha: float | str = 1e-3,
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
        n x n matrix of distances (not a kernel). Rows of a Dask array stay where they are: sizes,
        variances and the largest distance are those of all rows; above 10,000 rows the pairs of
        ``median`` and ``maxvar`` come from a sample of 10,000, the neighbours of
        ``jacobian_median`` are those of sampled rows among all, and rules that solve use
        landmarks.
    y : array of shape (n_samples,) or (n_samples, n_targets), optional
        Only the rules that solve look at it: ``loo``, ``gcv``, ``mml``, the seeded ones, ``auto``.
    rule : str or function of a Problem that returns sigma
        One of ``jacridge.RULES``.
    alpha : float or {"loo", "gcv", "mml", "auto"}
        Ridge penalty lambda >= 0, in K + lambda I, or the criterion that chooses it with the
        bandwidth, which needs y.
    metric : {"euclidean", "geodesic", "precomputed"}
    grid : array of bandwidths, optional
        Where ``loo``, ``gcv``, ``mml`` and the seeded rules look; they search by themselves if it
        is not given. Other rules do not look at it.
    random_state : int, optional
        Only ``auto`` (above 400 rows), the other rules that solve (above 1000), ``median`` and
        ``maxvar`` (above 2000) and ``jacobian_median`` (above 50,000) look at random samples.

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
    make = dask_problem if is_dask(X) else _problem
    problem = make(
        X,
        y,
        check_choice("metric", metric, METRICS),
        np.random.default_rng(random_state),
        alpha=check_alpha(alpha),
        grid=None if grid is None else check_positive("grid", grid),
    )
    if not callable(rule):
        check_choice("rule", rule, RULES)
    found = find(rule, problem, "rule")
    median = rule == "jacobian_median"
    return Choice(
        sigma=found.sigma,
        rule=rule if isinstance(rule, str) else getattr(rule, "__name__", "function"),
        alpha=found.lam if np.size(found.lam) > 1 else float(np.ravel(found.lam)[0]),
        n=int(problem.n) if problem.n == int(problem.n) else problem.n,
        p=problem.p,
        l_max=problem.l_max,
        spacing=problem.neighbour_spacing if median else problem.even_spacing,
        seconds=perf_counter() - start,
    )


def _problem(X: Any, y: Any, metric: str, rng: np.random.Generator, **options: Any) -> Problem:
    """The problem of rows in memory."""
    X = check_rows(X, metric)
    y = None if y is None else _centred(check_targets(y, X))
    return Problem(X=X, y=y, w=np.ones(len(X)), metric=metric, rng=rng, **options)


def _centred(y: Array) -> Array:
    return np.asarray(y - mean_of(y, np.ones(len(y))))
