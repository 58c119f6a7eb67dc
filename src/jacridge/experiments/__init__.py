"""Reruns of every table and figure of the paper: rows in CSV files, and figures from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jacridge._checks import check_choice, require

from . import beyond, demo, kernels, made_up, real_data, sweeps, temperature
from ._table import Harness, Job, Progress, Row, largest, read_rows

__all__ = ["EXPERIMENTS", "GROUPS", "draw_experiment", "run_experiment"]


@dataclass(frozen=True)
class Experiment:
    """Jobs that make rows, and functions that draw figures and write tables from them.

    `size` is the column that identifies rows of a quick run. `more` are further tables, made by
    jobs that start from the rows of the first; `draw` takes the rows of all tables.
    """

    jobs: Callable[[Harness], list[Job]]
    draw: Callable[..., Any]
    size: str | None = None
    more: Mapping[str, Callable[[list[Row]], list[Job]]] = field(default_factory=dict)
    texts: Mapping[str, Callable[[list[Row]], str]] = field(default_factory=dict)


TABLE_2 = {
    "table2.md": real_data.as_markdown,
    "table2.tex": real_data.as_latex,
    "table2_summary.csv": real_data.as_csv,
}
FIG_4 = {"fig4_map": temperature.fig4_map_jobs}
FIG_5 = {"fig5_curve": temperature.fig5_curve_jobs}
EXPERIMENTS: dict[str, Experiment] = {
    "fig1": Experiment(demo.fig1_jobs, demo.draw_fig1),
    "fig2": Experiment(demo.fig2_jobs, demo.draw_fig2),
    "fig3": Experiment(demo.fig3_jobs, demo.draw_fig3),
    "fig4": Experiment(temperature.fig4_jobs, temperature.draw_fig4, more=FIG_4),
    "fig5": Experiment(temperature.fig5_jobs, temperature.draw_fig5, more=FIG_5),
    "fig6": Experiment(sweeps.fig6_jobs, sweeps.draw_fig6),
    "fig7": Experiment(sweeps.fig7_jobs, sweeps.draw_fig7),
    "table2": Experiment(real_data.table2_jobs, real_data.draw_table2, "rows_used", texts=TABLE_2),
    "beyond_rules": Experiment(beyond.rules_jobs, beyond.draw_rules, "n"),
    "beyond_true": Experiment(beyond.true_jobs, beyond.draw_true, "n"),
    "beyond_subsamples": Experiment(beyond.subsamples_jobs, beyond.draw_subsamples),
    "beyond_gp": Experiment(made_up.known_scale_jobs, made_up.draw_known_scale, "n"),
    "beyond_high_p": Experiment(made_up.high_p_jobs, made_up.draw_high_p, "n"),
    "beyond_kernel_factors": Experiment(kernels.factors_jobs, kernels.draw_factors, "points"),
    "beyond_kernel_norms": Experiment(kernels.norms_jobs, kernels.draw_norms, "points"),
    "beyond_kernels": Experiment(
        kernels.without_y_jobs,
        kernels.draw_without_y,
        "n",
        texts={"beyond_kernels.md": kernels.as_markdown},
    ),
}
# Names that stand for several experiments.
GROUPS = {
    "all": tuple(EXPERIMENTS),
    "beyond": tuple(name for name in EXPERIMENTS if name.startswith("beyond")),
}


def run_experiment(
    name: str,
    out: str | Path,
    splits: int | None = None,
    jobs: int = 1,
    quick: bool = False,
    progress: Progress | None = None,
) -> list[Path]:
    """Run or continue an experiment of the paper, and return the files it has written.

    Rows are written to CSV files as they are made; a run that was killed continues where it
    stopped. Then the figure is drawn as PNG and PDF, and tables are written as Markdown and LaTeX.

    Parameters
    ----------
    name : str
        One of ``EXPERIMENTS``, or of ``GROUPS``: "beyond" or "all".
    out : path
        Folder for the files; created if it does not exist.
    splits : int, optional
        Number of splits, or seeds; each experiment has its own default.
    jobs : int
        Number of processes. Each gets its share of the processors for BLAS.
    quick : bool
        Fewer splits and fewer rows: takes a few minutes in all, to check that everything works.
    progress : function of (done, total, what), optional
        Called with the number of jobs done, before the first and after each one.

    Returns
    -------
    list of pathlib.Path
    """
    if name in GROUPS:
        done = [run_experiment(each, out, splits, jobs, quick, progress) for each in GROUPS[name]]
        return [path for paths in done for path in paths]
    experiment = EXPERIMENTS[check_choice("name", name, (*EXPERIMENTS, *GROUPS))]
    for number, value in (("splits", splits), ("jobs", jobs)):
        if value is not None and value < 1:
            raise ValueError(f"`{number}` must be a whole number >= 1, got {value}.")
    require("matplotlib.figure", extra="plots")  # fail now, not after an hour
    harness = Harness(Path(out), splits, jobs, quick, progress)
    harness.out.mkdir(parents=True, exist_ok=True)
    rows = harness.rows(name, experiment.jobs(harness))
    more = {each: harness.rows(each, jobs(rows)) for each, jobs in experiment.more.items()}
    return _write(name, experiment, {name: rows, **more}, harness.out)


def draw_experiment(name: str, out: str | Path) -> list[Path]:
    """Redraw an experiment from the rows in a folder, without running it.

    Parameters
    ----------
    name : str
        One of ``EXPERIMENTS``.
    out : path
        Folder with the CSV files of `run_experiment`.

    Returns
    -------
    list of pathlib.Path
    """
    experiment = EXPERIMENTS[check_choice("name", name, EXPERIMENTS)]
    tables = {each: read_rows(Path(out) / f"{each}.csv") for each in (name, *experiment.more)}
    if missing := [f"{each}.csv" for each, rows in tables.items() if not rows]:
        raise FileNotFoundError(
            f"`{out}` must have {', '.join(missing)}. Run the experiment first."
        )
    if experiment.size is not None:
        tables = {each: largest(rows, experiment.size) for each, rows in tables.items()}
    return _write(name, experiment, tables, Path(out))


def _write(
    name: str, experiment: Experiment, tables: dict[str, list[Row]], out: Path
) -> list[Path]:
    """Write figure and tables, and return all paths of the experiment."""
    paths = [out / f"{each}.csv" for each in tables]
    for file, text in experiment.texts.items():
        paths.append(out / file)
        paths[-1].write_text(text(tables[name]), encoding="utf-8")
    drawn = experiment.draw(*tables.values())
    for kind in ("png", "pdf"):
        paths.append(out / f"{name}.{kind}")
        drawn.savefig(paths[-1], dpi=150)
    return paths
