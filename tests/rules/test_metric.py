"""The learned metric and the choice of a kernel: known truths, invariances, all kinds of rows."""

import pickle

import numpy as np
import polars as pl
import pytest
from scipy.linalg import subspace_angles
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import naive
from jacridge import AutoKernelRidge, JacobianKernelRidge
from jacridge.parquet import ParquetFiles

LEARNED = ["diagonal", "full", "auto"]


def rotated(rng, n=1000, p=10):
    """A function of two directions of ten features: X, y and the directions (p, 2)."""
    X, (Q, _) = rng.standard_normal((n, p)), np.linalg.qr(rng.standard_normal((p, 2)))
    U = X @ Q
    return X, np.sin(2 * U[:, 0]) + U[:, 1] ** 2 + 0.1 * rng.standard_normal(n), Q


def few_of_many(rng, n=400, p=12):
    """A function of two of the features, on unlike scales: X, y."""
    X = rng.standard_normal((n, p)) * np.geomspace(0.01, 100, p) + 3
    Z = (X - 3) / np.geomspace(0.01, 100, p)
    return X, np.sin(2 * Z[:, 0]) + Z[:, 1] + 0.1 * rng.standard_normal(n)


def test_the_scaled_metric_is_a_standard_scaler(rng):
    X, y = few_of_many(rng, 80, 4)
    X = np.column_stack([X, np.full(80, 7.0)])  # a constant column is dropped
    ours = JacobianKernelRidge(alpha=0.1, metric="scaled").fit(X, y)
    theirs = make_pipeline(StandardScaler(), JacobianKernelRidge(alpha=0.1)).fit(X[:, :4], y)
    X_new = X[:9] + 0.01
    np.testing.assert_allclose(ours.predict(X_new), theirs.predict(X_new[:, :4]), rtol=1e-8)
    assert ours.metric_.shape == (5, 4)


def test_the_scaled_metric_counts_rows_by_their_weights(rng):
    X, y = few_of_many(rng, 60, 3)
    w = rng.integers(0, 4, 60)
    ours = JacobianKernelRidge(alpha=0.1, metric="scaled").fit(X, y, w)
    again = JacobianKernelRidge(alpha=0.1, metric="scaled")
    again.fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(ours.metric_, again.metric_, rtol=1e-9)
    np.testing.assert_allclose(ours.predict(X), again.predict(X), rtol=1e-7)


@pytest.mark.slow
def test_a_full_metric_finds_a_rotated_subspace(rng):
    X, y, Q = rotated(rng)
    est = JacobianKernelRidge("auto", "auto", metric="full", random_state=0).fit(X, y)
    U = np.linalg.svd(est.metric_)[0][:, :2]
    assert np.degrees(subspace_angles(U, Q).max()) < 5


@pytest.mark.slow
def test_a_diagonal_metric_finds_the_features_that_matter(rng):
    X, y = few_of_many(rng)
    est = JacobianKernelRidge("auto", "auto", metric="diagonal", random_state=0).fit(X, y)
    assert set(np.argsort(est.feature_importances_)[-2:]) == {0, 1}
    assert est.feature_importances_[:2].sum() > 0.9
    assert est.feature_importances_.sum() == pytest.approx(1)
    plain = JacobianKernelRidge("auto", "auto", metric="scaled", random_state=0).fit(X, y)
    X_new, y_new = few_of_many(rng)
    assert est.score(X_new, y_new) > plain.score(X_new, y_new) + 0.05


@pytest.mark.parametrize("metric", LEARNED)
@pytest.mark.parametrize("kernel", ["gaussian", "matern32", "laplacian"])
def test_the_jacobian_is_in_the_units_of_the_features(metric, kernel, rng):
    X, y = few_of_many(rng, 120, 4)
    est = JacobianKernelRidge("auto", "auto", kernel=kernel, metric=metric, random_state=0)
    est.fit(X, y)
    X_new, steps = X[:5] * 1.01, 1e-4 * X.std(axis=0)
    expected = [
        (est.predict(X_new + step) - est.predict(X_new - step)) / (2 * step.sum())
        for step in np.diag(steps)
    ]
    # Finite differences with steps of 1e-4 deviations; a kink between them would show.
    scale = np.abs(expected).max(axis=1, keepdims=True)
    np.testing.assert_allclose(est.jacobian(X_new).T / scale, expected / scale, atol=1e-4)


