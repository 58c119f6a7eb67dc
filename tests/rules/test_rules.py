"""Every rule: against its formula in plain NumPy, or as a minimum that nothing nearby beats."""

import re
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import LinAlgError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.svm import SVR

import jacridge
import naive
from jacridge import RULES, Choice, select_bandwidth
from known import SEARCHES, WITHOUT_Y

CLOSED = [rule for rule in RULES if rule not in SEARCHES + WITHOUT_Y]
METRICS = ["euclidean", "geodesic", "precomputed"]


@pytest.fixture
def places(rng):
    """Thirty places in France and a temperature: latitude and longitude (30, 2), y (30,)."""
    X = np.column_stack([rng.uniform(42, 51, 30), rng.uniform(-4, 8, 30)])
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(30)


def distances(X, metric):
    return naive.geodesics(X, X) if metric == "geodesic" else naive.distances(X, X)


def in_plain_numpy(rule, X, D, lam, metric):
    """What a closed form gives, from the rows X and all their distances D."""
    n, p = X.shape
    variance = np.mean((X - X.mean()) ** 2)
    if metric == "geodesic":
        variance = np.mean(naive.geodesics(X, X.mean(axis=0)[None]) ** 2)
    if metric == "precomputed":
        variance = np.mean((X - X.mean(axis=0)) ** 2)
    even = D.max() / ((n - 1) ** (1 / p) - 1)
    median = np.median(np.min(D + np.diag(np.full(n, np.inf)), axis=1))
    return {
        "jacobian": lambda: naive.sigma_k(0, n, p, D.max(), lam),
        "jacobian_median": lambda: naive.sigma_k(0, n, p, D.max(), lam) * median / even,
        "jacobian_lattice": lambda: naive.lattice_minimum(even, p, lam),
        "silverman": lambda: (4 / (n * (p + 2))) ** (1 / (p + 4)) * np.sqrt(variance),
        "scale": lambda: np.sqrt(p * variance / 2),
        "median": lambda: np.median(naive.pair_distances(D)),
        "maxvar": lambda: naive.maxvar(D, np.geomspace(D.max() / 50, D.max(), 3000)),
    }[rule]()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("rule", CLOSED)
def test_a_closed_form_agrees_with_plain_numpy(places, rule, metric):
    X, _ = places
    D = distances(X, metric)
    given_rows = D if metric == "precomputed" else X
    found = select_bandwidth(given_rows, rule=rule, alpha=0.01, metric=metric)
    # Vincenty's formula is good to nine digits, the grid of `maxvar` to three.
    digits = 2e-3 if rule == "maxvar" else 1e-7
    expected = float(in_plain_numpy(rule, X, D, 0.01, metric))
    assert found.sigma == pytest.approx(expected, rel=digits)


def test_the_scale_rule_is_scikit_learns(table):
    X, y = table
    assert select_bandwidth(X, rule="scale").gamma == pytest.approx(
        SVR(gamma="scale").fit(X, y)._gamma, rel=1e-12
    )


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", ["loo", "gcv"])
def test_no_bandwidth_of_a_fine_grid_beats_the_search(places, name, metric):
    X, y = places
    D, y = distances(X, metric), y - y.mean()
    found = select_bandwidth(
        D if metric == "precomputed" else X, y, name, alpha=0.1, metric=metric
    ).sigma
    spacing = np.median(np.min(D + np.diag(np.full(30, np.inf)), axis=1))
    grid = np.geomspace(spacing / 4, D.max(), 60)
    values = [naive.CRITERIA[name](naive.kernel(D, s), y, 0.1) for s in grid]
    here = naive.CRITERIA[name](naive.kernel(D, found), y, 0.1)
    # The search ends at a step of 1e-4, where the criterion is flat.
    assert here <= min(values) * (1 + 1e-6)


def test_no_bandwidth_of_a_grid_is_more_likely_to_scikit_learn(curve):
    """With the best signal variance at each."""
    X, y = curve
    D, y = naive.distances(X, X), y - y.mean()
    sigma = select_bandwidth(X, y, "mml", alpha=0.1).sigma

    def likelihood(length):
        A = np.exp(-(D**2) / (2 * length**2)) + 0.1 * np.eye(len(X))
        s2 = y @ np.linalg.solve(A, y) / len(y)
        kernel = ConstantKernel(s2) * RBF(length)
        process = GaussianProcessRegressor(kernel, alpha=0.1 * s2, optimizer=None).fit(X, y)
        return process.log_marginal_likelihood()

    others = np.append(np.geomspace(0.02, 3, 20), sigma * np.array([0.98, 1.02]))
    assert likelihood(sigma) >= max(map(likelihood, others))


