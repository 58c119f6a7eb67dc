"""The last step of a pipeline predicts as the pipeline, for columns in their own units."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from jacridge import JacobianKernelClassifier, JacobianKernelRidge, last_step

SCALERS = [StandardScaler(), MinMaxScaler((1, 3)), MaxAbsScaler(), RobustScaler()]
ONE_HOT = OneHotEncoder(sparse_output=False)


def finite_differences(predict, X, size):
    """Central differences of a prediction along each column, of shape (n, p)."""
    steps = np.diag(size)
    return np.stack(
        [(predict(X + h) - predict(X - h)) / (2 * h.sum()) for h in steps],
        axis=1,
    )


@pytest.fixture(params=["exact", "nystrom"])
def est(request):
    return JacobianKernelRidge(1.5, 0.1, solver=request.param, n_landmarks=25, random_state=0)


@pytest.mark.parametrize("metric", ["euclidean", "diagonal"])
@pytest.mark.parametrize("scaler", SCALERS, ids=lambda scaler: type(scaler).__name__)
def test_slopes_through_a_scaler_are_those_of_the_columns(table, est, scaler, metric):
    X, y = table
    pipeline = make_pipeline(scaler, est.set_params(metric=metric)).fit(X, y)
    found, rows = last_step(pipeline, X)
    np.testing.assert_allclose(rows, X, rtol=1e-12)
    np.testing.assert_allclose(found.predict(rows), pipeline.predict(X), rtol=1e-9)
    expected = finite_differences(pipeline.predict, X, 1e-4 * X.std(axis=0))
    # Central differences are off by their step squared.
    np.testing.assert_allclose(found.jacobian(rows), expected, atol=1e-6 * np.abs(expected).max())


def test_effects_intervals_and_deviations_are_those_of_the_last_step_in_other_units(table, est):
    X, y = table
    pipeline = make_pipeline(StandardScaler(), est).fit(X, y)
    found, rows = last_step(pipeline, X)
    scaled, scale = pipeline[:-1].transform(X), pipeline[0].scale_
    for ours, theirs in zip(
        [*found.predict_interval(rows), *found.predict(rows, return_std=True)],
        [*est.predict_interval(scaled), *est.predict(scaled, return_std=True)],
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7)
    np.testing.assert_allclose(
        found.outside_share(rows + 0.01), est.outside_share(scaled + 0.01 / scale)
    )
    for part in ("estimate", "std_error"):
        ours, theirs = found.effects().dict()[part], est.effects().dict()[part]
        np.testing.assert_allclose(ours, np.array(theirs) / scale, rtol=1e-7)
        again = found.effects(rows).dict()[part]
        np.testing.assert_allclose(again, ours, rtol=1e-7)
    np.testing.assert_allclose(
        found.jacobian(rows, return_std=True)[1], est.jacobian(scaled, return_std=True)[1] / scale
    )
    np.testing.assert_allclose(found.feature_importances_, est.feature_importances_, rtol=1e-7)
    assert str(found.diagnose()) == str(est.diagnose())
    assert found.summary().fit == est.summary().fit


def test_effects_may_be_asked_for_at_values_of_the_columns(table):
    X, y = table
    pipeline = make_pipeline(StandardScaler(), JacobianKernelRidge(1.5, 0.1)).fit(X, y)
    found, rows = last_step(pipeline, X)
    there = np.column_stack([X[:, 0], np.full(60, 7.0), X[:, 2]])
    expected = finite_differences(pipeline.predict, there, 1e-4 * X.std(axis=0)).mean(axis=0)
    effects = found.effects(rows, at={"x1": 7.0})
    # Central differences are off by their step squared.
    np.testing.assert_allclose(effects.dict()["estimate"], expected, rtol=1e-5)


def test_columns_of_a_frame_keep_their_names_and_units(rng):
    pd = pytest.importorskip("pandas")
    kinds = rng.choice(["x", "y"], 60)
    X = pd.DataFrame({"age": 40 + 10 * rng.standard_normal(60), "kind": kinds, "b": np.arange(60)})
    X.loc[3, "age"] = np.nan
    numbers = make_pipeline(SimpleImputer(), MinMaxScaler(), StandardScaler())
    columns = make_column_transformer(
        (numbers, ["age"]), (ONE_HOT, ["kind"]), remainder=StandardScaler()
    )
    y = np.nan_to_num(X["age"], nan=40) + (kinds == "x")
    pipeline = make_pipeline(columns, JacobianKernelRidge(1.0, 0.1)).fit(X, y)
    found, rows = last_step(pipeline, X)
    expected = np.column_stack([X["age"].fillna(X["age"].mean()), kinds == "x", kinds == "y"])
    np.testing.assert_allclose(rows, np.column_stack([expected, X["b"]]), atol=1e-9)
    np.testing.assert_allclose(found.predict(rows), pipeline.predict(X), rtol=1e-9)
    assert list(found.effects(variables=["age", "b"]).dict()["term"]) == ["age", "b"]
    assert found._function().names == ["age", "kind_x", "kind_y", "b"]


@pytest.mark.parametrize("nothing", [None, "passthrough"])
def test_scaling_before_a_step_that_does_nothing_is_undone(table, nothing):
    X, y = table
    pipeline = make_pipeline(StandardScaler(), nothing, JacobianKernelRidge(1.0, 0.1)).fit(X, y)
    found, rows = last_step(pipeline, X)
    np.testing.assert_allclose(rows, X, rtol=1e-12)
    np.testing.assert_allclose(found.predict(rows), pipeline.predict(X), rtol=1e-9)


def test_steps_that_are_no_scaling_stay(table):
    X, y = table
    for steps in (
        [StandardScaler(), PCA(2)],
        [FunctionTransformer(np.tanh)],
        [MinMaxScaler(clip=True)],
        ["passthrough", StandardScaler(), FunctionTransformer(np.tanh)],
    ):
        pipeline = make_pipeline(*steps, JacobianKernelRidge(1.0, 0.1)).fit(X, y)
        found, rows = last_step(pipeline, X)
        np.testing.assert_allclose(rows, pipeline[:-1].transform(X))
        np.testing.assert_allclose(found.predict(rows), pipeline.predict(X), rtol=1e-9)


def test_a_classifier_at_the_end_has_slopes_of_the_columns(table):
    X, y = table
    pipeline = make_pipeline(StandardScaler(), JacobianKernelClassifier(1.5, 0.1))
    pipeline.fit(X, y > np.median(y))
    found, rows = last_step(pipeline, X)
    np.testing.assert_allclose(found.predict_proba(rows), pipeline.predict_proba(X), rtol=1e-9)
    expected = finite_differences(pipeline.decision_function, X, 1e-4 * X.std(axis=0))
    # Central differences are off by their step squared.
    np.testing.assert_allclose(found.jacobian(rows), expected, atol=1e-6 * np.abs(expected).max())


def test_rows_without_weight_have_their_plain_residuals(table):
    X, y = table
    w = np.ones(60)
    w[:5] = 0
    est = JacobianKernelRidge(1.5, 0.1)
    pipeline = make_pipeline(StandardScaler(), est)
    pipeline.fit(X, y, jacobiankernelridge__sample_weight=w)
    np.testing.assert_allclose(last_step(pipeline)[0].loo_residuals_, est.loo_residuals_)


def test_given_distances_are_left_as_they_are():
    around = np.abs(np.subtract.outer(np.arange(20.0), np.arange(20.0)))
    D = np.minimum(around, 20 - around)  # on a circle the farthest is as far from everywhere
    pipeline = make_pipeline(MaxAbsScaler(), JacobianKernelRidge(0.3, 0.1, metric="precomputed"))
    found, rows = last_step(pipeline.fit(D, np.sin(np.arange(20.0))), D)
    np.testing.assert_array_equal(rows, pipeline[:-1].transform(D))
    np.testing.assert_allclose(found.predict(rows), pipeline.predict(D))


def test_the_pipeline_itself_does_not_change_and_a_new_fit_forgets_the_scaler(table):
    X, y = table
    pipeline = make_pipeline(StandardScaler(), JacobianKernelRidge(1.5, 0.1)).fit(X, y)
    before = pipeline.predict(X)
    found, _ = last_step(pipeline, X)
    np.testing.assert_array_equal(pipeline.predict(X), before)
    expected = JacobianKernelRidge(1.5, 0.1, metric="scaled").fit(X, y).predict(X)
    again = found.set_params(metric="scaled").fit(X, y)
    np.testing.assert_array_equal(again.predict(X), expected)


def test_names_that_the_last_step_was_fitted_with_raise_no_warning(table):
    pytest.importorskip("pandas")
    X, y = table
    pipeline = make_pipeline(StandardScaler(), JacobianKernelRidge()).set_output(transform="pandas")
    found, rows = last_step(pipeline.fit(X, y), X)
    np.testing.assert_allclose(found.predict(rows), pipeline.predict(X), rtol=1e-9)


def test_anything_but_a_pipeline_is_returned_as_it_is(table):
    est = JacobianKernelRidge().fit(*table)
    for model in (est, make_pipeline(est)):
        found, rows = last_step(model, table[0])
        assert found is est
        assert rows is table[0]


def test_a_pipeline_that_ends_in_something_else_is_refused(table):
    with pytest.raises(TypeError, match="a Pipeline that ends in one, got StandardScaler, Ridge"):
        last_step(make_pipeline(StandardScaler(), Ridge()).fit(*table))


def test_the_model_of_a_pipeline_in_its_columns_is_a_graph_too(table):
    pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    from jacridge.onnx import to_onnx

    X, y = table
    found, _ = last_step(make_pipeline(StandardScaler(), JacobianKernelRidge()).fit(X, y))
    session = runtime.InferenceSession(to_onnx(found).SerializeToString())
    np.testing.assert_allclose(session.run(None, {"X": X})[0], found.predict(X), rtol=1e-7)


@pytest.mark.slow
def test_effects_in_the_guide_are_per_year():
    """The code of the section makes y half of the age, without noise."""
    text = (Path(__file__).parent.parent / "docs" / "guide.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text.split("## Pipelines")[1], flags=re.S)
    names = {}
    exec(code, names)
    assert (names["lower"] <= names["upper"]).all()
    effects = names["est"].effects(names["rows"], variables=["age"])
    assert effects.dict()["estimate"][0] == pytest.approx(0.5, rel=0.1)  # ridge shrinks


def test_a_constant_column_of_huge_numbers_divides_by_nothing(rng):
    """Its scale is lost beside its mean."""
    x = rng.standard_normal(30)
    X = np.column_stack([np.full(30, 1e32), x])
    pipeline = make_pipeline(StandardScaler(), JacobianKernelRidge(1.0)).fit(X, x)
    model, rows = last_step(pipeline, X)
    np.testing.assert_allclose(model.predict(rows), pipeline.predict(X))
    assert np.isfinite(model.jacobian(rows)).all()
