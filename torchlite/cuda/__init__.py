"""CUDA devices: their streams, graphs, memory and random numbers.

The backend is a separate extra (`pip install 'torchlite-nd[cuda12]'`), loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from . import memory, random
from ._accelerator import (
    can_device_access_peer,
    cuda,
    get_arch_list,
    get_device_capability,
    get_gencode_flags,
    is_bf16_supported,
    is_tf32_supported,
)
from ._nvml import (
    clock_rate,
    device_memory_used,
    list_gpu_processes,
    memory_usage,
    power_draw,
    temperature,
    utilization,
)
from .memory import *
from .random import *
from .streams import Event, ExternalStream, Stream, StreamContext, get_stream_from_external, stream

is_available, device_count, why_not, is_initialized, init = (
    cuda.is_available,
    cuda.device_count,
    cuda.why_not,
    cuda.is_initialized,
    cuda.init,
)
device, device_of, current_device, set_device = cuda.device, cuda.device_of, cuda.current_device, cuda.set_device
get_device_name, get_device_properties, synchronize = cuda.get_device_name, cuda.get_device_properties, cuda.synchronize
set_stream, current_stream, default_stream = cuda.set_stream, cuda.current_stream, cuda.default_stream
has_half, has_magma = True, False

_GRAPHS = ("CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables")
_MODULES = ("amp", "graphs", "nvtx", "profiler", "sparse")
_TYPES = (
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor",
)  # fmt: skip

__all__ = [
    *_GRAPHS,
    *_TYPES,
    "Event",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "amp",
    "can_device_access_peer",
    "clock_rate",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_stream_from_external",
    "graphs",
    "has_half",
    "has_magma",
    "init",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "is_tf32_supported",
    "list_gpu_processes",
    "memory",
    "memory_usage",
    "nvtx",
    "power_draw",
    "profiler",
    "random",
    "set_device",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
    "temperature",
    "utilization",
    "why_not",
]
__all__ += memory.__all__
__all__ += random.__all__


def ipc_collect() -> None:
    """Does nothing: device memory is not shared between processes.

    Raises:
        RuntimeError: There is no device.

    Example:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.ipc_collect()
    """
    init()


def __getattr__(name: str) -> Any:
    if name in _GRAPHS:
        found = getattr(importlib.import_module(".graphs", __name__), name)
    elif name in _TYPES:
        from .._tensor.legacy_types import typed_tensor_class

        found = typed_tensor_class(name, "cuda")
    elif name.endswith("Storage"):
        from .._tensor.typed_storage import storage_named

        found = storage_named(name, "cuda")
    elif name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    elif name == "_initialized":
        return is_initialized()
    elif name == "default_generators":
        return cuda.default_generators()
    else:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = found
    return found


__dir__ = make_module_dir(globals())
