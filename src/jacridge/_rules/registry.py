"""Registry of rules by name: the only place that dispatches on a rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from .. import theory
from .._checks import (
    LARGEST,
    SMALLEST_PENALTY,
    check_bandwidth,
    check_choice,
    check_number,
    check_positive,
)
from .._compute.arrays import Array
from .._compute.warnings import warn
from . import closed_forms
from .criteria import CRITERIA, criterion_at
from .joint import auto
from .searches import (
    best_lambdas,
    best_of,
    in_units_of,
    minimise,
    minimise_near,
    surface,
    surface_around,
)
from .training import Penalty, TrainingData
from .without_y import Line, loo_without_y_line, minimise_without_y, ssmm_line


@dataclass(frozen=True)
class Found:
    """Result of a rule: one bandwidth, and one penalty or one for each target."""

    sigma: float
    lam: float | Array


Rule = Callable[[TrainingData], Found]

# The smallest and the largest bandwidth of a search.
Ends = Callable[[TrainingData], tuple[float, float]]

# A search looks for the valley on at most this many rows, for its bottom on all of them.
COARSE_ROWS = 1000
# The same for a search over sigma and lambda, which takes eigenvectors.
JOINT_ROWS = 700


def _closed_form(bandwidth: Callable[[TrainingData], float]) -> Rule:
    """Rule that takes lambda as given, or chooses it at the bandwidth until both agree."""

    def rule(data: TrainingData) -> Found:
        sigma = _of_distinct_rows(bandwidth(data), data)
        if not data.penalty.criterion:
            return Found(sigma, data.lam)
        name = _criterion_of(data)
        for _ in range(5):  # sigma depends on lambda weakly, if at all: two rounds are usual
            values = getattr(data.spectrum(sigma), name)(data.penalty.lams)
            lams = best_lambdas(data.penalty.lams, in_units_of(data.scale, values, name))
            data = data.with_lam(float(np.exp(np.log(lams).mean())))
            last, sigma = sigma, bandwidth(data)
            if abs(sigma / last - 1) < 1e-3:
                break
        return Found(last, lams)

    return rule


def _of_distinct_rows(sigma: float, data: TrainingData) -> float:
    """The bandwidth, or an error that tells why it is zero."""
    if sigma < 1 / LARGEST and data.l_max:  # which itself refuses rows that are all equal
        raise ValueError(
            "`X` must have rows most of which differ for this rule, got so many equal ones that "
            f"the bandwidth would be {sigma:g}. Use another rule."
        )
    return sigma


def _criterion_of(data: TrainingData, default: str = "loo") -> str:
    """The criterion that chooses lambda; "auto" leaves it to the rule."""
    criterion = data.penalty.criterion
    return default if criterion in (None, "auto") else criterion


def _jacobian(data: TrainingData) -> float:
    """The paper's rule for the Gaussian kernel; for others that of a grid in one dimension."""
    return _jacobian_at(data, data.even_spacing)


def _jacobian_at(data: TrainingData, spacing: float) -> float:
    kernel = data.space.kernel
    if kernel.has_closed_form:
        return closed_forms.jacobian_bandwidth(data.n, spacing, data.lam_of_rows)
    return theory.lattice_sigma_0(kernel.name, spacing, 1, data.lam_of_rows)


def _jacobian_lattice(data: TrainingData) -> float:
    """The rule of a grid in p dimensions."""
    name, lam = data.space.kernel.name, data.lam_of_rows
    return theory.lattice_sigma_0(name, data.even_spacing, data.p, lam)


def _jacobian_median(data: TrainingData) -> float:
    if data.share_equal > 0.5:
        warn(
            f"{data.share_equal:.0%} of the rows are equal to another one; the median neighbour "
            "distance is that of the distinct rows."
        )
    spacing = data.neighbour_spacing
    return _jacobian_at(data, spacing) if spacing else 0.0  # which `_of_distinct_rows` refuses


def _silverman(data: TrainingData) -> float:
    return closed_forms.silverman_bandwidth(data.n, data.p, data.variance)


def _scale(data: TrainingData) -> float:
    return closed_forms.scale_bandwidth(data.p, data.variance)


