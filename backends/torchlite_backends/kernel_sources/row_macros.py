"""Macros for row kernels: one source for a work-item per row with wide vectors (CPUs) and a work-group per row (GPUs).

The program defines `T` (the dtype), `W` (elements in a vector, 1 for none), `LANES` (work-items per row, 1 for none)
and `COLUMNS` (1 if rows are strided in memory: then a worker takes W adjacent ones, and a sum over a row is a vector of
W sums).

A kernel reads:

    SCRATCH
    EACH_ROW(row, rows, per) {
        ROW_OF(row, n, inner)
        SUM(total)
        ACROSS(i, n) ADD_TO(total, GET(x, i, 0))
        R sum = TO_R(TOTAL(total));
        ...

A sum adds up 64 numbers in the compute type, and such sums in `D`: double, if the device has it.

`C` is the compute type, `V` a vector of it, `R` the result of a reduction over a row (C, or V for columns). `GET(x, i,
fill)` loads element i of the row and its vector neighbours, with `fill` past the end.
"""

from __future__ import annotations


def _vector_fold_source(name: str, pair: str, scalar: str = "C", vector: str = "V") -> str:
    """Return a function that reduces a vector to one number, by halves if the language has them.

    `pair` combines two numbers or halves.
    """
    text = (
        "#ifdef __cplusplus\n"
        f"FUNCTION {scalar} {name}({vector} v) {{ {scalar} all = v[0]; "
        f"for (int k = 1; k < W; k++) all = {pair.format('all', 'v[k]')}; "
        "return all; }\n"
        "#else\n"
    )
    for w in (16, 8, 4, 2):
        halves = [
            f"JOIN({'T' if scalar == 'C' else scalar}_C, {n}) v{n} = {pair.format(f'v{2 * n}.lo', f'v{2 * n}.hi')};"
            for n in (8, 4, 2)
            if n < w
        ]
        text += "\n    ".join(
            [
                f"#if W == {w}\nFUNCTION {scalar} {name}({vector} v{w}) {{",
                *halves,
                f"return {pair.format('v2.lo', 'v2.hi')};\n}}\n#endif\n",
            ]
        )
    return text + "#endif\n"


def _partial_load_source(w: int, text: str) -> str:
    return f"#if W > {w}\n    if (n & {w}) {{ {text} k += {w}; }}\n#endif\n"


