"""GRU time steps, native: a BLAS product each, and one pass over its result. In Python a step is sixteen calls.

Arrays have the layout of `torchlite_backends.numpy.gru`, which splits the batch and projects the inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite_backends.numpy import gru

from .native_kernel import make_kernel_per_dtype
from .native_lstm import PRELUDE, common_gemm_address

_SOURCE = (
    PRELUDE
    + r"""
// `sums` are what the inputs add to r, z and n, with their biases, step by step. `bias` is the state's, a number for
// each element of `product`, or none. `kept` are r, z, n and the state's part of n of each step.
struct Steps {
    const void *gemm, *recurrent, *first, *sums, *bias;
    void *kept, *states, *product;
    i64 steps, hidden, columns, reverse;
};
// `n` numbers from place e on of each gate.
template <class T> INLINE void step(const T* x, const T* product, const T* h, T* kept, T* state, i64 size, i64 e,
    int n) {
    typedef Vector<T, W> V;
    const V half(T(0.5));
    const V r = tanh(some(product + e, n) + some(x + e, n)) * half + half;
    const V z = tanh(some(product + size + e, n) + some(x + size + e, n)) * half + half;
    const V s = some(product + 2 * size + e, n), v = tanh(s * r + some(x + 2 * size + e, n));
    put(kept + e, n, r);
    put(kept + size + e, n, z);
    put(kept + 2 * size + e, n, v);
    put(kept + 3 * size + e, n, s);
    put(state + e, n, (some(h + e, n) - v) * z + v);
}
template <class T> static int steps(const Steps& of, i64, i64) {
    const i64 size = of.hidden * of.columns;
    const T* h = (const T*)of.first;
    T* product = (T*)of.product;
    for (i64 k = 0; k < of.steps; k++) {
        const i64 t = of.reverse ? of.steps - 1 - k : k;
        if (of.bias) memcpy(product, of.bias, 3 * size * sizeof(T));
        const T beta = of.bias ? 1 : 0;
        multiplied<T>(of.gemm, 3 * of.hidden, of.columns, of.hidden, (const T*)of.recurrent, h, beta, product);
        const T* x = (const T*)of.sums + t * 3 * size;
        T *kept = (T*)of.kept + t * 4 * size, *state = (T*)of.states + t * size;
        i64 e = 0;
        for (; e + W <= size; e += W) step(x, product, h, kept, state, size, e, W);
        if (e < size) step(x, product, h, kept, state, size, e, int(size - e));
        h = state;
    }
    return 0;
}
}
using namespace cc;
#undef char
ENTRY_PER_DTYPE(steps, Steps)
"""
)
_kernels = make_kernel_per_dtype(_SOURCE, "steps", "QQQQQQQQqqqq")


def _gru_layer(device: Any, *given: Any) -> Any:
    input, h0, w_ih, w_hh, b_ih, b_hh, _ = given
    gemm = common_gemm_address(input, h0, w_ih, w_hh, b_ih, b_hh)
    if gemm is None or not (input.size and w_hh.size):
        return None

    def run_forward_steps(sums, h, recurrent, bias_i, bias_h, kept, states, reverse):
        steps, hidden, columns = states.shape
        sums = np.ascontiguousarray(sums.transpose(1, 0, 2))
        if bias_i is not None:
            sums = sums + bias_i
        bias: Any = 0 if bias_h is None else np.repeat(bias_h, columns, 1)
        product = np.empty((3 * hidden, columns), states.dtype)
        _kernels[states.dtype](
            device, 1, 0, gemm, np.ascontiguousarray(recurrent), np.ascontiguousarray(h), sums, bias, kept, states,
            product, steps, hidden, columns, int(reverse),
        )  # fmt: skip
        return states[0 if reverse else -1]

    return gru.run_layer_forward(run_forward_steps, *given)


kernels = {"_gru_layer": _gru_layer}
