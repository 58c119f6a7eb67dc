"""Diameter and neighbour distances: against all pairs, on data of every shape."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import pdist

import naive
from jacridge._geometry import diameter as diameter_module
from jacridge._geometry.diameter import (
    cityblock_diameter,
    embedding_dimension,
    euclidean_diameter,
    given_spacing,
    neighbour_spacing,
    trimmed_diameter,
)
from jacridge._geometry.geodesics import geodesic_diameter, geodesic_spacing

DIAMETERS = {"euclidean": euclidean_diameter, "cityblock": cityblock_diameter}


def sphere(rng, n, p):
    X = rng.standard_normal((n, p))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


SHAPES = {
    "normal": lambda rng, n, p: rng.standard_normal((n, p)),
    "cube": lambda rng, n, p: rng.uniform(size=(n, p)),
    "sphere": sphere,
    "two clusters": lambda rng, n, p: (
        rng.standard_normal((n, p)) + 100 * rng.integers(2, size=(n, 1))
    ),
    "outliers": lambda rng, n, p: rng.standard_cauchy((n, p)),
    "one outlier": lambda rng, n, p: rng.standard_normal((n, p)) + 1e9 * np.eye(n, 1, k=-1),
    "far away": lambda rng, n, p: rng.standard_normal((n, p)) + 1e8,
    "tiny": lambda rng, n, p: 1e-100 * rng.standard_normal((n, p)),
    "huge": lambda rng, n, p: 1e149 * rng.uniform(-1, 1, size=(n, p)),
    "unlike scales": lambda rng, n, p: rng.standard_normal((n, p)) * np.geomspace(1, 1e8, p),
    "integers": lambda rng, n, p: rng.integers(-2, 3, size=(n, p)).astype(float),
    "duplicates": lambda rng, n, p: np.repeat(rng.standard_normal((n // 4 + 1, p)), 4, axis=0),
    "a line": lambda rng, n, p: rng.standard_normal((n, 1)) * np.ones(p),
}


@pytest.mark.parametrize("p", [1, 2, 3, 15, 30])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", DIAMETERS)
def test_the_diameter_is_the_largest_distance_of_all_pairs(rng, name, shape, p):
    for n in (2, 3, 50, 800):
        X = SHAPES[shape](rng, n, p)
        assert DIAMETERS[name](X) == pytest.approx(pdist(X, name).max(), rel=1e-12), n


@given(
    X=arrays(float, st.tuples(st.integers(2, 20), st.integers(1, 4)), elements=st.floats(-10, 10))
)
def test_the_diameter_is_that_of_all_pairs_for_rows_of_any_kind(X):
    expected = naive.diameter(naive.distances(X, X))
    assert euclidean_diameter(X) == pytest.approx(expected, rel=1e-12)
    blocks = max(np.abs(x - z).sum() for x in X for z in X)
    assert cityblock_diameter(X) == pytest.approx(blocks, rel=1e-12)


@pytest.mark.parametrize("name", DIAMETERS)
@given(scale=st.floats(1e-90, 1e90), seed=st.integers(0, 99))
def test_the_diameter_scales_with_the_rows_and_ignores_their_order(name, scale, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 3))
    scaled = DIAMETERS[name](scale * X[rng.permutation(40)])
    assert scaled == pytest.approx(scale * DIAMETERS[name](X), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", DIAMETERS)
def test_single_rows_as_blocks_find_the_same_diameter(monkeypatch, name, seed):
    """All rows of a sphere are outermost: the search has to look at each."""
    X = sphere(np.random.default_rng(seed), 200, 3)
    monkeypatch.setattr(diameter_module, "rows_per_block", lambda width: 1)
    assert DIAMETERS[name](X) == pytest.approx(pdist(X, name).max(), rel=1e-12)


@pytest.mark.parametrize("name", DIAMETERS)
@pytest.mark.parametrize("blocks", [0, 100_000])
def test_blocks_of_few_products_and_of_many_find_the_same_diameter(rng, monkeypatch, name, blocks):
    X = rng.standard_normal((2000, 12))
    monkeypatch.setattr(diameter_module, "FEW_BLOCKS", blocks)
    assert DIAMETERS[name](X) == pytest.approx(pdist(X, name).max(), rel=1e-12)


@pytest.mark.parametrize("name", DIAMETERS)
@pytest.mark.parametrize("shift", [0, 5])
def test_the_longest_distance_may_leave_the_outermost_row_out(name, shift):
    """Two rows at 9 on one side, and two at 8, opposite to each other."""
    X = np.zeros((1000, 3))
    X[[100, 200]] = [[0, 9, 0], [0, 9, 0.1]]
    X[[300, 400]] = [[8, 0, 0], [-8, 0, 0]]
    expected = pdist(X[[0, 100, 200, 300, 400]], name).max()
    assert DIAMETERS[name](X + shift) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("name", DIAMETERS)
def test_equal_rows_have_no_diameter(name, n):
    assert DIAMETERS[name](np.full((n, 3), 0.1)) == 0


@pytest.mark.parametrize("shape", ["normal", "sphere", "one outlier"])
@pytest.mark.parametrize("name", DIAMETERS)
def test_the_diameter_takes_memory_for_rows_not_for_pairs(rng, name, shape):
    X = SHAPES[shape](rng, 6000, 4)
    tracemalloc.start()
    DIAMETERS[name](X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A few copies of X and one block of distances; all pairs would take 288 MB.
    assert peak < 6 * X.nbytes + 3 * 8 * diameter_module.rows_per_block(6000) * 6000


def test_equal_rows_are_compared_once(rng, monkeypatch):
    """A million rows of few kinds would take as long as a million rows on a sphere."""
    X = (rng.random((20_000, 5)) < 0.1).astype(float)
    seen, all_pairs = [], diameter_module.cdist

    def counted(A, B, metric):
        seen.append(len(A) * len(B))
        return all_pairs(A, B, metric)

    monkeypatch.setattr(diameter_module, "cdist", counted)
    distinct = np.unique(X, axis=0)
    assert cityblock_diameter(X) == pytest.approx(pdist(distinct, "cityblock").max(), rel=1e-12)
    assert sum(seen) <= 20_000 + 2**10  # the outermost row with all, then the distinct ones
    assert euclidean_diameter(X) == pytest.approx(pdist(distinct).max(), rel=1e-12)


@pytest.mark.parametrize("share", [0, 0.1, 0.5])
@pytest.mark.parametrize("p", [1, 3])
def test_the_trimmed_diameter_leaves_out_the_rows_farthest_from_the_median(rng, share, p):
    X = rng.standard_cauchy((60, p))
    far = [np.linalg.norm(x - np.median(X, axis=0)) for x in X]
    kept = [x for _, x in sorted(zip(far, X.tolist(), strict=True))][: 60 - round(share * 60)]
    expected = pdist(np.array(kept)).max()
    assert trimmed_diameter(X, share) == pytest.approx(expected, rel=1e-12)


def test_the_largest_geodesic_is_that_of_all_pairs(rng):
    X = np.column_stack([rng.uniform(40, 52, 15), rng.uniform(-5, 9, 15)])
    expected = naive.diameter(naive.geodesics(X, X))
    # Vincenty's formula is good to a millimetre.
    assert geodesic_diameter(X) == pytest.approx(expected, abs=1e-3)


def test_one_block_of_geodesics_or_many_agree(rng, monkeypatch):
    X = np.column_stack([rng.uniform(-90, 90, 20), rng.uniform(-180, 180, 20)])
    whole = geodesic_diameter(X), geodesic_spacing(X)
    monkeypatch.setattr(diameter_module, "rows_per_block", lambda width: 3)
    assert (geodesic_diameter(X), geodesic_spacing(X)) == whole


def cityblock(x, z):
    return np.abs(x - z).sum()


@pytest.mark.parametrize("p", [1, 2, 15, 30])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_spacing_is_the_median_distance_of_nearest_neighbours(rng, shape, p):
    """Equal rows are merged before: the spacing is that of distinct rows."""
    X = np.unique(SHAPES[shape](rng, 60, p), axis=0)
    expected = naive.neighbour_spacing(X)[0]
    assert neighbour_spacing(X, "euclidean") == pytest.approx(expected, rel=1e-12)
    expected = naive.neighbour_spacing(X, cityblock)[0]
    assert neighbour_spacing(X, "manhattan") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_spacing_of_a_few_rows_is_that_of_all_pairs(rng, n):
    X = rng.standard_normal((n, 2))
    expected = naive.neighbour_spacing(X)[0]
    assert neighbour_spacing(X, "euclidean") == pytest.approx(expected, rel=1e-12)
    assert given_spacing(naive.distances(X, X)) == pytest.approx(expected, rel=1e-12)


def test_geodesic_neighbours_are_those_of_all_pairs(rng):
    X = np.column_stack([rng.uniform(40, 52, 11), rng.uniform(-5, 9, 11)])
    expected = naive.neighbour_spacing(X, naive.vincenty)[0]
    # Vincenty's formula is good to a millimetre.
    assert geodesic_spacing(X) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    "spacing", [geodesic_spacing, given_spacing, lambda X: neighbour_spacing(X, "euclidean")]
)
def test_one_row_has_no_neighbour(spacing):
    assert spacing(np.zeros((1, 1))) == 0


@pytest.mark.parametrize("p", [1, 2, 5])
def test_distances_span_as_many_dimensions_as_their_rows_have(rng, p):
    X = rng.standard_normal((120, p)) * np.linspace(1, 0.3, p)
    assert embedding_dimension(naive.distances(X, X)) == p


def test_columns_below_a_tenth_of_the_largest_one_are_no_dimension(rng):
    X = rng.standard_normal((60, 2)) * [1, 0.03]
    assert embedding_dimension(naive.distances(X, X)) == 1


def test_only_some_rows_of_a_large_matrix_are_looked_at_in_no_regular_order(rng):
    X = rng.standard_normal((60, 2))
    X[::3, 1] = 0  # every third row is on a line
    assert embedding_dimension(naive.distances(X, X), largest=20) == 2
    assert embedding_dimension(naive.distances(X, X), largest=2) == 1


def test_equal_rows_span_one_dimension():
    assert embedding_dimension(np.zeros((5, 5))) == 1


@pytest.mark.parametrize("offset", [0.0, 3e3, 1e4])
def test_rows_on_a_circle_anywhere_have_a_diameter(rng, offset):
    angle = rng.uniform(0, 2 * np.pi, 800)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) + offset
    assert euclidean_diameter(X) == pytest.approx(pdist(X).max(), rel=1e-12)
