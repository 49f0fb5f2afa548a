"""Scaled dot product attention.

`_sdpa` is the case without dropout and without a gradient for the mask, as one record: forward keeps the log of each
row's sum, and backward computes the weights again from it, so that no (query, key) matrix outlives its block in a fused
kernel (Dao et al., 2022).
"""

import math

from torchlite._dispatch import REGISTRY, composite, op
from torchlite._dispatch.interceptors import call_torch_function, find_torch_function_override
from torchlite._dispatch.shape_and_value_checks import is_tracked_by_autograd
from torchlite._dispatch.shapes import broadcast_shapes
from torchlite._types.dtypes import COMPLEX

from ._dtype_checks import refuse_kinds
from .node_graphs import attention_graph

MINUS_INF = -float("inf")


def _later_keys(F, query, key):
    """True for each pair (query, key) of which the key is later, (L, S)."""
    last = F.unsqueeze(F._new_arange(query, 0, query.shape[-2], 1, F.dtype_of(query)), 1)
    return F.gt(F._new_arange(query, 0, key.shape[-2], 1, F.dtype_of(query)), last)


def _attention_scores(F, query, key, attn_mask, is_causal, scale):
    scores = F.matmul(F.mul(query, scale), F.transpose(key, -2, -1))
    if is_causal:
        scores = F.where(_later_keys(F, query, key), F._full_like(scores, MINUS_INF), scores)
    if attn_mask is not None:
        if F.dtype_of(attn_mask).category == 0:
            scores = F.where(attn_mask, scores, F._full_like(scores, MINUS_INF))
        else:
            scores = F.add(scores, attn_mask)
    return scores


def _attention_weights_and_logsumexp(F, scores):
    """Softmax over the last dimension, with zeros for fully masked rows; and the log of each row's sum."""
    if not scores.shape[-1]:
        return scores, F._full_like(F.sum(scores, -1, True), MINUS_INF)
    largest = F.amax(scores, -1, True)
    blocked = F.eq(largest, MINUS_INF)
    largest = F.where(blocked, F._zeros_like(largest), largest)
    weights = F.exp(F.sub(scores, largest))
    total = F.sum(weights, -1, True)
    total = F.where(blocked, F._ones_like(total), total)
    return F.div(weights, total), F.add(F.log(total), largest)


def _sdpa(F, query, key, value, attn_mask, is_causal, scale):
    weights, lse = _attention_weights_and_logsumexp(F, _attention_scores(F, query, key, attn_mask, is_causal, scale))
    return F.matmul(weights, value), lse


def _sdpa_backward(F, grad, query, key, value, attn_mask, out, lse, is_causal, scale, needs):
    weights, _ = _attention_weights_and_logsumexp(F, _attention_scores(F, query, key, attn_mask, is_causal, scale))
    grad_value = F.matmul(F.transpose(weights, -2, -1), grad) if needs[2] else None
    if not (needs[0] or needs[1]):
        return None, None, grad_value
    grad_weights = F.matmul(grad, F.transpose(value, -2, -1))
    weighted = F.mul(grad_weights, weights)
    grad_scores = F.mul(F.sub(weighted, F.mul(weights, F.sum(weighted, -1, True))), scale)
    grad_query = F.matmul(grad_scores, key) if needs[0] else None
    grad_key = F.matmul(F.transpose(grad_scores, -2, -1), query) if needs[1] else None
    return grad_query, grad_key, grad_value


def _check_product(first, second, batch):
    """Raise unless matrices of these two shapes can be multiplied."""
    if first[1] == second[0]:
        return
    if not batch:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({first[0]}x{first[1]} and {second[0]}x{second[1]})"
        )
    count = math.prod(batch)
    raise RuntimeError(
        f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {first[1]}] but got: [{count}, "
        f"{second[0]}]."
    )


