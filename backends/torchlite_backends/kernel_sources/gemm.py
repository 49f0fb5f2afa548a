"""Matrix products: panels of vectors for CPUs, tiles in local memory for GPUs, with strides or offset tables.

c[m, n] = alpha * sum over k of a[m, k] * b[k, n] + beta * d[m, n], for every matrix of a batch. Element (m, k) of `a`
is at m * am + k * ak, and so on. For convolutions, tables place it at rows[m] + depth_a[k], and that of `b` at
depth_b[k] + n * bn.
"""

from __future__ import annotations

import functools
import struct
from typing import NamedTuple

from .dtype_kinds import KINDS

# Rows that a work-item has in registers at a time, with one or two vectors of each; a single row has many.
REGISTER_ROWS = 8
SINGLE_ROW_VECTORS = 16
# The numbers of a product, passed to kernels as one struct.
FIELDS = (
    "m", "n", "k", "am", "ak", "bk", "bn", "cm", "cn", "dm", "dn", "inner", "a0", "a1", "b0", "b1", "c0", "c1", "d0",
    "d1", "added", "direct", "conj_a", "conj_b", "tiles", "panels", "splits", "depth", "block", "most", "slot", "total",
    "part", "a_fast", "b_fast",
)  # fmt: skip
_SHAPE = "typedef struct { int " + ", ".join(FIELDS[:17]) + ";\nint " + ", ".join(FIELDS[17:]) + "; } Shape;\n"
pack_shape = struct.Struct("i" * len(FIELDS)).pack


class Accumulation(NamedTuple):
    """Accumulation type of products of a kind: a kind, the elements of a vector, and the struct code of its numbers."""

    kind: str
    width: int
    pack: str


def accumulation_type_of(kind: str) -> Accumulation:
    """Return the accumulation type: float for half precision, int for small integers."""
    if kind in ("f16", "bf16", "c64"):
        return Accumulation("f32", 16, "f")
    if kind == "c128":
        return Accumulation("f64", 8, "d")
    if kind in ("u8", "i8", "i16", "u16"):
        return Accumulation("i32", 16, "i")
    return Accumulation(kind, 8 if kind in ("f64", "i64", "u64") else 16, KINDS[kind].pack)


def _vector_access_source(name: str, kind: str, acc: str, w: int, as_name: str) -> str:
    """Return the macros `T_V(p, i)` and `T_SV(p, i, v)` that load and store a vector of the accumulation type, named
    `as_name`.
    """
    load, store = f"{name}_LD{w}(p, i)", f"{name}_ST{w}(p, i, v)"
    if kind in ("u8", "i8", "i16", "u16"):
        load, store = f"convert_{acc}{w}({load})", f"{name}_ST{w}(p, i, convert_{KINDS[kind].stored}{w}(v))"
    return f"#define {name}_{as_name}(p, i) {load}\n#define {name}_S{as_name}(p, i, v) {store}\n"


def _defines_source(kind: str, out: str, vectors: int) -> str:
    sums = accumulation_type_of(kind)
    acc = KINDS[sums.kind].computed
    # The hint declares the kernel vectorised: without it Intel's compiler also tries to vectorise over work-items,
    # which takes seconds.
    lines = [
        "#define VECTORS VECTOR_HINT(V)",
        f"#define ACC {acc}",
        f"#define W {sums.width}",
        f"#define NV {vectors}",
        f"#define V {acc}{sums.width}",
        f"#define VLOAD vload{sums.width}",
        f"#define VSTORE vstore{sums.width}",
    ]
    if kind[0] == "c":
        lines += ["#define COMPLEX", "#define NR W", "#define PANEL (2 * W)"]
    else:
        lines += ["#define NR (NV * W)", "#define PANEL NR"]
    text = "\n".join(lines) + "\n"
    if kind[0] != "c":
        text += "".join(
            _vector_access_source(name, of, acc, w, macro)
            for name, of in (("T", kind), ("U", out))
            for w, macro in ((sums.width, "V"), (8, "V8"))
        )
        text += f"#define V8 {acc}8\n"
    return text


