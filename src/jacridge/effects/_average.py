"""Averages over rows of slopes, differences and predictions, with their standard errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .._checks import check_number
from .._compute.arrays import Array
from .._compute.threads import in_threads
from .._solvers.influence import NoiseOf
from ._errors import ErrorKind, error_kind, inference, known_degrees, numbered
from ._table import Effect, Effects, held_fixed
from ._terms import Columns, Difference, Slope, Term, terms_of

if TYPE_CHECKING:
    from .._rules.refits import Refits
    from .._solvers.function import FittedFunction
    from ._classes import ClassFunction

QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Observations:
    """Rows over which effects are averaged, and the training rows, which show what varies.

    Attributes
    ----------
    X : array of shape (n, p)
    w : how much each row counts
    X_train : training rows of positive weight, or a sample of them
    w_train : weights of all training rows as given
    """

    X: Array
    w: Array
    X_train: Array
    w_train: Array


@dataclass(frozen=True)
class Group:
    """Rows of one group, and the share of each in its average."""

    label: Any
    X: Array
    w: Array

    @cached_property
    def share(self) -> Array:
        """Weights that sum to one."""
        return self.w / self.w.sum()


# A function of k targets whose effects are averaged over rows, with their errors.
Function: TypeAlias = "FittedFunction | ClassFunction"


def average_effects(
    function: Function,
    rows: Observations,
    errors: ErrorKind,
    *,
    variables: Any = None,
    at: Any = "observed",
    kind: str = "auto",
    by: Any = None,
    level: float = 0.95,
    classes: bool = False,
) -> Effects:
    """Average effects of the variables, for all rows or those of each group."""
    level = check_number("level", level, above=0, below=1)
    features = Columns(function.names, rows.X_train, function.is_smooth)
    terms = terms_of(features, variables, kind)
    groups = [placed(group, at, features) for group in _groups(rows, by, features)]
    averaging = Averaging(groups, terms)
    values, functionals = averaging.of(function)
    estimates = averaging.means(values)
    deviations = function.average_errors(functionals, errors.of)
    degrees = known_degrees(function.degrees(errors.degrees))
    if errors.refits is not None:
        refits = errors.refits()
        deviations = np.hypot(deviations, averaging.added_errors(function, refits, errors.of))
        degrees = [min(each, len(refits.parts) - 1.0) for each in degrees]
    found = []
    for t, target in enumerate(function.targets):
        for i, (group, term) in enumerate(averaging.names):
            quartiles = weighted_quantiles(values[i][:, t], group.share, QUARTILES)
            estimate, error = float(estimates[i, t]), float(deviations[i, t])
            numbers = (*inference(estimate, error, degrees[t], level), *quartiles)
            found.append(Effect(target, group.label, term.name, term.label, term.kind, *numbers))
    has_kinks = not function.is_smooth and any(isinstance(term, Slope) for term in terms)
    notes = held_fixed(errors.metric, classes=classes, has_kinks=has_kinks)
    return Effects(tuple(found), level, errors.name, notes, errors.metric, has_kinks)


@dataclass(frozen=True)
class Averaging:
    """Terms and the groups of rows over which their effects are averaged."""

    groups: Sequence[Group]
    terms: Sequence[Term]

    @property
    def names(self) -> list[tuple[Group, Term]]:
        """The group and the term of each of r effects."""
        return [(group, term) for group in self.groups for term in self.terms]

    def of(self, function: Function) -> tuple[list[Array], Array]:
        """Pointwise values of each effect, (n, k), and the functionals of their averages."""
        parts = [_averaged(function, group, self.terms) for group in self.groups]
        return [one for found, _ in parts for one in found], np.vstack([each for _, each in parts])

    def means(self, values: Sequence[Array]) -> Array:
        """Averages of the pointwise values of each effect, of shape (r, k)."""
        pairs = zip(self.names, values, strict=True)
        return np.stack([group.share @ each for (group, _), each in pairs])

    def added_errors(self, function: Function, refits: Refits, noise: NoiseOf) -> Array:
        """Standard errors from learning the metric, to add to those with a fixed metric, (r, k).

        The variance of the delete-a-group jackknife, (G - 1) / G sum_g (t_g - mean)^2 for averages
        t_g without group g, minus the variance with the metric fixed; zero if that is larger.
        """
        parts = (function.refitted(part) for part in refits.parts)
        T = np.stack(in_threads(lambda part: self.means(self.of(part)[0]), parts))
        whole = function.refitted(refits.whole)
        fixed = whole.average_errors(self.of(whole)[1], noise)
        return np.sqrt(np.maximum((len(T) - 1) * T.var(axis=0) - fixed**2, 0.0))


def _groups(rows: Observations, by: Any, features: Columns) -> list[Group]:
    """All rows as one group, or the rows of each value of `by`."""
    if by is None:
        return [Group(None, rows.X, rows.w)]
    if isinstance(by, str | int | np.integer) and not isinstance(by, bool):
        labels = rows.X[:, features.position(by, "by")]
    else:
        labels = np.asarray(by)
    if labels.shape != (len(rows.X),):
        raise ValueError(
            f"`by` must be a feature, or have one label for each of the {len(rows.X)} rows, got "
            f"shape {labels.shape}."
        )
    weighed = np.flatnonzero(rows.w > 0)
    names, number = numbered("by", labels[weighed])
    groups = []
    for i, label in enumerate(names.tolist()):
        some = weighed[number == i]
        if len(some) < 2:
            raise ValueError(
                f"Groups of `by` must have at least two rows, got {len(some)} for {label!r}."
            )
        groups.append(Group(label, rows.X[some], rows.w[some]))
    return groups


def placed(group: Group, at: Any, features: Columns) -> Group:
    """The rows of a group as observed, at their means, or with some features at given values."""
    if isinstance(at, Mapping):
        X = group.X.copy()
        for feature, value in at.items():
            X[:, features.position(feature, "at")] = check_number(f"at[{feature!r}]", value)
        return Group(group.label, X, group.w)
    if not isinstance(at, str) or at not in ("observed", "means"):
        raise ValueError(
            f"`at` must be 'observed', 'means' or a mapping of features to values, got {at!r}."
        )
    if at == "observed":
        return group
    x = group.share @ group.X
    # There are no rows half-way between two values, so the more frequent value is used.
    two, middle = features.has_two_values, (features.low + features.high) / 2
    x = np.where(two, np.where(x >= middle, features.high, features.low), x)
    for columns in map(list, features.one_hot_groups()):
        level = columns[int(np.argmax(group.share @ features.is_upper(columns, group.X)))]
        x[columns] = features.low[columns]
        x[level] = features.high[level]
    return Group(group.label, x[None], np.ones(1))


def _averaged(function: Function, group: Group, terms: Sequence[Term]) -> tuple[list[Array], Array]:
    """Pointwise values of each term, (n, k), and the functionals of their averages."""
    values, functionals = [], []
    function.check(group.X)  # `at` may have moved them
    if any(isinstance(term, Slope) for term in terms):
        J, slopes = function.slopes_and_average(group.X, group.share)
    for term in terms:
        if isinstance(term, Difference):
            X1, X0 = term.pair(group.X)
            function.check(X1)
            found, functional = function.differences_and_average(X1, X0, group.share)
            values.append(found / term.per)
            functionals.append(functional / term.per)
        else:
            values.append(J[:, :, term.column])
            functionals.append(slopes[[term.column]])
    return values, np.vstack(functionals)


def weighted_quantiles(values: Array, w: Array, shares: tuple[float, ...]) -> list[float]:
    """Smallest values such that at least these shares of the weight do not exceed them."""
    some = w > 0
    order = np.argsort(values[some])
    values, total = values[some][order], np.cumsum(w[some][order])
    places = np.searchsorted(total, np.array(shares) * total[-1] * (1 - 1e-12))
    return [float(values[place]) for place in places]


@dataclass(frozen=True)
class AverageCurve:
    """Average prediction with one feature, or several, set to each of some values, in all rows.

    Attributes
    ----------
    variable : str
        Several names are joined by commas.
    values : ndarray of shape (points,), or (points, features) for several
    estimate, std_error, conf_low, conf_high : ndarrays of shape (points,) or (points, n_targets)
    """

    variable: str
    values: Array
    estimate: Array
    std_error: Array
    conf_low: Array
    conf_high: Array


def average_predictions(
    estimator: Any,
    variable: int | str | Sequence[int | str],
    values: npt.ArrayLike | None = None,
    X: Any = None,
    *,
    robust: bool = False,
    cluster: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> AverageCurve:
    """Average prediction along a feature, or features that move together, with an interval.

    This is also called partial dependence.

    The standard errors hold the metric fixed, even if it was learned.

    Parameters
    ----------
    estimator : fitted JacobianKernelRidge
    variable : index or name of a feature, or a list of them
    values : array of shape (points,), or (points, features) for a list, optional
        Values to set the feature to; by default 50 from its smallest to its largest value. A list
        of features needs them.
    X : array of shape (n_samples, n_features), optional
        Rows to average over; by default the training rows.
    robust, cluster, level
        As for ``JacobianKernelRidge.effects``.

    Returns
    -------
    AverageCurve

    Examples
    --------
    >>> import numpy as np
    >>> from jacridge import JacobianKernelRidge
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> est = JacobianKernelRidge(2.0, 0.1).fit(X, X @ [1.0, 2.0])
    >>> average_predictions(est, 1, [-1.0, 1.0]).estimate.round(1)
    array([-2.1,  2.1])
    """
    level = check_number("level", level, above=0, below=1)
    check_regressor(estimator, "For classes, use `effects` of the classifier.")
    estimator._check_has_features("An average prediction")
    function, rows = estimator._function(), estimator._observations(X)
    errors = error_kind(robust, cluster, rows.w_train)
    listed = isinstance(variable, Sequence) and not isinstance(variable, str)
    asked: Any = variable if listed else [variable]
    features = Columns(function.names, rows.X_train)
    columns = [features.position(each, "variable") for each in asked]
    x = _values(values, rows, columns, listed=listed)
    share, B = rows.w / rows.w.sum(), []
    for value in x:
        moved = rows.X.copy()
        moved[:, columns] = value
        function.check(moved)
        B.append(function.average_kernel(moved, share))
    found, g = np.vstack(B), np.ones(len(x))
    estimate, error = function.estimates(found, g), function.deviations(found, g, errors.of)
    degrees = known_degrees(function.degrees(errors.degrees))
    reach = np.array([inference(0.0, 1.0, d, level)[-1] for d in degrees]) * error
    parts = estimate, error, estimate - reach, estimate + reach
    if np.ndim(estimator.dual_coef_) == 1:
        parts = tuple(part[:, 0] for part in parts)  # type: ignore[assignment]
    return AverageCurve(", ".join(str(function.names[column]) for column in columns), x, *parts)


def _values(
    values: npt.ArrayLike | None, rows: Observations, columns: list[int], *, listed: bool
) -> Array:
    """Values to set a feature to, (points,), or a list of features to, (points, features)."""
    if values is None and not listed:
        x = rows.X_train[:, columns[0]]
        return np.linspace(x.min(), x.max(), 50)
    found = np.asarray(values)
    shaped = found.shape[1:] == ((len(columns),) if listed else ())
    numbers = found.dtype.kind in "biuf" and found.ndim > 0 and shaped and len(found)
    if not numbers or not np.isfinite(found).all():
        what = f"rows of {len(columns)} numbers each" if listed else "a list of finite numbers"
        raise ValueError(f"`values` must be {what}, got {values!r}.")
    return found.astype(np.float64)


def check_regressor(estimator: Any, way_out: str = "") -> None:
    """Refuse classifiers and estimators of other packages; `way_out` says what to do instead."""
    if not hasattr(estimator, "_observations"):
        message = (
            "`estimator` must be a JacobianKernelRidge or AutoKernelRidge, got "
            f"{type(estimator).__name__}. {way_out}"
        )
        raise TypeError(message.rstrip())
