"""Native gather, index_select, index_add and embedding by index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .native_kernel import I32, I64, TYPE_DEFINITIONS, NativeKernel, make_kernel_per_dtype

# Bytes that `cat` writes at a time.
CHUNK = 1 << 16

_GATHER_SOURCE = (
    TYPE_DEFINITIONS
    + r"""
// out[b, k, a] = input[b, index[b, k, a], a]; a row has all a of one b and k.
struct Gather { const void* input; const i64* index; void* out; i64 length, picked, after; };
template <class T> static inline T one_of(const T* from, uint64_t at, uint64_t length, int& bad) {
    bad |= at >= length;
    return from[at < length ? at : 0];
}
template <class T> static int gather(const Gather& of, i64 begin, i64 end) {
    const uint64_t length = of.length;
    int bad = 0;
    if (of.after == 1) {
        // Memory is asked for AHEAD elements before it is read: rows before, or in rows that are longer within them.
        const i64 AHEAD = 128, picked = of.picked, rows = AHEAD / picked, reach = rows ? rows * picked : AHEAD;
        const uintptr_t distance = rows * of.length * sizeof(T);
        for (i64 row = begin; row < end; row++) {
            const T* from = (const T*)of.input + row * of.length;
            const void* later = (const void*)((uintptr_t)from + distance);
            const i64* index = of.index + row * picked;
            T* out = (T*)of.out + row * picked;
            const i64 asked = !rows ? picked - AHEAD : row + rows < end ? picked : 0;
            i64 k = 0;
            for (; k < asked; k++) {
                ask(later, index[k + reach] * sizeof(T));
                out[k] = one_of(from, index[k], length, bad);
            }
            for (; k < picked; k++) out[k] = one_of(from, index[k], length, bad);
        }
        return bad;
    }
    for (i64 row = begin; row < end; row++) {
        const T* from = (const T*)of.input + row / of.picked * of.length * of.after;
        const i64* index = of.index + row * of.after;
        T* out = (T*)of.out + row * of.after;
        for (i64 a = 0; a < of.after; a++) {
            const uint64_t at = index[a];
            bad |= at >= length;
            out[a] = from[(at < length ? at : 0) * of.after + a];
        }
    }
    return bad;
}
static int gather_1(const Gather& of, i64 b, i64 e) { return gather<uint8_t>(of, b, e); }
static int gather_2(const Gather& of, i64 b, i64 e) { return gather<uint16_t>(of, b, e); }
static int gather_4(const Gather& of, i64 b, i64 e) { return gather<uint32_t>(of, b, e); }
static int gather_8(const Gather& of, i64 b, i64 e) { return gather<uint64_t>(of, b, e); }
ENTRY(gather_1, Gather)
ENTRY(gather_2, Gather)
ENTRY(gather_4, Gather)
ENTRY(gather_8, Gather)
"""
)
_GATHER_KERNELS = {size: NativeKernel(_GATHER_SOURCE, f"gather_{size}", "QQQqqq") for size in (1, 2, 4, 8)}

_TAKE_ROWS_SOURCE = (
    TYPE_DEFINITIONS
    + r"""
