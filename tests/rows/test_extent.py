"""What passes over all rows learn, against the whole array at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

import naive
from jacridge._geometry.distances import CityBlock, Euclidean, Geodesic, Precomputed
from jacridge._rows import extent, survey
from jacridge._rows import rows as rows_module
from jacridge._rows.extent import (
    ArrayExtent,
    StreamExtent,
    stream_diameter,
)
from jacridge._rows.rows import ArrayRows
from jacridge._rows.survey import (
    Surveying,
    counted,
    first_look,
    sample_indices,
    sample_of,
    surveyed,
)

EUCLIDEAN = Euclidean()
# Where pairs of rows are compared one by one, sums are rounded differently, no more.
DISTANCES = {"euclidean": EUCLIDEAN, "cityblock": CityBlock()}


def small_blocks(X, y=None, w=None):
    return ArrayRows(X, np.zeros((len(X), 1)) if y is None else y, w)


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    monkeypatch.setattr(rows_module, "TASK_ROWS", 37)
    monkeypatch.setattr(survey, "OUTERMOST", 4)
    monkeypatch.setattr(survey, "TURNS", 9)
    monkeypatch.setattr(extent, "TURNS", 9)


def seen(rows, distance=EUCLIDEAN):
    return surveyed(rows.each(Surveying(distance)))


def extent_of(rows, X, distance=EUCLIDEAN):
    """Extent of rows that stream, of which X is a sample."""
    return StreamExtent(rows, seen(rows, distance), X, distance)


def test_a_survey_has_the_weighted_means(rng):
    X, y, w = rng.standard_normal((90, 3)), rng.standard_normal((90, 2)), rng.integers(0, 3, 90)
    found = seen(small_blocks(X, y, w.astype(float))).whole
    np.testing.assert_allclose(found.centre, np.average(X, axis=0, weights=w))
    np.testing.assert_allclose(found.mean, np.average(y, axis=0, weights=w))
    np.testing.assert_allclose(found.squares / w.sum(), np.cov(X.T, aweights=w, ddof=0).diagonal())
    assert (found.n, found.weight) == ((w > 0).sum(), w.sum())


@pytest.mark.parametrize(("weights", "n"), [([1.0, 2.0, 0.0], 3), ([0.5, 2.0, 0.0], 2)])
def test_whole_weights_count_rows_and_others_do_not(weights, n):
    """Of all weights, or those of positive weight alone, in one block or in several."""
    w = np.repeat(weights, 30)
    assert seen(small_blocks(np.zeros((90, 1)), w=w)).whole.n_samples == 30 * n
    assert counted(w[w > 0]) == 30 * n


def test_weights_that_are_all_zero_are_refused():
    rows = small_blocks(np.zeros((90, 1)), w=np.zeros(90))
    with pytest.raises(ValueError, match="`sample_weight` must not be all zero"):
        seen(rows)


@given(st.integers(1, 200), st.floats(1e-150, 1e6) | st.floats(-1e6, -1e-150), st.booleans())
def test_the_mean_of_a_constant_is_that_constant(n, c, weighted):
    rng = np.random.default_rng(n)
    w = rng.uniform(0, 2, n) if weighted else None
    rows = small_blocks(rng.standard_normal((n, 2)), np.full((n, 1), c), w)
    assert seen(rows).whole.mean[0] == c


@pytest.mark.parametrize("name", DISTANCES)
@given(
    n=st.integers(2, 120),
    p=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    far=st.sampled_from([0, 1, 50]),
    in_order=st.booleans(),
)
def test_the_diameter_of_a_stream_is_the_largest_distance(name, n, p, seed, far, in_order):
    """Normal points, points on a sphere (where nothing can be left out), one far outlier.

    Rows that are sorted have blocks whose centres lie far apart.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    if far == 1:
        X /= np.linalg.norm(X, axis=1)[:, None]
    else:
        X[0] *= 1 + far
    rows = small_blocks(X[np.argsort(X[:, 0])] if in_order else X)
    found = stream_diameter(rows, seen(rows, DISTANCES[name]), DISTANCES[name])
    assert found == pytest.approx(pdist(X, name).max(), rel=1e-12)


