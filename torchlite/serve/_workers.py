"""Worker processes of a model, as the server's process sees them: calls, deaths and replacements."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import _frames
from ._errors import DeadlineExceeded, RowsMixed, ServeError, Unavailable
from ._payloads import deliver, leaving
from ._statistics import StageTimes
from ._worker_process import (
    CALL,
    CANCEL,
    DONE,
    ERROR,
    FORK,
    LOADED,
    PART,
    THREAD_VARIABLES,
    Ended,
    Failed,
    HasThreads,
    Hello,
    Order,
)

_log = logging.getLogger("torchlite.serve")
_CODE = (
    "import sys; sys.path[:] = sys.argv[2:]; from torchlite.serve._worker_process import main; main(int(sys.argv[1]))"
)
_LARGE = 1 << 20  # bytes that are packed in a thread
_MOST_DEATHS = 5  # in a row, without an answer or a while between; then the model is not ready
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 30.0  # seconds until a worker that died again is replaced
_PATIENCE = 1.0  # seconds that a call waits for the start of a worker
_END = 3.0  # seconds that the processes have to end


class WorkerDied(Unavailable):
    """The process that computed the answer has ended."""

    reason = "worker"

    def __init__(self, text: str, retry_after: float = 1.0) -> None:
        super().__init__(text)
        self.retry_after = max(retry_after, 1.0)


@dataclass(frozen=True)
class WorkerLimits:
    """How many processes a model has and how long one of their calls takes."""

    count: int
    timeout: float = 0.0  # seconds without a sign of a call until its process is killed; 0: never

    @property
    def threads(self) -> int:
        """Threads of one worker: what the environment asks for, or its share of the processors."""
        asked = os.environ.get("OMP_NUM_THREADS", "")
        if asked.isdecimal() and int(asked):
            return int(asked)
        return max(len(os.sched_getaffinity(0)) // self.count, 1)


# -- one process ---------------------------------------------------------------------------


def _unwatched_future() -> asyncio.Future:
    """Return a future whose error perhaps nobody reads."""
    made: asyncio.Future = asyncio.get_running_loop().create_future()
    made.add_done_callback(lambda future: future.cancelled() or future.exception())
    return made


@dataclass(eq=False)
class _Call:
    future: asyncio.Future
    payloads: Sequence[Any]
    number: int
    seen: float  # time of the last sign
    cancelled: bool = False
    timer: asyncio.TimerHandle | None = None

    def end(self) -> None:
        """Stop its timer, which keeps the call in memory."""
        if self.timer is not None:
            self.timer.cancel()


class _Worker:
    """A worker's process from its fork to its end."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.hello = _unwatched_future()
        self.process = 0  # its number, once it has said it
        self.call: _Call | None = None
        self.blame: ServeError | None = None  # why it was killed
        self.born = time.monotonic()


