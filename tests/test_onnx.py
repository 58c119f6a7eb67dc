"""Graphs predict what the model predicts, in onnxruntime, which shares no code with us."""

import warnings

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

from jacridge import (
    AutoKernelClassifier,
    AutoKernelRidge,
    JacobianKernelClassifier,
    JacobianKernelRidge,
)
from jacridge.onnx import to_onnx

KERNELS = ["gaussian", "matern52", "matern32", "exponential", "laplacian"]
METRICS = ["euclidean", "scaled", "diagonal", "full", "auto"]
KINDS = {"tensor(double)": np.float64, "tensor(float)": np.float32, "tensor(string)": object}

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def outputs(graph, X):
    """All outputs, by name; a data frame goes in column by column, with missing texts empty."""
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    kinds = {each.name: KINDS[each.type] for each in session.get_inputs()}
    feed = {}
    for name, kind in kinds.items():
        part = np.asarray(X[name])[:, None] if hasattr(X, "columns") else np.asarray(X)
        missing = np.vectorize(lambda value: value is None or value != value, otypes=[bool])
        feed[name] = np.where(missing(part), "", part) if kind is object else part.astype(kind)
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feed), strict=True))


def run(graph, X):
    return outputs(graph, X)["y"]


def assert_agree(graph, model, X):
    """To the digits of the output, for rows as the graph sees them: it computes in float64.

    Sums of large coefficients that cancel keep nine digits; a float32 has seven.
    """
    expected, found = model.predict(X), run(graph, X)
    close = (1e-9 if found.dtype == np.float64 else 1e-7) * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=close)


def assert_classes_agree(graph, model, X):
    found = outputs(graph, X)
    assert list(found) == ["label", "probabilities"]
    np.testing.assert_array_equal(found["label"], model.predict(X))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-7)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_a_graph_predicts_what_the_model_predicts(table, rng, dtype, alpha):
    model = JacobianKernelRidge(alpha=alpha).fit(*table)
    X = (table[0] + 0.1 * rng.standard_normal(table[0].shape)).astype(dtype)
    graph = to_onnx(model, dtype=dtype)
    assert run(graph, X).dtype == dtype
    assert_agree(graph, model, X.astype(float))


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


@pytest.mark.parametrize("model", [Ridge(), make_pipeline(JacobianKernelRidge(), Ridge())])
def test_another_kind_of_model_is_refused(model):
    with pytest.raises(TypeError, match="`model` must be a regressor or classifier of jacridge"):
        to_onnx(model)


def test_a_geodesic_model_is_refused(rng):
    pytest.importorskip("pyproj")
    X = rng.uniform(40, 50, (10, 2))
    model = JacobianKernelRidge(metric="geodesic").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="a linear metric or 'precomputed', got 'geodesic'"):
        to_onnx(model)


def test_an_unknown_dtype_is_refused(table):
    with pytest.raises(ValueError, match="`dtype` must be one of 'float64', 'float32'"):
        to_onnx(JacobianKernelRidge().fit(*table), dtype="float16")


def test_an_unfitted_model_is_refused():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        to_onnx(JacobianKernelRidge())


# Metrics


@pytest.mark.parametrize("metric", METRICS)
def test_each_metric_is_in_the_graph(rng, metric):
    X = rng.standard_normal((80, 3)) * [1, 100, 0.01]
    y = np.column_stack([np.sin(X[:, 0]), X[:, 1] + X[:, 0]])
    model = JacobianKernelRidge("auto", "auto", metric=metric, random_state=0).fit(X, y)
    assert_agree(to_onnx(model), model, X + 0.1)


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
@pytest.mark.parametrize("metric", ["euclidean", "diagonal"])
@pytest.mark.parametrize("p", [2, 12])
def test_clusters_that_are_far_apart_keep_their_digits(rng, kernel, metric, p):
    """In a learned metric the distance of the clusters is about one."""
    X = rng.standard_normal((60, p))
    X[30:] += 1e9
    bandwidth = 2.0 if metric == "euclidean" else "median"
    model = JacobianKernelRidge(bandwidth, 0.01, kernel=kernel, metric=metric, random_state=0)
    model.fit(X, np.sin(X[:, 0] % 1e9))
    assert_agree(to_onnx(model), model, X)


def test_given_distances_between_equal_rows_are_taken_once(rng):
    x = np.append(rng.standard_normal(20), 0.0)
    x[20] = x[3]
    D = np.abs(x[:, None] - x)
    model = JacobianKernelRidge(0.5, 0.1, metric="precomputed").fit(D, np.sin(x))
    assert len(model.X_fit_) == 20
    assert_agree(to_onnx(model), model, D[:7])


