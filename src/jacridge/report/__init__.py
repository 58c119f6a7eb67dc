"""One self-contained HTML page: which bandwidth, why, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from time import perf_counter
from typing import Any

import numpy.typing as npt
from threadpoolctl import threadpool_limits

from .. import __version__
from .._checks import check_targets
from .._files import replaced
from . import _words
from ._case import Case, table_of
from ._code import Source, code_blocks
from ._data import page_data

__all__ = ["report_page", "write_report"]


def report_page(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    features: Sequence[str] | None = None,
    target: str = "y",
    bandwidth: Any = "jacobian",
    alpha: Any = 1e-3,
    standardize: bool = True,
    source: str = "data.csv",
    options: Sequence[str] = (),
    left_out: int = 0,
    random_state: int | None = 0,
) -> str:
    """The report as one HTML page that asks no other host for anything.

    Parameters
    ----------
    X : array of shape (n_samples, n_features), or data frame of pandas or polars
        Columns of a data frame that hold texts are one-hot encoded.
    y : array of shape (n_samples,)
    features : names of the columns of an array, or columns of a data frame to use
    target : name of y
    bandwidth, alpha : as for JacobianKernelRidge
    standardize : whether columns of numbers are standardised
    source : file that the code on the page reads
    options : further options of the command that the page shows, such as ("--drop", "id")
    left_out : number of rows of the file that lack a value and are not in X
    random_state : int, optional
        Above 600 rows the curves are those of a random sample.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> page = report_page(X, np.sin(X[:, 0]), features=["time"], target="height")
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    start = perf_counter()
    table = table_of(X, features)
    targets = check_targets(y, table.X)
    if targets.shape[1] != 1:
        raise ValueError(f"A report has one target, got {targets.shape[1]} columns in `y`.")
    if len(targets) < 3:
        raise ValueError(f"A report needs at least 3 rows, got {len(targets)}.")
    case = Case(table, targets[:, 0], target, bandwidth, alpha, standardize, random_state)
    return _filled(case, Source(source, tuple(options), left_out), start)


def write_report(path: str | Path, X: npt.ArrayLike, y: npt.ArrayLike, **options: Any) -> Path:
    """Write the page of :func:`report_page` to a file, all of it or nothing; returns its path.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> folder = tempfile.mkdtemp()
    >>> write_report(folder + "/report.html", X, np.sin(X[:, 0])).name
    'report.html'
    """
    page = report_page(X, y, **options)
    with replaced(path) as beside:
        beside.write_text(page, encoding="utf-8")
    return Path(path)


def _filled(case: Case, source: Source, start: float) -> str:
    """The page with every part in its place."""
    values = {
        "title": escape(f"{case.target} by jacridge"),
        "heading": f"{escape(case.target)} <small>in {escape(_shown(source))}</small>",
        "target": escape(case.target),
        "verdict": _words.verdict(case, source.left_out),
        "geometry": _words.geometry(case),
        "columns": _words.columns(case),
        "sample": _words.sample(case),
        "fit_figure": _words.fit_figure(case),
        "rules_text": _words.rules_text(case),
        "importances": _words.importances(case),
        "code": code_blocks(case, source),
        "style": _part("style.css"),
        "script": _part("script.js"),
        "version": __version__,
    }
    # Many small factorisations: more threads gain little, and wait for each other on busy cores.
    with threadpool_limits(1, user_api="blas"):
        values |= {
            "rules": _words.rules(case),
            "diagnosis": _words.diagnosis(case),
            "data": page_data(case),
        }
    seconds = f"{perf_counter() - start:.1f}"
    return Template(_part("page.html")).substitute(values, seconds=seconds)


def _shown(source: Source) -> str:
    """The name of the file as the heading has it."""
    return "standard input" if source.name == "-" else Path(source.name).name


def _part(name: str) -> str:
    return (files("jacridge") / "report" / name).read_text("utf-8")
