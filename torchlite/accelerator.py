"""The current accelerator: a CUDA device, else an OpenCL one. The functions are those of `torch.cuda` and
`torch.opencl`.

An OpenCL driver for processors is no accelerator. It becomes one if `TORCHLITE_OPENCL_PLATFORM` names a platform, or
while the default device is of type "opencl".
"""

from __future__ import annotations

import importlib
import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from torchlite._settings.module_dir import make_module_dir

from ._device import accelerators  # noqa: F401 fills the table that the next line's functions read
from ._device.streams import accelerator_for, accelerator_of, first_available_accelerator

if TYPE_CHECKING:
    from . import Stream
    from . import device as device_type
else:
    from ._device.streams import Stream
    from ._types.devices import device as device_type

__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
    "device_index", "empty_cache", "get_device_capability", "get_memory_info", "is_available", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Returns whether the machine has an accelerator that can be used.

    OpenCL drivers for processors count only if `TORCHLITE_OPENCL_PLATFORM` names a platform, or while the default
    device is of type ``"opencl"``. `torch.opencl.is_available` counts all drivers.

    Example:
        >>> torch.accelerator.is_available() == (torch.accelerator.device_count() > 0)
        True
    """
    return first_available_accelerator() is not None


def current_accelerator(check_available: bool = False) -> device_type | None:
    """Returns the type of the machine's accelerator, ``None`` if there is none: CUDA before OpenCL.

    Args:
        check_available: Has no effect: only an accelerator that can be used is found.

    Returns:
        A `torch.device` without an index, or ``None``.

    Example:
        >>> device = torch.accelerator.current_accelerator() or torch.device("cpu")
        >>> torch.ones(2, device=device).sum().item()
        2.0
    """
    found = first_available_accelerator()
    return None if found is None else device_type(found.name)


def device_count() -> int:
    """Returns the number of devices of the accelerator's type; 0 without one.

    Example:
        >>> torch.accelerator.device_count() >= 0
        True
    """
    found = first_available_accelerator()
    return 0 if found is None else found.device_count()


def current_device_index() -> int:
    """Returns the index of this thread's current device.

    Raises:
        RuntimeError: There is no accelerator.

    Example:
        >>> if torch.accelerator.is_available():
        ...     index = torch.accelerator.current_device_index()
    """
    return accelerator_for().current_device()


def set_device_index(device: Any, /) -> None:
    """Sets this thread's current device.

    Args:
        device: The device, by index, name or `torch.device`.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.accelerator.is_available():
        ...     torch.accelerator.set_device_index(0)
    """
    accelerator_for(device).set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index


class device_index:
    """Sets the current device of a block.

    Args:
        device: The index; ``None`` changes nothing.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> with torch.accelerator.device_index(0 if torch.accelerator.is_available() else None):
        ...     y = torch.ones(2) + 1
    """

    def __init__(self, device: int | None, /):
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            self._before = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *exc) -> None:
        if self.idx is not None:
            set_device_index(self._before)


def current_stream(device: Any = None, /) -> Stream:
    """Returns the stream that receives this thread's work.

    Args:
        device: The device. Default: the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.accelerator.is_available():
        ...     stream = torch.accelerator.current_stream()
    """
    return accelerator_for(device).current_stream(device)  # type: ignore[return-value]


def set_stream(stream: Stream) -> None:
    """Selects this thread's stream, and its device.

    Args:
        stream: The stream.

    Raises:
        RuntimeError: The stream's device type is no accelerator.

    Example:
        >>> if torch.accelerator.is_available():
        ...     torch.accelerator.set_stream(torch.accelerator.current_stream())
    """
    accelerator_of(stream.device.type).set_stream(stream)  # type: ignore[arg-type]


def synchronize(device: Any = None, /) -> None:
    """Waits until a device has done all work that it was given.

    Args:
        device: The device. Default: the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.accelerator.is_available():
        ...     torch.accelerator.synchronize()
    """
    accelerator_for(device).synchronize(device)


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """Returns a device's capabilities: a dictionary with the set ``"supported_dtypes"``.

    Args:
        device: The device. Default: the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.accelerator.is_available():
        ...     assert torch.float32 in torch.accelerator.get_device_capability()["supported_dtypes"]
    """
    from ._types import dtypes as _dtype

    properties = accelerator_for(device).get_device_properties(device)
    doubles = getattr(properties, "has_fp64", True)
    return {
        "supported_dtypes": {
            d for d in _dtype.BY_NAME.values() if doubles or d not in (_dtype.float64, _dtype.complex128)
        }
    }


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Returns the free and the total bytes of a device.

    Args:
        device_index: The device. Default: the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.accelerator.is_available():
        ...     found = torch.accelerator.get_memory_info()
    """
    return accelerator_for(device_index).mem_get_info(device_index)


