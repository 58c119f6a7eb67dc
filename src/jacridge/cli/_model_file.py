"""Models in files that can run no code: columns, scaling and estimator in one skops file."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import jacridge

from .._checks import require
from .._compute.files import replaced
from .._pipeline import regressor_of
from ..report._columns import GAP
from ._cells import MODEL_HINT
from ._columns import typed_columns
from ._dates import PARTS, Dates, columns_of_parts, day_of, with_parts
from ._missing import gaps
from ._tables import listed
from ._terminal import WrongUse, check_suffix

# Files of format 1 have one target, no dates and no filled gaps. The first files of format 2 do not
# say whether months are whole, which they then are.
MODEL_CLASSES = (jacridge.JacobianKernelRidge, jacridge.JacobianKernelClassifier)
FORMATS = ("jacridge model 1", "jacridge model 2")
TRUSTED = frozenset(
    {
        "jacridge.AutoKernelClassifier",
        "jacridge.AutoKernelRidge",
        "jacridge.JacobianKernelClassifier",
        "jacridge.JacobianKernelRidge",
        "jacridge._estimator.JacobianKernelRidge",  # of version 0.1
        "numpy.dtype",  # of the imputers
        "sklearn.compose._column_transformer._RemainderColsList",  # until scikit-learn 1.8
    }
)


class ModelFileError(ValueError):
    """A file that is not a model of this package."""


@dataclass(frozen=True)
class SavedModel:
    """A fitted pipeline, and how the columns of a file become the columns it was fitted to."""

    pipeline: Pipeline
    targets: list[str]
    numbers: list[str]  # parts of dates included
    texts: list[str]
    dates: dict[str, Dates] = field(default_factory=dict)
    fills: bool = False
    decimal: str = "."  # of the table that it was fitted to
    thousands: list[str] = field(default_factory=list)  # columns whose commas separate thousands
    ranges: dict[str, list[float]] = field(default_factory=dict)  # of columns in training, if known

    @property
    def target(self) -> str:
        """The names of the targets."""
        return ", ".join(self.targets)

    @property
    def task(self) -> str:
        """Task of the model: regression or classification."""
        return "classification" if self.classes else "regression"

    @property
    def classes(self) -> list[Any]:
        """Labels of the classes; none for a model of numbers."""
        return np.asarray(getattr(self.pipeline[-1], "classes_", [])).tolist()

    @property
    def n_columns(self) -> int:
        """The number of columns of the file that the features are made of; a date is one."""
        return len({self.made_of.get(name, name) for name in self.numbers + self.texts})

    def columns_of(self, raw: pl.DataFrame, source: str, decimal: str = ".") -> pl.DataFrame:
        """The columns of a file as the pipeline takes them, with nulls for missing values."""
        plain = [name for name in self.numbers if name not in self.made_of]
        kinds: Any = {"numbers": plain, "texts": self.texts, "dates": self.dates}
        commas: Any = {"decimal": decimal, "on_commas": MODEL_HINT * (self.decimal == ".")}
        thousands = self.thousands if decimal == "." else []
        frame = typed_columns(raw, source, **kinds, **commas, thousands=thousands)
        return with_parts(frame, self.dates).select(self.numbers + self.texts)

    @property
    def made_of(self) -> dict[str, str]:
        """For each part of a date, the column that it comes from."""
        return columns_of_parts(self.dates)

    def gaps(self, frame: pl.DataFrame) -> dict[str, int]:
        """How many values each column lacks, in decreasing order; a date column counts once."""
        made_of = self.made_of
        return {made_of.get(name, name): count for name, count in gaps(frame).items()}

    def new_gaps(self, X: pl.DataFrame) -> dict[str, int]:
        """How many gaps are filled in columns of numbers that had none in training."""
        marks = [(t, names) for name, t, names in self.pipeline[0].transformers_ if name == "gaps"]
        complete = [name for t, names in marks for name in np.delete(names, t.features_)]
        return self.gaps(X.select(complete))

    def predictions(
        self, X: pl.DataFrame, *, std: bool = False, interval: float | None = None
    ) -> pl.DataFrame:
        """Columns `prediction`, and `std`, `lower`, `upper` if asked for, for each target.

        For classes, `prediction` and the probability of each class.
        """
        features, model = self.pipeline[:-1].transform(X), self.pipeline[-1]
        if self.classes:
            P = {} if model.solver_ == "pcg" else model.predict_proba(features).T
            of_class = {f"probability {k}": p for k, p in zip(self.classes, P, strict=False)}
            return pl.DataFrame({"prediction": model.predict(features), **of_class})
        if model.solver_ == "pcg" and (std or interval is not None):
            raise ValueError(
                "Deviations and intervals need a model fitted by the solver exact or nystrom, got "
                "pcg. Fit it again with another solver."
            )
        found = {"prediction": model.predict(features)}
        if std:
            found["std"] = model.predict(features, return_std=True)[1]
        if interval is not None:
            lower, upper = model.predict_interval(features, coverage=interval)
            below, above = self._spread_of_categories(X, found["prediction"])
            found["lower"], found["upper"] = lower - below, upper + above
        if len(self.targets) == 1:
            return pl.DataFrame({name: values.reshape(len(X)) for name, values in found.items()})
        return pl.DataFrame(
            {
                f"{name} {target}": values[:, i]
                for i, target in enumerate(self.targets)
                for name, values in found.items()
            }
        )

    def outside(self, X: pl.DataFrame) -> Any:
        """How far rows lie from the training rows, from 0 to 1; see `outside_share`."""
        regressor = regressor_of(self.pipeline[-1])
        return regressor.outside_share(self.pipeline[:-1].transform(X))

    def beyond(self, X: pl.DataFrame) -> list[str]:
        """How far columns of these rows lie beyond their ranges in training, the farthest first."""
        found = []
        for name, (low, high) in self.ranges.items():
            written: Callable[[float], Any] = day_of if name in self.made_of else "{:.6g}".format
            values, known = X[name].to_numpy(), self.made_of.get(name, name)
            for way, end, excess in (("down", low, low - values), ("up", high, values - high)):
                if np.nanmax(excess, initial=0.0) > 0:
                    far = written(values[np.nanargmax(excess)])
                    text = f"`{known}` is {way} to {far}, in training {way} to {written(end)}"
                    found.append((np.nanmax(excess) / (high - low or 1.0), text))
        return [text for _, text in sorted(found, reverse=True)]

    def _spread_of_categories(self, X: pl.DataFrame, prediction: Any) -> tuple[Any, Any]:
        """How far predictions fall and rise with known categories in place of new ones."""
        below, above = np.zeros((2, *prediction.shape))
        for name, new in self._new_categories(X).items():
            if new.any():
                rows, least, most = X.filter(new), prediction[new], prediction[new]
                for category in self.known()[name]:
                    mean = self.pipeline.predict(rows.with_columns(pl.lit(category).alias(name)))
                    least, most = np.minimum(least, mean), np.maximum(most, mean)
                below[new] += prediction[new] - least
                above[new] += most - prediction[new]
        return below, above

    def _new_categories(self, X: pl.DataFrame) -> dict[str, Any]:
        """For each column of text, which rows have a category that training did not have."""
        filled = X.with_columns(pl.col(self.texts).fill_null(GAP))
        return {
            name: ~filled[name].is_in(list(seen)).to_numpy() for name, seen in self.known().items()
        }

    def has_unknown(self, X: pl.DataFrame) -> Any:
        """Which rows have a category that training did not have."""
        new = self._new_categories(X).values()
        return np.any(list(new), axis=0) if new else np.zeros(len(X), dtype=bool)

    def unknown(self, X: pl.DataFrame) -> dict[str, dict[str, int]]:
        """Categories of each column that training did not have, and their numbers of rows."""
        filled = X.with_columns(pl.col(self.texts).fill_null(GAP))
        counts = {
            name: Counter(filled[name].filter(~filled[name].is_in(list(seen))).to_list())
            for name, seen in self.known().items()
        }
        return {name: dict(count.most_common()) for name, count in counts.items() if count}

    def known(self) -> dict[str, list[str]]:
        """Categories of each column in training."""
        if not self.texts:
            return {}
        steps = self.pipeline[0].named_transformers_["categories"]
        encoder = steps[-1] if isinstance(steps, Pipeline) else steps
        return {
            name: list(seen) for name, seen in zip(self.texts, encoder.categories_, strict=True)
        }


def save_skops(path: str, model: SavedModel) -> None:
    """Write a model for `jacridge predict`."""
    dates = {name: asdict(date) for name, date in model.dates.items()}
    about = {"format": FORMATS[-1], "version": jacridge.__version__}
    content = {**about, **vars(model), "dates": dates}
    skops = require("skops.io", extra="cli")  # slow to import
    with replaced(path) as beside:
        skops.dump(content, beside)


def save_onnx(path: str, model: SavedModel) -> None:
    """Write the predictions of a model with numeric columns only as an ONNX graph."""
    check_columns(path, model)
    scale = model.pipeline[0].named_transformers_["numbers"]
    steps = [scale] if isinstance(scale, StandardScaler) else []
    graph = require("jacridge.onnx", extra="onnx").to_onnx(
        make_pipeline(*steps, model.pipeline[-1])
    )
    with replaced(path) as beside:
        beside.write_bytes(graph.SerializeToString())


# File suffixes of model files.
SAVERS: dict[str, Callable[[str, SavedModel], None]] = {
    "": save_skops,
    ".skops": save_skops,
    ".onnx": save_onnx,
}


def check_model_name(path: str, *, on_globe: bool = False) -> None:
    """Refuse a file name whose suffix is not a model format."""
    suffix = Path(path).suffix.lower()
    pickled = "Pickled files are not written, because loading them can run code."
    check_suffix("A model", path, suffix, SAVERS, pickled)
    if suffix == ".onnx":
        require("onnx", extra="onnx")
        if on_globe:
            raise WrongUse(
                f"ONNX cannot measure distances on the globe, got --metric geodesic and `{path}`. "
                "Write a .skops file."
            )


def check_columns(path: str, model: SavedModel) -> None:
    """Refuse columns that the file format does not support; the model need not be fitted."""
    plain = not (model.texts or model.dates or model.fills)
    if not plain and Path(path).suffix.lower() == ".onnx":
        kinds = listed([*model.texts, *model.dates]) or "gaps that are filled"
        raise ModelFileError(
            f"`{path}` only supports models with numeric columns, got {kinds}. "
            "Write a .skops file, or leave these columns out with --drop."
        )


def save_model(path: str, model: SavedModel) -> None:
    """Write a model in the format given by the file name."""
    SAVERS[Path(path).suffix.lower()](path, model)


def load_model(path: str) -> SavedModel:
    """Read a model; refuse a file with unknown types or without a valid model."""
    content = _trusted_content(path)
    try:
        model = _model_of(content)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError):
        model = None
    if model is None:
        raise ModelFileError(
            f"`{path}` must be a model written by `jacridge fit`, got another skops file."
        )
    fault = _fault(model)
    if fault:
        raise ModelFileError(
            f"`{path}` must hold a model that can predict, got {fault}. Fit the model again."
        )
    return model


def _trusted_content(path: str) -> Any:
    """Content of a skops file, if it only contains known types."""
    skops = require("skops.io", extra="cli")
    data = Path(path).read_bytes()
    other = data and not data.startswith(b"PK")  # as all zip files do
    if other or b"xl/workbook" in data:
        onnx = Path(path).suffix.lower() == ".onnx"
        raise ModelFileError(
            f"`{path}` must be a model file written by `jacridge fit`, got a file of another kind. "
            + (
                "An ONNX graph is for an ONNX runtime: fit to a .skops file to use it here."
                if onnx
                else "The model comes first: jacridge predict MODEL FILE."
            )
        )
    try:
        unknown = set(skops.get_untrusted_types(data=data)) - TRUSTED
        content: Any = None if unknown else skops.loads(data, trusted=sorted(TRUSTED))
    except Exception as error:  # a damaged file can raise any error in skops
        raise ModelFileError(
            f"`{path}` must be a complete file written by `jacridge fit`, but cannot be read "
            f"({type(error).__name__}). Copy it again, or fit the model again."
        ) from error
    if unknown:
        raise ModelFileError(
            f"`{path}` must only hold a jacridge model, got {', '.join(sorted(unknown))}. "
            "It was not loaded."
        )
    return content


def _model_of(content: Any) -> SavedModel | None:
    """The model, if it is complete and all its parts have the right type."""
    targets = content["targets"] if "targets" in content else [content["target"]]
    numbers, texts = list(content["numbers"]), list(content["texts"])
    stored = content.get("dates", {})
    dates = {name: Dates(**{"whole_months": True} | date) for name, date in stored.items()}
    parts = [part for date in dates.values() for part in date.parts]
    pipeline, decimal = content["pipeline"], content.get("decimal", ".")
    thousands = list(content.get("thousands", []))
    ranges = {
        name: [float(end) for end in ends] for name, ends in content.get("ranges", {}).items()
    }
    fits = (
        content["format"] in FORMATS
        and all(isinstance(name, str) for name in [*targets, *numbers, *texts, *dates])
        and {*thousands, *ranges} <= set(numbers)
        and all(len(ends) == 2 and np.isfinite(ends).all() for ends in ranges.values())
        and set(parts) <= set(PARTS)
        and decimal in (".", ",")
        and isinstance(pipeline[0], ColumnTransformer)
        and isinstance(pipeline[-1], MODEL_CLASSES)
        and list(pipeline[0].feature_names_in_) == numbers + texts
    )
    fills = bool(content.get("fills", False))
    columns = list(targets), numbers, texts, dates
    return SavedModel(pipeline, *columns, fills, decimal, thousands, ranges) if fits else None


def _fault(model: SavedModel) -> str:
    """The reason why a model cannot predict; empty if it can."""
    bad = [name for name, array in _arrays(model.pipeline) if not _are_numbers(name, array)]
    if bad:
        return f"numbers that are not finite in `{bad[0]}`"
    row = {name: [0.0] for name in model.numbers} | {name: ["?"] for name in model.texts}
    try:
        found = model.predictions(pl.DataFrame(row))
    except Exception:  # arrays of wrong shapes can raise any error
        return "arrays whose shapes do not fit"
    numbers = found.select(pl.exclude("prediction")) if model.classes else found
    wanted = len(model.targets) if not model.classes else numbers.width
    finite = np.isfinite(numbers.to_numpy()).all()
    return "" if finite and numbers.width == wanted else "predictions that are not numbers"


def _are_numbers(name: str, array: Any) -> bool:
    """Whether all numbers are finite, except widths of features that are not compressed."""
    if name == "warp_":
        return bool(np.isfinite(array[0]).all() and (array[1:] > 0).all())
    return bool(np.isfinite(array).all())


def _arrays(part: Any, name: str = "model") -> Iterator[tuple[str, Any]]:
    """All fitted numbers in a model, each with the name of its attribute."""
    is_array = isinstance(part, np.ndarray) and part.dtype.kind == "f"
    if is_array or (isinstance(part, float | np.floating) and name.endswith("_")):  # no parameter
        yield name, part
    elif isinstance(part, dict):
        for key, value in part.items():
            yield from _arrays(value, str(key))
    elif isinstance(part, list | tuple):
        for value in part:
            yield from _arrays(value, name)
    elif hasattr(part, "__dict__") and not isinstance(part, type):
        yield from _arrays(vars(part), name)
