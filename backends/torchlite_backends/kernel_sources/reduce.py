"""Reduction kernels: the accumulation step of each op, and loops over elements for each memory layout."""

from __future__ import annotations

import functools
from typing import NamedTuple

from .pointwise_codegen import ChainIndexing, ChainSource, chain_body_source

# kind: compute type of elements (scalar type, integer type of the same width for comparisons and counts, greatest and
# least value)
COMPUTE_TYPES = {
    "f32": ("float", "int", "INFINITY", "-INFINITY"),
    "f64": ("double", "long", "INFINITY", "-INFINITY"),
    "i32": ("int", "int", "INT_MAX", "INT_MIN"), "i64": ("long", "long", "LONG_MAX", "LONG_MIN"),
    "u64": ("ulong", "long", "ULONG_MAX", "0"), "c64": ("float2", "int", "0", "0"),
    "c128": ("double2", "long", "0", "0"),
}  # fmt: skip
COMPUTE_KINDS = {
    "b8": "i32",
    "u8": "i32",
    "i8": "i32",
    "i16": "i32",
    "u16": "i32",
    "u32": "i64",
    "f16": "f32",
    "bf16": "f32",
}
COMPUTE_KINDS["c32"] = "c64"
REAL_OF = {"c32": "f16", "c64": "f32", "c128": "f64"}


def compute_kind(kind: str) -> str:
    """Return the compute kind of a stored kind."""
    return COMPUTE_KINDS.get(kind, kind)


class ReductionPass(NamedTuple):
    """One pass of a reduction. STEP accumulates element `v` of type V, number `at` in row-major order, into `acc` of
    type A.
    """

    acc: str  # W: as the elements, I: the integer as wide, R: their real type
    start: str
    step: str
    merge: str
    finish: str  # the value of `acc` when all elements are in it
    wide: bool = False  # whether the results of runs of elements are merged in double


_ADD = "acc += b"
_GREATER, _LESS = "acc = ((b > acc) | ISNAN(b)) ? b : acc", "acc = ((b < acc) | ISNAN(b)) ? b : acc"
SUM = ReductionPass("W", "(A)(0)", "acc += v", _ADD, "acc")
MEAN = SUM._replace(finish="acc / (R)g.count")
AMAX = ReductionPass("W", "LEAST", "acc = ((v > acc) | ISNAN(v)) ? v : acc", _GREATER, "acc")
AMIN = ReductionPass("W", "GREATEST", "acc = ((v < acc) | ISNAN(v)) ? v : acc", _LESS, "acc")
_FIRST_INDEX = ReductionPass(
    "I", "I_MAX", "acc = ((v == (V)(aux)) | ISNAN(v)) ? min(acc, at) : acc", "acc = min(acc, b)", "acc"
)
_SQUARED_DEVIATION = ReductionPass(
    "R", "(A)(0)", "V d = v - (V)(aux); acc += SQUARED(d)", _ADD, "acc / fmax((R)g.count - (R)g.correction, (R)0)"
)
_REAL_MAX = ReductionPass(
    "R", "LEAST", "acc = ((REAL(v) > acc) | ISNAN(REAL(v))) ? REAL(v) : acc", _GREATER, "isfinite(acc) ? acc : 0"
)

