"""Kernels of distances, all of them: their blocks, products and slopes against loops."""

import tracemalloc

import numpy as np
import pytest

import naive
from inside import KERNELS, METRICS, Pairs, space_of

PLACES = np.array([[48.9, 2.3], [43.3, 5.4], [45.8, 4.8], [50.6, 3.1], [43.6, 1.4], [48.6, 7.8]])
FEATURED = [
    (name, metric)
    for name, kernel in KERNELS.items()
    for metric in METRICS
    if metric != "precomputed" and (metric == "euclidean" or kernel.power == 2)
]
SPACES = [*FEATURED, *((name, "precomputed") for name in KERNELS)]


def lengths(X, Z, kernel, metric):
    """Distances by a loop, of the kind that a kernel takes."""
    if metric == "geodesic":
        return naive.geodesics(X, Z)
    if KERNELS[kernel].power == 1 and metric == "euclidean":
        return np.abs(X[:, None] - Z).sum(axis=2)
    return naive.distances(X, Z)


def known_kernel(D, sigma, kernel):
    """The kernel of an array of distances, entry by entry."""
    return np.vectorize(lambda d: float(naive.profile(kernel, d / sigma)))(D)


def bandwidth(metric):
    return 3e5 if metric == "geodesic" else 2.0


@pytest.mark.parametrize(("kernel", "metric"), SPACES)
def test_a_block_of_the_kernel_agrees_with_a_loop(kernel, metric):
    X, Z, sigma = PLACES[:2], PLACES[2:], bandwidth(metric)
    D = lengths(X, Z, kernel, metric)
    found = space_of(kernel, metric).block(D if metric == "precomputed" else X, Z, sigma)
    # Vincenty's formula is good to a millimetre in a hundred kilometres.
    np.testing.assert_allclose(found, known_kernel(D, sigma, kernel), rtol=1e-7)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("targets", [(), (3,)])
def test_a_product_with_the_kernel_is_the_same_in_one_block_or_many(rng, size, kernel, targets):
    X, Z = rng.standard_normal((23, 2)), rng.standard_normal((9, 2))
    coef = rng.normal(size=(9, *targets))
    expected = known_kernel(lengths(X, Z, kernel, "euclidean"), 0.8, kernel) @ coef
    space = space_of(kernel, "euclidean")
    for entries in (1, 50, 1 << 20):
        size("block entries", entries)
        np.testing.assert_allclose(space.product(X, Z, coef, 0.8), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize(("kernel", "metric"), FEATURED)
def test_slopes_agree_with_finite_differences(rng, size, kernel, metric, targets):
    X, Z, coef = PLACES[:3] + 0.55, PLACES, rng.normal(size=(6, targets))
    sigma, space = bandwidth(metric), space_of(kernel, metric)
    expected = naive.slopes(lambda x: space.product(x, Z, coef, sigma), X, h=0.01)
    for entries in (1, 1 << 20):
        size("block entries", entries)
        found = space.slopes(X, Z, coef, sigma)
        assert found.shape == (3, targets, 2)
        # The difference itself is good to about eight digits with this step, to six near a kink.
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_has_no_slope_at_its_own_row(kernel):
    X = np.array([[0.3, -0.2]])
    assert not space_of(kernel, "euclidean").slopes(X, X, np.ones((1, 1)), 0.5).any()


def test_unknown_kernels_and_metrics_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"`kernel` must be one of 'gaussian'.*, got 'sinc'\."):
        space_of("sinc", "euclidean")
    with pytest.raises(ValueError, match=r"`metric` must be one of 'euclidean', .*, got 'cosine'"):
        space_of("gaussian", "cosine")


@pytest.mark.parametrize("kernel", [name for name, kernel in KERNELS.items() if kernel.power != 2])
def test_a_product_over_features_is_no_kernel_of_geodesics(kernel):
    with pytest.raises(ValueError, match="`kernel` must be a function of the distance"):
        space_of(kernel, "geodesic")


@pytest.mark.parametrize(("kernel", "metric"), SPACES)
@pytest.mark.parametrize("entries", [1, 40, 1 << 20])
def test_one_array_holds_gaps_above_and_any_kernel_below(rng, size, kernel, metric, entries):
    size("block entries", entries)
    X = PLACES[rng.integers(6, size=15)] + rng.uniform(-1, 1, (15, 2))
    D, space = lengths(X, X, kernel, metric), space_of(kernel, metric)
    pairs = Pairs(D if metric == "precomputed" else X, space)
    for share in (0.2, 1.0, 0.5):  # the kernel before it must leave no trace
        sigma = share * D.max()
        M, K = pairs.kernel(sigma), known_kernel(D, sigma, kernel)
        # Vincenty's formula is good to a millimetre in a hundred kilometres.
        np.testing.assert_allclose(np.tril(M), np.tril(K), rtol=1e-7)
        gaps = D ** KERNELS[kernel].power
        np.testing.assert_allclose(np.triu(M, 1), np.triu(gaps, 1), rtol=1e-7)


