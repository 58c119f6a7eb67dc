"""A model fitted to tables in many files by Dask, one part in memory at a time and worker."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.pipeline import Pipeline

from jacridge import JacobianKernelRidge

from .._checks import require
from .._compute.arrays import Array
from ..report._columns import columns_prepared
from ._columns import column_named, feature_columns, read_columns
from ._missing import POLICIES, complete_rows
from ._model_file import SavedModel
from ._tables import read_frame, table_parts
from ._text import TableError

# Seconds after which a scheduler without workers is given up.
WORKERS_WITHIN = 20


class Counts(NamedTuple):
    """Number of complete and of all rows."""

    n: int
    n_all: int


class Moments(NamedTuple):
    """Counts of rows, and by column their mean and the sum of squares about it."""

    n: int
    n_all: int
    mean: Array
    squares: Array


@contextmanager
def scheduler_at(address: str | None) -> Iterator[None]:
    """Let Dask's work run on the cluster at an address; without one, in this process."""
    if address is None:
        yield
        return
    distributed = require("distributed", extra="dask")
    try:
        client = distributed.Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise OSError(
            f"No Dask scheduler answers at `{address}`. Start one with `dask scheduler`, and "
            "workers for it with `dask worker ADDRESS`."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=WORKERS_WITHIN)
        except TimeoutError as error:
            raise OSError(
                f"The Dask scheduler at `{address}` must have workers, got none within "
                f"{WORKERS_WITHIN} seconds. Start some with `dask worker {address}`."
            ) from error
        yield


def fit_parts(
    source: str,
    target: str,
    estimator: JacobianKernelRidge,
    *,
    features: Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: str = "drop",
    standardize: bool = True,
) -> tuple[SavedModel, Counts]:
    """Fit to all parts that a pattern matches; their columns must hold numbers."""
    delayed = require("dask", extra="dask").delayed
    paths = table_parts(source)
    names = read_frame(paths[0]).columns
    name = column_named(names, target)
    chosen = feature_columns(names, {name: "the target"}, features, drop)
    known = None if features else names
    parts = [delayed(part_rows)(path, [*chosen, name], missing, known) for path in paths]
    each = delayed(list)([delayed(_moments)(part) for part in parts]).compute()
    whole = reduce(_joined, each)
    if not whole.n:
        raise TableError(f"`{source}` must hold a row without missing values, got none.")
    rows = _dask_array([part[0] for part in parts], [m.n for m in each], len(chosen) + 1)
    prepare = columns_prepared(chosen, [], standardize=standardize).fit(_like(whole, chosen))
    X = rows[:, :-1].map_blocks(_prepared, prepare, chosen, dtype=np.float64)
    estimator.fit(X, rows[:, -1])
    pipeline = Pipeline([("columns", prepare), ("model", estimator)])
    return SavedModel(pipeline, [name], chosen, []), Counts(whole.n, whole.n_all)


def part_rows(
    path: str, columns: Sequence[str], missing: str, known: Sequence[str] | None
) -> tuple[Array, int]:
    """The complete rows of a part as an array, and the number of all its rows."""
    try:
        frame = read_columns(path, numbers=columns, known=known)
        return complete_rows(frame, POLICIES[missing]).to_numpy(), len(frame)
    except TableError as error:
        raise TableError(f"In `{path}`: {error}") from error


def _moments(part: tuple[Array, int]) -> Moments:
    rows, n_all = part
    mean = rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1])
    return Moments(len(rows), n_all, mean, np.square(rows - mean).sum(axis=0))


def _joined(a: Moments, b: Moments) -> Moments:
    """Moments of the rows of both, by the formula of Chan, Golub and LeVeque."""
    n = a.n + b.n
    share = b.n / n if n else 0.0
    gap = b.mean - a.mean
    squares = a.squares + b.squares + gap**2 * a.n * share
    return Moments(n, a.n_all + b.n_all, a.mean + gap * share, squares)


def _like(whole: Moments, columns: Sequence[str]) -> pl.DataFrame:
    """Two rows with the means and standard deviations of all, which is all that scaling needs."""
    mean, spread = whole.mean[:-1], np.sqrt(whole.squares[:-1] / whole.n)
    return pl.DataFrame(np.array([mean - spread, mean + spread]), schema=list(columns))


def _prepared(rows: Array, prepare: Any, columns: Sequence[str]) -> Array:
    return np.asarray(prepare.transform(pl.DataFrame(rows, schema=list(columns))))


def _dask_array(parts: Sequence[Any], sizes: Sequence[int], width: int) -> Any:
    """The parts as one Dask array, a chunk of rows for each."""
    array = require("dask.array", extra="dask")
    blocks = zip(parts, sizes, strict=True)
    return array.concatenate(
        [array.from_delayed(part, (n, width), dtype=np.float64) for part, n in blocks]
    )