@pytest.mark.parametrize("rule", ["jacobian_loo", "jacobian_mml"])
def test_a_seeded_search_is_the_best_within_a_third_and_three_times_the_jacobian(curve, rule):
    X, y = curve
    D, y, name = naive.distances(X, X), y - y.mean(), rule.removeprefix("jacobian_")
    start = select_bandwidth(X).sigma
    found = select_bandwidth(X, y, rule).sigma
    assert start / 3 <= found <= 3 * start * (1 + 1e-12)
    criterion = naive.CRITERIA[name]
    values = [criterion(naive.kernel(D, s), y, 1e-3) for s in np.geomspace(start / 3, 3 * start, 9)]
    # The search ends at a step of 1e-4, where the criterion is flat.
    assert criterion(naive.kernel(D, found), y, 1e-3) <= min(values) + 1e-6 * abs(min(values))


def test_the_global_minimum_of_two_valleys_is_found(rng):
    """A slow wave with fast ripples: one valley at the ripples, one at the wave."""
    X = np.linspace(0, 10, 120)[:, None]
    for height, ripples_win in ((0.05, False), (1.0, True)):
        y = np.sin(0.6 * X[:, 0]) + height * np.sin(12 * X[:, 0]) + 0.05 * rng.standard_normal(120)
        y -= y.mean()
        D = np.abs(X - X.T)
        grid = np.geomspace(0.03, 10, 60)
        values = [fast_loo(np.exp(-(D**2) / (2 * s**2)), y, 1.0) for s in grid]
        found = select_bandwidth(X, y, "loo", alpha=1.0).sigma
        assert (found < 0.5) == ripples_win
        assert fast_loo(np.exp(-(D**2) / (2 * found**2)), y, 1.0) <= min(values) * (1 + 1e-6)


def fast_loo(K, y, lam):
    inverse = np.linalg.inv(K + lam * np.eye(len(K)))
    return np.mean((inverse @ y / np.diagonal(inverse)) ** 2)


@pytest.mark.parametrize("name", ["loo", "gcv", "mml"])
def test_a_given_grid_is_searched_and_nothing_else(curve, name):
    X, y = curve
    grid = np.array([3.0, 0.01, 0.2, 0.4])
    D, centred = naive.distances(X, X), y - y.mean()
    expected = min(grid, key=lambda s: naive.CRITERIA[name](naive.kernel(D, s), centred, 0.1))
    assert select_bandwidth(X, y, name, alpha=0.1, grid=grid).sigma == expected


def test_the_first_of_equal_points_of_a_grid_is_taken(curve):
    """Below a thousandth of the spacing the kernel is the identity."""
    X, y = curve
    assert select_bandwidth(X, y, "loo", grid=[2e-9, 1e-9]).sigma == 2e-9


def test_a_grid_on_which_nothing_can_be_solved_is_refused(curve):
    X, y = (np.repeat(part, 2, axis=0) for part in curve)
    X[1::2] += 1e-9  # nearly equal rows; those that are equal are merged
    with pytest.raises(LinAlgError, match=r"every bandwidth from 0.1 to 1\. Give a larger `alpha`"):
        select_bandwidth(X, y, "loo", alpha=0, grid=[0.1, 1.0])


def test_a_grid_may_be_in_any_order_when_the_penalty_is_chosen_too(curve):
    X, y = curve
    grid = np.geomspace(0.05, 5, 9)
    rising = select_bandwidth(X, y, "loo", alpha="loo", grid=grid)
    mixed = select_bandwidth(X, y, "loo", alpha="loo", grid=grid[[3, 1, 8, 0, 2, 7, 4, 6, 5]])
    assert mixed.sigma == rising.sigma


