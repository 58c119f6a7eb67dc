"""One kernel under the names of other packages, each checked with that package's formula."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVR

from jacridge import JacobianKernelRidge, select_bandwidth


@pytest.fixture
def chosen(table):
    return select_bandwidth(table[0])


@pytest.fixture
def K(table, chosen):
    """The kernel of the paper, equation (3)."""
    d2 = ((table[0][:, None] - table[0]) ** 2).sum(axis=2)
    return np.exp(-d2 / (2 * chosen.sigma**2))


def test_gamma_is_that_of_scikit_learn(table, chosen, K):
    np.testing.assert_allclose(rbf_kernel(table[0], gamma=chosen.gamma), K, atol=1e-12)


def test_gamma_makes_scikit_learns_kernel_ridge_the_same_model(table, chosen):
    X, y = table
    ours = JacobianKernelRidge(float(chosen), 0.1, fit_intercept=False).fit(X, y)
    theirs = KernelRidge(kernel="rbf", gamma=chosen.gamma, alpha=0.1).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-7)


def test_gamma_makes_svr_a_machine_of_this_kernel(table, chosen, K):
    X, y = table
    given = SVR(kernel="precomputed").fit(K, y).predict(K)
    np.testing.assert_allclose(SVR(gamma=chosen.gamma).fit(X, y).predict(X), given, rtol=1e-8)


@pytest.mark.parametrize(
    ("features", "error"),
    [
        (Nystroem(n_components=60), 1e-6),  # all rows, so exact but for rounding
        (RBFSampler(n_components=20_000, random_state=0), 0.05),  # an average over random waves
    ],
)
def test_gamma_makes_features_of_this_kernel(table, chosen, K, features, error):
    phi = features.set_params(gamma=chosen.gamma).fit_transform(table[0])
    np.testing.assert_allclose(phi @ phi.T, K, atol=error)


def test_the_length_scale_is_that_of_scikit_learns_rbf(table, chosen, K):
    np.testing.assert_allclose(RBF(chosen.as_length_scale())(table[0]), K, atol=1e-12)


def test_kernlabs_sigma_multiplies_the_squared_distance(table, chosen, K):
    d2 = ((table[0][:, None] - table[0]) ** 2).sum(axis=2)
    np.testing.assert_allclose(np.exp(-chosen.as_kernlab() * d2), K, atol=1e-12)


def test_krls_sigma_divides_the_squared_distance(table, chosen, K):
    d2 = ((table[0][:, None] - table[0]) ** 2).sum(axis=2)
    np.testing.assert_allclose(np.exp(-d2 / chosen.as_krls()), K, atol=1e-12)


def test_a_choice_is_a_bandwidth(curve):
    X, y = curve
    chosen = select_bandwidth(X)
    est = JacobianKernelRidge(bandwidth=float(chosen)).fit(X, y)
    assert est.bandwidth_ == chosen.sigma
