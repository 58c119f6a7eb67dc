"""Saved models load and predict the same, those of an earlier version too; damaged ones do not."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from jacridge import (
    AutoKernelClassifier,
    AutoKernelRidge,
    JacobianKernelClassifier,
    JacobianKernelRidge,
    JacobianNystroem,
)

FOLDER = Path(__file__).parent / "saved"
# The rows that the old version predicted for, and its predictions and deviations.
X_NEW = np.random.default_rng(0).standard_normal(70).reshape(35, 2)[30:]
EXPECTED = {
    "exact": (
        [-1.60059898, 0.62556028, 0.06009744, 2.35538055, -0.97106503],
        [0.05790425, 0.27486354, 0.03898057, 0.0420691, 0.29613895],
    ),
    "nystrom": (
        [-1.44806092, 0.06585306, -0.01065296, 2.43029969, -1.21134673],
        [0.13749168, 0.25435056, 0.04635174, 0.07100174, 0.61575713],
    ),
}


@pytest.mark.parametrize("solver", EXPECTED)
def test_a_pickle_of_version_0_1_predicts_as_it_did(solver):
    est = pickle.loads((FOLDER / f"{solver}_0_1.pickle").read_bytes())
    mean, std = est.predict(X_NEW, return_std=True)
    np.testing.assert_allclose(mean, EXPECTED[solver][0], atol=1e-8)
    # A weight above one counted as more rows then, so that the scale of deviations was smaller.
    np.testing.assert_allclose(
        std / EXPECTED[solver][1], std[0] / EXPECTED[solver][1][0], rtol=1e-6
    )
    lower, upper = est.predict_interval(X_NEW)
    assert (lower < mean).all()
    assert (mean < upper).all()
    assert est.diagnose().findings


def test_a_pickle_of_this_version_names_no_private_module(rng):
    X = rng.standard_normal((30, 2))
    for est in (
        JacobianKernelRidge().fit(X, X[:, 0]),
        JacobianKernelRidge(solver="nystrom", n_landmarks=9).fit(X, X[:, 0]),
        JacobianKernelRidge(solver="pcg").fit(X, X[:, 0]),
        JacobianNystroem(n_components=5).fit(X),
    ):
        assert b"jacridge._" not in pickle.dumps(est)


@pytest.mark.parametrize("metric", ["euclidean", "scaled", "diagonal", "full"])
def test_a_state_that_holds_the_map_as_a_matrix_predicts_the_same(rng, metric):
    """Such states were written before a diagonal map was kept as a vector."""
    X = rng.standard_normal((60, 3))
    y = np.sin(X[:, 0] + X[:, 1])  # which a full map turns
    est = JacobianKernelRidge("median", 0.1, metric=metric, random_state=0).fit(X, y)
    state = est.__getstate__()
    state["metric_"] = est.metric_
    assert np.ndim(state.pop("_T")) == (2 if metric == "full" else 1)
    assert np.ndim(state["metric_"]) == 2
    back = JacobianKernelRidge()
    back.__setstate__(state)
    np.testing.assert_array_equal(back.predict(X), est.predict(X))
    np.testing.assert_array_equal(back.metric_, est.metric_)
    assert np.shape(back.__getstate__()["_T"]) == np.shape(est.__getstate__()["_T"])


TRUSTED = [
    f"jacridge.{cls.__name__}"
    for cls in (
        AutoKernelClassifier,
        AutoKernelRidge,
        JacobianKernelClassifier,
        JacobianKernelRidge,
        JacobianNystroem,
    )
]


def from_file(model):
    """The model from a skops file, which trusts our public names alone."""
    skops = pytest.importorskip("skops.io")
    return skops.loads(skops.dumps(model), trusted=TRUSTED)


@pytest.mark.parametrize(
    ("kernel", "metric"),
    [
        *((kernel, "scaled") for kernel in ("matern52", "matern32", "exponential", "laplacian")),
        *(("gaussian", metric) for metric in ("euclidean", "scaled", "diagonal", "full", "auto")),
    ],
)
def test_a_skops_file_holds_each_kernel_and_metric(table, kernel, metric):
    X, y = table
    est = JacobianKernelRidge("median", 0.1, kernel=kernel, metric=metric, random_state=0).fit(X, y)
    back = from_file(est)
    np.testing.assert_array_equal(back.predict(X), est.predict(X))
    np.testing.assert_allclose(back.predict_interval(X[:3]), est.predict_interval(X[:3]), rtol=1e-9)
    np.testing.assert_allclose(back.jacobian(X[:3]), est.jacobian(X[:3]), rtol=1e-9)
    assert (back.kernel_, back.metric) == (kernel, metric)


def test_a_skops_file_holds_distances_and_places(rng):
    pytest.importorskip("pyproj")
    X = rng.uniform(40, 50, (20, 2))
    D = np.abs(X[:, :1] - X[:, 0])
    for metric, rows in (("geodesic", X), ("precomputed", D)):
        est = JacobianKernelRidge("median", 0.1, kernel="exponential", metric=metric)
        back = from_file(est.fit(rows, X[:, 0]))
        np.testing.assert_array_equal(back.predict(rows), est.predict(rows))


@pytest.mark.parametrize("solver", ["exact", "nystrom", "pcg"])
@pytest.mark.parametrize("labels", [[0, 1], ["a", "b", "c"]])
def test_a_skops_file_holds_a_classifier(table, solver, labels):
    X, _ = table
    y = np.array(labels)[np.arange(60) % len(labels)]
    est = JacobianKernelClassifier(5.0, 0.1, metric="scaled", solver=solver, n_landmarks=20)
    back = from_file(est.set_params(random_state=0).fit(X, y))
    np.testing.assert_array_equal(back.predict(X), est.predict(X))
    np.testing.assert_array_equal(back.decision_function(X), est.decision_function(X))
    np.testing.assert_array_equal(back.classes_, est.classes_)


@pytest.mark.slow
def test_a_skops_file_holds_what_chooses_for_itself_and_pipelines(table):
    X, y = table
    for est, target in (
        (AutoKernelRidge(random_state=0), y),
        (AutoKernelClassifier(random_state=0), y > 1),
        (make_pipeline(StandardScaler(), AutoKernelRidge(random_state=0)), y),
    ):
        back = from_file(est.fit(X, target))
        np.testing.assert_array_equal(back.predict(X), est.predict(X))
    features = JacobianNystroem(n_components=9, random_state=0).fit(X)
    np.testing.assert_array_equal(from_file(features).transform(X), features.transform(X))


def saved_arrays(est):
    """Arrays that only deviations, intervals and leave-one-out need."""
    return {name: a for name, a in est.__getstate__()["_saved"].items() if np.ndim(a)}


@pytest.mark.parametrize("solver", ["exact", "nystrom"])
@pytest.mark.parametrize("damage", ["short", "flat", "wide", "nan"])
def test_a_file_with_damaged_arrays_is_refused_when_it_is_loaded(table, solver, damage):
    X, y = table
    w = 1.0 + np.arange(60) % 2
    est = JacobianKernelRidge(5.0, 0.1, solver=solver, n_landmarks=20, random_state=0)
    est.fit(X, np.column_stack([y, y**2]), w)
    for name, array in saved_arrays(est).items():
        damaged = {
            "short": array[:-1],
            "flat": array.ravel() if array.ndim > 1 else array[:, None],
            "wide": np.concatenate([array, array], axis=-1),
            "nan": np.where(array == array.flat[-1], np.nan, array),
        }[damage]
        broken = pickle.loads(pickle.dumps(est))
        broken._solved[name] = damaged
        for load in (from_file, lambda model: pickle.loads(pickle.dumps(model))):
            with pytest.raises(
                ValueError, match=r"A saved model must hold (arrays of matching|finite)"
            ):
                load(broken)


def test_a_saved_model_of_replicates_leaves_out_the_same_observations(rng):
    """A restored model has no rows as given, but the weights of those in its sample."""
    X = np.repeat(rng.normal(size=(60, 2)), 3, axis=0)
    y = np.round(np.sin(2 * X[:, 0]) + 0.4 * rng.normal(size=180), 1)
    est = JacobianKernelRidge(1.0, 0.5, solver="nystrom", n_landmarks=15, random_state=0)
    est.fit(X, y, rng.integers(1, 4, 180).astype(float))
    restored = pickle.loads(pickle.dumps(est))
    numbers = [model.diagnose().findings[0].value for model in (est, restored)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-9)
