"""The sentences and tables of the report, as HTML; whatever came with the data is escaped."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

import numpy as np

from .. import JacobianKernelRidge, select_bandwidth, theory
from .._compute.arrays import Array
from .._geometry.kernels import KERNELS
from .._rules.registry import SELECTORS
from ..diagnostics import Finding
from ..effects import Effect
from ._case import Case, answer
from ._charts import LOOKS, lines_of
from ._columns import YEAR, Column
from ._effects import BACKGROUND, has_no_error
from ._folds import COVERAGE, OURS, TREES, Folds
from ._pieces import (
    breakable,
    brief,
    day_of,
    marked_up,
    number,
    percent,
    plural,
    scroll,
    share,
    table,
    unrounded,
)
from ._quality import Remark
from ._tasks import r2
from ._units import effects_in_units

MOST_COLUMNS = 20
MOST_EFFECTS = 30
CYCLES = (" sine)", " cosine)")  # end the names of waves of a date
CLEARLY = 0.02  # a difference of R2 or accuracy
SLIGHTLY = 0.005
MUCH = 0.8  # an error is much smaller than another at this ratio
MOST_ROWS = 1000  # over which effects are averaged
# What the second score is.
SCORES = {
    "regression": "The typical error is the median absolute error, in the units of the target.",
    "classification": "The log-loss is small if the true classes have high probabilities.",
}


def doubts(case: Case, folds: Folds | None, remarks: list[Remark]) -> str:
    """Reasons against the model, with links to them, after a word on rivals that are as good."""
    found = sum(finding.warning for finding in findings(case))
    against = [remark for remark in remarks if remark.warning]
    told = [f"⚠ {marked_up(remark.short)}" for remark in against if remark.short]
    counted = len(against) - len(told)
    on_data = plural(counted, "more remark" if told else "remark")
    on_rows = [phrase for _, phrase, _ in _kept_aside(case, folds)]
    parts = [
        *(f'<a href="#performance">{phrase}</a>' for phrase in on_rows),
        *([f'<a href="#trust">{plural(found, "finding")} on the model</a>'] if found else []),
        *(f'<a href="#quality">{text}</a>' for text in told),
        *([f'<a href="#quality">{on_data} on the data</a>'] if counted else []),
    ]
    if not parts:
        return f"{_as_well(case, folds)}Nothing that was checked speaks against it."
    single = not on_rows and found + counted + len(told) == 1
    *first, last = parts
    text = f"{', '.join(first)} and {last}" if first else last
    start = text.index(">") + (3 if ">⚠ " in text[: text.index(">") + 3] else 1)
    words = f"{text[:start]}{text[start].upper()}{text[start + 1 :]}"
    return f"{_as_well(case, folds)}{words} {'speaks' if single else 'speak'} against it."


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


def _kept_aside(case: Case, folds: Folds | None) -> list[tuple[str, str, str]]:
    """Reasons against the model from rows that it has not seen: name, phrase and sentence."""
    if folds is None:
        return []
    found = []
    better = _better(case, folds)
    if better:
        beyond = (
            " A kernel model returns to the mean beyond the times that it has seen; columns with "
            f"earlier values of <b>{escape(case.target)}</b> may help."
        )
        sentence = f"These rows are predicted better by {better}.{beyond if folds.later else ''}"
        found.append(("rows kept aside", f"better predictions by {better}", sentence))
    if folds.is_narrow:
        held = f"{percent(folds.coverage)} of the rows"
        phrase = f"{percent(COVERAGE)} intervals that hold {held}"
        found.append(
            ("intervals", phrase, f"{percent(COVERAGE)} intervals hold only {held} kept aside.")
        )
    far = len(folds.blunders)
    if far:
        known = folds.rows if far == 1 else None
        which = plural(far, "row") if known is None else f"row {known[folds.blunders[0]] + 1:,}"
        phrase = f"{which} predicted far off"
        sentence = (
            f"{plural(far, 'row')} kept aside {'is' if far == 1 else 'are'} wrong by more than "
            "twice the width of an interval."
        )
        found.append(("worst rows", phrase, sentence))
    return found + _flattery(case, folds)


def _flattery(case: Case, folds: Folds) -> list[tuple[str, str, str]]:
    """A leave-one-out R² clearly above that of rows kept aside."""
    if case.classes or folds.later:
        return []
    ours, loo = r2(folds.observed, folds.predicted[OURS]), r2(case.y, case.loo_predictions)
    if not loo - ours > CLEARLY or 1 - ours < 1.5 * (1 - loo):
        return []
    phrase = f"R² of {share(ours)} against {share(loo)} by leave-one-out"
    sentence = (
        f"R² is {share(ours)} on rows kept aside and {share(loo)} by leave-one-out, which holds "
        "kernel, metric, bandwidth and penalty fixed: trust the lower one."
    )
    return [("leave-one-out", phrase, sentence)]


def _scores(case: Case, folds: Folds, outputs: Array) -> tuple[float, float]:
    """The score that is high for good models, and the one that is low."""
    high, low = (score(folds.observed, outputs) for score in case.task.scores.values())
    return high, low


def _as_well(case: Case, folds: Folds | None) -> str:
    """Sentences on other models that are better by a score, and on a simple one that would do."""
    if folds is None or _better(case, folds):
        return ""
    high, low = _scores(case, folds, folds.predicted[OURS])
    names = list(case.task.scores)
    words = []
    for name in (TREES, case.task.linear_name):
        theirs = _scores(case, folds, folds.predicted[name])
        gain, less = theirs[0] - high, low - theirs[1]
        who = f"A {name}" if name == "linear model" else name.capitalize()
        verb = "" if name == TREES else "s"
        if gain > 0 and less > 0:
            words.append(f"{who} predict{verb} a little better. ")
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
            words.append(f"{who} predicts as well. ")
    return "".join(words)


def _better(case: Case, folds: Folds | None) -> str:
    """The best of the other models, or a constant, if it predicts clearly better; else nothing.

    Better is a clearly higher score, or a much smaller error where the score is about the same.
    """
    if folds is None:
        return ""
    seen = folds.observed
    constant = np.broadcast_to(seen.mean(axis=0), seen.shape)
    each = {**folds.predicted, "constant": constant}
    scores = {name: _scores(case, folds, outputs) for name, outputs in each.items()}
    high, low = scores[OURS]
    best = max(scores, key=lambda name: scores[name][0])
    least = min(scores, key=lambda name: scores[name][1])
    if scores[best][0] > high + CLEARLY:
        return _with_article(best)
    smaller = scores[least][1] < MUCH * low and scores[least][0] > high - CLEARLY
    return _with_article(least) if smaller else ""


def _with_article(name: str) -> str:
    return name if name == TREES else f"a {name}"


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
    kept = f"{plural(len(folds.observed), 'row')} were kept aside."
    fitted = (
        f"{kept} They were predicted by models fitted to earlier ones alone, because the rows are "
        f"in order of <b>{escape(case.time_name)}</b>: rows drawn at random would flatter a model "
        "that has to predict the future."
        if folds.later
        else f"{kept} {folds.how}"
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
    largest = max(max((size for _, size in found), default=0.0), np.finfo(float).tiny)
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
    what = "mean prediction" if case.main is None else f"mean {escape(case.predicted)}"
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

    Nothing for classes.
    """
    if case.classes:
        return ""
    some = case.some_rows(MOST_ROWS)
    terms = [
        name
        for column, _ in sizes
        for name in ([column.name] if column.levels else [case.names[i] for i in column.places])
    ]
    shown = [name for name in terms if not name.endswith(CYCLES)]
    found = answer(effects_in_units, case.estimator, case.table, case.scale, shown, X=case.Z[some])
    if found is None:
        return ""
    unknown = any(has_no_error(e.estimate, e.std_error, e.conf_high) for e in found)
    rows = [_effect_row(effect, unknown) for effect in found.rows[:MOST_EFFECTS]]
    more = plural(len(found) - len(rows), "more effect")
    rest = f" {more} not shown: <code>jacridge effects</code>." if len(found) > len(rows) else ""
    head = ("column", "effect", *(() if unknown else ("standard error", "95 % interval", "p")))
    errors = (
        "there are too few rows for standard errors: less than one degree of freedom is left"
        if unknown
        else "the standard errors take kernel, metric, bandwidth and penalty as given"
    )
    return (
        f"<h3>Average effects</h3><p>How far the prediction of <b>{escape(case.target)}</b> "
        f"moves, on average over {of_rows(case, len(some))}, per unit of a column, or from one "
        "category to another. "
        f"These are associations, not causes; {errors}.{rest}</p>"
        f"<div class=effects>{scroll(table(head, rows))}</div>"
    )


