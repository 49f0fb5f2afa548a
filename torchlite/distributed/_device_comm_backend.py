"""Communication backend for device tensors (`backend="nccl"`): messages without host memory.

The transport enqueues its calls in streams. Collectives have one stream. Point-to-point messages have one per direction
and peer, with a communicator of the two ranks and a thread, so that a pending message blocks no other, whatever the
program's order. Waiting for a Work makes the current stream wait, not the host.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from datetime import timedelta
from typing import Any

import torchlite as torch

from . import _device_staging
from ._host_comm_backend import HostCommBackend
from ._reduce_ops import RedOpType
from ._work import Work


class CommStream:
    """Stream of a device, with its pending calls, whose memory it keeps alive."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device)
        self._running: deque[tuple[Any, Any]] = deque()

    def ready(self) -> Any:
        """Return an event for the calling thread's stream, to be waited for."""
        return torch.cuda.current_stream(self.device).record_event()

    def put(self, before: Any, call: Callable[[int], None], kept: Any) -> Any:
        """Enqueue a call after `before`; return the event behind it."""
        while self._running and self._running[0][0].query():
            self._running.popleft()
        self.stream.wait_event(before)
        call(self.stream.cuda_stream)
        done = self.stream.record_event()
        self._running.append((done, kept))
        return done


class StreamRequest:
    """Call in a stream."""

    source = 0

    def __init__(self, lane: CommStream, done: Any, check: Callable[[], None] | None = None) -> None:
        self._lane, self._done, self._check = lane, done, check

    def done(self) -> bool:
        """True if it has run. RuntimeError for an asynchronous error."""
        if self._check is not None:
            self._check()
        return self._done.query()

    def wait(self, limit: float | None = None) -> bool:
        """Make the calling thread's stream wait for it."""
        if self._check is not None:
            self._check()
        torch.cuda.current_stream(self._lane.device).wait_event(self._done)
        return True

    def cancel(self) -> None:
        """Do nothing: enqueued work cannot be cancelled."""


class BarrierRequest(StreamRequest):
    """Barrier: waiting for it blocks the host, not a stream."""

    def wait(self, limit: float | None = None) -> bool:
        end = None if limit is None else time.monotonic() + limit
        while not self.done():
            if end is not None and time.monotonic() >= end:
                return False
            time.sleep(1e-4)
        return True


class QueuedMessage:
    """Message that another thread enqueues once the peer has the matching one."""

    def __init__(self, future: Future[StreamRequest], source: int) -> None:
        self._future, self.source = future, source

    def done(self) -> bool:
        """True if it has arrived."""
        return self._future.done() and self._future.result().done()

    def wait(self, limit: float | None = None) -> bool:
        """Make the calling thread's stream wait for it, once it is enqueued."""
        try:
            return self._future.result(limit).wait()
        except Late:
            return False

    def cancel(self) -> None:
        """Cancel it if it is not enqueued yet."""
        self._future.cancel()


