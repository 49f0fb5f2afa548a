"""ONNX ops Attention, RotaryEmbedding and causal convolution with state."""

from __future__ import annotations

import math
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import functional as F

from .._element_types import dtype_of
from .op_registry import op
from .resource_limits import check_broadcast, check_elements, check_products, check_steps


def _split_heads(x: Tensor, count: int) -> Tensor:
    """Split the last dimension into heads: (batch, head, time, features)."""
    return x.reshape(x.shape[0], x.shape[1], count, x.shape[2] // count).transpose(1, 2)


def _make_attention_bias(
    q: Tensor, k: Tensor, mask: Tensor | None, offset: Any, lengths: Tensor | None, causal: int, left: int, right: int
) -> Tensor:
    """Return the additive bias of scores: 0 where attention is allowed, -inf elsewhere, or the mask's values."""
    rows, columns = q.shape[2], k.shape[2]
    check_elements("Attention", rows, columns, each=8)  # several intermediate results of wider types
    bias = torch.zeros(rows, columns, dtype=q.dtype, device=q.device)
    if mask is not None:
        missing = columns - mask.shape[-1]
        if mask.dtype is torch.bool:
            mask = torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, -math.inf)
        if missing > 0:
            check_elements("Attention", *mask.shape[:-1], columns)
            mask = F.pad(mask, [0, missing], value=-math.inf)
        check_broadcast("Attention", bias, mask)
        bias = bias + mask
    ahead = torch.arange(columns, device=q.device) - torch.arange(rows, device=q.device).reshape(-1, 1)
    ahead = ahead - offset.reshape(-1, 1, 1, 1) if isinstance(offset, Tensor) else ahead - offset
    closed = torch.zeros_like(ahead, dtype=torch.bool)
    if causal:
        closed = closed | (ahead > 0)
    if left >= 0:
        closed = closed | (ahead < -left)
    if right >= 0:
        closed = closed | (ahead > right)
    if lengths is not None:
        closed = closed | (torch.arange(columns, device=q.device) >= lengths.reshape(-1, 1, 1, 1))
    return torch.where(closed, torch.full_like(bias[..., :1, :1], -math.inf), bias)


def _allow_scores(what: str, q: Tensor, key: Tensor, value: Tensor) -> None:
    """Check the sizes of the scores, the result, and keys and values shared by heads."""
    rows = q.shape[:3]
    check_products(what, check_elements(what, *rows, key.shape[2]) * (q.shape[3] + value.shape[3]), q)
    check_elements(what, *rows, value.shape[3])
    check_elements(what, q.shape[0], q.shape[1], key.shape[2], max(key.shape[3], value.shape[3]))


