"""The rules, one object each, that choose a bandwidth and, if it is not given, a penalty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from .._checks import (
    LARGEST,
    SMALLEST_PENALTY,
    check_bandwidth,
    check_choice,
    check_number,
    check_positive,
    is_real,
)
from .._compute.arrays import Array
from .._compute.warnings import warn
from .._geometry.space import LEARNED, LINEAR
from . import closed_forms
from .criteria import CRITERIA, GCV, LOO, MML, Criterion
from .joint import auto
from .searches import (
    Surface,
    best_of,
    minimise,
    minimise_near,
    surface_around,
)
from .training import Penalty, TrainingData
from .without_y import Line, loo_without_y_line, minimise_without_y, ssmm_line

if TYPE_CHECKING:
    from .._geometry.kernels import Kernel


@dataclass(frozen=True)
class Found:
    """Result of a rule: one bandwidth, and one penalty or one for each target."""

    sigma: float
    lam: float | Array


Chooser = Callable[[TrainingData], Found]

# The smallest and the largest bandwidth of a search.
SearchRange = Callable[[TrainingData], tuple[float, float]]


@dataclass(frozen=True)
class Rule:
    """A rule for the bandwidth, and its properties.

    Attributes
    ----------
    name : its name in `RULES`, or the name of the function
    choose : bandwidth and penalty for training data
    sees_all_rows : whether it uses all rows, never a sample
    looks_at_y : whether it solves, and so uses y
    chooses_without_y : whether it also chooses the penalty from X alone, unless that is given
    needs_minimum : whether it needs a minimum of the Jacobian norm, which kernels with a kink lack
    is_automatic : whether it also chooses the penalty, unless that is given
    ends : smallest and largest bandwidth that it tries; None if there are no limits
    spacing : distance of neighbours in its formula, for most rules that of evenly spread points
    """

    name: str
    choose: Chooser
    sees_all_rows: bool = False
    looks_at_y: bool = False
    chooses_without_y: bool = False
    needs_minimum: bool = False
    is_automatic: bool = False
    ends: SearchRange | None = None
    spacing: Callable[[TrainingData], float] = attrgetter("even_spacing")

    def suits(self, kernel: Kernel) -> bool:
        """Whether the rule can be used with a kernel."""
        return kernel.is_smooth or not self.needs_minimum


# A search locates the minimum on at most this many rows and refines it on all.
COARSE_ROWS = 1000
# The same for a search over sigma and lambda, which needs eigenvectors.
JOINT_ROWS = 700


def _closed_form(name: str, bandwidth: Callable[[TrainingData], float], **facts: Any) -> Rule:
    """Rule that uses a given lambda, or alternates between sigma and lambda until both agree."""

    def choose(data: TrainingData) -> Found:
        sigma = _of_distinct_rows(bandwidth(data), data)
        if not data.penalty.criterion:
            return Found(sigma, data.lam)
        criterion = _criterion_of(data)
        for _ in range(5):  # sigma depends on lambda weakly, if at all: two rounds are usual
            lams = _surface(data, criterion, np.array([sigma])).best()[1]
            data = data.with_lam(float(np.exp(np.log(lams).mean())))
            last, sigma = sigma, bandwidth(data)
            if abs(sigma / last - 1) < 1e-3:
                break
        return Found(last, lams)

    return Rule(name, choose, **facts)


def _of_distinct_rows(sigma: float, data: TrainingData) -> float:
    """Return the bandwidth, or raise an error that explains why it is zero."""
    if sigma < 1 / LARGEST and data.l_max:  # l_max raises its own error if all rows are equal
        raise ValueError(
            "`X` has too many duplicate rows for this rule: "
            f"the bandwidth would be {sigma:g}. Use another rule."
        )
    return sigma


def _criterion_of(data: TrainingData, default: Criterion = LOO) -> Criterion:
    """The criterion that chooses lambda; for "auto", the default of the rule."""
    return CRITERIA.get(data.penalty.criterion or "auto", default)


def _search(name: str, criterion: Criterion, ends: SearchRange, points: int, **facts: Any) -> Rule:
    """Rule that minimises a criterion over log sigma, and over lambda if that is not given."""

    def choose(data: TrainingData) -> Found:
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

    return Rule(name, choose, looks_at_y=True, ends=ends, **facts)


def _objective(data: TrainingData, criterion: Criterion) -> Callable[[float], float]:
    y, w, lam, scale = data.targets, data.w, data.lam, data.scale
    if data.solver is not None:
        lams = np.array([lam])
        return lambda sigma: float(
            criterion.surface(data.spectrum, scale, np.array([sigma]), lams).values.mean()
        )
    options: dict[str, Any] = {"centred": data.has_intercept, "scale": scale}
    return lambda sigma: criterion.at(data.pairs, sigma, lam, y, w, **options)


def _joint(data: TrainingData, criterion: Criterion, ends: SearchRange, points: int) -> Found:
    """Sigma and lambda together on a grid, one eigendecomposition for each sigma.

    With many rows, a sample locates the minimum, and all rows are used only around it.
    """
    if data.grid is not None:
        return Found(*_surface(data, criterion, np.unique(data.grid)).best())
    part = data if data.solver is not None else data.sample(JOINT_ROWS)
    sigmas = np.geomspace(*ends(part), points)
    found = _surface(part, criterion, sigmas)
    if part is not data:
        sigma, step = found.best()[0] * data.carried_from(part), sigmas[1] / sigmas[0]
        found = surface_around(sigma, step, partial(_surface, data, criterion))
    return Found(*found.best())


def _surface(data: TrainingData, criterion: Criterion, sigmas: Array) -> Surface:
    """A criterion for all penalties at some bandwidths."""
    lams = data.penalty.lams
    return criterion.surface(data.spectrum, data.scale, sigmas, lams, each=data.each)


def _all_scales(data: TrainingData) -> tuple[float, float]:
    """From a quarter of the neighbour distance, where the kernel is diagonal, to l_max."""
    return data.search_spacing / 4, data.l_max


def _around_jacobian(data: TrainingData) -> tuple[float, float]:
    """From a third to three times the Jacobian bandwidth."""
    sigma = closed_forms.jacobian(data)
    return sigma / 3, 3 * sigma


def _without_y(name: str, criterion: Callable[[TrainingData], Line]) -> Rule:
    """Rule that minimises a criterion of X over sigma, and over lambda if that is not given."""
    return Rule(
        name, lambda data: Found(*minimise_without_y(criterion, data)), chooses_without_y=True
    )


SELECTORS: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        _closed_form("jacobian", closed_forms.jacobian, sees_all_rows=True, needs_minimum=True),
        _closed_form(
            "jacobian_median",
            closed_forms.jacobian_median,
            needs_minimum=True,
            spacing=attrgetter("neighbour_spacing"),
        ),
        _closed_form(
            "jacobian_lattice",
            closed_forms.jacobian_lattice,
            sees_all_rows=True,
            needs_minimum=True,
        ),
        _closed_form("silverman", closed_forms.silverman, sees_all_rows=True),
        _closed_form("scale", closed_forms.scale, sees_all_rows=True),
        _closed_form("median", closed_forms.median),
        _closed_form("maxvar", closed_forms.maxvar),
        _without_y("ssmm", ssmm_line),
        _without_y("loo_without_y", loo_without_y_line),
        _search("loo", LOO, _all_scales, points=15),
        _search("gcv", GCV, _all_scales, points=15),
        _search("mml", MML, _all_scales, points=15),
        _search("jacobian_loo", LOO, _around_jacobian, points=7, needs_minimum=True),
        _search("jacobian_mml", MML, _around_jacobian, points=7, needs_minimum=True),
        Rule(
            "auto",
            lambda data: Found(*auto(data, _criterion_of(data))),
            looks_at_y=True,
            is_automatic=True,
        ),
    )
}
RULES = tuple(SELECTORS)
# Words for how the penalty is chosen.
ALPHAS = (*CRITERIA, "auto")


def as_rule(bandwidth: Any, parameter: str = "bandwidth") -> Rule:
    """Rule for a name or for a function of the data, or one that returns the given number."""
    if isinstance(bandwidth, str):
        return SELECTORS[check_choice(parameter, bandwidth, RULES)]
    if callable(bandwidth):
        name = getattr(bandwidth, "__name__", "function")
        return _closed_form(name, lambda data: check_bandwidth(bandwidth(data)))
    if not isinstance(bandwidth, Real) or isinstance(bandwidth, bool):
        raise TypeError(
            f"`{parameter}` must be a number, the name of a rule or a function, got {bandwidth!r}."
        )
    return _closed_form("number", lambda _: check_bandwidth(bandwidth), sees_all_rows=True)


def find(bandwidth: Any, data: TrainingData, parameter: str = "bandwidth") -> Found:
    """Bandwidth and penalty from a number, a rule's name or a function of the data."""
    rule = as_rule(bandwidth, parameter)
    if isinstance(bandwidth, str):
        data.check_rows()
    constant = data.y is not None and len(data.y) > 1 and not data.y.any()
    if constant and not rule.chooses_without_y:
        return _found_without_y(rule, data)
    return rule.choose(data)


