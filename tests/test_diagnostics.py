"""Diagnoses warn where the bandwidth is bad, and are silent where it is fine."""

import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score

import naive
from jacridge import (
    AutoKernelClassifier,
    AutoKernelRidge,
    JacobianKernelClassifier,
    JacobianKernelRidge,
    select_bandwidth,
)


def smooth(rng, n=300, noise=0.05):
    X = rng.uniform(size=(n, 2))
    return X, np.sin(4 * X[:, 0]) * X[:, 1] + noise * rng.standard_normal(n)


def warned(est):
    return {finding.name for finding in est.diagnose().warnings}


def test_a_model_found_by_leave_one_out_gives_no_warning(rng):
    assert warned(JacobianKernelRidge("loo", "loo").fit(*smooth(rng))) == set()


def test_a_rough_function_without_noise_which_the_rule_is_made_for_gives_no_warning(rng):
    X = rng.uniform(size=(300, 2))
    D2 = ((X[:, None] - X) ** 2).sum(axis=2)
    K = np.exp(-D2 / (2 * select_bandwidth(X).sigma ** 2))
    y = np.linalg.cholesky(K + 1e-9 * np.eye(300)) @ rng.standard_normal(300)

    assert warned(JacobianKernelRidge().fit(X, y)) == set()


def test_a_rule_that_is_far_from_the_best_is_told_what_a_search_would_gain(rng):
    est = JacobianKernelRidge().fit(*smooth(rng, noise=0.3))

    finding = est.diagnose().dict()["gain of a search"]
    assert finding["warning"]
    assert finding["value"] > 0.1
    assert f"would rise by {finding['value']:.2f}: use bandwidth='auto'" in finding["sentence"]


def test_the_gain_is_that_of_actual_refits(rng):
    X, y = smooth(rng, n=60, noise=0.3)
    est = JacobianKernelRidge().fit(X, y)

    gain = est.diagnose().dict()["gain of a search"]["value"]
    best = JacobianKernelRidge("loo", "loo").fit(X, y)
    errors = [np.mean(e.loo_residuals_**2) / y.var() for e in (est, best)]
    # The diagnosis looks at ten bandwidths and holds the mean of y fixed, of 60 rows.
    assert gain == pytest.approx(errors[0] - errors[1], rel=0.1)


def test_outliers_that_make_l_max_are_found_and_others_are_not(rng):
    X = rng.standard_normal((200, 2))
    far = X.copy()
    far[0] = 100.0
    y = np.sin(3 * X[:, 0])

    name = "l_max / trimmed l_max"
    assert name in warned(JacobianKernelRidge().fit(far, y))
    assert name not in warned(JacobianKernelRidge().fit(X, y))


@pytest.mark.filterwarnings("ignore:.*rows repeat")
def test_equal_rows_are_told_of_where_the_rule_suffers(rng):
    X, y = smooth(rng, n=60, noise=0.3)
    thrice = np.repeat(X, 3, axis=0)
    copies, replicates = np.repeat(y, 3), np.repeat(y, 3) + 0.3 * rng.standard_normal(180)
    assert "equal rows" in warned(JacobianKernelRidge(0.01, 1e-6).fit(thrice, copies))
    assert "equal rows" not in warned(JacobianKernelRidge("loo", "loo").fit(thrice, copies))
    assert "equal rows" not in warned(JacobianKernelRidge(0.01, 1e-6).fit(thrice, replicates))
    assert "equal rows" not in warned(JacobianKernelRidge(0.01, 1e-6).fit(X, y))


def test_replicates_of_targets_with_a_penalty_each_count_one_by_one(rng):
    X, y = smooth(rng, n=40)
    signal_and_noise = np.repeat(np.column_stack([y, 0 * y]), 3, axis=0)
    signal_and_noise += 0.1 * rng.standard_normal((120, 2))
    est = JacobianKernelRidge(0.3, "loo").fit(np.repeat(X, 3, axis=0), signal_and_noise)
    assert est.alpha_[0] < est.alpha_[1]
    assert "120 rows" in est.diagnose().dict()["degrees of freedom"]["sentence"]


