"""Diagnoses warn where the bandwidth is bad, and are silent where it is fine."""

import numpy as np
import pytest

from jacridge import JacobianKernelRidge, select_bandwidth


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
    assert f"would gain {finding['value']:.2f}: use bandwidth='auto'" in finding["sentence"]


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
    y = X[:, 0]

    name = "l_max / trimmed l_max"
    assert name in warned(JacobianKernelRidge().fit(far, y))
    assert name not in warned(JacobianKernelRidge().fit(X, y))


@pytest.mark.filterwarnings("ignore:.*rows are equal")
def test_equal_rows_are_told_of_where_the_rule_suffers(rng):
    X, y = smooth(rng, n=60, noise=0.3)
    thrice = np.repeat(X, 3, axis=0)
    noisy = np.repeat(y, 3) + 0.3 * rng.standard_normal(180)
    assert "equal rows" in warned(JacobianKernelRidge(0.01, 1e-6).fit(thrice, noisy))
    assert "equal rows" not in warned(JacobianKernelRidge("loo", "loo").fit(thrice, noisy))
    assert "equal rows" not in warned(JacobianKernelRidge(0.01, 1e-6).fit(X, y))


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
