"""Scaled dot product attention on NVIDIA's tensor cores, for half and bfloat16: FlashAttention-2 (Dao, 2023), CUDA
only.

A block of four warps owns rows of one side (queries, or keys for their gradients), 16 * MT per warp, and iterates over
the other side's rows, OTHER at a time. Both sides are in shared memory in rows of DIM elements, zero-padded, whose
16-byte chunks are swizzled so that those of 8 rows fall in different banks. Scores are computed in registers in the
layout that the next product needs. The forward pass stores the log-sum-exp of each row. The backward pass recomputes
the weights, once for the gradient of the queries and once for those of keys and values. No two blocks add to one
result, so it is deterministic.

Every kernel stays within 48 KiB of shared memory and 255 registers per thread, so that two blocks share a
multiprocessor: three with up to 168 registers, one if the multiprocessor has 64 KiB. WIDE tiles read the other side's
rows from shared memory half as often; NARROW ones make twice as many blocks, with registers to spare for masks.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

from .tensor_cores import TENSOR_CORES

WARPS = 4
MAX_FEATURES = 128  # features
# elements of 16 bytes, copied at a time: the number of features of an operand, and its other strides, are multiples
ALIGNMENT = 8
CAPABILITIES = {"f16": (7, 5), "bf16": (8, 0)}


class Tiles(NamedTuple):
    """Tile sizes of a kernel: MT, OTHER, and the number of operands whose own rows stay in registers."""

    strips: int
    other: int
    held: int

    @property
    def own(self) -> int:
        """Rows that a block owns."""
        return 16 * WARPS * self.strips

    @property
    def macros_source(self) -> dict[str, str]:
        """Return the definitions."""
        return {"MT": str(self.strips), "OTHER": str(self.other), "HELD": str(self.held)}


# By kernel and DIM. Chosen to avoid spills (except for 12 bytes on sm_75 in the wide backward_key of 64).
SMALL_TILES = {
    ("forward", 32): Tiles(1, 64, 1),
    ("backward_query", 32): Tiles(1, 64, 2),
    ("backward_key", 32): Tiles(1, 64, 2),
    ("forward", 64): Tiles(1, 64, 1),
    ("backward_query", 64): Tiles(1, 32, 2),
    ("backward_key", 64): Tiles(1, 32, 2),
    ("forward", 96): Tiles(1, 32, 1),
    ("backward_query", 96): Tiles(1, 32, 2),
    ("backward_key", 96): Tiles(1, 32, 0),
    ("forward", 128): Tiles(1, 32, 1),
    ("backward_query", 128): Tiles(1, 16, 2),
    ("backward_key", 128): Tiles(1, 16, 1),
}
LARGE_TILES = {
    ("forward", 32): Tiles(2, 64, 1),
    ("backward_query", 32): Tiles(2, 64, 2),
    ("backward_key", 32): Tiles(2, 32, 2),
    ("forward", 64): Tiles(2, 64, 1),
    ("backward_query", 64): Tiles(2, 32, 2),
    ("backward_key", 64): Tiles(2, 32, 0),
    ("forward", 96): Tiles(2, 32, 0),
    ("forward", 128): Tiles(2, 32, 0),
}

_TYPES = r"""
#define CHUNKS (DIM / 8)
#define START(w) (outer * (w).outer + inner * (w).inner)
typedef struct { int outer, inner, row, column; } Walk;
typedef struct { int inner, rows, columns, features, values, causal; Walk q, k, v, g, o, m; } Shape;
typedef Chunk<16> Cell;
"""

_COMMON = (
    TENSOR_CORES
    + _TYPES
    + r"""
#define WARPS 4
#define OWN (16 * WARPS * MT)
#define KT (DIM / 16)
#define NT (OTHER / 8)
#define LOG2E 1.4426950408889634f
#define INLINE static __device__ __forceinline__
#if BF16
#define MMA mma_16x8x16_bf16
#define PACK pack_bf16
#else
#define MMA mma_16x8x16_f16
#define PACK pack_f16
#endif

// x, as a number that the compiler takes for another one in each turn of a loop over `at`: else it keeps all places
// that are worked out from it in registers. `at` is not negative.
INLINE int fresh(int x, int at) {
    asm volatile("" : "+r"(at));
    return x + (at >> 31);
}
INLINE int place(int row, int chunk) { return row * CHUNKS + (chunk ^ (CHUNKS % 8 ? row >> 1 & 3 : row & 7)); }

