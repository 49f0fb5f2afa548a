"""Optimizer steps in place on the device: one launch for up to sixteen parameters."""
from __future__ import annotations

import functools
import math
import struct

from torchlite_kernels.optim import ADAM_NUMBERS, step_text

from .array import Array, empty
from .copying import contiguous_array
from .device import grid

_TOGETHER = (1, 8, 16)  # parameters in one launch: a program each
_text = functools.cache(step_text)


class _Batch:
    """Parameters that one launch steps: their kernel and the layout that does not change between steps."""

    __slots__ = ("count", "function", "global_size", "pack_grads", "head", "tail", "pack_numbers")

    def __init__(self, name: str, params: list[Array], state_at: int, states: tuple[Array, ...], kept: bool, words: dict[str, str]):
        device, kind = params[0].device, params[0].kind
        self.count = len(params)
        width = next(n for n in _TOGETHER if n >= self.count)
        lanes = (8 if kind == "f64" else 16) if device.is_cpu else 1
        rest = [0] * (width - self.count)
        sizes = [p.size for p in params] + rest
        first, at, starts = [0], state_at, []
        for n in sizes:
            first.append(first[-1] + -(-n // lanes))
            starts.append(at)
            at += n
        self.head = struct.pack(f"{4 * width + 1}i", *first, *sizes, *starts, *[p.offset for p in params], *rest)
        self.pack_grads = struct.Struct(f"{width}i").pack
        self.tail = struct.pack("3i", *[s.offset for s in states], *[0] * (3 - len(states)))
        self.pack_numbers = struct.Struct("8" + ("d" if kind == "f64" else "f")).pack
        self.function = device.function(_text(name, width, len(states), lanes, kept), "update_all", "", (lanes,) if lanes > 1 else (), T=kind, **words)
        self.global_size = grid(first[-1], 64)

    def step(self, params: list[Array], grads: list[Array], states: tuple[Array, ...], numbers: list[float] | Array) -> None:
        grads = [contiguous_array(g) for g in grads]
        padding = len(self.head) // 16 - self.count
        layout = self.head + self.pack_grads(*[g.offset for g in grads], *[0] * padding) + self.tail
        pairs = zip(params + params[:1] * padding, grads + grads[:1] * padding, strict=True)
        buffers = [x.buffer for pair in pairs for x in pair] + [s.buffer for s in states]
        if isinstance(numbers, Array):
            self.function.start(self.global_size, (64,), [*buffers, numbers.buffer], [layout])
        else:
            self.function.start(self.global_size, (64,), buffers, [layout, self.pack_numbers(*numbers)])


def _run(name: str, params, grads, states, cache: dict, numbers: list[float] | Array, **words: str) -> None:
    """Step all parameters; `cache` keeps their batches."""
    states, kept = tuple(s for s in states if s is not None), isinstance(numbers, Array)
    if isinstance(numbers, list):
        numbers = numbers + [0.0] * (8 - len(numbers))
    key = (name, len(states), kept, *words.values())
    batches = cache.get(key)
    if batches is None:
        batches, at, most = [], 0, _TOGETHER[-1]
        for begin in range(0, len(params), most):
            part = params[begin:begin + most]
            batches.append((begin, _Batch(name, part, at, states, kept, words)) if any(p.size for p in part) else None)
            at += sum(p.size for p in part)
        batches = cache[key] = [b for b in batches if b is not None]
    for begin, batch in batches:
        end = begin + batch.count
        batch.step(params[begin:end], grads[begin:end], states, numbers)


def _adam_numbers(count: Array, kind: str, sign: float, added: float, beta1: float, beta2: float, eps: float, lr: float, taken: float) -> Array:
    """Adam's numbers in memory, from a count of steps that is there too."""
    device = count.device
    out = empty(device, (8,), kind)
    logs = [math.log(beta) if beta else -1e30 for beta in (beta1, beta2)]
    options = struct.pack("10" + ("d" if kind == "f64" else "f"), sign, added, 1 - beta1, beta2, 1 - beta2, *logs, eps, lr, taken)
    device.function(ADAM_NUMBERS, "adam_numbers", "", T=kind).start((64,), (64,), [count.buffer, out.buffer], [options])
    return out


def _fused_adam(params, grads, exp_avg, exp_avg_sq, max_exp_avg_sq, cache, step, lr, beta1, beta2, eps, weight_decay, decoupled, maximize):
    added, taken = (0.0, lr * weight_decay) if decoupled else (weight_decay, 0.0)
    if isinstance(step, Array):
        numbers = _adam_numbers(step, params[0].kind, -1.0 if maximize else 1.0, added, beta1, beta2, eps, lr, taken)
        return _run("adam", params, grads, (exp_avg, exp_avg_sq, max_exp_avg_sq), cache, numbers)
    correction = math.sqrt(1 - beta2**step)
    size = lr * correction / (1 - beta1**step)
    numbers = [-1.0 if maximize else 1.0, added, 1 - beta1, beta2, 1 - beta2, eps * correction, size, taken]
    _run("adam", params, grads, (exp_avg, exp_avg_sq, max_exp_avg_sq), cache, numbers)


def _fused_sgd(params, grads, momentum_buffer, cache, first, lr, momentum, dampening, weight_decay, nesterov, maximize):
    numbers = [-1.0 if maximize else 1.0, weight_decay, lr, momentum, 1 - dampening, float(first), float(nesterov)]
    _run("sgd", params, grads, (momentum_buffer,), cache, numbers)


def _fused_rmsprop(params, grads, square_avg, grad_avg, momentum_buffer, cache, lr, alpha, eps, momentum, weight_decay, maximize):
    numbers = [-1.0 if maximize else 1.0, weight_decay, lr, alpha, 1 - alpha, eps, momentum]
    _run("rmsprop", params, grads, (square_avg, grad_avg, momentum_buffer), cache, numbers, CENTERED="0" if grad_avg is None else "1")


def _fused_adagrad(params, grads, sum, cache, rate, eps, weight_decay, maximize):
    _run("adagrad", params, grads, (sum,), cache, [-1.0 if maximize else 1.0, weight_decay, rate, eps])
