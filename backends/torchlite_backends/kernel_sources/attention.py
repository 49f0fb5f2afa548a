"""Scaled dot product attention without storing the score matrix.

The forward pass uses online softmax (Milakov and Gimelshein, 2018); the backward pass recomputes the weights (Dao et
al., 2022). A work-item owns NV * LANES rows of one side (queries, or keys for their gradients), one per vector lane,
transposed: element d of its rows is the vector `x[d]`. The rows of the other side are staged in local memory by tiles
and multiplied as scalars, so row maxima and sums are vector operations. LANES is 1 on GPUs; only OpenCL uses wider
vectors.

The caller defines LANES and V (vector width and type), NV, DMAX (maximum features, a multiple of 16), BK (rows of a
tile, a multiple of 8), MASK (0 none, 1 booleans, 2 added).
"""

from __future__ import annotations

_TYPES = r"""
#define JB 8
#define OWN (LANES * NV)
typedef struct { int outer, inner, row, column; } Walk;
typedef struct { int inner, rows, columns, features, values, causal; Walk q, k, v, g, o, m; } Shape;
#define START(w) (outer * (w).outer + inner * (w).inner)
#if LANES > 1
// The transposed matrix of LANES vectors: both halves of the rows are interleaved, as often as the width can be halved.
// Loops stay loops, for straight code takes long to build.
FUNCTION void transpose(V* r) {
    V t[LANES];
    #pragma unroll 1
    for (int width = LANES; width > 1; width /= 2) {
        #pragma unroll 1
        for (int i = 0; i < LANES / 2; i++) {
            V a = r[i], b = r[i + LANES / 2];
            t[2 * i].even = a.lo; t[2 * i].odd = b.lo;
            t[2 * i + 1].even = a.hi; t[2 * i + 1].odd = b.hi;
        }
        #pragma unroll 1
        for (int i = 0; i < LANES; i++) r[i] = t[i];
    }
}
#endif
"""


def _load_tile(tile: str, source: str, walk: str, width: str, limit: str) -> str:
    """Return code that loads BK rows of `source` from `first` to local memory, converted, LD apart, zero-padded."""
    return f"""
        for (int j = 0; j < BK; j++) {{
            int width = first + j < {limit} ? {width} : 0, d = THREAD;
            GLOBAL const T* line = {source} + (first + j) * {walk}.row;
#if LANES > 1
            if ({walk}.column == 1) for (; d + LANES <= width; d += LANES)
                WIDE_TILE(WIDE_LOAD(line, d), 0, {tile} + j * LD + d);
#endif
            for (; d < width; d += THREADS) {tile}[j * LD + d] = T_LD(line, d * {walk}.column);
            for (; d < LD; d += THREADS) {tile}[j * LD + d] = 0;
        }}"""


def _load_own_rows(x: str, source: str, walk: str, width: str, limit: str, scale: str = "1") -> str:
    """Return code that loads the work-item's own rows, transposed and zero-padded."""
    return f"""
    {{
        const int blocks = LANES > 1 && {walk}.column == 1 ? {width} / LANES * LANES : 0;
#if LANES > 1
        for (int u = 0; u < NV; u++) for (int d = 0; d < blocks; d += LANES) {{
            V r[LANES];
            for (int lane = 0; lane < LANES; lane++) {{
                int row = mine + u * LANES + lane;
                r[lane] = row < {limit} ? WIDE_LOAD({source} + row * {walk}.row, d) * {scale} : (V)(0);
            }}
            transpose(r);
            for (int lane = 0; lane < LANES; lane++) {x}[(d + lane) * NV + u] = r[lane];
        }}
#endif
        for (int lane = 0; lane < OWN; lane++) {{
            int width = mine + lane < {limit} ? {width} : 0, d = blocks;
            GLOBAL const T* line = {source} + (mine + lane) * {walk}.row;
            for (; d < width; d++) ((T_C*){x})[d * OWN + lane] = T_LD(line, d * {walk}.column) * {scale};
            for (; d < LD; d++) ((T_C*){x})[d * OWN + lane] = 0;
        }}
    }}"""


def _store_own_rows(target: str, x: str, walk: str, width: str, limit: str) -> str:
    """Return code that stores the transposed rows `x` to the work-item's rows of `target` (last dim contiguous)."""
    return f"""
    {{
        const int blocks = LANES > 1 ? {width} / LANES * LANES : 0;
#if LANES > 1
        for (int u = 0; u < NV; u++) for (int d = 0; d < blocks; d += LANES) {{
            V r[LANES];
            for (int lane = 0; lane < LANES; lane++) r[lane] = {x}[(d + lane) * NV + u];
            transpose(r);
            for (int lane = 0; lane < LANES; lane++) {{
                int row = mine + u * LANES + lane;
                if (row < {limit}) WIDE_STORE({target} + row * {walk}.row, d, r[lane]);
            }}
        }}
#endif
        for (int lane = 0; lane < OWN && mine + lane < {limit}; lane++) {{
            GLOBAL T* line = {target} + (mine + lane) * {walk}.row;
            for (int d = blocks; d < {width}; d++) T_ST(line, d, ((T_C*){x})[d * OWN + lane]);
        }}
    }}"""


