"""Definition 1 and Propositions 1 to 4: against mpmath, finite differences, and as inequalities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from jacridge import JacobianKernelRidge, theory

THRESHOLD = 2 * np.exp(-1.5)
NUMBERS_OF_ROWS = [3, 4, 10, 1000, 10**6, 10**9]
NUMBERS_OF_COLUMNS = [1, 2, 7, 100, 1000]
# Away from the branch point of W by at least a thousandth.
LAM_PER_N = [0, 1e-12, 1e-6, 1e-3, 0.1, 0.4, 0.999 * THRESHOLD, 1.001 * THRESHOLD, 1, 10]
RULES = {0: theory.sigma_0, -1: theory.sigma_minus_1}


@pytest.mark.parametrize("k", RULES)
@pytest.mark.parametrize("n", NUMBERS_OF_ROWS)
@pytest.mark.parametrize("p", NUMBERS_OF_COLUMNS)
def test_stationary_points_agree_with_mpmath(k, n, p):
    spacing = theory.even_spacing(n, p, l_max=2.5)
    for lam_per_n in LAM_PER_N:
        lam = lam_per_n * n
        expected = float(naive.sigma_k(k, n, p, 2.5, lam))
        assert RULES[k](n, spacing, lam) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", RULES)
@pytest.mark.parametrize("n", NUMBERS_OF_ROWS)
@pytest.mark.parametrize("step", [-1e-5, -9e-7, -1e-9, -1e-12, -1e-15, 0, 1e-15, 1e-12])
def test_stationary_points_agree_with_mpmath_next_to_the_branch_point(k, n, step):
    """W has a square-root singularity there: at the end half of the digits are all there is."""
    lam = theory.lambda_threshold(n) * (1 + step)
    expected = float(naive.sigma_k(k, n, 2, 1.0, lam))
    found = RULES[k](n, theory.even_spacing(n, 2, 1.0), lam)
    digits = 1e-12 + 1e-15 / np.sqrt(max(abs(step), 1e-16))
    assert found == pytest.approx(expected, rel=digits)


@pytest.mark.parametrize("n", NUMBERS_OF_ROWS)
def test_both_stationary_points_merge_at_the_threshold_and_stay_there_above(n):
    merged = 2 / np.pi * 0.3 * np.sqrt(1.5)
    for lam in (THRESHOLD * n, THRESHOLD * n * (1 + 1e-15), n, 10 * n):
        for rule in RULES.values():
            assert rule(n, 0.3, lam) == pytest.approx(merged, rel=1e-7)


@pytest.mark.parametrize("p", NUMBERS_OF_COLUMNS)
@pytest.mark.parametrize("n", NUMBERS_OF_ROWS)
def test_the_second_factor_agrees_with_mpmath(n, p):
    spacing = theory.even_spacing(n, p, l_max=2.5)
    for lam in (0, 1e-3, 0.5 * n):
        for sigma in (0.0, 0.2 * spacing, spacing, 4 * spacing):
            expected = float(naive.j_b(sigma, n, p, 2.5, lam))
            assert theory.j_b(sigma, n, spacing, lam) == pytest.approx(expected, rel=1e-12)


def test_the_approximate_norm_is_the_product_of_both_factors():
    sigma = np.geomspace(0.01, 10, 20).reshape(4, 5)
    expected = [[naive.j_b(s, 50, 2, 1.5, 1e-2) / s for s in row] for row in sigma]
    found = theory.approximate_jacobian_norm(sigma, 50, theory.even_spacing(50, 2, 1.5), 1e-2)
    np.testing.assert_allclose(found, np.array(expected, dtype=float), rtol=1e-12)


def test_without_a_penalty_the_norm_grows_beyond_all_bounds_in_silence():
    assert theory.approximate_jacobian_norm(1e6, n=10, spacing=1.0, lam=0) == np.inf


@given(
    n=st.integers(3, 10**9),
    share=st.floats(1e-9, 0.99),
    spacing=st.floats(1e-100, 1e100),
)
def test_sigma_0_is_a_minimum_and_sigma_minus_1_a_maximum_of_the_norm(n, share, spacing):
    lam = share * theory.lambda_threshold(n)
    for rule, sign in ((theory.sigma_0, 1), (theory.sigma_minus_1, -1)):
        around = rule(n, spacing, lam) * np.array([1, 1 - 1e-3, 1 + 1e-3])
        here, *nearby = sign * theory.approximate_jacobian_norm(around, n, spacing, lam)
        assert here < min(nearby)


def test_without_a_penalty_sigma_0_is_the_global_minimum():
    norm = theory.approximate_jacobian_norm
    best = norm(theory.sigma_0(20, 0.1, 0), 20, 0.1, 0)
    assert best <= norm(np.geomspace(1e-6, 1e6, 10_001), 20, 0.1, 0).min()


def test_above_the_threshold_the_norm_only_falls():
    lam = 1.01 * theory.lambda_threshold(20)
    values = theory.approximate_jacobian_norm(np.geomspace(1e-3, 1e3, 2000), 20, 0.1, lam)
    assert (np.diff(values) < 0).all()


@pytest.mark.parametrize("n", NUMBERS_OF_ROWS)
def test_the_regimes_change_at_zero_and_at_the_threshold(n):
    edge = theory.lambda_threshold(n)
    assert edge == pytest.approx(0.44626032029685964 * n, rel=1e-14)
    names = [theory.regime(n, lam) for lam in (0, 1e-300, edge, np.nextafter(edge, np.inf))]
    assert names == ["global minimum", "local minimum", "local minimum", "no minimum"]


@given(scale=st.floats(1e-100, 1e100), lam=st.floats(0, 100))
def test_both_stationary_points_scale_with_the_spacing(scale, lam):
    for rule in RULES.values():
        assert rule(30, scale, lam) == pytest.approx(scale * rule(30, 1.0, lam), rel=1e-14)


def test_even_spacing_is_the_distance_of_neighbours_on_a_grid():
    """The paper's n - 1 stands for the number of points on the grid."""
    side = np.linspace(0, 3, 7)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    spacing = theory.even_spacing(len(grid) + 1, 2, l_max=3)
    assert spacing == pytest.approx(naive.neighbour_spacing(grid)[0], rel=1e-14)


