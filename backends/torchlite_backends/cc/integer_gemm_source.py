"""C++ of integer matrix products: 8-bit numbers with sums in int32, and wider integers that wrap around.

The right matrix of 8-bit numbers is packed: panels of 32 columns, in which four numbers of a column lie behind one
another. A panel of a thousand rows stays in the first cache while all tiles of twelve rows of the left matrix pass.
Instructions that add up four products (AVX-512 VNNI) read it as it is. Intel's AMX multiplies tiles of it, of four rows
or more, and eight times as many numbers at a time. AVX2 multiplies the even and the odd numbers of each four as 16-bit
integers, whose sums of two products are exact. Other processors run plain loops. All give the same numbers.

The left matrix has unsigned numbers, the packed one signed ones. 128 is added to signed numbers on the left, and
subtracted from unsigned ones on the right: these shifts are parts of the zero points, which the sums of the rows and
columns take into account.
"""

from __future__ import annotations

from .levels_source import LEVELS
from .native_kernel import TYPE_DEFINITIONS

WIDE = 32  # columns of a panel

# What all programs of products have before their kernels.
BASE = r"""
#if defined(__x86_64__)
#include <immintrin.h>
#define VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define AVX2 __attribute__((target("avx2")))
#if defined(__linux__) && defined(__has_include)
#if __has_include(<amxint8intrin.h>)  // the assembler knows tiles too
#define TILES
#endif
#endif
#endif
#define INLINE inline __attribute__((always_inline))
typedef unsigned char u8;
typedef signed char s8;
enum { WIDE = 32, TALL = 32, MOST = 256 };  // columns of a panel, the most rows of a tile and of a cell
"""
PRODUCT = r"""
// out = (a - a_zero) @ (b - b_zero) + bias, as integers, times a scale, or also rounded and shifted to bytes. `places`
// has for each product the offset of `a`, the number of the packed matrix, and that of its first row among the numbers
// for rows. Zero points, biases and scales are there for each row or each column: the steps from one to the next are 0
// or 1. Of floats, the scales of columns are multiplied by `factor` before, and then `shift`, numbers of columns, is
// added to them and `rectify` replaces negative ones by 0.
struct Product {
    const u8* a;
    const void* b;
    const int* sums;
    void* out;
    const i64* places;
    const int *a_zero, *b_zero, *bias;
    const float* scale;
    i64 rows, columns, depth, a_row, a_zeros, b_zeros, bias_rows, bias_columns, scale_rows, scale_columns;
    i64 kind, low, high, zero, out_row, tall, down, wide, across, isa;
    const float *factor, *shift;
    i64 rectify;
};
enum { INTEGERS, FLOATS, BYTES, LOW_BYTES };
// What all rows need of a panel's columns.
struct Columns { int sums[WIDE], zeros[WIDE], bias[WIDE]; float scales[WIDE], shift[WIDE]; };

// One zero point of all rows is a part of the bias.
static INLINE void describe(const Product& of, i64 first, i64 n, const int* sums, Columns& to) {
    for (i64 j = 0; j < WIDE; j++) {
        const bool there = j < n;
        to.zeros[j] = of.b_zero && there ? of.b_zero[(first + j) * of.b_zeros] : 0;
        to.sums[j] = sums[j] - (int)of.depth * to.zeros[j];
        to.bias[j] = of.bias && there && !of.bias_rows ? of.bias[(first + j) * of.bias_columns] : 0;
        if (of.a_zero && !of.a_zeros) to.bias[j] -= *of.a_zero * to.sums[j];
        to.scales[j] = of.scale && there ? of.scale[(first + j) * of.scale_columns] : 0.0f;
        if (of.factor) to.scales[j] *= *of.factor;
        to.shift[j] = of.shift && there ? of.shift[first + j] : 0.0f;
    }
}
// A whole panel's row needs no call.
static INLINE void give(char* out, const void* line, i64 bytes) {
    if (bytes == 4 * WIDE) memcpy(out, line, 4 * WIDE);
    else memcpy(out, line, bytes);
}
static INLINE void finish(const Product& of, const int (*tile)[WIDE], const int* row_sums, i64 row, i64 rows, i64 n,
    const Columns& columns, char* out) {
    const i64 size = of.kind == INTEGERS || of.kind == FLOATS ? 4 : 1;
    const float low = of.low - of.zero, high = of.high - of.zero;
    for (i64 r = 0; r < rows; r++, out += of.out_row * size) {
        int line[WIDE];
        const int bias = of.bias && of.bias_rows ? of.bias[row + r] : 0;
        for (int j = 0; j < WIDE; j++) line[j] = tile[r][j] + (columns.bias[j] + bias);
        if (of.a_zeros) {
            const int zero = of.a_zero[row + r];
            for (int j = 0; j < WIDE; j++) line[j] -= zero * columns.sums[j];
        }
        if (of.b_zero) {
            const int sum = row_sums[r];
            for (int j = 0; j < WIDE; j++) line[j] -= columns.zeros[j] * sum;
        }
        if (of.kind == INTEGERS) {
            give(out, line, n * 4);
            continue;
        }
        u8 bytes[WIDE];
        if (of.kind == LOW_BYTES) {
            for (int j = 0; j < WIDE; j++) bytes[j] = (u8)line[j];
            memcpy(out, bytes, n);
            continue;
        }
        float scaled[WIDE];
        if (of.scale_rows) {
            const float scale = of.scale[row + r];
            for (int j = 0; j < WIDE; j++) scaled[j] = (float)line[j] * scale;
        } else {
            for (int j = 0; j < WIDE; j++) scaled[j] = (float)line[j] * columns.scales[j];
        }
        if (of.kind == FLOATS) {
            if (of.shift) {
                asm("" : "+m"(scaled));  // two roundings, as without an engine
                for (int j = 0; j < WIDE; j++) scaled[j] += columns.shift[j];
            }
            if (of.rectify) for (int j = 0; j < WIDE; j++) scaled[j] = scaled[j] < 0.0f ? 0.0f : scaled[j];
            give(out, scaled, n * 4);
            continue;
        }
        for (int j = 0; j < WIDE; j++) {
            float x = scaled[j];
            x = x < low ? low : x;
            x = x > high ? high : x;
            x = (x + 12582912.0f) - 12582912.0f;  // rounds to even
            bytes[j] = (u8)((int)x + (int)of.zero);
        }
        memcpy(out, bytes, n);
    }
}
static inline int rest_of(const u8* a, i64 n) {  // no memcpy: a call would put all sums on the stack
    return a[0] | (n > 1 ? a[1] << 8 : 0) | (n > 2 ? a[2] << 16 : 0);
}
static inline int word_of(const u8* a) {
    int word;
    memcpy(&word, a, 4);
    return word;
}

struct Plain {
    enum { ROWS = 12 };
    static INLINE void tile(const u8* a, i64 row, const void* b, i64 depth, i64, i64 rows, int (*out)[WIDE]) {
        for (i64 i = 0; i < rows; i++) {
            const s8* right = (const s8*)b;
            int sums[WIDE] = {};
            for (i64 k = 0; k < depth; k += 4, right += 4 * WIDE) {
                u8 x[4] = {};
                memcpy(x, a + i * row + k, least(4, depth - k));
                for (int j = 0; j < WIDE; j++)
                    sums[j] += x[0] * right[4 * j] + x[1] * right[4 * j + 1] + x[2] * right[4 * j + 2]
                        + x[3] * right[4 * j + 3];
            }
            memcpy(out[i], sums, sizeof sums);
        }
    }
};
#if defined(__x86_64__)
struct Pairs {
    enum { ROWS = 12 };
    template <int M> static AVX2 inline void some(const u8* a, i64 row, const char* b, i64 depth, int (*out)[WIDE]) {
        __m256i sums[M][2];
        const __m256i low = _mm256_set1_epi16(255);
        for (int i = 0; i < M; i++) sums[i][0] = sums[i][1] = _mm256_setzero_si256();
        for (i64 k = 0; k < depth; k += 4, b += 4 * WIDE) {
            __m256i even[2], odd[2];
            for (int j = 0; j < 2; j++) {
                const __m256i right = _mm256_loadu_si256((const __m256i*)(b + 32 * j));
                even[j] = _mm256_srai_epi16(_mm256_slli_epi16(right, 8), 8);
                odd[j] = _mm256_srai_epi16(right, 8);
            }
            #pragma GCC unroll 8
            for (int i = 0; i < M; i++) {
                const u8* at = a + i * row + k;
                const __m256i x = _mm256_set1_epi32(depth - k < 4 ? rest_of(at, depth - k) : word_of(at));
                const __m256i first = _mm256_and_si256(x, low), second = _mm256_srli_epi16(x, 8);
                #pragma GCC unroll 2
                for (int j = 0; j < 2; j++)
                    sums[i][j] = _mm256_add_epi32(sums[i][j], _mm256_add_epi32(_mm256_madd_epi16(first, even[j]),
                        _mm256_madd_epi16(second, odd[j])));
            }
        }
        for (int i = 0; i < M; i++) for (int j = 0; j < 2; j++)
            _mm256_storeu_si256((__m256i*)(out[i] + 8 * j), sums[i][j]);
    }
    static AVX2 inline void tile(const u8* a, i64 row, const void* b, i64 depth, i64 vectors, i64 rows,
        int (*out)[WIDE]) {
        for (i64 v = 0; v < vectors; v++) for (i64 r = 0; r < rows; r += 3) {
            const u8* at = a + r * row;
            const char* columns = (const char*)b + 64 * v;
            int (*to)[WIDE] = (int(*)[WIDE])(out[r] + 16 * v);
            if (rows - r == 1) some<1>(at, row, columns, depth, to);
            else if (rows - r == 2) some<2>(at, row, columns, depth, to);
            else some<3>(at, row, columns, depth, to);
        }
    }
};
// In place of the intrinsic, for which g++ 12 copies each sum to another register and back.
static VNNI INLINE void add_products(__m512i& sum, __m512i x, __m512i y) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
}
struct Quads {
    enum { ROWS = 12 };
    // M rows with N vectors of columns. An addition takes five cycles, in which ten can begin: a few rows have several
    // sums of each result.
    template <int M, int N> static VNNI inline void some(const u8* a, i64 row, const char* b, i64 depth,
        int (*out)[WIDE]) {
        enum { S = M * N >= 10 ? 1 : M * N >= 5 ? 2 : 4 };
        __m512i sums[S][M][N];
        #pragma GCC unroll 4
        for (int s = 0; s < S; s++)
            #pragma GCC unroll 12
            for (int i = 0; i < M; i++)
                #pragma GCC unroll 2
                for (int j = 0; j < N; j++) sums[s][i][j] = _mm512_setzero_si512();
        i64 k = 0;
        for (; k + 4 * S <= depth; k += 4 * S, b += 4 * S * WIDE)
            #pragma GCC unroll 4
            for (int s = 0; s < S; s++) {
                __m512i right[N];
                #pragma GCC unroll 2
                for (int j = 0; j < N; j++) right[j] = _mm512_loadu_si512(b + 4 * s * WIDE + 64 * j);
                #pragma GCC unroll 12
                for (int i = 0; i < M; i++) {
                    const __m512i x = _mm512_set1_epi32(word_of(a + i * row + k + 4 * s));
                    #pragma GCC unroll 2
                    for (int j = 0; j < N; j++) add_products(sums[s][i][j], x, right[j]);
                }
            }
        for (; k < depth; k += 4, b += 4 * WIDE)
            #pragma GCC unroll 12
            for (int i = 0; i < M; i++) {
                const u8* at = a + i * row + k;
                const __m512i x = _mm512_set1_epi32(depth - k < 4 ? rest_of(at, depth - k) : word_of(at));
                #pragma GCC unroll 2
                for (int j = 0; j < N; j++) add_products(sums[0][i][j], x, _mm512_loadu_si512(b + 64 * j));
            }
        #pragma GCC unroll 12
        for (int i = 0; i < M; i++)
            #pragma GCC unroll 2
            for (int j = 0; j < N; j++) {
                #pragma GCC unroll 4
                for (int s = 1; s < S; s++) sums[0][i][j] = _mm512_add_epi32(sums[0][i][j], sums[s][i][j]);
                _mm512_storeu_si512(out[i] + 16 * j, sums[0][i][j]);
            }
    }
    template <int N> static VNNI inline void of_rows(const u8* a, i64 row, const char* b, i64 depth, i64 rows,
        int (*out)[WIDE]) {
        switch (rows) {
            case 1: some<1, N>(a, row, b, depth, out); break;
            case 2: some<2, N>(a, row, b, depth, out); break;
            case 3: some<3, N>(a, row, b, depth, out); break;
            case 4: some<4, N>(a, row, b, depth, out); break;
            case 5: some<5, N>(a, row, b, depth, out); break;
            case 6: some<6, N>(a, row, b, depth, out); break;
            case 7: some<7, N>(a, row, b, depth, out); break;
            case 8: some<8, N>(a, row, b, depth, out); break;
            case 9: some<9, N>(a, row, b, depth, out); break;
            case 10: some<10, N>(a, row, b, depth, out); break;
            case 11: some<11, N>(a, row, b, depth, out); break;
            default: some<12, N>(a, row, b, depth, out);
        }
    }
    static VNNI inline void tile(const u8* a, i64 row, const void* b, i64 depth, i64 vectors, i64 rows,
        int (*out)[WIDE]) {
        if (vectors == 2) of_rows<2>(a, row, (const char*)b, depth, rows, out);
        else of_rows<1>(a, row, (const char*)b, depth, rows, out);
    }
};
#if defined(TILES)
// Intel's AMX: a tile has 16 rows of 64 bytes. Those of 16 rows of numbers and of a panel's half give 16 x 16 sums of
// 64 products each.
#define ZERO(c) asm volatile("tilezero %%tmm" #c ::)
#define LOAD(c, from, step) asm volatile("tileloadd (%0, %1, 1), %%tmm" #c :: "r"(from), "r"((i64)(step)) : "memory")
#define STORE(c, to) asm volatile("tilestored %%tmm" #c ", (%0, %1, 1)" :: "r"(to), "r"((i64)(4 * WIDE)) : "memory")
#define MULTIPLY(a, b, c) asm volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)
#define MULTIPLY_SIGNED(a, b, c) asm volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)
struct Tiles {
    enum { ROWS = 32, FEWEST = 4, DEEP = 64 };
    i64 known = 0;  // rows for which the registers are configured
    ~Tiles() {
        if (known) asm volatile("tilerelease" ::);
    }
    // Zero if the processor has tiles, and the system saves them for this process.
    static int refused() {
        unsigned a = 7, b, c = 0, d;
        asm("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
        if ((d >> 24 & 3) != 3) return 1;
        i64 result;
        asm volatile("syscall" : "=a"(result) : "a"(158ll), "D"(0x1023ll), "S"(18ll) : "rcx", "r11", "memory");
        return result != 0;  // arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)
    }
    static bool there() {
        static int known = 0;  // set to the same number by all threads
        int found = __atomic_load_n(&known, __ATOMIC_RELAXED);
        if (!found) __atomic_store_n(&known, found = 1 + refused(), __ATOMIC_RELAXED);
        return found == 1;
    }
    void configure(i64 rows) {
        struct { u8 palette, start, none[14]; unsigned short bytes[16]; u8 rows[16]; } to = {};
        to.palette = 1;
        for (int c = 0; c < 8; c++) {
            to.rows[c] = c > 5 ? 16 : (u8)(c == 2 || c == 3 || c == 5 ? (rows > 16 ? rows - 16 : 1) : least(rows, 16));
            to.bytes[c] = 64;
        }
        asm volatile("ldtilecfg %0" :: "m"(to));
        known = rows;
    }
    // The sums of 32 lines of signed numbers with a panel of rows, of which the second half may be left out: a line of
    // results for each line. `rest` has the numbers behind the last whole 64 of the lines, or is null.
    void lines(const s8* a, i64 line, const char* panel, i64 whole, const s8* rest, bool both, int (*out)[WIDE]) {
        ZERO(0); ZERO(1); ZERO(2); ZERO(3);
        for (i64 k = 0; k < whole + (rest != nullptr); k++, a += DEEP, panel += DEEP * WIDE) {
            const s8* at = k < whole ? a : rest;
            const i64 step = k < whole ? line : DEEP;
            LOAD(4, at, step);
            LOAD(6, panel, 4 * WIDE);
            MULTIPLY_SIGNED(4, 6, 0);
            LOAD(5, at + 16 * step, step);
            MULTIPLY_SIGNED(5, 6, 2);
            if (!both) continue;
            LOAD(7, panel + 64, 4 * WIDE);
            MULTIPLY_SIGNED(4, 7, 1);
            MULTIPLY_SIGNED(5, 7, 3);
        }
        STORE(0, out);
        STORE(1, &out[0][16]);
        STORE(2, out + 16);
        STORE(3, &out[16][16]);
    }
    VNNI void tile(const u8* a, i64 row, const void* panel, i64 depth, i64 vectors, i64 rows, int (*out)[WIDE]) {
        const char* b = (const char*)panel;
        const i64 whole = depth / DEEP;
        if (known != rows) configure(rows);
        ZERO(0); ZERO(1); ZERO(2); ZERO(3);
        const u8* at = a;
        if (rows > 16) for (i64 k = 0; k < whole; k++, at += DEEP, b += DEEP * WIDE) {
            LOAD(4, at, row);
            LOAD(6, b, 4 * WIDE);
            MULTIPLY(4, 6, 0);
            LOAD(5, at + 16 * row, row);
            MULTIPLY(5, 6, 2);
            LOAD(7, b + 64, 4 * WIDE);
            MULTIPLY(4, 7, 1);
            MULTIPLY(5, 7, 3);
        } else for (i64 k = 0; k < whole; k++, at += DEEP, b += DEEP * WIDE) {
            LOAD(4, at, row);
            LOAD(6, b, 4 * WIDE);
            MULTIPLY(4, 6, 0);
            LOAD(7, b + 64, 4 * WIDE);
            MULTIPLY(4, 7, 1);
        }
        STORE(0, out);
        STORE(1, &out[0][16]);
        if (rows > 16) {
            STORE(2, out + 16);
            STORE(3, &out[16][16]);
        }
        if (depth % DEEP == 0) return;
        int rest[Quads::ROWS][WIDE] = {};
        for (i64 r = 0; r < rows; r += Quads::ROWS) {
            const i64 some = least(Quads::ROWS, rows - r);
            Quads::tile(at + r * row, row, b, depth % DEEP, vectors, some, rest);
            for (i64 i = 0; i < some; i++) for (int j = 0; j < WIDE; j++) out[r + i][j] += rest[i][j];
        }
    }
};
#undef ZERO
#undef LOAD
#undef STORE
#undef MULTIPLY
#undef MULTIPLY_SIGNED
#endif
#endif
template <class Isa> static INLINE int cells(const Product& of, i64 begin, i64 end) {
    const i64 quads = (of.depth + 3) / 4, panels = (of.columns + WIDE - 1) / WIDE;
    const i64 size = of.kind == INTEGERS || of.kind == FLOATS ? 4 : 1;
    alignas(64) int tile[TALL][WIDE] = {}, row_sums[MOST] = {};
    Columns columns;
    Isa isa;
    for (i64 cell = begin; cell < end; cell++) {
        const i64 product = cell / (of.down * of.across), place = cell % (of.down * of.across);
        const i64 top = place / of.across * of.tall, rows = least(of.tall, of.rows - top);
        const i64 first = place % of.across * of.wide, last = least(panels, first + of.wide);
        const u8* a = of.a + of.places[3 * product] + top * of.a_row;
        const i64 matrix = of.places[3 * product + 1] * panels;
        if (of.b_zero) for (i64 r = 0; r < rows; r++) {
            int sum = 0;
            const u8* line = a + r * of.a_row;
            for (i64 k = 0; k < of.depth; k++) sum += line[k];
            row_sums[r] = sum;
        }
        for (i64 panel = first; panel < last; panel++) {
            const i64 column = panel * WIDE, n = least(WIDE, of.columns - column), vectors = (n + 15) / 16;
            const char* b = (const char*)of.b + (matrix + panel) * quads * 4 * WIDE;
            describe(of, column, n, of.sums + (matrix + panel) * WIDE, columns);
            char* out = (char*)of.out + ((product * of.rows + top) * of.out_row + column) * size;
            const i64 number = of.places[3 * product + 2] + top;
            // Tiles of equal height: the instructions of a low one wait for each other.
            const i64 tiles = (rows + Isa::ROWS - 1) / Isa::ROWS, step = (rows + tiles - 1) / tiles;
            for (i64 r = 0; r < rows; r += step) {
                const i64 some = least(step, rows - r);
                isa.tile(a + r * of.a_row, of.a_row, b, of.depth, vectors, some, tile);
                finish(of, tile, row_sums + r, number + r, some, n, columns, out + r * of.out_row * size);
            }
        }
    }
    return 0;
}
#if defined(__x86_64__)
static VNNI int cells_by_quads(const Product& of, i64 begin, i64 end) { return cells<Quads>(of, begin, end); }
#if defined(TILES)
static VNNI int cells_by_tiles(const Product& of, i64 begin, i64 end) { return cells<Tiles>(of, begin, end); }
#endif
static AVX2 int cells_by_pairs(const Product& of, i64 begin, i64 end) { return cells<Pairs>(of, begin, end); }
static int best() {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512vl")) return 3;
    return __builtin_cpu_supports("avx2") ? 2 : 1;
}
#endif
// `isa` is 0 for the best instructions that there are: 4 for AMX, 3 for VNNI, 2 for AVX2, 1 for none of these.
static int product(const Product& of, i64 begin, i64 end) {
#if defined(__x86_64__)
    static int known = 0;  // set to the same number by all threads
    int found = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!found) __atomic_store_n(&known, found = best(), __ATOMIC_RELAXED);
    const int isa = of.isa && of.isa < found ? (int)of.isa : found;
#if defined(TILES)
    if (isa == 3 && of.isa != 3 && of.rows >= Tiles::FEWEST && of.depth >= Tiles::DEEP && Tiles::there())
        return cells_by_tiles(of, begin, end);
#endif
    if (isa == 3) return cells_by_quads(of, begin, end);
    if (isa == 2) return cells_by_pairs(of, begin, end);
#endif
    return cells<Plain>(of, begin, end);
}
"""
BYTES = (
    TYPE_DEFINITIONS
    + BASE
    + r"""
// Exclusive or with `flip`, 0 or 128 in each byte, makes the numbers signed. Rows behind the last are 0 then.
struct Packing {
    const u8* from;
    void *to, *sums;
    i64 depth, columns, row, column, matrix, flip, panels;
};
static void pack_rows(const u8* const* rows, unsigned flip, void* to) {
#if defined(__SSE2__)
    const __m128i change = _mm_set1_epi32(flip);
    for (int j = 0; j < WIDE; j += 16) {
        __m128i r[4];
        for (int q = 0; q < 4; q++) r[q] = _mm_xor_si128(_mm_loadu_si128((const __m128i*)(rows[q] + j)), change);
        const __m128i a = _mm_unpacklo_epi8(r[0], r[1]), b = _mm_unpackhi_epi8(r[0], r[1]);
        const __m128i c = _mm_unpacklo_epi8(r[2], r[3]), d = _mm_unpackhi_epi8(r[2], r[3]);
        __m128i* out = (__m128i*)((char*)to + 4 * j);
        _mm_storeu_si128(out, _mm_unpacklo_epi16(a, c));
        _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(a, c));
        _mm_storeu_si128(out + 2, _mm_unpacklo_epi16(b, d));
        _mm_storeu_si128(out + 3, _mm_unpackhi_epi16(b, d));
    }
#else
    for (int j = 0; j < WIDE; j++) for (int q = 0; q < 4; q++) ((u8*)to)[4 * j + q] = rows[q][j] ^ (u8)flip;
#endif
}
// Packs 16 numbers of all columns of a panel, which lie behind one another in each: a transpose of words.
static void pack_lines(const u8* from, i64 column, unsigned flip, char* to) {
#if defined(__SSE2__)
    const __m128i change = _mm_set1_epi32(flip);
    for (int j = 0; j < WIDE; j += 4, from += 4 * column, to += 16) {
        __m128i c[4];
        for (int q = 0; q < 4; q++)
            c[q] = _mm_xor_si128(_mm_loadu_si128((const __m128i*)(from + q * column)), change);
        const __m128i a = _mm_unpacklo_epi32(c[0], c[1]), b = _mm_unpackhi_epi32(c[0], c[1]);
        const __m128i d = _mm_unpacklo_epi32(c[2], c[3]), e = _mm_unpackhi_epi32(c[2], c[3]);
        _mm_storeu_si128((__m128i*)to, _mm_unpacklo_epi64(a, d));
        _mm_storeu_si128((__m128i*)(to + 4 * WIDE), _mm_unpackhi_epi64(a, d));
        _mm_storeu_si128((__m128i*)(to + 8 * WIDE), _mm_unpacklo_epi64(b, e));
        _mm_storeu_si128((__m128i*)(to + 12 * WIDE), _mm_unpackhi_epi64(b, e));
    }
#else
    for (int q = 0; q < 4; q++) for (int j = 0; j < WIDE; j++) {
        unsigned word;
        memcpy(&word, from + j * column + 4 * q, 4);
        word ^= flip;
        memcpy(to + 4 * (q * WIDE + j), &word, 4);
    }
#endif
}
// The sums of the columns of a packed panel.
static void add_columns(const void* panel, i64 quads, int* sums) {
#if defined(__AVX2__)
    const __m256i bytes = _mm256_set1_epi8(1), pairs = _mm256_set1_epi16(1);
    __m256i all[WIDE / 8] = {};
    const char* at = (const char*)panel;
    for (i64 k = 0; k < quads; k++, at += 4 * WIDE) for (int j = 0; j < WIDE / 8; j++)
        all[j] = _mm256_add_epi32(all[j], _mm256_madd_epi16(
            _mm256_maddubs_epi16(bytes, _mm256_loadu_si256((const __m256i*)(at + 32 * j))), pairs));
    memcpy(sums, all, sizeof all);
    return;
#endif
    int total[WIDE] = {};
    const int* words = (const int*)panel;
    for (i64 k = 0; k < quads; k++, words += WIDE) for (int j = 0; j < WIDE; j++) {
        const int w = words[j];
        total[j] += (w << 24 >> 24) + (w << 16 >> 24) + (w << 8 >> 24) + (w >> 24);
    }
    memcpy(sums, total, sizeof total);
}
static int pack(const Packing& of, i64 begin, i64 end) {
    const i64 quads = (of.depth + 3) / 4;
    const unsigned flip = (unsigned)of.flip;
    u8 lines[4][WIDE];
    for (i64 item = begin; item < end; item++) {
        const i64 first = item % of.panels * WIDE, n = least(WIDE, of.columns - first);
        const u8* from = of.from + item / of.panels * of.matrix + first * of.column;
        char *panel = (char*)of.to + item * quads * 4 * WIDE, *to = panel;
        i64 k = 0;
        if (of.row == 1 && n == WIDE) for (; k + 16 <= of.depth; k += 16, from += 16, to += 16 * WIDE)
            pack_lines(from, of.column, flip, to);
        for (; k < of.depth; k += 4, from += 4 * of.row, to += 4 * WIDE) {
            const i64 deep = least(4, of.depth - k);
            if (of.column == 1 && of.row != 1) {
                const u8* rows[4];
                for (i64 q = 0; q < 4; q++) {
                    rows[q] = from + q * of.row;
                    if (q < deep && n == WIDE) continue;
                    memset(lines[q], (int)(flip & 255), WIDE);
                    if (q < deep) memcpy(lines[q], rows[q], n);
                    rows[q] = lines[q];
                }
                pack_rows(rows, flip, to);
                continue;
            }
            for (i64 j = 0; j < WIDE; j++) {
                unsigned word = flip;
                const u8* at = from + j * of.column;
                if (j < n && deep == 4 && of.row == 1) memcpy(&word, at, 4);
                else if (j < n) for (i64 q = 0; q < deep; q++) ((u8*)&word)[q] = at[q * of.row];
                word ^= flip;
                memcpy(to + 4 * j, &word, 4);
            }
        }
        add_columns(panel, quads, (int*)of.sums + item * WIDE);
    }
    return 0;
}
ENTRY(pack, Packing)

// Columns of images: the windows of a convolution, in the order of the results. `taps` are for each number of a window
// the place in an image that is padded, `places` for each window. A run of `wide` windows lies `step` bytes apart.
struct Windows {
    const u8* images;
    void *to, *sums;
    const int *taps, *places;
    i64 depth, columns, image, flip, panels, wide, step;
};
static int pack_windows(const Windows& of, i64 begin, i64 end) {
    const i64 quads = (of.depth + 3) / 4;
    const unsigned flip = (unsigned)of.flip;
    u8 lines[4][WIDE];
    for (i64 item = begin; item < end; item++) {
        const i64 first = item % of.panels * WIDE, n = least(WIDE, of.columns - first);
        const u8* image = of.images + item / of.panels * of.image;
        char *panel = (char*)of.to + item * quads * 4 * WIDE, *to = panel;
        const u8* const rows[4] = {lines[0], lines[1], lines[2], lines[3]};
        if (n < WIDE) memset(lines, (int)(flip & 255), sizeof lines);
        for (i64 k = 0; k < of.depth; k += 4, to += 4 * WIDE) {
            for (i64 q = 0; q < 4; q++) {
                if (k + q >= of.depth) {
                    memset(lines[q], (int)(flip & 255), WIDE);
                    continue;
                }
                const u8* from = image + of.taps[k + q];
                for (i64 j = 0; j < n;) {
                    const i64 m = least(n - j, of.wide - (first + j) % of.wide);
                    const u8* at = from + of.places[first + j];
                    if (of.step == 1) memcpy(lines[q] + j, at, m);
                    else for (i64 i = 0; i < m; i++) lines[q][j + i] = at[i * of.step];
                    j += m;
                }
            }
            pack_rows(rows, flip, to);
        }
        add_columns(panel, quads, (int*)of.sums + item * WIDE);
    }
    return 0;
}
ENTRY(pack_windows, Windows)

"""
    + PRODUCT
    + r"""
ENTRY(product, Product)

// The product of a few rows with a matrix that is not packed, whose columns lie as lines: `line` bytes from one to the
// next. `b` and `flip` are those of `Packing`. Items are panels.
struct Lines { Product to; i64 line, flip; };
// The sums of rows and of the line itself with a line, from number k on.
static INLINE void rest_of_line(const u8* a, i64 row, i64 rows, const u8* b, u8 flip, i64 k, i64 depth,
    int (*out)[WIDE], int& sum) {
    for (; k < depth; k++) {
        const int y = (s8)(b[k] ^ flip);
        sum += y;
        for (i64 r = 0; r < rows; r++) out[r][0] += a[r * row + k] * y;
    }
}
struct PlainLine {
    static INLINE void line(const u8* a, i64 row, i64 rows, const u8* b, u8 flip, i64 depth, int (*out)[WIDE],
        int& sum) {
        for (i64 r = 0; r < rows; r++) {
            int total = 0;
            for (i64 k = 0; k < depth; k++) total += a[r * row + k] * (s8)(b[k] ^ flip);
            out[r][0] = total;
        }
        int total = 0;
        for (i64 k = 0; k < depth; k++) total += (s8)(b[k] ^ flip);
        sum = total;
    }
};
#if defined(__x86_64__)
struct VectorLine {
    template <int M> static VNNI inline void some(const u8* a, i64 row, const u8* b, u8 flip, i64 depth,
        int (*out)[WIDE], int& sum) {
        __m512i sums[M], own = _mm512_setzero_si512();
        #pragma GCC unroll 8
        for (int r = 0; r < M; r++) sums[r] = _mm512_setzero_si512();
        const __m512i change = _mm512_set1_epi8((char)flip), ones = _mm512_set1_epi8(1);
        i64 k = 0;
        for (; k + 64 <= depth; k += 64) {
            const __m512i y = _mm512_xor_si512(_mm512_loadu_si512(b + k), change);
            add_products(own, ones, y);
            #pragma GCC unroll 8
            for (int r = 0; r < M; r++) add_products(sums[r], _mm512_loadu_si512(a + r * row + k), y);
        }
        sum = _mm512_reduce_add_epi32(own);
        #pragma GCC unroll 8
        for (int r = 0; r < M; r++) out[r][0] = _mm512_reduce_add_epi32(sums[r]);
        rest_of_line(a, row, M, b, flip, k, depth, out, sum);
    }
    static VNNI inline void line(const u8* a, i64 row, i64 rows, const u8* b, u8 flip, i64 depth, int (*out)[WIDE],
        int& sum) {
        for (i64 r = 0; r < rows; r += 8, a += 8 * row, out += 8) switch (least(8, rows - r)) {
            case 1: some<1>(a, row, b, flip, depth, out, sum); break;
            case 2: some<2>(a, row, b, flip, depth, out, sum); break;
            case 3: some<3>(a, row, b, flip, depth, out, sum); break;
            case 4: some<4>(a, row, b, flip, depth, out, sum); break;
            case 5: some<5>(a, row, b, flip, depth, out, sum); break;
            case 6: some<6>(a, row, b, flip, depth, out, sum); break;
            case 7: some<7>(a, row, b, flip, depth, out, sum); break;
            default: some<8>(a, row, b, flip, depth, out, sum);
        }
    }
};
#endif
template <class Isa> static INLINE int panels_of_lines(const Lines& all, i64 begin, i64 end) {
    const Product& of = all.to;
    const i64 size = of.kind == INTEGERS || of.kind == FLOATS ? 4 : 1;
    int tile[TALL][WIDE] = {}, row_sums[TALL] = {}, sums[WIDE];
    Columns columns;
    if (of.b_zero) for (i64 r = 0; r < of.rows; r++)
        for (i64 k = 0; k < of.depth; k++) row_sums[r] += of.a[r * of.a_row + k];
    for (i64 panel = begin; panel < end; panel++) {
        const i64 first = panel * WIDE, n = least(WIDE, of.columns - first);
        const u8* b = (const u8*)of.b + first * all.line;
        for (i64 j = 0; j < n; j++)
            Isa::line(of.a, of.a_row, of.rows, b + j * all.line, (u8)all.flip, of.depth,
                (int(*)[WIDE])(tile[0] + j), sums[j]);
        describe(of, first, n, sums, columns);
        finish(of, tile, row_sums, 0, of.rows, n, columns, (char*)of.out + first * size);
    }
    return 0;
}
#if defined(__x86_64__)
static VNNI int vector_lines(const Lines& all, i64 begin, i64 end) {
    return panels_of_lines<VectorLine>(all, begin, end);
}
#endif
static int lines(const Lines& all, i64 begin, i64 end) {
#if defined(__x86_64__)
    if (best() == 3 && (all.to.isa == 0 || all.to.isa > 2)) return vector_lines(all, begin, end);
#endif
    return panels_of_lines<PlainLine>(all, begin, end);
}
ENTRY(lines, Lines)

// The same of signed numbers without zero points by Intel's AMX, whose first tile has lines as they are. `a` has panels
// of rows, packed to a multiple of 64 numbers. There are 32 lines or more. Refused without AMX.
#if defined(TILES)
static INLINE void transpose_four(const int* from, int* to) {
    __m128i r[4];
    for (int q = 0; q < 4; q++) r[q] = _mm_loadu_si128((const __m128i*)(from + q * WIDE));
    const __m128i a = _mm_unpacklo_epi32(r[0], r[1]), b = _mm_unpackhi_epi32(r[0], r[1]);
    const __m128i c = _mm_unpacklo_epi32(r[2], r[3]), d = _mm_unpackhi_epi32(r[2], r[3]);
    _mm_storeu_si128((__m128i*)to, _mm_unpacklo_epi64(a, c));
    _mm_storeu_si128((__m128i*)(to + WIDE), _mm_unpackhi_epi64(a, c));
    _mm_storeu_si128((__m128i*)(to + 2 * WIDE), _mm_unpacklo_epi64(b, d));
    _mm_storeu_si128((__m128i*)(to + 3 * WIDE), _mm_unpackhi_epi64(b, d));
}
static VNNI int tiles_of_lines(const Lines& all, i64 begin, i64 end) {
    enum { DEEP = Tiles::DEEP };
    const Product& of = all.to;
    const i64 size = of.kind == INTEGERS || of.kind == FLOATS ? 4 : 1;
    const i64 whole = of.depth / DEEP, tail = of.depth % DEEP, steps = whole + (tail > 0);
    // The last panel's lines begin before it.
    alignas(64) int sums[WIDE][WIDE], tile[WIDE + 1][WIDE] = {};
    alignas(64) s8 rest[WIDE][DEEP] = {};
    const int none[WIDE] = {};
    Columns columns;
    Tiles tiles;
    tiles.configure(WIDE);
    for (i64 panel = begin; panel < end; panel++) {
        const i64 first = panel * WIDE, from = least(first, of.columns - WIDE), n = least(WIDE, of.columns - first);
        const s8* lines = (const s8*)of.b + from * all.line;
        if (tail) for (i64 j = 0; j < WIDE; j++) memcpy(rest[j], lines + j * all.line + whole * DEEP, tail);
        describe(of, first, n, none, columns);
        for (i64 r = 0; r < of.rows; r += WIDE) {
            const i64 some = least(WIDE, of.rows - r);
            tiles.lines(lines, all.line, (const char*)of.a + r * steps * DEEP, whole, tail ? rest[0] : nullptr,
                some > 16, sums);
            for (i64 i = 0; i < WIDE; i += 4) for (i64 j = 0; j < some; j += 4)
                transpose_four(&sums[i][j], &tile[j][i]);
            finish(of, (const int(*)[WIDE])(tile[0] + (first - from)), none, r, some, n, columns,
                (char*)of.out + (r * of.out_row + first) * size);
        }
    }
    return 0;
}
#endif
static int tile_lines(const Lines& all, i64 begin, i64 end) {
#if defined(TILES)
    if (best() == 3 && Tiles::there()) return tiles_of_lines(all, begin, end);
#endif
    return 1;
}
ENTRY(tile_lines, Lines)
"""
    + LEVELS
)

