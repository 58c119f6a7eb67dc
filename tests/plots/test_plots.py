"""Plot functions draw what they are given; displays compute what a user would by hand."""

import inspect

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from jacridge import (
    RULES,
    AutoKernelRidge,
    JacobianKernelClassifier,
    JacobianKernelRidge,
    plots,
    select_bandwidth,
    theory,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

SIGMAS = np.array([0.1, 0.5, 1.0, 4.0])
CALLS = {
    "plot_norm": lambda **kw: plots.plot_norm(SIGMAS, 1 / SIGMAS, j_a=SIGMAS, chosen=0.5, **kw),
    "plot_norms": lambda **kw: plots.plot_norms(SIGMAS, 1 / SIGMAS, SIGMAS, chosen=0.5, **kw),
    "plot_criteria": lambda **kw: plots.plot_criteria(SIGMAS, {"loo": [3, 1, 2, 4]}, **kw),
    "plot_criterion_map": lambda **kw: plots.plot_criterion_map(
        SIGMAS, [0.1, 1.0], np.arange(8.0).reshape(2, 4), chosen=(0.5, 0.1), **kw
    ),
    "plot_rules": lambda **kw: plots.plot_rules(["a", "b"], [1e-3, 1], [0.3, 0.4], **kw),
    "plot_curve": lambda **kw: plots.plot_curve(SIGMAS, SIGMAS**2, data=([1, 2], [1, 4]), **kw),
    "plot_surface": lambda **kw: plots.plot_surface([0, 1], [0, 1, 2], np.eye(3)[:, :2], **kw),
    "plot_predictions": lambda **kw: plots.plot_predictions([1, 2, 3], [1, 2, 4], **kw),
    "plot_importances": lambda **kw: plots.plot_importances(["a", "b"], [1, 2], **kw),
    "plot_metric": lambda **kw: plots.plot_metric(np.eye(2), ["a", "b"], **kw),
    "plot_choices": lambda **kw: plots.plot_choices(["a", "b"], [1, 2], [0.1, 0.2], **kw),
    "plot_effects": lambda **kw: plots.plot_effects(["a", "b"], [1, 2], [0, 1], [2, 4], **kw),
    "plot_slope_band": lambda **kw: plots.plot_slope_band([1, 2], [1, 2], [0, 1], [2, 4], **kw),
    "plot_slopes": lambda **kw: plots.plot_slopes([1, 2, 3], [1, 2, 6], name="age", **kw),
}


@pytest.fixture(autouse=True)
def figures():
    yield
    plt.close("all")


def test_every_plot_function_is_tried_here():
    assert set(CALLS) == {name for name in plots.__all__ if name.startswith("plot_")}


@pytest.mark.parametrize("name", CALLS)
def test_a_plot_is_drawn_in_the_axes_given_and_returns_them(name):
    _, (left, right) = plt.subplots(1, 2)
    assert CALLS[name](ax=left) is left
    assert left.has_data()
    assert not right.has_data()


@pytest.mark.parametrize("name", CALLS)
def test_a_plot_without_axes_takes_the_current_ones(name):
    _, ax = plt.subplots()
    assert CALLS[name]() is ax


@pytest.mark.parametrize("name", CALLS)
def test_a_plot_changes_no_global_style(name):
    before = dict(matplotlib.rcParams)
    CALLS[name]()
    assert dict(matplotlib.rcParams) == before


def test_style_keywords_win():
    ax = plots.plot_norm(SIGMAS, SIGMAS, color="black", linewidth=3)
    assert ax.lines[0].get_color() == "black"
    assert ax.lines[0].get_linewidth() == 3


def test_the_approximate_norm_meets_the_true_one_at_the_chosen_bandwidth():
    ax = plots.plot_norms(SIGMAS, 7 / SIGMAS, SIGMAS**2, chosen=0.5)
    true, approximate = (line.get_ydata() for line in ax.lines[:2])
    assert approximate[1] == pytest.approx(true[1])


def test_a_criterion_has_a_dot_at_its_minimum():
    ax = plots.plot_criteria(SIGMAS, {"loo": [3, 1, 2, 4]})
    assert (ax.lines[1].get_xdata(), ax.lines[1].get_ydata()) == ([0.5], [1.0])


def test_several_criteria_go_from_zero_to_one():
    ax = plots.plot_criteria(SIGMAS, {"loo": [3, 1, 2, 4], "mml": [-100, -300, 0, 50]})
    for line in ax.lines[::2]:
        assert (min(line.get_ydata()), max(line.get_ydata())) == (0, 1)


def test_a_constant_criterion_is_drawn_at_zero_beside_others():
    ax = plots.plot_criteria(SIGMAS, {"loo": [3, 1, 2, 4], "gcv": [2, 2, 2, 2]})
    assert list(ax.lines[2].get_ydata()) == [0, 0, 0, 0]


def test_names_of_rules_that_lie_close_do_not_cover_each_other():
    _, ax = plt.subplots(figsize=(5, 4))
    plots.plot_rules(["gcv", "loo", "mml"], [1, 1.05, 0.95], [0.4, 0.401, 0.402], ax=ax)
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_names_of_rules_stay_apart_when_something_else_is_drawn_first():
    _, ax = plt.subplots(figsize=(8, 4.5))
    ax.semilogx([1e-3, 10], [0.6, 0])
    plots.plot_rules(["median", "maxvar", "scale"], [0.05, 0.12, 0.2], [0.98, 0.98, 0.97], ax=ax)
    ax.figure.canvas.draw()
    # Of the texts themselves, without the lines that lead from them to their points.
    boxes = [matplotlib.text.Text.get_window_extent(text) for text in ax.texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


@pytest.mark.parametrize("seed", range(5))
def test_names_of_many_rules_cover_no_error_bar_and_no_other_name(seed):
    """As in `jacridge compare`, whose rules often have nearly the same seconds and scores."""
    rng = np.random.default_rng(seed)
    names = [*RULES, "trees", "linear"]
    seconds = 10 ** rng.choice([-4.0, -2.0, -1.9, 0.0], len(names)) * rng.uniform(1, 2, len(names))
    scores, spread = rng.choice([0.9, 0.88, 0.3], len(names)), rng.uniform(0, 0.2, len(names))
    figure, ax = plt.subplots(figsize=(8, 5))
    plots.plot_rules(names, seconds, scores, spread=spread, ax=ax)
    figure.canvas.draw()
    boxes = [matplotlib.text.Text.get_window_extent(text) for text in ax.texts]
    ends = np.stack([scores - spread, scores + spread])
    bars = [
        matplotlib.transforms.Bbox(ax.transData.transform([(x, low), (x, high)]))
        for x, low, high in zip(seconds, *ends, strict=True)
    ]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in [*boxes[:i], *bars]), names[i]


def test_a_curve_is_drawn_in_order_of_x():
    ax = plots.plot_curve([3, 1, 2], [9, 1, 4], lower=[8, 0, 3], upper=[10, 2, 5])
    assert list(ax.lines[0].get_xdata()) == [1, 2, 3]
    assert list(ax.lines[0].get_ydata()) == [1, 4, 9]


def test_the_largest_importances_are_on_top():
    ax = plots.plot_importances(["a", "b", "c"], [2, 3, 1], largest=2)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]


