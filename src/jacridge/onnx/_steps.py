"""Steps of scikit-learn before the model, converted by skl2onnx in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline

from .._checks import require
from ._graph import ML, ML_OPSET, OPSET, Graph

# An input of the graph: its name, whether it holds text, and its number of columns.
InputColumn = tuple[str, bool, int]


def columns_of(first: Any, X: Any) -> list[InputColumn]:
    """The inputs of a pipeline's first step: each column by name, or all in one matrix."""
    if isinstance(first, ColumnTransformer) and hasattr(first, "feature_names_in_"):
        if not hasattr(X, "columns"):
            raise ValueError(
                "`X` must be some rows of the data frame, to see which columns hold text, got "
                f"{'none' if X is None else type(X).__name__}."
            )
        return [(str(name), _is_text(X[name]), 1) for name in first.feature_names_in_]
    return [("X", X is not None and _is_text(X), first.n_features_in_)]


def _is_text(values: Any) -> bool:
    return np.asarray(values).dtype.kind not in "fiub"


def add_steps(
    graph: Graph, steps: Sequence[Any], columns: Sequence[InputColumn], values: Sequence[str]
) -> str:
    """Add the steps, which read the columns from these values; returns the features."""
    found = _converted(steps, columns)
    # skl2onnx renames columns whose names are not identifiers.
    read = {there.name: here for there, here in zip(found.input, values, strict=True)}
    for node in found.node:
        node.input[:] = [read.get(name, name) for name in node.input]
    graph.nodes += found.node
    graph.constants += found.initializer
    return graph.node("Cast", found.output[0].name, to=graph.onnx.TensorProto.DOUBLE)


def _converted(steps: Sequence[Any], columns: Sequence[InputColumn]) -> Any:
    """The graph that skl2onnx makes of the steps."""
    skl2onnx = require("skl2onnx", extra="onnx")
    types = require("skl2onnx.common.data_types", extra="onnx")
    kinds = {True: types.StringTensorType, False: types.DoubleTensorType}
    try:
        return skl2onnx.convert_sklearn(
            Pipeline([(str(i), step) for i, step in enumerate(steps)]),
            initial_types=[(name, kinds[text]([None, width])) for name, text, width in columns],
            target_opset={"": OPSET, ML: ML_OPSET},
            custom_conversion_functions={SimpleImputer: _impute, MissingIndicator: _indicate},
            custom_shape_calculators={SimpleImputer: _imputed, MissingIndicator: _indicated},
        ).graph
    except Exception as error:  # skl2onnx can raise any error
        names = ", ".join(type(step).__name__ for step in steps)
        raise ValueError(
            f"`model` must have steps that skl2onnx can convert, got {names}: "
            f"{str(error).strip().splitlines()[0]}"
        ) from error


# skl2onnx only has imputers for float32, and no indicators of missing values.


def _imputed(operator: Any) -> None:
    """Type and shape of what an imputer returns."""
    step, kind = operator.raw_operator, type(operator.inputs[0].type)
    marks = 0 if step.indicator_ is None else len(step.indicator_.features_)
    operator.outputs[0].type = kind([None, len(_kept(step)) + marks])


def _indicated(operator: Any) -> None:
    """Type and shape of what an indicator returns."""
    types = require("skl2onnx.common.data_types", extra="onnx")
    operator.outputs[0].type = types.DoubleTensorType([None, len(operator.raw_operator.features_)])


def _impute(scope: Any, operator: Any, container: Any) -> None:
    """Replace missing values, and add the columns of an indicator."""
    graph, step = _graph(scope), operator.raw_operator
    rows, gaps = _gaps(graph, operator)
    values = step.statistics_ if _reads_text(operator) else step.statistics_.astype(float)
    filled = graph.node("Where", gaps, graph.constant(values[None]), rows)
    filled = graph.node("Gather", filled, graph.indices(_kept(step)), axis=1)
    if step.indicator_ is not None:
        filled = graph.node("Concat", filled, _marks(graph, gaps, step.indicator_), axis=1)
    _put(graph, filled, operator, container)


def _indicate(scope: Any, operator: Any, container: Any) -> None:
    """Mark the missing values."""
    graph = _graph(scope)
    _, gaps = _gaps(graph, operator)
    _put(graph, _marks(graph, gaps, operator.raw_operator), operator, container)


def _graph(scope: Any) -> Graph:
    return Graph(require("onnx", extra="onnx"), scope.get_unique_operator_name("gaps"))


def _kept(step: SimpleImputer) -> Any:
    """Indices of the columns that an imputer keeps: those with at least one value."""
    return np.flatnonzero([value == value for value in step.statistics_])


def _reads_text(operator: Any) -> bool:
    types = require("skl2onnx.common.data_types", extra="onnx")
    return isinstance(operator.inputs[0].type, types.StringTensorType)


def _gaps(graph: Graph, operator: Any) -> tuple[str, str]:
    """The rows that a step reads, and which of their values are missing."""
    missing, names = operator.raw_operator.missing_values, [i.full_name for i in operator.inputs]
    rows = graph.node("Concat", *names, axis=1) if len(names) > 1 else names[0]
    is_nan = missing is None or missing != missing  # NaN differs from itself
    if _reads_text(operator):
        keys = ["" if is_nan else missing]
        codes: dict[str, Any] = {"keys_strings": keys, "values_int64s": [1], "default_int64": 0}
        found = graph.node("LabelEncoder", rows, domain=ML, **codes)
        return rows, graph.node("Cast", found, to=graph.onnx.TensorProto.BOOL)
    if is_nan:
        return rows, graph.node("IsNaN", rows)
    return rows, graph.node("Equal", rows, graph.number(missing))


def _marks(graph: Graph, gaps: str, step: MissingIndicator) -> str:
    """One for each missing value in the columns that are marked, else zero."""
    some = graph.node("Gather", gaps, graph.indices(step.features_), axis=1)
    return graph.node("Cast", some, to=graph.onnx.TensorProto.DOUBLE)


def _put(graph: Graph, result: str, operator: Any, container: Any) -> None:
    """Pass the nodes to skl2onnx, with the name that it expects for the result."""
    graph.node("Identity", result, name=operator.outputs[0].full_name)
    container.nodes += graph.nodes
    container.initializers += graph.constants
    container.node_domain_version_pair_sets |= {("", OPSET), (ML, ML_OPSET)}