INTEGERS = (
    TYPE_DEFINITIONS
    + r"""
#if defined(__AVX512F__)
enum { REGISTER = 64, TALL = 6 };
#else
enum { REGISTER = 32, TALL = 2 };
#endif
enum { VECTORS = 4, DEPTH = 256 };
// Products of integers that wrap around. Steps are in elements. `places` has the bytes from the beginning of `a` and of
// `b` to the matrices of each product.
struct Integers {
    const char *a, *b;
    char* out;
    const i64* places;
    i64 rows, columns, depth, a_row, a_column, b_row, b_column, tall, down, wide, across;
};
template <class T> struct Line {
    typedef T V __attribute__((vector_size(REGISTER), aligned(8), may_alias));
    enum { W = REGISTER / sizeof(T), WIDE = W * VECTORS };
};
template <class T, int M> static void tile(const T* a, i64 row, i64 column, const T* b, i64 depth, T* out, i64 out_row,
    i64 n, bool add) {
    typedef typename Line<T>::V V;
    enum { W = Line<T>::W, WIDE = Line<T>::WIDE };
    V sums[M][VECTORS];
    for (int i = 0; i < M; i++) for (int j = 0; j < VECTORS; j++) sums[i][j] = V{};
    for (i64 k = 0; k < depth; k++, a += column, b += WIDE) {
        V right[VECTORS];
        for (int j = 0; j < VECTORS; j++) right[j] = *(const V*)(b + j * W);
        for (int i = 0; i < M; i++) {
            const V x = V{} + a[i * row];
            for (int j = 0; j < VECTORS; j++) sums[i][j] += x * right[j];
        }
    }
    for (int i = 0; i < M; i++, out += out_row) {
        T line[WIDE];
        memcpy(line, sums[i], sizeof line);
        if (add) for (i64 j = 0; j < n; j++) out[j] += line[j];
        else memcpy(out, line, n * sizeof(T));
    }
}
template <class T> static int cells(const Integers& of, i64 begin, i64 end) {
    enum { WIDE = Line<T>::WIDE };
    alignas(64) static thread_local T packed[DEPTH * WIDE];
    for (i64 cell = begin; cell < end; cell++) {
        const i64 product = cell / (of.down * of.across), place = cell % (of.down * of.across);
        const i64 top = place / of.across * of.tall, rows = least(of.tall, of.rows - top);
        const i64 first = place % of.across * of.wide * WIDE, last = least(of.columns, first + of.wide * WIDE);
        const T* a = (const T*)(of.a + of.places[2 * product]) + top * of.a_row;
        const T* b = (const T*)(of.b + of.places[2 * product + 1]);
        T* out = (T*)of.out + (product * of.rows + top) * of.columns;
        for (i64 c = first; c < last; c += WIDE) for (i64 k = 0; k < of.depth; k += DEPTH) {
            const i64 n = least(WIDE, last - c), depth = least(DEPTH, of.depth - k);
            for (i64 d = 0; d < depth; d++) {
                const T* from = b + (k + d) * of.b_row + c * of.b_column;
                T* to = packed + d * WIDE;
                if (of.b_column == 1) memcpy(to, from, n * sizeof(T));
                else for (i64 j = 0; j < n; j++) to[j] = from[j * of.b_column];
                for (i64 j = n; j < WIDE; j++) to[j] = 0;
            }
            i64 r = 0;
            for (; r + TALL <= rows; r += TALL)
                tile<T, TALL>(a + r * of.a_row + k * of.a_column, of.a_row, of.a_column, packed, depth,
                    out + r * of.columns + c, of.columns, n, k > 0);
            for (; r < rows; r++)
                tile<T, 1>(a + r * of.a_row + k * of.a_column, of.a_row, of.a_column, packed, depth,
                    out + r * of.columns + c, of.columns, n, k > 0);
        }
    }
    return 0;
}
static int integers_2(const Integers& of, i64 begin, i64 end) { return cells<int16_t>(of, begin, end); }
static int integers_4(const Integers& of, i64 begin, i64 end) { return cells<int32_t>(of, begin, end); }
static int integers_8(const Integers& of, i64 begin, i64 end) { return cells<int64_t>(of, begin, end); }
ENTRY(integers_2, Integers)
ENTRY(integers_4, Integers)
ENTRY(integers_8, Integers)
"""
)
