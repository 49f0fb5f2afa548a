"""Adamax optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

from .optimizer import (
    Optimizer,
    _addcdiv_scaled,
    _bias_correction,
    _checked_options,
    _evaluate_closure,
    _get_value,
    _increment_step,
    _init_step_count,
    _params_with_grad,
    _view_as_real,
    _zeros_like,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["Adamax"]


class Adamax(Optimizer):
    """Adam with the infinity norm of the gradients instead of the root of the second moment (Kingma and Ba 2014)."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        names = "lr betas eps weight_decay foreach maximize differentiable capturable"
        super().__init__(params, _checked_options(locals(), names))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once. Returns the closure's loss."""
        loss = _evaluate_closure(closure)
        for group in self.param_groups:
            with torch.set_grad_enabled(group["differentiable"]):
                lr, (beta1, beta2), eps, weight_decay = (
                    _get_value(group["lr"]),
                    group["betas"],
                    group["eps"],
                    group["weight_decay"],
                )
                for param, grad, state in _params_with_grad(self, group, _init_state(group)):
                    step = _increment_step(state["step"], group["capturable"])
                    if weight_decay != 0:
                        grad = grad.add(param, alpha=weight_decay)
                    param, grad, exp_avg, exp_inf = _view_as_real(param, grad, state["exp_avg"], state["exp_inf"])
                    exp_avg.lerp_(grad, 1 - beta1)
                    exp_inf.copy_(torch.maximum(exp_inf.mul_(beta2), grad.abs().add_(eps)))
                    _addcdiv_scaled(param, lr / _bias_correction(beta1, step), exp_avg, exp_inf)
        return loss


def _init_state(group):
    def init(state, param, grad):
        state["step"] = _init_step_count(group, param)
        state["exp_avg"] = _zeros_like(param)
        state["exp_inf"] = _zeros_like(param)

    return init