@pytest.mark.parametrize("rule", RULES)
def test_a_choice_tells_where_it_came_from(table, rule):
    X, y = table
    choice = select_bandwidth(X, y, rule, alpha=0.01, random_state=0)
    D = naive.distances(X, X)
    assert isinstance(choice, Choice)
    assert (choice.rule, choice.alpha, choice.n, choice.p) == (rule, 0.01, 60, 3)
    assert isinstance(choice.n, int)
    assert choice.l_max == pytest.approx(D.max(), rel=1e-12)
    even = D.max() / (59 ** (1 / 3) - 1)
    median = naive.neighbour_spacing(X)[0]
    expected = median if rule == "jacobian_median" else even
    assert choice.spacing == pytest.approx(expected, rel=1e-12)
    assert choice.gamma == pytest.approx(1 / (2 * choice.sigma**2), rel=1e-15)
    assert float(choice) == choice.sigma
    assert 0 < choice.seconds < 60


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=4)
@given(seed=st.integers(0, 99), scale=st.sampled_from([1e-100, 1e-3, 7.0, 1e100]))
def test_scaling_the_rows_scales_the_bandwidth(rule, seed, scale):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((25, 2)), rng.standard_normal(25)
    here, there = (select_bandwidth(s * X, y, rule, random_state=0).sigma for s in (1.0, scale))
    # A search that stops at a step of 1e-4 may stop a rounding error earlier.
    assert there == pytest.approx(scale * here, rel=1e-3 if rule in SEARCHES else 1e-7)


@pytest.mark.parametrize("rule", RULES)
def test_the_order_of_rows_and_a_shift_change_nothing(table, rng, rule):
    X, y = table
    order = rng.permutation(60)
    here = select_bandwidth(X, y, rule, alpha=0.1, random_state=0).sigma
    there = select_bandwidth(X[order] + 1000, y[order] - 7, rule, alpha=0.1, random_state=0).sigma
    # A search that stops at a step of 1e-4 may stop a rounding error earlier.
    assert there == pytest.approx(here, rel=1e-3 if rule in SEARCHES else 1e-7)


def test_a_function_of_the_problem_is_a_rule(table):
    def half_the_diameter(problem):
        return problem.l_max / 2

    choice = select_bandwidth(table[0], rule=half_the_diameter)
    assert choice.sigma == choice.l_max / 2
    assert choice.rule == "half_the_diameter"


@pytest.mark.parametrize("rule", [r for r in CLOSED if r not in ("median", "maxvar")])
def test_a_closed_form_makes_no_matrix_of_all_pairs(rng, rule):
    X = rng.standard_normal((5000, 3))
    tracemalloc.start()
    select_bandwidth(X, rule=rule)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # All pairs would take 200 MB; a block of distances takes 8.
    assert peak < 30e6


@pytest.mark.parametrize("rule", ["median", "maxvar"])
def test_rules_on_pairs_look_at_a_sample_that_the_seed_decides(rng, size, rule):
    size("pairs", 10_000)
    X = rng.standard_normal((300, 2))
    first, second = (select_bandwidth(X, rule=rule, random_state=0).sigma for _ in range(2))
    other = select_bandwidth(X, rule=rule, random_state=1).sigma
    assert first == second
    assert other != first
    # Ten thousand pairs know a median to a part in a hundred.
    assert other == pytest.approx(first, rel=0.05)


def test_the_spacing_of_many_rows_is_that_of_a_sample(rng, size):
    X = rng.uniform(size=(3000, 2))

    def spacing():
        return select_bandwidth(X, rule="jacobian_median", random_state=0).spacing

    exact = spacing()
    size("sample", 1500)
    size("neighbour sample", 1000)
    # The median of 750 draws is within a few parts in a hundred of that of all.
    assert spacing() == pytest.approx(exact, rel=0.1)
    assert spacing() == spacing() != exact


def test_a_search_on_more_rows_than_the_first_look_takes_is_still_the_best(rng, size):
    size("coarse rows", 60)
    X = np.sort(rng.uniform(0, 10, (150, 1)), axis=0)
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(150)
    found = select_bandwidth(X, y, "loo", alpha=0.1, random_state=0).sigma
    D, y = np.abs(X - X.T), y - y.mean()
    values = [fast_loo(np.exp(-(D**2) / (2 * s**2)), y, 0.1) for s in np.geomspace(0.02, 10, 60)]
    assert fast_loo(np.exp(-(D**2) / (2 * found**2)), y, 0.1) <= min(values) * (1 + 1e-6)


