"""One eigendecomposition: against loops over rows, inverses and determinants."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import naive
from jacridge._solvers import spectrum as spectrum_module
from jacridge._solvers.spectrum import mean_shift, spectrum

LAMS = np.array([1e-3, 0.1, 5.0])
NAMES = ["loo", "gcv", "mml"]
# Each refit is good to a condition number of 1e4 less than double precision.
REFIT = 1e-8


@pytest.fixture
def system(rng):
    """Rows, their kernel at sigma = 0.4, and two targets with means of their own."""
    X = rng.uniform(size=(18, 2))
    K = naive.kernel(naive.distances(X, X), 0.4)
    return X, K, rng.standard_normal((18, 2)) + [2.0, -5.0]


@pytest.fixture(params=["ones", "whole", "any"])
def weights(request, rng):
    return {
        "ones": np.ones(18),
        "whole": rng.integers(1, 4, 18).astype(float),
        "any": rng.uniform(0.1, 4, 18),
    }[request.param]


def lower(K):
    """The kernel with what must not be looked at above its diagonal."""
    return np.tril(K) + np.triu(np.full(K.shape, 7.0), 1)


def centred(Y, w, moves):
    return Y - np.average(Y, axis=0, weights=w) if moves else Y


@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_criteria_of_all_penalties_and_targets_agree_with_loops(system, weights, name, moves):
    """A row is left out with all of its weight, and the mean of y moves with it."""
    _, K, Y = system
    found = spectrum(lower(K), centred(Y, weights, moves), weights, centred=moves)
    expected = [[naive.WEIGHTED[name](K, y, lam, weights, moves) for y in Y.T] for lam in LAMS]
    np.testing.assert_allclose(getattr(found, name)(LAMS), expected, rtol=REFIT)


@pytest.mark.parametrize("moves", [True, False])
def test_leave_one_out_residuals_are_those_of_actual_refits(system, weights, moves):
    _, K, Y = system
    S = spectrum(lower(K), centred(Y, weights, moves), weights, centred=moves)
    found = S.loo_residuals(LAMS)
    assert found.shape == (18, 3, 2)
    for i, lam in enumerate(LAMS):
        for t, y in enumerate(Y.T):
            expected = naive.refit_residuals(K, y, lam, weights, moves)
            np.testing.assert_allclose(found[:, i, t], expected, rtol=REFIT, atol=1e-9)


def test_coefficients_are_those_of_the_inverse(system, weights):
    _, K, Y = system
    found = spectrum(lower(K), Y, weights).dual_coef(LAMS)
    for i, lam in enumerate(LAMS):
        expected = np.linalg.inv(K + np.diag(lam / weights)) @ Y
        np.testing.assert_allclose(found[:, i], expected, rtol=1e-9, atol=1e-9)


def test_degrees_of_freedom_are_those_of_the_hat_matrix(system, weights):
    _, K, Y = system
    found = spectrum(lower(K), Y, weights).degrees_of_freedom(LAMS)
    for lam, freedom in zip(LAMS, found, strict=True):
        H = K @ np.linalg.inv(K + np.diag(lam / weights))
        assert freedom == pytest.approx(np.trace(H), rel=1e-10)


def test_the_mean_falls_by_its_shift_when_a_row_is_left_out(system, weights):
    Y = system[2]
    mean = np.average(Y, axis=0, weights=weights)
    for i, shift in enumerate(mean_shift(Y - mean, weights)):
        rest = np.arange(18) != i
        expected = mean - np.average(Y[rest], axis=0, weights=weights[rest])
        np.testing.assert_allclose(shift, expected, rtol=1e-10, atol=1e-14)


def test_the_only_row_takes_its_mean_with_it():
    assert mean_shift(np.zeros((1, 1)), np.ones(1)).tolist() == [[0.0]]
    S = spectrum(np.ones((1, 1)), np.zeros((1, 1)), np.ones(1))
    assert S.loo(LAMS).tolist() == [[0.0]] * 3


def test_one_block_of_rows_or_many_agree(system, rng, monkeypatch):
    _, K, Y = system
    w = rng.uniform(0.5, 3, 18)
    found = spectrum(K, centred(Y, w, True), w)
    whole = found.loo(LAMS)
    monkeypatch.setattr(spectrum_module, "ROWS", 5)
    np.testing.assert_allclose(found.loo(LAMS), whole, rtol=1e-12)


@pytest.mark.parametrize("moves", [True, False])
def test_without_a_penalty_leave_one_out_is_that_of_interpolation(rng, moves):
    X, w = np.arange(8.0)[:, None], np.ones(8)
    K, y = naive.kernel(naive.distances(X, X), 0.6), rng.standard_normal(8)
    S = spectrum(K, centred(y[:, None], w, moves), w, centred=moves)
    expected = naive.weighted_loo(K, y, 0.0, w, moves)
    assert S.loo(np.array([0.0]))[0, 0] == pytest.approx(expected, rel=REFIT)


@pytest.mark.parametrize("moves", [True, False])
def test_weights_in_another_unit_are_a_penalty_in_another_unit(system, weights, moves):
    _, K, Y = system
    Y = centred(Y, weights, moves)
    one, other = (spectrum(K, Y, c * weights, centred=moves) for c in (1.0, 7.0))
    for name in NAMES:
        found = getattr(other, name)(7.0 * LAMS)
        unit = 7.0 if name == "gcv" else 1.0  # its squares are not divided by the weights
        np.testing.assert_allclose(found, unit * getattr(one, name)(LAMS), rtol=1e-9)


def test_the_profiled_likelihood_is_scikit_learns_at_the_best_signal_variance(system):
    X, K, Y = system
    for lam, values in zip(LAMS, spectrum(K, Y, np.ones(18)).mml(LAMS), strict=True):
        for y, value in zip(Y.T, values, strict=True):
            s2 = y @ np.linalg.inv(K + lam * np.eye(18)) @ y / 18
            process = GaussianProcessRegressor(
                ConstantKernel(s2) * RBF(0.4), alpha=lam * s2, optimizer=None
            ).fit(X, y)
            expected = -2 * process.log_marginal_likelihood() - 18 * np.log(2 * np.pi) - 18
            assert value == pytest.approx(expected, rel=1e-9)


def test_a_target_of_zeros_is_infinitely_likely_in_silence(system):
    _, K, Y = system
    Y[:, 1] = 0
    assert (spectrum(K, Y, np.ones(18)).mml(LAMS)[:, 1] == -np.inf).all()


def test_negative_eigenvalues_are_taken_as_zero():
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    np.testing.assert_allclose(spectrum(K, np.ones((2, 1)), np.ones(2)).s, [0, 3], rtol=1e-14)


def test_the_kernel_stays_as_it_is(system, weights):
    _, K, Y = system
    before = K.copy()
    spectrum(K, Y, weights)
    assert (before == K).all()
