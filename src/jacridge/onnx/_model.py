"""`to_onnx`: a pipeline as a graph, with the model as its last step."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import JacobianKernelClassifier, JacobianKernelRidge
from .._checks import check_choice, require
from .._pipeline import steps_of
from ._graph import Graph
from ._steps import add_steps, columns_of


def to_onnx(model: Any, X: Any = None, *, dtype: str = "float64") -> Any:
    r"""Convert the predictions of a fitted model to an ONNX graph.

    Exact and Nystrom models both are :math:`b + k(x, Z) c` with the rows Z that they keep. The
    graph computes in float64, because the coefficients of a kernel model are large and cancel;
    `dtype` is the type of inputs and outputs.

    Parameters
    ----------
    model : fitted regressor or classifier of jacridge, or a Pipeline that ends in one
        With any kernel, and any metric except "geodesic"; for "precomputed" the graph takes
        distances. The steps before the model are converted by skl2onnx: scalers, encoders,
        imputers, ColumnTransformer, and any others that skl2onnx supports in float64.
    X : data frame or array, optional
        Some rows, to see which columns hold text. Required for a ColumnTransformer that was
        fitted to a data frame.
    dtype : {"float64", "float32"}
        Type of the numbers in inputs and outputs.

    Returns
    -------
    onnx.ModelProto
        Its input is ``X`` of shape (rows, features); with a ColumnTransformer that was fitted to a
        data frame it has one input of shape (rows, 1) for each column, with the column's name. An
        empty string means a missing value. A regressor has the output ``y`` of shape (rows,) or
        (rows, targets). A classifier has ``label`` of shape (rows,) and ``probabilities`` of shape
        (rows, classes), or only ``label`` if it has no ``predict_proba``. Labels are int64 or
        strings: booleans become 0 and 1, dates become strings such as 2020-01-31.

    Raises
    ------
    TypeError
        If the model is of another kind.
    ValueError
        If the metric is "geodesic", for which ONNX has no operators, or if skl2onnx cannot
        convert a step.

    Examples
    --------
    >>> import numpy as np
    >>> from jacridge import JacobianKernelRidge
    >>> from jacridge.onnx import to_onnx
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> graph = to_onnx(JacobianKernelRidge().fit(X, np.sin(X[:, 0])))
    >>> graph.graph.input[0].name
    'X'
    """
    onnx = require("onnx", extra="onnx")
    check_choice("dtype", dtype, ("float64", "float32"))
    *steps, est = steps_of(model)
    types = onnx.TensorProto
    kind = types.DOUBLE if dtype == "float64" else types.FLOAT
    graph = Graph(onnx)
    columns = columns_of(steps[0], X) if steps else [("X", False, est.n_features_in_)]
    read = []
    for name, is_text, width in columns:
        graph.input(name, types.STRING if is_text else kind, width)
        read.append(name if is_text else graph.node("Cast", name, to=types.DOUBLE))
    features = add_steps(graph, steps, columns, read) if steps else read[0]
    if isinstance(est, JacobianKernelClassifier):
        _add_classes(graph, est, _scores(graph, est.regressor_, features), kind)
    else:
        graph.node("Cast", _scores(graph, est, features), to=kind, name="y")
        graph.output("y", kind, *est.dual_coef_.shape[1:])
    return graph.model()


def _scores(graph: Graph, est: JacobianKernelRidge, rows: str) -> str:
    """Add the predictions of the regressor for rows of features."""
    function = est._function()  # of the fit, even if `set_params` was called since
    if function.mapping is not None:
        rows = function.mapping.onnx(graph, rows)
    elif function.columns is not None:
        rows = graph.node("Gather", rows, graph.indices(function.columns), axis=1)
    gaps = function.space.distance.onnx(graph, rows, function.Z, function.sigma)
    K = function.space.kernel.onnx(graph, gaps, function.sigma)
    product = graph.node("MatMul", K, graph.array(est.dual_coef_))
    return graph.node("Add", product, graph.array(np.asarray(est.intercept_)))


def _add_classes(graph: Graph, est: JacobianKernelClassifier, scores: str, kind: int) -> None:
    """Add the outputs of a classifier: labels, and probabilities if it has them."""
    types, classes = graph.onnx.TensorProto, est.classes_
    odds = graph.node("Mul", scores, graph.number(est.slope_))
    odds = graph.node("Add", odds, graph.array(np.asarray(est.offset_)))
    if len(classes) == 2:  # the scores of the second class
        odds = graph.node("Concat", graph.node("Neg", odds), odds, axis=1)
    is_text = classes.dtype.kind not in "biuf"  # ONNX has no dates
    labels = graph.constant(classes.astype(str if is_text else np.int64))
    graph.node("Gather", labels, graph.node("ArgMax", odds, axis=1, keepdims=0), name="label")
    graph.output("label", types.STRING if is_text else types.INT64)
    if hasattr(est, "predict_proba"):
        share = graph.node("Sigmoid", odds) if len(classes) == 2 else graph.node("Softmax", odds)
        graph.node("Cast", share, to=kind, name="probabilities")
        graph.output("probabilities", kind, len(classes))
