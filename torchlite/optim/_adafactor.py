"""Adafactor optimizer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torchlite as torch

from .optimizer import Optimizer, _get_value, _increment_step, _options, _run_single_tensor, _scalar_tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Adaptive steps with a factored second moment: a matrix stores row and column averages (Shazeer and Stern 2018).

    beta2_decay: the second moment's weight is 1 - step^beta2_decay. eps: floors of the squared gradient (None: the
    dtype's machine epsilon) and of the parameter's scale. d: the update's root mean square is clipped to it.
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
        """Update the parameters once. Returns the closure's loss."""
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