# Displays


@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.5, 1.0])
def test_the_true_norm_of_a_display_is_the_largest_slope_of_a_refit(curve, sigma):
    """Small bandwidths are flat at the rows, and steep between them."""
    X, y = curve
    est = JacobianKernelRidge().fit(X, y)
    display = plots.JacobianNormDisplay.from_estimator(est, X, y, bandwidths=[sigma, 2.0])

    x = np.linspace(-3, 3, 20001)
    model = KernelRidge(kernel="rbf", gamma=0.5 / sigma**2, alpha=1e-3).fit(X, y - y.mean())
    slopes = np.diff(model.predict(x[:, None])) / np.diff(x)
    # At a hundred and sixty places, not everywhere.
    assert 0.7 * np.abs(slopes).max() < display.true[0] < 1.01 * np.abs(slopes).max()
    assert display.chosen == est.bandwidth_


def test_a_display_of_a_nystrom_model_refits_its_sample_exactly(curve):
    X, y = curve
    est = JacobianKernelRidge(bandwidth=0.5, solver="nystrom", n_landmarks=30).fit(X, y)
    exact = JacobianKernelRidge(bandwidth=0.5).fit(X[::2], y[::2])
    options = {"bandwidths": [0.5, 1.0], "max_samples": 20, "random_state": 0}
    displays = [
        plots.JacobianNormDisplay.from_estimator(model, X, y, **options) for model in (est, exact)
    ]
    np.testing.assert_allclose(displays[0].true, displays[1].true)


