"""Ops of the domain com.microsoft that ONNX Runtime's optimizer writes into files: several ops in one."""

from __future__ import annotations

import math
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import functional as F

from .conv_pool import conv
from .op_registry import Ints, op
from .resource_limits import check_broadcast, check_elements, check_matmul

_DOMAIN = "com.microsoft"


@op("Gelu", domain=_DOMAIN)
def gelu(x: Tensor) -> Tensor:
    return F.gelu(x)


@op("BiasGelu", domain=_DOMAIN)
def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    check_broadcast("BiasGelu", x, bias)
    return F.gelu(x + bias)


@op("FastGelu", domain=_DOMAIN)
def fast_gelu(x: Tensor, bias: Tensor | None = None) -> Tensor:
    return F.gelu(x if bias is None else x + bias, approximate="tanh")


@op("QuickGelu", domain=_DOMAIN)
def quick_gelu(x: Tensor, *, alpha: float = 1.702) -> Tensor:
    return x * torch.sigmoid(alpha * x)


@op("FusedMatMul", domain=_DOMAIN)
def fused_matmul(
    a: Tensor, b: Tensor, *, alpha: float = 1.0, transA: int = 0, transB: int = 0, transBatchA: int = 0,
    transBatchB: int = 0,
) -> Tensor:  # fmt: skip
    def arrange(x: Tensor, swap: int, batch_last: int) -> Tensor:
        if batch_last and x.ndim > 2:  # the batch is between the rows and the columns
            x = x.movedim(0, -2)
        return x.transpose(-1, -2) if swap and x.ndim > 1 else x

    left, right = arrange(a, transA, transBatchA), arrange(b, transB, transBatchB)
    check_matmul(left, right)
    return torch.matmul(left, right) * alpha


_FUSED_ACTIVATIONS = {
    "": lambda x: x, "Relu": torch.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh,
}  # fmt: skip


def _activate(x: Tensor, name: str, params: Any) -> Tensor:
    given = list(params or [])
    if name in _FUSED_ACTIVATIONS:
        return _FUSED_ACTIVATIONS[name](x)
    if name == "LeakyRelu":
        return F.leaky_relu(x, *given[:1])
    if name == "Clip":
        return torch.clamp(x, *given[:2])
    if name == "HardSigmoid":
        alpha, beta = given[:2] if given else (0.2, 0.5)
        return torch.clamp(alpha * x + beta, 0, 1)
    raise ValueError(f"there is no activation {name!r}")


@op("FusedConv", domain=_DOMAIN)
def fused_conv(
    x: Tensor, w: Tensor, b: Tensor | None = None, z: Tensor | None = None, *, activation: str = "",
    activation_params: Any = None, auto_pad: str = "NOTSET", dilations: Ints = None, group: int = 1,
    kernel_shape: Ints = None, pads: Ints = None, strides: Ints = None,
) -> Tensor:  # fmt: skip
    out = conv(
        x, w, b, auto_pad=auto_pad, dilations=dilations, group=group, kernel_shape=kernel_shape, pads=pads,
        strides=strides,
    )  # fmt: skip
    return _activate(out if z is None else out + z, activation, activation_params)


@op("FusedGemm", domain=_DOMAIN)
def fused_gemm(
    a: Tensor, b: Tensor, c: Tensor | None = None, *, activation: str = "", activation_alpha: float = 0.0,
    activation_beta: float = 0.0, activation_gamma: float = 0.0, alpha: float = 1.0, beta: float = 1.0,
    transA: int = 0, transB: int = 0,
) -> Tensor:  # fmt: skip
    from .matmul import gemm

    out = gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    given = [value for value in (activation_alpha, activation_beta, activation_gamma) if value]
    return _activate(out, activation, given)


def _skip_norm(norm: Any, x: Tensor, skip: Tensor, bias: Tensor | None, outputs: int) -> Any:
    check_broadcast("SkipLayerNormalization", x, skip)
    total = x + skip if bias is None else x + skip + bias
    out = norm(total)
    # The second and third output, mean and inverse deviation, are for training alone.
    return out if outputs == 1 else (out, None, None, total)[:outputs]


@op("SkipLayerNormalization", domain=_DOMAIN)
def skip_layer_normalization(
    x: Tensor, skip: Tensor, gamma: Tensor, beta: Tensor | None = None, bias: Tensor | None = None, *,
    epsilon: float = 1e-12, outputs: int = 1,
) -> Any:  # fmt: skip
    return _skip_norm(lambda t: F.layer_norm(t, gamma.shape, gamma, beta, epsilon), x, skip, bias, outputs)


@op("SkipSimplifiedLayerNormalization", domain=_DOMAIN)
def skip_simplified_layer_normalization(
    x: Tensor, skip: Tensor, gamma: Tensor, bias: Tensor | None = None, *, epsilon: float = 1e-12, outputs: int = 1
) -> Any:
    return _skip_norm(lambda t: F.rms_norm(t, gamma.shape, gamma, epsilon), x, skip, bias, outputs)


