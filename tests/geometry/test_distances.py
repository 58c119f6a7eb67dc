"""Distances and their slopes: against loops, Vincenty's formula and finite differences."""

import tracemalloc

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import naive
from jacridge._compute.arrays import bulk_centre
from jacridge._geometry import distances
from jacridge._geometry.distances import (
    CityBlock,
    Euclidean,
    Geodesic,
    Precomputed,
    expanded_gaps,
)
from jacridge._geometry.geodesics import geodesic_distances, metres_per_degree

# Few columns go by differences, many by a matrix product.
COLUMNS = [1, 2, 10, 11, 40]

# Vincenty's series is good to a millimetre: seven digits of a gap of a hundred kilometres.
VINCENTY = 1e-7


def city_blocks(X, Z):
    return np.array([[sum(abs(a - b) for a, b in zip(x, z, strict=True)) for z in Z] for x in X])


# Each distance with its lengths by a loop, and the power of the length that is its gap.
FEATURED = {
    "euclidean": (Euclidean(), naive.distances, 2),
    "cityblock": (CityBlock(), city_blocks, 1),
    "geodesic": (Geodesic(), naive.geodesics, 2),
}
ALL = [*FEATURED, "precomputed"]


@pytest.fixture
def stations(rng):
    """Places all over the earth, no two of them antipodal: latitude, longitude."""
    return np.column_stack([rng.uniform(-80, 80, 12), rng.uniform(-180, 180, 12)])


def of(name, X):
    """A distance, the rows as it takes them, and the lengths between them by a loop."""
    if name == "precomputed":
        return Precomputed(), naive.distances(X, X), naive.distances(X, X)
    distance, lengths, _ = FEATURED[name]
    return distance, X, lengths(X, X)


@pytest.mark.parametrize("name", ALL)
def test_a_distance_knows_its_name(name, stations):
    assert of(name, stations)[0].name == name


@pytest.mark.parametrize("p", COLUMNS)
@pytest.mark.parametrize("name", ["euclidean", "cityblock"])
def test_gaps_agree_with_a_loop(rng, name, p):
    X, Z = rng.standard_normal((7, p)), rng.standard_normal((5, p))
    distance, lengths, power = FEATURED[name]
    np.testing.assert_allclose(distance.gaps(X, Z), lengths(X, Z) ** power, rtol=1e-12)


