"""OpenCL device: context, queue, memory pool, programs and launches."""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import threading
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl._cl import _enqueue_read_buffer, _enqueue_write_buffer, enqueue_nd_range_kernel

from torchlite_backends.device_runtime.core import device as shared
from torchlite_backends.device_runtime.core import fork_guard, program_cache
from torchlite_backends.device_runtime.core.device import pack_offset, with_line_numbers
from torchlite_backends.kernel_sources.preamble import OPENCL, dtype_macros_source

from . import driver_probe
from .allocator import Allocator

_MAX_PENDING_UPLOADS = 32
_BYTE: Any = np.uint8
_DONE = cl.command_execution_status.COMPLETE


class OpenCLFunction:
    """OpenCL kernel; see `torchlite_backends.device_runtime.core.device.Function`."""

    __slots__ = ("device", "kernel", "name", "signature", "_enqueue", "_packers", "_lock")

    def __init__(self, device: Device, kernel: Any, signature: str):
        self.device, self.kernel, self.signature = device, kernel, signature
        self.name = kernel.function_name
        self._packers = [None if code in "px" else struct.Struct(code).pack for code in signature]
        self._lock = threading.Lock()
        self._enqueue = enqueue_nd_range_kernel  # `command_buffer.Recorder` changes it and the kernel, under the lock

    def __repr__(self) -> str:
        return f"<OpenCL kernel {self.name}({self.signature}) on {self.device.name}>"

    def __call__(self, global_size: tuple, local_size: tuple | None, *arguments) -> None:
        queue, at = self.device.queue, 0
        with self._lock:
            kernel = self.kernel
            for pack, value in zip(self._packers, arguments, strict=True):
                if pack is not None:
                    kernel._set_arg_buf(at, pack(value))
                elif value.__class__ is bytes:
                    kernel._set_arg_buf(at, value)
                else:
                    kernel.set_arg(at, value.buffer)
                    at += 1
                    kernel._set_arg_buf(at, pack_offset(value.offset))
                at += 1
            self._enqueue(queue, kernel, global_size, local_size)

    def start(self, global_size: tuple, local_size: tuple | None, buffers: list, values: list[bytes]) -> None:
        queue, at = self.device.queue, len(buffers)
        with self._lock:
            kernel = self.kernel
            if at == 2:
                kernel._set_arg_multi((0, buffers[0], 1, buffers[1]))
            elif at == 3:
                kernel._set_arg_multi((0, buffers[0], 1, buffers[1], 2, buffers[2]))
            else:
                for i, buffer in enumerate(buffers):
                    kernel.set_arg(i, buffer)
            for value in values:
                kernel._set_arg_buf(at, value)
                at += 1
            self._enqueue(queue, kernel, global_size, local_size)

    def max_group(self) -> int:
        return self.kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, self.device.cl_device)


