"""Numbers as people read them."""


def rounded(value: float, digits: int) -> str:
    """A number with so many digits, with separated thousands in place of an exponent."""
    if 10**digits <= abs(value) < 1e15:
        return f"{float(f'{value:.{digits}g}'):,.0f}"
    return f"{value:,.{digits}g}"
