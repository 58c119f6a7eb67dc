"""outside_share: the share of training rows whose own neighbour is nearer."""

import pickle

import numpy as np
import pytest

from jacridge import JacobianKernelRidge

METRICS = {"euclidean": "gaussian", "cityblock": "laplacian"}


@pytest.mark.parametrize("metric", METRICS)
def test_it_is_the_share_of_rows_whose_own_neighbour_is_nearer(rng, metric):
    X, X_new = rng.standard_normal((50, 3)), 2 * rng.standard_normal((20, 3))
    order = 2 if metric == "euclidean" else 1
    D = np.linalg.norm(X[:, None] - X, order, axis=2)
    own = np.where(np.eye(50), np.inf, D).min(axis=1)
    nearest = np.linalg.norm(X_new[:, None] - X, order, axis=2).min(axis=1)

    est = JacobianKernelRidge(1.0, kernel=METRICS[metric]).fit(X, X[:, 0])
    np.testing.assert_allclose(est.outside_share(X_new), (own < nearest[:, None]).mean(axis=1))


def test_training_rows_are_inside_and_far_rows_are_outside(rng):
    X = rng.standard_normal((60, 2))
    for options in ({}, {"solver": "nystrom", "n_landmarks": 20}, {"solver": "pcg"}):
        est = JacobianKernelRidge(1.0, 0.1, **options).fit(np.vstack([X, X]), np.r_[X, X][:, 0])
        assert (est.outside_share(X) == 0).all()
        assert est.outside_share([[1e3, 0.0]]) == [1.0]
        again = pickle.loads(pickle.dumps(est))
        np.testing.assert_array_equal(again.outside_share(X + 0.1), est.outside_share(X + 0.1))


def test_given_distances_are_taken_as_they_are(rng):
    X, X_new = rng.standard_normal((30, 2)), rng.standard_normal((9, 2))
    D, D_new = (np.linalg.norm(Z[:, None] - X, axis=2) for Z in (X, X_new))
    given = JacobianKernelRidge(1.0, metric="precomputed").fit(D, X[:, 0])
    plain = JacobianKernelRidge(1.0).fit(X, X[:, 0])
    np.testing.assert_array_equal(given.outside_share(D_new), plain.outside_share(X_new))


def test_new_rows_from_where_the_training_rows_come_from_are_evenly_spread(rng):
    est = JacobianKernelRidge(0.1).fit(rng.uniform(size=(3000, 2)), rng.standard_normal(3000))
    shares = est.outside_share(rng.uniform(size=(2000, 2)))
    # The mean of 2000 values spread evenly from 0 to 1 is known to 0.29 / sqrt(2000) = 0.007; own
    # distances of 1000 rows add 0.009. Four times their sum in squares.
    assert np.mean(shares) == pytest.approx(0.5, abs=0.045)


def test_own_distances_are_of_all_kinds_of_rows_also_if_these_take_turns(rng):
    """Every other row is from a cloud a hundred times as dense."""
    wide = np.arange(2000) % 2 == 0
    X = np.where(wide, 1.0, 0.01)[:, None] * rng.uniform(size=(2000, 2)) + 2.0 * wide[:, None]
    est = JacobianKernelRidge(0.1).fit(X, X[:, 0])
    # Fifteen times as far from the dense cloud as its rows are apart. Known to 0.5 / sqrt(1000).
    assert est.outside_share([[0.012, 0.012]])[0] == pytest.approx(0.5, abs=4 * 0.016)


def test_it_is_lazy_for_dask_and_reads_parquet(rng, tmp_path):
    da, pl = pytest.importorskip("dask.array"), pytest.importorskip("polars")
    from jacridge.parquet import ParquetFiles

    X = rng.standard_normal((80, 2))
    est = JacobianKernelRidge(1.0, solver="nystrom", n_landmarks=20, random_state=0)
    est.fit(X[:50], X[:50, 0])
    lazy = est.outside_share(da.from_array(X, chunks=(30, 2)))
    assert lazy.shape == (80,)
    np.testing.assert_array_equal(lazy.compute(), est.outside_share(X))
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}).write_parquet(tmp_path / "rows.parquet")
    files = ParquetFiles(tmp_path / "rows.parquet", ["a", "b"])
    np.testing.assert_array_equal(est.outside_share(files), est.outside_share(X))


def test_a_single_row_has_only_itself_inside():
    est = JacobianKernelRidge(1.0).fit([[1.0]], [2.0])
    assert est.outside_share([[1.0], [1.1]]).tolist() == [0.0, 1.0]


def test_its_first_name_still_works():
    assert JacobianKernelRidge.is_outside is JacobianKernelRidge.outside_share