@pytest.mark.parametrize(("kernel", "metric"), SPACES)
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_single_precision_gives_the_kernel_at_any_scale(rng, kernel, metric, scale):
    """Squares of 1e30 overflow in single precision, those of 1e-30 vanish."""
    scale = 1.0 if metric == "geodesic" else scale
    X = scale * rng.uniform(1, 5, (15, 2))
    D = lengths(X, X, kernel, metric)
    pairs = space_of(kernel, metric).pairs(D if metric == "precomputed" else X, single=True)
    M = pairs.kernel(0.3 * D.max())
    assert M.dtype == np.float32
    # Seven digits, of gaps of some bandwidths.
    np.testing.assert_allclose(
        np.tril(M), np.tril(known_kernel(D, 0.3 * D.max(), kernel)), rtol=1e-4
    )
    assert pairs.clusters(1e-6 * D.max()) is not None
    assert pairs.clusters(D.max()) is None


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_wider_than_its_tiles_is_filled_everywhere(rng, kernel):
    X = rng.standard_normal((300, 2))
    M = Pairs(X, space_of(kernel, "euclidean")).kernel(0.7)
    j, i = np.sort(rng.integers(300, size=(2, 1000)), axis=0)  # of pairs below the diagonal
    D = np.linalg.norm(X[i] - X[j], ord=KERNELS[kernel].power, axis=1)
    np.testing.assert_allclose(M[i, j], known_kernel(D, 0.7, kernel), rtol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_twin_has_the_gaps_and_kernels_of_its_own(rng, kernel):
    """Threads that look at several bandwidths share the gaps."""
    X = rng.standard_normal((200, 2))
    pairs = Pairs(X, space_of(kernel, "euclidean"))
    before = pairs.kernel(0.7).copy()
    K = pairs.twin().kernel(0.3)
    assert (before == pairs.M).all()
    assert (np.tril(K) == np.tril(pairs.kernel(0.3))).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_a_factorisation_leaves_below_the_diagonal_does_no_harm(kernel):
    pairs = Pairs(np.linspace(0, 1, 10)[:, None], space_of(kernel, "euclidean"))
    pairs.kernel(0.1)[np.tril_indices(10)] = -1e300
    assert np.tril(pairs.kernel(1e-3)).sum() == pytest.approx(10, rel=1e-12)


@pytest.fixture
def apart(rng):
    """Pairs of rows and one row alone, all in any order; and which of them belong together."""
    place = rng.permutation(np.repeat(np.arange(15), 2)[:29])
    return place[:, None] + 1e-3 * rng.uniform(size=(29, 1)), place


@pytest.mark.parametrize("kernel", KERNELS)
def test_clusters_are_the_rows_that_see_each_other(apart, kernel):
    X, place = apart
    pairs = Pairs(X, space_of(kernel, "euclidean"))
    pairs.kernel(1.0)[np.tril_indices(29)] = -1e300  # a factor of before must leave no trace
    found = {tuple(rows) for rows in pairs.clusters(1e-3)}
    assert found == {tuple(np.flatnonzero(place == k)) for k in range(15)}
    alone = {tuple(rows) for rows in pairs.clusters(1e-9)}
    assert alone == {(i,) for i in range(29)}


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_that_holds_together_has_no_clusters(apart, kernel):
    pairs = Pairs(apart[0], space_of(kernel, "euclidean"))
    assert pairs.clusters(1.0) is None


def test_a_chain_of_near_rows_is_one_cluster_and_too_large_to_be_told_apart():
    X = np.append(np.arange(30) * 1e-3, 50.0 + np.arange(30))[:, None]
    assert Pairs(X, space_of("gaussian", "euclidean")).clusters(1e-3) is None


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_kernel_of_a_cluster_is_that_of_its_rows(apart, kernel):
    X, _ = apart
    pairs = Pairs(X, space_of(kernel, "euclidean"))
    pairs.kernel(1.0)[np.tril_indices(29)] = -1e300
    rows = np.array([3, 8, 20])
    D = naive.distances(X[rows], X[rows])
    expected = np.tril(known_kernel(D, 5.0, kernel))
    np.testing.assert_allclose(pairs.block(rows, 5.0), expected, rtol=1e-12)


def test_a_search_takes_one_matrix_of_memory(rng, size):
    size("block entries", 1 << 14)
    X = rng.standard_normal((1500, 3))
    tracemalloc.start()
    pairs = Pairs(X, space_of("gaussian", "euclidean"))
    for sigma in (0.1, 1.0):
        pairs.kernel(sigma)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Two threads hold a tile of 128 rows each.
    assert peak < 1.2 * 8 * 1500**2


def test_a_matrix_that_does_not_fit_is_not_begun(size):
    size("memory", 10**9)
    X = np.zeros((20_000, 1))
    words = r'=20000 needs 3.2 GB of memory, but only 1 GB is available. Use `solver="nystrom"`'
    with pytest.raises(MemoryError, match=words):
        Pairs(X, space_of("gaussian", "euclidean"))
