"""Rprop optimizer."""

from __future__ import annotations

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


__all__ = ["Rprop"]


class Rprop(Optimizer):
    """Steps from the sign of the gradient alone: an element's step size grows by etas[1] while the sign stays, and
    shrinks by etas[0] when it changes.

    (Riedmiller and Braun 1993.) Intended for full batches.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: Any = (0.5, 1.2),
        step_sizes: Any = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        names = "lr etas step_sizes foreach maximize differentiable capturable"
        super().__init__(params, _checked_options(locals(), names))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once. Returns the closure's loss."""
        loss = _evaluate_closure(closure)
        for group in self.param_groups:
            lr = _get_value(group["lr"])

            def init(state, param, grad, lr=lr, group=group):
                state["step"] = _init_step_count(group, param)
                state["prev"] = _zeros_like(param)
                state["step_size"] = torch.full_like(grad, complex(lr, lr) if param.is_complex() else lr)

            with torch.set_grad_enabled(group["differentiable"]):
                shrink, grow = group["etas"]
                smallest, largest = group["step_sizes"]
                for param, grad, state in _params_with_grad(self, group, init):
                    state["step"] += 1
                    param, grad, prev, step_size = _view_as_real(param, grad, state["prev"], state["step_size"])
                    agreement = grad * prev
                    factor = torch.where(agreement > 0, grow, torch.where(agreement < 0, shrink, 1.0)).to(
                        step_size.dtype
                    )
                    step_size.mul_(factor).clamp_(smallest, largest)
                    grad = grad.masked_fill(agreement < 0, 0)  # after a sign change: wait one step
                    param.addcmul_(grad.sign(), step_size, value=-1)
                    prev.copy_(grad)
        return loss
