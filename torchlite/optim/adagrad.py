"""Adagrad optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

from ._step_helpers import (
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
    _scaler_tensors,
    _view_as_real,
)
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    r"""Adagrad: divides each gradient by the root of the sum of all squared gradients.

    .. math::

        \begin{aligned}
        g_t &= \nabla f_t(\theta_{t-1}) + \lambda \theta_{t-1} \\
        s_t &= s_{t-1} + g_t^2 \\
        \theta_t &= \theta_{t-1} - \frac{\gamma}{1 + (t - 1) \eta} \, \frac{g_t}{\sqrt{s_t} + \epsilon}
        \end{aligned}

    Here :math:`f_t` is the objective, :math:`\gamma` is ``lr`` and :math:`\lambda` is ``weight_decay``.
    A sparse gradient updates only the elements that it specifies.

    Args:
        params: Parameters to optimize: tensors, ``(name, tensor)`` pairs, or dicts that are parameter groups.
        lr: Learning rate :math:`\gamma`, a number or a one-element tensor; at least 0. Default: 1e-2.
        lr_decay: Decay :math:`\eta` of the learning rate; at least 0. Default: 0.
        weight_decay: Factor :math:`\lambda` of the L2 penalty; at least 0, and 0 for sparse gradients. Default: 0.
        initial_accumulator_value: The initial sum :math:`s_0`; at least 0. Default: 0.
        eps: Term :math:`\epsilon` of the denominator; at least 0. Default: 1e-10.
        foreach: Accepted for PyTorch's signature; the result is the same for all values. Excludes ``fused``. Default:
            ``None``.
        maximize: Whether to maximize the objective; the gradient is negated before all else. Default: ``False``.
        differentiable: Whether autograd records the step, so that gradients flow through it. Default: ``False``.
        fused: Whether the step applies the scale of a `torch.amp.GradScaler` in its kernel, and skips there if a
            gradient is infinite, without a read by the host. Parameters must be floating point. Excludes ``foreach``
            and ``differentiable``. Default: ``None``.

    Raises:
        ValueError: An option is out of range, or ``params`` is empty.
        RuntimeError: ``fused`` is combined with an option that it excludes; or ``weight_decay`` meets a sparse gradient
            (in `step`).

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.Adagrad([weight], lr=0.1)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight
        Parameter containing:
        tensor([0.9000, 0.9000], requires_grad=True)

    References:
        - J. Duchi, E. Hazan, Y. Singer. Adaptive subgradient methods for online learning and stochastic optimization.
          2011.
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
        if not 0.0 <= lr_decay:
            raise ValueError(f"Invalid lr_decay value: {lr_decay}")
        if not 0.0 <= initial_accumulator_value:
            raise ValueError(f"Invalid initial_accumulator_value value: {initial_accumulator_value}")
        names = "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused"
        super().__init__(params, _checked_options(locals(), names))
        _choose_implementation(self, foreach, fused, differentiable)
        for group in self.param_groups:
            for param in group["params"]:
                _init_state(self, group)(self.state[param], param, None)

    def share_memory(self) -> Any:
        """Moves the sums of squared gradients to memory that processes share."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

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
            scaler = _scaler_tensors(self, group)
            fused = _fused_gradients(self, number, group, _init_state(self, group), ("sum",))
            if fused is None:
                if not _is_step_skipped(self, group, _init_state(self, group), *scaler):
                    _single_tensor_step(self, group)
                continue
            plan, gradients = fused
            options = (
                plan.counted(scaler[1]),
                _get_value(group["lr"]),
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
        state["step"] = _init_step_count(group, param)
        state["sum"] = torch.full_like(param, complex(start, start) if param.is_complex() else start).detach()

    return init


def _single_tensor_step(optimizer, group):
    with torch.set_grad_enabled(group["differentiable"]):
        lr, eps, weight_decay = _get_value(group["lr"]), group["eps"], group["weight_decay"]
        for param, grad, state in _params_with_grad(optimizer, group, _init_state(optimizer, group), takes_sparse=True):
            step = _increment_step(state["step"])
            if weight_decay != 0:
                if grad.layout is not torch.strided:
                    raise RuntimeError("weight_decay option is not compatible with sparse gradients")
                grad = grad.add(param, alpha=weight_decay)
            rate = lr / (1 + (step - 1) * group["lr_decay"])
            if grad.layout is not torch.strided:
                _sparse_step(param, grad.coalesce(), state["sum"], rate, eps)
                continue
            param, grad, total = _view_as_real(param, grad, state["sum"])
            total.addcmul_(grad, grad, value=1)
            param.addcdiv_(grad, total.sqrt().add_(_nonzero_eps(eps, total.dtype)), value=-rate)


def _sparse_step(param, grad, total, rate, eps):
    """Step with a coalesced sparse gradient, which updates its specified elements only."""
    places, values = grad._indices(), grad._values()

    def at_places(values):
        return torch.sparse_coo_tensor(places, values, grad.shape)

    total.add_(at_places(values.pow(2)))
    size = total.sparse_mask(grad)._values().sqrt_().add_(_nonzero_eps(eps, total.dtype))
    param.add_(at_places(values / size), alpha=-rate)