def test_a_kernel_wider_than_the_data_is_told_of_where_it_is_too_wide(rng):
    X = rng.uniform(size=(300, 1))
    y = np.sin(20 * X[:, 0])
    assert "sigma / l_max" in warned(JacobianKernelRidge(2.0, 0.1).fit(X, y))
    assert "sigma / l_max" not in warned(JacobianKernelRidge(2.0, 0.1).fit(X, X[:, 0]))
    assert "sigma / l_max" not in warned(JacobianKernelRidge(0.1, 1e-3).fit(X, y))


def test_a_model_that_follows_the_noise_is_told_so(rng):
    X = np.linspace(0, 1, 100)[:, None]
    y = np.sin(6 * X[:, 0]) + rng.standard_normal(100)

    assert "degrees of freedom" in warned(JacobianKernelRidge(alpha=1e-6).fit(X, y))
    assert "degrees of freedom" not in warned(JacobianKernelRidge(0.3, alpha=1.0).fit(X, y))


def test_degrees_of_freedom_are_the_trace_of_the_hat_matrix(rng):
    X, y = smooth(rng, n=30)
    est = JacobianKernelRidge(0.3, alpha=0.1).fit(X, y)

    D2 = ((X[:, None] - X) ** 2).sum(axis=2)
    K = np.exp(-D2 / (2 * 0.3**2))
    trace = np.trace(K @ np.linalg.inv(K + 0.1 * np.eye(30)))
    assert est.diagnose().dict()["degrees of freedom"]["value"] == pytest.approx(trace)


def test_a_penalty_above_the_threshold_is_found(rng):
    X, y = smooth(rng, n=50)
    assert "alpha / threshold" in warned(JacobianKernelRidge(alpha=50).fit(X, y))
    assert "alpha / threshold" not in warned(JacobianKernelRidge(alpha=1e-3).fit(X, y))


def test_a_matrix_close_to_singular_is_found(rng):
    X, y = smooth(rng, n=50)
    assert "condition" in warned(JacobianKernelRidge(0.5, alpha=1e-14).fit(X, y))
    assert "condition" not in warned(JacobianKernelRidge(0.5, alpha=1e-3).fit(X, y))


def test_few_points_in_many_dimensions_are_found_where_the_rule_suffers(rng):
    X = rng.standard_normal((80, 30))
    y = X[:, 0] ** 2 + 0.1 * rng.standard_normal(80)
    found = JacobianKernelRidge(alpha=1e-6).fit(X, y).diagnose().dict()["spacing / l_max"]
    assert found["value"] > 1
    assert "30 dimensions" in found["sentence"]


def test_a_diagnosis_prints_as_a_table_and_renders_as_html(rng):
    diagnosis = JacobianKernelRidge().fit(*smooth(rng)).diagnose()
    lines = str(diagnosis).splitlines()

    assert len(lines) == len(diagnosis.findings)
    assert all(f.name in line for f, line in zip(diagnosis.findings, lines, strict=True))
    assert diagnosis._repr_html_().count("<tr>") == len(lines) + 1


def test_several_targets_are_diagnosed_together(rng):
    X, y = smooth(rng)
    est = JacobianKernelRidge("loo", "loo").fit(X, np.column_stack([y, X[:, 1] ** 2]))
    assert set(est.diagnose().dict()) >= {"leave-one-out R2", "gain of a search", "condition"}


def test_the_leave_one_out_r2_of_targets_is_their_mean_whatever_their_units(rng):
    X, y = smooth(rng, n=80)
    Y = np.column_stack([y, 1000 * rng.standard_normal(80)])

    def r2(y):
        est = JacobianKernelRidge(0.3, 0.1).fit(X, y)
        return est.diagnose().dict()["leave-one-out R2"]["value"]

    assert r2(Y) == pytest.approx((r2(Y[:, 0]) + r2(Y[:, 1])) / 2)


def test_rows_of_weight_zero_do_not_count_in_the_leave_one_out_r2(rng):
    X, y = smooth(rng, n=80)
    w = np.r_[np.ones(70), np.zeros(10)]
    weighted = JacobianKernelRidge(0.3, 0.1).fit(X, y, sample_weight=w)
    without = JacobianKernelRidge(0.3, 0.1).fit(X[:70], y[:70])
    found = [est.diagnose().dict()["leave-one-out R2"]["value"] for est in (weighted, without)]
    assert found[0] == pytest.approx(found[1])


