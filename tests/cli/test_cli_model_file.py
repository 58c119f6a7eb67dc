"""A model file gives the model back; any other file gives a clear error and runs nothing."""

import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import skops.io
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline

from inside import (
    ModelFileError,
    SavedModel,
    TableError,
    WrongUse,
    check_model_name,
    columns_prepared,
    load_model,
    save_model,
)
from jacridge import JacobianKernelRidge


@pytest.fixture
def saved(rng):
    X = pl.DataFrame({"a": rng.normal(size=30), "c": rng.choice(["x", "y", "z"], size=30)})
    prepare = columns_prepared(["a"], ["c"], standardize=True)
    pipeline = Pipeline([("columns", prepare), ("model", JacobianKernelRidge())])
    pipeline.fit(X, X["a"].to_numpy() ** 2)
    return SavedModel(pipeline, ["y"], ["a"], ["c"])


@pytest.fixture
def path(saved, tmp_path):
    save_model(str(tmp_path / "model.skops"), saved)
    return tmp_path / "model.skops"


def edited(path, change):
    """Write the file again with its schema changed."""
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    schema = json.loads(parts["schema.json"])
    change(schema)
    parts["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(path, "w") as new:
        for name, data in parts.items():
            new.writestr(name, data)


def test_a_model_with_a_compressed_column_is_saved_and_loaded(rng, tmp_path):
    """The width of the other column is infinite, which is no damage."""
    a, b = np.exp(2 * rng.standard_normal(60)), rng.standard_normal(60)
    X, prepare = pl.DataFrame({"a": a, "b": b}), columns_prepared(["a", "b"], [], standardize=False)
    model = JacobianKernelRidge("auto", 0.01, metric="diagonal", random_state=0)
    pipeline = Pipeline([("columns", prepare), ("model", model)]).fit(X, np.log(a) + b)
    assert np.isinf(model.warp_[1]).tolist() == [False, True]
    path = str(tmp_path / "model.skops")
    save_model(path, SavedModel(pipeline, ["y"], ["a", "b"], []))
    np.testing.assert_array_equal(load_model(path).pipeline.predict(X), pipeline.predict(X))


@pytest.mark.parametrize("ranges", [{"b": [0.0, 1.0]}, {"a": [0.0]}, {"a": [0.0, np.nan]}])
def test_ranges_that_are_no_ranges_of_columns_are_refused(saved, path, ranges):
    save_model(str(path), replace(saved, ranges=ranges))
    with pytest.raises(ModelFileError, match="must be a model written by"):
        load_model(str(path))


def test_a_saved_model_predicts_as_before(saved, path):
    X = pl.DataFrame({"c": ["x", "q"], "a": [0.5, -1.0]})
    again = load_model(str(path))
    assert (again.targets, again.numbers, again.texts) == (["y"], ["a"], ["c"])
    np.testing.assert_array_equal(again.pipeline.predict(X), saved.pipeline.predict(X))


def test_a_saved_model_still_has_its_deviations(saved, path):
    features = saved.pipeline[:-1].transform(pl.DataFrame({"a": [0.5], "c": ["x"]}))
    _, std = saved.pipeline[-1].predict(features, return_std=True)
    _, again = load_model(str(path)).pipeline[-1].predict(features, return_std=True)
    np.testing.assert_allclose(again, std, rtol=1e-9)


def test_unknown_categories_are_counted(saved):
    assert saved.unknown(pl.DataFrame({"a": [1, 2, 3], "c": ["x", "q", "r"]})) == {
        "c": {"q": 1, "r": 1}
    }


def test_categories_are_as_far_apart_as_standardised_numbers_on_average(rng):
    X = pl.DataFrame({"a": rng.normal(size=2000), "c": ["x", "y"] * 1000})
    Z = columns_prepared(["a"], ["c"], standardize=True).fit_transform(X)
    pairs = Z[rng.integers(2000, size=9999), 0] - Z[rng.integers(2000, size=9999), 0]
    assert np.square(Z[0, 1:] - Z[1, 1:]).sum() == 2
    assert np.mean(pairs**2) == pytest.approx(2, rel=0.05)  # a mean over random pairs


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_a_cut_file_is_refused(path, keep):
    data = path.read_bytes()
    path.write_bytes(data[: keep if isinstance(keep, int) else int(keep * len(data))])
    with pytest.raises(ModelFileError, match="must be a complete file written by `jacridge fit`"):
        load_model(str(path))


@pytest.mark.parametrize("at", np.linspace(0.02, 0.98, 25))
def test_a_file_with_a_wrong_byte_is_refused_or_changes_nothing(saved, path, at):
    data = bytearray(path.read_bytes())
    data[int(at * len(data))] ^= 0xFF
    path.write_bytes(bytes(data))
    X = pl.DataFrame({"a": [0.5], "c": ["x"]})
    try:
        again = load_model(str(path)).pipeline.predict(X)
    except ModelFileError:
        return
    np.testing.assert_array_equal(again, saved.pipeline.predict(X))


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PK\x03\x04", b"\x80\x04\x95."])
def test_a_foreign_file_is_refused(tmp_path, content):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(
        ModelFileError, match=r"must be a (complete|model) file written by `jacridge fit`"
    ):
        load_model(str(path))


@pytest.mark.parametrize("content", [Ridge(), {"format": "jacridge model 1"}, [1, 2], "text"])
def test_another_skops_file_is_refused(tmp_path, content):
    path = tmp_path / "other.skops"
    skops.io.dump(content, path)
    with pytest.raises(ModelFileError, match="got another skops file"):
        load_model(str(path))


def test_a_model_of_other_parts_is_refused(saved, tmp_path):
    path = str(tmp_path / "other.skops")
    other = Pipeline([("columns", saved.pipeline[0]), ("model", Ridge())])
    save_model(path, SavedModel(other, ["y"], ["a"], ["c"]))
    with pytest.raises(ModelFileError, match="got another skops file"):
        load_model(path)


def test_a_file_that_would_run_code_is_refused_and_runs_nothing(tmp_path):
    """A pickle-like attack: the file asks for `os.system` to be called when loaded."""
    witness = tmp_path / "witness"

    class Attack:
        def __reduce__(self):
            return os.system, (f"touch {witness}",)

    path = tmp_path / "attack.skops"
    skops.io.dump({"format": "jacridge model 1", "pipeline": Attack()}, path)
    with pytest.raises(ModelFileError, match="must only hold a jacridge model, got"):
        load_model(str(path))
    assert not witness.exists()


def test_a_schema_that_names_another_type_is_refused(path):
    def poison(schema):
        target = schema["content"]["format"]
        target.update(__class__="Popen", __module__="subprocess", __loader__="ObjectNode")

    edited(path, poison)
    with pytest.raises(ModelFileError):
        load_model(str(path))


def test_a_schema_with_a_part_taken_out_is_refused(path):
    edited(path, lambda schema: schema["content"].pop("pipeline", schema["content"].clear()))
    with pytest.raises(ModelFileError):
        load_model(str(path))


def test_a_file_of_the_format_before_predicts_as_it_did():
    """Written by the commit before dates, several targets and filled gaps were saved."""
    old = load_model(str(Path(__file__).with_name("test_cli_model_1.skops")))
    raw = pl.DataFrame({"a": ["1", "5"], "c": ["x", "y"]})
    X = old.columns_of(raw, "new.csv")
    assert (old.targets, old.dates, old.fills) == (["y"], {}, False)
    np.testing.assert_allclose(
        old.predictions(X)["prediction"], [2.01386857647573, 6.005553561935226], rtol=1e-7
    )


def test_a_file_that_names_no_columns_of_thousands_reads_none(saved, tmp_path):
    """As files were written before."""
    content = {"format": "jacridge model 2", **vars(saved)}
    del content["thousands"]
    skops.io.dump(content, tmp_path / "old.skops")
    old = load_model(str(tmp_path / "old.skops"))
    assert old.thousands == []
    raw = pl.DataFrame({"a": ["1", "2,345"], "c": ["x", "y"]})
    with pytest.raises(TableError, match="got '2,345' in row 2"):
        old.columns_of(raw, "new.csv")


def test_a_file_keeps_the_columns_of_thousands(saved, tmp_path):
    save_model(str(tmp_path / "m.skops"), replace(saved, thousands=["a"]))
    raw = pl.DataFrame({"a": ["1", "2,345"], "c": ["x", "y"]})
    back = load_model(str(tmp_path / "m.skops"))
    assert back.columns_of(raw, "new.csv")["a"].to_list() == [1, 2345]


def changed(saved, tmp_path, **attributes):
    """A file of the model with attributes of its estimator changed."""
    for name, value in attributes.items():
        setattr(saved.pipeline[-1], name, value)
    save_model(str(tmp_path / "changed.skops"), saved)
    return str(tmp_path / "changed.skops")


@pytest.mark.parametrize("name", ["X_fit_", "dual_coef_"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_arrays_with_numbers_that_are_not_finite_are_refused(saved, tmp_path, name, value):
    array = getattr(saved.pipeline[-1], name).copy()
    array.flat[3] = value
    path = changed(saved, tmp_path, **{name: array})
    with pytest.raises(ModelFileError, match=f"got numbers that are not finite in `{name}`"):
        load_model(path)


@pytest.mark.parametrize("name", ["bandwidth_", "intercept_"])
def test_numbers_that_are_not_finite_are_refused(saved, tmp_path, name):
    path = changed(saved, tmp_path, **{name: float("nan")})
    with pytest.raises(ModelFileError, match=r"numbers that are not finite|no numbers"):
        load_model(path)


def test_a_scale_that_is_not_finite_is_refused(saved, tmp_path):
    saved.pipeline[0].named_transformers_["numbers"].mean_[0] = np.nan
    with pytest.raises(ModelFileError, match="not finite in `mean_`"):
        load_model(changed(saved, tmp_path))


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("dual_coef_", lambda a: a[:-1]),
        ("dual_coef_", lambda a: np.stack([a, a], axis=1)),
        ("X_fit_", lambda a: a[:-1]),
        ("X_fit_", lambda a: a[:, :-1]),
        ("X_fit_", lambda a: a.ravel()),
    ],
)
def test_arrays_that_do_not_fit_are_refused(saved, tmp_path, name, cut):
    path = changed(saved, tmp_path, **{name: cut(getattr(saved.pipeline[-1], name))})
    with pytest.raises(ModelFileError, match="got arrays whose shapes do not fit"):
        load_model(path)


def test_models_are_not_written_under_other_suffixes():
    for name in ("m.pkl", "m.joblib", "m.csv"):
        with pytest.raises(WrongUse, match=r"ends in .skops, .onnx, got `m.\w+`. Pickled files"):
            check_model_name(name)
    for name in ("m", "m.skops", "M.SKOPS", "m.onnx"):
        check_model_name(name)


@pytest.mark.parametrize("standardize", [True, False])
def test_a_model_of_numbers_is_written_as_onnx(rng, tmp_path, standardize):
    runtime = pytest.importorskip("onnxruntime")
    X = pl.DataFrame({"a": rng.normal(size=30), "b": rng.normal(size=30)})
    prepare = columns_prepared(["a", "b"], [], standardize=standardize)
    pipeline = Pipeline([("columns", prepare), ("model", JacobianKernelRidge())])
    pipeline.fit(X, X["a"].to_numpy() ** 2)
    save_model(str(tmp_path / "m.onnx"), SavedModel(pipeline, ["y"], ["a", "b"], []))
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"))
    (found,) = session.run(None, {"X": X.to_numpy()})
    np.testing.assert_allclose(found, pipeline.predict(X), rtol=1e-7)


def test_onnx_of_categories_says_no(saved, tmp_path):
    with pytest.raises(ModelFileError, match="only supports models with numeric columns, got `c`"):
        save_model(str(tmp_path / "m.onnx"), saved)
    assert not (tmp_path / "m.onnx").exists()
