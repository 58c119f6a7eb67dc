"""Training data as a function given as `bandwidth` sees them: against rows repeated by hand."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

import naive
from jacridge import JacobianKernelRidge, select_bandwidth

NUMBERS = ("n", "p", "l_max", "even_spacing", "neighbour_spacing", "variance")


class Looking:
    """A rule that returns one, and keeps the data that it was shown."""

    def __init__(self):
        self.seen = []

    def __call__(self, data):
        self.seen.append(data)
        return 1.0


def shown(X, y=None, w=None, alpha=1e-3, **options):
    """The data that a rule is shown in a fit."""
    look = Looking()
    y = np.arange(float(len(X))) if y is None else y
    JacobianKernelRidge(look, alpha, **options).fit(X, y, w)
    return look.seen[0]


def select_data(X, y=None, **options):
    """The data that a rule is shown by `select_bandwidth`."""
    look = Looking()
    select_bandwidth(X, y, look, random_state=0, **options)
    return look.seen[0]


@pytest.fixture
def places(rng):
    return np.column_stack([rng.uniform(42, 51, 20), rng.uniform(-4, 8, 20)])


def test_a_row_of_weight_two_is_two_rows(rng):
    X, w = rng.standard_normal((20, 2)), rng.integers(1, 4, 20)
    once, repeated = shown(X, w=w), shown(np.repeat(X, w, axis=0))
    for part in NUMBERS:
        assert getattr(once, part) == pytest.approx(getattr(repeated, part), rel=1e-12)
    assert repeated.n == w.sum()


def test_equal_rows_are_shown_once_with_their_total_weight_and_mean_target(rng):
    X, w = rng.standard_normal((6, 2)), np.array([1.0, 2.0, 0.0, 1.0, 0.5, 2.0])
    X[3] = X[1]
    data = shown(X, np.array([1.0, 2.0, 7.0, 8.0, 3.0, 4.0]), w)
    kept = [0, 1, 4, 5]
    np.testing.assert_array_equal(data.X, X[kept])
    np.testing.assert_array_equal(data.w, [1.0, 3.0, 0.5, 2.0])
    y = np.array([1.0, 4.0, 3.0, 4.0])
    expected = y - np.average(y, weights=[1.0, 3.0, 0.5, 2.0])
    np.testing.assert_allclose(data.y[:, 0], expected, rtol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, "free"])
def test_targets_are_centred_if_there_is_an_intercept(rng, fit_intercept):
    X, y, w = rng.standard_normal((9, 2)), rng.standard_normal((9, 2)) + 5, rng.uniform(1, 2, 9)
    data = shown(X, y, w, fit_intercept=fit_intercept)
    expected = y - np.average(y, axis=0, weights=w)
    np.testing.assert_allclose(data.y, expected, rtol=1e-10)
    np.testing.assert_array_equal(shown(X, y, w, fit_intercept=False).y, y)


@pytest.mark.parametrize(
    ("metric", "lengths"), [("euclidean", naive.distances), ("geodesic", naive.geodesics)]
)
def test_the_geometry_of_rows_is_that_of_all_pairs(places, metric, lengths):
    D, data = lengths(places, places), shown(places, metric=metric)
    nearest = [np.delete(row, i).min() for i, row in enumerate(D)]
    # Vincenty's formula is good to a millimetre in a hundred kilometres.
    assert data.l_max == pytest.approx(D.max(), rel=1e-7)
    assert data.neighbour_spacing == pytest.approx(np.median(nearest), rel=1e-7)
    assert data.even_spacing == pytest.approx(D.max() / (19**0.5 - 1), rel=1e-7)


def test_given_distances_have_the_geometry_of_their_rows(rng):
    """The variance is that of centred columns."""
    X = rng.standard_normal((40, 2))
    X -= X.mean(axis=0)
    given, rows = shown(naive.distances(X, X), metric="precomputed"), shown(X)
    for part in NUMBERS:
        assert getattr(given, part) == pytest.approx(getattr(rows, part), rel=1e-9)


@pytest.mark.parametrize("metric", ["euclidean", "geodesic", "precomputed"])
def test_all_pairs_are_looked_at_each_once(places, metric):
    D = naive.geodesics(places, places) if metric == "geodesic" else naive.distances(places, places)
    data = shown(D if metric == "precomputed" else places, metric=metric)
    # Vincenty's formula is good to a millimetre in a hundred kilometres.
    expected = np.sort(naive.pair_distances(D) ** 2)
    np.testing.assert_allclose(np.sort(data.pair_gaps), expected, rtol=1e-7)
    assert data.pair_weights is None


@pytest.mark.parametrize("merged", [False, True])
def test_pairs_of_rows_with_weights_are_those_of_repeated_rows(rng, merged):
    X, w = rng.standard_normal((12, 2)), rng.integers(1, 4, 12)
    repeated = np.repeat(X, w, axis=0)
    data = shown(repeated) if merged else shown(X, w=w)
    expected = naive.pair_distances(naive.distances(repeated, repeated)) ** 2
    pairs = np.repeat(data.pair_gaps, data.pair_weights.astype(int))
    np.testing.assert_allclose(np.sort(pairs), np.sort(expected), rtol=1e-12)


@pytest.fixture
def many(rng):
    """Rows of which there are more pairs than two million, and whole weights of two kinds."""
    return rng.standard_normal((2100, 2)), np.where(np.arange(2100) % 2, 1, 201)


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_a_sample_of_pairs_has_the_median_of_all(many, metric):
    X, _ = many
    D = cdist(X, X)
    data = select_data(D if metric == "precomputed" else X, metric=metric)
    assert data.pair_weights is None
    assert len(data.pair_gaps) == 2_000_000
    assert data.pair_gaps.min() > 0  # no row with itself
    # The median of two million draws is good to a few parts in a thousand.
    expected = np.median(pdist(X)) ** 2
    assert np.median(data.pair_gaps) == pytest.approx(expected, rel=5e-3)


@pytest.mark.slow
def test_a_sample_of_pairs_counts_rows_as_often_as_their_weights_say(many):
    """Also a row with itself: w (w - 1) times among n (n - 1) pairs."""
    X, w = many
    data = shown(X, w=w, random_state=0)
    assert data.pair_weights is None
    n = w.sum()
    equal = (w * (w - 1)).sum() / (n * (n - 1))
    # About 1900 of two million pairs: their share is known to 2 %, and five of these are 12 %.
    assert np.mean(data.pair_gaps == 0) == pytest.approx(equal, rel=0.12)
    D2, W = pdist(X) ** 2, np.outer(w, w)[np.triu_indices(2100, 1)]
    # The mean of two million draws is good to a part in a thousand.
    assert data.pair_gaps.mean() == pytest.approx(np.average(D2, weights=W), rel=5e-3)


def test_without_targets_there_is_nothing_to_solve(rng):
    data = select_data(rng.standard_normal((9, 2)))
    assert data.y is None
    with pytest.raises(ValueError, match="needs `y`, got None"):
        _ = data.targets


def test_some_rows_keep_their_targets_and_weights_and_have_a_geometry_of_their_own(rng):
    X, y, w = rng.standard_normal((9, 2)), rng.standard_normal((9, 1)), rng.uniform(1, 2, 9)
    data = shown(X, y, w)
    part = data.part(np.array([7, 2]))
    assert (X[[7, 2]] == part.X).all()
    assert (part.y == data.y[[7, 2]]).all()
    assert (part.w == w[[7, 2]]).all()
    assert part.n == 2
    assert part.l_max == pytest.approx(np.linalg.norm(X[7] - X[2]), rel=1e-12)


def test_some_of_given_distances_are_cut_by_rows_and_columns(rng):
    D = naive.distances(*[rng.standard_normal((5, 2))] * 2)
    part = shown(D, metric="precomputed").part(np.array([3, 1]))
    assert part.X.tolist() == [[0, D[3, 1]], [D[1, 3], 0]]


def test_a_sample_has_some_of_the_rows_each_once(rng):
    data = shown(np.arange(30.0)[:, None])
    sample = data.sample(10)
    assert len(np.unique(sample.X)) == 10
    assert set(sample.X[:, 0]) <= set(range(30))
    assert data.sample(30) is data


def test_a_bandwidth_is_carried_to_more_rows_by_the_root_of_their_spacing(rng):
    few, many = (shown(rng.standard_normal((n, 3))) for n in (20, 200))
    expected = ((19 ** (1 / 3) - 1) / (199 ** (1 / 3) - 1)) ** 0.5
    assert many.carried_from(few) == pytest.approx(expected, rel=1e-12)
    assert many.carried_from(many) == 1


def test_the_penalty_is_that_given_or_a_start_or_those_to_choose_from(rng):
    X = rng.standard_normal((30, 2))
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.standard_normal(30)
    given = shown(X, y, alpha=0.5)
    assert (given.lam, given.penalty.criterion) == (0.5, None)
    assert given.penalty.tried().tolist() == [0.5]
    chosen = shown(X, y, alpha="gcv")
    assert (chosen.lam, chosen.penalty.criterion) == (1e-3, "gcv")
    assert (chosen.penalty.tried() == chosen.penalty.lams).all()
    assert (chosen.penalty.lams.min(), chosen.penalty.lams.max()) == (1e-6, 100.0)
    among = shown(X, y, alpha=[2.0, 1.0, 1.0])
    assert (among.penalty.criterion, among.penalty.lams.tolist()) == ("auto", [1.0, 2.0])


def test_a_rule_is_asked_again_at_the_penalty_that_was_chosen_for_it(rng):
    """What is already computed of the data stays: distances are made once."""
    X = rng.standard_normal((30, 2))
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.standard_normal(30)
    look = Looking()
    est = JacobianKernelRidge(look, "loo").fit(X, y)
    first, *others = look.seen
    assert first.lam == 1e-3
    assert [other.lam for other in others] == [pytest.approx(est.alpha_)] * len(others)
    assert others
    assert all(other.pairs is first.pairs for other in others)


def test_of_many_rows_a_rule_is_shown_a_sample_and_the_geometry_of_all(rng):
    X = rng.uniform(size=(12_000, 2))
    X[5] = [7.0, 7.0]  # an end of the largest distance, in the sample or not
    look = Looking()
    select_bandwidth(X, X[:, 0], look, random_state=0)
    data = look.seen[0]
    assert data.X.shape == (10_000, 2)
    assert {tuple(row) for row in data.X[:50]} <= {tuple(row) for row in X}
    assert (data.n, data.p) == (12_000, 2)
    farthest = np.linalg.norm(X - X[5], axis=1).max()
    assert data.l_max == pytest.approx(farthest, rel=1e-12)
    assert data.variance == pytest.approx(X.var(), rel=1e-10)


@pytest.mark.parametrize("n", [1, 2])
def test_rules_need_three_rows(rng, n):
    with pytest.raises(ValueError, match=f"needs n_samples >= 3, got n_samples={n}"):
        select_bandwidth(rng.standard_normal((n, 2)))


def test_rules_need_rows_that_differ():
    with pytest.raises(ValueError, match="`X` must have rows that differ"):
        select_bandwidth(np.ones((5, 2)))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_share_of_equal_rows_counts_all_but_the_first_of_them(rng, weighted):
    X, w = rng.standard_normal((4, 2)), np.array([1, 2, 3, 4])
    data = shown(X, w=w) if weighted else shown(np.repeat(X, w, axis=0))
    assert data.share_equal == pytest.approx(6 / 10)


@pytest.mark.parametrize("solver", ["exact", "nystrom"])
@pytest.mark.parametrize("weight", [None, 0.5, 2.0])
def test_a_weight_of_two_counts_as_two_equal_rows_and_other_weights_do_not(rng, solver, weight):
    X = np.repeat(rng.standard_normal((40, 2)), 3, axis=0)
    w = None if weight is None else np.full(120, weight)
    est = JacobianKernelRidge("jacobian_median", 0.1, solver=solver, n_landmarks=20)
    with pytest.warns(UserWarning, match="% of the rows repeat an earlier row"):
        est.fit(X, X[:, 0] ** 2, w)
    expected = 1 - 40 / (240 if weight == 2 else 120)
    for model in (est, pickle.loads(pickle.dumps(est))):
        found = model.diagnose().dict()["equal rows"]["value"]
        assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("bandwidth", "alpha"),
    [("loo", "loo"), ("median", "gcv"), ("jacobian", "loo"), ("mml", "auto"), ("auto", "auto")],
)
def test_a_common_factor_of_all_weights_is_absorbed_by_a_chosen_penalty(
    bandwidth, alpha, table, rng
):
    X, y = table
    w = rng.uniform(0.5, 1.5, len(y))
    options = {"random_state": 0, "metric": "scaled"}
    one = JacobianKernelRidge(bandwidth, alpha, **options).fit(X, y, w)
    many = JacobianKernelRidge(bandwidth, alpha, **options).fit(X, y, 1e4 * w)
    # Bandwidth and penalty are found in turn, until the bandwidth moves by less than 0.1 %.
    assert many.alpha_ == pytest.approx(1e4 * one.alpha_, rel=1e-3)
    np.testing.assert_allclose(many.predict(X), one.predict(X), rtol=1e-3)


def test_an_error_of_a_users_rule_for_one_kernel_is_not_swallowed_by_the_choice(table):
    def rule(data):
        if data.space.kernel.name == "laplacian":
            raise ValueError("not for this kernel")
        return 1.0

    with pytest.raises(ValueError, match="not for this kernel"):
        JacobianKernelRidge(rule, kernel="auto", metric="scaled", random_state=0).fit(*table)


def test_the_penalty_and_the_weights_times_a_number_give_the_same_learned_metric(table, rng):
    X, y = table
    options = {"metric": "diagonal", "random_state": 0}
    one = JacobianKernelRidge("auto", 0.1, **options).fit(X, y, np.full(60, 1.0))
    many = JacobianKernelRidge("auto", 100.0, **options).fit(X, y, np.full(60, 1000.0))
    np.testing.assert_allclose(many.metric_, one.metric_, rtol=1e-6)  # a search's rounding
    np.testing.assert_allclose(many.predict(X), one.predict(X), rtol=1e-6)


@pytest.mark.parametrize("metric", ["geodesic", "precomputed"])
def test_a_kernel_is_chosen_with_the_default_rule_for_distances_of_every_kind(metric, rng):
    X = rng.uniform(-50, 50, (40, 2))
    y = np.sin(X[:, 0] / 20)
    X = X if metric == "geodesic" else cdist(X, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a smooth kernel of geodesic distances may be indefinite
        est = JacobianKernelRidge(kernel="auto", metric=metric).fit(X, y)
    assert est.kernel_ in ("gaussian", "matern52", "matern32")


def test_the_scale_of_a_target_does_not_choose_the_kernel(rng):
    X = rng.uniform(-3, 3, (50, 2))
    D = cdist(X, X)
    Y = np.column_stack([np.sin(X[:, 0]), np.abs(X[:, 1])])
    chosen = {
        JacobianKernelRidge("loo", 1e-3, kernel="auto", metric="precomputed").fit(D, Y * c).kernel_
        for c in ([1, 1], [1, 1000], [1000, 1])
    }
    assert len(chosen) == 1


@pytest.mark.parametrize("solver", ["exact", "nystrom", "pcg"])
def test_a_memory_map_is_fitted_in_a_mapped_metric_by_every_solver(solver, table, tmp_path):
    X, y = table
    np.save(tmp_path / "X.npy", X)
    rows = np.load(tmp_path / "X.npy", mmap_mode="r")
    options = {"metric": "scaled", "solver": solver, "n_landmarks": 20, "random_state": 0}
    known = JacobianKernelRidge(1.0, 0.1, **options).fit(X, y)
    found = JacobianKernelRidge(1.0, 0.1, **options).fit(rows, y)
    # Conjugate gradients stop at a residual of 1e-6.
    np.testing.assert_allclose(found.predict(X), known.predict(X), rtol=1e-4, atol=1e-4)


def test_a_constant_target_takes_a_penalty_of_the_list(table):
    with pytest.warns(UserWarning, match="constant"):
        est = JacobianKernelRidge(alpha=[1.0, 10.0]).fit(table[0], np.ones(60))
    assert est.alpha_ == 1.0


def test_changes_to_the_rows_after_a_fit_do_not_change_the_model(table):
    X, y = table[0].copy(), table[1]
    est = JacobianKernelRidge(1.0, 0.1).fit(X, y)
    before = est.predict(table[0])
    X *= 3
    np.testing.assert_array_equal(est.predict(table[0]), before)
