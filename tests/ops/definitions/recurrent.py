"""Recurrent layers and cells."""

from tests.ops.op_db import A, S, row
from torchlite._dispatch import REGISTRY, function_for

T, N, I, H = 4, 3, 2, 3


def weights(gates, layers=1, directions=1, bias=True, projection=0):
    """The parameters of all layers and directions, in PyTorch's order."""
    state = projection or H
    found = []
    for layer in range(layers):
        for _ in range(directions):
            size = I if layer == 0 else state * directions
            found += [A((gates * H, size), -0.6, 0.6), A((gates * H, state), -0.6, 0.6)]
            found += [A((gates * H,), -0.6, 0.6)] * 2 if bias else []
            found += [A((projection, H), -0.6, 0.6)] if projection else []
    return found


def states(count, size=H):
    return A((count, N, size), -1, 1)


DATA = A((T, N, I))
# The second form of the arguments: the first one is that of packed sequences.
FORM = "input hx params has_biases num_layers dropout train bidirectional batch_first"
row(
    "lstm",
    S(DATA, (states(1), states(1)), weights(4), True, 1, 0.0, False, False, False),
    S(DATA, (states(4), states(4)), weights(4, 2, 2, bias=False), False, 2, 0.0, False, True, False),
    S(A((N, T, I)), (A((1, N, 2)), states(1)), weights(4, projection=2), True, 1, 0.0, False, False, True),
    covers=("_lstm_layer", "_lstm_layer_backward"),
    form=FORM,
    meta=False,
)
row(
    "gru",
    S(DATA, states(1), weights(3), True, 1, 0.0, False, False, False),
    S(A((N, T, I)), states(4), weights(3, 2, 2, bias=False), False, 2, 0.0, False, True, True),
    covers=("_gru_layer", "_gru_layer_backward"),
    form=FORM,
    meta=False,
)
row("rnn_tanh", S(DATA, states(2), weights(1, 2), True, 2, 0.0, False, False, False), form=FORM, meta=False)
row("rnn_relu", S(DATA, states(2), weights(1, 1, 2), True, 1, 0.0, False, True, False), form=FORM, meta=False)

CELL = A((N, I)), A((N, H))
row(
    "lstm_cell",
    S(A((N, I)), (A((N, H)), A((N, H))), *weights(4)),
    S(A((N, I)), (A((N, H)), A((N, H))), *weights(4, bias=False)),
)
row("gru_cell", S(*CELL, *weights(3)), S(*CELL, *weights(3, bias=False)))
row("rnn_tanh_cell", S(*CELL, *weights(1)))
row("rnn_relu_cell", S(*CELL, *weights(1)))


def _steps_of_layer(
    torch, sums, weight, h, c, bias, peepholes, lengths, scale, zero, cell, reverse, activations, clip, option
):  # fmt: skip
    """The usual functions, without clips and options of an LSTM."""
    outputs, states = [], []
    for d, backward in enumerate(reverse):
        gates = sums.shape[2] // len(reverse)
        along, matrix, state = sums[:, :, d * gates : (d + 1) * gates], weight[d], h[d]
        memory = None if c is None else c[d]
        found = [None] * len(along)
        for t in reversed(range(len(along))) if backward else range(len(along)):
            seen = state
            if scale is not None:
                if lengths is not None:
                    seen = torch.where((lengths >= t)[:, None], seen, 0.0)
                high, low = seen.max().clamp(min=0), seen.min().clamp(max=0)
                step = (high - low) / 255
                level = (-low / step).round()
                levels = ((seen / step).round() + level).clamp(0, 255) - level
                product = (levels.double() @ (matrix.double() - zero[d].double())).float() * (step * scale[d])
            else:
                product = seen @ matrix
            parts = along[t].chunk(gates // h.shape[2], -1)
            products = product.chunk(len(parts), -1)
            new_memory = memory
            if cell == "lstm":
                i, o, f, g = (a + b for a, b in zip(parts, products, strict=True))
                if peepholes is not None:
                    p = peepholes[d].chunk(3)
                    i, f = i + p[0] * memory, f + p[2] * memory
                new_memory = f.sigmoid() * memory + i.sigmoid() * g.tanh()
                new = (o if peepholes is None else o + p[1] * new_memory).sigmoid() * new_memory.tanh()
            elif cell == "gru":
                extra = bias[d].chunk(3)
                z, r = ((parts[k] + products[k] + extra[k]).sigmoid() for k in (0, 1))
                if option:
                    n = (parts[2] + r * (products[2] + extra[2])).tanh()
                else:
                    n = (parts[2] + (r * state) @ matrix[:, 2 * h.shape[2] :] + extra[2]).tanh()
                new = (1 - z) * n + z * state
            else:
                new = (parts[0] + products[0]).tanh()
            found[t] = new
            if lengths is not None:
                here = (lengths > t)[:, None]
                found[t], new = torch.where(here, new, 0.0), torch.where(here, new, state)
                new_memory = None if memory is None else torch.where(here, new_memory, memory)
            state, memory = new, new_memory
        outputs.append(torch.stack(found))
        states.append(torch.stack([state] if c is None else [state, memory]))
    return torch.stack(outputs, 1), torch.stack(states, 1)


def _layer(cell, ways, steps=4, batch=3, hidden=5, *, lengths=None, peepholes=False, levels=None, option=False,
           backward=(False, True)):  # fmt: skip
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[cell]
    functions = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}[cell]
    size = gates * hidden

    def numbers(*shape, most=0.8):
        return A(shape, -most, most, "float32")

    if levels is None:
        weight, scale, zero = numbers(ways, hidden, size), None, None
    else:
        least, most = (0, 255) if levels == "uint8" else (-128, 127)
        weight = A((ways, hidden, size), least, most, levels)
        scale, zero = A((ways, size), 1e-3, 1e-2, "float32"), A((ways, size), least, most, levels)
    return S(
        numbers(steps, batch, ways * size), weight, numbers(ways, batch, hidden),
        numbers(ways, batch, hidden) if cell == "lstm" else None, numbers(ways, size) if cell == "gru" else None,
        numbers(ways, 3 * hidden) if peepholes else None, lengths, scale, zero, cell, backward[:ways],
        tuple((name, None, None) for name in functions * ways), None, option,
    )  # fmt: skip


row(
    "_recurrent_steps",
    _layer("rnn", 2),
    _layer("gru", 1, backward=(True,)),
    _layer("gru", 2, option=True, batch=1, lengths=A((1,), 2, 2, "int32")),
    _layer("lstm", 2, lengths=A((3,), 1, 4, "int64")),
    _layer("lstm", 1, batch=40, hidden=17, peepholes=True),
    _layer("lstm", 2, batch=1, levels="int8"),
    _layer("lstm", 1, levels="uint8", peepholes=True, lengths=A((3,), 1, 4, "int32"), hidden=33),
    call=lambda *given: tuple(function_for(REGISTRY["_recurrent_steps"])(*given)),
    oracle=_steps_of_layer,
    grad=False,
)