@op("EmbedLayerNormalization", domain=_DOMAIN)
def embed_layer_normalization(
    ids: Tensor, segments: Tensor | None, words: Tensor, places: Tensor, segment_table: Tensor | None, gamma: Tensor,
    beta: Tensor, mask: Tensor | None = None, position_ids: Tensor | None = None, *, epsilon: float = 1e-12,
    mask_index_type: int = 0, outputs: int = 1,
) -> Any:  # fmt: skip
    return embed_and_normalize(
        ids, segments, words, places, segment_table, gamma, beta, mask, position_ids, epsilon=epsilon, outputs=outputs
    )


def embed_and_normalize(
    ids: Tensor, segments: Tensor | None, words: Any, places: Any, segment_table: Tensor | None, gamma: Any,
    beta: Tensor | None, mask: Tensor | None = None, position_ids: Tensor | None = None, *, epsilon: float,
    outputs: int,
) -> Any:  # fmt: skip
    """The normalized sum of the rows of tables, the count of positions in the mask, and the sum."""
    check_elements("EmbedLayerNormalization", ids.numel(), words.shape[1])
    at = torch.arange(ids.shape[1], device=ids.device) if position_ids is None else position_ids
    total = F.embedding(ids, words) + F.embedding(at, places)
    if segments is not None and segment_table is not None:
        total = total + F.embedding(segments, segment_table)
    out = F.layer_norm(total, gamma.shape, gamma, beta, epsilon)
    count = ids.new_zeros(ids.shape[0], dtype=torch.int32) if mask is None else mask.sum(1).to(torch.int32)
    return out if outputs == 1 else (out, count, total)[:outputs]


@op("MultiHeadAttention", domain=_DOMAIN)
def multi_head_attention(
    query: Tensor, key: Tensor | None = None, value: Tensor | None = None, bias: Tensor | None = None,
    mask: Tensor | None = None, attention_bias: Tensor | None = None, *, num_heads: int,
    mask_filter_value: float = -10000.0, scale: float | None = None, unidirectional: int = 0,
) -> Tensor:  # fmt: skip
    if key is None or value is None:
        raise ValueError("MultiHeadAttention: packed inputs")
    width = query.shape[-1]
    if bias is not None:
        query, key, value = query + bias[:width], key + bias[width : 2 * width], value + bias[2 * width :]
    return attend(query, key, value, num_heads, mask, mask_filter_value, attention_bias, scale, unidirectional)[0]


@op("Attention", domain=_DOMAIN)
def attention(
    x: Tensor, weights: Tensor, bias: Tensor | None = None, mask: Tensor | None = None, past: Tensor | None = None,
    attention_bias: Tensor | None = None, *, num_heads: int, mask_filter_value: float = -10000.0,
    qkv_hidden_sizes: Any = None, scale: float | None = None, unidirectional: int = 0, outputs: int = 1,
) -> Any:  # fmt: skip
    check_matmul(x, weights)
    all_three = torch.matmul(x, weights)
    all_three = all_three if bias is None else all_three + bias
    sizes = list(qkv_hidden_sizes or [weights.shape[1] // 3] * 3)
    query, key, value = torch.split(all_three, sizes, -1)
    found = attend(query, key, value, num_heads, mask, mask_filter_value, attention_bias, scale, unidirectional, past)
    return found[0] if outputs == 1 else found[:outputs]


def attend(
    query: Tensor, key: Tensor, value: Tensor, heads: int, mask: Tensor | None, filtered: float,
    attention_bias: Tensor | None = None, scale: float | None = None, causal: int = 0, past: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Attention of (batch, positions, heads * features), and the keys and values of all positions.

    `past` has the keys and values of the positions before.
    """
    q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (query, key, value))
    if past is not None:
        k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
    check_matmul(q, k.transpose(-1, -2))
    scores = torch.matmul(q, k.transpose(-1, -2)) * (scale or 1 / math.sqrt(q.shape[-1]))
    if attention_bias is not None:
        scores = scores + attention_bias
    if mask is not None:
        scores = scores + _mask_bias(mask, query.shape[0], k.shape[2], filtered).to(scores.dtype)
    if causal:
        rows, columns = scores.shape[-2:]
        seen = torch.ones(rows, columns, dtype=torch.bool, device=scores.device).tril(columns - rows)
        scores = torch.where(seen, scores, torch.full_like(scores, -math.inf))
    out = torch.matmul(torch.softmax(scores, -1), v).transpose(1, 2).flatten(-2)
    # Of different sizes the two cannot be one tensor; ONNX Runtime has no such output either.
    return out, torch.stack((k, v)) if k.shape == v.shape else k


def _mask_bias(mask: Tensor, batch: int, keys: int, filtered: float) -> Any:
    """A summand of the scores: `filtered` where a mask of the keys hides one, or the number of keys, or their end and
    begin of each sequence.
    """
    if mask.ndim == 1:
        at = torch.arange(keys, device=mask.device)
        seen = at < mask[:batch, None]
        mask = seen if mask.numel() == batch else seen & (at >= mask[batch:, None])
    if mask.ndim == 2:
        if mask.shape[1] == 1 < keys:  # stands for no mask
            mask = mask.new_ones(1, 1)
        mask = mask[:, None, None]
    elif mask.ndim == 3:
        mask = mask[:, None]
    return (1 - (mask > 0).to(torch.float32)) * filtered