# Classifiers


@pytest.mark.parametrize("labels", [[False, True], [3, -1, 7], ["no", "yes"], ["a", "b", "ä"]])
def test_a_classifier_has_labels_and_probabilities(rng, labels):
    X = rng.standard_normal((60, 2))
    y = np.array(labels)[(len(labels) * (np.argsort(np.argsort(X[:, 0])) / 60)).astype(int)]
    model = JacobianKernelClassifier("auto", "auto", random_state=0).fit(X, y)
    assert_classes_agree(to_onnx(model), model, X + 0.1)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_classifier_has_each_kernel_and_a_metric(rng, kernel):
    X = rng.standard_normal((60, 3))
    X[5] = 1e9
    model = JacobianKernelClassifier("median", 0.1, kernel=kernel, metric="scaled")
    model.fit(X, np.where(X[:, 0] > 0, "up", "down"))
    assert_classes_agree(to_onnx(model), model, X)


@pytest.mark.slow
def test_models_that_choose_for_themselves_are_converted(rng):
    X = rng.standard_normal((90, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * X[:, 1]
    for model, target in (
        (AutoKernelRidge(random_state=0), y),
        (AutoKernelClassifier(random_state=0), np.digitize(y, [-0.5, 0.5])),
    ):
        graph = to_onnx(model.fit(X, target))
        check = assert_agree if target is y else assert_classes_agree
        check(graph, model, X + 0.1)


def test_a_classifier_in_float32_gives_float32(rng):
    X = rng.standard_normal((60, 2)).astype(np.float32)
    model = JacobianKernelClassifier(1.0, 0.1).fit(X, X[:, 0] > 0)
    found = outputs(to_onnx(model, dtype="float32"), X)["probabilities"]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-6)  # float32


def test_dates_are_labels_in_the_form_of_texts(rng):
    X = rng.standard_normal((60, 2))
    y = np.where(X[:, 0] > 0, np.datetime64("2020-01-01"), np.datetime64("2021-01-01"))
    model = JacobianKernelClassifier(1.0, 0.1).fit(X, y)
    found = outputs(to_onnx(model), X)["label"]
    assert found.tolist() == model.predict(X).astype(str).tolist()


def test_a_classifier_without_probabilities_has_labels_alone(rng):
    X = rng.standard_normal((60, 2))
    model = JacobianKernelClassifier(1.0, 0.1, solver="pcg").fit(X, X[:, 0] > 0)
    found = outputs(to_onnx(model), X)
    assert list(found) == ["label"]
    np.testing.assert_array_equal(found["label"], model.predict(X))


# Pipelines


def texts_and_numbers(rng, n=60):
    """A frame with a name that is no identifier, numbers far from zero, and texts."""
    pd = pytest.importorskip("pandas")
    kinds = rng.choice(["x", "y", "zz"], n)
    frame = {"a (in m)": 1e6 + 1e3 * rng.standard_normal(n), "b": rng.standard_normal(n)}
    X = pd.DataFrame({**frame, "kind": kinds, "count": rng.integers(0, 3, n)})
    return X, np.sin(X["b"].to_numpy()) + (kinds == "x")


NUMBERS = ["a (in m)", "b"]
ONE_HOT = OneHotEncoder(handle_unknown="ignore", sparse_output=False)


@pytest.mark.parametrize("scaler", [MinMaxScaler(), RobustScaler(), PCA(2), "passthrough"])
def test_steps_of_numbers_are_taken_along(table, scaler):
    model = make_pipeline(StandardScaler(), scaler, JacobianKernelRidge()).fit(*table)
    assert_agree(to_onnx(model), model, table[0])


def test_a_pipeline_of_the_model_alone_is_the_model(table):
    model = make_pipeline(JacobianKernelRidge()).fit(*table)
    assert_agree(to_onnx(model), model, table[0])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "columns",
    [
        make_column_transformer((StandardScaler(), NUMBERS), (ONE_HOT, ["kind"])),
        make_column_transformer((StandardScaler(), NUMBERS), (ONE_HOT, ["kind", "count"])),
        make_column_transformer((OrdinalEncoder(), ["kind"]), remainder=StandardScaler()),
        make_column_transformer(("passthrough", ["b", "count"])),
    ],
)
def test_columns_go_in_under_their_names(rng, columns, dtype):
    X, y = texts_and_numbers(rng)
    model = make_pipeline(columns, JacobianKernelRidge("auto", 0.1, random_state=0)).fit(X, y)
    graph = to_onnx(model, X, dtype=dtype)
    assert [each.name for each in graph.graph.input] == list(X.columns)
    X[NUMBERS] = X[NUMBERS].astype(dtype).astype(float)
    assert_agree(graph, model, X)


