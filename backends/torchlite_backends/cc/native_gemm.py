"""float32 matrix products (GEMM) in C++ for CPUs with AVX-512.

With a hundred rows OpenBLAS reaches 73 to 85 GFLOP/s on one core of the measured machine (Zen 4), MKL 86 to 100, and
this kernel 95 to 109. Tiles of 8 rows and 48 columns stay in registers. Columns are packed for all rows, which are read
in place. The order of summation does not depend on the blocking, so results are the same for any number of threads.
Small blocks therefore only cost their start, and a late thread takes fewer of them. On two threads 101 rows of a ViT
take 0.7 of the time of OpenBLAS's parts. With a thousand rows OpenBLAS is as fast and serves.

With narrower vectors OpenBLAS is as fast, and there is no kernel for float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .native_kernel import F32, TYPE_DEFINITIONS, NativeKernel

# Source for programs that multiply: `multiply(matrices, added)` for `Matrices` with rows or columns of any stride;
# `added` accumulates.
MICRO_KERNEL = r"""
#if defined(__AVX512F__)
#include <immintrin.h>
enum { W = 16, TALL = 8, WIDE = 48, DEPTH = 256, PANELS = 8 };
typedef float V __attribute__((vector_size(64), aligned(4), may_alias));

struct Matrices {
    const float *a, *b, *bias;
    float* out;
    i64 rows, columns, depth, a_row, a_column, b_row, b_column, out_row;
};

// 16 vectors as the columns of the matrix that they are the rows of.
static inline void turn(__m512 r[16]) {
    __m512 t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) for (int j = 0; j < 2; j++) {
        const __m512d low = _mm512_castps_pd(t[i + j]), high = _mm512_castps_pd(t[i + j + 2]);
        r[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
        r[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
    }
    for (int i = 0; i < 16; i += 8) for (int j = 0; j < 4; j++) {
        t[i + j] = _mm512_shuffle_f32x4(r[i + j], r[i + j + 4], 0x88);
        t[i + j + 4] = _mm512_shuffle_f32x4(r[i + j], r[i + j + 4], 0xdd);
    }
    for (int j = 0; j < 8; j++) {
        r[j] = _mm512_shuffle_f32x4(t[j], t[j + 8], 0x88);
        r[j + 8] = _mm512_shuffle_f32x4(t[j], t[j + 8], 0xdd);
    }
}

// packed[k][j] = b[k, j] for `columns` of at most WIDE, with zeros up to a whole vector.
static void pack(const Matrices& m, i64 from, i64 depth, i64 column, i64 columns, float* packed) {
    const float* b = m.b + from * m.b_row + column * m.b_column;
    if (m.b_column == 1) {
        for (i64 k = 0; k < depth; k++, b += m.b_row, packed += WIDE) for (i64 j = 0; j < columns; j += W) {
            const __mmask16 some = columns - j < W ? (1u << (columns - j)) - 1 : 0xffff;
            _mm512_store_ps(packed + j, _mm512_maskz_loadu_ps(some, b + j));
        }
        return;
    }
    for (i64 j = 0; j < columns; j += W) for (i64 k = 0; k < depth; k += W) {
        const i64 deep = least(W, depth - k), many = least(W, columns - j);
        const __mmask16 some = (1u << deep) - 1;
        __m512 r[16];
        for (int i = 0; i < 16; i++)
            r[i] = i < many ? _mm512_maskz_loadu_ps(some, b + (j + i) * m.b_column + k) : _mm512_setzero_ps();
        turn(r);
        for (int i = 0; i < deep; i++) _mm512_store_ps(packed + (k + i) * WIDE + j, r[i]);
    }
}

// Columns of `a` for a tile or two of rows, one behind the other.
static void lay(const float* a, i64 a_column, i64 rows, i64 depth, float* few) {
    if (rows == 2 * TALL) {
        for (i64 k = 0; k < depth; k++, a += a_column) {
            memcpy(few + k * TALL, a, 4 * TALL);
            memcpy(few + (DEPTH + k) * TALL, a + TALL, 4 * TALL);
        }
        return;
    }
    const i64 first = least(TALL, rows), second = rows - first;
    for (i64 k = 0; k < depth; k++, a += a_column) {
        for (i64 r = 0; r < first; r++) few[k * first + r] = a[r];
        for (i64 r = 0; r < second; r++) few[DEPTH * TALL + k * second + r] = a[TALL + r];
    }
}

template <int M, int N>
static void tile(const float* a, i64 a_row, bool turned, const float* b, i64 depth, float* out, i64 out_row,
    const float* bias, bool add, __mmask16 some) {
    V sums[M][N];
    for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) sums[i][j] = V{};
    const float* rows[M];
    for (int i = 0; i < M; i++) rows[i] = a + i * a_row;
    if (!turned) {
        for (i64 k = 0; k < depth; k++, b += WIDE) {
            V right[N];
            for (int j = 0; j < N; j++) right[j] = *(const V*)(b + j * W);
            for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) sums[i][j] += rows[i][k] * right[j];
        }
    } else {
        for (i64 k = 0; k < depth; k++, b += WIDE, a += M) {
            V right[N];
            for (int j = 0; j < N; j++) right[j] = *(const V*)(b + j * W);
            for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) sums[i][j] += a[i] * right[j];
        }
    }
    for (int i = 0; i < M; i++, out += out_row) for (int j = 0; j < N; j++) {
        const __mmask16 here = j == N - 1 ? some : (__mmask16)0xffff;
        __m512 sum = (__m512)sums[i][j];
        if (add) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(here, out + j * W));
        else if (bias) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(here, bias + j * W));
        _mm512_mask_storeu_ps(out + j * W, here, sum);
    }
}
typedef void (*Tile)(const float*, i64, bool, const float*, i64, float*, i64, const float*, bool, __mmask16);
static const Tile tiles[8][3] = {
    {tile<1, 1>, tile<1, 2>, tile<1, 3>}, {tile<2, 1>, tile<2, 2>, tile<2, 3>}, {tile<3, 1>, tile<3, 2>, tile<3, 3>},
    {tile<4, 1>, tile<4, 2>, tile<4, 3>}, {tile<5, 1>, tile<5, 2>, tile<5, 3>}, {tile<6, 1>, tile<6, 2>, tile<6, 3>},
    {tile<7, 1>, tile<7, 2>, tile<7, 3>}, {tile<8, 1>, tile<8, 2>, tile<8, 3>},
};

