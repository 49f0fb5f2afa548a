"""`Work`: handles of asynchronous collectives, their futures, and errors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from torchlite.futures import Future

from ._transports import Request


class DistError(RuntimeError):
    """Base class of the errors of `torch.distributed`; a RuntimeError."""

    __module__ = "torch.distributed"


class DistBackendError(DistError):
    """Error of a communication backend, such as a timeout or a lost process."""

    __module__ = "torch.distributed"


class DistNetworkError(DistError):
    """Error of a store's connection."""

    __module__ = "torch.distributed"


class DistStoreError(DistError):
    """Error of a store, such as a wait that times out."""

    __module__ = "torch.distributed"


class QueueEmptyError(DistStoreError):
    """Error of `Store.queue_pop` with ``block=False`` on an empty queue."""

    __module__ = "torch.distributed"


class Work:
    """Handle of an asynchronous call, as collectives return it with ``async_op=True``.

    Backends of other packages derive from it.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.ones(2)
        >>> work = dist.all_reduce(x, async_op=True)
        >>> work.wait()
        True
        >>> dist.destroy_process_group()
    """

    __module__ = "torch.distributed"

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Waits until the results are complete, and returns ``True``.

        Args:
            timeout: The limit. Default: the group's.

        Raises:
            DistBackendError: The time passes, or the call failed.
        """
        raise NotImplementedError("Work.wait")

    def is_completed(self) -> bool:
        """Returns whether the results are complete. It polls the messages and does not wait."""
        raise NotImplementedError("Work.is_completed")

    def is_success(self) -> bool:
        """Returns whether the work is complete without an error."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """Returns the error of the work, or ``None``."""
        return None

    def result(self) -> Any:
        """Returns the tensors that the work wrote."""
        raise NotImplementedError("Work.result")

    def source_rank(self) -> int:
        """Returns the rank of the sender, for a `recv` from any source.

        Raises:
            RuntimeError: The work belongs to another call.
        """
        raise RuntimeError(
            "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call."
        )

    _source_rank = source_rank

    def get_future(self) -> Future:
        """Returns a `torch.futures.Future` of the results."""
        raise NotImplementedError("Work.get_future")

    def synchronize(self) -> None:
        """Waits until the results are complete."""
        self.wait()

    block_current_stream = synchronize


class PolledFuture(Future):
    """Future of messages: waiting for it, or for a `then` of it, polls them."""

    def __init__(self, ask: Callable[[], Any], wait: Callable[[], Any]) -> None:
        super().__init__()
        self._ask, self._wait_for_future = ask, wait

    def done(self) -> bool:
        """True if the value is complete."""
        if not self._done:
            self._ask()
        return self._done

    def wait(self) -> Any:
        """Wait for the value."""
        if not self._done:
            self._wait_for_future()
        return super().wait()

    def _make_chained_future(self) -> Future:
        return PolledFuture(self._ask, self._wait_for_future)


class MessageWork(Work):
    """Messages of a transport: `finish` writes the received data to tensors, once, in the thread that completes it."""

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
        """True if the results are complete; polls the messages."""
        if not self._completed:
            try:
                arrived = self._request.done()
            except RuntimeError as error:
                self._complete(DistBackendError(f"{self._description()}: {error}"))
            else:
                if arrived:
                    self._complete(None)
        return self._completed

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for the results and return True. DistBackendError after the group's timeout."""
        if not self._completed:
            limit = self._limit if timeout is None else timeout
            try:
                arrived = self._request.wait(limit.total_seconds())
            except RuntimeError as error:
                self._complete(DistBackendError(f"{self._description()}: {error}"))
            else:
                self._complete(None if arrived else self._timeout_error(limit))
        if self._error is not None:
            raise self._error
        return True

    def _description(self) -> str:
        return "{} on rank {} of {}".format(*self._words)

    def abort(self) -> None:
        """Cancel a message that has not arrived; sends continue."""
        if self._receives and not self._completed:
            self._request.cancel()
            self._complete(DistBackendError(f"{self._description()} was given up"))

    def _timeout_error(self, limit: timedelta) -> BaseException:
        if self._receives:
            self._request.cancel()
        milliseconds = round(limit.total_seconds() * 1000)
        return DistBackendError(f"Timed out waiting {milliseconds}ms for {self._description()} to complete")

    def _complete(self, error: BaseException | None) -> None:
        with self._lock:
            if self._completed:
                return
            if error is None and self._finish is not None:
                self._finish()
            self._error, self._completed, self._finish = error, True, None
            future = self._future
        if future is not None:
            self._complete_future(future)

    def _complete_future(self, future: PolledFuture) -> None:
        if self._error is None:
            future.set_result(self.result())
        else:
            future.set_exception(self._error)

    def exception(self) -> BaseException | None:
        """Return the error of a completed work."""
        return self._error

    def result(self) -> Any:
        """Return the tensors that the work wrote."""
        return list(self._results)

    def source_rank(self) -> int:
        """Return the group rank of the sender of a `recv` from any source."""
        return self._request.source if self._receives else super().source_rank()

    _source_rank = source_rank

    def get_future(self) -> Future:
        """Return a future of the list of results."""
        with self._lock:
            if self._future is None:
                self._future = PolledFuture(self.is_completed, self._wait_for_future)
                if self._completed:
                    self._complete_future(self._future)
            return self._future

    def _wait_for_future(self) -> None:
        try:
            self.wait()
        except DistBackendError:
            if not self._completed:
                raise
