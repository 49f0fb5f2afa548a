"""All steps of recurrent layers of files: RNN, GRU and LSTM with their usual functions (`_recurrent_steps`)."""

from __future__ import annotations

import functools

from .quantized import EXACT_TERMS

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
_ROWS, _VECTORS = 4, 4  # of a tile of a product
# For a vector of units: `x` has the sums of the inputs, `p` the product of the state, and `made` is the next state.
_SIGMOID = "(1 / (1 + exp(-({}))))"
_LSTM = f"""
    const V old = LD(c, at);
    V i = LD(x, u) + LD(p, u), o = LD(x, size + u) + LD(p, size + u);
    V f = LD(x, 2 * size + u) + LD(p, 2 * size + u);
    const V g = tanh(LD(x, 3 * size + u) + LD(p, 3 * size + u));
#if PEEPHOLES
    i += old * LD(peep, u);
    f += old * LD(peep, 2 * size + u);
#endif
    const V cell = {_SIGMOID.format("f")} * old + {_SIGMOID.format("i")} * g;
#if PEEPHOLES
    o += cell * LD(peep, size + u);
#endif
    const V made = {_SIGMOID.format("o")} * tanh(cell);
    ST(next_c, at, cell);
"""
_GRU_GATES = f"""
    const V z = {_SIGMOID.format("LD(x, u) + (LD(p, u) + LD(b, u))")};
    const V r = {_SIGMOID.format("LD(x, size + u) + (LD(p, size + u) + LD(b, size + u))")};
    const V old = LD(h, at);
"""
_GRU = (
    _GRU_GATES
    + """
    const V n = tanh(LD(x, 2 * size + u) + r * (LD(p, 2 * size + u) + LD(b, 2 * size + u)));
    const V made = n + z * (old - n);
"""
)
# The reset gate comes before the product: the gates' places keep z and what is multiplied.
_GRU_FIRST = (
    _GRU_GATES
    + """
    ST(p, u, z);
    ST(p, size + u, r * old);
"""
)
_GRU_LAST = """
    const V z = LD(p, u), old = LD(h, at);
    const V n = tanh(LD(x, 2 * size + u) + (LD(p, 2 * size + u) + LD(b, 2 * size + u)));
    const V made = n + z * (old - n);
"""
_RNN = "const V made = tanh(LD(x, u) + LD(p, u));\n"
_STORE = "ST(next_h, at, made); ST(out, u, made);\n"


def _element_source(body: str, width: int) -> str:
    kind = str(width) if width > 1 else ""
    return body.replace("LD(", f"T_LD{kind}(").replace("ST(", f"T_ST{kind}(").replace("V ", f"T_C{kind} ")


def _cells_source(body: str, width: int, ends: bool) -> str:
    """Return the loop over rows and units of an item. Sequences that have ended keep their state if `ends`."""
    ended = """
#if LENGTHS
    if (t >= AT(lengths)[row]) {
        for (; u < u1; ++u, ++at) {
            T_ST(out, u, 0);
            T_ST(next_h, at, T_LD(h, at));
            if (IS_LSTM) { T_ST(next_c, at, T_LD(c, at)); }
        }
    }
#endif
"""
    wide = f"for (; u + {width} <= u1; u += {width}, at += {width}) {{ {_element_source(body, width)} }}"
    return f"""
for (int row = r0; row < r1; ++row) {{
    GLOBAL const T* x = AT(sums) + (((long)t * rows + row) * ways + way) * columns;
    GLOBAL T *p = product + row * columns, *out = AT(output) + (((long)t * ways + way) * rows + row) * size;
    int u = u0, at = row * size + u0;
    {ended if ends else ""}
    {wide if width > 1 else ""}
    for (; u < u1; ++u, ++at) {{ {_element_source(body, 1)} }}
}}
"""


