"""The backend protocol for "opencl"."""
from __future__ import annotations

import threading
from typing import Any

import numpy as np


class OpenCLBackend:
    """Backend protocol for "opencl". PyOpenCL is imported when a device is first asked for."""

    name = "opencl"

    def __init__(self) -> None:
        self._devices: dict[int, Any] = {}
        self._runtimes: dict[int, Any] = {}
        self._lock = threading.RLock()

    @property
    def array(self) -> type:
        from torchlite_device.array import Array
        return Array

    def why_not(self) -> str:
        from . import drivers
        return drivers.why_not()

    def device_count(self) -> int:
        from . import drivers
        return len(drivers.usable())

    def device(self, index: int) -> Any:
        """The Device of an index, made when first asked for."""
        with self._lock:
            if index not in self._devices:
                from .drivers import devices
                from .runtime import Device
                self._devices[index] = Device(index, devices()[index])
            return self._devices[index]

    def runtime(self, index: int) -> Any:
        """One device as `torch.opencl` asks for it."""
        from .streams import Runtime
        with self._lock:
            if index not in self._runtimes:
                self._runtimes[index] = Runtime(self.device(index))
            return self._runtimes[index]

    def describe(self, index: int) -> str:
        """One line about a device."""
        from . import drivers
        return drivers.describe(index)

    def problems(self) -> list[str]:
        """A sentence for each driver or device that is left out."""
        from . import drivers
        return drivers.problems()

    def kernels(self, index: int) -> dict[str, Any]:
        from torchlite_device.registering import kernels_of
        return kernels_of(self.device(index))

    def as_array(self, value: Any) -> Any:
        raise TypeError(f"an OpenCL kernel returned {type(value).__name__}, not an Array")

    def from_numpy(self, array: np.ndarray, index: int) -> Any:
        from torchlite_device.transfer import from_numpy
        return from_numpy(np.asarray(array), self.device(index))

    def to_numpy(self, raw: Any) -> np.ndarray:
        from torchlite_device.transfer import to_numpy
        return to_numpy(raw)

    def dtype_of(self, raw: Any):
        from torchlite._dtype import from_np
        return from_np(raw.dtype)

    def offset_between(self, raw: Any, base: Any) -> int:
        return (raw.offset - base.offset) * raw.itemsize

    def from_dlpack(self, exporter: Any) -> Any:
        raise NotImplementedError("DLPack has no agreed form for OpenCL buffers: go through the host, torch.from_dlpack(x).to('opencl')")

    def copy_into(self, target: Any, source: Any) -> None:
        from torchlite_device.copying import copy_into
        copy_into(target, source)

    def owns(self, raw: Any) -> bool:
        return raw.base is None

    def random_engine(self, index: int) -> Any:
        from torchlite_device.random import Engine
        return Engine()


backend = OpenCLBackend()
