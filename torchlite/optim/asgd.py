"""Averaged stochastic gradient descent (ASGD) optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

from ._step_helpers import (
    _checked_options,
    _evaluate_closure,
    _get_value,
    _increment_step,
    _init_step_count,
    _params_with_grad,
    _view_as_real,
    _zeros_like,
)
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["ASGD"]


class ASGD(Optimizer):
    r"""Stochastic gradient descent that also averages the parameters.

    .. math::

        \begin{aligned}
        g_t &= \nabla f_t(\theta_{t-1}) + \lambda \theta_{t-1} \\
        \theta_t &= (1 - \Lambda \eta_t) \theta_{t-1} - \eta_t g_t \\
        a_t &= a_{t-1} + \mu_t (\theta_t - a_{t-1}) \\
        \eta_{t+1} &= \gamma (1 + \Lambda \gamma t)^{-\alpha} \\
        \mu_{t+1} &= \frac{1}{\max(1, t - t_0)}
        \end{aligned}

    Here :math:`f_t` is the objective, :math:`\gamma` is ``lr`` and :math:`\lambda` is ``weight_decay``.
    The sequences begin with :math:`\eta_1 = \gamma` and :math:`\mu_1 = 1`. The average :math:`a` is
    ``optimizer.state[param]["ax"]``: the parameter itself until step ``t0``, then the mean of the later ones.

    Args:
        params: Parameters to optimize: tensors, ``(name, tensor)`` pairs, or dicts that are parameter groups.
        lr: Learning rate :math:`\gamma`, a number or a one-element tensor; at least 0. Default: 1e-2.
        lambd: Decay :math:`\Lambda` of parameters and step sizes. Default: 1e-4.
        alpha: Exponent :math:`\alpha` of the step sizes. Default: 0.75.
        t0: Step :math:`t_0` at which averaging begins. Default: 1e6.
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
        >>> weight = torch.nn.Parameter(torch.ones(1))
        >>> optimizer = torch.optim.ASGD([weight], lr=0.1, lambd=0.0, t0=0)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     weight.sum().backward()
        ...     optimizer.step()
        >>> weight
        Parameter containing:
        tensor([0.7000], requires_grad=True)
        >>> optimizer.state[weight]["ax"]
        tensor([0.7500])

    References:
        - B. T. Polyak, A. B. Juditsky. Acceleration of stochastic approximation by averaging. 1992.

    See also:
        `torch.optim.swa_utils.AveragedModel`.
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
        """Updates the parameters once, from their gradients.

        Args:
            closure: Computes the loss and its gradients again, and returns the loss. It runs with gradients enabled.
                Default: ``None``.

        Returns:
            The result of ``closure``; ``None`` without one.
        """
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