def _effect_row(effect: Effect, unknown: bool) -> tuple[str, ...]:
    """Cells of one effect, without those of a standard error that is unknown."""
    name = effect.term if effect.kind == "slope" else f"{effect.term}: {effect.contrast}"
    if unknown:
        return breakable(name), number(effect.estimate)
    return (
        breakable(name),
        number(effect.estimate),
        number(effect.std_error),
        f"{number(effect.conf_low)} to {number(effect.conf_high)}",
        "&lt; 0.001" if effect.p_value < 1e-3 else f"{effect.p_value:.3f}",
    )


def quality(remarks: list[Remark]) -> str:
    """Remarks on the data as a list."""
    if not remarks:
        return (
            "<p>No rows left out, no duplicate rows, no constant columns, no outliers, no ids, no "
            "column that gives the target away.</p>"
        )
    return _findings([(r.name, marked_up(r.sentence), r.warning) for r in remarks])


def _findings(rows: list[tuple[str, str, bool]]) -> str:
    lines = "".join(
        f'<tr><td class="name{" doubt" if warning else ""}">{"⚠ " if warning else ""}'
        f"{escape(name)}</td><td>{sentence}</td></tr>"
        for name, sentence, warning in rows
    )
    head = "<tr><th>what</th><th>what was found</th></tr>"
    return f'<table class="wide"><thead>{head}</thead><tbody>{lines}</tbody></table>'


