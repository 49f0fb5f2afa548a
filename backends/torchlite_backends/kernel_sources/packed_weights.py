"""Products of a few rows of floats with weights of eight and four bits, which are converted in registers.

Sums are in float32. On processors a work-item computes columns one after the other, with vectors of weights. Elsewhere
a work-group has a column, or the columns of a block, and its items have parts of the sum.
"""

from __future__ import annotations

import functools

ROWS = 4  # that share a weight which was read
INT4_BLOCK = 64  # columns of a block of four-bit weights, of which a byte has two


def _each(text: str, count: int) -> str:
    """Repeat a text for each number: @ is the number."""
    return "".join(text.replace("@", str(i)) for i in range(count))


@functools.cache
def int8_product_source(width: int, lanes: int) -> str:
    """Return the kernel `int8_product`: (m, k) floats of T times the transpose of (n, k) weights of B, times the scales
    of the n columns. Vectors of `width` weights come first, then single ones. `lanes` items share a column. A
    work-item, or a group, has `per` columns.
    """
    sums = "" if lanes == 1 else "    LOCAL_ARRAY(float, parts, LANES * ROWS);\n"
    share = (
        ""
        if lanes == 1
        else _each("            parts[@ * LANES + THREAD] = t@;\n", ROWS)
        + """
            BARRIER;
            for (int gap = LANES / 2; gap > 0; gap /= 2) {
                if (THREAD < gap) { for (int r = 0; r < ROWS; ++r) {
                    parts[r * LANES + THREAD] += parts[r * LANES + THREAD + gap];
                } }
                BARRIER;
            }
"""
        + _each("            t@ = parts[@ * LANES];\n", ROWS)
        + "            BARRIER;\n"
    )
    return (
        f"""
#define ROWS {ROWS}
#define LANES {lanes}
#define W {width}
typedef float{width} FLOATS;
VECTOR_HINT(FLOATS) KERNEL void int8_product(IN(T, x), IN(B, weight), IN(T, scales), OUT(T, out), const int m,
        const int n, const int k, const int per) {{
{sums}    const int worker = {"ITEM" if lanes == 1 else "BLOCK"}, lane = {"0" if lanes == 1 else "THREAD"};
    const int whole = k / W * W;
    for (int c = worker * per; c < min(n, (worker + 1) * per); ++c) {{
        GLOBAL const B* w = AT(weight) + c * k;
        for (int first = 0; first < m; first += ROWS) {{
            float sums[W];
"""
        + _each(
            "            GLOBAL const T* x@ = AT(x) + min(first + @, m - 1) * k;\n"
            "            FLOATS s@ = (FLOATS)(0);\n"
            "            float t@ = 0;\n",
            ROWS,
        )
        + f"""
            for (int i = lane * W; i < whole; i += LANES * W) {{
                const FLOATS y = convert_float{width}(B_LD{width}(w, i));
"""
        + _each(f"                s@ += T_LD{width}(x@, i) * y;\n", ROWS)
        + """
            }
            for (int i = whole + lane; i < k; i += LANES) {
                const float y = (float)B_LD(w, i);
"""
        + _each("                t@ += T_LD(x@, i) * y;\n", ROWS)
        + "            }\n"
        + _each(
            f"            vstore{width}(s@, 0, sums);\n            for (int j = 0; j < W; ++j) {{ t@ += sums[j]; }}\n",
            ROWS,
        )
        + share
        + "            if (lane == 0) {\n                const float scale = T_LD(AT(scales), c);\n"
        + _each("                if (first + @ < m) { T_ST(AT(out), (first + @) * n + c, t@ * scale); }\n", ROWS)
        + """
            }
        }
    }
}
"""
    )


