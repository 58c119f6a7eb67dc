"""A fitted model as an ONNX graph, to predict where there is no Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from . import JacobianKernelRidge, __version__
from ._checks import check_choice, require
from ._compute.arrays import Array

__all__ = ["to_onnx"]

# Old enough for the runtimes in use; all that the graph needs is in it.
OPSET, IR_VERSION = 13, 7


def to_onnx(model: Any, *, dtype: str = "float64") -> Any:
    r"""The predictions of a fitted model as an ONNX graph.

    Exact and Nystrom models alike are :math:`b + k(x, Z) c` with the rows Z that they keep. The
    graph computes in float64, as the coefficients of a kernel model are large and cancel; `dtype`
    is what goes in and comes out.

    Parameters
    ----------
    model : fitted JacobianKernelRidge, or a Pipeline of StandardScaler and JacobianKernelRidge
        With the metric "euclidean", or "precomputed", whose graph takes distances.
    dtype : {"float64", "float32"}

    Returns
    -------
    onnx.ModelProto
        Its input is ``X`` of shape (rows, features), its output ``y`` of shape (rows,) or
        (rows, targets).

    Raises
    ------
    TypeError
        If the model is of another kind.
    ValueError
        If the metric is "geodesic", for which ONNX has no operators.

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
    centre, scale, est = _parts(model)
    graph = _Graph(onnx)
    rows = graph.node("Cast", "X", to=onnx.TensorProto.DOUBLE)
    if scale is not None:
        rows = graph.node("Div", graph.node("Sub", rows, graph.array(centre)), graph.array(scale))
    if est._map is not None:
        rows = est._map.onnx(graph, rows)
    space = est._space  # of the fit, whatever `set_params` has changed since
    gaps = space.distance.onnx(graph, rows, est.X_fit_, est.bandwidth_)
    K = space.kernel.onnx(graph, gaps, est.bandwidth_)
    coef = np.asarray(est.dual_coef_, dtype=np.float64)
    product = graph.node("MatMul", K, graph.array(coef))
    mean = graph.node("Add", product, graph.array(np.asarray(est.intercept_, dtype=np.float64)))
    kind = getattr(onnx.TensorProto, "DOUBLE" if dtype == "float64" else "FLOAT")
    graph.node("Cast", mean, to=kind, name="y")
    return graph.model(kind, est.n_features_in_, coef.shape[1:])


def _parts(model: Any) -> tuple[Array, Array | None, Any]:
    """What is taken from the features, what they are divided by (None: nothing), the estimator."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    kinds = [type(step).__name__ for step in steps]
    *scalers, est = steps
    known = all(isinstance(step, StandardScaler) for step in scalers) and len(scalers) < 2
    if not (known and isinstance(est, JacobianKernelRidge)):
        raise TypeError(
            "`model` must be a JacobianKernelRidge, or a Pipeline of StandardScaler and "
            f"JacobianKernelRidge, got {', '.join(kinds)}."
        )
    check_is_fitted(est)
    if not scalers:
        return np.zeros(1), None, est
    zeros, ones = np.zeros(est.n_features_in_), np.ones(est.n_features_in_)
    (scaler,) = scalers
    centre = zeros if scaler.mean_ is None or not scaler.with_mean else scaler.mean_
    return centre, ones if scaler.scale_ is None else scaler.scale_, est


class _Graph:
    """Nodes and constants as they are added, each under a name of its own."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add an operation; returns the name of its output."""
        name = name or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def array(self, values: Array) -> str:
        """Add a constant; returns its name."""
        name = f"constant_{len(self.constants)}"
        values = np.ascontiguousarray(values, dtype=np.float64)
        self.constants.append(self.onnx.numpy_helper.from_array(values, name))
        return name

    def number(self, value: float) -> str:
        """Add a constant number; returns its name."""
        return self.array(np.array(value))

    def indices(self, values: list[int]) -> str:
        """Add constant whole numbers; returns their name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def model(self, kind: int, n_features: int, targets: tuple[int, ...]) -> Any:
        """The graph from X to y, checked."""
        info = self.onnx.helper.make_tensor_value_info
        graph = self.onnx.helper.make_graph(
            self.nodes,
            "jacridge",
            [info("X", kind, ["rows", n_features])],
            [info("y", kind, ["rows", *targets])],
            self.constants,
        )
        model = self.onnx.helper.make_model(
            graph,
            producer_name="jacridge",
            producer_version=__version__,
            ir_version=IR_VERSION,
            opset_imports=[self.onnx.helper.make_opsetid("", OPSET)],
        )
        self.onnx.checker.check_model(model)
        return model
