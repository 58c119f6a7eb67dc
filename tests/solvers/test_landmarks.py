"""Landmarks, low-rank factors by random pivots, features of landmarks and their sums."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from jacridge import JacobianKernelRidge
from jacridge._geometry.kernels import KERNELS
from jacridge._geometry.space import space_of
from jacridge._rows.rows import ArrayRows
from jacridge._solvers import landmarks
from jacridge._solvers.landmarks import (
    LANDMARKS,
    Features,
    chooser,
    features,
    low_rank,
    some_among,
    whitened_late,
)
from jacridge._solvers.nystrom import NystromSpectrum
from jacridge._solvers.sums import Summing, summed
from naive import distances, kernel

SPACE = space_of("gaussian", "euclidean")
SPACES = [(name, "euclidean") for name in KERNELS]
SPACES += [(name, "geodesic") for name, known in KERNELS.items() if known.power == 2]


def dense(X, Z, sigma):
    return kernel(distances(X, Z), sigma)


def chosen(name, X, m, sigma, space=SPACE, seed=3):
    return chooser(name, X, m, space, seed)(sigma)


def rows_of(X):
    return {tuple(row) for row in X.tolist()}


@pytest.mark.parametrize("name", LANDMARKS)
def test_as_many_landmarks_as_asked_for_are_chosen(name, rng):
    Z = chosen(name, rng.standard_normal((200, 3)), 20, 1.0)
    assert Z.shape == (20, 3)
    assert len(rows_of(Z)) == 20


@pytest.mark.parametrize("name", LANDMARKS)
def test_equal_rows_make_one_landmark(name, rng):
    X = np.repeat(rng.standard_normal((7, 2)), 10, axis=0)
    assert rows_of(chosen(name, X, 50, 1.0)) == rows_of(X)


@pytest.mark.parametrize("name", LANDMARKS)
def test_zeros_of_both_signs_are_one_landmark(name):
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 1.0], [0.0, 1.0]])
    assert len(chosen(name, X, 4, 1.0)) == 2


@pytest.mark.parametrize("name", LANDMARKS)
def test_duplicates_and_the_order_of_rows_do_not_change_landmarks(name, rng):
    X = rng.standard_normal((100, 2))
    again = np.vstack([X, X[:30]])[rng.permutation(130)]
    np.testing.assert_array_equal(chosen(name, again, 10, 0.5), chosen(name, X, 10, 0.5))


@pytest.mark.parametrize("name", LANDMARKS)
def test_another_seed_chooses_other_landmarks(name, rng):
    X = rng.standard_normal((100, 2))
    one, other = (chosen(name, X, 10, 0.5, seed=seed) for seed in (3, 4))
    assert rows_of(one) != rows_of(other)


@pytest.mark.parametrize("name", ["uniform", "rpcholesky"])
def test_landmarks_that_must_be_rows_are(name, rng):
    X = rng.standard_normal((60, 2))
    assert rows_of(chosen(name, X, 20, 0.3)) <= rows_of(X)


@pytest.mark.parametrize("name", LANDMARKS)
def test_landmarks_on_the_earth_are_rows(name, rng):
    """The mean of places is no place in general: no centres of clusters there."""
    X = np.column_stack([rng.uniform(40, 52, 60), rng.uniform(-5, 9, 60)])
    Z = chosen(name, X, 20, 3e5, space_of("gaussian", "geodesic"))
    assert len(Z) == 20
    assert rows_of(Z) <= rows_of(X)


def test_cluster_centres_lie_nearer_to_the_rows_than_a_draw_of_them(rng):
    X = rng.standard_normal((500, 2))
    drawn, centres = (chosen(name, X, 20, 1.0) for name in ("uniform", "kmeans"))
    far_drawn, far_centres = ((distances(X, Z).min(axis=1) ** 2).mean() for Z in (drawn, centres))
    assert far_centres < far_drawn / 1.3


@pytest.mark.parametrize("asked", [0, -3, 101])
def test_a_number_of_landmarks_out_of_range_is_refused(rng, asked):
    X = rng.standard_normal((100, 2))
    wanted = "from 1 to n_samples=100" if asked > 100 else "a whole number >= 1"
    with pytest.raises(ValueError, match=f"`n_landmarks` must be {wanted}, got {asked}"):
        JacobianKernelRidge(solver="nystrom", n_landmarks=asked).fit(X, X[:, 0])


@pytest.mark.parametrize("asked", [2.5, "ten", True])
def test_landmarks_are_counted_in_whole_numbers(rng, asked):
    X = rng.standard_normal((100, 2))
    with pytest.raises(TypeError, match="`n_landmarks` must be a whole number"):
        JacobianKernelRidge(solver="nystrom", n_landmarks=asked).fit(X, X[:, 0])


@pytest.mark.parametrize("name", KERNELS)
def test_a_factor_of_full_rank_is_the_kernel(rng, name):
    X, space = rng.standard_normal((60, 2)), space_of(name, "euclidean")
    F, _ = low_rank(X, 60, 0.3, space, rng)
    np.testing.assert_allclose(F @ F.T, space.block(X, X, 0.3), atol=1e-12)


def test_a_low_rank_factor_is_exact_at_its_pivots_and_leaves_a_covariance(rng):
    X = rng.standard_normal((80, 3))
    F, pivots = low_rank(X, 20, 1.0, SPACE, rng)
    left = dense(X, X, 1.0) - F @ F.T
    assert F.shape == (80, 20)
    assert len(set(pivots)) == 20
    np.testing.assert_allclose(left[pivots], 0, atol=1e-12)
    assert np.linalg.eigvalsh(left)[0] > -1e-12


def test_a_factor_ends_where_only_rounding_is_left(rng):
    X = rng.standard_normal((100, 1))
    F, pivots = low_rank(X, 100, 1.0, SPACE, rng)
    assert F.shape[1] == len(pivots) < 30
    np.testing.assert_allclose(F @ F.T, dense(X, X, 1.0), atol=1e-11)


def test_random_pivots_come_close_to_the_best_factor_of_that_rank(rng):
    """The trace left is, in the mean, at most a little above that of a somewhat lower rank."""
    X = rng.standard_normal((150, 2))
    values = np.linalg.eigvalsh(dense(X, X, 0.7))[::-1]
    factors = [low_rank(X, 30, 0.7, SPACE, rng)[0] for _ in range(10)]
    left = np.mean([150 - np.square(F).sum() for F in factors])
    assert values[30:].sum() <= left <= values[20:].sum()


def test_first_pivots_are_drawn_in_proportion_to_the_diagonal_left(rng):
    """Three rows, two of them nearly equal: after the lone row either twin is as likely."""
    X = np.array([[0.0], [9.0], [9.001]])
    seconds = [low_rank(X, 2, 1.0, SPACE, rng)[1].tolist() for _ in range(300)]
    alone = sum(0 in pair for pair in seconds)
    assert alone == 300  # the twins are never both taken: the second has 1e-6 left
    assert 110 < sum(1 in pair for pair in seconds) < 190


@pytest.mark.parametrize(("name", "metric"), SPACES)
def test_features_reproduce_the_kernel_at_landmarks(name, metric, rng):
    X, Z = rng.uniform(-1, 1, (30, 2)), rng.uniform(-1, 1, (12, 2))
    sigma, space = 0.5 if metric == "euclidean" else 5e4, space_of(name, metric)
    phi = features(Z, sigma, space)
    np.testing.assert_allclose(phi.kernel(X), space.block(X, phi.Z, sigma), rtol=1e-11)
    np.testing.assert_allclose(phi(X) @ phi(phi.Z).T, phi.kernel(X), atol=1e-9)


def test_features_of_places_are_those_of_geodesics(rng):
    X, Z = rng.uniform(-1, 1, (20, 2)), rng.uniform(-1, 1, (8, 2))
    phi = features(Z, 5e4, space_of("gaussian", "geodesic"))
    # Vincenty's formula is good to a millimetre in a hundred kilometres.
    np.testing.assert_allclose(
        phi.kernel(X), kernel(naive.geodesics(X, phi.Z), 5e4), rtol=1e-7, atol=1e-12
    )


def test_the_kernel_is_made_in_the_memory_that_is_given(rng):
    X, phi = rng.standard_normal((30, 3)), features(rng.standard_normal((9, 3)), 1.0, SPACE)
    out = np.full((30, 12), np.nan)
    part = out[:, :-3]  # rows that are not one behind the other
    assert phi.kernel(X, part) is part
    np.testing.assert_allclose(part, dense(X, phi.Z, 1.0), rtol=1e-12)
    assert np.isnan(out[:, -3:]).all()


def test_far_from_the_origin_the_kernel_keeps_its_digits(rng):
    X, Z = rng.standard_normal((30, 3)) + 1e6, rng.standard_normal((9, 3)) + 1e6
    phi = features(Z, 1.0, SPACE)
    np.testing.assert_allclose(phi.kernel(X), dense(X, phi.Z, 1.0), rtol=1e-9)


def test_landmarks_that_depend_on_others_are_dropped(rng):
    Z = rng.standard_normal((20, 2))
    phi = features(np.vstack([Z, Z[:5], Z[3:4] + 1e-12]), 1.0, SPACE)
    assert len(phi.Z) == 20
    assert np.isfinite(phi(Z)).all()


def test_whitening_comes_late_only_where_it_is_safe(rng):
    X, Z = rng.standard_normal((200, 2)), rng.standard_normal((40, 2))
    rough, smooth = features(Z, 0.1, SPACE), features(Z, 5.0, SPACE)
    assert isinstance(rough, Features)
    assert whitened_late(rough, X, 200).early == 0
    assert whitened_late(smooth, X, 200).early is None


def test_of_a_wide_kernel_some_features_are_whitened_early_where_rows_are_many(rng):
    X, Z = rng.standard_normal((300, 3)), rng.standard_normal((60, 3))
    phi = features(Z, 2.0, SPACE)
    few, many = (whitened_late(phi, X, n).early for n in (300, 10_000))
    assert few is None
    assert 0 < many < 30


def test_early_features_are_those_of_random_landmarks_of_which_few_do(rng):
    """The first pivots lie far from most rows: as many of them leave much larger errors."""
    X, Z = rng.standard_normal((1000, 9)), rng.standard_normal((400, 9))
    phi = features(Z, 5.0, SPACE)
    late = whitened_late(phi, X, 100_000)
    assert 0 < late.early <= 25
    assert not np.array_equal(late.Z, phi.Z)
    np.testing.assert_array_equal(np.unique(late.Z, axis=0), np.unique(Z, axis=0))
    np.testing.assert_allclose(late.L @ late.L.T, dense(late.Z, late.Z, 5.0), atol=1e-13)

    def loss(phi, early):
        P = phi.whiten(dense(np.vstack([X, phi.Z]), phi.Z, 5.0), early)
        P /= np.linalg.norm(P, axis=0)
        return np.finfo(float).eps * np.trace(np.linalg.inv(P.T @ P))

    assert loss(late, late.early) < min(1e-6, loss(phi, late.early) / 2)


@pytest.mark.parametrize("limit", [1.01, 0.99])
@pytest.mark.parametrize("sigma", [0.3, 0.7])
def test_how_safe_late_whitening_is_comes_from_rows_and_landmarks(rng, sigma, limit, monkeypatch):
    """A bound from landmarks alone decides where it is enough; it is ten times as large here."""
    X, Z = rng.standard_normal((200, 2)), rng.standard_normal((30, 2))
    phi = features(Z, sigma, SPACE)
    K, K_zz = dense(X, phi.Z, sigma), dense(phi.Z, phi.Z, sigma)
    G = K.T @ K + K_zz @ K_zz
    bound = np.finfo(float).eps * (np.diag(G) * np.square(np.linalg.inv(K_zz)).sum(axis=0)).sum()
    loss = np.finfo(float).eps * (np.diag(G) * np.diag(np.linalg.inv(G))).sum()
    assert loss < bound / 10
    monkeypatch.setattr(landmarks, "LATE", limit * loss)
    assert (whitened_late(phi, X, 200).early == 0) == (limit > 1)
    monkeypatch.setattr(landmarks, "LATE", limit * bound)
    monkeypatch.setattr(landmarks, "_loss", lambda G: np.inf)
    assert (whitened_late(phi, X, 200).early == 0) == (limit > 1)


@pytest.mark.parametrize("far", [1e4, 1e10, 1e12])
@pytest.mark.parametrize("among", ["rows", "landmarks"])
def test_a_row_far_from_all_others_leaves_their_kernel_as_it_is(rng, far, among):
    X, Z = rng.uniform(size=(30, 2)), rng.uniform(size=(10, 2))
    (X if among == "rows" else Z)[3, 0] = far
    phi = features(Z, 0.3, SPACE)
    expected = dense(X, phi.Z, 0.3)
    np.testing.assert_allclose(phi.kernel(X), expected, atol=1e-8)


@pytest.mark.parametrize(("kind", "times"), [("uniform", 1), ("kmeans", 1), ("rpcholesky", 2)])
def test_landmarks_that_do_not_follow_the_bandwidth_are_chosen_once(kind, times, rng, monkeypatch):
    X, seen, known = np.unique(rng.standard_normal((60, 2)), axis=0), [], LANDMARKS[kind]

    def counted(*args):
        seen.append(args)
        return known(*args)

    monkeypatch.setitem(LANDMARKS, kind, counted)
    choose = chooser(kind, X, 9, SPACE, 0)
    assert not seen
    for sigma in (0.5, 2.0):
        direct = known(X, 9, sigma, SPACE, np.random.default_rng(0))
        np.testing.assert_array_equal(choose(sigma), direct)
    assert len(seen) == times


def test_landmarks_that_are_given_stay_whatever_the_rows_and_the_bandwidth(rng):
    Z = rng.standard_normal((10, 2))
    choose = some_among(Z)(rng.standard_normal((50, 2)), 5)
    for sigma in (0.1, 3.0):
        np.testing.assert_array_equal(choose(sigma), choose(1.0))
    assert len(choose(1.0)) == 5
    assert all((z == Z).all(axis=1).any() for z in choose(1.0))
    np.testing.assert_array_equal(some_among(Z)(Z, 20)(1.0), Z)


# Sums of features over the rows, and the criteria of a low-rank kernel.


@pytest.fixture
def targets(rng):
    """Rows of a table with two targets and weights: X (70, 3), Y (70, 2), w (70,)."""
    X = rng.standard_normal((70, 3))
    Y = np.column_stack([np.sin(X[:, 0]) + X[:, 1], X[:, 2] ** 2]) + 3
    return X, Y + 0.1 * rng.standard_normal(Y.shape), rng.uniform(0.2, 3, 70)


@pytest.mark.parametrize("centred", [False, True])
def test_criteria_are_those_of_the_low_rank_kernel(centred, targets):
    """Of Q = K_nz K_zz^-1 K_zn as a dense matrix; each row is left out with all its weight."""
    X, Y, w = targets
    phi, rows = features(X[:20], 0.8, SPACE), ArrayRows(X, Y, w)
    found = NystromSpectrum(rows, phi, summed(rows, phi, np.zeros(2), centred=centred), centred)
    mean = w @ Y / w.sum() if centred else np.zeros(2)
    K, K_zz = (kernel(distances(A, phi.Z), 0.8) for A in (X, phi.Z))
    Q, lams, n = K @ np.linalg.solve(K_zz, K.T), np.array([1e-3, 0.3, 20.0]), len(X)
    for j, lam in enumerate(lams):
        A = Q + lam * np.diag(1 / w)
        inverse = np.linalg.inv(A)
        errors = []
        for i in range(n):
            r = np.arange(n) != i
            b = w[r] @ Y[r] / w[r].sum() if centred else np.zeros(2)
            errors.append(Y[i] - b - Q[i, r] @ np.linalg.solve(A[np.ix_(r, r)], Y[r] - b))
        loo = w @ np.square(errors) / w.sum()
        left = (Y - mean) - Q @ inverse @ (Y - mean)
        gcv = n * (w @ np.square(left)) / (n - np.trace(Q @ inverse)) ** 2
        fit = np.diag((Y - mean).T @ inverse @ (Y - mean))
        mml = n * np.log(fit / n) + np.linalg.slogdet(A)[1]
        for name, value in {"loo": loo, "gcv": gcv, "mml": mml}.items():
            np.testing.assert_allclose(getattr(found, name)(lams)[j], value, rtol=1e-7)


def test_one_penalty_has_the_criterion_that_it_has_among_many(targets):
    X, Y, w = targets
    rows, phi, mean = ArrayRows(X, Y, w), features(X[:20], 0.8, SPACE), np.zeros(2)
    found = NystromSpectrum(rows, phi, summed(rows, phi, mean, centred=False), centred=False)
    lams = np.array([1e-3, 0.3])
    alone = [found.gcv(lams[[j]])[0] for j in range(2)]
    np.testing.assert_allclose(alone, found.gcv(lams), rtol=1e-9)


def test_leverages_in_single_precision_choose_as_those_in_double(rng):
    """Where whitening may come late; two landmarks far from all rows have leverages near one.

    To 1e-6, some units of single precision.
    """
    X = np.vstack([rng.standard_normal((600, 2)), [[30.0, 0.0], [0.0, 40.0]]])
    y = np.sin(X[:, :1]) + 0.1 * rng.standard_normal((602, 1))
    phi, rows, mean = features(X[-30:], 0.3, SPACE), ArrayRows(X, y), np.zeros(1)
    sums, lams = summed(rows, phi, mean, centred=False), np.logspace(-6, 2, 9)
    double, single = (
        NystromSpectrum(rows, replace(phi, early=early), sums, centred=False).loo(lams)
        for early in (None, 0)
    )
    np.testing.assert_allclose(single, double, rtol=1e-6)


def test_residuals_of_targets_with_penalties_of_their_own_take_one_pass(targets, monkeypatch):
    """Its work is sent to workers without the rows."""
    X, Y, _ = targets
    est, each, passes = (
        JacobianKernelRidge(0.8, "loo", solver="nystrom", landmarks=X[:20]).fit(X, Y),
        ArrayRows.each,
        [],
    )
    monkeypatch.setattr(
        ArrayRows, "each", lambda rows, work: passes.append(work) or each(rows, work)
    )
    assert est.loo_residuals_.shape == (70, 2)
    assert len(passes) == 1
    assert passes[0].model.rows is None


@given(st.integers(1, 80))
def test_one_block_or_many_give_the_same_sums(size):
    rng = np.random.default_rng(0)
    X, y, w = rng.standard_normal((80, 2)), rng.standard_normal((80, 1)), rng.uniform(0, 1, 80)
    work = Summing(features(X[:10], 1.0, SPACE), np.zeros(1))
    whole = work(X, y, w)
    parts = [work(X[i : i + size], y[i : i + size], w[i : i + size]) for i in range(0, 80, size)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    for found, known in zip(total.parts, whole.parts, strict=True):
        np.testing.assert_allclose(found, known, rtol=1e-10, atol=1e-12)


def test_sums_are_added_in_the_memory_of_the_first(rng):
    X, y = rng.standard_normal((80, 2)), rng.standard_normal((80, 1))
    work = Summing(features(X[:10], 1.0, SPACE), np.zeros(1))
    first, second = work(X[:50], y[:50], None), work(X[50:], y[50:], None)
    known, M = first + second, first.parts[0]
    first += second
    assert first.parts[0] is M
    np.testing.assert_array_equal(M, known.parts[0])
    assert first.parts[1][-2] == 80


def test_work_that_has_been_done_can_be_sent_on(rng):
    """A worker that has begun may be asked for the work by another one."""
    X, y = rng.standard_normal((80, 2)), rng.standard_normal((80, 1))
    work = Summing(features(X[:10], 1.0, SPACE), np.zeros(1))
    known = work(X, y, None)
    found = pickle.loads(pickle.dumps(work))(X, y, None)
    np.testing.assert_array_equal(found.parts[0], known.parts[0])


@pytest.mark.parametrize("first", [0, 1, 7, 29, 30])
def test_whitening_late_or_early_gives_the_same_sums(rng, first):
    X, y = rng.standard_normal((500, 3)), rng.standard_normal((500, 1))
    early = features(X[:30], 0.5, SPACE)
    late = replace(early, early=first)
    a, b = (summed(ArrayRows(X, y), phi, np.zeros(1), centred=True) for phi in (early, late))
    np.testing.assert_allclose(np.tril(a.G), np.tril(b.G), atol=1e-10)
    np.testing.assert_allclose(a.B, b.B, atol=1e-10)


@pytest.mark.parametrize("metric", ["euclidean", "scaled"])
@pytest.mark.parametrize("solver", ["auto", "exact", "nystrom"])
def test_landmarks_of_other_features_are_refused_by_every_solver(rng, solver, metric):
    X = rng.standard_normal((30, 3))
    est = JacobianKernelRidge(1.0, solver=solver, metric=metric, landmarks=X[:5, :2])
    with pytest.raises(ValueError, match="`landmarks` must have 3 columns"):
        est.fit(X, X[:, 0])
