"""One self-contained HTML page: how well a model predicts a table, and what it depends on."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from time import perf_counter
from typing import Any, NamedTuple

import numpy.typing as npt
from threadpoolctl import threadpool_limits

from .. import __version__
from .._checks import check_choice
from .._compute.files import replaced
from .._geometry.kernels import KERNELS
from .._rules.held_out import HELD_OUT
from . import _classes, _curious, _doubts, _numbers, _quality, _words
from ._case import Case
from ._code import Origin, code_blocks
from ._columns import Column, table_of, task_name
from ._data import page_data, slider_data
from ._effects import importances
from ._figures import Figure, effect_figures, place_figures, series_figures
from ._folds import Folds, folds_of
from ._pieces import unrounded
from ._tasks import COLUMN_METRICS, TASKS, ModelSpec

__all__ = ["report_page", "write_report"]

FEWEST_REPORTED = 10  # rows of a report
Progress = Callable[[int, int, str], object]
Parts = dict[str, str | list[Figure]]  # parts of the page, by their names in the template
# Text and charts on the predictions of each task.
STORIES: dict[str, Any] = {"regression": _numbers, "classification": _classes}


def report_page(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    features: Sequence[str] | None = None,
    target: str = "y",
    task: str = "auto",
    bandwidth: Any = "auto",
    alpha: Any = None,
    kernel: str = "auto",
    metric: str = "auto",
    standardize: bool = True,
    source: str = "data.csv",
    options: Sequence[str] = (),
    left_out: int = 0,
    losses: Sequence[str] = (),
    remarks: Sequence[tuple[str, str]] = (),
    parts: Mapping[str, str] | None = None,
    held_out: str = "auto",
    random_state: int | None = 0,
    progress: Progress = lambda done, total, what: None,
) -> str:
    """The report as one HTML page that loads nothing from other hosts.

    Parameters
    ----------
    X : array of shape (n_samples, n_features), or data frame of pandas or polars
        Text columns of a data frame are one-hot encoded.
    y : array of shape (n_samples,)
        Numbers, or labels of classes.
    features : names of the columns of an array, or columns of a data frame to use
    target : name of y
    task : {"auto", "regression", "classification"}
        With "auto", text, booleans and targets with two values are classes.
    bandwidth : as for JacobianKernelRidge; "auto" stands for AutoKernelRidge
        The automatic model chooses kernel, metric, bandwidth and penalty.
    alpha : as for JacobianKernelRidge, optional
        By default chosen if `bandwidth` is "auto", else 1e-3.
    kernel : as for JacobianKernelRidge
        "auto": chosen if `bandwidth` is "auto", else "gaussian".
    metric : as for JacobianKernelRidge, except "precomputed"
        "auto": learned if `bandwidth` is "auto", else features are standardised. "geodesic" needs
        two columns: latitude, then longitude.
    standardize : whether numeric columns are divided by their standard deviations
        Only for the metric "auto", which may also be learned.
    source : file that the code on the page reads
    options : further options of the command that the page shows, such as ("--drop", "id")
    left_out : number of rows of the file that lack a value and are not in X
    losses : sentences about these rows
    remarks : names and sentences of further remarks on the data
    parts : for columns made from another column, such as the parts of a date, that column's name
    held_out : {"auto", "random", "later"}
        Rows by which models are chosen and judged: by "auto" later ones, if the rows are in time
        order, the oldest or the newest first.
    random_state : int, optional
        Seed of the samples, folds and choices.
    progress : function of (steps done, number of steps, current step), optional

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
    spec = ModelSpec(bandwidth, alpha, metric, standardize, kernel, random_state, held_out=held_out)
    case = case_of(X, y, spec, features=features, target=target, task=task, parts=parts or {})
    origin = Origin(source, tuple(options), left_out, tuple(losses), tuple(remarks))
    return make_report(case, origin, progress).page


def case_of(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    spec: ModelSpec,
    *,
    target: str,
    task: str,
    parts: Mapping[str, str],
    features: Sequence[str] | None = None,
    named_in_file: Callable[[int], str] | None = None,
) -> Case:
    """The data of a report, checked; options as for `report_page`."""
    table = table_of(X, features, parts)
    kind = TASKS[task_name(task, y)]
    labels = kind.checked(y, table.X)
    if len(labels) < FEWEST_REPORTED:
        raise ValueError(
            f"A report needs at least {FEWEST_REPORTED} rows with a value of `{target}` and no "
            f"gaps, got {len(labels)}."
        )
    if (labels == labels[0]).all():
        value = unrounded(labels[0]) if kind.name == "regression" else labels[0]
        raise ValueError(
            f"The target `{target}` must vary, got {value} in all {len(labels):,} rows. Name the "
            "column that is to be predicted."
        )
    check_choice("metric", spec.metric, COLUMN_METRICS)
    check_choice("kernel", spec.kernel, (*KERNELS, "auto"))
    check_choice("held_out", spec.held_out, ("auto", *HELD_OUT))
    return Case(table, labels, target, spec, kind, named_in_file)


