"""The rng fixture, the small data sets, and what is not on every machine."""

import os
import shutil
from pathlib import Path

import hypothesis
import numpy as np
import pytest

hypothesis.settings.register_profile("steady", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("steady")


@pytest.fixture
def rng():
    return np.random.default_rng(20220511)


@pytest.fixture
def curve(rng):
    """Forty points of a smooth curve with a little noise: X (40, 1), y (40,)."""
    X = np.sort(rng.uniform(-3, 3, size=(40, 1)), axis=0)
    return X, np.sin(2 * X[:, 0]) + 0.05 * rng.standard_normal(40)


@pytest.fixture
def surface(rng):
    """Eighty points of a smooth surface with a little noise: X (80, 2), y (80,)."""
    X = rng.uniform(-1, 1, size=(80, 2))
    return X, np.cos(3 * X[:, 0]) * X[:, 1] + 0.05 * rng.standard_normal(80)


@pytest.fixture
def table(rng):
    """A table of 60 rows and 3 columns of unlike scales, with noise: X (60, 3), y (60,)."""
    X = rng.standard_normal((60, 3)) * [1, 10, 0.1] + [0, 5, -1]
    return X, X[:, 0] ** 2 + 0.3 * X[:, 1] + 0.2 * rng.standard_normal(60)


# Where the package keeps the sizes from which it works in parts or takes another way.
SIZES = {
    "block entries": ["_compute.arrays.BLOCK_ENTRIES"],
    "coarse rows": ["_rules.registry.COARSE_ROWS"],
    "exact rows": ["_rules.fitting.EXACT_ROWS"],
    "few rows": ["_solvers.systems.CLUSTERED_ROWS"],
    "gain rows": ["diagnostics._gains.GAIN_ROWS"],
    "grid rows": ["_rules.without_y.GRID_ROWS"],
    "inverse columns": ["_solvers.cholesky.COLUMNS"],
    "jackknife rows": ["_solvers.nystrom_model.JACKKNIFE_ROWS"],
    "landmarks": ["_rules.streams.DEFAULT"],
    "nearly equal": ["diagnostics._suspects.NEARLY_EQUAL"],
    "neighbour sample": ["_rows.extent.NEIGHBOUR_SAMPLE"],
    "pairs": ["_rules.training.MOST_PAIRS"],
    "pcg iterations": ["_solvers.pcg.ITERATIONS"],
    "pcg single rows": ["_solvers.pcg.SINGLE_ROWS"],
    "read rows": ["_rows.parquet.READ_ROWS"],
    "report sample": ["report._case.SOLVED_ROWS"],
    "sample": ["_rules.streams.SAMPLE", "_select.SAMPLE"],
    "seconds between lines": ["cli._terminal.NEXT_LINES"],
    "seconds for workers": ["cli._parts.WORKERS_WITHIN"],
    "seconds to a first line": ["cli._terminal.FIRST_LINE"],
    "step rows": ["_rules.without_y.STEP_ROWS"],
    "task rows": ["_rows.rows.TASK_ROWS"],
}
# What the package asks the machine for.
ASKED = {
    "memory": ["_compute.memory.available_memory", "_rules.fitting.available_memory"],
    "memory for tables": ["cli._tables.available_memory"],
    "processors": [
        "_compute.threads.processors",
        "_rows.rows.processors",
        "_solvers.cholesky.processors",
    ],
}


@pytest.fixture
def size(monkeypatch):
    """Function that sets a size of the package, or of the machine, for one test."""

    def set_to(name, value):
        for path in SIZES.get(name, ()):
            monkeypatch.setattr(f"jacridge.{path}", value)
        for path in () if name in SIZES else ASKED[name]:
            monkeypatch.setattr(f"jacridge.{path}", lambda: value)

    return set_to


@pytest.fixture(scope="session")
def paper_data():
    """The folder with the paper's data, or a skip that says how to get it."""
    folder = os.environ.get("JACRIDGE_DATA")
    if not folder:
        pytest.skip(
            "JACRIDGE_DATA names no folder. Run `jacridge data fetch all` and set it to the "
            "folder that `jacridge data path` prints."
        )
    return Path(folder)


@pytest.fixture(scope="session")
def paper_table(paper_data):
    """Function of a file's name that returns X and y of one of the paper's five tables."""

    def load(name):
        rows = np.loadtxt(paper_data / name, delimiter=",", skiprows=1)
        return rows[:, 1:], rows[:, 0]

    return load


@pytest.fixture(scope="session")
def chromium():
    """The path of a Chromium; without one a skip, or a failure where a browser is a must."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    reason = "No Chromium was found. Install Debian's `chromium` to run the tests of the report."
    if os.environ.get("JACRIDGE_NEEDS_BROWSER"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def run(capsys):
    """Function that runs the command and returns exit code, stdout and stderr."""
    from jacridge.cli import main  # which needs extras

    def call(*args):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return end.value.code or 0, out, err

    return call
