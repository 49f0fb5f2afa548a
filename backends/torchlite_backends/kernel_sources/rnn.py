"""Pointwise part of LSTM and GRU steps, forward and backward, whose matrix products are separate launches. On a
processor, also all steps of a small layer in one launch.
"""

from __future__ import annotations

import functools

# For each kernel: its array parameters and, for an element (a column of a row), the code. LD(array, place) and
# ST(array, place, value) have the current vector width; `row` counts rows, `at` is the element's index in a (rows,
# size) array, and `four` and `three` those in a row of gates.
_SIGMOID = "(1 / (1 + exp(-({}))))"
_LSTM = (
    "OUT(T, gates), IN(T, before), OUT(T, c), OUT(T, h)",
    f"""
    V i = {_SIGMOID.format("LD(gates, four)")}, f = {_SIGMOID.format("LD(gates, four + size)")};
    V g = tanh(LD(gates, four + 2 * size)), o = {_SIGMOID.format("LD(gates, four + 3 * size)")};
    V cell = f * LD(before, at) + i * g;
    ST(gates, four, i); ST(gates, four + size, f); ST(gates, four + 2 * size, g); ST(gates, four + 3 * size, o);
    ST(c, at, cell);
    ST(h, at, o * tanh(cell));
""",
)
_LSTM_BACKWARD = (
    "IN(T, gates), IN(T, c), IN(T, before), IN(T, dh), IN(T, grad), OUT(T, dc), OUT(T, sums)",
    """
    V i = LD(gates, four), f = LD(gates, four + size), g = LD(gates, four + 2 * size), o = LD(gates, four + 3 * size);
    V squashed = tanh(LD(c, at)), upper = 0, along = 0;
    if (given & 1) { upper = LD(dh, at); }
    if (given & 2) { upper += LD(grad, at); }
    if (given & 4) { along = LD(dc, at); }
    along += upper * o * (1 - squashed * squashed);
    ST(sums, four, along * g * i * (1 - i));
    ST(sums, four + size, along * LD(before, at) * f * (1 - f));
    ST(sums, four + 2 * size, along * i * (1 - g * g));
    ST(sums, four + 3 * size, upper * squashed * o * (1 - o));
    ST(dc, at, along * f);
""",
)
_GRU = (
    "IN(T, input), IN(T, state), IN(T, before), OUT(T, kept), OUT(T, h)",
    f"""
    V r = {_SIGMOID.format("LD(input, three) + LD(state, three)")},
        z = {_SIGMOID.format("LD(input, three + size) + LD(state, three + size)")};
    V s = LD(state, three + 2 * size), old = LD(before, at);
    V n = tanh(LD(input, three + 2 * size) + r * s);
    ST(kept, four, r); ST(kept, four + size, z); ST(kept, four + 2 * size, n); ST(kept, four + 3 * size, s);
    ST(h, at, n + z * (old - n));
""",
)
_GRU_BACKWARD = (
    "IN(T, kept), IN(T, before), OUT(T, dh), IN(T, grad), OUT(T, of_input), OUT(T, of_state)",
    """
    V r = LD(kept, four), z = LD(kept, four + size), n = LD(kept, four + 2 * size), s = LD(kept, four + 3 * size),
        upper = 0;
    if (given & 1) { upper = LD(dh, at); }
    if (given & 2) { upper += LD(grad, at); }
    V dn = upper * (1 - z) * (1 - n * n), dz = upper * (LD(before, at) - n) * z * (1 - z), dr = dn * s * r * (1 - r);
    ST(of_input, three, dr); ST(of_input, three + size, dz); ST(of_input, three + 2 * size, dn);
    ST(of_state, three, dr); ST(of_state, three + size, dz); ST(of_state, three + 2 * size, dn * r);
    ST(dh, at, upper * z);
""",
)
_STEPS = {"lstm": _LSTM, "lstm_backward": _LSTM_BACKWARD, "gru": _GRU, "gru_backward": _GRU_BACKWARD}


def _list_array_names(parameters: str) -> list[str]:
    return [part.split(",")[1].strip(" )") for part in parameters.split("), ")]


@functools.cache
def cell_step_source(name: str, width: int) -> str:
    """Return the kernel `cell_step`: work-items share the vectors of `width` elements of all rows; remainders are
    scalar.
    """
    parameters, body = _STEPS[name]
    pointers = "".join(
        f"GLOBAL {'const ' if f'IN(T, {a})' in parameters else ''}T* {a} = AT({a});\n"
        for a in _list_array_names(parameters)
    )

    def element_source(vector: str, load: str, store: str) -> str:
        return body.replace("LD(", load + "(").replace("ST(", store + "(").replace("V ", vector + " ")

    wide = (
        f"if (column + {width} <= size) {{ {element_source(f'T_C{width}', f'T_LD{width}', f'T_ST{width}')} continue; }}"
        if width > 1
        else ""
    )
    return f"""
KERNEL void cell_step({parameters}, const int rows, const int size, const int given) {{
    {pointers}
    int pieces = (size + {width - 1}) / {width}, items = ITEMS, stop = (int)((long)rows * pieces * (ITEM + 1) / items);
    for (int piece = (int)((long)rows * pieces * ITEM / items); piece < stop; ++piece) {{
        int row = piece / pieces, column = piece % pieces * {width}, at = row * size + column;
        int three = 3 * row * size + column, four = 4 * row * size + column, end = min(size, column + {width});
        {wide}
        for (; column < end; ++column, ++at, ++three, ++four) {{ {element_source("T_C", "T_LD", "T_ST")} }}
    }}
}}
"""


