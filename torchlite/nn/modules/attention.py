"""Multi-head attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._settings.adopted_classes import adopt_class
from torchlite.nn import functional as F
from torchlite.nn.init import constant_, xavier_normal_, xavier_uniform_
from torchlite.nn.parameter import Parameter

from ..._dispatch.interceptors import stack
from ..._dispatch.tracing import TRACES
from ..._types.package_name import package_name
from ._attention_masks import additive_mask, dtype_or_none
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    r"""Applies scaled dot-product attention in several heads.

    .. math::

        \begin{aligned}
        \text{head}_i &= \operatorname{softmax}\left( \frac{(Q W_i^Q) (K W_i^K)^{\mathsf{T}}}{\sqrt{d}} \right) V W_i^V
        \\
        \text{output} &= \operatorname{concat}(\text{head}_1, \ldots, \text{head}_h) \, W^O
        \end{aligned}

    Here :math:`d` is ``embed_dim / num_heads``, the size of a head. The projections also have biases.

    Args:
        embed_dim: Number of features of queries and outputs; divisible by ``num_heads``.
        num_heads: Number of heads.
        dropout: Probability of zeroing an attention weight in training mode. Default: 0.
        bias: Whether the projections have biases. Default: ``True``.
        add_bias_kv: Whether to append one learnable key and value to each sequence. Default: ``False``.
        add_zero_attn: Whether to append one key and value of zeros to each sequence. Default: ``False``.
        kdim: Number of features of keys. ``None`` is ``embed_dim``. Default: ``None``.
        vdim: Number of features of values. ``None`` is ``embed_dim``. Default: ``None``.
        batch_first: Whether dimension 0 of the inputs and the output is the batch. Default: ``False``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Query: ``(L, N, embed_dim)``, ``(N, L, embed_dim)`` with ``batch_first``, or ``(L, embed_dim)`` without a
          batch.
        - Key: ``(S, N, kdim)``, ``(N, S, kdim)`` or ``(S, kdim)``.
        - Value: ``(S, N, vdim)``, ``(N, S, vdim)`` or ``(S, vdim)``.
        - Output: the shape of the query.
        - Weights: ``(N, L, S)`` or ``(L, S)``; with ``average_attn_weights=False`` ``(N, num_heads, L, S)`` or
          ``(num_heads, L, S)``. ``add_bias_kv`` and ``add_zero_attn`` add 1 to S here.

    Attributes:
        in_proj_weight (Parameter): Projections of query, key and value, stacked: shape ``(3 * embed_dim, embed_dim)``,
            initialized by `xavier_uniform_`. ``None`` if ``kdim`` or ``vdim`` differs from ``embed_dim``; then
            ``q_proj_weight``, ``k_proj_weight`` and ``v_proj_weight`` take its place.
        in_proj_bias (Parameter): Shape ``(3 * embed_dim,)``, initialized to 0. ``None`` if ``bias=False``.
        out_proj (Linear): The output projection; its bias is initialized to 0.
        bias_k (Parameter): The learnable key, shape ``(1, 1, embed_dim)``. ``None`` if ``add_bias_kv=False``.
        bias_v (Parameter): The learnable value, shape ``(1, 1, embed_dim)``. ``None`` if ``add_bias_kv=False``.

    Raises:
        ValueError: ``embed_dim`` or ``num_heads`` is not greater than 0.
        AssertionError: ``embed_dim`` is not divisible by ``num_heads``.

    Example:
        >>> attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> query, memory = torch.zeros(3, 5, 8), torch.zeros(3, 7, 8)
        >>> output, weights = attention(query, memory, memory)
        >>> output.shape, weights.shape
        (torch.Size([3, 5, 8]), torch.Size([3, 5, 7]))

    References:
        - A. Vaswani, N. Shazeer, N. Parmar, J. Uszkoreit, L. Jones, A. N. Gomez, L. Kaiser, I. Polosukhin. Attention
          is all you need. 2017.

    See also:
        `torch.nn.functional.scaled_dot_product_attention`, `TransformerEncoderLayer`.
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
        """Computes the attention of queries to keys and values.

        Args:
            query: Queries; see the class for the shapes.
            key: Keys.
            value: Values.
            key_padding_mask: Mask of keys, shape ``(N, S)`` or ``(S)``. A boolean mask is ``True`` where attention is
                not allowed; a floating point mask is added to the scores. Default: ``None``.
            need_weights: Whether to return the attention weights. ``False`` is faster. Default: ``True``.
            attn_mask: Mask of pairs of query and key, shape ``(L, S)`` or ``(N * num_heads, L, S)``, with the same
                meaning. Default: ``None``.
            average_attn_weights: Whether to return the mean of the weights over the heads. Default: ``True``.
            is_causal: Hint that ``attn_mask``, which must be given, is a causal mask. Default: ``False``.

        Returns:
            A tuple of the output and the attention weights, or ``None`` in their place if ``need_weights=False``.

        Raises:
            RuntimeError: ``is_causal`` without ``attn_mask``, or the shapes do not match.
        """
        batched = query.dim() == 3
        if (
            batched
            and query is key is value
            and self.batch_first
            and not self.training
            and not (is_causal and attn_mask is None)
            and _can_run_native(self, query, key_padding_mask, attn_mask)
        ):
            mask, mask_type = self.merge_masks(attn_mask, key_padding_mask, query)
            return torch._native_multi_head_attention(
                query,
                key,
                value,
                self.embed_dim,
                self.num_heads,
                self.in_proj_weight,
                self.in_proj_bias,
                self.out_proj.weight,
                self.out_proj.bias,
                mask,
                need_weights,
                average_attn_weights,
                mask_type,
            )
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
        """Merges the two masks of self-attention into one additive mask.

        Args:
            attn_mask: Mask of pairs, shape ``(L, L)`` or ``(N * num_heads, L, L)``, or ``None``.
            key_padding_mask: Mask of keys, shape ``(N, L)``, or ``None``.
            query: Queries of shape ``(N, L, embed_dim)``.

        Returns:
            A tuple of the mask and its type. Without masks it is ``(None, None)``. With a ``key_padding_mask`` alone
            it is that mask and 1. Else it is a mask ``(N, num_heads, L, L)`` and 2.
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


def _can_run_native(
    layer: MultiheadAttention, query: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None
) -> bool:
    """Whether self-attention of a batch runs as one op: no gradient is wanted and nothing watches the ops."""
    if (
        stack.items
        or TRACES
        or layer.num_heads % 2
        or layer.in_proj_bias is None
        or layer.in_proj_weight is None
        or layer.bias_k is not None
        or layer.add_zero_attn
        or not torch.backends.mha.get_fastpath_enabled()
    ):
        return False
    out, dtype, recorded = layer.out_proj, query.dtype, torch.is_grad_enabled()
    for tensor in (query, layer.in_proj_weight, layer.in_proj_bias, out.weight, out.bias):
        if tensor.__class__ not in _PLAIN or tensor.dtype is not dtype or recorded and tensor.requires_grad:
            return False
    for mask in (key_padding_mask, attn_mask):
        if mask is not None and (mask.__class__ is not torch.Tensor or mask.dtype is not torch.bool):
            return False
    return True


_PLAIN = (torch.Tensor, Parameter)

adopt_class(MultiheadAttention, f"{package_name()}.nn.modules.activation")
