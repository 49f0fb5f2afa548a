"""Casts between half precision and float32, and matrix products of half precision, which are rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .cache_blocking import SMALL, run_blocks
from .deterministic_gemm import deterministic_matmul

_SINGLE = np.dtype("f4")
# Elements from which an engine's cast takes less time than its call.
_LARGE = 4096
_BLOCK = 1 << 14  # elements of a cast by bits, of which a few arrays stay in a core's cache
_SCALE, _HALF, _HALF_BITS = np.float32(2.0**112), np.float32(0.5), 0x3F000000
_LEAST_NORMAL = np.full(SMALL, 0x38800000, np.int32)  # an array: NumPy compares with one number in twice the time


class _NativeHalves:
    """An engine's casts, `(array, dtype) -> array`, and its products, `(lines, row) -> float32 vector` and `(vector,
    vector) -> float`. Also its arithmetic with a number, `(op, array, number, out) -> array` or with the number first,
    in `out` if that is an array. Each gives None where NumPy is to compute.
    """

    cast: Callable[..., np.ndarray | None] | None = None
    gemv: Callable[..., np.ndarray | None] | None = None
    dot: Callable[..., float | None] | None = None
    number: Callable[..., np.ndarray | None] | None = None


native_halves = _NativeHalves()


def copy_half(target: np.ndarray, source: np.ndarray) -> bool:
    """Copy float32 into a contiguous array of half precision of its shape, or the reverse; False for others."""
    if {target.itemsize, source.itemsize} != {2, 4} or _SINGLE not in (target.dtype, source.dtype):
        return False
    if source.size < _LARGE or not (target.flags.c_contiguous and source.flags.c_contiguous):
        return False
    if target.shape != source.shape or np.may_share_memory(target, source):
        return False
    if native_halves.cast is not None:
        target[...] = cast_half(source, target.dtype)
        return True
    out, given = target.reshape(-1), source.reshape(-1)

    def copy_part(start: int, stop: int) -> None:
        out[start:stop] = cast_half(given[start:stop], target.dtype)

    run_blocks(copy_part, given.size, 1, _BLOCK)
    return True


def cast_half(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return half precision in float32, or the reverse."""
    if x.size >= _LARGE and native_halves.cast is not None:
        out = native_halves.cast(x, dtype)
        if out is not None:
            return out
    return cast_by_bits(x, dtype)


def cast_by_bits(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return `x.astype(dtype)`. Between float16 and float32 large arrays are cast by operations on their bits.

    NumPy's own loops convert number by number.
    """
    if x.size < _LARGE or (x.dtype, dtype) not in _BIT_CASTS or not x.flags.c_contiguous:
        return x.astype(dtype)
    convert, bits = _BIT_CASTS[x.dtype, dtype]
    out, flat = np.empty(x.shape, dtype), x.reshape(-1)
    target = out.reshape(-1)

    def cast_part(start: int, stop: int) -> None:
        if not convert(flat[start:stop].view(bits), target[start:stop]):
            target[start:stop] = flat[start:stop]

    run_blocks(cast_part, flat.size, 1, _BLOCK)
    return out


def _widen_bits(bits: np.ndarray, out: np.ndarray) -> bool:
    """Write float16, given by its bits, as float32; False for infinities and NaN."""
    if np.bitwise_and(bits, 0x7FFF).max() >= 0x7C00:
        return False
    wide = out.view(np.int32)
    np.copyto(wide, bits)
    np.left_shift(wide, 13, out=wide)
    np.bitwise_and(wide, ~0x70000000, out=wide)  # the sign was extended over three bits more
    np.multiply(out, _SCALE, out=out)  # the exponent's bias; exact, for subnormal numbers too
    return True


def _narrow_bits(bits: np.ndarray, out: np.ndarray) -> bool:
    """Write float32, given by its bits, as float16, to the nearest and even; False for what is beyond its range."""
    size = np.bitwise_and(bits, 0x7FFFFFFF)
    if size.max() >= 0x477FF000:
        return False
    # Subnormal results: a sum with 1/2 has their bits at its end. For all others the number is the least normal one.
    small = np.minimum(size, _LEAST_NORMAL[: size.size])
    halves = small.view(np.float32)
    np.add(halves, _HALF, out=halves)
    small -= _HALF_BITS
    rounded = size >> 13
    rounded &= 1
    rounded += size
    rounded += 0xFFF - (112 << 23)
    rounded >>= 13  # of subnormal results it is less than these
    np.maximum(rounded, small, out=rounded)
    np.right_shift(bits, 16, out=size)
    size &= 0x8000
    rounded |= size
    np.copyto(out.view(np.int16), rounded, casting="unsafe")
    return True


def half_gemv(lines: np.ndarray, row: np.ndarray) -> np.ndarray | None:
    """Return `lines @ row` in float32 for half precision; None where a product in float32 is to serve."""
    if native_halves.gemv is None or lines.size < _LARGE or lines.dtype != row.dtype or lines.shape[1] != row.size:
        return None
    return native_halves.gemv(lines, cast_half(row, _SINGLE))


def half_matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return `np.matmul` of half precision, summed in float32."""
    out = None
    if a.ndim == 2 and b.ndim == 1:
        out = half_gemv(a, b)
    elif a.ndim == b.ndim == 1:
        if native_halves.dot is not None and a.size >= _LARGE and a.dtype == b.dtype and a.shape == b.shape:
            found = native_halves.dot(a, b)
            if found is not None:
                return np.asarray(found, a.dtype)
    elif b.ndim == 2 and a.size == b.shape[0]:
        out = half_gemv(b.T, a.reshape(-1))
        out = None if out is None else out.reshape(*a.shape[:-1], -1)
    if out is None:
        out = deterministic_matmul(cast_half(a, _SINGLE), cast_half(b, _SINGLE))
    return cast_half(out, a.dtype) if out.__class__ is np.ndarray else out.astype(a.dtype)


_BIT_CASTS = {(np.dtype("f2"), _SINGLE): (_widen_bits, np.int16), (_SINGLE, np.dtype("f2")): (_narrow_bits, np.int32)}
