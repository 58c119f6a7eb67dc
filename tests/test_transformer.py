"""Features whose inner products are the kernel, checked against scikit-learn's own."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from jacridge import (
    JacobianKernelClassifier,
    JacobianKernelRidge,
    JacobianNystroem,
    select_bandwidth,
)

LANDMARKS = ("rpcholesky", "uniform", "kmeans")


@parametrize_with_checks([JacobianNystroem(), JacobianNystroem(bandwidth="scale", n_components=5)])
def test_the_transformer_keeps_scikit_learns_rules(estimator, check):
    check(estimator)


@pytest.mark.parametrize("landmarks", ["rpcholesky", "uniform"])
def test_with_all_rows_as_landmarks_inner_products_are_the_kernel(table, landmarks):
    X = table[0]
    phi = JacobianNystroem(bandwidth=2.0, landmarks=landmarks, n_components=60).fit(X)
    K = rbf_kernel(X, gamma=1 / 8)
    features = phi.transform(X)
    # Landmarks whose pivot is below 1e-12 are left out, which costs its square root.
    np.testing.assert_allclose(features @ features.T, K, atol=1e-5)


@pytest.mark.parametrize("landmarks", LANDMARKS)
def test_few_landmarks_give_the_kernel_that_scikit_learn_gives_for_them(surface, landmarks):
    X = surface[0]
    phi = JacobianNystroem(bandwidth=0.5, n_components=10, landmarks=landmarks, random_state=0)
    features = phi.fit_transform(X)
    # scikit-learn's Nystroem takes all rows that it is fitted on, if there are as many.
    theirs = Nystroem(gamma=2, n_components=len(phi.components_)).fit(phi.components_).transform(X)
    np.testing.assert_allclose(features @ features.T, theirs @ theirs.T, atol=1e-8)


def test_ridge_on_all_features_is_kernel_ridge(table):
    X, y = table
    y = y - y.mean()
    model = make_pipeline(
        JacobianNystroem(bandwidth=2.0, n_components=60), Ridge(alpha=0.1, fit_intercept=False)
    )
    exact = JacobianKernelRidge(bandwidth=2.0, alpha=0.1, fit_intercept=False)
    np.testing.assert_allclose(model.fit(X, y).predict(X), exact.fit(X, y).predict(X), rtol=1e-8)


@pytest.mark.parametrize("rule", ["jacobian", "jacobian_median", "scale"])
def test_the_bandwidth_is_that_of_the_rule(table, rule):
    phi = JacobianNystroem(bandwidth=rule, alpha=0.01).fit(table[0])
    assert phi.bandwidth_ == select_bandwidth(table[0], rule=rule, alpha=0.01).sigma


def test_a_rule_that_needs_a_target_takes_it(table):
    phi = JacobianNystroem(bandwidth="loo").fit(*table)
    assert phi.bandwidth_ == select_bandwidth(*table, "loo").sigma
    with pytest.raises(ValueError, match="needs `y`"):
        JacobianNystroem(bandwidth="loo").fit(table[0])


def test_many_rows_are_searched_by_landmarks_as_select_bandwidth_does(table, size):
    known = JacobianNystroem(bandwidth="loo", random_state=0).fit(*table).bandwidth_
    size("sample", len(table[0]) - 1)
    size("landmarks", 10)
    phi = JacobianNystroem(bandwidth="loo", random_state=0).fit(*table)
    assert phi.bandwidth_ == select_bandwidth(*table, "loo", random_state=0).sigma != known


@pytest.mark.parametrize("rule", ["maxvar", "loo", "auto"])
def test_labels_of_classes_are_coded_as_targets(table, rule):
    X, labels = table[0], np.where(table[1] > np.median(table[1]), "high", "low")
    phi = JacobianNystroem(rule, random_state=0)
    found = phi.fit(X, labels).bandwidth_
    assert found == phi.fit(X, labels == "low").bandwidth_
    # Two classes are one target, up to its sign and shift.
    assert found == pytest.approx(phi.fit(X, 2.0 * (labels == "high")).bandwidth_, rel=1e-12)


def test_three_classes_of_text_share_one_bandwidth(table):
    labels = np.array(["a", "b", "c"])[np.digitize(table[1], np.quantile(table[1], [0.3, 0.6]))]
    phi = JacobianNystroem("loo", random_state=0).fit(table[0], labels)
    known = JacobianKernelClassifier("loo", random_state=0).fit(table[0], labels)
    assert phi.bandwidth_ == pytest.approx(known.bandwidth_, rel=1e-9)
    labels = np.where(labels == "a", None, labels)
    with pytest.raises(ValueError, match="a label in every row"):
        phi.fit(table[0], labels)


def accuracy_on_features(phi, *, y_given=False):
    """Accuracy of logistic regression on features of 64 columns, standardised."""
    X, y = load_digits(return_X_y=True)
    X, y = StandardScaler().fit_transform(X[:600]), np.char.add("digit ", y[:600].astype(str))
    Z = phi.fit(X[:400], y[:400] if y_given else None).transform(X)
    return LogisticRegression().fit(Z[:400], y[:400]).score(Z[400:], y[400:])


@pytest.mark.parametrize("kernel", ["gaussian", "matern32", "exponential", "laplacian"])
def test_the_default_suits_a_linear_classifier_whether_or_not_y_is_given(kernel):
    """The Jacobian rule is far wider with 64 features: 0.31 with the Gaussian kernel."""
    phi = JacobianNystroem(kernel=kernel, random_state=0)
    found = accuracy_on_features(phi)
    assert found > 0.78
    assert found == accuracy_on_features(phi, y_given=True)


def test_the_default_is_no_worse_than_scikit_learns_features():
    ours = accuracy_on_features(JacobianNystroem(random_state=0))
    assert ours >= accuracy_on_features(Nystroem(random_state=0))


def test_feature_names_come_out(table):
    phi = JacobianNystroem(n_components=3, random_state=0).fit(table[0])
    assert list(phi.get_feature_names_out()) == [f"jacobiannystroem{i}" for i in range(3)]


def test_set_output_gives_a_data_frame(table):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(table[0], columns=list("abc"), index=np.arange(60) + 5)
    out = JacobianNystroem(n_components=4).set_output(transform="pandas").fit_transform(X)
    assert isinstance(out, pd.DataFrame)
    assert list(out.index) == list(X.index)


def test_the_same_seed_gives_the_same_features(table):
    first, second = (
        JacobianNystroem(n_components=8, random_state=3).fit_transform(table[0]) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_equal_rows_are_one_landmark(rng):
    X = np.repeat(rng.standard_normal((4, 2)), 5, axis=0)
    assert JacobianNystroem(bandwidth=1.0).fit_transform(X).shape == (20, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "`n_components` must be a whole number >= 1, got 0"),
        ({"n_components": -3}, "`n_components` must be a whole number >= 1, got -3"),
        ({"landmarks": "best"}, "`landmarks` must be one of .* got 'best'"),
        ({"bandwidth": -1.0}, "`bandwidth` must be a finite number > 0, got -1.0"),
    ],
)
def test_bad_parameters_are_named(table, options, message):
    with pytest.raises(ValueError, match=message):
        JacobianNystroem(**options).fit(table[0])


@pytest.mark.parametrize("wrong", [2.7, 2.0, True, "many", None])
def test_a_number_of_components_that_is_not_whole_is_refused(table, wrong):
    with pytest.raises(TypeError, match=f"must be a whole number >= 1, got {wrong!r}"):
        JacobianNystroem(n_components=wrong).fit(table[0])
