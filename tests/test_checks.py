"""What a caller may get wrong, one check at a time."""

import fractions
import tracemalloc

import numpy as np
import pytest

import naive
from jacridge import JacobianKernelRidge, select_bandwidth
from jacridge._checks import (
    check_bandwidth,
    check_choice,
    check_columns,
    check_coordinates,
    check_distances,
    check_no_negative,
    check_number,
    check_positive,
    check_range,
    check_rows,
    check_targets,
    check_weights,
    check_whole,
    generator,
    require,
)


@pytest.mark.parametrize("value", [0, 2, 2.5, np.float32(2), np.int64(2), fractions.Fraction(1, 3)])
def test_a_number_of_any_kind_comes_back_as_a_float(value):
    number = check_number("alpha", value, at_least=0)
    assert type(number) is float
    assert number == float(value)


@pytest.mark.parametrize("value", ["1", None, [1.0], np.ones(1), True, np.True_, 1j])
def test_what_is_no_number_is_the_wrong_type(value):
    with pytest.raises(TypeError, match=r"`alpha` must be a finite number >= 0, got "):
        check_number("alpha", value, at_least=0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_must_be_finite(value):
    with pytest.raises(ValueError, match=r"`alpha` must be a finite number, got -?(nan|inf)\."):
        check_number("alpha", value)


@pytest.mark.parametrize(
    ("limits", "inside", "outside", "words"),
    [
        ({"at_least": 0}, 0, -1e-300, ">= 0"),
        ({"above": 0}, 1e-300, 0, "> 0"),
        ({"at_most": 1}, 1, 1 + 1e-15, "<= 1"),
        ({"below": 1}, 1 - 1e-15, 1, "< 1"),
        ({"above": 0, "below": 1}, 0.5, 1, "> 0 and < 1"),
    ],
)
def test_a_number_must_keep_its_limits(limits, inside, outside, words):
    assert check_number("coverage", inside, **limits) == inside
    with pytest.raises(ValueError, match=rf"`coverage` must be a finite number {words}, got"):
        check_number("coverage", outside, **limits)


@pytest.mark.parametrize("value", [1e-150, 1e-3, 1e150])
def test_a_bandwidth_whose_square_is_a_double_is_taken(value):
    assert check_bandwidth(value) == value


@pytest.mark.parametrize(
    ("value", "words"), [(0, "> 0"), (-1.0, "> 0"), (1e-200, ">= 1e-150"), (1e200, "<= 1e[+]150")]
)
def test_a_bandwidth_whose_square_is_no_double_is_refused(value, words):
    with pytest.raises(ValueError, match=f"`bandwidth` must be a finite number .*{words}"):
        check_bandwidth(value)


def test_an_unknown_word_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"`metric` must be one of 'a', 'b', got 'c'\."):
        check_choice("metric", "c", ("a", "b"))


def test_what_is_no_word_is_the_wrong_type():
    with pytest.raises(TypeError, match=r"`metric` must be one of 'a', 'b', got 3\."):
        check_choice("metric", 3, ("a", "b"))


@pytest.mark.parametrize("value", [1e151, -1e300, 1.7e308])
def test_numbers_whose_squares_overflow_are_refused(value):
    with pytest.raises(ValueError, match=r"`X` must have entries of at most 1e\+150 in abs"):
        check_range("X", np.array([[0.0, value]]))


def test_the_largest_numbers_allowed_pass():
    X = [[1e150], [0.0], [-1e150]]
    assert select_bandwidth(X).l_max == pytest.approx(2e150, rel=1e-12)


def test_a_missing_extra_is_named():
    with pytest.raises(ImportError, match=r"pip install 'jacridge\[plots\]'"):
        require("no_such_module_anywhere", extra="plots")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda D: D[:, :3], r"square matrix of distances .* got \(4, 3\)"),
        (lambda D: D - 1, "distances >= 0, got -1"),
        (lambda D: D + np.eye(4), "zero diagonal, .* got 1. Pass distances, not a kernel"),
        (lambda D: np.triu(D), "symmetric, got entries that differ by"),
    ],
)
def test_what_is_no_matrix_of_distances_is_refused(rng, change, words):
    X = rng.standard_normal((4, 2))
    with pytest.raises(ValueError, match=f"`X` must .*{words}"):
        check_distances(change(naive.distances(X, X)))


def test_distances_may_differ_from_their_transpose_by_rounding(rng):
    X = rng.standard_normal((5, 2))
    D = naive.distances(X, X)
    est = JacobianKernelRidge(1.0, 0.1, metric="precomputed")
    expected = est.fit(D, X[:, 0]).predict(D)
    rounded = D.copy()
    rounded[0, 1] *= 1 + 1e-12
    np.testing.assert_allclose(est.fit(rounded, X[:, 0]).predict(D), expected, rtol=1e-10)


