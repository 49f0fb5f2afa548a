"""One OpenCL device at run time: context, queue, memory pool, built kernels."""
from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import threading
import warnings
from pathlib import Path
from typing import Any

import pyopencl as cl
from pyopencl._cl import enqueue_nd_range_kernel

from torchlite_kernels.preamble import OPENCL, types

from . import forks
from .drivers import cache_folder
from .memory import Memory


class Function:
    """A built kernel: `function(global_size, local_size, *arguments)` starts it.

    `signature` has one letter for each argument: `p` an Array (passed as its buffer and its offset in elements), `x` packed bytes, else the struct code of a number.
    """

    __slots__ = ("device", "kernel", "name", "signature", "_packers", "_lock")

    def __init__(self, device: Device, kernel: Any, signature: str):
        self.device, self.kernel, self.signature = device, kernel, signature
        self.name = kernel.function_name
        self._packers = [None if code in "px" else struct.Struct(code).pack for code in signature]
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<OpenCL kernel {self.name}({self.signature}) on {self.device.name}>"

    def __call__(self, global_size: tuple, local_size: tuple | None, *arguments) -> None:
        kernel, at = self.kernel, 0
        with self._lock:
            for pack, value in zip(self._packers, arguments, strict=True):
                if pack is not None:
                    kernel._set_arg_buf(at, pack(value))
                elif value.__class__ is bytes:
                    kernel._set_arg_buf(at, value)
                else:
                    kernel.set_arg(at, value.buffer)
                    at += 1
                    kernel._set_arg_buf(at, _pack_offset(value.offset))
                at += 1
            enqueue_nd_range_kernel(self.device.queue, kernel, global_size, local_size)

    def max_group(self) -> int:
        """The largest work-group that this kernel runs in on its device."""
        return self.kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, self.device.cl_device)


_pack_offset = struct.Struct("i").pack


class Kept(dict):
    """What a kernel family remembers of the shapes it has seen, for as long as there are not too many: then it begins anew."""

    def __init__(self, most: int):
        super().__init__()
        self.most = most

    def __setitem__(self, key: Any, value: Any) -> None:
        if len(self) >= self.most:
            self.clear()
        super().__setitem__(key, value)


