"""Features with heavy tails: compressed where that helps, with derivatives in their own units."""

import pickle

import numpy as np
import pytest

import naive
from jacridge import AutoKernelRidge, JacobianKernelRidge
from jacridge.onnx import to_onnx

N = 300


@pytest.fixture
def incomes(rng):
    """A smooth function of the logarithms of two features with heavy tails, and a plain one."""
    Z = rng.standard_normal((N, 3))
    X = np.column_stack([np.exp(1.5 * Z[:, 0]), -np.exp(1.5 * Z[:, 1]), Z[:, 2]])
    y = np.sin(1.5 * Z[:, 0]) + np.tanh(Z[:, 1]) + 0.3 * Z[:, 2] + 0.05 * rng.standard_normal(N)
    return X, y


def ridge(kernel="matern32", metric="diagonal"):
    return JacobianKernelRidge("auto", 0.01, kernel=kernel, metric=metric, random_state=0)


def test_heavy_tails_are_compressed_where_held_out_rows_gain(incomes):
    X, y = incomes
    est = ridge().fit(X[:200], y[:200])
    assert np.isfinite(est.warp_[1]).tolist() == [True, True, False]
    plain = ridge(metric="scaled").fit(X[:200], y[:200])
    assert est.score(X[200:], y[200:]) > plain.score(X[200:], y[200:]) + 0.05
    assert {row["warped"] for row in est.choices_} == {True, False}


def test_the_model_sees_the_compressed_features_times_the_map(incomes):
    X, y = incomes
    est = ridge().fit(X, y)
    c, s = est.warp_[:, :2]
    Z = X.copy()
    Z[:, :2] = c + s * np.arcsinh((X[:, :2] - c) / s)
    inner = JacobianKernelRidge(est.bandwidth_, est.alpha_, kernel="matern32")
    inner.fit(Z @ est.metric_, y)
    np.testing.assert_allclose(est.predict(X), inner.predict(Z @ est.metric_), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("scale", ["of no feature", "of two values"])
def test_other_features_are_left_as_they_are(rng, scale):
    X = rng.standard_normal((N, 3))
    if scale == "of two values":  # rare, far from the median in units of the quartiles
        X[:, 0] = rng.uniform(size=N) < 0.02
    est = ridge().fit(X, X[:, 1] + 0.1 * rng.standard_normal(N))
    assert est.warp_ is None


def test_the_scaled_metric_is_linear_whatever_the_tails(incomes):
    assert ridge(metric="scaled").fit(*incomes).warp_ is None


@pytest.mark.parametrize(
    ("kernel", "metric"),
    [("gaussian", "full"), ("matern32", "diagonal"), ("laplacian", "diagonal")],
)
def test_derivatives_are_in_the_units_of_the_features(incomes, kernel, metric):
    X, y = incomes
    est = ridge(kernel, metric).fit(X, y)
    assert est.warp_ is not None
    X_new = X[:20] + 0.01
    slopes = naive.slopes(lambda Z: est.predict(Z)[:, None], X_new, 1e-5)[:, 0]
    # Central differences of step h are off by h^2 and by rounding over h.
    np.testing.assert_allclose(est.jacobian(X_new), slopes, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("kernel", "metric"), [("gaussian", "full"), ("laplacian", "diagonal")])
def test_average_effects_are_means_of_the_derivatives_with_their_errors(incomes, kernel, metric):
    X, y = incomes
    est = ridge(kernel, metric).fit(X, y)
    found = est.effects(X)
    J = est.jacobian(X)
    np.testing.assert_allclose([row.estimate for row in found], J.mean(axis=0), rtol=1e-8)
    est._notes["learning"] = None  # errors with the metric fixed, as those of derivatives are
    one = est.effects(X[:1])  # the effect at a single row has the error of its derivative
    errors = est.jacobian(X[:1], return_std=True)[1]
    np.testing.assert_allclose([row.std_error for row in one], errors[0], rtol=1e-8)


def test_training_rows_are_recovered_from_those_that_the_model_keeps(incomes):
    X, y = incomes
    est = ridge().fit(X, y)
    order = np.lexsort(X.T)
    rows = est._function().training_rows()[0]
    np.testing.assert_allclose(rows[np.lexsort(rows.T)], X[order], rtol=1e-7)


def test_a_graph_and_a_pickle_compress_alike(incomes):
    import onnxruntime

    X, y = incomes
    est = ridge().fit(X, y)
    session = onnxruntime.InferenceSession(to_onnx(est).SerializeToString())
    (found,) = session.run(None, {"X": X})
    np.testing.assert_allclose(np.ravel(found), est.predict(X), rtol=1e-8, atol=1e-10)
    again = pickle.loads(pickle.dumps(est))
    np.testing.assert_array_equal(again.predict(X), est.predict(X))


def test_a_weight_of_two_is_two_equal_rows_where_tails_are_heavy(incomes):
    X, y = incomes
    X, y = X[:80], y[:80]
    weighted = AutoKernelRidge(random_state=0).fit(X, y, np.full(80, 2.0))
    twice = AutoKernelRidge(random_state=0).fit(np.vstack([X, X]), np.concatenate([y, y]))
    np.testing.assert_allclose(weighted.predict(X), twice.predict(X), rtol=1e-8)
