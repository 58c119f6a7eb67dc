"""Systems in single precision whose solutions are refined: against dense algebra in double."""

import copy
import tracemalloc

import numpy as np
import pytest

import naive
from jacridge import JacobianKernelRidge
from jacridge._geometry.space import KERNELS, space_of
from jacridge._solvers import systems
from jacridge._solvers.systems import Refined, exact_system


@pytest.fixture
def refined_rows(monkeypatch):
    """Function that sets from how many rows on systems are refined."""
    return lambda n: monkeypatch.setattr(systems, "REFINED_ROWS", n)


@pytest.fixture(autouse=True)
def _all_are_refined(refined_rows):
    refined_rows(1)


@pytest.fixture
def made(rng):
    """Pairs of 300 rows, more than a tile, penalties of the rows, and A."""
    X, lam = rng.uniform(size=(300, 2)), rng.uniform(1e-3, 0.1, 300)
    A = naive.kernel(naive.distances(X, X), 0.3) + np.diag(lam)
    return space_of("gaussian", "euclidean").pairs(X), lam, A


def test_solutions_are_those_of_double_precision(made, rng):
    pairs, lam, A = made
    found, lost = exact_system(pairs, 0.3, lam)
    assert isinstance(found, Refined)
    assert lost.shape == (300, 0)
    B = rng.standard_normal((300, 2)) * [1.0, 1e200]
    # The condition number is 1e5; single precision alone would leave 1e-2.
    np.testing.assert_allclose(found.solve(B), np.linalg.solve(A, B), rtol=1e-8, atol=1e-9)
    x = found.solve(B[:, 0])
    assert x.shape == (300,)
    np.testing.assert_allclose(A @ x, B[:, 0], atol=1e-10)
    assert not found.solve(np.zeros((300, 1))).any()
    assert found._rough is not None  # no double factor has been made


def test_what_is_not_a_solution_comes_from_a_double_factor(made, rng):
    pairs, lam, A = made
    found, _ = exact_system(pairs, 0.3, lam)
    B, inverse = rng.standard_normal((300, 4)), np.linalg.inv(A)
    before = found.solve(B)
    half = found.half_solve(B)
    # The condition number is 1e5.
    np.testing.assert_allclose(half.T @ half, B.T @ inverse @ B, rtol=1e-9)
    np.testing.assert_allclose(found.inverse_diagonal(), np.diagonal(inverse), rtol=1e-9)
    places = np.array([3, 250])
    np.testing.assert_allclose(
        found.inverse_diagonal(places), np.diagonal(inverse)[places], rtol=1e-9
    )
    np.testing.assert_allclose(found.inverse_columns(places), inverse[:, places], atol=1e-7)
    assert found.log_determinant() == pytest.approx(np.linalg.slogdet(A)[1], rel=1e-12)
    assert found.rank == 300
    np.testing.assert_allclose(found.solve(B), before, rtol=1e-8, atol=1e-9)


def test_a_system_that_is_nearly_singular_is_factored_in_double_precision(made):
    pairs, lam, A = made
    found, _ = exact_system(pairs, 0.3, np.full(300, 1e-8))
    assert not isinstance(found, Refined)
    b = A[:, 0]
    # Coefficients are as large as 1e6, and good to half their digits.
    np.testing.assert_allclose((A - np.diag(lam - 1e-8)) @ found.solve(b), b, atol=1e-6)


@pytest.mark.parametrize("steps", [0, 1])
def test_a_solution_that_cannot_be_refined_comes_from_a_double_factor(made, monkeypatch, steps):
    monkeypatch.setattr(systems, "REFINEMENTS", steps)
    pairs, lam, A = made
    found, _ = exact_system(pairs, 0.3, lam)
    np.testing.assert_allclose(found.solve(A), np.eye(300), atol=1e-9)


def test_pairs_make_kernels_at_other_bandwidths_after_one_was_settled(made):
    pairs, lam, A = made
    exact_system(pairs, 0.3, lam)
    other = naive.kernel(naive.distances(pairs._X, pairs._X), 0.1)
    np.testing.assert_allclose(np.tril(pairs.kernel(0.1)), np.tril(other), atol=1e-12)
    np.testing.assert_allclose(np.tril(pairs.kernel(0.3), -1), np.tril(A, -1), atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("options", [{}, {"fit_intercept": "free"}, {"metric": "scaled"}])
def test_fits_are_those_of_a_double_factor(rng, refined_rows, kernel, options):
    X, new = rng.uniform(size=(2, 80, 2))
    y, w = np.cos(3 * X) + 0.1 * rng.standard_normal((80, 2)), rng.uniform(0.5, 2, 80)
    model = JacobianKernelRidge(0.5, 1e-3, kernel=kernel, **options)

    def told():
        fit = copy.copy(model).fit(X, y, w)
        intervals = fit.predict_interval(new)
        return [
            fit.predict(new),
            *fit.predict(new, return_std=True),
            fit.loo_residuals_,
            *intervals,
        ]

    refined = told()
    refined_rows(10**9)
    # The condition number is up to 1e5.
    for found, known in zip(refined, told(), strict=True):
        np.testing.assert_allclose(found, known, atol=1e-9)


def test_a_copy_of_a_fit_tells_the_same(rng):
    X = rng.uniform(size=(80, 2))
    fit = JacobianKernelRidge(0.5, 1e-3).fit(X, X[:, 0])
    twin = copy.deepcopy(fit)
    std = twin.predict(X, return_std=True)[1]
    np.testing.assert_array_equal(fit.predict(X, return_std=True)[1], std)


def test_a_refined_fit_takes_one_matrix_of_memory(rng, size):
    size("block entries", 1 << 14)
    size("inverse columns", (32, 32))
    X = rng.standard_normal((1800, 3))
    tracemalloc.start()
    fit = JacobianKernelRidge(1.0, 0.1).fit(X, X[:, 0])
    fit.loo_residuals_  # noqa: B018
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Tiles of 256 rows in two threads are a third of so small a matrix.
    assert peak < 1.4 * 8 * 1800**2
