"""Reasons to doubt a model, and models that are better or simpler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np

from ..diagnostics import CHOICE, Finding
from ._case import Case
from ._folds import COVERAGE, OURS, TREES, Folds
from ._pieces import joined, marked_up, number, percent, plain_text, plural, share
from ._quality import NESTED, POSSIBLE_LEAK, Remark
from ._series import cycle
from ._tasks import r2

CLEARLY = 0.02  # a difference of R2 or accuracy
SLIGHTLY = 0.005
HARDLY = 0.95  # an error is hardly smaller than another above this ratio
MUCH = 0.8  # an error is much smaller than another below this ratio
FAILED = 0.1  # below this R² on later rows, these cannot choose a model
FLATTERED = 0.1  # excess of the leave-one-out R2 over the R2 of rows kept aside

LOSS = "loss of the choice"  # what a finding on the choice is called then
# What a reader needs to know of findings that are no doubts: another name, and what they say.
IN_WORDS = {
    CHOICE: ("the choice", ""),
    "gain of a search": ("other bandwidths", "How far a search would raise R²: hardly at all."),
    "effective rows": ("effective rows", "As many rows of equal weight would tell as much."),
    "sigma / l_max": (
        "width of the kernel",
        "The bandwidth over the largest distance between two rows: the larger it is, the smoother "
        "is the model.",
    ),
    "condition": (
        "rounding errors",
        "How many times the solution may enlarge rounding errors: harmless below 10¹⁴.",
    ),
    "degrees of freedom": (
        "flexibility",
        "How many parameters the model has in effect. With as many as rows it would follow each.",
    ),
    "spacing / l_max": (
        "spacing of the rows",
        "The distance of neighbours if the rows were spread evenly, over the largest distance: "
        "below 1 there are enough rows for the rule.",
    ),
    "alpha / threshold": (
        "penalty of the rule",
        "The penalty over the largest for which the rule holds: below 1 it does.",
    ),
    "l_max / trimmed l_max": (
        "far rows",
        "The largest distance over that without the farthest 1 % of the rows: near 1 there are "
        "no rows far from all others.",
    ),
}

# For each model, and for a constant: the score that a good model maximises, and the one that it
# minimises.
ScorePairs = dict[str, tuple[float, float]]


def doubts(case: Case, folds: Folds | None, remarks: list[Remark]) -> str:
    """The end of the verdict: models that are better or simpler, and links to what to check."""
    against = [remark for remark in remarks if remark.warning]
    leaks = any(remark.name == POSSIBLE_LEAK for remark in against)
    scores = _scores(case, folds)
    instead = "" if leaks else _instead(case, scores)
    said = {
        "best single feature": leaks,  # the remark covers it, with the feature's name
        "leave-one-out R2": _predict_nothing(scores),
    }
    found = [f for f in findings(case) if f.warning and not said.get(f.name)]
    named = [f"⚠ {marked_up(remark.short)}" for remark in against if remark.short]
    counted = len(against) - len(named)
    on_data = plural(counted, "more remark" if named else "remark")
    parts = [
        *(f'<a href="#quality">{text}</a>' for text in named),
        *(f'<a href="#performance">{doubt.short}</a>' for doubt in _unseen(case, folds)),
        *([f'<a href="#trust">{plural(len(found), "finding")} on the model</a>'] if found else []),
        *([f'<a href="#quality">{on_data} on the data</a>'] if counted else []),
    ]
    if parts:
        return f"{instead}To check: {joined(parts)}."
    if _is_beaten(scores):
        return instead.rstrip()
    return f"{instead}No {'other ' if instead else ''}problems were found."


def findings(case: Case) -> list[Finding]:
    """Findings of the diagnosis; a choice that did worse on held-out rows warns, or is left out."""
    if case.diagnosis is None:
        return []
    found = []
    for finding in case.diagnosis.findings:
        loses = finding.name == CHOICE and finding.value < 0
        if not loses:
            found.append(finding)
        elif finding.value < -CLEARLY:
            why = f"{finding.sentence} A few rows, hard for all models, make the difference."
            found.append(replace(finding, name=LOSS, warning=True, sentence=why))
    return found


def _unseen(case: Case, folds: Folds | None) -> Iterator[Remark]:
    """Doubts from rows that the model has not seen."""
    if folds is not None:
        yield from _intervals(folds)
        yield from _flattery(case, folds)
        yield from _failed_choice(case, folds)
    yield from _far_off(case)


def _intervals(folds: Folds) -> Iterator[Remark]:
    """Intervals that contain too few of the rows kept aside."""
    if folds.is_narrow:
        held, what = f"{percent(folds.coverage)} of the rows", f"{percent(COVERAGE)} intervals"
        sentence, short = f"{what} hold only {held} kept aside.", f"{what} that hold {held}"
        yield Remark("intervals", sentence, True, short)
    elif folds.later and _last(folds).is_narrow:
        held, what = percent(_last(folds).coverage), f"{percent(COVERAGE)} intervals"
        sentence = (
            f"{what} hold only {held} of the latest rows: intervals for still later ones are too "
            "narrow."
        )
        yield Remark("intervals", sentence, True, f"{what} that hold {held} of the latest rows")


def _last(folds: Folds) -> Folds:
    """The rows of the last part alone."""
    some = slice(-(len(folds.observed) // folds.count), None)
    return replace(folds, observed=folds.observed[some], intervals=folds.intervals[some])


def _others(case: Case, folds: Folds | None) -> Iterator[Remark]:
    """Another model, or a constant, that predicts the rows kept aside better."""
    scores = _scores(case, folds)
    if folds is None or not _is_beaten(scores):
        return
    if _predict_nothing(scores):
        sentence = _nothing(case, scores).replace("them", "the models", 1)
        advice = " Columns that tell more about it are needed, or more rows."
    else:
        sentence, advice = f"{_predict_better(_better(scores), 'these rows ')}.", ""
    yield Remark("rows kept aside", f"{sentence}{_on_later(case) if folds.later else advice}", True)


def _on_later(case: Case) -> str:
    """Advice that may help a model to predict later rows."""
    target, lag = escape(case.target), cycle(case)
    beyond = (
        " Beyond its training data a kernel model at first goes on with the last rows, which may "
        f"lead far off, and only then returns to the mean; columns with earlier values of "
        f"<b>{target}</b> may help."
    )
    if lag is None:
        return beyond
    return (
        f"{beyond} <b>{target}</b> repeats after about {lag} rows: add a column with the place in "
        "this cycle, such as the hour of the day, the day of the week or the month, or write the "
        "time as a date with its hour, which is then read as such columns."
    )


def _on_rows(case: Case, folds: Folds | None) -> list[Remark]:
    """All findings on rows that the model has not seen."""
    return [*_others(case, folds), *_unseen(case, folds)]


def _predict_better(who: str, rows: str = "") -> str:
    """Sentence about a model that is clearly better."""
    return f"{_subject(who)} predict{'' if who == TREES else 's'} {rows}better"


def _subject(who: str) -> str:
    """Name of a model at the start of a sentence."""
    return f"A {who}" if who in ("linear model", "constant") else who.capitalize()


def _far_off(case: Case) -> Iterator[Remark]:
    """Rows whose leave-one-out prediction is far off."""
    far = case.far_off
    if not len(far):
        return
    if len(far) == 1:
        which, verb, each = escape(case.row_name(far[0])), "is", "it"
    else:
        which, verb, each = plural(len(far), "row"), "are", "each of them"
    sentence = (
        f"{which[0].upper()}{which[1:]} {verb} far from the prediction of the model fitted "
        f"without {each}: are the values correct?"
    )
    yield Remark("worst rows", sentence, True, f"{which} predicted far off")


def _flattery(case: Case, folds: Folds) -> Iterator[Remark]:
    """A leave-one-out R² that is clearly above the R² of rows kept aside."""
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


def _failed_choice(case: Case, folds: Folds) -> Iterator[Remark]:
    """A choice by later rows that the model does not predict."""
    if case.classes or not (folds.later and case.is_later):
        return
    found = r2(folds.observed, folds.predicted[OURS])
    if found < FAILED:
        sentence = (
            f"Choosing the model by later rows failed: R² on them is {share(found)}, and the curve "
            "may be jagged. For a curve within the data, use <code>--held-out random</code> (in "
            "Python, <code>held_out='random'</code>)."
        )
        yield Remark("choice by later rows", sentence, True, "a choice by later rows that failed")


def _scores(case: Case, folds: Folds | None) -> ScorePairs:
    """Scores of the models on the rows kept aside; empty if there are none."""
    if folds is None:
        return {}
    seen, (high, low) = folds.observed, case.task.scores.values()
    each = {**folds.predicted, "constant": np.broadcast_to(seen.mean(axis=0), seen.shape)}
    return {name: (high(seen, outputs), low(seen, outputs)) for name, outputs in each.items()}


def _instead(case: Case, scores: ScorePairs) -> str:
    """Sentences on models that are better, or simpler and as good."""
    if _predict_nothing(scores):
        return f'<a href="#trust">⚠ {_nothing(case, scores)}</a> '
    better = _better(scores)
    if better:
        advice = f": prefer {'them' if better == TREES else 'it'}" if better != "constant" else ""
        return f'<a href="#trust">⚠ {_predict_better(better)}</a>{advice}. '
    others = [name for name in scores if name not in (OURS, "constant")]
    return "".join(_beside(name, scores, *case.task.scores) for name in others)


def _nothing(case: Case, scores: ScorePairs) -> str:
    """Sentence on models of which none beats a constant."""
    target = f"<b>{escape(case.target)}</b>"
    worse = scores[OURS][0] < scores["constant"][0] - CLEARLY
    what = "the shares of its classes do" if case.classes else "its mean"
    text = f"None of them predicts {target} better than {what}"
    return f"{text}{', and this model predicts it worse' if worse else ''}."


def _is_beaten(scores: ScorePairs) -> bool:
    """Whether another model, or a constant, is better, or no model is better than a constant."""
    return _predict_nothing(scores) or bool(_better(scores))


def _beside(name: str, scores: ScorePairs, high: str, low: str) -> str:
    """Sentence about a model that is about as good as ours; empty if there is nothing to say."""
    ours, theirs = scores[OURS], scores[name]
    gain, less = theirs[0] - ours[0], ours[1] - theirs[1]
    is_linear = name != TREES
    who, s, es = _subject(name), "s" * is_linear, "es" * is_linear
    if gain > 0 and less > 0:
        simpler = ", and it is simpler: prefer it" * is_linear
        return f"{who} predict{s} a little better{simpler}. "
    if gain > SLIGHTLY and less < 0:
        return f"{who} reach{es} the higher {high}, this model the smaller {low}. "
    if less > 0.05 * ours[1] and gain > -CLEARLY:
        return f"{who} reach{es} the smaller {low}, this model the higher {high}. "
    if is_linear and gain > -CLEARLY / 2:
        return f"{who} predicts as well, and it is simpler: prefer it. "
    return ""


def _predict_nothing(scores: ScorePairs) -> bool:
    """Whether no model predicts better than a constant."""
    if not scores:
        return False
    high, low = scores["constant"]
    models = [pair for name, pair in scores.items() if name != "constant"]
    return all(h < high + CLEARLY and le > HARDLY * low for h, le in models)


def _better(scores: ScorePairs) -> str:
    """The best of the other models, or a constant, if it is clearly better than ours; else empty.

    Better means a clearly higher score, or a much smaller error at about the same score.
    """
    if not scores:
        return ""
    high, low = scores[OURS]
    best = max(scores, key=lambda name: scores[name][0])
    least = min(scores, key=lambda name: scores[name][1])
    if scores[best][0] > high + CLEARLY:
        return best
    smaller = scores[least][1] < MUCH * low and scores[least][0] > high - CLEARLY
    return least if smaller else ""


def summary(case: Case, folds: Folds | None, remarks: list[Remark]) -> dict[str, Any]:
    """Scores of each model on rows that it has not seen, and all findings, as plain values.

    If no rows were kept aside, the score of our model is its leave-one-out score.
    """
    observed, outputs = case.task.observed(case.y), {OURS: case.loo_outputs}
    if folds is not None:
        observed, outputs = folds.observed, folds.predicted
    keys = {"R²": "r2", "typical error": "typical_error", "log loss": "log_loss"}
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


def quality(remarks: list[Remark]) -> str:
    """Remarks on the data."""
    if not remarks:
        return (
            "<p>No rows left out, no duplicate rows, no constant columns, no outliers, no ids, no "
            "column that gives the target away.</p>"
        )
    return _findings([replace(r, sentence=marked_up(r.sentence)) for r in remarks])


def _findings(rows: list[Remark]) -> str:
    """Table of remarks whose sentences are HTML."""
    lines = "".join(
        f'<tr><td class="name{" doubt" if row.warning else ""}">{"⚠ " if row.warning else ""}'
        f"{escape(row.name)}</td><td>{row.sentence}</td></tr>"
        for row in rows
    )
    head = "<tr><th>what</th><th>what was found</th></tr>"
    return f'<table class="wide"><thead>{head}</thead><tbody>{lines}</tbody></table>'


def diagnosis(case: Case, folds: Folds | None, remarks: list[Remark]) -> str:
    """Doubts about the model, a link to doubts about the data, and the other findings."""
    found = findings(case)
    on_effects = [r for r in remarks if r.name == NESTED]
    against = _on_rows(case, folds) + [_as_remark(f) for f in found if f.warning]
    against += [replace(r, sentence=marked_up(r.sentence)) for r in on_effects]
    passed = [_as_remark(_in_words(finding)) for finding in found if not finding.warning]
    on_data = sum(remark.warning for remark in remarks) - len(on_effects)
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


def _in_words(finding: Finding) -> Finding:
    """A finding that is no doubt, by a name and a sentence that need no formulas."""
    name, sentence = IN_WORDS.get(finding.name, (finding.name, ""))
    told = sentence and not np.isnan(finding.value)
    return replace(finding, name=name, sentence=sentence if told else finding.sentence)


def _as_remark(finding: Finding) -> Remark:
    """Finding formatted as on the page."""
    aside = f' <span class="small">({number(finding.value)})</span>'
    alone = finding.name in (IN_WORDS[CHOICE][0], LOSS) or np.isnan(finding.value)
    sentence = f"{_as_written(finding.sentence)}{'' if alone else aside}"
    return Remark(finding.name.replace("R2", "R²"), sentence, finding.warning)


def _as_written(text: str) -> str:
    """Sentence of the diagnosis with numbers and R² formatted as on the page."""
    power = re.compile(r"-?\d+(?:\.\d+)?e[+-]\d+")
    return power.sub(lambda m: number(float(m[0])), escape(re.sub(r"\bR2\b", "R²", text)))