_GREATEST_SIZE = ReductionPass(
    "R",
    "0",
    "acc = fmax(acc, SIZE(v)) + (SIZE(v) - SIZE(v))",
    "acc = fmax(acc, b) + (b - b)",
    "acc > 0 && acc < INFINITY ? acc : 1",
)
_LEAST_SIZE = ReductionPass(
    "R",
    "INFINITY",
    "acc = fmin(acc, SIZE(v)) + (SIZE(v) - SIZE(v))",
    "acc = fmin(acc, b) + (b - b)",
    "acc > 0 && acc < INFINITY ? acc : 1",
)
# op: its passes; a later pass has the result of the one before as `aux`
OPS: dict[str, tuple[ReductionPass, ...]] = {
    "sum": (SUM,),
    "mean": (MEAN,),
    "prod": (ReductionPass("W", "ONE", "acc = TIMES(acc, v)", "acc = TIMES(acc, b)", "acc"),),
    "amax": (AMAX,),
    "amin": (AMIN,),
    "any": (ReductionPass("I", "0", "acc = NONZERO(v, V) ? (A)(1) : acc", "acc |= b", "acc"),),
    "all": (ReductionPass("I", "1", "acc = NONZERO(v, V) ? acc : (A)(0)", "acc &= b", "acc"),),
    "count_nonzero": (ReductionPass("I", "0", "acc += NONZERO(v, V) ? (A)(1) : (A)(0)", _ADD, "acc"),),
    "max_dim": (AMAX, _FIRST_INDEX),
    "min_dim": (AMIN, _FIRST_INDEX),
    "var": (MEAN, _SQUARED_DEVIATION),
    "std": (MEAN, _SQUARED_DEVIATION._replace(finish="sqrt(acc / fmax((R)g.count - (R)g.correction, (R)0))")),
    "logsumexp": (_REAL_MAX, ReductionPass("W", "(A)(0)", "acc += EXP(v, aux, V)", _ADD, "LOG(acc) + AS_W(aux)")),
    "norm1": (ReductionPass("R", "0", "acc += SIZE(v)", _ADD, "acc"),),
    "norm2": (
        _GREATEST_SIZE,
        ReductionPass("R", "(A)(0)", "V d = v / (V)(aux); acc += SQUARED(d)", _ADD, "sqrt(acc) * aux"),
    ),
    "norm2_wide": (ReductionPass("R", "0", "acc += SQUARED(v)", _ADD, "sqrt(acc)"),),
    "normp": (
        _GREATEST_SIZE,
        ReductionPass(
            "R",
            "0",
            "acc += pow(SIZE(v) / (A)(aux), (A)((R)g.correction))",
            _ADD,
            "pow(acc, 1 / (R)g.correction) * aux",
        ),
    ),
}
OPS["normp_negative"] = (_LEAST_SIZE, OPS["normp"][1])
# Sums of float32 in double, if the device has it: of runs of elements, or of squares, which may leave its range.
WIDE_OPS = {name: f"{name}_wide" for name in ("sum", "mean", "norm1", "logsumexp")}
OPS.update({wide: (*OPS[name][:-1], OPS[name][-1]._replace(wide=True)) for name, wide in WIDE_OPS.items()})
COMPUTED_IN_DOUBLE = frozenset(("var", "std", "norm2_wide"))
SECOND_OUTPUTS = {"max_dim": "aux", "min_dim": "aux"}  # contents of the second output

_GEOMETRY = (
    "typedef struct { int kept, k1, k2, a0, a1, a2, r0, r1, r2, s0, s1, s2, axis, chunk, parts, count; float "
    "correction; } Geometry;\n"
)
_BASE = r"""
FUNCTION int kept_base(const Geometry g, int i) {
    int row = i / g.k2;
    return (row / g.k1) * g.a0 + (row % g.k1) * g.a1 + (i % g.k2) * g.a2;
}
#define SPAN(part) \
    int b0 = 0, b1 = 0, b2 = 0, n0 = g.r0, n1 = g.r1, n2 = g.r2; \
    if (g.axis == 0) { b0 = (part) * g.chunk; n0 = min(n0, b0 + g.chunk); } \
    if (g.axis == 1) { b1 = (part) * g.chunk; n1 = min(n1, b1 + g.chunk); } \
    if (g.axis == 2) { b2 = (part) * g.chunk; n2 = min(n2, b2 + g.chunk); }
"""

