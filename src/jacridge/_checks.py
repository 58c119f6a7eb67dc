"""Validation of arguments: numbers, words, arrays, missing extras."""

from __future__ import annotations

import importlib
import math
import numbers
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array, check_consistent_length

if TYPE_CHECKING:
    from ._compute.arrays import Array

DATES = (
    "Turn them into numbers first, such as the year with its fraction, or use the command "
    "`jacridge`, which does."
)
# Squared distances of rows with larger entries overflow.
LARGEST = 1e150
# Sums of squares of larger targets overflow, too, once they are divided by small penalties.
LARGEST_TARGET = 1e100
# Size below which squares of the residuals underflow.
SMALLEST_TARGET = 1e-150
# Smaller penalties vanish in every sum, and dividing by them overflows.
SMALLEST_PENALTY = 1e-100


def check_number(
    name: str,
    value: Any,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
) -> float:
    """Return `value` as a float, or raise an error that states the limits."""
    value = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    real = is_real(value)
    if (
        real
        and math.isfinite(value)
        and (at_least is None or value >= at_least)
        and (above is None or value > above)
        and (at_most is None or value <= at_most)
        and (below is None or value < below)
    ):
        return float(value)
    limits = {">=": at_least, ">": above, "<=": at_most, "<": below}
    given = [f"{sign} {limit:g}" for sign, limit in limits.items() if limit is not None]
    wanted = " and ".join(given)
    message = f"`{name}` must be a finite number {wanted}".rstrip() + f", got {value!r}."
    raise ValueError(message) if real else TypeError(message)


def is_real(value: Any) -> bool:
    """Whether `value` is a real number and not a boolean."""
    # isinstance with an abstract class is slow, and most values are plain numbers.
    plain = type(value) in (float, int)
    return plain or (isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_))


def check_choice(name: str, value: Any, known: Any) -> str:
    """Return `value` if it is one of the known words, or raise an error that lists them."""
    if not isinstance(value, str) or value not in known:
        kind = ValueError if isinstance(value, str) else TypeError
        raise kind(f"`{name}` must be one of {', '.join(map(repr, known))}, got {value!r}.")
    return value


def check_whole(name: str, value: Any) -> int:
    """Return `value` as an int >= 1, or raise an error."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or value < 1:
        kind = ValueError if whole else TypeError
        raise kind(f"`{name}` must be a whole number >= 1, got {value!r}.")
    return int(value)


def generator(random_state: Any) -> np.random.Generator:
    """Random number generator for a `random_state`."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"`random_state` must be None, a whole number >= 0 or a numpy.random.Generator, got "
            f"{random_state!r}."
        ) from error


def check_range(name: str, values: Array, most: float = LARGEST) -> None:
    """Refuse numbers above `most` in absolute value, whose squares overflow."""
    largest = _largest(values)
    if largest > most:
        raise ValueError(
            f"`{name}` must have entries of at most {most:g} in absolute value, because squares of "
            f"larger ones overflow, got {largest:g}. Rescale `{name}` first."
        )


def check_not_tiny(largest: Array) -> None:
    """Refuse targets whose squares underflow; `largest` has their largest absolute values, (k,)."""
    tiny = largest[(largest > 0) & (largest < SMALLEST_TARGET)]
    if len(tiny):
        raise ValueError(
            f"`y` must be zero or have entries of at least {SMALLEST_TARGET:g} in absolute value, "
            f"as squares of smaller ones underflow, got {tiny[0]:g} at most. Rescale `y` first."
        )


def _largest(values: Array) -> float:
    """Largest absolute value; NaN if any value is NaN."""
    return float(max(values.max(), -values.min())) if values.size else 0.0


