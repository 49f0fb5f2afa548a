"""Between host and device. On CPU devices the memory is the host's: buffers are mapped, nothing is sent."""
from __future__ import annotations

import numpy as np
import pyopencl as cl

from .array import Array, empty, kind_of
from .copying import contiguous_array
from .runtime import Device


def from_numpy(array: np.ndarray, device: Device) -> Array:
    """A new array on the device with the elements of a NumPy array."""
    out = empty(device, array.shape, kind_of(array.dtype))
    if array.size:
        cl.enqueue_copy(device.queue, out.buffer, np.ascontiguousarray(array), is_blocking=True)
    return out


def to_numpy(x: Array) -> np.ndarray:
    """The elements of an array in a new NumPy array; waits for the device."""
    out = np.empty(x.shape, x.dtype)
    if x.size:
        x = contiguous_array(x)
        cl.enqueue_copy(x.device.queue, out, x.buffer, src_offset=x.offset * x.itemsize, is_blocking=True)
    return out
