"""Native reversal along dimensions, which NumPy copies one element at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .native_kernel import TYPE_DEFINITIONS, NativeKernel

# Elements of the last dimension below which NumPy's copy serves, and of a part of it.
_SHORT, _PIECE = 16, 1 << 14

_SOURCE = (
    TYPE_DEFINITIONS
    + r"""
// out[..., i] = x[..., n - 1 - i], where the `dims` dimensions before the last have a step each, which may be negative.
// An item is a piece of a row of `out`; `x` is the address of what the first row begins with.
struct Flip { const void* x; const i64 *shape, *steps; void* out; i64 dims, length, pieces, piece; };
template <class T> static int flip(const Flip& of, i64 begin, i64 end) {
    for (i64 item = begin; item < end; item++) {
        const i64 row = item / of.pieces, first = item % of.pieces * of.piece, n = least(of.piece, of.length - first);
        i64 rest = row, place = 0;
        for (i64 d = of.dims - 1; d >= 0; rest /= of.shape[d--]) place += rest % of.shape[d] * of.steps[d];
        const T* x = (const T*)of.x + place + of.length - first - n;
        T* out = (T*)of.out + row * of.length + first;
        _Pragma("GCC ivdep")
        for (i64 i = 0; i < n; i++) out[i] = x[n - 1 - i];
    }
    return 0;
}
#define FLIP(size, T) \
    static int flip_##size(const Flip& of, i64 begin, i64 end) { return flip<T>(of, begin, end); } \
    ENTRY(flip_##size, Flip)
FLIP(1, uint8_t)
FLIP(2, uint16_t)
FLIP(4, uint32_t)
FLIP(8, uint64_t)
"""
)
_KERNELS = {size: NativeKernel(_SOURCE, f"flip_{size}", "QQQQqqqq") for size in (1, 2, 4, 8)}


def flip(device: Any, input: Any, dims: Any) -> Any:
    size = input.itemsize
    if size not in _KERNELS or not input.size or not input.ndim or not input.flags.c_contiguous:
        return None
    if any(d.__class__ is not int or not -input.ndim <= d < input.ndim for d in dims):
        return None
    axes = {d % input.ndim for d in dims}
    last = input.ndim
    while last and last - 1 in axes:
        last -= 1
    length = math.prod(input.shape[last:])
    if len(axes) < len(dims) or last == input.ndim or length < _SHORT:
        return None
    shape, steps, first = input.shape[:last], [], 0
    for d in range(last):
        step = input.strides[d] // size
        first += (shape[d] - 1) * step * (d in axes)
        steps.append(-step if d in axes else step)
    out = np.empty(input.shape, input.dtype)
    pieces = -(-length // _PIECE)
    start = input.reshape(-1)[first:]
    given = start, np.array(shape, np.int64), np.array(steps, np.int64), out, last, length, pieces, _PIECE
    return out if _KERNELS[size](device, math.prod(shape) * pieces, 2 * input.nbytes, *given) else None


kernels = {"flip": flip}
