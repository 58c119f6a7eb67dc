"""feature_importances_: root mean square slopes times standard deviations, as shares."""

import pickle

import numpy as np
import pytest

from jacridge import JacobianKernelRidge

SOLVERS = {
    "exact": {},
    "pcg": {"solver": "pcg"},
    "kmeans": {"solver": "nystrom", "n_landmarks": 30},
    "uniform": {"solver": "nystrom", "n_landmarks": 30, "landmarks": "uniform"},
}


def shares(est, X, w=None):
    """Importances from the slopes at all rows, with weights."""
    variance = np.average((X - np.average(X, axis=0, weights=w)) ** 2, axis=0, weights=w)
    moved = np.sqrt(np.average(np.square(est.jacobian(X)), axis=0, weights=w) * variance)
    return moved / moved.sum()


def test_rows_of_two_kinds_that_take_turns_both_count(rng):
    odd = np.arange(2000) % 2 == 1
    X = rng.standard_normal((2000, 2))
    y = np.where(odd, X[:, 0], X[:, 1])
    X[:, 0] += 50 * odd
    est = JacobianKernelRidge(2.0, 0.1).fit(X, y)
    # Mean squares of 1000 slopes are known to a few percent.
    np.testing.assert_allclose(est.feature_importances_, shares(est, X), atol=0.02)


@pytest.mark.parametrize("metric", ["euclidean", "scaled"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_slopes_and_deviations_are_those_of_all_rows_with_their_weights(rng, solver, metric):
    X = rng.standard_normal((800, 2))
    w, y = np.where(X[:, 0] > 0, 100.0, 0.01), np.sin(2 * X[:, 0]) + X[:, 1]
    est = JacobianKernelRidge(1.0, 0.1, metric=metric, random_state=0, **SOLVERS[solver])
    found = est.fit(X, y, w).feature_importances_
    np.testing.assert_allclose(found, shares(est, X, w), rtol=1e-7)
    again = pickle.loads(pickle.dumps(est)).feature_importances_
    np.testing.assert_allclose(again, found, rtol=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_weight_of_two_is_two_equal_rows(rng, solver):
    X, w = rng.standard_normal((200, 2)), rng.integers(1, 4, 200)
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    est = JacobianKernelRidge(1.0, 0.1, random_state=0, **SOLVERS[solver])
    known = est.fit(X, y, w.astype(float)).feature_importances_
    found = est.fit(np.repeat(X, w, axis=0), np.repeat(y, w)).feature_importances_
    np.testing.assert_allclose(found, known, rtol=1e-5)  # conjugate gradients stop at 1e-6
