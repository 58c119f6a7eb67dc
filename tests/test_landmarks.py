"""Landmarks, low-rank factors by random pivots, and the features of landmarks."""

import numpy as np
import pytest

from jacridge import _landmarks
from jacridge._landmarks import (
    LANDMARKS,
    Features,
    chooser,
    features,
    landmark_number,
    low_rank,
    whitened_late,
)
from naive import distances, kernel


def dense(X, Z, sigma):
    return kernel(distances(X, Z), sigma)


@pytest.mark.parametrize("name", LANDMARKS)
def test_as_many_landmarks_as_asked_for_are_chosen(name, rng):
    X = rng.standard_normal((200, 3))
    Z = LANDMARKS[name](X, 20, 1.0, "euclidean", rng)
    assert Z.shape == (20, 3)
    assert len(np.unique(Z, axis=0)) == 20


@pytest.mark.parametrize("name", LANDMARKS)
def test_equal_rows_make_one_landmark(name, rng):
    X = np.repeat(rng.standard_normal((7, 2)), 10, axis=0)
    Z = LANDMARKS[name](X, 50, 1.0, "euclidean", rng)
    np.testing.assert_array_equal(np.unique(Z, axis=0), np.unique(X, axis=0))


@pytest.mark.parametrize("name", LANDMARKS)
def test_the_same_seed_chooses_the_same_landmarks(name, rng):
    X = rng.standard_normal((100, 2))
    once, again = (
        LANDMARKS[name](X, 10, 0.5, "euclidean", np.random.default_rng(3)) for _ in range(2)
    )
    np.testing.assert_array_equal(once, again)


@pytest.mark.parametrize("asked", [0, -3, 101])
def test_a_number_of_landmarks_out_of_range_is_refused(asked):
    wanted = "from 1 to n_samples=100" if asked > 100 else "a whole number >= 1"
    with pytest.raises(ValueError, match=f"`n_landmarks` must be {wanted}, got {asked}"):
        landmark_number(asked, 100)


@pytest.mark.parametrize("asked", [2.5, "ten", True])
def test_landmarks_are_counted_in_whole_numbers(asked):
    with pytest.raises(TypeError, match="`n_landmarks` must be a whole number"):
        landmark_number(asked, 100)


def test_a_factor_of_full_rank_is_the_kernel(rng):
    X = rng.standard_normal((60, 2))
    F = low_rank(X, 60, 0.3, rng=rng).F
    np.testing.assert_allclose(F @ F.T, dense(X, X, 0.3), atol=1e-12)


def test_a_low_rank_factor_is_exact_at_its_pivots_and_knows_what_is_left(rng):
    X = rng.standard_normal((80, 3))
    K, found = dense(X, X, 1.0), low_rank(X, 20, 1.0, rng=rng)
    left = K - found.F @ found.F.T
    assert len(set(found.pivots)) == 20
    np.testing.assert_allclose(left[found.pivots], 0, atol=1e-12)
    assert np.linalg.eigvalsh(left)[0] > -1e-12
    assert found.left == pytest.approx(np.trace(left), rel=1e-9)


def test_a_factor_ends_at_its_tolerance(rng):
    X = rng.standard_normal((100, 1))
    found = low_rank(X, 100, 1.0, tol=1e-6, rng=rng)
    assert found.F.shape[1] < 30
    assert found.left <= 1e-6 * 100


def test_random_pivots_come_close_to_the_best_factor_of_that_rank(rng):
    """The trace left is, in the mean, at most a little above that of a somewhat lower rank."""
    X = rng.standard_normal((150, 2))
    values = np.linalg.eigvalsh(dense(X, X, 0.7))[::-1]
    left = np.mean([low_rank(X, 30, 0.7, rng=rng).left for _ in range(10)])
    assert values[30:].sum() <= left <= values[20:].sum()


def test_first_pivots_are_drawn_in_proportion_to_the_diagonal_left(rng):
    """Three rows, two of them nearly equal: after the lone row either twin is as likely."""
    X = np.array([[0.0], [9.0], [9.001]])
    seconds = [low_rank(X, 2, 1.0, rng=rng).pivots.tolist() for _ in range(300)]
    alone = sum(0 in pair for pair in seconds)
    assert alone == 300  # the twins are never both taken: the second has 1e-6 left
    assert 110 < sum(1 in pair for pair in seconds) < 190