class _Template:
    """The process that loads a version of a model and from which its workers are forked."""

    def __init__(self, order: Order, on_end: Callable[[Ended], None]) -> None:
        self._on_end = on_end
        self.loaded = _unwatched_future()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # What was started with one thread can be forked.
            threads = 1 if order.preload else order.threads
            self.popen = subprocess.Popen(
                [sys.executable, "-c", _CODE, str(theirs.fileno()), *sys.path],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads)),
            )
        with contextlib.suppress(OSError):  # it has ended, which is read next
            _frames.send(self._control, order)
        self._control.setblocking(False)
        asyncio.get_running_loop().add_reader(self._control, self._read)

    @property
    def is_open(self) -> bool:
        """True while it can be asked to fork."""
        return self._control.fileno() >= 0

    def _read(self) -> None:
        try:
            message = _frames.receive(self._control)
        except BlockingIOError:
            return
        except (EOFError, OSError):
            self._fail(RuntimeError(f"the process that loads it has ended{self._status()}"))
            self.close()
            return
        if isinstance(message, Ended):
            self._on_end(message)
        elif message == LOADED:
            if not self.loaded.done():
                self.loaded.set_result(True)
        elif isinstance(message, HasThreads):
            self._fail(_Threads(message.names))
        else:
            self._fail(ValueError(message.text))

    def _status(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return _ending(self.popen.wait(0.2))
        return ""

    def _fail(self, error: Exception) -> None:
        if not self.loaded.done():
            self.loaded.set_exception(error)

    def fork(self) -> socket.socket:
        """Start a worker; return the channel to it. OSError if the template has gone."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                socket.send_fds(self._control, [FORK.encode()], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        ours.setblocking(False)
        return ours

    def kill(self, process: int) -> None:
        """Kill a worker, if it has not ended."""
        with contextlib.suppress(OSError):
            if self.is_open:
                self._control.send(str(process).encode())  # the parent knows whether the number is still the worker's
            else:
                os.kill(process, signal.SIGKILL)

    def close(self) -> None:
        """Let the template end."""
        if self.is_open:
            asyncio.get_running_loop().remove_reader(self._control)
            self._control.close()

    async def wait(self) -> None:
        """Return when it has ended; it is killed if that takes long."""
        self.close()
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, self.popen.wait, _END)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            await loop.run_in_executor(None, self.popen.wait)


class _Threads(Exception):
    """The model's code started threads."""


def _ending(status: int) -> str:
    if status < 0:
        with contextlib.suppress(ValueError):
            return f" by {signal.Signals(-status).name}"
    return f" with status {status}"


# -- all of a model ------------------------------------------------------------------------


class WorkerGroup:
    """The processes of one version of a model. All methods belong to the event loop's thread.

    Args:
        order: What is loaded.
        limits: The number of workers and the time of a call.
        record: Takes the figures that a handler records.
        count_death: Called for each worker that ends although nobody asked it to.
    """

    def __init__(
        self, order: Order, limits: WorkerLimits, record: Callable[[str, float, str], None],
        count_death: Callable[[], None],
    ) -> None:  # fmt: skip
        self._order, self.limits = order, limits
        self._record, self._count_death = record, count_death
        self.model: Any = None
        self._template: _Template | None = None
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._waiters: deque[asyncio.Future] = deque()
        self._numbers = itertools.count()
        self._starting: set[asyncio.Task] = set()
        self._pending = 0  # workers that are not forked yet
        self._deaths, self._last_death, self._next_start = 0, 0.0, 0.0
        self._closing = False
        self._lock = asyncio.Lock()  # of a template's start

    # -- state -----------------------------------------------------------------------------

    @property
    def processes(self) -> list[int]:
        """The numbers of the workers' processes."""
        return sorted(worker.process for worker in self._workers if worker.process)

    @property
    def trouble(self) -> str:
        """Why the model cannot be relied on now; "" if it can."""
        if not self.processes:
            return "it has no worker process"
        if self._deaths >= _MOST_DEATHS and time.monotonic() < self._last_death + _LONGEST_DELAY:
            return f"{self._deaths} worker processes have died in a row"
        return ""

    async def memory(self) -> int:
        """Return the bytes of the workers and their template; shared pages count once."""
        template = [self._template.popen.pid] if self._template is not None else []
        found = [*template, *self.processes]
        return await asyncio.to_thread(lambda: sum(map(_share_of_memory, found)))  # it takes milliseconds

    # -- life ------------------------------------------------------------------------------

    async def start(self) -> Any:
        """Start the workers; return the model as they describe it. The error of the first that fails."""
        self._pending = self.limits.count
        try:
            await self._start_worker()
            await asyncio.gather(*(self._start_worker() for _ in range(self.limits.count - 1)))
        except BaseException:
            await self.close()
            raise
        return self.model

    async def _ready_template(self) -> _Template:
        while True:
            async with self._lock:
                if self._template is not None and not self._template.is_open:
                    await self._template.wait()
                    self._template = None
                if self._template is None:
                    if self._closing:
                        raise Unavailable("the model is being unloaded")
                    self._template = _Template(self._order, self._on_end)
                template = self._template
            try:
                await asyncio.shield(template.loaded)
                return template
            except _Threads as error:
                if self._order.source.config.preload:
                    raise ValueError(
                        f"preload is true, and loading started threads, which a fork loses: {error}"
                    ) from None
                if self._order.preload:
                    _log.info(
                        "model %s: loading starts threads (%s); each worker loads it", self._order.source.name, error
                    )
                self._order = replace(self._order, preload=False)
                template.close()

    async def _start_worker(self) -> None:
        try:
            worker = _Worker((await self._ready_template()).fork())
        finally:
            self._pending -= 1
        self._workers.add(worker)
        asyncio.get_running_loop().add_reader(worker.channel, self._read, worker)
        hello: Hello = await worker.hello
        self.model = self.model or hello.model
        self._record_all(hello.figures)

    def resize(self, count: int) -> None:
        """Have another number of workers. What runs is finished."""
        self.limits = replace(self.limits, count=count)
        while len(self._workers) > count and self._idle:
            self._forget(self._idle.pop())
        self._fill()

    def _fill(self) -> None:
        """Start the workers that are missing."""
        if self._closing:
            return
        missing = max(self.limits.count - len(self._workers) - self._pending, 0)
        self._pending += missing
        delay = max(self._next_start - time.monotonic(), 0.0)
        for _ in range(missing):
            task = asyncio.ensure_future(self._start_again(delay))
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _start_again(self, delay: float) -> None:
        await asyncio.sleep(delay)
        try:
            await self._start_worker()
            _log.info("model %s has a new worker process", self._order.source.name)
        except Exception as error:  # of a file, of a model's code, or of the system
            _log.error("model %s: a worker cannot start: %s", self._order.source.name, error)
            self._note_death(0.0)
            self._wake()
            self._fill()

    async def close(self) -> None:
        """End all processes."""
        self._closing = True
        for task in self._starting:
            task.cancel()
        for worker in list(self._workers):
            if worker.call is not None or not worker.process:
                self._kill(worker, None)
            self._forget(worker)
        self._wake()
        if self._template is not None:
            await self._template.wait()

    # -- calls -----------------------------------------------------------------------------

    async def run(self, payloads: Sequence[Any]) -> tuple[list[Any], StageTimes]:
        """Return the answers to requests that one worker computes in one call. WorkerDied if it ends before."""
        sent = [leaving(payload) for payload in payloads]
        number = next(self._numbers)
        if _size_of(payloads) < _LARGE:
            message = _frames.Message((CALL, number, sent))
        else:
            message = await asyncio.to_thread(_frames.Message, (CALL, number, sent))
        try:
            worker = await self._free_worker()
        except BaseException:
            message.close()
            raise
        loop = asyncio.get_running_loop()
        worker.call = call = _Call(loop.create_future(), payloads, number, time.monotonic())
        try:
            message.send(worker.channel)
        except OSError:  # it has just ended, which is read next
            self._kill(worker, None)
        if self.limits.timeout:
            call.timer = loop.call_later(self.limits.timeout, self._check_time, worker, call)
        return await call.future

    async def _free_worker(self) -> _Worker:
        while not self._idle:
            if self._closing:
                raise Unavailable("the model is being unloaded")
            wait = self._next_start - time.monotonic()
            if not self._workers and wait > _PATIENCE:
                raise WorkerDied("the model has no worker process; one starts later, since several have ended", wait)
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if not waiter.cancelled():
                    self._wake(1)
                raise
        return self._idle.pop()

    def _wake(self, most: float = math.inf) -> None:
        """Let calls that wait for a worker look again."""
        while self._waiters and most > 0:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                most -= 1

    def _check_time(self, worker: _Worker, call: _Call) -> None:
        if worker.call is not call:
            return
        left = call.seen + self.limits.timeout - time.monotonic()
        if left > 0:
            call.timer = asyncio.get_running_loop().call_later(left, self._check_time, worker, call)
            return
        _log.error(
            "model %s: worker process %s gave no sign for %g seconds; it is killed", self._order.source.name,
            worker.process, self.limits.timeout,
        )  # fmt: skip
        self._kill(worker, DeadlineExceeded(f"the model took over {self.limits.timeout:g} seconds and was stopped"))

    # -- what workers send -----------------------------------------------------------------

    def _read(self, worker: _Worker) -> bool:
        """Read a message; False if there is none."""
        try:
            message = _frames.receive(worker.channel)
        except BlockingIOError:
            return False
        except Exception as error:  # of the system, or of an object that the model's code sent
            if not isinstance(error, EOFError | OSError):
                _log.exception("a message of worker process %s cannot be read", worker.process)
                self._kill(worker, None)
            self._on_death(worker)
            return False
        if isinstance(message, Hello):
            self._on_hello(worker, message)
        elif isinstance(message, Failed):
            if not worker.hello.done():
                worker.hello.set_exception(ValueError(message.text))
            self._forget(worker)
        elif worker.call is not None and worker.call.number == message[1]:
            self._on_message(worker, worker.call, message)
        return True

    def _on_hello(self, worker: _Worker, hello: Hello) -> None:
        worker.process = hello.process
        if not worker.hello.done():
            worker.hello.set_result(hello)
        self._release(worker)

    def _on_message(self, worker: _Worker, call: _Call, message: tuple) -> None:
        call.seen = time.monotonic()
        if message[0] == PART:
            self._on_part(worker, call, *message[2:])
            return
        kind, _, value, figures = message
        worker.call = None
        call.end()
        self._deaths = 0
        self._record_all(figures)
        if not call.future.done():
            if kind == DONE:
                call.future.set_result(value)
            else:
                assert kind == ERROR
                if isinstance(value, RowsMixed):
                    self.model.mixes_rows = True
                call.future.set_exception(value)
        self._release(worker)

    def _on_part(self, worker: _Worker, call: _Call, place: int, part: Any) -> None:
        try:
            wanted = deliver(call.payloads[place], part)
        except Unavailable:  # the client takes too few
            wanted = False
        if not wanted and not call.cancelled:
            call.cancelled = True
            with contextlib.suppress(OSError):
                _frames.send(worker.channel, (CANCEL, call.number))

    def _record_all(self, figures: Sequence[tuple[str, float, str]]) -> None:
        for figure in figures:
            self._record(*figure)

    def _release(self, worker: _Worker) -> None:
        if len(self._workers) > self.limits.count or self._closing:
            self._forget(worker)
            return
        self._idle.append(worker)
        self._wake(1)

    # -- ends ------------------------------------------------------------------------------

    def _kill(self, worker: _Worker, blame: ServeError | None) -> None:
        worker.blame = worker.blame or blame
        if worker.process and self._template is not None:
            self._template.kill(worker.process)

    def _on_end(self, ended: Ended) -> None:
        """The template says that a worker has ended: also one whose own processes still have its channel open."""
        if ended.status and not self._closing:
            name, ending = self._order.source.name, _ending(ended.status)
            _log.error("model %s: worker process %s has ended%s", name, ended.process, ending)
        for worker in list(self._workers):
            if worker.process == ended.process:
                while worker in self._workers and self._read(worker):  # what it sent before
                    pass
                self._on_death(worker)

    def _on_death(self, worker: _Worker) -> None:
        if worker not in self._workers:
            return
        call = worker.call
        self._forget(worker)
        if not worker.process:  # whoever started it counts this
            return
        self._note_death(time.monotonic() - worker.born)
        if call is not None and not call.future.done():
            text = f"the worker process {worker.process} ended before the answer was ready; ask again"
            call.future.set_exception(worker.blame or WorkerDied(text, self._next_start - time.monotonic()))
        self._fill()
        self._wake()

    def _note_death(self, lived: float) -> None:
        """Count a death, and choose the time of the next start: at once, and later the more have died in a row."""
        self._count_death()
        self._deaths = 1 if lived > _LONGEST_DELAY else self._deaths + 1
        self._last_death = time.monotonic()
        delay = 0.0 if self._deaths == 1 else min(_FIRST_DELAY * 2 ** (self._deaths - 2), _LONGEST_DELAY)
        self._next_start = self._last_death + delay

    def _forget(self, worker: _Worker) -> None:
        """Close the channel of a worker, which lets it end."""
        if worker not in self._workers:
            return
        self._workers.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        asyncio.get_running_loop().remove_reader(worker.channel)
        worker.channel.close()
        if worker.call is not None:
            worker.call.end()
        if not worker.hello.done():
            worker.hello.set_exception(RuntimeError("a worker process ended while it was started"))
        if self._closing and worker.call is not None and not worker.call.future.done():
            worker.call.future.set_exception(worker.blame or Unavailable("the model is being unloaded"))


def _size_of(payloads: Sequence[Any]) -> int:
    """Return the bytes of the requests' arrays and bodies, about."""
    total = 0
    for payload in payloads:
        values = getattr(getattr(payload, "request", payload), "inputs", None) or getattr(payload, "data", {})
        total += sum(getattr(value, "nbytes", 0) or _length(value) for value in values.values())
    return total


def _length(value: Any) -> int:
    return len(value) if isinstance(value, bytes | bytearray | str) else 0


def _share_of_memory(process: int) -> int:
    """Return the bytes of a process, where a page of several processes counts in parts. 0 if it has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{process}/smaps_rollup", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0
