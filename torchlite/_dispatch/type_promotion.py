"""PyTorch's type promotion: dimension categories and wrapped numbers."""

from __future__ import annotations

import math

from .._types.dtypes import COMPLEX, FLOAT, OPAQUE, _Default, bool_, dtype, finfo, float32, int64, promote_types


def scalar_dtype(value) -> dtype:
    """The dtype of a Python number."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    return _Default.real.to_complex() if isinstance(value, complex) else _Default.real


def _combine_dtypes(higher: dtype | None, lower: dtype | None) -> dtype | None:
    if higher is None or lower is None:
        return lower if higher is None else higher
    if higher.category == COMPLEX:
        return higher
    if higher.category == FLOAT:
        return higher.to_complex() if lower.category == COMPLEX else higher
    if higher is bool_ or lower.category >= FLOAT:
        return promote_types(higher, lower)
    return higher


def result_dtype(values) -> dtype:
    """The dtype in which PyTorch combines tensors (by whether they have dimensions) and Python numbers."""
    dimensioned = zero_dim = number = None
    for value in values:
        if value.__class__ is dtype:
            dimensioned = value if dimensioned is None else promote_types(dimensioned, value)
            continue
        d = getattr(value, "dtype", None)
        if not isinstance(d, dtype):
            number = scalar_dtype(value) if number is None else promote_types(number, scalar_dtype(value))
        elif value._tl_array.ndim:
            dimensioned = d if dimensioned is None or dimensioned is d else promote_types(dimensioned, d)
        else:
            zero_dim = d if zero_dim is None or zero_dim is d else promote_types(zero_dim, d)
    combined = _combine_dtypes(dimensioned, _combine_dtypes(zero_dim, number))
    assert combined is not None
    return combined


_C_NAMES = {
    "bool": "bool", "int32": "int", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float",
    "float64": "double", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
    "complex32": "c10::complex<c10::Half>",
}  # fmt: skip


def check_int64(value):
    """A Python number; OverflowError for an integer that no dtype holds."""
    if value.__class__ is int and not -(1 << 63) <= value < 1 << 64:
        raise OverflowError("int too big to convert" if value > 0 else "can't convert negative int to unsigned")
    return value


_INT64_SAFE = 1e18  # numbers below it are in the range of int64 and float32


def cast_scalar(value, to: dtype, word: str = "", infinite: bool = False):
    """A Python number as one that a dtype holds: fractions are cut off, unsigned dtypes take negative numbers of their
    size, half precision rounds. RuntimeError for one that it does not hold, unless half precision may become `infinite`
    (floats are left as they are then, if float32 holds them); `word` is the dtype's name in the error.
    """
    if to.category == FLOAT and to.itemsize > 2 and (value.__class__ is int or value.__class__ is float):
        if -_INT64_SAFE < value < _INT64_SAFE:
            return float(value)
    check_int64(value)
    if to.category == COMPLEX:
        value = complex(value)
        if to.itemsize <= 8 and (_exceeds_range(value.real, float32) or _exceeds_range(value.imag, float32)):
            raise _overflow_error(to, word)
        return value
    if to is bool_:
        return bool(value)
    if isinstance(value, complex):
        if value.imag:
            raise _overflow_error(to, word)
        value = value.real
    if to.name in OPAQUE:
        return value
    if to.category == FLOAT:
        value = float(value)
        if to.itemsize <= 4 and _exceeds_range(value, float32 if infinite else to):
            raise _overflow_error(to, word)
        return value if infinite or to.itemsize > 2 else float(to.np.type(value))
    bits = to.itemsize * 8 - to.is_signed
    low = -(1 << bits) if to.is_signed else 0 if isinstance(value, float) else 1 - (1 << bits)
    if not math.isfinite(value) or not low <= value < 1 << bits:
        raise _overflow_error(to, word)
    return int(value) if to.is_signed else int(value) % (1 << bits)


def _exceeds_range(value: float, to: dtype) -> bool:
    return math.isfinite(value) and abs(value) > finfo(to).max


def check_scalar_range(value, to: dtype) -> None:
    """RuntimeError for an integer or a float outside the range of an integer or floating dtype."""
    if to is not bool_ and value.__class__ in (int, float):
        cast_scalar(value, to)


def out_of_range_error(to: dtype) -> RuntimeError:
    """The error for a number that a dtype does not hold."""
    return _overflow_error(to, "")


def _overflow_error(to: dtype, word: str) -> RuntimeError:
    name = word or _C_NAMES.get(to.name, f"{to.name}_t")
    return RuntimeError(f"value cannot be converted to type {name} without overflow")


def as_category(value, to: dtype):
    """Convert a Python number to the Python type that corresponds to `to`."""
    check_int64(value)
    if to.category == COMPLEX:
        return complex(value)
    if to.category == FLOAT:
        return float(value) if not isinstance(value, complex) else value
    if to is bool_:
        return bool(value)
    if to.category < FLOAT and isinstance(value, bool):
        return int(value)
    if to.category < FLOAT and isinstance(value, int):
        # Too large a number wraps around, as in PyTorch.
        bits = 8 * to.itemsize
        low = -(1 << bits - 1) if to.is_signed else 0
        return (value - low) % (1 << bits) + low
    return value
