"""The Nystrom solver: against dense algebra, against the exact solver, against real refits."""

import pickle

import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from inside import ArrayRows
from jacridge import JacobianKernelRidge
from naive import distances, kernel, leave_one_out, slopes, with_intercept


def nystrom(bandwidth=0.8, alpha=0.01, **options):
    return JacobianKernelRidge(bandwidth, alpha, solver="nystrom", **options)


def subset_of_regressors(X, y, w, Z, X_new, sigma, lam):
    """Predictions by the textbook's formula, which squares the condition."""
    K, K_zz, K_new = (kernel(distances(A, Z), sigma) for A in (X, Z, X_new))
    mean = w @ y / w.sum()
    M = K.T @ (w[:, None] * K) + lam * K_zz
    return mean + K_new @ np.linalg.lstsq(M, K.T @ (w[:, None] * (y - mean)), rcond=None)[0]


@pytest.fixture
def targets(rng):
    """Rows of a table with two targets and weights: X (70, 3), Y (70, 2), w (70,)."""
    X = rng.standard_normal((70, 3))
    Y = np.column_stack([np.sin(X[:, 0]) + X[:, 1], X[:, 2] ** 2]) + 3
    return X, Y + 0.1 * rng.standard_normal(Y.shape), rng.uniform(0.2, 3, 70)


def nearly_all(X):
    """Landmarks at all rows, one of them moved a little: the model is not solved exactly."""
    Z = X.copy()
    Z[0] += 1e-10
    return Z


@parametrize_with_checks(
    [
        nystrom(bandwidth="jacobian"),
        nystrom(30.0, 1e-6, n_landmarks=9),
        nystrom(5.0, 1e-6, landmarks="rpcholesky", n_landmarks=9),
    ]
)
def test_the_nystrom_solver_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_predictions_are_those_of_the_dense_formula(targets, rng):
    X, Y, w = targets
    Z, X_new = X[:25], rng.standard_normal((9, 3))
    found = nystrom(landmarks=Z).fit(X, Y, w).predict(X_new)
    np.testing.assert_allclose(found, subset_of_regressors(X, Y, w, Z, X_new, 0.8, 0.01), rtol=1e-8)


def test_predictions_are_those_of_scikit_learn_s_nystroem_with_ridge(targets, rng):
    X, Y, w = targets
    features = Nystroem(gamma=0.5 / 0.8**2, n_components=25, random_state=0)
    theirs = make_pipeline(features, Ridge(alpha=0.01)).fit(X, Y, ridge__sample_weight=w)
    ours = nystrom(landmarks=features.components_, fit_intercept="free").fit(X, Y, w)
    X_new = rng.standard_normal((9, 3))
    np.testing.assert_allclose(ours.predict(X_new), theirs.predict(X_new), rtol=1e-7)


@pytest.mark.parametrize("given", ["number", "rows", "rows in another order"])
@pytest.mark.parametrize("alpha", [1e-5, "gcv"])
def test_with_all_rows_as_landmarks_it_is_solved_exactly(given, alpha, rng):
    """Landmarks that leave 1e-10 of each other would cost five digits here."""
    X, w = rng.standard_normal((400, 2)), rng.integers(0, 3, 400)
    y, X_new = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(400), rng.standard_normal((50, 2))
    landmarks = {
        "number": {"n_landmarks": 400},
        "rows": {"landmarks": X},
        "rows in another order": {"landmarks": X[::-1]},
    }
    ours = nystrom(0.7, alpha, **landmarks[given]).fit(X, y, w)
    exact = JacobianKernelRidge(0.7, alpha, solver="exact").fit(X, y, w)
    assert ours.solver_ == "exact"
    np.testing.assert_allclose(ours.predict(X_new), exact.predict(X_new), atol=1e-9)
    np.testing.assert_allclose(ours.loo_residuals_, exact.loo_residuals_, atol=1e-9)
    again = pickle.loads(pickle.dumps(ours))
    for name in ("predict_interval", "jacobian"):
        np.testing.assert_allclose(getattr(again, name)(X_new), getattr(exact, name)(X_new))
    assert again.diagnose().dict() == exact.diagnose().dict()
    # A fit with fewer landmarks leaves nothing of the one before.
    ours.set_params(landmarks=X[:50], n_landmarks=None).fit(X, y, w)
    assert ours.loo_residuals_.shape == (400,)
    assert ours.predict(X_new, return_std=True)[1].shape == (50,)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, "loo", "gcv", "mml"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True, "free"])
