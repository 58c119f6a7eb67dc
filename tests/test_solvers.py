"""The exact solver: against explicit inverses, determinants and actual refits."""

import tracemalloc

import numpy as np
import pytest
from scipy.linalg import LinAlgError

import naive
from jacridge import JacobianKernelRidge, _cholesky
from jacridge._cholesky import LastFactor, factor
from jacridge._solvers import INTERCEPTS, solve_each, solve_exact


@pytest.fixture
def system(rng):
    """K, y with two targets, weights, and the inverse of A = K + 0.1 / w."""
    X, w = rng.uniform(size=(30, 2)), rng.uniform(0.5, 3, 30)
    K = naive.kernel(naive.distances(X, X), 0.3)
    return K, rng.standard_normal((30, 2)), w, np.linalg.inv(K + np.diag(0.1 / w))


@pytest.fixture(params=["lapack", "panels of 7", "panels of 30", "panels of 100"])
def way(request, monkeypatch):
    """LAPACK at once, or panel by panel, with panels that divide the rows or not."""
    if request.param != "lapack":
        monkeypatch.setattr(_cholesky, "LAPACK_ORDER", 1)
        for panel in ("PANEL", "INVERSE_PANEL"):
            monkeypatch.setattr(_cholesky, panel, int(request.param.split()[-1]))


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


def test_panels_report_their_progress(system, monkeypatch):
    monkeypatch.setattr(_cholesky, "LAPACK_ORDER", 1)
    for panel in ("PANEL", "INVERSE_PANEL"):
        monkeypatch.setattr(_cholesky, panel, 12)
    done = []
    factor(system[0].copy(), 0.1, step=done.append)
    assert done == [12, 24, 30]


@pytest.mark.parametrize("order", [1, 10_000])
def test_a_factorisation_takes_no_second_matrix(rng, monkeypatch, order):
    monkeypatch.setattr(_cholesky, "LAPACK_ORDER", order)
    for panel in ("PANEL", "INVERSE_PANEL"):
        monkeypatch.setattr(_cholesky, panel, 16)
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


def test_the_model_knows_the_inverse_in_all_its_parts(system):
    K, y, w, inverse = system
    model = solve_exact(K.copy, y, w, 0.1, intercept="none")
    np.testing.assert_allclose(model.dual_coef, inverse @ y, rtol=1e-10)
    n = sum(max(v, 1.0) for v in w)  # a weight of two is two rows
    np.testing.assert_allclose(
        model.signal_variance, np.diagonal(y.T @ inverse @ y) / n, rtol=1e-10
    )
    explained = np.diagonal(K[:4] @ inverse @ K[:4].T)
    np.testing.assert_allclose(model.explained(K[:4]), explained[:, None] * [1, 1], rtol=1e-10)
    np.testing.assert_allclose(model.degrees_of_freedom, [np.trace(K @ inverse)] * 2, rtol=1e-10)


@pytest.mark.parametrize("kind", INTERCEPTS)
def test_targets_with_penalties_of_their_own_are_solved_each_by_itself(system, kind):
    K, y, w, _ = system
    lams = np.array([0.1, 3.0])
    together = solve_each(K, y, w, lams, intercept=kind)
    alone = [solve_exact(K.copy, y[:, [t]], w, lam, intercept=kind) for t, lam in enumerate(lams)]
    for part in ("dual_coef", "loo_residuals"):
        expected = np.hstack([getattr(model, part) for model in alone])
        np.testing.assert_allclose(getattr(together, part), expected, rtol=1e-9)
    for part in ("signal_variance", "degrees_of_freedom"):
        expected = np.concatenate([getattr(model, part) for model in alone])
        np.testing.assert_allclose(getattr(together, part), expected, rtol=1e-9)
    for part in ("explained", "loo_shifts"):
        expected = np.concatenate([getattr(model, part)(K[:3]) for model in alone], axis=-1)
        np.testing.assert_allclose(getattr(together, part)(K[:3]), expected, rtol=1e-9, atol=1e-12)


def test_equal_rows_without_a_penalty_get_the_solution_of_smallest_norm(rng):
    X = np.repeat(rng.uniform(size=(8, 2)), 2, axis=0)
    K, y = naive.kernel(naive.distances(X, X), 0.3), rng.standard_normal((16, 1))
    with pytest.warns(UserWarning, match=r"smallest eigenvalue is -?\d.*e-\d\d; .* larger `alpha`"):
        model = solve_exact(K.copy, y, np.ones(16), 0.0, intercept="none")
    # The kept eigenvalues go down to rounding: seven digits are left.
    np.testing.assert_allclose(model.dual_coef, np.linalg.pinv(K) @ y, rtol=1e-7)


def test_the_warning_tells_the_smallest_eigenvalue():
    K = np.array([[1.0, 2.0], [2.0, 1.0]])  # eigenvalues 3 and -1
    with pytest.warns(UserWarning, match="smallest eigenvalue is -0.9; "):
        model = solve_exact(K.copy, np.ones((2, 1)), np.ones(2), 0.1, intercept="none")
    np.testing.assert_allclose(model.dual_coef, np.full((2, 1), 1 / 3.1), rtol=1e-12)


@pytest.mark.parametrize("n", [5, 400, 1000])
def test_a_last_factor_has_the_inverse_diagonal_of_the_matrix(rng, n):
    """400 and 1000 are more than one panel; what is above the diagonal must not count."""
    A = np.cov(rng.standard_normal((n, 2 * n)))
    L = factor(A.copy(), 0.0).L
    diagonal = LastFactor(np.tril(L) + np.triu(np.full((n, n), 7.0), 1)).inverse_diagonal()
    assert diagonal == pytest.approx(np.diagonal(np.linalg.inv(A)), rel=1e-9)


def test_leaving_out_one_of_two_equal_rows_leaves_the_other(rng):
    """At lambda = 0 the matrix is singular and the fit is the mean of both targets."""
    X, y = rng.uniform(size=(10, 2)), rng.standard_normal(10)
    est = JacobianKernelRidge(0.2, 0.0, fit_intercept=False)
    with pytest.warns(UserWarning, match="smallest eigenvalue"):
        est.fit(np.vstack([X, X[:3]]), np.r_[y, y[:3] + 1])
    assert est.loo_residuals_[[0, 1, 2, 10, 11, 12]] == pytest.approx([-1, -1, -1, 1, 1, 1])
    y_mean = np.r_[y[:3] + 0.5, y[3:]]
    left_out = [
        y[i] - est.fit(np.delete(X, i, 0), np.delete(y_mean, i)).predict(X[[i]])[0]
        for i in range(3, 10)
    ]
    with pytest.warns(UserWarning, match="smallest eigenvalue"):
        est.fit(np.vstack([X, X[:3]]), np.r_[y, y[:3] + 1])
    # Eigenvectors of a matrix of condition about 1e5.
    assert est.loo_residuals_[3:10] == pytest.approx(left_out, rel=1e-6)
    assert est._model.degrees_of_freedom == pytest.approx(10)
