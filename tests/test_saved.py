"""Models that were saved by an earlier version still load and predict the same."""

import pickle
from pathlib import Path

import numpy as np
import pytest

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
    from jacridge import JacobianKernelRidge, JacobianNystroem

    X = rng.standard_normal((30, 2))
    for est in (
        JacobianKernelRidge().fit(X, X[:, 0]),
        JacobianKernelRidge(solver="nystrom", n_landmarks=9).fit(X, X[:, 0]),
        JacobianKernelRidge(solver="pcg").fit(X, X[:, 0]),
        JacobianNystroem(n_components=5).fit(X),
    ):
        assert b"jacridge._" not in pickle.dumps(est)
