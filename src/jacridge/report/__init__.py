"""One self-contained HTML page: which bandwidth, why, and what follows from it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from time import perf_counter
from typing import Any

import numpy.typing as npt

from .. import __version__
from .._checks import check_rows, check_targets
from . import _words
from ._case import Case
from ._code import code_blocks
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
    columns: Sequence[str] | None = None,
    categories: Sequence[str] = (),
    random_state: int | None = 0,
) -> str:
    """The report as one HTML page that asks no other host for anything.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        All numbers; categories already one-hot.
    y : array of shape (n_samples,)
    features : names of the columns of X; those of a data frame if not given
    target : name of y
    bandwidth, alpha : as for JacobianKernelRidge
    standardize : whether the columns are standardised
    source : file that the code on the page reads
    columns, categories : names of the columns in the file and of those that hold categories,
        where they are not `features`
    random_state : int, optional
        Above 800 rows the curves are those of a random sample.

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
    names = list(getattr(X, "columns", [])) if features is None else list(features)
    rows = check_rows(X, "euclidean")
    names = [str(name) for name in names] or [f"x{j}" for j in range(rows.shape[1])]
    if len(names) != rows.shape[1]:
        raise ValueError(
            f"`features` must name the {rows.shape[1]} columns of `X`, got {len(names)} names."
        )
    targets = check_targets(y, rows)
    if targets.shape[1] != 1:
        raise ValueError(f"A report has one target, got {targets.shape[1]} columns in `y`.")
    case = Case(rows, targets[:, 0], names, target, bandwidth, alpha, standardize, random_state)
    code = code_blocks(case, source, list(columns or names), list(categories))
    return _filled(case, source, code, start)


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
    path = Path(path)
    page = report_page(X, y, **options)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(page)
        # mkstemp makes files that only their owner may read.
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _filled(case: Case, source: str, code: str, start: float) -> str:
    """The page with every part in its place."""
    values = {
        "title": escape(f"{case.target} by jacridge"),
        "heading": f"{escape(case.target)} <small>in {escape(source)}</small>",
        "target": escape(case.target),
        "verdict": _words.verdict(case),
        "geometry": _words.geometry(case),
        "columns": _words.columns(case),
        "sample": _words.sample(case),
        "fit_figure": _words.fit_figure(case),
        "rules_text": _words.rules_text(case),
        "rules": _words.rules(case),
        "diagnosis": _words.diagnosis(case),
        "importances": _words.importances(case),
        "code": code,
        "data": page_data(case),
        "style": _part("style.css"),
        "script": _part("script.js"),
        "version": __version__,
        "seconds": f"{perf_counter() - start:.1f}",
    }
    return Template(_part("page.html")).substitute(values)


def _part(name: str) -> str:
    return (files("jacridge") / "report" / name).read_text("utf-8")
