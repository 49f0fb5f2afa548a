"""Cross entropy with class indices, and the gradient of an embedding's rows."""

from __future__ import annotations

import math

from torchlite_kernels import cross_entropy as texts
from torchlite_kernels import embedding as embedding_texts

from ..elements.creation import full
from ..elements.planes import index_array
from ..elements.pointwise import KERNELS as POINTWISE
from ..elements.scatter import index_add
from ..machinery.array import Array, empty
from ..machinery.checks import TARGET, after_launch, error_code, watched
from ..machinery.copying import fill_with
from ..machinery.device import grid
from ..machinery.pointwise_apply import cast
from ..machinery.row_major import contiguous_array
from ..machinery.views import reshape, select
from .rows import FLOATS, around, layout, parameters_for, refuse

_WEIGHTED, _MEAN, _ADD_UP, _COUNT, _EACH = 1, 2, 4, 8, 16
_MANY = 1 << 14  # more indices than this are not compared with one another
_FEW = 1 << 14  # so many logits are one worker's work, which then adds up as well


def _targets(target: Array) -> Array:
    return contiguous_array(target if target.kind in ("i64", "i32", "u8") else cast(target, "i64"))


def _cross_entropy(input, target, weight, ignore_index, reduction):
    kind, device = input.kind, input.device
    if kind not in FLOATS:
        refuse(input, "log_softmax_lastdim_kernel_impl")
    wide, dim = FLOATS[kind], 1 if input.ndim > 1 else 0
    rows, n, inner = around(input.shape, dim)
    if target.size != rows:
        raise ValueError("batch sizes differ")
    lse = empty(device, target.shape, wide)
    if not input.size:
        return full(
            device, target.shape if reduction == "none" else (), math.nan if reduction == "mean" else 0, kind
        ), lse
    own, (weight,) = parameters_for(kind, weight)
    x, target = contiguous_array(input), _targets(target)
    few = device.is_cpu and input.size <= _FEW and reduction != "none"
    key = ("cross_entropy", kind, own, target.kind, input.shape, few)
    found = device.plans.get(key)
    if found is None:
        at = layout(device, kind, rows, n, inner, workers=1 if few else 0)
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
        watched(device),
        error_code(TARGET),
        at.rows,
        n,
        inner,
        at.per,
        flags,
        ignore_index,
    )
    after_launch(device)
    if reduction == "none":
        return losses if kind == wide else cast(losses, kind), lse
    if not few:
        key = ("cross_entropy_total", kind, rows)
        found = device.plans.get(key)
        if found is None:
            at = layout(device, kind, 1, rows)
            found = device.plans[key] = (
                device.function(
                    texts.CROSS_ENTROPY_TOTAL, "cross_entropy_total", "pppii", at.widths, T=kind, **at.macros
                ),
                at,
            )
        total, at = found
        total(at.global_size, at.local_size, losses, weights, result, rows, flags)
    return result, lse


def _total_weight(
    x: Array, target: Array, weight: Array | None, own: str, n: int, flags: int, ignore_index: int
) -> Array:
    """The sum of the targets' weights, 0-d."""
    device, total, key = (
        x.device,
        empty(x.device, (), FLOATS[x.kind]),
        ("cross_entropy_weights", x.kind, own, target.kind, target.size),
    )
    found = device.plans.get(key)
    if found is None:
        at = layout(device, x.kind, 1, target.size)
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
    rows, n, inner = around(input.shape, 1 if input.ndim > 1 else 0)
    own, (weight,) = parameters_for(kind, weight)
    x, target = contiguous_array(input), _targets(target)
    grad = contiguous_array(grad if grad.kind == kind else cast(grad, kind))
    lse = contiguous_array(lse if lse.kind == FLOATS[kind] else cast(lse, FLOATS[kind]))
    key = ("cross_entropy_backward", kind, own, target.kind, input.shape)
    found = device.plans.get(key)
    if found is None:
        at = layout(device, kind, rows, n, inner)
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
    flags, total = (weight is not None) * _WEIGHTED | (reduction == "mean") * _MEAN | (reduction == "none") * _EACH, lse
    if reduction == "mean":
        if device.is_cpu and rows * at.workers <= _FEW:
            flags |= _COUNT
        else:
            total = _total_weight(x, target, weight, own, n, flags, ignore_index)
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


# -- embedding --


def _shares(index: Array, kind: str) -> Array:
    """Of each index one divided by how often it occurs."""
    out = empty(index.device, (index.size,), kind)
    function = index.device.function(embedding_texts.SHARES, "embedding_shares", "ppi", T=kind, I=index.kind)
    function(grid(index.size, 64), (64,), index, out, index.size)
    return out


def _embedding_backward(grad, indices, rows, padding_idx, scale_grad_by_freq):
    device, kind, n, count = grad.device, grad.kind, grad.shape[-1], indices.size
    if not count or not n or not rows:
        return full(device, (rows, n), 0, kind)
    index, grad = reshape(index_array(indices), (count,)), reshape(contiguous_array(grad), (count, n))
    wide = FLOATS.get(kind)
    if wide is None or not device.is_cpu and count > _MANY:
        return _by_scatter(grad, index, rows, padding_idx, scale_grad_by_freq)
    shares = _shares(index, wide) if scale_grad_by_freq else None
    arrays = grad, index, shares or grad
    if device.is_cpu:
        out = empty(device, (rows, n), wide)
        at = layout(device, kind, 1, n)
        width = int(at.macros["W"])
        take = -(-n // (2 * device.units * width)) * width
        function = device.function(
            embedding_texts.BY_COLUMNS,
            "embedding_by_columns",
            "ppppiiiiii",
            at.widths,
            T=kind,
            I=index.kind,
            **at.macros,
        )
        function((-(-n // take),), (1,), *arrays, out, count, rows, n, take, padding_idx, shares is not None)
    else:
        out = full(device, (rows, n), 0, wide)
        function = device.function(
            embedding_texts.BY_POSITIONS,
            "embedding_by_positions",
            "ppppiiiii",
            T=kind,
            I=index.kind,
            W="1",
            LANES="64",
            COLUMNS="0",
        )
        function((64 * count,), (64,), *arrays, out, count, rows, n, padding_idx, shares is not None)
    return out if wide == kind else cast(out, kind)


def _by_scatter(grad: Array, index: Array, rows: int, padding: int, by_frequency: bool) -> Array:
    """The gradient by atomic additions, for very many indices on GPUs and for complex numbers."""
    if by_frequency:
        shares = _shares(index, FLOATS.get(grad.kind, "f32"))
        grad = POINTWISE["mul"](grad, reshape(cast(shares, grad.kind), (index.size, 1)))
    out = index_add(full(grad.device, (rows, grad.shape[1]), 0, grad.kind), 0, index, grad)
    if padding >= 0:
        fill_with(select(out, 0, padding), 0)
    return out
