"""Kernel ridge regression that chooses its own bandwidth."""

import os as _os
import sys as _sys

if _os.path.basename("".join(_sys.argv[:1])) in ("jacridge", "jacridge.exe"):
    # The command, for which the imports below take seconds: an interrupt is one line.
    _sys.excepthook = lambda kind, *error: (
        _sys.stderr.write("Interrupted.\n")
        if kind is KeyboardInterrupt
        else _sys.__excepthook__(kind, *error)
    )

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
