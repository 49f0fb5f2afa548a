"""Rules of matrix products and attention."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .nested_tensor import NestedTensor
from .ops import OpCall, rule, same_parts


@rule("matmul", "bmm", "mm")
def _matmul(found: OpCall) -> Any:
    a, b = found.values[:2]
    if not isinstance(a, NestedTensor):
        raise _mismatch(found, a, b)
    last = a._ragged_idx == a.ndim - 1
    if isinstance(b, NestedTensor):
        if last and b._ragged_idx == b.ndim - 2 and a._ragged.size == b._ragged.size and a.ndim == b.ndim:
            # The ragged dimension is summed over.
            return torch.stack([x @ y for x, y in zip(a.unbind(), b.unbind(), strict=True)])
        if same_parts(a, b) and a._ragged_idx < a.ndim - 2:
            return a._like(torch.matmul(a._values, b._values))
        raise _mismatch(found, a, b)
    if last:
        raise _mismatch(found, a, b)
    if b.ndim <= 2:
        return a._like(torch.matmul(a._values, b))
    if b.ndim != a.ndim or b.shape[0] not in (1, len(a)):
        raise _mismatch(found, a, b)
    if a._ragged_idx < a.ndim - 2 and b.shape[0] == 1 and b.shape[a._ragged_idx] == 1:
        return a._like(torch.matmul(a._values, b[0]))
    if a._lengths is not None or a._ragged_idx != a.ndim - 2:
        raise _mismatch(found, a, b)
    parts = [x @ y for x, y in zip(a.unbind(), b.expand(len(a), *b.shape[1:]), strict=True)]
    return a._like(torch.cat(parts, a._ragged_idx - 1))


def _mismatch(found: OpCall, a: Any, b: Any) -> RuntimeError:
    shapes = [tuple(a.shape) if isinstance(a, NestedTensor) else a.shape, b.shape]
    return RuntimeError(
        f"{found.op.function_name}(): not supported between inputs of shapes {shapes[0]} and {shapes[1]}"
    )


@rule("scaled_dot_product_attention")
def _attention(found: OpCall) -> Any:
    """Attention within each part: query, key and value of shape (batch, heads, ragged, size)."""
    query, key, value = found.values[:3]
    mask, dropout, causal, scale = (found.argument(n) for n in ("attn_mask", "dropout_p", "is_causal", "scale"))
    if mask is not None:
        raise ValueError("Masks are not yet supported!")
    if not all(isinstance(t, NestedTensor) for t in (query, key, value)):
        raise ValueError(
            "scaled_dot_product_attention(): query, key and value must all be nested tensors or all be dense"
        )
    for t in (query, key, value):
        if t.ndim != 4 or t._ragged_idx != 2 or t._lengths is not None:
            raise RuntimeError("No viable backend for scaled_dot_product_attention was found.")
    if key._ragged.size != value._ragged.size or len(query) != len(key):
        raise RuntimeError("scaled_dot_product_attention(): key and value must have the same ragged dimension")
    options = {"dropout_p": dropout, "is_causal": causal, "scale": scale, "enable_gqa": found.argument("enable_gqa")}
    outs = []
    for q, k, v in zip(query.unbind(), key.unbind(), value.unbind(), strict=True):
        part = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], **options)[0]
        outs.append(part.transpose(0, 1))
    return query.transpose(1, 2)._like(torch.cat(outs)).transpose(1, 2)