_FOLDS = _vector_fold_source("lanes_sum", "{} + {}", "D", "DV") + _vector_fold_source("lanes_max", "LARGER({}, {})")
# The elements past the end of a row: runs of 8, 4, 2 and 1.
_PARTS = f"""
FUNCTION V load_part_@(GLOBAL const @* p, int n, C fill) {{
    C lane[W];
    int k = 0;
    JOIN(vstore, W)(SPLAT(fill), 0, lane);
{"".join(_partial_load_source(w, f"vstore{w}(@_LD{w}(p, k), 0, lane + k);") for w in (8, 4, 2))}\
    if (n & 1) lane[k] = @_LD(p, k);
    return JOIN(vload, W)(0, lane);
}}
FUNCTION void store_part_@(GLOBAL @* p, int n, V v) {{
    C lane[W];
    int k = 0;
    JOIN(vstore, W)(v, 0, lane);
{"".join(_partial_load_source(w, f"@_ST{w}(p, k, vload{w}(0, lane + k));") for w in (8, 4, 2))}\
    if (n & 1) @_ST(p, k, lane[k]);
}}
"""
_COMMON = (
    r"""
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define LARGER(a, b) SELECT((a) > (b), a, b)
#ifndef D_C
#define D T_C
#define D_C T_C
#endif
typedef T_C C;
#if W > 1
typedef JOIN(T_C, W) V;
typedef JOIN(D_C, W) DV;
#define TO_D(v) JOIN(JOIN(convert_, D_C), W)(v)
#define TO_V(v) JOIN(JOIN(convert_, T_C), W)(v)
#define LANE_OF(v, k) (((C*)&(v))[k])
"""
    + _FOLDS
    + r"""#else
typedef T_C V;
typedef D_C DV;
#define TO_D(v) ((D_C)(v))
#define TO_V(v) ((T_C)(v))
#define LANE_OF(v, k) (v)
#define lanes_sum(v) (v)
#define lanes_max(v) (v)
#endif
#define SPLAT(v) ((V)(v))

#define SUM(name) V name = SPLAT(0); DV name##_all = (DV)(0); int name##_count = 0;
#define ADD_TO(name, v) { \
    name += v; \
    if (++name##_count == 64) { name##_all += TO_D(name); name = SPLAT(0); name##_count = 0; } \
}
#define TOTAL(name) ROW_SUM(name##_all + TO_D(name))

#if LANES > 1
FUNCTION D block_sum(D v, LOCAL D* shared) {
    BARRIER;
    shared[THREAD] = v;
    BARRIER;
    for (int k = LANES / 2; k > 0; k /= 2) {
        if (THREAD < k) shared[THREAD] += shared[THREAD + k];
        BARRIER;
    }
    return shared[0];
}
FUNCTION C block_max(C v, LOCAL D* shared) {
    BARRIER;
    shared[THREAD] = v;
    BARRIER;
    for (int k = LANES / 2; k > 0; k /= 2) {
        if (THREAD < k) shared[THREAD] = LARGER(shared[THREAD], shared[THREAD + k]);
        BARRIER;
    }
    return (C)shared[0];
}
#define SCRATCH LOCAL_ARRAY(D, shared, LANES);
#define WORKER BLOCK
#define LANE THREAD
#define SUM_OF_ITEMS(c) block_sum(c, shared)
#define SUM_OF_LANES(v) block_sum(lanes_sum(v), shared)
#define MAX_OF_LANES(v) block_max(lanes_max(v), shared)
#else
#define SCRATCH
#define WORKER ITEM
#define LANE 0
#define SUM_OF_ITEMS(c) (c)
#define SUM_OF_LANES(v) lanes_sum(v)
#define MAX_OF_LANES(v) lanes_max(v)
#endif

#define EACH_ROW(row, rows, per) \
    for (int row = WORKER * (per), last_ = SMALLER(WORKER * (per) + (per), rows); row < last_; row++)
#define ALONG(i, n) for (int i = LANE * W; i < (n); i += LANES * W)
#if COLUMNS
typedef V R;
typedef DV DR;
#define TO_R(v) TO_V(v)
#define ROW_OF(row, n, inner) const int step = inner, left = inner - (row) % PIECES(inner) * W, \
    start = (row) / PIECES(inner) * (n) * (inner) + (row) % PIECES(inner) * W;
#define PIECES(inner) (((inner) + W - 1) / W)
#define ACROSS(i, n) for (int i = 0; i < (n); i++)
#define ROW_SUM(v) (v)
#define ROW_MAX(v) (v)
#define GET(x, i, fill) LOAD_T(AT(x) + start + (i) * step, left, fill)
#define PUT(x, i, v) STORE_T(AT(x) + start + (i) * step, left, v)
#else
typedef C R;
typedef D DR;
#define TO_R(v) ((C)(v))
#define ROW_OF(row, n, inner) const int left = n, start = (row) * (n);
#define ACROSS(i, n) ALONG(i, n)
#define ROW_SUM(v) SUM_OF_LANES(v)
#define ROW_MAX(v) MAX_OF_LANES(v)
#define GET(x, i, fill) LOAD_T(AT(x) + start + (i), left - (i), fill)
#define PUT(x, i, v) STORE_T(AT(x) + start + (i), left - (i), v)
#endif
"""
)
_OF_TYPE = (
    r"""
#if W > 1
"""
    + _PARTS
    + r"""
#define LOAD_@(p, n, fill) ((n) >= W ? JOIN(@_LD, W)(p, 0) : load_part_@(p, n, fill))
#define STORE_@(p, n, v) do { if ((n) >= W) JOIN(@_ST, W)(p, 0, v); else store_part_@(p, n, v); } while (0)
#else
#define LOAD_@(p, n, fill) @_LD(p, 0)
#define STORE_@(p, n, v) @_ST(p, 0, v)
#endif
"""
)
# Arrays of the type computed in: sums and statistics.
_COMPUTED = r"""
#define C_LD(p, i) ((p)[i])
#define C_ST(p, i, v) ((p)[i] = (v))
""" + "".join(
    f"#define C_LD{w}(p, i) vload{w}(0, (p) + (i))\n#define C_ST{w}(p, i, v) vstore{w}(v, 0, (p) + (i))\n"
    for w in (2, 4, 8, 16)
)


def row_macros_source(*names: str) -> str:
    """Return the macros above, and `LOAD_P(p, n, fill)` and `STORE_P(p, n, v)` for each further type name P and for C.

    P must have the compute type of T.
    """
    return _COMMON + _COMPUTED + "".join(_OF_TYPE.replace("@", name) for name in ("T", "C", *names))
