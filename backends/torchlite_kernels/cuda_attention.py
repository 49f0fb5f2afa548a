"""Scaled dot product attention on NVIDIA's tensor cores, for half and bfloat16: FlashAttention-2's algorithm (Dao, 2023), CUDA only.

A block of four warps owns some rows of one side (queries, or keys for their gradients), 16 * MT a warp, and walks the other side's rows, OTHER at a time. Both sides lie in shared memory with
rows of DIM elements, whose chunks of 16 bytes are permuted so that 8 rows' chunks fall in all banks. Scores are made in registers in the form in which the next product takes them, so
they never go through memory. Forward keeps the log of each row's sum; backward makes the weights again, in one pass for the queries' gradient and one for the keys' and the
values', so that no gradient is added to from two blocks and results do not depend on timing.
"""
from __future__ import annotations

from typing import NamedTuple

from .tensor_cores import TENSOR_CORES

WARPS = 4
LARGEST = 128  # features


class Tiles(NamedTuple):
    """How a kernel is cut: MT, OTHER, buffers for the other side's rows, whether its own rows' fragments stay in registers, and the blocks that share a multiprocessor."""

    strips: int
    other: int
    buffers: int
    held: int
    blocks: int

    @property
    def own(self) -> int:
        """Rows that a block owns."""
        return 16 * WARPS * self.strips


TILES = {
    ("forward", 32): Tiles(2, 64, 1, 1, 2),
    ("forward", 64): Tiles(2, 64, 1, 1, 2),
    ("forward", 96): Tiles(2, 64, 1, 0, 2),
    ("forward", 128): Tiles(2, 32, 1, 0, 2),
    ("backward_query", 32): Tiles(2, 64, 2, 1, 2),
    ("backward_query", 64): Tiles(2, 32, 2, 0, 2),
    ("backward_query", 96): Tiles(1, 32, 2, 1, 2),
    ("backward_query", 128): Tiles(1, 16, 2, 1, 2),
    ("backward_key", 32): Tiles(2, 64, 2, 0, 2),
    ("backward_key", 64): Tiles(2, 32, 2, 0, 2),
    ("backward_key", 96): Tiles(1, 32, 2, 0, 2),
    ("backward_key", 128): Tiles(1, 16, 2, 1, 2),
}

_COMMON = TENSOR_CORES + r"""
#define WARPS 4
#define OWN (16 * WARPS * MT)
#define CHUNKS (DIM / 8)
#define KT (DIM / 16)
#define NT (OTHER / 8)
#define LOG2E 1.4426950408889634f
#define INLINE static __device__ __forceinline__
#define START(w) (outer * (w).outer + inner * (w).inner)
#if BF16
#define MMA mma_16x8x16_bf16
#else
#define MMA mma_16x8x16_f16
#endif
#ifdef __CUDACC_RTC__
#if BF16
#define PACK pack_bf16
#else
#define PACK pack_f16
#endif
#else
INLINE unsigned PACK(float low, float high) {
    T pair[2];
    unsigned r;
    T_ST(pair, 0, low);
    T_ST(pair, 1, high);
    __builtin_memcpy(&r, pair, 4);
    return r;
}
#endif
typedef struct { int outer, inner, row, column; } Walk;
typedef struct { int inner, rows, columns, features, values, causal; Walk q, k, v, g, o, m; } Shape;
struct alignas(16) Cell { unsigned word[4]; };

INLINE int place(int row, int chunk) { return row * CHUNKS + (chunk ^ (CHUNKS % 8 ? row >> 1 & 3 : row & 7)); }

// ROWS rows to shared memory, zeros beyond the last one and beyond their width.
template <int ROWS> INLINE void stage(Cell* tile, const T* source, int step, int width, int limit) {
    const int beside = CHUNKS % 8 ? 4 : 8, below = 32 * WARPS / beside, first = THREAD / beside, chunk = THREAD % beside;
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

INLINE void own_fragments(unsigned (*a)[4], const Cell* own, int k) {
    #pragma unroll
    for (int m = 0; m < MT; m++) ldmatrix_x4(a[m], own + place((THREAD / 32 * MT + m) * 16 + THREAD % 16, 2 * k + THREAD % 32 / 16));
}
INLINE void hold(unsigned (*held)[MT][4], const Cell* own) {
    #pragma unroll
    for (int k = 0; HELD && k < KT; k++) own_fragments(held[k], own, k);
}

// x = own rows times the tile's rows
INLINE void product(float (*x)[NT][4], const Cell* own, const unsigned (*held)[MT][4], const Cell* tile) {
    const int lane = THREAD % 32;
    #pragma unroll
    for (int m = 0; m < MT; m++)
        #pragma unroll
        for (int i = 0; i < NT * 4; i++) x[m][i / 4][i % 4] = 0;
    #pragma unroll
    for (int k = 0; k < KT; k++) {
        unsigned a[MT][4];
        if (!HELD) own_fragments(a, own, k);
        #pragma unroll
        for (int n = 0; n < NT; n += 2) {
            unsigned b[4];
            ldmatrix_x4(b, tile + place(n * 8 + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
            #pragma unroll
            for (int m = 0; m < MT; m++) {
                const unsigned* left = HELD ? held[k][m] : a[m];
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
INLINE void accumulate(float (*out)[CHUNKS][4], const unsigned (*w)[NT / 2][4], const Cell* tile) {
    const int lane = THREAD % 32;
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
            tile[place(first + m * 16 + i % 2 * 8 + lane / 4, i / 2)].word[lane % 4] = PACK(out[m][i / 2][i % 2 * 2], out[m][i / 2][i % 2 * 2 + 1]);
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

// Scores of own rows (from `mine` on: the lane's first) and the tile's rows, masked; `keys_own` says which of them are the keys. Where floats are added, they are scaled, too.
INLINE void masked(float (*x)[NT][4], const Shape* s, const M* mask, int keys_own, int mine, int at, float factor) {
    #pragma unroll
    for (int m = 0; m < MT; m++)
        #pragma unroll
        for (int i = 0; i < NT * 4; i++) {
            int own = mine + m * 16 + i % 4 / 2 * 8, other = at + i / 4 * 8 + i % 2, query = keys_own ? other : own, key = keys_own ? own : other;
            float score = x[m][i / 4][i % 4];
#if MASK
            float part = M_LD(mask, min(query, s->rows - 1) * s->m.row + min(key, s->columns - 1) * s->m.column);
            score = MASK == 1 ? (part != 0 ? score : -INFINITY) : fmaf(score, factor, part * LOG2E);
#endif
            x[m][i / 4][i % 4] = key >= s->columns || (s->causal && key > query) ? -INFINITY : score;
        }
}
"""

