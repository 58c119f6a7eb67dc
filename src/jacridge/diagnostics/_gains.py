"""Gain of another bandwidth, penalty or metric, measured by leave-one-out on a sample."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._compute.arrays import TINY, Array, Indices
from .._rules.criteria import LEFT_OUT, LOO
from .._rules.training import TrainingData

# Gains are measured on at most this many rows.
GAIN_ROWS = 500
# A gain on a sample is measured again on this many rows.
MORE_ROWS = 3000

# A gain in leave-one-out R2 that is worth reporting, if it exceeds two standard errors.
GAIN = 0.02

SIGMAS = 10
GRID_LAMBDAS = np.logspace(-10, 4, 29)


@dataclass(frozen=True)
class Fit:
    """A bandwidth, a penalty for each target, and squared leave-one-out errors of the rows.

    The errors are in units of the variance of y: one minus their mean is an R2.
    """

    sigma: float
    lam: Array
    errors: Array


@dataclass(frozen=True)
class Gain:
    """Gain in leave-one-out R2 of another fit, its standard error, and its parameters."""

    value: float = 0.0
    error: float = 0.0
    sigma: float = np.nan
    lam: float = np.nan

    @property
    def is_clear(self) -> bool:
        """Whether the gain is worth reporting."""
        return self.value > max(GAIN, 2 * self.error)


def sampled(data: TrainingData) -> TrainingData:
    """A sample of the rows, with weights capped so that no row decides alone."""
    rows = np.random.default_rng(0).permutation(len(data.w))[:GAIN_ROWS]
    return data.part(np.sort(rows), for_comparison=True)


def fit_at(part: TrainingData, sigma: float, lam: Array) -> Fit:
    """The fit with these penalties, one for each target."""
    lams, places = np.unique(lam, return_inverse=True)
    errors = _errors(part, sigma, lams)[:, places.ravel(), np.arange(len(lam))]
    return Fit(sigma, lam, errors.sum(axis=1))


def r2_of(part: TrainingData, fit: Fit) -> float:
    """Leave-one-out R2 of a fit."""
    return 1.0 - float(np.average(fit.errors, weights=part.counts))


def r2_of_groups(
    data: TrainingData, group: Indices, sigma: float, lam: Array
) -> tuple[float, float]:
    """Leave-one-out R2 if rows are left out one at a time, and if groups are left out together.

    Groups are drawn at random, with at most a tenth of a sample from each. A group that is left out
    as a whole becomes one row with its total weight and mean target.
    """
    rank = np.random.default_rng(0).permutation(int(group.max()) + 1)[group]
    rows = np.argsort(rank, kind="stable")
    place = np.arange(len(rows)) - np.searchsorted(rank[rows], rank[rows])  # within the group
    rows = np.sort(rows[place < GAIN_ROWS // 10][:GAIN_ROWS])
    part, group = (
        data.part(rows, for_comparison=True),
        np.unique(group[rows], return_inverse=True)[1],
    )
    part.replicates = None  # whole rows are left out, singly as well as in groups
    _, first = np.unique(group, return_index=True)
    w: Array = np.bincount(group, weights=part.w).astype(np.float64)
    sums = [np.bincount(group, weights=part.w * column) for column in part.targets.T]
    y = np.column_stack(sums) / w[:, None]
    merged = part.with_rows(part.X[first], y, w, for_comparison=True)
    sigma = sigma / data.carried_from(part)
    return r2_of(part, fit_at(part, sigma, lam)), r2_of(merged, fit_at(merged, sigma, lam))


def best_fit(part: TrainingData, sigmas: Iterable[float], lams: Array) -> Fit:
    """The fit with the least mean error among some bandwidths and penalties."""
    fits, w = [], part.counts / part.counts.sum()
    for sigma in sigmas:
        errors = _errors(part, sigma, lams)
        means = np.einsum("i,ilt->lt", w, errors)
        if part.penalty.shared:
            means = np.broadcast_to(means.sum(axis=1, keepdims=True), means.shape)
        best = means.argmin(axis=0)
        chosen = errors[:, best, np.arange(len(best))].sum(axis=1)
        fits.append(Fit(sigma, lams[best], chosen))
    return min(fits, key=lambda fit: w @ fit.errors)


def _errors(part: TrainingData, sigma: float, lams: Array) -> Array:
    """Squared leave-one-out errors (rows, lambdas, targets); infinite if no system is solved."""
    with np.errstate(all="ignore"):  # a penalty of zero may divide by zero
        E2 = part.spectrum(sigma).squared_errors(slice(len(part.w)), lams) / _units(part)
    return np.where(np.isfinite(E2), E2, np.inf)


def _units(part: TrainingData) -> Array:
    """Units of each target in which errors are added up; infinite for a target of zeros."""
    scale = (part.targets**2).mean(axis=0)
    units = np.full_like(scale, scale.sum()) if part.penalty.shared else scale * (scale > 0).sum()
    return np.where(scale > 0, units, np.inf)


def gain_of(part: TrainingData, other: Fit, fit: Fit) -> Gain:
    """How much smaller the errors of another fit are."""
    lam = float(np.exp(np.log(np.maximum(other.lam, TINY)).mean()))
    if not np.isfinite(other.errors).all():
        return Gain()
    if not np.isfinite(fit.errors).all():
        return Gain(np.inf, 0.0, other.sigma, lam)
    w, d = part.counts / part.counts.sum(), fit.errors - other.errors
    value = float(w @ d)
    error = float(np.sqrt(w**2 @ np.square(d - value)))
    return Gain(max(value, 0.0), error, other.sigma, lam)


def search_gain(data: TrainingData, sigma: float, lam: Array) -> Gain:
    """Gain of the best of a grid of bandwidths and penalties over a fit.

    If there are more rows than in the sample, a gain is measured again on more rows.
    """
    part = sampled(data)
    carried = data.carried_from(part)
    fit = fit_at(part, sigma / carried, lam)
    best = best_fit(part, sigma_range(part, fit.sigma), GRID_LAMBDAS)
    found = gain_of(part, best, fit)
    found = replace(found, sigma=found.sigma * carried)
    if not found.is_clear or len(part.w) == len(data.w):
        return found
    best, fit = replace(best, sigma=best.sigma * carried), replace(fit, sigma=sigma)
    return replace(found, value=min(found.value, _gain_on_more(data, best, fit)))


def sigma_range(part: TrainingData, sigma: float) -> Array:
    """Bandwidths from half the neighbour distance to beyond l_max, including sigma."""
    low, high = min(part.search_spacing / 2, sigma), 2 * max(part.l_max, sigma)
    return np.geomspace(low, high, SIGMAS)


def _gain_on_more(data: TrainingData, other: Fit, fit: Fit) -> float:
    """The gain, measured on more rows than a sample has."""
    part = data.part(
        np.random.default_rng(1).permutation(len(data.w))[:MORE_ROWS], for_comparison=True
    )
    carried, units = data.carried_from(part), _units(part)
    options: dict[str, Any] = {"centred": part.has_intercept, "counts": part.counts}
    options |= {"last": LEFT_OUT, "replicates": part.compared}

    def error(at: Fit, t: int) -> float:
        y, place = part.targets[:, [t]], (at.sigma / carried, at.lam[t])
        return LOO.at(part.pairs, *place, y, part.w, **options) / float(units[t])

    return max(sum(error(fit, t) - error(other, t) for t in range(len(units))), 0.0)
