"""Models in files that can run no code: columns, scaling and estimator in one skops file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import jacridge

from .._checks import require
from .._files import replaced

FORMAT = "jacridge model 1"
TRUSTED = frozenset(
    {
        "jacridge._estimator.JacobianKernelRidge",
        "jacridge._pcg.PcgModel",
        "sklearn.compose._column_transformer._RemainderColsList",  # until scikit-learn 1.8
    }
)


class ModelFileError(ValueError):
    """A file that is no model of ours."""


@dataclass(frozen=True)
class SavedModel:
    """A fitted pipeline and the names of the columns it was fitted on."""

    pipeline: Pipeline
    target: str
    numbers: list[str]
    texts: list[str]

    def predictions(
        self, X: pl.DataFrame, *, std: bool = False, interval: float | None = None
    ) -> pl.DataFrame:
        """Columns `prediction`, and `std`, `lower`, `upper` as asked for."""
        features, model = self.pipeline[:-1].transform(X), self.pipeline[-1]
        if model.solver_ == "pcg" and (std or interval is not None):
            raise ValueError(
                "Deviations and intervals need a model of the solver exact or nystrom, got pcg. "
                "Fit it again with another solver."
            )
        columns = {"prediction": model.predict(features)}
        if std:
            columns["std"] = model.predict(features, return_std=True)[1]
        if interval is not None:
            columns["lower"], columns["upper"] = model.predict_interval(features, coverage=interval)
        return pl.DataFrame(columns)

    def unknown(self, X: pl.DataFrame) -> dict[str, int]:
        """Columns with categories that training did not have, and in how many rows."""
        if not self.texts:
            return {}
        encoder = self.pipeline[0].named_transformers_["categories"]
        known = zip(self.texts, encoder.categories_, strict=True)
        counts = {name: int((~X[name].is_in(list(seen))).sum()) for name, seen in known}
        return {name: count for name, count in counts.items() if count}


def columns_prepared(
    numbers: Sequence[str], texts: Sequence[str], *, standardize: bool
) -> ColumnTransformer:
    """Numbers standardised, categories one-hot.

    Two categories are then at the squared distance 2, the mean one of two standardised numbers.
    """
    scaler = StandardScaler() if standardize else "passthrough"
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    parts = [("numbers", scaler, list(numbers)), ("categories", encoder, list(texts))]
    return ColumnTransformer([part for part in parts if part[2]])


def save_model(path: str, model: SavedModel) -> None:
    """Write a model beside `path`, then put it in its place."""
    content = {
        "format": FORMAT,
        "version": jacridge.__version__,
        "target": model.target,
        "numbers": list(model.numbers),
        "texts": list(model.texts),
        "pipeline": model.pipeline,
    }
    skops = require("skops.io", extra="cli")  # slow to import
    with replaced(path) as beside:
        skops.dump(content, beside)


def load_model(path: str) -> SavedModel:
    """Read a model; a file that holds anything but known types is refused."""
    skops = require("skops.io", extra="cli")
    data = Path(path).read_bytes()
    try:
        unknown = set(skops.get_untrusted_types(data=data)) - TRUSTED
        content: Any = None if unknown else skops.loads(data, trusted=sorted(TRUSTED))
    except Exception as error:  # whatever a damaged file makes skops stumble on
        raise ModelFileError(
            f"`{path}` must be a whole file written by `jacridge fit`, got one that cannot be read "
            f"({type(error).__name__})."
        ) from error
    if unknown:
        raise ModelFileError(
            f"`{path}` must hold a model of jacridge only, got {', '.join(sorted(unknown))}. "
            "It was not loaded."
        )
    if not _is_model(content):
        raise ModelFileError(
            f"`{path}` must be a model written by `jacridge fit`, got another skops file."
        )
    return SavedModel(*(content[part] for part in ("pipeline", "target", "numbers", "texts")))


def _is_model(content: Any) -> bool:
    """Whether all parts of a model are there and of the right kind."""
    try:
        names = [*content["numbers"], *content["texts"]]
        pipeline = content["pipeline"]
        return (
            content["format"] == FORMAT
            and all(isinstance(name, str) for name in [content["target"], *names])
            and isinstance(pipeline[0], ColumnTransformer)
            and isinstance(pipeline[-1], jacridge.JacobianKernelRidge)
            and list(pipeline[0].feature_names_in_) == names
        )
    except (AttributeError, KeyError, TypeError, IndexError):
        return False
