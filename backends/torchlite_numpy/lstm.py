"""The dense LSTM layer, forward and backward: one matrix product for all inputs, one a step for the state, and a few
ufuncs on contiguous memory.

Inside, a step's batch is the last dimension: gates are (4H, N), so that each gate is contiguous, and `W h` with few
columns is what BLAS does faster than the other way round (115 us against 240 for H = 256, N = 32). The logistic
function is 1/2 + tanh(x / 2) / 2: with the sums of i, f and o halved, one tanh serves all four gates.

BLAS uses one thread meanwhile: its threads wait for each other at every step, by spinning, and on a busy machine that
costs ten times the product. Large batches are split over our own threads instead, each of which runs through all steps;
fewer than 32 columns do not pay, for most of a product's time goes into reading W.
"""

from __future__ import annotations

import numpy as np

from .blas import single_threaded
from .blocks import share
from .products import steady_matmul

COLUMNS = 32


def _parts(batch):
    """[(start, stop), ...]: the batch in parts of at least `COLUMNS`, or in one. Forward and backward must agree on
    them.
    """
    count = max(1, batch // COLUMNS)
    return [(batch * k // count, batch * (k + 1) // count) for k in range(count)]


def _lstm_layer(input, h0, c0, w_ih, w_hh, b_ih, b_hh, reverse):
    steps, batch, features = input.shape
    hidden, dtype = w_hh.shape[1], input.dtype
    halves = np.full((4 * hidden, 1), 0.5, dtype)
    halves[2 * hidden : 3 * hidden] = 1
    recurrent = w_hh * halves
    bias = None if b_ih is None else (b_ih + b_hh)[:, None] * halves
    output = np.empty((steps, batch, hidden), dtype)
    h, c = np.empty((batch, hidden), dtype), np.empty((batch, hidden), dtype)
    # The gates and cells of each part lie together: only the backward pass reads them.
    gates, cells = np.empty(steps * batch * 4 * hidden, dtype), np.empty(steps * batch * hidden, dtype)
    with single_threaded:
        sums = steady_matmul(w_ih * halves, np.ascontiguousarray(input).reshape(-1, features).T).reshape(
            4 * hidden, steps, batch
        )

        def run(start, stop):
            states = np.empty((steps, hidden, stop - start), dtype)
            last = _steps(
                sums[:, :, start:stop],
                h0[start:stop].T,
                c0[start:stop].T,
                recurrent,
                bias,
                _part(gates, steps, 4 * hidden, start, stop),
                _part(cells, steps, hidden, start, stop),
                states,
                reverse,
            )
            output[:, start:stop] = states.transpose(0, 2, 1)
            h[start:stop], c[start:stop] = last[0].T, last[1].T

        share(run, _parts(batch))
    return output, h, c, gates, cells


def _part(flat, steps, rows, start, stop):
    return flat[steps * rows * start : steps * rows * stop].reshape(steps, rows, stop - start)


def _steps(sums, h, c, recurrent, bias, gates, cells, states, reverse):
    """All steps for some columns of the batch; fills gates, cells and states, and returns the last h and c."""
    steps, hidden, columns = states.shape
    scratch = np.empty((hidden, columns), states.dtype)
    h, c = np.ascontiguousarray(h), np.ascontiguousarray(c)
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
    return h, c


def _step_back(a, c, before, dh, dc, d, squashed, scratch, hidden):
    """The gradients of one step's gates into `d` (4H, N), from those of h and c; `dc` becomes that
    of the cell before.
    """
    i, f, g, o = a[:hidden], a[hidden : 2 * hidden], a[2 * hidden : 3 * hidden], a[3 * hidden :]
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


def _steps_back(grad_output, dh, dc, first, gates, cells, back, sums, reverse):
    """All steps backwards for some columns; fills `sums` (4H, T, n), the gradients of the sums. `dh` and `dc` become
    those of the first states.
    """
    steps, hidden, columns = cells.shape
    squashed, scratch = np.empty((hidden, columns), dh.dtype), np.empty((hidden, columns), dh.dtype)
    d, slope = np.empty((4 * hidden, columns), dh.dtype), np.empty((4 * hidden, columns), dh.dtype)
    places = list(range(steps - 1, -1, -1) if reverse else range(steps))
    for place in range(steps - 1, -1, -1):
        t = places[place]
        if grad_output is not None:
            np.add(dh, grad_output[t].T, dh)
        _step_back(
            gates[t], cells[t], cells[places[place - 1]] if place else first, dh, dc, d, squashed, scratch, hidden
        )
        _slopes(gates[t], slope, hidden)
        np.multiply(d, slope, d)
        np.matmul(back, d, out=dh)
        sums[:, t] = d


def _lstm_layer_backward(
    grad_output, grad_h, grad_c, input, h0, c0, w_ih, w_hh, b_ih, b_hh, output, gates, cells, reverse, needs
):
    steps, batch, features = input.shape
    hidden, dtype = w_hh.shape[1], input.dtype
    sums = np.empty((4 * hidden, steps, batch), dtype)
    back = np.ascontiguousarray(w_hh.T)
    grad_h0, grad_c0 = np.empty((batch, hidden), dtype), np.empty((batch, hidden), dtype)

    def run(start, stop):
        dh, dc = (
            np.zeros((hidden, stop - start), dtype) if grad is None else np.array(grad[start:stop].T, dtype, order="C")
            for grad in (grad_h, grad_c)
        )
        _steps_back(
            None if grad_output is None else grad_output[:, start:stop],
            dh,
            dc,
            np.ascontiguousarray(c0[start:stop].T),
            _part(gates, steps, 4 * hidden, start, stop),
            _part(cells, steps, hidden, start, stop),
            back,
            sums[:, :, start:stop],
            reverse,
        )
        grad_h0[start:stop], grad_c0[start:stop] = dh.T, dc.T

    with single_threaded:
        share(run, _parts(batch))
        flat = sums.reshape(4 * hidden, steps * batch)
        grad_input = steady_matmul(flat.T, w_ih).reshape(steps, batch, features) if needs[0] else None
        grad_w_ih = steady_matmul(flat, np.ascontiguousarray(input).reshape(-1, features)) if needs[3] else None
        grad_w_hh = _state_weight_gradient(flat, sums, output, h0, reverse) if needs[4] else None
    return (
        grad_input,
        grad_h0,
        grad_c0,
        grad_w_ih,
        grad_w_hh,
        *([flat.sum(1)] * 2 if b_ih is not None else (None, None)),
    )


def _state_weight_gradient(flat, sums, output, h0, reverse):
    steps, batch, hidden = output.shape
    if reverse:
        begin, rest, before = sums[:, -1], flat[:, :-batch], output[1:]
    else:
        begin, rest, before = sums[:, 0], flat[:, batch:], output[:-1]
    result = steady_matmul(begin, h0)
    if steps > 1:
        result += steady_matmul(rest, before.reshape(-1, hidden))
    return result
