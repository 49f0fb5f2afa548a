"""C++ of products of float32 rows with weights of half precision, eight and four bits, which are converted in
registers.

Few rows read the weights once: they share each vector of weights. Sums of floats are in float32.
"""

from __future__ import annotations

from .native_kernel import TYPE_DEFINITIONS, VECTOR_TEMPLATES

WEIGHT_ONLY = (
    TYPE_DEFINITIONS
    + VECTOR_TEMPLATES
    + r"""
#if defined(__AVX2__)
#include <immintrin.h>
#endif
typedef Vector<float>::V V;
typedef signed char S16 __attribute__((vector_size(16)));
enum { LANES = 16, TALL = 4 };
// `__builtin_convertvector` from bytes goes through memory, number by number.
static inline V widened(S16 x) {
#if defined(__AVX512F__)
    return (V)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32((__m128i)x));
#elif defined(__AVX2__)
    const __m256 a = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32((__m128i)x));
    const __m256 b = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128((__m128i)x, 8)));
    V v;
    memcpy(&v, &a, sizeof a);
    memcpy((char*)&v + sizeof a, &b, sizeof b);
    return v;
#else
    return __builtin_convertvector(x, V);
#endif
}

// Weights of eight bits, and of half precision, of which 16 become floats at a time.
static inline V numbers_at(const signed char* w) {
    S16 levels;
    memcpy(&levels, w, sizeof levels);
    return widened(levels);
}
static inline float number_at(const signed char* w) { return *w; }
static inline float number_at(const uint16_t* w) {
    const uint32_t sign = (uint32_t)(*w & 0x8000) << 16, e = *w >> 10 & 31, m = *w & 1023;
    const float small = (float)m * 5.9604644775390625e-8f;
    uint32_t bits;
    memcpy(&bits, &small, 4);
    bits = sign | (e == 0 ? bits : (e == 31 ? 255u : e + 112) << 23 | m << 13);
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
static inline V numbers_at(const uint16_t* w) {
#if defined(__AVX512F__)
    return (V)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)w));
#elif defined(__AVX2__) && defined(__F16C__)
    const __m256 a = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)w));
    const __m256 b = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(w + 8)));
    V v;
    memcpy(&v, &a, sizeof a);
    memcpy((char*)&v + sizeof a, &b, sizeof b);
    return v;
#else
    V v;
    for (int i = 0; i < LANES; i++) v[i] = number_at(w + i);
    return v;
#endif
}

// out = (x @ weight.T) * scales, of rows of `depth` numbers. An item is `part` rows of the weight. The order of a sum
// does not depend on the other rows.
struct Rows {
    const float* x;
    const void* weight;
    const float* scales;
    float* out;
    i64 rows, depth, columns, part;
};
#if defined(__AVX512F__)
enum { MOST_ROWS = 4, SUMS = 16 };  // rows that share a vector of weights, and sums that registers hold
#else
enum { MOST_ROWS = 4, SUMS = 4 };
#endif
// M rows with C rows of the weight.
template <class T, int M, int C> static inline void few_products(const Rows& of, const float* x, const T* w, float* out,
    const float* scales) {
    V sums[C][M];
    #pragma GCC unroll 8
    for (int c = 0; c < C; c++)
        #pragma GCC unroll 8
        for (int m = 0; m < M; m++) sums[c][m] = V{};
    i64 k = 0;
    for (; k + LANES <= of.depth; k += LANES) {
        V y[C];
        #pragma GCC unroll 8
        for (int c = 0; c < C; c++) y[c] = numbers_at(w + c * of.depth + k);
        #pragma GCC unroll 8
        for (int m = 0; m < M; m++) {
            const V v = Vector<float>::at(x + m * of.depth + k);
            #pragma GCC unroll 8
            for (int c = 0; c < C; c++) sums[c][m] += v * y[c];
        }
    }
    #pragma GCC unroll 8
    for (int c = 0; c < C; c++)
        #pragma GCC unroll 8
        for (int m = 0; m < M; m++) {
            float total = added_up<float>(sums[c][m]);
            for (i64 j = k; j < of.depth; j++) total += x[m * of.depth + j] * number_at(w + c * of.depth + j);
            out[m * of.columns + c] = total * scales[c];
        }
}
template <class T, int M> static inline void some_products(const Rows& of, i64 r, i64 begin, i64 end) {
    enum { C = SUMS / M < 8 ? SUMS / M : 8 };
    const float* x = of.x + r * of.depth;
    const T* w = (const T*)of.weight;
    float* out = of.out + r * of.columns;
    i64 c = begin;
    for (; c + C <= end; c += C) few_products<T, M, C>(of, x, w + c * of.depth, out + c, of.scales + c);
    for (; c < end; c++) few_products<T, M, 1>(of, x, w + c * of.depth, out + c, of.scales + c);
}
template <class T, int M = MOST_ROWS> static inline void last_products(const Rows& of, i64 r, i64 begin, i64 end) {
    if (of.rows - r >= M) some_products<T, M>(of, r, begin, end);
    else if constexpr (M > 1) last_products<T, M - 1>(of, r, begin, end);
}
template <class T> static int row_products(const Rows& of, i64 begin, i64 end) {
    for (i64 item = begin; item < end; item++)
        for (i64 r = 0; r < of.rows; r += MOST_ROWS)
            last_products<T>(of, r, item * of.part, least(of.columns, (item + 1) * of.part));
    return 0;
}
static int int8_weight(const Rows& of, i64 begin, i64 end) { return row_products<signed char>(of, begin, end); }
static int half_weight(const Rows& of, i64 begin, i64 end) { return row_products<uint16_t>(of, begin, end); }
ENTRY(int8_weight, Rows)
ENTRY(half_weight, Rows)

// out = x @ weight.T with weights (number - 8) * scale + zero. `factors` has the scale and the zero of each group and
// row. An item is a block of 64 rows, of which 32 bytes are a column: a byte has the numbers of rows i and i + 32. In
// the last rows, fewer than 64, a byte has the numbers of two neighbours.
struct Int4 {
    const float* x;
    const unsigned char* weight;
    const float* factors;
    float* out;
    i64 rows, depth, columns, group;
};
enum { BLOCK = 64, VECTORS = BLOCK / LANES };
// The numbers of a column, less 8. With AVX-512 a table is looked up by the lowest four bits.
static inline void numbers_of(const unsigned char* w, V* y) {
#if defined(__AVX512F__)
    const __m512 table = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    for (int j = 0; j < 2; j++) {
        const __m512i wide = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)(w + LANES * j)));
        y[j] = (V)_mm512_permutexvar_ps(wide, table);
        y[2 + j] = (V)_mm512_permutexvar_ps(_mm512_srli_epi32(wide, 4), table);
    }
#else
    typedef unsigned short Wide __attribute__((vector_size(16)));
    const S16 low = S16{} + 15, eight = S16{} + 8;
    for (int j = 0; j < 2; j++) {
        S16 x;
        memcpy(&x, w + LANES * j, sizeof x);
        y[j] = widened((x & low) - eight);
        y[2 + j] = widened(((S16)((Wide)x >> 4) & low) - eight);
    }
#endif
}
template <int M> static inline void int4_block(const Int4& of, const float* x, const unsigned char* w,
    const float* factors, float* out) {
    V total[M][VECTORS] = {};
    for (i64 g = 0; g < of.depth; g += of.group, factors += 2 * of.columns) {
        V sums[M][VECTORS] = {};
        float inputs[M] = {};
        for (i64 k = g; k < g + of.group; k++, w += BLOCK / 2) {
            V y[VECTORS];
            numbers_of(w, y);
            #pragma GCC unroll 4
            for (int m = 0; m < M; m++) {
                const float v = x[m * of.depth + k];
                inputs[m] += v;
                #pragma GCC unroll 4
                for (int j = 0; j < VECTORS; j++) sums[m][j] += v * y[j];
            }
        }
        #pragma GCC unroll 4
        for (int j = 0; j < VECTORS; j++) {
            V scale, zero;
            for (int i = 0; i < LANES; i++) {
                scale[i] = factors[2 * (LANES * j + i)];
                zero[i] = factors[2 * (LANES * j + i) + 1];
            }
            #pragma GCC unroll 4
            for (int m = 0; m < M; m++) total[m][j] += sums[m][j] * scale + inputs[m] * zero;
        }
    }
    for (int m = 0; m < M; m++) memcpy(out + m * of.columns, total[m], sizeof total[m]);
}
static void int4_rest(const Int4& of, i64 first) {
    const i64 n = of.columns - first;
    const unsigned char* w = of.weight + first * of.depth / 2;
    for (i64 r = 0; r < of.rows; r++) for (i64 c = 0; c < n; c++) {
        float total = 0;
        for (i64 k = 0; k < of.depth; k++) {
            const unsigned char byte = w[k * (n / 2) + c / 2];
            const float* f = of.factors + 2 * (k / of.group * of.columns + first + c);
            total += of.x[r * of.depth + k] * (((c & 1 ? byte >> 4 : byte & 15) - 8) * f[0] + f[1]);
        }
        of.out[r * of.columns + first + c] = total;
    }
}
static int int4_weight(const Int4& of, i64 begin, i64 end) {
    for (i64 item = begin; item < end; item++) {
        const i64 first = item * BLOCK;
        if (first + BLOCK > of.columns) {
            int4_rest(of, first);
            break;
        }
        const unsigned char* w = of.weight + first * of.depth / 2;
        for (i64 r = 0; r < of.rows; r += TALL) {
            const float* x = of.x + r * of.depth;
            float* out = of.out + r * of.columns + first;
            const float* factors = of.factors + 2 * first;
            switch (least(TALL, of.rows - r)) {
                case 1: int4_block<1>(of, x, w, factors, out); break;
                case 2: int4_block<2>(of, x, w, factors, out); break;
                case 3: int4_block<3>(of, x, w, factors, out); break;
                default: int4_block<4>(of, x, w, factors, out);
            }
        }
    }
    return 0;
}
ENTRY(int4_weight, Int4)

// out = sums of each group times its scale, of whole numbers with weights (number - 8). A float of `bytes` is a byte of
// two weights. Of each row of `x` the numbers of even places come first. An item is `part` rows of the weight.
struct Int4Levels {
    const int* x;
    const float *bytes, *scales;
    float* out;
    i64 rows, depth, columns, group, part;
};
static int int4_levels(const Int4Levels& of, i64 begin, i64 end) {
    const i64 half = of.depth / 2, groups = of.depth / of.group, size = of.group / 2;
    for (i64 c = begin * of.part; c < least(of.columns, end * of.part); c++) for (i64 r = 0; r < of.rows; r++) {
        const int *even = of.x + r * of.depth, *odd = even + half;
        const float *w = of.bytes + c * half, *scale = of.scales + c * groups;
        float total = 0;
        for (i64 g = 0; g < groups; g++, even += size, odd += size, w += size) {
            int sum = 0;
            for (i64 i = 0; i < size; i++) {
                const int both = (int)w[i];
                sum += even[i] * ((both & 15) - 8) + odd[i] * ((both >> 4 & 15) - 8);
            }
            float part = (float)sum * scale[g];
            asm("" : "+m"(part));  // two roundings, as without an engine
            total += part;
        }
        of.out[r * of.columns + c] = total;
    }
    return 0;
}
ENTRY(int4_levels, Int4Levels)
"""
)