# Epilogue of a product before the store, by op: of vectors and of numbers.
EPILOGUES = {
    "": "v",
    "relu": "((v) < (X)(0) ? (X)(0) : (v))",
    "relu6": "((v) < (X)(0) ? (X)(0) : (v) > (X)(6) ? (X)(6) : (v))",
}


def make_epilogue_macros(op: str, **types: str) -> str:
    """Return the epilogue's macros by name, each with the types that it applies to."""
    return "".join(f"#define {name}(v) {EPILOGUES[op].replace('X', of)}\n" for name, of in types.items())


def _unroll_rows(text: str, rows: int) -> str:
    """Repeat a text for each row of the tile: @ is the row."""
    return "".join(text.replace("@", str(r)) for r in range(rows))


def _unroll_tile(text: str, rows: int, vectors: int) -> str:
    """Repeat a text for each row and vector of the tile: @ is the row and $ the vector."""
    return "".join(text.replace("@", str(r)).replace("$", str(v)) for r in range(rows) for v in range(vectors))


_PACK = r"""
#ifdef TABLES
#define AK(k) depth_a[k]
#define BK(k) depth_b[k]
#define AM(m) rows[m]
#define CM(m) places[m]
#else
#define AK(k) ((k) * s.ak)
#define BK(k) ((k) * bk)
#define AM(m) ((m) * s.am)
#define CM(m) ((m) * s.cm)
#endif
#ifdef COMPLEX
FUNCTION void pack(GLOBAL const T* b, GLOBAL ACC* panel, GLOBAL const int* depth_b, const int bk, const int bn,
    const int wide, const int k0, const int k1, const int conj_b) {
    for (int k = k0; k < k1; ++k, panel += PANEL) {
        for (int j = 0; j < NR; ++j) {
            T v = b[BK(k) + min(j, wide - 1) * bn];
            panel[j] = v.x;
            panel[W + j] = conj_b ? -v.y : v.y;
        }
    }
}
#else
FUNCTION void pack_rows(GLOBAL const T* b, GLOBAL ACC* panel, GLOBAL const int* depth_b, const int bk, const int bn,
    const int wide, const int k0, const int k1) {
    for (int k = k0; k < k1; ++k, panel += PANEL) {
        #pragma nounroll
        for (int j = 0; j < NR; ++j) { panel[j] = T_LD(b, BK(k) + min(j, wide - 1) * bn); }
    }
}
FUNCTION void pack_block(GLOBAL const T* b, GLOBAL ACC* panel, const int bn, const int wide) {
    V8 x[8], y[8];
    #pragma unroll
    for (int i = 0; i < 8; ++i) { x[i] = T_V8(b, min(i, wide - 1) * bn); }
    #pragma unroll
    for (int bit = 1; bit < 8; bit += bit) {
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            y[i] = VEC2(V8, x[2 * i].even, x[2 * i + 1].even);
            y[i + 4] = VEC2(V8, x[2 * i].odd, x[2 * i + 1].odd);
        }
        #pragma unroll
        for (int i = 0; i < 8; ++i) { x[i] = y[i]; }
    }
    #pragma unroll
    for (int i = 0; i < 8; ++i) { vstore8(x[i], 0, panel + i * PANEL); }
}
FUNCTION void pack(GLOBAL const T* b, GLOBAL ACC* panel, GLOBAL const int* depth_b, const int bk, const int bn,
    const int wide, const int k0, const int k1, const int conj_b) {
    if (bn == 1) {
        for (int k = k0; k < k1; ++k, panel += PANEL) {
            int j = 0;
            #pragma nounroll
            for (; j + W <= wide; j += W) { VSTORE(T_V(b, BK(k) + j), 0, panel + j); }
            for (; j < wide; ++j) { panel[j] = T_LD(b, BK(k) + j); }
            for (; j < NR; ++j) { panel[j] = 0; }
        }
        return;
    }
    for (int k = k0; k < k1;) {
        int stop = min(k + 8, k1);
        if (stop == k + 8 && BK(k + 7) - BK(k) == 7) {
            #pragma nounroll
            for (int j = 0; j < NR; j += 8) {
                pack_block(b + BK(k) + min(j, wide - 1) * bn, panel + j, bn, max(1, wide - j));
            }
        } else {
            pack_rows(b, panel, depth_b, bk, bn, wide, k, stop);
        }
        panel += (stop - k) * PANEL;
        k = stop;
    }
}
#endif
"""

