"""Scaled dot product attention through cuDNN: half and bfloat16, without a mask or with the causal one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchlite._settings.backend_flags import FLAGS
from torchlite_backends.device_runtime.core.array import Array, empty, row_major_layout
from torchlite_backends.device_runtime.core.contiguous_copy import clone_row_major
from torchlite_backends.device_runtime.nn.attention import empty_in_order_of

from .cudnn import Graph, Library, Tensor, get_library, is_aligned, is_deterministic

_MAX_FEATURES = 256  # features
# Number of first requests of a shape that our kernels serve: cuDNN compiles each for seconds, which never pays if the
# shape grows with every call.
CALLS_BEFORE_BUILD = 2
_FEATURE_MULTIPLE = 8  # elements of 16 bytes: every step but the last is a multiple


def _is_walkable(x: Array) -> bool:
    """True if cuDNN can read an operand without a copy: contiguous features, aligned rows."""
    return (
        x.steps[-1] == 1
        and is_aligned(x)
        and all(
            step > 0 and step % _FEATURE_MULTIPLE == 0 or n == 1 for n, step in zip(x.shape[:-1], x.steps, strict=False)
        )
    )


def _is_supported(query: Array, key: Array, value: Array, mask: Array | None) -> bool:
    if mask is not None or query.kind not in ("f16", "bf16") or not FLAGS.sdp["cudnn"]:
        return False
    wide = max(query.shape[-1], value.shape[-1])
    same = query.shape[:-2] == key.shape[:-2] == value.shape[:-2] and query.ndim <= 4
    even = (
        wide <= _MAX_FEATURES and query.shape[-1] % _FEATURE_MULTIPLE == 0 and value.shape[-1] % _FEATURE_MULTIPLE == 0
    )
    return (
        same
        and even
        and bool(query.size and key.size and value.size)
        and _is_walkable(query)
        and _is_walkable(key)
        and _is_walkable(value)
    )


def _tensor_descriptor(x: Array) -> Tensor:
    """Return an operand's tensor (batch, heads, rows, features).

    A dimension of length 1, whose stride is arbitrary, gets the largest stride.
    """
    missing = 4 - x.ndim
    shape, steps = (1,) * missing + x.shape, (0,) * missing + x.steps
    if x.contiguous:
        return Tensor(shape, row_major_layout(shape)[1], x.kind)
    whole = max(n * s for n, s in zip(shape, steps, strict=True) if n != 1)
    return Tensor(shape, (*(whole if n == 1 else s for n, s in zip(shape[:3], steps, strict=False)), 1), x.kind)


def describe_forward(graph: Graph, inputs: list[Tensor], outputs: list[Tensor], scale: float, causal: bool) -> None:
    """Add the attention of (query, key, value), with the result and the log-sum-exp of each row as outputs."""
    query, key, value = map(graph.take, inputs)
    made = graph.made.sdpa(
        q=query,
        k=key,
        v=value,
        attn_scale=scale,
        use_causal_mask=causal,
        generate_stats=True,
        compute_data_type=graph.float,
    )
    for output, like in zip(made, outputs, strict=True):
        graph.give(output, like)


def describe_backward(
    graph: Graph, inputs: list[Tensor], outputs: list[Tensor], scale: float, causal: bool, same_bits: bool
) -> None:
    """Add the gradients of (query, key, value), from these, the result, its gradient and the log-sum-exp of each
    row.
    """
    query, key, value, out, grad, lse = map(graph.take, inputs)
    gradients = graph.made.sdpa_backward(
        q=query,
        k=key,
        v=value,
        o=out,
        dO=grad,
        stats=lse,
        attn_scale=scale,
        use_causal_mask=causal,
        use_deterministic_algorithm=same_bits,
        compute_data_type=graph.float,
    )
    for output, like in zip(gradients, outputs, strict=True):
        graph.give(output, like)


def _run(cudnn: Library, describe: Callable, inputs: list[Array], outputs: list[Array], *how: Any) -> bool:
    given, made = [_tensor_descriptor(x) for x in inputs], [_tensor_descriptor(x) for x in outputs]
    key = (describe, *given, *made, *how)
    patience = (
        0 if is_deterministic() or FLAGS.cudnn_benchmark else CALLS_BEFORE_BUILD
    )  # the same bits every time, or shapes that come again
    return cudnn.run(
        key, inputs[0].kind, lambda graph: describe(graph, given, made, *how), [*inputs, *outputs], patience
    )


def _sdpa(ours: Callable, query, key, value, attn_mask, is_causal, scale):
    cudnn = get_library(query.device) if _is_supported(query, key, value, attn_mask) else None
    if cudnn is not None:
        out, lse = empty_in_order_of(query, value.shape[-1]), empty(query.device, (*query.shape[:-1], 1), "f32")
        if _run(cudnn, describe_forward, [query, key, value], [out, lse], float(scale), bool(is_causal)):
            return out, lse
    return ours(query, key, value, attn_mask, is_causal, scale)


def _sdpa_backward(ours: Callable, grad, query, key, value, attn_mask, out, lse, is_causal, scale, needs):
    cudnn = get_library(query.device) if _is_supported(query, key, value, attn_mask) else None
    if cudnn is not None and is_aligned(lse) and lse.contiguous:
        grad, result = (x if _is_walkable(x) else clone_row_major(x) for x in (grad, out))
        gradients = [empty_in_order_of(x, x.shape[-1]) for x in (query, key, value)]
        if _run(
            cudnn,
            describe_backward,
            [query, key, value, result, grad, lse],
            gradients,
            float(scale),
            bool(is_causal),
            is_deterministic(),
        ):
            return tuple(x if need else None for x, need in zip(gradients, needs, strict=True))
    return ours(grad, query, key, value, attn_mask, out, lse, is_causal, scale, needs)


def kernels(table: dict[str, Any]) -> dict[str, Any]:
    """Return attention kernels that try cuDNN first and fall back to those of `table`."""
    return {kernel.__name__: functools.partial(kernel, table[kernel.__name__]) for kernel in (_sdpa, _sdpa_backward)}
