"""Input and result of a diagnosis: `Fitted`, `Finding` and `Diagnosis`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .._compute.arrays import Array


@dataclass(frozen=True)
class Finding:
    """One number, whether it is a reason for doubt, and what it means."""

    __module__ = "jacridge.diagnostics"  # pickles name public paths

    name: str
    value: float
    warning: bool
    sentence: str


@dataclass(frozen=True)
class Diagnosis:
    """Findings on a fitted model; prints as a table, renders as HTML; ``dict()`` for programs."""

    __module__ = "jacridge.diagnostics"

    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that are reasons for doubt."""
        return tuple(finding for finding in self.findings if finding.warning)

    def dict(self) -> dict[str, dict[str, Any]]:
        """The findings as plain values, by name."""
        return {
            f.name: {"value": f.value, "warning": f.warning, "sentence": f.sentence}
            for f in self.findings
        }

    def __str__(self) -> str:
        width = max(len(f.name) for f in self.findings)
        return "\n".join(
            f"{'!' if f.warning else ' '} {f.name:<{width}}  {f.value:>10.4g}  {f.sentence}"
            for f in self.findings
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{'&#9888;' if f.warning else ''}</td><td>{escape(f.name)}</td>"
            f"<td style='text-align:right'>{f.value:.4g}</td>"
            f"<td style='text-align:left'>{escape(f.sentence)}</td></tr>"
            for f in self.findings
        )
        head = "<tr><th></th><th>what</th><th>value</th><th>meaning</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


@dataclass(frozen=True)
class Fitted:
    """A fitted model as a diagnosis sees it.

    Attributes
    ----------
    sigma : bandwidth
    lam : penalty of each target, of shape (k,)
    loo_r2 : leave-one-out R2 of the training rows, or of a sample; of single observations, if
        equal rows differ in y
    degrees_of_freedom : of each target
    rows : number of distinct training rows, if known; of all rows, if equal rows differ in y
    rule : name of the bandwidth's rule; None for a number or a function
    lams : ends of the range from which the penalty was chosen; None if it was given
    dropped : share of the rows as given that have a weight of zero
    choices : table of candidates for kernel and metric, if these were chosen
    features : features of the rows as given, by name; empty if there are none
    scales_matter : whether distances depend on the units of the features
    loo_r2_of_rows : leave-one-out R2 if equal rows are left out together, where it differs
    later : whether bandwidth and penalty were chosen by the error on later rows
    """

    __module__ = "jacridge.diagnostics"

    sigma: float
    lam: Array
    loo_r2: float
    degrees_of_freedom: Array
    rows: float
    rule: str | None = None
    lams: tuple[float, float] | None = None
    dropped: float = 0.0
    choices: Sequence[Mapping[str, Any]] = ()
    features: Mapping[str, Array] = field(default_factory=dict)
    scales_matter: bool = False
    loo_r2_of_rows: float = np.nan
    later: bool = False

    @property
    def table(self) -> Array:
        """Features of the rows as given, of shape (n, p)."""
        return np.column_stack(list(self.features.values()))
