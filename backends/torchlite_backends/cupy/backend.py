"""Backend of "cuda" devices."""

from __future__ import annotations

from typing import Any

from torchlite_backends.device_runtime.backend import DeviceBackend, kernels_of

from . import availability


class CUDABackend(DeviceBackend):
    """Backend of "cuda" devices. `source` opens them: the module `availability`, which imports CuPy on first use."""

    name = "cuda"

    def __init__(self, source: Any = availability) -> None:
        self._source = source
        super().__init__()

    def why_not(self) -> str:
        return self._source.why_not()

    def is_built(self) -> bool:
        """Return whether CuPy is installed."""
        from . import availability

        return availability.has_cupy()

    def device_count(self) -> int:
        return 0 if self.why_not() else self._source.device_count()

    def device(self, index: int) -> Any:
        """Return the Device of an index, created on first use."""
        found = self._devices.get(index)
        if found is None:
            with self._lock:
                if index not in self._devices:
                    from .device import Device

                    self._devices.setdefault(index, Device(index, self._source.open_device(index)))
                found = self._devices[index]
        return found

    def runtime(self, index: int) -> Any:
        """One device as `torch.cuda` asks for it."""
        from .device_api import DeviceAPI

        with self._lock:
            if index not in self._runtimes:
                self._runtimes.setdefault(index, DeviceAPI(self.device(index)))
            return self._runtimes[index]

    def can_record(self, mode: str) -> bool:
        return mode in ("reduce-overhead", "max-autotune")

    def record_launches(self, index: int, function: Any, given: tuple, mode: str) -> Any:
        """Record the launches of a function of arrays; see `torchlite.backends.protocol`."""
        from .cuda_graphs import CapturedFunction

        return CapturedFunction(self.runtime(index), function, given)

    def describe(self, index: int) -> str:
        """One line about a device."""
        has, cudnn = self.device(index).properties, self.cudnn_version()
        parts = (
            has["name"],
            f"compute capability {has['major']}.{has['minor']}",
            f"{has['total_memory'] / (1 << 30):.1f} GiB",
            f"{has['multi_processor_count']} multiprocessors",
            f"cuDNN {cudnn}" if cudnn else "no cuDNN",
        )
        return ", ".join(parts)

    def problems(self) -> list[str]:
        """Return a sentence for each installed component that cannot be used."""
        return self._source.problems()

    def kernels(self, index: int) -> dict[str, Any]:
        from . import cudnn_attention, cudnn_conv, cufft, flash_attention_launch

        device = self.device(index)
        table = kernels_of(device) | cufft.kernels(device)
        table |= flash_attention_launch.kernels(table)
        return table | cudnn_conv.kernels(table) | cudnn_attention.kernels(table)

    def kernel_location(self, op: str) -> str:
        """Where an op's kernel and its text are, and the call of a vendor library that is tried first."""
        from torchlite_backends.device_runtime.kernel_locations import describe_kernel

        from . import cudnn_attention, cudnn_conv, cufft, flash_attention_launch

        modules = (cudnn_attention, cudnn_conv, flash_attention_launch, cufft)  # the order in which they are tried
        functions = [vars(module)[op] for module in modules if op in vars(module)]
        first = [describe_kernel(f) for f in functions if f.__module__.startswith(__package__)]
        return ", else ".join(place for place in (*first, super().kernel_location(op)) if place)

    def cudnn_version(self) -> int | None:
        """cuDNN's version, such as 91002; None where it is not installed."""
        return self._source.cudnn_version()

    def from_dlpack(self, exporter: Any) -> Any:
        from .array_interop import from_cupy

        device = self.device(exporter.__dlpack_device__()[1])
        return from_cupy(device, device.driver.from_dlpack(exporter))

    def to_dlpack(self, raw: Any, stream: int | None) -> Any:
        """An object with `__dlpack__`, which lets a consumer's stream wait for ours."""
        from .array_interop import to_cupy

        return to_cupy(raw)

    def cuda_array_interface(self, raw: Any) -> dict[str, Any]:
        from .array_interop import cuda_array_interface_of

        return cuda_array_interface_of(raw)

    def from_cuda_array_interface(self, data: Any) -> Any:
        from torchlite._dispatch.backend_registry import current_index

        from .array_interop import from_cupy

        foreign = self.device(current_index("cuda")).driver.from_interface(data)
        return from_cupy(self.device(foreign.device.id), foreign)


backend = CUDABackend()
