"""The agent of RPC: its listener, its connections, the requests that it sends and those that it runs."""

from __future__ import annotations

import contextlib
import heapq
import io
import itertools
import json
import pickle
import queue
import secrets
import socket
import struct
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from torchlite._tensor import Tensor
from torchlite.futures import Future

from .._work import DistNetworkError
from ._autograd_context import NO_CONTEXT, DistAutogradContext, Outgoing, current_context, read, within
from ._channel import ADD, DROP, ERROR, FETCH, REMOTE, REPLY, Channel
from ._worker_info import WorkerInfo

_UNPROVEN = 64  # connections in the handshake at a time
IDS = struct.Struct("!QQQQ")  # of an RRef: its own (rank, count) and that of this holder

_thread = threading.local()  # .running: this thread runs a request of the agent that is there


@contextlib.contextmanager
def let_others_run() -> Iterator[None]:
    """Within a block that waits, a worker thread lets another request run."""
    agent = getattr(_thread, "running", None)
    if agent is None:
        yield
        return
    agent.permits.release()
    try:
        yield
    finally:
        agent.permits.acquire()


class RpcFuture(Future):
    """The result of a call. A worker thread that waits for it lets another request run."""

    def wait(self) -> Any:
        """Wait for the value and return it, or raise the error that was set."""
        if self.done():
            return super().wait()
        with let_others_run():
            return super().wait()

    def _make_chained_future(self) -> Future:
        return RpcFuture()


class _ReplyFuture(RpcFuture):
    """The future of a request. Its callbacks may wait for replies, so the thread that reads replies runs none."""

    def __init__(self, forget: Callable[[], None]) -> None:
        super().__init__()
        self._forget = forget

    def _complete(self, value: Any, error: BaseException | None) -> None:
        super()._complete(value, error)
        self._forget()

    def _run_callbacks(self, callbacks: list[Callable[[Future], Any]]) -> None:
        thread = threading.Thread(target=super()._run_callbacks, args=(callbacks,), name="rpc callbacks", daemon=True)
        thread.start()


class OwnedValue:
    """A value that RRefs of any rank refer to, with the holders that are known."""

    def __init__(self) -> None:
        self.future: Future = RpcFuture()
        self.holders: set[tuple[int, int]] = set()
        self.dropped_early: set[tuple[int, int]] = set()  # their ADD comes over another connection


def complete(future: Future, value: Any, error: Exception | None) -> None:
    """Set a result, unless the future was completed by a timeout meanwhile."""
    with contextlib.suppress(RuntimeError):  # already completed
        future.set_exception(error) if error is not None else future.set_result(value)


def _tensor_on(tensor: Tensor, device: str) -> Tensor:
    return tensor.to(device)


class _Pickler(pickle.Pickler):
    """Pickles for one peer: RRefs by their number, tensors of devices by the device map."""

    def __init__(self, file: io.BytesIO, device_map: dict[str, str], outgoing: Outgoing | None) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._map, self._outgoing = device_map, outgoing

    def reducer_override(self, value: Any) -> Any:
        if hasattr(value.__class__, "_reduce_for_peer"):  # an RRef
            return value._reduce_for_peer()
        if self._outgoing is not None and type(value) is Tensor and value.requires_grad:
            return self._outgoing.reduce(value)
        if isinstance(value, Tensor) and value.device.type != "cpu":
            target = self._map.get(str(value.device))
            if target is None:
                raise RuntimeError(
                    "TensorPipe RPC backend only supports CPU tensors by default, please move your tensors to CPU "
                    "before sending them over RPC, or call `set_device_map` on `TensorPipeRpcBackendOptions` to "
                    f"explicitly configure device mapping. Request device mapping is not available for {value.device}"
                )
            return _tensor_on, (value.cpu(), target)
        return NotImplemented


