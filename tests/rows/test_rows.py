"""Passes over rows in blocks."""

from itertools import count
from time import sleep

import numpy as np
import pytest

from jacridge._compute import threads
from jacridge._geometry.maps import FeatureMap
from jacridge._rows import rows as rows_module
from jacridge._rows.rows import ArrayRows, MappedRows, places_in_blocks, rejoined, rows_of


@pytest.fixture
def rows(rng, size):
    size("task rows", 7)
    return ArrayRows(rng.standard_normal((100, 2)), rng.standard_normal((100, 3)), np.arange(100.0))


class Adding:
    """Work that adds blocks to a sum, and counts the sums that it makes."""

    made = 0

    def __call__(self, X, y, w):
        self.made += 1
        return X.T @ (w[:, None] * y)

    def add_to(self, total, X, y, w):
        total += X.T @ (w[:, None] * y)
        return total


def test_blocks_cover_all_rows_in_order(rows):
    np.testing.assert_array_equal(np.vstack(list(rows.each(lambda X, y, w: X))), rows.X)
    np.testing.assert_array_equal(np.hstack(list(rows.each(lambda X, y, w: w))), rows.w)


def test_rows_without_weights_come_without_them(rng):
    rows = ArrayRows(rng.standard_normal((20, 2)), rng.standard_normal((20, 1)))
    assert list(rows.each(lambda X, y, w: w)) == [None]
    assert rows.take(np.array([3]))[2] is None


def test_a_total_is_the_sum_over_all_rows(rows):
    np.testing.assert_allclose(rows.total(lambda X, y, w: w @ y), rows.w @ rows.y, rtol=1e-12)


def test_a_total_takes_no_more_sums_than_blocks_under_way(rows, size):
    """Work that can add does so, to one of the sums in turns."""
    size("processors", 3)
    work = Adding()
    expected = rows.X.T @ (rows.w[:, None] * rows.y)
    np.testing.assert_allclose(rows.total(work), expected, rtol=1e-12)
    assert work.made == 4


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_a_total_does_not_depend_on_which_block_is_ready_first(rows, size, workers):
    size("processors", workers)
    once, again = (rows.total(lambda X, y, w: w @ y) for _ in range(2))
    assert (once == again).all()


def test_a_total_is_right_if_the_number_of_processors_changes(rows, monkeypatch):
    """Two blocks at a time that add to one sum would lose one of them."""
    monkeypatch.setattr(threads, "processors", lambda: 8)
    numbers = count(1)
    monkeypatch.setattr(rows_module, "processors", lambda: next(numbers))

    def work(X, y, w):
        sleep(0.002)
        return w @ y

    np.testing.assert_allclose(rows.total(work), rows.w @ rows.y, rtol=1e-12)


def test_a_pass_has_no_threads_within_its_own(rows, monkeypatch):
    monkeypatch.setattr(threads, "cpu_count", lambda: 4)
    monkeypatch.setattr(threads, "_blas", list)
    assert set(rows.each(lambda X, y, w: threads.processors())) == {1}


@pytest.mark.parametrize("n", [1, 1000, 8193, 125_000])
def test_tasks_are_of_one_size_and_as_many_for_each_processor(n, size):
    size("processors", 2)
    sizes = [
        len(part) for part in ArrayRows(np.zeros((n, 1)), np.zeros((n, 1))).each(lambda X, *_: X)
    ]
    assert len(sizes) == 1 or len(sizes) % 2 == 0
    assert max(sizes) <= rows_module.TASK_ROWS
    assert max(sizes) - min(sizes) < len(sizes)


def test_rows_are_taken_in_the_order_asked_for(rows):
    X, y, w = rows.take(np.array([5, 99, 0]))
    np.testing.assert_array_equal(X, rows.X[[5, 99, 0]])
    np.testing.assert_array_equal(y, rows.y[[5, 99, 0]])
    np.testing.assert_array_equal(w, [5, 99, 0])


def test_a_look_brings_the_results_of_a_pass_and_some_rows(rows):
    found, (X, _, w) = rows.look(lambda X, y, w: w.sum(), np.array([8, 2]))
    assert sum(found) == rows.w.sum()
    np.testing.assert_array_equal(X, rows.X[[8, 2]])
    np.testing.assert_array_equal(w, [8, 2])


def test_an_error_in_a_block_is_the_caller_s(rows):
    with pytest.raises(ZeroDivisionError):
        rows.total(lambda X, y, w: 1 / 0)


def test_a_memory_map_is_never_read_whole(rng, tmp_path):
    X = rng.standard_normal((50_000, 2))
    np.save(tmp_path / "X.npy", X)
    seen = []
    rows = ArrayRows(np.load(tmp_path / "X.npy", mmap_mode="r"), np.zeros((50_000, 1)))
    total = rows.total(lambda X, y, w: seen.append(len(X)) or X.sum())
    assert total == pytest.approx(X.sum(), rel=1e-9)
    assert max(seen) <= rows_module.TASK_ROWS


@pytest.mark.parametrize("asked", [[], [0], [9, 3, 3, 7, 0, 14], list(range(15))])
@pytest.mark.parametrize("starts", [[0], [0, 4, 10], [0, 4, 4, 14]])
def test_rows_taken_block_by_block_come_back_in_the_order_asked_for(rng, asked, starts):
    """Blocks may be empty, and a row may be asked for twice."""
    X, y, w = rng.standard_normal((15, 2)), rng.standard_normal((15, 1)), rng.uniform(size=15)
    ends = [*starts[1:], 15]
    blocks = [rows_of((X, y, w), slice(i, j)) for i, j in zip(starts, ends, strict=True)]
    places, order = places_in_blocks(np.array(asked, dtype=int), np.array(starts))
    parts = [rows_of(block, i) for block, i in zip(blocks, places, strict=True)]
    for found, expected in zip(rejoined(parts, order), (X, y, w), strict=True):
        np.testing.assert_array_equal(found, expected[np.array(asked, dtype=int)])


@pytest.fixture
def mapped(rows, rng):
    """The rows, the same through a linear map, and that map."""
    T = rng.standard_normal((2, 4))
    return rows, MappedRows(rows, FeatureMap(T)), T


def test_mapped_rows_are_the_rows_times_the_map(mapped):
    rows, other, T = mapped
    assert other.n == rows.n
    np.testing.assert_allclose(np.vstack(list(other.each(lambda X, *_: X))), rows.X @ T, rtol=1e-12)
    X, y, w = other.take(np.array([5, 0]))
    np.testing.assert_allclose(X, rows.X[[5, 0]] @ T, rtol=1e-12)
    assert (y == rows.y[[5, 0]]).all()
    assert (w == rows.w[[5, 0]]).all()
    found, (X, _, _) = other.look(lambda X, y, w: X.sum(), np.array([7]))
    assert sum(found) == pytest.approx((rows.X @ T).sum(), rel=1e-10)
    np.testing.assert_allclose(X, rows.X[[7]] @ T, rtol=1e-12)


def test_a_total_over_mapped_rows_adds_where_the_work_can(mapped, size):
    size("processors", 3)
    rows, other, T = mapped
    work = Adding()
    expected = (rows.X @ T).T @ (rows.w[:, None] * rows.y)
    np.testing.assert_allclose(other.total(work), expected, rtol=1e-10)
    assert work.made == 4
