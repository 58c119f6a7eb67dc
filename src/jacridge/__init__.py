"""Kernel ridge regression that chooses its own bandwidth."""

__version__ = "0.1.0"
