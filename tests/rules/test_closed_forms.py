"""Bandwidths in closed form: against their formulas in plain Python, and by their minima."""

import tracemalloc
from itertools import product

import mpmath
import numpy as np
import pytest
from sklearn.svm import SVR

import naive
from jacridge import JacobianKernelRidge, select_bandwidth

RULES = ["jacobian", "jacobian_median", "silverman", "scale", "median", "maxvar"]


def chosen(rule, X, w=None, alpha=1e-3):
    """The bandwidth of a fit with weights."""
    return JacobianKernelRidge(rule, alpha).fit(X, np.arange(float(len(X))), w).bandwidth_


@pytest.mark.parametrize("n", [3, 10, 1000])
@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("lam_per_n", [0, 1e-6, 0.1, 0.4])
def test_the_jacobian_bandwidth_is_a_local_minimum_of_the_norm(rng, n, p, lam_per_n):
    """A minimum exists for lam / n < 2 exp(-3/2), about 0.446."""
    lam, X = lam_per_n * n, rng.uniform(size=(n, p))
    l_max = naive.diameter(naive.distances(X, X)) if n < 1000 else select_bandwidth(X).l_max
    sigma = select_bandwidth(X, alpha=lam).sigma
    here, *nearby = (
        naive.j_b(s, n, p, l_max, lam) / s for s in (sigma, 0.99 * sigma, 1.01 * sigma)
    )
    assert here < min(nearby)
    assert sigma == pytest.approx(float(naive.sigma_k(0, n, p, l_max, lam)), rel=1e-10)


@pytest.mark.parametrize("lam_per_n", [2 * np.exp(-1.5), 0.5, 1e6])
def test_beyond_the_threshold_the_jacobian_bandwidth_is_that_at_the_threshold(rng, lam_per_n):
    X = rng.uniform(size=(20, 2))
    l_max = naive.diameter(naive.distances(X, X))
    expected = np.sqrt(2) / np.pi * l_max / (19**0.5 - 1) * np.sqrt(3)
    found = select_bandwidth(X, alpha=lam_per_n * 20).sigma
    # At the threshold itself the root has half of the digits.
    assert found == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("lam", [0, 0.1])
def test_the_jacobian_median_bandwidth_has_the_spacing_of_neighbours(rng, lam):
    X = rng.uniform(size=(30, 2))
    spacing = naive.neighbour_spacing(X)[0]
    # In one dimension the spacing of n rows is l_max / (n - 2).
    expected = naive.sigma_k(0, 30, 1, 28 * spacing, lam)
    found = select_bandwidth(X, rule="jacobian_median", alpha=lam)
    assert found.sigma == pytest.approx(float(expected), rel=1e-10)
    assert found.spacing == pytest.approx(spacing, rel=1e-12)


@pytest.mark.parametrize(
    ("rule", "kernel"),
    [
        *product(["jacobian", "jacobian_median"], ["matern52", "matern32"]),
        *product(["jacobian_lattice"], ["gaussian", "matern52", "matern32"]),
    ],
)
def test_the_rules_of_a_grid_are_at_the_minimum_of_its_norm_at_the_penalty(rng, rule, kernel):
    """A grid on a line, but for `jacobian_lattice`."""
    X, lam = rng.uniform(size=(40, 2)), 0.2
    found = select_bandwidth(X, rule=rule, alpha=lam, kernel=kernel)
    p = 2 if rule == "jacobian_lattice" else 1

    def norm(sigma):
        eigenvalue = naive.corner_sum(kernel, mpmath.mpf(sigma / found.spacing), p)
        return 1 / (sigma * (eigenvalue + lam))

    here, *nearby = (norm(found.sigma * a) for a in (1, 0.999, 1.001))
    assert here < min(nearby)


@pytest.mark.parametrize(("n", "p"), [(3, 1), (100, 2), (650, 27)])
def test_silvermans_bandwidth_is_its_formula(rng, n, p):
    X = 1.5 * rng.standard_normal((n, p)) + 4
    expected = X.std() * (4 / (n * (p + 2))) ** (1 / (p + 4))
    assert select_bandwidth(X, rule="silverman").sigma == pytest.approx(expected, rel=1e-12)


def test_the_scale_bandwidth_is_that_of_scikit_learns_svr(rng):
    X = rng.standard_normal((50, 3)) * [1, 2, 5]
    gamma = SVR(gamma="scale").fit(X, X[:, 0])._gamma
    assert select_bandwidth(X, rule="scale").gamma == pytest.approx(gamma, rel=1e-12)


@pytest.mark.parametrize(
    ("positions", "middle"),
    [
        ([0.0, 1.0, 3.0], 2.0),  # distances 1, 2, 3
        ([0.0, 1.0, 3.0, 8.0], 4.0),  # 1, 2, 3, 5, 7, 8: between the middle two
    ],
)
def test_the_median_bandwidth_is_the_middle_distance(positions, middle):
    """Not the root of the middle squared distance, where there are two in the middle."""
    X = np.array(positions)[:, None]
    assert select_bandwidth(X, rule="median").sigma == pytest.approx(middle, rel=1e-14)


@pytest.mark.parametrize("w", [[2, 1, 1], [1, 1, 2], [2, 2, 1], [1, 3, 3], [3, 1, 1]])
def test_the_median_bandwidth_of_rows_with_weights_is_that_of_repeated_rows(w):
    """Weights 2, 1, 1 make distances 0, 1, 1, 2, 3, 3: the middle lies between two of them."""
    X = np.array([[0.0], [1.0], [3.0]])
    repeated = np.repeat(X, w, axis=0)
    expected = np.median(naive.pair_distances(naive.distances(repeated, repeated)))
    assert chosen("median", X, w) == pytest.approx(expected, rel=1e-12)
    assert chosen("median", repeated) == pytest.approx(expected, rel=1e-12)


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
    found = select_bandwidth(X, np.arange(40.0), "maxvar").sigma
    best = naive.maxvar(D, np.append(found, np.geomspace(0.01, 1e7, 1000)))
    # The variance is flat at its maximum: what beats it by rounding is close to it.
    assert found == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
@pytest.mark.parametrize("rule", ["median", "maxvar"])
def test_memory_for_a_sample_of_pairs_does_not_grow_with_the_features(rng, size, rule, kernel):
    size("pairs", 300_000)
    peaks = []
    for p in (1, 100):
        X = rng.standard_normal((800, p))
        tracemalloc.start()
        select_bandwidth(X, rule=rule, kernel=kernel, random_state=0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Differences of all pairs at once are 240 MB, those of a block are 8 MB.
    assert peaks[1] < peaks[0] + 30e6


@pytest.mark.parametrize("rule", RULES)
def test_a_row_of_weight_two_is_two_rows_for_every_closed_form(rng, rule):
    X, w = rng.standard_normal((20, 2)), rng.permutation([1] * 15 + [2, 2, 2, 3, 3])
    expected = chosen(rule, np.repeat(X, w, axis=0))
    # A bounded search for the largest variance stops at about eight digits.
    assert chosen(rule, X, w) == pytest.approx(expected, rel=1e-6 if rule == "maxvar" else 1e-10)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("scale", [1e-40, 3.0, 1e40])
def test_a_bandwidth_has_the_unit_of_the_rows(rng, rule, scale):
    X = rng.standard_normal((30, 2))
    one, other = (select_bandwidth(c * X, rule=rule).sigma for c in (1.0, scale))
    # A bounded search for the largest variance stops at about five digits.
    assert other == pytest.approx(scale * one, rel=1e-4 if rule == "maxvar" else 1e-10)
