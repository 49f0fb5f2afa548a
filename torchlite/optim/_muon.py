"""Muon optimizer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torchlite as torch

from ._step_helpers import _evaluate_closure, _get_value, _options, _params_with_grad
from .optimizer import Optimizer

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
    r"""Muon: momentum whose update is orthogonalized, for the weight matrices of hidden layers.

    .. math::

        \begin{aligned}
        b_t &= \mu b_{t-1} + (1 - \mu) g_t \\
        u_t &= (1 - \mu) g_t + \mu b_t \\
        \theta_t &= (1 - \gamma \lambda) \theta_{t-1} - \gamma s \, \operatorname{NS}(u_t)
        \end{aligned}

    Here :math:`g_t` is the gradient, and :math:`u_t = b_t` without ``nesterov``. :math:`\operatorname{NS}` moves all
    singular values towards 1 by the Newton-Schulz iteration :math:`X \leftarrow a X + (b A + c A^2) X` with
    :math:`A = X X^{\mathsf{T}}`, from :math:`X = u_t / \|u_t\|`. It computes with the precision of bfloat16. Other
    parameters, such as biases and embeddings, need another optimizer.

    Args:
        params: Matrices to optimize: tensors, ``(name, tensor)`` pairs, or dicts that are parameter groups.
        lr: Learning rate :math:`\gamma`, a number or a one-element tensor; at least 0. Default: 1e-3.
        weight_decay: Factor :math:`\lambda` of decoupled weight decay; at least 0. Default: 0.1.
        momentum: Momentum :math:`\mu`; at least 0. Default: 0.95.
        nesterov: Whether to use Nesterov momentum. Default: ``True``.
        ns_coefficients: Coefficients :math:`(a, b, c)` of the iteration. Default: (3.4445, -4.775, 2.0315).
        eps: Least norm by which :math:`u_t` is divided. Default: 1e-7.
        ns_steps: Number of iterations; less than 100. Default: 5.
        adjust_lr_fn: The scale :math:`s` for a matrix of m rows and n columns. ``"original"`` or ``None``:
            ``sqrt(max(1, m / n))``. ``"match_rms_adamw"``: ``0.2 * sqrt(max(m, n))``, with which rates tuned for
            `AdamW` fit. Default: ``None``.

    Raises:
        ValueError: An option is out of range, ``params`` is empty, or a parameter has not 2 dimensions.
        RuntimeError: A parameter is complex, or its gradient is sparse (in `step`).

    Example:
        >>> layer = torch.nn.Linear(4, 4)
        >>> optimizer = torch.optim.Muon([layer.weight], lr=0.02)
        >>> others = torch.optim.AdamW([layer.bias])
        >>> before = layer.weight.detach().clone()
        >>> layer(torch.eye(4)).square().sum().backward()
        >>> optimizer.step()
        >>> torch.equal(layer.weight, before)
        False

    References:
        - K. Jordan, Y. Jin, V. Boza, J. You, F. Cesista, L. Newhouse, J. Bernstein. Muon: An optimizer for hidden
          layers in neural networks. 2024.
        - J. Liu et al. Muon is scalable for LLM training. 2025 (``"match_rms_adamw"``).
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
        """Updates the parameters once, from their gradients.

        Args:
            closure: Computes the loss and its gradients again, and returns the loss. It runs with gradients enabled.
                Default: ``None``.

        Returns:
            The result of ``closure``; ``None`` without one.

        Raises:
            RuntimeError: A parameter is complex.
            ValueError: ``ns_steps`` is 100 or more.
        """
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
