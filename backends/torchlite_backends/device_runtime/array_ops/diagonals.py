"""Diagonals and triangular parts of matrices."""

from __future__ import annotations

import operator

from torchlite._dispatch.shape_and_value_checks import diagonal_dims
from torchlite._dispatch.shapes import wrap_dim
from torchlite_backends.kernel_sources import rearrange as texts

from ..core.array import Array, empty, make_view
from ..core.contiguous_copy import as_contiguous, clone_row_major
from ..core.copy_fill import copy_into, fill_with
from .creation import full
from .gather_scatter_ops import write_view
from .launch_sizes import choose_work_sizes, copy_kind


def diagonal(input, offset=0, dim1=0, dim2=1):
    first, second = diagonal_dims(input.ndim, dim1, dim2)
    rows, columns = input.shape[first], input.shape[second]
    length = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    start = input.offset
    if length:
        start += max(-offset, 0) * input.steps[first] + max(offset, 0) * input.steps[second]
    kept = [a for a in range(input.ndim) if a not in (first, second)]
    return make_view(
        input,
        (*[input.shape[a] for a in kept], length),
        (*[input.steps[a] for a in kept], input.steps[first] + input.steps[second]),
        start,
    )


def _diagonal_backward(grad, shape, offset, dim1, dim2):
    out = full(grad.device, shape, 0, grad.kind)
    copy_into(diagonal(out, offset, dim1, dim2), grad)
    return out


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    out = clone_row_major(input)
    return write_view(out, diagonal(out, offset, dim1, dim2), src)


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    ndim = input.ndim + 1
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size, kept = input.shape[-1] + abs(offset), iter(input.shape[:-1])
    return _diagonal_backward(
        input, tuple([size if axis in (first, second) else next(kept) for axis in range(ndim)]), offset, first, second
    )


def _fill_diagonal_view(x: Array, wrap: bool) -> Array:
    """View the elements that `fill_diagonal_` writes."""
    if x.ndim > 2 or not wrap or x.shape[0] <= x.shape[1]:
        return make_view(x, (min(x.shape),), (sum(x.steps),), x.offset)
    rows, columns = x.shape
    return make_view(x, (-(-(rows * columns) // (columns + 1)),), (columns + 1,), x.offset)


def _fill_diagonal_(input, value, wrap):
    if wrap and input.ndim == 2 and not input.contiguous:
        copy_into(input, _fill_diagonal(input, value, wrap))
    elif input.size:
        fill_with(_fill_diagonal_view(input, wrap), value)


def _fill_diagonal(input, value, wrap):
    out = clone_row_major(input)
    _fill_diagonal_(out, value, wrap)
    return out


def _keep_triangle(name: str, input: Array, diagonal: int, lower: int) -> Array:
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    x, device = as_contiguous(input), input.device
    out = empty(device, x.shape, x.kind)
    if out.size:
        height, width = x.shape[-2:]
        rows = out.size // width
        take, items, group = choose_work_sizes(device, rows, max(1, 1024 // width))
        diagonal = max(min(operator.index(diagonal), width), -height)
        device.function(texts.TRIANGLE, "triangle", "ppiiiiii", (16,), T=copy_kind(x))(
            items, group, x, out, rows, take, height, width, diagonal, lower
        )
    return out


def tril(input, diagonal=0):
    return _keep_triangle("tril", input, diagonal, 1)


def triu(input, diagonal=0):
    return _keep_triangle("triu", input, diagonal, 0)
