"""AdamW optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .adam import Adam

if TYPE_CHECKING:
    from torchlite import Tensor

    from .optimizer import ParamsT


__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam with weight decay that shrinks the parameters directly, outside of the moments (Loshchilov and
    Hutter 2019).
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
