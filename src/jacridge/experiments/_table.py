"""Rows of experiments: made by jobs, kept in a CSV file from which a killed run continues."""

from __future__ import annotations

import csv
import io
import multiprocessing
import os
import platform
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from jacridge import __version__
from jacridge._compute.files import replaced
from jacridge._compute.threads import processors

Row = dict[str, Any]
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Job:
    """A call that makes `n_rows` rows; `key` is part of each row and identifies the job."""

    key: Row
    work: Callable[..., list[Row]]
    arguments: tuple[Any, ...] = ()
    n_rows: int = 1

    def rows(self) -> list[Row]:
        """The rows of this job: key first, versions last."""
        made = [{**self.key, **row, "versions": versions()} for row in self.work(*self.arguments)]
        assert len(made) == self.n_rows, (self.key, len(made))
        return made


def job(work: Callable[..., list[Row]], n_rows: int = 1, /, **key: Any) -> Job:
    """A job whose arguments are the values of its key, in order."""
    return Job(key, work, tuple(key.values()), n_rows)


def grid_of_jobs(
    work: Callable[..., list[Row]], n_rows: int = 1, /, **values: Iterable[Any]
) -> list[Job]:
    """A job for each combination of the values of a key, seed by seed."""
    keys = [dict(zip(values, each, strict=True)) for each in product(*values.values())]
    keys.sort(key=lambda key: key.get("seed", 0))
    return [job(work, n_rows, **key) for key in keys]


def table_rows(**columns: Any) -> list[Row]:
    """Rows from columns; a single value is repeated in every row."""
    values = np.broadcast_arrays(*columns.values())
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


@dataclass(frozen=True)
class Harness:
    """How an experiment is run: folder for its rows, number of splits, number of processes."""

    out: Path
    splits: int | None = None
    processes: int = 1
    quick: bool = False
    progress: Progress | None = field(default=None, compare=False)

    def n_splits(self, full: int, quick: int) -> int:
        """The number of splits asked for, or the default of the experiment."""
        return self.splits or (quick if self.quick else full)

    def rows(self, name: str, jobs: Sequence[Job]) -> list[Row]:
        """The rows of all jobs in order; rows in ``name.csv`` are read, the others are computed.

        All jobs of one file have the same key columns. Rows of other jobs stay in the file.
        """
        path = self.out / f"{name}.csv"
        wanted = {_named(job.key, job.key): job for job in jobs}
        found: dict[Any, list[Row]] = {}
        for row in read_rows(path):
            found.setdefault(_named(row, jobs[0].key), []).append(row)
        # Rows of a job that was killed half way are not kept.
        done = {
            name: rows
            for name, rows in found.items()
            if name not in wanted or len(rows) == wanted[name].n_rows
        }
        write_rows(path, list(chain.from_iterable(done.values())))
        todo = [job for name, job in wanted.items() if name not in done]
        self._tell(len(jobs) - len(todo), len(jobs), name)
        for i, (job, rows) in enumerate(_results(todo, self.processes)):
            append_rows(path, rows)
            done[_named(job.key, job.key)] = rows
            self._tell(len(jobs) - len(todo) + i + 1, len(jobs), name)
        ours = [row for name in wanted for row in done.pop(name)]
        write_rows(path, [*ours, *chain.from_iterable(done.values())])
        return [_parsed(row) for row in ours]

    def _tell(self, done: int, total: int, name: str) -> None:
        if self.progress is not None:
            self.progress(done, total, name)


@cache
def versions() -> str:
    """Versions of the software that computes a row."""
    others = [f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn")]
    python = f"python {platform.python_version()}"
    return ", ".join([f"jacridge {__version__}", python, *others])


def largest(rows: list[Row], size: str) -> list[Row]:
    """The rows of the full run, in case a quick run has used the same folder."""
    most = max((row[size] for row in rows), default=0)
    return [row for row in rows if row[size] == most]


def read_rows(path: Path) -> list[Row]:
    """The rows of a CSV file, with numbers as numbers; an incomplete last line is dropped."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = io.StringIO(text[: text.rfind("\n") + 1])
    return [_parsed(row) for row in csv.DictReader(whole)]


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write a CSV file as a whole, or remove it if there are no rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not rows:
        path.unlink(missing_ok=True)
        return
    with replaced(path) as beside:
        beside.write_text(as_text(rows), encoding="utf-8")


def append_rows(path: Path, rows: Sequence[Row]) -> None:
    """Append rows to a CSV file and flush them to disk."""
    if not path.exists():
        write_rows(path, rows)
        return
    with path.open("r+", encoding="utf-8", newline="") as file:
        columns = file.readline().rstrip("\n").split(",")
        if columns != list(rows[0]):
            raise ValueError(
                f"`{path}` must have the columns {list(rows[0])}, got {columns}. "
                "It comes from another version: move it away, or choose another folder."
            )
        file.seek(0, os.SEEK_END)
        file.write(as_text(rows, header=False))
        file.flush()
        os.fsync(file.fileno())


def as_text(rows: Sequence[Row], *, header: bool = True) -> str:
    """Rows as lines of CSV."""
    file = io.StringIO()
    writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def _parsed(row: Row) -> Row:
    """Row with its values as they are read back from text: int, float or str."""
    return {column: _value(value) for column, value in row.items()}


def _value(value: Any) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(str(value))
        except ValueError:
            pass
    return str(value)


def _named(row: Row, key: Row) -> tuple[int | float | str, ...]:
    """The values of a row in the columns of a key, in a form that can be compared."""
    return tuple(_value(row.get(column)) for column in key)


def _results(jobs: Sequence[Job], processes: int) -> Iterator[tuple[Job, list[Row]]]:
    """Each job with its rows, as they are finished."""
    if processes == 1 or len(jobs) < 2:
        for job in jobs:
            yield job, job.rows()
        return
    # A fresh process has no threads of ours; a forked one could hang in them.
    context = multiprocessing.get_context("spawn")
    threads = max(1, processors() // processes)
    pool = ProcessPoolExecutor(processes, context, _start_worker, (threads,))
    try:
        running = {pool.submit(job.rows): job for job in jobs}
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()
    except BrokenProcessPool as problem:
        raise RuntimeError(
            "A process of this run was killed, perhaps because memory ran out. "
            "The rows so far are kept: run it again, with fewer jobs."
        ) from problem
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start_worker(threads: int) -> None:
    """Limit the threads of BLAS, and exit if the parent is killed."""
    threadpool_limits(threads)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
