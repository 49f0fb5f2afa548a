"""CPU engine "opencl": a CPU's OpenCL driver over NumPy's memory. PyOpenCL is imported on first use."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, ClassVar

from torchlite._settings import fork_locks
from torchlite._settings.thread_count import get_threads

from . import driver_discovery


class Engine:
    """See `torchlite_backends.cpu_engines.engine_selection.CpuEngine`.

    The driver gets no more threads than are granted; one that always uses all cores serves only if all are granted. A
    forked child cannot use or restart its parent's driver and computes with NumPy.
    """

    name, by_default = "opencl", False
    # A launch takes 10 to 60 microseconds: NumPy's time for so many elements on two cores.
    least: ClassVar = {"pass": 1 << 20, "cheap": 1 << 18, "middle": 1 << 17, "dear": 1 << 15}

    def __init__(self) -> None:
        self._devices: dict[int, Any] = {}  # by the number of threads
        self._lock = fork_locks.reinit_after_fork(threading.RLock())
        self._forked = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self._forked = True

    def why_not(self) -> str:
        missing = driver_discovery.why_not()
        if missing or _index() is not None:
            return missing
        return f"no OpenCL driver here is one for CPUs; {driver_discovery.INSTALL}"

    def describe(self) -> str:
        index = _index()
        return driver_discovery.describe_device(index) if index is not None else self.why_not()

    def device(self) -> Any:
        if self._forked:
            return None
        threads = get_threads()
        try:
            return self._devices[threads]
        except KeyError:
            with self._lock:
                if threads not in self._devices:
                    self._devices.setdefault(threads, _get_cpu_device(threads))
                return self._devices[threads]

    def integer_products(self) -> None:
        """Return None: NumPy multiplies integers."""

    def bind_convolution(self, plan: Any, weight: Any, bias: Any, finish: Any) -> None:
        """Return None: NumPy computes convolutions."""

    def channels_last(self) -> None:
        """None: images stay as they are."""

    def bind_lstm_steps(self, *arrays: Any) -> None:
        """Return None: NumPy runs the steps of an LSTM."""

    def bind_recurrent_steps(self, cell: Any, constants: Any) -> None:
        """Return None: NumPy runs the steps of recurrent layers."""

    def chain_serves(self, name: str, operands: int, dtypes: list) -> bool:
        return False

    def bind_chain(self, shape: tuple, given: list[tuple], steps: list, outs: list[int], dtypes: dict) -> None:
        """Return None: there is no interpreter of chains."""

    def fusion_device(self) -> Any:
        return self.device()

    products = gemv = None
    words = doubles = samples = normals = permutation = run_and_keep = None
    cast_half = half_gemv = half_dot = half_number = None

    def min_gemm_muls(self) -> int:
        """Return no minimum: this engine computes no products."""
        return 1 << 62

    def own(self, plain: dict[str, Callable]) -> dict[str, Callable]:
        return {}

    def small_array_kernels(self, plain: dict[str, Callable]) -> dict[str, Callable]:
        """Return no kernels: a launch takes longer than NumPy."""
        return {}

    def convolutions(self) -> Any:
        """Return None: NumPy's convolutions are faster."""
        return None


def _index() -> int | None:
    """Return the index of the first CPU device, in the order of `TORCHLITE_OPENCL_PLATFORM`."""
    return next((i for i, record in enumerate(driver_discovery.list_usable_devices()) if record["kind"] == "cpu"), None)


def _get_cpu_device(threads: int) -> Any:
    """Return the CPU, or a sub-device with as many cores as threads; None if its driver would use more.

    Measured: Intel's runtime gives a sub-device of n cores n threads, including the waiting one, and one of one core a
    second thread if the first one waits in the driver. PoCL (3.1) computes on all cores for any sub-device.
    """
    import pyopencl as cl

    from .host_device import HostDevice

    index = _index()
    if index is None:
        return None
    whole = driver_discovery.devices()[index]
    units = whole.max_compute_units
    if threads >= units:
        return HostDevice(whole, units)
    if "intel" not in whole.platform.vendor.lower():
        return None
    how: Any = cl.device_partition_property.BY_COUNTS
    return HostDevice(whole.create_sub_devices([how, threads])[0], units, joins=threads > 1)


engine = Engine()
