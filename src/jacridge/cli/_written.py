"""Text that holds numbers, possibly with a currency sign, % or separated thousands."""

from collections.abc import Collection

import polars as pl

# Points between thousands, where commas are decimal signs.
GROUPED = r"^[-+]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?$"
# A number with a currency sign before or after it, or with %.
ADORNED = (
    r"^(?<minus>[-+]?)\s*(?<before>\p{Sc}?)\s*(?<number>[-+]?\.?\d[\d.,'’\s]*?([eE][-+]?\d+)?)"
    r"\s*(?<after>\p{Sc}|%)?$"
)
# Numbers with separated thousands, and those whose commas cannot be decimal signs.
THOUSANDS = r"^[-+]?[1-9]\d{0,2}([,'’\s]\d{3})+(\.\d+)?$"
NUMBER = r"^[-+]?\d[\d,]*\.?\d*$"
CLEARLY_THOUSANDS = r",\d{3}(,\d{3}|\.\d)"
# A number with a currency sign whose points may all separate thousands.
POINTS_IN_THOUSANDS = r"^[-+]?(\p{Sc}\s*[-+]?GROUPS|GROUPS\s*\p{Sc})$".replace(
    "GROUPS", r"[1-9]\d{0,2}(\.\d{3})+(,\d+)?"
)
# A number or percentage whose commas may all separate thousands.
COMMAS_IN_THOUSANDS = r"^\s*[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?\s*%?\s*$"
NEARLY_ALL = 0.95


def numbers_of(texts: pl.Series, decimal: str) -> pl.Series:
    """Text as numbers, with null for everything else.

    If nearly all values are numbers with the same currency or percent sign, or with separated
    thousands, signs and separators are removed.
    """
    found = _plain_numbers(texts, decimal)
    if found.null_count() == texts.null_count():
        return found
    bare = _bare_numbers(texts, decimal)
    return bare if bare.count() >= NEARLY_ALL * texts.count() else found


def inferred_thousands(
    frame: pl.DataFrame, decimal: str, separators: Collection[str] = ()
) -> list[str]:
    """Columns whose commas separate thousands, to judge by the rest of the file.

    No cell of such a column settles it. But other numbers in the file have decimal points, none
    has a decimal comma, and its cells are not separated as they are where commas are decimal.
    """
    texts = [column.str.strip_chars() for column in frame if column.dtype == pl.String]
    with_commas, with_points = decimal_signs(texts)
    if decimal == "," or with_commas or not with_points or set(separators) - {","}:
        return []
    return [
        column.name
        for column in texts
        if is_ambiguous(column) and column.str.contains(NUMBER).sum() >= NEARLY_ALL * column.count()
    ]


def without_thousands(frame: pl.DataFrame, names: Collection[str]) -> pl.DataFrame:
    """The frame without the commas that separate thousands in these columns."""
    columns = (frame[name] for name in names if frame.schema[name] == pl.String)
    return frame.with_columns(
        column.zip_with(
            ~column.str.contains(COMMAS_IN_THOUSANDS).fill_null(False),
            column.str.replace_all(",", "", literal=True),
        )
        for column in columns
    )


def with_thousands(texts: pl.DataFrame, numbers: pl.DataFrame, decimal: str) -> list[str]:
    """Columns of text with commas that were read as numbers with decimal points."""
    kinds = numbers.schema  # takes time for each column of a frame
    both = (c for c in texts if c.dtype == pl.String and kinds.get(c.name) == pl.Float64)
    found = [column.name for column in both if column.str.contains(r"\d,\d").any()]
    return found if decimal == "." else []


def decimal_signs(texts: list[pl.Series]) -> tuple[list[str], list[str]]:
    """Names of the columns with decimal commas, and of those with decimal points."""
    signs = {r"^\s*[-+]?\d+,\d+\s*$": THOUSANDS, r"^\s*[-+]?\d*\.\d+\s*$": GROUPED}
    commas, points = (
        [c.name for c in texts if (c.str.contains(sign) & ~c.str.contains(grouped)).any()]
        for sign, grouped in signs.items()
    )
    return commas, points


def adorned(texts: pl.Series, bare: pl.Series, decimal: str) -> tuple[str, float] | None:
    """The first text that is not a plain number but is read as one, and that number."""
    found = numbers_of(bare, decimal)
    odd = found.is_not_null() & _plain_numbers(texts, decimal).is_null()
    row = odd.arg_max()
    return (texts[row], found[row]) if row is not None and odd.any() else None


def may_be_thousands(texts: pl.Series) -> bool:
    """Whether all commas in numbers are where they may separate thousands."""
    some = texts.filter(texts.str.contains(",", literal=True))
    return bool(some.str.contains(THOUSANDS).all())


def is_ambiguous(texts: pl.Series) -> bool:
    """Whether commas in numbers may separate thousands or decimals, and no cell settles it."""
    with_commas = texts.str.contains(r"\d,\d").any()
    settled = texts.str.contains(CLEARLY_THOUSANDS).any()
    return bool(with_commas and may_be_thousands(texts) and not settled)


def points_in_doubt(texts: pl.Series) -> pl.Series:
    """Prices whose points may separate thousands or decimals; empty if a cell settles it."""
    pointed = texts.drop_nulls()
    pointed = pointed.filter(pointed.str.contains(".", literal=True))
    doubtful = pointed.str.contains(POINTS_IN_THOUSANDS).all()
    return pointed.filter(doubtful & ~pointed.str.contains(r"\.\d{3}[.,]"))


def _plain_numbers(texts: pl.Series, decimal: str) -> pl.Series:
    """Text that is a plain number; points separate thousands where commas are decimal signs."""
    if decimal == ",":
        grouped = texts.str.contains(GROUPED)
        bare = texts.str.replace_all(".", "", literal=True)
        texts = texts.zip_with(~grouped.fill_null(False), bare)
        texts = texts.set(texts.str.contains(".", literal=True), None)
        texts = texts.str.replace(",", ".", literal=True)
    return texts.cast(pl.Float64, strict=False).fill_nan(None)


def _bare_numbers(texts: pl.Series, decimal: str) -> pl.Series:
    """Numbers in text with the most frequent currency or percent sign, null for all others."""
    parts = texts.str.extract_groups(ADORNED).struct.unnest().with_columns(pl.all().fill_null(""))
    sign = (parts["before"] + parts["after"]).alias("sign")
    counts = sign.filter(parts["number"] != "").value_counts(sort=True)
    usual = str(counts["sign"][0]) if len(counts) else ""
    number = parts["minus"] + parts["number"]
    if decimal == ",":  # the two signs change places
        number = number.str.replace_many({",": ".", ".": ","})
    grouped = number.str.contains(THOUSANDS)
    with_commas = number.str.contains(",", literal=True)
    sure = decimal == "," or pl.Series([usual]).str.contains(r"\p{Sc}").any()
    if not sure and not number.str.contains(CLEARLY_THOUSANDS).any():
        grouped &= ~with_commas  # commas may also be decimal signs
    number = number.zip_with(~grouped, number.str.replace_all(r"[,'’\s]", ""))
    number = number.set(sign != usual, None)
    return number.cast(pl.Float64, strict=False).fill_nan(None).alias(texts.name)
