"""Blocks of rows, our own threads, and the one thread that BLAS has beside them."""

import subprocess
import sys
from threading import Barrier, Event, Lock, Thread, current_thread, local
from time import sleep

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from jacridge._compute import threads
from jacridge._compute.arrays import fixed_sample, row_blocks, rows_per_block, weighted_mean
from jacridge._compute.threads import (
    blas_for,
    for_blocks,
    in_order,
    in_threads,
    lapack_for,
    one_blas_thread,
    our_threads,
)


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def two_blas_threads():
    """BLAS with two threads, however few there are of processors."""
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("The BLAS of this machine has one thread only.")
        yield


@pytest.mark.parametrize(("n", "size"), [(1, 1), (10, 3), (10, 10), (10, 100), (0, 5)])
def test_row_blocks_cover_all_rows_once_and_in_order(n, size):
    blocks = [np.arange(n)[rows] for rows in row_blocks(n, size)]
    assert all(len(block) <= size for block in blocks)
    assert np.concatenate([np.empty(0, int), *blocks]).tolist() == list(range(n))


def test_a_block_of_any_width_has_at_least_one_row_and_about_a_million_entries():
    for width in (0, 1, 1000, 10**9):
        rows = rows_per_block(width)
        assert rows >= 1
        assert rows == 1 or rows * max(width, 1) <= 1 << 20


@pytest.mark.parametrize(("n", "most"), [(5, 9), (5, 5), (10, 3), (100_000, 7)])
def test_a_fixed_sample_is_always_the_same_and_rises(n, most):
    found = fixed_sample(n, most)
    assert len(found) == min(n, most)
    assert (np.diff(found) > 0).all()
    assert 0 <= found[0] <= found[-1] < n
    np.testing.assert_array_equal(fixed_sample(n, most), found)


@pytest.mark.parametrize("period", [2, 5, 7, 10, 24])
def test_a_fixed_sample_has_all_phases_of_a_period_alike(period):
    shares = np.bincount(fixed_sample(10_000, 1000) % period) / 1000
    # A share s of 1000 rows is known to sqrt(s (1 - s) / 1000); four times that.
    error = np.sqrt((1 - 1 / period) / period / 1000)
    np.testing.assert_allclose(shares, 1 / period, atol=4 * error)


def test_the_mean_of_a_constant_is_that_constant(rng):
    for value in (0.1, 1 / 3, -1e20):
        w = rng.uniform(0.1, 3, 1001)
        assert weighted_mean(np.full((1001, 1), value), w).tolist() == [value]


def test_the_mean_counts_a_row_as_often_as_its_weight_says(rng):
    y, w = rng.standard_normal((9, 2)), rng.integers(1, 4, 9)
    expected = np.repeat(y, w, axis=0).mean(axis=0)
    np.testing.assert_allclose(weighted_mean(y, w.astype(float)), expected, rtol=1e-12)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("few", [0, 1000])
def test_work_is_done_once_for_each_row_in_one_thread_or_many(monkeypatch, workers, few):
    monkeypatch.setattr(threads, "processors", lambda: workers)
    monkeypatch.setattr(threads, "SMALL_ORDER", few)
    visits = np.zeros(100)

    def work(rows):
        visits[rows] += 1

    for_blocks(work, 100, 7)
    assert (visits == 1).all()


@pytest.mark.parametrize("few", [0, 1000])
def test_an_error_in_a_thread_reaches_the_caller(monkeypatch, few):
    monkeypatch.setattr(threads, "SMALL_ORDER", few)

    def work(rows):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        for_blocks(work, 10, 3)


def test_all_work_has_ended_when_an_error_reaches_the_caller(monkeypatch):
    """The caller may then overwrite the arrays."""
    monkeypatch.setattr(threads, "processors", lambda: 2)
    begun, ended = Event(), Event()

    def work(i):
        if i == 0:
            assert begun.wait(10)
            raise ZeroDivisionError
        begun.set()
        sleep(0.05)
        ended.set()

    with pytest.raises(ZeroDivisionError):
        in_threads(work, range(2))
    assert ended.is_set()


def test_all_work_has_ended_when_the_next_item_cannot_be_made(monkeypatch):
    monkeypatch.setattr(threads, "processors", lambda: 2)
    begun, ended = Event(), Event()

    def work(_):
        begun.set()
        sleep(0.05)
        ended.set()

    def items():
        yield 0
        assert begun.wait(10)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), our_threads(2) as each:
        each(work, items())
    assert ended.is_set()


def test_work_that_was_not_begun_before_an_error_is_left_out(monkeypatch):
    monkeypatch.setattr(threads, "processors", lambda: 2)
    begun = []

    def work(i):
        begun.append(i)
        sleep(0.001)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_threads(work, range(1000))
    assert len(begun) < 1000


def test_work_that_waits_for_another_caller_does_not_block_that_caller(monkeypatch):
    monkeypatch.setattr(threads, "processors", lambda: 2)
    lock, all_wait, taken = Lock(), Barrier(3), []

    def work(_):
        all_wait.wait(10)
        taken.append(lock.acquire(timeout=5))
        lock.release()

    other = Thread(target=in_threads, args=(work, range(2)))
    with lock:
        other.start()
        all_wait.wait(10)
        assert in_threads(abs, [-1, -2]) == [1, 2]
    other.join(10)
    assert taken == [True, True]


