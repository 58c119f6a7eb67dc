"""Reasons to trust a fitted model, or not, in numbers and words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import theory
from .._compute.arrays import TINY, Array, weighted_mean
from .._geometry.diameter import trimmed_diameter
from .._geometry.space import LINEAR
from .._rules.registry import Rule, as_rule
from .._rules.training import Penalty, TrainingData, data_in_memory
from .._solvers.exact import ExactModel
from ._data import duplicate_findings, feature_findings, row_findings
from ._gains import GRID_LAMBDAS, Gain, best_fit, fit_at, gain_of, sampled, search_gain
from ._result import Diagnosis, Finding, Fitted

if TYPE_CHECKING:
    from .._solvers.function import FittedFunction
    from .._solvers.model import HeldOut

__all__ = ["Diagnosis", "Finding", "Fitted", "diagnose"]

# A model follows nearly every point if its degrees of freedom per row exceed the first number.
# Without noise, which a leave-one-out R2 above the second number shows, this is no problem.
FOLLOWS, NO_NOISE = 0.9, 0.5
CHOICE = "gain of the choice"  # name of a finding
# Condition number of K + lambda I above which coefficients have less than two correct digits.
ILL = 1e14


def diagnosis_of(
    function: FittedFunction, notes: Mapping[str, Any], choices: Sequence[Mapping[str, Any]]
) -> Diagnosis:
    """Diagnosis of a fitted function, given notes on its fit and the table of candidates."""
    degrees = function.model.degrees_of_freedom
    data, lams = training_sample(function, notes), notes.get("lams")
    features = {}
    if notes["metric"] in LINEAR:
        features = dict(zip(function.names, function.unmapped(data.X).T, strict=True))
    fit = Fitted(
        function.sigma,
        np.broadcast_to(function.lams, data.targets.shape[1]),
        loo_r2(function.model.held_out_singly),
        degrees,
        rows=len(data.w) if data.X is function.Z and data.replicates is None else data.n,
        rule=notes.get("rule"),
        lams=(lams[0], lams[1]) if lams else None,
        dropped=notes.get("dropped", 0.0),
        choices=choices,
        features=features,
        scales_matter=notes["metric"] == "euclidean",
        later=notes.get("held_out") == "later",
        loo_r2_of_rows=loo_r2(function.model.held_out),
    )
    return diagnose(data, fit)


def training_sample(function: FittedFunction, notes: Mapping[str, Any]) -> TrainingData:
    """The training rows, or the sample of them that a model keeps."""
    given = notes.get("lams") is None and len(function.lams) == 1
    penalty = Penalty(shared=notes.get("shared", False))
    penalty = replace(penalty, lam=float(function.lams[0])) if given else penalty
    options: dict[str, Any] = {"penalty": penalty, "has_intercept": function.kind != "none"}
    known = function.model.known_rows(function.Z)
    if isinstance(function.model, ExactModel):
        options["replicates"] = function.model.rows.replicates
    options["copies"] = notes.get("copies")  # unknown to older versions
    return data_in_memory(*known, function.space, n=notes["n"], **options)


def loo_r2(held: HeldOut) -> float:
    """Leave-one-out R2, averaged over the targets that vary; rows count by their weights.

    Squared deviations from the means of equal rows are part of both the errors and the variance.
    """
    centred = held.y - weighted_mean(held.y, held.w)
    errors, variance = (
        np.average(part**2, axis=0, weights=held.w) + held.within
        for part in (held.residuals, centred)
    )
    vary = variance > 0
    return float(np.mean(1.0 - errors[vary] / variance[vary])) if vary.any() else np.nan


def diagnose(data: TrainingData, fit: Fitted) -> Diagnosis:
    """All findings on a fitted model; `data` holds its training rows or a sample."""
    findings = [
        _r2_finding(fit.loo_r2, fit.loo_r2_of_rows),
        *choice_findings(fit.choices),
        *row_findings(data, fit),
    ]
    try:
        data.check_rows()
        _ = data.l_max
    except ValueError:  # too few rows, or all equal: no bandwidth is better than another
        return Diagnosis((*findings, _freedom_finding(fit, Gain())))
    gain = Gain()  # a model of later rows need not predict those in between best
    if data.targets.any() and not fit.later:
        gain = search_gain(data, fit.sigma, fit.lam)
    findings += [
        _search_finding(data, fit, gain),
        *_range_findings(data, fit),
        _width_finding(data, fit, gain),
        *_rule_findings(data, fit, gain),
        _condition_finding(data, fit),
        _freedom_finding(fit, gain),
        *duplicate_findings(data, fit, gain),
        *feature_findings(data, fit),
    ]
    return Diagnosis(tuple(findings))


def _r2_finding(r2: float, of_rows: float) -> Finding:
    useless = r2 <= 0
    sentence = "R2 on unseen rows; duplicate rows are left out together."
    if not np.isnan(of_rows) and of_rows != r2:
        sentence = (
            "R2 on new observations of these rows: equal rows differ in y, and are left out one at "
            f"a time. On new rows it is {of_rows:.2f}."
        )
    if useless:
        sentence = "The mean of y predicts unseen rows at least as well as the model does."
    elif np.isnan(r2):
        sentence = "R2 is not defined, as y is the same in all rows."
    return Finding("leave-one-out R2", r2, useless, sentence)


def r2_of_classes(finding: Finding) -> Finding:
    """The finding in terms of classes, which have shares and no mean; others are unchanged."""
    if not (finding.name == "leave-one-out R2" and finding.warning):
        return finding
    sentence = (
        "Always predicting the shares of the classes does at least as well as the model on unseen "
        "rows."
    )
    return replace(finding, sentence=sentence)


def choice_findings(
    choices: Sequence[Mapping[str, Any]], *, classes: bool = False
) -> Iterator[Finding]:
    """The choice, its scores on held-out rows, and those of the plain metric and the runner-up."""
    chosen = next((row for row in choices if row["chosen"]), None)
    if chosen is None:
        return
    plain = min((row for row in choices if not row["rounds"]), key=lambda row: row["error"])
    others = [row for row in choices if row is not chosen][:1]

    def scores(row: Mapping[str, Any], why: str = "") -> str:
        whole, most = (e if classes else 1 - e for e in (row["error"], row["trimmed_error"]))
        return f"{whole:.3f} ({most:.3f}{why})"

    score = scores(chosen, " without the hardest 2 %, which decides")
    sentence = (
        f"{_named(chosen)} was chosen. Its {'log loss' if classes else 'R2'} on held-out rows is "
        f"{score}."
    )
    if plain is not chosen and plain not in others:
        sentence += f" {_named(plain).capitalize()} has {scores(plain)}."
    for other in others:
        simpler = other["trimmed_error"] < chosen["trimmed_error"]
        sentence += (
            f" The runner-up, {_named(other)}, has {scores(other)}"
            f"{', hardly better, and is less simple' if simpler else ''}."
        )
    yield Finding(CHOICE, plain["error"] - chosen["error"], False, sentence)


def _named(row: Mapping[str, Any]) -> str:
    if not row["rounds"]:
        return f"{row['kernel']} in the plain metric"
    rounds = "1 round" if row["rounds"] == 1 else f"{row['rounds']} rounds"
    return f"{row['kernel']} in a {row['kind']} metric after {rounds}"


def _rule_of(fit: Fitted) -> Rule:
    """The bandwidth's rule; a rule that returns the given bandwidth if it has no name."""
    return as_rule(fit.rule or fit.sigma)