def test_the_diameter_of_places_is_the_largest_geodesic(rng):
    X = np.column_stack([rng.uniform(42, 51, 50), rng.uniform(-4, 8, 50)])
    rows, geodesic = small_blocks(X), Geodesic()
    found = stream_diameter(rows, seen(rows, geodesic), geodesic)
    # Vincenty's formula is good to a millimetre.
    assert found == pytest.approx(naive.diameter(naive.geodesics(X, X)), abs=1e-3)


@pytest.mark.parametrize("p", [2, 20])
@pytest.mark.parametrize("name", DISTANCES)
def test_the_diameter_far_from_the_origin_is_that_of_all_pairs_in_any_order(name, p, rng):
    """There a centre of other rows rounds distances otherwise."""
    X, distance = rng.standard_normal((400, p)) + 1000, DISTANCES[name]
    expected = pdist(X, name).max()
    for rows in (X, X[::-1], X[rng.permutation(400)]):
        stream = small_blocks(rows)
        found = stream_diameter(stream, seen(stream, distance), distance)
        assert distance.diameter(rows) == pytest.approx(expected, rel=1e-10)
        assert found == pytest.approx(expected, rel=1e-10)


def test_the_diameter_of_most_rows_takes_no_other_pass(rng, monkeypatch):
    """In two dimensions few rows lie far out, and those are kept."""
    monkeypatch.undo()  # blocks as large as they are
    X = rng.standard_normal((40_000, 2))
    rows = small_blocks(X)
    found = seen(rows)
    monkeypatch.setattr(ArrayRows, "each", None)
    assert stream_diameter(rows, found, EUCLIDEAN) == pytest.approx(
        pdist(X[np.linalg.norm(X, axis=1) > 3]).max(), rel=1e-12
    )


