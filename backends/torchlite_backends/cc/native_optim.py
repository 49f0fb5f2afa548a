"""Optimizers' steps in one pass over parameters, gradients and states, where NumPy needs fifteen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlite_backends.numpy.optim import _unscale_or_skip

from .device import address
from .native_kernel import FLOATS, TYPE_DEFINITIONS, kernel_per_dtype

# Elements of an item.
_BLOCK = 1 << 14

_SOURCE = (
    TYPE_DEFINITIONS
    + r"""
// Parameters and gradients lie apart, their states behind one another: parameter k has those from starts[k] on.
template <class T> struct Lists { T* const* params; const T* const* grads; const whole* starts; whole count, block; };
template <class T, class Run> static inline void each_run(const Lists<T>& of, whole begin, whole end, Run run) {
    whole at = begin * of.block, k = 0;
    end = least(end * of.block, of.starts[of.count]);
    while (of.starts[k + 1] <= at) k++;
    for (; at < end; k++) {
        const whole stop = least(end, of.starts[k + 1]), inside = at - of.starts[k];
        if (stop > at) run(of.params[k] + inside, of.grads[k] + inside, at, stop - at);
        at = stop > at ? stop : at;
    }
}
struct Adam {
    void* const* params; const void* const* grads; const whole* starts; whole count, block;
    void *mean, *square, *largest;
    double size, floor, decay, shrink, new_mean, keep_square, new_square;
    whole maximize;
};
template <class T, bool LARGEST> static int adam(const Adam& of, whole begin, whole end) {
    const T size = of.size, floor = of.floor, decay = of.decay, shrink = of.shrink, new_mean = of.new_mean;
    const T keep_square = of.keep_square, new_square = of.new_square, sign = of.maximize ? -1 : 1;
    each_run(*(const Lists<T>*)&of, begin, end, [&](T* __restrict p, const T* __restrict grads, whole at, whole n) {
        T *__restrict mean = (T*)of.mean + at, *__restrict square = (T*)of.square + at;
        T* __restrict largest = LARGEST ? (T*)of.largest + at : nullptr;
        for (whole i = 0; i < n; i++) {
            T g = sign * grads[i];
            if (decay != 0) g += p[i] * decay;
            const T m = mean[i] + (g - mean[i]) * new_mean;
            T v = square[i] * keep_square + g * g * new_square;
            mean[i] = m;
            square[i] = v;
            if (LARGEST) {
                v = v > largest[i] || v != v ? v : largest[i];
                largest[i] = v;
            }
            p[i] = p[i] * shrink - m / (std::sqrt(v) + floor) * size;
        }
    });
    return 0;
}
struct SGD {
    void* const* params; const void* const* grads; const whole* starts; whole count, block;
    void* buffer;
    double rate, decay, keep, fresh;
    whole maximize, first, nesterov;
};
template <class T> static int sgd(const SGD& of, whole begin, whole end) {
    const T rate = of.rate, decay = of.decay, keep = of.first ? 0 : of.keep, sign = of.maximize ? -1 : 1;
    const T fresh = of.first ? 1 : of.fresh, again = of.keep;
    each_run(*(const Lists<T>*)&of, begin, end, [&](T* __restrict p, const T* __restrict grads, whole at, whole n) {
        if (!of.buffer) {
            for (whole i = 0; i < n; i++) {
                T g = sign * grads[i];
                if (decay != 0) g += p[i] * decay;
                p[i] -= g * rate;
            }
            return;
        }
        T* __restrict buffer = (T*)of.buffer + at;
        for (whole i = 0; i < n; i++) {
            T g = sign * grads[i];
            if (decay != 0) g += p[i] * decay;
            const T b = of.first ? g : buffer[i] * keep + g * fresh;
            buffer[i] = b;
            p[i] -= (of.nesterov ? b * again + g : b) * rate;
        }
    });
    return 0;
}
static int adam_f32(const Adam& of, whole b, whole e) {
    return of.largest ? adam<float, true>(of, b, e) : adam<float, false>(of, b, e);
}
static int adam_f64(const Adam& of, whole b, whole e) {
    return of.largest ? adam<double, true>(of, b, e) : adam<double, false>(of, b, e);
}
static int sgd_f32(const SGD& of, whole b, whole e) { return sgd<float>(of, b, e); }
static int sgd_f64(const SGD& of, whole b, whole e) { return sgd<double>(of, b, e); }
ENTRY(adam_f32, Adam)
ENTRY(adam_f64, Adam)
ENTRY(sgd_f32, SGD)
ENTRY(sgd_f64, SGD)
"""
)
_adam = kernel_per_dtype(_SOURCE, "adam", "QQQqqQQQdddddddq")
_sgd = kernel_per_dtype(_SOURCE, "sgd", "QQQqqQddddqqq")


def _pointer_arrays(params: Any, grads: Any, states: tuple) -> tuple | None:
    """Addresses of parameters and gradients, where each begins among the states, how many there are, and all elements;
    None where something does not lie as it should.
    """
    dtype = params[0].dtype
    if dtype not in FLOATS:
        return None
    for param, grad in zip(params, grads, strict=True):
        if not (param.flags.c_contiguous and grad.flags.c_contiguous) or param.shape != grad.shape:
            return None
        if param.dtype != dtype or grad.dtype != dtype:
            return None
    starts = np.zeros(len(params) + 1, np.int64)
    np.cumsum([param.size for param in params], out=starts[1:])
    size = int(starts[-1])
    if not size or any(s is not None and (s.size != size or s.dtype != dtype) for s in states):
        return None
    places = [np.array([address(a) for a in arrays], np.uint64) for arrays in (params, grads)]
    return *places, starts, len(params), size


def _fused_adam(device: Any, params: Any, grads: Any, exp_avg: Any, exp_avg_sq: Any, max_exp_avg_sq: Any, cache: Any,
                step: Any, lr: Any, beta1: Any, beta2: Any, eps: Any, weight_decay: Any, decoupled: Any, maximize: Any,
                grad_scale: Any, found_inf: Any) -> Any:  # fmt: skip
    found = _pointer_arrays(params, grads, (exp_avg, exp_avg_sq, max_exp_avg_sq))
    if found is None:
        return None
    kernel = _adam[params[0].dtype]
    device.native(_SOURCE, kernel.name)  # before anything is changed
    if _unscale_or_skip(grads, grad_scale, found_inf):
        return True
    *lists, count, size = found
    correction = math.sqrt(1 - beta2**step)
    rate, shrink = lr * correction / (1 - beta1**step), 1 - lr * weight_decay if decoupled else 1.0
    largest = 0 if max_exp_avg_sq is None else max_exp_avg_sq
    kernel(
        device, -(-size // _BLOCK), size * exp_avg.itemsize * 7, *lists, count, _BLOCK, exp_avg, exp_avg_sq, largest,
        rate, eps * correction, 0.0 if decoupled else weight_decay, shrink, 1 - beta1, beta2, 1 - beta2, bool(maximize),
    )  # fmt: skip
    return True


def _fused_sgd(device: Any, params: Any, grads: Any, momentum_buffer: Any, cache: Any, first: Any, lr: Any,
               momentum: Any, dampening: Any, weight_decay: Any, nesterov: Any, maximize: Any, grad_scale: Any,
               found_inf: Any) -> Any:  # fmt: skip
    found = _pointer_arrays(params, grads, (momentum_buffer,))
    if found is None:
        return None
    kernel = _sgd[params[0].dtype]
    device.native(_SOURCE, kernel.name)  # before anything is changed
    if _unscale_or_skip(grads, grad_scale, found_inf):
        return True
    *lists, count, size = found
    kernel(
        device, -(-size // _BLOCK), size * params[0].itemsize * 5, *lists, count, _BLOCK,
        0 if momentum_buffer is None else momentum_buffer, lr, weight_decay, momentum, 1 - dampening,
        bool(maximize), bool(first), bool(nesterov),
    )  # fmt: skip
    return True


kernels = {"_fused_adam": _fused_adam, "_fused_sgd": _fused_sgd}