def _median(data: TrainingData) -> float:
    return closed_forms.median_bandwidth(
        data.space.distance.lengths(data.pair_gaps), data.pair_weights
    )


def _maxvar(data: TrainingData) -> float:
    return closed_forms.maxvar_bandwidth(data.pair_gaps, data.space, data.pair_weights)


def _search(criterion: str, ends: Ends, points: int) -> Rule:
    """Rule that minimises a criterion over log sigma, and over lambda if that is not given."""

    def rule(data: TrainingData) -> Found:
        if data.penalty.criterion:
            return _joint(data, _criterion_of(data, default=criterion), ends, points)
        objective = _objective(data, criterion)
        if data.grid is not None:
            return Found(best_of(objective, data.grid), data.lam)
        part = data.sample(COARSE_ROWS)
        sigma = minimise(_objective(part, criterion), *ends(part), points)
        if part is not data:
            sigma = minimise_near(objective, sigma * data.carried_from(part))
        return Found(sigma, data.lam)

    return rule


def _objective(data: TrainingData, criterion: str) -> Callable[[float], float]:
    y, w, lam, scale = data.targets, data.w, data.lam, data.scale
    if data.solver is not None:
        lams = np.array([lam])
        return lambda sigma: float(
            surface(data.spectrum, scale, np.array([sigma]), lams, criterion).values.mean()
        )
    options: dict[str, Any] = {"centred": data.has_intercept, "scale": scale}
    return lambda sigma: criterion_at(criterion, data.pairs, sigma, lam, y, w, **options)


def _joint(data: TrainingData, criterion: str, ends: Ends, points: int) -> Found:
    """Sigma and lambda together on a grid, one eigendecomposition for each sigma.

    Many rows are looked at around the best point of some of them only.
    """
    lams = data.penalty.lams
    if data.grid is not None:
        found = surface(data.spectrum, data.scale, np.unique(data.grid), lams, criterion)
        return Found(*found.best())
    part = data if data.solver is not None else data.sample(JOINT_ROWS)
    sigmas = np.geomspace(*ends(part), points)
    found = surface(part.spectrum, part.scale, sigmas, lams, criterion)
    if part is not data:
        sigma, step = found.best()[0] * data.carried_from(part), sigmas[1] / sigmas[0]
        found = surface_around(sigma, step, data.spectrum, data.scale, lams, criterion)
    return Found(*found.best())


def _without_y(criterion: Callable[[TrainingData], Line]) -> Rule:
    """Rule that minimises a criterion of X over sigma, and over lambda if that is not given."""
    return lambda data: Found(*minimise_without_y(criterion, data))


def _auto(data: TrainingData) -> Found:
    return Found(*auto(data, _criterion_of(data)))


def _all_scales(data: TrainingData) -> tuple[float, float]:
    """From a quarter of the neighbour distance, where the kernel is diagonal, to l_max."""
    return data.search_spacing / 4, data.l_max


def _around_jacobian(data: TrainingData) -> tuple[float, float]:
    """From a third to three times the Jacobian bandwidth."""
    return _jacobian(data) / 3, 3 * _jacobian(data)


SELECTORS: dict[str, Rule] = {
    "jacobian": _closed_form(_jacobian),
    "jacobian_median": _closed_form(_jacobian_median),
    "jacobian_lattice": _closed_form(_jacobian_lattice),
    "silverman": _closed_form(_silverman),
    "scale": _closed_form(_scale),
    "median": _closed_form(_median),
    "maxvar": _closed_form(_maxvar),
    "ssmm": _without_y(ssmm_line),
    "loo_without_y": _without_y(loo_without_y_line),
    "loo": _search("loo", _all_scales, points=15),
    "gcv": _search("gcv", _all_scales, points=15),
    "mml": _search("mml", _all_scales, points=15),
    "jacobian_loo": _search("loo", _around_jacobian, points=7),
    "jacobian_mml": _search("mml", _around_jacobian, points=7),
    "auto": _auto,
}
RULES = tuple(SELECTORS)
# The rules that look at all rows, however many they are, and at no sample of them.
WHOLE = ("jacobian", "jacobian_lattice", "silverman", "scale")
# The rules that solve, and so look at y.
SEARCHES = ("loo", "gcv", "mml", "jacobian_loo", "jacobian_mml", "auto")
# The rules that need a minimum of the Jacobian norm, which kernels with a kink do not have.
WITH_MINIMUM = ("jacobian", "jacobian_median", "jacobian_lattice", "jacobian_loo", "jacobian_mml")
# The rules that choose sigma, and lambda if it is not given, from X alone.
WITHOUT_Y = ("ssmm", "loo_without_y")
# The words that say how to choose the penalty.
ALPHAS = (*CRITERIA, "auto")


