"""LAPACK's Cholesky factorisation without Python's lock, which SciPy's wrapper holds.

Matrices are factored in their precision, double or single. Searches factor matrices of some hundred
rows in several threads. SciPy exports LAPACK for Cython as C functions; called through ctypes, they
run beside other threads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from scipy.linalg import cython_lapack, lapack

from .arrays import Array

_INTEGER = ctypes.POINTER(ctypes.c_int)


def factor_in_place(A: Array) -> int:
    """Replace the lower triangle of A, in C order, by its Cholesky factor; the rest stays.

    Returns 0, or the order of the first leading minor that is not positive.
    """
    name = "dpotrf" if A.dtype.char == "d" else "spotrf"
    potrf = _function(name)
    if potrf is None:
        # C order: the lower triangle of A is the upper one of the Fortran array A.T.
        return int(getattr(lapack, name)(A.T, lower=0, overwrite_a=1, clean=0)[1])
    n, step, info = ctypes.c_int(len(A)), ctypes.c_int(A.strides[0] // A.itemsize), ctypes.c_int()
    potrf(b"U", n, A.ctypes.data, step, info)
    return info.value


@cache
def _function(name: str) -> Callable[..., Any] | None:
    """The function at SciPy's capsule, or None if its integers are not those of C."""
    capsule, python = cython_lapack.__pyx_capi__[name], ctypes.pythonapi
    python.PyCapsule_GetName.restype = ctypes.c_char_p
    python.PyCapsule_GetName.argtypes = [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = python.PyCapsule_GetName(capsule)
    if signature.count(b"int *") != 3:
        return None
    kind = ctypes.CFUNCTYPE(None, ctypes.c_char_p, _INTEGER, ctypes.c_void_p, _INTEGER, _INTEGER)
    return kind(python.PyCapsule_GetPointer(capsule, signature))
