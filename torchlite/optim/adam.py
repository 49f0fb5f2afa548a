"""Adam optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

from ._step_helpers import (
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
    _nonzero_eps,
    _params_with_grad,
    _scalar_tensor,
    _scaler_tensors,
    _view_as_real,
    _zeros_like,
)
from .optimizer import Optimizer

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
    r"""Adam: divides a running mean of the gradient by the root of a running mean of its square.

    .. math::

        \begin{aligned}
        g_t &= \nabla f_t(\theta_{t-1}) + \lambda \theta_{t-1} \\
        m_t &= \beta_1 m_{t-1} + (1 - \beta_1) g_t \\
        v_t &= \beta_2 v_{t-1} + (1 - \beta_2) g_t^2 \\
        \theta_t &= \theta_{t-1} - \gamma \, \frac{m_t / (1 - \beta_1^t)}{\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}
        \end{aligned}

    Here :math:`f_t` is the objective, :math:`\gamma` is ``lr`` and :math:`\lambda` is ``weight_decay``.
    The factors :math:`1 - \beta^t` correct the bias of averages that begin at 0. Complex parameters are updated as
    pairs of real numbers.

    Args:
        params: Parameters to optimize: tensors, ``(name, tensor)`` pairs, or dicts that are parameter groups.
        lr: Learning rate :math:`\gamma`, a number or a one-element tensor; at least 0. Default: 1e-3.
        betas: Decay rates :math:`\beta_1` and :math:`\beta_2` of the two averages; each in [0, 1). Two floats or two
            one-element tensors. Default: (0.9, 0.999).
        eps: Term :math:`\epsilon` of the denominator; at least 0. Default: 1e-8.
        weight_decay: Factor :math:`\lambda` of the L2 penalty; at least 0. Default: 0.
        amsgrad: Whether the largest :math:`v` so far replaces :math:`v_t` in the denominator. Default: ``False``.
        foreach: Accepted for PyTorch's signature; the result is the same for all values. Excludes ``fused``. Default:
            ``None``.
        maximize: Whether to maximize the objective; the gradient is negated before all else. Default: ``False``.
        capturable: Whether state scalars stay on the parameter's device, so that a CUDA graph can capture the step.
            Default: ``False``.
        differentiable: Whether autograd records the step, so that gradients flow through it. Default: ``False``.
        fused: Whether the step applies the scale of a `torch.amp.GradScaler` in its kernel, and skips there if a
            gradient is infinite, without a read by the host. The step counts are then on the parameters' device.
            Parameters must be floating point. Excludes ``foreach`` and ``differentiable``. Default: ``None``.
        decoupled_weight_decay: Whether to multiply the parameter by :math:`1 - \gamma \lambda` before the step, as
            `AdamW` does, instead of adding to the gradient. Default: ``False``.

    Raises:
        ValueError: An option is out of range, ``params`` is empty, or ``lr`` or ``betas`` is a tensor with ``foreach``
            and without ``capturable``.
        RuntimeError: ``fused`` is combined with an option that it excludes; or a gradient is sparse (in `step`).

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.Adam([weight], lr=0.1)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight
        Parameter containing:
        tensor([0.9000, 0.9000], requires_grad=True)

    References:
        - D. P. Kingma, J. Ba. Adam: A method for stochastic optimization. 2015.
        - S. J. Reddi, S. Kale, S. Kumar. On the convergence of Adam and beyond. 2018 (``amsgrad``).

    See also:
        `AdamW`, `SparseAdam`.
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
        """Updates the parameters once, from their gradients.

        Args:
            closure: Computes the loss and its gradients again, and returns the loss. It runs with gradients enabled.
                Default: ``None``.

        Returns:
            The result of ``closure``; ``None`` without one.
        """
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
    denominator = (second.sqrt() / _bias_correction(beta2, step) ** 0.5).add_(_nonzero_eps(eps, second.dtype))
    size = lr / _bias_correction(beta1, step)
    _addcdiv_scaled(param, size, exp_avg, denominator)
