"""Scans (running sums, products, extremes) and linear recurrences along a dimension."""

from __future__ import annotations

import functools
from typing import NamedTuple

from .dtype_kinds import KINDS
from .reduce import COMPUTE_TYPES


class Scan(NamedTuple):
    """A scan's combination: the fields of a State, their initial values, an element's State, and the combination of
    State `a` with a later State `b`.

    $W is the type of values, $I that of indices, $N the index offset of neighbours in a vector.
    """

    fields: str
    start: str
    lift: str
    merge: str
    by_rows: bool = True  # whether sixteen neighbours may be combined in a tree: not where that could overflow sooner


def _make_extreme_scan(start: str, sign: str) -> Scan:
    return Scan(
        "$W v; $I at;",
        f"s.v = ($W)({start}); s.at = ($I)(0);",
        "s.v = v; s.at = ($I)(at)$N;",
        f"s.v = ((b.v {sign} a.v) | ISNAN(b.v)) ? b.v : a.v; s.at = ((b.v {sign} a.v) | ISNAN(b.v)) ? b.at : a.at;",
    )


SCAN_OPS = {
    "cumsum": Scan("$W v;", "s.v = ($W)(0);", "s.v = v;", "s.v = a.v + b.v;"),
    "cumprod": Scan("$W v;", "s.v = ONE;", "s.v = v;", "s.v = TIMES(a.v, b.v);", False),
    "cummax": _make_extreme_scan("LEAST", ">="),
    "cummin": _make_extreme_scan("GREATEST", "<="),
    "logcumsumexp": Scan("$W v;", "s.v = ($W)(LEAST);", "s.v = ADDEND(v);", "s.v = log_of_sum(a.v, b.v);", False),
    "_linear_recurrence": Scan(
        "$W v; $W by;",
        "s.v = ($W)(0); s.by = ONE;",
        "s.v = v; s.by = $LOAD(pf, i);",
        "s.v = b.v + TIMES(b.by, a.v); s.by = TIMES(a.by, b.by);",
        False,
    ),
}

# State is one element's or, in the column layout, sixteen neighbours'; WIDE of them are scanned at a time. `inner` is
# the stride of elements in a row.
_HEAD = r"""
#define ARGUMENTS IN(T, x), IN(T, factor), OUT(O, out), OUT(M, more), OUT(State, states), const Geometry g
typedef struct { int rows, length, inner, strips, chunk, parts, first; } Geometry;
"""

_PLACE = r"""
    int row = ITEM % g.strips, part = ITEM / g.strips;
    if (part >= g.parts - g.first) { return; }
    int across = (g.inner + LANES - 1) / LANES, base = (row / across) * g.length * g.inner + min((row % across) * LANES,
        g.inner - LANES);
    int begin = part * g.chunk, end = min(begin + g.chunk, g.length);
    GLOBAL const T* p = AT(x) + base;
    GLOBAL const T* pf = AT(factor) + base;
"""

_TOTAL = (
    "KERNEL void total(ARGUMENTS) {"
    + _PLACE
    + r"""
    State s[WIDE];
    for (int c = 0; c < WIDE; c++) { s[c] = start(); }
    for (int i = begin; i < end; i++) {
        for (int c = 0; c < WIDE; c++) { s[c] = merge(s[c], lift(p, pf, i * g.inner + 16 * c, i)); }
    }
    for (int c = 0; c < WIDE; c++) { AT(states)[(part * g.strips + row) * WIDE + c] = s[c]; }
}
"""
)

_CARRY = r"""
KERNEL void carry(ARGUMENTS) {
    int row = ITEM, rows = g.strips * WIDE;
    if (row >= rows) { return; }
    State s = start();
    for (int k = 0; k < g.parts; k++) {
        State next = AT(states)[k * rows + row];
        AT(states)[k * rows + row] = s;
        s = merge(s, next);
    }
}
"""

_RUN = (
    "KERNEL void run(ARGUMENTS) {"
    + _PLACE
    + r"""
    GLOBAL O* q = AT(out) + base;
    GLOBAL M* r = AT(more) + base;
#ifdef BY_ROWS
    State s = g.parts > 1 ? AT(states)[part * g.strips + row] : start();
    int i = begin;
    for (; i + 16 <= end; i += 16) {
        State16 all = lift16(p, pf, i, i);
        all = merge16(shift1(all), all);
        all = merge16(shift2(all), all);
        all = merge16(shift4(all), all);
        all = merge16(shift8(all), all);
        put16(q, r, i, merge16(spread(s), all));
        s = merge(s, last(all));
    }
    for (; i < end; i++) { s = merge(s, lift(p, pf, i, i)); put(q, r, i, s); }
#else
    State s[WIDE];
    for (int c = 0; c < WIDE; c++) { s[c] = g.parts > 1 ? AT(states)[(part * g.strips + row) * WIDE + c] : start(); }
    for (int i = begin; i < end; i++) {
        for (int c = 0; c < WIDE; c++) {
            s[c] = merge(s[c], lift(p, pf, i * g.inner + 16 * c, i));
            put(q, r, i * g.inner + 16 * c, s[c]);
        }
    }
#endif
}
"""
)

