"""Native batch norm and clamp, forward and backward, for float32 on the CPU.

A channel has some ten thousand elements in most layers. Each thread therefore processes complete channels in one
launch: sums, squares and results are passes over data in a core's own cache.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .native_kernel import F32, TYPE_DEFINITIONS, NativeKernel

# Minimum elements per channel; other kernels are faster below.
_MIN_SPATIAL = 4
# Bytes of plain passes that a byte is worth: short rows and sums take their time.
_COST_PER_BYTE = 16

_SOURCE = (
    TYPE_DEFINITIONS
    + r"""
enum { W = 16 };
typedef float V __attribute__((vector_size(4 * W), aligned(4), may_alias));
static inline V at(const float* x) { return *(const V*)x; }
// A sum: W lanes of four vectors in single precision, which are added up in double precision every few thousand places.
struct Total {
    V sums[4] = {};
    float rest = 0;
    double all = 0;
    double value() {
        const V sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        float lanes[W];
        memcpy(lanes, &sum, sizeof sum);
        for (int width = W / 2; width; width /= 2) for (int k = 0; k < width; k++) lanes[k] += lanes[k + width];
        all += (double)lanes[0] + rest;
        for (V& part : sums) part = V{};
        rest = 0;
        return all;
    }
};
enum { MANY = 1 << 14 };
// Calls many(i, k) for each W of n places, k in 0 ... 3 in turns, and one(i) for those that are left.
template <class Many, class One> static inline void along(i64 n, Many many, One one) {
    i64 i = 0;
    for (; i + 4 * W <= n; i += 4 * W) for (int k = 0; k < 4; k++) many(i + k * W, k);
    for (int k = 0; i + W <= n; i += W, k++) many(i, k);
    for (; i < n; i++) one(i);
}
// out[i] = f(operands[i]) for n places, W of them at once. Stores lie within lines of cache, which takes half the time
// of stores across them: the first and the last few places are written twice.
template <class F, class... X> static inline void each(i64 n, float* out, F f, const X*... x) {
    if (n < W) {
        const auto few = [&](const float* from) {
            V v{};
            for (i64 i = 0; i < n; i++) v[i] = from[i];
            return v;
        };
        const V v = f(few(x)...);
        for (i64 i = 0; i < n; i++) out[i] = v[i];
        return;
    }
    *(V*)out = f(at(x)...);
    i64 i = W - ((uintptr_t)out / 4) % W;
    for (; i + W <= n; i += W) *(V*)(out + i) = f(at(x + i)...);
    if (i < n) *(V*)(out + n - W) = f(at(x + n - W)...);
}
static inline V limited(V v, V least, V most) {
    v = v < least ? least : v;  // NaN stays
    return v > most ? most : v;
}

struct Train { const float *x, *weight, *bias; float *out, *mean, *var; i64 samples, channels, length; double eps; };
static int norm_train(const Train& of, i64 begin, i64 end) {
    const i64 n = of.length, step = of.channels * n;
    for (i64 c = begin; c < end; c++) {
        const float* x = of.x + c * n;
        Total sum, squares;
        for (i64 s = 0, held = 0; s < of.samples; s++) for (i64 from = 0; from < n; from += MANY) {
            const float* row = x + s * step + from;
            const i64 some = least(MANY, n - from);
            if ((held += some) > MANY) held = (sum.value(), some);
            along(some, [&](i64 i, int k) { sum.sums[k] += at(row + i); }, [&](i64 i) { sum.rest += row[i]; });
        }
        const float mean = (float)(sum.value() / (of.samples * n));
        for (i64 s = 0, held = 0; s < of.samples; s++) for (i64 from = 0; from < n; from += MANY) {
            const float* row = x + s * step + from;
            const i64 some = least(MANY, n - from);
            if ((held += some) > MANY) held = (squares.value(), some);
            along(some, [&](i64 i, int k) { const V d = at(row + i) - mean; squares.sums[k] += d * d; },
                  [&](i64 i) { const float d = row[i] - mean; squares.rest += d * d; });
        }
        const float var = (float)(squares.value() / (of.samples * n));
        if (!(var <= __FLT_MAX__)) return 1;
        const float scale = (of.weight ? of.weight[c] : 1.0f) / sqrtf(var + (float)of.eps);
        const float shift = (of.bias ? of.bias[c] : 0.0f) - mean * scale;
        for (i64 s = 0; s < of.samples; s++) {
            const float* row = x + s * step;
            each(n, of.out + c * n + s * step, [=](V v) { return v * scale + shift; }, row);
        }
        of.mean[c] = mean;
        of.var[c] = var;
    }
    return 0;
}

