"""Optimizer steps in place on the device: one launch for many parameters."""

from __future__ import annotations

import functools
import math
import struct
from typing import Any

from torchlite._types.optimizer_formulas import ADAGRAD, ADAM, RMSPROP, SGD, Formula
from torchlite_backends.kernel_sources.optim import (
    NUMBERS,
    SCALER,
    list_numbers_options,
    numbers_source,
    step_source,
    unscale_source,
)

from ..core.array import Array, empty
from ..core.broadcasting import find_dense_order
from ..core.contiguous_copy import as_contiguous, clone_row_major
from ..core.copy_fill import copy_into
from ..core.device import pack_offset

_PARAMS_PER_LAUNCH = (1, 8, 16, 64)  # parameters in one launch: a program each
_text = functools.cache(step_source)
_numbers_text = functools.cache(numbers_source)
_unscale_text = functools.cache(unscale_source)
_GRADS_PER_LAUNCH = (1, 8, 32, 96)  # gradients that are unscaled in one launch
_EACH = 40  # maximum bytes of a kernel's arguments per array


def _max_params_per_launch(device, widths: tuple[int, ...]) -> int:
    """Return the maximum number of parameters per launch."""
    return max(n for n in widths if n * _EACH <= device.parameter_bytes)


def _choose_work_sizes(device, kind: str) -> tuple[int, int, tuple[int, ...]]:
    """Return elements per work-item and per work-group, and the group size."""
    return (8 if kind == "f64" else 16, 8192, (64,)) if device.is_cpu else (1, 2048, (256,))


