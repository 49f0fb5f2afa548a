"""Native top-k of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite_backends.numpy.key_sort import MIN_SIZE
from torchlite_backends.numpy.topk_ties import order_ties

from .native_kernel import FLOATS, TYPE_DEFINITIONS, make_kernel_per_dtype

# Maximum k, and minimum ratio of the row length to k: each insertion moves the elements behind it.
_MAX_K, _MIN_LENGTH_PER_K = 128, 4

_SOURCE = (
    TYPE_DEFINITIONS
    + r"""
// The `kept` largest elements of rows, or the smallest, in order, and where they are: of equals the first.
struct Firsts { const void* x; void* values; i64* places; i64 length, kept, largest; };
template <class T, class Key> static inline Key key_of(T x, i64 largest) {
    const Key key = ordered(x);
    return largest ? key : ~key;
}
template <class T, class Key, int KEPT> static int firsts(const Firsts& of, i64 begin, i64 end) {
    const int STEP = 64;
    Key best[KEPT + 1];
    int32_t places[KEPT + 1];
    for (i64 row = begin; row < end; row++) {
        const T* x = (const T*)of.x + row * of.length;
        int held = 0;
        const int kept = of.kept;
        for (i64 first = 0; first < of.length; first += STEP) {
            const i64 n = least(STEP, of.length - first);
            Key keys[STEP];
            int any = held < kept;
            if (n == STEP) {
                const Key bound = held < kept ? 0 : best[kept - 1];
                if (of.largest) for (int k = 0; k < STEP; k++) keys[k] = ordered(x[first + k]);
                else for (int k = 0; k < STEP; k++) keys[k] = ~ordered(x[first + k]);
                for (int k = 0; k < STEP; k++) any |= keys[k] > bound;
            } else {
                any = 1;
                for (i64 k = 0; k < n; k++) keys[k] = key_of<T, Key>(x[first + k], of.largest);
            }
            if (!any) continue;
            for (i64 k = 0; k < n; k++) {
                const Key key = keys[k];
                if (held == kept && key <= best[kept - 1]) continue;
                int at = held < kept ? held++ : kept - 1;
                for (; at > 0 && best[at - 1] < key; at--) {
                    best[at] = best[at - 1];
                    places[at] = places[at - 1];
                }
                best[at] = key;
                places[at] = first + k;
            }
        }
        for (int k = 0; k < kept; k++) {
            ((T*)of.values)[row * kept + k] = x[places[k]];
            of.places[row * kept + k] = places[k];
        }
    }
    return 0;
}
static int firsts_f32(const Firsts& of, i64 b, i64 e) { return firsts<float, int32_t, 128>(of, b, e); }
static int firsts_f64(const Firsts& of, i64 b, i64 e) { return firsts<double, int64_t, 128>(of, b, e); }
ENTRY(firsts_f32, Firsts)
ENTRY(firsts_f64, Firsts)
"""
)
_topk_kernels = make_kernel_per_dtype(_SOURCE, "firsts", "QQQqqq")


def topk(device: Any, input: Any, k: Any, dim: Any = -1, largest: Any = True, sorted: Any = True) -> Any:
    if (
        input.dtype not in FLOATS
        or not input.size
        or dim not in (-1, input.ndim - 1)
        or k.__class__ is not int
        or not 0 < k <= _MAX_K
        or not _MIN_LENGTH_PER_K * k <= input.shape[-1] < 1 << 31
        or not input.flags.c_contiguous
    ):
        return None
    shape, length = (*input.shape[:-1], k), input.shape[-1]
    values, places = np.empty(shape, input.dtype), np.empty(shape, np.int64)
    # Work of 1.4 ns an element, as eight passes.
    _topk_kernels[input.dtype](
        device, input.size // length, 8 * input.nbytes, input, values, places, length, k, bool(largest)
    )
    if input.size < MIN_SIZE:  # few elements are ordered by NumPy's kernel
        return order_ties(input, bool(largest), values, places)
    return values, places


kernels = {"topk": topk}
