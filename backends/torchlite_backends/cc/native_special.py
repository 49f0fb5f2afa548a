"""Native special functions of float32, the next numbers of float32 and float64, and sine and cosine of float64.

The functions are the polynomials of `torchlite_backends.numpy.float_special`, in double.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite_backends.kernel_sources.c_preamble import CPP
from torchlite_backends.numpy.float_special import ERFCX, ERFINV, ERFINV_TAIL

from .native_kernel import F32, F64, FLOATS, TYPE_DEFINITIONS, NativeKernel

# Elements from which the call costs less than NumPy's, and of an item.
_LEAST, _BLOCK = 1 << 10, 1 << 10


def _list(name: str, coefficients: tuple[float, ...]) -> str:
    return f"static const double {name}[] = {{{', '.join(map(repr, coefficients))}}};\n"


_SOURCE = (
    TYPE_DEFINITIONS
    + CPP
    + _list("ERFCX", ERFCX)
    + _list("ERFINV", ERFINV)
    + _list("TAIL", ERFINV_TAIL)
    + r"""
struct Numbers { const float* x; float* out; i64 count; };
enum { W = 8 };
typedef Vector<double, W> V;
typedef V::Native D;
typedef float F __attribute__((vector_size(4 * W)));
template <int N> static INLINE D evaluated(const double (&c)[N], D x) {
    D out = x * c[0];
    for (int k = 1; k < N - 1; k++) out = (out + c[k]) * x;
    return out + c[N - 1];
}
static INLINE D erfc_of(D x) {
    const D size = x < 0 ? -x : x, near = size > 12 ? D{} + 12 : size, inverse = 1 / (near + 4);  // NaN stays
    const D out = evaluated(ERFCX, 1 - 8 * inverse) * inverse * exp(V(-near * near)).v;
    return x < 0 ? 2 - out : out;
}
static INLINE D erfinv_of(D x) {
    const D rest = (1 - x) * (1 + x);
    const auto inside = rest > 0;
    const D w = -log(V(inside ? rest : D{} + 1)).v;  // of numbers that are not positive the logarithm takes long
    D out = evaluated(ERFINV, w) * x;
    const auto far = w >= 5;
    i64 some = 0;
    for (int k = 0; k < W; k++) some |= far[k];
    if (some) {
        D root = w;
        for (int k = 0; k < W; k++) root[k] = std::sqrt(w[k]);
        out = far ? evaluated(TAIL, root - 3.25) * x : out;
    }
    const D outside = rest == 0 ? x * __builtin_inf() : D{} + __builtin_nan("");
    return inside ? out : outside;
}
static INLINE D ndtr_of(D x) { return 0.5 * erfc_of(x * -0.7071067811865475244); }
#define FUNCTION(name) \
    static int name(const Numbers& of, i64 begin, i64 end) { \
        const i64 last = least(end * BLOCK, of.count); \
        i64 i = begin * BLOCK; \
        F x, out; \
        for (; i + W <= last; i += W) { \
            memcpy(&x, of.x + i, sizeof x); \
            out = __builtin_convertvector(name##_of(__builtin_convertvector(x, D)), F); \
            memcpy(of.out + i, &out, sizeof x); \
        } \
        if (i < last) { \
            x = F{}; \
            memcpy(&x, of.x + i, (last - i) * 4); \
            out = __builtin_convertvector(name##_of(__builtin_convertvector(x, D)), F); \
            memcpy(of.out + i, &out, (last - i) * 4); \
        } \
        return 0; \
    }
struct Pairs { const void *x, *y; void* out; i64 count; };
template <class T, class I> static INLINE void next_of(const Pairs& of, i64 begin, i64 end) {
    const T *x = (const T*)of.x, *y = (const T*)of.y;
    T* out = (T*)of.out;
    const i64 last = least(end * BLOCK, of.count);
    const I sign = (I)1 << (8 * sizeof(I) - 1);
    #pragma GCC ivdep
    for (i64 i = begin * BLOCK; i < last; i++) {
        const T a = x[i], b = y[i], both = a + b;
        I bits, other, nan;
        memcpy(&bits, &a, sizeof a);
        memcpy(&other, &b, sizeof b);
        memcpy(&nan, &both, sizeof a);
        const I away = (a < b) == (bits >= 0) ? 1 : -1;  // from zero
        I found = (bits & ~sign) == 0 ? (other & sign) + 1 : (I)(bits + away);
        found = a == b ? other : found;
        found = a != a || b != b ? nan : found;
        memcpy(out + i, &found, sizeof a);
    }
}
static int next_f32(const Pairs& of, i64 begin, i64 end) { return next_of<float, int32_t>(of, begin, end), 0; }
static int next_f64(const Pairs& of, i64 begin, i64 end) { return next_of<double, int64_t>(of, begin, end), 0; }
FUNCTION(erfc)
FUNCTION(erfinv)
FUNCTION(ndtr)
}
using namespace cc;
#undef char
ENTRY(next_f32, Pairs)
ENTRY(next_f64, Pairs)
ENTRY(erfc, Numbers)
ENTRY(erfinv, Numbers)
ENTRY(ndtr, Numbers)
""".replace("BLOCK", str(_BLOCK))
)


# The series of cosine and sine about 0, for |r| up to pi / 4.
COSINE_AND_SINE = r"""
static inline void cosine_and_sine(double r, double& cosine, double& sine) {
    const double z = r * r;
    double c = 1 / 20922789888000.0, s = 1 / 355687428096000.0;
    c = c * z - 1 / 87178291200.0;
    c = c * z + 1 / 479001600.0;
    c = c * z - 1 / 3628800.0;
    c = c * z + 1 / 40320.0;
    c = c * z - 1 / 720.0;
    c = c * z + 1 / 24.0;
    cosine = c * z * z - 0.5 * z + 1;
    s = s * z - 1 / 1307674368000.0;
    s = s * z + 1 / 6227020800.0;
    s = s * z - 1 / 39916800.0;
    s = s * z + 1 / 362880.0;
    s = s * z - 1 / 5040.0;
    s = s * z + 1 / 120.0;
    s = s * z - 1 / 6.0;
    sine = s * z * r + r;
}
"""
_TURNS_SOURCE = (
    TYPE_DEFINITIONS
    + COSINE_AND_SINE
    + r"""
// NumPy calls the C library for each number. Errors are below one unit in the last place.
struct Turns { const double* x; double* out; i64 count; };
template <bool COSINE> static inline double turned(double x) {
    const double n = floor(x * 0.6366197723675814 + 0.5), quarter = n - 4 * floor(0.25 * n);
    // Three parts of pi / 2, of which products of the first two with n are exact.
    const double a = x - n * 0x1.921fb544p+0, b = n * 0x1.0b4611a6p-34, r = a - b;
    const double rest = ((a - r) - b) - n * 0x1.3198a2e037073p-69, angle = r + rest, left = rest - (angle - r);
    double c, s;
    cosine_and_sine(angle, c, s);
    const double cosine = c - s * left, sine = s + c * left;
    const bool odd = quarter == 1 || quarter == 3;
    const double found = odd == COSINE ? sine : cosine;
    return quarter == 2 || quarter == (COSINE ? 1 : 3) ? -found : found;
}
template <bool COSINE> static int turn(const Turns& of, i64 begin, i64 end) {
    for (i64 block = begin; block < end; block++) {
        const i64 first = block * BLOCK, last = least(first + BLOCK, of.count);
        const double* x = of.x;
        double* out = of.out;
        i64 far = 0;
        for (i64 i = first; i < last; i++) far += !(fabs(x[i]) <= 1e5);
        if (far) for (i64 i = first; i < last; i++) out[i] = COSINE ? cos(x[i]) : sin(x[i]);
        else for (i64 i = first; i < last; i++) out[i] = !COSINE && x[i] == 0 ? x[i] : turned<COSINE>(x[i]);
    }
    return 0;
}
static int sines(const Turns& of, i64 begin, i64 end) { return turn<false>(of, begin, end); }
static int cosines(const Turns& of, i64 begin, i64 end) { return turn<true>(of, begin, end); }
ENTRY(sines, Turns)
ENTRY(cosines, Turns)
""".replace("BLOCK", str(_BLOCK))
)


def _make_kernel(op: str, name: str, text: str = _SOURCE, dtype: np.dtype = F32) -> Any:
    native = NativeKernel(text, name, "QQq")

    def kernel(device: Any, input: Any) -> Any:
        if input.dtype != dtype or input.size < _LEAST or not input.flags.c_contiguous:
            return None
        out = np.empty(input.shape, dtype)
        # These take ten times as long as a copy.
        return out if native(device, -(-input.size // _BLOCK), 16 * input.nbytes, input, out, input.size) else None

    kernel.__name__ = kernel.__qualname__ = op
    return kernel


_NEXT_KERNELS = {dtype: NativeKernel(_SOURCE, f"next_{short}", "QQQq") for dtype, short in FLOATS.items()}


def nextafter(device: Any, input: Any, other: Any) -> Any:
    if input.__class__ is not np.ndarray or other.__class__ is not np.ndarray or input.dtype not in FLOATS:
        return None
    if input.dtype != other.dtype or input.shape != other.shape or input.size < _LEAST:
        return None
    if not (input.flags.c_contiguous and other.flags.c_contiguous):
        return None
    out = np.empty(input.shape, input.dtype)
    given = input, other, out, input.size
    return out if _NEXT_KERNELS[input.dtype](device, -(-input.size // _BLOCK), 3 * input.nbytes, *given) else None


kernels = {
    "nextafter": nextafter,
    "sin": _make_kernel("sin", "sines", _TURNS_SOURCE, F64),
    "cos": _make_kernel("cos", "cosines", _TURNS_SOURCE, F64),
    **{op: _make_kernel(op, name) for op, name in (("erfc", "erfc"), ("erfinv", "erfinv"), ("special_ndtr", "ndtr"))},
}
