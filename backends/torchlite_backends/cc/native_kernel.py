"""CPU-only kernels: C++ over addresses of ndarrays, in addition to the shared device kernels.

Launching a shared kernel costs a dozen microseconds of Python (array descriptors, plans), as much as an index op takes
for a few thousand rows. Some kernels are also another algorithm on a CPU than on a GPU: those that scan rows
sequentially, keep the best k of a row, or call BLAS between steps.

A source has its kernels between `TYPE_DEFINITIONS` and the end:

    struct Given { const float* x; float* out; i64 n; };
    static int name(const Given& of, i64 begin, i64 end) { ...; return 0; }
    ENTRY(name, Given)

The members of the struct are 8 bytes each: addresses, integers and doubles. The work is items from 0 to a count, which
threads take in blocks; results must not depend on the block boundaries. A kernel that returns non-zero refuses: its
output is dropped, and NumPy's kernel is called, which raises the error.

The `kernels` of a module are {op name: function `op(device, *arguments, **options)`} over ndarrays. They return None
for arguments that another kernel must serve.
"""

from __future__ import annotations

import functools
import importlib
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from .device import address

TYPE_DEFINITIONS = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif
typedef long long i64;
#define ENTRY(name, Given) \
    extern "C" __attribute__((visibility("default"))) int run_##name(const void* given, const int*, i64 begin,   \
        i64 end) { return name(*(const Given*)given, begin, end); }   \
    extern "C" __attribute__((visibility("default"))) int share_##name(const void* given, const int*, i64 count,   \
        i64 parts, int* taken) {   \
        int failed = 0; \
        for (i64 k; (k = __atomic_fetch_add(taken, 1, __ATOMIC_RELAXED)) < parts;)   \
            failed |= name(*(const Given*)given, count * k / parts, count * (k + 1) / parts); \
        return failed; \
    }
