"""Views and copies that rearrange dimensions."""
from __future__ import annotations

from .._dispatch import MAYBE_VIEW, VIEW, composite, op
from .._dispatch.shapes import contiguous_strides, infer_size, wrap_dim


def _inverse(dims, ndim):
    out = [0] * ndim
    for i, d in enumerate(dims):
        out[d % ndim] = i
    return tuple(out)


op("reshape(Tensor input, *shape)", tags=MAYBE_VIEW, vjp={"input": lambda F, g, input_shape: F.reshape(g, input_shape)})
op("_view(Tensor input, shape)", where="", tags=VIEW, vjp={"input": lambda F, g, input_shape: F.reshape(g, input_shape)})
op("permute(Tensor input, *dims)", tags=VIEW, vjp={"input": lambda F, g, dims: F.permute(g, _inverse(dims, len(dims)))})
op("transpose(Tensor input, dim0, dim1)", tags=VIEW, alias="swapaxes swapdims", vjp={"input": lambda F, g, dim0, dim1: F.transpose(g, dim0, dim1)})
op("expand(Tensor input, *size)", where="Tensor", tags=VIEW, vjp={"input": lambda F, g: g})
op("squeeze(Tensor input, dim=None)", tags=VIEW, vjp={"input": lambda F, g, input_shape: F.reshape(g, input_shape)})
op("unsqueeze(Tensor input, dim)", tags=VIEW, vjp={"input": lambda F, g, input_shape: F.reshape(g, input_shape)})


def _as_strided_vjp(F, g, input_shape, size, stride, offset, input_stride):
    layout = (tuple(size), tuple(stride), offset or 0)
    return F._move_strided(g, layout, (input_shape, contiguous_strides(input_shape) if input_stride is None else input_stride, 0), "target")


# `offset` counts from the first element of `input`; `input_stride` (contiguous when None) is what the derivative needs to know of its layout.
op("as_strided(Tensor input, size, stride, offset=None, input_stride=None)", where="", tags=VIEW, vjp={"input": _as_strided_vjp})
# Elements laid out in memory as `source` says (shape, strides, offset), added up there, and read as `target` says; shares of elements that lie on one place of the
# source or the target are divided among them.
op("_move_strided(Tensor input, source, target, divide)", where="", meta=lambda input, target: (target[0], input.dtype), vjp={
    "input": lambda F, g, source, target, divide: F._move_strided(g, target, source, "source" if divide == "target" else "target")})


@composite("_as_strided(Tensor input, size, stride, storage_offset=None)", where="", alias="torch.as_strided Tensor.as_strided", tags=VIEW)
def as_strided(F, input, size, stride, storage_offset):
    """A view of the memory under `input` with the given size, strides and storage offset (the input's own by default), all in elements.

    RuntimeError when it would leave the memory.

    >>> torch.as_strided(torch.tensor([1, 2, 3]), (2, 2), (1, 1))
    tensor([[1, 2],
            [2, 3]])
    """
    offset = 0 if storage_offset is None else storage_offset - input.storage_offset()
    return F.as_strided(input, tuple(size), tuple(stride), offset, input.stride())


op("flip(Tensor input, *dims)", vjp={"input": lambda F, g, dims: F.flip(g, dims)}, meta=lambda input: (input.shape, input.dtype))
op("clone(Tensor input, *, memory_format=None)", vjp={"input": lambda F, g: g}, meta=lambda input: (input.shape, input.dtype))
op("contiguous(Tensor input, memory_format=None)", where="Tensor", tags=MAYBE_VIEW, vjp={"input": lambda F, g: g})
op("cat(Tensor[] tensors, dim=0)", alias="torch.concat torch.concatenate", where="torch", promote="default",
   meta=lambda tensors, dim: (_cat_shape([t.shape for t in tensors], dim), tensors[0].dtype),
   vjp={"tensors": lambda F, g, tensors_shape, dim: _cat_vjp(F, g, tensors_shape, dim)})


def _cat_shape(shapes, dim):
    if not shapes:
        raise ValueError("expected a non-empty list of Tensors")
    shapes = [s for s in shapes if tuple(s) != (0,)] or [(0,)]
    first = shapes[0]
    for i, s in enumerate(shapes):
        if len(s) == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
        if len(s) != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(s)}")
    d = wrap_dim(dim, len(first))
    for i, s in enumerate(shapes):
        for axis, (a, b) in enumerate(zip(first, s, strict=True)):
            if a != b and axis != d:
                raise RuntimeError(f"Sizes of tensors must match except in dimension {d}. Expected size {a} but got size {b} for tensor number {i} in the list.")
    return (*first[:d], sum(s[d] for s in shapes), *first[d + 1:])


def _cat_vjp(F, g, shapes, dim):
    start, out = 0, []
    d = wrap_dim(dim, g.ndim)
    for shape in shapes:
        if tuple(shape) == (0,) and g.ndim != 1:
            out.append(F.new_zeros(g, (0,)))
            continue
        out.append(F.narrow(g, d, start, shape[d]))
        start += shape[d]
    return out


def _narrow_back(F, g, shape, dim, start, stop, step):
    return F._slice_backward(g, shape, dim, start, stop, step)


op("slice(Tensor input, dim=0, start=None, stop=None, step=1)", where="", tags=VIEW, vjp={
    "input": lambda F, g, input_shape, dim, start, stop, step: _narrow_back(F, g, input_shape, dim, start, stop, step)})
op("_slice_backward(Tensor input, shape, dim, start, stop, step)", where="", meta=lambda input, shape: (shape, input.dtype), vjp={
    "input": lambda F, g, dim, start, stop, step: F.slice(g, dim, start, stop, step)})
op("_narrow(Tensor input, dim, start, length)", where="", tags=VIEW, vjp={
    "input": lambda F, g, input_shape, dim, start, length: _narrow_back(F, g, input_shape, dim, start, start + length, 1)})


@composite("narrow(Tensor input, dim, start, length)", tags=VIEW)
def narrow(F, input, dim, start, length):
    """The `length` entries of a dimension from `start` on, as a view."""
    size = input.shape[wrap_dim(dim, input.ndim)]
    start = int(start)
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start += size if start < 0 else 0
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return F.slice(input, dim, start, start + length, 1)


@composite("view(Tensor input, *shape)", where="Tensor")
def view(F, input, shape):
    """The same memory with another shape (or, given a dtype, read as that dtype). RuntimeError when strides do not allow it."""
    if len(shape) == 1 and not isinstance(shape[0], int) and hasattr(shape[0], "itemsize") and hasattr(shape[0], "category"):
        return F._view_dtype(input, shape[0])
    return F._view(input, infer_size(shape, input.numel()))
