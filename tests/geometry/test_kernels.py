"""Every kernel of the registry: against scikit-learn, mpmath, and numerical Fourier transforms."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, Matern, PairwiseKernel

import naive
from inside import CHUNK, KERNELS
from jacridge import Choice, select_bandwidth

RADIAL = [name for name, kernel in KERNELS.items() if kernel.power == 2]
SMOOTH = [name for name, kernel in KERNELS.items() if kernel.is_smooth]
every_kernel = pytest.mark.parametrize("name", KERNELS)


def of_gap(name, gap, sigma):
    power = KERNELS[name].power
    return naive.profile(name, mpmath.mpf(gap) ** (mpmath.mpf(1) / power) / sigma)


def gaps_between(name, X, Z):
    return cdist(X, Z, "sqeuclidean" if KERNELS[name].power == 2 else "cityblock")


def values(name, gaps, sigma):
    return KERNELS[name].of(np.array(gaps, dtype=float), sigma)


def test_the_kernels_are_exactly_these():
    assert list(KERNELS) == ["gaussian", "matern52", "matern32", "exponential", "laplacian"]
    assert all(kernel.name == name for name, kernel in KERNELS.items())
    assert SMOOTH == ["gaussian", "matern52", "matern32"]
    assert [k.smoothness for k in KERNELS.values()] == [np.inf, 2.5, 1.5, 0.5, 0.5]


@every_kernel
@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.0])
def test_values_agree_with_the_kernel_of_that_name_in_scikit_learn(rng, name, sigma):
    """The text for scikit-learn is evaluated, so it is tested with the values."""
    X, Z = rng.standard_normal((40, 3)), rng.standard_normal((30, 3))
    known = {"RBF": RBF, "Matern": Matern, "PairwiseKernel": PairwiseKernel}
    expected = eval(chosen(name, sigma).as_sklearn(), known)(X, Z)
    found = values(name, gaps_between(name, X, Z), sigma)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


@every_kernel
def test_values_replace_the_gaps_whatever_the_order_in_memory(rng, name):
    gaps = rng.uniform(0, 9, size=(3, CHUNK // 2 + 7))  # more than one chunk, and a rest
    expected = values(name, gaps, 1.3)
    np.testing.assert_allclose(
        expected[:, ::997],
        [[float(of_gap(name, g, 1.3)) for g in row] for row in gaps[:, ::997]],
        rtol=1e-12,
    )
    wide = np.zeros((6, 2 * gaps.shape[1]))
    for place in (gaps.copy(), np.asfortranarray(gaps), wide[::2, ::2], wide.T[::2, ::2].T):
        place[...] = gaps
        assert KERNELS[name].of(place, 1.3) is place
        np.testing.assert_array_equal(place, expected)
    assert not wide[1::2].any()


@pytest.mark.parametrize("name", RADIAL)
def test_expanded_squares_have_the_values_of_their_kernel_in_the_same_place(rng, name):
    """Those that are below zero by rounding have the value at zero, but for the root of that."""
    kernel, gaps = KERNELS[name], rng.uniform(0, 9, (7, 30))
    place = kernel.unit * gaps
    place[0, 0] = -1e-16 * kernel.unit
    assert kernel.of_expanded(place) is place
    gaps[0, 0] = 0
    np.testing.assert_allclose(place, values(name, gaps, 1.0), rtol=1e-13, atol=2e-8)


@every_kernel
@pytest.mark.parametrize("shape", [(), (0,), (0, 4), (4, 0), (1, 1)])
def test_arrays_of_any_shape_are_taken(name, shape):
    assert KERNELS[name].of(np.zeros(shape), 1.0).shape == shape
    assert (KERNELS[name].of(np.zeros(shape), 1.0) == 1).all()


@every_kernel
@pytest.mark.parametrize("sigma", [1e-150, 1e-8, 1.0, 1e8, 1e150])
def test_the_kernel_is_one_at_zero_and_zero_far_away_without_a_warning(name, sigma):
    with np.errstate(all="raise"):
        found = values(name, [0.0, 1e300, np.inf], sigma)
        slopes = KERNELS[name].slope(np.array([0.0, 1e300, np.inf]), sigma)
    assert found[0] == 1
    assert found[2] == 0
    if sigma <= 1e8:
        assert found[1] == 0
    assert np.isfinite(found).all()
    assert np.isfinite(slopes).all()


@every_kernel
@pytest.mark.parametrize("sigma", [0.4, 3.0])
def test_slopes_agree_with_mpmath(name, sigma):
    gaps = np.geomspace(1e-6, 40, 25)
    with mpmath.workdps(40):
        expected = [float(mpmath.diff(lambda g: of_gap(name, g, sigma), g)) for g in gaps]
    found = KERNELS[name].slope(gaps, sigma)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (found < 0).all()


@every_kernel
def test_slopes_leave_the_gaps_as_they_are(name):
    gaps = np.linspace(0, 5, 12).reshape(3, 4)
    assert KERNELS[name].slope(gaps, 1.0).shape == (3, 4)
    np.testing.assert_array_equal(gaps, np.linspace(0, 5, 12).reshape(3, 4))


@every_kernel
def test_the_slope_at_zero_is_the_limit_or_zero_where_there_is_none(name):
    slope = KERNELS[name].slope(np.array([0.0, 1e-20, 1e-12]), 0.7)
    if name == "exponential":
        assert slope[0] == slope[1] == 0  # a distance of 1e-10 may be rounding
        assert slope[2] < -1e5
    else:
        assert slope[0] == pytest.approx(slope[1], rel=1e-7)  # 1e-20 is a distance of 1e-10


@every_kernel
def test_the_largest_slope_is_that_of_a_numerical_search(name):
    with mpmath.workdps(40):

        def slope(r):
            return -mpmath.diff(lambda q: naive.profile(name, q), r)

        # A kernel with a kink is steepest at zero, the others where the curvature changes sign.
        smooth = KERNELS[name].is_smooth
        steepest = slope(mpmath.findroot(lambda r: mpmath.diff(slope, r), 0.7) if smooth else 1e-18)
    assert KERNELS[name].largest_slope == pytest.approx(float(steepest), rel=1e-12)


@every_kernel
@pytest.mark.parametrize("omega", [0.0, 0.3, 1.0, 4.0])
def test_the_spectral_density_is_the_fourier_transform_on_the_line(name, omega):
    transform, _ = quad(
        lambda r: 2 * float(naive.profile(name, r)), 0, 60, weight="cos", wvar=omega, epsabs=1e-11
    )
    assert np.exp(KERNELS[name].log_spectral_density(omega, 1)) == pytest.approx(
        transform, abs=1e-9
    )


@pytest.mark.parametrize("name", RADIAL)
@pytest.mark.parametrize("p", [2, 3, 30])
def test_the_spectral_density_integrates_to_one_in_p_dimensions(name, p):
    """k(0) = 1: the area of the sphere times the integral of omega^(p-1) S over (2 pi)^p."""
    log_area = np.log(2) + p / 2 * np.log(np.pi) - float(mpmath.loggamma(p / 2))

    def density(x):  # x = log(omega)
        log_S = KERNELS[name].log_spectral_density(np.exp(x), p)
        return np.exp(log_area + p * x + log_S - p * np.log(2 * np.pi))

    total, _ = quad(density, -30, 30, points=[0, np.log(p)], limit=200, epsabs=1e-12)
    assert total == pytest.approx(1, abs=1e-9)


def test_the_laplacian_s_density_is_a_product_on_the_diagonal():
    kernel = KERNELS["laplacian"]
    found = kernel.log_spectral_density(np.sqrt(3) * 0.8, 3)
    assert found == pytest.approx(3 * kernel.log_spectral_density(0.8, 1), rel=1e-14)


@every_kernel
def test_the_log_density_stays_finite_where_the_density_does_not(name):
    kernel = KERNELS[name]
    omega = np.array([0.0, 1.0, 1e3])
    assert np.isfinite(kernel.log_spectral_density(omega, 400)).all()


@every_kernel
@pytest.mark.parametrize("p", [1, 4])
def test_the_eigenvalue_on_a_grid_has_the_derivatives_of_its_logarithm(name, p):
    """Central differences of step 1e-4 in log(scale) are good to about 1e-8."""
    lattice = KERNELS[name].lattice
    scale, h = np.geomspace(0.15, 20, 30), 1e-4
    here, below, above = (lattice(scale * np.exp(step), p) for step in (0, -h, h))
    np.testing.assert_allclose((below.log - above.log) / (2 * h), here.fall, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose((above.fall - below.fall) / (2 * h), here.bend, rtol=1e-6, atol=1e-8)


@every_kernel
@pytest.mark.parametrize("tol", [0.9, 0.5, 1e-6, 1e-18, 1e-200])
@pytest.mark.parametrize("sigma", [1e-3, 2.0])
def test_at_its_reach_the_kernel_is_the_tolerance(name, tol, sigma):
    """Far out k falls by its own size times the relative error of the gap times its logarithm."""
    gap = KERNELS[name].reach(sigma, tol)
    assert values(name, [gap], sigma)[0] == pytest.approx(tol, rel=1e-11)


def chosen(kernel, sigma):
    """A bandwidth for a kernel; the rest of the choice has no part in the names."""
    return replace(select_bandwidth(np.eye(3)), kernel=kernel, sigma=sigma)


def test_names_in_other_packages():
    """kernlab's laplacedot takes the Euclidean distance: it is `exponential` here."""
    assert chosen("gaussian", 2.0).gamma == chosen("gaussian", 2.0).as_kernlab() == 0.125
    assert chosen("laplacian", 2.0).gamma == chosen("exponential", 2.0).as_kernlab() == 0.5
    assert chosen("gaussian", 2).as_gpytorch() == "RBFKernel().initialize(lengthscale=2.0)"
    matern = "MaternKernel(nu=1.5).initialize(lengthscale=0.5)"
    assert chosen("matern32", 0.5).as_gpytorch() == matern
    assert chosen("gaussian", 3).as_krls() == 18


@every_kernel
@pytest.mark.parametrize(
    ("asked", "where", "known"),
    [
        (lambda c: c.gamma, "as .*`gamma` in scikit-learn", {"gaussian", "laplacian"}),
        (Choice.as_gpytorch, "in GPyTorch", set(RADIAL)),
        (Choice.as_length_scale, "in GPyTorch", set(RADIAL)),
        (Choice.as_kernlab, "in kernlab", {"gaussian", "exponential"}),
        (Choice.as_krls, "in KRLS", {"gaussian"}),
    ],
)
def test_what_has_no_counterpart_is_refused(name, asked, where, known):
    if name in known:
        assert asked(chosen(name, 1.0))
    else:
        with pytest.raises(ValueError, match=f"'{name}' does not exist {where}"):
            asked(chosen(name, 1.0))
