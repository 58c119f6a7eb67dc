"""Every kernel with every solver, against scikit-learn, finite differences and refits."""

import io
import pickle

import numpy as np
import polars as pl
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, PairwiseKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import laplacian_kernel

import naive
from jacridge import JacobianKernelRidge, JacobianNystroem, select_bandwidth
from jacridge.parquet import ParquetFiles
from known import KERNELS, SMOOTH

SIGMA, ALPHA = 0.9, 1e-2
KINKED = [name for name in KERNELS if name not in SMOOTH]
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_solver = pytest.mark.parametrize("solver", ["exact", "nystrom", "pcg"])
# Conjugate gradients stop at a relative residual of 1e-7.
PRECISION = {"exact": 1e-8, "nystrom": 1e-8, "pcg": 1e-5}


def in_sklearn(kernel, sigma=SIGMA):
    """The kernel of scikit-learn's Gaussian processes: a function of X and Z, too."""
    return {
        "gaussian": RBF(sigma),
        "matern52": Matern(sigma, nu=2.5),
        "matern32": Matern(sigma, nu=1.5),
        "exponential": Matern(sigma, nu=0.5),
        "laplacian": PairwiseKernel(metric="laplacian", gamma=1 / sigma),
    }[kernel]


@pytest.fixture
def rows(rng):
    """X (70, 3), two targets (70, 2), weights (70,), new rows (20, 3)."""
    X = rng.standard_normal((70, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2] ** 2 + 3])
    return X, Y, rng.uniform(0.5, 3, 70), rng.standard_normal((20, 3))


def ridge(kernel, solver="exact", bandwidth=SIGMA, alpha=ALPHA, **options):
    more = {} if solver == "exact" else {"n_landmarks": 25}
    options = {"landmarks": "uniform", "random_state": 0, **more, **options}
    return JacobianKernelRidge(bandwidth, alpha, kernel=kernel, solver=solver, **options)


def kernel_of_model(est, kernel):
    """K(X, Z) of the model, from scikit-learn's kernel: with landmarks that of their span."""
    k, Z = in_sklearn(kernel), est.X_fit_
    if est.solver_ != "nystrom":
        return k
    return lambda A, B: k(A, Z) @ np.linalg.solve(k(Z, Z), k(Z, B))


@every_kernel
def test_predictions_and_deviations_are_those_of_scikit_learn_s_gaussian_process(rows, kernel):
    X, Y, _, X_new = rows
    y = Y[:, 0] - Y[:, 0].mean()
    theirs = GaussianProcessRegressor(in_sklearn(kernel), alpha=ALPHA, optimizer=None).fit(X, y)
    mean, std = theirs.predict(X_new, return_std=True)
    ours, deviation = ridge(kernel).fit(X, Y[:, 0]).predict(X_new, return_std=True)
    np.testing.assert_allclose(ours, mean + Y[:, 0].mean(), rtol=1e-8, atol=1e-8)
    # Their kernel has unit variance, ours that of the largest likelihood.
    scale = np.sqrt(y @ np.ravel(theirs.alpha_) / len(y))
    np.testing.assert_allclose(deviation, scale * std, rtol=1e-8, atol=1e-8)


def test_the_laplacian_kernel_is_that_of_scikit_learn_s_kernel_ridge(rows):
    X, Y, w, X_new = rows
    mean = np.average(Y, axis=0, weights=w)
    theirs = KernelRidge(kernel="laplacian", gamma=1 / SIGMA, alpha=ALPHA).fit(X, Y - mean, w)
    ours = ridge("laplacian").fit(X, Y, w).predict(X_new)
    np.testing.assert_allclose(ours, theirs.predict(X_new) + mean, rtol=1e-8, atol=1e-8)


