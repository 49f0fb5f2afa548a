"""LSTM time steps, native: a BLAS product each, and one pass over its result.

In Python a step is nine calls, between which threads wait for each other's lock: an LSTM of 64 steps with 256 units and
32 sequences took 1.3 of PyTorch's time so. Arrays have the layout of `torchlite_backends.numpy.lstm`, which splits the
batch and projects inputs and gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite_backends.kernel_sources.c_preamble import CPP
from torchlite_backends.numpy import lstm
from torchlite_backends.numpy.blas import get_gemm_address
from torchlite_backends.numpy.deterministic_gemm import deterministic_matmul

from .native_gemm import MICRO_KERNEL
from .native_kernel import FLOATS, TYPE_DEFINITIONS, VECTOR_TEMPLATES, make_kernel_per_dtype
from .native_parallel_gemm import GEMM_TEMPLATE

# Products of few columns, and vectors with a rest.
PRELUDE = (
    TYPE_DEFINITIONS
    + VECTOR_TEMPLATES.replace("Vector", "Plain").replace("added_up", "plain_sum")
    + GEMM_TEMPLATE
    + "#if defined(__AVX512F__)\n#include <immintrin.h>\n#endif\nnamespace gemm {\n"
    + MICRO_KERNEL
    + "}\n"
    + CPP
    + r"""
const int W = 16;
// The last `n` numbers of a vector that ends at `end`, behind zeros.
template <class T> INLINE typename ::Plain<T>::V last_of(const T* end, i64 n) {
    typedef std::conditional_t<sizeof(T) == 4, int32_t, int64_t> Word;
    typedef Word Words __attribute__((vector_size(64)));
    enum { width = ::Plain<T>::W };
    static const Word masks[32] = {
        0, 0, 0, 0, 0, 0, 0, 0, width == 8 ? -1 : 0, width == 8 ? -1 : 0, width == 8 ? -1 : 0, width == 8 ? -1 : 0,
        width == 8 ? -1 : 0, width == 8 ? -1 : 0, width == 8 ? -1 : 0, width == 8 ? -1 : 0, -1, -1, -1, -1, -1, -1, -1,
        -1, -1, -1, -1, -1, -1, -1, -1, -1,
    };
    Words mask;
    memcpy(&mask, masks + n, sizeof mask);
    return (typename ::Plain<T>::V)((Words)::Plain<T>::at(end - width) & mask);
}
// c = a @ b + beta * c for one column: with BLAS an LSTM of 512 units takes 1.05 to 1.9 of the time.
template <class T, int R> INLINE void rows_times_vector(i64 k, const T* a, const T* b, T beta, T* c) {
    typedef typename ::Plain<T>::V X;
    enum { width = ::Plain<T>::W };
    X sums[R] = {}, more[R] = {};
    i64 i = 0;
    for (; i + 2 * width <= k; i += 2 * width) {
        const X first = ::Plain<T>::at(b + i), second = ::Plain<T>::at(b + i + width);
        #pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
            __builtin_prefetch(a + (r + R) * k + i);
            __builtin_prefetch(a + (r + R) * k + i + width);
            sums[r] += first * ::Plain<T>::at(a + r * k + i);
            more[r] += second * ::Plain<T>::at(a + r * k + i + width);
        }
    }
    if (i + width <= k) {
        const X some = ::Plain<T>::at(b + i);
        #pragma GCC unroll 4
        for (int r = 0; r < R; r++) sums[r] += some * ::Plain<T>::at(a + r * k + i);
        i += width;
    }
    if (i < k && k > width) {
        const X some = last_of<T>(b + k, k - i);
        #pragma GCC unroll 4
        for (int r = 0; r < R; r++) more[r] += some * last_of<T>(a + r * k + k, k - i);
        i = k;
    }
    for (int r = 0; r < R; r++) {
        T rest = 0;
        for (i64 j = i; j < k; j++) rest += b[j] * a[r * k + j];
        rest += ::plain_sum<T>(sums[r] + more[r]);
        c[r] = beta != 0 ? beta * c[r] + rest : rest;
    }
}
template <class T> static inline void multiplied_vector(i64 m, i64 k, const T* a, const T* b, T beta, T* c) {
    i64 r = 0;
    for (; r + 4 <= m; r += 4) rows_times_vector<T, 4>(k, a + r * k, b, beta, c + r);
    for (; r < m; r++) rows_times_vector<T, 1>(k, a + r * k, b, beta, c + r);
}
// c = a @ b + beta * c: few columns, for which BLAS would copy all of `a` each time (of 256 units, 64 steps and 32
// sequences a training step takes 0.88 of the time with BLAS).
template <class T> static inline void multiplied(const void* blas, i64 m, i64 n, i64 k, const T* a, const T* b,
    T beta, T* c) {
    if (n == 1) {
        multiplied_vector(m, k, a, b, beta, c);
        return;
    }
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) if (n % W == 0) {
        gemm::multiply({a, b, nullptr, c, m, n, k, k, 1, n, 1, n}, beta != 0);
        return;
    }