// The kernels name_f32 and name_f64 of a template `name`.
#define ENTRY_PER_DTYPE(name, Given) \
    static int name##_f32(const Given& of, i64 begin, i64 end) { return name<float>(of, begin, end); } \
    static int name##_f64(const Given& of, i64 begin, i64 end) { return name<double>(of, begin, end); } \
    ENTRY(name##_f32, Given) \
    ENTRY(name##_f64, Given)
static inline i64 least(i64 a, i64 b) { return a < b ? a : b; }
// Asks for the memory `bytes` behind a place, which may be none of the program's.
static inline void ask(const void* from, i64 bytes) {
    __builtin_prefetch((const void*)((uintptr_t)from + (uintptr_t)bytes));
}
// Of NaN and of the larger one there is one order: that of these whole numbers. Zeros are equal.
static inline int32_t ordered(float x) {
    int32_t bits;
    x += 0.0f;
    memcpy(&bits, &x, 4);
    return x != x ? INT32_MAX : bits ^ (bits >> 31 & INT32_MAX);
}
static inline int64_t ordered(double x) {
    int64_t bits;
    x += 0.0;
    memcpy(&bits, &x, 8);
    return x != x ? INT64_MAX : bits ^ (bits >> 63 & INT64_MAX);
}
"""

# Copies past the caches, for results that they would not hold; `streamed` once behind a part's last.
NONTEMPORAL_STORE = r"""
static void stream(char* to, const char* from, i64 n) {
#if defined(__SSE2__)
    const i64 head = least(n, -(uintptr_t)to & 15);
    memcpy(to, from, head);
    to += head, from += head, n -= head;
    i64 i = 0;
    for (; i + 64 <= n; i += 64) {
        const __m128i* p = (const __m128i*)(from + i);
        const __m128i a = _mm_loadu_si128(p), b = _mm_loadu_si128(p + 1), c = _mm_loadu_si128(p + 2),
            d = _mm_loadu_si128(p + 3);
        __m128i* q = (__m128i*)(to + i);
        _mm_stream_si128(q, a);
        _mm_stream_si128(q + 1, b);
        _mm_stream_si128(q + 2, c);
        _mm_stream_si128(q + 3, d);
    }
    memcpy(to + i, from + i, n - i);
#else
    memcpy(to, from, n);
#endif
}
static inline void streamed() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}
"""

# Vectors of 64 bytes, and the sum over one's elements (halves are added: in registers, where a loop over elements went
# through memory and took ten times as long).
VECTOR_TEMPLATES = r"""
template <class T> struct Vector {
    typedef T V __attribute__((vector_size(64)));
    static const int W = 64 / sizeof(T);
    static inline V at(const T* x) {
        V v;
        memcpy(&v, x, sizeof v);
        return v;
    }
};
template <class T> static inline T added_up(const typename Vector<T>::V& v) {
    typedef T Half __attribute__((vector_size(32)));
    typedef T Quarter __attribute__((vector_size(16)));
    Half a, b;
    memcpy(&a, &v, sizeof a);
    memcpy(&b, (const char*)&v + sizeof a, sizeof b);
    a += b;
    Quarter c, d;
    memcpy(&c, &a, sizeof c);
    memcpy(&d, (const char*)&a + sizeof c, sizeof d);
    c += d;
    if constexpr (sizeof(T) == 8) return c[0] + c[1];
    else return (c[0] + c[2]) + (c[1] + c[3]);
}
"""

# A single pass over 4 MiB takes 60 us, from which a second thread pays; other kernels take as long for a quarter of
# that.
_BANDWIDTH_PASSES = 4
_MODULES = (
    "native_gather",
    "native_cat",
    "native_sum",
    "native_topk",
    "native_lstm",
    "native_gru",
    "native_optim",
    "native_spmm",
    "native_layer_norm_backward",
    "native_batch_norm",
    "native_binary",
    "native_pooling",
    "native_grid_sampling",
    "native_flip",
    "native_special",
    "native_half",
)
F32, F64, I64, I32 = map(np.dtype, ("f4", "f8", "i8", "i4"))
FLOATS = {F32: "f32", F64: "f64"}


class NativeKernel:
    """A kernel of a source: `codes` are those of `struct` for its parameters ("Q" for an ndarray)."""

    def __init__(self, text: str, name: str, codes: str):
        self.text, self.name, self.codes = text, name, codes
        self._pack = struct.Struct("=" + codes).pack

    def __repr__(self) -> str:
        return f"<C++ kernel {self.name}({self.codes})>"

    def __call__(self, device: Any, count: int, nbytes: int, *values: Any) -> bool:
        """Run `count` items, which read and write `nbytes` in all, on several threads where that pays.

        Return False if the kernel refused. NotBuiltError if it is not built and must not be.
        """
        given = self._pack(*[address(value) if value.__class__ is np.ndarray else value for value in values])
        return not device.native(self.text, self.name).launch(given, 0, count, nbytes // _BANDWIDTH_PASSES)


def make_kernel_per_dtype(text: str, name: str, codes: str) -> dict[np.dtype, NativeKernel]:
    """Return a kernel for each floating dtype: `name_f32` and `name_f64`."""
    return {dtype: NativeKernel(text, f"{name}_{short}", codes) for dtype, short in FLOATS.items()}


def override_kernels(
    engine: Any, plain: dict[str, Callable], modules: tuple[str, ...] = _MODULES
) -> dict[str, Callable]:
    """Return {op name: kernel} of this package's modules, which fall back to `plain`."""
    found = {}
    for name in modules:
        module = importlib.import_module(f".{name}", __package__)
        for op, own in module.kernels.items():
            if op in plain:
                found[op] = _with_fallback(engine, own, plain[op])
    return found


def _with_fallback(engine: Any, own: Callable, plain: Callable) -> Callable:
    @functools.wraps(own)
    def kernel(*arguments: Any, **options: Any) -> Any:
        device = engine.device()
        if device is not None:
            try:
                out = own(device, *arguments, **options)
            except Exception:  # the program is not built, or an argument has a kind that only NumPy's kernel takes
                out = None
            if out is not None:
                return out
        return plain(*arguments, **options)

    kernel.takes_out = getattr(plain, "takes_out", False)  # type: ignore[attr-defined]
    return kernel
