"""Equal rows merged into one: against a dictionary of rows, in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from jacridge import JacobianKernelRidge, select_bandwidth
from jacridge._geometry.distances import Euclidean, Geodesic, Precomputed
from jacridge._rows.merging import (
    GivenRows,
    distinct_rows,
    merged,
    merged_block,
    row_labels,
)
from jacridge._rows.rows import ArrayRows
from jacridge._rows.source import Source, array_source, in_memory

# Few values, so that rows meet; zeros of both signs are one of them.
VALUES = [0.0, -0.0, 1.0, -1.0, 0.1, 0.1 + 1e-17, 0.1 + 2e-17, 1e150, 1e-300]


def by_dictionary(X, y, w):
    """Distinct rows of positive weight: first index, weight, mean targets; in exact fractions."""
    groups = {}
    for i, row in enumerate(X.tolist()):
        if w[i] > 0:
            groups.setdefault(tuple(v + 0.0 for v in row), []).append(i)
    first = [rows[0] for rows in groups.values()]
    group = [-1] * len(X)
    for k, rows in enumerate(groups.values()):
        for i in rows:
            group[i] = k
    weights = [sum(Fraction(float(w[i])) for i in rows) for rows in groups.values()]
    means = [
        [sum(Fraction(float(w[i])) * Fraction(v[i]) for i in rows) / total for v in y.T.tolist()]
        for rows, total in zip(groups.values(), weights, strict=True)
    ]
    return first, group, np.array(weights, dtype=float), np.array(means, dtype=float)


@st.composite
def tables(draw):
    n, p, k = draw(st.integers(1, 25)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    rows = st.lists(st.sampled_from(VALUES), min_size=p, max_size=p)
    X = np.array(draw(st.lists(rows, min_size=n, max_size=n)))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    weights = draw(st.sampled_from([None, "whole", "any"]))
    w = {"whole": rng.integers(0, 4, n) * 1.0, "any": rng.uniform(0, 2, n)}.get(weights)
    if w is not None and not w.any():
        w[0] = 1.0
    return X, rng.standard_normal((n, k)), w


@given(tables())
def test_merged_rows_are_those_of_a_dictionary(table):
    """In the order in which they first come, with mean targets and total weights."""
    X, y, w = table
    found = merged(X, y, w)
    first, group, weights, means = by_dictionary(X, y, np.ones(len(X)) if w is None else w)
    assert found.first.tolist() == first
    assert found.group.tolist() == group
    np.testing.assert_allclose(found.w, weights, rtol=1e-14)
    np.testing.assert_allclose(found.y, means, rtol=1e-12, atol=1e-15)
    assert found.is_all == (first == list(range(len(X))))


@given(tables())
def test_labels_are_the_same_for_equal_rows_only(table):
    X = table[0]
    label = row_labels(X)
    equal = (X[:, None] == X).all(axis=2)
    if label is None:
        assert (equal == np.eye(len(X), dtype=bool)).all()
    else:
        np.testing.assert_array_equal(label[:, None] == label, equal)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("p", [1, 2, 3, 7, 8, 40, 301])
def test_no_equal_row_is_missed_whatever_the_columns_and_their_order(rng, p, order):
    X = rng.standard_normal((100, p))
    again = rng.integers(100, size=900)
    mixed = np.asarray(np.vstack([X, X[again]])[rng.permutation(1000)], order=order)
    found = distinct_rows(mixed)
    assert len(found) == 100
    np.testing.assert_array_equal(np.unique(found, axis=0), np.unique(X, axis=0))
    first = [np.flatnonzero((mixed == row).all(axis=1))[0] for row in found]
    assert first == sorted(first)


def test_rows_with_one_product_that_differ_are_kept_apart():
    """Their product with a fixed vector is not what makes rows equal."""
    tiny = np.array([[1.0, 0.0], [1.0, 1e-300], [1.0, 0.0], [1.0, 2e-300]])
    assert merged(tiny, np.zeros((4, 1)), None).group.tolist() == [0, 1, 0, 2]
    assert row_labels(tiny[[0, 1, 3]]) is None


def test_zeros_of_both_signs_are_equal():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, -1.0]])
    found = merged(X, np.array([[1.0], [2.0], [5.0]]), None)
    assert found.group.tolist() == [0, 0, 1]
    assert found.y.tolist() == [[1.5], [5.0]]


@given(st.floats(-1e100, 1e100), st.integers(2, 50), st.integers(0, 99))
def test_the_mean_of_equal_targets_is_exact(value, n, seed):
    w = np.random.default_rng(seed).uniform(0.1, 3, n)
    found = merged(np.ones((n, 2)), np.full((n, 2), value), w)
    assert found.y.tolist() == [[value, value]]


@pytest.mark.parametrize("equal", [False, True])
def test_rows_of_weight_zero_are_left_out(rng, equal):
    """Also as the first of several equal rows, and with a target that would be seen."""
    X, y = rng.standard_normal((5, 2)), rng.standard_normal((5, 1))
    X[3] = X[0] if equal else X[3]
    y[0] = 1e100
    found = merged(X, y, np.array([0.0, 1.0, 2.0, 3.0, 0.0]))
    assert found.first.tolist() == [1, 2, 3]
    assert found.group.tolist() == [-1, 0, 1, 2, -1]
    assert found.w.tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(found.y, y[1:4])
    assert not found.is_all


def test_weights_that_are_all_zero_are_refused():
    with pytest.raises(ValueError, match="`sample_weight` must not be all zero"):
        merged(np.ones((2, 1)), np.ones((2, 1)), np.zeros(2))


def test_rows_that_all_differ_are_not_copied(rng):
    X, y, w = rng.standard_normal((50, 2)), rng.standard_normal((50, 1)), rng.uniform(1, 2, 50)
    found = merged(X, y, w)
    assert found.y is y
    assert found.w is w
    assert distinct_rows(X) is X
    rows = array_source(X, y, w, Euclidean()).rows
    assert rows.X is X


def test_the_arrays_of_the_caller_stay_as_they_are(rng):
    X = rng.integers(-1, 2, (60, 2)) * -0.0 + rng.integers(-1, 2, (60, 2))
    y, w = rng.standard_normal((60, 1)), rng.integers(0, 3, 60).astype(float)
    copies = X.copy(), y.copy(), w.copy()
    array_source(X, y, w, Euclidean())
    for array, before in zip((X, y, w), copies, strict=True):
        assert array.tobytes() == before.tobytes()


def test_a_block_of_rows_may_have_no_weight_at_all(rng):
    X, y = rng.standard_normal((4, 2)), rng.standard_normal((4, 3))
    found = merged_block(X, y, np.zeros(4))
    assert [part.shape for part in found] == [(0, 2), (0, 3), (0,)]


def test_a_block_of_rows_is_merged_as_all_rows_are(rng):
    X, y = rng.integers(0, 3, (40, 2)).astype(float), rng.standard_normal((40, 1))
    w = rng.integers(0, 3, 40).astype(float)
    first, _, weights, means = by_dictionary(X, y, w)
    found = merged_block(X, y, w)
    np.testing.assert_array_equal(found[0], X[first])
    np.testing.assert_allclose(found[1], means, rtol=1e-12)
    np.testing.assert_array_equal(found[2], weights)


@pytest.fixture
def source(rng):
    """Rows of which some are equal and some have no weight, and where they came from."""
    X, y = rng.integers(0, 3, (30, 2)).astype(float), rng.standard_normal((30, 2))
    w = rng.integers(0, 3, 30).astype(float)
    return array_source(X, y, w, Euclidean()), X, y, w


def test_a_source_has_the_distinct_rows_and_counts_all(source):
    found, X, y, w = source
    first, _, weights, means = by_dictionary(X, y, w)
    np.testing.assert_array_equal(found.rows.X, X[first])
    np.testing.assert_allclose(found.rows.y, means, rtol=1e-12)
    np.testing.assert_array_equal(found.rows.w, weights)
    assert found.first.tolist() == first
    assert (found.n, found.p) == (w.sum(), 2)


def test_rows_of_a_source_without_weight_are_kept_aside(source):
    found, X, y, w = source
    places, X_out, y_out = found.weightless
    assert places.tolist() == np.flatnonzero(w == 0).tolist()
    np.testing.assert_array_equal(X_out, X[w == 0])
    np.testing.assert_array_equal(y_out, y[w == 0])


def test_residuals_of_distinct_rows_give_those_of_the_rows_as_given(source, rng):
    """A prediction for a distinct row is one for all rows equal to it."""
    found, _, y, w = source
    predictions = rng.standard_normal(found.rows.y.shape)
    residuals = found.given.residuals(found.rows.y - predictions)
    for i in np.flatnonzero(w > 0):
        expected = y[i] - predictions[found.given.group[i]]
        np.testing.assert_allclose(residuals[i], expected, rtol=1e-10, atol=1e-12)


def test_rows_of_positive_weight_keep_their_group_and_part_of_y(source):
    found, _, _, w = source
    given = found.given.weighed()
    assert (given.group == found.given.group[w > 0]).all()
    assert (given.within == found.given.within[w > 0]).all()
    assert given.weighed() is given


def test_residuals_do_not_change_the_rows_that_they_come_from():
    y, w = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 0.0, 1.0])
    given = GivenRows(np.array([0, -1, 0]), y, w)
    assert given.residuals(np.array([[10.0]])).tolist() == [[11.0], [2.0], [13.0]]
    assert given.within.tolist() == [[1.0], [2.0], [3.0]]


def test_distinct_rows_are_a_source_of_their_own(rng):
    X, y = rng.standard_normal((20, 3)), rng.standard_normal((20, 1))
    found = array_source(X, y, None, Euclidean())
    assert (found.given, found.first, found.weightless) == (None, None, None)
    assert (found.n, found.p, found.rows.w) == (20, 3, None)


@pytest.mark.parametrize(("weights", "n"), [([2.0, 3.0, 0.0], 5), ([0.5, 3.0, 0.0], 2)])
def test_whole_weights_count_rows_and_others_do_not(weights, n):
    X = np.array([[0.0], [1.0], [2.0]])
    assert array_source(X, X, np.array(weights), Euclidean()).n == n


def test_given_distances_are_merged_in_rows_and_columns(rng):
    """Equal rows of a matrix of distances are those of one place."""
    X = rng.standard_normal((6, 2))[[0, 1, 0, 2, 1, 3, 4]]
    D, w = naive.distances(X, X), np.array([1.0, 1, 1, 0, 1, 1, 2])
    found = array_source(D, np.arange(7.0)[:, None], w, Precomputed())
    np.testing.assert_array_equal(found.rows.X, D[np.ix_([0, 1, 5, 6], [0, 1, 5, 6])])
    assert found.rows.y[:, 0].tolist() == [1.0, 2.5, 5.0, 6.0]
    np.testing.assert_array_equal(found.weightless[1], D[[3]])


def test_rows_brought_into_memory_are_merged(rng):
    class Elsewhere:
        """Rows that are not in memory."""

        def __init__(self, *block):
            self.block, self.n = block, len(block[0])

        def take(self, indices):
            return tuple(part[indices] for part in self.block)

    X, y, w = np.array([[0.0], [1.0], [0.0]]), np.array([[1.0], [2.0], [3.0]]), np.ones(3)
    found = in_memory(Source(Elsewhere(X, y, w), 1), Euclidean())
    assert isinstance(found.rows, ArrayRows)
    assert found.rows.y.tolist() == [[2.0], [2.0]]
    assert in_memory(found, Euclidean()) is found


def test_a_place_is_one_row_whatever_its_longitude_is_written_as(rng):
    """Copies at longitudes that differ by 360 degrees are left out together."""
    pytest.importorskip("pyproj")
    P = np.column_stack([rng.uniform(-60, 60, 40), rng.uniform(-180, 180, 40)])
    turned = P + np.column_stack([np.zeros(40), np.where(P[:, 1] < 0, 360.0, -360.0)])
    y, est = rng.standard_normal(80), JacobianKernelRidge(1e6, 0.1, metric="geodesic")
    known = est.fit(np.vstack([P, P]), y).loo_residuals_
    found = est.fit(np.vstack([P, turned]), y)
    np.testing.assert_allclose(found.loo_residuals_, known, rtol=1e-7)
    np.testing.assert_array_equal(found.X_fit_, P)
    sigma = select_bandwidth(
        np.vstack([P, turned]), metric="geodesic", rule="jacobian_median"
    ).sigma
    twice = select_bandwidth(np.vstack([P, P]), metric="geodesic", rule="jacobian_median").sigma
    assert sigma == pytest.approx(twice)


@pytest.mark.parametrize(
    "places",
    [
        [[10.0, 180.0], [10.0, -180.0]],
        [[10.0, 190.3], [10.0, -169.7]],
        [[10.0, 0.0], [10.0, -0.0], [10.0, 360.0], [10.0, -360.0]],
        [[90.0, 12.0], [90.0, -77.0]],
        [[-90.0, 12.0], [-90.0, 0.0]],
    ],
    ids=str,
)
def test_one_place_has_one_canonical_row(places):
    geodesic = Geodesic()
    assert len(distinct_rows(geodesic.canonical(np.array(places)))) == 1
    others = np.array([[90.0, 1.0], [-90.0, 1.0], [10.0, 1.0], [10.0, -1.0], [-10.0, 1.0]])
    assert len(distinct_rows(geodesic.canonical(others))) == 5
