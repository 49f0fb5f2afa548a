"""Devices over NumPy's memory: device arrays and ndarrays share elements.

`wrap` makes a device array of an ndarray, `unwrap` an ndarray of a result, without copies. A new array's memory is an
ndarray of its shape and dtype (`allocate` gets the array), so that the unwrapped result owns its memory like the result
of a ufunc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .array import Array, is_row_major, kind_of

_new = object.__new__
_ndarray = np.ndarray


class HostMemory:
    """Mixin for devices over NumPy's memory: `class Device(HostMemory, device.Device)`.

    Its buffers have an attribute `array`: the NumPy array that is their memory, lowest address first.
    """

    waiting: Any

    def buffer_of(self, array: np.ndarray) -> Any:
        """Return the buffer over an array whose elements fill a block in ascending addresses, possibly with gaps.

        `buffer.array` is the array.
        """
        raise NotImplementedError

    def wrap(self, array: np.ndarray) -> Array:
        """Return an Array on the same elements. TypeError for dtypes that devices lack."""
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
        """Return a NumPy array on the same elements, after launching the device's deferred work."""
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
