"""Adadelta optimizer."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torchlite as torch

from .optimizer import (
    Optimizer,
    _checked_options,
    _evaluate_closure,
    _get_value,
    _init_step_count,
    _params_with_grad,
    _view_as_real,
    _zeros_like,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    """Steps scaled by the ratio of running averages of squared steps and squared gradients (Zeiler 2012)."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        names = "lr rho eps weight_decay maximize capturable foreach differentiable"
        super().__init__(params, _checked_options(locals(), names))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once. Returns the closure's loss."""
        loss = _evaluate_closure(closure)
        for group in self.param_groups:
            with torch.set_grad_enabled(group["differentiable"]):
                lr, rho, eps, weight_decay = _get_value(group["lr"]), group["rho"], group["eps"], group["weight_decay"]
                for param, grad, state in _params_with_grad(self, group, functools.partial(_init_state, group)):
                    state["step"] += 1
                    if weight_decay != 0:
                        grad = grad.add(param, alpha=weight_decay)
                    param, grad, square_avg, acc_delta = _view_as_real(
                        param, grad, state["square_avg"], state["acc_delta"]
                    )
                    square_avg.mul_(rho).addcmul_(grad, grad, value=1 - rho)
                    delta = acc_delta.add(eps).sqrt_().div_(square_avg.add(eps).sqrt_()).mul_(grad)
                    acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
                    param.add_(delta, alpha=-lr)
        return loss


def _init_state(group, state, param, grad):
    state["step"] = _init_step_count(group, param)
    state["square_avg"] = _zeros_like(param)
    state["acc_delta"] = _zeros_like(param)
