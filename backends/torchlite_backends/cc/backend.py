"""The engine as a device type of its own, `register_backend("cc", CompiledBackend())`: tests of devices run on it."""

from __future__ import annotations

from typing import Any

from torchlite_backends.device_runtime.backend import DeviceBackend

from . import program_build


class CompiledBackend(DeviceBackend):
    """Backend protocol for the one device "cc:0", whose programs are built when they are first needed."""

    name = "cc"

    def why_not(self) -> str:
        return program_build.why_not()

    def device_count(self) -> int:
        return 0 if program_build.why_not() else 1

    def device(self, index: int) -> Any:
        with self._lock:
            if index not in self._devices:
                from .device import Device

                self._devices.setdefault(index, Device(index))
            return self._devices[index]

    def describe(self, index: int) -> str:
        """One line about a device."""
        return f"kernels of {' '.join(program_build.compiler())}"

    def from_dlpack(self, exporter: Any) -> Any:
        raise NotImplementedError("go through the CPU: torch.from_dlpack(x).to('cc')")
