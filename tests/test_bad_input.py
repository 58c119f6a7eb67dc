"""Bad input to the estimators and to the command, and the messages it gets."""

import re

import numpy as np
import pytest

import naive
from jacridge import RULES, JacobianKernelRidge, JacobianNystroem, select_bandwidth
from known import SEARCHES

X, y = np.random.default_rng(0).standard_normal((12, 2)), np.arange(12.0)


def select(X, y, **options):
    return select_bandwidth(X, y, options.pop("bandwidth", "loo"), **options)


def fit(X, y, **options):
    return JacobianKernelRidge(**options).fit(X, y)


both_doors = pytest.mark.parametrize("door", [select, fit])


@both_doors
def test_no_rows_are_refused(door):
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\).*minimum of 1"):
        door(np.empty((0, 2)), np.empty(0))


@both_doors
def test_no_columns_are_refused(door):
    with pytest.raises(ValueError, match=r"Found array with 0 feature\(s\)"):
        door(np.empty((12, 0)), y)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("rule", RULES)
@both_doors
def test_one_or_two_rows_are_too_few_for_any_rule(door, rule, n):
    words = f"The spacing of points needs n_samples >= 3, got n_samples={n}. Pass a number"
    with pytest.raises(ValueError, match=re.escape(words)):
        door(X[:n], y[:n], bandwidth=rule)


def test_weights_that_leave_two_rows_are_named_as_the_reason():
    w = np.r_[1, 1, np.zeros(10)]
    with pytest.raises(ValueError, match=r"n_samples >= 3, got n_samples=2\."):
        JacobianKernelRidge().fit(X, y, w)
    with pytest.raises(ValueError, match=r"got n_samples=2\."):
        JacobianKernelRidge().fit(X, y, w / 10)


def test_weights_that_sum_to_one_are_as_good_as_others():
    rule = JacobianKernelRidge().fit(X, y, np.full(12, 1 / 12))
    assert rule.bandwidth_ == JacobianKernelRidge().fit(X, y).bandwidth_


@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_rows_are_enough_for_a_number(n):
    assert np.isfinite(JacobianKernelRidge(1.0).fit(X[:n], y[:n]).predict(X)).all()


@pytest.mark.parametrize("metric", ["euclidean", "geodesic", "precomputed"])
@pytest.mark.parametrize("rule", RULES)
@both_doors
@pytest.mark.filterwarnings("ignore:.*rows repeat an earlier row")
def test_rows_that_are_all_equal_have_no_bandwidth(door, rule, metric):
    equal = np.zeros((12, 12)) if metric == "precomputed" else np.tile([0.1, 0.7], (12, 1))
    with pytest.raises(ValueError, match="`X` must have rows that differ, got rows that are all"):
        door(equal, y, bandwidth=rule, metric=metric)


@pytest.mark.parametrize("rule", RULES)
def test_one_row_of_a_large_weight_is_a_row_that_is_all_equal(rule):
    with pytest.raises(ValueError, match="`X` must have rows that differ, got rows that are all"):
        JacobianKernelRidge(rule).fit(X, y, np.r_[5, np.zeros(11)])


@pytest.mark.parametrize("rule", RULES)
@both_doors
def test_rows_whose_squared_distances_underflow_count_as_equal(door, rule):
    with pytest.raises(ValueError, match=r"`X` must have .*(underflow|would be)"):
        door(X * 1e-160, y, bandwidth=rule)


@both_doors
def test_a_rule_that_ends_at_zero_says_why(door):
    mostly_equal = np.r_[np.zeros((11, 2)), np.ones((1, 2))]
    with pytest.raises(
        ValueError, match=r"has too many duplicate rows for this rule: the bandwidth would be 0\."
    ):
        door(mostly_equal, y, bandwidth="median")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@both_doors
