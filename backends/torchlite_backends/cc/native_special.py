"""Native special functions of float32, by the polynomials of `torchlite_backends.numpy.float_special` in double."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite_backends.kernel_sources.c_preamble import CPP
from torchlite_backends.numpy.float_special import ERFCX, ERFINV, ERFINV_TAIL

from .native_kernel import F32, TYPE_DEFINITIONS, NativeKernel

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
FUNCTION(erfc)
FUNCTION(erfinv)
FUNCTION(ndtr)
}
using namespace cc;
#undef char
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


kernels = {
    op: _make_kernel(op, name) for op, name in (("erfc", "erfc"), ("erfinv", "erfinv"), ("special_ndtr", "ndtr"))
}
