"""Kernel ridge regression that chooses its own bandwidth."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import theory
    from ._classifier import AutoKernelClassifier, JacobianKernelClassifier
    from ._estimator import AutoKernelRidge, JacobianKernelRidge
    from ._pipeline import last_step
    from ._rules.registry import RULES
    from ._rules.training import TrainingData
    from ._select import Choice, select_bandwidth
    from ._transformer import JacobianNystroem

__version__ = "0.2.0"

__all__ = [
    "RULES",
    "AutoKernelClassifier",
    "AutoKernelRidge",
    "Choice",
    "JacobianKernelClassifier",
    "JacobianKernelRidge",
    "JacobianNystroem",
    "TrainingData",
    "__version__",
    "last_step",
    "select_bandwidth",
    "theory",
]

# Names and modules are imported when they are first asked for: the import itself stays quick, and
# an interrupt of the command finds it ready to answer.
_HOMES = {
    "AutoKernelClassifier": "_classifier",
    "AutoKernelRidge": "_estimator",
    "Choice": "_select",
    "JacobianKernelClassifier": "_classifier",
    "JacobianKernelRidge": "_estimator",
    "JacobianNystroem": "_transformer",
    "RULES": "_rules.registry",
    "TrainingData": "_rules.training",
    "last_step": "_pipeline",
    "select_bandwidth": "_select",
}
_MODULES = ("datasets", "diagnostics", "effects", "onnx", "parquet", "plots", "report", "theory")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