def test_without_an_intercept_the_r2_is_still_about_the_mean(rng):
    X = rng.uniform(size=(60, 2))
    est = JacobianKernelRidge(1.0, 0.1, fit_intercept=False)
    found = est.fit(X, 100 + rng.standard_normal(60)).diagnose().dict()
    assert found["leave-one-out R2"]["value"] < 0.2


def test_the_r2_of_a_constant_is_not_a_number(rng):
    est = JacobianKernelRidge().fit(rng.uniform(size=(30, 2)), np.full(30, 3.0))
    assert np.isnan(est.diagnose().dict()["leave-one-out R2"]["value"])


def test_a_penalty_of_zero_with_equal_rows_is_told_to_search(rng):
    X = np.repeat(rng.uniform(size=(20, 2)), 2, axis=0)
    est = JacobianKernelRidge(0.3, 0.0).fit(X, rng.standard_normal(40))
    assert "gain of a search" in warned(est)


AUTO = {"bandwidth": "auto", "alpha": "auto", "random_state": 0}
GOOD = [
    AutoKernelRidge(random_state=0),
    JacobianKernelRidge(**AUTO),
    JacobianKernelRidge("loo", "loo"),
    JacobianKernelRidge(**AUTO, kernel="matern32", metric="scaled"),
]


@pytest.mark.parametrize("est", GOOD, ids=str)
def test_good_fits_to_real_rows_give_no_warning(est):
    X, y = load_diabetes(return_X_y=True)
    assert est.fit(X[:200], y[:200]).diagnose().warnings == ()


TABLES = ["wine", "concrete", "kin8nm"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("est", "name"),
    [(GOOD[0], name) for name in TABLES] + list(zip(GOOD[1:], TABLES, strict=True)),
    ids=str,
)
def test_good_fits_to_tables_of_many_scales_give_no_warning(paper_data, est, name):
    path = paper_data / "tables" / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"JACRIDGE_DATA has no {path.name}.")
    table = np.load(path)
    X, y = table["X"][:400].astype(float), table["y"][:400].astype(float)
    if est.metric == "euclidean":
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert est.fit(X, y).diagnose().warnings == ()


def test_a_search_that_was_made_is_not_recommended_again(rng):
    X, y = smooth(rng, n=100, noise=0.3)
    given = JacobianKernelRidge(0.02, 1e-6).fit(X, y).diagnose().dict()["gain of a search"]
    assert "use bandwidth='auto', alpha='auto'." in given["sentence"]
    half = JacobianKernelRidge(0.02, "loo").fit(X, y).diagnose().dict()["gain of a search"]
    assert "use bandwidth='auto'." in half["sentence"]
    # Penalties far from the best one leave a gain that no search among them can have.
    narrow = JacobianKernelRidge("auto", [100.0, 200.0], random_state=0).fit(X, y)
    found = narrow.diagnose().dict()["gain of a search"]
    assert found["warning"]
    assert "use " not in found["sentence"]
    assert "the best bandwidth is" in found["sentence"]


@pytest.mark.parametrize("n", [60, 700])
def test_what_is_recommended_helps(rng, n):
    X, y = smooth(rng, n=n, noise=0.3)
    poor = JacobianKernelRidge().fit(X, y)
    found = poor.diagnose().dict()["gain of a search"]
    advised = JacobianKernelRidge("auto", "auto", random_state=0).fit(X, y)
    gained = [np.mean(est.loo_residuals_**2) / y.var() for est in (poor, advised)]
    assert found["warning"]
    assert gained[0] - gained[1] > 0.9 * found["value"]


def test_noise_that_no_search_could_predict_gives_no_advice(rng):
    """Some of three hundred points of a grid look better by chance."""
    X = rng.uniform(size=(80, 3))
    for _ in range(3):
        est = JacobianKernelRidge("auto", "auto", random_state=0).fit(X, rng.standard_normal(80))
        # The search may end at a kernel so narrow that every point is followed, which is said.
        assert warned(est) <= {"leave-one-out R2", "degrees of freedom"}