@pytest.mark.parametrize("bandwidth", ["jacobian", "median", 3.0])
def test_any_rule_works_inside_the_rounds(bandwidth, rng):
    X, y = few_of_many(rng, 200, 5)
    est = JacobianKernelRidge(bandwidth, 1e-2, metric="diagonal").fit(X, y)
    assert est.alpha_ == 1e-2
    assert {row["kind"] for row in est.choices_} == {"plain", "diagonal"}


def test_the_table_of_the_choice_tells_what_was_tried(rng):
    X, y = few_of_many(rng, 150, 4)
    est = AutoKernelRidge(random_state=0).fit(X, y)
    errors = [row["trimmed_error"] for row in est.choices_]
    assert errors == sorted(errors)
    (chosen,) = (row for row in est.choices_ if row["chosen"])
    assert chosen["kernel"] == est.kernel_
    assert {row["kernel"] for row in est.choices_} == {
        "gaussian", "matern32", "exponential", "laplacian",
    }  # fmt: skip
    assert sum(row["rounds"] == 0 for row in est.choices_) == 4  # the plain metric, always


@pytest.mark.slow
def test_a_kernel_with_kinks_is_chosen_only_if_it_is_clearly_better():
    """A smooth kernel within one standard error of the best is chosen instead, on some tables."""
    replaced = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2, 2, size=(200, 3))
        y = np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + 0.5 * rng.standard_normal(200)
        rows = AutoKernelRidge(random_state=0).fit(X, y).choices_
        best, (chosen,) = rows[0], [row for row in rows if row["chosen"]]
        finalists = [row for row in rows if row["held_out"] == best["held_out"]]
        good = [
            r for r in finalists if r["trimmed_error"] <= best["trimmed_error"] + r["deviation"]
        ]
        kinds = {row["kernel"] in ("gaussian", "matern32") for row in good}
        assert True not in kinds or chosen["kernel"] in ("gaussian", "matern32")
        replaced += kinds == {True, False} and best["kernel"] in ("exponential", "laplacian")
    assert replaced


@pytest.mark.parametrize("constants", [0, 2])
def test_of_one_feature_no_metric_is_learned(constants, rng):
    """A map could only scale it. Heavy tails may still be compressed."""
    X = np.column_stack([rng.standard_cauchy(100), *np.full((constants, 100), 7.0)])
    y = np.tanh(X[:, 0]) + 0.1 * rng.standard_normal(100)
    for metric in LEARNED:
        est = JacobianKernelRidge("auto", "auto", metric=metric, random_state=0).fit(X, y)
        assert [row["kind"] for row in est.choices_] == ["plain", "plain"]
        assert est.warp_ is not None


def test_the_error_of_a_choice_counts_the_hardest_rows(rng):
    """Two values far out make nearly all of the variance: without them noise looks predictable."""
    X, y = rng.standard_normal((150, 2)), rng.standard_normal(150)
    y[:2] = 40.0, -40.0
    est = JacobianKernelRidge("auto", "auto", metric="diagonal", random_state=0).fit(X, y)
    for row in est.choices_:
        assert row["error"] > 0.95
        assert row["trimmed_error"] < 0.2


def test_a_useless_metric_is_not_kept(rng):
    """All features matter alike: nothing is to be learned."""
    X = rng.standard_normal((300, 3))
    y = np.sin(X.sum(axis=1)) * 0 + X.sum(axis=1) + 0.5 * rng.standard_normal(300)
    est = JacobianKernelRidge("auto", "auto", metric="diagonal", random_state=0).fit(X, y)
    weights = np.linalg.norm(est.metric_, axis=1)
    assert weights.max() < 2 * weights.min()


@pytest.mark.slow
@pytest.mark.parametrize("p", [10, 30])
def test_noise_is_predicted_by_its_mean(p, rng):
    scores = []
    for seed in range(3):
        X, y = rng.standard_normal((900, p)), rng.standard_normal(900)
        est = AutoKernelRidge(random_state=seed).fit(X[:300], y[:300])
        scores.append(est.score(X[300:], y[300:]))
    assert min(scores) > -0.1


def test_a_signal_beside_outliers_is_followed(rng):
    X = rng.standard_normal((600, 3))
    f = X[:, 0] + X[:, 1]
    y = f + 0.1 * rng.standard_normal(600)
    y[:2] += [100.0, -100.0]
    est = AutoKernelRidge(random_state=0).fit(X[:200], y[:200])
    # Without a signal all predictions are the mean of y; least squares follow outliers, too.
    assert est.predict(X[200:]).std() > 0.2 * f.std()


