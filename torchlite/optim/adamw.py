"""AdamW optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .adam import Adam

if TYPE_CHECKING:
    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["AdamW"]


class AdamW(Adam):
    r"""Adam with decoupled weight decay, which shrinks the parameters and does not enter the averages.

    .. math::

        \begin{aligned}
        g_t &= \nabla f_t(\theta_{t-1}) \\
        m_t &= \beta_1 m_{t-1} + (1 - \beta_1) g_t \\
        v_t &= \beta_2 v_{t-1} + (1 - \beta_2) g_t^2 \\
        \theta_t &= (1 - \gamma \lambda) \theta_{t-1}
        - \gamma \, \frac{m_t / (1 - \beta_1^t)}{\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}
        \end{aligned}

    Here :math:`f_t` is the objective, :math:`\gamma` is ``lr`` and :math:`\lambda` is ``weight_decay``.
    The class is `Adam` with ``decoupled_weight_decay=True``.

    Args:
        params: Parameters to optimize: tensors, ``(name, tensor)`` pairs, or dicts that are parameter groups.
        lr: Learning rate :math:`\gamma`, a number or a one-element tensor; at least 0. Default: 1e-3.
        betas: Decay rates :math:`\beta_1` and :math:`\beta_2` of the two averages; each in [0, 1). Two floats or two
            one-element tensors. Default: (0.9, 0.999).
        eps: Term :math:`\epsilon` of the denominator; at least 0. Default: 1e-8.
        weight_decay: Factor :math:`\lambda` of the decay; at least 0. Default: 1e-2.
        amsgrad: Whether the largest :math:`v` so far replaces :math:`v_t` in the denominator. Default: ``False``.
        maximize: Whether to maximize the objective; the gradient is negated before all else. Default: ``False``.
        foreach: Accepted for PyTorch's signature; the result is the same for all values. Excludes ``fused``. Default:
            ``None``.
        capturable: Whether state scalars stay on the parameter's device, so that a CUDA graph can capture the step.
            Default: ``False``.
        differentiable: Whether autograd records the step, so that gradients flow through it. Default: ``False``.
        fused: As in `Adam`. Default: ``None``.

    Raises:
        ValueError: An option is out of range, ``params`` is empty, or ``lr`` or ``betas`` is a tensor with ``foreach``
            and without ``capturable``.
        RuntimeError: ``fused`` is combined with an option that it excludes; or a gradient is sparse (in `step`).

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.AdamW([weight], lr=0.1, weight_decay=0.5)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight
        Parameter containing:
        tensor([0.8500, 0.8500], requires_grad=True)

    References:
        - I. Loshchilov, F. Hutter. Decoupled weight decay regularization. 2019.

    See also:
        `Adam`.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