def test_every_row_twice_does_not_make_noise_predictable(rng):
    X, y = rng.uniform(size=(100, 3)), rng.standard_normal(100)
    twice = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    honest = JacobianKernelRidge(**AUTO).fit(*twice).diagnose().dict()["leave-one-out R2"]
    assert honest["value"] < 0.1
    near = twice[0] + 1e-6 * rng.standard_normal((200, 3))
    est = JacobianKernelRidge(0.1, 1e-3).fit(near, twice[1])
    found = est.diagnose()
    assert {f.name for f in found.warnings} >= {"near duplicates"}
    assert found.dict()["leave-one-out R2"]["value"] > 0.9
    assert "and -0." in found.dict()["near duplicates"]["sentence"]
    assert "best single feature" not in {f.name for f in found.warnings}


def test_near_duplicates_of_a_smooth_function_do_not_matter(rng):
    X, y = smooth(rng, n=100)
    near = np.vstack([X, X + 1e-6 * rng.standard_normal(X.shape)])
    found = JacobianKernelRidge(0.3, 0.1).fit(near, np.r_[y, y]).diagnose()
    assert found.dict()["near duplicates"]["value"] == pytest.approx(0.5)
    assert not found.dict()["near duplicates"]["warning"]


def test_groups_of_near_duplicates_may_be_larger_than_the_sample(rng, size):
    size("gain rows", 50)
    X, noise = rng.uniform(size=(20, 2)), 0.3 * rng.standard_normal(20)
    X, y = np.repeat(X, 60, axis=0), np.repeat(noise, 60)
    X += 1e-7 * rng.standard_normal(X.shape)

    found = JacobianKernelRidge(0.1, 0.1).fit(X, y).diagnose().dict()["near duplicates"]
    assert found["value"] == pytest.approx(1 - 20 / 1200)
    # A row is known by those beside it, and noise by nothing.
    assert found["warning"]


def test_rows_that_are_all_near_duplicates_have_no_others_to_compare_with(rng, size):
    size("nearly equal", 0.1)
    x = np.linspace(0, 1, 200)
    y = np.sin(5 * x) + 0.1 * rng.standard_normal(200)
    found = JacobianKernelRidge("loo", "loo").fit(x[:, None], y).diagnose().dict()
    assert found["near duplicates"]["value"] == 1 - 1 / 200
    assert not found["near duplicates"]["warning"]
    assert "together" not in found["near duplicates"]["sentence"]


def test_few_rows_and_rows_that_were_dropped_are_told_of(rng):
    X, y = smooth(rng, n=80)
    est = JacobianKernelRidge("loo", "loo")
    assert warned(est.fit(X[:12], y[:12])) >= {"effective rows"}
    kept = np.r_[np.ones(15), np.zeros(65)]
    assert warned(est.fit(X, y, kept)) >= {"effective rows", "dropped rows"}
    assert est.diagnose().dict()["dropped rows"]["value"] == 65 / 80
    assert warned(est.fit(X, y, np.r_[np.ones(60), np.zeros(20)])) == set()


def test_weights_that_leave_a_few_rows_are_told_of(rng):
    X, y = smooth(rng, n=80)
    heavy = np.where(np.arange(80) < 5, 1e6, 1.0)
    found = JacobianKernelRidge("loo", "loo").fit(X, y, heavy).diagnose().dict()["effective rows"]
    assert found["warning"]
    assert found["value"] == pytest.approx(5, abs=0.01)  # 75 rows of a millionth of the weight


def test_a_fit_through_noisy_points_is_told_so_also_where_nothing_is_gained(rng):
    X, y = rng.uniform(size=(60, 8)), rng.standard_normal(60)
    assert "degrees of freedom" in warned(JacobianKernelRidge(0.05, 1e-3).fit(X, y))


def test_a_penalty_at_the_end_of_its_range_is_told_of_if_the_best_lies_beyond(rng):
    X, y = smooth(rng, n=100, noise=1.0)
    low = JacobianKernelRidge(0.3, [1e-4, 1e-3]).fit(X, y)
    assert warned(low) >= {"penalty"}
    assert "the largest that was tried" in low.diagnose().dict()["penalty"]["sentence"]
    assert "penalty" not in warned(JacobianKernelRidge(0.3, "loo").fit(X, y))


