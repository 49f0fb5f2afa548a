"""Cross entropy with class indices, forward and backward."""

from __future__ import annotations

import math

from torchlite_backends.kernel_sources import cross_entropy as texts

from ..array_ops.creation import full
from ..core.array import Array, empty
from ..core.contiguous_copy import as_contiguous
from ..core.device_asserts import TARGET, encode_error, get_error_array, raise_if_blocking
from ..core.pointwise_dispatch import cast
from .row_launch import FLOATS, cast_parameters_to_common_kind, make_row_launch, raise_not_implemented, split_rows_along

_WEIGHTED, _MEAN, _ADD_UP, _COUNT, _NO_REDUCTION = 1, 2, 4, 8, 16
_FEW = 1 << 14  # at most so many logits are one worker's, which also adds them up


def _as_target_indices(target: Array) -> Array:
    return as_contiguous(target if target.kind in ("i64", "i32", "u8") else cast(target, "i64"))


def _cross_entropy(input, target, weight, ignore_index, reduction):
    kind, device = input.kind, input.device
    if kind not in FLOATS:
        raise_not_implemented(input, "log_softmax_lastdim_kernel_impl")
    wide, dim = FLOATS[kind], 1 if input.ndim > 1 else 0
    rows, n, inner = split_rows_along(input.shape, dim)
    if target.size != rows:
        raise ValueError("batch sizes differ")
    lse = empty(device, target.shape, wide)
    if not input.size:
        return full(
            device, target.shape if reduction == "none" else (), math.nan if reduction == "mean" else 0, kind
        ), lse
    own, (weight,) = cast_parameters_to_common_kind(kind, weight)
    x, target = as_contiguous(input), _as_target_indices(target)
    few = device.is_cpu and input.size <= _FEW and reduction != "none"
    key = ("cross_entropy", kind, own, target.kind, input.shape, few)
    found = device.plans.get(key)
    if found is None:
        at = make_row_launch(device, kind, rows, n, inner, workers=1 if few else 0)
        function = device.function(
            texts.CROSS_ENTROPY,
            "cross_entropy",
            "ppppppppiiiiiiq",
            at.widths,
            T=kind,
            P=own,
            I=target.kind,
            **at.macros,
        )
        found = device.plans[key] = function, at
    function, at = found
    flags = (weight is not None) * _WEIGHTED | (reduction == "mean") * _MEAN | few * _ADD_UP
    losses = lse if few else empty(device, target.shape, wide)
    weights = losses if few else empty(device, target.shape, wide)
    result = x if reduction == "none" else empty(device, (), kind)
    function(
        at.global_size,
        at.local_size,
        x,
        target,
        weight or x,
        lse,
        losses,
        weights,
        result,
        get_error_array(device),
        encode_error(TARGET),
        at.rows,
        n,
        inner,
        at.per,
        flags,
        ignore_index,
    )
    raise_if_blocking(device)
    if reduction == "none":
        return losses if kind == wide else cast(losses, kind), lse
    if not few:
        total_key = ("cross_entropy_total", kind, rows)
        total_plan = device.plans.get(total_key)
        if total_plan is None:
            at = make_row_launch(device, kind, 1, rows)
            total_plan = device.plans[total_key] = (
                device.function(
                    texts.CROSS_ENTROPY_TOTAL, "cross_entropy_total", "pppii", at.widths, T=kind, **at.macros
                ),
                at,
            )
        total, at = total_plan
        total(at.global_size, at.local_size, losses, weights, result, rows, flags)
    return result, lse


def _sum_target_weights(
    x: Array, target: Array, weight: Array | None, own: str, n: int, flags: int, ignore_index: int
) -> Array:
    """Return the sum of the targets' weights, 0-d."""
    device, total, key = (
        x.device,
        empty(x.device, (), FLOATS[x.kind]),
        ("cross_entropy_weights", x.kind, own, target.kind, target.size),
    )
    found = device.plans.get(key)
    if found is None:
        at = make_row_launch(device, x.kind, 1, target.size)
        function = device.function(
            texts.CROSS_ENTROPY_WEIGHTS,
            "cross_entropy_weights",
            "pppiiiq",
            at.widths,
            T=x.kind,
            P=own,
            I=target.kind,
            **at.macros,
        )
        found = device.plans[key] = function, at
    function, at = found
    function(at.global_size, at.local_size, target, weight or x, total, target.size, n, flags, ignore_index)
    return total


def _cross_entropy_backward(grad, input, target, weight, lse, ignore_index, reduction):
    kind, device = input.kind, input.device
    out = empty(device, input.shape, kind)
    if not input.size:
        return out
    rows, n, inner = split_rows_along(input.shape, 1 if input.ndim > 1 else 0)
    own, (weight,) = cast_parameters_to_common_kind(kind, weight)
    x, target = as_contiguous(input), _as_target_indices(target)
    grad = as_contiguous(grad if grad.kind == kind else cast(grad, kind))
    lse = as_contiguous(lse if lse.kind == FLOATS[kind] else cast(lse, FLOATS[kind]))
    key = ("cross_entropy_backward", kind, own, target.kind, input.shape)
    found = device.plans.get(key)
    if found is None:
        at = make_row_launch(device, kind, rows, n, inner)
        function = device.function(
            texts.CROSS_ENTROPY_BACKWARD,
            "cross_entropy_backward",
            "pppppppiiiiiiq",
            at.widths,
            T=kind,
            P=own,
            I=target.kind,
            **at.macros,
        )
        found = device.plans[key] = function, at
    function, at = found
    flags, total = (
        (weight is not None) * _WEIGHTED | (reduction == "mean") * _MEAN | (reduction == "none") * _NO_REDUCTION,
        lse,
    )
    if reduction == "mean":
        if device.is_cpu and rows * at.workers <= _FEW:
            flags |= _COUNT
        else:
            total = _sum_target_weights(x, target, weight, own, n, flags, ignore_index)
    function(
        at.global_size,
        at.local_size,
        grad,
        x,
        target,
        weight or x,
        lse,
        total,
        out,
        at.rows,
        n,
        inner,
        at.per,
        flags,
        rows,
        ignore_index,
    )
    return out