@pytest.mark.parametrize("rule", SEARCHES)
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e20])
def test_a_constant_target_gives_the_jacobian_bandwidth_and_a_warning(table, rule, constant):
    X, _ = table
    with pytest.warns(UserWarning, match="`y` is constant .* the jacobian bandwidth"):
        found = select_bandwidth(X, np.full(60, constant), rule)
    assert found.sigma == select_bandwidth(X).sigma


@pytest.mark.parametrize("rule", CLOSED)
def test_rules_that_do_not_look_at_y_say_nothing_on_a_constant_one(table, rule):
    X, _ = table
    here = select_bandwidth(X, np.zeros(60), rule, random_state=0).sigma
    assert here == select_bandwidth(X, rule=rule, random_state=0).sigma


@pytest.mark.parametrize("rule", [rule for rule in SEARCHES if rule != "auto"])
def test_a_constant_target_beside_another_one_changes_nothing(curve, rule):
    X, y = curve
    alone = select_bandwidth(X, y, rule).sigma
    beside = select_bandwidth(X, np.column_stack([y, np.full(40, 0.1)]), rule).sigma
    # A search that stops at a step of 1e-4 may stop a rounding error earlier.
    assert beside == pytest.approx(alone, rel=1e-3)


def test_many_equal_rows_are_told_by_the_rule_that_looks_at_neighbours(rng):
    X = np.repeat(rng.standard_normal((10, 2)), 3, axis=0)
    with pytest.warns(UserWarning, match="67% of the rows repeat an earlier row"):
        found = select_bandwidth(X, rule="jacobian_median", alpha=0)
    expected = naive.neighbour_spacing(X)[0] * np.sqrt(2) / np.pi
    assert found.sigma == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_the_smallest_number_of_rows_is_three(rule):
    X, y = np.array([[0.0], [1.0], [3.0]]), np.array([0.0, 1.0, 0.0])
    assert 0 < select_bandwidth(X, y, rule, random_state=0).sigma < np.inf


def test_without_a_penalty_a_search_keeps_to_what_can_be_solved(curve):
    X, y = curve
    assert 0 < select_bandwidth(X, y, "loo", alpha=0).sigma < np.ptp(X)


def test_the_rules_are_those_of_the_registry():
    assert set(SEARCHES) < set(RULES)


def test_a_choice_is_shown_with_four_digits_as_text_and_as_html(rng):
    X = rng.standard_normal((12_345, 3))
    choice = select_bandwidth(X)
    assert repr(choice).startswith(f"Choice(sigma={choice.sigma:.4g}, rule='jacobian', kernel=")
    assert "alpha=0.001, n=12345, p=3, " in repr(choice)
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", choice._repr_html_())
    assert dict(zip(cells[::2], cells[1::2], strict=True))["l_max"] == f"{choice.l_max:.4g}"


def test_a_choice_for_several_targets_shows_every_penalty_and_escapes_names(rng):
    X = rng.standard_normal((30, 2))
    choice = replace(select_bandwidth(X, X, alpha="loo"), rule="<lambda>")
    first, second = choice.alpha
    assert f"alpha=[{first:.4g}, {second:.4g}]" in repr(choice)
    assert "<lambda>" not in choice._repr_html_()
    assert "&lt;lambda&gt;" in choice._repr_html_()


def test_choices_of_several_penalties_can_be_compared(table):
    X, y = table
    first, second = (select_bandwidth(X, np.c_[y, y**2], "loo", alpha="loo") for _ in range(2))
    assert first == first
    assert first != second  # another run, of other seconds
    assert len({first, second}) == 2


def test_a_warning_points_at_a_caller_whose_folder_has_a_name_that_begins_alike(table):
    path = f"{Path(jacridge.__file__).parent}_app/run.py"
    call = compile("select_bandwidth(X, y, 'loo')", path, "eval")
    with pytest.warns(UserWarning, match="`y` is constant") as seen:
        eval(
            call, {"select_bandwidth": select_bandwidth, "X": table[0], "y": np.ones(len(table[0]))}
        )
    assert seen[0].filename == path