@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_the_loo_curve_of_a_display_is_that_of_refits_without_each_row(curve, alpha):
    X, y = curve
    est = JacobianKernelRidge(alpha=alpha).fit(X, y)
    display = plots.CriterionDisplay.from_estimator(est, X, y, bandwidths=[0.5])

    errors = []
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        mean = y[rest].mean()
        model = KernelRidge(kernel="rbf", gamma=2, alpha=alpha).fit(X[rest], y[rest] - mean)
        errors.append(y[i] - mean - model.predict(X[[i]])[0])
    assert display.values[0, 0] == pytest.approx(np.square(errors).mean(), rel=1e-8)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loo_curve_is_that_of_the_model_with_its_intercept_rows_and_weights(
    curve, rng, fit_intercept, weighted
):
    X, y = np.repeat(curve[0], 2, axis=0), np.repeat(curve[1], 2) + 3
    w = rng.uniform(0.5, 2, size=len(X)) if weighted else None
    est = JacobianKernelRidge(0.5, 0.1, fit_intercept=fit_intercept).fit(X, y, w)
    display = plots.CriterionDisplay.from_estimator(est, X, y, w, bandwidths=[0.5])
    expected = np.average(est.loo_residuals_**2, weights=w)
    assert display.values[0, 0] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("fit_intercept", [False, True, "free"])
def test_the_true_norm_is_that_of_the_model_with_its_intercept_rows_and_weights(
    curve, rng, fit_intercept
):
    X, w = curve[0], rng.uniform(0.1, 3, size=40)
    Y = np.column_stack([curve[1], X[:, 0]]) + 3
    est = JacobianKernelRidge(0.5, 0.1, fit_intercept=fit_intercept).fit(X, Y, w)
    display = plots.JacobianNormDisplay.from_estimator(est, X, Y, w, bandwidths=[0.5])
    x = np.linspace(X[0, 0], X[-1, 0], 20001)
    slopes = np.linalg.norm(np.diff(est.predict(x[:, None]), axis=0), axis=1) / np.diff(x)
    # At a hundred and sixty places, not everywhere.
    assert 0.9 * slopes.max() < display.true[0] < 1.001 * slopes.max()


def test_the_true_norm_of_places_is_per_metre_as_the_approximate_one(rng):
    pytest.importorskip("pyproj")
    X = rng.uniform([43, -4], [50, 8], size=(60, 2))
    y = np.sin(X[:, 0]) + np.cos(X[:, 1])
    est = JacobianKernelRidge(2e5, 0.01, metric="geodesic").fit(X, y)
    display = plots.JacobianNormDisplay.from_estimator(est, X, y, bandwidths=[2e5])

    lat, lon = (Z.ravel() for Z in np.meshgrid(np.linspace(43, 50, 80), np.linspace(-4, 8, 80)))
    h, degree = 1e-3, 111_200  # metres, to half a percent
    at = [
        est.predict(np.column_stack([lat + north, lon + east / np.cos(np.radians(lat))]))
        for north, east in ((h, 0), (-h, 0), (0, h), (0, -h))
    ]
    steepest = np.hypot(at[0] - at[1], at[2] - at[3]).max() / (2 * h * degree)
    # Of two hundred and forty places, all within the range of the rows.
    assert 0.8 * steepest < display.true[0] < 1.01 * steepest


