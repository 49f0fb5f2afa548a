"""GPU measurements by NVIDIA's management library (NVML), through the package `nvidia-ml-py` (`pip install
nvidia-ml-py`).
"""

from __future__ import annotations

from typing import Any

from ._accelerator import cuda


def _load_nvml() -> Any:
    try:
        import pynvml
    except ImportError as error:
        raise ModuleNotFoundError("nvidia-ml-py does not seem to be installed or it can't be imported.") from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise RuntimeError("cuda driver can't be loaded, is cuda enabled?") from error
    return pynvml


def _device_handle(device: Any) -> tuple[Any, Any]:
    """Return the NVML library and its handle of a device, found by the PCI address: NVML also numbers hidden
    devices.
    """
    library = _load_nvml()
    at = cuda.get_device_properties(device)
    return library, library.nvmlDeviceGetHandleByPciBusId(
        f"{at.pci_domain_id:08X}:{at.pci_bus_id:02X}:{at.pci_device_id:02X}.0".encode()
    )


def utilization(device: Any = None) -> int:
    """Returns the percentage of recent time in which a kernel ran on a device.

    It needs the package ``nvidia-ml-py`` and a device::

        value = torch.cuda.utilization()

    Args:
        device: The device. Default: the current one.

    Raises:
        ModuleNotFoundError: The package is missing.
        RuntimeError: There is no device.
    """
    library, handle = _device_handle(device)
    return library.nvmlDeviceGetUtilizationRates(handle).gpu


def memory_usage(device: Any = None) -> int:
    """Returns the percentage of recent time in which a device's memory was read or written.

    It needs the package ``nvidia-ml-py`` and a device::

        value = torch.cuda.memory_usage()

    Args:
        device: The device. Default: the current one.

    Raises:
        ModuleNotFoundError: The package is missing.
        RuntimeError: There is no device.
    """
    library, handle = _device_handle(device)
    return library.nvmlDeviceGetUtilizationRates(handle).memory


def temperature(device: Any = None) -> int:
    """Returns the temperature of a device's chip in degrees Celsius.

    It needs the package ``nvidia-ml-py`` and a device::

        value = torch.cuda.temperature()

    Args:
        device: The device. Default: the current one.

    Raises:
        ModuleNotFoundError: The package is missing.
        RuntimeError: There is no device.
    """
    library, handle = _device_handle(device)
    return library.nvmlDeviceGetTemperature(handle, library.NVML_TEMPERATURE_GPU)


def power_draw(device: Any = None) -> int:
    """Returns the power that a device draws, in milliwatts.

    It needs the package ``nvidia-ml-py`` and a device::

        value = torch.cuda.power_draw()

    Args:
        device: The device. Default: the current one.

    Raises:
        ModuleNotFoundError: The package is missing.
        RuntimeError: There is no device.
    """
    library, handle = _device_handle(device)
    return library.nvmlDeviceGetPowerUsage(handle)


def clock_rate(device: Any = None) -> int:
    """Returns the clock rate of a device's multiprocessors in megahertz.

    It needs the package ``nvidia-ml-py`` and a device::

        value = torch.cuda.clock_rate()

    Args:
        device: The device. Default: the current one.

    Raises:
        ModuleNotFoundError: The package is missing.
        RuntimeError: There is no device.
    """
    library, handle = _device_handle(device)
    return library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_SM)


def device_memory_used(device: Any = None) -> int:
    """Returns the bytes of a device's memory that all processes use.

    It needs the package ``nvidia-ml-py`` and a device::

        value = torch.cuda.device_memory_used()

    Args:
        device: The device. Default: the current one.

    Raises:
        ModuleNotFoundError: The package is missing.
        RuntimeError: There is no device.
    """
    library, handle = _device_handle(device)
    return library.nvmlDeviceGetMemoryInfo(handle).used


def list_gpu_processes(device: Any = None) -> str:
    """Returns a line for each process on a device, with its memory in MB.

    Args:
        device: The device. Default: the current one.

    Returns:
        The text; if the package ``nvidia-ml-py`` or the device is missing, a text that says so.

    Example:
        >>> isinstance(torch.cuda.list_gpu_processes(), str)
        True
    """
    try:
        library, handle = _device_handle(device)
    except ModuleNotFoundError:
        return "pynvml module not found, please install nvidia-ml-py"
    except RuntimeError as error:
        return str(error)
    processes = library.nvmlDeviceGetComputeRunningProcesses(handle)
    lines = [f"process {p.pid:>10d} uses {p.usedGpuMemory / (1 << 20):>12.3f} MB GPU memory" for p in processes]
    return "\n".join([f"GPU:{cuda.index(device)}", *(lines or ["no processes are running"])])
