"""Classifiers: leave-one-out against refits, probabilities, weights, labels of any kind."""

import pickle

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_iris, make_classification, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import naive
from jacridge import AutoKernelClassifier, JacobianKernelClassifier, JacobianKernelRidge
from jacridge.parquet import ParquetFiles


@parametrize_with_checks(
    [
        JacobianKernelClassifier(),
        JacobianKernelClassifier("median", kernel="laplacian", metric="scaled"),
        JacobianKernelClassifier("median", 0.1, solver="pcg"),
        JacobianKernelClassifier(solver="nystrom"),
        AutoKernelClassifier(),
        AutoKernelClassifier(held_out="later"),
    ]
)
def test_scikit_learn_takes_it_for_a_classifier(estimator, check):
    """Not with given distances: two of the checks give kernels or features instead."""
    check(estimator)


def three_classes(rng, n=60):
    """Rows in two dimensions and labels of three classes, of unlike size."""
    X = rng.standard_normal((n, 2))
    return X, np.array(["low", "mid", "top"])[np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.2, 1])]


def two_classes(rng, n=60):
    X, y = three_classes(rng, n)
    return X, np.where(y == "low", "low", "high")


MADE = {"two": two_classes, "three": three_classes}


def raw_scores(est, decision):
    """Share of the classes plus the scores before calibration, which refits have in common."""
    shares = est.class_prior_[1] if len(est.classes_) == 2 else est.class_prior_
    return (decision - est.offset_) / est.slope_ + shares


@pytest.mark.parametrize("classes", MADE)
@pytest.mark.parametrize("solver", ["exact", "nystrom"])
def test_leave_one_out_scores_are_those_of_refits(classes, solver, rng):
    X, y = MADE[classes](rng, 40)
    options = {"solver": solver, "landmarks": X[:9] + 0.1 if solver == "nystrom" else "kmeans"}
    est = JacobianKernelClassifier(0.8, 0.05, **options).fit(X, y)
    found = raw_scores(est, est.loo_decision_function_)
    for i in range(40):
        rest = np.arange(40) != i
        without = JacobianKernelClassifier(0.8, 0.05, **options).fit(X[rest], y[rest])
        expected = raw_scores(without, without.decision_function(X[[i]]))[0]
        np.testing.assert_allclose(found[i], expected, atol=1e-8)


