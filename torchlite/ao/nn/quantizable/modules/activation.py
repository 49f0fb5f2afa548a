"""Attention made of linear layers, each of which can be observed and quantized."""

from __future__ import annotations

import warnings
from typing import Any

import torchlite as torch
from torchlite import Tensor, nn
from torchlite._dispatch.callbacks import CALLBACKS
from torchlite.ao.nn.quantized.modules.functional_modules import FloatFunctional
from torchlite.nn import Parameter
from torchlite.nn import functional as F

__all__ = ["MultiheadAttention"]


def _copy(part: Any) -> Any:
    return None if part is None else Parameter(part.detach().clone(), part.requires_grad)


def _as_bool(mask: Any, name: str) -> Any:
    if mask is not None and mask.dtype == torch.uint8:
        warnings.warn(
            f"Byte tensor for `{name}` in `nn.MultiheadAttention` is deprecated. Use bool tensor instead.", stacklevel=4
        )
        return mask.to(torch.bool)
    return mask


class MultiheadAttention(nn.MultiheadAttention):
    """A `torch.nn.MultiheadAttention` made of linear layers that can be quantized.

    Its parameters are those of `torch.nn.MultiheadAttention`.

    Example:
        >>> x = torch.ones(3, 1, 4)
        >>> torch.ao.nn.quantizable.MultiheadAttention(4, 2)(x, x, x)[0].shape
        torch.Size([3, 1, 4])
    """

    _FLOAT_MODULE: Any = nn.MultiheadAttention
    __constants__ = ["batch_first"]

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        from torchlite.ao.quantization.stubs import DeQuantStub, QuantStub

        super().__init__(
            embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, device, dtype
        )
        options: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.linear_Q = nn.Linear(self.embed_dim, self.embed_dim, **options)
        self.linear_K = nn.Linear(self.kdim, self.embed_dim, **options)
        self.linear_V = nn.Linear(self.vdim, self.embed_dim, **options)
        self.out_proj: Any = nn.Linear(self.embed_dim, self.embed_dim, **options)
        self.q_scaling_product = FloatFunctional()
        self.quant_attn_output, self.quant_attn_output_weights = QuantStub(), QuantStub()
        self.dequant_q, self.dequant_k, self.dequant_v = DeQuantStub(), DeQuantStub(), DeQuantStub()

    def _get_name(self) -> str:
        return "QuantizableMultiheadAttention"

    @classmethod
    def from_float(cls, other: Any) -> Any:
        """The layer of a float one, with observers.

        Args:
            other: The float layer, with a ``qconfig``.
        """
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls(
            other.embed_dim, other.num_heads, other.dropout, other.in_proj_bias is not None, other.bias_k is not None,
            other.add_zero_attn, other.kdim, other.vdim, other.batch_first,
        )  # fmt: skip
        made.bias_k, made.bias_v, made.qconfig = other.bias_k, other.bias_v, other.qconfig
        made.out_proj.weight, made.out_proj.bias = other.out_proj.weight, other.out_proj.bias
        if other._qkv_same_embed_dim:
            weights = other.in_proj_weight.chunk(3)
        else:
            weights = (other.q_proj_weight, other.k_proj_weight, other.v_proj_weight)
        biases = (None,) * 3 if other.in_proj_bias is None else other.in_proj_bias.chunk(3)
        for linear, weight, bias in zip((made.linear_Q, made.linear_K, made.linear_V), weights, biases, strict=True):
            linear.weight, linear.bias = _copy(weight), _copy(bias)
        made.eval()
        return CALLBACKS.prepare_to_quantize(made, inplace=True)

    @torch.jit.unused
    def dequantize(self) -> Any:
        """The float layer with the numbers of the quantized weights."""
        parts = [linear._weight_bias() for linear in (self.linear_Q, self.linear_K, self.linear_V)]  # type: ignore[operator]
        made = self._FLOAT_MODULE(
            self.embed_dim, self.num_heads, self.dropout, parts[0][1] is not None, self.bias_k is not None,
            self.add_zero_attn, self.kdim, self.vdim, self.batch_first,
        )  # fmt: skip
        for name in ("bias_k", "bias_v"):
            if getattr(self, name) is not None:
                setattr(made, name, Parameter(getattr(self, name).dequantize()))
        weight, bias = self.out_proj._weight_bias()
        made.out_proj.weight = Parameter(weight.dequantize())
        if bias is not None:
            made.out_proj.bias = Parameter(bias)
        weights = [weight.dequantize() for weight, _ in parts]
        if made._qkv_same_embed_dim:
            made.in_proj_weight = Parameter(torch.cat(weights))
        else:
            made.q_proj_weight, made.k_proj_weight, made.v_proj_weight = (Parameter(weight) for weight in weights)
        if made.in_proj_bias is not None:
            made.in_proj_bias = Parameter(torch.cat([bias for _, bias in parts]))
        return made

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """Refuses: `torch.ao.nn.quantized.MultiheadAttention` has the quantized form.

        Args:
            other: No effect.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            "It looks like you are trying to prepare an MHA module. Please, see the examples on quantizable MHAs."
        )

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Any = None, need_weights: bool = True,
        attn_mask: Any = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> Any:  # fmt: skip
        if attn_mask is not None and is_causal:
            raise AssertionError("Only allow causal mask or attn_mask")
        if is_causal:
            raise AssertionError("causal mask not supported by AO MHA module")
        if self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        rows, batch, _ = query.size()
        heads, size = self.num_heads, self.embed_dim // self.num_heads
        attn_mask = self._checked_mask(attn_mask, batch, rows, key.size(0))
        key_padding_mask = _as_bool(key_padding_mask, "key_padding_mask")
        q = self.q_scaling_product.mul_scalar(self.linear_Q(query), float(size) ** -0.5)
        k, v = self.linear_K(key), self.linear_V(value)
        more = 0
        if self.bias_k is not None and self.bias_v is not None:
            k = torch.cat([k, self.bias_k.repeat(1, batch, 1)])
            v = torch.cat([v, self.bias_v.repeat(1, batch, 1)])
            more += 1
        q, k, v = (x.contiguous().view(-1, batch * heads, size).transpose(0, 1) for x in (q, k, v))
        if self.add_zero_attn:
            k, v = (torch.cat([x, _zeros_like_row(x)], dim=1) for x in (k, v))
            more += 1
        if more:
            attn_mask = None if attn_mask is None else F.pad(attn_mask, (0, more))
            key_padding_mask = None if key_padding_mask is None else F.pad(key_padding_mask, (0, more))
        q, k, v = self.dequant_q(q), self.dequant_k(k), self.dequant_v(v)
        weights = torch.bmm(q, k.transpose(1, 2))
        columns = k.size(1)
        if attn_mask is not None:
            is_bool = attn_mask.dtype == torch.bool
            weights = weights.masked_fill(attn_mask, float("-inf")) if is_bool else weights + attn_mask
        if key_padding_mask is not None:
            masked = weights.view(batch, heads, rows, columns)
            masked = masked.masked_fill(key_padding_mask.unsqueeze(1).unsqueeze(2), float("-inf"))
            weights = masked.view(batch * heads, rows, columns)
        weights = F.dropout(F.softmax(weights, dim=-1), p=self.dropout, training=self.training)
        output = torch.bmm(weights, v)
        if self.batch_first:
            output = output.view(batch, rows, self.embed_dim)
        else:
            output = output.transpose(0, 1).contiguous().view(rows, batch, self.embed_dim)
        # The quantization of the weights stands last, as the order of hooks.
        output = self.out_proj(self.quant_attn_output(output))
        weights = self.quant_attn_output_weights(weights)
        if not need_weights:
            return output, None
        weights = weights.view(batch, heads, rows, columns)
        return output, weights.mean(dim=1) if average_attn_weights else weights

    def _checked_mask(self, mask: Any, batch: int, rows: int, columns: int) -> Any:
        mask = _as_bool(mask, "attn_mask")
        if mask is None:
            return None
        if mask.dim() not in (2, 3):
            raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")
        mask = mask.unsqueeze(0) if (is_plain := mask.dim() == 2) else mask
        if list(mask.size()) != [1 if is_plain else batch * self.num_heads, rows, columns]:
            raise RuntimeError(f"The size of the {2 if is_plain else 3}D attn_mask is not correct.")
        return mask


def _zeros_like_row(x: Tensor) -> Tensor:
    """One more row of zeros for each head, quantized as the others."""
    zeros = torch.zeros((x.size(0), 1, x.size(2)))
    return torch.quantize_per_tensor(zeros, x.q_scale(), x.q_zero_point(), x.dtype) if x.is_quantized else zeros
