"""What speaks against a model is said in the verdict and below "Can it be trusted?"."""

import re

import numpy as np
import pytest

from inside import OURS, TREES, Case, Folds, ModelSpec, diagnosis, doubts, table_of
from jacridge.report import report_page


def judged(y, ours, linear, half_width=1.0, **later):
    """A case and folds with these predictions; boosted trees predict nothing."""
    case = Case(table_of(np.arange(float(len(y)))[:, None], ["hour"], {}), y, "y", ModelSpec(2.0))
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
    nothing = "predicts y better than its mean does, and this model predicts it worse."
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
