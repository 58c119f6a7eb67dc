"""One kernel under the names of other packages, each checked with that package's formula."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import rbf_kernel

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
