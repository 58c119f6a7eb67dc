"""Class labels from any source: counted, and coded as targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from .._checks import check_present, refuse_missing
from .._compute.arrays import Array, Indices, are_whole
from .dask import beside, computed, delayed, known


@dataclass(frozen=True)
class ClassTotals:
    """Classes in order, with the number and total weight of their rows of positive weight.

    `whole` says whether all weights are whole numbers. Then a weight of two counts as two rows.
    """

    classes: Any
    rows: Array
    weights: Array
    whole: bool

    @property
    def counts(self) -> Array:
        """Number of rows of each class."""
        return self.weights if self.whole else self.rows


def class_totals(labels: Any, w: Array | None = None) -> ClassTotals:
    """Classes of the rows of positive weight."""
    if w is not None:
        labels, w = labels[w > 0], w[w > 0]
    ones = np.ones(len(labels))
    return _added_up(labels, ones, ones if w is None else w, w is None or are_whole(w))


def joined_totals(parts: Sequence[ClassTotals]) -> ClassTotals:
    """Classes of several blocks of rows."""
    parts = [part for part in parts if len(part.classes)] or list(parts)
    labels, rows, weights = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("classes", "rows", "weights")
    )
    return _added_up(labels, rows, weights, all(part.whole for part in parts))


def _added_up(labels: Any, rows: Array, weights: Array, whole: bool) -> ClassTotals:
    """Sum the numbers of rows and the weights of each label."""
    classes, index = np.unique(labels, return_inverse=True)
    rows, weights = (np.bincount(index, v).astype(np.float64) for v in (rows, weights))
    return ClassTotals(classes, rows, weights, whole)


def block_totals(labels: Any, w: Any = None, first: int = 0) -> ClassTotals:
    """Classes of a block that starts at row `first`; missing labels raise an error."""
    labels = np.asarray(labels)
    check_present(labels, first)
    return class_totals(labels, None if w is None else np.asarray(w, dtype=np.float64))


def checked_labels(y: Any) -> Any:
    """Labels as a one-dimensional array; missing labels raise an error."""
    if y is None:
        raise ValueError(
            "`y` must hold labels: a fit requires y to be passed, but the target y is None."
        )
    if isinstance(y, list | tuple):  # an array of strings would turn NaN into "nan"
        check_present(column_or_1d(np.asarray(y, dtype=object)))
    refuse_missing(np.ravel(np.ma.getmaskarray(y)) if np.ma.isMaskedArray(y) else np.zeros(0))
    # Converted by NumPy: scikit-learn turns pandas' booleans and integers into floats.
    labels = column_or_1d(np.asarray(y) if hasattr(y, "__array__") else y, warn=True)
    check_present(labels)
    try:
        check_classification_targets(labels)
    except ValueError as error:
        found = ""
        if labels.dtype.kind == "O":
            kinds = ", ".join(sorted({type(label).__name__ for label in labels}))
            found = f", got an array of Python objects ({kinds}). Convert it first"
        raise ValueError(
            "`y` must hold labels of one kind: whole numbers, texts, booleans or dates"
            f"{found}. Use AutoKernelRidge to predict numbers. {error}"
        ) from error
    return labels


def check_classes(found: ClassTotals) -> Any:
    """Return the classes, or raise an error if they are too few, too rare or not labels."""
    classes, counts = found.classes, found.counts
    if classes.dtype.kind == "f" and (classes != np.rint(classes)).any():
        raise ValueError(
            f"`y` must hold labels of classes, got {len(classes)} numbers with fractions "
            "(continuous). Use AutoKernelRidge for these."
        )
    if len(classes) < 2:
        got = f"one class, {_listed(classes)}" if len(classes) else "no rows"
        raise ValueError(
            f"`y` must have at least two classes among the rows of positive weight, got {got}."
        )
    if counts.min() < 2:
        rare = classes[counts == 1]
        raise ValueError(
            f"`y` must have at least two rows of each class, got one row of {_listed(rare)}. "
            "Remove these classes, or merge them with others."
        )
    return classes


def _listed(labels: Any, most: int = 5) -> str:
    shown = ", ".join(repr(label) for label in labels[:most].tolist())
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most} more"


def class_factors(class_weight: Any, classes: Any, totals: Array) -> Array | None:
    """Factor for the weights of each class, or None; `totals` are the weights of the classes."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        return totals.sum() / (len(classes) * totals)
    if not isinstance(class_weight, Mapping):
        kind = ValueError if isinstance(class_weight, str) else TypeError
        raise kind(
            '`class_weight` must be None, "balanced" or a dict from labels to weights, got '
            f"{class_weight!r}."
        )
    unknown = [label for label in class_weight if label not in classes.tolist()]
    if unknown:
        raise ValueError(
            f"`class_weight` must name classes of `y`, which are {_listed(classes)}, got "
            f"{unknown[0]!r}."
        )
    factors = [class_weight.get(label, 1.0) for label in classes.tolist()]
    if not all(isinstance(factor, Real) and 0 < float(factor) < np.inf for factor in factors):
        raise ValueError(f"`class_weight` must have finite weights > 0, got {class_weight!r}.")
    return np.array(factors, dtype=np.float64)


