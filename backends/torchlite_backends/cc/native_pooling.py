"""Native pooling of one- and two-dimensional windows: maxima and averages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlite_backends.array.pooling import _output_sizes_of

from .native_kernel import FLOATS, TYPE_DEFINITIONS, make_kernel_per_dtype

# Minimum number of elements, below which NumPy is as fast, and elements of a window, above which its passes are.
_MIN_SIZE, _MAX_WINDOW = 1 << 13, 64

# An item is a row of one plane's results. The rows of a window are reduced first, over the whole width, then columns.
_SOURCE = (
    TYPE_DEFINITIONS
    + r"""
struct Pool {
    const void* x; void* out; i64 high, wide, rows, columns, tall, broad, down, right, above, left, apart, aside;
    i64 counts_padding; double divisor;
};
template <class T> static inline T larger(T a, T b) { return b > a || b != b ? b : a; }
template <class T, i64 RIGHT> static void largest(const T* line, T* out, i64 first, i64 last, i64 broad, i64 right,
    i64 left, i64 aside) {
    const i64 step = RIGHT ? RIGHT : right;
    for (i64 o = first; o < last; o++) out[o] = line[o * step - left];
    for (i64 j = 1; j < broad; j++) {
        const T* from = line + j * aside - left;
        for (i64 o = first; o < last; o++) out[o] = larger(out[o], from[o * step]);
    }
}
template <class T, i64 RIGHT> static void summed(const T* line, T* out, i64 first, i64 last, i64 broad, i64 right,
    i64 left, i64) {
    const i64 step = RIGHT ? RIGHT : right;
    for (i64 o = first; o < last; o++) out[o] = line[o * step - left];
    for (i64 j = 1; j < broad; j++) {
        const T* from = line + j - left;
        for (i64 o = first; o < last; o++) out[o] += from[o * step];
    }
}
// The windows from `first` to `last` that lie inside of the line.
static inline void inside(const Pool& of, i64& first, i64& last) {
    const i64 reach = (of.broad - 1) * of.aside + 1;
    first = (of.left + of.right - 1) / of.right;
    last = of.wide + of.left >= reach ? (of.wide + of.left - reach) / of.right + 1 : 0;
    last = least(last, of.columns);
    first = least(first, last);
}
template <class T> static int max_pool(const Pool& of, i64 begin, i64 end) {
    T* line = (T*)__builtin_malloc(of.wide * sizeof(T));
    if (!line) return 1;
    i64 first, last;
    inside(of, first, last);
    for (i64 item = begin; item < end; item++) {
        const T* plane = (const T*)of.x + item / of.rows * of.high * of.wide;
        const i64 top = item % of.rows * of.down - of.above;
        T* out = (T*)of.out + item * of.columns;
        bool any = false;
        for (i64 i = 0; i < of.tall; i++) {
            const i64 y = top + i * of.apart;
            if (y < 0 || y >= of.high) continue;
            const T* from = plane + y * of.wide;
            if (any) for (i64 x = 0; x < of.wide; x++) line[x] = larger(line[x], from[x]);
            else memcpy(line, from, of.wide * sizeof(T));
            any = true;
        }
        if (!any) for (i64 x = 0; x < of.wide; x++) line[x] = -(T)INFINITY;
        if (of.right == 1) largest<T, 1>(line, out, first, last, of.broad, 1, of.left, of.aside);
        else if (of.right == 2) largest<T, 2>(line, out, first, last, of.broad, 2, of.left, of.aside);
        else largest<T, 0>(line, out, first, last, of.broad, of.right, of.left, of.aside);
        for (i64 o = 0; o < of.columns; o++) {
            if (o >= first && o < last) continue;
            T most = -(T)INFINITY;
            for (i64 j = 0; j < of.broad; j++) {
                const i64 x = o * of.right - of.left + j * of.aside;
                if (x >= 0 && x < of.wide) most = larger(most, line[x]);
            }
            out[o] = most;
        }
    }
    __builtin_free(line);
    return 0;
}
// The part of a window inside of `size`, and its elements that an average counts.
static inline i64 covered(i64 start, i64 length, i64 size, i64 padding, i64& from, i64& to, bool counts_padding) {
    to = least(start + length, size + padding);
    const i64 whole = to - start;
    from = start < 0 ? 0 : start;
    to = least(to, size);
    return counts_padding ? whole : to - from;
}
template <class T> static int avg_pool(const Pool& of, i64 begin, i64 end) {
    T* line = (T*)__builtin_malloc(of.wide * sizeof(T));
    if (!line) return 1;
    i64 first, last;
    inside(of, first, last);
    for (i64 item = begin; item < end; item++) {
        const T* plane = (const T*)of.x + item / of.rows * of.high * of.wide;
        T* out = (T*)of.out + item * of.columns;
        i64 low, high;
        const i64 tall = covered(item % of.rows * of.down - of.above, of.tall, of.high, of.above, low, high,
            of.counts_padding);
        for (i64 x = 0; x < of.wide; x++) line[x] = 0;
        for (i64 y = low; y < high; y++) {
            const T* from = plane + y * of.wide;
            for (i64 x = 0; x < of.wide; x++) line[x] += from[x];
        }
        if (of.right == 1) summed<T, 1>(line, out, first, last, of.broad, 1, of.left, 1);
        else if (of.right == 2) summed<T, 2>(line, out, first, last, of.broad, 2, of.left, 1);
        else summed<T, 0>(line, out, first, last, of.broad, of.right, of.left, 1);
        const T whole = of.divisor ? (T)of.divisor : (T)(tall * of.broad);
        for (i64 o = first; o < last; o++) out[o] /= whole;
        for (i64 o = 0; o < of.columns; o++) {
            if (o >= first && o < last) continue;
            i64 a, b;
            const i64 broad = covered(o * of.right - of.left, of.broad, of.wide, of.left, a, b, of.counts_padding);
            T total = 0;
            for (i64 x = a; x < b; x++) total += line[x];
            out[o] = total / (of.divisor ? (T)of.divisor : (T)(tall * broad));
        }
    }
    __builtin_free(line);
    return 0;
}
ENTRY_PER_DTYPE(max_pool, Pool)
ENTRY_PER_DTYPE(avg_pool, Pool)
"""
)

_CODES = "QQqqqqqqqqqqqqqd"
_MAX, _AVG = (make_kernel_per_dtype(_SOURCE, name, _CODES) for name in ("max_pool", "avg_pool"))


def _pool(
    device: Any, entries: dict, input: np.ndarray, kernel: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: bool, counts_padding: bool, divisor: float,
) -> np.ndarray | None:  # fmt: skip
    count = len(kernel)
    if count > 2 or input.size < _MIN_SIZE or input.dtype not in FLOATS or math.prod(kernel) > _MAX_WINDOW:
        return None
    size, made = _output_sizes_of(input, kernel, stride, padding, dilation, ceil_mode)
    x = np.ascontiguousarray(input)
    out = np.empty((*x.shape[: x.ndim - count], *made), x.dtype)
    if not out.size:
        return None
    pairs = [((1,) * (2 - count) + tuple(values)) for values in (size, made, kernel, stride)]
    pairs += [((0,) * (2 - count) + tuple(padding)), ((1,) * (2 - count) + tuple(dilation))]
    items = out.size // made[-1]
    values = [n for pair in pairs for n in pair]
    done = entries[x.dtype](device, items, x.nbytes + out.nbytes, x, out, *values, int(counts_padding), divisor)
    return out if done else None


def max_pool(device: Any, input: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any) -> Any:
    return _pool(device, _MAX, input, kernel, stride, padding, dilation, ceil_mode, False, 0.0)


def avg_pool(
    device: Any, input: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: Any, count_include_pad: Any,
    divisor_override: Any,
) -> Any:  # fmt: skip
    ones = (1,) * len(kernel)
    divisor = float(divisor_override or 0)
    return _pool(device, _AVG, input, kernel, stride, padding, ones, ceil_mode, count_include_pad, divisor)


kernels = {"_max_pool": max_pool, "_avg_pool": avg_pool}
