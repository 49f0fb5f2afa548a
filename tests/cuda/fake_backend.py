"""Two devices of type "cuda" without a GPU: the arrays and kernels of docs/backend.md above a runtime that keeps a
record.

A capture works as CUDA's does: what is recorded does not run (its results are poison until a replay), a replay runs the
same calls on the same memory, and what needs the host meanwhile is an error.
"""

from __future__ import annotations

import contextlib
import threading
import types

import numpy as np

from tests.toy_backend import load_page

POISON = 77
TOY = vars(load_page())
ToyArray = TOY["ToyArray"]


class Handle:
    """A stream: an address, the work it was given, and how much of it has run."""

    def __init__(self, ptr: int, priority: int = 0):
        self.ptr, self.priority, self.log, self.done = ptr, priority, [], 0

    def add(self, *what) -> int:
        self.log.append(what)
        return len(self.log)

    def finish(self) -> None:
        self.done = len(self.log)


class Marker:
    clock = 0

    def __init__(self, stream: Handle, timing: bool):
        Marker.clock += 1
        self.stream, self.timing, self.time, self.ptr = stream, timing, Marker.clock, 0x1000 + Marker.clock
        self.place = stream.add("marker", self)

    def done(self) -> bool:
        return self.stream.done >= self.place

    def wait(self) -> None:
        self.stream.done = max(self.stream.done, self.place)

    def milliseconds_to(self, later) -> float:
        assert self.timing and later.timing
        return float(later.time - self.time)


class Graph:
    def __init__(self, runtime, pool):
        self.runtime, self.pool, self.calls = runtime, pool, []

    def replay(self) -> None:
        self.runtime.current_stream().add("graph", self)
        for call in self.calls:
            call()

    def reset(self) -> None:
        self.calls = None


class Runtime:
    def __init__(self, index: int):
        self.index, self.name = index, f"Fake GPU {index}"
        self.first = Handle(0)
        self.streams = {0: self.first}
        self.thread = threading.local()
        self.graph = None
        self.uses, self.limits, self.emptied = [], [], 0
        self.stats = {
            "allocated_bytes.all.current": 1000,
            "allocated_bytes.all.peak": 3000,
            "reserved_bytes.all.current": 4096,
            "reserved_bytes.all.peak": 8192,
            "allocated_bytes.all.allocated": 70000,
            "allocated_bytes.all.freed": 69000,
            "num_alloc_retries": 2,
            "num_ooms": 1,
        }

    def properties(self):
        return types.SimpleNamespace(
            name=self.name,
            major=8,
            minor=self.index,
            total_memory=1 << 30,
            multi_processor_count=2,
            pci_domain_id=0,
            pci_bus_id=0x1A + self.index,
            pci_device_id=0,
        )

    def synchronize(self) -> None:
        self.no_capture("synchronize")
        for stream in self.streams.values():
            stream.finish()

    def idle(self) -> bool:
        return all(s.done == len(s.log) for s in self.streams.values())

    # -- streams --

    def new_stream(self, priority: int) -> Handle:
        ptr = 0x100 * (self.index + 1) + 0x10 * len(self.streams)
        return self.streams.setdefault(ptr, Handle(ptr, priority))

    def default_stream(self) -> Handle:
        return self.first

    def stream_from(self, ptr: int) -> Handle:
        return self.streams.setdefault(ptr, Handle(ptr))

    def use(self, handle: Handle) -> None:
        self.thread.stream = handle

    def current_stream(self) -> Handle:
        return getattr(self.thread, "stream", self.first)

    def synchronize_stream(self, handle: Handle) -> None:
        handle.finish()

    def is_stream_idle(self, handle: Handle) -> bool:
        return handle.done == len(handle.log)

    def marker(self, timing: bool, stream: Handle | None = None) -> Marker:
        return Marker(stream or self.current_stream(), timing)

    def wait_for(self, marker: Marker, stream: Handle) -> None:
        stream.add("wait", marker)

    def record_use(self, raw, handle: Handle) -> None:
        self.uses.append((raw, handle))

    # -- graphs --

    def new_pool(self):
        return object()

    def begin_capture(self, pool=None, mode="global") -> None:
        assert self.graph is None and self.current_stream() is not self.first
        self.graph = Graph(self, self.new_pool() if pool is None else pool)
        self.graph.mode = mode

    def end_capture(self) -> Graph:
        graph, self.graph = self.graph, None
        return graph

    def is_capturing(self) -> bool:
        return self.graph is not None

    def no_capture(self, what: str) -> None:
        if self.graph is not None:
            raise RuntimeError(f"CUDA error: operation not permitted when stream is capturing ({what})")

    def ran(self, function, args, options):
        """A kernel: its result now, or in a capture memory that a replay will fill."""
        out = function(*args, **options)
        self.current_stream().add("kernel", function)
        if self.graph is not None:
            outs = out if isinstance(out, tuple) else (out,)
            sources = [a.cells for a in arrays((args, options))]
            fresh = [not any(np.may_share_memory(o.cells, s) for s in sources) for o in outs]
            for o, new in zip(outs, fresh, strict=True):
                if new:
                    o.cells = o.cells.copy()
                    o.cells.fill(POISON)

            def again():
                found = function(*args, **options)
                for o, f, new in zip(outs, found if isinstance(found, tuple) else (found,), fresh, strict=True):
                    if new:
                        np.copyto(o.cells, f.cells)

            self.graph.calls.append(again)
        return out

    # -- memory --

    def memory_stats(self) -> dict[str, int]:
        return dict(self.stats)

    def reset_peak_memory_stats(self) -> None:
        for name in ("allocated_bytes", "reserved_bytes"):
            self.stats[f"{name}.all.peak"] = self.stats[f"{name}.all.current"]

    def empty_cache(self) -> None:
        self.emptied += 1

    def mem_get_info(self) -> tuple[int, int]:
        return 1 << 29, 1 << 30

    def profile(self, on: bool) -> None:
        self.current_stream().add("profile", on)

    def can_access(self, peer: int) -> bool:
        return peer != self.index

    def set_memory_limit(self, nbytes: int) -> None:
        self.limits.append(nbytes)

    def pinned(self, nbytes: int):
        return np.frombuffer(bytearray(nbytes), np.uint8)


