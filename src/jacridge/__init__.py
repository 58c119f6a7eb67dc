"""Kernel ridge regression that chooses its own bandwidth."""
