"""Dense GRU layer, forward and backward, in the layout of `lstm`: batch last, one product per step, BLAS on one
thread.
"""

from __future__ import annotations

import numpy as np

from .blas import single_threaded
from .cache_blocking import parallel_for
from .deterministic_gemm import choose_multiplication, deterministic_matmul
from .lstm import _split_batch, _view_batch_part


def _gru_layer(*given):
    return run_layer_forward(_run_forward_steps, *given)


def run_layer_forward(steps_of, input, h0, w_ih, w_hh, b_ih, b_hh, reverse):
    """Run the layer with `steps_of` in place of `_run_forward_steps`."""
    steps, batch, features = input.shape
    hidden, dtype = w_hh.shape[1], input.dtype
    output, last = np.empty((steps, batch, hidden), dtype), np.empty((batch, hidden), dtype)
    kept = np.empty(
        steps * batch * 4 * hidden, dtype
    )  # r, z, n and the state's part of n; each part of the batch is contiguous
    halves = np.ones((3 * hidden, 1), dtype)
    halves[: 2 * hidden] = 0.5  # the logistic function is 1/2 + tanh(x / 2) / 2
    bias_i, bias_h = (None if bias is None else bias[:, None] * halves for bias in (b_ih, b_hh))
    recurrent = w_hh * halves
    with single_threaded:
        sums = deterministic_matmul(w_ih * halves, np.ascontiguousarray(input).reshape(-1, features).T).reshape(
            3 * hidden, steps, batch
        )

        def run(start, stop):
            states = np.empty((steps, hidden, stop - start), dtype)
            h = steps_of(
                sums[:, :, start:stop],
                h0[start:stop].T,
                recurrent,
                bias_i,
                bias_h,
                _view_batch_part(kept, steps, 4 * hidden, start, stop),
                states,
                reverse,
            )
            output[:, start:stop] = states.transpose(0, 2, 1)
            last[start:stop] = h.T

        parallel_for(run, _split_batch(batch, w_hh.size))
    return output, last, kept


def _run_forward_steps(sums, h, recurrent, bias_i, bias_h, kept, states, reverse):
    """Run all steps for some columns of the batch; fill `kept` and `states`, and return the last h."""
    steps, hidden, columns = states.shape
    product = np.empty((3 * hidden, columns), states.dtype)
    h, sums = np.ascontiguousarray(h), np.ascontiguousarray(sums.transpose(1, 0, 2))
    multiply = choose_multiplication(recurrent.size * columns)
    for t in range(steps - 1, -1, -1) if reverse else range(steps):
        a, x = kept[t], sums[t]
        gates, n, s = a[: 2 * hidden], a[2 * hidden : 3 * hidden], a[3 * hidden :]
        multiply(recurrent, h, product)
        if bias_h is not None:
            np.add(product, bias_h, product)
        np.add(product[: 2 * hidden], x[: 2 * hidden], gates)
        if bias_i is not None:
            np.add(gates, bias_i[: 2 * hidden], gates)
        np.tanh(gates, gates)
        np.multiply(gates, 0.5, gates)
        np.add(gates, 0.5, gates)
        np.copyto(s, product[2 * hidden :])
        np.multiply(s, a[:hidden], n)
        np.add(n, x[2 * hidden :], n)
        if bias_i is not None:
            np.add(n, bias_i[2 * hidden :], n)
        np.tanh(n, n)
        new = states[t]
        np.subtract(h, n, new)
        np.multiply(new, a[hidden : 2 * hidden], new)
        h = np.add(new, n, new)
    return h


