"""torchlite_backends.nccl and what stands on it, on a library in NCCL's place: no GPU has run it. Its numbers are
NVIDIA's.
"""

import contextlib
import itertools
import json
import pathlib
import threading
import types
from datetime import timedelta

import numpy as np
import pytest

import torchlite as torch
import torchlite.distributed as dist
import torchlite_backends.nccl
from torchlite.distributed import _device_comm_backend
from torchlite.distributed._collective_options import AllreduceOptions, ReduceScatterOptions
from torchlite.distributed._device_comm_backend import DeviceCommBackend, DeviceCommunicator
from torchlite.distributed._reduce_ops import ReduceOp
from torchlite_backends.nccl import constants

from .fake_nccl import Library

HEADER = json.loads((pathlib.Path(__file__).with_name("nccl_header.json")).read_text())


def test_numbers_are_those_of_nvidias_header():
    names = {name.lower(): number for name, number in HEADER["types"].items()}
    assert {name: names[f"nccl{name}"] for name in constants.DTYPES} == constants.DTYPES
    ops = {"SUM": "ncclSum", "PRODUCT": "ncclProd", "MAX": "ncclMax", "MIN": "ncclMin"}
    assert {name: HEADER["ops"][theirs] for name, theirs in ops.items()} == constants.REDUCE_OPS
    assert {
        number: name for name, number in HEADER["results"].items() if name != "ncclNumResults"
    } == constants.RESULT_NAMES
    assert HEADER["id_bytes"] == constants.ID_BYTES


# Parameters of CuPy's methods, and the C function of each, with the same parameters except the group.
CUPY = {
    "allReduce": ("ncclAllReduce", "sendbuf recvbuf count datatype op stream"),
    "reduce": ("ncclReduce", "sendbuf recvbuf count datatype op root stream"),
    "broadcast": ("ncclBroadcast", "sendbuff recvbuff count datatype root stream"),
    "reduceScatter": ("ncclReduceScatter", "sendbuf recvbuf recvcount datatype op stream"),
    "allGather": ("ncclAllGather", "sendbuf recvbuf count datatype stream"),
    "send": ("ncclSend", "sendbuf count datatype peer stream"),
    "recv": ("ncclRecv", "recvbuf count datatype peer stream"),
}


def test_calls_are_those_of_cupy_and_of_the_header():
    import inspect

    for method, (function, words) in CUPY.items():
        taken = list(inspect.signature(getattr(Library().NcclCommunicator, method)).parameters)[1:]
        assert taken == words.split()
        theirs = [word.split()[-1].lstrip("*") for word in HEADER["functions"][function]]
        theirs.remove("comm")
        short = lambda name: name.replace("buff", "buf").replace("sendcount", "count")
        assert [short(name) for name in theirs] == [short(name) for name in taken], method


class Streams:
    """In the place of `torch.cuda`: what is put into a stream runs at once; events say what they were recorded in."""

    def __init__(self):
        self.log, self.ids = [], itertools.count(1)
        self.local = threading.local()
        streams = self

        class Event:
            def __init__(self, stream):
                self.stream = stream

            def query(self):
                return True

        class Stream:
            def __init__(self, device=None):
                self.cuda_stream = next(streams.ids)

            def wait_event(self, event):
                streams.log.append((self.cuda_stream, event.stream.cuda_stream))

            def record_event(self):
                return Event(self)

        self.Stream = Stream
        self.device = lambda device: contextlib.nullcontext()

    def current_stream(self, device=None):
        if not hasattr(self.local, "stream"):
            self.local.stream = self.Stream()
        return self.local.stream

    def current_device(self):
        return 0


@pytest.fixture(params=[14, 13], ids=lambda version: f"cupy{version}")
def library(request, monkeypatch):
    made, streams = Library(request.param), Streams()
    monkeypatch.setattr(type(torchlite_backends.nccl.engine), "_import_nccl", lambda self: made)
    names = {name: getattr(torch, name) for name in ("device", "int32", "Tensor")}
    zeros = lambda *args, **kwargs: torch.zeros(args, dtype=kwargs["dtype"])
    monkeypatch.setattr(_device_comm_backend, "torch", types.SimpleNamespace(cuda=streams, zeros=zeros, **names))
    made.streams = streams
    return made