# The loops of a pass. @ is its number. Blocks of elements are folded into a total, so that rounding errors of long sums
# stay small.
_ARGUMENTS = "(GLOBAL const T* p, const Geometry g, int b0, int n0, int b1, int n1, int b2, int n2, A0 aux)"
_ANY = (
    "FUNCTION B@ pass@"
    + _ARGUMENTS
    + r""" {
    B@ total = START@;
    for (int i0 = b0; i0 < n0; i0++) {
        for (int i1 = b1; i1 < n1; i1++) {
            GLOBAL const T* q = p + i0 * g.s0 + i1 * g.s1;
            I row = (I)((i0 * g.r1 + i1) * g.r2);
            for (int i = b2; i < n2; ) {
                int end = min(i + RUN@, n2);
                A@ acc = START@;
                for (; i < end; i++) { W v = LOAD(q, i * g.s2); STEP@(acc, v, row + (I)i, A@, W); }
                FOLD@(total, acc);
            }
        }
    }
    return total;
}
"""
)
_ROW = (
    r"""
#define FOUR@(acc, from) { W_16 v = LOAD16(q, i + from); STEP@(acc, v, (I_16)(row + i + from) + IOTA, A@_16, W_16); }
#define ALL_FOUR@ { MERGE@(acc, acc_b); MERGE@(acc_c, acc_d); MERGE@(acc, acc_c); FOLD16@(block, acc); }
FUNCTION B@ pass@"""
    + _ARGUMENTS
    + r""" {
    B@ total = START@;
    B@_16 block = (B@_16)(START@);
    A@_16 acc = (A@_16)(START@), acc_b = acc, acc_c = acc, acc_d = acc;
    B@ lanes[16];
    int since = 0;
    for (int i0 = b0; i0 < n0; i0++) {
        for (int i1 = b1; i1 < n1; i1++) {
            GLOBAL const T* q = p + i0 * g.s0 + i1 * g.s1;
            int row = (i0 * g.r1 + i1) * g.r2, i = b2, last = b2 + ((n2 - b2) & ~15);
            while (i < last) {
                int end = min(i + 4096, last);
                since += (end - i) >> 4;
                for (; i + 64 <= end; i += 64) {
                    FOUR@(acc, 0)
                    FOUR@(acc_b, 16)
                    FOUR@(acc_c, 32)
                    FOUR@(acc_d, 48)
                }
                for (; i < end; i += 16) { W_16 v = LOAD16(q, i); STEP@(acc, v, (I_16)(row + i) + IOTA, A@_16, W_16); }
                if (since >= 256) {
                    ALL_FOUR@
                    acc = acc_b = acc_c = acc_d = (A@_16)(START@);
                    since = 0;
                }
            }
            for (; i < n2; i++) { W v = LOAD(q, i); STEP@(total, v, (I)(row + i), A@, W); }
        }
    }
    ALL_FOUR@
    vstore16(block, 0, lanes);
    for (int w = 8; w; w >>= 1) { for (int j = 0; j < w; j++) { MERGE@(lanes[j], lanes[j + w]); } }
    MERGE@(total, lanes[0]);
    return total;
}
"""
)
_GROUP = r"""
FUNCTION B@ pass@(GLOBAL const T* p, const Geometry g, int b0, int n0, int b1, int n1, int b2, int n2, A0 aux,
    LOCAL B@* shared) {
    B@ total = START@;
    int c1 = n1 - b1, c2 = n2 - b2, all = (n0 - b0) * c1 * c2;
    for (int j = THREAD; j < all; ) {
        A@ acc = START@;
        for (int k = 0; k < 64 && j < all; k++, j += THREADS) {
            int row = j / c2, i0 = b0 + row / c1, i1 = b1 + row % c1, i = b2 + j % c2;
            W v = LOAD(p, i0 * g.s0 + i1 * g.s1 + i * g.s2);
            STEP@(acc, v, (I)((i0 * g.r1 + i1) * g.r2 + i), A@, W);
        }
        FOLD@(total, acc);
    }
    BARRIER;
    shared[THREAD] = total;
    BARRIER;
    for (int w = THREADS / 2; w; w >>= 1) {
        if (THREAD < w) { B@ one = shared[THREAD]; MERGE@(one, shared[THREAD + w]); shared[THREAD] = one; }
        BARRIER;
    }
    return shared[0];
}
"""
_COLUMN = r"""
FUNCTION void pass@(GLOBAL const T* p, const Geometry g, int b0, int n0, int b1, int n1, int b2, int n2,
    const A0_16* auxes, B@_16* total) {
    for (int c = 0; c < WIDE; c++) { total[c] = (B@_16)(START@); }
    for (int i0 = b0; i0 < n0; i0++) {
        for (int i1 = b1; i1 < n1; i1++) {
            GLOBAL const T* q = p + i0 * g.s0 + i1 * g.s1;
            int row = (i0 * g.r1 + i1) * g.r2;
            for (int i = b2; i < n2; ) {
                int end = min(i + 64, n2);
                A@_16 some[WIDE];
                for (int c = 0; c < WIDE; c++) { some[c] = (A@_16)(START@); }
                for (; i < end; i++) {
                    for (int c = 0; c < WIDE; c++) {
                        W_16 v = LOAD16(q, i * g.s2 + 16 * c);
                        A0_16 aux = auxes[c];
                        STEP@(some[c], v, (I_16)(row + i), A@_16, W_16);
                    }
                }
                for (int c = 0; c < WIDE; c++) { FOLD16@(total[c], some[c]); }
            }
        }
    }
}
"""