_PLACE = r"""
    const int tiles = ({side} + OWN - 1) / OWN, head = BLOCK / tiles, outer = head / s.inner, inner = head % s.inner, first = {tile} * OWN;
    const int lane = THREAD % 32, upper = first + THREAD / 32 * MT * 16, mine = upper + lane / 4;
    const T* query = AT(q) + START(s.q); const T* key_rows = AT(k) + START(s.k); const T* value_rows = AT(v) + START(s.v);
    const M* mask = AT(m) + START(s.m);
"""
_QUERY_PLACE = _PLACE.format(side="s.rows", tile="(tiles - 1 - BLOCK % tiles)")  # where causal, the longest first
_KEY_PLACE = _PLACE.format(side="s.columns", tile="(BLOCK % tiles)")

FORWARD = _COMMON + r"""
KERNEL __launch_bounds__(32 * WARPS, BLOCKS)
void forward(IN(T, q), IN(T, k), IN(T, v), IN(M, m), OUT(T, o), OUT(float, lse), const Shape s, const float scale) {
    LOCAL_ARRAY(Cell, memory, (OWN + 2 * OTHER) * CHUNKS);
    Cell* own = memory; Cell* keys = own + OWN * CHUNKS; Cell* values = keys + OTHER * CHUNKS;""" + _QUERY_PLACE + r"""
    const float factor = scale * LOG2E, multiplier = MASK == 2 ? 1.0f : factor;
    const int stop = s.causal ? min(s.columns, first + OWN) : s.columns;
    float out[MT][CHUNKS][4], top[MT][2], total[MT][2];
    unsigned held[KT][MT][4], w[MT][NT / 2][4];
    clear(out);
    #pragma unroll
    for (int i = 0; i < MT * 2; i++) { top[i / 2][i % 2] = -INFINITY; total[i / 2][i % 2] = 0; }
    stage<OWN>(own, query + first * s.q.row, s.q.row, s.features, s.rows - first);
    stage<OTHER>(keys, key_rows, s.k.row, s.features, s.columns);
    cp_async_commit();
    for (int at = 0; at < stop; at += OTHER) {
        float x[MT][NT][4];
        cp_async_wait<0>();
        BARRIER;
        stage<OTHER>(values, value_rows + at * s.v.row, s.v.row, s.values, s.columns - at);
        cp_async_commit();
        if (at == 0) hold(held, own);
        product(x, own, held, keys);
        cp_async_wait<0>();
        BARRIER;
        if (at + OTHER < stop) {
            stage<OTHER>(keys, key_rows + (at + OTHER) * s.k.row, s.k.row, s.features, s.columns - at - OTHER);
            cp_async_commit();
        }
        if (MASK || at + OTHER > s.columns || (s.causal && at + OTHER > upper)) masked(x, &s, mask, 0, mine, at + lane % 4 * 2, factor);
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
            for (int n = 0; n < NT * 2; n++) sum += x[m][n / 2][r + n % 2] = fast_exp2(fmaf(x[m][n / 2][r + n % 2], multiplier, -shift));
            total[m][i % 2] = total[m][i % 2] * shrink + sum;
            #pragma unroll
            for (int n = 0; n < CHUNKS * 2; n++) out[m][n / 2][r + n % 2] *= shrink;
        }
        packed(w, x);
        accumulate(out, w, values);
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

# delta = sum of grad * out over a query's values
DELTA = _COMMON + r"""
#define LANES (CHUNKS > 8 ? 16 : CHUNKS)
KERNEL void dots(IN(T, g), IN(T, o), OUT(float, delta), const Shape s, const float scale, const int heads) {
    const int at = ITEM / LANES, chunk = ITEM % LANES, head = at / s.rows, row = at % s.rows, outer = head / s.inner, inner = head % s.inner;
    float sum = 0;
    if (head < heads && chunk * 8 < s.values) {
        Cell a = *(const Cell*)(AT(g) + START(s.g) + row * s.g.row + chunk * 8), b = *(const Cell*)(AT(o) + START(s.o) + row * s.o.row + chunk * 8);
        #pragma unroll
        for (int i = 0; i < 8; i++) sum += T_LD((const T*)&a, i) * T_LD((const T*)&b, i);
    }
    #pragma unroll
    for (int d = LANES / 2; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (head < heads && chunk == 0) AT(delta)[at] = sum;
}
"""


def _loop(start: str, stop: str, tiles: tuple[tuple[str, str, str, str], tuple[str, str, str, str]], body: str) -> str:
    """Walk the rows of two matrices (name, source, step, width) tile by tile; with two buffers the next tiles come while these are worked on."""
    def staged(at: str, buffer: str) -> str:
        lines = [f"stage<OTHER>({name} + {buffer} * OTHER * CHUNKS, {source} + ({at}) * {step}, {step}, {width}, {stop} - ({at}));" for name, source, step, width in tiles]
        return " ".join((*lines, "cp_async_commit();"))

    return f"""
    if (BUFFERS == 2 && {start} < end) {{ {staged(start, "0")} }}
    for (int at = {start}, turn = 0; at < end; at += OTHER) {{
        if (BUFFERS == 2) {{
            cp_async_wait<0>();
            BARRIER;
            if (at + OTHER < end) {{ {staged("at + OTHER", "(1 - turn)")} }}
        }} else {{
            BARRIER;
            {staged("at", "0")}
            cp_async_wait<0>();
            BARRIER;
        }}
        const Cell* a = {tiles[0][0]} + turn * OTHER * CHUNKS; const Cell* b = {tiles[1][0]} + turn * OTHER * CHUNKS;
        if (at == {start}) {{ hold(held, own); hold(held_more, more_own); }}
{body}
        turn ^= BUFFERS == 2;
    }}"""


_BACKWARD = r"""
    LOCAL_ARRAY(Cell, memory, (2 * OWN + 2 * BUFFERS * OTHER) * CHUNKS);
    Cell* own = memory; Cell* more_own = own + OWN * CHUNKS; Cell* tile = more_own + OWN * CHUNKS; Cell* more_tile = tile + BUFFERS * OTHER * CHUNKS;"""
_HOLD = r"""
    const T* grad = AT(g) + START(s.g);
    const float factor = scale * LOG2E, multiplier = MASK == 2 ? 1.0f : factor;
    const float* log_sums = AT(lse) + head * s.rows; const float* dots = AT(delta) + head * s.rows;
    unsigned held[KT][MT][4], held_more[KT][MT][4], w[MT][NT / 2][4];
"""

# `o` walks the gradient of the queries.
BACKWARD_QUERY = _COMMON + r"""
KERNEL __launch_bounds__(32 * WARPS, BLOCKS)
void backward_query(IN(T, g), IN(T, q), IN(T, k), IN(T, v), IN(M, m), IN(float, lse), IN(float, delta), OUT(T, dq), const Shape s, const float scale) {""" + (
    _BACKWARD + _QUERY_PLACE + _HOLD) + r"""
    const int end = s.causal ? min(s.columns, first + OWN) : s.columns;
    float out[MT][CHUNKS][4], log_sum[MT][2], dot_[MT][2];
    clear(out);
    #pragma unroll
    for (int i = 0; i < MT * 2; i++) {
        int row = mine + i / 2 * 16 + i % 2 * 8;
        log_sum[i / 2][i % 2] = row < s.rows ? log_sums[row] * LOG2E : 0;
        dot_[i / 2][i % 2] = row < s.rows ? dots[row] : 0;
    }
    stage<OWN>(own, query + first * s.q.row, s.q.row, s.features, s.rows - first);
    stage<OWN>(more_own, grad + first * s.g.row, s.g.row, s.values, s.rows - first);""" + _loop(
    "0", "s.columns", (("tile", "key_rows", "s.k.row", "s.features"), ("more_tile", "value_rows", "s.v.row", "s.values")), r"""
        float x[MT][NT][4], y[MT][NT][4];
        product(x, own, held, a);
        if (MASK || at + OTHER > s.columns || (s.causal && at + OTHER > upper)) masked(x, &s, mask, 0, mine, at + lane % 4 * 2, factor);
        product(y, more_own, held_more, b);
        #pragma unroll
        for (int m = 0; m < MT; m++)
            #pragma unroll
            for (int i = 0; i < NT * 4; i++)
                x[m][i / 4][i % 4] = fast_exp2(fmaf(x[m][i / 4][i % 4], multiplier, -log_sum[m][i % 4 / 2])) * (y[m][i / 4][i % 4] - dot_[m][i % 4 / 2]);
        packed(w, x);
        accumulate(out, w, a);""") + r"""
    scaled(out, scale);
    give(own, AT(dq) + START(s.o) + first * s.o.row, s.o.row, s.features, s.rows - first, out);
}
"""

# dk is walked as `o`, dv as `d`.
BACKWARD_KEY = _COMMON + r"""
KERNEL __launch_bounds__(32 * WARPS, BLOCKS)
void backward_key(IN(T, g), IN(T, q), IN(T, k), IN(T, v), IN(M, m), IN(float, lse), IN(float, delta),
                  OUT(T, dk), OUT(T, dv), const Shape s, const float scale, const Walk d) {""" + _BACKWARD + _KEY_PLACE + _HOLD + r"""
    const int begin = s.causal ? first : 0, end = s.rows;
    float out[MT][CHUNKS][4], more[MT][CHUNKS][4];
    clear(out);
    clear(more);
    stage<OWN>(own, key_rows + first * s.k.row, s.k.row, s.features, s.columns - first);
    stage<OWN>(more_own, value_rows + first * s.v.row, s.v.row, s.values, s.columns - first);
    cp_async_commit();""" + _loop(
    "begin", "s.rows", (("tile", "query", "s.q.row", "s.features"), ("more_tile", "grad", "s.g.row", "s.values")), r"""
        float x[MT][NT][4], y[MT][NT][4];
        const int others = at + lane % 4 * 2;
        product(x, own, held, a);
        if (MASK || (s.causal && at < upper + MT * 16)) masked(x, &s, mask, 1, mine, others, factor);
        #pragma unroll
        for (int i = 0; i < NT * 2; i++) {
            const int row = others + i / 2 * 8 + i % 2;
            const float log_sum = row < s.rows ? log_sums[row] * LOG2E : INFINITY;
            #pragma unroll
            for (int m = 0; m < MT * 2; m++)
                x[m / 2][i / 2][m % 2 * 2 + i % 2] = fast_exp2(fmaf(x[m / 2][i / 2][m % 2 * 2 + i % 2], multiplier, -log_sum));
        }
        packed(w, x);
        accumulate(more, w, b);
        product(y, more_own, held_more, b);
        #pragma unroll
        for (int i = 0; i < NT * 2; i++) {
            const int row = others + i / 2 * 8 + i % 2;
            const float dot_ = row < s.rows ? dots[row] : 0;
            #pragma unroll
            for (int m = 0; m < MT * 2; m++) x[m / 2][i / 2][m % 2 * 2 + i % 2] *= y[m / 2][i / 2][m % 2 * 2 + i % 2] - dot_;
        }
        packed(w, x);
        accumulate(out, w, a);""") + r"""
    cp_async_wait<0>();
    BARRIER;
    scaled(out, scale);
    give(own, AT(dk) + START(s.o) + first * s.o.row, s.o.row, s.features, s.columns - first, out);
    give(more_own, AT(dv) + START(d) + first * d.row, d.row, s.values, s.columns - first, more);
}
"""
