"""Notes on what was done to a table."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..report._columns import (
    COMMAS,
    DOUBTS,
    GAP,
    GAPS_FILLED,
    TEXTS_READ,
    TITLES,
    UNREAD,
    UNUSED,
    YEAR,
)
from ._cells import drop_option
from ._columns import Reading, Rows, read_rows
from ._dates import MONTHS
from ._missing import fillings
from ._tables import listed
from ._terminal import note, warn

IDS = "id"

CHOSEN_BY = "the model is chosen by"
NO_LATER_ROWS = (
    "The last rows cannot be predicted from those before them: there are too few rows, or a class "
    "occurs only in the last ones."
)


def rows_of(file: str, targets: Sequence[str], reading: Reading) -> Rows:
    """Read the rows of a table, and print what was done to it."""
    rows = read_rows(file, targets, reading)
    remarks = remarks_on(rows, reading)
    for sentence in [text for name in DOUBTS for text in remarks[name]]:
        warn(sentence)
    for sentence in rows.losses.sentences:
        (warn if rows.losses.are_many else note)(sentence)
    others = [text for name, texts in remarks.items() if name not in DOUBTS for text in texts]
    for sentence in [*others, *_on_columns(rows), *_on_places(rows, reading)]:
        note(sentence)
    if reading.task == "auto" and rows.task == "classification":
        note_classes(rows.target or "", np.unique(rows.y))
    return rows


def remarks_on(rows: Rows, reading: Reading) -> dict[str, list[str]]:
    """Sentences on columns that are left out or changed, by the names that a report gives them."""
    one = len(rows.ids) == 1
    ids = (
        f"{listed(rows.ids)} {'looks like an id and is' if one else 'look like ids and are'} left "
        f"out: nearly every row has its own value. If {'it' if one else 'one'} matters, name all "
        "features with --features."
    )
    unused = (
        f"{listed(rows.unused)} {'is' if len(rows.unused) == 1 else 'are'} left out: --metric "
        "geodesic takes latitude and longitude only."
    )
    return {
        UNUSED: [unused] if rows.unused else [],
        UNREAD: rows.unread,
        COMMAS: rows.inferred,
        IDS: [ids] if rows.ids else [],
        TITLES: rows.skipped,
        TEXTS_READ: list(rows.written.values()),
        GAPS_FILLED: fillings(rows.gappy) if reading.fills else [],
    }


def _on_columns(rows: Rows) -> Iterator[str]:
    """How dates and texts are encoded."""
    for name, date in rows.dates.items():
        parts = ", ".join(dict.fromkeys(part.split()[0] for part in date.parts)) or "nothing"
        kind = "years and months" if date.format in MONTHS else "dates"
        cycles = ", all but the year as sine and cosine" if len(date.parts) > 1 else ""
        yield (
            f"`{name}` holds {kind} and becomes {parts}{cycles}. Leave it out with "
            f"{drop_option(name)}."
        )
    for name in rows.texts:
        count = rows.X[name].n_unique()
        among = f", {GAP!r} among them," if rows.X[name].null_count() else ""
        yield (
            f"`{name}` holds one category in the rows that are used, and has no effect."
            if count == 1
            else f"`{name}` holds {count} categories{among} and is one-hot encoded."
        )


def _on_places(rows: Rows, reading: Reading) -> Iterator[str]:
    """Which column is which."""
    if reading.on_globe:
        lat, lon = rows.numbers
        yield f"`{lat}` is latitude and `{lon}` longitude, in degrees; no other column is used."


def note_times(rows: Rows, what: str, what_flatters: str = "", *, later: bool) -> None:
    """Say what later rows are used for, or that scores are too optimistic about the future."""
    if rows.time is None:
        return
    order = f"The rows are in order of `{rows.time.removesuffix(YEAR)}`"
    if later:
        note(f"{order}, so {what} later rows. Use --held-out random for rows at random.")
    else:
        note(f"{order}. {what_flatters} models that have to predict the future.")


def note_classes(target: str, classes: Any) -> None:
    """Say why the model predicts classes."""
    named = ", ".join(map(str, classes[:5])) + (", ..." if len(classes) > 5 else "")
    if len(classes) == 2 and classes.dtype.kind != "U":
        note(
            f"`{target}` holds two values, {classes[0]} and {classes[1]}, which are taken as "
            "classes. Use --task regression to predict a number."
        )
        return
    note(f"`{target}` holds text, so the model predicts its {len(classes)} classes: {named}.")