def _sdpa_shape_fn(query, key, value, attn_mask):
    batch = broadcast_shapes(query.shape[:-2], key.shape[:-2])
    rows, columns = query.shape[-2], key.shape[-2]
    _check_product(query.shape[-2:], (key.shape[-1], columns), batch)
    if attn_mask is not None:
        broadcast_shapes((*batch, rows, columns), tuple(attn_mask.shape))
    broadcast_shapes(batch, value.shape[:-2])
    _check_product((rows, columns), value.shape[-2:], batch)
    lead = tuple(query.shape[:-1])
    return [((*lead, value.shape[-1]), query.dtype), ((*lead, 1), query.dtype)]


op(
    "_sdpa_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? attn_mask, Tensor out, Tensor lse, "
    "is_causal, scale, needs)",
    where="",
    composite=_sdpa_backward,
)


def _sdpa_vjp(F, g, query, key, value, value_shape, attn_mask, out0, out1, is_causal, scale, needs):
    if value is None:  # the value's own gradient asks for neither its numbers nor the result's
        value, out0 = F._new_zeros(g, value_shape), g
    return F._sdpa_backward(g, query, key, value, attn_mask, out0, out1, is_causal, scale, needs)


_attention = op(
    "_sdpa(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, is_causal, scale)",
    where="",
    composite=_sdpa,
    shape_fn=_sdpa_shape_fn,
    vjp={("query", "key", "value"): _sdpa_vjp},
    aux_outputs=True,
    saved_for={"value": ("query", "key"), "out0": ("query", "key")},
)


def _takes_fused(query, key, value, enable_gqa) -> bool:
    """True for operands that PyTorch's fused kernel of the CPU takes; its products refuse a mask with `is_causal`."""
    q, k, v = (tuple(t.shape) for t in (query, key, value))
    if any(len(s) != 4 or 0 in s for s in (q, k, v)) or not q[-1] == k[-1] == v[-1] or not q[0] == k[0] == v[0]:
        return False
    return k[1] == v[1] and (q[1] % k[1] == 0 if enable_gqa else q[1] == k[1])


def _broadcasts_within(shape, whole) -> bool:
    """True if an array of one shape broadcasts to the other."""
    if len(shape) > len(whole):
        return False
    return all(n == 1 or n == m for n, m in zip(reversed(shape), reversed(whole), strict=False))


def _check_sdpa_arguments(query, key, value, attn_mask, is_causal):
    if query.dtype is not key.dtype or query.dtype is not value.dtype:
        names = tuple(t.dtype.c_name for t in (query, key, value))
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {names[0]} key.dtype: "
            f"{names[1]} and value.dtype: {names[2]} instead."
        )
    if query.dtype.category < 2:
        raise RuntimeError(f"expected scalar type Float but found {query.dtype.scalar_name}")
    refuse_kinds(query.dtype, "softmax_lastdim_kernel_impl", COMPLEX)
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {query.ndim} "
            f"key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    if attn_mask is not None:
        if is_causal:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
            )
        if attn_mask.dtype.category != 0 and attn_mask.dtype is not query.dtype:
            raise RuntimeError(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                f"{attn_mask.dtype.c_name} and  query.dtype: {query.dtype.c_name} instead."
            )


