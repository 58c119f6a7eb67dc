"""The data sets of the paper: read from a folder, downloaded and checked, or drawn at random.

A file is looked for in the folder that the environment variable ``JACRIDGE_DATA`` names, then in
the cache folder (``JACRIDGE_CACHE``, or the system's place for caches), and only then downloaded.
``JACRIDGE_MIRROR`` names another address that holds all files under their own names.
No data set is part of this package; `list_datasets` says who made each and under which terms.
"""

import csv
import gzip
import tarfile
import tomllib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO

import numpy as np

from .._compute.arrays import Array
from ._downloads import cache_folder, download, own_folder

_KELVIN = 273.15


@dataclass(frozen=True)
class Dataset:
    """A regression data set: features, target, and where they come from.

    Attributes
    ----------
    name : str
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    feature_names : tuple of str
    target_name : str
    licence, citation, source : str
        Terms of use, the reference to give, and the address of the maker.
    """

    name: str
    X: Array
    y: Array
    feature_names: tuple[str, ...]
    target_name: str
    licence: str
    citation: str
    source: str


@dataclass(frozen=True)
class Split:
    """Training and test rows of one experiment."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


@dataclass(frozen=True)
class _Source:
    """Where a data set is kept, and what it must look like."""

    name: str
    n: int
    columns: tuple[str, ...]  # the target first
    file: str
    url: str
    sha256: str
    licence: str
    citation: str
    source: str


def list_datasets() -> list[dict[str, str | int]]:
    """Rows that describe every data set: name, n, p, target, licence, citation, source.

    Examples
    --------
    >>> from jacridge import datasets
    >>> [row["name"] for row in datasets.list_datasets()][:2]
    ['wood_fibres', 'appliances_energy']
    """
    return [
        {
            "name": s.name,
            "n": s.n,
            "p": len(s.columns) - 1,
            "target": s.columns[0],
            "licence": s.licence,
            "citation": s.citation,
            "source": s.source,
        }
        for s in _SOURCES.values()
    ]


def load(name: str) -> Dataset:
    """The data set of this name, downloaded if it is nowhere on this machine.

    Parameters
    ----------
    name : str
        One of the names in `list_datasets`.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If the name is unknown, or the file found is not that data set.
    OSError
        If the file is nowhere here and cannot be downloaded; nothing is left behind.
    """
    s = _known(name)
    path = fetch(name)
    table = _READERS.get(name, _table)(path, s.columns)
    expected = (s.n, len(s.columns))
    if table.shape != expected:
        raise ValueError(
            f"`{path}` must have {expected[0]} rows and {expected[1]} columns, got {table.shape}. "
            "Delete it and fetch it again."
        )
    return Dataset(
        name=name,
        X=np.ascontiguousarray(table[:, 1:]),
        y=table[:, 0].copy(),
        feature_names=s.columns[1:],
        target_name=s.columns[0],
        licence=s.licence,
        citation=s.citation,
        source=s.source,
    )


def fetch(name: str) -> Path:
    """The file of a data set on this machine, downloaded and checked if it was not there.

    Parameters
    ----------
    name : str
        One of the names in `list_datasets`.

    Returns
    -------
    pathlib.Path
    """
    s = _known(name)
    if (folder := own_folder()) is not None:
        for file in (f"{name}.csv", f"{name}.csv.gz", s.file):
            if (folder / file).is_file():
                return folder / file
    return download(name, s.file, s.url, s.sha256)


def folder() -> Path:
    """The folder that is looked in first: ``JACRIDGE_DATA`` if it is set, else the cache."""
    return own_folder() or cache_folder()


def cauchy(n: int, seed: int = 0, *, n_test: int = 1001) -> Split:
    r"""The paper's synthetic data, drawn in the order of the authors' code.

    .. math:: x \sim \mathrm{Cauchy}(0, 3), \qquad y = \sin(2 \pi x) + \varepsilon,
              \qquad \varepsilon \sim N(0, 0.2^2).

    The test target has no noise.

    Parameters
    ----------
    n, n_test : int
        Numbers of training and of test rows.
    seed : int
        Seed of NumPy's legacy generator, which the authors used.

    Returns
    -------
    Split

    Examples
    --------
    >>> from jacridge import datasets
    >>> datasets.cauchy(50).X.shape
    (50, 1)
    """
    rng = np.random.RandomState(seed)
    X = 3 * rng.standard_cauchy((n, 1))
    X_test = 3 * rng.standard_cauchy((n_test, 1))
    noise = rng.normal(0, 0.2, n)
    return Split(X, np.sin(2 * np.pi * X[:, 0]) + noise, X_test, np.sin(2 * np.pi * X_test[:, 0]))


def _known(name: str) -> _Source:
    """The entry of this name, or an error that lists all names."""
    if name not in _SOURCES:
        raise ValueError(f"`name` must be one of {', '.join(_SOURCES)}, got {name!r}.")
    return _SOURCES[name]


def _open(path: Path) -> TextIO:
    """A text file, compressed or not."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def _table(path: Path, columns: tuple[str, ...]) -> Array:
    """Named columns of a comma separated table, whatever its quotes and padding."""
    with _open(path) as file:
        names = [name.strip() for name in next(csv.reader(file), [])]
        if missing := [name for name in columns if name not in names]:
            raise ValueError(f"`{path}` must have the columns {columns}, got no {missing}.")
        usecols = [names.index(name) for name in columns]
        return np.loadtxt(file, delimiter=",", quotechar='"', usecols=usecols, ndmin=2)


def _california(path: Path, columns: tuple[str, ...]) -> Array:
    """The table as scikit-learn makes it, from a table or from the StatLib archive."""
    if path.suffix != ".tgz":
        return _table(path, columns)
    with tarfile.open(path) as archive:
        file = archive.extractfile("CaliforniaHousing/cal_housing.data")
        assert file is not None
        raw = np.loadtxt(file, delimiter=",")
    lon, lat, age, rooms, bedrooms, people, households, income, value = raw.T
    return np.column_stack(
        (
            value / 100_000,
            income,
            age,
            rooms / households,
            bedrooms / households,
            people,
            people / households,
            lat,
            lon,
        )
    )


def _toulouse(path: Path, columns: tuple[str, ...]) -> Array:
    """Temperature in degrees Celsius and hours since the first row."""
    with _open(path) as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    when = [datetime.strptime(row["date"], "%Y%m%d%H%M%S") for row in rows]
    hours = [(moment - when[0]).total_seconds() / 3600 for moment in when]
    return np.column_stack(([float(row["t"]) - _KELVIN for row in rows], hours))


def _stations(path: Path, columns: tuple[str, ...]) -> Array:
    """Temperature in degrees Celsius, latitude and longitude in degrees."""
    with _open(path) as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    return np.array(
        [
            [float(row["t"]) - _KELVIN, float(row["Latitude"]), float(row["Longitude"])]
            for row in rows
        ]
    )


# The data sets by name, as the table beside this file has them.
_TABLE = tomllib.loads(Path(__file__).with_name("sources.toml").read_text(encoding="utf-8"))
_SOURCES = {
    name: _Source(name=name, **{**row, "columns": tuple(row["columns"])})
    for name, row in _TABLE.items()
}
_READERS = {"california_housing": _california, "french_1d": _toulouse, "french_2d": _stations}
