"""RAdam optimizer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torchlite as torch

from ._step_helpers import (
    _apply_weight_decay,
    _bias_correction,
    _checked_options,
    _get_value,
    _increment_step,
    _init_step_count,
    _nonzero_eps,
    _power,
    _run_single_tensor,
    _view_as_real,
    _zeros_like,
)
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["RAdam"]


class RAdam(Optimizer):
    r"""RAdam: Adam with a rectified adaptive rate, and plain momentum in the first steps.

    .. math::

        \begin{aligned}
        g_t &= \nabla f_t(\theta_{t-1}) + \lambda \theta_{t-1} \\
        m_t &= \beta_1 m_{t-1} + (1 - \beta_1) g_t \\
        v_t &= \beta_2 v_{t-1} + (1 - \beta_2) g_t^2 \\
        \rho_\infty &= \frac{2}{1 - \beta_2} - 1 \\
        \rho_t &= \rho_\infty - \frac{2 t \beta_2^t}{1 - \beta_2^t} \\
        r_t &= \sqrt{\frac{(\rho_t - 4)(\rho_t - 2) \rho_\infty}{(\rho_\infty - 4)(\rho_\infty - 2) \rho_t}} \\
        \theta_t &= \theta_{t-1} - \frac{\gamma m_t}{1 - \beta_1^t} \cdot
        \begin{cases}
        r_t \sqrt{1 - \beta_2^t} / (\sqrt{v_t} + \epsilon) & \text{if } \rho_t > 5 \\
        1 & \text{else}
        \end{cases}
        \end{aligned}

    Here :math:`f_t` is the objective, :math:`\gamma` is ``lr`` and :math:`\lambda` is ``weight_decay``.
    :math:`\rho_t` is the length of a simple moving average that is equivalent to :math:`v_t`. With the default
    ``betas`` the adaptive rate begins at step 6.

    Args:
        params: Parameters to optimize: tensors, ``(name, tensor)`` pairs, or dicts that are parameter groups.
        lr: Learning rate :math:`\gamma`, a number or a one-element tensor; at least 0. Default: 1e-3.
        betas: Decay rates :math:`\beta_1` and :math:`\beta_2` of the two averages; each in [0, 1). Default: (0.9,
            0.999).
        eps: Term :math:`\epsilon` of the denominator; at least 0. Default: 1e-8.
        weight_decay: Factor :math:`\lambda` of the L2 penalty; at least 0. Default: 0.
        decoupled_weight_decay: Whether to multiply the parameter by :math:`1 - \gamma \lambda` before the step, as
            `AdamW` does, instead of adding to the gradient. Default: ``False``.
        foreach: Accepted for PyTorch's signature; the result is the same for all values. Default: ``None``.
        maximize: Whether to maximize the objective; the gradient is negated before all else. Default: ``False``.
        capturable: Whether state scalars stay on the parameter's device, so that a CUDA graph can capture the step.
            Default: ``False``.
        differentiable: Whether autograd records the step, so that gradients flow through it. Default: ``False``.

    Raises:
        ValueError: An option is out of range, or ``params`` is empty.
        RuntimeError: A gradient is sparse (in `step`).

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.RAdam([weight], lr=0.1)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight
        Parameter containing:
        tensor([0.9000, 0.9000], requires_grad=True)

    References:
        - L. Liu, H. Jiang, P. He, W. Chen, X. Liu, J. Gao, J. Han. On the variance of the adaptive learning rate and
          beyond. 2020.

    See also:
        `Adam`.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        names = "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable"
        super().__init__(params, _checked_options(locals(), names))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters once, from their gradients.

        Args:
            closure: Computes the loss and its gradients again, and returns the loss. It runs with gradients enabled.
                Default: ``None``.

        Returns:
            The result of ``closure``; ``None`` without one.
        """
        return _run_single_tensor(self, closure, _init_state, _update)


def _init_state(group, state, param, grad):
    state["step"] = _init_step_count(group, param)
    state["exp_avg"] = _zeros_like(param)
    state["exp_avg_sq"] = _zeros_like(param)


def _update(group, param, grad, state):
    lr, (beta1, beta2) = _get_value(group["lr"]), group["betas"]
    eps = _nonzero_eps(group["eps"], param.dtype)
    step = _increment_step(state["step"], group["capturable"])
    grad = _apply_weight_decay(group, param, grad, lr)
    param, grad, exp_avg, exp_avg_sq = _view_as_real(param, grad, state["exp_avg"], state["exp_avg_sq"])
    exp_avg.lerp_(grad, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    correction1, correction2 = _bias_correction(beta1, step), _bias_correction(beta2, step)
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * _power(beta2, step) / correction2
    rectified: Any
    if isinstance(step, torch.Tensor):
        safe = torch.where(length > 5.0, length, 6.0)
        rectified = torch.sqrt((safe - 4) * (safe - 2) * longest / ((longest - 4) * (longest - 2) * safe) * correction2)
        step_by = torch.where(length > 5.0, rectified / (exp_avg_sq.sqrt() + eps), 1.0)
        param.sub_(exp_avg * step_by * (lr / correction1))
    elif length > 5.0:
        rectified = math.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
        denominator = exp_avg_sq.sqrt().add_(eps)
        param.addcdiv_(exp_avg, denominator, value=-lr * rectified * math.sqrt(correction2) / correction1)
    else:
        param.add_(exp_avg, alpha=-lr / correction1)