_GROUP = (
    r"""
#define ALL_OF_GROUP(i) \
    shared[THREAD] = s; \
    BARRIER; \
    for (int w = 1; w < THREADS; w <<= 1) { \
        State t = THREAD >= w ? merge(shared[THREAD - w], s) : s; \
        BARRIER; \
        shared[THREAD] = s = t; \
        BARRIER; \
    }
KERNEL void run(ARGUMENTS) {
    LOCAL_ARRAY(State, shared, GROUP);"""
    + _PLACE.replace("ITEM", "BLOCK")
    + r"""
    GLOBAL O* q = AT(out) + base;
    GLOBAL M* r = AT(more) + base;
    State before = g.parts > 1 ? AT(states)[part * g.strips + row] : start();
    for (int i = begin + THREAD; i - THREAD < end; i += THREADS) {
        State s = start();
        if (i < end) { s = lift(p, pf, i * g.inner, i); }
        ALL_OF_GROUP(i)
        if (i < end) { put(q, r, i * g.inner, merge(before, s)); }
        before = merge(before, shared[THREADS - 1]);
        BARRIER;
    }
}
KERNEL void total(ARGUMENTS) {
    LOCAL_ARRAY(State, shared, GROUP);"""
    + _PLACE.replace("ITEM", "BLOCK")
    + r"""
    State before = start();
    for (int i = begin + THREAD; i - THREAD < end; i += THREADS) {
        State s = start();
        if (i < end) { s = lift(p, pf, i * g.inner, i); }
        ALL_OF_GROUP(i)
        before = merge(before, shared[THREADS - 1]);
        BARRIER;
    }
    if (THREAD == 0) { AT(states)[part * g.strips + row] = before; }
}
"""
)

_LOG = r"""
#define ADDEND(v) (v)
FUNCTION W log_of_sum(W a, W b) {
    W high = (a > b) ? a : b, low = (a > b) ? b : a;
    return high + log1p(exp((a == b) ? (W)(0) : low - high));
}
"""

_COMPLEX_LOG = r"""
FUNCTION W addend(W v) {  // as added to exp(-inf)
    if (isnan(v.x) || isnan(v.y)) { return VEC2(W, NAN, NAN); }
    return isinf(v.x) && v.x < 0 ? VEC2(W, v.x, 0) : v;
}
#define ADDEND(v) addend(v)
#define GROWN(part) (part == 0 ? part : copysign(part * 0 + INFINITY, part))
FUNCTION W log_of_sum(W a, W b) {
    W high = (a.x < b.x) ? b : a, low = (a.x < b.x) ? a : b, gap = low - high;
    if (a.x == b.x && isinf(a.x)) {
        if (a.x < 0 || a.y == b.y) { return b; }
        return VEC2(W, a.x, atan2(GROWN(sin(a.y)) + GROWN(sin(b.y)), GROWN(cos(a.y)) + GROWN(cos(b.y))));
    }
    if (isinf(gap.x)) { return high; }
    W e = VEC2(W, cos(gap.y), sin(gap.y)) * exp(gap.x) + VEC2(W, 1, 0);
    return high + VEC2(W, log(hypot(e.x, e.y)), atan2(e.y, e.x));
}
"""

_COMPLEX_PRODUCT = "(VEC2(W, (a).x * (b).x - (a).y * (b).y, (a).x * (b).y + (a).y * (b).x))"

_STATE = r"""
typedef struct { $FIELDS } State$S;
FUNCTION State$S merge$S(State$S a, State$S b) { State$S s; $MERGE return s; }
FUNCTION State$S lift$S(GLOBAL const T* p, GLOBAL const T* pf, int i, int at) {
    $W v = $LOAD(p, i); State$S s; $LIFT return s;
}
FUNCTION void put$S(GLOBAL O* q, GLOBAL M* r, int i, State$S s) { O_ST$L(q, i, $CONVERT(s.v)); $MORE }
"""

