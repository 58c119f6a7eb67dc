"""What a rule may look at: against rows repeated by hand, and what scikit-learn calls it."""

import numpy as np
import pytest

import naive
from jacridge import _problem
from jacridge._problem import LAMBDAS, Problem, mean_of


def problem(X, y=None, w=None, **options):
    w = np.ones(len(X)) if w is None else np.asarray(w, dtype=float)
    return Problem(X=X, y=y, w=w, **{"alpha": 1e-3, **options})


@pytest.fixture
def places(rng):
    return np.column_stack([rng.uniform(42, 51, 20), rng.uniform(-4, 8, 20)])


def test_a_row_of_weight_two_is_two_rows(rng):
    X, w = rng.standard_normal((20, 2)), rng.integers(1, 4, 20)
    once, repeated = problem(X, w=w), problem(np.repeat(X, w, axis=0))
    for part in ("n", "p", "l_max", "even_spacing", "neighbour_spacing", "variance"):
        assert getattr(once, part) == pytest.approx(getattr(repeated, part), rel=1e-12)


def test_the_variance_is_that_of_all_entries_together(rng):
    X = rng.standard_normal((30, 3)) * [1, 2, 3] + [0, 5, -5]
    assert problem(X).variance == pytest.approx(X.var(), rel=1e-12)


def test_the_variance_on_the_earth_is_that_of_the_distances_to_the_mean_place(places):
    metres = naive.geodesics(places, places.mean(axis=0)[None])
    # Vincenty's formula is good to a millimetre in a hundred kilometres.
    expected = np.mean(metres**2)
    assert problem(places, metric="geodesic").variance == pytest.approx(expected, rel=1e-7)


def test_given_distances_have_the_variance_of_centred_columns(rng):
    """Where the columns have one mean, it is that of all entries together."""
    X = rng.standard_normal((40, 2))
    X -= X.mean(axis=0)
    given = problem(naive.distances(X, X), metric="precomputed")
    assert given.p == 2
    assert given.variance == pytest.approx(X.var(), rel=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "geodesic", "precomputed"])
def test_all_pairs_are_looked_at_each_once(places, metric):
    D = naive.geodesics(places, places) if metric == "geodesic" else naive.distances(places, places)
    found = problem(D if metric == "precomputed" else places, metric=metric)
    # Vincenty's formula is good to a millimetre in a hundred kilometres.
    expected = np.sort(naive.pair_distances(D) ** 2)
    np.testing.assert_allclose(np.sort(found.pair_D2), expected, rtol=1e-7)
    assert found.pair_weights is None


def test_pairs_of_rows_with_weights_are_those_of_repeated_rows(rng):
    X, w = rng.standard_normal((12, 2)), rng.integers(1, 4, 12)
    found = problem(X, w=w)
    repeated = naive.pair_distances(naive.distances(*[np.repeat(X, w, axis=0)] * 2)) ** 2
    pairs = np.repeat(found.pair_D2, found.pair_weights.astype(int))
    np.testing.assert_allclose(np.sort(pairs), np.sort(repeated), rtol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "geodesic", "precomputed"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_sample_of_pairs_has_the_median_of_all(places, rng, monkeypatch, metric, weighted):
    X = np.repeat(places, 5, axis=0) + rng.uniform(-0.5, 0.5, (100, 2))
    w = rng.integers(1, 4, 100) if weighted else np.ones(100, int)
    X = naive.distances(X, X) if metric == "precomputed" else X
    everything = problem(X, w=w, metric=metric, rng=rng)
    all_pairs = np.repeat(
        everything.pair_D2, 1 if not weighted else everything.pair_weights.astype(int)
    )
    monkeypatch.setattr(_problem, "PAIRS", 4000)
    sampled = problem(X, w=w, metric=metric, rng=rng)
    assert sampled.pair_weights is None
    assert len(sampled.pair_D2) <= 4000
    # The median of 4000 draws of distances is good to a few parts in a hundred.
    assert np.median(sampled.pair_D2) == pytest.approx(np.median(all_pairs), rel=0.15)


def test_a_sample_holds_no_pair_of_a_row_with_itself(rng, monkeypatch):
    monkeypatch.setattr(_problem, "PAIRS", 1000)
    assert problem(rng.standard_normal((50, 2)), rng=rng).pair_D2.min() > 0


def test_a_sample_holds_rows_with_themselves_as_often_as_they_are_repeated(rng, monkeypatch):
    """Rows of weight one and three are four rows: half of their six pairs are of equal rows."""
    monkeypatch.setattr(_problem, "PAIRS", 10_000)
    i, j = problem(np.eye(2), w=[1, 3])._sampled_pairs(rng)
    # The standard deviation of the share is half a part in a hundred.
    assert np.mean(i == j) == pytest.approx(1 / 2, abs=0.03)


def test_part_of_a_problem_has_some_of_its_rows_and_the_mean_of_all(rng):
    X, y, w = rng.standard_normal((9, 2)), rng.standard_normal((9, 1)), rng.uniform(1, 2, 9)
    part = problem(X, y, w).part(np.array([7, 2]))
    assert (X[[7, 2]] == part.X).all()
    assert (part.y == y[[7, 2]]).all()
    assert (part.w == w[[7, 2]]).all()


def test_part_of_given_distances_has_some_of_its_rows_and_columns(rng):
    D = naive.distances(*[rng.standard_normal((5, 2))] * 2)
    part = problem(D, metric="precomputed").part(np.array([3, 1]))
    assert part.X.tolist() == [[0, D[3, 1]], [D[1, 3], 0]]


def test_a_thinned_problem_has_rows_of_it_each_once(rng):
    whole = problem(np.arange(30.0)[:, None], rng=rng)
    thinned = whole.thinned(10)
    assert len(np.unique(thinned.X)) == 10
    assert whole.thinned(30) is whole


def test_a_bandwidth_is_carried_to_more_rows_by_the_root_of_their_spacing(rng):
    few, many = (problem(rng.standard_normal((n, 3))) for n in (20, 200))
    expected = ((19 ** (1 / 3) - 1) / (199 ** (1 / 3) - 1)) ** 0.5
    assert many.carried_from(few) == pytest.approx(expected, rel=1e-12)


def test_the_penalty_is_that_given_or_a_start_or_those_to_choose_from():
    X = np.zeros((3, 1))
    assert problem(X, alpha=0.5).lam == 0.5
    assert problem(X, alpha="loo").lam == 1e-3
    assert (problem(X, alpha="loo").lams == LAMBDAS).all()
    chosen = problem(X, alpha=np.array([1.0, 2.0]))
    assert (chosen.alpha, chosen.lams.tolist()) == ("auto", [1.0, 2.0])


def test_another_penalty_leaves_what_is_known_in_place(rng):
    first = problem(rng.standard_normal((5, 2)), alpha="loo")
    pairs = first.pairs
    other = first.with_lam(7.0)
    assert (first.lam, other.lam) == (1e-3, 7.0)
    assert other.pairs is pairs


def test_the_mean_of_a_constant_is_that_constant(rng):
    for value in (0.1, 1 / 3, -1e20):
        w = rng.uniform(0.1, 3, 1001)
        assert mean_of(np.full((1001, 1), value), w).tolist() == [value]


def test_the_mean_counts_a_row_as_often_as_its_weight_says(rng):
    y, w = rng.standard_normal((9, 2)), rng.integers(1, 4, 9)
    expected = np.repeat(y, w, axis=0).mean(axis=0)
    np.testing.assert_allclose(mean_of(y, w.astype(float)), expected, rtol=1e-12)
