"""Criteria that never see y: against their formulas with explicit inverses."""

from copy import deepcopy

import mpmath
import numpy as np
import pytest

import naive
from inside import loo_without_y, ssmm, ssmm_line, validation_rows
from jacridge import JacobianKernelRidge, select_bandwidth
from known import KERNELS, WITHOUT_Y

LAMS = np.array([1e-3, 0.1, 1.0, 30.0])
every_kernel = pytest.mark.parametrize("name", KERNELS)


def matrix(name, X, Z, sigma):
    D = naive.distances(X, Z)
    if name == "laplacian":
        D = np.array([[np.abs(x - z).sum() for z in Z] for x in X])
    return np.array([[float(naive.profile(name, mpmath.mpf(d) / sigma)) for d in row] for row in D])


@every_kernel
def test_ssmm_is_its_formula(rng, name):
    X, X_val = rng.standard_normal((15, 2)), rng.standard_normal((9, 2))
    K, K_val = matrix(name, X, X, 0.6), matrix(name, X_val, X, 0.6)
    expected = []
    for lam in LAMS:
        S = K_val @ np.linalg.inv(K + lam * np.eye(15))
        expected.append(np.linalg.norm(S.T @ S / 9 - np.eye(15) / 15))
    found = ssmm(K, K_val, 15, LAMS)
    one_by_one = [ssmm(K, K_val, 15, LAMS[[i]])[0] for i in range(len(LAMS))]
    np.testing.assert_allclose(found, expected, rtol=1e-9)  # the inverse loses digits
    np.testing.assert_allclose(one_by_one, expected, rtol=1e-9)


@every_kernel
def test_leave_one_out_without_y_is_its_formula(rng, name):
    X = rng.standard_normal((15, 2))
    K = matrix(name, X, X, 0.6)
    expected = []
    for lam in LAMS:
        B = np.linalg.inv(K + lam * np.eye(15))
        expected.append(np.linalg.norm(B @ np.diag(np.diag(B) ** -2) @ B))
    found = loo_without_y(K, LAMS)
    one_by_one = [loo_without_y(K, LAMS[[i]])[0] for i in range(len(LAMS))]
    np.testing.assert_allclose(found, expected, rtol=1e-9)  # the inverse loses digits
    np.testing.assert_allclose(one_by_one, expected, rtol=1e-9)


def test_leave_one_out_without_y_bounds_the_residuals_of_actual_refits(rng):
    """For every y the sum of squares is at most the norm of the matrix times that of y."""
    X, y = rng.standard_normal((12, 2)), rng.standard_normal(12)
    K = matrix("matern32", X, X, 0.8)
    total = 12 * naive.loo(K, y, 0.1)
    assert total <= loo_without_y(K, np.array([0.1]))[0] * (y @ y)


def test_leave_one_out_without_y_is_least_where_the_kernel_is_diagonal(rng):
    """So it has no minimum of use: it is never below the root of n, its value for K = I."""
    K = matrix("gaussian", *2 * [rng.standard_normal((12, 2))], 0.8)
    assert (loo_without_y(K, LAMS) > np.sqrt(12)).all()
    np.testing.assert_allclose(loo_without_y(np.eye(12), LAMS), np.sqrt(12))
    np.testing.assert_allclose(loo_without_y(K, np.array([1e9])), np.sqrt(12))


def test_leave_one_out_without_y_is_close_to_its_least_value_for_a_constant_kernel():
    """B is I - 11' / n but for a factor, so that n - 1 eigenvalues are (n / (n - 1))^2."""
    found = loo_without_y(np.ones((150, 150)), np.array([1e-6]))
    np.testing.assert_allclose(found, np.sqrt(149) * (150 / 149) ** 2)
    # (1 + 1.5 / n) sqrt(n) up to terms of 1 / n^2.
    np.testing.assert_allclose(found, (1 + 1.5 / 150) * np.sqrt(150), rtol=1e-4)


def test_equal_rows_without_a_penalty_cannot_be_solved(rng):
    X = rng.standard_normal((8, 2))
    X[1] = X[0]
    X[2] = X[0]
    K, lams = matrix("gaussian", X, X, 1.0), np.array([0.0, 1.0])
    for found in (loo_without_y(K, lams), ssmm(K, K, 8, lams)):
        assert list(np.isfinite(found)) == [False, True]
    for found in (loo_without_y(K, lams[:1]), ssmm(K, K, 8, lams[:1])):
        assert list(found) == [np.inf]