def _search_finding(data: TrainingData, fit: Fitted, gain: Gain) -> Finding:
    if fit.later:
        sentence = "Not compared: later rows chose bandwidth and penalty."
        return Finding("gain of a search", np.nan, False, sentence)
    if not gain.is_clear:
        sentence = "No other bandwidth and penalty would do much better."
        return Finding("gain of a search", gain.value, False, sentence)
    undone = [
        *([] if fit.rule in ("loo", "auto") else ["bandwidth='auto'"]),
        *([] if fit.lams else ["alpha='auto'"]),
    ]
    advice = f"use {', '.join(undone)}"
    if not undone:
        advice = f"the best bandwidth is {gain.sigma:.3g}, with a penalty of {gain.lam:.2g}"
    sentence = (
        f"On a sample of {len(sampled(data).w)} rows, leave-one-out R2 would rise by "
        f"{gain.value:.2f}: {advice}."
    )
    return Finding("gain of a search", gain.value, True, sentence)


def _range_findings(data: TrainingData, fit: Fitted) -> Iterator[Finding]:
    """Whether bandwidth or penalty is at an end of its range, and how much lies beyond."""
    if not data.targets.any():
        return
    part, rule, steps = sampled(data), _rule_of(fit), np.array([1.0, 2.0])
    sigma = fit.sigma / data.carried_from(part)

    def gain(sigmas: Array, lams: Array) -> Gain:
        return gain_of(part, best_fit(part, sigmas, lams), fit_at(part, sigma, fit.lam))

    if rule.ends is not None:
        side = _side(fit.sigma, *rule.ends(data))
        found = gain(sigma * 2.0 ** (side * steps), GRID_LAMBDAS) if side else Gain()
        yield _end_finding("bandwidth", fit.sigma, side, found)
    if fit.lams is not None:
        lam = float(np.exp(np.log(np.maximum(fit.lam, TINY)).mean()))
        side = _side(lam, *fit.lams)
        found = gain(np.array([sigma]), lam * 10.0 ** (side * steps)) if side else Gain()
        yield _end_finding("penalty", lam, side, found)


