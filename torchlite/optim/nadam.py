"""NAdam optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

from ._step_helpers import (
    _addcdiv_scaled,
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


__all__ = ["NAdam"]


class NAdam(Optimizer):
    r"""NAdam: Adam with Nesterov momentum.

    .. math::

        \begin{aligned}
        g_t &= \nabla f_t(\theta_{t-1}) + \lambda \theta_{t-1} \\
        \mu_t &= \beta_1 \left( 1 - \frac{1}{2} \, 0.96^{t \psi} \right) \\
        m_t &= \beta_1 m_{t-1} + (1 - \beta_1) g_t \\
        v_t &= \beta_2 v_{t-1} + (1 - \beta_2) g_t^2 \\
        \hat{m}_t &= \frac{\mu_{t+1} m_t}{1 - \prod_{i=1}^{t+1} \mu_i}
        + \frac{(1 - \mu_t) g_t}{1 - \prod_{i=1}^{t} \mu_i} \\
        \theta_t &= \theta_{t-1} - \gamma \, \frac{\hat{m}_t}{\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}
        \end{aligned}

    Here :math:`f_t` is the objective, :math:`\gamma` is ``lr`` and :math:`\lambda` is ``weight_decay``.

    Args:
        params: Parameters to optimize: tensors, ``(name, tensor)`` pairs, or dicts that are parameter groups.
        lr: Learning rate :math:`\gamma`, a number or a one-element tensor; at least 0. Default: 2e-3.
        betas: Decay rates :math:`\beta_1` and :math:`\beta_2` of the two averages; each in [0, 1). Default: (0.9,
            0.999).
        eps: Term :math:`\epsilon` of the denominator; at least 0. Default: 1e-8.
        weight_decay: Factor :math:`\lambda` of the L2 penalty; at least 0. Default: 0.
        momentum_decay: Exponent :math:`\psi` of the momentum's schedule; at least 0. Default: 4e-3.
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
        >>> optimizer = torch.optim.NAdam([weight], lr=0.1)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight
        Parameter containing:
        tensor([0.8944, 0.8944], requires_grad=True)

    References:
        - T. Dozat. Incorporating Nesterov momentum into Adam. 2016.

    See also:
        `Adam`.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0.0 <= momentum_decay:
            raise ValueError(f"Invalid momentum_decay value: {momentum_decay}")
        names = (
            "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach capturable differentiable"
        )
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
    state["mu_product"] = _init_step_count(group, param, 1.0)
    state["exp_avg"] = _zeros_like(param)
    state["exp_avg_sq"] = _zeros_like(param)


def _update(group, param, grad, state):
    lr, (beta1, beta2), eps = _get_value(group["lr"]), group["betas"], group["eps"]
    step = _increment_step(state["step"], group["capturable"])
    grad = _apply_weight_decay(group, param, grad, lr)
    param, grad, exp_avg, exp_avg_sq = _view_as_real(param, grad, state["exp_avg"], state["exp_avg_sq"])
    mu = beta1 * (1.0 - 0.5 * _power(0.96, step * group["momentum_decay"]))
    mu_next = beta1 * (1.0 - 0.5 * _power(0.96, (step + 1) * group["momentum_decay"]))
    state["mu_product"] *= mu
    product = state["mu_product"] if isinstance(step, torch.Tensor) else state["mu_product"].item()
    exp_avg.lerp_(grad, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    denominator = exp_avg_sq.div(_bias_correction(beta2, step)).sqrt_().add_(_nonzero_eps(eps, exp_avg_sq.dtype))
    _addcdiv_scaled(param, lr * (1.0 - mu) / (1.0 - product), grad, denominator)
    _addcdiv_scaled(param, lr * mu_next / (1.0 - product * mu_next), exp_avg, denominator)
