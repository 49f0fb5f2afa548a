"""The `cc` engine as a device type, `register_backend("cc", CompiledBackend())`, on which device tests run."""

from __future__ import annotations

from typing import Any

from torchlite_backends.device_runtime.backend import DeviceBackend

from . import cxx_compiler


class CompiledBackend(DeviceBackend):
    """Backend of the device "cc:0"; programs are built on first use."""

    name = "cc"

    def why_not(self) -> str:
        return cxx_compiler.why_not()

    def device_count(self) -> int:
        return 0 if cxx_compiler.why_not() else 1

    def device(self, index: int) -> Any:
        with self._lock:
            if index not in self._devices:
                from .device import Device

                self._devices.setdefault(index, Device(index))
            return self._devices[index]

    def describe(self, index: int) -> str:
        """Describe the device in one line."""
        return f"kernels of {' '.join(cxx_compiler.compiler())}"

    def from_dlpack(self, exporter: Any) -> Any:
        raise NotImplementedError("go through the CPU: torch.from_dlpack(x).to('cc')")
