"""Adamax optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

from ._step_helpers import (
    _addcdiv_scaled,
    _bias_correction,
    _checked_options,
    _evaluate_closure,
    _get_value,
    _increment_step,
    _init_step_count,
    _nonzero_eps,
    _params_with_grad,
    _view_as_real,
    _zeros_like,
)
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["Adamax"]


class Adamax(Optimizer):
    r"""Adamax: Adam with a decayed maximum of the gradients in the place of the root of their mean square.

    .. math::

        \begin{aligned}
        g_t &= \nabla f_t(\theta_{t-1}) + \lambda \theta_{t-1} \\
        m_t &= \beta_1 m_{t-1} + (1 - \beta_1) g_t \\
        u_t &= \max(\beta_2 u_{t-1}, |g_t| + \epsilon) \\
        \theta_t &= \theta_{t-1} - \frac{\gamma}{1 - \beta_1^t} \, \frac{m_t}{u_t}
        \end{aligned}

    Here :math:`f_t` is the objective, :math:`\gamma` is ``lr`` and :math:`\lambda` is ``weight_decay``.

    Args:
        params: Parameters to optimize: tensors, ``(name, tensor)`` pairs, or dicts that are parameter groups.
        lr: Learning rate :math:`\gamma`, a number or a one-element tensor; at least 0. Default: 2e-3.
        betas: Decay rates :math:`\beta_1` of the mean and :math:`\beta_2` of the maximum; each in [0, 1). Default:
            (0.9, 0.999).
        eps: Term :math:`\epsilon` of the maximum; at least 0. Default: 1e-8.
        weight_decay: Factor :math:`\lambda` of the L2 penalty; at least 0. Default: 0.
        foreach: Accepted for PyTorch's signature; the result is the same for all values. Default: ``None``.
        maximize: Whether to maximize the objective; the gradient is negated before all else. Default: ``False``.
        differentiable: Whether autograd records the step, so that gradients flow through it. Default: ``False``.
        capturable: Whether state scalars stay on the parameter's device, so that a CUDA graph can capture the step.
            Default: ``False``.

    Raises:
        ValueError: An option is out of range, or ``params`` is empty.
        RuntimeError: A gradient is sparse (in `step`).

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.Adamax([weight], lr=0.1)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight
        Parameter containing:
        tensor([0.9000, 0.9000], requires_grad=True)

    References:
        - D. P. Kingma, J. Ba. Adam: A method for stochastic optimization. 2015, section 7.1.
    """

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
        """Updates the parameters once, from their gradients.

        Args:
            closure: Computes the loss and its gradients again, and returns the loss. It runs with gradients enabled.
                Default: ``None``.

        Returns:
            The result of ``closure``; ``None`` without one.
        """
        loss = _evaluate_closure(closure)
        for group in self.param_groups:
            with torch.set_grad_enabled(group["differentiable"]):
                lr, (beta1, beta2), weight_decay = _get_value(group["lr"]), group["betas"], group["weight_decay"]
                for param, grad, state in _params_with_grad(self, group, _init_state(group)):
                    step = _increment_step(state["step"], group["capturable"])
                    if weight_decay != 0:
                        grad = grad.add(param, alpha=weight_decay)
                    param, grad, exp_avg, exp_inf = _view_as_real(param, grad, state["exp_avg"], state["exp_inf"])
                    exp_avg.lerp_(grad, 1 - beta1)
                    eps = _nonzero_eps(group["eps"], exp_inf.dtype)
                    exp_inf.copy_(torch.maximum(exp_inf.mul_(beta2), grad.abs().add_(eps)))
                    _addcdiv_scaled(param, lr / _bias_correction(beta1, step), exp_avg, exp_inf)
        return loss


def _init_state(group):
    def init(state, param, grad):
        state["step"] = _init_step_count(group, param)
        state["exp_avg"] = _zeros_like(param)
        state["exp_inf"] = _zeros_like(param)

    return init
