"""CUDA devices."""

from typing import Any

from .._stubs.accelerator import *
from .._stubs.aliases import DeviceLike
from .._stubs.basic import Event as _Event
from .._stubs.basic import Stream as _Stream
from .._stubs.functions import BFloat16Tensor as BFloat16Tensor
from .._stubs.functions import BoolTensor as BoolTensor
from .._stubs.functions import ByteTensor as ByteTensor
from .._stubs.functions import CharTensor as CharTensor
from .._stubs.functions import DoubleTensor as DoubleTensor
from .._stubs.functions import FloatTensor as FloatTensor
from .._stubs.functions import HalfTensor as HalfTensor
from .._stubs.functions import IntTensor as IntTensor
from .._stubs.functions import LongTensor as LongTensor
from .._stubs.functions import ShortTensor as ShortTensor
from . import amp as amp
from . import graphs as graphs
from . import memory as memory
from . import nvtx as nvtx
from . import profiler as profiler
from . import random as random
from . import streams as streams
from ._accelerator import can_device_access_peer as can_device_access_peer
from ._accelerator import get_arch_list as get_arch_list
from ._accelerator import get_device_capability as get_device_capability
from ._accelerator import get_gencode_flags as get_gencode_flags
from ._accelerator import is_bf16_supported as is_bf16_supported
from ._accelerator import is_tf32_supported as is_tf32_supported
from ._nvml import clock_rate as clock_rate
from ._nvml import device_memory_used as device_memory_used
from ._nvml import list_gpu_processes as list_gpu_processes
from ._nvml import memory_usage as memory_usage
from ._nvml import power_draw as power_draw
from ._nvml import temperature as temperature
from ._nvml import utilization as utilization
from .graphs import CUDAGraph as CUDAGraph
from .graphs import graph_pool_handle as graph_pool_handle
from .graphs import is_current_stream_capturing as is_current_stream_capturing
from .graphs import make_graphed_callables as make_graphed_callables
from .memory import get_per_process_memory_fraction as get_per_process_memory_fraction
from .memory import max_memory_cached as max_memory_cached
from .memory import memory_cached as memory_cached
from .memory import memory_stats_as_nested_dict as memory_stats_as_nested_dict
from .memory import memory_summary as memory_summary
from .memory import reset_max_memory_allocated as reset_max_memory_allocated
from .memory import reset_max_memory_cached as reset_max_memory_cached
from .memory import set_per_process_memory_fraction as set_per_process_memory_fraction

has_half: bool
has_magma: bool
default_generators: tuple[Any, ...]

def init() -> None:
    """Initialise the current device; functions that need one do this automatically. RuntimeError that names what is
    missing if there is none.
    """

def is_initialized() -> bool:
    """True if a device of this type is in use."""

def ipc_collect() -> None:
    """No effect: device memory is not shared between processes, so there is none to free. RuntimeError without a
    device.
    """

def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Begin to count anew what only grows: allocations, frees, retries, failures."""

def get_stream_from_external(data_ptr: int, device: DeviceLike = None) -> Stream:
    """The stream at an address that another library gave."""

class Stream(_Stream):
    """A queue of work on a CUDA device: the work of one stream runs in order, several streams may run concurrently."""
    @property
    def cuda_stream(self) -> int:
        """The address of the stream, a `cudaStream_t`."""

class ExternalStream(Stream):
    """A stream created by another library, by its address. It must outlive this object."""
    def __init__(self, stream_ptr: int, device: DeviceLike = None, **kwargs: Any) -> None: ...

class Event(_Event):
    """A point in a stream's work, for synchronization and timing."""
    @property
    def cuda_event(self) -> int:
        """The address of the recorded event, a `cudaEvent_t`; 0 before it is recorded."""

class graph:
    """Context manager that captures work into a CUDAGraph without running it."""
    def __init__(
        self, cuda_graph: CUDAGraph, pool: Any = None, stream: _Stream | None = None, capture_error_mode: str = "global"
    ) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...
