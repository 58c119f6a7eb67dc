"""Warnings that point at the caller's line."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

# With a separator, so that it does not match folders whose names start with ours.
PACKAGE = str(Path(__file__).parent.parent) + os.sep


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest calling line outside this package and scikit-learn."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_inner(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_inner(filename: str) -> bool:
    return filename.startswith(PACKAGE) or "/sklearn/" in filename.replace("\\", "/")