@pytest.mark.parametrize("classes", MADE)
def test_probabilities_agree_with_the_log_odds(classes, rng):
    X, y = MADE[classes](rng)
    est = JacobianKernelClassifier("auto", "auto", random_state=0).fit(X, y)
    P, odds = est.predict_proba(X), est.decision_function(X)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(est.predict_log_proba(X), np.log(P), rtol=1e-9)
    np.testing.assert_array_equal(est.predict(X), est.classes_[P.argmax(axis=1)])
    if len(est.classes_) == 2:
        np.testing.assert_allclose(np.log(P[:, 1] / P[:, 0]), odds, rtol=1e-8)
    else:
        np.testing.assert_allclose(P, np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("classes", MADE)
def test_no_other_slope_has_a_smaller_loss_of_leave_one_out(classes, rng):
    """One row of another class is spread over all n, so that the slope stays finite."""
    X, y = MADE[classes](rng, 80)
    est = JacobianKernelClassifier(1.0, 0.1).fit(X, y)
    odds, k = est.loo_decision_function_, len(est.classes_)
    Y = (y[:, None] == est.classes_).astype(float)
    Y += (1 - k * Y) / (81 * (k - 1))

    def loss(factor):
        Z = factor * (np.column_stack([0 * odds, odds]) if k == 2 else odds)
        return -(Y * (Z - np.logaddexp.reduce(Z, axis=1)[:, None])).sum()

    assert loss(1.0) < min(loss(0.99), loss(1.01))


def test_no_other_offset_of_a_class_has_a_smaller_loss(rng):
    """Offsets beyond slope times share are penalised by the sum of their squares over n."""
    X, y = three_classes(rng, 80)
    est = JacobianKernelClassifier(1.0, 0.1).fit(X, y)
    odds, b = est.loo_decision_function_, est.offset_ - est.slope_ * est.class_prior_
    Y = (y[:, None] == est.classes_).astype(float)
    Y += (1 - 3 * Y) / 162

    def loss(step):
        Z = odds + step
        return (
            np.sum((b + step) ** 2) - (Y * (Z - np.logaddexp.reduce(Z, axis=1)[:, None])).sum()
        ) / 80

    assert np.abs(b).max() > 1e-3
    assert loss(0.0) < min(loss(sign * 0.01 * row) for sign in (-1, 1) for row in np.eye(3))


def test_probabilities_are_calibrated(rng):
    """Labels drawn with known probabilities: the log loss is close to the least possible one."""
    X = rng.uniform(-2, 2, (1200, 2))
    p = 1 / (1 + np.exp(-3 * np.sin(2 * X[:, 0])))
    y = rng.uniform(size=1200) < p
    est = JacobianKernelClassifier("auto", "auto", random_state=0).fit(X[:400], y[:400])
    found = est.predict_proba(X[400:])[:, 1]
    assert log_loss(y[400:], found) < 1.1 * log_loss(y[400:], p[400:])
    assert np.abs(found - p[400:]).mean() < 0.08


def test_scores_that_separate_the_classes_leave_a_doubt(rng):
    X = np.vstack([rng.standard_normal((20, 2)), rng.standard_normal((20, 2)) + 20])
    P = JacobianKernelClassifier("median").fit(X, np.repeat([0, 1], 20)).predict_proba(X)
    assert 0.9 < P.max() < 1 - 1e-4


@pytest.mark.parametrize("classes", MADE)
@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
def test_far_from_the_data_probabilities_are_near_the_shares_and_none_is_certain(
    classes, kernel, rng
):
    """Scores vanish there, so that probabilities are those of the offsets, near the shares."""
    X, y = MADE[classes](rng, 200)
    est = JacobianKernelClassifier("auto", "auto", kernel=kernel, random_state=0).fit(X, y)
    P = est.predict_proba(1e9 * np.vstack([np.eye(2), -np.eye(2)]))
    offset = np.atleast_1d(est.offset_)
    odds = np.append(0, offset) if classes == "two" else offset
    np.testing.assert_allclose(P, np.tile(np.exp(odds) / np.exp(odds).sum(), (4, 1)))
    assert np.abs(P - est.class_prior_).max() < 0.2
    assert P.min() > 0.02


@pytest.mark.parametrize("classes", MADE)
def test_one_penalty_and_one_bandwidth_serve_all_classes(classes, rng):
    X, y = MADE[classes](rng)
    for bandwidth in ("auto", "jacobian", "loo", 1.0):
        est = JacobianKernelClassifier(bandwidth, "loo", random_state=0).fit(X, y)
        assert isinstance(est.alpha_, float)
        assert isinstance(est.bandwidth_, float)


def test_the_penalty_has_the_least_sum_of_squared_leave_one_out_errors(rng):
    X, y = three_classes(rng)
    lams = np.logspace(-4, 1, 30)
    est = JacobianKernelClassifier(1.0, lams).fit(X, y)

    def error(alpha):
        return np.square(
            JacobianKernelClassifier(1.0, alpha).fit(X, y).regressor_.loo_residuals_
        ).sum()

    assert error(est.alpha_) <= min(error(lam) for lam in lams)


@pytest.mark.parametrize("classes", MADE)
def test_a_weight_of_two_is_two_equal_rows(classes, rng):
    X, y = MADE[classes](rng)
    w = rng.integers(0, 4, len(y))
    for options in ({}, {"solver": "nystrom", "landmarks": X[:9]}, {"class_weight": "balanced"}):
        est = JacobianKernelClassifier("median", "loo", **options)
        weighted = clone(est).fit(X, y, w)
        repeated = est.fit(np.repeat(X, w, axis=0), np.repeat(y, w))
        found, expected = weighted.predict_proba(X), repeated.predict_proba(X)
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_equal_rows_of_different_classes_share_their_probability(rng):
    X = np.repeat(rng.standard_normal((30, 2)), 4, axis=0)
    y = np.tile([0, 0, 0, 1], 30)
    P = JacobianKernelClassifier("median", 0.1).fit(X, y).predict_proba(X)
    # Calibration smooths shares of few rows: 0.263.
    np.testing.assert_allclose(P[:, 1], 0.25, atol=0.015)


@pytest.mark.slow
@pytest.mark.parametrize("make", [AutoKernelClassifier, JacobianKernelClassifier])
@pytest.mark.parametrize("solver", ["exact", "nystrom", "dask"])
@pytest.mark.parametrize("k", [2, 3])
def test_labels_of_equal_rows_are_predicted_like_their_shares(k, solver, make, rng):
    """30 rows that have nothing in common, with 100 labels each."""
    X, P = rng.standard_normal((30, 2)), rng.dirichlet(np.ones(k), 30)
    i = rng.permutation(np.repeat(np.arange(30), 100))
    y = np.array([rng.choice(k, p=P[j]) for j in i])
    shares = (np.array([np.bincount(y[i == j], minlength=k) for j in range(30)]) + 0.5) / 100
    est = make("auto", "auto", random_state=0).set_params(
        solver="nystrom" if solver == "dask" else solver
    )
    rows = (X[i], y)
    if solver == "dask":
        da = pytest.importorskip("dask.array")
        rows = da.from_array(X[i], chunks=(700, 2)), da.from_array(y, chunks=700)
    Q = est.fit(*rows).predict_proba(X)

    def loss(Q):
        return -(P * np.log(Q / Q.sum(axis=1, keepdims=True))).sum(axis=1).mean()

    def accuracy(Q):
        return P[np.arange(30), Q.argmax(axis=1)].mean()

    # One slope for all classes costs a little; to predict the shares of all rows costs 0.1 to 0.3.
    assert loss(Q) < loss(shares) + 0.04
    assert accuracy(Q) > accuracy(shares) - 0.02


@pytest.mark.slow
@pytest.mark.parametrize("make", [AutoKernelClassifier, JacobianKernelClassifier])
def test_copies_of_rows_with_their_labels_say_nothing_new(make, rng):
    """Labels of pure noise: in a model that looks at the copies of a row there is a signal."""
    X, y = rng.standard_normal((200, 2)), rng.integers(0, 2, 200)
    est = make("auto", "auto", random_state=0)
    once, weighted = clone(est).fit(X, y), clone(est).fit(X, y, np.full(200, 2))
    P = est.fit(np.vstack([X, X]), np.append(y, y)).predict_proba(X)
    np.testing.assert_allclose(P, weighted.predict_proba(X), atol=1e-8)
    # Calibration smooths by the number of rows as given.
    np.testing.assert_allclose(P, once.predict_proba(X), atol=5e-3)


def test_a_number_is_the_weight_of_every_row(rng):
    X, y = three_classes(rng)
    known = JacobianKernelClassifier(1.0, 0.1).fit(X, y, np.full(60, 3.0))
    found = JacobianKernelClassifier(1.0, 0.1).fit(X, y, 3)
    np.testing.assert_array_equal(found.decision_function(X), known.decision_function(X))


def test_weights_of_classes_are_weights_of_their_rows(rng):
    X, y = three_classes(rng)
    given = JacobianKernelClassifier(class_weight={"low": 3.0, "top": 0.5}).fit(X, y)
    w = np.select([y == "low", y == "top"], [3.0, 0.5], 1.0)
    same = JacobianKernelClassifier().fit(X, y, w)
    np.testing.assert_allclose(given.predict_proba(X), same.predict_proba(X), rtol=1e-10)
    balanced = JacobianKernelClassifier(class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(balanced.class_prior_, 1 / 3)


@pytest.mark.parametrize(
    "names",
    [["b", "a", "c"], [3, -1, 7], [2.0, 0.0, 5.0], np.array(["b", "a", "c"], dtype=object)],
    ids=["strings", "whole numbers", "floats", "objects"],
)
def test_labels_are_of_any_kind(names, rng):
    X, y = three_classes(rng)
    index = np.unique(y, return_inverse=True)[1]
    known = JacobianKernelClassifier().fit(X, index)
    labels = np.asarray(names)[index]
    est = JacobianKernelClassifier().fit(X, labels)
    assert est.classes_.tolist() == sorted(np.asarray(names).tolist())
    order = np.argsort(np.asarray(names))
    np.testing.assert_allclose(est.predict_proba(X), known.predict_proba(X)[:, order], atol=1e-10)
    assert est.score(X, labels) == known.score(X, index)


def test_booleans_are_labels(rng):
    X, y = two_classes(rng)
    est = JacobianKernelClassifier().fit(X, y == "low")
    assert est.predict(X).dtype == bool
    assert est.score(X, y == "low") > 0.9


@pytest.mark.parametrize(("kind", "type_"), [("boolean", "bool"), ("Int64", "int64")])
def test_nullable_labels_of_pandas_stay_what_they_are(kind, type_, rng):
    pd = pytest.importorskip("pandas")
    X, y = two_classes(rng)
    labels = pd.Series(y == "low").astype(kind)
    est = JacobianKernelClassifier().fit(X, labels)
    assert est.classes_.dtype == est.predict(X).dtype == type_
    assert est.score(X, labels) > 0.9


def test_no_rows_have_no_class():
    with pytest.raises(ValueError, match=r"at least two classes .* got no rows"):
        JacobianKernelClassifier().fit(np.empty((0, 2)), [])


@pytest.mark.parametrize("w", ["a", ["a", "b"] * 60])
def test_weights_that_are_no_list_of_numbers_are_refused_in_words(w, rng):
    X, y = two_classes(rng)
    for est in (JacobianKernelClassifier(), JacobianKernelRidge()):
        with pytest.raises(TypeError, match="`sample_weight` must be an array of numbers"):
            est.fit(X, y == "low", sample_weight=w)


BAD = {
    "one class": (np.zeros(20), {}, "at least two classes .* got one class, 0.0"),
    "a class with one row": (
        np.array(["a"] * 10 + ["b"] * 9 + ["c"]), {}, "at least two rows of each class, .* 'c'",
    ),
    "a missing label": (
        np.array(["a", None] * 10, dtype=object), {}, "in every row, got 10 missing .* row 1",
    ),
    "a label that is not a number": (
        np.array([0, 1.0] * 9 + [1, np.nan]), {}, "a label in every row, got 1 missing .* row 19",
    ),
    "numbers with fractions": (
        np.linspace(0, 1, 20), {}, "`y` must hold labels .* AutoKernelRidge .* type: continuous",
    ),
    "two numbers with fractions": (
        np.array([0.5, 1.5] * 10), {}, "`y` must hold labels .* AutoKernelRidge .* continuous",
    ),
    "numbers and texts": (
        np.array([0, "a"] * 10, dtype=object), {},
        r"`y` must hold labels of one kind.* \(int, str\). Convert it first",
    ),
    "one class of texts": (["a"] * 20, {}, "at least two classes .* got one class, 'a'"),
    "an infinite label": (
        np.array([0, 1.0] * 9 + [0, np.inf]), {}, "got 1 missing or infinite, .* row 19",
    ),
    "a masked label": (
        np.ma.masked_array([0, 1] * 10, mask=[0] * 19 + [1]), {}, "got 1 missing .* row 19",
    ),
    "None in a list of numbers": ([0, 1] * 9 + [0, None], {}, "got 1 missing .* row 19"),
    "a null of polars": (pl.Series([*"ab" * 9, "a", None]), {}, "got 1 missing .* row 19"),
    "an unknown word": (
        np.array([0, 1] * 10), {"class_weight": "even"}, '`class_weight` must be None, "balanced"',
    ),
    "weights of an unknown class": (
        np.array([0, 1] * 10), {"class_weight": {2: 1.0}}, "name classes of `y`, .* 0, 1, got 2",
    ),
    "a negative weight": (
        np.array([0, 1] * 10), {"class_weight": {1: -1.0}}, "finite weights > 0, got {1: -1.0}",
    ),
    "a weight that is no number": (
        np.array([0, 1] * 10), {"class_weight": {1: "x"}}, "finite weights > 0, got {1: 'x'}",
    ),
    "NaN in a list of texts": (
        [*"ab" * 9, "a", float("nan")], {}, "a label in every row, got 1 missing .* row 19",
    ),
    "a missing date": (
        np.array(["2020-01-01", "NaT"] * 10, dtype="M8[D]"), {}, "got 10 missing .* row 1",
    ),
    "no label at all": (None, {}, "`y` must hold labels"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused_in_words(what, rng):
    y, options, message = BAD[what]
    with pytest.raises(ValueError, match=message):
        JacobianKernelClassifier(**options).fit(rng.standard_normal((20, 2)), y)


@pytest.mark.parametrize(
    "kind", ["object", "string", "category", "Int64", "boolean", "datetime64[ns]", "list of NaT"]
)
def test_missing_labels_of_pandas_are_refused(kind, rng):
    """None, pandas.NA and pandas.NaT, in columns of all types."""
    pd = pytest.importorskip("pandas")
    labels = {
        "Int64": [0, 1],
        "boolean": [True, False],
        "datetime64[ns]": [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02")],
    }
    one, two = labels.get(kind, ["a", "b"])
    y = [one, two] * 9 + [one, pd.NaT if "NaT" in kind else pd.NA if kind == "object" else None]
    y = y if "list" in kind else pd.Series(y, dtype=kind)
    with pytest.raises(ValueError, match=r"got 1 missing .* row 19"):
        JacobianKernelClassifier().fit(rng.standard_normal((20, 2)), y)


def test_a_fit_that_fails_leaves_a_classifier_as_it_was(rng):
    X, y = three_classes(rng)
    est, missing = JacobianKernelClassifier(1.0, 0.1), np.where(X > 1, np.nan, X)
    with pytest.raises(ValueError, match="NaN"):
        est.fit(missing, y)
    with pytest.raises(NotFittedError):
        est.predict(X)
    known = est.fit(X, y).predict(X)
    with pytest.raises(ValueError, match="NaN"):
        est.fit(missing, X[:, 0] > 0)
    np.testing.assert_array_equal(est.predict(X), known)
    assert est.classes_.tolist() == ["low", "mid", "top"]


def test_bad_weights_are_refused_in_words(rng):
    X, y = three_classes(rng)
    with pytest.raises(TypeError, match=r"`class_weight` must be None, .* got \[1, 2\]"):
        JacobianKernelClassifier(class_weight=[1, 2]).fit(X, y)
    with pytest.raises(ValueError, match="`sample_weight` must be >= 0"):
        JacobianKernelClassifier().fit(X, y, -np.ones(60))
    with pytest.raises(ValueError, match=r"one weight per row, shape \(60,\), got shape \(59,\)"):
        JacobianKernelClassifier().fit(X, y, np.ones(59))


def test_a_class_whose_rows_have_no_weight_is_no_class(rng):
    X, y = three_classes(rng)
    w = (y != "mid").astype(float)
    est = JacobianKernelClassifier().fit(X, y, w)
    assert est.classes_.tolist() == ["low", "top"]
    same = JacobianKernelClassifier().fit(X[w > 0], y[w > 0])
    np.testing.assert_allclose(est.predict_proba(X), same.predict_proba(X), rtol=1e-8)


@pytest.mark.parametrize("classes", MADE)
@pytest.mark.parametrize("metric", ["euclidean", "scaled", "diagonal"])
def test_the_jacobian_is_that_of_the_log_odds(classes, metric, rng):
    X, y = MADE[classes](rng, 80)
    est = JacobianKernelClassifier("auto", 0.1, metric=metric, random_state=0).fit(X, y)
    J = est.jacobian(X[:5])
    steps = 1e-4 * np.eye(2)
    expected = [
        (est.decision_function(X[:5] + s) - est.decision_function(X[:5] - s)) / 2e-4 for s in steps
    ]
    # Central differences of step 1e-4.
    np.testing.assert_allclose(J, np.stack(expected, axis=-1), rtol=1e-5, atol=1e-5)


def test_importances_find_the_features_that_matter():
    X, y = make_classification(
        400, 10, n_informative=3, n_redundant=0, shuffle=False, random_state=0
    )
    est = AutoKernelClassifier(random_state=0).fit(X, y)
    assert est.feature_importances_.sum() == pytest.approx(1)
    assert est.feature_importances_[:3].sum() > 0.6
    assert est.metric_.shape[0] == 10
    assert sum(row["chosen"] for row in est.choices_) == 1


def test_the_diagnosis_has_accuracy_and_log_loss_first(rng):
    X, y = three_classes(rng)
    est = JacobianKernelClassifier("auto", "auto", random_state=0).fit(X, y)
    found, odds = est.diagnose().dict(), est.loo_decision_function_
    right = est.classes_[odds.argmax(axis=1)] == y
    assert found["leave-one-out accuracy"]["value"] == pytest.approx(right.mean())
    P = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    assert found["leave-one-out log loss"]["value"] == pytest.approx(log_loss(y, P))


def test_without_leave_one_out_there_are_classes_and_no_probabilities(rng):
    X, y = three_classes(rng)
    exact = JacobianKernelClassifier(1.0, 0.1, solver="exact").fit(X, y)
    est = JacobianKernelClassifier(1.0, 0.1, solver="pcg").fit(X, y)
    np.testing.assert_array_equal(est.predict(X), exact.predict(X))
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as refused:
        est.predict_proba(X)
    assert "Use solver='exact' or 'nystrom'" in str(refused.value.__cause__)
    # What a fitted model has does not depend on the parameters of the next fit.
    assert not hasattr(est.set_params(solver="exact"), "predict_proba")
    P = exact.predict_proba(X)
    np.testing.assert_array_equal(exact.set_params(solver="pcg").predict_proba(X), P)


def test_landmarks_at_all_rows_are_the_exact_solver(rng):
    X, y = three_classes(rng)
    exact = JacobianKernelClassifier(1.0, 0.1).fit(X, y)
    est = JacobianKernelClassifier(1.0, 0.1, solver="nystrom", n_landmarks=60).fit(X, y)
    np.testing.assert_allclose(est.predict_proba(X), exact.predict_proba(X), atol=1e-7)


@pytest.mark.parametrize("solver", ["exact", "nystrom", "pcg"])
def test_a_pickled_classifier_predicts_the_same(solver, rng):
    X, y = three_classes(rng)
    est = JacobianKernelClassifier("median", 0.1, solver=solver, n_landmarks=20).fit(X, y)
    packed = pickle.dumps(est)
    assert b"jacridge._" not in packed
    again = pickle.loads(packed)
    np.testing.assert_allclose(again.decision_function(X), est.decision_function(X), rtol=1e-9)


def test_a_skops_file_needs_the_public_names_alone(rng):
    skops = pytest.importorskip("skops.io")
    X, y = three_classes(rng)
    est = AutoKernelClassifier(random_state=0).fit(X, y)
    packed = skops.dumps(est)
    trusted = ["jacridge.AutoKernelClassifier", "jacridge.JacobianKernelRidge"]
    assert set(skops.get_untrusted_types(data=packed)) <= set(trusted)
    again = skops.loads(packed, trusted=trusted)
    np.testing.assert_allclose(again.predict_proba(X), est.predict_proba(X), rtol=1e-9)


def test_fits_with_the_same_seed_are_equal(rng):
    X, y = three_classes(rng, 150)
    one, two = (AutoKernelClassifier(random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_it_works_inside_pipelines_and_searches(rng):
    X, y = three_classes(rng, 90)
    model = make_pipeline(StandardScaler(), JacobianKernelClassifier())
    name = "jacobiankernelclassifier__bandwidth"
    search = GridSearchCV(model, {name: ["median", 1.0]}, cv=3, scoring="neg_log_loss").fit(X, y)
    assert search.best_score_ > -0.5


@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
def test_given_distances_are_those_of_the_features(kernel, rng):
    X, y = three_classes(rng)
    known = JacobianKernelClassifier(1.0, 0.1, kernel=kernel).fit(X, y)
    D = naive.distances(X, X)
    est = JacobianKernelClassifier(1.0, 0.1, kernel=kernel, metric="precomputed").fit(D, y)
    np.testing.assert_allclose(est.predict_proba(D), known.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("classes", MADE)
@pytest.mark.parametrize("method", ["predict_proba", "decision_function", "predict"])
def test_scikit_learn_draws_the_borders_of_the_classes(classes, method, rng):
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y = MADE[classes](rng)
    index = np.unique(y, return_inverse=True)[1]
    est = JacobianKernelClassifier().fit(X, index)
    shown = DecisionBoundaryDisplay.from_estimator(
        est, X, response_method=method, grid_resolution=9
    )
    plane = np.column_stack([shown.xx0.ravel(), shown.xx1.ravel()])
    expected = getattr(est, method)(plane)
    if classes == "two" and method == "predict_proba":
        expected = expected[:, 1]
    np.testing.assert_allclose(shown.response.reshape(expected.shape), expected, rtol=1e-9)
    plt.close("all")


def test_scikit_learn_draws_the_calibration_curve(rng):
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y = two_classes(rng)
    est = JacobianKernelClassifier("auto", "auto", random_state=0).fit(X, y)
    shown = CalibrationDisplay.from_estimator(est, X, y)
    np.testing.assert_allclose(shown.y_prob, est.predict_proba(X)[:, 1], rtol=1e-12)
    plt.close("all")


def test_the_log_loss_is_a_score_of_cross_validation(rng):
    X, y = three_classes(rng, 90)
    est = JacobianKernelClassifier("median", 0.1)
    found = cross_val_score(est, X, y, cv=3, scoring="neg_log_loss")
    train, test = next(StratifiedKFold(3).split(X, y))
    assert found[0] == pytest.approx(
        -log_loss(y[test], est.fit(X[train], y[train]).predict_proba(X[test]))
    )


def streamed(rng, n=600):
    X, y = three_classes(rng, n)
    options = {"metric": "scaled", "solver": "nystrom", "n_landmarks": 40, "random_state": 0}
    return X, y, JacobianKernelClassifier("median", "loo", **options)


@pytest.mark.slow
@pytest.mark.parametrize("weight", [None, "balanced"])
def test_dask_arrays_of_labels_are_coded_where_they_are(weight, rng):
    da = pytest.importorskip("dask.array")
    X, y, est = streamed(rng)
    est.set_params(class_weight=weight)
    w = rng.uniform(0.5, 2, len(y))
    known = clone(est).fit(X, y, w)
    rows, labels = da.from_array(X, chunks=(130, 2)), da.from_array(y, chunks=200)
    est.fit(rows, labels, da.from_array(w, chunks=100))
    assert est.classes_.tolist() == ["low", "mid", "top"]
    # Sums of other blocks round otherwise.
    np.testing.assert_allclose(est.predict_proba(X), known.predict_proba(X), atol=1e-6)
    for name in ("predict", "predict_proba", "decision_function"):
        lazy = getattr(est, name)(rows)
        now = getattr(est, name)(X)
        assert lazy.shape == now.shape
        assert lazy.dtype == now.dtype
        agree = lazy.compute() == now if name == "predict" else np.isclose(lazy.compute(), now)
        assert np.all(agree)


@pytest.mark.slow
def test_dask_labels_of_two_classes_and_missing_ones(rng):
    da = pytest.importorskip("dask.array")
    X, y = make_moons(300, noise=0.2, random_state=0)
    rows = da.from_array(X, chunks=(100, 2))
    est = JacobianKernelClassifier("median", 0.1, n_landmarks=30, random_state=0)
    est.fit(rows, da.from_array(y, chunks=100))
    assert est.predict_proba(rows).compute().shape == (300, 2)
    assert accuracy_score(y, est.predict(rows)) > 0.9
    bad = y.astype(float)
    bad[150] = np.nan
    with pytest.raises(ValueError, match=r"got 1 missing .* row 150"):
        est.fit(rows, da.from_array(bad, chunks=100))


@pytest.mark.slow
def test_labels_are_a_column_of_parquet_files(rng, tmp_path):
    X, y, est = streamed(rng)
    w = rng.uniform(0.5, 2, len(y))
    frame = pl.DataFrame(X, schema=["a", "b"]).with_columns(kind=pl.Series(y), w=w)
    frame[:250].write_parquet(tmp_path / "1.parquet")
    frame[250:].write_parquet(tmp_path / "2.parquet")
    files = ParquetFiles(str(tmp_path / "*.parquet"))
    for weight, given in (("w", w), (None, None)):
        for class_weight in (None, "balanced"):
            est.set_params(class_weight=class_weight)
            known = clone(est).fit(X, y, given)
            source = files if weight else ParquetFiles(str(tmp_path / "*.parquet"), ["a", "b"])
            est.fit(source, "kind", weight)
            found = est.predict_proba(frame.select("a", "b"))
            # Sums of other blocks round otherwise; the slope is found by a search.
            np.testing.assert_allclose(found, known.predict_proba(X), atol=1e-6)
    assert est.score(source, "kind") > 0.8
    known = est.score(frame.select("a", "b"), y, frame["w"].to_numpy())
    assert est.score(source, "kind", "w") == pytest.approx(known)
    with pytest.raises(AttributeError, match="needs labels in memory"):
        _ = est.loo_decision_function_


def test_the_regressor_is_that_of_coded_classes(rng):
    X, y = three_classes(rng)
    est = JacobianKernelClassifier(1.0, 0.1).fit(X, y)
    Y = (y[:, None] == est.classes_) - est.class_prior_
    known = JacobianKernelRidge(1.0, 0.1).fit(X, Y)
    np.testing.assert_allclose(est.regressor_.predict(X), known.predict(X), atol=1e-10)


@pytest.mark.slow
def test_defaults_classify_irises():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(1).permutation(150)
    train, test = order[:100], order[100:]
    est = AutoKernelClassifier(random_state=0).fit(X[train], y[train])
    assert est.score(X[test], y[test]) > 0.9
    assert log_loss(y[test], est.predict_proba(X[test])) < 0.3
