"""Memory, streams, events and captured graphs of the CUDA backend, on the simulator: a capturing stream records and
runs nothing, a graph's memory stays where it was.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest

import torchlite as torch
from tests.cuda.fake_backend import installed
from tests.cuda_simulator import kernel_compiler
from tests.cuda_simulator.driver import CAPACITY, Event, Simulated
from torchlite_backends.cupy.backend import CUDABackend

pytestmark = pytest.mark.skipif(bool(kernel_compiler.missing()), reason=kernel_compiler.missing() or "-")


@pytest.fixture
def backend():
    with installed(other=CUDABackend(Simulated(count=2))) as made:
        yield made


# -- memory --


def test_statistics(backend):
    assert torch.cuda.memory_allocated() == torch.cuda.memory_reserved() == 0
    x = torch.empty(1000, device="cuda")
    assert torch.cuda.memory_allocated() == 4096  # blocks are multiples of 512 bytes
    y = torch.empty(300_000, device="cuda")
    most = torch.cuda.memory_allocated()
    del y
    assert torch.cuda.memory_allocated() == 4096 and torch.cuda.max_memory_allocated() == most > 1_200_000
    assert (
        torch.cuda.memory_reserved() == most
        and torch.cuda.memory_stats()["inactive_split_bytes.all.current"] == most - 4096
    )
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 4096 and torch.cuda.max_memory_reserved() == most
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == torch.cuda.max_memory_reserved() == 4096
    free, total = torch.cuda.mem_get_info()
    assert total == CAPACITY and free == CAPACITY - 4096
    assert x.device.index == 0 and torch.cuda.memory_allocated(1) == 0


def test_out_of_memory(backend):
    held = torch.empty(1000, device="cuda")
    with pytest.raises(torch.cuda.OutOfMemoryError) as raised:
        torch.empty(CAPACITY // 4, device="cuda")
    assert str(raised.value) == (
        "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 3.00 GiB of which 3.00 GiB is "
        "free. Of the allocated memory 4.00 KiB is allocated by torchlite, and 0 bytes is reserved by torchlite but "
        "unallocated."
    )
    stats = torch.cuda.memory_stats()
    assert stats["num_alloc_retries"] == stats["num_ooms"] == 1 and held.numel() == 1000


def test_the_pool_is_emptied_before_an_allocation_fails(backend):
    pool = backend.device(0).driver.pool
    pool.limit = 8192
    x = torch.empty(1500, device="cuda")
    del x
    assert pool.total_bytes() == 6144  # held: with it there is no room
    pool._used, used = 1024, pool._used
    y = torch.empty(1500, device="cuda")
    assert (
        y.numel() == 1500
        and torch.cuda.memory_stats()["num_alloc_retries"] == 1
        and torch.cuda.memory_stats()["num_ooms"] == 0
    )
    del y
    pool._used = used


def test_a_limit(backend):
    torch.cuda.set_per_process_memory_fraction(1e-6)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        torch.empty(10_000, device="cuda")
    torch.cuda.set_per_process_memory_fraction(1.0)
    assert torch.empty(10_000, device="cuda").numel() == 10_000


def test_memory_in_use_by_another_stream_is_not_freed(backend, monkeypatch):
    done = []
    monkeypatch.setattr(Event, "done", lambda self: bool(done), raising=False)
    monkeypatch.setattr(type(backend.device(0).driver), "event_query", lambda self, event: bool(done))
    stream, x = torch.cuda.Stream(), torch.empty(1000, device="cuda")
    view = x[10:20]
    view.record_stream(stream)
    del x, view
    gc.collect()
    assert torch.cuda.memory_allocated() == 4096  # its work has not run
    torch.empty(1, device="cuda")
    assert torch.cuda.memory_allocated() >= 4096
    done.append(1)
    torch.empty(1, device="cuda")
    assert torch.cuda.memory_allocated() == 0


def test_pinned_memory(backend):
    x = torch.arange(5.0).pin_memory()
    assert x.is_pinned() and x.tolist() == [0, 1, 2, 3, 4] and not torch.arange(5.0).is_pinned()
    assert (x.cuda(non_blocking=True) + 1).tolist() == [1, 2, 3, 4, 5]


# -- streams and events --


def test_launches_use_the_current_stream(backend, monkeypatch):
    queues, driver = [], backend.device(0).driver
    x = torch.ones(10, device="cuda")

    def launch(*arguments, plain=driver.launch):
        queues.append(arguments[8])
        plain(*arguments)

    backend.device(0).driver.launch = launch
    stream = torch.cuda.Stream(priority=-1)
    with torch.cuda.stream(stream):
        x.sin()
        assert torch.cuda.current_stream() == stream
    x.cos()
    torch.cuda.current_stream().wait_stream(stream)
    assert queues == [stream.cuda_stream, 0] and stream.cuda_stream != 0


def test_pending_work_starts_before_the_stream_changes(backend):
    driver, launches = backend.device(0).driver, []
    x = torch.ones(1 << 17, device="cuda")

    def launch(*arguments, plain=driver.launch):
        launches.append(arguments[8])
        plain(*arguments)

    driver.launch = launch
    y = x * 2
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        y += 1
    assert y[-1].item() == 3 and launches[0] == 0


def test_events(backend):
    first, second = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    torch.ones(100, device="cuda").exp()
    second.record()
    second.synchronize()
    assert first.query() and 0 < first.elapsed_time(second) < 60_000


# -- graphs --


def test_replay_reads_the_current_memory(backend):
    x, w = torch.ones(4, 4, device="cuda"), torch.full((4, 4), 2.0, device="cuda")
    out = (x @ w).relu().sum()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        out = (x @ w).relu().sum()
    driver = backend.device(0).driver
    before = driver.launches
    x.fill_(3.0)
    graph.replay()
    assert out.item() == 4 * 4 * 4 * 6
    w.fill_(-1.0)
    graph.replay()
    assert out.item() == 0 and driver.launches == before + 2  # the two that filled


def test_nothing_runs_while_a_graph_is_captured(backend):
    x = torch.ones(10, device="cuda")
    x.add_(1)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        x.add_(1)
    assert x[0].item() == 2


def test_host_reads_raise_during_capture(backend):
    x = torch.ones(10, device="cuda")
    x.sum()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        for ask in (lambda: x.sum().item(), lambda: torch.tensor([1.0]).cuda(), lambda: torch.cuda.synchronize()):
            with pytest.raises(RuntimeError, match="operation not permitted when stream is capturing"):
                ask()
    assert x.sum().item() == 10


def test_a_graph_keeps_its_memory(backend):
    """Memory freed during capture is reused inside the graph, and nowhere else."""
    x = torch.ones(256, device="cuda")
    (x * 2 + 1) * 3
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        a = x * 2
        at = a.data_ptr()
        b = a + 1
        del a
        c = b * 3
    assert c.data_ptr() == at
    others = [torch.zeros(256, device="cuda") for _ in range(5)]
    graph.replay()
    assert c.tolist() == [9.0] * 256 and all(not o.any() for o in others)
    held = torch.cuda.memory_reserved()
    del b, c
    graph.reset()
    del graph
    gc.collect()
    assert torch.cuda.memory_reserved() < held


def test_graphs_share_a_pool(backend):
    pool = torch.cuda.graph_pool_handle()
    x = torch.ones(8, device="cuda")
    x + 1
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first, pool=pool):
        y = x + 1
    with torch.cuda.graph(second, pool=pool):
        z = y + 1
    first.replay()
    second.replay()
    assert z.tolist() == [3.0] * 8 and first.pool() == second.pool() == pool


def test_an_index_out_of_bounds_raises_after_the_replay(backend):
    x, at = torch.arange(4.0, device="cuda"), torch.tensor([1], device="cuda")
    x[at]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x[at]
    graph.replay()
    assert y.item() == 1
    at.fill_(7)
    graph.replay()
    with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 0 with size 4"):
        torch.cuda.synchronize()
    at.fill_(2)
    graph.replay()
    assert y.item() == 2


# -- sharing --


def test_dlpack_and_the_array_interface_share_memory(backend):
    x = torch.arange(12.0, device="cuda").reshape(3, 4)[:, 1:]
    for make in (torch.from_dlpack, lambda t: torch.as_tensor(Foreign(t))):
        y = make(x)
        assert y.data_ptr() == x.data_ptr() and y.stride() == (4, 1) and y.device == x.device
        y[0, 0] += 1
    assert x[0, 0].item() == 3
    assert x.__cuda_array_interface__ == {
        "typestr": "<f4",
        "shape": (3, 3),
        "strides": (16, 4),
        "data": (x.data_ptr(), False),
        "version": 2,
    }
    kept = torch.from_dlpack(torch.full((1000,), 7.0, device="cuda:1"))
    gc.collect()
    torch.zeros(1000, device="cuda:1")
    assert kept.device.index == 1 and kept.tolist() == [7.0] * 1000


class Foreign:
    """Another library's array."""

    def __init__(self, tensor):
        self.kept = tensor
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__


def test_pending_work_starts_before_an_address_is_exported(backend):
    x = torch.ones(1 << 17, device="cuda")
    y = x * 2
    assert np.frombuffer(kernel_compiler.view(y.data_ptr(), 16), np.float32).tolist() == [2.0] * 4
    z = x * 3
    assert (
        np.frombuffer(kernel_compiler.view(z.__cuda_array_interface__["data"][0], 16), np.float32).tolist() == [3.0] * 4
    )
