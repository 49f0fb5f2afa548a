"""Dense LSTM and GRU layers with two launches per step: the state's product and the pointwise cell.

A processor computes all steps of a small layer in one launch.
"""

from __future__ import annotations

from torchlite_backends.kernel_sources.rnn import cell_step_source, layer_steps_source

from ..array_ops.pointwise import KERNELS
from ..array_ops.reduce import sum as reduced_sum
from ..core.array import Array, empty, make_view
from ..core.contiguous_copy import as_contiguous, clone_row_major
from ..core.device_asserts import check_takes
from ..linalg.matmul import flatten_rows, scaled_matmul_add, transpose_matrices

# State elements for which another work-item pays.
_MIN_ELEMENTS_PER_ITEM = 2048
# Weights and rows up to which a processor computes all steps in one launch: a launch takes as long as so many weights.
_FEW_WEIGHTS, _FEW_ROWS = 1 << 17, 8


def _view_step(x: Array, t: int) -> Array:
    """View step t of a contiguous (steps, batch, features)."""
    return make_view(x, x.shape[1:], x.steps[1:], x.offset + t * x.steps[0])


def _view_steps(x: Array, first: int, last: int) -> Array:
    return make_view(x, (last - first, *x.shape[1:]), x.steps, x.offset + first * x.steps[0])