@dataclass(frozen=True)
class Coding:
    """Coding of classes as targets: 1 or 0, minus the share of the class.

    Two classes have one column, for the second class.

    Attributes
    ----------
    classes : labels in order
    prior : shares of the classes
    factors : factors for the weights of each class, or None
    """

    classes: Any
    prior: Array
    factors: Array | None = None

    @property
    def columns(self) -> int:
        """Number of targets."""
        return 1 if len(self.prior) == 2 else len(self.prior)

    def index(self, labels: Any) -> Indices:
        """Index of the class of each label; -1 for a class without rows of positive weight."""
        places = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        return np.where(self.classes[places] == labels, places, -1)

    def coded(self, index: Indices) -> Array:
        """Targets from the indices of classes."""
        Y = (index[:, None] == np.arange(len(self.prior))) - self.prior
        return Y[:, 1:] if self.columns == 1 else Y

    def targets(self, labels: Any) -> Array:
        """Targets of labels, of shape (n, columns)."""
        return self.coded(self.index(labels))

    def weights(self, labels: Any, w: Array | None = None) -> Array | None:
        """Weights of the rows, multiplied by the factors of their classes."""
        if self.factors is None:
            return w
        index = self.index(labels)
        factors = np.where(index >= 0, self.factors[index], 0.0)
        return factors if w is None else factors * w


def coded_classes(labels: Any) -> Array:
    """Targets of labels, coded with the shares of their own classes."""
    found = class_totals(labels)
    return Coding(found.classes, found.weights / found.weights.sum()).targets(labels)


@dataclass(frozen=True)
class CodedColumn:
    """Name of a column of labels in Parquet files, and the coding of the labels."""

    name: str
    coding: Coding


@dataclass(frozen=True)
class ArrayLabels:
    """Labels of rows in memory, with weights or None."""

    y: Any
    w: Array | None

    def totals(self) -> ClassTotals:
        """The classes."""
        return class_totals(self.y, self.w)

    def coded(self, coding: Coding) -> tuple[Array, Array | None]:
        """Targets and weights."""
        return coding.targets(self.y), coding.weights(self.y, self.w)


@dataclass(frozen=True)
class DaskLabels:
    """Labels in a Dask array, whose blocks are coded where they are."""

    y: Any
    w: Any

    def totals(self) -> ClassTotals:
        """The classes, from one pass over the labels."""
        starts = np.cumsum([0, *self.y.chunks[0][:-1]]).tolist()
        blocks = [Z.to_delayed().ravel() for Z in (self.y, self.w) if Z is not None]
        tasks = [
            delayed()(block_totals)(*block, first=start)
            for start, *block in zip(starts, *blocks, strict=True)
        ]
        return joined_totals(computed(tasks))

    def coded(self, coding: Coding) -> tuple[Any, Any]:
        """Lazy arrays of targets and weights."""
        shape = {"chunks": (self.y.chunks[0], (coding.columns,)), "meta": np.empty((0, 0))}
        Y = self.y.map_blocks(coding.targets, dtype=np.float64, new_axis=1, **shape)
        if coding.factors is None:
            return Y, self.w
        others = [] if self.w is None else [self.w]
        return Y, self.y.map_blocks(coding.weights, *others, dtype=np.float64, meta=np.empty(0))


def dask_labels(y: Any, w: Any) -> DaskLabels:
    """Labels and weights of Dask rows, with the same chunks."""
    y = known(y)
    if y.ndim != 1:
        raise ValueError(f"`y` must have one dimension, a label for each row, got {y.ndim}.")
    return DaskLabels(y, beside("sample_weight", w, y))


@dataclass(frozen=True)
class ParquetLabels:
    """A column of labels in Parquet files, and a column of weights or None."""

    files: Any
    y: Any
    w: str | None

    def totals(self) -> ClassTotals:
        """The classes."""
        if self.y is None:
            raise ValueError("`y` must name the column of labels in Parquet files, got None.")
        return self.files.class_totals(self.y, self.w)

    def coded(self, coding: Coding) -> tuple[CodedColumn, str | None]:
        """Targets and weights, as the regressor takes them."""
        return CodedColumn(self.y, coding), self.w