def test_features_must_be_finite(door, value):
    bad = X.copy()
    bad[3, 1] = value
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        door(bad, y)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@both_doors
def test_targets_must_be_finite(door, value):
    with pytest.raises(ValueError, match=r"Input y contains (NaN|infinity)"):
        door(X, np.r_[value, y[1:]])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_must_be_finite(value):
    with pytest.raises(ValueError, match=r"Input sample_weight contains (NaN|infinity)"):
        JacobianKernelRidge().fit(X, y, np.r_[value, y[1:]])


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(11), r"one weight per row, shape (12,), got shape (11,)"),
        (-np.ones(12), ">= 0 and not all zero, got weights from -1 to -1"),
        (np.zeros(12), ">= 0 and not all zero, got weights from 0 to 0"),
    ],
)
@pytest.mark.parametrize("solver", ["exact", "nystrom"])
def test_weights_must_make_sense(weights, words, solver):
    with pytest.raises(ValueError, match="`sample_weight` must .*" + re.escape(words)):
        JacobianKernelRidge(solver=solver).fit(X, y, weights)


@pytest.mark.parametrize("alpha", [-1e-9, np.nan, np.inf, -np.inf, 1e200])
@both_doors
def test_the_penalty_must_be_a_finite_number_that_is_not_negative(door, alpha):
    with pytest.raises(
        ValueError, match=r"`alpha` must be a finite number >= 0 and <= 1e\+150, got"
    ):
        door(X, y, alpha=alpha)


@pytest.mark.parametrize("alpha", [1e-200, [1e-140, 1.0], [1e-3, 1e-101]])
@both_doors
def test_penalties_near_zero_are_refused_alone_and_in_a_list(door, alpha):
    with pytest.raises(ValueError, match=r"`alpha` must be .* 1e-100"):
        door(X, y, alpha=alpha)


@pytest.mark.parametrize("alpha", [1e-200, 1e200])
def test_a_transformer_has_the_penalties_of_an_estimator(alpha):
    with pytest.raises(ValueError) as known:
        fit(X, y, alpha=alpha)
    with pytest.raises(ValueError, match=re.escape(str(known.value))):
        JacobianNystroem("jacobian", 5, alpha=alpha).fit(X)


@pytest.mark.parametrize("alpha", [None, True, 1j])
@both_doors
def test_the_penalty_must_be_a_number(door, alpha):
    with pytest.raises(TypeError, match="`alpha` must be a finite number >= 0"):
        door(X, y, alpha=alpha)


@both_doors
def test_an_unknown_way_to_choose_the_penalty_is_answered_with_the_known_ones(door):
    words = "`alpha` must be one of 'loo', 'gcv', 'mml', 'auto', got 'aic'."
    with pytest.raises(ValueError, match=re.escape(words)):
        door(X, y, alpha="aic")


@pytest.mark.parametrize("sigma", [0, -1.0, np.nan, np.inf])
def test_the_bandwidth_must_be_a_finite_number_above_zero(sigma):
    with pytest.raises(ValueError, match=r"`bandwidth` must be a finite number > 0, got"):
        fit(X, y, bandwidth=sigma)


@pytest.mark.parametrize("sigma", [1e-200, 1e200])
def test_the_square_of_a_bandwidth_must_be_a_number(sigma):
    with pytest.raises(ValueError, match=r"`bandwidth` must be .*>= 1e-150 and <= 1e\+150, got"):
        fit(X, y, bandwidth=sigma)


@pytest.mark.parametrize("sigma", [None, True, [1.0]])
def test_the_bandwidth_must_be_a_number_a_rule_or_a_function(sigma):
    words = "`bandwidth` must be a number, the name of a rule or a function, got"
    with pytest.raises(TypeError, match=words):
        fit(X, y, bandwidth=sigma)


@pytest.mark.parametrize("answer", [0.0, -1.0, np.nan, "jacobian", None])
@both_doors
def test_what_a_function_returns_must_be_a_bandwidth(door, answer):
    with pytest.raises((ValueError, TypeError), match="`bandwidth` must be a finite number > 0"):
        door(X, y, bandwidth=lambda problem: answer)


@pytest.mark.parametrize(("door", "name"), [(select, "rule"), (fit, "bandwidth")])
def test_an_unknown_rule_is_answered_with_the_known_ones(door, name):
    words = f"`{name}` must be one of {', '.join(map(repr, RULES))}, got 'jacobean'."
    with pytest.raises(ValueError, match=re.escape(words)):
        door(X, y, bandwidth="jacobean")


