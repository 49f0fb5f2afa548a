"""Half precision: casts from and to float32, arithmetic, and products of rows with a float32 vector.

NumPy converts float16 one element at a time. A product with a vector reads the halves once, and widens them in
registers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite._types.dtypes import bfloat16

from .native_kernel import F32, TYPE_DEFINITIONS, NativeKernel

# Elements of an item of a cast, and outputs of an item of a product.
_BLOCK, _ROWS = 4096, 16

_SOURCE = (
    (
        TYPE_DEFINITIONS
        + r"""
#if defined(__AVX2__) && defined(__F16C__)
#include <immintrin.h>
#define HAS_HALF 1
#endif
struct Cast { const void* x; void* out; i64 count; };
struct Pair { const uint16_t *a, *b; uint16_t* out; i64 count, one; };  // one: b is one number for all
struct Product { const float* row; const uint16_t* lines; float* out; i64 count, depth, step; };
#if defined(HAS_HALF)
enum { W = 8 };
struct Float16 {
    static inline __m256 load(const uint16_t* x) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)x)); }
    static inline void store(uint16_t* out, __m256 x) {
        _mm_storeu_si128((__m128i*)out, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
    }
};
struct Bfloat16 {
    static inline __m256 load(const uint16_t* x) {
        const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)x));
        return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
    }
    // To the nearest, ties to even; NaN stays one.
    static inline void store(uint16_t* out, __m256 x) {
        const __m256i bits = _mm256_castps_si256(x), high = _mm256_srli_epi32(bits, 16);
        const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
        const __m256i near = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
        const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
        const __m256i quiet = _mm256_or_si256(_mm256_and_si256(high, _mm256_set1_epi32(0x8000)),
            _mm256_set1_epi32(0x7fc0));
        const __m256i found = _mm256_blendv_epi8(_mm256_srli_epi32(near, 16), quiet, nan);
        const __m256i packed = _mm256_packus_epi32(found, found);
        _mm_storeu_si128((__m128i*)out, _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
    }
};
template <class H> static int widen(const Cast& of, i64 begin, i64 end) {
    const i64 last = least(end * BLOCK, of.count);
    const uint16_t* x = (const uint16_t*)of.x;
    float* out = (float*)of.out;
    i64 i = begin * BLOCK;
    for (; i + W <= last; i += W) _mm256_storeu_ps(out + i, H::load(x + i));
    if (i < last) {
        uint16_t few[W] = {};
        float wide[W];
        memcpy(few, x + i, (last - i) * 2);
        _mm256_storeu_ps(wide, H::load(few));
        memcpy(out + i, wide, (last - i) * 4);
    }
    return 0;
}
template <class H> static int narrow(const Cast& of, i64 begin, i64 end) {
    const i64 last = least(end * BLOCK, of.count);
    const float* x = (const float*)of.x;
    uint16_t* out = (uint16_t*)of.out;
    i64 i = begin * BLOCK;
    for (; i + W <= last; i += W) H::store(out + i, _mm256_loadu_ps(x + i));
    if (i < last) {
        float few[W] = {};
        uint16_t halves[W];
        memcpy(few, x + i, (last - i) * 4);
        H::store(halves, _mm256_loadu_ps(few));
        memcpy(out + i, halves, (last - i) * 2);
    }
    return 0;
}
// One rounding of a sum, difference, product or quotient of two halves in float32 is as one in half precision.
#define PAIRS(name, op) \
    template <class H> static int name(const Pair& of, i64 begin, i64 end) { \
        const i64 last = least(end * BLOCK, of.count); \
        i64 i = begin * BLOCK; \
        uint16_t all[W]; \
        for (int k = 0; k < W; k++) all[k] = of.b[0]; \
        const __m256 number = H::load(all); \
        if (of.one) for (; i + W <= last; i += W) H::store(of.out + i, H::load(of.a + i) op number); \
        else for (; i + W <= last; i += W) H::store(of.out + i, H::load(of.a + i) op H::load(of.b + i)); \
        if (i < last) { \
            uint16_t few[3][W] = {}; \
            memcpy(few[0], of.a + i, (last - i) * 2); \
            memcpy(few[1], of.one ? all : of.b + i, (last - i) * 2); \
            H::store(few[2], H::load(few[0]) op H::load(few[1])); \
            memcpy(of.out + i, few[2], (last - i) * 2); \
        } \
        return 0; \
    }
