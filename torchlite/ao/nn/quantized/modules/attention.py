"""Attention over quantized tensors, made of quantized parts."""

from __future__ import annotations

from typing import Any, NoReturn

import torchlite as torch
from torchlite.ao.nn.quantizable.modules import activation

__all__ = ["MultiheadAttention"]


class MultiheadAttention(activation.MultiheadAttention):
    """Attention over quantized tensors; `from_observed` makes it of a `torch.ao.nn.quantizable.MultiheadAttention`.

    Its parameters are those of `torch.ao.nn.quantizable.MultiheadAttention`.

    Example:
        >>> torch.ao.nn.quantized.MultiheadAttention(4, 2).num_heads
        2
    """

    _FLOAT_MODULE: Any = activation.MultiheadAttention

    def _get_name(self) -> str:
        return "QuantizedMultiheadAttention"

    @classmethod
    def from_float(cls, other: Any) -> NoReturn:
        """Refuses: `torch.ao.nn.quantizable.MultiheadAttention` has the observed form.

        Args:
            other: No effect.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed MHA module. Please, see the examples on "
            "quantizable MHAs."
        )

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """The quantized layer of an observed one.

        Args:
            other: The observed layer.
        """
        from torchlite.ao.quantization.quantize import convert

        converted = convert(other, inplace=False, remove_qconfig=True)
        converted.__class__ = cls
        for name in ("bias_k", "bias_v"):
            row = getattr(converted, name)
            if row is not None:
                del converted._parameters[name]
                scale, zero_point = torch._choose_qparams_per_tensor(row.detach(), reduce_range=False)
                quantized = torch.quantize_per_tensor(row.detach(), float(scale), int(zero_point), torch.quint8)
                setattr(converted, name, quantized)
        del converted.in_proj_weight, converted.in_proj_bias
        return converted
