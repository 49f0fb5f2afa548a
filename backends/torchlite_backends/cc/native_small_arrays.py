"""Native layer and RMS norm, gelu and attention for arrays of any size, small ones included.

They replace sequences of NumPy calls at a microsecond each by one call of five. Text generation, one token at a time,
consists of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlite_backends.array.special_coefficients import NORMAL_TANH
from torchlite_backends.kernel_sources.c_preamble import CPP
from torchlite_backends.numpy.attention import fits

from .native_kernel import F32, FLOATS, TYPE_DEFINITIONS, NativeKernel, make_kernel_per_dtype

# Maximum queries per head for which keys are read once for each query, and maximum keys whose scores are stored.
_MAX_QUERIES, _MAX_KEYS = 4, 1 << 12
BOOL = np.dtype(bool)
# gelu is x / (1 + 2^(x P(x^2))), see `torchlite_backends.numpy.activation`: coefficients of P, highest power first.
_POWERS = ", ".join(f"{-2 / math.log(2) * c!r}" for c in NORMAL_TANH)

_SOURCE = (
    TYPE_DEFINITIONS
    + CPP
    + r"""
const int W = 16;
template <class T, int N> INLINE T added_up(Vector<T, N> v) {
    if constexpr (N > 2) return added_up(v.lower() + v.upper());
    else return v[0] + v[1];
}
template <class T> INLINE Vector<T, W> at(const T* p) { return load_cells<W>(p, 0); }

// Numbers that are added up in T; such sums are added up in double.
const i64 RUN = 64 * 2 * W;
// Rows of `columns`: (x - mean) / sqrt(var + eps) * weight + bias, with the means and what they are multiplied by.
// Without memory for the means they count as 0, as in RMS norm.
struct Norms { const void *x, *weight, *bias; void *out, *mean, *rstd; i64 columns; double eps; };
template <class T> static int layer_norm(const Norms& of, i64 begin, i64 end) {
    typedef Vector<T, W> V;
    const i64 n = of.columns;
    const T *weight = (const T*)of.weight, *bias = (const T*)of.bias;
    for (i64 row = begin; row < end; row++) {
        const T* x = (const T*)of.x + row * n;
        T* out = (T*)of.out + row * n;
        double total = 0, square = 0;
        i64 i = 0;
        while (of.mean && i < n) {
            const i64 last = least(n, i + RUN);
            V sums[2] = {V(T(0)), V(T(0))};
            for (; i + 2 * W <= last; i += 2 * W) for (int k = 0; k < 2; k++) sums[k] += at(x + i + k * W);
            total += added_up(sums[0] + sums[1]);
            for (; i < last; i++) total += x[i];
        }
        const T mean = T(total / n);
        for (i = 0; i < n;) {
            const i64 last = least(n, i + RUN);
            V squares[2] = {V(T(0)), V(T(0))};
            for (; i + 2 * W <= last; i += 2 * W) for (int k = 0; k < 2; k++) {
                const V d = at(x + i + k * W) - V(mean);
                squares[k] += d * d;
            }
            square += added_up(squares[0] + squares[1]);
            for (; i < last; i++) square += (x[i] - mean) * (x[i] - mean);
        }
        const T inverse = T(1) / std::sqrt(T(square / n) + T(of.eps));
        if (!(inverse > 0)) return 1;  // the variance overflowed
        for (i = 0; i + W <= n; i += W) {
            V v = (at(x + i) - V(mean)) * V(inverse);
            if (weight) v *= at(weight + i);
            if (bias) v += at(bias + i);
            store_cells(out + i, 0, v);
        }
        for (; i < n; i++) {
            const T v = (x[i] - mean) * inverse * (weight ? weight[i] : 1);
            out[i] = bias ? v + bias[i] : v;
        }
        if (of.mean) ((T*)of.mean)[row] = mean;
        ((T*)of.rstd)[row] = inverse;
    }
    return 0;
}

struct Numbers { const float* x; float* out; i64 n; };
static INLINE Vector<float, W> gelu(Vector<float, W> x) {
    typedef Vector<float, W> V;
    const float powers[] = {POWERS};
    const V square = x * x;
    V p(powers[0]);
    for (int k = 1; k < int(sizeof powers / sizeof *powers); k++) p = p * square + V(powers[k]);
    return x / (exp2(p * x) + V(1.0f));
}
static int gelu_f32(const Numbers& of, i64 begin, i64 end) {
    i64 i = begin;
    for (; i + W <= end; i += W) store_cells(of.out + i, 0, gelu(at(of.x + i)));
    if (i < end) {
        Vector<float, W> v(0.0f);
        memcpy((void*)&v, of.x + i, (end - i) * 4);
        v = gelu(v);
        memcpy(of.out + i, (const void*)&v, (end - i) * 4);
    }
    return 0;
}