def test_threads_end_with_the_thread_that_used_them(monkeypatch):
    monkeypatch.setattr(threads, "processors", lambda: 2)
    found = []
    caller = Thread(target=lambda: found.extend(in_threads(lambda _: current_thread(), range(2))))
    caller.start()
    caller.join(10)
    for thread in found:
        thread.join(10)
    assert found
    assert not any(thread.is_alive() for thread in found)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork processes.")
def test_a_forked_process_has_threads_of_its_own():
    code = """
import os, signal, threading
from jacridge._compute import threads
threads.processors = lambda: 2
both = threading.Barrier(2)
threads.in_threads(lambda _: both.wait(10), range(2))  # so that there are two
child = os.fork()
if child == 0:
    signal.alarm(10)  # ends a child that waits
    os._exit(threads.in_threads(abs, [-1, -2]) != [1, 2])
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork processes.")
def test_a_process_can_be_forked_while_another_thread_limits_blas():
    code = """
import os, signal, threading
from jacridge._compute import threads
held, done = threading.Event(), threading.Event()
def hold():
    with threads._lock:
        held.set()
        done.wait(30)
threading.Thread(target=hold).start()
held.wait(10)
child = os.fork()
if child == 0:
    signal.alarm(10)  # ends a child that waits
    with threads.one_blas_thread():
        os._exit(0)
status = os.waitpid(child, 0)[1]
done.set()
assert status == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize(
    ("context", "n", "expected"),
    [
        (blas_for, 1000, 1),
        (blas_for, 2000, 1),
        (blas_for, 2001, 2),
        (lapack_for, 2000, 1),
        (lapack_for, 8192, 2),
        (lapack_for, 8193, 1),  # where a threaded LAPACK may crash
    ],
)
def test_small_matrices_and_those_that_crash_lapack_have_one_thread(context, n, expected):
    with context(n):
        assert blas_threads() == {expected}
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_our_threads_are_as_many_as_blas_may_have(monkeypatch):
    monkeypatch.setattr(threads, "cpu_count", lambda: 8)
    assert threads.processors() == 2
    with one_blas_thread():  # a limit for BLAS alone
        assert threads.processors() == 2
    with threadpool_limits(1, user_api="blas"):
        assert threads.processors() == 1


def test_there_are_no_threads_within_our_threads(monkeypatch):
    monkeypatch.setattr(threads, "processors", lambda: 2)
    with our_threads(2) as each:
        monkeypatch.undo()
        assert list(each(lambda _: threads.processors(), range(4))) == [1] * 4


class OpenMP(local):
    """A BLAS library that has another number of threads for each Python thread."""

    threading_layer = "openmp"
    number = 4

    def get_num_threads(self):
        return self.number

    def set_num_threads(self, number):
        self.number = number


def test_each_of_our_threads_has_one_thread_of_an_openmp_blas(monkeypatch):
    library, both = OpenMP(), Barrier(2)
    monkeypatch.setattr(threads, "_blas", lambda: [library])
    monkeypatch.setattr(threads, "cpu_count", lambda: 2)
    monkeypatch.setattr(threads, "_mine", local())  # new threads

    def number(_):
        both.wait(10)
        return library.get_num_threads()

    with our_threads(2) as each:
        assert library.get_num_threads() == 1
        assert list(each(number, range(2))) == [1, 1]
    assert library.get_num_threads() == 4


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("under_way", [1, 4, 100])
def test_few_items_are_begun_before_their_results_are_taken(monkeypatch, workers, under_way):
    monkeypatch.setattr(threads, "processors", lambda: workers)
    begun = []
    results = in_order(lambda i: begun.append(i) or i**2, range(20), under_way)
    for i, result in enumerate(results):
        assert result == i**2
        assert len(begun) <= i + under_way
    assert sorted(begun) == list(range(20))


@pytest.mark.usefixtures("two_blas_threads")
def test_the_last_context_to_be_left_lifts_the_limit():
    """Passes over rows set it within searches that have set it."""
    with one_blas_thread():
        with one_blas_thread():
            pass
        assert blas_threads() == {1}
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize("first_leaves_first", [True, False])
def test_the_limit_is_lifted_by_whichever_thread_leaves_last(first_leaves_first):
    entered, go_on, left = Event(), Event(), Event()

    def other():
        with one_blas_thread():
            entered.set()
            go_on.wait(10)
        left.set()

    thread = Thread(target=other)
    with one_blas_thread():
        thread.start()
        assert entered.wait(10)
        if not first_leaves_first:
            go_on.set()
            assert left.wait(10)
        assert blas_threads() == {1}
    assert blas_threads() == ({1} if first_leaves_first else {2})
    go_on.set()
    thread.join(10)
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_an_error_lifts_the_limit():
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert blas_threads() == {2}