@pytest.mark.parametrize("rule", [0.5, None])
def test_a_rule_must_be_a_name_or_a_function(rule):
    with pytest.raises(TypeError, match=r"`rule` must be one of 'jacobian', .*, got"):
        select_bandwidth(X, y, rule)


@pytest.mark.parametrize("metric", ["manhattan", ""])
@both_doors
def test_an_unknown_metric_is_answered_with_the_known_ones(door, metric):
    learned = "'scaled', 'diagonal', 'full', 'auto', " if door is fit else ""
    words = (
        f"`metric` must be one of 'euclidean', {learned}'geodesic', 'precomputed', got {metric!r}."
    )
    with pytest.raises(ValueError, match=re.escape(words)):
        door(X, y, metric=metric)


def test_an_unknown_solver_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"`solver` must be one of 'auto', 'exact', .* got 'lu'"):
        fit(X, y, solver="lu")


@both_doors
def test_targets_of_another_length_are_refused(door):
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[12, 11\]"):
        door(X, y[:-1])


@both_doors
def test_words_are_no_features(door):
    with pytest.raises(ValueError, match="could not convert string to float: 'a'"):
        door(np.full((12, 2), "a", dtype=object), y)


@both_doors
def test_the_first_column_of_words_is_named(door):
    frame = pytest.importorskip("pandas").DataFrame(X).add_prefix("x")
    frame.insert(1, "numbers", ["1.5"] * 12)  # converted
    frame.insert(2, "colour", ["red"] * 12)
    with pytest.raises(ValueError, match=r"column 'colour'.*'red'.*\(OneHotEncoder\)"):
        door(frame, y)


@both_doors
def test_words_are_no_targets(door):
    with pytest.raises(ValueError, match="could not convert string to float: 'a'"):
        door(X, np.full(12, "a", dtype=object))


@both_doors
def test_features_must_have_rows_and_columns(door):
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        door(X[:, 0], y)


@both_doors
def test_targets_have_at_most_two_dimensions(door):
    with pytest.raises(ValueError, match=r"Found array with dim 3|dim 3"):
        door(X, np.zeros((12, 2, 2)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda D: D[:, :5], r"square matrix of distances .* got \(12, 5\)"),
        (lambda D: D - D.max(), "distances >= 0, got -"),
        (lambda D: D + np.eye(12), "zero diagonal, .* got 1. Pass distances, not a kernel"),
        (lambda D: np.triu(D), "symmetric, got entries that differ by"),
        (lambda D: np.exp(-D), "zero diagonal"),
    ],
    ids=["not square", "negative", "diagonal", "not symmetric", "a kernel"],
)
@both_doors
def test_what_is_no_matrix_of_distances_is_refused(door, change, words):
    with pytest.raises(ValueError, match=f"`X` must .*{words}"):
        door(change(naive.distances(X, X)), y, metric="precomputed")


def test_new_distances_must_go_to_all_training_rows_and_not_be_negative():
    D = naive.distances(X, X)
    est = fit(D, y, metric="precomputed")
    with pytest.raises(ValueError, match=r"X has 11 features, but .* is expecting 12 features"):
        est.predict(D[:, 1:])
    with pytest.raises(ValueError, match="`X` must hold distances >= 0, got -1"):
        est.predict(D - 1)


@pytest.mark.parametrize("rule", SEARCHES)
def test_a_rule_that_looks_at_y_needs_it(rule):
    with pytest.raises(ValueError, match="needs `y`, got None"):
        select_bandwidth(X, rule=rule)


def test_a_penalty_that_is_chosen_needs_y():
    with pytest.raises(ValueError, match="needs `y`, got None"):
        select_bandwidth(X, alpha="loo")