def test_validation_rows_have_the_mean_and_the_covariance_of_the_rows(rng):
    """Also where a column is a sum of others. With 200,000 rows moments are good to 1 %."""
    X = rng.standard_normal((50, 2)) @ np.array([[2.0, 1.0], [0.0, 0.5]]) + [3.0, -4.0]
    X = np.column_stack([X, X.sum(axis=1)])
    w = np.where(X[:, 0] > 3, 4, 1)
    rows = np.repeat(X, w, axis=0)
    found = validation_rows(X, w, 200_000, rng)
    np.testing.assert_allclose(found.mean(axis=0), rows.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(np.cov(found.T), np.cov(rows.T, bias=True), atol=0.05)
    np.testing.assert_allclose(found[:, 0] + found[:, 1], found[:, 2], atol=1e-12)


def test_ssmm_is_at_its_minimum_over_bandwidths_and_penalties(rng):
    """Neighbours at 1.3 times and a third are worse, for new rows of the same distribution."""
    X = rng.standard_normal((120, 2))
    choice = select_bandwidth(X, rule="ssmm", alpha="auto", random_state=0)
    X_val = rng.multivariate_normal(X.mean(axis=0), np.cov(X.T, bias=True), 4000)

    def value(sigma, lam):
        K, K_val = (np.exp(-np.square(naive_gaps(A, X)) / (2 * sigma**2)) for A in (X, X_val))
        S = K_val @ np.linalg.inv(K + lam * np.eye(120))
        return np.linalg.norm(S.T @ S / 4000 - np.eye(120) / 120)

    here = value(choice.sigma, choice.alpha)
    nearby = [(1.5, 1.0), (1 / 1.5, 1.0), (1.0, 5.0), (1.0, 0.2)]
    assert here < min(value(choice.sigma * a, choice.alpha * b) for a, b in nearby)


def test_ssmm_of_weights_is_that_of_repeated_rows(rng):
    """But for what copies add to the norm whatever sigma is: (N - n) / N^2 in the square."""
    X, w, seen = rng.standard_normal((12, 2)), rng.integers(1, 5, 12), []
    JacobianKernelRidge(lambda data: seen.append(data) or 1.0).fit(X, X[:, 0], w)
    same_draw = deepcopy(seen[0].rng)
    found = ssmm_line(seen[0])(0.7, LAMS)

    X_val = validation_rows(X, w, 12, same_draw)
    rows, N = np.repeat(X, w, axis=0), w.sum()
    expected = []
    for lam in LAMS:
        K, K_val = matrix("gaussian", rows, rows, 0.7), matrix("gaussian", X_val, rows, 0.7)
        S = K_val @ np.linalg.inv(K + lam * np.eye(N))
        norm = np.linalg.norm(S.T @ S / 12 - np.eye(N) / N)
        expected.append(np.sqrt(norm**2 - (N - 12) / N**2))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def naive_gaps(A, X):
    return np.sqrt(sum(np.subtract.outer(a, x) ** 2 for a, x in zip(A.T, X.T, strict=True)))


@pytest.mark.parametrize("rule", WITHOUT_Y)
def test_a_penalty_that_is_given_stays_and_a_word_lets_the_rule_choose_it(rng, rule):
    X = rng.standard_normal((60, 2))
    assert select_bandwidth(X, rule=rule, alpha=0.02, random_state=0).alpha == 0.02
    some = [1e-4, 1e-2, 1.0]
    est = JacobianKernelRidge(rule, some, random_state=0).fit(X, X[:, 0])
    assert 1e-4 <= est.alpha_ <= 1.0
    words = [select_bandwidth(X, rule=rule, alpha=w, random_state=0) for w in ("loo", "gcv")]
    assert words[0].sigma == words[1].sigma
    assert words[0].alpha == words[1].alpha


@pytest.mark.parametrize("rule", WITHOUT_Y)
def test_rules_without_y_never_look_at_it(rng, rule):
    X = rng.standard_normal((60, 2))
    fits = [
        JacobianKernelRidge(rule, "auto", random_state=0).fit(X, y)
        for y in (X[:, 0], rng.standard_normal((60, 2)), np.ones(60))
    ]
    assert len({(est.bandwidth_, est.alpha_) for est in fits}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("rule", WITHOUT_Y)
def test_of_many_rows_a_sample_is_looked_at(rng, rule, size):
    """A bandwidth of the sample is carried to all rows; drawn anew it moves by less than half."""
    size("grid rows", 250)
    size("step rows", 500)
    X = rng.uniform(size=(800, 2))
    options = {"rule": rule, "alpha": 1e-3}
    sigmas = [select_bandwidth(X, random_state=seed, **options).sigma for seed in (0, 0, 1)]
    assert sigmas[0] == sigmas[1]
    assert 2 / 3 < sigmas[2] / sigmas[0] < 3 / 2


def test_a_bandwidth_of_a_sample_is_carried_to_all_rows(rng, size):
    """By the root of the law of the spacing in n: (m^(1/p) - 1) / (n^(1/p) - 1), m of n rows."""
    size("grid rows", 60)
    size("step rows", 120)
    X = rng.uniform(size=(4000, 2))

    def log_sigma(rows, seed):
        return np.log(select_bandwidth(rows, rule="ssmm", alpha=0.1, random_state=seed).sigma)

    found = [log_sigma(X, seed) - log_sigma(X[120 * seed :][:120], seed) for seed in range(6)]
    expected = 0.5 * np.log((119**0.5 - 1) / (3999**0.5 - 1))
    # Two samples' bandwidths differ by a tenth, so that six know 0.1 / sqrt(6) = 0.04.
    assert np.mean(found) == pytest.approx(expected, abs=0.12)


def test_ssmm_needs_features(rng):
    places = rng.uniform(-60, 60, size=(30, 2))
    with pytest.raises(ValueError, match='needs features, got metric="geodesic"'):
        select_bandwidth(places, rule="ssmm", metric="geodesic")
    assert select_bandwidth(places, rule="loo_without_y", metric="geodesic").sigma > 0
