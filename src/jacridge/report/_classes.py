"""How well a model predicts classes: the verdict, charts, and doubts about the target."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import numpy as np
from sklearn.metrics import roc_auc_score

from .._compute.arrays import Array
from ._case import RARE_SHARE, Case
from ._charts import calibration_chart, roc_chart
from ._figures import Figure
from ._folds import OURS, Folds
from ._pieces import number, percent, plural, scroll, table
from ._quality import Remark, leak
from ._tasks import accuracy

MOST_CLASSES = 12
# A class with a smaller share of the rows is rare in training.
RARE = 0.02
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)


def verdict(case: Case, folds: Folds | None) -> str:
    """How often the model predicts the right class, compared with other models."""
    observed, predicted = _kept_aside(case, folds)
    target = f"<b>{escape(case.target)}</b>"
    right = percent(accuracy(observed, predicted[OURS]))
    most = percent(float(observed.mean(axis=0).max()))
    if folds is None:
        return (
            f"Predicting each row from all others, the model finds the right class of {target} in "
            f"<b>{right}</b> of the rows; the most frequent class has {most}."
        )
    trees, linear = (percent(accuracy(observed, found)) for found in list(predicted.values())[1:])
    return (
        f"On {folds.which}, the model finds the right class of {target} in <b>{right}</b> of the "
        f"cases; on the same rows boosted trees reach {trees}, logistic regression {linear}, and "
        f"always predicting the most frequent class {most}."
        f"{_found(case, observed, predicted[OURS])}"
    )


def _found(case: Case, observed: Array, predicted: Array) -> str:
    """Share of the rarer of two classes that is found, if this class is rare."""
    k = case.main
    if len(case.classes) > 2 or k is None or not 0 < observed[:, k].mean() < RARE_SHARE:
        return ""
    hit = (predicted.argmax(axis=1) == k)[observed[:, k] > 0].mean()
    return f" Of the rows with {escape(case.shown)}, it finds {percent(float(hit))}."


def _kept_aside(case: Case, folds: Folds | None) -> tuple[Array, dict[str, Array]]:
    """Indicators of the classes and probabilities, of rows kept aside or by leave-one-out."""
    if folds is not None:
        return folds.observed, folds.predicted
    return case.task.observed(case.y), {OURS: case.loo_outputs}


def words(case: Case, folds: Folds | None) -> str:
    """The confusion matrix, and what the charts show."""
    observed, predicted = _kept_aside(case, folds)
    rows = f"the {plural(len(observed), 'row')} kept aside" if folds else "all rows, each left out"
    many = len(case.classes) > 2
    each = " All classes count, each against the rest." if many else ""
    return (
        f"{confusion(case, observed, predicted[OURS])}<p>The table and the charts show {rows}. "
        "A calibrated model lies on the diagonal of the first chart: of the rows with a "
        f"probability of 0.8, eight in ten belong to the class.{each}</p>"
        f"{'' if many else thresholds(case, observed, predicted[OURS])}"
    )


def thresholds(case: Case, observed: Array, predicted: Array) -> str:
    """How many rows of the main one of two classes are found from other probabilities on."""
    k = case.main or 0
    seen, p = observed[:, k] > 0, predicted[:, k]
    rows: list[tuple[str, ...]] = []
    marked = None
    for least in THRESHOLDS:
        named = p > least
        if least == 0.5:
            marked = len(rows)
        elif not 0 < named.sum() < len(named):
            continue
        right = percent(float(seen[named].mean())) if named.any() else "–"
        rows.append((f"{least:g}", f"{named.sum():,}", percent(float(named[seen].mean())), right))
    shown = escape(case.shown)
    head = ("probability above", "rows named", "found", "right")
    return (
        f"<p>A row is named {shown} if its probability is above 0.5. Another threshold finds more "
        f"of these rows, or is right more often: <em>found</em> is the share of the rows with "
        f"{shown} that are named, <em>right</em> the share of the named that are such rows.</p>"
        f"{scroll(table(head, rows, marked))}"
    )


def confusion(case: Case, observed: Array, predicted: Array) -> str:
    """Numbers of rows by observed and predicted class, the most frequent classes first."""
    counts = np.zeros((len(case.classes), len(case.classes)), dtype=int)
    np.add.at(counts, (observed.argmax(axis=1), predicted.argmax(axis=1)), 1)
    often = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:MOST_CLASSES])
    names = [escape(case.classes[i]) for i in often]
    total = np.maximum(counts.sum(axis=1), 1)
    lines = "".join(
        f'<tr><th scope="row">{name}</th>'
        + "".join(
            f'<td class="number" style="--share:{100 * counts[i, j] / total[i]:.0f}%">'
            f"{counts[i, j]:,}</td>"
            for j in often
        )
        + f'<td class="number">{percent(counts[i, i] / total[i])}</td></tr>'
        for i, name in zip(often, names, strict=True)
    )
    head = "".join(f'<th class="number" scope="col">{name}</th>' for name in names)
    return scroll(
        f'<table class="confusion"><caption>Observed {escape(case.target)} (rows) and predicted '
        f'(columns)</caption><thead><tr><th>observed</th>{head}<th class="number">right</th></tr>'
        f"</thead><tbody>{lines}</tbody></table>"
    )


def figures(case: Case, folds: Folds | None) -> Iterator[Figure]:
    """The calibration curve and the ROC, of all models on the same rows."""
    observed, predicted = _kept_aside(case, folds)
    # The curves of two classes mirror each other.
    one = slice(None) if len(case.classes) > 2 or case.main is None else [case.main]
    shown, each = observed[:, one], {name: found[:, one] for name, found in predicted.items()}
    looks = ("c1", "c2 dashed", "c3 dotted")
    keys = ", ".join(
        f'<span class="key {look}">{name}</span>' for look, name in zip(looks, each, strict=False)
    )
    of = f" of {escape(case.shown)}" if len(case.classes) == 2 else ""
    chart = calibration_chart(shown, each)
    count = round(shown.size / len(chart["layers"][-1]["x"]))
    dots = f"Each dot stands for about {plural(count, 'row')}"
    yield Figure(chart, f"Are probabilities{of} true? {keys}. {dots}")
    areas = [number(roc_auc_score(shown.ravel(), found.ravel())) for found in each.values()]
    keys = ", ".join(
        f'<span class="key {look}">{name} {area}</span>'
        for look, name, area in zip(looks, each, areas, strict=False)
    )
    area = "Area under the curve (AUC), 0.5 by chance and 1 at best"
    yield Figure(roc_chart(shown, each), f"ROC: hits against false alarms{of}. {area}: {keys}")


def remarks(case: Case) -> Iterator[Remark]:
    """Rare classes, and columns that give the class away."""
    shares = case.task.observed(case.y).mean(axis=0)
    for i in np.flatnonzero(shares < RARE):
        count = round(shares[i] * len(case.y))
        sentence = f"{plural(count, 'row')} of `{case.target}` = `{case.classes[i]}`"
        yield Remark("rare class", f"Only {sentence}: its accuracy is very uncertain.", True)
    if len(case.y) < 20 or len(case.varied) == 1:
        return
    for column in case.columns:
        if _separates(case, case.X[:, column.places]):
            yield leak(column.name, case.target, "alone tells the classes apart")


def _separates(case: Case, x: Array) -> bool:
    """Whether classes follow from one column: by its thresholds, or by its categories."""
    values, of_row = np.unique(x, axis=0, return_inverse=True)
    if len(values) == 1 or (x.shape[1] > 1 and len(values) > len(x) / 3):
        return False
    counts = np.zeros((len(values), len(case.classes)))
    np.add.at(counts, (of_row.ravel(), case.task.observed(case.y).argmax(axis=1)), 1)
    if np.count_nonzero(counts) > len(values):  # some value occurs in two classes
        return False
    changes = np.count_nonzero(np.diff(counts.argmax(axis=1)))
    return bool(x.shape[1] > 1 or changes < len(case.classes))
