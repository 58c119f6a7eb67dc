"""How well a model predicts numbers: the verdict, charts, and doubts about the target."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import numpy as np
from scipy.stats import rankdata

from .._compute.arrays import Indices
from ._case import Case
from ._charts import DRAWN_INTERVALS, interval_chart, observed_chart, residual_chart
from ._figures import Figure, sampled
from ._folds import COVERAGE, OURS, Folds
from ._pieces import number, percent, share, unit_of, unrounded
from ._quality import Remark, leak
from ._tasks import r2, typical_error

# Rank correlation with the target from which a column may reveal the target.
LEAKING_CORRELATION = 0.99
MOST_NAMED = 5  # rows


def verdict(case: Case, folds: Folds | None) -> str:
    """How well the model predicts, compared with other models."""
    target, unit = f"<b>{escape(case.target)}</b>", unit_of(case.target)
    if folds is None:
        score, error = (f(case.y, case.loo_predictions) for f in (r2, typical_error))
        return (
            f"Predicting each row of {target} from all others, the model reaches "
            f"<b>R² = {share(score)}</b> and is typically off by {number(error)}{unit}."
        )
    seen, each = folds.observed, folds.predicted.values()
    ours, trees, linear = (share(r2(seen, found)) for found in each)
    off, *others = (number(typical_error(seen, found)) for found in each)
    return (
        f"On {folds.which}, the model reaches <b>R² = {ours}</b> for {target} and is typically off "
        f"by <b>{off}{unit}</b>; on the same rows boosted trees reach R² = {trees} (off by "
        f"{others[0]}) and a linear model {linear} (off by {others[1]})."
    )


def words(case: Case, folds: Folds | None) -> str:
    """Text about the charts, and the measured coverage of the intervals."""
    text = (
        f"<p>One model is fitted to all {len(case.y):,} rows. In the first two charts, each row is "
        f"predicted by this model without the row itself (R² = "
        f"{share(r2(case.y, case.loo_predictions))}), {_how_kind(case, folds)}.</p>"
    )
    if folds is None:
        return text + _worst(case)
    width = float(np.median(np.diff(folds.intervals)))
    return (
        f"{text}<p>Of the {len(folds.observed):,} rows kept aside, "
        f"<b>{percent(folds.coverage)}</b> lie in their {percent(COVERAGE)} interval; by chance "
        f"alone this share varies between {' and '.join(map(percent, folds.usual_coverage))}. The "
        f"median width of the intervals is {number(width)}{unit_of(case.target)}.</p>{_worst(case)}"
    )


def _how_kind(case: Case, folds: Folds | None) -> str:
    """How leave-one-out compares with rows that the model has never seen."""
    if folds is not None and folds.later:
        return (
            "but from its neighbours in time: this flatters a model that has to predict the future"
        )
    fixed = "with kernel, metric, bandwidth and penalty held fixed"
    if folds is None:
        return f"{fixed}, which is more favourable than rows that it has never seen"
    ours, loo = r2(folds.observed, folds.predicted[OURS]), r2(case.y, case.loo_predictions)
    if loo > ours:
        return f"{fixed}, which is more favourable than the comparison"
    hard = np.setdiff1d(case.far_off, [] if folds.rows is None else folds.rows)
    why = f". The comparison has R² = {share(ours)}: {_named(case, hard)} not among its rows"
    return f"{fixed}{why if len(hard) else ''}"


def _named(case: Case, rows: Indices) -> str:
    """Rows by their numbers, with a verb."""
    if len(rows) == 1:
        return f"{escape(case.row_name(rows[0]))}, which is predicted far off, is"
    return f"{len(rows):,} rows that are predicted far off are"


def _worst(case: Case) -> str:
    """The rows that are predicted far off, and R² without them."""
    far, seen, predicted = case.far_off, case.y, case.loo_predictions
    if not len(far):
        return ""
    rows = [
        f"{escape(case.row_name(i))} (observed {unrounded(float(seen[i]))}, "
        f"predicted {number(predicted[i])})"
        for i in far[:MOST_NAMED]
    ]
    more = f", and {len(far) - len(rows):,} more" if len(far) > len(rows) else ""
    score, rest = (
        share(r2(seen, predicted)),
        share(r2(*(np.delete(v, far) for v in (seen, predicted)))),
    )
    which = "it" if len(far) == 1 else "them"
    without = f" Without {which} R² is {rest} instead of {score}." if rest != score else ""
    left = "" if case.named_in_file else " or rows that are left out"
    return (
        '<p><span class="doubt">⚠</span> Predicted far off, with an error more than four times the '
        f"90 % quantile: {', '.join(rows)}{more}.{without} Row numbers do not count the "
        f"header{left}.</p>"
    )


def figures(case: Case, folds: Folds | None) -> Iterator[Figure]:
    """Observed against predicted, errors, and intervals of rows kept aside."""
    edge = "; rows far off are orange, at the edge if they lie beyond" if len(case.far_off) else ""
    of = f"{escape(case.target)}{sampled(case)}"
    yield Figure(observed_chart(case), f"Observed against predicted {of}{edge}")
    yield Figure(
        residual_chart(case),
        f"Errors (observed minus predicted) against predictions{sampled(case)}{edge}",
    )
    if folds is not None:
        caption = f"Intervals of {_drawn(folds)} kept aside; missed observations are orange"
        yield Figure(interval_chart(case, folds), caption)


def _drawn(folds: Folds) -> str:
    """The rows whose intervals are drawn: all, or a sample."""
    n = len(folds.observed)
    if n <= DRAWN_INTERVALS:
        return "rows"
    return f"{DRAWN_INTERVALS} rows, a sample of the {n:,}"


def remarks(case: Case) -> Iterator[Remark]:
    """Columns that may reveal the target, except the time, which is always known."""
    if case.y.var() == 0 or len(case.y) < 10 or len(case.varied) == 1:
        return
    y, varied = rankdata(case.y), case.X.std(axis=0) > 0
    for column in case.columns:
        if column.is_number and varied[column.places[0]] and column.places[0] != case.table.time:
            r = float(np.corrcoef(rankdata(case.X[:, column.places[0]]), y)[0, 1])
            if abs(r) > LEAKING_CORRELATION:
                almost = f"almost as `{case.target}` does (rank correlation {r:.3f})"
                yield leak(column.name, case.target, f"orders the rows {almost}")
