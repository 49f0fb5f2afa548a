"""The dense LSTM layer, forward and backward: one matrix product for all inputs, one a step for the state, and a few
ufuncs on contiguous memory.

Inside, a step's batch is the last dimension: gates are (4H, N), so that each gate is contiguous, and `W h` with few
columns is what BLAS does faster than the other way round (184 us against 460 for H = 256, N = 32). The logistic
function is 1/2 + tanh(x / 2) / 2: with the sums of i, f and o halved, one tanh serves all four gates. The gates are
kept in the order i, f, o, g, so that what becomes logistic lies together.

BLAS uses one thread meanwhile: its threads wait for each other at every step, by spinning, and on a busy machine that
costs ten times the product. Batches are split over our own threads instead, each of which runs through all steps. A
step's calls are few, since threads wait for each other's Python between them: biases come with the product of the
inputs, and backward everything that no step waits for is computed for many steps at once.
"""

from __future__ import annotations

import itertools

import numpy as np

from .blas import single_threaded
from .blocks import share
from .products import steady_dot, steady_matmul
from .rows import ones

# Columns of a part of the batch: most of a product's time goes into reading W where they are fewer. Half as many where
# there would be one part only. Of smaller matrices than the last one the products are not worth a second thread.
COLUMNS, _WORTH = 32, 1 << 17
# Steps whose factors are computed together.
_STEPS = 16


