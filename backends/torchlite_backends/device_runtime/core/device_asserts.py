"""Indices that do not fit: kernels note them in a small array of the device, the host raises PyTorch's error when it
next waits for the device.

With `TORCHLITE_OPENCL_BLOCKING=1` (on CUDA `CUDA_LAUNCH_BLOCKING=1`) it looks after every op that can fail, so that the
error's traceback names that op; it costs a wait each time.
"""

from __future__ import annotations

import threading

import numpy as np

from torchlite._settings import fork_locks
from torchlite._types.dtypes import from_np
from torchlite_backends.kernel_sources.dtype_kinds import CATEGORY

from .array import Array, empty
from .device import Device

# By number, from 1 on: the error's type and its words.
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
    """What a device noted: the code of the first error, its index and the size; `asked` says whether a kernel may have
    written there since it was last read.
    """

    __slots__ = ("array", "asked")

    def __init__(self, device: Device):
        self.array = empty(device, (4,), "i32")
        self.asked = False
        device.write(self.array.buffer, _CLEAR)


def check_takes(x: Array, categories: str, kernel: str) -> None:
    """PyTorch's error for a dtype of another category than these: f floating, i integer, b bool, c complex."""
    if CATEGORY[x.kind] not in categories:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{from_np(x.dtype).scalar_name}'")


def _error_buffer(device: Device) -> _ErrorBuffer:
    state = device.state.get("errors")
    if state is None:
        with _lock:
            state = device.state.setdefault("errors", _ErrorBuffer(device))
    return state


def error_code(which: int, dim: int = 0) -> int:
    """What a kernel writes: the error and the dimension that it speaks of."""
    return which | dim << 8


def error_array(device: Device) -> Array:
    """The array in which a kernel that is about to start notes an error: int32 code, index, size. Call `after_launch`
    when it was started.
    """
    state = _error_buffer(device)
    state.asked = True
    return state.array


def raise_if_blocking(device: Device) -> None:
    """On a device that is to block raise at once what the last kernel noted."""
    if device.blocking:
        raise_pending(device)


def raise_pending(device: Device) -> None:
    """Raise the first error that kernels noted since the last call. Called where the host waits for the device; waits
    only after kernels that can fail.
    """
    state = device.state.get("errors")
    if state is None or not state.asked:
        return
    with _lock:
        state.asked = False
        noted = np.empty(16, np.uint8)
        device.read(state.array.buffer, 0, noted)
        code, index, size = (int(v) for v in noted.view(np.int32)[:3])
        if code:
            device.write(state.array.buffer, _CLEAR)
    if code:
        raise error_of_code(code, index, size)


def error_of_code(code: int, index: int, size: int) -> Exception:
    """The exception that a code stands for."""
    kind, words = _ERRORS[(code & 255) - 1]
    return kind(words.format(index=index, dim=code >> 8, size=size))
