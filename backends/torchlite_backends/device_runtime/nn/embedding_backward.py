"""Gradient of embedding rows."""

from __future__ import annotations

from torchlite_backends.kernel_sources import embedding_backward as texts

from ..array_ops.creation import full
from ..array_ops.gather_scatter_launch import as_contiguous_index
from ..array_ops.gather_scatter_ops import index_add
from ..array_ops.pointwise import KERNELS as POINTWISE
from ..core.array import Array, empty
from ..core.contiguous_copy import as_contiguous
from ..core.copy_fill import fill_with
from ..core.device import round_up_to_groups
from ..core.pointwise_dispatch import cast
from ..core.views import reshape, select
from .row_launch import FLOATS, make_row_launch

_MIN_INDICES_FOR_ATOMICS = 1 << 14  # more indices than this are not compared with one another


def _compute_inverse_counts(index: Array, kind: str) -> Array:
    """Return for each index the reciprocal of its frequency."""
    out = empty(index.device, (index.size,), kind)
    function = index.device.function(texts.INVERSE_COUNTS, "embedding_shares", "ppi", T=kind, I=index.kind)
    function(round_up_to_groups(index.size, 64), (64,), index, out, index.size)
    return out


def _embedding_backward(grad, indices, rows, padding_idx, scale_grad_by_freq):
    device, kind, n, count = grad.device, grad.kind, grad.shape[-1], indices.size
    if not count or not n or not rows:
        return full(device, (rows, n), 0, kind)
    index, grad = reshape(as_contiguous_index(indices), (count,)), reshape(as_contiguous(grad), (count, n))
    wide = FLOATS.get(kind)
    if wide is None or not device.is_cpu and count > _MIN_INDICES_FOR_ATOMICS:
        return _accumulate_by_atomics(grad, index, rows, padding_idx, scale_grad_by_freq)
    shares = _compute_inverse_counts(index, wide) if scale_grad_by_freq else None
    arrays = grad, index, shares or grad
    if device.is_cpu:
        out = empty(device, (rows, n), wide)
        at = make_row_launch(device, kind, 1, n)
        width = int(at.macros["W"])
        take = -(-n // (2 * device.units * width)) * width
        function = device.function(
            texts.BY_COLUMNS, "embedding_by_columns", "ppppiiiiii", at.widths, T=kind, I=index.kind, **at.macros
        )
        function((-(-n // take),), (1,), *arrays, out, count, rows, n, take, padding_idx, shares is not None)
    else:
        out = full(device, (rows, n), 0, wide)
        function = device.function(
            texts.BY_POSITIONS,
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


def _accumulate_by_atomics(grad: Array, index: Array, rows: int, padding: int, by_frequency: bool) -> Array:
    """Accumulate by atomic additions, for very many indices on GPUs and for complex numbers."""
    if by_frequency:
        shares = _compute_inverse_counts(index, FLOATS.get(grad.kind, "f32"))
        grad = POINTWISE["mul"](grad, reshape(cast(shares, grad.kind), (index.size, 1)))
    out = index_add(full(grad.device, (rows, grad.shape[1]), 0, grad.kind), 0, index, grad)
    if padding >= 0:
        fill_with(select(out, 0, padding), 0)
    return out
