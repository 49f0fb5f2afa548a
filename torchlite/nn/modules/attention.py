"""Multi-head attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite.nn import functional as F
from torchlite.nn.init import constant_, xavier_normal_, xavier_uniform_
from torchlite.nn.parameter import Parameter

from ..._types.package_name import package_name
from ._attention_masks import additive_mask, dtype_or_none
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of several heads (Vaswani et al. 2017): softmax(Q K^T / sqrt(head_dim)) V for each head, then a linear
    layer over the joined heads.

    embed_dim: size of queries and outputs, `num_heads` times the size of a head. kdim, vdim: sizes of keys and values
    if they differ. add_bias_kv, add_zero_attn: append one learnt, or zero, key and value. Inputs are (L, N, E), (S, N,
    kdim), (S, N, vdim), or (N, L, E) ... with `batch_first`, or without the batch dimension. Returns the output and the
    weights (averaged over heads unless `average_attn_weights=False`), None without `need_weights`.

    >>> attention = torchlite.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torchlite.zeros(3, 5, 8)
    >>> attention(x, x, x)[0].shape
    torch.Size([3, 5, 8])
    """

    __constants__ = ["batch_first"]

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != self.embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        if not self._qkv_same_embed_dim:
            self.q_proj_weight = Parameter(torch.empty((embed_dim, embed_dim), **factory_kwargs))
            self.k_proj_weight = Parameter(torch.empty((embed_dim, self.kdim), **factory_kwargs))
            self.v_proj_weight = Parameter(torch.empty((embed_dim, self.vdim), **factory_kwargs))
            self.register_parameter("in_proj_weight", None)
        else:
            self.in_proj_weight = Parameter(torch.empty((3 * embed_dim, embed_dim), **factory_kwargs))
            self.register_parameter("q_proj_weight", None)
            self.register_parameter("k_proj_weight", None)
            self.register_parameter("v_proj_weight", None)
        if bias:
            self.in_proj_bias = Parameter(torch.empty(3 * embed_dim, **factory_kwargs))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **factory_kwargs)
        if add_bias_kv:
            self.bias_k: Parameter | None = Parameter(torch.empty((1, 1, embed_dim), **factory_kwargs))
            self.bias_v: Parameter | None = Parameter(torch.empty((1, 1, embed_dim), **factory_kwargs))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        if self._qkv_same_embed_dim:
            xavier_uniform_(self.in_proj_weight)
        else:
            xavier_uniform_(self.q_proj_weight)
            xavier_uniform_(self.k_proj_weight)
            xavier_uniform_(self.v_proj_weight)
        if self.in_proj_bias is not None:
            constant_(self.in_proj_bias, 0.0)
            constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            xavier_normal_(self.bias_v)

    def __setstate__(self, state: Any) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        batched = query.dim() == 3
        key_padding_mask = additive_mask(
            key_padding_mask, "key_padding_mask", query.dtype, dtype_or_none(attn_mask), "attn_mask"
        )
        attn_mask = additive_mask(attn_mask, "attn_mask", query.dtype, check_other=False)
        if self.batch_first and batched:
            # One object passed three times must stay one object: the packed projection checks identity.
            if key is value:
                if query is key:
                    query = key = value = query.transpose(1, 0)
                else:
                    query, key = query.transpose(1, 0), key.transpose(1, 0)
                    value = key
            else:
                query, key, value = (x.transpose(1, 0) for x in (query, key, value))
        options: dict[str, Any] = {}
        if not self._qkv_same_embed_dim:
            options = {
                "use_separate_proj_weight": True,
                "q_proj_weight": self.q_proj_weight,
                "k_proj_weight": self.k_proj_weight,
                "v_proj_weight": self.v_proj_weight,
            }
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **options,
        )
        if self.batch_first and batched:
            return output.transpose(1, 0), weights
        return output, weights

    def merge_masks(self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor) -> Any:
        """Merge both masks for (N, L, E) queries. Returns the mask and its type: (None, None), (key_padding_mask, 1),
        or a mask of all heads (N, num_heads, L, L) and 2.
        """
        if attn_mask is None:
            return key_padding_mask, (None if key_padding_mask is None else 1)
        batch, length, _ = query.shape
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, 2


MultiheadAttention.__module__ = f"{package_name()}.nn.modules.activation"  # programs and pickles refer to it here