class Agent:
    """One rank's part in the calls of a world."""

    def __init__(self, store: Any, name: str, rank: int, size: int, options: Any, host: str) -> None:
        self.me, self.options, self.rpc_timeout, self._store = (
            WorkerInfo(name, rank),
            options,
            options.rpc_timeout,
            store,
        )
        self._size = size
        self._channels: dict[int, Channel] = {}  # that this rank made, for its requests
        self._accepted: dict[int, Channel] = {}  # that others made, for theirs
        self._lock, self._numbers = threading.Lock(), itertools.count()
        self._pending: dict[int, tuple[int, Future]] = {}
        self._owned: dict[tuple[int, int], OwnedValue] = {}
        self._sent = self._handled = 0
        self._running: Counter[int] = Counter()  # requests of each rank
        self._idle, self._closed = threading.Condition(self._lock), False
        self._lost: set[int] = set()
        self.ready = threading.Event()  # a peer may call before this process has met all of them
        self.permits = threading.Semaphore(options.num_worker_threads)
        self._limits: queue.SimpleQueue = queue.SimpleQueue()  # of requests: the time, the number, the error's text
        self._drops: queue.SimpleQueue = queue.SimpleQueue()
        self._unproven = threading.BoundedSemaphore(_UNPROVEN)
        self._listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        try:
            self._meet()
        except BaseException:
            self.close()
            raise

    # Meeting

    def _meet(self) -> None:
        store, rank = self._store, self.me.id
        if rank == 0:
            store.set("secret", secrets.token_hex(32))
        self._secret = bytes.fromhex(store.get("secret").decode())
        maps = {to: {str(a): str(b) for a, b in pairs.items()} for to, pairs in self.options.device_maps.items()}
        place = self._listener.getsockname()[:2]
        store.set(f"worker/{rank}", json.dumps({"name": self.me.name, "place": place, "maps": maps}))
        known = [json.loads(store.get(f"worker/{other}")) for other in range(self._size)]
        self.workers = [WorkerInfo(one["name"], other) for other, one in enumerate(known)]
        self._by_name: dict[str, WorkerInfo] = {}
        for worker in self.workers:
            other = self._by_name.setdefault(worker.name, worker)
            if other is not worker:
                raise RuntimeError(
                    f"RPC worker name {worker.name} is not unique. "
                    f"Workers {other.id} and {worker.id} share the same name."
                )
        self._maps_to = {worker.id: maps.get(worker.name, {}) for worker in self.workers}
        for worker, one in zip(self.workers, known, strict=True):  # answers go back as the requests came
            back = {there: here for here, there in one["maps"].get(self.me.name, {}).items()}
            self._maps_to[worker.id] = {**back, **self._maps_to[worker.id]}
        self._start(self._accept_all, "rpc listener")
        self._start(self._end_late_requests, "rpc timeouts")
        self._start(self._tell_drops, "rpc dropped references")
        for worker, one in zip(self.workers, known, strict=True):
            limit = self.rpc_timeout or 60.0
            try:
                channel = Channel.dial(tuple(one["place"]), self._secret, rank, worker.id, limit)
            except OSError as error:
                raise RuntimeError(f"RPC could not connect to {worker}: {error}") from error
            self._channels[worker.id] = channel
            self._start(self._read_replies, f"rpc replies of {worker.id}", channel)

    def _start(self, function: Callable[..., None], name: str, *args: Any) -> None:
        threading.Thread(target=function, args=args, name=name, daemon=True).start()

    def _accept_all(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed, or a peer that went away before it was accepted
                if self._closed:
                    return
                time.sleep(0.05)
                continue
            if self._unproven.acquire(blocking=False):
                self._start(self._serve, "rpc requests", connection)
            else:
                connection.close()

    def _serve(self, connection: socket.socket) -> None:
        try:
            channel = Channel.accept(connection, self._secret, self.me.id, self._size)
        except OSError:
            connection.close()
            return
        finally:
            self._unproven.release()
        with self._lock:
            if self._closed:
                channel.close()
                return
            self._accepted[channel.peer] = channel
        try:
            while True:
                self._take(channel, *channel.receive())
        except OSError:
            self._lose(channel.peer)
            channel.close()

    def _lose(self, peer: int) -> None:
        with self._idle:
            self._lost.add(peer)
            self._idle.notify_all()
            futures = [future for to, future in self._pending.values() if to == peer]
        for future in futures:
            error = f"RPC to {self.workers[peer]} failed: the connection was closed; the process may have ended"
            complete(future, None, RuntimeError(error))

    # Requests that this rank sends

    def get_worker_info(self, to: Any) -> WorkerInfo:
        """Return the worker of a name, a rank or a WorkerInfo."""
        if isinstance(to, WorkerInfo):
            return to
        if isinstance(to, str):
            if to not in self._by_name:
                raise RuntimeError(f"Unknown destination worker {to}.")
            return self._by_name[to]
        if isinstance(to, int):
            if not 0 <= to < self._size:
                raise RuntimeError(f"Unknown destination worker {to}.")
            return self.workers[to]
        raise ValueError(f"Cannot get WorkerInfo from name {to}")

    def pickle_for(self, peer: int, value: Any) -> bytes:
        """Return the bytes of a value for a rank, with the tensors' part in this thread's autograd context."""
        file, context = io.BytesIO(), current_context()
        outgoing = Outgoing(context, peer, self.me.id) if context is not None else None
        _Pickler(file, self._maps_to[peer], outgoing).dump(value)
        return (NO_CONTEXT if outgoing is None else outgoing.finish()) + file.getvalue()

    def context_for(self, peer: int) -> bytes:
        """Return what tells a rank this thread's autograd context."""
        context = current_context()
        return NO_CONTEXT if context is None else Outgoing(context, peer, self.me.id).finish()

    def request(self, kind: int, to: WorkerInfo, data: bytes, timeout: float) -> RpcFuture:
        """Send a request; return the future of its reply."""
        number = next(self._numbers)
        future = _ReplyFuture(lambda: self._forget(number))
        limit = self.rpc_timeout if timeout < 0 else timeout
        with self._lock:
            self._pending[number] = to.id, future
            self._sent += 1
        if limit > 0:
            words = f"RPC ran for more than set timeout ({round(limit * 1000)} ms) and will now be marked with an error"
            self._limits.put((time.monotonic() + limit, number, words))
        try:
            if to.id in self._lost:
                raise ConnectionError("the process has ended")
            self._channels[to.id].send(kind, number, data)
        except OSError as error:
            complete(future, None, RuntimeError(f"RPC to {to} failed: {error}"))
        return future

    def _forget(self, number: int) -> None:
        with self._idle:
            self._pending.pop(number, None)
            self._idle.notify_all()

    def _read_replies(self, channel: Channel) -> None:
        try:
            while True:
                kind, number, data = channel.receive()
                _, future = self._pending.get(number, (None, None))
                if future is None:
                    continue  # it timed out
                try:
                    value, _ = read(data, channel.peer, pickle.loads, is_reply=True)  # of a rank that proved itself
                except Exception as error:  # a class that is not here: the caller's error
                    complete(future, None, error)
                    continue
                complete(future, value, None) if kind == REPLY else complete(future, None, make_error(*value))
        except OSError:
            self._lose(channel.peer)
            channel.close()

    def _end_late_requests(self) -> None:
        limits: list[tuple[float, int, str]] = []
        while True:
            wait = max(limits[0][0] - time.monotonic(), 0) if limits else None
            try:
                limit = self._limits.get(timeout=wait)
            except queue.Empty:
                _, number, words = heapq.heappop(limits)
                _, future = self._pending.get(number, (None, None))
                if future is not None:
                    complete(future, None, RuntimeError(words))
                continue
            if limit is None:
                return
            heapq.heappush(limits, limit)

    # RRefs

    def new_id(self) -> tuple[int, int]:
        """Return a number that no other rank gives."""
        return self.me.id, next(self._numbers)

    def own(self, rref: tuple[int, int]) -> OwnedValue:
        """Return the value of this rank under a number; a new one if its request is still on the way."""
        with self._lock:
            return self._owned.setdefault(rref, OwnedValue())

    def add_holder(self, owner: int, rref: tuple[int, int], holder: tuple[int, int]) -> None:
        """Tell the owner of another holder."""
        if owner == self.me.id:
            self._change_holders(ADD, rref, holder)
        else:
            self._channels[owner].send(ADD, 0, IDS.pack(*rref, *holder))

    def drop_holder(self, owner: int, rref: tuple[int, int], holder: tuple[int, int]) -> None:
        """Tell the owner, from another thread, that a holder has gone. The garbage collector may call this."""
        self._drops.put((owner, rref, holder))

    def _tell_drops(self) -> None:
        for owner, rref, holder in iter(self._drops.get, None):
            if owner == self.me.id:
                self._change_holders(DROP, rref, holder)
                continue
            with contextlib.suppress(OSError):  # the owner ended
                self._channels[owner].send(DROP, 0, IDS.pack(*rref, *holder))

    def _change_holders(self, kind: int, rref: tuple[int, int], holder: tuple[int, int]) -> None:
        value = self.own(rref)
        with self._lock:
            known, early = value.holders, value.dropped_early
            if kind == ADD:
                early.remove(holder) if holder in early else known.add(holder)
            else:
                known.remove(holder) if holder in known else early.add(holder)
            gone = None if known or early else self._owned.pop(rref, None)
        del gone  # its value may run code of the user, without the lock

    # Requests of others

    def _take(self, channel: Channel, kind: int, number: int, data: bytearray) -> None:
        if kind in (ADD, DROP):
            ids = IDS.unpack(data)
            self._change_holders(kind, ids[:2], ids[2:])
            return
        with self._lock:
            self._running[channel.peer] += 1
        if kind == FETCH:
            _, context = read(data[IDS.size :], channel.peer, pickle.loads)
            wanted = self.own(IDS.unpack(data[: IDS.size])[:2]).future
            wanted._call_when_done(lambda done: self._start_reply(channel, number, done, context))
            return
        owned = None
        if kind == REMOTE:
            ids, data = IDS.unpack(data[: IDS.size]), data[IDS.size :]
            owned = self.own(ids[:2])
            self._change_holders(ADD, ids[:2], ids[2:])
        self._start(self._run, "rpc worker", channel, number, data, owned)

    def _start_reply(
        self, channel: Channel, number: int, done: Future, context: DistAutogradContext | None = None
    ) -> None:
        # Another thread: the peer may read nothing until its own message has been read here.
        self._start(self._reply, "rpc reply", channel, number, done, context)

    def _run(self, channel: Channel, number: int, data: bytearray, owned: OwnedValue | None) -> None:
        result: Future = RpcFuture()
        context = None
        self.ready.wait()
        with self.permits:
            _thread.running = self
            try:
                (function, args, kwargs), context = read(data, channel.peer, pickle.loads)  # it proved itself
                with within(context):
                    value = function(*args, **kwargs)
                if hasattr(function, "_wrapped_async_rpc_function"):
                    if not isinstance(value, Future):
                        raise RuntimeError(
                            "Functions decorated with @rpc.functions.async_execution must return a "
                            f"torch.futures.Future object, but got {type(value)}"
                        )
                    result = value
                else:
                    result.set_result(value)
            except Exception as error:  # the caller raises it
                result.set_exception(self._describe(error))
            finally:
                _thread.running = None
        if owned is None:
            result._call_when_done(lambda done: self._start_reply(channel, number, done, context))
            return

        def keep(done: Future) -> None:
            complete(owned.future, done._value, self._describe(done._error) if done._error is not None else None)
            nothing: Future = Future()
            nothing.set_result(None)
            self._start_reply(channel, number, nothing)

        result._call_when_done(keep)

    def _describe(self, error: BaseException) -> Exception:
        if isinstance(error, RemoteError):
            return error
        trace = "".join(traceback.format_exception(error))
        return RemoteError(f"On {self.me}:\n{error!r}\n{trace}", type(error))

    def _reply(self, channel: Channel, number: int, done: Future, context: DistAutogradContext | None) -> None:
        try:
            kind, data = REPLY, b""
            try:
                if done._error is None:
                    with within(context):
                        data = self.pickle_for(channel.peer, done._value)
            except Exception as error:  # a result that cannot be pickled: the caller raises it
                kind, data = ERROR, NO_CONTEXT + pickle.dumps(self._describe(error).args)
            if done._error is not None:
                described = self._describe(done._error)
                try:
                    kind, data = ERROR, self.pickle_for(channel.peer, described.args)
                except Exception:  # a local class of error
                    kind, data = ERROR, NO_CONTEXT + pickle.dumps((described.args[0], RuntimeError))
            with contextlib.suppress(OSError):  # the caller ended
                channel.send(kind, number, data)
        finally:
            with self._idle:
                self._running[channel.peer] -= 1
                self._handled += 1
                self._idle.notify_all()

    # The end

    def wait_for_all(self, timeout: float) -> None:
        """Wait until no rank has a request on the way; raise RuntimeError if a rank ended or the time is over."""
        try:
            self._meet_until_idle(timeout)
        except DistNetworkError as error:  # rank 0, which serves the store, gave up
            ended = [str(self.workers[rank]) for rank in sorted(self._lost)] or ["the store's process"]
            raise RuntimeError(f"RPC shutdown failed: {', '.join(ended)} ended without a shutdown") from error

    def _meet_until_idle(self, timeout: float) -> None:
        # It ends after two rounds with the same counts, in which all requests that were sent are handled.
        end = time.monotonic() + timeout if timeout > 0 else None
        before, number = None, 0
        while True:
            with self._idle:
                while self._pending or any(self._running[peer] for peer in self._running.keys() - self._lost):
                    self._check_end(end)
                    self._idle.wait(0.5)
                counts = [self._sent, self._handled]
            if 0 in self._lost:  # it serves the store
                raise self._lost_error(0)
            self._store.set(f"round/{number}/{self.me.id}", json.dumps(counts))
            rows = [
                json.loads(self._wait_for_key(f"round/{number}/{other}", other, end)) for other in range(self._size)
            ]
            now = [sum(column) for column in zip(*rows, strict=True)]
            if now[0] == now[1] and now == before:
                break
            before, number = now, number + 1
        self._store.set(f"left/{self.me.id}", "")
        if self.me.id == 0:  # its process may serve the store
            limit = time.monotonic() + 30
            for other in range(self._size):
                while not self._store.check([f"left/{other}"]) and other not in self._lost and time.monotonic() < limit:
                    time.sleep(0.01)

    def _lost_error(self, rank: int) -> RuntimeError:
        return RuntimeError(f"RPC shutdown failed: {self.workers[rank]} ended without a shutdown")

    def _check_end(self, end: float | None) -> None:
        if end is not None and time.monotonic() > end:
            raise RuntimeError("Failed to respond to 'Shutdown Proceed' in time")

    def _wait_for_key(self, key: str, other: int, end: float | None) -> bytes:
        pause = 0.002
        while True:
            lost = other in self._lost
            if self._store.check([key]):
                return self._store.get(key)
            if lost:
                raise self._lost_error(other)
            self._check_end(end)
            time.sleep(pause)
            pause = min(pause * 1.5, 0.1)

    def close(self) -> None:
        """Close all connections; requests on the way get an error."""
        with self._lock:
            self._closed = True
            self.ready.set()
            channels = [*self._channels.values(), *self._accepted.values()]
        self._limits.put(None)
        self._drops.put(None)
        with contextlib.suppress(OSError):  # it wakes the thread that accepts
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for channel in channels:
            channel.close()
        self._store = None  # rank 0's serves no longer

    def close_in_child(self) -> None:
        """Close a forked child's copies of the sockets; the parent's connections stay."""
        self._listener.close()
        for channel in [*self._channels.values(), *self._accepted.values()]:
            channel.close_copy()


class RemoteError(Exception):
    """An error as it travels: the text and the class."""


def make_error(text: str, kind: type[BaseException]) -> Exception:
    try:
        made = kind(text)
    except Exception as error:  # a class that takes other arguments
        return RuntimeError(
            f"Failed to create original exception type. Error msg was {error}"
            f" Original exception on remote side was {text}"
        )
    return made if isinstance(made, Exception) else RuntimeError(text)


def find_own_address(store: Any) -> str:
    """Return the address of this process on the way to the store's host."""
    while not hasattr(store, "host") and hasattr(store, "underlying_store"):
        store = store.underlying_store
    host, port = (store.host, store.port) if hasattr(store, "host") else (socket.gethostname(), 9)
    family, kind, _, _, address = socket.getaddrinfo(host, port or 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(address)  # of datagrams: nothing is sent
        return probe.getsockname()[0]