def require(module: str, *, extra: str) -> Any:
    """Import an optional dependency, or raise an error that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"`{module}` is needed here and is not installed. "
            f"Install it with: pip install 'jacridge[{extra}]', or '.[{extra}]' in a clone. "
            f"With pipx or uvx: '.[{'cli' if extra == 'cli' else f'cli,{extra}'}]'."
        ) from error


def check_rows(X: npt.ArrayLike, name: str = "X") -> Array:
    """X as a two-dimensional array of doubles in range."""
    # For a float64 array, checking the extremes is enough, and much faster than the checks below.
    plain = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.size > 0
    if plain and _largest(np.asarray(X)) <= LARGEST:
        return np.asarray(X)
    with naming_texts(X, name):
        rows: Array = check_array(X, dtype=np.float64, input_name=name)
    check_range(name, rows)
    return rows


@contextmanager
def naming_texts(X: Any, name: str = "X") -> Iterator[None]:
    """Refuse dates, and name the first column of text where scikit-learn refuses it."""
    check_no_dates(X, name)
    try:
        yield
    except ValueError as error:
        column = _first_text(X) if "could not convert string" in str(error) else None
        if column is None:
            raise
        if re.search(r"'\d{4}-\d\d?-\d\d?\b", str(error)):
            raise ValueError(
                f"`{name}` must hold numbers, got dates in column {column!r}: {error}. {DATES}"
            ) from error
        raise ValueError(
            f"`{name}` must hold numbers, got text in column {column!r}: {error}. Encode it in a "
            "Pipeline (OneHotEncoder), or use the command `jacridge`, which does."
        ) from error


@contextmanager
def naming_classes(y: Any) -> Iterator[None]:
    """Point to the classifier where a text target is refused."""
    try:
        yield
    except ValueError as error:
        texts = str(error).startswith("could not convert string")
        if not texts or np.asarray(y).dtype.kind not in "OU":
            raise
        raise ValueError(
            f"`y` must hold numbers, got text: {error}. To predict classes, use "
            "AutoKernelClassifier."
        ) from error


def check_no_dates(X: Any, name: str = "X") -> None:
    """Refuse dates and durations, which NumPy silently converts to nanoseconds."""
    is_frame = hasattr(X, "columns") and hasattr(X, "dtypes")
    kinds = zip(X.columns, X.dtypes, strict=True) if is_frame else ()
    date = next((column for column, kind in kinds if _is_date(kind)), None)
    if date is not None or (isinstance(X, np.ndarray) and _is_date(X.dtype)):
        where = "" if date is None else f" in column {date!r}"
        raise TypeError(f"`{name}` must hold numbers, got dates{where}. {DATES}")


def _is_date(kind: Any) -> bool:
    """Whether a pandas, polars or NumPy dtype is one of dates or durations."""
    return getattr(kind, "kind", "") in ("m", "M") or getattr(kind, "is_temporal", bool)()


def _first_text(X: Any) -> Any:
    """Name or index of the first column with text that is not a number, or None."""
    values = np.asarray(X, dtype=object)
    if values.ndim != 2:
        return None
    names = list(getattr(X, "columns", range(values.shape[1])))
    return next((n for n, x in zip(names, values.T, strict=True) if any(map(_is_text, x))), None)


def _is_text(value: Any) -> bool:
    try:
        float(value if isinstance(value, str) else 0)
    except ValueError:
        return True
    return False


def check_coordinates(X: Array) -> None:
    """Refuse rows that are not latitude and longitude in degrees."""
    if X.shape[1] != 2:
        raise ValueError(
            f'`X` must have two columns, latitude and longitude, for metric="geodesic", '
            f"got {X.shape[1]}."
        )
    largest = np.abs(X).max(axis=0)
    if largest[0] > 90 or largest[1] > 360:
        raise ValueError(
            "`X` must hold latitudes from -90 to 90 and longitudes from -360 to 360 degrees, in "
            f"this order, got absolute values up to {largest[0]:g} and {largest[1]:g}."
        )


def check_distances(D: Array) -> None:
    """Check that D is a matrix of distances between the training rows."""
    if D.shape[0] != D.shape[1]:
        raise ValueError(
            f'`X` must be a square matrix of distances for metric="precomputed", got {D.shape}.'
        )
    check_no_negative(D)
    if np.diagonal(D).any():
        raise ValueError(
            "`X` must have a zero diagonal, as distances have, got "
            f"{np.abs(np.diagonal(D)).max():g}. Pass distances, not a kernel matrix."
        )
    gap = max(_asymmetry(D, start, start + 256) for start in range(0, len(D), 256))
    if gap > 1e-8 * D.max():
        raise ValueError(f"`X` must be symmetric, got entries that differ by {gap:g}.")


def check_no_negative(D: Array) -> None:
    """Refuse negative distances."""
    if D.min() < 0:
        raise ValueError(
            f"`X` must hold distances >= 0, got {D.min():g}. Negative values in data are refused "
            'for metric="precomputed".'
        )


def _asymmetry(D: Array, start: int, stop: int) -> float:
    """Largest difference of some rows from their columns; called on blocks to avoid a copy of D."""
    return float(np.abs(D[start:stop, :stop] - D[:stop, start:stop].T).max())


def check_targets(y: npt.ArrayLike, X: Array) -> Array:
    """Y as an array of doubles of shape (n, k)."""
    with naming_classes(y):
        targets: Array = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    check_range("y", targets, LARGEST_TARGET)
    check_consistent_length(X, targets)
    return targets[:, None] if targets.ndim == 1 else targets


def check_weights(sample_weight: npt.ArrayLike, X: Array) -> Array:
    """Weights >= 0, not all of them zero, one per row, in a new array."""
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(len(X), check_weight(sample_weight))
    given = np.asarray(sample_weight)
    if not given.ndim or given.dtype.kind in "USmM":
        raise TypeError(
            f"`sample_weight` must be an array of numbers, one per row, got {sample_weight!r}."
        )
    w: Array = check_array(
        sample_weight, dtype=np.float64, ensure_2d=False, input_name="sample_weight", copy=True
    )
    if w.shape != (len(X),):
        raise ValueError(
            f"`sample_weight` must have one weight per row, shape ({len(X)},), got shape {w.shape}."
        )
    if w.min() < 0 or not w.any():
        raise ValueError(
            "`sample_weight` must be >= 0 and not all zero, got weights from "
            f"{w.min():g} to {w.max():g}."
        )
    check_range("sample_weight", w)
    smallest = w[w > 0].min()
    if smallest < 1 / LARGEST:
        raise ValueError(
            f"`sample_weight` must be zero or at least {1 / LARGEST:g}, got {smallest:g}. "
            "Give such rows a weight of zero."
        )
    return w


def check_weight(weight: Any) -> float:
    """One weight for all rows."""
    return check_number("sample_weight", weight, above=0)


def check_present(labels: Any, first: int = 0, name: str = "y") -> None:
    """Refuse missing labels; `first` is the number of the first row."""
    kind = labels.dtype.kind
    if kind not in "fOmM":
        return
    if kind == "O":
        missing = np.array([_is_missing(label) for label in labels], dtype=bool)
    else:
        missing = ~np.isfinite(labels)
    refuse_missing(missing, first, name)


def refuse_missing(missing: Any, first: int = 0, name: str = "y") -> None:
    """Raise an error if any label is missing."""
    if missing.any():
        raise ValueError(
            f"`{name}` must have a label in every row, got {missing.sum()} missing or infinite, "
            f"the first in row {first + int(np.argmax(missing))}. Remove these rows first."
        )


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA is neither equal nor unequal
        return True


def check_columns(name: str, columns: int, p: int) -> None:
    """Refuse rows with another number of features."""
    if columns != p:
        raise ValueError(f"`{name}` must have {p} columns, as `X` has, got {columns}.")


def check_positive(name: str, grid: npt.ArrayLike, *, least: float = 1 / LARGEST) -> Array:
    """Numbers as a one-dimensional array, not empty, all >= `least` and with squares in range."""
    message = f"`{name}` must be a list of numbers from {least:g} to {LARGEST:g}, got "
    try:
        values = np.atleast_1d(np.asarray(grid, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{message}{grid!r}.") from error
    within = (values >= least) & (values <= LARGEST)  # false for NaN
    if values.ndim != 1 or not values.size or not within.all():
        raise ValueError(f"{message}{grid!r}.")
    return values


def check_bandwidth(value: Any) -> float:
    """The bandwidth as a float > 0 whose square neither overflows nor underflows."""
    sigma = check_number("bandwidth", value, above=0)
    return check_number("bandwidth", sigma, at_least=1 / LARGEST, at_most=LARGEST)
