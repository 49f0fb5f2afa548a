"""Dropout of quantized tensors, which passes them on."""

from __future__ import annotations

from typing import Any

from torchlite import nn


class Dropout(nn.Dropout):
    """`torch.nn.Dropout` in a quantized network: it returns its input.

    Example:
        >>> torch.ao.nn.quantized.Dropout()
        QuantizedDropout(p=0.5, inplace=False)
    """

    def forward(self, input: Any) -> Any:
        return input

    def _get_name(self) -> str:
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Dropout:
        """Make the quantized module of a float one."""
        return cls(mod.p, mod.inplace)

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Dropout:
        """Make the quantized module of a reference one."""
        return cls(mod.p, mod.inplace)