static void multiply(const Matrices& m, bool added = false) {
    static thread_local float kept[PANELS * DEPTH * WIDE + 16];
    float* packed = (float*)(((uintptr_t)kept + 63) & ~(uintptr_t)63);
    const i64 blocks = (m.depth + DEPTH - 1) / DEPTH;
    // Rows that are whole pages apart would lie in the same few lines of the cache.
    const bool turned = m.a_column != 1, copied = turned || m.a_row % 512 == 0 && m.columns > WIDE;
    enum { STEP = DEPTH + W };
    float few[2 * TALL * STEP];
    for (i64 c = 0; c < m.columns; c += PANELS * WIDE) {
        const i64 wide = least(PANELS * WIDE, m.columns - c);
        for (i64 block = 0; block < blocks; block++) {
            const i64 from = m.depth * block / blocks, depth = m.depth * (block + 1) / blocks - from;
            for (i64 j = 0; j < wide; j += WIDE)
                pack(m, from, depth, c + j, least(WIDE, wide - j), packed + j * DEPTH);
            for (i64 i = 0; i < m.rows; i += TALL) {
                const i64 tall = least(TALL, m.rows - i);
                const float* a = m.a + i * m.a_row + from * m.a_column;
                i64 a_row = m.a_row;
                if (turned) {  // two tiles at a time, which a line of the cache has
                    if (i / TALL % 2 == 0) lay(a, m.a_column, least(2 * TALL, m.rows - i), depth, few);
                    a = few + i / TALL % 2 * TALL * DEPTH;
                } else if (copied) {
                    for (i64 r = 0; r < tall; r++) memcpy(few + r * STEP, a + r * a_row, 4 * depth);
                    a = few;
                    a_row = STEP;
                }
                for (i64 j = 0; j < wide; j += WIDE) {
                    const i64 n = least(WIDE, wide - j), vectors = (n + W - 1) / W;
                    const __mmask16 some = n % W ? (1u << n % W) - 1 : 0xffff;
                    tiles[tall - 1][vectors - 1](a, a_row, turned, packed + j * DEPTH, depth,
                        m.out + i * m.out_row + c + j, m.out_row, m.bias ? m.bias + c + j : nullptr, added || block,
                        some);
                }
            }
        }
    }
}
#endif
"""
_SOURCE = (
    TYPE_DEFINITIONS
    + MICRO_KERNEL
    + r"""