def diagnosis(case: Case, folds: Folds | None, remarks: list[Remark]) -> str:
    """Every reason against the model, as the verdict counts them, and the checks it passed."""
    found = findings(case)
    against = [
        *((name, sentence, True) for name, _, sentence in _kept_aside(case, folds)),
        *(_finding_row(finding) for finding in found if finding.warning),
        *((r.name, marked_up(r.sentence), True) for r in remarks if r.warning),
    ]
    passed = [_finding_row(finding) for finding in found if not finding.warning]
    verb = "speaks" if len(against) < 2 else "speak"
    words = (
        f"<p>{plural(len(against), 'finding') if against else 'No finding'} {verb} against the "
        "model.</p>"
    )
    shown = _findings(against) if against else ""
    note = (
        '<p class="small"><code>bandwidth</code> in Python is <code>--rule</code> in the '
        "command.</p>"
    )
    rest = (
        f"<details><summary>{plural(len(passed), 'check')} passed</summary>{_findings(passed)}"
        "</details>"
        if case.diagnosis
        else "<p>Too few rows differ for a diagnosis.</p>"
    )
    return f"{words}{shown}{note if 'bandwidth=' in shown else ''}{rest}"


def _finding_row(finding: Finding) -> tuple[str, str, bool]:
    """A finding with numbers and R² as the page writes them."""
    sentence = f"{_as_written(finding.sentence)} {_aside(number(finding.value))}"
    return finding.name.replace("R2", "R²"), sentence, finding.warning


def _as_written(text: str) -> str:
    """A sentence of the diagnosis in the page's style of numbers."""
    power = re.compile(r"-?\d+(?:\.\d+)?e[+-]\d+")
    return power.sub(lambda m: number(float(m[0])), escape(re.sub(r"\bR2\b", "R²", text)))


def _aside(text: str) -> str:
    return f'<span class="small">({text})</span>'


