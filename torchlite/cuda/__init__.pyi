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
    """Initializes the current device. Functions that need a device call it.

    Raises:
        RuntimeError: There is no device; the text says what is missing.

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.init()
    """

def is_initialized() -> bool:
    """Returns whether a device of this type is in use.

    Example:
        >>> torch.cuda.is_initialized() and not torch.cuda.is_available()
        False
    """

def ipc_collect() -> None:
    """Does nothing: device memory is not shared between processes.

    Raises:
        RuntimeError: There is no device.

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.ipc_collect()
    """

def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Starts to count from now what only grows: allocations, frees, retries and failures."""

def get_stream_from_external(data_ptr: int, device: DeviceLike = None) -> Stream:
    """Returns the stream at an address that another library gave."""

class Stream(_Stream):
    """Queue of work on a CUDA device."""
    @property
    def cuda_stream(self) -> int:
        """The address of the stream, a ``cudaStream_t``."""

class ExternalStream(Stream):
    """Stream that another library created, by its address."""
    def __init__(self, stream_ptr: int, device: DeviceLike = None, **kwargs: Any) -> None: ...

class Event(_Event):
    """Point in the work of a stream, to wait for and to measure times."""
    @property
    def cuda_event(self) -> int:
        """The address of the recorded event, a ``cudaEvent_t``; 0 before it is recorded."""

class graph:
    """Captures a block into a `CUDAGraph`, without running it."""
    def __init__(
        self, cuda_graph: CUDAGraph, pool: Any = None, stream: _Stream | None = None, capture_error_mode: str = "global"
    ) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...
