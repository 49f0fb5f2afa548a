"""Kernels of views and rearranging copies."""

from __future__ import annotations

import functools
import operator
from typing import Any

from torchlite._dispatch.memory_layout import apply_rule_to_ufuncs, infer_dense_strides, is_channels_last, strides_of
from torchlite._dispatch.shape_and_value_checks import check_in_bounds_for_storage
from torchlite._dispatch.shapes import contiguous_strides, memory_format_strides, wrap_dim, wrap_dims
from torchlite._types.layouts import contiguous_format, preserve_format

from .storage import base_owner, data_pointer, storage_block, strided_view

xp: Any = None


def reshape(input, shape):
    return input.reshape(shape)


def _view(input, shape):
    if input.flags.c_contiguous:
        return input.reshape(shape)
    try:
        return xp.reshape(input, shape, copy=False)
    except ValueError:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
            "two contiguous subspaces). Use .reshape(...) instead."
        ) from None


def permute(input, dims):
    return xp.transpose(input, dims)


def transpose(input, dim0, dim1):
    if not input.ndim:
        wrap_dim(dim0, 0), wrap_dim(dim1, 0)
        return input[...]
    return input.swapaxes(dim0, dim1)


def expand(input, size):
    lead = len(size) - input.ndim
    if lead < 0:
        raise ValueError("fewer sizes than dimensions")
    strides, shape = [0] * lead + list(input.strides), list(size)
    for d, n in enumerate(input.shape, lead):
        if shape[d] == -1:
            shape[d] = n
        elif n != shape[d]:
            if n != 1:
                raise ValueError("sizes do not match")
            strides[d] = 0
    return strided_view(input, tuple(map(operator.index, shape)), tuple(strides))


def squeeze(input, dim=None):
    if dim is None:
        return xp.squeeze(input)[...]
    dims = (dim,) if dim.__class__ is int else tuple(dim)
    if len(dims) > 1 and len({d % max(input.ndim, 1) for d in dims}) != len(dims):
        raise ValueError("repeated dimension")
    if not input.ndim:
        wrap_dims(dims, 0)
    drop = tuple(d for d in dims if input.ndim and input.shape[d] == 1)
    return xp.squeeze(input, axis=drop)[...] if drop else input[...]


def unsqueeze(input, dim):
    ndim = input.ndim
    if not -ndim - 1 <= dim <= ndim:
        raise IndexError(f"no place {dim} for a new dimension")
    return input[(_FULL_SLICE,) * (dim if dim >= 0 else dim + ndim + 1) + (None,)]


def _as_strided(input, size, stride, offset=None, input_stride=None):
    step, offset, root = input.itemsize, offset or 0, base_owner(input)
    begin = 0 if root is input else (data_pointer(input) - data_pointer(root)) // step
    held = storage_block(root)
    check_in_bounds_for_storage(size, stride, begin + offset, step, held.nbytes)
    start = begin if 0 in size else begin + offset
    return xp.ndarray(tuple(size), input.dtype, held, start * step, tuple([s * step for s in stride]))


def _compute_strided_positions(shape, stride, offset):
    """Return the memory position of each element of a strided layout."""
    positions = xp.asarray(offset)
    for n, s in zip(shape, stride, strict=True):
        positions = positions[..., None] + xp.arange(n) * s
    return positions


def _move_strided(input, source, target, divide):
    start, end = _compute_strided_positions(*source), _compute_strided_positions(*target)
    low = min(int(start.min()) if start.size else 0, int(end.min()) if end.size else 0)
    length = max(int(start.max()) if start.size else 0, int(end.max()) if end.size else 0) - low + 1
    start, end = start - low, end - low
    shared = xp.bincount((start if divide == "source" else end).reshape(-1), minlength=length)
    memory = xp.zeros(length, dtype=input.dtype)
    if divide == "source":
        input = input / shared[start].astype(input.real.dtype)
    xp.add.at(memory, start.reshape(-1), input.reshape(-1))
    out = memory[end]
    return out / shared[end].astype(input.real.dtype) if divide == "target" else out


def flip(input, dims):
    dims = wrap_dims(dims, input.ndim) if dims else ()
    return xp.flip(input, dims).copy() if input.ndim else input.copy()


def clone(input, *, memory_format=None):
    if memory_format is None or memory_format is preserve_format:
        strides = input.strides
        if 0 in strides:
            return copy_preserving_strides(input, input.dtype)
        out = input.copy(order="K")
        return out if 1 not in input.shape or out.strides == strides else set_strides_like(out, input)
    if memory_format is contiguous_format:
        return set_strides(input.copy(order="C"), contiguous_strides(input.shape))
    return _clone_channels_last(input, memory_format)


def copy_preserving_strides(input, dtype):
    """Copy an array as `dtype`, with PyTorch's strides: the input's if they are dense, else in the same order."""
    shape, strides = input.shape, input.strides
    if 0 not in strides:
        out = input.astype(dtype)
        return out if 1 not in shape or _is_row_major(shape, strides, input.itemsize) else set_strides_like(out, input)
    # NumPy would change the order of dimensions.
    steps = infer_dense_strides(shape, strides_of(input))
    order = sorted(range(len(shape)), key=lambda d: -steps[d])
    out = xp.empty([shape[d] for d in order], dtype=dtype).transpose([order.index(d) for d in range(len(order))])
    out[...] = input
    return out


@functools.lru_cache(4096)
def _is_row_major(shape, strides, itemsize):
    """True if an array's strides in bytes are those of a new array, which NumPy's copies have."""
    return strides == tuple([step * itemsize for step in contiguous_strides(shape)])


def set_strides_like(out, input):
    """Return NumPy's copy of an array with PyTorch's strides, which differ in dimensions of length one only."""
    return set_strides(out, infer_dense_strides(input.shape, strides_of(input)))


def set_strides(out, steps):
    """Return a new array with these strides, which may differ from its own in dimensions of length one."""
    if 1 not in out.shape or strides_of(out) == steps:
        return out
    return strided_view(out, out.shape, tuple([step * out.itemsize for step in steps]))


def _clone_channels_last(input, memory_format):
    strides = memory_format_strides(input.shape, memory_format.name)
    apply_rule_to_ufuncs()
    order = (0, *range(2, input.ndim), 1)
    back = (0, input.ndim - 1, *range(1, input.ndim - 1))
    out = xp.transpose(xp.transpose(input, order).copy(order="C"), back)
    return set_strides(out, strides)


def contiguous(input, memory_format=None):
    if memory_format is not None and memory_format.name.startswith("channels_last"):
        return input if is_channels_last(input.shape, strides_of(input)) else _clone_channels_last(input, memory_format)
    return input if input.flags.c_contiguous else input.copy(order="C")


def cat(tensors, dim=0):
    if dim is None:
        raise TypeError("'dim' must be int, not NoneType")
    kept = [t for t in tensors if t.shape != (0,)]
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    return xp.concatenate(kept, dim) if kept else tensors[0].copy()


def _slice(input, dim=0, start=None, stop=None, step=1):
    index = [_FULL_SLICE] * input.ndim
    index[dim] = slice(start, stop, step)
    return input[tuple(index)]


_FULL_SLICE = slice(None)


def _slice_backward(input, shape, dim, start, stop, step):
    out = xp.zeros(shape, dtype=input.dtype)
    _slice(out, dim, start, stop, step)[...] = input
    return out


def _narrow(input, dim, start, length):
    return _slice(input, dim, start, start + length)
