"""Sparse-dense matrix products (SpMM), native."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite_backends.numpy.spmm import fills_matrix
from torchlite_backends.numpy.threaded_copy import copy_row_major

from .native_kernel import FLOATS, I64, TYPE_DEFINITIONS, VECTOR_TEMPLATES, NativeKernel, make_kernel_per_dtype

_SOURCE = (
    TYPE_DEFINITIONS
    + VECTOR_TEMPLATES
    + r"""
// out[r, :] adds up values[k] * dense[columns[k], :] for k from starts[r] to starts[r + 1], in this order.
struct Times {
    const i64 *starts, *columns; const void *values, *dense; void* out; i64 nonzeros, height, width;
};
// Of K vectors of columns, which stay in registers.
template <class T, int K> static inline void times_columns(const Times& of, i64 first, i64 last, i64 column,
    T* out) {
    typedef Vector<T> X;
    const T *values = (const T*)of.values, *dense = (const T*)of.dense + column;
    typename X::V sums[K] = {};
    for (i64 k = first; k < last; k++) {
        const T* row = dense + of.columns[k] * of.width;
        for (int i = 0; i < K; i++) sums[i] += X::at(row + i * X::W) * values[k];
    }
    memcpy(out + column, sums, sizeof sums);
}
template <class T> static int rows_times(const Times& of, i64 begin, i64 end) {
    const int W = Vector<T>::W;
    const T *values = (const T*)of.values, *dense = (const T*)of.dense;
    for (i64 r = begin; r < end; r++) {
        const i64 first = of.starts[r], last = of.starts[r + 1];
        if (first < 0 || last < first || last > of.nonzeros) return 1;
        for (i64 k = first; k < last; k++) if ((uint64_t)of.columns[k] >= (uint64_t)of.height) return 1;
        T* out = (T*)of.out + r * of.width;
        i64 c = 0;
        for (; c + 4 * W <= of.width; c += 4 * W) times_columns<T, 4>(of, first, last, c, out);
        for (; c + W <= of.width; c += W) times_columns<T, 1>(of, first, last, c, out);
        if (c == of.width) continue;
        for (i64 i = c; i < of.width; i++) out[i] = 0;
        for (i64 k = first; k < last; k++) {
            const T* row = dense + of.columns[k] * of.width;
            for (i64 i = c; i < of.width; i++) out[i] += row[i] * values[k];
        }
    }
    return 0;
}
// out[k] = left[rows[k], :] . right[columns[k], :]
struct Products {
    const i64 *rows, *columns; const void *left, *right; void* out; i64 left_rows, right_rows, width;
};
template <class T> static int products_at(const Products& of, i64 begin, i64 end) {
    typedef Vector<T> X;
    const int W = X::W;
    const i64 AHEAD = 8, line = of.width * sizeof(T);
    for (i64 k = begin; k < end; k++) {
        if (k + AHEAD < end) for (i64 i = 0; i < line; i += 64) ask(of.right, of.columns[k + AHEAD] * line + i);
        const uint64_t one = of.rows[k], two = of.columns[k];
        if (one >= (uint64_t)of.left_rows || two >= (uint64_t)of.right_rows) return 1;
        const T *a = (const T*)of.left + one * of.width, *b = (const T*)of.right + two * of.width;
        typename X::V sums[2] = {};
        i64 i = 0;
        for (; i + 2 * W <= of.width; i += 2 * W) {
            sums[0] += X::at(a + i) * X::at(b + i);
            sums[1] += X::at(a + i + W) * X::at(b + i + W);
        }
        T rest = 0;
        for (; i < of.width; i++) rest += a[i] * b[i];
        ((T*)of.out)[k] = added_up<T>(sums[0] + sums[1]) + rest;
    }
    return 0;
}
// The order that sorts numbers below `size`, equal ones as they were, and where each number's begin.
struct Order { const i64* rows; i64 *order, *starts; i64 count, size; };
static int rows_in_order(const Order& of, i64, i64) {
    memset(of.starts, 0, (of.size + 1) * sizeof(i64));
    for (i64 k = 0; k < of.count; k++) {
        if ((uint64_t)of.rows[k] >= (uint64_t)of.size) return 1;
        of.starts[of.rows[k]]++;
    }
    i64 at = 0;
    for (i64 r = 0; r <= of.size; r++) {
        const i64 n = of.starts[r];
        of.starts[r] = at;
        at += n;
    }
    // Each start moves to the end of its own, which is the next one's start.
    for (i64 k = 0; k < of.count; k++) of.order[of.starts[of.rows[k]]++] = k;
    memmove(of.starts + 1, of.starts, of.size * sizeof(i64));
    of.starts[0] = 0;
    return 0;
}
ENTRY_PER_DTYPE(rows_times, Times)
ENTRY_PER_DTYPE(products_at, Products)
ENTRY(rows_in_order, Order)
"""
)
_spmm_kernels = make_kernel_per_dtype(_SOURCE, "rows_times", "QQQQQqqq")
_sddmm_kernels = make_kernel_per_dtype(_SOURCE, "products_at", "QQQQQqqq")
_counting_sort_kernel = NativeKernel(_SOURCE, "rows_in_order", "QQQqq")


def _are_int64_contiguous(*arrays: Any) -> bool:
    """True if these are contiguous int64 indices."""
    return all(x.dtype == I64 and x.flags.c_contiguous for x in arrays)


def _as_row_major(x: Any) -> Any:
    return x if x.flags.c_contiguous else copy_row_major(x)


def _csr_mm(device: Any, columns: Any, starts: Any, values: Any, dense: Any) -> Any:
    if dense.dtype not in FLOATS or values.dtype != dense.dtype or not _are_int64_contiguous(starts, columns):
        return None
    (height, width), rows = dense.shape, starts.size - 1
    if values.shape != columns.shape or rows < 1 or not width or fills_matrix(columns, starts, values, dense):
        return None
    dense, values = _as_row_major(dense), _as_row_major(values)
    out = np.empty((rows, width), dense.dtype)
    nbytes = out.nbytes + columns.size * width * dense.itemsize
    given = starts, columns, values, dense, out
    return out if _spmm_kernels[dense.dtype](device, rows, nbytes, *given, columns.size, height, width) else None


def _sampled_mm(device: Any, rows: Any, columns: Any, left: Any, right: Any) -> Any:
    if left.dtype not in FLOATS or right.dtype != left.dtype or not _are_int64_contiguous(rows, columns):
        return None
    width = left.shape[1]
    if rows.shape != columns.shape or right.shape[1] != width:
        return None
    left, right = _as_row_major(left), _as_row_major(right)
    out = np.empty(rows.size, left.dtype)
    nbytes = 2 * rows.size * width * left.itemsize
    given = rows, columns, left, right, out
    done = _sddmm_kernels[left.dtype](device, rows.size, nbytes, *given, left.shape[0], right.shape[0], width)
    return out if done else None


def _stable_argsort_rows(device: Any, rows: Any, size: Any) -> Any:
    if not _are_int64_contiguous(rows):
        return None
    order, starts = np.empty(rows.size, np.int64), np.empty(size + 1, np.int64)
    return (order, starts) if _counting_sort_kernel(device, 1, 0, rows, order, starts, rows.size, size) else None


kernels = {"_csr_mm": _csr_mm, "_sampled_mm": _sampled_mm, "_stable_argsort_rows": _stable_argsort_rows}
