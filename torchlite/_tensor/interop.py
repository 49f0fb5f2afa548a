"""Memory sharing between tensors and other libraries' arrays, and pinned host memory. Backends implement access to
their arrays:

`cuda_array_interface(raw) -> dict`, `to_dlpack(raw, stream) -> capsule or exporter`, `from_dlpack(exporter)` and
`from_cuda_array_interface(object)`.
"""

from __future__ import annotations

import enum
import weakref
from typing import Any

import numpy as np

from .._dispatch import call, table_of
from .._dispatch.autograd_graph import lend_memory
from .._dispatch.backend import owner_of
from .._types.devices import device as device_type


class DLDeviceType(enum.IntEnum):
    """DLPack's numbers of device types, those that have a backend here."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLCUDAManaged = 13


_TYPES = {
    DLDeviceType.kDLCPU: "cpu",
    DLDeviceType.kDLCUDAHost: "cpu",
    DLDeviceType.kDLCUDA: "cuda",
    DLDeviceType.kDLCUDAManaged: "cuda",
    DLDeviceType.kDLOpenCL: "opencl",
}


def no_cuda_array_interface_message(tensor: Any) -> str:
    """Message of the AttributeError for `__cuda_array_interface__` of a tensor on another device."""
    return (
        f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {tensor.type()} "
        "If CUDA data is required use tensor.cuda() to copy tensor to device memory."
    )


def cuda_array_interface(tensor: Any) -> dict[str, Any]:
    """Value of `__cuda_array_interface__`. AttributeError unless the tensor is on a CUDA device, RuntimeError if it
    requires a gradient.
    """
    if not tensor.is_cuda:
        raise AttributeError(no_cuda_array_interface_message(tensor))
    if tensor.requires_grad:
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use "
            "var.detach() to get Variable that doesn't require grad."
        )
    return tensor._tl_kernels.backend.cuda_array_interface(tensor._tl_array)


def to_dlpack(tensor: Any, stream: Any, **options: Any) -> Any:
    """Implements `__dlpack__`: return a capsule."""
    if tensor._tl_node is not None:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    options = {name: value for name, value in options.items() if value is not None}
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if not tensor.is_cuda:
        stream = None if stream == -1 else stream
    if tensor.is_cpu and stream is not None:
        raise AssertionError("stream should be None on cpu.")
    if tensor.is_cpu:
        from .dlpack import export_capsule

        return export_capsule(tensor._tl_array, tensor.dtype, options)
    if not tensor.is_cuda:
        return _dlpack_exporter(tensor).__dlpack__(**options)
    found = tensor._tl_kernels.backend.to_dlpack(tensor._tl_array, stream)
    if stream is not None:
        options["stream"] = stream
    return found.__dlpack__(**options) if hasattr(found, "__dlpack__") else found


def _dlpack_exporter(tensor: Any) -> Any:
    if tensor.device.type == "meta":
        raise BufferError("Cannot pack tensors on meta")
    if not hasattr(tensor._tl_array, "__dlpack__"):
        raise BufferError(f"a tensor on {tensor.device} cannot be shared by DLPack: go through the host with .cpu()")
    return tensor._tl_array


def dlpack_device(tensor: Any) -> tuple[int, int]:
    """Implements `__dlpack_device__`: DLPack's number of the device type, and the index."""
    if tensor.is_cpu:
        return DLDeviceType.kDLCPU, 0
    if tensor.is_meta:
        raise ValueError("Unknown device type meta for Dlpack")
    return (
        (DLDeviceType.kDLCUDA, tensor.get_device()) if tensor.is_cuda else _dlpack_exporter(tensor).__dlpack_device__()
    )


