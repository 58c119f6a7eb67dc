"""One eigendecomposition: against loops over rows, inverses and determinants."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

import naive
from jacridge import _spectrum
from jacridge._search import CRITERIA
from jacridge._spectrum import spectrum

LAMS = np.array([1e-3, 0.1, 5.0])


@pytest.fixture
def system(rng):
    """Rows, their kernel at sigma = 0.4, and two targets."""
    X = rng.uniform(size=(18, 2))
    return X, naive.kernel(naive.distances(X, X), 0.4), rng.standard_normal((18, 2))


def lower(K):
    """The kernel with what must not be looked at above its diagonal."""
    return np.tril(K) + np.triu(np.full(K.shape, 7.0), 1)


@pytest.mark.parametrize("name", CRITERIA)
def test_criteria_of_all_penalties_and_targets_agree_with_loops(system, name):
    _, K, Y = system
    found = getattr(spectrum(lower(K), Y), name)(LAMS)
    expected = [[naive.CRITERIA[name](K, y, lam) for y in Y.T] for lam in LAMS]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("name", CRITERIA)
def test_a_row_of_weight_two_is_two_rows(system, rng, name):
    _, K, Y = system
    w = rng.integers(1, 4, 18)
    found = getattr(spectrum(lower(K), Y, w.astype(float)), name)(LAMS)
    i = np.repeat(np.arange(18), w)
    repeated = getattr(spectrum(K[np.ix_(i, i)], Y[i]), name)(LAMS)
    # The determinant is that of the rows once each: a constant.
    constant = np.log(w).sum() if name == "mml" else 0.0
    np.testing.assert_allclose(found, repeated - constant, rtol=1e-8)


def test_of_a_weight_below_one_the_whole_row_is_left_out(system, rng):
    _, K, Y = system
    w = rng.uniform(0.1, 1, 18)
    errors = np.empty_like(Y)
    for i in range(18):
        r = np.arange(18) != i
        A = K[np.ix_(r, r)] + np.diag(0.1 / w[r])
        errors[i] = Y[i] - K[i, r] @ np.linalg.solve(A, Y[r])
    found = spectrum(lower(K), Y, w).loo(np.array([0.1]))
    np.testing.assert_allclose(found[0], w @ errors**2 / w.sum(), rtol=1e-8)


def test_one_block_of_rows_or_many_agree(system, rng, monkeypatch):
    _, K, Y = system
    found = spectrum(K, Y, rng.uniform(0.5, 3, 18))
    whole = found.loo(LAMS)
    monkeypatch.setattr(_spectrum, "ROWS", 5)
    np.testing.assert_allclose(found.loo(LAMS), whole, rtol=1e-12)


def test_without_a_penalty_leave_one_out_is_that_of_interpolation(rng):
    X = np.arange(8.0)[:, None]
    K, y = naive.kernel(naive.distances(X, X), 0.6), rng.standard_normal(8)
    found = spectrum(K, y[:, None]).loo(np.array([0.0]))[0, 0]
    assert found == pytest.approx(naive.loo(K, y, 0.0), rel=1e-8)


def test_a_repeated_row_is_known_without_a_penalty(rng):
    """One of the two is left out, and the other one holds the fit."""
    K, Y = np.eye(3), rng.standard_normal((3, 1))
    w = np.array([1.0, 2.0, 2.0])
    assert spectrum(K, Y, w).loo(np.array([0.0]))[0, 0] == pytest.approx(Y[0, 0] ** 2 / 5)


def test_the_likelihood_with_unit_variance_is_scikit_learns(system):
    X, K, Y = system
    for lam, values in zip(LAMS, spectrum(K, Y).mml(LAMS, profiled=False), strict=True):
        for y, value in zip(Y.T, values, strict=True):
            process = GaussianProcessRegressor(RBF(0.4), alpha=lam, optimizer=None).fit(X, y)
            expected = -2 * process.log_marginal_likelihood() - len(y) * np.log(2 * np.pi)
            assert value == pytest.approx(expected, rel=1e-9)


def test_degrees_of_freedom_and_leverage_are_those_of_the_hat_matrix(system, rng):
    _, K, Y = system
    w = rng.uniform(0.5, 3, 18)
    found = spectrum(lower(K), Y, w)
    for lam, freedom in zip(LAMS, found.degrees_of_freedom(LAMS), strict=True):
        H = K @ np.linalg.inv(K + np.diag(lam / w))
        assert freedom == pytest.approx(np.trace(H), rel=1e-10)
        np.testing.assert_allclose(found.leverage(lam), np.diagonal(H), rtol=1e-9)


def test_a_target_of_zeros_is_infinitely_likely_in_silence(system):
    _, K, Y = system
    Y[:, 1] = 0
    assert (spectrum(K, Y).mml(LAMS)[:, 1] == -np.inf).all()


def test_negative_eigenvalues_are_taken_as_zero():
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert spectrum(K, np.ones((2, 1))).s.tolist() == [0, 3]