@op("Attention")
def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, past_key: Tensor | None = None,
    past_value: Tensor | None = None, lengths: Tensor | None = None, *, is_causal: int = 0,
    kv_num_heads: int | None = None, left_window_size: int = -1, q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0, right_window_size: int = -1, scale: float | None = None, softcap: float = 0.0,
    softmax_precision: int | None = None, outputs: int = 1,
) -> Any:  # fmt: skip
    flat = q.ndim == 3
    if flat:
        if q_num_heads is None or kv_num_heads is None:
            raise ValueError("Attention: three dimensions, and the numbers of heads are not said")
        q, k, v = _split_heads(q, q_num_heads), _split_heads(k, kv_num_heads), _split_heads(v, kv_num_heads)
    if lengths is not None and lengths.numel() != q.shape[0]:
        raise ValueError(f"Attention: {lengths.numel()} lengths for a batch of {q.shape[0]}")
    key = k if past_key is None else torch.cat([past_key, k], 2)
    value = v if past_value is None else torch.cat([past_value, v], 2)
    offset: Any = 0 if past_key is None else past_key.shape[2]
    if past_key is None and lengths is not None:
        offset = lengths.reshape(-1) - q.shape[2]
    repeats = q.shape[1] // key.shape[1]
    _allow_scores("Attention", q, key, value)
    k, v = (x.repeat_interleave(repeats, 1) if repeats > 1 else x for x in (key, value))
    root = math.sqrt(1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    plain = mask is None and lengths is None and not is_causal and left_window_size < 0 and right_window_size < 0
    scores = torch.matmul(q * root, (k * root).transpose(-1, -2))
    if softcap > 0:
        scores = softcap * torch.tanh(scores / softcap)
    shown, bias = scores, None
    if not plain:
        bias = _make_attention_bias(q, k, mask, offset, lengths, is_causal, left_window_size, right_window_size)
        check_broadcast("Attention", scores, bias)
        scores = scores + bias
    weights = scores if softmax_precision is None else scores.to(dtype_of(softmax_precision))
    weights = torch.softmax(weights, -1)
    if bias is not None:  # a fully masked query gives zero
        nowhere = torch.isneginf(torch.amax(bias, -1, True))
        weights = torch.where(nowhere, torch.zeros_like(weights), weights)
    shown = {2: scores, 3: weights}.get(qk_matmul_output_mode, shown).to(q.dtype)
    out = torch.matmul(weights.to(q.dtype), v)
    if flat:
        out = out.transpose(1, 2).reshape(out.shape[0], out.shape[2], -1)
    return out if outputs == 1 else (out, key, value, shown)[:outputs]


@op("FlexAttention", domain="ai.onnx.preview")
def flex_attention(
    q: Tensor, k: Tensor, v: Tensor, *, scale: float | None = None, softmax_precision: int | None = None,
    score_mod: Any = None, prob_mod: Any = None,
) -> Tensor:  # fmt: skip
    repeats = q.shape[1] // k.shape[1]
    _allow_scores("FlexAttention", q, k, v)
    k, v = (x.repeat_interleave(repeats, 1) if repeats > 1 else x for x in (k, v))
    root = math.sqrt(1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    scores = torch.matmul(q * root, (k * root).transpose(-1, -2))
    wide = torch.float64 if q.dtype is torch.float64 else torch.float32
    scores = scores.to(wide if softmax_precision is None else dtype_of(softmax_precision))
    if score_mod is not None:
        scores = score_mod(scores)
    weights = torch.softmax(scores, -1)
    if prob_mod is not None:
        weights = prob_mod(weights)
    return torch.matmul(weights, v.to(weights.dtype)).to(v.dtype)


@op("LinearAttention")
def linear_attention(
    q: Tensor, k: Tensor, v: Tensor, past: Tensor | None = None, decay: Tensor | None = None,
    beta: Tensor | None = None, *, chunk_size: int | None = None, kv_num_heads: int, q_num_heads: int,
    scale: float = 0.0, update_rule: str = "gated_delta", outputs: int = 1,
) -> Any:  # fmt: skip
    kind, steps = q.dtype, q.shape[1]
    query = _split_heads(q, q_num_heads).to(torch.float32)
    key, value = (_split_heads(x, kv_num_heads).to(torch.float32) for x in (k, v))
    size = query.shape[-1]
    factor = scale or 1 / math.sqrt(size)
    check_elements("LinearAttention", key.shape[0], q_num_heads, size, value.shape[-1], each=4)
    check_elements("LinearAttention", key.shape[0], q_num_heads, steps, value.shape[-1])
    check_steps("LinearAttention", 16 * steps)
    for name, given in (("past", past), ("decay", decay), ("beta", beta)):
        if given is not None and given.shape[0] != key.shape[0]:
            raise ValueError(f"LinearAttention: a {name} for {given.shape[0]} rows, and {key.shape[0]} there are")
    state = key.new_zeros(key.shape[0], kv_num_heads, size, value.shape[-1]) if past is None else past.to(torch.float32)
    fading = None if decay is None else _split_heads(decay, kv_num_heads).to(torch.float32).exp()
    rate = None if beta is None else _split_heads(beta, beta.shape[-1]).to(torch.float32)
    repeats, found = q_num_heads // kv_num_heads, []
    for t in range(steps):
        now, new = key[:, :, t].unsqueeze(-1), value[:, :, t].unsqueeze(-2)
        if fading is not None:
            state = state * fading[:, :, t].unsqueeze(-1)
        if rate is not None:
            new = rate[:, :, t].unsqueeze(-1) * (new - torch.matmul(now.transpose(-1, -2), state))
        state = state + now * new
        seen = state.repeat_interleave(repeats, 1) if repeats > 1 else state
        found.append(factor * torch.matmul(query[:, :, t].unsqueeze(-2), seen).squeeze(-2))
    out = torch.stack(found, 1).reshape(q.shape[0], steps, -1).to(kind)
    return out if outputs == 1 else (out, state.to(kind if past is None else past.dtype))


@op("CausalConvWithState")
def causal_conv(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, past: Tensor | None = None, *, activation: str = "none",
    outputs: int = 1,
) -> Any:  # fmt: skip
    reach = weight.shape[2] - 1
    check_elements("CausalConvWithState", *x.shape[:2], x.shape[2] + max(reach, 0))
    whole = F.pad(x, [reach, 0]) if past is None else torch.cat([past, x], 2)
    out = F.conv1d(whole, weight, bias, groups=x.shape[1])
    if activation in ("silu", "swish"):
        out = F.silu(out.to(torch.float32)).to(x.dtype)
    return out if outputs == 1 else (out, whole[:, :, whole.shape[2] - reach :])


@op("RotaryEmbedding")
def rotary_embedding(
    x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None = None, *, interleaved: int = 0,
    num_heads: int | None = None, rotary_embedding_dim: int = 0,
) -> Tensor:  # fmt: skip
    flat = x.ndim == 3
    parts = x.reshape(x.shape[0], x.shape[1], num_heads or 1, -1) if flat else x.transpose(1, 2)
    size = rotary_embedding_dim or parts.shape[-1]
    turned, rest = parts[..., :size], parts[..., size:]
    if positions is not None:
        check_elements("RotaryEmbedding", *positions.shape, *cos.shape[1:])
        cos, sin = cos[positions], sin[positions]
    cos, sin = cos.unsqueeze(2), sin.unsqueeze(2)
    if interleaved:
        a, b = turned[..., 0::2], turned[..., 1::2]
    else:
        a, b = turned[..., : size // 2], turned[..., size // 2 :]
    check_broadcast("RotaryEmbedding", a, cos, sin)
    both = [cos * a - sin * b, sin * a + cos * b]
    turned = torch.stack(both, -1).reshape(turned.shape) if interleaved else torch.cat(both, -1)
    out = torch.cat([turned, rest], -1)
    return out.reshape(x.shape) if flat else out.transpose(1, 2)
