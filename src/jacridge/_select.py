"""`select_bandwidth` and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from html import escape
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from ._checks import check_choice, check_positive, check_rows, check_targets, generator
from ._geometry.kernels import KERNELS
from ._geometry.space import Space, space_of
from ._rows.dask import dask_rows, is_dask
from ._rows.source import Source, array_source, in_memory
from ._rows.survey import SAMPLE
from ._rules.registry import RULES, as_rule, check_alpha, find
from ._rules.streams import data_of_stream, training_data
from ._rules.training import TrainingData, data_in_memory
from .parquet import ParquetFiles

# Where a kernel may be known by a number or an expression, in the words of a message.
PACKAGES = {
    "gamma": "as a kernel with a `gamma` in scikit-learn",
    "sklearn": "in scikit-learn",
    "gpytorch": "in GPyTorch",
    "kernlab": "in kernlab",
    "krls": "in KRLS",
}


@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """A bandwidth and where it came from.

    Attributes
    ----------
    sigma : float
        The bandwidth, in the units of X (metres for the geodesic metric).
    rule : str
    kernel : str
    alpha : float, or ndarray of shape (n_targets,) if it was chosen for several targets
    n, p : number of samples and of features
    l_max : float
        Largest distance between two rows.
    spacing : float
        Distance of neighbours that the rule used: the median for ``jacobian_median``, otherwise
        the distance of evenly spread points.
    seconds : float
        Time from X to sigma, everything included.
    """

    sigma: float
    rule: str
    kernel: str
    alpha: Any
    n: float
    p: int
    l_max: float
    spacing: float
    seconds: float

    @property
    def gamma(self) -> float:
        """Gamma of scikit-learn's ``rbf_kernel`` (1 / (2 sigma^2)) or ``laplacian_kernel``.

        KernelRidge, SVR, Nystroem and RBFSampler take this parameter. Other kernels have no gamma
        and raise a ValueError.
        """
        return self._in("gamma")

    def as_length_scale(self) -> float:
        """Length scale of scikit-learn's ``RBF`` and ``Matern``, GPyTorch and GPflow: sigma."""
        self.as_gpytorch()  # raises where there is none
        return self.sigma

    def as_sklearn(self) -> str:
        """Python expression for this kernel in scikit-learn, such as ``RBF(length_scale=1.0)``."""
        return self._in("sklearn")

    def as_gpytorch(self) -> str:
        """Python expression for this kernel in GPyTorch."""
        return self._in("gpytorch")

    def as_kernlab(self) -> float:
        """Sigma of R's kernlab, an inverse width: of ``rbfdot`` or ``laplacedot``."""
        return self._in("kernlab")

    def as_krls(self) -> float:
        """Sigma of R's KRLS, in exp(-d^2 / sigma): 2 sigma^2."""
        return self._in("krls")

    def _in(self, package: str) -> Any:
        known = in_other_packages(self.kernel, self.sigma)
        if package not in known:
            raise ValueError(f"The kernel {self.kernel!r} does not exist {PACKAGES[package]}.")
        return known[package]

    def __float__(self) -> float:
        return self.sigma

    def __repr__(self) -> str:
        return f"Choice({', '.join(f'{name}={text}' for name, text in self._shown().items())})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:left'>{name}</td>"
            f"<td style='text-align:right'>{escape(text)}</td></tr>"
            for name, text in self._shown().items()
        )
        return f"<table><tbody>{rows}</tbody></table>"

    def _shown(self) -> dict[str, str]:
        """The fields formatted for display: numbers with four digits, counts in full."""
        return {each.name: _rounded(getattr(self, each.name)) for each in fields(self)}


def in_other_packages(kernel: str, sigma: float) -> dict[str, Any]:
    """A kernel's parameter or expression in each package that has it, by the keys of PACKAGES.

    kernlab's ``laplacedot`` uses the Euclidean distance: here it is called ``exponential``.
    """
    sigma, nu = float(sigma), KERNELS[kernel].smoothness
    matern = {
        "sklearn": f"Matern(length_scale={sigma!r}, nu={nu})",
        "gpytorch": f"MaternKernel(nu={nu}).initialize(lengthscale={sigma!r})",
    }
    others: dict[str, dict[str, Any]] = {
        "gaussian": {
            "gamma": 0.5 / sigma**2,
            "sklearn": f"RBF(length_scale={sigma!r})",
            "gpytorch": f"RBFKernel().initialize(lengthscale={sigma!r})",
            "kernlab": 0.5 / sigma**2,
            "krls": 2 * sigma**2,
        },
        "exponential": {**matern, "kernlab": 1 / sigma},
        "laplacian": {
            "gamma": 1 / sigma,
            "sklearn": f'PairwiseKernel(gamma={1 / sigma!r}, metric="laplacian")',
        },
    }
    return others.get(kernel, matern)


def _rounded(value: Any) -> str:
    if isinstance(value, str | int):
        return repr(value)
    if np.ndim(value):
        return f"[{', '.join(_rounded(float(each)) for each in value)}]"
    return f"{value:.4g}"