@pytest.mark.parametrize("metric", ["euclidean", "geodesic"])
def test_features_reproduce_the_kernel_at_landmarks(metric, rng):
    X, Z = rng.uniform(-1, 1, (30, 2)), rng.uniform(-1, 1, (12, 2))
    sigma = 0.5 if metric == "euclidean" else 5e4
    phi = features(Z, sigma, metric)
    if metric == "euclidean":
        np.testing.assert_allclose(phi.kernel(X), dense(X, phi.Z, sigma), rtol=1e-12)
    np.testing.assert_allclose(phi(X) @ phi(phi.Z).T, phi.kernel(X), atol=1e-9)


def test_far_from_the_origin_the_kernel_keeps_its_digits(rng):
    X, Z = rng.standard_normal((30, 3)) + 1e6, rng.standard_normal((9, 3)) + 1e6
    np.testing.assert_allclose(features(Z, 1.0).kernel(X), dense(X, features(Z, 1.0).Z, 1.0))


def test_landmarks_that_depend_on_others_are_dropped(rng):
    Z = rng.standard_normal((20, 2))
    phi = features(np.vstack([Z, Z[:5], Z[3:4] + 1e-12]), 1.0)
    assert len(phi.Z) == 20
    assert np.isfinite(phi(Z)).all()


def test_whitening_comes_late_only_where_it_is_safe(rng):
    X, Z = rng.standard_normal((200, 2)), rng.standard_normal((40, 2))
    rough, smooth = features(Z, 0.1), features(Z, 5.0)
    assert isinstance(rough, Features)
    assert whitened_late(rough, X).late
    assert not whitened_late(smooth, X).late


@pytest.mark.parametrize("limit", [1.01, 0.99])
@pytest.mark.parametrize("sigma", [0.3, 0.7])
def test_how_safe_late_whitening_is_comes_from_rows_and_landmarks(rng, sigma, limit, monkeypatch):
    """A bound from landmarks alone decides where it is enough; it is ten times as large here."""
    X, Z = rng.standard_normal((200, 2)), rng.standard_normal((30, 2))
    phi = features(Z, sigma)
    K, K_zz = dense(X, phi.Z, sigma), dense(phi.Z, phi.Z, sigma)
    G = K.T @ K + K_zz @ K_zz
    bound = np.finfo(float).eps * (np.diag(G) * np.square(np.linalg.inv(K_zz)).sum(axis=0)).sum()
    loss = np.finfo(float).eps * (np.diag(G) * np.diag(np.linalg.inv(G))).sum()
    assert loss < bound / 10
    monkeypatch.setattr(_landmarks, "LATE", limit * loss)
    assert whitened_late(phi, X).late == (limit > 1)
    monkeypatch.setattr(_landmarks, "LATE", limit * bound)
    monkeypatch.setattr(_landmarks, "_loss", lambda G: np.inf)
    assert whitened_late(phi, X).late == (limit > 1)


@pytest.mark.parametrize("far", [1e4, 1e10, 1e12])
@pytest.mark.parametrize("among", ["rows", "landmarks"])
def test_a_row_far_from_all_others_leaves_their_kernel_as_it_is(rng, far, among):
    X, Z = rng.uniform(size=(30, 2)), rng.uniform(size=(10, 2))
    (X if among == "rows" else Z)[3, 0] = far
    phi = features(Z, 0.3)
    expected = dense(X, phi.Z, 0.3)
    np.testing.assert_allclose(phi.kernel(X), expected, atol=1e-8)


@pytest.mark.parametrize(("kind", "times"), [("uniform", 1), ("kmeans", 1), ("rpcholesky", 2)])
def test_landmarks_that_do_not_follow_the_bandwidth_are_chosen_once(kind, times, rng, monkeypatch):
    X, seen, known = rng.standard_normal((60, 2)), [], LANDMARKS[kind]

    def counted(*args):
        seen.append(args)
        return known(*args)

    monkeypatch.setitem(LANDMARKS, kind, counted)
    choose = chooser(kind, X, 9, "euclidean", 0)
    assert not seen
    for sigma in (0.5, 2.0):
        direct = known(X, 9, sigma, "euclidean", np.random.default_rng(0))
        np.testing.assert_array_equal(choose(sigma), direct)
    assert len(seen) == times