@pytest.mark.parametrize(("kernel", "exponent"), [("matern32", 2), ("laplacian", 1)])
def test_displays_take_the_kernel_of_the_model(surface, kernel, exponent):
    """Values of refits with scikit-learn's kernel; a grid in the kernel's own distance."""
    X, y = surface
    est = JacobianKernelRidge("median", kernel=kernel).fit(X, y)
    norms = plots.JacobianNormDisplay.from_estimator(est, X, y, bandwidths=[0.7, 0.9])
    spacing = select_bandwidth(X, rule="median", kernel=kernel).spacing
    scaled = theory.lattice_jacobian_norm([0.7, 0.9], kernel, spacing, 1, 1e-3)
    np.testing.assert_allclose(norms.approximate, scaled)
    refit = JacobianKernelRidge(0.7, kernel=kernel).fit(X, y)
    # The display looks around the rows, too, and finds steeper places there.
    at_rows = np.linalg.norm(refit.jacobian(X), axis=1).max()
    assert at_rows < norms.true[0] < 1.5 * at_rows

    display = plots.CriterionDisplay.from_estimator(est, X, y, bandwidths=[0.7])
    assert display.values[0, 0] == pytest.approx(np.mean(refit.loo_residuals_**2), rel=1e-8)
    whole = plots.CriterionDisplay.from_estimator(est, X, y).bandwidths
    l_max = max(np.linalg.norm(x - z, ord=exponent) for x in X for z in X)
    assert whole.max() == pytest.approx(max(l_max, 3 * est.bandwidth_))


def test_a_criterion_map_has_a_row_for_each_penalty(curve):
    est = JacobianKernelRidge().fit(*curve)
    display = plots.CriterionDisplay.from_estimator(
        est, *curve, criterion="gcv", bandwidths=[0.2, 0.5, 1], alphas=[1, 0.1]
    )
    assert display.values.shape == (2, 3)
    assert list(display.alphas) == [0.1, 1]
    assert display.ax_.get_ylabel().startswith("ridge")


def test_an_unknown_criterion_is_named(curve):
    est = JacobianKernelRidge().fit(*curve)
    with pytest.raises(ValueError, match="`criterion` must be one of 'loo', 'gcv', 'mml', got 'x'"):
        plots.CriterionDisplay.from_estimator(est, *curve, criterion="x")


def test_a_display_looks_at_a_sample_of_many_rows(rng):
    X = rng.standard_normal((300, 2))
    est = JacobianKernelRidge(bandwidth=1.0).fit(X, X[:, 0])
    few = plots.CriterionDisplay.from_estimator(
        est, X, X[:, 0], bandwidths=[1.0], criterion="mml", max_samples=50
    )
    many = plots.CriterionDisplay.from_estimator(
        est, X, X[:, 0], bandwidths=[1.0], criterion="mml", max_samples=300
    )
    assert abs(few.values[0, 0]) < abs(many.values[0, 0])


def test_the_curve_of_a_display_is_the_prediction(curve):
    X, y = curve
    est = JacobianKernelRidge(bandwidth=0.5).fit(X, y)
    display = plots.CurveDisplay.from_estimator(est, X, y, points=7)
    np.testing.assert_allclose(display.prediction, est.predict(display.x[:, None]))
    assert (display.x[0], display.x[-1]) == (X.min(), X.max())


def test_a_curve_display_has_the_interval_that_was_asked_for(curve):
    X, y = curve
    est = JacobianKernelRidge(bandwidth=0.5).fit(X, y)
    display = plots.CurveDisplay.from_estimator(est, X, y, coverage=0.8, points=5)
    np.testing.assert_array_equal(
        display.interval, est.predict_interval(display.x[:, None], coverage=0.8)
    )
    assert plots.CurveDisplay.from_estimator(est, X, y).interval is None


def test_the_surface_of_a_display_is_the_prediction(surface):
    X, y = surface
    est = JacobianKernelRidge(bandwidth=0.5).fit(X, y)
    display = plots.SurfaceDisplay.from_estimator(est, X, points=5)
    here = est.predict([[display.x_1[3], display.x_2[1]]])[0]
    assert display.prediction[1, 3] == pytest.approx(here)


def test_displays_know_columns_by_name(table):
    pd = pytest.importorskip("pandas")
    X, y = pd.DataFrame(table[0], columns=["age", "dose", "ratio"]), table[1]
    est = JacobianKernelRidge(bandwidth=3.0).fit(X, y)
    display = plots.SlopeDisplay.from_estimator(est, X, feature="dose")
    assert display.ax_.get_xlabel() == "dose"
    assert plots.CurveDisplay.from_estimator(est, X, feature="ratio").name == "ratio"
    assert plots.SurfaceDisplay.from_estimator(est, X, features=("ratio", 0)).names == (
        "ratio",
        "age",
    )
    with pytest.raises(ValueError, match="`feature` must be one of 'age', 'dose', 'ratio'"):
        plots.SlopeDisplay.from_estimator(est, X, feature="weight")


