"""scikit-learn takes the estimator for its own, whatever rule and metric it has."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from jacridge import RULES, AutoKernelRidge, JacobianKernelRidge
from known import HELD_OUT, KERNELS, METRICS

# Each rule, kernel and metric at least once, not their product: checks look at what goes in and
# comes out. The solvers nystrom and pcg have checks of their own in tests/solvers.
ESTIMATORS = [
    JacobianKernelRidge(),
    JacobianKernelRidge("jacobian_lattice", 0.1, solver="exact"),
    JacobianKernelRidge("scale", "gcv"),
    JacobianKernelRidge("loo", "loo"),
    JacobianKernelRidge("ssmm", "auto"),
    JacobianKernelRidge("loo_without_y"),
    JacobianKernelRidge("jacobian_median", metric="precomputed"),
    JacobianKernelRidge("silverman", metric="scaled"),
    JacobianKernelRidge("auto", "auto", metric="full"),
    AutoKernelRidge(),
    AutoKernelRidge(held_out="later"),
    JacobianKernelRidge("jacobian_loo", kernel="matern52"),
    JacobianKernelRidge("jacobian_mml", kernel="matern32"),
    JacobianKernelRidge("maxvar", "mml", kernel="exponential"),
    JacobianKernelRidge("gcv", kernel="laplacian"),
    JacobianKernelRidge("mml", 0.1, metric="diagonal"),
    JacobianKernelRidge("median", kernel="laplacian", metric="precomputed"),
]


@parametrize_with_checks(ESTIMATORS)
@pytest.mark.filterwarnings("ignore:.*rows repeat an earlier row")
def test_scikit_learn_takes_it_for_an_estimator(estimator, check):
    check(estimator)


def test_every_rule_kernel_and_metric_is_checked():
    """But for geodesics: the checks know no latitudes."""
    for name, words in (
        ("bandwidth", RULES),
        ("kernel", KERNELS),
        ("metric", METRICS),
        ("held_out", HELD_OUT),
    ):
        seen = {est.get_params()[name] for est in ESTIMATORS}
        assert set(words) - {"geodesic"} <= seen


def smooth(rng, n=90):
    X = rng.standard_normal((n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1]


def test_it_works_inside_pipelines_and_searches(rng):
    X, y = smooth(rng)
    model = make_pipeline(StandardScaler(), JacobianKernelRidge())
    name = "jacobiankernelridge__bandwidth"
    search = GridSearchCV(model, {name: ["jacobian", "loo", 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"]) > 0.5


def test_it_works_with_a_transformed_target_and_in_cross_validation(rng):
    X, y = smooth(rng)
    model = TransformedTargetRegressor(JacobianKernelRidge("loo"), func=np.exp, inverse_func=np.log)
    assert cross_val_score(model, X, y, cv=3).mean() > 0.5


def test_a_pickled_model_predicts_the_same_with_its_deviations(rng):
    X, y = smooth(rng)
    est = JacobianKernelRidge().fit(X, y)
    back = pickle.loads(pickle.dumps(est))
    for ours, theirs in zip(est.predict(X, return_std=True), back.predict(X, True), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-10)
    np.testing.assert_allclose(back.loo_residuals_, est.loo_residuals_, rtol=1e-10)


def test_a_fit_keeps_nothing_of_the_one_before(rng):
    X, y = smooth(rng)
    est = JacobianKernelRidge(solver="nystrom", n_landmarks=20).fit(X, y)
    est.set_params(solver="exact").fit(X, y)
    fresh = clone(est).fit(X, y)
    assert len(pickle.dumps(est)) == len(pickle.dumps(fresh))