// out[b, k, :] = table[b, index[k], :]; a row is one k of one b, and has `width` bytes.
struct Rows { const char* table; const void* index; char* out; i64 length, picked, width, wide; };
template <class T> static inline void copied(char* to, const char* from) {
    T x;
    memcpy(&x, from, sizeof x);
    memcpy(to, &x, sizeof x);
}
// A copy that writes whole lines of cache: rows of 4 KiB take 0.85 of the time of memcpy's.
static inline void in_lines(char* to, const char* from, i64 n) {
    typedef int64_t Line __attribute__((vector_size(64)));
    i64 i = -(uintptr_t)to & 63;
    memcpy(to, from, i);
    for (; i + 256 <= n; i += 256) {
        Line lines[4];
        memcpy(lines, from + i, sizeof lines);
        for (int k = 0; k < 4; k++) *(Line*)(to + i + 64 * k) = lines[k];
    }
    memcpy(to + i, from + i, n - i);
}
template <class I> static int picked(const Rows& of, i64 begin, i64 end) {
    const I* index = (const I*)of.index;
    const i64 ahead = of.width < 512 ? 8 : 1, asked = least(of.width, 8192);
    i64 k = begin % of.picked;
    const char* table = of.table + begin / of.picked * of.length * of.width;
    for (i64 row = begin; row < end; row++, k++) {
        if (k == of.picked) {
            k = 0;
            table += of.length * of.width;
        }
        const uint64_t at = (i64)index[k];
        if (at >= (uint64_t)of.length) return 1;
        if (k + ahead < of.picked)
            for (i64 i = 0; i < asked; i += 64) ask(table, (i64)index[k + ahead] * of.width + i);
        char* out = of.out + row * of.width;
        const char* from = table + at * of.width;
        if (of.width == 4) copied<uint32_t>(out, from);
        else if (of.width == 8) copied<uint64_t>(out, from);
        else if (of.width < 512) memcpy(out, from, of.width);
        else in_lines(out, from, of.width);
    }
    return 0;
}
static int rows_at(const Rows& of, i64 begin, i64 end) {
    return of.wide ? picked<int64_t>(of, begin, end) : picked<int32_t>(of, begin, end);
}
ENTRY(rows_at, Rows)
"""
)
_take_rows_kernel = NativeKernel(_TAKE_ROWS_SOURCE, "rows_at", "QQQqqqq")


_INDEX_ADD_SOURCE = (
    TYPE_DEFINITIONS
    + r"""