@functools.cache
def int4_product_source(width: int, slices: int) -> str:
    """Return the kernels `int4_product` and `int4_rest`: (m, k) floats of T times weights `(number - 8) * scale + zero`
    of n columns. `factors` has the scale and the zero of each group of `group` weights and each column.

    A group of items has a block of 64 columns. Of these 32 bytes are a row of the block: a byte has the numbers of
    columns i and i + 32. An item has vectors of `width` bytes, and `slices` items have other groups of weights. In
    `int4_rest` an item has one of the last n - first columns, of which a byte has two neighbours.
    """
    across = INT4_BLOCK // 2 // width
    text = f"""
#define ROWS {ROWS}
#define SLICES {slices}
#define W {width}
#define BLOCK_WIDE {INT4_BLOCK}
typedef float{width} FLOATS;
VECTOR_HINT(FLOATS) KERNEL void int4_product(IN(T, x), IN(B, weight), IN(T, factors), OUT(T, out), const int m,
        const int n, const int k, const int group) {{
    {"LOCAL_ARRAY(float, parts, SLICES * ROWS * BLOCK_WIDE);" if slices > 1 else ""}
    const int block = {"BLOCK" if slices > 1 else "ITEM"}, groups = k / group;
    const int slice = {f"THREAD / {across}" if slices > 1 else "0"};
    for (int first = 0; first < m; first += ROWS) {{
        for (int v = {f"THREAD % {across}" if slices > 1 else "0"}; v < {across}; v += {across if slices > 1 else 1}) {{
            GLOBAL const B* of = AT(weight) + block * (BLOCK_WIDE / 2) * k + v * W;
            const int column = block * BLOCK_WIDE + v * W;
"""
    text += _each(
        "            GLOBAL const T* x@ = AT(x) + min(first + @, m - 1) * k;\n"
        "            FLOATS low@ = (FLOATS)(0), high@ = (FLOATS)(0);\n",
        ROWS,
    )
    text += """
            for (int g = slice; g < groups; g += SLICES) {
                GLOBAL const B* w = of + g * group * (BLOCK_WIDE / 2);
                float f0[W], f1[W], f2[W], f3[W];
"""
    text += _each("                FLOATS a@ = (FLOATS)(0), b@ = (FLOATS)(0);\n                float sum@ = 0;\n", ROWS)
    text += f"""
                for (int i = g * group; i < (g + 1) * group; ++i, w += BLOCK_WIDE / 2) {{
                    const uchar{width} bytes = B_LD{width}(w, 0);
                    const FLOATS y = convert_float{width}(bytes & (uchar{width})(15)) - (FLOATS)(8);
                    const FLOATS z = convert_float{width}(bytes >> (uchar{width})(4)) - (FLOATS)(8);
"""
    text += _each(
        "                    { const float p = T_LD(x@, i); sum@ += p; a@ += (FLOATS)(p) * y; "
        "b@ += (FLOATS)(p) * z; }\n",
        ROWS,
    )
    text += """
                }
                for (int j = 0; j < W; ++j) {
                    const int at = 2 * (g * n + column + j);
                    f0[j] = T_LD(AT(factors), at);
                    f1[j] = T_LD(AT(factors), at + 1);
                    f2[j] = T_LD(AT(factors), at + BLOCK_WIDE);
                    f3[j] = T_LD(AT(factors), at + BLOCK_WIDE + 1);
                }
"""
    load = f"vload{width}(0, {{}})"
    text += _each(
        f"                low@ += a@ * {load.format('f0')} + (FLOATS)(sum@) * {load.format('f1')};\n"
        f"                high@ += b@ * {load.format('f2')} + (FLOATS)(sum@) * {load.format('f3')};\n",
        ROWS,
    )
    text += "            }\n"
    if slices == 1:
        text += _each(
            "            if (first + @ < m) {\n"
            f"                T_ST{width}(AT(out), (first + @) * n + column, low@);\n"
            f"                T_ST{width}(AT(out), (first + @) * n + column + BLOCK_WIDE / 2, high@);\n"
            "            }\n",
            ROWS,
        )
        text += "        }\n"
    else:
        text += _each(
            f"            vstore{width}(low@, 0, parts + (slice * ROWS + @) * BLOCK_WIDE + v * W);\n"
            f"            vstore{width}(high@, 0, parts + (slice * ROWS + @) * BLOCK_WIDE + BLOCK_WIDE / 2 + v * W);\n",
            ROWS,
        )
        text += """
        }
        BARRIER;
        for (int o = THREAD; o < ROWS * BLOCK_WIDE; o += THREADS) {
            const int row = first + o / BLOCK_WIDE;
            float total = 0;
            for (int s = 0; s < SLICES; ++s) { total += parts[s * ROWS * BLOCK_WIDE + o]; }
            if (row < m) { T_ST(AT(out), row * n + block * BLOCK_WIDE + o % BLOCK_WIDE, total); }
        }
        BARRIER;
"""
    return (
        text
        + """
    }
}
KERNEL void int4_rest(IN(T, x), IN(B, weight), IN(T, factors), OUT(T, out), const int m, const int n, const int k,
        const int group, const int first) {
    const int c = ITEM, rest = n - first;
    if (c >= rest) { return; }
    GLOBAL const B* w = AT(weight) + first * (k / 2);
    for (int r = 0; r < m; ++r) {
        float total = 0;
        for (int i = 0; i < k; ++i) {
            const int pair = w[i * (rest / 2) + c / 2], number = ((c & 1 ? pair >> 4 : pair) & 15) - 8;
            const int at = 2 * (i / group * n + first + c);
            total += T_LD(AT(x), r * k + i) * ((float)number * T_LD(AT(factors), at) + T_LD(AT(factors), at + 1));
        }
        T_ST(AT(out), r * n + first + c, total);
    }
}
"""
    )
