"""Dense LSTM and GRU layers: two launches a step, one for the product of the state and one for all
that is pointwise.
"""

from __future__ import annotations

from torchlite_kernels.rnn import step_text

from ..elements.pointwise import KERNELS
from ..elements.reduce import sum as reduced_sum
from ..linalg.matmul import flattened, product, turned
from ..machinery.array import Array, empty, view_of
from ..machinery.checks import check_takes
from ..machinery.row_major import clone_row_major, contiguous_array

# Elements of a state for which another work-item pays.
_SHARE = 2048


def _at(x: Array, t: int) -> Array:
    """Step t of a row-major (steps, batch, features)."""
    return view_of(x, x.shape[1:], x.steps[1:], x.offset + t * x.steps[0])


def _some(x: Array, first: int, last: int) -> Array:
    return view_of(x, (last - first, *x.shape[1:]), x.steps, x.offset + first * x.steps[0])


def _pointwise(name: str, arrays: tuple[Array, ...], batch: int, hidden: int, given: int = 0) -> None:
    """The pointwise part of a step."""
    check_takes(arrays[0], "f", f"_{name}_layer_cpu")
    device, kind = arrays[0].device, arrays[0].kind
    if not batch * hidden:
        return
    width = 1 if not device.is_cpu else 8 if kind == "f64" else 16
    function = device.function(
        step_text(name, width), "cell_step", "p" * len(arrays) + "iii", (width,) if width > 1 else (), T=kind
    )
    if device.is_cpu:
        function((max(1, min(device.units * 4, batch * hidden // _SHARE)),), (1,), *arrays, batch, hidden, given)
    else:
        function((-(-batch * hidden // device.group) * device.group,), (device.group,), *arrays, batch, hidden, given)


def _order(steps: int, reverse: bool) -> list[int]:
    return list(range(steps - 1, -1, -1)) if reverse else list(range(steps))


def _added(x: Array | None, y: Array | None) -> Array | None:
    return None if x is None else KERNELS["add"](x, y)


def _weight_grads(sums: Array, input: Array) -> Array:
    """sums^T @ input over all steps and the batch."""
    return product(turned(flattened(sums)), flattened(input))


def _recurrent_grad(sums: Array, output: Array, h0: Array, reverse: bool) -> Array:
    """sums^T @ (the state before each step): those of the first step meet h0, the others the output
    of the step before.
    """
    last = sums.shape[0] - 1
    grad = product(turned(_at(sums, last if reverse else 0)), h0)
    if last:
        of, before = (
            (_some(sums, 0, last), _some(output, 1, last + 1))
            if reverse
            else (_some(sums, 1, last + 1), _some(output, 0, last))
        )
        grad = product(turned(flattened(of)), flattened(before), grad)
    return grad


def _row_sums(x: Array) -> Array:
    return reduced_sum(x, tuple(range(x.ndim - 1)))


def _gradient(x: Array | None) -> tuple[Array | None, int]:
    return (None, 0) if x is None else (contiguous_array(x), 1)


# --- LSTM -----------------------------------------------------------------------------------------


def _lstm_layer(input, h0, c0, w_ih, w_hh, b_ih, b_hh, reverse):
    (steps, batch, _), hidden, device, kind = input.shape, w_hh.shape[1], input.device, input.kind
    gates = product(input, turned(w_ih), _added(b_ih, b_hh))
    output, cells = empty(device, (steps, batch, hidden), kind), empty(device, (steps, batch, hidden), kind)
    recurrent = contiguous_array(turned(w_hh))
    h, c = contiguous_array(h0), contiguous_array(c0)
    for t in _order(steps, reverse):
        now, c_before = _at(gates, t), c
        product(h, recurrent, now, out=now)
        h, c = _at(output, t), _at(cells, t)
        _pointwise("lstm", (now, c_before, c, h), batch, hidden)
    return output, clone_row_major(h), clone_row_major(c), gates, cells


def _lstm_layer_backward(
    grad_output, grad_h, grad_c, input, h0, c0, w_ih, w_hh, b_ih, b_hh, output, gates, cells, reverse, needs
):
    steps, batch, hidden = output.shape
    device, kind = input.device, input.kind
    grad_output, has_output = _gradient(grad_output)
    h0, c0, w_hh = contiguous_array(h0), contiguous_array(c0), contiguous_array(w_hh)
    dh, dc = empty(device, h0.shape, kind), empty(device, c0.shape, kind)
    given = 2 * has_output
    if grad_h is not None:
        dh, given = clone_row_major(grad_h), given | 1
    if grad_c is not None:
        dc, given = clone_row_major(grad_c), given | 4
    sums = empty(device, gates.shape, kind)
    order = _order(steps, reverse)
    for place in range(steps - 1, -1, -1):
        t = order[place]
        c_before = _at(cells, order[place - 1]) if place else c0
        now = _at(sums, t)
        _pointwise(
            "lstm_backward",
            (_at(gates, t), _at(cells, t), c_before, dh, dh if grad_output is None else _at(grad_output, t), dc, now),
            batch,
            hidden,
            given,
        )
        product(now, w_hh, out=dh)
        given = 2 * has_output | 5
    db = None if b_ih is None else _row_sums(sums)
    return (
        product(sums, w_ih) if needs[0] else None,
        dh,
        dc,
        _weight_grads(sums, input),
        _recurrent_grad(sums, output, h0, reverse),
        db,
        db,
    )


# --- GRU ------------------------------------------------------------------------------------------


def _gru_layer(input, h0, w_ih, w_hh, b_ih, b_hh, reverse):
    (steps, batch, _), hidden, device, kind = input.shape, w_hh.shape[1], input.device, input.kind
    sums = product(input, turned(w_ih), b_ih)
    output, kept, state = (
        empty(device, shape, kind)
        for shape in ((steps, batch, hidden), (steps, batch, 4 * hidden), (batch, 3 * hidden))
    )
    recurrent = contiguous_array(turned(w_hh))
    h = contiguous_array(h0)
    for t in _order(steps, reverse):
        product(h, recurrent, b_hh, out=state)
        before, h = h, _at(output, t)
        _pointwise("gru", (_at(sums, t), state, before, _at(kept, t), h), batch, hidden)
    return output, clone_row_major(h), kept


def _gru_layer_backward(grad_output, grad_h, input, h0, w_ih, w_hh, b_ih, b_hh, output, gates, reverse, needs):
    steps, batch, hidden = output.shape
    device, kind = input.device, input.kind
    grad_output, has_output = _gradient(grad_output)
    h0, w_hh = contiguous_array(h0), contiguous_array(w_hh)
    dh, given = (empty(device, h0.shape, kind), 0) if grad_h is None else (clone_row_major(grad_h), 1)
    of_input, of_state = (empty(device, (steps, batch, 3 * hidden), kind) for _ in range(2))
    order = _order(steps, reverse)
    for place in range(steps - 1, -1, -1):
        t = order[place]
        before = _at(output, order[place - 1]) if place else h0
        now = _at(of_state, t)
        _pointwise(
            "gru_backward",
            (_at(gates, t), before, dh, dh if grad_output is None else _at(grad_output, t), _at(of_input, t), now),
            batch,
            hidden,
            given | 2 * has_output,
        )
        product(now, w_hh, dh, out=dh)
        given = 1
    return (
        product(of_input, w_ih) if needs[0] else None,
        dh,
        _weight_grads(of_input, input),
        _recurrent_grad(of_state, output, h0, reverse),
        None if b_ih is None else _row_sums(of_input),
        None if b_hh is None else _row_sums(of_state),
    )
