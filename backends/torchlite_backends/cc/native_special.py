"""Native special functions of float32, and the next numbers of float32 and float64.

The functions are the polynomials of `torchlite_backends.numpy.float_special`, in double.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite_backends.kernel_sources.c_preamble import CPP
from torchlite_backends.numpy.float_special import ERFCX, ERFINV, ERFINV_TAIL

from .native_kernel import F32, FLOATS, TYPE_DEFINITIONS, NativeKernel

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


def _make_kernel(op: str, name: str) -> Any:
    native = NativeKernel(_SOURCE, name, "QQq")

    def kernel(device: Any, input: Any) -> Any:
        if input.dtype != F32 or input.size < _LEAST or not input.flags.c_contiguous:
            return None
        out = np.empty(input.shape, F32)
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
    **{op: _make_kernel(op, name) for op, name in (("erfc", "erfc"), ("erfinv", "erfinv"), ("special_ndtr", "ndtr"))},
}
