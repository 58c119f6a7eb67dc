"""Passes over rows in blocks."""

import numpy as np
import pytest

from jacridge import _streams
from jacridge._streams import ArrayRows


@pytest.fixture
def rows(rng, monkeypatch):
    monkeypatch.setattr(_streams, "TASK_ROWS", 7)
    monkeypatch.setattr(_streams, "SPAN", 1)
    return ArrayRows(rng.standard_normal((100, 2)), rng.standard_normal((100, 3)), np.arange(100.0))


def test_blocks_cover_all_rows_in_order(rows):
    np.testing.assert_array_equal(np.vstack(list(rows.each(lambda X, y, w: X))), rows.X)
    np.testing.assert_array_equal(np.hstack(list(rows.each(lambda X, y, w: w))), rows.w)


def test_a_total_is_the_sum_over_all_rows(rows):
    np.testing.assert_allclose(rows.total(lambda X, y, w: w @ y), rows.w @ rows.y)


def test_a_total_takes_no_more_sums_than_blocks_under_way(rows, monkeypatch):
    """Work that can adds each block to one of them, in turns."""
    monkeypatch.setattr(_streams, "processors", lambda: 3)

    class Work:
        made = 0

        def __call__(self, X, y, w):
            self.made += 1
            return w @ y

        def onto(self, total, X, y, w):
            total += w @ y
            return total

    work = Work()
    np.testing.assert_allclose(rows.total(work), rows.w @ rows.y)
    assert work.made == 4


@pytest.mark.parametrize("n", [1, 1000, 8193, 125_000])
def test_tasks_are_of_one_size_and_as_many_for_each_processor(n, monkeypatch):
    monkeypatch.setattr(_streams, "processors", lambda: 2)
    sizes = [
        len(part) for part in ArrayRows(np.zeros((n, 1)), np.zeros((n, 1))).each(lambda X, *_: X)
    ]
    assert len(sizes) == 1 or len(sizes) % 2 == 0
    assert max(sizes) <= _streams.TASK_ROWS
    assert max(sizes) - min(sizes) < len(sizes)


@pytest.mark.parametrize(
    ("start", "size", "inner", "ends"),
    [
        (0, 20, slice(0, 20), []),  # two spans of ten
        (7, 5, slice(3, 3), [(0, [0, 1, 2]), (1, [3, 4])]),
        (12, 5, slice(5, 5), [(1, [0, 1, 2, 3, 4])]),
        (17, 15, slice(3, 13), [(1, [0, 1, 2]), (3, [13, 14])]),
        (95, 5, slice(5, 5), [(9, [0, 1, 2, 3, 4])]),
        (90, 5, slice(0, 0), [(9, [0, 1, 2, 3, 4])]),
        (85, 18, slice(5, 18), [(8, [0, 1, 2, 3, 4])]),  # to the last row, in a span of three
    ],
)
def test_a_block_has_whole_spans_and_parts_of_others(start, size, inner, ends, monkeypatch):
    monkeypatch.setattr(_streams, "SPAN", 10)
    within, parts = _streams.in_spans(start, size, 103 if start + size == 103 else 1000)
    assert range(size)[within] == range(size)[inner]
    assert [(span, rows.tolist()) for span, rows in parts] == ends


def test_rows_are_taken_in_the_order_asked_for(rows):
    X, _, w = rows.take(np.array([5, 99, 0]))
    np.testing.assert_array_equal(X, rows.X[[5, 99, 0]])
    np.testing.assert_array_equal(w, [5, 99, 0])


def test_an_error_in_a_block_is_the_caller_s(rows):
    with pytest.raises(ZeroDivisionError):
        rows.total(lambda X, y, w: 1 / 0)


def test_a_memory_map_is_never_read_whole(rng, tmp_path):
    X = rng.standard_normal((50_000, 2))
    np.save(tmp_path / "X.npy", X)
    seen = []
    rows = ArrayRows(np.load(tmp_path / "X.npy", mmap_mode="r"), np.zeros((50_000, 1)))
    total = rows.total(lambda X, y, w: seen.append(len(X)) or X.sum())
    assert total == pytest.approx(X.sum())
    assert max(seen) <= _streams.TASK_ROWS