def _tile_source(rows: int, vectors: int, width: int, has_levels: bool) -> str:
    """Return the loop over columns of a product, of `rows` rows and `vectors` vectors of `width` columns at a time."""
    kind = str(width) if width > 1 else ""
    floats, ints = f"T_C{kind}", f"int{kind}"
    tile, places = [(r, v) for r in range(rows) for v in range(vectors)], range(vectors)
    convert = {name: f"convert_{name}{kind}" if kind else f"({name})" for name in ("float", "int")}
    load = f"W_LD{kind}(w, {{}})"
    if has_levels:
        load = f"{convert['float']}({load})"
    zeros = "".join(f"{floats} a{r}_{v} = ({floats})(0); " for r, v in tile)
    loop = (
        "".join(f"const {floats} b{v} = {load.format(v * width)}; " for v in places)
        + "".join(
            f"{{ const T_C y = T_LD(x{r}, i); " + "".join(f"a{r}_{v} += y * b{v}; " for v in places) + "}\n"
            for r in range(rows)
        )
        + "w += columns;"
    )
    if has_levels:

        def numbers(name: str, v: int) -> str:
            many = f"AT({name}) + way * columns + j + {v * width}"
            loaded = f"vload{width}(0, {many})" if kind else f"*({many})"
            wanted = convert["int" if name == "zero" else "float"]
            one = f"({ints if name == 'zero' else floats})(AT({name})[way])"
            return f"({name}_step ? {wanted}({loaded}) : {one})"

        product = (
            "".join(f"{ints} t{r}_{v} = ({ints})(0); " for r, v in tile)
            + f"for (int from = 0; from < size; from += {EXACT_TERMS}) {{ {zeros}\n"
            + f"for (int i = from; i < min(size, from + {EXACT_TERMS}); ++i) {{ {loop} }}\n"
            + "".join(f"t{r}_{v} += {convert['int']}(a{r}_{v}); " for r, v in tile)
            + "}\n"
            + "if (zero_step >= 0) { "
            + "".join(f"t{r}_{v} -= {numbers('zero', v)} * ({ints})((int)line_sums[row + {r}]); " for r, v in tile)
            + "}\n"
        )
        result = {(r, v): f"{convert['float']}(t{r}_{v}) * (step * {numbers('scale', v)})" for r, v in tile}
    else:
        product = f"{zeros}\nfor (int i = 0; i < size; ++i) {{ {loop} }}\n"
        result = {(r, v): f"a{r}_{v}" for r, v in tile}
    columns = vectors * width
    return f"""
for (; j + {columns} <= end; j += {columns}) {{
    GLOBAL const W* w = AT(weight) + (long)way * size * columns + j;
    {product}
    {"".join(f"T_ST{kind}(product, (row + {r}) * columns + j + {v * width}, {result[r, v]}); " for r, v in tile)}
}}
"""


def _product_source(first: int, stop: int, seen: str, stride: str, width: int, has_levels: bool) -> str:
    """Return the product of states, whose rows are `stride` apart, with the columns of some gates."""
    tiles = [(_VECTORS, width), (1, width), (1, 1)] if width > 1 else [(1, 1)]

    def rows_source(rows: int) -> str:
        lines = "".join(f"GLOBAL const T* x{r} = {seen} + (row + {r}) * {stride};\n" for r in range(rows))
        return f"""
    for (; row + {rows} <= r1; row += {rows}) {{
        {lines}
        int j = begin;
        {"".join(_tile_source(rows, *tile, has_levels) for tile in tiles)}
    }}
"""

    return f"""
for (int g = {first}, span = blocks > 1 ? 1 : {stop - first}; g < {stop}; g += span) {{
    const int begin = g * size + u0, end = (g + span - 1) * size + u1;
    int row = r0;
    {rows_source(_ROWS) if width > 1 else ""}
    {rows_source(1)}
}}
"""


def _levels_source(width: int) -> str:
    """Return the levels of all rows of a direction's state, by its range, less their zero point, as floats."""

    def loop(vector: str, one: str) -> str:
        wide = f"for (; e + {width} <= size; e += {width}) {{ {vector} }}\n" if width > 1 else ""
        return f"int e = 0; {wide} for (; e < size; ++e) {{ {one} }}\n"

    kind = f"float{width}"

    def fold(vector: str, one: str) -> str:
        return f"vstore{width}({vector}, 0, kept); for (int e = 0; e < {width}; ++e) {{ {one} }}\n" if width > 1 else ""

    extremes = loop(
        f"const {kind} v = vload{width}(0, from + e); lows = SMALLER(lows, v); highs = LARGER(highs, v);",
        "const float v = from[e]; low = SMALLER(low, v); high = LARGER(high, v);",
    )
    levels = loop(
        f"const {kind} v = clamp(rint(vload{width}(0, from + e) / ({kind})(step)) + ({kind})(shift), ({kind})(0), "
        f"({kind})(255)) - ({kind})(shift); vstore{width}(v, 0, to + e); totals += v;",
        "const float v = clamp(rint(from[e] / step) + shift, 0.0f, 255.0f) - shift; to[e] = v; total += v;",
    )
    vectors = f"float kept[{width}]; {kind} lows = ({kind})(0), highs = ({kind})(0);" if width > 1 else ""
    counted = "#if LENGTHS\n if (t > AT(lengths)[row]) { continue; }\n#endif"
    ended = """
#if LENGTHS
    if (t > AT(lengths)[row]) {
        for (int e = 0; e < size; ++e) { to[e] = 0; }
        line_sums[row] = 0;
        continue;
    }
#endif
"""
    return f"""
GLOBAL float *levels = AT(scratch) + (long)ways * rows * columns + (long)item * rows * (size + 1);
GLOBAL float *line_sums = levels + rows * size;
float low = 0, high = 0;
{vectors}
for (int row = 0; row < rows; ++row) {{
    {counted}
    GLOBAL const float* from = h + row * size;
    {extremes}
}}
{fold("lows", "low = SMALLER(low, kept[e]);")} {fold("highs", "high = LARGER(high, kept[e]);")}
const float step = high == low ? 1.0f : (high - low) / 255.0f;
const float shift = rint(clamp(-low / step, 0.0f, 255.0f));
for (int row = 0; row < rows; ++row) {{
    GLOBAL const float* from = h + row * size;
    GLOBAL float* to = levels + row * size;
    {ended}
    float total = 0;
    {f"{kind} totals = ({kind})(0);" if width > 1 else ""}
    {levels}
    {fold("totals", "total += kept[e];")}
    line_sums[row] = total;
}}
"""