#endif
    product<T>(blas, false, false, m, n, k, a, k, b, n, beta, c, n);
}
template <class T> INLINE Vector<T, W> some(const T* p, int n) {
    if (n == W) return load_cells<W>(p, 0);
    Vector<T, W> v(T(0));
    memcpy((void*)&v, p, n * sizeof(T));
    return v;
}
template <class T> INLINE void put(T* p, int n, Vector<T, W> v) {
    if (n == W) store_cells(p, 0, v);
    else memcpy(p, (const void*)&v, n * sizeof(T));
}
"""
)
_SOURCE = (
    PRELUDE
    + r"""
// Gates o, i, f, g and the cell before lie behind one another; `last` is the cell behind the last step. Of `sums`, what
// the inputs add to the gates, the steps lie side by side.
struct Steps {
    const void *gemm, *recurrent, *first, *sums;
    void *gates, *cells, *states, *last;
    i64 steps, hidden, columns;
};
// `size` numbers from place e on of each gate: all, or the last few.
template <class T> INLINE void step(T* gates, T* squashed, T* state, T* next, i64 size, i64 e, int n) {
    typedef Vector<T, W> V;
    const V half(T(0.5));
    const V o = tanh(some(gates + e, n)) * half + half, i = tanh(some(gates + size + e, n)) * half + half;
    const V f = tanh(some(gates + 2 * size + e, n)) * half + half, g = tanh(some(gates + 3 * size + e, n));
    const V cell = f * some(gates + 4 * size + e, n) + i * g, small = tanh(cell);
    put(gates + e, n, o);
    put(gates + size + e, n, i);
    put(gates + 2 * size + e, n, f);
    put(gates + 3 * size + e, n, g);
    put(next + e, n, cell);
    put(squashed + e, n, small);
    put(state + e, n, o * small);
}
template <class T> static int steps(const Steps& of, i64, i64) {
    const i64 size = of.hidden * of.columns, n = of.columns;
    const T* state = (const T*)of.first;
    for (i64 t = 0; t < of.steps; t++) {
        T *gates = (T*)of.gates + t * 5 * size, *squashed = (T*)of.cells + t * size, *now = (T*)of.states + t * size;
        const T* sums = (const T*)of.sums + t * n;
        for (i64 row = 0; row < 4 * of.hidden; row++)
            memcpy(gates + row * n, sums + row * of.steps * n, n * sizeof(T));
        T* next = t + 1 < of.steps ? gates + 9 * size : (T*)of.last;
        multiplied<T>(of.gemm, 4 * of.hidden, n, of.hidden, (const T*)of.recurrent, state, 1, gates);
        i64 e = 0;
        for (; e + W <= size; e += W) step(gates, squashed, now, next, size, e, W);
        if (e < size) step(gates, squashed, now, next, size, e, int(size - e));
        state = now;
    }
    return 0;
}
// The gradients of the sums, in the order i, f, g, o: `out` has the steps side by side in rows `out_row` apart, `made`
// some steps one behind the other.
struct Back {
    const void *gemm, *back, *grads, *gates, *cells;
    void *dh, *dc, *made, *out;
    i64 steps, hidden, columns, together, out_row;
};
template <class T> INLINE void step_back(const T* grad, const T* gates, const T* squashed, T* dh, T* dc, T* sums,
    i64 size, i64 e, int n) {
    typedef Vector<T, W> V;
    const V one(T(1));
    const V o = some(gates + e, n), i = some(gates + size + e, n), f = some(gates + 2 * size + e, n);
    const V g = some(gates + 3 * size + e, n), before = some(gates + 4 * size + e, n), s = some(squashed + e, n);
    V of_state = some(dh + e, n);
    if (grad) of_state += some(grad + e, n);
    const V of_cell = some(dc + e, n) + of_state * ((one - s * s) * o);
    put(sums + e, n, of_cell * ((i - i * i) * g));
    put(sums + size + e, n, of_cell * ((f - f * f) * before));
    put(sums + 2 * size + e, n, of_cell * ((one - g * g) * i));
    put(sums + 3 * size + e, n, of_state * ((o - o * o) * s));
    put(dc + e, n, of_cell * f);
}
template <class T> static int back(const Back& of, i64, i64) {
    const i64 size = of.hidden * of.columns, n = of.columns;
    T *dh = (T*)of.dh, *dc = (T*)of.dc;
    for (i64 t = of.steps - 1; t >= 0; t--) {
        const T *gates = (const T*)of.gates + t * 5 * size, *squashed = (const T*)of.cells + t * size;
        const T* grad = of.grads ? (const T*)of.grads + t * size : nullptr;
        const i64 place = t % of.together, count = least(of.together, of.steps - t);
        T* sums = (T*)of.made + place * 4 * size;
        i64 e = 0;
        for (; e + W <= size; e += W) step_back(grad, gates, squashed, dh, dc, sums, size, e, W);
        if (e < size) step_back(grad, gates, squashed, dh, dc, sums, size, e, int(size - e));
        multiplied<T>(of.gemm, of.hidden, n, 4 * of.hidden, (const T*)of.back, sums, 0, dh);
        if (place) continue;
        for (i64 row = 0; row < 4 * of.hidden; row++) for (i64 k = 0; k < count; k++)
            memcpy((T*)of.out + row * of.out_row + (t + k) * n, sums + k * 4 * size + row * n, n * sizeof(T));
    }
    return 0;
}
}
using namespace cc;
#undef char
ENTRY_PER_DTYPE(steps, Steps)
ENTRY_PER_DTYPE(back, Back)
"""
)
_forward_kernels = make_kernel_per_dtype(_SOURCE, "steps", "QQQQQQQQqqq")
_backward_kernels = make_kernel_per_dtype(_SOURCE, "back", "QQQQQQQQQqqqqq")
# Steps of the backward pass whose gradients are transposed at a time: those that stay in cache.
_TRANSPOSED_STEPS = 8


def common_gemm_address(*arrays: Any) -> int | None:
    """Return the address of BLAS's GEMM for the common dtype of these arrays, or None."""
    dtype = arrays[0].dtype
    if dtype not in FLOATS or any(a is not None and a.dtype != dtype for a in arrays):
        return None
    return get_gemm_address(dtype)


