"""Findings on the rows and the features that a model was fitted to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from .._rules.training import TrainingData
from ._gains import GRID_LAMBDAS, Gain, best_fit, gain_of, r2_of_groups, sampled, sigma_range
from ._result import Finding, Fitted
from ._suspects import near_duplicates, r2_alone

if TYPE_CHECKING:
    from .._compute.arrays import Array

# With fewer effective rows than this, the numbers are uncertain.
FEW_ROWS = 20
# Share of the rows that may have a weight of zero without a warning.
DROPPED = 0.5
# R2 of a single feature above which it may have been derived from y.
LEAK = 0.99
# Ratio of standard deviations above which the scales of features differ a lot.
UNLIKE = 10.0
# Decrease of the leave-one-out R2 from which near duplicates matter.
FALL = 0.1


def row_findings(data: TrainingData, fit: Fitted) -> Iterator[Finding]:
    """How many rows there are to learn from."""
    w = data.w / data.w.max()
    count = float(w.sum() ** 2 / (w @ w))
    few = count < FEW_ROWS
    sentence = "Number of equally weighted rows that would carry as much information."
    if few and len(w) < FEW_ROWS:
        rows = "row" if len(w) == 1 else "rows"
        sentence = f"Only {len(w)} distinct {rows}: all numbers here are uncertain."
    elif few:
        sentence = (
            f"A few rows have most of the weight: the {len(w)} rows carry as much information as "
            f"{count:.1f} rows of equal weight."
        )
    yield Finding("effective rows", count, few, sentence)
    many = fit.dropped > DROPPED
    sentence = (
        f"{fit.dropped:.0%} of the rows have a weight of zero and were not used."
        if many
        else "Share of the rows that have a weight of zero."
    )
    yield Finding("dropped rows", fit.dropped, many, sentence)


def duplicate_findings(data: TrainingData, fit: Fitted, gain: Gain) -> Iterator[Finding]:
    """Rows that repeat others, exactly or nearly."""
    if not fit.features:
        return
    share = data.share_equal
    many = share > 0.5
    sentence = (
        "More than half of the rows are duplicates, which inflate n."
        if many
        else "Share of rows that repeat an earlier row."
    )
    yield Finding("equal rows", share, many and gain.is_clear, sentence)
    group = near_duplicates(fit.table, data.w)
    share, sentence, matter = 1 - (group.max() + 1) / len(group), "", False
    if share > 0.1 and group.any() and data.targets.any():
        alone, together = r2_of_groups(data, group, fit.sigma, fit.lam)
        matter = alone - together > FALL
        sentence = (
            f" Leave-one-out R2 is {alone:.2f} if near duplicates are left out one at a time, and "
            f"{together:.2f} if they are left out together."
        )
    yield Finding(
        "near duplicates", share, matter, "Share of rows that nearly repeat another." + sentence
    )


def feature_findings(data: TrainingData, fit: Fitted) -> Iterator[Finding]:
    """Features whose scale, or whose agreement with y, is a reason for doubt."""
    if len(fit.features) < 2 or not data.targets.any():
        return
    if len(data.w) >= FEW_ROWS:
        yield _leak_finding(data, fit)
    if fit.scales_matter:
        yield _scale_finding(data)


def _leak_finding(data: TrainingData, fit: Fitted) -> Finding:
    """How well the best single feature predicts y."""
    # One row per group of near duplicates: otherwise a row's neighbour in order would reveal its y.
    first = np.unique(near_duplicates(fit.table, data.w), return_index=True)[1]
    y, w = data.targets[first], data.w[first]
    alone = {name: r2_alone(x[first], y, w) for name, x in fit.features.items()}
    best = max(alone, key=lambda name: alone[name])
    leaks = alone[best] > LEAK
    mean = f" (mean over {y.shape[1]} targets)" if y.shape[1] > 1 else ""
    sentence = (
        f"{best} alone predicts y: make sure that it was not derived from y."
        if leaks
        else f"R2 of the best single feature, {best}{mean}."
    )
    return Finding("best single feature", alone[best], leaks, sentence)


def _scale_finding(data: TrainingData) -> Finding:
    """Whether features of small scale hardly count."""
    std = data.extent.std
    std = np.where(std > 1e-9 * np.abs(data.X).max(axis=0), std, 0.0)
    some = std[std > 0]
    ratio = float(some.max() / some.min()) if len(some) else 1.0
    gain = _scaled_gain(data, std) if ratio > UNLIKE else Gain()
    sentence = "Largest ratio of the standard deviations of features."
    if gain.is_clear:
        sentence = (
            "The features have different scales, and those of small scale hardly count: on "
            f"{len(sampled(data).w)} of the rows, leave-one-out R2 gains {gain.value:.2f} with "
            "metric='scaled'."
        )
    return Finding("ratio of scales", ratio, gain.is_clear, sentence)


def _scaled_gain(data: TrainingData, std: Array) -> Gain:
    """Gain from scaling features to equal standard deviations, both with the best of a grid."""
    part = sampled(data)
    X = part.X[:, std > 0] / std[std > 0]
    scaled = part.with_rows(X, part.y, part.w, for_comparison=True)
    scaled.replicates = part.replicates
    fits = [best_fit(each, sigma_range(each, each.l_max), GRID_LAMBDAS) for each in (part, scaled)]
    return gain_of(part, fits[1], fits[0])
