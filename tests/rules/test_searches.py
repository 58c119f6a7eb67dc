"""Minima over bandwidth and penalty: of known functions, and of criteria by loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import LinAlgError

import naive
from inside import CRITERIA, LOO
from jacridge._rules.searches import (
    Surface,
    best_lambdas,
    best_of,
    downhill,
    minimise,
    minimise_near,
    vertex,
)
from jacridge._solvers.spectrum import spectrum


def two_valleys(sigma):
    """A wide valley at 0.1 and a deeper, narrow one at 20."""
    s = np.log(sigma)
    return float(-np.exp(-((s - np.log(0.1)) ** 2)) - 2 * np.exp(-8 * (s - np.log(20)) ** 2))


def test_the_deeper_of_two_valleys_is_found():
    # This valley is no parabola: the vertex of the last one lies a little beside its bottom.
    assert minimise(two_valleys, 1e-3, 100, points=15) == pytest.approx(20, rel=2e-3)


@given(st.floats(0.01, 50), st.integers(3, 20))
def test_a_single_valley_is_found_from_any_grid(bottom, points):
    found = minimise(lambda s: np.log(s / bottom) ** 2, 1e-3, 100, points)
    assert found == pytest.approx(bottom, rel=1e-9)


@pytest.mark.parametrize(("slope", "end"), [(1, 0.1), (-1, 10)])
def test_a_minimum_at_an_end_is_that_end(slope, end):
    assert minimise(lambda s: slope * np.log(s), 0.1, 10, 7) == pytest.approx(end, rel=1e-15)


def test_points_that_cannot_be_solved_are_passed_over():
    found = minimise(lambda s: np.log(s / 2) ** 2 if s < 3 else np.inf, 0.1, 100, 12)
    assert found == pytest.approx(2, rel=1e-9)


def test_a_search_where_nothing_can_be_solved_says_so():
    with pytest.raises(LinAlgError, match=r"every bandwidth from 0.1 to 10. Give a larger `alpha`"):
        minimise(lambda s: np.inf, 0.1, 10, 5)


@pytest.mark.parametrize("start", [0.02, 0.1, 0.7])
def test_a_search_from_a_start_goes_down_its_own_valley(start):
    # The valley is no parabola, and the search stops at steps of 1e-4.
    assert minimise_near(two_valleys, start) == pytest.approx(0.1, rel=1e-4)


def test_rounding_in_a_criterion_hardly_moves_its_minimum(rng):
    """The parabola spans steps that are wide against it; Brent's last steps would follow it."""

    def rounded(sigma):
        return np.cosh(np.log(sigma / 3)) * (1 + 1e-9 * rng.uniform())

    found = [minimise(rounded, 0.1, 100, 15) for _ in range(5)]
    # Rounding of 1e-9 over steps of 0.06: its square is 4e-3, and 1e-9 / 4e-3 is left.
    np.testing.assert_allclose(found, found[0], rtol=1e-6)


def test_a_search_from_where_nothing_can_be_solved_goes_to_smaller_bandwidths():
    def solvable_below_one(sigma):
        return np.log(sigma / 0.2) ** 2 if sigma < 1 else np.inf

    assert minimise_near(solvable_below_one, 30.0) == pytest.approx(0.2, rel=1e-9)
    with pytest.raises(LinAlgError, match=r"every bandwidth from .* to 30\. Give a larger"):
        minimise_near(lambda s: np.inf, 30.0)


def test_a_search_downhill_without_a_bottom_ends():
    assert minimise_near(lambda s: -np.log(s), 1.0) > 10


def test_downhill_walks_and_ends_at_the_vertex():
    found = downhill(lambda x: (np.log(x) - 1.7) ** 2, x=1.0, step=0.9, value=1.7**2)
    assert found == pytest.approx(np.exp(1.7), rel=1e-9)


def test_downhill_stops_at_a_wall():
    found = downhill(lambda x: np.inf if x > 2 else -x, x=1.9, step=0.5, value=-1.9)
    assert found == 1.9


@given(st.floats(-1.9, 1.9), st.floats(0.1, 10))
def test_the_vertex_of_a_parabola_in_the_logarithm_is_found(middle, height):
    grid = np.exp([-4.0, -2.0, -1.0, 1.0, 2.0, 4.0])
    values = height * (np.log(grid) - middle) ** 2
    found = vertex(grid, values, int(np.argmin(values)))
    assert np.log(found) == pytest.approx(middle, abs=1e-12)


@pytest.mark.parametrize(
    ("values", "i"), [([1, 2, 3], 0), ([3, 2, 1], 2), ([np.inf, 1, 2], 1), ([1, 1, 1], 1)]
)
def test_where_there_is_no_parabola_the_grid_point_stays(values, i):
    grid = np.array([1.0, 10.0, 100.0])
    assert vertex(grid, np.array(values, dtype=float), i) == grid[i]


