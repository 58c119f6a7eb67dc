"""Criteria at one point: against loops, determinants and likelihoods of scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import naive
from jacridge import JacobianKernelRidge
from jacridge._geometry.distances import EUCLIDEAN
from jacridge._geometry.kernels import KERNELS
from jacridge._geometry.space import Pairs, space_of
from jacridge._rows.rows import ArrayRows
from jacridge._rows.source import Source, array_source
from jacridge._rules.criteria import CRITERIA, LOO, MML
from jacridge._rules.streams import LandmarkChoice, data_of_stream, training_data
from jacridge._solvers.cholesky import factor
from jacridge._solvers.spectrum import spectrum

SIGMAS = np.array([0.02, 0.1, 0.5, 3.0])
SPACE = space_of("gaussian", "euclidean")


@pytest.fixture
def points(rng):
    """Rows, their distances, and a target."""
    X = rng.uniform(size=(12, 2))
    return X, naive.distances(X, X), rng.standard_normal(12) + 3


@pytest.fixture(params=["ones", "whole", "any"])
def weights(request, rng):
    return {
        "ones": np.ones(12),
        "whole": rng.integers(1, 4, 12).astype(float),
        "any": rng.uniform(0.1, 4, 12),
    }[request.param]


def along(name, X, Y, lam, w=None, *, centred=False, space=SPACE):
    """A criterion at all bandwidths, from one array of pairs."""
    pairs, w = Pairs(X, space), np.ones(len(X)) if w is None else w
    Y = Y[:, None] if Y.ndim == 1 else Y
    Y = Y - np.average(Y, axis=0, weights=w) if centred else Y
    return [CRITERIA[name].at(pairs, s, lam, Y, w, centred=centred) for s in SIGMAS]


@pytest.mark.parametrize("lam", [1e-3, 1.0])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("name", CRITERIA)
def test_criteria_agree_with_loops(points, weights, name, centred, lam):
    """A row is left out with all of its weight, and the mean of y moves with it."""
    X, D, y = points
    found = along(name, X, y, lam, weights, centred=centred)
    criterion = naive.WEIGHTED[name]
    expected = [criterion(naive.kernel(D, s), y, lam, weights, centred) for s in SIGMAS]
    # At sigma = 3 the refits have a condition number of 1e4.
    np.testing.assert_allclose(found, expected, rtol=1e-7)


@pytest.mark.parametrize("name", CRITERIA)
def test_without_weights_and_mean_criteria_are_those_of_the_books(points, name):
    X, D, y = points
    expected = [naive.CRITERIA[name](naive.kernel(D, s), y, 0.1) for s in SIGMAS]
    np.testing.assert_allclose(along(name, X, y, 0.1), expected, rtol=1e-8)


def test_what_is_above_the_diagonal_of_a_kernel_has_no_effect_on_a_spectrum(points, rng):
    """Arrays of kernels are not cleared: products with old numbers once overflowed."""
    X, D, y = points
    w, K = rng.uniform(0.5, 2, len(X)), naive.kernel(D, 0.7)
    dirty = np.tril(K) + np.triu(np.full_like(K, 1.7e308), 1)
    clean, found = (spectrum(A, y[:, None], w).loo(np.array([0.1])) for A in (K, dirty))
    np.testing.assert_allclose(found, clean, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", CRITERIA)
def test_both_ways_to_a_criterion_agree_for_every_kernel(points, weights, name, kernel):
    """By a Cholesky factor and by eigenvalues; each is checked against loops elsewhere."""
    X, _, y = points
    y = (y - np.average(y, weights=weights))[:, None]
    K = space_of(kernel, "euclidean").block(X, X, 0.3)
    by_factor = CRITERIA[name].of_system(factor(K.copy(), 0.1 / weights), y, weights)
    by_eigenvalues = getattr(spectrum(K, y, weights), name)(np.array([0.1]))[0]
    np.testing.assert_allclose(by_factor, by_eigenvalues, rtol=1e-9)


def test_the_likelihood_is_right_where_the_determinant_underflows():
    """With the published formula, log(det(A)), it is minus infinity here."""
    X, y = np.linspace(0, 1, 40)[:, None], np.sin(np.arange(40.0))
    K = naive.kernel(naive.distances(X, X), 0.5)
    assert np.linalg.det(K + 1e-10 * np.eye(40)) == 0
    found = MML.at(Pairs(X, SPACE), 0.5, 1e-10, y[:, None], np.ones(40))
    # With a condition number of 1e11 five digits are left of the quadratic form.
    assert found == pytest.approx(naive.exact_mml(K, y, 1e-10), rel=1e-5)


def test_the_profiled_likelihood_is_scikit_learns_at_the_best_signal_variance(points):
    X, D, y = points
    A = naive.kernel(D, 0.3) + 0.01 * np.eye(12)
    s2 = y @ np.linalg.inv(A) @ y / 12
    process = GaussianProcessRegressor(
        ConstantKernel(s2) * RBF(0.3), alpha=0.01 * s2, optimizer=None
    ).fit(X, y)
    expected = -2 * process.log_marginal_likelihood() - 12 * np.log(2 * np.pi) - 12
    found = MML.at(Pairs(X, SPACE), 0.3, 0.01, y[:, None], np.ones(12))
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["loo", "gcv"])
def test_targets_of_different_scale_count_alike(points, rng, name):
    X, D, y = points
    Y = np.column_stack([y, 1000 * rng.standard_normal(12)])
    expected = [
        np.mean([naive.CRITERIA[name](naive.kernel(D, s), t, 0.1) / np.mean(t**2) for t in Y.T])
        for s in SIGMAS
    ]
    np.testing.assert_allclose(along(name, X, Y, 0.1), expected, rtol=1e-8)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("name", CRITERIA)
def test_a_target_of_zeros_among_others_moves_no_minimum(points, name, centred):
    X, _, y = points
    y = y - y.mean()
    alone = along(name, X, y, 0.1, centred=centred)
    beside = along(name, X, np.column_stack([y, 0 * y]), 0.1, centred=centred)
    unit = 1.0 if name == "mml" else np.mean(y**2)
    np.testing.assert_allclose(2 * np.array(beside), np.array(alone) / unit, rtol=1e-12)


@pytest.mark.parametrize("name", CRITERIA)
def test_a_criterion_is_infinite_where_the_system_cannot_be_solved(points, name):
    X, _, y = points
    assert along(name, np.repeat(X, 2, axis=0), np.repeat(y, 2), 0.0) == [np.inf] * 4


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("sigma", [1e-6, 1e-4, 2e-3])
def test_a_kernel_that_falls_apart_gives_the_same_criteria(rng, name, sigma, centred, size):
    """Pairs of rows and one alone, far from each other; the bandwidth joins them or not."""
    size("few rows", 0)
    X = np.repeat(rng.permutation(np.arange(12.0)), 2)[:21, None]
    X, y = X + 1e-3 * rng.uniform(size=(21, 1)), rng.standard_normal(21)
    w = rng.uniform(0.5, 2, 21)
    y -= np.average(y, weights=w) if centred else 0.0
    pairs = Pairs(X, SPACE)
    pairs.kernel(1.0)[np.tril_indices(21)] = -1e300  # a factor of before must leave no trace
    assert pairs.clusters(sigma) is not None
    found = CRITERIA[name].at(pairs, sigma, 1e-3, y[:, None], w, centred=centred)
    K = naive.kernel(naive.distances(X, X), sigma)
    assert found == pytest.approx(naive.WEIGHTED[name](K, y, 1e-3, w, centred), rel=1e-8)


def test_the_errors_of_the_last_rows_are_those_of_all(rng):
    X, y, w = rng.standard_normal((60, 2)), rng.standard_normal(60), rng.uniform(0.5, 2, 60)
    y -= w @ y / w.sum()
    K = naive.kernel(naive.distances(X, X), 0.7)
    residuals = naive.refit_residuals(K, y, 0.1, w, True)
    expected = w[-20:] @ np.square(residuals[-20:]) / w[-20:].sum()
    found = LOO.of_system(factor(K.copy(), 0.1 / w), y[:, None], w, last=20)
    # The diagonal of the inverse is in single precision.
    assert found == pytest.approx(expected, rel=1e-6)


WEIGHTED = ["no", "whole", "any"]


def replicated(rng, weighted, rows=12):
    """Rows with one to five observations each, and their weights."""
    X = np.repeat(rng.uniform(size=(rows, 2)), rng.integers(1, 6, rows), axis=0)
    X = X[rng.permutation(len(X))]
    y = np.sin(5 * X[:, 0]) + 0.3 * rng.standard_normal(len(X))
    weights = {"no": np.ones(len(X)), "whole": rng.integers(1, 4, len(X)).astype(float)}
    return X, y, weights.get(weighted, rng.choice([0.1, 1.3, 5.0], len(X)))


def refit_errors(est, X, y, w, weighted):
    """Error of each observation by a fit without it, or without one of its whole weight."""
    errors = np.empty(len(X))
    for i in range(len(X)):
        rest = w.copy()
        rest[i] -= 1 if weighted == "whole" else w[i]
        errors[i] = y[i] - est.fit(X, y, rest).predict(X[[i]])[0]
    return errors


@pytest.mark.parametrize("weighted", WEIGHTED)
@pytest.mark.parametrize("centred", [False, True])
def test_replicates_are_left_out_one_by_one(rng, centred, weighted):
    """Each observation against a fit without it; a row has one to five of them."""
    X, y, w = replicated(rng, weighted)
    errors = refit_errors(JacobianKernelRidge(0.4, 0.2, fit_intercept=centred), X, y, w, weighted)
    source = array_source(X, y[:, None], w, EUCLIDEAN)
    data = training_data(source, SPACE, kind="mean" if centred else "none")
    data = data.part(np.arange(12), for_comparison=True)
    lams, v = np.array([0.2]), data.w
    found = spectrum(data.pairs.twin().kernel(0.4), data.targets, v, centred=centred)
    known = replace(found, replicates=data.replicates).loo(lams)[0, 0]
    options = {"centred": centred, "replicates": data.replicates}
    at_one = LOO.at(data.pairs, 0.4, 0.2, data.targets, v, **options)
    np.testing.assert_allclose(at_one, known, rtol=1e-10)
    np.testing.assert_allclose(at_one, np.average(errors**2, weights=w), rtol=1e-10)


@pytest.mark.parametrize("weighted", WEIGHTED)
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("streams", [False, True])
def test_landmarks_leave_out_replicates_one_by_one(rng, streams, centred, weighted, monkeypatch):
    """Where the rows are merged, and where they come in blocks as they are."""
    X, y, w = replicated(rng, weighted)
    options = {"solver": "nystrom", "landmarks": np.unique(X, axis=0)[:7]}
    est = JacobianKernelRidge(0.4, 0.2, fit_intercept=centred, **options)
    errors = refit_errors(est, X, y, w, weighted)
    source = array_source(X, y[:, None], w, EUCLIDEAN)
    if streams:
        monkeypatch.setattr("jacridge._rows.rows.TASK_ROWS", 10)
        source = Source(ArrayRows(X, y[:, None], w), 2)
    kind, choice = "mean" if centred else "none", LandmarkChoice(options["landmarks"])
    data = data_of_stream(source, SPACE, kind=kind, choice=choice)
    found = data.solver.comparing(0.4).loo(np.array([0.2, 0.3]))[0, 0]
    np.testing.assert_allclose(found, np.average(errors**2, weights=w), rtol=1e-6)
    assert data.trials(0.4).observed is not None


@pytest.mark.parametrize("weighted", WEIGHTED)
@pytest.mark.parametrize("intercept", [False, True, "free"])
@pytest.mark.parametrize("solver", ["exact", "nystrom"])
def test_models_know_the_errors_of_observations_left_out(rng, solver, intercept, weighted):
    X, y, w = replicated(rng, weighted)
    options = {"solver": solver, "landmarks": np.unique(X, axis=0)[:7]}
    est = JacobianKernelRidge(0.4, 0.2, fit_intercept=intercept, **options)
    errors = refit_errors(est, X, y, w, weighted)
    held = est.fit(X, y, w)._function().model.held_out_singly
    by_y = np.argsort(held.y[:, 0])
    np.testing.assert_allclose(held.y[by_y, 0], np.sort(y), rtol=1e-12)
    # Features of landmarks have fewer digits.
    np.testing.assert_allclose(held.residuals[by_y, 0], errors[np.argsort(y)], rtol=1e-6)
    np.testing.assert_allclose(held.w[by_y], w[np.argsort(y)])


@pytest.mark.parametrize("several", [2, 5])
def test_labels_of_equal_rows_are_replicates_unless_these_are_copies(rng, several):
    """Of labels many are equal by chance; a label of nine in ten rows differs seldom."""
    X = np.repeat(rng.standard_normal((200, 2)), several, axis=0)
    rare = (rng.uniform(size=(200 * several, 1)) < 0.1).astype(float)
    copies = np.repeat(rare[:200], several, axis=0)
    few = copies.copy()
    few[::20] = 1.0 - few[::20]
    found = [array_source(X, y, None, EUCLIDEAN).replicates for y in (rare, copies, few)]
    assert [each is not None for each in found] == [True, False, False]


def test_a_row_with_one_observation_is_left_out_without_a_penalty_as_well(rng):
    X, y = rng.uniform(size=(9, 2)), rng.standard_normal((11, 1))
    source = array_source(np.vstack([X, X[:2]]), y, None, EUCLIDEAN)
    data = training_data(source, SPACE).part(np.arange(9), for_comparison=True)
    options = {"replicates": data.replicates}
    assert np.isfinite(LOO.at(data.pairs, 0.1, 0.0, data.targets, data.w, **options))


def test_copies_of_rows_with_their_targets_are_no_replicates(rng):
    """As in a bootstrap sample, or by weights; a few that differ by chance change nothing."""
    X, y = rng.uniform(size=(20, 2)), rng.standard_normal((20, 1))
    twice, w = np.vstack([X, X]), np.ones(40)
    assert array_source(twice, np.vstack([y, y]), None, EUCLIDEAN).replicates is None
    assert array_source(X, y, 2 * np.ones(20), EUCLIDEAN).replicates is None
    other = np.vstack([y, y])
    other[3] += 1.0
    assert array_source(twice, other, w, EUCLIDEAN).replicates is None
    assert array_source(twice, rng.standard_normal((40, 1)), w, EUCLIDEAN).replicates is not None


@pytest.mark.parametrize("signal", [0.0, 1.0])
@pytest.mark.parametrize("discrete", [False, True])
def test_replicates_tell_whether_rows_differ(rng, signal, discrete):
    X = rng.integers(0, 5, (600, 2)).astype(float)
    y = signal * np.sin(X[:, :1] + 2 * X[:, 1:]) + rng.standard_normal((600, 1))
    y = (y > 0).astype(float) if discrete else y
    source = array_source(X, y, None, EUCLIDEAN)
    assert source.replicates.explain(source.rows.y, source.rows.w) == bool(signal)
