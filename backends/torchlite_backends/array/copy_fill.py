"""Kernels that copy or fill in place, and their out-of-place counterparts."""

import numpy as xp

from torchlite._types import opaque_dtypes
from torchlite._types.dtypes import FROM_NUMPY, is_complex32

from .pointwise import is_nonzero_complex32, real


def _copy(input, src):
    out = xp.empty(input.shape, dtype=input.dtype)
    _copy_(out, src)
    return out


def _copy_(input, src):
    kind, target = src.dtype.kind, input.dtype.kind
    if kind in "cW":
        if target not in "cWb":
            src = real(src)
        elif target == "b" and is_complex32(src.dtype):
            src = is_nonzero_complex32(src)
    if (kind == "V" or target == "V") and (src.dtype.names or input.itemsize == 1):
        src = opaque_dtypes.cast(src, FROM_NUMPY[input.dtype])
    xp.copyto(input, src, casting="unsafe")


def _cast_fill_value(input, value):
    if isinstance(value, complex) and input.dtype.kind not in "cW":
        raise RuntimeError(
            f"value cannot be converted to type {input.dtype.name.replace('32', '').replace('float64', 'double')} "
            "without overflow"
        )
    kind = input.dtype.kind
    if isinstance(value, float) and kind in "iu":
        return int(value)
    if kind == "V" and input.dtype.names:
        return opaque_dtypes.full((), value, FROM_NUMPY[input.dtype])
    return value.astype(input.dtype) if hasattr(value, "astype") else value


def _fill(input, value):
    out = xp.empty(input.shape, dtype=input.dtype)
    out[...] = _cast_fill_value(input, value)
    return out


def _fill_(input, value):
    input[...] = _cast_fill_value(input, value)


def _fill_diagonal(input, value, wrap):
    out = input.copy()
    _fill_diagonal_(out, value, wrap)
    return out


def _fill_diagonal_(input, value, wrap):
    xp.fill_diagonal(input, value, wrap)
