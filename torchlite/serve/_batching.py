"""The scheduler of a model: a bounded queue whose requests are joined to batches, and calls in threads."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Protocol

from ._errors import Busy, DeadlineExceeded, Unavailable
from ._statistics import StageTimes

_SMOOTHING = 0.1  # weight of the newest call in the mean time of a call
_NEWEST = 0.3  # that in the processor time of a call: the first ones take longer
_TURN = 0.004  # seconds of such calls until the event loop goes on
_BRIEF = 0.002  # seconds of a call for which no thread is woken; the event loop stands still meanwhile


@dataclass(frozen=True)
class BatchLimits:
    """How requests of a model are joined and how many wait."""

    max_batch: int = 1  # rows
    delay: float = 0.0  # seconds that the oldest request waits for others
    max_queue: int = 128
    workers: int = 1  # calls at the same time


@dataclass(eq=False)
class Job:
    """A request in a queue. Requests of equal signatures can be joined; None can be joined with no other."""

    payload: Any
    signature: Hashable
    rows: int
    size: int
    future: asyncio.Future
    queued: float = field(default_factory=time.perf_counter)


Results = tuple[list[Any], StageTimes]
Run = Callable[[Sequence[Any]], Results | Awaitable[Results]]


class Observer(Protocol):
    """What a scheduler tells about its work."""

    def on_batch(self, rows: int, waited: Sequence[float], times: StageTimes) -> None:
        """A batch was computed; `waited` are the seconds that its requests spent in the queue."""


class _CallTime:
    """The processor time of recent calls, and what a next call would take: more for larger inputs, by their bytes.

    Processor time, since a thread also waits for Python's lock, and a busy machine runs other programs meanwhile.
    """

    def __init__(self) -> None:
        self._seconds = self._bytes = 0.0

    def add(self, seconds: float, size: int) -> None:
        """Count a call."""
        weight = _NEWEST if self._bytes else 1.0
        self._seconds += (seconds - self._seconds) * weight
        self._bytes += (size - self._bytes) * weight

    def is_brief(self, size: int) -> bool:
        """True if a call is probably too short for a thread. False while none is known, and for a size of 0."""
        if not self._bytes or not size:
            return False
        return self._seconds * max(size / self._bytes, 1.0) < _BRIEF


class Scheduler:
    """Queue of one model. All methods belong to the event loop's thread.

    Args:
        run: Computes the answers to the requests of a batch.
        pool: The threads in which `run` is called; None if it is a coroutine function.
        limits: How requests are joined and how many wait.
        observer: What is told of each batch.
        stays: Whether calls that are known to be brief run in the event loop's thread.
    """

    def __init__(
        self, run: Run, pool: Executor | None, limits: BatchLimits, observer: Observer, stays: bool = False
    ) -> None:
        self._run = run
        self._pool = pool
        self.limits = limits
        self._observer = observer
        self._stays = stays and pool is not None
        self._call_time = _CallTime()
        self._waiting: deque[Job] = deque()
        self._running: set[asyncio.Task] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._here: asyncio.Handle | None = None  # of the next call in this thread
        self._closing = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._mean_call = 0.0

    @property
    def queue_length(self) -> int:
        """Requests that wait."""
        return len(self._waiting)

    @property
    def in_flight(self) -> int:
        """Calls that run."""
        return len(self._running)

    def submit(self, payload: Any, signature: Hashable = None, rows: int = 1, size: int = 0) -> asyncio.Future:
        """Put a request into the queue; return the future of its answer. Cancel the future to leave the queue.

        Args:
            payload: The request.
            signature: What requests have in common that can be joined.
            rows: Its rows.
            size: Bytes of its inputs; 0 for a request that always takes a thread.

        Raises:
            Busy: The queue is full.
            Unavailable: The model is being unloaded.
        """
        if self._closing:
            raise Unavailable("the model is being unloaded")
        if len(self._waiting) >= self.limits.max_queue:
            raise Busy(f"{len(self._waiting)} requests wait for the model already", self.retry_after())
        job = Job(payload, signature, rows, size, asyncio.get_running_loop().create_future())
        job.future.add_done_callback(lambda _: self._forget(job))
        self._waiting.append(job)
        self._idle.clear()
        self._pump()
        return job.future

    async def wait(self, future: asyncio.Future, deadline: float | None) -> Any:
        """Return a future's result. A caller that is cancelled, or whose deadline passes, gives its place free.

        Args:
            future: A result of `submit`.
            deadline: The time of `time.perf_counter` until which the answer is of use; None for ever.
        """
        if deadline is None:
            return await future
        left = max(deadline - time.perf_counter(), 0.0)
        timer = asyncio.get_running_loop().call_later(left, _expire, future)
        try:
            return await future
        finally:
            timer.cancel()

    def retry_after(self) -> float:
        """Return the seconds after which the queue has probably a place free."""
        calls = math.ceil((len(self._waiting) + 1) / max(self.limits.max_batch, 1)) / self.limits.workers
        return max(calls * self._mean_call, 1.0)

    async def close(self) -> None:
        """Refuse new requests, and return when all others have their answers."""
        self._closing = True
        self._pump()
        await self._idle.wait()

    def _forget(self, job: Job) -> None:
        """Take a request that was cancelled, or that is too late, out of the queue."""
        if job.future.cancelled() or job.future.exception() is not None:
            with contextlib.suppress(ValueError):  # it is being computed
                self._waiting.remove(job)
            self._check_idle()

    def _check_idle(self) -> None:
        if not self._waiting and not self._running:
            self._idle.set()

    # -- starting calls ------------------------------------------------------------------

    def _pump(self) -> None:
        """Start calls while there are requests and free workers."""
        if self._here is not None:  # it pumps when it has been
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting and len(self._running) < self.limits.workers:
            if self._waiting[0].future.done():  # cancelled, and not yet forgotten
                self._waiting.popleft()
                continue
            loop = asyncio.get_running_loop()
            batch, rows = self._next_batch()
            if rows < self.limits.max_batch and batch[0].signature is not None and not self._closing:
                due = batch[0].queued + self.limits.delay - time.perf_counter()
                if due > 0:
                    self._timer = loop.call_later(due, self._pump)
                    return
            if self._is_brief(batch):
                # After the requests that have arrived already, which join.
                self._here = loop.call_soon(self._compute_here)
                return
            self._start(self._call(self._taken(batch), rows))
        self._check_idle()

    def _start(self, call: Any) -> None:
        task = asyncio.get_running_loop().create_task(call)
        self._running.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task) -> None:
        self._running.discard(task)
        self._pump()

    def _next_batch(self) -> tuple[list[Job], int]:
        """Return the oldest request with those that can join it, in order, and their rows."""
        first = self._waiting[0]
        batch, rows = [first], first.rows
        if first.signature is None or rows >= self.limits.max_batch:
            return batch, rows
        for job in list(self._waiting)[1:]:
            if rows >= self.limits.max_batch:
                break
            joins = job.signature == first.signature and not job.future.done()
            if joins and rows + job.rows <= self.limits.max_batch:
                batch.append(job)
                rows += job.rows
        return batch, rows

    def _taken(self, batch: list[Job]) -> list[Job]:
        """Take a batch out of the queue."""
        for job in batch:
            self._waiting.remove(job)
        return batch

    def _is_brief(self, batch: list[Job]) -> bool:
        return self._stays and self.limits.workers == 1 and self._call_time.is_brief(_size_of(batch))

    # -- calls ---------------------------------------------------------------------------

    def _compute_here(self) -> None:
        """Compute batches in this thread for a while: calls in a row find their code in the processor's cache. Others
        follow when what has arrived meanwhile is read.
        """
        self._here = None
        end = time.perf_counter() + _TURN
        while self._waiting and not self._running and time.perf_counter() < end:
            if self._waiting[0].future.done():
                self._waiting.popleft()
                continue
            batch, rows = self._next_batch()
            self._taken(batch)
            if self._is_brief(batch):
                self._call_here(batch, rows)
            else:  # by the requests that have come since
                self._start(self._call(batch, rows))
        self._pump()

    def _call_here(self, batch: list[Job], rows: int) -> None:
        started = time.perf_counter()
        try:
            found, seconds = self._timed([job.payload for job in batch])
        except Exception as error:  # whatever the model raises is its requests' answer
            if len(batch) > 1:
                self._start(self._call_each(batch))
            else:
                self._answer(batch, [error])
        else:
            self._finish(batch, rows, started, found, seconds)

    def _timed(self, payloads: list[Any]) -> tuple[Results, float]:
        """Return the answers and the seconds of processor time that they took."""
        start = time.thread_time()
        found = self._run(payloads)
        return found, time.thread_time() - start  # type: ignore[return-value]

    async def _compute(self, payloads: list[Any]) -> tuple[Results, float]:
        if self._pool is None:
            return await self._run(payloads), 0.0  # type: ignore[misc]
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._timed, payloads)

    async def _call(self, batch: list[Job], rows: int) -> None:
        started = time.perf_counter()
        try:
            found, seconds = await self._compute([job.payload for job in batch])
        except Exception as error:  # whatever the model raises is its requests' answer
            if len(batch) > 1 and not isinstance(error, Unavailable):
                await self._call_each(batch)
            else:
                self._answer(batch, [error] * len(batch))
        else:
            self._finish(batch, rows, started, found, seconds)

    async def _call_each(self, batch: list[Job]) -> None:
        """Call the model for each request of a failed batch, so that one of them does not fail the others."""
        for job in batch:
            if not job.future.done():
                await self._call([job], job.rows)

    def _finish(self, batch: list[Job], rows: int, started: float, found: Results, seconds: float) -> None:
        """Count a call, and answer its requests."""
        results, times = found
        self._call_time.add(seconds, _size_of(batch))
        self._mean_call += (times.total - self._mean_call) * (_SMOOTHING if self._mean_call else 1.0)
        self._observer.on_batch(rows, [started - job.queued for job in batch], times)
        self._answer(batch, results)

    @staticmethod
    def _answer(batch: list[Job], results: Sequence[Any]) -> None:
        for job, result in zip(batch, results, strict=True):
            if job.future.done():
                continue
            if isinstance(result, Exception):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)


def _expire(future: asyncio.Future) -> None:
    if not future.done():
        future.set_exception(DeadlineExceeded("the answer was not ready before the request's deadline"))


def _size_of(batch: list[Job]) -> int:
    """Return the bytes of all inputs; 0 if one of the requests takes a thread."""
    sizes = [job.size for job in batch]
    return sum(sizes) if all(sizes) else 0
