"""Reduction kernels."""

from __future__ import annotations

import math
from typing import Any

from torchlite._dispatch.shape_and_value_checks import mean_dtype_error
from torchlite._types.dtypes import from_np, is_complex32

from .dim_checks import wrap_dims
from .pointwise import to

xp: Any = None


def _axes_argument(input, dim):
    """Return `dim` as an axis argument: None for all; 0-d input takes 0 and -1."""
    if dim is None or dim.__class__ is int and input.ndim:
        return dim
    if dim.__class__ is not int:
        dim = tuple(dim)
        if not dim:
            return None
    if not input.ndim:
        wrap_dims(dim, 0)
        return None
    return dim


def sum(input, dim=None, keepdim=False, *, dtype=None):
    if dtype is not None:
        input = to(input, dtype)
    if input.dtype.kind in "iub":
        kind = xp.int64 if dtype is None else dtype.np  # NumPy's default widens the requested dtype
        return xp.add.reduce(input, _axes_argument(input, dim), dtype=kind, keepdims=keepdim)
    return xp.add.reduce(input, _axes_argument(input, dim), keepdims=keepdim)


def mean(input, dim=None, keepdim=False, *, dtype=None):
    if dtype is not None:
        input = to(input, dtype)
    if input.dtype.kind not in "fcVW":
        raise mean_dtype_error(from_np(input.dtype), dtype)
    total = xp.add.reduce(input, _axes_argument(input, dim), keepdims=keepdim)
    count = input.size // total.size if total.size else 1
    nan = complex(math.nan, math.nan) if total.dtype.kind == "c" else math.nan
    return total / count if count else xp.full(total.shape, nan, dtype=total.dtype)


def _scalar_type_name(input):
    return {
        "b": "Bool",
        "i": "Long" if input.itemsize == 8 else "Int" if input.itemsize == 4 else "Short",
        "u": "Byte",
    }.get(input.dtype.kind, "Int")


def _check_real(input, kernel):
    if input.dtype.kind in "cW":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{from_np(input.dtype).scalar_name}'")


def amax(input, dim=(), keepdim=False):
    _check_real(input, "max_values_cpu")
    return xp.maximum.reduce(input, _axes_argument(input, dim), keepdims=keepdim)


def amin(input, dim=(), keepdim=False):
    _check_real(input, "min_values_cpu")
    return xp.minimum.reduce(input, _axes_argument(input, dim), keepdims=keepdim)


def any(input, dim=None, keepdim=False):
    if dim == ():
        return _mask_as_uint8_for_uint8(input != 0, input)
    return _mask_as_uint8_for_uint8(
        xp.any(_as_boolean_testable(input), axis=_axes_argument(input, dim), keepdims=keepdim), input
    )


def all(input, dim=None, keepdim=False):
    if dim == ():
        return _mask_as_uint8_for_uint8(input != 0, input)
    return _mask_as_uint8_for_uint8(
        xp.all(_as_boolean_testable(input), axis=_axes_argument(input, dim), keepdims=keepdim), input
    )


def _as_boolean_testable(input):
    """Return an array with a truth value: complex32 would be cast to a real number."""
    return input != 0 if is_complex32(input.dtype) else input


def _mask_as_uint8_for_uint8(found, input):
    return found.astype(input.dtype) if input.dtype.kind == "u" and input.itemsize == 1 else found


def argmax(input, dim=None, keepdim=False):
    return input.argmax(_axes_argument(input, dim), keepdims=keepdim)


def argmin(input, dim=None, keepdim=False):
    return input.argmin(_axes_argument(input, dim), keepdims=keepdim)