_STORE = r"""
#ifdef COMPLEX
#define TIMES(p, q) VEC2(T, (p).x * (q).x - (p).y * (q).y, (p).x * (q).y + (p).y * (q).x)
#else
#define TIMES(p, q) ((p) * (q))
#endif
FUNCTION void store_scattered(GLOBAL const ACC* tile, GLOBAL U* c, GLOBAL const T* d, GLOBAL const int* places,
        const Shape s, const int m, const int wide, const FACTOR alpha, const FACTOR beta) {
    int high = min(@ROWS, s.m - m);
#ifndef COMPLEX
    if (high == 8 && (!s.added || s.dm == 0)) {
        int p0 = CM(m), p1 = CM(m + 1), p2 = CM(m + 2), p3 = CM(m + 3), p4 = CM(m + 4), p5 = CM(m + 5), p6 = CM(m + 6),
            p7 = CM(m + 7);
        for (int j = 0; j < wide; ++j, ++tile) {
            ACC more = s.added ? beta * T_LD(d, j * s.dn) : 0;
            GLOBAL U* to = c + j * s.cn;
            if (p7 - p0 == 7) {
                V8 v = alpha * VEC8(V8, tile[0], tile[1 * PANEL], tile[2 * PANEL], tile[3 * PANEL], tile[4 * PANEL],
                    tile[5 * PANEL], tile[6 * PANEL], tile[7 * PANEL]);
                v = v + (V8)(more);
                U_SV8(to, p0, THEN_V8(v));
            } else {
                U_ST(to, p0, THEN(alpha * tile[0 * PANEL] + more));
                U_ST(to, p1, THEN(alpha * tile[1 * PANEL] + more));
                U_ST(to, p2, THEN(alpha * tile[2 * PANEL] + more));
                U_ST(to, p3, THEN(alpha * tile[3 * PANEL] + more));
                U_ST(to, p4, THEN(alpha * tile[4 * PANEL] + more));
                U_ST(to, p5, THEN(alpha * tile[5 * PANEL] + more));
                U_ST(to, p6, THEN(alpha * tile[6 * PANEL] + more));
                U_ST(to, p7, THEN(alpha * tile[7 * PANEL] + more));
            }
        }
        return;
    }
#endif
    #pragma nounroll
    for (int j = 0; j < wide; ++j) {
        #pragma nounroll
        for (int r = 0; r < high; ++r) {
#ifdef COMPLEX
            T v = VEC2(T, tile[r * PANEL + j], tile[r * PANEL + W + j]);
            v = TIMES(alpha, v);
            if (s.added) { T w = d[(m + r) * s.dm + j * s.dn]; v += TIMES(beta, w); }
            c[CM(m + r) + j * s.cn] = v;
#else
            ACC v = alpha * tile[r * PANEL + j];
            if (s.added) { v += beta * T_LD(d, (m + r) * s.dm + j * s.dn); }
            U_ST(c, CM(m + r) + j * s.cn, THEN(v));
#endif
        }
    }
}
"""


_STORE_ROWS = r"""
#ifndef COMPLEX
FUNCTION void store_rows(GLOBAL const ACC* tile, GLOBAL U* c, GLOBAL const T* d, GLOBAL const int* places,
    const Shape s, const int m, const ACC alpha, const ACC beta) {
    int high = min(@ROWS, s.m - m);
    #pragma nounroll
    for (int r = 0; r < high; ++r) {
        for (int j = 0; j < NR; j += W) {
            V v = alpha * VLOAD(0, tile + r * PANEL + j);
            if (s.added) { v += beta * (s.dn ? T_V(d, (m + r) * s.dm + j) : (V)(T_LD(d, (m + r) * s.dm))); }
            U_SV(c, CM(m + r) + j, THEN_V(v));
        }
    }
}
#endif
"""


