"""SparseAdam optimizer, for sparse gradients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torchlite as torch

from ._step_helpers import _check_betas, _evaluate_closure, _get_value, _nonzero_eps
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    r"""Adam for sparse gradients: only the elements that a gradient specifies move, and only their averages.

    .. math::

        \begin{aligned}
        m_t &= \beta_1 m_{t-1} + (1 - \beta_1) g_t \\
        v_t &= \beta_2 v_{t-1} + (1 - \beta_2) g_t^2 \\
        \theta_t &= \theta_{t-1} - \gamma \, \frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t} \,
        \frac{m_t}{\sqrt{v_t} + \epsilon}
        \end{aligned}

    Here :math:`g_t` are the specified values of the gradient and :math:`\gamma` is ``lr``. The step :math:`t` counts
    all steps of the parameter. A `torch.nn.Embedding` with ``sparse=True`` has such gradients.

    Args:
        params: Dense real parameters: tensors, ``(name, tensor)`` pairs, or dicts that are parameter groups.
        lr: Learning rate :math:`\gamma`, a number or a one-element tensor; greater than 0. Default: 1e-3.
        betas: Decay rates :math:`\beta_1` and :math:`\beta_2` of the two averages; each in [0, 1). Default: (0.9,
            0.999).
        eps: Term :math:`\epsilon` of the denominator; greater than 0. Default: 1e-8.
        maximize: Whether to maximize the objective; the gradient is negated before all else. Default: ``False``.

    Raises:
        ValueError: An option is out of range, ``params`` is empty, or a parameter is sparse or complex.
        RuntimeError: A gradient is dense (in `step`).

    Example:
        >>> table = torch.nn.Embedding(3, 2, sparse=True)
        >>> _ = torch.nn.init.ones_(table.weight)
        >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        >>> table(torch.tensor([1])).sum().backward()
        >>> optimizer.step()
        >>> table.weight.detach()
        tensor([[1.0000, 1.0000],
                [0.9000, 0.9000],
                [1.0000, 1.0000]])

    See also:
        `Adam`.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, torch.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        _check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        for name, refused, what in (
            ("Sparse", lambda param: param.layout is not torch.strided, "requires dense parameter tensors"),
            ("Complex", torch.Tensor.is_complex, "does not support complex parameters"),
        ):
            found = [
                [number, place]
                for number, group in enumerate(self.param_groups)
                for place, param in enumerate(group["params"])
                if refused(param)
            ]
            if found:
                raise ValueError(f"{name} params at indices {found}: SparseAdam {what}")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters once, from their gradients.

        Args:
            closure: Computes the loss and its gradients again, and returns the loss. It runs with gradients enabled.
                Default: ``None``.

        Returns:
            The result of ``closure``; ``None`` without one.

        Raises:
            RuntimeError: A gradient is dense.
        """
        loss = _evaluate_closure(closure)
        with torch.no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    grad = param.grad
                    if grad is None:
                        continue
                    if not grad.is_sparse:
                        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
                    state = self.state[param]
                    if not state:
                        state["step"] = 0
                        state["exp_avg"] = torch.zeros_like(param, memory_format=torch.preserve_format)
                        state["exp_avg_sq"] = torch.zeros_like(param, memory_format=torch.preserve_format)
                    _update(group, param, grad.coalesce(), state)
        return loss


def _update(group, param, grad, state):
    state["step"] += 1
    step, (beta1, beta2) = state["step"], group["betas"]
    rows = tuple(grad._indices())
    values = -grad._values() if group["maximize"] else grad._values()
    if values.numel() == 0:
        return
    first = state["exp_avg"][rows].lerp(values, 1 - beta1)
    second = state["exp_avg_sq"][rows].lerp(values * values, 1 - beta2)
    state["exp_avg"][rows] = first
    state["exp_avg_sq"][rows] = second
    size = _get_value(group["lr"]) * math.sqrt(1 - beta2**step) / (1 - beta1**step)
    param[rows] = param[rows] - size * first / (second.sqrt() + _nonzero_eps(group["eps"], second.dtype))