@every_solver
@every_kernel
def test_weights_and_several_targets_are_those_of_scikit_learn(rows, kernel, solver):
    X, Y, w, X_new = rows
    est = ridge(kernel, solver).fit(X, Y, w)
    assert (est.solver_, est.kernel_) == (solver, kernel)
    k, mean = kernel_of_model(est, kernel), np.average(Y, axis=0, weights=w)
    theirs = KernelRidge(kernel="precomputed", alpha=ALPHA).fit(k(X, X), Y - mean, w)
    close = PRECISION[solver]
    expected = theirs.predict(k(X_new, X)) + mean
    np.testing.assert_allclose(est.predict(X_new), expected, rtol=close, atol=close)


@every_kernel
def test_deviations_with_landmarks_are_those_of_inducing_points(rows, kernel):
    """Variance of the kernel that landmarks leave out, and of a process of what they keep."""
    X, Y, _, X_new = rows
    est = ridge(kernel, "nystrom").fit(X, Y[:, 0])
    q, y = kernel_of_model(est, kernel), Y[:, 0] - Y[:, 0].mean()
    B = np.linalg.inv(q(X, X) + ALPHA * np.eye(70))
    variance = 1 - np.einsum("ij,jk,ik->i", q(X_new, X), B, q(X_new, X))
    expected = np.sqrt(variance * (y @ B @ y) / 70)
    np.testing.assert_allclose(est.predict(X_new, return_std=True)[1], expected, rtol=1e-7)


