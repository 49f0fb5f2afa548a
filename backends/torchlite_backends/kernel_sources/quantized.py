"""Products of 8-bit levels with exact sums, and the quantization of a tensor by its range.

Levels are multiplied as floats: a sum of `EXACT_TERMS` products stays below 2**24, up to which floats have all whole
numbers. Such sums are added up in integers.
"""

from __future__ import annotations

import functools

DOT_ROWS = 4  # that share a word of the right matrix
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


# Names of types for `levels_dot_source`: a vector of four levels, the cast to it, and the letter of the instruction.
DOT_TYPES = {"u8": ("uchar4", "as_uchar4", "u"), "i8": ("char4", "as_char4", "s")}


@functools.cache
def levels_dot_source(a_kind: str, b_kind: str, lanes: int) -> str:
    """Return two kernels for the product of (m, k) levels of A, less their zero points, with the transpose of (n, k)
    levels of B, less theirs. Both are read as words of four levels, of which k / 4 are a row.

    In `levels_dot_rows` `lanes` items of a group have parts of the sums of a column, with ROWS rows at a time. In
    `levels_dot_tiles` a group of 256 items has a tile of 64 rows and columns, and an item 16 results. Steps are those
    of `levels_product_source`. `tiles` is the number of tiles across the columns.
    """
    (a4, as_a, a_sign), (b4, as_b, b_sign) = DOT_TYPES[a_kind], DOT_TYPES[b_kind]
    return f"""
#define ROWS {DOT_ROWS}
#define LANES {lanes}
#define ONES 0x01010101
// sum + the products of four levels with four others
#if defined(__CUDACC_RTC__) && __CUDA_ARCH__ >= 610
FUNCTION int dot4(int x, int y, int sum) {{
    int v;
    asm("dp4a.{a_sign}32.{b_sign}32 %0, %1, %2, %3;" : "=r"(v) : "r"(x), "r"(y), "r"(sum));
    return v;
}}
#elif !defined(__cplusplus) && defined(__opencl_c_integer_dot_product_input_4x8bit)
#define dot4(x, y, sum) ((int)dot({as_a}(x), {as_b}(y)) + (sum))
#else
FUNCTION int dot4(int x, int y, int sum) {{
    const {a4} p = {as_a}(x);
    const {b4} q = {as_b}(y);
    return sum + p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
}}
#endif
#if SCALED
#define RESULT(t, c) ((float)(t) * AT(scale)[(c) * scale_step])
#else
#define RESULT(t, c) (t)
#endif
// Stores the sum of row r and column c, whose sums of levels are those of a row of A and of a column of B.
#define STORE(r, c, sum, row_sum, column_sum) {{ \
    const int p = za_step < 0 ? 0 : AT(za)[(r) * za_step], q = zb_step < 0 ? 0 : AT(zb)[(c) * zb_step]; \
    int t = (sum) - p * (column_sum) - q * (row_sum) + 4 * words * p * q; \
    if (bias_step >= 0) {{ t += AT(bias)[(c) * bias_step]; }} \
    AT(out)[(r) * n + (c)] = RESULT(t, c); \
}}
#define PARAMETERS IN(A, a), IN(B, b), IN(A, za), IN(B, zb), IN(int, bias), IN(float, scale), OUT(U, out), \
    const int m, const int n, const int words, const int za_step, const int zb_step, const int bias_step, \
    const int scale_step, const int tiles

KERNEL void levels_dot_rows(PARAMETERS) {{
    LOCAL_ARRAY(int, parts, LANES * (2 * ROWS + 1));
    const int c = BLOCK;
    GLOBAL const int* right = (GLOBAL const int*)AT(b) + c * words;
    for (int first = 0; first < m; first += ROWS) {{
        int sums[2 * ROWS + 1];
        for (int r = 0; r < 2 * ROWS + 1; ++r) {{ sums[r] = 0; }}
        for (int i = THREAD; i < words; i += LANES) {{
            const int y = right[i];
            for (int r = 0; r < ROWS; ++r) {{
                const int x = ((GLOBAL const int*)AT(a))[min(first + r, m - 1) * words + i];
                sums[r] = dot4(x, y, sums[r]);
                sums[ROWS + r] = dot4(x, ONES, sums[ROWS + r]);
            }}
            sums[2 * ROWS] = dot4(ONES, y, sums[2 * ROWS]);
        }}
        for (int r = 0; r < 2 * ROWS + 1; ++r) {{ parts[r * LANES + THREAD] = sums[r]; }}
        BARRIER;
        for (int gap = LANES / 2; gap > 0; gap /= 2) {{
            if (THREAD < gap) {{ for (int r = 0; r < 2 * ROWS + 1; ++r) {{
                parts[r * LANES + THREAD] += parts[r * LANES + THREAD + gap];
            }} }}
            BARRIER;
        }}
        for (int r = THREAD; r < min(ROWS, m - first); r += LANES) {{
            STORE(first + r, c, parts[r * LANES], parts[(ROWS + r) * LANES], parts[2 * ROWS * LANES])
        }}
        BARRIER;
    }}
}}
KERNEL void levels_dot_tiles(PARAMETERS) {{
    LOCAL_MATRIX(int, left, 8, 65);
    LOCAL_MATRIX(int, right, 8, 65);
    const int top = BLOCK / tiles * 64, begin = BLOCK % tiles * 64, down = THREAD / 16, across = THREAD % 16;
    int sums[4][4], rows[4], columns[4];
    for (int i = 0; i < 4; ++i) {{
        rows[i] = columns[i] = 0;
        for (int j = 0; j < 4; ++j) {{ sums[i][j] = 0; }}
    }}
    for (int from = 0; from < words; from += 8) {{
        for (int e = THREAD; e < 512; e += 256) {{
            const int line = e / 8, w = e % 8, there = from + w < words;
            left[w][line] = there && top + line < m
                ? ((GLOBAL const int*)AT(a))[(top + line) * words + from + w] : 0;
            right[w][line] = there && begin + line < n
                ? ((GLOBAL const int*)AT(b))[(begin + line) * words + from + w] : 0;
        }}
        BARRIER;
        for (int w = 0; w < 8; ++w) {{
            int x[4], y[4];
            for (int i = 0; i < 4; ++i) {{
                x[i] = left[w][down + 16 * i];
                y[i] = right[w][across + 16 * i];
                rows[i] = dot4(x[i], ONES, rows[i]);
                columns[i] = dot4(ONES, y[i], columns[i]);
            }}
            for (int i = 0; i < 4; ++i) {{ for (int j = 0; j < 4; ++j) {{
                sums[i][j] = dot4(x[i], y[j], sums[i][j]);
            }} }}
        }}
        BARRIER;
    }}
    for (int i = 0; i < 4; ++i) {{ for (int j = 0; j < 4; ++j) {{
        const int r = top + down + 16 * i, c = begin + across + 16 * j;
        if (r < m && c < n) {{ STORE(r, c, sums[i][j], rows[i], columns[j]) }}
    }} }}
}}
"""


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
