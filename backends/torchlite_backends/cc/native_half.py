"""Half precision: casts from and to float32, arithmetic, sums, and products of rows with a float32 vector.

NumPy converts float16 one element at a time. A product with a vector reads the halves once, and widens them in
registers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlite._types.dtypes import bfloat16

from .native_kernel import F32, TYPE_DEFINITIONS, NativeKernel

# Elements of an item of a cast, and outputs of an item of a product.
_BLOCK, _ROWS = 4096, 16
# Numbers that are added up in float32.
_SUMMED = 1024

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
struct Scaled { const uint16_t* a; uint16_t* out; i64 count; double number; };
struct Limits { const uint16_t* a; uint16_t* out; i64 count; double low, high; };
struct Rows { const uint16_t* x; double* out; i64 length, pieces, step; };
struct Dot { const uint16_t *a, *b; double* out; i64 count; };
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
#define PAIRS(name, expression) \
    template <class H> static int name(const Pair& of, i64 begin, i64 end) { \
        const i64 last = least(end * BLOCK, of.count); \
        i64 i = begin * BLOCK; \
        uint16_t all[W]; \
        for (int k = 0; k < W; k++) all[k] = of.b[0]; \
        const __m256 number = H::load(all); \
        for (; i + W <= last; i += W) { \
            const __m256 x = H::load(of.a + i), y = of.one ? number : H::load(of.b + i); \
            H::store(of.out + i, expression); \
        } \
        if (i < last) { \
            uint16_t few[3][W] = {}; \
            memcpy(few[0], of.a + i, (last - i) * 2); \
            memcpy(few[1], of.one ? all : of.b + i, (last - i) * 2); \
            const __m256 x = H::load(few[0]), y = H::load(few[1]); \
            H::store(few[2], expression); \
            memcpy(of.out + i, few[2], (last - i) * 2); \
        } \
        return 0; \
    }
PAIRS(add, x + y)
PAIRS(sub, x - y)
PAIRS(mul, x * y)
PAIRS(div, x / y)
// The instructions give the second operand where one is NaN.
PAIRS(maximum, _mm256_blendv_ps(_mm256_max_ps(x, y), x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)))
PAIRS(minimum, _mm256_blendv_ps(_mm256_min_ps(x, y), x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)))
// One operand and one number of float32, in that order or the other one.
#define SCALED(name, expression) \
    template <class H> static int name(const Scaled& of, i64 begin, i64 end) { \
        const i64 last = least(end * BLOCK, of.count); \
        const __m256 number = _mm256_set1_ps((float)of.number); \
        (void)number; \
        i64 i = begin * BLOCK; \
        for (; i + W <= last; i += W) { \
            const __m256 x = H::load(of.a + i); \
            H::store(of.out + i, expression); \
        } \
        if (i < last) { \
            uint16_t few[W] = {}; \
            memcpy(few, of.a + i, (last - i) * 2); \
            const __m256 x = H::load(few); \
            H::store(few, expression); \
            memcpy(of.out + i, few, (last - i) * 2); \
        } \
        return 0; \
    }
SCALED(add_number, x + number)
SCALED(sub_number, x - number)
SCALED(mul_number, x * number)
SCALED(div_number, x / number)
SCALED(number_sub, number - x)
SCALED(number_div, number / x)
SCALED(roots, _mm256_sqrt_ps(x))
template <class H> static int clamp(const Limits& of, i64 begin, i64 end) {
    const i64 last = least(end * BLOCK, of.count);
    const __m256 low = _mm256_set1_ps((float)of.low), high = _mm256_set1_ps((float)of.high);
    for (i64 i = begin * BLOCK; i < last; i += W) {
        const i64 n = least(W, last - i);
        uint16_t few[W] = {};
        if (n < W) memcpy(few, of.a + i, n * 2);
        __m256 x = H::load(n < W ? few : of.a + i);
        x = _mm256_blendv_ps(x, low, _mm256_cmp_ps(x, low, _CMP_LT_OQ));  // NaN stays
        x = _mm256_blendv_ps(x, high, _mm256_cmp_ps(x, high, _CMP_GT_OQ));
        if (n == W) H::store(of.out + i, x);
        else {
            H::store(few, x);
            memcpy(of.out + i, few, n * 2);
        }
    }
    return 0;
}
static inline float added_up(__m256 x) {
    __m128 v = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_add_ss(v, _mm_shuffle_ps(v, v, 1)));
}
// Sums of SUMMED products, or numbers where `B` is false, are float32, and added up in double.
template <class H, bool B> static inline double sum_of(const uint16_t* a, const uint16_t* b, i64 n) {
    const __m256 zeros = _mm256_setzero_ps();
    double all = 0;
    for (i64 i = 0; i < n;) {
        const i64 end = least(n, i + SUMMED);
        __m256 sums[4] = {zeros, zeros, zeros, zeros};
        for (; i + 4 * W <= end; i += 4 * W) for (int k = 0; k < 4; k++) {
            const __m256 x = H::load(a + i + k * W);
            sums[k] = sums[k] + (B ? x * H::load(b + i + k * W) : x);
        }
        for (; i < end; i += W) {
            uint16_t few[2][W] = {};
            const i64 some = least(W, end - i) * 2;
            memcpy(few[0], a + i, some);
            if (B) memcpy(few[1], b + i, some);
            const __m256 x = H::load(few[0]);
            sums[0] = sums[0] + (B ? x * H::load(few[1]) : x);
        }
        i = end;
        all += added_up((sums[0] + sums[1]) + (sums[2] + sums[3]));
    }
    return all;
}
template <class H> static int row_sums(const Rows& of, i64 begin, i64 end) {
    for (i64 item = begin; item < end; item++) {
        const i64 start = item % of.pieces * of.step, n = least(of.step, of.length - start);
        of.out[item] = sum_of<H, false>(of.x + item / of.pieces * of.length + start, 0, n);
    }
    return 0;
}
template <class H> static int dot(const Dot& of, i64 begin, i64 end) {
    for (i64 item = begin; item < end; item++) {
        const i64 start = item * BLOCK;
        of.out[item] = sum_of<H, true>(of.a + start, of.b + start, least(BLOCK, of.count - start));
    }
    return 0;
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
FOR_HALVES(add_number, Scaled)
FOR_HALVES(sub_number, Scaled)
FOR_HALVES(mul_number, Scaled)
FOR_HALVES(div_number, Scaled)
FOR_HALVES(number_sub, Scaled)
FOR_HALVES(number_div, Scaled)
FOR_HALVES(roots, Scaled)
FOR_HALVES(clamp, Limits)
FOR_HALVES(row_sums, Rows)
FOR_HALVES(dot, Dot)
FOR_HALVES(add, Pair)
FOR_HALVES(sub, Pair)
FOR_HALVES(mul, Pair)
FOR_HALVES(div, Pair)
FOR_HALVES(maximum, Pair)
FOR_HALVES(minimum, Pair)
"""
    )
    .replace("BLOCK", str(_BLOCK))
    .replace("ROWS", str(_ROWS))
    .replace("SUMMED", str(_SUMMED))
)
_SHORT = {np.dtype("f2"): "f2", bfloat16.np: "b2"}
_NUMBER_FIRST = {"add": "add_number", "sub": "number_sub", "mul": "mul_number", "div": "number_div"}
_NUMBER_LAST = {op: f"{op}_number" for op in _NUMBER_FIRST}
_kernels = {
    (name, dtype): NativeKernel(_SOURCE, f"{name}_{short}", codes)
    for name, codes in (
        ("widen", "QQq"),
        ("narrow", "QQq"),
        ("product", "QQQqqq"),
        *[(name, "QQQqq") for name in ("add", "sub", "mul", "div", "maximum", "minimum")],
        *[(name, "QQqd") for name in (*_NUMBER_FIRST.values(), *_NUMBER_LAST.values(), "roots")],
        ("clamp", "QQqdd"),
        ("row_sums", "QQqqq"),
        ("dot", "QQQq"),
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


def pair(
    device: Any, name: str, input: np.ndarray, other: np.ndarray, out: np.ndarray | None = None
) -> np.ndarray | None:
    """Return the sum, difference, product or quotient of a contiguous array of half precision and another of its shape
    and dtype, or of one element; None if nothing was done.
    """
    if input.dtype not in _SHORT or not input.size:
        return None
    out = np.empty(input.shape, input.dtype) if out is None else out
    given = input, other, out, input.size, other.size == 1
    return out if _kernels[name, input.dtype](device, -(-input.size // _BLOCK), 6 * input.size, *given) else None


def with_number(device: Any, name: str, first: Any, second: Any, out: np.ndarray | None = None) -> np.ndarray | None:
    """Return the sum, difference, product or quotient of a contiguous array of half precision and a Python number, in
    either order; in `out`, which may be that array. It is computed in float32. None if nothing was done.
    """
    array, number = (first, second) if first.__class__ is np.ndarray else (second, first)
    if array.dtype not in _SHORT or not array.size or not array.flags.c_contiguous:
        return None
    out = np.empty(array.shape, array.dtype) if out is None else out
    kernel = _kernels[(_NUMBER_LAST if array is first else _NUMBER_FIRST)[name], array.dtype]
    return out if kernel(device, -(-array.size // _BLOCK), 4 * array.size, array, out, array.size, number) else None


def dot(device: Any, first: np.ndarray, second: np.ndarray) -> Any:
    """Return the dot product of vectors of half precision as a float; None if nothing was done."""
    if first.dtype not in _SHORT or not first.size or not (first.flags.c_contiguous and second.flags.c_contiguous):
        return None
    out = np.empty(-(-first.size // _BLOCK))
    done = _kernels["dot", first.dtype](device, out.size, 4 * first.size, first, second, out, first.size)
    return np.add.reduce(out) if done else None


def sqrt(device: Any, input: Any) -> Any:
    if input.dtype not in _SHORT or not input.size or not input.flags.c_contiguous:
        return None
    out = np.empty(input.shape, input.dtype)
    given = input, out, input.size, 0.0
    return out if _kernels["roots", input.dtype](device, -(-input.size // _BLOCK), 4 * input.size, *given) else None


def _clamp_scalars(device: Any, input: Any, min: Any, max: Any, out: Any = None) -> Any:
    if input.dtype not in _SHORT or not input.size or not input.flags.c_contiguous:
        return None
    low, high = -math.inf if min is None else float(min), math.inf if max is None else float(max)
    if low != low or high != high:
        return None
    out = np.empty(input.shape, input.dtype) if out is None else out
    given = input, out, input.size, low, high
    return out if _kernels["clamp", input.dtype](device, -(-input.size // _BLOCK), 4 * input.size, *given) else None


def _make_in_place(name: str) -> Any:
    def kernel(device: Any, target: Any, other: Any) -> Any:
        if target.dtype not in _SHORT or not target.flags.c_contiguous or other.__class__ is not np.ndarray:
            return None
        if other.dtype != target.dtype or target.shape != other.shape and other.ndim or not other.flags.c_contiguous:
            return None
        if other is not target and np.may_share_memory(target, other):
            return None
        return pair(device, name, target, other, target)

    kernel.__name__ = kernel.__qualname__ = f"{name}_"
    return kernel


kernels = {
    "sqrt": sqrt,
    "_clamp_scalars": _clamp_scalars,
    "_clamp_scalars_": lambda device, target, min, max: _clamp_scalars(device, target, min, max, target),
    "clamp_min": lambda device, input, min: _clamp_number(device, input, min, None),
    "clamp_max": lambda device, input, max: _clamp_number(device, input, None, max),
    **{f"{name}_": _make_in_place(name) for name in _NUMBER_FIRST},
}


def _clamp_number(device: Any, input: Any, low: Any, high: Any) -> Any:
    """Return a clamp with one limit; None for one that is no number."""
    limit = high if low is None else low
    if limit.__class__ is np.ndarray and not limit.ndim and limit.dtype == input.dtype:
        limit = limit.astype(F32).item()
    if limit.__class__ not in (int, float):
        return None
    return _clamp_scalars(device, input, None if low is None else limit, None if high is None else limit)


row_sum_kernels = {dtype: _kernels["row_sums", dtype] for dtype in _SHORT}
