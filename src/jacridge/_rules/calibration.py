"""Log-odds of classes from scores: a slope and an offset that minimise the log loss.

The target of a class is one for its rows and zero for others, minus the share of the class. A score
of zero therefore means that share. Two classes have one column, for the second class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax, softmax

from .._compute.arrays import Array

# Largest slope and offset; a score has a range of about one.
LARGEST_COEFFICIENT = 100.0

# Stopping criteria of L-BFGS-B: full precision for a model, early for comparing candidates.
PRECISE = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000}
ROUGH = {"ftol": 1e-7, "gtol": 1e-4}


@dataclass(frozen=True)
class LogOdds:
    """Log-odds slope * score + offset, with a number as offset for two classes, else (k,)."""

    slope: float
    offset: float | Array

    def __call__(self, scores: Array) -> Array:
        """Log-odds of scores (n, 1) or (n, k): of shape (n,) for two classes, else (n, k)."""
        odds = self.slope * scores + self.offset
        return odds[:, 0] if odds.shape[1] == 1 else odds


def probabilities(odds: Array) -> Array:
    """Probabilities of all classes from log-odds."""
    if odds.ndim == 1:
        return np.column_stack([expit(-odds), expit(odds)])
    return softmax(odds, axis=1)


def log_probabilities(odds: Array) -> Array:
    """Logarithms of the probabilities of all classes from log-odds."""
    if odds.ndim == 1:
        return np.column_stack([log_expit(-odds), log_expit(odds)])
    return log_softmax(odds, axis=1)


def most_likely(classes: Any, odds: Array) -> Any:
    """The class with the largest log-odds in each row."""
    return classes[(odds > 0).astype(np.intp) if odds.ndim == 1 else odds.argmax(axis=1)]


def uncalibrated(prior: Array) -> LogOdds:
    """Scores shifted so that the largest one, or the sign of the only one, is the prediction."""
    return LogOdds(1.0, float(prior[1]) - 0.5 if len(prior) == 2 else prior)


def calibrated(
    y: Array,
    scores: Array,
    w: Array,
    prior: Array,
    n: float,
    *,
    options: Mapping[str, float] = PRECISE,
) -> LogOdds:
    r"""Log-odds with the least log loss, for scores to which their own rows did not contribute.

    With scores :math:`s_j` and shares :math:`\pi_j` of the classes the log-odds of class j are
    :math:`a (s_j + \pi_j) + b_j`: 1 / a is the temperature, and :math:`\sum_j b_j^2 / n` is added
    to the mean loss. For two classes this is a sigmoid.

    Parameters
    ----------
    y, scores : targets and scores, of shape (n, 1) or (n, k)
    w : weights, of shape (n,)
    prior : shares of the classes
    n : number of rows that the weights represent
    options : when L-BFGS-B stops
    """
    w = w / w.sum()
    S, Y = shares_of(scores, prior), w[:, None] * smoothed(shares_of(y, prior), n)

    def loss(coef: Array) -> tuple[float, Array]:
        a, b = coef[0], coef[1:]
        Z = a * S + b
        Z -= Z.max(axis=1, keepdims=True)
        P = np.exp(Z)
        totals = P.sum(axis=1)
        R = (w / totals)[:, None] * P - Y  # weighted probabilities less targets
        gradient = np.append(np.vdot(R, S), R.sum(axis=0) + 2 / n * b)
        return float(b @ b / n + w @ np.log(totals) - np.vdot(Y, Z)), gradient

    k = len(prior)
    bounds = [(0.0, LARGEST_COEFFICIENT), *[(-LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)] * k]
    found = minimize(
        loss, np.append(4.0, np.zeros(k)), jac=True, bounds=bounds, options=dict(options)
    ).x
    a, b = float(found[0]), found[1:]
    if k > 2:
        return LogOdds(a, a * prior + b)
    return LogOdds(2 * a, float(a * (prior[1] - prior[0]) + b[1] - b[0]))


def shares_of(y: Array, prior: Array) -> Array:
    """Shares of all classes in rows with targets y: zero or one, except for merged rows."""
    if len(prior) > 2:
        return y + prior
    return np.hstack([prior[:1] - y, prior[1:] + y])


def smoothed(shares: Array, n: float) -> Array:
    """Shares of the classes, with one extra row of the other classes spread over all n rows.

    Otherwise scores that separate the training classes would give probabilities of zero.
    """
    k = shares.shape[1]
    return shares + (1.0 - k * shares) / ((n + 1.0) * (k - 1.0))


def log_losses(y: Array, odds: Array, prior: Array) -> Array:
    """Log loss of each row with targets y, of shape (n, 1) or (n, k)."""
    return -(shares_of(y, prior) * log_probabilities(odds)).sum(axis=1)


def calibrated_log_losses(y: Array, scores: Array, w: Array, prior: Array) -> Array:
    """Log loss of each row, after the scores have been calibrated on all rows."""
    return log_losses(y, calibrated(y, scores, w, prior, len(w), options=ROUGH)(scores), prior)
