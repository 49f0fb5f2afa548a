"""LAPACK factorisations that NumPy lacks, from the wheel's OpenBLAS.

Without that library the shared array kernels serve.
"""

from __future__ import annotations

import ctypes
import functools
import math
from typing import Any

import numpy as np

from torchlite._dispatch import REGISTRY, table_of
from torchlite._types.devices import device as torch_device

from .blas import get_lapack_function

# LAPACK's names of products of reflectors, and of factors of symmetric and of Hermitian matrices.
_PRODUCT = {"f": "sorgqr", "d": "dorgqr", "F": "cungqr", "D": "zungqr"}
_SYMMETRIC = {"f": "ssytrf", "d": "dsytrf", "F": "csytrf", "D": "zsytrf"}
_HERMITIAN = {"F": "chetrf", "D": "zhetrf"}
_LU = {"f": "sgetrf", "d": "dgetrf", "F": "cgetrf", "D": "zgetrf"}
_LEAST_SQUARES = {"f": "sgelsy", "d": "dgelsy", "F": "cgelsy", "D": "zgelsy"}
_BLOCK = 64  # columns of workspace


def get_lapack_kernels() -> dict[str, Any]:
    """Return the kernels for which there is a library."""
    tables = _PRODUCT, _SYMMETRIC, _HERMITIAN, _LU, _LEAST_SQUARES
    if all(get_lapack_function(name) for table in tables for name in table.values()):
        return {
            "_householder_product_core": _householder_core,
            "_ldl_factor_core": _ldl_core,
            "_lu_core": _lu_core,
            "_lstsq_core": _lstsq_core,
        }
    return {}


@functools.lru_cache(maxsize=256)
def _as_lapack_integers(*values: int) -> tuple[Any, ...]:
    """Return integers in LAPACK's form."""
    return tuple(ctypes.byref(ctypes.c_int64(value)) for value in values)


def _copy_column_major(a: np.ndarray) -> np.ndarray:
    """Return a fresh copy (batch, columns, rows) of matrices (..., rows, columns)."""
    turned = np.empty((math.prod(a.shape[:-2]), a.shape[-1], a.shape[-2]), a.dtype)
    turned.reshape((*a.shape[:-2], *turned.shape[1:])).swapaxes(-1, -2)[...] = a
    return turned


def _list_addresses(a: np.ndarray) -> list[ctypes.c_void_p]:
    """Return the address of each part of an array along its first dimension."""
    first = a.ctypes.data
    return [ctypes.c_void_p(first + i * a.strides[0]) for i in range(len(a))]


def _householder_core(input, tau):
    """Return the first n columns of the product of the reflectors packed in `input` (..., m, n) with scales `tau` (...,
    k).
    """
    m, n, k = *input.shape[-2:], tau.shape[-1]
    q = _copy_column_major(input)
    if q.size:
        function = get_lapack_function(_PRODUCT[input.dtype.char])
        scales = np.ascontiguousarray(tau).reshape(len(q), k)
        work, info = np.empty((1, n * _BLOCK), input.dtype), ctypes.byref(ctypes.c_int64())
        rows, columns, used, space = _as_lapack_integers(m, n, k, n * _BLOCK)
        (room,) = _list_addresses(work)
        for matrix, scale in zip(_list_addresses(q), _list_addresses(scales), strict=True):
            function(rows, columns, used, matrix, rows, scale, room, space, info)
    return q.reshape((*input.shape[:-2], n, m)).swapaxes(-1, -2)


def _ldl_core(input, hermitian):
    """Return Bunch-Kaufman factors of the lower triangle: D and L in one array, pivots (negative for 2x2 blocks),
    info.
    """
    n, kind = input.shape[-1], input.dtype.char
    a = _copy_column_major(np.tril(input))
    pivots, info = np.zeros((len(a), n), np.int64), np.zeros((len(a), 1), np.int64)
    if n:
        function = get_lapack_function((hermitian and _HERMITIAN.get(kind)) or _SYMMETRIC[kind])
        work = np.empty((1, n * _BLOCK), input.dtype)
        size, space = _as_lapack_integers(n, n * _BLOCK)
        (room,) = _list_addresses(work)
        for matrix, order, failed in zip(
            _list_addresses(a), _list_addresses(pivots), _list_addresses(info), strict=True
        ):
            function(b"L", size, matrix, size, order, room, space, failed, ctypes.c_size_t(1))
    batch = input.shape[:-2]
    factors = a.reshape((*batch, n, n)).swapaxes(-1, -2)
    return factors, pivots.reshape((*batch, n)).astype(np.int32), info.reshape(batch).astype(np.int32)


def _lu_core(input):
    """Return packed LU with partial pivoting, pivots (from 1) and info (the first zero pivot from 1, or 0)."""
    m, n = input.shape[-2:]
    a = _copy_column_major(input)
    pivots, info = np.zeros((len(a), min(m, n)), np.int64), np.zeros((len(a), 1), np.int64)
    if a.size:
        function = get_lapack_function(_LU[input.dtype.char])
        rows, columns = _as_lapack_integers(m, n)
        for matrix, order, failed in zip(
            _list_addresses(a), _list_addresses(pivots), _list_addresses(info), strict=True
        ):
            function(rows, columns, matrix, rows, order, failed)
    batch = input.shape[:-2]
    factors = np.ascontiguousarray(a.reshape((*batch, n, m)).swapaxes(-1, -2))
    return factors, pivots.reshape((*batch, min(m, n))).astype(np.int32), info.reshape(batch).astype(np.int32)


def _lstsq_core(A, B, rcond):
    """Return the solutions of least norm by an orthogonal factorization with pivots, and the effective ranks."""
    m, n, k = *A.shape[-2:], B.shape[-1]
    if not A.size or not B.size or not np.isfinite(A).all():
        return REGISTRY["_lstsq_core"].composite(table_of(torch_device("cpu")), A, B, rcond)
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])  # they differ inside of vmap
    A, B = np.broadcast_to(A, (*batch, m, n)), np.broadcast_to(B, (*batch, m, k))
    a, height = _copy_column_major(A), max(m, n)
    x = np.zeros((len(a), k, height), A.dtype)
    x[:, :, :m] = B.reshape(-1, m, k).swapaxes(-1, -2)
    kind = A.dtype.char
    limit = np.array([rcond], A.real.dtype)
    space = min(m, n) * (2 + _BLOCK) + n + 1 + _BLOCK * max(n, k)
    work, more = np.empty(space, A.dtype), np.empty(2 * n, A.real.dtype)
    ranks, pivots = np.zeros((len(a), 1), np.int64), np.zeros((len(a), n), np.int64)
    function = get_lapack_function(_LEAST_SQUARES[kind])
    rows, columns, sides, lead, size = _as_lapack_integers(m, n, k, height, space)
    info = ctypes.byref(ctypes.c_int64())
    bound, room, extra = (ctypes.c_void_p(array.ctypes.data) for array in (limit, work, more))
    for matrix, side, order, rank in zip(*map(_list_addresses, (a, x, pivots, ranks)), strict=True):
        given = rows, columns, sides, matrix, rows, side, lead, order, bound, rank, room, size
        function(*given, *([extra] if kind in "FD" else []), info)
    return x[:, :, :n].swapaxes(-1, -2).reshape(*batch, n, k), ranks.reshape(batch)
