"""Zero-padding of images for convolutions without bounds checks, and depthwise convolutions."""

from __future__ import annotations

import functools

from .gemm import make_epilogue_macros

# A row of the padded array for each work-item of a CPU (a stretch of them), an element for each of a GPU. Elements are
# moved as bits, whatever they mean.
PAD = r"""
typedef struct { int rows, depth, height, width, before_d, before_h, before_w, padded_d, padded_h, padded_w; } Pad;
#ifdef BY_ELEMENT
KERNEL void pad(IN(T, x), OUT(T, y), const Pad s) {
    if (ITEM >= s.rows * s.padded_w) { return; }
    int at = ITEM % s.padded_w, row = ITEM / s.padded_w, h = row % s.padded_h - s.before_h, w = at - s.before_w;
    row /= s.padded_h;
    int d = row % s.padded_d - s.before_d;
    int inside = h >= 0 && h < s.height && d >= 0 && d < s.depth && w >= 0 && w < s.width;
    T v = ZERO;
    if (inside) { v = AT(x)[((row / s.padded_d * s.depth + d) * s.height + h) * s.width + w]; }
    AT(y)[ITEM] = v;
}
#else
KERNEL void pad(IN(T, x), OUT(T, y), const Pad s) {
    int items = ITEMS, stop = (int)((long)s.rows * (ITEM + 1) / items);
    for (int i = (int)((long)s.rows * ITEM / items); i < stop; ++i) {
        GLOBAL T* to = AT(y) + i * s.padded_w;
        int h = i % s.padded_h - s.before_h, outer = i / s.padded_h, d = outer % s.padded_d - s.before_d, w = 0;
        if (h >= 0 && h < s.height && d >= 0 && d < s.depth) {
            GLOBAL const T* from = AT(x) + ((outer / s.padded_d * s.depth + d) * s.height + h) * s.width - s.before_w;
            int end = min(s.padded_w, s.before_w + s.width), start = max(0, s.before_w);
            for (; w < start; ++w) { to[w] = ZERO; }
            for (; w + 16 <= end; w += 16) { MOVE16(to + w, from + w); }
            for (; w < end; ++w) { to[w] = from[w]; }
        }
        for (; w < s.padded_w; ++w) { to[w] = ZERO; }
    }
}
#endif
"""

_DEPTHWISE = (
    "typedef struct { int batch, channels, rows, width, taps, share, in_image, in_channel, out_image, out_channel, "
    "in_step, out_step, weight_step, added; } Direct;\n"
)


def _vector_macros_source(width: int) -> str:
    """Return V, a vector of `width` neighbours, and LOAD(p, step), which may read beyond the last valid one."""
    if width == 1:
        return "#define V T_C\n#define LOAD(p, step) T_LD(p, 0)\n#define VECTORS\n"
    lanes = ", ".join(f"T_LD(p, {i} * step)" for i in range(width))
    total = " + ".join(f"v.s{i:x}" for i in range(width))
    return f"""
#define V T_C{width}
#define VECTORS VECTOR_HINT(V)
FUNCTION V apart(GLOBAL const T* p, const int step) {{
    if (step == 2) {{ return VEC2(V, T_LD{width}(p, 0).even, T_LD{width}(p, {width}).even); }}
    return VEC{width}(V, {lanes});
}}
FUNCTION T_C total(V v) {{ return {total}; }}
#define LOAD(p, step) ((step) == 1 ? T_LD{width}(p, 0) : apart(p, step))
"""


@functools.cache
def depthwise_source(width: int, then: str = "") -> str:
    """Return the kernel `direct` with a fused op of `gemm.EPILOGUES`: each output sums over the taps of its channel.

    A work-item computes several vectors of `width` adjacent outputs.
    """
    store = (
        "T_ST(y, 0, sum);"
        if width == 1
        else f"""
        if (s.out_step == 1 && at + {width} <= s.width) {{
            T_ST{width}(y, 0, sum);
        }} else {{
            T_C lanes[{width}];
            vstore{width}(sum, 0, lanes);
            #pragma nounroll
            for (int i = 0; i < min({width}, s.width - at); ++i) {{ T_ST(y, i * s.out_step, lanes[i]); }}
        }}"""
    )
    after = "sum = THEN(sum);" if then else ""
    return (
        _DEPTHWISE
        + _vector_macros_source(width)
        + (make_epilogue_macros(then, THEN="V") if then else "")
        + f"""
VECTORS KERNEL void direct(IN(T, x_), IN(T, w_), OUT(T, y_), IN(T, bias), IN(int, table), const Direct s) {{
    GLOBAL const int *rows_in = AT(table), *rows_out = rows_in + s.rows, *moves = rows_out + s.rows,
        *taps = moves + s.taps;
    int pieces = (s.width + {width - 1}) / {width}, items = ITEMS;
    int pieces_of_all = s.batch * s.channels * s.rows * pieces, stop = (int)((long)pieces_of_all * (ITEM + 1) / items);
    for (int piece = (int)((long)pieces_of_all * ITEM / items); piece < stop; ++piece) {{
        int at = piece % pieces * {width}, line = piece / pieces, row = line % s.rows, image = line / s.rows,
            channel = image % s.channels;
        image /= s.channels;
        GLOBAL const T* x = AT(x_) + image * s.in_image + channel / s.share * s.in_channel + rows_in[row]
            + at * s.in_step;
        GLOBAL const T* w = AT(w_) + channel * s.weight_step;
        GLOBAL T* y = AT(y_) + image * s.out_image + channel * s.out_channel + rows_out[row] + at * s.out_step;
        V sum = (V)(0);
        if (s.added) {{ sum = (V)(T_LD(AT(bias), channel)); }}
        for (int t = 0; t < s.taps; ++t) {{ sum += (V)(T_LD(w, taps[t])) * LOAD(x + moves[t], s.in_step); }}{after}
        {store}
    }}
}}
"""
    )


@functools.cache
def depthwise_weight_grad_source(width: int) -> str:
    """Return the kernel `direct_weight`: for each tap of each channel the sum of y times its inputs over batch and
    positions.
    """
    wide = (
        ""
        if width == 1
        else f"for (; at + {width} <= s.width; at += {width}) {{ sums += T_LD{width}(y, at) * LOAD(x + at * "
        "s.in_step, s.in_step); }"
    )
    return (
        _DEPTHWISE
        + _vector_macros_source(width)
        + f"""
VECTORS KERNEL void direct_weight(IN(T, x_), IN(T, y_), OUT(T, w), IN(int, table), const Direct s) {{
    GLOBAL const int *rows_in = AT(table), *moves = rows_in + 2 * s.rows;
    int items = ITEMS, stop = (int)((long)s.channels * s.taps * (ITEM + 1) / items);
    for (int job = (int)((long)s.channels * s.taps * ITEM / items); job < stop; ++job) {{
        int t = job % s.taps, channel = job / s.taps;
        V sums = (V)(0);
        T_C sum = 0;
        for (int image = 0; image < s.batch; ++image) {{
            for (int row = 0; row < s.rows; ++row) {{
                GLOBAL const T* x = AT(x_) + image * s.in_image + channel / s.share * s.in_channel + rows_in[row]
                    + moves[t];
                GLOBAL const T* y = AT(y_) + image * s.out_image + channel * s.out_channel + row * s.width;
                int at = 0;
                {wide}
                for (; at < s.width; ++at) {{ sum += T_LD(y, at) * T_LD(x, at * s.in_step); }}
            }}
        }}
        T_ST(AT(w), job, sum{" + total(sums)" if width > 1 else ""});
    }}
}}
"""
    )
