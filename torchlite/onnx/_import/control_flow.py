"""ONNX ops If, Loop, Scan and SequenceMap: bodies are modules whose last inputs are outer references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import Tensor

from .loop_ahead import find_split, run_ahead
from .loop_calls import StepCalls, run_as_one_call
from .op_registry import single_number, to_common_device, truth
from .resource_limits import check_elements, check_objects, check_steps, count_elements
from .sequences import check_sequence_element

_NUMBERED = 64  # steps whose numbers are made at once


def if_(condition: Any, then_branch: Any, else_branch: Any, then_reads: tuple, else_reads: tuple) -> Any:
    """Run one of two bodies."""
    return then_branch(*then_reads) if truth("If", condition) else else_branch(*else_reads)


def loop(body: Any, count: Any, condition: Any, carried: tuple, reads: tuple, scanned: int) -> tuple:
    """Run a body until its condition is False or the count is reached; stack scan outputs."""
    fixed = _find_fixed_values(body, len(carried))
    found = iter(run_as_one_call("_loop", _run_loop, body, count, condition, carried, reads, scanned, fixed))
    return (*(value if k in fixed else next(found) for k, value in enumerate(carried)), *found)


def _find_fixed_values(body: Any, count: int) -> tuple[int, ...]:
    """Return the positions of carried values that a body passes on: weights, in files of some converters."""
    inputs = [node for node in body.graph.nodes if node.op == "placeholder"][2:]
    results = next(node for node in body.graph.nodes if node.op == "output").args[0]
    results = results[1:] if isinstance(results, (tuple, list)) else ()
    return tuple([k for k, (given, made) in enumerate(zip(inputs[:count], results, strict=False)) if given is made])


def _run_loop(
    body: Any, count: Any, condition: Any, carried: tuple, reads: tuple, scanned: int, fixed: tuple[int, ...]
) -> tuple:
    """Return the last carried values but for the fixed ones, and the scan outputs."""
    most = None if count is None else int(single_number(count))
    going = True if condition is None else truth("Loop", condition)
    split = find_split(body, carried, fixed) if going and hasattr(body, "find_array_replay") else None
    if split is not None:
        changed, outputs = run_ahead(split, _make_step, most, carried, reads, scanned)
        return (*changed, *(_stack_outputs(values, 0) for values in outputs))
    devices = {value.device for value in (*carried, *reads) if isinstance(value, Tensor)}
    device = devices.pop() if len(devices) == 1 else None
    state, step, true = list(carried), 0, torch.tensor(True, device=device)
    found: list[list] = [[] for _ in range(scanned)]
    numbers: list[Tensor] = []
    run_step = StepCalls(body, reads)
    while going and (most is None or step < most):
        check_steps("Loop", 1)
        if not numbers:
            numbers = list(torch.arange(step, step + _NUMBERED, dtype=torch.int64, device=device).unbind())[::-1]
        results = run_step(numbers.pop(), true, *state)
        going = truth("Loop", results[0])
        state = list(results[1 : 1 + len(state)])
        for kept, value in zip(found, results[1 + len(state) :], strict=True):
            kept.append(value)
        step += 1
    changed = [value for k, value in enumerate(state) if k not in fixed]
    return (*changed, *(_stack_outputs(values, 0) for values in found))


def _make_step(body: Any, reads: tuple) -> Callable:
    """Return the function of a step that counts it."""
    run_step = StepCalls(body, reads)

    def run(*varying: Any) -> tuple:
        check_steps("Loop", 1)
        return run_step(*varying)

    return run


def _stack_outputs(values: list, axis: int) -> Tensor:
    check_elements("the values of a loop's steps", count_elements(values))
    return torch.stack(list(to_common_device(*values)), axis) if values else torch.zeros(0)


def scan(
    body: Any, state: tuple, inputs: tuple, reads: tuple, input_axes: list[int], input_directions: list[int],
    output_axes: list[int], output_directions: list[int],
) -> tuple:  # fmt: skip
    """Run a body over slices of its inputs."""
    return run_as_one_call(
        "_scan", _run_scan, body, state, inputs, reads, input_axes, input_directions, output_axes, output_directions
    )


def _run_scan(
    body: Any, state: tuple, inputs: tuple, reads: tuple, input_axes: list[int], input_directions: list[int],
    output_axes: list[int], output_directions: list[int],
) -> tuple:  # fmt: skip
    length = inputs[0].shape[input_axes[0]]
    now = list(state)
    found: list[list] = [[] for _ in output_axes]
    run_step = StepCalls(body, reads)
    for step in range(length):
        check_steps("Scan", 1)
        slices = [
            x.select(axis, length - 1 - step if backward else step)
            for x, axis, backward in zip(inputs, input_axes, input_directions, strict=True)
        ]
        results = run_step(*now, *slices)
        now = list(results[: len(now)])
        for kept, value in zip(found, results[len(now) :], strict=True):
            kept.append(value)
    outputs = (
        _stack_outputs(values[::-1] if backward else values, axis)
        for values, axis, backward in zip(found, output_axes, output_directions, strict=True)
    )
    return (*now, *outputs)


def scan_opset8(
    body: Any, lengths: Any, state: tuple, inputs: tuple, reads: tuple, directions: list[int], outputs: int
) -> tuple:
    """Scan of opset 8: over dimension 1, for each batch element separately."""
    batch = (inputs or state)[0].shape[0]
    counts = [inputs[0].shape[1]] * batch if lengths is None else lengths.tolist()
    rows = []
    check_objects("Scan", batch * (len(state) + outputs))
    for i in range(batch):
        check_steps("Scan", 8)
        parts = tuple(x[i].narrow(0, 0, counts[i]) for x in inputs)
        row = scan(body, tuple(x[i] for x in state), parts, reads, [0] * len(parts), directions, [0] * outputs,
                   [0] * outputs)  # fmt: skip
        longest = inputs[0].shape[1]
        rows.append([*row[: len(state)], *(_pad_length(x, longest) for x in row[len(state) :])])
    return tuple(torch.stack(list(column)) for column in zip(*rows, strict=True))


def _pad_length(x: Tensor, length: int) -> Tensor:
    if x.shape[0] == length:
        return x
    return torch.cat([x, torch.zeros(length - x.shape[0], *x.shape[1:], dtype=x.dtype, device=x.device)])


def sequence_map(body: Any, values: tuple, reads: tuple, count: int) -> tuple:
    """Run a body over the elements of sequences."""
    found: list[list] = [[] for _ in range(count)]
    for i in range(len(values[0])):
        check_steps("SequenceMap", 1)
        results = body(*(value[i] if isinstance(value, list) else value for value in values), *reads)
        for kept, value in zip(found, results if isinstance(results, tuple) else (results,), strict=True):
            kept.append(check_sequence_element("SequenceMap", value))
    return tuple(found)


def gradient(body: Any, values: tuple, reads: tuple) -> tuple:
    """Return the gradients of a body's result with respect to its first inputs."""
    with torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in values]
        out = body(*leaves, *reads)
        return torch.autograd.grad(out, leaves, torch.ones_like(out), allow_unused=True)
