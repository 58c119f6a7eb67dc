"""The kernel and its gradient: against loops and finite differences."""

import tracemalloc

import numpy as np
import pytest

import naive
from jacridge import _checks, _distances
from jacridge._kernels import Pairs, gaussian_kernel, kernel_block, kernel_product, kernel_slopes

PLACES = np.array([[48.9, 2.3], [43.3, 5.4], [45.8, 4.8], [50.6, 3.1], [43.6, 1.4], [48.6, 7.8]])


def test_the_kernel_agrees_with_a_loop_and_leaves_the_distances_alone(rng):
    D = rng.uniform(0, 5, (6, 4))
    D2 = D**2
    np.testing.assert_allclose(gaussian_kernel(D2, 1.7), naive.kernel(D, 1.7), rtol=1e-14)
    assert (D2 == D**2).all()


@pytest.mark.parametrize("metric", ["euclidean", "geodesic", "precomputed"])
def test_a_block_of_the_kernel_agrees_with_a_loop(metric):
    X, Z = PLACES[:2], PLACES[2:]
    D = naive.geodesics(X, Z) if metric == "geodesic" else naive.distances(X, Z)
    sigma = 3e5 if metric == "geodesic" else 2.0
    found = kernel_block(D if metric == "precomputed" else X, Z, sigma, metric)
    # Vincenty's formula is good to a millimetre in a million.
    np.testing.assert_allclose(found, naive.kernel(D, sigma), rtol=1e-8)


@pytest.mark.parametrize("sigma", [1e-150, 1e150])
def test_the_kernel_of_the_smallest_and_largest_bandwidths_is_zero_or_one(sigma):
    D2 = np.array([[0.0, 1e300]])
    expected = [[1.0, 0.0]] if sigma < 1 else [[1.0, np.exp(-0.5)]]
    np.testing.assert_allclose(gaussian_kernel(D2, sigma), expected, rtol=1e-14)


@pytest.mark.parametrize("targets", [(), (3,)])
def test_a_product_with_the_kernel_is_the_same_in_one_block_or_many(rng, monkeypatch, targets):
    X, Z, coef = (
        rng.standard_normal((23, 2)),
        rng.standard_normal((9, 2)),
        rng.normal(size=(9, *targets)),
    )
    expected = naive.kernel(naive.distances(X, Z), 0.8) @ coef
    for entries in (1, 50, 1 << 20):
        monkeypatch.setattr(_distances, "BLOCK_ENTRIES", entries)
        np.testing.assert_allclose(kernel_product(X, Z, coef, 0.8), expected, rtol=1e-12)


@pytest.mark.parametrize("targets", [(), (3,)])
@pytest.mark.parametrize("metric", ["euclidean", "geodesic"])
def test_the_gradient_agrees_with_finite_differences(rng, monkeypatch, metric, targets):
    X, Z, coef = PLACES[:3] + 0.5, PLACES, rng.normal(size=(6, *targets))
    sigma = 3e5 if metric == "geodesic" else 2.0
    expected = naive.slopes(lambda x: kernel_product(x, Z, coef, sigma, metric), X, h=0.01)
    for entries in (1, 1 << 20):
        monkeypatch.setattr(_distances, "BLOCK_ENTRIES", entries)
        found = kernel_slopes(X, Z, coef, sigma, metric)
        # The difference itself is good to about eight digits with this step.
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def naive_distances(X, metric):
    return naive.geodesics(X, X) if metric == "geodesic" else naive.distances(X, X)


@pytest.mark.parametrize("metric", ["euclidean", "geodesic", "precomputed"])
@pytest.mark.parametrize("entries", [1, 40, 1 << 20])
def test_one_array_holds_distances_above_and_any_kernel_below(rng, monkeypatch, metric, entries):
    monkeypatch.setattr(_distances, "BLOCK_ENTRIES", entries)
    X = PLACES[rng.integers(6, size=15)] + rng.uniform(-1, 1, (15, 2))
    D = naive_distances(X, metric)
    pairs = Pairs(D if metric == "precomputed" else X, metric)
    for share in (0.2, 1.0, 0.5):  # the kernel before it must leave no trace
        sigma = share * D.max()
        M = pairs.kernel(sigma)
        # Vincenty's formula is good to a millimetre in a million.
        np.testing.assert_allclose(np.tril(M), np.tril(naive.kernel(D, sigma)), rtol=1e-8)
        np.testing.assert_allclose(np.triu(M, 1), np.triu(D**2, 1), rtol=1e-8)


def test_a_kernel_wider_than_its_tiles_is_filled_everywhere(rng):
    X = rng.standard_normal((300, 2))
    M = Pairs(X).kernel(0.7)
    expected = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / (2 * 0.7**2))
    np.testing.assert_allclose(np.tril(M), np.tril(expected), rtol=1e-12)


def test_what_a_factorisation_leaves_below_the_diagonal_does_no_harm():
    pairs = Pairs(np.linspace(0, 1, 10)[:, None])
    pairs.kernel(0.1)[np.tril_indices(10)] = -1e300
    assert np.tril(pairs.kernel(1e-3)).sum() == pytest.approx(10, rel=1e-12)


def test_a_search_takes_one_matrix_of_memory(rng, monkeypatch):
    monkeypatch.setattr(_distances, "BLOCK_ENTRIES", 1 << 14)
    X = rng.standard_normal((1500, 3))
    tracemalloc.start()
    pairs = Pairs(X)
    for sigma in (0.1, 1.0):
        pairs.kernel(sigma)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Two threads hold a tile of 128 rows each.
    assert peak < 1.2 * 8 * 1500**2


def test_a_matrix_that_does_not_fit_is_not_begun(monkeypatch):
    monkeypatch.setattr(_checks, "available_memory", lambda: 10**9)
    X = np.zeros((20_000, 1))
    words = r'n_samples=20000 needs 3.2 GB of memory, 1 GB are available. Use `solver="nystrom"`'
    with pytest.raises(MemoryError, match=words):
        Pairs(X)