def ranks(size, work):
    """Call `work(messages, rank)` in a thread for each rank of a group; the first error is raised here."""
    store, errors = dist.HashStore(), []

    def run(rank):
        devices = DeviceCommunicator(torchlite_backends.nccl.engine, rank, size, "test", lambda: store)
        try:
            work(DeviceCommBackend(devices, "nccl", timedelta(seconds=20), "a group"), rank)
        except BaseException as error:
            errors.append(error)
        finally:
            devices.free()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if errors:
        raise errors[0]


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64, torch.bool, torch.int16])
def test_collectives(library, size, dtype):
    def data(rank, count=4):
        return (torch.arange(count) % 3 + rank).to(dtype)

    def collectives(messages, rank):
        every = [data(r, 2 * size) for r in range(size)]
        total = torch.stack([x.to(torch.complex64 if dtype.is_complex else torch.float64) for x in every]).sum(0)
        total = (total != 0) if dtype is torch.bool else total.to(dtype)
        x = data(rank, 2 * size)
        messages.allreduce([x], AllreduceOptions(reduceOp=ReduceOp.SUM)).wait()
        assert torch.equal(x, total)
        wide = torch.zeros(2 * size, 2, dtype=dtype)  # with gaps
        wide[:, 0] = data(rank, 2 * size)
        messages.broadcast([wide[:, 0]], types.SimpleNamespace(rootRank=size - 1)).wait()
        assert torch.equal(wide[:, 0], every[-1]) and not wide[:, 1].any()
        x = data(rank, 2 * size)
        messages.reduce([x], types.SimpleNamespace(reduceOp=ReduceOp.SUM, rootRank=0, timeout=None)).wait()
        assert torch.equal(x, total if rank == 0 else data(rank, 2 * size))
        out = [torch.zeros(2 * size, dtype=dtype) for _ in range(size)]
        messages.allgather([out], [data(rank, 2 * size)]).wait()
        assert all(torch.equal(a, b) for a, b in zip(out, every, strict=True))
        out = torch.zeros(size, 2 * size, dtype=dtype)
        messages._allgather_base(out, data(rank, 2 * size)).wait()
        assert torch.equal(out, torch.stack(every))
        part = torch.zeros(2, dtype=dtype)
        messages._reduce_scatter_base(part, data(rank, 2 * size), ReduceScatterOptions(reduceOp=ReduceOp.SUM)).wait()
        assert torch.equal(part, total[2 * rank : 2 * rank + 2])
        root = types.SimpleNamespace(rootRank=size - 1, timeout=None)
        out = [torch.zeros(2 * size, dtype=dtype) for _ in range(size)]
        messages.gather([out] if rank == size - 1 else [], [data(rank, 2 * size)], root).wait()
        assert rank != size - 1 or all(torch.equal(a, b) for a, b in zip(out, every, strict=True))
        x = torch.zeros(2 * size, dtype=dtype)
        messages.scatter([x], [every] if rank == size - 1 else [], root).wait()
        assert torch.equal(x, every[rank])
        rows = lambda sender: [(sender + receiver) % 3 for receiver in range(size)]
        into = [rows(sender)[rank] for sender in range(size)]
        out = torch.zeros(sum(into), dtype=dtype)
        messages.alltoall_base(out, data(rank, sum(rows(rank))), into, rows(rank)).wait()
        wanted = [data(s, sum(rows(s))).split(rows(s))[rank] for s in range(size)]
        assert torch.equal(out, torch.cat(wanted))
        uneven = [torch.full((r + 1,), rank + 1).to(dtype) for r in range(size)]
        part = torch.zeros(rank + 1, dtype=dtype)
        messages.reduce_scatter([part], [uneven], ReduceScatterOptions(reduceOp=ReduceOp.SUM)).wait()
        assert torch.equal(part, torch.full((rank + 1,), size * (size + 1) // 2).to(dtype))
        assert messages.barrier().wait()

    ranks(size, collectives)
    kinds = {call[0] for call in library.calls}
    assert kinds >= {"allReduce", "broadcast", "reduce", "allGather", "send", "recv", "group"}


def test_reductions_and_unsupported_arguments(library):
    def reductions(messages, rank):
        for op, wanted in (
            (ReduceOp.MAX, 3.0),
            (ReduceOp.PRODUCT, 2.0 * 3.0),
            (ReduceOp.AVG, 2.5),
            (ReduceOp.MIN, 2.0),
        ):
            x = torch.tensor([rank + 2.0])
            work = messages.allreduce([x], AllreduceOptions(reduceOp=op))
            assert work.wait() and work.is_completed() and x.item() == wanted
        with pytest.raises(RuntimeError, match="Cannot use ReduceOp.BAND with NCCL"):
            messages.allreduce([torch.ones(1, dtype=torch.int32)], AllreduceOptions(reduceOp=ReduceOp.BAND))
        with pytest.raises(ValueError, match="does not support PRODUCT on complex tensors"):
            messages.allreduce([torch.ones(1) + 1j], AllreduceOptions(reduceOp=ReduceOp.PRODUCT))
        with pytest.raises(RuntimeError, match="recvAnysource"):
            messages.recv_anysource([torch.ones(1)])
        with pytest.raises(ValueError, match="only implemented for GLOO"):
            messages.monitored_barrier()

    ranks(2, reductions)


def test_messages_of_a_ring_in_any_order(library):
    """Each rank sends before it receives, to one that does the same, and posts later messages first."""

    def ring(messages, rank):
        to, source = (rank + 1) % 3, (rank - 1) % 3
        back = torch.zeros(2)
        works = [messages.recv([back], to)]  # comes last
        x, y = torch.zeros(3), torch.zeros(3)
        works += [
            messages.send([torch.full((3,), float(rank))], to),
            messages.send([torch.full((3,), rank + 10.0)], to),
        ]
        works += [messages.recv([x], source), messages.recv([y], source)]
        for work in works[1:]:
            work.wait()
        assert x.tolist() == [source] * 3 and y.tolist() == [source + 10] * 3
        messages.send([torch.full((2,), rank + 5.0)], source).wait()
        works[0].wait()
        assert back.tolist() == [to + 5] * 2

    ranks(3, ring)


def test_streams_wait_for_each_other(library):
    def one(messages, rank):
        current = library.streams.current_stream().cuda_stream
        x = torch.ones(2)
        work = messages.allreduce([x], AllreduceOptions(reduceOp=ReduceOp.SUM))
        lane = messages._communicator._lane.stream.cuda_stream
        assert library.streams.log == [(lane, current)] and library.calls[-1] == ("allReduce", 2, 7, 0, lane)
        work.wait()
        assert library.streams.log == [(lane, current), (current, lane)]

    ranks(1, one)


@pytest.mark.parametrize(
    "number, words", [(1, "ncclUnhandledCudaError: a call of CUDA"), (6, "ncclRemoteError: another")]
)
def test_errors_by_name(library, number, words):
    def failing(messages, rank):
        messages.allreduce([torch.ones(1)], AllreduceOptions(reduceOp=ReduceOp.SUM)).wait()
        library.error = number
        with pytest.raises(RuntimeError, match=words):
            messages.allreduce([torch.ones(1)], AllreduceOptions(reduceOp=ReduceOp.SUM))

    ranks(1, failing)


def test_asynchronous_errors(library):
    def failing(messages, rank):
        work = messages.allreduce([torch.ones(1)], AllreduceOptions(reduceOp=ReduceOp.SUM))
        library.error = 2
        with pytest.raises(dist.DistBackendError, match="ncclSystemError: a call of the system"):
            work.wait()

    ranks(1, failing)


def test_missing_cupy_is_named(monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "cuda12" in torchlite_backends.nccl.engine.why_not() and not dist.is_nccl_available()
    with pytest.raises(RuntimeError, match="doesn't have NCCL built in: CuPy is missing"):
        dist.init_process_group("nccl", rank=0, world_size=1)
    assert not dist.is_initialized()


def test_a_world_of_one_device(monkeypatch):
    monkeypatch.setattr(type(torchlite_backends.nccl.engine), "why_not", lambda self: "")
    dist.init_process_group("nccl", rank=0, world_size=1)
    try:
        assert dist.get_backend() == "nccl" and dist.get_backend_config() == "cuda:nccl"
        group = dist.new_group([0])
        assert dist.get_world_size(group) == 1 and group._get_backend_name() == "nccl"
        with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
            dist.all_reduce(torch.ones(1))
        dist.destroy_process_group(group)
    finally:
        dist.destroy_process_group()


def test_both_kinds_of_tensors(monkeypatch):
    monkeypatch.setattr(type(torchlite_backends.nccl.engine), "why_not", lambda self: "")
    dist.init_process_group("cpu:gloo,cuda:nccl", rank=0, world_size=1)
    try:
        x = torch.ones(2)
        dist.all_reduce(x)
        parts = dist.group.WORLD._backends
        assert x.tolist() == [1, 1] and type(parts["cuda"]) is DeviceCommBackend and parts["cpu"].name() == "gloo"
    finally:
        dist.destroy_process_group()


def test_identities_are_bytes():
    from torchlite_backends.nccl.communicator import unique_id_to_bytes

    assert unique_id_to_bytes([-1, 5, *[0] * 126])[:2] == bytes([255, 5])
    assert np.int8(-1) == -1
