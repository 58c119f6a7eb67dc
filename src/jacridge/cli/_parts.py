"""Fits with Dask to tables in many files; each worker holds one part in memory at a time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.pipeline import Pipeline

from .._checks import require
from .._compute.arrays import Array
from ..report._columns import columns_prepared, task_name
from ._cells import MOST_CATEGORIES, TargetError, labels
from ._columns import Reading, column_named, feature_columns, typed_columns
from ._missing import complete_rows
from ._model_file import SavedModel
from ._tables import listed, read_frame, table_parts
from ._text import TableError
from ._written import with_thousands

# Seconds to wait for the workers of a scheduler.
WORKERS_WITHIN = 20


class ColumnMoments(NamedTuple):
    """Number of rows, and for each column the mean and the sum of squares about it."""

    n: int
    n_all: int
    mean: Array
    squares: Array


@contextmanager
def scheduler_at(address: str | None) -> Iterator[None]:
    """Run Dask's work on the cluster at an address; without an address, in this process."""
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


class Part(NamedTuple):
    """Complete rows of one part, the number of all its rows, and its columns with thousands."""

    X: Array
    y: pl.Series
    n_all: int
    thousands: Sequence[str] = ()


@dataclass(frozen=True)
class Parts:
    """Results of a first pass over the parts.

    Attributes
    ----------
    each : the parts, not read yet
    sizes : numbers of their complete rows
    columns : names of the features
    moments : of the features in all parts
    target : name of the target
    task : regression or classification
    classes : labels of the classes; none for a target of numbers
    thousands : names of the features whose commas separate thousands
    """

    each: Sequence[Any]
    sizes: Sequence[int]
    columns: Sequence[str]
    moments: ColumnMoments
    target: str
    task: str
    classes: pl.Series
    thousands: Sequence[str] = ()


def read_parts(source: str, target: str, reading: Reading) -> Parts:
    """Read all parts that match a pattern once; features must be numbers."""
    delayed = require("dask", extra="dask").delayed
    paths = table_parts(source)
    names = read_frame(paths[0]).columns
    name = column_named(names, target)
    chosen = feature_columns(names, {name: "the target"}, reading.features, reading.drop)
    known = None if reading.features else names
    how = chosen, name, known, reading.missing, reading.task
    parts = [delayed(part_rows)(path, *how) for path in paths]
    works = [(delayed(_moments)(p), delayed(_values)(p), delayed(_thousands)(p)) for p in parts]
    moments, values, thousands = zip(*delayed(list)(works).compute(), strict=True)
    whole = reduce(_joined, moments)
    if not whole.n:
        raise TableError(f"`{source}` must hold a row without missing values, got none.")
    task, classes = _task_of(dict(zip(paths, values, strict=True)), reading.task)
    known = sorted(set().union(*thousands))
    return Parts(parts, [m.n for m in moments], chosen, whole, name, task, classes, known)


def fit_parts(parts: Parts, estimator: Any, *, standardize: bool = True) -> SavedModel:
    """Fit an estimator of the task to all parts."""
    delayed = require("dask", extra="dask").delayed
    columns, sizes = parts.columns, parts.sizes
    prepare = columns_prepared(columns, [], standardize=standardize)
    prepare.fit(_like(parts.moments, columns))
    rows = [delayed(_prepared)(part, prepare, columns) for part in parts.each]
    y = [delayed(_targets)(part, parts.classes) for part in parts.each]
    kind = np.array(parts.classes.to_list()).dtype  # of floats if there are no classes
    X = _dask_array(rows, [(n, len(columns)) for n in sizes], np.float64)
    estimator.fit(X, _dask_array(y, [(n,) for n in sizes], kind))
    pipeline = Pipeline([("columns", prepare), ("model", estimator)])
    thousands = list(parts.thousands)
    return SavedModel(pipeline, [parts.target], list(columns), [], thousands=thousands)


