"""The joint search over sigma and lambda made cheap: few rows first, all rows for the last steps.

A grid on few rows drops the bandwidths that are clearly worse, more rows drop more, and a few
factorisations on all rows tell where between the last ones the bottom lies.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from ._checks import Array, Indices
from ._distances import blas_for
from ._problem import Problem
from ._search import (
    CRITERIA,
    Surface,
    best_lambdas,
    check_solved,
    downhill,
    surface,
    system,
    vertex,
)

FIRST_SIGMAS = 9
# Rows on which whole lines of penalties are looked at, from one eigendecomposition a bandwidth.
FIRST_ROWS = 400
# Rows on which the bandwidths left are compared, from one Cholesky factorisation each.
MORE_ROWS = 1000
LAST_ROWS = 3000
LAST_SIGMAS = 3
LAST_STEP = np.log(2.5)
TINY = np.finfo(float).tiny


def auto(problem: Problem, criterion: str) -> tuple[float, float | Array]:
    """Bandwidth and penalty (one for each target) at the minimum of a criterion."""
    order = problem.rng.permutation(len(problem.w))
    several = problem.targets.shape[1] > 1
    part = problem.part(order[: MORE_ROWS if several else FIRST_ROWS])
    found = _on_a_grid(part, criterion)
    if several or len(order) <= FIRST_ROWS:
        sigma, lams = found.best()
    else:
        sigma, lams, part = _on_more_rows(problem, order, part, found, criterion)
    sigma *= problem.carried_from(part)
    if problem.trials is not None:
        sigma = _for_landmarks(problem, problem.trials, sigma, criterion)
    if not isinstance(problem.alpha, str):
        return sigma, problem.lam
    if problem.spectra is not None:
        lams = best_lambdas(problem.lams, getattr(problem.spectrum(sigma), criterion)(problem.lams))
    return sigma, lams


def _for_landmarks(
    problem: Problem, trials: Callable[[float], Any], sigma: float, criterion: str
) -> float:
    """The bandwidth for a solver with landmarks, from that for all rows.

    Landmarks are a penalty of their own: where the one on the coefficients is so small that all
    rows need wide kernels not to follow the noise, landmarks can do with narrower ones, and where
    few landmarks must reach far, with wider ones. At a penalty given, generalised cross-validation
    is the guide: a small one makes the leave-one-out errors of a few rows so large that they hide
    those of all others.
    """
    if not isinstance(problem.alpha, str):
        criterion = "gcv"

    def objective(sigma: float) -> float:
        found = surface(trials, _scale(problem), np.array([sigma]), _penalties(problem), criterion)
        return float(found.curve()[0])

    return downhill(objective, sigma, LAST_STEP, objective(sigma), moves=5)


def _penalties(problem: Problem) -> Array:
    """The penalties that are looked at: those to choose among, or the one given."""
    return problem.lams if isinstance(problem.alpha, str) else np.array([problem.lam])


def _scale(problem: Problem) -> Array:
    """Mean squares of the targets."""
    return np.asarray((problem.targets**2).mean(axis=0))


def _on_a_grid(part: Problem, criterion: str) -> Surface:
    """All bandwidths and penalties, from half the neighbour distance to l_max or sigma_0."""
    high = max(part.even_spacing, part.l_max)
    sigmas = np.geomspace(part.neighbour_spacing / 2, high, FIRST_SIGMAS)
    return surface(part.spectrum, _scale(part), sigmas, _penalties(part), criterion)


def _on_more_rows(
    problem: Problem, order: Indices, part: Problem, found: Surface, criterion: str
) -> tuple[float, Array, Problem]:
    """The bottom of the valley on more rows, whose course is known from fewer.

    Good penalties fall as bandwidths grow, so that a search along one of them alone would go
    wrong: each bandwidth keeps the penalty that it had on fewer rows, and all move together. A
    point costs a Cholesky factorisation, where a whole line of penalties would cost an
    eigendecomposition.
    """
    sigmas, curve, chosen = found.sigmas, found.curve(), isinstance(problem.alpha, str)
    check_solved(sigmas, curve)
    lams = np.array([best_lambdas(found.lams, values)[0] for values in found.values])
    for rows, most in ((MORE_ROWS, FIRST_SIGMAS), (LAST_ROWS, LAST_SIGMAS)):
        if len(order) <= len(part.w):
            break
        kept = _not_clearly_worse(curve, criterion, part.n, most)
        fewer, part = part, problem.part(order[:rows])
        sigmas, lams = sigmas[kept] * part.carried_from(fewer), lams[kept]
        objective = _objective(part, criterion)
        curve = np.array(list(map(objective, sigmas, lams)))
        check_solved(sigmas, curve)
        best = int(np.argmin(curve))
        if chosen and rows == MORE_ROWS:
            along = partial(objective, sigmas[best])
            moved = lams / lams[best] * downhill(along, lams[best], LAST_STEP, curve[best])
            lams = np.clip(moved, *part.lams[[0, -1]])
    sigma, lam = vertex(sigmas, curve, best), lams[best]
    if chosen:
        lam = np.exp(np.interp(np.log(sigma), np.log(sigmas), np.log(lams)))
    return sigma, np.array([lam]), part


def _not_clearly_worse(curve: Array, criterion: str, n: float, most: int) -> Array:
    """Which bandwidths more rows may prefer: the best one, its neighbours, others near to it.

    A mean square over n rows is known to about sqrt(2 / n) of itself; the difference of two of
    them, to twice the variance.
    """
    best = int(np.argmin(curve))
    if criterion == "mml":  # n times the logarithm of a mean square
        above = (curve - curve[best]) / n
    else:
        above = np.log(np.maximum(curve, TINY) / max(curve[best], TINY))
    allowed = min(np.sqrt(4 / n), np.sort(above)[min(most, len(above)) - 1])
    return (above <= allowed) | (np.abs(np.arange(len(curve)) - best) <= 1)


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