def _launch_cell_step(name: str, arrays: tuple[Array, ...], batch: int, hidden: int, given: int = 0) -> None:
    """Launch the pointwise part of a step."""
    check_takes(arrays[0], "f", f"_{name}_layer_cpu")
    device, kind = arrays[0].device, arrays[0].kind
    if not batch * hidden:
        return
    width = 1 if not device.is_cpu else 8 if kind == "f64" else 16
    function = device.function(
        cell_step_source(name, width), "cell_step", "p" * len(arrays) + "iii", (width,) if width > 1 else (), T=kind
    )
    if device.is_cpu:
        function(
            (max(1, min(device.units * 4, batch * hidden // _MIN_ELEMENTS_PER_ITEM)),),
            (1,),
            *arrays,
            batch,
            hidden,
            given,
        )
    else:
        function((-(-batch * hidden // device.group) * device.group,), (device.group,), *arrays, batch, hidden, given)


def _launch_layer(name: str, arrays: tuple[Array, ...], shape: tuple, weights: int, reverse: bool, given: int) -> bool:
    """Launch all steps of a small layer of (steps, batch, hidden) on a processor. Return False for other layers."""
    device, kind = arrays[0].device, arrays[0].kind
    if not device.is_cpu or weights > _FEW_WEIGHTS or shape[1] > _FEW_ROWS:
        return False
    check_takes(arrays[0], "f", f"_{name}_layer_cpu")
    width = 8 if kind == "f64" else 16
    function = device.function(
        layer_steps_source(name, width), "layer_steps", "p" * len(arrays) + "iiiii", (width,), T=kind
    )
    function((max(1, min(device.units, shape[1])),), (1,), *arrays, *shape, int(reverse), given)
    return True


def _iter_steps(steps: int, reverse: bool) -> list[int]:
    return list(range(steps - 1, -1, -1)) if reverse else list(range(steps))


def _add_optional(x: Array | None, y: Array | None) -> Array | None:
    return None if x is None else KERNELS["add"](x, y)


def _compute_weight_grad(sums: Array, input: Array) -> Array:
    """Return sums^T @ input over all steps and the batch."""
    return scaled_matmul_add(transpose_matrices(flatten_rows(sums)), flatten_rows(input))


def _compute_recurrent_grad(sums: Array, output: Array, h0: Array, reverse: bool) -> Array:
    """Return sums^T @ (the previous state): h0 for the first step, the output before for others."""
    last = sums.shape[0] - 1
    grad = scaled_matmul_add(transpose_matrices(_view_step(sums, last if reverse else 0)), h0)
    if last:
        of, before = (
            (_view_steps(sums, 0, last), _view_steps(output, 1, last + 1))
            if reverse
            else (_view_steps(sums, 1, last + 1), _view_steps(output, 0, last))
        )
        grad = scaled_matmul_add(transpose_matrices(flatten_rows(of)), flatten_rows(before), grad)
    return grad


def _sum_rows(x: Array) -> Array:
    return reduced_sum(x, tuple(range(x.ndim - 1)))


def _as_contiguous_grad(x: Array | None) -> tuple[Array | None, int]:
    return (None, 0) if x is None else (as_contiguous(x), 1)


# --- LSTM -----------------------------------------------------------------------------------------


def _lstm_layer(input, h0, c0, w_ih, w_hh, b_ih, b_hh, reverse):
    (steps, batch, _), hidden, device, kind = input.shape, w_hh.shape[1], input.device, input.kind
    gates = scaled_matmul_add(input, transpose_matrices(w_ih), _add_optional(b_ih, b_hh))
    output, cells = empty(device, (steps, batch, hidden), kind), empty(device, (steps, batch, hidden), kind)
    recurrent = as_contiguous(transpose_matrices(w_hh))
    h, c = as_contiguous(h0), as_contiguous(c0)
    shape, last = (steps, batch, hidden), 0 if reverse else steps - 1
    if output.size and _launch_layer("lstm", (gates, h, c, recurrent, cells, output), shape, w_hh.size, reverse, 0):
        return output, *(clone_row_major(_view_step(x, last)) for x in (output, cells)), gates, cells
    for t in _iter_steps(steps, reverse):
        now, c_before = _view_step(gates, t), c
        scaled_matmul_add(h, recurrent, now, out=now)
        h, c = _view_step(output, t), _view_step(cells, t)
        _launch_cell_step("lstm", (now, c_before, c, h), batch, hidden)
    return output, clone_row_major(h), clone_row_major(c), gates, cells


def _lstm_layer_backward(
    grad_output, grad_h, grad_c, input, h0, c0, w_ih, w_hh, b_ih, b_hh, output, gates, cells, reverse, needs
):
    steps, batch, hidden = output.shape
    device, kind = input.device, input.kind
    grad_output, has_output = _as_contiguous_grad(grad_output)
    h0, c0, w_hh = as_contiguous(h0), as_contiguous(c0), as_contiguous(w_hh)
    dh, dc = empty(device, h0.shape, kind), empty(device, c0.shape, kind)
    given = 2 * has_output
    if grad_h is not None:
        dh, given = clone_row_major(grad_h), given | 1
    if grad_c is not None:
        dc, given = clone_row_major(grad_c), given | 4
    sums = empty(device, gates.shape, kind)
    order = _iter_steps(steps, reverse)
    for place in range(steps - 1, -1, -1):
        t = order[place]
        c_before = _view_step(cells, order[place - 1]) if place else c0
        now = _view_step(sums, t)
        _launch_cell_step(
            "lstm_backward",
            (
                _view_step(gates, t),
                _view_step(cells, t),
                c_before,
                dh,
                dh if grad_output is None else _view_step(grad_output, t),
                dc,
                now,
            ),
            batch,
            hidden,
            given,
        )
        scaled_matmul_add(now, w_hh, out=dh)
        given = 2 * has_output | 5
    db = None if b_ih is None else _sum_rows(sums)
    return (
        scaled_matmul_add(sums, w_ih) if needs[0] else None,
        dh,
        dc,
        _compute_weight_grad(sums, input),
        _compute_recurrent_grad(sums, output, h0, reverse),
        db,
        db,
    )


# --- GRU ------------------------------------------------------------------------------------------


def _gru_layer(input, h0, w_ih, w_hh, b_ih, b_hh, reverse):
    (steps, batch, _), hidden, device, kind = input.shape, w_hh.shape[1], input.device, input.kind
    sums = scaled_matmul_add(input, transpose_matrices(w_ih), b_ih)
    output, kept, state = (
        empty(device, shape, kind)
        for shape in ((steps, batch, hidden), (steps, batch, 4 * hidden), (batch, 3 * hidden))
    )
    recurrent = as_contiguous(transpose_matrices(w_hh))
    h = as_contiguous(h0)
    bias, last = recurrent if b_hh is None else as_contiguous(b_hh), 0 if reverse else steps - 1
    arrays = (sums, h, recurrent, bias, state, kept, output)
    if output.size and _launch_layer(
        "gru", arrays, (steps, batch, hidden), w_hh.size, reverse, int(b_hh is not None)
    ):  # fmt: skip
        return output, clone_row_major(_view_step(output, last)), kept
    for t in _iter_steps(steps, reverse):
        scaled_matmul_add(h, recurrent, b_hh, out=state)
        before, h = h, _view_step(output, t)
        _launch_cell_step("gru", (_view_step(sums, t), state, before, _view_step(kept, t), h), batch, hidden)
    return output, clone_row_major(h), kept


def _gru_layer_backward(grad_output, grad_h, input, h0, w_ih, w_hh, b_ih, b_hh, output, gates, reverse, needs):
    steps, batch, hidden = output.shape
    device, kind = input.device, input.kind
    grad_output, has_output = _as_contiguous_grad(grad_output)
    h0, w_hh = as_contiguous(h0), as_contiguous(w_hh)
    dh, given = (empty(device, h0.shape, kind), 0) if grad_h is None else (clone_row_major(grad_h), 1)
    of_input, of_state = (empty(device, (steps, batch, 3 * hidden), kind) for _ in range(2))
    order = _iter_steps(steps, reverse)
    for place in range(steps - 1, -1, -1):
        t = order[place]
        before = _view_step(output, order[place - 1]) if place else h0
        now = _view_step(of_state, t)
        _launch_cell_step(
            "gru_backward",
            (
                _view_step(gates, t),
                before,
                dh,
                dh if grad_output is None else _view_step(grad_output, t),
                _view_step(of_input, t),
                now,
            ),
            batch,
            hidden,
            given | 2 * has_output,
        )
        scaled_matmul_add(now, w_hh, dh, out=dh)
        given = 1
    return (
        scaled_matmul_add(of_input, w_ih) if needs[0] else None,
        dh,
        _compute_weight_grad(of_input, input),
        _compute_recurrent_grad(of_state, output, h0, reverse),
        None if b_ih is None else _sum_rows(of_input),
        None if b_hh is None else _sum_rows(of_state),
    )