def part_rows(
    path: str,
    columns: Sequence[str],
    name: str,
    known: Sequence[str] | None,
    missing: str,
    task: str,
) -> Part:
    """The complete rows of a part."""
    try:
        raw = read_frame(path)
        others = [each for each in raw.columns if known is not None and each not in known]
        if others:
            raise TableError(
                f"`{path}` must have the columns of the first part, got {listed(others)} as well. "
                "Name the features to use with --features."
            )
        numbers, outcomes = ([*columns, name], []) if task == "regression" else (columns, [name])
        frame = typed_columns(raw, path, numbers=numbers, outcomes=outcomes)
        rows = complete_rows(frame, missing)
        thousands = with_thousands(raw.select(columns), frame, ".")
        return Part(rows.select(columns).to_numpy(), rows[name], len(frame), thousands)
    except TableError as error:
        raise TableError(f"In `{path}`: {error}") from error


def _moments(part: Part) -> ColumnMoments:
    X = part.X
    mean = X.mean(axis=0) if len(X) else np.zeros(X.shape[1])
    return ColumnMoments(len(X), part.n_all, mean, np.square(X - mean).sum(axis=0))


def _thousands(part: Part) -> Sequence[str]:
    return part.thousands


def _joined(a: ColumnMoments, b: ColumnMoments) -> ColumnMoments:
    """Moments of both sets of rows together, by the formula of Chan, Golub and LeVeque."""
    n = a.n + b.n
    share = b.n / n if n else 0.0
    gap = b.mean - a.mean
    squares = a.squares + b.squares + gap**2 * a.n * share
    return ColumnMoments(n, a.n_all + b.n_all, a.mean + gap * share, squares)


def _values(part: Part) -> pl.Series:
    """Targets of a part, each at most twice, up to just more than the largest number of classes."""
    counts = part.y.value_counts().head(MOST_CATEGORIES + 1)
    return counts[part.y.name].repeat_by(counts["count"].clip(upper_bound=2)).explode()


def _task_of(values: dict[str, pl.Series], asked: str) -> tuple[str, pl.Series]:
    """The task, and the labels of its classes, from the targets of the parts."""
    values = {path: part for path, part in values.items() if len(part)}
    of_texts = {part.dtype == pl.String: path for path, part in values.items()}
    if len(of_texts) > 1:
        raise TableError(
            f"The target must hold text in all parts or numbers in all parts, got text in "
            f"`{of_texts[True]}` and numbers in `{of_texts[False]}`."
        )
    whole = pl.concat(values.values())
    task = task_name(asked, whole.to_numpy())
    if task == "regression":
        return task, pl.Series([], dtype=pl.Float64)
    if whole.n_unique() > MOST_CATEGORIES:
        raise TargetError(
            f"The target `{whole.name}` must hold at most {MOST_CATEGORIES} classes, got more.",
            "Use --task regression for numbers.",
        )
    return task, labels(whole).unique().sort()


def _like(whole: ColumnMoments, columns: Sequence[str]) -> pl.DataFrame:
    """Two rows with the mean and standard deviation of all rows: scaling needs no more."""
    spread = np.sqrt(whole.squares / whole.n)
    return pl.DataFrame(np.array([whole.mean - spread, whole.mean + spread]), schema=list(columns))


def _prepared(part: Part, prepare: Any, columns: Sequence[str]) -> Array:
    return np.asarray(prepare.transform(pl.DataFrame(part.X, schema=list(columns))))


def _targets(part: Part, classes: pl.Series) -> Any:
    """Targets as an array; for classes, with the type of the labels."""
    kind = np.array(classes.to_list()).dtype
    return np.array(part.y.cast(classes.dtype).to_list(), dtype=kind)


def _dask_array(parts: Sequence[Any], shapes: Sequence[tuple[int, ...]], kind: Any) -> Any:
    """The parts as one Dask array, with a chunk of rows for each part."""
    array = require("dask.array", extra="dask")
    blocks = zip(parts, shapes, strict=True)
    return array.concatenate([array.from_delayed(part, shape, kind) for part, shape in blocks])
