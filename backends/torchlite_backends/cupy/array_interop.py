"""Arrays shared with other CUDA libraries without a copy, through CuPy's arrays: DLPack and `__cuda_array_interface__`,
both ways.
"""

from __future__ import annotations

from typing import Any

from torchlite_backends.device_runtime.core.array import Array, is_row_major, kind_of

from .device import Device


def from_cupy(device: Device, foreign: Any) -> Array:
    """An Array on the memory of a CuPy array, which lives as long as it. RuntimeError where the steps are no multiples
    of an element.
    """
    out = object.__new__(Array)
    out.dtype = foreign.dtype
    if any(step % out.dtype.itemsize for step in foreign.strides):
        raise RuntimeError(
            f"an array with strides of {foreign.strides} bytes and elements of {out.dtype.itemsize} bytes cannot be "
            "shared: copy it"
        )
    out.kind = kind_of(out.dtype)
    out.device, out.buffer, out.offset, out.base = device, foreign.data, 0, None
    out.shape, out.steps, out.size = (
        tuple(foreign.shape),
        tuple([step // out.dtype.itemsize for step in foreign.strides]),
        foreign.size,
    )
    out.contiguous = is_row_major(out.shape, out.steps)
    return out


def to_cupy(raw: Array) -> Any:
    """A CuPy array on the memory of an Array. What waits is started first, in the stream that other libraries are told
    of.
    """
    return _flush(raw).driver.ndarray(raw.buffer, raw.offset * raw.dtype.itemsize, raw.shape, raw.dtype, raw.strides)


def array_interface(raw: Array) -> dict[str, Any]:
    """What `__cuda_array_interface__` of an Array is."""
    _flush(raw)
    return {
        "typestr": raw.dtype.str,
        "shape": raw.shape,
        "strides": None if raw.contiguous else raw.strides,
        "data": (raw.data_ptr() if raw.size else 0, False),
        "version": 2,
    }


def _flush(raw: Array) -> Any:
    """The array's device, on which nothing waits."""
    if raw.device.waiting.steps:
        raw.device.waiting.start()
    return raw.device