def _run_backward_steps(grad_output, dh, first, output, kept, back, of_input, of_state, reverse):
    """Run all steps backward for some columns; fill `of_input` (3H, T, n) and `of_state` (H, T, n: n's part).

    `dh` becomes the gradient of the first state.
    """
    steps, rows, columns = kept.shape
    hidden = rows // 4
    slope, scratch = np.empty((2 * hidden, columns), dh.dtype), np.empty((hidden, columns), dh.dtype)
    ds, product = np.empty((3 * hidden, columns), dh.dtype), np.empty((hidden, columns), dh.dtype)
    inputs, states = np.empty((steps, 3 * hidden, columns), dh.dtype), np.empty((steps, hidden, columns), dh.dtype)
    output = np.ascontiguousarray(output.transpose(0, 2, 1))
    if grad_output is not None:
        grad_output = np.ascontiguousarray(grad_output.transpose(0, 2, 1))
    places = list(range(steps - 1, -1, -1) if reverse else range(steps))
    multiply = choose_multiplication(back.size * columns)
    for place in range(steps - 1, -1, -1):
        t = places[place]
        a, d = kept[t], inputs[t]
        r, z, n, s = (a[k * hidden : (k + 1) * hidden] for k in range(4))
        dr, dz, dn = (d[k * hidden : (k + 1) * hidden] for k in range(3))
        if grad_output is not None:
            np.add(dh, grad_output[t], dh)
        # dn = dh (1 - z) (1 - n^2)
        np.multiply(n, n, scratch)
        np.subtract(1, scratch, scratch)
        np.subtract(1, z, dn)
        np.multiply(dn, scratch, dn)
        np.multiply(dn, dh, dn)
        np.subtract(output[places[place - 1]] if place else first, n, dz)
        np.multiply(dz, dh, dz)
        np.multiply(dn, s, dr)
        gates = a[: 2 * hidden]
        np.multiply(gates, gates, slope)
        np.subtract(gates, slope, slope)
        np.multiply(d[: 2 * hidden], slope, d[: 2 * hidden])
        np.copyto(ds[: 2 * hidden], d[: 2 * hidden])
        np.multiply(dn, r, ds[2 * hidden :])
        multiply(back, ds, product)
        np.multiply(dh, z, dh)
        np.add(dh, product, dh)
        states[t] = ds[2 * hidden :]
    of_input[:], of_state[:] = inputs.transpose(1, 0, 2), states.transpose(1, 0, 2)


def _gru_layer_backward(grad_output, grad_h, input, h0, w_ih, w_hh, b_ih, b_hh, output, gates, reverse, needs):
    steps, batch, features = input.shape
    hidden, dtype = w_hh.shape[1], input.dtype
    of_input, of_state = np.empty((3 * hidden, steps, batch), dtype), np.empty((hidden, steps, batch), dtype)
    back, grad_h0 = np.ascontiguousarray(w_hh.T), np.empty((batch, hidden), dtype)

    def run(start, stop):
        dh = (
            np.zeros((hidden, stop - start), dtype)
            if grad_h is None
            else np.array(grad_h[start:stop].T, dtype, order="C")
        )
        _run_backward_steps(
            None if grad_output is None else grad_output[:, start:stop],
            dh,
            h0[start:stop].T,
            output[:, start:stop],
            _view_batch_part(gates, steps, 4 * hidden, start, stop),
            back,
            of_input[:, :, start:stop],
            of_state[:, :, start:stop],
            reverse,
        )
        grad_h0[start:stop] = dh.T

    with single_threaded:
        parallel_for(run, _split_batch(batch, w_hh.size))
        flat, flat_n = of_input.reshape(3 * hidden, -1), of_state.reshape(hidden, -1)
        grad_input = deterministic_matmul(flat.T, w_ih).reshape(steps, batch, features) if needs[0] else None
        grad_w_ih = deterministic_matmul(flat, np.ascontiguousarray(input).reshape(-1, features))
        before = np.concatenate([output[1:], h0[None]] if reverse else [h0[None], output[:-1]]).reshape(-1, hidden)
        grad_w_hh = np.concatenate(
            [deterministic_matmul(flat[: 2 * hidden], before), deterministic_matmul(flat_n, before)]
        )
    if b_ih is None:
        return grad_input, grad_h0, grad_w_ih, grad_w_hh, None, None
    grad_b, grad_n = _sum_of_rows(flat), _sum_of_rows(flat_n)
    return grad_input, grad_h0, grad_w_ih, grad_w_hh, grad_b, np.concatenate([grad_b[: 2 * hidden], grad_n])


def _sum_of_rows(rows):
    """Sums of rows, in half precision rounded once."""
    return rows.sum(1, np.float32 if rows.dtype.itemsize == 2 else rows.dtype).astype(rows.dtype, copy=False)
