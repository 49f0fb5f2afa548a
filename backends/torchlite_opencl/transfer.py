"""Between host and device. CPU devices have the host's memory: there a buffer can be mapped, and nothing is sent.

`COUNTS` says how often elements went either way, so that a test can show that a computation stays on its device.
"""
from __future__ import annotations

import contextlib
from collections import deque
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl._cl import _enqueue_read_buffer, _enqueue_write_buffer

from .array import Array, empty, is_row_major, kind_of
from .checks import raise_pending
from .copying import contiguous_array
from .layout import dense_order
from .runtime import Device

COUNTS = {"to_host": 0, "to_device": 0}
_STAGED = 1 << 20  # up to so many bytes are copied first, so that the caller need not wait for the device
_WAITING = 32
_staged: deque[Any] = deque()  # uploads under way; each keeps its bytes alive
_BYTE: Any = np.uint8
_DONE = cl.command_execution_status.COMPLETE


def _bytes(array: np.ndarray) -> np.ndarray:
    """A contiguous array's bytes: bfloat16 has no buffer that others can read."""
    return array.reshape(-1).view(np.uint8)


def from_numpy(array: np.ndarray, device: Device) -> Array:
    """A new array on the device with the elements of a NumPy array, and its order of dimensions where they fill memory without gaps."""
    out = empty(device, array.shape, kind_of(array.dtype))
    if not array.size:
        return out
    COUNTS["to_device"] += 1
    host = array
    if not array.flags.c_contiguous:
        steps = tuple([s // array.itemsize for s in array.strides])
        order = dense_order(array.shape, steps) if all(s >= 0 and s % array.itemsize == 0 for s in array.strides) else None
        if order is not None:
            host, out.steps = array.transpose(order), steps
            out.contiguous = is_row_major(out.shape, steps)
        host = np.ascontiguousarray(host)
    if array.nbytes > _STAGED:
        _enqueue_write_buffer(device.queue, out.buffer, _bytes(host), 0, None, True)
        return out
    _drop_done()
    _staged.append(_enqueue_write_buffer(device.queue, out.buffer, _bytes(host.copy() if host is array or host.base is not None else host), 0, None, False))
    return out


def _drop_done() -> None:
    """Forget the uploads that are over, and wait for the oldest when there are many."""
    with contextlib.suppress(IndexError):  # none left: another thread was first
        while len(_staged) > _WAITING or _staged[0].command_execution_status == _DONE:
            _staged.popleft().wait()


def to_numpy(x: Array) -> np.ndarray:
    """The elements of an array in a new NumPy array, with its order of dimensions in memory where they fill it without gaps; waits for the device."""
    if not x.size:
        return np.empty(x.shape, x.dtype)
    COUNTS["to_host"] += 1
    order = None
    if not x.contiguous:
        order = dense_order(x.shape, x.steps)
        if order is None:
            x = contiguous_array(x)
    shape = x.shape if order is None else tuple([x.shape[d] for d in order])
    out = np.empty(shape, x.dtype)
    device = x.device
    _enqueue_read_buffer(device.queue, x.buffer, out if x.kind != "bf16" else _bytes(out), x.offset * x.dtype.itemsize, None, True)
    raise_pending(device)
    return out if order is None else out.transpose(np.argsort(order))


class mapped:
    """`with mapped(x) as a:` gives the memory of a contiguous array of a CPU device as a NumPy array, without a copy; with `write` to be written to as well.

    Entering waits for the device. The NumPy array must not be used after the block.
    """

    __slots__ = ("x", "flags", "array")
    array: Any

    def __init__(self, x: Array, write: bool = False):
        if not x.contiguous or not x.device.is_cpu:
            raise ValueError("only contiguous arrays of CPU devices can be mapped")
        self.x = x
        self.flags: Any = cl.map_flags.READ | cl.map_flags.WRITE if write else cl.map_flags.READ

    def __enter__(self) -> np.ndarray:
        x = self.x
        if not x.size:
            self.array = None
            return np.empty(x.shape, x.dtype)
        self.array, _ = cl.enqueue_map_buffer(x.device.queue, x.buffer, self.flags, x.offset * x.dtype.itemsize, (x.size * x.dtype.itemsize,), _BYTE)
        return self.array.view(x.dtype).reshape(x.shape)

    def __exit__(self, *exc) -> None:
        if self.array is not None:
            self.array.base.release(self.x.device.queue)
