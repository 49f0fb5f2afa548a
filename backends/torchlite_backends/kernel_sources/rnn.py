"""Pointwise part of LSTM and GRU steps, forward and backward. Matrix products are separate launches."""

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
