"""Numbers at the ends of what doubles hold: the right answer or a clear error, never NaN."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from jacridge import RULES, JacobianKernelRidge


@pytest.fixture
def rows(rng):
    return rng.uniform(size=(40, 2)), rng.standard_normal(40)


def answer_or_error(est, X, y, w=None):
    """A fit by conjugate gradients warns or refuses where the penalty is below rounding."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            est.fit(X, y, w)
        except LinAlgError as error:
            refusal = str(error)
        else:
            refusal = ""
    if refusal:
        assert "larger `alpha`" in refusal
        return
    assert [str(w.message).split(" stopped")[0] for w in told] == ["Conjugate gradients"]
    assert np.isfinite(est.predict(X)).all()


@pytest.mark.parametrize("alpha", [1e-16, 1e-18, 1e-100])
def test_conjugate_gradients_warn_or_refuse_at_a_penalty_below_rounding(rows, alpha):
    X, y = rows
    est = JacobianKernelRidge(0.3, alpha, solver="pcg", random_state=0)
    answer_or_error(est, np.vstack([X, X + 1e-12]), np.r_[y, y])


def test_conjugate_gradients_warn_or_refuse_where_weights_leave_no_penalty(rows):
    X, y = rows
    est = JacobianKernelRidge(0.3, solver="pcg", random_state=0)
    answer_or_error(est, X, y, np.full(40, 1e100))


@pytest.mark.filterwarnings("ignore:K . lambda I is not positive definite")
@pytest.mark.parametrize("intercept", [True, False, "free"])
def test_deviations_of_an_interpolating_wide_kernel_are_numbers(rows, intercept):
    X, y = rows
    est = JacobianKernelRidge(1e7, 0.0, fit_intercept=intercept).fit(X, y)
    mean, std = est.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


@pytest.mark.parametrize("alpha", [1e-3, "loo", "gcv", "mml", "auto"])
@pytest.mark.parametrize("rule", [0.3, "jacobian", "gcv", "auto"])
def test_the_unit_of_y_changes_nothing_but_the_unit_of_predictions(rows, rule, alpha):
    X, y = rows
    unit = 2.0**330  # about 2e99, and a power of two, so that no digit changes
    small = JacobianKernelRidge(rule, alpha, random_state=0).fit(X, y)
    large = JacobianKernelRidge(rule, alpha, random_state=0).fit(X, unit * y)
    assert large.bandwidth_ == pytest.approx(small.bandwidth_, rel=1e-7)
    assert large.alpha_ == pytest.approx(small.alpha_, rel=1e-7)
    # To 1e-4: a search may stop at another point where a criterion is flat to rounding.
    np.testing.assert_allclose(large.predict(X) / unit, small.predict(X), rtol=1e-4, atol=1e-5)


def test_targets_and_penalties_whose_quotients_overflow_are_refused(rows):
    X, y = rows
    with pytest.raises(ValueError, match=r"`y` must have entries of at most 1e\+100 in abs"):
        JacobianKernelRidge().fit(X, 1e148 * y)
    with pytest.raises(ValueError, match="`y` must be zero or have entries of at least 1e-150"):
        JacobianKernelRidge().fit(X, np.column_stack([y, 1e-200 * y]))
    with pytest.raises(ValueError, match="`alpha` must be 0 or at least 1e-100, got 1e-300"):
        JacobianKernelRidge(alpha=1e-300).fit(X, y)


@pytest.mark.parametrize("size", [1e-100, 1e100])
@pytest.mark.parametrize("rule", [0.3, "jacobian", "loo", "gcv", "mml", "auto"])
def test_weights_of_any_size_give_numbers(rows, rule, size):
    X, y = rows
    for alpha in (1e-3, "auto"):
        est = JacobianKernelRidge(rule, alpha, random_state=0).fit(X, y, np.full(40, size))
        mean, std = est.predict(X, return_std=True)
        lower, upper = est.predict_interval(X)
        assert np.isfinite([mean, std, lower, upper]).all()


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "ssmm"])  # which needs features
def test_places_that_are_all_one_pole_have_no_bandwidth(rng, rule):
    pytest.importorskip("pyproj")
    X = np.column_stack([np.full(20, 90.0), rng.uniform(-180, 180, 20)])
    with pytest.raises(ValueError, match="`X` must have rows"):
        JacobianKernelRidge(rule, metric="geodesic").fit(X, rng.standard_normal(20))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.filterwarnings("ignore:.*rows repeat an earlier row")
def test_places_most_of_which_are_one_pole_have_a_bandwidth_or_a_clear_error(rng, rule):
    """The mean of latitudes of 90 with these weights is above 90 by rounding."""
    pytest.importorskip("pyproj")
    X = np.column_stack([np.full(15, 90.0), rng.uniform(-180, 180, 15)])
    X[:3] = rng.uniform(0, 90, (3, 2))
    est = JacobianKernelRidge(rule, 1.0, kernel="matern32", metric="geodesic", random_state=0)
    try:
        est.fit(X, rng.standard_normal(15), rng.uniform(0.5, 2, 15))
    except ValueError as error:
        refusal = str(error)
        assert "too many duplicate rows" in refusal or "needs features" in refusal
    else:
        assert np.isfinite(est.bandwidth_)
        assert np.isfinite(est.predict(X)).all()


CHANGES = {
    "kernel": "laplacian",
    "metric": "precomputed",
    "solver": "pcg",
    "bandwidth": 9.0,
    "alpha": 7.0,
    "fit_intercept": False,
    "landmarks": "uniform",
    "n_landmarks": 3,
}


