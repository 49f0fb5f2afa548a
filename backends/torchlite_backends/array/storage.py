"""Memory below arrays: owner, contiguous block, and views by shape and strides.

Arrays that share memory have one *owner*, which the chain of `base` leads to. Its memory is one block without gaps, in
any order of dimensions; `as_writable` and `view_exact_range` ensure that for foreign arrays.
"""

import numpy as xp


def base_owner(x):
    """Return the array that owns the memory of `x`."""
    while x.base.__class__ is x.__class__:
        x = x.base
    return x


def storage_block(root):
    """Return the memory of an owner as an array with a buffer."""
    if root.flags.forc:
        return root
    turned = root.transpose(sorted(range(root.ndim), key=lambda d: -root.strides[d]))
    return turned if turned.flags.c_contiguous else _BorrowedMemory.from_array(root)


def strided_view(x, shape, strides, offset=0):
    """View memory with the given shape and strides (in bytes), `offset` bytes after the first element of `x`.

    ValueError if the view would leave the memory.
    """
    if hasattr(x, "__cuda_array_interface__"):
        return xp.ndarray(shape, x.dtype, memptr=x.data + offset, strides=strides)
    root = base_owner(x)
    if root is not x:
        offset += data_pointer(x) - data_pointer(root)
    return xp.ndarray(shape, x.dtype, storage_block(root), offset, strides)


def view_exact_range(x):
    """Return an array that owns exactly the range from the first to the last element of `x`.

    It becomes the storage of a tensor made from another library's array.
    """
    if min(x.strides, default=0) < 0:
        raise RuntimeError(f"memory with negative strides {x.strides} cannot be shared: copy the array")
    if (
        x.__class__ is xp.ndarray
        and x.base.__class__ is not xp.ndarray
        and (x.flags.forc or base_owner(storage_block(x)) is x)
    ):
        return x
    return xp.ndarray(x.shape, x.dtype, _BorrowedMemory.from_array(x), 0, x.strides)


def as_writable(x):
    """Return a writable array on the memory of `x`: NumPy marks arrays from DLPack read-only."""
    return x if x.flags.writeable else xp.ndarray(x.shape, x.dtype, _BorrowedMemory.from_array(x, False), 0, x.strides)


def data_pointer(x):
    return x.__array_interface__["data"][0]


class _BorrowedMemory:
    """Bytes that another object keeps alive."""

    def __init__(self, keeper, interface):
        self.keeper, self.__array_interface__ = keeper, interface

    @staticmethod
    def from_array(x, read_only=None):
        """Return the bytes from the first to the last element of an array without negative strides."""
        span = 0 if not x.size else x.itemsize + sum((n - 1) * s for n, s in zip(x.shape, x.strides, strict=True))
        address, protected = x.__array_interface__["data"]
        data = address, protected if read_only is None else read_only
        return xp.asarray(_BorrowedMemory(x, {"data": data, "shape": (span,), "typestr": "|u1", "version": 3}))
