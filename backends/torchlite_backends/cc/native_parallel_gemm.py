"""Parallel BLAS GEMM: blocks of a large product on the native thread pool, where `native_gemm` has no kernel.

A thread that gets its block through Python starts some 50 us later than one that waits in C, a twentieth of a
one-millisecond product. The blocks are those of `torchlite_backends.numpy.deterministic_gemm`, each one BLAS call as
NumPy would make it, so results are bitwise equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite_backends.device_runtime.core.processor_level import has_avx512
from torchlite_backends.numpy.blas import get_gemm_address

from . import native_gemm
from .device import address
from .native_gemm import FORCE_THREADS
from .native_kernel import FLOATS, TYPE_DEFINITIONS, NativeKernel

# Source for programs that call BLAS: `product(of, ...)` for row-major matrices, c = a @ b + beta * c, where a struct
# has the address of BLAS's function for T.
GEMM_TEMPLATE = r"""
template <class T> struct Blas {
    typedef void (*Gemm)(int order, int turned_a, int turned_b, i64 m, i64 n, i64 k, T alpha, const T* a,
        i64 a_row, const T* b, i64 b_row, T beta, T* c, i64 c_row);
};
template <class T> static inline void product(const void* gemm, bool turned_a, bool turned_b, i64 m, i64 n,
    i64 k, const T* a, i64 a_row, const T* b, i64 b_row, T beta, T* c, i64 c_row) {
    ((typename Blas<T>::Gemm)gemm)(101, turned_a ? 112 : 111, turned_b ? 112 : 111, m, n, k, 1, a, a_row, b, b_row,
        beta, c, c_row);
}
"""
_SOURCE = (
    TYPE_DEFINITIONS
    + GEMM_TEMPLATE
    + r"""
// A part is some rows of the result, or some columns.
struct Product {
    const void* gemm; const void *a, *b; void* out; const void* bias;
    i64 rows, columns, depth, turned_a, a_row, turned_b, b_row, out_row, by_rows, parts;
};
template <class T> static int product(const Product& of, i64 begin, i64 end) {
    for (i64 k = begin; k < end; k++) {
        const i64 length = of.by_rows ? of.rows : of.columns;
        const i64 start = length * k / of.parts, n = length * (k + 1) / of.parts - start;
        const T *a = (const T*)of.a, *b = (const T*)of.b, *bias = (const T*)of.bias;
        T* out = (T*)of.out;
        i64 rows = of.rows, columns = of.columns;
        if (of.by_rows) {
            a += of.turned_a ? start : start * of.a_row;
            out += start * of.out_row;
            rows = n;
        } else {
            b += of.turned_b ? start * of.b_row : start;
            out += start;
            if (bias) bias += start;
            columns = n;
        }
        product<T>(of.gemm, of.turned_a, of.turned_b, rows, columns, of.depth, a, of.a_row, b, of.b_row, 0, out,
            of.out_row);
        if (!bias) continue;
        for (i64 i = 0; i < rows; i++, out += of.out_row) for (i64 j = 0; j < columns; j++) out[j] += bias[j];
    }
    return 0;
}
ENTRY_PER_DTYPE(product, Product)
"""
)
_gemm_kernels = {
    dtype: NativeKernel(_SOURCE, f"product_{short}", "QQQQQ" + "q" * 10) for dtype, short in FLOATS.items()
}
_HAS_AVX512 = has_avx512()


def _blas_order_and_leading_dim(x: np.ndarray) -> tuple[bool, int] | None:
    """Return (column-major, leading dimension) of a matrix; None if BLAS cannot take it."""
    rows, columns = x.strides
    size = x.itemsize
    if columns == size and rows >= x.shape[1] * size and not rows % size:
        return False, rows // size
    if rows == size and columns >= x.shape[0] * size and not columns % size:
        return True, columns // size
    return None


def parallel_gemm(device: Any, a: Any, b: Any, out: Any, bias: Any, by_rows: bool, parts: int) -> bool:
    """Compute `out = a @ b + bias` in blocks; return False if nothing was done."""
    if a.dtype not in _gemm_kernels or not out.flags.c_contiguous or a.size == 0:
        return False
    if bias is not None and (bias.dtype != a.dtype or bias.shape != out.shape[1:] or not bias.flags.c_contiguous):
        return False
    if a.strides == b.strides[::-1] and address(a) == address(b):
        return False  # the product of a matrix and its own transpose is another function of BLAS
    if _HAS_AVX512 and native_gemm.gemm(device, a, b, out, bias):
        return True
    gemm = get_gemm_address(a.dtype)
    of_a, of_b = _blas_order_and_leading_dim(a), _blas_order_and_leading_dim(b)
    if parts < 2 or gemm is None or of_a is None or of_b is None:
        return False
    return _gemm_kernels[a.dtype](
        device, parts, FORCE_THREADS, gemm, a, b, out, 0 if bias is None else bias,
        *out.shape, a.shape[1], *of_a, *of_b, out.shape[1], by_rows, parts,
    )  # fmt: skip
