"""Row-vector times column-major matrix (GEMV): a linear layer of one sample or token.

The product reads the matrix once, at memory bandwidth. BLAS does it on one thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .native_kernel import FLOATS, TYPE_DEFINITIONS, VECTOR_TEMPLATES, make_kernel_per_dtype

# Outputs of an item.
_COLUMNS_PER_ITEM = 16

_SOURCE = (
    TYPE_DEFINITIONS
    + VECTOR_TEMPLATES
    + r"""
// out[j] = row . lines[j, :] + bias[j]; an item is some of them.
struct Vectors { const void *row, *lines, *bias; void* out; i64 count, depth, step; };
template <class T, int R> static inline void dots(const T* row, const T* const* lines, i64 depth, i64 ahead,
    T* out) {
    typedef Vector<T> X;
    typedef typename X::V V;
    const int W = X::W;
    V sums[R] = {}, more[R] = {};
    i64 k = 0;
    for (; k + 2 * W <= depth; k += 2 * W) {
        const V x = X::at(row + k), next = X::at(row + k + W);
        #pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
            __builtin_prefetch(lines[r] + k + ahead);
            __builtin_prefetch(lines[r] + k + W + ahead);
            sums[r] += x * X::at(lines[r] + k);
            more[r] += next * X::at(lines[r] + k + W);
        }
    }
    #pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
        T rest = 0;
        for (i64 i = k; i < depth; i++) rest += row[i] * lines[r][i];
        out[r] = added_up<T>(sums[r] + more[r]) + rest;
    }
}
template <class T> static int gemv(const Vectors& of, i64 begin, i64 end) {
    const T *row = (const T*)of.row, *bias = (const T*)of.bias;
    const i64 last = least(end * LINES, of.count);
    for (i64 j = begin * LINES; j < last;) {
        const T* lines[4];
        const int n = least(4, last - j);
        T found[4];
        for (int r = 0; r < n; r++) lines[r] = (const T*)of.lines + (j + r) * of.step;
        if (n == 4) dots<T, 4>(row, lines, of.depth, 4 * of.step, found);
        else for (int r = 0; r < n; r++) dots<T, 1>(row, lines + r, of.depth, of.step, found + r);
        for (int r = 0; r < n; r++, j++) ((T*)of.out)[j] = bias ? found[r] + bias[j] : found[r];
    }
    return 0;
}
ENTRY_PER_DTYPE(gemv, Vectors)
"""
).replace("LINES", str(_COLUMNS_PER_ITEM))
_gemv_kernels = make_kernel_per_dtype(_SOURCE, "gemv", "QQQQqqq")


def gemv(device: Any, row: Any, matrix: Any, bias: Any) -> Any:
    """Return `row @ matrix + bias` of shape (1, columns); None if nothing was done."""
    depth, columns = matrix.shape
    dtype, size = matrix.dtype, matrix.itemsize
    step, between = matrix.strides
    if (
        dtype not in FLOATS
        or row.dtype != dtype
        or row.shape[1] != depth
        or step != size
        or between < depth * size
        or between % size
        or not row.flags.c_contiguous
    ):
        return None
    if bias is not None and (bias.dtype != dtype or bias.shape != (columns,) or not bias.flags.c_contiguous):
        return None
    out = np.empty((1, columns), dtype)
    # Reads are bound by memory: a second thread pays from a quarter of the bytes of other kernels.
    nbytes = 8 * columns * depth * size
    given = row, matrix, 0 if bias is None else bias, out
    return (
        out
        if _gemv_kernels[dtype](
            device, -(-columns // _COLUMNS_PER_ITEM), nbytes, *given, columns, depth, between // size
        )
        else None
    )
