"""What speaks against a model is said in the verdict and below "Can it be trusted?"."""

import re

import numpy as np
import pytest

from inside import OURS, TREES, Case, Folds, ModelSpec, diagnosis, doubts, table_of
from jacridge.diagnostics import Diagnosis, Finding
from jacridge.report import report_page


def judged(y, ours, linear, half_width=1.0, **later):
    """A case and folds with these predictions; boosted trees predict nothing."""
    case = Case(
        table_of(np.arange(float(len(y)))[:, None], ["hour"], {}),
        y,
        "y",
        ModelSpec("auto" if later else 2.0),
    )
    case.__dict__.update(diagnosis=None, loo_outputs=ours)
    outputs = {OURS: ours, TREES: np.full(len(y), y.mean() + 10 * y.std()), "linear model": linear}
    ends = np.column_stack([ours - half_width, ours + half_width])
    return case, Folds(y, outputs, {}, ends, 30, **({"count": 1} | later))


def said(*found):
    """The verdict's doubts and those below, without tags."""
    case, folds = found
    texts = doubts(case, folds, []), diagnosis(case, folds, [])
    return [re.sub("<[^>]+>", "", text) for text in texts]


def test_a_model_that_is_worse_than_the_mean_is_doubted_above_and_below(rng):
    y = rng.normal(size=100)
    verdict, trust = said(*judged(y, 3 * y + 5, y.mean() + 0.3 * rng.normal(size=100), 9.0))
    nothing = "predicts y better than its mean, and this model predicts it worse."
    assert verdict == f"⚠ None of them {nothing}"
    assert f"None of the models {nothing} Columns that tell more about it are needed" in trust
    assert "No problems" not in trust


def test_the_cycle_of_a_series_that_no_model_can_go_on_with_is_named(rng):
    hour = np.arange(120.0)
    y = np.sin(hour / 12 * np.pi) + 0.01 * hour + 0.2 * rng.normal(size=120)
    found = judged(y, 3 * y + 5, y.mean() + 0 * y, 9.0, later=True, count=3)
    _, trust = said(*found)
    assert "y repeats after about 24 rows: add a column with the place in this cycle" in trust
    angle = np.column_stack([hour, np.sin(hour / 12 * np.pi), np.cos(hour / 12 * np.pi)])
    told = Case(table_of(angle, ["hour", "a", "b"], {}), y, "y", ModelSpec(2.0))
    told.__dict__.update(diagnosis=None, loo_outputs=y)
    assert "repeats" not in said(told, found[1])[1]  # as a column has the cycle
    noise = rng.normal(size=120)
    found = judged(noise, 3 * noise + 5, noise.mean() + 0 * noise, 9.0, later=True, count=3)
    assert "repeats" not in said(*found)[1]


def test_intervals_that_fail_on_the_latest_rows_are_a_doubt(rng):
    """All together they hold enough."""
    y = rng.normal(size=300)
    ours = y + 0.1
    ours[-25:] += 2
    verdict, trust = said(*judged(y, ours, y + 9, later=True, count=3))
    assert "90\xa0% intervals that hold 75\xa0% of the latest rows" in verdict
    assert "hold only 75\xa0% of the latest rows" in trust
    verdict, _ = said(*judged(y, ours, y + 9, count=3))
    assert "intervals" not in verdict


def test_no_gain_of_a_search_is_claimed_where_none_was_made(rng):
    found = judged(rng.normal(size=100), np.zeros(100), np.zeros(100), 9.0, later=True, count=3)
    finding = Finding("gain of a search", np.nan, False, "Not compared: later rows chose.")
    found[0].__dict__.update(diagnosis=Diagnosis((finding,)))
    trust = said(*found)[1]
    assert "other bandwidthsNot compared: later rows chose." in trust
    assert "hardly at all" not in trust


def test_a_fit_that_is_far_off_on_later_rows_is_not_explained_by_the_mean(rng):
    y = rng.normal(size=100)
    trust = said(*judged(y, 3 * y + 5, y.mean() + 0 * y, 9.0, later=True, count=3))[1]
    assert "at first goes on with the last rows, which may lead far off" in trust


@pytest.mark.parametrize(("noise", "failed"), [(0.1, False), (2.0, True)])
def test_a_choice_by_later_rows_that_failed_is_a_doubt_with_a_way_out(rng, noise, failed):
    y = rng.normal(size=100)
    case, folds = judged(y, y + noise * rng.normal(size=100), y + 9, 9.0, later=True, count=3)
    verdict, trust = said(case, folds)
    assert ("a choice by later rows that failed" in verdict) == failed
    assert ("Choosing the model by later rows failed" in trust) == failed
    assert ("--held-out random" in trust) == failed


