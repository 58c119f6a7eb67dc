"""bandwidth="auto": nearly the full joint search, on few rows first."""

from functools import partial

import numpy as np
import pytest

from inside import LOO, Criterion, joint
from jacridge import AutoKernelRidge, JacobianKernelRidge, select_bandwidth


def noisy(rng, n, p=3):
    X = rng.standard_normal((n, p))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.2 * rng.standard_normal(n)


@pytest.mark.slow
@pytest.mark.parametrize("n", [80, 700])
def test_auto_predicts_as_well_as_the_joint_search_on_all_rows(rng, n):
    X, y = noisy(rng, n)
    X_new, y_new = noisy(rng, 500)

    auto = JacobianKernelRidge("auto", "auto", random_state=0).fit(X, y).score(X_new, y_new)
    full = JacobianKernelRidge("loo", "loo").fit(X, y).score(X_new, y_new)
    # Two searches on other grids of bandwidths: their test R2 differ by what 500 rows can tell.
    assert auto > full - 0.01


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_single_precision_chooses_what_double_precision_does(rng, monkeypatch, kernel):
    X, y = noisy(rng, 1300)
    options = {"kernel": kernel, "random_state": 0}
    rough = select_bandwidth(X, y, "auto", alpha="auto", **options)
    used = []
    precise_value = Criterion.at

    def precise(criterion, pairs, *args, **more):
        used.append(pairs.M.dtype)
        return (
            np.inf
            if pairs.M.dtype == np.float32
            else precise_value(criterion, pairs, *args, **more)
        )

    monkeypatch.setattr(Criterion, "at", precise)
    known = select_bandwidth(X, y, "auto", alpha="auto", **options)
    assert np.float32 in used
    # Rounding moves the vertex of the last parabolas: less than the noise of the data does.
    np.testing.assert_allclose(rough.sigma, known.sigma, rtol=0.01)
    np.testing.assert_allclose(rough.alpha, known.alpha, rtol=0.05)


@pytest.mark.slow
def test_auto_finds_the_penalty_that_the_noise_asks_for(rng):
    X, y = noisy(rng, 600)
    quiet = select_bandwidth(X, y, "auto", alpha="auto", random_state=0)
    loud = select_bandwidth(
        X, y + 2 * rng.standard_normal(600), "auto", alpha="auto", random_state=0
    )
    assert loud.alpha > 3 * quiet.alpha


def test_auto_keeps_a_penalty_that_is_given(rng):
    choice = select_bandwidth(*noisy(rng, 600), "auto", alpha=0.37, random_state=0)
    assert choice.alpha == 0.37


@pytest.mark.parametrize("lams", [[1e-9, 1e-8], [50.0, 100.0]])
def test_auto_stays_within_penalties_that_are_given(rng, lams):
    choice = select_bandwidth(*noisy(rng, 100), "auto", alpha=lams, random_state=0)
    assert lams[0] <= choice.alpha <= lams[1]


def test_auto_is_the_same_for_the_same_random_state(rng):
    X, y = noisy(rng, 600)
    first, second = (
        JacobianKernelRidge("auto", "auto", random_state=3).fit(X, y) for _ in range(2)
    )
    assert first.bandwidth_ == second.bandwidth_
    assert first.alpha_ == second.alpha_


def test_several_targets_share_a_bandwidth_and_have_a_penalty_each(rng):
    X, y = noisy(rng, 600)
    Y = np.column_stack([y, X[:, 0] + rng.standard_normal(600)])
    est = JacobianKernelRidge("auto", "auto", random_state=0).fit(X, Y)

    assert np.ndim(est.bandwidth_) == 0
    assert est.alpha_.shape == (2,)
    assert est.alpha_[1] > est.alpha_[0]


def test_a_minimum_at_the_end_of_the_grid_is_followed_for_several_targets_too(rng):
    X = rng.standard_normal((300, 3))
    Y = np.column_stack([(X**2).sum(axis=1), X[:, 0] * X[:, 1]])  # without noise
    est = JacobianKernelRidge("auto", "auto", metric="scaled", random_state=0).fit(X[:200], Y[:200])
    assert max(est.alpha_) < 1e-6  # the end of the grid
    errors = np.abs(est.predict(X[200:]) - Y[200:]) / Y.std(axis=0)
    assert np.sqrt(np.square(errors).mean()) < 1e-3


def test_the_bandwidth_scales_with_the_features(rng):
    X, y = noisy(rng, 600)
    ours, scaled = (
        select_bandwidth(c * X, y, "auto", alpha="auto", random_state=0).sigma for c in (1, 8)
    )
    assert scaled == pytest.approx(8 * ours, rel=1e-8)


@pytest.mark.parametrize("rule", ["gcv", "mml"])
def test_auto_takes_the_criterion_of_the_penalty(rng, rule):
    X, y = noisy(rng, 200)
    auto = select_bandwidth(X, y, "auto", alpha=rule, random_state=0)
    full = select_bandwidth(X, y, rule, alpha=rule)
    # Both are minima of the same criterion between points of different grids.
    assert auto.sigma == pytest.approx(full.sigma, rel=0.25)


