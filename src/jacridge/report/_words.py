"""The sentences and tables of the report, as HTML; whatever came with the data is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from .. import RULES, select_bandwidth, theory
from .._checks import Array
from .._curves import slope_importances
from ._case import Case, quietly

MOST_COLUMNS = 30


def number(value: float | None) -> str:
    """Four digits, or a dash where there is no number."""
    return f"{value:.4g}" if value is not None and np.isfinite(value) else "–"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], marked: int | None = None) -> str:
    """A table of texts that are HTML already; columns after the first hold numbers."""
    first, *rest = head
    lines = [f"<tr><th>{first}</th>" + "".join(f'<th class="number">{h}</th>' for h in rest)]
    for i, (name, *values) in enumerate(rows):
        look = ' class="chosen"' if i == marked else ""
        cells = "".join(f'<td class="number">{value}</td>' for value in values)
        lines.append(f'<tr{look}><td class="name">{name}</td>{cells}</tr>')
    return f"<table><thead>{lines[0]}</tr></thead><tbody>{''.join(lines[1:])}</tbody></table>"


def r2(residuals: Array, y: Array) -> float:
    """Explained share of the variance; NaN for a constant y."""
    variance = y.var()
    return float(1 - (residuals**2).mean() / variance) if variance > 0 else np.nan


def verdict(case: Case, left_out: int) -> str:
    """What came out, in two sentences, and a third on rows that are not in it."""
    sigma, n, p = case.estimator.bandwidth_, *case.X.shape
    score = _loo_r2(case)
    origin = f"The rule <code>{escape(case.rule)}</code>" if case.rule in RULES else case.rule
    words = (
        f"{origin[0].upper()}{origin[1:]} gives the bandwidth <b>σ = {number(sigma)}</b> (γ = "
        f"{number(0.5 / sigma**2)}) for {n} rows and {p} {'columns' if p > 1 else 'column'}, at "
        f"the ridge penalty λ = {number(case.lam)}. "
    )
    if left_out:
        words += f"{left_out} of {n + left_out} rows in the file lack a value and are left out. "
    if np.isnan(score):
        return words + "The target is constant, so R² is not defined."
    return (
        f"{words}Predicting rows from all the others, the fit reaches <b>R² = {number(score)}</b>."
        f"{_doubts(case)}"
    )


def _doubts(case: Case) -> str:
    """A pointer to the diagnosis, if something in it speaks against the choice."""
    count = len(case.diagnosis.warnings) if case.diagnosis else 0
    speak = "finding speaks" if count == 1 else "findings speak"
    return f' <a href="#diagnosis">{count} {speak}</a> against this choice.' if count else ""


def _loo_r2(case: Case) -> float:
    """Leave-one-out R2 as the diagnosis has it: of many rows that of a sample."""
    if case.diagnosis is None:
        return r2(case.estimator.loo_residuals_, case.y)
    if case.y.var() == 0:
        return np.nan
    return float(case.diagnosis.findings[0].value)


def geometry(case: Case) -> str:
    """The four numbers that the rule looks at, and what they mean."""
    choice, n = case.choice, len(case.X)
    equal = n - len(np.unique(case.X, axis=0))
    nearest = quietly(select_bandwidth, case.Z, rule="jacobian_median", alpha=case.lam)
    regime = {
        "global minimum": "the approximate norm has one minimum (λ = 0)",
        "local minimum": "the approximate norm has a local minimum",
        "no minimum": "too large for a minimum: σ is taken at the threshold",
    }[theory.regime(choice.n, case.lam)]
    scaled = "in standard deviations" if case.standardize else "in the units of the columns"
    rows = [
        ("rows, and how many equal an earlier one", f"{n}, {equal}"),
        ("columns", f"{choice.p}"),
        (f"largest distance between two rows, {scaled}", number(choice.l_max)),
        ("spacing of as many rows spread evenly", number(choice.spacing)),
        ("median distance to the nearest other row", number(nearest and nearest.spacing)),
        (
            "bandwidth as a share of the largest distance",
            number(case.estimator.bandwidth_ / choice.l_max),
        ),
        (f"ridge penalty λ: {regime}", number(case.lam)),
        ("largest λ for which there is a minimum", number(theory.lambda_threshold(choice.n))),
    ]
    return f'<div class="scroll" tabindex="0">{table(("what", "value"), rows)}</div>'


def columns(case: Case) -> str:
    """Range, mean and spread of each column."""
    rows = [
        (escape(name), *(number(v) for v in (x.min(), x.mean(), x.max(), x.std())))
        for name, x in zip([*case.names, case.target], [*case.X.T, case.y], strict=True)
    ]
    return table(("column", "lowest", "mean", "highest", "deviation"), rows)


def sample(case: Case) -> str:
    """Which rows the curves are drawn for."""
    n, m = len(case.X), len(case.rows)
    if m == n:
        return f"Curves and sliders show fits to all {n} rows."
    return (
        f"Curves and sliders show fits to a random sample of {m} of the {n} rows. Fewer rows lie "
        f"farther apart: the chosen bandwidth is {number(case.on_sample.bandwidth_)} on the sample "
        f"and {number(case.estimator.bandwidth_)} on all rows."
    )


def fit_figure(case: Case) -> str:
    """Where the fitted curve or surface goes; nothing for three or more columns."""
    if len(case.names) > 2:
        return ""
    kind = "curve" if len(case.names) == 1 else f"surface, upwards {escape(case.names[1])}"
    caption = f"<figcaption>{escape(case.target)}: the fitted {kind}</figcaption>"
    return f'<figure>{caption}<div class="chart" id="fit"></div></figure>'


def rules_text(case: Case) -> str:
    """What the table of rules shows."""
    n, m = len(case.X), len(case.rows)
    on = f"all {n} rows" if n == m else f"the sample of {m} rows"
    return (
        f"Each rule on {on}, at λ = {number(case.lam)} unless it chooses its own: its bandwidth, "
        "what scikit-learn calls gamma (γ), the leave-one-out R², and the time from the rows to σ. "
        "The rules above <code>loo</code> never look at the target."
    )


def rules(case: Case) -> str:
    """A row for each rule that has an answer, the chosen one marked."""
    Z, y = case.Z[case.rows], case.y[case.rows]
    rows: list[tuple[str, ...]] = []
    marked = None
    for rule in RULES:
        # The point of `auto` is to choose both.
        alpha = "auto" if rule == "auto" else case.lam
        choice = quietly(select_bandwidth, Z, y, rule, alpha=alpha, random_state=0)
        if choice is None:
            continue
        if rule == case.rule:
            marked = len(rows)
        est = quietly(case.fitted_to_sample, choice.sigma, choice.alpha)
        score = r2(est.loo_residuals_, y) if est else np.nan
        lam = float(np.ravel(choice.alpha)[0])
        values = (number(v) for v in (score, choice.sigma, lam, choice.gamma))
        rows.append((f"<code>{rule}</code>", *values, f"{choice.seconds:.2g}"))
    return table(("rule", "R²", "σ", "λ", "γ", "seconds"), rows, marked)


def diagnosis(case: Case) -> str:
    """What speaks for and against the choice, each finding with its number and a sentence."""
    found = case.diagnosis
    if found is None:
        return "<p>Too few rows differ for a diagnosis.</p>"
    lines = "".join(
        f'<tr><td class="name{" doubt" if f.warning else ""}">{"⚠ " if f.warning else ""}'
        f'{escape(f.name)}</td><td class="number">{number(f.value)}</td>'
        f"<td>{escape(f.sentence)}</td></tr>"
        for f in found.findings
    )
    doubts = len(found.warnings)
    some = f"{doubts} of {len(found.findings)} findings speak{'s' if doubts == 1 else ''}"
    words = some if doubts else "No finding speaks"
    head = '<tr><th>what</th><th class="number">value</th><th>what it means</th></tr>'
    note = (
        '<p class="small">What is <code>bandwidth</code> in Python is <code>--rule</code> in the '
        "command; <code>--rule auto</code> chooses the penalty, too.</p>"
    )
    return (
        f'<p>{words} against this choice.</p><div class="scroll" tabindex="0">'
        f'<table class="wide"><thead>{head}</thead><tbody>{lines}</tbody></table></div>'
        f"{note if 'bandwidth=' in lines else ''}"
    )


def importances(case: Case) -> str:
    """A row with a bar for each column, the most important first."""
    Z = case.Z[case.rows]
    J = case.estimator.jacobian(Z)
    size, mean = slope_importances(J, Z), J.mean(axis=0) * Z.std(axis=0)
    share = 100 * size / max(size.max(), np.finfo(float).tiny)
    lines = "".join(
        f'<tr><td class="name">{escape(case.names[j])}</td>'
        f'<td class="bar"><span style="width:{share[j]:.1f}%"></span></td>'
        f'<td class="number">{number(size[j])}</td><td class="number">{number(mean[j])}</td></tr>'
        for j in np.argsort(-size)[:MOST_COLUMNS]
    )
    head = (
        '<tr><th>column</th><th></th><th class="number">importance</th>'
        '<th class="number">mean slope</th></tr>'
    )
    more = len(case.names) - MOST_COLUMNS
    note = f'<p class="small">{more} columns of less importance are not shown.</p>'
    body = f'<table class="wide"><thead>{head}</thead><tbody>{lines}</tbody></table>'
    return body + (note if more > 0 else "")
