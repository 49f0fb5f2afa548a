"""What torchlite.cuda and torchlite.opencl have alike."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from .aliases import DeviceLike
from .basic import Stream
from .tensor import Tensor

class StreamContext:
    """A chosen stream, and its device, for the time of a `with` block; nothing changes for None."""

    stream: Stream | None
    def __init__(self, stream: Stream | None) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...

class device:
    """The current device for the time of a `with` block; nothing changes for None and for a negative index."""
    def __init__(self, device: DeviceLike) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...

class device_of(device):
    """The device of a tensor as the current one for the time of a `with` block; nothing changes for a tensor of
    another device type.
    """
    def __init__(self, obj: Tensor) -> None: ...

class OutOfMemoryError(RuntimeError): ...

def is_available() -> bool:
    """True if a device can be used. Never raises.

    >>> import torchlite as torch
    >>> device = "opencl" if torch.opencl.is_available() else "cpu"
    """

def device_count() -> int:
    """Number of usable devices."""

def why_not() -> str:
    """ "" if a device can be used, else one sentence that names what is missing and what to install."""

def current_device() -> int:
    """The index of the calling thread's current device, the one that a name without an index means."""

def set_device(device: DeviceLike) -> None:
    """Choose the calling thread's current device; nothing changes for a negative index. RuntimeError for one that
    is not there.
    """

def get_device_name(device: DeviceLike = None) -> str:
    """The device's name."""

def get_device_properties(device: DeviceLike = None) -> Any:
    """Properties of the device: name, total_memory, multi_processor_count and more."""

def synchronize(device: DeviceLike = None) -> None:
    """Wait until the device has done everything it was given."""

def stream(stream: Stream | None) -> StreamContext:
    """Choose a stream, and its device, for the time of a `with` block; nothing changes for None."""

def set_stream(stream: Stream | None) -> None:
    """Choose the calling thread's stream, and its device."""

def current_stream(device: DeviceLike = None) -> Stream:
    """The stream that receives the calling thread's work."""

def default_stream(device: DeviceLike = None) -> Stream:
    """The stream for work when none is selected."""

def memory_stats(device: DeviceLike = None) -> OrderedDict[str, int]:
    """The allocator's counts by PyTorch's names, such as "allocated_bytes.all.peak"."""

def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Free and total bytes of the device. On an OpenCL GPU "free" is what this process has not taken: OpenCL does
    not tell more.
    """

def empty_cache() -> None:
    """Release cached memory to the devices in use."""

def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes that tensors take."""

def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most bytes that tensors took at one time, since the start or `reset_peak_memory_stats`."""

def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes that tensors use or that the allocator caches."""

def max_memory_reserved(device: DeviceLike = None) -> int:
    """The peak of the bytes that were used or cached."""

def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Begin to count the peaks anew."""

def manual_seed(seed: int) -> None:
    """Seed the current device's generator; nothing happens without a device."""

def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices; nothing happens without one."""

def seed() -> None:
    """Seed the current device's generator from the operating system."""

def seed_all() -> None:
    """Seed the generators of all devices alike, from the operating system."""

def initial_seed() -> int:
    """The seed of the current device's generator."""

def get_rng_state(device: DeviceLike = None) -> Tensor:
    """The state of a device's generator as a uint8 tensor (on the CPU)."""

def get_rng_state_all() -> list[Tensor]:
    """The states of all devices' generators."""

def set_rng_state(new_state: Tensor, device: DeviceLike = None) -> None:
    """Set the state of a device's generator; nothing happens without a device."""

def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    """Set the states of all devices' generators."""