// out[index[k], :] += grad[k, :] in the order of k, where out begins as `from`, or with zeros. An item is some rows of
// `out`: it looks at all of the index, which is little beside the rows.
struct Added {
    const void *grad, *index, *from; void* out; i64 picked, rows, width, padding, wide, items;
};
template <class T, class I> static int added_rows(const Added& of, i64 begin, i64 end) {
    const i64 first = of.rows * begin / of.items, last = of.rows * end / of.items;
    const I* index = (const I*)of.index;
    const i64 start = first * of.width, size = (last - first) * of.width * sizeof(T);
    if (of.from) memcpy((T*)of.out + start, (const T*)of.from + start, size);
    else memset((T*)of.out + start, 0, size);
    for (i64 k = 0; k < of.picked; k++) {
        const i64 at = index[k];
        if (at < 0 || at >= of.rows) return 1;
        if (at < first || at >= last || at == of.padding) continue;
        T* __restrict to = (T*)of.out + at * of.width;
        const T* __restrict from = (const T*)of.grad + k * of.width;
        for (i64 i = 0; i < of.width; i++) to[i] += from[i];
    }
    return 0;
}
template <class T> static int added(const Added& of, i64 b, i64 e) {
    return of.wide ? added_rows<T, int64_t>(of, b, e) : added_rows<T, int32_t>(of, b, e);
}
ENTRY_PER_DTYPE(added, Added)
"""
)
_index_add_kernels = make_kernel_per_dtype(_INDEX_ADD_SOURCE, "added", "QQQQqqqqqq")
# Columns of a table below which scanning the index costs too much, and the number of columns per additional part (8 to
# 32: of 64 columns 32 parts took twice the time of 8, of 512 the same).
_WIDE, _COLUMNS_OF_PART = 16, 16
# Bytes behind an inner dimension below which NumPy picks elements faster.
_SHORT_ROW = 32


def wrap_dim(dim: Any, ndim: int) -> int | None:
    """Return a non-negative dimension; None if it is not a plain number in range."""
    return dim % ndim if dim.__class__ is int and -ndim <= dim < ndim else None


def gather(device: Any, input: Any, dim: Any, index: Any, *, sparse_grad: bool = False) -> Any:
    d = wrap_dim(dim, input.ndim)
    if (
        d is None
        or index.dtype != I64
        or input.itemsize not in _GATHER_KERNELS
        or input.ndim != index.ndim
        or not (input.size and index.size)
        or input.shape[:d] != index.shape[:d]
        or input.shape[d + 1 :] != index.shape[d + 1 :]
        or not (input.flags.c_contiguous and index.flags.c_contiguous)
    ):
        return None
    out = np.empty(index.shape, input.dtype)
    after, picked = math.prod(index.shape[d + 1 :]), index.shape[d]
    count = index.size // (picked if after == 1 else after)
    nbytes = 4 * index.nbytes  # the gathered elements are scattered in memory
    done = _GATHER_KERNELS[input.itemsize](device, count, nbytes, input, index, out, input.shape[d], picked, after)
    return out if done else None


def index_select(device: Any, input: Any, dim: Any, index: Any) -> Any:
    d = wrap_dim(dim, input.ndim)
    if d is None or index.ndim != 1:
        return None
    return _take_rows(device, input, d, index, (*input.shape[:d], index.size, *input.shape[d + 1 :]))


def embedding(device: Any, weight: Any, indices: Any, padding_idx: Any = -1, scale_grad_by_freq: Any = False,
              sparse: Any = False) -> Any:  # fmt: skip
    if weight.ndim != 2:
        return None
    return _take_rows(device, weight, 0, indices, (*indices.shape, weight.shape[1]))


def _take_rows(device: Any, table: Any, d: int, index: Any, shape: tuple) -> Any:
    if (
        not (table.size and index.size)
        or index.dtype not in (I64, I32)
        or table.dtype.hasobject
        or not (table.flags.c_contiguous and index.flags.c_contiguous)
    ):
        return None
    width = math.prod(table.shape[d + 1 :]) * table.itemsize
    if d and width < _SHORT_ROW:
        return None
    out = np.empty(shape, table.dtype)
    rows = math.prod(table.shape[:d]) * index.size
    wide = index.itemsize == 8
    if not _take_rows_kernel(device, rows, 2 * out.nbytes, table, index, out, table.shape[d], index.size, width, wide):
        return None
    return out


def _count_column_parts(rows: int, width: int) -> int:
    return min(rows, max(8, min(32, width // _COLUMNS_OF_PART)))


def _embedding_backward(
    device: Any, grad: Any, indices: Any, rows: Any, padding_idx: Any, scale_grad_by_freq: Any
) -> Any:
    width = grad.shape[-1] if grad.ndim else 0
    if (
        grad.dtype not in _index_add_kernels
        or width < _WIDE
        or scale_grad_by_freq
        or indices.dtype not in (I64, I32)
        or grad.shape[:-1] != indices.shape
        or not (indices.size and rows)
        or not (grad.flags.c_contiguous and indices.flags.c_contiguous)
    ):
        return None
    out = np.empty((rows, width), grad.dtype)
    items = _count_column_parts(rows, width)
    sizes = indices.size, rows, width, padding_idx, indices.itemsize == 8, items
    done = _index_add_kernels[grad.dtype](device, items, out.nbytes + 2 * grad.nbytes, grad, indices, 0, out, *sizes)
    return out if done else None


def index_add(device: Any, input: Any, dim: Any, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    width = math.prod(input.shape[1:])
    if (
        input.dtype not in _index_add_kernels
        or input.ndim < 2
        or wrap_dim(dim, input.ndim) != 0
        or width < _WIDE
        or index.ndim != 1
        or alpha.__class__ is not int
        or alpha != 1
        or source.dtype != input.dtype
        or source.shape != (index.size, *input.shape[1:])
        or index.dtype not in (I64, I32)
        or not (index.size and len(input))
        or not all(a.flags.c_contiguous for a in (input, index, source))
    ):
        return None
    out, rows = np.empty_like(input), len(input)
    items = _count_column_parts(rows, width)
    sizes = index.size, rows, width, -1, index.itemsize == 8, items
    done = _index_add_kernels[input.dtype](
        device, items, 2 * (out.nbytes + source.nbytes), source, index, input, out, *sizes
    )
    return out if done else None


kernels = {
    "gather": gather,
    "index_select": index_select,
    "embedding": embedding,
    "_embedding_backward": _embedding_backward,
    "index_add": index_add,
}
