"""PyTorch's fused transformer operators, which scripted models call in eval mode, as compositions."""

from __future__ import annotations

from typing import Any

import torchlite as torch

F = torch.nn.functional


class NestedSequences:
    """Nested sequences: a tensor (batch, length, features) and its mask."""

    __module__ = "torchlite.jit"

    def __init__(self, tensor: Any, mask: Any):
        self.tensor, self.mask = tensor, mask
        self.dtype, self.device, self.ndim = tensor.dtype, tensor.device, tensor.ndim
        self.shape, self.requires_grad = tensor.shape, tensor.requires_grad


def is_left_aligned(tensor: Any, mask: Any) -> bool:
    """True if each row of a mask is True first, then False."""
    kept = mask.to(torch.int64)
    return bool((kept[:, 1:] <= kept[:, :-1]).all())


def nested_from_mask(tensor: Any, mask: Any, mask_check: bool = True) -> NestedSequences:
    """Return the masked positions of a tensor as nested sequences."""
    if mask_check and not is_left_aligned(tensor, mask):
        raise RuntimeError("Expected mask to be left-aligned: in each row True comes first")
    return NestedSequences(tensor, mask)


def to_padded(nested: Any, padding: float, output_size: Any = None) -> Any:
    """Return a padded tensor of the longest length."""
    length = int(nested.mask.sum(1).max().item())
    kept = nested.mask[:, :length, None]
    out = torch.where(kept, nested.tensor[:, :length], torch.full_like(nested.tensor[:, :length], padding))
    if output_size is None:
        return out
    return F.pad(out, [0, 0, 0, output_size[1] - length], value=padding)


def _attention_scores(mask: Any, kind: Any, batch: int, like: Any) -> Any:
    """Return the additive attention mask: (L, L) for an attention mask (0), (N, 1, 1, S) for a padding mask (1), or
    both combined (2).
    """
    if mask is None:
        return None
    if kind == 1:
        mask = mask.view(batch, 1, 1, mask.shape[-1])
    if mask.dtype is torch.bool:
        return torch.zeros_like(mask, dtype=like.dtype).masked_fill_(mask, float("-inf"))
    return mask


def attention(
    query: Any,
    key: Any,
    value: Any,
    embed_dim: int,
    num_head: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    mask: Any = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: Any = None,
) -> Any:
    """Return multi-head attention, and its weights if requested (else None)."""
    nested = query if isinstance(query, NestedSequences) else None
    if nested is not None:
        same = key is query and value is query
        query = nested.tensor
        key, value = (query, query) if same else (key.tensor, value.tensor)
        mask, mask_type = ~nested.mask, 1
    batch, length, _ = query.shape
    size = embed_dim // num_head
    weights, biases = qkv_weight.split(embed_dim), qkv_bias.split(embed_dim)
    q, k, v = (
        F.linear(x, w, b).view(x.shape[0], x.shape[1], num_head, size).transpose(1, 2)
        for x, w, b in zip((query, key, value), weights, biases, strict=True)
    )
    scores = (q * size**-0.5) @ k.transpose(-2, -1)
    added = _attention_scores(mask, mask_type, batch, scores)
    share = torch.softmax(scores if added is None else scores + added, -1)
    out = (share @ v).transpose(1, 2).reshape(batch, length, embed_dim)
    out = F.linear(out, proj_weight, proj_bias)
    if nested is not None:
        return NestedSequences(out, nested.mask), None
    return out, (share.mean(1) if average_attn_weights else share) if need_weights else None


def encoder_layer(
    src: Any,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Any,
    norm_bias_1: Any,
    norm_weight_2: Any,
    norm_bias_2: Any,
    ffn_weight_1: Any,
    ffn_bias_1: Any,
    ffn_weight_2: Any,
    ffn_bias_2: Any,
    mask: Any = None,
    mask_type: Any = None,
) -> Any:
    """Return a transformer encoder layer without dropout."""
    nested = src if isinstance(src, NestedSequences) else None
    x = src if nested is None else nested.tensor
    if nested is not None:
        mask, mask_type = ~nested.mask, 1

    def normalize(value: Any, weight: Any, bias: Any) -> Any:
        return F.layer_norm(value, [embed_dim], weight, bias, eps)

    def self_attention(value: Any) -> Any:
        rest = (embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type)
        return attention(value, value, value, *rest)[0]

    def feed_forward(value: Any) -> Any:
        hidden = F.linear(value, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(hidden) if use_gelu else torch.relu(hidden), ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = x + self_attention(normalize(x, norm_weight_1, norm_bias_1))
        x = x + feed_forward(normalize(x, norm_weight_2, norm_bias_2))
    else:
        x = normalize(x + self_attention(x), norm_weight_1, norm_bias_1)
        x = normalize(x + feed_forward(x), norm_weight_2, norm_bias_2)
    return x if nested is None else NestedSequences(x, nested.mask)
