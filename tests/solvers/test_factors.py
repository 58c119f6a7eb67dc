"""Factors, spectra and products of kernels: against explicit inverses, loops and refits."""

import tracemalloc
from contextlib import nullcontext

import numpy as np
import pytest
from scipy.linalg import LinAlgError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import naive
from jacridge._compute import blas
from jacridge._geometry.space import space_of
from jacridge._rules.criteria import LOO
from jacridge._solvers import cholesky, pcg
from jacridge._solvers import spectrum as spectrum_module
from jacridge._solvers.cholesky import ROUGH_PENALTY, BlockFactor, Factor, factor
from jacridge._solvers.spectrum import mean_shift, spectrum

LAMS = np.array([1e-3, 0.1, 5.0])
NAMES = ["loo", "gcv", "mml"]
# Each refit is good to a condition number of 1e4 less than double precision.
REFIT = 1e-8


def test_eigenvectors_of_any_matrix_have_the_threads_of_its_order(monkeypatch):
    """Also those of kernel matrices: LAPACK with all threads may crash on large ones."""
    asked = []
    monkeypatch.setattr(spectrum_module, "lapack_for", lambda n: asked.append(n) or nullcontext())
    s, V = spectrum_module.eigh(np.diag([2.0, 1.0, 3.0]))
    assert asked == [3]
    np.testing.assert_allclose(V * s @ V.T, np.diag([2.0, 1.0, 3.0]), atol=1e-14)


# BLAS in place, with parts of larger arrays, and where SciPy offers no function without the lock.