def _tile_dots_source(out: str, tile: str, x: str) -> str:
    """Return code for out[j] = sum over d of tile[j][d] * x[d], for the tile's rows."""
    return f"""
        for (int j = 0; j < count; j += JB) {{
            V sum[JB * NV];
            #pragma unroll
            for (int r = 0; r < JB * NV; r++) sum[r] = 0;
            for (int d = 0; d < LD; d++) {{
                #pragma unroll
                for (int r = 0; r < JB; r++) {{
                    V factor = (V)({tile}[(j + r) * LD + d]);
                    #pragma unroll
                    for (int u = 0; u < NV; u++) sum[r * NV + u] = fma(factor, {x}[d * NV + u], sum[r * NV + u]);
                }}
            }}
            #pragma unroll
            for (int r = 0; r < JB * NV; r++) {out}[j * NV + r] = sum[r];
        }}"""


def _accumulate_source(out: str, tile: str, weights: str, scale: str = "") -> str:
    """Return code for out[d] = out[d] * scale + sum over the tile's rows j of tile[j][d] * weights[j]."""
    begin = f"{out}[d * NV + r] * {scale}[r % NV]" if scale else f"{out}[d * NV + r]"
    return f"""
        for (int d = 0; d < LD; d += JB) {{
            V sum[JB * NV];
            #pragma unroll
            for (int r = 0; r < JB * NV; r++) sum[r] = {begin};
            for (int j = 0; j < count; j++) {{
                #pragma unroll
                for (int r = 0; r < JB; r++) {{
                    V factor = (V)({tile}[j * LD + d + r]);
                    #pragma unroll
                    for (int u = 0; u < NV; u++) sum[r * NV + u] = fma(factor, {weights}[j * NV + u], sum[r * NV + u]);
                }}
            }}
            #pragma unroll
            for (int r = 0; r < JB * NV; r++) {out}[d * NV + r] = sum[r];
        }}"""


# Position of a work-item: its batch entry, its own rows (from `mine`), and the tiles' features rounded up.
_PLACE = r"""
    const int outer = ITEM_Y / s.inner, inner = ITEM_Y % s.inner, mine = ITEM * OWN, group = BLOCK * THREADS * OWN;
    const int LD = (max(s.features, s.values) + JB - 1) / JB * JB;
    V position[NV];
    for (int lane = 0; lane < OWN; lane++) ((T_C*)position)[lane] = mine + lane;
"""

# Scores of the work-item's queries for the staged keys: causal and other masks.
_MASK_QUERIES = r"""
        for (int j = 0; j < count; j++) {
            const int key = first + j;
            for (int u = 0; u < NV; u++) {
                V score = weights[j * NV + u];
#if MASK
                V part;
                for (int lane = 0; lane < LANES; lane++) {
                    int query = min(mine + u * LANES + lane, s.rows - 1);
                    ((T_C*)&part)[lane] = M_LD(mask, query * s.m.row + min(key, s.columns - 1) * s.m.column);
                }
                score = MASK == 1 ? (part != 0 ? score : (V)(-INFINITY)) : score + part;
#endif
                if (s.causal && key > mine) score = position[u] < (V)(key) ? (V)(-INFINITY) : score;
                weights[j * NV + u] = key < s.columns ? score : (V)(-INFINITY);
            }
        }
"""

# The same for the work-item's keys and the staged queries.
_MASK_KEYS = r"""
        for (int j = 0; j < count; j++) {
            const int query = first + j;
            for (int u = 0; u < NV; u++) {
                V score = weights[j * NV + u];
#if MASK
                V part;
                for (int lane = 0; lane < LANES; lane++) {
                    int key = min(mine + u * LANES + lane, s.columns - 1);
                    ((T_C*)&part)[lane] = M_LD(mask, min(query, s.rows - 1) * s.m.row + key * s.m.column);
                }
                score = MASK == 1 ? (part != 0 ? score : (V)(-INFINITY)) : score + part;
#endif
                if (s.causal && query < mine + OWN) score = position[u] > (V)(query) ? (V)(-INFINITY) : score;
                weights[j * NV + u] = query < s.rows ? score : (V)(-INFINITY);
            }
        }
"""

