"""CUDA's driver as one that computes nothing and notes what it is asked to build and start: with it the programs of the
CUDA backend are found by running ops.

    register_backend("cuda", CUDABackend(Recording()))

New memory holds zeros, and ones in the bytes that `filling` names: what kernels would have counted there. They leave it
as it is.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.cuda_simulator.driver import _PROPERTIES

_REAL = 1 << 20  # bytes up to which a block has memory
_MOST = (1 << 31) - 1, 65535, 65535  # blocks of a grid


class Block:
    """A piece of memory; a large one is only an address."""

    __slots__ = ("bytes", "ptr", "size")
    _addresses = itertools.count(1 << 48, 1 << 40)

    def __init__(self, size: int, filling: slice | None):
        self.size = size
        if size > _REAL:
            self.ptr = next(self._addresses)
            return
        self.bytes = np.zeros(size, np.uint8)
        if filling:
            self.bytes[filling] = 1
        self.ptr = self.bytes.ctypes.data


class Kernel:
    """A kernel of a program, the largest block that it was started with, and its number of launches."""

    def __init__(self, ptr: int, text: str, name: str):
        self.ptr, self.text, self.name = ptr, text, name
        self.threads = self.launches = 0


class Handle:
    """A stream or an event."""

    ptr = 0


class Driver:
    """One device, with the methods of `torchlite_backends/cupy/cupy_driver.py` that ops need. `programs` are texts, in
    the order in which they came, with their kernels by name.
    """

    out_of_memory = (MemoryError,)

    def __init__(self, built: Callable[[str], None] | None = None):
        self.pool = self
        self.built = built  # called with each new program
        self.filling: slice | None = None
        self.programs: dict[str, dict[str, Kernel]] = {}
        self.kernels: list[Kernel] = []
        self._stream = Handle()

    def properties(self) -> dict[str, Any]:
        return dict(_PROPERTIES)

    def allocate(self, nbytes: int) -> Block:
        return Block(nbytes, self.filling)

    def used_bytes(self, pool: Any) -> int:
        return 0

    held_bytes = used_bytes

    def wrap(self, address: int, nbytes: int, owner: Any) -> Any:
        raise NotImplementedError("memory of others")

    def to_device(self, target: int, host: int, nbytes: int, queue: int) -> None:
        if target < 1 << 48:
            ctypes.memmove(target, host, nbytes)

    def to_host(self, host: int, source: int, nbytes: int, queue: int) -> None:
        if source < 1 << 48:
            ctypes.memmove(host, source, nbytes)
        else:
            ctypes.memset(host, 0, nbytes)

    def build(self, text: str) -> str:
        if text not in self.programs:
            self.programs[text] = {}
            if self.built is not None:
                self.built(text)
        return text

    def function(self, module: str, name: str) -> Kernel:
        found = self.programs[module].get(name)
        if found is None:
            found = self.programs[module][name] = Kernel(len(self.kernels), module, name)
            self.kernels.append(found)
        return found

    def blas(self) -> None:
        """No library: what libraries do otherwise runs as our own kernels."""

    solver = blas

    def has_transforms(self) -> bool:
        """Fourier transforms run as our own kernels too."""
        return False

    def cudnn(self) -> None:
        """No library either."""

    def most_threads(self, kernel: Kernel) -> int:
        return 1024

    def launch(
        self,
        kernel: int,
        gx: int,
        gy: int,
        gz: int,
        bx: int,
        by: int,
        bz: int,
        shared: int,
        queue: int,
        parameters: int,
        extra: int,
    ) -> None:
        started, threads = self.kernels[kernel], bx * by * bz
        if 0 in (gx, gy, gz):
            raise RuntimeError(f"{started.name} was started with an empty grid")
        if any(n > most for n, most in zip((gx, gy, gz), _MOST, strict=True)) or not 0 < threads <= 1024 or bz > 64:
            raise AssertionError(f"{started.name} was started with a grid of {(gx, gy, gz)} blocks of {(bx, by, bz)}")
        started.threads = max(started.threads, threads)
        started.launches += 1

    def launch_again(self, error: Exception, *arguments: int) -> None:
        raise error

    def stream(self) -> Handle:
        return self._stream

    default_stream = stream

    def use(self, queue: Handle) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def synchronize_stream(self, queue: int) -> None:
        pass

    def current(self) -> Any:
        return contextlib.nullcontext()

    def event(self, timing: bool, queue: int) -> Handle:
        return Handle()

    def event_query(self, event: Handle) -> bool:
        return True


def attend_in_every_way() -> None:
    """Attention of all kinds, sizes and masks for which there are kernels on tensor cores, with gradients."""
    import torchlite as torch

    for dtype, features, mask, heads in itertools.product(
        (torch.float16, torch.bfloat16), (16, 64, 72, 128), (None, torch.bool, "added"), (1, 200)
    ):
        x = torch.empty(heads, 3, features, dtype=dtype, device="cuda").requires_grad_()
        given = None if mask is None else torch.empty(3, 3, dtype=dtype if mask == "added" else mask, device="cuda")
        torch.nn.functional.scaled_dot_product_attention(x, x, x, given).sum().backward()


class Recording:
    """In the place of the module `presence`: one device that records."""

    def __init__(self, built: Callable[[str], None] | None = None) -> None:
        self.driver = Driver(built)

    def why_not(self) -> str:
        return ""

    def device_count(self) -> int:
        return 1

    def open_device(self, index: int) -> Driver:
        return self.driver

    def problems(self) -> list[str]:
        return []
