"""Jackknife+ intervals: ends against actual refits, coverage against the nominal one."""

import numpy as np
import pytest

from jacridge import JacobianKernelRidge

TABLES = [
    "wood_fibres.csv",
    "appliances_energy.csv.gz",
    "california_housing.csv.gz",
    "protein.csv.gz",
    "black_smoke.csv.gz",
]
NOISES = {
    "heavy tails": lambda rng, X: 0.2 * rng.standard_t(3, len(X)),
    "one side": lambda rng, X: 0.2 * rng.exponential(size=len(X)),
    "two values": lambda rng, X: 0.2 * rng.choice([-1.0, 1.0], len(X)),
    "growing with x": lambda rng, X: 0.2 * (1 + X[:, 0]) * rng.standard_normal(len(X)),
}


def covered(est, X, y):
    lower, upper = est.predict_interval(X, coverage=0.9)
    return np.mean((lower <= y) & (y <= upper))


def test_the_ends_are_quantiles_of_models_that_were_fitted_without_each_row(rng):
    X, X_new = rng.uniform(size=(19, 2)), rng.uniform(size=(4, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(19)
    low, high = [], []
    for i in range(19):
        rest = JacobianKernelRidge(0.5, 0.1).fit(np.delete(X, i, 0), np.delete(y, i))
        size = abs(y[i] - rest.predict(X[[i]])[0])
        low.append(rest.predict(X_new) - size)
        high.append(rest.predict(X_new) + size)

    lower, upper = JacobianKernelRidge(0.5, 0.1).fit(X, y).predict_interval(X_new, coverage=0.8)
    # Ceil(0.8 x 20) = 16th smallest of 19 above, and as many from the other end below.
    np.testing.assert_allclose(upper, np.sort(high, axis=0)[15], rtol=1e-9)
    np.testing.assert_allclose(lower, np.sort(low, axis=0)[3], rtol=1e-9)


@pytest.mark.parametrize("noise", NOISES)
def test_nine_of_ten_new_observations_are_covered_whatever_the_noise(rng, noise):
    def draw(n):
        X = rng.uniform(size=(n, 2))
        return X, np.sin(4 * X[:, 0]) * X[:, 1] + NOISES[noise](rng, X)

    shares = [
        covered(JacobianKernelRidge("auto", "auto", random_state=0).fit(*draw(200)), *draw(1000))
        for _ in range(6)
    ]
    # Six draws of 200 rows: the mean is known to 0.3 / sqrt(1200) = 0.009; three times that.
    assert np.mean(shares) == pytest.approx(0.9, abs=0.027)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_nine_of_ten_new_rows_of_the_papers_tables_are_covered(paper_table, rng, name):
    X, y = paper_table(name)
    rows = rng.permutation(len(X))[:2500]
    X, y = (X[rows] - X[rows].mean(axis=0)) / X[rows].std(axis=0), y[rows]
    est = JacobianKernelRidge("auto", "auto", random_state=0).fit(X[:1000], y[:1000])
    # One draw of 1000 rows and 1500 new ones: known to about 0.012; three times that.
    assert covered(est, X[1000:], y[1000:]) == pytest.approx(0.9, abs=0.036)
