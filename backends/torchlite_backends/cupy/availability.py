"""Availability of CUDA: driver, devices, CuPy, NVRTC, and the reason if it cannot be used.

CuPy is imported only if a driver shows a device, so that the check is fast on machines without one.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from torchlite._settings import cache_files

_NO_DEVICE = 100
_WHEELS = {"cupy-cuda12x": 12, "cupy-cuda13x": 13}


@functools.cache
def _load_driver() -> Any:
    """Load the driver's library; None if it is not installed."""
    try:
        if sys.platform == "win32":
            return ctypes.WinDLL("nvcuda.dll")
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


@functools.cache
def _query_driver(library: Any) -> tuple[int, int, int]:
    """Return the status of cuInit, the CUDA version (1000 * major + 10 * minor), and the number of devices."""
    version, count = ctypes.c_int(0), ctypes.c_int(0)
    library.cuDriverGetVersion(ctypes.byref(version))
    status = library.cuInit(0)
    if status == 0:
        status = library.cuDeviceGetCount(ctypes.byref(count))
    return status, version.value, count.value


def has_cupy() -> bool:
    """Return whether CuPy is installed; it is not imported."""
    return importlib.util.find_spec("cupy") is not None


@functools.cache
def _installed_cupy_wheel() -> tuple[str, int]:
    """Return the installed CuPy wheel and its CUDA version, 0 for a CuPy built from source."""
    for name, major in _WHEELS.items():
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        return name, major
    return "cupy", 0


def _install_hint(version: int) -> str:
    """Return the install command for a driver's CUDA version."""
    return f"pip install 'torchlite-nd[{'cuda13' if version >= 13000 else 'cuda12'}]'"


def why_not() -> str:
    """Return "" if CUDA can be used, else one sentence that says what is missing."""
    library = _load_driver()
    if library is None:
        there = " (which is there already)" if has_cupy() else ""
        return (
            f"device 'cuda' needs an NVIDIA driver, and this machine has none ({_driver_library_name()} is not found): "
            "install "
            f"NVIDIA's driver, and CuPy{there} with {_install_hint(0)}"
        )
    status, version, count = _query_driver(library)
    if status == _NO_DEVICE or status == 0 and count == 0:
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        if hidden is not None:
            return (
                f"no CUDA device is visible: the environment variable CUDA_VISIBLE_DEVICES is '{hidden}'; name a "
                "device there or unset it"
            )
        return "the NVIDIA driver finds no CUDA device on this machine: nvidia-smi shows what it sees"
    if status:
        return f"the NVIDIA driver does not start (cuInit gives error {status}): nvidia-smi shows more"
    if not has_cupy():
        return f"device 'cuda' needs CuPy, which is not installed: {_install_hint(version)}"
    name, major = _installed_cupy_wheel()
    if version < 1000 * major:
        other = (
            f", or install the CuPy for it: pip uninstall {name}, then {_install_hint(version)}"
            if version >= 12000
            else ""
        )
        return (
            f"the NVIDIA driver is too old: it knows CUDA {version // 1000}.{version % 1000 // 10}, and {name} needs "
            f"CUDA {major}: install a newer driver{other}"
        )
    return _compiler_unavailability_reason(name)


def _driver_library_name() -> str:
    return "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


@functools.cache
def _compiler_unavailability_reason(name: str) -> str:
    """Return why CuPy cannot be imported or cannot compile."""
    _disable_unsafe_kernel_cache()
    try:
        from .cupy_driver import nvrtc_version
    except ImportError as error:
        return f"CuPy is installed and cannot be imported: {error}"
    try:
        nvrtc_version()
    except (RuntimeError, ImportError, OSError) as error:
        return (
            f"CUDA's compiler NVRTC is not found ({' '.join(str(error).split())}): pip install '{name}[ctk]', or "
            "install the CUDA Toolkit"
        )
    return ""


def device_count() -> int:
    """Return the number of CUDA devices."""
    from .cupy_driver import device_count

    return device_count()


def open_device(index: int) -> Any:
    """Open the Driver of a device."""
    from .cupy_driver import Driver

    return Driver(index)


def cudnn_version() -> int | None:
    """Return cuDNN's version, None if it is not installed."""
    from .cudnn import import_frontend

    found = import_frontend()
    return None if found is None else found.backend_version()


def problems() -> list[str]:
    """List installed components that cannot be used."""
    if not has_cupy():
        return []
    reason = why_not()
    return [reason] if reason else []


def _disable_unsafe_kernel_cache() -> None:
    """Make CuPy keep its kernels in memory if other users can write its cache folder, which it loads from.

    Must run before CuPy is imported.
    """
    home = os.path.join(os.path.expanduser("~"), ".cupy", "kernel_cache")
    if not cache_files.is_trusted(Path(os.environ.get("CUPY_CACHE_DIR") or home)):
        os.environ.setdefault("CUPY_CACHE_IN_MEMORY", "1")