@pytest.mark.parametrize("solver", ["exact", "nystrom"])
def test_a_fitted_model_says_the_same_after_set_params(rows, solver):
    X, y = rows
    est = JacobianKernelRidge(0.3, 0.1, solver=solver, n_landmarks=15, random_state=0).fit(X, y)
    saved = pickle.dumps(est)

    def said(est):
        values = [est.predict(X), *est.predict_interval(X), est.jacobian(X).ravel()]
        return np.concatenate([*values, est.predict(X, return_std=True)[1], [est.score(X, y)]])

    expected = said(est)
    np.testing.assert_array_equal(said(est.set_params(**CHANGES)), expected)
    again = pickle.loads(saved).set_params(**CHANGES)
    np.testing.assert_allclose(said(again), expected, rtol=1e-7, atol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.diagnose()


@pytest.mark.parametrize("p", [3, 12])
@pytest.mark.parametrize("solver", ["exact", "nystrom", "pcg"])
def test_a_code_for_missing_values_in_half_of_the_rows_does_no_harm(rng, solver, p):
    """The halves do not see each other, however far apart they are."""
    X, y = rng.uniform(size=(120, p)), rng.standard_normal(120)
    options = {"solver": solver, "n_landmarks": 40, "landmarks": "uniform", "random_state": 0}
    found = []
    for code in (1e3, 999999999.0):
        X[::2, 1] = code
        found.append(JacobianKernelRidge(1.0, 1e-2, **options).fit(X, y).predict(X))
    # Landmarks make sums of squares, in which a rounding of 1e-16 is one of 1e-8.
    np.testing.assert_allclose(found[1], found[0], atol=1e-5 if solver == "nystrom" else 1e-7)


@pytest.mark.parametrize("metric", ["euclidean", "full", "precomputed"])
def test_eigenvalues_that_do_not_converge_are_found_by_another_driver(rows, metric, monkeypatch):
    X, y = rows
    X = np.linalg.norm(X[:, None] - X, axis=2) if metric == "precomputed" else X
    est = JacobianKernelRidge("loo", "loo", metric=metric, random_state=0)
    expected = est.fit(X, y).predict(X)

    def fails(A, **options):
        A[np.triu_indices(len(A), 1)] = np.nan  # as memory may hold: only the lower triangle is set
        raise LinAlgError("Eigenvalues did not converge")

    monkeypatch.setattr(np.linalg, "eigh", fails)
    monkeypatch.setattr(np.linalg, "eigvalsh", fails)
    # To 1e-6: another driver rounds in another way, and the search follows.
    np.testing.assert_allclose(est.fit(X, y).predict(X), expected, rtol=1e-6)


@pytest.mark.parametrize("criterion", ["gcv", "mml", "loo"])
def test_huge_weights_of_huge_targets_give_numbers_with_landmarks(rng, criterion):
    """Sums of w y k have squares beyond the range of doubles."""
    X, y = rng.uniform(size=(40, 2)), 1e95 * rng.standard_normal(40)
    est = JacobianKernelRidge(0.3, criterion, solver="nystrom", n_landmarks=10, random_state=0)
    assert np.isfinite(est.fit(X, y, np.full(40, 1e100)).predict(X)).all()


def test_a_single_row_of_huge_weight_is_predicted(rng):
    est = JacobianKernelRidge(1.0, "gcv", solver="pcg", n_landmarks=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # y is constant
        assert est.fit([[1.0]], [3.7], [1e100]).predict([[1.0]]) == pytest.approx([3.7])


@pytest.mark.filterwarnings("ignore:K . lambda I is not positive definite", "ignore:`y` is const")
def test_rows_of_which_a_singular_kernel_keeps_nothing_have_intervals(rng):
    X = np.concatenate([rng.uniform(size=40), np.full(20, 1e9)])[:, None]
    est = JacobianKernelRidge(1e7, 1.0, fit_intercept="free")
    est.fit(X, np.full(60, 3.7), 10.0 ** rng.uniform(-20, 20, 60))
    assert np.isfinite(est.predict_interval(X)).all()


@pytest.mark.parametrize(
    ("metric", "weight"), [("euclidean", 1.0), ("diagonal", 1.0), ("euclidean", 1e98)]
)
def test_slopes_whose_squares_overflow_have_errors_and_importances(rng, metric, weight):
    X, y = 1e-100 * rng.uniform(size=(40, 2)), 1e95 * rng.standard_normal(40)
    est = JacobianKernelRidge("median", weight, metric=metric, random_state=0)
    est.fit(X, y, np.full(40, weight))
    assert np.isfinite(est.jacobian(X, return_std=True)).all()
    assert est.feature_importances_.sum() == pytest.approx(1.0)
    assert np.isfinite([row.std_error for row in est.effects()]).all()


@pytest.mark.filterwarnings("ignore:K . lambda I is not positive definite")
def test_kernels_that_are_all_singular_are_chosen_among_in_silence(rng):
    D = 1e-200 * (1 - np.eye(6))
    est = JacobianKernelRidge(1.0, 0.0, kernel="auto", metric="precomputed")
    assert np.isfinite(est.fit(D, rng.standard_normal(6)).predict(D)).all()


@pytest.mark.filterwarnings("ignore:K . lambda I is not positive definite")
def test_tiny_weights_of_a_singular_kernel_have_a_condition(rows):
    est = JacobianKernelRidge(1e7, 0.0, fit_intercept=False).fit(*rows, np.full(40, 1e-100))
    found = est.diagnose().dict()["condition"]
    assert found["warning"]
    assert np.isfinite(found["value"])
