"""The harness of the experiments: rows survive a kill, and are made once, in order."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inside import Harness, Job, experiment_table, largest, write_rows

read_rows = experiment_table.read_rows


def two_rows(seed, log=None):
    """Rows that depend on the seed only; `log` is a file that counts the calls."""
    if log is not None:
        with Path(log).open("a") as file:
            file.write(f"{seed}\n")
    return [{"rule": "a", "sigma": seed / 3}, {"rule": "b", "sigma": seed + 0.5}]


def wait_and_return(seed, seconds):
    time.sleep(seconds)
    return two_rows(seed)


def fail(seed):
    raise RuntimeError(f"seed {seed}")


def jobs(n, log=None):
    return [Job({"seed": seed}, two_rows, (seed, log), 2) for seed in range(n)]


def plain(rows):
    return [{key: row[key] for key in ("seed", "rule", "sigma")} for row in rows]


def test_rows_have_the_key_the_values_and_the_versions(tmp_path):
    row = Harness(tmp_path).rows("x", jobs(1))[0]
    assert list(row) == ["seed", "rule", "sigma", "versions"]
    assert "jacridge " in row["versions"]
    assert "numpy " in row["versions"]


def test_rows_read_back_from_the_file_are_the_rows_returned(tmp_path):
    made = Harness(tmp_path).rows("x", jobs(3))
    assert read_rows(tmp_path / "x.csv") == made


def test_a_second_run_makes_nothing_and_returns_the_same(tmp_path):
    log = str(tmp_path / "log")
    first = Harness(tmp_path).rows("x", jobs(3, log))
    second = Harness(tmp_path).rows("x", jobs(3, log))
    assert first == second
    assert Path(log).read_text() == "0\n1\n2\n"


@pytest.mark.parametrize("lost", [1, 10, 40, 200, 330])
def test_a_file_cut_anywhere_is_completed_to_the_same_rows(tmp_path, lost):
    whole = Harness(tmp_path).rows("x", jobs(3))
    path = tmp_path / "x.csv"
    os.truncate(path, path.stat().st_size - lost)
    assert Harness(tmp_path).rows("x", jobs(3)) == whole
    assert read_rows(path) == whole


def test_rows_of_other_jobs_stay_in_the_file(tmp_path):
    Harness(tmp_path).rows("x", jobs(5))
    fewer = Harness(tmp_path).rows("x", jobs(2))
    assert len(fewer) == 4
    assert len(read_rows(tmp_path / "x.csv")) == 10


@pytest.mark.slow
def test_processes_give_the_rows_of_one_process_and_share_the_processors(tmp_path):
    log = str(tmp_path / "threads")
    many = [Job({"seed": seed}, rows_and_threads, (seed, log), 2) for seed in range(4)]
    one = Harness(tmp_path / "one").rows("x", jobs(4))
    two = Harness(tmp_path / "two", processes=2).rows("x", many)
    assert one == two
    assert (tmp_path / "one/x.csv").read_bytes() == (tmp_path / "two/x.csv").read_bytes()
    threads = [int(line) for line in Path(log).read_text().splitlines()]
    assert len(threads) == 4
    assert max(threads) <= max(1, os.cpu_count() // 2)


def rows_and_threads(seed, log):
    """The same rows, and one more line in the file of the threads that BLAS may take."""
    from threadpoolctl import threadpool_info

    threads = max((library["num_threads"] for library in threadpool_info()), default=1)
    with Path(log).open("a") as file:
        file.write(f"{threads}\n")
    return two_rows(seed)


def test_an_error_in_a_job_keeps_the_rows_before_it(tmp_path):
    broken = [*jobs(2), Job({"seed": 9}, fail, (9,), 2)]
    with pytest.raises(RuntimeError, match="seed 9"):
        Harness(tmp_path).rows("x", broken)
    assert plain(read_rows(tmp_path / "x.csv")) == plain(Harness(tmp_path).rows("x", jobs(2)))


def test_progress_is_told_from_where_the_run_goes_on(tmp_path):
    told = []
    Harness(tmp_path).rows("x", jobs(1))
    Harness(tmp_path, progress=lambda *step: told.append(step)).rows("x", jobs(3))
    assert told == [(1, 3, "x"), (2, 3, "x"), (3, 3, "x")]


def test_a_file_with_other_columns_is_not_added_to(tmp_path):
    write_rows(tmp_path / "x.csv", [{"seed": 7, "something": 1}])
    with pytest.raises(ValueError, match=r"must have the columns .* got \['seed', 'something'\]"):
        Harness(tmp_path).rows("x", jobs(1))


def test_splits_asked_for_win_over_quick_and_full(tmp_path):
    assert Harness(tmp_path).n_splits(full=10, quick=2) == 10
    assert Harness(tmp_path, quick=True).n_splits(full=10, quick=2) == 2
    assert Harness(tmp_path, splits=3, quick=True).n_splits(full=10, quick=2) == 3


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the signal is a POSIX one")
def test_a_killed_run_goes_on_and_leaves_no_process(tmp_path):
    code = (
        "from test_experiments_table import *\n"
        "if __name__ == '__main__':\n"
        "    jobs = [Job({'seed': s}, wait_and_return, (s, 0.3), 2) for s in range(40)]\n"
        f"    Harness(Path({str(tmp_path)!r}), processes=2).rows('x', jobs)\n"
    )
    (tmp_path / "run.py").write_text(code)
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    env = {**os.environ, "PYTHONPATH": path}
    run = subprocess.Popen([sys.executable, tmp_path / "run.py"], env=env)
    deadline = time.monotonic() + 60
    while len(read_rows(tmp_path / "x.csv")) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    children = children_of(run.pid)
    run.send_signal(signal.SIGKILL)
    run.wait()

    kept = plain(read_rows(tmp_path / "x.csv"))
    assert 4 <= len(kept) < 80
    whole = plain(Harness(tmp_path).rows("x", jobs(40)))
    assert [row for row in whole if row in kept] == sorted(kept, key=lambda row: row["seed"])
    assert whole == [{"seed": s, **row} for s in range(40) for row in two_rows(s)]
    while any(Path(f"/proc/{pid}").exists() for pid in children):
        assert time.monotonic() < deadline, children
        time.sleep(0.05)


def children_of(pid):
    """Ids of the processes that a process has started."""
    task = Path(f"/proc/{pid}/task/{pid}/children")
    return task.read_text().split() if task.exists() else []


def end_this_process(seed):
    if seed == 2:
        os._exit(9)
    return two_rows(seed)


@pytest.mark.slow
def test_a_killed_worker_is_told_and_rows_are_kept(tmp_path):
    mixed = [Job({"seed": seed}, end_this_process, (seed,), 2) for seed in range(3)]
    with pytest.raises(RuntimeError, match=r"was killed.*run it again, with fewer jobs"):
        Harness(tmp_path, processes=2).rows("x", mixed)
    whole = plain(Harness(tmp_path).rows("x", jobs(3)))
    assert whole == [{"seed": s, **row} for s in range(3) for row in two_rows(s)]


def test_rows_of_a_quick_run_are_left_out_of_the_full_ones():
    rows = [{"rows_used": n, "seed": seed} for seed in (0, 1) for n in (2000, 10_000)]
    assert largest(rows, "rows_used") == [rows[1], rows[3]]
    assert largest([], "rows_used") == []
