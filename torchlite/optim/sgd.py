"""Stochastic gradient descent (SGD) optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

from ._step_helpers import (
    _add_missing_options,
    _choose_implementation,
    _evaluate_closure,
    _fused_gradients,
    _get_value,
    _is_step_skipped,
    _options,
    _params_with_grad,
    _scaler_tensors,
    _zeros_like,
)
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["SGD"]

_NONE, _MOMENTUM = (), ("momentum_buffer",)


class SGD(Optimizer):
    r"""Stochastic gradient descent, optionally with momentum.

    .. math::

        \begin{aligned}
        g_t &= \nabla f_t(\theta_{t-1}) + \lambda \theta_{t-1} \\
        b_t &= \mu b_{t-1} + (1 - \tau) g_t, \quad b_1 = g_1 \\
        \theta_t &= \theta_{t-1} - \gamma b_t
        \end{aligned}

    Here :math:`f_t` is the objective, :math:`\gamma` is ``lr`` and :math:`\lambda` is ``weight_decay``.
    With ``nesterov`` the last line is :math:`\theta_t = \theta_{t-1} - \gamma (g_t + \mu b_t)`. Without momentum it is
    :math:`\theta_t = \theta_{t-1} - \gamma g_t`. Gradients may be sparse.

    Args:
        params: Parameters to optimize: tensors, ``(name, tensor)`` pairs, or dicts that are parameter groups.
        lr: Learning rate :math:`\gamma`, a number or a one-element tensor; at least 0. Default: 1e-3.
        momentum: Momentum :math:`\mu`; at least 0. Default: 0.
        dampening: Dampening :math:`\tau` of the momentum. Default: 0.
        weight_decay: Factor :math:`\lambda` of the L2 penalty; at least 0. Default: 0.
        nesterov: Whether to use Nesterov momentum; it needs momentum and no dampening. Default: ``False``.
        maximize: Whether to maximize the objective; the gradient is negated before all else. Default: ``False``.
        foreach: Accepted for PyTorch's signature; the result is the same for all values. Excludes ``fused``. Default:
            ``None``.
        differentiable: Whether autograd records the step, so that gradients flow through it. Default: ``False``.
        fused: Whether the step applies the scale of a `torch.amp.GradScaler` in its kernel, and skips there if a
            gradient is infinite, without a read by the host. Parameters must be floating point. Excludes ``foreach``
            and ``differentiable``. Default: ``None``.

    Raises:
        ValueError: An option is out of range, ``params`` is empty, or ``nesterov`` has no momentum or has dampening.
        RuntimeError: ``fused`` is combined with an option that it excludes.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight
        Parameter containing:
        tensor([0.9000, 0.9000], requires_grad=True)

    References:
        - B. T. Polyak. Some methods of speeding up the convergence of iteration methods. 1964 (momentum).
        - I. Sutskever, J. Martens, G. Dahl, G. Hinton. On the importance of initialization and momentum in deep
          learning. 2013 (``nesterov``).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if isinstance(lr, torch.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for name, value in (("learning rate", lr), ("momentum value", momentum), ("weight_decay value", weight_decay)):
            if value < 0.0:
                raise ValueError(f"Invalid {name}: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        names = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"
        super().__init__(params, _options(locals(), names))
        _choose_implementation(self, foreach, fused, differentiable)

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        _add_missing_options(self, nesterov=False, maximize=False, foreach=None, differentiable=False, fused=False)

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
            scaler, names = _scaler_tensors(self, group), _MOMENTUM if group["momentum"] != 0 else _NONE
            # The first step creates the buffers from the gradients, without a multi-tensor kernel, except if a scaler
            # may skip it.
            first = scaler[1] is not None and bool(names) and _is_first_step(self, number, group)
            fused = _fused_gradients(self, number, group, _init_zero_momentum if first else _init_empty_state, names)
            if fused is None:
                if not _is_step_skipped(self, group, _init_empty_state, *scaler):
                    _single_tensor_step(self, group)
                continue
            plan, gradients = fused
            options = (
                first,
                _get_value(group["lr"]),
                group["momentum"],
                group["dampening"],
                _get_value(group["weight_decay"]),
                group["nesterov"],
                group["maximize"],
            )
            plan.run("_fused_sgd", gradients, ("momentum_buffer",), *options, scaler=scaler)
        return loss


def _is_first_step(optimizer, number, group):
    """True if no parameter has a momentum buffer."""
    if number in optimizer.__dict__.get("_plans", ()):
        return False
    return all(
        optimizer.state[param].get("momentum_buffer") is None for param in group["params"] if param.grad is not None
    )


def _single_tensor_step(optimizer, group):
    lr = group["lr"] if group["differentiable"] else _get_value(group["lr"])
    momentum, weight_decay = group["momentum"], _get_value(group["weight_decay"])
    with torch.set_grad_enabled(group["differentiable"]):
        for param, grad, state in _params_with_grad(
            optimizer, group, None if momentum == 0 else _init_empty_state, takes_sparse=True
        ):
            if weight_decay != 0:
                grad = grad.add(param, alpha=weight_decay)
            if momentum != 0:
                buffer = state.get("momentum_buffer")
                if buffer is None:
                    buffer = state["momentum_buffer"] = torch.clone(grad).detach()
                else:
                    buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
                grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
            if isinstance(lr, torch.Tensor):
                param.sub_(grad * lr)
            else:
                param.add_(grad, alpha=-lr)


def _init_empty_state(state, param, grad):
    """Initialise the state of SGD, which is empty."""


def _init_zero_momentum(state, param, grad):
    """Initialise the state with a zero momentum buffer, for a first step that may be skipped."""
    state["momentum_buffer"] = _zeros_like(param)
