"""NumPy functions of recurrent layers, whose source goes into written programs."""

from __future__ import annotations

import numpy as np

from .elementwise_functions import sigmoid


def initial_state(state: np.ndarray | None, x: np.ndarray, weight: np.ndarray, direction: int) -> np.ndarray:
    """Return the first state of a direction of a recurrent layer: zeros if there is none."""
    if state is None:
        return np.zeros((x.shape[1], weight.shape[-1]), x.dtype)
    return state[direction]


def stack_directions(found: list, reverse: list[bool]) -> tuple[np.ndarray, ...]:
    """Return all steps (time, directions, batch, hidden) and the last states (directions, batch, hidden)."""
    steps = [np.stack(out[::-1] if back else out) for (out, *_), back in zip(found, reverse, strict=True)]
    last = [np.stack(states) for states in zip(*(states for _, *states in found), strict=True)]
    return (np.stack(steps, axis=1), *last)


def lstm(
    x: np.ndarray,
    weight: np.ndarray,
    recurrent: np.ndarray,
    bias: np.ndarray | None = None,
    hidden: np.ndarray | None = None,
    cell: np.ndarray | None = None,
    reverse: tuple[bool, ...] = (False,),
    batch_first: bool = False,
) -> tuple[np.ndarray, ...]:
    """Return all steps of an LSTM over x (time, batch, features), the last hidden and the last cell state.

    The gates are input, output, forget, cell. `reverse` has one entry for each direction.
    """
    if batch_first:
        x = x.swapaxes(0, 1)
        hidden, cell = (None if s is None else s.swapaxes(0, 1) for s in (hidden, cell))
    found: list = []
    size = recurrent.shape[-1]
    for d, back in enumerate(reverse):
        gates = x @ weight[d].T
        if bias is not None:
            gates = gates + (bias[d, : 4 * size] + bias[d, 4 * size :])
        h, c = initial_state(hidden, x, recurrent, d), initial_state(cell, x, recurrent, d)
        across, out = recurrent[d].T, []
        for gate in gates[::-1] if back else gates:
            gate = gate + h @ across
            open_gates = sigmoid(gate[:, : 3 * size])
            c = open_gates[:, 2 * size :] * c + open_gates[:, :size] * np.tanh(gate[:, 3 * size :])
            h = open_gates[:, size : 2 * size] * np.tanh(c)
            out.append(h)
        found.append((out, h, c))
    steps, h, c = stack_directions(found, list(reverse))
    if batch_first:
        return steps.transpose(2, 0, 1, 3), h.swapaxes(0, 1), c.swapaxes(0, 1)
    return steps, h, c


def gru(
    x: np.ndarray,
    weight: np.ndarray,
    recurrent: np.ndarray,
    bias: np.ndarray | None = None,
    hidden: np.ndarray | None = None,
    reverse: tuple[bool, ...] = (False,),
    reset_after: bool = False,
    batch_first: bool = False,
) -> tuple[np.ndarray, ...]:
    """Return all steps of a GRU over x (time, batch, features), and the last hidden state.

    The gates are update, reset, new. `reset_after` multiplies by the reset gate after the product with the state.
    """
    if batch_first:
        x, hidden = x.swapaxes(0, 1), None if hidden is None else hidden.swapaxes(0, 1)
    found: list = []
    size = recurrent.shape[-1]
    for d, back in enumerate(reverse):
        outer, inner = (0, np.zeros(3 * size, x.dtype)) if bias is None else (bias[d, : 3 * size], bias[d, 3 * size :])
        gates = x @ weight[d].T + outer
        h = initial_state(hidden, x, recurrent, d)
        across, last, out = recurrent[d, : 2 * size].T, recurrent[d, 2 * size :].T, []
        for gate in gates[::-1] if back else gates:
            both = sigmoid(gate[:, : 2 * size] + h @ across + inner[: 2 * size])
            z, r = both[:, :size], both[:, size:]
            new = r * (h @ last + inner[2 * size :]) if reset_after else (r * h) @ last + inner[2 * size :]
            n = np.tanh(gate[:, 2 * size :] + new)
            h = (1 - z) * n + z * h
            out.append(h)
        found.append((out, h))
    steps, h = stack_directions(found, list(reverse))
    return (steps.transpose(2, 0, 1, 3), h.swapaxes(0, 1)) if batch_first else (steps, h)


def rnn(
    x: np.ndarray,
    weight: np.ndarray,
    recurrent: np.ndarray,
    bias: np.ndarray | None = None,
    hidden: np.ndarray | None = None,
    reverse: tuple[bool, ...] = (False,),
    relu: bool = False,
    batch_first: bool = False,
) -> tuple[np.ndarray, ...]:
    """Return all steps of a plain recurrent layer over x (time, batch, features), and the last hidden state."""
    if batch_first:
        x, hidden = x.swapaxes(0, 1), None if hidden is None else hidden.swapaxes(0, 1)
    found: list = []
    size = recurrent.shape[-1]
    for d, back in enumerate(reverse):
        gates = x @ weight[d].T
        if bias is not None:
            gates = gates + (bias[d, :size] + bias[d, size:])
        h, across, out = initial_state(hidden, x, recurrent, d), recurrent[d].T, []
        for gate in gates[::-1] if back else gates:
            h = np.maximum(gate + h @ across, 0) if relu else np.tanh(gate + h @ across)
            out.append(h)
        found.append((out, h))
    steps, h = stack_directions(found, list(reverse))
    return (steps.transpose(2, 0, 1, 3), h.swapaxes(0, 1)) if batch_first else (steps, h)
