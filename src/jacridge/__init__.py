"""Kernel ridge regression that chooses its own bandwidth."""

from . import theory
from ._choice import Choice, select_bandwidth
from ._estimator import JacobianKernelRidge
from ._features import JacobianNystroem
from ._selectors import RULES

__version__ = "0.1.0"

__all__ = [
    "RULES",
    "Choice",
    "JacobianKernelRidge",
    "JacobianNystroem",
    "__version__",
    "select_bandwidth",
    "theory",
]