@pytest.fixture(params=[True, False])
def without_lock(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(blas, "_function", lambda name, kind: None)


@pytest.mark.usefixtures("without_lock")
class TestBlas:
    @pytest.fixture(params=[np.float64, np.float32])
    def inside(self, request, rng):
        """Function that makes part of a larger array, and one that looks at what is around it."""
        whole = []

        def made(rows, columns):
            whole.append(rng.standard_normal((rows + 2, columns + 3)).astype(request.param))
            return whole[-1][1:-1, 1:-2]

        return made

    @staticmethod
    def close(found, known):
        # Ten roundings of numbers near one.
        np.testing.assert_allclose(found, known, atol=20 * np.finfo(found.dtype).eps)

    @pytest.mark.parametrize("shape", [(5, 3, 4), (1, 3, 4), (5, 1, 4), (5, 3, 1), (1, 1, 1)])
    @pytest.mark.parametrize("transposed", [(0, 0), (0, 1), (1, 0), (1, 1)])
    def test_a_product_is_subtracted(self, inside, shape, transposed):
        rows, inner, columns = shape
        A = inside(inner, rows).T if transposed[0] else inside(rows, inner)
        B = inside(columns, inner).T if transposed[1] else inside(inner, columns)
        C = inside(rows, columns)
        around, known = C.base.copy(), C - A @ B
        blas.subtract_product(C, A, B)
        self.close(C, known)
        around[1:-1, 1:-2] = C
        np.testing.assert_array_equal(C.base, around)

    def test_a_square_is_subtracted_from_the_lower_triangle(self, inside):
        A, C = inside(5, 3), inside(5, 5)
        known = np.tril(C - A @ A.T) + np.triu(C, 1)
        blas.subtract_square(C, A)
        self.close(C, known)

    @pytest.mark.parametrize("rows", [1, 3, 7])
    def test_a_gram_matrix_is_added_to_the_upper_triangle(self, inside, rows):
        A, C = inside(rows, 5), inside(5, 5)
        around, known = C.base.copy(), np.triu(C + A.T @ A) + np.tril(C, -1)
        blas.add_gram(C, A)
        self.close(C, known)
        around[1:-1, 1:-2] = C
        np.testing.assert_array_equal(C.base, around)

    @pytest.mark.parametrize("columns", [1, 4])
    def test_triangles_are_solved(self, inside, columns):
        L, B = inside(6, 6), inside(6, columns)
        L.flat[::7] += 6
        X, Y, Z = B.copy(), B.copy(), np.ascontiguousarray(B.T)
        blas.solve_lower(L, X)
        blas.solve_lower(L, Y, transposed=True)
        blas.solve_right(L, Z)
        L = np.tril(L)
        self.close(L @ X, B)
        self.close(L.T @ Y, B)
        self.close(Z @ L.T, B.T)


# Cholesky factors, made in place.


@pytest.mark.parametrize("without_lock", [True, False])
def test_a_triangle_is_factored_in_place_and_the_other_one_stays(rng, monkeypatch, without_lock):
    """Also for a part of a larger array, and where SciPy offers no function without the lock."""
    if not without_lock:
        monkeypatch.setattr(blas, "_function", lambda name, kind: None)
    X = rng.standard_normal((20, 25))
    whole = np.zeros((20, 30)) if without_lock else np.zeros((20, 20))
    A = whole[:, :20]
    A[:] = X @ X.T
    before, L = A.copy(), np.linalg.cholesky(A)
    assert blas.factor_in_place(A) == 0
    np.testing.assert_allclose(np.tril(A), L)
    assert (np.triu(A, 1) == np.triu(before, 1)).all()
    assert not whole[:, 20:].any()
    assert blas.factor_in_place(np.diag([1.0, 2.0, -1.0])) == 3


@pytest.mark.parametrize("without_lock", [True, False])
def test_a_matrix_of_single_precision_is_factored_in_it(rng, monkeypatch, without_lock):
    if not without_lock:
        monkeypatch.setattr(blas, "_function", lambda name, kind: None)
    X = rng.standard_normal((20, 25))
    A = (X @ X.T).astype(np.float32)
    assert blas.factor_in_place(A) == 0
    # Single precision has seven digits, and the condition number takes two of them.
    np.testing.assert_allclose(np.tril(A), np.linalg.cholesky(X @ X.T), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("panels", [False, True])
def test_a_factor_of_single_precision_solves_and_inverts_as_a_double_one(rng, monkeypatch, panels):
    """By LAPACK, and by halves of triangles as for large matrices."""
    if panels:
        monkeypatch.setattr(cholesky, "SMALL_ORDER", 1)
    K = naive.kernel(naive.distances(*2 * (rng.uniform(size=(80, 2)),)), 0.3)
    B = rng.standard_normal((80, 2))
    rough, precise = factor(K.astype(np.float32), 0.1), factor(K.copy(), 0.1)
    assert [found.L.dtype for found in (rough, precise)] == [np.float32, np.float64]
    # A condition number of a few hundred leaves four or five of seven digits.
    np.testing.assert_allclose(rough.solve(B), precise.solve(B), rtol=1e-3, atol=1e-3)
    # Columns beyond the range of single precision, and one of zeros.
    units = np.array([2.0**400, 2.0**-400])
    np.testing.assert_array_equal(rough.solve(B * units), rough.solve(B) * units)
    assert not rough.solve(0 * B).any()
    norms = [np.square(found.half_solve(B)).sum(axis=0) for found in (rough, precise)]
    np.testing.assert_allclose(*norms, rtol=1e-4)
    np.testing.assert_allclose(rough.inverse_diagonal(), precise.inverse_diagonal(), rtol=1e-4)
    last = [found.inverse_diagonal(np.arange(71, 80)) for found in (rough, precise)]
    np.testing.assert_allclose(*last, rtol=1e-4)
    np.testing.assert_allclose(rough.log_determinant(), precise.log_determinant(), rtol=1e-5)


def test_a_rough_inverse_does_not_depend_on_the_other_triangle(rng):
    X = rng.standard_normal((80, 3))
    L = factor(naive.kernel(naive.distances(X, X), 1.0), 0.1).L
    known = np.diag(np.linalg.inv(np.tril(L) @ np.tril(L).T))
    L[np.triu_indices(80, 1)] = 1e300  # overflows in single precision
    np.testing.assert_allclose(Factor(L).inverse_diagonal(rough=True), known, rtol=1e-5)
    columns = Factor(L).inverse_columns(np.arange(80), rough=True)
    np.testing.assert_allclose(np.diag(columns), known, rtol=1e-5)


def test_a_factor_of_single_precision_that_would_be_rough_is_refused(rng):
    K = naive.kernel(naive.distances(*2 * (rng.uniform(size=(80, 2)),)), 1.0)
    factor(K.copy(), 1e-6)
    factor(K.astype(np.float32), 1e-2)
    with pytest.raises(LinAlgError, match="singular to rounding"):
        factor(K.astype(np.float32), 1e-3)


@pytest.mark.slow
def test_single_precision_changes_criteria_of_wide_kernels_by_less_than_a_thousandth(rng):
    """At the least penalty that takes it, with the most rows that searches take it for."""
    X, y = rng.standard_normal((3000, 3)), rng.standard_normal((3000, 1))
    space, w = space_of("gaussian", "euclidean"), np.ones(3000)
    rough, precise = (
        LOO.at(space.pairs(X, single=single), 20.0, ROUGH_PENALTY, y, w, last=1000)
        for single in (True, False)
    )
    assert rough != precise
    assert rough == pytest.approx(precise, rel=1e-3)


@pytest.fixture
def system(rng):
    """K, y with two targets, weights, and the inverse of A = K + 0.1 / w."""
    X, w = rng.uniform(size=(30, 2)), rng.uniform(0.5, 3, 30)
    K = naive.kernel(naive.distances(X, X), 0.3)
    return K, rng.standard_normal((30, 2)), w, np.linalg.inv(K + np.diag(0.1 / w))


@pytest.fixture(params=["lapack", "panels of 7", "panels of 30", "panels of 100"])
def way(request, size, monkeypatch):
    """LAPACK at once, or panel by panel in two threads, with panels that divide the rows or not."""
    if request.param != "lapack":
        monkeypatch.setattr(cholesky, "SMALL_ORDER", 1)
        size("processors", 2)
        columns = int(request.param.split()[-1])
        for name in ("PANEL", "COLUMNS"):
            monkeypatch.setattr(cholesky, name, (columns, columns))


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

    @pytest.mark.parametrize("places", [[0], [3, 4, 29], [29], range(30)])
    def test_places_have_the_diagonal_of_the_inverse(self, system, places, monkeypatch):
        monkeypatch.setattr(cholesky, "TRIANGLE", 4)
        monkeypatch.setattr(cholesky, "ROWS", 3)
        K, _, w, inverse = system
        places = np.array(places)
        A = factor(garbage_above(K), 0.1 / w)
        known = np.diagonal(inverse)[places]
        np.testing.assert_allclose(A.inverse_diagonal(places), known, rtol=1e-10)
        # Single precision keeps seven digits, and the condition number is about 100.
        np.testing.assert_allclose(A.inverse_diagonal(places, rough=True), known, rtol=1e-5)

    def test_columns_in_single_precision_are_those_of_the_inverse(self, system, monkeypatch):
        monkeypatch.setattr(cholesky, "TRIANGLE", 4)
        monkeypatch.setattr(cholesky, "ROWS", 3)
        K, _, w, inverse = system
        found = factor(garbage_above(K), 0.1 / w).inverse_columns(np.arange(30), rough=True)
        assert found.dtype == np.float32
        # As above; entries of the inverse are at most ten times its weights.
        np.testing.assert_allclose(found, inverse, atol=1e-5 * np.abs(inverse).max())

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
def test_a_factorisation_takes_no_second_matrix(size, monkeypatch, order):
    monkeypatch.setattr(cholesky, "SMALL_ORDER", order)
    size("processors", 2)
    for name in ("PANEL", "COLUMNS"):
        monkeypatch.setattr(cholesky, name, (16, 16))
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


# One eigendecomposition.


@pytest.fixture
def problem(rng):
    """Rows, their kernel at sigma = 0.4, and two targets with means of their own."""
    X = rng.uniform(size=(18, 2))
    K = naive.kernel(naive.distances(X, X), 0.4)
    return X, K, rng.standard_normal((18, 2)) + [2.0, -5.0]


@pytest.fixture(params=["ones", "whole", "any"])
def weights(request, rng):
    return {
        "ones": np.ones(18),
        "whole": rng.integers(1, 4, 18).astype(float),
        "any": rng.uniform(0.1, 4, 18),
    }[request.param]


def lower(K):
    """The kernel with what must not be looked at above its diagonal."""
    return np.tril(K) + np.triu(np.full(K.shape, 7.0), 1)


def centred(Y, w, moves):
    return Y - np.average(Y, axis=0, weights=w) if moves else Y


@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_criteria_of_all_penalties_and_targets_agree_with_loops(problem, weights, name, moves):
    """A row is left out with all of its weight, and the mean of y moves with it."""
    _, K, Y = problem
    found = spectrum(lower(K), centred(Y, weights, moves), weights, centred=moves)
    expected = [[naive.WEIGHTED[name](K, y, lam, weights, moves) for y in Y.T] for lam in LAMS]
    np.testing.assert_allclose(getattr(found, name)(LAMS), expected, rtol=REFIT)


@pytest.mark.parametrize("moves", [True, False])
def test_leave_one_out_residuals_are_those_of_actual_refits(problem, weights, moves):
    _, K, Y = problem
    S = spectrum(lower(K), centred(Y, weights, moves), weights, centred=moves)
    found = S.loo_residuals(LAMS)
    assert found.shape == (18, 3, 2)
    for i, lam in enumerate(LAMS):
        for t, y in enumerate(Y.T):
            expected = naive.refit_residuals(K, y, lam, weights, moves)
            np.testing.assert_allclose(found[:, i, t], expected, rtol=REFIT, atol=1e-9)


def test_coefficients_are_those_of_the_inverse(problem, weights):
    _, K, Y = problem
    found = spectrum(lower(K), Y, weights).dual_coef(LAMS)
    for i, lam in enumerate(LAMS):
        expected = np.linalg.inv(K + np.diag(lam / weights)) @ Y
        np.testing.assert_allclose(found[:, i], expected, rtol=1e-9, atol=1e-9)


def test_degrees_of_freedom_are_those_of_the_hat_matrix(problem, weights):
    _, K, Y = problem
    found = spectrum(lower(K), Y, weights).degrees_of_freedom(LAMS)
    for lam, freedom in zip(LAMS, found, strict=True):
        H = K @ np.linalg.inv(K + np.diag(lam / weights))
        assert freedom == pytest.approx(np.trace(H), rel=1e-10)


def test_the_mean_falls_by_its_shift_when_a_row_is_left_out(problem, weights):
    Y = problem[2]
    mean = np.average(Y, axis=0, weights=weights)
    for i, shift in enumerate(mean_shift(Y - mean, weights)):
        rest = np.arange(18) != i
        expected = mean - np.average(Y[rest], axis=0, weights=weights[rest])
        np.testing.assert_allclose(shift, expected, rtol=1e-10, atol=1e-14)


def test_the_only_row_takes_its_mean_with_it():
    assert mean_shift(np.zeros((1, 1)), np.ones(1)).tolist() == [[0.0]]
    S = spectrum(np.ones((1, 1)), np.zeros((1, 1)), np.ones(1))
    assert S.loo(LAMS).tolist() == [[0.0]] * 3


def test_one_block_of_rows_or_many_agree(problem, rng, monkeypatch):
    _, K, Y = problem
    w = rng.uniform(0.5, 3, 18)
    found = spectrum(K, centred(Y, w, True), w)
    whole = found.loo(LAMS)
    monkeypatch.setattr(spectrum_module, "BLOCK_ROWS", 5)
    np.testing.assert_allclose(found.loo(LAMS), whole, rtol=1e-12)


@pytest.mark.parametrize("moves", [True, False])
def test_without_a_penalty_leave_one_out_is_that_of_interpolation(rng, moves):
    X, w = np.arange(8.0)[:, None], np.ones(8)
    K, y = naive.kernel(naive.distances(X, X), 0.6), rng.standard_normal(8)
    S = spectrum(K, centred(y[:, None], w, moves), w, centred=moves)
    expected = naive.weighted_loo(K, y, 0.0, w, moves)
    assert S.loo(np.array([0.0]))[0, 0] == pytest.approx(expected, rel=REFIT)


@pytest.mark.parametrize("moves", [True, False])
def test_weights_in_another_unit_are_a_penalty_in_another_unit(problem, weights, moves):
    _, K, Y = problem
    Y = centred(Y, weights, moves)
    one, other = (spectrum(K, Y, c * weights, centred=moves) for c in (1.0, 7.0))
    for name in NAMES:
        found = getattr(other, name)(7.0 * LAMS)
        unit = 7.0 if name == "gcv" else 1.0  # its squares are not divided by the weights
        np.testing.assert_allclose(found, unit * getattr(one, name)(LAMS), rtol=1e-9)


def test_the_profiled_likelihood_is_scikit_learns_at_the_best_signal_variance(problem):
    X, K, Y = problem
    for lam, values in zip(LAMS, spectrum(K, Y, np.ones(18)).mml(LAMS), strict=True):
        for y, value in zip(Y.T, values, strict=True):
            s2 = y @ np.linalg.inv(K + lam * np.eye(18)) @ y / 18
            process = GaussianProcessRegressor(
                ConstantKernel(s2) * RBF(0.4), alpha=lam * s2, optimizer=None
            ).fit(X, y)
            expected = -2 * process.log_marginal_likelihood() - 18 * np.log(2 * np.pi) - 18
            assert value == pytest.approx(expected, rel=1e-9)


def test_a_target_of_zeros_is_infinitely_likely_in_silence(problem):
    _, K, Y = problem
    Y[:, 1] = 0
    assert (spectrum(K, Y, np.ones(18)).mml(LAMS)[:, 1] == -np.inf).all()


def test_negative_eigenvalues_are_taken_as_zero():
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    np.testing.assert_allclose(spectrum(K, np.ones((2, 1)), np.ones(2)).s, [0, 3], rtol=1e-14)


def test_the_kernel_stays_as_it_is(problem, weights):
    _, K, Y = problem
    before = K.copy()
    spectrum(K, Y, weights)
    assert (before == K).all()


# Conjugate gradients.


def test_the_product_with_the_kernel_is_that_of_the_matrix(rng, size):
    size("block entries", 700)
    size("pcg single rows", 0)
    X, V = rng.standard_normal((50, 2)), rng.standard_normal((50, 3))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / (2 * 0.7**2))
    single, double = pcg.kernels(X, 0.7, space_of("gaussian", "euclidean"))
    assert pcg.symmetric_product(double, V) == pytest.approx(K @ V)
    # 50 terms, each with the 1e-7 of a single, and that of its exponent.
    assert pcg.symmetric_product(single, V) == pytest.approx(K @ V, rel=1e-4, abs=1e-4)


def test_a_product_that_is_too_coarse_gives_way_to_the_exact_one(rng):
    """A product off by a third gains nothing; one that is not positive is given up at once."""
    A, B = np.diag(np.linspace(1, 9, 40)), rng.standard_normal((40, 2))
    for bad in (lambda V: (A + 6 * np.eye(40)) @ V, lambda V: -A @ V):
        Z, _, residual = pcg.refined([bad, lambda V: A @ V], lambda V: V, B)
        assert residual <= 1e-7
        assert np.linalg.norm(A @ Z - B) <= 1.01e-7 * np.linalg.norm(B)


def test_the_preconditioner_is_the_inverse_of_what_it_stands_for(rng):
    F, V = rng.standard_normal((30, 5)), rng.standard_normal((30, 2))
    inverse = np.linalg.inv(F @ F.T + 0.3 * np.eye(30))
    assert pcg.preconditioner(F, 0.3)(V) == pytest.approx(inverse @ V)


def test_rows_far_out_are_not_tried_in_single_precision(rng, size):
    size("pcg single rows", 0)
    X = rng.standard_normal((50, 2))
    assert len(pcg.kernels(X, 1.0, space_of("gaussian", "euclidean"))) == 2
    X[7] = 1e4
    assert len(pcg.kernels(X, 1.0, space_of("gaussian", "euclidean"))) == 1