def _multiply_source(complex_: bool, rows: int, vectors: int) -> str:
    """Return the inner loop's lines: one k for all rows."""
    if complex_:
        return _unroll_rows(
            "T s@ = a@[place]; ACC i@ = conj * s@.y; c@_0 = fma((V)(s@.x), b0, fma((V)(-i@), b1, c@_0)); c@_1 = "
            "fma((V)(s@.x), b1, fma((V)(i@), b0, c@_1));\n",
            rows,
        )
    lines = "V s@ = (V)(T_LD(a@, place)); "
    return _unroll_rows(lines + " ".join(f"c@_{v} += s@ * b{v};" for v in range(vectors)) + "\n", rows)


@functools.cache
def panels_source(kind: str, out: str, vectors: int, rows: int = REGISTER_ROWS, then: str = "") -> str:
    """Return the CPU kernel `product` with a fused op of `EPILOGUES`.

    A work-item has a range of all row tiles of all panels of `b`: it packs a panel's columns row by row, and multiplies
    it with each row tile.
    """
    complex_ = kind[0] == "c"
    registers = 2 if complex_ else vectors
    return (
        _SHAPE
        + _defines_source(kind, out, vectors)
        + f"#define FACTOR {'T' if complex_ else 'ACC'}\n"
        + make_epilogue_macros(then, THEN="ACC", THEN_V="V", THEN_V8="V8")
        + _PACK
        + (_STORE + _STORE_ROWS).replace("@ROWS", str(rows))
        + r"""
VECTORS KERNEL void product(IN(T, a), IN(T, b), OUT(U, c), IN(T, d), GLOBAL ACC* scratch, const int scratch_o,
                            GLOBAL const int* table, const int table_o, const Shape s, const FACTOR alpha,
                                const FACTOR beta) {
    GLOBAL const int *rows = table, *places = table + s.m, *depth_a = places + s.m, *depth_b = depth_a + s.k;
    GLOBAL ACC* own = scratch + (long)ITEM * s.slot;
    GLOBAL ACC* kept = own + s.block * PANEL;
    int items = ITEMS, at = (int)((long)s.total * ITEM / items), stop = (int)((long)s.total * (ITEM + 1) / items);
    while (at < stop) {
        int job = at / s.tiles, first = at % s.tiles, last = min(min(s.tiles, first + s.most), first + stop - at);
        at += last - first;
        int split = job % s.splits; job /= s.splits;
        int n = job % s.panels * NR, wide = min(NR, s.n - n), batch = job / s.panels;
        int outer = batch / s.inner, inner = batch % s.inner;
        GLOBAL const T* a_at = AT(a) + outer * s.a0 + inner * s.a1;
        GLOBAL const T* b_at = AT(b) + outer * s.b0 + inner * s.b1 + n * s.bn;
        GLOBAL const T* d = AT(d) + outer * s.d0 + inner * s.d1 + n * s.dn;
        GLOBAL U* c = AT(c) + outer * s.c0 + inner * s.c1 + n * s.cn + split * s.part;
        int end = min(s.k, (split + 1) * s.depth);
        for (int k0 = split * s.depth; k0 == split * s.depth || k0 < end; k0 += s.block) {
            int k1 = min(end, k0 + s.block), step = PANEL;
            GLOBAL const ACC* panel = own;
#ifdef SAME
            if (s.direct && wide == NR) { panel = b_at + k0 * s.bk; step = s.bk; } else
#endif
            pack(b_at, own, depth_b, s.bk, s.bn, wide, k0, k1, s.conj_b);
            for (int t = first; t < last; ++t) {
                int m = t * """
        + str(rows)
        + ";\n"
        + _unroll_rows("GLOBAL const T* a@ = a_at + AM(min(m + @, s.m - 1));\n", rows)
        + _unroll_tile("V c@_$ = 0;\n", rows, registers)
        + r"""
                GLOBAL ACC* saved = kept + (s.block < s.depth ? (t - first) * """
        + str(rows)
        + r""" * PANEL : 0);
                if (k0 > split * s.depth) {
"""
        + _unroll_tile("c@_$ = VLOAD(0, saved + @ * PANEL + $ * W);\n", rows, registers)
        + r"""
                }
                GLOBAL const ACC* row = panel;
                ACC conj = s.conj_a ? -1 : 1;
                for (int k = k0; k < k1; ++k, row += step) {
                    int place = AK(k);
"""
        + "".join(f"V b{v} = VLOAD(0, row + {v} * W);\n" for v in range(registers))
        + _multiply_source(complex_, rows, vectors)
        + r"""
                }
"""
        + _unroll_tile("VSTORE(c@_$, 0, saved + @ * PANEL + $ * W);\n", rows, registers)
        + r"""
                if (k1 < end) { continue; }
#ifndef COMPLEX
                if (s.cn == 1 && wide == NR && (!s.added || s.dn == 1 || s.dn == 0)) {
                    store_rows(saved, c, d, places, s, m, alpha, beta);
                    continue;
                }
#endif
                store_scattered(saved, c, d, places, s, m, wide, alpha, beta);
            }
        }
    }
}
"""
    )