@pytest.mark.parametrize("p", COLUMNS)
@pytest.mark.parametrize("shift", [1e8, -1e8])
@pytest.mark.parametrize("name", ["euclidean", "cityblock"])
def test_gaps_keep_their_digits_far_from_the_origin(rng, name, p, shift):
    X = rng.standard_normal((20, p)) + shift
    distance, lengths, power = FEATURED[name]
    np.testing.assert_allclose(distance.gaps(X, X), lengths(X, X) ** power, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("p", [1, 2, 10])
def test_an_outlier_takes_no_digits_from_the_distances_of_the_others(rng, p):
    X = rng.standard_normal((20, p))
    X[0] = 1e9
    expected = naive.distances(X, X) ** 2
    np.testing.assert_allclose(Euclidean().gaps(X, X), expected, rtol=1e-12)


@pytest.mark.parametrize("p", [2, 12])
def test_an_outlier_leaves_distances_of_other_rows_as_they_are(rng, p):
    X = rng.uniform(size=(40, p))
    X[7] = 1e10
    D2 = Euclidean().gaps(X, X)
    others = np.delete(np.arange(40), 7)
    expected = naive.distances(X, X)[np.ix_(others, others)] ** 2
    np.testing.assert_allclose(D2[np.ix_(others, others)], expected, atol=1e-12)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("code", [999_999_999.0, -1e6, 1e12])
def test_rows_with_a_code_for_missing_values_keep_the_distances_of_their_neighbours(
    rng, share, code
):
    """A share of the rows has 999999999 in one column, as tables do: two clusters far apart.

    |x|^2 - 2 x'z + |z|^2 about the middle of both would have no digit left within either.
    """
    X = rng.standard_normal((200, 15))
    X[: int(200 * share), 3] = code
    X = X[rng.permutation(200)]
    found = expanded_gaps(X[:80], X)
    expected = np.square(X[:80, None] - X).sum(axis=2)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("n", [1, 7, 300])
def test_clusters_at_all_scales_keep_the_distances_within_and_between_them(rng, n):
    centres = rng.standard_normal((20, 15)) * np.geomspace(1e-3, 1e6, 20)[:, None]
    Z = centres[rng.integers(20, size=n)] + 1e-4 * rng.standard_normal((n, 15))
    X = centres[rng.integers(20, size=60)] + 1e-4 * rng.standard_normal((60, 15))
    expected = cdist(X, Z, "sqeuclidean")
    np.testing.assert_allclose(Euclidean().gaps(X, Z), expected, rtol=1e-9)


def test_expanded_gaps_come_from_one_product_where_it_keeps_its_digits(rng, monkeypatch):
    monkeypatch.setattr(distances, "cdist", None)
    monkeypatch.setattr(np, "square", None)
    X = rng.standard_normal((50, 60))
    D2 = expanded_gaps(X[:20], X[20:])
    monkeypatch.undo()
    np.testing.assert_allclose(D2, naive.distances(X[:20], X[20:]) ** 2, rtol=1e-12)


def test_the_centre_of_most_rows_is_not_moved_by_outliers(rng):
    Z = rng.standard_normal((5000, 3))
    Z[::7] += 1e12
    # The median of a few hundred rows lies within their standard deviation.
    assert np.abs(bulk_centre(Z)).max() < 1


@pytest.mark.parametrize("p", COLUMNS)
@pytest.mark.parametrize("name", ["euclidean", "cityblock"])
def test_no_gap_is_negative_and_those_to_itself_are_zero(rng, name, p):
    X = np.repeat(rng.standard_normal((10, p)) * 1e3 + 0.1, 2, axis=0)
    gaps = FEATURED[name][0].gaps(X, X)
    assert gaps.min() == 0
    assert not np.diagonal(gaps).any()


@pytest.mark.parametrize("power", [1, 2])
def test_given_distances_are_taken_to_the_power_of_their_gaps(rng, power):
    D, distance = rng.uniform(0, 3, (4, 6)), Precomputed(power)
    np.testing.assert_allclose(distance.gaps(D, D), D**power, rtol=1e-15)
    np.testing.assert_allclose(distance.lengths(distance.gaps(D, D)), D, rtol=1e-14)


@pytest.mark.parametrize("name", FEATURED)
def test_gaps_of_places_are_lengths_to_their_power(stations, name):
    distance, lengths, power = FEATURED[name]
    X, Z = stations[:7], stations[7:]
    np.testing.assert_allclose(distance.gaps(X, Z), lengths(X, Z) ** power, rtol=VINCENTY)


@pytest.mark.parametrize("name", ALL)
def test_lengths_are_the_distances_that_gaps_came_from(stations, name):
    distance, X, D = of(name, stations)
    # In metres, of which Vincenty's series knows the thousandth.
    np.testing.assert_allclose(distance.lengths(distance.gaps(X, X)), D, rtol=VINCENTY, atol=1e-3)


@pytest.mark.parametrize("name", ALL)
def test_gaps_of_all_pairs_are_those_of_the_matrix_each_once(stations, name):
    distance, X, D = of(name, stations)
    found = np.sort(distance.lengths(distance.all_gaps(X)))
    np.testing.assert_allclose(found, np.sort(naive.pair_distances(D)), rtol=VINCENTY)


@pytest.mark.parametrize("name", ALL)
def test_gaps_of_some_pairs_are_those_of_the_matrix(stations, rng, name):
    distance, X, _ = of(name, stations)
    i, j = rng.integers(12, size=(2, 40))
    found, gaps = distance.paired_gaps(X, i, j), distance.gaps(X, X)
    np.testing.assert_allclose(found, [gaps[a, b] for a, b in zip(i, j, strict=True)], rtol=1e-12)


@pytest.mark.parametrize("name", FEATURED)
def test_slopes_agree_with_finite_differences(rng, stations, name):
    distance = FEATURED[name][0]
    X, Z = stations[:4], stations[4:]
    W, coef = rng.standard_normal((4, 8)), rng.standard_normal((8, 2))
    unit = 1e6 if name == "geodesic" else 1.0
    found = distance.slopes(W / unit**2, coef, X, Z)
    for t in range(2):

        def weighted(rows, t=t):
            return (W * coef[:, t] * distance.gaps(rows, Z)).sum(axis=1) / unit**2

        # A step of a hundredth of a degree leaves the difference itself eight digits.
        expected = naive.slopes(weighted, X, h=0.01)
        np.testing.assert_allclose(found[:, t], expected, rtol=1e-6, atol=1e-7)


def test_slopes_keep_their_digits_far_from_the_origin(rng):
    X, Z, W = rng.standard_normal((6, 3)), rng.standard_normal((5, 3)), rng.standard_normal((6, 5))
    X, Z = X + 1e8, Z + 1e8
    expected = [sum(2 * W[j, i] * (X[j] - Z[i]) for i in range(5)) for j in range(6)]
    found = Euclidean().slopes(W, np.ones((5, 1)), X, Z)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_where_the_city_block_distance_has_a_kink_its_slope_is_zero():
    X, W = np.array([[0.0, 1.0]]), np.array([[1.0, 1.0]])
    Z = np.array([[0.0, 0.0], [2.0, 1.0]])
    assert CityBlock().slopes(W, np.ones((2, 1)), X, Z).tolist() == [[[-1.0, 1.0]]]


def test_given_distances_have_neither_slopes_nor_a_centre():
    D = np.zeros((2, 2))
    with pytest.raises(ValueError, match='needs features, got metric="precomputed"'):
        Precomputed().slopes(D, D, D, D)
    with pytest.raises(ValueError, match='no centre, got metric="precomputed"'):
        Precomputed().radii(D, D[0])


@pytest.mark.parametrize("name", FEATURED)
def test_radii_are_the_distances_to_a_centre(stations, name):
    distance, lengths, _ = FEATURED[name]
    centre = np.array([20.0, 30.0])
    expected = lengths(stations, centre[None])[:, 0]
    np.testing.assert_allclose(distance.radii(stations, centre), expected, rtol=VINCENTY)


@pytest.mark.parametrize("name", ALL)
def test_the_diameter_is_the_largest_of_all_distances(stations, name):
    distance, X, D = of(name, stations)
    assert distance.diameter(X) == pytest.approx(naive.diameter(D), rel=VINCENTY)


@pytest.mark.parametrize("name", ALL)
def test_the_spacing_is_the_median_distance_of_nearest_neighbours(stations, name):
    distance, X, D = of(name, stations)
    expected = np.median([min(d for k, d in enumerate(row) if k != i) for i, row in enumerate(D)])
    assert distance.spacing(X) == pytest.approx(expected, rel=VINCENTY)


@pytest.mark.parametrize("name", ALL)
def test_the_dimension_is_the_number_of_columns_also_from_distances_alone(stations, name):
    distance, X, _ = of(name, stations)
    assert distance.dimension(X) == 2


@pytest.mark.parametrize("name", ["euclidean", "cityblock"])
def test_the_variance_is_that_of_all_entries_of_repeated_rows(rng, name):
    X, w = rng.standard_normal((30, 3)) * [1, 2, 3] + [0, 5, -5], rng.integers(1, 4, 30)
    expected = np.repeat(X, w, axis=0).var()
    assert FEATURED[name][0].variance(X, w) == pytest.approx(expected, rel=1e-12)


def test_the_variance_on_the_earth_is_that_of_the_distances_to_the_mean_place(rng):
    X = np.column_stack([rng.uniform(42, 51, 20), rng.uniform(-4, 8, 20)])
    w = rng.integers(1, 4, 20)
    repeated = np.repeat(X, w, axis=0)
    expected = np.mean(naive.geodesics(repeated, repeated.mean(axis=0)[None]) ** 2)
    assert Geodesic().variance(X, w) == pytest.approx(expected, rel=VINCENTY)


def test_given_distances_have_the_variance_of_centred_columns(rng):
    """Where the columns have one mean, it is that of all entries together."""
    X, w = rng.standard_normal((40, 2)), rng.integers(1, 4, 40)
    X -= np.repeat(X, w, axis=0).mean(axis=0)
    found = Precomputed().variance(naive.distances(X, X), w)
    assert found == pytest.approx(np.repeat(X, w, axis=0).var(), rel=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_some_rows_have_the_distances_that_they_had_among_all(stations, name):
    distance, X, _ = of(name, stations)
    some = np.array([7, 2, 11])
    part = distance.some(X, some)
    np.testing.assert_allclose(
        distance.gaps(part, part), distance.gaps(X, X)[np.ix_(some, some)], rtol=1e-12
    )


def test_new_rows_need_only_be_distances_to_the_training_rows():
    D = np.array([[0.5, 2.0, 3.0]])
    Precomputed().check(D, new=True)
    with pytest.raises(ValueError, match="square matrix of distances"):
        Precomputed().check(D)


def test_a_degree_on_the_equator_and_the_way_to_the_pole_are_the_known_ones():
    places = np.array([[0.0, 0.0], [0.0, 1.0], [90.0, 0.0]])
    metres = geodesic_distances(places[:1], places)[0]
    # WGS84: 6378137 pi / 180 and the quarter meridian, known to a tenth of a millimetre.
    np.testing.assert_allclose(metres, [0, 6378137 * np.pi / 180, 10_001_965.7293], atol=1e-4)


@pytest.mark.parametrize("latitude", [0.0, 45.0, -80.0])
def test_a_degree_has_the_length_of_the_geodesic_along_it(latitude):
    north, east = metres_per_degree(np.array([latitude]))[0]
    h = 1e-4
    to_north = naive.vincenty((latitude - h, 3.0), (latitude + h, 3.0))
    to_east = naive.vincenty((latitude, 3.0 - h), (latitude, 3.0 + h))
    # Steps of ten metres, known to a millimetre: four digits.
    np.testing.assert_allclose([north, east], np.array([to_north, to_east]) / (2 * h), rtol=1e-4)


def test_close_rows_far_from_the_centre_take_little_memory(rng):
    """In 25 clusters 4 % of the pairs are close; their differences in 500 features are 160 MB."""
    centres = 1000 * rng.standard_normal((25, 500))
    X = np.repeat(centres, 40, axis=0) + 0.1 * rng.standard_normal((1000, 500))
    tracemalloc.start()
    D2 = Euclidean().gaps(X, X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A few blocks of 8 MB beside the result, which takes as much.
    assert peak < 10 * D2.nbytes
    np.testing.assert_allclose(D2, cdist(X, X, "sqeuclidean"), rtol=1e-9)
