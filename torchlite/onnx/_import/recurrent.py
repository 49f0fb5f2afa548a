"""ONNX RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite._dispatch import F
from torchlite._ops.fused_inference import can_fuse_dtypes, is_inference_unobserved
from torchlite._ops.recurrent_steps import ACTIVATIONS, steps_of_layer

from .op_registry import op
from .resource_limits import check_matmul, check_steps

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


def choose_activations(names: Any, alphas: Any, betas: Any, usual: list[str], ways: tuple) -> tuple:
    """Return the name and both parameters of each function: those of all directions, one after the other."""
    a, b, found = list(alphas or []), list(betas or []), []
    for name in names or usual * len(ways):
        key = name.lower()
        if key not in ACTIVATIONS:
            raise ValueError(f"there is no activation {name!r}")
        _, alpha, beta = ACTIVATIONS[key]
        if alpha is not None:
            alpha = a.pop(0) if a else alpha
        if beta is not None:
            beta = b.pop(0) if b else beta
        found.append((key, alpha, beta))
    if len(found) != len(usual) * len(ways):
        raise ValueError(f"{len(found)} activations for {len(ways)} directions of {len(usual)} each")
    return tuple(found)


def check_direction(direction: str) -> tuple[bool, ...]:
    """Return for each direction whether it runs backwards."""
    found = _DIRECTIONS.get(direction)
    if found is None:
        raise ValueError(f"there is no direction {direction!r}")
    return found


def make_initial_state(given: Tensor | None, layout: int, like: Tensor, count: int, hidden: int) -> Tensor:
    """Return a first state (directions, batch, hidden): zeros if none is given."""
    if given is None:
        return like.new_zeros(count, like.shape[1], hidden)
    given = given.transpose(0, 1) if layout else given
    if tuple(given.shape) != (count, like.shape[1], hidden):
        raise ValueError(f"a state of {list(given.shape)} for {count} directions and a batch of {like.shape[1]}")
    return given


def split_biases(b: Tensor | None, ways: tuple, gates: int, hidden: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return the biases of the inputs and of the states, (directions, gates * hidden) each."""
    size = gates * hidden
    if b is None:
        zero = like.new_zeros(len(ways), size)
        return zero, zero
    if b.shape[-1] != 2 * size:
        raise ValueError(f"a recurrent layer has biases of {b.shape[-1]} numbers, and {2 * size} belong to it")
    return b[:, :size], b[:, size:]


def run_steps(
    cell: str, sums: Tensor, weight: Tensor, state: tuple, ways: tuple, activations: tuple, *,
    bias: Tensor | None = None, peepholes: Tensor | None = None, lengths: Tensor | None = None,
    scale: Tensor | None = None, zero: Tensor | None = None, clip: float | None = None, option: int = 0,
    layout: int = 0, outputs: int = 1,
) -> Any:  # fmt: skip
    """Run the steps of a layer (the op `_recurrent_steps`). Return all outputs and the last states in ONNX's form."""
    steps, batch = sums.shape[:2]
    check_steps("a recurrent layer", 16 * steps)
    if lengths is not None and lengths.numel() != batch:
        raise ValueError(f"a recurrent layer has {lengths.numel()} lengths for a batch of {batch}")
    h, c = (*state, None)[:2]
    lengths = None if lengths is None else lengths.reshape(-1)
    given = (
        sums, weight, h, c, bias, peepholes, lengths, scale, zero, cell, ways, activations,
        None if clip is None else float(clip), bool(option),
    )  # fmt: skip
    floats = [x.dtype for x in (sums, scale if scale is not None else weight, h, c, bias, peepholes) if x is not None]
    function = F._recurrent_steps if is_inference_unobserved() and can_fuse_dtypes(floats) else _run_composite
    y, last = function(*given)
    parts = list(last)
    if layout:
        y, parts = y.permute(2, 0, 1, 3), [part.transpose(0, 1) for part in parts]
    return (y, *parts)[:outputs] if outputs > 1 else y


def _run_composite(*given: Any) -> tuple:
    return steps_of_layer(F, *given)