def test_each_target_gets_its_own_penalty():
    lams = np.logspace(-3, 3, 13)
    values = np.column_stack([(np.log(lams) - m) ** 2 for m in (-3.0, 2.0)])
    np.testing.assert_allclose(best_lambdas(lams, values), np.exp([-3, 2]), rtol=1e-12)


def test_rounding_in_a_criterion_hardly_moves_what_is_chosen():
    lams = np.array([0.012345, 0.12345, 1.2345, 12.345])
    values = np.column_stack([[0.0, 1, 2, 3], [3.0, 1, 0.5, 3]])
    found = best_lambdas(lams, values)
    assert found[0] == 0.012345
    assert found[1] not in lams
    for noise in (1e-8, -1e-8):
        moved = values * (1 + noise * np.arange(4)[:, None])
        # A change of 1e-8 moves the vertex by about as much.
        np.testing.assert_allclose(best_lambdas(lams, moved), found, rtol=1e-7)


def test_a_surface_is_lowest_at_one_bandwidth_and_the_penalties_there():
    sigmas, lams = np.geomspace(0.1, 10, 9), np.logspace(-3, 3, 13)
    s, v = np.log(sigmas)[:, None, None], np.log(lams)[None, :, None]
    values = (s - 1.0) ** 2 + (v - np.array([-3.0, 2.0])) ** 2
    sigma, found = Surface(sigmas, lams, values).best()
    assert sigma == pytest.approx(np.e, rel=0.05)  # the penalties move it between grid points
    np.testing.assert_allclose(found, np.exp([-3, 2]), rtol=1e-12)


def test_the_best_of_a_grid_is_its_lowest_point_and_the_first_of_equals():
    assert best_of(lambda s: (s - 2.1) ** 2, np.array([1.0, 2.0, 3.0])) == 2.0
    assert best_of(lambda s: 0.0, np.array([3.0, 1.0, 2.0])) == 3.0
    with pytest.raises(LinAlgError, match=r"every bandwidth from 1 to 3. Give a larger `alpha`"):
        best_of(lambda s: np.inf, np.array([1.0, 3.0]))


def test_a_search_asks_for_no_point_twice():
    seen = []

    def counted(sigma):
        seen.append(round(np.log(sigma), 9))
        return np.log(sigma / 3) ** 2

    minimise_near(counted, 1.0)
    assert len(seen) == len(set(seen))


def test_a_surface_without_a_point_that_was_solved_says_so():
    with pytest.raises(LinAlgError, match=r"every bandwidth from 0.1 to 2\. Give a larger `alpha`"):
        Surface(np.array([0.1, 2.0]), np.ones(1), np.full((2, 1, 1), np.inf)).best()


@pytest.mark.parametrize("name", naive.CRITERIA)
def test_a_surface_agrees_with_loops(rng, name):
    """Targets of different scale count alike; the likelihood has no unit."""
    X, w = rng.uniform(size=(12, 2)), rng.uniform(0.5, 2, 12)
    D, Y = naive.distances(X, X), rng.standard_normal((12, 2)) * [1, 100]
    sigmas, lams, scale = np.array([0.02, 0.5, 3.0]), np.array([1e-3, 1.0]), (Y**2).mean(axis=0)
    found = CRITERIA[name].surface(
        lambda s: spectrum(naive.kernel(D, s), Y, w, centred=False), scale, sigmas, lams
    )
    criterion = naive.WEIGHTED[name]
    expected = [
        [[criterion(naive.kernel(D, s), t, lam, w, False) for t in Y.T] for lam in lams]
        for s in sigmas
    ]
    unit = 1.0 if name == "mml" else scale
    np.testing.assert_allclose(found.values, np.array(expected) / unit, rtol=1e-7)
    curve = np.min(np.array(expected) / unit, axis=1).mean(axis=1)
    np.testing.assert_allclose(found.curve(), curve, rtol=1e-7)


def test_what_cannot_be_solved_is_infinite_on_a_surface(rng):
    """Equal rows without a penalty: zero divided by zero."""
    X, y = np.zeros((4, 1)), rng.standard_normal((4, 1))
    found = LOO.surface(
        lambda s: spectrum(naive.kernel(naive.distances(X, X), s), y, np.ones(4)),
        (y**2).mean(axis=0),
        np.array([1.0]),
        np.array([0.0, 1.0]),
    )
    assert not np.isfinite(found.values[0, 0, 0])
    assert np.isfinite(found.values[0, 1, 0])