# Rows and columns of the tile of `dots_source`.
DOTS_TILE = 4


@functools.cache
def dots_source(kind: str, out: str) -> str:
    """Return the CPU kernel `dots` for few rows, k contiguous in both operands: vectors along k.

    A work-item has a range of column groups.
    """
    pairs = [(r, j) for r in range(DOTS_TILE) for j in range(DOTS_TILE)]
    lines = "".join(f"V b{j} = T_V(b_{j}, k); " for j in range(DOTS_TILE)) + "".join(
        f"{{ V x = T_V(a_{r}, k); " + " ".join(f"c{r}_{j} += x * b{j};" for j in range(DOTS_TILE)) + " }\n"
        for r in range(DOTS_TILE)
    )
    ends = "".join(f"t{r}_{j} += T_LD(a_{r}, k) * T_LD(b_{j}, k);\n" for r, j in pairs)
    halves = "".join(
        f"ACC{w} h{w} = "
        + (f"h{2 * w}.lo + h{2 * w}.hi" if 2 * w < accumulation_type_of(kind).width else "v.lo + v.hi")
        + "; "
        for w in (8, 4, 2)
        if w < accumulation_type_of(kind).width
    )
    acc = KINDS[accumulation_type_of(kind).kind].computed
    stores = "".join(
        f"if ({r} < s.m && n + {j} < s.n) {{ ACC v = alpha * (sum_of(c{r}_{j}) + t{r}_{j}); if (s.added) {{ v += "
        f"beta * T_LD(d, {r} * s.dm + (n + {j}) * s.dn); }} U_ST(c, {r} * s.cm + (n + {j}) * s.cn, v); }}\n"
        for r, j in pairs
    )
    return (
        _SHAPE
        + _defines_source(kind, out, 1)
        + f"FUNCTION ACC sum_of(V v) {{ {halves.replace('ACC', acc)}return h2.x + h2.y; }}\n"
        + r"""
VECTORS KERNEL void dots(IN(T, a), IN(T, b), OUT(U, c_), IN(T, d_), const Shape s, const ACC alpha, const ACC beta) {
    int items = ITEMS, at = (int)((long)s.total * ITEM / items), stop = (int)((long)s.total * (ITEM + 1) / items);
    for (; at < stop; ++at) {
        int n = at % s.panels * """
        + str(DOTS_TILE)
        + r""", job = at / s.panels, split = job % s.splits, batch = job / s.splits,
            outer = batch / s.inner, inner = batch % s.inner;
        GLOBAL const T* a_at = AT(a) + outer * s.a0 + inner * s.a1;
        GLOBAL const T* b_at = AT(b) + outer * s.b0 + inner * s.b1;
        GLOBAL const T* d = AT(d_) + outer * s.d0 + inner * s.d1;
        GLOBAL U* c = AT(c_) + outer * s.c0 + inner * s.c1 + split * s.part;
        int k = split * s.depth, end = min(s.k, k + s.depth);
"""
        + "".join(
            f"GLOBAL const T* a_{r} = a_at + min({r}, s.m - 1) * s.am;\n"
            f"GLOBAL const T* b_{r} = b_at + min(n + {r}, s.n - 1) * s.bn;\n"
            for r in range(DOTS_TILE)
        )
        + "".join(f"V c{r}_{j} = 0; ACC t{r}_{j} = 0;\n" for r, j in pairs)
        + r"""
        for (; k + W <= end; k += W) {
"""
        + lines
        + r"""
        }
        for (; k < end; ++k) {
"""
        + ends
        + r"""
        }
"""
        + stores
        + r"""
    }
}
"""
    )