# The kernels. `whole` computes the result in one launch, `part` a partial result of each output, `join` combines them.
_WHOLE_ITEM = r"""
KERNEL void whole(IN(T, x), OUT(O, out), OUT(M, more), const Geometry g) {
    int i = ITEM;
    if (i >= g.kept) { return; }
    SPAN(0)
    GLOBAL const T* p = AT(x) + kept_base(g, i);
    B1 acc1 = pass1(p, g, b0, n0, b1, n1, b2, n2, 0);
    A0 aux = FINISH1(acc1, 0);
#ifdef START2
    B2 acc2 = pass2(p, g, b0, n0, b1, n1, b2, n2, aux);
#endif
    STORE(i)
}
"""
_WHOLE_GROUP = (
    _WHOLE_ITEM.replace("ITEM", "BLOCK")
    .replace("if (i >= g.kept) { return; }", "LOCAL_ARRAY(B1, shared1, GROUP);\nLOCAL_ARRAY(B_LAST, shared2, GROUP);")
    .replace("n2, 0)", "n2, 0, shared1)")
    .replace("n2, aux)", "n2, aux, shared2)")
    .replace("STORE(i)", "if (THREAD == 0) { STORE(i) }")
)
_STRIP = r"""
    int strips = (g.k2 + 16 * WIDE - 1) / (16 * WIDE), first = (j / strips) * g.k2 + min((j % strips) * 16 * WIDE,
        g.k2 - 16 * WIDE);
    GLOBAL const T* p = AT(x) + kept_base(g, first);
    A0_16 aux16[WIDE];
"""
_WHOLE_COLUMN = (
    r"""
KERNEL void whole(IN(T, x), OUT(O, out), OUT(M, more), const Geometry g) {
    int j = ITEM;
    if (j >= (g.kept / g.k2) * ((g.k2 + 16 * WIDE - 1) / (16 * WIDE))) { return; }
    SPAN(0)
"""
    + _STRIP
    + r"""
    B1_16 all1[WIDE];
    B1 lanes1[16 * WIDE];
    A0 auxes[16 * WIDE];
    for (int c = 0; c < WIDE; c++) { aux16[c] = (A0_16)(0); }
    pass1(p, g, b0, n0, b1, n1, b2, n2, aux16, all1);
    for (int c = 0; c < WIDE; c++) { vstore16(all1[c], c, lanes1); }
    for (int c = 0; c < 16 * WIDE; c++) { B1 acc1 = lanes1[c]; auxes[c] = FINISH1(acc1, 0); }
#ifdef START2
    B2_16 all2[WIDE];
    B2 lanes2[16 * WIDE];
    for (int c = 0; c < WIDE; c++) { aux16[c] = vload16(c, auxes); }
    pass2(p, g, b0, n0, b1, n1, b2, n2, aux16, all2);
    for (int c = 0; c < WIDE; c++) { vstore16(all2[c], c, lanes2); }
#endif
    for (int c = 0; c < 16 * WIDE; c++) {
        A0 aux = auxes[c];
#ifdef START2
        B2 acc2 = lanes2[c];
#endif
        STORE(first + c)
    }
}
"""
)
_PART_ITEM = r"""
KERNEL void part(IN(T, x), IN(B, before), OUT(P, out), const Geometry g) {
    int j = ITEM;
    if (j >= g.kept * g.parts) { return; }
    int i = j % g.kept;
    SPAN(j / g.kept)
    B@ all = pass@(AT(x) + kept_base(g, i), g, b0, n0, b1, n1, b2, n2, AUX(before, i));
    AT(out)[j] = all;
}
"""
_PART_GROUP = (
    _PART_ITEM.replace("ITEM", "BLOCK")
    .replace("if (j >= g.kept * g.parts) { return; }", "LOCAL_ARRAY(B@, shared, GROUP);")
    .replace("AUX(before, i))", "AUX(before, i), shared)")
    .replace("AT(out)[j] = all;", "if (THREAD == 0) { AT(out)[j] = all; }")
)
_PART_COLUMN = (
    r"""
KERNEL void part(IN(T, x), IN(B, before), OUT(P, out), const Geometry g) {
    int all = (g.kept / g.k2) * ((g.k2 + 16 * WIDE - 1) / (16 * WIDE)), j = ITEM % all, part = ITEM / all;
    if (part >= g.parts) { return; }
    SPAN(part)
"""
    + _STRIP
    + r"""
    B@_16 total[WIDE];
    for (int c = 0; c < WIDE; c++) { aux16[c] = AUX16(before, first + 16 * c); }
    pass@(p, g, b0, n0, b1, n1, b2, n2, aux16, total);
    for (int c = 0; c < WIDE; c++) { vstore16(total[c], 0, AT(out) + part * g.kept + first + 16 * c); }
}
"""
)
_JOIN = r"""
KERNEL void join(IN(P, parts), IN(B, before), OUT(O, out), OUT(M, more), const Geometry g) {
    int i = ITEM;
    if (i >= g.kept) { return; }
    B@ acc@ = START@;
    for (int k = 0; k < g.parts; k++) { B@ one = AT(parts)[k * g.kept + i]; MERGE@(acc@, one); }
    A0 aux = AUX(before, i);
    STORE(i)
}
"""
_PASSES = {"any": _ANY, "row": _ROW, "group": _GROUP, "column": _COLUMN}
_KERNELS = {
    ("whole", "any"): _WHOLE_ITEM,
    ("whole", "row"): _WHOLE_ITEM,
    ("whole", "group"): _WHOLE_GROUP,
    ("whole", "column"): _WHOLE_COLUMN,
    ("part", "any"): _PART_ITEM,
    ("part", "row"): _PART_ITEM,
    ("part", "group"): _PART_GROUP,
    ("part", "column"): _PART_COLUMN,
}
_COMPLEX = r"""
#define NONZERO(v, V) ((v).x != 0 || (v).y != 0)
#define ONE (VEC2(W, 1, 0))
#define TIMES(a, b) (VEC2(W, (a).x * (b).x - (a).y * (b).y, (a).x * (b).y + (a).y * (b).x))
#define SQUARED(d) ((d).x * (d).x + (d).y * (d).y)
#define REAL(v) ((v).x)
#define SIZE(v) hypot((v).x, (v).y)
#define EXP(v, aux, V) (VEC2(W, cos((v).y), sin((v).y)) * exp((v).x - aux))
#define LOG(v) (VEC2(W, log(hypot((v).x, (v).y)), atan2((v).y, (v).x)))
#define AS_W(v) (VEC2(W, v, 0))
"""
_REAL = r"""
#define NONZERO(v, V) ((v) != (V)(0))
#define ONE 1
#define TIMES(a, b) ((a) * (b))
#define SQUARED(d) ((d) * (d))
#define REAL(v) (v)
#define SIZE(v) fabs(v)
#define EXP(v, aux, V) exp((v) - (V)(aux))
#define LOG(v) log(v)
#define AS_W(v) (v)
"""


