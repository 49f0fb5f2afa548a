"""NAdam optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

from .optimizer import (
    Optimizer,
    _addcdiv_scaled,
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


__all__ = ["NAdam"]


class NAdam(Optimizer):
    """Adam with Nesterov momentum and a momentum schedule controlled by `momentum_decay` (Dozat 2016)."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0.0 <= momentum_decay:
            raise ValueError(f"Invalid momentum_decay value: {momentum_decay}")
        names = (
            "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach capturable differentiable"
        )
        super().__init__(params, _checked_options(locals(), names))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once. Returns the closure's loss."""
        return _run_single_tensor(self, closure, _init_state, _update)


def _init_state(group, state, param, grad):
    state["step"] = _init_step_count(group, param)
    state["mu_product"] = _init_step_count(group, param, 1.0)
    state["exp_avg"] = _zeros_like(param)
    state["exp_avg_sq"] = _zeros_like(param)


def _update(group, param, grad, state):
    lr, (beta1, beta2), eps = _get_value(group["lr"]), group["betas"], group["eps"]
    step = _increment_step(state["step"], group["capturable"])
    grad = _apply_weight_decay(group, param, grad, lr)
    param, grad, exp_avg, exp_avg_sq = _view_as_real(param, grad, state["exp_avg"], state["exp_avg_sq"])
    mu = beta1 * (1.0 - 0.5 * _power(0.96, step * group["momentum_decay"]))
    mu_next = beta1 * (1.0 - 0.5 * _power(0.96, (step + 1) * group["momentum_decay"]))
    state["mu_product"] *= mu
    product = state["mu_product"] if isinstance(step, torch.Tensor) else state["mu_product"].item()
    exp_avg.lerp_(grad, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    denominator = exp_avg_sq.div(_bias_correction(beta2, step)).sqrt_().add_(eps)
    _addcdiv_scaled(param, lr * (1.0 - mu) / (1.0 - product), grad, denominator)
    _addcdiv_scaled(param, lr * mu_next / (1.0 - product * mu_next), exp_avg, denominator)
