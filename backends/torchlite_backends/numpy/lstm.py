"""Dense LSTM layer, forward and backward: a few matrix products for the inputs, one per step for the state, and ufuncs.

Inside, a step's batch is the last dimension: gates are (4H, N), so that each gate is contiguous, and BLAS computes `W
h` with few columns faster than the transpose (184 us against 460 for H = 256, N = 32). The logistic function is 1/2 +
tanh(x / 2) / 2: with the sums of i, f and o halved, one tanh serves all four gates.

BLAS uses one thread meanwhile: its threads spin for each other at every step, which on a busy machine costs ten times
the product. Batches are split over our own threads instead, each of which runs all steps. A step makes few calls, since
threads wait for each other's GIL between them, and take long to wake. Data that one call treats alike is therefore
adjacent:

- of each forward step o, i, f, g and the previous cell: i and f times g and that cell are one product;
- of each backward step the next gradient of the cell, those of i, f, g and o, and a summand of the cell's: the cell's
  gradient times four factors are one product, the state's times two another.

Work that does not depend on the recurrence is computed for some steps at a time, which stay in cache until they are
used. The reverse direction only reverses views.
"""

from __future__ import annotations

import itertools

import numpy as np

from .blas import single_threaded
from .cache_blocking import parallel_for
from .deterministic_gemm import choose_multiplication, deterministic_matmul

# Columns of a part of the batch: with fewer, most of a product's time is reading W. Half as many if there would be only
# one part. Products of matrices smaller than the last number are not worth a second thread.
COLUMNS, _MIN_SIZE_TO_SPLIT = 32, 1 << 17
# Columns of the input products computed at a time, in steps: of a part, and if there is only one part, whose products
# several threads share.
_BATCHED_COLUMNS, _TOGETHER_ALONE = 128, 512
# Backward steps processed at a time.
_STEPS = 8