// ROWS rows to shared memory, zeros beyond the last one and beyond their width.
template <int ROWS> INLINE void stage(Cell* tile, const T* source, int step, int width, int limit, int at) {
    const int beside = CHUNKS % 8 ? 4 : 8, below = 32 * WARPS / beside, thread = fresh(THREAD, at),
        first = thread / beside, chunk = thread % beside;
    Cell* to = tile + place(first, chunk);
    source += first * step + chunk * 8;
    #pragma unroll
    for (int i = 0; i < ROWS / below; i++)
        #pragma unroll
        for (int j = 0; j < CHUNKS; j += beside) {
            int given = first + i * below < limit && (chunk + j) * 8 < width ? 16 : 0;
            cp_async_16(to + i * below * CHUNKS + j, given ? source + i * below * step + j * 8 : source, given);
        }
}

INLINE void own_fragments(unsigned (*a)[4], const Cell* own, int thread, int k) {
    #pragma unroll
    for (int m = 0; m < MT; m++)
        ldmatrix_x4(a[m], own + place((thread / 32 * MT + m) * 16 + thread % 16, 2 * k + thread % 32 / 16));
}
INLINE void hold(unsigned (*held)[MT][4], const Cell* own) {
    #pragma unroll
    for (int k = 0; k < KT; k++) own_fragments(held[k], own, THREAD, k);
}

