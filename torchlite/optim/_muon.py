"""Muon optimizer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torchlite as torch

from .optimizer import Optimizer, _evaluate_closure, _get_value, _options, _params_with_grad

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["Muon"]


def _zeropower_via_newtonschulz(gradient, coefficients, steps, eps):
    """The nearest semi-orthogonal matrix, roughly: Newton-Schulz iterations of a quintic that moves all singular values
    towards 1, in bfloat16.
    """
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    a, b, c = coefficients
    tall = gradient.size(0) > gradient.size(1)
    x = _round_to_bfloat16(gradient.T if tall else gradient)
    x = _round_to_bfloat16(x / _round_to_bfloat16(_round_to_bfloat16(x.norm()).clamp(min=eps)))
    for _ in range(steps):
        gram = _round_to_bfloat16(x @ x.T)
        x = _round_to_bfloat16(
            torch.addmm(x, _round_to_bfloat16(torch.addmm(gram, gram, gram, beta=b, alpha=c)), x, beta=a)
        )
    return x.T if tall else x


def _round_to_bfloat16(x):
    """float32 with the precision of bfloat16: products are summed in float32 and rounded once, as matrix units do."""
    return x.to(torch.bfloat16).to(torch.float32)


def _adjust_lr(lr, how, shape):
    rows, columns = shape[:2]
    if how is None or how == "original":
        return lr * math.sqrt(max(1, rows / columns))
    return lr * 0.2 * math.sqrt(max(rows, columns))


class Muon(Optimizer):
    """Momentum with orthogonalised updates, for the matrices of hidden layers (Jordan et al. 2024).

    adjust_lr_fn: "original" (scale by sqrt(max(1, rows / columns))) or "match_rms_adamw" (0.2 sqrt(max(rows,
    columns))).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: Any = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: Any = None,
    ) -> None:
        if isinstance(lr, torch.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for name, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not 0.0 <= value:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        if len(ns_coefficients) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        names = "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn"
        super().__init__(params, _options(locals(), names))
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                    )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once. Returns the closure's loss."""
        loss = _evaluate_closure(closure)
        with torch.no_grad():
            for group in self.param_groups:
                lr, momentum = _get_value(group["lr"]), group["momentum"]
                for param, grad, state in _params_with_grad(self, group, _init_state, refuses_complex=True):
                    buffer = state["momentum_buffer"]
                    buffer.lerp_(grad, 1 - momentum)
                    update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
                    update = _zeropower_via_newtonschulz(
                        update, group["ns_coefficients"], group["ns_steps"], group["eps"]
                    )
                    param.mul_(1 - lr * group["weight_decay"])
                    param.add_(update.to(param.dtype), alpha=-_adjust_lr(lr, group["adjust_lr_fn"], param.shape))
        return loss


def _init_state(state, param, grad):
    if param.is_complex():
        raise RuntimeError("Muon does not support complex parameters")
    state["momentum_buffer"] = torch.zeros_like(grad, memory_format=torch.preserve_format)