def test_importances_of_a_linear_function_are_its_slopes_times_the_deviations(rng):
    X = rng.standard_normal((200, 2)) * [1, 3]
    y = 2 * X[:, 0] - X[:, 1]
    est = JacobianKernelRidge(bandwidth=30.0, alpha=1e-8).fit(X, y)
    display = plots.SlopeDisplay.from_estimator(est, X)
    # A wide kernel follows a plane to a few parts in a thousand.
    np.testing.assert_allclose(display.importances, [2, 1] * X.std(axis=0), rtol=1e-2)


DISPLAYS = [name for name in plots.__all__ if name.endswith("Display")]


def drawn(name, est, X, y):
    """A display, of X and y where it takes them."""
    make = getattr(plots, name).from_estimator
    taken = inspect.signature(make).parameters
    return make(
        est, *(Z for part, Z in (("X", X), ("y", y)) if part in taken), ax=plt.figure().gca()
    )


def numbers_of(display):
    """All numbers that a display keeps, by name."""
    kept = {name: value for name, value in vars(display).items() if not name.endswith("_")}
    kept |= vars(kept.pop("curve", object)) if "curve" in kept else {}
    kept |= kept.pop("effects").dict() if "effects" in kept else {}
    return {
        name: np.asarray(value, dtype=float)
        for name, value in kept.items()
        if np.asarray(value).dtype.kind in "fi"
    }


@pytest.mark.parametrize("name", [name for name in DISPLAYS if name != "ChoiceDisplay"])
def test_a_display_of_a_pipeline_is_that_of_a_model_that_scales_by_itself(name, table):
    X, y = table
    pipeline = make_pipeline(StandardScaler(), JacobianKernelRidge(1.5, 0.1)).fit(X, y)
    itself = JacobianKernelRidge(1.5, 0.1, metric="scaled").fit(X, y)
    found, expected = (numbers_of(drawn(name, est, X, y)) for est in (pipeline, itself))
    assert set(found) == set(expected) != set()
    for part, value in found.items():
        # Places around the rows are drawn in coordinates that differ in their last digits.
        np.testing.assert_allclose(value, expected[part], rtol=1e-6, err_msg=part)


def test_the_choice_of_a_pipeline_s_last_step_is_drawn(surface):
    pipeline = make_pipeline(StandardScaler(), JacobianKernelRidge(metric="diagonal"))
    display = drawn("ChoiceDisplay", pipeline.fit(*surface), *surface)
    assert display.choices == pipeline[-1].choices_


def test_a_pipeline_gives_the_names_of_its_columns(table):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(table[0], columns=["age", "dose", "ratio"])
    pipeline = make_pipeline(StandardScaler(), JacobianKernelRidge(1.5, 0.1)).fit(X, table[1])
    display = plots.CurveDisplay.from_estimator(pipeline, X, feature="dose", coverage=0.9)
    assert display.name == "dose"
    assert (display.x[0], display.x[-1]) == pytest.approx((X["dose"].min(), X["dose"].max()))
    effects = plots.EffectsDisplay.from_estimator(pipeline, ax=plt.figure().gca())
    assert [tick.get_text() for tick in effects.ax_.get_yticklabels()] == list(X.columns)


@pytest.mark.parametrize("name", DISPLAYS)
def test_a_pipeline_that_ends_in_another_model_is_refused(name, surface):
    pipeline = make_pipeline(StandardScaler(), Ridge()).fit(*surface)
    with pytest.raises(TypeError, match="a Pipeline that ends in one, got StandardScaler, Ridge"):
        drawn(name, pipeline, *surface)