def searched_range(rule: str | None, data: TrainingData) -> tuple[float, float] | None:
    """The range of bandwidths in which a rule looks; None if it has no ends."""
    if rule in ("loo", "gcv", "mml"):
        return _all_scales(data)
    return _around_jacobian(data) if rule in ("jacobian_loo", "jacobian_mml") else None


def find(bandwidth: Any, data: TrainingData, name: str = "bandwidth") -> Found:
    """Bandwidth and penalty from a number, a rule's name or a function of the data."""
    if isinstance(bandwidth, str):
        check_choice(name, bandwidth, RULES)
        data.check_rows()
    alone = isinstance(bandwidth, str) and bandwidth in WITHOUT_Y
    if data.y is not None and len(data.y) > 1 and not data.y.any() and not alone:
        return _find_without_y(bandwidth, data)
    if isinstance(bandwidth, str):
        return SELECTORS[bandwidth](data)
    if callable(bandwidth):
        return _closed_form(lambda data: check_bandwidth(bandwidth(data)))(data)
    if not isinstance(bandwidth, Real) or isinstance(bandwidth, bool):
        raise TypeError(
            f"`{name}` must be a number, the name of a rule or a function, got {bandwidth!r}."
        )
    return _closed_form(lambda _: check_bandwidth(bandwidth))(data)


def loo_error(data: TrainingData, found: Found) -> float:
    """Leave-one-out error at what was found, in units of each target's mean square."""
    lams = np.atleast_1d(found.lam)
    if data.solver is None and len(lams) == 1:
        return float(_objective(data.with_lam(float(lams[0])), "loo")(found.sigma))
    with np.errstate(all="ignore"):  # a penalty of zero may divide by zero
        values = in_units_of(data.scale, data.spectrum(found.sigma).loo(lams), "loo")
    mean = float(np.diagonal(values).mean() if len(lams) > 1 else values.mean())
    return mean if np.isfinite(mean) else np.inf


def default_rule(data: TrainingData) -> str:
    """The rule where y says nothing: the Jacobian's, or the median where it has no minimum."""
    return "jacobian" if data.space.kernel.is_smooth else "median"


def _find_without_y(bandwidth: Any, data: TrainingData) -> Found:
    """Bandwidth and penalty for a constant y, which says nothing about either."""
    solves = isinstance(bandwidth, str) and bandwidth in SEARCHES
    penalty = data.penalty
    if penalty.criterion:
        penalty = replace(penalty, lam=float(np.clip(penalty.lam, *penalty.ends)))
    if solves or penalty.criterion:
        warn(
            "`y` is constant, so that no bandwidth or penalty can be chosen by it: the "
            f"{default_rule(data)} bandwidth and alpha={penalty.lam:g} are taken where a choice "
            "was asked for, and the constant is predicted."
        )
    rule = default_rule(data) if solves else bandwidth
    return find(rule, replace(data, y=None, penalty=replace(penalty, criterion=None)))


def check_alpha(alpha: Any) -> Penalty:
    """The penalty: a number, the word that says how to choose it, or those to choose from."""
    if isinstance(alpha, str):
        return Penalty(criterion=check_choice("alpha", alpha, ALPHAS))
    if np.ndim(alpha) == 0:
        lam = check_number("alpha", alpha, at_least=0, at_most=LARGEST)
        if 0 < lam < SMALLEST_PENALTY:
            raise ValueError(f"`alpha` must be 0 or at least {SMALLEST_PENALTY:g}, got {lam:g}.")
        return Penalty(lam)
    return Penalty(criterion="auto", given=np.unique(check_positive("alpha", alpha)))