# Shifts of neighbours: the parts of the new vector, $T its type, `one` the incoming element and `a` the old vector.
SHIFTS = {
    1: "one, a.s0, a.s12, a.s3456, a.s789abcde",
    2: "one, one, a.s01, a.s2345, a.s6789abcd",
    4: "($T4)(one), a.s0123, a.s456789ab",
    8: "($T8)(one), a.s01234567",
}


def _substitute_types(text: str, **values: str) -> str:
    for name in sorted(values, key=len, reverse=True):
        text = text.replace(f"${name}", values[name])
    return text


def _state_source(how: Scan, work: str, out: str, suffix: str, lanes: int) -> str:
    """Return the State of `lanes` neighbours with its functions, whose names end in `suffix`."""
    scalar, integer = COMPUTE_TYPES[work][:2]
    n = str(lanes) if lanes > 1 else ""
    text = _substitute_types(
        _STATE,
        FIELDS=how.fields,
        MERGE=how.merge,
        LIFT=how.lift,
        MORE=f"M_ST{n}(r, i, convert_long{n}(s.at));" if " at;" in how.fields else "",
    )
    return _substitute_types(
        text,
        S=suffix,
        W=scalar + n,
        I=integer + n,
        N=" + IOTA" if suffix else "",
        LOAD=f"LOAD{n}",
        L=n,
        CONVERT=f"convert_{KINDS[out].computed}{n}" if work[0] != "c" else "",
    )


def _row_functions_source(how: Scan, work: str) -> str:
    """Return the functions of the tree scan over sixteen neighbours."""
    scalar, integer = COMPUTE_TYPES[work][:2]
    fields = [
        (f.split()[1], f.split()[0].replace("$W", scalar).replace("$I", integer))
        for f in how.fields.rstrip(";").split(";")
    ]
    text = []
    for count, parts in SHIFTS.items():
        set_all = [
            f"{{ {t} one = begin.{f}; {t}16 a = all.{f}; s.{f} = ({t}16)({parts.replace('$T', t)}); }}"
            for f, t in fields
        ]
        text.append(
            f"State16 shift{count}(State16 all) {{ State begin = start(); State16 s; {' '.join(set_all)} return s; }}"
        )
    text.append(
        "State16 spread(State a) { State16 s; "
        + " ".join(f"s.{f} = ({t}16)(a.{f});" for f, t in fields)
        + " return s; }"
    )
    text.append(
        "State last(State16 a) { State s; " + " ".join(f"s.{f} = a.{f}.sf;" for f, _ in fields) + " return s; }"
    )
    return "\n".join(text) + "\n"


@functools.cache
def scan_source(op: str, work: str, vector: str, out: str, layout: str, group: int, wide: int) -> str:
    """Return the kernels total, carry and run of a scan; `layout` any, row, column or group.

    Neighbours in a row are combined in the kind `vector`, all else in `work`.
    """
    how, real = SCAN_OPS[op], work[0] != "c"
    scalar, _, greatest, least = COMPUTE_TYPES[work]
    lanes = 16 if layout == "column" else 1
    n = str(lanes) if lanes > 1 else ""
    if not real:
        least = "VEC2(W, -INFINITY, 0)"
    load = "T_LD(p, i)" if not real else f"convert_{scalar}(T_LD(p, i))"
    lines = [
        f"#define GREATEST {greatest}",
        f"#define LEAST {least}",
        f"#define LANES {lanes * wide}",
        f"#define WIDE {wide}",
        f"#define GROUP {group}",
        f"#define W {scalar}{n}",
        f"#define ISNAN(v) {'0' if work[0] in 'iu' else '((v) != (v))'}",
        f"#define ONE {'((W)(1))' if real else 'VEC2(W, 1, 0)'}",
        f"#define TIMES(a, b) {'((a) * (b))' if real else _COMPLEX_PRODUCT}",
        f"#define LOAD(p, i) {load}",
        f"#define LOAD16(p, i) convert_{COMPUTE_TYPES[vector if layout == 'row' else work][0]}16(T_LD16(p, i))",
    ]
    if op == "logcumsumexp":
        lines.append(_LOG if real else _COMPLEX_LOG)
    text = "\n".join(lines) + _state_source(how, work, out, "", lanes)
    text += _substitute_types(
        "FUNCTION State start(void) { State s; " + how.start + " return s; }\n",
        W=scalar + n,
        I=COMPUTE_TYPES[work][1] + n,
    )
    if layout == "row" and how.by_rows:
        iota = (
            "#define BY_ROWS\n#define IOTA (("
            + COMPUTE_TYPES[work][1]
            + "16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))\n"
        )
        text += iota + _state_source(how, vector, out, "16", 16) + _row_functions_source(how, vector)
    return text + _HEAD + (_GROUP if layout == "group" else _TOTAL + _RUN) + _CARRY
