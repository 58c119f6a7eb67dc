"""Numbers, names and tables as HTML; everything from the data is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from html import escape, unescape

import numpy as np

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None) -> str:
    """A number with three digits and commas between thousands; a dash for None.

    Trailing zeros of rounded numbers are kept, so that columns line up.
    """
    if value is None or not np.isfinite(value):
        return "–"
    if value < 0:
        return f"−{number(-value)}"
    if value >= 1e15 or 0 < value < 1e-5:
        digits, power = f"{value:.1e}".split("e")
        exponent = str(int(power)).translate(RAISED)
        return f"{digits.removesuffix('.0')}&nbsp;×&nbsp;10{exponent}"
    rounded = float(f"{value:.3g}")
    if rounded >= 1000 or value == 0:
        return f"{rounded:,.0f}"
    text = f"{value:.{max(2 - int(np.floor(np.log10(rounded))), 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text and rounded == value else text


def unrounded(value: float, largest: float = 0.0) -> str:
    """A value of the data in full; with six digits if it has more than ten.

    Commas only from 10,000 on, because the value may be a year; or if the largest of its column is.
    """
    if value != 0 and not 1e-5 <= abs(value) < 1e15:
        exact, power = f"{value:.5e}".replace("-", "−", value < 0).split("e")
        exponent = str(int(power)).translate(RAISED)
        return f"{exact.rstrip('0').rstrip('.')} × 10{exponent}"
    digits = 10 if float(f"{value:.10g}") == value else 6
    text = f"{value:,.15g}" if value == round(value) else f"{value:,.{digits}g}"
    if "e" in text:
        whole = f"{value:,.0f}"
        text = whole if abs(value) >= 1 else np.format_float_positional(float(text), trim="-")
    return (text if max(abs(value), largest) >= 10_000 else text.replace(",", "")).replace("-", "−")


def brief(seconds: float) -> str:
    """Seconds; below 0.01 as "< 0.01"."""
    if seconds < 0.01:
        return "&lt; 0.01"
    return f"{seconds:.2f}" if seconds < 1 else number(seconds)


def day_of(years: float) -> str:
    """The date of a time in years, where a day is 1/366 of a year."""
    year = int(years)
    return f"{date(year, 1, 1) + timedelta(days=round((years - year) * 366))}"


def share(value: float) -> str:
    """An R2, with two digits after the point."""
    if np.isnan(value):
        return "–"
    return f"{round(value, 2) + 0:.2f}".replace("-", "−")  # + 0: no minus before a zero


def unit_of(name: str) -> str:
    """The unit in brackets at the end of a column's name, after a space; empty if there is none."""
    found = re.search(r"[\[(]([^\[\]()]{1,20})[\])]\s*$", name)
    return f"\N{NO-BREAK SPACE}{escape(found[1].strip())}" if found else ""


def plural(count: int, word: str) -> str:
    """A count and its noun, in the plural unless the count is one."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def joined(parts: Sequence[str]) -> str:
    """Parts of a sentence joined by commas, the last one by "and"."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def breakable(text: str) -> str:
    """The name of a column, with possible line breaks after underscores."""
    return escape(text).replace("_", "_<wbr>")


def unbroken(html: str) -> str:
    """HTML in which options such as --drop are not divided between lines."""
    return re.sub(r"--[a-z][a-z-]*", r'<span class="whole">\g<0></span>', html)


def marked_up(text: str) -> str:
    """A sentence with names in backquotes as HTML."""
    parts = unbroken(escape(text)).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def plain_text(html: str) -> str:
    """HTML of a sentence as text."""
    return unescape(re.sub(r"<[^>]+>", "", html)).replace("\N{NO-BREAK SPACE}", " ")


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    marked: int | None = None,
    *,
    labelled: bool = False,
) -> str:
    """A table of HTML strings; columns after the first hold numbers.

    With `labelled`, cells know their heading, so that they may stand below each other.
    """
    lines = [f"<tr><th>{head[0]}</th>" + "".join(f'<th class="number">{h}</th>' for h in head[1:])]
    for i, (first, *values) in enumerate(rows):
        look = ' class="chosen"' if i == marked else ""
        labels = [f' data-label="{h}"' if labelled else "" for h in head[1:]]
        cells = "".join(
            f'<td class="number"{label}>{value}</td>'
            for label, value in zip(labels, values, strict=True)
        )
        lines.append(f'<tr{look}><td class="name">{first}</td>{cells}</tr>')
    return f"<table><thead>{lines[0]}</tr></thead><tbody>{''.join(lines[1:])}</tbody></table>"


def scroll(html: str) -> str:
    """A container that scrolls sideways, for wide content."""
    return f'<div class="scroll" tabindex="0">{html}</div>'


def percent(value: float) -> str:
    """A share in percent, without a line break before the sign."""
    digits = 0 if 0.005 <= value < 0.995 or value in (0, 1) else 1
    return f"{100 * value:.{digits}f}\N{NO-BREAK SPACE}%"
