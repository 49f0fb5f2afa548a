"""Multi-head attention of `torch.nn.functional`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._dispatch import F
from torchlite._dispatch.dispatch_state import OVERRIDES
from torchlite._dispatch.interceptors import call_override
from torchlite._dispatch.tracing import TRACES as _TRACES
from torchlite._dispatch.tracing import trace_function as _handled

if TYPE_CHECKING:
    from torchlite import Tensor

REPLACEMENT: list[Any] = []  # of `scaled_dot_product_attention`, within `context_parallel`


def _to_additive_mask(mask, name, dtype):
    """Return a float mask to add: minus infinity where a boolean one is True."""
    if mask is None:
        return None
    if mask.dtype is torch.bool:
        return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)
    if not mask.dtype.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return mask


def _check_attention_shapes(query, key, value, key_padding_mask, attn_mask, num_heads):
    if query.ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor"
        )
    kind = "batched (3-D)" if query.ndim == 3 else "unbatched (2-D)"
    if key.ndim != query.ndim or value.ndim != query.ndim:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {query.ndim}-D but found {key.ndim}-D and "
            f"{value.ndim}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.ndim != query.ndim - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {query.ndim - 1}-D but found "
            f"{key_padding_mask.ndim}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.ndim not in (2, 3):
        raise AssertionError(
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.ndim}-D tensor "
            "instead"
        )
    if (
        query.ndim == 2
        and attn_mask is not None
        and attn_mask.ndim == 3
        and attn_mask.shape != (num_heads, query.shape[0], key.shape[0])
    ):
        raise AssertionError(
            f"Expected `attn_mask` shape to be {(num_heads, query.shape[0], key.shape[0])} but got {attn_mask.shape}"
        )


def _project(x, weight, bias):
    """A linear map. The bias may have another dtype where `x` is not contiguous, as with ``batch_first``: PyTorch adds
    it to the product there.
    """
    if bias is None or bias.dtype is weight.dtype or x.is_contiguous():
        return F.linear(x, weight, bias)
    return F.linear(x, weight).add_(bias)


def _in_projection_packed(query, key, value, weight, bias):
    """Return queries, keys and values from one packed weight, in as few products as the inputs allow."""
    size = query.shape[-1]
    if key is value:
        if query is key:
            return _project(query, weight, bias).unflatten(-1, (3, size)).unbind(-2)
        w_q, w_kv = weight.split([size, size * 2])
        b_q, b_kv = (None, None) if bias is None else bias.split([size, size * 2])
        return (_project(query, w_q, b_q), *_project(key, w_kv, b_kv).unflatten(-1, (2, size)).unbind(-2))
    w_q, w_k, w_v = weight.chunk(3)
    b_q, b_k, b_v = (None, None, None) if bias is None else bias.chunk(3)
    return _project(query, w_q, b_q), _project(key, w_k, b_k), _project(value, w_v, b_v)


def _in_projection(query, key, value, weights, bias):
    biases = (None, None, None) if bias is None else bias.chunk(3)
    for name, weight in zip("qkv", weights, strict=True):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    return tuple(_project(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))


def _pad_mask(mask):
    """Return a mask with a column for one more key, visible to all queries."""
    if mask is None:
        return None
    return torch.cat([mask, torch.zeros((*mask.shape[:-1], 1), dtype=mask.dtype, device=mask.device)], -1)


def _is_batch_first_view(x):
    """True if (length, batch, features) is a view of (batch, length, features) in row-major order, so that it can be
    processed without a copy.
    """
    return x.ndim == 3 and not x.is_contiguous() and x.transpose(0, 1).is_contiguous()


def _transpose_batch(query, key, value):
    """Transpose the first two dimensions of tensors; one object passed twice stays one object."""
    turned = query.transpose(0, 1)
    turned_key = turned if key is query else key.transpose(0, 1)
    return turned, turned_key, turned_key if value is key else value.transpose(0, 1)


def _split_heads(x, count, head_dim):
    """(length, batch, features) -> (batch * heads, length, head_dim)."""
    return x.reshape(x.shape[0], count, head_dim).transpose(0, 1)


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Computes multi-head attention with the given projections (Vaswani et al., 2017).

    Inputs have the shape ``(length, batch, features)``, or ``(length, features)`` without a batch. `L` is the length of
    the queries, `S` that of the keys.

    Args:
        query: The queries, of shape ``(L, N, E)``.
        key: The keys, of shape ``(S, N, E_k)``.
        value: The values, of shape ``(S, N, E_v)``.
        embed_dim_to_check: The number of features ``E`` that `query` must have.
        num_heads: The number of heads; it divides ``E``.
        in_proj_weight: The projections of queries, keys and values in one matrix, of shape ``(3 E, E)``.
        in_proj_bias: The biases of the three projections, of shape ``(3 E,)``, or ``None``.
        bias_k, bias_v: A key and a value that are appended, each of shape ``(1, 1, E)``, or ``None``.
        add_zero_attn: Whether a key and a value of zeros are appended.
        dropout_p: The probability to drop an attention weight in training.
        out_proj_weight: The projection of the output, of shape ``(E, E)``.
        out_proj_bias: The bias of that projection, of shape ``(E,)``, or ``None``.
        training: Whether dropout applies. Default: ``True``.
        key_padding_mask: Keys to leave out, of shape ``(N, S)``: bool, or a float mask that is added.
        need_weights: Whether to return the attention weights. Default: ``True``.
        attn_mask: Pairs to leave out, of shape ``(L, S)`` or ``(N * num_heads, L, S)``: bool, or a float mask that is
            added.
        use_separate_proj_weight: Whether the three projections are separate matrices. Default: ``False``.
        q_proj_weight, k_proj_weight, v_proj_weight: The matrices, of shapes ``(E, E)``, ``(E, E_k)``, ``(E, E_v)``.
        static_k, static_v: Keys and values after their projections, of shape ``(N * num_heads, S, E / num_heads)``.
        average_attn_weights: Whether the returned weights are means over the heads. Default: ``True``.
        is_causal: A hint that `attn_mask` is the causal mask. Default: ``False``.

    Returns:
        ``(output, weights)``. The output has the shape of `query`. The weights have the shape ``(N, L, S)``, or
        ``(N, num_heads, L, S)`` without averaging; they are ``None`` without ``need_weights``.

    Raises:
        AssertionError: Shapes or dtypes of the inputs do not fit.
        RuntimeError: The shape of `attn_mask` does not fit, or ``is_causal`` is set without a mask.

    Example:
        >>> x, eye = torch.tensor([[1.0], [1.0]]), torch.ones(1, 1)
        >>> output, weights = F.multi_head_attention_forward(
        ...     x, x, x, 1, 1, torch.ones(3, 1), None, None, None, False, 0.0, eye, None
        ... )
        >>> output.shape, weights
        (torch.Size([2, 1]), tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]]))

    See also:
        `torch.nn.MultiheadAttention`, `torch.nn.functional.scaled_dot_product_attention`.
    """
    if (OVERRIDES or not isinstance(query, torch.Tensor)) and (
        found := call_override(
            multi_head_attention_forward,
            (
                query,
                key,
                value,
                embed_dim_to_check,
                num_heads,
                in_proj_weight,
                in_proj_bias,
                bias_k,
                bias_v,
                add_zero_attn,
                dropout_p,
                out_proj_weight,
                out_proj_bias,
            ),
            {
                "training": training,
                "key_padding_mask": key_padding_mask,
                "need_weights": need_weights,
                "attn_mask": attn_mask,
                "is_causal": is_causal,
                "use_separate_proj_weight": use_separate_proj_weight,
                "q_proj_weight": q_proj_weight,
                "k_proj_weight": k_proj_weight,
                "v_proj_weight": v_proj_weight,
                "static_k": static_k,
                "static_v": static_v,
                "average_attn_weights": average_attn_weights,
            },
        )
    ) is not NotImplemented:
        return found
    if (
        _TRACES
        and (
            found := _handled(
                "multi_head_attention_forward",
                query,
                key,
                value,
                embed_dim_to_check,
                num_heads,
                in_proj_weight,
                in_proj_bias,
                bias_k,
                bias_v,
                add_zero_attn,
                dropout_p,
                out_proj_weight,
                out_proj_bias,
                training=training,
                key_padding_mask=key_padding_mask,
                need_weights=need_weights,
                attn_mask=attn_mask,
                use_separate_proj_weight=use_separate_proj_weight,
                q_proj_weight=q_proj_weight,
                k_proj_weight=k_proj_weight,
                v_proj_weight=v_proj_weight,
                static_k=static_k,
                static_v=static_v,
                average_attn_weights=average_attn_weights,
                is_causal=is_causal,
            )
        )
        is not NotImplemented
    ):
        return found
    _check_attention_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    batched = query.ndim == 3
    if not batched:
        same_kv, same_qk = key is value, query is key
        query = query.unsqueeze(1)
        key = query if same_qk else key.unsqueeze(1)
        value = key if same_kv else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    target, batch, features = query.shape
    source = key.shape[0]
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    key_padding_mask = _to_additive_mask(key_padding_mask, "key_padding_mask", query.dtype)
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = _to_additive_mask(attn_mask, "attn_mask", query.dtype)
        is_causal = False
    if features != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {features}")
    head_dim = features // num_heads
    if head_dim * num_heads != features:
        raise AssertionError(f"embed_dim {features} not divisible by num_heads {num_heads}")
    plain = not need_weights and bias_k is None and not add_zero_attn and static_k is None and static_v is None
    batch_first = plain and all(_is_batch_first_view(x) for x in (query, key, value))
    if batch_first:
        query, key, value = _transpose_batch(query, key, value)
    if not use_separate_proj_weight:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    else:
        q, k, v = _in_projection(query, key, value, (q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias)
    if attn_mask is not None:
        if attn_mask.ndim == 2:
            if attn_mask.shape != (target, source):
                raise RuntimeError(
                    f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be {(target, source)}."
                )
            attn_mask = attn_mask.unsqueeze(0)
        elif attn_mask.shape != (batch * num_heads, target, source):
            raise RuntimeError(
                f"The shape of the 3D attn_mask is {attn_mask.shape}, but should be "
                f"{(batch * num_heads, target, source)}."
            )
    if bias_k is not None and bias_v is not None:
        k, v = torch.cat([k, bias_k.repeat(1, batch, 1)]), torch.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _pad_mask(attn_mask), _pad_mask(key_padding_mask)
    heads = batch * num_heads
    if batch_first:
        q, k, v = (x.reshape(batch, -1, num_heads, head_dim).transpose(1, 2) for x in (q, k, v))
    else:
        q = _split_heads(q, heads, head_dim)
        k = _split_heads(k, heads, head_dim) if static_k is None else static_k
        v = _split_heads(v, heads, head_dim) if static_v is None else static_v
    if add_zero_attn:
        nothing = torch.zeros((heads, 1, head_dim), dtype=k.dtype, device=k.device)
        k, v = torch.cat([k, nothing], 1), torch.cat([v, nothing], 1)
        attn_mask, key_padding_mask = _pad_mask(attn_mask), _pad_mask(key_padding_mask)
    source = k.shape[-2]
    if key_padding_mask is not None:
        for place, want in enumerate((batch, source)):
            if key_padding_mask.shape[place] != want:
                raise AssertionError(
                    f"Expected key_padded_mask.shape[{place}] to be {want}, but got {key_padding_mask.shape[place]}"
                )
        spread = key_padding_mask.reshape(batch, 1, 1, source).expand(-1, num_heads, -1, -1).reshape(heads, 1, source)
        attn_mask = spread if attn_mask is None else attn_mask + spread
    if not training:
        dropout_p = 0.0
    if need_weights:
        return _attend_with_weights(
            q,
            k,
            v,
            attn_mask,
            dropout_p,
            (batch, num_heads, batched),
            average_attn_weights,
            out_proj_weight,
            out_proj_bias,
        )
    if attn_mask is not None:
        attn_mask = (
            attn_mask.unsqueeze(0) if attn_mask.shape[0] == 1 else attn_mask.reshape(batch, num_heads, -1, source)
        )
    if not batch_first:
        q, k, v = (x.reshape(batch, num_heads, x.shape[1], head_dim) for x in (q, k, v))
    attend = REPLACEMENT[0] if REPLACEMENT else F.scaled_dot_product_attention
    out = attend(q, k, v, attn_mask, dropout_p, is_causal)
    out = F.linear(out.permute(2, 0, 1, 3).reshape(target, batch, features), out_proj_weight, out_proj_bias)
    return out if batched else out.squeeze(1), None


def _attend_with_weights(q, k, v, attn_mask, dropout_p, layout, average, out_weight, out_bias):
    """Attention that also returns its weights."""
    batch, num_heads, batched = layout
    scores = torch.bmm(q * math.sqrt(1.0 / q.shape[-1]), k.transpose(1, 2))
    weights = F.softmax(scores if attn_mask is None else scores + attn_mask, -1)
    if dropout_p > 0.0:
        weights = torch.dropout(weights, dropout_p, True)
    target = q.shape[1]
    out = torch.bmm(weights, v).transpose(0, 1).reshape(target, batch, num_heads * v.shape[-1])
    out = F.linear(out, out_weight, out_bias)
    weights = weights.reshape(batch, num_heads, target, k.shape[1])
    if average:
        weights = weights.mean(1)
    return (out, weights) if batched else (out.squeeze(1), weights.squeeze(0))