def arrays(value) -> list:
    """The device arrays in nested arguments."""
    if isinstance(value, ToyArray):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [a for item in items for a in arrays(item)]


class Engine:
    """A counter-based stream of random numbers."""

    def __init__(self):
        self.lock = threading.RLock()
        self.manual_seed(0)

    def manual_seed(self, seed: int) -> None:
        self.initial_seed, self.offset = seed, 0

    def seed(self) -> int:
        self.manual_seed(int(np.random.default_rng().integers(1 << 50)))
        return self.initial_seed

    def get_state(self):
        return np.array([self.initial_seed, self.offset], np.uint64).view(np.uint8)

    def set_state(self, state) -> None:
        self.initial_seed, self.offset = (int(n) for n in state.view(np.uint64))

    def get_offset(self) -> int:
        return self.offset


def _random_uniform(size, dtype, low, high, generator):
    generator.offset += 1
    return ToyArray(
        np.random.default_rng((generator.initial_seed, generator.offset)).uniform(low, high, size).astype(dtype.np)
    )


class Backend(TOY["ToyBackend"]):
    name = "cuda"

    def __init__(self, count: int = 2):
        self.count = count
        self.runtimes = {}

    def device_count(self) -> int:
        return self.count

    def runtime(self, index: int) -> Runtime:
        return self.runtimes.setdefault(index, Runtime(index))

    def kernels(self, index: int) -> dict:
        runtime = self.runtime(index)
        found = {**super().kernels(index), "_random_uniform": _random_uniform}
        return {
            name: (lambda *args, _function=function, **options: runtime.ran(_function, args, options))
            for name, function in found.items()
        }

    def copy_into(self, target, source) -> None:
        runtime = self.runtime(0)
        if runtime.graph is None:
            super().copy_into(target, source)
        else:
            runtime.graph.calls.append(lambda: super(Backend, self).copy_into(target, source))

    def to_numpy(self, raw):
        self.runtime(0).no_capture("copy to the host")
        return super().to_numpy(raw)

    def from_numpy(self, array, index: int):
        self.runtime(index).no_capture("copy from the host")
        return super().from_numpy(array, index)

    def random_engine(self, index: int) -> Engine:
        return Engine()

    # -- other libraries --

    def cuda_array_interface(self, raw) -> dict:
        there = raw.cells.__array_interface__
        return {
            "shape": there["shape"],
            "typestr": there["typestr"],
            "data": (there["data"][0], False),
            "strides": there["strides"],
            "version": 3,
        }

    def from_cuda_array_interface(self, data):
        cells = np.asarray(types.SimpleNamespace(__array_interface__=data.__cuda_array_interface__))
        if cells.flags.forc:
            return ToyArray(cells)
        length = 1 + sum((n - 1) * step for n, step in zip(cells.shape, cells.strides, strict=True)) // cells.itemsize
        return ToyArray(cells, ToyArray(np.lib.stride_tricks.as_strided(cells, (length,), (cells.itemsize,))))

    def to_dlpack(self, raw, stream):
        self.exported_for = stream
        return types.SimpleNamespace(__dlpack__=lambda **options: raw.cells.__dlpack__())

    def from_dlpack(self, exporter):
        return ToyArray(np.asarray(exporter.cells))

    def cudnn_version(self) -> int:
        return 91002


@contextlib.contextmanager
def installed(count: int = 2, other=None):
    """The fake, or another, as the process's CUDA backend; what was there before comes back."""
    from torchlite._device import generators as _random
    from torchlite._dispatch import backend_registry
    from torchlite.cuda import graphs, memory
    from torchlite.cuda._accelerator import cuda

    def forget():
        for where in [w for w in backend_registry._tables if w.type == "cuda"]:
            _random._defaults.pop(backend_registry._tables.pop(where), None)
        for kept in (
            _random._seeds_of_later_devices,
            cuda._accumulated,
            cuda._selected.streams,
            graphs.graph._streams,
            memory._fractions,
        ):
            kept.clear()
        backend_registry._current.indices.pop("cuda", None)

    before, tables = (
        backend_registry.REGISTERED.get("cuda"),
        {w: t for w, t in backend_registry._tables.items() if w.type == "cuda"},
    )
    forget()
    backend = backend_registry.REGISTERED["cuda"] = other or Backend(count)
    try:
        yield backend
    finally:
        forget()
        del backend_registry.REGISTERED["cuda"]
        if before is not None:
            backend_registry.REGISTERED["cuda"] = before
        backend_registry._tables.update(tables)
