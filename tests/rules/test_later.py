"""Candidates that are judged by how they predict later rows: `held_out="later"`."""

import pickle
import tracemalloc

import numpy as np
import polars as pl
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import TimeSeriesSplit

from inside import EUCLIDEAN, array_source
from jacridge import (
    AutoKernelClassifier,
    AutoKernelRidge,
    JacobianKernelClassifier,
    JacobianKernelRidge,
    select_bandwidth,
)
from jacridge.parquet import ParquetFiles
from known import HELD_OUT


def series(rng, n=160):
    """A trend, a season of twelve steps and noise: X (time, sine, cosine) and y."""
    time = np.arange(n)
    angle = 2 * np.pi * time / 12
    y = 0.03 * time + np.sin(angle) + 0.5 * (time % 12 == 11) + 0.2 * rng.standard_normal(n)
    return np.column_stack([time / 12, np.sin(angle), np.cos(angle)]), y


def later(*given, **more):
    """One kernel in one metric, of which bandwidth and penalty are chosen on later rows."""
    return JacobianKernelRidge(
        "auto", *(given or ["auto"]), held_out="later", **{"random_state": 0} | more
    )


def refit_error(X, y, ratio, alpha):
    """Error of KernelRidge on later rows, in units of that of the mean of y.

    Each quarter of the rows is predicted from those before it. Bandwidths are `ratio` times the
    median distance between the halves of the training rows, in the order drawn at random.
    """
    rng, errors, n = np.random.default_rng(0), [], len(y)
    for train, test in TimeSeriesSplit(3, test_size=n // 4).split(X):
        A = X[rng.permutation(len(train))]
        half = len(A) // 2
        sigma = ratio * np.median(cdist(A[:half], A[half : 2 * half]))
        mean = y[train].mean()
        model = KernelRidge(kernel="rbf", gamma=1 / (2 * sigma**2), alpha=alpha)
        errors.append(y[test] - mean - model.fit(X[train], y[train] - mean).predict(X[test]))
    kept = y[n // 4 :] - y.mean()
    order = np.random.default_rng(0)
    _ = [order.permutation(k * n // 4) for k in (1, 2, 3)]
    B = X[order.permutation(n)]
    unit = np.median(cdist(B[: n // 2], B[n // 2 :]))
    return np.mean(np.concatenate(errors) ** 2) / np.mean(kept**2), ratio * unit


def test_the_error_is_that_of_refits_to_earlier_rows_on_later_ones(rng):
    X, y = series(rng)
    est = later().fit(X, y)
    _, unit = refit_error(X, y, 1.0, 1.0)
    error, _ = refit_error(X, y, est.bandwidth_ / unit, est.alpha_)
    assert [row["error"] for row in est.choices_] == [pytest.approx(error, rel=1e-7)]
    assert est.choices_[0]["held_out"] == 120


def test_bandwidth_and_penalty_have_the_least_error_of_their_neighbours(rng):
    X, y = series(rng)
    est = later().fit(X, y)
    ratio = est.bandwidth_ / refit_error(X, y, 1.0, 1.0)[1]
    here = refit_error(X, y, ratio, est.alpha_)[0]
    for step, factor in ((1, 10**0.5), (1, 10**-0.5), (2**0.5, 1), (2**-0.5, 1)):
        assert here <= refit_error(X, y, ratio * step, est.alpha_ * factor)[0]


def test_the_model_is_that_of_all_rows_at_the_chosen_bandwidth_and_penalty(rng):
    X, y = series(rng)
    est = later().fit(X, y)
    model = KernelRidge(kernel="rbf", gamma=1 / (2 * est.bandwidth_**2), alpha=est.alpha_)
    theirs = y.mean() + model.fit(X, y - y.mean()).predict(X)
    np.testing.assert_allclose(est.predict(X), theirs, rtol=1e-6)  # of ill-conditioned systems


def test_later_rows_are_predicted_more_reliably_than_by_a_choice_on_random_rows():
    """A trend with a season: interpolation may prefer narrow kernels, which forget both at once."""
    worst = dict.fromkeys(HELD_OUT, 1.0)
    for seed in range(5, 8):
        X, y = series(np.random.default_rng(seed), 240)
        for word in HELD_OUT:
            est = AutoKernelRidge(held_out=word, random_state=0).fit(X[:180], y[:180])
            worst[word] = min(worst[word], est.score(X[180:], y[180:]))
    assert worst["later"] > 0.8
    assert worst["random"] < 0.5


def test_the_order_of_the_rows_decides(rng):
    """A random walk is predicted well between its steps, and not at all beyond them."""
    X, y = np.arange(160.0)[:, None], rng.standard_normal(160).cumsum()
    order = rng.permutation(160)
    in_time, shuffled = later().fit(X, y), later().fit(X[order], y[order])
    assert shuffled.choices_[0]["error"] < 0.15
    assert in_time.choices_[0]["error"] > 0.6


def test_equal_rows_at_other_times_stay_later_rows(rng):
    """The season comes back with the same rows, and with other y."""
    X, y = series(rng, 240)
    X = np.tile(X[:24], (10, 1))
    est = later(metric="scaled").fit(X, y)
    assert est.choices_[0]["held_out"] == 180
    assert est.choices_[0]["error"] > 0.3  # the trend, which rows of 24 means would not show


def test_a_sample_in_order_does_not_copy_all_rows_with_duplicates(rng):
    X, y = rng.standard_normal((20_000, 50)), rng.standard_normal((20_000, 1))
    X[7] = X[3]
    source = array_source(X, y, None, EUCLIDEAN)
    tracemalloc.start()
    some_X, some_y, w = source.in_order(1000, rng)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 4
    at = np.argmax(X[:, 0] == some_X[:, :1], axis=1)
    np.testing.assert_array_equal(at, np.sort(at))
    np.testing.assert_array_equal(some_X, X[at])
    assert some_y.shape == (1000, 1)
    assert (w == 1).all()


def test_rows_of_weight_zero_leave_no_trace(rng):
    X, y = series(rng)
    w = (rng.uniform(size=160) < 0.8).astype(float)
    with_zeros, without = later().fit(X, y, w), later().fit(X[w > 0], y[w > 0])
    assert with_zeros.choices_[0]["error"] == without.choices_[0]["error"]
    np.testing.assert_allclose(with_zeros.predict(X), without.predict(X), rtol=1e-7)


def test_a_common_factor_of_all_weights_changes_nothing(rng):
    X, y = series(rng)
    w = rng.uniform(0.5, 2, size=160)
    once, again = later().fit(X, y, w), later().fit(X, y, 7.3 * w)
    assert once.choices_[0]["error"] == pytest.approx(again.choices_[0]["error"], rel=1e-7)
    assert again.alpha_ == pytest.approx(7.3 * once.alpha_)


def test_all_targets_share_a_penalty(rng):
    X, y = series(rng)
    Y = np.column_stack([y, np.roll(y, 3), rng.standard_normal(160)])
    est = later().fit(X, Y)
    assert est.alpha_.shape == (3,)
    assert np.ptp(est.alpha_) == 0
    assert est.predict(X).shape == (160, 3)


def test_a_penalty_that_is_given_is_kept(rng):
    X, y = series(rng)
    assert later(0.3).fit(X, np.column_stack([y, X])).alpha_ == 0.3
    assert later([0.01, 0.7]).fit(X, y).alpha_ in (0.01, 0.7)


def test_a_rule_chooses_the_bandwidth_of_a_metric_that_later_rows_choose(rng):
    X, y = series(rng)
    est = JacobianKernelRidge("median", 0.1, metric="auto", held_out="later", random_state=0)
    est.fit(X, y)
    assert est.bandwidth_ == pytest.approx(select_bandwidth(est.X_fit_, rule="median").sigma)
    assert est.choices_[0]["held_out"] == 120


def test_a_rule_for_a_learned_metric_sees_more_than_equal_first_rows(rng):
    X = rng.standard_normal((100, 3))
    X[:30] = X[0]
    est = JacobianKernelRidge("jacobian", 0.1, metric="diagonal", held_out="later", random_state=0)
    assert est.fit(X, X[:, 1] + 0.1 * rng.standard_normal(100)).choices_[0]["held_out"] == 75


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_rule_sees_the_largest_training_part_with_its_own_mean(rng, fit_intercept):
    X, y = series(rng)
    y, seen = y - y.mean(), []

    def rule(data):
        seen.append((len(data.X), float(data.y.mean())))
        return 1.0

    est = JacobianKernelRidge(rule, "loo", metric="diagonal", held_out="later", random_state=0)
    est.set_params(fit_intercept=fit_intercept).fit(X, y)
    of_parts = [mean for n, mean in seen if n == 120]
    assert {n for n, _ in seen} == {120, 160}  # three quarters, and all rows
    expected = 0.0 if fit_intercept else y[:120].mean() / y.std()
    assert of_parts == pytest.approx([expected] * len(of_parts), abs=1e-12)


@pytest.mark.parametrize("solver", ["nystrom", "pcg"])
def test_every_solver_takes_the_same_bandwidth_and_penalty(solver, rng):
    X, y = series(rng)
    exact = later(metric="scaled").fit(X, y)
    other = later(metric="scaled", solver=solver, n_landmarks=60).fit(X, y)
    assert (other.bandwidth_, other.alpha_) == (exact.bandwidth_, exact.alpha_)


def test_the_same_seed_makes_the_same_model_also_from_a_copy_or_a_data_frame(rng):
    X, y = series(rng, 60)
    est = AutoKernelRidge(held_out="later", random_state=3)
    one = clone(est).fit(X, y).predict(X)
    frame = pl.DataFrame(X, schema=["time", "sine", "cosine"])
    np.testing.assert_array_equal(clone(est).fit(frame, y).predict(frame), one)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(est.fit(X, y))).predict(X), one)


def test_noise_is_predicted_by_its_mean(rng):
    X, y = series(rng, 120)[0], rng.standard_normal(120)
    est = AutoKernelRidge(held_out="later", random_state=0).fit(X[:90], y[:90])
    assert est.predict(X).std() < 0.1


def test_few_distinct_rows_are_fitted_as_if_any_were_held_out(rng):
    X, y = series(rng, 19)
    one, other = (AutoKernelRidge(held_out=word, random_state=0).fit(X, y) for word in HELD_OUT)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("model", [AutoKernelClassifier, JacobianKernelClassifier])
def test_classes_of_later_rows_are_predicted(model, rng):
    X, y = series(rng, 200)
    label = np.where(y - X[:, 0] * 0.36 > 0, "high", "low")  # the season alone
    asked = {"bandwidth": "auto", "alpha": "auto", "metric": "scaled"}
    est = model(**asked, held_out="later", random_state=0).fit(X[:150], label[:150])
    assert est.choices_[0]["held_out"] in (111, 112, 113)
    assert est.score(X[150:], label[150:]) > 0.8


@pytest.mark.parametrize(
    ("est", "why"),
    [
        (AutoKernelRidge(metric="geodesic"), 'for metric="geodesic"'),
        (AutoKernelRidge(metric="precomputed"), 'for metric="precomputed"'),
        (JacobianKernelRidge(), "if nothing is chosen"),
        (JacobianKernelRidge("auto", "loo"), "if nothing is chosen"),
        (JacobianKernelRidge(1.0, "auto"), "if nothing is chosen"),
    ],
)
def test_later_rows_are_refused_where_none_decide(est, why, rng):
    X, y = series(rng, 40)
    X = cdist(X, X) if est.metric == "precomputed" else X[:, 1:]
    with pytest.raises(ValueError, match=f'`held_out` must be "random" {why}.*, got "later"'):
        est.set_params(held_out="later").fit(X, y)


def test_later_rows_are_refused_where_rows_stream(rng, tmp_path):
    da = pytest.importorskip("dask.array")
    X, y = series(rng, 60)
    pl.DataFrame({"a": X[:, 0], "y": y}).write_parquet(tmp_path / "rows.parquet")
    files = ParquetFiles(str(tmp_path / "rows.parquet"))
    for rows, target in ((files, "y"), (da.from_array(X), da.from_array(y))):
        with pytest.raises(ValueError, match=r"`held_out` must be .* for Dask arrays and"):
            AutoKernelRidge(held_out="later").fit(rows, target)


def test_a_diagnosis_does_not_recommend_what_predicts_rows_in_between(rng):
    X, y = series(rng)
    found = AutoKernelRidge(held_out="later", random_state=0).fit(X, y).diagnose().dict()
    sentence = "Not compared: later rows chose bandwidth and penalty."
    assert found["gain of a search"]["sentence"] == sentence
    assert np.isnan(found["gain of a search"]["value"])
    assert not found["gain of a search"]["warning"]