def _found_without_y(rule: Rule, data: TrainingData) -> Found:
    """Bandwidth and penalty for a constant y, which says nothing about either."""
    jacobian, penalty = SELECTORS["jacobian"], data.penalty
    default = jacobian if jacobian.suits(data.space.kernel) else SELECTORS["median"]
    if penalty.criterion:
        penalty = replace(penalty, lam=float(np.clip(penalty.lam, *penalty.ends)))
    if rule.looks_at_y or penalty.criterion:
        warn(
            "`y` is constant and cannot be used to choose a bandwidth or penalty. Where a choice "
            f"was asked for, the {default.name} bandwidth and alpha={penalty.lam:g} are used "
            "instead, and the model predicts the constant."
        )
    rule = default if rule.looks_at_y else rule
    return rule.choose(replace(data, y=None, penalty=replace(penalty, criterion=None)))


def loo_error(data: TrainingData, found: Found) -> float:
    """Leave-one-out error at the bandwidth and penalty found, in units of mean squares of y."""
    lams = np.atleast_1d(found.lam)
    if data.solver is None and len(lams) == 1:
        return float(_objective(data.with_lam(float(lams[0])), LOO)(found.sigma))
    with np.errstate(all="ignore"):  # a penalty of zero may divide by zero
        values = LOO.in_units_of(data.scale, data.spectrum(found.sigma).loo(lams))
    mean = float(np.diagonal(values).mean() if len(lams) > 1 else values.mean())
    return mean if np.isfinite(mean) else np.inf


