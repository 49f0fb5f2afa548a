"""Rprop optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

from ._step_helpers import (
    _checked_options,
    _evaluate_closure,
    _get_value,
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


__all__ = ["Rprop"]


class Rprop(Optimizer):
    r"""Resilient backpropagation: steps by the sign of the gradient, with an adaptive step size for each element.

    .. math::

        \begin{aligned}
        s_t &= \operatorname{clip}(s_{t-1} \, k_t, s_{\min}, s_{\max}), \quad
        k_t = \begin{cases}
        \eta^+ & \text{if } g_t g_{t-1} > 0 \\
        \eta^- & \text{if } g_t g_{t-1} < 0 \\
        1 & \text{else}
        \end{cases} \\
        \theta_t &= \theta_{t-1} - s_t \operatorname{sign}(g_t)
        \end{aligned}

    Here :math:`g_t` is the gradient; where its sign has changed, 0 replaces it, so that the element waits for one step.
    The first step size is ``lr``. The method is for gradients of the full batch: noise changes signs.

    Args:
        params: Parameters to optimize: tensors, ``(name, tensor)`` pairs, or dicts that are parameter groups.
        lr: Initial step size :math:`s_0`, a number or a one-element tensor; at least 0. Default: 1e-2.
        etas: Factors :math:`(\eta^-, \eta^+)`, with :math:`0 < \eta^- < 1 < \eta^+`. Default: (0.5, 1.2).
        step_sizes: Bounds :math:`(s_{\min}, s_{\max})` of the step sizes. Default: (1e-6, 50).
        capturable: Whether state scalars stay on the parameter's device, so that a CUDA graph can capture the step.
            Default: ``False``.
        foreach: Accepted for PyTorch's signature; the result is the same for all values. Default: ``None``.
        maximize: Whether to maximize the objective; the gradient is negated before all else. Default: ``False``.
        differentiable: Whether autograd records the step, so that gradients flow through it. Default: ``False``.

    Raises:
        ValueError: An option is out of range, or ``params`` is empty.
        RuntimeError: A gradient is sparse (in `step`).

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.Rprop([weight], lr=0.1)
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     weight.sum().backward()
        ...     optimizer.step()
        >>> weight
        Parameter containing:
        tensor([0.7800, 0.7800], requires_grad=True)

    References:
        - M. Riedmiller, H. Braun. A direct adaptive method for faster backpropagation learning: The RPROP algorithm.
          1993.
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
