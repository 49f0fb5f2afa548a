"""Adagrad."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

from .optimizer import (
    Optimizer,
    _check_lr,
    _check_nonnegative,
    _choose_flavour,
    _counter,
    _each,
    _fused_gradients,
    _is_left_out,
    _loss,
    _number,
    _real,
    _scaler,
    _stepped,
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
        _check_lr(lr)
        if not 0.0 <= lr_decay:
            raise ValueError(f"Invalid lr_decay value: {lr_decay}")
        _check_nonnegative(weight_decay=weight_decay)
        if not 0.0 <= initial_accumulator_value:
            raise ValueError(f"Invalid initial_accumulator_value value: {initial_accumulator_value}")
        _check_nonnegative(eps=eps)
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        _choose_flavour(self, foreach, fused, differentiable)
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
        loss = None if closure is None else _loss(closure)
        for number, group in enumerate(self.param_groups):
            scaler = _scaler(self, group)
            fused = _fused_gradients(self, number, group, _init_state(self, group), ("sum",))
            if fused is None:
                if not _is_left_out(self, group, _init_state(self, group), *scaler):
                    _step_plainly(self, group)
                continue
            plan, gradients = fused
            options = (
                plan.counted(scaler[1]),
                _number(group["lr"]),
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
        state["step"] = _counter(group, param)
        state["sum"] = torch.full_like(param, complex(start, start) if param.is_complex() else start).detach()

    return init


def _step_plainly(optimizer, group):
    with torch.set_grad_enabled(group["differentiable"]):
        lr, eps, weight_decay = _number(group["lr"]), group["eps"], group["weight_decay"]
        for param, grad, state in _each(optimizer, group, _init_state(optimizer, group), takes_sparse=True):
            step = _stepped(state["step"])
            if weight_decay != 0:
                if grad.layout is not torch.strided:
                    raise RuntimeError("weight_decay option is not compatible with sparse gradients")
                grad = grad.add(param, alpha=weight_decay)
            rate = lr / (1 + (step - 1) * group["lr_decay"])
            if grad.layout is not torch.strided:
                _step_at_places(param, grad.coalesce(), state["sum"], rate, eps)
                continue
            param, grad, total = _real(param, grad, state["sum"])
            total.addcmul_(grad, grad, value=1)
            param.addcdiv_(grad, total.sqrt().add_(eps), value=-rate)


def _step_at_places(param, grad, total, rate, eps):
    """A step of a coalesced sparse gradient: where it has elements alone."""
    places, values = grad._indices(), grad._values()

    def at_places(values):
        return torch.sparse_coo_tensor(places, values, grad.shape)

    total.add_(at_places(values.pow(2)))
    size = total.sparse_mask(grad)._values().sqrt_().add_(eps)
    param.add_(at_places(values / size), alpha=-rate)
