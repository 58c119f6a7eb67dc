"""Conjugate gradients on the full kernel give what the exact solver gives."""

import logging

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from jacridge import JacobianKernelRidge

# Iterations stop at a relative residual of 1e-7, of targets that are up to about 10.
CLOSE = 1e-5


def smooth(rng, n=300):
    X = rng.standard_normal((n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


def both(X, y, **params):
    pcg = JacobianKernelRidge(solver="pcg", n_landmarks=40, random_state=0, **params)
    return pcg.fit(X, y), JacobianKernelRidge(solver="exact", **params).fit(X, y)


def test_rows_far_out_are_fitted_where_single_precision_would_be_tried(rng, size):
    size("pcg single rows", 0)
    X = rng.standard_normal((50, 2))
    X[7] = 1e4
    y = np.sin(X[:, 0])
    pcg, exact = both(X, y, bandwidth=1.0)
    assert pcg.predict(X) == pytest.approx(exact.predict(X), abs=CLOSE)


@pytest.mark.parametrize(("sigma", "alpha"), [(0.5, 0.1), (3.0, 1e-5)])
def test_single_precision_ends_at_the_same_predictions(rng, size, sigma, alpha):
    size("pcg single rows", 0)
    X, y = smooth(rng)
    pcg, exact = both(X, y, bandwidth=sigma, alpha=alpha)
    assert pcg.predict(X) == pytest.approx(exact.predict(X), abs=CLOSE)


@pytest.mark.parametrize("bandwidth", ["jacobian", 1.0])
def test_predictions_are_those_of_the_exact_solver(rng, bandwidth):
    X, y = smooth(rng)
    pcg, exact = both(X, y, bandwidth=bandwidth)
    assert pcg.predict(X) == pytest.approx(exact.predict(X), abs=CLOSE)
    assert pcg.solver_ == "pcg"


def test_the_residual_of_the_system_is_below_the_tolerance(rng):
    X, y = smooth(rng)
    est = JacobianKernelRidge(1.0, solver="pcg", n_landmarks=40, random_state=0).fit(X, y)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 2)
    left = y - est.intercept_ - (K + est.alpha_ * np.eye(len(X))) @ est.dual_coef_
    assert np.linalg.norm(left) < 1.1e-7 * np.linalg.norm(y - y.mean())


def test_weights_and_several_targets_are_those_of_the_exact_solver(rng):
    X, y = smooth(rng)
    Y, w = np.column_stack([y, X[:, 2] ** 2]), rng.integers(0, 3, len(X))
    pcg = JacobianKernelRidge(1.0, solver="pcg", n_landmarks=40, random_state=0)
    exact = JacobianKernelRidge(1.0, solver="exact")
    for est in (pcg, exact):
        est.fit(X, Y, sample_weight=w)
    assert pcg.predict(X) == pytest.approx(exact.predict(X), abs=CLOSE)
    assert pcg.jacobian(X) == pytest.approx(
        exact.jacobian(X), abs=10 * CLOSE
    )  # slopes, of steps of a tenth


def test_a_better_preconditioner_takes_fewer_iterations(rng):
    X, y = smooth(rng)
    few, many = (
        JacobianKernelRidge(2.0, solver="pcg", n_landmarks=m, random_state=0).fit(X, y)
        for m in (5, 100)
    )
    assert many._function().model.iterations < few._function().model.iterations


def test_an_iteration_that_does_not_converge_is_warned_of(rng, size):
    size("pcg iterations", 2)
    with pytest.warns(UserWarning, match="stopped after 2 iterations at a relative residual"):
        JacobianKernelRidge(1.0, solver="pcg", n_landmarks=5).fit(*smooth(rng))


def test_progress_is_logged(rng, caplog):
    with caplog.at_level(logging.INFO, logger="jacridge"):
        JacobianKernelRidge(1.0, solver="pcg", n_landmarks=40).fit(*smooth(rng))
    assert "relative residual" in caplog.text


def test_what_needs_a_factor_says_so(rng):
    est = JacobianKernelRidge(1.0, solver="pcg", n_landmarks=40).fit(*smooth(rng))
    with pytest.raises(AttributeError, match="solver='exact' or 'nystrom'"):
        est.predict(np.zeros((1, 3)), return_std=True)


@pytest.mark.parametrize("m", [0, 301])
def test_landmarks_must_be_from_one_to_all_rows(rng, m):
    with pytest.raises(ValueError, match=f"`n_landmarks` must be .* got {m}"):
        JacobianKernelRidge(1.0, solver="pcg", n_landmarks=m).fit(*smooth(rng))


def test_a_kernel_that_is_not_positive_definite_is_refused(rng):
    X = np.column_stack([rng.uniform(-90, 90, 200), rng.uniform(-180, 180, 200)])
    est = JacobianKernelRidge(8e6, metric="geodesic", solver="pcg", n_landmarks=10, random_state=0)
    with pytest.raises(np.linalg.LinAlgError, match="must be positive definite for solver='pcg'"):
        est.fit(X, rng.standard_normal(200))


@parametrize_with_checks([JacobianKernelRidge(solver="pcg")])
def test_scikit_learn_takes_it_for_an_estimator(estimator, check):
    check(estimator)


def test_a_column_of_targets_may_have_its_penalty_chosen(rng):
    X, Y = rng.uniform(size=(60, 2)), rng.standard_normal((60, 1))
    est = JacobianKernelRidge(0.3, "loo", solver="pcg").fit(X, Y)
    assert est.predict(X).shape == (60, 1)


def test_a_small_preconditioner_does_not_change_the_penalty_that_is_chosen(rng):
    X = rng.standard_normal((300, 3))
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(300)
    known = JacobianKernelRidge(1.5, "loo", solver="exact").fit(X, y)
    ours = JacobianKernelRidge(1.5, "loo", solver="pcg", n_landmarks=5).fit(X, y)
    assert ours.alpha_ == pytest.approx(known.alpha_, rel=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "`alpha` must be > 0"),
        ({"alpha": "loo"}, "one number for all targets"),
        ({"landmarks": np.zeros((2, 3))}, "`landmarks` must be a word"),
    ],
)
def test_what_it_cannot_do_is_refused_before_the_search(rng, options, message):
    def never(problem):
        raise AssertionError("searched")

    est = JacobianKernelRidge(never, solver="pcg", **options)
    with pytest.raises(ValueError, match=message):
        est.fit(rng.standard_normal((30, 3)), rng.standard_normal((30, 2)))


@pytest.mark.slow
@pytest.mark.parametrize("fit_intercept", [True, "free"])
def test_where_single_precision_wanders_double_takes_over(fit_intercept, rng):
    """Rounding in single precision is more than this penalty: it would go on for all iterations."""
    X, X_new = rng.standard_normal((2500, 2)), rng.standard_normal((50, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(2500) + 5
    options = {"alpha": 1e-5, "fit_intercept": fit_intercept, "random_state": 0}
    ours, exact = (
        JacobianKernelRidge(3.0, solver=solver, **options).fit(X, y) for solver in ("pcg", "exact")
    )
    assert ours._function().model.residual <= 1e-7
    np.testing.assert_allclose(ours.predict(X_new), exact.predict(X_new), atol=1e-5)