def test_a_fit_needs_y():
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        JacobianKernelRidge().fit(X, None)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([90.1, 0.0], "latitudes from -90 to 90 .* got absolute values up to 90.1 and"),
        ([0.0, -360.1], "longitudes from -360 to 360 .* and 360.1"),
    ],
)
def test_places_must_be_on_the_earth_in_training_and_later(bad, words):
    places = np.r_[X[:11], [bad]]
    for door in (select, fit):
        with pytest.raises(ValueError, match=words):
            door(places, y, metric="geodesic")
    est = fit(X, y, bandwidth=1e5, metric="geodesic")
    for ask in (est.predict, est.jacobian):
        with pytest.raises(ValueError, match=words):
            ask([bad])


@both_doors
def test_places_must_have_two_coordinates(door):
    with pytest.raises(ValueError, match=r"two columns, latitude and longitude, .* got 3"):
        door(np.c_[X, y], y, metric="geodesic")


@pytest.mark.parametrize("size", [1e151, 1.7e308])
@both_doors
def test_features_whose_squares_overflow_are_refused(door, size):
    with pytest.raises(ValueError, match=r"`X` must have entries of at most 1e\+150 in abs"):
        door(X / np.abs(X).max() * size, y)


@both_doors
def test_targets_whose_squares_overflow_are_refused(door):
    with pytest.raises(ValueError, match=r"`y` must have entries of at most 1e\+100 in abs"):
        door(X, y * 1e200)


def test_new_rows_whose_squares_overflow_are_refused():
    with pytest.raises(ValueError, match=r"`X` must have entries of at most 1e\+150 in abs"):
        fit(X, y).predict(X * 1e200)


def test_new_rows_must_have_the_features_of_the_training_rows():
    with pytest.raises(ValueError, match=r"X has 1 features, but .* is expecting 2 features"):
        fit(X, y).predict(X[:, :1])


def test_given_distances_have_no_jacobian():
    est = fit(naive.distances(X, X), y, metric="precomputed")
    with pytest.raises(ValueError, match='needs features, got metric="precomputed"'):
        est.jacobian(naive.distances(X, X))


@pytest.mark.parametrize("coverage", [0, 1, 1.5, np.nan])
def test_the_coverage_of_an_interval_lies_between_zero_and_one(coverage):
    with pytest.raises(ValueError, match="`coverage` must be a finite number > 0 and < 1"):
        fit(X, y).predict_interval(X, coverage)


@pytest.mark.parametrize("grid", [[], [0.0], [-1.0], [np.nan], [np.inf], [[1.0]]])
def test_a_grid_must_be_a_list_of_bandwidths(grid):
    with pytest.raises(ValueError, match="`grid` must be a list of numbers from"):
        select(X, y, grid=grid)


@both_doors
def test_a_target_of_words_names_the_classifier(door):
    with pytest.raises(ValueError, match=r"`y` must hold numbers, got text.*AutoKernelClassifier"):
        door(X, np.array(["a", "b"] * 6))


@both_doors
@pytest.mark.parametrize("as_text", [False, True])
def test_a_column_of_dates_is_named(door, as_text):
    pandas = pytest.importorskip("pandas")
    frame, dates = pandas.DataFrame(X).add_prefix("x"), pandas.date_range("2020-01-01", periods=12)
    frame.insert(1, "sold_on", dates.strftime("%Y-%m-%d") if as_text else dates)
    with pytest.raises((TypeError, ValueError), match="got dates in column 'sold_on'") as error:
        door(frame, y)
    assert "the year" in str(error.value)
    assert "OneHotEncoder" not in str(error.value)


@both_doors
@pytest.mark.parametrize("kind", ["pandas", "polars", "numpy", "durations", "texts"])
def test_dates_alone_are_not_taken_as_nanoseconds(door, kind):
    """NumPy turns them into numbers without a word."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame({"day": pandas.date_range("2020-01-01", periods=12)})
    given = {
        "pandas": frame,
        "polars": polars.DataFrame({"day": frame["day"].to_numpy()}),
        "numpy": frame.to_numpy(),
        "durations": frame - frame.iloc[0],
        "texts": frame.assign(kind="a"),
    }
    with pytest.raises(TypeError, match=r"`X` must hold numbers, got dates.*the year"):
        door(given[kind], y)
