"""The joint search over sigma and lambda made cheap: few rows first, all rows for the last steps.

A grid on few rows shows the course of the criterion's valley, a few factorisations on all rows
where its bottom lies.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError

from ._checks import Array
from ._distances import blas_for
from ._problem import Problem
from ._search import CRITERIA, Surface, best_lambdas, surface, vertex
from ._solvers import factor

FIRST_ROWS = 400
FIRST_SIGMAS = 10
# The bottom is looked for on all rows up to this number, then on as many of them.
LAST_ROWS = 3000
LAST_SIGMAS = np.array([1 / 3, 0.6, 1.0, 1.6])
LAST_STEP = np.log(2.5)


def auto(problem: Problem, criterion: str) -> tuple[float, float | Array]:
    """Bandwidth and penalty (one for each target) at the minimum of a criterion."""
    rng = np.random.default_rng() if problem.rng is None else problem.rng
    order = rng.permutation(len(problem.w))
    part = problem.part(order[:FIRST_ROWS])
    found = _on_a_grid(part, criterion)
    sigma, lams = found.best()
    if len(order) > FIRST_ROWS and len(lams) == 1:
        first, part = part, problem.part(order[:LAST_ROWS])
        sigma, lams = _along_valley(part, criterion, found, part.carried_from(first))
    sigma *= problem.carried_from(part)
    if problem.spectra is not None and isinstance(problem.alpha, str):
        lams = best_lambdas(problem.lams, getattr(problem.spectrum(sigma), criterion)(problem.lams))
    return sigma, lams if isinstance(problem.alpha, str) else problem.lam


def _lambdas(problem: Problem) -> Array:
    return problem.lams if isinstance(problem.alpha, str) else np.array([problem.lam])


def _on_a_grid(part: Problem, criterion: str) -> Surface:
    """All bandwidths and penalties, from half the neighbour distance to l_max or sigma_0."""
    high = max(part.even_spacing, part.l_max)
    sigmas = np.geomspace(part.neighbour_spacing / 2, high, FIRST_SIGMAS)
    return surface(part.spectrum, _scale(part), sigmas, _lambdas(part), criterion)


def _scale(part: Problem) -> Array:
    return np.asarray((part.targets**2).mean(axis=0))


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

    sigmas = found.best()[0] * carried * LAST_SIGMAS
    values = np.array([objective(sigma, lam_at(sigma)) for sigma in sigmas])
    best = int(np.argmin(values))
    sigma = vertex(sigmas, values, best)
    if not isinstance(part.alpha, str):
        return sigma, np.array([part.lam])
    # The penalty is looked for at the best bandwidth known, where one value is there already.
    low, high = part.lams[[0, -1]]
    beside = lam_at(sigmas[best])
    lam = line_minimum(
        lambda v: objective(sigmas[best], min(max(v, low), high)), beside, LAST_STEP, values[best]
    )
    lam = lam / beside * lam_at(sigma)
    return sigma, np.array([min(max(lam, low), high)])


def _objective(part: Problem, criterion: str) -> Callable[[float, float], float]:
    y, w = part.targets, part.w

    def objective(sigma: float, lam: float) -> float:
        with blas_for(len(w)):
            try:
                A = factor(part.pairs.kernel(sigma), lam / w)
            except LinAlgError:
                return np.inf
            return float(CRITERIA[criterion](A, y, w, lam)[0])

    return objective


def line_minimum(
    f: Callable[[float], float], x: float, step: float, value: float, moves: int = 5
) -> float:
    """Minimum of f along log x: downhill by steps, then the parabola of the last three points.

    `value` is f(x).
    """
    values = {0: value}

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
    return vertex(grid, np.array([values.get(j, np.inf) for j in range(i - 1, i + 2)]), 1)
