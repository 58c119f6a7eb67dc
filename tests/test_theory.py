"""Definition 1 and Propositions 1 to 4: against mpmath, finite differences, and as inequalities."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigvalsh

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


KERNELS = ["gaussian", "matern52", "matern32", "exponential", "laplacian"]
WITH_A_RULE = ["gaussian", "matern52", "matern32"]


def closed_form(kernel, a):
    """Smallest eigenvalue on a line, with T = tanh(a / 2) and a = sqrt(2 nu) / scale."""
    T = mpmath.tanh(a / 2)
    S = 1 - T**2
    return {"exponential": T, "matern32": T - a * S / 2}.get(
        kernel, T - a * S / 2 - a**2 * S * T / 6
    )


@pytest.mark.parametrize("lam", [-1, np.nan])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_penalty_below_zero_has_no_regime(kernel, lam):
    with pytest.raises(ValueError, match="`lam` must be a finite number >= 0, got"):
        theory.regime(100, lam)
    with pytest.raises(ValueError, match="`lam` must be a finite number >= 0, got"):
        theory.lattice_regime(kernel, 1, lam)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", [0.1, 0.3, 0.399, 0.401, 0.6, 1, 2.5])
def test_the_lattice_eigenvalue_is_the_alternating_sum(kernel, scale):
    with mpmath.workdps(50):
        expected = float(naive.grid_eigenvalue(kernel, mpmath.mpf(scale)))
    found = theory.lattice_eigenvalue(0.7 * scale, kernel, 0.7, 1)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("kernel", "nu"), [("exponential", 1), ("matern32", 3), ("matern52", 5)])
def test_the_lattice_eigenvalue_is_the_closed_form_also_where_that_cancels(kernel, nu):
    """At a scale of 10,000 the formula of matern52 loses 18 digits in doubles."""
    for scale in np.geomspace(0.05, 1e4, 30):
        with mpmath.workdps(60):
            expected = float(closed_form(kernel, mpmath.sqrt(nu) / mpmath.mpf(scale)))
        assert theory.lattice_eigenvalue(scale, kernel, 1.0, 1) == pytest.approx(
            expected, rel=1e-12
        )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [40, 400])
def test_on_a_line_the_eigenvalue_is_just_below_that_of_finite_grids(kernel, n):
    """Within 1 % for n = 400, and for n = 40 up to the bandwidth of the rule."""
    for scale in (0.2, 0.45, 0.6) + ((1.0,) if n == 400 else ()):
        [smallest] = eigvalsh(naive.grid_matrix(kernel, scale, n, 1), subset_by_index=[0, 0])
        found = theory.lattice_eigenvalue(scale, kernel, 1.0, 1)
        assert 0.99 * smallest < found < smallest


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("side", "p"), [(24, 2), (9, 3)])
def test_in_the_plane_and_in_space_it_is_below_that_of_finite_grids(kernel, side, p):
    """With so few points a side the boundary is felt, by 4 % in the plane, by 30 % in space."""
    for scale in (0.2, 0.4, 0.6):
        [smallest] = eigvalsh(naive.grid_matrix(kernel, scale, side, p), subset_by_index=[0, 0])
        found = theory.lattice_eigenvalue(scale, kernel, 1.0, p)
        assert (0.96 if p == 2 else 0.7) * smallest < found < smallest
        assert theory.lattice_eigenvalue_bound(scale, kernel, 1.0, p) < found


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_bound_is_the_leading_term_and_all_there_is_for_wide_gaussians(kernel):
    sigma = np.geomspace(0.01, 100, 40)
    for p in (1, 2, 10, 30):
        bound = theory.lattice_eigenvalue_bound(sigma, kernel, 0.3, p)
        exact = theory.lattice_eigenvalue(sigma, kernel, 0.3, p)
        assert (bound <= exact * (1 + 1e-12)).all()  # rounding, where both are equal
    wide = theory.lattice_eigenvalue_bound([1.5, 3.0], "gaussian", 1.0, 2)
    np.testing.assert_allclose(
        wide, theory.lattice_eigenvalue([1.5, 3.0], "gaussian", 1.0, 2), rtol=1e-12
    )


@pytest.mark.parametrize("kernel", ["gaussian", "matern52", "matern32", "exponential"])
@pytest.mark.parametrize(("p", "scale"), [(2, 0.4), (2, 0.9), (3, 0.4)])
def test_in_p_dimensions_the_eigenvalue_is_the_alternating_sum(kernel, p, scale):
    with mpmath.workdps(30):
        expected = float(naive.corner_sum(kernel, mpmath.mpf(scale), p))
    assert theory.lattice_eigenvalue(scale, kernel, 1.0, p) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_lattice_norm_is_the_largest_slope_over_the_eigenvalue(kernel):
    sigma, h = np.geomspace(0.1, 1, 6).reshape(2, 3), 0.5
    c = {"gaussian": 0.6065306597126334, "matern52": 0.6260707807255188}
    c |= {"matern32": 0.637185883168984, "exponential": 1, "laplacian": 1}
    with mpmath.workdps(30):
        eigenvalue = [[float(naive.grid_eigenvalue(kernel, s / h)) for s in row] for row in sigma]
    for lam in (0, 0.3):
        expected = c[kernel] / sigma / (np.array(eigenvalue) + lam)
        found = theory.lattice_jacobian_norm(sigma, kernel, h, 1, lam)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_lattice_norm_takes_any_bandwidth_in_silence(kernel):
    sigma = np.array([1e-150, 1e-20, 1e-3, 1e3, 1e20, 1e150])
    for p in (1, 30):
        values = theory.lattice_jacobian_norm(sigma, kernel, 1.0, p, lam=1e-3)
        np.testing.assert_allclose(values[:2] * sigma[:2], values[0] * sigma[0], rtol=1e-12)
        assert (np.diff(values) < 0).all()
        assert not np.isnan(theory.lattice_jacobian_norm(sigma, kernel, 1.0, p, lam=0)).any()
        assert (theory.lattice_eigenvalue_bound(sigma, kernel, 1.0, p) <= 1).all()
        eigenvalues = theory.lattice_eigenvalue(sigma, kernel, 1.0, p)
        np.testing.assert_allclose(eigenvalues[:2], 1, rtol=1e-12)
        assert (np.diff(eigenvalues) <= 1e-12).all()


def mpmath_minimum(kernel, lam):
    """Zero of the derivative of log J, with J by the alternating sum."""

    def log_norm(x):
        return -x - mpmath.log(naive.grid_eigenvalue(kernel, mpmath.exp(x)) + lam)

    start = mpmath.log(theory.lattice_sigma_0(kernel, 1.0, 1, lam))
    return mpmath.exp(mpmath.findroot(lambda x: mpmath.diff(log_norm, x), (start, start + 0.01)))


@pytest.mark.parametrize("kernel", WITH_A_RULE)
@pytest.mark.parametrize("share", [0, 1e-3, 0.5, 0.99])
def test_sigma_0_of_a_kernel_is_mpmath_s_minimum(kernel, share):
    lam = share * theory.lattice_lambda_threshold(kernel, 1)
    with mpmath.workdps(30):
        expected = float(mpmath_minimum(kernel, mpmath.mpf(lam)))
    assert theory.lattice_sigma_0(kernel, 0.2, 1, lam) == pytest.approx(0.2 * expected, rel=1e-10)


@pytest.mark.parametrize(
    ("kernel", "known"), [("gaussian", 0.4495), ("matern52", 0.4903), ("matern32", 0.5284)]
)
def test_sigma_0_without_a_penalty_is_a_known_share_of_the_spacing(kernel, known):
    assert theory.lattice_sigma_0(kernel, 1.0, 1, 0) == pytest.approx(known, abs=5e-5)  # 4 decimals


@pytest.mark.parametrize("kernel", WITH_A_RULE)
@pytest.mark.parametrize("p", [1, 2, 10, 100])
@pytest.mark.parametrize("share", [1e-9, 1e-3, 0.5, 0.99])
def test_the_lattice_norm_has_its_minimum_and_maximum_where_they_are_said_to_be(kernel, p, share):
    lam = share * theory.lattice_lambda_threshold(kernel, p)
    low = theory.lattice_sigma_0(kernel, 0.3, p, lam)
    high = theory.lattice_sigma_minus_1(kernel, 0.3, p, lam)
    for sigma, sign in ((low, 1), (high, -1)):
        around = sigma * np.array([1, 1 - 1e-3, 1 + 1e-3])
        here, *nearby = sign * theory.lattice_jacobian_norm(around, kernel, 0.3, p, lam)
        assert here < min(nearby)
    assert low < high


@pytest.mark.parametrize("kernel", WITH_A_RULE)
@pytest.mark.parametrize("p", [1, 20])
def test_minimum_and_maximum_of_a_kernel_merge_at_its_threshold(kernel, p):
    edge = theory.lattice_lambda_threshold(kernel, p)
    merged = theory.lattice_sigma_0(kernel, 1.0, p, 1e6)
    for lam in (edge, edge * (1 + 1e-15), 2 * edge):
        for rule in (theory.lattice_sigma_0, theory.lattice_sigma_minus_1):
            # At the edge itself half of the digits are all there is.
            assert rule(kernel, 1.0, p, lam) == pytest.approx(merged, rel=1e-7)
    sigma = np.geomspace(1e-2, 1e2, 800)
    above = theory.lattice_jacobian_norm(sigma, kernel, 1.0, p, 1.01 * edge)
    assert (np.diff(above) < 0).all()
    below = theory.lattice_jacobian_norm(sigma, kernel, 1.0, p, 0.99 * edge)
    assert (np.diff(below) > 0).any()


@pytest.mark.parametrize("kernel", WITH_A_RULE)
def test_the_merging_point_is_mpmath_s(kernel):
    """Where the largest value of eigenvalue * (E - 1) = -d(sigma eigenvalue)/d sigma lies."""
    with mpmath.workdps(30):
        start = mpmath.mpf(theory.lattice_sigma_0(kernel, 1.0, 1, 1e6))

        def height(s):
            return -mpmath.diff(lambda t: t * naive.grid_eigenvalue(kernel, t), s)

        top = mpmath.findroot(lambda s: mpmath.diff(height, s), (start, start * 1.01))
        threshold = float(height(top))
    assert float(start) == pytest.approx(float(top), rel=1e-9)
    assert theory.lattice_lambda_threshold(kernel, 1) == pytest.approx(threshold, rel=1e-12)


@pytest.mark.parametrize("kernel", WITH_A_RULE)
@pytest.mark.parametrize("p", [1, 7])
def test_the_regimes_of_a_kernel_change_at_zero_and_at_its_threshold(kernel, p):
    edge = theory.lattice_lambda_threshold(kernel, p)
    lams = (0, 1e-300, edge, np.nextafter(edge, np.inf))
    names = [theory.lattice_regime(kernel, p, lam) for lam in lams]
    assert names == ["global minimum", "local minimum", "local minimum", "no minimum"]


def test_without_a_penalty_a_kernel_has_no_maximum():
    assert theory.lattice_sigma_minus_1("matern32", 1.0, 2, 0) == np.inf
    assert np.isfinite(theory.lattice_sigma_minus_1("gaussian", 1.0, 2, 1e-320))


@pytest.mark.parametrize(("kernel", "nu"), [("matern52", 2.5), ("matern32", 1.5)])
@pytest.mark.parametrize("p", [1, 3, 1000])
def test_the_maximum_moves_as_a_power_of_the_smallest_penalties(kernel, nu, p):
    """Far out the eigenvalue is a power of sigma, -2 nu, and so is the penalty at the maximum."""
    found = [theory.lattice_sigma_minus_1(kernel, 1.0, p, lam) for lam in (1e-150, 1e-300)]
    assert found[1] / found[0] == pytest.approx(10 ** (150 / (2 * nu)), rel=1e-10)


@settings(max_examples=20)
@given(scale=st.floats(1e-100, 1e100), lam=st.floats(0, 1))
def test_sigma_0_of_a_kernel_scales_with_the_spacing(scale, lam):
    for kernel in WITH_A_RULE:
        expected = scale * theory.lattice_sigma_0(kernel, 1.0, 2, lam)
        assert theory.lattice_sigma_0(kernel, scale, 2, lam) == pytest.approx(expected, rel=1e-14)


def test_in_one_dimension_the_leading_term_is_the_paper_s_rule():
    expected = theory.sigma_0(n=100, spacing=0.3, lam=0)
    assert theory.leading_sigma_0("gaussian", 0.3, 1) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("kernel", WITH_A_RULE)
@pytest.mark.parametrize("p", [1, 2, 10])
def test_the_closed_form_minimises_the_norm_with_the_leading_term(kernel, p):
    around = theory.leading_sigma_0(kernel, 0.3, p) * np.array([1, 1 - 1e-4, 1 + 1e-4])
    J = 1 / (around * theory.lattice_eigenvalue_bound(around, kernel, 0.3, p))
    assert J[0] < min(J[1:])


@pytest.mark.parametrize("kernel", ["exponential", "laplacian"])
def test_kernels_with_a_kink_have_no_rule(kernel):
    rules = [
        lambda: theory.lattice_sigma_0(kernel, 1.0, 2, 1e-3),
        lambda: theory.lattice_sigma_minus_1(kernel, 1.0, 2, 1e-3),
        lambda: theory.lattice_lambda_threshold(kernel, 2),
        lambda: theory.leading_sigma_0(kernel, 1.0, 2),
    ]
    for rule in rules:
        with pytest.raises(ValueError, match=r"has no minimum.*`median`.*`auto`"):
            rule()
    assert theory.lattice_regime(kernel, 1, 0) == "no minimum"


@pytest.mark.parametrize("p", [1, 2, 30])
def test_the_norm_of_the_exponential_kernel_only_falls(p):
    values = theory.lattice_jacobian_norm(np.geomspace(1e-2, 1e2, 500), "exponential", 1.0, p, 0)
    assert (np.diff(values) < 0).all()


def test_the_norm_of_the_laplacian_falls_on_scattered_rows_but_not_on_a_grid(rng):
    """On a grid rows share coordinates, and the eigenvalue falls like sigma^-p, not sigma^-1."""
    sigma = np.array([20.0, 40.0])
    on_grid = theory.lattice_eigenvalue(sigma, "laplacian", 1.0, 2)
    X = rng.uniform(0, 5, (30, 2))
    D = np.abs(X[:, None] - X).sum(axis=2)
    scattered = [eigvalsh(np.exp(-D / s), subset_by_index=[0, 0])[0] for s in sigma]
    assert on_grid[0] / on_grid[1] == pytest.approx(4, rel=0.01)  # both up to 1 / sigma^2
    assert scattered[0] / scattered[1] == pytest.approx(2, rel=0.05)  # up to 1 / sigma


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_kernel_is_steeper_than_its_slope_bound(kernel):
    sigma, r = 0.7, np.linspace(1e-3, 8, 4001)
    K = np.array([float(naive.profile(kernel, mpmath.mpf(d) / sigma)) for d in r])
    steepest = np.abs(np.diff(K) / np.diff(r)).max()
    assert theory.slope_bound(sigma, kernel) == pytest.approx(steepest, rel=3e-3)  # grid of r
    assert theory.slope_bound(sigma, kernel) > steepest


def test_arguments_of_the_lattice_are_checked():
    with pytest.raises(ValueError, match="`kernel` must be one of 'gaussian', 'matern52'"):
        theory.lattice_sigma_0("cubic", 1.0, 1, 0)
    with pytest.raises(ValueError, match="`spacing` must be a finite number > 0"):
        theory.lattice_sigma_0("gaussian", 0.0, 1, 0)
    with pytest.raises(ValueError, match="`lam` must be a finite number >= 0"):
        theory.lattice_sigma_0("gaussian", 1.0, 1, -1)
    with pytest.raises(ValueError, match="`p` must be a whole number >= 1"):
        theory.lattice_eigenvalue(1.0, "gaussian", 1.0, 0)
