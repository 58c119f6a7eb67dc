"""A graph of ONNX operations, built step by step and then turned into a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import __version__
from .._compute.arrays import Array

# Supported by current runtimes, and sufficient for the graph.
OPSET, IR_VERSION = 13, 7
# The operators of scikit-learn's steps, and their version.
ML, ML_OPSET = "ai.onnx.ml", 2


class Graph:
    """Nodes and constants in the order of addition; each name starts with the prefix."""

    def __init__(self, onnx: Any, prefix: str = "jacridge") -> None:
        self.onnx, self.prefix = onnx, prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def node(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add an operation; returns the name of its output."""
        name = name or f"{self.prefix}_{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def constant(self, values: Any) -> str:
        """Add a constant of any type; returns its name."""
        name = f"{self.prefix}_constant_{len(self.constants)}"
        values = np.asarray(values)
        values = values.astype(object) if values.dtype.kind == "U" else values
        self.constants.append(self.onnx.numpy_helper.from_array(values, name))
        return name

    def array(self, values: Array) -> str:
        """Add a constant of float64; returns its name."""
        return self.constant(np.ascontiguousarray(values, dtype=np.float64))

    def number(self, value: float) -> str:
        """Add a constant number; returns its name."""
        return self.constant(np.array(value, dtype=np.float64))

    def indices(self, values: Any) -> str:
        """Add constant whole numbers; returns their name."""
        return self.constant(np.array(values, dtype=np.int64))

    def input(self, name: str, kind: int, columns: int) -> None:
        """Add an input of any number of rows."""
        info = self.onnx.helper.make_tensor_value_info
        self.inputs.append(info(name, kind, ["rows", columns]))

    def output(self, name: str, kind: int, *shape: int) -> None:
        """Make the node of this name an output."""
        info = self.onnx.helper.make_tensor_value_info
        self.outputs.append(info(name, kind, ["rows", *shape]))

    def model(self) -> Any:
        """The model of this graph, checked."""
        make, opset = self.onnx.helper, self.onnx.helper.make_opsetid
        has_steps = any(node.domain == ML for node in self.nodes)
        model = make.make_model(
            make.make_graph(self.nodes, "jacridge", self.inputs, self.outputs, self.constants),
            producer_name="jacridge",
            producer_version=__version__,
            ir_version=IR_VERSION,
            opset_imports=[opset("", OPSET), *([opset(ML, ML_OPSET)] if has_steps else [])],
        )
        self.onnx.checker.check_model(model, full_check=True)
        return model
