"""Products of 8-bit levels with exact sums, and the quantization of a tensor by its range.

Levels are multiplied as floats: a sum of `EXACT_TERMS` products stays below 2**24, up to which floats have all whole
numbers. Such sums are added up in integers.
"""

from __future__ import annotations

import functools

EXACT_TERMS = 256  # products of two numbers up to 255


@functools.cache
def levels_product_source(rows: int, vectors: int, width: int) -> str:
    """Return the kernel `levels_product`: the product of (m, k) levels of A, less their zero points, with (k, n) levels
    of B, less theirs.

    A work-item has a tile of `rows` rows and `vectors` vectors of `width` columns; n is at least as large. The last
    tile of a row begins before the end of the one before it, and stores the rest alone. A step of a zero point, bias or
    scale is 0 for one number, 1 for one of each row or column, and -1 if there is none. U is int, or float with scales.
    With ROWS_FIRST, neighbours have the same columns and other rows: `tiles` is the number of tiles across the rows,
    else across the columns.
    """
    columns = vectors * width
    tile = [(r, v) for r in range(rows) for v in range(vectors)]
    kind = str(width) if width > 1 else ""
    load = f"convert_float{width}(B_LD{width}(row, {{}} * {width}))" if width > 1 else "(float)B_LD(row, {})"
    wide = {"float": "convert_float" + kind if kind else "(float)", "int": "convert_int" + kind if kind else "(int)"}

    def numbers(name: str, v: int, of: str) -> str:
        """A vector of numbers of columns."""
        if not kind:
            return f"(({of})AT({name})[n0 * {name}_step])"
        vector = f"{wide[of]}(vload{width}(0, AT({name}) + n0 + {v * width}))"
        return f"({name}_step ? {vector} : ({of}{kind})(AT({name})[0]))"

    def finish(r: int, v: int) -> str:
        scaled = f"{wide['float']}(t{r}_{v}) * {numbers('scale', v, 'float')}"
        return f"""
    if (zb_step >= 0) {{ t{r}_{v} -= {numbers("zb", v, "int")} * (INTS)(sum{r}); }}
    if (bias_step >= 0) {{ t{r}_{v} += {numbers("bias", v, "int")}; }}
#if SCALED
#define RESULT{r}_{v} {scaled}
#else
#define RESULT{r}_{v} t{r}_{v}
#endif
"""

    def store(r: int) -> str:
        whole = "".join(
            f"U_ST{width}(to, {v * width}, RESULT{r}_{v}); " if kind else f"U_ST(to, {v}, RESULT{r}_{v}); "
            for v in range(vectors)
        )
        if columns == 1:
            return f"if (m0 + {r} < m) {{ GLOBAL U* to = AT(out) + (m0 + {r}) * n + n0; {whole}}}\n"
        kept = "".join(f"vstore{width}(RESULT{r}_{v}, 0, kept + {v * width}); " for v in range(vectors))
        return f"""
    if (m0 + {r} < m) {{
        GLOBAL U* to = AT(out) + (m0 + {r}) * n + n0;
        if (n0 == first) {{ {whole}}} else {{
            U kept[{columns}];
            {kept}
            for (int j = first - n0; j < {columns}; ++j) {{ to[j] = kept[j]; }}
        }}
    }}
"""

    return (
        f"""
typedef float{kind} FLOATS;
typedef int{kind} INTS;
{"VECTOR_HINT(FLOATS) " if kind else ""}KERNEL void levels_product(IN(A, a), IN(B, b), IN(A, za), IN(B, zb),
        IN(int, bias), IN(float, scale), OUT(U, out), const int m, const int n, const int k, const int za_step,
        const int zb_step, const int bias_step, const int scale_step, const int tiles) {{
#if ROWS_FIRST
    const int first = ITEM / tiles * {columns}, m0 = ITEM % tiles * {rows};
#else
    const int first = ITEM % tiles * {columns}, m0 = ITEM / tiles * {rows};
#endif
    const int n0 = min(first, n - {columns});
    if (m0 >= m || first >= n) {{ return; }}
    GLOBAL const B* row = AT(b) + n0;
"""
        + "".join(
            f"    GLOBAL const A* a{r} = AT(a) + min(m0 + {r}, m - 1) * k;\n"
            f"    const int z{r} = za_step < 0 ? 0 : AT(za)[min(m0 + {r}, m - 1) * za_step];\n"
            f"    int sum{r} = 0;\n"
            for r in range(rows)
        )
        + "".join(f"    INTS t{r}_{v} = (INTS)(0);\n" for r, v in tile)
        + f"""
    for (int begin = 0; begin < k; begin += {EXACT_TERMS}) {{
        const int end = min(k, begin + {EXACT_TERMS});
"""
        + "".join(f"        FLOATS c{r}_{v} = (FLOATS)(0);\n" for r, v in tile)
        + """
        for (int i = begin; i < end; ++i, row += n) {
"""
        + "".join(f"            const FLOATS b{v} = {load.format(v)};\n" for v in range(vectors))
        + "".join(
            f"            {{ const int x = (int)a{r}[i] - z{r}; sum{r} += x; const FLOATS y = (FLOATS)((float)x); "
            + " ".join(f"c{r}_{v} += y * b{v};" for v in range(vectors))
            + " }\n"
            for r in range(rows)
        )
        + "        }\n"
        + "".join(f"        t{r}_{v} += {wide['int']}(c{r}_{v});\n" for r, v in tile)
        + "    }\n"
        + "".join(finish(r, v) for r, v in tile)
        + "".join(store(r) for r in range(rows))
        + "}\n"
    )