@pytest.mark.slow
def test_fits_with_the_same_seed_are_equal(rng):
    X, y = few_of_many(rng, 300, 5)
    one, two = (AutoKernelRidge(random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    np.testing.assert_array_equal(one.metric_, two.metric_)


def test_a_weight_of_two_is_two_equal_rows(rng):
    X, y = few_of_many(rng, 150, 4)
    twos = AutoKernelRidge(random_state=0).fit(X, y, np.full(150, 2))
    twice = AutoKernelRidge(random_state=0).fit(np.vstack([X, X]), np.append(y, y))
    assert twos.kernel_ == twice.kernel_
    np.testing.assert_allclose(twos.predict(X), twice.predict(X), rtol=1e-7)


@pytest.mark.parametrize("criterion", ["auto", "loo", "gcv", "mml"])
def test_weights_do_not_ruin_the_choice(criterion):
    X, y = load_diabetes(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    X, y, X_new, y_new = X[order[:287]], y[order[:287]], X[order[287:]], y[order[287:]]

    def score(X, y, w=None):
        bandwidth = criterion if criterion != "auto" else "auto"
        est = JacobianKernelRidge(bandwidth, criterion, random_state=0).fit(X, y, w)
        return est.score(X_new, y_new)

    plain = score(X, y)
    twos = score(X, y, np.full(287, 2.0))
    assert twos == pytest.approx(score(np.repeat(X, 2, axis=0), np.repeat(y, 2)), abs=1e-8)
    # Weights move the points of a grid of penalties, and so R2 by some thousandths. It fell by 0.2
    # and more when one of two equal rows was left out alone.
    assert twos == pytest.approx(plain, abs=0.03)
    assert score(X, y, rng.uniform(0.9, 1.1, 287)) == pytest.approx(plain, abs=0.03)


def test_several_targets_share_a_metric(rng):
    X, y = few_of_many(rng, 200, 5)
    Y = np.column_stack([1e3 * y, X[:, 1]])
    est = AutoKernelRidge(random_state=0).fit(X, Y)
    assert est.jacobian(X[:3]).shape == (3, 2, 5)
    assert est.score(X, Y) > 0.9


def test_a_pickled_model_has_its_metric(rng):
    X, y = few_of_many(rng, 150, 4)
    est = AutoKernelRidge(random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(est))
    for name in ("predict", "jacobian"):
        np.testing.assert_allclose(getattr(again, name)(X), getattr(est, name)(X), rtol=1e-9)
    np.testing.assert_allclose(again.predict_interval(X), est.predict_interval(X), rtol=1e-9)
    assert b"jacridge._" not in pickle.dumps(est)


@pytest.mark.slow
def test_dask_parquet_and_memory_maps_learn_a_metric(rng, tmp_path):
    da = pytest.importorskip("dask.array")
    X, y = few_of_many(rng, 300, 4)
    frame = pl.DataFrame(X, schema=list("abcd")).with_columns(y=y)
    frame.write_parquet(tmp_path / "rows.parquet")
    on_disk = np.memmap(tmp_path / "rows", dtype=float, mode="w+", shape=X.shape)
    on_disk[:] = X
    options = {"n_landmarks": 100, "random_state": 0, "solver": "nystrom"}
    known = AutoKernelRidge(**options).fit(X, y)
    rows = da.from_array(X, chunks=(130, 2))
    for est in (
        AutoKernelRidge(**options).fit(rows, y),
        AutoKernelRidge(**options).fit(ParquetFiles(str(tmp_path / "rows.parquet")), "y"),
        AutoKernelRidge(**options).fit(on_disk, y),
    ):
        assert est.kernel_ == known.kernel_
        # Sums of other blocks round otherwise; predictions agree to 1e-6, as promised.
        named = hasattr(est, "feature_names_in_")
        found = est.predict(frame.select("a", "b", "c", "d") if named else X)
        np.testing.assert_allclose(found, known.predict(X), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(known.predict(rows).compute(), known.predict(X), rtol=1e-8)
    np.testing.assert_allclose(known.jacobian(rows).compute(), known.jacobian(X), rtol=1e-7)


@pytest.mark.parametrize("metric", ["geodesic", "precomputed"])
def test_a_kernel_of_other_distances_is_chosen_by_leave_one_out(metric, rng):
    X = np.column_stack([rng.uniform(42, 51, 40), rng.uniform(-4, 8, 40)])
    y = np.sign(X[:, 0] - 46) + 0.01 * rng.standard_normal(40)
    rows = naive.distances(X, X) if metric == "precomputed" else X
    est = JacobianKernelRidge("auto", "auto", kernel="auto", metric=metric, random_state=0)
    errors = {}
    for kernel in ("gaussian", "matern52", "matern32", "exponential"):
        one = JacobianKernelRidge("auto", "auto", kernel=kernel, metric=metric, random_state=0)
        errors[kernel] = np.square(one.fit(rows, y).loo_residuals_).mean()
    chosen = est.fit(rows, y)
    assert np.square(chosen.loo_residuals_).mean() <= 1.05 * min(errors.values())


@pytest.mark.parametrize("n", [3, 10, 25])
def test_few_rows_are_fitted_in_the_scaled_metric(n, rng):
    X, y = few_of_many(rng, n, 3)
    est = AutoKernelRidge(random_state=0).fit(X, y)
    assert np.isfinite(est.predict(X)).all()


def test_a_constant_target_is_predicted_as_such(rng):
    X, _ = few_of_many(rng, 60, 3)
    with pytest.warns(UserWarning, match="`y` is constant"):
        est = AutoKernelRidge().fit(X, np.full(60, 7.0))
    np.testing.assert_array_equal(est.predict(X), 7.0)


@pytest.mark.parametrize("metric", ["manhattan", 3])
def test_an_unknown_metric_is_refused(metric, rng):
    X, y = few_of_many(rng, 30, 3)
    with pytest.raises((ValueError, TypeError), match="`metric` must be one of 'euclidean'"):
        JacobianKernelRidge(metric=metric).fit(X, y)
    with pytest.raises(ValueError, match="`kernel` must be one of 'gaussian'"):
        JacobianKernelRidge(kernel="cosine").fit(X, y)


def test_landmarks_are_given_in_the_units_of_the_features(rng):
    X, y = few_of_many(rng, 200, 4)
    options = {"alpha": 0.01, "metric": "scaled", "solver": "nystrom"}
    ours = JacobianKernelRidge(2.0, landmarks=X[:30], **options).fit(X, y)
    scale = X.std(axis=0)
    known = JacobianKernelRidge(2.0, 0.01, solver="nystrom", landmarks=X[:30] / scale)
    np.testing.assert_allclose(
        ours.predict(X), known.fit(X / scale, y).predict(X / scale), rtol=1e-8
    )


def test_errors_of_derivatives_and_effects_go_through_the_metric(rng):
    """They are those of a model in the mapped features, by the chain rule."""
    X, y = few_of_many(rng, 120, 3)
    ours = JacobianKernelRidge(2.0, 0.1, metric="scaled").fit(X, y)
    std = X.std(axis=0)
    known = JacobianKernelRidge(2.0, 0.1).fit(X / std, y)
    for a, b in zip(ours.jacobian(X, True), known.jacobian(X / std, True), strict=True):
        np.testing.assert_allclose(a, b / std, rtol=1e-8)
    here, there = ours.effects().dict(), known.effects().dict()
    np.testing.assert_allclose(here["estimate"], there["estimate"] / std, rtol=1e-8)
    np.testing.assert_allclose(here["std_error"], there["std_error"] / std, rtol=1e-8)


@pytest.mark.parametrize("kernel", ["gaussian", "matern32", "laplacian"])
def test_an_onnx_graph_has_the_metric(kernel, rng):
    pytest.importorskip("onnxruntime")
    import onnxruntime

    from jacridge.onnx import to_onnx

    X, y = few_of_many(rng, 120, 4)
    est = JacobianKernelRidge("auto", "auto", kernel=kernel, metric="auto", random_state=0)
    est.fit(X, y)
    session = onnxruntime.InferenceSession(to_onnx(est).SerializeToString())
    np.testing.assert_allclose(session.run(None, {"X": X})[0], est.predict(X), rtol=1e-7)


def test_effects_in_a_full_metric_see_the_features_as_they_are(rng):
    """Training rows are recovered through the map: two values stay two, one-hot columns a group."""
    kind = rng.integers(3, size=150)
    X = np.column_stack(
        [
            rng.standard_normal((150, 2)),
            rng.integers(2, size=150),
            np.eye(3)[kind],
            np.full(150, 5.0),
        ]
    )
    X[:, 0] *= 1e9  # scales apart, too
    y = X[:, 0] / 1e9 + 2 * X[:, 2] + kind
    est = JacobianKernelRidge("auto", 0.01, metric="full", random_state=0).fit(X, y)
    terms = [(row.term, row.kind) for row in est.effects()]
    assert terms[:3] == [("x0", "slope"), ("x1", "slope"), ("x2", "contrast")]
    assert len(terms) == 5  # two contrasts of three levels, and no effect of the constant
    # The ridge pulls it towards zero by a hundredth.
    assert est.effects(variables=["x2"]).dict()["estimate"][0] == pytest.approx(2, abs=0.05)
