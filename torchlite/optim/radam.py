"""RAdam optimizer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torchlite as torch

from .optimizer import (
    Optimizer,
    _apply_weight_decay,
    _bias_correction,
    _checked_options,
    _get_value,
    _increment_step,
    _init_step_count,
    _power,
    _run_single_tensor,
    _view_as_real,
    _zeros_like,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["RAdam"]


class RAdam(Optimizer):
    """Adam with the variance of its adaptive rate rectified; plain momentum while that variance is not tractable (Liu
    et al. 2019).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        names = "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable"
        super().__init__(params, _checked_options(locals(), names))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once. Returns the closure's loss."""
        return _run_single_tensor(self, closure, _init_state, _update)


def _init_state(group, state, param, grad):
    state["step"] = _init_step_count(group, param)
    state["exp_avg"] = _zeros_like(param)
    state["exp_avg_sq"] = _zeros_like(param)


def _update(group, param, grad, state):
    lr, (beta1, beta2), eps = _get_value(group["lr"]), group["betas"], group["eps"]
    step = _increment_step(state["step"], group["capturable"])
    grad = _apply_weight_decay(group, param, grad, lr)
    param, grad, exp_avg, exp_avg_sq = _view_as_real(param, grad, state["exp_avg"], state["exp_avg_sq"])
    exp_avg.lerp_(grad, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    correction1, correction2 = _bias_correction(beta1, step), _bias_correction(beta2, step)
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * _power(beta2, step) / correction2
    rectified: Any
    if isinstance(step, torch.Tensor):
        safe = torch.where(length > 5.0, length, 6.0)
        rectified = torch.sqrt((safe - 4) * (safe - 2) * longest / ((longest - 4) * (longest - 2) * safe) * correction2)
        step_by = torch.where(length > 5.0, rectified / (exp_avg_sq.sqrt() + eps), 1.0)
        param.sub_(exp_avg * step_by * (lr / correction1))
    elif length > 5.0:
        rectified = math.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
        denominator = exp_avg_sq.sqrt().add_(eps)
        param.addcdiv_(exp_avg, denominator, value=-lr * rectified * math.sqrt(correction2) / correction1)
    else:
        param.add_(exp_avg, alpha=-lr / correction1)