def accumulator_kind_of(how: ReductionPass, work: str) -> str:
    """Return the kind of a pass's accumulator for elements computed in `work`."""
    if how.wide:
        return "f64"
    if how.acc == "W":
        return work
    return REAL_OF.get(work, work) if how.acc == "R" else "i64" if COMPUTE_TYPES[work][1] == "long" else "i32"


def intermediate_kind_of(op: str, work: str) -> str:
    """Return the kind that an op's first pass passes to the second."""
    return accumulator_kind_of(OPS[op][0], work)


def _macros_source(op: str, work: str) -> list[str]:
    scalar, integer, greatest, least = COMPUTE_TYPES[work]
    real = REAL_OF.get(work, work)
    if real != work:
        greatest, least = COMPUTE_TYPES[real][2:]
    lines = [
        f"#define W {scalar}",
        f"#define I {integer}",
        f"#define R {COMPUTE_TYPES[real][0]}",
        f"#define GREATEST {greatest}",
        f"#define LEAST {least}",
        f"#define I_MAX {'LONG_MAX' if integer == 'long' else 'INT_MAX'}",
        f"#define A0 {COMPUTE_TYPES[intermediate_kind_of(op, work)][0]}",
        f"#define ISNAN(v) {'0' if work[0] in 'iu' else '((v) != (v))'}",
    ]
    if real == work:
        lines += [
            f"#define W_16 {scalar}16",
            f"#define I_16 {integer}16",
            f"#define A0_16 {COMPUTE_TYPES[intermediate_kind_of(op, work)][0]}16",
            f"#define LOAD(p, i) convert_{scalar}(T_LD(p, i))",
            f"#define LOAD16(p, i) convert_{scalar}16(T_LD16(p, i))",
            "#define IOTA VEC16(I_16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)",
            _REAL,
        ]
    else:
        lines += ["#define LOAD(p, i) T_LD(p, i)", _COMPLEX]
    for n, how in enumerate(OPS[op], 1):
        merged = COMPUTE_TYPES[accumulator_kind_of(how, work)][0]
        acc = COMPUTE_TYPES[accumulator_kind_of(how._replace(wide=False), work)][0]
        lines += [
            f"#define A{n} {acc}",
            f"#define B{n} {merged}",
            f"#define RUN{n} {8 if how.wide else 256}",
            f"#define B{n}_16 {merged}16",
            f"#define FOLD{n}(to, from) {{ B{n} b_ = from; MERGE{n}(to, b_); }}",
            f"#define FOLD16{n}(to, from) {{ B{n}_16 b_ = {f'convert_{merged}16(from)' if how.wide else 'from'}; "
            f"MERGE{n}(to, b_); }}",
            f"#define A{n}_16 {acc}16",
            f"#define START{n} {how.start.replace('(A)', f'({acc})')}",
            f"#define STEP{n}(acc, v, at, A, V) {{ {how.step}; }}",
            f"#define MERGE{n}(acc, b) {{ {how.merge}; }}",
            f"#define FINISH{n}(acc, aux) ({how.finish})",
        ]
    return lines


