"""Dropout of quantized tensors, which passes them on."""

from __future__ import annotations

from typing import Any

from torchlite import Tensor, nn

from .utils import FromObserved


class Dropout(FromObserved, nn.Dropout):
    """`torch.nn.Dropout` in a quantized network: it returns its input.

    Args:
        p: Kept as an attribute. Default: 0.5.
        inplace: Kept as an attribute. Default: ``False``.

    Example:
        >>> torch.ao.nn.quantized.Dropout()
        QuantizedDropout(p=0.5, inplace=False)
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__(p, inplace)

    def forward(self, input: Tensor) -> Tensor:
        return input

    def _get_name(self) -> str:
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Dropout:
        return cls(mod.p, mod.inplace)

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Dropout:
        return cls(mod.p, mod.inplace)
