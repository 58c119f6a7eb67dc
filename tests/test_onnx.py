"""Graphs predict what the model predicts, in onnxruntime, which shares no code with us."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from jacridge import JacobianKernelRidge
from jacridge.onnx import to_onnx

KERNELS = ["gaussian", "matern52", "matern32", "exponential", "laplacian"]

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def run(graph, X):
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    kind = {"tensor(double)": np.float64, "tensor(float)": np.float32}[session.get_inputs()[0].type]
    (y,) = session.run(["y"], {"X": np.asarray(X, dtype=kind)})
    assert y.dtype == kind
    return y


def assert_agree(graph, model, X):
    """To 1e-5 of the size of the predictions, for rows as the graph sees them."""
    expected = model.predict(X)
    np.testing.assert_allclose(run(graph, X), expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_a_graph_predicts_what_the_model_predicts(table, rng, dtype, alpha):
    model = JacobianKernelRidge(alpha=alpha).fit(*table)
    X = (table[0] + 0.1 * rng.standard_normal(table[0].shape)).astype(dtype)
    assert_agree(to_onnx(model, dtype=dtype), model, X.astype(float))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_nystrom_model_is_a_graph_of_its_landmarks(rng, dtype):
    X = rng.uniform(-1, 1, (300, 2)).astype(np.float32).astype(float)
    model = JacobianKernelRidge(solver="nystrom", n_landmarks=40, random_state=0)
    model.fit(X, np.sin(3 * X[:, 0]) * X[:, 1])
    assert len(model.X_fit_) <= 40
    assert_agree(to_onnx(model, dtype=dtype), model, X)


def test_in_float64_all_digits_are_kept(table):
    model = JacobianKernelRidge(bandwidth=5.0, alpha=1e-6).fit(*table)
    np.testing.assert_allclose(run(to_onnx(model), table[0]), model.predict(table[0]), rtol=1e-7)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_large_coefficients_that_cancel_do_no_harm(rng, dtype):
    """A wide kernel and a tiny penalty: in float32 arithmetic nothing would be left."""
    X = rng.uniform(-1, 1, (200, 2)).astype(np.float32).astype(float)
    model = JacobianKernelRidge(bandwidth=1.0, alpha=1e-8).fit(X, np.sin(X[:, 0]))
    assert np.abs(model.dual_coef_).max() > 100
    assert_agree(to_onnx(model, dtype=dtype), model, X)


def test_rows_far_from_the_origin_keep_their_digits(rng):
    X = 1e6 + rng.standard_normal((50, 2))
    model = JacobianKernelRidge(bandwidth=1.0).fit(X, np.sin(X[:, 0]))
    assert_agree(to_onnx(model), model, X)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("p", [2, 12])
def test_an_outlier_costs_no_digits_whatever_the_kernel(rng, kernel, p):
    X = rng.standard_normal((60, p))
    X[7] = 1e9
    model = JacobianKernelRidge(2.0, 0.01, kernel=kernel).fit(X, np.sin(X[:, 0]))
    assert_agree(to_onnx(model), model, X)


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_kernel_takes_given_distances_too(table, kernel):
    X, y = table
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    model = JacobianKernelRidge(5.0, 0.1, kernel=kernel, metric="precomputed").fit(D, y)
    assert_agree(to_onnx(model), model, D[:7])


def test_a_graph_is_that_of_the_fit_whatever_set_params_has_changed(table):
    X, y = table
    model = JacobianKernelRidge().fit(X, y)
    expected = run(to_onnx(model), X)
    model.set_params(metric="precomputed", kernel="laplacian", bandwidth=3.0, fit_intercept=False)
    np.testing.assert_array_equal(run(to_onnx(model), X), expected)


def test_several_targets_have_several_columns(table):
    X, y = table
    model = JacobianKernelRidge().fit(X, np.column_stack([y, 2 * y, y**2]))
    graph = to_onnx(model)
    assert run(graph, X).shape == (60, 3)
    assert_agree(graph, model, X)


def test_one_target_gives_one_dimension(table):
    assert run(to_onnx(JacobianKernelRidge().fit(*table)), table[0]).shape == (60,)


@pytest.mark.parametrize("options", [{}, {"with_mean": False}, {"with_std": False}])
def test_a_pipeline_takes_its_scaler_along(table, options):
    model = make_pipeline(StandardScaler(**options), JacobianKernelRidge()).fit(*table)
    assert_agree(to_onnx(model), model, table[0])


def test_without_an_intercept_there_is_none(table):
    model = JacobianKernelRidge(fit_intercept=False).fit(*table)
    assert_agree(to_onnx(model), model, table[0])


def test_a_precomputed_model_takes_distances(table, rng):
    X, y = table
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    model = JacobianKernelRidge(metric="precomputed").fit(D, y)
    assert_agree(to_onnx(model), model, D[:7])


def test_any_number_of_rows_goes_in(table):
    graph = to_onnx(JacobianKernelRidge().fit(*table))
    for n in (1, 2, 59):
        assert run(graph, table[0][:n]).shape == (n,)


@pytest.mark.parametrize(
    "model",
    [Ridge(), make_pipeline(MinMaxScaler(), JacobianKernelRidge()), make_pipeline(Ridge())],
)
def test_another_kind_of_model_is_refused(model):
    with pytest.raises(TypeError, match="`model` must be a JacobianKernelRidge, or a Pipeline"):
        to_onnx(model)


def test_a_geodesic_model_is_refused(rng):
    pytest.importorskip("pyproj")
    X = rng.uniform(40, 50, (10, 2))
    model = JacobianKernelRidge(metric="geodesic").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="'euclidean' or 'precomputed', got 'geodesic'"):
        to_onnx(model)


def test_an_unknown_dtype_is_refused(table):
    with pytest.raises(ValueError, match="`dtype` must be one of 'float64', 'float32'"):
        to_onnx(JacobianKernelRidge().fit(*table), dtype="float16")


def test_an_unfitted_model_is_refused():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        to_onnx(JacobianKernelRidge())
