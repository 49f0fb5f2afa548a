"""Native sums and means over adjacent dimensions, and products over the last ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .native_half import row_sum_kernels
from .native_kernel import FLOATS, TYPE_DEFINITIONS, VECTOR_TEMPLATES, make_kernel_per_dtype

# Elements of rows that are added up by themselves at most, and of a part of columns.
_ROW_CHUNK, _COLUMN_PART = 1 << 16, 1 << 15
# Minimum row length and minimum number of columns; other kernels are faster below.
_MIN_ROW_LENGTH, _MIN_COLUMNS = 32, 16
# Rows that are added up one after the other at most, since each sum rounds, and parts if these are enough.
_MAX_SEQUENTIAL_ROWS, _ENOUGH_PARTS = 1 << 12, 16

_SOURCE = (
    TYPE_DEFINITIONS
    + VECTOR_TEMPLATES
    + r"""
// Rows of `length`, each in pieces of `step`, whose sums are double. Sums of 16 numbers are of T.
struct Rows { const void* x; void* out; i64 length, pieces, step; };
// With `SKIPS` a NaN counts as zero.
template <class T, bool SKIPS> static inline int added_rows(const Rows& of, i64 begin, i64 end) {
    typedef Vector<T> X;
    typedef typename X::V V;
    const int W = X::W;
    const V zeros = {};
    for (i64 item = begin; item < end; item++) {
        const i64 start = item % of.pieces * of.step, n = least(of.step, of.length - start);
        const T* x = (const T*)of.x + item / of.pieces * of.length + start;
        double all = 0;
        i64 i = 0;
        while (i < n) {
            const i64 end = least(n, i + 16 * 8 * W);
            V sums[8] = {};
            for (; i + 8 * W <= end; i += 8 * W) {
                for (int k = 0; k < 8; k++) {
                    ask(x + i + k * W, 4096);  // a page ahead: the processor itself asks for none of the next page
                    const V v = X::at(x + i + k * W);
                    sums[k] += SKIPS ? (v == v ? v : zeros) : v;
                }
            }
            for (; i + W <= end; i += W) {
                const V v = X::at(x + i);
                sums[i / W % 8] += SKIPS ? (v == v ? v : zeros) : v;
            }
            const V sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
            all += added_up<T>(sum);
            for (; i < end; i++) all += SKIPS && x[i] != x[i] ? T(0) : x[i];
        }
        ((double*)of.out)[item] = all;
    }
    return 0;
}
template <class T> static int row_sums(const Rows& of, i64 begin, i64 end) {
    return added_rows<T, false>(of, begin, end);
}
template <class T> static int row_nansums(const Rows& of, i64 begin, i64 end) {
    return added_rows<T, true>(of, begin, end);
}
template <class T> static int row_products(const Rows& of, i64 begin, i64 end) {
    typedef Vector<T> X;
    typedef typename X::V V;
    const int W = X::W;
    for (i64 item = begin; item < end; item++) {
        const i64 start = item % of.pieces * of.step, n = least(of.step, of.length - start);
        const T* x = (const T*)of.x + item / of.pieces * of.length + start;
        V products[8];
        for (int k = 0; k < 8; k++) products[k] = V{} + T(1);
        i64 i = 0;
        for (; i + 8 * W <= n; i += 8 * W) for (int k = 0; k < 8; k++) products[k] *= X::at(x + i + k * W);
        for (; i + W <= n; i += W) products[0] *= X::at(x + i);
        for (int k = 1; k < 8; k++) products[0] *= products[k];
        T all = 1;
        for (; i < n; i++) all *= x[i];
        for (int k = 0; k < W; k++) all *= products[0][k];
        ((T*)of.out)[item] = all;
    }
    return 0;
}
// out[b, piece, :] adds up `height` of the `count` rows of `after` columns, in double; a block of columns is an item.
struct Columns { const void* x; void* out; i64 count, after, pieces, height, blocks; };
template <class T> static int column_sums(const Columns& of, i64 begin, i64 end) {
    const int BLOCK = 1024;
    T sums[BLOCK];
    double all[BLOCK];
    for (i64 item = begin; item < end; item++) {
        const i64 first = item % of.blocks * BLOCK, n = least(BLOCK, of.after - first), place = item / of.blocks;
        const i64 row = place % of.pieces * of.height, rows = least(of.height, of.count - row);
        const T* x = (const T*)of.x + (place / of.pieces * of.count + row) * of.after + first;
        for (i64 i = 0; i < n; i++) all[i] = 0;
        for (i64 k = 0; k < rows;) {
            const i64 end = least(rows, k + 256);
            for (i64 i = 0; i < n; i++) sums[i] = 0;
            for (; k + 4 <= end; k += 4, x += 4 * of.after) {
                const T *a = x, *b = x + of.after, *c = b + of.after, *d = c + of.after;
                for (i64 i = 0; i < n; i++) sums[i] += (a[i] + b[i]) + (c[i] + d[i]);
            }
            for (; k < end; k++, x += of.after) for (i64 i = 0; i < n; i++) sums[i] += x[i];
            for (i64 i = 0; i < n; i++) all[i] += sums[i];
        }
        memcpy((double*)of.out + place * of.after + first, all, n * sizeof(double));
    }
    return 0;
}
ENTRY_PER_DTYPE(row_sums, Rows)
ENTRY_PER_DTYPE(row_nansums, Rows)
ENTRY_PER_DTYPE(row_products, Rows)
ENTRY_PER_DTYPE(column_sums, Columns)
"""
)
_row_sum_kernels = {**make_kernel_per_dtype(_SOURCE, "row_sums", "QQqqq"), **row_sum_kernels}
_row_nansum_kernels = make_kernel_per_dtype(_SOURCE, "row_nansums", "QQqqq")
_row_product_kernels = make_kernel_per_dtype(_SOURCE, "row_products", "QQqqq")
_column_sum_kernels = make_kernel_per_dtype(_SOURCE, "column_sums", "QQqqqqq")


def sum(device: Any, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    out = _sum_in_double(device, input, dim, keepdim, dtype)
    return None if out is None else out.astype(input.dtype, copy=False)


def _sum_in_double(device: Any, input: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if input.dtype not in _row_sum_kernels or not (input.size and input.ndim):
        return None
    if dtype is not None and dtype.np != input.dtype:
        return None
    if dim.__class__ is int and -input.ndim <= dim < input.ndim and input.flags.c_contiguous:  # the common case first
        shape, d = input.shape, dim % input.ndim
        before, after = math.prod(shape[:d]), math.prod(shape[d + 1 :])
        return _sum_3d(device, input, before, shape[d], after, (*shape[:d], *([1] if keepdim else []), *shape[d + 1 :]))
    axes = _normalize_axes(dim, input.ndim)
    return None if axes is None else _sum_axes(device, input, axes, keepdim)


def mean(device: Any, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    out = _sum_in_double(device, input, dim, keepdim, dtype)
    return None if out is None else np.divide(out, input.size // max(out.size, 1)).astype(input.dtype, copy=False)


def _normalize_axes(dim: Any, ndim: int) -> list[int] | None:
    """Return the reduced dimensions in order; None if they are not plain numbers in range, or repeat."""
    if dim is None or dim == () or dim == []:
        return list(range(ndim))
    given = [dim] if dim.__class__ is int else dim
    if any(d.__class__ is not int or not -ndim <= d < ndim for d in given):
        return None
    found = sorted({d % ndim for d in given})
    return found if len(found) == len(given) else None


def _sum_axes(device: Any, x: np.ndarray, axes: list[int], keepdim: bool) -> Any:
    shape = [1 if d in axes else n for d, n in enumerate(x.shape) if keepdim or d not in axes]
    order = sorted(range(x.ndim), key=lambda d: -x.strides[d])
    turned = x if x.flags.c_contiguous else x.transpose(order)
    if not turned.flags.c_contiguous:
        return None
    if turned is not x:
        if [d for d in order if d not in axes] != sorted(set(range(x.ndim)) - {*axes}):
            return None  # the result would have to be turned
        axes = sorted(order.index(d) for d in axes)
    first, last = axes[0], axes[-1]
    if last - first + 1 != len(axes):
        return None
    before, count, after = (math.prod(turned.shape[a:b]) for a, b in ((0, first), (first, last + 1), (last + 1, None)))
    return _sum_3d(device, turned, before, count, after, shape)


def _sum_3d(device: Any, x: np.ndarray, before: int, count: int, after: int, shape: Any) -> np.ndarray | None:
    sums = _sum_rows if after == 1 else _sum_columns
    out = sums(device, x, before, count, after)
    return None if out is None else out.reshape(shape)


def _sum_rows(device: Any, x: np.ndarray, rows: int, length: int, _: int) -> np.ndarray | None:
    out = _reduce_rows(device, _row_sum_kernels, x, rows, length, np.float64)
    return None if out is None else out[:, 0] if out.shape[1] == 1 else np.add.reduce(out, 1)


def _reduce_rows(device: Any, kernels: Any, x: np.ndarray, rows: int, length: int, dtype: Any) -> np.ndarray | None:
    """Return a column for each piece of the rows."""
    if length < _MIN_ROW_LENGTH:
        return None
    pieces = -(-length // _ROW_CHUNK)
    step = -(-length // pieces // 64) * 64
    pieces = -(-length // step)
    out = np.empty((rows, pieces), dtype)
    kernels[x.dtype](device, rows * pieces, x.nbytes, x, out, length, pieces, step)
    return out


def _count_trailing(input: Any, dim: Any) -> tuple[int, int, list[int]] | None:
    """Return the number of rows, their length and the axes of a reduction over the last dimensions of a row-major
    array; None for any other.
    """
    if input.dtype not in FLOATS or not (input.size and input.ndim) or not input.flags.c_contiguous:
        return None
    axes = _normalize_axes(dim, input.ndim)
    if axes is None or axes != list(range(axes[0], input.ndim)):
        return None
    return math.prod(input.shape[: axes[0]]), math.prod(input.shape[axes[0] :]), axes


def _reduced_shape(input: Any, axes: list[int], keepdim: bool) -> tuple[int, ...]:
    return input.shape[: axes[0]] + (1,) * len(axes) * keepdim


def nansum(device: Any, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    found = _count_trailing(input, dim)
    if found is None or dtype is not None and dtype.np != input.dtype:
        return None
    rows, length, axes = found
    out = _reduce_rows(device, _row_nansum_kernels, input, rows, length, np.float64)
    if out is None:
        return None
    return np.add.reduce(out, 1).astype(input.dtype).reshape(_reduced_shape(input, axes, keepdim))


def prod(device: Any, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    found = _count_trailing(input, dim)
    if found is None or dtype is not None or dim.__class__ is tuple:
        return None
    rows, length, axes = found
    out = _reduce_rows(device, _row_product_kernels, input, rows, length, input.dtype)
    return None if out is None else np.multiply.reduce(out, 1).reshape(_reduced_shape(input, axes, keepdim))


def _sum_columns(device: Any, x: np.ndarray, before: int, count: int, after: int) -> np.ndarray | None:
    if after < _MIN_COLUMNS or count < 2 or x.dtype not in _column_sum_kernels:
        return None
    blocks = -(-after // 1024)
    height = min(_MAX_SEQUENTIAL_ROWS, max(_COLUMN_PART // min(after, 1024), -(-count // _ENOUGH_PARTS)))
    pieces = -(-count // height)
    out = np.empty((before, pieces, after))
    _column_sum_kernels[x.dtype](
        device, before * pieces * blocks, x.nbytes, x, out, count, after, pieces, height, blocks
    )
    return out[:, 0] if pieces == 1 else np.add.reduce(out, 1)


def _adaptive_avg_pool(device: Any, input: Any, output_size: Any) -> Any:
    if any(n != 1 for n in output_size):
        return None
    return mean(device, input, tuple(range(input.ndim - len(output_size), input.ndim)), True)


kernels = {"_adaptive_avg_pool": _adaptive_avg_pool, "sum": sum, "mean": mean, "nansum": nansum, "prod": prod}