@pytest.mark.slow
def test_a_series_by_the_hour_is_told_to_have_a_cycle(rng):
    hour = np.arange(240.0)
    y = 12 + 5 * np.sin(hour / 12 * np.pi) + 0.5 * rng.normal(size=240)
    page = report_page(hour[:, None], y, features=["hour"], target="temp")
    verdict = page[page.index('id="verdict"') : page.index("<nav")]
    trust = page[page.index('id="trust"') : page.index('id="curious"')]
    assert "⚠" in verdict
    assert "No other problems" not in verdict
    assert "<b>temp</b> repeats after about 24 rows" in trust


@pytest.mark.parametrize(
    ("code", "count", "found"),
    [
        (-999.0, 12, True),
        (-1.0, 3, True),
        (9999.0, 12, True),
        (-999.0, 2, False),
        (250.0, 12, False),
    ],
)
def test_values_that_look_like_codes_for_missing_ones_are_named(rng, code, count, found):
    """A value at the end of a column that others reach, or that occurs twice, is no code."""
    X = rng.uniform(20, 240, (80, 2))
    X[rng.choice(80, count, replace=False), 0] = code
    given = {"features": ["size", "age"], "target": "price", "bandwidth": 2.0}
    page = report_page(X, X[:, 1], **given)
    named = f"{count} values of <code>size</code> are {code:.0f}".replace("-", "−")
    verdict = page[page.index('id="verdict"') : page.index("<nav")]
    assert (f"⚠ {named}" in verdict) == found
    advice = ", which looks like a code for a missing value. Replace them by empty cells."
    assert (f"{named}{advice}" in page) == found


@pytest.mark.parametrize("has_id", [False, True])
def test_a_row_is_named_as_the_file_has_it(run, tmp_path, rng, has_id):
    """Gaps above it are counted as well; an id that is left out is named."""
    x = rng.normal(size=60)
    y = x.copy()
    y[40] = 900
    first = "Car_id," if has_id else ""
    ids = [f"<C{i * i % 61}-{i}>," if has_id else "" for i in range(60)]
    cells = ["" if i in (3, 8) else f"{x[i]:.4f}" for i in range(60)]
    lines = [f"{a}{b},{c:.4f}" for a, b, c in zip(ids, cells, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join([f"{first}x,y", *lines]))
    given = ("-t", "y", "--rule", "2", "--alpha", "0.1")
    code, _, err = run("report", tmp_path / "t.csv", *given, "-o", tmp_path / "t.html")
    assert code == 0, err
    page = (tmp_path / "t.html").read_text()
    name = "row 41 with Car_id &lt;C14-40&gt;" if has_id else "row 41"
    for text in (
        f"{name} (observed 900, predicted",
        f"{name} predicted far off",
        f"R{name[1:]} is far from the prediction",
        f"900, in {name}",
        "Row numbers do not count the header.",
    ):
        assert text in page


def test_zeros_and_a_few_levels_are_no_codes(rng):
    X = np.column_stack([rng.uniform(500, 600, 60), rng.choice([-1.0, 1.0, 2.0], 60)])
    X[:20, 0] = 0
    assert "looks like a code" not in report_page(X, X[:, 0], bandwidth=2.0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [(4, "A report needs at least 10 rows"), (30, "The target `price` must vary, got 5 in all 30")],
)
def test_a_table_with_nothing_to_report_ends_before_a_page(run, tmp_path, rows, message):
    lines = [f"{i * i % 17},5" if rows > 10 else f"{i * i},{i % 3}" for i in range(rows)]
    (tmp_path / "t.csv").write_text("\n".join(["x,price", *lines]))
    page = tmp_path / "page.html"
    code, _, err = run("report", tmp_path / "t.csv", "-t", "price", "-o", page)
    assert code == 2
    assert f"Error: {message}" in err
    assert not page.exists()


def test_numbers_that_are_no_doubts_need_no_formulas(rng):
    """Names of the paper's numbers are for those who ask the library."""
    X = rng.normal(size=(60, 2))
    page = report_page(X, X[:, 0] + 0.1 * rng.normal(size=60))
    passed = page[page.index("none of them a reason for doubt") : page.index('id="curious"')]
    names = re.findall(r'<td class="name">(.*?)</td>', passed)
    assert {"the choice", "width of the kernel", "rounding errors", "flexibility"} <= {*names}
    assert not re.search(r"l_max|lambda|sigma|0 less|0 more", passed)
