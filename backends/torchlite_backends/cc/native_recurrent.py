"""Recurrent layers of files, native: all steps of a direction in one call (`torchlite_backends.numpy.recurrent`).

A direction, and a part of the batch, is the item of a thread. Inside, a step's batch is the last dimension where the
weights are floating point: gates are (G * H, n), as in `native_lstm`. States that are rounded to levels keep their
rows; a step's product with many levels is shared by threads, which the kernel starts itself.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlite._settings.thread_count import get_threads
from torchlite_backends.numpy.blas import get_gemm_address
from torchlite_backends.numpy.cache_blocking import can_share_work
from torchlite_backends.numpy.recurrent import bind_in_numpy

from .integer_gemm_source import BASE, PRODUCT, WIDE
from .native_gemm import FORCE_THREADS
from .native_integer_gemm import IntegerProducts, _choose_cells, _shift_zero
from .native_kernel import F32, FLOATS, TYPE_DEFINITIONS, NativeKernel, make_kernel_per_dtype
from .native_lstm import PRELUDE

_LEVELS = (
    "\n#if defined(__x86_64__)\n#include <immintrin.h>\n#endif\nnamespace levels {\n"
    + BASE
    + PRODUCT
    + r"""
}
static int level_product(const levels::Product& of, i64 begin, i64 end) { return levels::product(of, begin, end); }
ENTRY(level_product, levels::Product)
"""
)
_SOURCE = (
    PRELUDE.replace(TYPE_DEFINITIONS, TYPE_DEFINITIONS + _LEVELS, 1)
    + r"""
struct Function { i64 kind; double a, b; };
// `sums` (T, N, D * G * H) and `output` (T, D, N, H) are row-major. `state` (S, D, N, H) is the first, then the last.
// `weight` is (D, G * H, H), or `packed` (see `add_product`), `bias` (D, G * H), `peepholes` (D, 3 * H). `scratch` has
// `room` numbers for each item.
struct Layer {
    const void *gemm, *sums, *weight, *bias, *peepholes;
    const i64* lengths;
    const Function* functions;
    void *state, *output, *scratch;
    i64 room, steps, ways, batch, hidden, parts, backward, cell, option, usual, clips, packed;
    double clip;
};
enum { RNN, GRU, LSTM };
template <class T> using V = Vector<T, W>;