def from_dlpack(exporter: Any) -> Any:
    """A tensor on the memory of an object with `__dlpack__`, or of a capsule. BufferError for a device type that has no
    backend, RuntimeError for other objects and for a capsule that was taken over already.
    """
    from .dlpack import Capsule

    if is_capsule(exporter) or not hasattr(exporter, "__dlpack__"):
        exporter = Capsule(exporter)
    elif isinstance(exporter, call.Tensor) and exporter.is_cpu:
        exporter = Capsule(exporter.__dlpack__())
    kind, index = exporter.__dlpack_device__() if hasattr(exporter, "__dlpack_device__") else (1, 0)
    name = _TYPES.get(int(kind))  # type: ignore[call-overload]
    if name is None:
        raise BufferError(f"from_dlpack: no backend for DLPack's device type {int(kind)}")
    table = table_of(device_type(name) if name == "cpu" else device_type(name, int(index)))
    if not hasattr(table.backend, "from_dlpack"):
        raise BufferError(f"from_dlpack: the backend of {name} does not import DLPack")
    out = call.wrap_array(table, table.backend.from_dlpack(exporter))
    lend_memory(out)
    hidden = getattr(exporter, "dtype", None) if isinstance(exporter, Capsule) else None
    return out if hidden is None else call.wrap_array(table, table._view_dtype(out._tl_array, hidden), hidden)


def is_capsule(value: Any) -> bool:
    """True if a value is a capsule of any name."""
    return type(value).__name__ == "PyCapsule"


def is_foreign(data: Any) -> bool:
    """True if an object is another library's array on a CUDA device."""
    return hasattr(data, "__cuda_array_interface__")


def from_foreign(data: Any) -> Any:
    """A tensor on the memory of another library's array on a CUDA device."""
    if hasattr(data, "__dlpack_device__"):  # it identifies the device
        return from_dlpack(data)
    table = table_of(device_type("cuda"))
    return call.wrap_array(table, table.backend.from_cuda_array_interface(data))


def record_stream(tensor: Any, stream: Any) -> None:
    """Implements `Tensor.record_stream`."""
    from .._device.streams import Stream

    if not isinstance(stream, Stream):
        raise TypeError(f"record_stream(): argument 's' (position 1) must be Stream, not {type(stream).__name__}")
    if stream.device.type != tensor.device.type:
        raise RuntimeError(f"record_stream(): the tensor is on {tensor.device}, but the stream is of {stream.device}")
    if stream._handle is not None:  # if all streams are one queue, memory cannot be reused too early
        tensor._tl_kernels.backend.runtime(tensor.get_device()).record_use(tensor._tl_array, stream._handle)


# -- pinned memory --

_pinned: weakref.WeakValueDictionary[int, np.ndarray] = (
    weakref.WeakValueDictionary()
)  # by id: the arrays that own page-locked memory


def is_pinned(tensor: Any) -> bool:
    """True if a tensor's memory is page-locked."""
    if not tensor.is_cpu:
        return False
    root = owner_of(tensor._tl_array) if isinstance(tensor._tl_array, np.ndarray) else None
    return root is not None and _pinned.get(id(root)) is root


def check_pinning(device: Any = None) -> None:
    """RuntimeError if a device has no page-locked memory for `pin_memory=True`. A meta tensor has no memory."""
    if device is not None and str(device) == "meta":
        return
    from .._device.accelerators import CUDA

    if not CUDA.is_available():
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on "
            "this system."
        )


def pin_new(tensor: Any) -> Any:
    """A new tensor's values in page-locked memory; a meta tensor has none."""
    if tensor.is_meta:
        return tensor
    if not tensor.is_cpu:
        raise RuntimeError("Only dense CPU tensors can be pinned")
    return pin_memory(tensor)


def pin_memory(tensor: Any) -> Any:
    """A copy in page-locked memory; the tensor itself when it is pinned already, and without a CUDA device."""
    from .._device.accelerators import CUDA

    if not tensor.is_cpu:
        raise RuntimeError(f"cannot pin '{tensor.type()}' only dense CPU tensors can be pinned")
    if is_pinned(tensor) or not CUDA.is_available():
        return tensor
    runtime = table_of(device_type("cuda")).backend.runtime(CUDA.current_device())
    if not hasattr(runtime, "pinned"):
        return tensor
    array = tensor._tl_array
    memory = runtime.pinned(max(array.nbytes, 1))
    _pinned[id(memory)] = memory
    place = memory[: array.nbytes].view(array.dtype).reshape(array.shape)
    place[...] = array
    return call.wrap_array(tensor._tl_kernels, place, tensor.dtype)
