"""Averaged stochastic gradient descent (ASGD) optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

from .optimizer import (
    Optimizer,
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


__all__ = ["ASGD"]


class ASGD(Optimizer):
    """Stochastic gradient descent that averages the parameters (in the state `ax`) from step t0 on (Polyak and Juditsky
    1992).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        names = "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable"
        super().__init__(params, _checked_options(locals(), names))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once. Returns the closure's loss."""
        loss = _evaluate_closure(closure)
        for group in self.param_groups:
            lr = _get_value(group["lr"])

            def init(state, param, grad, lr=lr, group=group):
                state["step"] = _init_step_count(group, param)
                state["eta"] = _init_step_count(group, param, float(lr))
                state["mu"] = _init_step_count(group, param, 1.0)
                state["ax"] = _zeros_like(param)

            with torch.set_grad_enabled(group["differentiable"]):
                for param, grad, state in _params_with_grad(self, group, init):
                    _update(group, lr, param, grad, state)
        return loss


def _update(group, lr, param, grad, state):
    step = _increment_step(state["step"], group["capturable"])
    on_device = isinstance(step, torch.Tensor)
    eta, mu = (state["eta"], state["mu"]) if on_device else (state["eta"].item(), state["mu"].item())
    param, grad, ax = _view_as_real(param, grad, state["ax"])
    if group["weight_decay"] != 0:
        grad = grad.add(param, alpha=group["weight_decay"])
    param.mul_(1 - group["lambd"] * eta)
    if on_device:
        param.sub_(grad * eta)
    else:
        param.add_(grad, alpha=-eta)
    if on_device or mu != 1:
        ax.add_(param.sub(ax).mul_(mu))
    else:
        ax.copy_(param)
    if on_device:
        state["eta"].copy_(lr / ((1 + group["lambd"] * lr * step) ** group["alpha"]))
        state["mu"].copy_(1 / (step - group["t0"]).clamp(min=1))
    else:
        state["eta"].fill_(lr / ((1 + group["lambd"] * lr * step) ** group["alpha"]))
        state["mu"].fill_(1 / max(1, step - group["t0"]))
