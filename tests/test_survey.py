"""What passes over all rows learn, against the whole array at once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from jacridge import _sampled, _streams, _survey
from jacridge._geometry import diameter
from jacridge._problem import Problem
from jacridge._sampled import stream_diameter, stream_spacing, stream_variance
from jacridge._streams import ArrayRows
from jacridge._survey import Surveying, drawn, first_look, sampled, surveyed
from naive import neighbour_spacing


def small_blocks(X, y=None, w=None):
    return ArrayRows(X, np.zeros((len(X), 1)) if y is None else y, w)


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    monkeypatch.setattr(_streams, "TASK_ROWS", 37)
    monkeypatch.setattr(_survey, "OUTERMOST", 4)
    monkeypatch.setattr(_survey, "TURNS", 9)
    monkeypatch.setattr(_sampled, "TURNS", 9)


def seen(rows):
    return surveyed(rows.each(Surveying("euclidean")))


def test_a_survey_has_the_weighted_means(rng):
    X, y, w = rng.standard_normal((90, 3)), rng.standard_normal((90, 2)), rng.integers(0, 3, 90)
    found = seen(small_blocks(X, y, w.astype(float))).whole
    np.testing.assert_allclose(found.centre, np.average(X, axis=0, weights=w))
    np.testing.assert_allclose(found.mean, np.average(y, axis=0, weights=w))
    np.testing.assert_allclose(found.squares / w.sum(), np.cov(X.T, aweights=w, ddof=0).diagonal())
    assert (found.n, found.weight) == ((w > 0).sum(), w.sum())


@given(st.integers(1, 200), st.floats(-1e6, 1e6), st.booleans())
def test_the_mean_of_a_constant_is_that_constant(n, c, weighted):
    rng = np.random.default_rng(n)
    w = rng.uniform(0, 2, n) if weighted else None
    rows = small_blocks(rng.standard_normal((n, 2)), np.full((n, 1), c), w)
    assert seen(rows).whole.mean[0] == c


@given(
    st.integers(2, 120),
    st.integers(1, 6),
    st.integers(0, 10**6),
    st.sampled_from([0, 1, 50]),
    st.booleans(),
)
def test_the_diameter_of_a_stream_is_the_largest_distance(n, p, seed, far, in_order):
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
    found = stream_diameter(rows, seen(rows), "euclidean")
    assert found == pytest.approx(pdist(X).max(), rel=1e-12)


@pytest.mark.parametrize("p", [2, 20])
def test_the_diameter_is_that_of_its_two_rows_to_the_last_digit(p, rng):
    """Far from the origin, where a centre of other rows would round it otherwise."""
    X = rng.standard_normal((400, p)) + 1000
    known = diameter(X)
    for rows in (X, X[::-1], X[rng.permutation(400)]):
        assert diameter(rows) == known
        stream = small_blocks(rows)
        assert stream_diameter(stream, seen(stream), "euclidean") == known


def test_the_diameter_of_most_rows_takes_no_other_pass(rng, monkeypatch):
    """In two dimensions few rows lie far out, and those are kept."""
    monkeypatch.undo()  # blocks as large as they are
    X = rng.standard_normal((40_000, 2))
    rows = small_blocks(X)
    found = seen(rows)
    monkeypatch.setattr(ArrayRows, "each", None)
    assert stream_diameter(rows, found, "euclidean") == pytest.approx(
        pdist(X[np.linalg.norm(X, axis=1) > 3]).max(), rel=1e-12
    )


def test_rows_of_weight_zero_are_no_ends_of_the_diameter(rng):
    X, w = rng.standard_normal((90, 2)), np.ones(90)
    X[7], w[7] = 1e3, 0
    rows = small_blocks(X, w=w)
    found = stream_diameter(rows, seen(rows), "euclidean")
    assert found == pytest.approx(pdist(X[w > 0]).max(), rel=1e-12)


def test_the_variance_of_a_stream_is_that_of_all_entries(rng):
    X = rng.standard_normal((100, 3)) * [1, 2, 3] + [0, 5, 0]
    rows = small_blocks(X)
    assert stream_variance(rows, seen(rows).whole, "euclidean") == pytest.approx(X.var())


@pytest.mark.parametrize("weighted", [False, True])
def test_the_variance_of_places_is_that_of_their_distances_to_the_centre(rng, weighted):
    X = np.column_stack([rng.uniform(42, 51, 100), rng.uniform(-4, 8, 100)])
    w = rng.integers(0, 3, 100).astype(float) if weighted else None
    rows, kept = small_blocks(X, w=w), slice(None) if w is None else w > 0
    known = Problem(X=X[kept], y=None, alpha=0.0, w=np.ones(100) if w is None else w[kept])
    known = replace(known, metric="geodesic").variance
    whole = surveyed(rows.each(Surveying("geodesic"))).whole
    assert stream_variance(rows, whole, "geodesic") == pytest.approx(known, rel=1e-9)


def test_the_spacing_of_a_stream_is_the_median_neighbour_distance(rng):
    X = np.unique(rng.standard_normal((100, 2)), axis=0)
    twice = np.vstack([X, X])
    found = stream_spacing(small_blocks(twice), X, "euclidean")
    assert found == pytest.approx(neighbour_spacing(X)[0], rel=1e-12)


def test_the_spacing_of_an_even_number_of_rows_is_the_mean_of_the_middle_two():
    """Distances 1, 1, 3, 3: not the root of the mean of their squares."""
    X = np.array([[0.0], [1.0], [10.0], [13.0]])
    assert stream_spacing(small_blocks(X), X, "euclidean") == 2.0


@pytest.mark.parametrize("gap", [1e-9, 1e-5, 1e-3])
@pytest.mark.parametrize("p", [2, 12])
def test_neighbours_that_nearly_agree_keep_their_distance(rng, p, gap):
    """Also with more than ten columns, where squares of distances are expanded."""
    X = np.repeat(rng.standard_normal((60, p)), 2, axis=0)
    X[1::2, 0] += gap
    found = stream_spacing(small_blocks(X), X, "euclidean")
    gap = np.abs(X[1::2, 0] - X[::2, 0])
    assert found == pytest.approx(np.median(np.repeat(gap, 2)), rel=1e-12)


def test_a_sample_has_only_rows_of_positive_weight(rng):
    w = (np.arange(90) % 3).astype(float)
    X, _, found = sampled(small_blocks(np.arange(90.0)[:, None], w=w), 40, rng)
    assert len(np.unique(X)) == len(X)
    assert 35 <= len(X) <= 40  # of 60 rows of positive weight, among 60 drawn again
    np.testing.assert_array_equal(X[:, 0] % 3, found)
    assert found.min() > 0


def test_too_few_rows_of_positive_weight_in_a_sample_are_an_error(rng):
    rows = ArrayRows(rng.uniform(size=(2000, 2)), np.ones((2000, 1)), np.eye(1, 2000)[0])
    with pytest.raises(ValueError, match=r"`sample_weight` must be positive for more rows"):
        sampled(rows, 50, rng)


def test_the_first_look_gives_the_rows_of_each_draw(rng):
    rows, draws = small_blocks(np.arange(90.0)[:, None]), [rng.permutation(90)[:k] for k in (5, 70)]
    _, blocks = first_look(rows, draws, "euclidean", rng)
    for draw, (X, _, _) in zip(draws, blocks, strict=True):
        np.testing.assert_array_equal(X[:, 0], draw)
    np.testing.assert_array_equal(drawn(5, 9, rng), np.arange(5))