def _parts(batch, weights):
    """[(start, stop), ...]: the batch in parts, or in one. Forward and backward must agree on them."""
    count = 1
    if weights >= _WORTH:
        count = batch // COLUMNS if batch >= 2 * COLUMNS else max(1, 2 * batch // COLUMNS)
    bounds = [batch * k // count // 4 * 4 for k in range(count)] + [batch]
    return list(itertools.pairwise(bounds))


def _with_ones(rows):
    """A matrix with one more column, of ones, for a bias."""
    out = np.empty((rows.shape[0], rows.shape[1] + 1), rows.dtype)
    out[:, :-1], out[:, -1] = rows, 1
    return out


def _reordered(weight, hidden):
    """A weight's or bias's rows for our order of the gates, the logistic ones halved."""
    out = np.empty_like(weight, order="C")
    np.multiply(weight[: 2 * hidden], 0.5, out=out[: 2 * hidden])
    np.multiply(weight[3 * hidden :], 0.5, out=out[2 * hidden : 3 * hidden])
    out[3 * hidden :] = weight[2 * hidden : 3 * hidden]
    return out


def _lstm_layer(input, h0, c0, w_ih, w_hh, b_ih, b_hh, reverse):
    steps, batch, features = input.shape
    hidden, dtype = w_hh.shape[1], input.dtype
    rows = input.reshape(-1, features)
    if b_ih is not None:
        rows, w_ih = _with_ones(rows), np.concatenate([w_ih, (b_ih + b_hh)[:, None]], 1)
    recurrent = _reordered(w_hh, hidden)
    output = np.empty((steps, batch, hidden), dtype)
    h, c = np.empty((batch, hidden), dtype), np.empty((batch, hidden), dtype)
    # The gates of each part lie together, and so do the cells with their tanh: only the backward pass reads them.
    gates, cells = np.empty(steps * batch * 4 * hidden, dtype), np.empty(steps * batch * 2 * hidden, dtype)
    with single_threaded:
        sums = steady_matmul(_reordered(w_ih, hidden), rows.T).reshape(4 * hidden, steps, batch)

        def run(start, stop):
            states = np.empty((steps, hidden, stop - start), dtype)
            last = _steps(
                sums[:, :, start:stop],
                h0[start:stop].T,
                c0[start:stop].T,
                recurrent,
                _part(gates, steps, 4 * hidden, start, stop),
                _part(cells, steps, 2 * hidden, start, stop),
                states,
                reverse,
            )
            output[:, start:stop] = states.transpose(0, 2, 1)
            h[start:stop], c[start:stop] = last[0].T, last[1].T

        share(run, _parts(batch, w_hh.size))
    return output, h, c, gates, cells


def _part(flat, steps, rows, start, stop):
    return flat[steps * rows * start : steps * rows * stop].reshape(steps, rows, stop - start)


def _steps(sums, h, c, recurrent, gates, cells, states, reverse):
    """All steps for some columns of the batch; fills gates, cells and states, and returns the last h and c."""
    steps, hidden, _ = states.shape
    half, product = np.array(0.5, states.dtype), np.empty(gates.shape[1:], states.dtype)
    h, c = np.ascontiguousarray(h), np.ascontiguousarray(c)
    # For all steps at once: those of one step lie so far apart that few of them fit in a cache.
    np.copyto(gates, sums.transpose(1, 0, 2))
    logistic, tanh = gates[:, : 3 * hidden], gates[:, 3 * hidden :]
    i, f, o = (gates[:, k * hidden : (k + 1) * hidden] for k in range(3))
    cell, squashed = cells[:, :hidden], cells[:, hidden:]
    for t in range(steps - 1, -1, -1) if reverse else range(steps):
        a, s, new = gates[t], logistic[t], cell[t]
        np.matmul(recurrent, h, out=product)
        np.add(a, product, out=a)
        np.tanh(a, out=a)
        np.multiply(s, half, out=s)
        np.add(s, half, out=s)
        h = states[t]
        np.multiply(f[t], c, out=new)
        np.multiply(i[t], tanh[t], out=h)
        np.add(new, h, out=new)
        np.tanh(new, out=squashed[t])
        np.multiply(o[t], squashed[t], out=h)
        c = new
    return h, c


def _factors(gates, cells, first, reverse):
    """(T, 5H, n): what the gradient of the cell is multiplied by for i, f and g, and that of the state for o and for
    the cell.
    """
    steps, rows, columns = gates.shape
    hidden = rows // 4
    out = np.empty((steps, 5 * hidden, columns), gates.dtype)
    of_i, of_f, of_g, of_o, of_c = (out[:, k * hidden : (k + 1) * hidden] for k in range(5))
    slopes = np.empty((min(_STEPS, steps), 3 * hidden, columns), gates.dtype)
    for start in range(0, steps, _STEPS):
        here = slice(start, min(start + _STEPS, steps))
        logistic, g, squashed = gates[here, : 3 * hidden], gates[here, 3 * hidden :], cells[here, hidden:]
        slope = slopes[: here.stop - start]
        np.multiply(logistic, logistic, out=slope)
        np.subtract(logistic, slope, out=slope)
        np.multiply(slope[:, :hidden], g, out=of_i[here])
        _times_before(slope[:, hidden : 2 * hidden], cells[:, :hidden], first, here, reverse, of_f[here])
        np.multiply(slope[:, 2 * hidden :], squashed, out=of_o[here])
        for value, factor, target in (
            (g, logistic[:, :hidden], of_g[here]),
            (squashed, logistic[:, 2 * hidden :], of_c[here]),
        ):
            np.multiply(value, value, out=target)
            np.subtract(1, target, out=target)
            np.multiply(target, factor, out=target)
    return out


def _times_before(slope, cells, first, here, reverse, out):
    """slope * the cell before each step."""
    start, stop = here.start, here.stop
    if reverse:
        inner = min(stop, len(cells) - 1)
        np.multiply(slope[: inner - start], cells[start + 1 : inner + 1], out=out[: inner - start])
        if inner < stop:
            np.multiply(slope[-1], first, out=out[-1])
    else:
        inner = max(start, 1)
        np.multiply(slope[inner - start :], cells[inner - 1 : stop - 1], out=out[inner - start :])
        if start < inner:
            np.multiply(slope[0], first, out=out[0])


def _steps_back(grad_output, dh, dc, first, gates, cells, back, reverse):
    """All steps backwards for some columns: (T, 4H, n), the gradients of the sums. `dh` and `dc` become those of the
    first states.
    """
    steps, rows, columns = gates.shape
    hidden = rows // 4
    factors = _factors(gates, cells, first, reverse)
    of_cell = factors[:, : 3 * hidden].reshape(steps, 3, hidden, columns)
    of_o, of_c, forget = factors[:, 3 * hidden : 4 * hidden], factors[:, 4 * hidden :], gates[:, hidden : 2 * hidden]
    sums, scratch = np.empty_like(gates), np.empty((hidden, columns), dh.dtype)
    by_cell, by_state = sums[:, : 3 * hidden].reshape(steps, 3, hidden, columns), sums[:, 3 * hidden :]
    if grad_output is not None:
        grad_output = np.ascontiguousarray(grad_output.transpose(0, 2, 1))
    for t in range(steps) if reverse else range(steps - 1, -1, -1):
        if grad_output is not None:
            np.add(dh, grad_output[t], out=dh)
        np.multiply(dh, of_c[t], out=scratch)
        np.add(dc, scratch, out=dc)
        np.multiply(dc, of_cell[t], out=by_cell[t])
        np.multiply(dh, of_o[t], out=by_state[t])
        np.multiply(dc, forget[t], out=dc)
        np.matmul(back, sums[t], out=dh)
    return sums


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
        part = _steps_back(
            None if grad_output is None else grad_output[:, start:stop],
            dh,
            dc,
            np.ascontiguousarray(c0[start:stop].T),
            _part(gates, steps, 4 * hidden, start, stop),
            _part(cells, steps, 2 * hidden, start, stop),
            back,
            reverse,
        )
        sums[:, :, start:stop] = part.transpose(1, 0, 2)
        grad_h0[start:stop], grad_c0[start:stop] = dh.T, dc.T

    with single_threaded:
        share(run, _parts(batch, w_hh.size))
        flat = sums.reshape(4 * hidden, steps * batch)
        grad_input = steady_matmul(flat.T, w_ih).reshape(steps, batch, features) if needs[0] else None
        grad_w_ih = steady_matmul(flat, np.ascontiguousarray(input).reshape(-1, features)) if needs[3] else None
        grad_w_hh = steady_matmul(flat, _before(output, h0, reverse)) if needs[4] else None
        grad_bias = None if b_ih is None else steady_dot(flat, ones(flat.shape[1], dtype))
    return grad_input, grad_h0, grad_c0, grad_w_ih, grad_w_hh, *([grad_bias] * 2)


def _before(output, first, reverse):
    """The states before each step, as rows."""
    states = np.empty_like(output)
    if reverse:
        states[:-1], states[-1] = output[1:], first
    else:
        states[1:], states[0] = output[:-1], first
    return states.reshape(-1, output.shape[-1])