@every_solver
@every_kernel
def test_the_jacobian_is_that_of_finite_differences(rows, kernel, solver):
    """New rows share no coordinate with a training row, so that steps cross no kink."""
    X, Y, _, X_new = rows
    est = ridge(kernel, solver).fit(X, Y)
    step = 1e-4 if kernel not in KINKED else 0.2 * np.abs(X_new[:, None] - est.X_fit_).min() / 2
    slopes = naive.slopes(est.predict, X_new, step)
    np.testing.assert_allclose(est.jacobian(X_new), slopes, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("kernel", KINKED)
def test_at_a_training_row_its_own_kink_counts_as_flat(kernel):
    """Of two rows, each kernel's slope at its own row is zero: what is left is the other's."""
    X = np.array([[0.0], [2.0]])
    est = JacobianKernelRidge(1.0, 0.5, kernel=kernel, fit_intercept=False).fit(X, [1.0, 3.0])
    c = est.dual_coef_
    slopes = [[c[1] * np.exp(-2)], [-c[0] * np.exp(-2)]]
    np.testing.assert_allclose(est.jacobian(X), slopes, rtol=1e-12)


@pytest.mark.parametrize("kernel", KINKED)
@pytest.mark.parametrize("metric", ["euclidean", "scaled", "full"])
def test_a_row_that_rounding_moved_off_a_kink_counts_as_flat(rows, kernel, metric):
    """Means of clusters, and rows that come back from a map, differ from rows in their last digits.

    A kink sees no more than its own feature (or distance), so that the mean over both sides is the
    slope without it.
    """
    X, Y, _, _ = rows
    est = ridge(kernel, "nystrom", metric=metric, landmarks="kmeans", n_landmarks=50)
    est.fit(X, Y[:, 0])
    J, step = est.jacobian(X), np.full(3, 1e-7)
    np.testing.assert_allclose(
        (est.jacobian(X + step) + est.jacobian(X - step)) / 2, J, atol=1e-5
    )  # steps of 1e-7 over a curved function
    found = [row.estimate for row in est.effects()]
    np.testing.assert_allclose(found, J.mean(axis=0), atol=1e-8)  # rows are kept to 11 digits


@pytest.mark.parametrize("solver", ["exact", "nystrom"])
@every_kernel
def test_leave_one_out_residuals_are_those_of_refits(rows, kernel, solver):
    X, Y, w, _ = rows
    Z = X[:25] + 0.3  # landmarks that stay where rows leave
    landmarks = {"landmarks": Z, "n_landmarks": None} if solver == "nystrom" else {}
    est = ridge(kernel, solver, **landmarks).fit(X, Y, w)
    refits = naive.leave_one_out(lambda: ridge(kernel, solver, **landmarks), X, Y, w)
    np.testing.assert_allclose(est.loo_residuals_, refits, rtol=1e-8, atol=1e-8)


@every_kernel
def test_dask_and_parquet_give_what_arrays_give(rows, kernel, tmp_path):
    da = pytest.importorskip("dask.array")
    X, Y, w, X_new = rows
    frame = pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(y=Y[:, 0], w=w)
    frame[:30].write_parquet(tmp_path / "0.parquet")
    frame[30:].write_parquet(tmp_path / "1.parquet")
    files = ParquetFiles(str(tmp_path / "*.parquet"), ["a", "b", "c"])
    lazy = (da.from_array(each, chunks=(33, *each.shape[1:])) for each in (X, Y[:, 0], w))

    def fitted(*data):
        return ridge(kernel, "nystrom", bandwidth="median").fit(*data)

    known = fitted(X, Y[:, 0], w)
    for est in (fitted(*lazy), fitted(files, "y", "w")):
        assert est.bandwidth_ == pytest.approx(known.bandwidth_, rel=1e-12)
        np.testing.assert_allclose(est.dual_coef_, known.dual_coef_, rtol=1e-8, atol=1e-8)
    predicted = known.predict(da.from_array(X_new, chunks=(7, 3))).compute()
    # A value near zero is a sum of larger terms, and rounds as these do.
    np.testing.assert_allclose(predicted, known.predict(X_new), rtol=1e-12, atol=1e-12)
    slopes = known.jacobian(da.from_array(X_new, chunks=(7, 3))).compute()
    np.testing.assert_allclose(slopes, known.jacobian(X_new), rtol=1e-10, atol=1e-12)


@every_solver
@every_kernel
def test_models_come_back_from_pickle_and_skops(rows, kernel, solver):
    skops = pytest.importorskip("skops.io")
    X, Y, w, X_new = rows
    est = ridge(kernel, solver).fit(X, Y, w)
    file = io.BytesIO(skops.dumps(est))
    trusted = skops.get_untrusted_types(file=file)
    assert all(name.startswith("jacridge.") for name in trusted)
    for back in (pickle.loads(pickle.dumps(est)), skops.load(file, trusted=trusted)):
        assert back.kernel_ == kernel
        np.testing.assert_array_equal(back.predict(X_new), est.predict(X_new))
        np.testing.assert_array_equal(back.jacobian(X_new), est.jacobian(X_new))
        if solver != "pcg":
            std = est.predict(X_new, return_std=True)[1]
            np.testing.assert_allclose(back.predict(X_new, True)[1], std, rtol=1e-8)


@every_kernel
def test_intervals_come_from_the_models_that_leave_a_row_out(rows, kernel):
    """Jackknife+: quantiles of predictions of actual refits, less and plus their residuals."""
    X, Y, _, X_new = rows
    X, y = X[:30], Y[:30, 0]
    lower, upper = ridge(kernel).fit(X, y).predict_interval(X_new, 0.8, adaptive=False)
    refits = [ridge(kernel).fit(np.delete(X, i, 0), np.delete(y, i)) for i in range(30)]
    at_new = np.array([refit.predict(X_new) for refit in refits])
    sizes = np.abs([y[i] - refits[i].predict(X[[i]])[0] for i in range(30)])[:, None]
    rank = int(np.ceil(0.8 * 31)) - 1
    np.testing.assert_allclose(upper, np.sort(at_new + sizes, axis=0)[rank], rtol=1e-8)
    np.testing.assert_allclose(lower, -np.sort(sizes - at_new, axis=0)[rank], rtol=1e-8)


@every_kernel
def test_features_of_landmarks_multiply_to_the_kernel(rows, kernel):
    X, _, _, X_new = rows
    phi = JacobianNystroem(SIGMA, 70, kernel=kernel, random_state=0, landmarks="uniform").fit(X)
    products = phi.transform(X_new) @ phi.transform(X).T
    np.testing.assert_allclose(products, in_sklearn(kernel)(X_new, X), rtol=1e-8, atol=1e-8)


@every_kernel
def test_rounding_does_not_show_where_a_row_is_a_landmark(rng, kernel):
    """Also for a kink, and for rows a hundred bandwidths away from the others."""
    X = rng.standard_normal((60, 3)) * 30
    phi = JacobianNystroem(1.0, 60, kernel=kernel, landmarks="uniform", random_state=0).fit(X)
    products = phi.transform(X) @ phi.transform(X).T
    np.testing.assert_allclose(products, in_sklearn(kernel, 1.0)(X, X), rtol=1e-8, atol=1e-10)


@every_kernel
def test_a_search_finds_the_least_leave_one_out_error_of_its_kernel(rows, kernel):
    X, Y, _, _ = rows
    grid = np.geomspace(0.2, 8, 9)
    scale = Y.var(axis=0)
    errors = [
        np.mean((ridge(kernel, bandwidth=s).fit(X, Y).loo_residuals_ ** 2).mean(axis=0) / scale)
        for s in grid
    ]
    found = select_bandwidth(X, Y, "loo", alpha=ALPHA, kernel=kernel, grid=grid)
    assert found.sigma == pytest.approx(grid[int(np.argmin(errors))])


@pytest.mark.parametrize("kernel", KINKED)
@pytest.mark.parametrize("rule", ["jacobian", "jacobian_median", "jacobian_lattice"])
def test_a_kernel_without_a_minimum_says_so_and_what_to_use(rows, kernel, rule):
    with pytest.raises(ValueError, match=rf"{kernel}.* has no minimum.*`median`.*`auto`"):
        JacobianKernelRidge(rule, kernel=kernel).fit(rows[0], rows[1])


@pytest.fixture
def stations(rng):
    """Places all over the globe, evenly, with what the weather might be there."""
    lat = np.degrees(np.arcsin(rng.uniform(-1, 1, 300)))
    X = np.column_stack([lat, rng.uniform(-180, 180, 300)])
    return X, np.cos(np.radians(lat)) + 0.2 * np.sin(np.radians(X[:, 1]))


@pytest.mark.parametrize("sigma", ["median", 1e5, 2e7])
def test_the_exponential_kernel_is_positive_definite_on_the_globe(stations, sigma):
    """Warnings are errors here."""
    est = JacobianKernelRidge(sigma, 1e-10, kernel="exponential", metric="geodesic")
    X, y = stations
    np.testing.assert_allclose(est.fit(X, y).predict(X), y, atol=1e-7)


@pytest.mark.parametrize("kernel", ["gaussian", "matern32"])
def test_a_smooth_kernel_on_the_globe_recommends_the_exponential_one(stations, kernel):
    est = JacobianKernelRidge("median", 1e-10, kernel=kernel, metric="geodesic")
    with pytest.warns(UserWarning, match=r'not positive definite.*kernel="exponential"'):
        est.fit(*stations)


def test_nothing_is_recommended_where_distances_are_not_on_the_globe():
    X = np.array([[0.0], [1e-9], [1.0]])
    with pytest.warns(UserWarning, match=r"Give a larger `alpha` to avoid this\.$"):
        JacobianKernelRidge(1.0, 0.0).fit(X, [0.0, 1.0, 2.0])


def test_scikit_learn_s_own_laplacian_kernel_takes_the_gamma_of_a_choice(rows):
    choice = select_bandwidth(rows[0], rule="median", kernel="laplacian")
    D = np.abs(rows[0][:, None] - rows[0]).sum(axis=2)
    expected = np.exp(-D / choice.sigma)
    np.testing.assert_allclose(laplacian_kernel(rows[0], gamma=choice.gamma), expected)
