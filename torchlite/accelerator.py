"""The current accelerator: a CUDA device, else an OpenCL one. The functions are those of `torch.cuda` and
`torch.opencl`.
"""

from __future__ import annotations

import importlib
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
    """True if the machine has an accelerator that can be used."""
    return first_available_accelerator() is not None


def current_accelerator(check_available: bool = False) -> device_type | None:
    """The type of the machine's accelerator, None where there is none; only one that can be used counts.

    `check_available` has no effect: only an accelerator that can be used is found.

    >>> import torchlite as torch
    >>> device = torch.accelerator.current_accelerator() or torch.device("cpu")
    >>> torch.ones(2, device=device).sum().item()
    2.0
    """
    found = first_available_accelerator()
    return None if found is None else device_type(found.name)


def device_count() -> int:
    """Number of devices of that type there are; 0 without one."""
    found = first_available_accelerator()
    return 0 if found is None else found.device_count()


def current_device_index() -> int:
    """The index of the calling thread's current device. Raise RuntimeError without an
    accelerator, as do all functions below.
    """
    return accelerator_for().current_device()


def set_device_index(device: Any, /) -> None:
    """Choose the calling thread's current device."""
    accelerator_for(device).set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index


class device_index:
    """The current device for the time of a `with` block; nothing changes for None."""

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
    """The stream in which the calling thread's work goes."""
    return accelerator_for(device).current_stream(device)  # type: ignore[return-value]


def set_stream(stream: Stream) -> None:
    """Choose the calling thread's stream, and its device."""
    accelerator_of(stream.device.type).set_stream(stream)  # type: ignore[arg-type]


def synchronize(device: Any = None, /) -> None:
    """Wait until the device has done everything it was given."""
    accelerator_for(device).synchronize(device)


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """The device's capabilities: a dictionary with "supported_dtypes"."""
    from ._types import dtypes as _dtype

    properties = accelerator_for(device).get_device_properties(device)
    doubles = getattr(properties, "has_fp64", True)
    return {
        "supported_dtypes": {
            d for d in _dtype.BY_NAME.values() if doubles or d not in (_dtype.float64, _dtype.complex128)
        }
    }


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Free and total bytes."""
    return accelerator_for(device_index).mem_get_info(device_index)


def empty_cache() -> None:
    """Give memory that no tensor takes back to the devices in use."""
    accelerator_for().empty_cache()


def memory_stats(device_index: Any = None, /) -> OrderedDict[str, Any]:
    """The allocator's counts by PyTorch's names."""
    return accelerator_for(device_index).memory_stats(device_index)


def memory_allocated(device_index: Any = None, /) -> int:
    """Bytes that tensors take."""
    return accelerator_for(device_index).memory_allocated(device_index)


def max_memory_allocated(device_index: Any = None, /) -> int:
    """The most bytes that tensors took at one time."""
    return accelerator_for(device_index).max_memory_allocated(device_index)


def memory_reserved(device_index: Any = None, /) -> int:
    """Bytes that tensors use or that the allocator caches."""
    return accelerator_for(device_index).memory_reserved(device_index)


def max_memory_reserved(device_index: Any = None, /) -> int:
    """The peak of the bytes that were used or cached."""
    return accelerator_for(device_index).max_memory_reserved(device_index)


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Begin to count the peaks anew."""
    accelerator_for(device_index).reset_peak_memory_stats(device_index)


def reset_accumulated_memory_stats(device_index: Any = None, /) -> None:
    """Begin to count anew what only grows."""
    accelerator_for(device_index).reset_accumulated_memory_stats(device_index)


def get_device_module(device=None):
    """The module of a device type, such as torch.cuda; of the machine's accelerator, or torch.cpu, when
    none is given.
    """
    where = current_accelerator() if device is None else device_type(device)
    return importlib.import_module(f"torchlite.{'cpu' if where is None else where.type}")


__dir__ = make_module_dir(globals())
