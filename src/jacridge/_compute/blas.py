"""In-place products, triangular solves and Cholesky factors that release Python's lock.

SciPy's wrappers of BLAS and LAPACK hold the lock, so our threads would wait for each other. SciPy
also exports these functions for Cython; called through ctypes, they run in parallel. Matrices are
in C order, or views of such matrices, in double or single precision. Fortran reads the memory of a
matrix as its transpose, and a lower triangle as an upper one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, cython_lapack, get_lapack_funcs, solve_triangular

from .arrays import Array


def factor_in_place(A: Array) -> int:
    """Replace the lower triangle of A by its Cholesky factor; the rest is left unchanged.

    Returns 0, or the order of the first leading minor that is not positive.
    """
    potrf, info = _function("potrf", A.dtype.char), ctypes.c_int()
    if potrf is None:
        (potrf,) = get_lapack_funcs(("potrf",), (A,))
        C, failed = potrf(A.T, lower=0, clean=0)
        np.copyto(A, C.T, where=np.tri(len(A), dtype=bool))
        return int(failed)
    potrf(b"U", _int(len(A)), *_matrix(A), ctypes.byref(info))
    return info.value


def subtract_product(C: Array, A: Array, B: Array) -> None:
    """C -= A B; A and B may be transposed."""
    gemm = _function("gemm", C.dtype.char)
    if gemm is None or C.shape[1] == 1:  # NumPy multiplies single columns faster
        C -= A @ B
        return
    letters, inner = _letter(B) + _letter(A), _int(A.shape[1])
    sizes = _int(C.shape[1]), _int(len(C)), inner
    one, minus = _numbers(C)
    a, b = (X if _letter(X) == b"N" else X.T for X in (A, B))
    gemm(letters[:1], letters[1:], *sizes, minus, *_matrix(b), *_matrix(a), one, *_matrix(C))


def subtract_square(C: Array, A: Array) -> None:
    """Subtract A A' from the lower triangle of C; the rest is left unchanged."""
    syrk = _function("syrk", C.dtype.char)
    if syrk is None:
        np.subtract(C, A @ A.T, out=C, where=np.tri(len(C), dtype=bool))
        return
    one, minus = _numbers(C)
    syrk(b"U", b"T", _int(len(C)), _int(A.shape[1]), minus, *_matrix(A), one, *_matrix(C))


def add_gram(C: Array, A: Array) -> None:
    """Add A'A to the upper triangle of C; the rest is left unchanged."""
    syrk = _function("syrk", C.dtype.char)
    if syrk is None:
        np.add(C, A.T @ A, out=C, where=np.tri(len(C), dtype=bool).T)
        return
    one, _ = _numbers(C)
    syrk(b"L", b"N", _int(len(C)), _int(len(A)), one, *_matrix(A), one, *_matrix(C))


def solve_lower(L: Array, B: Array, *, transposed: bool = False) -> None:
    """Replace B by L^-1 B, or by L^-T B if `transposed`. L is stored in a lower triangle."""
    if not _solve(L, B, b"R", b"T" if transposed else b"N"):
        B[:] = solve_triangular(L, B, lower=True, trans=int(transposed))


def solve_right(L: Array, B: Array) -> None:
    """Replace B by B L^-T. L is stored in a lower triangle."""
    if not _solve(L, B, b"L", b"T"):
        B[:] = solve_triangular(L, B.T, lower=True).T


def _solve(L: Array, B: Array, side: bytes, trans: bytes) -> bool:
    """Solve for B', which is what Fortran sees; returns whether BLAS could be called."""
    trsm = _function("trsm", B.dtype.char)
    if trsm is None:
        return False
    sizes, one = (_int(B.shape[1]), _int(len(B))), _numbers(B)[0]
    trsm(side, b"U", trans, b"N", *sizes, one, *_matrix(L), *_matrix(B))
    return True


def _int(value: int) -> Any:
    return ctypes.byref(ctypes.c_int(value))


def _numbers(A: Array) -> tuple[Any, Any]:
    """One and minus one in the precision of A."""
    kind = ctypes.c_double if A.dtype == np.float64 else ctypes.c_float
    return ctypes.byref(kind(1)), ctypes.byref(kind(-1))


def _matrix(A: Array) -> tuple[Any, Any]:
    """Address of a matrix and its row stride in numbers. A single row may have any stride."""
    return ctypes.c_void_p(A.ctypes.data), _int(max(A.strides[0] // A.itemsize, A.shape[1], 1))


def _letter(A: Array) -> bytes:
    """Return b"N" if the rows of A are contiguous, b"T" if its columns are."""
    return b"N" if A.strides[1] == A.itemsize or A.shape[1] == 1 else b"T"


@cache
def _function(name: str, kind: str) -> Callable[..., None] | None:
    """The function in double ("d") or single precision; None if its integers are not C ints."""
    module = cython_lapack if name == "potrf" else cython_blas
    capsule = module.__pyx_capi__[("d" if kind == "d" else "s") + name]
    python = ctypes.pythonapi
    python.PyCapsule_GetName.restype = ctypes.c_char_p
    python.PyCapsule_GetName.argtypes = [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = python.PyCapsule_GetName(capsule)
    if b"int *" not in signature:
        return None
    return ctypes.CFUNCTYPE(None)(python.PyCapsule_GetPointer(capsule, signature))
