"""Kernel ridge regression that chooses its own bandwidth."""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if os.path.basename("".join(sys.argv[:1])) in ("jacridge", "jacridge.exe"):
    # For the command, the imports below take seconds: print an interrupt as one line.
    sys.excepthook = lambda kind, *error: (
        sys.stderr.write("Interrupted.\n")
        if kind is KeyboardInterrupt
        else sys.__excepthook__(kind, *error)
    )

import sklearn  # noqa: F401  (SciPy loads a sixth faster after it)

from . import theory
from ._estimator import AutoKernelRidge, JacobianKernelRidge
from ._rules.registry import RULES
from ._rules.training import TrainingData
from ._select import Choice, select_bandwidth

if TYPE_CHECKING:
    from ._classifier import AutoKernelClassifier, JacobianKernelClassifier
    from ._pipeline import last_step
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

# Names and modules that are imported on first use, so that `import jacridge` stays quick.
_LATER = {
    "AutoKernelClassifier": "_classifier",
    "JacobianKernelClassifier": "_classifier",
    "JacobianNystroem": "_transformer",
    "last_step": "_pipeline",
}


_MODULES = ("datasets", "diagnostics", "effects", "onnx", "parquet", "plots", "report")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