def _split_batch(batch, weights):
    """Return [(start, stop), ...]: the batch in parts, or in one. Forward and backward must agree on them."""
    count = 1
    if weights >= _MIN_SIZE_TO_SPLIT:
        count = batch // COLUMNS if batch >= 2 * COLUMNS else max(1, 2 * batch // COLUMNS)
    bounds = [batch * k // count // 4 * 4 for k in range(count)] + [batch]
    return list(itertools.pairwise(bounds))


def _reorder_gates(weight, hidden):
    """Return a weight's or bias's rows in our order of the forward gates, the logistic ones halved."""
    out = np.empty_like(weight, order="C")
    np.multiply(weight[3 * hidden :], 0.5, out=out[:hidden])
    np.multiply(weight[: 2 * hidden], 0.5, out=out[hidden : 3 * hidden])
    out[3 * hidden :] = weight[2 * hidden : 3 * hidden]
    return out


def _reverse_time(arrays, reverse):
    return [a if a is None else a[::-1] for a in arrays] if reverse else arrays


def _lstm_layer(*given):
    return run_layer_forward(_run_forward_steps, *given)


def run_layer_forward(steps_of, input, h0, c0, w_ih, w_hh, b_ih, b_hh, reverse):
    """Run the layer with `steps_of` in place of `_run_forward_steps`."""
    return run_with_weights(steps_of, input, h0, c0, *order_weights(w_ih, w_hh, b_ih, b_hh), reverse)


def order_weights(w_ih, w_hh, b_ih, b_hh):
    """Return the weights of the inputs, with the biases as a last column, and those of the state, in our order."""
    if b_ih is not None:
        w_ih = np.concatenate([w_ih, (b_ih + b_hh)[:, None]], 1)
    hidden = w_hh.shape[1]
    return _reorder_gates(w_ih, hidden), _reorder_gates(w_hh, hidden)


def run_with_weights(steps_of, input, h0, c0, w_ih, recurrent, reverse):
    """Run the layer with weights of `order_weights`."""
    steps, batch, features = input.shape
    hidden, dtype, biased = recurrent.shape[1], input.dtype, w_ih.shape[1] > features
    output = np.empty((steps, batch, hidden), dtype)
    h, c = np.empty((batch, hidden), dtype), np.empty((batch, hidden), dtype)
    # Those of each part are contiguous: only the backward pass reads them.
    gates, cells = np.empty(steps * batch * 5 * hidden, dtype), np.empty(steps * batch * hidden, dtype)
    parts = _split_batch(batch, recurrent.size)

    def run(start, stop):
        columns = stop - start
        x, out = _reverse_time([input[:, start:stop], output[:, start:stop]], reverse)
        rows = np.empty((steps, columns, features + biased), dtype)
        rows[:, :, :features] = x
        rows[:, :, features:] = 1
        states = np.empty((steps, hidden, columns), dtype)
        kept = (
            _view_batch_part(gates, steps, 5 * hidden, start, stop),
            _view_batch_part(cells, steps, hidden, start, stop),
        )
        last = steps_of(
            rows.reshape(steps * columns, features + biased),
            np.ascontiguousarray(h0[start:stop].T),
            c0[start:stop].T,
            w_ih,
            recurrent,
            *kept,
            states,
            max(1, (_BATCHED_COLUMNS if len(parts) > 1 else _TOGETHER_ALONE) // max(columns, 1)),
        )
        out[...] = states.transpose(0, 2, 1)
        h[start:stop], c[start:stop] = last[0].T, last[1].T

    with single_threaded:
        parallel_for(run, parts)
    return output, h, c, gates, cells


def _view_batch_part(flat, steps, rows, start, stop):
    return flat[steps * rows * start : steps * rows * stop].reshape(steps, rows, stop - start)


def _run_forward_steps(rows, h, c, w_ih, recurrent, gates, cells, states, together):
    """Run all steps for some columns of the batch; return the last h and c.

    Fills gates (T, 5H, n), cells and states (T, H, n).
    """
    steps, hidden, columns = states.shape
    dtype = states.dtype
    half, product = np.array(0.5, dtype), np.empty((4 * hidden, columns), dtype)
    pair, last = np.empty((2, hidden, columns), dtype), np.empty((hidden, columns), dtype)
    of_cell, of_gate = pair
    # i and f, and their factors.
    ways, targets = gates[:, hidden : 3 * hidden].reshape(steps, 2, hidden, columns), gates[:, 3 * hidden :]
    targets = targets.reshape(steps, 2, hidden, columns)
    gates[0, 4 * hidden :] = c
    multiply = choose_multiplication(recurrent.size * columns)
    next_cells = [*gates[1:, 4 * hidden :], last]
    for start in range(0, steps, together):
        stop = min(start + together, steps)
        sums = deterministic_matmul(w_ih, rows[start * columns : stop * columns].T).reshape(
            4 * hidden, stop - start, columns
        )
        for t in range(start, stop):
            a, new = gates[t, : 4 * hidden], next_cells[t]
            multiply(recurrent, h, product)
            np.add(sums[:, t - start], product, out=a)
            np.tanh(a, out=a)
            logistic = a[: 3 * hidden]
            np.multiply(logistic, half, out=logistic)
            np.add(logistic, half, out=logistic)
            np.multiply(ways[t], targets[t], out=pair)
            np.add(of_cell, of_gate, out=new)
            squashed, h = cells[t], states[t]
            np.tanh(new, out=squashed)
            np.multiply(a[:hidden], squashed, out=h)
    return h, last


def _compute_gate_derivatives(gates, squashed, out):
    """Write (T, 6H, n) to `out`: factors of the cell's gradient for the previous cell and for i, f and g.

    And those of the state's gradient for o and for the cell.
    """
    hidden = squashed.shape[1]
    of_ways, of_g, of_o, of_cell = (
        out[:, start * hidden : stop * hidden] for start, stop in ((1, 3), (3, 4), (4, 5), (5, 6))
    )
    logistic, g = gates[:, : 3 * hidden], gates[:, 3 * hidden : 4 * hidden]
    slope = np.multiply(logistic, logistic)
    np.subtract(logistic, slope, out=slope)
    np.multiply(slope[:, hidden:], gates[:, 3 * hidden :], out=of_ways)
    np.multiply(slope[:, :hidden], squashed, out=of_o)
    np.copyto(out[:, :hidden], logistic[:, 2 * hidden :])
    for value, factor, target in (
        (g, logistic[:, hidden : 2 * hidden], of_g),
        (squashed, logistic[:, :hidden], of_cell),
    ):
        np.multiply(value, value, out=target)
        np.subtract(1, target, out=target)
        np.multiply(target, factor, out=target)


def _run_backward_steps(grad_output, dh, dc, gates, cells, back, sums):
    """Run all steps backward for some columns; return the gradients of the first states.

    Fills (4H, T, n), the gradients of the sums.
    """
    steps, hidden, columns = cells.shape
    work, factors = (np.empty((min(_STEPS, steps), 6 * hidden, columns), dh.dtype) for _ in range(2))
    of_dc, of_dh = (
        a.reshape(len(a), k, hidden, columns) for k, a in ((4, factors[:, : 4 * hidden]), (2, factors[:, 4 * hidden :]))
    )
    by_dc, by_dh = (
        a.reshape(len(a), k, hidden, columns) for k, a in ((4, work[:, : 4 * hidden]), (2, work[:, 4 * hidden :]))
    )
    gradients, summands = work[:, hidden : 5 * hidden], work[:, 5 * hidden :]
    total = np.empty_like(dc)
    multiply = choose_multiplication(back.size * columns)
    for stop in range(steps, 0, -_STEPS):
        start = max(stop - _STEPS, 0)
        _compute_gate_derivatives(gates[start:stop], cells[start:stop], factors[: stop - start])
        grads = None if grad_output is None else np.ascontiguousarray(grad_output[start:stop].transpose(0, 2, 1))
        for j in range(stop - start - 1, -1, -1):
            if grads is not None:
                np.add(dh, grads[j], out=dh)
            np.multiply(dh, of_dh[j], out=by_dh[j])
            np.add(dc, summands[j], out=total)
            np.multiply(total, of_dc[j], out=by_dc[j])
            dc = by_dc[j, 0]
            multiply(back, gradients[j], dh)
        dc = dc.copy()  # the next steps overwrite this memory
        sums[:, start:stop] = gradients[: stop - start].transpose(1, 0, 2)
    return dh, dc


def _lstm_layer_backward(*given):
    return run_layer_backward(_run_backward_steps, *given)


def run_layer_backward(
    steps_back, grad_output, grad_h, grad_c, input, h0, c0, w_ih, w_hh, b_ih, b_hh, output, gates, cells, reverse, needs
):
    """Return the layer's gradients with `steps_back` in place of `_run_backward_steps`."""
    steps, batch, features = input.shape
    hidden, dtype = w_hh.shape[1], input.dtype
    # Factors of the sums' gradients for those of the weights and the bias: one product for all. Those of each part of
    # the batch are contiguous.
    width, before = features * needs[3], features * needs[3] + hidden * needs[4]
    rows = np.empty((steps * batch, before + (b_ih is not None)), dtype)
    sums = _allocate_padded_matrix(4 * hidden, steps * batch, dtype)
    back = np.ascontiguousarray(w_hh.T)
    grad_h0, grad_c0 = np.empty((batch, hidden), dtype), np.empty((batch, hidden), dtype)
    grad_input = np.empty((steps, batch, features), dtype) if needs[0] else None

    def run(start, stop):
        x, states, grads, grad_x = _reverse_time(
            [None if a is None else a[:, start:stop] for a in (input, output, grad_output, grad_input)], reverse
        )
        here, columns = slice(steps * start, steps * stop), stop - start
        mine, by_step = sums[:, here], rows[here].reshape(steps, columns, rows.shape[1])
        if needs[3]:
            by_step[:, :, :width] = x
        if needs[4]:
            by_step[0, :, width:before], by_step[1:, :, width:before] = h0[start:stop], states[:-1]
        by_step[:, :, before:] = 1
        dh, dc = (
            np.zeros((hidden, columns), dtype) if grad is None else np.array(grad[start:stop].T, dtype, order="C")
            for grad in (grad_h, grad_c)
        )
        kept = (
            _view_batch_part(gates, steps, 5 * hidden, start, stop),
            _view_batch_part(cells, steps, hidden, start, stop),
        )
        dh, dc = steps_back(grads, dh, dc, *kept, back, mine.reshape(4 * hidden, steps, columns))
        grad_h0[start:stop], grad_c0[start:stop] = dh.T, dc.T
        if grad_x is not None:
            grad_x[...] = deterministic_matmul(mine.T, w_ih).reshape(steps, columns, features)

    with single_threaded:
        parallel_for(run, _split_batch(batch, w_hh.size))
        by_weights = deterministic_matmul(sums, rows)
    grad_w_ih = np.ascontiguousarray(by_weights[:, :width]) if needs[3] else None
    grad_w_hh = np.ascontiguousarray(by_weights[:, width:before]) if needs[4] else None
    grad_bias = None if b_ih is None else np.ascontiguousarray(by_weights[:, before])
    return grad_input, grad_h0, grad_c0, grad_w_ih, grad_w_hh, *([grad_bias] * 2)


def _allocate_padded_matrix(rows, columns, dtype):
    """Return a matrix whose rows are padded by a cache line.

    Row distances of many KiB tend to be powers of two, which map to the same cache sets.
    """
    return np.empty((rows, columns + 64 // np.dtype(dtype).itemsize), dtype)[:, :columns]