def test_a_bandwidth_at_the_end_of_its_range_is_told_of_if_the_best_lies_beyond(rng):
    """The rule looks near the Jacobian bandwidth, which noise makes too small."""
    X, y = smooth(rng, n=100, noise=0.3)
    assert "bandwidth" in warned(JacobianKernelRidge("jacobian_loo", 0.1).fit(X, y))
    assert "bandwidth" not in warned(JacobianKernelRidge("loo", 0.1).fit(X, y))


@pytest.mark.parametrize("metric", ["euclidean", "full"])
def test_a_feature_that_alone_predicts_y_is_named(rng, metric):
    X, y = smooth(rng, n=120, noise=0.2)
    leaky = np.column_stack([X, np.exp(y)])
    found = JacobianKernelRidge(**AUTO, metric=metric).fit(leaky, y).diagnose()
    assert "best single feature" in {f.name for f in found.warnings}
    assert found.dict()["best single feature"]["sentence"].startswith("x2 alone")


def test_a_feature_that_parts_one_class_from_two_others_is_no_leak(rng):
    X = rng.standard_normal((90, 2)) + np.repeat([[0, 0], [0, 1], [9, 9]], 30, axis=0)
    est = JacobianKernelClassifier(1.0, 0.1).fit(X, np.repeat([0, 1, 2], 30))
    assert "best single feature" not in {f.name for f in est.diagnose().warnings}


def test_the_best_single_feature_of_classes_has_the_mean_r2_over_them(rng):
    """Of three classes one lies far off in length, two overlap; colours say next to nothing."""
    labels = np.repeat([0, 1, 2], 60)
    length = rng.standard_normal(180) + np.array([0.0, 1.0, 6.0])[labels]
    X = np.column_stack([length, rng.integers(2, size=180), rng.standard_normal(180)])
    found = JacobianKernelClassifier(1.0, 0.1).fit(X, labels).diagnose().dict()
    best = found["best single feature"]
    assert best["sentence"] == "R2 of the best single feature, x0 (mean over 3 targets)."
    # The probabilities of the classes at this length predict as well as anything can.
    density = np.exp(-np.square(length[:, None] - [0.0, 1.0, 6.0]) / 2)
    P, Y = density / density.sum(axis=1, keepdims=True), np.eye(3)[labels]
    possible = np.mean(1 - np.square(Y - P).mean(axis=0) / Y.var(axis=0))
    assert best["value"] == pytest.approx(possible, abs=0.1)  # means of a dozen rows have noise


def test_the_best_single_feature_of_a_noisy_target_has_nearly_the_r2_of_a_line(rng):
    X = rng.standard_normal((400, 2))
    y = X[:, 0] + 2 * rng.standard_normal(400)
    best = JacobianKernelRidge(1.0, 1.0).fit(X, y).diagnose().dict()["best single feature"]
    line = np.corrcoef(X[:, 0], y)[0, 1] ** 2
    assert best["value"] == pytest.approx(line, abs=0.1)  # means of 20 rows have noise


def test_the_best_single_feature_counts_rows_by_their_weights(rng):
    X = np.column_stack([rng.integers(6, size=400), rng.standard_normal(400)])
    w = np.where(np.arange(400) % 2, 1.0, 1e-6)
    y = np.where(w == 1, X[:, 0] ** 2, 30 * rng.standard_normal(400))
    found = JacobianKernelRidge(1.0, 1.0).fit(X, y, w).diagnose().dict()
    assert found["best single feature"]["value"] > 0.99


def test_the_ratio_of_scales_counts_rows_by_their_weights(rng):
    X = rng.standard_normal((100, 2))
    X[::2, 0] *= 1e3
    w = np.where(np.arange(100) % 2, 1.0, 1e-9)
    found = JacobianKernelRidge(1.0, 1.0).fit(X, X[:, 1], w).diagnose().dict()["ratio of scales"]
    std = np.sqrt(np.diagonal(np.cov(X.T, aweights=w, ddof=0)))
    assert found["value"] == pytest.approx(max(std) / min(std), rel=1e-9)


