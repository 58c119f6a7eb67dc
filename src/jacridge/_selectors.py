"""SELECTORS: rule name -> function; the only place that dispatches on a name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from . import _bandwidth
from ._auto import auto
from ._checks import (
    LARGEST,
    Array,
    check_bandwidth,
    check_choice,
    check_number,
    check_positive,
)
from ._problem import Problem
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
# The rules that look at all rows, however many they are, and at no sample of them.
WHOLE = ("jacobian", "silverman", "scale")
# The rules that solve, and so look at y.
SEARCHES = ("loo", "gcv", "mml", "jacobian_loo", "jacobian_mml", "auto")
# The words that say how to choose the penalty.
ALPHAS = (*CRITERIA, "auto")


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
    if not isinstance(bandwidth, Real) or isinstance(bandwidth, bool):
        raise TypeError(
            f"`{name}` must be a number, the name of a rule or a function, got {bandwidth!r}."
        )
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
        return check_choice("alpha", alpha, ALPHAS)
    if np.ndim(alpha) == 0:
        return check_number("alpha", alpha, at_least=0, at_most=LARGEST)
    return np.unique(check_positive("alpha", alpha))
