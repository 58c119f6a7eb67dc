"""The sentences and tables of the report, as HTML; everything from the data is escaped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from html import escape

import numpy as np

from .._compute.arrays import Array
from ..effects import Effect, Effects
from ._case import Case, answer
from ._charts import DRAWN_CLASSES, LOOKS, lines_of
from ._columns import WAVES, YEAR, Column
from ._effects import BACKGROUND, FLAT, along, are_flat, cycle_effects, has_no_error
from ._folds import Folds
from ._pieces import (
    breakable,
    brief,
    day_of,
    number,
    percent,
    plural,
    scroll,
    share,
    table,
    unrounded,
)
from ._units import effects_in_units, rises_and_falls

MOST_COLUMNS = 20
MOST_EFFECTS = 30
# What the standard errors of effects hold fixed, by how they treat the metric.
METRIC_IN_ERRORS = {
    "given": "the standard errors take kernel, metric, bandwidth and penalty as given",
    "relearned": (
        "the standard errors include the error of the learned metric and take kernel, bandwidth "
        "and penalty as given"
    ),
    "learned": (
        "the standard errors take kernel, metric, bandwidth and penalty as given and may be "
        "several times too small, because the metric was learned from the same rows; "
        "<code class=whole>--metric scaled</code> needs no learned metric"
    ),
}
KINKS = (
    " The kernel has kinks at the training rows, which bias slopes: their intervals miss the true "
    "effect too often. <code class=whole>--kernel matern32</code> avoids this."
)


def of_rows(case: Case, m: int) -> str:
    """All rows, or how many were drawn."""
    n = len(case.X)
    return f"all {n:,} rows" if m == n else f"a random sample of {m:,} of the {n:,} rows"


def facts(case: Case, left_out: int) -> str:
    """The table in numbers: rows, columns, rows left out."""
    n = len(case.X)
    texts = [plural(n, "row"), plural(len(case.columns), "feature")]
    if left_out:
        texts.append(f"{left_out:,} of {n + left_out:,} rows in the file are left out")
    return ", ".join(texts) + "."


def comparison(case: Case, folds: Folds | None) -> str:
    """Comparison of the models on the rows kept aside."""
    if folds is None:
        return "<p>Too few rows for a comparison with other models.</p>"
    written = dict(zip(case.task.scores, (share, number), strict=True))
    rows = [
        (
            name,
            *(written[s](f(folds.observed, outputs)) for s, f in case.task.scores.items()),
            brief(folds.seconds[name]),
        )
        for name, outputs in folds.predicted.items()
    ]
    trees, linear = case.task.rivals
    fitted = (
        f"{len(folds.observed):,} rows were kept aside and predicted by models fitted to earlier "
        f"rows only, because the rows are in order of <b>{escape(case.table.time_name)}</b>: rows "
        "drawn at random would flatter a model that has to predict the future."
        if folds.later
        else folds.how
    )
    words = (
        f"{fitted} Every model made all its choices without them. Boosted trees are scikit-learn's "
        f"{trees}, the {case.task.linear_name} its {linear}."
    )
    shown = scroll(table(("model", *case.task.scores, "seconds per fit"), rows, 0))
    return f'{shown}<p class="small">{words} {case.task.second_score}</p>'


def importances(case: Case, found: list[tuple[Column, float]]) -> str:
    """A row with a bar for each column, the most important first; empty for a single column."""
    if len(found) == 1:
        return ""
    if are_flat(case, found):
        return (
            f"<p>No column changes the predictions of <b>{escape(case.target)}</b> by more than "
            f"{percent(FLAT)} of its standard deviation.</p>"
        )
    largest = found[0][1]
    lines = "".join(
        f'<tr><td class="name">{breakable(column.name)}</td>'
        f'<td class="bar"><span style="width:{100 * size / largest:.1f}%"></span></td>'
        f'<td class="number">{number(size)}</td></tr>'
        for column, size in found[:MOST_COLUMNS]
    )
    more = len(found) - MOST_COLUMNS
    note = f'<p class="small">{plural(more, "column")} of less importance not shown.</p>'
    head = '<tr><th>column</th><th></th><th class="number">importance</th></tr>'
    words = (
        f"Importance: how much the prediction of <b>{escape(case.target)}</b> typically changes "
        "when a column takes the value of another row."
    )
    bars = f'<table class="wide"><thead>{head}</thead><tbody>{lines}</tbody></table>'
    return f"<div><p>{words}</p>{scroll(bars)}{note if more > 0 else ''}</div>"


def effects_text(case: Case) -> str:
    """Text about the effect curves."""
    drawn, rows = lines_of(case), of_rows(case, len(case.some_rows(BACKGROUND)))
    dates = (
        " A date changes its year and its month together; a chart of months leaves the trend out."
        if any(len(along(case, column)) > 1 for column in case.columns)
        else ""
    )
    if len(drawn) > 1:
        keys = ", ".join(
            f'<span class="key {look}">{escape(case.classes[k])}</span>'
            for look, k in zip(LOOKS, drawn, strict=False)
        )
        return (
            f"Each line is the mean probability of a class of <b>{escape(case.target)}</b> as one "
            f"column changes and the others keep their values, over {rows}: {keys}.{dates}"
        )
    what = "mean prediction" if case.main is None else f"mean probability of {escape(case.shown)}"
    sure = " The inner band is the 95 % interval of the mean." if case.main is None else ""
    return (
        "How to read a chart: its title is a column, whose values go from left to right; the "
        "higher the line, the higher the prediction, and a flat line means no effect. "
        f"Each line is the {what} as one column changes and the others keep their values.{dates}"
        f"{sure} The {'outer ' if sure else ''}band holds the middle 80 % of the curves of single "
        "rows: where it is wide, the effect depends on the other columns. Ticks at the bottom are "
        "values of rows; curves end at the 1 % and the 99 % quantile. The mean is that over "
        f"{rows}."
    )


def effects(case: Case, sizes: list[tuple[Column, float]]) -> str:
    """The table of average effects in the columns' own units, the most important column first.

    Empty if no column has an effect.
    """
    if are_flat(case, sizes):
        return ""
    if len(case.classes) > DRAWN_CLASSES:  # too many to read, and to compute for a page
        return (
            "<h3>Average effects</h3><p>The command <code>jacridge effects</code> prints the "
            f"average effects on the probabilities of all {len(case.classes)} classes.</p>"
        )
    terms = [
        name
        for column, _ in sizes
        for name in (
            [column.name] if column.levels else [case.table.names[i] for i in column.places]
        )
    ]
    shown = [name for name in terms if not name.endswith(WAVES)]
    given = case.estimator, case.table, case.scale, shown
    found = answer(effects_in_units, *given, centre=case.centre)
    if found is None:
        return ""
    unknown = any(has_no_error(e.estimate, e.std_error, e.conf_high) for e in found)
    each, many = _of_shown(case, found), len(case.classes) > 2
    rows = [_effect_row(effect, unknown, many) for effect in each[:MOST_EFFECTS]]
    both = any(map(rises_and_falls, each[:MOST_EFFECTS])) and not unknown
    with_slopes = {effect.term for effect in found}
    curved = any(name.endswith(YEAR) and name not in with_slopes for name in shown)
    seasons = [] if unknown else [row for column, _ in sizes for row in _seasons(case, column)]
    words = (
        " Where a column rises and falls, the average says little: see its chart." if both else "",
        " A date over which the prediction rises and falls has no average slope." if curved else "",
        " For months, weekdays and hours, the effect is the highest minus the lowest prediction."
        if seasons
        else "",
    )
    more = plural(len(found) - len(rows), "more effect")
    rest = f" {more} not shown: <code>jacridge effects</code>." if len(found) > len(rows) else ""
    what = "prediction" if case.main is None else "probability"
    of = "a class of " if many else ""
    head = (
        "column",
        *(["class"] if many else []),
        "effect",
        *(() if unknown else ("standard error", "95 % interval", "p")),
    )
    errors = (
        "there are too few rows for standard errors: less than one degree of freedom is left"
        if unknown
        else METRIC_IN_ERRORS[found.metric]
    )
    bias = "the bias" if case.classes else "the bias of ridge regression"
    bias = "" if unknown else f" The errors do not include {bias}."
    kinks = KINKS if found.has_kinks and not unknown else ""
    return (
        f"<h3>Average effects</h3><p>How much the {what} of {of}"
        f"<b>{escape(case.target if many else case.shown)}</b> changes, on average over all "
        f"{len(case.X):,} rows, per unit of a column, or from one category to another."
        f"{''.join(words)} These are associations, not causes; {errors}.{bias}{kinks}{rest}</p>"
        f"<div class=blocks>{scroll(table(head, [*rows, *seasons], labelled=True))}</div>"
    )


def _of_shown(case: Case, found: Effects) -> list[Effect]:
    """Effects on what the charts show: a number, the main one of two classes, or all of a few."""
    if len(case.classes) == 2 and case.main == 0:  # those on the second one are the negatives
        ends = {"conf_low": "conf_high", "conf_high": "conf_low", "q25": "q75", "q75": "q25"}
        turned = {"estimate": "estimate", **ends}
        return [replace(e, **{a: -getattr(e, b) for a, b in turned.items()}) for e in found]
    order = list(dict.fromkeys((e.term, e.contrast) for e in found))
    return sorted(found, key=lambda e: order.index((e.term, e.contrast)))


def _seasons(case: Case, column: Column) -> Iterator[tuple[str, ...]]:
    """Rows for the cycles of a date: the highest and the lowest point of the chart."""
    many = len(case.classes) > 2
    for k, name, contrast, size in cycle_effects(case, column, lines_of(case)):
        target = [escape(case.classes[k])] if many else []
        yield breakable(f"{name}: {contrast}"), *target, number(size), "–", "–", "–"


def _effect_row(effect: Effect, unknown: bool, many: bool) -> tuple[str, ...]:
    """Cells of one effect, of many classes with its class, and without errors that are unknown."""
    name = effect.term if effect.kind == "slope" else f"{effect.term}: {effect.contrast}"
    if effect.kind == "slope" and name.endswith(YEAR):
        name = f"{name.removesuffix(YEAR)}, {effect.contrast}"
    target = [escape(str(effect.target))] if many else []
    if unknown:
        return breakable(name), *target, number(effect.estimate)
    p = "&lt; 0.001" if effect.p_value < 1e-3 else f"{effect.p_value:.3f}".replace("nan", "–")
    both = rises_and_falls(effect)
    return (
        breakable(f"{name} (rises and falls)" if both else name),
        *target,
        number(effect.estimate),
        number(effect.std_error),
        f"{number(effect.conf_low)} to {number(effect.conf_high)}",
        p,
    )


def columns(case: Case) -> str:
    """Lowest and highest value of each column in full, its mean and its spread.

    For a date, the first and the last; sine and cosine of months and weekdays are not shown.
    """
    named = zip([*case.table.names, case.shown], [*case.X.T, case.outcomes], strict=True)
    rows = [_column_row(column, x) for column, x in named if not column.endswith(WAVES)]
    return table(("column", "lowest", "mean", "highest", "deviation"), rows, labelled=True)


def _column_row(column: str, x: Array) -> tuple[str, ...]:
    """Cells of one column."""
    if column.endswith(YEAR) and x.min() >= 1 and x.max() < 9999:
        name = f"{column.removesuffix(YEAR)} (date)"
        first, mean, last = (day_of(v) for v in (x.min(), x.mean(), x.max()))
        return breakable(name), first, mean, last, f"{number(x.std())} years"
    largest = float(np.abs(x).max())
    low, high = unrounded(float(x.min()), largest), unrounded(float(x.max()), largest)
    return breakable(column), low, _mean(x, largest), high, number(x.std())


def _mean(x: Array, largest: float) -> str:
    """The mean with as many digits as the deviation justifies: 2006.1, not 2,010."""
    deviation = x.std()
    digits = 1 - int(np.floor(np.log10(deviation))) if deviation > 0 else 6
    return unrounded(round(float(x.mean()), digits), largest)
