"""ONNX optimizer steps (ai.onnx.preview.training)."""

from __future__ import annotations

from typing import Any

from torchlite import Tensor

from .op_registry import op, single_number
from .resource_limits import check_broadcast, count_value

_DOMAIN = "ai.onnx.preview.training"


@op("Adagrad", domain=_DOMAIN)
def adagrad(
    rate: Tensor, step: Tensor, *values: Tensor, decay_factor: float = 0.0, epsilon: float = 1e-6,
    norm_coefficient: float = 0.0, outputs: int = 1,
) -> Any:  # fmt: skip
    n = len(values) // 3
    r = rate / (1 + single_number(step) * decay_factor)
    new, sums = [], []
    for x, g, h in zip(values[:n], values[n : 2 * n], values[2 * n :], strict=True):
        check_broadcast("Adagrad", rate, x, g, h)
        g = norm_coefficient * x + g
        h = h + g * g
        new.append(x - r * g / (h.sqrt() + epsilon))
        sums.append(h)
        count_value((new[-1], h))
    return (*new, *sums)


@op("Adam", domain=_DOMAIN)
def adam(
    rate: Tensor, step: Tensor, *values: Tensor, alpha: float = 0.9, beta: float = 0.999, epsilon: float = 1e-6,
    norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0, outputs: int = 1,
) -> Any:  # fmt: skip
    n, t = len(values) // 4, single_number(step)
    found: list[list] = [[], [], []]
    r = rate * ((1 - beta**t) ** 0.5 / (1 - alpha**t)) if t > 0 else rate
    for i in range(n):
        x, g, v, h = (values[i + n * k] for k in range(4))
        check_broadcast("Adam", rate, x, g, v, h)
        g = norm_coefficient * x + g
        v, h = alpha * v + (1 - alpha) * g, beta * h + (1 - beta) * g * g
        x = x - r * v / (h.sqrt() + epsilon)
        for kept, value in zip(found, ((1 - norm_coefficient_post) * x, v, h), strict=True):
            count_value(value)
            kept.append(value)
    return (*found[0], *found[1], *found[2])


@op("Momentum", domain=_DOMAIN)
def momentum(
    rate: Tensor, step: Tensor, *values: Tensor, alpha: float, beta: float, mode: str, norm_coefficient: float,
    outputs: int = 1,
) -> Any:  # fmt: skip
    n = len(values) // 3
    factor = beta if single_number(step) > 0 else 1.0
    new, moved = [], []
    for x, g, v in zip(values[:n], values[n : 2 * n], values[2 * n :], strict=True):
        check_broadcast("Momentum", rate, x, g, v)
        g = norm_coefficient * x + g
        v = alpha * v + factor * g
        new.append(x - rate * (g + alpha * v if mode == "nesterov" else v))
        moved.append(v)
        count_value((new[-1], v))
    return (*new, *moved)