// x = own rows (their fragments in `held` or in shared memory) times the tile's rows
template <int IS_HELD> INLINE void product(float (*x)[NT][4], const Cell* own, const unsigned (*held)[MT][4],
    const Cell* tile, int at) {
    const int thread = fresh(THREAD, at), lane = thread % 32;
    #pragma unroll
    for (int m = 0; m < MT; m++)
        #pragma unroll
        for (int i = 0; i < NT * 4; i++) x[m][i / 4][i % 4] = 0;
    #pragma unroll
    for (int k = 0; k < KT; k++) {
        unsigned a[MT][4];
        if (!IS_HELD) own_fragments(a, own, thread, k);
        #pragma unroll
        for (int n = 0; n < NT; n += 2) {
            unsigned b[4];
            ldmatrix_x4(b, tile + place(n * 8 + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
            #pragma unroll
            for (int m = 0; m < MT; m++) {
                const unsigned* left = IS_HELD ? held[k][m] : a[m];
                MMA(x[m][n], left, b, x[m][n]);
                MMA(x[m][n + 1], left, b + 2, x[m][n + 1]);
            }
        }
    }
}

INLINE void packed(unsigned (*w)[NT / 2][4], const float (*x)[NT][4]) {
    #pragma unroll
    for (int m = 0; m < MT; m++)
        #pragma unroll
        for (int i = 0; i < NT * 2; i++) w[m][i / 4][i % 4] = PACK(x[m][i / 2][i % 2 * 2], x[m][i / 2][i % 2 * 2 + 1]);
}

// out += weights times the tile
INLINE void accumulate(float (*out)[CHUNKS][4], const unsigned (*w)[NT / 2][4], const Cell* tile, int at) {
    const int lane = fresh(THREAD % 32, at);
    #pragma unroll
    for (int k = 0; k < NT / 2; k++)
        #pragma unroll
        for (int n = 0; n < CHUNKS; n += 2) {
            unsigned b[4];
            ldmatrix_x4_trans(b, tile + place(k * 16 + lane % 16, n + lane / 16));
            #pragma unroll
            for (int m = 0; m < MT; m++) {
                MMA(out[m][n], w[m][k], b, out[m][n]);
                MMA(out[m][n + 1], w[m][k], b + 2, out[m][n + 1]);
            }
        }
}

// The warp's own rows through its part of `tile`, which nobody else uses, to memory.
INLINE void give(Cell* tile, T* target, int step, int width, int limit, const float (*out)[CHUNKS][4]) {
    const int lane = THREAD % 32, first = THREAD / 32 * MT * 16;
    __syncwarp();
    #pragma unroll
    for (int m = 0; m < MT; m++)
        #pragma unroll
        for (int i = 0; i < CHUNKS * 2; i++)
            tile[place(first + m * 16 + i % 2 * 8 + lane / 4, i / 2)].word[lane % 4] = PACK(out[m][i / 2][i % 2 * 2],
                out[m][i / 2][i % 2 * 2 + 1]);
    __syncwarp();
    #pragma unroll
    for (int i = 0; i < MT * CHUNKS / 2; i++) {
        int at = i * 32 + lane, row = first + at / CHUNKS, chunk = at % CHUNKS;
        if (row < limit && chunk * 8 < width) *(Cell*)(target + row * step + chunk * 8) = tile[place(row, chunk)];
    }
}
INLINE void clear(float (*out)[CHUNKS][4]) {
    #pragma unroll
    for (int i = 0; i < MT * CHUNKS * 4; i++) out[i / (CHUNKS * 4)][i / 4 % CHUNKS][i % 4] = 0;
}
INLINE void scaled(float (*out)[CHUNKS][4], float scale) {
    #pragma unroll
    for (int i = 0; i < MT * CHUNKS * 4; i++) out[i / (CHUNKS * 4)][i / 4 % CHUNKS][i % 4] *= scale;
}

// Scores of own rows (the warp's from `upper` on) and the tile's rows, masked; `keys_own` says which of them are the
// keys. Where floats are added, they are scaled, too.
INLINE void masked(float (*x)[NT][4], const Shape* s, const M* mask, int keys_own, int upper, int at, float factor) {
    const int lane = fresh(THREAD % 32, at), mine = upper + lane / 4;
    at += lane % 4 * 2;
    #pragma unroll
    for (int m = 0; m < MT; m++)
        #pragma unroll
        for (int i = 0; i < NT * 4; i++) {
            int own = mine + m * 16 + i % 4 / 2 * 8, other = at + i / 4 * 8 + i % 2, query = keys_own ? other : own,
                key = keys_own ? own : other;
            float score = x[m][i / 4][i % 4];
#if MASK
            float part = M_LD(mask, min(query, s->rows - 1) * s->m.row + min(key, s->columns - 1) * s->m.column);
            score = MASK == 1 ? (part != 0 ? score : -INFINITY) : fmaf(score, factor, part * LOG2E);
#endif
            x[m][i / 4][i % 4] = key >= s->columns || (s->causal && key > query) ? -INFINITY : score;
        }
}
"""
)

_PLACE = r"""
    const int tiles = ({side} + OWN - 1) / OWN, head = BLOCK / tiles, outer = head / s.inner, inner = head % s.inner,
        first = {tile} * OWN;
    const int lane = THREAD % 32, upper = first + THREAD / 32 * MT * 16, mine = upper + lane / 4;
    const T* query = AT(q) + START(s.q); const T* key_rows = AT(k) + START(s.k);
    const T* value_rows = AT(v) + START(s.v);
    const M* mask = AT(m) + START(s.m);
"""
_QUERY_PLACE = _PLACE.format(side="s.rows", tile="(tiles - 1 - BLOCK % tiles)")  # where causal, the longest first
_KEY_PLACE = _PLACE.format(side="s.columns", tile="(BLOCK % tiles)")

FORWARD = (
    _COMMON
    + r"""
KERNEL __launch_bounds__(32 * WARPS, 2) void forward(IN(T, q), IN(T, k), IN(T, v), IN(M, m), OUT(T, o), OUT(float, lse),
    const Shape s, const float scale) {
    LOCAL_ARRAY(Cell, memory, (OWN + 2 * OTHER) * CHUNKS);
    Cell* own = memory; Cell* keys = own + OWN * CHUNKS; Cell* values = keys + OTHER * CHUNKS;"""
    + _QUERY_PLACE
    + r"""
    const float factor = scale * LOG2E, multiplier = MASK == 2 ? 1.0f : factor;
    const int stop = s.causal ? min(s.columns, first + OWN) : s.columns;
    float out[MT][CHUNKS][4], top[MT][2], total[MT][2];
    unsigned held[KT][MT][4], w[MT][NT / 2][4];
    clear(out);
    #pragma unroll
    for (int i = 0; i < MT * 2; i++) { top[i / 2][i % 2] = -INFINITY; total[i / 2][i % 2] = 0; }
    stage<OWN>(own, query + first * s.q.row, s.q.row, s.features, s.rows - first, 0);
    stage<OTHER>(keys, key_rows, s.k.row, s.features, s.columns, 0);
    cp_async_commit();
    for (int at = 0; at < stop; at += OTHER) {
        float x[MT][NT][4];
        cp_async_wait<0>();
        BARRIER;
        stage<OTHER>(values, value_rows + at * s.v.row, s.v.row, s.values, s.columns - at, at);
        cp_async_commit();
        if (HELD && at == 0) hold(held, own);
        product<HELD>(x, own, held, keys, at);
        cp_async_wait<0>();
        BARRIER;
        if (at + OTHER < stop) {
            stage<OTHER>(keys, key_rows + (at + OTHER) * s.k.row, s.k.row, s.features, s.columns - at - OTHER, at);
            cp_async_commit();
        }
        if (MASK || at + OTHER > s.columns || (s.causal && at + OTHER > upper))
            masked(x, &s, mask, 0, upper, at, factor);
        #pragma unroll
        for (int i = 0; i < MT * 2; i++) {
            const int m = i / 2, r = i % 2 * 2;
            float best = top[m][i % 2], shift, shrink, sum = 0;
            #pragma unroll
            for (int n = 0; n < NT; n++) best = fmaxf(best, fmaxf(x[m][n][r], x[m][n][r + 1]));
            best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, 1));
            best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, 2));
            shift = best == -INFINITY ? 0 : best * multiplier;
            shrink = fast_exp2(top[m][i % 2] * multiplier - shift);
            top[m][i % 2] = best;
            #pragma unroll
            for (int n = 0; n < NT * 2; n++)
                sum += x[m][n / 2][r + n % 2] = fast_exp2(fmaf(x[m][n / 2][r + n % 2], multiplier, -shift));
            total[m][i % 2] = total[m][i % 2] * shrink + sum;
            #pragma unroll
            for (int n = 0; n < CHUNKS * 2; n++) out[m][n / 2][r + n % 2] *= shrink;
        }
        packed(w, x);
        accumulate(out, w, values, at);
    }
    #pragma unroll
    for (int i = 0; i < MT * 2; i++) {
        const int m = i / 2, r = i % 2 * 2, row = mine + m * 16 + i % 2 * 8;
        float sum = total[m][i % 2];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        const float one = sum == 0 ? 1 : 1 / sum, shift = top[m][i % 2] == -INFINITY ? 0 : top[m][i % 2] * multiplier;
        #pragma unroll
        for (int n = 0; n < CHUNKS * 2; n++) out[m][n / 2][r + n % 2] *= one;
        if (lane % 4 == 0 && row < s.rows) AT(lse)[head * s.rows + row] = sum == 0 ? 0 : logf(sum) + shift / LOG2E;
    }
    give(own, AT(o) + START(s.o) + first * s.o.row, s.o.row, s.values, s.rows - first, out);
}
"""
)

# delta = sum of grad * out over a query's values
DELTA = (
    _TYPES
    + r"""