struct Back {
    const float *grad, *x, *weight, *mean, *var;
    float *out, *of_weight, *of_bias;
    i64 samples, channels, length;
    double eps;
};
static int norm_backward(const Back& of, i64 begin, i64 end) {
    const i64 n = of.length, step = of.channels * n;
    for (i64 c = begin; c < end; c++) {
        const float mean = of.mean[c], rstd = 1.0f / sqrtf(of.var[c] + (float)of.eps);
        if (!(rstd > 0)) return 1;  // the variance overflowed
        Total totals, products;
        for (i64 s = 0, held = 0; s < of.samples; s++) for (i64 from = 0; from < n; from += MANY) {
            const float *g = of.grad + c * n + s * step + from, *x = of.x + c * n + s * step + from;
            const i64 some = least(MANY, n - from);
            if ((held += some) > MANY) held = (totals.value(), products.value(), some);
            along(some, [&](i64 i, int k) {
                const V grad = at(g + i);
                totals.sums[k] += grad;
                products.sums[k] += grad * (at(x + i) - mean);
            }, [&](i64 i) { totals.rest += g[i]; products.rest += g[i] * (x[i] - mean); });
        }
        const double total = totals.value(), product = products.value() * rstd;
        of.of_weight[c] = (float)product;
        of.of_bias[c] = (float)total;
        if (!of.out) continue;
        // (g - mean(g) - xhat mean(g xhat)) w / std, as a line in g and x.
        const i64 count = of.samples * n;
        const float of_grad = rstd * (of.weight ? of.weight[c] : 1.0f);
        const float of_x = -of_grad * rstd * (float)(product / count);
        const float constant = -of_grad * (float)(total / count) - of_x * mean;
        for (i64 s = 0; s < of.samples; s++) {
            const float *g = of.grad + c * n + s * step, *x = of.x + c * n + s * step;
            each(n, of.out + c * n + s * step, [=](V g, V x) { return g * of_grad + (x * of_x + constant); }, g, x);
        }
    }
    return 0;
}

struct Eval {
    const float *x, *weight, *bias, *mean, *var;
    float* out;
    i64 channels, length;
    double eps, least, most;
};
static int norm_eval(const Eval& of, i64 begin, i64 end) {
    const i64 n = of.length;
    const V low = (float)of.least + V{}, high = (float)of.most + V{};
    for (i64 plane = begin; plane < end; plane++) {
        const i64 c = plane % of.channels;
        const float scale = (of.weight ? of.weight[c] : 1.0f) / sqrtf(of.var[c] + (float)of.eps);
        const float shift = (of.bias ? of.bias[c] : 0.0f) - of.mean[c] * scale;
        const auto line = [=](V v) { return limited(v * scale + shift, low, high); };
        each(n, of.out + plane * n, line, of.x + plane * n);
    }
    return 0;
}

