"""The estimator with the exact solver: against scikit-learn, refits and finite differences."""

import pickle
import re
import tracemalloc
from copy import copy, deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

import naive
from jacridge import RULES, AutoKernelRidge, JacobianKernelRidge, select_bandwidth
from known import SEARCHES


@pytest.fixture
def new(rng):
    """Rows like those of the fixture `table`, not seen in training."""
    return rng.standard_normal((25, 3)) * [1, 10, 0.1] + [0, 5, -1]


def two_targets(y):
    return np.column_stack([y, np.sin(y)])


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
@pytest.mark.parametrize("targets", [1, 2])
def test_predictions_are_those_of_scikit_learns_kernel_ridge(table, new, alpha, targets):
    X, y = table
    y = y if targets == 1 else two_targets(y)
    ours = JacobianKernelRidge(5.0, alpha, fit_intercept=False).fit(X, y)
    theirs = KernelRidge(alpha=alpha, kernel="rbf", gamma=1 / 50).fit(X, y)
    np.testing.assert_allclose(ours.predict(new), theirs.predict(new), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("targets", [1, 2])
def test_the_intercept_is_the_mean_of_y(table, new, targets):
    X, y = table
    y = y if targets == 1 else two_targets(y)
    ours = JacobianKernelRidge(5.0).fit(X, y)
    theirs = KernelRidge(alpha=1e-3, kernel="rbf", gamma=1 / 50).fit(X, y - y.mean(axis=0))
    np.testing.assert_allclose(ours.intercept_, y.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(
        ours.predict(new), y.mean(axis=0) + theirs.predict(new), rtol=1e-8, atol=1e-9
    )


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_free_intercept_is_fitted_and_not_penalised(table, new, targets, weighted, rng):
    X, y = table
    w = rng.uniform(0.2, 3, len(y)) if weighted else np.ones(len(y))
    Y = y[:, None] if targets == 1 else two_targets(y)
    ours = JacobianKernelRidge(5.0, fit_intercept="free").fit(X, Y, w)
    K = naive.kernel(naive.distances(X, X), 5.0)
    c, b = naive.with_intercept(K + 1e-3 * np.diag(1 / w), Y)
    np.testing.assert_allclose(ours.dual_coef_, c, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, b, rtol=1e-9)
    # KernelRidge, told the intercept, is the same model.
    theirs = KernelRidge(alpha=1e-3, kernel="rbf", gamma=1 / 50).fit(X, Y - b, w)
    np.testing.assert_allclose(ours.predict(new), b + theirs.predict(new), rtol=1e-8, atol=1e-9)


def test_the_deviation_with_a_free_intercept_is_that_of_ordinary_kriging(table, new):
    """Where the intercept is not known but fitted: far from all rows more than the signal's."""
    X, y = table
    places = np.vstack([new, X[:1] + 1e3])
    K, K_new = (naive.kernel(naive.distances(Z, X), 2.0) for Z in (X, places))
    A = K + 0.1 * np.eye(len(X))
    c, b = naive.with_intercept(A, y[:, None])
    k = np.column_stack([K_new, np.ones(len(places))])
    left = 1 - np.einsum("ij,ij->i", k, np.linalg.solve(naive.bordered(A), k.T).T)
    known = np.sqrt(left * ((y - b) @ c[:, 0]) / len(y))
    est = JacobianKernelRidge(2.0, 0.1, fit_intercept="free").fit(X, y)
    mean, std = est.predict(places, return_std=True)
    np.testing.assert_allclose(std, known, rtol=1e-8)
    assert mean[-1] == est.intercept_


@pytest.mark.parametrize("solver", ["exact", "nystrom"])
def test_degrees_of_freedom_are_the_trace_of_what_takes_y_to_the_fit(table, solver):
    """One column of it for each row, as the fit of a target that is one there, zero elsewhere."""
    X, _ = table
    est = JacobianKernelRidge(2.0, 0.1, fit_intercept="free", solver=solver, landmarks=X[:20])
    H = est.fit(X, np.eye(len(X))).predict(X)
    np.testing.assert_allclose(est._function().model.degrees_of_freedom, np.trace(H), rtol=1e-9)
    np.testing.assert_allclose(H.sum(axis=1), 1.0, rtol=1e-9)  # a constant is fitted exactly


@pytest.mark.parametrize("value", ["x", None, np.array([1, 2])], ids=str)
def test_another_intercept_is_refused(table, value):
    message = f'`fit_intercept` must be True, False or "free", got {value!r}.'
    with pytest.raises(ValueError, match=re.escape(message)):
        JacobianKernelRidge(fit_intercept=value).fit(*table)


def test_landmarks_that_are_neither_a_word_nor_rows_are_named(table):
    for value in (None, 3.0):
        est = JacobianKernelRidge(1.0, solver="nystrom", landmarks=value)
        with pytest.raises(TypeError, match=f"`landmarks` must be one of .*, got {value}"):
            est.fit(*table)


def test_a_change_of_y_after_the_fit_changes_nothing(rng):
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    known = JacobianKernelRidge().fit(X, y.copy()).diagnose().dict()
    est = JacobianKernelRidge().fit(X, y)
    y[:] = 0.0
    assert est.diagnose().dict() == known


@pytest.mark.parametrize("options", [{}, {"solver": "nystrom", "n_landmarks": 10}], ids=str)
def test_a_change_of_the_weights_after_the_fit_changes_nothing(rng, options):
    X, w = rng.standard_normal((30, 2)), rng.uniform(1, 2, 30)
    est = JacobianKernelRidge(1.0, 0.1, random_state=0, **options)
    known = est.fit(X, X[:, 0], w.copy()).effects().dict()
    est.fit(X, X[:, 0], w)
    w *= 100
    assert est.effects().dict() == known


def test_a_penalty_may_be_an_array_of_no_dimension(table):
    est = JacobianKernelRidge(5.0, np.array(0.1)).fit(*table)
    assert est.alpha_ == 0.1
    assert type(est.alpha_) is float


@pytest.mark.parametrize("copied", [copy, deepcopy, lambda est: deepcopy([est])[0]])
def test_a_copy_can_do_all_that_the_fit_can(table, copied):
    X, y = table
    for alpha, target in ((0.1, y), ("loo", two_targets(y))):
        est = JacobianKernelRidge(5.0, alpha, solver="nystrom", n_landmarks=20, random_state=0)
        est.fit(X, target)
        other = copied(est)
        np.testing.assert_array_equal(other.loo_residuals_, est.loo_residuals_)
        np.testing.assert_array_equal(other.predict(X), est.predict(X))
        known = est.predict(X)
        other.fit(X[:30], target[:30])
        np.testing.assert_array_equal(est.predict(X), known)


@pytest.mark.parametrize("weight", [2, 0.5])
def test_a_number_is_the_weight_of_every_row(table, weight):
    X, y = table
    known = KernelRidge(alpha=0.1, kernel="rbf", gamma=1 / 50).fit(X, y, weight)
    est = JacobianKernelRidge(5.0, 0.1, fit_intercept=False).fit(X, y, weight)
    np.testing.assert_allclose(est.predict(X), known.predict(X), rtol=1e-7)


@pytest.mark.parametrize("rule", RULES)
def test_the_bandwidth_is_that_of_the_rule(table, rule):
    X, y = table
    est = JacobianKernelRidge(rule, 0.01, random_state=0).fit(X, y)
    assert est.bandwidth_ == select_bandwidth(X, y, rule, alpha=0.01, random_state=0).sigma
    assert est.alpha_ == 0.01


def test_a_bandwidth_may_be_a_number_or_a_function(table):
    X, y = table
    assert JacobianKernelRidge(2).fit(X, y).bandwidth_ == 2.0
    est = JacobianKernelRidge(lambda problem: problem.l_max / 10).fit(X, y)
    assert est.bandwidth_ == pytest.approx(naive.distances(X, X).max() / 10, rel=1e-12)


def test_without_a_penalty_the_data_are_interpolated(table):
    X, y = table
    est = JacobianKernelRidge(1.0, 0).fit(X, y)
    np.testing.assert_allclose(est.predict(X), y, rtol=1e-9, atol=1e-9)


def test_weights_are_those_of_scikit_learns_kernel_ridge(table, new, rng):
    X, y = table
    w = rng.uniform(0.2, 3, len(y))
    ours = JacobianKernelRidge(5.0, fit_intercept=False).fit(X, y, w)
    theirs = KernelRidge(alpha=1e-3, kernel="rbf", gamma=1 / 50).fit(X, y, w)
    np.testing.assert_allclose(ours.predict(new), theirs.predict(new), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("fit_intercept", [True, False, "free"])
def test_a_weight_of_zero_removes_a_row_and_of_two_repeats_it(table, new, rng, rule, fit_intercept):
    X, y = table[0][:30], table[1][:30]
    w = rng.integers(0, 3, 30)
    kept = np.repeat(np.arange(30), w)
    est = JacobianKernelRidge(rule, 0.1, fit_intercept=fit_intercept, random_state=0)
    weighted = clone(est).fit(X, y, w)
    repeated = clone(est).fit(X[kept], y[kept])
    # A search that stops at a step of 1e-4 may stop a rounding error earlier.
    digits = 1e-5 if rule in SEARCHES else 1e-7
    for ours, theirs in zip(
        weighted.predict(new, return_std=True), repeated.predict(new, return_std=True), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=digits, atol=digits)


def test_weights_of_one_are_no_weights(table, new):
    X, y = table
    plain, weighted = JacobianKernelRidge().fit(X, y), JacobianKernelRidge().fit(X, y, np.ones(60))
    assert (plain.predict(new) == weighted.predict(new)).all()


def test_given_distances_give_the_predictions_of_their_rows(table, new, rng):
    X, y = table
    w = rng.integers(0, 3, 60)
    plain = JacobianKernelRidge(3.0).fit(X, y, w)
    given_distances = JacobianKernelRidge(3.0, metric="precomputed")
    given_distances.fit(naive.distances(X, X), y, w)
    D = naive.distances(new, X)
    np.testing.assert_allclose(given_distances.predict(D), plain.predict(new), rtol=1e-8)
    std, expected = given_distances.predict(D, True)[1], plain.predict(new, True)[1]
    np.testing.assert_allclose(std, expected, rtol=1e-7)


def test_places_on_the_earth_are_joined_by_geodesics(rng):
    X = np.column_stack([rng.uniform(42, 51, 25), rng.uniform(-4, 8, 25)])
    y = X[:, 0] + np.cos(X[:, 1])
    D = naive.geodesics(X, X)
    plain = JacobianKernelRidge(1e5, metric="geodesic").fit(X[:20], y[:20])
    given_distances = JacobianKernelRidge(1e5, metric="precomputed").fit(D[:20, :20], y[:20])
    # Vincenty's formula is good to nine digits, of which the solution keeps seven.
    np.testing.assert_allclose(
        plain.predict(X[20:]), given_distances.predict(D[20:, :20]), rtol=1e-6
    )


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("metric", ["euclidean", "geodesic"])
def test_the_jacobian_agrees_with_finite_differences(rng, metric, targets):
    X = np.column_stack([rng.uniform(42, 51, 30), rng.uniform(-4, 8, 30)])
    y = np.sin(X[:, 0]) + np.cos(X[:, 1])
    est = JacobianKernelRidge(2.0 if metric == "euclidean" else 2e5, metric=metric)
    est.fit(X, y if targets == 1 else two_targets(y))
    points = X[:6] + 0.3
    found = est.jacobian(points)
    assert found.shape == ((6, 2) if targets == 1 else (6, 2, 2))
    # A step of a hundredth of a degree leaves the difference itself seven digits.
    expected = naive.slopes(est.predict, points, h=0.01)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_deviation_is_that_of_scikit_learns_gaussian_process(table, new):
    X, y = table
    est = JacobianKernelRidge(5.0, 0.1, fit_intercept=False).fit(X, y)
    A = naive.kernel(naive.distances(X, X), 5.0) + 0.1 * np.eye(60)
    s2 = y @ np.linalg.solve(A, y) / 60
    process = GaussianProcessRegressor(
        ConstantKernel(s2) * RBF(5.0), alpha=0.1 * s2, optimizer=None
    ).fit(X, y)
    mean, std = est.predict(new, return_std=True)
    expected, expected_std = process.predict(new, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-8)
    np.testing.assert_allclose(std, expected_std, rtol=1e-7)


def test_deviations_of_several_targets_are_those_of_each_alone(table, new):
    X, y = table
    together = JacobianKernelRidge(5.0, 0.1).fit(X, two_targets(y)).predict(new, return_std=True)
    for t, target in enumerate(two_targets(y).T):
        alone = JacobianKernelRidge(5.0, 0.1).fit(X, target).predict(new, return_std=True)
        for ours, theirs in zip(together, alone, strict=True):
            np.testing.assert_allclose(ours[:, t], theirs, rtol=1e-9)


def test_far_from_all_rows_the_deviation_is_that_of_y_alone(table):
    X, y = table
    est = JacobianKernelRidge(1.0, 0.1).fit(X, y)
    mean, std = est.predict(X[:1] + 1e6, return_std=True)
    A = naive.kernel(naive.distances(X, X), 1.0) + 0.1 * np.eye(60)
    s2 = (y - y.mean()) @ np.linalg.solve(A, y - y.mean()) / 60
    assert mean[0] == pytest.approx(y.mean(), rel=1e-12)
    assert std[0] == pytest.approx(np.sqrt(s2), rel=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False, "free"])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("targets", [1, 2])
def test_leave_one_out_residuals_are_those_of_actual_refits(
    table, rng, fit_intercept, weighted, targets
):
    X, y = table
    y = y if targets == 1 else two_targets(y)
    w = rng.uniform(0.2, 3, 60) if weighted else None
    est = JacobianKernelRidge(4.0, 0.01, fit_intercept=fit_intercept)
    expected = naive.leave_one_out(lambda: clone(est), X, y, w)
    # Each refit is good to a condition number of 1e4 less than double precision.
    np.testing.assert_allclose(est.fit(X, y, w).loo_residuals_, expected, rtol=1e-8, atol=1e-9)


def test_rows_of_weight_zero_have_their_plain_residuals(table):
    X, y = table
    w = np.r_[np.zeros(5), np.ones(55)]
    est = JacobianKernelRidge(4.0).fit(X, y, w)
    np.testing.assert_allclose(est.loo_residuals_[:5], (y - est.predict(X))[:5], rtol=1e-12)
    without = JacobianKernelRidge(4.0).fit(X[5:], y[5:])
    np.testing.assert_allclose(est.loo_residuals_[5:], without.loo_residuals_, rtol=1e-10)


@settings(max_examples=15)
@given(shift=st.floats(-1e3, 1e3), scale=st.floats(0.01, 100), seed=st.integers(0, 9))
def test_shifting_and_scaling_y_shifts_and_scales_predictions(shift, scale, seed):
    rng = np.random.default_rng(seed)
    X, y, X_new = rng.standard_normal((20, 2)), rng.standard_normal(20), rng.standard_normal((5, 2))
    plain, moved = (
        JacobianKernelRidge(alpha=0.1).fit(X, v).predict(X_new) for v in (y, scale * y + shift)
    )
    np.testing.assert_allclose(moved, scale * plain + shift, rtol=1e-9, atol=1e-9 * scale)


@settings(max_examples=15)
@given(scale=st.sampled_from([1e-100, 1e-3, 10.0, 1e100]), seed=st.integers(0, 9))
def test_the_unit_of_the_features_does_not_matter(scale, seed):
    rng = np.random.default_rng(seed)
    X, y, X_new = rng.standard_normal((20, 2)), rng.standard_normal(20), rng.standard_normal((5, 2))
    here = JacobianKernelRidge(alpha=0.1).fit(X, y).predict(X_new)
    there = JacobianKernelRidge(alpha=0.1).fit(scale * X, y).predict(scale * X_new)
    np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-9)


@settings(max_examples=15)
@given(seed=st.integers(0, 99))
def test_the_order_of_rows_and_columns_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    X, y, X_new = rng.standard_normal((20, 3)), rng.standard_normal(20), rng.standard_normal((5, 3))
    rows, columns = rng.permutation(20), rng.permutation(3)
    here = JacobianKernelRidge(alpha=0.1).fit(X, y).predict(X_new)
    there = JacobianKernelRidge(alpha=0.1).fit(X[rows][:, columns], y[rows])
    np.testing.assert_allclose(there.predict(X_new[:, columns]), here, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shift", [1e6, -1e8])
def test_features_far_from_the_origin_lose_no_more_digits_than_they_have_lost(table, new, shift):
    X, y = (table[0] + shift) - shift, table[1]
    X_new = (new + shift) - shift
    here = JacobianKernelRidge(5.0, 0.1).fit(X, y).predict(X_new)
    there = JacobianKernelRidge(5.0, 0.1).fit(X + shift, y).predict(X_new + shift)
    np.testing.assert_allclose(there, here, rtol=1e-9)


def test_targets_are_fitted_each_as_if_alone(table, new):
    X, y = table
    together = JacobianKernelRidge().fit(X, two_targets(y)).predict(new)
    for t, target in enumerate(two_targets(y).T):
        alone = JacobianKernelRidge().fit(X, target).predict(new)
        np.testing.assert_allclose(together[:, t], alone, rtol=1e-9)


def test_one_column_of_targets_gives_one_column_of_predictions(table, new):
    X, y = table
    est = JacobianKernelRidge().fit(X, y[:, None])
    assert est.predict(new).shape == (25, 1)
    assert est.predict(new, return_std=True)[1].shape == (25, 1)
    assert est.jacobian(new).shape == (25, 1, 3)
    assert est.loo_residuals_.shape == (60, 1)
    flat = JacobianKernelRidge().fit(X, y)
    np.testing.assert_allclose(est.predict(new)[:, 0], flat.predict(new), rtol=1e-9)


@pytest.mark.parametrize("entries", [1, 100, 1 << 20])
def test_predictions_in_one_block_or_many_agree(table, new, size, entries):
    X, y = table
    est = JacobianKernelRidge().fit(X, y)
    whole = est.predict(new, return_std=True), est.jacobian(new)
    size("block entries", entries)
    (mean, std), J = est.predict(new, return_std=True), est.jacobian(new)
    np.testing.assert_allclose(mean, whole[0][0], rtol=1e-9)
    np.testing.assert_allclose(std, whole[0][1], rtol=1e-9)
    np.testing.assert_allclose(J, whole[1], rtol=1e-9, atol=1e-9)


def test_memory_of_predictions_does_not_grow_with_new_rows_times_rows(rng, size):
    size("block entries", 1 << 14)
    X, X_new = rng.standard_normal((500, 2)), rng.standard_normal((8000, 2))
    est = JacobianKernelRidge(1.0, 1.0).fit(X, X[:, 0])
    for ask in (est.predict, lambda rows: est.predict(rows, return_std=True), est.jacobian):
        tracemalloc.start()
        ask(X_new)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        # The whole kernel would take 32 MB.
        assert peak < 6e6


@pytest.mark.parametrize("rule", ["jacobian", pytest.param("loo", marks=pytest.mark.slow)])
def test_a_fit_takes_one_matrix_of_memory(rng, size, rule):
    size("block entries", 1 << 14)
    size("inverse columns", (32, 32))
    X = rng.standard_normal((900, 3))
    tracemalloc.start()
    JacobianKernelRidge(rule, 0.1).fit(X, X[:, 0])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Tiles of 128 rows in two threads are a third of so small a matrix.
    assert peak < 1.5 * 8 * 900**2


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_columns_of_a_data_frame_are_known_by_name(table, new, frame):
    X, y = table
    names = ["length", "width", "height"]
    columns = {name: X[:, j] for j, name in enumerate(names)}
    est = JacobianKernelRidge().fit(frame(columns), y)
    assert est.feature_names_in_.tolist() == names
    shown = frame({name: new[:, j] for j, name in enumerate(names)})
    expected = JacobianKernelRidge().fit(X, y).predict(new)
    np.testing.assert_allclose(est.predict(shown), expected, rtol=1e-9)
    with pytest.raises(ValueError, match="feature names should match"):
        est.predict(shown[["width", "length", "height"]])


@pytest.mark.parametrize("series", [pd.Series, pl.Series], ids=["pandas", "polars"])
def test_targets_and_weights_may_be_columns_of_a_data_frame(table, new, series):
    X, y = table
    w = np.linspace(1, 2, 60)
    est = JacobianKernelRidge().fit(X, series(y), sample_weight=series(w))
    expected = JacobianKernelRidge().fit(X, y, w).predict(new)
    np.testing.assert_allclose(est.predict(new), expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_numbers_are_taken_as_doubles(table, new, dtype):
    X, y = (np.round(10 * part).astype(dtype) for part in table)
    est = JacobianKernelRidge().fit(X, y)
    expected = JacobianKernelRidge().fit(X.astype(float), y.astype(float))
    rows = np.round(10 * new).astype(dtype)
    assert est.predict(rows).dtype == np.float64
    np.testing.assert_allclose(est.predict(rows), expected.predict(rows.astype(float)), rtol=1e-9)


def test_fit_leaves_its_arguments_alone(table):
    X, y = table
    w = np.linspace(0, 1, 60)
    before = X.copy(), y.copy(), w.copy()
    JacobianKernelRidge("loo").fit(X, y, w)
    for now, then in zip((X, y, w), before, strict=True):
        assert (now == then).all()


@pytest.mark.parametrize("alpha", [0.01, "loo"])
def test_a_pickled_model_is_small_and_knows_all_that_it_knew(table, new, alpha):
    X, y = table
    est = JacobianKernelRidge(alpha=alpha).fit(X, two_targets(y), np.linspace(0, 2, 60))
    stored = pickle.dumps(est)
    back = pickle.loads(stored)
    assert len(stored) < 8 * 60 * 60
    for ask in (
        lambda model: model.predict(new, return_std=True)[0],
        lambda model: model.predict(new, return_std=True)[1],
        lambda model: model.loo_residuals_,
        lambda model: model.jacobian(new),
        lambda model: model.predict_interval(new)[1],
    ):
        np.testing.assert_allclose(ask(back), ask(est), rtol=1e-9, atol=1e-12)


def test_a_clone_is_not_fitted_and_has_the_same_parameters(table):
    est = JacobianKernelRidge(2.0, 0.5, fit_intercept=False, random_state=3).fit(*table)
    again = clone(est)
    assert again.get_params() == est.get_params()
    assert not hasattr(again, "dual_coef_")


def test_fit_changes_no_parameter(table):
    est = JacobianKernelRidge("loo", "loo")
    before = est.get_params()
    assert est.fit(*table).get_params() == before


def test_given_distances_are_cut_by_rows_and_columns_in_a_search(table):
    X, y = table
    search = GridSearchCV(
        JacobianKernelRidge(metric="precomputed"), {"bandwidth": [1.0, 5.0]}, cv=3
    ).fit(naive.distances(X, X), y)
    plain = GridSearchCV(JacobianKernelRidge(), {"bandwidth": [1.0, 5.0]}, cv=3).fit(X, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], rtol=1e-7
    )


def test_equal_rows_without_a_penalty_are_fitted_by_their_mean(rng):
    X = np.repeat(rng.uniform(size=(12, 2)), 2, axis=0)
    y = rng.standard_normal(24)
    est = JacobianKernelRidge(0.1, 0).fit(X, y)
    np.testing.assert_allclose(est.predict(X[::2]), y.reshape(12, 2).mean(axis=1), rtol=1e-7)


def test_nearly_equal_rows_without_a_penalty_are_fitted_by_their_mean(rng):
    """LAPACK finds a factor, but one of rounding errors."""
    X = np.repeat(rng.uniform(size=(12, 2)), 2, axis=0)
    X[1::2] += 1e-9
    y = rng.standard_normal(24)
    with pytest.warns(UserWarning, match="smallest eigenvalue"):
        est = JacobianKernelRidge(0.1, 0).fit(X, y)
    # Rows at a hundred millionth of the bandwidth differ by as much.
    np.testing.assert_allclose(
        est.predict(X[::2]), y.reshape(12, 2).mean(axis=1), rtol=1e-5, atol=1e-5
    )


def test_a_kernel_of_places_all_round_the_earth_may_have_negative_eigenvalues(rng):
    X = np.column_stack([np.zeros(40), np.linspace(-180, 171, 40)])
    y = np.cos(np.radians(X[:, 1]))
    with pytest.warns(UserWarning, match=r"smallest eigenvalue -0\.\d+\);"):
        est = JacobianKernelRidge(6e6, metric="geodesic").fit(X, y)
    mean, std = est.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert np.isfinite(est.loo_residuals_).all()
    assert est.score(X, y) > 0.99


def test_memory_is_asked_for_before_it_is_taken(size, rng):
    size("memory", 10**5)
    X = rng.standard_normal((200, 2))
    words = r'=200 needs 0.32 MB of memory, but only 0.1 MB is available. Use `solver="nystrom"`'
    with pytest.raises(MemoryError, match=words):
        JacobianKernelRidge(solver="exact").fit(X, X[:, 0])


@pytest.mark.parametrize("rule", RULES)
def test_a_constant_target_is_predicted_as_such(table, new, rule):
    X, _ = table
    est = JacobianKernelRidge(rule)
    if rule in SEARCHES:
        with pytest.warns(UserWarning, match="`y` is constant"):
            est.fit(X, np.full(60, 0.1))
    else:
        est.fit(X, np.full(60, 0.1))
    mean, std = est.predict(new, return_std=True)
    assert (mean == 0.1).all()
    assert (std == 0).all()


def test_a_single_row_is_predicted_everywhere_by_its_target():
    est = JacobianKernelRidge(1.0).fit([[1.0, 2.0]], [3.0])
    assert est.predict([[1.0, 2.0], [9.0, 9.0]]).tolist() == [3.0, 3.0]
    assert np.isfinite(est.loo_residuals_).all()


@pytest.mark.parametrize("size", [1e-149, 1e149])
def test_the_smallest_and_largest_numbers_that_are_taken_do_not_overflow(rng, size):
    X, y, unit = rng.uniform(-1, 1, (20, 2)), rng.uniform(-1, 1, 20), min(size, 1e99)
    est = JacobianKernelRidge(alpha=0.1).fit(size * X, unit * y)
    plain = JacobianKernelRidge(alpha=0.1).fit(X, y)
    for ours, theirs in zip(
        est.predict(size * X, return_std=True), plain.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(ours / unit, theirs, rtol=1e-9)
    np.testing.assert_allclose(est.loo_residuals_ / unit, plain.loo_residuals_, rtol=1e-9)


@pytest.mark.parametrize("options", [{"metric": "scaled"}, {"metric": "euclidean"}])
@pytest.mark.parametrize("weights", ["none", "zeros"])
def test_a_memory_map_is_fitted_like_the_array(table, tmp_path, options, weights):
    """Equal rows are merged and rows of weight zero left out there, too."""
    X, y = (np.concatenate([part, part]) for part in table)
    X = np.column_stack([X, np.full(len(X), 5.0)])  # a constant column, which the map drops
    w = None if weights == "none" else np.arange(len(y)) % 3
    np.save(tmp_path / "X.npy", X)
    est = JacobianKernelRidge("auto", "auto", random_state=0, **options)
    known = est.fit(X, y, w)
    expected = known.bandwidth_, known.predict(X), known.loo_residuals_
    found = est.fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y, w)
    assert found.solver_ == "exact"
    assert found.bandwidth_ == pytest.approx(expected[0], rel=1e-7)
    np.testing.assert_allclose(found.predict(X), expected[1], rtol=1e-7)
    np.testing.assert_allclose(found.loo_residuals_, expected[2], rtol=1e-7, atol=1e-8)


def test_residuals_are_the_caller_s_own(surface):
    est = JacobianKernelRidge(0.5, 0.1).fit(*surface)
    kept = est.loo_residuals_.copy()
    est.loo_residuals_[:] = 0
    np.testing.assert_array_equal(est.loo_residuals_, kept)


def test_without_an_intercept_the_level_of_y_is_a_signal(rng):
    X = rng.standard_normal((120, 2))
    y = 10 + 0.1 * rng.standard_normal(120)
    est = AutoKernelRidge(fit_intercept=False, random_state=0).fit(X, y)
    np.testing.assert_allclose(est.predict(X), 10, atol=1)  # ridge pulls it towards zero


def test_a_diagnosis_of_conjugate_gradients_says_what_is_missing(surface):
    est = JacobianKernelRidge(0.5, 0.1, solver="pcg").fit(*surface)
    with pytest.raises(AttributeError, match="pcg"):
        est.diagnose()