def test_bandwidths_that_few_rows_cannot_tell_apart_are_kept():
    """Those within sqrt(4 / 400) = 10 % of the best one, and its neighbours whatever they are."""
    curve = np.array([1.04, 1.08, 5.0, 1.0, 5.0, 1.12])
    kept = joint._not_clearly_worse(curve, LOO, 400)
    assert np.flatnonzero(kept).tolist() == [0, 1, 2, 3, 4]


def test_penalties_to_choose_from_can_be_given(rng):
    X, y = noisy(rng, 100)
    free = select_bandwidth(X, y, alpha="loo").alpha
    given = select_bandwidth(X, y, alpha=[free / 10, free, 10 * free]).alpha
    # The parabola through three points a decade apart ends nearer to the middle one.
    assert free / 10**0.5 < given < free * 10**0.5


@pytest.mark.parametrize("alpha", [[], [0.1, -1], [np.nan], [[1.0, 2.0]]])
def test_a_list_of_penalties_must_be_positive(rng, alpha):
    with pytest.raises(ValueError, match="`alpha` must be a list of numbers from"):
        select_bandwidth(*noisy(rng, 20), alpha=alpha)


@pytest.mark.parametrize(("bandwidth", "alpha"), [("auto", "auto"), ("mml", 1e-3), (1.0, "loo")])
def test_a_constant_target_is_predicted_with_a_warning(rng, bandwidth, alpha):
    X, _ = noisy(rng, 50)
    with pytest.warns(UserWarning, match="`y` is constant"):
        est = JacobianKernelRidge(bandwidth, alpha).fit(X, np.full(50, 7.0))
    assert np.array_equal(est.predict(X), np.full(50, 7.0))


@pytest.mark.parametrize("n", [3, 4])
def test_auto_works_from_three_rows_on(rng, n):
    X, y = noisy(rng, n)
    assert np.isfinite(JacobianKernelRidge("auto", "auto").fit(X, y).predict(X)).all()


@pytest.mark.parametrize("n", [1, 2])
def test_auto_says_that_it_needs_three_rows(rng, n):
    with pytest.raises(ValueError, match=f"n_samples >= 3, got n_samples={n}"):
        JacobianKernelRidge("auto", "auto").fit(*noisy(rng, n))


@pytest.mark.parametrize("coverage", [0, 1, -0.1, np.nan])
def test_a_coverage_must_lie_between_0_and_1(rng, coverage):
    est = JacobianKernelRidge().fit(*noisy(rng, 20))
    with pytest.raises(ValueError, match="`coverage` must be a finite number > 0 and < 1"):
        est.predict_interval(np.zeros((1, 3)), coverage=coverage)


@pytest.mark.parametrize("n", [30, 600])
def test_equal_rows_can_be_searched_without_a_penalty(rng, n):
    X = np.repeat(rng.standard_normal((n // 3, 2)), 3, axis=0)
    assert select_bandwidth(X, rng.standard_normal(n), "auto", alpha=0).sigma > 0


@pytest.mark.parametrize(("n", "p", "alpha"), [(200, 3, 0), (200, 3, 1e-14), (1500, 1, 0)])
def test_a_smooth_target_can_be_fitted_nearly_without_a_penalty(rng, n, p, alpha):
    """The choice of a metric finds a bandwidth so wide that K is singular to rounding."""
    X = rng.standard_normal((n, p))
    est = JacobianKernelRidge("auto", alpha, metric="auto", random_state=0).fit(X, X[:, 0] ** 2)
    assert est.score(X, X[:, 0] ** 2) > 0.99


@pytest.mark.slow
def test_landmarks_at_a_small_penalty_predict_better_with_their_own_bandwidth(rng, monkeypatch):
    X, y = noisy(rng, 4000, p=5)
    X_new, y_new = noisy(rng, 2000, p=5)
    make = partial(
        JacobianKernelRidge, "auto", 1e-6, solver="nystrom", n_landmarks=150, random_state=0
    )
    own = make().fit(X, y).score(X_new, y_new)
    monkeypatch.setattr(joint, "_for_landmarks", lambda data, trials, sigma, _: sigma)
    assert own > make().fit(X, y).score(X_new, y_new) + 0.01


@pytest.mark.parametrize("model", [AutoKernelRidge, partial(JacobianKernelRidge, "auto", "auto")])
def test_few_distinct_rows_with_many_observations_are_predicted(rng, model):
    """Neighbours in the design say little of each other, but the observations of a row do."""
    X = np.column_stack([rng.integers(0, 12, 900), rng.integers(0, 2, 900)]).astype(float)
    known = np.where(X[:, 1] > 0, 1.0, -1.0) * np.sin(2.4 * X[:, 0])
    fit = model(random_state=0).fit(X, known + rng.standard_normal(900))
    assert fit.score(X, known) > 0.85
    noise = model(random_state=0).fit(X, rng.standard_normal(900))
    assert noise.predict(X).std() < 0.2
