"""RMSprop optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

from ._step_helpers import (
    _add_missing_options,
    _checked_options,
    _evaluate_closure,
    _fused_gradients,
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


__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    r"""RMSprop: divides each gradient by the root of a running average of squared gradients.

    .. math::

        \begin{aligned}
        g_t &= \nabla f_t(\theta_{t-1}) + \lambda \theta_{t-1} \\
        v_t &= \alpha v_{t-1} + (1 - \alpha) g_t^2 \\
        b_t &= \mu b_{t-1} + \frac{g_t}{\sqrt{v_t} + \epsilon} \\
        \theta_t &= \theta_{t-1} - \gamma b_t
        \end{aligned}

    Here :math:`f_t` is the objective, :math:`\gamma` is ``lr`` and :math:`\lambda` is ``weight_decay``.
    With ``centered`` the root is of :math:`v_t - a_t^2`, an estimate of the variance;
    :math:`a_t = \alpha a_{t-1} + (1 - \alpha) g_t` is a running mean of the gradient.

    Args:
        params: Parameters to optimize: tensors, ``(name, tensor)`` pairs, or dicts that are parameter groups.
        lr: Learning rate :math:`\gamma`, a number or a one-element tensor; at least 0. Default: 1e-2.
        alpha: Decay rate :math:`\alpha` of the averages; at least 0. Default: 0.99.
        eps: Term :math:`\epsilon` of the denominator; at least 0. Default: 1e-8.
        weight_decay: Factor :math:`\lambda` of the L2 penalty; at least 0. Default: 0.
        momentum: Momentum :math:`\mu`; at least 0. Default: 0.
        centered: Whether to divide by the root of the variance instead of the mean square. Default: ``False``.
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
        >>> optimizer = torch.optim.RMSprop([weight], lr=0.01)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight
        Parameter containing:
        tensor([0.9000, 0.9000], requires_grad=True)

    References:
        - T. Tieleman, G. Hinton. Lecture 6.5: RMSprop. Neural networks for machine learning, 2012.
        - A. Graves. Generating sequences with recurrent neural networks. 2013 (``centered``).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0.0 <= alpha:
            raise ValueError(f"Invalid alpha value: {alpha}")
        names = "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"
        super().__init__(params, _checked_options(locals(), names))

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        _add_missing_options(
            self, momentum=0, centered=False, foreach=None, maximize=False, differentiable=False, capturable=False
        )

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
            names = (
                "square_avg",
                *(("momentum_buffer",) if group["momentum"] > 0 else ()),
                *(("grad_avg",) if group["centered"] else ()),
            )
            fused = _fused_gradients(self, number, group, _init_state(group), names)
            if fused is None:
                with torch.set_grad_enabled(group["differentiable"]):
                    for param, grad, state in _params_with_grad(self, group, _init_state(group)):
                        _update(group, param, grad, state)
                continue
            plan, gradients = fused
            plan.steps += 1
            options = (
                _get_value(group["lr"]),
                group["alpha"],
                group["eps"],
                group["momentum"],
                group["weight_decay"],
                group["maximize"],
            )
            plan.run("_fused_rmsprop", gradients, ("square_avg", "grad_avg", "momentum_buffer"), *options)
        return loss


def _init_state(group):
    def init(state, param, grad):
        state["step"] = _init_step_count(group, param)
        state["square_avg"] = _zeros_like(param)
        if group["momentum"] > 0:
            state["momentum_buffer"] = _zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = _zeros_like(param)

    return init


def _update(group, param, grad, state):
    lr, alpha = _get_value(group["lr"]), group["alpha"]
    state["step"] += 1
    if group["weight_decay"] != 0:
        grad = grad.add(param, alpha=group["weight_decay"])
    param, grad, square_avg, grad_avg, buffer = _view_as_real(
        param, grad, state["square_avg"], state.get("grad_avg"), state.get("momentum_buffer")
    )
    square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
    if group["centered"]:
        grad_avg.lerp_(grad, 1 - alpha)
        average = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt_()
    else:
        average = square_avg.sqrt()
    average = average.add_(_nonzero_eps(group["eps"], average.dtype))
    if group["momentum"] > 0:
        buffer.mul_(group["momentum"]).addcdiv_(grad, average)
        param.add_(buffer, alpha=-lr)
    else:
        param.addcdiv_(grad, average, value=-lr)