@functools.cache
def reduction_source(op: str, work: str, form: str, layout: str, number: int = 0, wide: int = 1, group: int = 1) -> str:
    """Return a kernel: `form` whole, part or join; `layout` any, row, group or column; `number` of the pass for part
    and join.
    """
    passes = OPS[op]
    last = number or len(passes)
    lines = [
        *_macros_source(op, work),
        f"#define WIDE {wide}",
        f"#define GROUP {group}",
        f"#define B_LAST B{len(passes)}",
    ]
    more = f"M_ST(AT(more), i_, {SECOND_OUTPUTS[op]});" if op in SECOND_OUTPUTS and last == len(passes) else ""
    value = "aux" if form == "whole" and last == 1 else f"FINISH{last}(acc{last}, aux)"
    if passes[last - 1].wide:
        value = f"(W)({value})"
    lines.append(f"#define STORE(i) {{ int i_ = (i); O_ST(AT(out), i_, {value}); {more} }}")
    lines.append(
        "#define AUX(x, i) AT(x)[i]\n#define AUX16(x, i) vload16(0, AT(x) + (i))"
        if number == 2
        else "#define AUX(x, i) 0\n#define AUX16(x, i) (A0_16)(0)"
    )
    loops = ""
    if form != "join":
        loops = "".join(_PASSES[layout].replace("@", str(n)) for n in ((number,) if number else range(1, last + 1)))
    kernel = _JOIN if form == "join" else _KERNELS[form, layout]
    return "\n".join(lines) + "\n" + _GEOMETRY + _BASE + loops + kernel.replace("@", str(number))


