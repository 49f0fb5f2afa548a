"""OpenCL devices, with the functions of `torch.cuda`: enumeration, synchronisation, memory and random numbers.

The backend is a separate extra (`pip install 'torchlite-nd[opencl]'`), which is imported at first use.
"""

from ._device.accelerators import OPENCL as _opencl
from ._device.streams import StreamContext
from ._dispatch.backend import OutOfMemoryError

is_available, device_count, why_not = _opencl.is_available, _opencl.device_count, _opencl.why_not
device, device_of, current_device, set_device = (
    _opencl.device,
    _opencl.device_of,
    _opencl.current_device,
    _opencl.set_device,
)
get_device_name, get_device_properties = _opencl.get_device_name, _opencl.get_device_properties
synchronize = _opencl.synchronize
Stream, Event = _opencl.Stream, _opencl.Event
stream, set_stream, current_stream, default_stream = (
    _opencl.stream,
    _opencl.set_stream,
    _opencl.current_stream,
    _opencl.default_stream,
)
memory_stats, mem_get_info, empty_cache = _opencl.memory_stats, _opencl.mem_get_info, _opencl.empty_cache
memory_allocated, max_memory_allocated = _opencl.memory_allocated, _opencl.max_memory_allocated
memory_reserved, max_memory_reserved = _opencl.memory_reserved, _opencl.max_memory_reserved
reset_peak_memory_stats = _opencl.reset_peak_memory_stats
manual_seed, manual_seed_all, seed, seed_all, initial_seed = (
    _opencl.manual_seed,
    _opencl.manual_seed_all,
    _opencl.seed,
    _opencl.seed_all,
    _opencl.initial_seed,
)
get_rng_state, get_rng_state_all = _opencl.get_rng_state, _opencl.get_rng_state_all
set_rng_state, set_rng_state_all = _opencl.set_rng_state, _opencl.set_rng_state_all

__all__ = [
    "Event", "OutOfMemoryError", "Stream", "StreamContext", "current_device", "current_stream", "default_stream",
    "device", "device_count", "device_of", "empty_cache", "get_device_name", "get_device_properties", "get_rng_state",
    "get_rng_state_all", "initial_seed", "is_available", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved", "memory_stats",
    "reset_peak_memory_stats", "seed", "seed_all", "set_device", "set_rng_state", "set_rng_state_all", "set_stream",
    "stream", "synchronize", "why_not",
]  # fmt: skip