class Device(shared.Device):
    """OpenCL device with one in-order queue."""

    type, label = "opencl", "OpenCL"
    recorder: Any = None  # the `command_buffer.Recorder` that is entered

    def __init__(self, index: int, cl_device: Any):
        super().__init__(index)
        fork_guard.refuse_after_fork(Device, "OpenCL", ("context", "queue", "memory", "allocate"))
        self._process = os.getpid()
        self.cl_device = cl_device
        self.name = cl_device.name.strip()
        self.context = cl.Context([cl_device])
        self._queue = cl.CommandQueue(self.context)
        self.is_cpu = bool(cl_device.type & cl.device_type.CPU)
        self.memory = Allocator(self)
        self.allocate = self.memory.allocate
        self.fp64 = bool(cl_device.double_fp_config)
        self.long_atomics = "cl_khr_int64_base_atomics" in cl_device.extensions
        self.max_group = cl_device.max_work_group_size
        self.units = cl_device.max_compute_units
        self.local_memory = cl_device.local_mem_size
        self.parameter_bytes = cl_device.max_parameter_size
        self.width = 16 if self.is_cpu else 4
        self.group = min(256, self.max_group)
        self.matrix_group = 1 if self.is_cpu else min(128, self.group)
        self._uploads: deque[Any] = deque()  # in flight; each keeps its bytes alive
        self._identity = "\n".join(
            (cl_device.platform.version, cl_device.name, cl_device.version, cl_device.driver_version)
        )

    @property
    def queue(self) -> Any:
        """Return the queue, after launching deferred work."""
        if self.waiting.steps:
            self.waiting.start()
        return self._queue

    @property
    def capturing(self) -> bool:
        """True if the calling thread's launches are recorded instead of run."""
        return self.recorder is not None and self.recorder.is_here()

    # -- kernels --

    def preamble(self, widths: tuple[int, ...], typed: dict[str, str]) -> str:
        return OPENCL + dtype_macros_source(widths, **typed)

    def kernel(self, program: Any, name: str, signature: str) -> OpenCLFunction:
        return OpenCLFunction(self, driver_probe.get_kernel(program, name), signature)

    def cache_path(self, text: str) -> Path:
        return (
            program_cache.program_cache_folder("opencl")
            / hashlib.sha256(f"{self._identity}\n{text}".encode()).hexdigest()
        )

    def build(self, text: str) -> Any:
        """Build a program, or load it from the disk cache for this device and driver."""
        path = self.cache_path(text)
        binary = program_cache.load_binary(path)
        if binary is not None:
            with contextlib.suppress(ValueError, cl.Error):
                program = cl._cl._Program(self.context, [self.cl_device], [binary])
                program._build(b"", [self.cl_device])
                return program
        program = cl._cl._Program(self.context, text)
        try:
            program._build(b"", [self.cl_device])
        except cl.Error as error:
            log = program.get_build_info(self.cl_device, cl.program_build_info.LOG)
            raise RuntimeError(
                f"opencl:{self.index} ({self.name}) could not build a kernel: {error}\n{log}\n{with_line_numbers(text)}"
            ) from error
        if program_cache.is_enabled():
            built: Any = program.get_info(cl.program_info.BINARIES)
            program_cache.store_binary(path, built[0])
        return program

    # -- memory --

    def address(self, buffer: Any) -> int:
        return buffer.int_ptr << 34  # the host has no addresses of a device's memory

    def read(self, buffer: Any, start: int, host: Any) -> None:
        _enqueue_read_buffer(self.queue, buffer, host, start, None, True)

    def write(self, buffer: Any, host: Any, keep: bool = False) -> None:
        if keep:
            self._drop_done()
            self._uploads.append(_enqueue_write_buffer(self.queue, buffer, host, 0, None, False))
        else:
            _enqueue_write_buffer(self.queue, buffer, host, 0, None, True)

    def _drop_done(self) -> None:
        """Drop finished uploads, and wait for the oldest if there are many."""
        uploads = self._uploads
        with contextlib.suppress(IndexError):  # none left: another thread was first
            while len(uploads) > _MAX_PENDING_UPLOADS or uploads[0].command_execution_status == _DONE:
                uploads.popleft().wait()

    def map(self, buffer: Any, start: int, nbytes: int, write: bool) -> Any:
        flags: Any = cl.map_flags.READ | cl.map_flags.WRITE if write else cl.map_flags.READ
        return cl.enqueue_map_buffer(self.queue, buffer, flags, start, (nbytes,), _BYTE)[0]

    def unmap(self, array: Any) -> None:
        array.base.release(self.queue)

    def finish(self) -> None:
        self.queue.finish()

    def end(self) -> None:
        """Wait at process exit for launched work: driver threads would run on while their libraries are unloaded.

        Deferred work is not launched.
        """
        if os.getpid() == self._process:  # a fork's child has not the queue that it remembers
            with contextlib.suppress(cl.Error):
                self._queue.finish()

    @property
    def blocking(self) -> bool:
        return os.environ.get("TORCHLITE_OPENCL_BLOCKING", "0") not in ("", "0")
