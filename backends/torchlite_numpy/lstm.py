"""The dense LSTM layer, forward and backward: one matrix product for all inputs, one a step for the state, and a few ufuncs into reused memory.

The logistic function is 1/2 + tanh(x / 2) / 2: with the sums of i, f and o halved, one tanh serves all four gates.
"""

from __future__ import annotations

import numpy as np


def _scaled_sums(input, w_ih, b_ih, b_hh, halves):
    """(T, N, 4H): W x + b for every step, with the sums of i, f and o halved."""
    steps, batch, features = input.shape
    sums = np.empty((steps, batch, w_ih.shape[0]), input.dtype)
    np.matmul(np.ascontiguousarray(input).reshape(-1, features), (w_ih * halves[:, None]).T, out=sums.reshape(steps * batch, -1))
    if b_ih is not None:
        sums += (b_ih + b_hh) * halves
    return sums


def _lstm_layer(input, h0, c0, w_ih, w_hh, b_ih, b_hh, reverse):
    steps, batch, _ = input.shape
    hidden = w_hh.shape[1]
    dtype = input.dtype
    halves = np.full(4 * hidden, 0.5, dtype)
    halves[2 * hidden : 3 * hidden] = 1
    gates = _scaled_sums(input, w_ih, b_ih, b_hh, halves)
    recurrent = np.ascontiguousarray((w_hh * halves[:, None]).T)
    output = np.empty((steps, batch, hidden), dtype)
    cells = np.empty((steps, batch, hidden), dtype)
    product = np.empty((batch, 4 * hidden), dtype)
    squashed = np.empty((batch, hidden), dtype)
    h, c = h0, c0
    for t in range(steps - 1, -1, -1) if reverse else range(steps):
        g = gates[t]
        np.matmul(h, recurrent, out=product)
        np.add(g, product, g)
        np.tanh(g, g)
        # tanh(x / 2) / 2 + 1 / 2 for i and f, which lie side by side, and for o.
        for gate in (g[:, : 2 * hidden], g[:, 3 * hidden :]):
            np.multiply(gate, 0.5, gate)
            np.add(gate, 0.5, gate)
        new = cells[t]
        np.multiply(g[:, hidden : 2 * hidden], c, new)
        np.multiply(g[:, :hidden], g[:, 2 * hidden : 3 * hidden], squashed)
        np.add(new, squashed, new)
        np.tanh(new, squashed)
        h = np.multiply(g[:, 3 * hidden :], squashed, output[t])
        c = new
    return output, h.copy(), c.copy(), gates, cells


def _lstm_layer_backward(grad_output, grad_h, grad_c, input, h0, c0, w_ih, w_hh, b_ih, b_hh, output, gates, cells, reverse, needs):
    steps, batch, features = input.shape
    hidden = w_hh.shape[1]
    dtype = input.dtype
    order = range(steps - 1, -1, -1) if reverse else range(steps)
    sums = np.empty((steps, batch, 4 * hidden), dtype)
    dh = np.zeros((batch, hidden), dtype) if grad_h is None else np.array(grad_h, dtype)
    dc = np.zeros((batch, hidden), dtype) if grad_c is None else np.array(grad_c, dtype)
    squashed, scratch = np.empty((batch, hidden), dtype), np.empty((batch, hidden), dtype)
    slope = np.empty((batch, 4 * hidden), dtype)
    places = list(order)
    for place in range(steps - 1, -1, -1):
        t = places[place]
        before = c0 if place == 0 else cells[places[place - 1]]
        a, d = gates[t], sums[t]
        i, f, g, o = (a[:, k * hidden : (k + 1) * hidden] for k in range(4))
        di, df, dg, do = (d[:, k * hidden : (k + 1) * hidden] for k in range(4))
        if grad_output is not None:
            np.add(dh, grad_output[t], dh)
        np.tanh(cells[t], squashed)
        np.multiply(dh, squashed, do)
        # dc += dh o (1 - tanh(c)^2)
        np.multiply(squashed, squashed, squashed)
        np.subtract(1, squashed, squashed)
        np.multiply(dh, o, scratch)
        np.multiply(scratch, squashed, scratch)
        np.add(dc, scratch, dc)
        np.multiply(dc, g, di)
        np.multiply(dc, before, df)
        np.multiply(dc, i, dg)
        # Slopes: s (1 - s) for i, f and o, 1 - g^2 for g.
        np.multiply(a, a, slope)
        for gate, s in ((a[:, : 2 * hidden], slope[:, : 2 * hidden]), (o, slope[:, 3 * hidden :])):
            np.subtract(gate, s, s)
        np.subtract(1, slope[:, 2 * hidden : 3 * hidden], slope[:, 2 * hidden : 3 * hidden])
        np.multiply(d, slope, d)
        np.multiply(dc, f, dc)
        np.matmul(d, w_hh, out=dh)
    flat = sums.reshape(steps * batch, 4 * hidden)
    previous = np.empty((steps, batch, hidden), dtype)
    if reverse:
        previous[:-1], previous[-1] = output[1:], h0
    else:
        previous[1:], previous[0] = output[:-1], h0
    # needs: input, h0, c0, w_ih, w_hh, b_ih, b_hh
    db = flat.sum(0) if b_ih is not None and (needs[5] or needs[6]) else None
    return (
        np.matmul(flat, w_ih).reshape(steps, batch, features) if needs[0] else None,
        dh,
        dc,
        np.matmul(flat.T, np.ascontiguousarray(input).reshape(-1, features)) if needs[3] else None,
        np.matmul(flat.T, previous.reshape(-1, hidden)) if needs[4] else None,
        db,
        db,
    )
