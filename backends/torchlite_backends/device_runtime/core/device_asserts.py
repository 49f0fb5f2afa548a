"""Device-side assertions: kernels record invalid indices, and the host raises PyTorch's error at its next wait.

`TORCHLITE_OPENCL_BLOCKING=1` (on CUDA `CUDA_LAUNCH_BLOCKING=1`) checks after every op that can fail, so that the
traceback names that op, at the cost of a wait each time.
"""

from __future__ import annotations

import threading

import numpy as np

from torchlite._settings import fork_locks
from torchlite._types.dtypes import from_np
from torchlite_backends.kernel_sources.dtype_kinds import CATEGORY

from .array import Array, empty
from .device import Device

# By number, from 1: the error's type and message.
_ERRORS = (
    (RuntimeError, "index {index} is out of bounds for dimension {dim} with size {size}"),
    (IndexError, "index {index} is out of bounds for dimension {dim} with size {size}"),
    (IndexError, "index out of range in self"),
    (IndexError, "index_copy_(): index {index} is out of bounds for dimension {dim} with size {size}"),
    (IndexError, "out of range: tried to access index {index} on a tensor of {size} elements."),
    (IndexError, "Target {index} is out of bounds."),
    (RuntimeError, "target out of range"),
    (RuntimeError, "repeats can not be negative"),
    (
        RuntimeError,
        "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result of "
        "lu_factor?",
    ),
)
SCATTERED, INDEXED, SELECTED, COPIED, FLAT, TARGET, MARGIN, REPEATS, PIVOTS = range(1, len(_ERRORS) + 1)
_lock = fork_locks.acquire_before_fork(threading.RLock())
_CLEAR = np.zeros(16, np.uint8)


class _ErrorBuffer:
    """Recorded error of a device: code, low half of the index, size, and high half of the index.

    `asked` is True if a kernel may have written there since the last read.
    """

    __slots__ = ("array", "asked")

    def __init__(self, device: Device):
        self.array = empty(device, (4,), "i32")
        self.asked = False
        device.write(self.array.buffer, _CLEAR)


def check_takes(x: Array, categories: str, kernel: str) -> None:
    """Raise PyTorch's error for a dtype outside these categories: f floating, i integer, b bool, c complex."""
    if CATEGORY[x.kind] not in categories:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{from_np(x.dtype).scalar_name}'")


def _get_error_buffer(device: Device) -> _ErrorBuffer:
    state = device.state.get("errors")
    if state is None:
        with _lock:
            state = device.state.setdefault("errors", _ErrorBuffer(device))
    return state


def encode_error(which: int, dim: int = 0) -> int:
    """Return a kernel's error code: the error and its dimension."""
    return which | dim << 8


def get_error_array(device: Device) -> Array:
    """Return the int32 array of `_ErrorBuffer` for a kernel's error. Call `raise_if_blocking` after the launch."""
    state = _get_error_buffer(device)
    state.asked = True
    return state.array


def raise_if_blocking(device: Device) -> None:
    """Raise the last kernel's error at once on a blocking device."""
    if device.blocking:
        raise_pending(device)


def raise_pending(device: Device) -> None:
    """Raise the first error recorded since the last call.

    Called where the host waits for the device; waits only after kernels that can fail.
    """
    state = device.state.get("errors")
    if state is None or not state.asked:
        return
    with _lock:
        state.asked = False
        noted = np.empty(16, np.uint8)
        device.read(state.array.buffer, 0, noted)
        code, low, size, high = (int(v) for v in noted.view(np.int32))
        if code:
            device.write(state.array.buffer, _CLEAR)
    if code:
        raise make_error_from_code(code, (high << 32) | (low & 0xFFFFFFFF), size)


def make_error_from_code(code: int, index: int, size: int) -> Exception:
    """Return the exception of an error code."""
    kind, words = _ERRORS[(code & 255) - 1]
    return kind(words.format(index=index, dim=code >> 8, size=size))
