"""Adam optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

from .optimizer import (
    Optimizer,
    _add_missing_options,
    _addcdiv_scaled,
    _apply_weight_decay,
    _bias_correction,
    _checked_options,
    _choose_implementation,
    _evaluate_closure,
    _fused_gradients,
    _get_value,
    _increment_step,
    _init_step_count,
    _is_step_skipped,
    _params_with_grad,
    _scalar_tensor,
    _scaler_tensors,
    _view_as_real,
    _zeros_like,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["Adam"]

_FIRST, _WITH_LARGEST = ("exp_avg", "exp_avg_sq"), ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")


def _check_tensor_betas(betas: Any, capturable: bool, foreach: bool | None) -> None:
    """ValueError unless the betas are both numbers or both one-element tensors."""
    tensors = [isinstance(beta, torch.Tensor) for beta in betas]
    if not all(tensors) and not all(isinstance(beta, float) for beta in betas):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas if all(tensors) else ()):
        if not capturable and foreach:
            raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
        if beta.numel() != 1:
            raise ValueError(f"Tensor betas[{i}] must be 1-element")


class Adam(Optimizer):
    """Steps by the running mean of the gradient over the root of the running mean of its square, both bias-corrected
    (Kingma and Ba 2014).

    amsgrad: use the maximum of the second moments so far (Reddi et al. 2018). decoupled_weight_decay: shrink the
    parameters instead of adding to the gradient, as AdamW does. `foreach` and `fused` choose among PyTorch's
    implementations; here they share one multi-tensor step. With `fused=True` the step counts are on the parameters'
    device, and the kernel skips the step there if a `GradScaler` found infinite gradients, without a host read.

    >>> weight = torchlite.nn.Parameter(torchlite.ones(2))
    >>> optimizer = torchlite.optim.Adam([weight], lr=0.1)
    >>> weight.sum().backward(); optimizer.step(); weight
    Parameter containing:
    tensor([0.9000, 0.9000], requires_grad=True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, torch.Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        names = (
            "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused decoupled_weight_decay"
        )
        options = _checked_options(locals(), names)
        _check_tensor_betas(betas, capturable, foreach)
        super().__init__(params, options)
        _choose_implementation(self, foreach, fused, differentiable)

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        _add_missing_options(
            self,
            amsgrad=False,
            maximize=False,
            foreach=None,
            capturable=False,
            differentiable=False,
            decoupled_weight_decay=False,
            fused=None,
        )
        for group in self.param_groups:
            for param in group["params"]:
                found = self.state.get(param, {})
                if found and not isinstance(found["step"], torch.Tensor):
                    found["step"] = _scalar_tensor(float(found["step"]))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once. Returns the closure's loss."""
        loss = None if closure is None else _evaluate_closure(closure)
        for number, group in enumerate(self.param_groups):
            names = _WITH_LARGEST if group["amsgrad"] else _FIRST
            scaler = _scaler_tensors(self, group)
            fused = _fused_gradients(self, number, group, _init_state(group), names)
            if fused is None:
                if not _is_step_skipped(self, group, _init_state(group), *scaler):
                    _single_tensor_step(self, group)
                continue
            plan, gradients = fused
            beta1, beta2 = group["betas"]
            options = (
                plan.counted(scaler[1]),
                _get_value(group["lr"]),
                _get_value(beta1),
                _get_value(beta2),
                group["eps"],
                group["weight_decay"],
                group["decoupled_weight_decay"],
                group["maximize"],
            )
            plan.run("_fused_adam", gradients, ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"), *options, scaler=scaler)
        return loss


def _init_state(group):
    def init(state, param, grad):
        state["step"] = _init_step_count(group, param)
        state["exp_avg"] = _zeros_like(param)
        state["exp_avg_sq"] = _zeros_like(param)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = _zeros_like(param)

    return init


def _single_tensor_step(optimizer, group):
    with torch.set_grad_enabled(group["differentiable"]):
        for param, grad, state in _params_with_grad(optimizer, group, _init_state(group)):
            _update(group, param, grad, state)


def _update(group, param, grad, state):
    lr, eps = group["lr"], group["eps"]
    if not (group["differentiable"] or group["capturable"]):
        lr = _get_value(lr)
    beta1, beta2 = (_get_value(beta) for beta in group["betas"])
    step = _increment_step(state["step"], group["capturable"])
    grad = _apply_weight_decay(group, param, grad, lr)
    param, grad, exp_avg, exp_avg_sq, largest = _view_as_real(
        param, grad, state["exp_avg"], state["exp_avg_sq"], state.get("max_exp_avg_sq")
    )
    exp_avg.lerp_(grad, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    second = exp_avg_sq
    if group["amsgrad"]:
        largest.copy_(torch.maximum(largest, exp_avg_sq))
        second = largest
    denominator = (second.sqrt() / _bias_correction(beta2, step) ** 0.5).add_(eps)
    size = lr / _bias_correction(beta1, step)
    _addcdiv_scaled(param, size, exp_avg, denominator)
