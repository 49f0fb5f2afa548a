"""RMSprop optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

from .optimizer import (
    Optimizer,
    _add_missing_options,
    _checked_options,
    _evaluate_closure,
    _fused_gradients,
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


__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """Steps divided by the root of a running average of squared gradients (Hinton's lecture; centered: Graves 2013),
    optionally with momentum.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0.0 <= alpha:
            raise ValueError(f"Invalid alpha value: {alpha}")
        names = "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"
        super().__init__(params, _checked_options(locals(), names))

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        _add_missing_options(
            self, momentum=0, centered=False, foreach=None, maximize=False, differentiable=False, capturable=False
        )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once. Returns the closure's loss."""
        loss = None if closure is None else _evaluate_closure(closure)
        for number, group in enumerate(self.param_groups):
            names = (
                "square_avg",
                *(("momentum_buffer",) if group["momentum"] > 0 else ()),
                *(("grad_avg",) if group["centered"] else ()),
            )
            fused = _fused_gradients(self, number, group, _init_state(group), names)
            if fused is None:
                with torch.set_grad_enabled(group["differentiable"]):
                    for param, grad, state in _params_with_grad(self, group, _init_state(group)):
                        _update(group, param, grad, state)
                continue
            plan, gradients = fused
            plan.steps += 1
            options = (
                _get_value(group["lr"]),
                group["alpha"],
                group["eps"],
                group["momentum"],
                group["weight_decay"],
                group["maximize"],
            )
            plan.run("_fused_rmsprop", gradients, ("square_avg", "grad_avg", "momentum_buffer"), *options)
        return loss


def _init_state(group):
    def init(state, param, grad):
        state["step"] = _init_step_count(group, param)
        state["square_avg"] = _zeros_like(param)
        if group["momentum"] > 0:
            state["momentum_buffer"] = _zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = _zeros_like(param)

    return init


def _update(group, param, grad, state):
    lr, alpha = _get_value(group["lr"]), group["alpha"]
    state["step"] += 1
    if group["weight_decay"] != 0:
        grad = grad.add(param, alpha=group["weight_decay"])
    param, grad, square_avg, grad_avg, buffer = _view_as_real(
        param, grad, state["square_avg"], state.get("grad_avg"), state.get("momentum_buffer")
    )
    square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
    if group["centered"]:
        grad_avg.lerp_(grad, 1 - alpha)
        average = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt_()
    else:
        average = square_avg.sqrt()
    average = average.add_(group["eps"])
    if group["momentum"] > 0:
        buffer.mul_(group["momentum"]).addcdiv_(grad, average)
        param.add_(buffer, alpha=-lr)
    else:
        param.addcdiv_(grad, average, value=-lr)