def _choice_text(case: Case) -> str:
    """Sentence on what was chosen, and by which errors."""
    asked = {"kernel": case.spec.kernel, "metric": case.spec.model_metric}
    chosen = [what for what, word in asked.items() if word == "auto"]
    given = [what for what in asked if what not in chosen]
    if not chosen:
        return "Kernel and metric were given. Bandwidth and penalty were chosen by leave-one-out."
    subject = "Kernel and metric were" if len(chosen) == 2 else f"The {chosen[0]} was"
    return (
        f"{subject} chosen by the error on held-out rows, bandwidth and penalty by leave-one-out."
        + (f" The {given[0]} was given." if given else "")
    )


def model_text(case: Case) -> str:
    """Kernel, metric, bandwidth and penalty, and where they came from."""
    est = case.estimator
    metrics = {
        "euclidean": "features in their own units",
        "scaled": "features divided by their standard deviations",
        "diagonal": "each feature with a learned weight",
        "full": "a learned linear map of the features",
        "geodesic": "metres on the globe",
    }
    origin = (
        _choice_text(case)
        if case.spec.is_auto
        else f"The bandwidth comes from the rule <code>{escape(str(case.spec.bandwidth))}</code>."
        if isinstance(case.spec.bandwidth, str)
        else "The bandwidth was given."
    )
    rows = [
        ("kernel", escape(est.kernel_)),
        (f"metric: {metrics[case.metric]}", case.metric),
        ("bandwidth σ", number(est.bandwidth_)),
        ("ridge penalty λ", number(case.lam)),
        ("solver", est.solver_),
    ]
    return f"<h3>The model</h3><p>{origin}</p>{scroll(table(('what', 'value'), rows))}"


def candidates(case: Case) -> str:
    """The kernels and metrics that were tried, best first."""
    tried = getattr(case.estimator, "choices_", [])
    if not tried:
        return ""
    rows = [
        (
            f"{row['kernel']}, {row['kind']}{', tails compressed' if row['warped'] else ''}",
            f"{row['rounds']}",
            *(_score(case, row[error]) for error in ("trimmed_error", "error")),
        )
        for row in tried[:8]
    ]
    chosen = [i for i, row in enumerate(tried[:8]) if row["chosen"]]
    score = "log-loss" if case.classes else "R²"
    head = ("kernel, metric", "rounds", f"{score} of 98 %", f"held-out {score}")
    return (
        "<h3>Kernels and metrics that were tried</h3>"
        f"{scroll(table(head, rows, chosen[0] if chosen else None))}"
        '<p class="small">On half of a sample of the rows, predicted from the other half; the '
        "model itself is fitted to all. The finalists, which were tried on more rows, stand first; "
        f"then candidates are ranked by the {score} of 98 % of these rows, without the hardest "
        "2 %. Among candidates that are equally good the simpler one is taken.</p>"
    )


def _score(case: Case, error: float) -> str:
    """A held-out error as people know it: a log-loss, or an R² for numbers."""
    return number(error) if case.classes else f"{1 - error:.3f}".replace("-", "−")


def geometry(case: Case) -> str:
    """The four numbers that the paper's rule looks at, and what they mean."""
    choice, n = case.choice, len(case.X)
    options = {"rule": "jacobian_median", "alpha": case.lam, "metric": case.spec.distance}
    nearest = answer(select_bandwidth, case.mapped(case.Z), **options)
    regime = {
        "global minimum": "the approximate norm has one minimum (λ = 0)",
        "local minimum": "the approximate norm has a local minimum",
        "no minimum": "too large for a minimum: σ is taken at the threshold",
    }[theory.regime(choice.n, case.lam)]
    rows = [
        ("rows", f"{n:,}"),
        ("dimensions of the metric", f"{choice.p}"),
        ("largest distance between two rows", number(choice.l_max)),
        ("spacing of as many rows spread evenly", number(choice.spacing)),
        ("median distance to the nearest other row", number(nearest and nearest.spacing)),
        (
            "bandwidth as a share of the largest distance",
            number(case.estimator.bandwidth_ / choice.l_max),
        ),
        ("bandwidth by the rule jacobian", number(choice.sigma)),
        (f"ridge penalty λ: {regime}", number(case.lam)),
        ("largest λ for which there is a minimum", number(theory.lambda_threshold(choice.n))),
    ]
    return scroll(table(("what", "value"), rows))