def write_report(path: str | Path, X: npt.ArrayLike, y: npt.ArrayLike, **options: Any) -> Path:
    """Write the page of :func:`report_page` to a file, completely or not at all; return its path.

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


class Report(NamedTuple):
    """A page, and its main numbers and findings as plain values."""

    page: str
    summary: dict[str, Any]


def make_report(case: Case, source: Origin, progress: Progress) -> Report:
    """Make the page; parts that take time are computed in parallel."""
    start = perf_counter()
    # Many small systems: solving two at a time is faster than threads inside each. The limit is set
    # in each thread, because OpenMP, which boosted trees use, has one for each thread.
    workers = ThreadPoolExecutor(3, initializer=threadpool_limits, initargs=(1,))
    with threadpool_limits(1), _warnings_of_this_thread(), workers as pool:
        progress(0, 4, "fitting the model, and others to compare it with")
        folds = pool.submit(folds_of, case, pool.map)
        # For an automatic model, the rules have their own penalty and need not wait for the model.
        early = pool.submit(_curious.rules, case) if case.spec.is_auto else None
        case.estimator.predict(case.Z[:1])
        progress(1, 4, "analysing the columns")
        diagnosis = pool.submit(lambda: case.diagnosis)
        rules = early or pool.submit(_curious.rules, case)
        sizes = pool.submit(importances, case)
        effects = pool.submit(lambda: _words.effects(case, sizes.result()))
        sliders = pool.submit(slider_data, case)
        matters = pool.submit(lambda: _matters(case, sizes.result()))
        others = folds.result()
        progress(2, 4, "checking the model")
        diagnosis.result()
        found = _quality.remarks(case, STORIES[case.task.name].remarks(case), source)
        parts = _performance(case, others, found) | _texts(case, source)
        progress(3, 4, "writing the page")
        parts |= matters.result() | {"effects": effects.result(), "rules": rules.result()}
        figures = [
            figure for part in parts.values() if not isinstance(part, str) for figure in part
        ]
        parts["data"] = page_data(sliders.result(), [figure.chart for figure in figures])
    texts = {
        name: part if isinstance(part, str) else "".join(figure.html for figure in part)
        for name, part in parts.items()
    }
    seconds = f"{perf_counter() - start:.1f}"
    page = Template(_part("page.html")).substitute(texts, seconds=seconds)
    return Report(page, _doubts.summary(case, others, found))


def _performance(case: Case, folds: Folds | None, found: list[_quality.Remark]) -> Parts:
    """Verdict, comparison, data quality and diagnosis, and the charts of predictions."""
    story = STORIES[case.task.name]
    return {
        "verdict": f"{story.verdict(case, folds)} {_doubts.doubts(case, folds, found)}",
        "comparison": _words.comparison(case, folds),
        "performance_text": story.words(case, folds),
        "performance_figures": list(story.figures(case, folds)),
        "quality": _doubts.quality(found),
        "diagnosis": _doubts.diagnosis(case, folds, found),
    }


@contextmanager
def _warnings_of_this_thread() -> Iterator[None]:
    """Show warnings of the fit, but not of comparisons, which run in other threads."""
    show, here = warnings.showwarning, threading.get_ident()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda *message: (
            show(*message) if threading.get_ident() == here else None
        )
        yield


def _matters(case: Case, sizes: list[tuple[Column, float]]) -> Parts:
    """Importances, effects, places and times."""
    return {
        "importances": _words.importances(case, sizes),
        "effect_figures": list(effect_figures(case, sizes)),
        "place_figure": list(place_figures(case)),
        "series_figure": list(series_figures(case)),
    }


def _texts(case: Case, source: Origin) -> Parts:
    """Text that needs no further fit."""
    file = "standard input" if source.name == "-" else Path(source.name).name
    return {
        "title": escape(f"{case.target} by jacridge"),
        "heading": f"{escape(case.target)} <small>in {escape(file)}</small>",
        "shown": escape(case.shown),
        "facts": _words.facts(case, source.left_out),
        "model_text": _curious.model_text(case),
        "candidates": _curious.candidates(case),
        "effects_text": _words.effects_text(case),
        "geometry": _curious.geometry(case),
        "columns": _words.columns(case),
        "sample": _curious.sample(case),
        "norm_caption": _curious.norm_caption(case),
        "norm_text": _curious.norm_text(case),
        "rules_text": _curious.rules_text(case),
        "code": code_blocks(case, source),
        "style": _part("style.css"),
        "charts": _part("charts.js"),
        "script": _part("script.js"),
        "version": __version__,
    }


def _part(name: str) -> str:
    return (files("jacridge") / "report" / name).read_text("utf-8")
