"""Cholesky factors made in place: against explicit inverses and determinants."""

import tracemalloc

import numpy as np
import pytest
from scipy.linalg import LinAlgError

import naive
from jacridge._compute import threads
from jacridge._solvers import cholesky
from jacridge._solvers.cholesky import BlockFactor, factor


@pytest.fixture
def system(rng):
    """K, y with two targets, weights, and the inverse of A = K + 0.1 / w."""
    X, w = rng.uniform(size=(30, 2)), rng.uniform(0.5, 3, 30)
    K = naive.kernel(naive.distances(X, X), 0.3)
    return K, rng.standard_normal((30, 2)), w, np.linalg.inv(K + np.diag(0.1 / w))


@pytest.fixture(params=["lapack", "panels of 7", "panels of 30", "panels of 100"])
def way(request, monkeypatch):
    """LAPACK at once, or panel by panel in two threads, with panels that divide the rows or not."""
    if request.param != "lapack":
        monkeypatch.setattr(cholesky, "SMALL_ORDER", 1)
        monkeypatch.setattr(cholesky, "processors", lambda: 2)
        monkeypatch.setattr(threads, "processors", lambda: 2)
        for size in ("PANEL", "ROWS"):
            monkeypatch.setattr(cholesky, size, int(request.param.split()[-1]))


def garbage_above(K):
    """The kernel in the lower triangle, and above it what must not be looked at."""
    return np.tril(K) + np.triu(np.full(K.shape, np.nan), 1)


@pytest.mark.usefixtures("way")
class TestFactor:
    def test_it_solves_as_the_inverse_does(self, system):
        K, y, w, inverse = system
        A = factor(garbage_above(K), 0.1 / w)
        np.testing.assert_allclose(A.solve(y), inverse @ y, rtol=1e-10)
        np.testing.assert_allclose(A.solve(y[:, 0]), inverse @ y[:, 0], rtol=1e-10)

    def test_half_a_solution_has_the_norm_of_the_quadratic_form(self, system):
        K, y, w, inverse = system
        half = factor(garbage_above(K), 0.1 / w).half_solve(y)
        np.testing.assert_allclose(half.T @ half, y.T @ inverse @ y, rtol=1e-10)

    def test_the_diagonal_is_that_of_the_inverse(self, system):
        K, _, w, inverse = system
        found = factor(garbage_above(K), 0.1 / w).inverse_diagonal()
        np.testing.assert_allclose(found, np.diagonal(inverse), rtol=1e-10)

    @pytest.mark.parametrize("places", [[0], [3, 4, 29], [29], range(30)])
    def test_columns_are_those_of_the_inverse(self, system, places):
        K, _, w, inverse = system
        found = factor(garbage_above(K), 0.1 / w).inverse_columns(np.array(places))
        np.testing.assert_allclose(found, inverse[:, places], rtol=1e-9, atol=1e-12)

    def test_many_columns_are_solved_as_one_is(self, system, rng):
        K, _, w, inverse = system
        B = rng.standard_normal((30, 75))
        A = factor(garbage_above(K), 0.1 / w)
        np.testing.assert_allclose(A.solve(B), inverse @ B, rtol=1e-9, atol=1e-11)
        half = A.half_solve(B)
        np.testing.assert_allclose(half.T @ half, B.T @ inverse @ B, rtol=1e-9, atol=1e-10)

    def test_the_log_determinant_does_not_underflow(self, system):
        K, _, w, inverse = system
        found = factor(garbage_above(K), 0.1 / w).log_determinant()
        assert found == pytest.approx(-np.linalg.slogdet(inverse)[1], rel=1e-10)

    def test_what_is_above_the_diagonal_stays(self, system):
        """Distances are kept there for the next bandwidth."""
        K = np.tril(system[0]) + np.triu(np.full((30, 30), 7.0), 1)
        factor(K, 0.1)
        assert (K[np.triu_indices(30, 1)] == 7.0).all()

    def test_it_takes_the_place_of_the_kernel(self, system):
        K = system[0].copy()
        assert factor(K, 0.1).L is K

    def test_an_indefinite_matrix_is_refused(self, system):
        K = system[0] - 2 * np.eye(30)
        with pytest.raises(LinAlgError, match=r"K \+ lambda I is not positive definite"):
            factor(K, 0.1)

    @pytest.mark.parametrize("gap", [0.0, 1e-9])
    def test_a_matrix_that_is_singular_to_rounding_is_refused(self, gap):
        """Rows at a distance of 1e-9 have a pivot of 1e-18, or what rounding makes of it."""
        X = np.append(np.linspace(0, 1, 29), gap)[:, None]
        K = naive.kernel(naive.distances(X, X), 0.02)
        with pytest.raises(LinAlgError, match=r"not positive definite|singular to rounding"):
            factor(K, 0.0)

    def test_weights_of_very_unlike_size_are_no_singularity(self):
        ridge = np.array([1e-3, 1e140, 1.0])
        A = factor(np.eye(3), ridge)
        np.testing.assert_allclose(A.inverse_diagonal(), 1 / (1 + ridge), rtol=1e-12)


@pytest.mark.parametrize("order", [1, 10_000])
def test_a_factorisation_takes_no_second_matrix(monkeypatch, order):
    monkeypatch.setattr(cholesky, "SMALL_ORDER", order)
    monkeypatch.setattr(cholesky, "processors", lambda: 2)
    for size in ("PANEL", "ROWS"):
        monkeypatch.setattr(cholesky, size, 16)
    K = np.eye(600) + 0.1
    tracemalloc.start()
    A = factor(K, 1e-3)
    A.solve(np.ones(600))
    A.inverse_diagonal()
    A.log_determinant()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # What is allowed is a few panels of 16 columns.
    assert peak < 0.15 * K.nbytes


def test_the_order_of_a_factor_is_its_rank(system):
    assert factor(system[0].copy(), 0.1).rank == 30


@pytest.fixture
def blocks(rng):
    """Rows in two blocks and three rows alone: the factor, and the whole matrix."""
    A = np.diag(rng.uniform(1, 2, 12))
    parts = []
    for rows in ([0, 3, 4, 9], [2, 5, 7, 8, 11]):
        block = np.cov(rng.standard_normal((len(rows), 20)))
        A[np.ix_(rows, rows)] = block
        parts.append((np.array(rows), factor(block.copy(), 0.0)))
    return BlockFactor(np.diagonal(A).copy(), parts), A


def test_a_factor_of_blocks_solves_as_the_whole_matrix_does(blocks, rng):
    found, A = blocks
    Y = rng.standard_normal((12, 3))
    np.testing.assert_allclose(found.solve(Y), np.linalg.inv(A) @ Y, rtol=1e-10)
    np.testing.assert_allclose(found.solve(Y[:, 0]), np.linalg.inv(A) @ Y[:, 0], rtol=1e-10)


def test_a_factor_of_blocks_has_the_diagonal_and_determinant_of_the_whole_matrix(blocks):
    found, A = blocks
    np.testing.assert_allclose(found.inverse_diagonal(), np.diagonal(np.linalg.inv(A)), rtol=1e-10)
    assert found.log_determinant() == pytest.approx(np.linalg.slogdet(A)[1], rel=1e-10)
