"""Bandwidths in closed form: against their formulas in plain Python, and by their minima."""

import numpy as np
import pytest
from sklearn.svm import SVR

import naive
from jacridge._bandwidth import (
    jacobian_bandwidth,
    maxvar_bandwidth,
    median_bandwidth,
    scale_bandwidth,
    silverman_bandwidth,
)


@pytest.mark.parametrize("n", [3, 10, 1000])
@pytest.mark.parametrize("lam_per_n", [0, 1e-6, 0.1, 0.4])
def test_the_jacobian_bandwidth_is_a_local_minimum_of_the_norm(n, lam_per_n):
    """A minimum exists for lam / n < 2 exp(-3/2), about 0.446."""
    p, l_max, lam = 1, 2.0, lam_per_n * n
    sigma = jacobian_bandwidth(n, l_max / (n - 2), lam)
    here, *nearby = (
        naive.j_b(s, n, p, l_max, lam) / s for s in (sigma, 0.99 * sigma, 1.01 * sigma)
    )
    assert here < min(nearby)


@pytest.mark.parametrize(("n", "p"), [(3, 1), (100, 2), (6500, 27)])
def test_silvermans_bandwidth_is_its_formula(n, p):
    expected = 1.5 * (4 / (n * (p + 2))) ** (1 / (p + 4))
    assert silverman_bandwidth(n, p, 2.25) == pytest.approx(expected, rel=1e-14)


def test_the_scale_bandwidth_is_that_of_scikit_learns_svr(rng):
    X = rng.standard_normal((50, 3)) * [1, 2, 5]
    gamma = SVR(gamma="scale").fit(X, X[:, 0])._gamma
    assert scale_bandwidth(3, X.var()) == pytest.approx(np.sqrt(0.5 / gamma), rel=1e-14)


@pytest.mark.parametrize(("pairs", "middle"), [(3, 2.0), (4, 3.0)])
def test_the_median_bandwidth_is_the_middle_distance(pairs, middle):
    distances = np.array([5.0, 1.0, 2.0, 4.0])[:pairs]
    assert median_bandwidth(distances**2) == pytest.approx(middle, rel=1e-14)


@pytest.mark.parametrize("shape", ["normal", "two clusters", "one outlier", "equal rows"])
def test_the_kernel_varies_nowhere_more_than_at_the_maxvar_bandwidth(rng, shape):
    X = rng.standard_normal((40, 2))
    if shape == "two clusters":
        X[:10] += 1000
    if shape == "one outlier":
        X[0] = 1e6
    if shape == "equal rows":
        X = np.repeat(X[:10], 4, axis=0)
    D = naive.distances(X, X)
    found = maxvar_bandwidth(naive.pair_distances(D) ** 2)
    best = naive.maxvar(D, np.append(found, np.geomspace(0.01, 1e7, 1000)))
    # The variance is flat at its maximum: what beats it by rounding is close to it.
    assert found == pytest.approx(best, rel=1e-3)