@pytest.mark.parametrize("name", [*CALLS, *DISPLAYS])
def test_labels_of_axes_are_words_and_no_names_of_parameters(name, table):
    """Names of columns are the user's own."""
    pd = pytest.importorskip("pandas")
    if name in CALLS:
        named = {"plot_criteria": "loo", "plot_slopes": "age"}.get(name, "")  # by the caller
        ax = CALLS[name]()
    else:
        X, named = pd.DataFrame(table[0], columns=["age", "dose", "ratio"]), "age dose ratio"
        est = JacobianKernelRidge(1.5, 0.1, metric="diagonal").fit(X, table[1])
        ax = drawn(name, est, X, table[1]).ax_
    bars = [each.get_ylabel() for each in ax.figure.axes if each is not ax]
    code = {*inspect.signature(JacobianKernelRidge).parameters, "loo", "gcv", "mml", "sigma"}
    for label in (ax.get_xlabel(), ax.get_ylabel(), *bars):
        assert label in named.split() or label == "" or (len(label) > 3 and label not in code)
    assert ax.get_xlabel() or ax.get_ylabel() or name in ("plot_metric", "MetricDisplay")


@pytest.mark.parametrize("metric", ["euclidean", "geodesic", "precomputed"])
def test_criteria_are_those_of_the_fit_whatever_is_set_afterwards(surface, metric):
    X, y = surface
    est = JacobianKernelRidge(1.0, 0.1, metric="scaled").fit(X * [1, 50], y)
    known = plots.CriterionDisplay.from_estimator(est, X * [1, 50], y)
    est.set_params(metric=metric)
    found = plots.CriterionDisplay.from_estimator(est, X * [1, 50], y)
    np.testing.assert_array_equal(found.bandwidths, known.bandwidths)
    np.testing.assert_array_equal(found.values, known.values)


@pytest.mark.parametrize("criterion", ["loo", "gcv", "mml"])
def test_criteria_are_written_in_words(curve, criterion):
    est = JacobianKernelRidge().fit(*curve)
    display = plots.CriterionDisplay.from_estimator(
        est, *curve, criterion=criterion, bandwidths=[0.2, 0.5]
    )
    assert " " in display.ax_.get_ylabel() or "-" in display.ax_.get_ylabel()


@pytest.mark.parametrize("name", DISPLAYS)
def test_a_display_can_be_drawn_again(name, surface):
    X, y = surface
    est = JacobianKernelRidge(metric="diagonal").fit(X, y)
    display = drawn(name, est, X, y)
    first = display.ax_
    _, ax = plt.subplots()
    assert display.plot(ax=ax) is display
    assert display.ax_ is ax is not first
    assert display.figure_ is ax.figure
    assert display.artists_
    assert all(artist.axes is ax for artist in display.artists_)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.plot_norm(SIGMAS, 1 / SIGMAS, j_a=SIGMAS, j_b=2 * SIGMAS),
        lambda: plots.plot_norms(SIGMAS, 1 / SIGMAS, SIGMAS),
        lambda: plots.plot_criteria(SIGMAS, {k: [3, 1, 2, 4] for k in ("loo", "gcv", "mml")}),
    ],
)
def test_curves_of_one_picture_differ_in_their_dashes_too(draw):
    """So that they are told apart without colours."""
    dashes = [line.get_linestyle() for line in draw().lines if line.get_linestyle() != "None"]
    assert len(set(dashes)) == len(dashes) > 1


@pytest.mark.parametrize(
    ("display", "options"),
    [
        ("CurveDisplay", {}),
        ("SurfaceDisplay", {}),
        ("SlopeDisplay", {"feature": 0}),
        ("SlopeBandDisplay", {}),
        ("AverageCurveDisplay", {}),
    ],
)
def test_a_model_of_several_targets_is_not_drawn_as_one(rng, display, options):
    X = rng.uniform(size=(20, 2))
    est = JacobianKernelRidge().fit(X, np.column_stack([X[:, 0], X[:, 1]]))
    with pytest.raises(ValueError, match="`estimator` must have one target to be drawn, got 2"):
        getattr(plots, display).from_estimator(est, X, **options)