class Device:
    """The state of one device. `width` is the number of elements that a work-item takes in contiguous kernels."""

    def __init__(self, index: int, cl_device: Any):
        forks.watch(Device)
        self.index, self.cl_device = index, cl_device
        self.name = cl_device.name.strip()
        self.context = cl.Context([cl_device])
        self.queue = cl.CommandQueue(self.context)
        self.is_cpu = bool(cl_device.type & cl.device_type.CPU)
        self.memory = Memory(self)
        self.allocate = self.memory.allocate
        self.fp64 = bool(cl_device.double_fp_config)
        self.max_group = cl_device.max_work_group_size
        self.units = cl_device.max_compute_units
        self.local_memory = cl_device.local_mem_size
        self.width = 16 if self.is_cpu else 4
        self.group = min(256, self.max_group)
        self.matrix_group = 1 if self.is_cpu else min(128, self.group)  # work-items that factor a matrix together: a power of 2
        self.functions: dict[tuple, Function] = {}
        self.programs: dict[str, Any] = {}  # by text: a program may hold several kernels
        self.plans = Kept(20000)  # of families whose keys begin with a name or a rule of their own
        self.state: dict[Any, Any] = {}  # what lasts as long as the device: the note of errors, scratch memory
        self._kept: dict[str, Kept] = {}
        self._building = threading.Lock()
        self._keeps = os.environ.get("TORCHLITE_KEEP_PROGRAMS", "1") != "0"
        self._identity = "\n".join((cl_device.platform.version, cl_device.name, cl_device.version, cl_device.driver_version))

    def __repr__(self) -> str:
        return f"<opencl:{self.index} {self.name}>"

    def kept(self, family: str, most: int = 4096) -> Kept:
        """What a kernel family of that name remembers, at most so many entries."""
        found = self._kept.get(family)
        return self._kept.setdefault(family, Kept(most)) if found is None else found

    # -- kernels --

    def function(self, source: str, name: str, signature: str, widths: Any = (), **kinds: str) -> Function:
        """The kernel `name` of a program text, built once. `kinds` are data types for the macros of `torchlite_kernels.preamble.types`, or texts to define."""
        key = (source, name, tuple(kinds.items())) if kinds else (source, name)
        found = self.functions.get(key)
        if found is None:
            found = self._function(key, source, name, signature, widths, kinds)
        return found

    def _function(self, key, source, name, signature, widths, kinds) -> Function:
        from torchlite_kernels.preamble import KINDS
        typed = {k: v for k, v in kinds.items() if v in KINDS}
        defined = "".join(f"#define {k} {v}\n" for k, v in kinds.items() if v not in KINDS)
        for kind in typed.values():
            self.check_kind(kind)
        text = OPENCL + types(widths, **typed) + defined + source
        with self._building:
            found = self.functions.get(key)
            if found is None:
                program = self.programs.get(text)
                if program is None:
                    program = self.programs[text] = self.build(text)
                found = self.functions[key] = Function(self, cl.Kernel(program, name), signature)
        return found

    def check_kind(self, kind: str) -> None:
        """RuntimeError naming the device for a data type that it lacks."""
        if kind in ("f64", "c128") and not self.fp64:
            raise RuntimeError(f"device opencl:{self.index} ({self.name}) has no double precision (cl_khr_fp64): "
                               f"use float32, or device='cpu' for {'float64' if kind == 'f64' else 'complex128'}")

    def build(self, text: str):
        """A built program, from the disk where it was built before for this device and driver."""
        digest = hashlib.sha256(f"{self._identity}\n{text}".encode()).hexdigest()
        path = cache_folder() / digest[:2] / f"{digest}.bin"
        if self._keeps:
            with contextlib.suppress(OSError, ValueError, cl.Error):
                program = cl._cl._Program(self.context, [self.cl_device], [_opened(path.read_bytes())])
                program._build(b"", [self.cl_device])
                return program
        program = cl._cl._Program(self.context, text)
        try:
            program._build(b"", [self.cl_device])
        except cl.Error as error:
            numbered = "\n".join(f"{i:4} {line}" for i, line in enumerate(text.splitlines(), 1))
            log = program.get_build_info(self.cl_device, cl.program_build_info.LOG)
            raise RuntimeError(f"opencl:{self.index} ({self.name}) could not build a kernel: {error}\n{log}\n{numbered}") from error
        if self._keeps:
            self._keep(path, program)
        return program

    def _keep(self, path: Path, program) -> None:
        """Write a program's binary beside its final name and move it there, so that other processes see all of it or nothing."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
            partial.write_bytes(_sealed(program.get_info(cl.program_info.BINARIES)[0]))
            os.replace(partial, path)
        except OSError as error:
            warnings.warn(f"built OpenCL programs cannot be kept in {path.parent}: {error}. Set TORCHLITE_CACHE_DIR to a folder that can be written.", stacklevel=2)

    def finish(self) -> None:
        """Wait until the queue is empty."""
        self.queue.finish()


def _sealed(binary: bytes) -> bytes:
    """A binary with its digest before it."""
    return hashlib.sha256(binary).digest() + binary


def _opened(data: bytes) -> bytes:
    """The binary of `_sealed`. ValueError when it is damaged: some drivers crash on what they did not write."""
    if hashlib.sha256(data[32:]).digest() != data[:32]:
        raise ValueError("a damaged binary")
    return data[32:]


def grid(count: int, group: int) -> tuple[int]:
    """The global size that covers `count` work-items in groups of `group`."""
    return (-(-count // group) * group,)
