"""What torchlite.cuda and torchlite.opencl have alike."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from .aliases import DeviceLike
from .basic import Stream
from .tensor import Tensor

class StreamContext:
    """Selects a stream, and its device, for a block; the result of `stream`.

    Args:
        stream: The stream; ``None`` changes nothing.

    Example:
        >>> with torch.cuda.StreamContext(None):
        ...     y = torch.ones(2) + 1
    """

    stream: Stream | None
    def __init__(self, stream: Stream | None) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...

class device:
    """Sets the current device of a block; ``None`` and a negative index change nothing."""
    def __init__(self, device: DeviceLike) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...

class device_of(device):
    """Sets the current device of a block to that of a tensor."""
    def __init__(self, obj: Tensor) -> None: ...

class OutOfMemoryError(RuntimeError): ...

def is_available() -> bool:
    """Returns whether a device of this type can be used. It never raises.

    Example:
        >>> device = "cuda" if torch.cuda.is_available() else "cpu"
    """

def device_count() -> int:
    """Returns the number of devices of this type that can be used.

    Example:
        >>> torch.cuda.is_available() == (torch.cuda.device_count() > 0)
        True
    """

def why_not() -> str:
    """Returns why no device of this type can be used: what is missing and what to install. ``""`` if one can.

    Example:
        >>> torch.cuda.is_available() == (torch.cuda.why_not() == "")
        True
    """

def current_device() -> int:
    """Returns the index of this thread's current device, which a name without an index means.

    Example:
        >>> torch.cuda.current_device()
        0
    """

def set_device(device: DeviceLike) -> None:
    """Sets this thread's current device."""

def get_device_name(device: DeviceLike = None) -> str:
    """Returns a device's name."""

def get_device_properties(device: DeviceLike = None) -> Any:
    """Returns a device's properties: ``name``, ``total_memory`` in bytes, ``multi_processor_count`` and others."""

def synchronize(device: DeviceLike = None) -> None:
    """Waits until a device has done all work that it was given."""

def stream(stream: Stream | None) -> StreamContext:
    """Selects a stream, and its device, for a block."""

def set_stream(stream: Stream | None) -> None:
    """Selects this thread's stream, and its device."""

def current_stream(device: DeviceLike = None) -> Stream:
    """Returns the stream of a device that receives this thread's work.

    Args:
        device: The device. Default: the current one.

    Example:
        >>> if torch.cuda.is_available():
        ...     stream = torch.cuda.current_stream()
    """

def default_stream(device: DeviceLike = None) -> Stream:
    """Returns the stream of a device that receives work if no other is selected.

    Args:
        device: The device. Default: the current one.

    Example:
        >>> if torch.cuda.is_available():
        ...     stream = torch.cuda.default_stream()
    """

def memory_stats(device: DeviceLike = None) -> OrderedDict[str, int]:
    """Returns the allocator's counts by PyTorch's names, such as ``"allocated_bytes.all.peak"``."""

def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Returns the free and the total bytes of a device."""

def empty_cache() -> None:
    """Returns the memory that the allocator keeps to the devices in use.

    Example:
        >>> torch.cuda.empty_cache()
    """

def memory_allocated(device: DeviceLike = None) -> int:
    """Returns the bytes that tensors use on a device.

    Args:
        device: The device. Default: the current one.

    Example:
        >>> torch.cuda.is_initialized() or torch.cuda.memory_allocated() == 0
        True
    """

def max_memory_allocated(device: DeviceLike = None) -> int:
    """Returns the most bytes that tensors used at one time, since the start or `reset_peak_memory_stats`.

    Args:
        device: The device. Default: the current one.

    Example:
        >>> torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()
        True
    """

def memory_reserved(device: DeviceLike = None) -> int:
    """Returns the bytes that tensors use or that the allocator keeps.

    Args:
        device: The device. Default: the current one.

    Example:
        >>> torch.cuda.memory_reserved() >= 0
        True
    """

def max_memory_reserved(device: DeviceLike = None) -> int:
    """Returns the most bytes that were used or kept at one time.

    Args:
        device: The device. Default: the current one.

    Example:
        >>> torch.cuda.max_memory_reserved() >= torch.cuda.memory_reserved()
        True
    """

def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Starts to count the peaks of memory from now."""

def manual_seed(seed: int) -> None:
    """Seeds the generator of the current device; does nothing without a device.

    Args:
        seed: The seed, an integer.

    Example:
        >>> torch.cuda.manual_seed(0)
    """

def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices; does nothing without one.

    Args:
        seed: The seed, an integer.

    Example:
        >>> torch.cuda.manual_seed_all(0)
    """

def seed() -> None:
    """Seeds the generator of the current device from the operating system; does nothing without a device.

    Example:
        >>> torch.cuda.seed()
    """

def seed_all() -> None:
    """Seeds the generators of all devices with one number from the operating system.

    Example:
        >>> torch.cuda.seed_all()
    """

def initial_seed() -> int:
    """Returns the seed of the current device's generator."""

def get_rng_state(device: DeviceLike = None) -> Tensor:
    """Returns the state of a device's generator, a uint8 tensor on the CPU."""

def get_rng_state_all() -> list[Tensor]:
    """Returns the states of the generators of all devices, a list.

    Example:
        >>> len(torch.cuda.get_rng_state_all()) == torch.cuda.device_count()
        True
    """

def set_rng_state(new_state: Tensor, device: DeviceLike = None) -> None:
    """Sets the state of a device's generator; does nothing without a device."""

def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    """Sets the states of the generators of all devices.

    Args:
        new_states: The states, as `get_rng_state_all` returns them.

    Example:
        >>> torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    """
