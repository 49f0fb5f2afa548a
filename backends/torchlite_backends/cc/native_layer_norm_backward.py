"""Layer norm's backward pass with the gradients of weight and bias, native.

One kernel for all three reads each row while it is in cache, and writes large results with non-temporal stores. For
4096 rows of 1024 elements that takes 0.75 to 1.0 of the shared kernel's time, depending on the cache's content. The
pass itself is bound by memory. Several rows at a time, with their column sums accumulated immediately, took as long or
longer: rows a power of two apart map to the same cache sets.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .native_kernel import FLOATS, NONTEMPORAL_STORE, TYPE_DEFINITIONS, VECTOR_TEMPLATES, make_kernel_per_dtype

# Maximum number of row blocks, each with partial sums, unless these have more than so many rows; elements of a block.
_MAX_PARTS, _MAX_ROWS, _PART_SIZE = 32, 512, 1 << 14

_SOURCE = (
    TYPE_DEFINITIONS
    + NONTEMPORAL_STORE
    + VECTOR_TEMPLATES
    + r"""
// gx = ((g w) - mean(g w) - d mean(g w d) / s^2) / s, where d is x less its row's mean; sums of g d / s and g.
struct Norms {
    const void *grad, *x, *weight, *mean, *rstd;
    void *out, *of_weight, *of_bias;
    i64 rows, columns, parts, past_caches;
};
// The means of g w and of g w d over a row.
template <class T> static inline void means(const T* g, const T* x, const T* weight, T centre, i64 n, T* average,
    T* product) {
    typedef Vector<T> X;
    typedef typename X::V V;
    const int W = X::W;
    double total = 0, more = 0;
    for (i64 i = 0; i < n;) {
        const i64 last = least(n, i + 64 * 2 * W);  // so many are added up in T
        V totals[2] = {}, products[2] = {};
        for (; i + 2 * W <= last; i += 2 * W) {
            for (int k = 0; k < 2; k++) {
                V v = X::at(g + i + k * W);
                if (weight) v *= X::at(weight + i + k * W);
                totals[k] += v;
                products[k] += v * (X::at(x + i + k * W) - centre);
            }
        }
        total += added_up<T>(totals[0] + totals[1]);
        more += added_up<T>(products[0] + products[1]);
        for (; i < last; i++) {
            const T v = weight ? g[i] * weight[i] : g[i];
            total += v;
            more += v * (x[i] - centre);
        }
    }
    *average = T(total / n);
    *product = T(more / n);
}
template <class T, bool WEIGHT> static int some_rows(const Norms& of, i64 begin, i64 end) {
    const int BLOCK = 1024;
    T line[BLOCK];
    const i64 n = of.columns;
    for (i64 item = begin; item < end; item++) {
        T *of_weight = (T*)of.of_weight + item * n, *of_bias = (T*)of.of_bias + item * n;
        for (i64 i = 0; i < n; i++) of_weight[i] = of_bias[i] = 0;
        const i64 last = of.rows * (item + 1) / of.parts;
        for (i64 row = of.rows * item / of.parts; row < last; row++) {
            const T *g = (const T*)of.grad + row * n, *x = (const T*)of.x + row * n;
            const T *weight = WEIGHT ? (const T*)of.weight : nullptr;
            const T centre = ((const T*)of.mean)[row], inverse = ((const T*)of.rstd)[row];
            if (inverse < T(sizeof(T) == 4 ? 0x1p-36 : 0x1p-300)) return 1;  // its cube would lose digits
            T average, slope;
            means<T>(g, x, weight, centre, n, &average, &slope);
            slope *= inverse * inverse;
            for (i64 start = 0; start < n; start += BLOCK) {
                const i64 count = least(BLOCK, n - start);
                T *out = (T*)of.out + row * n + start, *to = of.past_caches ? line : out;
                #pragma GCC ivdep
                for (i64 i = 0; i < count; i++) {
                    const T v = g[start + i], d = x[start + i] - centre;
                    of_bias[start + i] += v;
                    of_weight[start + i] += v * d * inverse;
                    to[i] = ((WEIGHT ? v * weight[start + i] : v) - average - d * slope) * inverse;
                }
                if (of.past_caches) stream((char*)out, (const char*)line, count * sizeof(T));
            }
        }
    }
    return 0;
}
template <class T> static int layer_norm_backward(const Norms& of, i64 begin, i64 end) {
    const int refused = of.weight ? some_rows<T, true>(of, begin, end) : some_rows<T, false>(of, begin, end);
    if (of.past_caches) streamed();
    return refused;
}
ENTRY_PER_DTYPE(layer_norm_backward, Norms)
"""
)
_backward = make_kernel_per_dtype(_SOURCE, "layer_norm_backward", "QQQQQQQQqqqq")


def _layer_norm_backward(
    device: Any, grad: Any, input: Any, weight: Any, mean: Any, rstd: Any, n_dims: int, eps: float, needs: Any
) -> Any:
    given = [a for a in (grad, input, weight, mean, rstd) if a is not None]
    if (
        not all(needs)
        or not input.size
        or input.dtype not in FLOATS
        or grad.shape != input.shape
        or any(a.dtype != input.dtype or not a.flags.c_contiguous for a in given)
    ):
        return None
    shape = input.shape[input.ndim - n_dims :]
    columns = math.prod(shape)
    rows = input.size // columns
    parts = min(rows, max(1, min(_MAX_PARTS, input.size // _PART_SIZE), rows // _MAX_ROWS))
    out, sums = np.empty(input.shape, input.dtype), np.empty((2, parts, columns), input.dtype)
    nbytes = 3 * input.nbytes
    done = _backward[input.dtype](
        device, parts, 4 * nbytes, grad, input, 0 if weight is None else weight, mean, rstd, out, sums[0], sums[1],
        rows, columns, parts, nbytes > device.cached,
    )  # fmt: skip
    if not done:
        return None
    of_weight, of_bias = np.add.reduce(sums, 1, np.float64).astype(input.dtype, copy=False)
    return out, of_weight.reshape(shape), of_bias.reshape(shape)


kernels = {"_layer_norm_backward": _layer_norm_backward}
