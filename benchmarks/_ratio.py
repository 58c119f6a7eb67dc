"""Time two functions in turn, measure the memory that one takes, print rows as CSV."""

from __future__ import annotations

import csv
import gzip
import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

TABLES = {
    "wood_fibres": "wood_fibres.csv",
    "appliances": "appliances_energy.csv.gz",
    "california": "california_housing.csv.gz",
    "protein": "protein.csv.gz",
    "black_smoke": "black_smoke.csv.gz",
}


def seconds_of(*functions: Callable[[], Any], rounds: int = 5) -> list[float]:
    """Best time of each function over rounds in which they take turns."""
    best = [np.inf] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            start = perf_counter()
            function()
            best[i] = min(best[i], perf_counter() - start)
    return best


def peak_bytes(function: Callable[..., Any], *args: Any) -> int:
    """Most memory that the function takes beyond what is there before it, in a fresh process."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(peak_here, (function, *args))


def peak_here(function: Callable[..., Any], *args: Any) -> int:
    """Most memory that the function takes beyond what this process has before it."""
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # sets the high-water mark back
    function(*args)
    return _status("VmHWM") - before


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def path_of(name: str) -> Path:
    """Where a table is, in the folder JACRIDGE_DATA."""
    return Path(os.environ["JACRIDGE_DATA"]) / TABLES[name]


def whole_table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and target of all rows of a table, in its order."""
    path = path_of(name)
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as file:
        A = np.loadtxt(file, delimiter=",", skiprows=1)
    return A[:, 1:], A[:, 0]


def table(name: str, rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features and target of rows taken at random from a table."""
    X, y = whole_table(name)
    some = np.random.default_rng(seed).permutation(len(y))[:rows]
    return X[some], y[some]


def standardised(X: np.ndarray) -> np.ndarray:
    """Features with mean 0 and standard deviation 1, constant ones left at 0."""
    scale = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)


def tables() -> list[str]:
    """Names of the paper's tables, if JACRIDGE_DATA says where they are."""
    if "JACRIDGE_DATA" not in os.environ:
        print("JACRIDGE_DATA is not set: the paper's tables are left out", file=sys.stderr)
        return []
    return list(TABLES)


class Rows:
    """CSV on standard output, the header before the first row."""

    def __init__(self) -> None:
        self.writer: Any = None

    def add(self, **row: Any) -> None:
        """Print one row."""
        if self.writer is None:
            self.writer = csv.DictWriter(sys.stdout, list(row), lineterminator="\n")
            self.writer.writeheader()
        self.writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})
        sys.stdout.flush()