FORWARD = (
    _TYPES
    + r"""
KERNEL void forward(IN(T, q), IN(T, k), IN(T, v), IN(M, m), OUT(T, o), OUT(T_C, lse), const Shape s, const T_C scale) {
    LOCAL_ARRAY(T_C, tile, BK * DMAX);"""
    + _PLACE
    + r"""
    GLOBAL const T* query = AT(q) + START(s.q); GLOBAL const T* key_rows = AT(k) + START(s.k);
    GLOBAL const T* value_rows = AT(v) + START(s.v);
    GLOBAL const M* mask = AT(m) + START(s.m);
    V x[DMAX * NV], out[DMAX * NV], weights[BK * NV], largest[NV], total[NV], factor_[NV];
    for (int u = 0; u < NV; u++) { largest[u] = -INFINITY; total[u] = 0; }"""
    + _load_own_rows("x", "query", "s.q", "s.features", "s.rows", "scale")
    + r"""
    for (int i = 0; i < LD * NV; i++) out[i] = 0;
    const int stop = s.causal ? min(s.columns, group + THREADS * OWN) : s.columns;
    for (int first = 0; first < stop; first += BK) {
        const int count = min(BK, (stop - first + JB - 1) / JB * JB);
        BARRIER;"""
    + _load_tile("tile", "key_rows", "s.k", "s.features", "s.columns")
    + r"""
        BARRIER;"""
    + _tile_dots_source("weights", "tile", "x")
    + _MASK_QUERIES
    + r"""
        BARRIER;"""
    + _load_tile("tile", "value_rows", "s.v", "s.values", "s.columns")
    + r"""
        BARRIER;
        for (int u = 0; u < NV; u++) {
            V top = largest[u], sum = 0;
            for (int j = 0; j < count; j++) top = fmax(top, weights[j * NV + u]);
            V shift = top == (V)(-INFINITY) ? (V)(0) : top;
            for (int j = 0; j < count; j++) {
                V w = exp(weights[j * NV + u] - shift); weights[j * NV + u] = w; sum += w;
            }
            factor_[u] = exp(largest[u] - shift);
            total[u] = total[u] * factor_[u] + sum;
            largest[u] = top;
        }"""
    + _accumulate_source("out", "tile", "weights", "factor_")
    + r"""
    }
    for (int u = 0; u < NV; u++) {
        V shift = largest[u] == (V)(-INFINITY) ? (V)(0) : largest[u], sum = total[u] == (V)(0) ? (V)(1) : total[u];
        for (int d = 0; d < LD; d++) out[d * NV + u] /= sum;
        total[u] = log(sum) + shift;
    }"""
    + _store_own_rows("(AT(o) + START(s.o))", "out", "s.o", "s.values", "s.rows")
    + r"""
    for (int lane = 0; lane < OWN && mine + lane < s.rows; lane++)
        AT(lse)[ITEM_Y * s.rows + mine + lane] = ((T_C*)total)[lane];
}
"""
)

# delta = sum of grad * out over a query's values
DELTA = (
    _TYPES
    + r"""
KERNEL void dots(IN(T, g), IN(T, o), OUT(T_C, delta), const Shape s, const T_C scale) {
    const int outer = ITEM_Y / s.inner, inner = ITEM_Y % s.inner, row = ITEM;
    if (row >= s.rows) return;
    GLOBAL const T* a = AT(g) + START(s.g) + row * s.g.row; GLOBAL const T* b = AT(o) + START(s.o) + row * s.o.row;
    T_C sum = 0;
    int d = 0;
#if LANES > 1
    if (s.g.column == 1 && s.o.column == 1) {
        V part = 0;
        for (; d + LANES <= s.values; d += LANES) part += WIDE_LOAD(a, d) * WIDE_LOAD(b, d);
        for (int lane = 0; lane < LANES; lane++) sum += ((T_C*)&part)[lane];
    }
#endif
    for (; d < s.values; d++) sum += T_LD(a, d * s.g.column) * T_LD(b, d * s.o.column);
    AT(delta)[ITEM_Y * s.rows + row] = sum;
}
"""
)

