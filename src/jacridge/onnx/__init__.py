"""Fitted models and pipelines as ONNX graphs, for predictions without Python."""

from ._model import to_onnx

__all__ = ["to_onnx"]
