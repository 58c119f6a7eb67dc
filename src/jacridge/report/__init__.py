"""One self-contained HTML page: how well a model predicts a table, and what it depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from .._compute.files import replaced
from . import _words
from ._case import Case
from ._code import Source, code_blocks
from ._columns import table_of
from ._data import page_data
from ._figures import Figures, figures_of
from ._folds import folds_of
from ._quality import remarks

__all__ = ["report_page", "write_report"]

Progress = Callable[[int, int, str], object]


def report_page(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    features: Sequence[str] | None = None,
    target: str = "y",
    bandwidth: Any = "auto",
    alpha: Any = None,
    standardize: bool = True,
    source: str = "data.csv",
    options: Sequence[str] = (),
    left_out: int = 0,
    losses: Sequence[str] = (),
    parts: Mapping[str, str] | None = None,
    random_state: int | None = 0,
    progress: Progress = lambda done, total, what: None,
) -> str:
    """The report as one HTML page that asks no other host for anything.

    Parameters
    ----------
    X : array of shape (n_samples, n_features), or data frame of pandas or polars
        Columns of a data frame that hold texts are one-hot encoded.
    y : array of shape (n_samples,)
    features : names of the columns of an array, or columns of a data frame to use
    target : name of y
    bandwidth : as for JacobianKernelRidge; "auto" stands for AutoKernelRidge
        The automatic model chooses kernel, metric, bandwidth and penalty.
    alpha : as for JacobianKernelRidge, optional
        Chosen by "auto", else 1e-3, if not given.
    standardize : whether columns of numbers are divided by their standard deviations
        "auto" may then also learn a metric.
    source : file that the code on the page reads
    options : further options of the command that the page shows, such as ("--drop", "id")
    left_out : number of rows of the file that lack a value and are not in X
    losses : sentences on these rows
    parts : for columns that were made of another one, such as the parts of a date, its name
    random_state : int, optional
        Seed of the samples, folds and choices.
    progress : function of (steps done, all steps, what is done now), optional

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
    table = table_of(X, features, parts or {})
    targets = check_targets(y, table.X)
    if targets.shape[1] != 1:
        raise ValueError(f"A report has one target, got {targets.shape[1]} columns in `y`.")
    if len(targets) < 3:
        raise ValueError(f"A report needs at least 3 rows, got {len(targets)}.")
    if alpha is None:
        alpha = "auto" if isinstance(bandwidth, str) and bandwidth == "auto" else 1e-3
    case = Case(table, targets[:, 0], target, bandwidth, alpha, standardize, random_state)
    about = Source(source, tuple(options), left_out, tuple(losses))
    return _filled(case, about, start, progress)


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


def _filled(case: Case, source: Source, start: float, progress: Progress) -> str:
    """The page with every part in its place."""
    progress(0, 4, "fitting the model")
    case.estimator.predict(case.Z[:1])
    progress(1, 4, "comparing with other models")
    # Many small systems: threads gain little, and wait for each other on busy cores.
    with threadpool_limits(1):
        folds = folds_of(case)
        progress(2, 4, "looking at the columns")
        figures = figures_of(case, folds)
        found = remarks(case, source.losses, source.lost_many(len(case.y)))
        progress(3, 4, "checking the model")
        values = {
            "verdict": _words.verdict(case, folds, found),
            "comparison": _words.comparison(folds),
            "interval_text": _words.interval_text(folds),
            "quality": _words.quality(found),
            "diagnosis": _words.diagnosis(case),
            "rules": _words.rules(case),
            "data": page_data(case, figures.charts),
        }
    values |= _texts(case, source) | _matters(case, figures)
    seconds = f"{perf_counter() - start:.1f}"
    return Template(_part("page.html")).substitute(values, seconds=seconds)


def _texts(case: Case, source: Source) -> dict[str, str]:
    """What takes no time to say."""
    return {
        "title": escape(f"{case.target} by jacridge"),
        "heading": f"{escape(case.target)} <small>in {escape(_shown(source))}</small>",
        "target": escape(case.target),
        "facts": _words.facts(case, source.left_out),
        "fit_text": _words.fit_text(case),
        "model_text": _words.model_text(case),
        "candidates": _words.candidates(case),
        "geometry": _words.geometry(case),
        "columns": _words.columns(case),
        "sample": _words.sample(case),
        "norm_caption": _words.norm_caption(case),
        "norm_text": _words.norm_text(case),
        "rules_text": _words.rules_text(case),
        "code": code_blocks(case, source),
        "style": _part("style.css"),
        "script": _part("script.js"),
        "version": __version__,
    }


def _matters(case: Case, figures: Figures) -> dict[str, str]:
    """What the predictions depend on."""
    return {
        "interval_figure": figures.intervals,
        "importances": _words.importances(case, figures.importances),
        "effect_figures": figures.effects,
        "place_figure": figures.places,
        "series_figure": figures.series,
        "effects": _words.effects(case),
    }


def _shown(source: Source) -> str:
    """The name of the file as the heading has it."""
    return "standard input" if source.name == "-" else Path(source.name).name


def _part(name: str) -> str:
    return (files("jacridge") / "report" / name).read_text("utf-8")