# For each kernel of a layer: its array parameters, the gates, the first numbers of the state's product, where that is
# stored, and the arrays of a step that `_STEPS` names.
_LAYERS = {
    "lstm": (
        "OUT(T, sums), IN(T, h0), IN(T, c0), IN(T, weight), OUT(T, cells), OUT(T, output)",
        4,
        "{load}(gates, {at})",
        "gates",
        """
        GLOBAL T* gates = AT(sums) + (long)line * 4 * size;
        GLOBAL const T* before = k ? AT(cells) + (long)last * size : AT(c0) + row * size;
        GLOBAL T *c = AT(cells) + (long)line * size, *h = AT(output) + (long)line * size;
""",
    ),
    "gru": (
        "IN(T, sums), IN(T, h0), IN(T, weight), IN(T, bias), OUT(T, product), OUT(T, all_kept), OUT(T, output)",
        3,
        "given ? {load}(AT(bias), {at}) : 0",
        "state",
        """
        GLOBAL const T *input = AT(sums) + (long)line * 3 * size, *before = seen;
        GLOBAL T *state = AT(product) + row * 3 * size, *kept = AT(all_kept) + (long)line * 4 * size;
        GLOBAL T* h = AT(output) + (long)line * size;
""",
    ),
}
_TILE = 4  # vectors of a product that are summed at once


@functools.cache
def layer_steps_source(name: str, width: int) -> str:
    """Return the kernel `layer_steps`: all steps of a layer, whose rows of the batch are shared by work-items.

    `weight` is (size, gates * size). With `given` there is a bias of the state's product.
    """
    parameters, count, first, stored, pointers = _LAYERS[name]
    body = _STEPS[name][1]

    def element_source(vector: str, load: str, store: str) -> str:
        return body.replace("LD(", load + "(").replace("ST(", store + "(").replace("V ", vector + " ")

    def product_source(vectors: int, wide: int) -> str:
        """The loop over columns of a product, `vectors` vectors of `wide` columns at a time."""
        kind, load, store = (f"T_C{wide}", f"T_LD{wide}", f"T_ST{wide}") if wide > 1 else ("T_C", "T_LD", "T_ST")
        lines = range(vectors)
        starts = "".join(f"{kind} a{v} = {first.format(load=load, at=f'j + {v * wide}')};\n" for v in lines).replace(
            ": 0;", f": ({kind})(0);"
        )
        return f"""
        for (; j + {vectors * wide} <= columns; j += {vectors * wide}) {{
            {starts}
            GLOBAL const T* w = AT(weight) + j;
            for (int i = 0; i < size; ++i, w += columns) {{
                const T_C x = T_LD(seen, i);
                {"".join(f"a{v} += x * {load}(w, {v * wide}); " for v in lines)}
            }}
            {"".join(f"{store}({stored}, j + {v * wide}, a{v}); " for v in lines)}
        }}
"""

    parts = {(_TILE, width), (1, width), (1, 1)} if width > 1 else {(1, 1)}
    products = "".join(product_source(*part) for part in sorted(parts, reverse=True))
    wide = (
        f"for (; column + {width} <= size; column += {width}, at += {width}, three += {width}, four += {width}) "
        f"{{ {element_source(f'T_C{width}', f'T_LD{width}', f'T_ST{width}')} }}"
        if width > 1
        else ""
    )
    return f"""
KERNEL void layer_steps({parameters}, const int steps, const int rows, const int size, const int reverse,
        const int given) {{
    const int columns = {count} * size;
    for (int row = ITEM; row < rows; row += ITEMS) {{
        for (int k = 0; k < steps; ++k) {{
        const int t = reverse ? steps - 1 - k : k, line = t * rows + row, last = line + (reverse ? rows : -rows);
        GLOBAL const T* seen = k ? AT(output) + (long)last * size : AT(h0) + row * size;
        {pointers}
        int j = 0;
        {products}
        int column = 0, at = 0, three = 0, four = 0;
        {wide}
        for (; column < size; ++column, ++at, ++three, ++four) {{ {element_source("T_C", "T_LD", "T_ST")} }}
        }}
    }}
}}
"""
