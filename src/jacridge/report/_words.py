"""The sentences and tables of the report, as HTML; whatever came with the data is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np

from .._compute.arrays import Array
from ..diagnostics import Finding
from ..effects import Effect
from ._case import Case, answer
from ._charts import LOOKS, lines_of
from ._columns import WAVES, YEAR, Column
from ._effects import BACKGROUND, FLAT, are_flat, cycles_of, has_no_error
from ._folds import COVERAGE, OURS, TREES, Folds
from ._pieces import (
    breakable,
    brief,
    day_of,
    joined,
    marked_up,
    number,
    percent,
    plain_text,
    plural,
    scroll,
    share,
    table,
    unrounded,
)
from ._quality import POSSIBLE_LEAK, Remark
from ._tasks import r2
from ._units import effects_in_units, rises_and_falls

MOST_COLUMNS = 20

MOST_EFFECTS = 30
CLEARLY = 0.02  # a difference of R2 or accuracy
SLIGHTLY = 0.005
HARDLY = 0.95  # an error is hardly smaller than another above this ratio
FLATTERED = 0.1  # by which the R2 of leave-one-out exceeds that of rows kept aside
MUCH = 0.8  # an error is much smaller than another at this ratio
MOST_ROWS = 1000  # over which effects are averaged
# What the standard errors of effects take as given, by how they treat the metric.
METRIC_IN_ERRORS = {
    "given": "the standard errors take kernel, metric, bandwidth and penalty as given",
    "relearned": (
        "the standard errors include that of the learned metric and take kernel, bandwidth and "
        "penalty as given"
    ),
    "learned": (
        "the standard errors take kernel, metric, bandwidth and penalty as given and may be "
        "several times too small, because the metric was learned from the same rows; "
        "<code>--metric scaled</code> needs no learned metric"
    ),
}
# What the second score is.
SCORES = {
    "regression": "The typical error is the median absolute error, in the units of the target.",
    "classification": "The log-loss is small if the true classes have high probabilities.",
}


def doubts(case: Case, folds: Folds | None, remarks: list[Remark]) -> str:
    """Whether another model would do, and what to check before this one is used, with links."""
    against = [remark for remark in remarks if remark.warning]
    leaks = any(remark.name == POSSIBLE_LEAK for remark in against)
    instead = "" if leaks else _instead(case, folds)
    said = {
        "best single feature": leaks,  # by the remark, with its name
        "leave-one-out R2": _predicts_nothing(case, folds),
    }
    found = [f for f in findings(case) if f.warning and not said.get(f.name)]
    told = [f"⚠ {marked_up(remark.short)}" for remark in against if remark.short]
    counted = len(against) - len(told)
    on_data = plural(counted, "more remark" if told else "remark")
    parts = [
        *(f'<a href="#quality">{text}</a>' for text in told),
        *(f'<a href="#performance">{doubt.short}</a>' for doubt in _unseen(case, folds)),
        *([f'<a href="#trust">{plural(len(found), "finding")} on the model</a>'] if found else []),
        *([f'<a href="#quality">{on_data} on the data</a>'] if counted else []),
    ]
    if not parts:
        return f"{instead}No {'other ' if instead else ''}problems were found."
    return f"{instead}To check: {joined(parts)}."


def findings(case: Case) -> list[Finding]:
    """Findings of the diagnosis; a choice that lost on held-out rows is no check that it passed."""
    if case.diagnosis is None:
        return []
    found = []
    for finding in case.diagnosis.findings:
        loses = finding.name == "gain of the choice" and finding.value < 0
        if not loses:
            found.append(finding)
        elif finding.value < -CLEARLY:
            found.append(replace(finding, name="loss of the choice", warning=True))
    return found


def _unseen(case: Case, folds: Folds | None) -> Iterator[Remark]:
    """Reasons against the model from rows that it has not seen."""
    if folds is not None:
        yield from _kept_aside(folds)
        yield from _flattery(case, folds)
    yield from _far_off(case)


def _kept_aside(folds: Folds) -> Iterator[Remark]:
    """Intervals that do not hold as many of the rows kept aside as they should."""
    if folds.is_narrow:
        held, what = f"{percent(folds.coverage)} of the rows", f"{percent(COVERAGE)} intervals"
        sentence, short = f"{what} hold only {held} kept aside.", f"{what} that hold {held}"
        yield Remark("intervals", sentence, True, short)


def _others(case: Case, folds: Folds | None) -> Iterator[Remark]:
    """Another model that predicts the rows kept aside clearly better."""
    better = _better(case, folds)
    if folds is None or not better or _predicts_nothing(case, folds):
        return
    beyond = (
        " A kernel model returns to the mean beyond the times that it has seen; columns with "
        f"earlier values of <b>{escape(case.target)}</b> may help."
    )
    sentence = f"{_predict_better(better, 'these rows ')}.{beyond if folds.later else ''}"
    yield Remark("rows kept aside", sentence, True)


def _on_rows(case: Case, folds: Folds | None) -> list[Remark]:
    """Everything that was found on rows that the model has not seen."""
    return [*_others(case, folds), *_unseen(case, folds)]


def _predict_better(who: str, rows: str = "") -> str:
    """The sentence on a model that is clearly better."""
    return f"{_subject(who)} predict{'' if who == TREES else 's'} {rows}better"


def _subject(who: str) -> str:
    """A model at the start of a sentence."""
    return f"A {who}" if who in ("linear model", "constant") else who.capitalize()


def _far_off(case: Case) -> Iterator[Remark]:
    """Rows that the model without them predicts far off."""
    far = case.far_off
    if not len(far):
        return
    if len(far) == 1:
        which, verb, each = f"row {far[0] + 1:,}", "is", "it"
    else:
        which, verb, each = plural(len(far), "row"), "are", "each of them"
    sentence = (
        f"{which.capitalize()} {verb} predicted far off by the model without {each}: are the "
        "values right?"
    )
    yield Remark("worst rows", sentence, True, f"{which} predicted far off")


def _flattery(case: Case, folds: Folds) -> Iterator[Remark]:
    """A leave-one-out R² clearly above that of rows kept aside."""
    if case.classes or folds.later:
        return
    ours, loo = r2(folds.observed, folds.predicted[OURS]), r2(case.y, case.loo_predictions)
    if loo - ours > FLATTERED:
        sentence = (
            f"R² is {share(ours)} on rows kept aside and {share(loo)} by leave-one-out, which "
            "holds kernel, metric, bandwidth and penalty fixed: trust the lower one."
        )
        short = f"R² of {share(ours)} against {share(loo)} by leave-one-out"
        yield Remark("leave-one-out", sentence, True, short)


def _scores(case: Case, folds: Folds) -> dict[str, tuple[float, float]]:
    """For each model and a constant the score that is high for good models, and the low one."""
    seen, (high, low) = folds.observed, case.task.scores.values()
    each = {**folds.predicted, "constant": np.broadcast_to(seen.mean(axis=0), seen.shape)}
    return {name: (high(seen, outputs), low(seen, outputs)) for name, outputs in each.items()}


def _instead(case: Case, folds: Folds | None) -> str:
    """Sentences on other models that are better, and on a simple one that would do."""
    if folds is None:
        return ""
    if _predicts_nothing(case, folds):
        target = f"<b>{escape(case.target)}</b>"
        if case.classes:
            return f"None of them is better than the shares of the classes of {target} alone. "
        return f"None of them predicts {target} better than its mean does. "
    better = _better(case, folds)
    if better:
        advice = f": prefer {'them' if better == TREES else 'it'}" if better != "constant" else ""
        return f'<a href="#performance">{_predict_better(better)}</a>{advice}. '
    scores, names = _scores(case, folds), list(case.task.scores)
    high, low = scores[OURS]
    words = []
    for name in (TREES, case.task.linear_name):
        gain, less = scores[name][0] - high, low - scores[name][1]
        who = _subject(name)
        verb = "" if name == TREES else "s"
        if gain > 0 and less > 0:
            simpler = ", and it is simpler: prefer it" if verb else ""
            words.append(f"{who} predict{verb} a little better{simpler}. ")
        elif gain > SLIGHTLY and less < 0:
            words.append(
                f"{who} reach{'es' if verb else ''} the higher {names[0]}, this model the smaller "
                f"{names[1]}. "
            )
        elif less > 0.05 * low and gain > -CLEARLY:
            words.append(
                f"{who} reach{'es' if verb else ''} the smaller {names[1]}, this model the higher "
                f"{names[0]}. "
            )
        elif verb and gain > -CLEARLY / 2:
            words.append(f"{who} predicts as well, and it is simpler: prefer it. ")
    return "".join(words)


def _predicts_nothing(case: Case, folds: Folds | None) -> bool:
    """Whether no model predicts the rows kept aside better than a constant does."""
    if folds is None:
        return False
    scores = _scores(case, folds)
    high, low = scores.pop("constant")
    return all(h < high + CLEARLY and le > HARDLY * low for h, le in scores.values())


def _better(case: Case, folds: Folds | None) -> str:
    """The best of the other models, or a constant, if it predicts clearly better; else nothing.

    Better is a clearly higher score, or a much smaller error where the score is about the same.
    """
    if folds is None:
        return ""
    scores = _scores(case, folds)
    high, low = scores[OURS]
    best = max(scores, key=lambda name: scores[name][0])
    least = min(scores, key=lambda name: scores[name][1])
    if scores[best][0] > high + CLEARLY:
        return best
    smaller = scores[least][1] < MUCH * low and scores[least][0] > high - CLEARLY
    return least if smaller else ""


def summary(case: Case, folds: Folds | None, remarks: list[Remark]) -> dict[str, Any]:
    """Scores of each model on rows it has not seen, and all findings, as plain values.

    Without rows kept aside the score of our model is that of leave-one-out.
    """
    observed, outputs = case.task.observed(case.y), {OURS: case.loo_outputs}
    if folds is not None:
        observed, outputs = folds.observed, folds.predicted
    keys = {"R²": "r2", "typical error": "typical_error", "log-loss": "log_loss"}
    models = [
        {"model": name, **{keys.get(s, s): f(observed, found) for s, f in case.task.scores.items()}}
        for name, found in outputs.items()
    ]
    on_rows = [replace(r, sentence=plain_text(r.sentence)) for r in _on_rows(case, folds)]
    against: list[Remark | Finding] = [*on_rows, *findings(case), *remarks]
    kept = "later rows" if folds and folds.later else "rows kept aside"
    return {
        "judged_on": "leave-one-out" if folds is None else kept,
        "models": models,
        "findings": [
            {"name": f.name, "warning": f.warning, "sentence": f.sentence} for f in against
        ],
    }


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
    """The models side by side on the rows kept aside."""
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
        f"ones alone, because the rows are in order of <b>{escape(case.table.time_name)}</b>: rows "
        "drawn at random would flatter a model that has to predict the future."
        if folds.later
        else folds.how
    )
    words = (
        f"{fitted} Every model made all its choices without them. Boosted trees are scikit-learn's "
        f"{trees}, the {case.task.linear_name} its {linear}."
    )
    shown = scroll(table(("model", *case.task.scores, "seconds a fit"), rows, 0))
    return f'{shown}<p class="small">{words} {SCORES[case.task.name]}</p>'


def importances(case: Case, found: list[tuple[Column, float]]) -> str:
    """A row with a bar for each column, the most important first; nothing for one column."""
    if len(found) == 1:
        return ""
    if are_flat(case, found):
        return (
            f"<p>No column moves the predictions of <b>{escape(case.target)}</b> by more than "
            f"{percent(FLAT)} of its deviation.</p>"
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
        f"Importance: how far, typically, the prediction of <b>{escape(case.target)}</b> moves "
        "when a column takes the value of another row."
    )
    bars = f'<table class="wide"><thead>{head}</thead><tbody>{lines}</tbody></table>'
    return f"<div><p>{words}</p>{scroll(bars)}{note if more > 0 else ''}</div>"


def effects_text(case: Case) -> str:
    """Text on the effect curves."""
    drawn, rows = lines_of(case), of_rows(case, len(case.some_rows(BACKGROUND)))
    if len(drawn) > 1:
        keys = ", ".join(
            f'<span class="key {look}">{escape(case.classes[k])}</span>'
            for look, k in zip(LOOKS, drawn, strict=False)
        )
        return (
            f"Each line is the mean probability of a class of <b>{escape(case.target)}</b> as one "
            f"column changes and the others keep their values, over {rows}: {keys}."
        )
    what = "mean prediction" if case.main is None else f"mean probability of {escape(case.shown)}"
    sure = " The inner band is the 95 % interval of the mean." if case.main is None else ""
    return (
        "How to read a chart: its title is a column, whose values go from left to right; the "
        "higher the line, the higher the prediction, and a flat line means no effect. "
        f"Each line is the {what} as one column changes and the others keep their values.{sure} "
        f"The {'outer ' if sure else ''}band holds the middle 80 % of the curves of single rows: "
        "where it is wide, the effect depends on the other columns. Ticks at the bottom are values "
        f"of rows; curves end at the 1 % and the 99 % quantile. The mean is that over {rows}."
    )


def effects(case: Case, sizes: list[tuple[Column, float]]) -> str:
    """The table of average effects in the columns' own units, the most important column first.

    Nothing for classes, and where no column has an effect.
    """
    if case.classes or are_flat(case, sizes):
        return ""
    some = case.some_rows(MOST_ROWS)
    terms = [
        name
        for column, _ in sizes
        for name in (
            [column.name] if column.levels else [case.table.names[i] for i in column.places]
        )
    ]
    shown = [name for name in terms if not name.endswith(WAVES)]
    found = answer(effects_in_units, case.estimator, case.table, case.scale, shown, X=case.Z[some])
    if found is None:
        return ""
    unknown = any(has_no_error(e.estimate, e.std_error, e.conf_high) for e in found)
    rows = [_effect_row(effect, unknown) for effect in found.rows[:MOST_EFFECTS]]
    both = any(map(rises_and_falls, found.rows[:MOST_EFFECTS])) and not unknown
    seasons = [] if unknown else [row for column, _ in sizes for row in _seasons(case, column)]
    words = (
        " Where a column rises and falls, the average says little: see its chart." if both else "",
        " For months, weekdays and hours it is the highest prediction less the lowest."
        if seasons
        else "",
    )
    more = plural(len(found) - len(rows), "more effect")
    rest = f" {more} not shown: <code>jacridge effects</code>." if len(found) > len(rows) else ""
    head = ("column", "effect", *(() if unknown else ("standard error", "95 % interval", "p")))
    errors = (
        "there are too few rows for standard errors: less than one degree of freedom is left"
        if unknown
        else METRIC_IN_ERRORS[found.metric]
    )
    return (
        f"<h3>Average effects</h3><p>How far the prediction of <b>{escape(case.target)}</b> "
        f"moves, on average over {of_rows(case, len(some))}, per unit of a column, or from one "
        f"category to another.{''.join(words)} "
        f"These are associations, not causes; {errors}.{rest}</p>"
        f"<div class=effects>{scroll(table(head, [*rows, *seasons]))}</div>"
    )


def _seasons(case: Case, column: Column) -> Iterator[tuple[str, ...]]:
    """Rows on the cycles of a date: the highest and the lowest point of the chart."""
    for curve in cycles_of(case, column):
        mean, levels = curve.mean[0], curve.steps.levels
        name = f"{curve.column.name}: {levels[mean.argmax()]} - {levels[mean.argmin()]}"
        yield breakable(name), number(float(np.ptp(mean))), "–", "–", "–"


def _effect_row(effect: Effect, unknown: bool) -> tuple[str, ...]:
    """Cells of one effect, without those of a standard error that is unknown."""
    name = effect.term if effect.kind == "slope" else f"{effect.term}: {effect.contrast}"
    if effect.kind == "slope" and name.endswith(YEAR):
        name = f"{name.removesuffix(YEAR)}, per year"
    if unknown:
        return breakable(name), number(effect.estimate)
    p = "&lt; 0.001" if effect.p_value < 1e-3 else f"{effect.p_value:.3f}"
    both = rises_and_falls(effect)
    return (
        breakable(f"{name} (rises and falls)" if both else name),
        number(effect.estimate),
        number(effect.std_error),
        f"{number(effect.conf_low)} to {number(effect.conf_high)}",
        "–" if both else p,  # that of an average, which is no reason to leave the column out
    )


def quality(remarks: list[Remark]) -> str:
    """Remarks on the data as a list."""
    if not remarks:
        return (
            "<p>No rows left out, no duplicate rows, no constant columns, no outliers, no ids, no "
            "column that gives the target away.</p>"
        )
    return _findings([replace(r, sentence=marked_up(r.sentence)) for r in remarks])


def _findings(rows: list[Remark]) -> str:
    """A table of remarks whose sentences are HTML."""
    lines = "".join(
        f'<tr><td class="name{" doubt" if row.warning else ""}">{"⚠ " if row.warning else ""}'
        f"{escape(row.name)}</td><td>{row.sentence}</td></tr>"
        for row in rows
    )
    head = "<tr><th>what</th><th>what was found</th></tr>"
    return f'<table class="wide"><thead>{head}</thead><tbody>{lines}</tbody></table>'


def diagnosis(case: Case, folds: Folds | None, remarks: list[Remark]) -> str:
    """Reasons against the model, those in the data by a link, and numbers that are none."""
    found = findings(case)
    against = _on_rows(case, folds) + [_as_remark(f) for f in found if f.warning]
    passed = [_as_remark(finding) for finding in found if not finding.warning]
    on_data = sum(remark.warning for remark in remarks)
    parts = [
        *([plural(len(against), "finding")] if against else []),
        *([f'<a href="#quality">{plural(on_data, "remark")} on the data</a>'] if on_data else []),
    ]
    words = f"<p>To check: {joined(parts)}.</p>" if parts else "<p>No problems found.</p>"
    shown = _findings(against) if against else ""
    note = (
        '<p class="small"><code>bandwidth</code> in Python is <code>--rule</code> in the '
        "command.</p>"
    )
    rest = (
        f"<details><summary>{plural(len(passed), 'more number')}, none of them a reason for doubt"
        f"</summary>{_findings(passed)}</details>"
        if case.diagnosis
        else "<p>Too few rows differ for a diagnosis.</p>"
    )
    return f"{words}{shown}{note if 'bandwidth=' in shown else ''}{rest}"


def _as_remark(finding: Finding) -> Remark:
    """A finding with numbers and R² as the page writes them."""
    aside = f'<span class="small">({number(finding.value)})</span>'
    sentence = f"{_as_written(finding.sentence)} {aside}"
    return Remark(finding.name.replace("R2", "R²"), sentence, finding.warning)


def _as_written(text: str) -> str:
    """A sentence of the diagnosis in the page's style of numbers."""
    power = re.compile(r"-?\d+(?:\.\d+)?e[+-]\d+")
    return power.sub(lambda m: number(float(m[0])), escape(re.sub(r"\bR2\b", "R²", text)))


def columns(case: Case) -> str:
    """Lowest and highest value of each column as they are, its mean and its spread.

    Of a date, the first and the last; the waves of its months and weekdays are not shown.
    """
    named = zip([*case.table.names, case.shown], [*case.X.T, case.outcomes], strict=True)
    rows = [_column_row(column, x) for column, x in named if not column.endswith(WAVES)]
    return table(("column", "lowest", "mean", "highest", "deviation"), rows)


def _column_row(column: str, x: Array) -> tuple[str, ...]:
    """Cells of one column."""
    if column.endswith(YEAR) and x.min() >= 1 and x.max() < 9999:
        name = f"{column.removesuffix(YEAR)} (date)"
        first, mean, last = (day_of(v) for v in (x.min(), x.mean(), x.max()))
        return breakable(name), first, mean, last, f"{number(x.std())} years"
    low, high = unrounded(float(x.min())), unrounded(float(x.max()))
    return breakable(column), low, _mean(x), high, number(x.std())


def _mean(x: Array) -> str:
    """The mean with as many digits as the deviation makes known: 2006.1, not 2,010."""
    deviation = x.std()
    digits = 1 - int(np.floor(np.log10(deviation))) if deviation > 0 else 6
    return unrounded(round(float(x.mean()), digits))
