"""How well a model predicts numbers: the verdict, charts, and doubts about the target."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import numpy as np
from scipy.stats import rankdata

from ._case import Case
from ._charts import interval_chart, observed_chart, residual_chart
from ._figures import Figure
from ._folds import COVERAGE, Folds
from ._pieces import number, percent, share
from ._quality import Remark, outliers
from ._tasks import r2, typical_error

# A column whose ranks agree with those of the target like this may know its answer.
LEAKING_CORRELATION = 0.99


def verdict(case: Case, folds: Folds | None) -> str:
    """How well the model predicts, beside others."""
    target = f"<b>{escape(case.target)}</b>"
    if case.y.var() == 0:
        return f"The target {target} is constant, so R² is not defined."
    if folds is None:
        score, error = (f(case.y, case.loo_predictions) for f in (r2, typical_error))
        return (
            f"Predicting each row of {target} from all others, the model reaches "
            f"<b>R² = {share(score)}</b> and is typically off by {number(error)}."
        )
    ours, trees, linear = (share(r2(folds.observed, found)) for found in folds.predicted.values())
    error = typical_error(folds.observed, next(iter(folds.predicted.values())))
    return (
        f"On {folds.which}, the model reaches <b>R² = {ours}</b> for {target} and is typically off "
        f"by <b>{number(error)}</b>; on the same rows boosted trees reach R² = {trees} and a "
        f"linear model {linear}.{_between(case, folds)}"
    )


def _between(case: Case, folds: Folds) -> str:
    """How well rows are predicted from those before and after them, where the others are later."""
    if not folds.later:
        return ""
    score = share(r2(case.y, case.loo_predictions))
    return f" Between rows whose values are known, before and after, it reaches R² = {score}."


def words(case: Case, folds: Folds | None) -> str:
    """Text on the charts, and the measured coverage of the intervals."""
    kinder = (
        "but from its neighbours in time: this flatters a model that has to predict the future"
        if folds is not None and folds.later
        else "with kernel, metric, bandwidth and penalty held fixed: a little more favourable than "
        "the comparison"
    )
    text = (
        f"<p>One model is fitted to all {len(case.y):,} rows. In the first two charts each row is "
        f"predicted by that model without the row itself (R² = "
        f"{share(r2(case.y, case.loo_predictions))}), {kinder}.</p>"
    )
    if folds is None:
        return text
    width = float(np.median(np.diff(folds.intervals)))
    return (
        f"{text}<p>Of the {len(folds.observed):,} rows kept aside, "
        f"<b>{percent(folds.coverage)}</b> lie in their {percent(COVERAGE)} interval. The "
        f"median width of the intervals is {number(width)}.</p>"
    )


def figures(case: Case, folds: Folds | None) -> Iterator[Figure]:
    """Observed against predicted, errors, and intervals of rows kept aside."""
    yield Figure(observed_chart(case), f"Observed against predicted {escape(case.target)}")
    yield Figure(residual_chart(case), "Errors against predictions")
    if folds is not None:
        caption = "Intervals of rows kept aside; missed observations are orange"
        yield Figure(interval_chart(case, folds), caption)


def remarks(case: Case) -> Iterator[Remark]:
    """Outliers of the target, and columns that may know it."""
    yield from outliers(case.target, case.y)
    if case.y.var() == 0 or len(case.y) < 10 or len(case.columns) == 1:
        return
    y, varied = rankdata(case.y), case.X.std(axis=0) > 0
    for column in case.columns:
        if column.is_number and varied[column.places[0]]:
            r = float(np.corrcoef(rankdata(case.X[:, column.places[0]]), y)[0, 1])
            if abs(r) > LEAKING_CORRELATION:
                sentence = (
                    f"`{column.name}` orders the rows almost as `{case.target}` does (rank "
                    f"correlation {r:.3f}). Is it known before `{case.target}` is?"
                )
                yield Remark("possible leak", sentence, True)
