"""Attention over quantized tensors, made of quantized parts."""

from __future__ import annotations

from typing import Any, NoReturn

import torchlite as torch
from torchlite._dispatch.callbacks import CALLBACKS
from torchlite.ao.nn.quantizable.modules import activation

__all__ = ["MultiheadAttention"]


class MultiheadAttention(activation.MultiheadAttention):
    """Attention over quantized tensors; `from_observed` makes it of a `torch.ao.nn.quantizable.MultiheadAttention`.

    Args:
        embed_dim: Size of the queries and of the result.
        num_heads: Number of heads, which divides `embed_dim`.
        dropout: Probability with which weights are dropped in training. Default: 0.
        bias: Whether there are biases. Default: ``True``.
        add_bias_kv: Whether a learned row is added to the keys and the values. Default: ``False``.
        add_zero_attn: Whether a row of zeros is added to them. Default: ``False``.
        kdim: Size of the keys. Default: `embed_dim`.
        vdim: Size of the values. Default: `embed_dim`.
        batch_first: Whether the batch is the first dimension, not the second. Default: ``False``.
        device: Device of the weights. Default: the current one.
        dtype: Dtype of the weights. Default: float32.

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
        converted = CALLBACKS.convert_observed(other, inplace=False, remove_qconfig=True)
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