def test_rows_of_weight_zero_are_no_ends_of_the_diameter(rng):
    X, w = rng.standard_normal((90, 2)), np.ones(90)
    X[7], w[7] = 1e3, 0
    rows = small_blocks(X, w=w)
    found = stream_diameter(rows, seen(rows), EUCLIDEAN)
    assert found == pytest.approx(pdist(X[w > 0]).max(), rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_variance_of_a_stream_is_that_of_all_entries(rng, weighted):
    X = rng.standard_normal((100, 3)) * [1, 2, 3] + [0, 5, 0]
    w = rng.integers(0, 3, 100) if weighted else np.ones(100, int)
    rows = small_blocks(X, w=w.astype(float))
    expected = np.repeat(X, w, axis=0).var()
    assert extent_of(rows, X).variance == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_variance_of_places_is_that_of_their_distances_to_the_centre(rng, weighted):
    X = np.column_stack([rng.uniform(42, 51, 100), rng.uniform(-4, 8, 100)])
    w = rng.integers(0, 3, 100) if weighted else np.ones(100, int)
    rows, geodesic = small_blocks(X, w=w.astype(float)), Geodesic()
    repeated = np.repeat(X, w, axis=0)
    expected = np.mean(naive.geodesics(repeated, repeated.mean(axis=0)[None]) ** 2)
    found = extent_of(rows, X, geodesic).variance
    # Vincenty's formula is good to a millimetre in a hundred kilometres.
    assert found == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("name", DISTANCES)
def test_the_spacing_of_a_stream_is_the_median_neighbour_distance(rng, name):
    X = np.unique(rng.standard_normal((100, 2)), axis=0)
    twice = np.vstack([X, X])
    found = extent_of(small_blocks(twice), X, DISTANCES[name]).spacing
    order = 2 if name == "euclidean" else 1
    expected = naive.neighbour_spacing(X, lambda x, z: np.linalg.norm(x - z, order))[0]
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_spacing_of_an_even_number_of_rows_is_the_mean_of_the_middle_two():
    """Distances 1, 1, 3, 3: not the root of the mean of their squares."""
    X = np.array([[0.0], [1.0], [10.0], [13.0]])
    assert extent_of(small_blocks(X), X).spacing == 2.0


def test_rows_of_weight_zero_are_no_neighbours():
    X, w = np.array([[0.0], [1.0], [10.0]]), np.array([1.0, 0.0, 1.0])
    assert extent_of(small_blocks(X, w=w), X[[0, 2]]).spacing == 10.0


@pytest.mark.parametrize("gap", [1e-9, 1e-5, 1e-3])
@pytest.mark.parametrize("p", [2, 12])
def test_neighbours_that_nearly_agree_keep_their_distance(rng, p, gap):
    """Also with more than ten columns, where squares of distances are expanded."""
    X = np.repeat(rng.standard_normal((60, p)), 2, axis=0)
    X[1::2, 0] += gap
    found = extent_of(small_blocks(X), X).spacing
    gap = np.abs(X[1::2, 0] - X[::2, 0])
    assert found == pytest.approx(np.median(np.repeat(gap, 2)), rel=1e-12)


@pytest.mark.parametrize("name", DISTANCES)
def test_a_stream_and_an_array_have_one_extent(rng, name):
    """Where the sample is all of the rows, only sums by blocks differ."""
    X, w, distance = rng.standard_normal((90, 3)), rng.uniform(0.5, 2, 90), DISTANCES[name]
    rows = small_blocks(X, w=w)
    stream = extent_of(rows, X, distance)
    array = ArrayExtent(X, w, distance)
    for part in ("l_max", "spacing", "variance"):
        assert getattr(stream, part) == pytest.approx(getattr(array, part), rel=1e-10)


def test_equal_rows_do_not_move_the_spacing(rng):
    X = rng.standard_normal((15, 2))
    twice = np.repeat(X, [1, 2, 3] * 5, axis=0)
    expected = naive.neighbour_spacing(X)[0]
    given = naive.distances(twice, twice)
    for rows, distance in ((twice, EUCLIDEAN), (given, Precomputed())):
        found = ArrayExtent(rows, np.ones(len(rows)), distance).spacing
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("gap", [0.0, 1e-160])
def test_rows_without_a_distance_between_them_are_refused(gap):
    X = np.array([[1e-155], [1e-155 + gap], [1e-155]])
    rows = small_blocks(X)
    for found in (
        ArrayExtent(X, np.ones(3), EUCLIDEAN),
        extent_of(rows, X),
    ):
        with pytest.raises(ValueError, match="`X` must have rows that differ"):
            _ = found.l_max


def test_a_sample_has_only_rows_of_positive_weight(rng):
    w = (np.arange(90) % 3).astype(float)
    X, _, found = sample_of(small_blocks(np.arange(90.0)[:, None], w=w), 40, rng)
    assert len(np.unique(X)) == len(X)
    assert 35 <= len(X) <= 40  # of 60 rows of positive weight, among 60 drawn again
    np.testing.assert_array_equal(X[:, 0] % 3, found)
    assert found.min() > 0


def test_too_few_rows_of_positive_weight_in_a_sample_are_an_error(rng):
    rows = ArrayRows(rng.uniform(size=(2000, 2)), np.ones((2000, 1)), np.eye(1, 2000)[0])
    with pytest.raises(ValueError, match=r"`sample_weight` is zero for almost all rows"):
        sample_of(rows, 50, rng)


def test_a_draw_has_distinct_indices_at_random_or_all_in_order(rng):
    np.testing.assert_array_equal(sample_indices(5, 9, rng), np.arange(5))
    np.testing.assert_array_equal(sample_indices(5, 5, rng), np.arange(5))
    counts = np.zeros(10)
    for _ in range(400):
        draw = sample_indices(10, 4, rng)
        assert len(set(draw)) == 4
        counts[draw] += 1
    # Each index is in 160 of 400 draws, give or take ten; fifty would be five of these.
    assert np.abs(counts - 160).max() < 50


def test_the_first_look_gives_the_rows_of_each_draw(rng):
    rows, draws = small_blocks(np.arange(90.0)[:, None]), [rng.permutation(90)[:k] for k in (5, 70)]
    found, blocks = first_look(rows, draws, EUCLIDEAN, rng)
    assert found.whole.n == 90
    for draw, (X, _, _) in zip(draws, blocks, strict=True):
        np.testing.assert_array_equal(X[:, 0], draw)


def test_the_first_look_draws_again_where_rows_have_no_weight(rng):
    w = (np.arange(90) % 3).astype(float)
    rows = small_blocks(np.arange(90.0)[:, None], w=w)
    _, blocks = first_look(rows, [np.arange(12), np.arange(1, 90, 3)], EUCLIDEAN, rng)
    assert blocks[0][2].min() > 0
    np.testing.assert_array_equal(blocks[1][0][:, 0], np.arange(1, 90, 3))  # nothing to draw again