class _ParamBatch:
    """Parameters of one launch: their kernel, and the layout that does not change between steps."""

    __slots__ = ("count", "function", "global_size", "group", "pack_grads", "head", "tail", "pack_numbers")

    def __init__(
        self,
        formula: Formula,
        params: list[Array],
        state_at: int,
        states: dict[str, Array],
        kept: bool,
        given: tuple[str, ...],
    ):
        device, kind = params[0].device, params[0].kind
        self.count = len(params)
        width = next(n for n in _PARAMS_PER_LAUNCH if n >= self.count)
        lanes, tile, self.group = _choose_work_sizes(device, kind)
        rest = [0] * (width - self.count)
        sizes = [p.size for p in params] + rest
        first, at, starts = [0], state_at, []
        for n in sizes:
            first.append(first[-1] + -(-n // tile))
            starts.append(at)
            at += n
        self.head = struct.pack(f"{4 * width + 1}i", *first, *sizes, *starts, *[p.offset for p in params], *rest)
        self.pack_grads = struct.Struct(f"{width}i").pack
        self.tail = struct.pack("3i", *[s.offset for s in states.values()], *[0] * (3 - len(states)))
        self.pack_numbers = struct.Struct(str(NUMBERS) + ("d" if kind == "f64" else "f")).pack
        text = _text(formula, width, tuple(states), lanes, tile, kept, given)
        self.function = device.function(text, "update_all", "", (lanes,) if lanes > 1 else (), T=kind)
        self.global_size = (first[-1] * self.group[0],)

    def step(
        self,
        params: list[Array],
        grads: list[Array],
        states: dict[str, Array],
        numbers: list[float] | Array,
        scaler: dict[str, Array],
    ) -> None:
        given, grads = grads, [as_contiguous(g) for g in grads]
        padding = len(self.head) // 16 - self.count
        layout = self.head + self.pack_grads(*[g.offset for g in grads], *[0] * padding) + self.tail
        pairs = zip(params + params[:1] * padding, grads + grads[:1] * padding, strict=True)
        buffers = [x.buffer for pair in pairs for x in pair] + [s.buffer for s in states.values()]
        if scaler:
            buffers += [x.buffer for x in scaler.values()]
            layout += b"".join([pack_offset(x.offset) for x in scaler.values()])
        if isinstance(numbers, Array):
            self.function.start(self.global_size, self.group, [*buffers, numbers.buffer], [layout])
        else:
            self.function.start(self.global_size, self.group, buffers, [layout, self.pack_numbers(*numbers)])
        if "grad_scale" in scaler:
            for grad, unscaled in zip(given, grads, strict=True):
                if grad is not unscaled:
                    copy_into(grad, unscaled)


def _run_step(
    formula: Formula, params, grads, arrays: tuple, cache: dict, options: tuple, grad_scale=None, found_inf=None
) -> None:
    """Step all parameters by a formula whose scalars depend on `options`; `cache` keeps the parameters' batches."""
    states = {name: array for name, array in zip(formula.states, arrays, strict=True) if array is not None}
    scaler = {n: x for n, x in zip(SCALER, (found_inf, grad_scale), strict=True) if x is not None}
    numbers: Any
    if isinstance(options[0], Array):
        numbers = _compute_step_numbers(options[0], params[0].kind, formula, options)
    else:
        numbers = [*formula.host_numbers(*options), *[0.0] * (NUMBERS - len(formula.numbers))]
    kept, given = isinstance(numbers, Array), tuple(scaler)
    key = (formula.name, tuple(states), kept, given)
    batches = cache.get(key)
    if batches is None:
        batches, at, most = [], 0, _max_params_per_launch(params[0].device, _PARAMS_PER_LAUNCH)
        for begin in range(0, len(params), most):
            part = params[begin : begin + most]
            if any(p.size for p in part):
                batches.append((begin, _ParamBatch(formula, part, at, states, kept, given)))
            at += sum(p.size for p in part)
        cache[key] = batches
    for begin, batch in batches:
        end = begin + batch.count
        batch.step(params[begin:end], grads[begin:end], states, numbers, scaler)


def _compute_step_numbers(count: Array, kind: str, formula: Formula, options: tuple) -> Array:
    """Return a step's numbers in memory, computed from a step count in memory."""
    device = count.device
    out = empty(device, (NUMBERS,), kind)
    names = list_numbers_options(formula)
    betas = {f"log_{name}": beta for name, beta in zip(formula.options, options, strict=True)}
    plain = tuple(name for name in names if name not in betas)
    values = dict(zip(plain, formula.host_function(plain)(None, *options[1:]), strict=True))
    values |= {name: math.log(beta) if beta else -1e30 for name, beta in betas.items() if name in names}
    packed = struct.pack(f"{len(names)}" + ("d" if kind == "f64" else "f"), *[values[name] for name in names])
    function = device.function(_numbers_text(formula), f"{formula.name}_numbers", "", T=kind)
    function.start((64,), (64,), [count.buffer, out.buffer], [packed])
    return out


def _fused_adam(params, grads, exp_avg, exp_avg_sq, max_exp_avg_sq, cache, *options):
    _run_step(ADAM, params, grads, (exp_avg, exp_avg_sq, max_exp_avg_sq), cache, options[:-2], *options[-2:])


def _fused_sgd(params, grads, momentum_buffer, cache, *options):
    _run_step(SGD, params, grads, (momentum_buffer,), cache, options[:-2], *options[-2:])


def _fused_rmsprop(params, grads, square_avg, grad_avg, momentum_buffer, cache, *options):
    _run_step(RMSPROP, params, grads, (square_avg, grad_avg, momentum_buffer), cache, options)


def _fused_adagrad(params, grads, sum, cache, *options):
    _run_step(ADAGRAD, params, grads, (sum,), cache, options[:-2], *options[-2:])


# Gradient scaling


def _unscale_homogeneous(grads, found_inf, inv_scale):
    filled = [g for g in grads if g.size]
    dense = [
        g if g.contiguous or find_dense_order(g.shape, g.steps) is not None else clone_row_major(g) for g in filled
    ]
    most = _max_params_per_launch(grads[0].device, _GRADS_PER_LAUNCH)
    for begin in range(0, len(dense), most):
        _unscale_grads(dense[begin : begin + most], found_inf, inv_scale)
    for grad, unscaled in zip(filled, dense, strict=True):
        if grad is not unscaled:
            copy_into(grad, unscaled)


def _unscale_grads(grads: list[Array], found_inf: Array, inv_scale: Array) -> None:
    device, kind, count = grads[0].device, grads[0].kind, len(grads)
    width = next(n for n in _GRADS_PER_LAUNCH if n >= count)
    lanes, tile, group = _choose_work_sizes(device, kind)
    rest = [0] * (width - count)
    first = [0]
    for g in grads:
        first.append(first[-1] + -(-g.size // tile))
    layout = struct.pack(
        f"{3 * width + 3}i",
        *first,
        *[first[-1]] * len(rest),
        *[g.size for g in grads],
        *rest,
        *[g.offset for g in grads],
        *rest,
        found_inf.offset,
        inv_scale.offset,
    )
    buffers = [g.buffer for g in grads + grads[:1] * len(rest)] + [found_inf.buffer, inv_scale.buffer]
    function = device.function(
        _unscale_text(width, lanes, tile), "unscale_all", "", (lanes,) if lanes > 1 else (), T=kind
    )
    function.start((first[-1] * group[0],), group, buffers, [layout])