def _project(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    """Return what the inputs add to the gates of all directions: (steps, batch, directions * gates)."""
    return torch.matmul(x, w.reshape(-1, w.shape[-1]).t()) + bias.reshape(-1)


@op("RNN")
def rnn(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
    initial_h: Tensor | None = None, *, activation_alpha: Any = None, activation_beta: Any = None,
    activations: Any = None, clip: float | None = None, direction: str = "forward", hidden_size: int | None = None,
    layout: int = 0, output_sequence: int = 0, outputs: int = 1,
) -> Any:  # fmt: skip
    ways = check_direction(direction)
    x = x.transpose(0, 1) if layout else x
    hidden = r.shape[-1]
    check_matmul(x, w[0].t())
    functions = choose_activations(activations, activation_alpha, activation_beta, ["Tanh"], ways)
    start = make_initial_state(initial_h, layout, x, len(ways), hidden)
    of_input, of_state = split_biases(b, ways, 1, hidden, w)
    return run_steps(
        "rnn", _project(x, w, of_input + of_state), r.transpose(1, 2), (start,), ways, functions, lengths=lengths,
        clip=clip, layout=layout, outputs=outputs,
    )  # fmt: skip


@op("GRU")
def gru(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
    initial_h: Tensor | None = None, *, activation_alpha: Any = None, activation_beta: Any = None,
    activations: Any = None, clip: float | None = None, direction: str = "forward", hidden_size: int | None = None,
    layout: int = 0, linear_before_reset: int = 0, output_sequence: int = 0, outputs: int = 1,
) -> Any:  # fmt: skip
    ways = check_direction(direction)
    x = x.transpose(0, 1) if layout else x
    hidden = r.shape[-1]
    check_matmul(x, w[0].t())
    start = make_initial_state(initial_h, layout, x, len(ways), hidden)
    if linear_before_reset and lengths is None and clip is None and direction != "reverse" and _has_default_activations(
        activations, ["sigmoid", "tanh"], ways
    ):  # fmt: skip
        return _run_torch_layer(torch.gru, (1, 0, 2), x, w, r, b, start, ways, layout, outputs)
    functions = choose_activations(activations, activation_alpha, activation_beta, ["Sigmoid", "Tanh"], ways)
    of_input, of_state = split_biases(b, ways, 3, hidden, w)
    return run_steps(
        "gru", _project(x, w, of_input), r.transpose(1, 2), (start,), ways, functions, bias=of_state, lengths=lengths,
        clip=clip, option=linear_before_reset, layout=layout, outputs=outputs,
    )  # fmt: skip


@op("LSTM")
def lstm(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
    initial_h: Tensor | None = None, initial_c: Tensor | None = None, p: Tensor | None = None, *,
    activation_alpha: Any = None, activation_beta: Any = None, activations: Any = None, clip: float | None = None,
    direction: str = "forward", hidden_size: int | None = None, input_forget: int = 0, layout: int = 0,
    output_sequence: int = 0, outputs: int = 1,
) -> Any:  # fmt: skip
    ways = check_direction(direction)
    x = x.transpose(0, 1) if layout else x
    hidden = r.shape[-1]
    check_matmul(x, w[0].t())
    start = (
        make_initial_state(initial_h, layout, x, len(ways), hidden),
        make_initial_state(initial_c, layout, x, len(ways), hidden),
    )
    is_plain = p is None and lengths is None and clip is None and not input_forget and direction != "reverse"
    if is_plain and _has_default_activations(activations, ["sigmoid", "tanh", "tanh"], ways):
        return _run_torch_layer(torch.lstm, (0, 2, 3, 1), x, w, r, b, start, ways, layout, outputs)
    functions = choose_activations(activations, activation_alpha, activation_beta, ["Sigmoid", "Tanh", "Tanh"], ways)
    of_input, of_state = split_biases(b, ways, 4, hidden, w)
    return run_steps(
        "lstm", _project(x, w, of_input + of_state), r.transpose(1, 2), start, ways, functions, peepholes=p,
        lengths=lengths, clip=clip, option=input_forget, layout=layout, outputs=outputs,
    )  # fmt: skip


def _has_default_activations(activations: Any, usual: list[str], ways: tuple) -> bool:
    return not activations or [name.lower() for name in activations] == usual * len(ways)


def _run_torch_layer(
    function: Callable, order: tuple, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, start: Any, ways: tuple,
    layout: int, outputs: int,
) -> Any:  # fmt: skip
    """Run torch's layer, whose gates have another order."""
    gates, hidden = len(order), r.shape[-1]
    check_steps("a recurrent layer", 4 * x.shape[0])

    def reorder_gates(part: Tensor) -> Tensor:
        blocks = part.reshape(gates, hidden, *part.shape[1:])
        return torch.cat([blocks[i] for i in order])

    params = []
    for d in range(len(ways)):
        params += [reorder_gates(w[d]), reorder_gates(r[d])]
        if b is not None:
            params += [reorder_gates(b[d, : gates * hidden]), reorder_gates(b[d, gates * hidden :])]
    out, *last = function(x, start, params, b is not None, 1, 0.0, False, len(ways) == 2, False)
    y = out.reshape(*out.shape[:2], len(ways), hidden).permute(0, 2, 1, 3)
    if layout:
        y, last = y.permute(2, 0, 1, 3), [part.transpose(0, 1) for part in last]
    return (y, *last)[:outputs] if outputs > 1 else y