def test_unlike_scales_are_told_of_where_scaling_helps(rng):
    X, y = smooth(rng, n=100)
    unlike = X * [1, 1000]
    assert "ratio of scales" in warned(JacobianKernelRidge("loo", "loo").fit(unlike, y))
    scaled = JacobianKernelRidge("loo", "loo", metric="scaled").fit(unlike, y)
    assert "ratio of scales" not in scaled.diagnose().dict()
    only_large = JacobianKernelRidge("loo", "loo").fit(unlike, X[:, 1])
    assert "ratio of scales" not in warned(only_large)


def test_a_choice_is_told_with_its_gain_over_the_plain_metric_and_the_runner_up(rng):
    X = rng.standard_normal((150, 4))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(150)
    est = JacobianKernelRidge(**AUTO, metric="auto").fit(X, y)
    found = est.diagnose().dict()["gain of the choice"]
    chosen = next(row for row in est.choices_ if row["chosen"])
    plain = min(row["error"] for row in est.choices_ if row["rounds"] == 0)
    assert found["value"] == plain - chosen["error"] > 0
    best = min((r for r in est.choices_ if r["rounds"] == 0), key=lambda r: r["error"])
    second = next(r for r in est.choices_ if not r["chosen"])
    scores = [(1 - row["error"], 1 - row["trimmed_error"]) for row in (chosen, best, second)]
    of = [(f"{whole:.3f} (", f"{most:.3f}") for whole, most in scores]
    sentence = found["sentence"]
    assert sentence.startswith(f"gaussian in a {chosen['kind']} metric after")
    assert f"is {''.join(of[0])} without the hardest 2 %, which decides)." in sentence
    assert f"Gaussian in the plain metric has {''.join(of[1])})." in sentence
    assert (
        f", has {''.join(of[2])})" in sentence[sentence.index(f"runner-up, {second['kernel']}") :]
    )


def test_the_choice_of_a_classifier_is_told_by_its_log_loss(rng):
    X = rng.standard_normal((120, 2))
    est = AutoKernelClassifier(random_state=0).fit(X, X[:, 0] + 0.5 * X[:, 1] ** 2 > 0)
    chosen = next(row for row in est.choices_ if row["chosen"])
    sentence = est.diagnose().dict()["gain of the choice"]["sentence"]
    scores = f"{chosen['error']:.3f} ({chosen['trimmed_error']:.3f} without the hardest 2 %"
    assert f"was chosen. Its log loss on held-out rows is {scores}" in sentence


def test_the_r2_of_a_pickled_model_counts_copies_of_rows_once_each(rng):
    X, y = smooth(rng, n=100, noise=0.3)
    copies = rng.integers(1, 6, size=100)
    X, y = np.repeat(X, copies, axis=0), np.repeat(y, copies)
    est = JacobianKernelRidge(0.3, 0.1, solver="nystrom", n_landmarks=40, random_state=0).fit(X, y)
    expected = 1 - np.mean(est.loo_residuals_**2) / y.var()
    for model in (est, pickle.loads(pickle.dumps(est))):
        found = model.diagnose().dict()["leave-one-out R2"]["value"]
        assert found == pytest.approx(expected, rel=1e-9)


def test_rows_that_allow_no_comparison_are_still_diagnosed(rng):
    X = np.ones((5, 2))
    found = JacobianKernelRidge(1.0, 0.1).fit(X, rng.standard_normal(5)).diagnose()
    assert "effective rows" in {f.name for f in found.warnings}


def test_a_diagnosis_tells_of_the_fit_whatever_set_params_changed_since(rng):
    X, y = smooth(rng, n=60, noise=0.3)
    est = JacobianKernelRidge("loo", "loo").fit(X, y)
    before = str(est.diagnose())
    assert str(est.set_params(bandwidth=0.1, alpha=7.0, metric="scaled").diagnose()) == before


@pytest.mark.slow
@pytest.mark.parametrize("ask", ["diagnose", "summary"])
def test_r2_of_rows_with_few_places_is_that_of_the_rows_as_given(rng, ask):
    """Most of the variance of y is within places; the means alone vary little."""
    X, y = rng.integers(8, size=(100, 1)).astype(float), rng.standard_normal(100)
    est = JacobianKernelRidge(1.0, 10.0).fit(X, y)
    left_out = naive.leave_one_out(lambda: JacobianKernelRidge(1.0, 10.0), X, y)
    expected = 1 - np.mean(left_out**2) / y.var()
    found = (
        est.diagnose().dict()["leave-one-out R2"]["value"]
        if ask == "diagnose"
        else est.summary().fit["leave-one-out R2"]
    )
    assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["exact", "nystrom"])