PAIRS(add, +)
PAIRS(sub, -)
PAIRS(mul, *)
PAIRS(div, /)
static inline float added_up(__m256 x) {
    __m128 v = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_add_ss(v, _mm_shuffle_ps(v, v, 1)));
}
template <class H, int R> static inline void dots(const Product& of, i64 j) {
    const uint16_t* lines[R];
    __m256 sums[R], more[R];
    for (int r = 0; r < R; r++) {
        lines[r] = of.lines + (j + r) * of.step;
        sums[r] = more[r] = _mm256_setzero_ps();
    }
    i64 k = 0;
    for (; k + 2 * W <= of.depth; k += 2 * W) {
        const __m256 x = _mm256_loadu_ps(of.row + k), next = _mm256_loadu_ps(of.row + k + W);
        #pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
            sums[r] = sums[r] + x * H::load(lines[r] + k);
            more[r] = more[r] + next * H::load(lines[r] + k + W);
        }
    }
    float rest[R] = {};
    if (k < of.depth) {
        float few[2 * W] = {};
        memcpy(few, of.row + k, (of.depth - k) * 4);
        for (int r = 0; r < R; r++) {
            uint16_t halves[2 * W] = {};
            memcpy(halves, lines[r] + k, (of.depth - k) * 2);
            sums[r] = sums[r] + _mm256_loadu_ps(few) * H::load(halves);
            more[r] = more[r] + _mm256_loadu_ps(few + W) * H::load(halves + W);
        }
    }
    for (int r = 0; r < R; r++) of.out[j + r] = added_up(_mm256_add_ps(sums[r], more[r]));
}
template <class H> static int product(const Product& of, i64 begin, i64 end) {
    const i64 last = least(end * ROWS, of.count);
    i64 j = begin * ROWS;
    for (; j + 4 <= last; j += 4) dots<H, 4>(of, j);
    for (; j < last; j++) dots<H, 1>(of, j);
    return 0;
}
#define FOR_HALVES(name, Given) \
    static int name##_f2(const Given& of, i64 begin, i64 end) { return name<Float16>(of, begin, end); } \
    static int name##_b2(const Given& of, i64 begin, i64 end) { return name<Bfloat16>(of, begin, end); } \
    ENTRY(name##_f2, Given) \
    ENTRY(name##_b2, Given)
#else
#define FOR_HALVES(name, Given) \
    static int name##_f2(const Given&, i64, i64) { return 1; } \
    static int name##_b2(const Given&, i64, i64) { return 1; } \
    ENTRY(name##_f2, Given) \
    ENTRY(name##_b2, Given)
#endif
FOR_HALVES(widen, Cast)
FOR_HALVES(narrow, Cast)
FOR_HALVES(product, Product)
FOR_HALVES(add, Pair)
FOR_HALVES(sub, Pair)
FOR_HALVES(mul, Pair)
FOR_HALVES(div, Pair)
"""
    )
    .replace("BLOCK", str(_BLOCK))
    .replace("ROWS", str(_ROWS))
)
_SHORT = {np.dtype("f2"): "f2", bfloat16.np: "b2"}
_kernels = {
    (name, dtype): NativeKernel(_SOURCE, f"{name}_{short}", codes)
    for name, codes in (
        ("widen", "QQq"),
        ("narrow", "QQq"),
        ("product", "QQQqqq"),
        *[(name, "QQQqq") for name in ("add", "sub", "mul", "div")],
    )
    for dtype, short in _SHORT.items()
}


def cast(device: Any, x: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Return a copy in float32 of half precision, or the reverse; None if nothing was done."""
    half, wide = (x.dtype, dtype) if dtype == F32 else (dtype, x.dtype)
    if half not in _SHORT or wide != F32 or x.__class__ is not np.ndarray or not x.flags.c_contiguous:
        return None  # sums of all elements are NumPy's scalars
    out = np.empty(x.shape, dtype)
    kernel = _kernels["widen" if dtype == F32 else "narrow", half]
    return out if kernel(device, -(-x.size // _BLOCK), 6 * x.size, x, out, x.size) else None


def half_gemv(device: Any, lines: np.ndarray, row: np.ndarray) -> np.ndarray | None:
    """Return `lines @ row` in float32, of half-precision lines and a float32 row; None if nothing was done."""
    count, depth = lines.shape
    between, step = lines.strides
    if lines.dtype not in _SHORT or step != 2 or between % 2 or between < 0 or not row.flags.c_contiguous:
        return None
    out = np.empty(count, F32)
    nbytes = 8 * count * depth
    given = row, lines, out, count, depth, between // 2
    return out if _kernels["product", lines.dtype](device, -(-count // _ROWS), nbytes, *given) else None


def pair(device: Any, name: str, input: np.ndarray, other: np.ndarray) -> np.ndarray | None:
    """Return the sum, difference, product or quotient of a contiguous array of half precision and another of its shape
    and dtype, or of one element; None if nothing was done.
    """
    if input.dtype not in _SHORT or not input.size:
        return None
    out = np.empty(input.shape, input.dtype)
    given = input, other, out, input.size, other.size == 1
    return out if _kernels[name, input.dtype](device, -(-input.size // _BLOCK), 6 * input.size, *given) else None
