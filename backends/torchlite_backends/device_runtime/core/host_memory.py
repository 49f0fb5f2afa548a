"""Devices that work on NumPy's own memory: their arrays and NumPy's are two names of the same elements.

A kernel of such a device takes what `wrap` makes of NumPy's arrays, and `unwrap` gives its result back; neither copies.
A new array's memory is an ndarray of the very shape and dtype (`allocate` is told for which array it is), so that what
is unwrapped owns its memory, as the result of a ufunc does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .array import Array, is_row_major, kind_of

_new = object.__new__
_ndarray = np.ndarray


class HostMemory:
    """What a device over NumPy's memory has beside the contract of `Device`, above which it is put: `class Device(
    HostMemory, device.Device)`.

    Its buffers have an attribute `array`: the NumPy array whose memory they are, the lowest address first.
    """

    waiting: Any

    def buffer_of(self, array: np.ndarray) -> Any:
        """The buffer over the memory of a NumPy array whose elements fill one block in ascending order of addresses,
        or a part of it with gaps; `buffer.array` is the array.
        """
        raise NotImplementedError

    def wrap(self, array: np.ndarray) -> Array:
        """The same elements as an Array of this device. TypeError for dtypes that devices do not have."""
        out = _new(Array)
        out.device = self  # type: ignore[assignment]
        out.shape, out.size, out.dtype, out.base = array.shape, array.size, array.dtype, None
        out.kind = kind_of(array.dtype)
        size = array.dtype.itemsize
        out.steps = steps = tuple([s // size for s in array.strides])
        out.offset = 0
        if array.flags.c_contiguous:
            out.contiguous = True
            out.buffer = self.buffer_of(array)
            return out
        out.contiguous = is_row_major(out.shape, steps)
        turned = [d for d, step in enumerate(steps) if step < 0]
        if turned and out.size:
            out.offset = -sum(steps[d] * (out.shape[d] - 1) for d in turned)
            array = array[tuple([slice(None, None, -1 if d in turned else 1) for d in range(array.ndim)])]
        out.buffer = self.buffer_of(array)
        return out

    def unwrap(self, x: Array) -> np.ndarray:
        """The same elements as a NumPy array, once everything that waits on the device was started."""
        if self.waiting.steps:
            self.waiting.start()
        held = x.buffer.array
        size = x.dtype.itemsize
        if held.shape == x.shape and held.dtype is x.dtype and not x.offset:
            if x.contiguous or held.strides == tuple([s * size for s in x.steps]):
                return held
        strides = tuple([s * size for s in x.steps])
        if held.flags.c_contiguous:
            return _ndarray(x.shape, x.dtype, held, x.offset * size, strides)
        start = held.__array_interface__["data"][0] + x.offset * size
        return np.asarray(_BorrowedElements(held, start, x.shape, strides, size)).view(x.dtype)


class _BorrowedElements:
    """Elements of another array's memory, as bytes of their size."""

    def __init__(self, keeper: np.ndarray, start: int, shape: tuple[int, ...], strides: tuple[int, ...], size: int):
        self.keeper = keeper
        self.__array_interface__ = {
            "data": (start, False),
            "shape": shape,
            "strides": strides,
            "typestr": f"|V{size}",
            "version": 3,
        }
