"""A fitted model on one page: what was fitted, then its effects."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from ._table import Effects, aligned, cell


@dataclass(frozen=True)
class Summary:
    """A fit and its average effects; prints like a summary of statsmodels and renders as HTML.

    Attributes
    ----------
    fit : dict
        Names and values: rows, features, kernel, metric, bandwidth, penalty, degrees of freedom,
        leave-one-out R2 and residual deviation.
    effects : Effects
    title : str
    """

    fit: dict[str, Any]
    effects: Effects
    title: str = "Kernel ridge regression"

    def dict(self) -> dict[str, Any]:
        """Names and values of the fit, and the columns of the effects."""
        return {**self.fit, "effects": self.effects.dict()}

    def _pairs(self) -> list[tuple[str, str]]:
        return [(name, _shown(value)) for name, value in self.fit.items()]

    def __str__(self) -> str:
        table = aligned(self.effects.cells())
        width = max(map(len, table.splitlines()))
        half = -(-len(self.fit) // 2)
        pairs, column = self._pairs(), (width - 4) // 2
        left, right = pairs[:half], [*pairs[half:], ("", "")][:half]
        lines = [
            f"{_pair(a, column)}    {_pair(b, column)}".rstrip()
            for a, b in zip(left, right, strict=True)
        ]
        head = [self.title.center(width).rstrip(), "=" * width, *lines, "=" * width]
        return "\n".join([*head, self.effects.title, table, self.effects.held_fixed])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in self._pairs()
        )
        return f"<table>{rows}</table>{self.effects._repr_html_()}"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return f"{value:,}" if isinstance(value, int) else cell("", value)


def _pair(pair: tuple[str, str], width: int) -> str:
    name, value = pair
    return f"{name}{':' if name else ''}{value.rjust(max(width - len(name) - 1, len(value) + 1))}"