// t / (t + 2), where t = exp(2 |x|) - 1 = 2**n (exp(f) - 1) + (2**n - 1): half the time of a library's.
INLINE V<float> squashed(V<float> x) {
    typedef V<float> X;
    const X most(10.0f), big(12582912.0f), size = fabs(x), a = choose(size > most, most, size) * X(2.0f);
    const X n = (a * X(1.44269504f) + big) - big;
    const X f = (a - n * X(0.693359375f)) + n * X(2.12194440e-4f);
    X q = f * X(1.0f / 5040) + X(1.0f / 720);
    q = q * f + X(1.0f / 120);
    q = q * f + X(1.0f / 24);
    q = q * f + X(1.0f / 6);
    q = q * f + X(0.5f);
    q = f + f * f * q;
    typedef Vector<int, W> Words;
    const X scale = bits_as<X>((converted<W, int>(n) + Words(127)) << Words(23));
    const X t = scale * q + (scale - X(1.0f));
    return copysign(t / (t + X(2.0f)), x);
}
INLINE V<double> squashed(V<double> x) { return tanh(x); }
template <class T> static __attribute__((noinline)) void apply(const Function& f, V<T>& x) {
    const V<T> zero(T(0)), one(T(1)), half(T(0.5)), a((T(f.a))), b((T(f.b)));
    switch (f.kind) {
        case 0: x = choose(x < zero, zero, x); return;
        case 1: x = squashed(x); return;
        case 2: x = squashed(x * half) * half + half; return;
        case 3: x = x * a + b; return;
        case 4: x = choose(x < zero, x * a, x); return;
        case 5: x = choose(x < a, zero, x); return;
        case 6: x = squashed(x * b) * a; return;
        case 7:
            x = x * a + b;
            x = choose(x < zero, zero, x);
            x = choose(x > one, one, x);
            return;
        case 8: x = choose(x < zero, expm1(x) * a, x); return;
        case 9: x = x / (fabs(x) + one); return;
        default: x = choose(x < zero, zero, x) + log1p(exp(-fabs(x)));
    }
}
// The functions of a direction, with the limits of their arguments.
template <class T> struct Cell {
    const Function* functions;
    bool usual, option, clips;
    V<T> clip;
    INLINE V<T> limited(V<T> x) const {
        if (!clips) return x;
        x = choose(x < -clip, -clip, x);
        return choose(x > clip, clip, x);
    }
    INLINE V<T> gate(V<T> x) const {
        const V<T> half(T(0.5));
        if (usual) return squashed(x * half) * half + half;
        x = limited(x);
        apply<T>(functions[0], x);
        return x;
    }
    INLINE V<T> value(int k, V<T> x) const {
        if (usual) return squashed(x);
        apply<T>(functions[k], x);
        return x;
    }
};
// `size` numbers of each gate, which lie `size` apart: i, o, f and g. `x`, what is added to them, may be none.
template <class T> static void lstm_cells(const Cell<T>& of, const T* gates, const T* x, const T* peep, const T* c,
    T* next, T* h, i64 size) {
    for (i64 e = 0; e < size; e += W) {
        const int n = int(least(W, size - e));
        V<T> s[4];
        for (int k = 0; k < 4; k++) {
            s[k] = some(gates + k * size + e, n);
            if (x) s[k] += some(x + k * size + e, n);
        }
        const V<T> before = some(c + e, n);
        if (peep) {
            s[0] += some(peep + e, n) * before;
            s[2] += some(peep + 2 * size + e, n) * before;
        }
        const V<T> i = of.gate(s[0]), f = of.option ? V<T>(T(1)) - i : of.gate(s[2]);
        const V<T> cell = f * before + i * of.value(1, of.limited(s[3]));
        if (peep) s[1] += some(peep + size + e, n) * cell;
        put(next + e, n, cell);
        put(h + e, n, of.gate(s[1]) * of.value(2, cell));
    }
}
// c (columns, rows) = a (rows, columns): lines of `step` numbers.
template <class T> static void transposed(const T* a, i64 step, i64 rows, i64 columns, T* c) {
    if (rows == 1) {
        memcpy(c, a, columns * sizeof(T));
        return;
    }
    for (i64 first = 0; first < columns; first += 16)
        for (i64 r = 0; r < rows; r++)
            for (i64 j = first; j < least(columns, first + 16); j++) c[j * rows + r] = a[r * step + j];
}
// Runs steps for the columns of a part of the batch: `step(t, h, c, next_h, next_c)`, of which the states have sizes
// (H, n). Sequences that have ended keep their state.
template <class T, class Step> static void run_steps(const Layer& of, i64 way, i64 first, i64 n, bool by_rows,
    T* memory, Step step) {
    const i64 H = of.hidden, size = H * n, plane = of.ways * of.batch * H;
    T *h = memory, *next_h = h + size, *c = next_h + size, *next_c = c + size;
    T* state = (T*)of.state + (way * of.batch + first) * H;
    const i64 rows = by_rows ? 1 : n, columns = by_rows ? size : H;
    transposed<T>(state, H, rows, columns, h);
    if (of.cell == LSTM) transposed<T>(state + plane, H, rows, columns, c);
    for (i64 k = 0; k < of.steps; k++) {
        const i64 t = of.backward >> way & 1 ? of.steps - 1 - k : k;
        T* out = (T*)of.output + ((t * of.ways + way) * of.batch + first) * H;
        step(t, h, c, next_h, next_c);
        if (by_rows || n == 1) memcpy(out, next_h, size * sizeof(T));
        else transposed<T>(next_h, n, H, n, out);
        if (of.lengths) for (i64 r = 0; r < n; r++) {
            if (t < of.lengths[first + r]) continue;
            memset(out + r * H, 0, H * sizeof(T));
            for (i64 j = 0; j < H; j++) {
                const i64 at = by_rows ? r * H + j : j * n + r;
                next_h[at] = h[at];
                next_c[at] = c[at];
            }
        }
        T* const swapped[] = {h, c};
        h = next_h, next_h = swapped[0];
        c = next_c, next_c = swapped[1];
    }
    if (by_rows || n == 1) {
        memcpy(state, h, size * sizeof(T));
        if (of.cell == LSTM) memcpy(state + plane, c, size * sizeof(T));
        return;
    }
    transposed<T>(h, n, H, n, state);
    if (of.cell == LSTM) transposed<T>(c, n, H, n, state + plane);
}
template <class T> static Cell<T> cell_of(const Layer& of, i64 way) {
    static const i64 counts[] = {1, 2, 3};
    return {of.functions + way * counts[of.cell], of.usual != 0, of.option != 0, of.clips != 0, V<T>(T(of.clip))};
}
// out += h @ weights, whose columns lie in panels of four vectors, row by row: without sums across vectors, and read
// in order. The last panel ends with zeros.
template <class T> static void add_product(i64 columns, i64 depth, const T* panels, const T* h, T* out) {
    typedef typename ::Plain<T>::V X;
    enum { width = ::Plain<T>::W, wide = 4 * width };
    for (; columns > 0; columns -= wide, out += wide) {
        const i64 n = least(wide, columns);
        T line[wide] = {};
        memcpy(line, out, n * sizeof(T));
        X sums[4], more[4] = {};
        #pragma GCC unroll 4
        for (int j = 0; j < 4; j++) sums[j] = ::Plain<T>::at(line + j * width);
        i64 k = 0;
        for (; k + 2 <= depth; k += 2, panels += 2 * wide) {
            const X first = X{} + h[k], second = X{} + h[k + 1];
            #pragma GCC unroll 4
            for (int j = 0; j < 4; j++) {
                sums[j] += first * ::Plain<T>::at(panels + j * width);
                more[j] += second * ::Plain<T>::at(panels + wide + j * width);
            }
        }
        if (k < depth) {
            const X last = X{} + h[k];
            #pragma GCC unroll 4
            for (int j = 0; j < 4; j++) sums[j] += last * ::Plain<T>::at(panels + j * width);
            panels += wide;
        }
        #pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            const X sum = sums[j] + more[j];
            memcpy(line + j * width, &sum, sizeof sum);
        }
        memcpy(out, line, n * sizeof(T));
    }
}
template <class T> static int floats(const Layer& of, i64 begin, i64 end) {
    static const i64 gates_of[] = {1, 3, 4};
    const i64 H = of.hidden, G = gates_of[of.cell], line = of.ways * G * H;
    for (i64 item = begin; item < end; item++) {
        const i64 way = item / of.parts, part = item % of.parts;
        const i64 first = of.batch * part / of.parts / W * W;
        const i64 last = part + 1 == of.parts ? of.batch : of.batch * (part + 1) / of.parts / W * W, n = last - first;
        if (n <= 0) continue;
        const i64 size = H * n;
        T *gates = (T*)of.scratch + item * of.room, *more = gates + G * size, *peep = more + G * size;
        T* memory = peep + 3 * size;
        const Cell<T> cell = cell_of<T>(of, way);
        const i64 wide = 4 * ::Plain<T>::W, together = of.cell == GRU && !of.option ? 2 : G;
        const i64 room = (together * H + wide - 1) / wide * wide, rest = ((G - together) * H + wide - 1) / wide * wide;
        const T* weight = (const T*)of.weight + way * (of.packed ? room + rest : G * H) * H;
        const T* bias = (const T*)of.bias + way * G * H;
        if (of.peepholes) for (i64 j = 0; j < 3 * H; j++)
            for (i64 r = 0; r < n; r++) peep[j * n + r] = ((const T*)of.peepholes)[way * 3 * H + j];
        const auto multiplied_by = [&](i64 from, i64 count, const T* h, T* to) {
            if (of.packed) add_product<T>(count * H, H, weight + (from ? room * H : 0), h, to);
            else multiplied<T>(of.gemm, count * H, n, H, weight + from * H * H, h, T(1), to);
        };
        run_steps<T>(of, way, first, n, false, memory, [&](i64 t, const T* h, const T* c, T* next_h, T* next_c) {
            const T* x = (const T*)of.sums + (t * of.batch + first) * line + way * G * H;
            transposed<T>(x, line, n, G * H, of.cell == GRU ? more : gates);
            if (of.cell == LSTM) {
                multiplied_by(0, 4, h, gates);
                lstm_cells<T>(cell, gates, nullptr, of.peepholes ? peep : nullptr, c, next_c, next_h, size);
                return;
            }
            if (of.cell == RNN) {
                multiplied_by(0, 1, h, gates);
                for (i64 e = 0; e < size; e += W) {
                    const int m = int(least(W, size - e));
                    V<T> v = cell.limited(some(gates + e, m));
                    put(next_h + e, m, cell.value(0, v));
                }
                return;
            }
            if (n == 1) memcpy(gates, bias, 3 * H * sizeof(T));
            else for (i64 j = 0; j < 3 * H; j++) for (i64 r = 0; r < n; r++) gates[j * n + r] = bias[j];
            multiplied_by(0, of.option ? 3 : 2, h, gates);
            if (!of.option) {
                for (i64 e = 0; e < size; e += W) {
                    const int m = int(least(W, size - e));
                    const V<T> r = cell.gate(some(gates + size + e, m) + some(more + size + e, m));
                    put(next_h + e, m, r * some(h + e, m));
                }
                multiplied_by(2, 1, next_h, gates + 2 * size);
            }
            for (i64 e = 0; e < size; e += W) {
                const int m = int(least(W, size - e));
                const V<T> z = cell.gate(some(gates + e, m) + some(more + e, m));
                V<T> v = some(gates + 2 * size + e, m);
                if (of.option) v = v * cell.gate(some(gates + size + e, m) + some(more + size + e, m));
                v = cell.value(1, cell.limited(v + some(more + 2 * size + e, m)));
                put(next_h + e, m, (some(h + e, m) - v) * z + v);
            }
        });
    }
    return 0;
}

