"""Maps of features: a diagonal map as a vector, and the root of an average outer product."""

import tracemalloc

import numpy as np
import pytest
from scipy.linalg import sqrtm

from jacridge import AutoKernelRidge, JacobianKernelRidge
from jacridge._geometry.maps import FLOOR, FeatureMap, Warp, diagonal_of, sharpened


def diagonal_map(rng, warp=None):
    """A diagonal map of five features, of which the third is left out."""
    return FeatureMap(np.array([2.0, 0.5, 0.0, 1.0, 3.0]), warp, rng.standard_normal(5))


def test_a_diagonal_map_maps_as_its_matrix_does(rng):
    warp = Warp(rng.standard_normal(5), np.array([1.0, np.inf, np.inf, 2.0, np.inf]))
    diagonal, X, J = diagonal_map(rng, warp), rng.standard_normal((7, 5)), rng.random((7, 2, 4))
    full = FeatureMap(diagonal.matrix, diagonal.warp, diagonal.centre)
    assert full.T.shape == (5, 4)
    assert diagonal.q == full.q == 4

    np.testing.assert_allclose(diagonal(X), full(X))
    np.testing.assert_allclose(diagonal.pulled_back(J, X), full.pulled_back(J, X))
    np.testing.assert_allclose(diagonal.inverse(full(X)), full.inverse(full(X)))
    np.testing.assert_array_equal(diagonal_of(full.T), diagonal.T)


def test_only_the_matrix_of_a_diagonal_map_is_taken_for_one(rng):
    swapped = np.eye(3)[[1, 0, 2]]
    two_of_one = np.array([[1.0, 2.0], [0.0, 0.0]])
    for T in (swapped, two_of_one, rng.standard_normal((3, 3))):
        assert diagonal_of(T) is T


@pytest.mark.parametrize("gradients", [2, 30])
@pytest.mark.parametrize("kind", ["diagonal", "full"])
@pytest.mark.parametrize("before", ["a vector", "a matrix"])
def test_a_map_is_sharpened_by_the_root_of_the_average_outer_product(gradients, kind, before, rng):
    """With fewer gradients than features the root comes from their Gram matrix."""
    last = diagonal_map(rng)
    if before == "a matrix":
        last = FeatureMap(rng.standard_normal((5, 4)))
    B = rng.standard_normal((gradients, 4))
    M = np.diag(np.diag(B.T @ B)) if kind == "diagonal" else B.T @ B
    root = sqrtm(M + FLOOR * np.trace(M) / 4 * np.eye(4))
    expected = last.matrix @ root * 4 / np.trace(root)
    np.testing.assert_allclose(sharpened(last, B, kind).matrix, expected, atol=1e-12)


def test_a_map_stays_where_all_gradients_are_zero(rng):
    last = diagonal_map(rng)
    for kind in ("diagonal", "full"):
        assert sharpened(last, np.zeros((3, 4)), kind) is last


@pytest.mark.parametrize("metric", ["euclidean", "scaled", "diagonal"])
def test_many_features_take_no_matrix_of_their_square(metric, rng):
    """Such a matrix would take 18 MB, and a learned metric makes one map for each candidate."""
    n, p = 40, 1500
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    est = JacobianKernelRidge("auto", "auto", metric=metric, random_state=0)
    est.fit(X, y)  # imports what it needs
    tracemalloc.start()
    est.fit(X, y).predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * p**2
    assert est.metric_.shape == (p, p)


def test_auto_leaves_out_full_metrics_of_very_many_features(rng):
    X = rng.standard_normal((60, 1100))
    y = X[:, 0] + 0.1 * rng.standard_normal(60)
    est = AutoKernelRidge(random_state=0).fit(X, y)
    assert {row["kind"] for row in est.choices_} == {"plain", "diagonal"}
