"""Adafactor optimizer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torchlite as torch

from ._step_helpers import _get_value, _increment_step, _options, _run_single_tensor, _scalar_tensor
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    r"""Adafactor: adaptive steps with a factored second moment, which needs little memory.

    .. math::

        \begin{aligned}
        \beta_t &= 1 - t^\tau, \quad \alpha_t = \max(\epsilon_2, \operatorname{RMS}(\theta_{t-1}))
        \min(\gamma, 1 / \sqrt{t}) \\
        R_t &= \beta_t R_{t-1} + (1 - \beta_t) \operatorname{mean}_j(G_t^2) \\
        C_t &= \beta_t C_{t-1} + (1 - \beta_t) \operatorname{mean}_i(G_t^2) \\
        V_t &= \frac{R_t C_t}{\max(\operatorname{mean}_i(R_t), \epsilon_1)} \\
        U_t &= \frac{G_t}{\max(\sqrt{V_t}, \epsilon_1)} \\
        \theta_t &= (1 - \gamma \lambda) \theta_{t-1} - \alpha_t \frac{U_t}{\max(1, \operatorname{RMS}(U_t) / d)}
        \end{aligned}

    Here :math:`G_t` is the gradient, :math:`\operatorname{mean}_i` is over rows and :math:`\operatorname{mean}_j` over
    columns. A matrix stores one average for each row and each column; leading dimensions are batches of matrices. A
    parameter with fewer than 2 dimensions stores the average :math:`V_t` of all its elements' squares.

    Args:
        params: Parameters to optimize: tensors, ``(name, tensor)`` pairs, or dicts that are parameter groups.
        lr: Largest relative step :math:`\gamma`, a number or a one-element tensor; at least 0. Default: 1e-2.
        beta2_decay: Exponent :math:`\tau` of the averages' decay rate; at most 0. Default: -0.8.
        eps: Floors :math:`\epsilon_1` of the denominators and :math:`\epsilon_2` of the parameter's root mean square.
            ``None`` for the first is the dtype's machine epsilon. Default: (``None``, 1e-3).
        d: Largest root mean square of the update :math:`U_t`; at least 1. Default: 1.
        weight_decay: Factor :math:`\lambda` of decoupled weight decay; at least 0. Default: 0.
        foreach: Accepted for PyTorch's signature; the result is the same for all values. Default: ``None``.
        maximize: Whether to maximize the objective; the gradient is negated before all else. Default: ``False``.

    Raises:
        ValueError: An option is out of range, or ``params`` is empty.
        RuntimeError: A parameter is complex, or its gradient is sparse (in `step`).

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2, 3))
        >>> optimizer = torch.optim.Adafactor([weight])
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight
        Parameter containing:
        tensor([[0.9900, 0.9900, 0.9900],
                [0.9900, 0.9900, 0.9900]], requires_grad=True)
        >>> state = optimizer.state[weight]
        >>> state["row_var"].shape, state["col_var"].shape
        (torch.Size([2, 1]), torch.Size([1, 3]))

    References:
        - N. Shazeer, M. Stern. Adafactor: Adaptive learning rates with sublinear memory cost. 2018.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, torch.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, _options(locals(), "lr beta2_decay eps d weight_decay foreach maximize"))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters once, from their gradients.

        Args:
            closure: Computes the loss and its gradients again, and returns the loss. It runs with gradients enabled.
                Default: ``None``.

        Returns:
            The result of ``closure``; ``None`` without one.

        Raises:
            RuntimeError: A parameter is complex.
        """
        return _run_single_tensor(self, closure, _init_state, _update, refuses_complex=True)


def _init_state(group, state, param, grad):
    if param.is_complex():
        raise RuntimeError("Adafactor does not support complex parameters")
    state["step"] = _scalar_tensor()
    if grad.dim() > 1:
        state["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
        state["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.shape[-1]))
    else:
        state["variance"] = torch.zeros_like(grad, memory_format=torch.preserve_format)


def _update(group, param, grad, state):
    step, lr, (eps1, eps2) = _increment_step(state["step"]), _get_value(group["lr"]), group["eps"]
    if eps1 is None:
        eps1 = torch.finfo(param.dtype).eps
    weight = step ** group["beta2_decay"]
    scale = max(eps2, param.norm(2).item() / math.sqrt(param.numel())) * min(lr, 1 / math.sqrt(step))
    if group["weight_decay"] != 0:
        param.mul_(1 - lr * group["weight_decay"])
    if grad.dim() > 1:
        row, column = state["row_var"], state["col_var"]
        row.lerp_(grad.square().mean(dim=-1, keepdim=True), weight)
        column.lerp_(grad.square().mean(dim=-2, keepdim=True), weight)
        variance = row @ column
        variance.div_(row.mean(dim=-2, keepdim=True).clamp_(min=eps1))
    else:
        state["variance"].lerp_(grad * grad, weight)
        variance = state["variance"].clone()
    update = variance.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
    size = max(1.0, update.norm(2).item() / (math.sqrt(update.numel()) * group["d"]))
    param.add_(update, alpha=-scale / size)
