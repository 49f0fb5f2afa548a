"""A CUDA device that computes nothing and notes what it would build: with it the programs that CUDA can be asked for are found by running ops.

Its memory is the host's, kernels leave it as it is, and each launch is checked against the kernel's parameters and CUDA's limits.
"""
from __future__ import annotations

import struct
from typing import Any

import numpy as np

from torchlite_device.array import Array
from torchlite_device.device import Device
from torchlite_kernels.preamble import CUDA, types

_GRID = (2**31 - 1, 65535, 65535)  # blocks


class Program:
    """A program text and the kernels that were asked of it."""

    def __init__(self, text: str):
        self.text = text
        self.kernels: dict[str, Kernel] = {}


class Kernel:
    """A kernel of a program: what `Device.function` gives. Starting it checks what it is given."""

    def __init__(self, device: Recorder, program: Program, name: str, signature: str):
        self.device, self.program, self.name, self.signature = device, program, name, signature
        self.sizes: list[int] | None = None  # of the parameters in bytes, once started
        self.free: set[tuple] = set()  # global sizes without a local size

    def __call__(self, global_size: tuple, local_size: tuple | None, *arguments) -> None:
        assert len(arguments) == len(self.signature), f"{self.name}: {len(arguments)} arguments for {self.signature}"
        sizes = []
        for code, value in zip(self.signature, arguments, strict=True):
            if code == "p":
                assert isinstance(value, Array), f"{self.name}: {value!r} is no array"
                sizes += [8, 4]
            elif code == "x":
                sizes.append(len(value))
            else:
                sizes.append(len(value) if isinstance(value, bytes) else len(struct.pack(code, value)))
        self._started(global_size, local_size, sizes)

    def start(self, global_size: tuple, local_size: tuple | None, buffers: list, values: list[bytes]) -> None:
        self._started(global_size, local_size, [8] * len(buffers) + [len(value) for value in values])

    def _started(self, global_size: tuple, local_size: tuple | None, sizes: list[int]) -> None:
        self.device.before()
        assert self.sizes in (None, sizes), f"{self.name}: arguments of {sizes} bytes, before {self.sizes}"
        self.sizes = sizes
        assert all(n > 0 for n in global_size), f"{self.name}: started with {global_size}"
        if local_size is None:
            self.free.add(global_size)
            return
        assert len(local_size) == len(global_size)
        for n, group, most in zip(global_size, local_size, _GRID, strict=False):
            assert n % group == 0, f"{self.name}: {global_size} in groups of {local_size}"
            assert n // group <= most, f"{self.name}: {global_size} in groups of {local_size}: too many blocks"
        assert np.prod(local_size) <= self.device.max_group
        self.device.launches += 1

    def max_group(self) -> int:
        return self.device.max_group


class Recorder(Device):
    """A device with the properties of a CUDA device."""

    type, label, name = "cuda", "CUDA", "recorder"
    is_cpu, fp64, long_atomics, vectors, blocking = False, True, True, False, False
    max_group, group, matrix_group, units, width = 1024, 256, 128, 108, 4
    local_memory = 48 << 10

    def __init__(self, index: int = 0):
        super().__init__(index)
        self.launches = 0
        self.recorded: dict[str, Program] = {}

    def before(self) -> None:
        """What a runtime does before it starts a kernel, reads or writes."""
        if self.waiting.steps:
            self.waiting.start()

    def preamble(self, widths: tuple[int, ...], typed: dict[str, str]) -> str:
        return CUDA + types(widths, "cuda", **typed)

    def build(self, text: str) -> Program:
        return self.recorded.setdefault(text, Program(text))

    def kernel(self, program: Program, name: str, signature: str) -> Kernel:
        return program.kernels.setdefault(name, Kernel(self, program, name, signature))

    def allocate(self, nbytes: int) -> np.ndarray:
        block = np.zeros(nbytes or 4, np.uint8)
        if nbytes < 1024:
            block[::8] = 1  # what is counted on the device is not nothing
        return block

    def address(self, buffer: Any) -> int:
        return buffer.ctypes.data

    def read(self, buffer: Any, start: int, host: Any) -> None:
        self.before()
        host[:] = buffer[start:start + host.size]

    def write(self, buffer: Any, host: Any, keep: bool = False) -> None:
        self.before()
        buffer[:host.size] = host

    def finish(self) -> None:
        self.before()


class RecorderBackend:
    """The backend protocol for a Recorder."""

    name, array = "cuda", Array

    def __init__(self, device: Recorder):
        self.device = device

    def why_not(self) -> str:
        return ""

    def device_count(self) -> int:
        return 1

    def kernels(self, index: int) -> dict[str, Any]:
        from torchlite_device.registering import kernels_of
        return kernels_of(self.device)

    def as_array(self, value: Any) -> Any:
        raise TypeError(f"a kernel returned {type(value).__name__}, not an Array")

    def from_numpy(self, array: np.ndarray, index: int) -> Array:
        from torchlite_device.transfer import from_numpy
        return from_numpy(np.asarray(array), self.device)

    def to_numpy(self, raw: Array) -> np.ndarray:
        from torchlite_device.transfer import to_numpy
        return to_numpy(raw)

    def dtype_of(self, raw: Array) -> Any:
        from torchlite._dtype import from_np
        return from_np(raw.dtype)

    def offset_between(self, raw: Array, base: Array) -> int:
        return (raw.offset - base.offset) * raw.itemsize

    def copy_into(self, target: Array, source: Any) -> None:
        from torchlite_device.copying import copy_into
        copy_into(target, source)

    def owns(self, raw: Array) -> bool:
        return raw.base is None

    def random_engine(self, index: int) -> Any:
        from torchlite_device.random import Engine
        return Engine()