def forward_steps(device: Any, gemm: int) -> Any:
    """Return the function in place of NumPy's that runs a part of a layer. gemm: the address of BLAS's product."""

    def run_forward_steps(rows, h, c, w_ih, recurrent, gates, cells, states, together):
        steps, hidden, columns = states.shape
        last = np.empty((hidden, columns), states.dtype)
        gates[0, 4 * hidden :] = c
        for start in range(0, steps, together):
            stop = min(start + together, steps)
            sums = deterministic_matmul(w_ih, rows[start * columns : stop * columns].T)
            behind = last if stop == steps else gates[stop, 4 * hidden :]
            _forward_kernels[states.dtype](
                device, 1, 0, gemm, recurrent, h, sums, gates[start:stop], cells[start:stop], states[start:stop],
                behind, stop - start, hidden, columns,
            )  # fmt: skip
            h = states[stop - 1]
        return h, last

    return run_forward_steps


def bind_forward_steps(device: Any, *arrays: Any) -> Any:
    """Return `forward_steps` for arrays of these dtypes, None if NumPy is to run them. NotBuiltError if not built."""
    gemm = common_gemm_address(*arrays)
    if gemm is None:
        return None
    kernel = _forward_kernels[arrays[0].dtype]
    device.native(kernel.text, kernel.name)
    return forward_steps(device, gemm)


def _lstm_layer(device: Any, *given: Any) -> Any:
    *arrays, _ = given
    gemm = common_gemm_address(*arrays)
    if gemm is None or not (arrays[0].size and arrays[4].size):
        return None
    return lstm.run_layer_forward(forward_steps(device, gemm), *given)


def _lstm_layer_backward(device: Any, *given: Any) -> Any:
    grad_output, grad_h, grad_c, *arrays, _, _ = given
    gemm = common_gemm_address(*arrays, grad_output, grad_h, grad_c)
    if gemm is None or not (arrays[0].size and arrays[4].size):
        return None

    def run_backward_steps(grad_output, dh, dc, gates, cells, back, sums):
        steps, hidden, columns = cells.shape
        made = np.empty((min(_TRANSPOSED_STEPS, steps), 4 * hidden, columns), dh.dtype)
        grads = 0 if grad_output is None else np.ascontiguousarray(grad_output.transpose(0, 2, 1))
        _backward_kernels[dh.dtype](
            device, 1, 0, gemm, back, grads, gates, cells, dh, dc, made, sums,
            steps, hidden, columns, _TRANSPOSED_STEPS, sums.strides[0] // sums.itemsize,
        )  # fmt: skip
        return dh, dc

    return lstm.run_layer_backward(run_backward_steps, *given)


kernels = {"_lstm_layer": _lstm_layer, "_lstm_layer_backward": _lstm_layer_backward}