// An LSTM whose weights are packed levels, `sums_of` of their columns. `zeros` are int32 and `scales` float32, of all
// columns or of each. `share` starts a product on `others` more threads, and is none if there are none.
typedef int (*Share)(const void*, const int*, i64, i64, int*);
typedef int (*ShareWith)(Share, const void*, const int*, i64, i64, int);
struct Levels {
    const void *panels, *sums_of;
    const int* zeros;
    const float* scales;
    ShareWith share;
    i64 panel_bytes, panel_sums, zeros_step, scales_step, tall, down, wide, across, others, isa;
};
struct LevelLayer {
    Layer layer;
    Levels levels;
};
// Rounds to 256 levels between the least and the greatest number, or 0. False for NaN.
static bool rounded(const float* x, i64 count, uint8_t* out, float& step, int& zero) {
    typedef V<float> X;
    typedef uint8_t Bytes __attribute__((vector_size(W)));
    X low(0.0f), high(0.0f);
    auto strange = low != low;
    for (i64 e = 0; e < count; e += W) {
        const X v = some(x + e, int(least(W, count - e)));
        low = choose(v < low, v, low);
        high = choose(v > high, v, high);
        strange = strange | (v != v);
    }
    float least_one = 0, greatest = 0;
    for (int j = 0; j < W; j++) {
        if (strange.v[j]) return false;
        least_one = low.v[j] < least_one ? low.v[j] : least_one;
        greatest = high.v[j] > greatest ? high.v[j] : greatest;
    }
    step = least_one == greatest ? 1.0f : (greatest - least_one) / 255.0f;
    float point = -least_one / step;
    point = point < 0 ? 0 : point > 255 ? 255 : point;
    point = (point + 12582912.0f) - 12582912.0f;  // rounds to even
    zero = int(point);
    const X size(step), top(255 - point), big(12582912.0f), shift(point);
    i64 e = 0;
    for (; e + W <= count; e += W) {
        X v = some(x + e, W) / size;
        v = (choose(v > top, top, v) + big) - big;
        const Bytes whole = __builtin_convertvector((v + shift).v, Bytes);
        memcpy(out + e, &whole, sizeof whole);
    }
    for (; e < count; e++) {
        float v = x[e] / step;
        v = v > 255 - point ? 255 - point : v;
        v = (v + 12582912.0f) - 12582912.0f;
        out[e] = (uint8_t)int(v + point);
    }
    return true;
}
static int level_steps(const LevelLayer& all, i64 begin, i64 end) {
    const Layer& of = all.layer;
    const Levels& by = all.levels;
    const i64 H = of.hidden, N = of.batch, columns = 4 * H, line = of.ways * columns;
    bool strange = false;
    for (i64 way = begin; way < end; way++) {
        float *gates = (float*)of.scratch + way * of.room, *scales = gates + N * columns, *memory = scales + columns;
        uint8_t* bytes = (uint8_t*)(memory + 4 * N * H);
        const Cell<float> cell = cell_of<float>(of, way);
        const float* peep = of.peepholes ? (const float*)of.peepholes + way * 3 * H : nullptr;
        const i64 places[3] = {0, 0, 0};
        int zero = 0;
        const levels::Product product = {
            bytes, (const uint8_t*)by.panels + way * by.panel_bytes, (const int*)by.sums_of + way * by.panel_sums,
            gates, places, &zero, by.zeros ? by.zeros + way * (by.zeros_step ? columns : 1) : nullptr, nullptr,
            scales, N,
            columns, H, H, 0, by.zeros_step, 0, 0, 0, by.scales_step, levels::FLOATS, 0, 0, 0, columns, by.tall,
            by.down, by.wide, by.across, by.isa,
        };
        run_steps<float>(of, way, 0, N, true, memory,
            [&](i64 t, const float* h, const float* c, float* next_h, float* next_c) {
                float step = 0;
                if (of.lengths) {  // sequences that ended before the last step count as 0
                    memcpy(next_h, h, N * H * sizeof(float));
                    for (i64 r = 0; r < N; r++) if (t > of.lengths[r]) memset(next_h + r * H, 0, H * sizeof(float));
                    h = next_h;
                }
                if (!rounded(h, N * H, bytes, step, zero)) strange = true;
                const float* own = by.scales + way * (by.scales_step ? columns : 1);
                for (i64 j = 0; j < (by.scales_step ? columns : 1); j++) scales[j] = own[j] * step;
                const i64 cells = by.down * by.across;
                if (by.share && cells > 1)
                    by.share(share_level_product, &product, nullptr, cells, cells, int(by.others));
                else levels::product(product, 0, cells);
                const float* x = (const float*)of.sums + t * N * line + way * columns;
                for (i64 r = 0; r < N; r++)
                    lstm_cells<float>(cell, gates + r * columns, x + r * line, peep, c + r * H, next_c + r * H,
                        next_h + r * H, H);
            });
    }
    return strange;
}
}
using namespace cc;
#undef char
ENTRY_PER_DTYPE(floats, Layer)
ENTRY(level_steps, LevelLayer)
"""
)
_LAYER = "Q" * 10 + "q" * 12 + "d"
_floats = make_kernel_per_dtype(_SOURCE, "floats", _LAYER)
_level_steps = NativeKernel(_SOURCE, "level_steps", _LAYER + "QQQQQ" + "q" * 10)
_CELLS = ("rnn", "gru", "lstm")
_FUNCTIONS = (
    "relu", "tanh", "sigmoid", "affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu", "softsign",
    "softplus",
)  # fmt: skip
# Multiplications of all steps from which threads share directions, of a step from which they share its product, and
# sequences of a part of the batch.
_SHARED, _SHARED_STEP, _PART = 1 << 19, 1 << 22, 32


def bind_steps(device: Any, cell: Any, constants: Any) -> Callable | None:
    """Return the steps of a layer with constant weights, as `torchlite_backends.numpy.recurrent.bind_steps` does.

    None if NumPy is to run them. NotBuiltError if the kernel is not built.
    """
    weight, scale = constants.weight, constants.scale
    if not weight.size:
        return None
    if scale is not None:
        if scale.dtype != F32 or weight.dtype.char not in "bB":
            return None
        return _LevelSteps(device, cell, constants).run
    if weight.dtype not in FLOATS or get_gemm_address(weight.dtype) is None:
        return None
    return _FloatSteps(device, cell, constants).run


class _Steps:
    """The steps of a layer, and its constant arrays. kernel: the kernel that runs them."""

    def __init__(self, device: Any, kernel: NativeKernel, cell: Any, constants: Any, dtype: np.dtype) -> None:
        self.device, self.kernel, self.cell, self.dtype = device, kernel, cell, dtype
        device.native(kernel.text, kernel.name)
        self.hidden = constants.weight.shape[1]
        self.bias, self.peepholes = (
            0 if x is None else np.ascontiguousarray(x, dtype) for x in (constants.bias, constants.peepholes)
        )
        self.functions = np.zeros((len(cell.activations), 3))
        self.functions.view(np.int64)[:, 0] = [_FUNCTIONS.index(name) for name, _, _ in cell.activations]
        self.functions[:, 1:] = [(a or 0, b or 0) for _, a, b in cell.activations]
        self.backward = sum(backward << d for d, backward in enumerate(cell.reverse))

    def _start(self, sums: Any, h: Any, c: Any, lengths: Any) -> tuple:
        """Return arrays that the kernel takes: row-major sums, new states, new outputs and lengths."""
        ways, (steps, batch) = len(self.cell.reverse), sums.shape[:2]
        state = np.ascontiguousarray(np.stack([part for part in (h, c) if part is not None]), self.dtype)
        output = np.empty((steps, ways, batch, self.hidden), self.dtype)
        if lengths is not None:
            lengths = np.ascontiguousarray(lengths, np.int64)
        return np.ascontiguousarray(sums, self.dtype), state, output, 0 if lengths is None else lengths

    def _parameters(
        self, gemm: Any, weight: Any, arrays: tuple, scratch: Any, room: int, parts: int, packed: bool = False
    ) -> list:
        cell, (sums, state, output, lengths) = self.cell, arrays
        usual = cell.is_usual and cell.clip is None
        return [
            gemm, sums, weight, self.bias, self.peepholes, lengths, self.functions, state, output, scratch, room,
            len(output), len(cell.reverse), sums.shape[1], self.hidden, parts, self.backward, _CELLS.index(cell.kind),
            int(bool(cell.option)), int(usual), int(cell.clip is not None), int(packed), float(cell.clip or 0),
        ]  # fmt: skip


class _FloatSteps(_Steps):
    def __init__(self, device: Any, cell: Any, constants: Any) -> None:
        dtype = constants.weight.dtype
        super().__init__(device, _floats[dtype], cell, constants, dtype)
        self.constant, self.gemm = constants.weight, get_gemm_address(dtype)

    @functools.cached_property
    def weight(self) -> np.ndarray:
        """The weights of batches: a row for each column of the product."""
        return np.ascontiguousarray(self.constant.transpose(0, 2, 1))

    @functools.cached_property
    def panels(self) -> np.ndarray:
        """The weights of one sequence, in panels. Those of a GRU's last gate may be multiplied later."""
        ways, hidden, columns = self.constant.shape
        first = 2 * hidden if self.cell.kind == "gru" and not self.cell.option else columns
        wide, found = 256 // self.dtype.itemsize, []
        for part in (self.constant[:, :, :first], self.constant[:, :, first:]):
            count = -(-part.shape[2] // wide)
            padded = np.zeros((ways, hidden, count * wide), self.dtype)
            padded[:, :, : part.shape[2]] = part
            found.append(padded.reshape(ways, hidden, count, wide).transpose(0, 2, 1, 3).reshape(ways, -1))
        return np.ascontiguousarray(np.concatenate(found, 1))

    def run(self, sums: Any, h: Any, c: Any, lengths: Any) -> tuple:
        arrays = self._start(sums, h, c, lengths)
        _, state, output, _ = arrays
        if output.size:
            batch, ways = sums.shape[1], len(self.cell.reverse)
            parts = max(1, batch // _PART)
            room = (2 * self.cell.gates + 3 + 4) * self.hidden * (-(-batch // parts) + 16)
            scratch = np.empty(parts * ways * room, self.dtype)
            work = len(output) * batch * self.constant.size
            weight = self.panels if batch == 1 else self.weight
            given = self._parameters(self.gemm, weight, arrays, scratch, room, parts, batch == 1)
            self.kernel(self.device, parts * ways, FORCE_THREADS if work >= _SHARED else 0, *given)
        return output, state


class _LevelSteps(_Steps):
    def __init__(self, device: Any, cell: Any, constants: Any) -> None:
        super().__init__(device, _level_steps, cell, constants, F32)
        weight, _, _, scale, zero = constants
        self.packed = IntegerProducts(device).pack(weight)
        ways = len(weight)
        self.scale = np.ascontiguousarray(scale.reshape(ways, -1))
        zero = None if zero is None else zero.reshape(-1)
        shifted = 0 if self.packed is None else self.packed.shift
        if zero is None:
            zero = np.zeros(ways, weight.dtype)
        self.zero, _ = _shift_zero(zero, -shifted)
        self.zeros_step = int(zero.size > ways)
        if self.zero.__class__ is np.ndarray and self.zero.size < ways:
            self.zero = np.repeat(self.zero, ways)
        self.constants = constants
        self.numpy: Callable | None = None

    def run(self, sums: Any, h: Any, c: Any, lengths: Any) -> tuple:
        arrays = self._start(sums, h, c, lengths)
        _, state, output, _ = arrays
        if not output.size:
            return output, state
        packed: Any = self.packed
        batch, ways, hidden = sums.shape[1], len(self.cell.reverse), self.hidden
        panels = packed.panels.size // ways // (WIDE * (-(-hidden // 4) * 4))
        others = get_threads() - 1 if can_share_work() else 0
        sharing = self.device.sharing if others and batch * 4 * hidden * hidden >= _SHARED_STEP else None
        share = 0 if sharing is None else ctypes.cast(sharing, ctypes.c_void_p).value
        tall, wide = _choose_cells(batch, panels, 1, bool(share))
        room = (4 * batch + 4 + 5 * batch) * hidden + 64
        scratch = np.empty(ways * room, F32)
        given = self._parameters(0, 0, arrays, scratch, room, 1)
        given += [
            packed.panels, packed.sums, self.zero, self.scale, share, packed.panels.size // ways,
            packed.sums.size // ways, self.zeros_step, int(self.scale.shape[1] > 1), tall, -(-batch // tall), wide,
            -(-panels // wide), others, 0,
        ]  # fmt: skip
        work = len(output) * batch * ways * 4 * hidden * hidden
        apart = not share and work >= _SHARED  # else the directions run one after the other
        if self.kernel(self.device, ways, FORCE_THREADS if apart else 0, *given):
            return output, state
        if self.numpy is None:  # of states that are not numbers
            self.numpy = bind_in_numpy(self.cell, self.constants)
        return self.numpy(sums, h, c, lengths)
