"""Criteria and their minima: against loops, likelihoods of scikit-learn, and known functions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import LinAlgError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import naive
from jacridge import _search
from jacridge._cholesky import factor
from jacridge._kernels import Pairs
from jacridge._search import (
    CRITERIA,
    Surface,
    best_lambdas,
    criterion_curve,
    downhill,
    minimise,
    minimise_near,
    surface,
    vertex,
)
from jacridge._spectrum import spectrum

SIGMAS = np.array([0.02, 0.1, 0.5, 3.0])
# A minimum is rounded to steps of 2e-3 in the logarithm.
TOLD = 1.01e-3


@pytest.fixture
def points(rng):
    """Rows, their distances, and a target."""
    X = rng.uniform(size=(12, 2))
    return X, naive.distances(X, X), rng.standard_normal(12)


@pytest.mark.parametrize("lam", [1e-3, 1.0])
@pytest.mark.parametrize("name", CRITERIA)
def test_criteria_agree_with_loops(points, name, lam):
    X, D, y = points
    found = criterion_curve(name, Pairs(X), y[:, None], lam, SIGMAS)
    expected = [naive.CRITERIA[name](naive.kernel(D, sigma), y, lam) for sigma in SIGMAS]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_the_likelihood_is_right_where_the_determinant_underflows():
    """With the published formula, log(det(A)), it is minus infinity here."""
    X, y = np.linspace(0, 1, 40)[:, None], np.sin(np.arange(40.0))
    K = naive.kernel(naive.distances(X, X), 0.5)
    assert np.linalg.det(K + 1e-10 * np.eye(40)) == 0
    found = criterion_curve("mml", Pairs(X), y[:, None], 1e-10, np.array([0.5]))[0]
    # With a condition number of 1e11 five digits are left of the quadratic form.
    assert found == pytest.approx(naive.exact_mml(K, y, 1e-10), rel=1e-5)


def test_the_profiled_likelihood_is_scikit_learns_at_the_best_signal_variance(points):
    X, D, y = points
    A = naive.kernel(D, 0.3) + 0.01 * np.eye(12)
    s2 = y @ np.linalg.inv(A) @ y / 12
    process = GaussianProcessRegressor(
        ConstantKernel(s2) * RBF(0.3), alpha=0.01 * s2, optimizer=None
    ).fit(X, y)
    expected = -2 * process.log_marginal_likelihood() - 12 * np.log(2 * np.pi) - 12
    found = criterion_curve("mml", Pairs(X), y[:, None], 0.01, np.array([0.3]))[0]
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", CRITERIA)
def test_a_row_of_weight_two_is_two_rows(points, rng, name):
    X, D, y = points
    w = rng.integers(1, 4, 12)
    found = criterion_curve(name, Pairs(X), y[:, None], 0.1, SIGMAS, w.astype(float))
    i = np.repeat(np.arange(12), w)
    expected = [naive.CRITERIA[name](naive.kernel(D, s)[np.ix_(i, i)], y[i], 0.1) for s in SIGMAS]
    # The determinant is that of the rows once each: a constant.
    constant = np.log(w).sum() if name == "mml" else 0.0
    np.testing.assert_allclose(found, np.array(expected) - constant, rtol=1e-8)


@pytest.mark.parametrize("name", CRITERIA)
def test_both_ways_to_a_criterion_agree_for_weights_of_any_size(points, rng, name):
    """By a Cholesky factor and by eigenvalues; each is checked against loops elsewhere."""
    _, D, y = points
    w = rng.uniform(0.1, 4, 12)
    K = naive.kernel(D, 0.3)
    by_factor = CRITERIA[name](factor(K.copy(), 0.1 / w), y[:, None], w, 0.1)
    by_eigenvalues = getattr(spectrum(K, y[:, None], w), name)(np.array([0.1]))[0]
    np.testing.assert_allclose(by_factor, by_eigenvalues, rtol=1e-9)


@pytest.mark.parametrize("name", ["loo", "gcv"])
def test_targets_of_different_scale_count_alike(points, rng, name):
    X, D, y = points
    Y = np.column_stack([y, 1000 * rng.standard_normal(12)])
    found = criterion_curve(name, Pairs(X), Y, 0.1, SIGMAS)
    expected = [
        np.mean([naive.CRITERIA[name](naive.kernel(D, s), t, 0.1) / np.mean(t**2) for t in Y.T])
        for s in SIGMAS
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("name", CRITERIA)
def test_a_target_of_zeros_among_others_moves_no_minimum(points, name):
    X, _, y = points
    alone = criterion_curve(name, Pairs(X), y[:, None], 0.1, SIGMAS)
    beside = criterion_curve(name, Pairs(X), np.column_stack([y, 0 * y]), 0.1, SIGMAS)
    unit = 1.0 if name == "mml" else np.mean(y**2)
    np.testing.assert_allclose(2 * beside, alone / unit, rtol=1e-12)


def test_a_criterion_is_infinite_where_the_system_cannot_be_solved(points):
    X, _, y = points
    twice, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    assert criterion_curve("loo", Pairs(twice), y[:, None], 0.0, SIGMAS).tolist() == [np.inf] * 4


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("sigma", [1e-6, 1e-4, 2e-3])
def test_a_kernel_that_falls_apart_gives_the_same_criteria(rng, name, sigma, monkeypatch):
    """Pairs of rows and one alone, far from each other; the bandwidth joins them or not."""
    monkeypatch.setattr(_search, "FEW_ROWS", 0)
    X = np.repeat(rng.permutation(np.arange(12.0)), 2)[:21, None]
    X, y = X + 1e-3 * rng.uniform(size=(21, 1)), rng.standard_normal((21, 1))
    pairs = Pairs(X)
    pairs.kernel(1.0)[np.tril_indices(21)] = -1e300  # a factor of before must leave no trace
    assert pairs.clusters(sigma) is not None
    found = criterion_curve(name, pairs, y, 1e-3, np.array([sigma]))[0]
    K = naive.kernel(naive.distances(X, X), sigma)
    expected = naive.CRITERIA[name](K, y[:, 0], 1e-3)
    assert found == pytest.approx(expected, rel=1e-8)


def test_a_kernel_that_holds_together_has_no_clusters(points):
    assert Pairs(points[0]).clusters(1.0) is None


def two_valleys(sigma):
    """A wide valley at 0.1 and a deeper, narrow one at 20."""
    s = np.log(sigma)
    return float(-np.exp(-((s - np.log(0.1)) ** 2)) - 2 * np.exp(-8 * (s - np.log(20)) ** 2))


def test_the_deeper_of_two_valleys_is_found():
    # A minimum is told to 0.1 %, and this valley is no parabola.
    assert minimise(two_valleys, 1e-3, 100, points=15) == pytest.approx(20, rel=2e-3)


@given(st.floats(0.01, 50), st.integers(3, 20))
def test_a_single_valley_is_found_from_any_grid(bottom, points):
    found = minimise(lambda s: np.log(s / bottom) ** 2, 1e-3, 100, points)
    assert found == pytest.approx(bottom, rel=TOLD)


@pytest.mark.parametrize(("slope", "end"), [(1, 0.1), (-1, 10)])
def test_a_minimum_at_an_end_is_that_end(slope, end):
    assert minimise(lambda s: slope * np.log(s), 0.1, 10, 7) == pytest.approx(end, rel=1e-15)


def test_points_that_cannot_be_solved_are_passed_over():
    found = minimise(lambda s: np.log(s / 2) ** 2 if s < 3 else np.inf, 0.1, 100, 12)
    assert found == pytest.approx(2, rel=TOLD)


def test_a_search_where_nothing_can_be_solved_says_so():
    with pytest.raises(LinAlgError, match=r"any bandwidth from 0.1 to 10. Give a larger `alpha`"):
        minimise(lambda s: np.inf, 0.1, 10, 5)


@pytest.mark.parametrize("start", [0.02, 0.1, 0.7])
def test_a_search_from_a_start_goes_down_its_own_valley(start):
    assert minimise_near(two_valleys, start) == pytest.approx(0.1, rel=1e-2)


def test_rounding_in_a_criterion_does_not_move_its_minimum(rng):
    def rounded(sigma):
        return np.cosh(np.log(sigma / 3)) * (1 + 1e-9 * rng.uniform())

    assert len({minimise(rounded, 0.1, 100, 15) for _ in range(5)}) == 1


def test_a_search_from_where_nothing_can_be_solved_goes_to_smaller_bandwidths():
    def solvable_below_one(sigma):
        return np.log(sigma / 0.2) ** 2 if sigma < 1 else np.inf

    assert minimise_near(solvable_below_one, 30.0) == pytest.approx(0.2, rel=TOLD)
    with pytest.raises(LinAlgError, match=r"any bandwidth from .* to 30\. Give a larger"):
        minimise_near(lambda s: np.inf, 30.0)


def test_a_search_downhill_without_a_bottom_ends():
    assert minimise_near(lambda s: -np.log(s), 1.0) > 10


def test_downhill_walks_and_ends_at_the_vertex():
    found = downhill(lambda x: (np.log(x) - 1.7) ** 2, x=1.0, step=0.9, value=1.7**2)
    assert found == pytest.approx(np.exp(1.7), rel=TOLD)


def test_downhill_stops_at_a_wall():
    found = downhill(lambda x: np.inf if x > 2 else -x, x=1.9, step=0.5, value=-1.9)
    assert found == 1.9


@given(st.floats(-1.9, 1.9), st.floats(0.1, 10))
def test_the_vertex_of_a_parabola_in_the_logarithm_is_told_to_a_digit(middle, height):
    grid = np.exp([-4.0, -2.0, -1.0, 1.0, 2.0, 4.0])
    values = height * (np.log(grid) - middle) ** 2
    found = vertex(grid, values, int(np.argmin(values)))
    assert np.log(found) == pytest.approx(middle, abs=TOLD)


@pytest.mark.parametrize(
    ("values", "i"), [([1, 2, 3], 0), ([3, 2, 1], 2), ([np.inf, 1, 2], 1), ([1, 1, 1], 1)]
)
def test_where_there_is_no_parabola_the_grid_point_stays(values, i):
    grid = np.array([1.0, 10.0, 100.0])
    assert vertex(grid, np.array(values, dtype=float), i) == grid[i]


def test_each_target_gets_its_own_penalty():
    lams = np.logspace(-3, 3, 13)
    values = np.column_stack([(np.log(lams) - m) ** 2 for m in (-3.0, 2.0)])
    np.testing.assert_allclose(best_lambdas(lams, values), np.exp([-3, 2]), rtol=TOLD)


def test_rounding_in_a_criterion_does_not_move_what_is_chosen():
    lams = np.array([0.012345, 0.12345, 1.2345, 12.345])
    values = np.column_stack([[0.0, 1, 2, 3], [3.0, 1, 0.5, 3]])
    found = best_lambdas(lams, values)
    assert found[0] == 0.012345
    assert found[1] not in lams
    for noise in (1e-8, -1e-8):
        moved = values * (1 + noise * np.arange(4)[:, None])
        np.testing.assert_array_equal(best_lambdas(lams, moved), found)


def test_a_surface_is_lowest_at_one_bandwidth_and_the_penalties_there():
    sigmas, lams = np.geomspace(0.1, 10, 9), np.logspace(-3, 3, 13)
    s, v = np.log(sigmas)[:, None, None], np.log(lams)[None, :, None]
    values = (s - 1.0) ** 2 + (v - np.array([-3.0, 2.0])) ** 2
    sigma, found = Surface(sigmas, lams, values).best()
    assert sigma == pytest.approx(np.e, rel=0.05)  # the penalties move it between grid points
    np.testing.assert_allclose(found, np.exp([-3, 2]), rtol=TOLD)


@pytest.mark.parametrize("name", CRITERIA)
def test_a_surface_agrees_with_loops(points, rng, name):
    _, D, y = points
    Y = np.column_stack([y, 100 * rng.standard_normal(12)])
    lams = np.array([1e-3, 1.0])
    scale = (Y**2).mean(axis=0)
    found = surface(lambda s: spectrum(naive.kernel(D, s), Y), scale, SIGMAS, lams, name)
    expected = [
        [[naive.CRITERIA[name](naive.kernel(D, s), t, lam) for t in Y.T] for lam in lams]
        for s in SIGMAS
    ]
    weight = 1.0 if name == "mml" else scale
    np.testing.assert_allclose(found.values, np.array(expected) / weight, rtol=1e-7)