def test_given_distances_are_checked_without_a_second_matrix():
    D = np.zeros((3000, 3000))
    tracemalloc.start()
    check_distances(D)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < D.nbytes / 4


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[1.0, 2.0, 3.0]], "two columns, latitude and longitude, .* got 3"),
        ([[91.0, 0.0]], "latitudes from -90 to 90 .* up to 91 and 0"),
        ([[0.0, -361.0]], "longitudes from -360 to 360 .* up to 0 and 361"),
    ],
)
def test_what_is_no_latitude_and_longitude_is_refused(X, words):
    with pytest.raises(ValueError, match=f"`X` must .*{words}"):
        check_coordinates(np.array(X))


def test_rows_are_doubles_of_two_dimensions_and_named_if_they_are_not():
    assert check_rows([[1, 2]]).tolist() == [[1.0, 2.0]]
    with pytest.raises(ValueError, match="landmarks contains NaN"):
        check_rows([[np.nan]], "landmarks")
    with pytest.raises(ValueError, match="`landmarks` must have entries of at most"):
        check_rows([[1e200]], "landmarks")


def test_rows_with_another_number_of_columns_are_refused():
    check_columns("landmarks", 3, 3)
    with pytest.raises(ValueError, match=r"`landmarks` must have 3 columns, as `X` has, got 2\."):
        check_columns("landmarks", 2, 3)


@pytest.mark.parametrize("value", [1, np.int32(7), np.int64(2)])
def test_whole_numbers_are_taken(value):
    assert type(check_whole("n_landmarks", value)) is int
    assert check_whole("n_landmarks", value) == value


@pytest.mark.parametrize(
    ("value", "kind"), [(0, ValueError), (-3, ValueError), (2.5, TypeError), (True, TypeError)]
)
def test_what_is_no_whole_number_above_zero_is_refused(value, kind):
    with pytest.raises(kind, match=f"`n_landmarks` must be a whole number >= 1, got {value}"):
        check_whole("n_landmarks", value)


@pytest.mark.parametrize(("seed", "kind"), [("one", TypeError), (-1, ValueError)])
def test_a_seed_that_is_none_is_refused_by_name(seed, kind):
    with pytest.raises(kind, match=f"`random_state` must be None, .* got {seed!r}"):
        generator(seed)


def test_new_distances_may_be_of_any_shape_but_not_negative():
    check_no_negative(np.array([[0.0, 2.0, 3.0]]))
    with pytest.raises(ValueError, match="`X` must hold distances >= 0, got -1"):
        check_no_negative(np.array([[0.0, -1.0]]))


@pytest.mark.parametrize("y", [[1.0, 2.0], [[1.0], [2.0]]])
def test_targets_become_columns(y):
    assert check_targets(y, np.zeros((2, 1))).tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, 2.0], r"one weight per row, shape \(3,\), got shape \(2,\)"),
        ([[1.0]] * 3, r"one weight per row, shape \(3,\), got shape \(3, 1\)"),
        ([1.0, -1.0, 1.0], ">= 0 and not all zero, got weights from -1 to 1"),
        ([0.0, 0.0, 0.0], ">= 0 and not all zero, got weights from 0 to 0"),
        ([1.0, 1.0, 1e200], "entries of at most"),
        (0.0, "be a finite number > 0, got 0.0"),
        (np.inf, "be a finite number > 0, got inf"),
        ([1.0, 0.0, 1e-200], "zero or at least 1e-150, got 1e-200"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weights, words):
    with pytest.raises(ValueError, match=f"`sample_weight` must .*{words}"):
        check_weights(weights, np.zeros((3, 1)))


@pytest.mark.parametrize("grid", [[], [1.0, -1.0], [0.0], [np.nan], [np.inf], [[1.0]], [1e-200]])
def test_a_grid_must_be_a_list_of_positive_numbers(grid):
    with pytest.raises(
        ValueError, match=r"`grid` must be a list of numbers from 1e-150 to 1e\+150"
    ):
        check_positive("grid", grid)


@pytest.mark.parametrize("grid", ["ab", [object()], [[1.0], [1.0, 2.0]]])
def test_a_grid_of_other_things_is_the_wrong_type(grid):
    with pytest.raises(TypeError, match="`grid` must be a list of numbers"):
        check_positive("grid", grid)


def test_one_number_is_a_grid_of_one():
    assert check_positive("grid", 2).tolist() == [2.0]
