"""Zero-copy exchange with other CUDA libraries through CuPy: DLPack and `__cuda_array_interface__`, both ways."""

from __future__ import annotations

from typing import Any

from torchlite_backends.device_runtime.core.array import Array, is_row_major, kind_of

from .device import Device


def from_cupy(device: Device, foreign: Any) -> Array:
    """Return an Array on the memory of a CuPy array, which it keeps alive. RuntimeError for strides that are not
    multiples of the element size.
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
    """Return a CuPy array on the memory of an Array. Deferred work is launched first, in the exported stream."""
    return _launch_deferred_work(raw).driver.ndarray(
        raw.buffer, raw.offset * raw.dtype.itemsize, raw.shape, raw.dtype, raw.strides
    )


def cuda_array_interface_of(raw: Array) -> dict[str, Any]:
    """Return the `__cuda_array_interface__` of an Array."""
    _launch_deferred_work(raw)
    return {
        "typestr": raw.dtype.str,
        "shape": raw.shape,
        "strides": None if raw.contiguous else raw.strides,
        "data": (raw.data_ptr() if raw.size else 0, False),
        "version": 2,
    }


def _launch_deferred_work(raw: Array) -> Any:
    """Launch the deferred work of the array's device and return the device."""
    if raw.device.waiting.steps:
        raw.device.waiting.start()
    return raw.device