def _side(value: float, low: float, high: float) -> int:
    """-1 at the lower end of a range, 1 at its upper end, else 0."""
    return int(value >= 0.99 * high) - int(value <= 1.01 * low)


def _end_finding(what: str, value: float, side: int, gain: Gain) -> Finding:
    end = "largest" if side > 0 else "smallest"
    sentence = f"The {what} lies within the range that was searched."
    if side:
        sentence = (
            f"The {what} is the {end} that was tried; beyond it leave-one-out R2 gains "
            f"{gain.value:.2f}."
        )
    return Finding(what, float(value), gain.is_clear, sentence)


def _width_finding(data: TrainingData, fit: Fitted, gain: Gain) -> Finding:
    ratio = fit.sigma / data.l_max
    wide = ratio > 1
    sentence = f"The kernel is {'wider' if wide else 'narrower'} than the data"
    if wide and data.space.kernel.smoothness == np.inf:
        sentence += ": the model is close to a polynomial"
    sentence += "."
    return Finding("sigma / l_max", ratio, wide and gain.is_clear, sentence)


def _rule_findings(data: TrainingData, fit: Fitted, gain: Gain) -> Iterator[Finding]:
    """Where the assumptions behind a bandwidth's rule fail."""
    if not _rule_of(fit).needs_minimum:
        return
    spacing = data.even_spacing / data.l_max
    sparse = spacing > 1
    sentence = (
        f"{data.n:.6g} points are few in {data.p} dimensions: the Jacobian rule's even "
        "spacing exceeds l_max, and its bandwidth grows like p l_max."
        if sparse
        else "Enough points for the dimension."
    )
    yield Finding("spacing / l_max", spacing, sparse and gain.is_clear, sentence)
    share = float(np.max(fit.lam)) / theory.lambda_threshold(data.n)
    above = share > 1
    sentence = (
        "The penalty is above 2 n exp(-3/2): the approximate Jacobian norm has no minimum, "
        "so the Jacobian rules use the bandwidth at the threshold."
        if above
        else "The approximate Jacobian norm has a minimum at this penalty."
    )
    yield Finding("alpha / threshold", share, above, sentence)
    if not data.space.distance.is_euclidean:
        return
    stretch = data.l_max / max(trimmed_diameter(data.X, 0.01), TINY)
    far = stretch > 3
    sentence = (
        "The farthest 1 % of the rows determine the largest distance, and with it the bandwidth."
        if far
        else "The largest distance does not come from outliers."
    )
    yield Finding("l_max / trimmed l_max", stretch, far and gain.is_clear, sentence)


def _condition_finding(data: TrainingData, fit: Fitted) -> Finding:
    part = sampled(data)
    s = part.spectrum(fit.sigma).s
    lowest = float(np.min(fit.lam)) / s[-1]
    condition = (1.0 + lowest) / max(s[0] / s[-1] + lowest, 1e-300)
    ill = condition > ILL
    sentence = (
        "K + lambda I is close to singular, and its solution has few correct digits."
        if ill
        else f"K + lambda I of {len(part.w)} rows is sufficiently well conditioned."
    )
    return Finding("condition", float(condition), ill, sentence)


def _freedom_finding(fit: Fitted, gain: Gain) -> Finding:
    freedom, n = float(np.max(fit.degrees_of_freedom)), fit.rows
    follows = freedom > FOLLOWS * n and (gain.is_clear or fit.loo_r2 <= NO_NOISE)
    sentence = (
        f"The model follows nearly every one of {n:.6g} points, noise included."
        if follows
        else f"Effective number of parameters for {n:.6g} rows."
    )
    return Finding("degrees of freedom", freedom, follows, sentence)