#define LANES (CHUNKS > 8 ? 16 : CHUNKS)
KERNEL void dots(IN(T, g), IN(T, o), OUT(float, delta), const Shape s, const int heads) {
    const int at = ITEM / LANES, chunk = ITEM % LANES, head = at / s.rows, row = at % s.rows, outer = head / s.inner,
        inner = head % s.inner;
    float sum = 0;
    if (head < heads && chunk * 8 < s.values) {
        Cell a = *(const Cell*)(AT(g) + START(s.g) + row * s.g.row + chunk * 8),
            b = *(const Cell*)(AT(o) + START(s.o) + row * s.o.row + chunk * 8);
        #pragma unroll
        for (int i = 0; i < 8; i++) sum += T_LD((const T*)&a, i) * T_LD((const T*)&b, i);
    }
    #pragma unroll
    for (int d = LANES / 2; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (head < heads && chunk == 0) AT(delta)[at] = sum;
}
"""
)


def _tile_loop_source(
    start: str, stop: str, tiles: tuple[tuple[str, str, str, str], tuple[str, str, str, str]], body: str
) -> str:
    """Return a loop over the rows of two matrices (name, source, step, width) by tiles, with prefetch of the next
    tiles.
    """

    def stage_source(at: str, buffer: str) -> str:
        lines = [
            f"stage<OTHER>({name} + {buffer} * OTHER * CHUNKS, {source} + ({at}) * {step}, {step}, {width}, {stop} - "
            f"({at}), {at});"
            for name, source, step, width in tiles
        ]
        return " ".join((*lines, "cp_async_commit();"))

    return f"""
    if ({start} < end) {{ {stage_source(start, "0")} }}
    for (int at = {start}, turn = 0; at < end; at += OTHER, turn ^= 1) {{
        cp_async_wait<0>();
        BARRIER;
        if (at + OTHER < end) {{ {stage_source("at + OTHER", "(1 - turn)")} }}
        const Cell* a = {tiles[0][0]} + turn * OTHER * CHUNKS; const Cell* b = {tiles[1][0]} + turn * OTHER * CHUNKS;
        if (HELD && at == {start}) hold(held, own);
        if (HELD == 2 && at == {start}) hold(held_more, more_own);
{body}
    }}"""


_BACKWARD = r"""
    LOCAL_ARRAY(Cell, memory, (2 * OWN + 4 * OTHER) * CHUNKS);
    Cell* own = memory; Cell* more_own = own + OWN * CHUNKS; Cell* tile = more_own + OWN * CHUNKS;
    Cell* more_tile = tile + 2 * OTHER * CHUNKS;"""
_HOLD = r"""
    const T* grad = AT(g) + START(s.g);
    const float factor = scale * LOG2E, multiplier = MASK == 2 ? 1.0f : factor;
    const float* log_sums = AT(lse) + head * s.rows; const float* dots = AT(delta) + head * s.rows;
    unsigned held[KT][MT][4], held_more[KT][MT][4], w[MT][NT / 2][4];
"""

# `o` walks the gradient of the queries.
BACKWARD_QUERY = (
    _COMMON
    + r"""
KERNEL __launch_bounds__(32 * WARPS, 2)
    void backward_query(IN(T, g), IN(T, q), IN(T, k), IN(T, v), IN(M, m), IN(float, lse), IN(float, delta), OUT(T, dq),
                    const Shape s, const float scale) {"""
    + (_BACKWARD + _QUERY_PLACE + _HOLD)
    + r"""
    const int end = s.causal ? min(s.columns, first + OWN) : s.columns;
    float out[MT][CHUNKS][4], log_sum[MT][2], dot_[MT][2];
    clear(out);
    #pragma unroll
    for (int i = 0; i < MT * 2; i++) {
        int row = mine + i / 2 * 16 + i % 2 * 8;
        log_sum[i / 2][i % 2] = row < s.rows ? log_sums[row] * LOG2E : 0;
        dot_[i / 2][i % 2] = row < s.rows ? dots[row] : 0;
    }
    stage<OWN>(own, query + first * s.q.row, s.q.row, s.features, s.rows - first, 0);
    stage<OWN>(more_own, grad + first * s.g.row, s.g.row, s.values, s.rows - first, 0);"""
    + _tile_loop_source(
        "0",
        "s.columns",
        (("tile", "key_rows", "s.k.row", "s.features"), ("more_tile", "value_rows", "s.v.row", "s.values")),
        r"""
        float x[MT][NT][4], y[MT][NT][4];
        product<HELD>(x, own, held, a, at);
        if (MASK || at + OTHER > s.columns || (s.causal && at + OTHER > upper))
            masked(x, &s, mask, 0, upper, at, factor);
        product<HELD == 2>(y, more_own, held_more, b, at);
        #pragma unroll
        for (int m = 0; m < MT; m++)
            #pragma unroll
            for (int i = 0; i < NT * 4; i++)
                x[m][i / 4][i % 4] = fast_exp2(fmaf(x[m][i / 4][i % 4], multiplier,
                    -log_sum[m][i % 4 / 2])) * (y[m][i / 4][i % 4] - dot_[m][i % 4 / 2]);
        packed(w, x);
        accumulate(out, w, a, at);""",
    )
    + r"""
    scaled(out, scale);
    give(own, AT(dq) + START(s.o) + first * s.o.row, s.o.row, s.features, s.rows - first, out);
}
"""
)

# dk is walked as `o`, dv as `d`.
BACKWARD_KEY = (
    _COMMON
    + r"""
KERNEL __launch_bounds__(32 * WARPS, 2)
    void backward_key(IN(T, g), IN(T, q), IN(T, k), IN(T, v), IN(M, m), IN(float, lse), IN(float, delta),
                  OUT(T, dk), OUT(T, dv), const Shape s, const float scale, const Walk d) {"""
    + _BACKWARD
    + _KEY_PLACE
    + _HOLD
    + r"""
    const int begin = s.causal ? first : 0, end = s.rows;
    float out[MT][CHUNKS][4], more[MT][CHUNKS][4];
    clear(out);
    clear(more);
    stage<OWN>(own, key_rows + first * s.k.row, s.k.row, s.features, s.columns - first, 0);
    stage<OWN>(more_own, value_rows + first * s.v.row, s.v.row, s.values, s.columns - first, 0);
    cp_async_commit();"""
    + _tile_loop_source(
        "begin",
        "s.rows",
        (("tile", "query", "s.q.row", "s.features"), ("more_tile", "grad", "s.g.row", "s.values")),
        r"""
        float x[MT][NT][4], y[MT][NT][4];
        const int others = at + lane % 4 * 2;
        product<HELD>(x, own, held, a, at);
        if (MASK || (s.causal && at < upper + MT * 16)) masked(x, &s, mask, 1, upper, at, factor);
        #pragma unroll
        for (int i = 0; i < NT * 2; i++) {
            const int row = others + i / 2 * 8 + i % 2;
            const float log_sum = row < s.rows ? log_sums[row] * LOG2E : INFINITY;
            #pragma unroll
            for (int m = 0; m < MT * 2; m++)
                x[m / 2][i / 2][m % 2 * 2 + i % 2] = fast_exp2(fmaf(x[m / 2][i / 2][m % 2 * 2 + i % 2], multiplier,
                    -log_sum));
        }
        packed(w, x);
        accumulate(more, w, b, at);
        product<HELD == 2>(y, more_own, held_more, b, at);
        #pragma unroll
        for (int i = 0; i < NT * 2; i++) {
            const int row = others + i / 2 * 8 + i % 2;
            const float dot_ = row < s.rows ? dots[row] : 0;
            #pragma unroll
            for (int m = 0; m < MT * 2; m++)
                x[m / 2][i / 2][m % 2 * 2 + i % 2] *= y[m / 2][i / 2][m % 2 * 2 + i % 2] - dot_;
        }
        packed(w, x);
        accumulate(out, w, a, at);""",
    )
    + r"""
    cp_async_wait<0>();
    BARRIER;
    scaled(out, scale);
    give(own, AT(dk) + START(s.o) + first * s.o.row, s.o.row, s.features, s.columns - first, out);
    give(more_own, AT(dv) + START(d) + first * d.row, d.row, s.values, s.columns - first, more);
}
"""
)

TEXTS = {"forward": FORWARD, "dots": DELTA, "backward_query": BACKWARD_QUERY, "backward_key": BACKWARD_KEY}
DIMS = (32, 64, 96, 128)


class Variant(NamedTuple):
    """Kernel variant: source, name, kinds, definitions, and tiles."""

    text: str
    name: str
    kinds: dict[str, str]
    tiles: Tiles


@functools.cache
def kernel_source(name: str, kind: str, dim: int, mask: str | None = None, wide: bool = False) -> Variant:
    """Return the kernel of a name for operands of `kind` with up to `dim` features, and a mask of the kind `mask`.

    `wide` selects WIDE tiles, if there are enough blocks.
    """
    kinds = {"T": kind, "DIM": str(dim)}
    if name == "dots":
        return Variant(DELTA, name, kinds, Tiles(0, 0, 0))
    key = name, dim
    tiles = LARGE_TILES[key] if wide and mask is None and key in LARGE_TILES else SMALL_TILES[key]
    kinds |= {
        "M": mask or kind,
        "MASK": "0" if mask is None else "1" if mask == "b8" else "2",
        "BF16": str(int(kind == "bf16")),
        **tiles.macros_source,
    }
    return Variant(TEXTS[name], name, kinds, tiles)


def iter_kernel_variants() -> Iterator[tuple[Variant, tuple[int, int]]]:
    """Yield every kernel that can be requested, with its minimum compute capability."""
    for kind, dim in itertools.product(CAPABILITIES, DIMS):
        yield kernel_source("dots", kind, dim), CAPABILITIES[kind]
        for name, mask in itertools.product(("forward", "backward_query", "backward_key"), (None, "b8", kind)):
            yield kernel_source(name, kind, dim, mask), CAPABILITIES[kind]
            if mask is None and (name, dim) in LARGE_TILES:
                yield kernel_source(name, kind, dim, mask, True), CAPABILITIES[kind]