def select_bandwidth(
    X: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    rule: str | Callable[[TrainingData], float] = "jacobian",
    *,
    alpha: float | str = 1e-3,
    kernel: str = "gaussian",
    metric: str = "euclidean",
    grid: npt.ArrayLike | None = None,
    random_state: int | None = None,
) -> Choice:
    r"""Bandwidth of a kernel for the rows of X.

    The rule ``jacobian`` (Proposition 1 of the paper) needs n, p, the largest distance between
    two rows and the ridge penalty; no n x n matrix is made.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        For ``metric="geodesic"`` latitude and longitude in degrees; for ``"precomputed"`` the
        n x n matrix of distances (not a kernel). Sizes, variances and the largest distance always
        refer to all rows. Above 10,000 rows with features, the pairs for ``median`` and ``maxvar``
        come from a sample of 10,000, ``jacobian_median`` uses 5000 of these rows and their nearest
        neighbours among all rows, and rules that solve use landmarks. Rows of a Dask array stay on
        the workers, and ``jacridge.parquet.ParquetFiles`` are read in blocks.
    y : array of shape (n_samples,) or (n_samples, n_targets), optional
        For Parquet files, the name of a column.
        Only rules that solve use y: ``loo``, ``gcv``, ``mml``, the seeded rules, and ``auto``.
    rule : str or function of a TrainingData that returns sigma
        One of ``jacridge.RULES``. ``ssmm`` and ``loo_without_y`` (arXiv 2505.11006) choose sigma
        from X alone, and also lambda if `alpha` is a word; if `alpha` is a number, they choose only
        sigma. Above 1000 rows they use a sample. The minimum of ``loo_without_y`` is at an end of
        its range; it is included for comparison. Above 10,000 rows a function gets a sample as
        ``X`` and ``y``, and ``n``, ``p`` and the distances of all rows.
    alpha : float or {"loo", "gcv", "mml", "auto"}
        Ridge penalty lambda >= 0, in K + lambda I, or the criterion that chooses it together with
        the bandwidth. A criterion needs y, except for ``ssmm`` and ``loo_without_y``.
    kernel : {"gaussian", "matern52", "matern32", "exponential", "laplacian"}
        For ``matern52`` and ``matern32`` the Jacobian rules use the kernel's own smallest
        eigenvalue on a grid; for ``exponential`` and ``laplacian`` the norm has no minimum, and
        these rules raise an error.
    metric : {"euclidean", "geodesic", "precomputed"}
    grid : array of bandwidths, optional
        Bandwidths that ``loo``, ``gcv``, ``mml`` and the seeded rules try; by default they search
        by themselves. Other rules ignore it.
    random_state : int, optional
        Seed for rules that draw random samples: ``ssmm``, which draws new rows, ``loo_without_y``
        (above 300 rows), ``auto`` (above 400), the other rules that solve at a given alpha (above
        1000), ``median`` and ``maxvar`` (above 2000), and ``jacobian_median`` and all rules that
        solve (above 10,000).

    Returns
    -------
    Choice
        ``float(choice)`` is sigma; ``choice.gamma`` is scikit-learn's gamma.

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
    check_choice("metric", metric, ("euclidean", "geodesic", "precomputed"))
    data = selection_data(
        X,
        y,
        rule,
        space_of(kernel, metric),
        # Making a generator takes long, and most closed forms draw nothing.
        random_state=None if random_state is None else generator(random_state),
        penalty=check_alpha(alpha),
        grid=None if grid is None else check_positive("grid", grid),
    )
    found = find(rule, data, "rule")
    seconds = perf_counter() - start  # the numbers below are not part of the rule's time
    known, lam = as_rule(rule), found.lam
    return Choice(
        sigma=found.sigma,
        rule=known.name,
        kernel=kernel,
        alpha=lam if isinstance(lam, float) or lam.size > 1 else lam.item(),
        n=int(data.n) if data.n == int(data.n) else data.n,
        p=data.p,
        l_max=data.l_max,
        spacing=known.spacing(data),
        seconds=seconds,
    )


def selection_data(X: Any, y: Any, rule: Any, space: Space, **options: Any) -> TrainingData:
    """Training data for a rule, from rows in memory, Dask arrays or Parquet files.

    Many rows in memory are treated as a stream if a rule uses a sample or landmarks, so that the
    result does not depend on where the rows are, and is the same as in a fit.
    """
    if is_dask(X):
        source = Source(dask_rows(X, y, None, space.distance), X.shape[1])
    elif isinstance(X, ParquetFiles):
        files = X.rows(y, None, space.distance)
        source = Source(files, len(files.features))
    else:
        X = check_rows(X)
        if not space.distance.is_euclidean:  # for Euclidean distances, check_rows was enough
            space.distance.check(X)
        penalty = options["penalty"]
        if as_rule(rule).sees_all_rows and not penalty.criterion:  # no need to merge rows
            return data_in_memory(X, None, np.ones(len(X)), space, n=len(X), **options)
        targets = np.empty((len(X), 0)) if y is None else check_targets(y, X)
        source = array_source(X, targets, None, space.distance)
    if source.rows.n > SAMPLE and not space.distance.is_given:
        return data_of_stream(source, space, solved=y is not None, **options)
    data = training_data(in_memory(source, space.distance), space, **options)
    return data if y is not None else replace(data, y=None)
