"""Common base of the OpenCL and CUDA backends. Kernels are imported on first use of a device."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import threading
import types
from typing import Any

import numpy as np

from torchlite._settings import fork_locks
from torchlite._types.dtypes import bfloat16, float16, float32, float64, from_np


class DeviceBackend:
    """Backend with raw arrays of `core.array`; a runtime's subclass enumerates devices."""

    name: str
    # The kernels compute half precision in float32 themselves, numbers included.
    scalar_dtypes = frozenset((float16, bfloat16, float32, float64))

    def __init__(self) -> None:
        self._devices: dict[int, Any] = {}
        self._runtimes: dict[int, Any] = {}
        self._lock = fork_locks.acquire_before_fork(threading.RLock())

    @property
    def array(self) -> type:
        from .core.array import Array

        return Array

    def device(self, index: int) -> Any:
        """Return the Device of an index, created on first use."""
        raise NotImplementedError

    def kernels(self, index: int) -> dict[str, Any]:
        return kernels_of(self.device(index))

    def kernel_location(self, op: str) -> str:
        """Where an op's kernel and its text are; needs no device. "" for an op without a kernel."""
        from .kernel_locations import kernel_location

        return kernel_location(kernels_of(None), op)

    def as_array(self, value: Any) -> Any:
        raise TypeError(f"a kernel of {self.name} returned {type(value).__name__}, not an Array")

    def from_numpy(self, array: np.ndarray, index: int) -> Any:
        from .core.host_transfer import from_numpy

        return from_numpy(np.asarray(array), self.device(index))

    def to_numpy(self, raw: Any) -> np.ndarray:
        from .core.host_transfer import to_numpy

        return to_numpy(raw)

    def host_view(self, raw: Any, write: bool) -> Any:
        """A block in which an array's memory is a NumPy array; None where the host does not have it."""
        from .core.host_transfer import map_to_host

        return map_to_host(raw, write) if raw.contiguous and raw.device.is_cpu else None

    def dtype_of(self, raw: Any) -> Any:
        return from_np(raw.dtype)

    def offset_between(self, raw: Any, base: Any) -> int:
        return (raw.offset - base.offset) * raw.itemsize

    def memory(self, raw: Any) -> Any:
        from .core.array import storage_bytes

        return storage_bytes(raw)

    def copy_into(self, target: Any, source: Any) -> None:
        from .core.copy_fill import copy_into

        copy_into(target, source)

    def is_sole_owner(self, raw: Any) -> bool:
        return raw.base is None

    def random_engine(self, index: int) -> Any:
        from .array_ops.random import PhiloxEngine

        return PhiloxEngine()


def kernels_of(device: Any) -> dict[str, Any]:
    """{op name: kernel} of all modules in this package's rooms: their own functions that bear an op's name, and the
    entries of their `KERNELS`.
    """
    table: dict[str, Any] = {}
    package = importlib.import_module(__package__)
    for info in pkgutil.walk_packages(package.__path__, f"{__package__}."):
        module = importlib.import_module(info.name)
        for op, kernel in _offered_kernels(module).items():
            if table.get(op, kernel) is not kernel:  # a module may import another one's KERNELS
                raise RuntimeError(f"two kernels for '{op}': in {table[op].__module__} and {module.__name__}")
            table[op] = kernel
    return {op: _with_device(kernel, device) for op, kernel in table.items()}


def _offered_kernels(module: Any) -> dict[str, Any]:
    from .core.kernel_markers import is_op

    offered = {
        n: f
        for n, f in vars(module).items()
        if isinstance(f, types.FunctionType) and f.__module__ == module.__name__ and is_op(n)
    }
    return {**offered, **getattr(module, "KERNELS", {})}


def _with_device(kernel: Any, device: Any) -> Any:
    return functools.partial(kernel, device) if getattr(kernel, "on_device", False) else kernel


class KernelsByNeed(dict):
    """What `kernels_of` returns. The modules are imported when an op is asked for that is not elementwise: importing
    all takes as long as the first call of a small network.
    """

    def __init__(self, device: Any) -> None:
        from .array_ops import pointwise

        self.device, self.is_complete = device, False
        super().__init__({op: _with_device(kernel, device) for op, kernel in _offered_kernels(pointwise).items()})

    def __missing__(self, op: str) -> Any:
        if self.is_complete:
            raise KeyError(op)
        self.update(kernels_of(self.device))
        self.is_complete = True
        return self[op]
