"""Recurrent layers and cells."""

from tests.ops.op_db import A, S, row

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
