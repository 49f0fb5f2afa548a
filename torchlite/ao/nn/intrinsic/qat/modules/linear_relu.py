"""The linear layer with ReLU whose weight is rounded while it is trained."""

from __future__ import annotations

from typing import Any

from torchlite import Tensor, nn
from torchlite.ao.nn import intrinsic as nni
from torchlite.ao.nn.intrinsic.modules.fused import _FusedModule
from torchlite.ao.nn.qat.modules import linear
from torchlite.nn import functional as F

__all__ = ["LinearReLU"]


class LinearReLU(linear.Linear, _FusedModule):
    """A `torch.nn.Linear` with ReLU, whose weight is rounded to levels by fake quantization.

    Args:
        in_features: Size of the input.
        out_features: Size of the output.
        bias: Whether a bias is added. Default: ``True``.
        qconfig: The configuration; its ``weight`` makes ``weight_fake_quant``.

    Raises:
        AssertionError: There is no configuration.

    Example:
        >>> qconfig = torch.ao.quantization.get_default_qat_qconfig()
        >>> torch.ao.nn.intrinsic.qat.LinearReLU(2, 3, qconfig=qconfig)(torch.ones(4, 2)).shape
        torch.Size([4, 3])
    """

    _FLOAT_MODULE: Any = nni.LinearReLU  # type: ignore[attr-defined]

    def __init__(self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None) -> None:
        linear.Linear.__init__(self, in_features, out_features, bias, qconfig)

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(F.linear(input, self.weight_fake_quant(self.weight), self.bias))

    def to_float(self) -> Any:
        """The container of float layers with copies of the parameters."""
        return self._FLOAT_MODULE(super().to_float(), nn.ReLU())
