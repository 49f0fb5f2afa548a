"""Messages on their way, as programs see them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from torchlite.futures import Future

from ._transports import Request


class DistError(RuntimeError):
    """What goes wrong between processes."""

    __module__ = "torch.distributed"


class DistBackendError(DistError):
    """Messages did not arrive."""

    __module__ = "torch.distributed"


class DistNetworkError(DistError):
    """A connection failed."""

    __module__ = "torch.distributed"


class DistStoreError(DistError):
    """A store did not answer."""

    __module__ = "torch.distributed"


class QueueEmptyError(DistStoreError):
    """A store's queue is empty."""

    __module__ = "torch.distributed"


class Work:
    """What a call with `async_op=True` returns. Classes of one's own derive from it."""

    __module__ = "torch.distributed"

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the results are there."""
        raise NotImplementedError("Work.wait")

    def is_completed(self) -> bool:
        """Whether the results are there; asking moves the messages on."""
        raise NotImplementedError("Work.is_completed")

    def is_success(self) -> bool:
        """Whether the work is done without an error."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """What went wrong."""
        return None

    def result(self) -> Any:
        """The tensors that the work wrote."""
        raise NotImplementedError("Work.result")

    def source_rank(self) -> int:
        """The rank that sent what a `recv` from anybody got."""
        raise RuntimeError(
            "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call."
        )

    _source_rank = source_rank

    def get_future(self) -> Future:
        """A future of the results."""
        raise NotImplementedError("Work.get_future")

    def synchronize(self) -> None:
        """Wait, without an answer."""
        self.wait()

    block_current_stream = synchronize


class PolledFuture(Future):
    """A future of messages: who waits for it, or for what `then` made of it, moves them on."""

    def __init__(self, ask: Callable[[], Any], wait: Callable[[], Any]) -> None:
        super().__init__()
        self._ask, self._drive = ask, wait

    def done(self) -> bool:
        """Whether the value is there."""
        if not self._done:
            self._ask()
        return self._done

    def wait(self) -> Any:
        """Wait for the value."""
        if not self._done:
            self._drive()
        return super().wait()

    def _following(self) -> Future:
        return PolledFuture(self._ask, self._drive)


class MessageWork(Work):
    """Messages of an engine: `finish` puts what arrived into tensors, once, in the thread that finds it there."""

    def __init__(
        self,
        request: Request,
        words: tuple[str, int, str],
        limit: timedelta,
        finish: Callable[[], Any] | None = None,
        results: Any = (),
        receives: bool = False,
    ) -> None:
        self._request, self._words, self._limit = request, words, limit
        self._finish, self._results, self._receives = finish, results, receives
        self._error: BaseException | None = None
        self._future: PolledFuture | None = None
        self._lock = threading.RLock()
        self._completed = False

    def is_completed(self) -> bool:
        """Whether the results are there; asking moves the messages on."""
        if not self._completed:
            try:
                arrived = self._request.done()
            except RuntimeError as error:
                self._settle(DistBackendError(f"{self._what()}: {error}"))
            else:
                if arrived:
                    self._settle(None)
        return self._completed

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for the results: True. DistBackendError when the time that the group allows has passed."""
        if not self._completed:
            limit = self._limit if timeout is None else timeout
            try:
                arrived = self._request.wait(limit.total_seconds())
            except RuntimeError as error:
                self._settle(DistBackendError(f"{self._what()}: {error}"))
            else:
                self._settle(None if arrived else self._late(limit))
        if self._error is not None:
            raise self._error
        return True

    def _what(self) -> str:
        return "{} on rank {} of {}".format(*self._words)

    def abort(self) -> None:
        """Give up a message that has not come; what is on its way to others goes on."""
        if self._receives and not self._completed:
            self._request.cancel()
            self._settle(DistBackendError(f"{self._what()} was given up"))

    def _late(self, limit: timedelta) -> BaseException:
        if self._receives:
            self._request.cancel()
        milliseconds = round(limit.total_seconds() * 1000)
        return DistBackendError(f"Timed out waiting {milliseconds}ms for {self._what()} to complete")

    def _settle(self, error: BaseException | None) -> None:
        with self._lock:
            if self._completed:
                return
            if error is None and self._finish is not None:
                self._finish()
            self._error, self._completed, self._finish = error, True, None
            future = self._future
        if future is not None:
            self._tell(future)

    def _tell(self, future: PolledFuture) -> None:
        if self._error is None:
            future.set_result(self.result())
        else:
            future.set_exception(self._error)

    def exception(self) -> BaseException | None:
        """What went wrong, of work that is done."""
        return self._error

    def result(self) -> Any:
        """The tensors that the work wrote."""
        return list(self._results)

    def source_rank(self) -> int:
        """The rank in the group that sent what a `recv` from anybody got."""
        return self._request.source if self._receives else super().source_rank()

    _source_rank = source_rank

    def get_future(self) -> Future:
        """A future of the list of results."""
        with self._lock:
            if self._future is None:
                self._future = PolledFuture(self.is_completed, self._drive)
                if self._completed:
                    self._tell(self._future)
            return self._future

    def _drive(self) -> None:
        try:
            self.wait()
        except DistBackendError:
            if not self._completed:
                raise
