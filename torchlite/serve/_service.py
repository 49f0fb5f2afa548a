"""What a server does, apart from the protocol that asks for it: infer, stream, predict, and its state."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ._errors import DeadlineExceeded, Forbidden, InvalidRequest, ServeError, Unavailable
from ._handler_context import HandlerAnswer, HandlerRequest
from ._handler_model import HandlerModel
from ._metrics import Metrics
from ._protocol import InferRequest, check_wishes
from ._repository import Entry, Repository
from ._settings import Settings
from ._tensor_model import Answer, Stream, TensorModel

NAME = "torchlite"
_MOST_UNREAD = 4096  # parts of a stream that a slow client has not taken
_CANCELLED = 499  # status of a request whose client went away, as other servers count it
_SMALL = 1 << 16  # bytes that the event loop's thread translates itself


@dataclass
class Call:
    """How long an answer is of use, and which protocol asks for it."""

    protocol: str
    deadline: float  # of `time.perf_counter`
    started: float = field(default_factory=time.perf_counter)


class PartQueue:
    """The parts of a streamed answer: a thread puts them in without waiting, and the event loop takes them out."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parts: asyncio.Queue[Any] = asyncio.Queue()
        self.cancelled = threading.Event()

    def put(self, part: Any) -> None:
        """Add a part, from any thread. Unavailable if the client takes too few."""
        if self._parts.qsize() >= _MOST_UNREAD:
            raise Unavailable("the client takes the answer's parts too slowly")
        self._loop.call_soon_threadsafe(self._parts.put_nowait, part)

    async def iterate(self, future: asyncio.Future, deadline: float) -> AsyncIterator[Any]:
        """Yield the parts until the call has ended; then its error is raised."""
        try:
            while not (future.done() and self._parts.empty()):
                getter = asyncio.ensure_future(self._parts.get())
                left = max(deadline - time.perf_counter(), 0.0)
                try:
                    await asyncio.wait({getter, future}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                    if getter.done():
                        yield getter.result()
                    elif not future.done():
                        raise DeadlineExceeded("the answer was not complete before the request's deadline")
                finally:
                    getter.cancel()
            future.result()
        finally:
            self.cancelled.set()
            future.cancel()


class Service:
    """The core of a server. Its methods belong to the event loop's thread."""

    def __init__(self, settings: Settings) -> None:
        settings.check_workers()
        self.settings = settings
        self.token = settings.read_token()
        self.metrics = Metrics()
        self.pool = ThreadPoolExecutor(settings.threads, "torchlite-infer")
        self._translators = ThreadPoolExecutor(2, "torchlite-translate")
        self.repository = Repository(
            settings.models, settings.model_defaults(), dict(settings.tables), self.pool, self.metrics,
            settings.allow_code, settings.workers, settings.worker_timeout,
        )  # fmt: skip
        self.draining = self.closes_connections = False

    @property
    def is_ready(self) -> bool:
        """True while requests are answered: all models are loaded, and the server is not about to end."""
        return self.repository.is_ready and not self.draining

    def is_model_ready(self, entry: Entry) -> bool:
        """True while a version of a model answers requests."""
        return not self.draining and not entry.trouble

    def check_management(self) -> None:
        """Raise Forbidden if the server's models are fixed."""
        if not self.settings.management:
            raise Forbidden("this server does not load or unload models by requests")

    def begin(self, protocol: str, seconds: float | None = None) -> Call:
        """Return the call of a request that arrives now, with the client's limit of time or the server's."""
        limit = self.settings.timeout if seconds is None else min(seconds, self.settings.timeout)
        return Call(protocol, time.perf_counter() + limit)

    async def translate(self, size: int, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return `function(*arguments)`; in a thread if it works on many bytes, so that other requests go on."""
        if size < _SMALL:
            return function(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self._translators, function, *arguments)

    async def infer(self, name: str, version: str, request: InferRequest, call: Call) -> tuple[Entry, Answer]:
        """Return a model's answer to a request, and the version that gave it."""

        def submit(entry: Entry) -> asyncio.Future:
            model = tensor_model(entry)
            model.check(request)
            check_wishes(request, model.outputs)
            return entry.scheduler.submit(request, model.signature(request), model.rows(request), model.size(request))

        return await self._answer(name, version, call, submit)

    async def predict(
        self, name: str, version: str, request: HandlerRequest, call: Call
    ) -> tuple[Entry, HandlerAnswer]:
        """Return a handler's answer to a request, and the version that gave it."""
        return await self._answer(name, version, call, lambda entry: entry.scheduler.submit(request, request.signature))

    async def _answer(
        self, name: str, version: str, call: Call, submit: Callable[[Entry], asyncio.Future]
    ) -> tuple[Entry, Any]:
        entry = self.repository.find(name, version)
        with _Counted(self, entry, call):
            # Nothing is awaited between `find` and `submit`, so that a version that is being replaced gets none.
            return entry, await entry.scheduler.wait(submit(entry), call.deadline)

    async def stream(
        self, name: str, version: str, request: InferRequest, call: Call
    ) -> AsyncIterator[tuple[Entry, Answer]]:
        """Yield a model's answers to a request, each when it is computed."""
        entry = self.repository.find(name, version)
        with _Counted(self, entry, call):
            model = tensor_model(entry)
            model.check(request)
            check_wishes(request, model.outputs)
            parts = PartQueue()
            future = entry.scheduler.submit(Stream(request, parts.put, parts.cancelled.is_set))
            async for answer in parts.iterate(future, call.deadline):
                yield entry, answer

    async def close(self) -> None:
        """Answer what waits, and end the threads."""
        self.draining = self.closes_connections = True
        await self.repository.close()
        for pool in (self.pool, self._translators):
            pool.shutdown(wait=False, cancel_futures=True)


class _Counted:
    """Counts a request when it ends, with its status."""

    def __init__(self, service: Service, entry: Entry, call: Call) -> None:
        self._service, self._entry, self._call = service, entry, call

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        entry, metrics = self._entry, self._service.metrics
        seconds = time.perf_counter() - self._call.started
        status = 200
        if error is not None:
            status = error.status if isinstance(error, ServeError) else 500
            reason = error.reason if isinstance(error, ServeError) else "internal"
            if isinstance(error, asyncio.CancelledError | GeneratorExit):
                status, reason = _CANCELLED, "cancelled"
            metrics.errors.labels(entry.name, reason).inc()
        (entry.statistics.fail if error is not None else entry.statistics.success).add(seconds)
        metrics.count_request(entry.name, entry.version, self._call.protocol, status, seconds)


def tensor_model(entry: Entry) -> TensorModel:
    """Return the model of tensors of an entry. InvalidRequest if it has a handler."""
    if isinstance(entry.model, HandlerModel):
        raise InvalidRequest(f"model '{entry.name}' answers through a handler: use /predictions/{entry.name}")
    return entry.model