@pytest.mark.parametrize("targets", [1, 2])
def test_r2_counts_rows_by_their_weights_also_where_rows_repeat(rng, solver, targets):
    """Noisy rows of little weight hardly count, whether or not some row repeats another."""
    X, w = np.linspace(0, 6, 60)[:, None], np.ones(60)
    y = np.sin(X + np.arange(targets))
    y[::3] += 3 * rng.standard_normal((20, targets))
    w[::3] = 1e-3
    some = np.r_[np.arange(60), 1, 1, 3, 3, 5]  # of both kinds
    X, y, w = X[some], y[some] + 0.1 * rng.standard_normal((65, targets)), w[some]
    est = JacobianKernelRidge(1.0, [1e-3, 1e-1], solver=solver, n_landmarks=20, random_state=0)
    est.fit(X, y if targets > 1 else y[:, 0], sample_weight=w)

    # Rows leave one by one, as equal ones differ in y, and must not move the landmarks.
    options, errors = {"solver": solver, "landmarks": est.X_fit_}, np.empty(targets)
    for t, alpha in enumerate(np.atleast_1d(est.alpha_)):
        again = partial(JacobianKernelRidge, 1.0, float(alpha), **options)
        left_out = naive.leave_one_out(again, X, y[:, t], w)
        errors[t] = np.average(left_out**2, weights=w)
    variances = np.average((y - np.average(y, axis=0, weights=w)) ** 2, axis=0, weights=w)
    expected = np.mean(1 - errors / variances)
    assert expected > 0.9
    for model in (est, pickle.loads(pickle.dumps(est))):
        found = model.diagnose().dict()["leave-one-out R2"]["value"]
        assert found == pytest.approx(expected, abs=1e-8)
    assert est.summary().fit["leave-one-out R2"] == pytest.approx(expected, abs=1e-8)


def test_a_designed_experiment_is_not_called_useless(rng):
    """Cells that tell nothing of each other: a new cell is not predicted, a new observation is."""
    X, cell = rng.standard_normal((24, 2)), np.repeat(np.arange(24), 37)
    means = rng.standard_normal(24)
    y, y_new = means[cell] + rng.standard_normal((2, len(cell)))
    est = JacobianKernelRidge("auto", "auto", random_state=0).fit(X[cell], y)
    found = est.diagnose()
    assert not {"leave-one-out R2", "gain of a search", "equal rows"} & {
        each.name for each in found.warnings
    }
    r2 = found.dict()["leave-one-out R2"]
    # Both are known to about 0.03.
    assert r2["value"] == pytest.approx(r2_score(y_new, est.predict(X[cell])), abs=0.15)
    assert "On new rows it is -" in r2["sentence"]


def test_an_automatic_search_among_given_penalties_tells_that_it_ended_at_the_smallest(rng):
    X = rng.uniform(0, 6, (80, 1))
    found = JacobianKernelRidge("auto", [100.0, 1000.0], random_state=0).fit(X, np.sin(X[:, 0]))
    (warning,) = [each for each in found.diagnose().warnings if each.name == "penalty"]
    assert "smallest that was tried" in warning.sentence


@pytest.mark.parametrize("n", [1, 30])
def test_a_target_that_does_not_vary_has_no_r2(rng, n):
    found = JacobianKernelRidge(1.0, 0.1).fit(rng.standard_normal((n, 2)), np.ones(n)).diagnose()
    assert np.isnan(found.dict()["leave-one-out R2"]["value"])
    assert "not defined" in str(found)
    assert "R2 on unseen rows" not in str(found)


@pytest.mark.parametrize(
    ("n", "words"), [(1, "Only 1 distinct row:"), (4, "Only 4 distinct rows:")]
)
def test_few_rows_are_counted_in_words(rng, n, words):
    X = rng.standard_normal((n, 2))
    assert words in str(JacobianKernelRidge(1.0, 0.1).fit(X, X[:, 0]).diagnose())
