"""Backend of "opencl" devices."""

from __future__ import annotations

import atexit
from typing import Any

from torchlite_backends.device_runtime.backend import DeviceBackend


class OpenCLBackend(DeviceBackend):
    """Backend of "opencl" devices. PyOpenCL is imported on first use of a device."""

    name = "opencl"

    def __init__(self) -> None:
        super().__init__()
        atexit.register(self._wait_for_devices)  # after what the program registers: that may use a device

    def _wait_for_devices(self) -> None:
        for device in self._devices.values():
            device.end()

    def why_not(self) -> str:
        from . import driver_discovery

        return driver_discovery.why_not()

    def device_count(self) -> int:
        from . import driver_discovery

        return len(driver_discovery.list_usable_devices())

    def is_accelerator(self) -> bool:
        """Return whether a device is no processor, or `TORCHLITE_OPENCL_PLATFORM` asks for a platform."""
        from . import driver_discovery

        return driver_discovery.is_accelerator()

    def device(self, index: int) -> Any:
        """Return the Device of an index, created on first use."""
        with self._lock:
            if index not in self._devices:
                from .device import Device
                from .driver_discovery import devices

                self._devices.setdefault(index, Device(index, devices()[index]))
            return self._devices[index]

    def runtime(self, index: int) -> Any:
        """One device as `torch.opencl` asks for it."""
        from .device_api import DeviceAPI

        with self._lock:
            if index not in self._runtimes:
                self._runtimes.setdefault(index, DeviceAPI(self.device(index)))
            return self._runtimes[index]

    def can_record(self, mode: str) -> bool:
        return True

    def widens_half(self, index: int) -> bool:
        return self.device(index).is_cpu

    def record_launches(self, index: int, function: Any, given: tuple, mode: str) -> Any:
        """Record the launches of a function of arrays; see `torchlite.backends.protocol`."""
        from .command_buffer import record_function

        return record_function(self.device(index), function, given, mode)

    def fused_matmul(self, name: str, then: str) -> Any:
        """The kernel of a product and the elementwise op behind it; see `torchlite.backends.protocol`."""
        from torchlite_backends.device_runtime.nn.conv import kernel_with_epilogue

        return kernel_with_epilogue(name, then)

    def consume_last_use(self, kernel: Any) -> Any:
        """A kernel whose first array nobody reads later; see `torchlite.backends.protocol`."""

        def run(x: Any, *args: Any, **kwargs: Any) -> Any:
            waiting = x.device.waiting
            waiting.owner_to_drop = x
            try:
                return kernel(x, *args, **kwargs)
            finally:
                waiting.owner_to_drop = None

        return run

    def describe(self, index: int) -> str:
        """One line about a device."""
        from . import driver_discovery

        return driver_discovery.describe_device(index)

    def icd_environment(self, index: int, folder: str) -> dict[str, str]:
        """Variables under which another program finds the driver of a device; `folder` keeps a file for it."""
        from . import driver_discovery

        return driver_discovery.make_icd_environment(index, folder)

    def problems(self) -> list[str]:
        """A sentence for each driver or device that is left out."""
        from . import driver_discovery

        return driver_discovery.problems()

    def from_dlpack(self, exporter: Any) -> Any:
        raise NotImplementedError(
            "DLPack has no agreed form for OpenCL buffers: go through the host, torch.from_dlpack(x).to('opencl')"
        )


backend = OpenCLBackend()
