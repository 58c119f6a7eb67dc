"""Fitted models and pipelines as ONNX graphs, to predict where there is no Python."""

from ._model import to_onnx

__all__ = ["to_onnx"]
