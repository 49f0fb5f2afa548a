"""Layers with an activation that quantize float inputs by their range in each call."""

from __future__ import annotations

from typing import Any

from torchlite.ao.nn.intrinsic.modules import fused as nni
from torchlite.ao.nn.quantized.dynamic.modules import linear

__all__ = ["LinearReLU"]


class LinearReLU(linear.Linear):
    """A linear layer with a weight of eight bits, for float inputs, and the positive part of its result.

    Args:
        in_features: Size of the input's last dimension.
        out_features: Size of the result's.
        bias_: Whether there is a bias. Default: ``True``.
        dtype: Dtype of the weight: `torch.qint8`.

    Example:
        >>> torch.ao.nn.intrinsic.quantized.dynamic.LinearReLU(3, 2)(torch.ones(4, 3)).min() >= 0
        tensor(True)
    """

    _FLOAT_MODULE: Any = nni.LinearReLU  # type: ignore[has-type]
    _op = "linear_relu_dynamic"

    def _get_name(self) -> str:
        return "DynamicQuantizedLinearReLU"
