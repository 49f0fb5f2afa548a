"""Transfers between host and device. Buffers of CPU devices are mapped instead of copied.

`TRANSFER_COUNTS` counts transfers in each direction, so that a test can show that a computation stays on its device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .array import Array, empty, is_row_major, kind_of
from .broadcasting import find_dense_order
from .contiguous_copy import as_contiguous
from .device import Device
from .device_asserts import raise_pending

TRANSFER_COUNTS = {"to_host": 0, "to_device": 0}
_STAGING_BYTES = 1 << 20  # up to so many bytes are staged, so that the caller need not wait for the device


def _bytes_of(array: np.ndarray) -> np.ndarray:
    """Return a contiguous array's bytes: bfloat16 has no standard buffer format."""
    return array.reshape(-1).view(np.uint8)


def from_numpy(array: np.ndarray, device: Device) -> Array:
    """Copy a NumPy array to the device, keeping its order of dimensions if there are no gaps."""
    out = empty(device, array.shape, kind_of(array.dtype))
    if not array.size:
        return out
    TRANSFER_COUNTS["to_device"] += 1
    host = array
    if not array.flags.c_contiguous:
        steps = tuple([s // array.itemsize for s in array.strides])
        order = (
            find_dense_order(array.shape, steps)
            if all(s >= 0 and s % array.itemsize == 0 for s in array.strides)
            else None
        )
        if order is not None:
            host, out.steps = array.transpose(order), steps
            out.contiguous = is_row_major(out.shape, steps)
        host = np.ascontiguousarray(host)
    small = array.nbytes <= _STAGING_BYTES
    if small and (host is array or host.base is not None):
        host = host.copy()
    device.write(out.buffer, _bytes_of(host), small)
    return out


def to_numpy(x: Array) -> np.ndarray:
    """Copy to a new NumPy array, keeping the order of dimensions if there are no gaps; waits for the device."""
    if not x.size:
        return np.empty(x.shape, x.dtype)
    TRANSFER_COUNTS["to_host"] += 1
    order = None
    if not x.contiguous:
        order = find_dense_order(x.shape, x.steps)
        if order is None:
            x = as_contiguous(x)
    shape = x.shape if order is None else tuple([x.shape[d] for d in order])
    out = np.empty(shape, x.dtype)
    x.device.read(x.buffer, x.offset * x.dtype.itemsize, _bytes_of(out))
    raise_pending(x.device)
    return out if order is None else out.transpose(np.argsort(order))


class map_to_host:
    """Context manager that maps a contiguous array of a CPU device as a NumPy array; with `write` for writing too.

    Entering waits for the device. The NumPy array must not be used after the block.
    """

    __slots__ = ("x", "write", "array")
    array: Any

    def __init__(self, x: Array, write: bool = False):
        if not x.contiguous or not x.device.is_cpu:
            raise ValueError("only contiguous arrays of CPU devices can be mapped")
        self.x, self.write = x, write

    def __enter__(self) -> np.ndarray:
        x = self.x
        if not x.size:
            self.array = None
            return np.empty(x.shape, x.dtype)
        raise_pending(x.device)
        self.array = x.device.map(x.buffer, x.offset * x.dtype.itemsize, x.size * x.dtype.itemsize, self.write)
        return self.array.view(x.dtype).reshape(x.shape)

    def __exit__(self, *exc) -> None:
        if self.array is not None:
            self.x.device.unmap(self.array)
