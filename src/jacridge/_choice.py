"""select_bandwidth: the rules for who wants sigma alone, and what a choice stands on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from ._checks import check_choice, check_positive, check_rows, check_targets, generator
from ._dask import dask_rows, is_dask
from ._distances import METRICS
from ._nystrom import stream_problem
from ._problem import Problem, mean_of
from ._selectors import RULES, WHOLE, check_alpha, find
from ._streams import ArrayRows
from ._survey import SAMPLE
from .parquet import ParquetFiles


@dataclass(frozen=True)
class Choice:
    """A bandwidth and where it came from.

    Attributes
    ----------
    sigma : float
        The bandwidth, in the units of X (metres for the geodesic metric).
    rule : str
    alpha : float, or ndarray of shape (n_targets,) if it was chosen for several targets
    n, p : number of samples (their weights summed up) and of features
    l_max : float
        Largest distance between two rows.
    spacing : float
        Distance of neighbours that the rule used: the median one for ``jacobian_median``, that of
        evenly spread points otherwise.
    seconds : float
        Time from X to sigma, everything included.
    """

    sigma: float
    rule: str
    alpha: Any
    n: float
    p: int
    l_max: float
    spacing: float
    seconds: float

    @property
    def gamma(self) -> float:
        """1 / (2 sigma^2), as in scikit-learn's KernelRidge, SVR, Nystroem and RBFSampler."""
        return 0.5 / self.sigma**2

    def as_length_scale(self) -> float:
        """Length scale of scikit-learn's RBF, GPyTorch, GPflow: exp(-d^2 / (2 l^2)), l = sigma."""
        return self.sigma

    def as_kernlab(self) -> float:
        """What R's kernlab calls sigma, in exp(-sigma d^2): the same as gamma."""
        return self.gamma

    def as_krls(self) -> float:
        """What R's KRLS calls sigma, in exp(-d^2 / sigma): 2 sigma^2."""
        return 2.0 * self.sigma**2

    def __float__(self) -> float:
        return self.sigma


def select_bandwidth(
    X: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    rule: str | Callable[[Problem], float] = "jacobian",
    *,
    alpha: float | str = 1e-3,
    metric: str = "euclidean",
    grid: npt.ArrayLike | None = None,
    random_state: int | None = None,
) -> Choice:
    r"""Bandwidth of the Gaussian kernel for the rows of X.

    The rule ``jacobian`` (Proposition 1 of the paper) needs n, p, the largest distance between
    two rows and the ridge penalty; no n x n matrix is made.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        For ``metric="geodesic"`` latitude and longitude in degrees; for ``"precomputed"`` the
        n x n matrix of distances (not a kernel). Sizes, variances and the largest distance are
        those of all rows. Above 10,000 rows with features the pairs of ``median`` and ``maxvar``
        come from a sample of 10,000, ``jacobian_median`` takes 5000 of these rows and their
        nearest neighbours among all, and rules that solve use landmarks. Rows of a Dask array stay
        where they are, and ``jacridge.parquet.ParquetFiles`` are read in blocks.
    y : array of shape (n_samples,) or (n_samples, n_targets), optional
        The name of a column for Parquet files.
        Only the rules that solve look at it: ``loo``, ``gcv``, ``mml``, the seeded ones, ``auto``.
    rule : str or function of a Problem that returns sigma
        One of ``jacridge.RULES``. What a function sees of more than 10,000 rows is a sample in
        ``X`` and ``y``, beside the size and the geometry of all rows.
    alpha : float or {"loo", "gcv", "mml", "auto"}
        Ridge penalty lambda >= 0, in K + lambda I, or the criterion that chooses it with the
        bandwidth, which needs y.
    metric : {"euclidean", "geodesic", "precomputed"}
    grid : array of bandwidths, optional
        Where ``loo``, ``gcv``, ``mml`` and the seeded rules look; they search by themselves if it
        is not given. Other rules do not look at it.
    random_state : int, optional
        Only ``auto`` (above 400 rows), the other rules that solve at a given alpha (above 1000),
        ``median`` and ``maxvar`` (above 2000), and ``jacobian_median`` and all that solves (above
        10,000) look at random samples.

    Returns
    -------
    Choice
        ``float(choice)`` is sigma; ``choice.gamma`` is what scikit-learn calls gamma.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 101)[:, None]
    >>> choice = select_bandwidth(X, alpha=0)
    >>> round(choice.sigma, 6), round(choice.l_max, 6)
    (0.004547, 1.0)
    """
    start = perf_counter()
    if not callable(rule):
        check_choice("rule", rule, RULES)
    problem = problem_of(
        X,
        y,
        rule,
        check_choice("metric", metric, METRICS),
        generator(random_state),
        alpha=check_alpha(alpha),
        grid=None if grid is None else check_positive("grid", grid),
    )
    found = find(rule, problem, "rule")
    seconds = perf_counter() - start  # what else is told of the data is no part of the rule
    median = rule == "jacobian_median"
    return Choice(
        sigma=found.sigma,
        rule=rule if isinstance(rule, str) else getattr(rule, "__name__", "function"),
        alpha=found.lam if np.size(found.lam) > 1 else float(np.ravel(found.lam)[0]),
        n=int(problem.n) if problem.n == int(problem.n) else problem.n,
        p=problem.p,
        l_max=problem.l_max,
        spacing=problem.neighbour_spacing if median else problem.even_spacing,
        seconds=seconds,
    )


def problem_of(
    X: Any, y: Any, rule: Any, metric: str, rng: np.random.Generator, **options: Any
) -> Problem:
    """The problem that a rule is to look at, of rows in memory, of Dask arrays or Parquet files.

    Many rows in memory go the way of the others where a sample or landmarks stand for them, so
    that a rule finds the same wherever they are.
    """
    if is_dask(X):
        return stream_problem(dask_rows(X, y, None, metric), y is not None, metric, rng, **options)
    if isinstance(X, ParquetFiles):
        return stream_problem(X.rows(y, None, metric), y is not None, metric, rng, **options)
    X = check_rows(X, metric)
    targets = np.empty((len(X), 0)) if y is None else check_targets(y, X)
    whole = isinstance(rule, Real) or (isinstance(rule, str) and rule in WHOLE)
    searched = not whole or not isinstance(options["alpha"], float)
    if len(X) > SAMPLE and searched and metric != "precomputed":
        return stream_problem(ArrayRows(X, targets), y is not None, metric, rng, **options)
    w = np.ones(len(X))
    centred = None if y is None else targets - mean_of(targets, w)
    return Problem(X=X, y=centred, w=w, metric=metric, rng=rng, **options)
