"""The linear layer with a batch norm whose weight is rounded while it is trained."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor, nn
from torchlite.ao.nn import intrinsic as nni
from torchlite.ao.nn.intrinsic.modules.fused import _FusedModule
from torchlite.ao.nn.qat.modules._from_float import check_source, configured
from torchlite.nn import functional as F
from torchlite.nn.utils.fusion import fuse_linear_bn_weights

from ._frozen_norm import NormInside

__all__ = ["LinearBn1d"]


class LinearBn1d(NormInside, nn.Linear, _FusedModule):
    """A `torch.nn.Linear` with a batch norm, whose weight is rounded to levels by fake quantization.

    Args:
        in_features: Size of the input.
        out_features: Size of the output.
        bias: Whether a bias is added. Default: ``True``.
        eps: The term in the norm's denominator. Default: 1e-05.
        momentum: The weight of a batch in the running statistics. Default: 0.1.
        freeze_bn: Whether training leaves the running statistics as they are. Default: ``False``.
        qconfig: The configuration; its ``weight`` makes ``weight_fake_quant``.

    Raises:
        AssertionError: There is no configuration.

    Example:
        >>> qconfig = torch.ao.quantization.get_default_qat_qconfig("qnnpack")
        >>> torch.ao.nn.intrinsic.qat.LinearBn1d(2, 3, qconfig=qconfig)(torch.ones(4, 2)).shape
        torch.Size([4, 3])
    """

    _FLOAT_MODULE: Any = nni.LinearBn1d  # type: ignore[attr-defined]

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, eps: float = 1e-05, momentum: float = 0.1,
        freeze_bn: bool = False, qconfig: Any = None,
    ) -> None:  # fmt: skip
        nn.Linear.__init__(self, in_features, out_features, bias)
        self.qconfig = configured(qconfig)
        self.freeze_bn = False
        self.bn = nn.BatchNorm1d(out_features, eps, momentum, True, True)
        self.weight_fake_quant = qconfig.weight()
        self.reset_bn_parameters()
        self._begin(freeze_bn)

    def forward(self, input: Tensor) -> Tensor:  # type: ignore[override]
        scale = self._scale()
        weight = self._scaled_weight(scale)
        zeros = torch.zeros(self.out_features, device=weight.device)
        return self._normed(F.linear(input, weight, zeros), scale)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for a container of float layers, whose parameters it has.

        Args:
            mod: The container, with a ``qconfig``.
            use_precomputed_fake_quant: No effect: a float layer has no fake quantizer yet.
        """
        qconfig, (linear, bn) = check_source(cls, mod), (mod[0], mod[1])
        made = cls(
            linear.in_features, linear.out_features, linear.bias is not None, bn.eps, bn.momentum, False, qconfig
        )
        return made._take(linear, bn)

    def to_float(self) -> Any:
        """The float layer with the batch norm folded into copies of its parameters."""
        linear, bn = nn.Linear(self.in_features, self.out_features), self.bn
        linear.weight, linear.bias = fuse_linear_bn_weights(
            self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )
        return linear
