"""When the chosen bandwidth should not be trusted, in numbers and words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from . import theory
from ._compute.arrays import TINY, Array
from ._geometry.diameter import trimmed_diameter
from ._rules.searches import surface
from ._rules.training import TrainingData

__all__ = ["Diagnosis", "Finding", "diagnose"]

# What is looked for by solving is looked for on at most this many rows.
SAMPLE = 500

# A gain in leave-one-out R2 that is worth a search.
GAIN = 0.02


@dataclass(frozen=True)
class Finding:
    """One number, whether it is a reason for doubt, and what it means."""

    name: str
    value: float
    warning: bool
    sentence: str


@dataclass(frozen=True)
class Diagnosis:
    """Findings on a fitted model; prints as a table, renders as HTML, ``dict()`` for programs."""

    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that are reasons for doubt."""
        return tuple(finding for finding in self.findings if finding.warning)

    def dict(self) -> dict[str, dict[str, Any]]:
        """The findings as plain values, by name."""
        return {
            f.name: {"value": f.value, "warning": f.warning, "sentence": f.sentence}
            for f in self.findings
        }

    def __str__(self) -> str:
        width = max(len(f.name) for f in self.findings)
        return "\n".join(
            f"{'!' if f.warning else ' '} {f.name:<{width}}  {f.value:>10.4g}  {f.sentence}"
            for f in self.findings
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{'&#9888;' if f.warning else ''}</td><td>{escape(f.name)}</td>"
            f"<td style='text-align:right'>{f.value:.4g}</td>"
            f"<td style='text-align:left'>{escape(f.sentence)}</td></tr>"
            for f in self.findings
        )
        head = "<tr><th></th><th>what</th><th>value</th><th>meaning</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def diagnose(
    data: TrainingData, sigma: float, lam: Array, loo_residuals: Array, degrees_of_freedom: Array
) -> Diagnosis:
    """Look at a fitted model from all sides; `data` holds its training rows or a sample."""
    r2 = loo_r2(data, loo_residuals)
    gain = _loo_gain(data, sigma, lam)
    return Diagnosis(
        (
            *_loo_findings(data, r2, gain),
            *_scale_findings(data, sigma, gain),
            *_ridge_findings(data, sigma, lam, degrees_of_freedom, gain),
            *_geometry_findings(data, gain),
        )
    )


def loo_r2(data: TrainingData, loo_residuals: Array) -> float:
    """Mean over the targets that vary of their leave-one-out R2, rows counted by their weights."""
    w = data.w if len(data.w) == len(loo_residuals) else None  # else the rows are a sample
    errors = np.average(loo_residuals**2, axis=0, weights=w)
    centred = data.targets - np.average(data.targets, axis=0, weights=data.w)
    variance = np.average(centred**2, axis=0, weights=data.w)
    vary = variance > 0
    return float(np.mean(1.0 - errors[vary] / variance[vary])) if vary.any() else np.nan


def _loo_gain(data: TrainingData, sigma: float, lam: Array) -> float:
    """Leave-one-out R2 that the best of a coarse grid has more than the chosen point."""
    part = data.sample(SAMPLE)
    scale = (part.targets**2).mean(axis=0)
    if not scale.any():
        return 0.0
    sigma = sigma / data.carried_from(part)
    sigmas = np.geomspace(part.search_spacing / 2, max(part.l_max, sigma), 10)
    grid = surface(part.spectrum, scale, sigmas, data.penalty.lams, "loo")
    with np.errstate(divide="ignore", invalid="ignore"):  # nothing to solve with at lambda = 0
        values = part.spectrum(sigma).loo(np.unique(lam)) / np.maximum(scale, TINY)
    chosen = values[np.searchsorted(np.unique(lam), lam), np.arange(len(scale))].mean()
    return float(max(0.0, chosen - grid.curve().min())) if np.isfinite(chosen) else np.inf


def _loo_findings(data: TrainingData, r2: float, gain: float) -> Iterator[Finding]:
    yield Finding("leave-one-out R2", r2, False, "R2 on rows that the model has not seen.")
    much = gain > GAIN
    sentence = (
        f"Fitted to {min(len(data.w), SAMPLE)} of the rows, leave-one-out R2 would gain "
        f"{gain:.2f}: use bandwidth='auto', alpha='auto'."
        if much
        else "No other bandwidth and penalty would do much better."
    )
    yield Finding("gain of a search", gain, much, sentence)


def _scale_findings(data: TrainingData, sigma: float, gain: float) -> Iterator[Finding]:
    ratio = sigma / data.l_max
    wide = ratio > 1
    sentence = (
        "The kernel is wider than the data: the model is close to a polynomial of low degree."
        if wide
        else "The kernel is narrower than the data."
    )
    yield Finding("sigma / l_max", ratio, wide and gain > GAIN, sentence)
    spacing = data.even_spacing / data.l_max
    sparse = spacing > 1
    sentence = (
        f"{data.n:.6g} points are few in {data.p} dimensions: the Jacobian rule's even "
        "spacing exceeds l_max, and its bandwidth grows like p l_max."
        if sparse
        else "Enough points for the dimension."
    )
    yield Finding("spacing / l_max", spacing, sparse and gain > GAIN, sentence)


def _ridge_findings(
    data: TrainingData, sigma: float, lam: Array, degrees_of_freedom: Array, gain: float
) -> Iterator[Finding]:
    n, largest = data.n, float(np.max(lam))
    threshold = theory.lambda_threshold(n)
    above = largest > threshold
    sentence = (
        "The penalty is above 2 n exp(-3/2): the approximate Jacobian norm has no minimum, "
        "a Jacobian bandwidth is that at the threshold."
        if above
        else "The approximate Jacobian norm has a minimum at this penalty."
    )
    yield Finding("alpha / threshold", largest / threshold, above, sentence)
    part = data.sample(SAMPLE)
    s = part.spectrum(sigma).s
    lowest = float(np.min(lam))
    condition = (s[-1] + lowest) / max(s[0] + lowest, 1e-300 * s[-1])
    ill = condition > 1e12
    sentence = (
        "K + lambda I is close to singular: give a larger `alpha`."
        if ill
        else f"K + lambda I of {len(part.w)} rows is well enough conditioned."
    )
    yield Finding("condition", float(condition), ill, sentence)
    dof = float(np.max(degrees_of_freedom))
    follows = dof > 0.9 * n and gain > GAIN
    sentence = (
        "The model follows nearly every point, noise included: give a larger `alpha`, or 'loo'."
        if follows
        else f"Parameters that the model effectively uses for {n:.6g} rows."
    )
    yield Finding("degrees of freedom", dof, follows, sentence)


def _geometry_findings(data: TrainingData, gain: float) -> Iterator[Finding]:
    if data.space.distance.name != "euclidean":
        return
    share = data.share_equal
    many = share > 0.5
    sentence = (
        "More than half of the rows are equal to another one: n overstates how dense they lie."
        if many
        else "Share of rows that are equal to another one."
    )
    yield Finding("equal rows", share, many and gain > GAIN, sentence)
    stretch = data.l_max / max(trimmed_diameter(data.X, 0.01), TINY)
    far = stretch > 3
    sentence = (
        "The farthest 1 % of the rows make l_max: use bandwidth='auto'."
        if far
        else "Outliers do not make l_max."
    )
    yield Finding("l_max / trimmed l_max", stretch, far, sentence)
