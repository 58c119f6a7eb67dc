"""The data sets of the paper: read from a folder, downloaded and checked, or drawn at random.

Files are searched for in the folder that the environment variable ``JACRIDGE_DATA`` names, then in
the cache (``JACRIDGE_CACHE``, or the cache folder of the system). A file that is in neither is
downloaded to the cache, from the address in ``JACRIDGE_MIRROR`` if that is set. The package itself
contains no data; `list_datasets` names the author and the licence of each data set.
"""

import csv
import gzip
import tarfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from .._compute.arrays import Array
from ._downloads import cache_folder, download, own_folder

_KELVIN = 273.15


@dataclass(frozen=True)
class Dataset:
    """A regression data set: features, target and origin.

    Attributes
    ----------
    name : str
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    feature_names : tuple of str
    target_name : str
    licence, citation, source : str
        Terms of use, the reference to cite, and the address of the original source.
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


def list_datasets() -> list[dict[str, str | int]]:
    """Describe every data set: name, n, p, target, licence, citation, source.

    Examples
    --------
    >>> from jacridge import datasets
    >>> [row["name"] for row in datasets.list_datasets()][:2]
    ['wood_fibres', 'appliances_energy']
    """
    return [
        {"name": name, "n": s["n"], "p": len(s["columns"]) - 1, "target": s["columns"][0]}
        | {key: s[key] for key in _TERMS}
        for name, s in _SOURCES.items()
    ]


def load(name: str) -> Dataset:
    """Load a data set; it is downloaded if there is no copy on this machine.

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
        If there is no copy on this machine and the download fails.
    """
    s = _known(name)
    path = fetch(name)
    table = _READERS.get(name, _table)(path, s["columns"])
    expected = (s["n"], len(s["columns"]))
    if table.shape != expected:
        raise ValueError(
            f"`{path}` must have {expected[0]} rows and {expected[1]} columns, got {table.shape}. "
            "Delete it and fetch it again."
        )
    target, *features = s["columns"]
    X, y = np.ascontiguousarray(table[:, 1:]), table[:, 0].copy()
    return Dataset(name, X, y, tuple(features), target, **{key: s[key] for key in _TERMS})


def fetch(name: str) -> Path:
    """Return the path of a data set; it is downloaded and checked if there is no copy here.

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
        for file in (f"{name}.csv", f"{name}.csv.gz", s["file"]):
            if (folder / file).is_file():
                return folder / file
    return download(name, s["file"], s["url"], s["sha256"])


def folder() -> Path:
    """Return the folder that is searched first: ``JACRIDGE_DATA`` if it is set, else the cache."""
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


def _known(name: str) -> dict[str, Any]:
    """Entry of a data set in `sources.toml`."""
    if name not in _SOURCES:
        raise ValueError(f"`name` must be one of {', '.join(_SOURCES)}, got {name!r}.")
    return _SOURCES[name]


def _open(path: Path) -> TextIO:
    """Open a text file, compressed or not."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def _table(path: Path, columns: Sequence[str]) -> Array:
    """Named columns of a comma-separated table, with or without quotes and padding."""
    with _open(path) as file:
        names = [name.strip() for name in next(csv.reader(file), [])]
        if missing := [name for name in columns if name not in names]:
            raise ValueError(f"`{path}` must have the columns {columns}, got no {missing}.")
        usecols = [names.index(name) for name in columns]
        return np.loadtxt(file, delimiter=",", quotechar='"', usecols=usecols, ndmin=2)


def _california(path: Path, columns: Sequence[str]) -> Array:
    """Read a table, or compute scikit-learn's features from the StatLib archive."""
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


def _toulouse(path: Path, columns: Sequence[str]) -> Array:
    """Temperature in degrees Celsius and hours since the first row."""
    rows = _weather(path)
    when = [datetime.strptime(row["date"], "%Y%m%d%H%M%S") for row in rows]
    hours = [(moment - when[0]).total_seconds() / 3600 for moment in when]
    return np.column_stack(([float(row["t"]) - _KELVIN for row in rows], hours))


def _stations(path: Path, columns: Sequence[str]) -> Array:
    """Temperature in degrees Celsius, latitude and longitude in degrees."""
    rows = [[float(row[name]) for name in ("t", "Latitude", "Longitude")] for row in _weather(path)]
    return np.array(rows) - [_KELVIN, 0, 0]


def _weather(path: Path) -> list[dict[str, str]]:
    """Rows of a table of Météo-France."""
    with _open(path) as file:
        return list(csv.DictReader(file, delimiter=";"))


_TERMS = ("licence", "citation", "source")
_SOURCES = tomllib.loads(Path(__file__).with_name("sources.toml").read_text(encoding="utf-8"))
_READERS = {"california_housing": _california, "french_1d": _toulouse, "french_2d": _stations}
