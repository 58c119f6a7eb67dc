"""Text and tables of the section "For the curious": the model, its rules, its geometry."""

from __future__ import annotations

from html import escape

import numpy as np

from .. import JacobianKernelRidge, select_bandwidth, theory
from .._geometry.kernels import KERNELS
from .._rules.registry import SELECTORS, later_rows_tune
from ._case import Case, answer
from ._pieces import brief, joined, number, scroll, share, table
from ._tasks import r2
from ._words import of_rows


def _choice_text(case: Case) -> str:
    """Sentence about what was chosen, and by which errors."""
    asked = {"kernel": case.spec.kernel, "metric": case.spec.model_metric}
    chosen = [what for what, word in asked.items() if word == "auto"]
    given = [what for what in asked if what not in chosen]
    rows = "later" if case.is_later else "held-out"
    tuned_alike = case.is_later and later_rows_tune(case.spec.bandwidth, case.spec.penalty)
    tuned = "the error on later rows" if tuned_alike else "leave-one-out"
    if not chosen:
        return f"Kernel and metric were given. Bandwidth and penalty were chosen by {tuned}."
    by = f"chosen by the error on {rows} rows"
    also = f" The {given[0]} was given." if given else ""
    if tuned_alike:
        return f"{joined([*chosen, 'bandwidth', 'penalty']).capitalize()} were {by}.{also}"
    subject = "Kernel and metric were" if len(chosen) == 2 else f"The {chosen[0]} was"
    return f"{subject} {by}, bandwidth and penalty by {tuned}.{also}"


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
    score = "log loss" if case.classes else "R²"
    head = ("kernel, metric", "rounds", f"{score} of 98&nbsp;%", f"held-out {score}")
    return (
        "<h3>Kernels and metrics that were tried</h3>"
        f"{scroll(table(head, rows, chosen[0] if chosen else None))}"
        f'<p class="small">{_judged(case, score)} of 98 % of these rows, without the hardest 2 %. '
        "Among equally good candidates, the simplest is used.</p>"
    )


def _judged(case: Case, score: str) -> str:
    """The rows that candidates were judged by, and how they are ranked."""
    if case.is_later:
        return (
            "Measured on the later rows of a sample, predicted from the rows before them; the "
            f"model itself is fitted to all rows. Candidates are ranked by the {score}"
        )
    return (
        "Measured on half of a sample of the rows, predicted from the other half; the model itself "
        "is fitted to all rows. Finalists, which were tried on more rows, come first; otherwise "
        f"candidates are ranked by the {score}"
    )


def _score(case: Case, error: float) -> str:
    """A held-out error in familiar form: a log loss for classes, an R² for numbers."""
    return number(error) if case.classes else f"{1 - error:.3f}".replace("-", "−")


def geometry(case: Case) -> str:
    """The numbers that the paper's rule uses, and what they mean."""
    choice, n = case.choice, len(case.X)
    options = {"rule": "jacobian_median", "alpha": case.lam, "metric": case.spec.distance}
    nearest = answer(select_bandwidth, case.mapped(case.Z), **options)
    regime = {
        "global minimum": "As λ is 0, the approximate norm has one minimum",
        "local minimum": "At this λ the approximate norm has a local minimum",
        "no minimum": "This λ is too large for the approximate norm to have a minimum",
    }[theory.regime(choice.n, case.lam)]
    rows = [
        ("rows", f"{n:,}"),
        ("dimensions of the metric", f"{choice.p}"),
        ("largest distance between two rows", number(choice.l_max)),
        ("spacing if the rows were spread evenly", number(choice.spacing)),
        ("median distance to the nearest other row", number(nearest and nearest.spacing)),
        ("σ of the model", number(case.estimator.bandwidth_)),
        ("σ by the rule <code>jacobian</code>", number(choice.sigma)),
        ("ridge penalty λ of the model", number(case.lam)),
        ("largest λ with a minimum", number(theory.lambda_threshold(choice.n))),
    ]
    return f'{scroll(table(("what", "value"), rows))}<p class="small">{regime}.</p>'


def sample(case: Case) -> str:
    """Which rows and which kernel the sliders use."""
    rows = of_rows(case, len(case.rows))
    what = "" if case.main is None else f"the indicator of <b>{escape(case.shown)}</b> in "
    metric = "the metric of the model"
    if case.spec.distance == "geodesic":
        metric = "straight-line distances through the globe, because geodesic slopes are slow"
    return f"The sliders fit {what}{rows} with the kernel of the model and {metric}."


def norm_caption(case: Case) -> str:
    """Caption of the chart of the Jacobian norm; the approximate one is for Gaussian kernels."""
    if not KERNELS[case.estimator.kernel_].has_closed_form:
        return 'Jacobian norm: <span class="key c1">steepest slope of the fit</span>'
    return (
        'Jacobian norm: <span class="key c1">true</span> and '
        '<span class="key c2 dashed">approximate</span>'
    )


def norm_text(case: Case) -> str:
    """How the norms are computed."""
    true = (
        "The true norm is the steepest slope of the fit at and around the rows shown, in the "
        "model's metric."
    )
    if not KERNELS[case.estimator.kernel_].has_closed_form:
        return true
    return (
        f"{true} The approximate norm is only known up to a constant: it is scaled to meet the "
        "true norm at the chosen bandwidth."
    )


def rules_text(case: Case) -> str:
    """Text on the table of rules."""
    on = of_rows(case, len(case.rows))
    return (
        f"One bandwidth of a Gaussian kernel for all features, by each rule on {on}, at "
        f"λ = {number(_rules_alpha(case))} unless the rule chooses its own: the leave-one-out R², "
        "the bandwidth σ and the seconds to choose it. Rules above <code>loo</code> do not use "
        "the target."
    )


def _rules_alpha(case: Case) -> float:
    return 1e-3 if case.spec.is_auto else case.lam


def rules(case: Case) -> str:
    """A row for each rule that returns a bandwidth, with the chosen rule marked."""
    own_units = not case.spec.standardize or case.spec.distance == "geodesic"
    X, metric = case.X if own_units else case.standardized, case.spec.distance
    Z, y = X[case.rows], case.outcomes[case.rows]
    rows: list[tuple[str, ...]] = []
    marked = None
    for name, rule in SELECTORS.items():
        # The purpose of the automatic rule is to choose both.
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