@composite(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, dropout_p=0.0, "
    "is_causal=False, *, scale=None, enable_gqa=False)",
    where="nn.functional",
    node_name=attention_graph,
)
def scaled_dot_product_attention(F, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    r"""Computes attention: ``softmax(query @ key^T * scale + mask) @ value``.

    .. math::

        \mathrm{softmax} \left( \frac{Q K^{\mathsf{T}}}{\sqrt{E}} + M \right) V

    Args:
        query: The queries, of shape ``(*, L, E)``.
        key: The keys, of shape ``(*, S, E)``.
        value: The values, of shape ``(*, S, E_v)``.
        attn_mask: A mask that broadcasts to ``(*, L, S)``: bool, true for pairs that take part, or floats that are
            added.
        dropout_p: The probability to drop an attention weight. Default: 0.
        is_causal: Whether query ``i`` sees keys 0 to ``i`` alone. Default: ``False``.
        scale: The factor of the products. Default: ``1 / sqrt(E)``.
        enable_gqa: Whether each head of `key` and `value` serves several heads of `query`. Default: ``False``.

    Returns:
        A tensor of shape ``(*, L, E_v)``.

    Raises:
        RuntimeError: Shapes or dtypes do not fit, or both `attn_mask` and `is_causal` are given with dropout, with a
            mask that needs a gradient, or with operands that are not four-dimensional and of one width.

    Source:
        Vaswani et al., Attention is all you need (2017).

    Example:
        >>> x = torch.tensor([[[1.0], [3.0]]])
        >>> F.scaled_dot_product_attention(x, x, x, is_causal=True).round(decimals=3)
        tensor([[[1.0000],
                 [2.9950]]])

    See also:
        `torch.nn.MultiheadAttention`.
    """
    if attn_mask is not None and find_torch_function_override((attn_mask,)) is not None:
        options = {"scale": scale, "enable_gqa": enable_gqa}
        args = (query, key, value, attn_mask, dropout_p, is_causal)
        return call_torch_function(REGISTRY["scaled_dot_product_attention"].function, args, args, options)
    is_fused = dropout_p == 0.0 and (attn_mask is None or not is_tracked_by_autograd(attn_mask))
    masks_in_kernel = attn_mask is not None and is_fused and _takes_fused(query, key, value, enable_gqa)
    both = is_causal and masks_in_kernel
    _check_sdpa_arguments(query, key, value, attn_mask, is_causal and not both)
    if masks_in_kernel and attn_mask.ndim < 2:
        attn_mask.size(-2)  # raises the IndexError of the kernel, which asks for the mask's rows
    if both:
        later, is_causal = _later_keys(F, query, key), False
        if attn_mask.dtype.category == 0:
            attn_mask = F.logical_and(attn_mask, F.logical_not(later))
        else:
            attn_mask = F.where(later, F._full_like(attn_mask, MINUS_INF), attn_mask)
    q, k, v = tuple(query.shape), tuple(key.shape), tuple(value.shape)
    if scale is None:
        scale = 1.0 / math.sqrt(q[-1]) if q[-1] else 1.0
    if enable_gqa and not q[-3] == k[-3] == v[-3]:
        heads, key_heads, value_heads = q[-3], k[-3], v[-3]
        if heads % key_heads or heads % value_heads:
            raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
        key = key.repeat_interleave(heads // key_heads, -3)
        value = value.repeat_interleave(heads // value_heads, -3)
        k, v = tuple(key.shape), tuple(value.shape)
    if (
        attn_mask is not None
        and not _broadcasts_within(tuple(attn_mask.shape), (*q[:-1], k[-2]))
        or q[-1] != k[-1]
        or q[:-2] != k[:-2]
        or k[:-1] != v[:-1]
    ):
        _sdpa_shape_fn(query, key, value, attn_mask)  # not every kernel looks
    if is_fused:
        return F._sdpa(query, key, value, attn_mask, is_causal, scale)
    weights, _ = _attention_weights_and_logsumexp(F, _attention_scores(F, query, key, attn_mask, is_causal, scale))
    if dropout_p:
        weights = F.dropout(weights, dropout_p, True)
    return F.matmul(weights, value)


# --- PyTorch's layer under private names ------------------------------------------------------------


@composite("_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, num_heads)", where="torch")
def _transform_bias_rescale_qkv(F, qkv, qkv_bias, num_heads):
    """Queries, keys and values by heads, (N, H, L, E / H) each, from their joined projections (N, L, 3 E) and bias
    (3 E); queries are divided by the root of their length.
    """
    count, length, width = qkv.shape
    size = width // 3
    if size % num_heads:
        raise RuntimeError("Expected D % num_head == 0 to be true, but got false.")
    q, k, v = (
        part.reshape(count, length, num_heads, size // num_heads).transpose(1, 2)
        for part in F.split(qkv + qkv_bias, size, -1)
    )
    return q / math.sqrt(size // num_heads), k, v


def _check_native(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias):
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.ndim != 3:
            raise RuntimeError(f"expected 3-D `{name}`, got {tensor.ndim}-D tensor")
    if query.shape[2] != embed_dim:
        raise RuntimeError(f"passed-in embed_dim {embed_dim} didn't match last dim of query {query.shape[2]}")
    if tuple(query.shape) != tuple(key.shape) or tuple(key.shape) != tuple(value.shape):
        raise RuntimeError("expected `query`/`key`/`value` shapes to match")
    if qkv_weight.ndim != 2:
        raise RuntimeError(f"expected 2-D `qkv_weight`, got {qkv_weight.ndim}-D tensor")
    if qkv_weight.shape[0] != 3 * embed_dim:
        raise RuntimeError("expected `qkv_weight` first dim to be 3x embed_dim")
    if qkv_weight.shape[1] != embed_dim:
        raise RuntimeError("expected `qkv_weight` second dim to be embed_Dim")
    if qkv_bias.ndim != 1:
        raise RuntimeError(f"expected 1-D `qkv_bias`, got {qkv_bias.ndim}-D tensor")
    if qkv_bias.shape[0] != 3 * embed_dim:
        raise RuntimeError("expected `qkv_bias` first dim and first dim of query to be equal")
    if embed_dim % num_head:
        raise RuntimeError("`embed_dim` must divide evenly by `num_heads`")


def _native_mask(mask, mask_type, count, length):
    """The mask as (N or 1, H or 1, L or 1, S): true where a query may not look."""
    if mask is None:
        return None
    if mask_type is None:
        raise RuntimeError("Mask Type should be defined")
    if mask_type not in (0, 1, 2):
        raise RuntimeError("Mask Type should be 0 (src_mask), 1 (src_key_padding_mask), or 2 (default_mask)")
    if mask.dtype.category != 0:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask_type == 2:
        return mask
    return mask.reshape((count, 1, 1, length) if mask_type else (1, 1, length, length))


@composite(
    "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, embed_dim, num_head, Tensor qkv_weight, "
    "Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, need_weights=True, "
    "average_attn_weights=True, mask_type=None)",
    where="torch",
)
def _native_multi_head_attention(
    F,
    query,
    key,
    value,
    embed_dim,
    num_head,
    qkv_weight,
    qkv_bias,
    proj_weight,
    proj_bias,
    mask,
    need_weights,
    average_attn_weights,
    mask_type,
):
    """The computation of `nn.MultiheadAttention` on batches (N, L, E): the result (N, L, E) and the weights (N, L, L),
    per head (N, H, L, L) unless averaged, None unless needed. `mask` is true at positions that are not attended to:
    (L, L) for `mask_type` 0, (N, L) for 1, (N, H, L, L) for 2.
    """
    _check_native(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias)
    count, length = query.shape[:2]
    if query is key is value:
        joined = F.linear(query, qkv_weight, qkv_bias)
    else:
        thirds = zip((query, key, value), *(F.split(p, embed_dim, 0) for p in (qkv_weight, qkv_bias)), strict=True)
        joined = F.cat([F.linear(x, w, b) for x, w, b in thirds], -1)
    size = embed_dim // num_head
    q, k, v = joined.reshape(count, length, 3, num_head, size).permute(2, 0, 3, 1, 4).unbind(0)
    hidden = _native_mask(mask, mask_type, count, length)
    if hidden is None and not need_weights:
        weights, out = None, F.scaled_dot_product_attention(q, k, v)
    else:
        scores = F.matmul(q / math.sqrt(size), k.transpose(-2, -1))
        if hidden is not None:
            scores = scores.masked_fill(hidden, -math.inf)
        weights = F.softmax(scores, -1)
        out = F.matmul(weights, v)
    out = F.linear(out.transpose(1, 2).reshape(count, length, embed_dim), proj_weight, proj_bias)
    if not need_weights:
        return out, None
    return out, F.mean(weights, 1) if average_attn_weights else weights
