"""Adagrad optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

from .optimizer import (
    Optimizer,
    _checked_options,
    _choose_implementation,
    _evaluate_closure,
    _fused_gradients,
    _get_value,
    _increment_step,
    _init_step_count,
    _is_step_skipped,
    _params_with_grad,
    _scaler_tensors,
    _view_as_real,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients (Duchi et al. 2011), the rate being lr / (1 + (step
    - 1) lr_decay).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if not 0.0 <= lr_decay:
            raise ValueError(f"Invalid lr_decay value: {lr_decay}")
        if not 0.0 <= initial_accumulator_value:
            raise ValueError(f"Invalid initial_accumulator_value value: {initial_accumulator_value}")
        names = "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused"
        super().__init__(params, _checked_options(locals(), names))
        _choose_implementation(self, foreach, fused, differentiable)
        for group in self.param_groups:
            for param in group["params"]:
                _init_state(self, group)(self.state[param], param, None)

    def share_memory(self) -> Any:
        """Move the state to memory shared between processes."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once. Returns the closure's loss."""
        loss = None if closure is None else _evaluate_closure(closure)
        for number, group in enumerate(self.param_groups):
            scaler = _scaler_tensors(self, group)
            fused = _fused_gradients(self, number, group, _init_state(self, group), ("sum",))
            if fused is None:
                if not _is_step_skipped(self, group, _init_state(self, group), *scaler):
                    _single_tensor_step(self, group)
                continue
            plan, gradients = fused
            options = (
                plan.counted(scaler[1]),
                _get_value(group["lr"]),
                group["lr_decay"],
                group["eps"],
                group["weight_decay"],
                group["maximize"],
            )
            plan.run("_fused_adagrad", gradients, ("sum",), *options, scaler=scaler)
        return loss


def _init_state(optimizer, group):
    start = optimizer.defaults["initial_accumulator_value"]

    def init(state, param, grad):
        state["step"] = _init_step_count(group, param)
        state["sum"] = torch.full_like(param, complex(start, start) if param.is_complex() else start).detach()

    return init


def _single_tensor_step(optimizer, group):
    with torch.set_grad_enabled(group["differentiable"]):
        lr, eps, weight_decay = _get_value(group["lr"]), group["eps"], group["weight_decay"]
        for param, grad, state in _params_with_grad(optimizer, group, _init_state(optimizer, group), takes_sparse=True):
            step = _increment_step(state["step"])
            if weight_decay != 0:
                if grad.layout is not torch.strided:
                    raise RuntimeError("weight_decay option is not compatible with sparse gradients")
                grad = grad.add(param, alpha=weight_decay)
            rate = lr / (1 + (step - 1) * group["lr_decay"])
            if grad.layout is not torch.strided:
                _sparse_step(param, grad.coalesce(), state["sum"], rate, eps)
                continue
            param, grad, total = _view_as_real(param, grad, state["sum"])
            total.addcmul_(grad, grad, value=1)
            param.addcdiv_(grad, total.sqrt().add_(eps), value=-rate)


def _sparse_step(param, grad, total, rate, eps):
    """Step with a coalesced sparse gradient, which updates its specified elements only."""
    places, values = grad._indices(), grad._values()

    def at_places(values):
        return torch.sparse_coo_tensor(places, values, grad.shape)

    total.add_(at_places(values.pow(2)))
    size = total.sparse_mask(grad)._values().sqrt_().add_(eps)
    param.add_(at_places(values / size), alpha=-rate)