def test_a_criterion_of_several_targets_is_not_drawn_as_one(rng):
    X = rng.uniform(size=(20, 2))
    est = JacobianKernelRidge().fit(X, X)
    with pytest.raises(ValueError, match="`estimator` must have one target to be drawn, got 2"):
        plots.CriterionDisplay.from_estimator(est, X, X)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("AverageCurveDisplay", {}),
        ("CriterionDisplay", {"y": [0, 1] * 10}),
        ("CurveDisplay", {}),
        ("JacobianNormDisplay", {"y": [0, 1] * 10}),
        ("SlopeBandDisplay", {}),
        ("SlopeDisplay", {"feature": 0}),
        ("SurfaceDisplay", {}),
    ],
)
def test_a_classifier_where_one_target_is_drawn_is_refused(rng, name, options):
    X = rng.uniform(size=(20, 2))
    est = JacobianKernelClassifier(0.5).fit(X, [0, 1] * 10)
    with pytest.raises(TypeError, match=r"must be a Jac.*, got JacobianKernelClassifier\.$"):
        getattr(plots, name).from_estimator(est, X, **options)


def test_the_choice_and_the_metric_of_a_fit_are_drawn(rng):
    X = rng.standard_normal((150, 3))
    est = AutoKernelRidge(random_state=0).fit(X, np.sin(2 * X[:, 0]))
    choices = plots.ChoiceDisplay.from_estimator(est)
    labels = [label.get_text() for label in choices.ax_.get_yticklabels()]
    assert len(labels) == len(est.choices_)
    assert labels[0].startswith(est.choices_[0]["kernel"])
    _, ax = plt.subplots()
    drawn = plots.MetricDisplay.from_estimator(est, ax=ax)
    weights = np.diag(drawn.metric)
    assert weights.argmax() == 0
    np.testing.assert_allclose(drawn.metric, drawn.metric.T)


def test_a_fit_without_a_choice_has_none_to_draw(curve):
    est = JacobianKernelRidge().fit(*curve)
    with pytest.raises(ValueError, match="`estimator` must have chosen a kernel or a metric"):
        plots.ChoiceDisplay.from_estimator(est)


def test_effects_are_drawn_where_their_estimates_are(surface):
    X, y = surface
    est = JacobianKernelRidge(0.7, 0.1).fit(X, y)
    display = plots.EffectsDisplay.from_estimator(est, robust=True)
    found = est.effects(robust=True).dict()
    np.testing.assert_allclose(display.ax_.lines[0].get_xdata(), found["estimate"])
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["x0", "x1"]
    assert display.effects.noise == "robust"


def test_effects_of_groups_and_contrasts_are_named(rng):
    X = np.column_stack([rng.standard_normal(40), np.arange(40) % 2])
    est = JacobianKernelRidge(1.0, 0.1).fit(X, X[:, 0] + X[:, 1])
    display = plots.EffectsDisplay.from_estimator(est, variables=1, by=np.arange(40) % 4 > 1)
    names = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert names == ["x1 (1 - 0) [False]", "x1 (1 - 0) [True]"]


def test_a_band_of_slopes_is_that_of_their_standard_errors(surface):
    X, y = surface
    est = JacobianKernelRidge(0.7, 0.1).fit(X, y)
    display = plots.SlopeBandDisplay.from_estimator(est, X, feature=1, level=0.5)
    J, std = est.jacobian(X, return_std=True)
    np.testing.assert_allclose(display.slopes, J[:, 1])
    # Student's t with about 60 degrees of freedom has its quartiles at 0.68.
    np.testing.assert_allclose((display.high - display.low) / (2 * std[:, 1]), 0.68, atol=0.01)


def test_slopes_of_a_model_that_follows_its_rows_have_no_band(curve):
    est = JacobianKernelRidge(0.05, 1e-9).fit(*curve)
    with pytest.warns(UserWarning, match="at least one residual degree of freedom"):
        display = plots.SlopeBandDisplay.from_estimator(est, curve[0])
    assert np.isnan(display.low).all()
    assert np.isnan(display.high).all()
    assert np.isfinite(display.slopes).all()


def test_an_average_curve_is_the_partial_dependence(surface):
    X, y = surface
    est = JacobianKernelRidge(0.7, 0.1).fit(X, y)
    curve = plots.AverageCurveDisplay.from_estimator(est, feature=0, values=[0.0, 1.0]).curve
    expected = [est.predict(np.column_stack([np.full(80, v), X[:, 1]])).mean() for v in (0, 1)]
    np.testing.assert_allclose(curve.estimate, expected)