def empty_cache() -> None:
    """Returns the memory that the allocator keeps to the devices in use.

    Raises:
        RuntimeError: There is no accelerator.

    Example:
        >>> if torch.accelerator.is_available():
        ...     torch.accelerator.empty_cache()
    """
    accelerator_for().empty_cache()


def memory_stats(device_index: Any = None, /) -> OrderedDict[str, Any]:
    """Returns the allocator's counts by PyTorch's names, such as ``"allocated_bytes.all.peak"``.

    Args:
        device_index: The device. Default: the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.accelerator.is_available():
        ...     found = torch.accelerator.memory_stats()
    """
    return accelerator_for(device_index).memory_stats(device_index)


def memory_allocated(device_index: Any = None, /) -> int:
    """Returns the bytes that tensors use on a device.

    Args:
        device_index: The device. Default: the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.accelerator.is_available():
        ...     found = torch.accelerator.memory_allocated()
    """
    return accelerator_for(device_index).memory_allocated(device_index)


def max_memory_allocated(device_index: Any = None, /) -> int:
    """Returns the most bytes that tensors used at one time.

    Args:
        device_index: The device. Default: the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.accelerator.is_available():
        ...     found = torch.accelerator.max_memory_allocated()
    """
    return accelerator_for(device_index).max_memory_allocated(device_index)


def memory_reserved(device_index: Any = None, /) -> int:
    """Returns the bytes that tensors use or that the allocator keeps.

    Args:
        device_index: The device. Default: the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.accelerator.is_available():
        ...     found = torch.accelerator.memory_reserved()
    """
    return accelerator_for(device_index).memory_reserved(device_index)


def max_memory_reserved(device_index: Any = None, /) -> int:
    """Returns the most bytes that were used or kept at one time.

    Args:
        device_index: The device. Default: the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.accelerator.is_available():
        ...     found = torch.accelerator.max_memory_reserved()
    """
    return accelerator_for(device_index).max_memory_reserved(device_index)


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Starts to count the peaks of memory from now.

    Args:
        device_index: The device. Default: the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.accelerator.is_available():
        ...     torch.accelerator.reset_peak_memory_stats()
    """
    accelerator_for(device_index).reset_peak_memory_stats(device_index)


def reset_accumulated_memory_stats(device_index: Any = None, /) -> None:
    """Starts to count from now what only grows: allocations, frees, retries and failures.

    Args:
        device_index: The device. Default: the current one.

    Raises:
        RuntimeError: There is no such device.

    Example:
        >>> if torch.accelerator.is_available():
        ...     torch.accelerator.reset_accumulated_memory_stats()
    """
    accelerator_for(device_index).reset_accumulated_memory_stats(device_index)


def get_device_module(device=None):
    """Returns the module of a device type, such as `torch.cuda`.

    Args:
        device: The device. Default: the accelerator, or the CPU if there is none.

    Example:
        >>> torch.get_device_module("cpu") is torch.cpu
        True
    """
    where = current_accelerator() if device is None else device_type(device)
    return importlib.import_module(f"torchlite.{'cpu' if where is None else where.type}")


def _register_device_module(device_type, module):
    """Makes a module the one of a device type, `torch.<type>`, for packages that bring a backend.

    Raises:
        RuntimeError: The type is unknown, or has a module.
    """
    torch = importlib.import_module(__package__)
    name = torch.device(device_type).type
    if hasattr(torch, name):
        raise RuntimeError(f"The runtime module of '{name}' has already been registered with '{getattr(torch, name)}'")
    setattr(torch, name, module)
    sys.modules[f"{__package__}.{name}"] = module


__dir__ = make_module_dir(globals())