def test_an_unknown_category_is_none_of_the_known_ones(rng):
    X, y = texts_and_numbers(rng)
    columns = make_column_transformer((StandardScaler(), NUMBERS), (ONE_HOT, ["kind"]))
    model = make_pipeline(columns, JacobianKernelRidge()).fit(X, y)
    graph = to_onnx(model, X)
    assert_agree(graph, model, X.assign(kind="new"))


@pytest.mark.parametrize(
    "imputer",
    [
        SimpleImputer(),
        SimpleImputer(strategy="median", add_indicator=True),
        SimpleImputer(missing_values=-1.0, strategy="constant", fill_value=1e9),
        make_union(SimpleImputer(), MissingIndicator(features="all")),
    ],
)
def test_missing_numbers_are_filled_in_all_their_digits(rng, imputer):
    X = 1e9 + rng.standard_normal((60, 3))
    y = np.sin(X[:, 0])
    X[rng.uniform(size=X.shape) < 0.1] = getattr(imputer, "missing_values", np.nan)
    model = make_pipeline(imputer, JacobianKernelRidge(1.0, 0.1)).fit(X, y)
    assert_agree(to_onnx(model), model, X)


def test_a_column_without_numbers_is_left_out_as_by_the_imputer(rng):
    X = rng.standard_normal((30, 3))
    X[:, 1] = np.nan
    model = make_pipeline(SimpleImputer(), JacobianKernelRidge())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Skipping features without any observed values")
        model.fit(X, X[:, 0])
        assert_agree(to_onnx(model), model, X)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_texts_are_empty_texts(rng, missing):
    X, y = texts_and_numbers(rng)
    X["kind"] = X["kind"].astype(object).where(X["kind"] != "zz", missing)
    X["b"] = X["b"].where(X["b"] < 1)
    fill = SimpleImputer(strategy="most_frequent", missing_values=missing)
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    columns = make_column_transformer((numbers, NUMBERS), (make_pipeline(fill, ONE_HOT), ["kind"]))
    model = make_pipeline(columns, JacobianKernelRidge()).fit(X, y)
    assert_agree(to_onnx(model, X), model, X)


def test_a_pipeline_may_end_in_a_classifier(rng):
    X, y = texts_and_numbers(rng)
    columns = make_column_transformer((StandardScaler(), NUMBERS), (ONE_HOT, ["kind"]))
    model = make_pipeline(columns, JacobianKernelClassifier(1.0, 0.1)).fit(X, y > 0.5)
    assert_classes_agree(to_onnx(model, X), model, X)


def test_a_column_transformer_of_names_needs_a_data_frame(rng):
    X, y = texts_and_numbers(rng)
    columns = make_column_transformer((StandardScaler(), NUMBERS))
    model = make_pipeline(columns, JacobianKernelRidge()).fit(X, y)
    with pytest.raises(ValueError, match=r"`X` must be some rows of the data frame.*got none"):
        to_onnx(model)


def test_a_step_that_cannot_be_converted_is_named(table):
    model = make_pipeline(SplineTransformer(), JacobianKernelRidge()).fit(*table)
    with pytest.raises(ValueError, match="steps that skl2onnx can convert, got SplineTransformer"):
        to_onnx(model)


@pytest.mark.slow
@pytest.mark.parametrize("bandwidth", ["auto", "jacobian"])
def test_the_code_of_the_report_makes_a_model_that_can_be_converted(
    tmp_path, monkeypatch, rng, bandwidth
):
    """Exactly the code on the page; "jacobian" standardises in the pipeline."""
    from html import unescape

    from jacridge.report import report_page

    pytest.importorskip("polars")
    X, y = texts_and_numbers(rng)
    X.assign(y=y).to_csv(tmp_path / "my data.csv", index=False)
    monkeypatch.chdir(tmp_path)
    page = report_page(X, y, bandwidth=bandwidth, alpha=0.1, source="my data.csv")
    code = unescape(page.split("<h3>Python</h3>")[1].split("<code>")[1].split("</code>")[0])
    names = {}
    exec(code, names)
    assert_agree(to_onnx(names["model"], names["X"]), names["model"], names["X"])