def check_alpha(alpha: Any) -> Penalty:
    """The penalty: a number, a word for how to choose it, or a list to choose from."""
    if isinstance(alpha, str):
        return Penalty(criterion=check_choice("alpha", alpha, ALPHAS))
    if is_real(alpha) or np.ndim(alpha) == 0:
        return Penalty(check_penalty(alpha))
    given = np.unique(check_positive("alpha", alpha, least=SMALLEST_PENALTY))
    return Penalty(criterion="auto", given=given)


def check_penalty(alpha: Any) -> float:
    """A penalty that is given as a number."""
    lam = check_number("alpha", alpha, at_least=0, at_most=LARGEST)
    if 0 < lam < SMALLEST_PENALTY:
        raise ValueError(f"`alpha` must be 0 or at least {SMALLEST_PENALTY:g}, got {lam:g}.")
    return lam


def later_rows_tune(bandwidth: Any, alpha: Any) -> bool:
    """Whether `held_out="later"` chooses bandwidth and penalty by the error on later rows."""
    return as_rule(bandwidth).is_automatic and check_alpha(alpha).criterion in (None, "auto")


def later_rows_choose(bandwidth: Any, alpha: Any, kernel: str, metric: str) -> bool:
    """Whether a fit with these parameters chooses anything with `held_out="later"`."""
    tunes = later_rows_tune(bandwidth, alpha)
    return metric in LINEAR and (kernel == "auto" or metric in LEARNED or tunes)