def test_with_all_rows_as_landmarks_it_is_the_exact_solver(
    alpha, weighted, fit_intercept, targets, rng
):
    """To 1e-6, as directions of the kernel below 1e-14 are dropped."""
    X, Y, w = targets
    w, X_new = w if weighted else None, rng.standard_normal((9, 3))
    exact, ours = (
        JacobianKernelRidge(1.2, alpha, fit_intercept=fit_intercept, **options).fit(X, Y, w)
        for options in (
            {"solver": "exact"},
            {"solver": "nystrom", "landmarks": nearly_all(X)},
        )
    )
    assert ours.solver_ == "nystrom"
    np.testing.assert_allclose(ours.alpha_, exact.alpha_, rtol=1e-6)
    for name in ("predict", "jacobian", "predict_interval"):
        np.testing.assert_allclose(
            getattr(ours, name)(X_new), getattr(exact, name)(X_new), rtol=1e-6, atol=1e-6
        )
    std, known = (est.predict(X_new, return_std=True)[1] for est in (ours, exact))
    np.testing.assert_allclose(std, known, rtol=1e-6)
    np.testing.assert_allclose(ours.loo_residuals_, exact.loo_residuals_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("fit_intercept", [False, True, "free"])
def test_leave_one_out_residuals_are_those_of_refits_with_the_same_landmarks(
    fit_intercept, targets
):
    X, Y, w = targets

    def make():
        return nystrom(landmarks=X[:20], fit_intercept=fit_intercept)

    found = make().fit(X, Y, w).loo_residuals_
    np.testing.assert_allclose(found, leave_one_out(make, X, Y, w), rtol=1e-7)


@pytest.mark.parametrize("fit_intercept", [False, True, "free"])
def test_intervals_come_from_models_that_leave_a_row_out(fit_intercept, targets, rng):
    """Jackknife+ by 70 refits: the quantiles of prediction plus or minus residual."""
    X, Y, w = targets
    y, X_new, Z = Y[:, 0], rng.standard_normal((5, 3)), X[:20]
    options = {"landmarks": Z, "fit_intercept": fit_intercept}
    lower, upper = (
        nystrom(**options).fit(X, y, w).predict_interval(X_new, coverage=0.8, adaptive=False)
    )
    lows, highs = [], []
    for i in range(70):
        rest = np.arange(70) != i
        model = nystrom(**options).fit(X[rest], y[rest], w[rest])
        size = abs(y[i] - model.predict(X[[i]])[0])
        lows.append(model.predict(X_new) - size)
        highs.append(model.predict(X_new) + size)
    rank = int(np.ceil(0.8 * 71))
    np.testing.assert_allclose(upper, np.sort(highs, axis=0)[rank - 1], rtol=1e-8)
    np.testing.assert_allclose(lower, np.sort(lows, axis=0)[70 - rank], rtol=1e-8)


def test_the_jacobian_is_the_slope_of_the_predictions(targets):
    X, Y, _ = targets
    est = nystrom(landmarks=X[:20]).fit(X, Y)
    np.testing.assert_allclose(est.jacobian(X[:4]), slopes(est.predict, X[:4], 1e-3), rtol=1e-7)


@pytest.mark.parametrize("fit_intercept", [True, "free"])
def test_the_standard_deviation_is_that_of_a_process_with_inducing_points(
    fit_intercept, targets, rng
):
    """1 - q + k' B^-1 k lam, q = k'K_zz^-1 k, B = K_zz + K'WK / lam: dense algebra."""
    X, Y, w = targets
    Z, X_new, lam = X[:15], rng.standard_normal((6, 3)), 0.01
    K, K_zz, K_new = (kernel(distances(A, Z), 0.8) for A in (X, Z, X_new))
    inner = np.linalg.inv(lam * K_zz + K.T @ (w[:, None] * K))
    q = np.einsum("ij,jk,ik->i", K_new, np.linalg.inv(K_zz), K_new)
    left = 1 - q + lam * np.einsum("ij,jk,ik->i", K_new, inner, K_new)
    A = K @ np.linalg.solve(K_zz, K.T) + lam * np.diag(1 / w)
    b = w @ Y[:, 0] / w.sum()
    if fit_intercept == "free":  # of which there is a variance of its own
        _, b = with_intercept(A, Y[:, :1])
        u = np.linalg.solve(A, np.ones(len(A)))
        left += (1 - K_new @ np.linalg.solve(K_zz, K.T @ u)) ** 2 / u.sum()
    scale = (Y[:, 0] - b) @ np.linalg.solve(A, Y[:, 0] - b) / len(Y)
    _, std = (
        nystrom(landmarks=Z, fit_intercept=fit_intercept)
        .fit(X, Y[:, 0], w)
        .predict(X_new, return_std=True)
    )
    np.testing.assert_allclose(std, np.sqrt(scale * left), rtol=1e-7)


@pytest.mark.parametrize("metric", ["euclidean", "geodesic"])
def test_a_weight_of_zero_removes_a_row_and_of_two_repeats_it(metric, rng):
    """To 1e-6, as the rows are their own landmarks, of which nearly dependent ones are dropped."""
    X, y = rng.uniform(-1, 1, (40, 2)), rng.standard_normal(40)
    w = rng.integers(0, 3, 40)
    options = {"bandwidth": "jacobian", "metric": metric}
    ours = nystrom(**options).fit(X, y, w)
    repeated = nystrom(**options).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert ours.bandwidth_ == pytest.approx(repeated.bandwidth_)
    np.testing.assert_allclose(ours.predict(X), repeated.predict(X), rtol=1e-6, atol=1e-8)


def test_y_plus_a_constant_shifts_the_predictions(targets):
    X, Y, w = targets
    low, high = (nystrom(n_landmarks=20, random_state=0).fit(X, Y + c, w) for c in (0, 1e3))
    np.testing.assert_allclose(high.predict(X) - 1e3, low.predict(X), rtol=1e-8)


def test_auto_is_exact_for_few_rows_and_says_what_it_took_for_many(size, caplog, targets):
    X, Y, _ = targets
    assert JacobianKernelRidge().fit(X, Y).solver_ == "exact"
    size("exact rows", 50)
    with caplog.at_level("INFO", logger="jacridge"):
        assert JacobianKernelRidge(n_landmarks=20).fit(X, Y).solver_ == "nystrom"
    assert [record.message for record in caplog.records] == [
        "solver='nystrom' was taken for n_samples=70."
    ]


@pytest.mark.parametrize("bandwidth", ["jacobian", "jacobian_median", "scale", "silverman", "loo"])
def test_rules_see_the_same_geometry_whatever_the_solver(bandwidth, targets):
    """To 1e-6, for `loo`: a minimum that is searched for is known to the root of the rounding."""
    X, Y, w = targets
    exact, ours = (
        JacobianKernelRidge(bandwidth, **options).fit(X, Y, w)
        for options in (
            {"solver": "exact"},
            {"solver": "nystrom", "landmarks": nearly_all(X)},
        )
    )
    assert ours.bandwidth_ == pytest.approx(exact.bandwidth_, rel=1e-6)


@pytest.mark.parametrize("alpha", ["gcv", "mml"])
def test_more_landmarks_than_rows_choose_the_penalty_of_the_exact_solver(alpha, rng):
    """Then G has eigenvalues that are rounding, and nothing of y lies along their vectors."""
    X, Z = rng.standard_normal((20, 2)), rng.standard_normal((180, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(20)
    exact = JacobianKernelRidge(0.7, alpha, solver="exact").fit(X, y)
    ours = nystrom(bandwidth=0.7, alpha=alpha, landmarks=np.vstack([X, Z])).fit(X, y)
    assert ours.alpha_ == pytest.approx(exact.alpha_, rel=0.01)  # three digits, and dropped pivots


def test_the_last_digit_of_the_bandwidth_does_not_move_predictions(rng):
    """Where kernels are wide, and landmarks nearly depend on each other."""
    X = rng.standard_normal((3000, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(3000)
    here, there = (
        nystrom(bandwidth=sigma, alpha=1e-3, landmarks=X[:60]).fit(X, y).predict(X)
        for sigma in (3.0, 3.0 * (1 + 2.3e-16))
    )
    # A pivot of 1e-10 has six digits, which predictions may lose.
    np.testing.assert_allclose(here, there, atol=1e-6)


@pytest.mark.slow
def test_a_pickled_model_is_small_and_keeps_all_but_the_training_rows(targets, rng):
    X = rng.standard_normal((30_000, 3))
    est = nystrom(n_landmarks=10).fit(X, np.column_stack([X[:, 0], X[:, 1] * X[:, 2]]))
    data = pickle.dumps(est)
    again = pickle.loads(data)
    assert len(data) < X.nbytes
    for ask in (
        lambda e: e.predict(X[:5], return_std=True),
        lambda e: e.predict_interval(X[:5]),
        lambda e: e.jacobian(X[:5]),
        lambda e: e._function().model.degrees_of_freedom,
        lambda e: e.diagnose().dict()["leave-one-out R2"]["value"],
    ):
        np.testing.assert_allclose(ask(again), ask(est), rtol=1e-10)
    with pytest.raises(AttributeError, match="need the training rows"):
        again.loo_residuals_  # noqa: B018


def test_an_interval_of_many_rows_uses_a_sample_of_them(size, rng):
    """Coverage on normal noise of 200 new rows, its standard deviation 0.02."""
    size("jackknife rows", 300)
    X = rng.uniform(-2, 2, (3200, 1))
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.standard_normal(3200)
    est = nystrom(0.4, 0.1, n_landmarks=40).fit(X[:3000], y[:3000])
    assert len(est._function().model.jackknife.residuals) == 300
    lower, upper = est.predict_interval(X[3000:])
    assert 0.84 < np.mean((lower <= y[3000:]) & (y[3000:] <= upper)) < 0.96


@pytest.mark.parametrize("alpha", [0, 1e-12])
def test_without_a_penalty_nothing_is_infinite(alpha, rng):
    X = np.repeat(rng.standard_normal((30, 1)), 2, axis=0)
    est = nystrom(3.0, alpha, n_landmarks=20).fit(X, np.sin(X[:, 0]))
    np.testing.assert_allclose(est.predict(X), np.sin(X[:, 0]), atol=1e-4)  # cond. is 1e14
    assert np.isfinite(est.predict(X, return_std=True)[1]).all()


@pytest.mark.parametrize("c", [7.0, 0.1, 1e6 / 3])
def test_a_constant_target_is_predicted_as_it_is(c, rng, size):
    """In several blocks, whose sums round: a third of a million is no sum's exact mean."""
    size("task rows", 7)
    X = rng.standard_normal((40, 2))
    np.testing.assert_array_equal(nystrom().fit(X, np.full(40, c)).predict(X), c)
    for options in ({"alpha": "gcv"}, {"bandwidth": "auto"}):
        with pytest.warns(UserWarning, match="`y` is constant"):
            est = nystrom(**options).fit(X, np.full(40, c))
        np.testing.assert_array_equal(est.predict(X), c)


def test_degrees_of_freedom_without_a_penalty_are_the_rank(rng):
    """Six distinct rows, eight landmarks of which all are kept: G has the rank six."""
    X = np.repeat(rng.standard_normal((6, 2)), 3, axis=0)
    with pytest.warns(UserWarning, match="not positive definite"):
        est = nystrom(0.5, 0.0, landmarks=rng.standard_normal((8, 2))).fit(X, X[:, 0])
    assert est._function().model.degrees_of_freedom == pytest.approx(6.0)


def test_distances_cannot_be_given_to_the_nystrom_solver():
    with pytest.raises(ValueError, match='`solver` must be "auto" or "exact"'):
        nystrom(metric="precomputed").fit(np.zeros((3, 3)), np.zeros(3))


def test_unknown_solvers_and_landmarks_are_refused(targets):
    X, Y, _ = targets
    with pytest.raises(ValueError, match=r"`solver` must be one of 'auto', 'exact', 'nystrom'"):
        JacobianKernelRidge(solver="magic").fit(X, Y)
    with pytest.raises(ValueError, match=r"`landmarks` must be one of 'uniform', 'kmeans'"):
        nystrom(landmarks="best").fit(X, Y)
    with pytest.raises(ValueError, match=r"`landmarks` must have 3 columns, as `X` has, got 2"):
        nystrom(landmarks=np.zeros((4, 2))).fit(X, Y)
    with pytest.raises(ValueError, match=r"`n_landmarks` must be from 1 to n_samples=70, got 71"):
        nystrom(n_landmarks=71).fit(X, Y)
    for solver in ("exact", "nystrom"):
        for m in (0, -1):
            with pytest.raises(ValueError, match=f"`n_landmarks` must be .* got {m}"):
                JacobianKernelRidge(solver=solver, n_landmarks=m).fit(X, Y)
    with pytest.raises(ValueError, match="landmarks contains NaN"):
        nystrom(landmarks=np.full((4, 3), np.nan)).fit(X, Y)
    for m in (2.5, "ten", True):
        with pytest.raises(TypeError, match="`n_landmarks` must be a whole number >= 1"):
            nystrom(n_landmarks=m).fit(X, Y)
    with pytest.raises(ValueError, match=r"0 sample\(s\)|at least one row|minimum of 1"):
        nystrom(landmarks=np.zeros((0, 3))).fit(X, Y)


def test_rows_of_weight_zero_take_no_landmarks_away(rng):
    X = rng.standard_normal((6000, 2))
    w = np.zeros(6000)
    w[rng.choice(6000, 300, replace=False)] = 1.0
    est = JacobianKernelRidge(0.3, solver="nystrom", n_landmarks=100, random_state=0)
    assert len(est.fit(X, X[:, 0], w).X_fit_) == 100


def test_a_wrong_word_for_landmarks_is_refused_whatever_the_solver(rng):
    with pytest.raises(ValueError, match="`landmarks` must be"):
        JacobianKernelRidge(landmarks="foo").fit(rng.standard_normal((20, 2)), np.arange(20.0))


def test_residuals_of_a_penalty_per_target_take_one_pass_over_the_rows(targets, monkeypatch):
    X, Y, _ = targets
    Y[:, 1] = np.random.default_rng(0).standard_normal(len(Y))  # noise, with a larger penalty
    est = nystrom(alpha="gcv", landmarks=X[:20]).fit(X, Y)
    assert est.alpha_[0] < est.alpha_[1]
    passes, each = [], ArrayRows.each
    monkeypatch.setattr(ArrayRows, "each", lambda *given: passes.append(1) or each(*given))
    first, second = est.loo_residuals_, est.loo_residuals_
    assert len(passes) == 1
    assert first is not second  # the caller may change his
    np.testing.assert_array_equal(first, second)