// A cell of the result is an item: `tall` rows and `wide` columns, `across` cells side by side.
struct Product { Matrices all; i64 tall, wide, across; };
static int cells(const Product& of, i64 begin, i64 end) {
#if defined(__AVX512F__)
    for (i64 cell = begin; cell < end; cell++) {
        const i64 row = cell / of.across * of.tall, column = cell % of.across * of.wide;
        Matrices m = of.all;
        m.a += row * m.a_row;
        m.b += column * m.b_column;
        m.out += row * m.out_row + column;
        if (m.bias) m.bias += column;
        m.rows = least(of.tall, m.rows - row);
        m.columns = least(of.wide, m.columns - column);
        multiply(m);
    }
    return 0;
#else
    return 1;
#endif
}
ENTRY(cells, Product)
"""
)
_tile_kernel = NativeKernel(_SOURCE, "cells", "QQQQ" + "q" * 11)
# Tile rows and columns, tiles packed at a time, maximum rows of a block and where they are not halved, and the
# sufficient number of blocks.
_TILE_ROWS, _TILE, _TILES, _TALL, _LOW, _CELLS = 8, 48, 8, 256, 64, 12
_VECTOR = 16
# Minimum multiplications for a second thread, and rows below which packing costs more than it saves.
_MIN_MULS_PER_THREAD, _MIN_ROWS_TO_PACK = 1 << 22, 16
# Minimum multiplications of a product for this kernel (40 us of OpenBLAS's time).
MIN_MULS = 1 << 21
# Maximum rows, or multiplications, for which this is faster than OpenBLAS (1.1 to 1.5 times); for larger products both
# use the processor equally well.
_MAX_ROWS, _MAX_MULS = 128, 1 << 27
# Bytes that say of a launch that it is worth all threads.
FORCE_THREADS = 1 << 40


def _compute_element_strides(x: np.ndarray) -> tuple[int, int] | None:
    """Return the strides of rows and columns in elements, one of which is 1; None for other arrays."""
    size = x.itemsize
    rows, columns = x.strides
    if rows % size or columns % size or rows < 0 or columns < 0 or size not in (rows, columns):
        return None
    if rows == size and columns != size:
        return 1, columns // size
    return (rows // size, 1) if columns == size else None


def _choose_block_shape(rows: int, columns: int) -> tuple[int, int]:
    """Return rows and columns of a block: each block below packs columns again, each one to the right may pack rows."""
    tall, wide = min(rows, _TALL), min(-(-columns // _TILE), _TILES)
    while -(-rows // tall) * -(-columns // (wide * _TILE)) < _CELLS:
        if tall >= 2 * _LOW and (wide == 1 or tall >= wide * _TILE):
            tall = -(-tall // 2)
        elif wide > 1:
            wide = -(-wide // 2)
        else:
            break
    return -(-tall // _TILE_ROWS) * _TILE_ROWS, wide * _TILE


def gemm(device: Any, a: Any, b: Any, out: Any, bias: Any) -> bool:
    """Compute `out = a @ b + bias`; return False if nothing was done."""
    rows, columns = out.shape
    if a.dtype != F32 or b.dtype != F32 or out.dtype != F32 or rows < _MIN_ROWS_TO_PACK or columns < _TILE:
        return False
    depth = a.shape[1]
    work = rows * columns * depth
    if rows > _MAX_ROWS and work >= _MAX_MULS or -columns % _VECTOR * 8 > columns:
        return False  # (the last vector would be too empty)
    of_a, of_b = _compute_element_strides(a), _compute_element_strides(b)
    if of_a is None or of_b is None or not out.flags.c_contiguous:
        return False
    tall, wide = _choose_block_shape(rows, columns)
    across, down = -(-columns // wide), -(-rows // tall)
    nbytes = FORCE_THREADS if work >= _MIN_MULS_PER_THREAD else 0
    return _tile_kernel(
        device, across * down, nbytes, a, b, 0 if bias is None else bias, out, rows, columns, depth,
        *of_a, *of_b, columns, tall, wide, across,
    )  # fmt: skip