// Attention of few queries: an item is a head of a group. `lse` is the log of the sum of exp(scores) of a query. The
// steps between groups, heads and rows; features lie side by side. A mask has a fourth step, between keys: it is null,
// or holds numbers to add, or (`flags`) bytes that are 0 for pairs that take no part.
struct Attention {
    const void *query, *key, *value, *mask; void *out, *lse;
    i64 heads, rows, columns, width, features, causal, flags;
    double scale;
    i64 of_query[3], of_key[3], of_value[3], of_out[3], of_mask[4];
};
template <class T> static T dot(const T* a, const T* b, i64 n) {
    typedef Vector<T, W> V;
    V sums[2] = {V(T(0)), V(T(0))};
    T rest = 0;
    i64 i = 0;
    for (; i + 2 * W <= n; i += 2 * W) for (int k = 0; k < 2; k++) sums[k] += at(a + i + k * W) * at(b + i + k * W);
    for (; i + W <= n; i += W) sums[0] += at(a + i) * at(b + i);
    for (; i < n; i++) rest += a[i] * b[i];
    return added_up(sums[0] + sums[1]) + rest;
}
// Scores become exp(scores - largest); their sum. Where all are minus infinity the weights are zero and the sum is 1.
template <class T> static T weights(T* scores, i64 n, T* largest) {
    typedef Vector<T, W> V;
    T most = scores[0], sum = 0;
    for (i64 j = 1; j < n; j++) most = scores[j] <= most ? most : scores[j];
    if (most == -(T)__builtin_inf()) most = 0;
    for (i64 j = 0; j < n; j += W) {
        V v(T(0));
        const int some = n - j < W ? n - j : W;
        memcpy((void*)&v, scores + j, some * sizeof(T));
        v = exp(v - V(most));
        memcpy(scores + j, (const void*)&v, some * sizeof(T));
        for (int k = 0; k < some; k++) sum += v[k];
    }
    *largest = most;
    return sum == 0 ? 1 : sum;
}
// out = weights . values / sum, of K vectors of features.
template <class T, int K> static INLINE void weighed(const T* weights, const T* values, i64 step, i64 n, T sum,
    T* out) {
    typedef Vector<T, W> V;
    V sums[K];
    for (int k = 0; k < K; k++) sums[k] = V(T(0));
    for (i64 j = 0; j < n; j++, values += step) for (int k = 0; k < K; k++)
        sums[k] += V(weights[j]) * at(values + k * W);
    for (int k = 0; k < K; k++) store_cells(out + k * W, 0, sums[k] / V(sum));
}
template <class T> static void add_mask(const Attention& of, i64 place, T* scores, i64 n) {
    const i64 step = of.of_mask[3];
    if (of.flags) {
        const char* mask = (const char*)of.mask + place;
        for (i64 j = 0; j < n; j++) if (!mask[j * step]) scores[j] = -(T)__builtin_inf();
    } else {
        const T* mask = (const T*)of.mask + place;
        for (i64 j = 0; j < n; j++) scores[j] += mask[j * step];
    }
}
template <class T> static int attention(const Attention& of, i64 begin, i64 end) {
    T scores[KEYS];
    for (i64 item = begin; item < end; item++) {
        const i64 group = item / of.heads, head = item % of.heads;
        const T *keys = (const T*)of.key + group * of.of_key[0] + head * of.of_key[1];
        const T *values = (const T*)of.value + group * of.of_value[0] + head * of.of_value[1];
        for (i64 row = 0; row < of.rows; row++) {
            const T* query = (const T*)of.query + group * of.of_query[0] + head * of.of_query[1] + row * of.of_query[2];
            T* out = (T*)of.out + group * of.of_out[0] + head * of.of_out[1] + row * of.of_out[2];
            const i64 seen = of.causal ? least(of.columns, row + 1) : of.columns;
            for (i64 j = 0; j < seen; j++) scores[j] = dot(query, keys + j * of.of_key[2], of.width) * T(of.scale);
            if (of.mask) add_mask(of, group * of.of_mask[0] + head * of.of_mask[1] + row * of.of_mask[2], scores, seen);
            T largest;
            const T sum = weights(scores, seen, &largest);
            ((T*)of.lse)[item * of.rows + row] = std::log(sum) + largest;
            const i64 step = of.of_value[2];
            i64 i = 0;
            for (; i + 4 * W <= of.features; i += 4 * W) weighed<T, 4>(scores, values + i, step, seen, sum, out + i);
            for (; i + W <= of.features; i += W) weighed<T, 1>(scores, values + i, step, seen, sum, out + i);
            for (; i < of.features; i++) {
                T rest = 0;
                for (i64 j = 0; j < seen; j++) rest += scores[j] * values[j * step + i];
                out[i] = rest / sum;
            }
        }
    }
    return 0;
}
}
using namespace cc;
#undef char
ENTRY_PER_DTYPE(layer_norm, Norms)
ENTRY(gelu_f32, Numbers)
ENTRY_PER_DTYPE(attention, Attention)
""".replace("POWERS", _POWERS).replace("KEYS", str(_MAX_KEYS))
)
_layer_norm_kernels = make_kernel_per_dtype(_SOURCE, "layer_norm", "QQQQQQqd")
_gelu_kernel = NativeKernel(_SOURCE, "gelu_f32", "QQq")
_attention_kernels = make_kernel_per_dtype(_SOURCE, "attention", "QQQQQQqqqqqqqd" + "q" * 16)


def _layer_norm(device: Any, input: Any, weight: Any, bias: Any, n_dims: int, eps: float) -> Any:
    found = _normalize(device, input, weight, bias, n_dims, eps, True)
    return found and (found[0], found[2], found[1])


def _rms_norm(device: Any, input: Any, weight: Any, n_dims: int, eps: float) -> Any:
    found = _normalize(device, input, weight, None, n_dims, eps, False)
    return found and found[:2]


def _normalize(device: Any, input: Any, weight: Any, bias: Any, n_dims: int, eps: float, centred: bool) -> Any:
    """Return normalized rows, what they were multiplied by, and the means; None if the kernel does not serve."""
    dtype, ndim = input.dtype, input.ndim
    if dtype not in FLOATS or not input.size or not input.flags.c_contiguous:
        return None
    for given in (weight, bias):
        if given is not None and (given.dtype != dtype or not given.flags.c_contiguous):
            return None
    shape = input.shape
    columns = shape[-1] if n_dims == 1 else math.prod(shape[ndim - n_dims :])
    small = shape[: ndim - n_dims] + (1,) * n_dims
    out, rstd = np.empty(shape, dtype), np.empty(small, dtype)
    mean: Any = np.empty(small, dtype) if centred else 0
    done = _layer_norm_kernels[dtype](
        device, rstd.size, 2 * input.nbytes, input, 0 if weight is None else weight, 0 if bias is None else bias,
        out, mean, rstd, columns, eps,
    )  # fmt: skip
    return (out, rstd, mean) if done else None


def gelu(device: Any, input: Any, *, approximate: str = "none") -> Any:
    if input.dtype != F32 or approximate != "none" or not input.size or not input.flags.c_contiguous:
        return None
    out = np.empty(input.shape, F32)
    return out if _gelu_kernel(device, input.size, 2 * input.nbytes, input, out, input.size) else None


def _sdpa(device: Any, query: Any, key: Any, value: Any, attn_mask: Any, is_causal: Any, scale: Any) -> Any:
    dtype, shape = query.dtype, query.shape
    if (
        len(shape) != 4
        or shape[2] > _MAX_QUERIES
        or not query.size
        or dtype not in FLOATS
        or key.dtype != dtype
        or value.dtype != dtype
        or key.shape[:2] != shape[:2]
        or value.shape[:2] != shape[:2]
        or not 0 < key.shape[2] <= _MAX_KEYS
        or not value.size
    ):
        return None
    groups, heads, rows, width = shape
    columns, features, size = key.shape[2], value.shape[3], dtype.itemsize
    # In the layout of the queries' heads, which come from a linear layer.
    if query.strides[1] < query.strides[2]:
        out = np.empty((groups, rows, heads, features), dtype).swapaxes(1, 2)
    else:
        out = np.empty((groups, heads, rows, features), dtype)
    steps: list[int] = []
    for x in (query, key, value, out):
        first, second, third, last = x.strides
        if last != size and x.shape[3] > 1 or first % size or second % size or third % size:
            return None
        steps += (first // size, second // size, third // size)
    mask: Any = 0
    is_bool = attn_mask is not None and attn_mask.dtype == BOOL
    if attn_mask is None:
        steps += (0, 0, 0, 0)
    else:
        pairs = (groups, heads, rows, columns)
        if not is_bool and attn_mask.dtype != dtype or not fits(attn_mask, pairs):
            return None
        mask = np.broadcast_to(attn_mask, pairs)
        if any(step % mask.itemsize for step in mask.strides):
            return None
        steps += [step // mask.itemsize for step in mask.strides]
    lse = np.empty((groups, heads, rows, 1), dtype)
    # Whoever waits for memory gains by a second thread from a quarter of the bytes on.
    nbytes = 4 * groups * heads * columns * (width + features) * size
    _attention_kernels[dtype](
        device, groups * heads, nbytes, query, key, value, mask, out, lse,
        heads, rows, columns, width, features, bool(is_causal), is_bool, scale, *steps,
    )  # fmt: skip
    return out, lse


kernels = {"_layer_norm": _layer_norm, "_rms_norm": _rms_norm, "gelu": gelu, "_sdpa": _sdpa}
