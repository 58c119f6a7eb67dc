"""feature_importances_: root mean square slopes times standard deviations, as shares."""

import numpy as np

from jacridge import JacobianKernelRidge


def shares(est, X):
    """Importances from the slopes at all rows."""
    moved = np.sqrt(np.square(est.jacobian(X)).mean(axis=0)) * X.std(axis=0)
    return moved / moved.sum()


def test_rows_of_two_kinds_that_take_turns_both_count(rng):
    odd = np.arange(2000) % 2 == 1
    X = rng.standard_normal((2000, 2))
    y = np.where(odd, X[:, 0], X[:, 1])
    X[:, 0] += 50 * odd
    est = JacobianKernelRidge(2.0, 0.1).fit(X, y)
    # Mean squares of 1000 slopes are known to a few percent.
    np.testing.assert_allclose(est.feature_importances_, shares(est, X), atol=0.02)
