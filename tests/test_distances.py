"""Distances and their gradients: against loops, Vincenty's formula and finite differences."""

import numpy as np
import pytest

import naive
from jacridge import _distances
from jacridge._distances import (
    for_blocks,
    geodesic_distances,
    row_blocks,
    rows_per_block,
    squared_distances,
    weighted_slopes,
)

# Few columns go by differences, many by a matrix product.
COLUMNS = [1, 2, 10, 11, 40]


@pytest.fixture
def stations(rng):
    """Places all over the earth, no two of them antipodal: latitude, longitude."""
    return np.column_stack([rng.uniform(-80, 80, 12), rng.uniform(-180, 180, 12)])


@pytest.mark.parametrize("p", COLUMNS)
def test_squared_distances_agree_with_a_loop(rng, p):
    X, Z = rng.standard_normal((7, p)), rng.standard_normal((5, p))
    expected = naive.distances(X, Z) ** 2
    np.testing.assert_allclose(squared_distances(X, Z), expected, rtol=1e-12)


@pytest.mark.parametrize("p", COLUMNS)
@pytest.mark.parametrize("shift", [1e8, -1e8])
def test_distances_keep_their_digits_far_from_the_origin(rng, p, shift):
    X = rng.standard_normal((20, p)) + shift
    expected = naive.distances(X, X) ** 2
    np.testing.assert_allclose(squared_distances(X, X), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("p", [1, 2, 10])
def test_an_outlier_takes_no_digits_from_the_distances_of_the_others(rng, p):
    X = rng.standard_normal((20, p))
    X[0] = 1e9
    expected = naive.distances(X, X) ** 2
    np.testing.assert_allclose(squared_distances(X, X), expected, rtol=1e-12)


@pytest.mark.parametrize("p", COLUMNS)
def test_no_squared_distance_is_negative_and_those_to_itself_are_zero(rng, p):
    X = np.repeat(rng.standard_normal((10, p)) * 1e3 + 0.1, 2, axis=0)
    D2 = squared_distances(X, X)
    assert D2.min() == 0
    assert not np.diagonal(D2).any()


def test_given_distances_are_only_squared(rng):
    D = rng.uniform(0, 3, (4, 6))
    np.testing.assert_allclose(squared_distances(D, D, "precomputed"), D**2, rtol=1e-15)


def test_geodesics_agree_with_vincentys_formula(stations):
    found = np.sqrt(squared_distances(stations[:7], stations[7:], "geodesic"))
    # Vincenty's series ends a tenth of a millimetre before the truth.
    np.testing.assert_allclose(found, naive.geodesics(stations[:7], stations[7:]), atol=1e-3)


def test_a_degree_on_the_equator_and_the_way_to_the_pole_are_the_known_ones():
    places = np.array([[0.0, 0.0], [0.0, 1.0], [90.0, 0.0]])
    metres = geodesic_distances(places[:1], places)[0]
    # WGS84: 6378137 pi / 180 and the quarter meridian, known to a tenth of a millimetre.
    np.testing.assert_allclose(metres, [0, 6378137 * np.pi / 180, 10_001_965.7293], atol=1e-4)


@pytest.mark.parametrize("metric", ["euclidean", "geodesic"])
def test_weighted_slopes_agree_with_finite_differences(rng, stations, metric):
    X, Z = stations[:4], stations[4:]
    W = rng.standard_normal((4, 8))
    unit = 1.0 if metric == "euclidean" else 1e6

    def weighted(rows):
        return (W * squared_distances(rows, Z, metric)).sum(axis=1) / unit**2

    found = weighted_slopes(W / unit**2, X, Z, metric)
    # A step of a hundredth of a degree leaves the difference itself eight digits.
    expected = naive.slopes(weighted, X, h=0.01)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_weighted_slopes_keep_their_digits_far_from_the_origin(rng):
    X, Z, W = rng.standard_normal((6, 3)), rng.standard_normal((5, 3)), rng.standard_normal((6, 5))
    X, Z = X + 1e8, Z + 1e8
    expected = [sum(2 * W[j, i] * (X[j] - Z[i]) for i in range(5)) for j in range(6)]
    np.testing.assert_allclose(weighted_slopes(W, X, Z), expected, rtol=1e-12, atol=1e-12)


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


@pytest.mark.parametrize("workers", [1, 3])
def test_work_is_done_once_for_each_row_in_one_thread_or_many(monkeypatch, workers):
    monkeypatch.setattr(_distances, "processors", lambda: workers)
    visits = np.zeros(100)

    def work(rows):
        visits[rows] += 1

    for_blocks(work, 100, 7)
    assert (visits == 1).all()


def test_an_error_in_a_thread_reaches_the_caller():
    def work(rows):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        for_blocks(work, 10, 3)


@pytest.mark.parametrize("p", [2, 12])
def test_an_outlier_leaves_distances_of_other_rows_as_they_are(rng, p):
    X = rng.uniform(size=(40, p))
    X[7] = 1e10
    D2 = squared_distances(X, X)
    others = np.delete(np.arange(40), 7)
    expected = naive.distances(X, X)[np.ix_(others, others)] ** 2
    np.testing.assert_allclose(D2[np.ix_(others, others)], expected, atol=1e-12)