def columns(case: Case) -> str:
    """Lowest and highest value of each column as they are, its mean and its spread.

    Of a date, the first and the last; the waves of its months and weekdays are not shown.
    """
    named = zip([*case.names, case.shown], [*case.X.T, case.outcomes], strict=True)
    rows = [_column_row(column, x) for column, x in named if not column.endswith(CYCLES)]
    return table(("column", "lowest", "mean", "highest", "deviation"), rows)


def _column_row(column: str, x: Array) -> tuple[str, ...]:
    """Cells of one column."""
    if column.endswith(YEAR) and x.min() >= 1 and x.max() < 9999:
        name = f"{column.removesuffix(YEAR)} (date)"
        first, mean, last = (day_of(v) for v in (x.min(), x.mean(), x.max()))
        return breakable(name), first, mean, last, f"{number(x.std())} years"
    low, high = unrounded(float(x.min())), unrounded(float(x.max()))
    return breakable(column), low, number(x.mean()), high, number(x.std())


def sample(case: Case) -> str:
    """Which rows the sliders are for."""
    rows = of_rows(case, len(case.rows))
    what = "" if case.main is None else f"the indicator of <b>{escape(case.shown)}</b> in "
    metric = "the metric of the model"
    if case.spec.distance == "geodesic":
        metric = "straight distances through the globe, as slopes along geodesics take long"
    return f"The sliders fit {what}{rows} with the kernel of the model and {metric}."


def norm_caption(case: Case) -> str:
    """The caption of the chart of the Jacobian norm; the approximate one is for the Gaussian."""
    if not KERNELS[case.estimator.kernel_].has_closed_form:
        return 'Jacobian norm: <span class="key c1">steepest slope of the fit</span>'
    return (
        'Jacobian norm: <span class="key c1">true</span> and '
        '<span class="key c2 dashed">approximate</span>'
    )


def norm_text(case: Case) -> str:
    """How the norms are found."""
    true = (
        "The true norm is the steepest slope of the fit at and around the rows shown, in the "
        "model's metric."
    )
    if not KERNELS[case.estimator.kernel_].has_closed_form:
        return true
    return (
        f"{true} The approximate norm is known up to a constant: it is drawn to meet the true one "
        "at the chosen bandwidth."
    )


def rules_text(case: Case) -> str:
    """Text on the table of rules."""
    on = of_rows(case, len(case.rows))
    return (
        f"One bandwidth of a Gaussian kernel for all features, by each rule on {on}, at "
        f"λ = {number(_rules_alpha(case))} unless the rule chooses its own: the leave-one-out R², "
        "the bandwidth σ and the seconds to choose it. Rules above <code>loo</code> never look at "
        "the target."
    )


def _rules_alpha(case: Case) -> float:
    return 1e-3 if case.spec.is_auto else case.lam


def rules(case: Case) -> str:
    """A row for each rule that has an answer, the chosen one marked."""
    own_units = not case.spec.standardize or case.spec.distance == "geodesic"
    X, metric = case.X if own_units else case.standardized, case.spec.distance
    Z, y = X[case.rows], case.outcomes[case.rows]
    rows: list[tuple[str, ...]] = []
    marked = None
    for name, rule in SELECTORS.items():
        # The point of the automatic one is to choose both.
        alpha = "auto" if rule.is_automatic else _rules_alpha(case)
        choice = answer(select_bandwidth, Z, y, name, alpha=alpha, metric=metric, random_state=0)
        if choice is None:
            continue
        if name == case.spec.bandwidth and not case.spec.is_auto:
            marked = len(rows)
        lam = float(np.ravel(choice.alpha)[0])
        est = answer(JacobianKernelRidge(choice.sigma, lam, metric=metric).fit, Z, y)
        score = r2(y, y - est.loo_residuals_) if est else np.nan
        values = (share(score), number(choice.sigma), number(lam), brief(choice.seconds))
        rows.append((f"<code>{name}</code>", *values))
    return table(("rule", "R²", "σ", "λ", "seconds"), rows, marked)
