"""Views by shape and strides on the memory of an existing array."""

import numpy as xp


def strided_view(x, shape, strides, offset=0):
    """A view with the given shape and strides (in bytes) that begins `offset` bytes after the first element of `x`.
    ValueError when it would leave the memory.
    """
    if hasattr(x, "__cuda_array_interface__"):
        return xp.ndarray(shape, x.dtype, memptr=x.data + offset, strides=strides)
    root = x
    while root.base.__class__ is root.__class__:
        root = root.base
    if not root.flags.c_contiguous:
        return _unbounded(x, shape, strides, offset)
    if root is not x:
        offset += x.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return xp.ndarray(shape, x.dtype, root, offset, strides)


def _unbounded(x, shape, strides, offset):
    """For memory that is not one block in row-major order, which cannot say where it ends."""
    make = xp.lib.stride_tricks.as_strided
    if offset:
        steps = abs(offset) // x.itemsize
        x = make(x, (steps + 1,), (x.itemsize if offset > 0 else -x.itemsize,))[steps:]
    return make(x, shape, strides)