// Pieces of PIECE elements are items.
enum { PIECE = 4096 };
struct Limits { const float *x, *grad; float* out; i64 count; double least, most; };
template <class F> static int over_pieces(const Limits& of, i64 begin, i64 end, F f) {
    const i64 first = begin * PIECE, count = least(of.count, end * PIECE) - first;
    const V low = (float)of.least + V{}, high = (float)of.most + V{};
    f(count, of.x + first, of.grad + first, of.out + first, low, high);
    return 0;
}
static int limit(const Limits& of, i64 begin, i64 end) {
    return over_pieces(of, begin, end, [](i64 n, const float* x, const float*, float* out, V low, V high) {
        each(n, out, [=](V v) { return limited(v, low, high); }, x);
    });
}
static int limit_backward(const Limits& of, i64 begin, i64 end) {
    return over_pieces(of, begin, end, [](i64 n, const float* x, const float* grad, float* out, V low, V high) {
        each(n, out, [=](V v, V g) { return v <= low | v >= high ? V{} : g; }, x, grad);
    });
}
// Zero where the result was zero or less; the gradient where it was NaN.
static int relu_backward(const Limits& of, i64 begin, i64 end) {
    return over_pieces(of, begin, end, [](i64 n, const float* x, const float* grad, float* out, V, V) {
        each(n, out, [](V v, V g) { return v <= V{} ? V{} : g; }, x, grad);
    });
}
ENTRY(norm_train, Train)
ENTRY(norm_backward, Back)
ENTRY(norm_eval, Eval)
ENTRY(limit, Limits)
ENTRY(limit_backward, Limits)
ENTRY(relu_backward, Limits)
"""
)
_train = NativeKernel(_SOURCE, "norm_train", "QQQQQQqqqd")
_backward = NativeKernel(_SOURCE, "norm_backward", "QQQQQQQQqqqd")
_eval = NativeKernel(_SOURCE, "norm_eval", "QQQQQQqqddd")
_limit = NativeKernel(_SOURCE, "limit", "QQQqdd")
_limit_backward = NativeKernel(_SOURCE, "limit_backward", "QQQqdd")
_relu_backward = NativeKernel(_SOURCE, "relu_backward", "QQQqdd")
_CHUNK = 4096


def _is_float32(*arrays: Any) -> bool:
    return all(a is None or a.dtype == F32 for a in arrays)


def _split_batch_channel_spatial(x: np.ndarray) -> tuple[int, int, int] | None:
    """Return samples, channels and elements per channel; None for shapes that other kernels do faster."""
    length = math.prod(x.shape[2:])
    return (x.shape[0], x.shape[1], length) if length >= _MIN_SPATIAL and x.size and x.flags.c_contiguous else None


def _as_contiguous_or_null(*arrays: Any) -> list:
    """Return contiguous arrays, 0 for those that are absent."""
    return [0 if a is None else np.ascontiguousarray(a) for a in arrays]


def batch_norm_train(device: Any, input: Any, weight: Any, bias: Any, eps: float) -> Any:
    shape = _split_batch_channel_spatial(input)
    if shape is None or not _is_float32(input, weight, bias):
        return None
    out, mean, var = np.empty(input.shape, F32), np.empty(shape[1], F32), np.empty(shape[1], F32)
    done = _train(
        device,
        shape[1],
        _COST_PER_BYTE * input.nbytes,
        input,
        *_as_contiguous_or_null(weight, bias),
        out,
        mean,
        var,
        *shape,
        eps,
    )
    return (out, mean, var) if done else None


def batch_norm_backward(
    device: Any, grad: Any, input: Any, weight: Any, mean: Any, var: Any, eps: float, needs: tuple
) -> Any:
    shape = _split_batch_channel_spatial(input)
    if shape is None or not _is_float32(grad, input, weight, mean, var):
        return None
    out = np.empty(input.shape, F32) if needs[0] else None
    sums = np.empty((2, shape[1]), F32)
    done = _backward(
        device, shape[1], _COST_PER_BYTE * input.nbytes, *_as_contiguous_or_null(grad, input, weight, mean, var),
        0 if out is None else out,
        sums[0], sums[1], *shape, eps,
    )  # fmt: skip
    return (out, sums[0] if needs[1] else None, sums[1] if needs[2] else None) if done else None


def batch_norm_eval(
    device: Any, input: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: float, least: float, most: float
) -> Any:
    shape = _split_batch_channel_spatial(input)
    if shape is None or not _is_float32(input, weight, bias, mean, var):
        return None
    out = np.empty(input.shape, F32)
    done = _eval(
        device, shape[0] * shape[1], _COST_PER_BYTE * input.nbytes, input,
        *_as_contiguous_or_null(weight, bias, mean, var), out, *shape[1:],
        eps, least, most,
    )  # fmt: skip
    return out if done else None


def _run_chunked(kernel: NativeKernel, device: Any, x: Any, grad: Any, least: float, most: float) -> Any:
    if not _is_float32(x, grad) or not x.size or not x.flags.c_contiguous or grad is not None and grad.shape != x.shape:
        return None
    grad = 0 if grad is None else np.ascontiguousarray(grad)
    out = np.empty(x.shape, F32)
    done = kernel(device, -(-x.size // _CHUNK), 4 * x.nbytes, x, grad, out, x.size, float(least), float(most))
    return out if done else None


def hardtanh(device: Any, input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    ordered = min_val <= max_val  # and no NaN, which makes every result NaN
    return _run_chunked(_limit, device, input, None, min_val, max_val) if ordered else None


def hardtanh_backward(device: Any, grad: Any, input: Any, min_val: float, max_val: float) -> Any:
    return _run_chunked(_limit_backward, device, input, grad, min_val, max_val)


def relu_backward(device: Any, grad: Any, out: Any) -> Any:
    return _run_chunked(_relu_backward, device, out, grad, 0, 0)


kernels = {
    "_batch_norm_train": batch_norm_train, "_batch_norm_backward": batch_norm_backward,
    "_batch_norm_eval": batch_norm_eval, "hardtanh": hardtanh, "_hardtanh_backward": hardtanh_backward,
    "_relu_backward": relu_backward,
}  # fmt: skip