def test_the_slope_bound_holds_and_is_reached_at_a_distance_of_sigma(rng):
    """Proposition 3."""
    for sigma in (0.1, 1.0, 30.0):
        distance = np.append(sigma, rng.exponential(sigma, 1000))
        slopes = distance / sigma**2 * np.exp(-(distance**2) / (2 * sigma**2))
        assert theory.slope_bound(sigma) == pytest.approx(slopes.max(), rel=1e-14)


@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_the_inverse_norm_is_that_of_the_explicit_inverse(rng, lam):
    K = naive.kernel(naive.distances(X := rng.standard_normal((20, 3)), X), 1.0)
    expected = np.linalg.norm(np.linalg.inv(K + lam * np.eye(20)), 2)
    assert theory.inverse_norm(K, lam) == pytest.approx(expected, rel=1e-12)


def test_the_inverse_norm_of_a_singular_kernel_is_infinite():
    assert theory.inverse_norm(np.zeros((3, 3)), 0.0) == np.inf


@pytest.mark.parametrize("p", [1, 2, 5])
@pytest.mark.parametrize("lam", [0.0, 1e-3, 1.0])
def test_the_second_factor_bounds_the_inverse_from_below_up_to_three_sigma_0(rng, p, lam):
    """Proposition 4, on the bandwidths where it holds."""
    for n in (3, 12, 60):
        X = rng.standard_normal((n, p))
        D = naive.distances(X, X)
        spacing = theory.even_spacing(n, p, D.max())
        for sigma in np.array([0.1, 0.3, 1, 2, 3]) * theory.sigma_0(n, spacing, 0):
            norm = theory.inverse_norm(naive.kernel(D, sigma), lam)
            assert norm >= theory.j_b(sigma, n, spacing, lam) * (1 - 1e-12)


def test_the_second_factor_is_no_bound_far_beyond_sigma_0():
    """Proposition 4 as printed has no such limit; three points show that it needs one."""
    X = np.array([[0.0], [0.5], [1.0]])
    norm = theory.inverse_norm(naive.kernel(naive.distances(X, X), 3.0), 0.0)
    assert norm < 1e-4 * theory.j_b(3.0, 3, theory.even_spacing(3, 1, 1.0), 0.0)


@pytest.mark.parametrize("lam", [1e-3, 1.0])
@pytest.mark.parametrize("sigma", [0.05, 0.3, 2.0])
def test_no_gradient_exceeds_the_general_bound(surface, lam, sigma):
    """Proposition 2, with the slope bound of Proposition 3 and the true inverse norm."""
    X, y = surface
    est = JacobianKernelRidge(sigma, lam).fit(X, y)
    K = naive.kernel(naive.distances(X, X), sigma)
    inverse_norm = np.linalg.norm(np.linalg.inv(K + lam * np.eye(len(X))), 2)
    bound = theory.gradient_bound(theory.slope_bound(sigma), inverse_norm, y - y.mean())
    assert theory.true_jacobian_norm(est, X).max() <= bound


def test_the_general_bound_is_its_formula():
    y = [1.0, -2.0, 3.0]
    assert theory.gradient_bound(0.7, 5.0, y) == pytest.approx(3.5 * 3**0.5 * 14**0.5, rel=1e-14)


@pytest.mark.parametrize("targets", [1, 3])
def test_the_true_norm_agrees_with_finite_differences(rng, surface, targets):
    X, y = surface
    Y = y if targets == 1 else np.column_stack([y, y**2, X[:, 0]])
    est = JacobianKernelRidge(0.5).fit(X, Y)
    points = rng.uniform(-1, 1, (30, 2))
    J = naive.slopes(est.predict, points, h=1e-3).reshape(30, -1)
    norm = theory.true_jacobian_norm(est, points)
    # The fourth-order difference itself is good to about 1e-9 here.
    np.testing.assert_allclose(norm, np.linalg.norm(J, axis=1), rtol=1e-7)


@pytest.mark.parametrize("n", [0, 1.5, 2])
def test_two_points_have_no_even_spacing(n):
    with pytest.raises(ValueError, match="`n` must be a finite number > 2"):
        theory.even_spacing(n, 2, 1.0)