@functools.cache
def recurrent_steps_source(cell: str, width: int, has_levels: bool, option: bool) -> str:
    """Return the kernel `recurrent_steps`: steps `start` to `stop` of a layer's directions.

    A work-item has a direction, one of `parts` parts of the rows, and one of `blocks` blocks of the units, whose
    bounds are vectors of a tile. With several blocks a launch has one step. `state` and `other` are (S, D, N, H) and
    hold the states of steps in turn; the last step's are in `state`. `scratch` has the products, (D, N, G * H), and
    with levels N * (H + 1) numbers of each item. PEEPHOLES and LENGTHS say which arrays there are. A step of scales or
    zero points is 0 for one of each direction, 1 for one of each column, and -1 if there are none.
    """
    gates, seen = GATES[cell], "levels" if has_levels else "h"
    options = width, has_levels
    if cell == "gru" and not option:
        step = (
            _product_source(0, 2, seen, "size", *options)
            + _cells_source(_GRU_FIRST, width, False)
            + _product_source(2, 3, "product + size", "columns", *options)
            + _cells_source(_GRU_LAST + _STORE, width, True)
        )
    else:
        body = {"rnn": _RNN, "gru": _GRU, "lstm": _LSTM}[cell]
        step = _product_source(0, gates, seen, "size", *options) + _cells_source(body + _STORE, width, True)
    return f"""
#define IS_LSTM {int(cell == "lstm")}
#define SMALLER(a, b) SELECT(((b) < (a)) | ((b) != (b)), b, a)
#define LARGER(a, b) SELECT(((b) > (a)) | ((b) != (b)), b, a)
{f"VECTOR_HINT(T_C{width}) " if width > 1 else ""}KERNEL void recurrent_steps(IN(T, sums), IN(W, weight), IN(T, h0),
        IN(T, c0), IN(T, bias), IN(T, peepholes), IN(L, lengths), IN(T, scale), IN(W, zero), OUT(T, scratch),
        OUT(T, other), OUT(T, output), OUT(T, state), const int steps, const int start, const int stop, const int ways,
        const int rows, const int size, const int parts, const int blocks, const int reverse, const int scale_step,
        const int zero_step) {{
    const int columns = {gates} * size, plane = ways * rows * size, items = ways * parts * blocks;
    const int pieces = (size + {_VECTORS * width - 1 if width > 1 else 0}) / {_VECTORS * width if width > 1 else 1};
    for (int item = ITEM; item < items; item += ITEMS) {{
        const int block = item % blocks, part = item / blocks % parts, way = item / blocks / parts;
        const int r0 = (int)((long)rows * part / parts), r1 = (int)((long)rows * (part + 1) / parts);
        const int u0 = (int)((long)pieces * block / blocks) * {_VECTORS * width if width > 1 else 1};
        const int u1 = min(size, (int)((long)pieces * (block + 1) / blocks) * {_VECTORS * width if width > 1 else 1});
        GLOBAL T* product = AT(scratch) + (long)way * rows * columns;
        GLOBAL const T *b = AT(bias) + way * columns, *peep = AT(peepholes) + way * 3 * size;
        for (int k = start; k < stop; ++k) {{
            const int t = reverse >> way & 1 ? steps - 1 - k : k;
            GLOBAL const T* from = (steps - k) % 2 ? AT(other) : AT(state);
            GLOBAL const T *h = (k ? from : AT(h0)) + way * rows * size;
            GLOBAL const T *c = (k ? from + plane : AT(c0)) + way * rows * size;
            GLOBAL T *next_h = ((steps - k) % 2 ? AT(state) : AT(other)) + way * rows * size, *next_c = next_h + plane;
            {_levels_source(width) if has_levels else ""}
            {step}
        }}
    }}
}}
"""