class MessageChannel:
    """Messages from one rank to another, in order."""

    def __init__(self, device: torch.device, join: Callable[[], Any]) -> None:
        self._lane, self._join_group, self._pair = CommStream(device), join, None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="torchlite-p2p")

    def post(self, call: str, array: Any, other: int, source: int) -> QueuedMessage:
        """Start a message: `call` is "send" or "receive", `other` the rank in the pair."""
        ready = self._lane.ready()

        def begin() -> StreamRequest:
            with torch.cuda.device(self._lane.device):
                pair = self._pair = self._pair or self._join_group()
                done = self._lane.put(ready, lambda stream: getattr(pair, call)(array, other, stream), array)
                return StreamRequest(self._lane, done, pair.check)

        return QueuedMessage(self._thread.submit(begin), source)

    def free(self) -> None:
        """End the channel."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._pair is not None:
            self._pair.free()


class DeviceCommunicator:
    """Communicator (docs/backend.md) over the current device of each rank.

    The transport's groups are created on first use; `store` exchanges their unique ids.
    """

    of_devices = True

    def __init__(self, engine: Any, rank: int, size: int, name: str, store: Callable[[], Any]) -> None:
        self._engine, self.rank, self.size, self._name, self._store = engine, rank, size, name, store
        self._lane: CommStream | None = None
        self._all: Any = None
        self._directions: dict[tuple[int, int], MessageChannel] = {}
        self._lock = threading.Lock()

    def _join_group(self, title: str, rank: int, size: int) -> Any:
        """Create the transport's group of the ranks that pass this title."""
        key = f"nccl/{self._name}/{title}"
        if size == 1:
            return self._engine.group(1, 0, self._engine.identity())
        if rank == 0:
            self._store().set(key, self._engine.identity())
        return self._engine.group(size, rank, bytes(self._store().get(key)))

    def _comm_stream_of(self, array: Any) -> CommStream:
        device = array.device
        if self._lane is None:
            with torch.cuda.device(device):
                self._all = self._join_group("all", self.rank, self.size)
            self._lane = CommStream(device)
        elif self._lane.device != device:
            raise RuntimeError(f"this group works on {self._lane.device}, and not on {device}: a rank has one device")
        return self._lane

    def _enqueue_collective(self, call: str, array: Any, *args: Any, kept: Any = ()) -> StreamRequest:
        lane = self._comm_stream_of(array)
        everyone = self._all
        done = lane.put(lane.ready(), lambda stream: getattr(everyone, call)(*args, stream), (array, kept))
        return StreamRequest(lane, done, everyone.check)

    def all_reduce(self, array: Any, op: str, what: str = "") -> StreamRequest:
        return self._enqueue_collective("all_reduce", array, array, op)

    def reduce(self, array: Any, op: str, root: int, what: str = "") -> StreamRequest:
        return self._enqueue_collective("reduce", array, array, op, root)

    def reduce_scatter(self, out: Any, array: Any, op: str, counts: Sequence[int], what: str = "") -> StreamRequest:
        counts = [count * array.numel() // max(1, sum(counts)) for count in counts]  # complex numbers are two
        return self._enqueue_collective("reduce_scatter", array, out, array, op, counts, kept=out)

    def broadcast(self, array: Any, root: int, what: str = "") -> StreamRequest:
        return self._enqueue_collective("broadcast", array, array, root)

    def all_gather(self, out: Any, array: Any, what: str = "") -> StreamRequest:
        return self._enqueue_collective("all_gather", array, out, array, kept=out)

    def gather(self, out: Any, array: Any, root: int, what: str = "") -> StreamRequest:
        return self._enqueue_collective("gather", array, out, array, root, kept=out)

    def scatter(self, out: Any, array: Any, root: int, what: str = "") -> StreamRequest:
        return self._enqueue_collective("scatter", out, out, array, root, kept=array)

    def all_to_all(
        self, out: Any, array: Any, out_counts: Sequence[int], counts: Sequence[int], what: str = ""
    ) -> StreamRequest:
        width = array.numel() // sum(counts) if sum(counts) else out.numel() // max(1, sum(out_counts))
        widths = [[count * width for count in each] for each in (out_counts, counts)]
        return self._enqueue_collective("all_to_all", array, out, array, *widths, kept=out)

    def barrier(self) -> BarrierRequest:
        device = torch.device("cuda", torch.cuda.current_device()) if self._lane is None else self._lane.device
        word = torch.zeros(1, dtype=torch.int32, device=device)
        found = self._enqueue_collective("all_reduce", word, word, "SUM")
        return BarrierRequest(found._lane, found._done, found._check)

    def send(self, array: Any, to: int, tag: int, what: str = "") -> QueuedMessage:
        return self._channel_to(array.device, self.rank, to).post("send", array, 1, 0)

    def receive(self, array: Any, source: int | None, tag: int, what: str = "") -> QueuedMessage:
        if source is None:
            raise RuntimeError("NCCL cannot receive from any rank: say from which")
        return self._channel_to(array.device, source, self.rank).post("receive", array, 0, source)

    def _channel_to(self, device: torch.device, source: int, to: int) -> MessageChannel:
        with self._lock:
            found = self._directions.get((source, to))
            if found is None:
                title, mine = f"{source}-{to}", 0 if self.rank == source else 1
                found = self._directions[source, to] = MessageChannel(device, lambda: self._join_group(title, mine, 2))
            return found

    def free(self) -> None:
        """Free the group."""
        for direction in self._directions.values():
            direction.free()
        if self._all is not None:
            self._all.free()
        self._directions, self._all, self._lane = {}, None, None


class DeviceCommBackend(HostCommBackend):
    """Communication backend of a device transport for one group."""

    staging = _device_staging

    def _prepare_input(self, tensor: torch.Tensor, op: Any) -> torch.Tensor:
        if tensor.dtype.is_complex and op.op is RedOpType.PRODUCT:
            raise ValueError("all_reduce does not support PRODUCT on complex tensors")  # they are reduced as pairs
        return super()._prepare_input(tensor, op)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> Any:
        """Raise: it needs host messages."""
        raise ValueError("monitored_barrier is only implemented for GLOO backend")

    def recv_anysource(self, tensors: Sequence[torch.Tensor], tag: int = 0) -> Work:
        """Raise: NCCL has no receive from any source."""
        raise RuntimeError("ProcessGroupNCCL does not support recvAnysource")
