"""The scheduler of a model: a bounded queue whose requests are joined to batches, and calls in threads."""

from __future__ import annotations

import asyncio
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
    future: asyncio.Future
    queued: float = field(default_factory=time.perf_counter)


Results = tuple[list[Any], StageTimes]
Run = Callable[[Sequence[Any]], Results | Awaitable[Results]]


class Observer(Protocol):
    """What a scheduler tells about its work."""

    def on_batch(self, rows: int, waited: Sequence[float], times: StageTimes) -> None:
        """A batch was computed; `waited` are the seconds that its requests spent in the queue."""


class Scheduler:
    """Queue of one model. All methods belong to the event loop's thread.

    Args:
        run: Computes the answers to the requests of a batch.
        pool: The threads in which `run` is called; None if it is a coroutine function.
        limits: How requests are joined and how many wait.
        observer: What is told of each batch.
    """

    def __init__(self, run: Run, pool: Executor | None, limits: BatchLimits, observer: Observer) -> None:
        self._run = run
        self._pool = pool
        self.limits = limits
        self._observer = observer
        self._waiting: deque[Job] = deque()
        self._running: set[asyncio.Task] = set()
        self._timer: asyncio.TimerHandle | None = None
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

    def submit(self, payload: Any, signature: Hashable = None, rows: int = 1) -> asyncio.Future:
        """Put a request into the queue; return the future of its answer. Cancel the future to leave the queue.

        Raises:
            Busy: The queue is full.
            Unavailable: The model is being unloaded.
        """
        if self._closing:
            raise Unavailable("the model is being unloaded")
        if len(self._waiting) >= self.limits.max_queue:
            raise Busy(f"{len(self._waiting)} requests wait for the model already", self.retry_after())
        job = Job(payload, signature, rows, asyncio.get_running_loop().create_future())
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
        left = None if deadline is None else max(deadline - time.perf_counter(), 0.0)
        try:
            return await asyncio.wait_for(future, left)
        except TimeoutError:
            raise DeadlineExceeded("the answer was not ready before the request's deadline") from None

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
        """Take a cancelled request out of the queue."""
        if job.future.cancelled() and job in self._waiting:
            self._waiting.remove(job)
            self._check_idle()

    def _check_idle(self) -> None:
        if not self._waiting and not self._running:
            self._idle.set()

    def _pump(self) -> None:
        """Start calls while there are requests and free workers."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting and len(self._running) < self.limits.workers:
            if self._waiting[0].future.done():  # cancelled, and not yet forgotten
                self._waiting.popleft()
                continue
            batch, rows = self._next_batch()
            due = self._waiting[0].queued + self.limits.delay - time.perf_counter()
            joinable = self._waiting[0].signature is not None
            if rows < self.limits.max_batch and due > 0 and joinable and not self._closing:
                self._timer = loop.call_later(due, self._pump)
                return
            for job in batch:
                self._waiting.remove(job)
            task = loop.create_task(self._call(batch, rows))
            self._running.add(task)
            task.add_done_callback(self._on_done)
        self._check_idle()

    def _on_done(self, task: asyncio.Task) -> None:
        self._running.discard(task)
        self._pump()

    def _next_batch(self) -> tuple[list[Job], int]:
        """Return the oldest request with those that can join it, in order, and their rows."""
        first = self._waiting[0]
        batch, rows = [first], first.rows
        if first.signature is None:
            return batch, rows
        for job in list(self._waiting)[1:]:
            if rows >= self.limits.max_batch:
                break
            joins = job.signature == first.signature and not job.future.done()
            if joins and rows + job.rows <= self.limits.max_batch:
                batch.append(job)
                rows += job.rows
        return batch, rows

    def _compute(self, payloads: list[Any]) -> Awaitable[Results]:
        if self._pool is None:
            return self._run(payloads)  # type: ignore[return-value]
        return asyncio.get_running_loop().run_in_executor(self._pool, self._run, payloads)  # type: ignore[arg-type]

    async def _call(self, batch: list[Job], rows: int) -> None:
        started = time.perf_counter()
        try:
            results, times = await self._compute([job.payload for job in batch])
        except Exception as error:  # whatever the model raises is its requests' answer
            if len(batch) > 1 and not isinstance(error, Unavailable):
                for job in batch:  # so that one request does not fail the others
                    if not job.future.done():
                        await self._call([job], job.rows)
                return
            results, times = [error] * len(batch), StageTimes()
        else:
            self._mean_call += (times.total - self._mean_call) * (_SMOOTHING if self._mean_call else 1.0)
            self._observer.on_batch(rows, [started - job.queued for job in batch], times)
        for job, result in zip(batch, results, strict=True):
            if job.future.done():
                continue
            if isinstance(result, Exception):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)
