"""MPI datatypes and reduction operations of NumPy dtypes."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np
from mpi4py import MPI

_NATIVE = {
    "SUM": MPI.SUM, "PRODUCT": MPI.PROD, "MIN": MPI.MIN, "MAX": MPI.MAX,
    "BAND": MPI.BAND, "BOR": MPI.BOR, "BXOR": MPI.BXOR,
}  # fmt: skip
# MPI has no arithmetic of truth values: as bytes of 0 and 1 the largest is the sum, the smallest the product.
_OF_BOOLS = {"SUM": "MAX", "PRODUCT": "MIN"}
_PROPAGATING = {"MIN": np.minimum, "MAX": np.maximum}
# Reductions that MPI lacks. Arrays of bfloat16 come as unsigned integers.
_OF_HALVES = {"SUM of float16": np.dtype(np.float16), "SUM of bfloat16": np.dtype(ml_dtypes.bfloat16)}
_TYPES = {
    "i1": MPI.INT8_T, "i2": MPI.INT16_T, "i4": MPI.INT32_T, "i8": MPI.INT64_T,
    "u1": MPI.UINT8_T, "u2": MPI.UINT16_T, "u4": MPI.UINT32_T, "u8": MPI.UINT64_T,
    "f4": MPI.FLOAT, "f8": MPI.DOUBLE, "c8": MPI.C_FLOAT_COMPLEX, "c16": MPI.C_DOUBLE_COMPLEX,
}  # fmt: skip


@functools.cache
def _make_nan_propagating_op(name: str, code: str) -> MPI.Op:
    """Return an op for the minimum or maximum of floats that propagates NaN, unlike MPI's own."""
    ufunc, dtype = _PROPAGATING[name], np.dtype(code)

    def apply(given: Any, kept: Any, datatype: MPI.Datatype) -> None:
        into = np.frombuffer(kept, dtype)
        ufunc(np.frombuffer(given, dtype), into, out=into)

    return MPI.Op.Create(apply, commute=True)


@functools.cache
def _make_sum_of_halves(name: str) -> MPI.Op:
    """Return an op for the sum in a dtype of two bytes."""
    dtype = _OF_HALVES[name]

    def apply(given: Any, kept: Any, datatype: MPI.Datatype) -> None:
        into = np.frombuffer(kept, dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            np.add(np.frombuffer(given, dtype), into, out=into)

    return MPI.Op.Create(apply, commute=True)


@functools.cache
def get_mpi_type_and_op(dtype: np.dtype, name: str) -> tuple[MPI.Datatype, MPI.Op]:
    """Return the MPI datatype of a dtype, and the reduction operation."""
    if name in _OF_HALVES:
        return MPI.UINT16_T, _make_sum_of_halves(name)
    if dtype.kind == "b":
        return MPI.UINT8_T, _NATIVE[_OF_BOOLS.get(name, name)]
    code = f"{dtype.kind}{dtype.itemsize}"
    how = _make_nan_propagating_op(name, code) if dtype.kind == "f" and name in _PROPAGATING else _NATIVE[name]
    return _TYPES[code], how