@functools.cache
def dynamic_quantize_source(width: int) -> str:
    """Return the kernel `dynamic_quantize`: the levels of n floats between their extremes, by one work-group of LANES
    items. Vectors of `width` come first, then single elements.
    """

    def loops(vectors: str, rest: str) -> str:
        """A loop over vectors, and one over single elements."""
        if width == 1:
            return f"    for (int i = THREAD; i < n; i += LANES) {{ {rest} }}\n"
        return (
            f"    for (int i = THREAD * {width}; i < whole; i += LANES * {width}) {{ {vectors} }}\n"
            f"    for (int i = whole + THREAD; i < n; i += LANES) {{ {rest} }}\n"
        )

    wide = f"float{width}"
    extremes = f"const {wide} v = vload{width}(0, AT(x) + i); low = SMALLER(low, v); high = LARGER(high, v);"
    extremes_of_one = "const float v = AT(x)[i]; one_low = SMALLER(one_low, v); one_high = LARGER(one_high, v);"
    store = (
        f"const {wide} v = rint(vload{width}(0, AT(x) + i) / ({wide})(step)) + ({wide})(shift); "
        f"vstore{width}(convert_uchar{width}(clamp(v, ({wide})(0), ({wide})(255))), 0, AT(levels) + i);"
    )
    store_one = "AT(levels)[i] = (U)clamp(rint(AT(x)[i] / step) + shift, 0.0f, 255.0f);"
    folded = (
        ""
        if width == 1
        else f"""
    float parts[{width}];
    vstore{width}(low, 0, parts);
    for (int k = 0; k < {width}; ++k) {{ one_low = SMALLER(one_low, parts[k]); }}
    vstore{width}(high, 0, parts);
    for (int k = 0; k < {width}; ++k) {{ one_high = LARGER(one_high, parts[k]); }}
"""
    )
    vectors = "" if width == 1 else f"    float{width} low = (float{width})(0), high = (float{width})(0);\n"
    return (
        f"""
#define SMALLER(a, b) SELECT(((b) < (a)) | ((b) != (b)), b, a)
#define LARGER(a, b) SELECT(((b) > (a)) | ((b) != (b)), b, a)
{f"VECTOR_HINT(float{width}) " if width > 1 else ""}KERNEL void dynamic_quantize(IN(float, x), OUT(U, levels),
        OUT(float, scale), OUT(U, zero), const int n) {{
    LOCAL_ARRAY(float, lows, LANES);
    LOCAL_ARRAY(float, highs, LANES);
    const int whole = n / {width} * {width};
    float one_low = 0, one_high = 0;
"""
        + vectors
        + loops(extremes, extremes_of_one)
        + folded
        + """
#if LANES > 1
    lows[THREAD] = one_low;
    highs[THREAD] = one_high;
    BARRIER;
    for (int k = LANES / 2; k > 0; k /= 2) {
        if (THREAD < k) {
            lows[THREAD] = SMALLER(lows[THREAD], lows[THREAD + k]);
            highs[THREAD] = LARGER(highs[THREAD], highs[THREAD + k]);
        }
        BARRIER;
    }
    one_low = lows[0];
    one_high = highs[0];
#endif
    const float step = one_high == one_low ? 1.0f : (one_high - one_low) / 255.0f;
    const float shift = rint(clamp(-one_low / step, 0.0f, 255.0f));
    if (THREAD == 0) {
        AT(scale)[0] = step;
        AT(zero)[0] = (U)shift;
    }
"""
        + loops(store, store_one)
        + "}\n"
    )
