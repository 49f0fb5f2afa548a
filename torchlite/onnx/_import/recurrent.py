"""ONNX RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import functional as F

from .op_registry import ints, op
from .resource_limits import check_matmul, check_steps

# By name: a function of two parameters, and their defaults.
_ACTIVATIONS: dict[str, tuple[Callable, float, float]] = {
    "relu": (lambda x, a, b: torch.relu(x), 0, 0),
    "tanh": (lambda x, a, b: torch.tanh(x), 0, 0),
    "sigmoid": (lambda x, a, b: torch.sigmoid(x), 0, 0),
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "leakyrelu": (lambda x, a, b: F.leaky_relu(x, a), 0.01, 0),
    "thresholdedrelu": (lambda x, a, b: torch.where(x >= a, x, torch.zeros_like(x)), 1.0, 0),
    "scaledtanh": (lambda x, a, b: a * torch.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": (lambda x, a, b: torch.clamp(a * x + b, 0, 1), 0.2, 0.5),
    "elu": (lambda x, a, b: F.elu(x, a), 1.0, 0),
    "softsign": (lambda x, a, b: F.softsign(x), 0, 0),
    "softplus": (lambda x, a, b: F.softplus(x), 0, 0),
}
_NO_ALPHA, _NO_BETA = {"relu", "tanh", "sigmoid", "softsign", "softplus"}, {"leakyrelu", "thresholdedrelu", "elu"}


def _activation_functions(names: list[str], alphas: Any, betas: Any) -> list[Callable]:
    a, b, found = list(alphas or []), list(betas or []), []
    for name in names:
        key = name.lower()
        if key not in _ACTIVATIONS:
            raise ValueError(f"there is no activation {name!r}")
        function, alpha, beta = _ACTIVATIONS[key]
        if key not in _NO_ALPHA:
            alpha = a.pop(0) if a else alpha
            if key not in _NO_BETA:
                beta = b.pop(0) if b else beta
        found.append(lambda x, f=function, alpha=alpha, beta=beta: f(x, alpha, beta))
    return found


def _run_cell(step: Callable, x: Tensor, lengths: Any, state: tuple, backward: bool) -> tuple[Tensor, tuple]:
    """Run a cell over time, for rows of different lengths."""
    count = x.shape[0]
    check_steps("a recurrent layer", 16 * count)
    rows = None if lengths is None else torch.tensor(ints(lengths) or [], device=x.device).reshape(-1, 1)
    if rows is not None and rows.numel() != x.shape[1]:
        raise ValueError(f"a recurrent layer has {rows.numel()} lengths for a batch of {x.shape[1]}")
    outputs: list = [None] * count
    for t in reversed(range(count)) if backward else range(count):
        new = step(x[t], state)
        if rows is None:
            state, outputs[t] = new, new[0]
        else:
            here = rows > t
            state = tuple(torch.where(here, a, b) for a, b in zip(new, state, strict=True))
            outputs[t] = torch.where(here, new[0], torch.zeros_like(new[0]))
    return torch.stack(outputs) if outputs else x.new_zeros(0, x.shape[1], state[0].shape[-1]), state


def _clip_gates(value: Tensor, clip: float | None) -> Tensor:
    return value if clip is None else torch.clamp(value, -clip, clip)


def _check_direction(direction: str) -> list[bool]:
    found = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(direction)
    if found is None:
        raise ValueError(f"there is no direction {direction!r}")
    return found


def _pack_results(found: list, layout: int, outputs: int) -> Any:
    """Return both directions' results in the op's form: all steps and the last state."""
    y = torch.stack([out for out, _ in found], 1)
    last = [torch.stack(parts) for parts in zip(*(state for _, state in found), strict=True)]
    if layout:
        y, last = y.permute(2, 0, 1, 3), [part.transpose(0, 1) for part in last]
    return (y, *last)[:outputs] if outputs > 1 else y


def _make_initial_state(given: Tensor | None, layout: int, like: Tensor, count: int, hidden: int) -> Tensor:
    if given is None:
        return like.new_zeros(count, like.shape[1], hidden)
    given = given.transpose(0, 1) if layout else given
    if tuple(given.shape) != (count, like.shape[1], hidden):
        raise ValueError(f"a state of {list(given.shape)} for {count} directions and a batch of {like.shape[1]}")
    return given


def _split_biases(b: Tensor | None, d: int, gates: int, hidden: int, w: Tensor) -> tuple[Tensor, Tensor]:
    size = gates * hidden
    if b is None:
        zero = w.new_zeros(size)
        return zero, zero
    if b.shape[-1] != 2 * size:
        raise ValueError(f"a recurrent layer has biases of {b.shape[-1]} numbers, and {2 * size} belong to it")
    return b[d, :size], b[d, size:]


@op("RNN")
def rnn(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
    initial_h: Tensor | None = None, *, activation_alpha: Any = None, activation_beta: Any = None,
    activations: Any = None, clip: float | None = None, direction: str = "forward", hidden_size: int | None = None,
    layout: int = 0, output_sequence: int = 0, outputs: int = 1,
) -> Any:  # fmt: skip
    ways = _check_direction(direction)
    x = x.transpose(0, 1) if layout else x
    hidden = r.shape[-1]
    check_matmul(x, w[0].t())
    functions = _activation_functions(activations or ["Tanh"] * len(ways), activation_alpha, activation_beta)
    start = _make_initial_state(initial_h, layout, x, len(ways), hidden)
    found = []
    for d, backward in enumerate(ways):
        wb, rb = _split_biases(b, d, 1, hidden, w)
        along = torch.matmul(x, w[d].t()) + (wb + rb)

        def step(part: Tensor, state: tuple, d: int = d) -> tuple:
            return (functions[d](_clip_gates(part + torch.matmul(state[0], r[d].t()), clip)),)

        found.append(_run_cell(step, along, lengths, (start[d],), backward))
    return _pack_results(found, layout, outputs)


@op("GRU")
def gru(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
    initial_h: Tensor | None = None, *, activation_alpha: Any = None, activation_beta: Any = None,
    activations: Any = None, clip: float | None = None, direction: str = "forward", hidden_size: int | None = None,
    layout: int = 0, linear_before_reset: int = 0, output_sequence: int = 0, outputs: int = 1,
) -> Any:  # fmt: skip
    ways = _check_direction(direction)
    x = x.transpose(0, 1) if layout else x
    hidden = r.shape[-1]
    check_matmul(x, w[0].t())
    start = _make_initial_state(initial_h, layout, x, len(ways), hidden)
    if linear_before_reset and lengths is None and clip is None and direction != "reverse" and _has_default_activations(
        activations, ["sigmoid", "tanh"], ways
    ):  # fmt: skip
        return _run_torch_layer(torch.gru, (1, 0, 2), x, w, r, b, start, ways, layout, outputs)
    functions = _activation_functions(activations or ["Sigmoid", "Tanh"] * len(ways), activation_alpha, activation_beta)
    found = []
    for d, backward in enumerate(ways):
        wb, rb = _split_biases(b, d, 3, hidden, w)
        f, g = functions[2 * d : 2 * d + 2]
        along = torch.matmul(x, w[d].t()) + wb
        gates, last = r[d, : 2 * hidden].t(), r[d, 2 * hidden :].t()

        def step(part: Tensor, state: tuple, f: Any = f, g: Any = g, rb: Any = rb, gates: Any = gates,
                 last: Any = last) -> tuple:  # fmt: skip
            h = state[0]
            both = f(_clip_gates(part[:, : 2 * hidden] + torch.matmul(h, gates) + rb[: 2 * hidden], clip))
            z, reset = both[:, :hidden], both[:, hidden:]
            if linear_before_reset:
                new = reset * (torch.matmul(h, last) + rb[2 * hidden :])
            else:
                new = torch.matmul(reset * h, last) + rb[2 * hidden :]
            n = g(_clip_gates(part[:, 2 * hidden :] + new, clip))
            return ((1 - z) * n + z * h,)

        found.append(_run_cell(step, along, lengths, (start[d],), backward))
    return _pack_results(found, layout, outputs)


@op("LSTM")
def lstm(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, lengths: Tensor | None = None,
    initial_h: Tensor | None = None, initial_c: Tensor | None = None, p: Tensor | None = None, *,
    activation_alpha: Any = None, activation_beta: Any = None, activations: Any = None, clip: float | None = None,
    direction: str = "forward", hidden_size: int | None = None, input_forget: int = 0, layout: int = 0,
    output_sequence: int = 0, outputs: int = 1,
) -> Any:  # fmt: skip
    ways = _check_direction(direction)
    x = x.transpose(0, 1) if layout else x
    hidden = r.shape[-1]
    check_matmul(x, w[0].t())
    start = (
        _make_initial_state(initial_h, layout, x, len(ways), hidden),
        _make_initial_state(initial_c, layout, x, len(ways), hidden),
    )
    is_plain = p is None and lengths is None and clip is None and not input_forget and direction != "reverse"
    if is_plain and _has_default_activations(activations, ["sigmoid", "tanh", "tanh"], ways):
        return _run_torch_layer(torch.lstm, (0, 2, 3, 1), x, w, r, b, start, ways, layout, outputs)
    functions = _activation_functions(
        activations or ["Sigmoid", "Tanh", "Tanh"] * len(ways), activation_alpha, activation_beta
    )
    found = []
    for d, backward in enumerate(ways):
        wb, rb = _split_biases(b, d, 4, hidden, w)
        f, g, h = functions[3 * d : 3 * d + 3]
        along, across = torch.matmul(x, w[d].t()) + (wb + rb), r[d].t()
        peep = [p[d, i * hidden : (i + 1) * hidden] for i in range(3)] if p is not None else [x.new_zeros(hidden)] * 3

        def step(part: Tensor, state: tuple, f: Any = f, g: Any = g, h: Any = h, across: Any = across,
                 peep: Any = peep) -> tuple:  # fmt: skip
            before, cell = state
            i, o, forget, c = torch.split(part + torch.matmul(before, across), hidden, -1)
            i = f(_clip_gates(i + peep[0] * cell, clip))
            forget = 1 - i if input_forget else f(_clip_gates(forget + peep[2] * cell, clip))
            cell = forget * cell + i * g(_clip_gates(c, clip))
            o = f(_clip_gates(o + peep[1] * cell, clip))
            return o * h(cell), cell

        found.append(_run_cell(step, along, lengths, (start[0][d], start[1][d]), backward))
    return _pack_results(found, layout, outputs)


def _has_default_activations(activations: Any, usual: list[str], ways: list) -> bool:
    return not activations or [name.lower() for name in activations] == usual * len(ways)


def _run_torch_layer(
    function: Callable, order: tuple, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, start: Any, ways: list,
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