# `o` walks the gradient of the queries.
BACKWARD_QUERY = (
    _TYPES
    + r"""
KERNEL void backward_query(IN(T, g), IN(T, q), IN(T, k), IN(T, v), IN(M, m), IN(T_C, lse), IN(T_C, delta),
                           OUT(T, dq), const Shape s, const T_C scale) {
    LOCAL_ARRAY(T_C, tile, BK * DMAX); LOCAL_ARRAY(T_C, values, BK * DMAX);"""
    + _PLACE
    + r"""
    GLOBAL const T* query = AT(q) + START(s.q); GLOBAL const T* key_rows = AT(k) + START(s.k);
    GLOBAL const T* value_rows = AT(v) + START(s.v);
    GLOBAL const T* grad = AT(g) + START(s.g); GLOBAL const M* mask = AT(m) + START(s.m);
    V x[DMAX * NV], y[DMAX * NV], out[DMAX * NV], weights[BK * NV], slopes[BK * NV], log_sum[NV], dot_[NV];
    for (int lane = 0; lane < OWN; lane++) {
        int inside = mine + lane < s.rows, at = ITEM_Y * s.rows + mine + lane;
        ((T_C*)log_sum)[lane] = inside ? AT(lse)[at] : 0;
        ((T_C*)dot_)[lane] = inside ? AT(delta)[at] : 0;
    }"""
    + _load_own_rows("x", "query", "s.q", "s.features", "s.rows", "scale")
    + _load_own_rows("y", "grad", "s.g", "s.values", "s.rows")
    + r"""
    for (int i = 0; i < LD * NV; i++) out[i] = 0;
    const int stop = s.causal ? min(s.columns, group + THREADS * OWN) : s.columns;
    for (int first = 0; first < stop; first += BK) {
        const int count = min(BK, (stop - first + JB - 1) / JB * JB);
        BARRIER;"""
    + _load_tile("tile", "key_rows", "s.k", "s.features", "s.columns")
    + _load_tile("values", "value_rows", "s.v", "s.values", "s.columns")
    + r"""
        BARRIER;"""
    + _tile_dots_source("weights", "tile", "x")
    + _MASK_QUERIES
    + _tile_dots_source("slopes", "values", "y")
    + r"""
        for (int j = 0; j < count * NV; j++)
            weights[j] = exp(weights[j] - log_sum[j % NV]) * (slopes[j] - dot_[j % NV]);"""
    + _accumulate_source("out", "tile", "weights")
    + r"""
    }
    for (int i = 0; i < LD * NV; i++) out[i] *= (V)(scale);"""
    + _store_own_rows("(AT(dq) + START(s.o))", "out", "s.o", "s.features", "s.rows")
    + r"""
}
"""
)

# dk and dv are walked as `o` (batch entries and rows the same; `o.row` for dk) and `v`-like through `w`.
BACKWARD_KEY = (
    _TYPES
    + r"""
KERNEL void backward_key(IN(T, g), IN(T, q), IN(T, k), IN(T, v), IN(M, m), IN(T_C, lse), IN(T_C, delta),
                         OUT(T, dk), OUT(T, dv), const Shape s, const T_C scale, const Walk w) {
    LOCAL_ARRAY(T_C, tile, BK * DMAX); LOCAL_ARRAY(T_C, values, BK * DMAX);"""
    + _PLACE
    + r"""
    GLOBAL const T* key_rows = AT(k) + START(s.k); GLOBAL const T* query_rows = AT(q) + START(s.q);
    GLOBAL const T* value_rows = AT(v) + START(s.v);
    GLOBAL const T* grad = AT(g) + START(s.g); GLOBAL const M* mask = AT(m) + START(s.m);
    GLOBAL const T_C* log_sums = AT(lse) + ITEM_Y * s.rows; GLOBAL const T_C* dots = AT(delta) + ITEM_Y * s.rows;
    V x[DMAX * NV], y[DMAX * NV], out[DMAX * NV], more[DMAX * NV], weights[BK * NV], slopes[BK * NV];"""
    + _load_own_rows("x", "key_rows", "s.k", "s.features", "s.columns", "scale")
    + _load_own_rows("y", "value_rows", "s.v", "s.values", "s.columns")
    + r"""
    for (int i = 0; i < LD * NV; i++) { out[i] = 0; more[i] = 0; }
    for (int first = s.causal ? group / BK * BK : 0; first < s.rows; first += BK) {
        const int count = min(BK, (s.rows - first + JB - 1) / JB * JB);
        BARRIER;"""
    + _load_tile("tile", "query_rows", "s.q", "s.features", "s.rows")
    + _load_tile("values", "grad", "s.g", "s.values", "s.rows")
    + r"""
        BARRIER;"""
    + _tile_dots_source("weights", "tile", "x")
    + _MASK_KEYS
    + _tile_dots_source("slopes", "values", "y")
    + r"""
        for (int j = 0; j < count; j++) {
            int at = min(first + j, s.rows - 1);
            for (int u = 0; u < NV; u++) {
                V w_ = exp(weights[j * NV + u] - (V)(log_sums[at]));
                weights[j * NV + u] = w_;
                slopes[j * NV + u] = (slopes[j * NV + u] - (V)(dots[at])) * w_;
            }
        }"""
    + _accumulate_source("more", "values", "weights")
    + _accumulate_source("out", "tile", "slopes")
    + r"""
    }
    for (int i = 0; i < LD * NV; i++) out[i] *= (V)(scale);"""
    + _store_own_rows("(AT(dk) + START(s.o))", "out", "s.o", "s.features", "s.columns")
    + _store_own_rows("(AT(dv) + START(w))", "more", "w", "s.values", "s.columns")
    + r"""
}
"""
)