@functools.cache
def split_k_sum_source() -> str:
    """Return the kernel `total`: the sum of the split-k partial products (of kind P), as T."""
    return (
        _SHAPE
        + r"""
#ifdef COMPLEX
#define TIMES(p, q) VEC2(T, (p).x * (q).x - (p).y * (q).y, (p).x * (q).y + (p).y * (q).x)
#else
#define TIMES(p, q) ((p) * (q))
#endif
KERNEL void total(IN(P, parts), OUT(T, c), IN(T, d), const Shape s, const P_C alpha, const P_C beta) {
    if (ITEM >= s.part) { return; }
    int n = ITEM % s.n, m = ITEM / s.n % s.m, batch = ITEM / s.n / s.m, outer = batch / s.inner,
        inner = batch % s.inner;
    P_C v = P_LD(AT(parts), ITEM);
    for (int i = 1; i < s.splits; ++i) { v += P_LD(AT(parts), i * s.part + ITEM); }
    v = TIMES(alpha, v);
    if (s.added) {
        P_C w = T_LD(AT(d), outer * s.d0 + inner * s.d1 + m * s.dm + n * s.dn);
        v += TIMES(beta, w);
    }
    T_ST(AT(c), outer * s.c0 + inner * s.c1 + m * s.cm + n * s.cn, v);
}
"""
    )


# Rows and columns of a GPU's tile that a thread has along each side, and the elements of k that lie in local memory.
TILE_PER_THREAD, TILE_DEPTH = 4, 8