# Layout of a chain's input relative to reduced rows: its row stride, and whether it has an element per position in a
# row.
BROADCAST_LAYOUTS = {"matrix": ("g.count", True), "row": ("0", True), "column": ("1", False), "one": ("0", False)}


def fused_reduction_source(text: str, chain: ChainSource, place: int, kind: str, beside: list[str]) -> str:
    """Return a row reduction of result number `place` of a chain of elementwise ops, whose kind it computes in.

    beside: a name of BROADCAST_LAYOUTS for each input of the chain.
    """
    scalar, along = COMPUTE_TYPES[kind][0], [BROADCAST_LAYOUTS[name][1] for name in beside]
    walk = ChainIndexing("", ["i" if a else "0" for a in along], ["i"] * len(chain.stores), [not a for a in along], 0)
    inputs = [f"GLOBAL const T* i{j}_" for j in range(len(beside))]
    outputs = [f"GLOBAL T* o{at}_" for at in chain.stores]
    parameters = [*inputs, *outputs, *chain.numbers]
    given = ", ".join(word.split()[-1] for word in parameters)
    lines = [*chain.functions, "#undef R\n"]
    for w in ("", "16"):
        body = "\n    ".join(chain_body_source(chain, kind, len(beside), walk, w))
        lines.append(f"FUNCTION {scalar}{w} chained{w}(int i, {', '.join(parameters)}) {{\n    {body}")
        lines.append(f"    return r{place};\n}}")
        text = text.replace(
            f"LOAD{w}(p, i) convert_{scalar}{w}(T_LD{w}(p, i))", f"LOAD{w}(p, i) chained{w}(i, {given})"
        ).replace(
            f"LOAD{w}(p, i) convert_double{w}(T_LD{w}(p, i))",
            f"LOAD{w}(p, i) convert_double{w}(chained{w}(i, {given}))",
        )
    starts = [
        f"{x} = AT(x{j}) + i * {BROADCAST_LAYOUTS[name][0]};"
        for j, (x, name) in enumerate(zip(inputs, beside, strict=True))
    ]
    starts += [f"{o} = AT(y{at}) + i * g.count;" for o, at in zip(outputs, chain.stores, strict=True)]
    arrays = [f"IN(T, x{j})" for j in range(len(inputs))] + [f"OUT(T, y{at})" for at in chain.stores]
    for before, after in (
        ("GLOBAL const T* p, ", f"{', '.join(parameters)}, "),
        ("IN(T, x)", ", ".join(arrays)),
        ("const Geometry g) {\n    int", f"{', '.join(['const Geometry g', *chain.numbers])}) {{\n    int"),
        ("    SPAN(", f"    {' '.join(starts)}\n    SPAN("),
        ("    GLOBAL const T* p = AT(x) + kept_base(g, i);\n", ""),
        ("GLOBAL const T* q = p + i0 * g.s0 + i1 * g.s1;\n", "\n"),
        ("AT(x) + kept_base(g, i), g", f"{given}, g"),
        ("pass1(p, g", f"pass1({given}, g"),
    ):
        text = text.replace(before, after)
    return "\n".join(lines) + "\n" + text
