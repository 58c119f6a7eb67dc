"""The joint search over sigma and lambda made cheap: few rows first, all rows for the last steps.

A grid on few rows drops the bandwidths that are clearly worse, more rows drop more, and a few
factorisations on all rows tell where between the last ones the bottom lies.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError

from ._checks import Array
from ._distances import blas_for
from ._problem import Problem
from ._search import CRITERIA, Surface, best_lambdas, surface, system, vertex

FIRST_SIGMAS = 10
# Rows on which whole lines of penalties are looked at, from one eigendecomposition a bandwidth.
FIRST_ROWS = 400
MORE_ROWS = 800
# The bottom is looked for on all rows up to this number, then on as many of them.
LAST_ROWS = 3000
LAST_STEP = np.log(2.5)
TINY = np.finfo(float).tiny


def auto(problem: Problem, criterion: str) -> tuple[float, float | Array]:
    """Bandwidth and penalty (one for each target) at the minimum of a criterion."""
    rng = np.random.default_rng() if problem.rng is None else problem.rng
    order = rng.permutation(len(problem.w))
    part = problem.part(order[:FIRST_ROWS])
    found = _on_a_grid(part, _first_sigmas(part), criterion)
    if len(order) > FIRST_ROWS:
        first, part = part, problem.part(order[:MORE_ROWS])
        sigmas = _not_clearly_worse(found, criterion, first) * part.carried_from(first)
        found = _on_a_grid(part, sigmas, criterion)
    sigma, lams = found.best()
    if len(order) > MORE_ROWS and len(lams) == 1:
        more, part = part, problem.part(order[:LAST_ROWS])
        sigma, lams = _along_valley(part, criterion, found, part.carried_from(more))
    sigma *= problem.carried_from(part)
    if problem.spectra is not None and isinstance(problem.alpha, str):
        lams = best_lambdas(problem.lams, getattr(problem.spectrum(sigma), criterion)(problem.lams))
    return sigma, lams if isinstance(problem.alpha, str) else problem.lam


def _first_sigmas(part: Problem) -> Array:
    """From half the neighbour distance to l_max or sigma_0."""
    high = max(part.even_spacing, part.l_max)
    return np.geomspace(part.neighbour_spacing / 2, high, FIRST_SIGMAS)


def _on_a_grid(part: Problem, sigmas: Array, criterion: str) -> Surface:
    lams = part.lams if isinstance(part.alpha, str) else np.array([part.lam])
    scale = np.asarray((part.targets**2).mean(axis=0))
    return surface(part.spectrum, scale, sigmas, lams, criterion)


def _not_clearly_worse(found: Surface, criterion: str, part: Problem) -> Array:
    """Bandwidths that more rows may turn out to prefer, and the neighbours of the best one.

    A mean square over n rows is known to about sqrt(2 / n) of itself; twice that is allowed for
    two of them that differ.
    """
    curve = found.curve()
    best = int(np.argmin(curve))
    if criterion == "mml":  # n times the logarithm of a mean square
        above = (curve - curve[best]) / part.n
    else:
        above = np.log(np.maximum(curve, TINY) / max(curve[best], TINY))
    near = np.abs(np.arange(len(curve)) - best) <= 1
    return found.sigmas[near | (above < np.sqrt(4 / part.n))]


def _along_valley(
    part: Problem, criterion: str, found: Surface, carried: float
) -> tuple[float, Array]:
    """The bottom of the valley on more rows, whose course is known from fewer.

    Good penalties fall as bandwidths grow, so that a search along one of them alone would go
    wrong: the penalty goes along with the bandwidth as it did on fewer rows. Each point costs a
    Cholesky factorisation, where a whole row of penalties would cost an eigendecomposition.
    """
    objective = _objective(part, criterion)
    known = np.log(found.sigmas * carried)
    course = np.log([best_lambdas(found.lams, values)[0] for values in found.values])

    def lam_at(sigma: float) -> float:
        return float(np.exp(np.interp(np.log(sigma), known, course)))

    step = float(np.diff(known).min())
    sigma, tried, value = downhill(
        lambda s: objective(s, lam_at(s)), found.best()[0] * carried, step
    )
    if not isinstance(part.alpha, str):
        return sigma, np.array([part.lam])
    # The penalty is looked for where one value is there already, and goes along to the bottom.
    low, high = part.lams[[0, -1]]
    lam, _, _ = downhill(
        lambda v: objective(tried, float(np.clip(v, low, high))), lam_at(tried), LAST_STEP, value
    )
    return sigma, np.clip([lam / lam_at(tried) * lam_at(sigma)], low, high)


def _objective(part: Problem, criterion: str) -> Callable[[float, float], float]:
    y, w = part.targets, part.w

    def objective(sigma: float, lam: float) -> float:
        with blas_for(len(w)):
            try:
                A = system(part.pairs, sigma, lam / w)
            except LinAlgError:
                return np.inf
            return float(CRITERIA[criterion](A, y, w, lam)[0])

    return objective


def downhill(
    f: Callable[[float], float], x: float, step: float, value: float | None = None, moves: int = 3
) -> tuple[float, float, float]:
    """Minimum of f along log x, and the best point tried with its value.

    Downhill by steps, then the parabola of the last three points; `value` is f(x), if known.
    """
    values = {} if value is None else {0: value}

    def at(i: int) -> float:
        if i not in values:
            values[i] = f(float(x * np.exp(i * step)))
        return values[i]

    i = 0
    for _ in range(moves):
        lower = min((i, i - 1, i + 1), key=at)
        if lower == i:
            break
        i = lower
    grid = x * np.exp(step * np.arange(i - 1, i + 2))
    bottom = vertex(grid, np.array([values.get(j, np.inf) for j in range(i - 1, i + 2)]), 1)
    return bottom, float(grid[1]), values[i]
