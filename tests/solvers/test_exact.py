"""The exact solver as a user sees it: against explicit inverses and actual refits."""

import numpy as np
import pytest

import naive
from jacridge import JacobianKernelRidge

KINDS = {"none": False, "mean": True, "free": "free"}


@pytest.fixture
def system(rng):
    """Rows, two targets, weights, and A = K + 0.1 / w at sigma = 0.3."""
    X, w = rng.uniform(size=(30, 2)), rng.uniform(0.5, 3, 30)
    K = naive.kernel(naive.distances(X, X), 0.3)
    return X, rng.standard_normal((30, 2)) + 5, w, K + np.diag(0.1 / w)


def solved(A, y, w, kind):
    """Dual coefficients and intercepts, by an inverse."""
    if kind == "free":
        return naive.with_intercept(A, y)
    b = np.average(y, axis=0, weights=w) if kind == "mean" else np.zeros(y.shape[1])
    return np.linalg.inv(A) @ (y - b), b


def fitted(kind, lam=0.1):
    return JacobianKernelRidge(0.3, lam, fit_intercept=KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_coefficients_are_those_of_the_inverse(system, kind):
    X, y, w, A = system
    est = fitted(kind).fit(X, y, w)
    dual_coef, b = solved(A, y, w, kind)
    np.testing.assert_allclose(est.dual_coef_, dual_coef, rtol=1e-8)
    np.testing.assert_allclose(est.intercept_, b, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_deviations_are_those_of_the_inverse_at_the_best_scale_of_the_kernel(system, rng, kind):
    X, y, w, A = system
    X_new = rng.uniform(-1, 2, size=(6, 2))
    k = naive.kernel(naive.distances(X_new, X), 0.3)
    dual_coef, b = solved(A, y, w, kind)
    scale = [(y[:, t] - b[t]) @ dual_coef[:, t] / 30 for t in range(2)]
    inverse = np.linalg.inv(A)
    left = 1 - np.diagonal(k @ inverse @ k.T)
    if kind == "free":  # the variance of the intercept, as in ordinary kriging
        u = inverse.sum(axis=1)
        left = left + (1 - k @ u) ** 2 / u.sum()
    _, std = fitted(kind).fit(X, y, w).predict(X_new, return_std=True)
    np.testing.assert_allclose(std, np.sqrt(np.outer(left, scale)), rtol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_degrees_of_freedom_are_the_trace_of_what_takes_y_to_the_fit(system, kind):
    """One column of it for each row: the fit of a target that is one there, zero elsewhere."""
    X, y, w, A = system
    dual_coef, b = solved(A, np.eye(30), w, "none" if kind == "mean" else kind)
    H = (A - np.diag(0.1 / w)) @ dual_coef + b
    found = fitted(kind).fit(X, y, w).diagnose().dict()["degrees of freedom"]["value"]
    assert found == pytest.approx(np.trace(H), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_targets_with_penalties_of_their_own_are_solved_each_by_itself(system, rng, kind):
    X, y, w, _ = system
    y[:, 1] = np.sin(4 * X[:, 0]) + 0.01 * y[:, 1]  # with less noise, and so another penalty
    X_new = rng.uniform(size=(5, 2))
    together = fitted(kind, "loo").fit(X, y, w)
    assert together.alpha_.shape == (2,)
    assert together.alpha_[0] > 2 * together.alpha_[1]
    for t, lam in enumerate(together.alpha_):
        alone = fitted(kind, lam).fit(X, y[:, t], w)
        for part in ("dual_coef_", "loo_residuals_"):
            found = getattr(together, part)[:, t]
            np.testing.assert_allclose(found, getattr(alone, part), rtol=1e-8, atol=1e-10)
        assert together.intercept_[t] == pytest.approx(alone.intercept_, rel=1e-9, abs=1e-12)
        for ask in (
            lambda est: est.predict(X_new, return_std=True),
            lambda est: est.predict_interval(X_new, coverage=0.8),
        ):
            for found, expected in zip(ask(together), ask(alone), strict=True):
                np.testing.assert_allclose(found[:, t], expected, rtol=1e-8)


@pytest.fixture
def repeated(rng):
    """Distinct rows, and rows of which many are equal, with weights, some of them zero."""
    X = rng.uniform(size=(14, 2))
    place = rng.integers(14, size=40)
    w = rng.integers(0, 3, 40) * rng.uniform(0.5, 1, 40)
    return X[place], rng.standard_normal((40, 2)) + 3, w, place


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_left_out_with_all_rows_equal_to_it(repeated, kind):
    """Against actual refits; rows of weight zero have their plain residuals."""
    X, y, w, place = repeated
    est = fitted(kind).fit(X, y, w)
    found, plain = est.loo_residuals_, y - est.predict(X)
    for i in range(40):
        rest = place != place[i]
        without = fitted(kind).fit(X[rest], y[rest], w[rest])
        expected = y[i] - without.predict(X[[i]])[0] if w[i] > 0 else plain[i]
        np.testing.assert_allclose(found[i], expected, rtol=1e-8, atol=1e-10)


def test_equal_rows_have_residuals_of_their_own_in_each_target(repeated, rng):
    """Also where targets have penalties of their own."""
    X, y, w, _ = repeated
    y[:, 1] = np.sin(4 * X[:, 0]) + 0.01 * y[:, 1]
    together = fitted("mean", "loo").fit(X, y, w)
    assert together.alpha_[0] != together.alpha_[1]
    for t, lam in enumerate(together.alpha_):
        alone = fitted("mean", lam).fit(X, y[:, t], w)
        np.testing.assert_allclose(
            together.loo_residuals_[:, t], alone.loo_residuals_, rtol=1e-8, atol=1e-10
        )


@pytest.mark.parametrize("kind", KINDS)
def test_equal_rows_are_one_row_of_their_total_weight_and_mean_target(repeated, kind):
    """The model is that of all rows, solved here one equation for each."""
    X, y, w, _ = repeated
    some = w > 0
    A = naive.kernel(naive.distances(X[some], X[some]), 0.3) + np.diag(0.1 / w[some])
    dual_coef, b = solved(A, y[some], w[some], kind)
    X_new = np.random.default_rng(1).uniform(size=(5, 2))
    expected = b + naive.kernel(naive.distances(X_new, X[some]), 0.3) @ dual_coef
    est = fitted(kind).fit(X, y, w)
    np.testing.assert_allclose(est.predict(X_new), expected, rtol=1e-9)
    assert len(est.X_fit_) == len(np.unique(X[some], axis=0))


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_weight_is_that_many_rows(system, rng, kind):
    X, y, _, _ = system
    w, X_new = rng.integers(1, 4, 30), rng.uniform(size=(5, 2))
    weighted = fitted(kind).fit(X, y, w)
    repeated = fitted(kind).fit(*(np.repeat(part, w, axis=0) for part in (X, y)))
    for ask in (
        lambda est: est.predict(X_new, return_std=True),
        lambda est: (est.dual_coef_, est.intercept_),
    ):
        for found, expected in zip(ask(weighted), ask(repeated), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(
        np.repeat(weighted.loo_residuals_, w, axis=0), repeated.loo_residuals_, rtol=1e-9
    )


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_leave_rows_out_with_all_rows_equal_to_them(repeated, rng, kind):
    """Ends against refits: the residual of each row of positive weight counts once."""
    X, y, w, place = repeated
    X_new, low, high = rng.uniform(size=(4, 2)), [], []
    for i in np.flatnonzero(w):
        rest = place != place[i]
        without = fitted(kind).fit(X[rest], y[rest], w[rest])
        size = np.abs(y[i] - without.predict(X[[i]])[0])
        low.append(without.predict(X_new) - size)
        high.append(without.predict(X_new) + size)
    n = len(low)
    rank = int(np.ceil(0.8 * (n + 1)))
    lower, upper = fitted(kind).fit(X, y, w).predict_interval(X_new, coverage=0.8, adaptive=False)
    np.testing.assert_allclose(upper, np.sort(high, axis=0)[rank - 1], rtol=1e-8)
    np.testing.assert_allclose(lower, np.sort(low, axis=0)[n - rank], rtol=1e-8)


@pytest.fixture
def impossible(rng):
    """Distances that no places have, so that their kernel has a negative eigenvalue."""
    D = np.array([[0.0, 0.1, 10.0], [0.1, 0.0, 0.1], [10.0, 0.1, 0.0]])
    return D, naive.kernel(D, 1.0), rng.standard_normal((3, 1))


def test_a_singular_system_gets_the_solution_of_smallest_norm(impossible):
    D, K, y = impossible
    d, U = np.linalg.eigh(K + 0.1 * np.eye(3))
    est = JacobianKernelRidge(1.0, 0.1, metric="precomputed", fit_intercept=False)
    words = rf"smallest eigenvalue {d[0]:.3g}\); .* larger `alpha`"
    with pytest.warns(UserWarning, match=words):
        est.fit(D, y)
    expected = U[:, 1:] @ np.diag(1 / d[1:]) @ U[:, 1:].T @ y
    np.testing.assert_allclose(est.dual_coef_, expected, rtol=1e-10)


def test_nearly_equal_rows_without_a_penalty_get_the_solution_of_smallest_norm(rng):
    X = np.repeat(rng.uniform(size=(8, 2)), 2, axis=0)
    X[1::2] += 1e-12
    K, y = naive.kernel(naive.distances(X, X), 0.3), rng.standard_normal((16, 1))
    with pytest.warns(UserWarning, match=r"smallest eigenvalue -?\d.*e-\d\d\); .* larger `alpha`"):
        est = JacobianKernelRidge(0.3, 0.0, fit_intercept=False).fit(X, y)
    # The kept eigenvalues go down to rounding: seven digits are left.
    expected = np.linalg.pinv(K, rcond=1e-12) @ y
    np.testing.assert_allclose(est.dual_coef_, expected, rtol=1e-7)


def test_leaving_out_one_of_two_nearly_equal_rows_leaves_the_other(rng):
    """At lambda = 0 the matrix is singular and the fit is the mean of both targets."""
    X, y = rng.uniform(size=(10, 2)), rng.standard_normal(10)
    est = JacobianKernelRidge(0.2, 0.0, fit_intercept=False)
    twins = np.vstack([X, X[:3] + 1e-13])
    with pytest.warns(UserWarning, match="smallest eigenvalue"):
        est.fit(twins, np.r_[y, y[:3] + 1])
    found = est.loo_residuals_
    # Eigenvectors of a matrix of condition about 1e5.
    assert found[[0, 1, 2, 10, 11, 12]] == pytest.approx([-1, -1, -1, 1, 1, 1], rel=1e-6)
    assert est.diagnose().dict()["degrees of freedom"]["value"] == pytest.approx(10)
    y_mean = np.r_[y[:3] + 0.5, y[3:]]
    left_out = [
        y[i] - est.fit(np.delete(X, i, 0), np.delete(y_mean, i)).predict(X[[i]])[0]
        for i in range(3, 10)
    ]
    assert found[3:10] == pytest.approx(left_out, rel=1e-6)


def test_equal_rows_without_a_penalty_are_no_singular_system(rng):
    """They are one row, and left out as one."""
    X, y = rng.uniform(size=(10, 2)), rng.standard_normal(10)
    est = JacobianKernelRidge(0.2, 0.0, fit_intercept=False)
    found = est.fit(np.vstack([X, X[:3]]), np.r_[y, y[:3] + 1]).loo_residuals_
    y_mean = np.r_[y[:3] + 0.5, y[3:]]
    without = [
        est.fit(np.delete(X, i, 0), np.delete(y_mean, i)).predict(X[[i]])[0] for i in range(3)
    ]
    # Each refit is good to a condition number of 1e5 less than double precision.
    np.testing.assert_allclose(found[:3], y[:3] - without, rtol=1e-8)
    np.testing.assert_allclose(found[10:], y[:3] + 1 - without, rtol=1e-8)
