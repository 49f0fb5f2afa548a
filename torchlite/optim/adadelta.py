"""Adadelta optimizer."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torchlite as torch

from ._step_helpers import (
    _checked_options,
    _evaluate_closure,
    _get_value,
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


__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    r"""Adadelta: scales each gradient by the ratio of running averages of squared steps and squared gradients.

    .. math::

        \begin{aligned}
        g_t &= \nabla f_t(\theta_{t-1}) + \lambda \theta_{t-1} \\
        v_t &= \rho v_{t-1} + (1 - \rho) g_t^2 \\
        \Delta_t &= \frac{\sqrt{u_{t-1} + \epsilon}}{\sqrt{v_t + \epsilon}} \, g_t \\
        u_t &= \rho u_{t-1} + (1 - \rho) \Delta_t^2 \\
        \theta_t &= \theta_{t-1} - \gamma \Delta_t
        \end{aligned}

    Here :math:`f_t` is the objective, :math:`\gamma` is ``lr`` and :math:`\lambda` is ``weight_decay``.

    Args:
        params: Parameters to optimize: tensors, ``(name, tensor)`` pairs, or dicts that are parameter groups.
        lr: Learning rate :math:`\gamma`, a number or a one-element tensor; at least 0. Default: 1.
        rho: Decay rate :math:`\rho` of the averages; in [0, 1]. Default: 0.9.
        eps: Term :math:`\epsilon` of both roots; at least 0. Default: 1e-6.
        weight_decay: Factor :math:`\lambda` of the L2 penalty; at least 0. Default: 0.
        foreach: Accepted for PyTorch's signature; the result is the same for all values. Default: ``None``.
        capturable: Whether state scalars stay on the parameter's device, so that a CUDA graph can capture the step.
            Default: ``False``.
        maximize: Whether to maximize the objective; the gradient is negated before all else. Default: ``False``.
        differentiable: Whether autograd records the step, so that gradients flow through it. Default: ``False``.

    Raises:
        ValueError: An option is out of range, or ``params`` is empty.
        RuntimeError: A gradient is sparse (in `step`).

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.Adadelta([weight], lr=100.0)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight
        Parameter containing:
        tensor([0.6838, 0.6838], requires_grad=True)

    References:
        - M. D. Zeiler. ADADELTA: An adaptive learning rate method. 2012.
    """

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
                lr, rho, weight_decay = _get_value(group["lr"]), group["rho"], group["weight_decay"]
                for param, grad, state in _params_with_grad(self, group, functools.partial(_init_state, group)):
                    state["step"] += 1
                    if weight_decay != 0:
                        grad = grad.add(param, alpha=weight_decay)
                    param, grad, square_avg, acc_delta = _view_as_real(
                        param, grad, state["square_avg"], state["acc_delta"]
                    )
                    square_avg.mul_(rho).addcmul_(grad, grad, value=1 - rho)
                    eps = _nonzero_eps(group["eps"], square_avg.dtype)
                    delta = acc_delta.add(eps).sqrt_().div_(square_avg.add(eps).sqrt_()).mul_(grad)
                    acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
                    param.add_(delta, alpha=-lr)
        return loss


def _init_state(group, state, param, grad):
    state["step"] = _init_step_count(group, param)
    state["square_avg"] = _zeros_like(param)
    state["acc_delta"] = _zeros_like(param)