@functools.cache
def tiles_source(
    kind: str, out: str, side: int, each: int = TILE_PER_THREAD, depth: int = TILE_DEPTH, then: str = ""
) -> str:
    """Return the GPU kernel `tiles` with a fused op of `EPILOGUES`: a work-group of side * side threads computes a tile
    of c.

    Tiles of a and b are in local memory.
    """
    sums = accumulation_type_of(kind).kind
    complex_ = kind[0] == "c"
    acc = KINDS[kind].computed if complex_ else KINDS[sums].computed
    return (
        _SHAPE
        + f"#define ACC {acc}\n#define SIDE {side}\n#define EACH {each}\n#define DEPTH {depth}\n"
        + ("#define COMPLEX\n" if complex_ else "")
        + make_epilogue_macros(then, THEN="ACC")
        + r"""
#define TILE (SIDE * EACH)
#ifdef TABLES
#define ACROSS_ROWS 1
#define AK(k) depth_a[k]
#define BK(k) depth_b[k]
#define AM(m) rows[m]
#define CM(m) places[m]
#else
#define ACROSS_ROWS 0
#define AK(k) ((k) * s.ak)
#define BK(k) ((k) * s.bk)
#define AM(m) ((m) * s.am)
#define CM(m) ((m) * s.cm)
#endif
#ifdef COMPLEX
#define ADD_PRODUCT(sum, p, q) sum.x += p.x * q.x - p.y * q.y; sum.y += p.x * q.y + p.y * q.x
#define SET_ZERO(v) v.x = 0; v.y = 0
#else
#define ADD_PRODUCT(sum, p, q) sum += p * q
#define SET_ZERO(v) v = 0
#endif
KERNEL void tiles(IN(T, a), IN(T, b), OUT(U, c_), IN(T, d_), GLOBAL const int* table, const int table_o, const Shape s,
    const ACC alpha, const ACC beta) {
    LOCAL_MATRIX(ACC, left, DEPTH, TILE + 1);
    LOCAL_MATRIX(ACC, right, DEPTH, TILE + 1);
    GLOBAL const int* rows = table;
    GLOBAL const int* places = table + s.m;
    GLOBAL const int* depth_a = places + s.m;
    GLOBAL const int* depth_b = depth_a + s.k;
    int job = BLOCK, m0 = job % s.tiles * TILE;
    job /= s.tiles;
    int split = job % s.splits;
    job /= s.splits;
    int n0 = job % s.panels * TILE, batch = job / s.panels, outer = batch / s.inner, inner = batch % s.inner;
    GLOBAL const T* a = AT(a) + outer * s.a0 + inner * s.a1;
    GLOBAL const T* b = AT(b) + outer * s.b0 + inner * s.b1;
    GLOBAL const T* d = AT(d_) + outer * s.d0 + inner * s.d1;
    GLOBAL U* c = AT(c_) + outer * s.c0 + inner * s.c1 + split * s.part;
    int first = split * s.depth, end = min(s.k, first + s.depth), across = THREAD % SIDE, down = THREAD / SIDE;
    ACC sums[EACH][EACH];
    for (int i = 0; i < EACH; ++i) {
        for (int j = 0; j < EACH; ++j) { SET_ZERO(sums[i][j]); }
    }
    for (int k0 = first; k0 < end; k0 += DEPTH) {
        for (int i = THREAD; i < DEPTH * TILE; i += THREADS) {
            int at = s.a_fast ? i / DEPTH : i % TILE, k = s.a_fast ? i % DEPTH : i / TILE;
            ACC v;
            SET_ZERO(v);
            if (m0 + at < s.m && k0 + k < end) { v = T_LD(a, AM(m0 + at) + AK(k0 + k)); }
#ifdef COMPLEX
            if (s.conj_a) { v.y = -v.y; }
#endif
            left[k][at] = v;
        }
        for (int i = THREAD; i < DEPTH * TILE; i += THREADS) {
            int at = s.b_fast ? i / DEPTH : i % TILE, k = s.b_fast ? i % DEPTH : i / TILE;
            ACC v;
            SET_ZERO(v);
            if (n0 + at < s.n && k0 + k < end) { v = T_LD(b, BK(k0 + k) + (n0 + at) * s.bn); }
#ifdef COMPLEX
            if (s.conj_b) { v.y = -v.y; }
#endif
            right[k][at] = v;
        }
        BARRIER;
        for (int k = 0; k < DEPTH; ++k) {
            for (int i = 0; i < EACH; ++i) {
                ACC x = left[k][(ACROSS_ROWS ? across : down) + i * SIDE];
                for (int j = 0; j < EACH; ++j) {
                    ACC y = right[k][(ACROSS_ROWS ? down : across) + j * SIDE];
                    ADD_PRODUCT(sums[i][j], x, y);
                }
            }
        }
        BARRIER;
    }
    for (int i = 0; i < EACH; ++i) {
        int m = m0 + (ACROSS_ROWS ? across : down) + i * SIDE;
        for (int j = 0; j < EACH; ++j) {
            int n = n0 + (ACROSS_ROWS ? down : across) + j * SIDE;
            if (m < s.m && n < s.n) {
                ACC v;
                SET_ZERO(v);
                ADD_PRODUCT(v, alpha, sums[i][j]);
                if (s.added) {
                    ACC w = T_LD(d, m * s.dm + n * s.dn);
                    ADD_PRODUCT(v, beta, w);
                }
                U_ST(c, CM(m) + n * s.cn, THEN(v));
            }
        }
    }
}
"""
    )
