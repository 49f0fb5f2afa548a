"""A batch norm within a layer; its running statistics scale the weight before it is rounded (Krishnamoorthi, 2018)."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import init


class NormInside:
    """Base of fused layers with a batch norm ``bn``. A frozen norm uses its running statistics in training."""

    bn: Any
    weight: Any
    bias: Any
    weight_fake_quant: Any
    training: bool
    children: Any

    def _begin(self, freeze_bn: bool) -> None:
        self.freeze_bn = freeze_bn if self.training else True
        if self.freeze_bn:
            self.freeze_bn_stats()
        else:
            self.update_bn_stats()

    def reset_running_stats(self) -> None:
        """Forget the running statistics."""
        self.bn.reset_running_stats()

    def reset_bn_parameters(self) -> None:
        """Forget the running statistics and draw the norm's weight."""
        self.bn.reset_running_stats()
        init.uniform_(self.bn.weight)
        init.zeros_(self.bn.bias)

    def update_bn_stats(self) -> Any:
        """Let training update the running statistics."""
        self.freeze_bn = False
        self.bn.training = True
        return self

    def freeze_bn_stats(self) -> Any:
        """Let training use the running statistics as they are."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def _scale(self) -> Tensor:
        return self.bn.weight / torch.sqrt(self.bn.running_var + self.bn.eps)

    def _scaled_weight(self, scale: Tensor) -> Tensor:
        return self.weight_fake_quant(self.weight * scale.reshape(-1, *(1,) * (self.weight.ndim - 1)))

    def _normed(self, product: Tensor, scale: Tensor) -> Tensor:
        """The norm of a product with the scaled weight."""
        shape = (1, -1, *(1,) * (self.weight.ndim - 2))
        product = product / scale.reshape(shape)
        return self.bn(product if self.bias is None else product + self.bias.reshape(shape))

    def train(self, mode: bool = True) -> Any:
        """Sets the mode; a frozen norm keeps its own.

        Args:
            mode: Whether the layer trains. Default: ``True``.
        """
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self

    def _take(self, layer: Any, bn: Any) -> Any:
        """Have the parameters and statistics of a float layer and its norm."""
        self.weight, self.bias = layer.weight, layer.bias
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(self.bn, name, getattr(bn, name))
        return self
