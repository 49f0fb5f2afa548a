"""The dense LSTM layer, forward and backward: one matrix product for all inputs, one a step for the state, and a few ufuncs on contiguous memory.

Inside, a step's batch is the last dimension: gates are (4H, N), so that each gate is contiguous, and `W h` with few columns is what BLAS does faster than the other
way round (115 us against 240 for H = 256, N = 32). The logistic function is 1/2 + tanh(x / 2) / 2: with the sums of i, f and o halved, one tanh serves all four gates.
"""

from __future__ import annotations

import numpy as np


def _lstm_layer(input, h0, c0, w_ih, w_hh, b_ih, b_hh, reverse):
    steps, batch, features = input.shape
    hidden, dtype = w_hh.shape[1], input.dtype
    halves = np.full((4 * hidden, 1), 0.5, dtype)
    halves[2 * hidden : 3 * hidden] = 1
    recurrent = w_hh * halves
    sums = np.matmul(w_ih * halves, np.ascontiguousarray(input).reshape(-1, features).T).reshape(4 * hidden, steps, batch)
    bias = None if b_ih is None else (b_ih + b_hh)[:, None] * halves
    gates = np.empty((steps, 4 * hidden, batch), dtype)
    cells, states = np.empty((steps, hidden, batch), dtype), np.empty((steps, hidden, batch), dtype)
    scratch = np.empty((hidden, batch), dtype)
    h, c = np.ascontiguousarray(h0.T), np.ascontiguousarray(c0.T)
    for t in range(steps - 1, -1, -1) if reverse else range(steps):
        a = gates[t]
        np.matmul(recurrent, h, out=a)
        np.add(a, sums[:, t], a)
        if bias is not None:
            np.add(a, bias, a)
        np.tanh(a, a)
        for gate in (a[: 2 * hidden], a[3 * hidden :]):
            np.multiply(gate, 0.5, gate)
            np.add(gate, 0.5, gate)
        new, h = cells[t], states[t]
        np.multiply(a[hidden : 2 * hidden], c, new)
        np.multiply(a[:hidden], a[2 * hidden : 3 * hidden], scratch)
        np.add(new, scratch, new)
        np.tanh(new, scratch)
        np.multiply(a[3 * hidden :], scratch, h)
        c = new
    return np.ascontiguousarray(states.transpose(0, 2, 1)), np.ascontiguousarray(h.T), np.ascontiguousarray(c.T), gates, cells


def _step_back(a, c, before, dh, dc, d, scratch, hidden):
    """The gradients of one step's sums into `d` (4H, N), from those of h and c; `dc` becomes that of the cell before."""
    i, f, g, o = a[:hidden], a[hidden : 2 * hidden], a[2 * hidden : 3 * hidden], a[3 * hidden :]
    squashed, scratch = scratch
    np.tanh(c, squashed)
    np.multiply(dh, squashed, d[3 * hidden :])
    # dc += dh o (1 - tanh(c)^2)
    np.multiply(squashed, squashed, squashed)
    np.subtract(1, squashed, squashed)
    np.multiply(dh, o, scratch)
    np.multiply(scratch, squashed, scratch)
    np.add(dc, scratch, dc)
    np.multiply(dc, g, d[:hidden])
    np.multiply(dc, before, d[hidden : 2 * hidden])
    np.multiply(dc, i, d[2 * hidden : 3 * hidden])
    np.multiply(dc, f, dc)


def _slopes(a, slope, hidden):
    """The derivatives of the gates from their values: s (1 - s) for i, f and o, 1 - g^2 for g."""
    np.multiply(a, a, slope)
    np.subtract(a[: 2 * hidden], slope[: 2 * hidden], slope[: 2 * hidden])
    np.subtract(a[3 * hidden :], slope[3 * hidden :], slope[3 * hidden :])
    np.subtract(1, slope[2 * hidden : 3 * hidden], slope[2 * hidden : 3 * hidden])


def _lstm_layer_backward(grad_output, grad_h, grad_c, input, h0, c0, w_ih, w_hh, b_ih, b_hh, output, gates, cells, reverse, needs):
    steps, batch, features = input.shape
    hidden, dtype = w_hh.shape[1], input.dtype
    places = list(range(steps - 1, -1, -1) if reverse else range(steps))
    sums = np.empty((4 * hidden, steps, batch), dtype)
    dh = np.zeros((hidden, batch), dtype) if grad_h is None else np.array(grad_h.T, dtype, order="C")
    dc = np.zeros((hidden, batch), dtype) if grad_c is None else np.array(grad_c.T, dtype, order="C")
    scratch = np.empty((hidden, batch), dtype), np.empty((hidden, batch), dtype)
    d, slope = np.empty((4 * hidden, batch), dtype), np.empty((4 * hidden, batch), dtype)
    first, back = np.ascontiguousarray(c0.T), np.ascontiguousarray(w_hh.T)
    for place in range(steps - 1, -1, -1):
        t = places[place]
        if grad_output is not None:
            np.add(dh, grad_output[t].T, dh)
        _step_back(gates[t], cells[t], cells[places[place - 1]] if place else first, dh, dc, d, scratch, hidden)
        _slopes(gates[t], slope, hidden)
        np.multiply(d, slope, d)
        np.matmul(back, d, out=dh)
        sums[:, t] = d
    flat = sums.reshape(4 * hidden, steps * batch)
    return (
        np.matmul(flat.T, w_ih).reshape(steps, batch, features) if needs[0] else None,
        np.ascontiguousarray(dh.T),
        np.ascontiguousarray(dc.T),
        np.matmul(flat, np.ascontiguousarray(input).reshape(-1, features)) if needs[3] else None,
        _state_weight_gradient(flat, sums, output, h0, reverse) if needs[4] else None,
        *([flat.sum(1)] * 2 if b_ih is not None else (None, None)),
    )


def _state_weight_gradient(flat, sums, output, h0, reverse):
    steps, batch, hidden = output.shape
    if reverse:
        begin, rest, before = sums[:, -1], flat[:, :-batch], output[1:]
    else:
        begin, rest, before = sums[:, 0], flat[:, batch:], output[:-1]
    result = np.matmul(begin, h0)
    if steps > 1:
        result += np.matmul(rest, before.reshape(-1, hidden))
    return result
